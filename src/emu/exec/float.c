/* SPDX-License-Identifier: MIT */
/* Arithmetic of all types: add, sub, mul, mad, min, max, abs, neg; and that of floating point alone. */
#include "emu/exec/scalar.h"

/* ---- loops ---- */

ALU2(add_16, uint32_t, uint32_t, (uint16_t)(a + b))
ALU2(add_32, uint32_t, uint32_t, a + b)
ALU2(add_64, uint64_t, uint64_t, a + b)
ALU2(sub_16, uint32_t, uint32_t, (uint16_t)(a - b))
ALU2(sub_32, uint32_t, uint32_t, a - b)
ALU2(sub_64, uint64_t, uint64_t, a - b)
ALU2(mul_16, uint32_t, uint32_t, (uint16_t)(a *b))
ALU2(mul_32, uint32_t, uint32_t, a *b)
ALU2(mul_64, uint64_t, uint64_t, a *b)
ALU2(mul_hi_u32, uint32_t, uint32_t, (uint32_t)((uint64_t)a *b >> 32))
ALU2(mul_hi_s32, uint32_t, uint32_t, (uint32_t)((uint64_t)((int64_t)(int32_t)a *(int32_t)b) >> 32))
ALU3(mad_16, uint32_t, uint32_t, (uint16_t)(a *b + c))
ALU3(mad_32, uint32_t, uint32_t, a *b + c)
ALU3(mad_64, uint64_t, uint64_t, a *b + c)
ALU2(min_u32, uint32_t, uint32_t, a < b ? a : b)
ALU2(min_s32, int32_t, int32_t, a < b ? a : b)
ALU2(min_u64, uint64_t, uint64_t, a < b ? a : b)
ALU2(min_s64, int64_t, int64_t, a < b ? a : b)
ALU2(max_u32, uint32_t, uint32_t, a > b ? a : b)
ALU2(max_s32, int32_t, int32_t, a > b ? a : b)
ALU2(max_u64, uint64_t, uint64_t, a > b ? a : b)
ALU2(max_s64, int64_t, int64_t, a > b ? a : b)
ALU1(abs_s32, uint32_t, int32_t, a < 0 ? 0 - (uint32_t)a : (uint32_t)a)
ALU1(neg_s32, uint32_t, uint32_t, 0 - a)
ALU1(neg_s64, uint64_t, uint64_t, 0 - a)
#define QUIET_F64 ((uint64_t)1 << 51)
#define IS_NAN32(a) (((a)&0x7fffffff) > 0x7f800000)
#define IS_NAN64(a) (((a)&INT64_MAX) > UINT64_C(0x7ff) << 52)
ALU1(abs_f32, uint32_t, uint32_t, IS_NAN32(a) ? 0x7fffffff : a & 0x7fffffff)
ALU1(neg_f32, uint32_t, uint32_t, IS_NAN32(a) ? 0x7fffffff : a ^ 0x80000000)
ALU1(abs_f64, uint64_t, uint64_t, IS_NAN64(a) ? a | QUIET_F64 : a &INT64_MAX)
ALU1(neg_f64, uint64_t, uint64_t, IS_NAN64(a) ? a | QUIET_F64 : a ^ (uint64_t)1 << 63)

#define FTZ(a) num_f32_ftz(a)
/* A result is flushed if it would be subnormal once rounded to 24 bits with any exponent. */
static inline uint32_t flushed(uint32_t rounded, double exact)
{
	return fabs(exact) < 0x1.ffffffp-127 ? rounded & 0x80000000 : rounded;
}
static inline uint32_t mul_z(uint32_t a, uint32_t b) { return flushed(num_f32_mul(a, b), (double)num_f32(a) * num_f32(b)); }
/* d: a * b + c, rounded. */
static inline uint32_t fma_z(uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
	if ((d & 0x7fffffff) > 0x00800000)
		return d;
	return flushed(d, num_add_odd((double)num_f32(a) * num_f32(b), num_f32(c)));
}
ALU2(add_f32, uint32_t, uint32_t, num_f32_add(a, b))
ALU2(sub_f32, uint32_t, uint32_t, num_f32_sub(a, b))
ALU2(mul_f32, uint32_t, uint32_t, num_f32_mul(a, b))
ALU3(fma_f32, uint32_t, uint32_t, num_f32_fma(a, b, c))
ALU2(add_f32z, uint32_t, uint32_t, FTZ(num_f32_add(FTZ(a), FTZ(b))))
ALU2(sub_f32z, uint32_t, uint32_t, FTZ(num_f32_sub(FTZ(a), FTZ(b))))
ALU2(mul_f32z, uint32_t, uint32_t, mul_z(FTZ(a), FTZ(b)))
ALU3(fma_f32z, uint32_t, uint32_t, fma_z(num_f32_fma(FTZ(a), FTZ(b), FTZ(c)), FTZ(a), FTZ(b), FTZ(c)))

