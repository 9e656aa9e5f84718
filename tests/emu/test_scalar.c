/* SPDX-License-Identifier: MIT */
/* Instructions that work on each lane alone: results as the manual defines them, in all lanes and in some, and of undefined
 * values. */
#include "trial.h"

#include <math.h>

/* Operands, and the result in the low bits of d. */
typedef struct row {
	uint64_t a, b, c, d;
} row;

enum result { D16, D32, D64, DF32, DF64, DP };
static const char *const put[] = {
	[D16] = "cvt.u64.u16 %rd9, %h9;",
	[D32] = "mov.b64 %rd9, {%r9, 0};",
	[D64] = "",
	[DF32] = "mov.b64 %rd9, {%f9, 0f00000000};",
	[DF64] = "mov.b64 %rd9, %fd9;",
	[DP] = "selp.u64 %rd9, 1, 0, %p9;",
};

/*
 * Executes `insn` in lanes whose a, b, c are those of the rows: as %rd2 %rd3 %rd4, their low bits as %r2.. and %h2.., as
 * numbers as %f2.. and %fd2.., and %p2.. for whether they are not zero.  The result is register 9 of its class.
 */
static void try_lanes(const char *insn, enum result kind, const row *rows, unsigned n, unsigned lanes)
{
	row x[32] = { { 0 } };
	char body[2000];

	for (unsigned i = 0; i < lanes; i++)
		x[i] = (row){ rows[i % n].a, rows[i % n].b, rows[i % n].c, 0 };
	snprintf(body, sizeof body,
	         "mad.wide.u32 %%rd1, %%r0, 32, %%rd0;"
	         "ld.global.v2.b64 {%%rd2, %%rd3}, [%%rd1]; ld.global.b64 %%rd4, [%%rd1+16];"
	         "mov.b64 {%%r2, _}, %%rd2; mov.b64 {%%r3, _}, %%rd3; mov.b64 {%%r4, _}, %%rd4;"
	         "mov.b32 {%%h2, _}, %%r2; mov.b32 {%%h3, _}, %%r3; mov.b32 {%%h4, _}, %%r4;"
	         "mov.b32 %%f2, %%r2; mov.b32 %%f3, %%r3; mov.b32 %%f4, %%r4;"
	         "mov.b64 %%fd2, %%rd2; mov.b64 %%fd3, %%rd3; mov.b64 %%fd4, %%rd4;"
	         "setp.ne.b32 %%p2, %%r2, 0; setp.ne.b32 %%p3, %%r3, 0; setp.ne.b32 %%p4, %%r4, 0;\n"
	         "%s\n%s st.global.b64 [%%rd1+24], %%rd9;",
	         insn, put[kind]);
	trial t = {
		.target = "sm_120a", .version = "9.3", .block = { lanes }, .data = x, .size = lanes * sizeof *x, .body = body
	};
	trial_run(&t);
	ck_assert_msg(t.ok, "%s: %s\n%s", insn, t.err.text, t.message);
	for (unsigned i = 0; i < lanes; i++)
		ck_assert_msg(x[i].d == rows[i % n].d, "%s of 0x%llx 0x%llx 0x%llx: 0x%llx, not 0x%llx (lane %u of %u)", insn,
		              (unsigned long long)x[i].a, (unsigned long long)x[i].b, (unsigned long long)x[i].c,
		              (unsigned long long)x[i].d, (unsigned long long)rows[i % n].d, i, lanes);
}

#define TRY(insn, kind, ...)                                                                                                \
	do {                                                                                                                    \
		static const row rows_[] = { __VA_ARGS__ };                                                                         \
		try_lanes(insn, kind, rows_, sizeof rows_ / sizeof *rows_, 32);                                                     \
		try_lanes(insn, kind, rows_, sizeof rows_ / sizeof *rows_, 7);                                                      \
	} while (0)

