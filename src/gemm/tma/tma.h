/* SPDX-License-Identifier: MIT */
/* What the GEMM generators have in common.  Of all: options, choices.  Of those that are fed by TMA: sizes, tensor maps and
 * launches on the host; in the kernel parameters, loads, and what comes behind the sums. */
#ifndef CPTX_GEMM_TMA_TMA_H
#define CPTX_GEMM_TMA_TMA_H

#include <cptx/epilogue.h>
#include <cptx/gemm.h>
#include <cptx/operand.h>
#include <cptx/pipeline.h>
#include <cptx/scheduler.h>

#include "base/base.h"

/* Scale factors: so many elements for one; so many blocks of 4 of them along K, and of 128 rows of A and B, in a stage. */
typedef struct tma_gemm_scales {
	uint32_t vec, along_k, rows[2];
} tma_gemm_scales;
/* Bytes of those of A or B in a stage. */
static inline uint32_t tma_gemm_scale_bytes(const tma_gemm_scales *s, bool of_b)
{
	return s->along_k * s->rows[of_b] * CPTX_SCALE_BYTES;
}

static inline uint32_t tma_gemm_all_scale_bytes(const tma_gemm_scales *s)
{
	return tma_gemm_scale_bytes(s, false) + tma_gemm_scale_bytes(s, true);
}

/* Scale factors of blocks: of .ue4m3 for 16 elements, of .ue8m0 for 32; bk: elements along K of a stage. */
static inline tma_gemm_scales tma_gemm_scales_of(const cptx_gemm_opt *o, uint32_t bk, uint32_t blocks_of_b)
{
	const uint32_t vec = o->scale == CPTX_UE4M3 ? 16 : 32;

	return (tma_gemm_scales){ vec, bk / (vec * CPTX_SCALE_FACTORS), { 1, blocks_of_b } };
}

/* Tensor maps are known by enum cptx_gemm_map; a set of them: MAP() of each, together.  Parameters, and records of a list,
 * have them in the order of the enum. */
#define MAP(which) (1u << (which))
enum { MAPS_OF_D = MAP(CPTX_GEMM_MAP_D) | MAP(CPTX_GEMM_MAP_END_D) };

/* The rasterization of tiles (gemm/order.c) follows from: rows of A and B that a CTA asks for, weighed; rows of clusters in
 * a group, and columns up to which rows are rasterized as a whole, where not all tiles are computed at once. */
typedef struct gemm_order {
	float of_a, of_b;
	uint32_t rows, cols;
} gemm_order;
gemm_order gemm_order_of(const cptx_gemm_opt *o, uint32_t sms);
/* Rows of a group for so many rows and columns of clusters, of which so many are computed at once; 1: across the columns.
 * The same in a kernel, .u32. */
uint32_t gemm_order_rows(const gemm_order *g, uint64_t rows, uint64_t cols, uint64_t at_once);
cptx_val gemm_order_rows_of(cptx_kernel *k, const gemm_order *g, cptx_val rows, cptx_val cols, cptx_val at_once);

/* A kernel, without what only one of the generators knows.  Operands have the names of the product that is computed. */
typedef struct tma_gemm {
	const char *target;     /* for messages, and whose limits; NULL: the generator's */
	cptx_tile a, b;         /* of a stage of a CTA */
	uint32_t parts[2];      /* of A and B: parts of the tile that the CTAs of a cluster load for each other; 0: 1 */
	cptx_tile d, rest;      /* of D, what is stored at once; at the end of a tile, no columns: there is none */
	uint32_t packed;        /* elements along K in one of those that TMA sees; 0: 1 */
	tma_gemm_scales scales; /* .vec is 0: none */
	uint32_t row_scales;    /* f32 factors of rows of A by 1 x 128 that a stage has, multiples of 4 */
	uint32_t col_scales;    /* those of columns of B; 0: these are a pointer, of blocks */
	uint32_t weight_rows;   /* rows of weights whose factors of 16 bits a stage has, and zero points behind these; 0: none */
	uint32_t maps;          /* MAP() of those that it has besides A, B, D and scale factors; gemm_describe: of all */
	uint32_t pointers;      /* MAP() of those that are given by their address, not by a map */
	bool any_row_of_d;      /* rows of D need not be of whole 16 bytes */
	bool any_rows;          /* the kernel itself reads A and B at any distances, and each CTA computes one tile */
	uint32_t interleave;    /* so many tiles have their rows of B between one another; 0: 1 */
	uint32_t unit_k, unit_n; /* K and N are multiples; 0: 1 */
	gemm_order order;        /* where opt.group is 0 */
	uint32_t pair;           /* rows of a CTA, where a pair of CTAs makes a tile; else 0 */
	bool counts_k_tiles;     /* always; else with stream_k */
	bool whole_k_tiles; /* the producer runs to the end of the last K tile, not to K, which ptxas 13.0 reads in each turn */
	uint32_t bk;        /* elements along K of a stage */
	uint32_t sums;      /* with stream_k: bytes that a CTA may leave in the workspace, flags too */
	/* gemm_describe fills in: the options as the caller gave them, and by the names of the product that is computed; how a
	 * problem is laid on clusters, rows and columns of D of one; CTAs of a cluster, and, where the generator does not say,
	 * those that a multiprocessor holds */
	const cptx_gemm_opt *o;
	cptx_gemm_opt in;
	uint32_t side_m, side_n, cluster, per_sm;
} tma_gemm;

