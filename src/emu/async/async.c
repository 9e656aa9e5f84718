/* SPDX-License-Identifier: MIT */
/* Groups of asynchronous operations of threads; cp.async. */
#include "emu/async/async.h"
#include "emu/async/mbarrier.h"
#include "emu/core/finding.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

/* ---- groups ---- */

static void no_memory(emu_warp *w, const emu_op *op)
{
	emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work");
}

struct emu_async_state *async_state(emu_warp *w)
{
	if (!w->async && !(w->async = NEW(struct emu_async_state)))
		no_memory(w, NULL);
	return w->async;
}

static void free_groups(async_groups *g)
{
	for (async_member *m = g->first, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	clock_free(&g->track);
	clock_free(&g->arrivals);
}

async_member *async_add(emu_warp *w, async_groups *g, uint32_t mask)
{
	async_member *m = NEW(async_member);

	if (!m) {
		no_memory(w, NULL);
		return NULL;
	}
	m->number = ++g->last;
	m->busy = mask;
	EACH_LANE(l, mask) {
		m->group[l] = g->closed[l] + 1;
		g->oldest[l] = g->oldest[l] ? g->oldest[l] : m->number;
	}
	*(g->first ? g->end : &g->first) = m;
	g->end = &m->next;
	return m;
}

/*
 * Copies are known (race.h) by two numbers: of their group, to a lane that waits for it; and how many times the lane has
 * arrived at mbarriers before them, plus 1, to who waits there.  Who knows of a number knows of all lower ones.
 */
void async_note(emu_warp *w, const emu_op *op, async_groups *g, async_member *m, unsigned lane, const emu_place *p,
                uint32_t size, unsigned access)
{
	if (!m->late[lane]) {
		m->late[lane] = race_async_begin(w, op, lane);
		race_async_grouped(w->cluster, m->late[lane], &g->track, m->group[lane]);
		if (w->grid->image->copies_arrive)
			race_async_arriving(w->cluster, m->late[lane], &g->arrivals, g->arrived[lane] + 1);
	}
	race_async_touch(w, m->late[lane], p, size, access);
}

/* Frees the oldest members whose work is over. */
static void sweep(async_groups *g)
{
	for (async_member *m; (m = g->first) && !m->busy;) {
		g->first = m->next;
		free(m);
	}
}

void async_close(async_groups *g, uint32_t mask)
{
	EACH_LANE(l, mask)
		g->closed[l]++;
}

/* The last group that the lane waits for, if `most` may be under way; 0: none. */
static uint32_t last_group(const async_groups *g, unsigned lane, uint32_t most)
{
	return g->closed[lane] > most ? g->closed[lane] - most : 0;
}

static bool under_way(const async_groups *g, uint32_t mask, uint32_t most)
{
	for (const async_member *m = g->first; m; m = m->next)
		EACH_LANE(l, m->busy & mask)
			if (m->group[l] <= last_group(g, l, most))
				return true;
	return false;
}

static void tell_races(emu_warp *w, async_groups *g, uint32_t mask, uint32_t most)
{
	EACH_LANE(l, mask) {
		uint32_t group = last_group(g, l, most);
		if (group)
			race_async_waited(w, UINT32_C(1) << l, &g->track, group); /* a lane waits for its own copies */
	}
}

enum emu_step async_wait(emu_warp *w, const emu_op *op, async_groups *g, uint32_t mask, uint32_t most, const char *what)
{
	if (under_way(g, mask, most)) {
		g->blocked = true;
		return emu_group_block(w, op, what, 0, 0);
	}
	tell_races(w, g, mask, most);
	return STEP_NEXT;
}

/* ---- cp.async.mbarrier.arrive ---- */

/* Lanes that arrive at an mbarrier when their older copies are over. */
typedef struct async_arrival {
	struct async_arrival *next;
	const emu_op *op;
	emu_cta *cta;
	uint32_t offset;
	uint32_t mask;
	uint64_t number;      /* of the newest copy */
	uint32_t known[WARP]; /* the number by which older copies are known */
} async_arrival;

typedef struct arriving {
	emu_async a;
	emu_cta *cta;
	uint32_t offset, mask;
	uint32_t known[WARP];
} arriving;

/* Arrivals run in any order, and each hands on all copies that are older than it. */
static bool run_arrival(emu_cluster *c, emu_async *a)
{
	arriving *x = (arriving *)a;
	mbarrier_by by = mbarrier_by_async(a, 0);
	emu_mbarrier *b = mbarrier_of(x->cta, x->offset, by);

	if (!b)
		return true;
	for (uint32_t left = x->mask, same; left; left &= ~same) {
		const uint32_t known = x->known[__builtin_ctz(left)];
		same = 0;
		EACH_LANE(l, left)
			same |= (uint32_t)(x->known[l] == known) << l;
		race_async_told(c, &b->clock, &a->w->async->copies.arrivals, known, same);
	}
	mbarrier_arrive(x->cta, x->offset, (uint32_t)__builtin_popcount(x->mask), by);
	return true;
}

static bool start_arrival(emu_warp *w, const async_arrival *r, uint32_t mask)
{
	arriving *x = NEW(arriving);

	if (!x) {
		no_memory(w, r->op);
		return false;
	}
	*x = (arriving){ .cta = r->cta, .offset = r->offset, .mask = mask };
	memcpy(x->known, r->known, sizeof x->known);
	x->a = (emu_async){ .run = run_arrival, .w = w, .lane = (unsigned)__builtin_ctz(mask), .op = r->op };
	return emu_async_start(w->cluster, &x->a);
}

/* Starts those arrivals from *p on whose copies are over.  They stand in the order of their numbers: from `below` on none is
 * looked at. */
static void start_arrivals(emu_warp *w, async_arrival **p, uint64_t below)
{
	struct emu_async_state *s = w->async;

	while (*p && (*p)->number < below && !w->cluster->failed) {
		async_arrival *r = *p;
		uint32_t busy = 0;
		EACH_LANE(l, r->mask)
			if (s->copies.oldest[l] && s->copies.oldest[l] <= r->number)
				busy |= UINT32_C(1) << l;
		uint32_t ready = r->mask & ~busy;
		r->mask &= busy;
		if (ready)
			start_arrival(w, r, ready);
		if (r->mask) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		if (!*p)
			s->end = p;
		free(r);
	}
}

/* The lanes whose oldest copy has ended have another one, which is newer, or none.  The number of the newest copy that is
 * the oldest of such a lane now; UINT64_MAX: one has none; 0: nothing has changed. */
static uint64_t find_oldest(async_groups *g, const async_member *ended, uint32_t mask)
{
	uint32_t lanes = 0;
	uint64_t newest = 0;

	EACH_LANE(l, mask)
		if (g->oldest[l] == ended->number) {
			lanes |= UINT32_C(1) << l;
			g->oldest[l] = 0;
		}
	for (const async_member *m = ended->next; lanes && m; m = m->next) {
		EACH_LANE(l, m->busy & lanes)
			g->oldest[l] = newest = m->number;
		lanes &= ~m->busy;
	}
	return lanes ? UINT64_MAX : newest;
}

void async_over(emu_warp *w, async_groups *g, async_member *m, uint32_t mask)
{
	m->busy &= ~mask;
	const uint64_t below = find_oldest(g, m, mask);
	if (g->blocked && !m->busy) {
		g->blocked = false;
		emu_wake(w->cluster);
	}
	sweep(g);
	w->cluster->progress++;
	if (w->async->arrivals)
		start_arrivals(w, &w->async->arrivals, below);
}

static bool arrive_later(emu_warp *w, const emu_op *op, emu_cta *cta, uint32_t offset, uint32_t mask)
{
	struct emu_async_state *s = w->async;
	async_arrival *r = NEW(async_arrival);

	if (!r) {
		no_memory(w, op);
		return false;
	}
	*r = (async_arrival){ .op = op, .cta = cta, .offset = offset, .mask = mask, .number = s->copies.last };
	EACH_LANE(l, mask)
		r->known[l] = ++s->copies.arrived[l];
	*(s->arrivals ? s->end : &s->arrivals) = r;
	s->end = &r->next;
	return true;
}

static enum emu_step copies_arrive(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = &op->arg[1];
	bool noinc = op->imm[0];

	if (!async_state(w))
		return STEP_FAULT;
	async_arrival **from = w->async->arrivals ? w->async->end : &w->async->arrivals;
	emu_need_arg(w, op, a, mask, "the address");
	for (uint32_t left = mask; left;) {
		unsigned lane = (unsigned)__builtin_ctz(left);
		uint64_t addr = emu_address(w, a, lane);
		uint32_t same = 0;
		emu_cta *cta;
		EACH_LANE(l, left)
			same |= (uint32_t)(emu_address(w, a, l) == addr) << l;
		emu_mbarrier *b = mbarrier_at(w, op, lane, a->space, addr, &cta);
		mbarrier_by by = { .w = w, .op = op, .lane = lane };
		if (!b || (!noinc && !mbarrier_add_pending(cta, b, (uint32_t)__builtin_popcount(same), by)))
			return STEP_FAULT;
		clock_release_by(w, same, &b->clock); /* with copies that it has waited for itself */
		if (!arrive_later(w, op, cta, b->offset, same))
			return STEP_FAULT;
		left &= ~same;
	}
	start_arrivals(w, from, UINT64_MAX);
	return w->cluster->failed ? STEP_FAULT : STEP_NEXT;
}

bool decode_cp_async_arrive(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->f->image->copies_arrive = true;
	op->imm[0] = emu_modifier(op, "noinc") != 0;
	op->flags = OP_EVENT;
	op->fn = copies_arrive;
	return true;
}

/* ---- cp.async ---- */

enum { CP_TO = 1, CP_FROM, CP_SIZE, CP_SRC_SIZE, CP_POLICY, CP_IGNORE }; /* imm[0]: size */

typedef struct copy {
	emu_async a;
	async_member *m;
	uint32_t mask;
	uint32_t to[WARP];
	uint64_t from[WARP];
	uint8_t bytes[WARP]; /* that are read; the rest are zeros */
} copy;

static bool copy_lane(emu_cluster *c, const copy *x, unsigned lane)
{
	uint32_t size = (uint32_t)x->a.op->imm[0], bytes = x->bytes[lane];
	emu_place to, from;

	if (!emu_locate(c, x->a.w->cta, SPACE_SHARED, x->to[lane], size, &to) ||
	    (bytes && !emu_locate(c, x->a.w->cta, SPACE_GLOBAL, x->from[lane], bytes, &from))) {
		emu_find(x->a.w, x->a.op, (int)lane, CPTX_FIND_BOUNDS,
		         "the memory it copies from was freed before the copy was done");
		return false;
	}
	if (bytes)
		memcpy(to.p, from.p, bytes);
	memset(to.p + bytes, 0, size - bytes);
	emu_set_defined(&to, size, true);
	if (bytes)
		emu_copy_defined(&to, &from, bytes);
	return true;
}

static bool run_copy(emu_cluster *c, emu_async *a)
{
	copy *x = (copy *)a;

	EACH_LANE(l, x->mask)
		if (!copy_lane(c, x, l))
			return true;
	async_over(a->w, &a->w->async->copies, x->m, x->mask);
	return true;
}

/* How many bytes of the source a lane reads; false with a finding. */
static bool source_bytes(emu_warp *w, const emu_op *op, unsigned lane, uint8_t *bytes)
{
	const emu_arg *n = &op->arg[CP_SRC_SIZE], *ignore = &op->arg[CP_IGNORE];
	uint64_t v = n->kind == ARG_REG ? emu_get(w, n, lane) : (uint64_t)op->imm[0];

	if (ignore->kind == ARG_REG && emu_get(w, ignore, lane))
		v = 0;
	*bytes = (uint8_t)v;
	if (v <= (uint64_t)op->imm[0])
		return true;
	emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "%llu bytes of the source; there are at most %lld, the size of the copy",
	         (unsigned long long)v, (long long)op->imm[0]);
	return false;
}

