/* SPDX-License-Identifier: MIT */
/*
 * The hash of a module: what changes a text changes it, one thing at a time; what does not, such as the path by which a call
 * was made, does not; other registers do not where that is asked for.  (That equal texts have equal hashes is seen over the
 * table by table/again and over text of compilers by parse/corpus.)
 */
#include "../meter.h"
#include "../test.h"
#include <cptx/cptx.h>
#include <cptx/fast.h>

typedef struct both {
	cptx_hash exact, any; /* any: whatever the registers are */
} both;

static bool equal(cptx_hash a, cptx_hash b) { return a.word[0] == b.word[0] && a.word[1] == b.word[1]; }

static both hash_of(cptx_module *m)
{
	both h;
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(cptx_module_hash(m, "sm_90", NULL, &h.exact, &err), "%s", err.text);
	ck_assert_msg(cptx_module_hash(m, "sm_90", CPTX_OPT(cptx_hash_opt, .any_registers = true), &h.any, &err), "%s",
	              err.text);
	return h;
}

static both hash_of_text(const char *body)
{
	char text[4096];

	snprintf(text, sizeof text, ".version 8.0\n.target sm_90\n.address_size 64\n%s", body);
	cptx_module *m = cptx_parse(text, strlen(text), NULL);
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	both h = hash_of(m);
	cptx_module_destroy(m);
	return h;
}

/* ---- one thing at a time ---- */

/* Each line: a text, with one place that another text can take. */
static const char *const changed[][3] = {
	{ ".entry k() { .reg .b32 a<9>; add.u32 a1, a2, %s; ret; }", "a3", "a4" },
	{ ".entry k() { .reg .b32 a<9>; add.u32 a1, a2, %s; ret; }", "7", "8" },
	{ ".entry k() { .reg .b32 a<9>; add.u32 a1, a2, %s; ret; }", "1023", "1024" },
	{ ".entry k() { .reg .b32 a<9>; add.u32 a1, a2, %s; ret; }", "-1", "1" },
	{ ".entry k() { .reg .b32 a<9>; add.u32 a1, a2, %s; ret; }", "70000", "70001" },
	{ ".entry k() { .reg .b32 a<9>; add.%s a1, a2, a3; ret; }", "u32", "s32" },
	{ ".entry k() { .reg .b32 a<9>; %s.b32 a1, a2, a3; ret; }", "and", "or" },
	{ ".entry k() { .reg .f32 a<9>; mul%s.f32 a1, a2, a3; ret; }", ".rn", ".rz" },
	{ ".entry k() { .reg .f32 a<9>; mul%s.f32 a1, a2, a3; ret; }", "", ".ftz" },
	{ ".entry k() { .reg .f32 a<9>; mov.f32 a1, %s; ret; }", "0f3F800000", "0f3F800001" },
	{ ".entry k() { .reg .f64 a<9>; mov.f64 a1, %s; ret; }", "0d3FF0000000000000", "0d3FF0000000000001" },
	{ ".entry k() { .reg .pred p<3>; .reg .b32 a<9>; %s mov.u32 a1, 2; ret; }", "@p1", "@p2" },
	{ ".entry k() { .reg .pred p<3>; .reg .b32 a<9>; %s mov.u32 a1, 2; ret; }", "@p1", "@!p1" },
	{ ".entry k() { .reg .pred p<3>; .reg .b32 a<9>; %s mov.u32 a1, 2; ret; }", "@p1", "" },
	{ ".entry k() { .reg .b64 d<9>; .reg .b32 a<9>; ld.global.u32 a1, [d1+%s]; ret; }", "4", "8" },
	{ ".entry k() { .reg .b64 d<9>; .reg .b32 a<9>; ld.global.v2.u32 {a1, %s}, [d1]; ret; }", "a2", "a3" },
	{ ".entry k() { .reg .b32 a<9>; mov.u32 a1, %s; ret; }", "%tid.x", "%tid.y" },
	{ ".entry k() { .reg .b32 a<9>; A: bra %s; B: bra A; ret; }", "A", "B" },
	{ ".entry k() { .reg .b32 a<9>; mov.u32 a1, 2; %s; ret; }", "bar.sync 0", "bar.sync 1" },
	{ ".entry k() { .reg .b32 a<9>; %s mov.u32 a1, 2; ret; }", "", "exit;" },
	{ ".entry k() { .reg .b32 a<9>; %s ret; }", "mov.u32 a1, 1; mov.u32 a2, 2;", "mov.u32 a2, 2; mov.u32 a1, 1;" },
	{ ".entry k(.param .u32 x%s) { ret; }", "", ", .param .u32 y" },
	{ ".entry k(.param .u32 %s) { ret; }", "x", "y" },
	{ ".entry k(.param .%s x) { ret; }", "u32", "s32" },
	{ ".entry k() .reqntid %s { ret; }", "32", "64" },
	{ ".entry %s() { ret; }", "k", "l" },
	{ "%s .entry k() { ret; }", ".visible", ".weak" },
	{ ".global .u32 g[2] = { 1, %s }; .entry k() { ret; }", "2", "3" },
	{ ".global .align %s .u32 g; .entry k() { ret; }", "8", "16" },
	{ ".entry k() { .shared .b8 s[%s]; ret; }", "16", "32" },
	{ ".entry k() { .pragma \"%s\"; ret; }", "nounroll", "nonsense" },
	{ "// %s\n.entry k() { ret; }", "a", "b" },
	{ "%s.entry k() { ret; }", "", ".entry l() { ret; }" },
	{ ".file 1 \"a.cu\"\n.entry k() { .loc 1 %s 3\nret; }", "2", "4" },
};
enum { CHANGED = sizeof changed / sizeof *changed };

