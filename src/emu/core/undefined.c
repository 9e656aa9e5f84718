/* SPDX-License-Identifier: MIT */
/*
 * Registers of which some bits only are undefined: undefined.h.
 *
 * What becomes of such bits is found out by trying: the instruction is executed with the undefined bits of its operands as
 * zeros and as ones, and a bit of the result that is the same each time does not depend on them.  That is exact where
 * each bit of the result follows from one bit of each operand, which the table below promises of an instruction.
 */
#include "arch/arch.h"
#include "emu/core/undefined.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

/* ---- what is kept ---- */

static emu_frame *frame_of(const uint32_t *r) { return ((emu_frame *const *)(const void *)r)[-1]; }

static emu_hole *hole_of(const uint32_t *r, uint32_t slot)
{
	return r[slot - 1] ? frame_of(r)->hole[r[slot - 1] - 1] : NULL;
}

static emu_hole *new_hole(emu_frame *f, uint32_t slot)
{
	if (!array_room(&f->hole, f->nhole, &f->cap_hole, sizeof *f->hole, 4))
		return NULL;
	emu_hole *h = NEW(emu_hole);
	if (!h)
		return NULL;
	memset(h->bits, 0xff, sizeof h->bits);
	f->hole[f->nhole++] = h;
	f->r[slot - 1] = f->nhole;
	return h;
}

void emu_holes_free(emu_frame *f)
{
	for (uint32_t i = 0; i < f->nhole; i++)
		free(f->hole[i]);
	free(f->hole);
}

static uint64_t width(unsigned bits) { return bits >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1; }

emu_missing emu_missing_of(const uint32_t *r, uint32_t slot, unsigned bits, unsigned lane)
{
	const emu_hole *h = hole_of(r, slot);
	uint64_t all = width(bits), high = bits > 64 ? ~UINT64_C(0) : 0;

	if (r[slot - 2] >> lane & 1)
		return (emu_missing){ .copied = true };
	return h ? (emu_missing){ { h->bits[0][lane] & all, h->bits[1][lane] & high }, h->copied >> lane & 1 }
	         : (emu_missing){ { all, high }, true };
}

void emu_forget_parts(const uint32_t *r, uint32_t slot, uint32_t lanes)
{
	emu_hole *h = hole_of(r, slot);

	h->copied |= lanes;
	EACH_LANE(l, lanes)
		h->bits[0][l] = h->bits[1][l] = ~UINT64_C(0);
}

void emu_miss(uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, emu_missing m)
{
	emu_hole *h = hole_of(r, slot);
	uint32_t one = UINT32_C(1) << lane;
	emu_frame *f = frame_of(r);

	m.bits[0] &= width(bits);
	m.bits[1] &= bits > 64 ? ~UINT64_C(0) : 0;
	if (!(m.bits[0] | m.bits[1])) {
		r[slot - 2] |= one;
		return;
	}
	r[slot - 2] &= ~one;
	if (!h && m.copied && m.bits[0] == width(bits) && (bits <= 64 || !~m.bits[1]))
		return;
	if (!h && !(h = new_hole(f, slot))) {
		f->w->cluster->no_memory = f->w->cluster->failed = true;
		return;
	}
	h->bits[0][lane] = m.bits[0];
	h->bits[1][lane] = m.bits[1];
	h->copied = (h->copied & ~one) | (uint32_t)m.copied << lane;
}

emu_missing emu_missing_bytes(const emu_place *p, uint32_t size, uint32_t sign)
{
	emu_missing m = { .copied = true };
	emu_place q = *p;

	for (uint32_t i = 0; i < size; i++, q.offset++)
		if (emu_all_undefined(&q, 1))
			m.bits[i / 8] |= UINT64_C(0xff) << i % 8 * 8;
	if (sign && m.bits[0] >> (sign - 1) & 1)
		m.bits[0] |= ~UINT64_C(0) << (sign - 1);
	return m;
}

bool emu_is_padding(emu_missing m, uint32_t size)
{
	uint64_t low = width(size * 8), high = size < 16 ? 0 : ~UINT64_C(0);
	bool none = !(m.bits[0] & low) && !(m.bits[1] & high), all = !(~m.bits[0] & low) && !(~m.bits[1] & high);

	return none || (m.copied && !all);
}

void emu_miss_bytes(const emu_place *p, uint32_t size, emu_missing m)
{
	emu_place q = *p;

	for (uint32_t i = 0; i < size; i++, q.offset++)
		if (m.bits[i / 8] >> i % 8 * 8 & 0xff)
			emu_set_defined(&q, 1, false);
}

