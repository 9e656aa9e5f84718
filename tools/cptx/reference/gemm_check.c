/* SPDX-License-Identifier: MIT */
#include "reference/gemm_check.h"
#include "reference/measure.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096 /* poisoned bytes behind D and its factors, which must stay */, POISON = 0xff /* NaN in every type */ };
enum { ADDED_TO = 0x40 /* bytes of a D that rows are added to: elements of 3.004 */ };

/* ---- the reference: one thread an element, f64 sums of f32 operands, no shared memory and no tensor cores ---- */

/* n neighbours along K, four or one, of a row of A or a column of B, in f64, and on to the next ones; pitch: bytes between
 * two, where they are no neighbours in memory. */
static void read_some(cptx_kernel *k, bool across, cptx_val at, cptx_val pitch, uint32_t n, cptx_val v[4])
{
	cptx_val y = { 0 };

	if (!across && n == 4)
		y = cptx_ld(k, at, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32);
	for (uint32_t i = 0; i < n; i++) {
		cptx_val f = across || n < 4 ? cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32) : cptx_elem(y, i);
		v[i] = cptx_cvt(k, f, .dtype = CPTX_F64);
		if (across)
			cptx_add(k, at, pitch, .into = at);
	}
	if (!across)
		cptx_add(k, at, 4 * n, .into = at);
}

/* ref[i][j] = sum of A[i][l] * B[j][l], bound[i][j] = sum of their magnitudes */
static void build_reference(cptx_module *m, const gemm_subject *s, uint64_t depth)
{
	const uint32_t along = depth % 4 ? 1 : 4;
	cptx_kernel *k = cptx_kernel_begin(m, "gemm_reference", .block = { 16, 16 });
	cptx_val a = cptx_param(k, CPTX_PTR, "A"), b = cptx_param(k, CPTX_PTR, "B"), ref = cptx_param(k, CPTX_PTR, "ref");
	cptx_val bound = cptx_param(k, CPTX_PTR, "bound"), M = cptx_param(k, CPTX_U32, "M"), N = cptx_param(k, CPTX_U32, "N");
	cptx_val K = cptx_param(k, CPTX_U32, "K");
	cptx_val id = cptx_ctaid_x(k), across = cptx_div(k, cptx_add(k, N, 15), 16); /* grid.y would end at 65535 */
	cptx_val col = cptx_mad(k, cptx_rem(k, id, across), 16, cptx_tid_x(k), .mode = CPTX_LO);
	cptx_val row = cptx_mad(k, cptx_div(k, id, across), 16, cptx_tid_y(k), .mode = CPTX_LO);
	cptx_val pitch = cptx_shl(k, K, 2), sum = cptx_var(k, CPTX_F64, 0.0), mag = cptx_var(k, CPTX_F64, 0.0),
			 l = cptx_var(k, CPTX_U32, 0);

	cptx_exit(k, .when = cptx_setp(k, row, M, .cmp = CPTX_GE));
	cptx_exit(k, .when = cptx_setp(k, col, N, .cmp = CPTX_GE));
	cptx_mad_wide(k, row, s->a_across ? cptx_imm(4) : pitch, a, .into = a);
	cptx_mad_wide(k, col, s->b_across ? cptx_imm(4) : pitch, b, .into = b);
	cptx_val pitch_a = cptx_mul_wide(k, M, 4), pitch_b = cptx_mul_wide(k, N, 4);
	CPTX_FOR(k, l, K, along) {
		cptx_val u[4], v[4];
		read_some(k, s->a_across, a, pitch_a, along, u);
		read_some(k, s->b_across, b, pitch_b, along, v);
		for (uint32_t i = 0; i < along; i++) {
			cptx_fma(k, u[i], v[i], sum, .rnd = CPTX_RN, .into = sum);
			cptx_fma(k, cptx_abs(k, u[i]), cptx_abs(k, v[i]), mag, .rnd = CPTX_RN, .into = mag);
		}
	}
	cptx_val at =
		cptx_mul(k, cptx_add(k, cptx_mul_wide(k, row, N), cptx_cvt(k, col, .dtype = CPTX_U64)), 4, .mode = CPTX_LO);
	cptx_st(k, cptx_add(k, ref, at), cptx_cvt(k, sum, .rnd = CPTX_RN, .dtype = CPTX_F32), .space = CPTX_GLOBAL);
	cptx_st(k, cptx_add(k, bound, at), cptx_cvt(k, mag, .rnd = CPTX_RN, .dtype = CPTX_F32), .space = CPTX_GLOBAL);
}

