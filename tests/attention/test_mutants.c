/* SPDX-License-Identifier: MIT */
/* Attention kernels with one thing missing: a fence, a wait, an arrival, a barrier.  The emulator must find something, or
 * the result must be wrong, by some seed; what may be missing is listed, with the reason. */
#include "../blackwell/mutant.h"
#include "trial.h"

static const cptx_attention_opt kernels[] = {
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_WGMMA,
	  .in = CPTX_BF16,
	  .dim = 32,
	  .bq = 128,
	  .bk = 32,
	  .name = "full" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_WGMMA,
	  .in = CPTX_BF16,
	  .dim = 32,
	  .bk = 64,
	  .causal = true,
	  .lse = true,
	  .name = "causal" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_WGMMA,
	  .in = CPTX_E4M3,
	  .dim = 32,
	  .bq = 64,
	  .bk = 32,
	  .name = "e4m3" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_SYNC,
	  .in = CPTX_BF16,
	  .dim = 32,
	  .bq = 64,
	  .bk = 16,
	  .causal = true,
	  .name = "cp_async",
	  .warps = 4 },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_SYNC,
	  .in = CPTX_BF16,
	  .dim = 32,
	  .bq = 64,
	  .bk = 16,
	  .causal = true,
	  .name = "tma",
	  .warps = 4,
	  .tma = true },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_TCGEN05,
	  .in = CPTX_BF16,
	  .dim = 32,
	  .causal = true,
	  .bk = 32,
	  .name = "tcgen05" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_TCGEN05,
	  .in = CPTX_BF16,
	  .out = CPTX_F32,
	  .dim = 32,
	  .dim_v = 64,
	  .causal = true,
	  .bq = 256,
	  .bk = 64,
	  .name = "pair" },
};

enum { KERNELS = sizeof kernels / sizeof *kernels, OF_TCGEN05 = 2 /* the last ones */ };

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_attention_build(m, user, NULL);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const cptx_attention_opt *o = user;
	const bool sync = o->mma != CPTX_ATTENTION_WGMMA, pair = o->bq == 256; /* each tile has a CTA of its own */
	const attention_trial t = { .p = { .size = CPTX_OPT_SIZE(cptx_attention_problem),
		                               .batch = 1,
		                               .heads = 1,
		                               .queries = pair   ? 600
		                                          : sync ? 70
		                                                 : 260,
		                               .keys = pair                               ? 300
		                                       : o->mma == CPTX_ATTENTION_TCGEN05 ? 200
		                                       : sync                             ? 90
		                                                                          : 300,
		                               .ctas = sync ? 0 : 1,
		                               .scale = pair ? 4 : 0 /* maxima grow, and O is corrected */ },
		                        .seed = seed };
	cptx_module *m = build(user);
	cptx_device *dev = trial_device_of(trial_target(o, 0), seed);
	cptx_error err = { 0 };
	attention_report r;

	ck_assert(mutant_make(m, x));
	const bool ok = attention_trial_run(dev, m, user, &t, &r, &err);
	return mutant_verdict(dev, m, ok, r.wrong, &err);
}

