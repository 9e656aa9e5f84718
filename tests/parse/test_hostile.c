/* SPDX-License-Identifier: MIT */
/* Texts that nobody should write: each ends in a module or in messages with places, in a time that grows with its length. */
#include "parse.h"

#include "../ask.h"
#include "../reparse.h"
#include "../sanitized.h"

#include <pthread.h>
#include <stdint.h>

enum { SLOWER = SANITIZED ? 10 : 1 }; /* sanitizers look at every byte: texts of a tenth show as much */

typedef struct text {
	char *p;
	size_t n, cap;
} text;

static void put_n(text *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		t->cap = 2 * (t->n + n) + 4096;
		t->p = realloc(t->p, t->cap);
		must(t->p != NULL, "realloc");
	}
	memcpy(t->p + t->n, s, n);
	t->n += n;
	t->p[t->n] = 0;
}

static void put(text *t, const char *s) { put_n(t, s, strlen(s)); }
static void repeat(text *t, const char *s, size_t n)
{
	for (size_t len = strlen(s); n--;)
		put_n(t, s, len);
}

static text start(const char *s)
{
	text t = { 0 };
	put(&t, HEAD);
	put(&t, s);
	return t;
}

/* A message names file, line and column; "" where `what` is to be taken. */
static void ends(text *t, const char *what)
{
	outcome o = outcome_of(t->p, t->n, NULL);

	if (*what)
		ck_assert_msg(o.nerror && strstr(o.message, what), "no \"%s\" in: %.300s", what, o.message);
	else
		ck_assert_msg(!o.nerror, "%.300s", o.message);
	for (const char *s = o.message; *s; s = strchr(s, '\n') + 1)
		ck_assert_msg(*s == ' ' || !strncmp(s, "t:", 2) || strstr(s, "t:"), "without a place: %.200s", s);
	outcome_free(&o);
	free(t->p);
	*t = (text){ 0 };
}

/* Every beginning of a text: taken or refused, and refused where a body is open. */
static void cut(const char *name, size_t step)
{
	char path[1024];
	size_t size, good = 0;
	snprintf(path, sizeof path, "%s/%s", CORPUS, name);
	char *whole = read_whole(path, &size);

	for (size_t n = 0; n <= size; n += n < 600 ? 1 : step) {
		char *part = malloc(n + 1); /* of its own length, so that a sanitizer sees who reads on */
		must(part != NULL, "malloc");
		memcpy(part, whole, n);
		cptx_module *m = cptx_parse(part, n, NULL);
		free(part);
		ck_assert_ptr_nonnull(m);
		const cptx_error *e = cptx_module_error(m);
		ck_assert_msg(!e || (e->line && e->column && e->text[0]), "%s: %zu bytes: %s", name, n, e ? e->text : "");
		good += !e;
		cptx_module_destroy(m);
	}
	ck_assert_uint_gt(good, 0);
	ck_assert_uint_lt(good, size / step + 600);
	free(whole);
}

START_TEST(truncated)
{
	cut("hand/functions.ptx", 1);
	cut("hand/directives.ptx", 1);
	cut("hand/texture_refs.ptx", 1);
	cut("ptx/atomics.sm_80.O3.ptx", 61);
}
END_TEST

