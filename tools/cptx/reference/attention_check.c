/* SPDX-License-Identifier: MIT */
#include "reference/attention_tensor.h"
#include "reference/measure.h"
#include "reference/number.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 4096, HALVES = 65536, SPARE_PAGES = 3, MOST_DIM = 256 };

typedef struct bench {
	cptx_device *dev;
	const cptx_attention_opt *o;
	const attention_trial *t;
	cptx_attention_problem p; /* with what 0 stands for, and addresses */
	attention_tensor q, k, v, d;
	float *lse, *sinks;
	uint32_t *cu_q, *cu_k; /* where the rows of each batch begin, and behind the last */
	uint32_t *table;       /* pages of each batch */
	float *number;         /* of all patterns of Q, K and V */
	bool bytes;            /* these have 8 bits, else 16 */
	double ex2;            /* ex2_error of the plan */
	double *score;         /* of a row */
} bench;

static bool emulated(const cptx_device *dev)
{
	cptx_emu_counters c;

	return cptx_emu_get_counters(dev, &c);
}

/* ---- tensors ---- */

bool attention_tensor_make(cptx_device *dev, attention_tensor *x, enum cptx_type type, const cptx_attention_stride *given,
                           uint32_t batch, uint32_t heads, uint32_t rows, uint32_t dim, cptx_error *err)
{
	const uint64_t bytes = cptx_type_bits(type) / 8;
	uint64_t last = dim;
	double about = dim; /* the same, but it does not wrap around */

	*x = (attention_tensor){ .type = type, .batch = batch, .heads = heads, .rows = rows, .dim = dim, .s = *given };
	if (!x->s.batch && !x->s.head && !x->s.row)
		x->s = (cptx_attention_stride){ (uint64_t)heads * rows * dim, (uint64_t)rows * dim, dim };
	if (rows && heads && batch) {
		last += (rows - 1) * x->s.row + (heads - 1) * x->s.head + (batch - 1ull) * x->s.batch;
		about += (rows - 1.0) * x->s.row + (heads - 1.0) * x->s.head + (batch - 1.0) * x->s.batch;
	}
	x->bytes = last * bytes + ATTENTION_GUARD, about = about * bytes + ATTENTION_GUARD;
	x->host = about < 0x1p62 ? malloc(x->bytes) : NULL;
	if (!x->host) {
		*err = (cptx_error){ .code = CPTX_E_MEMORY };
		snprintf(err->text, sizeof err->text, "no memory for %.4g bytes", about);
		return false;
	}
	memset(x->host, ATTENTION_POISON, x->bytes);
	return (x->at = cptx_mem_alloc(dev, x->bytes, err)) != 0;
}

void attention_tensor_free(cptx_device *dev, attention_tensor *x)
{
	cptx_mem_free(dev, x->at);
	free(x->host);
}

unsigned char *attention_tensor_row(const attention_tensor *x, uint32_t batch, uint32_t head, uint32_t row)
{
	const uint64_t i = batch * x->s.batch + head * x->s.head + row * x->s.row;

	return x->host + i * (cptx_type_bits(x->type) / 8);
}

void attention_tensor_fill(const attention_tensor *x, uint64_t seed)
{
	uint16_t draw[DRAWS];
	uint64_t s = seed * 2654435761u + 88172645463325252u, r = 0;

	for (int i = 0; i < DRAWS; i++) {
		double sum = -6;
		for (int j = 0; j < 12; j++)
			sum += (double)(number_random(&s) >> 11) / 9007199254740992.0;
		draw[i] = (uint16_t)number_bits(x->type, sum);
	}
	for (uint32_t z = 0; z < x->batch * x->heads; z++)
		for (uint32_t i = 0; i < x->rows; i++) {
			unsigned char *row = attention_tensor_row(x, z / x->heads, z % x->heads, i);
			for (uint32_t j = 0; j < x->dim; j++, r >>= 12) {
				r = j % 5 ? r : number_random(&s);
				if (cptx_type_bits(x->type) == 8)
					row[j] = (unsigned char)draw[r % DRAWS];
				else
					((uint16_t *)(void *)row)[j] = draw[r % DRAWS];
			}
		}
}

