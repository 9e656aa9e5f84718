/* SPDX-License-Identifier: MIT */
#include "run/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void run_json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			fprintf(f, "\\u%04x", (unsigned)(unsigned char)*s);
		else
			fputc(*s, f);
	fputc('"', f);
}

bool run_trace_open(run_trace *t, const cli_command *cmd, const char *path)
{
	*t = (run_trace){ 0 };
	if (cli_create(cmd, &t->out, path))
		t->f = t->out.f;
	if (t->f)
		fputs("{\"otherData\":{\"unit\":\"1 us is one instruction of one warp of the cluster\"},\"traceEvents\":[", t->f);
	return t->f != NULL;
}

/* Begins an event: {"ph":"X","pid":3,"tid":1 */
static void event(run_trace *t, char kind, uint64_t pid, uint32_t tid)
{
	fprintf(t->f, "%s{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%u", t->nevent++ ? ",\n" : "\n", kind, pid, (unsigned)tid);
}

/* The first spans of a block and of a warp name their tracks. */
static bool name_tracks(run_trace *t, const cptx_emu_span *s)
{
	if (s->number >= t->nblock) {
		uint64_t n = s->number + 64;
		uint32_t *p = realloc(t->named, (size_t)n * sizeof *p);
		if (!p)
			return false;
		memset(p + t->nblock, 0, (size_t)(n - t->nblock) * sizeof *p);
		t->named = p;
		t->nblock = n;
	}
	uint32_t *named = &t->named[s->number];
	if (!*named) {
		event(t, 'M', s->number, 0);
		fprintf(t->f, ",\"name\":\"process_name\",\"args\":{\"name\":\"block %u,%u,%u\"}}", (unsigned)s->block[0],
		        (unsigned)s->block[1], (unsigned)s->block[2]);
	}
	if (!(*named >> s->warp & 1)) {
		event(t, 'M', s->number, s->warp);
		fprintf(t->f, ",\"name\":\"thread_name\",\"args\":{\"name\":\"warp %u\"}}", (unsigned)s->warp);
		*named |= UINT32_C(1) << s->warp;
	}
	return true;
}

static void put_args(run_trace *t, const cptx_emu_span *s)
{
	fputs(",\"args\":{\"instruction\":", t->f);
	run_json_string(t->f, s->instruction);
	if (s->at.file) {
		fputs(",\"file\":", t->f);
		run_json_string(t->f, s->at.file);
		fprintf(t->f, ",\"line\":%u", (unsigned)s->at.line);
	}
	if (s->kind == CPTX_EMU_SPAN_ASYNC)
		fprintf(t->f, ",\"warp\":%u", (unsigned)s->warp);
	if (s->bytes)
		fprintf(t->f, ",\"bytes\":%" PRIu64, s->bytes);
	if (s->flops)
		fprintf(t->f, ",\"flops\":%" PRIu64, s->flops);
	fputc('}', t->f);
}

/* The instruction without sizes, types and places, as in cp.async.bulk.tensor: operations of one name share a track. */
static void put_name(run_trace *t, const char *before, const char *instruction)
{
	size_t n = strcspn(instruction, ".");
	char name[128];

	while (instruction[n]) {
		size_t word = 1 + strcspn(instruction + n + 1, ".");
		if (strcspn(instruction + n, "0123456789:") < word)
			break;
		n += word;
	}
	snprintf(name, sizeof name, "%s%.*s", before, (int)n, instruction);
	fputs(",\"name\":", t->f);
	run_json_string(t->f, name);
}

void run_trace_put(run_trace *t, const cptx_emu_span *s)
{
	if (t->lost || !name_tracks(t, s)) {
		t->lost = true;
		return;
	}
	if (s->kind != CPTX_EMU_SPAN_ASYNC) {
		event(t, 'X', s->number, s->warp);
		put_name(t, s->kind == CPTX_EMU_SPAN_WAIT ? "wait: " : "run", s->instruction);
		fprintf(t->f, ",\"ts\":%" PRIu64 ",\"dur\":%" PRIu64, s->begin, s->end - s->begin);
		if (s->kind == CPTX_EMU_SPAN_WAIT)
			put_args(t, s);
		fputc('}', t->f);
		return;
	}
	uint64_t id = ++t->nasync;
	for (int end = 0; end < 2; end++) {
		event(t, end ? 'e' : 'b', s->number, s->warp);
		fprintf(t->f, ",\"cat\":\"async\",\"id\":%" PRIu64, id);
		put_name(t, "", s->instruction);
		fprintf(t->f, ",\"ts\":%" PRIu64, end ? s->end : s->begin);
		if (!end)
			put_args(t, s);
		fputc('}', t->f);
	}
}

bool run_trace_close(run_trace *t, const cli_command *cmd)
{
	if (!t->f)
		return true;
	fputs("\n]}\n", t->f);
	bool ok = !t->lost && cli_finish(cmd, &t->out);
	if (t->lost) {
		cli_abandon(&t->out);
		cli_no_memory(cmd);
	}
	free(t->named);
	*t = (run_trace){ 0 };
	return ok;
}
