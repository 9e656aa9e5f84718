/* SPDX-License-Identifier: MIT */
/*
 * Results of an epilogue to global memory: from registers, or through tiles in shared memory by TMA.
 *
 * A unit's results leave in pieces of one tile each.  Its threads round a piece and store it where the tensor map expects
 * it, swizzled; then one of them starts the copy.  A ring of tiles lets a piece be written while TMA reads those before.
 */
#include "kit/epilogue.h"
#include "base/options.h"

#include <stdio.h>

/* ---- rounding ---- */

static bool is_storable(enum cptx_type t)
{
	return t == CPTX_F32 || t == CPTX_S32 || t == CPTX_BF16 || t == CPTX_F16 || t == CPTX_E4M3 || t == CPTX_E5M2;
}

cptx_val epi_round_pair(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val low, cptx_val high, cptx_val into)
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

/* The results that fill 32 bits. */
static cptx_val round_word(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v)
{
	cptx_val half[2];

	switch (cptx_type_bits(type)) {
	case 32: return cptx_as(v[0], CPTX_B32);
	case 16: return epi_round_pair(k, at, type, v[0], v[1], CPTX_NONE_);
	default: break;
	}
	for (uint32_t i = 0; i < 2; i++)
		half[i] = epi_round_pair(k, at, type, v[2 * i], v[2 * i + 1], CPTX_NONE_);
	const cptx_val word = cptx_regs_(k, at, CPTX_B32, 1);
	CALL(mov, .a = cptx_pack_(k, at, half, 2), .into = word);
	return word;
}

/* A group's results behind one another, up to 16 bytes: one register of 16 or 32 bits, or a vector of these. */
static cptx_val rounded(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v, uint32_t n)
{
	const uint32_t bits = cptx_type_bits(type), words = n * bits / 32;
	cptx_val word[4];

	if (!words) { /* two of 8 bits, or one of 8 or 16 */
		cptx_val pair = epi_round_pair(k, at, type, v[0], n == 2 ? v[1] : v[0], CPTX_NONE_), halves;
		if (bits == 8)
			return pair;
		halves = cptx_regs_(k, at, CPTX_B16, 2);
		CALL(mov, .a = pair, .into = halves);
		return cptx_elem(halves, 0);
	}
	for (uint32_t w = 0; w < words; w++)
		word[w] = round_word(k, at, type, v + w * 32 / bits);
	return words == 1 ? word[0] : cptx_pack_(k, at, word, words);
}

/* Stores up to 16 bytes: what `rounded` gave. */
static void store(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val words, uint32_t bytes, uint16_t space, cptx_val when)
{
	static const uint16_t vec[] = { 0, 0, CPTX_V2, 0, CPTX_V4 };
	const uint32_t n = bytes / 4;

	if (bytes == 1)
		CALL(st, .a = to, .b = words, .space = space, .type = CPTX_B8, .when = when);
	else
		CALL(st, .a = to, .b = words, .space = space, .vec = n ? vec[n] : 0, .type = n ? CPTX_B32 : CPTX_B16, .when = when);
}

static void store_group(cptx_kernel *k, cptx_site at, enum cptx_type type, const epi_group *g, cptx_val to, uint16_t space,
                        cptx_val when)
{
	const uint32_t size = cptx_type_bits(type) / 8, most = MIN(g->n, 16 / size);
	cptx_val v[CPTX_EPILOGUE_VEC];

	for (uint32_t i = 0; i < g->n; i++)
		v[i] = g->elem[i].value;
	for (uint32_t i = 0; i < g->n; i += most)
		store(k, at, cptx_offset(to, i * size), rounded(k, at, type, v + i, most), most * size, space, when);
}

/* ---- registers ---- */

static bool has_run(cptx_kernel *k, cptx_site at, const cptx_epilogue *e)
{
	if (!IS_GIVEN_TO(k, at, e, "epilogue"))
		return false;
	if (!e->acc.count || !e->vec || e->vec > CPTX_EPILOGUE_VEC) {
		cptx_fail_(k, at, "an epilogue without results; cptx_epilogue_run comes first");
		return false;
	}
	return epi_is_acc(k, at, &e->acc);
}

