/* SPDX-License-Identifier: MIT */
/* Tile schedulers: the loop, the order of tiles, and the division of K. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/scheduler.h>

#include "kit/made.h"
#include "kit/value.h"

enum { MOST_CLUSTER = 16, ID_BYTES = 4 };

/* ---- arithmetic of .u32; constants are computed while the kernel is built ---- */

static bool is_int(cptx_val v) { return v.kind == CPTX_VAL_INT; }
static bool are_ints(cptx_val a, cptx_val b) { return is_int(a) && is_int(b); }
static cptx_val whole(int64_t i) { return cptx_imm((uint32_t)i); }

static cptx_val times(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (are_ints(a, b))
		return whole((int64_t)((uint64_t)a.i * (uint64_t)b.i));
	return is_int(a) ? CALL(mul, .a = b, .b = a, .mode = CPTX_LO) : CALL(mul, .a = a, .b = b, .mode = CPTX_LO);
}

static cptx_val plus(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (are_ints(a, b))
		return whole(a.i + b.i);
	return is_int(a) ? CALL(add, .a = b, .b = a) : CALL(add, .a = a, .b = b);
}

static cptx_val minus(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	return are_ints(a, b) ? whole(a.i - b.i) : CALL(sub, .a = a, .b = b);
}

static cptx_val over(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (is_int(b) && b.i == 1)
		return a;
	if (are_ints(a, b) && b.i)
		return whole((int64_t)((uint64_t)a.i / (uint64_t)b.i));
	return is_int(b) && b.i > 0 && b.i <= UINT32_MAX ? kit_quotient(k, at, a, (uint32_t)b.i) : CALL(div, .a = a, .b = b);
}

static cptx_val least(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	if (are_ints(a, b))
		return whole(MIN(a.i, b.i));
	return is_int(a) ? CALL(min, .a = b, .b = a) : CALL(min, .a = a, .b = b);
}

static cptx_val most(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	return are_ints(a, b) ? whole(MAX(a.i, b.i)) : CALL(max, .a = a, .b = b);
}

/* ---- making one ---- */

static bool is_queue(const cptx_tiles *s)
{
	return s->opt.schedule == CPTX_TILES_DYNAMIC || s->opt.schedule == CPTX_TILES_CANCEL;
}

/* Whether the next tile's number, the answer of the counter or the hardware, comes through a ring of mbarriers; else all
 * threads meet at bar.sync for it. */
static bool has_ring(const cptx_tiles *s) { return is_queue(s) && s->opt.consumers; }

/* Divides the tiles for stream-K: clusters take whole tiles in rounds, and the last one to two rounds are one row of K tiles
 * of which each cluster has a section. */
static void share(cptx_kernel *k, cptx_site at, cptx_tiles *s)
{
	cptx_val rounds = over(k, at, s->all, s->clusters), k_tiles = s->opt.k_tiles;

	rounds = minus(k, at, most(k, at, rounds, cptx_imm(1)), cptx_imm(1));
	s->whole_tiles = times(k, at, rounds, s->clusters);
	s->own = times(k, at, rounds, k_tiles);
	s->shared = times(k, at, minus(k, at, s->all, s->whole_tiles), k_tiles);
	cptx_val first = times(k, at, s->shared, s->number);
	s->shared_first = over(k, at, first, s->clusters);
	s->shared_end = over(k, at, plus(k, at, first, s->shared), s->clusters);
}

static bool check_values(cptx_kernel *k, cptx_site at, const cptx_tiles_opt *o)
{
	static const char where[] = "cptx_tiles_new";
	const uint32_t count = KIT_U32 | KIT_COUNT | KIT_NONE, number = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, o, tiles_m, count) && KIT_OPTION(where, o, tiles_n, count) &&
	       KIT_OPTION(where, o, batches, count) && KIT_OPTION(where, o, all, count) &&
	       KIT_OPTION(where, o, k_tiles, count) && KIT_OPTION(where, o, group, number) &&
	       KIT_OPTION(where, o, number, number) && KIT_OPTION(where, o, clusters, count) &&
	       KIT_OPTION(where, o, counter, KIT_U64 | KIT_VARIABLE | KIT_NONE);
}

