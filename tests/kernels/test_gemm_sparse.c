/* SPDX-License-Identifier: MIT */
/* A GEMM whose A has at most two of four neighbours along K: compressed by cptx_gemm_sparse_pack. */
#include "gemm_tests.h"

#define SYNC(m, n, k, wm, wn)                                                                                               \
	.mma = CPTX_GEMM_SYNC, .bm = (m), .bn = (n), .bk = (k), .warps_m = (wm), .warps_n = (wn), .stages = 3, .sparse = true
#define WGMMA(m, n) .mma = CPTX_GEMM_WGMMA, .bm = (m), .bn = (n), .stages = 3, .sparse = true
#define BF16 .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32
#define E4M3 .a = CPTX_E4M3, .b = CPTX_E5M2, .out = CPTX_F32
#define S8 .a = CPTX_S8, .b = CPTX_U8, .out = CPTX_S32

/* Edges of rows, of blocks of 16 rows and of 64 elements along K; K that is no multiple of four. */
static const gemm_trial trials[] = {
	{ { SYNC(64, 64, 64, 2, 2), BF16 }, 100, 72, 136, .seed = 1 },
	{ { SYNC(32, 64, 128, 1, 2), BF16, .b_n_major = true, .batched = true }, 33, 72, 200, .batch = 3, .seed = 2 },
	{ { SYNC(64, 64, 128, 2, 2), E4M3, .alpha = true, .bias = true }, 65, 48, 336, .seed = 3 },
	{ { SYNC(64, 32, 128, 4, 1), S8 }, 47, 40, 144, .seed = 4 },
	/* rows that have elements in the first two places of each four alone; of sm_90, which the even ones run on */
	{ { SYNC(64, 64, 128, 2, 2), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .tma = true }, 1247, 16, 16, .seed = 15 },
	{ { SYNC(64, 64, 64, 2, 2), BF16, .stream_k = true }, 100, 72, 1000, .ctas = 7, .seed = 5 },
	{ { SYNC(64, 64, 64, 2, 2), BF16, .strided = true, .unaligned = CPTX_GEMM_B | CPTX_GEMM_D }, 50, 67, 135, .seed = 6 },
	{ { SYNC(64, 64, 64, 2, 2), BF16, .tma = true }, 100, 72, 136, .seed = 7 },
	{ { SYNC(32, 64, 128, 2, 1), S8, .tma = true, .batched = true }, 47, 40, 272, .batch = 2, .seed = 8 },
	{ { WGMMA(128, 64), BF16 }, 200, 72, 328, .seed = 9 },
	{ { WGMMA(64, 128), E4M3, .batched = true, .beta = true }, 70, 136, 400, .batch = 2, .seed = 10 },
	{ { WGMMA(128, 32), BF16, .cluster_m = 2, .b_n_major = false }, 300, 40, 200, .seed = 11 },
	{ { WGMMA(256, 64), BF16, .cluster_n = 2 }, 300, 200, 200, .seed = 12 },
	{ { WGMMA(192, 64), S8, .stream_k = true }, 200, 72, 1200, .ctas = 3, .seed = 13 },
	{ { WGMMA(64, 64), .a = CPTX_F16, .b = CPTX_F16, .out = CPTX_F16, .b_n_major = true, .strided = true,
	    .unaligned = CPTX_GEMM_B | CPTX_GEMM_D },
	  65,
	  67,
	  131,
	  .seed = 14 },
};

START_TEST(gives_the_exact_result)
{
	static const char *const sync[] = { "sm_89", "sm_120" }, *const tma[] = { "sm_90", "sm_120" };
	static const char *const wgmma[] = { "sm_90a", "sm_90a" };
	const gemm_trial *t = &trials[_i];

	for (unsigned seed = 0; seed < gemm_seeds(1); seed++)
		gemm_right(t, t->opt.mma == CPTX_GEMM_WGMMA ? wgmma : t->opt.tma ? tma : sync, seed + (unsigned)_i);
}
END_TEST

/* ---- what is compressed ---- */

static bool pack(const uint8_t *dense, enum cptx_type type, uint64_t m, uint64_t k, cptx_error *err)
{
	uint8_t values[256];
	uint32_t meta[64];

	ck_assert(m * cptx_gemm_sparse_cols(k) * cptx_type_bits(type) / 8 <= sizeof values);
	ck_assert(cptx_gemm_sparse_meta(m, k) * 4 <= sizeof meta);
	return cptx_gemm_sparse_pack(values, meta, dense, type, m, k, 0, err);
}

START_TEST(three_of_four_are_refused)
{
	uint8_t dense[2][12] = { { 0 } };
	cptx_error err = { 0 };

	dense[1][4] = 1, dense[1][6] = 2, dense[1][8] = 3, dense[1][9] = 4;
	ck_assert(pack(dense[0], CPTX_S8, 1, 12, &err));
	ck_assert(pack(dense[0], CPTX_S8, 2, 12, &err));
	dense[1][7] = 0x80; /* -0 of floats */
	ck_assert(pack(dense[0], CPTX_E4M3, 2, 12, &err));
	ck_assert(!pack(dense[0], CPTX_S8, 2, 12, &err));
	ck_assert_str_eq(err.text,
	                 "gemm: row 1 has more than two elements that are not 0 among columns 4 to 7; a sparse A has at "
	                 "most two in each four");
	err = (cptx_error){ 0 };
	ck_assert(!pack(dense[0], CPTX_F32, 2, 12, &err));
	ck_assert(strstr(err.text, "a sparse A of .f32"));
	err = (cptx_error){ 0 };
	ck_assert(!cptx_gemm_sparse_pack(NULL, NULL, dense, CPTX_S8, 1, 12, 0, &err));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
}
END_TEST

