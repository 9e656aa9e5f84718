/* SPDX-License-Identifier: MIT */
/* Which bits of a result are undefined: those that follow from undefined bits of the operands, and no others. */
#include "trial.h"

/* %r1, %rd1, %h1 and %p1 are undefined, %r2 = 5, %rd2 = 5, %h2 = 5; %r3 is defined in its lower half only, %r4 in its lowest
 * byte and bit 31.  Of the result, %r9, all must be defined. */
static const char head[] =
	"mov.u32 %r2, 5; mov.u64 %rd2, 5; mov.u16 %h2, 5; mov.b32 %r3, {%h2, %h1}; prmt.b32 %r4, %r1, %r2, 0x3214;"
	"and.b32 %r4, %r4, 0x7fffffff; ";
static const char tail[] = " xor.b32 %r10, %r9, 0x55555555; setp.ne.u32 %p9, %r10, 0; @%p9 st.global.u32 [%rd0], %r2;";

static const struct part {
	const char *body;
	bool undefined;
} parts[] = {
	/* a bit each */
	{ "and.b32 %r9, %r1, 0;", false },
	{ "and.b32 %r9, %r1, 16;", true },
	{ "or.b32 %r9, %r1, -1;", false },
	{ "or.b32 %r9, %r1, 0x7fffffff;", true },
	{ "xor.b32 %r9, %r1, %r1;", false },
	{ "xor.b32 %r9, %r1, %r2;", true },
	{ "and.b32 %r9, %r3, 0xffff;", false },
	{ "and.b32 %r9, %r3, 0x1ffff;", true },
	{ "and.b32 %r9, %r4, 0x800000ff;", false },
	{ "not.b32 %r8, %r3; or.b32 %r9, %r8, 0xffff0000;", false },
	{ "not.b32 %r9, %r3;", true },
	{ "lop3.b32 %r9, %r1, %r2, 3, 0x0c;", true },
	{ "lop3.b32 %r9, %r1, %r2, 3, 0xcc;", false },
	{ "lop3.b32 %r9, %r1, %r2, 3, 0xe8;", true },
	{ "lop3.b32 %r9, %r1, 0, 0, 0xe8;", false },
	{ "and.b64 %rd3, %rd1, 0xffff; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r9, %rd3;", false },
	{ "brev.b32 %r8, %r3; and.b32 %r9, %r8, 0xffff0000;", false },
	{ "brev.b32 %r8, %r3; and.b32 %r9, %r8, 0xffff;", true },
	/* moved */
	{ "prmt.b32 %r9, %r1, %r2, 0x7654;", false },
	{ "prmt.b32 %r9, %r1, %r2, 0x7650;", true },
	{ "prmt.b32 %r9, %r3, %r1, 0x1010;", false },
	{ "prmt.b32 %r9, %r3, %r1, 0x9100;", false }, /* the sign of byte 1 */
	{ "prmt.b32 %r9, %r3, %r1, 0xa100;", true },
	{ "prmt.b32 %r9, %r2, %r2, %r1;", true },
	{ "shl.b32 %r9, %r3, 16;", false },
	{ "shl.b32 %r9, %r3, 15;", true },
	{ "shr.u32 %r8, %r1, 31; shr.u32 %r9, %r8, 1;", false },
	{ "shr.s32 %r8, %r4, 31; and.b32 %r9, %r8, %r8;", false },
	{ "shl.b32 %r9, %r2, %r1;", true },
	{ "shl.b64 %rd3, %rd1, 32; cvt.u32.u64 %r9, %rd3;", false },
	{ "shf.l.wrap.b32 %r9, %r3, %r2, 0;", false },
	{ "shf.l.wrap.b32 %r9, %r1, %r2, 1;", true },
	{ "bfe.u32 %r9, %r3, 4, 12;", false },
	{ "bfe.s32 %r9, %r3, 4, 12;", false },
	{ "bfe.u32 %r9, %r3, 4, 13;", true },
	{ "bfe.u32 %r9, %r2, 4, %r1;", true },
	{ "bfi.b32 %r9, %r2, %r3, 16, 16;", false },
	{ "bfi.b32 %r9, %r2, %r3, 16, 15;", true },
	{ "bfi.b32 %r9, %r3, %r2, 3, 16;", false },
	{ "cvt.u32.u16 %r9, %h2;", false },
	{ "cvt.u32.u8 %r9, %r3;", false },
	{ "cvt.s32.s8 %r9, %r4;", false },
	{ "cvt.u16.u32 %h3, %r3; cvt.u32.u16 %r9, %h3;", false },
	{ "cvt.u16.u32 %h3, %r1; cvt.u32.u16 %r9, %h3;", true },
	{ "mov.b64 %rd3, {%r2, %r1}; cvt.u32.u64 %r9, %rd3;", false },
	{ "mov.b64 %rd3, {%r2, %r1}; mov.b64 {%r8, %r9}, %rd3;", true },
	{ "mov.b32 {%h3, %h4}, %r3; cvt.u32.u16 %r9, %h3;", false },
	{ "mov.b32 {%h3, %h4}, %r3; cvt.u32.u16 %r9, %h4;", true },
	{ "mov.b128 %q1, {%rd2, %rd1}; mov.b128 {%rd3, %rd4}, %q1; cvt.u32.u64 %r9, %rd3;", false },
	{ "mov.b128 %q1, {%rd2, %rd1}; mov.b128 {%rd3, %rd4}, %q1; cvt.u32.u64 %r9, %rd4;", true },
	{ "shfl.sync.idx.b32 %r8, %r3, 0, 31, 1; and.b32 %r9, %r8, 0xffff;", false },
	{ "shfl.sync.idx.b32 %r9, %r3, 0, 31, 1;", true },
	/* chosen */
	{ "setp.eq.u32 %p2, %r2, 5; selp.b32 %r9, %r2, %r1, %p2;", false },
	{ "setp.ne.u32 %p2, %r2, 5; selp.b32 %r9, %r2, %r1, %p2;", true },
	{ "selp.b32 %r9, %r2, %r2, %p1;", true },
	{ "slct.b32.s32 %r9, %r2, %r1, %r0;", false },
	{ "slct.b32.f32 %r9, %r1, %r2, 0fbf800000;", false },
	{ "slct.b32.s32 %r9, %r1, %r2, %r0;", true },
	{ "slct.b32.s32 %r9, %r2, %r2, %r1;", true },
	/* predicates */
	{ "setp.eq.u32 %p2, %r2, 6; setp.eq.and.u32 %p3, %r1, 1, %p2; selp.u32 %r9, 1, 0, %p3;", false },
	{ "setp.eq.u32 %p2, %r2, 5; setp.eq.and.u32 %p3, %r1, 1, %p2; selp.u32 %r9, 1, 0, %p3;", true },
	{ "setp.eq.u32 %p2, %r2, 5; setp.eq.or.u32 %p3, %r1, 1, %p2; selp.u32 %r9, 1, 0, %p3;", false },
	{ "setp.eq.u32 %p2, %r2, 5; setp.eq.and.u32 %p3, %r1, 1, !%p2; selp.u32 %r9, 1, 0, %p3;", false },
	{ "setp.eq.u32 %p2, %r2, 5; setp.eq.xor.u32 %p3, %r1, 1, %p2; selp.u32 %r9, 1, 0, %p3;", true },
	{ "setp.eq.and.u32 %p3, %r2, 6, %p1; selp.u32 %r9, 1, 0, %p3;", false },
	{ "setp.eq.and.u32 %p3, %r2, 5, %p1; selp.u32 %r9, 1, 0, %p3;", true },
	{ "setp.ne.u32 %p3, %r1, 5; selp.u32 %r9, 1, 0, %p3;", true },
	/* sums: a carry goes upward */
	{ "add.u32 %r8, %r3, 7; and.b32 %r9, %r8, 0xffff;", false },
	{ "add.u32 %r8, %r3, 7; shr.u32 %r9, %r8, 16;", true },
	{ "sub.u32 %r8, %r2, %r3; and.b32 %r9, %r8, 0xffff;", false },
	{ "mul.lo.u32 %r8, %r3, 3; and.b32 %r9, %r8, 0xffff;", false },
	{ "mad.lo.s32 %r8, %r3, 3, %r2; and.b32 %r9, %r8, 0xffff;", false },
	{ "mul.hi.u32 %r8, %r3, 3; and.b32 %r9, %r8, 0xffff;", true },
	{ "mul.wide.u16 %r9, %h2, %h2;", false },
	{ "add.f32 %f1, %f2, 0f00000000; mov.b32 %r9, %f1; and.b32 %r9, %r9, 1;", true },
	/* memory */
	{ "st.shared.b32 [s], %r3; ld.shared.u16 %r9, [s];", false },
	{ "st.shared.b32 [s], %r3; ld.shared.u16 %r9, [s+2];", true },
	{ "st.shared.b32 [s], %r1; ld.shared.u32 %r9, [s];", true },
	{ "st.shared.b8 [s], %r4; ld.shared.u8 %r9, [s];", false },
	{ "st.shared.b16 [s], 1; ld.shared.b32 %r8, [s]; and.b32 %r9, %r8, 0xffff;", false },
	{ "st.shared.b16 [s], 1; ld.shared.b32 %r9, [s];", true },
	{ "ld.shared.u8 %r8, [s]; shr.u32 %r9, %r8, 8;", false },
	{ "ld.shared.s8 %r8, [s]; shr.u32 %r9, %r8, 8;", true },
	{ "st.local.b32 [l], 1; ld.local.b32 %r9, [l];", false },
	{ "st.local.b32 [l], 1; ld.local.b32 %r9, [l+4];", true },
	{ "st.local.b16 [l], 1; ld.local.b32 %r9, [l];", true },
	{ "cvta.local.u64 %rd3, l; ld.b32 %r9, [%rd3];", true },
	{ "st.local.v2.b32 [l], {%r2, %r3}; ld.local.b64 %rd3, [l]; cvt.u32.u64 %r9, %rd3;", false },
	{ "st.local.v2.b32 [l], {%r2, %r3}; ld.local.v2.b32 {%r8, %r9}, [l];", true },
	/* parameters */
	{ "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call (r), same, (a); ld.param.b32 %r9, [r]; }", false },
	{ "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), same, (a); ld.param.b32 %r9, [r]; }", true },
	{ "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r3; call (r), same, (a); ld.param.b16 %h3, [r]; cvt.u32.u16 %r9, "
	  "%h3; }",
	  false },
	{ "{ .reg .b32 x; call (x), twice, (%r3); and.b32 %r9, x, 0xffff; }", false },
	{ "{ .reg .b32 x; call (x), twice, (%r3); shr.u32 %r9, x, 16; }", true },
};
enum { PARTS = sizeof parts / sizeof *parts };

