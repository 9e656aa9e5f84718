/* SPDX-License-Identifier: MIT */
/* Kernels built with the helpers, on the emulator: a matrix product through swizzled tiles, and pipelines of warps and CTAs.
 */
#include "../test.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/layout.h>
#include <cptx/pipeline.h>

static cptx_device *dev;
static cptx_error err;

#define RIGHT(what)                                                                                                         \
	do {                                                                                                                    \
		bool right_ = (what);                                                                                               \
		SURE(right_ &&err.code == CPTX_OK, "%s", err.text);                                                                 \
	} while (0)

static bool open_device(void)
{
	err = (cptx_error){ 0 };
	dev = cptx_device_open("emu:sm_90a", &err);
	return dev != NULL;
}

/* ---- a product: D (64 x 16) = A (64 x 64) * B (16 x 64)^T, bf16, one warp ---- */

enum { M = 64, N = 16, K = 64 };

static float value_of(uint32_t row, uint32_t k, bool b) { return (float)((int)((row * 7 + k * (b ? 5 : 3)) % 17) - 8); }

/* The tile's bytes as they are in shared memory. */
static uint8_t *image(const cptx_tile *t, bool b)
{
	uint8_t *bytes = calloc(1, cptx_tile_bytes(t));

	for (uint32_t row = 0; row < t->rows; row++)
		for (uint32_t k = 0; k < t->cols; k++) {
			uint16_t v = (uint16_t)number_bits(CPTX_BF16, (double)value_of(row, k, b));
			memcpy(bytes + cptx_tile_at(t, row, k).byte, &v, sizeof v);
		}
	return bytes;
}

static void copy_in(cptx_kernel *k, cptx_val to, cptx_val from, cptx_val lane, uint32_t bytes)
{
	cptx_val at = cptx_add(k, to, cptx_shl(k, lane, 2)), p = cptx_add(k, from, cptx_mul_wide(k, lane, 4));

	for (uint32_t i = 0; i < bytes; i += 128)
		cptx_st(k, cptx_offset(at, i), cptx_ld(k, cptx_offset(p, i), .space = CPTX_GLOBAL, .type = CPTX_B32),
		        .space = CPTX_SHARED);
}

static void build_product(cptx_module *m, const cptx_tile *ta, const cptx_tile *tb)
{
	cptx_kernel *k = cptx_kernel_begin(m, "product", .block = { 32 });
	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b"), d = cptx_param(k, CPTX_PTR, "d");
	cptx_val sa = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B8, cptx_tile_bytes(ta), cptx_tile_align(ta), "sa"));
	cptx_val sb = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B8, cptx_tile_bytes(tb), cptx_tile_align(tb), "sb"));
	cptx_val lane = cptx_tid_x(k);
	cptx_frag fa = { .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 }, fb = fa, fc = fa;
	cptx_frag_map map;
	cptx_lines la, lb;
	cptx_lane_lines at_a, at_b;

	fb.kind = CPTX_FRAG_MMA_B, fc.kind = CPTX_FRAG_MMA_C, fc.bits = 32;
	copy_in(k, sa, a, lane, cptx_tile_bytes(ta));
	copy_in(k, sb, b, lane, cptx_tile_bytes(tb));
	cptx_bar_warp_sync(k, -1);
	RIGHT(cptx_tile_lines(ta, &fa, 0, 0, &la, &err) && cptx_tile_lines(tb, &fb, 0, 0, &lb, &err));
	RIGHT(cptx_frag_resolve(&fc, &map, &err));
	cptx_lane_lines_begin(k, &at_a, &la, lane, sa);
	cptx_lane_lines_begin(k, &at_b, &lb, lane, sb);
	cptx_val row = cptx_frag_lane_row(k, &map, lane), col = cptx_frag_lane_col(k, &map, lane);
	cptx_val at = cptx_add(k, d, cptx_mul_wide(k, cptx_mad(k, row, N, col, .mode = CPTX_LO), 4));
	cptx_val ra = cptx_regs(k, CPTX_B32, la.map.regs), rb = cptx_regs(k, CPTX_B32, lb.map.regs);
	for (uint32_t i = 0; i < M; i += 16)
		for (uint32_t j = 0; j < N; j += 8) {
			cptx_val acc = cptx_regs(k, CPTX_F32, map.regs);
			for (uint16_t r = 0; r < map.regs; r++)
				cptx_mov(k, 0.0f, .into = cptx_elem(acc, r));
			for (uint32_t kk = 0; kk < K; kk += 16) {
				for (uint32_t l = 0; l < la.count; l++)
					cptx_lines_load(k, &la, l, cptx_lane_lines_at(k, &at_a, l, i, kk), ra);
				for (uint32_t l = 0; l < lb.count; l++)
					cptx_lines_load(k, &lb, l, cptx_lane_lines_at(k, &at_b, l, j, kk), rb);
				cptx_mma(k, ra, rb, acc, .shape = CPTX_M16N8K16, .dtype = CPTX_F32, .atype = CPTX_BF16, .into = acc);
			}
			for (uint16_t r = 0; r < map.regs; r++) {
				cptx_cell c;
				SURE(cptx_frag_cell(&map, (cptx_place){ 0, r, 0 }, &c), "not so");
				cptx_st(k, cptx_offset(at, ((i + c.row) * N + j + c.col) * 4), cptx_elem(acc, r), .space = CPTX_GLOBAL);
			}
		}
}