/* The least number of tiles that there can be, by what is constant while the kernel is built. */
static uint64_t all_of(const cptx_tiles_opt *o)
{
	const cptx_val of[] = { o->tiles_m, o->tiles_n, o->batches };
	uint64_t n = 1;

	for (size_t i = 0; i < ARRAY_LEN(of) && n <= UINT32_MAX; i++)
		n *= is_int(of[i]) ? (uint64_t)of[i].i : 1;
	return n;
}

static bool check_counts(cptx_kernel *k, cptx_site at, const cptx_tiles_opt *o)
{
	const bool in_queue = o->schedule == CPTX_TILES_DYNAMIC || o->schedule == CPTX_TILES_CANCEL;

	if (is_none(o->all) && (is_none(o->tiles_m) || is_none(o->tiles_n)))
		cptx_fail_(k, at,
		           "a tile scheduler without tiles: say .tiles_m and .tiles_n (or .all), each a .u32 value or a "
		           "constant from 1 on, cptx_imm(n)");
	else if (all_of(o) > UINT32_MAX)
		cptx_fail_(k, at, "a tile scheduler of %llu tiles or more; there are less than 2^32", (unsigned long long)all_of(o));
	else if (o->schedule == CPTX_TILES_STREAM_K && is_none(o->k_tiles))
		cptx_fail_(k, at, "CPTX_TILES_STREAM_K shares K tiles: say .k_tiles, how many a tile has");
	else if (o->longest_first && !(is_none(o->group) || (is_int(o->group) && !o->group.i)))
		cptx_fail_(k, at, "a tile scheduler with .group and .longest_first; tiles are in one of these orders");
	else if (o->cluster > MOST_CLUSTER)
		cptx_fail_(k, at, "tiles of clusters of %u CTAs; a cluster has at most %d", o->cluster, MOST_CLUSTER);
	else if (is_none(o->number) != is_none(o->clusters))
		cptx_fail_(k, at, "a tile scheduler with one of .number and .clusters; give both or neither");
	else if (!in_queue && (o->consumers || o->stages))
		cptx_fail_(k, at, "consumers and stages are of CPTX_TILES_DYNAMIC and CPTX_TILES_CANCEL, whose answers are shared");
	else
		return true;
	return false;
}

static bool check(cptx_kernel *k, cptx_site at, const cptx_tiles_opt *o)
{
	if ((unsigned)o->schedule > CPTX_TILES_CANCEL)
		cptx_fail_(k, at, "there is no tile schedule %d; see enum cptx_tiles_schedule", (int)o->schedule);
	else if (!check_values(k, at, o) || !check_counts(k, at, o))
		return false;
	else if ((o->schedule == CPTX_TILES_DYNAMIC) != (o->counter.kind == CPTX_VAL_REG || o->counter.kind == CPTX_VAL_SYM))
		cptx_fail_(
			k, at,
			"a counter, .counter, the address of a u32 in global memory, is what CPTX_TILES_DYNAMIC needs, and only it");
	else if (o->schedule == CPTX_TILES_CANCEL && !o->consumers)
		cptx_fail_(k, at, "CPTX_TILES_CANCEL without .consumers: how many threads of a CTA give each answer back");
	else if (o->schedule == CPTX_TILES_DYNAMIC && !o->consumers && o->cluster > 1)
		cptx_fail_(k, at, "CPTX_TILES_DYNAMIC for clusters of %u CTAs without .consumers; bar.sync is of one CTA",
		           o->cluster);
	else if (o->schedule == CPTX_TILES_DYNAMIC && !o->consumers && o->stages)
		cptx_fail_(k, at, "stages of answers without .consumers: bar.sync shares them one at a time");
	else
		return true;
	return false;
}