/* ---- the run ---- */

/* One problem of the launch: operands, results, and what they must be. */
typedef struct bench {
	cptx_device *dev;
	const gemm_subject *s;
	const gemm_problem *p;
	gemm_operand a, b, c, bias; /* c, bias: where there are these */
	unsigned char *d;
	float *ref, *bound;
	uint64_t dev_d, count, d_bytes; /* count: elements of D, of all matrices */
	uint64_t rows;                  /* of D, of all matrices */
	uint32_t *matrix;               /* of each row of D: the matrix of B; NOBODYS: it is no expert's */
	uint64_t *k_first;              /* of experts along K: where the rows of each begin, and where those of the last end */
	uint64_t dev_counts;            /* with experts */
	uint32_t *from, *to;            /* gathered, scattered: the row of A and of D of each row, and its weight */
	float *weight, *rows_of_a;      /* rows_of_a: those that are gathered */
	uint64_t dev_from, dev_to, dev_weight;
	float *scale; /* of D, [block of columns][row], of several matrices one behind the other */
	uint64_t dev_scale, scale_bytes;
} bench;
enum { NOBODYS = -1, FACTOR_ROWS = 128 /* of B that share an f32 factor */, FACTOR_COLUMNS = 128 /* of D */ };

static uint32_t matrices(const gemm_problem *p) { return p->batch ? p->batch : 1; }

static bool is_along_k(const bench *t) { return t->s->experts == CPTX_GEMM_EXPERTS_K; }

/* Whose the rows are; of experts by counts at random, some of them 0, some beyond the rows that there are. */
static bool make_matrix(bench *t, cptx_error *err)
{
	const gemm_problem *p = t->p;
	const bool contiguous = t->s->experts == CPTX_GEMM_EXPERTS_CONTIGUOUS;
	const uint64_t usual = (contiguous ? p->m / matrices(p) : is_along_k(t) ? p->k / matrices(p) : p->m) + 1;
	uint32_t *counts = gemm_host(matrices(p) * sizeof *counts, err);
	uint64_t first = 0, s = p->seed * 2654435761u + 11;

	t->rows = contiguous ? p->m : p->m * matrices(p);
	t->k_first = gemm_host((matrices(p) + 1) * sizeof *t->k_first, err);
	if (!(t->matrix = gemm_host(t->rows * sizeof *t->matrix, err)) || !counts || !t->k_first) {
		free(counts);
		return false;
	}
	for (uint64_t i = 0; i < t->rows; i++)
		t->matrix[i] = t->s->experts && !is_along_k(t) ? (uint32_t)NOBODYS : (uint32_t)(i / p->m);
	for (uint32_t z = 0; z < matrices(p) && t->s->experts; z++) {
		counts[z] = z % 4 == 2 ? 0 : (uint32_t)((number_random(&s) >> 20) % (2 * usual));
		t->k_first[z] = first;
		first = is_along_k(t) ? (first + counts[z] < p->k ? first + counts[z] : p->k) : contiguous ? first : z * p->m;
		t->k_first[z + 1] = first;
		for (uint64_t i = 0; !is_along_k(t) && i < counts[z] && (contiguous ? first < t->rows : i < p->m); i++)
			t->matrix[first++] = z;
	}
	bool ok = !t->s->experts || ((t->dev_counts = cptx_mem_alloc(t->dev, matrices(p) * sizeof *counts, err)) &&
	                             cptx_mem_write(t->dev, t->dev_counts, counts, matrices(p) * sizeof *counts, err));
	free(counts);
	return ok;
}

/* Rows of A that are gathered, or of D that rows are added to: fewer than there are rows, so that some are used twice. */
static uint64_t other_rows(const bench *t) { return t->rows / 2 + 1; }

static uint64_t columns(const bench *t) { return t->s->swiglu ? t->p->n / 2 : t->p->n; }

/* Rows that the factors of D are for, side by side: all of experts whose rows lie behind one another, else those of a
 * matrix. */
static uint64_t scaled_rows(const bench *t) { return t->s->experts && !is_along_k(t) ? t->rows : t->p->m; }

/* The factor of an element of D. */
static uint64_t scale_at(const bench *t, uint64_t row, uint64_t col)
{
	const uint64_t rows = scaled_rows(t), blocks = columns(t) / FACTOR_COLUMNS;

	return (row / rows * blocks + col / FACTOR_COLUMNS) * cptx_gemm_scale_pitch(rows) + row % rows;
}