START_TEST(integers)
{
	TRY("add.u16 %h9, %h2, %h3;", D16, { 0xffff, 2, 0, 1 }, { 3, 4, 0, 7 });
	TRY("add.s32 %r9, %r2, %r3;", D32, { 0x7fffffff, 1, 0, 0x80000000 });
	TRY("add.sat.s32 %r9, %r2, %r3;", D32, { 0x7fffffff, 1, 0, 0x7fffffff }, { 0x80000000, 0xffffffff, 0, 0x80000000 });
	TRY("sub.u64 %rd9, %rd2, %rd3;", D64, { 0, 1, 0, UINT64_MAX });
	TRY("mul.lo.u32 %r9, %r2, %r3;", D32, { 0x10001, 0x10001, 0, 0x20001 });
	TRY("mul.hi.s32 %r9, %r2, %r3;", D32, { 0xffffffff, 2, 0, 0xffffffff }, { 0x40000000, 8, 0, 2 });
	TRY("mul.hi.u64 %rd9, %rd2, %rd3;", D64, { UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1 });
	TRY("mul.lo.s16 %h9, %h2, %h3;", D16, { 0xffff, 5, 0, 0xfffb });
	TRY("mul.wide.s32 %rd9, %r2, %r3;", D64, { 0xffffffff, 3, 0, (uint64_t)-3 },
	    { 0x80000000, 0x80000000, 0, UINT64_C(1) << 62 });
	TRY("mul.wide.u32 %rd9, %r2, %r3;", D64, { 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001 });
	TRY("mul.wide.s16 %r9, %h2, %h3;", D32, { 0xffff, 3, 0, 0xfffffffd });
	TRY("mad.lo.s32 %r9, %r2, %r3, %r4;", D32, { 7, 6, 0xffffffff, 41 });
	TRY("mad.hi.sat.s32 %r9, %r2, %r3, %r4;", D32, { 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff });
	TRY("mad.wide.s32 %rd9, %r2, %r3, %rd4;", D64, { 0xffffffff, 3, 5, 2 });
	TRY("mul24.lo.u32 %r9, %r2, %r3;", D32, { 0xff000003, 5, 0, 15 });
	TRY("mad24.hi.s32 %r9, %r2, %r3, %r4;", D32, { 0x400000, 0x400000, 1, 0x10000001 });
	TRY("div.s32 %r9, %r2, %r3;", D32, { 0xfffffff9, 2, 0, 0xfffffffd }, { 7, 0, 0, 0xffffffff });
	TRY("rem.s64 %rd9, %rd2, %rd3;", D64, { (uint64_t)-7, 2, 0, (uint64_t)-1 }, { 7, 4, 0, 3 });
	TRY("abs.s32 %r9, %r2;", D32, { 0xfffffff9, 0, 0, 7 }, { 0x80000000, 0, 0, 0x80000000 });
	TRY("neg.s16 %h9, %h2;", D16, { 1, 0, 0, 0xffff });
	TRY("min.s32 %r9, %r2, %r3;", D32, { 0xffffffff, 1, 0, 0xffffffff }, { 5, 4, 0, 4 });
	TRY("max.u32 %r9, %r2, %r3;", D32, { 0xffffffff, 1, 0, 0xffffffff });
	TRY("min.s16 %h9, %h2, %h3;", D16, { 0xffff, 1, 0, 0xffff });
	TRY("max.s16x2 %r9, %r2, %r3;", D32, { 0xffff0002, 0x00010001, 0, 0x00010002 });
	TRY("min.relu.s32 %r9, %r2, %r3;", D32, { 0xffffffff, 1, 0, 0 });
	TRY("sad.u32 %r9, %r2, %r3, %r4;", D32, { 3, 10, 100, 107 }, { 10, 3, 100, 107 });
	TRY("add.u8x4 %r9, %r2, %r3;", D32, { 0xff010203, 0x01010101, 0, 0x00020304 });
	TRY("clmad.lo.u64 %rd9, %rd2, %rd3, %rd4;", D64, { 5, 3, 1, 14 });
	TRY("dp4a.s32.u32 %r9, %r2, %r3, %r4;", D32, { 0xff020304, 0x01020304, 10, 10 - 1 + 4 + 9 + 16 });
	TRY("dp2a.hi.s32.s32 %r9, %r2, %r3, %r4;", D32, { 0xffff0002, 0x03040000, 1, 1 - 3 + 8 });
}
END_TEST

/* The values are worked out by the manual's formulas. */
START_TEST(video)
{
	TRY("vadd2.s32.s32.s32 %r9, %r2, %r3, %r4;", D32, { 0x0001ffff, 0x00020001, 0, 0x00030000 });
	TRY("vadd2.u32.u32.u32.sat %r9.h1, %r2.h01, %r3.h32, %r4;", D32, { 0x0001ffff, 0x00020001, 0x1234, 0xffff1234 });
	TRY("vsub2.s32.s32.s32.sat %r9, %r2, %r3, %r4;", D32, { 0x80000005, 0x00010007, 0, 0x8000fffe });
	TRY("vavrg2.s32.s32.s32 %r9, %r2, %r3, %r4;", D32, { 0x0001ffff, 0x0002fffe, 0, 0x0002fffe });
	TRY("vabsdiff2.u32.u32.u32.add %r9, %r2, %r3, %r4;", D32, { 0x00050003, 0x00020007, 100, 107 });
	TRY("vset2.s32.s32.lt %r9, %r2, %r3, %r4;", D32, { 0xffff0003, 0x00000003, 9, 0x00010000 });
	TRY("vabsdiff4.u32.u32.u32.add %r9, %r2, %r3, %r4;", D32, { 0x01ff0305, 0xff010406, 1000, 1000 + 254 + 254 + 1 + 1 });
	TRY("vabsdiff4.u32.u32.u32 %r9.b20, %r2, %r3, %r4;", D32, { 0x01ff0305, 0xff010406, 0xaaaaaaaa, 0xaafeaa01 });
	TRY("vadd4.u32.u32.u32.sat %r9, %r2, %r3, %r4;", D32, { 0x01ff0305, 0xff010406, 0, 0xffff070b });
	TRY("vadd4.s32.s32.s32.add %r9, %r2, %r3.b7777, %r4;", D32, { 0x01ff0305, 0xff010406, 10, 10 + 8 - 4 });
	TRY("vmin4.s32.s32.s32 %r9, %r2, %r3, %r4;", D32, { 0x01ff0305, 0xff010406, 0, 0xffff0305 });
	TRY("vmax4.u32.u32.u32 %r9.b3, %r2.b0123, %r3, %r4;", D32, { 0x01ff0305, 0xff010406, 7, 0xff000007 });
	TRY("vavrg4.u32.u32.u32 %r9, %r2, %r3, %r4;", D32, { 0x01ff0305, 0x02010406, 0, 0x02800406 });
	TRY("vset4.u32.u32.eq.add %r9, %r2, %r3, %r4;", D32, { 0x01020304, 0x01000304, 5, 8 });
}
END_TEST

