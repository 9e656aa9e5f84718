/* SPDX-License-Identifier: MIT */
/*
 * Loops for f16, bf16 and pairs of them: to nearest, without modifiers.  A single number is a pair whose upper half is zero:
 * no operation here makes anything else of zeros.
 */
#include "emu/exec/scalar.h"

/* ---- sums and products: in f32, which has more than twice the bits and two, so that rounding twice is rounding once ----
 */

#define PAIR2(from, to, op) (to(from(a & 0xffff) op from(b & 0xffff)) | to(from(a >> 16) op from(b >> 16)) << 16)
#define SUMS(machine, suffix)                                                                                               \
	ALU2_ON(machine, add_f16##suffix, uint32_t, uint32_t, PAIR2(num_from_f16, num_to_f16, +))                               \
	ALU2_ON(machine, sub_f16##suffix, uint32_t, uint32_t, PAIR2(num_from_f16, num_to_f16, -))                               \
	ALU2_ON(machine, mul_f16##suffix, uint32_t, uint32_t, PAIR2(num_from_f16, num_to_f16, *))                               \
	ALU2_ON(machine, add_bf16##suffix, uint32_t, uint32_t, PAIR2(num_from_bf16, num_to_bf16, +))                            \
	ALU2_ON(machine, sub_bf16##suffix, uint32_t, uint32_t, PAIR2(num_from_bf16, num_to_bf16, -))                            \
	ALU2_ON(machine, mul_bf16##suffix, uint32_t, uint32_t, PAIR2(num_from_bf16, num_to_bf16, *))

/* ---- fma: the product is exact in double, the sum rounded to odd, and then once to so many bits of mantissa ---- */

static inline uint32_t round_half(double d, int man, int bias)
{
	int shift = 52 - man;
	uint64_t bits = num_bits64(d), mag = bits & INT64_MAX, odd = mag >> shift & 1, inf = (uint64_t)(2 * bias + 1) << man;
	uint64_t normal = (mag + (((uint64_t)1 << (shift - 1)) - 1) + odd - ((uint64_t)(1023 - bias) << 52)) >> shift;
	uint64_t unit = (uint64_t)(1023 + 52 + 1 - bias - man)
	                << 52; /* a power of two whose last place is the least subnormal */
	uint64_t small = num_bits64(num_f64(mag) + num_f64(unit)) - unit;
	uint64_t r = mag < (uint64_t)(1023 + 1 - bias) << 52 ? small : mag < (uint64_t)(1023 + 1 + bias) << 52 ? normal : inf;

	return d != d ? 0x7fff : (uint32_t)(r | (bits >> 63) << 15);
}

#define FMA1(from, man, bias, shift)                                                                                        \
	round_half(num_add_odd((double)from(a >> shift & 0xffff) * (double)from(b >> shift & 0xffff),                           \
	                       (double)from(c >> shift & 0xffff)),                                                              \
	           man, bias)                                                                                                   \
		<< shift
#define FMAS(machine, suffix)                                                                                               \
	ALU3_ON(machine, fma_f16##suffix, uint32_t, uint32_t, FMA1(num_from_f16, 10, 15, 0) | FMA1(num_from_f16, 10, 15, 16))   \
	ALU3_ON(machine, fma_bf16##suffix, uint32_t, uint32_t, FMA1(num_from_bf16, 7, 127, 0) | FMA1(num_from_bf16, 7, 127, 16))

/* ---- min and max: as the integers that rise with the number ---- */

static inline uint32_t extreme(uint32_t a, uint32_t b, uint32_t inf, bool min)
{
	uint32_t x = a & 0x8000 ? ~a & 0xffff : a | 0x8000, y = b & 0x8000 ? ~b & 0xffff : b | 0x8000;
	bool nan_a = (a & 0x7fff) > inf, nan_b = (b & 0x7fff) > inf, first = nan_b || (!nan_a && (min ? x < y : x > y));

	return nan_a && nan_b ? 0x7fff : first ? a : b;
}
#define EXTREME(inf, min) extreme(a & 0xffff, b & 0xffff, inf, min) | extreme(a >> 16, b >> 16, inf, min) << 16
ALU2(min_f16, uint32_t, uint32_t, EXTREME(0x7c00, true))
ALU2(max_f16, uint32_t, uint32_t, EXTREME(0x7c00, false))
ALU2(min_bf16, uint32_t, uint32_t, EXTREME(0x7f80, true))
ALU2(max_bf16, uint32_t, uint32_t, EXTREME(0x7f80, false))

/* ---- which ---- */

SUMS(, )
FMAS(, )
#ifdef EMU_MACHINE
SUMS(EMU_MACHINE, _machine)
FMAS(EMU_MACHINE, _machine)
#define BOTH(name) name, name##_machine
#else
#define HAS_MACHINE false
#define BOTH(name) name, name
#endif

emu_fn half_loop(const emu_op *op)
{
	static const struct {
		uint16_t op, kind;
		emu_fn fn, machine;
	} loops[] = {
		{ CPTX_OP_ADD, FAST_F16, BOTH(add_f16) },    { CPTX_OP_ADD, FAST_BF16, BOTH(add_bf16) },
		{ CPTX_OP_SUB, FAST_F16, BOTH(sub_f16) },    { CPTX_OP_SUB, FAST_BF16, BOTH(sub_bf16) },
		{ CPTX_OP_MUL, FAST_F16, BOTH(mul_f16) },    { CPTX_OP_MUL, FAST_BF16, BOTH(mul_bf16) },
		{ CPTX_OP_FMA, FAST_F16, BOTH(fma_f16) },    { CPTX_OP_FMA, FAST_BF16, BOTH(fma_bf16) },
		{ CPTX_OP_MIN, FAST_F16, min_f16, min_f16 }, { CPTX_OP_MIN, FAST_BF16, min_bf16, min_bf16 },
		{ CPTX_OP_MAX, FAST_F16, max_f16, max_f16 }, { CPTX_OP_MAX, FAST_BF16, max_bf16, max_bf16 },
	};
	unsigned kind = fast_kind_of(op, op->m.type);

	if (op->arg[0].kind != ARG_REG || op->m.atype || !(kind & (FAST_F16 | FAST_BF16)))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(loops); i++)
		if (loops[i].op == op->opcode && loops[i].kind == kind)
			return HAS_MACHINE ? loops[i].machine : loops[i].fn;
	return NULL;
}
