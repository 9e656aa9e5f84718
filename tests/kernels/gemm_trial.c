/* SPDX-License-Identifier: MIT */
#include "gemm_trial.h"
#include "reference/number.h"

#include <cptx/cptx.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 1024, POISON = 0xff };

static char said[CPTX_ERROR_TEXT + 200];

typedef struct data {
	const gemm_trial *t;
	const cptx_gemm_opt *o;
	uint32_t batch, vec;
	uint64_t rows;         /* of D, of all matrices */
	uint32_t *matrix;      /* of each of these: which of B; NOBODYS: it is no expert's */
	uint32_t counts_of[3]; /* matrices A, B, and C or D */
	uint64_t k_first[GEMM_TRIAL_EXPERTS], k_end[GEMM_TRIAL_EXPERTS]; /* of an expert whose rows lie along K; else all of K */
	int8_t *a, *b, *c;                                               /* a: M x K, b: N x K, c: M x N, each `batch` times */
	int8_t *bias;
	double *sa, *sb;              /* factors: M x K / vec, N x K / vec */
	uint64_t na, nb, nd, d_bytes; /* elements; bytes of D with all that lies between and behind its rows */
	uint8_t *bytes;               /* to and from the device */
	uint64_t dev_a, dev_b, dev_c, dev_d, dev_bias, dev_sa, dev_sb, workspace, table, counts;
	int8_t *factor, *add; /* of the visitors: M of each matrix, and N numbers */
	gemm_trial_args args;
	uint32_t *from, *to; /* gathered, scattered: the row of A and of D of each row */
	float *routing;      /* and its weight */
	uint64_t dev_from, dev_to, dev_routing;
} data;
enum { NOBODYS = -1 };

const char *gemm_trial_text(const gemm_trial *t)
{
	static char text[400];
	const cptx_gemm_opt *o = &t->opt;
	bool scaled = o->scale != CPTX_TYPE_NONE;

	snprintf(text, sizeof text,
	         "%s %s%s x %s%s%s -> %s%s%s%s%s%s%s%s%s%s%s%s%s, %llux%llux%llu x%u, tile %ux%u%s, %u stages, cluster %ux%u%s, "
	         "%u CTAs, "
	         "%u a multiprocessor, "
	         "group %u, seed %llu",
	         cptx_gemm_mma_name(o->mma), o->kind ? cptx_tcgen05_kind_name(o->kind) : "", cptx_type_name(o->a),
	         cptx_type_name(o->b), scaled ? " by " : "", scaled ? cptx_type_name(o->scale) : "", cptx_type_name(o->out),
	         o->a_m_major ? ", A M-major" : "", o->b_n_major ? ", B N-major" : "", o->alpha ? ", alpha" : "",
	         o->beta ? ", beta" : "", o->beta && t->in_place ? " in place" : "", o->bias ? ", bias" : "",
	         o->epilogue   ? ", epilogue"
	         : o->visitors ? ", visitors"
	                       : "",
	         o->experts ? ", experts " : "", o->experts ? cptx_gemm_experts_name(o->experts) : "",
	         o->gather ? ", gathered" : "", o->scatter ? ", scattered" : "", o->a_tmem ? ", A in tensor memory" : "",
	         (unsigned long long)t->m, (unsigned long long)t->n, (unsigned long long)t->k, t->batch ? t->batch : 1, o->bm,
	         o->bn, o->swap ? " swapped" : "", o->stages, o->cluster_m, o->cluster_n, o->stream_k ? ", stream-K" : "",
	         t->ctas, o->per_sm ? o->per_sm : 1, o->group, (unsigned long long)t->seed);
	return text;
}

cptx_val gemm_trial_epilogue(cptx_kernel *k, void *user, cptx_val v, cptx_val row, cptx_val col)
{
	(void)user;
	cptx_val place = cptx_add(k, cptx_and(k, row, 1), cptx_and(k, col, 3));
	return cptx_add(k, cptx_max(k, v, 0.0f), cptx_cvt(k, place, .rnd = CPTX_RN, .dtype = CPTX_F32));
}