/* ---- lengths and pages ---- */

uint32_t attention_length(uint64_t seed, uint32_t most, uint32_t batch, bool of_q)
{
	uint64_t s = seed * 977 + batch * 2 + of_q + 5;

	number_random(&s);
	return batch ? (uint32_t)(number_random(&s) % (most + 1ull)) : most;
}

bool attention_add_rows(uint32_t *sum, uint32_t more)
{
	*sum = more > UINT32_MAX - *sum ? UINT32_MAX : *sum + more;
	return *sum < UINT32_C(1) << 29;
}

uint32_t attention_rows_beside(uint64_t seed, bool behind, bool of_q)
{
	enum { MOST = 20 };
	uint64_t s = seed * 953 + behind * 2u + of_q + 7;

	number_random(&s);
	return (uint32_t)(number_random(&s) % (MOST + 1));
}

static uint32_t length_of(const attention_trial *t, const cptx_attention_opt *o, uint32_t batch, bool of_q)
{
	const uint32_t most = of_q ? t->p.queries : t->p.keys;

	return o->varlen ? attention_length(t->seed, most, batch, of_q) : most;
}

static uint32_t pages_of(const cptx_attention_opt *o, uint32_t keys) { return (keys + o->page - 1) / o->page; }

void attention_trial_complete(attention_trial *t, const cptx_attention_opt *o)
{
	cptx_attention_problem *p = &t->p;

	if (o->varlen) {
		p->total_queries = attention_rows_beside(t->seed, false, true) + attention_rows_beside(t->seed, true, true);
		p->total_keys = attention_rows_beside(t->seed, false, false) + attention_rows_beside(t->seed, true, false);
	}
	if (o->page)
		p->total_keys = 0, p->pages = SPARE_PAGES, p->table_pitch = pages_of(o, p->keys);
	for (uint32_t i = 0; (o->varlen || o->page) && i < p->batch; i++) {
		const uint32_t keys = length_of(t, o, i, false);
		if (!attention_add_rows(&p->total_queries, o->varlen ? length_of(t, o, i, true) : 0) ||
		    !attention_add_rows(&p->total_keys, o->varlen && !o->page ? keys : 0) ||
		    (o->page && !attention_add_rows(&p->pages, pages_of(o, keys))))
			return;
	}
}

/* Pages of all batches, drawn without repeating one; entries that no key needs stay poison. */
static void fill_table(bench *b)
{
	const cptx_attention_problem *p = &b->p;
	uint64_t s = b->t->seed + 77;
	uint32_t *left = malloc((p->pages + 1ull) * sizeof *left), n = p->pages;

	for (uint32_t i = 0; left && i < n; i++)
		left[i] = i;
	for (uint32_t i = 0; left && i < p->batch; i++)
		for (uint32_t j = 0; j < pages_of(b->o, b->cu_k[i + 1] - b->cu_k[i]); j++) {
			const uint32_t k = (uint32_t)(number_random(&s) % n);
			b->table[(uint64_t)i * p->table_pitch + j] = left[k];
			left[k] = left[--n];
		}
	free(left);
}

static uint64_t table_bytes(const bench *b) { return ((uint64_t)b->p.batch * b->p.table_pitch + 1) * sizeof *b->table; }

/* Memory of the device with these bytes. */
static uint64_t upload(const bench *b, const void *from, uint64_t bytes, cptx_error *err)
{
	const uint64_t to = cptx_mem_alloc(b->dev, bytes, err);

	return to && cptx_mem_write(b->dev, to, from, bytes, err) ? to : 0;
}

