/* SPDX-License-Identifier: MIT */
/*
 * Experts: rows that only the device counts, on a GPU that has the kernel, else on the emulator.  Each trial is launched
 * twice by one prepared launch, with other counts in device memory; every element of every row is compared, and that rows
 * which are no expert's stay as they were.
 */
#include "gemm_draw.h"
#include "gemm_tests.h"
#include "../whole.h"

static const char *const targets[] = { "sm_90a", "sm_90a" };

#define NEW .size = CPTX_OPT_SIZE(cptx_gemm_opt) /* has options that version 0.1 had not */
#define TILE(m_, n_, s) NEW, .mma = CPTX_GEMM_WGMMA, .bm = m_, .bn = n_, .stages = s
#define BF16 .a = CPTX_BF16, .b = CPTX_BF16
#define CONTIGUOUS .experts = CPTX_GEMM_EXPERTS_CONTIGUOUS
#define MASKED .experts = CPTX_GEMM_EXPERTS_MASKED
#define ALONG_K .experts = CPTX_GEMM_EXPERTS_K, .a_m_major = true, .b_n_major = true
#define SIZE(m_, n_, k_, experts_, ...) .m = m_, .n = n_, .k = k_, .batch = experts_, .counts = { __VA_ARGS__ }

static const gemm_trial trials[] = {
	/* tiles that end in the midst of the next expert's; rows behind the last */
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, CONTIGUOUS }, SIZE(180, 72, 136, 4, 70, 0, 64, 21) },
	/* one has all; none has any; no rows at the ends */
	{ .opt = { TILE(128, 64, 2), BF16, .out = CPTX_F32, CONTIGUOUS }, SIZE(200, 72, 72, 3, 0, 200, 0) },
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_F32, CONTIGUOUS }, SIZE(100, 72, 72, 3, 0, 0, 0) },
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_F32, MASKED }, SIZE(30, 72, 72, 2, 0, 0) },
	/* counts beyond the rows that there are */
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_F16, CONTIGUOUS }, SIZE(150, 72, 72, 3, 60, UINT32_MAX, 5) },
	{ .opt = { TILE(64, 48, 2), BF16, .out = CPTX_BF16, MASKED }, SIZE(70, 72, 72, 3, 500, 1, UINT32_MAX) },
	/* more experts than lanes */
	{ .opt = { TILE(64, 32, 3), BF16, .out = CPTX_BF16, CONTIGUOUS },
	  SIZE(130, 40, 72, 40, 3, 0, 5, 0, 0, 1, 1, 1, 9, 2, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 3,
	       1, 0, 20, 0) },
	/* several tiles of a CTA, deferred stores; a narrower last subtile */
	{ .opt = { TILE(128, 128, 3), BF16, .out = CPTX_BF16, CONTIGUOUS }, SIZE(420, 136, 136, 3, 130, 200, 60), .ctas = 2 },
	{ .opt = { TILE(64, 136, 3), BF16, .out = CPTX_BF16, MASKED }, SIZE(130, 144, 136, 2, 130, 65), .ctas = 1 },
	/* what an element is made of beside the sum */
	{ .opt = { TILE(64, 72, 2), BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true,
	           .epilogue = gemm_trial_epilogue, CONTIGUOUS },
	  SIZE(150, 136, 72, 2, 67, 80) },
	{ .opt = { TILE(64, 72, 2), BF16, .out = CPTX_F32, .beta = true, .bias = true, MASKED },
	  SIZE(70, 72, 72, 2, 67, 90),
	  .in_place = true },
	/* rows along the columns of the instructions */
	{ .opt = { TILE(128, 24, 3), BF16, .out = CPTX_BF16, .swap = true, MASKED }, SIZE(40, 136, 72, 3, 20, 0, 40) },
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_F32, .swap = true, .bias = true, .beta = true, CONTIGUOUS },
	  SIZE(180, 136, 72, 4, 33, 0, 80, 21) },
	{ .opt = { TILE(64, 40, 3), BF16, .out = CPTX_BF16, .swap = true, .b_n_major = true, CONTIGUOUS },
	  SIZE(90, 136, 72, 2, 33, 50) },
	/* clusters that share weights, or rows */
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, .cluster_m = 2, CONTIGUOUS }, SIZE(210, 72, 136, 2, 70, 130) },
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, .cluster_n = 2, MASKED }, SIZE(70, 136, 136, 2, 70, 64) },
	{ .opt = { TILE(128, 64, 3), .a = CPTX_E4M3, .b = CPTX_E5M2, .out = CPTX_BF16, CONTIGUOUS },
	  SIZE(160, 72, 144, 3, 129, 1, 27) },
	/* scaled by blocks, from rows on that no copy of factors begins at */
	{ .opt = { TILE(64, 64, 3), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_BF16, .scale = CPTX_F32, CONTIGUOUS },
	  SIZE(140, 136, 272, 3, 65, 0, 66),
	  .ctas = 3 },
	{ .opt = { TILE(128, 96, 3), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .scale = CPTX_F32, MASKED },
	  SIZE(131, 136, 144, 2, 65, 200) },
	/* rows along K: none, fewer than a K tile, some beyond those that there are; multicast; stores that come later */
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_F32, ALONG_K }, SIZE(72, 72, 210, 5, 64, 0, 70, 3, 500) },
	{ .opt = { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .beta = true, .bias = true, ALONG_K },
	  SIZE(136, 136, 150, 2, 0, 131),
	  .ctas = 1 },
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, .cluster_m = 2, .swap = true, ALONG_K },
	  SIZE(72, 136, 100, 2, 33, 40) },
	{ .opt = { TILE(64, 128, 3), BF16, .out = CPTX_BF16, .b_n_major = true, .per_sm = 2, MASKED },
	  SIZE(70, 136, 104, 3, 64, 65, 1) },
	/* rows that come from elsewhere, and that are added elsewhere; several tiles of a CTA, fewer K tiles than stages */
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, CONTIGUOUS, .gather = true },
	  SIZE(180, 72, 136, 4, 70, 0, 64, 21),
	  .rows_a = 50 },
	{ .opt = { TILE(128, 128, 4), BF16, .out = CPTX_F32, MASKED, .gather = true, .scatter = true },
	  SIZE(140, 136, 520, 3, 130, 7, 1000),
	  .ctas = 2,
	  .rows_a = 90,
	  .rows_d = 70 },
	{ .opt = { TILE(128, 64, 4), BF16, .out = CPTX_F32, .alpha = true, .bias = true, CONTIGUOUS, .scatter = true },
	  SIZE(200, 76, 72, 3, 0, 199, 40),
	  .rows_d = 33 },
	{ .opt = { TILE(64, 32, 2), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .per_sm = 2, CONTIGUOUS, .gather = true,
	           .scatter = true },
	  SIZE(90, 36, 144, 2, 50, 30),
	  .rows_a = 11,
	  .rows_d = 90 },
	/* rows and matrices at distances, of whole 16 bytes and of others; one B for all experts */
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, .beta = true, .strided = true, .unaligned = 7, CONTIGUOUS },
	  SIZE(180, 71, 135, 4, 70, 0, 64, 21),
	  .place = { { 1, 2, 0, false }, { 3, 1, 5, false }, { 0, 3, 0, false }, { 1, 1, 0, false } } },
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_F32, .bias = true, .strided = true, MASKED },
	  SIZE(70, 72, 136, 3, 70, 0, 33),
	  .place = { { 0, 8, 0, false }, { 0, 16, 64, false }, { 0, 0, 0, false }, { 0, 4, 0, false } } },
	{ .opt = { TILE(64, 40, 3), BF16, .out = CPTX_F16, .swap = true, .strided = true, .unaligned = 7, MASKED },
	  SIZE(43, 71, 77, 3, 43, 0, 20),
	  .place = { { 1, 0, 0, false }, { 0, 1, 0, true }, { 0, 0, 0, false }, { 1, 0, 0, false } } },
	{ .opt = { TILE(64, 64, 3), BF16, .out = CPTX_BF16, .strided = true, .unaligned = 7, .beta = true, ALONG_K },
	  SIZE(71, 75, 140, 3, 64, 0, 70),
	  .place = { { 1, 2, 0, false }, { 3, 0, 0, false }, { 0, 1, 3, false }, { 1, 0, 7, false } } },
	{ .opt = { TILE(128, 64, 3), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_BF16, .scale = CPTX_F32, .scale_rows = true,
	           .strided = true, .unaligned = 7, CONTIGUOUS },
	  SIZE(140, 71, 259, 3, 65, 0, 66) },
	{ .opt = { TILE(64, 72, 3), .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .scale = CPTX_F32, .scale_rows = true,
	           MASKED },
	  SIZE(131, 136, 144, 2, 65, 200) },
};

