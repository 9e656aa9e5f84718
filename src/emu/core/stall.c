/* SPDX-License-Identifier: MIT */
/*
 * When nobody can go on any more.
 *
 * A cluster in which nothing polls is stuck by itself.  Who polls, or goes round in a loop that reads memory, may be waiting
 * for any other cluster, so the grid is asked as a whole.  While no cluster changes anything (memory, barriers, queues),
 * each warp is looked at between rounds: one that has executed something and is in a state, registers and all, that it was
 * in before goes round for ever, as long as nothing changes.  When that is true of all warps that do not just wait, no
 * thread can go on.  A loop that counts never comes back to a state, and a warp that reads the clock is looked at anew: such
 * loops are ended by the step limit.
 */
#include "emu/core/stall.h"
#include "emu/core/cluster.h"

enum { ENOUGH = 4, ENOUGH_PARTED = 512 /* choices of groups, so that each one of a warp has been chosen */ };

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

uint64_t emu_warp_state(const emu_warp *w)
{
	uint64_t h = w->ngroup;

	for (unsigned i = 0; i < w->ngroup; i++) {
		const emu_group *g = &w->group[i];
		h = mix(h, (uint64_t)g->pc << 32 | g->mask);
		for (const emu_frame *f = g->frame; f; f = f->caller) {
			const uint64_t *r = (const uint64_t *)(const void *)f->r;
			h = mix(mix(h, (uintptr_t)f->f), f->back);
			for (uint32_t j = 0; j < f->f->words / 2; j++)
				h = mix(h, r[j]);
		}
	}
	return h;
}

/* Looks at the warp, and notes its state. */
static bool goes_round(emu_warp *w)
{
	emu_rounds *s = &w->seen;
	bool waits = true, again = false;

	for (unsigned i = 0; i < w->ngroup; i++)
		waits &= w->group[i].state != GROUP_RUN;
	if (waits)
		return true;
	if (w->chosen < s->since || w->chosen - s->since < (w->ngroup > 1 ? ENOUGH_PARTED : ENOUGH))
		return false;
	if (s->loops)
		return true;
	uint64_t state = emu_warp_state(w);
	for (unsigned i = 0; i < ARRAY_LEN(s->state); i++)
		again |= s->state[i] == state && s->at[i] >= s->since && s->at[i] < w->chosen;
	s->state[s->next] = state;
	s->at[s->next] = w->chosen;
	s->next = (s->next + 1) % ARRAY_LEN(s->state);
	s->loops = again;
	return again;
}

bool emu_cluster_stalls(emu_cluster *c)
{
	bool all = true;

	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
			all &= goes_round(&c->cta[i].warp[j]);
	return all;
}

void emu_warp_changed(emu_warp *w) { w->seen = (emu_rounds){ .since = w->chosen + 1 }; }

void emu_cluster_changed(emu_cluster *c)
{
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
			emu_warp_changed(&c->cta[i].warp[j]);
}
