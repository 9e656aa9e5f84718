/* SPDX-License-Identifier: MIT */
/*
 * Tiled products by mma.sync with scale factors, sm_120a.
 *
 * Elements of 8 and of 4 bits lie alike, as bytes: an mma.sync takes 32 of them along K, of 16 rows of A and 8 of B.  Where
 * K is contiguous, ldmatrix of 16-bit elements fetches these.  Where M or N is, ldmatrix.m16n16.trans does, which transposes
 * 16 rows of 16 bytes as it loads them: of bytes only, so that two e2m1 that share one cannot be transposed.
 *
 * The factors of a row in a block are a word, which a lane reads at once, and the mma.sync picks bytes of it: lanes 4i and
 * 4i + 1 have rows i and i + 8 of A, lane 4i column i of B.
 */
#include "kit/mma.h"

#include <cptx/cptx.h>

enum { STEP = 32 /* bytes along K of an mma.sync */ };

/* A or B of a product, and what is read of it. */
typedef struct side {
	bool of_b;
	cptx_tile tile; /* as bytes */
	uint32_t bits;  /* of an element in shared memory; 8: of two that share a byte as well */
	uint32_t rows;  /* of the unit */
	const cptx_lines *lines;
} side;

static bool is_packed(const cptx_tiled_mma *mma) { return mma->depth != STEP; }

cptx_tile kit_scaled_tile(const cptx_tiled_mma *mma, bool of_b)
{
	cptx_tile t = of_b ? mma->opt.b_tile : mma->opt.a_tile;

	t.cols /= is_packed(mma) ? 2 : 1;
	t.elem.bits = 8, t.elem.padded = false;
	return t;
}

static side side_of(const cptx_tiled_mma *mma, bool of_b)
{
	const cptx_tile *t = of_b ? &mma->opt.b_tile : &mma->opt.a_tile;

	return (side){ .of_b = of_b,
		           .tile = kit_scaled_tile(mma, of_b),
		           .bits = t->elem.padded ? t->elem.bits : 8,
		           .rows = of_b ? mma->opt.n : mma->opt.m,
		           .lines = of_b ? &mma->b_lines : &mma->a_lines };
}

bool kit_scaled_resolve(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	const cptx_frag d = { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = STEP, .bits = 32 };
	cptx_frag f = { .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = STEP, .bits = 8 };
	cptx_error err = { .code = CPTX_OK };
	bool ok = cptx_frag_resolve(&f, &mma->a_map, &err) && cptx_frag_resolve(&d, &mma->d_map, &err);

	for (int i = 0; ok && i < 2; i++) {
		const side s = side_of(mma, i != 0);
		if (s.tile.elem.mn_major && is_packed(mma)) {
			cptx_fail_(
				k, at,
				"a tiled mma whose tile of %c has two .e2m1 in a byte and is MN-major: ldmatrix transposes bytes only; "
				"make it K-major",
				i ? 'B' : 'A');
			return false;
		}
		if (i)
			f.kind = CPTX_FRAG_MMA_B, f.beside = 2;
		ok = s.tile.elem.mn_major || cptx_tile_lines(&s.tile, &f, 0, 0, i ? &mma->b_lines : &mma->a_lines, &err);
	}
	if (!ok)
		cptx_fail_(k, at, "a tiled mma that cannot read its operands by ldmatrix: %s", err.text);
	return ok;
}

/* ---- in front of loops ---- */

/* Bytes from the first 16 rows of an MN-major tile to number i, and which of their bits are exclusive-ored to an address:
 * those in a swizzle span, as a tile is aligned to its pattern.  Spans are a constant apart. */
static uint32_t rows_at(const side *s, uint32_t i, uint32_t *flip)
{
	const uint32_t by = cptx_tile_at(&s->tile, i * 16, 0).byte;

	*flip = by % cptx_tile_align(&s->tile);
	return by;
}

/* Finds the lane's addresses in an MN-major tile, of 16 bytes of row `lane` along K: one for each 16 rows of the unit in a
 * swizzle span, so that a stage needs an add for each; or the first alone, from which a stage makes the others.  ptxas 13.0
 * takes more registers for several of a narrow B, or of one whose elements are shifted, and its loops are not shorter (40
 * random option sets of the GEMM for sm_120a). */
