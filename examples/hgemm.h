/* SPDX-License-Identifier: MIT */
/*
 * The ladder of half-precision GEMMs with mma.sync: C[M][N] = A[M][K] * B[K][N], all row-major f16 or bf16, sums in f32.
 * Each kernel adds one technique to the one before, and its file describes it:
 *
 *   hgemm_bcf_dbf_rw      no bank conflicts, double buffers (shared memory and registers), whole rows read and written
 *   hgemm_k_stages        a ring of stages in place of two buffers
 *   hgemm_tma_r_k_stages  the tensor memory accelerator (TMA) reads A and B
 *   hgemm_tma_rw_k_stages TMA writes C too
 *
 * M is any number; K and N are multiples of 8 (rows begin at multiples of 16 bytes).
 */
#ifndef EXAMPLES_HGEMM_H
#define EXAMPLES_HGEMM_H

#include <cptx/cptx.h>

enum hgemm_rung { HGEMM_BCF_DBF_RW, HGEMM_K_STAGES, HGEMM_TMA_R, HGEMM_TMA_RW, HGEMM_RUNGS };

typedef struct hgemm_opt {
	uint32_t bm, bn, bk;       /* tile of a CTA, elements; bk: 32 or 64 */
	uint32_t warps_m, warps_n; /* each computes (bm / warps_m) x (bn / warps_n), a multiple of 16 x a multiple of 64 */
	uint32_t stages;     /* stages of the ring in shared memory, each a tile of A and of B, 2 or more; HGEMM_BCF_DBF_RW: 2 */
	enum cptx_type type; /* CPTX_BF16 or CPTX_F16 */
	uint32_t group;      /* rows of tiles in a group of the rasterization, for the L2 cache, at most 65536; 0: 8 */
	uint32_t most_regs;  /* most registers of a thread; 0: the compiler's choice */
	bool stmatrix;       /* store C's fragments by stmatrix (sm_90 and later); else by st.shared */
	/* HGEMM_TMA: registers of each thread of the MMA warps, by setmaxnreg (sm_90a, sm_120a); 0: no setmaxnreg */
	uint32_t consumer_regs;
	bool rolling; /* keep one set of fragments in place of two: fewer registers */
	bool stay;    /* HGEMM_TMA_R: persistent CTAs, with shared memory of their own for C */
	bool along_m; /* the order of mma.sync is down the rows of C first */
} hgemm_opt;

/* What a launch needs to know, beside the dynamic shared memory, which it takes from the kernel. */
typedef struct hgemm_plan {
	uint32_t threads;
	uint32_t smem;   /* dynamic shared memory, bytes */
	bool tma;        /* A and B are tensor maps; HGEMM_TMA_RW: C too */
	bool persistent; /* launch as many CTAs as fit, each for several tiles; else one CTA for each tile */
} hgemm_plan;

/* The name of a kernel, "hgemm_k_stages". */
const char *hgemm_name(enum hgemm_rung rung);
/* Good options for a target: on sm_12x the tile of 128 x 128, 8 warps, elsewhere 128 x 256. */
hgemm_opt hgemm_default(enum hgemm_rung rung, uint32_t bk, enum cptx_type type, const cptx_target *target);
/* Checks options; target NULL: any.  plan may be NULL. */
bool hgemm_check(enum hgemm_rung rung, const hgemm_opt *o, const cptx_target *target, hgemm_plan *plan, cptx_error *err);
/* Adds the kernel; its options must have passed hgemm_check. */
cptx_kernel *hgemm_build(cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o);

/* Parameters (A, B, C pointers, M, N, K u32); grid: one CTA for each tile. */
cptx_kernel *hgemm_bcf_dbf_rw(cptx_module *m, const hgemm_opt *o);
cptx_kernel *hgemm_k_stages(cptx_module *m, const hgemm_opt *o);
/* Parameters (map_a, map_b tensor maps of 128 bytes, C, M, N, K); grid: one CTA for each tile; with opt.stay that or fewer.
 */
cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o);
/* Parameters (map_a, map_b, map_c, M, N, K); grid: any number of CTAs. */
cptx_kernel *hgemm_tma_rw_k_stages(cptx_module *m, const hgemm_opt *o);

#endif
