/* SPDX-License-Identifier: MIT */
/* The sm_90a GEMM: on a GPU that has wgmma, else on the emulator. */
#include "gemm_draw.h"
#include "gemm_tests.h"
#include "cli/ptxas.h"

static const char *const targets[] = { "sm_90a", "sm_90a" };

#define TYPES(a_, b_) .mma = CPTX_GEMM_WGMMA, .a = CPTX_##a_, .b = CPTX_##b_
#define TILE(m_, n_, s) .bm = m_, .bn = n_, .stages = s
#define SIZE(m_, n_, k_) .m = m_, .n = n_, .k = k_
#define BF16 TYPES(BF16, BF16)
#define NEW .size = CPTX_OPT_SIZE(cptx_gemm_opt) /* has options that version 0.1 had not */

static const gemm_trial trials[] = {
	{ .opt = { TILE(128, 128, 3), BF16, .out = CPTX_F32 }, SIZE(128, 128, 64) },
	{ .opt = { TILE(128, 256, 4), BF16, .out = CPTX_BF16 }, SIZE(256, 512, 320) },
	{ .opt = { TILE(128, 256, 4), BF16, .out = CPTX_BF16, .cluster_m = 2 }, SIZE(200, 264, 136) },
	{ .opt = { TILE(128, 128, 4), BF16, .out = CPTX_F32, .cluster_n = 2 }, SIZE(136, 300, 264) },
	{ .opt = { TILE(64, 64, 4), BF16, .out = CPTX_BF16, .stream_k = true }, SIZE(70, 200, 520) },
	{ .opt = { TILE(128, 64, 2), BF16, .out = CPTX_F32, .stream_k = true, .cluster_m = 2 }, SIZE(130, 72, 200) },
	{ .opt = { TILE(256, 128, 3), TYPES(F16, F16), .out = CPTX_F16 }, SIZE(300, 136, 72) },
	{ .opt = { TILE(128, 128, 3), BF16, .out = CPTX_BF16, .a_m_major = true }, SIZE(136, 128, 104) },
	{ .opt = { TILE(128, 128, 3), BF16, .out = CPTX_BF16, .b_n_major = true, .cluster_m = 2 }, SIZE(136, 136, 104) },
	{ .opt = { TILE(64, 128, 3), BF16, .out = CPTX_F32, .a_m_major = true, .b_n_major = true }, SIZE(72, 136, 77) },
	{ .opt = { TILE(128, 128, 3), TYPES(E4M3, E5M2), .out = CPTX_BF16 }, SIZE(130, 136, 272) },
	{ .opt = { TILE(64, 16, 5), TYPES(E5M2, E5M2), .out = CPTX_F32 }, SIZE(5, 20, 400) },
	{ .opt = { TILE(64, 48, 5), BF16, .out = CPTX_F16, .batched = true }, SIZE(65, 56, 72), .batch = 3 },
	{ .opt = { TILE(128, 96, 2), BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true, GEMM_TRIAL_VISITORS },
	  SIZE(129, 200, 72) },
	{ .opt = { TILE(64, 80, 2), BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .batched = true,
	           .epilogue = gemm_trial_epilogue, .stream_k = true },
	  SIZE(100, 84, 136),
	  .batch = 2 },
	{ .opt = { TILE(256, 64, 2), BF16, .out = CPTX_BF16, .epilogue = gemm_trial_epilogue, .cluster_n = 2 },
	  SIZE(257, 200, 72) },
	{ .opt = { TILE(64, 8, 4), BF16, .out = CPTX_BF16, .swap = true, .stream_k = true, GEMM_TRIAL_VISITORS },
	  SIZE(5, 200, 520) },
	{ .opt = { TILE(128, 64, 4), BF16, .out = CPTX_BF16, .a_m_major = true, .b_n_major = true, .batched = true, .per_sm = 2,
	           .stream_k = true },
	  SIZE(136, 264, 520),
	  .batch = 2 },
	{ .opt = { TILE(128, 40, 3), BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .batched = true,
	           .epilogue = gemm_trial_epilogue, .swap = true },
	  SIZE(77, 196, 72),
	  .batch = 2 },
	{ .opt = { TILE(192, 144, 2), TYPES(E4M3, E5M2), .out = CPTX_F16, .beta = true, .bias = true, .swap = true,
	           .cluster_m = 2, .epilogue = gemm_trial_epilogue },
	  SIZE(150, 408, 272) },
	{ .opt = { TILE(256, 64, 2), BF16, .out = CPTX_BF16, .a_m_major = true, .swap = true }, SIZE(136, 264, 72) },
	{ .opt = { TILE(64, 8, 6), BF16, .out = CPTX_BF16, .swap = true, .per_sm = 2, .cluster_m = 8 }, SIZE(3, 1200, 520) },
	{ .opt = { TILE(256, 152, 4), BF16, .out = CPTX_BF16, .beta = true }, SIZE(300, 304, 136), .in_place = true },
	{ .opt = { TILE(128, 24, 2), BF16, .out = CPTX_F32, .b_n_major = true, .swap = true, .cluster_n = 2 },
	  SIZE(56, 136, 104) },
	/* several tiles for a CTA, with fewer and with more stages each than a tile of D has pieces */
	{ .opt = { TILE(128, 256, 3), BF16, .out = CPTX_BF16 }, SIZE(256, 512, 64), .ctas = 1 },
	{ .opt = { TILE(128, 256, 3), BF16, .out = CPTX_F16, .group = 1, GEMM_TRIAL_VISITORS }, SIZE(136, 776, 136), .ctas = 3 },
	{ .opt = { TILE(128, 256, 4), BF16, .out = CPTX_BF16, .cluster_m = 2 }, SIZE(600, 264, 400), .ctas = 2 },
	{ .opt = { TILE(64, 152, 2), TYPES(F16, F16), .out = CPTX_F16, .swap = true, .batched = true },
	  SIZE(160, 136, 72),
	  .batch = 3,
	  .ctas = 2 },
	{ .opt = { TILE(64, 24, 5), TYPES(E4M3, E4M3), .out = CPTX_BF16, .bias = true }, SIZE(130, 96, 640), .ctas = 1 },
	{ .opt = { TILE(256, 80, 2), BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true,
	           .epilogue = gemm_trial_epilogue },
	  SIZE(300, 320, 200),
	  .ctas = 2,
	  .in_place = true },
	/* scaled by blocks: rows and K that fill none; columns in the midst of blocks of B */
	{ .opt = { TILE(64, 64, 3), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32 }, SIZE(70, 200, 400), .ctas = 2 },
	{ .opt = { TILE(128, 192, 2), TYPES(E4M3, E5M2), .out = CPTX_F32, .scale = CPTX_F32, .bias = true },
	  SIZE(131, 396, 272),
	  .ctas = 1 },
	{ .opt = { TILE(64, 96, 2), TYPES(E5M2, E4M3), .out = CPTX_F16, .scale = CPTX_F32, .batched = true, .alpha = true },
	  SIZE(67, 200, 144),
	  .batch = 2 },
	{ .opt = { TILE(64, 32, 3), TYPES(E4M3, E4M3), .out = CPTX_F32, .scale = CPTX_F32, .stream_k = true, .cluster_m = 2 },
	  SIZE(130, 72, 528) },
	/* one A and one B for all, with one set of factors each */
	{ .opt = { TILE(64, 96, 2), TYPES(E4M3, E4M3), .out = CPTX_F32, .scale = CPTX_F32, .batched = true, .strided = true },
	  SIZE(67, 100, 144),
	  .place = { { .shared = true }, { .shared = true } },
	  .batch = 2 },
};

