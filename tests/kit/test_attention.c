/* SPDX-License-Identifier: MIT */
/*
 * The attention kernels of examples/kit: sizes that fill no tile in several orders, what ptxas says of them, and each with
 * one thing missing (a fence, a wait, an arrival, a barrier), which the emulator must find or the result must show.
 */
#include "../whole.h"
#include "../blackwell/mutant.h"
#include "attention_run.h"
#include "on_emu.h"

static const attention *const kernels[] = { &attention_sm80, &attention_sm90a, &attention_sm100a };
enum { KERNELS = sizeof kernels / sizeof *kernels };

static const char *target_of(const attention *a) { return a->device + strlen("emu:"); }

static unsigned orders(unsigned otherwise)
{
	const char *s = getenv("CPTX_SEEDS");

	return s ? (unsigned)atoi(s) : whole() ? 100 : otherwise;
}

static cptx_device *device(const attention *a, unsigned seed)
{
	cptx_error err = { 0 };
	const cptx_emu_opt opt = {
		.seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .threads = 1, .step_limit = 3000000, .pedantic = true
	};
	cptx_device *dev = cptx_emu_open(target_of(a), &opt, &err);

	SURE(dev != NULL, "%s", err.text);
	return dev;
}

START_TEST(sizes_are_right)
{
	static const uint32_t sizes[][2] = { { 130, 200 }, { 200, 130 }, { 64, 64 }, { 3, 1 } };
	const attention *a = kernels[_i];

	for (unsigned i = 0; i < 4 * orders(2); i++) {
		if (!is_my_part(i))
			continue;
		cptx_device *dev = device(a, i / 4);
		cptx_error err = { 0 };
		unsigned wrong = 0;
		for (int causal = 0; causal < 2; causal++) {
			SURE(attention_check(dev, a, NULL, sizes[i % 4][0], sizes[i % 4][1], causal, &wrong, &err), "%s", err.text);
			ck_assert_uint_eq(wrong, 0);
		}
		ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
		cptx_device_close(dev);
	}
}
END_TEST

static cptx_module *build(const void *user)
{
	const attention *a = user;
	cptx_module *m = cptx_module_new(NULL);

	a->build(m, a, false);
	return m;
}

START_TEST(ptxas_spills_nothing)
{
	unsigned n = 0;

	if (!test_ptxas()) {
		skip("ptxas, to judge the kernels");
		return;
	}
	cptx_module *m = build(kernels[_i]);
	char *said = emu_assembles(m, target_of(kernels[_i]));
	SURE(assembly_spills(said, &n) == 0 && n == 1, "%s", said);
	SURE(!strstr(said, "serialized"), "%s", said);
	free(said);
	cptx_module_destroy(m);
}
END_TEST

/* ---- one thing missing ---- */

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	const attention *a = user;
	cptx_module *m = build(a);
	cptx_device *dev = device(a, seed);
	cptx_error err = { 0 };
	unsigned wrong = 0;

	ck_assert(mutant_make(m, x));
	bool ok = attention_check(dev, a, m, 200, 300, false, &wrong, &err);
	return mutant_verdict(dev, m, ok, wrong, &err);
}

#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define BEFORE "tcgen05.fence::before_thread_sync"
#define AFTER "tcgen05.fence::after_thread_sync"
#define PUT_A "that of P, which the same thread writes behind it, stands in front of the arrival"
static const spared spare[] = {
	{ "sm_90a sm_100a", INIT_FENCE, 0, "the last pipeline's stands behind these mbarriers too" },
	{ "sm_100a", INIT_FENCE, 1, "the last pipeline's stands behind these mbarriers too" },
	{ "sm_100a", INIT_FENCE, 2, "the last pipeline's stands behind these mbarriers too" },
	{ "sm_100a", INIT_FENCE, 3, "threads and commits arrive there, no copies; bar.sync stands between" },
	{ "sm_100a", BEFORE, 1, PUT_A },
	{ "sm_100a", BEFORE, 2, PUT_A },
	{ "sm_100a", BEFORE, 4, MUTANT_FREED },
	{ "sm_100a", BEFORE, 5, MUTANT_FREED },
	{ "sm_100a", AFTER, 2, "that of O, which the same thread reads in front of it, stands behind the wait" },
	{ "sm_100a", AFTER, 3, "that of O stands behind the wait; P of the first keys comes behind nothing" },
	{ "sm_100a", AFTER, 5, "it is the first product" },
	{ "sm_100a", AFTER, 8, MUTANT_FREED },
	{ "sm_100a", "mbarrier.try_wait.parity.shared::cta.b64", 6, "the first turn of a producer does not wait" },
};

START_TEST(nothing_may_be_missing)
{
	unsigned of_kind[MUTANT_KINDS] = { 0 };
	const mutant_subject s = { .name = target_of(kernels[_i]),
		                       .build = build,
		                       .run = run,
		                       .user = kernels[_i],
		                       .spared = spare,
		                       .spares = sizeof spare / sizeof *spare,
		                       .seeds = orders(6) };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "attention");

	tcase_add_loop_test(t, sizes_are_right, 0, KERNELS);
	tcase_add_loop_test(t, ptxas_spills_nothing, 0, KERNELS);
	tcase_add_loop_test(t, nothing_may_be_missing, 0, KERNELS);
	return test_main("kit attention", s);
}
