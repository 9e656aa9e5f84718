/* SPDX-License-Identifier: MIT */
/* Tiled products: what follows from their options, and the instructions of a tile. */
#include "base/options.h"
#include "kit/mma.h"
#include "kit/value.h"

#include <cptx/cptx.h>

#include <stdio.h>

/* ---- operand types ---- */

/* Where a unit begins in a tile: bytes to be added, and to be exclusive-ored; NONE: 0. */
typedef struct unit_place {
	cptx_val first, flip;
} unit_place;

const kit_mma_type *kit_mma_type_of(enum cptx_type type)
{
	static const kit_mma_type all[] = {
		{ CPTX_BF16, 16, 16, 16, false, CPTX_TCGEN05_F16 },
		{ CPTX_F16, 16, 16, 16, false, CPTX_TCGEN05_F16 },
		{ CPTX_TF32, 32, 32, 8, false, CPTX_TCGEN05_TF32 },
		{ CPTX_E4M3, 8, 8, 32, false, CPTX_TCGEN05_F8F6F4 },
		{ CPTX_E5M2, 8, 8, 32, false, CPTX_TCGEN05_F8F6F4 },
		{ CPTX_E2M3, 6, 8, 32, false, CPTX_TCGEN05_F8F6F4 },
		{ CPTX_E3M2, 6, 8, 32, false, CPTX_TCGEN05_F8F6F4 },
		{ CPTX_E2M1, 4, 8, 32, false, CPTX_TCGEN05_F8F6F4 },
		{ CPTX_S8, 8, 8, 32, true, CPTX_TCGEN05_I8 },
		{ CPTX_U8, 8, 8, 32, true, CPTX_TCGEN05_I8 },
		{ CPTX_F64, 64, 64, 8, false, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].type == type)
			return &all[i];
	return NULL;
}

uint32_t kit_unit_threads(enum cptx_mma_by by) { return by == CPTX_BY_MMA_SYNC ? CPTX_WARP : 4 * CPTX_WARP; }

cptx_val kit_plain(cptx_kernel *k, cptx_site at, cptx_val address)
{
	const int64_t behind = address.kind == CPTX_VAL_REG ? address.offset : 0;

	if (!behind)
		return address;
	address.offset = 0;
	return CALL(add, .a = address, .b = cptx_imm(behind));
}

/* ---- rules ---- */

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok)) {                                                                                                        \
			cptx_fail_(k, at, "a tiled mma " __VA_ARGS__);                                                                  \
			return false;                                                                                                   \
		}                                                                                                                   \
	while (0)

