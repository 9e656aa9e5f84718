/* SPDX-License-Identifier: MIT */
/* Tensor memory: allocation, the order of what touches it, tcgen05.commit and tcgen05.fence. */
#include "emu/tensor/tcgen05.h"
#include "emu/async/mbarrier.h"
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/race/cell.h"

#include <stdlib.h>

enum { PIPE = 0x20000 /* + the rank of the CTA, or the first of the pair */ };

emu_tmem *tmem_of(emu_cta *cta, emu_warp *w, const emu_op *op)
{
	if (!cta->tmem)
		cta->tmem = NEW(struct emu_tmem);
	if (!cta->tmem)
		emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for the tensor memory of a CTA");
	return cta->tmem;
}

void emu_tmem_free(emu_cta *cta)
{
	free(cta->tmem);
	cta->tmem = NULL;
}

emu_cta *tmem_peer(emu_warp *w, const emu_op *op)
{
	if ((w->cta->rank ^ 1) < w->cluster->ncta)
		return &w->cluster->cta[w->cta->rank ^ 1];
	emu_find(w, op, EMU_ALL, CPTX_FIND_OPERAND,
	         "cta_group::2, but CTA %u of a cluster of %u has no other to make a pair with; the cluster must be of an even "
	         "number",
	         w->cta->rank, w->cluster->ncta);
	return NULL;
}

static emu_cta *first_of_pair(emu_cta *cta) { return &cta->cluster->cta[cta->rank & ~1u]; }

bool tmem_allocated(emu_warp *w, const emu_op *op, emu_cta *cta, uint32_t column, uint32_t n)
{
	uint32_t end = column + n, last = (end - 1) / TMEM_UNIT;

	for (uint32_t u = column / TMEM_UNIT; u <= last && end <= TMEM_COLUMNS; u++)
		if (!cta->tmem || !(cta->tmem->owned >> u & 1)) {
			emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_LANES,
			         "columns %u to %u of tensor memory: those from %u on are not allocated%s", column, end - 1,
			         u * TMEM_UNIT, cta == w->cta ? "" : " in the other CTA of the pair");
			return false;
		}
	if (end <= TMEM_COLUMNS)
		return true;
	emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_LANES, "columns %u to %u of tensor memory, which has %d", column, end - 1,
	         TMEM_COLUMNS);
	return false;
}

/* ---- who touches what ---- */

tmem_record *tmem_record_of(emu_cta *cta, uint32_t id)
{
	emu_tmem *t = first_of_pair(cta)->tmem;
	tmem_record *r = t && id ? &t->record[id % TMEM_RECORDS] : NULL;

	return r && r->id == id ? r : NULL;
}

uint32_t tmem_begin(emu_warp *w, const emu_op *op, unsigned lane, bool piped)
{
	emu_tmem *t = tmem_of(first_of_pair(w->cta), w, op);

	if (!t)
		return 0;
	t->last += t->last == UINT32_MAX ? 2 : 1;
	tmem_record *r = &t->record[t->last % TMEM_RECORDS];
	*r = (tmem_record){ .id = t->last, .op = op, .agent = w->agent, .lane = (uint8_t)(lane % WARP), .piped = piped };
	r->late = race_async_begin(w, op, lane);
	return r->id;
}

static uint64_t warp_bit(const emu_warp *w) { return UINT64_C(1) << ((w->cta->rank & 1) * EMU_MAX_WARPS + w->number); }

static const char *short_name(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_TCGEN05_LD:
	case CPTX_OP_TCGEN05_LD_RED: return "tcgen05.ld";
	case CPTX_OP_TCGEN05_ST: return "tcgen05.st";
	case CPTX_OP_TCGEN05_CP: return "tcgen05.cp";
	case CPTX_OP_TCGEN05_SHIFT: return "tcgen05.shift";
	default: return "tcgen05.mma";
	}
}

