/* SPDX-License-Identifier: MIT */
/*
 * Results of an epilogue to global memory through tiles in shared memory, by TMA.
 *
 * A unit's results leave in subtiles of one tile each.  Its threads round a subtile and store it where the tensor map
 * expects it, swizzled; then one of them starts the copy.  A ring of tiles lets one be written while TMA reads those before.
 */
#include <cptx/operand.h>

#include "base/map_use.h"
#include "kit/epilogue.h"
#include "base/options.h"

#include <cptx/cptx.h>

enum { PART = 32 /* columns that are loaded at once */, THREADS = 128 /* of a unit that is no warp */ };

/* ---- subtiles ---- */

/* Results on their way to a ring. */
typedef struct sending {
	cptx_kernel *k;
	cptx_epilogue_ring *ring;
	const cptx_acc *acc;
	epi *chain;             /* visitors that run where results are rounded */
	cptx_val m0, n0;        /* of the CTA's tile, as the accumulator's rows and columns */
	cptx_val z, z2, map[2]; /* maps: of .tile, of .last */
	cptx_val row_end;       /* of D; NONE: as the maps say */
	cptx_val leads;         /* predicate: the thread starts the copies */
	cptx_epilogue_writer writer[2];
	cptx_val flipped[8]; /* by st.shared: writer.first exclusive-or 16 * the index, in the subtile at hand */
} sending;

/* A subtile, from that row and column of the unit's results on. */
typedef struct subtile {
	uint32_t row, col, stage;
	uint32_t word, words; /* rounded to 16 bits: number of the thread's first .b32 in all of the tile; how many */
	uint32_t first, cols; /* of the tile's columns those that are written */
	bool last;
	bool reused; /* its stage has the latest subtile of the results before */
	const cptx_tile *tile;
} subtile;

static subtile subtile_of(const sending *s, uint32_t i)
{
	const cptx_epilogue_ring *ring = s->ring;
	const cptx_tile *t = &ring->opt.tile;
	const uint32_t across = (s->acc->n + t->cols - 1) / t->cols, row = i / across * t->rows, col = i % across * t->cols;
	const bool last = s->acc->n - col < t->cols;
	const uint32_t elements = 2 * s->acc->map.lanes; /* of all threads, one word each */

	return (subtile){ .row = row,
		              .col = col,
		              .stage = i % ring->opt.stages,
		              .word = (row * s->acc->n + col * t->rows) / elements,
		              .words = t->rows * MIN(t->cols, s->acc->n - col) / elements,
		              .cols = MIN(t->cols, s->acc->n - col),
		              .last = last,
		              .reused = i == 0 && ring->subtiles % ring->opt.stages,
		              .tile = last ? &ring->opt.last : t };
}

/* The subtile, or the part of one, that n columns from column `col` on are, which came from tensor memory together. */
static subtile part_of(const sending *s, uint32_t col, uint32_t n)
{
	cptx_epilogue_ring *ring = s->ring;
	const uint32_t all = ring->opt.tile.cols, i = col / all, stages = ring->opt.stages;

	return (subtile){ .stage = i % stages,
		              .first = col % all,
		              .cols = n,
		              .reused = i == 0 && ring->subtiles % stages,
		              .tile = &ring->opt.tile };
}

/* Whether the unit's threads store rows of D, in place of TMA. */
static bool by_rows(const cptx_epilogue_ring *ring) { return ring->opt.address.kind != CPTX_VAL_NONE; }

static void synchronize(const sending *s, cptx_site at)
{
	cptx_kernel *k = s->k;

	if (epi_by_warps(s->acc, &s->ring->opt.tile))
		CALL(bar_warp_sync, .mask = cptx_imm(-1));
	else
		CALL(bar_sync, .a = s->ring->opt.barrier, .b = cptx_imm(THREADS));
}