static void begin_transposed(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const side *s, const kit_unit *unit,
                             cptx_lane_lines *to)
{
	uint32_t value[5], flip;

	for (uint32_t b = 0; b < 5; b++)
		value[b] = cptx_tile_at(&s->tile, 0, 1u << b).byte;
	cptx_val v = cptx_as(cptx_lane_bits_(k, at, mma->opt.thread, 5, value, false, CPTX_NONE_), CPTX_U32);
	if (unit->flip.kind == CPTX_VAL_REG)
		v = cptx_as(CALL(xor, .a = v, .b = unit->flip, .type = CPTX_B32), CPTX_U32);
	const bool one = mma->opt.few_regs || (s->of_b && (s->rows <= 32 || s->bits < 8));
	const uint32_t most = one ? 1 : s->rows / 16;
	for (to->count = 0; to->count < most && rows_at(s, to->count, &flip) == flip; to->count++) {
		const cptx_val here = flip ? cptx_as(CALL(xor, .a = v, .b = cptx_imm(flip), .type = CPTX_B32), CPTX_U32) : v;
		to->address[to->count] = unit->first.kind == CPTX_VAL_REG ? CALL(add, .a = here, .b = unit->first) : here;
	}
}

static void begin_side(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const side *s, const kit_unit *unit,
                       cptx_lane_lines *to)
{
	if (s->tile.elem.mn_major) {
		begin_transposed(k, at, mma, s, unit, to);
		return;
	}
	cptx_val start = unit->first.kind == CPTX_VAL_REG ? unit->first : CALL(mov, .a = cptx_imm(0), .type = CPTX_U32);
	if (!cptx_lane_lines_begin_(k, at, to, s->lines, mma->opt.thread, start))
		return;
	for (uint32_t step = 0; step < mma->steps && !mma->opt.few_regs; step++)
		cptx_lane_lines_at_(k, at, to, 0, 0, step * STEP);
}

/* Bytes from the start of a tile's factors, counted from `base`, to those of the lane's row; units begin at multiples of 32
 * rows.  The unit's first row is shifted, though a constant times the unit would do: of that ptxas 13.0 sees that words of
 * factors lie at multiples of 8 bytes, loads them by twos, and orders products by these pairs, which takes up to 26
 * registers more, or spills. */
static cptx_val scale_first(cptx_kernel *k, cptx_site at, cptx_val row, cptx_val unit, uint32_t rows, cptx_val base)
{
	cptx_val first = CALL(shl, .a = row, .b = cptx_imm(4), .type = CPTX_B32);

	if (unit.kind == CPTX_VAL_REG) {
		const cptx_val start = CALL(mul, .a = unit, .b = cptx_imm(rows), .mode = CPTX_LO);
		const cptx_val blocks = CALL(shr, .a = start, .b = cptx_imm(5), .type = CPTX_U32);
		first = CALL(mad, .a = blocks, .b = cptx_imm(4), .c = cptx_as(first, CPTX_U32), .mode = CPTX_LO);
	}
	first = cptx_as(first, CPTX_U32), base = kit_plain(k, at, base);
	return base.kind == CPTX_VAL_NONE ? first : CALL(add, .a = first, .b = base);
}

void kit_scaled_begin(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, kit_unit m, kit_unit n)
{
	const side a = side_of(mma, false), b = side_of(mma, true);
	const cptx_val lane = mma->opt.thread;

	begin_side(k, at, mma, &a, &m, &mma->a_lanes);
	begin_side(k, at, mma, &b, &n, &mma->b_lanes);
	cptx_val quad = CALL(shr, .a = lane, .b = cptx_imm(2), .type = CPTX_U32);
	cptx_val low = cptx_as(CALL(and, .a = lane, .b = cptx_imm(1), .type = CPTX_B32), CPTX_U32);
	cptx_val row = CALL(mad, .a = low, .b = cptx_imm(8), .c = quad, .mode = CPTX_LO);
	mma->scale_a_first = scale_first(k, at, row, mma->opt.units_m > 1 ? m.number : CPTX_NONE_, mma->opt.m, mma->opt.a_base);
	mma->scale_b_first = scale_first(k, at, quad, mma->opt.units_n > 1 ? n.number : CPTX_NONE_, mma->opt.n, mma->opt.b_base);
}

