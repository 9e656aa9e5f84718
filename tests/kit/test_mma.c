/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: products of every path and layout, what becomes of their accumulators, and what is refused. */
#include "tiles.h"

#include <cptx/tmem.h>

/* A product of a CTA: D of m x n, of `depth` elements along K; operands lie in shared memory as the tiles say. */
typedef struct product {
	const char *target;
	enum cptx_mma_by by;
	enum cptx_type a, b;
	uint32_t m, n, units_m, units_n, depth;
	bool a_mn, b_mn;
	enum cptx_swizzle swizzle;
} product;

static const product products[] = {
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_BF16, CPTX_BF16, 32, 64, 4, 2, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_F16, CPTX_F16, 64, 64, 2, 1, 64, true, true, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_F16, CPTX_F16, 16, 24, 1, 1, 32, false, false, CPTX_SWIZZLE_64B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_S8, CPTX_U8, 32, 32, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_TF32, CPTX_TF32, 32, 32, 2, 2, 32, false, false, CPTX_SWIZZLE_128B },
	{ "sm_89", CPTX_BY_MMA_SYNC, CPTX_E4M3, CPTX_E5M2, 32, 64, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_120a", CPTX_BY_MMA_SYNC, CPTX_BF16, CPTX_BF16, 64, 32, 2, 2, 64, false, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_BF16, CPTX_BF16, 64, 128, 2, 1, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_F16, CPTX_F16, 128, 64, 1, 2, 128, false, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_BF16, CPTX_BF16, 64, 64, 2, 1, 64, true, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_E4M3, CPTX_E4M3, 64, 96, 1, 1, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_TF32, CPTX_TF32, 64, 40, 1, 1, 32, false, false, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_BF16, CPTX_BF16, 128, 128, 1, 1, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_F16, CPTX_F16, 128, 64, 1, 1, 128, false, true, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_E4M3, CPTX_E5M2, 128, 256, 1, 1, 128, false, false, CPTX_SWIZZLE_128B },
};

/* ---- kernels ---- */

static uint32_t threads_of(const product *p) { return (p->by == CPTX_BY_MMA_SYNC ? 32 : 128) * p->units_m * p->units_n; }

static cptx_tile tile_of(const product *p, bool b)
{
	return (cptx_tile){ b ? p->n * p->units_n : p->m * p->units_m, p->depth,
		                .elem = { (uint8_t)bits_of(p->a), .mn_major = b ? p->b_mn : p->a_mn }, .swizzle = p->swizzle };
}

static cptx_val unit_of(cptx_kernel *k, const product *p)
{
	cptx_val unit = cptx_shr(k, cptx_tid_x(k), p->by == CPTX_BY_MMA_SYNC ? 5 : 7);

	return cptx_shfl_sync(k, unit, 0, 31, -1, .mode = CPTX_IDX);
}

/* Behind a product of tcgen05, by all threads: it is complete. */
static void wait_tcgen05(cptx_kernel *k, cptx_val bar)
{
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, 0, .space = CPTX_SHARED));
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
}

typedef struct built {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val a, b, d, more;
	cptx_tiled_mma mma;
	cptx_acc acc;
} built;

static void begin(built *x, const product *p)
{
	x->m = cptx_module_new(NULL);
	x->k = cptx_kernel_begin(x->m, "product", .block = { threads_of(p) });
	x->a = cptx_param(x->k, CPTX_PTR, "a"), x->b = cptx_param(x->k, CPTX_PTR, "b"), x->d = cptx_param(x->k, CPTX_PTR, "d");
	x->more = cptx_param(x->k, CPTX_PTR, "more");
	cptx_param(x->k, CPTX_U32, "n");
}

static void end(cptx_kernel *k, const product *p)
{
	if (p->by != CPTX_BY_MMA_SYNC)
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
}

