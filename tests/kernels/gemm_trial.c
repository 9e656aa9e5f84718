#include "gemm_trial.h"
#include "number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 1024, POISON = 0xff };

static char said[CPTX_ERROR_TEXT + 200];

typedef struct data {
	const gemm_trial *t;
	uint32_t batch;
	int8_t *a, *b, *c; /* a: M x K, b: N x K, c: M x N, each `batch` times */
	int8_t *bias;
	uint64_t na, nb, nd;
	uint8_t *bytes; /* to and from the device */
	uint64_t dev_a, dev_b, dev_c, dev_d, dev_bias, workspace;
} data;

const char *gemm_trial_text(const gemm_trial *t)
{
	static char text[300];
	const cptx_gemm_sm90_opt *o = &t->opt;

	snprintf(text, sizeof text,
	         "%s x %s -> %s%s%s%s%s%s%s, %llux%llux%llu x%u, tile %ux%u, %u stages, cluster %ux%u%s, %u CTAs, group %u",
	         cptx_type_name(o->a), cptx_type_name(o->b), cptx_type_name(o->out), o->a_m_major ? ", A M-major" : "",
	         o->b_n_major ? ", B N-major" : "", o->alpha ? ", alpha" : "", o->beta ? ", beta" : "", o->bias ? ", bias" : "",
	         o->epilogue ? ", epilogue" : "", (unsigned long long)t->m, (unsigned long long)t->n, (unsigned long long)t->k,
	         t->batch ? t->batch : 1, o->bm, o->bn, o->stages, o->cluster_m, o->cluster_n, o->stream_k ? ", stream-K" : "",
	         t->ctas, o->group);
	return text;
}

/* A small integer in a type of 8 to 32 bits. */
static uint32_t encode(enum cptx_type type, int v)
{
	static const uint8_t e4m3[] = { 0, 0x38, 0x40, 0x44, 0x48 }, e5m2[] = { 0, 0x3c, 0x40, 0x42, 0x44 };

	if (type == CPTX_E4M3 || type == CPTX_E5M2)
		return (uint32_t)((type == CPTX_E4M3 ? e4m3 : e5m2)[abs(v)] | (v < 0 ? 0x80 : 0));
	return (uint32_t)number_bits(type, v);
}

static int8_t *draw(uint64_t n, uint64_t *seed)
{
	int8_t *v = malloc(n ? n : 1);

	for (uint64_t i = 0; v && i < n; i++)
		v[i] = (int8_t)((int)(number_random(seed) >> 33) % 5 - 2);
	return v;
}

/* rows x cols integers to the device, `count` times; transposed where the matrix is stored by columns. */
static uint64_t upload(cptx_device *dev, data *x, const int8_t *v, enum cptx_type type, uint64_t rows, uint64_t cols,
                       uint32_t count, bool transposed, cptx_error *err)
{
	uint32_t size = cptx_type_bits(type) / 8;
	uint64_t all = rows * cols, to = cptx_mem_alloc(dev, all * count * size, err);

	for (uint64_t i = 0; i < all * count; i++) {
		uint64_t z = i / all, row = i % all / cols, col = i % cols, at = z * all + (transposed ? col * rows + row : i % all);
		uint32_t word = encode(type, v[i]);
		memcpy(x->bytes + at * size, &word, size);
	}
	return to && cptx_mem_write(dev, to, x->bytes, all * count * size, err) ? to : 0;
}

static bool prepare(cptx_device *dev, data *x, cptx_error *err)
{
	const gemm_trial *t = x->t;
	uint64_t s = t->seed * 2654435761u + 99991, most;

	x->batch = t->batch ? t->batch : 1;
	x->na = t->m * t->k * x->batch, x->nb = t->n * t->k * x->batch, x->nd = t->m * t->n * x->batch;
	most = (x->na > x->nb ? x->na : x->nb) > x->nd ? (x->na > x->nb ? x->na : x->nb) : x->nd;
	x->bytes = malloc(most * 4 + t->n * 4 + GUARD);
	x->a = draw(x->na, &s), x->b = draw(x->nb, &s), x->c = draw(x->nd, &s), x->bias = draw(t->n, &s);
	if (!x->bytes || !x->a || !x->b || !x->c || !x->bias)
		return false;
	x->dev_a = upload(dev, x, x->a, t->opt.a, t->m, t->k, x->batch, t->opt.a_m_major, err);
	x->dev_b = upload(dev, x, x->b, t->opt.b, t->n, t->k, x->batch, t->opt.b_n_major, err);
	x->dev_c = upload(dev, x, x->c, t->opt.out, t->m, t->n, x->batch, false, err);
	x->dev_bias = upload(dev, x, x->bias, CPTX_F32, 1, t->n, 1, false, err);
	x->dev_d = cptx_mem_alloc(dev, x->nd * 4 + GUARD, err);
	return err->code == CPTX_OK && cptx_mem_fill8(dev, x->dev_d, POISON, x->nd * 4 + GUARD, err);
}

