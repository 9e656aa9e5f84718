/* SPDX-License-Identifier: MIT */
/*
 * A 2-D convolution forward as an implicit GEMM: D (output pixels x filters) = A (pixels x taps * channels) * B^T.
 *
 * A is never stored: for each tap TMA gathers 128 output pixels by 64 channels straight from the images, with zeros for
 * padding and for what lies behind the last channel or image.  B is a matrix of filters by channels for each tap.  One warp
 * copies; two warpgroups multiply 64 pixels by 128 filters each.
 */
#include "conv_sm90a.h"
#include "reference/number.h"

#include <cptx/mma.h>
#include <cptx/operand.h>
#include <cptx/pipeline.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 128, FILTERS = 128, CHANNELS = 64, STAGES = 4, WARPGROUP = 128, CONSUMERS = 2 };

#define TILE(rows)                                                                                                          \
	{                                                                                                                       \
		(rows), CHANNELS, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B                                                     \
	}
static const cptx_operand_opt images = { .type = CPTX_BF16, .tile = TILE(PIXELS), .stages = STAGES, .im2col = 4 };
/* A matrix for each tap. */
static const cptx_operand_opt filters = { .type = CPTX_BF16, .tile = TILE(FILTERS), .stages = STAGES, .batched = true };

static uint32_t tiles(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

typedef struct state {
	cptx_operand x, w;
	cptx_pipe pipe;
	cptx_val y, pixel, filter; /* pixel, filter: first ones of the CTA's tile */
} state;

static cptx_val map_param(cptx_kernel *k, const char *name)
{
	return cptx_cvta(k, cptx_mov(k, cptx_param_bytes(k, 128, 64, name), .type = CPTX_U64), .space = CPTX_PARAM);
}

/* One thread: all channels of all taps. */
static void produce(cptx_kernel *k, const conv *c, const state *st)
{
	cptx_pipe_at at = cptx_pipe_producer(k, &st->pipe);
	cptx_val row = cptx_div(k, st->pixel, conv_q(c)), q = cptx_rem(k, st->pixel, conv_q(c));
	cptx_val image = cptx_div(k, row, conv_p(c)), p = cptx_rem(k, row, conv_p(c));
	cptx_val h = cptx_mad(k, cptx_as(p, CPTX_S32), c->stride, -(int)c->pad, .mode = CPTX_LO);
	cptx_val w = cptx_mad(k, cptx_as(q, CPTX_S32), c->stride, -(int)c->pad, .mode = CPTX_LO);
	cptx_val tap = cptx_var(k, CPTX_U32, 0), channel = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, tap, c->r * c->s, 1) {
		cptx_val r = cptx_div(k, tap, c->s), s = cptx_rem(k, tap, c->s);
		cptx_mov(k, 0, .into = channel);
		CPTX_FOR(k, channel, c->c, CHANNELS) {
			cptx_pipe_wait_empty(k, &st->pipe, &at);
			cptx_pipe_expect(k, &st->pipe, &at, st->x.bytes + st->w.bytes);
			cptx_operand_load_im2col(k, &st->x, at.stage, channel, .w = w, .h = h, .n = image, .offset = { s, r },
			                         .barrier = cptx_pipe_full(&at));
			cptx_operand_load(k, &st->w, at.stage, st->filter, channel, .z = tap, .barrier = cptx_pipe_full(&at));
			cptx_pipe_next(k, &st->pipe, &at);
		}
	}
}