START_TEST(gives_the_exact_sums) { gemm_right(&trials[_i], targets, (unsigned)_i); }
END_TEST

/* ---- options and sizes at random ---- */

START_TEST(options_at_random) { gemm_right_at_random(gemm_draw_sm90, targets); }
END_TEST

/* ---- ptxas ---- */

#define WEIGHTS TYPES(BF16, U4), .scale = CPTX_BF16, .scale_k = 128, .zeros = true, .swap = true, NEW

/* Every "N bytes spill stores" is of zero bytes, and no message has a number: C7508 (setmaxnreg ignored), C7514 (wgmma
 * serialized) ... */
START_TEST(ptxas_neither_warns_nor_spills)
{
	static const cptx_gemm_opt opts[] = {
		{ TILE(128, 256, 4), BF16, .out = CPTX_BF16, .cluster_m = 2, .name = "a" },
		{ TILE(128, 256, 4), BF16, .out = CPTX_F32, .stream_k = true, .name = "b" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_F32, .cluster_n = 2, .stream_k = true, .name = "c" },
		{ TILE(192, 192, 4), BF16, .out = CPTX_BF16, .name = "d" },
		{ TILE(192, 176, 3), TYPES(E4M3, E5M2), .out = CPTX_F32, .stream_k = true, .name = "e" },
		{ TILE(64, 256, 5), BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .name = "f" },
		{ TILE(256, 128, 4), BF16, .out = CPTX_F16, .alpha = true, .beta = true, .bias = true, .batched = true,
		  .name = "g" },
		{ TILE(128, 256, 4), BF16, .out = CPTX_BF16, .a_m_major = true, .b_n_major = true, .epilogue = gemm_trial_epilogue,
		  .name = "h" },
		{ TILE(64, 128, 3), BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .swap = true, .per_sm = 2,
		  .stream_k = true, .name = "i" },
		{ TILE(128, 64, 4), BF16, .out = CPTX_BF16, .per_sm = 2, .stream_k = true, .name = "n" },
		{ TILE(256, 32, 2), BF16, .out = CPTX_BF16, .swap = true, .per_sm = 2, .name = "o" },
		{ TILE(256, 184, 3), BF16, .out = CPTX_BF16, .cluster_n = 2, .name = "p" },
		{ TILE(192, 184, 3), BF16, .out = CPTX_BF16, .stream_k = true, .name = "q" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_BF16, .swap = true, .stream_k = true, .name = "j" },
		{ TILE(192, 184, 3), BF16, .out = CPTX_F32, .swap = true, .name = "l" },
		{ TILE(128, 256, 3), BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true,
		  .epilogue = gemm_trial_epilogue, .swap = true, .name = "m" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_BF16, .beta = true, .bias = true, .batched = true, .name = "r" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_BF16, .beta = true, .stream_k = true, .batched = true, .swap = true,
		  .name = "s" },
		{ TILE(192, 192, 4), BF16, .out = CPTX_BF16, .beta = true, .bias = true, .batched = true, .name = "t" },
		{ TILE(256, 176, 2), BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .stream_k = true,
		  .swap = true, .name = "u" },
		{ TILE(256, 184, 2), BF16, .out = CPTX_BF16, .beta = true, .stream_k = true, .swap = true, .name = "v" },
		{ TILE(128, 192, 3), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32, .name = "w" },
		{ TILE(128, 192, 3), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32, .experts = CPTX_GEMM_EXPERTS_CONTIGUOUS,
		  NEW, .name = "x" },
		{ TILE(64, 192, 3), TYPES(E4M3, E4M3), .out = CPTX_F32, .scale = CPTX_F32, .alpha = true, .beta = true, .bias = true,
		  .stream_k = true, .name = "y" },
		{ TILE(128, 256, 3), BF16, .out = CPTX_BF16, .experts = CPTX_GEMM_EXPERTS_MASKED, NEW, .bias = true, .name = "z" },
		{ TILE(256, 128, 3), BF16, .out = CPTX_BF16, .experts = CPTX_GEMM_EXPERTS_CONTIGUOUS, NEW, .name = "A" },
		{ TILE(128, 256, 3), BF16, .out = CPTX_BF16, .experts = CPTX_GEMM_EXPERTS_MASKED, NEW, .swap = true, .name = "B" },
		{ TILE(128, 256, 3), BF16, .out = CPTX_BF16, .unaligned = 7, .name = "C" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_F16, .unaligned = CPTX_GEMM_D, .bias = true, .name = "D" },
		{ TILE(128, 256, 3), BF16, .out = CPTX_BF16, .sparse = true, .name = "E" },
		{ TILE(256, 192, 3), BF16, .out = CPTX_F32, .sparse = true, .stream_k = true, .name = "F" },
		{ TILE(128, 16, 4), WEIGHTS, .out = CPTX_BF16, .stream_k = true, .bias = true, .per_sm = 2, .name = "G" },
		{ TILE(64, 128, 4), WEIGHTS, .out = CPTX_F32, .beta = true, .bias = true, .name = "H" },
		{ TILE(64, 32, 4), WEIGHTS, .out = CPTX_BF16, .beta = true, .bias = true, .stream_k = true, .name = "L" },
		{ TILE(128, 128, 4), WEIGHTS, .out = CPTX_BF16, .beta = true, .bias = true, .name = "I" },
		{ TILE(192, 96, 4), WEIGHTS, .out = CPTX_F32, .alpha = true, .bias = true, .stream_k = true, .name = "J" },
		{ TILE(256, 64, 4), WEIGHTS, .out = CPTX_BF16, .beta = true, .stream_k = true, .name = "K" },
	};
	enum { NOPT = sizeof opts / sizeof *opts };
	static char said[1 << 16];
	char path[4096];
	cptx_error err = { .code = CPTX_OK };

	if (!ptxas_find(path, sizeof path)) {
		skip("ptxas, to judge the kernels");
		return;
	}
	for (size_t i = 0; i < NOPT; i++) { /* one by one: ptxas 13.0 frees memory twice over all of them in one module */
		cptx_module *m = cptx_module_new(NULL);
		ck_assert_msg(cptx_gemm_build(m, &opts[i], &err) != NULL, "%s: %s", opts[i].name, err.text);
		cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);
		ck_assert_msg(ptx != NULL, "%s", err.text);
		int status = ptxas_run(path, "sm_90a", cptx_ptx_text(ptx), cptx_ptx_size(ptx), said, sizeof said);
		ck_assert_msg(status == 0, "%s: ptxas ends with %d: %s", opts[i].name, status, said);
		const char *spilled = strstr(said, " bytes spill stores");
		ck_assert_msg(spilled && spilled[-1] == '0' && spilled[-2] == ' ', "%s: %s", opts[i].name, said);
		ck_assert_msg(!strstr(said, "(C7"), "%s: %s", opts[i].name, said);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
}
END_TEST

