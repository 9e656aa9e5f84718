/* SPDX-License-Identifier: MIT */
/* Video: arithmetic of the bytes and halves of 32-bit registers, all at once. */
#include "emu/exec/scalar.h"

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

static unsigned digits(const emu_arg *a) { return a->select & SELECTED_DIGITS; }
/* Digit i of a selector, the first one written being 0. */
static unsigned digit(const emu_arg *a, unsigned i) { return (unsigned)((uint64_t)a->offset >> 3 * i & 7); }

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

/* Of a, b with their signs, before saturation. */
static int64_t of_two(const emu_op *op, int64_t a, int64_t b)
{
	switch (op->opcode) {
	case CPTX_OP_VADD2:
	case CPTX_OP_VADD4: return a + b;
	case CPTX_OP_VSUB2:
	case CPTX_OP_VSUB4: return a - b;
	case CPTX_OP_VABSDIFF2:
	case CPTX_OP_VABSDIFF4: return a > b ? a - b : b - a;
	case CPTX_OP_VMIN2:
	case CPTX_OP_VMIN4: return MIN(a, b);
	case CPTX_OP_VMAX2:
	case CPTX_OP_VMAX4: return MAX(a, b);
	case CPTX_OP_VAVRG2:
	case CPTX_OP_VAVRG4: return (a + b + (a + b >= 0)) >> 1;
	default: return holds(op->m.cmp, a, b); /* vset2, vset4 */
	}
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
