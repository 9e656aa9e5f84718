/* SPDX-License-Identifier: MIT */
/* Shapes of the sm_90a attention, and what a block of keys takes. */
#include "attention/sm90/forward.h"

/* A multiprocessor, a cycle: multiply-adds of 16-bit elements by tensor cores, exponentials, other f32 operations. */
enum { MMA_PER_CYCLE = 2048 /* of 8 bits twice as many */, EX2_PER_CYCLE = 16, F32_PER_CYCLE = 128, MOST_SHAPES = 64 };
/* Operations on a score beside the exponential: maximum, fma, sum, half a conversion. */
#define PER_SCORE 3.5

size_t attention_sm90_shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room)
{
	static const uint8_t bk[] = { 64, 80, 96, 112, 128, 144, 160, 176, 192, 224 };
	const size_t sizes = ARRAY_LEN(bk) - (attention_is_fp8(o) ? 0 : 1);
	size_t n = 0;

	for (uint32_t groups = 2; groups <= 3; groups++)
		for (size_t i = 0; i < sizes; i++) {
			cptx_attention_opt x = *o;
			x.bq = o->bq ? o->bq : groups * GROUP_ROWS, x.bk = o->bk ? o->bk : bk[i], x.stages = o->stages ? o->stages : 2;
			if (n < room && (!o->bq || groups == 2) && (!o->bk || !i) && cptx_attention_check(&x, NULL, NULL, NULL))
				to[n++] = x;
		}
	return n;
}

void attention_sm90_cycles(const cptx_attention_opt *o, double *mma, double *softmax)
{
	const shape90 s = attention_sm90_shape(o);
	const double scores = (double)o->bq * o->bk;

	*mma = scores * (s.dim + s.dim_v) * cptx_type_bits(o->in) / 16 / MMA_PER_CYCLE;
	*softmax = scores / EX2_PER_CYCLE + (scores * PER_SCORE + (double)o->bq * s.dim_v) / F32_PER_CYCLE;
}
