/* SPDX-License-Identifier: MIT */
#include "reference/decode_check.h"
#include "reference/attention_tensor.h"
#include "reference/measure.h"
#include "reference/number.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIM = 576, HALVES = 65536, SPARE = 3 /* pages that belong to nobody */ };

typedef struct bench {
	cptx_device *dev;
	const cptx_attention_decode_opt *o;
	const decode_trial *t;
	cptx_attention_decode_problem p; /* with what 0 stands for, and addresses */
	attention_tensor q, k, v, d;
	uint32_t *lengths, *pages;
	float *lse, *number; /* number: of all 16-bit patterns */
	double *score;       /* of a row */
} bench;

/* ---- the problem ---- */

static uint64_t upload(bench *b, const void *from, uint64_t bytes, cptx_error *err)
{
	const uint64_t at = from ? cptx_mem_alloc(b->dev, bytes, err) : 0;

	return at && cptx_mem_write(b->dev, at, from, bytes, err) ? at : 0;
}

/* Every page of all sequences somewhere else, in any order. */
static void deal_pages(bench *b, uint64_t *state)
{
	const uint32_t n = b->p.batch * b->p.page_pitch;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t j = (uint32_t)(number_random(state) % (i + 1));
		b->pages[i] = b->pages[j], b->pages[j] = i + SPARE;
	}
}

static bool make_tensors(bench *b, cptx_error *err)
{
	const cptx_attention_decode_opt *o = b->o;
	const cptx_attention_decode_problem *p = &b->p;
	const uint32_t dim_v = o->dim_v ? o->dim_v : o->dim, rows = o->paged ? p->page : p->keys;
	const uint32_t batch = o->paged ? p->batch * p->page_pitch + SPARE : p->batch;

	return attention_tensor_make(b->dev, &b->q, o->in, &p->q_stride, p->batch, p->heads, p->queries, o->dim, err) &&
	       attention_tensor_make(b->dev, &b->k, o->in, &p->k_stride, batch, p->kv_heads, rows, o->dim, err) &&
	       attention_tensor_make(b->dev, &b->v, o->in, &p->v_stride, batch, p->kv_heads, rows, dim_v, err) &&
	       attention_tensor_make(b->dev, &b->d, o->out ? o->out : o->in, &p->o_stride, p->batch, p->heads, p->queries, dim_v,
	                             err);
}

/* Keys behind the last of a sequence are poison, NaN: whoever reads them is found out. */
static void poison_tails(bench *b)
{
	const cptx_attention_decode_problem *p = &b->p;
	const uint32_t rows = b->k.rows;

	for (uint32_t z = 0; z < p->batch; z++)
		for (uint32_t j = b->lengths[z]; j < p->keys; j++)
			for (uint32_t h = 0; h < p->kv_heads; h++) {
				const uint32_t page = b->o->paged ? b->pages[z * p->page_pitch + j / rows] : z;
				memset(attention_tensor_row(&b->k, page, h, j % rows), ATTENTION_POISON, b->k.dim * 2ull);
				memset(attention_tensor_row(&b->v, page, h, j % rows), ATTENTION_POISON, b->v.dim * 2ull);
			}
}

static bool prepare(bench *b, const cptx_attention_decode_plan *plan, cptx_error *err)
{
	cptx_attention_decode_problem *p = &b->p;
	const uint64_t lses = (uint64_t)p->batch * p->heads * p->queries * sizeof(float) + ATTENTION_GUARD;
	uint64_t state = b->t->seed * 77777 + 3;

	if (!make_tensors(b, err))
		return false;
	b->lengths = calloc(p->batch + 1ull, sizeof(uint32_t));
	b->pages = calloc((uint64_t)p->batch * p->page_pitch + 1, sizeof(uint32_t));
	b->lse = malloc(lses), b->number = malloc(HALVES * sizeof(float)), b->score = malloc((p->keys + 1ull) * sizeof(double));
	if (!b->lengths || !b->pages || !b->lse || !b->number || !b->score)
		return false;
	memset(b->lse, ATTENTION_POISON, lses);
	for (uint32_t i = 0; i < p->batch; i++)
		b->lengths[i] = b->t->ragged ? (uint32_t)(number_random(&state) % (p->keys + 1ull)) : p->keys;
	for (uint32_t i = 0; i < HALVES; i++)
		b->number[i] = (float)number_value(b->o->in, i);
	attention_tensor_fill(&b->q, 3 * b->t->seed + 1);
	attention_tensor_fill(&b->k, 3 * b->t->seed + 2);
	attention_tensor_fill(&b->v, 3 * b->t->seed + 3);
	deal_pages(b, &state);
	poison_tails(b);
	const attention_tensor *all[] = { &b->q, &b->k, &b->v, &b->d };
	for (int i = 0; i < 4; i++)
		if (!cptx_mem_write(b->dev, all[i]->at, all[i]->host, all[i]->bytes, err))
			return false;
	p->q = b->q.at, p->k = b->k.at, p->v = b->o->mla ? 0 : b->v.at, p->o = b->d.at;
	p->lse = upload(b, b->lse, lses, err);
	if (b->t->ragged)
		p->lengths = upload(b, b->lengths, p->batch * sizeof(uint32_t), err);
	if (b->o->paged)
		p->pages = upload(b, b->pages, (uint64_t)p->batch * p->page_pitch * sizeof(uint32_t) + 4, err);
	if (plan->workspace)
		p->workspace = cptx_mem_alloc(b->dev, plan->workspace, err);
	return p->lse && (!b->t->ragged || p->lengths) && (!b->o->paged || p->pages) && (!plan->workspace || p->workspace);
}