START_TEST(bits)
{
	TRY("popc.b64 %r9, %rd2;", D32, { UINT64_MAX, 0, 0, 64 }, { 5, 0, 0, 2 });
	TRY("clz.b32 %r9, %r2;", D32, { 0, 0, 0, 32 }, { 1, 0, 0, 31 });
	TRY("brev.b32 %r9, %r2;", D32, { 1, 0, 0, 0x80000000 }, { 0x12345678, 0, 0, 0x1e6a2c48 });
	TRY("bfind.s32 %r9, %r2;", D32, { 0xffffffff, 0, 0, 0xffffffff }, { 0xfffffff0, 0, 0, 3 }, { 16, 0, 0, 4 });
	TRY("bfind.shiftamt.u64 %r9, %rd2;", D32, { 1, 0, 0, 63 });
	TRY("fns.b32 %r9, %r2, %r3, %r4;", D32, { 0xaaaaaaaa, 3, 1, 3 }, { 0xaaaaaaaa, 3, 2, 5 },
	    { 0xaaaaaaaa, 3, (uint32_t)-2, 1 }, { 0, 0, 1, 0xffffffff });
	TRY("bfe.s32 %r9, %r2, %r3, %r4;", D32, { 0xf0, 4, 4, 0xffffffff }, { 0x70, 4, 4, 7 },
	    { 0x80000000, 16, 32, 0xffff8000 });
	TRY("bfi.b32 %r9, %r2, %r3, 8, 4;", D32, { 0xff, 0, 0, 0xf00 }, { 0, 0xffffffff, 0, 0xfffff0ff });
	TRY("szext.wrap.s32 %r9, %r2, %r3;", D32, { 0xff, 8, 0, 0xffffffff }, { 0xff, 9, 0, 0xff });
	TRY("bmsk.clamp.b32 %r9, %r2, %r3;", D32, { 4, 8, 0, 0xff0 }, { 32, 8, 0, 0 });
	TRY("and.b16 %h9, %h2, %h3;", D16, { 0xff0, 0xff, 0, 0xf0 });
	TRY("or.b64 %rd9, %rd2, %rd3;", D64, { 1, UINT64_C(1) << 63, 0, UINT64_C(1) << 63 | 1 });
	TRY("not.b16 %h9, %h2;", D16, { 0xff, 0, 0, 0xff00 });
	TRY("not.b32 %r9, %r2;", D32, { 0xff, 0, 0, 0xffffff00 });
	TRY("xor.pred %p9, %p2, !%p3;", DP, { 1, 1, 0, 1 }, { 1, 0, 0, 0 }, { 0, 0, 0, 1 });
	TRY("cnot.b32 %r9, %r2;", D32, { 0, 0, 0, 1 }, { 7, 0, 0, 0 });
	TRY("lop3.b32 %r9, %r2, %r3, %r4, 0x96;", D32, { 0xf0, 0xcc, 0xaa, 0x96 });
	TRY("lop3.b32 %r9, %r2, %r3, %r4, 0xca;", D32, { 0xf0, 0xcc, 0xaa, 0xca });
	TRY("lop3.or.b32 %r9|%p9, %r2, %r3, %r4, 0x80, %p4;", DP, { 3, 1, 1, 1 }, { 0, 1, 0, 0 }, { 0, 0, 1, 1 });
	TRY("shl.b32 %r9, %r2, %r3;", D32, { 3, 4, 0, 0x30 }, { 3, 32, 0, 0 });
	TRY("shl.b64 %rd9, %rd2, 40;", D64, { 3, 0, 0, UINT64_C(3) << 40 });
	TRY("shl.b16 %h9, %h2, %r3;", D16, { 0xffff, 4, 0, 0xfff0 }, { 0xffff, 16, 0, 0 });
	TRY("shr.s32 %r9, %r2, %r3;", D32, { 0x80000000, 4, 0, 0xf8000000 }, { 0x80000000, 40, 0, 0xffffffff });
	TRY("shr.s16 %h9, %h2, %r3;", D16, { 0x8000, 4, 0, 0xf800 });
	TRY("shr.u64 %rd9, %rd2, 40;", D64, { UINT64_MAX, 0, 0, 0xffffff });
	TRY("shr.u32 %r9, %r2, 32;", D32, { 0xffffffff, 0, 0, 0 });
	TRY("shf.l.wrap.b32 %r9, %r2, %r3, %r4;", D32, { 0xabcd0000, 0x1234, 40, 0x1234ab });
	TRY("shf.r.clamp.b32 %r9, %r2, %r3, %r4;", D32, { 0xabcd0000, 0x1234, 99, 0x1234 });
	TRY("prmt.b32 %r9, %r2, %r3, %r4;", D32, { 0x33221100, 0x77665544, 0x7531, 0x77553311 }, { 0x80, 0, 0x8, 0x808080ff });
	TRY("prmt.b32.rc8 %r9, %r2, %r3, %r4;", D32, { 0x33221100, 0, 2, 0x22222222 });
}
END_TEST