/* Bytes of the factors of A in a stage, behind which those of the columns of B begin. */
static inline uint32_t tma_gemm_row_scale_bytes(const tma_gemm *t) { return (4 * t->row_scales + 127) / 128 * 128; }

/* Bytes of the factors of weights in a stage, behind which their zero points begin. */
static inline uint32_t tma_gemm_weight_scale_bytes(uint32_t rows) { return (2 * rows + 127) / 128 * 128; }

/* False: it is a pointer. */
static inline bool tma_gemm_is_map(const tma_gemm *t, uint32_t which) { return !(t->pointers & MAP(which)); }
/* Whether an operand's map has a dimension of matrices: of a batch each, of experts what each has one of, weights or, with
 * rows along K, their gradients.  Whether its boxes are cut where an expert's rows end. */
static inline bool tma_gemm_has_matrices(const tma_gemm *t, uint32_t which)
{
	const uint32_t of_experts = t->o->experts == CPTX_GEMM_EXPERTS_K ? MAPS_OF_D : MAP(CPTX_GEMM_MAP_B);

	return t->o->batched || (t->o->experts && of_experts & MAP(which));
}
static inline bool tma_gemm_is_cut(const tma_gemm *t, uint32_t which)
{
	return t->o->experts && MAPS_OF_D & MAP(which) ? t->o->experts != CPTX_GEMM_EXPERTS_K
	                                               : t->o->experts == CPTX_GEMM_EXPERTS_K;
}
/* A or B of a stage with so many elements of B along K, of 8 bits or more, swizzled for units of `unit` rows. */
cptx_tile tma_gemm_tile(const cptx_gemm_opt *o, bool of_b, uint32_t bk, uint32_t unit);
/* What TMA loads at once of A or B of the options. */
cptx_tile tma_gemm_part(const tma_gemm *t, bool of_b);

/*
 * With opt.swap a kernel computes D^T = B^T * A^T.  Its parts but for the epilogue have the names of that product: its A is
 * the B of the options, its M their N.  bm, bn and clusters are of that product in the options too.
 */
cptx_gemm_opt tma_gemm_inner(const cptx_gemm_opt *opt);
cptx_gemm_problem tma_gemm_inner_problem(const cptx_gemm_opt *opt, const cptx_gemm_problem *p);

/* A rule that options or sizes break; inside a function that gives false then, with `err`. */
#define TMA_RULE(ok, ...)                                                                                                   \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm for " __VA_ARGS__);                                            \
	while (0)

/* Not a list: what a GEMM reads and writes, in the order of their letters. */
enum gemm_which { GEMM_A, GEMM_B, GEMM_C, GEMM_D };
/* Elements of D are not just sums. */
static inline bool tma_gemm_has_chain(const cptx_gemm_opt *o)
{
	return o->alpha || o->beta || o->bias || o->epilogue || o->visitors || o->scatter || o->swiglu || o->scale_out;
}

/* A number of an option, of which 0 counts as 1. */
static inline uint32_t or_one(uint32_t v) { return v ? v : 1; }
static inline uint64_t divide_up(uint64_t n, uint64_t each) { return n / each + (n % each != 0); }
static inline bool is_16_bits(enum cptx_type t) { return t == CPTX_BF16 || t == CPTX_F16; }
static inline bool is_fp8(enum cptx_type t) { return t == CPTX_E4M3 || t == CPTX_E5M2; }
/* Weights of few bits: B, or of the product that is computed A, is of another width than the other, whose 16 bits it is
 * multiplied in. */
static inline bool tma_gemm_has_weights(const cptx_gemm_opt *o) { return is_16_bits(o->a) != is_16_bits(o->b); }
static inline bool is_int8(enum cptx_type t) { return t == CPTX_S8 || t == CPTX_U8; }

