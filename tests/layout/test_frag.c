/* SPDX-License-Identifier: MIT */
/* Fragments: every one is a bijection (but for its copies), and agrees with the formulas and figures of the manual. */
#include "../test.h"

#include <cptx/layout.h>

static cptx_frag_map resolve(cptx_frag f)
{
	cptx_frag_map m;
	cptx_error err = { 0 };

	SURE(cptx_frag_resolve(&f, &m, &err), "%s", err.text);
	return m;
}

static uint32_t ones(uint32_t v)
{
	uint32_t n = 0;
	for (; v; v &= v - 1)
		n++;
	return n;
}

/* Every place holds an element or none, every element is held equally often, and is found where it is. */
static void bijective(cptx_frag f)
{
	cptx_frag_map m = resolve(f);
	uint32_t size = (uint32_t)m.rows * m.cols, copies = 1u << (ones(m.copies) + ones(m.reg_copies));
	uint8_t *held = calloc(size, 1);

	for (uint16_t lane = 0; lane < m.lanes; lane++)
		for (uint16_t reg = 0; reg < m.regs; reg++)
			for (uint16_t slot = 0; slot < m.slots; slot++) {
				cptx_cell c;
				if (cptx_frag_cell(&m, (cptx_place){ lane, reg, slot }, &c))
					held[c.row * m.cols + c.col]++;
				else
					SURE((lane & m.mask) != (m.value), "%llu, not %llu", (unsigned long long)(lane & m.mask),
					     (unsigned long long)(m.value));
			}
	for (uint32_t i = 0; i < size; i++) {
		cptx_cell cell = { (uint16_t)(i / m.cols), (uint16_t)(i % m.cols) }, again;
		cptx_place p;
		SURE(held[i] == copies, "%s m%un%uk%u of %u bits: row %u column %u is held %u times, not %u",
		     cptx_frag_kind_name(f.kind), f.m, f.n, f.k, f.bits, cell.row, cell.col, held[i], copies);
		SURE(cptx_frag_place(&m, cell, &p) && cptx_frag_cell(&m, p, &again), "row %u column %u is not found", cell.row,
		     cell.col);
		SURE(again.row == cell.row && again.col == cell.col, "row %u column %u is found elsewhere", cell.row, cell.col);
	}
	cptx_cell outside = { m.rows, 0 };
	cptx_place p;
	ck_assert(!cptx_frag_place(&m, outside, &p));
	free(held);
}

static void takes(cptx_frag f, uint32_t regs)
{
	ck_assert_uint_eq(resolve(f).regs, regs);
	bijective(f);
}
static void refused(cptx_frag f, const char *words)
{
	cptx_frag_map m;
	cptx_error err = { 0 };

	ck_assert(!cptx_frag_resolve(&f, &m, &err));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
}

#define FRAG(...) ((cptx_frag){ __VA_ARGS__ })

/* ---- mma: the table of registers of the manual ---- */