static bool check_type(cptx_kernel *k, cptx_site at, enum cptx_type type)
{
	if (!is_storable(type))
		cptx_fail_(k, at, "results stored as .%s; they can be stored as CPTX_F32, BF16, F16, E4M3, E5M2, integers as S32",
		           cptx_type_name(type));
	return is_storable(type);
}

/* Whether results are rounded from .f32, or are the integers that they are stored as. */
static bool check_results(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, enum cptx_type type)
{
	const bool fits = (e->acc.type == CPTX_S32) == (type == CPTX_S32);

	if (!fits)
		cptx_fail_(k, at,
		           "results stored as .%s, which are .%s; .integers of cptx_epilogue_opt leaves integer sums as they are",
		           cptx_type_name(type), cptx_type_name(e->acc.type));
	return fits;
}

void cptx_epilogue_store_(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, const cptx_epilogue_to *to)
{
	epi_group g;

	if (!has_run(k, at, e) || !IS_GIVEN_TO(k, at, to, "matrix") || !check_type(k, at, to->type) ||
	    !check_results(k, at, e, to->type))
		return;
	if (e->opt.transposed) {
		cptx_fail_(k, at, "results of an epilogue of .transposed; they can be stored by cptx_epilogue_store_tma");
		return;
	}
	if (!KIT_OPTION("cptx_epilogue_store", to, address, KIT_U64 | KIT_NONE) ||
	    !KIT_OPTION("cptx_epilogue_store", to, pitch, KIT_U32 | KIT_COUNT | KIT_NONE))
		return;
	if (to->address.kind != CPTX_VAL_REG || to->pitch.kind == CPTX_VAL_NONE) {
		cptx_fail_(k, at, "no matrix for the results: say .address, .u64 of global memory, and .pitch, in elements");
		return;
	}
	if (to->pitch.kind == CPTX_VAL_INT && to->pitch.i % e->vec) {
		cptx_fail_(k, at,
		           "results in rows of .pitch = %lld elements; with .vec = %u it is a multiple of that: say .vec = %lld in "
		           "cptx_epilogue_new",
		           (long long)to->pitch.i, e->vec, (long long)(to->pitch.i & -to->pitch.i));
		return;
	}
	const uint32_t size = cptx_type_bits(to->type) / 8;
	epi x = { .k = k, .e = e, .acc = &e->acc, .m0 = e->row, .n0 = e->col, .rows = e->opt.rows, .cols = e->cols };
	epi_find_rows(&x, at);
	const cptx_val rows = epi_row_addresses(&x, at, to->address, to->pitch, size);
	for (uint32_t c = 0; c < e->acc.n; c++) {
		if (!epi_group_at(&e->acc, e->vec, 0, c, &g))
			continue;
		cptx_val ok = e->cols.kind == CPTX_VAL_NONE
		                  ? CPTX_NONE_
		                  : epi_is_below(k, at, cptx_acc_coordinate_(k, at, e->acc.col, c, e->col), e->cols);
		for (uint32_t r = 0; r < e->acc.rows; r++)
			if (epi_group_at(&e->acc, e->vec, r, c, &g))
				store_group(k, at, to->type, &g, cptx_offset(cptx_elem(rows, r), (epi_constant(e->acc.col) + c) * size),
				            CPTX_GLOBAL, epi_both(k, at, x.row_ok[r], ok));
		c += g.n - 1;
	}
}

/* ---- tiles ---- */

cptx_tile cptx_epilogue_tile(enum cptx_type type, uint32_t rows, uint32_t n)
{
	static const enum cptx_swizzle swizzles[] = { CPTX_SWIZZLE_128B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_NONE };
	const uint32_t bits = is_storable(type) ? cptx_type_bits(type) : 0;

	for (uint32_t i = 0; bits && i < ARRAY_LEN(swizzles); i++) {
		const uint32_t cols = cptx_swizzle_get(swizzles[i])->span * 8 / bits;
		if (n && n % cols == 0)
			return (cptx_tile){ .rows = rows, .cols = cols, .elem = { .bits = (uint8_t)bits }, .swizzle = swizzles[i] };
	}
	return (cptx_tile){ .rows = 0 };
}