static bool check_types(cptx_kernel *k, cptx_site at, const cptx_tiled_mma_opt *o)
{
	const kit_mma_type *a = kit_mma_type_of(o->a), *b = kit_mma_type_of(o->b);

	RULE(a && b, "of .%s and .%s; .a and .b are CPTX_BF16, F16, TF32, F64, E4M3, E5M2, E2M3, E3M2, E2M1, S8 or U8",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	RULE(a->bits == b->bits && a->integer == b->integer && (a->bits == 8 || a->type == b->type),
	     "of .%s and .%s; A and B have the same type, or two of 8 bits that are both integers or both not",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	RULE(o->by == CPTX_BY_MMA_SYNC || (o->a_base.kind == CPTX_VAL_NONE && o->b_base.kind == CPTX_VAL_NONE),
	     "by wgmma or tcgen05 with .a_base or .b_base; those are for mma.sync");
	RULE(o->by == CPTX_BY_MMA_SYNC || !o->few_regs,
	     "by wgmma or tcgen05 with .few_regs; that is for mma.sync, whose lanes have addresses of their own");
	RULE(!o->desc32 || (o->by == CPTX_BY_WGMMA && o->a_ring.kind != CPTX_VAL_NONE),
	     "with .desc32 %s; that is for wgmma with .a_ring and .b_ring",
	     o->by == CPTX_BY_WGMMA ? "and without rings" : "by mma.sync or tcgen05");
	RULE(o->by != CPTX_BY_WGMMA || !a->integer || o->n <= 32 || o->n % 16 == 0,
	     "of .%s by wgmma with n = %u; of integers it is 8, 16, 24, 32 or a multiple of 16", cptx_type_name(o->a), o->n);
	RULE(o->a_from != CPTX_A_REGS || a->bits == 16 || (o->by == CPTX_BY_WGMMA && a->bits == 8 && !a->integer),
	     "of .%s with A from registers; that has 16 bits, or by wgmma those of an 8-bit float", cptx_type_name(o->a));
	RULE(a->bits != 64 || (o->by == CPTX_BY_MMA_SYNC && o->a_from == CPTX_A_SHARED && !o->scale),
	     "of .f64 %s; it goes by mma.sync, with A in shared memory",
	     o->by != CPTX_BY_MMA_SYNC ? "by wgmma or tcgen05"
	     : o->scale                ? "with scale factors"
	                               : "and A that is elsewhere");
	RULE(!o->tall || a->bits == 64, "of .%s with .tall; that is for .f64, other instructions have 16 rows anyway",
	     cptx_type_name(o->a));
	RULE(o->by == CPTX_BY_TCGEN05 || o->scale || (a->elem >= 8 && b->elem >= 8),
	     "of .%s and .%s without scale factors; types of less than 8 bits go by CPTX_BY_TCGEN05, or with .scale",
	     cptx_type_name(o->a), cptx_type_name(o->b));
	return true;
}

/* Rules of a sparse A, of which two of four neighbours along K are stored. */
static bool check_sparse(cptx_kernel *k, cptx_site at, const cptx_tiled_mma_opt *o)
{
	const kit_mma_type *a = kit_mma_type_of(o->a);

	if (!o->sparse)
		return true;
	RULE(o->by != CPTX_BY_TCGEN05 && o->a_from == CPTX_A_SHARED && !o->scale,
	     "with a sparse A %s; it goes by mma.sync and wgmma, from shared memory, without scale factors",
	     o->by == CPTX_BY_TCGEN05 ? "by tcgen05"
	     : o->scale               ? "with scale factors"
	                              : "that is not in shared memory");
	RULE(a->elem == 16 || a->elem == 8, "with a sparse A of .%s; its elements have 8 or 16 bits", cptx_type_name(o->a));
	RULE(o->b_tile.cols % KIT_META_K == 0, "with a sparse A and a tile of B of %u elements along K; it has a multiple of %d",
	     o->b_tile.cols, KIT_META_K);
	return true;
}

/* Whether two elements share a byte, in shared memory and in tensor cores. */
static bool is_packed(const cptx_tiled_mma_opt *o)
{
	return o->a == CPTX_E2M1 && o->b == CPTX_E2M1 && !o->b_tile.elem.padded;
}

static bool check_scale(cptx_kernel *k, cptx_site at, const cptx_tiled_mma_opt *o)
{
	const kit_mma_type *a = kit_mma_type_of(o->a);
	const bool packed = is_packed(o), sync = o->by == CPTX_BY_MMA_SYNC;
	const uint32_t each = (o->scale == CPTX_UE4M3 ? 16 : 32) * CPTX_SCALE_FACTORS;

	RULE(o->scale || !packed, "of .e2m1 without scale factors, whose tiles are not padded; say .scale, or .elem.padded");
	if (!o->scale)
		return true;
	RULE(o->by != CPTX_BY_WGMMA, "by wgmma with scale factors; CPTX_BY_TCGEN05 and CPTX_BY_MMA_SYNC take them");
	RULE(a->bits == 8 && !a->integer, "of .%s with scale factors; these are for E4M3, E5M2, E2M3, E3M2 and E2M1",
	     cptx_type_name(o->a));
	RULE(o->scale == CPTX_UE8M0 || (o->scale == CPTX_UE4M3 && packed), "with scale factors of .%s; they are CPTX_UE8M0%s",
	     cptx_type_name(o->scale), packed ? " or UE4M3" : ", or UE4M3 of .e2m1 that is not padded");
	RULE(o->n % 32 == 0 && (!sync || o->m % 32 == 0), "with scale factors of %u x %u; a unit has multiples of 32", o->m,
	     o->n);
	RULE(!sync || (o->m * o->units_m <= CPTX_SCALE_ROWS && o->n * o->units_n <= CPTX_SCALE_ROWS),
	     "by mma.sync with scale factors of %u x %u; a CTA has at most 128 rows and 128 columns", o->m * o->units_m,
	     o->n * o->units_n);
	RULE(!sync || o->a_from == CPTX_A_SHARED, "with scale factors and A from registers; it comes from shared memory");
	RULE(o->b_tile.cols % each == 0, "whose tiles have %u elements along K; blocks of scale factors are of %u",
	     o->b_tile.cols, each);
	return true;
}

static bool check_shape(cptx_kernel *k, cptx_site at, const cptx_tiled_mma_opt *o)
{
	const bool sync = o->by == CPTX_BY_MMA_SYNC, tmem = o->by == CPTX_BY_TCGEN05;
	const uint32_t m = sync ? 16 : tmem ? 128 * o->ctas : 64, n = tmem ? 16 * o->ctas : 8;

	RULE(o->by <= CPTX_BY_TCGEN05, "with .by = %d; it is CPTX_BY_MMA_SYNC, CPTX_BY_WGMMA or CPTX_BY_TCGEN05", (int)o->by);
	RULE(o->ctas == 1 || (o->ctas == 2 && tmem), "of %u CTAs; it is one, or by tcgen05 a pair", o->ctas);
	RULE(o->m && o->m <= (tmem ? m : 1024) && o->m % m == 0, "with m = %u; it is %s %u", o->m,
	     tmem ? "always" : "a multiple of", m);
	RULE(o->n && o->n <= (sync ? 1024 : 256) && o->n % n == 0, "with n = %u; it is a multiple of %u, at most %u", o->n, n,
	     sync ? 1024 : 256);
	RULE(!tmem || (o->units_m <= 1 && o->units_n <= 1), "by tcgen05 with %u x %u units; it has one", o->units_m, o->units_n);
	RULE(o->units_m <= 32 && o->units_n <= 32, "with %u x %u units; at most 32 x 32", o->units_m, o->units_n);
	const uint32_t threads = o->units_m * o->units_n * kit_unit_threads(o->by);
	const uint32_t block = cptx_kernel_block(k, 0) * cptx_kernel_block(k, 1) * cptx_kernel_block(k, 2);
	RULE(!block || threads <= block, "with %u x %u units of %u threads; the kernel's .block has %u", o->units_m, o->units_n,
	     kit_unit_threads(o->by), block);
	RULE((uint64_t)o->m / o->ctas * o->n <= 65535, "with %u x %u elements in a unit; at most 65535", o->m, o->n);
	RULE(o->a_from == CPTX_A_SHARED || (o->a_from == CPTX_A_REGS && !tmem) || (o->a_from == CPTX_A_TMEM && tmem),
	     "whose A cannot be there: mma.sync and wgmma take it from shared memory or registers, tcgen05 from shared or "
	     "tensor memory");
	return true;
}

static bool check_tile(cptx_kernel *k, cptx_site at, const char *what, const cptx_tile *t, enum cptx_type type,
                       uint32_t rows, uint32_t depth, bool packed)
{
	const uint32_t bits = kit_mma_type_of(type)->elem;
	cptx_error err = { .code = CPTX_OK };

	RULE(cptx_tile_check(t, &err), "whose tile of %s is wrong: %s", what, err.text);
	RULE(t->elem.bits == bits, "whose tile of %s has elements of %u bits; the type has %u", what, t->elem.bits, bits);
	RULE(t->elem.padded == (bits < 8 && !packed), "whose tile of %s %s padded; of .%s it %s", what,
	     t->elem.padded ? "is" : "is not", cptx_type_name(type),
	     packed ? "is not, as that of B" : "should be: .elem.padded");
	RULE(t->rows == rows, "whose tile of %s has %u rows; the units of a CTA have %u", what, t->rows, rows);
	RULE(bits != 64 || (!t->elem.mn_major && t->swizzle == CPTX_SWIZZLE_64B && !t->pitch),
	     "whose tile of %s of .f64 is not K-major with the 64-byte swizzle", what);
	RULE(t->cols % depth == 0, "whose tile of %s has %u elements along K; an instruction takes %u", what, t->cols, depth);
	return true;
}

static bool check_tiles(cptx_kernel *k, cptx_site at, const cptx_tiled_mma_opt *o)
{
	const bool packed = is_packed(o);
	const uint32_t depth_of_a = kit_mma_type_of(o->a)->depth * (packed ? 2 : 1), depth = depth_of_a * (o->sparse ? 2 : 1);

	if (!check_tile(k, at, "B", &o->b_tile, o->b, o->n * o->units_n / o->ctas, depth, packed))
		return false;
	if (o->a_from == CPTX_A_REGS || (o->a_from == CPTX_A_TMEM && !o->a_tile.rows))
		return true;
	if (!check_tile(k, at, "A", &o->a_tile, o->a, o->m * o->units_m / o->ctas, depth_of_a, packed))
		return false;
	RULE(o->a_tile.cols * (o->sparse ? 2 : 1) == o->b_tile.cols, "whose tiles have %u and %u elements along K; %s",
	     o->a_tile.cols, o->b_tile.cols, o->sparse ? "a sparse A has half of them" : "they have the same");
	return true;
}

/* ---- what follows ---- */

static cptx_frag fragment(const cptx_tiled_mma *mma, enum cptx_frag_kind kind)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	const bool sync = o->by == CPTX_BY_MMA_SYNC, f64 = kit_is_f64(mma), small = f64 && !o->tall;
	const bool of_d = kind == CPTX_FRAG_MMA_C || kind == CPTX_FRAG_WGMMA_D;

	return (cptx_frag){ .kind = kind,
		                .m = !sync   ? 64
		                     : small ? 8
		                             : 16,
		                .n = (uint16_t)mma->atom_n,
		                .k = (uint16_t)(small ? 4 : mma->depth),
		                .bits = of_d && !f64 ? 32 : kit_mma_type_of(o->a)->bits,
		                .sparse = o->sparse,
		                .beside = kind == CPTX_FRAG_MMA_B && kit_rows_of_b(mma) == 16 ? 2 : 0 };
}

static bool resolve(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	const bool sync = mma->opt.by == CPTX_BY_MMA_SYNC;
	const cptx_frag a = fragment(mma, sync ? CPTX_FRAG_MMA_A : CPTX_FRAG_WGMMA_A);
	const cptx_frag d = fragment(mma, sync ? CPTX_FRAG_MMA_C : CPTX_FRAG_WGMMA_D), b = fragment(mma, CPTX_FRAG_MMA_B);
	cptx_error err = { .code = CPTX_OK };

	if (mma->opt.by == CPTX_BY_TCGEN05)
		return true;
	if (mma->vec)
		return kit_scaled_resolve(k, at, mma);
	RULE(cptx_frag_resolve(&a, &mma->a_map, &err) && cptx_frag_resolve(&d, &mma->d_map, &err), "has no fragment: %s",
	     err.text);
	if (!sync || kit_is_f64(mma))
		return true;
	RULE(mma->opt.a_from == CPTX_A_REGS || cptx_tile_lines(&mma->opt.a_tile, &a, 0, 0, &mma->a_lines, &err),
	     "cannot read its A by ldmatrix: %s", err.text);
	RULE(cptx_tile_lines(&mma->opt.b_tile, &b, 0, 0, &mma->b_lines, &err), "cannot read its B by ldmatrix: %s", err.text);
	return true;
}

static bool describe(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	char text[24];
	cptx_error err = { .code = CPTX_OK };

	if (o->by == CPTX_BY_TCGEN05) {
		RULE(kit_insn_desc(mma, 0, &mma->idesc, &err), "has no instruction descriptor: %s", err.text);
		return true;
	}
	snprintf(text, sizeof text, "m%un%uk%u", o->by == CPTX_BY_WGMMA ? 64 : mma->d_map.rows, mma->atom_n,
	         kit_is_f64(mma) && !o->tall ? 4 : mma->depth);
	mma->shape = cptx_mod_find(text);
	return true;
}

/* Where the rows of a unit begin in a tile, if units lie at equal distances and a swizzle begins with each; else UINT32_MAX.
 */
static uint32_t distance_of_units(const cptx_tile *t, uint32_t rows, uint32_t units)
{
	uint32_t each = units > 1 ? cptx_tile_at(t, rows, 0).byte : 0;

	for (uint32_t u = 1; u < units; u++)
		if (cptx_tile_at(t, u * rows, 0).byte != u * each)
			return UINT32_MAX;
	return each % cptx_tile_align(t) ? UINT32_MAX : each;
}

/*
 * Units of an MN-major tile that share a swizzle span: those before a unit in its span are exclusive-ored to addresses, as
 * a span begins at a multiple of its pattern and so has no carry.  How many share one; 0: the rows do not divide a span.
 */
static uint32_t units_of_span(const cptx_tile *t, uint32_t rows)
{
	const cptx_swizzle_info *w = cptx_swizzle_get(t->swizzle);
	const uint32_t span = w ? w->span * 8 / t->elem.bits : 0;

	return t->elem.mn_major && !t->pitch && span > rows && span % rows == 0 && !(rows & (rows - 1)) ? span / rows : 0;
}

static bool find_first(cptx_kernel *k, cptx_site at, const char *what, const cptx_tile *t, uint32_t rows, uint32_t units,
                       cptx_val unit, unit_place *p)
{
	const uint32_t share = units_of_span(t, rows);

	if (share && units > 1) {
		uint32_t next = units > share ? cptx_tile_at(t, share * rows, 0).byte : 0;
		p->flip = CALL(mul, .a = CALL(and, .a = unit, .b = cptx_imm(share - 1)), .b = cptx_imm(rows * t->elem.bits / 8),
		               .mode = CPTX_LO);
		if (next)
			p->first = CALL(mul, .a = CALL(div, .a = unit, .b = cptx_imm(share)), .b = cptx_imm(next), .mode = CPTX_LO);
		return true;
	}
	uint32_t each = distance_of_units(t, rows, units);

	RULE(each != UINT32_MAX,
	     "whose units have %u rows of the tile of %s each; they should begin at multiples of %u bytes, one swizzle pattern",
	     rows, what, cptx_tile_align(t));
	if (units > 1)
		p->first = CALL(mul, .a = unit, .b = cptx_imm(each), .mode = CPTX_LO);
	return true;
}

/* Computes the addresses of the lane in a tile, those of all instructions, so that a stage needs an add for each. */
static void find_lines(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, bool of_b, const unit_place *unit)
{
	cptx_lane_lines *to = of_b ? &mma->b_lanes : &mma->a_lanes;
	const cptx_lines *lines = of_b ? &mma->b_lines : &mma->a_lines;
	const uint32_t rows = of_b ? mma->opt.n : mma->opt.m, step = of_b ? kit_rows_of_b(mma) : 16;
	const uint32_t depth = of_b ? mma->depth : kit_depth_of_a(mma);
	cptx_val first = unit->first;

	if (first.kind != CPTX_VAL_REG)
		first = CALL(mov, .a = cptx_imm(0), .type = CPTX_U32);
	if (!cptx_lane_lines_begin_(k, at, to, lines, mma->opt.thread, first))
		return;
	if (unit->flip.kind == CPTX_VAL_REG)
		to->address[0] = cptx_as(CALL(xor, .a = to->address[0], .b = unit->flip, .type = CPTX_B32), CPTX_U32);
	for (uint32_t i = 0; i < lines->count && !mma->opt.few_regs; i++)
		for (uint32_t r = 0; r < rows; r += step)
			for (uint32_t s = 0; s < mma->steps; s++)
				cptx_lane_lines_at_(k, at, to, i, r, s * depth);
}

/* Where the unit begins in a tile at .a_base or .b_base, NONE: at 0. */
static cptx_val plus_base(cptx_kernel *k, cptx_site at, cptx_val first, cptx_val base)
{
	base = kit_plain(k, at, base);
	if (base.kind == CPTX_VAL_INT)
		base = CALL(mov, .a = base, .type = CPTX_U32);
	if (base.kind != CPTX_VAL_REG)
		return first;
	return first.kind == CPTX_VAL_REG ? CALL(add, .a = base, .b = first) : base;
}

static void find_unit(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	cptx_tiled_mma_opt *o = &mma->opt;
	cptx_val um = cptx_imm(0), un = cptx_imm(0);

	if (o->thread.kind == CPTX_VAL_NONE) {
		o->thread = CALL(mov, .a = cptx_sreg_val(CPTX_SREG_TID_X));
		o->thread = CALL(and, .a = o->thread, .b = cptx_imm(kit_unit_threads(o->by) - 1));
	}
	if (o->units_n > 1) {
		um = CALL(div, .a = o->unit, .b = cptx_imm(o->units_n));
		un = CALL(rem, .a = o->unit, .b = cptx_imm(o->units_n));
	} else if (o->units_m > 1) {
		um = o->unit;
	}
	mma->row = o->units_m > 1 ? CALL(mul, .a = um, .b = cptx_imm(o->m), .mode = CPTX_LO) : cptx_imm(0);
	mma->col = o->units_n > 1 ? CALL(mul, .a = un, .b = cptx_imm(o->n), .mode = CPTX_LO) : cptx_imm(0);
	if (o->by == CPTX_BY_TCGEN05)
		return;
	const cptx_tile at_a = mma->vec ? kit_scaled_tile(mma, false) : o->a_tile;
	const cptx_tile at_b = mma->vec ? kit_scaled_tile(mma, true) : o->b_tile;
	unit_place a = { .first = { 0 } }, b = { .first = { 0 } };
	if ((o->a_from == CPTX_A_SHARED && !find_first(k, at, "A", &at_a, o->m, o->units_m, um, &a)) ||
	    !find_first(k, at, "B", &at_b, o->n, o->units_n, un, &b))
		return;
	if (o->by == CPTX_BY_MMA_SYNC) {
		a.first = plus_base(k, at, a.first, o->a_base), b.first = plus_base(k, at, b.first, o->b_base);
	}
	if (mma->vec) {
		kit_scaled_begin(k, at, mma, (kit_unit){ um, a.first, a.flip }, (kit_unit){ un, b.first, b.flip });
		return;
	}
	if (kit_is_f64(mma)) {
		kit_f64_begin(k, at, mma, a.first, b.first);
		return;
	}
	if (o->by == CPTX_BY_WGMMA)
		mma->a_first = a.first, mma->b_first = b.first;
	if (o->by == CPTX_BY_MMA_SYNC && o->a_from == CPTX_A_SHARED)
		find_lines(k, at, mma, false, &a);
	if (o->by == CPTX_BY_MMA_SYNC)
		find_lines(k, at, mma, true, &b);
	if (o->by == CPTX_BY_WGMMA && (a.flip.kind || b.flip.kind))
		cptx_fail_(k, at,
		           "a tiled mma by wgmma whose units share a swizzle span; a unit has a multiple of 64 rows of A and of B");
}

cptx_val kit_in_units(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val first)
{
	if (first.kind == CPTX_VAL_REG)
		address = CALL(add, .a = first, .b = address);
	cptx_val low = CALL(and, .a = address, .b = cptx_imm(0x3ffff), .type = CPTX_B32);
	return CALL(shr, .a = low, .b = cptx_imm(KIT_DESC_BITS), .type = CPTX_U32);
}

static bool is_ring(cptx_val v)
{
	return v.kind == CPTX_VAL_REG && v.count == 1 && cptx_type_bits((enum cptx_type)v.type) == 32 &&
	       v.offset % (1 << KIT_DESC_BITS) == 0;
}

static bool find_rings(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	cptx_val a = o->a_ring, b = o->b_ring;

	if (a.kind == CPTX_VAL_NONE && b.kind == CPTX_VAL_NONE)
		return true;
	RULE(o->by == CPTX_BY_TCGEN05 || (o->by == CPTX_BY_WGMMA && o->a_from == CPTX_A_SHARED),
	     "with .a_ring and .b_ring; these are for wgmma with A in shared memory, and for tcgen05");
	RULE(is_ring(a) && is_ring(b), "whose rings have no addresses: .a_ring and .b_ring are .u32 registers, offsets from "
	                               "these multiples of 16");
	RULE((o->apart || o->by == CPTX_BY_TCGEN05) &&
	         o->apart % MAX(cptx_tile_align(&o->a_tile), cptx_tile_align(&o->b_tile)) == 0,
	     "with stages %u bytes apart; .apart is a multiple of the %u that swizzled tiles begin at", o->apart,
	     MAX(cptx_tile_align(&o->a_tile), cptx_tile_align(&o->b_tile)));
	if (o->by == CPTX_BY_TCGEN05) {
		RULE(!mma->vec || (is_ring(o->scale_a_ring) && is_ring(o->scale_b_ring)),
		     "whose rings of scale factors have no addresses: .scale_a_ring and .scale_b_ring are .u32 registers");
		kit_find_rings_tcgen05(k, at, mma);
		return true;
	}
	mma->a_start = kit_ring_start(k, at, &o->a_tile, a, mma->a_first);
	mma->b_start = kit_ring_start(k, at, &o->b_tile, b, mma->b_first);
	return true;
}

/* The kind of the instruction, and what follows from scale factors. */
static void find_scale(cptx_tiled_mma *mma)
{
	cptx_tiled_mma_opt *o = &mma->opt;
	const uint32_t blocks_b = (o->n * o->units_n + CPTX_SCALE_ROWS - 1) / CPTX_SCALE_ROWS;

	if (!o->scale) {
		o->kind = o->kind ? o->kind : (enum cptx_tcgen05_kind)kit_mma_type_of(o->a)->kind;
		return;
	}
	if (!o->kind)
		o->kind = !is_packed(o) ? CPTX_TCGEN05_MXF8F6F4 : o->scale == CPTX_UE4M3 ? CPTX_TCGEN05_MXF4NVF4 : CPTX_TCGEN05_MXF4;
	mma->vec = o->scale == CPTX_UE4M3 ? 16 : 32;
	mma->scale_blocks = o->b_tile.cols / (mma->vec * CPTX_SCALE_FACTORS);
	mma->scale_a_bytes = mma->scale_blocks * CPTX_SCALE_BYTES;
	mma->scale_b_bytes = mma->scale_blocks * blocks_b * CPTX_SCALE_BYTES;
	mma->scale_a_columns = mma->scale_blocks * CPTX_SCALE_COLUMNS;
	mma->scale_b_columns = mma->scale_blocks * blocks_b * CPTX_SCALE_COLUMNS;
}

void cptx_tiled_mma_new_(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, const cptx_tiled_mma_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, mma, "tiled mma"))
		return;
	*mma = (cptx_tiled_mma){ .depth = 0 };
	cptx_tiled_mma x = { .depth = 0 };
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tiled_mma_opt, &x.opt, opt, at, k))
		return;
	opt = &x.opt;
	x.opt.units_m = MAX(opt->units_m, 1u), x.opt.units_n = MAX(opt->units_n, 1u), x.opt.ctas = MAX(opt->ctas, 1u);
	if (!check_shape(k, at, &x.opt) || !check_types(k, at, &x.opt) || !check_scale(k, at, &x.opt) ||
	    !check_sparse(k, at, &x.opt) || !check_tiles(k, at, &x.opt))
		return;
	if (x.opt.units_m * x.opt.units_n > 1 && opt->unit.kind != CPTX_VAL_REG) {
		cptx_fail_(k, at, "a tiled mma with %u x %u units that does not know the thread's: give .unit, a .u32 register",
		           x.opt.units_m, x.opt.units_n);
		return;
	}
	if (!KIT_OPTION("cptx_tiled_mma_new", opt, unit, KIT_U32 | KIT_NONE) ||
	    !KIT_OPTION("cptx_tiled_mma_new", opt, thread, KIT_U32 | KIT_NONE) ||
	    !KIT_OPTION("cptx_tiled_mma_new", opt, warp, KIT_U32 | KIT_NONE))
		return;
	x.depth = kit_mma_type_of(opt->a)->depth * (is_packed(opt) || opt->sparse ? 2 : 1);
	x.steps = opt->b_tile.cols / x.depth;
	x.atom_n = opt->by == CPTX_BY_MMA_SYNC ? 8 : opt->n;
	find_scale(&x);
	x.stage_columns = x.scale_a_columns + x.scale_b_columns + (opt->a_from == CPTX_A_TMEM ? kit_a_columns(&x) : 0);
	if (!resolve(k, at, &x) || !describe(k, at, &x))
		return;
	find_unit(k, at, &x);
	if (!find_rings(k, at, &x))
		return;
	*mma = x;
	mma->made = kit_made(k, KIT_cptx_tiled_mma);
}

