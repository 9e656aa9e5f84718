/* SPDX-License-Identifier: MIT */
/* Kernels of attention backward with one thing missing: a fence, a wait, an arrival, a barrier.  The emulator must find
 * something, or the result must be wrong, by some seed; what may be missing is listed, with the reason. */
#include "../blackwell/mutant.h"
#include "reference/backward_check.h"
#include "trial.h"

/* The kernel whose parts are taken out is that of .name, of the one in front "_dq". */
static const struct {
	cptx_attention_backward_opt o;
	const char *kernel;
} kernels[] = {
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .in = CPTX_BF16, .dim = 32, .bq = 32, .bk = 64, .name = "sync" },
	  "sync" },
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
	    .in = CPTX_BF16,
	    .dim = 32,
	    .bq = 32,
	    .bk = 64,
	    .deterministic = true,
	    .name = "fixed" },
	  "fixed_dq" },
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
	    .mma = CPTX_ATTENTION_WGMMA,
	    .in = CPTX_BF16,
	    .dim = 128,
	    .causal = true,
	    .name = "wgmma" },
	  "wgmma" },
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
	    .mma = CPTX_ATTENTION_WGMMA,
	    .in = CPTX_BF16,
	    .dim = 64,
	    .causal = true,
	    .name = "apart" },
	  "apart" },
};

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_attention_backward_build(m, user, NULL);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const cptx_attention_backward_opt *o = user;
	/* several blocks of queries, or one: each has code of its own */
	const uint32_t group = 1 + seed % 2;
	const backward_trial t = { .p = { .size = CPTX_OPT_SIZE(cptx_attention_backward_problem),
		                              .batch = 1,
		                              .heads = group,
		                              .kv_heads = 1,
		                              .queries = seed % 2 == 0                    ? 50
		                                         : o->mma == CPTX_ATTENTION_WGMMA ? 200
		                                                                          : 100,
		                              .keys = 140 },
		                       .seed = seed };
	cptx_module *m = build(user);
	cptx_device *dev = trial_device(seed);
	cptx_error err = { 0 };
	backward_report r;

	ck_assert(mutant_make(m, x));
	const bool ok = backward_trial_run(dev, m, user, &t, &r, &err);
	return mutant_verdict(dev, m, ok, r.r.wrong, &err);
}