const cptx_param_row gemm_trial_params[GEMM_TRIAL_PARAMS] = {
	CPTX_PARAM_ROW(gemm_trial_args, CPTX_PTR, factor),
	CPTX_PARAM_ROW(gemm_trial_args, CPTX_PTR, add),
	CPTX_PARAM_ROW(gemm_trial_args, CPTX_F32, by),
};

static cptx_val times_factor(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	(void)user;
	cptx_val at = cptx_add(k, x->visitor->address, cptx_mul_wide(k, cptx_as(x->row, CPTX_U32), 4));
	cptx_val factor = cptx_var(k, CPTX_F32, 0.0f);

	cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .when = x->inside, .into = factor);
	return cptx_mul(k, v, factor);
}

void gemm_trial_visitors(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x)
{
	(void)user;
	cptx_val factor = cptx_params_get(k, x->params, "factor");

	if (x->z.kind != CPTX_VAL_NONE)
		factor = cptx_mad_wide(k, cptx_mul(k, cptx_as(x->z, CPTX_U32), x->m, .mode = CPTX_LO), 4, factor);
	cptx_epilogue_add(k, e, CPTX_VISIT_CALL, .fn = times_factor, .address = factor);
	cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = cptx_params_get(k, x->params, "by"));
	cptx_epilogue_add(k, e, CPTX_VISIT_BIAS_COL, .address = cptx_params_get(k, x->params, "add"));
}

/* ---- experts ---- */

/* Where the rows come from and go to, and their weights.  Those of rows that are no expert's must not be used. */
static bool place_rows(cptx_device *dev, data *x, cptx_error *err)
{
	const gemm_trial *t = x->t;
	uint64_t s = t->seed * 40503u + 77;
	const uint64_t bytes = x->rows * 4;

	for (uint64_t r = 0; r < x->rows; r++) {
		const bool nobodys = x->matrix[r] == (uint32_t)NOBODYS;
		x->from[r] = nobodys ? UINT32_MAX : (uint32_t)(number_random(&s) >> 33) % (uint32_t)(t->rows_a + !t->rows_a);
		x->to[r] = nobodys ? UINT32_MAX : (uint32_t)(number_random(&s) >> 33) % (uint32_t)(t->rows_d + !t->rows_d);
		x->routing[r] = nobodys ? NAN : (float)((number_random(&s) >> 33) % 4) * 0.5f;
	}
	return cptx_mem_write(dev, x->dev_from, x->from, bytes, err) && cptx_mem_write(dev, x->dev_to, x->to, bytes, err) &&
	       cptx_mem_write(dev, x->dev_routing, x->routing, bytes, err);
}

/* Whose the rows are, by the counts of run number i: those of the trial, then the same the other way round. */
static bool count_rows(cptx_device *dev, data *x, unsigned i, cptx_error *err)
{
	const gemm_trial *t = x->t;
	const bool contiguous = t->opt.experts == CPTX_GEMM_EXPERTS_CONTIGUOUS;
	uint32_t counts[GEMM_TRIAL_EXPERTS];
	uint64_t row = 0;

	const bool along_k = t->opt.experts == CPTX_GEMM_EXPERTS_K;
	for (uint64_t r = 0; r < x->rows; r++)
		x->matrix[r] = t->opt.experts && !along_k ? (uint32_t)NOBODYS : (uint32_t)(r / t->m);
	if (!t->opt.experts)
		return true;
	for (uint32_t z = 0; z < x->batch; z++) {
		counts[z] = t->counts[i ? x->batch - 1 - z : z];
		x->k_first[z] = row, x->k_end[z] = row + counts[z] < t->k ? row + counts[z] : t->k;
		if (along_k) {
			row = x->k_end[z];
			continue;
		}
		row = contiguous ? row : z * t->m;
		for (uint64_t n = 0; n < counts[z] && (contiguous ? row < x->rows : n < t->m); n++)
			x->matrix[row++] = z;
	}
	return cptx_mem_write(dev, x->counts, counts, x->batch * sizeof *counts, err) && (!x->from || place_rows(dev, x, err));
}

