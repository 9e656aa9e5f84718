/* SPDX-License-Identifier: MIT */
/*
 * A ladder of GEMMs for tcgen05 (sm_100a, sm_103a): D = A * B^T, A of M x K, B of N x K, both K-major, .bf16 or .f16, sums
 * in f32, D of M x N in the same type or f32.  Each rung is a file of its own and adds one thing to the rung below; all are
 * made of the kernel kit (docs/kernel_kit.md).
 */
#ifndef BLACKWELL_LADDER_H
#define BLACKWELL_LADDER_H

#include "reference/gemm_check.h"

#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <cptx/tmem.h>

/** What a kernel is built for. */
typedef struct ladder_opt {
	enum cptx_type in, out; /**< CPTX_BF16 or CPTX_F16; the same or CPTX_F32 */
	uint32_t m, n, k;       /**< tile of D, and of the operands along K, in elements; of a pair of CTAs: of both together */
	uint32_t stages;        /**< of the pipeline of A and B */
	uint32_t timeline;      /**< of persistent rungs: stamps of a warp; 0: none */
} ladder_opt;

typedef struct gemm gemm;
typedef struct gemm_at gemm_at;
typedef struct ladder_rung ladder_rung;
struct ladder_rung {
	const char *name, *about;
	ladder_opt tile; /**< used if nothing else is said */
	enum cptx_swizzle swizzle;
	bool whole;                        /**< the maps of A and B have three dimensions, and one copy fills a tile */
	bool pair;                         /**< two CTAs work together */
	enum cptx_tiles_schedule schedule; /**< GRID: a tile for each CTA (pair); else CTAs stay, and warps have one role each */
	bool store_map;                    /**< D is stored by TMA */
	bool staged;                       /**< has a pipeline of `stages`; else of one */
	void (*mainloop)(gemm *g, const gemm_at *at); /**< GRID: starts all copies and products of a tile, and commits them */
};

extern const ladder_rung rung_v1a, rung_v1b, rung_v2a, rung_v2b, rung_v3, rung_v4, rung_v5, rung_v6, rung_v7;

/** Checks tile and problem against what the rung can do; false: the rule that is broken. */
bool ladder_check(const ladder_rung *rung, const ladder_opt *o, uint64_t m, uint64_t n, uint64_t k, cptx_error *err);
/** Adds the rung's kernel, "gemm". */
void ladder_build(cptx_module *m, const ladder_rung *rung, const ladder_opt *o);

/* ---- what host and kernel agree on ---- */

enum {
	ROWS = 128 /* of A and D in a CTA: the lanes of tensor memory */,
	EPILOGUE_WARPS = 4,
	STORE_COLS = 64,  /* columns of D that store_map rungs round at once, in two tiles */
	STORE_STAGES = 2, /* tiles of D of a warp in shared memory */
};

/** What a launch fills the parameters from. */
typedef struct ladder_args {
	cptx_tensor_map_opt A, B, D_map; /**< D_map: of rungs with store_map */
	uint64_t D, timeline;            /**< D: of the others */
	uint32_t M, N, K;
} ladder_args;
enum { LADDER_PARTS = 4 };
/** The tables of a rung's parameters, for that struct (NULL: to declare them); how many. */
uint32_t ladder_params(const ladder_rung *rung, const ladder_opt *o, const ladder_args *args,
                       cptx_params_part part[LADDER_PARTS]);
/** A (of_b: B) of one CTA. */
cptx_operand_opt ladder_operand(const ladder_rung *rung, const ladder_opt *o, bool of_b);
/** The tile of D that a warp has TMA store at once. */
cptx_tile ladder_d_tile(const ladder_opt *o);
/** Threads of a CTA. */
uint32_t ladder_threads(const ladder_rung *rung);

/* ---- what the rungs share ---- */

/** Where a CTA's part of a tile of D begins. */
struct gemm_at {
	cptx_val row, col;
	cptx_val col_b; /**< first row of B that the CTA loads; col, in a pair's second CTA half a tile further on */
};

/** A kernel under way. */
struct gemm {
	cptx_kernel *k;
	const ladder_rung *rung;
	const ladder_opt *o;
	bool stays, cancels; /**< CTAs take tile after tile; by canceling others */
	cptx_params params;
	cptx_roles roles;
	cptx_tiles tiles;
	cptx_operand a, b;
	cptx_val word_a, word_b; /**< descriptors of their stage 0 */
	cptx_pipe stages, accs;  /**< of A and B; of accumulators, from the products to the epilogue */
	cptx_tiled_mma mma;
	cptx_tmem tmem;
	cptx_epilogue epilogue;
	cptx_epilogue_ring ring;
	cptx_timeline line;
	cptx_val D, K;   /**< D: of rungs without store_map */
	cptx_val rank;   /**< of the CTA in the pair; NONE without one */
	cptx_val lane_0; /**< predicate */
	cptx_val pair;   /**< the mask of both CTAs; NONE without a pair */
};

/** Where the CTA's part of a tile begins. */
gemm_at gemm_place(const gemm *g, const cptx_tiles_at *t);
/** At stage 0 of the pipeline, for the thread that has TMA copy. */
cptx_pipe_at gemm_producer(const gemm *g);
/** Waits until the next stage is empty, and starts the copies of A and B at column `at_k` to it. */
void gemm_load(const gemm *g, const gemm_at *at, cptx_val at_k, cptx_pipe_at *here);
/** Loads the stages of all of K: the producer's loop for a tile. */
void gemm_load_all(const gemm *g, const gemm_at *at, cptx_pipe_at *here);
/** The accumulator of that stage. */
cptx_acc gemm_acc(const gemm *g, const cptx_pipe_at *accs);
/** Waits until the next stage is full, and starts its products, which release it; those of column 0 overwrite D. */
void gemm_multiply(const gemm *g, const cptx_acc *acc, cptx_val at_k, cptx_pipe_at *here);
/** The accumulator is full when all products so far are complete: in both CTAs of a pair. */
void gemm_commit(const gemm *g, cptx_pipe_at *accs);
/** All products of a tile: the loop of the thread that starts them. */
void gemm_multiply_all(const gemm *g, cptx_pipe_at *here, cptx_pipe_at *accs);
/** Waits until the next accumulator is full, and stores it; all threads of warps 0 to 3.  Where CTAs stay, releases it. */
void gemm_store(gemm *g, const gemm_at *at, cptx_pipe_at *accs);

/** The mainloop of v1a to v2b: copies and products of one stage after the other. */
void serial_mainloop(gemm *g, const gemm_at *at);
/** The kernel of v6 and v7, behind its setup. */
void persistent_build(gemm *g);

/* ---- running ---- */

/** Builds, runs on the device, compares every element. */
bool ladder_run(cptx_device *dev, const ladder_rung *rung, const ladder_opt *o, const gemm_problem *p, gemm_report *r,
                cptx_error *err);
/** Runs a module that the rung built (and that was edited, say). */
bool ladder_run_module(cptx_device *dev, cptx_module *m, const ladder_rung *rung, const ladder_opt *o, const gemm_problem *p,
                       gemm_report *r, cptx_error *err);
/** The program of a rung. */
int ladder_main(const ladder_rung *rung, int argc, char **argv);

#endif