START_TEST(mma_shapes)
{
	static const struct {
		uint16_t m, k, bits, sparse, a, b;
	} t[] = {
		{ 16, 8, 16, 0, 2, 1 },  { 16, 16, 16, 0, 4, 2 }, { 16, 4, 32, 0, 2, 1 },  { 16, 8, 32, 0, 4, 2 },
		{ 16, 16, 8, 0, 2, 1 },  { 16, 32, 8, 0, 4, 2 },  { 16, 32, 4, 0, 2, 1 },  { 16, 64, 4, 0, 4, 2 },
		{ 16, 128, 1, 0, 2, 1 }, { 16, 256, 1, 0, 4, 2 }, { 8, 16, 8, 0, 1, 1 },   { 8, 32, 4, 0, 1, 1 },
		{ 8, 128, 1, 0, 1, 1 },  { 8, 4, 64, 0, 1, 1 },   { 16, 4, 64, 0, 2, 1 },  { 16, 8, 64, 0, 4, 2 },
		{ 16, 16, 64, 0, 8, 4 }, { 16, 16, 16, 1, 2, 2 }, { 16, 32, 16, 1, 4, 4 }, { 16, 8, 32, 1, 2, 2 },
		{ 16, 16, 32, 1, 4, 4 }, { 16, 32, 8, 1, 2, 2 },  { 16, 64, 8, 1, 4, 4 },  { 16, 64, 4, 1, 2, 2 },
		{ 16, 128, 4, 1, 4, 4 },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		cptx_frag f = { .m = t[i].m, .n = 8, .k = t[i].k, .bits = (uint8_t)t[i].bits, .sparse = t[i].sparse };
		f.kind = CPTX_FRAG_MMA_A, takes(f, t[i].a);
		f.kind = CPTX_FRAG_MMA_B, takes(f, t[i].b);
	}
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 32), 4);
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16), 2);
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 64), 4);
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 16, .bits = 32), 2);
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 4, .bits = 64), 2);
	for (int trans = 0; trans < 2; trans++) {
		takes(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 8, .n = 8, .k = 4, .bits = 16, .trans = trans), 2);
		takes(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 8, .n = 8, .k = 4, .bits = 16, .trans = trans), 2);
	}
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 4, .bits = 16), 4);
	takes(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 4, .bits = 32), 8);
}
END_TEST

START_TEST(refusals)
{
	refused(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 32, .bits = 16),
	        "no m16n8k32 with elements of 16 bits; k is a power of two from 8 to 16");
	refused(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 12, .bits = 16), "no m16n8k12");
	refused(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 16, .k = 16, .bits = 16), "m16n16");
	refused(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 6), "elements of 6 bits");
	refused(FRAG(.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 32, .bits = 16, .select = 2),
	        "sparsity selector 2; for this shape it is below 2");
	refused(FRAG(.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 64, .bits = 8, .select = 1), "below 1");
	refused(FRAG(.kind = CPTX_FRAG_MMA_SCALE_A, .select = 2), "thread-id 2");
	refused(FRAG(.kind = CPTX_FRAG_MMA_SCALE_B, .vec = 2, .byte = 1), "byte 1 with 2 factors");
	refused(FRAG(.kind = CPTX_FRAG_MMA_SCALE_B, .vec = 3), "3 factors");
	refused(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = 16, .n = 16, .k = 8, .bits = 16), "no m16n16k8");
	refused(FRAG(.kind = CPTX_FRAG_WGMMA_D, .m = 64, .n = 12, .k = 16, .bits = 32), "n12");
	refused(FRAG(.kind = CPTX_FRAG_WGMMA_A, .m = 64, .n = 8, .k = 8, .bits = 16), "it is k16");
	refused(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 16, .n = 16, .bits = 8, .num = 4, .trans = true), ".x4");
	refused(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 16, .n = 16, .bits = 8), "no m16n16 with");
	refused(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 256, .num = 64), ".x64 of 16x256b; it is a power of two up to 32");
	refused(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 32, .n = 64), "no 32x64b");
	refused(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 32, .n = 64), "M = 32; it is 64 or 128 with cta_group::1");
	refused(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 128, .n = 64, .ctas = 2, .ws = true), "cta_group::2 with .ws");
	refused(FRAG(.kind = (enum cptx_frag_kind)99), "no kind 99");
	ck_assert_str_eq(cptx_frag_kind_name((enum cptx_frag_kind)99), "?");
	ck_assert_str_eq(cptx_frag_kind_name(CPTX_FRAG_WGMMA_D), "wgmma D");
}
END_TEST

/* ---- mma: the manual's formulas, element by element ---- */

static void holds(const cptx_frag_map *m, uint32_t lane, uint32_t i, uint32_t row, uint32_t col)
{
	cptx_cell c;
	cptx_place p = { (uint16_t)lane, (uint16_t)(i / m->slots), (uint16_t)(i % m->slots) };

	SURE(cptx_frag_cell(m, p, &c), "lane %u element %u holds nothing", lane, i);
	SURE(c.row == row && c.col == col, "lane %u element %u: row %u column %u, not %u %u", lane, i, c.row, c.col, row, col);
}