START_TEST(garbage)
{
	uint32_t seed = 12345;

	for (unsigned turn = 0; turn < 2000; turn++) {
		char bytes[512];
		text t = { 0 };
		for (unsigned i = 0; i < sizeof bytes; i++)
			bytes[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
		if (turn % 2)
			put(&t, HEAD ".entry k() {\n");
		put_n(&t, bytes, sizeof bytes);
		ends(&t, "error:");
	}
	for (unsigned c = 0; c < 256; c++) { /* one odd byte in an otherwise good text */
		char byte = (char)c;
		text t = start(".entry k() { .reg .b32 r; mov.b32 r, ");
		put_n(&t, &byte, 1);
		put(&t, "1; ret; }\n");
		cptx_module *m = cptx_parse(t.p, t.n, NULL);
		bool good = (c >= '0' && c <= '9') || strchr(" \t\n\v\f\r+-~!", (int)c);
		ck_assert_msg(!cptx_module_error(m) == (c && good), "byte %u", c);
		cptx_module_destroy(m);
		free(t.p);
	}
}
END_TEST

START_TEST(nul_bytes)
{
	static const char in_body[] = HEAD ".entry k() { \0 ret; }", in_comment[] = HEAD "// a\0b\n.entry k() { ret; }",
					  at_end[] = HEAD "\0", in_name[] = HEAD ".entry k\0k() { ret; }",
					  in_string[] = HEAD ".pragma \"a\0b\";";
	text t = { 0 };

	put_n(&t, in_body, sizeof in_body - 1), ends(&t, "found a NUL byte");
	put_n(&t, at_end, sizeof at_end - 1), ends(&t, "found a NUL byte");
	put_n(&t, in_name, sizeof in_name - 1), ends(&t, "found a NUL byte");
	put_n(&t, in_comment, sizeof in_comment - 1), ends(&t, "NUL byte");
	put_n(&t, in_string, sizeof in_string - 1), ends(&t, "NUL byte");
}
END_TEST

START_TEST(nested)
{
	enum { DEEP = 1000000 / SLOWER };
	text t = start(".entry k() {");
	repeat(&t, "{", DEEP), repeat(&t, "}", DEEP), put(&t, "ret; }"), ends(&t, "");
	t = start(".entry k() {"), repeat(&t, "{", DEEP), ends(&t, "is never closed");
	t = start(".entry k() {"), repeat(&t, "}", DEEP), ends(&t, "found '}'");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "(", DEEP), ends(&t, "nested more than");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "-", DEEP), put(&t, "1; }"), ends(&t, "nested more than");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "1?", DEEP), ends(&t, "nested more than");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "1+", DEEP), put(&t, "1; }"), ends(&t, "");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "(.s64)", DEEP), ends(&t, "nested more than");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "[", DEEP), ends(&t, "error:");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "{", DEEP), ends(&t, "error:");
	t = start(".entry k() { call "), repeat(&t, "(", DEEP), ends(&t, "error:");
	t = start(".global .b32 a"), repeat(&t, "[1]", DEEP), put(&t, ";"), ends(&t, "dimensions");
	t = start(".global .b32 a[1] = "), repeat(&t, "{", DEEP), ends(&t, "braces than");
	t = start(".global .texref a[1] = "), repeat(&t, "{", DEEP), ends(&t, "error:");
	t = start(""), repeat(&t, "{", DEEP), ends(&t, "error:");
}
END_TEST