/* Makes n rows of the accumulator, from `row` on, the rows at hand of the chain, where they are not that already. */
static void take_rows(const sending *s, cptx_site at, uint32_t row, uint32_t n)
{
	uint32_t first = 0, end;

	while (epi_row_of(s->acc, first) < row)
		first++;
	for (end = first; end < s->acc->rows && epi_row_of(s->acc, end) < row + n;)
		end++;
	if (s->chain->row_first != first || s->chain->row_end != end)
		epi_rows(s->chain, at, first, end);
}

/* Rounds the results that one stmatrix stores, from that row and column of the unit's results on: two to each word. */
static void round_fragment(const sending *s, cptx_site at, const cptx_frag_map *map, uint32_t row, uint32_t col,
                           cptx_val words)
{
	epi_group g;
	cptx_place p;

	take_rows(s, at, row, map->rows);
	for (uint32_t c = 0; c < map->cols; c += 2) {
		if (!epi_group_at(s->acc, 2, s->chain->row_first, col + c, &g))
			continue;
		epi_visit(s->chain, at, col + c, 2);
		for (uint32_t r = s->chain->row_first; r < s->chain->row_end; r++) {
			const cptx_cell cell = { (uint16_t)(epi_row_of(s->acc, r) - row), (uint16_t)c };
			if (!epi_group_at(s->acc, 2, r, col + c, &g) || !cptx_frag_place(map, cell, &p))
				continue;
			kit_round_pair(s->k, at, s->ring->opt.type, g.elem[0].value, g.elem[1].value, cptx_elem(words, p.reg));
		}
	}
}

/* Rounds a subtile for stmatrix, fragment after fragment. */
static cptx_val round_lines(const sending *s, cptx_site at, const subtile *x, cptx_val words)
{
	const cptx_frag_map *map = &s->writer[x->last].lines.map;
	uint32_t n = 0;

	for (uint32_t r = 0; r < x->tile->rows; r += map->rows)
		for (uint32_t c = 0; c < x->tile->cols; c += map->cols, n += map->regs)
			round_fragment(s, at, map, x->row + r, x->col + c, cptx_slice(words, n, map->regs));
	return words;
}

static void write_lines(sending *s, cptx_site at, const subtile *x, cptx_val words)
{
	cptx_epilogue_writer *w = &s->writer[x->last];
	uint32_t n = 0;

	w->lane_lines.lines = &w->lines;
	for (uint32_t r = 0; r < x->tile->rows; r += w->lines.map.rows)
		for (uint32_t c = 0; c < x->tile->cols; c += w->lines.map.cols, n += w->lines.map.regs)
			for (uint32_t i = 0; i < w->lines.count; i++) {
				cptx_val to = cptx_lane_lines_at_(s->k, at, &w->lane_lines, i, r, c);
				cptx_lines_move_(s->k, at, &w->lines, i, cptx_offset(to, (int64_t)x->stage * s->ring->bytes),
				                 cptx_slice(words, n, w->lines.map.regs), true);
			}
}

/*
 * Where an element is that lies `byte` bytes behind the start of the tile for the thread whose first element lies there. The
 * swizzle exchanges bits of an address by exclusive or, so the way from a thread's first element to another is the same for
 * all: bits of a swizzle's span that depend on the thread are exclusive-ored, in one of eight registers, and all others are
 * added.
 */
static cptx_val place_of(sending *s, cptx_site at, const subtile *x, uint32_t byte)
{
	cptx_kernel *k = s->k;
	const cptx_epilogue_writer *w = &s->writer[x->last];
	const uint32_t swizzled = x->tile->swizzle ? cptx_swizzle_get(x->tile->swizzle)->span - 1 : 0;
	const uint32_t flip = byte & w->lane_bits & swizzled, i = flip / 16;

	if (flip % 16 || i >= ARRAY_LEN(s->flipped))
		return cptx_fail_(k, at,
		                  "results whose elements a thread has on both sides of those of others; store them by "
		                  "cptx_epilogue_store");
	s->flipped[0] = w->first;
	if (s->flipped[i].kind == CPTX_VAL_NONE)
		s->flipped[i] = CALL(xor, .a = w->first, .b = cptx_imm(flip));
	return cptx_offset(s->flipped[i], (int64_t)byte - flip);
}

