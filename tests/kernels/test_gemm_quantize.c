/* SPDX-License-Identifier: MIT */
/* The quantizer of cptx/gemm.h: each element and factor has the bits that the same arithmetic gives on the host. */
#include "gemm_tests.h"

#include <math.h>

enum { BLOCK = 128, GUARD = 64, POISON = 0xff };

typedef struct trial {
	cptx_gemm_quantize_opt o;
	uint64_t rows, k;
	uint32_t batch;
} trial;

static const trial trials[] = {
	{ { .in = CPTX_BF16, .out = CPTX_E4M3 }, 70, 400, 1 },
	{ { .in = CPTX_F32, .out = CPTX_E5M2, .pow2 = true }, 3, 1040, 1 },
	{ { .in = CPTX_F16, .out = CPTX_E4M3, .blocks = true }, 200, 272, 2 },
	{ { .in = CPTX_F32, .out = CPTX_E4M3, .blocks = true, .pow2 = true, .name = "q" }, 128, 128, 1 },
};

/* Numbers of several magnitudes; the first rows of a matrix are zeros, where rows are of blocks of their own; behind them
 * are a NaN, which its block has to pass over, and in the last block an infinity. */
static float draw(uint64_t i, uint64_t k, uint64_t *s)
{
	const float v = (float)((double)(number_random(s) >> 40) / 8388608 - 1);

	if (i == 2 * k + 5 || (i == 3 * k - 1 && k > BLOCK))
		return i == 2 * k + 5 ? NAN : INFINITY;

	return i < 2 * k ? 0 : ldexpf(v, (int)(i / k % 7) * 3 - 9);
}

static float factor_of(const trial *t, float amax)
{
	const float factor = fmaxf(amax, 0x1p-100f) * (1 / (t->o.out == CPTX_E4M3 ? 448.0f : 57344.0f));
	uint32_t bits;

	memcpy(&bits, &factor, sizeof bits);
	bits = t->o.pow2 ? (bits + 0x7fffff) & 0xff800000u : bits;
	float rounded;
	memcpy(&rounded, &bits, sizeof rounded);
	return rounded;
}

/* Where the factor of an element is, and how many there are. */
static uint64_t place_of(const trial *t, uint64_t row, uint64_t col)
{
	const uint64_t along = (t->k + BLOCK - 1) / BLOCK, down = (t->rows + BLOCK - 1) / BLOCK;

	return t->o.blocks ? (row / t->rows * down + row % t->rows / BLOCK) * along + col / BLOCK
	                   : col / BLOCK * cptx_gemm_scale_pitch(t->rows) + row;
}

static uint64_t factors(const trial *t) { return place_of(t, t->rows * t->batch - 1, t->k - 1) + 1; }

static void compare(const trial *t, const float *x, const uint8_t *q, const float *scale)
{
	const uint64_t n = t->rows * t->batch * t->k;
	float *amax = calloc(factors(t), sizeof *amax);

	for (uint64_t i = 0; i < n; i++) {
		float *of = &amax[place_of(t, i / t->k, i % t->k)];
		*of = fmaxf(*of, fabsf(x[i]));
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = place_of(t, i / t->k, i % t->k);
		const float factor = factor_of(t, amax[at]), by = 1 / factor;
		ck_assert_msg(scale[at] == factor, "factor %llu is %g, not %g", (unsigned long long)at, (double)scale[at],
		              (double)factor);
		const uint8_t want = isnan(x[i] * by) ? 0x7f : (uint8_t)number_bits(t->o.out, (double)(x[i] * by));
		ck_assert_msg(q[i] == want || !((q[i] | want) & 0x7f), "element (%llu, %llu) is 0x%02x, not 0x%02x",
		              (unsigned long long)(i / t->k), (unsigned long long)(i % t->k), q[i], want);
	}
	for (uint64_t i = n; i < n + GUARD; i++)
		ck_assert_msg(q[i] == POISON, "byte %llu behind the matrix was written", (unsigned long long)(i - n));
	free(amax);
}

