/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: products by mma.sync whose fragments come a step ahead, those of the next stage too. */
#include "tiles.h"

#include <cptx/cptx.h>
#include <cptx/softmax.h>

/* A product of a CTA: D of m x n for each unit, of `depth` elements along K. */
typedef struct product {
	const char *target;
	enum cptx_type a, b;
	uint32_t m, n, units_m, units_n, depth;
	bool a_mn, b_mn;
	enum cptx_swizzle swizzle;
} product;

static const product products[] = {
	{ "sm_80", CPTX_BF16, CPTX_BF16, 32, 64, 4, 2, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_F16, CPTX_F16, 64, 64, 2, 1, 64, true, true, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_F16, CPTX_F16, 16, 24, 1, 1, 32, false, false, CPTX_SWIZZLE_64B },
	{ "sm_80", CPTX_S8, CPTX_U8, 32, 32, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_TF32, CPTX_TF32, 32, 32, 2, 2, 32, false, false, CPTX_SWIZZLE_128B },
	{ "sm_89", CPTX_E4M3, CPTX_E5M2, 32, 64, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_120a", CPTX_BF16, CPTX_BF16, 64, 32, 2, 2, 64, false, true, CPTX_SWIZZLE_128B },
};
enum { PRODUCTS = sizeof products / sizeof *products };

static cptx_tile tile_of(const product *p, bool b)
{
	return (cptx_tile){ .rows = b ? p->n * p->units_n : p->m * p->units_m,
		                .cols = p->depth,
		                .elem = { .bits = (uint8_t)number_packed_bits(p->a), .mn_major = b ? p->b_mn : p->a_mn },
		                .swizzle = p->swizzle };
}

/* D = 2 A * B^T: all steps but the last, the last with the fragments of the same tile's first behind it, and all again. */
static cptx_module *build(const product *p, bool rolling)
{
	const uint32_t threads = 32 * p->units_m * p->units_n;
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "product", .block = { threads });
	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b"), d = cptx_param(k, CPTX_PTR, "d");
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_mma_frags f;

	cptx_param(k, CPTX_PTR, "more");
	cptx_param(k, CPTX_U32, "n");
	a = filled(k, &ta, a, threads, "tile_a"), b = filled(k, &tb, b, threads, "tile_b");
	cptx_bar_sync(k, 0);
	cptx_val unit = cptx_shfl_sync(k, cptx_shr(k, cptx_tid_x(k), 5), 0, 31, -1, .mode = CPTX_IDX);
	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_MMA_SYNC, .a = p->a, .b = p->b, .m = p->m, .n = p->n, .units_m = p->units_m,
	                   .units_n = p->units_n, .unit = unit, .a_tile = ta, .b_tile = tb, .a_base = a, .b_base = b);
	cptx_val offset = cptx_var(k, CPTX_U32, 0);
	cptx_acc_new(k, &mma, &acc);
	cptx_acc_clear(k, &acc);
	cptx_mma_frags_new(k, &mma, &f, rolling);
	cptx_mma_fetch(k, &mma, &f, offset, offset);
	cptx_mma_tile(k, &mma, &acc, offset, offset, .frags = &f, .steps = mma.steps - 1);
	cptx_mma_tile(k, &mma, &acc, offset, offset, .frags = &f, .first = mma.steps - 1, .next_a = offset, .next_b = offset);
	cptx_mma_tile(k, &mma, &acc, offset, offset, .frags = &f, .along_m = true);
	cptx_acc_store(k, &acc,
	               &(cptx_acc_matrix){
					   .address = d, .type = p->a == CPTX_S8 ? CPTX_S32 : CPTX_F32, .pitch = cptx_imm(p->n * p->units_n) });
	return m;
}

static matrix a, b;
static union {
	float f[MOST];
	int32_t i[MOST];
} d;

