/*
 * Every rung with one thing missing: a fence, a wait, a commit, an arrival, a barrier.  The emulator must find something, or
 * the result must be wrong, by some seed; what may be missing is listed, with the reason.
 */
#include "../test.h"
#include "rungs.h"

/* What is taken out. */
static const char *const taken[] = {
	"tcgen05.fence::before_thread_sync",
	"tcgen05.fence::after_thread_sync",
	"tcgen05.wait::ld",
	"tcgen05.commit",
	"mbarrier.arrive",
	"mbarrier.try_wait",
	"bar.sync",
	"bar.warp.sync",
	"barrier.cluster.arrive",
	"barrier.cluster.wait",
	"fence.proxy",
	"fence.mbarrier_init",
	"cp.async.bulk.commit_group",
	"cp.async.bulk.wait_group",
};
enum { TAKEN = sizeof taken / sizeof *taken };

#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define BEFORE "tcgen05.fence::before_thread_sync"
#define AFTER "tcgen05.fence::after_thread_sync"
#define FREED "tcgen05.dealloc, behind a barrier, of what the warps have waited for: code everywhere has no fence there"
/* What need not be there.  nth: of that spelling, from the kernel's start on. */
static const struct spared {
	const char *rungs, *spelling;
	unsigned nth;
	const char *why;
} spared[] = {
	{ "v1a v1b v2a v2b v3 v4 v5", BEFORE, 0, FREED },
	{ "v1a v1b v2a v2b v3 v4 v5", AFTER, 1, FREED },
	{ "v6 v7", BEFORE, 1, FREED },
	{ "v6", INIT_FENCE, 0, "the second pipeline's stands behind these mbarriers too" },
	{ "v6", INIT_FENCE, 1, "threads and commits arrive there, no copies; a barrier of the cluster stands between" },
	{ "v7", INIT_FENCE, 0, "the third pipeline's stands behind these mbarriers too" },
	{ "v7", INIT_FENCE, 1, "the third pipeline's stands behind these mbarriers too" },
};

typedef struct mutant {
	const ladder_rung *rung;
	unsigned kind, nth;
	bool other; /* of arrive.expect_tx only the bytes; of barrier.cluster.arrive the wait too */
	bool whole; /* nothing is taken out */
} mutant;

static cptx_item *nth_item(cptx_kernel *k, const char *spelling, unsigned nth)
{
	cptx_item *it = cptx_item_find(k, NULL, spelling);

	while (it && nth--)
		it = cptx_item_find(k, it, spelling);
	return it;
}

/* A wait is a loop: the test, and the branches behind it. */
static void remove_wait(cptx_kernel *k, cptx_item *it)
{
	cptx_item_info info;

	for (cptx_item *next = cptx_item_next(it); next; next = cptx_item_next(it)) {
		if (!cptx_item_look(k, next, &info) || info.kind != CPTX_ITEM_INSN || info.op != CPTX_OP_BRA)
			break;
		cptx_edit_remove(k, next);
	}
	cptx_edit_remove(k, it);
}

/* barrier.cluster.arrive and the wait behind it. */
static void remove_both(cptx_kernel *k, cptx_item *it)
{
	cptx_edit_remove(k, cptx_item_next(it));
	cptx_edit_remove(k, it);
}

static void arrive_without_bytes(cptx_kernel *k, cptx_item *it)
{
	cptx_val at = cptx_item_operand(it, cptx_item_slot(it, "a"));

	cptx_edit_replace(k, it);
	cptx_mbarrier_arrive(k, at, .into = cptx_sink(), .space = CPTX_SHARED_CTA);
}

/* NULL: there is no such instruction. */
static cptx_module *mutated(const mutant *x, const ladder_opt *o, char *what, size_t size)
{
	cptx_module *m = cptx_module_new(NULL);

	x->rung->build(m, x->rung, o);
	if (x->whole)
		return m;
	cptx_kernel *k = cptx_module_body(m, NULL);
	cptx_item *it = nth_item(k, taken[x->kind], x->nth);
	if (it)
		cptx_item_spelling(it, what, size);
	if (!it) {
		cptx_module_destroy(m);
		return NULL;
	}
	if (x->other && strstr(what, "expect_tx"))
		arrive_without_bytes(k, it);
	else if (x->other)
		remove_both(k, it);
	else if (strstr(what, "try_wait"))
		remove_wait(k, it);
	else
		cptx_edit_remove(k, it);
	return m;
}