static void write_groups(sending *s, cptx_site at, const subtile *x)
{
	const cptx_tile *t = x->tile;
	const uint32_t most = t->elem.mn_major ? 1 : 128 / t->elem.bits;
	epi_group g;

	if (!epi_has_parts(s->ring))
		memset(s->flipped, 0, sizeof s->flipped);
	take_rows(s, at, x->row, t->rows);
	for (uint32_t c = 0; c < x->cols; c++) {
		if (!epi_group_at(s->acc, most, s->chain->row_first, x->col + c, &g))
			continue;
		epi_visit(s->chain, at, x->col + c, g.n);
		for (uint32_t r = s->chain->row_first; r < s->chain->row_end; r++) {
			if (!epi_group_at(s->acc, most, r, x->col + c, &g))
				continue;
			const cptx_val to = place_of(s, at, x, cptx_tile_at(t, epi_row_of(s->acc, r) - x->row, x->first + c).byte);
			epi_store_group(s->k, at, s->ring->opt.type, &g, cptx_offset(to, (int64_t)x->stage * s->ring->bytes),
			                CPTX_SHARED, CPTX_NONE_);
		}
		c += g.n - 1;
	}
}

static cptx_val coordinate(cptx_kernel *k, cptx_site at, cptx_val first, uint32_t more, cptx_val from)
{
	const cptx_val c = cptx_acc_coordinate_(k, at, first, more, from);

	return c.kind == CPTX_VAL_REG ? cptx_as(c, CPTX_S32) : CALL(mov, .a = c, .type = CPTX_S32);
}

/* The first row of the accumulator that the thread's warp stores, of parts by its number, which is the same in all threads.
 */
static cptx_val row_of_warp(const sending *s, cptx_site at)
{
	cptx_kernel *k = s->k;
	const cptx_epilogue_ring_opt *o = &s->ring->opt;
	cptx_val from = s->m0.kind == CPTX_VAL_REG ? cptx_as(s->m0, CPTX_U32) : s->m0, warp = o->unit;

	if (warp.kind == CPTX_VAL_NONE)
		return coordinate(k, at, cptx_imm(0), 0, from);
	if (o->units > 4)
		warp = CALL(and, .a = cptx_as(warp, CPTX_U32), .b = cptx_imm(3));
	return cptx_as(CALL(mad, .a = cptx_as(warp, CPTX_U32), .b = cptx_imm(CPTX_WARP), .c = from, .mode = CPTX_LO), CPTX_S32);
}

/* Tells the launch which tensor map a store of so many dimensions needs. */
static void note_map(const sending *s, cptx_site at, const cptx_tile *t, cptx_val map, uint32_t rank)
{
	cptx_tile_boxes boxes;
	ir_map_use m = {
		.stores = true, .type = cptx_operand_tensor_type(s->ring->opt.type, t), .rank = rank, .swizzle = t->swizzle
	};

	if (!cptx_tile_get_boxes(t, &boxes, NULL))
		return;
	for (uint32_t i = 0; i < rank; i++)
		m.box[i] = i < 2 ? boxes.box[i] : 1;
	ir_map_use_note(s->k, at, map, &m);
}

/* Has TMA store a box: at (row, col), and where there are more dimensions at .z and .z2. */
static void store_box(const sending *s, cptx_site at, const subtile *x, cptx_val row, cptx_val col, cptx_val map,
                      cptx_val from)
{
	static const uint16_t dim[] = { CPTX_DIM_2D, CPTX_DIM_3D, CPTX_DIM_4D };
	cptx_kernel *k = s->k;
	const bool cut = s->row_end.kind != CPTX_VAL_NONE;
	const uint32_t more = (s->z.kind != CPTX_VAL_NONE) + (s->z2.kind != CPTX_VAL_NONE) + cut;
	const bool rows = x->tile->elem.mn_major;
	cptx_val c[4] = { rows ? row : col, rows ? col : row, s->z, s->z2 };

	if (cut)
		kit_cut_box(k, at, rows ? x->tile->cols : x->tile->rows, s->row_end, &c[1], &c[2]);
	note_map(s, at, x->tile, map, 2 + more);
	CALL(cp_async_bulk_tensor_store, .map = map, .coord = cptx_pack_(k, at, c, 2 + more), .s = from, .dim = dim[more]);
}