/* ---- what becomes of them ---- */

enum {
	TRIED = 1,  /* bit by bit: trying finds it out */
	MOVED = 2,  /* the same, and nothing is calculated: padding stays padding */
	UPWARD = 3, /* a carry goes from each bit to all above it */
	CHOICE = 4  /* a comparison that a predicate may overrule */
};

/* whole: bits of those operands (of the registers read, from 0 on) that decide on all others. */
static const struct {
	uint16_t op;
	uint8_t how, whole;
} flows[] = {
	{ CPTX_OP_MOV, MOVED, 0 },   { CPTX_OP_SELP, MOVED, 4 },      { CPTX_OP_SLCT, MOVED, 4 },
	{ CPTX_OP_PRMT, MOVED, 4 },  { CPTX_OP_AND, TRIED, 0 },       { CPTX_OP_OR, TRIED, 0 },
	{ CPTX_OP_XOR, TRIED, 0 },   { CPTX_OP_NOT, TRIED, 0 },       { CPTX_OP_LOP3, TRIED, 0 },
	{ CPTX_OP_SHL, TRIED, 2 },   { CPTX_OP_SHR, TRIED, 2 },       { CPTX_OP_SHF, TRIED, 4 },
	{ CPTX_OP_BFE, TRIED, 6 },   { CPTX_OP_BFI, TRIED, 12 },      { CPTX_OP_SZEXT, TRIED, 2 },
	{ CPTX_OP_BREV, TRIED, 0 },  { CPTX_OP_CVT, TRIED, 0 },       { CPTX_OP_ADD, UPWARD, 0 },
	{ CPTX_OP_SUB, UPWARD, 0 },  { CPTX_OP_NEG, UPWARD, 0 },      { CPTX_OP_MUL, UPWARD, 0 },
	{ CPTX_OP_MAD, UPWARD, 0 },  { CPTX_OP_MUL_WIDE, UPWARD, 0 }, { CPTX_OP_MAD_WIDE, UPWARD, 0 },
	{ CPTX_OP_SETP, CHOICE, 0 },
};

static bool is_integer(unsigned type) { return !type || arch_is_integer(type); }

void emu_flow(emu_op *op)
{
	const emu_mods *m = &op->m;
	bool integer = is_integer(m->type) && is_integer(m->dtype) && is_integer(m->atype) && !m->sat && m->mode != CPTX_HI;

	for (size_t i = 0; i < ARRAY_LEN(flows); i++)
		if (flows[i].op == op->opcode && (integer || flows[i].how == MOVED || flows[i].how == CHOICE)) {
			op->flow = flows[i].how;
			op->whole = flows[i].whole;
		}
}

void emu_lane_get(const uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, uint64_t v[2])
{
	const uint64_t *wide = (const uint64_t *)(const void *)(r + slot);

	v[0] = bits == 1 ? r[slot] >> lane & 1 : bits <= 32 ? r[slot + lane] : wide[lane];
	v[1] = bits > 64 ? wide[lane + WARP] : 0;
}

void emu_lane_put(uint32_t *r, uint32_t slot, unsigned bits, unsigned lane, const uint64_t v[2])
{
	uint64_t *wide = (uint64_t *)(void *)(r + slot);

	if (bits == 1)
		r[slot] = (r[slot] & ~(UINT32_C(1) << lane)) | (uint32_t)(v[0] & 1) << lane;
	else if (bits <= 32)
		r[slot + lane] = (uint32_t)v[0];
	else
		wide[lane] = v[0];
	if (bits > 64)
		wide[lane + WARP] = v[1];
}

enum { MOST_REGISTERS = 16, MOST_TRIED = 4 /* at a time */ };

/* An instruction and a lane, while it is tried. */
typedef struct trial {
	emu_warp *w;
	const emu_op *op;
	unsigned lane, n;                     /* registers */
	uint64_t was[MOST_REGISTERS][2];      /* of the instruction, definitions first */
	unsigned hole[MOST_REGISTERS], nhole; /* numbers of those that miss some bits, */
	emu_missing missing[MOST_REGISTERS];  /* and which */
	uint64_t first[MOST_REGISTERS][2];    /* results of the first try */
	emu_missing result[MOST_REGISTERS];
} trial;

static unsigned bits_of(const emu_op *op, unsigned i) { return op->regs[op->ndef + op->nuse + i]; }

