/* SPDX-License-Identifier: MIT */
/* A warp: groups of lanes at the same place, which part at branches and come together again where they meet. */
#include "emu/core/warp.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/undefined.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

enum { FRAME_LIMIT = 4096 /* calls in one another */ };
enum { PATIENCE = 256 /* choices of groups before the one that was chosen last goes behind the others */ };
enum { SCATTER = 2 /* one in so many events parts lanes, */, SCATTERED = 4 /* while the warp has fewer groups */ };

/* ---- frames ---- */

static uint64_t sreg_of_lane(const emu_warp *w, unsigned id, unsigned lane);

static void fill_frame(emu_warp *w, emu_frame *f)
{
	const emu_function *fn = f->f;
	uint32_t base = SHARED_FIRST + (w->cta->rank << SHARED_RANK);

	for (size_t i = 0; i < fn->nfill; i++) {
		const emu_fill *x = &fn->fill[i];
		uint32_t *r = f->r + x->slot;
		r[-2] = ALL_LANES;
		if (x->bits == 1)
			*r = 0;
		for (unsigned l = 0; l < WARP; l++) {
			uint64_t v = x->value;
			switch ((enum emu_fill_kind)x->kind) {
			case FILL_CONST: break;
			case FILL_SHARED: v += base; break;
			case FILL_DYNAMIC: v += base + fn->image->dyn_at; break;
			case FILL_LOCAL: v += f->local[l]; break;
			case FILL_SREG: v = sreg_of_lane(w, (unsigned)x->value, l); break;
			}
			if (x->bits == 1)
				*r |= (uint32_t)(v & 1) << l;
			else if (x->bits == 64)
				((uint64_t *)(void *)r)[l] = v;
			else
				r[l] = (uint32_t)v;
		}
	}
}

static bool grow_local(emu_warp *w, uint32_t need)
{
	uint32_t cap = (MAX(need, w->local_cap * 2) + 7) & ~7u, old = w->local_cap / 8;

	if (need <= w->local_cap)
		return true;
	size_t all = (size_t)WARP * cap;
	unsigned char *p = NEW_ARRAY(unsigned char, all);
	uint8_t *defined = p ? NEW_ARRAY(uint8_t, all / 8) : NULL;
	if (!defined) {
		free(p);
		return false;
	}
	for (unsigned l = 0; l < WARP && w->local; l++) {
		memcpy(p + (size_t)l * cap, w->local + (size_t)l * w->local_cap, w->local_cap);
		memcpy(defined + (size_t)l * (cap / 8), w->local_defined + (size_t)l * old, old);
	}
	free(w->local);
	free(w->local_defined);
	w->local = p;
	w->local_defined = defined;
	w->local_cap = cap;
	return true;
}

bool emu_local_fits(const emu_frame *f, uint64_t at, uint64_t size)
{
	uint64_t most = (uint64_t)EMU_LOCAL_LIMIT + f->gaps;

	return at <= most && size <= most - at;
}

bool emu_reserve_local(emu_warp *w, const emu_frame *f, uint64_t at, uint64_t size)
{
	return emu_local_fits(f, at, size) && grow_local(w, (uint32_t)(at + size));
}

void emu_fresh_local(emu_warp *w, unsigned lane, uint64_t at, uint64_t size)
{
	emu_place p = { .space = SPACE_LOCAL, .offset = at };

	if (!size) /* there may be no memory at all */
		return;
	p.defined = w->local_defined + (size_t)lane * (w->local_cap / 8);
	emu_set_defined(&p, (uint32_t)size, false);
}

/* Of callers, as much again as the limit at most, so that recursion takes no more than a few times as much. */
static uint32_t gaps_of(const emu_function *f, const emu_frame *caller)
{
	return f->local_bytes - f->local.bytes + (caller ? MIN(caller->gaps, (uint32_t)EMU_LOCAL_LIMIT) : 0);
}

bool emu_frame_fits(const emu_warp *w, const emu_function *f, const emu_frame *caller, uint32_t mask)
{
	const emu_frame next = { .gaps = gaps_of(f, caller) };
	bool ok = !caller || caller->depth + 1 < FRAME_LIMIT;

	EACH_LANE(l, mask)
		ok &= emu_local_fits(&next, (w->sp[l] + 15) & ~15u, f->local_bytes);
	return ok;
}