START_TEST(fragments_a_step_ahead)
{
	const product *p = &products[_i / 2];
	const uint32_t rows = p->m * p->units_m, cols = p->n * p->units_n;
	cptx_module *m = build(p, _i % 2);

	for (uint64_t seed = 1; seed < 3; seed++) {
		emu_run r = { .target = p->target, .seed = seed, .grid = 1 };
		draw(&a, tile_of(p, false), p->a, 4, (unsigned)seed), draw(&b, tile_of(p, true), p->b, 4, (unsigned)seed + 7);
		r.buffer[0] = (emu_buffer){ a.image, cptx_tile_bytes(&a.tile), 0 };
		r.buffer[1] = (emu_buffer){ b.image, cptx_tile_bytes(&b.tile), 0 };
		r.buffer[2] = (emu_buffer){ &d, rows * cols * 4, 0 };
		memset(&d, 0xff, rows * cols * 4);
		emu_launch(m, &r, 0);
		for (uint32_t i = 0; i < rows * cols; i++) {
			int sum = 0;
			for (uint32_t x = 0; x < p->depth; x++) {
				int of_a = whole_number(&a, i / cols, x);
				sum += 2 * of_a * whole_number(&b, i % cols, x);
			}
			float got = p->a == CPTX_S8 ? (float)d.i[i] : d.f[i];
			SURE(got == (float)sum, "%s, %s: row %u, column %u is %g, not %d", p->target, cptx_type_name(p->a), i / cols,
			     i % cols, (double)got, sum);
		}
	}
	cptx_module_destroy(m);
}
END_TEST

START_TEST(ptxas_spills_nothing)
{
	unsigned n = 0;

	if (!test_ptxas()) {
		skip("ptxas, to judge the products");
		return;
	}
	cptx_module *m = build(&products[_i], false);
	char *said = emu_assembles(m, products[_i].target);
	SURE(assembly_spills(said, &n) == 0 && n == 1, "%s", said);
	free(said);
	cptx_module_destroy(m);
}
END_TEST

/* Fragments that were never made, of another product, of wgmma; the next stage without them. */
START_TEST(fragments_of_others)
{
	static const char *const said[] = { "a set of fragments that cptx_mma_frags_new did not make",
		                                "fragments are for mma.sync; wgmma and tcgen05 read shared memory themselves",
		                                "a set of fragments that cptx_mma_frags_new made for another tiled mma",
		                                "with .next_b but without .frags",
		                                "cptx_mma_load_a of a tiled mma whose A is in registers",
		                                "one that is not of mma.sync",
		                                "a slack of 15; it is from 0 to 14" };
	const cptx_tile wide = { .rows = 64, .cols = 64, .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_128B };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "product", .block = { 128 });
	cptx_val at = cptx_var(k, CPTX_U32, 0);
	cptx_mma_frags f = { .rolling = false };
	cptx_tiled_mma mma, other;
	cptx_acc acc;
	cptx_softmax soft;

	cptx_tiled_mma_new(k, &mma, .by = _i == 1 || _i == 5 ? CPTX_BY_WGMMA : CPTX_BY_MMA_SYNC, .a = CPTX_BF16, .b = CPTX_BF16,
	                   .m = 64, .n = 64, .a_tile = wide, .b_tile = wide);
	cptx_tiled_mma_new(k, &other, .a = CPTX_BF16, .b = CPTX_BF16, .m = 32, .n = 64, .a_from = CPTX_A_REGS, .b_tile = wide);
	cptx_acc_new(k, &mma, &acc);
	if (_i == 0)
		cptx_mma_fetch(k, &mma, &f, at, at);
	else if (_i == 1)
		cptx_mma_frags_new(k, &mma, &f, false);
	else if (_i == 2)
		cptx_mma_frags_new(k, &other, &f, false);
	if (_i == 2)
		cptx_mma_tile(k, &mma, &acc, at, at, .frags = &f);
	else if (_i == 3)
		cptx_mma_tile(k, &mma, &acc, at, at, .next_b = at);
	else if (_i == 4)
		cptx_mma_load_a(k, &other, at);
	if (_i > 4) {
		cptx_softmax_new(k, &soft, acc.rows, 1.0f);
		cptx_softmax_step_lazily(k, &soft, &acc, &acc, _i == 5 ? 8 : 15);
	}
	emu_fails(m, "test_mma_ahead.c", said[_i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma_ahead");

	tcase_add_loop_test(t, fragments_a_step_ahead, 0, 2 * PRODUCTS);
	tcase_add_loop_test(t, fragments_of_others, 0, 7);
	tcase_add_loop_test(t, ptxas_spills_nothing, 0, PRODUCTS);
	return test_main("kit mma_ahead", s);
}
