/* SPDX-License-Identifier: MIT */
#include "run/finding.h"
#include "run/trace.h"

void finding_json(FILE *out, const cptx_emu_finding *f, uint64_t seed)
{
	fputs("{\"code\":", out);
	run_json_string(out, cptx_finding_name(f->code));
	fprintf(out, ",\"rank\":\"%s\"", f->rank == CPTX_FIND_WARNING ? "warning" : "error");
	fputs(",\"kernel\":", out);
	run_json_string(out, f->kernel);
	fputs(",\"instruction\":", out);
	run_json_string(out, f->instruction);
	if (f->at.file) {
		fputs(",\"file\":", out);
		run_json_string(out, f->at.file);
		fprintf(out, ",\"line\":%u", (unsigned)f->at.line);
	}
	fprintf(out, ",\"block\":[%u,%u,%u]", f->block[0], f->block[1], f->block[2]);
	if (f->has_thread)
		fprintf(out, ",\"thread\":[%u,%u,%u]", f->thread[0], f->thread[1], f->thread[2]);
	fprintf(out, ",\"count\":%llu,\"seed\":%llu,\"text\":", (unsigned long long)f->count, (unsigned long long)seed);
	run_json_string(out, f->text);
	fputs("}\n", out);
}

void finding_order_json(FILE *out, const finding_order *o)
{
	fputs("{\"code\":\"" FINDING_ORDER "\",\"rank\":\"note\",\"kernel\":", out);
	run_json_string(out, o->kernel);
	fprintf(out, ",\"order\":%llu,\"bytes\":%llu,\"address\":\"0x%llx\",\"text\":", (unsigned long long)o->order,
	        (unsigned long long)o->bytes, (unsigned long long)o->at);
	run_json_string(out, o->text);
	fputs("}\n", out);
}

/* ---- SARIF 2.1.0: what editors and code hosts read ---- */

void finding_sarif_begin(FILE *out)
{
	fprintf(out,
	        "{\"version\":\"2.1.0\",\"$schema\":\"https://json.schemastore.org/"
	        "sarif-2.1.0.json\",\"runs\":[{\"tool\":{\"driver\":{"
	        "\"name\":\"cptx\",\"version\":\"%s\",\"rules\":[",
	        cptx_version());
	for (int code = CPTX_FIND_NONE + 1; code < CPTX_FIND_COUNT; code++)
		fprintf(out, "%s{\"id\":\"%s\"}", code > CPTX_FIND_NONE + 1 ? "," : "",
		        cptx_finding_name((enum cptx_finding_code)code));
	fputs(",{\"id\":\"" FINDING_ORDER "\"}]}},\"results\":[", out);
}

void finding_sarif(FILE *out, const cptx_emu_finding *f, bool first)
{
	fprintf(out, "%s\n{\"ruleId\":\"%s\",\"level\":\"%s\",\"message\":{\"text\":", first ? "" : ",",
	        cptx_finding_name(f->code), f->rank == CPTX_FIND_WARNING ? "warning" : "error");
	run_json_string(out, f->text);
	fputs("}", out);
	if (f->at.file) {
		fputs(",\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":", out);
		run_json_string(out, f->at.file);
		fprintf(out, "},\"region\":{\"startLine\":%u}},\"logicalLocations\":[{\"kind\":\"function\",\"name\":",
		        f->at.line ? (unsigned)f->at.line : 1u);
		run_json_string(out, f->kernel);
		fputs("}]}]", out);
	}
	fputs("}", out);
}

void finding_order_sarif(FILE *out, const finding_order *o, bool first)
{
	fprintf(out, "%s\n{\"ruleId\":\"" FINDING_ORDER "\",\"level\":\"note\",\"message\":{\"text\":", first ? "" : ",");
	run_json_string(out, o->text);
	fputs("},\"locations\":[{\"logicalLocations\":[{\"kind\":\"function\",\"name\":", out);
	run_json_string(out, o->kernel);
	fputs("}]}]}", out);
}

void finding_sarif_end(FILE *out) { fputs("]}]}\n", out); }
