/* SPDX-License-Identifier: MIT */
/* Clocks: what warps, barriers and locations in memory know. */
#include "emu/race/race.h"
#include "emu/core/cluster.h"
#include "emu/core/grid.h"
#include "emu/core/machine.h"
#include "emu/race/wide.h"

#include <stdlib.h>

enum { MOST_LOCATIONS = 4096, MOST_AGENTS = 1024 /* beside warps: others share one */ };

void race_no_memory(emu_cluster *c) { c->no_memory = c->failed = true; }

/* ---- clocks ---- */

bool race_clock_room(emu_cluster *c, emu_clock *k, uint32_t n)
{
	if (n <= k->n)
		return true;
	n = MAX(n, c->nwarp);
	emu_seen *p = NEW_ARRAY(emu_seen, (size_t)n * 2);
	if (!p) {
		race_no_memory(c);
		return false;
	}
	for (uint32_t i = 0; i < k->n; i++) {
		p[i] = k->seen[i];
		p[n + i] = k->fenced[i];
	}
	free(k->seen);
	k->seen = p;
	k->fenced = p + n;
	k->n = n;
	return true;
}

void clock_free(emu_clock *k)
{
	free(k->seen);
	*k = (emu_clock){ .agent = k->agent };
}

static inline void join_entry(emu_seen *a, const emu_seen *b)
{
	a->all = MAX(a->all, b->all);
	if (b->some <= a->all)
		return;
	a->lanes = a->some > a->all ? a->lanes | b->lanes : b->lanes;
	a->some = MAX(a->some, b->some);
}

void clock_join(emu_cluster *c, emu_clock *to, const emu_clock *from)
{
	if (!c->races || !from->n || !race_clock_room(c, to, from->n))
		return;
	for (uint32_t i = 0; i < from->n; i++) {
		join_entry(&to->seen[i], &from->seen[i]);
		join_entry(&to->fenced[i], &from->fenced[i]);
	}
}

static void forget(emu_clock *k)
{
	if (k->n)
		memset(k->seen, 0, (size_t)k->n * 2 * sizeof *k->seen);
}

void clock_move(emu_cluster *c, emu_clock *from, emu_clock *to)
{
	clock_join(c, to, from);
	forget(from);
}

uint32_t race_agent(emu_cluster *c, emu_clock *k)
{
	struct emu_races *r = c->races;

	if (k->agent)
		return k->agent;
	if (r->agents >= c->nwarp + MOST_AGENTS)
		return k->agent = c->nwarp + MOST_AGENTS - 1;
	if (r->agents >= r->cap_epoch) {
		size_t cap = r->agents + 64u;
		uint32_t *p = GROW_ARRAY(uint32_t, r->epoch, cap);
		if (!p) {
			race_no_memory(c);
			return 0;
		}
		memset(p + r->cap_epoch, 0, (cap - r->cap_epoch) * sizeof *p);
		r->epoch = p;
		r->cap_epoch = cap;
	}
	return k->agent = r->agents++;
}

/* ---- what warps know ---- */

static bool whole(const emu_warp *w, uint32_t mask) { return !(emu_live(w) & ~mask); }

/* What lanes of the warp have done so far. */
static emu_seen own(const emu_warp *w, uint32_t mask)
{
	uint32_t epoch = w->know.epoch;

	return whole(w, mask) ? (emu_seen){ .all = epoch } : (emu_seen){ .some = epoch, .lanes = mask };
}

/* ---- parts: lanes that know more than their warp ---- */

static emu_part *new_part(emu_warp *w, uint32_t lanes)
{
	emu_knowledge *k = &w->know;

	if (!k->part && !(k->part = NEW_ARRAY(emu_part, WARP))) {
		race_no_memory(w->cluster);
		return NULL;
	}
	emu_part *p = &k->part[k->npart];
	if (!race_clock_room(w->cluster, &p->clock, k->clock.n))
		return NULL;
	forget(&p->clock);
	p->lanes = lanes;
	k->npart++;
	return p;
}

static void drop_part(emu_knowledge *k, uint32_t i)
{
	emu_part last = k->part[--k->npart];

	k->part[k->npart] = k->part[i]; /* its memory serves the next */
	k->part[i] = last;
}

