/* SPDX-License-Identifier: MIT */
/* Clusters that have not begun: clusterlaunchcontrol.  Registers of warps: setmaxnreg. */
#include "emu/async/mbarrier.h"
#include "emu/core/finding.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

/* ---- clusterlaunchcontrol ---- */

/* The answer: 16 bytes of which the program knows nothing. */
typedef struct answer {
	uint32_t id[3]; /* of the first CTA */
	uint32_t canceled;
} answer;

enum { ARG_A = 1, ARG_MBAR, ANSWER = 16 };

typedef struct request {
	emu_async a;
	answer is;
	uint32_t at, mbar;   /* offsets */
	uint32_t first, end; /* ranks of CTAs that get it, from those that have not */
	uint32_t late[EMU_MAX_CTAS];
} request;

static bool give_answer(emu_cluster *c, emu_async *a)
{
	request *x = (request *)a;
	emu_cta *cta = &c->cta[x->first];
	emu_place p = { .p = cta->shared + x->at, .space = SPACE_CLUSTER, .cta = cta, .offset = x->at };

	memcpy(p.p, &x->is, ANSWER);
	emu_set_defined(&p, ANSWER, true);
	return !mbarrier_complete_tx(cta, x->mbar, ANSWER, mbarrier_by_async(a, x->late[x->first])) || ++x->first >= x->end;
}

/* Where the CTA gets its answer, and the mbarrier that counts it. */
static bool claim(emu_warp *w, const emu_op *op, unsigned lane, request *x, uint32_t rank)
{
	const emu_arg *a = &op->arg[ARG_A], *mbar = &op->arg[ARG_MBAR];
	uint64_t base = ((uint64_t)rank << SHARED_RANK) + SHARED_FIRST;
	emu_cta *cta;
	emu_place p;

	if (rank == w->cta->rank) {
		if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), ANSWER, ANSWER, &p))
			return false;
		emu_mbarrier *b = mbarrier_for_async(w, op, lane, mbar->space, emu_address(w, mbar, lane), &cta);
		if (!b)
			return false;
		if (p.cta != w->cta || cta != w->cta)
			return emu_find(w, op, (int)lane, CPTX_FIND_OPERAND,
			                "both addresses must be in shared memory of the thread's own CTA"),
			       false;
		x->at = (uint32_t)p.offset;
		x->mbar = b->offset;
	} else if (!emu_resolve(w, op, lane, SPACE_CLUSTER, base + x->at, ANSWER, ANSWER, &p) ||
	           !mbarrier_for_async(w, op, lane, SPACE_CLUSTER, base + x->mbar, &cta)) {
		return false;
	}
	x->late[rank] = race_async_begin(w, op, lane);
	race_async_touch(w, x->late[rank], &p, ANSWER, ACCESS_WRITE | ACCESS_ASYNC | ACCESS_ANSWER);
	return true;
}

static bool request_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	request *x = NEW(request);
	emu_grid *g = w->grid;
	bool all = emu_modifier(op, "multicast") != 0;

	if (!x)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work"), false;
	x->first = all ? 0 : w->cta->rank;
	x->end = all ? w->cluster->ncta : w->cta->rank + 1;
	bool ok = claim(w, op, lane, x, w->cta->rank);
	for (uint32_t i = x->first; ok && i < x->end; i++)
		ok = i == w->cta->rank || claim(w, op, lane, x, i);
	if (!ok) {
		free(x);
		return false;
	}
	x->is.canceled = g->next < g->nclusters;
	if (x->is.canceled)
		emu_block_id(g, g->next++, 0, x->is.id);
	w->cluster->progress++; /* it does not wait for clusters that have not begun */
	x->a = (emu_async){ .run = give_answer, .w = w, .lane = lane, .op = op };
	return emu_async_start(w->cluster, &x->a);
}