static bool make_scale(bench *t, cptx_error *err)
{
	if (!t->s->quantized)
		return true;
	t->scale_bytes = (scale_at(t, t->rows - 1, columns(t) - 1) + 1) * sizeof *t->scale;
	t->scale = gemm_host(t->scale_bytes + GUARD, err);
	return t->scale && (t->dev_scale = cptx_mem_alloc(t->dev, t->scale_bytes + GUARD, err)) &&
	       cptx_mem_fill8(t->dev, t->dev_scale, POISON, t->scale_bytes + GUARD, err);
}

/* Where rows come from and go to, and their weights. */
static bool make_places(bench *t, cptx_error *err)
{
	uint64_t s = t->p->seed * 40503u + 13;
	const uint64_t bytes = t->rows * 4;

	t->from = gemm_host(bytes, err), t->to = gemm_host(bytes, err), t->weight = gemm_host(bytes, err);
	for (uint64_t i = 0; err->code == CPTX_OK && i < t->rows; i++) {
		t->from[i] = (uint32_t)((number_random(&s) >> 20) % other_rows(t));
		t->to[i] = (uint32_t)((number_random(&s) >> 20) % other_rows(t));
		t->weight[i] = (float)((number_random(&s) >> 20) % 1024) / 1024;
	}
	return err->code == CPTX_OK && (t->dev_from = cptx_mem_alloc(t->dev, bytes, err)) &&
	       (t->dev_to = cptx_mem_alloc(t->dev, bytes, err)) && (t->dev_weight = cptx_mem_alloc(t->dev, bytes, err)) &&
	       cptx_mem_write(t->dev, t->dev_from, t->from, bytes, err) &&
	       cptx_mem_write(t->dev, t->dev_to, t->to, bytes, err) &&
	       cptx_mem_write(t->dev, t->dev_weight, t->weight, bytes, err);
}

/* The rows of A in the order in which they are multiplied. */
static bool gather_rows(bench *t, cptx_error *err)
{
	const uint64_t k = t->p->k;

	if (!t->s->gather)
		return true;
	t->rows_of_a = gemm_host(t->rows * k * sizeof *t->rows_of_a, err);
	for (uint64_t i = 0; t->rows_of_a && i < t->rows; i++)
		memcpy(t->rows_of_a + i * k, t->a.value + t->from[i] * k, k * sizeof *t->rows_of_a);
	return t->rows_of_a != NULL;
}

static bool prepare(bench *t, cptx_error *err)
{
	const gemm_problem *p = t->p;
	const gemm_subject *s = t->s;

	if (!make_matrix(t, err))
		return false;
	t->count = t->rows * p->n;
	if (((s->gather || s->scatter) && !make_places(t, err)) || !make_scale(t, err))
		return false;
	t->d_bytes = (s->scatter ? other_rows(t) : t->rows) * columns(t) * (cptx_type_bits(s->out) / 8);
	t->d = gemm_host(t->d_bytes + GUARD, err);
	t->ref = gemm_host(t->count * 4, err);
	t->bound = gemm_host(t->count * 4, err);
	t->dev_d = err->code == CPTX_OK ? cptx_mem_alloc(t->dev, t->d_bytes + GUARD, err) : 0;
	t->a = (gemm_operand){ .type = s->in,
		                   .scale = s->scale,
		                   .vec = s->vec,
		                   .block = 1,
		                   .together = s->experts != CPTX_GEMM_EXPERTS_NONE,
		                   .rows = p->m,
		                   .k = p->k,
		                   .across = s->a_across,
		                   .small = s->small,
		                   .count = is_along_k(t) ? 1 : (uint32_t)(t->rows / p->m) };
	t->b = t->a;
	if (s->gather)
		t->a.rows = other_rows(t), t->a.count = 1;
	t->b.weights = s->weights, t->b.zeros = s->zeros, t->b.group = s->group;
	t->b.type = s->in_b ? s->in_b : s->in, t->b.rows = p->n, t->b.across = s->b_across,
	t->b.count = is_along_k(t) ? 1 : matrices(p);
	t->b.block = FACTOR_ROWS, t->b.together = false;
	t->c = (gemm_operand){ .type = s->out, .rows = p->m, .k = p->n, .count = (uint32_t)(t->rows / p->m) };
	t->bias = (gemm_operand){ .type = CPTX_F32, .rows = 1, .k = p->n, .count = s->experts ? matrices(p) : 1 };
	return err->code == CPTX_OK && gemm_operand_make(&t->a, t->dev, p->seed * 2 + 1, err) &&
	       gemm_operand_make(&t->b, t->dev, p->seed * 2 + 2, err) &&
	       (!s->beta || gemm_operand_make(&t->c, t->dev, p->seed * 2 + 3, err)) &&
	       (!s->bias || gemm_operand_make(&t->bias, t->dev, p->seed * 2 + 4, err)) && gather_rows(t, err) &&
	       cptx_mem_fill8(t->dev, t->dev_d, POISON, t->d_bytes + GUARD, err) &&
	       (!s->scatter || cptx_mem_fill8(t->dev, t->dev_d, ADDED_TO, t->d_bytes, err));
}

