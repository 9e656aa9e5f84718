/* SPDX-License-Identifier: MIT */
/* Instructions of mbarriers. */
#include "emu/async/mbarrier.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

enum { ARG_A = 1, ARG_B /* count, bytes, state, parity */ };
enum { DROP = 1 /* imm[0] of arrivals */, NO_COMPLETE = 2, EXPECT = 4, PARITY = 1 /* of waits */ };

/* Addresses, and a number if it is there. */
static void need_operands(emu_warp *w, const emu_op *op, uint32_t mask, const char *what)
{
	const emu_arg *a = &op->arg[ARG_A], *b = &op->arg[ARG_B];

	emu_need_arg(w, op, a, mask, "the address");
	if (what && b->kind == ARG_REG)
		emu_need(w, op, b->slot, mask, what);
}

static mbarrier_by thread(emu_warp *w, const emu_op *op, unsigned lane)
{
	return (mbarrier_by){ .w = w, .op = op, .lane = lane };
}

static emu_mbarrier *operand(emu_warp *w, const emu_op *op, unsigned lane, emu_cta **cta)
{
	const emu_arg *a = &op->arg[ARG_A];

	return mbarrier_for_thread(w, op, lane, a->space, emu_address(w, a, lane), cta);
}

/* ---- init, inval ---- */

static bool init_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const emu_arg *a = &op->arg[ARG_A];
	emu_place p;

	if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), 8, 8, &p))
		return false;
	if (p.cta != w->cta)
		return emu_find(w, op, (int)lane, CPTX_FIND_MBARRIER, "the address is not in shared memory of the thread's own CTA"),
		       false;
	race_access(w, op, lane, &p, 8, ACCESS_WRITE);
	return mbarrier_init(&p, (uint32_t)emu_get(w, &op->arg[ARG_B], lane), op->imm[0], thread(w, op, lane));
}

