/* SPDX-License-Identifier: MIT */
/*
 * Every rung with one thing missing: a fence, a wait, a commit, an arrival, a barrier.  The emulator must find something, or
 * the result must be wrong, by some seed; what may be missing is listed, with the reason.
 */
#include "../test.h"
#include "mutant.h"
#include "rungs.h"

#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define BEFORE "tcgen05.fence::before_thread_sync"
#define AFTER "tcgen05.fence::after_thread_sync"
#define ONE_TILE "v1a v1b v2a v2b v3 v4 v5"
static const spared spare[] = {
	{ ONE_TILE, BEFORE, 0, MUTANT_FREED },
	{ ONE_TILE, BEFORE, 1, MUTANT_FREED },
	{ ONE_TILE, AFTER, 1, MUTANT_FREED },
	{ "v6 v7", BEFORE, 1, MUTANT_FREED },
	{ "v3", "mbarrier.try_wait.parity.shared::cta.b64", 0, "nothing has been in the stage that is filled first" },
	{ ONE_TILE " v6", INIT_FENCE, 0, "the second pipeline's stands behind these mbarriers too" },
	{ ONE_TILE " v6", INIT_FENCE, 1,
	  "threads and commits arrive there, no copies; the barrier of CPTX_TMEM stands between" },
	{ "v7", INIT_FENCE, 0, "the third pipeline's stands behind these mbarriers too" },
	{ "v7", INIT_FENCE, 1, "the third pipeline's stands behind these mbarriers too" },
};

static cptx_module *build(const void *user)
{
	const ladder_rung *rung = user;
	ladder_opt o = rung_small(rung, CPTX_BF16, CPTX_BF16);
	cptx_module *m = cptx_module_new(NULL);

	ladder_build(m, rung, &o);
	return m;
}

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const gemm_problem p = { .m = 300, .n = 72, .k = 576, .seed = seed };
	const ladder_rung *rung = user;
	ladder_opt o = rung_small(rung, CPTX_BF16, CPTX_BF16);
	cptx_module *m = build(rung);
	cptx_error err = { 0 };
	gemm_report r;
	cptx_device *dev = cptx_emu_open("sm_100a",
	                                 &(cptx_emu_opt){ .seed = seed,
	                                                  .schedule = (enum cptx_emu_schedule)(seed % 3),
	                                                  .threads = 1,
	                                                  .sms = 2,
	                                                  .step_limit = 3000000,
	                                                  .pedantic = true },
	                                 &err);

	ck_assert(mutant_make(m, x));
	bool ok = ladder_run_module(dev, m, rung, &o, &p, &r, &err);
	return mutant_verdict(dev, m, ok, r.wrong, &err);
}

static unsigned of_kind[MUTANT_KINDS];

START_TEST(nothing_may_be_missing)
{
	mutant_subject s = { .name = rungs[_i]->name,
		                 .build = build,
		                 .run = run,
		                 .user = rungs[_i],
		                 .spared = spare,
		                 .spares = sizeof spare / sizeof *spare,
		                 .seeds = rung_seeds(3) };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

/* CUTLASS's kernels have no fence of tcgen05: without one, a rung gets warnings, and is right. */
START_TEST(without_fences)
{
	static const char *const fences[] = { BEFORE, AFTER };
	const gemm_problem p = { .m = 300, .n = 72, .k = 576, .seed = 1 };
	ladder_opt o = rung_small(rungs[_i], CPTX_BF16, CPTX_BF16);

	for (unsigned seed = 0; seed < 3; seed++) {
		cptx_module *m = build(rungs[_i]);
		cptx_kernel *k = cptx_module_body(m, NULL);
		cptx_error err = { 0 };
		unsigned gone = 0, warnings = 0;
		gemm_report r;
		for (unsigned i = 0; i < 2; i++)
			for (cptx_item *it; (it = cptx_item_find(k, NULL, fences[i])); gone++)
				cptx_edit_remove(k, it);
		cptx_device *dev = cptx_emu_open(
			"sm_100a", &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)seed, .threads = 1, .sms = 2 },
			&err);
		bool ok = ladder_run_module(dev, m, rungs[_i], &o, &p, &r, &err);
		ck_assert_msg(ok && !r.wrong && gone >= 2, "%s, seed %u: %u wrong: %s", rungs[_i]->name, seed, (unsigned)r.wrong,
		              err.text);
		for (const cptx_emu_finding *f; (f = cptx_emu_finding_at(dev, warnings)); warnings++)
			ck_assert_msg(f->rank == CPTX_FIND_WARNING, "%s", f->text);
		ck_assert_uint_gt(warnings, 0);
		cptx_device_close(dev);
		cptx_module_destroy(m);
	}
}
END_TEST

/* Else a word of the list may be misspelt. */
START_TEST(all_kinds_occur)
{
	for (unsigned i = 0; i < MUTANT_OF_RUNGS; i++)
		ck_assert_msg(of_kind[i] > 0, "no rung has %s", mutant_kinds[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mutants");
	TCase *c = tcase_create("mutants");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, nothing_may_be_missing, 0, RUNGS);
	tcase_add_test(c, all_kinds_occur);
	tcase_add_loop_test(c, without_fences, 0, RUNGS);
	suite_add_tcase(s, c);
	return test_main("mutants", s);
}