START_TEST(each_thing_changes_it)
{
	static both h[CHANGED][2];
	char text[512];

	for (unsigned i = 0; i < CHANGED; i++) {
		for (unsigned j = 0; j < 2; j++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof text, changed[i][0], changed[i][1 + j]);
#pragma GCC diagnostic pop
			h[i][j] = hash_of_text(text);
			ck_assert(equal(h[i][j].exact, hash_of_text(text).exact) && equal(h[i][j].any, hash_of_text(text).any));
		}
		ck_assert_msg(!equal(h[i][0].exact, h[i][1].exact), "%s: %s and %s", changed[i][0], changed[i][1], changed[i][2]);
	}
}
END_TEST

START_TEST(the_target_counts)
{
	cptx_hash a, b, c;
	cptx_module *m = cptx_module_new(NULL);

	cptx_kernel_begin(m, "k");
	ck_assert(cptx_module_hash(m, "sm_80", NULL, &a, NULL));
	ck_assert(cptx_module_hash(m, "sm_90", NULL, &b, NULL));
	ck_assert(cptx_module_hash(m, "sm_80", NULL, &c, NULL));
	ck_assert(!equal(a, b) && equal(a, c));
	cptx_module_destroy(m);
}
END_TEST

/* ---- registers ---- */

/* Each line: two texts that differ in their registers, and whether these have the same parts in both. */
typedef struct pair {
	bool same;
	const char *a, *b;
} pair;
static const pair pairs[] = {
	{ true, ".entry k() { .reg .b32 a<9>; mad.lo.u32 a1, a2, a3, a2; add.u32 a4, a1, a3; ret; }",
	  ".entry k() { .reg .b32 x<9>, y, z; mad.lo.u32 x8, y, z, y; add.u32 x0, x8, z; ret; }" },
	{ true, ".entry k() { .reg .b32 a<9>; .reg .pred p; setp.eq.u32 p, a1, 1; @!p add.u32 a2, a1, 1; ret; }",
	  ".entry k() { .reg .pred q1, q2, q; .reg .b32 b, c; setp.eq.u32 q, c, 1; @!q add.u32 b, c, 1; ret; }" },
	{ true,
	  ".entry k() { .reg .b64 d; .reg .b32 a<4>; ld.global.v4.u32 {a0, a1, a2, a3}, [d+8]; st.global.u32 [d], a3; ret; }",
	  ".entry k() { .reg .b64 e; .reg .b32 w, z, y, x; ld.global.v4.u32 {x, y, z, w}, [e+8]; st.global.u32 [e], w; ret; }" },
	{ true, ".func (.reg .b32 r) f(.reg .b32 a, .reg .b32 b) { sub.u32 r, a, b; ret; } .entry k() { ret; }",
	  ".func (.reg .b32 x) f(.reg .b32 y, .reg .b32 z) { sub.u32 x, y, z; ret; } .entry k() { ret; }" },
	{ false, ".func (.reg .b32 r) f(.reg .b32 a, .reg .b32 b) { sub.u32 r, a, b; ret; } .entry k() { ret; }",
	  ".func (.reg .b32 x) f(.reg .b32 y, .reg .b32 z) { sub.u32 x, z, y; ret; } .entry k() { ret; }" },
	{ false, ".entry k() { .reg .b32 a<9>; mad.lo.u32 a1, a2, a3, a2; ret; }",
	  ".entry k() { .reg .b32 a<9>; mad.lo.u32 a1, a2, a3, a3; ret; }" },
	{ false, ".entry k() { .reg .b32 a<9>; mov.u32 a1, 1; mov.u32 a2, 2; add.u32 a3, a1, a2; ret; }",
	  ".entry k() { .reg .b32 a<9>; mov.u32 a1, 1; mov.u32 a2, 2; add.u32 a3, a2, a1; ret; }" },
	{ false, ".entry k() { .reg .b32 a<9>; add.u32 a1, a1, a1; ret; }",
	  ".entry k() { .reg .b32 a<9>; add.u32 a1, a1, a2; ret; }" },
	{ false, ".entry k() { .reg .b32 a<9>; mov.b32 a1, a2; ret; }", ".entry k() { .reg .f32 a<9>; mov.b32 a1, a2; ret; }" },
	{ false, ".entry k() { .reg .b64 d<3>; .reg .b32 a<4>; ld.global.v2.u32 {a0, a1}, [d0]; st.global.u32 [d0], a1; ret; }",
	  ".entry k() { .reg .b64 d<3>; .reg .b32 a<4>; ld.global.v2.u32 {a0, a1}, [d0]; st.global.u32 [d0], a0; ret; }" },
};