static enum emu_step init(emu_warp *w, const emu_op *op, uint32_t mask)
{
	need_operands(w, op, mask, "the number of arrivals");
	EACH_LANE(l, mask)
		if (!init_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_mbarrier_init(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_modifier(op, "layout") == CPTX_LAYOUT_V1;
	op->flags = OP_EVENT;
	op->fn = init;
	return true;
}

static enum emu_step inval(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_cta *cta;

	need_operands(w, op, mask, NULL);
	EACH_LANE(l, mask) {
		emu_mbarrier *b = operand(w, op, l, &cta);
		if (!b)
			return STEP_FAULT;
		emu_place p = { .p = cta->shared + b->offset, .space = SPACE_SHARED, .cta = cta, .offset = b->offset };
		race_access(w, op, l, &p, 8, ACCESS_WRITE);
		mbarrier_inval(cta, b, thread(w, op, l));
	}
	return STEP_NEXT;
}

bool decode_mbarrier_inval(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_EVENT;
	op->fn = inval;
	return true;
}

/* ---- arrivals ---- */

/* Lanes of the mask that name the same address as this one. */
static uint32_t same_address(const emu_warp *w, const emu_op *op, unsigned lane, uint32_t mask)
{
	uint64_t addr = emu_address(w, &op->arg[ARG_A], lane);
	uint32_t same = 0;

	EACH_LANE(l, mask)
		same |= (uint32_t)(emu_address(w, &op->arg[ARG_A], l) == addr) << l;
	return same;
}

/* What a lane says beside the address: a number of arrivals or of bytes. */
static uint32_t said_by(emu_warp *w, const emu_op *op, unsigned lane)
{
	const emu_arg *n = &op->arg[ARG_B];

	return n->kind == ARG_REG ? (uint32_t)emu_get(w, n, lane) : 1;
}

/* Of lanes that arrive one after the other, those that do before the phase is complete. */
static uint32_t of_this_phase(emu_warp *w, const emu_op *op, uint32_t lanes, uint32_t pending)
{
	uint32_t in = 0;

	EACH_LANE(l, pending ? lanes : 0) {
		in |= UINT32_C(1) << l;
		uint32_t count = op->imm[0] & EXPECT ? 1 : said_by(w, op, l);
		if (count >= pending)
			break;
		pending -= count;
	}
	return in;
}

static bool arrive_lane(emu_warp *w, const emu_op *op, unsigned lane, uint32_t left, uint32_t *released)
{
	const emu_arg *d = &op->arg[0];
	uint32_t number = said_by(w, op, lane), count = op->imm[0] & EXPECT ? 1 : number;
	mbarrier_by by = thread(w, op, lane);
	emu_cta *cta;
	emu_mbarrier *b = operand(w, op, lane, &cta);

	if (!b || (op->imm[0] & EXPECT && !mbarrier_expect_tx(cta, b, number, by)))
		return false;
	uint64_t state = mbarrier_state(b), phase = b->phase;
	if (op->imm[0] & NO_COMPLETE && count == b->pending)
		return emu_find(w, op, (int)lane, CPTX_FIND_MBARRIER,
		                "it would complete phase %llu, which .noComplete must not: %u arrivals are pending",
		                (unsigned long long)phase, b->pending),
		       false;
	if (op->imm[0] & DROP && !mbarrier_drop(cta, b, count, by))
		return false;
	if (op->m.sem != CPTX_RELAXED)
		mbarrier_used(cta, b, w, lane);
	if (!(*released >> lane & 1)) {
		uint32_t same = of_this_phase(w, op, same_address(w, op, lane, left), b->pending);
		race_give_back(w);
		if (op->m.sem != CPTX_RELAXED)
			clock_release_by(w, same, &b->clock);
		else
			clock_release_relaxed(w, &b->clock);
		*released |= same;
	}
	if (!mbarrier_arrive(cta, b->offset, count, by))
		return false;
	if (b->phase != phase) /* what is left is for the next one */
		*released = 0;
	if (d->kind == ARG_REG)
		emu_r64(w, d->slot)[lane] = state;
	return true;
}

static enum emu_step arrive(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t released = 0, left = mask;

	need_operands(w, op, mask, op->imm[0] & EXPECT ? "the number of bytes" : "the number of arrivals");
	EACH_LANE(l, mask) {
		if (!arrive_lane(w, op, l, left, &released))
			return STEP_FAULT;
		left &= left - 1;
	}
	if (op->arg[0].kind == ARG_REG)
		emu_define(w, op->arg[0].slot, mask, ALL_LANES);
	return STEP_NEXT;
}

bool decode_mbarrier_arrive(emu_decoder *d, emu_op *op)
{
	(void)d;
	switch (op->opcode) {
	case CPTX_OP_MBARRIER_ARRIVE_NOCOMPLETE: op->imm[0] = NO_COMPLETE; break;
	case CPTX_OP_MBARRIER_ARRIVE_EXPECT_TX: op->imm[0] = EXPECT; break;
	case CPTX_OP_MBARRIER_ARRIVE_DROP: op->imm[0] = DROP; break;
	case CPTX_OP_MBARRIER_ARRIVE_DROP_NOCOMPLETE: op->imm[0] = DROP | NO_COMPLETE; break;
	case CPTX_OP_MBARRIER_ARRIVE_DROP_EXPECT_TX: op->imm[0] = DROP | EXPECT; break;
	default: break;
	}
	op->flags = OP_EVENT;
	op->fn = arrive;
	return true;
}

/* ---- bytes ---- */

static enum emu_step change_tx(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_cta *cta;

	need_operands(w, op, mask, "the number of bytes");
	EACH_LANE(l, mask) {
		emu_mbarrier *b = operand(w, op, l, &cta);
		uint32_t bytes = (uint32_t)emu_get(w, &op->arg[ARG_B], l);
		if (!b)
			return STEP_FAULT;
		if (op->opcode == CPTX_OP_MBARRIER_EXPECT_TX ? !mbarrier_expect_tx(cta, b, bytes, thread(w, op, l))
		                                             : !mbarrier_complete_tx(cta, b->offset, bytes, thread(w, op, l)))
			return STEP_FAULT;
	}
	return STEP_NEXT;
}

bool decode_mbarrier_tx(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_EVENT;
	op->fn = change_tx;
	return true;
}

/* ---- waits ---- */

/* The mbarrier that a lane names, NULL if it may not wait for that. */
static emu_mbarrier *wait_for(emu_warp *w, const emu_op *op, unsigned lane, emu_cta **cta)
{
	const emu_arg *a = &op->arg[ARG_A];
	uint64_t v = emu_get(w, &op->arg[ARG_B], lane);
	/* Where the space is the CTA's an address elsewhere in the cluster is told apart below. */
	unsigned space = a->space == SPACE_SHARED ? SPACE_CLUSTER : a->space;
	emu_mbarrier *b = mbarrier_for_thread(w, op, lane, space, emu_address(w, a, lane), cta);

	if (!b)
		return NULL;
	if (*cta == w->cta && (v <= 1 || !(op->imm[0] & PARITY)))
		return b;
	if (*cta != w->cta)
		emu_find(w, op, (int)lane, CPTX_FIND_MBARRIER,
		         "the mbarrier is in CTA %u of the cluster; a thread can wait only for those of its own CTA, %u",
		         (*cta)->rank, w->cta->rank);
	else
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "parity %llu; it is 0 or 1", (unsigned long long)v);
	return NULL;
}

static bool has_passed(emu_warp *w, const emu_op *op, unsigned lane, emu_cta *cta, emu_mbarrier *b, bool *done)
{
	uint64_t v = emu_get(w, &op->arg[ARG_B], lane);
	mbarrier_by by = thread(w, op, lane);

	if (op->imm[0] & PARITY ? !mbarrier_passed(cta, b, (uint32_t)v, by, done) : !mbarrier_state_passed(cta, b, v, by, done))
		return false;
	if (!*done)
		w->g->waiting = (emu_waiting){ .op = op,
			                           .what = "mbarrier",
			                           .where = (cta->rank << SHARED_RANK) + SHARED_FIRST + b->offset,
			                           .phase = (uint32_t)b->phase };
	return true;
}

/* No failure is ever reported here: that is for fabric instructions. */
static void put_report(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *q = &op->arg[op->imm[1]], *d = &op->arg[op->imm[2]];

	if (op->imm[1] && q->kind == ARG_REG) {
		emu_set_pred(w, q->slot, mask, 0);
		emu_define(w, q->slot, mask, ALL_LANES);
	}
	if (op->imm[2] && d->kind == ARG_REG) {
		LANES(l, mask, emu_put(w, d->slot, d->bits, l, 0));
		emu_define(w, d->slot, mask, ALL_LANES);
	}
}

static bool is_once(const emu_op *op)
{
	return op->opcode == CPTX_OP_MBARRIER_TEST_WAIT || op->opcode == CPTX_OP_MBARRIER_TEST_WAIT_PARITY;
}

/* For the orders that are explored: a wait that fails is in none, unless the thread need not try again. */
static void note_waits(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t passed, emu_cta *const cta[WARP],
                       emu_mbarrier *const b[WARP])
{
	EACH_LANE(l, w->grid->explorer ? mask : 0)
		emu_touched(w->cluster, w->grid,
		            (emu_touch){ .object = emu_object(w->cluster, cta[l]->rank, OBJECT_MBARRIER, b[l]->offset),
		                         .kind = passed >> l & 1 ? TOUCH_PASS : TOUCH_FAIL,
		                         .phase = b[l]->phase,
		                         .once = is_once(op) });
}

/* No lane learns anything before all have been looked at: what one acquires does not order the wait of another. */
static enum emu_step wait(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t passed = 0, left;
	emu_mbarrier *b[WARP];
	emu_cta *cta[WARP];

	need_operands(w, op, mask, op->imm[0] & PARITY ? "the parity" : "the state");
	EACH_LANE(l, mask) {
		if (!(b[l] = wait_for(w, op, l, &cta[l])))
			return STEP_FAULT;
	}
	EACH_LANE(l, mask) {
		bool done;
		if (!has_passed(w, op, l, cta[l], b[l], &done))
			return STEP_FAULT;
		passed |= (uint32_t)done << l;
	}
	EACH_LANE(l, passed)
		mbarrier_used(cta[l], b[l], w, l);
	note_waits(w, op, mask, passed, cta, b);
	for (left = passed; left;) {
		unsigned l = (unsigned)__builtin_ctz(left);
		uint32_t same = same_address(w, op, l, left);
		if (op->m.sem != CPTX_RELAXED)
			clock_acquire_by(w, same, &b[l]->passed);
		else
			clock_acquire_relaxed(w, &b[l]->passed);
		left &= ~same;
	}
	emu_set_pred(w, op->arg[0].slot, mask, passed);
	emu_define(w, op->arg[0].slot, mask, ALL_LANES);
	put_report(w, op, mask);
	if (passed == mask)
		w->g->waiting = (emu_waiting){ 0 };
	/* Where orders are explored, who need not try again goes on at any time. */
	return passed || (w->grid->explorer && is_once(op)) ? STEP_NEXT : STEP_YIELD;
}

static int64_t number_of(const emu_op *op, const char *slot)
{
	const emu_arg *a = emu_named(op, slot);

	return a->kind == ARG_REG ? a - op->arg : 0;
}

bool decode_mbarrier_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	bool parity = op->opcode == CPTX_OP_MBARRIER_TEST_WAIT_PARITY || op->opcode == CPTX_OP_MBARRIER_TRY_WAIT_PARITY;