static bool issue_lane(emu_warp *w, const emu_op *op, unsigned lane, copy *x)
{
	const emu_arg *to = &op->arg[CP_TO], *from = &op->arg[CP_FROM];
	uint32_t size = (uint32_t)op->imm[0];
	async_groups *g = &w->async->copies;
	emu_place p, q;

	x->to[lane] = (uint32_t)emu_address(w, to, lane);
	x->from[lane] = emu_address(w, from, lane);
	if (!source_bytes(w, op, lane, &x->bytes[lane]) ||
	    !emu_resolve(w, op, lane, to->space, emu_address(w, to, lane), size, size, &p))
		return false;
	if (x->bytes[lane] && !emu_resolve(w, op, lane, SPACE_GLOBAL, x->from[lane], x->bytes[lane], 1, &q))
		return false;
	if (x->bytes[lane] && x->from[lane] % size) {
		emu_find(w, op, (int)lane, CPTX_FIND_MISALIGNED, "address 0x%llx must be a multiple of %u",
		         (unsigned long long)x->from[lane], size);
		return false;
	}
	async_note(w, op, g, x->m, lane, &p, size, ACCESS_WRITE);
	if (x->bytes[lane])
		async_note(w, op, g, x->m, lane, &q, x->bytes[lane], ACCESS_READ);
	return true;
}

