/* SPDX-License-Identifier: MIT */
/* cptx/scheduler.h: every tile once (with stream-K every K tile), in the order that the header says, by each schedule. */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/scheduler.h>

enum { MOST_TILES = 256, MOST_K = 16, ROLES = 3 };

/* What is tried. */
typedef struct sched_case {
	enum cptx_tiles_schedule schedule;
	uint32_t m, n, z; /* z 0: no batches */
	uint32_t k, group, cluster, clusters;
	bool constants, longest_first, roles;
} sched_case;

/* What a kernel writes. */
typedef struct sched_seen {
	uint32_t times[MOST_TILES]; /* by each role, 256 times as much by the next */
	uint32_t place[MOST_TILES]; /* m + 1024 n + 2^20 z, of tile id */
	uint32_t covered[MOST_TILES][MOST_K], finished[MOST_TILES], ends[MOST_TILES];
	uint32_t counter;
} sched_seen;

static cptx_val number(cptx_kernel *k, const sched_case *c, uint32_t i)
{
	return c->constants ? cptx_imm(i) : cptx_var(k, CPTX_U32, i);
}

static cptx_val word(cptx_kernel *k, cptx_val base, size_t first, cptx_val i)
{
	return cptx_add(k, cptx_mad_wide(k, i, 4, base), (int64_t)first);
}

static void count(cptx_kernel *k, cptx_val at, uint32_t by, cptx_val when)
{
	cptx_atom(k, at, by, .op = CPTX_ADD, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = cptx_reg(k, CPTX_U32),
	          .when = when);
}

/* One thread of a role tells of its tile; k tiles, and who finishes, are told by the first role in the first CTA. */
static void tell(cptx_kernel *k, const sched_case *c, const cptx_tiles *s, const cptx_tiles_at *t, cptx_val out,
                 uint32_t role, cptx_val lane)
{
	cptx_val place = t->m, i = cptx_var(k, CPTX_U32, t->k_first);

	place = cptx_mad(k, t->n, 1024, cptx_var(k, CPTX_U32, place), .mode = CPTX_LO);
	if (c->z)
		place = cptx_mad(k, t->z, 1 << 20, place, .mode = CPTX_LO);
	count(k, word(k, out, offsetof(sched_seen, times), t->id), 1u << 8 * role, lane);
	cptx_st(k, word(k, out, offsetof(sched_seen, place), t->id), place, .space = CPTX_GLOBAL, .sem = CPTX_RELAXED,
	        .scope = CPTX_GPU, .when = lane);
	if (role)
		return;
	cptx_val row = cptx_mul(k, t->id, MOST_K, .mode = CPTX_LO);
	CPTX_FOR(k, i, t->k_end, 1)
		count(k, word(k, out, offsetof(sched_seen, covered), cptx_add(k, row, i)), 1, lane);
	if (c->schedule != CPTX_TILES_STREAM_K)
		return;
	cptx_val finishes = cptx_tiles_finishes(k, s, t), is_whole = cptx_tiles_is_whole(k, s, t);
	cptx_val tells = cptx_and(k, lane, finishes);
	count(k, word(k, out, offsetof(sched_seen, finished), t->id), 1, tells);
	CPTX_IF(k, finishes)
		CPTX_IF(k, cptx_negated(is_whole)) {
			cptx_val others = cptx_sub(k, cptx_tiles_share_end(k, s, t), s->number);
			cptx_st(k, word(k, out, offsetof(sched_seen, ends), t->id), others, .space = CPTX_GLOBAL, .when = lane);
		}
	/* who has a part but does not finish */
	CPTX_IF(k, cptx_negated(finishes))
		count(k, word(k, out, offsetof(sched_seen, finished), t->id), 256, lane);
}