/* D whose rows begin anywhere, found by the expert. */
static const gemm_trial unaligned[] = {
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_BF16, .unaligned = 7, MASKED }, SIZE(70, 41, 67, 2, 70, 3) },
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_F32, .unaligned = CPTX_GEMM_D, CONTIGUOUS, .gather = true },
	  SIZE(90, 41, 64, 3, 33, 0, 40),
	  .rows_a = 50 },
	{ .opt = { TILE(64, 64, 2), BF16, .out = CPTX_F32, .unaligned = 7, ALONG_K }, SIZE(35, 41, 90, 2, 33, 50) },
};

START_TEST(rows_of_d_begin_anywhere) { gemm_right_always(&unaligned[_i], targets, 0); }
END_TEST

/* CPTX_WHOLE: all of them. */
START_TEST(gives_the_exact_sums)
{
	if (_i % 6 == 0 || whole())
		gemm_right(&trials[_i], targets, (unsigned)_i);
}
END_TEST

/* By the other instructions. */
#define SYNC(m_, n_, s) NEW, .bm = m_, .bn = n_, .bk = 32, .stages = s, .warps_m = 2, .warps_n = 2
#define TCGEN05(m_, n_, s) NEW, .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_F16, .bm = m_, .bn = n_, .stages = s
static const struct {
	const char *targets[2];
	gemm_trial t;
} others[] = {
	{ { "sm_80", "sm_120" },
	  { .opt = { SYNC(64, 64, 3), BF16, .out = CPTX_F32, CONTIGUOUS }, SIZE(180, 70, 72, 4, 70, 0, 64, 21) } },
	{ { "sm_80", "sm_80" },
	  { .opt = { SYNC(64, 64, 3), BF16, .out = CPTX_BF16, .bias = true, .beta = true, .b_n_major = true, MASKED },
	    SIZE(70, 72, 72, 3, 70, 500, 3),
	    .ctas = 2 } },
	{ { "sm_90", "sm_120" },
	  { .opt = { SYNC(64, 64, 3), .tma = true, BF16, .out = CPTX_BF16, CONTIGUOUS },
	    SIZE(180, 72, 72, 4, 70, 0, 64, 21),
	    .ctas = 2 } },
	{ { "sm_90", "sm_90" },
	  { .opt = { SYNC(64, 64, 3), .tma = true, BF16, .out = CPTX_F32, ALONG_K }, SIZE(72, 72, 100, 3, 33, 0, 40) } },
	{ { "sm_100a", "sm_103a" },
	  { .opt = { TCGEN05(128, 64, 2), BF16, .out = CPTX_BF16, CONTIGUOUS }, SIZE(150, 40, 72, 3, 130, 0, 15), .ctas = 2 } },
	{ { "sm_100a", "sm_100a" },
	  { .opt = { TCGEN05(256, 64, 2), BF16, .out = CPTX_F32, .bias = true, MASKED }, SIZE(150, 72, 72, 2, 150, 66) } },
	{ { "sm_100a", "sm_100a" },
	  { .opt = { TCGEN05(128, 32, 2), BF16, .out = CPTX_BF16, .swap = true, .cluster_m = 2, MASKED },
	    SIZE(40, 136, 72, 2, 33, 20) } },
	{ { "sm_100a", "sm_100a" },
	  { .opt = { TCGEN05(128, 64, 2), BF16, .out = CPTX_F32, ALONG_K }, SIZE(136, 72, 150, 3, 70, 0, 64) } },
	/* rows that are gathered and scattered */
	{ { "sm_80", "sm_89" },
	  { .opt = { SYNC(64, 64, 3), BF16, .out = CPTX_F32, CONTIGUOUS, .gather = true, .scatter = true },
	    SIZE(180, 72, 72, 4, 70, 0, 64, 21),
	    .ctas = 2,
	    .rows_a = 40,
	    .rows_d = 50 } },
	{ { "sm_80", "sm_120" },
	  { .opt = { NEW, .bm = 64, .bn = 64, .bk = 64, .stages = 2, .warps_m = 2, .warps_n = 2, .a = CPTX_S8, .b = CPTX_S8,
	             .out = CPTX_F32, MASKED, .gather = true, .bias = true },
	    SIZE(70, 72, 80, 3, 70, 500, 3),
	    .rows_a = 300 } },
	/* rows of any length */
	{ { "sm_80", "sm_120" },
	  { .opt = { SYNC(64, 64, 3), BF16, .out = CPTX_BF16, .beta = true, .strided = true, .unaligned = 7, MASKED },
	    SIZE(70, 71, 77, 3, 70, 0, 33),
	    .place = { { 1, 0, 0, false }, { 1, 2, 3, false }, { 0, 1, 0, false }, { 1, 1, 0, false } } } },
	{ { "sm_100a", "sm_100a" },
	  { .opt = { TCGEN05(128, 64, 2), BF16, .out = CPTX_BF16, .strided = true, .unaligned = 7, CONTIGUOUS },
	    SIZE(150, 41, 77, 3, 130, 0, 15) } },
	/* a warpgroup brings A and B */
	{ { "sm_90a", "sm_90a" },
	  { .opt = { NEW, .bm = 256, .bn = 128, .bk = 64, .stages = 2, .warps_m = 4, .warps_n = 2, .tma = true, BF16,
	             .out = CPTX_F32, ALONG_K, GEMM_TRIAL_VISITORS },
	    SIZE(40, 40, 200, 2, 70, 0),
	    .ctas = 1 } },
};