static void need_operands(emu_warp *w, const emu_op *op, uint32_t mask)
{
	static const struct {
		unsigned arg;
		const char *what;
	} all[] = {
		{ CP_TO, "the address" }, { CP_FROM, "the address" }, { CP_SRC_SIZE, "the size" }, { CP_IGNORE, "the predicate" }
	};

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		const emu_arg *a = &op->arg[all[i].arg];
		if (a->kind == ARG_REG || (a->kind == ARG_ADDR && a->base))
			emu_need(w, op, a->slot, mask, all[i].what);
	}
}

static enum emu_step cp_async(emu_warp *w, const emu_op *op, uint32_t mask)
{
	need_operands(w, op, mask);
	if (!async_state(w))
		return STEP_FAULT;
	copy *x = NEW(copy);
	if (!x || !(x->m = async_add(w, &w->async->copies, mask))) {
		free(x);
		no_memory(w, op);
		return STEP_FAULT;
	}
	x->mask = mask;
	x->a = (emu_async){ .run = run_copy, .w = w, .lane = (unsigned)__builtin_ctz(mask), .op = op };
	EACH_LANE(l, mask)
		if (!issue_lane(w, op, l, x)) {
			free(x);
			return STEP_FAULT;
		}
	return emu_async_start(w->cluster, &x->a) ? STEP_NEXT : STEP_FAULT;
}