bool kit_mma_is_made(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma)
{
	return KIT_IS_MADE(cptx_tiled_mma, k, at, mma);
}

/* ---- calls ---- */

/* A predicate that holds where the first instruction adds to what D holds. */
static cptx_val adds_at_first(cptx_kernel *k, cptx_site at, const cptx_mma_tile_opt *o)
{
	if (o->fresh_when.kind == CPTX_VAL_REG)
		return cptx_negated(o->fresh_when);
	return CALL(setp, .a = cptx_imm(0), .b = cptx_imm(o->fresh ? 1 : 0), .cmp = CPTX_EQ, .type = CPTX_U32);
}

/* Whether an accumulator is one that cptx_acc_new makes for the product. */
static bool is_acc_of(const cptx_tiled_mma *mma, const cptx_acc *acc)
{
	const bool tmem = mma->opt.by == CPTX_BY_TCGEN05;

	if ((acc->tmem.kind != CPTX_VAL_NONE) != tmem || acc->m != mma->opt.m / mma->opt.ctas || acc->n != mma->opt.n ||
	    acc->units_m != mma->opt.units_m || acc->units_n != mma->opt.units_n || acc->type != kit_acc_type(mma->opt.a))
		return false;
	return tmem || (acc->map.lanes == mma->d_map.lanes && acc->map.regs == mma->d_map.regs);
}

