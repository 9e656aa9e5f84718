/* SPDX-License-Identifier: MIT */
/* Attention kernels on the emulator, beside the reference of `cptx attention`. */
#ifndef TEST_ATTENTION_TRIAL_H
#define TEST_ATTENTION_TRIAL_H

#include "../test.h"
#include "../verify/assemble.h"
#include "reference/attention_check.h"

#include <cptx/emu.h>

/* An emulated device whose asynchronous work is done in an order that the seed says. */
static inline cptx_device *trial_device_of(const char *target, unsigned seed)
{
	cptx_error err = { 0 };
	const cptx_emu_opt opt = { .seed = seed,
		                       .schedule = (enum cptx_emu_schedule)(seed % 3),
		                       .threads = 1,
		                       .sms = 1 + seed % 4,
		                       .step_limit = 9000000,
		                       .pedantic = true };
	cptx_device *dev = cptx_emu_open(target, &opt, &err);

	SURE(dev != NULL, "%s", err.text);
	return dev;
}

static inline cptx_device *trial_device(unsigned seed) { return trial_device_of("sm_90a", seed); }

/* A target that has the kernel; which: of several. */
static inline const char *trial_target(const cptx_attention_opt *o, unsigned which)
{
	static const char *const all[] = { "sm_90", "sm_120", "sm_80", "sm_86", "sm_89" };

	if (o->mma == CPTX_ATTENTION_WGMMA)
		return "sm_90a";
	if (o->mma == CPTX_ATTENTION_TCGEN05)
		return which % 2 ? "sm_103a" : "sm_100a";
	for (unsigned i = 0; i < 5; i++, which++) /* the shared memory of some does not suffice for all */
		if (cptx_attention_check(o, cptx_target_find(all[which % (o->tma ? 2 : 5)]), NULL, NULL))
			break;
	return all[which % (o->tma ? 2 : 5)];
}

/* One of the forward, the decoding and the backward kernels, for what is the same of all: o and t are its options and its
 * trial.  Both calls are false, with err, where that cannot be. */
typedef struct trial_kind {
	bool (*build)(cptx_module *m, const void *o, cptx_error *err);
	bool (*run)(cptx_device *dev, cptx_module *m, const void *o, const void *t, attention_report *r, char *text, size_t size,
	            cptx_error *err); /* text: what the report says */
} trial_kind;

/* Builds the kernels and runs the trial in an order of asynchronous work: all is right, and nothing is found. */
static inline void trial_is_right(const trial_kind *kind, const void *o, const void *t, const char *target, unsigned order,
                                  const char *what)
{
	cptx_device *dev = trial_device_of(target, order);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	attention_report r;
	char text[300];

	SURE(kind->build(m, o, &err), "%s: %s", what, err.text);
	SURE(kind->run(dev, m, o, t, &r, text, sizeof text, &err), "%s, order %u: %s", what, order, err.text);
	SURE(!r.wrong && r.compared == r.elements, "%s, order %u: %s", what, order, text);
	SURE(!cptx_emu_finding_at(dev, 0), "%s, order %u: %s", what, order, cptx_emu_finding_at(dev, 0)->text);
	cptx_module_destroy(m);
	cptx_device_close(dev);
}

/* A number of the environment, or another. */
static inline unsigned trial_count(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)atoi(s) : otherwise;
}

/* One of two numbers: where all is to be tested, and else. */
static inline unsigned trial_whole(unsigned whole, unsigned otherwise) { return getenv("CPTX_WHOLE") ? whole : otherwise; }

#endif
