/* SPDX-License-Identifier: MIT */
/* mma, mma.sp, wmma, ldmatrix and stmatrix of all kinds, against sums in double. */
#include "matrix_forms.h"
#include "trial.h"

#include <math.h>

static void check_case(const form *f, const form_case *c, bool exact)
{
	for (unsigned row = 0; row < f->m; row++)
		for (unsigned col = 0; col < f->n; col++) {
			double magnitude, want = form_expected(f, c, row, col, &magnitude);
			double got = form_value(f->d, c->d[row * f->n + col]),
				   most = exact ? 0 : form_bound(f, f->abits == 8 && !f->vec ? 12 : 22, want, magnitude);
			if (!form_is_float(f->d) && !f->saturate)
				want = (double)(int32_t)(uint32_t)(int64_t)want;
			if (f->d == CPTX_F16 && fabs(want) > 65504)
				continue;
			ck_assert_msg(fabs(got - want) <= most, "%s: row %u, column %u: %.17g, expected %.17g within %g", f->opcode, row,
			              col, got, want, most);
		}
}

static void run_form(const char *opcode, const char *target)
{
	enum { CASES = 4 };
	form_case *c = calloc(CASES, sizeof *c);
	cptx_error err = { 0 };
	uint64_t seed = 1;
	form f;

	ck_assert_ptr_nonnull(c);
	ck_assert_msg(form_parse(&f, opcode), "%s", opcode);
	for (unsigned fill = FILL_SMALL; fill <= FILL_NORMAL; fill++) {
		cptx_device *dev = cptx_emu_open(target, NULL, &err);
		for (unsigned i = 0; i < CASES; i++)
			form_fill(&f, &c[i], fill, &seed);
		ck_assert_msg(dev && form_run(&f, dev, target, c, CASES, &err), "%s: %s", opcode, err.text);
		for (unsigned i = 0; i < CASES; i++)
			check_case(&f, &c[i], fill == FILL_SMALL);
		cptx_device_close(dev);
	}
	free(c);
}

START_TEST(every_mma)
{
	for (size_t i = 0; i < form_nmma; i++)
		run_form(form_mma[i], "sm_90a");
}
END_TEST

START_TEST(every_mma_of_blackwell)
{
	static const char *const forms[] = {
		"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32",
		"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32",
		"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e5m2.f32",
		"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m3.e3m2.f16",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f16.e4m3.e2m1.f16",
		"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
		"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m1.e3m2.f32.ue8m0",
		"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
		"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32."
		"ue8m0",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32."
		"ue8m0",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32."
		"ue4m3",
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		run_form(forms[i], "sm_120a");
}
END_TEST

/* The generations sum in steps of their own: all within the bound. */
START_TEST(other_generations)
{
	static const char *const targets[] = { "sm_80", "sm_89", "sm_100a" };

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		run_form("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", targets[i]);
		run_form("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", targets[i]);
	}
	run_form("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "sm_75");
	run_form("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89");
}
END_TEST

/* D(0, 0) where C is 1 and each product 2^exponent: how many bits a sum keeps, and in how many steps it is made. */
static double one_and_many(const char *opcode, const char *target, int exponent)
{
	form_case *c = calloc(1, sizeof *c);
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target, NULL, &err);
	form f;

	ck_assert(c && dev && form_parse(&f, opcode));
	for (unsigned k = 0; k < f.k; k++) {
		c->a[k] = form_bits(f.a, ldexp(1, exponent / 2));
		c->b[k * f.n] = form_bits(f.b, ldexp(1, exponent - exponent / 2));
	}
	c->c[0] = form_bits(f.c, 1);
	ck_assert_msg(form_run(&f, dev, target, c, 1, &err), "%s", err.text);
	double d = form_value(f.d, c->d[0]);
	cptx_device_close(dev);
	free(c);
	return d;
}

START_TEST(bits_that_are_kept)
{
	static const char f16[] = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
					  k8[] = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32";
	static const char f8[] = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32";

	ck_assert_double_eq(one_and_many(f16, "sm_90a", -26), 1);
	ck_assert_double_eq(one_and_many(f16, "sm_90a", -25), 1 + 0x1p-21);
	ck_assert_double_eq(one_and_many(f16, "sm_80", -25), 1);
	ck_assert_double_eq(one_and_many(f16, "sm_80", -24), 1 + 0x1p-20);
	ck_assert_double_eq(one_and_many(k8, "sm_75", -25), 1);
	ck_assert_double_eq(one_and_many(k8, "sm_75", -24), 1 + 0x1p-21);
	ck_assert_double_eq(one_and_many(f16, "sm_100a", -25), 1 + 0x1p-21);
	/* 8-bit floats: 13 bits on sm_89; from two products of f16 on sm_90, C added to nearest; 25 bits on sm_120 */
	ck_assert_double_eq(one_and_many(f8, "sm_89", -14), 1);
	ck_assert_double_eq(one_and_many(f8, "sm_89", -13), 1 + 0x1p-8);
	ck_assert_double_eq(one_and_many(f8, "sm_90a", -26), 1 + 0x1p-21);
	ck_assert_double_eq(one_and_many(f8, "sm_120a", -26), 1);
	ck_assert_double_eq(one_and_many(f8, "sm_120a", -25), 1 + 0x1p-20);
}
END_TEST

