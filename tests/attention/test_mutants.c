/* SPDX-License-Identifier: MIT */
/* Attention kernels with one thing missing: a fence, a wait, an arrival, a barrier.  The emulator must find something, or
 * the result must be wrong, by some seed; what may be missing is listed, with the reason. */
#include "../blackwell/mutant.h"
#include "trial.h"

static const cptx_attention_opt kernels[] = {
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_WGMMA,
	  .in = CPTX_BF16,
	  .dim = 64,
	  .bq = 128,
	  .bk = 32,
	  .name = "full" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	  .mma = CPTX_ATTENTION_WGMMA,
	  .in = CPTX_BF16,
	  .dim = 64,
	  .bk = 64,
	  .causal = true,
	  .lse = true,
	  .name = "causal" },
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
};

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_attention_build(m, user, NULL);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const cptx_attention_opt *o = user;
	const bool sync = o->mma == CPTX_ATTENTION_SYNC;
	const attention_trial t = { .p = { .size = CPTX_OPT_SIZE(cptx_attention_problem),
		                               .batch = 1,
		                               .heads = sync ? 1 : 2,
		                               .queries = sync ? 70 : 300,
		                               .keys = sync ? 90 : 300,
		                               .ctas = sync ? 0 : 2 },
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
#define LAST_TURN "it takes the last arrival, so that none is left when the kernel ends; nobody comes behind it"
static const spared spare[] = {
	{ "full causal tma", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "full causal", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "full causal", "mbarrier.try_wait.parity.shared::cta.b64", 1,
	  "the first K of a tile: Q is let go behind all K of the tile before, and was waited for" },
	{ "full", "bar.sync", 4, LAST_TURN },
	{ "causal", "bar.sync", 5, LAST_TURN },
	{ "full causal tma", "griddepcontrol.wait", 0, "there is one launch, and nothing in front of it" },
	{ "full causal", FENCE, 2, BEHIND_S },
	{ "causal", FENCE, 4, BEHIND_S },
};

START_TEST(nothing_may_be_missing)
{
	unsigned of_kind[MUTANT_KINDS] = { 0 };
	const mutant_subject s = { .name = kernels[_i].name,
		                       .build = build,
		                       .run = run,
		                       .user = &kernels[_i],
		                       .spared = spare,
		                       .spares = sizeof spare / sizeof *spare,
		                       .seeds = trial_count("CPTX_SEEDS", 6) };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(test_case(s, "mutants"), nothing_may_be_missing, 0, (int)(sizeof kernels / sizeof *kernels));
	return test_main("attention mutants", s);
}
