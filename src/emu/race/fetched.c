/* SPDX-License-Identifier: MIT */
/*
 * What ldmatrix and ld, of .shared and of generic addresses that lead there, have read when their stage is given back.
 *
 * mbarrier.arrive does not wait for their registers: ptxas 13.0 orders the two by nothing, and on an H200 TMA and bulk
 * copies overwrote shared memory that they had still to read.  So a read counts as done once an instruction has taken one of
 * its registers (or written it anew), or the warp has executed fence.proxy.async.  Who waits for an arrival in front of that
 * knows nothing of the read, as far as the async proxy is concerned; of a later one it does.
 */
#include "emu/core/code.h"
#include "emu/race/cell.h"

#include <stdlib.h>

enum { REGS = 8, OPEN = 64 /* of a warp: further ones count as done */, EARLY = 256 /* of a cluster that are remembered */ };

/* A load whose registers nobody has taken. */
typedef struct fetch {
	uint32_t op, epoch, n, slot[REGS];
} fetch;

struct emu_fetches {
	fetch open[OPEN];
	uint32_t n;
};

/* One whose stage was given back before: who knows no later epoch than `known` of the agent does not know that it is done.
 */
typedef struct early {
	uint32_t op, epoch, known;
	uint16_t agent;
} early;

struct emu_early {
	early e[EARLY];
	uint32_t n; /* that there were */
};

void race_fetch(emu_warp *w, const emu_op *op)
{
	if (!w->cluster->races || op->ndef > REGS || (!w->fetches && !(w->fetches = NEW(struct emu_fetches))))
		return;
	struct emu_fetches *s = w->fetches;
	fetch *f = &s->open[s->n < OPEN ? s->n++ : OPEN - 1];
	*f = (fetch){ .op = op->index, .epoch = w->know.epoch, .n = op->ndef };
	for (uint32_t i = 0; i < op->ndef; i++)
		f->slot[i] = op->regs[i];
}

static bool takes(const emu_op *op, const fetch *f)
{
	for (uint32_t i = 0; i < (uint32_t)op->ndef + op->nuse; i++)
		for (uint32_t j = 0; j < f->n; j++)
			if (op->regs[i] == f->slot[j])
				return true;
	return false;
}

void race_take(emu_warp *w, const emu_op *op)
{
	struct emu_fetches *s = w->fetches;

	for (uint32_t i = 0; s && i < s->n;)
		if (takes(op, &s->open[i]))
			s->open[i] = s->open[--s->n];
		else
			i++;
}

void race_fetched(emu_warp *w)
{
	if (w->fetches)
		w->fetches->n = 0;
}

/* The one that is remembered of this read, or a new one. */
static early *find(struct emu_early *s, const emu_warp *w, const fetch *f)
{
	for (uint32_t i = 0; i < MIN(s->n, (uint32_t)EARLY); i++)
		if (s->e[i].agent == w->agent && s->e[i].op == f->op && s->e[i].epoch == f->epoch)
			return &s->e[i];
	early *e = &s->e[s->n++ % EARLY];
	*e = (early){ .op = f->op, .epoch = f->epoch, .agent = (uint16_t)w->agent };
	return e;
}

void race_give_back(emu_warp *w)
{
	struct emu_races *r = w->cluster->races;

	if (!w->fetches || !w->fetches->n || (!r->early && !(r->early = NEW(struct emu_early))))
		return;
	for (uint32_t i = 0; i < w->fetches->n; i++)
		find(r->early, w, &w->fetches->open[i])->known = w->know.epoch;
}

bool race_is_fetched(const touch *t, const reader *x, unsigned *lane)
{
	const struct emu_early *s = t->w->cluster->races->early;

	if (!s || !(t->access & ACCESS_ASYNC) || x->bits & (CELL_LATE | CELL_PROXY))
		return true;
	for (uint32_t i = 0; i < MIN(s->n, (uint32_t)EARLY); i++) {
		const early *e = &s->e[i];
		if (e->agent != x->agent || e->op != x->op || e->epoch != x->epoch)
			continue;
		*lane = (unsigned)__builtin_ctz(x->lanes);
		return race_knows(t->w, t->lane, true, x->agent, x->epoch, *lane) ||
		       race_knows(t->w, t->lane, false, x->agent, e->known + 1, *lane);
	}
	return true;
}
