/* SPDX-License-Identifier: MIT */
/* tcgen05.ld, tcgen05.st, tcgen05.wait. */
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"
#include "emu/tensor/fragment.h"
#include "emu/tensor/tcgen05.h"

#include <stdlib.h>

enum { LOADS, STORES };

/* What the decoder made of a load or store. */
typedef struct move {
	const frag *f; /* elements by columns */
	const emu_arg *regs;
	uint16_t lanes;                   /* 16 or 32 */
	uint32_t used[TMEM_COLUMNS / 32]; /* columns, from the address on */
	uint16_t columns;
	bool plain; /* each register is a column of 32 lanes */
} move;

typedef struct moving {
	emu_async a;
	emu_frame *frame;
	tmem_load *load;
	tmem_place at;
	uint32_t defined[128]; /* of the registers of a store, by lane, */
	uint32_t v[];          /* and what was in them */
} moving;

static struct emu_tcgen05 *state_of(emu_warp *w, const emu_op *op)
{
	if (!w->tcgen05 && !(w->tcgen05 = NEW(struct emu_tcgen05)))
		emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for loads of tensor memory");
	return w->tcgen05;
}

/* The last load was started first in the list: those up to a group are its end. */
static void forget_loads(struct emu_tcgen05 *s, uint32_t group)
{
	tmem_load **link = &s->loads;

	while (*link && (*link)->group > group)
		link = &(*link)->next;
	for (tmem_load *l = *link, *next; l; l = next) {
		next = l->next;
		free(l);
	}
	*link = NULL;
}

void emu_tcgen05_free(emu_warp *w)
{
	struct emu_tcgen05 *s = w->tcgen05;

	if (!s)
		return;
	forget_loads(s, UINT32_MAX);
	clock_free(&s->way[LOADS].track);
	clock_free(&s->way[STORES].track);
	free(s);
	w->tcgen05 = NULL;
}

/* ---- registers that are being loaded ---- */

static bool is_in(const emu_arg *a, uint32_t slot)
{
	for (unsigned i = 0; i < arg_count(a); i++)
		if (arg_slot(a, i) == slot && slot)
			return true;
	return false;
}

/* The load that has not been waited for and writes it; NULL: none. */
static const tmem_load *load_of(const emu_warp *w, uint32_t slot)
{
	for (const tmem_load *l = w->tcgen05->loads; l; l = l->next)
		if (l->frame == w->g->frame &&
		    (is_in(&l->op->arg[0], slot) || (l->op->opcode == CPTX_OP_TCGEN05_LD_RED && is_in(emu_named(l->op, "q"), slot))))
			return l;
	return NULL;
}

/* Up to which group the instruction reads what loads write; 0: it reads nothing of them. */
static uint32_t reads_loaded(const emu_warp *w, const emu_op *op)
{
	uint32_t group = 0;

	for (unsigned i = op->ndef; i < op->ndef + op->nuse; i++) {
		const tmem_load *l = load_of(w, op->regs[i]);
		group = l ? MAX(group, l->group) : group;
	}
	return group;
}

/* An instruction that reads what a load writes waits for the load and those in front of it, as machine code does. */
static enum emu_step read_early(emu_warp *w, const emu_op *op, uint32_t group)
{
	if (w->tcgen05->way[LOADS].busy)
		return emu_group_block(w, op, "its tcgen05.ld", 0, 0);
	if (op->opcode == CPTX_OP_MOV)
		emu_lenient(w, op, EMU_ALL, CPTX_FIND_EARLY_MOVE,
		            "it copies a register that a tcgen05.ld under way writes; tcgen05.wait::ld must come between");
	else
		emu_lenient(w, op, EMU_ALL, CPTX_FIND_EARLY_READ,
		            "it reads a register that a tcgen05.ld under way writes; tcgen05.wait::ld must come between");
	forget_loads(w->tcgen05, group);
	race_async_waited(w, emu_live(w), &w->tcgen05->way[LOADS].track, group); /* the whole warp has loaded */
	return STEP_NEXT;
}

enum emu_step emu_tcgen05_watch(emu_warp *w, const emu_op *op)
{
	if (!w->tcgen05 || !w->tcgen05->loads)
		return STEP_NEXT;
	uint32_t group = reads_loaded(w, op);
	if (group)
		return read_early(w, op, group);
	for (unsigned i = 0; i < op->ndef; i++)
		if (load_of(w, op->regs[i]))
			emu_find(w, op, EMU_ALL, CPTX_FIND_ASYNC_WAIT,
			         "it writes a register that a tcgen05.ld under way writes; tcgen05.wait::ld must come between");
	return STEP_NEXT;
}

