/* SPDX-License-Identifier: MIT */
#include "fuzz_ptx.h"

#include <cptx/cptx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that runs short ---- */

typedef struct shortage {
	const unsigned char *gap, *end;
	unsigned left; /* allocations until the next failure */
	size_t blocks; /* not given back */
	bool met;
} shortage;

static void *short_memory(void *user, void *old, size_t size)
{
	shortage *s = user;

	if (!size) {
		s->blocks -= old != NULL;
		free(old);
		return NULL;
	}
	if (s->gap < s->end && s->left-- == 0) {
		s->left = ++s->gap < s->end ? *s->gap % 64u : 0;
		s->met = true;
		return NULL;
	}
	void *p = realloc(old, size);
	s->blocks += p && !old;
	return p;
}

/* ---- messages ---- */

static char message[2 * CPTX_ERROR_TEXT];

static const char *wrong(const char *what, const cptx_error *e)
{
	snprintf(message, sizeof message, "%s%s%.*s", what, e ? ": " : "", CPTX_ERROR_TEXT, e ? e->text : "");
	return message;
}

typedef struct reports {
	size_t n;
	bool bad; /* one without a code or text, or too long */
} reports;

static void take_report(void *user, const cptx_error *e)
{
	reports *r = user;

	r->n++;
	r->bad |= e->code == CPTX_OK || !e->text[0] || !memchr(e->text, 0, sizeof e->text);
}

/* ---- what must hold ---- */

static cptx_module *read_text(const char *text, size_t size, bool keep, reports *r, const cptx_allocator *hook)
{
	return cptx_parse(
		text, size, &(cptx_parse_opt){ .name = "fuzz", .keep = keep, .report = take_report, .user = r, .allocator = hook });
}

/* Printed text is accepted, and printing it again changes nothing. */
static const char *printed_again(const cptx_ptx *first)
{
	reports r = { 0 };
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = read_text(cptx_ptx_text(first), cptx_ptx_size(first), false, &r, NULL);
	const char *fault = NULL;
	cptx_ptx *second = NULL;

	if (cptx_module_error(m))
		fault = wrong("what was printed is not accepted", cptx_module_error(m));
	else if (!(second = cptx_emit(m, NULL, NULL, &err)))
		fault = wrong("what was printed and read does not print", &err);
	else if (cptx_ptx_size(second) != cptx_ptx_size(first) || strcmp(cptx_ptx_text(second), cptx_ptx_text(first)))
		fault = wrong("what was printed and read prints otherwise", NULL);
	cptx_ptx_destroy(second);
	cptx_module_destroy(m);
	return fault;
}

static const char *accepted(cptx_module *m, const char *text, size_t size, bool keep)
{
	static const char *const archs[] = { "sm_75", "sm_100a" };
	reports own = { 0 }, other = { 0 };
	cptx_error err = { .code = CPTX_OK };
	const char *fault = NULL;
	bool good = cptx_module_freeze(m); /* what only the whole module shows may still be wrong */

	cptx_check(m, NULL, take_report, &own);
	for (unsigned i = 0; i < sizeof archs / sizeof *archs; i++)
		cptx_check(m, archs[i], take_report, &other);
	if (own.bad || other.bad)
		return wrong("a report without text", NULL);
	if (!good && !own.n)
		return wrong("the check passes a module that is broken", cptx_module_error(m));
	cptx_ptx *p = cptx_emit(m, "sm_100a", &(cptx_emit_opt){ .keep = keep, .lines = true }, NULL);
	if (p && !keep)
		fault = printed_again(p);
	cptx_ptx_destroy(p);
	if (fault)
		return fault;
	p = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep }, &err);
	if (!p)
		return own.n ? NULL : wrong("checked, but not printed", &err);
	if (keep && (cptx_ptx_size(p) != size || memcmp(cptx_ptx_text(p), text, size)))
		fault = wrong("printed with .keep, the text is another", NULL);
	else if (!keep)
		fault = printed_again(p);
	cptx_ptx_destroy(p);
	return fault;
}

static const char *plenty(const char *text, size_t size)
{
	char first[CPTX_ERROR_TEXT] = "";

	for (int keep = 0; keep < 2; keep++) {
		reports r = { 0 };
		cptx_module *m = read_text(text, size, keep, &r, NULL);
		const cptx_error *e = cptx_module_error(m);
		const char *fault = NULL;
		if (r.bad || (r.n && !e))
			fault = wrong("a report that is no error", NULL);
		else if (keep && strcmp(first, e ? e->text : ""))
			fault = wrong("other errors with .keep", e);
		else if (!e)
			fault = accepted(m, text, size, keep);
		snprintf(first, sizeof first, "%s", e ? e->text : "");
		cptx_module_destroy(m);
		if (fault)
			return fault;
	}
	return NULL;
}

static const char *scarce(const char *text, size_t size, shortage *s)
{
	const cptx_allocator hook = { short_memory, s };

	s->left = *s->gap % 64u;
	for (int keep = 0; keep < 2; keep++) {
		reports r = { 0 };
		cptx_error err = { .code = CPTX_OK };
		cptx_module *m = read_text(text, size, keep, &r, &hook);
		if (s->met && !cptx_module_error(m))
			return cptx_module_destroy(m), wrong("memory was short, and there is no error", NULL);
		if (!cptx_module_error(m)) {
			cptx_check(m, "sm_90a", take_report, &r);
			cptx_ptx *p = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep, .lines = keep }, &err);
			if (!p && !err.code)
				return cptx_module_destroy(m), wrong("nothing was printed, and there is no error", NULL);
			cptx_ptx_destroy(p);
		}
		cptx_module_destroy(m);
		s->met = false;
	}
	return s->blocks ? wrong("memory was not given back", NULL) : NULL;
}

const char *fuzz_ptx(const char *text, size_t size)
{
	const char *line = size && *text == '!' ? memchr(text, '\n', size) : NULL;

	if (!line || line == text + 1)
		return plenty(text, size);
	shortage s = { .gap = (const unsigned char *)text + 1, .end = (const unsigned char *)line };
	return scarce(line + 1, size - (size_t)(line + 1 - text), &s);
}
