/* SPDX-License-Identifier: MIT */
/* wgmma: when operations start and end, and which registers they use meanwhile. */
#include "emu/tensor/wgmma.h"
#include "emu/core/finding.h"
#include "emu/tensor/wgmma_op.h"

#include <stdlib.h>

enum { GROUP_WARPS = 4, GROUPS = 8 /* wait_group leaves up to 7 under way */ };

/* Registers of a frame as bits: their places are even. */
typedef struct reg_set {
	uint64_t *bit;
	size_t n; /* words */
} reg_set;

/* An operation that the warp has not waited for. */
typedef struct held {
	uint64_t number;
	const emu_op *op;
} held;

struct emu_wgmma {
	uint64_t started, done;       /* operations of this warp */
	uint64_t ngroup, end[GROUPS]; /* groups closed; how many operations were started when the last ones were */
	const emu_frame *frame;       /* whose registers the sets are of */
	reg_set result, source;       /* accumulators and fragments of A that are in use */
	reg_set touched;              /* accessed since the last fence */
	bool fenced;                  /* there has been one */
	struct held *held;
	size_t nheld, cap;
	/* Of the first warp of the group: */
	wgmma_op *waiting; /* operations that not all warps have come to, in order */
	emu_clock track;   /* of what has been waited for */
};

/* ---- sets ---- */

static bool has(const reg_set *s, uint32_t slot) { return slot / 128 < s->n && s->bit[slot / 128] >> slot / 2 % 64 & 1; }
static void add(reg_set *s, uint32_t slot) { s->bit[slot / 128] |= UINT64_C(1) << slot / 2 % 64; }
static void take(reg_set *s, uint32_t slot) { s->bit[slot / 128] &= ~(UINT64_C(1) << slot / 2 % 64); }
static void clear(reg_set *s) { memset(s->bit, 0, s->n * sizeof *s->bit); }

static bool set_room(reg_set *s, const emu_frame *f)
{
	size_t n = f->f->words / 128 + 1;
	uint64_t *p = GROW_ARRAY(uint64_t, s->bit, n);

	if (!p)
		return false;
	s->bit = p;
	s->n = n;
	clear(s);
	return true;
}

static emu_warp *leader(const emu_warp *w) { return &w->cta->warp[w->number / GROUP_WARPS * GROUP_WARPS]; }

static struct emu_wgmma *no_memory(emu_warp *w, const emu_op *op)
{
	emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for operations of wgmma");
	return NULL;
}

static struct emu_wgmma *state_of(emu_warp *w, const emu_op *op)
{
	if (!w->wgmma)
		w->wgmma = NEW(struct emu_wgmma);
	return w->wgmma ? w->wgmma : no_memory(w, op);
}

/* The state, its sets those of the frame that runs. */
static struct emu_wgmma *open_state(emu_warp *w, const emu_op *op)
{
	struct emu_wgmma *s = state_of(w, op);

	if (!s || s->frame == w->g->frame)
		return s;
	if (!set_room(&s->result, w->g->frame) || !set_room(&s->source, w->g->frame) || !set_room(&s->touched, w->g->frame))
		return no_memory(w, op);
	s->frame = w->g->frame;
	s->nheld = 0;
	return s;
}

void emu_wgmma_free(emu_warp *w)
{
	struct emu_wgmma *s = w->wgmma;

	if (!s)
		return;
	for (wgmma_op *x = s->waiting, *next; x; x = next) {
		next = x->next;
		wgmma_op_drop(&x->a);
		free(x);
	}
	clock_free(&s->track);
	free(s->result.bit);
	free(s->source.bit);
	free(s->touched.bit);
	free(s->held);
	free(s);
	w->wgmma = NULL;
}

/* ---- what is under way ---- */

static void mark(struct emu_wgmma *s, const emu_op *op)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];

	for (unsigned i = 0; i < arg_count(d); i++)
		add(&s->result, arg_slot(d, i));
	for (unsigned i = 0; a->kind == ARG_VEC && i < a->count; i++)
		add(&s->source, a->slots[i]);
}

static void release(struct emu_wgmma *s, uint64_t upto)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nheld; i++)
		if (s->held[i].number >= upto)
			s->held[n++] = s->held[i];
	if (n == s->nheld)
		return;
	s->nheld = n;
	clear(&s->result);
	clear(&s->source);
	for (size_t i = 0; i < n; i++)
		mark(s, s->held[i].op);
}

