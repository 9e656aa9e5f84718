/* SPDX-License-Identifier: MIT */
/*
 * cptx/mma.h and cptx/epilogue.h: accumulators of mma.sync to tiles of shared memory, each warp its own, and from there to
 * a matrix in whole rows.  The matrix ends in the midst of a tile, in both directions; what lies behind it stays.
 */
#include "tiles.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>

enum { UNITS_M = 2, UNITS_N = 2, THREADS = 32 * UNITS_M * UNITS_N, DEPTH = 64, PITCH = 280, POISON = 0x7b7b, ROWS = 260 };

typedef struct trial {
	const char *target;
	enum cptx_type type;
	uint32_t m, n;       /* of a warp */
	uint32_t rows, cols; /* of the matrix */
	bool by_stmatrix;
} trial;

static const trial trials[] = {
	{ "sm_80", CPTX_BF16, 32, 64, 101, 120, false }, { "sm_80", CPTX_F16, 16, 128, 63, 256, false },
	{ "sm_90", CPTX_BF16, 32, 64, 101, 120, true },  { "sm_90", CPTX_F16, 64, 128, 250, 264 - 16, true },
	{ "sm_120a", CPTX_F16, 16, 64, 32, 8, true },
};

static int number_at(uint32_t row, uint32_t col) { return (int)((7 * row + 3 * col) % 128); }

static cptx_tile tile_of(uint32_t rows, uint32_t cols, bool mn_major)
{
	return (
		cptx_tile){ .rows = rows, .cols = cols, .elem = { .bits = 16, .mn_major = mn_major }, .swizzle = CPTX_SWIZZLE_128B };
}

static void begin_products(cptx_kernel *k, const trial *t, cptx_val warp, cptx_tiled_mma *mma, cptx_acc *acc)
{
	cptx_tiled_mma_new(k, mma, .by = CPTX_BY_MMA_SYNC, .a = t->type, .b = t->type, .m = t->m, .n = t->n, .units_m = UNITS_M,
	                   .units_n = UNITS_N, .unit = warp, .a_tile = tile_of(t->m * UNITS_M, DEPTH, false),
	                   .b_tile = tile_of(t->n * UNITS_N, DEPTH, false));
	cptx_acc_new(k, mma, acc);
}

/* Sets each element to the number of its place in D. */
static void number_all(cptx_kernel *k, const cptx_acc *acc, cptx_val row0)
{
	CPTX_ACC_EACH(acc, e)
	{
		cptx_val row = cptx_add(k, cptx_add(k, acc->row, e.row), row0), col = cptx_add(k, acc->col, e.col);
		cptx_val v = cptx_mad(k, row, 7, cptx_mul(k, col, 3, .mode = CPTX_LO), .mode = CPTX_LO);
		cptx_cvt(k, cptx_and(k, v, 127), .rnd = CPTX_RN, .dtype = CPTX_F32, .into = e.value);
	}
}

static void build(cptx_module *m, const trial *t)
{
	cptx_kernel *k = cptx_kernel_begin(m, "rows", .block = { THREADS });
	const cptx_tile tile = tile_of(t->m, t->n, false);
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_val d = cptx_param(k, CPTX_PTR, "d");

	cptx_param(k, CPTX_PTR, "b"), cptx_param(k, CPTX_PTR, "c"), cptx_param(k, CPTX_PTR, "e");
	cptx_val n = cptx_param(k, CPTX_U32, "n"), tid = cptx_tid_x(k), lane = cptx_and(k, tid, 31);
	cptx_val warp = cptx_shfl_sync(k, cptx_shr(k, tid, 5), 0, 31, -1, .mode = CPTX_IDX);
	cptx_val row0 = cptx_mul(k, cptx_ctaid_x(k), t->m * UNITS_M, .mode = CPTX_LO);
	cptx_val tiles =
		cptx_mov(k, cptx_shared_dyn(k, UNITS_M * UNITS_N * cptx_tile_bytes(&tile), 1024, "tiles"), .type = CPTX_U32);

	begin_products(k, t, warp, &mma, &acc);
	number_all(k, &acc, row0);
	cptx_val mine = cptx_mad(k, warp, cptx_tile_bytes(&tile), tiles, .mode = CPTX_LO);
	if (t->by_stmatrix)
		cptx_acc_put_tile_matrix(k, &acc, t->type, &tile, mine);
	else
		cptx_acc_put_tile(k, &acc, t->type, &tile, mine);
	cptx_bar_warp_sync(k, -1);
	cptx_val m_at = cptx_div(k, warp, UNITS_N), n_at = cptx_rem(k, warp, UNITS_N);
	cptx_val row = cptx_mad(k, m_at, t->m, row0, .mode = CPTX_LO), col = cptx_mul(k, n_at, t->n, .mode = CPTX_LO);
	cptx_epilogue_store_rows(k, .tile = tile, .smem = mine, .lane = lane, .address = d, .pitch = cptx_imm(PITCH), .row = row,
	                         .col = col, .rows = cptx_imm(t->rows), .cols = n);
}