/* The end of `r` is known, but no fence stands between; or only a relaxed barrier has told of it. */
static bool may_be_unfenced(emu_warp *w, const tmem_record *me, const tmem_record *r, const tmem_area *a, const char *did,
                            uint32_t column, bool known)
{
	bool frees = me->op->opcode == CPTX_OP_TCGEN05_DEALLOC, before = !r->piped && !r->published;

	return emu_lenient(w, me->op, EMU_ALL, frees ? CPTX_FIND_TMEM_ORDER : CPTX_FIND_TMEM_FENCE,
	                   "%s: column %u of tensor memory is %s by a %s that %s; %s", a->what, column, did, short_name(r->op),
	                   !known   ? "has been waited for, which barrier.cluster.arrive.relaxed told of"
	                   : before ? "its warp has waited for, but without a fence in front of what told this one"
	                            : "has been waited for, but without a fence behind",
	                   !known   ? "that arrival must be a .release"
	                   : before ? "tcgen05.fence::before_thread_sync must come between"
	                            : "tcgen05.fence::after_thread_sync must come between");
}

/*
 * The operation `me` of the warp comes behind this one; a finding, and false for an error, if nothing makes sure of it.  A
 * warning is made once: *warned.
 */
static bool is_behind(emu_warp *w, const tmem_record *me, uint32_t id, const tmem_area *a, const char *did, uint32_t column,
                      bool *warned)
{
	const tmem_record *r = tmem_record_of(w->cta, id);

	if (!r || r == me || !r->late || (r->piped && me->piped))
		return true;
	bool known = race_late_known(w, me->lane, false, r->late), published = r->piped || r->published;
	/* The wait at an mbarrier is thread sync, too, where the warp itself has issued what is piped; tcgen05.wait is more.
	 * What warps have waited for may be freed without fences: all such code does. */
	bool frees = me->op->opcode == CPTX_OP_TCGEN05_DEALLOC;
	bool fenced = r->agent == w->agent ? frees || !r->piped : frees && !r->piped;
	if (known && (fenced || (published && r->fenced & warp_bit(w))))
		return true;
	if (known || (frees && race_late_over(w, r->late)))
		return *warned || (*warned = may_be_unfenced(w, me, r, a, did, column, known));
	emu_find(w, me->op, EMU_ALL, CPTX_FIND_ASYNC_WAIT,
	         "%s: column %u of tensor memory is %s by a %s that may be under way; %s must come between", a->what, column,
	         did, short_name(r->op),
	         !r->piped ? (r->op->opcode == CPTX_OP_TCGEN05_ST ? "tcgen05.wait::st" : "tcgen05.wait::ld")
	                   : "tcgen05.commit, a wait at its mbarrier and tcgen05.fence::after_thread_sync");
	return false;
}

void tmem_touch(emu_warp *w, uint32_t id, emu_cta *cta, tmem_area a, bool write)
{
	const tmem_record *me = tmem_record_of(w->cta, id);
	emu_tmem *t = cta->tmem;
	uint32_t seen_writer = 0, seen_reader = 0; /* that have been looked at: most cells have the same */
	bool good = true, warned = false;

	for (uint32_t c = a.column; me && c < a.column + a.n; c++)
		for (uint32_t bands = a.bands; bands; bands &= bands - 1) {
			unsigned b = (unsigned)__builtin_ctz(bands);
			uint32_t was_writer = t->cell[c][b].writer, was_reader = t->cell[c][b].reader;
			if (good && was_writer && was_writer != seen_writer)
				good = is_behind(w, me, seen_writer = was_writer, &a, "written", c, &warned);
			if (good && write && was_reader && was_reader != seen_reader)
				good = is_behind(w, me, seen_reader = was_reader, &a, "read", c, &warned);
			if (write)
				t->cell[c][b].writer = id, t->cell[c][b].reader = 0;
			else
				t->cell[c][b].reader = id;
		}
}

bool tmem_start(emu_async *a)
{
	uint32_t rank = a->w->cta->rank;

	a->pipe = PIPE + (tmem_pair(a->op) ? rank & ~1u : rank);
	return emu_async_start(a->w->cluster, a);
}