/* Room for where rows come from and go to. */
static bool prepare_rows(cptx_device *dev, data *x, cptx_error *err)
{
	const uint64_t n = x->rows;

	x->from = malloc(n * sizeof *x->from), x->to = malloc(n * sizeof *x->to), x->routing = malloc(n * sizeof *x->routing);
	x->dev_from = cptx_mem_alloc(dev, n * 4, err), x->dev_to = cptx_mem_alloc(dev, n * 4, err);
	x->dev_routing = cptx_mem_alloc(dev, n * 4, err);
	return x->from && x->to && x->routing;
}

/* ---- matrices ---- */

static int8_t *draw(uint64_t n, enum cptx_type type, uint64_t *seed)
{
	int8_t *v = malloc(n ? n : 1);

	for (uint64_t i = 0; v && i < n; i++) {
		int x = (int)(number_random(seed) >> 33) % 5 - 2;
		v[i] = (int8_t)(type == CPTX_U8 ? abs(x) : x);
	}
	return v;
}

/* A matrix as it is stored: elements from row to row, from matrix to matrix, and in all. */
typedef struct stored {
	uint64_t off, ld, stride, all;
} stored;

static stored place_of(const data *x, unsigned which, uint64_t rows, uint64_t cols)
{
	static const gemm_trial_place dense = { .off = 0 };
	const gemm_trial_place *p = which < 4 ? &x->t->place[which] : &dense;
	stored s = { p->off, cols + p->pad, 0, 0 };

	s.ld = which == 2 && x->t->one_row_of_c ? 0 : s.ld;
	s.stride = p->shared ? 0 : (s.ld ? rows * s.ld : cols) + p->gap;
	/* up to the last element and no further, so that what a kernel reads behind it is found */
	const uint64_t count = which == 4 ? x->batch : x->counts_of[which < 2 ? which : 2];
	s.all = s.off + (count - 1) * s.stride + (rows - 1) * s.ld + cols;
	return s;
}

static stored stored_of(const data *x, unsigned which)
{
	const gemm_trial *t = x->t;
	const bool across = which == 0 ? x->o->a_m_major : which == 1 && x->o->b_n_major;
	const uint64_t rows = which == 1 ? t->n : t->m, cols = which < 2 ? t->k : t->n;

	return place_of(x, which, across ? cols : rows, across ? rows : cols);
}

/* `count` times rows x cols integers to the device; transposed where the matrix is stored by columns. */
static uint64_t upload(cptx_device *dev, data *x, const int8_t *v, enum cptx_type type, uint64_t count, uint64_t rows,
                       uint64_t cols, bool transposed, unsigned which, cptx_error *err)
{
	const stored s = place_of(x, which, transposed ? cols : rows, transposed ? rows : cols);
	uint32_t bits = number_packed_bits(type);
	uint64_t all = rows * cols, n = all * count, size = (s.all * bits + 7) / 8, to = cptx_mem_alloc(dev, size, err);

	memset(x->bytes, 0, size);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t z = i / all, row = i % all / cols, col = i % cols;
		uint64_t at = s.off + z * s.stride + (transposed ? col * s.ld + row : row * s.ld + col);
		if (!s.stride && z) /* one for all */
			break;
		if (!s.ld && row)
			continue;
		uint64_t word = number_bits(type, v[i]), bit = at * bits;
		for (uint32_t j = 0; j < bits; j++)
			x->bytes[(bit + j) / 8] |= (uint8_t)((word >> j & 1) << (bit + j) % 8);
	}
	return to && cptx_mem_write(dev, to, x->bytes, size, err) ? to + s.off * bits / 8 : 0;
}

