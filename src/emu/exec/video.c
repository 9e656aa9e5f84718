/* SPDX-License-Identifier: MIT */
/* Video: arithmetic of bytes and halves of 32-bit registers. */
#include "emu/exec/scalar.h"

__extension__ typedef __int128 num_s128; /* products of 33 bits each */

static bool is_signed(unsigned type) { return type == CPTX_S32; }

static int64_t clamp(int64_t x, bool with_sign, unsigned bits)
{
	int64_t least = with_sign ? -(INT64_C(1) << (bits - 1)) : 0;
	int64_t most = (INT64_C(1) << (with_sign ? bits - 1 : bits)) - 1;

	return x < least ? least : MIN(x, most);
}

/* Element `index` of a row of elements of so many bits. */
static int64_t element(uint64_t row, unsigned type, unsigned bits, unsigned index)
{
	uint64_t x = row >> bits * index << (64 - bits);

	return is_signed(type) ? (int64_t)x >> (64 - bits) : (int64_t)(x >> (64 - bits));
}

/* ---- selectors ---- */

static unsigned part_bits(const emu_arg *a) { return !(a->select & SELECTED) ? 32 : a->select & SELECTED_H ? 16 : 8; }
static unsigned digits(const emu_arg *a) { return a->select & SELECTED_DIGITS; }
/* Digit i of a selector, the first one written being 0. */
static unsigned digit(const emu_arg *a, unsigned i) { return (unsigned)((uint64_t)a->offset >> 3 * i & 7); }

static int64_t part(const emu_arg *a, unsigned type, uint64_t v)
{
	return element(v, type, part_bits(a), digits(a) ? digit(a, 0) : 0);
}

/* Element i of the n that an operand selects out of those of a, and of b above them; without a selector its own. */
static int64_t chosen(const emu_arg *a, unsigned type, const uint64_t *v, unsigned n, unsigned i, unsigned own)
{
	return element(v[1] << 32 | (uint32_t)v[0], type, 32 / n, digits(a) ? digit(a, n - 1 - i) : own * n + i);
}

static bool is_masked_in(const emu_arg *d, unsigned i)
{
	bool in = !digits(d);

	for (unsigned k = 0; k < digits(d); k++)
		in |= digit(d, k) == i;
	return in;
}

/* ---- what is calculated ---- */

static bool holds(unsigned cmp, int64_t a, int64_t b)
{
	switch (cmp) {
	case CPTX_EQ: return a == b;
	case CPTX_NE: return a != b;
	case CPTX_LT: return a < b;
	case CPTX_LE: return a <= b;
	case CPTX_GT: return a > b;
	default: return a >= b;
	}
}

static unsigned shift_of(unsigned mode, int64_t b) { return (unsigned)(mode == CPTX_WRAP ? b & 31 : MIN(b, 32)); }

/* Of a, b with their signs, before saturation. */
static int64_t of_two(const emu_op *op, int64_t a, int64_t b)
{
	switch (op->opcode) {
	case CPTX_OP_VADD:
	case CPTX_OP_VADD2:
	case CPTX_OP_VADD4: return a + b;
	case CPTX_OP_VSUB:
	case CPTX_OP_VSUB2:
	case CPTX_OP_VSUB4: return a - b;
	case CPTX_OP_VABSDIFF:
	case CPTX_OP_VABSDIFF2:
	case CPTX_OP_VABSDIFF4: return a > b ? a - b : b - a;
	case CPTX_OP_VMIN:
	case CPTX_OP_VMIN2:
	case CPTX_OP_VMIN4: return MIN(a, b);
	case CPTX_OP_VMAX:
	case CPTX_OP_VMAX2:
	case CPTX_OP_VMAX4: return MAX(a, b);
	case CPTX_OP_VAVRG2:
	case CPTX_OP_VAVRG4: return (a + b + (a + b >= 0)) >> 1;
	case CPTX_OP_VSHL: return (int64_t)((uint64_t)a << shift_of(op->m.mode, b));
	case CPTX_OP_VSHR: return a >> shift_of(op->m.mode, b);
	default: return holds(op->m.cmp, a, b); /* vset */
	}
}

/* ---- parts of registers ---- */

/*
 * Where a form is refused, ptxas 13.0 makes something else of it for sm_90 than the manual's formula, in an H200's results
 * of 128 operands each: it puts the upper half of the result into .h1, compares unsigned results for .min and .max with
 * signs, clamps sums of mixed signs at one end, and takes c of vmad for a signed number.
 */
#define REFUSED(what)                                                                                                       \
	emu_refuse(d, op, "the emulator does not execute this form: GPUs give other results than the manual's formula for " what)

