/* The report as JSON: what --html shows, too. */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

/* Also safe inside of a script element: no '<'. */
static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; s && *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || *s == '<')
			fprintf(f, "\\u%04x", (unsigned)(unsigned char)*s);
		else
			fputc(*s, f);
	fputc('"', f);
}

static void put_lines(FILE *f, const char *text)
{
	fputc('[', f);
	for (const char *p = text; p && *p;) {
		size_t n = strcspn(p, "\n");
		char line[1024];
		snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), p);
		fputs(p == text ? "" : ",\n", f);
		put_string(f, line);
		p += n + (p[n] == '\n');
	}
	fputc(']', f);
}

static void put_usage(FILE *f, const inspect_kernel *k)
{
	fprintf(
		f,
		",\"measured\":%s,\"registers\":%u,\"frame\":%u,\"stack\":%u,\"static_smem\":%u,\"dynamic_smem\":%u,\"barriers\":%u",
		k->has_usage ? "true" : "false", k->registers, k->frame, k->stack, k->static_smem, k->dynamic_smem, k->barriers);
	fprintf(f, ",\"code\":%u,\"constant0\":%u,\"param_bytes\":%u,\"threads\":%u", k->code, k->constant0, k->param_bytes,
	        k->threads);
	if (k->has_spills)
		fprintf(f, ",\"spill_stores\":%u,\"spill_loads\":%u", k->spill_stores, k->spill_loads);
	if (k->has_occupancy)
		fprintf(
			f,
			",\"occupancy\":{\"ctas\":%u,\"warps\":%u,\"most_warps\":%u,\"limit\":\"%s\",\"by_registers\":%u,\"by_smem\":%u,"
			"\"by_threads\":%u,\"by_ctas\":%u}",
			k->occupancy.ctas, k->occupancy.warps, k->occupancy.most_warps, cptx_limit_name(k->occupancy.limit),
			k->occupancy.by_registers, k->occupancy.by_smem, k->occupancy.by_threads, k->occupancy.by_ctas);
}

static void put_flow(FILE *f, const inspect_kernel *k)
{
	size_t n, nloop;
	const cptx_point *p = cptx_flow_points(k->flow, &n);
	const cptx_loop *l = cptx_flow_loops(k->flow, &nloop);
	uint32_t count[CPTX_UNITS];
	double weight[CPTX_UNITS];

	cptx_flow_mix(k->flow, count, weight);
	fputs(",\"mix\":{", f);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		fprintf(f, "%s\"%s\":%u", u ? "," : "", cptx_unit_name(u), count[u]);
	uint32_t known, accesses, conflicts = cptx_flow_conflicts(k->flow, &known, &accesses);
	fprintf(f, "},\"conflicts\":%u,\"conflicts_known\":%u,\"shared_accesses\":%u", conflicts, known, accesses);
	fprintf(f, ",\"estimate\":%u,\"peak\":%u,\"points\":[", cptx_flow_registers(k->flow), cptx_flow_peak(k->flow, NULL));
	for (size_t i = 0; i < n; i++) /* line, registers, predicates, depth, unit, bank conflicts */
		fprintf(f, "%s[%u,%u,%u,%u,%u,%u]", i ? "," : "", p[i].line, p[i].live, p[i].predicates, p[i].depth, p[i].unit,
		        p[i].conflicts);
	fputs("],\"loops\":[", f);
	for (size_t i = 0; i < nloop; i++)
		fprintf(f, "%s{\"first\":%u,\"last\":%u,\"depth\":%u,\"weight\":%.0f,\"hottest\":%s}", i ? "," : "",
		        p[l[i].first].line, p[l[i].last].line, l[i].depth, l[i].weight,
		        i == cptx_flow_hottest(k->flow) ? "true" : "false");
	fputc(']', f);
}