START_TEST(long_things)
{
	enum { LONG = (1 << 20) / SLOWER };
	text name = { 0 }, t;
	repeat(&name, "n", LONG);
	t = start(".global .b32 "), put(&t, name.p), put(&t, "; .entry k() { .reg .b64 d; mov.b64 d, "), put(&t, name.p),
	put(&t, "; ret; }"), ends(&t, "");
	t = start(".entry k() { .reg .b32 "), put(&t, name.p), put(&t, "<2>; mov.b32 "), put(&t, name.p),
	put(&t, "1, 5; ret; }"), ends(&t, "");
	t = start(".entry k() { mov.b32 "), put(&t, name.p), put(&t, ", 1; }"), ends(&t, "is not declared");
	t = start(".entry k() { "), put(&t, name.p), put(&t, "; }"), ends(&t, "is no instruction");
	t = start(".entry k() { ."), put(&t, name.p), put(&t, "; }"), ends(&t, "is no directive");
	t = start(".entry k() { mov."), put(&t, name.p), put(&t, " a, b; }"), ends(&t, "error:");
	t = start(".entry k() { mov.b32 ."), put(&t, name.p), put(&t, " a, b; }"), ends(&t, "error:");
	t = start(".entry k() { bra "), put(&t, name.p), put(&t, "; }"), ends(&t, "neither declared nor a label");
	t = start(".entry k() { .pragma \""), put(&t, name.p), put(&t, "\"; ret; }"), ends(&t, "");
	t = start(".pragma \""), put(&t, name.p), ends(&t, "never ends");
	t = start("// "), put(&t, name.p), ends(&t, "");
	t = start("/* "), put(&t, name.p), ends(&t, "never ends");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, "), repeat(&t, "1", LONG), put(&t, "; }"), ends(&t, "64 bits");
	t = start(".entry k() { .reg .f32 r; mov.f32 r, 1."), repeat(&t, "1", LONG), put(&t, "; }"), ends(&t, "400 characters");
	t = start(".entry k() { .reg .b32 r; mov.b32 r, 0x"), repeat(&t, "0", LONG), put(&t, "1; }"), ends(&t, "");
	t = start(".entry k() { .reg .b32 r; add.u32 r"), repeat(&t, ", r", LONG), put(&t, "; }"), ends(&t, "too many operands");
	t = start(".entry k() { .reg .b32 r; mov.b64 r, {r"), repeat(&t, ", r", LONG), put(&t, "}; }"), ends(&t, "elements");
	free(name.p);
	t = start(""), repeat(&t, " ", 10 << 20), put(&t, "frob"); /* a line of 10 MiB: the column is counted */
	ends(&t, "t:4:10485761: error: ");
	t = start(""), repeat(&t, "\n", 10 << 20), put(&t, "frob"), ends(&t, "t:10485764:1: error: ");
	t = start(".entry k() { "), repeat(&t, "frob ", (1 << 20) / SLOWER), ends(&t, "error:");
}
END_TEST

/* Lines with long names in every place are printed whole, the first of a kind and those that follow alike. */
START_TEST(long_names_are_printed)
{
	static const char *const pieces[] = {
		".func (.param .b32 r) @f(.param .b32 a, .param .b32 b) { ret; }\n.global .b32 @g[4];\n.entry @k(.param .u64 @p) "
		"{\n",
		".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>; .reg .f32 @x<9>;\n@branches: .branchtargets @l, @m;\n"
		"@proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n@l:\n",
		"ld.param.u64 %d1, [@p]; ld.param.u64 %d2, [@p+0]; mov.u64 %d3, @g; ld.global.b32 %r1, [@g+4];\n"
		"ld.global.v2.f32 {@x1, @x2}, [@g+8]; st.global.v4.f32 [%d1+1024], {@x1, @x2, @x3, @x4}; @%p1 bra @l;\n"
		"{ .param .b32 @a, @b, @r; st.param.b32 [@a], %r1; call (@r), @f, (@a, @b); ld.param.b32 %r2, [@r]; }\n"
		"{ .param .b32 @c, @e, @s; call (@s), %d3, (@c, @e), @proto; }\nbrx.idx %r1, @branches;\n",
		"@m: ret;\n}\n"
	};
	static const size_t lengths[] = { 1, 11, 40, 300, 20000 };

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		text t = start(""), name = { 0 };
		repeat(&name, "n", lengths[i]);
		for (unsigned piece = 0; piece < sizeof pieces / sizeof *pieces; piece++)
			for (unsigned times = piece == 2 ? 4 : 1; times--;)
				for (const char *p = pieces[piece]; *p; p++) {
					bool of_name = *p == '@' && p[1] != '%';
					put_n(&t, of_name ? name.p : p, of_name ? name.n : 1);
				}
		cptx_error err = { .code = CPTX_OK };
		cptx_module *m = cptx_parse(t.p, t.n, NULL);
		ck_assert_msg(!cptx_module_error(m), "%.300s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
		cptx_ptx *ptx = cptx_emit(m, NULL, NULL, &err);
		ck_assert_msg(ptx != NULL, "%.300s", err.text);
		ck_assert(test_reparses(cptx_ptx_text(ptx)));
		for (const char *p = cptx_ptx_text(ptx); (p = strstr(p, name.p)); p += name.n)
			name.cap++;
		ck_assert_uint_gt(name.cap, 4 * 20);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
		free(t.p), free(name.p);
	}
}
END_TEST

