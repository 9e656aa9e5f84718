/* SPDX-License-Identifier: MIT */
/* Matrix operands in registers. */
#include "emu/tensor/fragment.h"
#include "emu/core/finding.h"
#include "emu/core/undefined.h"

#include <stdio.h>

static uint16_t number(const cptx_frag_map *m, enum frag_order order, unsigned row, unsigned col)
{
	switch (order) {
	case FRAG_COLS: return (uint16_t)(col * m->rows + row);
	case FRAG_PANELS: return (uint16_t)DOT_B(m->rows, row, col);
	default: return (uint16_t)(row * m->cols + col);
	}
}

/* The sum of the steps of the bits of `n`.  Steps of columns below 8 and others do not carry into one another. */
static uint16_t steps(const cptx_frag_map *m, enum frag_order order, const cptx_frag_step *step, unsigned n)
{
	unsigned sum = 0;

	for (; n; n >>= 1, step++)
		if (n & 1)
			sum += number(m, order, step->row, step->col);
	return (uint16_t)sum;
}

bool frag_make(frag *f, const cptx_frag *what, enum frag_order order)
{
	cptx_frag_map m;

	if (!cptx_frag_resolve(what, &m, NULL) || m.lanes > ARRAY_LEN(f->lane) || m.regs > ARRAY_LEN(f->reg) ||
	    m.slots > ARRAY_LEN(f->slot))
		return false;
	*f = (frag){ .nreg = m.regs, .mask = m.mask, .value = m.value, .nslot = m.slots, .first = m.first, .bits = m.bits };
	for (unsigned i = 0; i < m.lanes; i++)
		f->lane[i] = steps(&m, order, m.lane, i);
	for (unsigned i = 0; i < m.regs; i++)
		f->reg[i] = steps(&m, order, m.reg, i);
	for (unsigned i = 0; i < m.slots; i++)
		f->slot[i] = steps(&m, order, m.slot, i);
	return true;
}

const frag *frag_new(emu_decoder *d, const emu_op *op, const cptx_frag *what, enum frag_order order)
{
	frag *f = DECODER_NEW(d, frag);

	if (f && !frag_make(f, what, order)) {
		emu_refuse(d, op, "the emulator knows no fragment %s m%un%uk%u of %u bits", cptx_frag_kind_name(what->kind), what->m,
		           what->n, what->k, what->bits);
		return NULL;
	}
	return f;
}

bool frag_whole(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (mask == ALL_LANES)
		return true;
	emu_find(w, op, EMU_ALL, CPTX_FIND_DIVERGENT, "lanes 0x%08x of the warp %s; all 32 must execute it", ~mask,
	         ~mask & w->lanes ? "have exited" : "are not there");
	return false;
}

static uint32_t element_mask(const frag *f) { return f->bits >= 32 ? ALL_LANES : (UINT32_C(1) << f->bits) - 1; }

static bool holds(const frag *f, unsigned lane) { return (lane & f->mask) == f->value; }

/* One register of all lanes; `pair`: it has two elements of 16 bits. */
static inline void get_register(const frag *f, const uint32_t *x, const uint16_t *lane, uint32_t *to, bool pair)
{
	uint32_t mask = element_mask(f);

	for (unsigned l = 0; l < WARP; l++) {
		uint32_t *at = to + lane[l], v = x[l] >> f->first * f->bits;
		if (pair) {
			at[0] = v & 0xffff;
			at[f->slot[1]] = v >> 16;
			continue;
		}
		if (!holds(f, l))
			continue;
		at[0] = v & mask;
		for (unsigned s = 1; s < f->nslot; s++)
			at[f->slot[s]] = v >> s * f->bits & mask;
	}
}

void frag_get(const uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t *to)
{
	bool pair = f->nslot == 2 && f->bits == 16 && !f->mask;

	for (unsigned i = 0; i < f->nreg; i++)
		if (pair)
			get_register(f, r + arg_slot(a, i), f->lane + first, to + f->reg[i], true);
		else
			get_register(f, r + arg_slot(a, i), f->lane + first, to + f->reg[i], false);
}

void frag_put(uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, const uint32_t *from)
{
	uint32_t element = element_mask(f);

	for (unsigned i = 0; i < f->nreg; i++) {
		uint32_t slot = arg_slot(a, i), *x = r + slot;
		if (!slot)
			continue;
		EACH_LANE(l, mask) {
			const uint32_t *at = from + f->lane[first + l] + f->reg[i];
			uint32_t v = at[0] & element;
			for (unsigned s = 1; s < f->nslot; s++)
				v |= (at[f->slot[s]] & element) << s * f->bits;
			x[l] = v;
		}
	}
}

void frag_get64(const uint32_t *r, const emu_arg *a, const frag *f, uint64_t *to)
{
	for (unsigned i = 0; i < f->nreg; i++) {
		const uint64_t *x = (const uint64_t *)(const void *)(r + arg_slot(a, i));
		for (unsigned l = 0; l < WARP; l++)
			to[f->lane[l] + f->reg[i]] = x[l];
	}
}