START_TEST(by_other_instructions)
{
	if (_i % 4 == 0 || whole())
		gemm_right(&others[_i].t, others[_i].targets, (unsigned)_i);
}
END_TEST

START_TEST(options_at_random) { gemm_right_at_random(gemm_draw_experts, targets); }
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said;
	} bad[] = {
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .stream_k = true, CONTIGUOUS }, "experts cannot be shared along K" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .batched = true, CONTIGUOUS }, "experts cannot be batched" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .grouped = true, MASKED }, "experts cannot be a list of problems" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .a_m_major = true, MASKED }, "experts with A as K rows of M" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .experts = CPTX_GEMM_EXPERTS_K }, "store them as K rows of M and of N" },
		{ { SYNC(64, 64, 3), BF16, .out = CPTX_F32, ALONG_K }, "experts whose rows lie along K by cp.async" },
		{ { NEW, .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_MXF8F6F4, .bm = 128, .bn = 64, .stages = 2, .a = CPTX_E4M3,
		    .b = CPTX_E4M3, .scale = CPTX_UE8M0, .out = CPTX_F32, MASKED },
		  "experts with scale factors of .ue8m0" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .unaligned = CPTX_GEMM_A, CONTIGUOUS, .gather = true },
		  "rows of A that are gathered and unaligned" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .gather = true }, "rows that are gathered without experts" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, ALONG_K, .scatter = true }, "rows that are scattered without experts" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_BF16, MASKED, .scatter = true }, "to D of .bf16; they are added" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, MASKED, .scatter = true, .beta = true }, "to D of .f32 with beta" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, MASKED, .gather = true, .cluster_n = 2 }, "a cluster of 1x2; 64 and" },
		{ { SYNC(64, 64, 3), .tma = true, BF16, .out = CPTX_F32, MASKED, .gather = true }, "gathered by TMA" },
		{ { NEW, .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_F16, .bm = 128, .bn = 64, .stages = 2, BF16, .out = CPTX_F32,
		    MASKED, .gather = true },
		  ".gather is an option of mma.sync, of wgmma" },
		{ { TILE(64, 64, 3), BF16, .out = CPTX_F32, .experts = CPTX_GEMM_EXPERTS_KINDS },
		  "there are contiguous and masked ones, and those along K" },
	};
	static const struct {
		cptx_gemm_problem p;
		enum cptx_gemm_experts experts;
		const char *said;
	} sizes[] = {
		{ { .m = (1 << 26) + 1, .n = 64, .k = 64, .batch = 3 },
		  CPTX_GEMM_EXPERTS_CONTIGUOUS,
		  "rows of 3 experts (contiguous)" },
		{ { .m = 1 << 20, .n = 64, .k = 64, .batch = 2000 }, CPTX_GEMM_EXPERTS_MASKED, "2^26, and 2^30 of all" },
	};
	cptx_gemm_opt o = { TILE(64, 64, 3), BF16, .out = CPTX_F32, MASKED };
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert(!cptx_gemm_check(&bad[i].o, NULL, NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		o.experts = sizes[i].experts;
		ck_assert(!cptx_gemm_check_problem(&o, &sizes[i].p, 132, NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, sizes[i].said) != NULL, "%s: not %s", err.text, sizes[i].said);
	}
	ck_assert_str_eq(cptx_gemm_experts_name(CPTX_GEMM_EXPERTS_MASKED), "masked");
	ck_assert_str_eq(cptx_gemm_experts_name(CPTX_GEMM_EXPERTS_KINDS), "?");
}
END_TEST

