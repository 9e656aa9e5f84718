/* SPDX-License-Identifier: MIT */
/* cptx_tile_groups of cptx/scheduler.h: tiles of groups whose rows the device counts, each once, with its group and its
 * rows. */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/operand.h>
#include <cptx/scheduler.h>

#include "reference/number.h"

enum { MOST_GROUPS = 70, MOST_TILES = 512, CLUSTERS = 5 };

typedef struct trial {
	uint32_t groups, rows, side, columns, tiles; /* tiles 0: as many as the rows need */
	bool apart, constants;
} trial;

/* What a kernel writes of a tile. */
typedef struct seen {
	uint32_t all, times[MOST_TILES], group[MOST_TILES], row[MOST_TILES], end[MOST_TILES], in_group[MOST_TILES];
} seen;

static cptx_val number(cptx_kernel *k, const trial *t, uint32_t i)
{
	return t->constants ? cptx_imm(i) : cptx_var(k, CPTX_U32, i);
}

static void tell(cptx_kernel *k, cptx_val out, size_t first, cptx_val tile, cptx_val v, cptx_val when)
{
	const cptx_val at = cptx_add(k, cptx_mad_wide(k, tile, 4, out), (int64_t)first);

	cptx_st(k, at, v, .space = CPTX_GLOBAL, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .when = when);
}

/* Two warps walk over the same tiles; the first one tells. */
static cptx_module *build(const trial *t)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), counts = cptx_param(k, CPTX_PTR, "counts");
	cptx_tile_groups g;
	cptx_tile_group at;
	cptx_tiles s;
	cptx_tiles_at here;

	cptx_param(k, CPTX_PTR, "c"), cptx_param(k, CPTX_PTR, "d"), cptx_param(k, CPTX_U32, "n");
	const cptx_val one = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ), none = { 0 };
	const cptx_val groups = number(k, t, t->groups), rows = number(k, t, t->rows);
	const cptx_val each = number(k, t, t->tiles ? t->tiles : t->columns);
	cptx_tile_groups_new(k, &g, .counts = counts, .groups = groups, .rows = rows, .apart = t->apart,
	                     .side = t->tiles ? 0 : t->side, .columns = t->tiles ? none : each, .tiles = t->tiles ? each : none);
	cptx_st(k, out, g.all, .space = CPTX_GLOBAL, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .type = CPTX_U32, .when = one);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .all = g.all);
	cptx_tile_groups_first(k, &g, &at);
	CPTX_TILES(k, &s, &here)
	{
		cptx_tile_groups_find(k, &g, &at, here.id);
		const cptx_val in_group = cptx_sub(k, here.id, at.first);
		const cptx_val times = cptx_add(k, cptx_mad_wide(k, here.id, 4, out), (int64_t)offsetof(seen, times));
		cptx_atom(k, times, 1, .op = CPTX_ADD, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = cptx_reg(k, CPTX_U32),
		          .when = one);
		tell(k, out, offsetof(seen, group), here.id, at.group, one);
		tell(k, out, offsetof(seen, row), here.id, at.row, one);
		tell(k, out, offsetof(seen, end), here.id, at.row_end, one);
		tell(k, out, offsetof(seen, in_group), here.id, in_group, one);
	}
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	return m;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void compare(const trial *t, const uint32_t *counts, const seen *x, unsigned seed)
{
	uint32_t tile = 0, row = 0;

	for (uint32_t g = 0; g < t->groups; g++) {
		row = t->apart ? g * t->rows : row;
		const uint32_t left = t->apart ? t->rows : t->rows - row, end = row + least(counts[g], left);
		const uint32_t n = t->tiles ? t->tiles : (end - row + t->side - 1) / t->side * t->columns;
		for (uint32_t i = 0; i < n; i++, tile++) {
			SURE(tile < MOST_TILES, "seed %u: too many tiles for the test", seed);
			SURE(x->times[tile] == 1 && x->group[tile] == g && x->row[tile] == row && x->end[tile] == end &&
			         x->in_group[tile] == i,
			     "seed %u: tile %u, seen %u times, is %u of group %u, rows %u to %u; not %u of %u, rows %u to %u", seed,
			     tile, x->times[tile], x->in_group[tile], x->group[tile], x->row[tile], x->end[tile], i, g, row, end);
		}
		row = end;
	}
	SURE(x->all == tile, "seed %u: %u tiles, not %u", seed, x->all, tile);
}