#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define FENCE "wgmma.fence.sync.aligned"
#define BEHIND_S "that of S stands in front of it, and nothing is written between"
#define BEFORE "tcgen05.fence::before_thread_sync"
#define AFTER "tcgen05.fence::after_thread_sync"
#define TOGETHER "for speed: it brings the warp of the thread that copies together again"
#define PUT_A "that of P, which the same thread writes behind it, stands in front of the arrival"
#define READ_O "that of O, which the same thread reads in front of it, stands behind the wait"
#define LAST_TURN "it takes the last arrival, so that none is left when the kernel ends; nobody comes behind it"
#define NEXT_CHUNK "that of the next columns, which the same thread writes behind it, stands in front of the arrival"
#define OWN_ZEROS "zeros of a tile in which nothing counts: the same thread reads them, and nobody else"
#define EMPTY_RING "no store is on its way from this part of the ring yet"
static const spared spare[] = {
	{ "e4m3", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "e4m3", "mbarrier.try_wait.parity.shared::cta.b64", 3,
	  "K of the block in front is let go behind the start of the product with V of the block whose stage it is, turned by "
	  "then" },
	{ "full causal e4m3 tma", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "full causal e4m3", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "full causal e4m3", "mbarrier.try_wait.parity.shared::cta.b64", 1,
	  "the first K of a tile: Q is let go behind all K of the tile before, and was waited for" },
	{ "full", "bar.sync", 4, LAST_TURN },
	{ "causal", "bar.sync", 5, LAST_TURN },
	{ "full causal e4m3 tma", "griddepcontrol.wait", 0, "there is one launch, and nothing in front of it" },
	{ "tma", "bar.warp.sync", 1, TOGETHER },
	{ "tma", "bar.warp.sync", 3, TOGETHER },
	{ "tcgen05", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "tcgen05", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "tcgen05", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "tcgen05", INIT_FENCE, 3, "the last pipeline's stands behind these mbarriers too" },
	{ "tcgen05", INIT_FENCE, 4, "threads and commits arrive there, no copies; bar.sync stands between" },
	{ "tcgen05", "griddepcontrol.wait", 0, "there is one launch, and nothing in front of it" },
	{ "tcgen05", BEFORE, 1, PUT_A },
	{ "tcgen05", BEFORE, 2, PUT_A },
	{ "tcgen05", BEFORE, 5, PUT_A },
	{ "tcgen05", BEFORE, 6, PUT_A },
	{ "tcgen05", BEFORE, 8, MUTANT_FREED },
	{ "tcgen05", BEFORE, 9, MUTANT_FREED },
	{ "tcgen05", AFTER, 2, READ_O },
	{ "tcgen05", AFTER, 6, READ_O },
	{ "tcgen05", AFTER, 12, MUTANT_FREED },
	{ "tcgen05", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::clust", 5,
	  "nothing is copied to the stage of the last V" },
	{ "pair", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 3, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 4, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 5, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 6, "the last pipeline's stands behind these mbarriers too" },
	{ "pair", INIT_FENCE, 7, "threads and commits arrive there, no copies; bar.sync stands between" },
	{ "pair", "griddepcontrol.wait", 0, "there is one launch, and nothing in front of it" },
	{ "pair", BEFORE, 4, NEXT_CHUNK },
	{ "pair", BEFORE, 6, NEXT_CHUNK },
	{ "pair", BEFORE, 8, OWN_ZEROS },
	{ "pair", BEFORE, 9, OWN_ZEROS },
	{ "pair", BEFORE, 11, OWN_ZEROS },
	{ "pair", BEFORE, 12, OWN_ZEROS },
	{ "pair", BEFORE, 10, MUTANT_FREED },
	{ "pair", BEFORE, 13, MUTANT_FREED },
	{ "pair", BEFORE, 14, MUTANT_FREED },
	{ "pair", AFTER, 3, READ_O },
	{ "pair", AFTER, 4, READ_O },
	{ "pair", AFTER, 6, READ_O },
	{ "pair", AFTER, 7, READ_O },
	{ "pair", AFTER, 8, OWN_ZEROS },
	{ "pair", AFTER, 9, OWN_ZEROS },
	{ "pair", AFTER, 11, OWN_ZEROS },
	{ "pair", AFTER, 12, OWN_ZEROS },
	{ "pair", "bar.warp.sync", 0, EMPTY_RING },
	{ "pair", "bar.warp.sync", 2, EMPTY_RING },
	{ "pair", "cp.async.bulk.wait_group.read", 0, EMPTY_RING },
	{ "pair", "cp.async.bulk.wait_group.read", 1, EMPTY_RING },
	{ "full causal e4m3", FENCE, 2, BEHIND_S },
	{ "causal", FENCE, 4, BEHIND_S },
};

/* Without CPTX_WHOLE: of wgmma all of the kernel without masks, whose waits and barriers the others have too, and one of
 * each of those; tcgen05 takes some seconds. */
START_TEST(nothing_may_be_missing)
{
	const bool sampled = kernels[_i].mma == CPTX_ATTENTION_WGMMA && _i && !getenv("CPTX_WHOLE");

	if (kernels[_i].mma == CPTX_ATTENTION_TCGEN05 && !getenv("CPTX_WHOLE"))
		return;
	unsigned of_kind[MUTANT_KINDS] = { 0 };
	const mutant_subject s = { .name = kernels[_i].name,
		                       .build = build,
		                       .run = run,
		                       .user = &kernels[_i],
		                       .spared = spare,
		                       .spares = sizeof spare / sizeof *spare,
		                       .seeds = trial_count("CPTX_SEEDS", 6),
		                       .sample = sampled ? 3 : 0 };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(test_case(s, "mutants"), nothing_may_be_missing, 0, KERNELS - OF_TCGEN05);
	tcase_add_loop_test(test_case(s, "tcgen05"), nothing_may_be_missing, KERNELS - OF_TCGEN05, KERNELS);
	return test_main("attention mutants", s);
}
