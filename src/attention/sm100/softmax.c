/* SPDX-License-Identifier: MIT */
/*
 * The online softmax of a row that one thread has whole.  Per score: half a max of three, half an fma and half an add of
 * .f32x2, half a conversion and an exponential.  ex2 is what a multiprocessor of sm_100a is short of (16 in a cycle, and the
 * products of a block take as long), so a share of the exponentials is computed by fma: with x = n + f, n whole, 2^f is a
 * polynomial of degree 3 in f, wrong by EX2_ERROR of it at most, and n is added to its exponent.
 */
#include "attention/sm100/forward.h"

#include <cptx/cptx.h>
#include <float.h>

enum {
	CHAINS = 4, /* that the maximum and the sum are computed in beside one another */
	PERIOD = 16,
	KEPT = 12 /* of so many scores behind one another so many are left to ex2 */
};
static const double coefficients[] = { 1, 0.695146143436431884765625, 0.227564394474029541015625,
	                                   0.077119089663028717041015625 };
#define EX2_ERROR 8.77e-5        /* of a polynomial with these, near 0.1, and of its roundings */
#define LEAST (-127.0)           /* below it the exponent would wrap around */
#define ROUNDS (0x1p23 + 0x1p22) /* added with .rm, it leaves whole numbers in the low bits, rounded down */

static cptx_val pair_of(cptx_kernel *k, cptx_val a, cptx_val b)
{
	const cptx_val v = cptx_vec(k, cptx_as(a, CPTX_B32), cptx_as(b, CPTX_B32));

	return cptx_as(cptx_mov(k, v, .type = CPTX_B64), CPTX_F32X2);
}

static cptx_val twice(cptx_kernel *k, double value)
{
	const cptx_val v = cptx_mov(k, cptx_immf(value), .type = CPTX_F32);

	return pair_of(k, v, v);
}

static void split(cptx_kernel *k, cptx_val pair, cptx_val a, cptx_val b)
{
	const cptx_val to = cptx_vec(k, cptx_as(a, CPTX_B32), cptx_as(b, CPTX_B32));

	cptx_mov(k, cptx_as(pair, CPTX_B64), .type = CPTX_B64, .into = to);
}

bool attention_sm100_by_polynomial(const cptx_attention_opt *o)
{
	return attention_sm100_shape(o).tiles > 1 && !o->fast_ex2;
}

double attention_sm100_ex2_error(const cptx_attention_opt *o) { return attention_sm100_by_polynomial(o) ? EX2_ERROR : 0; }

void attention_sm100_softmax_begin(cptx_kernel *k, softmax100 *x, const attention_in *in)
{
	/* minus infinity would give NaN, times scale or less itself: the least number takes its place */
	const cptx_val least = cptx_mul(k, cptx_min(k, cptx_rcp(k, in->scale, .rnd = CPTX_RN), 1.0f), -FLT_MAX);

	cptx_max(k, x->soft.max, least, .into = x->soft.max);
	x->in = in->o->in, x->polynomial = attention_sm100_by_polynomial(in->o);
	x->scale = pair_of(k, in->scale, in->scale);
	if (!x->polynomial)
		return;
	x->up = twice(k, ROUNDS);
	for (size_t i = 0; i < ARRAY_LEN(coefficients); i++)
		x->by[i] = twice(k, coefficients[i]);
}

/* ---- the maximum ---- */

/* Of the row so far and these scores; NaN if any is. */
static cptx_val top_of(cptx_kernel *k, const softmax100 *x, const cptx_acc *s)
{
	cptx_val chain[CHAINS], v = x->soft.max;

	for (uint32_t i = 0; i < s->count; i += 2) {
		const cptx_val a = cptx_elem(s->regs, i), b = cptx_elem(s->regs, i + 1);
		const uint32_t c = i / 2 % CHAINS;
		if (i < 2 * CHAINS && c)
			chain[c] = cptx_max(k, a, b, .NaN = true);
		else
			chain[c] = cptx_max(k, a, b, .c = i ? chain[c] : v, .NaN = true);
	}
	v = cptx_max(k, chain[0], chain[1], .c = chain[2], .NaN = true);
	return cptx_max(k, v, chain[3], .NaN = true);
}

cptx_val attention_sm100_softmax_max(cptx_kernel *k, softmax100 *x, const cptx_acc *s)
{
	const cptx_val top = top_of(k, x, s), max = x->soft.max;
	const cptx_val by = cptx_mul(k, cptx_sub(k, max, top), x->soft.scale);
	/* with room for raised probabilities below the largest number of the type alone, a maximum counts when it grows */
	const float slack = x->soft.raise != 0 ? 0 : SOFTMAX_SLACK;
	const cptx_val stays = cptx_setp(k, by, -slack, .cmp = CPTX_GE);

	cptx_selp(k, max, top, stays, .type = CPTX_F32, .into = max);
	/* of infinity 0 * infinity makes NaN of it, and so of the whole row */
	const cptx_val less = cptx_fma(k, max, cptx_neg(k, x->soft.scale), cptx_mul(k, max, -0.0f), .rnd = CPTX_RN);
	if (x->soft.raise != 0)
		cptx_add(k, less, (float)x->soft.raise, .into = less);
	x->less = pair_of(k, less, less);
	const cptx_val factor = cptx_ex2(k, cptx_selp(k, 0.0f, by, stays, .type = CPTX_F32), .ftz = true);
	cptx_mul(k, x->soft.sum, factor, .into = x->soft.sum);
	return factor;
}

