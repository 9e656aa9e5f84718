/* SPDX-License-Identifier: MIT */
/*
 * out = e4m3(silu(A * Wg^T) * (A * Wu^T) * scale), and amax = the largest |silu(A * Wg^T) * (A * Wu^T)|: the first half of a
 * gated MLP, quantized for the second.  A is M x K, Wg and Wu are N x K, all bf16 and K-major; sm_90a.
 *
 * A producer warp copies tiles by TMA; two warpgroups multiply 64 x 128 each, twice, by wgmma, and their results leave by
 * TMA while the next tile is multiplied.  CTAs stay and take tile after tile.
 */
#include "gemm_swiglu_fp8.h"
#include "host.h"

#include <cptx/epilogue.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <stdio.h>

enum { BM = 128, BN = 128, BK = 64, STAGES = 4, GROUPS = 2, THREADS = 128 * (GROUPS + 1) };

typedef struct gemm {
	cptx_kernel *k;
	cptx_operand in[3]; /* A, Wg, Wu */
	cptx_pipe pipe;
	cptx_tiles tiles;
	cptx_epilogue_ring ring;
	cptx_val scale, amax, k_tiles, group, lane_0;
} gemm;

static const cptx_tile tile = { BM, BK, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B }; /* of all three */

typedef struct inputs {
	cptx_tensor_map_opt A, Wg, Wu, out;
	uint64_t scale, amax;
	uint32_t M, N, K;
} inputs;
static const cptx_param_row table[] = { CPTX_PARAM_MAP(inputs, A),
	                                    CPTX_PARAM_MAP(inputs, Wg),
	                                    CPTX_PARAM_MAP(inputs, Wu),
	                                    CPTX_PARAM_MAP(inputs, out),
	                                    CPTX_PARAM_ROW(inputs, CPTX_PTR, scale),
	                                    CPTX_PARAM_ROW(inputs, CPTX_PTR, amax),
	                                    CPTX_PARAM_ROW(inputs, CPTX_U32, M),
	                                    CPTX_PARAM_ROW(inputs, CPTX_U32, N),
	                                    CPTX_PARAM_ROW(inputs, CPTX_U32, K) };

static void produce(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_producer(k, &g->pipe);
	cptx_tiles_at t;

	CPTX_TILES(k, &g->tiles, &t)
	{
		cptx_val row = cptx_mul(k, t.m, BM, .mode = CPTX_LO), col = cptx_mul(k, t.n, BN, .mode = CPTX_LO);
		cptx_val i = cptx_var(k, CPTX_U32, 0);
		CPTX_FOR(k, i, g->k_tiles, 1) {
			cptx_val depth = cptx_mul(k, i, BK, .mode = CPTX_LO);
			cptx_pipe_wait_empty(k, &g->pipe, &at);
			cptx_pipe_expect(k, &g->pipe, &at, 3 * cptx_tile_bytes(&tile));
			for (int n = 0; n < 3; n++)
				cptx_operand_load(k, &g->in[n], at.stage, n ? col : row, depth, .barrier = cptx_pipe_full(&at));
			cptx_pipe_next(k, &g->pipe, &at);
		}
	}
}

static void multiply(gemm *g, const cptx_tiled_mma *mma, cptx_acc acc[2], cptx_pipe_at *at, cptx_pipe_at *done)
{
	cptx_kernel *k = g->k;
	cptx_val i = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, i, g->k_tiles, 1) {
		cptx_val first = cptx_setp(k, i, 0, .cmp = CPTX_EQ), a = cptx_operand_at(k, &g->in[0], at->stage);
		cptx_pipe_wait_full(k, &g->pipe, at);
		for (int n = 0; n < 2; n++)
			cptx_mma_tile(k, mma, &acc[n], a, cptx_operand_at(k, &g->in[1 + n], at->stage), .fresh_when = first);
		cptx_pipe_next(k, &g->pipe, at);
		cptx_mma_wait(k, mma, 2); /* the stage before has been read */
		CPTX_IF(k, cptx_setp(k, i, 0, .cmp = CPTX_NE)) {
			cptx_pipe_release(k, &g->pipe, done, g->lane_0);
			cptx_pipe_next(k, &g->pipe, done);
		}
	}
	cptx_mma_wait(k, mma, 0);
	cptx_pipe_release(k, &g->pipe, done, g->lane_0);
	cptx_pipe_next(k, &g->pipe, done);
}

static void consume(gemm *g)
{
	cptx_kernel *k = g->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &g->pipe), done = cptx_pipe_consumer(k, &g->pipe);
	cptx_tiled_mma mma;
	cptx_epilogue e;
	cptx_tiles_at t;
	cptx_acc acc[2];

	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = BM / GROUPS, .n = BN,
	                   .units_m = GROUPS, .unit = g->group, .a_tile = tile, .b_tile = tile);
	cptx_acc_new(k, &mma, &acc[0]);
	cptx_acc_new(k, &mma, &acc[1]);
	/* no .rows and .cols: outside TMA reads zeros, which change nothing, and stores nothing */
	cptx_epilogue_new(k, &e, .vec = 2);
	cptx_epilogue_add(k, &e, CPTX_VISIT_GATE, .acc = &acc[1], .activation = CPTX_VISIT_SILU);
	cptx_epilogue_add(k, &e, CPTX_VISIT_AMAX, .address = g->amax);
	cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .address = g->scale);
	CPTX_TILES(k, &g->tiles, &t)
	{
		multiply(g, &mma, acc, &at, &done);
		cptx_val row = cptx_mul(k, t.m, BM, .mode = CPTX_LO), col = cptx_mul(k, t.n, BN, .mode = CPTX_LO);
		cptx_epilogue_run(k, &e, &acc[0], .row = row, .col = col);
		cptx_epilogue_store_tma(k, &e, &g->ring);
	}
	cptx_epilogue_ring_drain(k, &g->ring, &acc[0]);
}