static bool check_fresh(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_tile_opt *o)
{
	const cptx_val p = o->fresh_when;

	if (p.kind == CPTX_VAL_NONE)
		return true;
	RULE(mma->opt.by != CPTX_BY_MMA_SYNC,
	     "by mma.sync adds to what it finds: .fresh_when is for wgmma and tcgen05; cptx_acc_clear sets it to 0");
	RULE(p.kind == CPTX_VAL_REG && p.type == CPTX_PRED,
	     "whose .fresh_when is no predicate; where it is known now, say .fresh");
	RULE(!o->fresh, "with .fresh and .fresh_when; give one of them");
	return true;
}

static bool has_bits(cptx_val v, uint32_t bits)
{
	return v.kind == CPTX_VAL_REG && v.count == 1 && cptx_type_bits((enum cptx_type)v.type) == bits;
}
static bool is_address(cptx_val v) { return has_bits(v, 32); }
/* Whether v says where a tile is: an address or, by tcgen05, a descriptor. */
static bool is_tile_at(const cptx_tiled_mma *mma, cptx_val v)
{
	return is_address(v) || (mma->opt.by == CPTX_BY_TCGEN05 && has_bits(v, 64));
}

static bool check_scales(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_tile_opt *o)
{
	const cptx_val none = CPTX_NONE_;

	if (!mma->vec) {
		RULE(o->scale_a.kind == none.kind && o->scale_b.kind == none.kind,
		     "without scale factors takes no .scale_a and .scale_b: say .scale where it is made");
		return true;
	}
	RULE(is_address(o->scale_a) && is_address(o->scale_b),
	     "with scale factors lacks .scale_%c: a .u32 register, where they are in %s memory",
	     is_address(o->scale_a) ? 'b' : 'a', mma->opt.by == CPTX_BY_TCGEN05 ? "tensor" : "shared");
	return true;
}

