/* SPDX-License-Identifier: MIT */
/* Conversion. */
#include "emu/exec/scalar.h"

/* ---- loops for pairs that kernels are full of ---- */

static inline uint32_t to_s32(double x) /* toward zero; x is an f32 or f64 that is no NaN of f64 */
{
	return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? (uint32_t)INT32_MIN : (uint32_t)(int32_t)x;
}

static inline uint32_t narrow(uint64_t a)
{
	float f = (float)num_f64(a);

	return f == f ? num_bits32(f) : (uint32_t)num_cvt(CPTX_F32, CPTX_F64, a, CPTX_OPT_(struct num_mode, 0));
}

ALU1(copy_32, uint32_t, uint32_t, a)
ALU1(copy_64, uint64_t, uint64_t, a)
ALU1(low_32, uint32_t, uint64_t, a)
ALU1(low_16, uint32_t, uint32_t, (uint16_t)a)
ALU1(zero_64, uint64_t, uint32_t, a)
ALU1(sign_64, uint64_t, int32_t, a)
ALU1(zero_8, uint32_t, uint32_t, (uint8_t)a)
ALU1(sign_16, uint32_t, uint32_t, (uint32_t)(int16_t)a)
ALU1(sign_8, uint32_t, uint32_t, (uint32_t)(int8_t)a)
ALU1(f32_of_s32, uint32_t, int32_t, num_bits32((float)a))
ALU1(f32_of_u32, uint32_t, uint32_t, num_bits32((float)a))
ALU1(f64_of_s32, uint64_t, int32_t, num_bits64(a))
ALU1(f64_of_u32, uint64_t, uint32_t, num_bits64(a))
ALU1(s32_of_f32, uint32_t, uint32_t, to_s32(num_f32(a)))
ALU1(f32_of_f64, uint32_t, uint64_t, narrow(a))
ALU1(f32_of_f16, uint32_t, uint32_t, num_f32_bits(num_from_f16(a)))
ALU1(f32_of_bf16, uint32_t, uint32_t, a << 16)
ALU1(f16_of_f32, uint32_t, uint32_t, num_to_f16(num_f32(a)))
ALU1(bf16_of_f32, uint32_t, uint32_t, num_to_bf16(num_f32(a)))

/* a is the upper half. */
ALU2(f16x2_of_f32, uint32_t, uint32_t, num_to_f16(num_f32(a)) << 16 | num_to_f16(num_f32(b)))
ALU2(bf16x2_of_f32, uint32_t, uint32_t, num_to_bf16(num_f32(a)) << 16 | num_to_bf16(num_f32(b)))