/* ---- the host ---- */

/* Columns of D, of a product of n columns. */
static inline uint64_t tma_gemm_columns(const cptx_gemm_opt *o, uint64_t n) { return o->swiglu ? n / 2 : n; }

/* Bits of an element in global memory. */
uint32_t tma_gemm_bits(enum cptx_type t);

/* Rows of A and D, of all matrices; where not every matrix has its own. */
static inline uint64_t tma_gemm_rows(const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	return o->experts == CPTX_GEMM_EXPERTS_CONTIGUOUS || o->experts == CPTX_GEMM_EXPERTS_K ? p->m : p->m * or_one(p->batch);
}

/* One of the matrices as it is stored: rows of contiguous elements. */
typedef struct gemm_stored {
	uint64_t at, rows, cols;
	uint64_t ld, stride;  /* elements from row to row, from matrix to matrix */
	uint32_t count, bits; /* matrices, of a broadcast one; of an element */
} gemm_stored;
/* Where the problem says that a matrix lies; tma_gemm_read: where the kernel finds it, since A and B may be copied first. */
gemm_stored tma_gemm_stored(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which);
gemm_stored tma_gemm_read(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which);
/* Bytes of so many elements. */
uint64_t gemm_stored_bytes(const gemm_stored *s, uint64_t elements);
/* Whether the kernel has parameters that say where rows and matrices lie; copies A or B to the workspace. */
static inline bool tma_gemm_is_strided(const tma_gemm *t) { return t->o->strided || t->o->unaligned || t->any_rows; }
static inline bool tma_gemm_is_copied(const tma_gemm *t, enum gemm_which which)
{
	return which <= GEMM_B && !t->any_rows && t->o->unaligned >> which & 1;
}
/* Whether the problem says how far several matrices are apart. */
static inline bool tma_gemm_has_steps(const tma_gemm *t)
{
	return tma_gemm_is_strided(t) && (t->o->batched || t->o->experts);
}
/* The set of matrices that .unaligned must have in it for a problem.  Addresses that are 0 ask for nothing. */
uint32_t tma_gemm_unaligned(const tma_gemm *t, const cptx_gemm_problem *p);
/* Rules: of the distances of rows and matrices; of those that go by 16 bytes. */
bool tma_gemm_check_stored(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err);
bool tma_gemm_check_rows(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which, const cptx_tile *tile,
                         cptx_error *err);
/* The workspace begins with the grid's barrier; how far behind its begin are the partial sums of stream_k? */
uint64_t tma_gemm_sums_begin(const tma_gemm *t, const cptx_gemm_problem *p);

/* The address of what is a pointer: A, B, D or the scale factors of B. */
static inline uint64_t tma_gemm_address(const cptx_gemm_problem *p, uint32_t which)
{
	return which == CPTX_GEMM_MAP_A         ? p->a
	       : which == CPTX_GEMM_MAP_B       ? p->b
	       : which == CPTX_GEMM_MAP_SCALE_B ? p->scale_b
	                                        : p->d;
}

/* Rules of all: of stages, group, timeline and lists; of shared memory; the same for what each of so many CTAs of the target
 * can have. */
bool tma_gemm_check_numbers(const char *target, const cptx_gemm_opt *o, cptx_error *err);
/* Bytes of shared memory that a CTA of `of` can have, that a stage of `bk` elements along K takes, that all take. */
typedef struct gemm_smem {
	const char *of;
	uint32_t most, bk, stage, all;
} gemm_smem;
bool tma_gemm_check_smem(const char *target, const cptx_gemm_opt *o, const gemm_smem *m, cptx_error *err);
bool tma_gemm_check_room(const char *target, const cptx_gemm_opt *o, uint32_t bk, uint32_t per_sm, uint32_t stage,
                         uint32_t smem, cptx_error *err);
/* Of the types of A and B without scale factors (mma.sync, wgmma), and how these are stored; of the output; of clusters of
 * m x n tiles, `each` a number of CTAs; what: "tiles". */
bool tma_gemm_check_in(const char *target, const cptx_gemm_opt *o, cptx_error *err);
bool tma_gemm_check_out(const char *target, const cptx_gemm_opt *o, cptx_error *err);
/* Rules of results by TMA and by threads: the columns of a tile, gated ones, factors of D; rows that are gathered or
 * scattered. */
