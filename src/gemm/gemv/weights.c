/* SPDX-License-Identifier: MIT */
/*
 * Weights of few bits to pairs of f16 or bf16, in registers.
 *
 * The bits of a weight are laid where they are sign, exponent and mantissa of the wider type, whose exponent has another
 * bias: f16 then holds the weight times a power of two, which is multiplied out with the sums in f32.  bf16 would hold it
 * near the least numbers of f32, so there it is multiplied at once, which is exact.  u4 becomes the low bits of the mantissa
 * of 1024 (bf16: 128), and that much and the zero point are subtracted, exactly too; in bf16 with scale factors for groups
 * along K not of each weight, but of the sums of a group, times those of A: a third of the instructions less.  That costs
 * accuracy, since what is added up is some 17 times as large as the weights; and elements of A from 2.4e36 on, and infinite
 * ones, give NaN, as the difference of two infinities, where the weights themselves would give a number or an infinity.
 *
 * A word of 4-bit weights has weight 2 i in bits 4 i and up, weight 2 i + 1 in bits 4 i + 16 and up
 * (cptx_gemm_pack_weights), so that both halves of a pair come out of one shift.
 */
#include "gemm/gemv/gemm.h"

#include <cptx/cptx.h>

/* The exponent's bias of f16 less that of a type, and that of bf16. */
static uint32_t bias_of(enum cptx_type t) { return t == CPTX_E2M1 ? 1 : t == CPTX_E4M3 ? 7 : 15; }
static uint32_t mantissa_of(enum cptx_type t) { return t == CPTX_E4M3 ? 3 : t == CPTX_E5M2 ? 2 : 1; }
static uint32_t width_of(enum cptx_type t) { return t == CPTX_E2M1 ? 4 : 8; }

float gemv_weight_factor(const cptx_gemm_opt *o)
{
	if (!gemv_is_quantized(o) || o->b == CPTX_U4 || o->a == CPTX_BF16)
		return 1;
	return (float)(1u << (15 - bias_of(o->b)));
}

static cptx_val bf16_pair(cptx_kernel *k, uint32_t bits)
{
	return cptx_as(cptx_mov(k, bits << 16 | bits, .type = CPTX_B32), CPTX_BF16X2);
}

/* Floats of 4 or 8 bits, which stand in the upper bits of each half of `high`. */
static cptx_val float_pair(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val high)
{
	const uint32_t mantissa = o->a == CPTX_F16 ? 10 : 7, bits = width_of(o->b);
	/* the lowest bit of the mantissa moves from 16 - bits to mantissa - mantissa_of */
	const uint32_t down = 16 - bits - (mantissa - mantissa_of(o->b)), mask = ((1u << (bits - 1)) - 1)
	                                                                         << (mantissa - mantissa_of(o->b));
	const cptx_val sign = cptx_and(k, high, 0x80008000u, .type = CPTX_B32);
	const cptx_val moved = down ? cptx_shr(k, cptx_as(high, CPTX_B32), down) : high;
	const cptx_val both = cptx_lop3(k, moved, mask << 16 | mask, sign, 0xea); /* moved & mask | sign */

	if (o->a == CPTX_F16)
		return both;
	/* times 2^(127 - bias); -0 keeps the sign of zeros */
	return cptx_as(cptx_fma(k, cptx_as(both, CPTX_BF16X2), bf16_pair(k, (254 - bias_of(o->b)) << 7), bf16_pair(k, 0x8000),
	                        .rnd = CPTX_RN),
	               CPTX_B32);
}

static cptx_val integer_pair(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val low, cptx_val zero)
{
	const uint32_t one = o->a == CPTX_F16 ? 0x64006400u : 0x43004300u;
	const cptx_val v = cptx_lop3(k, low, 0x000f000f, one, 0xea);

	if (gemv_is_biased(o))
		return v;
	if (o->a == CPTX_F16)
		return cptx_as(cptx_sub(k, cptx_as(v, CPTX_F16X2), cptx_as(zero, CPTX_F16X2)), CPTX_B32);
	return cptx_as(cptx_fma(k, cptx_as(v, CPTX_BF16X2), bf16_pair(k, 0x3f80), cptx_as(zero, CPTX_BF16X2), .rnd = CPTX_RN),
	               CPTX_B32);
}

void gemv_unpack(cptx_kernel *k, const cptx_gemm_opt *o, const cptx_val *word, cptx_val zero, cptx_val pair[4])
{
	for (uint32_t i = 0; i < 4; i++) {
		if (o->b == CPTX_U4)
			pair[i] = integer_pair(k, o, i ? cptx_shr(k, cptx_as(word[0], CPTX_B32), 4 * i) : word[0], zero);
		else if (o->b == CPTX_E2M1)
			pair[i] = float_pair(k, o, i < 3 ? cptx_shl(k, cptx_as(word[0], CPTX_B32), 12 - 4 * i) : word[0]);
		else /* bytes 2 i and 2 i + 1 to the upper bytes of the halves */
			pair[i] = float_pair(k, o, cptx_prmt(k, word[i / 2], 0, i % 2 ? 0x3424 : 0x1404));
	}
}

cptx_val gemv_pair_place(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val i)
{
	if (o->b != CPTX_U4 && width_of(o->b) == 8) /* bytes 2 i and 2 i + 1 to the upper bytes of the halves */
		return cptx_mad(k, i, 0x2020, cptx_mov(k, 0x1000, .type = CPTX_U32), .mode = CPTX_LO);
	const cptx_val by = cptx_shl(k, i, 2);
	return o->b == CPTX_U4 ? by : cptx_sub(k, 12, by, .type = CPTX_U32);
}

cptx_val gemv_unpack_pair(cptx_kernel *k, const cptx_gemm_opt *o, const cptx_val *word, cptx_val place, cptx_val zero)
{
	if (o->b == CPTX_U4)
		return integer_pair(k, o, cptx_shr(k, cptx_as(word[0], CPTX_B32), place), zero);
	if (o->b == CPTX_E2M1)
		return float_pair(k, o, cptx_shl(k, cptx_as(word[0], CPTX_B32), place));
	return float_pair(k, o, cptx_prmt(k, word[0], word[1], place));
}

/* The number that a zero point takes off weights: in f16 1024 + zero, in bf16 -(128 + zero), to be added. */
cptx_val gemv_zero(cptx_kernel *k, const cptx_gemm_opt *o, cptx_val zero)
{
	const bool f16 = o->a == CPTX_F16;

	if (zero.kind == CPTX_VAL_NONE)
		return cptx_mov(k, f16 ? 0x64086408u : 0xc308c308u, .type = CPTX_B32);
	const cptx_val half[] = { zero, zero };
	const cptx_val pair = cptx_as(cptx_mov(k, cptx_pack(k, 2, half), .type = CPTX_B32), f16 ? CPTX_F16X2 : CPTX_BF16X2);
	if (f16)
		return cptx_as(cptx_add(k, pair, cptx_as(cptx_mov(k, 0x64006400u, .type = CPTX_B32), CPTX_F16X2)), CPTX_B32);
	return cptx_as(cptx_fma(k, pair, bf16_pair(k, 0xbf80), bf16_pair(k, 0xc300), .rnd = CPTX_RN), CPTX_B32);
}