/* ---- exponentials ---- */

static void by_polynomial(cptx_kernel *k, const softmax100 *x, cptx_val pair, cptx_val a, cptx_val b)
{
	const cptx_val whole[2] = { cptx_regs(k, CPTX_B32, 1), cptx_regs(k, CPTX_B32, 1) };
	const cptx_val into[2] = { cptx_as(a, CPTX_U32), cptx_as(b, CPTX_U32) };

	split(k, pair, a, b);
	cptx_max(k, a, (float)LEAST, .NaN = true, .into = a);
	cptx_max(k, b, (float)LEAST, .NaN = true, .into = b);
	pair = pair_of(k, a, b);
	const cptx_val raised = cptx_add(k, pair, x->up, .rnd = CPTX_RM, .ftz = true);
	const cptx_val part =
		cptx_sub(k, pair, cptx_sub(k, raised, x->up, .rnd = CPTX_RN, .ftz = true), .rnd = CPTX_RN, .ftz = true);
	cptx_val power = x->by[3];
	for (int i = 2; i >= 0; i--)
		power = cptx_fma(k, power, part, x->by[i], .rnd = CPTX_RN, .ftz = true);
	split(k, raised, whole[0], whole[1]);
	split(k, power, a, b);
	for (int i = 0; i < 2; i++)
		cptx_add(k, cptx_as(cptx_shl(k, whole[i], 23), CPTX_U32), into[i], .into = into[i]);
}

cptx_val attention_sm100_softmax_exp(cptx_kernel *k, const softmax100 *x, const cptx_acc *s, uint32_t first, uint32_t n,
                                     bool last)
{
	const bool bytes = x->in == CPTX_E4M3;
	const enum cptx_type type = bytes ? CPTX_E4M3X2 : x->in == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	const cptx_val words = cptx_regs(k, CPTX_B32, n / (bytes ? 4 : 2)),
				   half[2] = { cptx_reg(k, CPTX_B16), cptx_reg(k, CPTX_B16) };

	for (uint32_t i = 0; i < n; i += 2) {
		const cptx_val a = cptx_elem(s->regs, first + i), b = cptx_elem(s->regs, first + i + 1);
		const cptx_val pair = cptx_fma(k, pair_of(k, a, b), x->scale, x->less, .rnd = CPTX_RN, .ftz = true);
		if (x->polynomial && !last && i % PERIOD >= KEPT) {
			by_polynomial(k, x, pair, a, b);
		} else {
			split(k, pair, a, b);
			cptx_ex2(k, a, .ftz = true, .into = a);
			cptx_ex2(k, b, .ftz = true, .into = b);
		}
		if (!bytes) {
			cptx_cvt(k, b, .b = a, .rnd = CPTX_RN, .dtype = type, .into = cptx_as(cptx_elem(words, i / 2), type));
			continue;
		}
		cptx_cvt(k, b, .b = a, .rnd = CPTX_RN, .satfinite = true, .dtype = type, .into = cptx_as(half[i / 2 % 2], type));
		if (i % 4)
			cptx_mov(k, cptx_vec(k, half[0], half[1]), .type = CPTX_B32, .into = cptx_elem(words, i / 4));
	}
	return words;
}

void attention_sm100_softmax_sum(cptx_kernel *k, softmax100 *x, const cptx_acc *s)
{
	const cptx_val low = cptx_regs(k, CPTX_F32, 1), high = cptx_regs(k, CPTX_F32, 1);
	cptx_val chain[CHAINS];

	for (uint32_t i = 0; i < s->count; i += 2) {
		const cptx_val v = pair_of(k, cptx_elem(s->regs, i), cptx_elem(s->regs, i + 1));
		const uint32_t c = i / 2 % CHAINS;
		chain[c] = i < 2 * CHAINS ? v : cptx_add(k, chain[c], v, .rnd = CPTX_RN, .ftz = true);
	}
	for (uint32_t n = CHAINS / 2; n; n /= 2)
		for (uint32_t c = 0; c < n; c++)
			chain[c] = cptx_add(k, chain[c], chain[c + n], .rnd = CPTX_RN, .ftz = true);
	split(k, chain[0], low, high);
	cptx_add(k, x->soft.sum, cptx_add(k, low, high), .into = x->soft.sum);
}