static bool check_meta(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_tile_opt *o)
{
	const uint32_t n = cptx_tiled_mma_meta(mma);

	RULE(n || o->meta.kind == CPTX_VAL_NONE, "without .sparse takes no .meta: say .sparse where it is made");
	RULE(!n || (o->meta.kind == CPTX_VAL_REG && o->meta.count == n && cptx_type_bits((enum cptx_type)o->meta.type) == 32),
	     "with a sparse A and %u registers as .meta; it takes %u of 32 bits",
	     o->meta.kind == CPTX_VAL_REG ? o->meta.count : 0, n);
	return true;
}

static bool can_multiply(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                         cptx_val b, const cptx_mma_tile_opt *o)
{
	const bool tmem = mma->opt.a_from == CPTX_A_TMEM;

	if (!kit_acc_is_made(k, at, acc))
		return false;
	RULE(is_acc_of(mma, acc),
	     "with an accumulator that was made for another: %u x %u of .%s, one of %u x %u units; cptx_acc_new of this one "
	     "makes %u x %u, one of %u x %u, as its fragments are",
	     acc->m, acc->n, cptx_type_name(acc->type), acc->units_m, acc->units_n, mma->opt.m / mma->opt.ctas, mma->opt.n,
	     mma->opt.units_m, mma->opt.units_n);
	RULE(o->first < mma->steps && o->steps <= mma->steps - o->first, "has %u steps along K; %u from %u on are too many",
	     mma->steps, o->steps, o->first);
	RULE(is_tile_at(mma, b) && (mma->opt.a_from == CPTX_A_REGS || (tmem ? is_address(a) : is_tile_at(mma, a))),
	     "whose %s has no address: a .u32 register, of %s memory", is_tile_at(mma, b) ? "A" : "B",
	     is_tile_at(mma, b) && tmem ? "tensor" : "shared");
	RULE(!o->along_m || mma->opt.by == CPTX_BY_MMA_SYNC,
	     "by wgmma or tcgen05 takes no .along_m: one instruction makes all columns of D");
	RULE(!o->frags || mma->opt.by == CPTX_BY_MMA_SYNC, "by wgmma or tcgen05 takes no .frags: it reads shared memory itself");
	RULE(!mma->vec || (!o->frags && o->next_a.kind == CPTX_VAL_NONE && o->next_b.kind == CPTX_VAL_NONE),
	     "with scale factors takes no .frags, .next_a and .next_b: it fetches its own fragments");
	if (mma->opt.a_from == CPTX_A_REGS) {
		const uint32_t n = mma->steps * (mma->opt.m / mma->a_map.rows) * mma->a_map.regs;
		RULE(a.kind == CPTX_VAL_REG && a.count == n, "whose A is %u registers; it takes %u: those of cptx_acc_as_a",
		     a.kind == CPTX_VAL_REG ? a.count : 0, n);
	}
	return check_fresh(k, at, mma, o) && check_scales(k, at, mma, o) && check_meta(k, at, mma, o);
}