START_TEST(registers_count_if_asked)
{
	for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		both a = hash_of_text(pairs[i].a), b = hash_of_text(pairs[i].b);
		ck_assert_msg(!equal(a.exact, b.exact), "%s", pairs[i].a);
		ck_assert_msg(equal(a.any, b.any) == pairs[i].same, "%s\n%s", pairs[i].a, pairs[i].b);
	}
}
END_TEST

/* A kernel with all kinds of usual operands, `n` times; with `idle` registers that nothing uses made in between. */
static cptx_module *build(const cptx_allocator *hook, unsigned n, unsigned idle, bool fast)
{
	cptx_module *m = cptx_module_new(hook);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), f = cptx_var(k, CPTX_F32, 0.5f);

	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = 0; j < idle; j++)
			cptx_reg(k, CPTX_F32);
		cptx_val v = cptx_ld(k, cptx_offset(p, 4 * (int64_t)i), .type = CPTX_F32, .space = CPTX_GLOBAL);
		f = fast ? CPTX_FAST(cptx_fma, k, v, f, 3.0f, .rnd = CPTX_RN) : cptx_fma(k, v, f, 3.0f, .rnd = CPTX_RN);
		cptx_val q = cptx_setp(k, f, v, .cmp = CPTX_LT);
		f = fast ? CPTX_FAST(cptx_add, k, f, v, .when = q) : cptx_add(k, f, v, .when = q);
		cptx_val u = cptx_add(k, cptx_as(f, CPTX_U32), 5 + i);
		f = cptx_as(u, CPTX_F32);
	}
	cptx_st(k, p, f, .space = CPTX_GLOBAL);
	return m;
}