/* A warpgroup: a stage is released when the product behind it is under way, so that tensor cores do not wait. */
static void consume(cptx_kernel *k, const conv *c, const state *st, cptx_val unit)
{
	cptx_pipe_at at = cptx_pipe_consumer(k, &st->pipe), old = cptx_pipe_consumer(k, &st->pipe);
	cptx_val i = cptx_var(k, CPTX_U32, 0);
	cptx_val lane_0 = cptx_setp(k, cptx_and(k, cptx_tid_x(k), 31), 0, .cmp = CPTX_EQ);
	cptx_tiled_mma mma;
	cptx_acc acc;

	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = PIXELS / CONSUMERS, .n = FILTERS,
	                   .units_m = CONSUMERS, .unit = unit, .a_tile = images.tile, .b_tile = filters.tile);
	cptx_acc_new(k, &mma, &acc);
	cptx_acc_clear(k, &acc);
	CPTX_FOR(k, i, c->r * c->s * tiles(c->c, CHANNELS), 1) {
		cptx_pipe_wait_full(k, &st->pipe, &at);
		cptx_val x = cptx_operand_at(k, &st->x, at.stage), w = cptx_operand_at(k, &st->w, at.stage);
		cptx_mma_tile(k, &mma, &acc, x, w);
		cptx_mma_wait(k, &mma, 1);
		CPTX_IF(k, cptx_setp(k, i, 0, .cmp = CPTX_NE)) {
			cptx_pipe_release(k, &st->pipe, &old, lane_0);
			cptx_pipe_next(k, &st->pipe, &old);
		}
		cptx_pipe_next(k, &st->pipe, &at);
	}
	cptx_mma_wait(k, &mma, 0);
	cptx_val rows = cptx_sub(k, conv_pixels(c), st->pixel), cols = cptx_sub(k, c->k, st->filter);
	cptx_val first = cptx_mad_wide(k, st->pixel, c->k * 2, st->y);
	cptx_val to = cptx_add(k, first, cptx_mul_wide(k, st->filter, 2));
	const cptx_acc_matrix y = { .address = to, .type = CPTX_BF16, .pitch = cptx_imm(c->k), .rows = rows, .cols = cols };
	cptx_acc_store(k, &acc, &y);
}

cptx_kernel *conv_build(cptx_module *m, const conv *c)
{
	cptx_kernel *k = cptx_kernel_begin(m, "conv", .block = { CONSUMERS * WARPGROUP + 32 });
	cptx_operand_opt x = images, w = filters;
	state st;

	x.map = map_param(k, "x"), w.map = map_param(k, "w"), st.y = cptx_param(k, CPTX_PTR, "y");
	cptx_val tid = cptx_tid_x(k), group = cptx_shfl_sync(k, cptx_shr(k, tid, 7), 0, 31, -1, .mode = CPTX_IDX);
	st.pixel = cptx_mul(k, cptx_ctaid_x(k), PIXELS, .mode = CPTX_LO);
	st.filter = cptx_mul(k, cptx_ctaid_y(k), FILTERS, .mode = CPTX_LO);
	cptx_operand_make(k, &st.x, &x);
	cptx_operand_make(k, &st.w, &w);
	cptx_pipe_new(k, &st.pipe, .stages = STAGES, .consumers = CONSUMERS * WARPGROUP / 32);
	cptx_pipe_init(k, &st.pipe, cptx_setp(k, tid, 0, .cmp = CPTX_EQ));
	CPTX_IF(k, cptx_setp(k, tid, CONSUMERS * WARPGROUP, .cmp = CPTX_EQ))
		produce(k, c, &st);
	CPTX_IF(k, cptx_setp(k, group, CONSUMERS, .cmp = CPTX_LT))
		consume(k, c, &st, group);
	return k;
}