static trial draw(uint64_t *s, uint32_t *counts)
{
	trial t = { .groups = 1 + (uint32_t)((number_random(s) >> 33) % MOST_GROUPS) };

	t.apart = number_random(s) >> 40 & 1, t.constants = number_random(s) >> 40 & 1;
	t.rows = 1 + (uint32_t)((number_random(s) >> 33) % (t.apart ? 30 : 400));
	t.side = 8 << (number_random(s) >> 40 & 3), t.columns = 1 + (uint32_t)((number_random(s) >> 40) % 2);
	t.tiles = (number_random(s) >> 40) % 3 ? 0 : 1 + (uint32_t)((number_random(s) >> 40) % 6);
	for (uint32_t g = 0; g < t.groups; g++) {
		const uint32_t kind = (uint32_t)((number_random(s) >> 40) % 8), few = t.apart ? 40 : 2 * t.rows / t.groups + 2;
		counts[g] = kind == 0  ? UINT32_MAX - (uint32_t)(number_random(s) >> 60) * (g % 3 == 0)
		            : kind < 3 ? 0
		                       : (uint32_t)((number_random(s) >> 33) % few);
		if (!kind && !t.apart && g + 1 < t.groups && number_random(s) >> 40 & 7) /* else the first one had all */
			counts[g] = 1;
	}
	return t;
}

/* CPTX_SEEDS=1000 by hand. */
START_TEST(tiles_of_groups)
{
	static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };
	static seen x;
	const char *seeds = getenv("CPTX_SEEDS");
	const unsigned n = seeds ? (unsigned)strtoul(seeds, NULL, 10) : 24;
	uint32_t counts[MOST_GROUPS];

	for (unsigned seed = 1; seed <= n; seed++) {
		uint64_t s = seed * 0x9e3779b97f4a7c15u | 1;
		for (int i = 0; i < 4; i++)
			number_random(&s);
		const trial t = draw(&s, counts);
		cptx_module *m = build(&t);
		emu_run r = { .target = targets[seed % 4],
			          .seed = seed,
			          .schedule = (enum cptx_emu_schedule)(seed % 3),
			          .grid = CLUSTERS,
			          .buffer = { { .host = &x, .bytes = sizeof x }, { .host = counts, .bytes = sizeof counts } } };
		memset(&x, 0, sizeof x);
		emu_launch(m, &r, 0);
		compare(&t, counts, &x, seed);
		cptx_module_destroy(m);
	}
}
END_TEST

START_TEST(errors)
{
	cptx_tile_groups g;
	cptx_tile_group t;
	cptx_module *m;
	cptx_kernel *k;

#define AT .counts = cptx_var(k, CPTX_U64, 0), .groups = cptx_imm(4), .rows = cptx_imm(100)
	k = emu_begin(&m, 64);
	cptx_tile_groups_new(k, &g, AT, .side = 64);
	EMU_FAILS(m, "groups without tiles: say .side, rows of a tile, and .columns of tiles, or .tiles");
	k = emu_begin(&m, 64);
	cptx_tile_groups_new(k, &g, AT, .side = 64, .tiles = cptx_imm(3));
	EMU_FAILS(m, "with .side or .columns; leave these away");
	k = emu_begin(&m, 64);
	cptx_tile_groups_new(k, &g, .groups = cptx_imm(4), .rows = cptx_imm(100), .tiles = cptx_imm(3));
	EMU_FAILS(m, "cptx_tile_groups_new: .counts");
	k = emu_begin(&m, 64);
	cptx_tile_groups_new(k, &g, AT, .tiles = cptx_imm(3));
	cptx_tile_groups_first(k, &g, &t);
	cptx_tile_groups_find(k, &g, &t, cptx_imm(3));
	EMU_FAILS(m, "cptx_tile_groups_find: the tile");
	/* what keeps copies within a group's rows */
	cptx_operand op;
	const cptx_tile tile = { 64, 64, .elem = { 16, false, false }, .swizzle = CPTX_SWIZZLE_128B };
	k = emu_begin(&m, 64);
	cptx_operand_new(k, &op, .type = CPTX_BF16, .stages = 2, .tile = tile, .map = cptx_var(k, CPTX_U64, 0));
	cptx_operand_load(k, &op, 0, 0, 0, .barrier = cptx_var(k, CPTX_U32, 0), .col_end = cptx_var(k, CPTX_U32, 7));
	EMU_FAILS(m, "a load with .col_end; it is of an operand with mn_major tiles");
}
END_TEST

START_TEST(assembles)
{
	const trial t = { .groups = 40, .rows = 1000, .side = 64, .columns = 3 };

	if (!test_ptxas()) {
		skip("ptxas, to judge groups");
		return;
	}
	cptx_module *built = build(&t);
	free(emu_assembles(built, "sm_80"));
	cptx_module_destroy(built);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "tile_groups");

	tcase_add_test(c, tiles_of_groups);
	tcase_add_test(c, errors);
	tcase_add_test(c, assembles);
	return test_main("kit tile_groups", s);
}
