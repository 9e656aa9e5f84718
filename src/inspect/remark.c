/* SPDX-License-Identifier: MIT */
/*
 * The messages of ptxas -v as data.  Its lines:
 *   ptxas FILE, line N; error   : text             with a line of the PTX
 *   ptxas info    : (C7515) text in the function 'K'
 *   ptxas info    : Compiling entry function 'K' for 'sm_90a'
 *   ptxas info    : Function properties for K, and behind it
 *       N bytes stack frame, N bytes spill stores, N bytes spill loads
 *   ptxas info    : Used N registers, used N barriers, N bytes cumulative stack size, N bytes smem, N bytes cmem[B], ...
 */
#include "base/options.h"
#include "compile/text.h"
#include "inspect/remark.h"

#include <stdio.h>
#include <stdlib.h>

#define NOTE CPTX_SAID_NOTE, false
#define CONCERN CPTX_SAID_CONCERN, false
#define AS_IS CPTX_SAID_NOTE, true
static const remark_row rows[] = {
#define REMARK(topic, severity, at, words, advice) { topic, words, advice, severity, PLACE_##at },
#include "inspect/remark.def"
#undef REMARK
};

struct cptx_verdict {
	arena a;
	cptx_remark *remark;
	size_t nremark, cap_remark;
	cptx_usage *usage;
	size_t nusage, cap_usage;
	const char *name, *ptx; /* name: of the text; ptx: the text, while it is being read */
	size_t size;
	const cptx_ptx *printed;
	loc_map loc;
	bool has_loc;
	cptx_module *m; /* the text as a module; NULL: not needed yet, or it cannot be parsed */
	bool asked;
};

typedef struct span {
	const char *p;
	size_t n;
} span;

static const char *find(span in, const char *words)
{
	size_t n = strlen(words);

	for (size_t i = 0; n <= in.n && i <= in.n - n; i++)
		if (!memcmp(in.p + i, words, n))
			return in.p + i;
	return NULL;
}

static span behind(span in, const char *at) { return (span){ at, (size_t)(in.p + in.n - at) }; }

static bool takes(span *in, const char *words)
{
	size_t n = strlen(words);

	while (in->n && (*in->p == ' ' || *in->p == '\t'))
		in->p++, in->n--;
	if (in->n < n || memcmp(in->p, words, n) != 0)
		return false;
	in->p += n, in->n -= n;
	return true;
}

static uint32_t number_at(const char *p, const char *end)
{
	uint32_t v = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		v = v < UINT32_MAX / 10 - 1 ? v * 10 + (uint32_t)(*p - '0') : UINT32_MAX;
	return v;
}

static uint32_t number_behind(span in, const char *words)
{
	const char *at = find(in, words);

	return at ? number_at(at + strlen(words), in.p + in.n) : 0;
}