/* Rows of all experts lie in one matrix: a distance of matrices there would be ignored. */
START_TEST(strides_are_of_what_each_expert_has)
{
	enum { FAR = 4 * 64 * 72 };
	static const struct {
		enum cptx_gemm_experts experts;
		cptx_gemm_problem p;
		const char *said; /* NULL: it is taken */
	} all[] = {
		{ CPTX_GEMM_EXPERTS_CONTIGUOUS, { .stride_a = FAR }, "stride_a = 18432 with experts (contiguous)" },
		{ CPTX_GEMM_EXPERTS_MASKED, { .stride_a = FAR }, "stride_a = 18432 with experts (masked), whose rows lie behind" },
		{ CPTX_GEMM_EXPERTS_MASKED, { .stride_c = FAR }, "it is 0 or 4096" },
		{ CPTX_GEMM_EXPERTS_MASKED, { .stride_c = CPTX_GEMM_BROADCAST }, "stride_c = 18446744073709551615 with experts" },
		{ CPTX_GEMM_EXPERTS_MASKED, { .stride_d = FAR }, "stride_d = 18432 with experts" },
		{ CPTX_GEMM_EXPERTS_K, { .stride_a = FAR }, "stride_a = 18432 with experts (along-k)" },
		{ CPTX_GEMM_EXPERTS_K, { .stride_b = FAR }, "stride_b = 18432 with experts (along-k)" },
		{ CPTX_GEMM_EXPERTS_K, { .stride_c = FAR, .stride_d = FAR }, NULL },
		{ CPTX_GEMM_EXPERTS_MASKED, { .lda = 72, .stride_a = 64 * 72, .stride_b = FAR, .stride_d = 64 * 64 }, NULL },
		{ CPTX_GEMM_EXPERTS_CONTIGUOUS, { .stride_b = CPTX_GEMM_BROADCAST }, NULL },
	};
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const bool along_k = all[i].experts == CPTX_GEMM_EXPERTS_K;
		const cptx_gemm_opt o = { TILE(64, 64, 3),      BF16,
			                      .out = CPTX_BF16,     .beta = true,
			                      .strided = true,      .a_m_major = along_k,
			                      .b_n_major = along_k, .experts = all[i].experts };
		cptx_gemm_problem p = all[i].p;
		p.m = p.n = p.k = 64, p.batch = 3;
		const bool taken = cptx_gemm_check_problem(&o, &p, 132, NULL, FRESH(&err));
		ck_assert_msg(all[i].said ? !taken && strstr(err.text, all[i].said) : taken, "%zu: %s", i, err.text);
	}
}
END_TEST