/* A part that completes a subtile is the last of its columns. */
static void copy_parts(const sending *s, cptx_site at, const subtile *x)
{
	cptx_kernel *k = s->k;
	const uint32_t first = (uint32_t)s->acc->col.i - x->first;
	const cptx_val col = coordinate(k, at, cptx_imm(first), 0, s->n0), row = row_of_warp(s, at);

	store_box(s, at, x, row, col, s->map[0], cptx_offset(s->ring->smem, (int64_t)x->stage * s->ring->bytes));
	CALL(cp_async_bulk_commit_group, .z_ = 0);
}

static void copy(const sending *s, cptx_site at, const subtile *x)
{
	cptx_kernel *k = s->k;
	const bool rows = x->tile->elem.mn_major, warps = epi_by_warps(s->acc, x->tile);
	const cptx_val from = epi_first_tile(k, at, s->ring);
	cptx_tile_boxes boxes;

	cptx_tile_get_boxes(x->tile, &boxes, NULL);
	for (uint32_t i = 0; i < boxes.count[0]; i++) {
		const uint32_t along = i * boxes.box[0];
		const cptx_val row = coordinate(k, at, warps ? s->acc->row : s->acc->unit_row, x->row + (rows ? along : 0), s->m0);
		const cptx_val col = coordinate(k, at, warps ? s->acc->col : s->acc->unit_col, x->col + (rows ? 0 : along), s->n0);
		store_box(s, at, x, row, col, s->map[x->last],
		          cptx_offset(from, (int64_t)x->stage * s->ring->bytes + i * boxes.bytes));
	}
	CALL(cp_async_bulk_commit_group, .z_ = 0);
}

/* Waits until all threads may write to the subtile's stage. */
static void acquire(const sending *s, cptx_site at, const subtile *x)
{
	cptx_kernel *k = s->k;

	cptx_if_begin_(k, at, s->leads);
	CALL(cp_async_bulk_wait_group, .n = cptx_imm(x->reused ? 0 : s->ring->opt.stages - 1), .read = CPTX_READ);
	cptx_block_end_(k, at);
	synchronize(s, at);
}

/* Stores a subtile's rows by all threads. */
static void store_rows(const sending *s, cptx_site at, const subtile *x)
{
	cptx_kernel *k = s->k;
	const cptx_val from = CALL(add, .a = epi_first_tile(k, at, s->ring), .b = cptx_imm((int64_t)x->stage * s->ring->bytes));

	const epi_anywhere to = { .tile = x->tile,
		                      .smem = from,
		                      .thread = s->acc->thread,
		                      .address = s->ring->opt.address,
		                      .pitch = s->ring->opt.pitch,
		                      .row = coordinate(k, at, s->acc->unit_row, x->row, s->m0),
		                      .col = coordinate(k, at, s->acc->unit_col, x->col, s->n0),
		                      .rows = s->chain->rows,
		                      .cols = s->chain->cols };

	epi_store_anywhere(k, at, &to);
}

