/* SPDX-License-Identifier: MIT */
/* Rings of tiles in shared memory by which an epilogue's results leave: what they may be, and how threads write to them. */
#include "kit/epilogue.h"
#include "base/options.h"

#include <cptx/cptx.h>

#include <stdio.h>

/* ---- tiles ---- */

cptx_tile cptx_epilogue_tile(enum cptx_type type, uint32_t rows, uint32_t n)
{
	static const enum cptx_swizzle swizzles[] = { CPTX_SWIZZLE_128B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_NONE };
	const uint32_t bits = epi_is_storable(type) ? cptx_type_bits(type) : 0;

	for (uint32_t i = 0; bits && i < ARRAY_LEN(swizzles); i++) {
		const uint32_t cols = cptx_swizzle_get(swizzles[i])->span * 8 / bits;
		if (n && n % cols == 0)
			return (cptx_tile){ .rows = rows, .cols = cols, .elem = { .bits = (uint8_t)bits }, .swizzle = swizzles[i] };
	}
	return (cptx_tile){ .rows = 0 };
}

enum { MOST_ROWS = 256 };

static bool check_ring_values(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o)
{
	static const char where[] = "cptx_epilogue_ring_new";
	const uint32_t number = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, o, map, KIT_U64 | KIT_NONE) && KIT_OPTION(where, o, last_map, KIT_U64 | KIT_NONE) &&
	       KIT_OPTION(where, o, unit, KIT_U32 | KIT_NONE) && KIT_OPTION(where, o, barrier, number) &&
	       KIT_OPTION(where, o, smem, number | KIT_VARIABLE) && KIT_OPTION(where, o, address, KIT_U64 | KIT_NONE) &&
	       KIT_OPTION(where, o, pitch, KIT_U32 | KIT_COUNT | KIT_NONE);
}

/* Whether a tensor map writes such a tile of the type. */
static bool is_tile(const cptx_tile *t, enum cptx_type type)
{
	cptx_tile_boxes boxes;

	return t->elem.bits == cptx_type_bits(type) && !t->elem.padded && t->rows <= MOST_ROWS &&
	       t->swizzle <= CPTX_SWIZZLE_128B && cptx_tile_get_boxes(t, &boxes, NULL) && boxes.count[1] == 1;
}

/* Whether `last` is as the tile but for fewer columns. */
static bool is_narrower(const cptx_tile *last, const cptx_tile *t, enum cptx_type type)
{
	return is_tile(last, type) && last->rows == t->rows && last->cols < t->cols && last->elem.mn_major == t->elem.mn_major &&
	       last->swizzle == t->swizzle;
}

static bool check_ring(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o)
{
	if (!epi_check_type(k, at, o->type))
		return false;
	if (!is_tile(&o->tile, o->type))
		cptx_fail_(k, at, "epilogue: a tile of %u x %u; .tile is what cptx_epilogue_tile gives for .%s", o->tile.rows,
		           o->tile.cols, cptx_type_name(o->type));
	else if (o->last.cols && !is_narrower(&o->last, &o->tile, o->type))
		cptx_fail_(k, at, "epilogue: .last of %u x %u; it is as .tile, of %u x %u, with fewer columns", o->last.rows,
		           o->last.cols, o->tile.rows, o->tile.cols);
	else if (o->stages > EPI_STAGES || o->units > CPTX_WARP)
		cptx_fail_(k, at, "epilogue: %u stages for %u units; 1 to %d for 1 to %d", o->stages, o->units, EPI_STAGES,
		           CPTX_WARP);
	else if (o->units > 1 && o->unit.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "epilogue: %u units and no .unit, the number of the thread's", o->units);
	else if (!is_none(o->address) && is_none(o->pitch))
		cptx_fail_(k, at, "epilogue: .address of the ring without .pitch, the elements from row to row of D");
	else if (is_none(o->address) && !is_none(o->pitch))
		cptx_fail_(k, at, "epilogue: .pitch of the ring without .address; a tensor map has one of its own");
	else if (!is_none(o->address) && (!is_none(o->map) || !is_none(o->last_map)))
		cptx_fail_(k, at, "epilogue: .address of the ring with .%s; results go by the one or by the other",
		           is_none(o->map) ? "last_map" : "map");
	else
		return check_ring_values(k, at, o);
	return false;
}

