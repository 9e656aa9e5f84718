/* SPDX-License-Identifier: MIT */
/*
 * Columns of D that are gated (.swiglu) and quantized (.scale_out).  The quantized D, and its factors, must have the bits
 * that the same arithmetic on the host makes of the D in f32 of the same kernel without factors.  That D in turn is compared
 * with sums in f64.
 */
#include "gemm_tests.h"

#include <math.h>

enum { BLOCK = 128, MOST = 8 /* experts or matrices */, POISON = 0xff };

typedef struct trial {
	cptx_gemm_opt o;
	uint64_t m, n, k; /* n: columns of the product */
	uint32_t batch, counts[MOST];
} trial;

#define NEW .size = CPTX_OPT_SIZE(cptx_gemm_opt), .mma = CPTX_GEMM_WGMMA
#define TILE(m_, n_) NEW, .bm = m_, .bn = n_, .stages = 3
#define BF16 .a = CPTX_BF16, .b = CPTX_BF16
#define QUANTIZED .out = CPTX_E4M3, .scale_out = CPTX_F32
static const trial trials[] = {
	{ { TILE(64, 128), BF16, QUANTIZED }, 70, 256, 72, 1, { 0 } },
	{ { TILE(128, 256), BF16, QUANTIZED, .swiglu = true, .bias = true }, 140, 512, 72, 1, { 0 } },
	{ { TILE(64, 256), BF16, QUANTIZED, .swiglu = true, .experts = CPTX_GEMM_EXPERTS_MASKED },
	  70,
	  256,
	  72,
	  3,
	  { 66, 0, 9 } },
	{ { TILE(64, 128), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_E5M2, .scale_out = CPTX_F32, .scale = CPTX_F32,
	    .experts = CPTX_GEMM_EXPERTS_CONTIGUOUS },
	  75,
	  128,
	  144,
	  2,
	  { 30, 40 } },
	{ { TILE(64, 128), BF16, QUANTIZED, .batched = true, .alpha = true }, 33, 256, 72, 2, { 0 } },
	/* tiles that end behind N: half of one, and of a cluster a whole one */
	{ { TILE(64, 256), BF16, QUANTIZED }, 64, 384, 72, 1, { 0 } },
	{ { TILE(64, 128), BF16, QUANTIZED, .cluster_n = 2 }, 64, 128, 72, 1, { 0 } },
	{ { TILE(64, 256), BF16, QUANTIZED, .swiglu = true, .cluster_n = 2 }, 64, 256, 72, 1, { 0 } },
	/* rows with a NaN, and in the second block an infinity */
	{ { TILE(64, 128), BF16, QUANTIZED, .bias = true }, 33, 256, 72, 1, { 0 } },
	/* gated alone: a last subtile of D that is narrower; threads store rows of any length; rows that are added elsewhere */
	{ { TILE(64, 48), BF16, .out = CPTX_F32, .swiglu = true }, 70, 144, 72, 1, { 0 } },
	{ { TILE(64, 64), BF16, .out = CPTX_F32, .swiglu = true, .unaligned = CPTX_GEMM_D }, 70, 80, 72, 1, { 0 } },
	{ { TILE(128, 256), BF16, .out = CPTX_F32, .swiglu = true, .stream_k = true }, 130, 256, 264, 1, { 0 } },
};
enum { TRIALS = sizeof trials / sizeof *trials };

typedef struct data {
	const trial *t;
	cptx_device *dev;
	cptx_gemm_problem p;
	uint64_t rows, cols, na, nb, blocks, pitch; /* rows, cols: of D, all of them; pitch: of its factors */
	int8_t *a, *b;
	float bias[512];
} data;

static uint64_t columns(const trial *t) { return t->o.swiglu ? t->n / 2 : t->n; }

static uint64_t upload(data *x, const int8_t *v, uint64_t n, enum cptx_type type, cptx_error *err)
{
	const uint32_t size = cptx_type_bits(type) / 8;
	uint8_t *bytes = malloc(n * size);

	for (uint64_t i = 0; i < n; i++) {
		const uint64_t bits = number_bits(type, v[i]);
		memcpy(bytes + i * size, &bits, size);
	}
	const uint64_t to = cptx_mem_alloc(x->dev, n * size, err);
	cptx_mem_write(x->dev, to, bytes, n * size, err);
	free(bytes);
	return to;
}

