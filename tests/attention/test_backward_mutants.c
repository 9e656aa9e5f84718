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
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .in = CPTX_BF16, .dim = 32, .bq = 32, .bk = 64, .name = "sync" }, "sync" },
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .in = CPTX_BF16, .dim = 32, .bq = 32, .bk = 64, .deterministic = true,
	    .name = "fixed" }, "fixed_dq" },
	{ { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 64,
	    .causal = true, .name = "wgmma" }, "wgmma" },
};

static cptx_module *build(const void *user)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_attention_backward_build(m, user, NULL);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	/* several blocks of queries, or one: each has code of its own */
	const uint32_t group = 1 + seed % 2;
	const backward_trial t = { .p = { .size = CPTX_OPT_SIZE(cptx_attention_backward_problem), .batch = 1, .heads = group,
		                              .kv_heads = 1, .queries = seed % 2 ? 200 : 50, .keys = 140 },
		                       .seed = seed };
	cptx_module *m = build(user);
	cptx_device *dev = trial_device(seed);
	cptx_error err = { 0 };
	backward_report r;

	ck_assert(mutant_make(m, x));
	const bool ok = backward_trial_run(dev, m, user, &t, &r, &err);
	return mutant_verdict(dev, m, ok, r.r.wrong, &err);
}

static const spared spare[] = {
	{ "none", "bar.sync", 0, "" },
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