cptx_kernel *gemm_swiglu_fp8(cptx_module *m)
{
	gemm g = { .k = cptx_kernel_begin(m, "gemm_swiglu_fp8", .block = { THREADS }, .min_ctas = 1) };
	cptx_kernel *k = g.k;
	cptx_params p = { 0 };
	cptx_roles r;

	cptx_params_declare(k, &p, table, CPTX_PARAM_COUNT(table));
	for (int i = 0; i < 3; i++)
		cptx_operand_new(k, &g.in[i], .type = CPTX_BF16, .tile = tile, .stages = STAGES, .map = p.val[i]);
	g.scale = cptx_params_get(k, &p, "scale"), g.amax = cptx_params_get(k, &p, "amax");
	cptx_roles_begin(k, &r, .threads = THREADS);
	g.group = cptx_shr(k, r.warp, 2), g.lane_0 = cptx_setp(k, cptx_and(k, r.tid, 127), 0, .cmp = CPTX_EQ);
	cptx_val tiles_m = tiles_along(k, &p, "M", BM), tiles_n = tiles_along(k, &p, "N", BN);
	g.k_tiles = tiles_along(k, &p, "K", BK);
	cptx_tiles_new(k, &g.tiles, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = tiles_m, .tiles_n = tiles_n,
	               .group = cptx_imm(8));
	cptx_epilogue_ring_new(k, &g.ring, .type = CPTX_E4M3, .tile = cptx_epilogue_tile(CPTX_E4M3, BM / GROUPS, BN),
	                       .map = cptx_params_get(k, &p, "out"), .stages = 1, .units = GROUPS, .unit = g.group,
	                       .barrier = cptx_add(k, g.group, 1));
	cptx_pipe_new(k, &g.pipe, .stages = STAGES, .consumers = GROUPS);
	cptx_pipe_init(k, &g.pipe, cptx_setp(k, r.tid, 0, .cmp = CPTX_EQ));
	CPTX_ROLE(k, &r, .warps = 4 * GROUPS, .regs = 232)
		consume(&g);
	CPTX_ROLE(k, &r, .warps = 4, .regs = 40, .elect = true)
		produce(&g);
	return k;
}

/* ---- host ---- */

int64_t gemm_swiglu_fp8_run(cptx_device *dev, uint32_t m, uint32_t n, uint32_t k, cptx_error *err)
{
	const uint32_t size[][3] = { { m, k, 2 }, { n, k, 2 }, { n, k, 2 }, { m, n, 1 }, { 1, 1, 4 }, { 1, 1, 4 } };
	const uint32_t tiles = tiles_in(m, BM) * tiles_in(n, BN), sms = cptx_device_get_info(dev)->sms;
	cptx_module *module = cptx_module_new(NULL);
	float scale = 16, amax = 0, most = 0;
	void *host[6] = { calloc(m, k * 2), calloc(n, k * 2), calloc(n, k * 2), calloc(m, n), &scale, &amax };
	inputs args = { .M = m, .N = n, .K = k };
	cptx_tensor_map_opt *const map[] = { &args.A, &args.Wg, &args.Wu, &args.out };
	const cptx_params_part part = { table, CPTX_PARAM_COUNT(table), &args };
	const cptx_tile of_out = cptx_epilogue_tile(CPTX_E4M3, BM / GROUPS, BN);
	uint64_t at[6];
	int64_t wrong = 0;

	gemm_swiglu_fp8(module);
	for (uint32_t i = 0; i < 6; i++) {
		if (i < 3)
			draw(host[i], (size_t)size[i][0] * k, i);
		at[i] = upload(dev, host[i], (size_t)size[i][0] * size[i][1] * size[i][2], err);
		if (i < 4)
			map_of(i == 3 ? CPTX_E4M3 : CPTX_BF16, i == 3 ? &of_out : &tile, at[i], size[i][0], size[i][1], map[i], err);
	}
	args.scale = at[4], args.amax = at[5];
	run_once(dev, module, &part, &(cptx_launch_opt){ .grid = { tiles < sms ? tiles : sms } }, err);
	cptx_mem_read(dev, host[3], at[3], (size_t)m * n, err);
	cptx_mem_read(dev, &amax, at[5], sizeof amax, err);
	for (uint32_t i = 0; i < m * n && !err->code; i++) {
		const uint16_t *row = (uint16_t *)host[0] + i / n * k;
		const double x = dot(row, (uint16_t *)host[1] + i % n * k, k), y = dot(row, (uint16_t *)host[2] + i % n * k, k);
		const double right = x / (1 + exp(-x)) * y;
		wrong += !is_e4m3_of(((uint8_t *)host[3])[i], right * scale);
		most = fmaxf(most, (float)fabs(right));
	}
	for (int i = 0; i < 6; i++)
		cptx_mem_free(dev, at[i]);
	for (int i = 0; i < 4; i++)
		free(host[i]);
	cptx_module_destroy(module);
	return err->code ? -1 : wrong + (fabsf(amax - most) > ldexpf(most, -10));
}

#ifndef EXAMPLES_NO_MAIN
int main(void)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = open_device("emu:sm_90a", &err);
	const int64_t wrong = dev ? gemm_swiglu_fp8_run(dev, 200, 272, 136, &err) : -1;

	fprintf(stderr, "gemm_swiglu_fp8 200 x 272 x 136: %d of %d elements are wrong%s%s\n", (int)wrong, 200 * 272,
	        wrong < 0 ? ": " : "", err.text);
	cptx_device_close(dev);
	return wrong != 0;
}
#endif