/* These lanes are in parts of their own. */
static void part_off(emu_warp *w, uint32_t mask)
{
	emu_knowledge *k = &w->know;
	uint32_t n = k->npart, rest = mask;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t both = k->part[i].lanes & mask;
		rest &= ~both;
		if (!both || both == k->part[i].lanes)
			continue;
		emu_part *p = new_part(w, both);
		if (!p)
			return;
		clock_join(w->cluster, &p->clock, &k->part[i].clock);
		k->part[i].lanes &= ~both;
	}
	if (rest)
		new_part(w, rest);
}

static bool same_clock(const emu_clock *a, const emu_clock *b)
{
	return a->n == b->n && !memcmp(a->seen, b->seen, (size_t)a->n * 2 * sizeof *a->seen);
}

/* Parts that know the same are one; what all lanes know is known to the warp. */
static void settle_parts(emu_warp *w)
{
	emu_knowledge *k = &w->know;

	for (uint32_t i = 0; i < k->npart; i++) {
		for (uint32_t j = i + 1; j < k->npart;) {
			if (!same_clock(&k->part[i].clock, &k->part[j].clock)) {
				j++;
				continue;
			}
			k->part[i].lanes |= k->part[j].lanes;
			drop_part(k, j);
		}
		if (whole(w, k->part[i].lanes)) {
			clock_join(w->cluster, &k->clock, &k->part[i].clock);
			k->npart = 0;
		}
	}
}