#define ARRIVE "mbarrier.arrive.shared::cta.b64"
#define WAIT "mbarrier.try_wait.parity.shared::cta.b64"
#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define FENCE "wgmma.fence.sync.aligned"
#define COMMIT "wgmma.commit_group.sync.aligned"
#define WAIT_GROUP "wgmma.wait_group.sync.aligned"
#define NOBODY "it is of the last block: nobody fills the stage again"
#define BEHIND_Q "the producer copies dO behind Q, which is let go later"
#define EMPTY "of the first block: the stage was never filled"
#define TURNS "the turns tell the same: a warpgroup's comes behind the other's, which has written its dS^T"
#define TURN_MEETS "the barrier of the turn behind it meets the same threads"
#define SPEED "a turn is for speed; mbarriers tell what must be there"
#define LANES "the emulator keeps one clock for the lanes of a warp, which go on together here"
#define UNWRITTEN "no thread has written registers of the product since the fence in front of it"
#define BEHIND_DS "dS^T is full behind a wait for K, by those who make it"
#define DK_COMMITS "the product of dK behind it commits it and is waited for"
#define DQ_COMMITS "the product of dQ behind it commits it and is waited for"
static const spared spare[] = {
	{ "wgmma", ARRIVE, 4, NOBODY },
	{ "wgmma", ARRIVE, 5, NOBODY },
	{ "wgmma", ARRIVE, 14, NOBODY },
	{ "wgmma", ARRIVE, 15, NOBODY },
	{ "wgmma", ARRIVE, 16, NOBODY },
	{ "wgmma", ARRIVE, 17, NOBODY },
	{ "wgmma", WAIT, 1, BEHIND_Q },
	{ "wgmma", WAIT, 5, EMPTY },
	{ "wgmma", WAIT, 7, EMPTY },
	{ "wgmma", WAIT, 11, TURNS },
	{ "wgmma", WAIT, 15, TURNS },
	{ "wgmma", WAIT, 16, TURNS },
	{ "wgmma", "bar.sync", 1, TURN_MEETS },
	{ "wgmma", "bar.sync", 3, TURN_MEETS },
	{ "wgmma", "bar.sync", 5, TURN_MEETS },
	{ "wgmma", "bar.sync", 9, TURN_MEETS },
	{ "wgmma", "bar.sync", 6, SPEED },
	{ "wgmma", "bar.sync", 13, "it takes the last arrival, so that none is left when the kernel ends" },
	{ "wgmma", "bar.warp.sync", 0, LANES },
	{ "wgmma", "bar.warp.sync", 1, LANES },
	{ "wgmma", "bar.warp.sync", 2, LANES },
	{ "wgmma", "bar.warp.sync", 3, LANES },
	{ "wgmma", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "wgmma", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "wgmma", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "wgmma", FENCE, 1, UNWRITTEN },
	{ "wgmma", FENCE, 4, UNWRITTEN },
	{ "wgmma", FENCE, 7, UNWRITTEN },
	{ "wgmma", FENCE, 8, UNWRITTEN },
	{ "wgmma", FENCE, 11, UNWRITTEN },
	{ "wgmma", FENCE, 12, UNWRITTEN },
	{ "wgmma", FENCE, 13, UNWRITTEN },
	{ "wgmma", FENCE, 16, UNWRITTEN },
	{ "wgmma", COMMIT, 2, BEHIND_Q },
	{ "wgmma", COMMIT, 5, BEHIND_Q },
	{ "wgmma", COMMIT, 9, BEHIND_Q },
	{ "wgmma", COMMIT, 14, NOBODY },
	{ "wgmma", COMMIT, 3, DQ_COMMITS },
	{ "wgmma", COMMIT, 15, DQ_COMMITS },
	{ "wgmma", WAIT_GROUP, 2, NOBODY },
	{ "wgmma", WAIT_GROUP, 14, NOBODY },
	{ "wgmma", WAIT_GROUP, 15, NOBODY },
	{ "wgmma", WAIT_GROUP, 5, BEHIND_Q },
	{ "wgmma", WAIT_GROUP, 9, BEHIND_Q },
	{ "wgmma", WAIT_GROUP, 3, DQ_COMMITS },
	{ "apart", ARRIVE, 7, NOBODY },
	{ "apart", ARRIVE, 8, NOBODY },
	{ "apart", WAIT, 1, BEHIND_Q },
	{ "apart", WAIT, 9, BEHIND_DS },
	{ "apart", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "apart", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "apart", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "apart", FENCE, 1, UNWRITTEN },
	{ "apart", FENCE, 4, UNWRITTEN },
	{ "apart", FENCE, 5, UNWRITTEN },
	{ "apart", COMMIT, 2, DK_COMMITS },
	{ "apart", COMMIT, 6, DK_COMMITS },
};

/* By wgmma it takes half a minute, and one of all is tried without CPTX_WHOLE. */
START_TEST(nothing_may_be_missing)
{
	const bool whole = getenv("CPTX_WHOLE") || kernels[_i].o.mma == CPTX_ATTENTION_SYNC;
	unsigned of_kind[MUTANT_KINDS] = { 0 };
	const mutant_subject s = { .name = kernels[_i].o.name,
		                       .build = build,
		                       .run = run,
		                       .user = &kernels[_i].o,
		                       .spared = spare,
		                       .spares = sizeof spare / sizeof *spare,
		                       .seeds = trial_count("CPTX_SEEDS", 6),
		                       .sample = whole ? 0 : 1 + (unsigned)_i,
		                       .kernel = kernels[_i].kernel };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(test_case(s, "mutants"), nothing_may_be_missing, 0, (int)(sizeof kernels / sizeof *kernels));
	return test_main("attention backward mutants", s);
}