enum { MOST_STAGES = 16, RING_ALIGN = 1024 };

static bool check_ring_values(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o)
{
	static const char where[] = "cptx_epilogue_ring_new";
	const uint32_t number = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, o, map, KIT_U64 | KIT_NONE) && KIT_OPTION(where, o, unit, KIT_U32 | KIT_NONE) &&
	       KIT_OPTION(where, o, thread, KIT_U32 | KIT_NONE) && KIT_OPTION(where, o, elected, KIT_PRED | KIT_NONE) &&
	       KIT_OPTION(where, o, barrier, number) && KIT_OPTION(where, o, smem, number | KIT_VARIABLE);
}

static bool check_ring(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o)
{
	const bool turn = o->tile.elem.mn_major;
	const cptx_tile want = turn ? o->tile : cptx_epilogue_tile(o->type, o->tile.rows, o->tile.cols);

	if (!check_type(k, at, o->type))
		return false;
	if (!want.rows || want.rows > 256 || want.cols != o->tile.cols || want.elem.bits != o->tile.elem.bits ||
	    want.swizzle != o->tile.swizzle || o->tile.elem.padded ||
	    (turn ? !cptx_tile_check(&want, NULL) || want.elem.bits != cptx_type_bits(o->type) : o->tile.pitch))
		cptx_fail_(k, at, "epilogue: a tile of %u x %u; .tile is what cptx_epilogue_tile gives for .%s", o->tile.rows,
		           o->tile.cols, cptx_type_name(o->type));
	else if (o->stages > MOST_STAGES || o->units > CPTX_WARP)
		cptx_fail_(k, at, "epilogue: %u stages for %u units; 1 to %d for 1 to %d", o->stages, o->units, MOST_STAGES,
		           CPTX_WARP);
	else if (o->units > 1 && o->unit.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "epilogue: %u units and no .unit, the number of the thread's", o->units);
	else
		return check_ring_values(k, at, o);
	return false;
}

/* The .u32 address of the ring, without an offset. */
static cptx_val set_aside(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o, uint32_t bytes)
{
	char name[32];
	cptx_val base = o->smem;

	if (base.kind == CPTX_VAL_NONE) {
		snprintf(name, sizeof name, "epilogue_%u", cptx_kernel_dyn_smem(k));
		base = cptx_shared_dyn_(k, at, bytes, RING_ALIGN, name);
	}
	if (base.kind != CPTX_VAL_REG)
		return CALL(mov, .a = base, .type = CPTX_U32);
	if (!base.offset)
		return base;
	base.offset = 0;
	return CALL(add, .a = base, .b = cptx_imm(o->smem.offset));
}

/*
 * Where a thread's first element is in tile 0: what each bit of its number adds to row and column, swizzled.  map: of the
 * accumulator; NULL: from tensor memory, a row for each thread.
 */
static void find_places(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring, const cptx_frag_map *map, cptx_val thread,
                        uint32_t bits)
{
	const cptx_tile *t = &ring->opt.tile;
	uint32_t value[7];

	ring->lane_bits = 0;
	for (uint32_t b = 0; b < bits; b++) {
		value[b] = map ? cptx_tile_at(t, map->lane[b].row, map->lane[b].col).byte : cptx_tile_at(t, 1u << b, 0).byte;
		ring->lane_bits |= value[b];
	}
	memset(ring->place, 0, sizeof ring->place);
	ring->place[0] = cptx_lane_bits_(k, at, thread, bits, value, false, ring->smem);
}

/* The number of the thread in its warp. */
static cptx_val lane_of(cptx_kernel *k, cptx_site at, cptx_val thread)
{
	return CALL(and, .a = cptx_as(thread, CPTX_U32), .b = cptx_imm(CPTX_WARP - 1));
}

