/* What the GEMMs that are fed by TMA (sm_90a, sm_100a) have in common: sizes, tensor maps and launches on the host; in the
 * kernel parameters, loads, and what comes behind the sums. */
#ifndef KERNELS_GEMM_TMA_H
#define KERNELS_GEMM_TMA_H

#include <cptx/device.h>
#include <cptx/gemm.h>
#include <cptx/pipeline.h>
#include <cptx/tensor_map.h>

#include "base/base.h"

/* A kernel, without what only one of the generators knows. */
typedef struct tma_gemm {
	const char *target; /* for messages */
	const char *name;
	enum cptx_type a_type, b_type, out;
	cptx_tile a, b, d; /* what one CTA loads or stores at once; a part of a tile where CTAs share it */
	cptx_tile rest;    /* of D, at the end of a tile: map 3; no columns: there is none */
	bool batched, alpha, beta, bias;
	bool d_pointer; /* D is given by its address, not by a map */
	uint32_t timeline;
	cptx_gemm_epilogue_fn epilogue;
	void *user;
} tma_gemm;

/* A rule that options or sizes break; inside a function that gives false then, with `err`. */
#define TMA_RULE(ok, ...)                                                                                                   \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm for " __VA_ARGS__);                                            \
	while (0)

static inline uint32_t given(uint32_t v) { return v ? v : 1; }
static inline bool is_16_bits(enum cptx_type t) { return t == CPTX_BF16 || t == CPTX_F16; }

/* ---- the host ---- */

/* Bits of an element in global memory. */
uint32_t tma_gemm_bits(enum cptx_type t);

/* What a CTA asks for, as far as the rules are those of all. */
typedef struct tma_gemm_cta {
	const char *target;                                    /* for messages, and whose limits */
	uint32_t bm, bn, bk, stages, stage_bytes, other_bytes; /* other: of dynamic shared memory, beside the stages */
	uint32_t per_sm, group, timeline;
} tma_gemm_cta;
bool tma_gemm_check_numbers(const tma_gemm_cta *c, cptx_error *err); /* stages, group, timeline */
bool tma_gemm_check_room(const tma_gemm_cta *c, cptx_error *err);    /* then the others; smem is below 2^32 */
/* Of the output, and of clusters of m x n tiles, `each` a number of CTAs; what: "tiles". */
bool tma_gemm_check_out(const char *target, enum cptx_type out, const char *more, cptx_error *err);
bool tma_gemm_check_cluster(const char *target, uint32_t m, uint32_t n, uint32_t each, cptx_error *err);
/* Dynamic shared memory that each of so many CTAs of a multiprocessor can have. */
uint32_t tma_gemm_smem(const char *target, uint32_t per_sm);

/* How a problem is laid on clusters. */
typedef struct tma_gemm_work {
	const char *target;
	uint64_t in_one, k_tiles; /* cluster tiles of one matrix; tiles along K */
	uint32_t cluster, per_sm; /* CTAs of a cluster; CTAs that a multiprocessor holds */
	uint32_t sums;            /* with stream_k: bytes that a CTA may leave in the workspace, flags too; else 0 */
} tma_gemm_work;
/* Clusters that are resident at once on so many multiprocessors; at least 1. */
uint32_t tma_gemm_resident(uint32_t sms, uint32_t cluster, uint32_t per_sm);
/* CTAs to launch, and bytes of the workspace. */
bool tma_gemm_fit(const tma_gemm_work *w, const cptx_gemm_problem *p, uint32_t sms, uint32_t *grid, uint64_t *workspace,
                  cptx_error *err);

/* Sizes from 1 on, rows that tensor maps take, one matrix where the kernel is not batched. */
bool tma_gemm_check_problem(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err);
/* No address that the options need is 0 or unaligned; scale factors and workspace aside. */
bool tma_gemm_all_there(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err);
/* The map of A, B, D or the rest of D (which: 0, 1, 2, 3). */
bool tma_gemm_map(const tma_gemm *t, const cptx_gemm_problem *p, int which, cptx_tensor_map_opt *map, cptx_error *err);