/* Makes what answers go through: a ring of mbarriers and slots, or two slots alone. */
static void make_ring(cptx_kernel *k, cptx_site at, cptx_tiles *s)
{
	const cptx_tiles_opt *o = &s->opt;
	enum cptx_type type = o->schedule == CPTX_TILES_CANCEL ? CPTX_B128 : CPTX_U32;
	cptx_pipe_opt ring = {
		.size = CPTX_OPT_SIZE(cptx_pipe_opt), .stages = o->stages, .consumers = o->consumers, .multicast = o->cluster
	};

	s->answers = CALL(mov, .a = cptx_shared_(k, at, type, has_ring(s) ? o->stages : 2, 16, NULL), .type = CPTX_U32);
	if (has_ring(s))
		cptx_pipe_new_(k, at, &s->pipe, &ring);
	if (o->cluster > 1)
		s->rank = cptx_sreg_(k, at, CPTX_SREG_CLUSTER_CTARANK);
}

static void find_cluster(cptx_kernel *k, cptx_site at, cptx_tiles *s)
{
	const cptx_tiles_opt *o = &s->opt;

	if (!is_none(o->number)) {
		s->number = o->number, s->clusters = o->clusters;
		return;
	}
	cptx_val cta = cptx_sreg_(k, at, CPTX_SREG_CTAID_X);
	s->number = over(k, at, cta, cptx_imm(o->cluster));
	if (o->schedule == CPTX_TILES_GRID || o->schedule == CPTX_TILES_CANCEL)
		return;
	cptx_val ctas = cptx_sreg_(k, at, CPTX_SREG_NCTAID_X);
	s->clusters = over(k, at, ctas, cptx_imm(o->cluster));
}

void cptx_tiles_new_(cptx_kernel *k, cptx_site at, cptx_tiles *s, const cptx_tiles_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, s, "tile scheduler"))
		return;
	*s = (cptx_tiles){ .number = { 0 } };
	cptx_tiles_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_tiles_opt, &o, opt, at, k) || !check(k, at, &o))
		return;
	opt = &o;
	s->opt = *opt;
	s->opt.cluster = MAX(opt->cluster, 1u);
	if (has_ring(s) && !s->opt.stages)
		s->opt.stages = 2;
	find_cluster(k, at, s);
	s->all = opt->all;
	if (is_none(opt->all)) {
		s->tiles = times(k, at, opt->tiles_m, opt->tiles_n);
		s->all = is_none(opt->batches) ? s->tiles : times(k, at, s->tiles, opt->batches);
	}
	if (opt->schedule == CPTX_TILES_STREAM_K)
		share(k, at, s);
	if (is_queue(s))
		make_ring(k, at, s);
	s->made = kit_made(k, KIT_cptx_tiles);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_tiles *s) { return KIT_IS_MADE(cptx_tiles, k, at, s); }

/* Whether the scheduler is made, and a loop over its tiles has begun. */
static bool is_begun(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t)
{
	return is_made(k, at, s) && KIT_IS_MADE(cptx_tiles_at, k, at, t);
}

void cptx_tiles_prepare_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_val first)
{
	if (is_made(k, at, s) && has_ring(s) && kit_value(k, at, "cptx_tiles_prepare", "the predicate", first, KIT_PRED))
		cptx_pipe_prepare_(k, at, &s->pipe, first);
}

/* ---- the order of tiles ---- */

