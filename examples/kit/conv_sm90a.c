/* SPDX-License-Identifier: MIT */
/*
 * A 2-D convolution forward as an implicit GEMM: D (output pixels x filters) = A (pixels x taps * channels) * B^T.
 *
 * A is never stored: for each tap TMA gathers 128 output pixels by 64 channels straight from the images, with zeros for
 * padding and for what lies behind the last channel or image.  B is a matrix of filters by channels for each tap.  One warp
 * copies; two warpgroups multiply 64 pixels by 128 filters each.
 */
#include "conv_sm90a.h"
#include "host.h"

#include <cptx/mma.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <stdio.h>

enum { PIXELS = 128, FILTERS = 128, CHANNELS = 64, STAGES = 4, GROUPS = 2, THREADS = GROUPS * 128 + 32 };

static const cptx_operand_opt images = { .type = CPTX_BF16,
	                                     .stages = STAGES,
	                                     .im2col = 4,
	                                     .tile = { PIXELS, CHANNELS, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B } };
/* A matrix for each tap. */
static const cptx_operand_opt filters = { .type = CPTX_BF16,
	                                      .stages = STAGES,
	                                      .batched = true,
	                                      .tile = { FILTERS, CHANNELS, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B } };

typedef struct state {
	cptx_operand x, w;
	cptx_pipe pipe;
	cptx_val y, pixel, filter, lane_0; /* pixel, filter: first ones of the CTA's tile */
} state;

struct args {
	cptx_tensor_map_opt x, w;
	uint64_t y;
};
static const cptx_param_row table[] = { CPTX_PARAM_MAP(struct args, x), CPTX_PARAM_MAP(struct args, w),
	                                    CPTX_PARAM_ROW(struct args, CPTX_PTR, y) };

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
	cptx_tiled_mma mma;
	cptx_acc acc;

	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = PIXELS / GROUPS, .n = FILTERS,
	                   .units_m = GROUPS, .unit = unit, .a_tile = images.tile, .b_tile = filters.tile);
	cptx_acc_new(k, &mma, &acc);
	cptx_acc_clear(k, &acc);
	CPTX_FOR(k, i, c->r * c->s * tiles_in(c->c, CHANNELS), 1) {
		cptx_pipe_wait_full(k, &st->pipe, &at);
		cptx_val x = cptx_operand_at(k, &st->x, at.stage), w = cptx_operand_at(k, &st->w, at.stage);
		cptx_mma_tile(k, &mma, &acc, x, w);
		cptx_mma_wait(k, &mma, 1);
		CPTX_IF(k, cptx_setp(k, i, 0, .cmp = CPTX_NE)) {
			cptx_pipe_release(k, &st->pipe, &old, st->lane_0);
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
	cptx_kernel *k = cptx_kernel_begin(m, "conv", .block = { THREADS });
	cptx_operand_opt x = images, w = filters;
	cptx_params params = { 0 };
	cptx_roles roles;
	state st;

	cptx_params_declare(k, &params, table, CPTX_PARAM_COUNT(table));
	x.map = cptx_params_get(k, &params, "x"), w.map = cptx_params_get(k, &params, "w");
	st.y = cptx_params_get(k, &params, "y");
	cptx_roles_begin(k, &roles, .threads = THREADS);
	st.lane_0 = cptx_setp(k, roles.lane, 0, .cmp = CPTX_EQ);
	st.pixel = cptx_mul(k, cptx_ctaid_x(k), PIXELS, .mode = CPTX_LO);
	st.filter = cptx_mul(k, cptx_ctaid_y(k), FILTERS, .mode = CPTX_LO);
	cptx_operand_make(k, &st.x, &x);
	cptx_operand_make(k, &st.w, &w);
	cptx_pipe_new(k, &st.pipe, .stages = STAGES, .consumers = GROUPS * 4);
	cptx_pipe_init(k, &st.pipe, cptx_setp(k, roles.tid, 0, .cmp = CPTX_EQ));
	CPTX_ROLE(k, &roles, .warps = GROUPS * 4)
		consume(k, c, &st, cptx_shr(k, roles.warp, 2));
	CPTX_ROLE(k, &roles, .warps = 1, .elect = true)
		produce(k, c, &st);
	return k;
}

static bool run(cptx_device *dev, const conv *c, const uint64_t at[3], cptx_error *err)
{
	const int32_t pad = (int32_t)c->pad, upper_w = pad - (int32_t)c->s + 1, upper_h = pad - (int32_t)c->r + 1;
	const uint32_t taps = c->r * c->s, step = c->stride;
	cptx_operand_image image = { .address = at[0], .lower = { -pad, -pad }, .upper = { upper_w, upper_h } };
	const cptx_operand_matrix matrix = {
		.address = at[1], .rows = c->k, .cols = c->c, .pitch = taps * c->c * 2, .batch = taps, .apart = c->c * 2
	};
	const cptx_launch_opt opt = { .grid = { tiles_in(conv_pixels(c), PIXELS), tiles_in(c->k, FILTERS) } };
	struct args args = { .y = at[2] };
	const cptx_params_part part = { table, CPTX_PARAM_COUNT(table), &args };
	cptx_module *m = cptx_module_new(NULL);

	image.c = c->c, image.w = c->w, image.h = c->h, image.d = 1, image.n = c->n, image.stride[0] = image.stride[1] = step;
	conv_build(m, c);
	const bool ok = cptx_operand_image_map(&images, &image, &args.x, err) &&
	                cptx_operand_tensor_map(&filters, &matrix, &args.w, err) && run_once(dev, m, &part, &opt, err);
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
		at[b] = upload(dev, host[b], count[b] * 2, err);
	}
	bool ok = !err->code && run(dev, c, at, err) && cptx_mem_read(dev, host[2], at[2], count[2] * 2, err);
	*wrong = 0;
	for (uint64_t i = 0; i < count[2] && ok; i++)
		*wrong += host[2][i] != number_bits(CPTX_BF16, expected(c, (uint32_t)(i / c->k), (uint32_t)(i % c->k)));
	for (int b = 0; b < 3; b++)
		cptx_mem_free(dev, at[b]), free(host[b]);
	return ok;
}

#ifndef EXAMPLES_NO_MAIN
int main(void)
{
	cptx_error err = { 0 };
	cptx_device *dev = open_device("emu:sm_90a", &err);
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