START_TEST(mma_formulas)
{
	cptx_frag_map a16 = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16)),
				  b16 = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 16, .bits = 16));
	cptx_frag_map c = resolve(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 32)),
				  h = resolve(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16));
	cptx_frag_map a8 = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 32, .bits = 8)),
				  b8 = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 32, .bits = 8));
	cptx_frag_map tf = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 8, .bits = 32)),
				  f64 = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 64));
	cptx_frag_map a4 = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 64, .bits = 4)),
				  b4 = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 64, .bits = 4));
	cptx_frag_map b64 = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 16, .bits = 64));

	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t g = lane >> 2, t = lane % 4;
		for (uint32_t i = 0; i < 8; i++)
			holds(&a16, lane, i, i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0));
		for (uint32_t i = 0; i < 4; i++) {
			holds(&b16, lane, i, t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g);
			holds(&c, lane, i, i < 2 ? g : g + 8, t * 2 + (i & 1));
			holds(&h, lane, i, i < 2 ? g : g + 8, t * 2 + (i & 1));
			holds(&tf, lane, i, i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4);
			holds(&b64, lane, i, t + 4 * i, g);
		}
		for (uint32_t i = 0; i < 16; i++)
			holds(&a8, lane, i, i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16));
		for (uint32_t i = 0; i < 8; i++) {
			holds(&b8, lane, i, t * 4 + (i & 3) + (i < 4 ? 0 : 16), g);
			holds(&f64, lane, i, i % 2 ? g + 8 : g, i / 2 * 4 + t);
		}
		for (uint32_t i = 0; i < 32; i++)
			holds(&a4, lane, i, i < 8 || (i >= 16 && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i < 16 ? 0 : 32));
		for (uint32_t i = 0; i < 16; i++)
			holds(&b4, lane, i, t * 8 + (i & 7) + (i < 8 ? 0 : 32), g);
	}
}
END_TEST

/* Fragments beside one another along n: registers of the first, then of the second, and so on. */
START_TEST(mma_beside)
{
	static const cptx_frag of[] = { { .kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 16, .bits = 16 },
		                            { .kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 32, .bits = 8 },
		                            { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16 },
		                            { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 32 } };

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
		for (uint8_t n = 1; n <= 16; n = (uint8_t)(n * 2)) {
			cptx_frag f = of[i];
			cptx_frag_map one = resolve(f), all;
			f.beside = n;
			takes(f, one.regs * (uint32_t)n);
			all = resolve(f);
			SURE(all.rows == one.rows && all.cols == 8 * n, "%ux%u", all.rows, all.cols);
			for (uint32_t lane = 0; lane < 32; lane++)
				for (uint32_t slot = 0; slot < (uint32_t)one.regs * n * one.slots; slot++) {
					uint32_t in = slot % ((uint32_t)one.regs * one.slots);
					cptx_cell c;
					SURE(cptx_frag_cell(
							 &one, (cptx_place){ (uint16_t)lane, (uint16_t)(in / one.slots), (uint16_t)(in % one.slots) },
							 &c),
					     "no cell");
					holds(&all, lane, slot, c.row, c.col + 8 * (slot / ((uint32_t)one.regs * one.slots)));
				}
		}
}
END_TEST