void cptx_tiles_raster_(cptx_kernel *k, cptx_site at, cptx_val id, cptx_val tiles_m, cptx_val tiles_n, cptx_val group,
                        cptx_val *m, cptx_val *n)
{
	static const char where[] = "cptx_tiles_raster";

	if (!IS_GIVEN_TO(k, at, m, "place for the row") || !IS_GIVEN_TO(k, at, n, "place for the column") ||
	    !kit_value(k, at, where, "the tile", id, KIT_U32 | KIT_WHOLE) ||
	    !kit_value(k, at, where, "the number of rows", tiles_m, KIT_U32 | KIT_COUNT) ||
	    !kit_value(k, at, where, "the number of columns", tiles_n, KIT_U32 | KIT_COUNT | KIT_NONE) ||
	    !kit_value(k, at, where, "the group", group, KIT_U32 | KIT_WHOLE | KIT_NONE))
		return;
	if (is_none(group) || (is_int(group) && !group.i)) {
		*n = over(k, at, id, tiles_m);
		*m = minus(k, at, id, times(k, at, *n, tiles_m));
		return;
	}
	if (is_int(group) && group.i == 1) { /* row by row: without what follows from a last group of fewer rows */
		*m = over(k, at, id, tiles_n);
		*n = minus(k, at, id, times(k, at, *m, tiles_n));
		return;
	}
	cptx_val rows = least(k, at, tiles_m, group); /* a group has no more tiles than the matrix, so 32 bits hold them */
	cptx_val per_group = times(k, at, tiles_n, rows);
	cptx_val nth = over(k, at, id, per_group), first = times(k, at, nth, rows);
	cptx_val height = least(k, at, minus(k, at, tiles_m, first), rows);
	cptx_val within = minus(k, at, id, times(k, at, nth, per_group));

	*n = over(k, at, within, height);
	*m = plus(k, at, first, minus(k, at, within, times(k, at, *n, height)));
}

cptx_val cptx_tiles_matrix_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (!is_begun(k, at, s, t))
		return (cptx_val){ 0 };
	if (is_none(s->opt.batches))
		return t->id;
	t->z = over(k, at, t->id, s->tiles);
	return CALL(rem, .a = t->id, .b = s->tiles);
}

void cptx_tiles_locate_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (!is_begun(k, at, s, t) || !is_none(s->opt.all))
		return;
	const cptx_tiles_opt *o = &s->opt;
	if (!o->longest_first) {
		cptx_val id = cptx_tiles_matrix_(k, at, s, t);
		cptx_tiles_raster_(k, at, id, o->tiles_m, o->tiles_n, o->group, &t->m, &t->n);
		return;
	}
	cptx_val line = is_none(o->batches) ? o->tiles_n : times(k, at, o->tiles_n, o->batches);
	cptx_val row = over(k, at, t->id, line), rest = minus(k, at, t->id, times(k, at, row, line));
	t->m = minus(k, at, minus(k, at, o->tiles_m, cptx_imm(1)), row);
	t->n = rest;
	if (!is_none(o->batches)) {
		t->z = over(k, at, rest, o->tiles_n);
		t->n = minus(k, at, rest, times(k, at, t->z, o->tiles_n));
	}
}

/* ---- the loop ---- */

void cptx_tiles_first_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (!IS_GIVEN_TO(k, at, t, "place for the tile"))
		return;
	*t = (cptx_tiles_at){ .asks = false };
	if (!is_made(k, at, s))
		return;
	if (s->opt.schedule != CPTX_TILES_PERSISTENT && s->opt.schedule != CPTX_TILES_STREAM_K) {
		cptx_fail_(k, at,
		           "cptx_tiles_first is of CPTX_TILES_PERSISTENT and STREAM_K; a loop over other tiles is CPTX_TILES");
		return;
	}
	t->made = kit_made(k, KIT_cptx_tiles_at);
	if (s->opt.schedule != CPTX_TILES_STREAM_K) {
		t->at = cptx_var_(k, at, CPTX_U32, s->number);
		t->end = s->all, t->step = s->clusters;
		return;
	}
	t->at = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	t->end = plus(k, at, s->own, minus(k, at, s->shared_end, s->shared_first));
	t->step = cptx_regs_(k, at, CPTX_U32, 1);
}