/* Factors of all matrices, packed for the kernel; as numbers to *v. */
static uint64_t upload_factors(cptx_device *dev, data *x, uint64_t rows, double **v, uint64_t *seed, cptx_error *err)
{
	static const double some[] = { 0.5, 1, 2, 1.5 };
	uint64_t k = x->t->k, each = rows * ((k + x->vec - 1) / x->vec), size = cptx_gemm_scales_bytes(rows, k, x->vec);
	uint8_t *plain = malloc(each), *packed = malloc(size);
	uint64_t to = cptx_mem_alloc(dev, size * x->batch, err);

	*v = malloc(each * x->batch * sizeof **v);
	bool ok = to && plain && packed && *v;
	for (uint32_t z = 0; ok && z < x->batch; z++) {
		for (uint64_t i = 0; i < each; i++) {
			double f = some[(number_random(seed) >> 33) % (x->o->scale == CPTX_UE4M3 ? 4 : 3)];
			plain[i] = (uint8_t)number_bits(x->o->scale, f);
			(*v)[z * each + i] = f;
		}
		cptx_gemm_scales_pack(packed, plain, rows, k, x->vec);
		ok = cptx_mem_write(dev, to + z * size, packed, size, err);
	}
	free(plain), free(packed);
	return ok ? to : 0;
}

/* f32 factors of A (block 1) and of B (128 rows), as the header says of wgmma; *v: one for each row and 128 along K. */
static uint64_t upload_f32_factors(cptx_device *dev, data *x, uint64_t rows, uint64_t count, uint32_t block, double **v,
                                   uint64_t *seed, cptx_error *err)
{
	static const float some[] = { 0.5f, 1, 2, -1.5f };
	const uint64_t across = (x->t->k + x->vec - 1) / x->vec, pitch = cptx_gemm_scale_pitch(rows);
	const uint64_t blocks = (rows + block - 1) / block, of_one = block > 1 ? blocks * across : across * pitch;
	float *factor = malloc(of_one * count * sizeof *factor);
	uint64_t to = cptx_mem_alloc(dev, of_one * count * sizeof *factor, err);

	*v = malloc(rows * across * count * sizeof **v);
	for (uint64_t i = 0; factor && i < of_one * count; i++)
		factor[i] = some[(number_random(seed) >> 33) % 4];
	for (uint64_t i = 0; *v && factor && i < rows * across * count; i++) {
		const uint64_t z = i / (rows * across), row = i / across % rows, f = i % across;
		(*v)[i] = (double)factor[z * of_one + (block > 1 ? row / block * across + f : f * pitch + row)];
	}
	const bool ok = to && factor && *v && cptx_mem_write(dev, to, factor, of_one * count * sizeof *factor, err);
	free(factor);
	return ok ? to : 0;
}