	op->imm[0] = parity ? PARITY : 0;
	op->imm[1] = number_of(op, "q");
	op->imm[2] = number_of(op, "d");
	op->flags = OP_QUIET | OP_EVENT;
	op->fn = wait;
	return true;
}

/* ---- pending_count, check_layout ---- */

static enum emu_step pending_count(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t *d = emu_reg32(w, op, 0);
	const uint64_t *state = emu_reg64(w, op, 1);

	LANES(l, mask, d[l] = (uint32_t)state[l]);
	return STEP_NEXT;
}

bool decode_mbarrier_pending_count(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->fn = pending_count;
	return true;
}

static enum emu_step check_layout(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t same = 0;
	emu_cta *cta;

	need_operands(w, op, mask, NULL);
	EACH_LANE(l, mask) {
		const emu_mbarrier *b = operand(w, op, l, &cta);
		if (!b)
			return STEP_FAULT;
		same |= (uint32_t)(b->v1 == op->imm[0]) << l;
	}
	emu_set_pred(w, op->arg[0].slot, mask, same);
	emu_define(w, op->arg[0].slot, mask, ALL_LANES);
	return STEP_NEXT;
}

bool decode_mbarrier_check_layout(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_modifier(op, "layout") == CPTX_LAYOUT_V1;
	op->flags = OP_EVENT;
	op->fn = check_layout;
	return true;
}