bool epi_has_barrier(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o, const cptx_acc *acc)
{
	if (epi_by_warps(acc, &o->tile))
		return true;
	if (is_none(o->barrier))
		cptx_fail_(k, at, "no .barrier in the ring, the number of bar.sync for the unit's 128 threads");
	else if (o->units > 1 && o->barrier.kind == CPTX_VAL_INT)
		cptx_fail_(k, at,
		           "epilogue: .barrier of the ring is %lld for all of %u units; each needs a number of its own: "
		           ".barrier = cptx_add(k, unit, %lld)",
		           (long long)o->barrier.i, o->units, (long long)o->barrier.i);
	else
		return true;
	return false;
}

static bool check_ring_acc(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o)
{
	const cptx_acc *acc = o->acc;

	if (!acc)
		return true;
	if (!kit_acc_is_made(k, at, acc))
		return false;
	if (acc->count)
		return epi_is_acc(k, at, acc) && epi_has_barrier(k, at, o, acc);
	if (o->tile.rows != CPTX_WARP || acc->n % o->tile.cols || o->last.cols)
		cptx_fail_(k, at,
		           "epilogue: a tile of %u x %u for parts of %u columns; it has 32 rows, divides them, and has no .last",
		           o->tile.rows, o->tile.cols, acc->n);
	return o->tile.rows == CPTX_WARP && acc->n % o->tile.cols == 0 && !o->last.cols;
}

/* The .u32 address of the rings of all units, without an offset. */
static cptx_val set_aside(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o, uint32_t bytes)
{
	char name[32];
	cptx_val base = o->smem;

	if (base.kind == CPTX_VAL_NONE) {
		snprintf(name, sizeof name, "epilogue_%u", cptx_kernel_dyn_smem(k));
		base = cptx_shared_dyn_(k, at, bytes, CPTX_EPILOGUE_RING_ALIGN, name);
	}
	return base.kind == CPTX_VAL_REG ? kit_plain(k, at, base) : CALL(mov, .a = base, .type = CPTX_U32);
}

bool epi_has_parts(const cptx_epilogue_ring *ring) { return ring->opt.acc && !ring->opt.acc->count; }

cptx_val epi_first_tile(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring)
{
	const cptx_epilogue_ring_opt *o = &ring->opt;
	const cptx_val apart = cptx_imm(o->stages * ring->bytes);

	if (o->units == 1 || epi_has_parts(ring))
		return ring->smem;
	return CALL(mad, .a = cptx_as(o->unit, CPTX_U32), .b = apart, .c = ring->smem, .mode = CPTX_LO);
}

/* ---- places in a tile ---- */

bool epi_is_warp(const cptx_acc *acc) { return acc->map.lanes == CPTX_WARP && acc->atom_rows > 1; }

bool epi_by_warps(const cptx_acc *acc, const cptx_tile *t)
{
	return epi_is_warp(acc) || (acc->atom_rows == 1 && t->rows == CPTX_WARP);
}

/* Whether stmatrix stores these results: lanes hold them as they do the fragment that it takes. */
static bool begin_lines(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t, cptx_val smem,
                        cptx_epilogue_writer *w)
{
	const bool warp = epi_is_warp(acc);
	const uint16_t cols = (uint16_t)(warp ? (t->cols % 16 ? 8 : 16) : t->cols);
	const cptx_frag frag = { .kind = warp ? CPTX_FRAG_MMA_C : CPTX_FRAG_WGMMA_D,
		                     .m = warp ? 16 : 64,
		                     .n = warp ? 8 : cols,
		                     .k = 16,
		                     .bits = 16,
		                     .beside = (uint8_t)(warp ? cols / 8 : 0) };
	cptx_frag_map map;

	if (t->elem.bits != 16 || !cptx_frag_resolve(&frag, &map, NULL) || map.lanes != acc->map.lanes || t->rows % map.rows)
		return false;
	for (uint32_t b = 0; 1u << b < map.lanes; b++)
		if (map.lane[b].row != acc->map.lane[b].row || map.lane[b].col != acc->map.lane[b].col)
			return false;
	if (!cptx_tile_lines(t, &frag, 0, 0, &w->lines, NULL))
		return false;
	if (!cptx_lane_lines_begin_(k, at, &w->lane_lines, &w->lines, acc->thread, smem))
		return true;
	for (uint32_t i = 0; i < w->lines.count; i++)
		for (uint32_t r = 0; r < t->rows; r += map.rows)
			for (uint32_t c = 0; c < t->cols; c += map.cols)
				cptx_lane_lines_at_(k, at, &w->lane_lines, i, r, c);
	return true;
}