static bool hold(struct emu_wgmma *s, const emu_op *op)
{
	if (!array_room(&s->held, s->nheld, &s->cap, sizeof *s->held, 16))
		return false;
	s->held[s->nheld++] = (held){ s->started, op };
	mark(s, op);
	return true;
}

static void not_waited(emu_warp *w, const emu_op *op, const char *what)
{
	emu_find(w, op, EMU_ALL, CPTX_FIND_ASYNC_WAIT, "%s; wgmma.commit_group and wgmma.wait_group must come first", what);
}

/* A copy of a register has been touched if what it copies has: compilers put copies anywhere. */
static bool is_copy(const emu_op *op)
{
	return op->opcode == CPTX_OP_MOV && op->ndef == 1 && op->nuse == 1 && op->arg[1].kind == ARG_REG &&
	       ir_operand(op->f->k, op->item, 1).kind == CPTX_VAL_REG;
}

static void watch_registers(emu_warp *w, struct emu_wgmma *s, const emu_op *op)
{
	for (unsigned i = 0; s->nheld && i < op->ndef + op->nuse; i++) {
		if (has(&s->result, op->regs[i]))
			not_waited(w, op,
			           i < op->ndef ? "it writes a register that a wgmma under way accumulates in"
			                        : "it reads a register that a wgmma under way accumulates in");
		else if (i < op->ndef && has(&s->source, op->regs[i]))
			not_waited(w, op, "it writes a register that a wgmma under way reads its matrix A from");
	}
	if (is_copy(op)) {
		if (has(&s->touched, op->regs[1]))
			add(&s->touched, op->regs[0]);
		else
			take(&s->touched, op->regs[0]);
		return;
	}
	for (unsigned i = 0; i < op->ndef + op->nuse; i++)
		add(&s->touched, op->regs[i]);
}

void emu_wgmma_watch(emu_warp *w, const emu_op *op)
{
	if (w->wgmma && w->wgmma->frame == w->g->frame)
		watch_registers(w, w->wgmma, op);
}

bool emu_is_wgmma(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_WGMMA_MMA_ASYNC:
	case CPTX_OP_WGMMA_MMA_ASYNC_B1:
	case CPTX_OP_WGMMA_MMA_ASYNC_SP: return true;
	default: return false;
	}
}

/* ---- wgmma.mma_async ---- */

static bool overlaps(const emu_arg *a, const emu_arg *b)
{
	for (unsigned i = 0; i < arg_count(a); i++)
		for (unsigned j = 0; j < arg_count(b); j++)
			if (arg_slot(a, i) == arg_slot(b, j))
				return true;
	return false;
}

/* Accumulators may be handed from one operation to the next of the same shape and types without waiting. */
static void check_accumulators(emu_warp *w, const struct emu_wgmma *s, const emu_op *op)
{
	const emu_arg *d = &op->arg[0];

	for (unsigned i = 0; i < arg_count(d); i++) {
		if (has(&s->source, arg_slot(d, i))) {
			not_waited(w, op, "it accumulates in a register that a wgmma under way reads its matrix A from");
			return;
		}
		if (!has(&s->result, arg_slot(d, i)))
			continue;
		for (size_t j = 0; j < s->nheld; j++)
			if ((s->held[j].op->m.shape != op->m.shape || s->held[j].op->m.dtype != op->m.dtype) &&
			    overlaps(d, &s->held[j].op->arg[0])) {
				not_waited(w, op, "it accumulates in registers of a wgmma of another shape that is under way");
				return;
			}
		return;
	}
}

static void check_registers(emu_warp *w, const struct emu_wgmma *s, const emu_op *op)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];
	bool touched = false;

	check_accumulators(w, s, op);
	for (unsigned i = 0; i < arg_count(d); i++)
		touched |= has(&s->touched, arg_slot(d, i));
	for (unsigned i = 0; a->kind == ARG_VEC && i < a->count; i++) {
		touched |= has(&s->touched, a->slots[i]);
		if (has(&s->result, a->slots[i]))
			not_waited(w, op, "it reads its matrix A from a register that a wgmma under way accumulates in");
	}
	if (!s->fenced)
		emu_find(w, op, EMU_ALL, CPTX_FIND_WGMMA_FENCE,
		         "no wgmma.fence has been executed; one must come before the first wgmma.mma_async");
	else if (touched)
		emu_find(w, op, EMU_ALL, CPTX_FIND_WGMMA_FENCE,
		         "registers of it were accessed since the last wgmma.fence; one must come between");
}