static void release(bench *b)
{
	attention_tensor *all[] = { &b->q, &b->k, &b->v, &b->d };
	const uint64_t others[] = { b->p.lse, b->p.lengths, b->p.pages, b->p.workspace };

	for (int i = 0; i < 4; i++)
		attention_tensor_free(b->dev, all[i]);
	for (int i = 0; i < 4; i++)
		cptx_mem_free(b->dev, others[i]);
	free(b->lengths);
	free(b->pages);
	free(b->lse);
	free(b->number);
	free(b->score);
}

/* ---- the reference ---- */

typedef struct row {
	uint32_t batch, head, query;
	double max, sum, largest;           /* of the scores, and of their magnitudes */
	double o[MOST_DIM], size[MOST_DIM]; /* and the sums of the magnitudes of what is added */
} row;

static const uint16_t *key_row(const bench *b, const attention_tensor *x, const row *r, uint32_t key)
{
	const cptx_attention_decode_problem *p = &b->p;
	const uint32_t page = b->o->paged ? b->pages[r->batch * p->page_pitch + key / p->page] : r->batch;

	return (const uint16_t *)(const void *)attention_tensor_row(x, page, r->head / (p->heads / p->kv_heads), key % x->rows);
}

static double score_of(const bench *b, const row *r, uint32_t key)
{
	const uint16_t *q = (const uint16_t *)(const void *)attention_tensor_row(&b->q, r->batch, r->head, r->query);
	const uint16_t *k = key_row(b, &b->k, r, key);
	const double cap = (double)b->p.softcap;
	double s = 0;

	for (uint32_t i = 0; i < b->o->dim; i++)
		s += (double)b->number[q[i]] * (double)b->number[k[i]];
	s *= (double)b->p.scale;
	return b->o->softcap ? cap * tanh(s / cap) : s;
}

static void compute(const bench *b, row *r)
{
	const int64_t length = b->lengths[r->batch], place = length - b->p.queries + r->query;
	const int64_t end = b->o->causal ? place + 1 : length;
	const int64_t first = b->o->window && place > (int64_t)b->p.window_left ? place - (int64_t)b->p.window_left : 0;

	r->max = -INFINITY, r->sum = r->largest = 0;
	memset(r->o, 0, sizeof r->o), memset(r->size, 0, sizeof r->size);
	for (int64_t j = first; j < end; j++) {
		const double s = b->score[j] = score_of(b, r, (uint32_t)j);
		r->max = s > r->max ? s : r->max;
		r->largest = fabs(s) > r->largest ? fabs(s) : r->largest;
	}
	for (int64_t j = first; j < end; j++) {
		const uint16_t *v = key_row(b, b->o->mla ? &b->k : &b->v, r, (uint32_t)j);
		const double e = exp(b->score[j] - r->max);
		r->sum += e;
		for (uint32_t i = 0; i < b->v.dim; i++) {
			const double x = e * (double)b->number[v[i]];
			r->o[i] += x, r->size[i] += fabs(x);
		}
	}
}

/* The bounds are those of the forward kernels (attention_check.c): P and O are rounded once each; weights of warps and
 * chunks, in f32, are within what the sums are allowed. */