START_TEST(carries)
{
	TRY("add.cc.u32 %r5, %r2, %r3; addc.u32 %r9, %r4, 0;", D32, { 0xffffffff, 1, 7, 8 }, { 1, 1, 7, 7 });
	TRY("sub.cc.u32 %r5, %r2, %r3; subc.u32 %r9, %r4, 0;", D32, { 0, 1, 7, 6 }, { 1, 1, 7, 7 });
	TRY("sub.cc.u32 %r5, %r2, %r3; addc.u32 %r9, 0, 0;", D32, { 0, 1, 0, 0 }, { 1, 1, 0, 1 }, { 2, 1, 0, 1 });
	TRY("add.cc.u32 %r5, %r2, %r3; subc.u32 %r9, %r4, 0;", D32, { 0xffffffff, 1, 7, 7 }, { 1, 1, 7, 6 });
	TRY("add.cc.u64 %rd5, %rd2, %rd3; addc.cc.u64 %rd6, %rd4, %rd4; addc.u64 %rd9, 0, 0;", D64,
	    { UINT64_MAX, 1, UINT64_C(1) << 63, 1 }, { 0, 1, UINT64_C(1) << 62, 0 });
	TRY("mad.lo.cc.u32 %r5, %r2, %r3, %r4; madc.hi.u32 %r9, %r2, %r3, 0;", D32,
	    { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff });
	TRY("add.cc.u32 %r5, %r2, %r3; @%p4 add.cc.u32 %r5, 1, 1; addc.u32 %r9, 0, 0;", D32, { 0xffffffff, 1, 0, 1 },
	    { 0xffffffff, 1, 1, 0 });
}
END_TEST