void frag_put64(uint32_t *r, const emu_arg *a, const frag *f, uint32_t mask, const uint64_t *from)
{
	for (unsigned i = 0; i < f->nreg; i++) {
		uint32_t slot = arg_slot(a, i);
		uint64_t *x = (uint64_t *)(void *)(r + slot);
		if (slot)
			EACH_LANE(l, mask)
				x[l] = from[f->lane[l] + f->reg[i]];
	}
}

/* ---- what is defined ---- */

enum { DEFINED = -2 /* from the place of a register to the mask of lanes where it is defined */ };

/* Where an element lies in its register. */
static uint64_t slot_bits(const frag *f, unsigned slot)
{
	return f->bits > 32 ? ~UINT64_C(0) : (uint64_t)element_mask(f) << (f->first + slot) * f->bits;
}

bool frag_defined(const uint32_t *r, const emu_arg *a, uint32_t mask)
{
	uint32_t all = mask;

	for (unsigned i = 0; i < arg_count(a); i++)
		if (arg_slot(a, i))
			all &= (r + arg_slot(a, i))[DEFINED];
	return all == mask;
}

void frag_undefined(const uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, uint8_t *bad)
{
	for (unsigned i = 0; i < f->nreg; i++) {
		uint32_t missing = arg_slot(a, i) ? mask & ~(r + arg_slot(a, i))[DEFINED] : 0;
		EACH_LANE(l, missing) {
			uint64_t bits = emu_missing_of(r, arg_slot(a, i), f->bits > 32 ? 64 : 32, l).bits[0];
			for (unsigned s = 0; s < f->nslot; s++)
				if (bits & slot_bits(f, s))
					bad[f->lane[first + l] + f->reg[i] + f->slot[s]] = 1;
		}
	}
}

void frag_define(uint32_t *r, const emu_arg *a, const frag *f, unsigned first, uint32_t mask, const uint8_t *bad)
{
	for (unsigned i = 0; i < f->nreg; i++) {
		uint32_t slot = arg_slot(a, i);
		if (!slot)
			continue;
		(r + slot)[DEFINED] |= mask;
		EACH_LANE(l, bad ? mask : 0) {
			emu_missing m = { .copied = true };
			for (unsigned s = 0; s < f->nslot; s++)
				if (bad[f->lane[first + l] + f->reg[i] + f->slot[s]])
					m.bits[0] |= slot_bits(f, s);
			emu_miss(r, slot, f->bits > 32 ? 64 : 32, l, m);
		}
	}
}

/* ---- sparse A ---- */

/* The j-th stored element of a row; `code`: of its group of metadata. */
static bool place_of(unsigned bits, bool ordered, const uint32_t *code, unsigned j, uint16_t *at)
{
	unsigned pair = bits == 4 ? j / 2 : j, within = bits == 4 ? j % 2 : 0, size = bits == 4 ? 2 : 1;

	if (bits == 32) { /* tf32: one of two */
		*at = (uint16_t)(2 * j + (*code == 0xe));
		return *code == 0xe || *code == 4;
	}
	const uint32_t *two = code - pair % 2;
	*at = (uint16_t)((pair / 2 * 4 + *code) * size + within);
	return ordered ? two[0] < two[1] : two[0] != two[1];
}

bool frag_places(emu_warp *w, const emu_op *op, const dot_shape *s, unsigned rows, unsigned bits, bool ordered,
                 const uint32_t *code, uint16_t *at)
{
	unsigned per = bits == 4 ? 2 : 1, cols = s->ka / per;

	for (unsigned i = 0; i < rows * s->ka; i++) {
		const uint32_t *c = &code[i / s->ka * cols + i % s->ka / per];
		if (place_of(bits, ordered, c, i % s->ka, &at[i]))
			continue;
		emu_find(w, op, EMU_ALL, CPTX_FIND_OPERAND, "metadata of row %u, stored element %u: code %u %s", i / s->ka,
		         i % s->ka, *c,
		         bits == 32 ? "is neither 4 nor 14"
		         : ordered  ? "and its neighbour's do not ascend"
		                    : "is its neighbour's too");
		return false;
	}
	return true;
}

bool frag_in_span(emu_warp *w, const emu_op *op, const char *what, const cptx_smem_desc *d, cptx_smem_elem e, unsigned k)
{
	const cptx_swizzle_info *s = cptx_swizzle_get(d->swizzle);
	unsigned bytes = e.padded ? k : k * e.bits / 8, from = d->start % s->span;

	if (!d->swizzle || e.mn_major || d->lbo_is_address || from + bytes <= s->span)
		return true;
	emu_find(w, op, EMU_ALL, CPTX_FIND_DESCRIPTOR,
	         "of %s: start 0x%x, swizzle %s: the %u bytes of a row begin at byte %u of the %u that the swizzle covers, and "
	         "go past "
	         "them",
	         what, d->start, s->name, bytes, from, s->span);
	return false;
}

bool mnk_of(const char *name, mnk *s) { return sscanf(name, "m%un%uk%u", &s->m, &s->n, &s->k) == 3; }