/* ---- allocation ---- */

/* The value of an operand, which all lanes must agree on; false with a finding. */
static bool same_value(emu_warp *w, const emu_op *op, const char *slot, const char *what, uint32_t mask, uint32_t *v)
{
	const emu_arg *a = emu_named(op, slot);

	if (a->slot && !emu_need(w, op, a->slot, mask, what))
		return false;
	*v = (uint32_t)emu_get(w, a, (unsigned)__builtin_ctz(mask));
	EACH_LANE(l, mask)
		if ((uint32_t)emu_get(w, a, l) != *v) {
			emu_find(w, op, (int)l, CPTX_FIND_OPERAND, "%s is %u here and %u in another lane of the warp", what,
			         (uint32_t)emu_get(w, a, l), *v);
			return false;
		}
	return true;
}

static uint32_t units(uint32_t columns) { return (uint32_t)((UINT64_C(1) << columns / TMEM_UNIT) - 1); }

/* The first place where so many columns are free in all of `owned`; TMEM_COLUMNS: there is none. */
static uint32_t room(uint32_t owned, uint32_t n)
{
	for (uint32_t at = 0; at + n <= TMEM_COLUMNS; at += TMEM_UNIT)
		if (!(owned >> at / TMEM_UNIT & units(n)))
			return at;
	return TMEM_COLUMNS;
}

static void take(emu_tmem *t, uint32_t at, uint32_t n, emu_warp *w, const emu_op *op)
{
	t->owned |= units(n) << at / TMEM_UNIT;
	t->block[at / TMEM_UNIT].columns = n;
	t->block[at / TMEM_UNIT].w = w;
	t->block[at / TMEM_UNIT].op = op;
	for (uint32_t c = at; c < at + n; c++) {
		memset(t->defined[c], 0, sizeof t->defined[c]);
		memset(t->cell[c], 0, sizeof t->cell[c]);
	}
}

static bool may_alloc(emu_warp *w, const emu_op *op, const emu_tmem *t, uint32_t n)
{
	if (n < TMEM_UNIT || n > TMEM_COLUMNS || n & (n - 1))
		emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_ALLOC, "%u columns; it must be a power of two from %d to %d", n, TMEM_UNIT,
		         TMEM_COLUMNS);
	else if (t->relinquished)
		emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_ALLOC,
		         "the CTA has executed tcgen05.relinquish_alloc_permit; it must allocate all that it needs before");
	else
		return true;
	return false;
}

/* tcgen05.alloc of a pair: both CTAs must come, and get the same columns.  STEP_NEXT: *at. */
static enum emu_step alloc_pair(emu_warp *w, const emu_op *op, emu_tmem *t, uint32_t n, uint32_t *at)
{
	emu_cta *other = tmem_peer(w, op);
	emu_tmem *p = other ? tmem_of(other, w, op) : NULL;

	if (!p)
		return STEP_FAULT;
	if (!t->granted) {
		t->wanted = n;
		if (!p->wanted)
			return emu_group_block(w, op, "the other CTA of the pair to allocate tensor memory", 0, 0);
		if (p->wanted != n)
			return emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_ALLOC,
			                "%u columns, but the other CTA of the pair asks for %u; both must ask for the same", n,
			                p->wanted);
		*at = room(t->owned | p->owned, n);
		if (*at == TMEM_COLUMNS)
			return emu_group_block(w, op, "columns of tensor memory to be freed", 0, 0);
		take(t, *at, n, w, op);
		take(p, *at, n, &other->warp[0], op);
		t->granted = p->granted = *at + 1;
		t->wanted = p->wanted = 0;
		emu_wake(w->cluster);
	}
	*at = t->granted - 1;
	t->granted = 0;
	t->block[*at / TMEM_UNIT].w = w;
	return STEP_NEXT;
}