emu_frame *emu_frame_new(emu_warp *w, const emu_function *f, emu_frame *caller, uint32_t mask)
{
	size_t size = sizeof(emu_frame) + sizeof(emu_frame *) + 16 + f->words * sizeof(uint32_t) +
	              (size_t)WARP * (f->param_bytes + (f->param_bytes + 7) / 8);
	uint32_t depth = caller ? caller->depth + 1 : 0, need = 0;

	if (!emu_frame_fits(w, f, caller, mask))
		return NULL;
	emu_frame *n = NEW_SIZED(emu_frame, size);
	if (!n)
		return NULL;
	*n = (emu_frame){ .w = w, .caller = caller, .f = f, .depth = depth, .refs = 1, .gaps = gaps_of(f, caller) };
	n->r = (uint32_t *)(void *)(((uintptr_t)(n + 1) + sizeof n + 15) & ~(uintptr_t)15);
	((emu_frame **)(void *)n->r)[-1] = n;
	n->param = (unsigned char *)(n->r + f->words);
	n->param_defined = n->param + (size_t)WARP * f->param_bytes;
	if (caller)
		caller->refs++;
	for (unsigned l = 0; l < WARP; l++)
		n->local[l] = (w->sp[l] + 15) & ~15u;
	EACH_LANE(l, mask)
		need = MAX(need, n->local[l] + f->local_bytes);
	if (!grow_local(w, need)) {
		emu_frame_drop(w, n);
		return NULL;
	}
	EACH_LANE(l, mask)
		w->sp[l] = n->local[l] + f->local_bytes;
	EACH_LANE(l, f->local_bytes ? mask : 0)
		emu_fresh_local(w, l, n->local[l], f->local_bytes);
	fill_frame(w, n);
	return n;
}

void emu_frame_drop(emu_warp *w, emu_frame *f)
{
	while (f && !--f->refs) {
		emu_frame *caller = f->caller;
		emu_holes_free(f);
		free(f);
		f = caller;
	}
	(void)w;
}

/* ---- special registers that stay the same ---- */

