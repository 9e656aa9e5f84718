/* SPDX-License-Identifier: MIT */
#include "attention_run.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/softmax.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = ATTENTION_D, HEADS = 2, ROWS = 320, MOST = HEADS * ROWS * D };

struct args {
	cptx_tensor_map_opt q, key, v;
	uint64_t q_at, key_at, v_at, o;
	uint32_t queries, keys;
	float scale;
};
static const cptx_param_row maps[] = { CPTX_PARAM_MAP(struct args, q), CPTX_PARAM_MAP(struct args, key),
	                                   CPTX_PARAM_MAP(struct args, v) };
static const cptx_param_row pointers[] = { CPTX_PARAM_AS(struct args, CPTX_PTR, q_at, "q"),
	                                       CPTX_PARAM_AS(struct args, CPTX_PTR, key_at, "key"),
	                                       CPTX_PARAM_AS(struct args, CPTX_PTR, v_at, "v") };
static const cptx_param_row numbers[] = { CPTX_PARAM_ROW(struct args, CPTX_PTR, o),
	                                      CPTX_PARAM_ROW(struct args, CPTX_U32, queries),
	                                      CPTX_PARAM_ROW(struct args, CPTX_U32, keys),
	                                      CPTX_PARAM_ROW(struct args, CPTX_F32, scale) };

/* What TMA loads: Q, K, V; rows of a head, K-major but for V, whose keys lie along K of the product. */
static cptx_operand_opt operand_opt(const attention *a, int i)
{
	const uint32_t rows[] = { a->tile, a->keys, D }, cols[] = { D, D, a->keys }, stages[] = { 1, a->stages, a->stages };
	const cptx_tile tile = { rows[i], cols[i], .elem = { 16, .mn_major = i == 2 }, .swizzle = CPTX_SWIZZLE_128B };

	return (cptx_operand_opt){ .type = CPTX_BF16, .batched = true, .tile = tile, .stages = stages[i] };
}

attention_kernel attention_begin(cptx_module *m, const attention *self, bool causal)
{
	cptx_kernel *k = cptx_kernel_begin(m, "attention", .block = { self->threads }, .min_ctas = self->min_ctas);
	attention_kernel a = { .k = k, .causal = causal };
	cptx_params *p = &a.params;

	cptx_params_declare(k, p, self->stages ? maps : pointers, CPTX_PARAM_COUNT(maps));
	cptx_params_declare(k, p, numbers, CPTX_PARAM_COUNT(numbers));
	a.queries = cptx_params_get(k, p, "queries"), a.keys = cptx_params_get(k, p, "keys");
	a.scale = cptx_params_get(k, p, "scale");
	cptx_operand *const op[] = { &a.q, &a.key, &a.v };
	for (int i = 0; i < 3 && self->stages; i++) {
		cptx_operand_opt opt = operand_opt(self, i);
		opt.map = cptx_params_get(k, p, maps[i].name);
		cptx_operand_make(k, op[i], &opt);
	}
	a.row0 = cptx_mul(k, cptx_ctaid_x(k), self->tile, .mode = CPTX_LO), a.head = cptx_ctaid_y(k);
	a.end = causal ? cptx_min(k, cptx_add(k, a.row0, self->tile), a.keys) : a.keys;
	return a;
}

void attention_produce(const attention_kernel *a, uint32_t keys)
{
	cptx_kernel *k = a->k;
	cptx_pipe_at first = cptx_pipe_producer(k, &a->q_pipe), at = cptx_pipe_producer(k, &a->pipe);
	cptx_val key = cptx_var(k, CPTX_U32, 0);

	cptx_pipe_expect(k, &a->q_pipe, &first, a->q.bytes);
	cptx_operand_load(k, &a->q, 0, a->row0, 0, .z = a->head, .barrier = cptx_pipe_full(&first));
	CPTX_FOR(k, key, a->end, keys) {
		cptx_pipe_wait_empty(k, &a->pipe, &at);
		cptx_pipe_expect(k, &a->pipe, &at, a->key.bytes + a->v.bytes);
		cptx_operand_load(k, &a->key, at.stage, key, 0, .z = a->head, .barrier = cptx_pipe_full(&at));
		cptx_operand_load(k, &a->v, at.stage, 0, key, .z = a->head, .barrier = cptx_pipe_full(&at));
		cptx_pipe_next(k, &a->pipe, &at);
	}
}

void attention_mask(const attention_kernel *a, const cptx_acc *scores, cptx_val key, uint32_t keys)
{
	cptx_kernel *k = a->k;
	cptx_val border = a->causal ? a->row0 : a->keys; /* tiles that end behind it have scores that do not count */

	CPTX_IF(k, cptx_setp(k, cptx_add(k, key, keys), border, .cmp = CPTX_GT))
		cptx_softmax_mask(k, scores, .row0 = a->row0, .col0 = key, .cols = a->keys, .causal = a->causal);
}

void attention_store(const attention_kernel *a, const cptx_acc *o)
{
	cptx_kernel *k = a->k;
	cptx_val row = cptx_mad_wide(k, a->head, a->queries, cptx_cvt(k, a->row0, .dtype = CPTX_U64));
	cptx_val out = cptx_mad(k, row, 2 * D, cptx_params_get(k, &a->params, "o"), .mode = CPTX_LO);
	const cptx_val rows = cptx_sub(k, a->queries, a->row0);
	const cptx_acc_matrix to = { .address = out, .type = CPTX_BF16, .pitch = cptx_imm(D), .rows = rows };

	cptx_acc_store(k, o, &to);
}