static enum emu_step alloc(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *to = emu_named(op, "a");
	unsigned lane = (unsigned)__builtin_ctz(mask);
	emu_tmem *t = tmem_of(w->cta, w, op);
	uint32_t n, at;

	emu_need_arg(w, op, to, mask, "the address");
	if (!t || !same_value(w, op, "n", "the number of columns", mask, &n) || !may_alloc(w, op, t, n))
		return STEP_FAULT;
	if (tmem_pair(op)) {
		enum emu_step s = alloc_pair(w, op, t, n, &at);
		if (s != STEP_NEXT)
			return s;
	} else {
		at = room(t->owned, n);
		if (at == TMEM_COLUMNS)
			return emu_group_block(w, op, "columns of tensor memory to be freed", 0, 0);
		take(t, at, n, w, op);
	}
	w->cluster->progress++;
	if (!emu_write(w, op, lane, to->space, emu_address(w, to, lane), &at, sizeof at, ACCESS_WRITE))
		return STEP_FAULT;
	clock_warp_sync(w); /* of the whole warp, though one lane has written */
	return STEP_NEXT;
}

static bool decode_permit(emu_op *op, emu_fn fn)
{
	op->fn = fn;
	op->converge = 1;
	op->flags = OP_SPLITS;
	return true;
}

bool decode_tcgen05_alloc(emu_decoder *d, emu_op *op)
{
	(void)d;
	return decode_permit(op, alloc);
}

static enum emu_step dealloc(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_tmem *t = tmem_of(w->cta, w, op);
	uint32_t addr, n;

	if (!t || !same_value(w, op, "a", "the address", mask, &addr) ||
	    !same_value(w, op, "n", "the number of columns", mask, &n))
		return STEP_FAULT;
	if (addr >= TMEM_COLUMNS || addr % TMEM_UNIT || !t->block[addr / TMEM_UNIT].columns)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_FREE,
		                "no allocation begins at address 0x%x; it has been freed, or never was one", addr);
	if (t->block[addr / TMEM_UNIT].columns != n)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_FREE, "%u columns at address 0x%x, where %u were allocated", n, addr,
		                t->block[addr / TMEM_UNIT].columns);
	if (tmem_pair(t->block[addr / TMEM_UNIT].op) != tmem_pair(op))
		return emu_find(
			w, op, EMU_ALL, CPTX_FIND_TMEM_FREE,
			"the columns at address 0x%x were allocated by the other cta_group; all of a kernel must use the same", addr);
	tmem_touch(w, tmem_begin(w, op, WARP, false), w->cta, (tmem_area){ addr, n, TMEM_ALL_BANDS, "what is freed" }, true);
	t->owned &= ~(units(n) << addr / TMEM_UNIT);
	t->block[addr / TMEM_UNIT].columns = 0;
	emu_wake(w->cluster);
	return STEP_NEXT;
}

bool decode_tcgen05_dealloc(emu_decoder *d, emu_op *op)
{
	(void)d;
	return decode_permit(op, dealloc);
}

static enum emu_step relinquish(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_tmem *t = tmem_of(w->cta, w, op);

	(void)mask;
	if (!t)
		return STEP_FAULT;
	t->relinquished = true;
	return STEP_NEXT;
}

bool decode_tcgen05_relinquish(emu_decoder *d, emu_op *op)
{
	(void)d;
	return decode_permit(op, relinquish);
}

void emu_tmem_end(emu_cluster *c)
{
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t u = 0; c->cta[i].tmem && u < TMEM_UNITS; u++)
			if (c->cta[i].tmem->block[u].columns)
				emu_find(c->cta[i].tmem->block[u].w, c->cta[i].tmem->block[u].op, EMU_ALL, CPTX_FIND_TMEM_LEAK,
				         "%u columns of tensor memory at 0x%x are still allocated when the kernel ends; tcgen05.dealloc "
				         "must free "
				         "them",
				         c->cta[i].tmem->block[u].columns, u * TMEM_UNIT);
}

/* ---- tcgen05.fence ---- */

