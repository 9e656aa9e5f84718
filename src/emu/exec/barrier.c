/* SPDX-License-Identifier: MIT */
/* Barriers of a CTA (bar, barrier) and of the cluster. */
#include "emu/exec/barrier.h"
#include "emu/async/mbarrier.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/core/registers.h"
#include "emu/exec/exec.h"

enum { WAITING = 1 /* imm[0]: its threads wait */, POPC = 2, AND = 4, OR = 8 };

void emu_barriers_free(emu_barrier *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		clock_free(&b[i].clock);
		clock_free(&b[i].passed);
		clock_free(&b[i].over);
		clock_free(&b[i].all_over);
	}
}

/* All that are expected have come: the next generation begins, and those who wait go on. */
static void complete(emu_cluster *c, emu_barrier *b)
{
	clock_move(c, &b->clock, &b->passed);
	clock_move(c, &b->over, &b->all_over);
	b->popc = b->count;
	b->all = b->count == b->voted;
	b->any = b->count != 0;
	b->count = b->voted = b->arrived = b->expected = 0;
	b->generation++;
	emu_wake(c);
}

/* Threads of the CTA that a barrier without a count waits for: warps that have exited do not count. */
static uint32_t threads_left(const emu_cta *cta)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cta->nwarp; i++)
		n += (uint32_t)__builtin_popcount(emu_live(&cta->warp[i]));
	return n;
}

static bool whole(const emu_barrier *b, const emu_cta *cta)
{
	return b->arrived && b->arrived >= (b->expected ? b->expected : threads_left(cta));
}

/* For the orders that are explored: who has come stands before who goes on. */
static void touch(emu_warp *w, const emu_barrier *b, emu_touch t)
{
	bool of_cluster = b == &w->cluster->barrier;

	t.object = emu_object(w->cluster, of_cluster ? 0 : w->cta->rank, of_cluster ? OBJECT_CLUSTER : OBJECT_BARRIER,
	                      of_cluster ? 0 : (uint64_t)(b - w->cta->barrier));
	emu_touched(w->cluster, w->grid, t);
}

static enum emu_step arrive(emu_warp *w, const emu_op *op, emu_barrier *b, uint32_t expected, uint32_t mask)
{
	uint32_t n = (uint32_t)__builtin_popcount(mask), live = emu_live(w);

	/* A number of threads is one of whole warps: lanes that there never were come with the first that is left. */
	if (expected)
		n = op->converge ? WARP : n + (mask & live & -live ? WARP - (uint32_t)__builtin_popcount(w->lanes) : 0);

	if (b->arrived && b->expected != expected)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_BARRIER,
		                "it names %u threads, but those who came to barrier %u before named %u", expected,
		                (unsigned)(b - w->cta->barrier), b->expected);
	b->expected = expected;
	b->arrived += n;
	touch(w, b,
	      (emu_touch){ .kind = TOUCH_COME,
	                   .phase = b->generation,
	                   .completes = expected && b->arrived == expected,
	                   .count = expected });
	if (expected && b->arrived > expected)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_BARRIER, "%u threads have come to barrier %u, which waits for %u",
		                b->arrived, (unsigned)(b - w->cta->barrier), expected);
	const emu_arg *c = emu_named(op, "c");
	if (c->kind == ARG_REG) {
		b->count += (uint32_t)__builtin_popcount(emu_pred(w, c) & mask);
		b->voted += (uint32_t)__builtin_popcount(mask);
	}
	clock_release_by(w, mask, &b->clock);
	w->cluster->progress++;
	return STEP_NEXT;
}

static void pass(emu_warp *w, const emu_op *op, emu_barrier *b, uint32_t mask)
{
	const emu_arg *d = &op->arg[0];

	touch(w, b, (emu_touch){ .kind = TOUCH_GO, .phase = w->g->generation, .seen = b->generation - UINT32_C(1) });
	clock_acquire_by(w, mask, &b->passed);
	if (op->imm[0] & POPC)
		LANES(l, mask, emu_put(w, d->slot, 32, l, b->popc));
	else if (op->imm[0] & (AND | OR))
		emu_set_pred(w, d->slot, mask, (op->imm[0] & AND ? b->all : b->any) ? ALL_LANES : 0);
	if (d->kind == ARG_REG)
		emu_define(w, d->slot, mask, ALL_LANES);
}

