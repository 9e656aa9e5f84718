/* SPDX-License-Identifier: MIT */
/* Kernels for decoding with one thing missing: a wait, a commit, a barrier.  The emulator must find something, or the result
 * must be wrong, by some seed; what may be missing is listed, with the reason. */
#include "../blackwell/mutant.h"
#include "reference/decode_check.h"
#include "trial.h"

static const cptx_attention_decode_opt kernels[] = {
	{ .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
	  .in = CPTX_BF16,
	  .dim = 32,
	  .warps = 2,
	  .stages = 3,
	  .lse = true,
	  .name = "dense" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
	  .in = CPTX_BF16,
	  .dim = 32,
	  .paged = true,
	  .stages = 2,
	  .causal = true,
	  .overlap = true,
	  .name = "paged" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
	  .in = CPTX_BF16,
	  .dim = 192,
	  .dim_v = 128,
	  .stages = 2,
	  .mla = true,
	  .name = "mla" },
	{ .size = CPTX_OPT_SIZE(cptx_attention_decode_opt), .in = CPTX_BF16, .dim = 32, .warps = 1, .bk = 16, .name = "many" },
};

enum { MLA = 2, MANY = 19 /* chunks, which warps of the second kernel share */ };

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_attention_decode_build(m, user, NULL);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const cptx_attention_decode_opt *o = user;
	const decode_trial t = { .p = { .size = CPTX_OPT_SIZE(cptx_attention_decode_problem),
		                            .batch = 2,
		                            .heads = 4,
		                            .kv_heads = 1,
		                            .queries = 1,
		                            .keys = 300,
		                            .page = o->paged ? 16 : 0,
		                            .splits = o->mla          ? 1
		                                      : o->warps == 1 ? MANY
		                                                      : 2 },
		                     .seed = seed,
		                     .ragged = o->mla };
	cptx_module *m = build(user);
	cptx_device *dev = trial_device(seed);
	cptx_error err = { 0 };
	decode_report r;

	ck_assert(mutant_make(m, x));
	const bool ok = decode_trial_run(dev, m, o, &t, &r, &err);
	return mutant_verdict(dev, m, ok, r.r.wrong, &err);
}

#define BEHIND_S "that of the first part of S stands in front of it, and nothing is written between"
#define LATER_COMMIT "that of the last part of S, behind which is the wait, takes these products too"
#define ONE_BY_ONE "the emulator begins a launch when the one in front has ended"
static const spared spare[] = {
	{ "paged", "griddepcontrol.wait", 0, ONE_BY_ONE },
	{ "mla", "wgmma.fence.sync.aligned", 1, BEHIND_S },
	{ "mla", "wgmma.fence.sync.aligned", 2, BEHIND_S },
	{ "mla", "wgmma.fence.sync.aligned", 4,
	  "that of the product in front adds to the same O, and nothing is written between" },
	{ "mla", "wgmma.commit_group.sync.aligned", 0, LATER_COMMIT },
	{ "mla", "wgmma.commit_group.sync.aligned", 1, LATER_COMMIT },
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
		                       .seeds = trial_count("CPTX_SEEDS", 6),
		                       .kernel = _i > MLA ? "many_combine" : kernels[_i].name };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(test_case(s, "mutants"), nothing_may_be_missing, 0, (int)(sizeof kernels / sizeof *kernels));
	return test_main("attention decode mutants", s);
}