#define ANY_RND 0xffff /* the conversion is exact, or has none */
static const struct pair {
	uint16_t dtype, atype, rnd;
	uint8_t dbits, abits; /* of the registers */
	emu_fn fn;
} pairs[] = {
	{ CPTX_U32, CPTX_U32, ANY_RND, 32, 32, copy_32 },
	{ CPTX_U32, CPTX_S32, ANY_RND, 32, 32, copy_32 },
	{ CPTX_S32, CPTX_U32, ANY_RND, 32, 32, copy_32 },
	{ CPTX_S32, CPTX_S32, ANY_RND, 32, 32, copy_32 },
	{ CPTX_U64, CPTX_S64, ANY_RND, 64, 64, copy_64 },
	{ CPTX_S64, CPTX_U64, ANY_RND, 64, 64, copy_64 },
	{ CPTX_U64, CPTX_U32, ANY_RND, 64, 32, zero_64 },
	{ CPTX_S64, CPTX_U32, ANY_RND, 64, 32, zero_64 },
	{ CPTX_S64, CPTX_S32, ANY_RND, 64, 32, sign_64 },
	{ CPTX_U64, CPTX_S32, ANY_RND, 64, 32, sign_64 },
	{ CPTX_U32, CPTX_U64, ANY_RND, 32, 64, low_32 },
	{ CPTX_S32, CPTX_U64, ANY_RND, 32, 64, low_32 },
	{ CPTX_U32, CPTX_S64, ANY_RND, 32, 64, low_32 },
	{ CPTX_S32, CPTX_S64, ANY_RND, 32, 64, low_32 },
	{ CPTX_U16, CPTX_U32, ANY_RND, 16, 32, low_16 },
	{ CPTX_U16, CPTX_S32, ANY_RND, 16, 32, low_16 },
	{ CPTX_U32, CPTX_U16, ANY_RND, 32, 16, copy_32 },
	{ CPTX_S32, CPTX_U16, ANY_RND, 32, 16, copy_32 },
	{ CPTX_S32, CPTX_S16, ANY_RND, 32, 16, sign_16 },
	{ CPTX_U32, CPTX_S16, ANY_RND, 32, 16, sign_16 },
	{ CPTX_U32, CPTX_U8, ANY_RND, 32, 32, zero_8 },
	{ CPTX_U32, CPTX_U8, ANY_RND, 32, 16, zero_8 },
	{ CPTX_U16, CPTX_U8, ANY_RND, 16, 16, zero_8 },
	{ CPTX_S32, CPTX_S8, ANY_RND, 32, 32, sign_8 },
	{ CPTX_S32, CPTX_S8, ANY_RND, 32, 16, sign_8 },
	{ CPTX_F32, CPTX_S32, CPTX_RN, 32, 32, f32_of_s32 },
	{ CPTX_F32, CPTX_U32, CPTX_RN, 32, 32, f32_of_u32 },
	{ CPTX_F64, CPTX_S32, ANY_RND, 64, 32, f64_of_s32 },
	{ CPTX_F64, CPTX_U32, ANY_RND, 64, 32, f64_of_u32 },
	{ CPTX_S32, CPTX_F32, CPTX_RZI, 32, 32, s32_of_f32 },
	{ CPTX_F32, CPTX_F64, CPTX_RN, 32, 64, f32_of_f64 },
	{ CPTX_F32, CPTX_F16, ANY_RND, 32, 16, f32_of_f16 },
	{ CPTX_F32, CPTX_BF16, ANY_RND, 32, 16, f32_of_bf16 },
	{ CPTX_F16, CPTX_F32, CPTX_RN, 16, 32, f16_of_f32 },
	{ CPTX_BF16, CPTX_F32, CPTX_RN, 16, 32, bf16_of_f32 },
	{ CPTX_F16X2, CPTX_F32, CPTX_RN, 32, 32, f16x2_of_f32 },
	{ CPTX_BF16X2, CPTX_F32, CPTX_RN, 32, 32, bf16x2_of_f32 },
};

static emu_fn fast_pair(const emu_op *op)
{
	const emu_mods *m = &op->m;

	if (m->sat || m->satfinite || m->relu || m->ftz)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const struct pair *p = &pairs[i];
		if (p->dtype == m->dtype && p->atype == m->atype && (p->rnd == ANY_RND || p->rnd == m->rnd) &&
		    p->dbits == op->arg[0].bits && p->abits == op->arg[1].bits)
			return p->fn;
	}
	return NULL;
}

/* ---- cvt ---- */

SCALAR_CALC(one, num_cvt(op->m.dtype, op->m.atype ? op->m.atype : op->m.dtype, v[0], m))

/* What stands behind the numbers: a scale, or random bits. */
static uint64_t calc_with(const emu_op *op, const struct num_mode *m, const uint64_t *v)
{
	const struct scalar *s = (const struct scalar *)op->extra;
	struct num_mode mode = *m;
	uint32_t src[4];
	unsigned n = s->n;

	if (m->scaled)
		mode.scale = (uint16_t)v[--n];
	else if (m->rnd == CPTX_RS)
		mode.rbits = (uint32_t)v[--n];
	if (n == 1)
		return num_cvt(op->m.dtype, op->m.atype, v[0], &mode);
	for (unsigned i = 0; i < n; i++)
		src[i] = (uint32_t)v[i];
	return num_cvt_pack(op->m.dtype, src, &mode);
}

bool decode_cvt(emu_decoder *d, emu_op *op)
{
	if (!scalar_decode(d, op, calc_one))
		return false;
	struct scalar *s = (struct scalar *)(uintptr_t)op->extra;
	emu_fn fn = op->arg[0].kind == ARG_REG ? fast_pair(op) : NULL;
	if (fn)
		op->fn = fn;
	else if (s->n > 1)
		s->calc = calc_with;
	return true;
}

SCALAR(cvt_pack,
       num_cvt_pack_sat(op->m.dtype, (uint32_t)v[0], (uint32_t)v[1], op->arg[3].kind == ARG_REG ? (uint32_t)v[2] : 0))