static void run_product(enum cptx_swizzle swizzle, bool mn_a, bool mn_b, uint32_t pitch)
{
	cptx_tile ta = { .rows = M, .cols = K, .elem.bits = 16, .elem.mn_major = mn_a, .swizzle = swizzle, .pitch = pitch };
	cptx_tile tb = { .rows = N, .cols = K, .elem.bits = 16, .elem.mn_major = mn_b, .swizzle = swizzle, .pitch = pitch };
	cptx_module *m = cptx_module_new(NULL);
	float d[M * N];

	if (mn_b && swizzle)
		tb.swizzle = CPTX_SWIZZLE_32B; /* 16 columns */
	build_product(m, &ta, &tb);
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	uint8_t *ia = image(&ta, false), *ib = image(&tb, true);
	uint64_t da = cptx_mem_alloc(dev, cptx_tile_bytes(&ta), &err), db = cptx_mem_alloc(dev, cptx_tile_bytes(&tb), &err);
	uint64_t dd = cptx_mem_alloc(dev, sizeof d, &err);
	RIGHT(cptx_mem_write(dev, da, ia, cptx_tile_bytes(&ta), &err) &&
	      cptx_mem_write(dev, db, ib, cptx_tile_bytes(&tb), &err));
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	RIGHT(p != NULL);
	RIGHT(cptx_launch_once(p, "product", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(da, db, dd) }, NULL, &err));
	RIGHT(cptx_mem_read(dev, d, dd, sizeof d, &err));
	for (uint32_t i = 0; i < M; i++)
		for (uint32_t j = 0; j < N; j++) {
			float want = 0;
			for (uint32_t kk = 0; kk < K; kk++)
				want += value_of(i, kk, false) * value_of(j, kk, true);
			SURE(d[i * N + j] == want, "swizzle %d: row %u column %u: %g, not %g", swizzle, i, j, (double)d[i * N + j],
			     (double)want);
		}
	cptx_program_destroy(p);
	cptx_mem_free(dev, da), cptx_mem_free(dev, db), cptx_mem_free(dev, dd);
	cptx_module_destroy(m);
	free(ia), free(ib);
}

START_TEST(products)
{
	static const enum cptx_swizzle modes[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B };

	if (!open_device()) {
		skip("this build has no emulator");
		return;
	}
	for (size_t s = 0; s < 4; s++)
		for (int mn = 0; mn < 4; mn++)
			run_product(modes[s], mn & 1, mn & 2, 0);
	run_product(CPTX_SWIZZLE_NONE, false, false, 144);
	run_product(CPTX_SWIZZLE_128B, false, false, 128);
	cptx_device_close(dev);
}
END_TEST

/* ---- pipelines: a producer writes numbers into stages, two warps add them up ---- */

enum { STAGES_MOST = 4, TURNS = 11, WORDS = 32 };

static void produce(cptx_kernel *k, const cptx_pipe *p, cptx_val data, cptx_val lane)
{
	cptx_pipe_at at = cptx_pipe_producer(k, p);
	cptx_val i = cptx_var(k, CPTX_U32, 0), mine = cptx_shl(k, lane, 2);

	CPTX_FOR(k, i, TURNS, 1) {
		cptx_pipe_wait_empty(k, p, &at);
		cptx_val to = cptx_add(k, cptx_mad(k, at.stage, WORDS * 4, data, .mode = CPTX_LO), mine);
		cptx_st(k, to, cptx_mad(k, i, 1000, lane, .mode = CPTX_LO), .space = CPTX_SHARED);
		cptx_pipe_filled(k, p, &at);
		cptx_pipe_next(k, p, &at);
	}
	cptx_pipe_drain(k, p, &at);
}

/* sum of (turn + 1) * word, so that the order counts */
static void consume(cptx_kernel *k, const cptx_pipe *p, cptx_val data, cptx_val lane, cptx_val out, uint32_t ctas, bool asks)
{
	cptx_val there = cptx_reg(k, CPTX_PRED);

	cptx_pipe_at at = ctas == 1 ? cptx_pipe_consumer(k, p) : cptx_pipe_consumer_of(k, p, cptx_and(k, lane, ctas - 1));
	cptx_val i = cptx_var(k, CPTX_U32, 0), sum = cptx_var(k, CPTX_U32, 0), mine = cptx_shl(k, lane, 2);
	cptx_val releases = cptx_setp(k, lane, ctas, .cmp = CPTX_LT);

	cptx_setp(k, lane, 32, .cmp = CPTX_GE, .into = there); /* no: nobody asked */
	CPTX_FOR(k, i, TURNS, 1) {
		CPTX_IF(k, cptx_negated(there))
			cptx_pipe_wait_full(k, p, &at);
		cptx_pipe_at ahead = cptx_pipe_ahead(k, p, &at);
		if (asks)
			cptx_mov(k, cptx_pipe_is_full(k, &ahead), .into = there);
		cptx_val from = cptx_add(k, cptx_mad(k, at.stage, WORDS * 4, data, .mode = CPTX_LO), mine);
		cptx_val v = cptx_ld(k, from, .space = CPTX_SHARED, .type = CPTX_U32);
		cptx_mad(k, v, cptx_add(k, i, 1), sum, .mode = CPTX_LO, .into = sum);
		cptx_bar_warp_sync(k, -1);
		cptx_pipe_release(k, p, &at, releases);
		if (asks)
			cptx_pipe_go(k, &at, &ahead);
		else
			cptx_pipe_next(k, p, &at);
	}
	cptx_st(k, out, sum, .space = CPTX_GLOBAL);
}