bool tma_gemm_check_results(const char *target, const cptx_gemm_opt *o, cptx_error *err);
bool tma_gemm_check_cluster(const char *target, uint32_t m, uint32_t n, uint32_t each, cptx_error *err);
/* Dynamic shared memory that each of so many CTAs of a multiprocessor can have. */
uint32_t tma_gemm_smem(const char *target, uint32_t per_sm);
/* How a unit of threads stores its rows of a tile of D by TMA: in subtiles, of which it has one or two in shared memory. */
typedef struct tma_gemm_subtiles {
	cptx_tile tile, rest; /* rest: the last one, if it has fewer columns; else .cols is 0 */
	uint32_t buffers;
} tma_gemm_subtiles;
/* The largest of so many rows, and columns up to `widest`, of which so many units have room in `room` bytes; two for each
 * unit are better than wide ones, so that one is written while TMA reads the other.  A unit has `blocks` times these rows,
 * and all columns of the tile. */
tma_gemm_subtiles tma_gemm_subtiles_of(const cptx_gemm_opt *o, uint32_t rows, uint32_t blocks, uint32_t widest,
                                       uint32_t units, int64_t room);

/* Clusters that are resident at once on so many multiprocessors; at least 1. */
uint32_t tma_gemm_resident(uint32_t sms, uint32_t cluster, uint32_t per_sm);
/* Cluster tiles of one matrix. */
static inline uint64_t tma_gemm_tiles(const tma_gemm *t, const cptx_gemm_problem *p)
{
	const uint64_t between = or_one(t->interleave);

	return divide_up(p->m, t->side_m) * divide_up(p->n, t->side_n * between) * between;
}
/* Sizes from 1 on, rows that tensor maps take, one matrix where the kernel is not batched; then CTAs to launch, and bytes of
 * the workspace, to the plan. */
bool tma_gemm_check_problem(const tma_gemm *t, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan,
                            cptx_error *err);
/* No address that the options need is 0 or unaligned. */
bool tma_gemm_all_there(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err);
/* All its maps, in order; a pointer's place is left as it is. */
bool tma_gemm_maps(const tma_gemm *t, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err);

/* The launch for a problem.  For a list p has alpha and beta, the table the rest, for so many cluster tiles. */
cptx_launch *tma_gemm_launch(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                             const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err);
/* Writes the table of a list first; as gemm/tma/group.c says. */
cptx_launch *tma_gemm_launch_list(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program,
                                  cptx_device *dev, const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err);

/* ---- the generators ---- */

/* One of them.  Options that it gets are checked as far as they are those of all, have a name and a group. */
typedef struct gemm_generator {
	const char *target, *by, *where; /* for messages: whose limits, what multiplies, what has it */
	uint16_t op;                     /* what a target must have; 0: .check says */
	bool (*check)(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err);
	void (*build)(cptx_kernel *k, const tma_gemm *t);
	tma_gemm (*describe)(const cptx_gemm_opt *o); /* what only the generator knows: gemm_describe */
	const struct gemm_model *model;               /* of its speed: gemm/auto.h */
} gemm_generator;
extern const struct gemm_model gemm_sm80_model, gemm_sm90_model, gemm_sm100_model, gemm_sm120_model, gemm_gemv_model;
extern const gemm_generator gemm_sm80, gemm_sm90, gemm_sm100, gemm_sm120, gemm_gemv;
/* NULL: .mma is none. */
const gemm_generator *gemm_generator_of(const cptx_gemm_opt *o);
/* The kernel of a generator for options, which must stay. */
tma_gemm gemm_describe(const gemm_generator *g, const cptx_gemm_opt *o);

/* ---- the kernel ---- */

/* Distances in A or B of a strided kernel: bytes from row to row and from matrix to matrix, .u64, where its threads read the
 * matrix as the problem has it; the number of the last matrix of a batch; of one that is copied first from where to where.
 */
typedef struct tma_gemm_distances {
	cptx_val pitch, step, last, from, copy;
} tma_gemm_distances;

typedef struct tma_gemm_params {
	cptx_val map[CPTX_GEMM_MAP_KINDS]; /* generic addresses of maps; what is a pointer: the matrix */
	cptx_val M, N, K, batch, alpha, beta, C, bias, timeline, workspace, counts;
	tma_gemm_distances of[2];          /* A and B */
	cptx_val ldc, ldd, step_c, step_d; /* strided, of C, and of D where it is a pointer: elements, .u32 and .u64 */
	cptx_val barrier;                  /* of the grid, where A or B is copied */
	cptx_val weights, zeros;           /* scale factors and zero points of a B of few bits */
	cptx_val scale_d, meta;            /* factors of D; metadata of a sparse A */
	cptx_val gather, scatter, routing; /* of rows of experts: where they are in A and in D, and their weights */
} tma_gemm_params;