/* Addresses of counts that no kernel could read; what has no counts. */
START_TEST(launches_that_do_not_fit)
{
	cptx_gemm_opt o = { TILE(64, 64, 2), BF16, .out = CPTX_F32, MASKED };
	cptx_gemm_problem p = { .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = 64, .n = 64, .k = 64, .batch = 2 };
	cptx_error err = { 0 };
	cptx_device *dev = gemm_device(&o, "sm_90a", NULL);
	cptx_module *m = cptx_module_new(NULL);

	ck_assert_ptr_nonnull(cptx_gemm_build(m, &o, &err));
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	ck_assert_msg(program != NULL, "%s", err.text);
	p.a = p.b = p.d = cptx_mem_alloc(dev, 64 * 64 * 2 * 4, &err);
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, &err));
	ck_assert_msg(strstr(err.text, "the address of the experts' counts is 0") != NULL, "%s", err.text);
	p.counts = p.a + 2, err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, &err));
	ck_assert_msg(strstr(err.text, "is no multiple of 4") != NULL, "%s", err.text);
	cptx_mem_free(dev, p.a);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	gemm_device_done(dev, "bad launches");
}
END_TEST

/* The model takes the rows that an expert has on average, or those that are expected; grids do not depend on counts. */
START_TEST(shapes_follow_the_rows_of_an_expert)
{
	cptx_gemm_opt o = { NEW, .mma = CPTX_GEMM_WGMMA, BF16, .out = CPTX_BF16, CONTIGUOUS };
	cptx_gemm_problem p = { .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = 32768, .n = 4096, .k = 7168, .batch = 4 };
	cptx_gemm_choice many, few;
	cptx_gemm_plan plan;

	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, &many, 1, NULL), 1);
	p.batch = 1024;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, &few, 1, NULL), 1);