void cptx_mma_tile_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a, cptx_val b,
                    const cptx_mma_tile_opt *opt)
{
	cptx_mma_tile_opt o;

	if (!kit_mma_is_made(k, at, mma) || !IS_GIVEN_TO(k, at, opt, "description") ||
	    !OPTIONS_READ_IN(cptx_mma_tile_opt, &o, opt, at, k) || !can_multiply(k, at, mma, acc, a, b, &o))
		return;
	opt = &o;
	const uint32_t end = opt->steps ? opt->first + opt->steps : mma->steps;

	if (mma->opt.by == CPTX_BY_MMA_SYNC && opt->fresh)
		cptx_acc_clear_(k, at, acc);
	if (mma->opt.by == CPTX_BY_MMA_SYNC && mma->vec) {
		kit_multiply_scaled(k, at, mma, acc, a, b, opt, end);
		return;
	}
	if (mma->opt.a_from == CPTX_A_SHARED)
		a = kit_plain(k, at, a);
	b = kit_plain(k, at, b);
	if (mma->opt.by == CPTX_BY_MMA_SYNC) {
		kit_multiply_sync(k, at, mma, acc, a, b, opt, end);
		return;
	}
	cptx_val adds = adds_at_first(k, at, opt);
	if (mma->opt.by == CPTX_BY_TCGEN05) {
		kit_multiply_tcgen05(k, at, mma, acc, a, b, opt, end, adds);
		return;
	}
	kit_wgmma_from from = { .a = { .at = a }, .b = kit_desc_of(k, at, b, mma->b_first) };
	if (mma->opt.a_from == CPTX_A_SHARED)
		from.a = kit_desc_of(k, at, a, mma->a_first);
	kit_multiply_wgmma(k, at, mma, acc, &from, opt, adds);
}

