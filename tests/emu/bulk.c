/* SPDX-License-Identifier: MIT */
#include "bulk.h"

static void one(trial *t, uint64_t seed)
{
	t->opt.seed = seed;
	t->opt.schedule = seed % 3;
	t->opt.threads = 1 + seed % 2;
	trial_run(t);
}

void bulk_fine(trial *t)
{
	void *first = malloc(t->size + 1), *data = t->data;

	ck_assert_ptr_nonnull(first);
	memcpy(first, data, t->size);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		trial copy = *t;
		memcpy(data, first, t->size);
		one(&copy, seed);
		ck_assert_msg(copy.ok, "%s\nseed %u: %s%s", t->body, (unsigned)seed, copy.err.text, copy.message);
		if (seed + 1 == SEEDS)
			*t = copy;
	}
	free(first);
}

void bulk_found(const trial *t, enum cptx_finding_code code, const char *text)
{
	void *data = malloc(t->size + 1);

	ck_assert_ptr_nonnull(data);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		trial copy = *t;
		memcpy(data, t->data, t->size);
		copy.data = data;
		one(&copy, seed);
		ck_assert_msg(!copy.ok && trial_found(&copy, code), "%s\nseed %u, not found: %s; but: %s%s", t->body, (unsigned)seed,
		              text, copy.err.text, copy.message);
		ck_assert_msg(strstr(copy.message, text) != NULL, "seed %u, not \"%s\" but\n%s", (unsigned)seed, text, copy.message);
	}
	free(data);
}
