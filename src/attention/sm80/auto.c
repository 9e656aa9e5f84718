/* SPDX-License-Identifier: MIT */
/* Shapes of the attention by mma.sync, and what a block of keys takes. */
#include "attention/sm80/forward.h"

#include "base/base.h"

/* A multiprocessor, a cycle: multiply-adds by mma.sync (measured on an H200), exponentials, other f32 operations, bytes of
 * shared memory. */
#define MMA_PER_CYCLE (4096 / 3.0)
enum { EX2_PER_CYCLE = 16, F32_PER_CYCLE = 128, SMEM_PER_CYCLE = 128 };
/* Operations on a score beside the exponential: maximum, fma, sum, half a conversion. */
#define PER_SCORE 3.5

size_t attention_sm80_shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room)
{
	static const uint8_t bk[] = { 32, 64, 96, 128 }, warps[] = { 4, 8 };
	size_t n = 0;

	for (size_t w = 0; w < ARRAY_LEN(warps); w++)
		for (uint32_t rows = MMA_ROWS; rows <= 2 * MMA_ROWS; rows += MMA_ROWS)
			for (size_t i = 0; i < ARRAY_LEN(bk); i++) {
				cptx_attention_opt x = *o;
				x.warps = o->warps ? o->warps : warps[w];
				x.bq = o->bq ? o->bq : x.warps * rows;
				x.bk = o->bk ? o->bk : bk[i], x.stages = o->stages ? o->stages : 2;
				const bool again = (o->warps && w) || (o->bq && o->warps && rows > MMA_ROWS) || (o->bk && i) ||
				                   (o->bq && !o->warps && o->bq != x.warps * rows);
				if (n < room && !again && cptx_attention_check(&x, NULL, NULL, NULL))
					to[n++] = x;
			}
	return n;
}

void attention_sm80_cycles(const cptx_attention_opt *o, double *mma, double *softmax)
{
	const shape80 s = attention_sm80_shape(o);
	const double scores = (double)o->bq * o->bk, frags = (double)o->warps * o->bk * (s.dim + s.dim_v) * attention_bytes(o);
	const double q = s.q_in_regs ? 0 : (double)o->bq * s.dim * attention_bytes(o), shared = (frags + q) / SMEM_PER_CYCLE;

	*mma = scores * (s.dim * attention_bytes(o) / 2.0 + s.dim_v) / MMA_PER_CYCLE; /* P * V has 16 bits in any case */
	*mma = shared > *mma ? shared : *mma;
	*softmax = scores / EX2_PER_CYCLE + (scores * PER_SCORE + (double)o->bq * s.dim_v) / F32_PER_CYCLE;
}