START_TEST(whole_rows_hold_each_element)
{
	const trial *t = &trials[_i];
	static uint16_t d[ROWS * PITCH];
	const uint32_t across = t->n * UNITS_N;
	const emu_run first = { .target = t->target, .seed = 1, .grid = (t->rows + t->m * UNITS_M - 1) / (t->m * UNITS_M) };
	emu_run r = first;
	cptx_module *m = cptx_module_new(NULL);

	ck_assert(t->cols <= across && t->rows <= ROWS);
	for (size_t i = 0; i < sizeof d / sizeof *d; i++)
		d[i] = POISON;
	build(m, t);
	r.buffer[0] = (emu_buffer){ .host = d, .bytes = sizeof d };
	emu_launch(m, &r, t->cols);
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < PITCH; col++) {
			const bool inside = row < t->rows && col < t->cols;
			const uint16_t want = inside ? (uint16_t)number_bits(t->type, number_at(row, col)) : POISON;
			SURE(d[row * PITCH + col] == want, "%s, %u x %u: (%u, %u) is %x, not %x", t->target, t->rows, t->cols, row, col,
			     d[row * PITCH + col], want);
		}
	cptx_module_destroy(m);
}
END_TEST

START_TEST(mistakes_are_named)
{
	const trial t = { "sm_90", CPTX_BF16, 32, 64, 64, 128, true };
	const cptx_tile good = tile_of(t.m, t.n, false),
					narrow = { .rows = t.m, .cols = 32, .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_64B },
					turned = tile_of(64, t.n, true);
	const cptx_tile of_all = tile_of(t.m * UNITS_M, t.n, false);

	for (int i = 0; i < 5; i++) {
		static const char *const says[] = { "a multiple of four rows", "a multiple of four rows", ".address",
			                                "as many rows and columns as the unit's", "by stmatrix" };
		cptx_module *m;
		cptx_kernel *k = emu_begin(&m, THREADS);
		cptx_val at = cptx_mov(k, 0, .type = CPTX_U32), to = cptx_mov(k, 0, .type = CPTX_U64);
		cptx_tiled_mma mma;
		cptx_acc acc;
		if (i < 2)
			cptx_epilogue_store_rows(k, .tile = i ? turned : narrow, .smem = at, .lane = at, .address = to,
			                         .pitch = cptx_imm(64), .row = at, .col = at, .rows = at, .cols = at);
		else if (i == 2)
			cptx_epilogue_store_rows(k, .tile = good, .smem = at, .lane = at, .pitch = cptx_imm(64), .row = at, .col = at,
			                         .rows = at, .cols = at);
		if (i == 3) {
			begin_products(k, &t, at, &mma, &acc);
			cptx_acc_put_tile(k, &acc, CPTX_BF16, &of_all, at);
		} else if (i == 4) {
			const cptx_tile wide = tile_of(64, 64, false);
			cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = 64,
			                   .a_tile = tile_of(64, DEPTH, false), .b_tile = tile_of(64, DEPTH, false));
			cptx_acc_new(k, &mma, &acc);
			cptx_acc_put_tile_matrix(k, &acc, CPTX_BF16, &wide, at);
		}
		EMU_FAILS(m, says[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "epilogue_rows");

	tcase_add_loop_test(c, whole_rows_hold_each_element, 0, (int)(sizeof trials / sizeof *trials));
	tcase_add_test(c, mistakes_are_named);
	return test_main("kit epilogue rows", s);
}