/* Has TMA copy a subtile that all threads have written, or has them store it. */
static void send(const sending *s, cptx_site at, const subtile *x)
{
	cptx_kernel *k = s->k;

	if (!by_rows(s->ring))
		CALL(fence_proxy, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	synchronize(s, at);
	if (by_rows(s->ring)) {
		store_rows(s, at, x);
		return;
	}
	cptx_if_begin_(k, at, s->leads);
	if (epi_has_parts(s->ring))
		copy_parts(s, at, x);
	else
		copy(s, at, x);
	cptx_block_end_(k, at);
}

/* ---- stores ---- */

static bool check_subtiles(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_epilogue_ring *ring)
{
	const cptx_tile *t = &ring->opt.tile;

	if (epi_has_parts(ring) != !acc->count || (epi_has_parts(ring) && acc->n != ring->opt.acc->n)) {
		cptx_fail_(
			k, at,
			"results of %u x %u in %s memory; with .acc in tensor memory a ring stores an accumulator there, as wide, "
			"that cptx_epilogue_run took with .at_store, and no other does",
			acc->m, acc->n, acc->count ? "registers, not in tensor" : "tensor");
		return false;
	}
	if (epi_has_parts(ring))
		return true;
	const bool warps = epi_by_warps(acc, t);
	const uint32_t rows = epi_is_warp(acc) ? t->rows : warps ? CPTX_WARP : acc->atom_rows == 1 ? acc->m : acc->map.rows;
	const uint32_t across = (acc->n + t->cols - 1) / t->cols;
	const uint32_t subtiles = (warps && !epi_is_warp(acc) ? 1 : acc->m / t->rows) * across;
	if (t->rows != rows || acc->m % rows || rows % MIN(rows, acc->map.rows) || acc->n % t->cols != ring->opt.last.cols) {
		cptx_fail_(k, at,
		           "results of %u x %u in subtiles of %u x %u; .rows is the height that cptx_epilogue_ring_opt tells, and "
		           "the columns divide %u, or leave those of .last",
		           acc->m, acc->n, t->rows, t->cols, acc->n);
		return false;
	}
	if (!epi_has_barrier(k, at, &ring->opt, acc))
		return false;
	if (ring->opt.acc && (ring->opt.acc->m != acc->m || ring->opt.acc->n != acc->n)) {
		cptx_fail_(k, at, "results of %u x %u into a ring whose .acc has %u x %u", acc->m, acc->n, ring->opt.acc->m,
		           ring->opt.acc->n);
		return false;
	}
	if (ring->subtiles && ring->subtiles != subtiles) {
		cptx_fail_(k, at, "%u subtiles into a ring that others put %u in; all calls send as many", subtiles, ring->subtiles);
		return false;
	}
	ring->subtiles = subtiles;
	return true;
}

static bool is_made(const cptx_epilogue_writer *w) { return w->by_lines || w->first.kind == CPTX_VAL_REG; }

/* Takes what all stores share from the ring, or computes it here where the ring has none. */
static void take_writers(cptx_site at, sending *s)
{
	const cptx_epilogue_ring *ring = s->ring;

	s->leads = ring->opt.acc ? ring->leads : epi_leader(s->k, at, s->acc, &ring->opt.tile);
	for (uint32_t i = 0; i < (ring->opt.last.cols ? 2 : 1); i++)
		s->writer[i] = is_made(&ring->writer[i]) ? ring->writer[i] : epi_writer_of(s->k, at, ring, s->acc, i == 1);
}

/* Whether threads can store rows of D from the ring's tiles. */
static bool check_rows(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc,
                       const cptx_epilogue_dst *to)
{
	const cptx_tile *t = &ring->opt.tile;
	const bool one_unit = !epi_by_warps(acc, t) && !epi_has_parts(ring);

	if (to->map.kind != CPTX_VAL_NONE || to->last_map.kind != CPTX_VAL_NONE)
		cptx_fail_(k, at, "epilogue: .%s of a store from a ring with .address; results go by the one or by the other",
		           to->map.kind == CPTX_VAL_NONE ? "last_map" : "map");
	else if (to->z.kind != CPTX_VAL_NONE || to->row_end.kind != CPTX_VAL_NONE)
		cptx_fail_(k, at,
		           "epilogue: .address with .z or .row_end, which are for tensor maps; give that of the matrix, and "
		           ".rows of cptx_epilogue_opt");
	else if (!one_unit || t->elem.mn_major || t->rows % 8)
		cptx_fail_(k, at,
		           "epilogue: .address with a ring of %s; rows of D are stored by units of 128 threads, from tiles "
		           "whose rows are contiguous: cptx_epilogue_store stores others",
		           one_unit ? "mn_major tiles" : "warps");
	else
		return true;
	return false;
}

/* What a store sends, and its maps: its own or the ring's. */
static bool begin_sending(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring, const cptx_acc *acc,
                          const cptx_epilogue_dst *opt, sending *s)
{
	cptx_epilogue_dst given, *to = &given;
	static const char where[] = "cptx_epilogue_store_tma";

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_dst, to, opt, at, k) ||
	    !KIT_OPTION(where, to, z, KIT_U32 | KIT_SIGNED | KIT_NONE) ||
	    !KIT_OPTION(where, to, z2, KIT_U32 | KIT_SIGNED | KIT_NONE) || !KIT_OPTION(where, to, map, KIT_U64 | KIT_NONE) ||
	    !KIT_OPTION(where, to, last_map, KIT_U64 | KIT_NONE) || !KIT_OPTION(where, to, row_end, KIT_U32 | KIT_NONE) ||
	    !check_subtiles(k, at, acc, ring))
		return false;
	if (to->row_end.kind != CPTX_VAL_NONE && to->z.kind != CPTX_VAL_NONE) {
		cptx_fail_(k, at, "epilogue: .row_end with .z; a map of cptx_tensor_map_cut has no dimension of matrices");
		return false;
	}
	if (to->z2.kind != CPTX_VAL_NONE && to->z.kind == CPTX_VAL_NONE) {
		cptx_fail_(k, at, "epilogue: .z2 without .z; a fourth dimension stands behind a third");
		return false;
	}
	*s = (sending){ .k = k, .ring = ring, .acc = acc, .z = to->z, .z2 = to->z2, .row_end = to->row_end };
	if (by_rows(ring)) {
		take_writers(at, s);
		return check_rows(k, at, ring, acc, to);
	}
	s->map[0] = to->map.kind == CPTX_VAL_NONE ? ring->opt.map : to->map;
	s->map[1] = to->last_map.kind == CPTX_VAL_NONE ? ring->opt.last_map : to->last_map;
	if (s->map[0].kind == CPTX_VAL_NONE || (ring->opt.last.cols && s->map[1].kind == CPTX_VAL_NONE)) {
		cptx_fail_(k, at, "epilogue: no tensor map for the results: say .%s, its .u64 generic address",
		           s->map[0].kind == CPTX_VAL_NONE ? "map" : "last_map");
		return false;
	}
	take_writers(at, s);
	return true;
}