/* D = A * B^T, multiplied step by step where `split`, with half of K at a time. */
static cptx_module *build(const product *p, bool split)
{
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	const uint32_t pitch = p->n * p->units_n;
	built x;

	begin(&x, p);
	cptx_kernel *k = x.k;
	cptx_val a = filled(k, &ta, x.a, threads_of(p), "tile_a"), b = filled(k, &tb, x.b, threads_of(p), "tile_b");
	end(k, p);
	cptx_tiled_mma_new(k, &x.mma, .by = p->by, .a = p->a, .b = p->b, .m = p->m, .n = p->n, .units_m = p->units_m,
	                   .units_n = p->units_n, .unit = unit_of(k, p), .a_tile = ta, .b_tile = tb);
	const uint32_t half = split ? x.mma.steps / 2 : 0;
	cptx_acc_matrix to = { .address = x.d, .type = p->a == CPTX_S8 ? CPTX_S32 : CPTX_F32, .pitch = cptx_imm(pitch) };
	if (p->by != CPTX_BY_TCGEN05) {
		cptx_acc_new(k, &x.mma, &x.acc);
		cptx_mma_tile(k, &x.mma, &x.acc, a, b, .fresh = true, .steps = half);
		if (half)
			cptx_mma_tile(k, &x.mma, &x.acc, a, b, .first = half);
		cptx_mma_wait(k, &x.mma, 0);
		cptx_acc_store(k, &x.acc, &to);
		return x.m;
	}
	cptx_tmem t;
	cptx_val bar = cptx_shared(k, CPTX_B64, 1), first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);
	CPTX_IF(k, first)
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
	CPTX_TMEM(k, &t, .columns = p->n, .warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT)) {
		cptx_acc_in_tmem(k, &x.mma, &x.acc, t.address);
		CPTX_IF(k, first) {
			cptx_mma_tile(k, &x.mma, &x.acc, a, b, .fresh = true, .steps = half);
			if (half)
				cptx_mma_tile(k, &x.mma, &x.acc, a, b, .first = half);
			cptx_mma_commit(k, &x.mma, cptx_mov(k, bar, .type = CPTX_U32));
		}
		wait_tcgen05(k, bar);
		for (uint32_t c = 0; c < p->n; c += 64) {
			cptx_acc part;
			cptx_acc_load(k, &x.acc, c, 64, &part);
			cptx_acc_store(k, &part, &to);
		}
	}
	return x.m;
}

/* ---- tests ---- */

static matrix a, b;
static float d[MOST];
static int32_t *di = (int32_t *)d;

static void check(const product *p, bool split, uint64_t seed)
{
	const uint32_t rows = p->m * p->units_m, cols = p->n * p->units_n;
	emu_run r = { .target = p->target, .seed = seed, .grid = 1 };
	cptx_module *m = build(p, split);

	draw(&a, tile_of(p, false), p->a, 4, (unsigned)seed), draw(&b, tile_of(p, true), p->b, 4, (unsigned)seed + 7);
	r.buffer[0] = (emu_buffer){ a.image, cptx_tile_bytes(&a.tile), 0 };
	r.buffer[1] = (emu_buffer){ b.image, cptx_tile_bytes(&b.tile), 0 };
	r.buffer[2] = (emu_buffer){ d, rows * cols * 4, 0 };
	memset(d, 0xff, rows * cols * 4);
	emu_launch(m, &r, 0);
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < cols; j++) {
			int sum = 0;
			for (uint32_t x = 0; x < p->depth; x++)
				sum += whole_number(&a, i, x) * whole_number(&b, j, x);
			float got = p->a == CPTX_S8 ? (float)di[i * cols + j] : d[i * cols + j];
			SURE(got == (float)sum, "%s, %d, %s: row %u, column %u is %g, not %d", p->target, (int)p->by,
			     cptx_type_name(p->a), i, j, (double)got, sum);
		}
	cptx_module_destroy(m);
}

START_TEST(products_are_right)
{
	for (size_t i = 0; i < sizeof products / sizeof *products; i++)
		for (uint64_t seed = 1; seed < 4; seed++)
			check(&products[i], seed == 2, seed);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the products");
		return;
	}
	for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
		cptx_module *m = build(&products[i], false);
		free(emu_assembles(m, products[i].target));
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma");

	tcase_add_test(t, products_are_right);
	tcase_add_test(t, ptxas_takes_them);
	return test_main("kit mma", s);
}
