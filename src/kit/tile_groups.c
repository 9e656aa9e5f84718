/* SPDX-License-Identifier: MIT */
/* Groups of rows whose numbers only the device knows: how many tiles they have, and which rows a tile is of. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/reduce.h>
#include <cptx/scheduler.h>

#include "kit/made.h"
#include "kit/value.h"

enum { COUNT = 4 /* bytes */, LANES = 32, ALL_LANES = -1 };

/* ---- making one ---- */

static bool check(cptx_kernel *k, cptx_site at, const cptx_tile_groups_opt *o)
{
	static const char where[] = "cptx_tile_groups_new";
	const uint32_t count = KIT_U32 | KIT_COUNT;

	if (!KIT_OPTION(where, o, counts, KIT_U64 | KIT_VARIABLE) || !KIT_OPTION(where, o, groups, count) ||
	    !KIT_OPTION(where, o, rows, count) || !KIT_OPTION(where, o, columns, count | KIT_NONE) ||
	    !KIT_OPTION(where, o, tiles, count | KIT_NONE))
		return false;
	if (is_none(o->tiles) && (is_none(o->columns) || !o->side))
		cptx_fail_(k, at,
		           "groups without tiles: say .side, rows of a tile, and .columns of tiles, or .tiles of each group, "
		           "whatever its rows");
	else if (!is_none(o->tiles) && (!is_none(o->columns) || o->side))
		cptx_fail_(k, at, "groups of .tiles each, whatever their rows, with .side or .columns; leave these away");
	else
		return true;
	return false;
}

/* The count of a group, an index below .groups, cut to the rows that there are. */
static void load_count(cptx_kernel *k, cptx_site at, const cptx_tile_groups_opt *o, cptx_val group, cptx_val into,
                       cptx_val when)
{
	const cptx_val address = CALL(mad_wide, .a = group, .b = cptx_imm(COUNT), .c = o->counts);

	CALL(ld, .a = address, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = into, .when = when);
	CALL(min, .a = into, .b = o->rows, .into = into);
}

/* Cluster tiles of so many rows, in one column. */
static cptx_val tiles_of(cptx_kernel *k, cptx_site at, const cptx_tile_groups_opt *o, cptx_val rows)
{
	return kit_quotient(k, at, CALL(add, .a = rows, .b = cptx_imm(o->side - 1)), o->side);
}

/*
 * Tiles of all groups, in one column: 32 groups at once, one to a lane.  Sums of 32 counts have room in 32 bits, since each
 * is cut to 2^26.
 */
static cptx_val count_tiles(cptx_kernel *k, cptx_site at, const cptx_tile_groups_opt *o)
{
	const cptx_val lane = cptx_sreg_(k, at, CPTX_SREG_LANEID), all = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	const cptx_val group = cptx_var_(k, at, CPTX_U32, lane), end = cptx_regs_(k, at, CPTX_U32, 1);
	const cptx_val before = cptx_var_(k, at, CPTX_U32, cptx_imm(0)), first = cptx_var_(k, at, CPTX_U32, cptx_imm(0));

	cptx_for_begin_(k, at, first, o->groups, cptx_imm(LANES));
	CALL(mov, .a = cptx_imm(0), .into = end);
	load_count(k, at, o, group, end, CALL(setp, .a = group, .b = o->groups, .cmp = CPTX_LT));
	cptx_val rows = end;
	if (!o->apart) { /* what is behind the rows that there are is no group's */
		cptx_scan_warp_(k, at, end, CPTX_REDUCE_SUM, false);
		CALL(min, .a = CALL(add, .a = end, .b = before), .b = o->rows, .into = end);
		const cptx_val p = cptx_regs_(k, at, CPTX_PRED, 1);
		const cptx_val up = CALL(shfl_sync, .a = end, .b = cptx_imm(1), .c = cptx_imm(0), .mask = cptx_imm(ALL_LANES),
		                         .mode = CPTX_UP, .p = p);
		rows = CALL(sub, .a = end, .b = CALL(selp, .a = up, .b = before, .c = p, .type = CPTX_U32));
		CALL(shfl_sync, .a = end, .b = cptx_imm(LANES - 1), .c = cptx_imm(LANES - 1), .mask = cptx_imm(ALL_LANES),
		     .mode = CPTX_IDX, .into = before);
	}
	const cptx_val tiles = cptx_var_(k, at, CPTX_U32, tiles_of(k, at, o, rows));
	cptx_reduce_lanes_(k, at, tiles, CPTX_REDUCE_SUM, LANES);
	CALL(add, .a = all, .b = tiles, .into = all);
	CALL(add, .a = group, .b = cptx_imm(LANES), .into = group);
	cptx_block_end_(k, at);
	return all;
}