START_TEST(m8n8k4)
{
	cptx_frag_map row_a = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 8, .n = 8, .k = 4, .bits = 16)),
				  col_a = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 8, .n = 8, .k = 4, .bits = 16, .trans = true));
	cptx_frag_map col_b = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 8, .n = 8, .k = 4, .bits = 16)),
				  row_b = resolve(FRAG(.kind = CPTX_FRAG_MMA_B, .m = 8, .n = 8, .k = 4, .bits = 16, .trans = true));
	cptx_frag_map c16 = resolve(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 4, .bits = 16)),
				  c32 = resolve(FRAG(.kind = CPTX_FRAG_MMA_C, .m = 8, .n = 8, .k = 4, .bits = 32));

	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t h = lane >= 16 ? 4 : 0, q = 8 * (lane / 4 % 4), l = lane % 4;
		for (uint32_t i = 0; i < 4; i++) {
			holds(&row_a, lane, i, q + l + h, i);
			holds(&col_a, lane, i, q + i + h, l);
			holds(&col_b, lane, i, i, q + l + h);
			holds(&row_b, lane, i, l, q + i + h);
		}
		for (uint32_t i = 0; i < 8; i++) {
			holds(&c16, lane, i, q + l + h, i);
			holds(&c32, lane, i, q + (lane & 1) + (i & 2) + h, (i & 4) + (lane & 2) + (i & 1));
		}
	}
}
END_TEST

/* ---- sparse metadata and scale factors ---- */

START_TEST(metadata)
{
	static const struct {
		uint16_t k, bits, selectors, lanes;
	} t[] = { { 16, 16, 4, 8 }, { 32, 16, 2, 16 }, { 8, 32, 4, 8 },  { 16, 32, 2, 16 },
		      { 32, 8, 2, 16 }, { 64, 8, 1, 32 },  { 64, 4, 2, 16 }, { 128, 4, 1, 32 } };

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
		for (uint8_t s = 0; s < t[i].selectors; s++) {
			cptx_frag f = {
				.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = t[i].k, .bits = (uint8_t)t[i].bits, .select = s
			};
			cptx_frag_map m = resolve(f);
			uint32_t used = 0;
			for (uint32_t lane = 0; lane < 32; lane++)
				used += (lane & m.mask) == m.value;
			SURE((used) == (t[i].lanes), "%llu, not %llu", (unsigned long long)(used), (unsigned long long)(t[i].lanes));
			SURE((m.slots * m.bits) == (32), "%llu, not %llu", (unsigned long long)(m.slots * m.bits),
			     (unsigned long long)(32));
			takes(f, 1);
		}
	/* the words of lanes 2F and 2F + 1: k halves (16 bits), rows (8 bits) */
	cptx_frag_map f16 = resolve(FRAG(.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 32, .bits = 16, .select = 1));
	cptx_frag_map s8 = resolve(FRAG(.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 32, .bits = 8, .select = 0));
	cptx_frag_map s8x2 = resolve(FRAG(.kind = CPTX_FRAG_MMA_META, .m = 16, .n = 8, .k = 64, .bits = 8));
	holds(&f16, 4 * 3 + 2, 5, 3, 5);
	holds(&f16, 4 * 3 + 2, 8 + 5, 3 + 8, 5);
	holds(&f16, 4 * 3 + 3, 5, 3, 8 + 5);
	holds(&s8, 4 * 3 + 1, 15, 3 + 8, 15);
	holds(&s8x2, 4 * 3 + 1, 2, 3 + 8, 2);
	holds(&s8x2, 4 * 3 + 2, 2, 3, 16 + 2);
	bijective(FRAG(.kind = CPTX_FRAG_WGMMA_META, .m = 64, .n = 8, .k = 32, .bits = 16, .select = 1));
	bijective(FRAG(.kind = CPTX_FRAG_WGMMA_META, .m = 64, .n = 8, .k = 16, .bits = 32));
	bijective(FRAG(.kind = CPTX_FRAG_WGMMA_META, .m = 64, .n = 8, .k = 64, .bits = 8));
}
END_TEST

