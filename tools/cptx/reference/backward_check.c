/* SPDX-License-Identifier: MIT */
/*
 * The reference takes O and LSE as they are given, so they need not be those of Q, K and V: the gradients are compared as
 * functions of all six.  LSE is log of the keys that count plus 1/2, which is about right for scores of deviation 1.
 */
#include "reference/backward_check.h"
#include "reference/attention_tensor.h"
#include "reference/measure.h"
#include "reference/number.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIM = 128, HALVES = 65536 };
enum { Q, O, D_O, DQ, K, V, DK, DV, TENSORS };

typedef struct bench {
	cptx_device *dev;
	const cptx_attention_backward_opt *o;
	const backward_trial *t;
	cptx_attention_backward_problem p; /* with what 0 stands for, and addresses */
	attention_tensor x[TENSORS];
	uint32_t *cu_q, *cu_k; /* where the rows of each batch begin, and behind the last */
	float *lse, *number;   /* number: of all 16-bit patterns */
	bool all;              /* rows are compared, each once */
} bench;

/* ---- the problem ---- */

static uint32_t queries_of(const bench *b, uint32_t batch) { return b->cu_q[batch + 1] - b->cu_q[batch]; }
static uint32_t keys_of(const bench *b, uint32_t batch) { return b->cu_k[batch + 1] - b->cu_k[batch]; }

void backward_trial_complete(backward_trial *t, const cptx_attention_backward_opt *o)
{
	cptx_attention_backward_problem *p = &t->p;

	if (!o->varlen)
		return;
	p->total_queries = attention_rows_beside(t->seed, false, true) + attention_rows_beside(t->seed, true, true);
	p->total_keys = attention_rows_beside(t->seed, false, false) + attention_rows_beside(t->seed, true, false);
	for (uint32_t i = 0; i < p->batch; i++) {
		if (!attention_add_rows(&p->total_queries, attention_length(t->seed, p->queries, i, true)) ||
		    !attention_add_rows(&p->total_keys, attention_length(t->seed, p->keys, i, false)))
			return;
	}
}

/* Where sequences begin, on the host, and with .varlen on the device. */
static bool prepare_lengths(bench *b, cptx_error *err)
{
	cptx_attention_backward_problem *p = &b->p;
	const uint64_t bytes = (p->batch + 1ull) * sizeof *b->cu_q;
	const bool packed = b->o->varlen;

	b->cu_q = calloc(1, bytes), b->cu_k = calloc(1, bytes);
	if (!b->cu_q || !b->cu_k)
		return false;
	if (packed) {
		b->cu_q[0] = attention_rows_beside(b->t->seed, false, true);
		b->cu_k[0] = attention_rows_beside(b->t->seed, false, false);
	}
	for (uint32_t i = 0; i < p->batch; i++) {
		b->cu_q[i + 1] = b->cu_q[i] + (packed ? attention_length(b->t->seed, p->queries, i, true) : p->queries);
		b->cu_k[i + 1] = b->cu_k[i] + (packed ? attention_length(b->t->seed, p->keys, i, false) : p->keys);
	}
	return !packed || ((p->cu_queries = cptx_mem_alloc(b->dev, bytes, err)) != 0 &&
	                   (p->cu_keys = cptx_mem_alloc(b->dev, bytes, err)) != 0 &&
	                   cptx_mem_write(b->dev, p->cu_queries, b->cu_q, bytes, err) &&
	                   cptx_mem_write(b->dev, p->cu_keys, b->cu_k, bytes, err));
}

static bool counts(const bench *b, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	const cptx_attention_backward_problem *p = &b->p;
	const int64_t shift = b->o->top_left ? 0 : (int64_t)keys_of(b, batch) - queries_of(b, batch);
	const int64_t apart = (int64_t)query + shift - key;

	if (b->o->causal && apart < 0)
		return false;
	if (b->t->mask && !b->t->mask(b->t->user, batch, head, query, key))
		return false;
	return !b->o->window || (apart <= (int64_t)p->window_left && -apart <= (int64_t)(b->o->causal ? 0 : p->window_right));
}

static float *lse_of(const bench *b, uint32_t batch, uint32_t head, uint32_t query)
{
	const cptx_attention_backward_problem *p = &b->p;

	return b->lse +
	       (b->o->varlen ? (uint64_t)head * p->total_queries + b->cu_q[batch]
	                     : ((uint64_t)batch * p->heads + head) * p->queries) +
	       query;
}

static void fill_lse(bench *b, uint32_t batch, uint32_t head)
{
	for (uint32_t i = 0; i < queries_of(b, batch); i++) {
		uint32_t n = 0;
		for (uint32_t j = 0; j < keys_of(b, batch); j++)
			n += counts(b, batch, head, i, j);
		*lse_of(b, batch, head, i) = n ? (float)(log(n) + 0.5) : -INFINITY;
	}
}

