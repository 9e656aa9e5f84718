/* SPDX-License-Identifier: MIT */
/*
 * A tile of rounded results in shared memory to a matrix whose rows begin anywhere, by the four warps of a unit.
 *
 * A warp stores a row at a time, each lane a word of 32 bits that is aligned in global memory: of two neighbouring words of
 * shared memory the four bytes that are meant (prmt).  Elements in front of the first such word and behind the last one are
 * stored one by one, by eight lanes: four have those in front, four those behind.
 */
#include "kit/epilogue.h"

#include <cptx/cptx.h>

enum { WORD = 4, WARPS = 4, AT_ONCE = 2 /* rows of a warp, whose loads stand in front of their stores */ };

/* What all rows of the tile share. */
typedef struct tile_rows {
	cptx_kernel *k;
	const epi_anywhere *o;
	uint32_t size, pitch;    /* bytes of an element; from row to row in shared memory */
	uint32_t flips;          /* bits of an address that the swizzle exclusive-ors with those three further up */
	cptx_val lane, word, at; /* .u32; word: 4 * lane; at: where the lane's word of the first row is, not swizzled */
	cptx_val bytes;          /* .s32: of a row that are in the matrix, at most 0: none */
	cptx_val some;           /* predicate: bytes > 0 */
} tile_rows;

/* A row under way. */
typedef struct one_row {
	cptx_val to;             /* .u64: of its first element in the matrix */
	cptx_val shift;          /* .s32: bytes that it begins behind a multiple of four */
	cptx_val there;          /* predicate: it is in the matrix */
	cptx_val low, high;      /* words of shared memory */
	cptx_val edge, edge_at;  /* element of this lane in front of the first or behind the last word, and its byte: .s32 */
	cptx_val is_edge, whole; /* predicates: the lane has one; the lane has a word */
} one_row;

static cptx_val both(cptx_kernel *k, cptx_site at, cptx_val p, cptx_val q)
{
	return CALL(and, .a = p, .b = q, .type = CPTX_PRED);
}

static cptx_val swizzled(const tile_rows *t, cptx_site at, cptx_val linear)
{
	cptx_kernel *k = t->k;

	if (!t->flips)
		return linear;
	return CALL(xor, .a = linear,
	            .b = CALL(and, .a = CALL(shr, .a = linear, .b = cptx_imm(3)), .b = cptx_imm(t->flips), .type = CPTX_B32),
	            .type = CPTX_B32);
}

/* What lies at an address of the tile, 0 where `when` does not hold. */
static cptx_val load(const tile_rows *t, cptx_site at, cptx_val linear, enum cptx_type type, cptx_val when)
{
	cptx_kernel *k = t->k;
	const cptx_val v = cptx_regs_(k, at, type, 1);

	CALL(mov, .a = cptx_imm(0), .into = v);
	CALL(ld, .a = swizzled(t, at, linear), .space = CPTX_SHARED, .type = (uint16_t)type, .into = v, .when = when);
	return v;
}

static tile_rows begin(cptx_kernel *k, cptx_site at, const epi_anywhere *o)
{
	tile_rows t = { .k = k, .o = o, .size = o->tile->elem.bits / 8 };
	const uint32_t span = o->tile->swizzle ? cptx_swizzle_get(o->tile->swizzle)->span : 16;

	t.pitch = cptx_tile_at(o->tile, 8, 0).byte / 8, t.flips = span - 16;
	t.lane = CALL(and, .a = cptx_as(o->thread, CPTX_U32), .b = cptx_imm(CPTX_WARP - 1)),
	t.word = CALL(shl, .a = t.lane, .b = cptx_imm(2));
	const cptx_val warp = CALL(shr, .a = cptx_as(o->thread, CPTX_U32), .b = cptx_imm(5));
	t.at = CALL(mad, .a = warp, .b = cptx_imm(t.pitch), .c = o->smem, .mode = CPTX_LO);
	cptx_val cols = CALL(mov, .a = cptx_imm(o->tile->cols), .type = CPTX_S32);
	if (o->cols.kind != CPTX_VAL_NONE)
		cols = CALL(min, .a = CALL(sub, .a = cptx_as(epi_in_register(k, at, o->cols), CPTX_S32), .b = o->col), .b = cols);
	t.bytes = CALL(mul, .a = cols, .b = cptx_imm(t.size), .mode = CPTX_LO);
	t.some = CALL(setp, .a = t.bytes, .b = cptx_imm(0), .cmp = CPTX_GT);
	return t;
}

/* The element that this lane stores by itself, if any: lanes 0 to 3 those in front of the first word, 4 to 7 those behind
 * the last one. */
static void find_edge(const tile_rows *t, cptx_site at, one_row *r)
{
	cptx_kernel *k = t->k;
	const cptx_val lane = cptx_as(t->lane, CPTX_S32),
				   in_front = CALL(and, .a = CALL(sub, .a = cptx_imm(WORD), .b = r->shift), .b = cptx_imm(WORD - 1));
	const cptx_val behind = CALL(and, .a = CALL(add, .a = t->bytes, .b = r->shift), .b = cptx_imm(WORD - 1));
	const cptx_val first = CALL(mul, .a = lane, .b = cptx_imm(t->size), .mode = CPTX_LO);
	const cptx_val back =
		CALL(mul, .a = CALL(sub, .a = lane, .b = cptx_imm(WORD - 1)), .b = cptx_imm(t->size), .mode = CPTX_LO);
	const cptx_val last = CALL(sub, .a = t->bytes, .b = back),
				   leads = CALL(setp, .a = lane, .b = cptx_imm(WORD), .cmp = CPTX_LT);
	const cptx_val p = CALL(setp, .a = first, .b = CALL(min, .a = in_front, .b = t->bytes), .cmp = CPTX_LT);
	const cptx_val ends = CALL(setp, .a = last, .b = in_front, .cmp = CPTX_GE);
	const cptx_val q = both(k, at, CALL(setp, .a = back, .b = behind, .cmp = CPTX_LE), ends);

	r->edge_at = CALL(selp, .a = first, .b = last, .c = leads, .type = CPTX_S32);
	const cptx_val mine = CALL(or, .a = both(k, at, leads, p), .b = both(k, at, CALL(not, .a = leads, .type = CPTX_PRED), q),
	                           .type = CPTX_PRED);
	r->is_edge = both(k, at, mine, both(k, at, r->there, CALL(setp, .a = lane, .b = cptx_imm(2 * WORD), .cmp = CPTX_LT)));
}