/* Three warps are roles; the first one's lane 0 asks. */
static cptx_module *build(const sched_case *c)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 96 }, .cluster = { c->cluster > 1 ? c->cluster : 0 });
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), tid = cptx_tid_x(k), warp = cptx_shr(k, tid, 5);
	const bool queue = c->roles && (c->schedule == CPTX_TILES_DYNAMIC || c->schedule == CPTX_TILES_CANCEL);
	cptx_tiles s;
	cptx_tiles_at t;

	cptx_param(k, CPTX_PTR, "b");
	cptx_param(k, CPTX_PTR, "c");
	cptx_param(k, CPTX_PTR, "d");
	cptx_param(k, CPTX_U32, "n");
	cptx_val rows = number(k, c, c->m), columns = number(k, c, c->n),
			 lane_0 = cptx_setp(k, cptx_and(k, tid, 31), 0, .cmp = CPTX_EQ);
	cptx_tiles_new(k, &s, .schedule = c->schedule, .tiles_m = rows, .tiles_n = columns,
	               .batches = c->z ? number(k, c, c->z) : CPTX_NONE_, .k_tiles = number(k, c, c->k),
	               .group = c->group ? number(k, c, c->group) : CPTX_NONE_, .cluster = c->cluster,
	               .longest_first = c->longest_first, .consumers = queue ? ROLES : 0,
	               .counter = c->schedule == CPTX_TILES_DYNAMIC ? cptx_add(k, out, (int64_t)offsetof(sched_seen, counter))
	                                                            : CPTX_NONE_);
	cptx_tiles_prepare(k, &s, cptx_setp(k, tid, 0, .cmp = CPTX_EQ));
	if (c->cluster > 1) {
		cptx_barrier_cluster_arrive(k, .aligned = true);
		cptx_barrier_cluster_wait(k, .aligned = true);
	} else {
		cptx_bar_sync(k, 0);
	}
	cptx_val tells = lane_0;
	if (c->cluster > 1)
		tells = cptx_and(k, lane_0, cptx_setp(k, cptx_cluster_ctarank(k), 0, .cmp = CPTX_EQ));
	for (uint32_t role = 0; role < (c->roles ? ROLES : 1); role++) {
		cptx_val is_role = c->roles ? cptx_setp(k, warp, role, .cmp = CPTX_EQ) : cptx_setp(k, tid, 96, .cmp = CPTX_LT);
		cptx_val one = c->roles ? tells : cptx_and(k, tells, cptx_setp(k, warp, 0, .cmp = CPTX_EQ));
		CPTX_IF(k, is_role) {
			if (queue && !role) {
				CPTX_IF(k, lane_0)
					CPTX_TILES(k, &s, &t, .asks = true)
				tell(k, c, &s, &t, out, role, one);
			} else if (queue) {
				CPTX_TILES(k, &s, &t, .warp = true, .release = lane_0)
				tell(k, c, &s, &t, out, role, one);
			} else {
				CPTX_TILES(k, &s, &t)
				tell(k, c, &s, &t, out, role, one);
			}
		}
	}
	if (c->cluster > 1) {
		cptx_barrier_cluster_arrive(k, .aligned = true);
		cptx_barrier_cluster_wait(k, .aligned = true);
	}
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	return m;
}

/* Where tile id lies, as the header says. */
static uint32_t place_of(const sched_case *c, uint32_t id)
{
	uint32_t tiles = c->m * c->n, z = c->z ? c->z : 1, group = c->group ? c->group : c->m;

	if (c->longest_first) {
		uint32_t row = id / (c->n * z), rest = id % (c->n * z);
		return c->m - 1 - row + rest % c->n * 1024 + (rest / c->n << 20);
	}
	uint32_t in = id % tiles, first = in / (group * c->n) * group, height = c->m - first < group ? c->m - first : group;
	in -= first * c->n;
	return first + in % height + in / height * 1024 + (id / tiles << 20);
}