/* Each as often as a text of a hundred megabytes can have it would take hours if anything were quadratic. */
START_TEST(many)
{
	enum { MANY = 100000 / SLOWER };
	char line[160];
	text t = start(".entry k() { .reg .b32 x;\n");
	for (unsigned i = 0; i < MANY; i++)
		snprintf(line, sizeof line, "L%u: bra L%u;\n", i, MANY - 1 - i), put(&t, line);
	put(&t, "}"), ends(&t, "");
	t = start(".entry k() {\n");
	for (unsigned i = 0; i < MANY; i++)
		snprintf(line, sizeof line, ".reg .b32 r%u; mov.b32 r%u, %u;\n", i, i, i), put(&t, line);
	put(&t, "}"), ends(&t, "");
	t = start(".entry k() {\n");
	for (unsigned i = 0; i < MANY; i++)
		snprintf(line, sizeof line, ".reg .b32 a%ub<9>, c%u; mov.b32 a%ub8, c%u;\n", i, i, i, i), put(&t, line);
	put(&t, "}"), ends(&t, "");
	t = start(".entry k() { bra OUT;\n");
	for (unsigned i = 0; i < MANY; i++)
		put(&t, "{ .reg .b32 x; mov.b32 x, 1; L: bra L; bra OUT; }\n");
	put(&t, "OUT: ret; }"), ends(&t, "");
	t = start("");
	for (unsigned i = 0; i < MANY; i++)
		snprintf(line, sizeof line, ".func f%u(.reg .b32 a) { ret; }\n", i), put(&t, line);
	ends(&t, "");
	t = start("");
	for (unsigned i = 0; i < MANY; i++)
		if (i)
			snprintf(line, sizeof line, ".global .u64 v%u = v%u;\n", i, i - 1), put(&t, line);
		else
			put(&t, ".global .u64 v0;\n");
	ends(&t, "");
	t = start("");
	for (unsigned i = 0; i < MANY; i++)
		snprintf(line, sizeof line, ".file %u \"f%u.cu\"\n", i, i), put(&t, line);
	ends(&t, "");
	t = start(".entry k() { .reg .b32 i; T: .branchtargets L"), repeat(&t, ", L", 60000),
	put(&t, "; brx.idx i, T; L: ret; }"), ends(&t, "");
	t = start(".entry k() {"), repeat(&t, "mov.b32 x, 1;\n", MANY); /* as many messages as there may be, not more */
	outcome o = outcome_of(t.p, t.n, NULL);
	ck_assert_uint_eq(o.nerror, 1000);
	outcome_free(&o);
	free(t.p);
}
END_TEST

