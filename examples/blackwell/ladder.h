/* SPDX-License-Identifier: MIT */
/*
 * A ladder of GEMMs for tcgen05 (sm_100a, sm_103a): D = A * B^T, A of M x K, B of N x K, both K-major, .bf16 or .f16, sums
 * in f32, D of M x N in the same type or f32.  Each rung is a file of its own and adds one thing to the rung below.
 *
 * Kernel parameters of all rungs: tensor map of A, of B, D (pointer; of rungs with `store_map` a tensor map), M, N, K, and
 * with a timeline its buffer.
 */
#ifndef BLACKWELL_LADDER_H
#define BLACKWELL_LADDER_H

#include <cptx/device.h>
#include "reference/gemm_check.h"
#include <cptx/pipeline.h>
#include <cptx/scheduler.h>
#include <cptx/tmem.h>

/** What a kernel is built for. */
typedef struct ladder_opt {
	enum cptx_type in, out; /**< CPTX_BF16 or CPTX_F16; the same or CPTX_F32 */
	uint32_t m, n, k;       /**< tile of D, and of the operands along K, in elements; of a pair of CTAs: of both together */
	uint32_t stages;        /**< tiles under way in shared memory */
	uint32_t timeline;      /**< of persistent rungs: stamps of a warp; 0: none */
} ladder_opt;

typedef struct ladder_rung ladder_rung;
struct ladder_rung {
	const char *name, *about;
	ladder_opt tile; /**< used if nothing else is said */
	enum cptx_swizzle swizzle;
	bool whole;      /**< the maps of A and B have three dimensions, and one copy fills a tile */
	bool pair;       /**< two CTAs work together */
	bool persistent; /**< one CTA (pair) for each SM (two SMs), not for each tile */
	bool dynamic;    /**< as many CTAs as tiles, most of them cancelled */
	bool store_map;  /**< D leaves by a tensor map */
	bool staged;     /**< has a pipeline of `stages` */
	void (*build)(cptx_module *m, const ladder_rung *rung, const ladder_opt *o);
};

extern const ladder_rung rung_v1a, rung_v1b, rung_v2a, rung_v2b, rung_v3, rung_v4, rung_v5, rung_v6, rung_v7;

/** Checks tile and problem against what the rung can do; false: the rule that is broken. */
bool ladder_check(const ladder_rung *rung, const ladder_opt *o, uint64_t m, uint64_t n, uint64_t k, cptx_error *err);

/* ---- what the rungs are made of ---- */

enum {
	WARP_THREADS = 32,
	ROWS = 128 /* of D in a CTA: the lanes of tensor memory */,
	STAGED = 8 /* pieces of D under way */
};
/** The piece of D that a warp sends off at once: 32 rows of 128 bytes. */
cptx_tile ladder_staged(const ladder_opt *o);

/** A kernel under way.  A CTA has `rows` = 128 rows of A and D, and b.rows rows of B (of a pair: half of them). */
typedef struct gemm {
	cptx_kernel *k;
	const ladder_rung *rung;
	const ladder_opt *o;
	cptx_tile a, b; /**< one stage in shared memory */
	uint32_t stage_bytes;
	cptx_val map_a, map_b, map_d, d, M, N, K; /**< parameters */
	cptx_val tid, warp, rank;                 /**< rank: in the cluster; NONE without a pair */
	cptx_val smem_a, smem_b;                  /**< addresses of stage 0 */
	cptx_val word_a, word_b;                  /**< descriptors of it */
	uint32_t idesc;
	cptx_timeline line;
} gemm;

/** Opens the kernel "gemm", declares parameters, and sets shared memory aside. */
gemm gemm_begin(cptx_module *m, const ladder_rung *rung, const ladder_opt *o, uint32_t threads);
/** The predicate value == n, of .u32. */
cptx_val gemm_is(const gemm *g, cptx_val value, uint32_t n);
/** One lane of the warp, chosen by the hardware; for the whole warp to execute. */
cptx_val gemm_elect(const gemm *g);
/** Waits for the end of the phase of that parity; acquires what came with it. */
void gemm_wait(const gemm *g, cptx_val mbar, cptx_val parity);

/** Where a tile of D is: its first row and column, of the CTA itself. */
typedef struct gemm_at {
	cptx_val row, col;
	cptx_val col_b; /**< first row of B that the CTA loads; col, of a pair's second CTA half a tile further on */
} gemm_at;
/** Of the CTA with that %ctaid. */
gemm_at gemm_at_ctaid(const gemm *g, cptx_val x, cptx_val y);
/** Of a CTA of a cluster that works on that tile; tiles are counted along M first, which shares what is read of B. */
gemm_at gemm_at_tile(const gemm *g, cptx_val tile);
cptx_val gemm_tiles(const gemm *g);

/** Starts the copies of A and B for the tile at column `at_k` to a stage; they complete stage_bytes at the mbarrier. */
void gemm_load(const gemm *g, const gemm_at *at, cptx_val at_k, cptx_val stage, cptx_val mbar);
/** Starts the products of a stage: acc = or += A * B^T; adds: a predicate, whether the first of them adds. */
void gemm_mma(const gemm *g, cptx_val acc, cptx_val stage, cptx_val adds);
/** The mbarrier completes when all products that this thread started have.  Of a pair: in both CTAs. */
void gemm_commit(const gemm *g, cptx_val mbar);
/** All of K for a tile: what the thread that loads does, and the thread that multiplies; `here` is its place in the ring. */
void gemm_load_all(const gemm *g, const gemm_at *at, const cptx_pipe *pipe, cptx_pipe_at *here);
void gemm_mma_all(const gemm *g, cptx_val acc, const cptx_pipe *pipe, cptx_pipe_at *here);

/** Who waits for an accumulator to be read: its stage is released by one lane of each warp as soon as that is so. */
typedef struct gemm_reader {
	const cptx_pipe *pipe;
	cptx_pipe_at *here;
	cptx_val lane; /**< predicate */
} gemm_reader;
/** Reads columns c to c + num - 1 of the warp's 32 lanes at acc: a row a thread.  After the last ones, releases. */
cptx_val gemm_read(const gemm *g, cptx_val acc, uint32_t c, uint32_t num, const gemm_reader *reader);
/** 16 bytes of a row of D, as four registers, from column `first` of what was read on. */
cptx_val gemm_packed(const gemm *g, cptx_val v, uint32_t first);
/** Reads the accumulator at acc, 128 lanes by n columns, and writes it to D; by 4 warps of numbers w, w % 4 all different.
 * reader: NULL if nobody waits. */
void gemm_epilogue(const gemm *g, cptx_val acc, const gemm_at *at, const gemm_reader *reader);

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