static void compare(const sched_case *c, const sched_seen *got, uint32_t launches, const char *target)
{
	uint32_t all = c->m * c->n * (c->z ? c->z : 1), each = c->roles ? 0x010101 : 1, shared = 0;

	for (uint32_t i = 0; i < MOST_TILES; i++) {
		const bool is_tile = i < all;
		if (c->schedule != CPTX_TILES_STREAM_K)
			SURE(got->times[i] == (is_tile ? each * launches : 0), "%s, schedule %d: tile %u of %u was computed 0x%x times",
			     target, c->schedule, i, all, got->times[i]);
		SURE(!is_tile || got->place[i] == place_of(c, i), "%s, schedule %d: tile %u is at 0x%x, not 0x%x", target,
		     c->schedule, i, got->place[i], place_of(c, i));
		for (uint32_t k = 0; k < MOST_K; k++)
			SURE(got->covered[i][k] == (is_tile && k < c->k ? launches : 0),
			     "%s, schedule %d: K tile %u of tile %u: %u times", target, c->schedule, k, i, got->covered[i][k]);
		if (c->schedule != CPTX_TILES_STREAM_K || !is_tile)
			continue;
		uint32_t others = got->finished[i] / 256;
		SURE(got->finished[i] % 256 == 1, "tile %u was finished 0x%x times", i, got->finished[i]);
		/* those that have a part, by the number of the last one */
		SURE(others ? got->ends[i] == others + 1 : got->ends[i] == 0, "tile %u: %u others, ends %u", i, others,
		     got->ends[i]);
		shared += others;
	}
	SURE(got->counter == 0, "the counter is %u behind the launch", got->counter);
	if (c->schedule == CPTX_TILES_STREAM_K)
		SURE(shared < c->clusters, "%u sums of %u clusters", shared, c->clusters);
}

static void try_case(const sched_case *c, const char *target)
{
	static sched_seen seen;
	const uint32_t cluster = c->cluster ? c->cluster : 1, launches = c->schedule == CPTX_TILES_DYNAMIC ? 2 : 1;

	for (uint64_t seed = 0; seed < 3; seed++) {
		cptx_module *m = build(c);
		emu_run r = { .target = target,
			          .seed = seed,
			          .schedule = (enum cptx_emu_schedule)seed,
			          .grid = c->clusters * cluster,
			          .launches = launches,
			          .buffer = { { .host = &seen, .bytes = sizeof seen } } };
		memset(&seen, 0, sizeof seen);
		emu_launch(m, &r, 0);
		compare(c, &seen, launches, target);
		cptx_module_destroy(m);
	}
}

static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };

/* Schedules, orders, batches, roles. */
static void try_all(enum cptx_tiles_schedule schedule, uint32_t first_target, uint32_t cluster, bool roles)
{
	static const sched_case all[] = {
		{ .m = 5, .n = 7, .k = 3 },
		{ .m = 7, .n = 6, .k = 7, .group = 3 },
		{ .m = 7, .n = 6, .k = 7, .group = 3, .constants = true },
		{ .m = 1, .n = 1, .k = 16, .group = 8, .constants = true },
		{ .m = 4, .n = 3, .z = 5, .k = 2, .group = 4 },
		{ .m = 4, .n = 3, .z = 5, .k = 2, .longest_first = true },
		{ .m = 9, .n = 2, .z = 3, .k = 5, .longest_first = true, .constants = true },
		{ .m = 11, .n = 1, .k = 1, .longest_first = true },
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		for (unsigned t = first_target; t < 4; t++) {
			sched_case c = all[i];
			c.schedule = schedule, c.cluster = cluster, c.roles = roles;
			c.clusters = schedule == CPTX_TILES_GRID || schedule == CPTX_TILES_CANCEL ? c.m * c.n * (c.z ? c.z : 1) : 6;
			try_case(&c, targets[t]);
		}
}

START_TEST(static_schedules)
{
	for (unsigned roles = 0; roles < 2; roles++) {
		try_all(CPTX_TILES_GRID, 0, 0, roles);
		try_all(CPTX_TILES_PERSISTENT, 0, 0, roles);
		try_all(CPTX_TILES_PERSISTENT, 1, 2, roles);
		try_all(CPTX_TILES_GRID, 1, 2, roles);
	}
}
END_TEST

START_TEST(stream_k)
{
	try_all(CPTX_TILES_STREAM_K, 0, 0, false);
	try_all(CPTX_TILES_STREAM_K, 1, 2, true);
}
END_TEST

START_TEST(dynamic)
{
	try_all(CPTX_TILES_DYNAMIC, 0, 0, false);
	try_all(CPTX_TILES_DYNAMIC, 1, 0, true);
	try_all(CPTX_TILES_DYNAMIC, 1, 2, true);
}
END_TEST

START_TEST(cancel)
{
	try_all(CPTX_TILES_CANCEL, 2, 0, true);
	try_all(CPTX_TILES_CANCEL, 2, 2, true);
}
END_TEST

/* ---- the order, of numbers that 32 bits just hold ---- */

enum { THREADS = 128 };
static uint32_t rows; /* of a group */

static cptx_module *build_raster(uint32_t m_tiles, uint32_t n_tiles, uint32_t first)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { THREADS });
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), tid = cptx_tid_x(k), row, column;

	cptx_param(k, CPTX_PTR, "b");
	cptx_param(k, CPTX_PTR, "c");
	cptx_param(k, CPTX_PTR, "d");
	cptx_param(k, CPTX_U32, "n");
	cptx_val tm = cptx_var(k, CPTX_U32, m_tiles), tn = cptx_var(k, CPTX_U32, n_tiles);
	cptx_tiles_raster(k, cptx_add(k, tid, first), tm, tn, cptx_imm(rows), &row, &column);
	cptx_val at = cptx_mad_wide(k, tid, 8, out);
	cptx_st(k, at, column, .space = CPTX_GLOBAL);
	cptx_st(k, cptx_offset(at, 4), row, .space = CPTX_GLOBAL);
	return m;
}

/* The same on the host, as the order is described. */
static uint64_t expected(uint64_t m, uint64_t n, uint64_t id)
{
	uint64_t group = id / (n * rows), in = id % (n * rows), height = m - group * rows < rows ? m - group * rows : rows;

	return (group * rows + in % height) << 32 | in / height;
}

START_TEST(tiles_in_order)
{
	static const struct {
		uint32_t m, n, first, rows;
	} all[] = {
		{ 7, 18, 0, 3 },
		{ 128, 1, 0, 16 },
		{ 3, 1u << 20, 3u << 20, 1024 },                        /* 1024 rows of 2^20 tiles: 2^30 */
		{ 1, 1u << 22, (1u << 22) - THREADS, 1024 },            /* 2^32 */
		{ 2, 5000001, 10000002 - THREADS, 1000 },               /* 5 * 10^9 */
		{ 1000, 1u << 21, 1000u * (1u << 21) - THREADS, 1024 }, /* all tiles but a few of 2^31 */
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		uint64_t got[THREADS] = { 0 };
		rows = all[i].rows;
		cptx_module *m = build_raster(all[i].m, all[i].n, all[i].first);
		emu_run r = { .target = "sm_80", .grid = 1, .buffer = { { .host = got, .bytes = sizeof got } } };
		emu_launch(m, &r, 0);
		for (uint64_t t = 0; t < THREADS; t++)
			if (all[i].first + t < (uint64_t)all[i].m * all[i].n)
				ck_assert_msg(got[t] == expected(all[i].m, all[i].n, all[i].first + t), "%u: tile %llu is 0x%llx", i,
				              (unsigned long long)(all[i].first + t), (unsigned long long)got[t]);
		cptx_module_destroy(m);
	}
}
END_TEST

/* ---- errors, and ptxas ---- */