static bool prepare(bench *b, cptx_error *err)
{
	cptx_attention_backward_problem *p = &b->p;
	const cptx_attention_stride *strides[TENSORS] = { &p->q_stride, &p->o_stride, &p->do_stride, &p->dq_stride,
		                                              &p->k_stride, &p->v_stride, &p->dk_stride, &p->dv_stride };
	const bool packed = b->o->varlen;
	const uint32_t batch = packed ? 1 : p->batch, q_rows = packed ? p->total_queries : p->queries;
	const uint32_t k_rows = packed ? p->total_keys : p->keys;
	const uint64_t lses = (uint64_t)p->heads * batch * q_rows * sizeof(float) + ATTENTION_GUARD;
	uint64_t *const at[TENSORS] = { &p->q, &p->o, &p->d_o, &p->dq, &p->k, &p->v, &p->dk, &p->dv };

	for (int i = 0; i < TENSORS; i++) {
		const bool of_keys = i >= K;
		if (!attention_tensor_make(b->dev, &b->x[i], b->o->in, strides[i], batch, of_keys ? p->kv_heads : p->heads,
		                           of_keys ? k_rows : q_rows, b->o->dim, err))
			return false;
		if (i != DQ && i != DK && i != DV)
			attention_tensor_fill(&b->x[i], 8 * b->t->seed + (unsigned)i);
		if (!cptx_mem_write(b->dev, b->x[i].at, b->x[i].host, b->x[i].bytes, err))
			return false;
		*at[i] = b->x[i].at;
	}
	if (!prepare_lengths(b, err)) /* behind the tensors: where these have no room, not even the lengths may have */
		return false;
	b->lse = malloc(lses), b->number = malloc(HALVES * sizeof(float));
	if (!b->lse || !b->number)
		return false;
	memset(b->lse, ATTENTION_POISON, lses);
	for (uint32_t z = 0; z < p->batch * p->heads; z++)
		fill_lse(b, z / p->heads, z % p->heads);
	for (uint32_t i = 0; i < HALVES; i++)
		b->number[i] = (float)number_value(b->o->in, i);
	return (p->lse = cptx_mem_alloc(b->dev, lses, err)) &&
	       cptx_mem_write(b->dev, p->lse, b->lse, lses - ATTENTION_GUARD, err);
}

static void release(bench *b)
{
	for (int i = 0; i < TENSORS; i++)
		attention_tensor_free(b->dev, &b->x[i]);
	cptx_mem_free(b->dev, b->p.cu_queries);
	cptx_mem_free(b->dev, b->p.cu_keys);
	cptx_mem_free(b->dev, b->p.lse);
	cptx_mem_free(b->dev, b->p.workspace);
	free(b->cu_q);
	free(b->cu_k);
	free(b->lse);
	free(b->number);
}

/* ---- the reference ---- */

static unsigned char *place_of(const bench *b, int tensor, uint32_t batch, uint32_t head, uint32_t row)
{
	const uint32_t before = (tensor >= K ? b->cu_k : b->cu_q)[batch];

	return b->o->varlen ? attention_tensor_row(&b->x[tensor], 0, head, before + row)
	                    : attention_tensor_row(&b->x[tensor], batch, head, row);
}

static const uint16_t *row_of(const bench *b, int tensor, uint32_t batch, uint32_t head, uint32_t row)
{
	return (const uint16_t *)(const void *)place_of(b, tensor, batch, head, row);
}

static double dot(const bench *b, const uint16_t *x, const uint16_t *y, double *size)
{
	double sum = 0;

	for (uint32_t i = 0; i < b->o->dim; i++) {
		const double v = (double)b->number[x[i]] * (double)b->number[y[i]];
		sum += v;
		if (size)
			*size += fabs(v);
	}
	return sum;
}

/* P and dS of a query and a key, and what rounding may change in dS. */
typedef struct score {
	double p, ds, p_off, ds_off;
} score;

