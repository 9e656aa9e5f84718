/* SPDX-License-Identifier: MIT */
/* A matrix of which two of four neighbours are 0, compressed as kernels with .sparse read it. */
#include "base/base.h"

#include <cptx/gemm.h>
#include <cptx/layout.h>

enum { ROWS = 16, STEP = 64, GROUP = 4, KEPT = 2, BLOCK_WORDS = 32, PLACES = STEP / GROUP * KEPT };

/* Where the place of a kept element stands in the metadata of 16 rows and 64 elements along K: bit of a word. */
typedef struct meta_bit {
	uint8_t word, bit;
} meta_bit;

/* Finds these bits as the fragment of metadata says; two instructions of 16-bit types share the words, and the second one
 * takes them from other lanes. */
static bool find_bits(uint32_t bits, meta_bit at[ROWS][PLACES], cptx_error *err)
{
	const uint32_t steps = bits == 16 ? 2 : 1, each = PLACES / steps;

	for (uint32_t s = 0; s < steps; s++) {
		const cptx_frag f = { .kind = CPTX_FRAG_MMA_META,
			                  .m = ROWS,
			                  .n = 8,
			                  .k = (uint16_t)(STEP / steps),
			                  .bits = (uint8_t)bits,
			                  .select = (uint8_t)s };
		cptx_frag_map map;
		if (!cptx_frag_resolve(&f, &map, err))
			return false;
		for (uint32_t i = 0; i < ROWS * each; i++) {
			cptx_place p = { 0 };
			cptx_frag_place(&map, (cptx_cell){ (uint16_t)(i / each), (uint16_t)(i % each) }, &p);
			at[i / each][s * each + i % each] =
				(meta_bit){ (uint8_t)(p.lane | map.value), (uint8_t)((map.first + p.slot) * map.bits) };
		}
	}
	return true;
}

/* A matrix that is compressed, and where its parts go. */
typedef struct packing {
	const uint8_t *dense;
	uint8_t *values;
	uint32_t *meta;
	enum cptx_type type;
	uint64_t m, k, ld;
	meta_bit bit[ROWS][PLACES];
} packing;

/* Element (row, col), as bits; beyond K 0. */
static uint32_t element(const packing *x, uint64_t row, uint64_t col)
{
	const uint64_t at = row * x->ld + col;

	if (col >= x->k)
		return 0;
	return cptx_type_bits(x->type) == 8 ? x->dense[at] : x->dense[2 * at] | (uint32_t)x->dense[2 * at + 1] << 8;
}

/* A number that is not 0; of floats -0 is 0. */
static bool counts(const packing *x, uint32_t v)
{
	const bool integer = x->type == CPTX_S8 || x->type == CPTX_U8;

	return integer ? v != 0 : (v & ((1u << (cptx_type_bits(x->type) - 1)) - 1)) != 0;
}

static void put_value(const packing *x, uint64_t at, uint32_t v)
{
	if (cptx_type_bits(x->type) == 8) {
		x->values[at] = (uint8_t)v;
		return;
	}
	x->values[2 * at] = (uint8_t)v, x->values[2 * at + 1] = (uint8_t)(v >> 8);
}

/* Which two of four neighbours are kept, ascending: those that count, and others beside them.  False: more than two do. */
static bool choose(const packing *x, const uint32_t v[GROUP], uint32_t kept[KEPT])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < GROUP; i++)
		if (counts(x, v[i])) {
			if (n == KEPT)
				return false;
			kept[n++] = i;
		}
	if (n == 0)
		kept[0] = 0, kept[1] = 1;
	if (n == 1)
		kept[0] = kept[0] < GROUP - 1 ? kept[0] : GROUP - 2, kept[1] = GROUP - 1;
	return true;
}

static bool pack_group(const packing *x, uint64_t row, uint64_t group, cptx_error *err)
{
	const uint64_t col = group * GROUP, blocks = (x->m + ROWS - 1) / ROWS, step = col / STEP;
	uint32_t *words = x->meta + (step * blocks + row / ROWS) * BLOCK_WORDS;
	uint32_t v[GROUP], kept[KEPT];

	for (uint32_t i = 0; i < GROUP; i++)
		v[i] = element(x, row, col + i);
	if (!choose(x, v, kept))
		return error_set(
			err, CPTX_E_ARG, NOWHERE,
			"gemm: row %llu has more than two elements that are not 0 among columns %llu to %llu; a sparse A has "
			"at most two in each four",
			(unsigned long long)row, (unsigned long long)col, (unsigned long long)(col + GROUP - 1));
	for (uint32_t i = 0; i < KEPT; i++) {
		const meta_bit b = x->bit[row % ROWS][col % STEP / GROUP * KEPT + i];
		put_value(x, row * cptx_gemm_sparse_cols(x->k) + group * KEPT + i, v[kept[i]]);
		words[b.word] |= kept[i] << b.bit;
	}
	return true;
}

bool cptx_gemm_sparse_pack(void *values, uint32_t *meta, const void *dense, enum cptx_type type, uint64_t m, uint64_t k,
                           uint64_t ld, cptx_error *err)
{
	const uint32_t bits = cptx_type_bits(type);
	packing x = { .dense = (const uint8_t *)dense, .values = (uint8_t *)values, .meta = meta, .type = type, .m = m, .k = k };

	if (!IS_GIVEN(values, "memory of values", NOWHERE, err) || !IS_GIVEN(meta, "memory of metadata", NOWHERE, err) ||
	    !IS_GIVEN(dense, "matrix", NOWHERE, err))
		return false;
	if (type != CPTX_BF16 && type != CPTX_F16 && type != CPTX_S8 && type != CPTX_U8 && type != CPTX_E4M3 &&
	    type != CPTX_E5M2)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: a sparse A of .%s; it is bf16, f16, e4m3, e5m2, s8 or u8",
		                 cptx_type_name(type));
	x.ld = ld ? ld : k;
	if (x.ld < k)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: rows of %llu elements that are %llu apart", (unsigned long long)k,
		                 (unsigned long long)ld);
	if (!find_bits(bits, x.bit, err))
		return false;
	memset(meta, 0, (size_t)cptx_gemm_sparse_meta(m, k) * sizeof *meta);
	const uint64_t rows = (m + ROWS - 1) / ROWS * ROWS, groups = cptx_gemm_sparse_cols(k) / KEPT;
	for (uint64_t row = 0; row < rows; row++)
		for (uint64_t g = 0; g < groups; g++) {
			if (row < m) {
				if (!pack_group(&x, row, g, err))
					return false;
				continue;
			}
			const meta_bit b = x.bit[row % ROWS][g * GROUP % STEP / GROUP * KEPT + 1]; /* elements 0 and 1 of nothing */
			meta[(g * GROUP / STEP * (rows / ROWS) + row / ROWS) * BLOCK_WORDS + b.word] |= UINT32_C(1) << b.bit;
		}
	return true;
}