void cptx_mma_stage_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val stage,
                     const cptx_mma_tile_opt *opt)
{
	cptx_mma_tile_opt given;

	if (!kit_mma_is_made(k, at, mma) || !IS_GIVEN_TO(k, at, opt, "description") ||
	    !OPTIONS_READ_IN(cptx_mma_tile_opt, &given, opt, at, k))
		return;
	const cptx_tiled_mma_opt *o = &mma->opt;
	opt = &given;
	if (mma->a_start.kind != CPTX_VAL_REG || mma->b_start.kind != CPTX_VAL_REG) {
		cptx_fail_(k, at, "a stage of a tiled mma that has no rings: say .a_ring, .b_ring and .apart in cptx_tiled_mma_new");
		return;
	}
	if (o->by != CPTX_BY_TCGEN05 && !can_multiply(k, at, mma, acc, o->a_ring, o->b_ring, opt))
		return;
	if (stage.kind == CPTX_VAL_INT ? stage.i < 0 || stage.i >= 64 : !is_address(stage)) {
		cptx_fail_(k, at, "a stage that is no number: .u32, or a constant from 0 to 63");
		return;
	}
	if (o->by == CPTX_BY_TCGEN05) {
		kit_multiply_stage_tcgen05(k, at, mma, acc, stage, opt);
		return;
	}
	const cptx_val adds = adds_at_first(k, at, opt);
	kit_wgmma_from from = { .b = kit_desc_of_stage(k, at, mma, true, stage) };
	from.a = kit_desc_of_stage(k, at, mma, false, stage);
	kit_multiply_wgmma(k, at, mma, acc, &from, opt, adds);
}

void cptx_mma_wait_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, uint32_t pending)
{
	if (!kit_mma_is_made(k, at, mma))
		return;
	if (mma->opt.by == CPTX_BY_TCGEN05)
		cptx_fail_(k, at,
		           "cptx_mma_wait is of wgmma; products of tcgen05 are waited for at the mbarrier of cptx_mma_commit");
	else if (mma->opt.by == CPTX_BY_WGMMA)
		CALL(wgmma_wait_group, .n = cptx_imm(pending));
}