bool decode_cp_async(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = op->arg[CP_SIZE].offset;
	op->fn = cp_async;
	return true;
}

static enum emu_step commit_group(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)op;
	if (!async_state(w))
		return STEP_FAULT;
	async_close(&w->async->copies, mask);
	return STEP_NEXT;
}

bool decode_cp_async_commit(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = commit_group;
	return true;
}

static enum emu_step wait_group(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return w->async ? async_wait(w, op, &w->async->copies, mask, (uint32_t)op->imm[0], "its groups of cp.async") : STEP_NEXT;
}

/* As commit_group and wait_group 0; executed again when woken, it closes groups that are empty. */
static enum emu_step wait_all(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (!w->async)
		return STEP_NEXT;
	async_close(&w->async->copies, mask);
	return async_wait(w, op, &w->async->copies, mask, 0, "its cp.async");
}

bool decode_cp_async_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	bool all = op->opcode == CPTX_OP_CP_ASYNC_WAIT_ALL;

	op->flags = OP_SPLITS;
	op->imm[0] = all ? 0 : op->arg[1].offset;
	op->fn = all ? wait_all : wait_group;
	return true;
}

void emu_async_state_free(emu_warp *w)
{
	struct emu_async_state *s = w->async;

	if (!s)
		return;
	free_groups(&s->copies);
	for (async_arrival *r = s->arrivals, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	free(s);
	w->async = NULL;
}