START_TEST(errors)
{
	cptx_module *m;
	cptx_kernel *k;
	cptx_tiles s;
	cptx_tiles_at t;

	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = cptx_imm(3));
	EMU_FAILS(m, "without tiles: say .tiles_m and .tiles_n");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(0));
	EMU_FAILS(m, "a constant from 1 on");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = (enum cptx_tiles_schedule)9, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	EMU_FAILS(m, "there is no tile schedule 9");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_STREAM_K, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	EMU_FAILS(m, "CPTX_TILES_STREAM_K shares K tiles: say .k_tiles");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1), .group = cptx_imm(2), .longest_first = true);
	EMU_FAILS(m, ".group and .longest_first");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1), .cluster = 17);
	EMU_FAILS(m, "clusters of 17 CTAs; a cluster has at most 16");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_DYNAMIC, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	EMU_FAILS(m, "a counter, .counter, the address of a u32 in global memory, is what CPTX_TILES_DYNAMIC needs");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .schedule = CPTX_TILES_CANCEL, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	EMU_FAILS(m, "CPTX_TILES_CANCEL without .consumers");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1), .consumers = 2);
	EMU_FAILS(m, "consumers and stages are of CPTX_TILES_DYNAMIC and CPTX_TILES_CANCEL");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	CPTX_TILES(k, &s, &t, .asks = true)
	cptx_comment(k, "nothing");
	EMU_FAILS(m, "a role in a loop over tiles that needs none");
	k = emu_begin(&m, 128);
	cptx_tiles_new(k, &s, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	CPTX_TILES(k, &s, &t)
	cptx_tiles_is_whole(k, &s, &t);
	EMU_FAILS(m, "only with CPTX_TILES_STREAM_K");
	k = emu_begin(&m, 128);
	memset(&s, 0, sizeof s);
	CPTX_TILES(k, &s, &t)
	cptx_comment(k, "nothing");
	EMU_FAILS(m, "that cptx_tiles_new did not make");
	for (unsigned schedule = 0; schedule < 2; schedule++) {
		cptx_error err = { 0 };
		k = emu_begin(&m, 128);
		cptx_tiles_new(k, &s, .schedule = (enum cptx_tiles_schedule)schedule, .tiles_m = cptx_imm(3),
		               .tiles_n = cptx_imm(1));
		CPTX_TILES(k, &s, &t)
		break;
		ck_assert_ptr_null(cptx_emit(m, "sm_90a", NULL, FRESH(&err)));
		ck_assert_msg(strstr(err.text, schedule ? "CPTX_FOR is never closed" : "CPTX_TILES is never closed") &&
		                  strstr(err.text, "test_scheduler.c:"),
		              "%s", err.text);
		cptx_module_destroy(m);
	}
}
END_TEST

START_TEST(assembles)
{
	for (unsigned schedule = 0; schedule <= CPTX_TILES_CANCEL; schedule++)
		for (unsigned t = schedule == CPTX_TILES_CANCEL ? 2 : 0; t < 4; t++) {
			const bool queue = schedule >= CPTX_TILES_DYNAMIC;
			sched_case c = { .schedule = (enum cptx_tiles_schedule)schedule,
				             .m = 7,
				             .n = 6,
				             .z = 2,
				             .k = 7,
				             .group = 3,
				             .cluster = t ? 2 : 1,
				             .roles = t || !queue };
			if (!test_ptxas()) {
				skip("ptxas, to judge schedules");
				return;
			}
			cptx_module *built = build(&c);
			free(emu_assembles(built, targets[t]));
			cptx_module_destroy(built);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "scheduler");

	tcase_add_test(c, tiles_in_order);
	tcase_add_test(c, static_schedules);
	tcase_add_test(c, stream_k);
	tcase_add_test(c, dynamic);
	tcase_add_test(c, cancel);
	tcase_add_test(c, errors);
	tcase_add_test(c, assembles);
	return test_main("kit scheduler", s);
}
