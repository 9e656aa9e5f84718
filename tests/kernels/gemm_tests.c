/* SPDX-License-Identifier: MIT */
#include "gemm_tests.h"
#include "../whole.h"

static cptx_device *gpu;

static unsigned number_of(const char *variable, unsigned otherwise)
{
	const char *s = getenv(variable);

	return s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

unsigned gemm_trials(unsigned otherwise) { return number_of("CPTX_GEMM_TRIALS", otherwise); }

unsigned gemm_seeds(unsigned otherwise) { return number_of("CPTX_SEEDS", otherwise); }

cptx_device *gemm_device(const cptx_gemm_opt *o, const char *target, const cptx_emu_opt *opt)
{
	static bool sought;
	cptx_error err = { 0 };

	if (!sought && (gpu = cptx_device_open("cuda", &err)))
		ck_assert_msg(cptx_device_make_current(gpu, &err), "%s", err.text);
	sought = true;
	if (gpu && cptx_gemm_check(o, cptx_target_find(cptx_device_get_info(gpu)->target), NULL, NULL))
		return gpu;
	err = (cptx_error){ 0 };
	cptx_device *dev = cptx_emu_open(target, opt, &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
	return dev;
}

void gemm_device_done(cptx_device *dev, const char *at)
{
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);

	ck_assert_msg(!f, "%s:\n%s", at, f ? cptx_finding_name(f->code) : "");
	if (dev != gpu)
		cptx_device_close(dev);
}

#ifndef ONE_OF_TRIALS
#define ONE_OF_TRIALS 1
#endif

void gemm_right(const gemm_trial *t, const char *const targets[2], unsigned seed)
{
	static unsigned calls;

	if (is_tried(calls++, ONE_OF_TRIALS))
		gemm_right_always(t, targets, seed);
}

void gemm_right_always(const gemm_trial *t, const char *const targets[2], unsigned seed)
{
	const char *second = seed % 2 && cptx_gemm_check(&t->opt, cptx_target_find(targets[1]), NULL, NULL) ? targets[1] : NULL;
	cptx_emu_opt opt = { .seed = t->seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .threads = 1, .sms = 8 };
	cptx_device *dev = gemm_device(&t->opt, second ? second : targets[0], &opt);
	const char *said = gemm_trial_run(dev, t);

	ck_assert_msg(!*said, "%s:\n%s", gemm_trial_text(t), said);
	gemm_device_done(dev, gemm_trial_text(t));
}

void gemm_right_at_random(gemm_trial (*draw)(uint64_t seed), const char *const targets[2])
{
	unsigned want = gemm_trials(12), refused = 0;
	char prefix[40];

	snprintf(prefix, sizeof prefix, "gemm for %s: ", targets[0]);
	for (uint64_t seed = 1; want; seed++) {
		gemm_trial t = draw(seed);
		cptx_error err = { .code = CPTX_OK };
		if (cptx_gemm_check(&t.opt, NULL, NULL, &err)) {
			gemm_right(&t, targets, (unsigned)seed);
			want--;
		} else {
			ck_assert_msg(!strncmp(err.text, prefix, strlen(prefix)), "%s", err.text);
			refused++;
		}
	}
	ck_assert_uint_gt(refused, 0);
}

int gemm_tests_main(const char *name, Suite *s)
{
	int status = test_main(name, s);

	cptx_device_close(gpu);
	return status;
}