#define ROWS(c) ((c).opt.swap ? (c).opt.bn : (c).opt.bm)
	ck_assert_uint_ge(ROWS(many), 128);
	ck_assert_uint_le(ROWS(few), 64);
	ck_assert_int_eq(few.opt.experts, CPTX_GEMM_EXPERTS_CONTIGUOUS);
	o.experts = CPTX_GEMM_EXPERTS_MASKED, p.m = 4096, p.batch = 32, p.expected = 20;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, &few, 1, NULL), 1);
	ck_assert_uint_le(ROWS(few), 64);
	/* rows of any length are copied first, but for those that are gathered */
	cptx_error err = { .code = CPTX_OK };
	p.k = 7169;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, &few, 1, &err), 1);
	ck_assert_uint_eq(few.opt.unaligned, CPTX_GEMM_A | CPTX_GEMM_B);
	o.gather = true;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, &few, 1, &err), 0);
	ck_assert_msg(strstr(err.text, "rows of A have 7169 elements of 2 bytes") && !strstr(err.text, ".unaligned"), "%s",
	              err.text);
	/* one row of each of two experts makes two tiles, and more rows than that none */
	cptx_gemm_opt small = { TILE(64, 64, 2), BF16, .out = CPTX_F32, CONTIGUOUS };
	cptx_gemm_problem two = { .m = 2, .n = 64, .k = 64, .batch = 8 };
	ck_assert(cptx_gemm_check_problem(&small, &two, 132, &plan, NULL));
	ck_assert_uint_eq(plan.grid, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_experts");
	TCase *c = tcase_create("c");

	tcase_add_loop_test(c, rows_of_d_begin_anywhere, 0, sizeof unaligned / sizeof *unaligned);
	tcase_add_loop_test(c, gives_the_exact_sums, 0, sizeof trials / sizeof *trials);
	tcase_add_loop_test(c, by_other_instructions, 0, sizeof others / sizeof *others);
	tcase_add_test(c, says_which_rule_is_broken);
	tcase_add_test(c, strides_are_of_what_each_expert_has);
	tcase_add_test(c, launches_that_do_not_fit);
	tcase_add_test(c, shapes_follow_the_rows_of_an_expert);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	tcase_add_test(test_case(s, "random"), options_at_random);
	return gemm_tests_main("gemm_experts", s);
}