/* alpha 0.5 and beta 2 keep all exact; the epilogue of the tests is tests' own. */
static double expected(const data *x, uint64_t i)
{
	const gemm_trial *t = x->t;
	uint64_t z = i / (t->m * t->n), row = i / t->n % t->m, col = i % t->n;
	const int8_t *a = x->a + (z * t->m + row) * t->k, *b = x->b + (z * t->n + col) * t->k;
	int sum = 0;

	for (uint64_t k = 0; k < t->k; k++)
		sum += a[k] * b[k];
	double v = sum;
	if (t->opt.alpha)
		v *= 0.5;
	if (t->opt.beta)
		v += 2.0 * x->c[i];
	if (t->opt.bias)
		v += x->bias[col];
	if (t->opt.epilogue)
		v = (v > 0 ? v : 0) + (double)(row % 2 + col % 4);
	return v;
}

static bool compare(const data *x)
{
	const gemm_trial *t = x->t;
	uint32_t size = cptx_type_bits(t->opt.out) / 8;

	for (uint64_t i = 0; i < x->nd; i++) {
		uint32_t got = 0, want = (uint32_t)number_bits(t->opt.out, expected(x, i));
		memcpy(&got, x->bytes + i * size, size);
		if (got == want || (!((got | want) << (33 - 8 * size)))) /* zeros of either sign */
			continue;
		snprintf(said, sizeof said, "element (%llu, %llu) of matrix %llu is %g (0x%x), not %g",
		         (unsigned long long)(i / t->n % t->m), (unsigned long long)(i % t->n),
		         (unsigned long long)(i / t->n / t->m), number_value(t->opt.out, got), got, number_value(t->opt.out, want));
		return false;
	}
	for (uint64_t i = x->nd * size; i < x->nd * 4 + GUARD; i++)
		if (x->bytes[i] != POISON) {
			snprintf(said, sizeof said, "byte %llu behind D was written", (unsigned long long)(i - x->nd * size));
			return false;
		}
	return true;
}

static bool launch(cptx_device *dev, data *x, const cptx_program *program, cptx_error *err)
{
	const gemm_trial *t = x->t;
	cptx_gemm_sm90_plan plan;
	cptx_gemm_problem p = { .m = t->m,
		                    .n = t->n,
		                    .k = t->k,
		                    .batch = t->batch,
		                    .a = x->dev_a,
		                    .b = x->dev_b,
		                    .c = x->dev_c,
		                    .d = x->dev_d,
		                    .bias = x->dev_bias,
		                    .ctas = t->ctas,
		                    .alpha = 0.5f,
		                    .beta = 2.0f };

	if (!cptx_gemm_sm90_check_problem(&t->opt, &p, cptx_device_get_info(dev)->sms, &plan, err))
		return false;
	if (plan.workspace) {
		x->workspace = p.workspace = cptx_mem_alloc(dev, plan.workspace, err);
		if (!p.workspace || !cptx_mem_fill8(dev, p.workspace, 0, plan.workspace, err))
			return false;
	}
	cptx_launch *l = cptx_gemm_sm90_launch(program, dev, &t->opt, &p, err);
	bool ok = l != NULL;
	for (int i = 0; ok && i < (plan.workspace ? 2 : 1); i++) /* a second run finds the workspace as the first one left it */
		ok = cptx_launch_run(l, NULL, err) && cptx_device_synchronize(dev, err);
	cptx_launch_destroy(l);
	return ok && cptx_mem_read(dev, x->bytes, x->dev_d, x->nd * 4 + GUARD, err);
}

const char *gemm_trial_run(cptx_device *dev, const gemm_trial *t)
{
	data x = { .t = t };
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_program *program = NULL;

	said[0] = 0;
	bool ok = prepare(dev, &x, &err) && cptx_gemm_sm90_build(m, &t->opt, &err) &&
	          (program = cptx_device_load(dev, m, &(cptx_load_opt){ .target = "sm_90a" }, &err)) &&
	          launch(dev, &x, program, &err);
	if (!ok)
		snprintf(said, sizeof said, "%s", err.text);
	else
		compare(&x);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	uint64_t held[] = { x.dev_a, x.dev_b, x.dev_c, x.dev_d, x.dev_bias, x.workspace };
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		cptx_mem_free(dev, held[i]);
	free(x.a), free(x.b), free(x.c), free(x.bias), free(x.bytes);
	return said;
}