START_TEST(scales)
{
	static const uint8_t vecs[] = { 1, 2, 4 };

	for (size_t v = 0; v < 3; v++)
		for (uint8_t byte = 0; byte < 4; byte = (uint8_t)(byte + vecs[v]))
			for (uint8_t thread = 0; thread < 4; thread++) {
				cptx_frag f = { .kind = CPTX_FRAG_MMA_SCALE_B, .select = thread, .byte = byte, .vec = vecs[v] };
				takes(f, 1);
				SURE((resolve(f).first) == (byte), "%llu, not %llu", (unsigned long long)(resolve(f).first),
				     (unsigned long long)(byte));
				cptx_frag_map b = resolve(f);
				holds(&b, 4u * 5 + thread, 0, 0, 5);
				f.kind = CPTX_FRAG_MMA_SCALE_A, f.select = thread & 1;
				takes(f, 1);
			}
	cptx_frag_map a = resolve(FRAG(.kind = CPTX_FRAG_MMA_SCALE_A, .select = 1, .vec = 4));
	holds(&a, 4 * 6 + 2, 3, 6, 3);
	holds(&a, 4 * 6 + 3, 1, 6 + 8, 1);
	cptx_cell c;
	ck_assert(!cptx_frag_cell(&a, (cptx_place){ 1, 0, 0 }, &c));
}
END_TEST

/* ---- wmma, wgmma ---- */

START_TEST(wmma)
{
	static const uint16_t shape[][2] = { { 16, 16 }, { 8, 32 }, { 32, 8 } };

	for (size_t i = 0; i < 3; i++) {
		uint16_t m = shape[i][0], n = shape[i][1];
		takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = m, .n = n, .k = 16, .bits = 16, .repeated = true), 8);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_B, .m = m, .n = n, .k = 16, .bits = 16, .repeated = true), 8);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = m, .n = n, .k = 16, .bits = 16), m / 4u);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_B, .m = m, .n = n, .k = 16, .bits = 16), n / 4u);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = m, .n = n, .k = 16, .bits = 8), m / 8u);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_B, .m = m, .n = n, .k = 16, .bits = 8), n / 8u);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_C, .m = m, .n = n, .k = 16, .bits = 32), 8);
		takes(FRAG(.kind = CPTX_FRAG_WMMA_C, .m = m, .n = n, .k = 16, .bits = 16), 4);
	}
	takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = 16, .n = 16, .k = 8, .bits = 32), 4);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_B, .m = 16, .n = 16, .k = 8, .bits = 32), 4);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = 8, .n = 8, .k = 4, .bits = 64), 1);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_C, .m = 8, .n = 8, .k = 4, .bits = 64), 2);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_B, .m = 8, .n = 8, .k = 32, .bits = 4), 1);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_A, .m = 8, .n = 8, .k = 128, .bits = 1), 1);
	takes(FRAG(.kind = CPTX_FRAG_WMMA_C, .m = 8, .n = 8, .k = 128, .bits = 32), 2);
}
END_TEST

START_TEST(wgmma)
{
	static const uint16_t k_of[][2] = { { 16, 16 }, { 8, 32 }, { 32, 8 }, { 256, 1 } };

	for (uint16_t n = 8; n <= 256; n = (uint16_t)(n + 8)) {
		takes(FRAG(.kind = CPTX_FRAG_WGMMA_D, .m = 64, .n = n, .k = 16, .bits = 32), n / 2u);
		takes(FRAG(.kind = CPTX_FRAG_WGMMA_D, .m = 64, .n = n, .k = 16, .bits = 16), n / 4u);
	}
	for (size_t i = 0; i < 4; i++) {
		takes(FRAG(.kind = CPTX_FRAG_WGMMA_A, .m = 64, .n = 8, .k = k_of[i][0], .bits = (uint8_t)k_of[i][1]), 4);
		if (i < 3)
			takes(FRAG(.kind = CPTX_FRAG_WGMMA_A, .m = 64, .n = 8, .k = (uint16_t)(2 * k_of[i][0]),
			           .bits = (uint8_t)k_of[i][1], .sparse = true),
			      4);
	}
	cptx_frag_map d = resolve(FRAG(.kind = CPTX_FRAG_WGMMA_D, .m = 64, .n = 24, .k = 16, .bits = 32)),
				  a = resolve(FRAG(.kind = CPTX_FRAG_WGMMA_A, .m = 64, .n = 8, .k = 16, .bits = 16));
	for (uint32_t lane = 0; lane < 128; lane++) {
		uint32_t w = lane / 32, g = lane % 32 / 4, t = lane % 4;
		for (uint32_t i = 0; i < 12; i++)
			holds(&d, lane, i, 16 * w + g + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * t + i % 2);
		for (uint32_t i = 0; i < 8; i++)
			holds(&a, lane, i, 16 * w + g + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * t + i % 2);
	}
}
END_TEST