void cptx_epilogue_ring_new_(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring, const cptx_epilogue_ring_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, ring, "ring"))
		return;
	*ring = (cptx_epilogue_ring){ .bytes = 0 };
	cptx_epilogue_ring_opt given, *o = &ring->opt;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_ring_opt, &given, opt, at, k) ||
	    !check_ring(k, at, &given))
		return;
	*o = given;
	o->stages = o->stages ? o->stages : 2, o->units = o->units ? o->units : 1;
	const uint32_t bytes = (cptx_tile_bytes(&o->tile) + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
	const cptx_val smem = set_aside(k, at, o, o->units * o->stages * bytes);
	ring->smem = smem;
	if (o->units > 1)
		ring->smem =
			CALL(mad, .a = cptx_as(o->unit, CPTX_U32), .b = cptx_imm(o->stages * bytes), .c = smem, .mode = CPTX_LO);
	ring->bytes = bytes;
	if (o->thread.kind != CPTX_VAL_NONE) {
		ring->lane = lane_of(k, at, o->thread);
		find_places(k, at, ring, NULL, ring->lane, 5);
		for (uint32_t i = 1; i < o->tile.cols * o->tile.elem.bits / 128 && !o->tile.elem.mn_major; i++)
			ring->place[i] = CALL(xor, .a = ring->place[0], .b = cptx_imm(16 * i));
	}
}

/* ---- pieces ---- */

typedef struct sending {
	cptx_kernel *k;
	const cptx_epilogue *e;
	cptx_epilogue_ring *ring;
	const cptx_acc *acc;
	cptx_val z;
	bool by_lines;     /* by stmatrix */
	cptx_frag frag;    /* its fragment */
	cptx_frag_map map; /* worked out */
	cptx_lines lines;  /* in the tile */
	cptx_lane_lines lane_lines;
} sending;

/* Whether the unit is a warp, of mma.sync. */
static bool is_warp(const cptx_acc *acc) { return acc->map.lanes == CPTX_WARP && acc->atom_rows > 1; }

/* Whether each warp sends pieces of its own: such a unit, or of one from tensor memory, whose warps have 32 rows each. */
static bool by_warps(const cptx_acc *acc, const cptx_tile *t)
{
	return is_warp(acc) || (acc->atom_rows == 1 && t->rows == CPTX_WARP);
}

static void synchronize(const sending *s, cptx_site at)
{
	cptx_kernel *k = s->k;

	if (by_warps(s->acc, &s->ring->opt.tile))
		CALL(bar_warp_sync, .mask = cptx_imm(-1));
	else
		CALL(bar_sync, .a = s->ring->opt.barrier, .b = cptx_imm(128));
}

/* Whether stmatrix stores these results: lanes hold them as they do the fragment that it takes. */
static bool begin_lines(sending *s, cptx_site at)
{
	cptx_kernel *k = s->k;
	const cptx_tile *t = &s->ring->opt.tile;
	const bool warp = is_warp(s->acc);
	const uint16_t cols = (uint16_t)(warp ? (t->cols % 16 ? 8 : 16) : t->cols);

	s->frag = (cptx_frag){ .kind = warp ? CPTX_FRAG_MMA_C : CPTX_FRAG_WGMMA_D,
		                   .m = warp ? 16 : 64,
		                   .n = warp ? 8 : cols,
		                   .k = 16,
		                   .bits = 16,
		                   .beside = (uint8_t)(warp ? cols / 8 : 0) };
	if (t->elem.bits != 16 || !cptx_frag_resolve(&s->frag, &s->map, NULL) || s->map.lanes != s->acc->map.lanes ||
	    t->rows % s->map.rows)
		return false;
	for (uint32_t b = 0; 1u << b < s->map.lanes; b++)
		if (s->map.lane[b].row != s->acc->map.lane[b].row || s->map.lane[b].col != s->acc->map.lane[b].col)
			return false;
	if (!cptx_tile_lines(t, &s->frag, 0, 0, &s->lines, NULL))
		return false;
	cptx_lane_lines_begin_(k, at, &s->lane_lines, &s->lines, s->acc->thread, s->ring->smem);
	return true;
}