static uint64_t sreg_of_lane(const emu_warp *w, unsigned id, unsigned lane)
{
	const emu_grid *g = w->grid;
	const emu_cta *cta = w->cta;
	const emu_cluster *c = w->cluster;
	uint32_t t = w->number * WARP + lane;

	switch (id) {
	case CPTX_SREG_TID_X: return t % g->block[0];
	case CPTX_SREG_TID_Y: return t / g->block[0] % g->block[1];
	case CPTX_SREG_TID_Z: return t / g->block[0] / g->block[1];
	case CPTX_SREG_NTID_X: return g->block[0];
	case CPTX_SREG_NTID_Y: return g->block[1];
	case CPTX_SREG_NTID_Z: return g->block[2];
	case CPTX_SREG_CTAID_X: return cta->id[0];
	case CPTX_SREG_CTAID_Y: return cta->id[1];
	case CPTX_SREG_CTAID_Z: return cta->id[2];
	case CPTX_SREG_NCTAID_X: return g->grid[0];
	case CPTX_SREG_NCTAID_Y: return g->grid[1];
	case CPTX_SREG_NCTAID_Z: return g->grid[2];
	case CPTX_SREG_LANEID: return lane;
	case CPTX_SREG_WARPID: return w->number;
	case CPTX_SREG_NWARPID: return EMU_MAX_WARPS;
	case CPTX_SREG_SMID: return c->number % g->machine->sms;
	case CPTX_SREG_NSMID: return g->machine->sms;
	case CPTX_SREG_GRIDID: return g->machine->launches;
	case CPTX_SREG_LANEMASK_EQ: return UINT32_C(1) << lane;
	case CPTX_SREG_LANEMASK_LT: return (UINT32_C(1) << lane) - 1;
	case CPTX_SREG_LANEMASK_LE: return (UINT64_C(2) << lane) - 1;
	case CPTX_SREG_LANEMASK_GE: return (uint32_t) - (UINT32_C(1) << lane);
	case CPTX_SREG_LANEMASK_GT: return (uint32_t) - (UINT64_C(2) << lane);
	case CPTX_SREG_DYNAMIC_SMEM_SIZE: return g->dyn_smem;
	case CPTX_SREG_TOTAL_SMEM_SIZE:
	case CPTX_SREG_AGGR_SMEM_SIZE: return g->shared_bytes - g->image->shared.gaps + SHARED_FIRST;
	case CPTX_SREG_RESERVED_SMEM_OFFSET_END:
	case CPTX_SREG_RESERVED_SMEM_OFFSET_CAP: return SHARED_FIRST;
	case CPTX_SREG_CLUSTERID_X: return c->id[0];
	case CPTX_SREG_CLUSTERID_Y: return c->id[1];
	case CPTX_SREG_CLUSTERID_Z: return c->id[2];
	case CPTX_SREG_NCLUSTERID_X: return g->grid[0] / g->cluster[0];
	case CPTX_SREG_NCLUSTERID_Y: return g->grid[1] / g->cluster[1];
	case CPTX_SREG_NCLUSTERID_Z: return g->grid[2] / g->cluster[2];
	case CPTX_SREG_CLUSTER_CTAID_X: return cta->id[0] % g->cluster[0];
	case CPTX_SREG_CLUSTER_CTAID_Y: return cta->id[1] % g->cluster[1];
	case CPTX_SREG_CLUSTER_CTAID_Z: return cta->id[2] % g->cluster[2];
	case CPTX_SREG_CLUSTER_NCTAID_X: return g->cluster[0];
	case CPTX_SREG_CLUSTER_NCTAID_Y: return g->cluster[1];
	case CPTX_SREG_CLUSTER_NCTAID_Z: return g->cluster[2];
	case CPTX_SREG_CLUSTER_CTARANK: return cta->rank;
	case CPTX_SREG_CLUSTER_NCTARANK: return g->ctas_per_cluster;
	case CPTX_SREG_IS_EXPLICIT_CLUSTER: return g->explicit_cluster;
	case CPTX_SREG_ENVREG1: return g->workspace >> 32;
	case CPTX_SREG_ENVREG2: return (uint32_t)g->workspace;
	default: return 0; /* the fourth coordinates, performance counters, other %envreg */
	}
}

/* ---- groups ---- */

static void remove_group(emu_warp *w, emu_group *g)
{
	emu_frame_drop(w, g->frame);
	*g = w->group[--w->ngroup];
}

emu_group *emu_group_split(emu_warp *w, uint32_t mask)
{
	emu_group *n = &w->group[w->ngroup++];

	*n = *w->g;
	n->mask = mask;
	n->state = GROUP_RUN;
	n->frame->refs++;
	w->g->mask &= ~mask;
	return n;
}

void emu_group_end(emu_warp *w)
{
	w->exited |= w->g->mask;
	w->g->mask = 0;                          /* collected by the loop below */
	for (unsigned i = 0; i < w->ngroup; i++) /* they may have waited for no other lanes */
		if (w->group[i].state == GROUP_CONVERGE)
			w->group[i].state = GROUP_RUN;
	w->cluster->progress++;
	w->cluster->changes++;
}

enum emu_step emu_group_block(emu_warp *w, const emu_op *op, const char *what, uint32_t where, uint32_t phase)
{
	w->g->state = GROUP_WAIT;
	w->g->waiting = (emu_waiting){ .op = op, .what = what, .where = where, .phase = phase };
	return STEP_WAIT;
}

void emu_wake(emu_cluster *c)
{
	c->progress++;
	c->changes++;
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
			for (unsigned k = 0; k < c->cta[i].warp[j].ngroup; k++)
				if (c->cta[i].warp[j].group[k].state == GROUP_WAIT)
					c->cta[i].warp[j].group[k].state = GROUP_RUN;
}

/* Groups that wait to execute the same instruction become one. */
static void merge_groups(emu_warp *w)
{
	for (unsigned i = 0; i < w->ngroup; i++)
		for (unsigned j = i + 1; j < w->ngroup;) {
			emu_group *a = &w->group[i], *b = &w->group[j];
			if (a->pc != b->pc || a->frame != b->frame || a->state == GROUP_WAIT || b->state == GROUP_WAIT) {
				j++;
				continue;
			}
			a->mask |= b->mask;
			a->state = GROUP_RUN;
			a->order = MAX(a->order, b->order);
			a->polled = a->polled && b->polled;
			a->progress = MIN(a->progress, b->progress);
			remove_group(w, b);
		}
}