static void store_subtile(sending *s, cptx_site at, const subtile *x)
{
	if (!x->first)
		acquire(s, at, x);
	if (s->writer[x->last].by_lines)
		write_lines(s, at, x, round_lines(s, at, x, cptx_regs_(s->k, at, CPTX_B32, x->words)));
	else
		write_groups(s, at, x);
	if (x->first + x->cols == x->tile->cols)
		send(s, at, x);
}

/* Loads an accumulator from tensor memory, 32 columns or a subtile at once, and stores it. */
static void store_parts(sending *s, cptx_site at, cptx_epilogue *e, const cptx_epilogue_dst *to)
{
	cptx_kernel *k = s->k;
	cptx_acc whole = e->acc;
	const uint32_t cols = s->ring->opt.tile.cols, n = MIN(cols & -cols, PART);

	whole.fenced = true, whole.row = s->ring->opt.acc->row;
	memcpy(s->flipped, s->ring->flipped, sizeof s->flipped);
	CALL(tcgen05_fence, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	for (uint32_t col = 0; col < whole.n; col += n) {
		cptx_acc_load_(k, at, &whole, col, n, &e->acc);
		s->chain->part = col;
		if (!e->acc.count)
			return;
		if (col + n == whole.n)
			CALL(tcgen05_fence, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
		if (to->loaded)
			to->loaded(k, to->user, col, &e->acc);
		epi_convert(k, at, e, &e->acc);
		const subtile x = part_of(s, col, n);
		store_subtile(s, at, &x);
	}
}

void cptx_epilogue_store_tma_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, cptx_epilogue_ring *ring,
                              const cptx_epilogue_dst *to)
{
	sending s;

	if (!KIT_IS_MADE(cptx_epilogue_ring, k, at, ring) || !epi_has_run(k, at, e, ring->opt.type) ||
	    !begin_sending(k, at, ring, &e->acc, to, &s))
		return;
	if (e->opt.transposed && by_rows(ring)) {
		cptx_fail_(k, at, "epilogue: .address with .transposed; cptx_epilogue_store stores results of D^T");
		return;
	}
	epi chain = epi_begin(k, at, e, e->next, e->count, 0);
	s.chain = &chain, s.m0 = chain.m0, s.n0 = chain.n0;
	if (epi_has_parts(ring))
		store_parts(&s, at, e, to);
	for (uint32_t i = 0; !epi_has_parts(ring) && i < ring->subtiles; i++) {
		const subtile x = subtile_of(&s, i);
		store_subtile(&s, at, &x);
	}
	epi_end(&chain);
	e->next = e->count;
}

void cptx_epilogue_ring_drain_(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc)
{
	if (!KIT_IS_MADE(cptx_epilogue_ring, k, at, ring) || (!ring->opt.acc && !epi_is_acc(k, at, acc)))
		return;
	cptx_if_begin_(k, at, ring->opt.acc ? ring->leads : epi_leader(k, at, acc, &ring->opt.tile));
	CALL(cp_async_bulk_wait_group, .n = cptx_imm(0), .read = CPTX_READ);
	cptx_block_end_(k, at);
}

/* ---- deferred stores ---- */

enum { PARTS = 4 };

static bool check_deferred(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred_opt *o)
{
	const cptx_epilogue_ring *ring = o->ring;
	const bool lines = ring && ring->opt.acc && ring->writer[0].by_lines;

	if (!lines)
		cptx_fail_(k, at, "a deferred store without .ring, one of 16-bit results that stmatrix stores, made with .acc");
	return lines;
}

void cptx_epilogue_deferred_new_(cptx_kernel *k, cptx_site at, cptx_epilogue_deferred *d,
                                 const cptx_epilogue_deferred_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, d, "deferred store"))
		return;
	*d = (cptx_epilogue_deferred){ .parts = 0 };
	cptx_epilogue_deferred_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_deferred_opt, &o, opt, at, k) ||
	    !check_deferred(k, at, &o) || !check_subtiles(k, at, o.ring->opt.acc, o.ring))
		return;
	d->made = kit_made(k, KIT_cptx_epilogue_deferred);
	d->opt = o;
	if (o.ring->opt.last.cols)
		o.ring->writer[1] = epi_writer_of(k, at, o.ring, o.ring->opt.acc, true);
	d->parts = MIN(o.ring->subtiles, o.parts ? o.parts : PARTS);
	d->words = cptx_regs_(k, at, CPTX_B32, o.ring->opt.acc->count / 2);
	d->stored = cptx_var_(k, at, CPTX_U32, cptx_imm(d->parts));
	d->row = cptx_regs_(k, at, CPTX_S32, 1), d->col = cptx_regs_(k, at, CPTX_S32, 1);
	if (o.batched)
		d->to.z = cptx_regs_(k, at, CPTX_S32, 1);
	if (o.cut)
		d->to.row_end = cptx_regs_(k, at, CPTX_S32, 1);
	if (o.maps)
		d->to.map = cptx_regs_(k, at, CPTX_U64, 1);
	if (o.maps && o.ring->opt.last.cols)
		d->to.last_map = cptx_regs_(k, at, CPTX_U64, 1);
}