static int8_t *draw(uint64_t n, uint64_t *s)
{
	int8_t *v = malloc(n);

	for (uint64_t i = 0; i < n; i++)
		v[i] = (int8_t)((int)(number_random(s) >> 33) % 5 - 2);
	return v;
}

static uint64_t filled(data *x, uint8_t with, uint64_t bytes, cptx_error *err)
{
	const uint64_t to = cptx_mem_alloc(x->dev, bytes, err);

	cptx_mem_fill8(x->dev, to, with, bytes, err);
	return to;
}

/* Factors of block-scaled operands are 1.0, whose bytes are not alike. */
static uint64_t ones(data *x, uint64_t n, cptx_error *err)
{
	int8_t *v = malloc(n);

	memset(v, 1, n);
	const uint64_t to = upload(x, v, n, CPTX_F32, err);
	free(v);
	return to;
}

static void prepare(data *x, cptx_error *err)
{
	const trial *t = x->t;
	uint64_t s = 1234567 + t->m;
	const bool contiguous = t->o.experts == CPTX_GEMM_EXPERTS_CONTIGUOUS;

	x->rows = contiguous ? t->m : t->m * t->batch, x->cols = columns(t);
	x->na = x->rows * t->k, x->nb = t->batch * t->n * t->k;
	x->a = draw(x->na, &s), x->b = draw(x->nb, &s);
	memset(x->a, 0, t->k); /* a row whose largest magnitude is 0 */
	/* of a batch each matrix has factors of its own */
	x->pitch = cptx_gemm_scale_pitch(t->o.batched ? t->m : x->rows);
	x->blocks = x->cols / BLOCK * (t->o.batched ? t->batch : 1);
	x->p = (cptx_gemm_problem){ .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = t->m, .n = t->n, .k = t->k, .alpha = 0.5f };
	x->p.alpha = t->o.alpha ? 0.5f : 0;
	x->p.batch = t->batch;
	x->p.a = upload(x, x->a, x->na, t->o.a, err), x->p.b = upload(x, x->b, x->nb, t->o.b, err);
	for (uint64_t i = 0; i < t->n; i++)
		x->bias[i] = (float)(i % 5) - 2;
	if (t->o.bias && !t->o.swiglu)
		x->bias[3] = NAN, x->bias[130] = INFINITY;
	x->p.bias = cptx_mem_alloc(x->dev, sizeof x->bias, err);
	cptx_mem_write(x->dev, x->p.bias, x->bias, sizeof x->bias, err);
	x->p.counts = cptx_mem_alloc(x->dev, sizeof t->counts, err);
	cptx_mem_write(x->dev, x->p.counts, t->counts, sizeof t->counts, err);
	const uint64_t along = (t->k + BLOCK - 1) / BLOCK;
	x->p.scale_a = ones(x, cptx_gemm_scale_pitch(x->rows) * along, err);
	x->p.scale_b = ones(x, t->batch * ((t->n + BLOCK - 1) / BLOCK) * along, err);
	x->p.scale_d = filled(x, POISON, (x->blocks + 1) * x->pitch * 4, err);
	cptx_gemm_plan plan;
	ck_assert_msg(cptx_gemm_check_problem(&t->o, &x->p, cptx_device_get_info(x->dev)->sms, &plan, err), "%s", err->text);
	x->p.workspace = plan.workspace ? filled(x, 0, plan.workspace, err) : 0;
}

/* D by a kernel with these options, as bytes. */
static uint8_t *run(data *x, const cptx_gemm_opt *o, cptx_error *err)
{
	const uint64_t bytes = x->rows * x->cols * cptx_type_bits(o->out) / 8;
	uint8_t *d = malloc(bytes);
	cptx_module *m = cptx_module_new(NULL);

	x->p.d = filled(x, POISON, bytes, err);
	ck_assert_msg(cptx_gemm_build(m, o, err) != NULL, "%s", err->text);
	cptx_program *program = cptx_device_load(x->dev, m, NULL, err);
	cptx_launch *l = program ? cptx_gemm_launch(program, x->dev, o, &x->p, err) : NULL;
	ck_assert_msg(l && cptx_launch_run(l, NULL, err) && cptx_device_synchronize(x->dev, err) &&
	                  cptx_mem_read(x->dev, d, x->p.d, bytes, err),
	              "%s", err->text);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	cptx_mem_free(x->dev, x->p.d);
	return d;
}