START_TEST(large)
{
	static const char line[] = "\tfma.rn.f32 %f1, %f2, %f3, %f4; // comment\n";
	text t = start(".entry k() {\n\t.reg .f32 %f<9>;\n");

	repeat(&t, line, LARGE / (sizeof line - 1));
	put(&t, "\tret;\n}\n");
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_parse(t.p, t.n, NULL);
	free(t.p);
	ck_assert(m && !cptx_module_error(m));
	cptx_ptx *ptx = cptx_emit(m, NULL, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_uint_gt(cptx_ptx_size(ptx), LARGE - 1000);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(limits)
{
	static const char *const refused[] = {
		".global .b8 a[99999999999999999999];",
		".global .b64 a[4294967294][4294967294][4294967294];",
		".global .align 4294967296 .b8 a;",
		".entry k() { .reg .b32 r<4294967297>; }",
		".entry k() .maxntid 4294967296 { ret; }",
		".entry k() { .reg .b64 r; .reg .b32 x; ld.global.b32 x, [r+9223372036854775807]; }",
		".entry k() { .reg .b64 r; .reg .b32 x; ld.global.b32 x, [r+2147483647+1]; }",
		".entry k() { .reg .s64 r; mov.s64 r, (-9223372036854775807-1)/-1; }",
		".entry k() { .reg .s64 r; mov.s64 r, 1 % (2-2); }",
		".entry k(.param .b8 a[4294967294], .param .b8 b[4294967294]) { ret; }",
		".file 4294967296 \"a\"",
		".global .u64 a[2] = { 1, 18446744073709551616 };",
	};
	static const char *const taken[] = {
		".entry k() { .reg .s64 r; mov.s64 r, (-9223372036854775807-1)%-1; }", /* unsigned, as ptxas has it */
		".global .b8 a[4294967294];",
		".entry k() { .reg .b64 r; .reg .b32 x; ld.global.b32 x, [r+2147483647]; ld.global.b32 x, [r+-2147483648]; }",
		".entry k() { .reg .u64 r; mov.u64 r, 18446744073709551615; mov.s64 r, -9223372036854775808; }",
		".entry k() { .shared .b8 a[4294967294]; .shared .b8 b[4294967294]; ret; }", /* unused, as ptxas sees it */
	};

	for (unsigned i = 0; i < ARRAY_LEN(refused); i++) {
		text t = start(refused[i]);
		ends(&t, "t:4:");
	}
	for (unsigned i = 0; i + 1 < ARRAY_LEN(taken); i++) {
		text t = start(taken[i]);
		ends(&t, "");
	}
	cptx_module *m = cptx_parse("", 0, NULL);
	ck_assert_str_eq(cptx_module_error(m)->text,
	                 "ptx:1:1: error: PTX text begins with .version, such as .version 8.0; found the end of the file");
	cptx_module_destroy(m);
	m = cptx_parse(NULL, 0, NULL);
	ck_assert(!m || cptx_module_error(m));
	cptx_module_destroy(m);
	ck_assert_ptr_null(cptx_parse(NULL, 5, NULL));
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4 };
typedef struct worker {
	pthread_t thread;
	const char *text, *want;
	cptx_module *frozen;
	unsigned different;
} worker;

static void *read_often(void *arg)
{
	worker *w = arg;

	for (unsigned turn = 0; turn < 20; turn++) {
		cptx_module *m = cptx_parse(w->text, strlen(w->text), &(cptx_parse_opt){ .name = "t" });
		for (unsigned i = 0; i < 2; i++) { /* its own, then the one that all share */
			cptx_ptx *ptx = cptx_emit(i ? w->frozen : m, NULL, NULL, NULL);
			w->different += !ptx || strcmp(cptx_ptx_text(ptx), w->want) || cptx_check(i ? w->frozen : m, NULL, NULL, NULL);
			cptx_ptx_destroy(ptx);
		}
		cptx_module_destroy(m);
	}
	return NULL;
}

START_TEST(threads)
{
	size_t size;
	char *source = read_whole(CORPUS "/ptx/atomics.sm_80.O3.ptx", &size), *want = print_text(source, size, false);
	worker w[THREADS];
	cptx_module *m = cptx_parse(source, size, NULL);

	ck_assert(cptx_module_freeze(m));
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (worker){ .text = source, .want = want, .frozen = m };
		must(!pthread_create(&w[i].thread, NULL, read_often, &w[i]), "pthread_create");
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		ck_assert_uint_eq(w[i].different, 0);
	}
	cptx_module_destroy(m);
	free(source), free(want);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { truncated, garbage, nul_bytes, nested, long_things, long_names_are_printed,
		                           many,      large,   limits,    threads };
	return parse_test_run("hostile", tests, ARRAY_LEN(tests));
}