#define EACH_PART(p, k, mask)                                                                                               \
	for (uint32_t p##_i = 0; p##_i < (k)->npart; p##_i++)                                                                   \
		for (emu_part *p = &(k)->part[p##_i]; p && p->lanes & (mask); p = NULL)

void clock_known_by(emu_warp *w, uint32_t mask, emu_clock *to)
{
	if (!w->cluster->races)
		return;
	clock_join(w->cluster, to, &w->know.clock);
	EACH_PART(p, &w->know, mask)
		clock_join(w->cluster, to, &p->clock);
}

void clock_release_by(emu_warp *w, uint32_t mask, emu_clock *to)
{
	emu_knowledge *k = &w->know;
	emu_seen mine = own(w, mask);

	if (!w->cluster->races)
		return;
	clock_known_by(w, mask, to);
	if (to->n)
		join_entry(&to->seen[w->agent], &mine);
	k->epoch++;
}

void clock_acquire_by(emu_warp *w, uint32_t mask, const emu_clock *from)
{
	if (!w->cluster->races || !from->n || !mask)
		return;
	if (whole(w, mask)) {
		clock_join(w->cluster, &w->know.clock, from);
		return;
	}
	part_off(w, mask);
	EACH_PART(p, &w->know, mask)
		clock_join(w->cluster, &p->clock, from);
	settle_parts(w);
}

void clock_warp_sync_by(emu_warp *w, uint32_t mask)
{
	emu_knowledge *k = &w->know;
	emu_seen mine = own(w, mask);

	if (!w->cluster->races)
		return;
	if (whole(w, mask)) {
		EACH_PART(p, k, mask)
			clock_join(w->cluster, &k->clock, &p->clock);
		k->npart = 0;
		join_entry(&k->clock.seen[w->agent], &mine);
	} else {
		emu_clock all = { 0 };
		part_off(w, mask);
		EACH_PART(p, k, mask)
			clock_join(w->cluster, &all, &p->clock);
		EACH_PART(p, k, mask) {
			clock_join(w->cluster, &p->clock, &all);
			join_entry(&p->clock.seen[w->agent], &mine);
		}
		clock_free(&all);
		settle_parts(w);
	}
	k->epoch++;
}

/* Accesses that a thread has seen are fenced, too. */
static void fence_clock(emu_clock *to, const emu_clock *seen)
{
	for (uint32_t i = 0; i < seen->n; i++)
		join_entry(&to->fenced[i], &seen->seen[i]);
}

/* Each lane fences what it has seen and done itself. */
void clock_fence_proxy_by(emu_warp *w, uint32_t mask)
{
	emu_knowledge *k = &w->know;
	emu_seen mine = own(w, mask);

	if (!w->cluster->races)
		return;
	race_fetched(w);
	if (whole(w, mask)) {
		fence_clock(&k->clock, &k->clock);
		join_entry(&k->clock.fenced[w->agent], &mine);
	} else {
		part_off(w, mask);
	}
	EACH_PART(p, k, mask) {
		if (!race_clock_room(w->cluster, &p->clock, k->clock.n))
			return;
		fence_clock(&p->clock, &p->clock);
		fence_clock(&p->clock, &k->clock);
		join_entry(&p->clock.fenced[w->agent], &mine);
	}
	k->epoch++;
	settle_parts(w);
}

void clock_fence_by(emu_warp *w, uint32_t mask, unsigned order, bool wide)
{
	if (order & ACCESS_ACQUIRE)
		clock_acquire_by(w, mask, &w->know.pending);
	if (order & ACCESS_RELEASE)
		clock_release_by(w, mask, &w->know.at_fence);
	if (wide && w->grid->wide && w->cluster->races)
		race_wide_fence(w, mask, order);
}

void clock_over(emu_warp *w, const emu_clock *from) { clock_join(w->cluster, &w->know.over, from); }
void clock_release_relaxed(emu_warp *w, emu_clock *to) { clock_join(w->cluster, to, &w->know.at_fence); }
void clock_acquire_relaxed(emu_warp *w, const emu_clock *from) { clock_join(w->cluster, &w->know.pending, from); }

void clock_release(emu_warp *w, emu_clock *to) { clock_release_by(w, w->g->mask, to); }
void clock_acquire(emu_warp *w, const emu_clock *from) { clock_acquire_by(w, w->g->mask, from); }
void clock_fence_proxy(emu_warp *w) { clock_fence_proxy_by(w, w->g->mask); }
void clock_warp_sync(emu_warp *w) { clock_warp_sync_by(w, w->g->mask); }

static bool clock_saw(const emu_clock *k, bool fenced, uint32_t agent, uint32_t epoch, unsigned lane)
{
	return agent < k->n && race_entry_saw(fenced ? &k->fenced[agent] : &k->seen[agent], epoch, lane);
}

bool race_knows(const emu_warp *w, unsigned lane, bool fenced, uint32_t agent, uint32_t epoch, unsigned other_lane)
{
	if (clock_saw(&w->know.clock, fenced, agent, epoch, other_lane))
		return true;
	EACH_PART(p, &w->know, UINT32_C(1) << lane)
		return clock_saw(&p->clock, fenced, agent, epoch, other_lane);
	return false;
}

bool race_is_over(const emu_warp *w, uint32_t agent, uint32_t epoch, unsigned lane)
{
	return clock_saw(&w->know.over, false, agent, epoch, lane);
}

bool race_late_over(const emu_warp *w, uint32_t id)
{
	const late_op *x = race_late(w->cluster, id);

	return x && ((x->agent && race_is_over(w, x->agent, x->epoch, x->grouped ? x->lane : WARP)) ||
	             (x->arrival && race_is_over(w, x->arrival, x->arrived, x->lane)));
}

/* ---- stamps ---- */

emu_stamp race_stamp(const emu_warp *w, unsigned lane)
{
	return (emu_stamp){ .agent = w->agent, .epoch = w->know.epoch, .lane = lane };
}

bool race_saw(const emu_warp *w, unsigned lane, emu_stamp s)
{
	return !w->cluster->races || (s.agent == w->agent && s.lane == lane) ||
	       race_knows(w, lane, false, s.agent, s.epoch, s.lane);
}

bool race_fenced(const emu_warp *w, unsigned lane, emu_stamp s)
{
	return !w->cluster->races || race_knows(w, lane, true, s.agent, s.epoch, s.lane);
}

bool race_over(const emu_warp *w, emu_stamp s) { return race_is_over(w, s.agent, s.epoch, s.lane); }

/* ---- locations that order ---- */

static location *find_location(struct emu_races *r, const unsigned char *at)
{
	uint32_t i = (uint32_t)((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	if (!r->cap_loc)
		return NULL;
	for (i &= r->cap_loc - 1; r->loc[i].at && r->loc[i].at != at;)
		i = (i + 1) & (r->cap_loc - 1);
	return &r->loc[i];
}

static bool more_locations(struct emu_races *r)
{
	location *old = r->loc;
	uint32_t n = r->cap_loc;

	r->loc = NEW_ARRAY(location, n ? n * 2 : 16);
	if (!r->loc) {
		r->loc = old;
		return false;
	}
	r->cap_loc = n ? n * 2 : 16;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].at)
			*find_location(r, old[i].at) = old[i];
	free(old);
	return true;
}

/* The clock that was released at a location; NULL: none was. */
static emu_clock *clock_at(struct emu_races *r, const unsigned char *at)
{
	location *l = find_location(r, at);

	return l && l->at ? &l->clock : r->other_locs.n ? &r->other_locs : NULL;
}

static emu_clock *new_clock_at(emu_cluster *c, const unsigned char *at)
{
	struct emu_races *r = c->races;
	location *l = find_location(r, at);

	if (l && l->at)
		return &l->clock;
	if (r->nloc >= MOST_LOCATIONS)
		return &r->other_locs;
	if (r->nloc * 2 >= r->cap_loc) {
		if (!more_locations(r)) {
			race_no_memory(c);
			return NULL;
		}
		l = find_location(r, at);
	}
	r->nloc++;
	*l = (location){ .at = at };
	return &l->clock;
}

void race_order(emu_warp *w, unsigned lane, const emu_place *p, unsigned access)
{
	struct emu_races *r = w->cluster->races;
	uint32_t mask = UINT32_C(1) << lane;
	emu_clock *k = clock_at(r, p->p);

	if (k && access & ACCESS_READ) {
		if (access & ACCESS_ACQUIRE)
			clock_acquire_by(w, mask, k);
		else
			clock_join(w->cluster, &w->know.pending, k);
	}
	if (!(access & ACCESS_WRITE))
		return;
	if (k && !(access & ACCESS_ATOMIC) && k != &r->other_locs)
		forget(k); /* atomic operations go on with what a release began; another write ends it */
	if (!(access & ACCESS_RELEASE) && !w->know.at_fence.n)
		return;
	k = new_clock_at(w->cluster, p->p);
	if (k && access & ACCESS_RELEASE)
		clock_release_by(w, mask, k);
	else if (k)
		clock_join(w->cluster, k, &w->know.at_fence);
}

/* ---- making and freeing ---- */

bool race_cluster_init(emu_cluster *c)
{
	if (c->grid->machine->opt.no_races)
		return true;
	c->races = NEW(struct emu_races);
	if (!c->races)
		return false;
	c->races->agents = c->nwarp;
	c->races->cap_epoch = c->nwarp;
	c->races->epoch = NEW_ARRAY(uint32_t, c->nwarp + 1u);
	return c->races->epoch && race_pages_init(c);
}

void race_cluster_free(emu_cluster *c)
{
	struct emu_races *r = c->races;

	if (!r)
		return;
	for (uint32_t i = 0; i < r->cap_loc; i++)
		clock_free(&r->loc[i].clock);
	clock_free(&r->other_locs);
	free(r->loc);
	free(r->epoch);
	free(r->node);
	free(r->late);
	free(r->early);
	race_pages_free(c);
	free(r);
	c->races = NULL;
}

bool race_warp_init(emu_warp *w)
{
	w->know.epoch = 1;
	return !w->cluster->races || race_clock_room(w->cluster, &w->know.clock, w->cluster->nwarp);
}

void race_warp_free(emu_warp *w)
{
	clock_free(&w->know.clock);
	for (uint32_t i = 0; w->know.part && i < WARP; i++)
		clock_free(&w->know.part[i].clock);
	free(w->know.part);
	clock_free(&w->know.at_fence);
	clock_free(&w->know.pending);
	clock_free(&w->know.over);
	free(w->fetches);
	w->fetches = NULL;
}

void race_cta_free(emu_cta *cta)
{
	free(cta->shadow);
	cta->shadow = NULL;
}