static enum emu_step try_cancel(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (emu_wants_turn(w))
		return STEP_TURN;
	for (unsigned i = ARG_A; i <= ARG_MBAR; i++)
		if (op->arg[i].base)
			emu_need(w, op, op->arg[i].slot, mask, "the address");
	if (w->cluster->none_left)
		return emu_find(w, op, __builtin_ctz(mask), CPTX_FIND_OPERAND,
		                "the cluster has seen a request fail before; no other may follow");
	EACH_LANE(l, mask)
		if (!request_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_try_cancel(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_EVENT;
	op->fn = try_cancel;
	return true;
}

static answer answer_in(const emu_warp *w, const emu_op *op, unsigned lane)
{
	uint64_t v[2] = { emu_reg64(w, op, ARG_A)[lane], emu_reg64(w, op, ARG_A)[lane + WARP] };
	answer is;

	memcpy(&is, v, sizeof is);
	return is;
}

static uint32_t defined_answers(const emu_warp *w, const emu_op *op) { return *emu_defined(w, op->arg[ARG_A].slot); }

static enum emu_step is_canceled(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t p = 0, known = defined_answers(w, op);

	EACH_LANE(l, mask)
		p |= (uint32_t)(answer_in(w, op, l).canceled == 1) << l;
	if (mask & known & ~p)
		w->cluster->none_left = true;
	emu_set_pred(w, op->arg[0].slot, mask, p);
	emu_define(w, op->arg[0].slot, mask, known);
	return STEP_NEXT;
}

/* imm[0]: the first coordinate that is asked for; of an answer that says no they are undefined, as is the fourth. */
static enum emu_step first_ctaid(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *d = &op->arg[0];
	uint32_t yes = 0;

	EACH_LANE(l, mask)
		yes |= (uint32_t)(answer_in(w, op, l).canceled == 1) << l;
	yes &= defined_answers(w, op);
	for (unsigned i = 0; i < (d->kind == ARG_VEC ? d->count : 1u); i++) {
		uint32_t slot = d->kind == ARG_VEC ? d->slots[i] : d->slot;
		if (!slot)
			continue;
		EACH_LANE(l, mask)
			emu_r32(w, slot)[l] = i < 3 ? answer_in(w, op, l).id[op->imm[0] + i] : 0;
		emu_define(w, slot, mask, i < 3 ? yes : 0);
	}
	return STEP_NEXT;
}

bool decode_query_cancel(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = op->opcode == CPTX_OP_CLUSTERLAUNCHCONTROL_QUERY_CANCEL_IS_CANCELED ? is_canceled : first_ctaid;
	op->imm[0] = op->m.dim == CPTX_GET_FIRST_CTAID_Y ? 1 : op->m.dim == CPTX_GET_FIRST_CTAID_Z ? 2 : 0;
	return true;
}

/* ---- setmaxnreg ---- */

enum { REGISTERS = 65536 /* of a multiprocessor */, UNIT = 8, MOST_REGISTERS = 256, N = 1 };

/* The most that any setmaxnreg of the kernel asks for. */
static uint32_t most_asked(const cptx_kernel *k)
{
	uint32_t most = 0;

	for (const ir_item *it = NULL; (it = cptx_item_find_op(k, it, CPTX_OP_SETMAXNREG));)
		most = MAX(most, (uint32_t)ir_operand(k, it, 0).i); /* no result stands in front */
	return most;
}

/*
 * Of a thread at launch, as ptxas gives them: what the head allows, but no more than the kernel asks for.  0: the head does
 * not say, and ptxas leaves setmaxnreg out.  Warps get theirs in fours.
 */
static uint32_t at_launch(const cptx_kernel *k)
{
	const cptx_kernel_opt *o = &k->opt;
	const uint32_t *b = o->block[0] ? o->block : o->max_block;
	uint64_t threads = (uint64_t)MAX(b[0], 1u) * MAX(b[1], 1u) * MAX(b[2], 1u), four = 4 * WARP;

	if (!o->max_regs && !b[0])
		return 0;
	threads = (threads + four - 1) / four * four * MAX(o->min_ctas, 1u);
	uint64_t n = o->max_regs ? o->max_regs : MIN(REGISTERS / threads, (uint64_t)MOST_REGISTERS);
	return (uint32_t)(MIN(n, (uint64_t)most_asked(k)) / UNIT * UNIT);
}

/* imm[0]: how many there are at launch; imm[1]: more are asked for */
static enum emu_step setmaxnreg(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t has = w->nreg ? w->nreg : (uint32_t)op->imm[0], want = (uint32_t)op->arg[N].offset;
	bool more = op->imm[1] != 0;

	(void)mask;
	if (!op->imm[0] || want == has)
		return STEP_NEXT;
	if (more != (want > has))
		return emu_find(w, op, EMU_ALL, CPTX_FIND_OPERAND, "%u registers, but the warp has %u: .%s may not make them %s",
		                want, has, more ? "inc" : "dec", more ? "fewer" : "more");
	if (more && w->cta->free_registers < (want - has) * WARP)
		return emu_group_block(w, op, "registers that other warps give up", (want - has) * WARP, 0);
	w->cta->free_registers -= (want - has) * WARP; /* modulo 2^32: may be a gain */
	w->nreg = want;
	if (!more)
		emu_wake(w->cluster);
	return STEP_NEXT;
}

bool decode_setmaxnreg(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->converge = 1;
	op->flags = OP_SPLITS;
	op->imm[0] = at_launch(op->f->image->kernel);
	op->imm[1] = op->m.op == CPTX_INC;
	op->fn = setmaxnreg;
	return true;
}