/* ---- ldmatrix, stmatrix ---- */

START_TEST(matrices)
{
	for (uint8_t num = 1; num <= 4; num = (uint8_t)(num * 2)) {
		for (int trans = 0; trans < 2; trans++) {
			takes(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = 16, .num = num, .trans = trans), num);
			takes(FRAG(.kind = CPTX_FRAG_STMATRIX, .m = 8, .n = 8, .bits = 16, .num = num, .trans = trans), num);
		}
		takes(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 16, .bits = 8, .num = num), num);
		takes(FRAG(.kind = CPTX_FRAG_STMATRIX, .m = 16, .n = 8, .bits = 8, .num = num, .trans = true), num);
		if (num < 4)
			takes(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 16, .n = 16, .bits = 8, .num = num, .trans = true), num * 2u);
	}
	cptx_frag_map x4 = resolve(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = 16, .num = 4));
	cptx_frag_map tr = resolve(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = 16, .num = 2, .trans = true));
	cptx_frag_map b8 = resolve(FRAG(.kind = CPTX_FRAG_LDMATRIX, .m = 16, .n = 16, .bits = 8, .num = 2, .trans = true));
	cptx_frag_map st = resolve(FRAG(.kind = CPTX_FRAG_STMATRIX, .m = 16, .n = 8, .bits = 8, .num = 2, .trans = true));
	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t g = lane / 4, t = lane % 4;
		for (uint32_t i = 0; i < 8; i++)
			holds(&x4, lane, i, 8 * (i / 2) + g, 2 * t + i % 2);
		for (uint32_t i = 0; i < 4; i++)
			holds(&tr, lane, i, 8 * (i / 2) + 2 * t + i % 2, g);
		for (uint32_t i = 0; i < 16; i++)
			holds(&b8, lane, i, 16 * (i / 8) + 4 * t + i % 4, g + 8 * (i / 4 % 2));
		for (uint32_t i = 0; i < 8; i++) /* line n of 16 bytes: m = g + 8 * (e >> 1), n = 2t + (e & 1) */
			holds(&st, lane, i, 8 * (i / 4) + 2 * t + i % 2, g + 8 * (i % 4 / 2));
	}
	/* ldmatrix .x4 of a 16x16 tile, rows as the quarters of mma's A, gives mma's A */
	cptx_frag_map a = resolve(FRAG(.kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16));
	for (uint16_t lane = 0; lane < 32; lane++)
		for (uint16_t i = 0; i < 8; i++) {
			cptx_cell of_a, of_x4;
			cptx_place p = { lane, i / 2, i % 2 };
			SURE(cptx_frag_cell(&a, p, &of_a) && cptx_frag_cell(&x4, p, &of_x4), "not so");
			SURE((of_a.row) == (of_x4.row % 16), "%llu, not %llu", (unsigned long long)(of_a.row),
			     (unsigned long long)(of_x4.row % 16));
			SURE((of_a.col) == (of_x4.col + 8 * (of_x4.row / 16)), "%llu, not %llu", (unsigned long long)(of_a.col),
			     (unsigned long long)(of_x4.col + 8 * (of_x4.row / 16)));
		}
}
END_TEST

/* ---- tensor memory ---- */