/* Grouped: a list of problems, one record each. */
typedef struct tma_gemm_group {
	cptx_val records, tiles;     /* parameters; cluster tiles of all */
	cptx_val record, first, end; /* of the problem at hand, and its tiles */
} tma_gemm_group;

/* What a CTA does.  at = begin; while at < end: tma_gemm_locate, the K tiles k_first .. k_end - 1, at += step. */
typedef struct tma_gemm_work {
	tma_gemm_params p, in; /* by the names of the options; by those of the product that is computed: swap exchanges them */
	cptx_params table;     /* all parameters, with those of the options' visitors */
	tma_gemm_group list;
	cptx_tile_groups experts; /* of experts: all, and the one at hand */
	cptx_tile_group expert;
	cptx_val cluster, clusters;        /* number of this one, and how many there are */
	cptx_val rank, in_pair, tile_rank; /* of this CTA in its cluster; in its pair, and that of its tile in the cluster */
	cptx_val leader;                   /* of a pair: the rank of its first CTA, which multiplies */
	cptx_val tiles_m, tiles_n, tiles;  /* cluster tiles of a matrix */
	cptx_val k_tiles;                  /* where these are counted */
	cptx_tiles sched;
	cptx_tiles_at here;            /* where this thread stands */
	cptx_val at, end, step;        /* of here */
	cptx_val tile, k_first, k_end; /* what is done now */
	cptx_val m0, n0, z;            /* where this CTA's part of it begins, .s32; the matrix */
} tma_gemm_work;
/* Declares the parameters: gemm/tma/params.c. */
void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w);
/* The address of the matrix at hand, of A or B of 16 bits or of D where the kernel has a pointer to it; those of a batch lie
 * dense behind one another. */
cptx_val tma_gemm_matrix(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, enum cptx_gemm_map which);
/* The number of the matrix of A or B that belongs to that of the batch at hand. */
cptx_val tma_gemm_z_of(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const tma_gemm_distances *d);
/* Elements from row to row of D, where it is a pointer, and of C. */
cptx_val tma_gemm_ld(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, enum gemm_which which);
/* Copies A and B to the workspace, where their rows are unaligned, and waits for all CTAs: gemm/tma/pack.c.  All threads, of
 * which this one has number tid. */
void tma_gemm_copy_unaligned(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid);
enum { GEMM_COPY_LINE = 128 /* bytes of which rows of such a copy have a multiple */ };
/* Bytes from row to row of such a copy, .u32; rows of A or B as they are stored. */
cptx_val tma_gemm_copy_pitch(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, bool of_b);
cptx_val tma_gemm_stored_rows(const tma_gemm *t, const tma_gemm_work *w, bool of_b);
/* Where the part of the tile that this CTA computes begins and ends along K, as tensor maps count: .s32, or a constant. */
cptx_val tma_gemm_k_first(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w);
cptx_val tma_gemm_k_end(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w);
/* Has the maps that all tiles need fetched, by one thread of a warp each; not of a list. */
void tma_gemm_prefetch_maps(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid);
/* Sets the fields of *w up to k_tiles, and the loop over tiles. */
void tma_gemm_work_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w);
/* Prefetches the maps and begins the work, then waits for the launch before, which code in front of this call may overlap
 * (cptx_launch_opt.overlap), and begins the timeline of so many warps. */
void tma_gemm_start(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, cptx_val tid, cptx_timeline *line, uint32_t warps);
/* tma_gemm_find reads w->at: the problem, of whose maps this thread uses the set `maps`, the tile and its K tiles.
 * tma_gemm_locate also finds the place of the tile in D. */
void tma_gemm_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps);
void tma_gemm_locate(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t maps);

/* The number behind that of the last cluster that computes a part of w->tile, a tile that clusters share. */
cptx_val tma_gemm_share_end(cptx_kernel *k, const tma_gemm_work *w);
/* Of a list: makes the registers that hold the sizes of the problem at hand. */
void tma_gemm_group_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w);
/* Of a list: finds the problem that tile w->at belongs to, and loads its parameters to w->p. */
void tma_gemm_group_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t used);

/* With stream_k, the workspace: partial sums of `bytes` each, then a flag for each.  `threads` (a warp, or a warpgroup)
 * store one together. */
typedef struct tma_gemm_sums {
	cptx_val at, clusters;
	uint32_t of_cluster, bytes; /* partial sums that a cluster may store; bytes of one */
	uint32_t threads;
	cptx_val mine, lane; /* number of the partial sum in the cluster, of this thread in those that store it */
	cptx_val barrier;    /* a named one of these; NONE: a warp */
} tma_gemm_sums;
/* The partial sums of a kernel whose CTAs have so many units, warps or warpgroups, with sums of their own; unit, lane:
 * numbers of the thread's in its CTA, and of the thread in its unit.  Without .barrier. */