static void release(bench *t)
{
	gemm_operand_free(&t->a, t->dev);
	gemm_operand_free(&t->b, t->dev);
	gemm_operand_free(&t->c, t->dev);
	gemm_operand_free(&t->bias, t->dev);
	cptx_mem_free(t->dev, t->dev_d);
	cptx_mem_free(t->dev, t->dev_counts);
	cptx_mem_free(t->dev, t->dev_from), cptx_mem_free(t->dev, t->dev_to), cptx_mem_free(t->dev, t->dev_weight);
	cptx_mem_free(t->dev, t->dev_scale);
	free(t->from), free(t->to), free(t->weight), free(t->rows_of_a), free(t->scale);
	free(t->matrix);
	free(t->k_first);
	free(t->d);
	free(t->ref);
	free(t->bound);
}

/* Element i of D, of all matrices, in f64, and the sum of its products' magnitudes. */
static double sum_of(const bench *t, uint64_t i, double *bound)
{
	uint64_t row = i / t->p->n, col = i % t->p->n, step_a, step_b;
	const uint64_t all[2] = { 0, t->p->k };
	const float *a = gemm_operand_row(&t->a, is_along_k(t) || t->rows_of_a ? 0 : row / t->p->m,
	                                  t->rows_of_a ? 0 : row % t->p->m, &step_a);
	const float *b = gemm_operand_row(&t->b, is_along_k(t) ? 0 : t->matrix[row], col, &step_b);
	const uint64_t *k = is_along_k(t) ? &t->k_first[t->matrix[row]] : all;
	double sum = 0;

	if (t->rows_of_a)
		a = t->rows_of_a + row * t->p->k;
	*bound = 0;
	for (uint64_t l = k[0]; l < k[1]; l++) {
		double v = (double)a[l * step_a] * (double)b[l * step_b];
		sum += v;
		*bound += fabs(v);
	}
	return sum;
}

static bool is_nobodys(const bench *t, uint64_t i) { return t->matrix[i / t->p->n] == (uint32_t)NOBODYS; }

/* The reference itself, at 64 places, against sums made on the host. */
static bool check_reference(const bench *t, cptx_error *err)
{
	uint64_t s = t->p->seed + 7;

	for (int i = 0; i < 64; i++) {
		uint64_t at = number_random(&s) % t->count;
		if (is_nobodys(t, at))
			continue;
		double bound, sum = sum_of(t, at, &bound);
		if (!(fabs(sum - (double)t->ref[at]) <= 1e-6 * bound)) {
			err->code = CPTX_E_WRONG;
			snprintf(err->text, sizeof err->text, "the reference kernel is wrong at element %llu: %g, not %g",
			         (unsigned long long)at, (double)t->ref[at], sum);
			return false;
		}
	}
	return true;
}

/* The emulator would take longer for the reference than for the kernel. */
static void reference_on_host(bench *t)
{
	for (uint64_t i = 0; i < t->count; i++) {
		if (is_nobodys(t, i))
			continue;
		double bound, sum = sum_of(t, i, &bound);
		t->ref[i] = (float)sum, t->bound[i] = (float)bound;
	}
}

static bool emulated(const cptx_device *dev)
{
	cptx_emu_counters c;

	return cptx_emu_get_counters(dev, &c);
}

