/* SPDX-License-Identifier: MIT */
#include "mutant.h"
#include "../whole.h"

#include <cptx/cptx.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

const char *const mutant_kinds[MUTANT_KINDS] = {
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
	"griddepcontrol.wait",
	"cp.async.commit_group",
	"cp.async.wait_group",
	"wgmma.fence",
	"wgmma.commit_group",
	"wgmma.wait_group",
};

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

bool mutant_make(cptx_module *m, const mutant *x)
{
	cptx_kernel *k = cptx_module_body(m, x->kernel);
	cptx_item *it = x->whole ? NULL : nth_item(k, mutant_kinds[x->kind], x->nth);

	if (!it)
		return x->whole;
	if (x->other && strstr(x->what, "expect_tx"))
		arrive_without_bytes(k, it);
	else if (x->other)
		remove_both(k, it);
	else if (strstr(x->what, "try_wait"))
		remove_wait(k, it);
	else
		cptx_edit_remove(k, it);
	return true;
}

/* ---- all of a kernel ---- */

enum { MOST = 200, SPARED_SEEDS = 3 };

static unsigned list(const mutant_subject *s, mutant all[MOST], unsigned of_kind[MUTANT_KINDS])
{
	cptx_module *m = s->build(s->user);
	cptx_kernel *k = cptx_module_body(m, s->kernel);
	unsigned n = 0;

	for (unsigned kind = 0; kind < MUTANT_KINDS; kind++) {
		mutant x = { .kind = kind, .kernel = s->kernel };
		for (cptx_item *it = NULL; (it = cptx_item_find(k, it, mutant_kinds[kind])) && n + 2 <= MOST; x.nth++) {
			cptx_item_spelling(it, x.what, sizeof x.what);
			all[n++] = x;
			if (strstr(x.what, "expect_tx") || strstr(x.what, "cluster.arrive"))
				all[n] = x, all[n++].other = true;
		}
		of_kind[kind] += x.nth;
	}
	cptx_module_destroy(m);
	return n;
}

/* NULL: it must be there. */
static const char *why_spared(const mutant_subject *s, const mutant *x)
{
	size_t length = strlen(s->name);

	for (const spared *p = s->spared; p < s->spared + s->spares; p++)
		for (const char *at = p->who; (at = strstr(at, s->name)); at += length)
			if ((at == p->who || at[-1] == ' ') && (!at[length] || at[length] == ' ') && !strcmp(p->spelling, x->what) &&
			    p->nth == x->nth)
				return p->why;
	return NULL;
}

/* Of so many mutants one is tried, when not all are (CPTX_WHOLE). */
enum { ONE_OF = 6 };

typedef struct counts {
	unsigned made, first, spared, lost;
} counts;

static void try_one(const mutant_subject *s, const mutant *x, counts *c)
{
	const char *how = "", *why = x->whole ? "it is whole" : why_spared(s, x);
	unsigned seed = 1;

	unsigned most = why && s->seeds > SPARED_SEEDS ? SPARED_SEEDS : s->seeds;
	while (seed <= most && !*(how = s->run(s->user, x, seed)))
		seed++;
	c->made++, c->first += seed == 1, c->spared += why != NULL;
	if ((seed > most) == (why != NULL))
		return;
	c->lost++;
	printf("%s without %s%s number %u: %s (seed %u)%s%s\n", s->name, x->what, x->other ? " (the other way)" : "", x->nth,
	       how, seed, why ? "; listed: " : "", why ? why : "");
}

unsigned mutants_try(const mutant_subject *s, unsigned of_kind[MUTANT_KINDS])
{
	static mutant all[MOST];
	counts c = { 0 };
	unsigned n = list(s, all, of_kind);

	for (unsigned i = 0; i < n && s->sample; i++) {
		unsigned at = (s->sample * 7 + i) % n;
		if (why_spared(s, &all[at]))
			continue;
		try_one(s, &all[at], &c);
		return c.lost;
	}
	for (unsigned i = 0; i < n; i += whole() ? 1 : ONE_OF)
		try_one(s, &all[i], &c);
	printf("%s: %u mutants, %u found by the first seed, %u spared\n", s->name, c.made, c.first, c.spared);
	try_one(s, &(mutant){ .whole = true }, &c);
	return c.lost;
}

const char *mutant_verdict(cptx_device *dev, cptx_module *m, bool ok, bool wrong, const cptx_error *err)
{
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);

	if (!ok && !f)
		ck_abort_msg("%s", err->text);
	const char *verdict = f ? cptx_finding_name(f->code) : wrong ? "wrong" : "";
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return verdict;
}