static bool prepare(cptx_device *dev, data *x, cptx_error *err)
{
	const gemm_trial *t = x->t;
	uint64_t s = t->seed * 2654435761u + 99991, most;

	x->batch = t->batch ? t->batch : 1;
	x->rows = t->opt.experts == CPTX_GEMM_EXPERTS_CONTIGUOUS ? t->m : t->m * x->batch;
	x->matrix = malloc(x->rows * sizeof *x->matrix);
	const bool along_k = t->opt.experts == CPTX_GEMM_EXPERTS_K;
	x->counts_of[2] = (uint32_t)(x->rows / t->m);
	x->counts_of[0] = along_k ? 1 : x->counts_of[2], x->counts_of[1] = along_k ? 1 : x->batch;
	if (t->opt.gather)
		x->counts_of[0] = 1;
	const uint64_t rows_a = t->opt.gather ? t->rows_a : t->m;
	x->na = x->counts_of[0] * rows_a * t->k, x->nb = t->n * t->k * x->counts_of[1], x->nd = x->rows * t->n;
	most = x->nd > x->na ? x->nd : x->na;
	for (unsigned i = 0; i < 4; i++) {
		const stored at = stored_of(x, i);
		most = at.all > most ? at.all : most;
	}
	most = t->opt.scatter && t->rows_d * t->n > most ? t->rows_d * t->n : most;
	x->d_bytes = (t->opt.scatter ? t->rows_d * t->n : stored_of(x, 3).all) * 4 + GUARD;
	x->bytes = malloc(most * 4 + t->n * 4 * x->batch + GUARD);
	x->a = draw(x->na, x->o->a, &s), x->b = draw(x->nb, x->o->b, &s), x->c = draw(x->nd, x->o->out, &s);
	x->bias = draw(t->n * x->batch, CPTX_F32, &s);
	if (!x->bytes || !x->a || !x->b || !x->c || !x->bias || !x->matrix)
		return false;
	x->dev_a = upload(dev, x, x->a, x->o->a, x->counts_of[0], rows_a, t->k, x->o->a_m_major, 0, err);
	x->dev_b = upload(dev, x, x->b, x->o->b, x->counts_of[1], t->n, t->k, x->o->b_n_major, 1, err);
	x->dev_c = upload(dev, x, x->c, x->o->out, x->counts_of[2], t->m, t->n, false, 2, err);
	x->dev_bias = upload(dev, x, x->bias, CPTX_F32, x->batch, 1, t->n, false, 4, err);
	if ((t->opt.gather || t->opt.scatter) && !prepare_rows(dev, x, err))
		return false;
	x->counts = t->opt.experts ? cptx_mem_alloc(dev, x->batch * 4, err) : 0;
	if (x->vec && t->opt.scale == CPTX_F32) {
		const uint64_t rows = t->opt.experts ? x->rows : t->m;
		const uint64_t of_a = t->place[0].shared ? 1 : x->rows / rows, of_b = t->place[1].shared ? 1 : x->batch;
		x->dev_sa = upload_f32_factors(dev, x, rows, of_a, 1, &x->sa, &s, err);
		x->dev_sb = upload_f32_factors(dev, x, t->n, of_b, 128, &x->sb, &s, err);
	} else if (x->vec) {
		x->dev_sa = upload_factors(dev, x, t->m, &x->sa, &s, err);
		x->dev_sb = upload_factors(dev, x, t->n, &x->sb, &s, err);
	}
	if (x->o->visitors) {
		x->factor = draw(t->m * x->batch, CPTX_F32, &s), x->add = draw(t->n * x->batch, CPTX_F32, &s);
		if (!x->factor || !x->add)
			return false;
		x->args.factor = upload(dev, x, x->factor, CPTX_F32, 1, t->m * x->batch, 1, false, 4, err);
		x->args.add = upload(dev, x, x->add, CPTX_F32, 1, 1, t->n, false, 4, err);
		x->args.by = 2;
	}
	x->dev_d = cptx_mem_alloc(dev, x->d_bytes, err);
	return err->code == CPTX_OK && cptx_mem_fill8(dev, x->dev_d, POISON, x->d_bytes, err);
}

/* ---- results ---- */