/* The matrix of B that a row is multiplied by; MOST: it is no expert's. */
static uint32_t matrix_of(const trial *t, uint64_t row)
{
	uint64_t first = 0;

	if (t->o.experts != CPTX_GEMM_EXPERTS_CONTIGUOUS) {
		const uint32_t z = (uint32_t)(row / t->m);
		return t->o.experts && row % t->m >= t->counts[z] ? MOST : z;
	}
	for (uint32_t z = 0; z < t->batch; first += t->counts[z++])
		if (row < first + t->counts[z])
			return z;
	return MOST;
}

static double product(const data *x, uint64_t row, uint64_t col)
{
	const trial *t = x->t;
	const int8_t *a = x->a + row * t->k, *b = x->b + (matrix_of(t, row) * t->n + col) * t->k;
	double sum = 0;

	for (uint64_t i = 0; i < t->k; i++)
		sum += a[i] * b[i];
	return (t->o.alpha ? 0.5 : 1) * sum + (t->o.bias ? (double)x->bias[col] : 0);
}

static double wanted(const data *x, uint64_t row, uint64_t col)
{
	const uint64_t gate = col / 8 * 16 + col % 8;

	if (!x->t->o.swiglu)
		return product(x, row, col);
	const double g = product(x, row, gate);
	return g / (1 + exp(-g)) * product(x, row, gate + 8);
}

/* By ex2.approx and rcp.approx, of which a GPU has 22 and 23 bits. */
static void compare_values(const data *x, const float *d)
{
	for (uint64_t i = 0; i < x->rows * x->cols; i++) {
		uint32_t bits;
		memcpy(&bits, &d[i], sizeof bits);
		if (matrix_of(x->t, i / x->cols) == MOST) {
			ck_assert_msg(bits == UINT32_MAX, "row %llu is no expert's, and was written", (unsigned long long)(i / x->cols));
			continue;
		}
		const double want = wanted(x, i / x->cols, i % x->cols), allowed = x->t->o.swiglu ? 1e-5 * fabs(want) + 1e-30 : 0;
		const bool same = isnan(want) ? isnan(d[i]) : (double)d[i] == want;
		ck_assert_msg(same || fabs((double)d[i] - want) <= allowed, "element (%llu, %llu) is %.9g, not %.9g",
		              (unsigned long long)(i / x->cols), (unsigned long long)(i % x->cols), (double)d[i], want);
	}
}

static void compare_quantized(const data *x, const float *d, const uint8_t *q, const float *scale)
{
	const trial *t = x->t;
	const float most = t->o.out == CPTX_E4M3 ? 448.0f : 57344.0f;

	for (uint64_t at = 0; at < x->rows * x->cols / BLOCK; at++) {
		const uint64_t row = at / (x->cols / BLOCK), block = at % (x->cols / BLOCK);
		const float *v = d + row * x->cols + block * BLOCK;
		const uint8_t *got = q + row * x->cols + block * BLOCK;
		const uint64_t z = t->o.batched ? row / t->m : 0;
		const float of = scale[(z * (x->cols / BLOCK) + block) * x->pitch + (t->o.batched ? row % t->m : row)];
		float amax = 0;
		if (matrix_of(t, row) == MOST) {
			uint32_t bits;
			memcpy(&bits, &of, sizeof bits);
			ck_assert_uint_eq(bits, UINT32_MAX);
			ck_assert_uint_eq(got[0], POISON);
			continue;
		}
		for (int i = 0; i < BLOCK; i++)
			amax = fmaxf(amax, fabsf(v[i]));
		const float factor = fmaxf(amax, 0x1p-100f) * (1 / most), by = 1 / factor;
		ck_assert_msg(of == factor, "the factor of row %llu, block %llu is %g, not %g", (unsigned long long)row,
		              (unsigned long long)block, (double)of, (double)factor);
		for (int i = 0; i < BLOCK; i++) {
			const double at_most = fmin(fmax((double)(v[i] * by), (double)-most), (double)most);
			const uint8_t want = isnan(v[i] * by) ? 0x7f : (uint8_t)number_bits(t->o.out, at_most);
			ck_assert_msg(got[i] == want || !((got[i] | want) & 0x7f), "element (%llu, %llu) is 0x%02x, not 0x%02x",
			              (unsigned long long)row, (unsigned long long)(block * BLOCK + i), got[i], want);
		}
	}
}