/* Finds a row, `row` rows behind the warp's first one, and loads what the lane stores of it. */
static one_row load_row(const tile_rows *t, cptx_site at, cptx_val row, cptx_val down)
{
	cptx_kernel *k = t->k;
	const epi_anywhere *o = t->o;
	one_row r = { .there = t->some };
	const cptx_val line = CALL(mad, .a = down, .b = cptx_imm(t->pitch), .c = t->at, .mode = CPTX_LO),
				   here = CALL(add, .a = line, .b = t->word);

	if (o->rows.kind != CPTX_VAL_NONE)
		r.there = both(k, at, t->some, CALL(setp, .a = row, .b = epi_in_register(k, at, o->rows), .cmp = CPTX_LT));
	const cptx_val first = CALL(add, .a = CALL(mul_wide, .a = row, .b = epi_in_register(k, at, o->pitch)),
	                            .b = CALL(cvt, .a = cptx_as(o->col, CPTX_U32), .dtype = CPTX_U64));
	r.to = CALL(mad, .a = first, .b = cptx_imm(t->size), .c = o->address, .mode = CPTX_LO);
	r.shift = t->size == WORD
	              ? CALL(mov, .a = cptx_imm(0), .type = CPTX_S32)
	              : cptx_as(CALL(and, .a = CALL(cvt, .a = r.to, .dtype = CPTX_U32), .b = cptx_imm(WORD - 1)), CPTX_S32);
	const cptx_val begins = CALL(sub, .a = cptx_as(t->word, CPTX_S32), .b = r.shift);
	r.whole = both(k, at, r.there, CALL(setp, .a = begins, .b = cptx_imm(0), .cmp = CPTX_GE));
	r.whole =
		both(k, at, r.whole, CALL(setp, .a = CALL(add, .a = begins, .b = cptx_imm(WORD)), .b = t->bytes, .cmp = CPTX_LE));
	r.high = load(t, at, here, CPTX_B32, r.whole), r.low = r.high;
	if (t->size < WORD) {
		const cptx_val is_first = CALL(setp, .a = t->lane, .b = cptx_imm(0), .cmp = CPTX_EQ);
		const cptx_val before = CALL(sub, .a = here, .b = cptx_imm(WORD));
		r.low = load(t, at, CALL(selp, .a = here, .b = before, .c = is_first, .type = CPTX_U32), CPTX_B32, r.whole);
	}
	if (t->size == WORD)
		return r;
	find_edge(t, at, &r);
	r.edge =
		load(t, at, CALL(add, .a = line, .b = cptx_as(r.edge_at, CPTX_U32)), t->size == 2 ? CPTX_B16 : CPTX_U8, r.is_edge);
	return r;
}

static void store_row(const tile_rows *t, cptx_site at, const one_row *r)
{
	cptx_kernel *k = t->k;
	const cptx_val begins = CALL(cvt, .a = CALL(sub, .a = cptx_as(t->word, CPTX_S32), .b = r->shift), .dtype = CPTX_S64);
	const cptx_val to = CALL(add, .a = r->to, .b = cptx_as(begins, CPTX_U64));
	cptx_val v = r->high;

	if (t->size < WORD) {
		const cptx_val select =
			CALL(mad, .a = cptx_as(r->shift, CPTX_U32), .b = cptx_imm(-0x1111), .c = cptx_imm(0x7654), .mode = CPTX_LO);
		v = CALL(prmt, .a = r->low, .b = r->high, .c = cptx_as(select, CPTX_B32));
	}
	CALL(st, .a = to, .b = v, .space = CPTX_GLOBAL, .type = CPTX_B32, .when = r->whole);
	if (t->size < WORD)
		CALL(st, .a = CALL(add, .a = r->to, .b = cptx_as(CALL(cvt, .a = r->edge_at, .dtype = CPTX_S64), CPTX_U64)),
		     .b = r->edge, .space = CPTX_GLOBAL, .type = t->size == 2 ? CPTX_B16 : CPTX_U8, .when = r->is_edge);
}

void epi_store_anywhere(cptx_kernel *k, cptx_site at, const epi_anywhere *o)
{
	const tile_rows t = begin(k, at, o);
	const cptx_val down = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	const cptx_val first =
		CALL(add, .a = cptx_as(o->row, CPTX_U32), .b = CALL(shr, .a = cptx_as(o->thread, CPTX_U32), .b = cptx_imm(5)));

	cptx_for_begin_(k, at, down, cptx_imm(o->tile->rows), cptx_imm(AT_ONCE * WARPS));
	one_row r[AT_ONCE];
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		const cptx_val below = i ? CALL(add, .a = down, .b = cptx_imm(i * WARPS)) : down;
		r[i] = load_row(&t, at, CALL(add, .a = first, .b = below), below);
	}
	for (uint32_t i = 0; i < AT_ONCE; i++)
		store_row(&t, at, &r[i]);
	cptx_block_end_(k, at);
}