/* alpha 0.5 and beta 2 keep all exact. */
static double expected(const data *x, uint64_t i)
{
	const gemm_trial *t = x->t;
	const bool along_k = t->opt.experts == CPTX_GEMM_EXPERTS_K;
	uint64_t at = i / t->n, z = x->matrix[at], row = t->opt.experts && !along_k ? at : at % t->m, col = i % t->n;
	const uint64_t at_a = t->opt.gather                   ? x->from[at]
	                      : t->place[0].shared || along_k ? at % t->m
	                                                      : at,
				   zb = t->place[1].shared || along_k ? 0 : z;
	const uint64_t at_c = t->one_row_of_c      ? (t->place[2].shared ? 0 : at / t->m * t->m)
	                      : t->place[2].shared ? at % t->m
	                                           : at;
	const int8_t *a = x->a + at_a * t->k, *b = x->b + (zb * t->n + col) * t->k;
	uint64_t factors = x->vec ? (t->k + x->vec - 1) / x->vec : 0;
	double v = 0;

	for (uint64_t k = along_k ? x->k_first[z] : 0; k < (along_k ? x->k_end[z] : t->k); k++) {
		double p = a[k] * b[k];
		if (factors)
			p *= x->sa[at_a * factors + k / x->vec] * x->sb[(zb * t->n + col) * factors + k / x->vec];
		v += p;
	}
	if (x->o->alpha)
		v *= 0.5;
	if (x->o->beta)
		v += 2.0 * x->c[at_c * t->n + col];
	if (x->o->bias)
		v += x->bias[(t->opt.experts ? z * t->n : 0) + col];
	if (x->o->epilogue)
		v = (v > 0 ? v : 0) + (double)(row % 2 + col % 4);
	if (x->o->visitors)
		v = v * x->factor[row + (t->opt.batched || along_k ? z * t->m : 0)] * (double)x->args.by + x->add[col];
	return v;
}

/* D that rows were added to, which was zeros. */
static bool compare_scattered(const data *x)
{
	const gemm_trial *t = x->t;
	const uint64_t n = t->rows_d * t->n;
	double *want = calloc(n, sizeof *want);
	bool ok = want != NULL;

	for (uint64_t i = 0; ok && i < x->nd; i++)
		if (x->matrix[i / t->n] != (uint32_t)NOBODYS)
			want[x->to[i / t->n] * t->n + i % t->n] += (double)x->routing[i / t->n] * expected(x, i);
	for (uint64_t i = 0; ok && i < n; i++) {
		float got;
		memcpy(&got, x->bytes + 4 * i, sizeof got);
		ok = (double)got == want[i];
		if (!ok)
			snprintf(said, sizeof said, "element (%llu, %llu) is %g, not %g", (unsigned long long)(i / t->n),
			         (unsigned long long)(i % t->n), (double)got, want[i]);
	}
	for (uint64_t i = 4 * n; ok && i < x->d_bytes; i++)
		if (x->bytes[i] != POISON) {
			snprintf(said, sizeof said, "byte %llu behind D was written", (unsigned long long)i);
			ok = false;
		}
	free(want);
	return ok;
}

/* A number that is too large for a float of 8 bits becomes the largest one that the type has. */
static double saturated(enum cptx_type type, double v)
{
	const double most = type == CPTX_E4M3 ? 448 : type == CPTX_E5M2 ? 57344 : INFINITY;

	return fmin(fmax(v, -most), most);
}

/* Rows that are no expert's stay as they were. */
static uint32_t bits_expected(const data *x, uint64_t i)
{
	if (x->matrix[i / x->t->n] != (uint32_t)NOBODYS)
		return (uint32_t)number_bits(x->o->out, saturated(x->o->out, expected(x, i)));
	return x->t->in_place ? (uint32_t)number_bits(x->o->out, x->c[i]) : UINT32_MAX >> (32 - cptx_type_bits(x->o->out));
}

static bool compare(const data *x)
{
	const gemm_trial *t = x->t;
	uint32_t size = cptx_type_bits(x->o->out) / 8;
	const stored s = stored_of(x, 3);

	if (t->opt.scatter)
		return compare_scattered(x);
	for (uint64_t i = 0; i < x->nd; i++) {
		const uint64_t at = s.off + i / (t->m * t->n) * s.stride + i / t->n % t->m * s.ld + i % t->n;
		uint32_t got = 0, want = bits_expected(x, i);
		memcpy(&got, x->bytes + at * size, size);
		memset(x->bytes + at * size, POISON, size);              /* all that is left must be that */
		if (got == want || (!((got | want) << (33 - 8 * size)))) /* zeros of either sign */
			continue;
		snprintf(said, sizeof said, "element (%llu, %llu) of matrix %llu is %g (0x%x), not %g",
		         (unsigned long long)(i / t->n % t->m), (unsigned long long)(i % t->n),
		         (unsigned long long)(i / t->n / t->m), number_value(x->o->out, got), got, number_value(x->o->out, want));
		return false;
	}
	for (uint64_t i = 0; i < x->d_bytes; i++)
		if (x->bytes[i] != POISON) {
			snprintf(said, sizeof said, "byte %llu beside or behind D was written", (unsigned long long)i);
			return false;
		}
	return true;
}