/* Of two numbers the smaller, -0 below +0; of a number and a NaN the number; of two NaN the canonical one. */
static inline uint32_t order(uint32_t a)
{
	return a ^ ((uint32_t)((int32_t)a >> 31) | 0x80000000);
} /* rises with the number */
static inline uint32_t pick(uint32_t a, uint32_t b, bool a_first)
{
	uint32_t d = IS_NAN32(b) || (a_first && !IS_NAN32(a)) ? a : b;
	return IS_NAN32(d) ? 0x7fffffff : d;
}
static inline uint32_t min_bits(uint32_t a, uint32_t b) { return pick(a, b, order(a) < order(b)); }
static inline uint32_t max_bits(uint32_t a, uint32_t b) { return pick(a, b, order(a) > order(b)); }
ALU2(min_f32, uint32_t, uint32_t, min_bits(a, b))
ALU2(max_f32, uint32_t, uint32_t, max_bits(a, b))
ALU2(min_f32z, uint32_t, uint32_t, min_bits(FTZ(a), FTZ(b)))
ALU2(max_f32z, uint32_t, uint32_t, max_bits(FTZ(a), FTZ(b)))

/* f64 keeps payloads of NaN, which num.h knows about: whatever gives one is done again there. */
#define ALU_F64(name, expr, again) ALU_F64_ON(, name, expr, again)
#define ALU_F64_ON(machine, name, expr, again)                                                                              \
	machine static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                         \
	{                                                                                                                       \
		static const struct num_mode plain = { 0 };                                                                         \
		const emu_arg *third = &op->arg[op->narg > 3 ? 3 : 2];                                                              \
		uint64_t *d = emu_reg64(w, op, 0), t[WARP];                                                                         \
		const uint64_t *pa = emu_reg64(w, op, 1), *pb = emu_reg64(w, op, 2), *pc = emu_r64(w, third->slot);                 \
		LANES(l, mask, double a = num_f64(pa[l]); double b = num_f64(pb[l]); double c = num_f64(pc[l]); (void)c;            \
		      double x = expr; t[l] = num_bits64(x));                                                                       \
		EACH_LANE(l, mask) {                                                                                                \
			if (num_f64(t[l]) != num_f64(t[l]))                                                                             \
				t[l] = again;                                                                                               \
		}                                                                                                                   \
		LANES(l, mask, d[l] = t[l]);                                                                                        \
		return STEP_NEXT;                                                                                                   \
	}
ALU_F64(add_f64, a + b, num_add(CPTX_F64, pa[l], pb[l], &plain))
ALU_F64(sub_f64, a - b, num_sub(CPTX_F64, pa[l], pb[l], &plain))
ALU_F64(mul_f64, (a * b), num_mul(CPTX_F64, pa[l], pb[l], &plain))
ALU_F64(fma_f64, fma(a, b, c), num_fma(CPTX_F64, pa[l], pb[l], pc[l], &plain))

#ifdef EMU_MACHINE
#define FMA_F32(a, b, c) num_f32_bits(__builtin_fmaf(num_f32(a), num_f32(b), num_f32(c)))
ALU3_ON(EMU_MACHINE, fma_f32_machine, uint32_t, uint32_t, FMA_F32(a, b, c))
ALU3_ON(EMU_MACHINE, fma_f32z_machine, uint32_t, uint32_t, fma_z(FMA_F32(FTZ(a), FTZ(b), FTZ(c)), FTZ(a), FTZ(b), FTZ(c)))
ALU_F64_ON(EMU_MACHINE, fma_f64_machine, __builtin_fma(a, b, c), num_fma(CPTX_F64, pa[l], pb[l], pc[l], &plain))
#endif

/* ---- instructions of all types ---- */

/* An operand of mixed precision (add.f32.f16) as f32. */
static uint64_t widened(const emu_op *op, uint64_t a)
{
	static const struct num_mode plain = { 0 };

	return op->m.atype ? num_cvt(op->m.type, op->m.atype, a, &plain) : a;
}

SCALAR_FAST(add, num_add(op->m.type, widened(op, v[0]), v[1], m), { FAST_I16, add_16 }, { FAST_I32, add_32 },
            { FAST_I64, add_64 }, { FAST_F32, add_f32 }, { FAST_F32Z, add_f32z }, { FAST_F64, add_f64 })
SCALAR_FAST(sub, num_sub(op->m.type, widened(op, v[0]), v[1], m), { FAST_I16, sub_16 }, { FAST_I32, sub_32 },
            { FAST_I64, sub_64 }, { FAST_F32, sub_f32 }, { FAST_F32Z, sub_f32z }, { FAST_F64, sub_f64 })