static uint32_t number_before(span in, const char *words)
{
	const char *at = find(in, words), *p = at;

	while (p && p > in.p && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return at ? number_at(p, at) : 0;
}

static const char *keep(cptx_verdict *v, span s)
{
	char *copy = ARENA_ARRAY(&v->a, char, s.n + 1);

	if (!copy)
		return "";
	memcpy(copy, s.p, s.n);
	copy[s.n] = 0;
	return copy;
}

/* Finds the 'K' behind these words; empty if there is none. */
static span quoted_behind(span in, const char *words)
{
	const char *at = find(in, words), *end;

	if (!at)
		return (span){ in.p, 0 };
	at += strlen(words);
	end = text_find(at, '\'', (size_t)(in.p + in.n - at));
	return (span){ at, end ? (size_t)(end - at) : 0 };
}

const remark_row *remark_find(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (find((span){ text, n }, rows[i].words))
			return &rows[i];
	return NULL;
}

/* ---- usage ---- */

static cptx_usage *usage_for(cptx_verdict *v, span name)
{
	for (size_t i = 0; i < v->nusage; i++)
		if (strlen(v->usage[i].function) == name.n && !memcmp(v->usage[i].function, name.p, name.n))
			return &v->usage[i];
	if (!arena_push(&v->a, &v->usage, v->nusage, &v->cap_usage, sizeof *v->usage))
		return NULL;
	v->usage[v->nusage] = (cptx_usage){ .function = keep(v, name), .target = "" };
	return &v->usage[v->nusage++];
}

static void note_used(cptx_usage *u, span line)
{
	u->registers = number_behind(line, "Used ");
	u->barriers = number_behind(line, "used ");
	u->stack = number_before(line, " bytes cumulative stack size");
	u->static_smem = number_before(line, " bytes smem");
	for (unsigned bank = 0; bank < ARRAY_LEN(u->constant); bank++) {
		char words[] = " bytes cmem[?]";
		words[sizeof words - 3] = (char)('0' + bank);
		u->constant[bank] = number_before(line, words);
	}
}

typedef struct reading {
	/* indices in usage + 1 of the kernel that is compiled, and of the function whose properties follow; 0: none */
	size_t kernel, function;
} reading;

/* Reads a line about resources; false: the line is something else. */
static bool read_usage(cptx_verdict *v, reading *r, span line)
{
	cptx_usage *u = NULL;

	if (find(line, "Compiling entry function '")) {
		if ((u = usage_for(v, quoted_behind(line, "entry function '"))))
			u->is_kernel = true, u->target = keep(v, quoted_behind(line, "' for '"));
		r->kernel = u ? (size_t)(u - v->usage) + 1 : 0;
	} else if (find(line, "Function properties for ")) {
		u = usage_for(v, behind(line, find(line, "Function properties for ") + strlen("Function properties for ")));
		r->function = u ? (size_t)(u - v->usage) + 1 : 0;
	} else if (find(line, " bytes spill stores")) {
		if (r->function) {
			u = &v->usage[r->function - 1];
			u->frame = number_before(line, " bytes stack frame");
			u->spill_stores = number_before(line, " bytes spill stores");
			u->spill_loads = number_before(line, " bytes spill loads");
		}
	} else if (find(line, ": Used ")) {
		if (r->kernel)
			note_used(&v->usage[r->kernel - 1], line);
	} else {
		return find(line, " bytes gmem") || find(line, "Compile time = ");
	}
	return true;
}

/* ---- remarks ---- */

static uint32_t line_in(span text)
{
	uint32_t n = number_behind(text, "around line ");

	return n ? n : number_behind(text, "at line ");
}

static const char *function_in(cptx_verdict *v, span text)
{
	span name = quoted_behind(text, "in the function '");

	if (!name.n)
		name = quoted_behind(text, "in function '");
	if (!name.n)
		name = quoted_behind(text, "ntry function '");
	if (!name.n && find(text, "in function ")) {
		name = behind(text, find(text, "in function ") + strlen("in function "));
		for (size_t i = 0; i < name.n; i++)
			if (name.p[i] == '.' || name.p[i] == ' ')
				name.n = i;
	}
	return name.n ? keep(v, name) : "";
}

/* Parses the text.  cptx may refuse text that ptxas accepts: then remarks get lines, but no instructions. */
static cptx_module *module_of(cptx_verdict *v)
{
	if (!v->asked && v->ptx)
		v->m = cptx_parse(v->ptx, v->size, NULL);
	v->asked = true;
	if (v->m && cptx_module_error(v->m)) {
		cptx_module_destroy(v->m);
		v->m = NULL;
	}
	return v->m;
}

static void place(cptx_verdict *v, cptx_remark *r, enum remark_place where)
{
	if (!r->ptx_line && where > PLACE_LINE && module_of(v)) {
		r->ptx_line = remark_line(v->m, *r->function ? r->function : NULL, where);
		r->found = r->ptx_line != 0;
	}
	r->at = r->ptx_line ? cptx_verdict_origin(v, r->ptx_line) : NOWHERE;
}

static cptx_remark *add(cptx_verdict *v, const cptx_remark *r)
{
	if (!arena_push(&v->a, &v->remark, v->nremark, &v->cap_remark, sizeof *v->remark))
		return NULL;
	v->remark[v->nremark] = *r;
	return &v->remark[v->nremark++];
}

static void read_remark(cptx_verdict *v, span text, uint32_t line, enum cptx_severity severity)
{
	cptx_remark r = { .severity = severity, .topic = "", .code = "", .advice = "", .function = "", .ptx_line = line };

	while (text.n && text.p[text.n - 1] == ' ')
		text.n--;
	if (takes(&text, "(")) {
		const char *end = text_find(text.p, ')', text.n);
		span code = { text.p, end ? (size_t)(end - text.p) : 0 };
		r.code = keep(v, code);
		if (end)
			text = behind(text, end + 1);
		takes(&text, "");
	}
	r.text = keep(v, text);
	r.function = function_in(v, text);
	if (!r.ptx_line)
		r.ptx_line = line_in(text);
	const remark_row *row = remark_find(text.p, text.n);
	if (row)
		r.topic = row->topic, r.advice = row->advice;
	if (row && !row->as_is && severity < CPTX_SAID_ERROR)
		r.severity = row->severity;
	else if (!row && find(text, "Potential Performance Loss"))
		r.severity = CPTX_SAID_CONCERN;
	place(v, &r, row ? row->place : PLACE_NOWHERE);
	add(v, &r);
}

static void read_line(cptx_verdict *v, reading *r, span line)
{
	static const struct kind {
		const char *word;
		enum cptx_severity severity;
	} kinds[] = { { "info    : ", CPTX_SAID_NOTE },
		          { "warning : ", CPTX_SAID_WARNING },
		          { "error   : ", CPTX_SAID_ERROR },
		          { "fatal   : ", CPTX_SAID_ERROR } };

	if (read_usage(v, r, line) || !takes(&line, "ptxas "))
		return;
	size_t rest = 0;
	uint32_t at = log_line(line.p, line.n, &rest);
	line = behind(line, line.p + rest);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (takes(&line, kinds[i].word)) {
			if (!find(line, "Ptx assembly aborted due to errors"))
				read_remark(v, line, at, kinds[i].severity);
			return;
		}
}

/* Makes remarks of spills, which ptxas only counts. */
static void read_spills(cptx_verdict *v)
{
	for (size_t i = 0; i < v->nusage; i++) {
		const cptx_usage *u = &v->usage[i];
		char text[160];
		if (!u->spill_stores && !u->spill_loads)
			continue;
		int n = snprintf(text, sizeof text, "%u bytes of spill stores, %u bytes of spill loads", u->spill_stores,
		                 u->spill_loads);
		cptx_remark r = {
			.severity = CPTX_SAID_CONCERN,
			.topic = "spill",
			.code = "",
			.text = keep(v, (span){ text, (size_t)n }),
			.advice =
				"registers do not suffice, so values go to local memory and back. Most are alive at this line: keep fewer "
				"alive there (a smaller tile, later loads), or allow more (fewer threads, .maxnreg, setmaxnreg)",
			.function = u->function
		};
		place(v, &r, PLACE_PEAK);
		add(v, &r);
	}
}

/* ---- the whole ---- */

static bool begin(cptx_verdict *v, const cptx_verdict_opt *given)
{
	cptx_verdict_opt o;
	bool read = OPTIONS_READ(cptx_verdict_opt, &o, given, NOWHERE, NULL);
	const char *ptx = o.ptx, *name = o.name ? o.name : "ptx";
	size_t size = o.ptx_size;

	if (!read)
		return false;
	v->name = keep(v, (span){ name, strlen(name) });
	v->printed = o.printed;
	if (!ptx && v->printed)
		ptx = cptx_ptx_text(v->printed), size = cptx_ptx_size(v->printed);
	if (!ptx)
		return true;
	v->ptx = ptx, v->size = size;
	return v->printed || (v->has_loc = loc_read(&v->loc, ptx, size));
}

cptx_verdict *cptx_verdict_read(const char *text, size_t size, const cptx_verdict_opt *opt)
{
	cptx_verdict *v = NEW(cptx_verdict);
	reading r = { 0 };

	if (!v)
		return NULL;
	arena_init(&v->a, NULL);
	bool ok = begin(v, opt);
	for (size_t at = 0; ok && text && at < size;) {
		const char *end = text_find(text + at, '\n', size - at);
		span line = { text + at, end ? (size_t)(end - text) - at : size - at };
		at += line.n + 1;
		while (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		read_line(v, &r, line);
	}
	if (ok)
		read_spills(v);
	cptx_module_destroy(v->m);
	v->m = NULL, v->ptx = NULL; /* these belong to the caller */
	if (ok && !v->a.failed)
		return v;
	cptx_verdict_destroy(v);
	return NULL;
}

void cptx_verdict_destroy(cptx_verdict *v)
{
	if (!v)
		return;
	if (v->has_loc)
		loc_free(&v->loc);
	arena_free(&v->a);
	free(v);
}

const cptx_remark *cptx_verdict_remark(const cptx_verdict *v, size_t i)
{
	return v && i < v->nremark ? &v->remark[i] : NULL;
}
const cptx_usage *cptx_verdict_usage(const cptx_verdict *v, size_t i) { return v && i < v->nusage ? &v->usage[i] : NULL; }

const cptx_usage *cptx_verdict_usage_of(const cptx_verdict *v, const char *function)
{
	for (size_t i = 0; v && function && i < v->nusage; i++)
		if (!strcmp(v->usage[i].function, function))
			return &v->usage[i];
	return NULL;
}

cptx_site cptx_verdict_origin(const cptx_verdict *v, uint32_t ptx_line)
{
	cptx_site at = NOWHERE;

	if (!v || !ptx_line)
		return at;
	if (v->printed)
		at = cptx_ptx_origin(v->printed, ptx_line);
	else if (v->has_loc && ptx_line <= v->loc.n)
		at = v->loc.line[ptx_line - 1];
	return at.file ? at : v->has_loc ? (cptx_site){ v->name, ptx_line } : NOWHERE;
}