tma_gemm_sums tma_gemm_sums_of(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, uint32_t units, uint32_t threads,
                               cptx_val unit, cptx_val lane);
/* For a part of a tile that another cluster finishes: stores registers of an accumulator (a multiple of four, from number
 * `first` of the thread's on); then, in all threads, tells that all are stored.  one: a predicate of one thread. */
void tma_gemm_store_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, uint32_t first, cptx_val acc);
/* A whole accumulator in tensor memory, so many columns at once, between the fences of its loads. */
void tma_gemm_store_partials_tmem(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, const cptx_acc *acc,
                                  uint32_t columns);
void tma_gemm_flag_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val one);
/* For a tile that this cluster finishes: waits for the partial sums of all others, which are those of the clusters from the
 * next one up to the end that it gives (none, where the tile is not shared); adds them to registers of the accumulator. */
cptx_val tma_gemm_wait_for_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val one);
void tma_gemm_add_partials(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val end, uint32_t first,
                           cptx_val acc);
/* A whole accumulator in registers: fixup_store leaves it in the workspace for another cluster, fixup_reduce adds the
 * partial sums of all others to it, of w->tile, which is shared.  first: a predicate of the first of the threads. */
void tma_gemm_fixup_store(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first);
void tma_gemm_fixup_reduce(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first);

/* Behind the K tiles of a part, or of all, of a tile, in the units of `s`: a part that another cluster finishes goes to the
 * workspace; else partial sums of others are added to acc, and `store` stores the results. */
void tma_gemm_finish_sums(cptx_kernel *k, const tma_gemm_work *w, const tma_gemm_sums *s, cptx_val acc, cptx_val first,
                          void (*store)(cptx_kernel *k, void *user), void *user);

/* The visitors of D's elements: alpha, beta * C, bias, the options' epilogue; of the problem and the matrix at hand, so a
 * chain is made anew for each tile.  t stays until the chain is run. */
void tma_gemm_chain_new(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e);
/* Makes the chain and runs it on an accumulator of the tile at hand, also one in tensor memory: elements are computed where
 * the results are stored. */
cptx_epilogue tma_gemm_chain(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc);

/* The results of a chain, by the threads, to d, a pointer to the D of the matrix at hand.  tma_gemm_store_tmem: those of an
 * accumulator in tensor memory, so many columns at once; loaded: called behind each load, as that of cptx_epilogue_dst. */
void tma_gemm_store(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e, cptx_val d);
void tma_gemm_store_tmem(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc, uint32_t columns,
                         cptx_epilogue_loaded_fn loaded, void *user);

/* Where TMA stores a tile of D: the map, the matrix, and where an expert's rows end. */
cptx_epilogue_dst tma_gemm_dst(const tma_gemm *t, const tma_gemm_work *w);

/* A ring of tiles in shared memory: that of stage s is at smem + s * apart + at.  Several may share their stages. */
typedef struct tma_gemm_ring {
	cptx_val smem; /* .u32 */
	uint32_t apart, at;
} tma_gemm_ring;

/* From the offset of a stage, a register, to that of the next one.  Counted along, not stage * apart: ptxas then keeps it in
 * a uniform register, which ldmatrix adds for nothing. */
void tma_gemm_next_offset(cptx_kernel *k, cptx_val offset, uint32_t apart, uint32_t stages);

/* What fills the ring of stages, across tile borders.  By TMA it is one thread; of a cluster each CTA loads its part of an
 * operand that the cluster shares and multicasts it, and the copies of a pair count at the barrier of its first CTA.  By
 * cp.async all threads copy ahead of what they multiply. */
typedef struct tma_gemm_producer {
	const tma_gemm *t;
	tma_gemm_work *w; /* by cp.async that of the copies */
	const cptx_pipe *pipe;
	const cptx_timeline *line;
	tma_gemm_ring ring[2], scales[2]; /* of A and B; of their scale factors */
	bool clusters;    /* copies are to .shared::cluster, for which ptxas calls a function on sm_12x; else ::cta */
	uint32_t threads; /* by cp.async: all, and the number of this one */
	cptx_val thread;
	cptx_val rows;           /* with .gather: .u32 register, where the rows of the expert at hand end */
	cptx_operand operand[2]; /* tma_gemm_producer_operands: A and B, of a cluster the parts that this CTA loads */
	/* by cp.async: where the copies stand, and how far that is from stage 0; K tiles of the tile that are still to be copied
	 */
	cptx_pipe_at to;
	cptx_val to_bytes;
	cptx_operand_src from[2];
	cptx_val left;
} tma_gemm_producer;
/* One whose ring has A and B side by side in each stage: a_bytes of A, then B. */
tma_gemm_producer tma_gemm_producer_of(const tma_gemm *t, tma_gemm_work *w, const cptx_pipe *pipe, const cptx_timeline *line,
                                       tma_gemm_ring stages, uint32_t a_bytes);