static bool is_deferred(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d)
{
	return KIT_IS_MADE(cptx_epilogue_deferred, k, at, d);
}

static void keep(cptx_kernel *k, cptx_site at, cptx_val from, cptx_val into)
{
	if (into.kind == CPTX_VAL_REG)
		CALL(mov, .a = from, .into = into);
}

void cptx_epilogue_defer_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, cptx_epilogue_deferred *d,
                          const cptx_epilogue_dst *to)
{
	sending s;

	if (!is_deferred(k, at, d) || !epi_has_run(k, at, e, d->opt.ring->opt.type) ||
	    !begin_sending(k, at, d->opt.ring, &e->acc, to, &s))
		return;
	if (by_rows(d->opt.ring)) {
		cptx_fail_(k, at, "a deferred store with .address, whose rows threads store: cptx_epilogue_store_tma");
		return;
	}
	if (s.z2.kind != CPTX_VAL_NONE) {
		cptx_fail_(k, at, "a deferred store with .z2; it has three dimensions at most: cptx_epilogue_store_tma");
		return;
	}
	epi chain = epi_begin(k, at, e, e->next, e->count, 0);
	s.chain = &chain;
	for (uint32_t i = 0; i < d->opt.ring->subtiles; i++) {
		const subtile x = subtile_of(&s, i);
		round_lines(&s, at, &x, cptx_slice(d->words, x.word, x.words));
	}
	epi_end(&chain);
	e->next = e->count;
	keep(k, at, cptx_imm(0), d->stored);
	keep(k, at, chain.m0, d->row), keep(k, at, chain.n0, d->col);
	keep(k, at, s.z, d->to.z), keep(k, at, s.row_end, d->to.row_end);
	keep(k, at, s.map[0], d->to.map), keep(k, at, s.map[1], d->to.last_map);
}