/* Rows of one matrix of B from `row` on, so many, at[]: A, B, sums and bounds on the device. */
static bool reference_of_rows(bench *t, const cptx_program *program, const uint64_t at[4], uint64_t row, uint64_t rows,
                              cptx_error *err)
{
	const gemm_problem *p = t->p;
	const uint64_t n_d = rows * p->n, z = t->matrix[row], k0 = is_along_k(t) ? t->k_first[z] : 0;
	const uint64_t k = is_along_k(t) ? t->k_first[z + 1] - k0 : p->k, n_b = p->n * k;
	const float *a = (t->rows_of_a ? t->rows_of_a : t->a.value) + (is_along_k(t) ? k0 * p->m : row * p->k);
	cptx_launch_opt opt = { .grid = { (uint32_t)((p->n + 15) / 16 * ((rows + 15) / 16)) },
		                    CPTX_ARGS(at[0], at[1], at[2], at[3], (uint32_t)rows, (uint32_t)p->n, (uint32_t)k) };

	return cptx_mem_write(t->dev, at[0], a, rows * k * 4, err) &&
	       cptx_mem_write(t->dev, at[1], t->b.value + (is_along_k(t) ? k0 * p->n : z * n_b), n_b * 4, err) &&
	       cptx_launch_once(program, "gemm_reference", &opt, NULL, err) &&
	       cptx_mem_read(t->dev, t->ref + row * p->n, at[2], n_d * 4, err) &&
	       cptx_mem_read(t->dev, t->bound + row * p->n, at[3], n_d * 4, err);
}

/* Computes the reference on the device, one matrix after the other. */
static bool reference_on_device(bench *t, cptx_error *err)
{
	const gemm_problem *p = t->p;
	uint64_t n_a = p->m * p->k, n_b = p->n * p->k, n_d = p->m * p->n, at[4] = { 0 };
	const uint64_t size[4] = { n_a * 4, n_b * 4, n_d * 4, n_d * 4 };
	cptx_module *m = cptx_module_new(NULL);

	build_reference(m, t->s, is_along_k(t) ? 1 : p->k); /* of any number of rows along K */
	cptx_program *program = cptx_device_load(t->dev, m, &p->load, err);
	bool ok = program != NULL;
	for (int i = 0; i < 4 && ok; i++)
		ok = (at[i] = cptx_mem_alloc(t->dev, size[i], err)) != 0;
	for (uint64_t row = 0, end; row < t->rows && ok; row = end) {
		for (end = row + 1; end < t->rows && t->matrix[end] == t->matrix[row];)
			end++;
		if (t->matrix[row] != (uint32_t)NOBODYS)
			ok = reference_of_rows(t, program, at, row, end - row, err);
	}
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	for (int i = 0; i < 4; i++)
		cptx_mem_free(t->dev, at[i]);
	return ok && check_reference(t, err);
}

static bool make_reference(bench *t, cptx_error *err)
{
	if (!emulated(t->dev))
		return reference_on_device(t, err);
	reference_on_host(t);
	return true;
}

static double element(const bench *t, uint64_t i)
{
	const uint32_t size = cptx_type_bits(t->s->out) / 8;
	uint16_t h = 0;
	int32_t n;
	float f;

	if (t->s->out == CPTX_F32) {
		memcpy(&f, t->d + i * 4, sizeof f);
		return (double)f;
	}
	if (t->s->out == CPTX_S32) {
		memcpy(&n, t->d + i * 4, sizeof n);
		return n;
	}
	memcpy(&h, t->d + i * size, size);
	return number_value(t->s->out, h);
}

/* What f32 makes of a value that it cannot hold. */
static double in_f32(double v) { return fabs(v) > 0x1.fffffep127 ? copysign(INFINITY, v) : v; }

/* Element i of D before it is rounded, for a sum; the magnitudes of what it is made of are added to *terms. */
static double behind_sum(const bench *t, uint64_t i, double sum, double *terms)
{
	const gemm_subject *s = t->s;
	double of_sum = s->alpha ? (double)t->p->alpha * sum : sum;
	double c = s->beta ? (double)t->p->beta * (double)t->c.value[i] : 0;
	const uint64_t of_bias = s->experts ? t->matrix[i / t->p->n] * t->p->n : 0;
	double bias = s->bias ? (double)t->bias.value[of_bias + i % t->p->n] : 0;

	*terms += s->alpha || s->beta || s->bias ? fabs(of_sum) + fabs(c) + fabs(bias) : 0;
	return in_f32(in_f32(of_sum) + c) + bias;
}

/* Whether v is the infinity that a value of that magnitude may round to. */
static bool overflows(enum cptx_type type, double v, double ref, double allowed)
{
	double most = type == CPTX_F16 ? 65504 : type == CPTX_BF16 ? 0x1.fep127 : 0x1.fffffep127;

	return isinf(v) && (v > 0) == (ref > 0) && fabs(ref) + allowed > most;
}

static void note_wrong(const bench *t, uint32_t which, uint64_t i, double v, double ref, gemm_report *r)
{
	if (r->wrong++)
		return;
	const uint64_t n = columns(t), rows = t->s->scatter ? other_rows(t) : t->p->m;
	r->wrong_matrix = which + (uint32_t)(i / (rows * n));
	r->wrong_row = i / n % rows, r->wrong_column = i % n;
	r->wrong_value = v, r->wrong_reference = ref;
}