/* ---- a tile ---- */

/* The addresses of a tile that is there: an offset of its address costs nothing. */
static cptx_lane_lines lanes_in(cptx_kernel *k, cptx_site at, const side *s, const cptx_lane_lines *l, cptx_val address)
{
	const int64_t behind = address.offset;
	cptx_lane_lines here = *l;
	uint32_t flip;

	here.lines = s->lines, address.offset = 0;
	if (!s->tile.elem.mn_major)
		here = cptx_lane_lines_moved_(k, at, &here, address);
	for (uint32_t i = 0; s->tile.elem.mn_major && i < s->rows / 16; i++) {
		const uint32_t like = i % MAX(l->count, 1u), by = rows_at(s, i, &flip);
		uint32_t its;
		rows_at(s, like, &its);
		cptx_val v = i == like ? CALL(add, .a = l->address[i], .b = address) : here.address[like];
		if (i != like && flip != its)
			v = cptx_as(CALL(xor, .a = v, .b = cptx_imm(flip ^ its), .type = CPTX_B32), CPTX_U32);
		here.address[i] = cptx_offset(v, i == like ? 0 : by - flip), here.count = i + 1;
	}
	for (uint32_t i = 0; i < here.count; i++)
		here.address[i] = cptx_offset(here.address[i], behind);
	return here;
}

static enum cptx_mod source_of(const side *s)
{
	return s->bits == 8 ? (enum cptx_mod)0 : s->bits == 4 ? CPTX_B4X16_P64 : CPTX_B6X16_P32;
}

/* Loads a fragment of an MN-major tile.  16 bytes of a row are 16 elements; those of 4 and 6 bits come packed and padded,
 * and get a byte each. */
static void load_transposed(cptx_kernel *k, cptx_site at, const side *s, cptx_val address, cptx_val to)
{
	/* of B the first two are the first 16 along K, of 8 columns each */
	const cptx_val r[4] = { cptx_elem(to, 0), cptx_elem(to, s->of_b ? 2 : 1), cptx_elem(to, s->of_b ? 1 : 2),
		                    cptx_elem(to, 3) };

	CALL(ldmatrix_b8, .a = address, .shape = CPTX_M16N16, .num = CPTX_X2, .trans = true, .space = CPTX_SHARED,
	     .dtype = s->bits == 8 ? CPTX_B8 : CPTX_B8X16, .src = (uint16_t)source_of(s), .into = cptx_pack_(k, at, r, 4));
}

/* Loads 16 rows of A, or columns of B, of a step, to 4 registers. */
static void load_fragment(cptx_kernel *k, cptx_site at, const side *s, cptx_lane_lines *l, uint32_t row, uint32_t step,
                          cptx_val to)
{
	if (s->tile.elem.mn_major) {
		load_transposed(k, at, s, cptx_offset(l->address[row / 16], cptx_tile_at(&s->tile, 0, step * STEP).byte), to);
	} else {
		cptx_val address = cptx_lane_lines_at_(k, at, l, 0, row, step * STEP);
		if (s->bits == 8)
			cptx_lines_move_(k, at, s->lines, 0, address, to, false);
		else
			CALL(ldmatrix_b8, .a = address, .shape = CPTX_M8N16, .num = CPTX_X4, .space = CPTX_SHARED, .dtype = CPTX_B8X16,
			     .src = (uint16_t)source_of(s), .into = to);
	}
	/* e2m1 must stand in bits 2 to 5 of its byte, and ldmatrix leaves it in the lowest */
	for (uint32_t i = 0; i < 4 && s->bits == 4; i++)
		CALL(shl, .a = cptx_elem(to, i), .b = cptx_imm(2), .into = cptx_elem(to, i));
}

static cptx_val load_fragments(cptx_kernel *k, cptx_site at, const side *s, cptx_lane_lines *l, uint32_t step)
{
	cptx_val all = cptx_regs_(k, at, CPTX_B32, s->rows / 16 * 4);

	for (uint32_t row = 0; row < s->rows; row += 16)
		load_fragment(k, at, s, l, row, step, cptx_slice(all, row / 4, 4));
	return all;
}