static bool barrier_number(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t *n, uint32_t *expected)
{
	const emu_arg *b = emu_named(op, "b");
	unsigned l = (unsigned)__builtin_ctz(mask);

	*n = (uint32_t)emu_get(w, &op->arg[1], l);
	*expected = b->kind == ARG_REG ? (uint32_t)emu_get(w, b, l) : 0;
	if (*n >= ARRAY_LEN(w->cta->barrier))
		emu_find(w, op, (int)l, CPTX_FIND_BARRIER, "barrier %u; there are 0 to 15", *n);
	else if (*expected % WARP)
		emu_find(w, op, (int)l, CPTX_FIND_BARRIER, "%u threads; it must be a multiple of 32", *expected);
	else
		return true;
	return false;
}

static enum emu_step bar(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t n, expected;

	if (!barrier_number(w, op, mask, &n, &expected))
		return STEP_FAULT;
	emu_barrier *b = &w->cta->barrier[n];
	if (!w->g->arrived) {
		uint32_t generation = b->generation;
		if (arrive(w, op, b, expected, mask) != STEP_NEXT)
			return STEP_FAULT;
		bool last = whole(b, w->cta), waits = op->imm[0] & WAITING;
		if (waits) {
			w->g->arrived = 1;
			w->g->generation = generation;
		}
		if (waits && last && w->grid->explorer) /* to come and to go on are events of their own */
			emu_group_block(w, op, "barrier", n, generation);
		if (last)
			complete(w->cluster, b);
		if (!waits)
			return STEP_NEXT;
		if (last && w->grid->explorer)
			return STEP_WAIT;
	}
	if (b->generation == w->g->generation)
		return emu_group_block(w, op, "barrier", n, w->g->generation);
	w->g->arrived = 0;
	pass(w, op, b, mask);
	return STEP_NEXT;
}

bool decode_bar(emu_decoder *d, emu_op *op)
{
	(void)d;
	bool old = op->opcode == CPTX_OP_BAR_SYNC || op->opcode == CPTX_OP_BAR_ARRIVE || op->opcode == CPTX_OP_BAR_RED ||
	           op->opcode == CPTX_OP_BAR_RED_POPC;

	op->imm[0] = op->opcode == CPTX_OP_BAR_ARRIVE || op->opcode == CPTX_OP_BARRIER_ARRIVE ? 0 : WAITING;
	if (op->opcode == CPTX_OP_BAR_RED_POPC || op->opcode == CPTX_OP_BARRIER_RED_POPC)
		op->imm[0] |= POPC;
	if (op->opcode == CPTX_OP_BAR_RED || op->opcode == CPTX_OP_BARRIER_RED)
		op->imm[0] |= op->m.op == CPTX_AND ? AND : OR;
	op->converge = old || op->m.aligned;
	op->flags = OP_SPLITS | (emu_named(op, "b")->kind == ARG_REG ? OP_EVENT : 0);
	op->fn = bar;
	return true;
}

/* ---- barrier.cluster ---- */

static uint32_t cluster_threads(const emu_cluster *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->ncta; i++)
		n += threads_left(&c->cta[i]);
	return n;
}

static bool cluster_whole(const emu_cluster *c) { return c->barrier.arrived && c->barrier.arrived >= cluster_threads(c); }

static enum emu_step cluster_arrive(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_barrier *b = &w->cluster->barrier;

	if (w->at_cluster & mask)
		return emu_find(w, op, __builtin_ctz(w->at_cluster & mask), CPTX_FIND_BARRIER,
		                "the thread has arrived already; barrier.cluster.wait must come between two arrivals");
	touch(w, b, (emu_touch){ .kind = TOUCH_COME, .phase = b->generation });
	w->at_cluster |= mask;
	EACH_LANE(l, mask)
		w->cluster_generation[l] = b->generation;
	b->arrived += (uint32_t)__builtin_popcount(mask);
	if (op->m.sem != CPTX_RELAXED)
		clock_release_by(w, mask, &b->clock);
	else
		clock_release_relaxed(w, &b->clock);
	clock_release_by(w, mask, &b->over);
	w->cluster->progress++;
	if (cluster_whole(w->cluster))
		complete(w->cluster, b);
	return STEP_NEXT;
}