/* ---- runs ---- */

static bool get_workspace(cptx_device *dev, data *x, cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_plan plan;

	if (!cptx_gemm_check_problem(x->o, p, cptx_device_get_info(dev)->sms, &plan, err))
		return false;
	return !plan.workspace || ((x->workspace = p->workspace = cptx_mem_alloc(dev, plan.workspace, err)) &&
	                           cptx_mem_fill8(dev, p->workspace, 0, plan.workspace, err));
}

/* Grouped: the matrices of the batch as a list, with an empty problem in front of the last one. */
static cptx_launch *prepare_list(cptx_device *dev, data *x, const cptx_program *program, const cptx_gemm_problem *p,
                                 cptx_error *err)
{
	enum { MOST = 8 };
	const gemm_trial *t = x->t;
	cptx_gemm_problem list[MOST + 1];
	uint32_t n = 0, out = cptx_type_bits(x->o->out) / 8;

	for (uint32_t z = 0; z < x->batch && z < MOST; z++) {
		if (z + 1 == x->batch)
			list[n++] = (cptx_gemm_problem){ .n = 8, .k = 8 };
		list[n] = *p, list[n].batch = 0;
		list[n].a += z * t->m * t->k * number_packed_bits(x->o->a) / 8;
		list[n].b += z * t->n * t->k * number_packed_bits(x->o->b) / 8;
		list[n].c += z * t->m * t->n * out, list[n].d += z * t->m * t->n * out;
		list[n].scale_a += x->vec ? z * cptx_gemm_scales_bytes(t->m, t->k, x->vec) : 0;
		list[n].scale_b += x->vec ? z * cptx_gemm_scales_bytes(t->n, t->k, x->vec) : 0;
		n++;
	}
	x->table = cptx_mem_alloc(dev, n * (uint64_t)CPTX_GEMM_GROUP_BYTES, err);
	return cptx_gemm_launch_grouped(program, dev, x->o, list, n, x->table, err);
}

static void set_distances(const data *x, cptx_gemm_problem *p)
{
	uint64_t *const ld[] = { &p->lda, &p->ldb, &p->ldc, &p->ldd };
	uint64_t *const stride[] = { &p->stride_a, &p->stride_b, &p->stride_c, &p->stride_d };

	for (unsigned i = 0; i < 4 && x->o->strided; i++) {
		const stored s = stored_of(x, i);
		*ld[i] = s.ld ? s.ld : CPTX_GEMM_BROADCAST, *stride[i] = x->batch > 1 && !s.stride ? CPTX_GEMM_BROADCAST : s.stride;
	}
}