static void build_pipe(cptx_module *m, uint32_t stages, uint32_t ctas, bool asks)
{
	cptx_kernel *k = cptx_kernel_begin(m, "pipe", .block = { 96 }, .cluster = { ctas > 1 ? ctas : 0 });
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), tid = cptx_tid_x(k), lane = cptx_and(k, tid, 31);
	cptx_val data = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B32, stages * WORDS, 16, "data"));
	cptx_pipe p;

	cptx_pipe_new(k, &p, .stages = stages, .producers = 32, .consumers = 2, .multicast = ctas);
	cptx_pipe_init(k, &p, cptx_setp(k, tid, 0, .cmp = CPTX_EQ));
	CPTX_IF(k, cptx_setp(k, tid, 32, .cmp = CPTX_LT))
		produce(k, &p, data, lane);
	CPTX_ELSE(k) {
		cptx_val word = cptx_sub(k, cptx_mad(k, cptx_ctaid_x(k), 64, tid, .mode = CPTX_LO), 32);
		consume(k, &p, data, lane, cptx_add(k, out, cptx_mul_wide(k, word, 4)), ctas, asks);
	}
	if (ctas > 1) {
		cptx_barrier_cluster_arrive(k);
		cptx_barrier_cluster_wait(k);
	}
}

static void run_pipe(uint32_t stages, uint32_t ctas, bool asks)
{
	cptx_module *m = cptx_module_new(NULL);
	uint32_t out[4 * 64];

	build_pipe(m, stages, ctas, asks);
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	RIGHT(p != NULL);
	uint64_t d = cptx_mem_alloc(dev, sizeof out, &err);
	RIGHT(cptx_mem_fill8(dev, d, 0xee, sizeof out, &err));
	RIGHT(cptx_launch_once(p, "pipe", &(cptx_launch_opt){ .grid = { ctas }, CPTX_ARGS(d) }, NULL, &err));
	RIGHT(cptx_mem_read(dev, out, d, sizeof out, &err));
	for (uint32_t i = 0; i < ctas * 64; i++) {
		uint32_t want = 0;
		for (uint32_t turn = 0; turn < TURNS; turn++)
			want += (turn + 1) * (turn * 1000 + i % 32);
		SURE(out[i] == want, "%u stages, %u CTAs, word %u: %u, not %u", stages, ctas, i, out[i], want);
	}
	cptx_mem_free(dev, d);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}

START_TEST(pipelines)
{
	if (!open_device()) {
		skip("this build has no emulator");
		return;
	}
	for (uint32_t stages = 1; stages <= STAGES_MOST; stages++) {
		for (uint32_t ctas = 1; ctas <= 4; ctas *= 2)
			for (int asks = 0; asks < 2; asks++)
				run_pipe(stages, ctas, asks);
	}
	cptx_device_close(dev);
}
END_TEST

static void no_pipe(cptx_pipe_opt o, bool begin, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_pipe p;

	cptx_pipe_new_(k, CPTX_HERE, &p, &o);
	if (begin)
		cptx_pipe_consumer(k, &p);
	SURE(cptx_module_error(m) != NULL, "%s", words);
	SURE(strstr(cptx_module_error(m)->text, words) != NULL, "%s", cptx_module_error(m)->text);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_run.c:"));
	cptx_module_destroy(m);
}

START_TEST(no_pipelines)
{
	no_pipe((cptx_pipe_opt){ .stages = 0 }, false, "a pipeline of 0 stages; it has 1 to 64");
	no_pipe((cptx_pipe_opt){ .stages = 65 }, false, "65 stages");
	no_pipe((cptx_pipe_opt){ .stages = 2, .multicast = 17 }, false, "a cluster has at most 16");
	no_pipe((cptx_pipe_opt){ .stages = 2, .consumers = 1 << 17, .multicast = 16 }, false, "at most 1048575 arrivals");
	no_pipe((cptx_pipe_opt){ .stages = 2, .multicast = 2 }, true, "say which it releases to, cptx_pipe_consumer_of");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run");
	TCase *t = tcase_create("run");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, products);
	tcase_add_test(t, pipelines);
	tcase_add_test(t, no_pipelines);
	suite_add_tcase(s, t);
	return test_main("layout_run", s);
}