/* With STREAM_K t->at counts K tiles: of `own` whole tiles, then of the shared row. */
void cptx_tiles_take_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (!is_begun(k, at, s, t))
		return;
	const cptx_val k_tiles = s->opt.k_tiles;

	t->id = t->at, t->k_first = cptx_imm(0), t->k_end = k_tiles;
	if (s->opt.schedule != CPTX_TILES_STREAM_K)
		return;
	cptx_val is_own = CALL(setp, .a = t->at, .b = s->own, .cmp = CPTX_LT);
	cptx_val x = plus(k, at, s->shared_first, minus(k, at, t->at, s->own));
	cptx_val q = over(k, at, CALL(selp, .a = t->at, .b = x, .c = is_own, .type = CPTX_U32), k_tiles);
	cptx_val shared_k = minus(k, at, x, times(k, at, q, k_tiles));
	cptx_val own_id = plus(k, at, times(k, at, q, s->clusters), s->number), shared_id = plus(k, at, q, s->whole_tiles);

	t->id = CALL(selp, .a = own_id, .b = shared_id, .c = is_own, .type = CPTX_U32);
	t->k_first = CALL(selp, .a = cptx_imm(0), .b = shared_k, .c = is_own, .type = CPTX_U32);
	cptx_val left = minus(k, at, s->shared_end, x), shared_end = plus(k, at, shared_k, left);
	shared_end = is_int(k_tiles) ? CALL(min, .a = shared_end, .b = k_tiles) : CALL(min, .a = k_tiles, .b = shared_end);
	t->k_end = CALL(selp, .a = k_tiles, .b = shared_end, .c = is_own, .type = CPTX_U32);
	CALL(sub, .a = t->k_end, .b = t->k_first, .into = t->step);
}

/* ---- tiles that are asked for ---- */

/* Asks the counter: its wrapping makes it 0 again with the last question, for there are as many as tiles. */
static cptx_val count_on(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_val into, cptx_val when)
{
	cptx_val last = minus(k, at, s->all, cptx_imm(1));

	return CALL(atom, .a = s->opt.counter, .b = last, .op = CPTX_INC, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = into,
	            .when = when);
}

static cptx_val is_rank_0(cptx_kernel *k, cptx_site at, const cptx_tiles *s)
{
	return s->opt.cluster > 1 ? CALL(setp, .a = s->rank, .b = cptx_imm(0), .cmp = CPTX_EQ) : (cptx_val){ 0 };
}

/* Where the answer of a stage comes. */
static cptx_val answer_at(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_pipe_at *here)
{
	uint32_t bytes = s->opt.schedule == CPTX_TILES_CANCEL ? 16 : ID_BYTES;

	return CALL(mad, .a = here->stage, .b = cptx_imm(bytes), .c = s->answers, .mode = CPTX_LO);
}

/* Waits for room in the ring, in CTA 0 of the cluster, and announces the answer to this CTA. */
static void announce(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t, cptx_val rank_0, uint32_t bytes)
{
	if (!is_none(rank_0))
		cptx_if_begin_(k, at, rank_0);
	cptx_pipe_wait_(k, at, &s->pipe, &t->ask, false);
	if (!is_none(rank_0))
		cptx_block_end_(k, at);
	if (bytes)
		cptx_pipe_filled_(k, at, &t->ask, cptx_imm(bytes));
}

/* CANCEL asks the hardware in front of a tile; each CTA gets a copy of the answer.  DYNAMIC asks the counter. */
static void ask(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	cptx_val rank_0 = is_rank_0(k, at, s);

	if (s->opt.schedule == CPTX_TILES_DYNAMIC) {
		count_on(k, at, s, t->next, rank_0);
		return;
	}
	cptx_val to = answer_at(k, at, s, &t->ask);
	announce(k, at, s, t, rank_0, 16);
	CALL(clusterlaunchcontrol_try_cancel, .a = to, .mbar = cptx_pipe_full(&t->ask), .space = CPTX_SHARED_CTA,
	     .multicast = s->opt.cluster > 1 ? CPTX_MULTICAST_CLUSTER_ALL : 0, .when = rank_0);
	cptx_pipe_next_(k, at, &s->pipe, &t->ask);
}