/* An element of a row that is no expert's is as it was. */
static void check_poison(const bench *t, uint32_t which, uint64_t i, gemm_report *r)
{
	const uint32_t size = cptx_type_bits(t->s->out) / 8;

	for (uint32_t b = 0; b < size; b++)
		if (t->d[i * size + b] != POISON) {
			note_wrong(t, which, i, element(t, i), (double)NAN, r);
			return;
		}
}

/* Half an ulp of a result, as a part of it. */
static double rounding_of(const gemm_subject *s)
{
	switch (s->out) {
	case CPTX_BF16: return ldexp(1, -9);
	case CPTX_F16: return ldexp(1, -12);
	case CPTX_E4M3: return ldexp(1, -5);
	case CPTX_E5M2: return ldexp(1, -4);
	default: return s->in == CPTX_S8 || s->in == CPTX_U8 ? ldexp(1, -25) : 0;
	}
}

static double largest_of(enum cptx_type type) { return type == CPTX_E4M3 ? 448 : type == CPTX_E5M2 ? 57344 : INFINITY; }

/* Of a type of 8 bits the largest number for what is too large. */
static double saturated(enum cptx_type type, double v) { return fmin(fmax(v, -largest_of(type)), largest_of(type)); }

/* Of a type of 8 bits half of the least number above 0: so much is lost of what is nearer to 0 than normal numbers. */
static double least_of(enum cptx_type type) { return type == CPTX_E4M3 ? 0x1p-10 : type == CPTX_E5M2 ? 0x1p-17 : 0; }

/* How much the sum of that element may be wrong, in f32. */
static double sum_allowed(const bench *t, uint64_t i)
{
	const bool integers = t->s->in == CPTX_S8 || t->s->in == CPTX_U8;
	const double grow = integers ? 0 : ldexp(sqrt((double)t->p->k) + 8, -24);

	return (t->s->alpha ? fabs((double)t->p->alpha) : 1) * grow * (double)t->bound[i];
}

/* An element of D before it is quantized, in f64, and how much it may be wrong. */
static double column_of(const bench *t, uint64_t row, uint64_t col, double *allowed)
{
	const uint64_t first = row * t->p->n, i = first + (t->s->swiglu ? col / 8 * 16 + col % 8 : col);
	double terms = 0, v = behind_sum(t, i, (double)t->ref[i], &terms);

	*allowed = sum_allowed(t, i) + ldexp(terms, -22);
	if (!t->s->swiglu)
		return v;
	double more = 0;
	const double gate = v / (1 + exp(-v)), up = behind_sum(t, i + 8, (double)t->ref[i + 8], &more);
	/* the slope of silu is at most 1.1; ex2.approx and rcp.approx have 22 bits */
	*allowed = 1.1 * *allowed * fabs(up) + (sum_allowed(t, i + 8) + ldexp(more, -22)) * fabs(gate) + 1e-5 * fabs(gate * up);
	return gate * up;
}

/* The factors of D are those of the largest magnitudes that the reference has, and nobody wrote between and behind them. */
static void compare_factors(const bench *t, uint32_t which, gemm_report *r)
{
	const uint64_t n = columns(t), all = (t->scale_bytes + GUARD) / sizeof *t->scale;
	const double most = largest_of(t->s->out);
	uint64_t written = 0, poison = 0;

	for (uint64_t row = 0; row < t->rows; row++)
		for (uint64_t col = 0; col < n && !is_nobodys(t, row * t->p->n); col += FACTOR_COLUMNS) {
			double amax = 0x1p-100, allowed = 0;
			for (uint64_t i = col; i < col + FACTOR_COLUMNS; i++) {
				double of_one;
				amax = fmax(amax, fabs(column_of(t, row, i, &of_one))), allowed = fmax(allowed, of_one);
			}
			const double v = (double)t->scale[scale_at(t, row, col)] * most;
			written++;
			if (!(fabs(v - amax) <= allowed + ldexp(amax, -22)))
				note_wrong(t, which, row * n + col, v, amax, r);
		}
	for (uint64_t i = 0; i < all; i++) {
		uint32_t bits;
		memcpy(&bits, &t->scale[i], sizeof bits);
		poison += bits == UINT32_MAX;
	}
	if (written + poison != all)
		note_wrong(t, which, t->rows * n - 1, (double)(all - poison), (double)written, r);
}