static bool ready(const emu_warp *w, const emu_group *g)
{
	if (g->state == GROUP_CONVERGE)
		return !(g->need & emu_live(w) & ~g->mask);
	return g->state == GROUP_RUN && !(g->polled && g->progress == w->cluster->progress);
}

enum emu_step emu_group_converge(emu_warp *w, const emu_op *op, uint32_t need)
{
	w->g->state = GROUP_CONVERGE;
	w->g->need = need;
	w->g->waiting = (emu_waiting){ .op = op, .what = "lanes of its warp", .where = need & ~w->g->mask };
	return STEP_WAIT;
}

bool emu_warp_can_run(const emu_warp *w)
{
	for (unsigned i = 0; i < w->ngroup; i++)
		if (ready(w, &w->group[i]))
			return true;
	return false;
}

/* The deepest call, then the place that comes first in the text: there groups meet again soonest.  Who yielded goes last. */
static emu_group *choose_group(emu_warp *w)
{
	emu_group *best = NULL;

	for (unsigned i = 0; i < w->ngroup; i++) {
		emu_group *g = &w->group[i];
		if (!ready(w, g))
			continue;
		if (!best || g->order < best->order ||
		    (g->order == best->order &&
		     (g->frame->depth > best->frame->depth || (g->frame->depth == best->frame->depth && g->pc < best->pc))))
			best = g;
	}
	return best;
}

/* ---- running ---- */

static uint32_t guard_mask(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t p = w->r[op->guard];

	if (!emu_need(w, op, op->guard, mask, "the predicate"))
		return 0;
	return mask & (op->negated ? ~p : p);
}

static void define_results(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t defined = ALL_LANES;

	for (unsigned i = 0; i < op->nuse; i++)
		defined &= *emu_defined(w, op->regs[op->ndef + i]);
	if (mask & ~defined)
		emu_trace_undefined(w, op, mask & ~defined);
	for (unsigned i = 0; i < op->ndef; i++)
		emu_define(w, op->regs[i], mask & defined, ALL_LANES);
}

/* The lanes that do not execute an instruction that may block go on without the others. */
static void part(emu_warp *w, uint32_t mask)
{
	unsigned g = (unsigned)(w->g - w->group);
	emu_group *rest = emu_group_split(w, w->g->mask & ~mask);

	rest->pc++;
	w->g = &w->group[g];
}

static void count(emu_warp *w, const emu_op *op, uint32_t mask)
{
	w->cluster->step++;
	w->cluster->hits[op->index] += mask == ALL_LANES ? WARP : (unsigned)__builtin_popcount(mask);
}

/* Executes the next instruction of the group that runs. */
static enum emu_step step(emu_warp *w)
{
	const emu_op *op = &w->g->frame->f->code[w->g->pc];
	uint32_t mask = w->g->mask;

	if (op->guard) {
		mask = guard_mask(w, op, mask);
		if (w->cluster->failed)
			return STEP_FAULT;
		if (!mask) {
			count(w, op, 0);
			w->g->pc++;
			return STEP_NEXT;
		}
	}
	if (op->flags & OP_SPLITS && mask != w->g->mask)
		part(w, mask);
	if (op->converge && w->g->mask != emu_live(w))
		return emu_group_converge(w, op, ALL_LANES);
	if (op->flags & OP_PURE)
		define_results(w, op, mask);
	enum emu_step s = op->fn(w, op, mask);
	if (s == STEP_NEXT || s == STEP_YIELD) {
		w->g->pc++;
		count(w, op, mask);
		w->cluster->changes += !(op->flags & (OP_PURE | OP_QUIET));
	} else if (s == STEP_JUMP) {
		count(w, op, mask);
	}
	return s;
}

/*
 * Some lanes of a group, or all, fall behind the other lanes of the warp in front of an event, where the schedule wants it:
 * a GPU owes lanes no common pace between the instructions that bring them together.  They go on when the others wait, end,
 * or have gone far ahead.  False: all have.
 */
