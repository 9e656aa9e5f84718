/* What the parts of the sm_90a GEMM share: shapes derived from its options, and the state of a kernel while it is built. */
#ifndef KERNELS_GEMM_SM90_H
#define KERNELS_GEMM_SM90_H

#include <cptx/gemm_sm90.h>
#include <cptx/pipeline.h>

#include "base/base.h"

enum {
	WARPGROUP = 128,
	BLOCK_M = 64,
	SPAN = 128 /* bytes along K of a stage */,
	SMEM_MOST = 227 * 1024,
	STATIC_SMEM = 1024
};

/* Numbers that follow from the options. */
typedef struct gemm_shape {
	uint32_t in_bytes, out_bytes, bk;
	uint32_t consumers; /* warpgroups: 1 to 3 */
	uint32_t blocks;    /* of 64 rows, a warpgroup */
	uint32_t cluster, cluster_m, cluster_n;
	uint32_t a_bytes, b_bytes; /* of a stage */
	uint32_t acc;              /* accumulators of a thread */
	uint32_t out_cols;         /* of D that one store writes, for 64 rows */
	uint32_t store_buffers;    /* such pieces in shared memory, a warpgroup */
	cptx_tile a, b, d;
} gemm_shape;

/* Clusters that are resident at once where there is one CTA on each of `ctas` multiprocessors; at least 1. */
uint32_t gemm_sm90_resident(uint32_t ctas, uint32_t cluster);

/* Cluster tiles of one matrix. */
uint64_t gemm_sm90_tiles(const cptx_gemm_sm90_opt *opt, const gemm_shape *s, const cptx_gemm_problem *p);

gemm_shape gemm_sm90_shape(const cptx_gemm_sm90_opt *opt);

typedef struct gemm90 {
	cptx_kernel *k;
	const cptx_gemm_sm90_opt *o;
	gemm_shape s;
	/* parameters; maps are generic addresses */
	cptx_val map_a, map_b, map_d, M, N, K, batch, alpha, beta, C, bias, workspace;
	cptx_pipe pipe;
	cptx_val ring, stores; /* addresses in shared memory */
	cptx_val ring_desc;    /* of the ring, for descriptors */
	cptx_val tid, group /* warpgroup, uniform */, rank /* in the cluster */;
	cptx_val cluster, clusters; /* number of this one, and how many there are */
	cptx_val tiles_m, tiles_n, tiles, k_tiles;
	cptx_val at, end, step; /* the loop over the work of this CTA; see gemm_sm90_work.c */
	/* with stream_k: tiles and clusters that share none; K tiles that are shared, and those of this cluster */
	cptx_val whole_tiles, own, shared, shared_first, shared_end;
	/* what is done now: a tile of this CTA from (m0, n0) on, and its K tiles */
	cptx_val tile, m0, n0, z, k_first, k_end;
	/* consumers */
	cptx_val wg /* 0 to consumers - 1 */, lane /* in the warpgroup */, acc, barrier;
	/* where a thread stores results: of f32 an address, else lines of stmatrix */
	cptx_val store_at;
	cptx_lines lines;
	cptx_lane_lines lane_lines;
} gemm90;

/* The loop over the work of a CTA: at = begin; while at < end: gemm_sm90_locate, the K tiles k_first .. k_end - 1, at +=
 * step. */
void gemm_sm90_work_begin(gemm90 *g);
void gemm_sm90_locate(gemm90 *g);

/* From the accumulators to D; all threads of a warpgroup. */
void gemm_sm90_epilogue_begin(gemm90 *g);
void gemm_sm90_epilogue(gemm90 *g);
/* With stream_k, and a part of a tile in the accumulators: the predicate holds if these have the sum of all parts behind it.
 */
cptx_val gemm_sm90_reduce(gemm90 *g);

#endif