static cptx_val product(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (a.kind == CPTX_VAL_INT && b.kind == CPTX_VAL_INT)
		return cptx_imm((uint32_t)(a.i * b.i));
	return a.kind == CPTX_VAL_INT ? CALL(mul, .a = b, .b = a, .mode = CPTX_LO) : CALL(mul, .a = a, .b = b, .mode = CPTX_LO);
}

void cptx_tile_groups_new_(cptx_kernel *k, cptx_site at, cptx_tile_groups *g, const cptx_tile_groups_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, g, "place for groups"))
		return;
	*g = (cptx_tile_groups){ .all = { 0 } };
	cptx_tile_groups_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tile_groups_opt, &o, opt, at, k) ||
	    !check(k, at, &o))
		return;
	g->opt = o;
	g->all = is_none(o.tiles) ? product(k, at, count_tiles(k, at, &o), o.columns) : product(k, at, o.groups, o.tiles);
	g->made = kit_made(k, KIT_cptx_tile_groups);
}

/* ---- finding a tile's group ---- */

void cptx_tile_groups_first_(cptx_kernel *k, cptx_site at, const cptx_tile_groups *g, cptx_tile_group *t)
{
	if (!IS_GIVEN_TO(k, at, t, "place for a group"))
		return;
	*t = (cptx_tile_group){ .group = { 0 } };
	if (!KIT_IS_MADE(cptx_tile_groups, k, at, g))
		return;
	t->group = cptx_var_(k, at, CPTX_U32, cptx_imm(UINT32_MAX));
	t->end = cptx_var_(k, at, CPTX_U32, cptx_imm(0)), t->first = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	t->row = cptx_var_(k, at, CPTX_U32, cptx_imm(0)), t->row_end = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	t->tiles_m = is_none(g->opt.tiles) ? cptx_var_(k, at, CPTX_U32, cptx_imm(1)) : (cptx_val){ 0 };
	t->made = kit_made(k, KIT_cptx_tile_group);
}

/* Goes from the group at hand to the next one. */
static void next_group(cptx_kernel *k, cptx_site at, const cptx_tile_groups_opt *o, const cptx_tile_group *t)
{
	const cptx_val count = cptx_regs_(k, at, CPTX_U32, 1);

	CALL(add, .a = t->group, .b = cptx_imm(1), .into = t->group);
	load_count(k, at, o, t->group, count, (cptx_val){ 0 });
	CALL(mov, .a = t->end, .into = t->first);
	if (o->apart)
		CALL(mul, .a = t->group, .b = o->rows, .into = t->row, .mode = CPTX_LO);
	else
		CALL(mov, .a = t->row_end, .into = t->row);
	CALL(add, .a = t->row, .b = count, .into = t->row_end);
	if (!o->apart)
		CALL(min, .a = t->row_end, .b = o->rows, .into = t->row_end);
	if (!is_none(o->tiles)) {
		CALL(add, .a = t->end, .b = o->tiles, .into = t->end);
		return;
	}
	CALL(mov, .a = tiles_of(k, at, o, CALL(sub, .a = t->row_end, .b = t->row)), .into = t->tiles_m);
	CALL(mad, .a = t->tiles_m, .b = o->columns, .c = t->end, .into = t->end, .mode = CPTX_LO);
}

void cptx_tile_groups_find_(cptx_kernel *k, cptx_site at, const cptx_tile_groups *g, cptx_tile_group *t, cptx_val tile)
{
	if (!KIT_IS_MADE(cptx_tile_groups, k, at, g) || !KIT_IS_MADE(cptx_tile_group, k, at, t) ||
	    !kit_value(k, at, "cptx_tile_groups_find", "the tile", tile, KIT_U32))
		return;
	cptx_while_begin_(k, at);
	cptx_while_test_(k, at, CALL(setp, .a = tile, .b = t->end, .cmp = CPTX_GE));
	/* counts that change while the kernel runs make no endless loop */
	const cptx_val next = CALL(add, .a = t->group, .b = cptx_imm(1));
	cptx_leave_(k, at, 0, CALL(setp, .a = next, .b = g->opt.groups, .cmp = CPTX_GE));
	next_group(k, at, &g->opt, t);
	cptx_block_end_(k, at);
}