/* The best choices of a model, best first: structs of `size` bytes, with the time, a double, at byte `at_us`. */
typedef struct tma_gemm_best {
	void *choices;
	size_t size, at_us, n, room;
} tma_gemm_best;
#define TMA_GEMM_BEST(type, to, most)                                                                                       \
	{                                                                                                                       \
		.choices = (to), .size = sizeof(type), .at_us = offsetof(type, us), .room = (most)                                  \
	}
void tma_gemm_offer(tma_gemm_best *x, const void *choice);
/* False: there is no room for choices. */
bool tma_gemm_has_room(const tma_gemm_best *x, const char *target, cptx_error *err);

/* How choices of a generator, structs of `size` bytes, are built and launched; .ctas of a problem is a choice's own. */
typedef struct tma_gemm_tuner {
	const char *target;
	size_t size, at_us, at_measured;
	void (*bits)(const void *choice, uint32_t *a, uint32_t *b); /* of an element */
	bool (*build)(cptx_module *m, const void *choice, cptx_error *err);
	bool (*workspace)(const void *choice, cptx_gemm_problem p, uint32_t sms, uint64_t *bytes, cptx_error *err);
	cptx_launch *(*launch)(const cptx_program *program, cptx_device *dev, const void *choice, cptx_gemm_problem p,
	                       cptx_error *err);
} tma_gemm_tuner;
/* Measures choices and sorts them, as cptx_gemm_sm90_tune says. */
bool tma_gemm_tune(const tma_gemm_tuner *of, cptx_device *dev, const cptx_gemm_problem *p, void *choices, size_t n,
                   cptx_error *err);

/* Scale factors: so many elements for one, so many blocks of 4 factors along K and of 128 rows in a stage. */
typedef struct tma_gemm_factors {
	uint32_t vec, along_k, along_rows;
} tma_gemm_factors;
enum { FACTOR_BYTES = 512 /* a block */, FACTOR_ROWS = 128, FACTORS = 4 /* of a row in it */ };
static inline uint64_t blocks_along(uint64_t n, uint64_t each) { return n / each + (n % each != 0); }
bool tma_gemm_map_factors(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, const tma_gemm_factors *f,
                          cptx_tensor_map_opt *map, cptx_error *err);

enum { TMA_GEMM_MAPS = 5 };
/* A launch: so many maps, then the numbers of the options, then the workspace if it is not 0. */
typedef struct tma_gemm_launch {
	const tma_gemm *t;
	const cptx_gemm_problem *p;
	const cptx_tensor_map_opt *map;
	uint32_t maps, grid, threads, smem;
	uint64_t workspace;
} tma_gemm_launch;
/* What a launch is of and on is there. */
bool tma_gemm_has_device(const char *target, const cptx_program *program, const cptx_device *dev, cptx_error *err);
cptx_launch *tma_gemm_prepare(const tma_gemm_launch *l, const cptx_program *program, cptx_device *dev, cptx_error *err);

/* A launch for a list of problems; as tma_gemm_group says.  Bytes of a record: maps, sizes, C and bias. */
#define TMA_GEMM_RECORD(maps) (((maps)*CPTX_TENSOR_MAP_BYTES + 32 + 127) / 128 * 128)
typedef struct tma_gemm_list {
	const tma_gemm *t;
	const void *opt; /* of the generator, for these: */
	bool (*check)(const void *opt, const cptx_gemm_problem *p, uint64_t *tiles, cptx_error *err); /* gives cluster tiles */
	bool (*describe)(const void *opt, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err);
	uint32_t maps, has, cluster, per_sm, threads, smem;
} tma_gemm_list;
bool tma_gemm_check_list(const char *target, cptx_device *dev, const cptx_program *program, const cptx_gemm_problem *p,
                         size_t n, uint64_t table, cptx_error *err);
cptx_launch *tma_gemm_launch_list(const tma_gemm_list *l, const cptx_program *program, cptx_device *dev,
                                  const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err);

/* ---- the kernel ---- */

typedef struct tma_gemm_params {
	cptx_val map[TMA_GEMM_MAPS]; /* generic addresses */
	cptx_val M, N, K, batch, alpha, beta, C, D, bias, timeline;
} tma_gemm_params;