/* ---- running ---- */

static void drop(emu_async *a)
{
	moving *x = (moving *)(void *)a;

	if (x->frame)
		emu_frame_drop(NULL, x->frame);
}

static void over(emu_warp *w, unsigned way)
{
	w->tcgen05->way[way].busy--;
	emu_wake(w->cluster);
}

static void load_register(const move *m, const emu_tmem *t, tmem_place at, uint32_t *r, unsigned i)
{
	const frag *f = m->f;
	uint32_t *x = r + arg_slot(m->regs, i), defined = 0, element = f->bits == 32 ? ALL_LANES : 0xffff;

	for (unsigned l = 0; l < WARP; l++) {
		uint32_t v = 0, any = 0;
		for (unsigned s = 0; s < f->nslot; s++) {
			unsigned n = (unsigned)f->lane[l] + f->reg[i] + f->slot[s], c = at.column + n / m->lanes,
					 lane = at.lane + n % m->lanes;
			v |= (t->v[c][lane] & element) << s * f->bits;
			any |= tmem_is_defined(t, c, lane);
		}
		x[l] = v;
		defined |= any << l;
	}
	x[-2] = defined;
}

static void load_all(const move *m, const emu_tmem *t, tmem_place at, uint32_t *r)
{
	for (unsigned i = 0; i < m->f->nreg; i++) {
		uint32_t slot = arg_slot(m->regs, i);
		if (slot && m->plain) {
			memcpy(r + slot, &t->v[at.column + i][at.lane], WARP * sizeof *r);
			r[slot - 2] = t->defined[at.column + i][at.lane / WARP];
		} else if (slot) {
			load_register(m, t, at, r, i);
		}
	}
}

/* The smallest or largest of each lane's registers. */
static void reduce(const emu_op *op, const move *m, uint32_t *r)
{
	const emu_arg *q = emu_named(op, "q");
	struct num_mode mode = { .nan = op->m.NaN != 0, .abs = op->m.abs != 0 };
	uint32_t defined = ALL_LANES;

	for (unsigned i = 0; i < m->f->nreg; i++)
		if (arg_slot(m->regs, i))
			defined &= r[arg_slot(m->regs, i) - 2];
	if (!q->slot)
		return;
	for (unsigned l = 0; l < WARP; l++) {
		uint64_t v = r[arg_slot(m->regs, 0) + l];
		if (mode.abs)
			v &= 0x7fffffff;
		for (unsigned i = 1; i < m->f->nreg; i++) {
			uint64_t other = r[arg_slot(m->regs, i) + l];
			if (mode.abs)
				other &= 0x7fffffff;
			struct num_mode plain = { .nan = mode.nan };
			v = op->m.op == CPTX_MAX ? num_max(op->m.type, v, other, &plain) : num_min(op->m.type, v, other, &plain);
		}
		r[q->slot + l] = (uint32_t)v;
	}
	r[q->slot - 2] = defined;
}

static bool run_load(emu_cluster *c, emu_async *a)
{
	moving *x = (moving *)(void *)a;
	const move *m = (const move *)a->op->extra;

	(void)c;
	load_all(m, a->w->cta->tmem, x->at, x->frame->r);
	if (a->op->opcode == CPTX_OP_TCGEN05_LD_RED)
		reduce(a->op, m, x->frame->r);
	over(a->w, LOADS);
	return true;
}

static bool run_store(emu_cluster *c, emu_async *a)
{
	moving *x = (moving *)(void *)a;
	const move *m = (const move *)a->op->extra;
	const frag *f = m->f;
	emu_tmem *t = a->w->cta->tmem;
	uint32_t element = f->bits == 32 ? ALL_LANES : 0xffff;

	(void)c;
	for (unsigned i = 0; i < f->nreg; i++)
		for (unsigned l = 0; l < WARP; l++)
			for (unsigned s = 0; s < f->nslot; s++) {
				unsigned n = (unsigned)f->lane[l] + f->reg[i] + f->slot[s], col = x->at.column + n / m->lanes,
						 lane = x->at.lane + n % m->lanes;
				t->v[col][lane] = x->v[i * WARP + l] >> s * f->bits & element;
				tmem_define(t, col, lane, x->defined[i] >> l & 1);
			}
	over(a->w, STORES);
	return true;
}