START_TEST(tcgen05_moves)
{
	static const uint16_t shape[][3] = { { 32, 32, 1 }, { 16, 64, 1 }, { 16, 128, 2 }, { 16, 256, 4 } };

	for (size_t s = 0; s < 4; s++)
		for (uint16_t num = 1; num * shape[s][2] <= 128; num = (uint16_t)(num * 2))
			for (int pack = 0; pack < 2; pack++)
				takes(
					FRAG(.kind = CPTX_FRAG_TCGEN05, .m = shape[s][0], .n = shape[s][1], .num = (uint8_t)num, .pack16 = pack),
					(uint32_t)num * shape[s][2]);
	for (uint16_t num = 1; num <= 128; num = (uint16_t)(num * 2))
		takes(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 32, .num = (uint8_t)num, .split = num), num);
	cptx_frag_map a = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 64, .num = 8)),
				  b = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 128, .num = 8));
	cptx_frag_map c = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 256, .num = 8)),
				  d = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 32, .n = 32, .num = 8));
	cptx_frag_map e = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 32, .num = 8, .split = 100));
	cptx_frag_map packed = resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 256, .num = 1, .pack16 = true));
	for (uint32_t lane = 0; lane < 32; lane++) {
		for (uint32_t r = 0; r < 8; r++) {
			holds(&a, lane, r, (lane >> 2) + 8 * (lane & 1), ((lane >> 1) & 1) + 2 * r);
			holds(&b, lane, r, (lane >> 2) + 8 * (r & 1), (lane & 3) + 4 * (r >> 1));
			holds(&c, lane, r, (lane >> 2) + 8 * ((r >> 1) & 1), 2 * (lane & 3) + (r & 1) + 8 * (r >> 2));
			holds(&d, lane, r, lane, r);
			holds(&e, lane, r, lane & 15, r + 100 * (lane >> 4));
		}
		for (uint32_t i = 0; i < 8; i++) /* CuTe: ((4,8),(64,2)) : ((64,256),(1,2048)) bits of 16-bit columns */
			holds(&packed, lane, i, lane / 4 + 8 * (i / 4), 4 * (lane % 4) + i % 4);
	}
}
END_TEST

/* A second half that lies over the first: every column is found, though not twice. */
START_TEST(tcgen05_overlap)
{
	for (uint16_t num = 1; num <= 128; num = (uint16_t)(num * 2))
		for (uint16_t split = 0; split <= 2 * num; split++) {
			cptx_frag_map m =
				resolve(FRAG(.kind = CPTX_FRAG_TCGEN05, .m = 16, .n = 32, .num = (uint8_t)num, .split = split));
			for (uint16_t col = 0; col < m.cols; col++) {
				cptx_place p;
				cptx_cell c;
				bool in = col < num || col >= split;
				SURE(cptx_frag_place(&m, (cptx_cell){ 3, col }, &p) == in, "x%u split %u column %u", num, split, col);
				SURE(!in || (cptx_frag_cell(&m, p, &c) && c.row == 3 && c.col == col), "not so");
			}
		}
}
END_TEST