/* Declares them, in the order of tma_gemm_prepare. */
void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, uint32_t maps, tma_gemm_params *p);

/* The work of a cluster: at = begin; while at < end: tma_gemm_share_locate, the K tiles k_first .. k_end - 1, at += step. */
typedef struct tma_gemm_share {
	cptx_val cluster, clusters; /* number of this one, and how many there are; to be set before */
	cptx_val k_tiles;           /* the same */
	cptx_val at, end, step;
	/* with stream_k: tiles and K tiles that a cluster has alone; K tiles that are shared, and those of this cluster */
	cptx_val whole_tiles, own, shared, shared_first, shared_end;
	cptx_val tile, k_first, k_end; /* what is done now */
} tma_gemm_share;
void tma_gemm_share_begin(cptx_kernel *k, tma_gemm_share *w, cptx_val tiles, bool stream_k);
void tma_gemm_share_locate(cptx_kernel *k, tma_gemm_share *w, bool stream_k);
/* Behind the last of the clusters that have a part of w->tile, which is shared. */
cptx_val tma_gemm_share_end(cptx_kernel *k, const tma_gemm_share *w);

/* Grouped: a list of problems, one record each with room for so many maps, of which it has those of the mask. */
typedef struct tma_gemm_group {
	uint32_t maps, has;
	cptx_val records, tiles;     /* parameters; cluster tiles of all */
	cptx_val record, first, end; /* of the problem at hand, and its tiles */
} tma_gemm_group;
/* Instead of tma_gemm_declare; instead of tma_gemm_share_begin, for the loop over the tiles of all problems. */
void tma_gemm_group_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_group *g, tma_gemm_params *p);
void tma_gemm_group_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_group *g, tma_gemm_params *p, tma_gemm_share *w);
/* The problem that tile `at` is of, to *p; used: maps that this thread uses. */
void tma_gemm_group_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_group *g, tma_gemm_params *p, cptx_val at,
                         uint32_t used);

/* The workspace: sums of `bytes` each, then a flag for each. */
typedef struct tma_gemm_sums {
	cptx_val at, clusters;
	uint32_t of_cluster, bytes; /* sums that a cluster may leave; of one */
} tma_gemm_sums;
cptx_val tma_gemm_sum_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number);
cptx_val tma_gemm_flag_at(cptx_kernel *k, const tma_gemm_sums *s, cptx_val number);
/* One thread, behind a barrier of those that wrote the sum; one thread, in front of a barrier of those that read it. */
void tma_gemm_raise(cptx_kernel *k, cptx_val flag, cptx_val when);
void tma_gemm_await(cptx_kernel *k, cptx_val flag);

/* The copies of a tile (t->a or t->b) to `to`; row: of the operand, k0: along K, z: the matrix. */
typedef struct tma_gemm_load {
	const tma_gemm *t;
	const cptx_tile *tile;
	cptx_val map, to, row, k0, z, mbar;
	cptx_val mask; /* CTAs that get it; NONE: this one */
	bool pair;     /* the mbarrier may be that of the other CTA of a pair */
	bool alone;    /* no cluster: .shared::cta; for .shared::cluster ptxas calls a function on sm_12x */
} tma_gemm_load;
void tma_gemm_load_tile(cptx_kernel *k, const tma_gemm_load *l);

/* n neighbours of C or of the bias as f32, 4 to 32 bytes; 0 where the predicate is false. */
void tma_gemm_load_row(cptx_kernel *k, cptx_val at, enum cptx_type type, uint32_t n, cptx_val inside, cptx_val *to);
/* An element of D: alpha, beta * c, bias, epilogue; c and bias are NONE where there is none. */
cptx_val tma_gemm_value(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val sum, cptx_val c, cptx_val bias,
                        cptx_val row, cptx_val col);
/* The address of C at (row, col) of matrix z. */
cptx_val tma_gemm_c_at(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val row, cptx_val col, cptx_val z);
/* Two f32 as one register of D's 16-bit type. */
cptx_val tma_gemm_narrow(cptx_kernel *k, enum cptx_type out, cptx_val low, cptx_val high, cptx_val into);

#endif
