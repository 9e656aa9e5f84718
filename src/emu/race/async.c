/* SPDX-License-Identifier: MIT */
/* Asynchronous operations: known to nobody until somebody has waited for them. */
#include "emu/core/cluster.h"
#include "emu/core/grid.h"
#include "emu/race/wide.h"
#include "emu/core/explore.h"

#include <stdlib.h>

enum { MOST_LATE = 1 << 16 /* that are remembered: an older one counts as waited for */ };

const late_op *race_late(const emu_cluster *c, uint32_t id)
{
	const struct emu_races *r = c->races;
	const late_op *x = r->nlate ? &r->late[id % r->nlate] : NULL;

	return x && x->id == id ? x : NULL;
}

static bool room(struct emu_races *r)
{
	if (r->last_late + 1 < r->nlate || r->nlate == MOST_LATE)
		return true;
	late_op *p = GROW_ARRAY(late_op, r->late, r->nlate ? r->nlate * 2 : 256);
	if (!p)
		return false;
	r->late = p;
	r->nlate = r->nlate ? r->nlate * 2 : 256;
	return true;
}

uint32_t race_async_begin(emu_warp *w, const emu_op *op, unsigned lane)
{
	struct emu_races *r = w->cluster->races;

	if (!r)
		return 0;
	if (!room(r)) {
		race_no_memory(w->cluster);
		return 0;
	}
	if (lane >= WARP) /* of the whole warp */
		lane = (unsigned)__builtin_ctz(w->g->mask);
	uint32_t id = ++r->last_late ? r->last_late : ++r->last_late;
	r->late[id % r->nlate] = (late_op){ .id = id, .op = op->index, .warp = (uint16_t)w->agent, .lane = (uint8_t)lane };
	return id;
}

static late_op *still_there(emu_cluster *c, uint32_t id)
{
	late_op *x = c->races && id && c->races->nlate ? &c->races->late[id % c->races->nlate] : NULL;

	return x && x->id == id ? x : NULL;
}

/* What a copy that is under way does to a place. */
static touch touch_of(emu_warp *w, const late_op *x, const emu_place *p, uint32_t size, unsigned access)
{
	return (touch){
		.w = w, .op = w->grid->image->ops[x->op], .lane = x->lane, .access = access, .late = x->id, .place = p, .size = size
	};
}

void race_async_touch(emu_warp *w, uint32_t id, const emu_place *p, uint32_t size, unsigned access)
{
	const late_op *x = still_there(w->cluster, id);

	if (!x)
		return;
	touch t = touch_of(w, x, p, size, access);
	race_touch(&t);
}

void race_async_wrote(emu_warp *w, uint32_t id, const emu_place *p, uint32_t size)
{
	const late_op *x = still_there(w->cluster, id);

	if (!x || !w->grid->wide || p->space != SPACE_GLOBAL)
		return;
	touch t = touch_of(w, x, p, size, ACCESS_WRITE | ACCESS_VALUE);
	race_log(&t);
}

/* The clock comes to know an epoch of its agent, or of another's. */
static void tell(emu_cluster *c, emu_clock *k, uint32_t agent, uint32_t epoch, uint32_t lanes)
{
	if (!race_clock_room(c, k, agent + 1))
		return;
	emu_seen *e = &k->seen[agent];
	if (lanes == ALL_LANES) {
		e->all = MAX(e->all, epoch);
		return;
	}
	e->lanes = e->some > e->all ? e->lanes | lanes : lanes;
	e->some = MAX(e->some, epoch);
}

void race_async_same(emu_cluster *c, uint32_t id, uint32_t other)
{
	late_op *x = still_there(c, id);

	if (x)
		x->same = other;
}

void race_async_done(emu_cluster *c, uint32_t id, emu_clock *to)
{
	late_op *x = still_there(c, id);

	if (!x)
		return;
	if (!x->agent) {
		x->agent = race_agent(c, to);
		if (!x->agent)
			return;
		x->epoch = ++c->races->epoch[x->agent];
	}
	tell(c, to, x->agent, x->epoch, ALL_LANES);
}

void race_async_grouped(emu_cluster *c, uint32_t id, emu_clock *track, uint32_t group)
{
	late_op *x = still_there(c, id);

	if (x)
		x->agent = race_agent(c, track), x->epoch = group, x->grouped = 1;
}

void race_async_arriving(emu_cluster *c, uint32_t id, emu_clock *track, uint32_t number)
{
	late_op *x = still_there(c, id);

	if (x)
		x->arrival = race_agent(c, track), x->arrived = number;
}

void race_async_told(emu_cluster *c, emu_clock *to, const emu_clock *track, uint32_t group, uint32_t lanes)
{
	if (c->races && track->agent)
		tell(c, to, track->agent, group, lanes);
}

void race_async_waited(emu_warp *w, uint32_t mask, emu_clock *track, uint32_t group)
{
	emu_clock now = { 0 };

	emu_touched(w->cluster, w->grid,
	            (emu_touch){ .object = emu_object(w->cluster, 0, OBJECT_GROUPS, w->agent), .kind = TOUCH_GO });
	if (!w->cluster->races || !group || !track->agent)
		return;
	tell(w->cluster, &now, track->agent, group, mask);
	clock_acquire_by(w, mask, &now);
	clock_free(&now);
}

bool race_late_known(const emu_warp *w, unsigned lane, bool fenced, uint32_t id)
{
	const late_op *x = race_late(w->cluster, id);

	return !x || (x->agent && race_knows(w, lane, fenced, x->agent, x->epoch, x->grouped ? x->lane : WARP)) ||
	       (x->arrival && race_knows(w, lane, fenced, x->arrival, x->arrived, x->lane));
}