static void put_kernel(FILE *f, const inspect_kernel *k)
{
	fputs("{\"name\":", f);
	put_string(f, k->name);
	put_usage(f, k);
	if (k->flow)
		put_flow(f, k);
	fputs(",\"sass\":[", f);
	for (size_t i = 0, n = 0; i < k->nsass; i++) {
		if (!k->sass[i].text && !k->sass[i].ptx_line)
			continue;
		fprintf(f, "%s[%u,%u,%u,", n++ ? ",\n" : "", k->sass[i].address, k->sass[i].ptx_line, k->sass[i].unit);
		put_string(f, k->sass[i].text ? k->sass[i].text : "");
		fputc(']', f);
	}
	fputs("]}", f);
}

static void put_remarks(FILE *f, const inspected *in)
{
	static const char *const severities[] = { "note", "concern", "warning", "error" };
	const cptx_remark *r;

	fputs(",\n\"remarks\":[", f);
	for (size_t i = 0; (r = cptx_verdict_remark(in->verdict, i)); i++) {
		fprintf(f,
		        "%s{\"severity\":\"%s\",\"topic\":\"%s\",\"code\":\"%s\",\"ptx_line\":%u,\"found\":%s,\"line\":%u,\"file\":",
		        i ? ",\n" : "", severities[r->severity], r->topic, r->code, r->ptx_line, r->found ? "true" : "false",
		        r->at.line);
		put_string(f, r->at.file);
		fputs(",\"function\":", f);
		put_string(f, r->function);
		fputs(",\"text\":", f);
		put_string(f, r->text);
		fputs(",\"advice\":", f);
		put_string(f, r->advice);
		fputc('}', f);
	}
	fputc(']', f);
}

enum { MOST_FILES = 16, MOST_SOURCE = 1 << 20 /* bytes of each */ };

/* The source files that lines of the PTX come from, with their text where it can be read, and the line of each line. */
static void put_sources(FILE *f, const inspected *in)
{
	const char *file[MOST_FILES];
	size_t nfile = 0;
	uint32_t line = 1;

	fputs(",\n\"origin\":[", f);
	for (const char *p = in->ptx; p && *p; line++) {
		cptx_site at = inspect_source(in, line);
		size_t i = 0;
		while (at.file && i < nfile && strcmp(file[i], at.file) != 0)
			i++;
		if (at.file && i == nfile && nfile < MOST_FILES)
			file[nfile++] = at.file;
		fprintf(f, at.file && i < nfile ? "%s[%zu,%u]" : "%s0", line > 1 ? "," : "", i, at.line);
		p += strcspn(p, "\n"), p += *p == '\n';
	}
	fputs("],\n\"sources\":[", f);
	for (size_t i = 0; i < nfile; i++) {
		char *text = calloc(1, MOST_SOURCE + 1);
		FILE *source = text ? fopen(file[i], "rb") : NULL;
		if (source)
			text[fread(text, 1, MOST_SOURCE, source)] = 0;
		if (source)
			fclose(source);
		fputs(i ? ",{\"name\":" : "{\"name\":", f);
		put_string(f, file[i]);
		fputs(",\"lines\":", f);
		put_lines(f, text);
		fputc('}', f);
		free(text);
	}
	fputc(']', f);
}

void inspect_json(const inspected *in, FILE *f)
{
	fputs("{\"file\":", f);
	put_string(f, in->path);
	fprintf(f, ",\"target\":\"%s\",\"note\":", in->target ? in->target->name : "");
	put_string(f, in->note);
	fputs(",\"units\":[", f);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		fprintf(f, "%s\"%s\"", u ? "," : "", cptx_unit_name(u));
	fputs("],\n\"kernels\":[", f);
	for (size_t i = 0; i < in->nkernel; i++) {
		fputs(i ? ",\n" : "", f);
		put_kernel(f, &in->kernel[i]);
	}
	fputs("],\n\"shared\":[", f);
	for (size_t i = 0; i < in->nshared; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", f);
		put_string(f, in->shared[i].name);
		fprintf(f, ",\"size\":%u,\"align\":%u,\"line\":%u}", in->shared[i].size, in->shared[i].align, in->shared[i].line);
	}
	fputc(']', f);
	put_remarks(f, in);
	put_sources(f, in);
	fputs(",\n\"ptx\":", f);
	put_lines(f, in->ptx);
	fputs("}\n", f);
}