/* ---- issuing ---- */

/* In CTA 1 of a pair, which has allocated its columns together with CTA 0: lanes counted from those of CTA 0 on. */
static bool counts_in_pair(const emu_warp *w, uint32_t lane)
{
	bool pair = false;

	for (unsigned u = 0; w->cta->tmem && u < TMEM_UNITS; u++)
		pair |= w->cta->tmem->block[u].columns && tmem_pair(w->cta->tmem->block[u].op);
	return pair && w->cta->rank & 1 && lane >= TMEM_LANES && lane < 2 * TMEM_LANES;
}

/* A load by another warp than the first, from the lanes of that one. */
static bool is_of_first_warp(const emu_op *op, uint32_t lane, uint32_t first)
{
	return lane < WARP && first && (op->opcode == CPTX_OP_TCGEN05_LD || op->opcode == CPTX_OP_TCGEN05_LD_RED);
}

static bool place(emu_warp *w, const emu_op *op, const move *m, uint32_t mask, tmem_place *at)
{
	const emu_arg *a = emu_named(op, "a");
	uint32_t addr = (uint32_t)emu_address(w, a, (unsigned)__builtin_ctz(mask));

	emu_need_arg(w, op, a, mask, "the address");
	EACH_LANE(l, mask)
		if ((uint32_t)emu_address(w, a, l) != addr) {
			emu_find(w, op, (int)l, CPTX_FIND_OPERAND, "the address is 0x%x here and 0x%x in another lane of the warp",
			         (uint32_t)emu_address(w, a, l), addr);
			return false;
		}
	*at = tmem_place_of(addr);
	uint32_t first = w->number % 4 * WARP;
	if (counts_in_pair(w, at->lane)) {
		at->lane -= TMEM_LANES;
		if (!emu_lenient(
				w, op, EMU_ALL, CPTX_FIND_PEER_LANES,
				"address 0x%x names lane %u, as if tensor memory went on behind the %d lanes of the pair's other CTA; "
				"it must be lane %u",
				addr, at->lane + TMEM_LANES, TMEM_LANES, at->lane))
			return false;
	}
	if (is_of_first_warp(op, at->lane, first)) {
		at->lane += first;
		if (!emu_lenient(w, op, EMU_ALL, CPTX_FIND_FIRST_LANES,
		                 "address 0x%x names lane %u, of warp 0 of a warpgroup; warp %u must name lane %u", addr,
		                 at->lane - first, w->number, at->lane))
			return false;
	}
	if (at->lane < first || at->lane + m->lanes > first + WARP || at->lane % m->lanes) {
		emu_find(
			w, op, EMU_ALL, CPTX_FIND_TMEM_LANES,
			"address 0x%x names lanes %u to %u of tensor memory; warp %u may touch lanes %u to %u alone: bits 16 to 31 of "
			"the address must be %u%s",
			addr, at->lane, at->lane + m->lanes - 1, w->number, first, first + WARP - 1, first,
			m->lanes == WARP ? "" : ", or 16 more");
		return false;
	}
	return tmem_allocated(w, op, w->cta, at->column, m->columns);
}

static void note(emu_warp *w, const emu_op *op, const move *m, tmem_place at, unsigned way)
{
	struct emu_tcgen05 *s = w->tcgen05;
	uint32_t id = tmem_begin(w, op, WARP, false),
			 bands = m->lanes == WARP ? 3u << at.lane / TMEM_BAND : 1u << at.lane / TMEM_BAND;
	tmem_record *r = tmem_record_of(w->cta, id);

	if (!r)
		return;
	race_async_grouped(w->cluster, r->late, &s->way[way].track, s->way[way].groups);
	for (unsigned i = 0; i < m->columns; i++)
		if (m->used[i / 32] >> i % 32 & 1)
			tmem_touch(w, id, w->cta, (tmem_area){ at.column + i, 1, bands, way ? "what it writes" : "what it reads" },
			           way == STORES);
}

static enum emu_step no_memory(emu_warp *w, const emu_op *op)
{
	return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work");
}

static enum emu_step start(emu_warp *w, const emu_op *op, uint32_t mask, unsigned way)
{
	const move *m = (const move *)op->extra;
	struct emu_tcgen05 *s = state_of(w, op);
	size_t words = way ? (size_t)m->f->nreg * WARP : 0;
	tmem_place at;

