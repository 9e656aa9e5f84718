/* SPDX-License-Identifier: MIT */
/* The block-scaled sm_120a GEMM on the emulator, or on a GPU that has it.  CPTX_SEEDS=50 runs each trial with so many seeds.
 */
#include "../ask.h"
#include "../verify/assemble.h"
#include "gemm_draw.h"
#include "gemm_tests.h"

static const char *const targets[] = { "sm_120a", "sm_121a" };

#define TILE(m_, n_, wm, wn, s) .bm = m_, .bn = n_, .warps_m = wm, .warps_n = wn, .stages = s
static const struct shape {
	uint32_t m, n, k, ctas;
	cptx_gemm_opt o;
} shapes[] = {
	{ 64, 64, 256, 0, { TILE(64, 64, 2, 2, 2), .out = CPTX_F32 } },
	{ 128, 128, 512, 0, { TILE(128, 128, 2, 2, 2), .out = CPTX_BF16 } },
	{ 1, 8, 32, 0, { TILE(64, 64, 1, 1, 2), .out = CPTX_F16, .alpha = true } },
	{ 129, 72, 544, 2, { TILE(64, 64, 2, 1, 3), .out = CPTX_F32, .bias = true, GEMM_TRIAL_VISITORS } },
	{ 200, 136, 96, 1, { TILE(128, 64, 4, 2, 2), .out = CPTX_BF16, .epilogue = gemm_trial_epilogue } },
	{ 65, 264, 288, 3, { TILE(64, 128, 1, 4, 2), .out = CPTX_F16, .beta = true, .group = 2 } },
	{ 300,
	  40,
	  160,
	  2,
	  { TILE(128, 64, 2, 1, 3), .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .batched = true } },
	{ 127, 200, 736, 0, { TILE(64, 64, 2, 2, 4), .out = CPTX_BF16 } },
	{ 3, 16, 1056, 0, { TILE(64, 64, 2, 2, 2), .out = CPTX_F32 } },
	{ 192, 192, 64, 1, { TILE(64, 64, 1, 2, 2), .out = CPTX_BF16, .bias = true, .epilogue = gemm_trial_epilogue } },
	{ 130, 256, 320, 2, { TILE(128, 128, 4, 4, 2), .out = CPTX_F16 } },
	{ 208, 72, 320, 0, { TILE(128, 64, 2, 1, 2), .out = CPTX_F32, .a_m_major = true } },
	{ 65, 160, 288, 2, { TILE(64, 128, 2, 2, 2), .out = CPTX_BF16, .b_n_major = true, .bias = true } },
	{ 144, 48, 77, 0, { TILE(64, 64, 1, 2, 3), .out = CPTX_F16, .a_m_major = true, .b_n_major = true } },
	{ 256, 272, 1, 1, { TILE(128, 128, 2, 4, 2), .out = CPTX_F32, .a_m_major = true, .b_n_major = true, .batched = true } },
	/* fewer tiles than CTAs, which share each; one to two for each; whole ones first */
	{ 60, 64, 416, 3, { TILE(64, 64, 2, 2, 2), .out = CPTX_F32, .stream_k = true, .beta = true } },
	{ 130,
	  128,
	  288,
	  4,
	  { TILE(64, 128, 2, 2, 2), .out = CPTX_BF16, .stream_k = true, .batched = true, GEMM_TRIAL_VISITORS } },
	{ 64, 312, 160, 3, { TILE(64, 64, 1, 2, 3), .out = CPTX_F16, .stream_k = true, .bias = true, .a_m_major = true } },
	/* two CTAs on a multiprocessor */
	{ 130, 72, 352, 0, { TILE(64, 64, 2, 1, 2), .out = CPTX_BF16, .per_sm = 2, .batched = true } },
	{ 70, 136, 544, 5, { TILE(64, 64, 2, 2, 2), .out = CPTX_F32, .per_sm = 2, .stream_k = true, .bias = true } },
	/* the matrices as a list */
	{ 80, 72, 320, 3, { TILE(64, 64, 2, 1, 2), .out = CPTX_F32, .grouped = true, .beta = true, .bias = true } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static gemm_trial trial_of(const gemm_kind *kind, const struct shape *s)
{
	gemm_trial t = { .m = s->m, .n = s->n, .k = s->k, .ctas = s->ctas, .opt = gemm_of_kind(kind, s->o) };
	cptx_gemm_opt *o = &t.opt;

	t.batch = o->batched ? 2 : o->grouped ? 3 : 0;
	if (o->a == CPTX_E2M1 && o->b == CPTX_E2M1) /* which cannot be turned */
		o->a_m_major = o->b_n_major = false;
	gemm_fit_sm120(&t);
	o->stages = o->bm + o->bn == 256 ? 2 : o->stages;
	return t;
}

START_TEST(gives_the_exact_sums)
{
	/* of those that differ from others by types alone, half of the shapes */
	for (unsigned i = gemm_sm120_kinds[_i].half ? (unsigned)_i % 2 : 0; i < SHAPES; i += gemm_sm120_kinds[_i].half ? 2 : 1)
		for (unsigned seed = 0; seed < gemm_seeds(1); seed++) {
			gemm_trial t = trial_of(&gemm_sm120_kinds[_i], &shapes[i]);
			t.seed = seed * SHAPES + i;
			gemm_right(&t, targets, seed + i + (unsigned)_i);
		}
}
END_TEST

START_TEST(options_at_random) { gemm_right_at_random(gemm_draw_sm120, targets); }
END_TEST

/* The largest part of a warp. */
START_TEST(ptxas_does_not_spill)
{
	cptx_gemm_opt o = gemm_of_kind(&gemm_sm120_kinds[_i], (cptx_gemm_opt){ TILE(128, 128, 2, 2, 2), .out = CPTX_BF16 });
	cptx_error err = { 0 };
	unsigned kernels = 0;

	if (!test_ptxas()) {
		skip("ptxas, to judge the kernels");
		return;
	}
	cptx_module *m = cptx_module_new(NULL);
	o.beta = o.bias = o.alpha = _i % 2;
	o.stream_k = _i % 3 == 1, o.grouped = _i % 3 == 2, o.timeline = _i % 3 ? 0 : 8;
	o.a_m_major = o.b_n_major = _i < 3;
	o.warps_m = o.stream_k || o.grouped ? 4 : 2;
	if (_i == 4)
		o.bm = o.bn = 64, o.warps_m = 2, o.warps_n = 1, o.per_sm = 2;
	ck_assert_msg(cptx_gemm_build(m, &o, &err) != NULL, "%s", err.text);
	assembly job = { .target = _i % 2 ? "sm_121a" : "sm_120a" };
	cptx_ptx *ptx = cptx_emit(m, job.target, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	job.ptx = cptx_ptx_text(ptx);
	assemble(&job, 1);
	unsigned spills = assembly_spills(job.said, &kernels);
	ck_assert_msg(!job.status && kernels == 1 && !spills && !strstr(job.said, "warning"), "%s", job.said);
	assemble_free(&job, 1);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

#define OPT(a_, b_, scale_, out_, ...)                                                                                      \
	{                                                                                                                       \
		.a = CPTX_##a_, .b = CPTX_##b_, .scale = CPTX_##scale_, .out = CPTX_##out_, __VA_ARGS__                             \
	}

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said, *target;
	} bad[] = {
		{ OPT(E2M1, BF16, UE8M0, F32, TILE(64, 64, 1, 1, 2)), "each must be e4m3, e5m2, e2m3, e3m2 or e2m1", NULL },
		{ OPT(E4M3, E4M3, UE4M3, F32, TILE(64, 64, 1, 1, 2)), "scale factors of .ue4m3; with .e4m3 and .e4m3 they are ue8m0",
		  NULL },
		{ OPT(E4M3, E4M3, UE8M0, S32, TILE(64, 64, 1, 1, 2)), "output type .s32", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(96, 64, 1, 1, 2)), "tile M = 96; 64 and 128 are possible", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 256, 1, 1, 2)), "tile N = 256; 64 and 128 are possible", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 4, 1, 2)), "4x1 warps for a tile of 64x64", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 0, 1, 2)), "0x1 warps", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(128, 128, 1, 1, 2)), "the 128 rows of 128 columns of one have no room", NULL },
		{ OPT(E2M1, E2M1, UE8M0, F32, TILE(128, 64, 1, 1, 2)), "at most 64x64, 128x32 and 32x128 have", NULL },
		{ OPT(E4M3, E2M1, UE8M0, F32, TILE(64, 128, 2, 1, 2)), "the 32 rows of 128 columns", NULL },
		{ OPT(E2M1, E2M1, UE4M3, F32, TILE(64, 64, 1, 1, 2), .b_n_major = true),
		  "B is N-major; with e2m1 twice two neighbours along K share a byte in registers, and ldmatrix turns bytes only",
		  NULL },
		{ OPT(E3M2, E4M3, UE8M0, F32, TILE(64, 64, 1, 1, 2), .a_m_major = true),
		  "A is M-major, and tile M = 64; of .e3m2 it must be 128", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 1, 1, 2), .stream_k = true),
		  "at most 64x32 and 32x64 of a kernel for lists or with stream_k have", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 2, 1, 2), .grouped = true, .stream_k = true),
		  "a list of problems cannot be shared along K", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 1, 1, 17)), "17 stages; 2 to 16", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(128, 128, 2, 2, 3)), "(2 stages fit)", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 128, 2, 2, 2), .per_sm = 2), "has at most 49152 (1 stages fit)", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 2, 2, 2), .per_sm = 3), "per_sm = 3; 1 or 2 CTAs", NULL },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 1, 1, 2)),
		  "sm_90a has no mma.sync with scale factors; sm_120a and sm_121a have. Instead: wgmma", "sm_90a" },
		{ OPT(E4M3, E4M3, UE8M0, F32, TILE(64, 64, 1, 1, 2)), "Instead: tcgen05", "sm_100a" },
	};
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(!cptx_gemm_check(&bad[i].o, bad[i].target ? cptx_target_find(bad[i].target) : NULL, NULL, FRESH(&err)),
		              "%s", bad[i].said);
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
	cptx_gemm_opt o = OPT(E2M1, E2M1, UE8M0, F32, TILE(64, 64, 1, 1, 2));
	ck_assert(!cptx_gemm_check_problem(&o, &(cptx_gemm_problem){ .m = 8, .n = 8, .k = 48 }, 1, NULL, FRESH(&err)));
	ck_assert_msg(
		strstr(err.text, "rows of A have 48 elements of 4 bits; they must be a multiple of 16 bytes (pad to 64)") != NULL,
		"%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_launch(NULL, NULL, &o, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the device is NULL") != NULL, "%s", err.text);
}
END_TEST