/* DYNAMIC: the counter's answer goes to all CTAs of the cluster, behind the tile, so that nobody waited for it. */
static void tell(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	const uint32_t cluster = s->opt.cluster;
	cptx_val rank_0 = is_rank_0(k, at, s), slot = answer_at(k, at, s, &t->ask);

	announce(k, at, s, t, rank_0, cluster > 1 ? ID_BYTES : 0);
	cptx_val id = plus(k, at, t->next, s->clusters);
	if (cluster == 1) {
		CALL(st, .a = slot, .b = id, .space = CPTX_SHARED);
		cptx_pipe_filled_(k, at, &t->ask, (cptx_val){ 0 });
	}
	for (uint32_t i = 0; cluster > 1 && i < cluster; i++) {
		cptx_val to = CALL(mapa, .a = slot, .b = cptx_imm(i), .space = CPTX_SHARED_CLUSTER, .type = CPTX_U32);
		cptx_val full = CALL(mapa, .a = t->ask.barrier, .b = cptx_imm(i), .space = CPTX_SHARED_CLUSTER, .type = CPTX_U32);
		CALL(st_async, .a = to, .b = id, .mbar = full, .space = CPTX_SHARED_CLUSTER, .type = CPTX_U32, .when = rank_0);
	}
	cptx_pipe_next_(k, at, &s->pipe, &t->ask);
}

static void give_back(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (t->warp)
		CALL(bar_warp_sync, .mask = cptx_imm(0xffffffffu));
	cptx_pipe_release_(k, at, &s->pipe, &t->answer, t->release);
	cptx_pipe_next_(k, at, &s->pipe, &t->answer);
}

/* Writes the hardware's answer to t->at; gives a predicate: there is one. */
static cptx_val canceled(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	cptx_pipe_wait_(k, at, &s->pipe, &t->answer, true);
	cptx_val from = answer_at(k, at, s, &t->answer), answer = CALL(ld, .a = from, .space = CPTX_SHARED, .type = CPTX_B128);
	const uint32_t ctas = s->opt.cluster;
	cptx_val more = CALL(clusterlaunchcontrol_query_cancel_is_canceled, .a = answer);
	cptx_val x = ctas > 1 ? cptx_regs_(k, at, CPTX_U32, 1) : t->at; /* of the first CTA of the cluster */
	CALL(clusterlaunchcontrol_query_cancel_get_first_ctaid_dim, .a = answer, .dim = CPTX_GET_FIRST_CTAID_X, .into = x,
	     .when = more);
	if (ctas > 1)
		CALL(div, .a = x, .b = cptx_imm(ctas), .into = t->at, .when = more);
	CALL(fence_proxy, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA); /* the next answer comes by the async proxy */
	give_back(k, at, s, t);
	return more;
}

/* DYNAMIC: writes the next tile to t->at. */
static void next_counted(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (has_ring(s)) {
		if (t->asks)
			tell(k, at, s, t);
		cptx_pipe_wait_(k, at, &s->pipe, &t->answer, true);
		cptx_val from = answer_at(k, at, s, &t->answer);
		CALL(ld, .a = from, .space = CPTX_SHARED, .type = CPTX_U32, .into = t->at);
		give_back(k, at, s, t);
		return;
	}
	cptx_val id = plus(k, at, t->next, s->clusters);
	CALL(st, .a = t->slot, .b = id, .space = CPTX_SHARED, .when = t->first);
	CALL(bar_sync, .a = cptx_imm(0));
	CALL(ld, .a = t->slot, .space = CPTX_SHARED, .type = CPTX_U32, .into = t->at);
	/* two slots in turn: who writes one again has passed the barrier behind all reads of it */
	CALL(xor, .a = t->slot, .b = cptx_imm(ID_BYTES), .into = t->slot);
}

/* ---- the block ---- */

static void begin_queue(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	const bool counted = s->opt.schedule == CPTX_TILES_DYNAMIC, ring = has_ring(s);

	t->at = cptx_var_(k, at, CPTX_U32, s->number);
	if (ring && t->asks)
		t->ask = cptx_pipe_begin_(k, at, &s->pipe, true, (cptx_val){ 0 });
	if (ring)
		t->answer = cptx_pipe_begin_(k, at, &s->pipe, false, s->opt.cluster > 1 ? cptx_imm(0) : (cptx_val){ 0 });
	if (counted && (t->asks || !ring))
		t->next = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	if (counted && !ring) {
		cptx_val tid = cptx_sreg_(k, at, CPTX_SREG_TID_X);
		t->first = CALL(setp, .a = tid, .b = cptx_imm(0), .cmp = CPTX_EQ);
		t->slot = cptx_var_(k, at, CPTX_U32, s->answers);
	}
	if (counted) {
		cptx_while_begin_(k, at);
		cptx_while_test_(k, at, CALL(setp, .a = t->at, .b = s->all, .cmp = CPTX_LT));
	} else {
		cptx_do_begin_(k, at);
	}
	if (t->asks)
		ask(k, at, s, t);
	else if (!ring)
		count_on(k, at, s, t->next, t->first);
}

