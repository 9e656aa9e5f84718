/* SPDX-License-Identifier: MIT */
/* Logic, shifts, bytes. */
#include "emu/exec/scalar.h"

/* ---- and, or, xor, not: of predicates a word at once ---- */

/* known: where a result is, of what is known of a and b. */
#define LOGIC(name, expr, known)                                                                                            \
	ALU2(name##_32, uint32_t, uint32_t, expr)                                                                               \
	ALU2(name##_64, uint64_t, uint64_t, expr)                                                                               \
	static enum emu_step name##_pred(emu_warp *w, const emu_op *op, uint32_t mask)                                          \
	{                                                                                                                       \
		uint32_t a = emu_pred(w, &op->arg[1]), b = emu_pred(w, &op->arg[2]);                                                \
		uint32_t has_a = *emu_defined(w, op->arg[1].slot), has_b = *emu_defined(w, op->arg[2].slot);                        \
		emu_set_pred(w, op->arg[0].slot, mask, expr);                                                                       \
		emu_define(w, op->arg[0].slot, mask, (has_a & has_b) | (known));                                                    \
		return STEP_NEXT;                                                                                                   \
	}                                                                                                                       \
	bool decode_##name(emu_decoder *d, emu_op *op) { return decode_logic(d, op, name##_32, name##_64, name##_pred); }

static bool decode_logic(emu_decoder *d, emu_op *op, emu_fn narrow, emu_fn wide, emu_fn pred)
{
	unsigned bits = arch_types[op->m.type].bits;

	(void)d;
	op->flags = bits == 1 ? OP_QUIET : OP_PURE;
	op->fn = bits == 1 ? pred : bits == 64 ? wide : narrow;
	return true;
}

LOGIC(and, a &b, (has_a & ~a) | (has_b & ~b))
LOGIC(or, a | b, (has_a & a) | (has_b & b))
LOGIC(xor, a ^ b, 0)

ALU1(not_16, uint32_t, uint32_t, a ^ 0xffff)
ALU1(not_32, uint32_t, uint32_t, ~a)
ALU1(not_64, uint64_t, uint64_t, ~a)
static enum emu_step not_pred(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_set_pred(w, op->arg[0].slot, mask, ~emu_pred(w, &op->arg[1]));
	emu_define(w, op->arg[0].slot, mask, *emu_defined(w, op->arg[1].slot));
	return STEP_NEXT;
}

bool decode_not(emu_decoder *d, emu_op *op)
{
	return decode_logic(d, op, arch_types[op->m.type].bits == 16 ? not_16 : not_32, not_64, not_pred);
}

SCALAR(cnot, !v[0])

/* ---- lop3 ---- */

static inline uint32_t lut_term(uint32_t lut, unsigned i) { return lut >> i & 1 ? UINT32_MAX : 0; }

static enum emu_step lop3(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t *d = emu_reg32(w, op, 0), lut = (uint32_t)op->imm[0];
	const uint32_t *a = emu_reg32(w, op, 1), *b = emu_reg32(w, op, 2), *c = emu_reg32(w, op, 3);
	uint32_t f[8];

	for (unsigned i = 0; i < 8; i++)
		f[i] = lut_term(lut, i);
	/* A tree of choices: by a, then b, then c. */
	LANES(l, mask, uint32_t x = a[l]; uint32_t y = b[l]; uint32_t z = c[l]; uint32_t ab = (f[7] & z) | (f[6] & ~z);
	      uint32_t an = (f[5] & z) | (f[4] & ~z); uint32_t nb = (f[3] & z) | (f[2] & ~z);
	      uint32_t nn = (f[1] & z) | (f[0] & ~z); d[l] = (x & ((y & ab) | (~y & an))) | (~x & ((y & nb) | (~y & nn))));
	return STEP_NEXT;
}

bool decode_lop3(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->imm[0] = emu_named(op, "lut")->offset;
	op->fn = op->arg[0].kind == ARG_SINK ? exec_nothing : lop3;
	return true;
}

static enum emu_step lop3_p(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const struct scalar *s = (const struct scalar *)op->extra;
	uint64_t v[SCALAR_INPUTS];
	uint32_t p = 0, c0 = emu_pred(w, emu_named(op, "c0"));

	EACH_LANE(l, mask) {
		scalar_gather(w, s, l, v);
		uint32_t r = num_lop3((uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (unsigned)v[3]);
		p |= (uint32_t)(r != 0) << l;
		if (op->arg[0].kind == ARG_REG)
			emu_put(w, op->arg[0].slot, 32, l, r);
	}
	emu_set_pred(w, op->arg[1].slot, mask, op->m.boolop == CPTX_OR ? p | c0 : p & c0);
	return STEP_NEXT;
}

bool decode_lop3_p(emu_decoder *d, emu_op *op)
{
	op->fn = lop3_p;
	return scalar_inputs(d, op);
}

/* ---- shifts ---- */

ALU2(shl_16, uint32_t, uint32_t, b > 15 ? 0 : a << b & 0xffff)
ALU2(shl_32, uint32_t, uint32_t, b > 31 ? 0 : a << b)
ALU2(shr_u32, uint32_t, uint32_t, b > 31 ? 0 : a >> b) /* of 16 bits too */
ALU2(shr_s32, uint32_t, uint32_t, (uint32_t)((int32_t)a >> (b > 31 ? 31 : b)))

/* By the same amount in all lanes: a constant that is below the width. */
#define SHIFT(name, type, expr)                                                                                             \
	static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                                 \
	{                                                                                                                       \
		type *d = LANE_REG(type, w, op, 0);                                                                                 \
		const type *pa = LANE_REG(type, w, op, 1);                                                                          \
		unsigned b = (unsigned)op->imm[0];                                                                                  \
		LANES(l, mask, type a = pa[l]; d[l] = (type)(expr));                                                                \
		return STEP_NEXT;                                                                                                   \
	}
SHIFT(shl_32_by, uint32_t, a << b)
SHIFT(shl_64_by, uint64_t, a << b)
SHIFT(shr_u32_by, uint32_t, a >> b)
SHIFT(shr_s32_by, uint32_t, (int32_t)a >> b)
SHIFT(shr_u64_by, uint64_t, a >> b)
SHIFT(shr_s64_by, uint64_t, (int64_t)a >> b)

static bool by_constant(emu_op *op, const struct fast *row)
{
	cptx_val b = ir_operand(op->f->k, op->item, 2);

	op->imm[0] = b.i;
	return b.kind == CPTX_VAL_INT && b.i >= 0 && b.i < arch_types[op->m.type].bits && fast_decode(op, row);
}

SCALAR_CALC(shl, num_shl(op->m.type, v[0], (uint32_t)v[1]))
bool decode_shl(emu_decoder *d, emu_op *op)
{
	static const struct fast by[] = { { FAST_U32, shl_32_by }, { FAST_U64, shl_64_by }, { 0 } };
	static const struct fast rows[] = { { FAST_U32, shl_32 }, { FAST_U16, shl_16 }, { 0 } };

	return by_constant(op, by) || fast_decode(op, rows) || scalar_decode(d, op, calc_shl);
}

SCALAR_CALC(shr, num_shr(op->m.type, v[0], (uint32_t)v[1]))
bool decode_shr(emu_decoder *d, emu_op *op)
{
	static const struct fast by[] = {
		{ FAST_U32, shr_u32_by }, { FAST_S32, shr_s32_by }, { FAST_U64, shr_u64_by }, { FAST_S64, shr_s64_by }, { 0 }
	};
	static const struct fast rows[] = { { FAST_U32 | FAST_U16, shr_u32 }, { FAST_S32, shr_s32 }, { 0 } };

	return by_constant(op, by) || fast_decode(op, rows) || scalar_decode(d, op, calc_shr);
}

ALU3(shf_l_wrap, uint32_t, uint32_t, (uint32_t)(((uint64_t)b << 32 | a) >> (32 - (c & 31))))
ALU3(shf_r_wrap, uint32_t, uint32_t, (uint32_t)(((uint64_t)b << 32 | a) >> (c & 31)))
SCALAR_CALC(shf, num_shf(op->m.dir, op->m.mode, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]))
bool decode_shf(emu_decoder *d, emu_op *op)
{
	if (!scalar_decode(d, op, calc_shf))
		return false;
	if (op->m.mode == CPTX_WRAP && op->arg[0].kind == ARG_REG)
		op->fn = op->m.dir == CPTX_L ? shf_l_wrap : shf_r_wrap;
	return true;
}

ALU3(prmt_digits, uint32_t, uint32_t, num_prmt(0, a, b, c))
SCALAR_CALC(prmt, num_prmt(op->m.mode, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]))
bool decode_prmt(emu_decoder *d, emu_op *op)
{
	if (!scalar_decode(d, op, calc_prmt))
		return false;
	if (!op->m.mode && op->arg[0].kind == ARG_REG)
		op->fn = prmt_digits;
	return true;
}