static bool prepare_lists(bench *b, cptx_error *err)
{
	cptx_attention_problem *p = &b->p;
	const uint64_t cu_bytes = (p->batch + 1ull) * sizeof *b->cu_q, sink_bytes = (p->heads + 1ull) * sizeof *b->sinks;
	uint64_t s = b->t->seed + 99;

	b->cu_q = calloc(1, cu_bytes), b->cu_k = calloc(1, cu_bytes), b->sinks = calloc(1, sink_bytes);
	b->table = malloc(table_bytes(b));
	if (!b->cu_q || !b->cu_k || !b->sinks || !b->table)
		return false;
	memset(b->table, ATTENTION_POISON, table_bytes(b));
	if (b->o->varlen) {
		b->cu_q[0] = attention_rows_beside(b->t->seed, false, true);
		b->cu_k[0] = attention_rows_beside(b->t->seed, false, false);
	}
	for (uint32_t i = 0; i < p->batch; i++) {
		b->cu_q[i + 1] = b->cu_q[i] + length_of(b->t, b->o, i, true);
		b->cu_k[i + 1] = b->cu_k[i] + length_of(b->t, b->o, i, false);
	}
	for (uint32_t i = 0; i < p->heads; i++) /* from -3 to 3, and a head without one */
		b->sinks[i] = i % 5 == 4 ? -INFINITY : (float)(number_random(&s) % 601) / 100 - 3;
	if (b->o->page)
		fill_table(b);
	if (b->o->varlen &&
	    (!(p->cu_queries = upload(b, b->cu_q, cu_bytes, err)) || !(p->cu_keys = upload(b, b->cu_k, cu_bytes, err))))
		return false;
	return (!b->o->sinks || (p->sinks = upload(b, b->sinks, sink_bytes, err))) &&
	       (!b->o->page || (p->page_table = upload(b, b->table, table_bytes(b), err)));
}

/* Rows of LSE. */
static uint64_t lse_rows(const bench *b)
{
	return (uint64_t)b->p.heads * (b->o->varlen ? b->p.total_queries : (uint64_t)b->p.batch * b->p.queries);
}

static bool prepare(bench *b, cptx_error *err)
{
	const cptx_attention_opt *o = b->o;
	cptx_attention_problem *p = &b->p;
	const uint32_t dim_v = o->dim_v ? o->dim_v : o->dim;
	const uint64_t lses = lse_rows(b) * sizeof(float) + ATTENTION_GUARD;
	const uint32_t q_rows = o->varlen ? p->total_queries : p->queries, q_batch = o->varlen ? 1 : p->batch;
	const uint32_t k_rows = o->page     ? o->page
	                        : o->varlen ? p->total_keys
	                                    : p->keys,
				   k_batch = o->page     ? p->pages
	                         : o->varlen ? 1
	                                     : p->batch;

	/* the lists come last: where the tensors have no room, not even the lists may have */
	if (!attention_tensor_make(b->dev, &b->q, o->in, &p->q_stride, q_batch, p->heads, q_rows, o->dim, err) ||
	    !attention_tensor_make(b->dev, &b->k, o->in, &p->k_stride, k_batch, p->kv_heads, k_rows, o->dim, err) ||
	    !attention_tensor_make(b->dev, &b->v, o->in, &p->v_stride, k_batch, p->kv_heads, k_rows, dim_v, err) ||
	    !attention_tensor_make(b->dev, &b->d,
	                           o->out               ? o->out
	                           : o->in == CPTX_E4M3 ? CPTX_BF16
	                                                : o->in,
	                           &p->o_stride, q_batch, p->heads, q_rows, dim_v, err) ||
	    !prepare_lists(b, err))
		return false;
	attention_tensor_fill(&b->q, 3 * b->t->seed + 1);
	attention_tensor_fill(&b->k, 3 * b->t->seed + 2);
	attention_tensor_fill(&b->v, 3 * b->t->seed + 3);
	b->lse = malloc(lses), b->number = malloc(HALVES * sizeof(float)), b->score = malloc((p->keys + 1ull) * sizeof(double));
	p->lse = cptx_mem_alloc(b->dev, lses, err);
	if (!b->lse || !b->number || !b->score || !p->lse)
		return false;
	memset(b->lse, ATTENTION_POISON, lses);
	for (uint32_t i = 0; i < HALVES; i++)
		b->number[i] = (float)number_value(o->in, i & ((1u << cptx_type_bits(o->in)) - 1));
	p->q = b->q.at, p->k = b->k.at, p->v = b->v.at, p->o = b->d.at;
	const attention_tensor *all[] = { &b->q, &b->k, &b->v, &b->d };
	for (int i = 0; i < 4; i++)
		if (!cptx_mem_write(b->dev, all[i]->at, all[i]->host, all[i]->bytes, err))
			return false;
	return cptx_mem_write(b->dev, p->lse, b->lse, lses, err);
}