/* Behind tma_gemm_work_begin, in the threads that copy. */
void tma_gemm_producer_operands(cptx_kernel *k, tma_gemm_producer *p);
/* By TMA, or gathered: all K tiles of all tiles, of operands that it makes if nobody has.  Gives where it stands then. */
cptx_pipe_at tma_gemm_produce(cptx_kernel *k, tma_gemm_producer *p);
/* Those who multiply wait until a stage is full; stamps by the threads where a predicate holds, NONE: by this one. */
void tma_gemm_wait_for_stage(cptx_kernel *k, const cptx_pipe *pipe, const cptx_pipe_at *at, const cptx_timeline *line,
                             cptx_val stamps);
/* A producer of whole warps, which gather rows of A by cp.async while one thread has TMA load B (gemm/tma/gather.c).  Its
 * stages have an arrival of that thread and one of each warp. */
static inline uint32_t tma_gemm_gather_arrivals(const tma_gemm_producer *p) { return 1 + p->threads / CPTX_WARP; }
cptx_pipe_at tma_gemm_gather(cptx_kernel *k, tma_gemm_producer *p);
/* By cp.async: readies p->w and the operands, and begins the copies of all stages but one; makes part number `part` of
 * `parts` of the copies of the next K tile; ends these, behind the last part; goes on to the K tile behind it. */
void tma_gemm_copies_begin(cptx_kernel *k, tma_gemm_producer *p);
void tma_gemm_copy(cptx_kernel *k, const tma_gemm_producer *p, uint32_t part, uint32_t parts);
void tma_gemm_copied(cptx_kernel *k, tma_gemm_producer *p);
void tma_gemm_copies_advance(cptx_kernel *k, tma_gemm_producer *p);

/* ---- f32 factors of blocks: gemm/tma/scaled.c ---- */

/* The largest number of a type of 8 bits that D and matrices are quantized to. */
static inline float tma_gemm_largest(enum cptx_type t) { return t == CPTX_E4M3 ? 448.0f : 57344.0f; }
enum { GEMM_SCALE_BLOCK = 128 /* rows of B, and elements along K, that share a factor */, GEMM_SCALE_PARTS = 4 };
/* A tile's columns as so many parts of equal width, none of which has columns of two blocks of B; at most
 * GEMM_SCALE_PARTS are possible. */
uint32_t tma_gemm_scaled_parts(uint32_t columns);
/* Factors of A in a stage: those of a tile of experts begin anywhere in the first four. */
uint32_t tma_gemm_scaled_rows(const cptx_gemm_opt *o);
/* Rules of these, where the options have them. */
bool tma_gemm_scaled_check(const char *target, const cptx_gemm_opt *o, cptx_error *err);

/* Sums of a tile whose K tiles are multiplied by f32 factors of blocks. */
typedef struct tma_gemm_scaled {
	const tma_gemm *t;
	const tma_gemm_work *w;
	const cptx_acc *acc;       /* sums of the tile */
	const tma_gemm_ring *of_a; /* factors of the rows of A, in shared memory */
	cptx_acc part;             /* sums of one K tile: the accumulator of its products */
	uint32_t parts, width;     /* of the columns; columns of a part */
	cptx_val cols_at;          /* with .scale_rows: that of the thread's first column in the factors of B of stage 0 */
	cptx_val of_b;             /* else factors of B, one for each part of the columns, of the K tile that comes next */
	cptx_val of_b_at[GEMM_SCALE_PARTS], of_a_at; /* their addresses; that of the thread's first row in stage 0 */
} tma_gemm_scaled;
/* Fills in what stands behind of_a, which all tiles share; then readies a tile.  Without scale factors they do nothing. */
void tma_gemm_scaled_new(cptx_kernel *k, tma_gemm_scaled *x, const cptx_tiled_mma *mma);
void tma_gemm_scaled_begin(cptx_kernel *k, tma_gemm_scaled *x);
/* Factors of A of a K tile, which is in that stage: of each row of the thread. */
cptx_val tma_gemm_scaled_load(cptx_kernel *k, const tma_gemm_scaled *x, cptx_val stage);
/* Their products with those of B, for each part of the columns and each row; with .scale_rows those of A alone. */
cptx_val tma_gemm_scaled_factors(cptx_kernel *k, tma_gemm_scaled *x, cptx_val of_a, cptx_val k_tile);
/* The sums of the K tile, complete in .part, times the factors; fresh: they are the first of the tile.  With .scale_rows it
 * reads factors of B of the stage. */