static void compare_row(bench *b, const row *r, attention_report *rep)
{
	const cptx_attention_decode_problem *p = &b->p;
	const double half = b->o->in == CPTX_BF16 ? 0x1p-8 : 0x1p-11, out = b->d.type == CPTX_F32 ? 0x1p-24 : half;
	const double score = (b->o->softcap ? 0x1p-10 : 0x1p-20) * (r->largest + 1), sum = r->sum > 0 ? r->sum : 1;
	const uint32_t bytes = cptx_type_bits(b->d.type) / 8;
	unsigned char *o = attention_tensor_row(&b->d, r->batch, r->head, r->query);

	for (uint32_t i = 0; i < b->d.dim; i++) {
		const double right = r->o[i] / sum, size = r->size[i] / sum;
		const double allowed = (1.01 * half + 2 * score + 0x1p-16) * size + 1.01 * out * fabs(right);
		attention_judge(rep, r->batch, r->head, r->query, i, attention_tensor_value(&b->d, o + i * bytes), right,
		                allowed + (b->o->in == CPTX_F16 ? 0x1p-24 : 0));
	}
	memset(o, ATTENTION_POISON, (size_t)b->d.dim * bytes);
	if (!b->o->lse)
		return;
	float *lse = &b->lse[((uint64_t)r->batch * p->heads + r->head) * p->queries + r->query];
	const double right = r->sum > 0 ? r->max + log(r->sum) : -INFINITY;
	attention_judge(rep, r->batch, r->head, r->query, UINT32_MAX, (double)*lse, right,
	                isfinite(right) ? 0x1p-19 * (fabs(right) + 1) + score : 0);
	memset(lse, ATTENTION_POISON, sizeof *lse);
}

static bool compare(bench *b, attention_report *rep, cptx_error *err)
{
	const cptx_attention_decode_problem *p = &b->p;
	const uint64_t rows = (uint64_t)p->batch * p->heads * p->queries, lses = rows * sizeof(float) + ATTENTION_GUARD;
	const bool all = !b->t->heads || b->t->heads >= p->heads;
	uint64_t seed = b->t->seed + 11;
	row r = { 0 };

	if (!cptx_mem_read(b->dev, b->d.host, b->d.at, b->d.bytes, err) || !cptx_mem_read(b->dev, b->lse, p->lse, lses, err))
		return false;
	rep->elements = rows * (b->d.dim + (b->o->lse ? 1 : 0));
	for (r.batch = 0; r.batch < p->batch; r.batch++) {
		const uint32_t first = all ? 0 : (uint32_t)(number_random(&seed) % p->heads);
		for (uint32_t h = 0; h < (all ? p->heads : b->t->heads); h++)
			for (r.query = 0; r.query < p->queries; r.query++) {
				r.head = (first + h) % p->heads;
				compute(b, &r);
				compare_row(b, &r, rep);
			}
	}
	rep->rms = rep->compared ? sqrt(rep->rms / (double)rep->compared) : 0;
	rep->stray = all && !rep->wrong && attention_strays(b->d.host, b->d.bytes) + attention_strays(b->lse, lses);
	rep->wrong += rep->stray;
	return true;
}

/* ---- runs ---- */

static bool run_launch(bench *b, const cptx_program *program, uint32_t number, bool timed, double *ms, cptx_error *err)
{
	cptx_launch *l = cptx_attention_decode_launch(program, b->dev, b->o, &b->p, number, err);
	const bool ok = l && (timed ? measure_launch(b->dev, l, b->t->bursts, ms, err) : cptx_launch_run(l, NULL, err));

	cptx_launch_destroy(l);
	return ok;
}

bool decode_trial_run(cptx_device *dev, cptx_module *module, const cptx_attention_decode_opt *o, const decode_trial *t,
                      decode_report *rep, cptx_error *err)
{
	const cptx_device_info *info = cptx_device_get_info(dev);
	bench b = { .dev = dev, .o = o, .t = t, .p = t->p };
	cptx_emu_counters c;

	*rep = (decode_report){ .r = { .worst = 0 } };
	*err = (cptx_error){ .code = CPTX_OK };
	if (!cptx_attention_decode_check_problem(o, &b.p, cptx_target_find(info->target ? info->target : ""), info->sms,
	                                         &rep->plan, err))
		return false;
	b.p.kv_heads = b.p.kv_heads ? b.p.kv_heads : b.p.heads;
	b.p.page_pitch = o->paged && !b.p.page_pitch ? (b.p.keys + b.p.page - 1) / b.p.page : b.p.page_pitch;
	b.p.scale = b.p.scale != 0 ? b.p.scale : (float)(1 / sqrt(o->dim));
	cptx_program *program = cptx_device_load(dev, module, &t->load, err);
	bool ok = program && prepare(&b, &rep->plan, err);
	ok = ok && cptx_program_resources(program, o->name ? o->name : "attention_decode", rep->plan.threads, rep->plan.smem,
	                                  &rep->r.resources, err);
	for (uint32_t i = 0; ok && rep->plan.grid && b.p.queries && i < rep->plan.launches; i++)
		ok = run_launch(&b, program, i, false, NULL, err);
	ok = ok && compare(&b, &rep->r, err);
	for (uint32_t i = 0; ok && t->bursts && !rep->r.wrong && !cptx_emu_get_counters(dev, &c) && i < rep->plan.launches; i++)
		ok = run_launch(&b, program, i, true, &rep->ms[i], err);
	rep->r.ms = rep->ms[0] + rep->ms[1];
	cptx_program_destroy(program);
	release(&b);
	if (!ok && err->code == CPTX_OK) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of memory");
	}
	return ok;
}