/* ---- what the plan says ---- */

static const char *parameter_of(enum cptx_gemm_map map, bool pointer)
{
	switch (map) {
	case CPTX_GEMM_MAP_A: return pointer ? "A" : "map_a";
	case CPTX_GEMM_MAP_B: return pointer ? "B" : "map_b";
	case CPTX_GEMM_MAP_D: return pointer ? "D" : "map_d";
	case CPTX_GEMM_MAP_END_D: return "map_end_d";
	case CPTX_GEMM_MAP_LAST_A: return "map_last_a";
	case CPTX_GEMM_MAP_LAST_B: return "map_last_b";
	case CPTX_GEMM_MAP_SCALE_A: return "map_scale_a";
	case CPTX_GEMM_MAP_SCALE_B: return "map_scale_b";
	default: return "?";
	}
}

/* Of all generators: plan.map is what stands in front of M. */
START_TEST(plan_names_the_maps)
{
	static const struct {
		cptx_gemm_opt o;
		uint32_t maps;
	} trials_of[] = {
		{ { TILE(128, 256, 4), BF16, .out = CPTX_BF16 }, 5 },
		{ { TILE(128, 200, 4), BF16, .out = CPTX_BF16 }, 6 },
		{ { TILE(128, 200, 4), BF16, .out = CPTX_BF16, .swap = true }, 6 },
		{ { TILE(128, 256, 4), BF16, .out = CPTX_BF16, .stream_k = true }, 3 },
		{ { TILE(128, 200, 4), BF16, .out = CPTX_BF16, .a_m_major = true }, 4 },
	};
	enum { TRIALS = sizeof trials_of / sizeof *trials_of };
	cptx_gemm_opt o[TRIALS + 3];
	uint32_t maps[TRIALS + 3], n = 0;
	cptx_gemm_choice choice;
	cptx_gemm_problem p = { .m = 256, .n = 256, .k = 256 };

	for (; n < TRIALS; n++)
		o[n] = trials_of[n].o, maps[n] = trials_of[n].maps;
	o[n] = cptx_gemm_default(CPTX_GEMM_SYNC, NULL), maps[n++] = 3;
	o[n] = cptx_gemm_default(CPTX_GEMM_TCGEN05, NULL), maps[n++] = 3;
	o[n] = (cptx_gemm_opt){ .mma = CPTX_GEMM_SYNC, .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_BF16, .scale = CPTX_UE8M0 };
	ck_assert(cptx_gemm_auto(&o[n], &p, 170, &choice, 1, NULL));
	o[n] = choice.opt, maps[n++] = 5;
	for (uint32_t i = 0; i < n; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_plan plan;
		cptx_kernel_info info;
		ck_assert(cptx_gemm_check(&o[i], NULL, &plan, NULL));
		ck_assert_uint_eq(plan.maps, maps[i]);
		ck_assert_ptr_nonnull(cptx_gemm_build(m, &o[i], NULL));
		ck_assert(cptx_module_freeze(m) && cptx_module_kernel(m, NULL, &info));
		for (uint32_t j = 0; j < plan.maps; j++)
			ck_assert_str_eq(info.params[j].name, parameter_of(plan.map[j], info.params[j].type == CPTX_PTR));
		ck_assert_str_eq(info.params[plan.maps].name, "M");
		cptx_module_destroy(m);
	}
}
END_TEST