/* Every choice of up to two of four, at both ends of a row that ends in the midst of four. */
START_TEST(all_places_of_two_come_back)
{
	enum { K = 70, COLS = 64 };
	uint16_t dense[16][K] = { { 0 } }, values[16][COLS];
	uint32_t meta[64];
	cptx_error err = { 0 };

	for (unsigned set = 0; set < 16; set++)
		for (unsigned i = 0; i < K; i++) {
			const unsigned rank = (unsigned)__builtin_popcount(set & ((1u << i % 4) - 1));
			dense[set][i] = (uint16_t)(set >> i % 4 & 1 && rank < 2 ? 0x100 + i : 0);
		}
	ck_assert_uint_eq(cptx_gemm_sparse_cols(K), COLS);
	ck_assert_uint_eq(cptx_gemm_sparse_meta(16, K), 64);
	ck_assert_msg(cptx_gemm_sparse_pack(values, meta, dense, CPTX_BF16, 16, K, 0, &err), "%s", err.text);
	for (unsigned s = 0; s < 4; s++) { /* an instruction is 32 deep */
		const cptx_frag f = { .kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 32, .bits = 16, .select = s % 2 };
		cptx_frag_map map;
		ck_assert(cptx_frag_resolve(&f, &map, &err));
		for (unsigned i = 0; i < 256; i++) {
			cptx_place p;
			const unsigned row = i / 16, col = s * 16 + i % 16;
			ck_assert(cptx_frag_place(&map, (cptx_cell){ (uint16_t)row, (uint16_t)(i % 16) }, &p));
			const unsigned lane = p.lane | map.value, at = meta[s / 2 * 32 + lane] >> 2 * p.slot & 3;
			const unsigned k = col / 2 * 4 + at;
			ck_assert_uint_eq(values[row][col], k < K ? dense[row][k] : 0);
			if (k < K)
				dense[row][k] = 0;
			if (i % 2) /* ascending */
				ck_assert_uint_gt(at, meta[s / 2 * 32 + lane] >> 2 * (p.slot - 1) & 3);
		}
	}
	for (unsigned i = 0; i < 16 * K; i++) /* none was left behind */
		ck_assert_uint_eq(dense[i / K][i % K], 0);
}
END_TEST

START_TEST(what_it_cannot_be_is_named)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said;
	} all[] = {
		{ { SYNC(64, 64, 64, 2, 2), .a = CPTX_TF32, .b = CPTX_TF32, .out = CPTX_F32 }, "a sparse A of .tf32" },
		{ { SYNC(64, 64, 64, 2, 2), S8 }, "tile K = 64 with a sparse A of .s8; it is a multiple of 128" },
		{ { SYNC(64, 64, 64, 2, 2), BF16, .a_m_major = true }, "a sparse A stored as K rows of M" },
		{ { WGMMA(64, 64), BF16, .swap = true }, "a sparse A of a tile whose sides are swapped" },
		{ { WGMMA(64, 64), E4M3, .scale = CPTX_F32 }, "a sparse A with scale factors" },
		{ { WGMMA(64, 64), BF16, .experts = CPTX_GEMM_EXPERTS_MASKED }, "a sparse A of experts" },
		{ { WGMMA(64, 64), BF16, .grouped = true }, "a sparse A of a list of problems" },
		{ { WGMMA(64, 64), BF16, .unaligned = CPTX_GEMM_A }, "a sparse A that is unaligned" },
		{ { .mma = CPTX_GEMM_TCGEN05, BF16, .bm = 128, .bn = 64, .stages = 3, .sparse = true }, ".sparse is an option of" },
	};
	cptx_error err = { 0 };

	ck_assert(!cptx_gemm_check(&all[_i].o, NULL, NULL, &err));
	ck_assert_msg(strstr(err.text, all[_i].said), "%s", err.text);
}
END_TEST

/* Rows whose metadata of a step have 4 GiB. */
START_TEST(rows_are_counted_in_32_bits)
{
	const cptx_gemm_opt o = { WGMMA(64, 64), BF16 };
	cptx_gemm_problem p = { .m = (1 << 29) - 16, .n = 64, .k = 64 };
	cptx_error err = { 0 };

	ck_assert_msg(cptx_gemm_check_problem(&o, &p, 132, NULL, &err), "%s", err.text);
	p.m++;
	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, &err));
	ck_assert_msg(strstr(err.text, "M = 536870897 with a sparse A; it has less than 2^29 - 15 rows"), "%s", err.text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sparse");
	TCase *c = tcase_create("compressed");

	tcase_add_test(c, three_of_four_are_refused);
	tcase_add_test(c, all_places_of_two_come_back);
	tcase_add_loop_test(c, what_it_cannot_be_is_named, 0, 9);
	tcase_add_test(c, rows_are_counted_in_32_bits);
	suite_add_tcase(s, c);
	c = tcase_create("results");
	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, gives_the_exact_result, 0, (int)(sizeof trials / sizeof *trials));
	suite_add_tcase(s, c);
	return gemm_tests_main("gemm_sparse", s);
}
