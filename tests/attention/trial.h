/* SPDX-License-Identifier: MIT */
/* Attention kernels on the emulator, beside the reference of `cptx attention`. */
#ifndef TEST_ATTENTION_TRIAL_H
#define TEST_ATTENTION_TRIAL_H

#include "../kit/on_emu.h"
#include "../whole.h"
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

/* A number of the environment, or another. */
static inline unsigned trial_count(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)atoi(s) : otherwise;
}

/* One of two numbers: where all is to be tested, and else. */
static inline unsigned trial_whole(unsigned all, unsigned otherwise) { return whole() ? all : otherwise; }

/* One of n targets: the first from number `which` on that takes the kernels of o; if none does, that one. */
static inline const char *trial_pick(const char *const *all, unsigned n, unsigned which, const void *o,
                                     bool (*takes)(const void *o, const cptx_target *target))
{
	for (unsigned i = 0; i < n; i++)
		if (takes(o, cptx_target_find(all[(which + i) % n])))
			return all[(which + i) % n];
	return all[which % n];
}

static inline bool trial_takes(const void *o, const cptx_target *target)
{
	return cptx_attention_check((const cptx_attention_opt *)o, target, NULL, NULL);
}

/* A target that has the kernel of the forward; the shared memory of some does not suffice for all. */
static inline const char *trial_target(const void *opt, unsigned which)
{
	static const char *const all[] = { "sm_90", "sm_120", "sm_80", "sm_86", "sm_89" };
	static const char *const tcgen05[] = { "sm_100a", "sm_103a" };
	const cptx_attention_opt *o = (const cptx_attention_opt *)opt;

	if (o->mma == CPTX_ATTENTION_WGMMA)
		return "sm_90a";
	if (o->mma == CPTX_ATTENTION_TCGEN05)
		return tcgen05[which % 2];
	return trial_pick(all, o->tma ? 2 : 5, which, o, trial_takes); /* the first two have TMA */
}

/* The forward, the decoding or the backward kernels, for what is the same of all.  o, t: their options and their trial. */
typedef struct trial_kind {
	bool (*build)(cptx_module *m, const void *o, cptx_error *err);
	/* Runs and compares; text: what the report says.  False, with err, where that cannot be. */
	bool (*run)(cptx_device *dev, cptx_module *m, const void *o, const void *t, attention_report *r, char *text, size_t size,
	            cptx_error *err);
	const char *(*target)(const void *o, unsigned which); /* one of those that have the kernels */
	/* at random */
	void (*draw)(unsigned i, void *o, void *t); /* set number i, which follows the one in front */
	bool (*check)(const void *o, const void *t, const char *target, cptx_error *err);
	const char *rules; /* what all messages about rules that may be broken begin with */
} trial_kind;

/* Builds the kernels and runs the trial in an order of asynchronous work: all is right, and nothing is found.  assembled:
 * ptxas accepts them, too. */
static inline void trial_is_right(const trial_kind *kind, const void *o, const void *t, const char *target, unsigned order,
                                  bool assembled, const char *what)
{
	cptx_device *dev = trial_device_of(target, order);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	attention_report r;
	char text[300];

	SURE(kind->build(m, o, &err), "%s: %s", what, err.text);
	if (assembled)
		free(emu_assembles(m, target));
	SURE(kind->run(dev, m, o, t, &r, text, sizeof text, &err), "%s, order %u: %s", what, order, err.text);
	SURE(!r.wrong && r.compared == r.elements, "%s, order %u: %s", what, order, text);
	SURE(!cptx_emu_finding_at(dev, 0), "%s, order %u: %s", what, order, cptx_emu_finding_at(dev, 0)->text);
	cptx_module_destroy(m);
	cptx_device_close(dev);
}

/* In some orders from number `first` on; target NULL: one of the kind's for each. */
static inline void trial_in_orders(const trial_kind *kind, const void *o, const void *t, const char *target, uint64_t first,
                                   unsigned orders, const char *what)
{
	for (unsigned order = (unsigned)first; order < first + orders; order++)
		trial_is_right(kind, o, t, target ? target : kind->target(o, order), order, false, what);
}

/*
 * Sets of options and problems at random: right, or the rule that they break is named.  o, t: room for one.
 * CPTX_ATTENTION_TRIALS, CPTX_SEEDS: how many, and in how many orders each.  CPTX_ATTENTION_ASSEMBLE: ptxas accepts them,
 * too.
 */
static inline void trial_random(const trial_kind *kind, void *o, void *t, unsigned trials, unsigned orders)
{
	const bool assembled = getenv("CPTX_ATTENTION_ASSEMBLE") != NULL;
	unsigned built = 0, mine = 0;

	trials = trial_count("CPTX_ATTENTION_TRIALS", trials), orders = trial_count("CPTX_SEEDS", orders);
	for (unsigned i = 0; i < trials; i++) {
		cptx_error err = { 0 };
		char what[20];
		kind->draw(i, o, t);
		if (!is_my_part(i))
			continue;
		snprintf(what, sizeof what, "random %u", i);
		mine++;
		if (!kind->check(o, t, kind->target(o, i), FRESH(&err))) {
			SURE(!strncmp(err.text, kind->rules, strlen(kind->rules)), "%s: %s", what, err.text);
			continue;
		}
		for (unsigned j = 0; j < orders; j++)
			trial_is_right(kind, o, t, kind->target(o, i + j), i + j, assembled && !j, what);
		built++;
	}
	if (whole())
		printf("%u sets: %u right in %u orders each, the others name a rule\n", mine, built, orders);
	ck_assert_uint_gt(built, mine / 2);
}

#endif