/* ---- what auto picks ---- */

/* Few rows of tiles and many columns are walked down the rows, whichever side of the tile lies along them; an order that was
 * asked for stays. */
START_TEST(order_follows_the_sides)
{
	cptx_gemm_opt o = { BF16, .out = CPTX_BF16 };
	cptx_gemm_problem p = { .m = 512, .n = 7168, .k = 4096 };
	cptx_gemm_choice c[32];
	uint32_t alone = 0;
	size_t n = cptx_gemm_auto(&o, &p, 132, c, 32, NULL);

	ck_assert_uint_eq(n, 32);
	for (size_t i = 0; i < n; i++) {
		const cptx_gemm_opt *q = &c[i].opt;
		uint32_t rows = (512 + q->bm * q->cluster_m - 1) / (q->bm * q->cluster_m);
		if (q->stream_k || q->cluster_m * q->cluster_n > 1)
			continue;
		ck_assert_uint_eq(q->group, q->swap ? 1 : rows);
		alone |= 1u << q->swap;
	}
	ck_assert_uint_eq(alone, 3);
	/* a kernel for large matrices is the one for 4096 cubed */
	cptx_gemm_opt usual = cptx_gemm_default(CPTX_GEMM_WGMMA, NULL);
	o.out = usual.out, p = (cptx_gemm_problem){ .m = 4096, .n = 4096, .k = 4096 };
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, c, 1, NULL), 1);
	ck_assert(usual.bm == c[0].opt.bm && usual.bn == c[0].opt.bn && usual.stages == c[0].opt.stages);
	ck_assert(usual.cluster_m == c[0].opt.cluster_m && usual.cluster_n == c[0].opt.cluster_n);
	o.group = 5;
	n = cptx_gemm_auto(&o, &p, 132, c, 32, NULL);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(c[i].opt.group, 5);
}
END_TEST