static void release(bench *b)
{
	attention_tensor *all[] = { &b->q, &b->k, &b->v, &b->d };
	const uint64_t lists[] = { b->p.lse, b->p.sinks, b->p.cu_queries, b->p.cu_keys, b->p.page_table };

	for (int i = 0; i < 4; i++) {
		attention_tensor_free(b->dev, all[i]);
	}
	for (int i = 0; i < 5; i++)
		cptx_mem_free(b->dev, lists[i]);
	free(b->lse);
	free(b->sinks);
	free(b->cu_q);
	free(b->cu_k);
	free(b->table);
	free(b->number);
	free(b->score);
}

/* ---- the reference ---- */

/* Where a row stands, and what it must be. */
typedef struct row {
	uint32_t batch, head, query;
	uint32_t queries, keys;             /* of its sequence */
	int64_t first, end;                 /* keys that count */
	double max, sum, largest;           /* of the scores, and of their magnitudes */
	double off;                         /* the largest sum of the magnitudes of what a score is the sum of */
	double o[MOST_DIM], size[MOST_DIM]; /* and the sums of the magnitudes of what is added */
} row;

static void find_keys(const bench *b, row *r)
{
	const cptx_attention_opt *o = b->o;
	const cptx_attention_problem *p = &b->p;
	const int64_t place = (int64_t)r->query + (o->top_left ? 0 : (int64_t)r->keys - r->queries);

	r->first = 0, r->end = r->keys;
	if (o->causal || o->window)
		r->end = place + (o->causal ? 0 : (int64_t)p->window_right) + 1;
	if (o->window && place - (int64_t)p->window_left > 0)
		r->first = place - (int64_t)p->window_left;
	r->end = r->end > (int64_t)r->keys ? (int64_t)r->keys : r->end;
}

/* The row of Q or O. */
static unsigned char *query_at(const bench *b, const attention_tensor *x, const row *r)
{
	return b->o->varlen ? attention_tensor_row(x, 0, r->head, b->cu_q[r->batch] + r->query)
	                    : attention_tensor_row(x, r->batch, r->head, r->query);
}

/* A row of K or V. */
static const unsigned char *key_at(const bench *b, const attention_tensor *x, const row *r, int64_t key)
{
	const uint32_t head = r->head / (b->p.heads / b->p.kv_heads), k = (uint32_t)key;

	if (b->o->page)
		return attention_tensor_row(x, b->table[(uint64_t)r->batch * b->p.table_pitch + k / b->o->page], head,
		                            k % b->o->page);
	if (b->o->varlen)
		return attention_tensor_row(x, 0, head, b->cu_k[r->batch] + k);
	return attention_tensor_row(x, r->batch, head, k);
}

/* The numbers of a row of Q, K or V. */
static void read_row(const bench *b, const unsigned char *from, uint32_t n, float *to)
{
	const uint16_t *halves = (const uint16_t *)(const void *)from;

	for (uint32_t i = 0; i < n; i++)
		to[i] = b->number[b->bytes ? from[i] : halves[i]];
}

/* The product of rows of Q and K; a head has a multiple of 8 elements, and sums beside one another do not wait for each
 * other. */