/* D whose columns are gated or quantized. */
static void compare_columns(const bench *t, uint32_t which, gemm_report *r)
{
	const uint64_t n = columns(t);
	const double rounding = 2 * rounding_of(t->s);

	if (t->s->quantized)
		compare_factors(t, which, r);
	r->elements += t->rows * n;
	for (uint64_t i = 0; i < t->rows * n; i++) {
		const uint64_t row = i / n, col = i % n;
		if (is_nobodys(t, row * t->p->n)) {
			check_poison(t, which, i, r);
			continue;
		}
		double allowed, ref = column_of(t, row, col, &allowed), v = element(t, i), factor = 1;
		if (t->s->quantized)
			factor = (double)t->scale[scale_at(t, row, col)], v *= factor;
		allowed += rounding * fabs(ref) + least_of(t->s->out) * factor + 1e-7;
		const double error = fabs(v - (t->s->quantized ? ref : saturated(t->s->out, ref)));
		if (error <= allowed || overflows(t->s->out, v, ref, allowed))
			r->worst = isfinite(error) ? fmax(r->worst, error / allowed) : r->worst;
		else
			note_wrong(t, which, i, v, ref, r);
	}
}

/* D that rows were added to, in any order. */
static bool compare_scattered(const bench *t, uint32_t which, gemm_report *r, cptx_error *err)
{
	const uint64_t n = columns(t), all = other_rows(t) * n;
	double *want = gemm_host(2 * all * sizeof *want, err);
	float before;

	if (!want)
		return false;
	double *allowed = want + all;
	memset(&before, ADDED_TO, sizeof before);
	for (uint64_t i = 0; i < all; i++)
		want[i] = (double)before, allowed[i] = ldexp((double)before * sqrt((double)t->rows), -22);
	r->elements += all;
	for (uint64_t i = 0; i < t->rows * n; i++) {
		if (is_nobodys(t, i / n * t->p->n))
			continue;
		const double by = (double)t->weight[i / n];
		const uint64_t at = t->to[i / n] * n + i % n;
		double of_sum, v = column_of(t, i / n, i % n, &of_sum);
		want[at] += by * v;
		/* each addition rounds what has come together so far */
		allowed[at] += by * (of_sum + ldexp(fabs(v) * sqrt((double)t->rows), -22));
	}
	for (uint64_t i = 0; i < all; i++) {
		const double v = element(t, i), error = fabs(v - want[i]);
		if (error <= allowed[i] + 1e-7)
			r->worst = fmax(r->worst, error / (allowed[i] + 1e-7));
		else
			note_wrong(t, which, i, v, want[i], r);
	}
	free(want);
	return true;
}

/*
 * Sums of K products in f32, in whatever order: the error grows with the square root of the additions and the magnitude of
 * what is added; tensor cores truncate, hence the factor.  Half an ulp more where the result is rounded to fewer bits.
 * Sums of integers are exact, and rounded once.  What is behind the sum is a few operations in f32.
 */
static void compare_all(const bench *t, uint32_t which, gemm_report *r)
{
	const double rounding = rounding_of(t->s);

	r->elements += t->count;
	for (uint64_t i = 0; i < t->count; i++) {
		if (is_nobodys(t, i)) {
			check_poison(t, which, i, r);
			continue;
		}
		double terms = 0, v = element(t, i), ref = behind_sum(t, i, (double)t->ref[i], &terms);
		double allowed = sum_allowed(t, i) + 2 * rounding * fabs(ref) + ldexp(terms, -22) + 1e-7 + least_of(t->s->out);
		ref = saturated(t->s->out, ref);
		const double error = fabs(v - ref);
		if (isinf(ref) ? v == ref : error <= allowed || overflows(t->s->out, v, ref, allowed)) {
			if (isfinite(error) && error / allowed > r->worst)
				r->worst = error / allowed;
			continue;
		}
		note_wrong(t, which, i, v, ref, r);
	}
}

static bool compare(const bench *t, uint32_t which, gemm_report *r, cptx_error *err)
{
	if (t->s->scatter) {
		if (!compare_scattered(t, which, r, err))
			return false;
	} else if (t->s->swiglu || t->s->quantized) {
		compare_columns(t, which, r);
	} else {
		compare_all(t, which, r);
	}
	for (uint64_t i = 0; i < GUARD; i++)
		if (t->d[t->d_bytes + i] != POISON && !r->wrong++) {
			r->wrong_matrix = which + matrices(t->p) - 1, r->wrong_row = t->p->m, r->wrong_column = i;
			r->wrong_value = t->d[t->d_bytes + i], r->wrong_reference = POISON;
		}
	return true;
}