static uint64_t bits32(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

static uint64_t bits64(double f)
{
	uint64_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

#define TRY_ROWS(insn, kind, ...)                                                                                           \
	do {                                                                                                                    \
		const row rows_[] = { __VA_ARGS__ };                                                                                \
		try_lanes(insn, kind, rows_, sizeof rows_ / sizeof *rows_, 32);                                                     \
		try_lanes(insn, kind, rows_, sizeof rows_ / sizeof *rows_, 7);                                                      \
	} while (0)
#define F(x) bits32(x)
#define D(x) bits64(x)

START_TEST(floats)
{
	float eps = 0x1p-23f, tiny = 0x1p-149f;

	TRY_ROWS("add.f32 %f9, %f2, %f3;", DF32, { F(1.5f), F(2), 0, F(3.5f) }, { 0xffc12345, F(1), 0, 0x7fffffff });
	TRY_ROWS("add.rz.f32 %f9, %f2, %f3;", DF32, { F(1), F(-tiny), 0, F(1 - eps / 2) });
	TRY_ROWS("add.rp.f32 %f9, %f2, %f3;", DF32, { F(1), F(tiny), 0, F(1 + eps) });
	TRY_ROWS("add.ftz.f32 %f9, %f2, %f3;", DF32, { F(tiny), F(-0x1p-126f), 0, F(-0x1p-126f) },
	         { F(0x1.8p-126f), F(-0x1p-126f), 0, 0 });
	TRY_ROWS("add.sat.f32 %f9, %f2, %f3;", DF32, { F(1.5f), F(2), 0, F(1) }, { F(-1), F(0.5f), 0, 0 },
	         { 0x7fffffff, 0, 0, 0 });
	TRY_ROWS("sub.f64 %fd9, %fd2, %fd3;", DF64, { D(1.5), D(2), 0, D(-0.5) },
	         { 0x7ff0000000000001, D(1), 0, 0x7ff8000000000001 });
	TRY_ROWS("mul.f32 %f9, %f2, %f3;", DF32, { F(1.5f), F(-2), 0, F(-3) }, { F(INFINITY), 0, 0, 0x7fffffff });
	TRY_ROWS("fma.rn.f32 %f9, %f2, %f3, %f4;", DF32, { F(1 + eps), F(1 + eps), F(-1 - 2 * eps), F(eps * eps) },
	         { F(2), F(3), F(4), F(10) }, { F(0x1p100f), F(0x1p100f), F(-INFINITY), F(-INFINITY) });
	TRY_ROWS("fma.rn.ftz.f32 %f9, %f2, %f3, %f4;", DF32, { F(0x1p-70f), F(0x1p-70f), 0, 0 });
	TRY_ROWS("fma.rm.f64 %fd9, %fd2, %fd3, %fd4;", DF64, { D(0x1p-600), D(-0x1p-600), D(1), D(1 - 0x1p-53) });
	TRY_ROWS("fma.rn.f64 %fd9, %fd2, %fd3, %fd4;", DF64, { D(3), D(4), D(5), D(17) });
	TRY_ROWS("mad.rn.f32 %f9, %f2, %f3, %f4;", DF32, { F(3), F(4), F(5), F(17) });
	TRY_ROWS("div.rn.f32 %f9, %f2, %f3;", DF32, { F(1), F(3), 0, F(1.0f / 3) }, { F(1), 0, 0, F(INFINITY) });
	TRY_ROWS("div.rp.f64 %fd9, %fd2, %fd3;", DF64, { D(2), D(3), 0, D(2.0 / 3) + 1 });
	TRY_ROWS("rcp.rn.f64 %fd9, %fd2;", DF64, { D(4), 0, 0, D(0.25) });
	TRY_ROWS("rcp.approx.ftz.f32 %f9, %f2;", DF32, { F(4), 0, 0, F(0.25f) }, { F(tiny), 0, 0, F(INFINITY) });
	TRY_ROWS("sqrt.rn.f32 %f9, %f2;", DF32, { F(2), 0, 0, F(sqrtf(2)) }, { F(-1), 0, 0, 0x7fffffff });
	TRY_ROWS("rsqrt.approx.f32 %f9, %f2;", DF32, { F(4), 0, 0, F(0.5f) });
	TRY_ROWS("ex2.approx.ftz.f32 %f9, %f2;", DF32, { F(-3), 0, 0, F(0.125f) }, { F(-INFINITY), 0, 0, 0 });
	TRY_ROWS("lg2.approx.f32 %f9, %f2;", DF32, { F(8), 0, 0, F(3) }, { 0, 0, 0, F(-INFINITY) });
	TRY_ROWS("sin.approx.f32 %f9, %f2;", DF32, { 0, 0, 0, 0 });
	TRY_ROWS("cos.approx.f32 %f9, %f2;", DF32, { 0, 0, 0, F(1) });
	TRY_ROWS("tanh.approx.f32 %f9, %f2;", DF32, { F(INFINITY), 0, 0, F(1) });
	TRY_ROWS("min.f32 %f9, %f2, %f3;", DF32, { F(1), 0x7fc00000, 0, F(1) }, { 0x7fc00000, F(1), 0, F(1) },
	         { F(-0.0f), F(0), 0, F(-0.0f) }, { F(0), F(-0.0f), 0, F(-0.0f) }, { 0x7fc00000, 0xffc00000, 0, 0x7fffffff },
	         { F(-2), F(-1), 0, F(-2) });
	TRY_ROWS("max.f32 %f9, %f2, %f3;", DF32, { F(-0.0f), F(0), 0, 0 }, { F(-2), F(-1), 0, F(-1) }, { F(2), F(-1), 0, F(2) });
	TRY_ROWS("max.NaN.f32 %f9, %f2, %f3;", DF32, { F(1), 0x7fc00000, 0, 0x7fffffff });
	TRY_ROWS("min.xorsign.abs.f32 %f9, %f2, %f3;", DF32, { F(-1), F(2), 0, F(-1) });
	TRY_ROWS("max.f32 %f9, %f2, %f3, %f4;", DF32, { F(1), F(2), F(3), F(3) });
	TRY_ROWS("neg.f64 %fd9, %fd2;", DF64, { D(1), 0, 0, D(-1) });
	TRY_ROWS("abs.f32 %f9, %f2;", DF32, { F(-1), 0, 0, F(1) });
	TRY_ROWS("copysign.f32 %f9, %f2, %f3;", DF32, { F(-1), F(7), 0, F(-7) });
	TRY_ROWS("testp.subnormal.f32 %p9, %f2;", DP, { F(tiny), 0, 0, 1 }, { F(1), 0, 0, 0 }, { 0, 0, 0, 0 });
	TRY_ROWS("add.f16x2 %r9, %r2, %r3;", D32, { 0x3c004000, 0x3c003c00, 0, 0x40004200 });
	TRY_ROWS("fma.rn.relu.bf16x2 %r9, %r2, %r3, %r4;", D32, { 0x3f80bf80, 0x40004000, 0, 0x40000000 });
	TRY_ROWS("add.rn.f32.f16 %f9, %h2, %f3;", DF32, { 0x3c00, F(2), 0, F(3) });
	TRY_ROWS("mul.f32x2 %rd9, %rd2, %rd3;", D64, { F(2) | F(3) << 32, F(4) | F(5) << 32, 0, F(8) | F(15) << 32 });
}
END_TEST

START_TEST(comparisons)
{
	uint64_t nan = 0x7fc00000, dnan = 0x7ff8000000000000;

	TRY_ROWS("setp.lt.s32 %p9, %r2, %r3;", DP, { 0xffffffff, 0, 0, 1 }, { 1, 0, 0, 0 });
	TRY_ROWS("setp.lt.u32 %p9, %r2, %r3;", DP, { 0xffffffff, 0, 0, 0 }, { 1, 2, 0, 1 });
	TRY_ROWS("setp.hs.u64 %p9, %rd2, %rd3;", DP, { 5, 5, 0, 1 }, { 4, 5, 0, 0 });
	TRY_ROWS("setp.gt.s64 %p9, %rd2, %rd3;", DP, { 5, (uint64_t)-5, 0, 1 });
	TRY_ROWS("setp.le.s16 %p9, %h2, %h3;", DP, { 0xffff, 0, 0, 1 }, { 1, 0, 0, 0 });
	TRY_ROWS("setp.lt.and.u32 %p5|%p9, %r2, %r3, %p4;", DP, { 1, 2, 1, 0 }, { 2, 1, 1, 1 }, { 2, 1, 0, 0 });
	TRY_ROWS("setp.ne.xor.b32 %p9, %r2, %r3, !%p4;", DP, { 1, 2, 1, 1 }, { 1, 2, 0, 0 });
	TRY_ROWS("setp.ne.f32 %p9, %f2, %f3;", DP, { F(1), F(2), 0, 1 }, { nan, F(2), 0, 0 }, { F(1), F(1), 0, 0 });
	TRY_ROWS("setp.neu.f32 %p9, %f2, %f3;", DP, { nan, F(2), 0, 1 }, { F(1), F(1), 0, 0 });
	TRY_ROWS("setp.ltu.f32 %p9, %f2, %f3;", DP, { nan, F(2), 0, 1 }, { F(1), F(2), 0, 1 }, { F(2), F(2), 0, 0 });
	TRY_ROWS("setp.eq.f32 %p9, %f2, %f3;", DP, { F(0x1p-149f), 0, 0, 0 }, { F(-0.0f), 0, 0, 1 });
	TRY_ROWS("setp.eq.ftz.f32 %p9, %f2, %f3;", DP, { F(0x1p-149f), 0, 0, 1 });
	TRY_ROWS("setp.num.f64 %p9, %fd2, %fd3;", DP, { D(1), D(2), 0, 1 }, { D(1), dnan, 0, 0 });
	TRY_ROWS("setp.geu.f64 %p9, %fd2, %fd3;", DP, { D(1), D(2), 0, 0 }, { D(1), dnan, 0, 1 });
	TRY_ROWS("setp.lt.f16x2 %p5|%p9, %r2, %r3;", DP, { 0x3c004000, 0x40003c00, 0, 1 }, { 0x40003c00, 0x3c004000, 0, 0 });
	TRY_ROWS("setp.lt.f16 %p9, %h2, %h3;", DP, { 0x3c00, 0x4000, 0, 1 });
	TRY_ROWS("set.lt.u32.s32 %r9, %r2, %r3;", D32, { 0xffffffff, 0, 0, 0xffffffff }, { 0, 0, 0, 0 });
	TRY_ROWS("set.ge.or.f32.f32 %f9, %f2, %f3, %p4;", DF32, { F(1), F(0), 0, F(1) }, { F(0), F(1), 0, 0 },
	         { F(0), F(1), 1, F(1) });
	TRY_ROWS("set.eq.f16x2.f16x2 %r9, %r2, %r3;", D32, { 0x3c004000, 0x3c003c00, 0, 0x3c000000 });
	TRY_ROWS("set.eq.u32.bf16x2 %r9, %r2, %r3;", D32, { 0x3c004000, 0x3c003c00, 0, 0xffff0000 });
	TRY_ROWS("set.eq.u16.f16 %h9, %h2, %h3;", D16, { 0x3c00, 0x3c00, 0, 0xffff });
	TRY_ROWS("selp.b32 %r9, %r2, %r3, %p4;", D32, { 1, 2, 1, 1 }, { 1, 2, 0, 2 });
	TRY_ROWS("selp.f64 %fd9, %fd2, %fd3, !%p4;", DF64, { 1, 2, 1, 2 }, { 1, 2, 0, 1 });
	TRY_ROWS("selp.b16 %h9, %h2, 77, %p4;", D16, { 1, 2, 1, 1 }, { 1, 2, 0, 77 });
	TRY_ROWS("slct.u32.s32 %r9, %r2, %r3, %r4;", D32, { 1, 2, 0, 1 }, { 1, 2, 0xffffffff, 2 });
	TRY_ROWS("slct.ftz.u64.f32 %rd9, %rd2, %rd3, %f4;", D64, { 1, 2, F(-0x1p-149f), 1 }, { 1, 2, F(-1), 2 },
	         { 1, 2, nan, 2 });
}
END_TEST

START_TEST(conversions)
{
	TRY_ROWS("cvt.s64.s32 %rd9, %r2;", D64, { 0xffffffff, 0, 0, UINT64_MAX });
	TRY_ROWS("cvt.u64.u32 %rd9, %r2;", D64, { 0xffffffff, 0, 0, 0xffffffff });
	TRY_ROWS("cvt.u32.u64 %r9, %rd2;", D32, { 0x123456789a, 0, 0, 0x3456789a });
	TRY_ROWS("cvt.s32.s8 %r9, %r2;", D32, { 0x1ff, 0, 0, 0xffffffff });
	TRY_ROWS("cvt.s32.s16 %r9, %h2;", D32, { 0x8000, 0, 0, 0xffff8000 });
	TRY_ROWS("cvt.u16.u32 %h9, %r2;", D16, { 0x12345, 0, 0, 0x2345 });
	TRY_ROWS("cvt.s16.s8 %h9, %h2;", D16, { 0xff, 0, 0, 0xffff });
	TRY_ROWS("cvt.sat.u8.s32 %r9, %r2;", D32, { 300, 0, 0, 255 }, { 0xffffffff, 0, 0, 0 });
	TRY_ROWS("cvt.rn.f32.s32 %f9, %r2;", DF32, { 0xffffffff, 0, 0, F(-1) }, { 0x7fffffff, 0, 0, F(0x1p31f) });
	TRY_ROWS("cvt.rz.f32.u32 %f9, %r2;", DF32, { 0xffffffff, 0, 0, 0x4f7fffff });
	TRY_ROWS("cvt.rzi.s32.f32 %r9, %f2;", D32, { F(-1.9f), 0, 0, 0xffffffff }, { F(1e20f), 0, 0, 0x7fffffff },
	         { F(-1e20f), 0, 0, 0x80000000 }, { 0x7fffffff, 0, 0, 0 });
	TRY_ROWS("cvt.rni.f32.f32 %f9, %f2;", DF32, { F(2.5f), 0, 0, F(2) }, { F(3.5f), 0, 0, F(4) });
	TRY_ROWS("cvt.f64.f32 %fd9, %f2;", DF64, { F(1.5f), 0, 0, D(1.5) });
	TRY_ROWS("cvt.rn.f32.f64 %f9, %fd2;", DF32, { D(1 + 0x1p-24), 0, 0, F(1) }, { D(1e300), 0, 0, F(INFINITY) });
	TRY_ROWS("cvt.rp.f32.f64 %f9, %fd2;", DF32, { D(1 + 0x1p-24), 0, 0, F(1 + 0x1p-23f) });
	TRY_ROWS("cvt.f32.f16 %f9, %h2;", DF32, { 0x3c00, 0, 0, F(1) }, { 1, 0, 0, F(0x1p-24f) });
	TRY_ROWS("cvt.rn.f16.f32 %h9, %f2;", D16, { F(1), 0, 0, 0x3c00 }, { F(1e6f), 0, 0, 0x7c00 });
	TRY_ROWS("cvt.rn.bf16x2.f32 %r9, %f2, %f3;", D32, { F(1), F(2), 0, 0x3f804000 });
	TRY_ROWS("cvt.rz.relu.f16x2.f32 %r9, %f2, %f3;", D32, { F(1), F(-2), 0, 0x3c000000 });
	TRY_ROWS("cvt.rna.tf32.f32 %r9, %f2;", D32, { F(1 + 0x1p-11f), 0, 0, F(1 + 0x1p-10f) });
	TRY_ROWS("cvt.rn.satfinite.e4m3x2.f32 %h9, %f2, %f3;", D16, { F(1), F(1000), 0, 0x387e });
	TRY_ROWS("cvt.rn.f16x2.e5m2x2 %r9, %h2;", D32, { 0x3c40, 0, 0, 0x3c004000 });
	TRY_ROWS("cvt.pack.sat.u8.s32.b32 %r9, %r2, %r3, %r4;", D32, { 300, 0xffffffff, 0x1234, 0x1234ff00 });
	TRY_ROWS("cvt.pack.sat.s16.s32 %r9, %r2, %r3;", D32, { 70000, 5, 0, 0x7fff0005 });
}
END_TEST

START_TEST(guards_and_undefined_values)
{
	uint32_t x[32];
	trial t = { .target = "sm_75", .data = x, .size = sizeof x }, first = t;

	/* Lanes whose guard is false keep what they had, in the loops and lane by lane. */
	t.body = "mad.wide.u32 %rd1, %r0, 4, %rd0; mov.u32 %r2, 7; and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 add.u32 "
			 "%r2, %r0, 100;"
			 "@!%p1 popc.b32 %r2, %r0; setp.eq.u32 %p2, %r0, 0; @%p1 setp.gt.u32 %p2, %r0, 9; @%p2 mov.u32 %r2, 5; "
			 "st.global.u32 [%rd1], %r2;";
	trial_run(&t);
	ck_assert_msg(t.ok, "%s", t.err.text);
	for (unsigned i = 0; i < 32; i++)
		ck_assert_uint_eq(x[i], i % 2 ? (unsigned)__builtin_popcount(i) : i > 9 ? 5 : i + 100);

	/* A value that was never set makes all that is calculated from it undefined, and is found where it leaves. */
	t = first;
	t.body = "cvt.rn.f32.s32 %f1, %r1; fma.rn.f32 %f2, %f1, %f1, %f1; st.global.f32 [%rd0], %f2;";
	trial_run(&t);
	ck_assert(!t.ok && trial_found(&t, CPTX_FIND_UNDEFINED));

	t = first;
	t.body = "setp.lt.s32 %p1, %r1, 0; @%p1 bra A; mov.u32 %r2, 0; A: mov.u32 %r3, 0;";
	trial_run(&t);
	ck_assert(!t.ok && trial_found(&t, CPTX_FIND_UNDEFINED));

	t = first;
	t.body = "xor.b32 %r1, %r1, %r1; mov.u32 %r2, 1; mul.lo.u32 %r2, %r2, 5;"; /* never leaves */
	trial_run(&t);
	ck_assert_msg(t.ok, "%s", t.err.text);
}
END_TEST

START_TEST(stack)
{
	uint64_t x[32] = { 0 };

	RUN_OK("sm_75", 32, x, sizeof x,
	       "mad.wide.u32 %rd1, %r0, 8, %rd0; stacksave.u64 %rd2; cvt.u64.u32 %rd3, %r0; mad.lo.u64 %rd3, %rd3, 8, 64;"
	       "alloca.u64 %rd4, %rd3, 64; alloca.u64 %rd5, 8; st.local.u64 [%rd4], 5; st.local.u64 [%rd5], %rd3; add.u64 %rd6, "
	       "%rd4, %rd3;"
	       "ld.local.u64 %rd7, [%rd5]; ld.local.u64 %rd8, [%rd4]; add.u64 %rd7, %rd7, %rd8; stackrestore.u64 %rd2; "
	       "stacksave.u64 %rd9;"
	       "and.b64 %rd10, %rd4, 63; add.u64 %rd7, %rd7, %rd10; sub.u64 %rd9, %rd9, %rd2; add.u64 %rd7, %rd7, %rd9;"
	       "st.global.u64 [%rd1], %rd7;");
	for (unsigned i = 0; i < 32; i++)
		ck_assert_uint_eq(x[i], 8 * i + 64 + 5);

	trial t = { .target = "sm_75", .body = "alloca.u64 %rd4, 100000000; st.local.u64 [%rd4], 0;" };
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_STACK);
	t = (trial){ .target = "sm_75" };
	t.body = "alloca.u64 %rd4, 16; stacksave.u64 %rd2; add.u64 %rd2, %rd2, 8; stackrestore.u64 %rd2;";
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_OPERAND);
}
END_TEST