static double dot(const float *q, const float *k, uint32_t n)
{
	double sum[4] = { 0 };

	for (uint32_t i = 0; i < n; i += 4)
		for (uint32_t j = 0; j < 4; j++)
			sum[j] += (double)q[i + j] * (double)k[i + j];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static double score_of(const bench *b, row *r, const float *q, int64_t key)
{
	const cptx_attention_problem *p = &b->p;
	float k[MOST_DIM];

	if (b->t->mask && !b->t->mask(b->t->user, r->batch, r->head, r->query, (uint32_t)key))
		return -INFINITY;
	read_row(b, key_at(b, &b->k, r, key), b->o->dim, k);
	double s = dot(q, k, b->o->dim) * (double)p->scale, magnitude = 0;
	for (uint32_t i = 0; i < b->o->dim; i++)
		magnitude += fabs((double)q[i] * (double)k[i]) * (double)p->scale;
	r->off = magnitude > r->off ? magnitude : r->off;
	if (b->o->softcap)
		s = (double)p->softcap * tanh(s / (double)p->softcap);
	return b->t->score ? b->t->score(b->t->user, s, r->batch, r->head, r->query, (uint32_t)key) : s;
}

/* Half an ulp of a number as a part of it. */
static double half_ulp(enum cptx_type type)
{
	return type == CPTX_E4M3 ? 0x1p-4 : type == CPTX_BF16 ? 0x1p-8 : type == CPTX_F16 ? 0x1p-11 : 0x1p-24;
}

/* What probabilities are rounded to. */
static enum cptx_type type_of_p(const cptx_attention_opt *o)
{
	return o->in == CPTX_E4M3 && o->mma == CPTX_ATTENTION_SYNC ? CPTX_F16 : o->in;
}

static void compute(const bench *b, row *r)
{
	float q[MOST_DIM], v[MOST_DIM];
	const double v_scale = b->p.v_scale != 0 ? (double)b->p.v_scale : 1;
	/* probabilities below that lose bits, and those below half an ulp of it are 0; a sink may make all of a row so small */
	const double least = b->o->in == CPTX_BF16 ? 0 : 0x1p-14, half = half_ulp(type_of_p(b->o));

	read_row(b, query_at(b, &b->q, r), b->o->dim, q);
	find_keys(b, r);
	r->max = b->o->sinks ? (double)b->sinks[r->head] : -INFINITY, r->sum = r->largest = r->off = 0;
	memset(r->o, 0, sizeof r->o), memset(r->size, 0, sizeof r->size);
	for (int64_t j = r->first; j < r->end; j++) {
		const double s = b->score[j] = score_of(b, r, q, j);
		r->max = s > r->max ? s : r->max;
		r->largest = isfinite(s) && fabs(s) > r->largest ? fabs(s) : r->largest;
	}
	if (b->o->sinks && r->max > -INFINITY)
		r->sum = exp((double)b->sinks[r->head] - r->max);
	for (int64_t j = r->first; j < r->end && r->max > -INFINITY; j++) {
		const double e = exp(b->score[j] - r->max), size = fmax(e, fmin(least, e / half));
		r->sum += e;
		if (!(e > 0))
			continue;
		read_row(b, key_at(b, &b->v, r, j), b->v.dim, v);
		for (uint32_t i = 0; i < b->v.dim; i++) {
			const double x = (double)v[i] * v_scale;
			r->o[i] += e * x, r->size[i] += size * fabs(x);
		}
	}
}

/* ---- comparing ---- */

double attention_tensor_value(const attention_tensor *x, const unsigned char *from)
{
	float f;
	uint16_t h;

	if (x->type == CPTX_F32) {
		memcpy(&f, from, sizeof f);
		return (double)f;
	}
	memcpy(&h, from, sizeof h);
	return number_value(x->type, h);
}

void attention_judge(attention_report *rep, uint32_t batch, uint32_t head, uint32_t query, uint32_t col, double value,
                     double reference, double allowed)
{
	const double error = value == reference ? 0 : fabs(value - reference);

	rep->compared++;
	if (col != UINT32_MAX && isfinite(error))
		rep->rms += error * error;
	if (error <= allowed) {
		if (allowed > 0 && error / allowed > rep->worst)
			rep->worst = error / allowed;
		return;
	}
	if (!rep->wrong++) {
		rep->batch = batch, rep->head = head, rep->row = query, rep->col = col;
		rep->value = value, rep->reference = reference;
	}
}

/* What the tensor cores of sm_90 cut off the sum of n products of 8 bits, as a part of it: 32 of them are added at once, and
 * 13 bits behind the point are kept. */
static double fp8_cut(double n) { return 0x1p-13 * (n / 32 + 1); }

/*
 * P and O are rounded once each, so the error is half an ulp of what is added and of the result, and a bit more by sums in
 * f32 (of a score an ulp of the sum of the magnitudes, for its products may cancel), ex2.approx and, with a soft cap,
 * tanh.approx (2^-11 of its result), which change a score a little.  A polynomial in place of ex2.approx is wrong by what
 * the plan says, in O above and below the line.
 */
static void compare_row(const bench *b, const row *r, attention_report *rep, bool once)
{
	const cptx_attention_problem *p = &b->p;
	/* what multiplies e4m3 with sums of few bits: by mma.sync scores alone, by tcgen05 nothing */
	const bool cut = b->o->in == CPTX_E4M3 && b->o->mma != CPTX_ATTENTION_TCGEN05;
	const bool fp8 = cut && b->o->mma == CPTX_ATTENTION_WGMMA;
	const double half = half_ulp(type_of_p(b->o)), out = half_ulp(b->d.type);
	const double score =
		(b->o->softcap ? 0x1p-10 : 0x1p-20) * (r->largest + 1) + (cut ? fp8_cut(b->o->dim) : 0x1p-24) * r->off;
	const uint32_t bytes = cptx_type_bits(b->d.type) / 8;
	unsigned char *o = query_at(b, &b->d, r);

	for (uint32_t i = 0; i < b->d.dim; i++) {
		const double sum = r->sum > 0 ? r->sum : 1, right = r->o[i] / sum, size = r->size[i] / sum;
		const double sums = fp8 ? fp8_cut((double)(r->end - r->first)) : 0x1p-16;
		const double allowed = (1.01 * half + 2 * (score + b->ex2) + sums) * size + 1.01 * out * fabs(right);
		attention_judge(rep, r->batch, r->head, r->query, i, attention_tensor_value(&b->d, o + i * bytes), right,
		                allowed + (b->d.type == CPTX_F16 ? 0x1p-24 : 0));
	}
	if (once) /* what is not poison in the end was written by mistake */
		memset(o, ATTENTION_POISON, (size_t)b->d.dim * bytes);
	if (!b->o->lse)
		return;
	const uint64_t of_head = b->o->varlen ? (uint64_t)r->head * p->total_queries + b->cu_q[r->batch]
	                                      : ((uint64_t)r->batch * p->heads + r->head) * p->queries;
	float *lse = &b->lse[of_head + r->query];
	const double right = r->sum > 0 ? r->max + log(r->sum) : -INFINITY;
	attention_judge(rep, r->batch, r->head, r->query, UINT32_MAX, (double)*lse, right,
	                isfinite(right) ? 0x1p-20 * (fabs(right) + 1) + score + b->ex2 : 0);
	if (once)
		memset(lse, ATTENTION_POISON, sizeof *lse);
}

uint64_t attention_strays(const void *from, uint64_t bytes)
{
	const unsigned char *c = from;
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n += c[i] != ATTENTION_POISON;
	return n;
}

static void compare_head(bench *b, row *r, attention_report *rep, uint32_t most, uint64_t *seed)
{
	const uint32_t rows = most < r->queries ? most : r->queries;

	rep->elements += (uint64_t)r->queries * (b->d.dim + (b->o->lse ? 1 : 0));
	for (uint32_t i = 0; i < rows; i++) {
		r->query = rows < r->queries ? (uint32_t)(number_random(seed) % r->queries) : i;
		compute(b, r);
		compare_row(b, r, rep, most == UINT32_MAX);
	}
}

static bool compare(bench *b, attention_report *rep, cptx_error *err)
{
	const cptx_attention_problem *p = &b->p;
	const uint64_t lses = lse_rows(b) * sizeof(float) + ATTENTION_GUARD;
	const uint32_t most = b->t->rows && b->t->rows < p->queries ? b->t->rows : UINT32_MAX;
	uint64_t seed = b->t->seed + 11;
	row r = { 0 };

	if (!cptx_mem_read(b->dev, b->d.host, b->d.at, b->d.bytes, err) || !cptx_mem_read(b->dev, b->lse, p->lse, lses, err))
		return false;
	for (uint32_t z = 0; z < p->batch * p->heads; z++) {
		r.batch = z / p->heads, r.head = z % p->heads;
		r.queries = b->cu_q[r.batch + 1] - b->cu_q[r.batch], r.keys = b->cu_k[r.batch + 1] - b->cu_k[r.batch];
		compare_head(b, &r, rep, most, &seed);
	}
	rep->rms = rep->compared ? sqrt(rep->rms / (double)rep->compared) : 0;
	rep->stray =
		most == UINT32_MAX && !rep->wrong && attention_strays(b->d.host, b->d.bytes) + attention_strays(b->lse, lses);
	rep->wrong += rep->stray;
	return true;
}

bool attention_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_opt *o, const attention_trial *t,
                         attention_report *r, cptx_error *err)
{
	attention_trial completed = *t;
	attention_trial_complete(&completed, o);
	bench b = { .dev = dev, .o = o, .t = t, .p = completed.p, .bytes = cptx_type_bits(o->in) == 8 };

	*r = (attention_report){ .worst = 0 };
	*err = (cptx_error){ .code = CPTX_OK };
	if (!cptx_attention_check_problem(o, &b.p, cptx_device_get_info(dev)->sms, &r->plan, err))
		return false;
	b.p.kv_heads = b.p.kv_heads ? b.p.kv_heads : b.p.heads;
	b.ex2 = r->plan.ex2_error;
	cptx_program *program = cptx_device_load(dev, module, &t->load, err);
	bool ok = program && prepare(&b, err);
	cptx_launch *l = ok ? cptx_attention_launch(program, dev, o, &b.p, err) : NULL;
	b.p.scale = b.p.scale != 0 ? b.p.scale : (float)(1 / sqrt(o->dim));
	ok = l &&
	     cptx_program_resources(program, o->name ? o->name : "attention", r->plan.threads, r->plan.smem, &r->resources, err);
	ok = ok && cptx_launch_run(l, NULL, err) && compare(&b, r, err);
	if (ok && t->bursts && !r->wrong && !emulated(dev))
		ok = measure_launch(dev, l, t->bursts, &r->ms, err);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	release(&b);
	if (!ok && err->code == CPTX_OK) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of memory");
	}
	return ok;
}

void attention_report_text(const attention_report *r, char *text, size_t size)
{
	char place[40] = "LSE";

	if (r->stray)
		snprintf(text, size, "memory beside O or LSE was written");
	else if (!r->wrong && r->compared == r->elements)
		snprintf(text, size, "all %llu elements right; largest error %.2f of the bound", (unsigned long long)r->elements,
		         r->worst);
	else if (!r->wrong)
		snprintf(text, size, "%llu of %llu elements compared, all right; largest error %.2f of the bound",
		         (unsigned long long)r->compared, (unsigned long long)r->elements, r->worst);
	if (!r->wrong || r->stray)
		return;
	if (r->col != UINT32_MAX)
		snprintf(place, sizeof place, "O, column %u", r->col);
	snprintf(text, size, "%llu of %llu elements are wrong; the first: batch %u, head %u, query %u, %s: %g, not %g",
	         (unsigned long long)r->wrong, (unsigned long long)r->compared, r->batch, r->head, r->row, place, r->value,
	         r->reference);
}