static bool run(bench *t, cptx_module *module, gemm_report *r, cptx_error *err)
{
	const gemm_problem *p = t->p;
	gemm_matrices at[GEMM_LIST];
	cptx_program *program = cptx_device_load(t->dev, module, &p->load, err);

	for (uint32_t i = 0; i < t->s->list; i++)
		at[i] = (gemm_matrices){ t[i].a.at,   t[i].b.at,       t[i].dev_d,      t[i].a.scales,   t[i].b.scales,
			                     t[i].c.at,   t[i].bias.at,    t[i].dev_counts, t[i].b.zeros_at, t[i].dev_from,
			                     t[i].dev_to, t[i].dev_weight, t[i].dev_scale };
	cptx_launch *launch = program ? t->s->launch(t->s, t->dev, program, p, at, r, err) : NULL;
	bool ok = launch && cptx_launch_run(launch, NULL, err) && cptx_device_synchronize(t->dev, err);
	for (uint32_t i = 0, which = 0; i < t->s->list && ok; i++, which += matrices(p)) {
		ok = cptx_mem_read(t->dev, t[i].d, t[i].dev_d, t[i].d_bytes + GUARD, err) &&
		     (!t[i].scale || cptx_mem_read(t->dev, t[i].scale, t[i].dev_scale, t[i].scale_bytes + GUARD, err));
		ok = ok && compare(&t[i], which, r, err);
	}
	if (ok && p->bursts && !r->wrong && !emulated(t->dev))
		ok = measure_launch(t->dev, launch, p->bursts, &r->ms, err);
	cptx_launch_destroy(launch);
	cptx_program_destroy(program);
	return ok;
}

/* Operations of what is computed: with experts only the rows that these have. */
static double flop_of(const bench *t)
{
	const gemm_problem *p = t->p;
	uint64_t n = 0;

	if (t->k_first && is_along_k(t))
		return 2.0 * (double)p->m * (double)p->n * (double)t->k_first[matrices(p)];
	for (uint64_t i = 0; t->matrix && i < t->rows; i++)
		n += t->matrix[i] != (uint32_t)NOBODYS;
	return 2.0 * (double)n * (double)p->n * (double)p->k;
}

bool gemm_check_subject(cptx_device *dev, cptx_module *module, const gemm_subject *subject, const gemm_problem *p,
                        gemm_report *r, cptx_error *err)
{
	gemm_subject s = *subject;
	bench t[GEMM_LIST] = { { 0 } };
	bool ok = true;

	s.list = s.list ? s.list : 1;
	*r = (gemm_report){ 0 };
	*err = (cptx_error){ 0 };
	for (uint32_t i = 0; i < s.list && ok; i++) {
		t[i] = (bench){ .dev = dev, .s = &s, .p = &p[i] };
		ok = prepare(&t[i], err) && make_reference(&t[i], err);
		r->matrices += matrices(&p[i]);
		r->flop += flop_of(&t[i]);
	}
	ok = ok && run(t, module, r, err);
	for (uint32_t i = 0; i < s.list; i++)
		release(&t[i]);
	return ok;
}

void gemm_report_text(const gemm_report *r, char *text, size_t size)
{
	char of[40] = "", in[40] = "";

	if (r->matrices > 1) {
		snprintf(of, sizeof of, " of %u matrices", r->matrices);
		snprintf(in, sizeof in, "matrix %u, ", r->wrong_matrix);
	}
	if (r->wrong)
		snprintf(text, size, "%llu of %llu elements are wrong; the first at %srow %llu, column %llu: %g, not %g",
		         (unsigned long long)r->wrong, (unsigned long long)r->elements, in, (unsigned long long)r->wrong_row,
		         (unsigned long long)r->wrong_column, r->wrong_value, r->wrong_reference);
	else
		snprintf(text, size, "all %llu elements%s right; largest error %.2f of the tolerance",
		         (unsigned long long)r->elements, of, r->worst);
}

bool gemm_read_timeline(cptx_device *dev, const cptx_timeline_layout *l, uint64_t from, char **json, cptx_error *err)
{
	uint64_t size = cptx_timeline_bytes(l);
	void *data = gemm_host(size, err);
	size_t n = data && cptx_mem_read(dev, data, from, size, err) ? cptx_timeline_json(l, data, NULL, 0) + 1 : 0;

	*json = n ? gemm_host(n, err) : NULL;
	if (*json)
		cptx_timeline_json(l, data, *json, n);
	free(data);
	return *json != NULL;
}