/* ---- the host ---- */

static uint16_t in[3][MOST], out[MOST]; /* Q, K, V and O of all heads: rows of D elements */

static double value(uint16_t bits) { return number_value(CPTX_BF16, bits); }

/* Numbers from -2 to 2 in steps of 1/64, which .bf16 holds exactly. */
static uint16_t draw(uint32_t i)
{
	return (uint16_t)number_bits(CPTX_BF16, (double)((int)(i * 2654435761u >> 24) - 128) / 64);
}

/* How many elements of a row of O are further from the exact ones than rounding P and O to .bf16 explains. */
static unsigned wrong_in_row(const uint16_t *q, const uint16_t *key, const uint16_t *v, const uint16_t *o, uint32_t keys)
{
	double sum = 0, right[D] = { 0 }, size[D] = { 0 };
	unsigned wrong = 0;

	for (uint32_t j = 0; j < keys; j++) {
		double score = 0;
		for (uint32_t d = 0; d < D; d++)
			score += value(q[d]) * value(key[j * D + d]);
		score = exp(score / sqrt(D)), sum += score;
		for (uint32_t d = 0; d < D; d++)
			right[d] += score * value(v[j * D + d]), size[d] += score * fabs(value(v[j * D + d]));
	}
	for (uint32_t d = 0; d < D; d++)
		wrong += !(fabs(value(o[d]) - right[d] / sum) <= (size[d] + fabs(right[d])) / sum / 256);
	return wrong;
}

/* Buffers of the device, filled, and the tensor maps of what TMA loads. */
static void fill(cptx_device *dev, const attention *a, struct args *x, cptx_error *err)
{
	cptx_tensor_map_opt *const map[3] = { &x->q, &x->key, &x->v };
	uint64_t *const at[4] = { &x->q_at, &x->key_at, &x->v_at, &x->o };

	for (int i = 0; i < 4; i++) {
		const uint64_t rows = i == 0 || i == 3 ? x->queries : x->keys, n = HEADS * rows * D;
		*at[i] = cptx_mem_alloc(dev, n * 2, err);
		for (uint32_t j = 0; i < 3 && j < n; j++)
			in[i][j] = draw(j * 3 + (uint32_t)i);
		memset(out, 0xff, sizeof out);
		cptx_mem_write(dev, *at[i], i < 3 ? in[i] : out, n * 2, err);
		if (i == 3 || !a->stages)
			continue;
		const cptx_operand_opt op = operand_opt(a, i);
		const bool along_k = op.tile.elem.mn_major;
		const cptx_operand_matrix matrix = {
			.address = *at[i], .rows = along_k ? D : rows, .cols = along_k ? rows : D, .batch = HEADS
		};
		cptx_operand_tensor_map(&op, &matrix, map[i], err);
	}
}

bool attention_check(cptx_device *dev, const attention *a, cptx_module *m, uint32_t queries, uint32_t keys, bool causal,
                     unsigned *wrong, cptx_error *err)
{
	struct args x = { .queries = queries, .keys = keys, .scale = (float)(1.4426950408889634 / sqrt(D)) };
	const cptx_params_part parts[] = { { a->stages ? maps : pointers, CPTX_PARAM_COUNT(maps), &x },
		                               { numbers, CPTX_PARAM_COUNT(numbers), &x } };
	const cptx_launch_opt opt = { .grid = { (queries + a->tile - 1) / a->tile, HEADS }, .block = { a->threads } };
	cptx_module *built = m ? m : cptx_module_new(NULL);

	if (!m)
		a->build(built, a, causal);
	cptx_program *p = cptx_device_load(dev, built, NULL, err);
	fill(dev, a, &x, err);
	cptx_launch *l = cptx_params_launch(p, dev, "attention", parts, 2, &opt, err);
	bool ok = l && cptx_launch_run(l, NULL, err) && cptx_mem_read(dev, out, x.o, HEADS * queries * D * 2, err);
	*wrong = 0;
	for (uint32_t i = 0; ok && i < HEADS * queries; i++) {
		const uint32_t h = i / queries, row = i % queries;
		*wrong += wrong_in_row(in[0] + i * D, in[1] + h * keys * D, in[2] + h * keys * D, out + i * D,
		                       causal && row < keys ? row + 1 : keys);
	}
	cptx_mem_free(dev, x.q_at), cptx_mem_free(dev, x.key_at), cptx_mem_free(dev, x.v_at), cptx_mem_free(dev, x.o);
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
	if (!m)
		cptx_module_destroy(built);
	return ok;
}

int attention_main(const attention *a)
{
	static const uint32_t sizes[][2] = { { 128, 128 }, { 200, 320 }, { 320, 200 }, { 1, 77 } };
	const char *name = getenv("CPTX_DEVICE");
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open(name ? name : a->device, &err);
	unsigned all = 0, wrong;

	for (int i = 0; dev && i < 8; i++) {
		if (!attention_check(dev, a, NULL, sizes[i / 2][0], sizes[i / 2][1], i % 2, &wrong, &err))
			break;
		printf("%u queries, %u keys%s: %u of %u elements are wrong\n", sizes[i / 2][0], sizes[i / 2][1],
		       i % 2 ? ", causal" : "", wrong, HEADS * sizes[i / 2][0] * D);
		all += wrong;
	}
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return err.code || all;
}