/* The unit's results from that row and column on, rounded, in the order of the fragment that stmatrix takes. */
static cptx_val fragment_at(sending *s, cptx_site at, uint32_t row, uint32_t col)
{
	const cptx_val words = cptx_regs_(s->k, at, CPTX_B32, s->map.regs);

	for (uint16_t i = 0; i < s->map.regs; i++) {
		cptx_val v[2];
		for (uint16_t slot = 0; slot < 2; slot++) {
			cptx_cell c = { 0 };
			cptx_frag_cell(&s->map, (cptx_place){ .reg = i, .slot = slot }, &c);
			v[slot] = cptx_acc_at(s->acc, kit_acc_number(s->acc, row + c.row, col + c.col)).value;
		}
		epi_round_pair(s->k, at, s->ring->opt.type, v[0], v[1], cptx_elem(words, i));
	}
	return words;
}

/* A piece from row `row`, column `col` of the unit's results on, into that tile of the ring. */
static void write_lines(sending *s, cptx_site at, uint32_t row, uint32_t col, uint32_t stage)
{
	const cptx_tile *t = &s->ring->opt.tile;

	for (uint32_t r = 0; r < t->rows; r += s->map.rows)
		for (uint32_t c = 0; c < t->cols; c += s->map.cols) {
			const cptx_val words = fragment_at(s, at, row + r, col + c);
			for (uint32_t i = 0; i < s->lines.count; i++) {
				cptx_val to = cptx_lane_lines_at_(s->k, at, &s->lane_lines, i, r, c);
				cptx_lines_move_(s->k, at, &s->lines, i, cptx_offset(to, (int64_t)stage * s->ring->bytes), words, true);
			}
		}
}

/*
 * Where an element is that lies `byte` bytes behind the start of the tile for the thread whose first element lies there. The
 * swizzle exchanges bits of an address by exclusive or, so the way from a thread's first element to another is the same for
 * all: bits that depend on the thread are exclusive-ored, in one of eight registers, and all others are added.
 */
static cptx_val place_of(sending *s, cptx_site at, uint32_t byte)
{
	cptx_kernel *k = s->k;
	cptx_val *place = s->ring->place;
	const uint32_t flip = byte & s->ring->lane_bits, i = flip / 16;

	if (flip % 16 || i >= ARRAY_LEN(s->ring->place))
		return cptx_fail_(k, at,
		                  "results whose elements a thread has on both sides of those of others; store them by "
		                  "cptx_epilogue_store");
	if (place[i].kind == CPTX_VAL_NONE)
		place[i] = CALL(xor, .a = place[0], .b = cptx_imm(flip));
	return cptx_offset(place[i], (int64_t)byte - flip);
}

/* `wide` columns of the unit's results from column `col` on, to the piece from column `first` on. */
static void write_groups(sending *s, cptx_site at, uint32_t row, uint32_t col, uint32_t wide, uint32_t first, uint32_t stage)
{
	const cptx_tile *t = &s->ring->opt.tile;
	const uint32_t most = t->elem.mn_major ? 1 : 128 / t->elem.bits;
	epi_group g;

	for (uint32_t c = 0; c < wide; c++) {
		uint32_t n = 1;
		for (uint32_t r = 0; r < s->acc->rows; r++) {
			const uint32_t down = epi_row_of(s->acc, r);
			if (down < row || down >= row + t->rows || !epi_group_at(s->acc, most, r, col + c, &g))
				continue;
			const cptx_val to = place_of(s, at, cptx_tile_at(t, down - row, first + c).byte);
			store_group(s->k, at, s->ring->opt.type, &g, cptx_offset(to, (int64_t)stage * s->ring->bytes), CPTX_SHARED,
			            CPTX_NONE_);
			n = g.n;
		}
		c += n - 1;
	}
}