START_TEST(gives_elements_and_factors)
{
	const trial *t = &trials[_i];
	const uint64_t n = t->rows * t->batch * t->k, size = cptx_type_bits(t->o.in) / 8;
	uint64_t s = 99 + (unsigned)_i;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(_i % 2 ? "sm_89" : "sm_90a", NULL, &err);
	cptx_module *m = cptx_module_new(NULL);
	float *x = malloc(n * sizeof *x), *scale = malloc(factors(t) * sizeof *scale);
	uint8_t *bytes = malloc(n * size + GUARD), *q = malloc(n + GUARD);

	for (uint64_t i = 0; i < n; i++) {
		const float v = draw(i, t->k, &s);
		const uint64_t nan = t->o.in == CPTX_F32 ? 0x7fc00000 : t->o.in == CPTX_F16 ? 0x7e00 : 0x7fc0;
		const uint64_t bits = isnan(v) ? nan : number_bits(t->o.in, (double)v);
		x[i] = isfinite(v) ? (float)number_value(t->o.in, (uint32_t)bits) : v;
		memcpy(bytes + i * size, &bits, size);
	}
	ck_assert_msg(cptx_gemm_quantize_build(m, &t->o, &err) != NULL, "%s", err.text);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	cptx_gemm_quantize_problem p = { .rows = t->rows, .k = t->k, .batch = t->batch };
	p.x = cptx_mem_alloc(dev, n * size, &err), p.q = cptx_mem_alloc(dev, n + GUARD, &err);
	p.scale = cptx_mem_alloc(dev, factors(t) * sizeof *scale, &err);
	cptx_mem_write(dev, p.x, bytes, n * size, &err);
	cptx_mem_fill8(dev, p.q, POISON, n + GUARD, &err);
	cptx_launch *l = program ? cptx_gemm_quantize_launch(program, dev, &t->o, &p, &err) : NULL;
	ck_assert_msg(l && cptx_launch_run(l, NULL, &err) && cptx_device_synchronize(dev, &err) &&
	                  cptx_mem_read(dev, q, p.q, n + GUARD, &err) &&
	                  cptx_mem_read(dev, scale, p.scale, factors(t) * sizeof *scale, &err),
	              "%s", err.text);
	compare(t, x, q, scale);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	free(x), free(scale), free(bytes), free(q);
	gemm_device_done(dev, "quantizer");
}
END_TEST

START_TEST(says_which_rule_is_broken)
{
	cptx_error err = { 0 };
	cptx_gemm_quantize_opt o = { .in = CPTX_BF16, .out = CPTX_E4M3 };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_module *m = cptx_module_new(NULL);

	o.in = CPTX_S8;
	ck_assert_ptr_null(cptx_gemm_quantize_build(m, &o, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "in is .s8; it is f32, bf16 or f16") != NULL, "%s", err.text);
	o.in = CPTX_BF16, o.out = CPTX_BF16;
	ck_assert_ptr_null(cptx_gemm_quantize_build(m, &o, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "out is .bf16; it is e4m3 or e5m2") != NULL, "%s", err.text);
	o.out = CPTX_E4M3;
	ck_assert_ptr_nonnull(cptx_gemm_quantize_build(m, &o, FRESH(&err)));
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	static const struct {
		cptx_gemm_quantize_problem p;
		const char *said;
	} bad[] = {
		{ { .rows = 8, .k = 24, .x = 16, .q = 16, .scale = 16 },
		  "a multiple of 16, as those of 8-bit matrices (pad to 32)" },
		{ { .rows = 0, .k = 32, .x = 16, .q = 16, .scale = 16 }, "0 rows of 32 elements" },
		{ { .rows = 8, .k = 32, .batch = 2, .x = 16, .q = 16, .scale = 16 }, "all rows are one matrix" },
		{ { .rows = 8, .k = 32, .x = 16, .q = 20, .scale = 16 }, "the address of q, 0x14" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		err = (cptx_error){ 0 };
		ck_assert_ptr_null(cptx_gemm_quantize_launch(program, dev, &o, &bad[i].p, &err));
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s", err.text);
	}
	/* 2^71 rows of all matrices */
	const cptx_gemm_quantize_problem huge = {
		.rows = UINT64_C(1) << 63, .k = 32, .batch = 256, .x = 16, .q = 16, .scale = 16
	};
	o.blocks = true;
	ck_assert_ptr_null(cptx_gemm_quantize_launch(program, dev, &o, &huge, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "9223372036854775808 rows of 32 elements, 256 matrices") != NULL, "%s", err.text);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	gemm_device_done(dev, "rules");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_quantize");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, gives_elements_and_factors, 0, sizeof trials / sizeof *trials);
	tcase_add_test(c, says_which_rule_is_broken);
	return gemm_tests_main("gemm_quantize", s);
}