/* The operation that the warp comes to: the oldest that it has not come to yet, or a new one. */
static wgmma_op *find_op(emu_warp *w, const emu_op *op, uint64_t number)
{
	wgmma_op **p = &leader(w)->wgmma->waiting;

	while (*p && (*p)->number != number)
		p = &(*p)->next;
	if (!*p && (*p = wgmma_op_new(w, op)) != NULL)
		(*p)->number = number;
	return *p;
}

static bool warps_are_there(emu_warp *w, const emu_op *op)
{
	if (w->number / GROUP_WARPS * GROUP_WARPS + GROUP_WARPS <= w->cta->nwarp)
		return true;
	emu_find(w, op, EMU_ALL, CPTX_FIND_OPERAND, "the block has %u warps: warp %u is in no whole warpgroup of 4",
	         w->cta->nwarp, w->number);
	return false;
}

enum emu_step wgmma_mma(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct emu_wgmma *s = open_state(w, op);

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	if (!s || !warps_are_there(w, op) || !state_of(leader(w), op))
		return STEP_FAULT;
	wgmma_op *x = find_op(w, op, s->started);
	if (!x) {
		no_memory(w, op);
		return STEP_FAULT;
	}
	if (x->op != op)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_DIVERGENT,
		                "the warps of a warpgroup execute different operations of wgmma together");
	check_registers(w, s, op);
	if (!wgmma_op_join(x, w, mask))
		return STEP_FAULT;
	if (!hold(s, op)) {
		no_memory(w, op);
		return STEP_FAULT;
	}
	s->started++;
	w->cluster->progress++;
	if (x->joined != (1u << GROUP_WARPS) - 1)
		return STEP_NEXT;
	leader(w)->wgmma->waiting = x->next; /* all come in the same order: the first is whole first */
	x->race = race_async_begin(w, op, WARP);
	race_async_grouped(w->cluster, x->race, &leader(w)->wgmma->track, (uint32_t)x->number + 1);
	if (!wgmma_op_open(x, w)) {
		wgmma_op_drop(&x->a);
		free(x);
		return STEP_FAULT;
	}
	return emu_async_start(w->cluster, &x->a) ? STEP_NEXT : STEP_FAULT;
}

void wgmma_op_done(wgmma_op *x)
{
	emu_cta *cta = x->a.w->cta;

	for (unsigned i = 0; i < GROUP_WARPS; i++) {
		struct emu_wgmma *s = cta->warp[x->first + i].wgmma;
		if (s)
			s->done = x->number + 1;
	}
	emu_wake(cta->cluster);
}

/* ---- fence, commit_group, wait_group ---- */

static enum emu_step fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct emu_wgmma *s = open_state(w, op);

	(void)mask;
	if (!s)
		return STEP_FAULT;
	s->fenced = true;
	clear(&s->touched);
	return STEP_NEXT;
}

static enum emu_step commit_group(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct emu_wgmma *s = state_of(w, op);

	(void)mask;
	if (!s)
		return STEP_FAULT;
	s->end[s->ngroup++ % GROUPS] = s->started;
	return STEP_NEXT;
}

static enum emu_step wait_group(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct emu_wgmma *s = w->wgmma;
	uint64_t left = (uint64_t)op->imm[0];

	if (!s || s->ngroup <= left)
		return STEP_NEXT;
	uint64_t upto = s->end[(s->ngroup - 1 - left) % GROUPS];
	if (s->done < upto)
		return emu_group_block(w, op, "operations of wgmma", 0, 0);
	release(s, upto);
	if (leader(w)->wgmma)
		race_async_waited(w, mask, &leader(w)->wgmma->track, (uint32_t)upto);
	return STEP_NEXT;
}

static bool decode_order(emu_op *op, emu_fn fn)
{
	op->fn = fn;
	op->converge = 1;
	op->flags = OP_SPLITS;
	op->f->image->watchers |= WATCH_WGMMA;
	return true;
}

bool decode_wgmma_fence(emu_decoder *d, emu_op *op)
{
	(void)d;
	return decode_order(op, fence);
}

bool decode_wgmma_commit(emu_decoder *d, emu_op *op)
{
	(void)d;
	return decode_order(op, commit_group);
}

bool decode_wgmma_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = op->arg[1].offset;
	return decode_order(op, wait_group);
}

bool decode_wgmma(emu_decoder *d, emu_op *op) { return wgmma_op_decode(d, op) && decode_order(op, wgmma_mma); }