int cptx_tiles_begin_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t, const cptx_tiles_role *role)
{
	cptx_tiles_role given;

	if (!IS_GIVEN_TO(k, at, t, "place for the tile"))
		return 1;
	*t = (cptx_tiles_at){ .asks = false };
	if (!is_made(k, at, s) || !IS_GIVEN_TO(k, at, role, "role") || !OPTIONS_READ_IN(cptx_tiles_role, &given, role, at, k) ||
	    !KIT_OPTION("CPTX_TILES", &given, release, KIT_PRED | KIT_NONE))
		return 1;
	role = &given;
	t->made = kit_made(k, KIT_cptx_tiles_at), t->asks = role->asks, t->warp = role->warp, t->release = role->release;
	if (!has_ring(s) && (role->asks || role->warp || !is_none(role->release))) {
		cptx_fail_(k, at,
		           "a role in a loop over tiles that needs none: asks, warp and release are of CPTX_TILES_DYNAMIC and "
		           "CPTX_TILES_CANCEL with .consumers");
		return 1;
	}
	if (s->opt.schedule == CPTX_TILES_GRID) {
		cptx_region_begin_(k, at, "CPTX_TILES");
		t->at = s->number;
	} else if (is_queue(s)) {
		begin_queue(k, at, s, t);
	} else {
		cptx_tiles_first_(k, at, s, t);
		cptx_for_begin_(k, at, t->at, t->end, t->step);
	}
	cptx_tiles_take_(k, at, s, t);
	cptx_tiles_locate_(k, at, s, t);
	return 1;
}

int cptx_tiles_end_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t)
{
	if (!is_begun(k, at, s, t))
		return 0;
	if (s->opt.schedule == CPTX_TILES_GRID)
		return cptx_region_end_(k, at);
	if (s->opt.schedule == CPTX_TILES_DYNAMIC) {
		next_counted(k, at, s, t);
	} else if (s->opt.schedule == CPTX_TILES_CANCEL) {
		cptx_val more = canceled(k, at, s, t);
		cptx_leave_(k, at, 1, more);
	}
	return cptx_block_end_(k, at);
}

/* ---- stream-K ---- */

static bool is_shared(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t)
{
	if (!is_begun(k, at, s, t))
		return false;
	bool ok = s->opt.schedule == CPTX_TILES_STREAM_K;

	if (!ok)
		cptx_fail_(k, at, "a tile of which others might have a part: only with CPTX_TILES_STREAM_K");
	return ok;
}

cptx_val cptx_tiles_is_whole_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t)
{
	if (!is_shared(k, at, s, t))
		return (cptx_val){ 0 };
	return CALL(setp, .a = t->step, .b = s->opt.k_tiles, .cmp = CPTX_EQ);
}

cptx_val cptx_tiles_finishes_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t)
{
	if (!is_shared(k, at, s, t))
		return (cptx_val){ 0 };
	return CALL(setp, .a = t->k_first, .b = cptx_imm(0), .cmp = CPTX_EQ);
}

cptx_val cptx_tiles_share_end_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t)
{
	if (!is_shared(k, at, s, t))
		return (cptx_val){ 0 };
	cptx_val behind = minus(k, at, plus(k, at, t->id, cptx_imm(1)), s->whole_tiles);
	cptx_val end = times(k, at, behind, s->opt.k_tiles);

	/* cluster c has K tiles from c * shared / clusters on, so x belongs to ((x + 1) * clusters - 1) / shared */
	cptx_val last = minus(k, at, times(k, at, end, s->clusters), cptx_imm(1));
	return plus(k, at, over(k, at, last, s->shared), cptx_imm(1));
}