START_TEST(gates_and_quantizes)
{
	data x = { .t = &trials[_i] };
	cptx_gemm_opt o = trials[_i].o;
	cptx_error err = { 0 };

	x.dev = gemm_device(&o, "sm_90a", NULL);
	prepare(&x, &err);
	o.out = CPTX_F32, o.scale_out = CPTX_TYPE_NONE;
	float *d = (float *)(void *)run(&x, &o, &err);
	compare_values(&x, d);
	if (trials[_i].o.scale_out) {
		float *scale = malloc((x.blocks + 1) * x.pitch * 4);
		uint8_t *q = run(&x, &trials[_i].o, &err);
		ck_assert(cptx_mem_read(x.dev, scale, x.p.scale_d, (x.blocks + 1) * x.pitch * 4, &err));
		compare_quantized(&x, d, q, scale);
		for (uint64_t i = x.blocks * x.pitch * 4; i < (x.blocks + 1) * x.pitch * 4; i++)
			ck_assert_msg(((uint8_t *)scale)[i] == POISON, "byte %llu behind the factors was written",
			              (unsigned long long)(i - x.blocks * x.pitch * 4));
		free(q), free(scale);
	}
	free(d), free(x.a), free(x.b);
	const uint64_t held[] = { x.p.a, x.p.b, x.p.bias, x.p.counts, x.p.scale_a, x.p.scale_b, x.p.scale_d, x.p.workspace };
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		cptx_mem_free(x.dev, held[i]);
	gemm_device_done(x.dev, "gated and quantized columns");
}
END_TEST

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		uint64_t n;
		const char *said;
	} bad[] = {
		{ { TILE(64, 64), BF16, QUANTIZED }, 128, "tile N = 64 with factors of D" },
		{ { TILE(64, 128), BF16, QUANTIZED, .swiglu = true }, 256, "it must be 256" },
		{ { TILE(64, 128), BF16, .out = CPTX_BF16, .scale_out = CPTX_F32 }, 128, "and output type .bf16; these are f32" },
		{ { TILE(64, 128), BF16, QUANTIZED }, 192, "N = 192; with factors of D (.scale_out) it is a multiple of 128" },
		{ { TILE(64, 128), BF16, .out = CPTX_F32, .swiglu = true }, 72, "N = 72; with gated columns (.swiglu)" },
		{ { TILE(64, 128), BF16, .out = CPTX_F32, .swiglu = true, .beta = true }, 128, "gated columns (.swiglu) with beta" },
		{ { TILE(64, 24), BF16, .out = CPTX_F32, .swiglu = true }, 128, "it must be a multiple of 16" },
		{ { TILE(64, 64), BF16, .out = CPTX_E4M3, .beta = true }, 128, "output type .e4m3 with beta" },
		{ { TILE(64, 128), BF16, QUANTIZED, .grouped = true }, 128, "factors of D (.scale_out) of a list (.grouped)" },
		{ { TILE(64, 256), .a = CPTX_E4M3, .b = CPTX_E4M3, QUANTIZED, .scale = CPTX_F32, .swiglu = true },
		  256,
		  "leave one of the three away" },
		{ { NEW, BF16, .out = CPTX_F32, .swiglu = true }, 128, NULL },
		{ { NEW, BF16, QUANTIZED }, 128, NULL },
		{ { NEW, BF16, QUANTIZED, .swiglu = true }, 256, NULL },
	};
	cptx_error err = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const cptx_gemm_problem p = { .m = 64, .n = bad[i].n, .k = 64 };
		cptx_gemm_choice c;
		if (!bad[i].said) { /* shapes are found */
			ck_assert_msg(cptx_gemm_auto(&bad[i].o, &p, 132, &c, 1, FRESH(&err)) == 1, "%s", err.text);
			continue;
		}
		ck_assert(!cptx_gemm_check_problem(&bad[i].o, &p, 132, NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_out");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, gates_and_quantizes, 0, TRIALS);
	tcase_add_test(c, says_which_rule_is_broken);
	return gemm_tests_main("gemm_out", s);
}
