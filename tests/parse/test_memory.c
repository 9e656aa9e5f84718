/* SPDX-License-Identifier: MIT */
/* An allocator that fails at the n-th request: what was read, checked and printed is then right or says MEMORY; no leaks. */
#include "parse.h"

#include "../meter.h"

static void other_than_memory(void *user, const cptx_error *e)
{
	unsigned *n = user;
	*n += e->code != CPTX_E_MEMORY && !strstr(e->text, "out of memory");
}

/* Also a module that could not be made, which is NULL. */
static bool of_memory(const cptx_module *m, const cptx_error *e)
{
	return e->code == CPTX_E_MEMORY || strstr(e->text, m ? "out of memory" : "the module is NULL");
}

/* True if no request failed, so that there is no larger n. */
static bool attempt(const char *text, size_t size, bool keep, const char *want, unsigned long n, bool forever)
{
	meter a = { .fail_at = n, .forever = forever };
	cptx_allocator hook = { metered, &a };
	unsigned others = 0;
	cptx_error err = { 0 };
	cptx_module *m = cptx_parse(
		text, size, &(cptx_parse_opt){ .keep = keep, .allocator = &hook, .report = other_than_memory, .user = &others });
	const cptx_error *e = cptx_module_error(m);

	ck_assert_msg(!want || !e || of_memory(m, e), "request %lu: %s", n, e ? e->text : "");
	ck_assert_msg(!n || a.requests < n || e, "request %lu failed while the text was read, and there is no error", n);
	if (m)
		cptx_check(m, NULL, want ? other_than_memory : NULL, &others);
	ck_assert_msg(!want || !others, "request %lu failed: %u other messages", n, others);
	cptx_ptx *ptx = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep }, &err);
	if (ptx)
		ck_assert_msg(want && !strcmp(cptx_ptx_text(ptx), want), "request %lu failed: other text", n);
	else
		ck_assert_msg(!want || of_memory(m, &err), "request %lu: %s", n, err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	ck_assert_msg(a.live == 0, "request %lu failed: %ld blocks are left", n, a.live);
	return !n || a.requests < n;
}

static void run(const char *text, size_t size, bool keep, bool good)
{
	char *want = good ? print_text(text, size, keep) : NULL;

	for (int forever = 0; forever < 2; forever++) {
		unsigned long n = 1;
		while (!attempt(text, size, keep, want, n, forever))
			n++;
		ck_assert_uint_ge(n, 8);
		ck_assert(attempt(text, size, keep, want, 0, false));
	}
	free(want);
}

START_TEST(corpus)
{
	static const char *const names[] = { "hand/functions.ptx", "hand/texture_refs.ptx", "ptx/print_assert.sm_80.O3.ptx" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		char path[1024];
		size_t size;
		snprintf(path, sizeof path, "%s/%s", CORPUS, names[i]);
		char *text = read_whole(path, &size);
		run(text, size, false, true);
		run(text, size, true, true);
		free(text);
	}
}
END_TEST

/* Many of each, so that every array grows at a request of its own. */
START_TEST(arrays)
{
	char *text = malloc(1 << 20), *p = text;

	p += sprintf(p, HEAD);
	for (unsigned i = 0; i < 300; i++)
		p += sprintf(p, "// comment %u\n.file %u \"f\"\n.global .u64 v%u[2] = { 1, %s };\n", i, i, i, i ? "v0" : "2");
	p += sprintf(p, ".entry k(.param .b64 a) {\n");
	for (unsigned i = 0; i < 300; i++)
		p += sprintf(p,
		             "{ .reg .b32 r%u, s<9>; .shared .b32 w%u; // %u\nL%u: mov.b32 r%u, s8; @%s bra L%u; .loc %u 1 1\n"
		             "ld.global.v2.b32 {s1, s5}, [v%u]; .pragma \"nounroll\"; }\n",
		             i, i, i, i, i, "%p", i, i, i);
	p += sprintf(p, "}\n");
	for (char *q = strstr(text, ".entry k(.param .b64 a) {\n"); q; q = NULL) {
		size_t at = (size_t)(q - text) + 26; /* the guard of all */
		memmove(text + at + 15, text + at, strlen(text + at) + 1);
		memcpy(text + at, ".reg .pred %p;\n", 15);
	}
	run(text, strlen(text), false, true);
	free(text);
}
END_TEST

/* Spellings, each with operands of two kinds, and texts that end behind each of them: what is remembered of one takes a
 * block of its own now and then, and nothing behind it fails too. */
START_TEST(spellings)
{
	static const char *const compares[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	static const char *const types[] = { "u16", "s16", "u32", "s32", "u64", "s64" };
	static const char *const joined[] = { "", ".and", ".or" };
	enum { FIRST = 40, LAST = 80 }; /* by then some blocks are full */
	char *text = malloc(1 << 16), *p = text;

	p += sprintf(p, HEAD ".entry k() {\n.reg .pred p; .reg .b16 r16; .reg .b32 r32; .reg .b64 r64;\n");
	for (unsigned i = 0; i < LAST; i++) {
		const char *compare = compares[i % ARRAY_LEN(compares)], *type = types[i / ARRAY_LEN(compares) % ARRAY_LEN(types)];
		const char *join = joined[i / ARRAY_LEN(compares) / ARRAY_LEN(types)], *third = *join ? ", p" : "";
		p += sprintf(p, "setp.%s%s.%s p, r%s, r%s%s;\n", compare, join, type, type + 1, type + 1, third);
		p += sprintf(p, "setp.%s%s.%s p, r%s, 1%s;\n", compare, join, type, type + 1, third);
		strcpy(p, "}\n");
		if (i >= FIRST)
			run(text, strlen(text), false, true);
	}
	free(text);
}
END_TEST

/* A text with errors: their messages take memory too. */
START_TEST(errors)
{
	static const char text[] =
		HEAD ".global .b32 a = b;\n.entry k() { .reg .b32 r; add.u32 r, r; mov.b32 x, r; ld.global.b32 r, r;"
			 " frob r; bra L; { .reg .b32 r; }\n";
	run(text, sizeof text - 1, false, false);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { corpus, arrays, spellings, errors };
	return parse_test_run("memory", tests, ARRAY_LEN(tests));
}
