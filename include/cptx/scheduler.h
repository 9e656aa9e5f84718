/* SPDX-License-Identifier: MIT */
/*
 * Tile schedulers: which tiles a CTA (or cluster) computes, in which order, and which part of K.
 *
 *   cptx_tiles s;
 *   cptx_tiles_at t;
 *   cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = m, .tiles_n = n, .group = cptx_imm(8));
 *   CPTX_TILES (k, &s, &t) {                  once for each tile of this CTA
 *       ... row t.m, column t.n, matrix t.z, K tiles t.k_first to t.k_end - 1 ...
 *   }
 *
 * cptx_tiles_new stands in front of the roles of a CTA and emits what all tiles have in common; each role runs a loop of
 * its own.  All of them see the same tiles in the same order.
 *
 *   schedule     grid to launch (x alone)           targets   a tile costs
 *   GRID         a cluster for each tile            all       no loop
 *   PERSISTENT   as many clusters as are resident   all       the loop's add, test and branch
 *   STREAM_K     the same                           all       a division and some 12 instructions more
 *   DYNAMIC      the same                           all, with roles or clusters sm_90    an atomic, a barrier
 *   CANCEL       a cluster for each tile            sm_100    a query, a barrier
 *
 * and of each: one division for the place of a tile, two with .group or .longest_first, one more with .batches.  Counts of
 * tiles are below 2^32.  A constant is cptx_imm(n); what can be computed while the kernel is built costs nothing.
 *
 * A list of problems of several sizes: give .all (tiles of all of them) in place of .tiles_m and .tiles_n, find the
 * problem of tile t.id, and call cptx_tiles_raster for the place in it.  Of sizes that only the device knows
 * cptx_tile_groups does both.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_SCHEDULER_H
#define CPTX_SCHEDULER_H

#include <cptx/module.h>
#include <cptx/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How tiles are handed out. */
enum cptx_tiles_schedule {
	CPTX_TILES_GRID,       /**< tile i to cluster i: the grid has as many clusters as there are tiles */
	CPTX_TILES_PERSISTENT, /**< tiles i, i + clusters, i + 2 * clusters ... to cluster i */
	CPTX_TILES_STREAM_K,   /**< the same, but K tiles of the last one to two rounds are shared evenly among all clusters */
	CPTX_TILES_DYNAMIC,    /**< tile i to cluster i, further ones by an atomic counter to who asks first */
	CPTX_TILES_CANCEL      /**< tile i to cluster i, further ones by canceling clusters that have not begun */
};

/** What a scheduler is made of.  Values are .u32 registers or constants. */
typedef struct cptx_tiles_opt {
	uint32_t size;                     /**< CPTX_OPT fills it in */
	enum cptx_tiles_schedule schedule; /**< how tiles are handed out */
	cptx_val tiles_m, tiles_n;         /**< rows and columns of tiles of a matrix, those of a whole cluster */
	cptx_val batches;                  /**< matrices; NONE: one, and t.z is NONE */
	cptx_val all;                      /**< of a list: all tiles, in place of the three above; t.m, t.n, t.z are NONE */
	cptx_val k_tiles;                  /**< K tiles of a tile; NONE: t.k_end is NONE; STREAM_K needs it */
	cptx_val group;     /**< so many rows of tiles are rasterized together, down their columns, so that CTAs at work share
	                         operands in L2; NONE or the constant 0: all rows, and no test for it */
	uint32_t cluster;   /**< CTAs that compute a tile together: a cluster of the launch; 0: 1 */
	bool longest_first; /**< row by row from the last one on, each over all batches: causal attention; excludes group */
	cptx_val number, clusters; /**< number of this CTA's cluster and how many there are; NONE: by ctaid.x and nctaid.x */
	cptx_val counter;          /**< DYNAMIC: global address of a u32 that is 0 before the launch; it is 0 behind it */
	uint32_t
		consumers;   /**< DYNAMIC, CANCEL: threads of a CTA that release each answer after reading it (cptx_tiles_role).
	                  DYNAMIC,   0: no roles, all threads of the CTA run the loop together, and bar.sync 0 shares the answer */
	uint32_t stages; /**< DYNAMIC, CANCEL: answers under way, 1 to 64; 0: 2 */
	char z_;
} cptx_tiles_opt;