/* Shares of the time that multiprocessors are idle are shares, with two CTAs on each too; and what is picked fits. */
START_TEST(idle_is_a_share)
{
	static const uint64_t sizes[] = { 1, 8, 64, 512, 8192, 1 << 20 };
	static cptx_gemm_choice c[300];
	cptx_gemm_opt o = { BF16, .out = CPTX_BF16 };

	for (unsigned i = 0; i < 36; i++)
		for (uint32_t sms = 4; sms <= 132; sms += 128) {
			cptx_gemm_problem p = { .m = sizes[i / 6], .n = sizes[i % 6] < 8 ? 8 : sizes[i % 6], .k = 512 };
			size_t n = cptx_gemm_auto(&o, &p, sms, c, 300, NULL);
			ck_assert(n);
			for (size_t j = 0; j < n; j++)
				ck_assert_msg(c[j].tail >= 0 && c[j].tail < 1 && c[j].opt.cluster_m * c[j].opt.cluster_n <= sms,
				              "%llux%llu on %u: %ux%u, %u CTAs a multiprocessor, idle %g", (unsigned long long)p.m,
				              (unsigned long long)p.n, sms, c[j].opt.bm, c[j].opt.bn, c[j].opt.per_sm, c[j].tail);
		}
}
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said;
	} bad[] = {
		{ { TILE(100, 128, 3), BF16, .out = CPTX_F32 }, "tile M = 100; 64, 128, 192 and 256 are possible" },
		{ { TILE(64, 100, 3), BF16, .out = CPTX_F32 }, "tile N = 100; multiples of 8 from 8" },
		{ { TILE(64, 20, 3), BF16, .out = CPTX_F32, .swap = true }, "tile M = 20; multiples of 8 from 8" },
		{ { TILE(64, 8, 3), BF16, .out = CPTX_F32, .swap = true, .a_m_major = true },
		  "tile M = 8; of an A stored as rows of M" },
		{ { TILE(64, 16, 3), BF16, .out = CPTX_F32, .per_sm = 3 }, "per_sm = 3; 1 or 2" },
		{ { TILE(128, 128, 3), BF16, .out = CPTX_F32, .per_sm = 2 }, "have registers for 64x128" },
		{ { TILE(64, 16, 16), BF16, .out = CPTX_F32, .per_sm = 2 }, "(11 stages fit)" },
		{ { TILE(256, 256, 2), BF16, .out = CPTX_F32 }, "with 256 rows at most 192 columns" },
		{ { TILE(128, 256, 5), BF16, .out = CPTX_BF16 }, "(4 stages fit)" },
		{ { TILE(128, 128, 1), BF16, .out = CPTX_BF16 }, "1 stages; 2 to 16 are possible" },
		{ { TILE(128, 128, 2), TYPES(BF16, F16), .out = CPTX_BF16 }, "A is .bf16 and B .f16" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_S32 }, "output type .s32; it must be f32, bf16, f16, e4m3 or e5m2" },
		{ { TILE(128, 128, 2), TYPES(E4M3, E4M3), .out = CPTX_BF16, .a_m_major = true },
		  "elements of .e4m3 are multiplied along K only" },
		{ { TILE(128, 96, 2), BF16, .out = CPTX_BF16, .b_n_major = true }, "it must be a multiple of 64" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .cluster_m = 2, .cluster_n = 2 }, "one side must be 1" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .cluster_m = 3 }, "1, 2, 4 or 8 are possible" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .cluster_n = 1u << 29 }, "1, 2, 4 or 8 are possible" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .grouped = true, .timeline = 8 }, "no timeline" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .scale = CPTX_F32 }, "scale factors of .bf16; e4m3 and e5m2" },
		{ { TILE(128, 128, 2), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_UE8M0 }, "here they are f32" },
		{ { TILE(256, 128, 2), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32 }, "up to 192 columns have room" },
		{ { TILE(64, 160, 2), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32 },
		  "which blocks of 128 divide in few" },
		{ { TILE(64, 64, 2), TYPES(E4M3, E4M3), .out = CPTX_BF16, .scale = CPTX_F32, .swap = true }, "sides are swapped" },
		{ { TILE(128, 128, 2), BF16, .out = CPTX_BF16, .name = "a b" }, "kernel name 'a b' is no PTX identifier" },
	};
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert(!cptx_gemm_check(&bad[i].o, NULL, NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 12 };
	cptx_gemm_opt o = { TILE(64, 64, 2), BF16, .out = CPTX_F32 };
	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "rows of A have 12 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 16)"),
	              "%s", err.text);
}
END_TEST