START_TEST(tcgen05_operands)
{
	for (uint16_t n = 32; n <= 256; n = (uint16_t)(n + 32)) {
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 128, .n = n), n);                            /* D */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 64, .n = n), n);                             /* F */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 256, .n = n, .ctas = 2), n);                 /* A */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 128, .n = n, .ctas = 2), n / 2u);            /* B */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 128, .n = n, .ctas = 2, .sparse = true), n); /* C */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 64, .n = n, .ws = true), n / 2u);            /* E */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 32, .n = n, .ws = true), n / 4u);            /* G */
		takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_B, .m = 128, .n = n, .vec = 2, .byte = 2), n == 32 ? 1 : (n + 31) / 32u);
	}
	takes(FRAG(.kind = CPTX_FRAG_TMEM_A, .m = 128, .n = 8, .k = 16, .bits = 16), 8);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_A, .m = 64, .n = 8, .k = 32, .bits = 8), 8);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_A, .m = 128, .n = 8, .k = 16, .bits = 16, .ctas = 2), 8);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_A, .m = 128, .n = 8, .k = 64, .bits = 8, .sparse = true), 8);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_A, .m = 128, .vec = 4), 4);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_B, .m = 128, .n = 128, .vec = 4, .ctas = 2), 2);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 128, .n = 8, .k = 32, .bits = 16), 1);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 128, .n = 8, .k = 16, .bits = 32), 1);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 128, .n = 8, .k = 64, .bits = 8), 2);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 128, .n = 8, .k = 128, .bits = 4), 2);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 64, .n = 8, .k = 32, .bits = 16), 1);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 32, .n = 8, .k = 64, .bits = 8, .ws = true), 2);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_META, .m = 128, .n = 8, .k = 16, .bits = 32, .ctas = 2, .sparse = true), 1);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_A, .m = 128, .n = 8, .k = 96, .bits = 4), 12);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_A, .m = 128, .vec = 3, .byte = 1), 4);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_A, .m = 128, .vec = 3, .byte = 3), 8);
	takes(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_B, .m = 256, .n = 256, .vec = 6, .ctas = 2), 16);
	cptx_frag_map f = resolve(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 64, .n = 48)),
				  e = resolve(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 64, .n = 64, .ws = true));
	cptx_frag_map g = resolve(FRAG(.kind = CPTX_FRAG_TMEM_D, .m = 32, .n = 128, .ws = true)),
				  s = resolve(FRAG(.kind = CPTX_FRAG_TMEM_SCALE_A, .m = 128, .vec = 4));
	for (uint16_t m = 0; m < 128; m++)
		for (uint16_t n = 0; n < 48; n++) {
			cptx_place p;
			if (m < 64) {
				SURE(cptx_frag_place(&f, (cptx_cell){ m, n }, &p), "not so");
				SURE((p.lane) == (m % 16 + 32 * (m / 16)), "%llu, not %llu", (unsigned long long)(p.lane),
				     (unsigned long long)(m % 16 + 32 * (m / 16)));
				SURE((p.reg) == (n), "%llu, not %llu", (unsigned long long)(p.reg), (unsigned long long)(n));
				SURE(cptx_frag_place(&e, (cptx_cell){ m, n }, &p), "not so");
				SURE((p.lane) == (m + 64 * (n / 32)), "%llu, not %llu", (unsigned long long)(p.lane),
				     (unsigned long long)(m + 64 * (n / 32)));
				SURE((p.reg) == (n % 32), "%llu, not %llu", (unsigned long long)(p.reg), (unsigned long long)(n % 32));
			}
			if (m < 32) {
				SURE(cptx_frag_place(&g, (cptx_cell){ m, n }, &p), "not so");
				SURE((p.lane) == (m + 32 * (n / 32)), "%llu, not %llu", (unsigned long long)(p.lane),
				     (unsigned long long)(m + 32 * (n / 32)));
			}
			if (n < 4) {
				SURE(cptx_frag_place(&s, (cptx_cell){ m, n }, &p), "not so");
				SURE(p.lane == m % 32 && p.reg == m / 32 && p.slot == n, "not so");
			}
		}
	ck_assert_uint_eq(s.copies, 0x60);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("frag");
	TCase *t = tcase_create("frag");

	tcase_add_test(t, mma_shapes);
	tcase_add_test(t, mma_beside);
	tcase_add_test(t, refusals);
	tcase_add_test(t, mma_formulas);
	tcase_add_test(t, m8n8k4);
	tcase_add_test(t, metadata);
	tcase_add_test(t, scales);
	tcase_add_test(t, wmma);
	tcase_add_test(t, wgmma);
	tcase_add_test(t, matrices);
	tcase_add_test(t, tcgen05_moves);
	tcase_add_test(t, tcgen05_overlap);
	tcase_add_test(t, tcgen05_operands);
	suite_add_tcase(s, t);
	return test_main("layout_frag", s);
}