/** A scheduler of a kernel.  Plain data. */
typedef struct cptx_tiles {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_tiles_opt opt;         /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[40]; /**< for options of later versions */
	};
	cptx_val number, clusters;                 /**< of this CTA's cluster, and how many there are */
	cptx_val tiles, all;                       /**< tiles of a matrix, and of all */
	cptx_val whole_tiles, own;                 /**< STREAM_K: tiles that are not shared; K tiles of those of this cluster */
	cptx_val shared, shared_first, shared_end; /**< STREAM_K: K tiles that are shared; those of this cluster */
	cptx_val answers, rank; /**< DYNAMIC, CANCEL: .u32 shared address of the answers; rank of the CTA in its cluster */
	cptx_pipe pipe;         /**< the ring of answers, of those with consumers */
	uint64_t reserved_[4];  /**< for fields of later versions */
} cptx_tiles;

/** A tile, and where a role stands. */
typedef struct cptx_tiles_at {
	cptx_made made;           /**< by which call, in which kernel */
	cptx_val id;              /**< number of the tile in the order of the scheduler */
	cptx_val m, n, z;         /**< its row, column and matrix */
	cptx_val k_first, k_end;  /**< K tiles to compute: all but with STREAM_K */
	cptx_val at, end, step;   /**< the loop: while at < end, at += step.  GRID: NONE */
	cptx_val next;            /**< DYNAMIC: what the counter said */
	cptx_pipe_at ask, answer; /**< places in the ring of answers */
	cptx_val slot, first;     /**< DYNAMIC without roles: where the answer comes; the thread that asks */
	bool asks, warp;          /**< as cptx_tiles_role */
	cptx_val release;         /**< as cptx_tiles_role */
	uint64_t reserved_[4];    /**< for fields of later versions */
} cptx_tiles_at;

/** What a role does in the loop of DYNAMIC or CANCEL; other schedules need nothing of it. */
typedef struct cptx_tiles_role {
	uint32_t size;    /**< CPTX_OPT fills it in */
	bool asks;        /**< this role, one thread in each CTA of the cluster, asks for the next tile before it begins one */
	bool warp;        /**< the role is whole warps, which synchronize before one thread of each gives an answer back */
	cptx_val release; /**< the threads that give an answer back: together .consumers in each CTA; NONE: all that run the
	                     loop. With clusters, each gives it to CTA 0 of its cluster */
	char z_;
} cptx_tiles_role;

CPTX_API void cptx_tiles_new_(cptx_kernel *k, cptx_site at, cptx_tiles *s, const cptx_tiles_opt *opt);
/** Reads the numbers of the cluster and counts tiles; all threads that run loops pass here. */
#define cptx_tiles_new(...) cptx_tiles_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_tiles_new_x_(k, s, ...) cptx_tiles_new_((k), CPTX_HERE, (s), CPTX_OPT(cptx_tiles_opt, __VA_ARGS__))

CPTX_API void cptx_tiles_prepare_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_val first);
/** DYNAMIC and CANCEL with consumers: initializes the barriers of the answers in the thread where the predicate holds.  A
 * barrier of the CTA (the cluster) must follow.  Of other schedules nothing. */
#define cptx_tiles_prepare(k, s, first) cptx_tiles_prepare_((k), CPTX_HERE, (s), (first))

CPTX_API int cptx_tiles_begin_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t,
                               const cptx_tiles_role *role);
CPTX_API int cptx_tiles_end_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t);
/**
 * A block for each tile: CPTX_TILES (k, &s, &t) { ... }, with DYNAMIC and CANCEL CPTX_TILES (k, &s, &t, .asks = true) in
 * one of the roles.  cptx_break_when and cptx_continue_when are for GRID (neither), PERSISTENT and STREAM_K: with the others
 * a role that leaves early would leave the rest waiting.  With a cluster, CANCEL and DYNAMIC need a barrier of the cluster
 * behind the loops of all roles: answers are given back to CTA 0, which must not have ended.
 */