/* By which seed it is found, from 1 on; 0: by none. */
static unsigned found(const mutant *x, const ladder_opt *o, unsigned seeds, char *how, size_t size)
{
	const uint64_t mnk[] = { 300, 72, 576 };
	char what[128];

	for (unsigned seed = 1; seed <= seeds; seed++) {
		cptx_module *m = mutated(x, o, what, sizeof what);
		cptx_error err = { 0 };
		ladder_report r;
		cptx_device *dev = cptx_emu_open("sm_100a",
		                                 &(cptx_emu_opt){ .seed = seed,
		                                                  .schedule = (enum cptx_emu_schedule)(seed % 3),
		                                                  .threads = 1,
		                                                  .sms = 2,
		                                                  .step_limit = 3000000 },
		                                 &err);
		bool ok = ladder_run_module(dev, m, x->rung, o, mnk, seed, 0, &r, &err);
		const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
		ck_assert_msg(ok || f, "%s", err.text);
		snprintf(how, size, "%s", f ? cptx_finding_name(f->code) : r.wrong ? "wrong" : "nothing");
		cptx_device_close(dev);
		cptx_module_destroy(m);
		if (f || r.wrong)
			return seed;
	}
	return 0;
}

static const char *why_spared(const mutant *x, const char *what)
{
	for (unsigned i = 0; i < sizeof spared / sizeof *spared; i++)
		if (strstr(spared[i].rungs, x->rung->name) && !strcmp(spared[i].spelling, what) && spared[i].nth == x->nth)
			return spared[i].why;
	return NULL;
}

static unsigned of_kind[TAKEN];

START_TEST(nothing_may_be_missing)
{
	const ladder_rung *rung = rungs[_i];
	ladder_opt o = rung_small(rung, CPTX_BF16, CPTX_BF16);
	unsigned seeds = rung_seeds(3), made = 0, lost = 0, first = 0, spare = 0;
	char what[128], how[64];

	mutant whole = { .rung = rung, .whole = true };
	ck_assert_msg(!found(&whole, &o, seeds, how, sizeof how), "%s as it is: %s", rung->name, how);
	for (unsigned kind = 0; kind < TAKEN; kind++)
		for (unsigned nth = 0;; nth++) {
			mutant x = { .rung = rung, .kind = kind, .nth = nth };
			cptx_module *m = mutated(&x, &o, what, sizeof what);
			if (!m)
				break;
			cptx_module_destroy(m);
			bool two = strstr(what, "expect_tx") || strstr(what, "cluster.arrive");
			for (int other = 0; other <= two; other++) {
				x.other = other;
				unsigned seed = found(&x, &o, seeds, how, sizeof how);
				const char *why = why_spared(&x, what);
				made++, of_kind[kind]++;
				first += seed == 1;
				spare += why != NULL;
				lost += seed ? why != NULL : !why;
				if ((!seed && !why) || (seed && why))
					printf("%s without %s%s number %u: %s (seed %u)%s%s\n", rung->name, what,
					       other ? " (the other way)" : "", nth, how, seed, why ? "; listed: " : "", why ? why : "");
			}
		}
	printf("%s: %u mutants, %u found by the first seed, %u spared\n", rung->name, made, first, spare);
	ck_assert_uint_gt(made, 8);
	ck_assert_uint_eq(lost, 0);
}
END_TEST

/* Else a word of the list may be misspelt. */
START_TEST(all_kinds_occur)
{
	for (unsigned i = 0; i < TAKEN; i++)
		ck_assert_msg(of_kind[i] > 0, "no rung has %s", taken[i]);
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
	suite_add_tcase(s, c);
	return test_main("mutants", s);
}