static const char decls[] =
	".shared .align 16 .b8 s[64];\n"
	".func (.param .b32 r) same(.param .b32 a) { .reg .b32 x; ld.param.b32 x, [a]; st.param.b32 [r], x; ret; }\n"
	".func (.reg .b32 r) twice(.reg .b32 a) { add.u32 r, a, a; ret; }\n";

static trial run(const char *body, void *data, size_t size)
{
	trial t = { .target = "sm_90", .decls = decls, .block = { 1 }, .data = data, .size = size, .body = body };

	trial_run(&t);
	return t;
}

START_TEST(undefined_bits)
{
	const struct part *p = &parts[_i];
	uint32_t data[32] = { 0 };
	char body[2048];

	snprintf(body, sizeof body, ".local .align 16 .b8 l[16]; %s%s%s", head, p->body, tail);
	trial t = run(body, data, sizeof data);
	ck_assert_msg(t.ok == !p->undefined && (t.ok || t.found[0] == CPTX_FIND_UNDEFINED), "%s: %s%s", p->body, t.err.text,
	              t.message);
}
END_TEST

/* Padding may be copied to global memory with what stands beside it, but neither alone nor calculated with; who reads it
 * there finds it undefined. */
START_TEST(padding)
{
	static const struct part outputs[] = {
		{ "st.shared.b8 [s], 1; st.shared.b32 [s+4], 2; ld.shared.b64 %rd3, [s]; st.global.b64 [%rd0], %rd3;", false },
		{ "ld.shared.b64 %rd3, [s]; st.global.b64 [%rd0], %rd3;", true },
		{ "st.shared.b8 [s], 1; ld.shared.b32 %r8, [s]; add.u32 %r9, %r8, 0; st.global.b32 [%rd0], %r9;", true },
		{ "ld.shared.u8 %r9, [s]; st.global.b32 [%rd0], %r9;", true },
		{ "ld.shared.u8 %h3, [s]; st.global.b8 [%rd0], %h3;", true },
		{ "st.global.b16 [%rd0], %h1;", true },
		{ "cvt.u16.u32 %h3, %r3; st.global.b16 [%rd0], %h3;", false },
		{ "st.global.b8 [%rd0], %r4;", false },
		{ "st.shared.b8 [s], 1; ld.shared.b32 %r8, [s]; st.global.b32 [%rd0], %r8; ld.global.u8 %r9, [%rd0]; st.global.u32 "
		  "[%rd0+4], %r9;",
		  false },
		{ "st.shared.b8 [s], 1; ld.shared.b32 %r8, [s]; st.global.b32 [%rd0], %r8; ld.global.u8 %r9, [%rd0+1]; "
		  "st.global.u32 "
		  "[%rd0+4], %r9;",
		  true },
	};

	for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
		char body[1024];
		uint32_t data[32] = { 0 };
		snprintf(body, sizeof body, "%s%s", head, outputs[i].body);
		trial t = run(body, data, sizeof data);
		ck_assert_msg(t.ok == !outputs[i].undefined, "%s: %s%s", outputs[i].body, t.err.text, t.message);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_undefined");
	TCase *c = tcase_create("undefined");

	tcase_add_loop_test(c, undefined_bits, 0, PARTS);
	tcase_add_test(c, padding);
	suite_add_tcase(s, c);
	return test_main("emu_undefined", s);
}