#define CPTX_TILES(...) CPTX_TILES_X_(__VA_ARGS__, .z_ = 0)
#define CPTX_TILES_X_(k, s, t, ...)                                                                                         \
	for (int CPTX_NAME_(cptx_b_, __LINE__) =                                                                                \
	         cptx_tiles_begin_((k), CPTX_HERE, (s), (t), CPTX_OPT(cptx_tiles_role, __VA_ARGS__));                           \
	     CPTX_NAME_(cptx_b_, __LINE__); CPTX_NAME_(cptx_b_, __LINE__) = cptx_tiles_end_((k), CPTX_HERE, (s), (t)))

/* ---- the parts of it, for loops of one's own ---- */

CPTX_API void cptx_tiles_first_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t);
/** PERSISTENT and STREAM_K, others are refused: sets t.at, t.end and t.step for CPTX_FOR (k, t.at, t.end, t.step). */
#define cptx_tiles_first(k, s, t) cptx_tiles_first_((k), CPTX_HERE, (s), (t))
CPTX_API void cptx_tiles_take_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t);
/** The tile that t.at says: t.id, t.k_first, t.k_end, and with STREAM_K t.step. */
#define cptx_tiles_take(k, s, t) cptx_tiles_take_((k), CPTX_HERE, (s), (t))
CPTX_API cptx_val cptx_tiles_matrix_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t);
/** With .batches: t.z of t.id.  Gives the number of the tile in its matrix. */
#define cptx_tiles_matrix(k, s, t) cptx_tiles_matrix_((k), CPTX_HERE, (s), (t))
CPTX_API void cptx_tiles_locate_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, cptx_tiles_at *t);
/** The place of tile t.id: t.m, t.n, t.z. */
#define cptx_tiles_locate(k, s, t) cptx_tiles_locate_((k), CPTX_HERE, (s), (t))
CPTX_API void cptx_tiles_raster_(cptx_kernel *k, cptx_site at, cptx_val id, cptx_val tiles_m, cptx_val tiles_n,
                                 cptx_val group, cptx_val *m, cptx_val *n);
/** Row and column of tile `id` of tiles_m x tiles_n: groups of `group` rows, each rasterized down its columns, the last one
 * as high as is left.  group NONE or the constant 0: all rows. */
#define cptx_tiles_raster(k, id, tiles_m, tiles_n, group, m, n)                                                             \
	cptx_tiles_raster_((k), CPTX_HERE, (id), (tiles_m), (tiles_n), (group), (m), (n))

/* ---- stream-K: who finishes a tile ----
 *
 * PERSISTENT rounds are run as long as there are more than two tiles for each cluster.  The tiles that are left (one to two
 * for each cluster, or all if there are fewer) are laid behind one another as one row of K tiles, of which each cluster
 * takes the same part: it may begin in the midst of a tile and end in the midst of another.
 *
 * The cluster that begins a tile (t.k_first is 0) finishes it: the others leave their partial sums in a workspace and set
 * a flag, and it adds them, in order, to its own: those of the clusters number + 1 to cptx_tiles_share_end - 1.  A cluster
 * begins a tile at the end of its row and continues one at the beginning, so the sums that it waits for are mostly there
 * already; waiting cannot last, for who leaves a sum has waited for nobody before.  A cluster leaves at most one sum.
 */

CPTX_API cptx_val cptx_tiles_is_whole_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t);
/** A predicate: all K tiles of the tile are this cluster's. */
#define cptx_tiles_is_whole(k, s, t) cptx_tiles_is_whole_((k), CPTX_HERE, (s), (t))
CPTX_API cptx_val cptx_tiles_finishes_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t);
/** A predicate: this cluster finishes the tile; where not, it leaves its partial sum. */
#define cptx_tiles_finishes(k, s, t) cptx_tiles_finishes_((k), CPTX_HERE, (s), (t))
CPTX_API cptx_val cptx_tiles_share_end_(cptx_kernel *k, cptx_site at, const cptx_tiles *s, const cptx_tiles_at *t);
/** Of a tile that is shared: the number behind the last cluster that has a part of it. */
#define cptx_tiles_share_end(k, s, t) cptx_tiles_share_end_((k), CPTX_HERE, (s), (t))