/* Stores the subtiles of one part. */
static void store_part(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d, uint32_t part)
{
	cptx_epilogue_ring *ring = d->opt.ring;
	sending s = { .k = k, .ring = ring, .acc = ring->opt.acc, .m0 = d->row, .n0 = d->col, .z = d->to.z };

	s.row_end = d->to.row_end;
	s.map[0] = d->opt.maps ? d->to.map : ring->opt.map, s.map[1] = d->opt.maps ? d->to.last_map : ring->opt.last_map;
	take_writers(at, &s);
	for (uint32_t i = part * ring->subtiles / d->parts; i < (part + 1) * ring->subtiles / d->parts; i++) {
		const subtile x = subtile_of(&s, i);
		acquire(&s, at, &x);
		write_lines(&s, at, &x, cptx_slice(d->words, x.word, x.words));
		send(&s, at, &x);
	}
}

void cptx_epilogue_deferred_store_(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d, uint32_t first,
                                   uint32_t end)
{
	if (!is_deferred(k, at, d))
		return;
	end = MIN(end, d->parts);
	cptx_if_begin_(k, at, CALL(setp, .a = d->stored, .b = cptx_imm(end), .cmp = CPTX_LT));
	const cptx_val next = cptx_var_(k, at, CPTX_U32, d->stored);
	for (uint32_t i = first; i < end; i++) {
		cptx_if_begin_(k, at, CALL(setp, .a = next, .b = cptx_imm(i), .cmp = CPTX_EQ));
		store_part(k, at, d, i);
		cptx_block_end_(k, at);
	}
	CALL(add, .a = next, .b = cptx_imm(1), .into = d->stored);
	cptx_block_end_(k, at);
}

void cptx_epilogue_deferred_rest_(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d, uint32_t first)
{
	if (!is_deferred(k, at, d))
		return;
	cptx_if_begin_(k, at, CALL(setp, .a = d->stored, .b = cptx_imm(d->parts), .cmp = CPTX_LT));
	for (uint32_t i = first; i < d->parts; i++) {
		cptx_if_begin_(k, at, CALL(setp, .a = d->stored, .b = cptx_imm(i), .cmp = CPTX_LE));
		store_part(k, at, d, i);
		cptx_block_end_(k, at);
	}
	CALL(mov, .a = cptx_imm(d->parts), .into = d->stored);
	cptx_block_end_(k, at);
}