static bool run(cptx_device *dev, const conv *c, const uint64_t at[3], cptx_error *err)
{
	const int32_t pad = (int32_t)c->pad, upper_w = pad - (int32_t)c->s + 1, upper_h = pad - (int32_t)c->r + 1;
	const uint32_t taps = c->r * c->s, step = c->stride;
	const cptx_operand_image image = { .address = at[0],
		                               .c = c->c,
		                               .w = c->w,
		                               .h = c->h,
		                               .d = 1,
		                               .n = c->n,
		                               .lower = { -pad, -pad },
		                               .upper = { upper_w, upper_h },
		                               .stride = { step, step } };
	const cptx_operand_matrix matrix = {
		.address = at[1], .rows = c->k, .cols = c->c, .pitch = taps * c->c * 2, .batch = taps, .apart = c->c * 2
	};
	cptx_tensor_map_opt of_x, of_w;
	cptx_tensor_map x, w;
	cptx_module *m = cptx_module_new(NULL);

	conv_build(m, c);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	bool ok = p && cptx_operand_image_map(&images, &image, &of_x, err) && cptx_tensor_map_make(dev, &of_x, &x, err) &&
	          cptx_operand_tensor_map(&filters, &matrix, &of_w, err) && cptx_tensor_map_make(dev, &of_w, &w, err);
	const cptx_launch_opt launch = { .grid = { tiles(conv_pixels(c), PIXELS), tiles(c->k, FILTERS) },
		                             CPTX_ARGS(CPTX_ARG_BYTES(&x, sizeof x), CPTX_ARG_BYTES(&w, sizeof w), at[2]) };
	ok = ok && cptx_launch_once(p, NULL, &launch, NULL, err);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	return ok;
}

/* Whole numbers from -2 to 2: sums are exact in f32, in any order. */
static int value(uint64_t i) { return (int)((i * 2654435761u >> 13) % 5) - 2; }

static int expected(const conv *c, uint32_t pixel, uint32_t filter)
{
	const uint32_t q = pixel % conv_q(c), row = pixel / conv_q(c), p = row % conv_p(c), n = row / conv_p(c);
	int sum = 0;

	for (uint32_t tap = 0; tap < c->r * c->s; tap++) {
		const uint32_t h = p * c->stride + tap / c->s - c->pad, w = q * c->stride + tap % c->s - c->pad;
		for (uint32_t i = 0; h < c->h && w < c->w && i < c->c; i++)
			sum += value((((uint64_t)n * c->h + h) * c->w + w) * c->c + i) *
			       value(((uint64_t)filter * c->r * c->s + tap) * c->c + i);
	}
	return sum;
}

bool conv_check(cptx_device *dev, const conv *c, uint64_t *wrong, cptx_error *err)
{
	const uint64_t count[] = { c->n * c->h * c->w * c->c, c->k * c->r * c->s * c->c, conv_pixels(c) * c->k };
	uint64_t at[3];
	uint16_t *host[3];

	for (int b = 0; b < 3; b++) {
		host[b] = calloc(count[b], 2);
		for (uint64_t i = 0; i < count[b] && host[b]; i++)
			host[b][i] = b == 2 ? 0xffff : (uint16_t)number_bits(CPTX_BF16, value(i));
		at[b] = cptx_mem_alloc(dev, count[b] * 2, err);
		cptx_mem_write(dev, at[b], host[b], count[b] * 2, err);
	}
	bool ok = !err->code && run(dev, c, at, err) && cptx_mem_read(dev, host[2], at[2], count[2] * 2, err);
	*wrong = 0;
	for (uint64_t i = 0; i < count[2] && ok; i++)
		*wrong += host[2][i] != number_bits(CPTX_BF16, expected(c, (uint32_t)(i / c->k), (uint32_t)(i % c->k)));
	for (int b = 0; b < 3; b++) {
		cptx_mem_free(dev, at[b]);
		free(host[b]);
	}
	return ok;
}

#ifndef EXAMPLES_NO_MAIN
int main(void)
{
	const char *name = getenv("CPTX_DEVICE");
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open(name ? name : "emu:sm_90a", &err);
	uint64_t wrong, sum = 0;

	for (const conv *c = conv_shapes; c < conv_shapes + CONV_SHAPES && conv_check(dev, c, &wrong, &err); c++) {
		printf("%u x %u x %u x %u by %u x %u x %u, padding %u, stride %u: %llu of %u elements are wrong\n", c->n, c->h, c->w,
		       c->c, c->k, c->r, c->s, c->pad, c->stride, (unsigned long long)wrong, conv_pixels(c) * c->k);
		sum += wrong;
	}
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return err.code || sum;
}
#endif