START_TEST(bad_calls_end_well)
{
	cptx_gemm_opt o = { TILE(64, 16, 2), BF16, .out = CPTX_F32, .batched = true };
	cptx_gemm_problem p = { .m = 1 << 20, .n = 1 << 17, .k = 64, .batch = 1u << 31 };
	cptx_gemm_choice choice;
	cptx_error err = { .code = CPTX_OK };

	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "tiles of 2147483648 matrices are too many"), "%s", err.text);
	p = (cptx_gemm_problem){ .m = 1 << 20, .n = 1 << 20, .k = 128, .batch = 2 };
	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "D has 4398046511104 bytes; matrices of a batch"), "%s", err.text);
	ck_assert_uint_eq(cptx_gemm_auto(NULL, &p, 132, &choice, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "no options were given"), "%s", err.text);
	for (int mma = 0; mma < CPTX_GEMM_MMAS; mma++) {
		cptx_gemm_opt none = { .mma = (enum cptx_gemm_mma)mma };
		ck_assert(!cptx_gemm_check(&none, NULL, NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, ".a is not given; .a, .b and .out are types, as CPTX_BF16"), "%s", err.text);
	}
	err = (cptx_error){ 0 };
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, NULL, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "the list of choices is NULL"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_launch(NULL, NULL, &o, &p, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the device is NULL"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert(!cptx_gemm_tune(NULL, &p, &choice, 1, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the device is NULL"), "%s", err.text);
}
END_TEST

