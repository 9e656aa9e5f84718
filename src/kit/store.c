/* SPDX-License-Identifier: MIT */
/* Elements of .f32, rounded, and stored beside one another. */
#include "kit/store.h"

#include <cptx/cptx.h>

cptx_val kit_round_pair(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val low, cptx_val high, cptx_val into)
{
	const bool half = cptx_type_bits(type) == 16;
	const enum cptx_type pair = type == CPTX_BF16   ? CPTX_BF16X2
	                            : type == CPTX_F16  ? CPTX_F16X2
	                            : type == CPTX_E4M3 ? CPTX_E4M3X2
	                                                : CPTX_E5M2X2;

	if (into.kind == CPTX_VAL_NONE)
		into = cptx_regs_(k, at, half ? CPTX_B32 : CPTX_B16, 1);
	CALL(cvt, .a = high, .b = low, .rnd = CPTX_RN, .satfinite = half ? 0 : CPTX_SATFINITE, .dtype = (uint16_t)pair,
	     .into = cptx_as(into, pair));
	return into;
}

cptx_val kit_round_word(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v)
{
	cptx_val half[2];

	switch (cptx_type_bits(type)) {
	case 32: return cptx_as(v[0], CPTX_B32);
	case 16: return kit_round_pair(k, at, type, v[0], v[1], CPTX_NONE_);
	default: break;
	}
	for (uint32_t i = 0; i < 2; i++)
		half[i] = kit_round_pair(k, at, type, v[2 * i], v[2 * i + 1], CPTX_NONE_);
	const cptx_val word = cptx_regs_(k, at, CPTX_B32, 1);
	CALL(mov, .a = cptx_pack_(k, at, half, 2), .into = word);
	return word;
}

/* Neighbours behind one another, up to 16 bytes: one register of 16 or 32 bits, or a vector of these. */
static cptx_val rounded(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v, uint32_t n)
{
	const uint32_t bits = cptx_type_bits(type), words = n * bits / 32;
	cptx_val word[4];

	if (!words) { /* two of 8 bits, or one of 8 or 16 */
		cptx_val pair = kit_round_pair(k, at, type, v[0], n == 2 ? v[1] : v[0], CPTX_NONE_), halves;
		if (bits == 8)
			return pair;
		halves = cptx_regs_(k, at, CPTX_B16, 2);
		CALL(mov, .a = pair, .into = halves);
		return cptx_elem(halves, 0);
	}
	for (uint32_t w = 0; w < words; w++)
		word[w] = kit_round_word(k, at, type, v + w * 32 / bits);
	return words == 1 ? word[0] : cptx_pack_(k, at, word, words);
}

/* `words` are what `rounded` gave. */
static void store_words(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val words, uint32_t bytes, uint16_t space,
                        cptx_val when)
{
	static const uint16_t vec[] = { 0, 0, CPTX_V2, 0, CPTX_V4 };
	const uint32_t n = bytes / 4;

	if (bytes == 1)
		CALL(st, .a = to, .b = words, .space = space, .type = CPTX_B8, .when = when);
	else
		CALL(st, .a = to, .b = words, .space = space, .vec = n ? vec[n] : 0, .type = n ? CPTX_B32 : CPTX_B16, .when = when);
}

void kit_store(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v, uint32_t n, cptx_val to, uint16_t space,
               cptx_val when)
{
	if (type == CPTX_F64) {
		CALL(st, .a = to, .b = n > 1 ? cptx_pack_(k, at, v, n) : v[0], .space = space, .vec = n > 1 ? CPTX_V2 : 0,
		     .type = CPTX_F64, .when = when);
		return;
	}
	const cptx_val words = rounded(k, at, type, v, n);
	store_words(k, at, to, words, n * cptx_type_bits(type) / 8, space, when);
}