/* The piece that begins in that row, and `before` columns in front of that column. */
static void copy(const sending *s, cptx_site at, uint32_t row, uint32_t col, uint32_t before, uint32_t stage)
{
	cptx_kernel *k = s->k;
	const cptx_epilogue *e = s->e;
	/* the first element of the thread that leads is that of the unit, or of its warp */
	cptx_val first = s->acc->col, c[3] = { CPTX_NONE_, CPTX_NONE_, s->z };

	first.i -= before; /* of parts it is a constant */
	c[0] = cptx_acc_coordinate_(k, at, first, col, e->col);
	c[1] = s->ring->row.kind == CPTX_VAL_NONE ? cptx_acc_coordinate_(k, at, s->acc->row, row, e->row) : s->ring->row;
	for (uint32_t i = 0; i < 2; i++)
		c[i] = c[i].kind == CPTX_VAL_REG ? cptx_as(c[i], CPTX_S32) : CALL(mov, .a = c[i], .type = CPTX_S32);
	if (s->ring->opt.tile.elem.mn_major) {
		const cptx_val row_of_d = c[0];
		c[0] = c[1], c[1] = row_of_d;
	}
	const bool batched = s->z.kind != CPTX_VAL_NONE;
	CALL(cp_async_bulk_tensor_store, .map = s->ring->opt.map, .coord = cptx_pack_(k, at, c, batched ? 3 : 2),
	     .s = cptx_offset(s->ring->smem, (int64_t)stage * s->ring->bytes), .dim = batched ? CPTX_DIM_3D : CPTX_DIM_2D);
	CALL(cp_async_bulk_commit_group, .z_ = 0);
}

static bool check_pieces(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_epilogue_ring *ring)
{
	const cptx_tile *t = &ring->opt.tile;

	if (!ring->bytes || !t->rows || !t->cols || !ring->opt.stages || ring->opt.stages > MOST_STAGES) {
		cptx_fail_(k, at, "a ring that cptx_epilogue_ring_new did not make");
		return false;
	}
	if (ring->opt.map.kind == CPTX_VAL_NONE) {
		cptx_fail_(k, at, "epilogue: no tensor map for the results: say .map, its .u64 generic address");
		return false;
	}
	const bool warps = by_warps(acc, t), parts = ring->opt.cols != 0;
	if ((ring->opt.elected.kind != CPTX_VAL_NONE || ring->opt.thread.kind != CPTX_VAL_NONE) &&
	    (!warps || acc->atom_rows != 1)) {
		cptx_fail_(k, at, "a ring with .elected or .thread, for results that do not come from tensor memory by warps");
		return false;
	}
	const uint32_t rows = is_warp(acc) ? t->rows : warps ? CPTX_WARP : acc->atom_rows == 1 ? acc->m : acc->map.rows;
	const uint32_t n = parts ? ring->opt.cols : acc->n, down = warps && !is_warp(acc) ? 1 : acc->m / t->rows;
	const uint32_t pieces = down * (n / t->cols);
	if (parts && (down != 1 || acc->col.kind != CPTX_VAL_INT || ring->opt.cols % t->cols || ring->opt.cols % acc->n ||
	              MAX(t->cols, acc->n) % MIN(t->cols, acc->n))) {
		cptx_fail_(k, at,
		           "a part of %u columns of %u, in pieces of %u; parts are of one row of pieces, and of the parts' and the "
		           "pieces' columns one is a multiple of the other",
		           acc->n, ring->opt.cols, t->cols);
		return false;
	}
	if (t->rows != rows || acc->m % rows || rows % MIN(rows, acc->map.rows) || n % t->cols) {
		cptx_fail_(k, at,
		           "results of %u x %u in pieces of %u x %u; .rows is the height that cptx_epilogue_ring_opt tells, and "
		           "the columns divide %u",
		           acc->m, acc->n, t->rows, t->cols, acc->n);
		return false;
	}
	if (!warps && ring->opt.barrier.kind == CPTX_VAL_NONE) {
		cptx_fail_(k, at, "no .barrier in the ring, the number of bar.sync for the unit's 128 threads");
		return false;
	}
	if (ring->pieces && ring->pieces != pieces) {
		cptx_fail_(k, at, "%u pieces into a ring that others put %u in; all calls send as many", pieces, ring->pieces);
		return false;
	}
	ring->pieces = pieces;
	return true;
}

/* The thread that sends: the first of the unit, or of its warp. */
static cptx_val leader(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_epilogue_ring *ring)
{
	cptx_val number = cptx_as(acc->thread, CPTX_U32);

	if (ring->opt.elected.kind != CPTX_VAL_NONE)
		return ring->opt.elected;
	if (by_warps(acc, &ring->opt.tile) && !is_warp(acc))
		number = lane_of(k, at, number);
	return CALL(setp, .a = number, .b = cptx_imm(0), .cmp = CPTX_EQ);
}

