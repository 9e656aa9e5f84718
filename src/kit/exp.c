/* SPDX-License-Identifier: MIT */
/* Powers. */
#include "kit/value.h"

#include <cptx/cptx.h>
#include <cptx/reduce.h>

/*
 * e^x = 2^whole * 2^part, part = x * log2(e) - whole from 0 to 1, of which little is rounded away, and ex2.approx errs less
 * than below 0.  whole + 126 is from 0 to 252: the sum of what .sat leaves of x * log2(e) / 252 + 1/2, times 252, and 3/2 *
 * 2^23 + 1, rounded down, is a number whose lowest bits are it.  A NaN, an infinity and what is out of range stay in part.
 */
cptx_val cptx_exp_(cptx_kernel *k, cptx_site at, cptx_val x)
{
	enum { WHOLES = 252, BIAS = 127, LOWEST = WHOLES / 2, MANTISSA = 23, LARGE = 3 << (MANTISSA - 1) };
	if (!kit_value(k, at, "cptx_exp", "x", x, KIT_F32))
		return (cptx_val){ 0 };
	static const double log2e = 1.4426950216293335 /* an f32 */, rest = 1.9259629911266175e-8;
	cptx_val among = CALL(fma, .a = x, .b = cptx_immf(log2e / WHOLES), .c = cptx_immf(0.5), .rnd = CPTX_RN, .sat = true);
	cptx_val large = CALL(fma, .a = among, .b = cptx_immf(WHOLES), .c = cptx_immf(LARGE + BIAS - LOWEST), .rnd = CPTX_RM);
	cptx_val whole = CALL(sub, .a = large, .b = cptx_immf(LARGE + BIAS));
	cptx_val part = CALL(fma, .a = x, .b = cptx_immf(log2e), .c = CALL(neg, .a = whole), .rnd = CPTX_RN);

	CALL(fma, .a = x, .b = cptx_immf(rest), .c = part, .rnd = CPTX_RN, .into = part);
	cptx_val scale = CALL(shl, .a = cptx_as(large, CPTX_B32), .b = cptx_imm(MANTISSA));
	return CALL(mul, .a = CALL(ex2, .a = part, .ftz = true), .b = cptx_as(scale, CPTX_F32));
}