static bool scatter(emu_warp *w)
{
	emu_cluster *c = w->cluster;
	const emu_op *op = &w->g->frame->f->code[w->g->pc];
	uint32_t behind = 0, mask = w->g->mask;

	if (!(op->flags & OP_EVENT) || op->flags & OP_SPLITS || op->converge)
		return true;
	switch (emu_random(c, 4 * SCATTER)) {
	case 0: behind = ALL_LANES << emu_random(c, WARP); break;
	case 1: behind = ~(ALL_LANES << emu_random(c, WARP)); break;
	case 2: behind = UINT32_C(1) << emu_random(c, WARP); break;
	case 3: behind = emu_random(c, UINT32_MAX); break;
	default: return true;
	}
	behind &= mask;
	if (behind == mask) {
		w->g->order = ++w->order;
		return w->ngroup == 1;
	}
	if (behind && w->ngroup < SCATTERED)
		emu_group_split(w, behind)->order = ++w->order;
	return true;
}

static void after_jump(emu_warp *w)
{
	for (unsigned i = 0; i < w->ngroup;)
		if (w->group[i].mask)
			i++;
		else
			remove_group(w, &w->group[i]);
}

/* Whether another group of the warp may have to go first, or stands where this one has come to. */
static bool meets(const emu_warp *w)
{
	for (unsigned i = 0; i < w->ngroup; i++) {
		const emu_group *g = &w->group[i];
		if (g != w->g && g->state != GROUP_WAIT && (g->pc <= w->g->pc || g->frame != w->g->frame))
			return true;
	}
	return false;
}

/* Runs one group until something other than its next instruction has to be decided. */
static enum emu_step run_group(emu_warp *w, uint32_t *n)
{
	enum emu_step s = STEP_NEXT;

	w->r = w->g->frame->r;
	w->chosen++;
	w->g->polled = 0;
	w->g->state = GROUP_RUN;
	while (*n && s == STEP_NEXT) {
		--*n;
		if (w->cluster->parts && !scatter(w))
			break;
		s = step(w);
		if (s == STEP_NEXT && w->ngroup > 1 && meets(w))
			break;
	}
	if (s == STEP_YIELD) {
		w->g->polled = 1;
		w->g->progress = w->cluster->progress;
		w->g->order = ++w->order;
	} else if (w->ngroup > 1 && s <= STEP_JUMP && w->g->mask && ++w->streak > PATIENCE) {
		w->streak = 0;
		w->g->order = ++w->order;
	}
	return s;
}

enum emu_stop emu_warp_run(emu_warp *w, uint32_t n)
{
	while (n) {
		if (w->ngroup > 1)
			merge_groups(w);
		w->g = w->ngroup ? choose_group(w) : NULL;
		if (!w->g)
			return w->ngroup ? STOP_STUCK : STOP_DONE;
		enum emu_step s = run_group(w, &n);
		if (s == STEP_FAULT || w->cluster->failed)
			return STOP_FAULT;
		if (s == STEP_TURN)
			return STOP_TURN;
		if (s == STEP_JUMP)
			after_jump(w);
		if (s == STEP_YIELD)
			return STOP_QUANTUM;
	}
	return STOP_QUANTUM;
}

const emu_op *emu_warp_next(emu_warp *w)
{
	if (w->ngroup > 1)
		merge_groups(w);
	const emu_group *g = w->ngroup ? choose_group(w) : NULL;
	return g ? &g->frame->f->code[g->pc] : NULL;
}

void emu_warp_poll(emu_warp *w)
{
	emu_group *g = choose_group(w);

	if (!g)
		return;
	g->polled = 1;
	g->progress = w->cluster->progress;
	g->order = ++w->order;
}

void emu_warp_start(emu_warp *w)
{
	w->ngroup = 1;
	w->group[0] = (emu_group){ .mask = w->lanes };
	w->group[0].frame = emu_frame_new(w, w->grid->entry, NULL, w->lanes);
	if (!w->group[0].frame) {
		w->ngroup = 0;
		emu_find(w, NULL, EMU_ALL, CPTX_FIND_MEMORY, "no memory of the host for the registers and local memory of a warp");
	}
}
