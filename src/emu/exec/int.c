/* SPDX-License-Identifier: MIT */
/* Arithmetic of integers, and of what shares their instructions: add, sub, mul, min ... of floating point are in
 * exec/float.c. */
#include "emu/exec/scalar.h"

/* ---- products ---- */

ALU2(mul_wide_u32, uint64_t, uint32_t, (uint64_t)a *b)
ALU2(mul_wide_s32, uint64_t, uint32_t, (uint64_t)((int64_t)(int32_t)a *(int32_t)b))
ALU2(mul_wide_u16, uint32_t, uint32_t, a *b)
ALU2(mul_wide_s16, uint32_t, uint32_t, (uint32_t)((int16_t)a *(int16_t)b))
SCALAR_FAST(mul_wide, num_mul_wide(op->m.type, v[0], v[1]), { FAST_U32, mul_wide_u32 }, { FAST_S32, mul_wide_s32 },
            { FAST_U16, mul_wide_u16 }, { FAST_S16, mul_wide_s16 })

ALU3(mad_wide_u32, uint64_t, uint32_t, (uint64_t)a *b + c)
ALU3(mad_wide_s32, uint64_t, uint32_t, (uint64_t)((int64_t)(int32_t)a *(int32_t)b) + c)
SCALAR_FAST(mad_wide, num_mul_wide(op->m.type, v[0], v[1]) + v[2], { FAST_U32, mad_wide_u32 }, { FAST_S32, mad_wide_s32 })

SCALAR(mul24, num_mul24(op->m.type, op->m.mode == CPTX_HI, (uint32_t)v[0], (uint32_t)v[1]))
SCALAR(mad24, op->m.sat ? num_mad24_hi_sat((uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2])
                        : num_mul24(op->m.type, op->m.mode == CPTX_HI, (uint32_t)v[0], (uint32_t)v[1]) + v[2])
SCALAR(clmad, num_clmad(op->m.mode == CPTX_HI, v[0], v[1], v[2]))
SCALAR(dp4a, num_dp4a(op->m.atype, op->m.btype, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]))
SCALAR(dp2a, num_dp2a(op->m.mode == CPTX_HI, op->m.atype, op->m.btype, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]))

/* ---- the rest ---- */

SCALAR(rem, num_rem(op->m.type, v[0], v[1]))
SCALAR(sad, num_sad(op->m.type, v[0], v[1], v[2]))
ALU1(popc_b32, uint32_t, uint32_t, (uint32_t)__builtin_popcount(a))
ALU1(clz_b32, uint32_t, uint32_t, a ? (uint32_t)__builtin_clz(a) : 32)
SCALAR_FAST(popc, num_popc(op->m.type, v[0]), { FAST_U32, popc_b32 })
SCALAR_FAST(clz, num_clz(op->m.type, v[0]), { FAST_U32, clz_b32 })
SCALAR(brev, num_brev(op->m.type, v[0]))
SCALAR(bfind, num_bfind(op->m.type, v[0], op->m.shiftamt))
SCALAR(fns, num_fns((uint32_t)v[0], (uint32_t)v[1], (int32_t)v[2]))
ALU3(bfe_u32, uint32_t, uint32_t,
     (b & 0xff) > 31 ? 0 : a >> (b & 0xff) & ((c & 0xff) > 31 ? UINT32_MAX : (UINT32_C(1) << (c & 0xff)) - 1))
SCALAR_FAST(bfe, num_bfe(op->m.type, v[0], (uint32_t)v[1], (uint32_t)v[2]), { FAST_U32, bfe_u32 })
SCALAR(bfi, num_bfi(op->m.type, v[0], v[1], (uint32_t)v[2], (uint32_t)v[3]))
SCALAR(szext, num_szext(op->m.type, op->m.mode, (uint32_t)v[0], (uint32_t)v[1]))
SCALAR(bmsk, num_bmsk(op->m.mode, (uint32_t)v[0], (uint32_t)v[1]))

/*
 * ---- extended precision: the carry flag is a bit per lane of the warp ----
 *
 * There is one flag for sums and differences: sub.cc and subc leave 1 where nothing is borrowed, as a sum with the
 * complement would.  It shows where addc stands behind sub.cc, which CUDA's division of 128 bits relies on.
 */

typedef uint64_t (*carry_calc)(unsigned type, uint64_t a, uint64_t b, bool *cf);
struct carry {
	struct scalar *in;
	carry_calc calc; /* of the last two operands, or of the product and the last */
	bool reads;
};

static enum emu_step carry(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const struct carry *c = (const struct carry *)op->extra;
	const emu_arg *d = &op->arg[0];
	uint64_t v[SCALAR_INPUTS];
	unsigned type = op->m.type;
	uint32_t borrows = c->calc == num_sub_borrow ? ALL_LANES : 0;

	EACH_LANE(l, mask) {
		bool cf = c->reads && (w->carry ^ borrows) >> l & 1;
		scalar_gather(w, c->in, l, v);
		if (c->in->n == 3) {
			v[0] = op->m.mode == CPTX_HI ? num_mul_hi(type, v[0], v[1]) : num_mul(type, v[0], v[1], &c->in->mode);
			v[1] = v[2];
		}
		emu_put(w, d->slot, d->bits, l, c->calc(type, v[0], v[1], &cf));
		if (op->m.cc)
			w->carry = (w->carry & ~(UINT32_C(1) << l)) | ((cf ^ borrows) & 1) << l;
	}
	return STEP_NEXT;
}

static bool decode_carry(emu_decoder *d, emu_op *op, carry_calc calc, bool reads)
{
	struct carry *c = DECODER_NEW(d, struct carry);
	struct scalar *in = scalar_inputs(d, op);

	if (!c || !in)
		return false;
	*c = (struct carry){ .in = in, .calc = calc, .reads = reads };
	op->extra = c;
	op->fn = carry;
	return true;
}

bool decode_add_cc(emu_decoder *d, emu_op *op) { return decode_carry(d, op, num_add_carry, false); }
bool decode_addc(emu_decoder *d, emu_op *op) { return decode_carry(d, op, num_add_carry, true); }
bool decode_sub_cc(emu_decoder *d, emu_op *op) { return decode_carry(d, op, num_sub_borrow, false); }
bool decode_subc(emu_decoder *d, emu_op *op) { return decode_carry(d, op, num_sub_borrow, true); }