START_TEST(built_ones)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = build(NULL, 30, 0, false), *fast = build(NULL, 30, 0, true), *wide = build(NULL, 30, 5, true);
	both a = hash_of(m), b = hash_of(fast), c = hash_of(wide);

	ck_assert(equal(a.exact, b.exact) && equal(a.any, b.any));
	ck_assert(!equal(a.exact, c.exact) && equal(a.any, c.any));
	cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	cptx_module *read = cptx_parse(cptx_ptx_text(ptx), cptx_ptx_size(ptx), NULL);
	both d = hash_of(read);
	ck_assert_msg(equal(a.exact, d.exact), "%.900s", cptx_ptx_text(ptx));
	ck_assert_msg(equal(a.any, d.any), "any: %.900s", cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m), cptx_module_destroy(fast), cptx_module_destroy(wide), cptx_module_destroy(read);
}
END_TEST

START_TEST(memory_is_used_again)
{
	meter c = { 0 };
	cptx_allocator hook = { metered, &c };
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *scratch = cptx_ptx_new(&hook);
	cptx_module *m = build(NULL, 50, 0, true);
	both expected = hash_of(m);
	cptx_hash h;

	for (unsigned i = 0; i < 4; i++) {
		unsigned long before = c.requests;
		const cptx_hash_opt *o = CPTX_OPT(cptx_hash_opt, .any_registers = i & 1, .scratch = scratch);
		ck_assert_msg(cptx_module_hash(m, "sm_90", o, &h, &err), "%s", err.text);
		ck_assert(equal(h, i & 1 ? expected.any : expected.exact));
		ck_assert_str_eq(cptx_ptx_text(scratch), "");
		ck_assert(i < 2 || c.requests == before);
	}
	ck_assert(cptx_emit_again(scratch, m, "sm_90", NULL, &err)); /* a text as any other */
	ck_assert_uint_gt(cptx_ptx_size(scratch), 1000);
	cptx_ptx_destroy(scratch);
	cptx_module_destroy(m);
	ck_assert_int_eq(c.live, 0);
}
END_TEST

START_TEST(what_is_wrong)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_hash h = { { 1, 2 } };
	cptx_module *m = build(NULL, 1, 0, false), *newer = cptx_module_new(NULL);

	ck_assert(!cptx_module_hash(m, "sm_1", NULL, &h, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "sm_1") != NULL, "%s", err.text);
	ck_assert(!h.word[0] && !h.word[1]);
	ck_assert(!cptx_module_hash(m, NULL, NULL, &h, FRESH(&err)));
	ck_assert(!cptx_module_hash(NULL, "sm_90", NULL, &h, FRESH(&err)));
	ck_assert(!cptx_module_hash(m, "sm_90", NULL, NULL, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	ck_assert(cptx_module_hash(m, "sm_90", NULL, &h, NULL));
	cptx_hash_opt wrong = { .size = 5000 };
	ck_assert(!cptx_module_hash(m, "sm_90", &wrong, &h, FRESH(&err)));
	cptx_kernel *k = cptx_kernel_begin(newer, "k");
	cptx_setmaxnreg(k, 40, .op = CPTX_INC);
	ck_assert(!cptx_module_hash(newer, "sm_80", NULL, &h, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_TARGET);
	cptx_module_destroy(m), cptx_module_destroy(newer);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hash");
	TCase *c = test_case(s, "hash");

	tcase_add_test(c, each_thing_changes_it);
	tcase_add_test(c, the_target_counts);
	tcase_add_test(c, registers_count_if_asked);
	tcase_add_test(c, built_ones);
	tcase_add_test(c, memory_is_used_again);
	tcase_add_test(c, what_is_wrong);
	return test_main("api_hash", s);
}