/* What the warp itself has moved will be told of by what follows; what it knows to be over by now is behind the fence. */
static enum emu_step fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_tmem *t = first_of_pair(w->cta)->tmem;

	for (unsigned i = 0; t && i < TMEM_RECORDS; i++) {
		tmem_record *r = &t->record[i];
		if (op->m.op != CPTX_FENCE_AFTER_THREAD_SYNC)
			r->published |= r->agent == w->agent;
		else if (r->id && !(r->fenced & warp_bit(w)) && race_late_known(w, (unsigned)__builtin_ctz(mask), false, r->late))
			r->fenced |= warp_bit(w);
	}
	return STEP_NEXT;
}

bool decode_tcgen05_fence(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = fence;
	return true;
}

/* ---- tcgen05.commit ---- */

typedef struct tmem_commit {
	emu_async a;
	uint32_t offset;
	uint32_t ctas;   /* a bit each */
	uint32_t last;   /* operation in front of it */
	emu_clock known; /* to the thread: the operations are behind it */
} tmem_commit;

static void drop_commit(emu_async *a) { clock_free(&((tmem_commit *)(void *)a)->known); }

/* Waiters will know all operations that the thread has started in front of it, and what was over before those began. */
static void tell(emu_cluster *c, const tmem_commit *x, emu_mbarrier *b)
{
	const emu_tmem *t = first_of_pair(x->a.w->cta)->tmem;

	clock_join(c, &b->clock, &x->known);
	for (unsigned i = 0; i < TMEM_RECORDS; i++) {
		const tmem_record *r = &t->record[i];
		if (r->id && r->id <= x->last && r->piped && r->agent == x->a.w->agent && r->lane == x->a.lane)
			race_async_done(c, r->late, &b->clock);
	}
	clock_join(c, &b->clock, &x->known);
}

static bool run_commit(emu_cluster *c, emu_async *a)
{
	tmem_commit *x = (tmem_commit *)(void *)a;
	mbarrier_by by = mbarrier_by_async(a, 0);

	EACH_LANE(rank, x->ctas) {
		emu_mbarrier *b = mbarrier_of(&c->cta[rank], x->offset, by);
		if (!b)
			return true;
		tell(c, x, b);
		if (!mbarrier_arrive(&c->cta[rank], x->offset, 1, by))
			return true;
	}
	return true;
}

static bool commit_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const emu_arg *at = emu_named(op, "a"), *mask = emu_named(op, "mask");
	emu_tmem *t = tmem_of(first_of_pair(w->cta), w, op);
	emu_cta *cta;
	emu_mbarrier *b = t ? mbarrier_at(w, op, lane, at->space, emu_address(w, at, lane), &cta) : NULL;

	if (!b || (tmem_pair(op) && !tmem_peer(w, op)))
		return false;
	uint32_t ctas = mask->kind == ARG_REG ? (uint32_t)emu_get(w, mask, lane) : UINT32_C(1) << cta->rank;
	if (ctas >> w->cluster->ncta) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "mask 0x%x names CTAs that the cluster of %u has not", ctas,
		         w->cluster->ncta);
		return false;
	}
	tmem_commit *x = NEW(tmem_commit);
	if (!x) {
		emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work");
		return false;
	}
	*x = (tmem_commit){ .offset = b->offset, .ctas = ctas, .last = t->last };
	x->a = (emu_async){ .run = run_commit, .drop = drop_commit, .w = w, .lane = lane, .op = op };
	clock_known_by(w, UINT32_C(1) << lane, &x->known);
	return tmem_start(&x->a);
}

static enum emu_step commit(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *at = emu_named(op, "a"), *ctas = emu_named(op, "mask");

	emu_need_arg(w, op, at, mask, "the address");
	if (ctas->kind == ARG_REG)
		emu_need(w, op, ctas->slot, mask, "the mask of CTAs");
	EACH_LANE(l, mask)
		if (!commit_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_tcgen05_commit(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = commit;
	return true;
}