SCALAR_CALC(mul, op->m.mode == CPTX_HI ? num_mul_hi(op->m.type, v[0], v[1]) : num_mul(op->m.type, v[0], v[1], m))
bool decode_mul(emu_decoder *d, emu_op *op)
{
	static const struct fast rows[] = { { FAST_I16, mul_16 },
		                                { FAST_I32, mul_32 },
		                                { FAST_I64, mul_64 },
		                                { FAST_F32, mul_f32 },
		                                { FAST_F32Z, mul_f32z },
		                                { FAST_F64, mul_f64 },
		                                { 0 } };

	if (op->m.mode != CPTX_HI)
		return fast_decode(op, rows) || scalar_decode(d, op, calc_mul);
	if (!scalar_decode(d, op, calc_mul))
		return false;
	if (arch_types[op->m.type].bits == 32)
		op->fn = op->m.type == CPTX_U32 ? mul_hi_u32 : mul_hi_s32;
	return true;
}

static uint64_t mad_hi(const emu_op *op, const uint64_t *v)
{
	return op->m.sat ? num_mad_hi_sat((uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2])
	                 : num_mul_hi(op->m.type, v[0], v[1]) + v[2];
}
SCALAR_CALC(mad, op->m.mode == CPTX_HI ? mad_hi(op, v) : num_fma(op->m.type, widened(op, v[0]), widened(op, v[1]), v[2], m))
bool decode_mad(emu_decoder *d, emu_op *op)
{
#ifdef EMU_MACHINE
	static const struct fast machine[] = {
		{ FAST_F32, fma_f32_machine }, { FAST_F32Z, fma_f32z_machine }, { FAST_F64, fma_f64_machine }, { 0 }
	};
	if (HAS_MACHINE && fast_decode(op, machine))
		return true;
#endif
	static const struct fast rows[] = { { FAST_I16, mad_16 },
		                                { FAST_I32, mad_32 },
		                                { FAST_I64, mad_64 },
		                                { FAST_F32, fma_f32 },
		                                { FAST_F32Z, fma_f32z },
		                                { FAST_F64, fma_f64 },
		                                { 0 } };

	return fast_decode(op, rows) || scalar_decode(d, op, calc_mad);
}
bool decode_fma(emu_decoder *d, emu_op *op) { return decode_mad(d, op); }

SCALAR_CALC(min, num_min(op->m.type, v[0], v[1], m))
SCALAR_CALC(max, num_max(op->m.type, v[0], v[1], m))
SCALAR_CALC(min3, num_min3(op->m.type, v[0], v[1], v[2], m))
SCALAR_CALC(max3, num_max3(op->m.type, v[0], v[1], v[2], m))
bool decode_min(emu_decoder *d, emu_op *op)
{
	static const struct fast rows[] = { { FAST_U32 | FAST_U16, min_u32 },
		                                { FAST_S32, min_s32 },
		                                { FAST_U64, min_u64 },
		                                { FAST_S64, min_s64 },
		                                { FAST_F32, min_f32 },
		                                { FAST_F32Z, min_f32z },
		                                { 0 } };
	bool three = emu_named(op, "c")->kind != ARG_NONE;

	return three ? scalar_decode(d, op, calc_min3) : fast_decode(op, rows) || scalar_decode(d, op, calc_min);
}
bool decode_max(emu_decoder *d, emu_op *op)
{
	static const struct fast rows[] = { { FAST_U32 | FAST_U16, max_u32 },
		                                { FAST_S32, max_s32 },
		                                { FAST_U64, max_u64 },
		                                { FAST_S64, max_s64 },
		                                { FAST_F32, max_f32 },
		                                { FAST_F32Z, max_f32z },
		                                { 0 } };
	bool three = emu_named(op, "c")->kind != ARG_NONE;

	return three ? scalar_decode(d, op, calc_max3) : fast_decode(op, rows) || scalar_decode(d, op, calc_max);
}

SCALAR_FAST(abs, num_abs(op->m.type, v[0], m), { FAST_S32, abs_s32 }, { FAST_F32, abs_f32 }, { FAST_F64, abs_f64 })
SCALAR_FAST(neg, num_neg(op->m.type, v[0], m), { FAST_S32, neg_s32 }, { FAST_S64, neg_s64 }, { FAST_F32, neg_f32 },
            { FAST_F64, neg_f64 })

/* ---- floating point; div is of integers too ---- */

SCALAR(div, num_div(op->m.type, v[0], v[1], m))
SCALAR(rcp, num_rcp(op->m.type, v[0], m))
SCALAR(sqrt, num_sqrt(op->m.type, v[0], m))
SCALAR(rsqrt, num_rsqrt(op->m.type, v[0], m))
SCALAR(ex2, num_ex2(op->m.type, v[0], m))
SCALAR(lg2, num_lg2(v[0], m))
SCALAR(sin, num_sin(v[0], m))
SCALAR(cos, num_cos(v[0], m))
SCALAR(tanh, num_tanh(op->m.type, v[0], m))
SCALAR(testp, num_testp(op->m.type, op->m.op, v[0]))
SCALAR(copysign, num_copysign(op->m.type, v[0], v[1]))