/* Infinities, NaN, and exponents that f32 has no room for. */
START_TEST(extremes)
{
	static const struct {
		uint64_t a0, b0, a1, b1, c, d;
	} cases[] = {
		{ 0x7f80, 0x3f80, 0x3f80, 0x3f80, 0, 0x7f800000 }, /* inf */
		{ 0x7f80, 0x3f80, 0x7f80, 0xbf80, 0, 0x7fffffff }, /* inf - inf */
		{ 0x7f80, 0, 0, 0, 0, 0x7fffffff },                /* inf * 0 */
		{ 0x7fc0, 0, 0, 0, 0x3f800000, 0x7fffffff },       /* NaN */
		{ 0x3f80, 0x3f80, 0, 0, 0xff800000, 0xff800000 },  /* C */
		{ 0x7f00, 0x7f00, 0, 0, 0, 0x7f800000 },           /* overflow */
		{ 0x7f00, 0x7f00, 0x7f00, 0xff00, 0x3f800000, 0 }, /* 2^254 - 2^254 + 1: the one is lost */
		{ 0x1f80, 0x1f80, 0, 0, 0, 0x00200000 },           /* subnormal: 2^-128 */
		{ 0x1f80, 0x1f80, 0, 0, 0x00000001, 0x00200001 },
		{ 0x0080, 0x0080, 0, 0, 0x80000003, 0x80000003 },  /* 2^-252: lost */
		{ 0x8000, 0x3f80, 0x8000, 0x3f80, 0x80000000, 0 }, /* -0 - 0 - 0 */
	};
	form_case *c = calloc(sizeof cases / sizeof *cases, sizeof *c);
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	form f;

	ck_assert(c && dev && form_parse(&f, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		c[i].a[0] = cases[i].a0, c[i].b[0] = cases[i].b0;
		c[i].a[5] = cases[i].a1, c[i].b[5 * 8] = cases[i].b1;
		c[i].c[0] = cases[i].c;
	}
	ck_assert_msg(form_run(&f, dev, "sm_90a", c, sizeof cases / sizeof *cases, &err), "%s", err.text);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		ck_assert_msg(c[i].d[0] == cases[i].d, "case %zu: 0x%llx, expected 0x%llx", i, (unsigned long long)c[i].d[0],
		              (unsigned long long)cases[i].d);
	cptx_device_close(dev);
	free(c);
}
END_TEST

/* ---- findings ---- */

static void find(const char *target, const char *body, enum cptx_finding_code code, const char *text)
{
	uint32_t x[32] = { 0 };
	trial t = { .target = target, .data = x, .size = sizeof x, .body = body };

	trial_run(&t);
	ck_assert_msg(code ? t.found[0] == code : t.ok, "%s\n%s", t.err.text, t.message);
	ck_assert_msg(strstr(t.message, text), "no \"%s\" in: %s", text, t.message);
}

#define AT "shl.b32 %r20, %r0, 2; mov.b64 %rd1, {%r20, 0}; add.u64 %rd1, %rd0, %rd1;"
#define ZEROS "mov.b32 %r1, 0; mov.f32 %f0, 0f00000000;"
#define SPARSE(meta)                                                                                                        \
	ZEROS "mov.b32 %r2, " meta                                                                                              \
		  "; mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},"                     \
		  "{%r1,%r1,%r1,%r1}, {%r1,%r1,%r1,%r1}, {%f0,%f0,%f0,%f0}, %r2, 0;"
#define SCALED(ids)                                                                                                         \
	ZEROS "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 {%f1,%f2,%f3,%f4},"         \
		  "{%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f0,%f0,%f0,%f0}, %r1, " ids ", %r1, {0, 0};"

START_TEST(findings)
{
	find("sm_90a", SPARSE("0x44444444"), CPTX_FIND_NONE, "");
	find("sm_90a", SPARSE("0x44444440"), CPTX_FIND_OPERAND, "do not ascend");
	find("sm_90a", SPARSE("0x11111111"), CPTX_FIND_OPERAND, "do not ascend");
	find("sm_120a", SCALED("{3, 1}"), CPTX_FIND_NONE, "");
	find("sm_120a", "mov.b16 %h0, 2;" SCALED("{0, %h0}"), CPTX_FIND_OPERAND, "byte 0, thread 2 of the scales of A");
	find("sm_80",
	     ZEROS "setp.lt.u32 %p0, %r0, 16; @%p0 mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r2,%r3}, {%r1,%r1}, "
	           "{%r1}, {%r1,%r1};",
	     CPTX_FIND_DIVERGENT, "lanes 0xffff0000 of the warp have exited");
	find("sm_80",
	     ZEROS "setp.lt.u32 %p0, %r0, 16; @%p0 mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r2,%r3}, {%r1,%r1}, "
	           "{%r1}, {%r1,%r1};"
	           "bar.warp.sync 0xffffffff;",
	     CPTX_FIND_DIVERGENT, "must execute this together");
}
END_TEST

/* What is undefined in A spoils its rows, in B its columns; and is found where it leaves. */
START_TEST(undefined)
{
#define MMA(d, a)                                                                                                           \
	"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {" a                                               \
	"}, {%r1}, {%f0,%f0,%f0,%f0}; st.global.f32 [%rd1], " d ";"
	find("sm_80", AT ZEROS MMA("%f1", "%r1,%r1"), CPTX_FIND_NONE, "");
	find("sm_80", AT ZEROS MMA("%f1", "%r1,%r9"), CPTX_FIND_NONE, "");
	find("sm_80", AT ZEROS MMA("%f3", "%r1,%r9"), CPTX_FIND_UNDEFINED, "what is stored");
	find("sm_80", AT ZEROS MMA("%f1", "%r9,%r1"), CPTX_FIND_UNDEFINED, "what is stored");
#undef MMA
}
END_TEST

TRIAL_MAIN("emu_mma", every_mma, every_mma_of_blackwell, other_generations, bits_that_are_kept, extremes, findings,
           undefined)