static enum emu_step cluster_wait(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_barrier *b = &w->cluster->barrier;

	if (mask & ~w->at_cluster)
		return emu_find(w, op, __builtin_ctz(mask & ~w->at_cluster), CPTX_FIND_BARRIER,
		                "the thread waits without having arrived; barrier.cluster.arrive comes first");
	EACH_LANE(l, mask)
		if (w->cluster_generation[l] == b->generation)
			return emu_group_block(w, op, "cluster barrier", 0, b->generation);
	touch(w, b, (emu_touch){ .kind = TOUCH_GO, .phase = w->cluster_generation[__builtin_ctz(mask)] });
	w->at_cluster &= ~mask;
	clock_acquire_by(w, mask, &b->passed);
	clock_over(w, &b->all_over);
	return STEP_NEXT;
}

bool decode_cluster_arrive(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->converge = op->m.aligned != 0;
	op->flags = OP_SPLITS;
	op->fn = cluster_arrive;
	return true;
}

bool decode_cluster_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->converge = op->m.aligned != 0;
	op->flags = OP_SPLITS | OP_EVENT;
	op->fn = cluster_wait;
	return true;
}

/* ---- threads that end ---- */

void emu_barrier_exit(emu_warp *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->cta->barrier); i++)
		touch(w, &w->cta->barrier[i],
		      (emu_touch){ .kind = TOUCH_COME, .phase = w->cta->barrier[i].generation, .count = TOUCH_EXITS });
	touch(w, &w->cluster->barrier,
	      (emu_touch){ .kind = TOUCH_COME, .phase = w->cluster->barrier.generation, .count = TOUCH_EXITS });
	for (size_t i = 0; i < ARRAY_LEN(w->cta->barrier); i++)
		if (!w->cta->barrier[i].expected && whole(&w->cta->barrier[i], w->cta))
			complete(w->cluster, &w->cta->barrier[i]);
	if (cluster_whole(w->cluster))
		complete(w->cluster, &w->cluster->barrier);
}

/* ---- reports ---- */

/* Whether a group of the warp waits there. */
static bool is_at(const emu_warp *w, const emu_waiting *x)
{
	for (unsigned k = 0; k < w->ngroup; k++) {
		const emu_waiting *its = &w->group[k].waiting;
		if (w->group[k].state == GROUP_WAIT && its->what && !strcmp(its->what, x->what) && its->where == x->where)
			return true;
	}
	return false;
}

/* ", without warps 2, 3": those that have not come, or have ended. */
static void put_warps(buf *b, const emu_cta *cta, const emu_waiting *x, bool ended)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < cta->nwarp; i++) {
		const emu_warp *w = &cta->warp[i];
		if (ended ? emu_live(w) != 0 : !emu_live(w) || is_at(w, x))
			continue;
		buf_printf(b, n++ ? ", %u" : ended ? "; ended are warps %u" : "; not there are warps %u", i);
	}
}

void emu_describe_wait(buf *b, const emu_warp *w, const emu_waiting *x)
{
	if (!strcmp(x->what, "barrier")) {
		const emu_barrier *bar = &w->cta->barrier[x->where];
		buf_printf(b, " waits at barrier %u, where %u of %u threads are", x->where, bar->arrived,
		           bar->expected ? bar->expected : threads_left(w->cta));
		put_warps(b, w->cta, x, false);
		if (bar->expected)
			put_warps(b, w->cta, x, true);
	} else if (!strcmp(x->what, "cluster barrier")) {
		const emu_cluster *c = w->cluster;
		buf_printf(b, " waits at the barrier of the cluster, where %u of %u threads have arrived", c->barrier.arrived,
		           cluster_threads(c));
		for (uint32_t i = 0; i < c->ncta; i++)
			for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
				if (emu_live(&c->cta[i].warp[j]) & ~c->cta[i].warp[j].at_cluster)
					buf_printf(b, ", not warp %u of CTA %u", j, i);
	} else if (!strcmp(x->what, "mbarrier")) {
		mbarrier_describe(b, w, x);
	} else {
		buf_printf(b, " waits for %s", x->what);
		if (x->where)
			buf_printf(b, ": %u more, of which there are %u", x->where, w->cta->free_registers);
	}
}