static bool launch(cptx_device *dev, data *x, const cptx_program *program, cptx_error *err)
{
	const gemm_trial *t = x->t;
	const uint32_t out = cptx_type_bits(x->o->out) / 8;
	cptx_gemm_problem p = { .size = CPTX_OPT_SIZE(cptx_gemm_problem),
		                    .m = t->m,
		                    .n = t->n,
		                    .k = t->k,
		                    .batch = t->batch,
		                    .a = x->dev_a,
		                    .b = x->dev_b,
		                    .c = t->in_place ? x->dev_d : x->dev_c,
		                    .d = x->dev_d + t->place[3].off * out,
		                    .bias = x->dev_bias,
		                    .scale_a = x->dev_sa,
		                    .scale_b = x->dev_sb,
		                    .ctas = t->ctas,
		                    .alpha = x->o->alpha ? 0.5f : 0,
		                    .beta = x->o->beta ? 2.0f : 0,
		                    .counts = x->counts,
		                    .gather = x->dev_from,
		                    .scatter = x->dev_to,
		                    .weights = x->dev_routing,
		                    .args = x->o->nparams ? &x->args : NULL };
	set_distances(x, &p);
	cptx_launch *l = x->o->grouped                    ? prepare_list(dev, x, program, &p, err)
	                 : get_workspace(dev, x, &p, err) ? cptx_gemm_launch(program, dev, x->o, &p, err)
	                                                  : NULL;
	bool ok = l != NULL;

	/* a second run finds the workspace as the first one left it; of experts it is the same launch with other counts */
	for (unsigned i = 0; ok && !*said && i < (x->workspace || x->o->experts ? 2 : 1); i++)
		ok = count_rows(dev, x, i, err) && cptx_mem_fill8(dev, x->dev_d, POISON, x->d_bytes, err) &&
		     (!t->opt.scatter || cptx_mem_fill8(dev, x->dev_d, 0, x->d_bytes - GUARD, err)) &&
		     (!t->in_place || cptx_mem_copy(dev, x->dev_d, x->dev_c, x->nd * out, err)) && cptx_launch_run(l, NULL, err) &&
		     cptx_device_synchronize(dev, err) && cptx_mem_read(dev, x->bytes, x->dev_d, x->d_bytes, err) &&
		     (compare(x) || *said);
	cptx_launch_destroy(l);
	return ok;
}

uint64_t gemm_trial_random(uint64_t seed)
{
	uint64_t s = seed * 0x9e3779b97f4a7c15u | 1;

	for (int i = 0; i < 4; i++)
		number_random(&s);
	return s;
}

bool gemm_trial_build(const gemm_trial *t, cptx_module *m, cptx_error *err)
{
	return cptx_gemm_build(m, &t->opt, err) && (!t->edit || t->edit(m, t->user));
}

/* The allocation of a matrix. */
static uint64_t base(uint64_t at, const gemm_trial *t, unsigned which, uint32_t bits)
{
	return at ? at - (uint64_t)t->place[which].off * bits / 8 : 0;
}

const char *gemm_trial_run(cptx_device *dev, const gemm_trial *t)
{
	data x = { .t = t, .o = &t->opt };
	cptx_gemm_plan plan;
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_program *program = NULL;

	said[0] = 0;
	bool ok = cptx_gemm_check(x.o, NULL, &plan, &err) && (x.vec = plan.vec, prepare(dev, &x, &err)) &&
	          gemm_trial_build(t, m, &err) &&
	          (program = cptx_device_load(dev, m, &(cptx_load_opt){ .target = cptx_device_get_info(dev)->target }, &err)) &&
	          launch(dev, &x, program, &err);
	if (!ok)
		snprintf(said, sizeof said, "%s", err.text);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	const uint32_t in_a = number_packed_bits(x.o->a), in_b = number_packed_bits(x.o->b), out = number_packed_bits(x.o->out);
	uint64_t held[] = { base(x.dev_a, t, 0, in_a),
		                base(x.dev_b, t, 1, in_b),
		                base(x.dev_c, t, 2, out),
		                x.dev_d,
		                x.dev_bias,
		                x.dev_sa,
		                x.dev_sb,
		                x.workspace,
		                x.table,
		                x.counts,
		                x.args.factor,
		                x.args.add,
		                x.dev_from,
		                x.dev_to,
		                x.dev_routing };
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		cptx_mem_free(dev, held[i]);
	free(x.a), free(x.b), free(x.c), free(x.bias), free(x.sa), free(x.sb), free(x.bytes), free(x.matrix), free(x.factor),
		free(x.add), free(x.from), free(x.to), free(x.routing);
	return said;
}