/* P and dS are rounded once, and sums in f32 and ex2.approx change the rest a little. */
static score score_of(const bench *b, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	const cptx_attention_backward_problem *p = &b->p;
	const uint32_t kv = head / (p->heads / p->kv_heads);
	const double half = b->o->in == CPTX_BF16 ? 0x1p-8 : 0x1p-11, lse = (double)*lse_of(b, batch, head, query);
	score r = { 0 };
	double size = 0;

	if (!counts(b, batch, head, query, key))
		return r;
	const uint16_t *d_o = row_of(b, D_O, batch, head, query);
	const bool capped = b->o->softcap;
	const double product = dot(b, row_of(b, Q, batch, head, query), row_of(b, K, batch, kv, key), NULL) * (double)p->scale;
	const double t = capped ? tanh(product / (double)p->softcap) : 0, given = capped ? (double)p->softcap * t : product;
	const bool modified = b->t->score;
	const double s = modified ? b->t->score(b->t->user, given, batch, head, query, key) : given;
	const double grad = modified ? b->t->score_grad(b->t->user, given, batch, head, query, key) : 1;
	if (s == -INFINITY)
		return r;
	const double dp = dot(b, d_o, row_of(b, V, batch, kv, key), &size);
	const double delta = dot(b, d_o, row_of(b, O, batch, head, query), &size);
	const double off = 0x1p-20 * (fabs(s) + fabs(given) + fabs(lse) + 1) +
	                   (capped ? 0x1p-10 * fabs(given * grad) : 0); /* of tanh.approx, too */
	r.p = exp(s - lse), r.ds = r.p * (dp - delta) * (1 - t * t) * grad;
	r.p_off = r.p * (1.01 * half + 2 * off + 0x1p-16);
	r.ds_off = fabs(r.ds) * (1.01 * half + 2 * off + 0x1p-16) +
	           r.p * fabs(grad) * (0x1p-20 * size + 0x1p-9 * t * t * fabs(dp - delta)) +
	           (b->o->in == CPTX_F16 ? 0x1p-25 : 0);
	return r;
}

/* A row of a gradient: the sums, and how far off they may be. */
typedef struct row {
	double sum[MOST_DIM], off[MOST_DIM];
} row;

static void add(const bench *b, row *r, double factor, double off, const uint16_t *x)
{
	for (uint32_t i = 0; i < b->o->dim; i++) {
		r->sum[i] += factor * (double)b->number[x[i]];
		r->off[i] += off * fabs((double)b->number[x[i]]);
	}
}

static void compare_row(bench *b, backward_report *rep, int tensor, uint32_t batch, uint32_t head, uint32_t i, const row *r,
                        double scale)
{
	static const char *const names[TENSORS] = { [DQ] = "dQ", [DK] = "dK", [DV] = "dV" };
	const double half = b->o->in == CPTX_BF16 ? 0x1p-8 : 0x1p-11;
	unsigned char *at = place_of(b, tensor, batch, head, i);

	for (uint32_t c = 0; c < b->o->dim; c++) {
		const double right = scale * r->sum[c], allowed = scale * r->off[c] + 1.01 * half * fabs(right);
		attention_judge(&rep->r, batch, head, i, c, attention_tensor_value(&b->x[tensor], at + 2 * c), right,
		                allowed + (b->o->in == CPTX_F16 ? 0x1p-24 : 0));
		if (rep->r.wrong && !rep->of)
			rep->of = names[tensor];
	}
	if (b->all)
		memset(at, ATTENTION_POISON, b->o->dim * 2ull); /* what is not poison in the end was written by mistake */
}

static void compare_query(bench *b, backward_report *rep, uint32_t batch, uint32_t head, uint32_t i)
{
	const uint32_t kv = head / (b->p.heads / b->p.kv_heads);
	row dq = { { 0 }, { 0 } };

	for (uint32_t j = 0; j < keys_of(b, batch); j++) {
		const score s = score_of(b, batch, head, i, j);
		add(b, &dq, s.ds, s.ds_off, row_of(b, K, batch, kv, j));
	}
	compare_row(b, rep, DQ, batch, head, i, &dq, (double)b->p.scale);
}

static void compare_key(bench *b, backward_report *rep, uint32_t batch, uint32_t kv, uint32_t j)
{
	const uint32_t group = b->p.heads / b->p.kv_heads;
	row dk = { { 0 }, { 0 } }, dv = dk;

	for (uint32_t head = kv * group; head < (kv + 1) * group; head++)
		for (uint32_t i = 0; i < queries_of(b, batch); i++) {
			const score s = score_of(b, batch, head, i, j);
			add(b, &dk, s.ds, s.ds_off, row_of(b, Q, batch, head, i));
			add(b, &dv, s.p, s.p_off, row_of(b, D_O, batch, head, i));
		}
	compare_row(b, rep, DK, batch, kv, j, &dk, (double)b->p.scale);
	compare_row(b, rep, DV, batch, kv, j, &dv, 1);
}

/* Row number n of those that are compared, of so many. */
static uint32_t drawn(const bench *b, uint32_t n, uint32_t rows, uint64_t *seed)
{
	return b->t->rows && b->t->rows < rows ? (uint32_t)(number_random(seed) % rows) : n;
}
static uint32_t most(const bench *b, uint32_t rows) { return b->t->rows && b->t->rows < rows ? b->t->rows : rows; }