/* Finds what the parts of a tile share. */
static void begin_tile(sending *s, cptx_site at)
{
	cptx_kernel *k = s->k;
	cptx_epilogue_ring *ring = s->ring;
	const cptx_acc *acc = s->acc;
	const bool warps = by_warps(acc, &ring->opt.tile);

	ring->leads = leader(k, at, acc, ring);
	ring->row = CPTX_NONE_;
	if (ring->opt.elected.kind != CPTX_VAL_NONE) { /* any lane, so the warp's number tells the row */
		cptx_val quarter = ring->opt.unit;
		if (ring->opt.units > 4)
			quarter = CALL(and, .a = cptx_as(quarter, CPTX_U32), .b = cptx_imm(3));
		ring->row = s->e->row;
		if (quarter.kind == CPTX_VAL_REG)
			ring->row =
				CALL(mad, .a = cptx_as(quarter, CPTX_U32), .b = cptx_imm(CPTX_WARP),
			         .c = s->e->row.kind == CPTX_VAL_REG ? cptx_as(s->e->row, CPTX_U32) : s->e->row, .mode = CPTX_LO);
	}
	s->by_lines = begin_lines(s, at);
	if (!s->by_lines && ring->opt.thread.kind == CPTX_VAL_NONE)
		find_places(k, at, ring, acc->atom_rows == 1 ? NULL : &acc->map,
		            warps ? lane_of(k, at, acc->thread) : cptx_as(acc->thread, CPTX_U32), warps ? 5 : 7);
}

/* A piece, or a part of one, which is as wide. */
static void send_columns(sending *s, cptx_site at, uint32_t row, uint32_t col, uint32_t wide)
{
	cptx_kernel *k = s->k;
	const cptx_epilogue_ring *ring = s->ring;
	const uint32_t stages = ring->opt.stages, across = ring->opt.tile.cols;
	const uint32_t piece = ring->done / across, first = ring->done % across, stage = piece % stages;
	const bool same = piece == 0 && ring->pieces % stages; /* the latest piece of the tile before may lie there */

	if (!first) {
		CALL(cp_async_bulk_wait_group, .n = cptx_imm(same ? 0 : stages - 1), .read = CPTX_READ, .when = ring->leads);
		synchronize(s, at);
	}
	if (s->by_lines)
		write_lines(s, at, row, col, stage);
	else
		write_groups(s, at, row, col, wide, first, stage);
	if (first + wide < across)
		return;
	CALL(fence_proxy, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	synchronize(s, at);
	cptx_if_begin_(k, at, ring->leads);
	copy(s, at, row, col, first, stage);
	cptx_block_end_(k, at);
}

void cptx_epilogue_store_tma_(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, cptx_epilogue_ring *ring, cptx_val z)
{
	if (!has_run(k, at, e) || !IS_GIVEN_TO(k, at, ring, "ring") || !check_pieces(k, at, &e->acc, ring) ||
	    !check_results(k, at, e, ring->opt.type) ||
	    !kit_value(k, at, "cptx_epilogue_store_tma", "z", z, KIT_U32 | KIT_SIGNED | KIT_NONE))
		return;
	const cptx_tile *t = &ring->opt.tile;
	const uint32_t wide = MIN(e->acc.n, t->cols), across = ring->opt.cols ? ring->opt.cols : e->acc.n;
	const uint32_t down = ring->pieces * t->cols / across * t->rows;
	sending s = { .k = k, .e = e, .ring = ring, .acc = &e->acc, .z = z };
	if (!ring->done)
		begin_tile(&s, at);
	for (uint32_t row = 0; row < down; row += t->rows)
		for (uint32_t col = 0; col < e->acc.n; col += wide) {
			send_columns(&s, at, row, col, wide);
			ring->done = (ring->done + wide) % (ring->pieces * t->cols);
		}
}

void cptx_epilogue_ring_drain_(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc)
{
	if (!IS_GIVEN_TO(k, at, ring, "ring") || !epi_is_acc(k, at, acc))
		return;
	cptx_if_begin_(k, at, leader(k, at, acc, ring));
	CALL(cp_async_bulk_wait_group, .n = cptx_imm(0), .read = CPTX_READ);
	cptx_block_end_(k, at);
}