/* Where a thread's first element is: what each bit of its number adds to row and column, swizzled. */
static void begin_places(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t, cptx_val smem,
                         cptx_epilogue_writer *w)
{
	const bool rows = acc->atom_rows == 1; /* from tensor memory: a row for each thread */
	const bool warps = epi_by_warps(acc, t);
	uint32_t value[7], bits = warps ? 5 : 7;
	cptx_val thread = cptx_as(acc->thread, CPTX_U32);

	for (uint32_t b = 0; b < bits; b++)
		value[b] =
			rows ? cptx_tile_at(t, 1u << b, 0).byte : cptx_tile_at(t, acc->map.lane[b].row, acc->map.lane[b].col).byte;
	if (warps)
		thread = CALL(and, .a = thread, .b = cptx_imm(CPTX_WARP - 1));
	for (uint32_t b = 0; b < bits; b++)
		w->lane_bits |= value[b];
	w->first = cptx_lane_bits_(k, at, thread, bits, value, false, smem);
}

cptx_val epi_leader(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t)
{
	cptx_val number = cptx_as(acc->thread, CPTX_U32);

	if (epi_by_warps(acc, t) && !epi_is_warp(acc))
		number = CALL(and, .a = number, .b = cptx_imm(CPTX_WARP - 1));
	return CALL(setp, .a = number, .b = cptx_imm(0), .cmp = CPTX_EQ);
}

cptx_epilogue_writer epi_writer_of(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc,
                                   bool last)
{
	const cptx_tile *t = last ? &ring->opt.last : &ring->opt.tile;
	const cptx_val smem = epi_first_tile(k, at, ring);
	cptx_epilogue_writer w = { .lane_bits = 0 };

	w.by_lines = begin_lines(k, at, acc, t, smem, &w);
	if (!w.by_lines)
		begin_places(k, at, acc, t, smem, &w);
	return w;
}

/* Computes what stores of parts share.  A thread has a row. */
static void begin_parts(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring)
{
	const cptx_tile *t = &ring->opt.tile;
	cptx_acc part = *ring->opt.acc;

	part.atom_rows = 1;
	if (ring->opt.units > 1)
		ring->smem = CALL(mad, .a = cptx_as(ring->opt.unit, CPTX_U32), .b = cptx_imm(ring->opt.stages * ring->bytes),
		                  .c = ring->smem, .mode = CPTX_LO);
	ring->leads = cptx_regs_(k, at, CPTX_PRED, 1);
	CALL(elect_sync, .mask = cptx_imm(-1), .p = ring->leads, .into = cptx_sink());
	begin_places(k, at, &part, t, ring->smem, &ring->writer[0]);
	ring->flipped[0] = ring->writer[0].first;
	for (uint32_t i = 1; i < ARRAY_LEN(ring->flipped) && i < t->cols * t->elem.bits / 128 && !t->elem.mn_major; i++)
		ring->flipped[i] = CALL(xor, .a = ring->flipped[0], .b = cptx_imm(16 * i));
	ring->subtiles = part.n / t->cols;
}

void cptx_epilogue_ring_new_(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring, const cptx_epilogue_ring_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, ring, "ring"))
		return;
	*ring = (cptx_epilogue_ring){ .bytes = 0 };
	cptx_epilogue_ring_opt given, *o = &ring->opt;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_ring_opt, &given, opt, at, k) ||
	    !check_ring(k, at, &given) || !check_ring_acc(k, at, &given))
		return;
	*o = given;
	ring->made = kit_made(k, KIT_cptx_epilogue_ring);
	o->stages = o->stages ? o->stages : 2, o->units = o->units ? o->units : 1;
	ring->bytes = cptx_epilogue_ring_bytes(&o->tile);
	ring->smem = set_aside(k, at, o, o->units * o->stages * ring->bytes);
	if (epi_has_parts(ring)) {
		begin_parts(k, at, ring);
	} else if (o->acc) {
		ring->leads = epi_leader(k, at, o->acc, &o->tile);
		ring->writer[0] = epi_writer_of(k, at, ring, o->acc, false);
	}
}