/* A launch with other options than the kernel was made with, or without operands. */
START_TEST(launches_that_do_not_fit)
{
	cptx_gemm_opt o = { TILE(128, 64, 2), BF16, .out = CPTX_F32 }, other = o;
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 64 };
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_device *dev = gemm_device(&o, "sm_90a", NULL);

	ck_assert(cptx_gemm_build(m, &o, FRESH(&err)) != NULL);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the address of A is 0"), "%s", err.text);
	err = (cptx_error){ 0 };
	p.a = p.b = p.d = cptx_mem_alloc(dev, 1 << 16, &err);
	p.b += 8;
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the address of B, 0x") && strstr(err.text, "is no multiple of 16"), "%s", err.text);
	p.b -= 8, err = (cptx_error){ 0 };
	other.bm = 64;
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &other, &p, FRESH(&err)));
	ck_assert_uint_eq(err.code, CPTX_E_ARG);
	ck_assert_msg(!strstr(err.text, "src/"), "%s", err.text);
	cptx_mem_free(dev, p.a);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	gemm_device_done(dev, "launches");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sm90");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, gives_the_exact_sums, 0, sizeof trials / sizeof *trials);
	tcase_add_test(test_case(s, "random"), options_at_random);
	tcase_add_test(c, ptxas_neither_warns_nor_spills);
	tcase_add_test(c, plan_names_the_maps);
	tcase_add_test(c, order_follows_the_sides);
	tcase_add_test(c, idle_is_a_share);
	tcase_add_test(c, says_which_rule_is_broken);
	tcase_add_test(c, bad_calls_end_well);
	tcase_add_test(c, launches_that_do_not_fit);
	return gemm_tests_main("gemm_sm90", s);
}