static uint64_t scalar_video(const emu_op *op, const struct num_mode *m, const uint64_t *v)
{
	const emu_arg *d = &op->arg[0];
	unsigned dtype = op->m.dtype ? op->m.dtype : CPTX_U32, bits = part_bits(d);
	int64_t x = of_two(op, part(&op->arg[1], op->m.atype, v[0]), part(&op->arg[2], op->m.btype, v[1]));

	if (m->sat)
		x = clamp(x, is_signed(dtype), bits);
	if (bits < 32) { /* the rest is that of c */
		unsigned at = bits * digit(d, 0);
		uint32_t mask = ((UINT32_C(1) << bits) - 1) << at;
		return ((uint32_t)v[2] & ~mask) | ((uint32_t)x << at & mask);
	}
	return (uint32_t)x + (op->m.op ? (uint32_t)v[2] : 0);
}

bool decode_video(emu_decoder *d, emu_op *op)
{
	const emu_arg *to = &op->arg[0];
	const bool within = part_bits(to) < 32, upper = part_bits(to) == 16 && digit(to, 0);
	const bool mixed = op->m.dtype != op->m.atype || op->m.dtype != op->m.btype;

	if (upper)
		return REFUSED("the upper half, .h1, of d");
	if (op->m.op && op->m.op != CPTX_ADD)
		return REFUSED(".min and .max of the result and c");
	if (op->m.sat && within)
		return REFUSED(".sat into a part of d");
	if (op->m.sat && op->m.op)
		return REFUSED(".sat with .add of c");
	if (op->m.sat && op->opcode == CPTX_OP_VSHL)
		return REFUSED("vshl with .sat");
	if (op->m.sat && op->opcode == CPTX_OP_VADD && mixed)
		return REFUSED("vadd with .sat of types that are not all the same");
	return scalar_decode(d, op, scalar_video);
}

/* op->imm: the shift, and what .po adds. */
static uint64_t mad_video(const emu_op *op, const struct num_mode *m, const uint64_t *v)
{
	const emu_arg *a = &op->arg[1], *b = &op->arg[2], *c = &op->arg[3];
	const bool minus = a->negated != b->negated;
	num_s128 x = (num_s128)part(a, op->m.atype, v[0]) * part(b, op->m.btype, v[1]);
	const int64_t added = element(v[2], CPTX_S32, 32, 0); /* modulo 2^32 it is the same for unsigned ones */

	x = (minus ? -x : x) + (c->negated ? -added : added) + op->imm[1];
	x >>= op->imm[0];
	if (!m->sat)
		return (uint32_t)x;
	return (uint32_t)clamp(x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x, true, 32);
}

bool decode_vmad(emu_decoder *d, emu_op *op)
{
	const unsigned scale = emu_modifier(op, "scale");
	const bool is_unsigned = !is_signed(op->m.atype) || !is_signed(op->m.btype) || !is_signed(op->m.dtype);

	if (is_unsigned && (scale || op->m.sat))
		return REFUSED("vmad with .sat, .shr7 or .shr15 of which a type is unsigned");
	op->imm[0] = scale == CPTX_SHR7 ? 7 : scale == CPTX_SHR15 ? 15 : 0;
	op->imm[1] = emu_modifier(op, "po") != 0;
	return scalar_decode(d, op, mad_video);
}

/* ---- 2 halves or 4 bytes at once ---- */

static uint64_t row_video(const emu_op *op, const struct num_mode *m, const uint64_t *v)
{
	const emu_arg *d = &op->arg[0];
	unsigned n = (unsigned)op->imm[0], bits = 32 / n, dtype = op->m.dtype ? op->m.dtype : CPTX_U32;
	bool sums = op->imm[1];
	uint32_t r = (uint32_t)v[2];

	for (unsigned i = 0; i < n; i++) {
		if (!is_masked_in(d, i))
			continue;
		int64_t x = of_two(op, chosen(&op->arg[1], op->m.atype, v, n, i, 0), chosen(&op->arg[2], op->m.btype, v, n, i, 1));
		if (m->sat)
			x = clamp(x, is_signed(dtype), bits);
		uint32_t mask = ((UINT32_C(1) << bits) - 1) << bits * i;
		r = sums ? r + (uint32_t)x : (r & ~mask) | ((uint32_t)x << bits * i & mask);
	}
	return r;
}

static bool decode_row(emu_decoder *d, emu_op *op, unsigned n)
{
	op->imm[0] = n;
	op->imm[1] = emu_modifier(op, "add") != 0;
	return scalar_decode(d, op, row_video);
}

bool decode_video2(emu_decoder *d, emu_op *op) { return decode_row(d, op, 2); }
bool decode_video4(emu_decoder *d, emu_op *op) { return decode_row(d, op, 4); }