START_TEST(stops_and_sleeps)
{
	trial t = { .target = "sm_75",
		        .body = "nanosleep.u32 20; pmevent 3; pmevent.mask 5; setp.eq.u32 %p1, %r0, 3; @%p1 brkpt;" };

	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_TRAP);
	t = (trial){ .target = "sm_75" };
	t.body = "nanosleep.u32 20; pmevent 3; nanosleep.u32 %r0; nanosleep.u32 7;";
	trial_run(&t);
	ck_assert_msg(t.ok, "%s", t.err.text);
}
END_TEST

/* Whole warps load and store at once where they can; what they then get, and what is found, is as of single lanes. */
START_TEST(rows)
{
	uint64_t x[40];

	memset(x, 0x91, sizeof x);
	for (unsigned i = 0; i < 32; i++)
		((uint8_t *)x)[i] = (uint8_t)(i * 9);
	RUN_OK("sm_75", 32, x, sizeof x,
	       "cvt.u64.u32 %rd1, %r0; add.u64 %rd2, %rd0, %rd1; ld.global.s8 %r1, [%rd2]; ld.global.u8 %r2, [%rd0+31];"
	       "mad.lo.u64 %rd3, %rd1, 8, %rd0; ld.global.b64 %rd4, [%rd3]; add.s32 %r3, %r1, %r2; bar.warp.sync -1;"
	       "st.global.u32 [%rd3+64], %r3; bar.warp.sync -1; mad.lo.u64 %rd5, %rd1, -4, %rd0; ld.global.u32 %r5, [%rd5+124]; "
	       "bar.warp.sync -1;"
	       "st.global.u32 [%rd5+124], %r5;");
	for (unsigned i = 0; i < 32; i++)
		ck_assert_int_eq(((int32_t *)x)[16 + 2 * i], (int8_t)(i * 9) + (uint8_t)(31 * 9));

	trial t = { .target = "sm_75", .data = x, .size = 31 * 8 + 4 }; /* the last lane's does not fit */
	t.body = "mad.wide.u32 %rd1, %r0, 8, %rd0; ld.global.b64 %rd2, [%rd1];";
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_BOUNDS);
	ck_assert_ptr_nonnull(strstr(t.message, "thread (31, 0, 0)"));

	t = (trial){ .target = "sm_75", .data = x, .size = sizeof x };
	t.body = "mad.wide.u32 %rd1, %r0, 8, %rd0; st.global.b64 [%rd1+4], %rd1;";
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_MISALIGNED);

	t = (trial){ .target = "sm_75", .decls = ".const .align 8 .b64 c[32];" };
	t.body = "mov.u64 %rd2, c; cvta.const.u64 %rd2, %rd2; mad.wide.u32 %rd1, %r0, 8, %rd2; st.b64 [%rd1], %rd1;";
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_BOUNDS);

	/* One word of the row was never written. */
	t = (trial){ .target = "sm_75", .data = x, .size = sizeof x };
	t.body = "{ .shared .align 4 .b32 s[32]; mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 4, %r1; setp.ne.u32 %p1, %r0, 9; @%p1 "
			 "st.shared.u32 [%r1], 7;"
			 "bar.warp.sync -1; ld.shared.u32 %r2, [%r1]; mad.wide.u32 %rd1, %r0, 4, %rd0; st.global.u32 [%rd1], %r2; }";
	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_UNDEFINED);
	ck_assert_ptr_nonnull(strstr(t.message, "thread (9, 0, 0)"));
}
END_TEST