/* What the model leaves of few tiles, and of whole rounds. */
START_TEST(the_model_shares_few_tiles)
{
	enum { SMS = 170 };
	cptx_gemm_opt o = gemm_of_kind(&gemm_sm120_kinds[_i], (cptx_gemm_opt){ .out = CPTX_BF16 });
	cptx_gemm_choice c[3];
	cptx_error err = { .code = CPTX_OK };

	ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 256, .n = 256, .k = 16384 }, SMS, c, 3, &err), 3);
	ck_assert(c[0].opt.stream_k && c[0].us <= c[1].us && c[1].us <= c[2].us && c[0].opt.group > 0);
	ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 128 * SMS, .n = 128, .k = 512 }, SMS, c, 3, &err), 3);
	ck_assert(!c[0].opt.stream_k);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sm120");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, gives_the_exact_sums, 0, GEMM_SM120_KINDS);
	tcase_add_loop_test(c, ptxas_does_not_spill, 0, GEMM_SM120_KINDS);
	tcase_add_test(c, says_which_rule_is_broken);
	tcase_add_loop_test(c, the_model_shares_few_tiles, 0, GEMM_SM120_KINDS);
	tcase_add_test(test_case(s, "random"), options_at_random);
	return gemm_tests_main("gemm_sm120", s);
}