/* Loads the factors of a block along K, those of 16 rows of A or of 8 columns of B to each register. */
static cptx_val load_factors(cptx_kernel *k, cptx_site at, const side *s, cptx_val from, uint32_t block)
{
	const uint32_t each = s->of_b ? 8 : 16;
	cptx_val v = cptx_regs_(k, at, CPTX_B32, s->rows / each);

	for (uint32_t r = 0; r < s->rows; r += each)
		CALL(ld, .a = cptx_offset(from, block * CPTX_SCALE_BYTES + r % 32 * 16 + r / 32 * 4), .space = CPTX_SHARED,
		     .type = CPTX_B32, .into = cptx_elem(v, r / each));
	return v;
}

static enum cptx_mod kind_of(const cptx_tiled_mma *mma)
{
	return !is_packed(mma) ? CPTX_KIND_MXF8F6F4 : mma->opt.scale == CPTX_UE4M3 ? CPTX_KIND_MXF4NVF4 : CPTX_KIND_MXF4;
}

static void multiply_step(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                          cptx_val b, cptx_val sa, cptx_val sb, uint32_t byte, bool along_m)
{
	static const uint16_t vec[] = { 0, CPTX_SCALE_VEC_1X, CPTX_SCALE_VEC_2X, 0, CPTX_SCALE_VEC_4X };
	const cptx_tiled_mma_opt *o = &mma->opt;
	const cptx_val ids[2] = { cptx_imm(byte), cptx_imm(0) };

	for (uint32_t x = 0; x < acc->atoms_m * acc->atoms_n; x++) {
		const kit_atom t = kit_atom_at(acc, x, along_m);
		cptx_val d = cptx_slice(acc->regs, (t.i * acc->atoms_n + t.j) * 4, 4), id = cptx_pack_(k, at, ids, 2);
		CALL(mma_block_scale, .a = cptx_slice(a, t.i * 4, 4), .b = cptx_slice(b, t.j * 2, 2), .c = d,
		     .sa = cptx_elem(sa, t.i), .ia = id, .sb = cptx_elem(sb, t.j), .ib = id, .shape = (uint16_t)mma->shape,
		     .kind = (uint16_t)kind_of(mma), .scale_vec = vec[mma->depth / mma->vec], .atype = (uint16_t)o->a,
		     .btype = (uint16_t)o->b, .stype = (uint16_t)o->scale, .into = d);
	}
}

/* An address that may carry an offset, so much further on: the offset costs nothing. */
static cptx_val moved(cptx_kernel *k, cptx_site at, cptx_val by, cptx_val address)
{
	const int64_t behind = address.offset;

	address.offset = 0;
	return cptx_offset(CALL(add, .a = by, .b = address), behind);
}

void kit_multiply_scaled(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                         cptx_val b, const cptx_mma_tile_opt *opt, uint32_t end)
{
	const side sides[2] = { side_of(mma, false), side_of(mma, true) };
	const uint32_t factors = mma->depth / mma->vec; /* of a row, of a step */
	cptx_lane_lines la = lanes_in(k, at, &sides[0], &mma->a_lanes, a);
	cptx_lane_lines lb = lanes_in(k, at, &sides[1], &mma->b_lanes, b);
	cptx_val from_a = moved(k, at, mma->scale_a_first, opt->scale_a);
	cptx_val from_b = moved(k, at, mma->scale_b_first, opt->scale_b);
	cptx_val sa = CPTX_NONE_, sb = CPTX_NONE_;

	for (uint32_t s = opt->first; s < end; s++) {
		const uint32_t first = s * factors; /* of a row's factors in the tile */
		if (s == opt->first || first % CPTX_SCALE_FACTORS == 0) {
			sa = load_factors(k, at, &sides[0], from_a, first / CPTX_SCALE_FACTORS);
			sb = load_factors(k, at, &sides[1], from_b, first / CPTX_SCALE_FACTORS);
		}
		cptx_val fa = load_fragments(k, at, &sides[0], &la, s);
		cptx_val fb = load_fragments(k, at, &sides[1], &lb, s);
		multiply_step(k, at, mma, acc, fa, fb, sa, sb, first % CPTX_SCALE_FACTORS, opt->along_m);
	}
}