/* mov.v4 reads the special registers of four elements whole; the fourth is 0. */
START_TEST(vectors_of_special_registers)
{
	static const char *const names[] = { "%tid",       "%ntid",       "%ctaid",         "%nctaid",
		                                 "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid" };
	static const uint32_t right[][4] = { { 0 },          { 4, 2, 1, 0 }, { 0 },          { 2, 1, 1, 0 },
		                                 { 0, 0, 0, 0 }, { 1, 1, 1, 0 }, { 0, 0, 0, 0 }, { 2, 1, 1, 0 } };

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		uint32_t x[16][4] = { { 0 } };
		char body[600];
		snprintf(body, sizeof body,
		         "mov.v4.u32 {%%r4, %%r5, %%r6, %%r7}, %s; mov.u32 %%r1, %%tid.y; mov.u32 %%r2, %%ctaid.x; "
		         "mad.lo.u32 %%r1, %%r1, 4, %%r0; mad.lo.u32 %%r1, %%r2, 8, %%r1; mad.wide.u32 %%rd1, %%r1, 16, %%rd0;"
		         "st.global.v4.u32 [%%rd1], {%%r4, %%r5, %%r6, %%r7};",
		         names[i]);
		trial t = {
			.target = "sm_90", .block = { 4, 2 }, .grid = { 2 }, .cluster = { 2 }, .data = x, .size = sizeof x, .body = body
		};
		trial_run(&t);
		ck_assert_msg(t.ok, "%s: %s", names[i], t.err.text);
		for (unsigned k = 0; k < 16; k++) {
			uint32_t want[4];
			memcpy(want, right[i], sizeof want);
			if (i == 0)
				want[0] = k % 4, want[1] = k / 4 % 2;
			if (i == 2 || i == 6)
				want[0] = k / 8;
			ck_assert_msg(!memcmp(x[k], want, sizeof want), "%s of thread %u: %u %u %u %u", names[i], k, x[k][0], x[k][1],
			              x[k][2], x[k][3]);
		}
	}
}
END_TEST

TRIAL_MAIN("emu_scalar", integers, video, bits, carries, floats, comparisons, conversions, guards_and_undefined_values,
           stack, stops_and_sleeps, rows, vectors_of_special_registers)