	if (!frag_whole(w, op, mask) || !s || !place(w, op, m, mask, &at))
		return STEP_FAULT;
	moving *x = NEW_SIZED(moving, sizeof *x + words * sizeof *x->v);
	tmem_load *load = way ? NULL : NEW(tmem_load);
	if (!x || (!way && !load)) {
		free(x);
		free(load);
		return no_memory(w, op);
	}
	s->way[way].groups++;
	note(w, op, m, at, way);
	x->at = at;
	x->a = (emu_async){
		.run = way ? run_store : run_load, .drop = drop, .w = w, .lane = (unsigned)__builtin_ctz(mask), .op = op
	};
	if (way) {
		for (unsigned i = 0; i < m->f->nreg; i++) {
			memcpy(x->v + i * WARP, w->r + arg_slot(m->regs, i), WARP * sizeof *x->v);
			x->defined[i] = *emu_defined(w, arg_slot(m->regs, i));
		}
	} else {
		x->frame = w->g->frame;
		x->frame->refs++;
		*load = (tmem_load){ s->loads, op, w->g->frame, s->way[way].groups };
		s->loads = load;
	}
	s->way[way].busy++;
	return emu_async_start(w->cluster, &x->a) ? STEP_NEXT : STEP_FAULT;
}

static enum emu_step ld(emu_warp *w, const emu_op *op, uint32_t mask) { return start(w, op, mask, LOADS); }
static enum emu_step st(emu_warp *w, const emu_op *op, uint32_t mask) { return start(w, op, mask, STORES); }

static enum emu_step wait(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct emu_tcgen05 *s = w->tcgen05;
	unsigned way = op->m.op == CPTX_WAIT_ST ? STORES : LOADS;

	if (!s)
		return STEP_NEXT;
	if (s->way[way].busy)
		return emu_group_block(w, op, way ? "its tcgen05.st" : "its tcgen05.ld", 0, 0);
	if (!way)
		forget_loads(s, s->way[way].groups);
	race_async_waited(w, mask, &s->way[way].track, s->way[way].groups);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static void shape_of(unsigned shape, cptx_frag *f)
{
	f->m = shape == CPTX_SHAPE_32X32B ? 32 : 16;
	f->n = shape == CPTX_SHAPE_16X64B ? 64 : shape == CPTX_SHAPE_16X128B ? 128 : shape == CPTX_SHAPE_16X256B ? 256 : 32;
}

static bool decode_move(emu_decoder *d, emu_op *op, const emu_arg *regs)
{
	cptx_frag what = { .kind = CPTX_FRAG_TCGEN05, .num = (uint8_t)arch_mods[op->m.num].count };
	move *m = DECODER_NEW(d, move);

	if (!m)
		return false;
	shape_of(op->m.shape, &what);
	what.pack16 = emu_modifier(op, "pack") || emu_modifier(op, "unpack");
	if (op->m.shape == CPTX_SHAPE_16X32BX2)
		what.split = (uint16_t)emu_named(op, "split")->offset;
	if (!(m->f = frag_new(d, op, &what, FRAG_COLS)))
		return false;
	m->regs = regs;
	m->lanes = what.m;
	m->plain = what.m == WARP && !what.pack16;
	for (unsigned i = 0; i < m->f->nreg; i++)
		for (unsigned l = 0; l < WARP; l++)
			for (unsigned s = 0; s < m->f->nslot; s++) {
				unsigned c = ((unsigned)m->f->lane[l] + m->f->reg[i] + m->f->slot[s]) / m->lanes;
				m->used[c / 32] |= UINT32_C(1) << c % 32;
				m->columns = (uint16_t)MAX(m->columns, c + 1);
			}
	op->extra = m;
	op->converge = 1;
	op->flags = OP_SPLITS;
	return true;
}

bool decode_tcgen05_ld(emu_decoder *d, emu_op *op)
{
	op->fn = ld;
	op->f->image->watchers |= WATCH_TCGEN05;
	return decode_move(d, op, &op->arg[0]);
}

bool decode_tcgen05_st(emu_decoder *d, emu_op *op)
{
	op->fn = st;
	return decode_move(d, op, emu_named(op, "b"));
}

bool decode_tcgen05_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = wait;
	op->converge = 1;
	op->flags = OP_SPLITS;
	return true;
}