/* `ones`: in which of the holes the missing bits are ones. */
static void try_once(trial *t, uint32_t ones, bool first)
{
	uint32_t *r = t->w->r;

	for (unsigned i = 0; i < t->nhole; i++) {
		unsigned at = t->hole[i];
		uint64_t v[2];
		for (unsigned h = 0; h < 2; h++)
			v[h] = (t->was[at][h] & ~t->missing[i].bits[h]) | (ones >> i & 1 ? t->missing[i].bits[h] : 0);
		emu_lane_put(r, t->op->regs[at], bits_of(t->op, at), t->lane, v);
	}
	(t->op->plain ? t->op->plain : t->op->fn)(t->w, t->op, UINT32_C(1) << t->lane);
	for (unsigned i = 0; i < t->op->ndef; i++) {
		uint64_t v[2];
		emu_lane_get(r, t->op->regs[i], bits_of(t->op, i), t->lane, v);
		for (unsigned h = 0; h < 2; h++) {
			t->first[i][h] = first ? v[h] : t->first[i][h];
			t->result[i].bits[h] |= v[h] ^ t->first[i][h];
		}
	}
	for (unsigned i = 0; i < t->n; i++)
		emu_lane_put(r, t->op->regs[i], bits_of(t->op, i), t->lane, t->was[i]);
}

static void try_all(trial *t)
{
	bool together = t->nhole <= MOST_TRIED;
	uint32_t n = together ? UINT32_C(1) << t->nhole : t->nhole + 1;

	for (uint32_t i = 0; i < n; i++)
		try_once(t, together ? i : i ? UINT32_C(1) << (i - 1) : 0, !i);
}

static void fill(trial *t, uint64_t bits)
{
	for (unsigned i = 0; i < t->op->ndef; i++)
		t->result[i] = (emu_missing){ { bits, bits }, true };
}

/* Fills in what the registers hold and which bits of the inputs are undefined. */
static void find_holes(trial *t)
{
	const emu_op *op = t->op;

	for (unsigned i = 0; i < t->n; i++)
		emu_lane_get(t->w->r, op->regs[i], bits_of(op, i), t->lane, t->was[i]);
	for (unsigned i = op->ndef; i < t->n; i++) {
		bool before = false;
		emu_missing m = emu_missing_of(t->w->r, op->regs[i], bits_of(op, i), t->lane);
		for (unsigned j = 0; j < t->nhole; j++)
			before |= op->regs[t->hole[j]] == op->regs[i];
		if ((m.bits[0] | m.bits[1]) && !before) {
			t->missing[t->nhole] = m;
			t->hole[t->nhole++] = i;
		}
	}
}

static uint64_t from_lowest(const trial *t)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < t->nhole; i++)
		any |= t->missing[i].bits[0];
	return any | (0 - any);
}

static void one_lane(trial *t)
{
	const emu_op *op = t->op;
	bool decides = false, copied = op->flow == MOVED;

	find_holes(t);
	for (unsigned i = 0; i < t->nhole; i++) {
		decides |= op->whole >> (t->hole[i] - op->ndef) & 1;
		copied &= t->missing[i].copied;
	}
	if (op->flow == UPWARD) {
		fill(t, from_lowest(t));
	} else if (decides) {
		fill(t, ~UINT64_C(0));
	} else if (op->flow == CHOICE) { /* only the predicate can be tried: what is compared is as if it were known */
		bool compared = t->nhole > 1 || bits_of(op, t->hole[0]) > 1;
		bool last = t->nhole && t->hole[t->nhole - 1] == t->n - 1u && bits_of(op, t->n - 1u) == 1;
		bool c = t->was[t->n - 1][0] ^ op->arg[4].negated, rules = op->m.boolop == CPTX_OR ? c : !c;
		if (!compared)
			try_all(t);
		else
			fill(t, op->m.boolop && op->m.boolop != CPTX_XOR && !last && rules ? 0 : ~UINT64_C(0));
	} else {
		try_all(t);
	}
	for (unsigned i = 0; i < op->ndef; i++) {
		t->result[i].copied = op->flow == MOVED ? copied : t->result[i].copied && !op->flow;
		emu_miss(t->w->r, op->regs[i], bits_of(op, i), t->lane, t->result[i]);
	}
}

void emu_trace_undefined(emu_warp *w, const emu_op *op, uint32_t lanes)
{
	unsigned n = op->ndef + op->nuse;

	if (!op->flow || n > MOST_REGISTERS) {
		for (unsigned i = 0; i < op->ndef; i++)
			emu_define(w, op->regs[i], lanes, 0);
		return;
	}
	EACH_LANE(l, lanes) {
		trial t = { .w = w, .op = op, .lane = l, .n = n };
		one_lane(&t);
	}
}
