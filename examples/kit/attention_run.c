/* SPDX-License-Identifier: MIT */
#include "attention_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = ATTENTION_D, HEADS = 2, MOST = HEADS * 320 * D };

static uint16_t in[3][MOST], out[MOST]; /* Q, K, V and O of all heads: rows of D elements */

static double value(uint16_t bf16)
{
	uint32_t word = (uint32_t)bf16 << 16;
	float f;

	memcpy(&f, &word, sizeof f);
	return (double)f;
}

/* Numbers from -2 to 2 in steps of 1/64, which .bf16 holds exactly. */
static uint16_t draw(uint32_t i)
{
	float f = (float)((int)(i * 2654435761u >> 24) - 128) / 64;
	uint32_t word;

	memcpy(&word, &f, sizeof word);
	return (uint16_t)(word >> 16);
}

/* How many elements of a row of O are further from the exact ones than rounding to .bf16 explains. */
static unsigned wrong_in_row(const uint16_t *q, const uint16_t *key, const uint16_t *v, const uint16_t *o, uint32_t keys)
{
	double sum = 0, right[D] = { 0 };
	unsigned wrong = 0;

	for (uint32_t j = 0; j < keys; j++) {
		double score = 0;
		for (uint32_t d = 0; d < D; d++)
			score += value(q[d]) * value(key[j * D + d]);
		score = exp(score / sqrt(D)), sum += score;
		for (uint32_t d = 0; d < D; d++)
			right[d] += score * value(v[j * D + d]);
	}
	for (uint32_t d = 0; d < D; d++)
		wrong += !(fabs(value(o[d]) - right[d] / sum) <= 0.02);
	return wrong;
}

static bool run(cptx_device *dev, const attention *a, uint32_t queries, uint32_t keys, bool causal, cptx_error *err)
{
	const uint32_t rows[4] = { queries, keys, keys, queries };
	uint64_t at[4], n[4];
	cptx_tensor_map map[3];
	cptx_arg arg[7];
	unsigned wrong = 0;
	cptx_module *m = cptx_module_new(NULL);

	a->build(m, causal);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	for (int i = 0; i < 4; i++) {
		n[i] = (uint64_t)HEADS * rows[i] * D;
		at[i] = cptx_mem_alloc(dev, n[i] * 2, err);
		for (uint32_t j = 0; i < 3 && j < n[i]; j++)
			in[i][j] = draw(j * 3 + (uint32_t)i);
		cptx_mem_write(dev, at[i], i < 3 ? in[i] : out, n[i] * 2, err);
		const bool has_map = i < 3 && a->operand[i], mn = has_map && a->operand[i]->tile.elem.mn_major;
		cptx_operand_matrix matrix = {
			.address = at[i], .rows = mn ? D : rows[i], .cols = mn ? rows[i] : D, .batch = HEADS
		};
		cptx_tensor_map_opt opt;
		if (has_map &&
		    (!cptx_operand_tensor_map(a->operand[i], &matrix, &opt, err) || !cptx_tensor_map_make(dev, &opt, &map[i], err)))
			break;
		arg[i] = has_map ? CPTX_ARG_BYTES(&map[i], sizeof map[i]) : CPTX_ARG(at[i]);
	}
	arg[4] = CPTX_ARG(queries), arg[5] = CPTX_ARG(keys), arg[6] = CPTX_ARG((float)(1.4426950408889634 / sqrt(D)));
	cptx_launch_opt launch = {
		.grid = { (queries + a->queries - 1) / a->queries, HEADS }, .block = { a->threads }, .nargs = 7, .args = arg
	};
	cptx_launch_once(p, "attention", &launch, NULL, err);
	cptx_mem_read(dev, out, at[3], n[3] * 2, err);
	for (uint32_t h = 0; h < HEADS; h++)
		for (uint32_t i = 0; i < queries; i++)
			wrong += wrong_in_row(in[0] + (h * queries + i) * D, in[1] + h * keys * D, in[2] + h * keys * D,
			                      out + (h * queries + i) * D, causal && i < keys ? i + 1 : keys);
	for (int i = 0; i < 4; i++)
		cptx_mem_free(dev, at[i]);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	if (!err->code)
		printf("%u queries, %u keys%s: %u of %u elements are wrong\n", queries, keys, causal ? ", causal" : "", wrong,
		       HEADS * queries * D);
	return !err->code && !wrong;
}

int attention_main(const attention *a)
{
	static const uint32_t sizes[][2] = { { 128, 128 }, { 200, 320 }, { 320, 200 }, { 1, 77 } };
	const char *name = getenv("CPTX_DEVICE");
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open(name ? name : a->device, &err);
	bool ok = dev != NULL;

	for (int i = 0; ok && i < 8; i++)
		ok = run(dev, a, sizes[i / 2][0], sizes[i / 2][1], i % 2, &err);
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return !ok;
}