void tma_gemm_scaled_add(cptx_kernel *k, const tma_gemm_scaled *x, cptx_val stage, cptx_val factors, bool fresh);

/* ---- a sparse A: gemm/tma/sparse.c ---- */

enum { GEMM_SPARSE_K = 64 /* elements along K of a word of metadata */, GEMM_SPARSE_AHEAD = 3, GEMM_SPARSE_BLOCKS = 64 };
/* bk: elements along K of a stage. */
bool tma_gemm_sparse_check(const char *target, const cptx_gemm_opt *o, uint32_t bk, cptx_error *err);
/* The kernel counts the bytes of metadata beside one another in 32 bits. */
bool tma_gemm_sparse_check_rows(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err);
/* Elements of A, of the product that is computed, from k elements of B on, as TMA counts them: of weights bytes. */
static inline uint64_t tma_gemm_along_a(const cptx_gemm_opt *o, uint64_t k)
{
	return o->sparse ? k / 2 : tma_gemm_has_weights(o) ? k * tma_gemm_bits(o->a) / 8 : k;
}
/* Elements in a row of A as it is stored: .u32. */
cptx_val tma_gemm_cols_of_a(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w);
/* The metadata of a unit that multiplies. */
typedef struct tma_gemm_sparse {
	const tma_gemm *t;
	const tma_gemm_work *w;
	uint32_t steps, blocks, apart;         /* of 64 elements in a K tile; of 16 rows, and from one to the next */
	uint32_t ahead;                        /* K tiles that are loaded before they are needed */
	cptx_val now[2];                       /* words of the K tiles at hand, in turns */
	cptx_val words[GEMM_SPARSE_AHEAD + 1]; /* [1] and following: of the next ones */
	cptx_val lane, first;                  /* .u32: bytes to the lane's word; the first block of the unit in the tile */
	cptx_val base, pitch, last, from;      /* of step 0, .u64; bytes from step to step; the last step; the next to load */
	cptx_val there[GEMM_SPARSE_BLOCKS];    /* predicates: the rows of a block are in A */
} tma_gemm_sparse;
/* Fills in what stands behind w, for threads of one unit; readies a tile, and loads its first K tiles; then for each of
 * these in turn the words, which cptx_mma_tile takes as .meta; those of turn 0 and 1 may be other registers.  Where A is
 * dense they do nothing, and .meta is NONE. */
void tma_gemm_sparse_new(cptx_kernel *k, tma_gemm_sparse *x, const cptx_tiled_mma *mma, cptx_val thread, uint32_t ahead);
void tma_gemm_sparse_begin(cptx_kernel *k, tma_gemm_sparse *x);
cptx_val tma_gemm_sparse_next(cptx_kernel *k, const tma_gemm_sparse *x, uint32_t turn);

/* What N is a multiple of, with gated columns and factors of D. */
static inline uint32_t tma_gemm_unit_n(const cptx_gemm_opt *o)
{
	return (o->scale_out ? GEMM_SCALE_BLOCK : o->swiglu ? 8 : 1) * (o->swiglu ? 2 : 1);
}

/* ---- of the generators by mma.sync ---- */

/* A warp that multiplies by mma.sync. */
typedef struct tma_gemm_consumer {
	const tma_gemm *t;
	const tma_gemm_work *w;
	const cptx_tiled_mma *mma;
	const cptx_acc *acc;
	uint32_t warps;            /* of the CTA that multiply */
	cptx_val warp, first_lane; /* number of this one; a predicate of one thread */
	cptx_val lane;             /* of the warp; NONE: read anew, as the mainloop leaves no register for it */
	cptx_val slabs;            /* where TMA stores D: .u32, shared memory, t->d for each warp in units of 1024 bytes */
} tma_gemm_consumer;
/* A and B of f64: rules; elements of an accumulator to D. */
bool tma_gemm_f64_check(const char *target, const cptx_gemm_opt *o, cptx_error *err);
void tma_gemm_store_f64(cptx_kernel *k, const tma_gemm_consumer *c, const cptx_acc *acc);
/* From the accumulators to D; with stream_k to D or to the workspace. */
void tma_gemm_finish(cptx_kernel *k, const tma_gemm_consumer *c);

#endif