/* ---- groups: rows of tiles whose numbers only the device knows ----
 *
 * Experts of a mixture: each has a matrix B of its own and some rows of A and D, how many the kernel reads from global
 * memory.  The host writes nothing for a launch, so a graph replays it with other counts.
 *
 *   cptx_tile_groups g;
 *   cptx_tile_group t;
 *   cptx_tile_groups_new(k, &g, .counts = counts, .groups = experts, .rows = M, .side = 128, .columns = tiles_n);
 *   cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .all = g.all);
 *   ... in each role ...
 *   cptx_tile_groups_first(k, &g, &t);
 *   CPTX_TILES (k, &s, &at) {
 *       cptx_tile_groups_find(k, &g, &t, at.id);
 *       cptx_tiles_raster(k, cptx_sub(k, at.id, t.first), t.tiles_m, tiles_n, cptx_imm(0), &m, &n);
 *       ... rows t.row + m * 128 to t.row_end - 1 of A and D, matrix t.group of B ...
 *   }
 *
 * The last tile of a group may have fewer rows; what lies behind them is the next group's.  .row_end of
 * cptx_epilogue_store_tma keeps stores away from it.  A count that goes beyond the rows that there are is cut to them.
 */

/** What groups are made of. */
typedef struct cptx_tile_groups_opt {
	uint32_t size;    /**< CPTX_OPT fills it in */
	cptx_val counts;  /**< .u64, global address, aligned to 4: a u32 for each group, its rows.  Written before the launch, or
	                       before griddepcontrol.wait; they stay while the kernel runs */
	cptx_val groups;  /**< how many groups, .u32 or constant */
	cptx_val rows;    /**< rows that there are, .u32 or constant, up to 2^26: of all groups; with .apart of each */
	bool apart;       /**< group i begins at row i * rows; else each behind the rows of the one before it */
	uint32_t side;    /**< rows of a tile (of those of a cluster) */
	cptx_val columns; /**< tiles beside one another, .u32 or constant */
	cptx_val tiles;   /**< tiles that each group has, whatever its rows, which lie along K then; in place of .side and
	                       .columns.  NONE: as many as the rows need */
	char z_;
} cptx_tile_groups_opt;

/** Groups of a kernel.  Plain data. */
typedef struct cptx_tile_groups {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_tile_groups_opt opt;   /**< as given */
		uint64_t reserved_opt_[20]; /**< for options of later versions */
	};
	cptx_val all;          /**< .u32 or constant, tiles of all groups: .all of cptx_tiles_new */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_tile_groups;

/** The group of the tile at hand, in registers of the role. */
typedef struct cptx_tile_group {
	cptx_made made;        /**< by which call, in which kernel */
	cptx_val group;        /**< .u32, its number */
	cptx_val first, end;   /**< .u32, its tiles */
	cptx_val row, row_end; /**< .u32, its rows */
	cptx_val tiles_m;      /**< .u32, tiles below one another; with .tiles NONE */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_tile_group;

CPTX_API void cptx_tile_groups_new_(cptx_kernel *k, cptx_site at, cptx_tile_groups *g, const cptx_tile_groups_opt *opt);
/** Counts the tiles of all groups; whole warps, in front of roles.  For 32 groups a load, and without .apart 12 shuffles.
 * With .tiles nothing. */
#define cptx_tile_groups_new(...) cptx_tile_groups_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_tile_groups_new_x_(k, g, ...)                                                                                  \
	cptx_tile_groups_new_((k), CPTX_HERE, (g), CPTX_OPT(cptx_tile_groups_opt, __VA_ARGS__))
CPTX_API void cptx_tile_groups_first_(cptx_kernel *k, cptx_site at, const cptx_tile_groups *g, cptx_tile_group *t);
/** Registers for a role's place, in front of its tiles. */
#define cptx_tile_groups_first(k, g, t) cptx_tile_groups_first_((k), CPTX_HERE, (g), (t))
CPTX_API void cptx_tile_groups_find_(cptx_kernel *k, cptx_site at, const cptx_tile_groups *g, cptx_tile_group *t,
                                     cptx_val tile);
/** Goes on to the group of a tile, .u32, which is not before the tile of the last call: a load for each group passed. */
#define cptx_tile_groups_find(k, g, t, tile) cptx_tile_groups_find_((k), CPTX_HERE, (g), (t), (tile))

#ifdef __cplusplus
}
#endif
#endif