static bool compare(bench *b, backward_report *rep, cptx_error *err)
{
	static const int gradients[] = { DQ, DK, DV };
	const cptx_attention_backward_problem *p = &b->p;
	uint64_t seed = b->t->seed + 11, stray = 0;

	b->all = most(b, p->queries) == p->queries && most(b, p->keys) == p->keys;
	for (int i = 0; i < 3; i++)
		if (!cptx_mem_read(b->dev, b->x[gradients[i]].host, b->x[gradients[i]].at, b->x[gradients[i]].bytes, err))
			return false;
	const uint64_t q_rows = b->cu_q[p->batch] - b->cu_q[0], k_rows = b->cu_k[p->batch] - b->cu_k[0];
	rep->r.elements = b->o->dim * (p->heads * q_rows + 2 * p->kv_heads * k_rows);
	for (uint32_t z = 0; z < p->batch * p->heads; z++) {
		const uint32_t rows = queries_of(b, z / p->heads);
		for (uint32_t n = 0; n < most(b, rows); n++)
			compare_query(b, rep, z / p->heads, z % p->heads, drawn(b, n, rows, &seed));
	}
	for (uint32_t z = 0; z < p->batch * p->kv_heads; z++) {
		const uint32_t rows = keys_of(b, z / p->kv_heads);
		for (uint32_t n = 0; n < most(b, rows); n++)
			compare_key(b, rep, z / p->kv_heads, z % p->kv_heads, drawn(b, n, rows, &seed));
	}
	rep->r.rms = rep->r.compared ? sqrt(rep->r.rms / (double)rep->r.compared) : 0;
	for (int i = 0; i < 3; i++)
		stray += attention_strays(b->x[gradients[i]].host, b->x[gradients[i]].bytes);
	rep->r.stray = b->all && !rep->r.wrong && stray;
	rep->r.wrong += rep->r.stray ? stray : 0;
	return true;
}

/* ---- runs ---- */

/* ms NULL: once; no launch where the problem has no CTAs for it. */
static bool run_launch(bench *b, const cptx_program *program, uint32_t number, double *ms, cptx_error *err)
{
	const bool some = b->p.batch && b->p.heads && (number == 1 ? b->p.keys : b->p.queries);
	cptx_launch *l = some ? cptx_attention_backward_launch(program, b->dev, b->o, &b->p, number, err) : NULL;
	const bool ok = !some || (l && (ms ? measure_launch(b->dev, l, b->t->bursts, ms, err) : cptx_launch_run(l, NULL, err)));

	cptx_launch_destroy(l);
	return ok;
}

bool backward_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_backward_opt *o, const backward_trial *t,
                        backward_report *rep, cptx_error *err)
{
	backward_trial completed = *t;
	backward_trial_complete(&completed, o);
	bench b = { .dev = dev, .o = o, .t = t, .p = completed.p };
	cptx_emu_counters c;

	*rep = (backward_report){ .r = { .worst = 0 } };
	*err = (cptx_error){ .code = CPTX_OK };
	if (!cptx_attention_backward_check_problem(o, &b.p, &rep->plan, err))
		return false;
	b.p.kv_heads = b.p.kv_heads ? b.p.kv_heads : b.p.heads;
	cptx_program *program = cptx_device_load(dev, module, &t->load, err);
	bool ok = program && prepare(&b, err);
	if (ok && rep->plan.workspace)
		ok = (b.p.workspace = cptx_mem_alloc(dev, rep->plan.workspace, err)) != 0;
	ok = ok && cptx_program_resources(program, o->name ? o->name : "attention_backward", rep->plan.threads, rep->plan.smem,
	                                  &rep->r.resources, err);
	for (uint32_t n = 0; ok && n < (t->runs ? t->runs : 1); n++)
		for (uint32_t i = 0; ok && i < CPTX_ATTENTION_BACKWARD_LAUNCHES; i++)
			ok = run_launch(&b, program, i, NULL, err);
	b.p.scale = b.p.scale != 0 ? b.p.scale : (float)(1 / sqrt(o->dim));
	ok = ok && compare(&b, rep, err);
	for (uint32_t i = 0; ok && t->bursts && !rep->r.wrong && !cptx_emu_get_counters(dev, &c) && i < 3; i++)
		ok = run_launch(&b, program, i, &rep->ms[i], err);
	rep->r.ms = rep->ms[0] + rep->ms[1] + rep->ms[2];
	cptx_program_destroy(program);
	release(&b);
	if (!ok && err->code == CPTX_OK) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of memory");
	}
	return ok;
}

void backward_report_text(const backward_report *rep, char *text, size_t size)
{
	const attention_report *r = &rep->r;

	if (r->wrong && !r->stray)
		snprintf(text, size,
		         "%llu of %llu elements are wrong; the first: %s, batch %u, head %u, row %u, column %u: %g, not %g",
		         (unsigned long long)r->wrong, (unsigned long long)r->compared, rep->of, r->batch, r->head, r->row, r->col,
		         r->value, r->reference);
	else if (r->stray)
		snprintf(text, size, "memory beside dQ, dK or dV was written");
	else
		attention_report_text(r, text, size);
}
