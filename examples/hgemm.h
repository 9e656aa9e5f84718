/* SPDX-License-Identifier: MIT */
/*
 * The ladder of half-precision GEMMs with mma.sync: C[M][N] = A[M][K] * B[K][N], all row-major f16 or bf16, sums in f32.
 * Each rung adds one thing to the one before, and its file says what and why:
 *
 *   hgemm_bcf_dbf_rw      no bank conflicts, double buffers (shared memory and registers), whole rows read and written
 *   hgemm_k_stages        a ring of stages in place of two buffers
 *   hgemm_tma_r_k_stages  the tensor memory accelerator (TMA) reads A and B
 *   hgemm_tma_rw_k_stages TMA writes C too
 *
 * Any M; K and N multiples of 8 (rows that begin at multiples of 16 bytes).
 */
#ifndef EXAMPLES_HGEMM_H
#define EXAMPLES_HGEMM_H

#include <cptx/cptx.h>

enum hgemm_rung { HGEMM_BCF_DBF_RW, HGEMM_K_STAGES, HGEMM_TMA_R, HGEMM_TMA_RW, HGEMM_RUNGS };

typedef struct hgemm_opt {
	uint32_t bm, bn, bk;       /* tile of a CTA, elements; bk: 32 or 64 */
	uint32_t warps_m, warps_n; /* each computes (bm / warps_m) x (bn / warps_n), a multiple of 16 x a multiple of 64 */
	uint32_t stages;           /* tiles of A and B in shared memory, 2 or more; HGEMM_BCF_DBF_RW: 2 */
	enum cptx_type type;       /* CPTX_BF16 or CPTX_F16 */
	uint32_t group;            /* rows of tiles that are worked on together, for the L2 cache, at most 65536; 0: 8 */
	uint32_t most_regs;        /* registers a thread; 0: the compiler's choice */
	bool stmatrix;             /* of sm_90 and later; else st.shared.  HGEMM_TMA_RW always has it */
	uint32_t consumer_regs; /* HGEMM_TMA: of each thread that computes, by setmaxnreg (sm_90a, sm_120a); 0: no setmaxnreg */
	bool rolling;           /* one set of fragments in place of two: fewer registers */
	bool stay;              /* HGEMM_TMA_R: CTAs take tile after tile, with shared memory of their own for C */
	bool along_m;           /* the order of mma.sync: down the rows of C first */
} hgemm_opt;

/* What a launch needs, beside the dynamic shared memory that it takes from the kernel. */
typedef struct hgemm_plan {
	uint32_t threads;
	uint32_t smem;   /* dynamic shared memory, bytes */
	bool tma;        /* tensor maps in place of A and B; HGEMM_TMA_RW: of C too */
	bool persistent; /* as many CTAs as fit, each with one tile after another; else a CTA a tile */
} hgemm_plan;

/* The name of a rung's kernel, as "hgemm_k_stages". */
const char *hgemm_name(enum hgemm_rung rung);
/* Good options for a target: on sm_12x the tile of 128 x 128, 8 warps, elsewhere 128 x 256. */
hgemm_opt hgemm_default(enum hgemm_rung rung, uint32_t bk, enum cptx_type type, const cptx_target *target);
/* Checks options; target NULL: any.  plan may be NULL. */
bool hgemm_check(enum hgemm_rung rung, const hgemm_opt *o, const cptx_target *target, hgemm_plan *plan, cptx_error *err);
/* Adds the kernel; its options must have passed hgemm_check. */
cptx_kernel *hgemm_build(cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o);

/* Parameters (A, B, C pointers, M, N, K u32); grid: one CTA a tile. */
cptx_kernel *hgemm_bcf_dbf_rw(cptx_module *m, const hgemm_opt *o);
cptx_kernel *hgemm_k_stages(cptx_module *m, const hgemm_opt *o);
/* Parameters (map_a, map_b tensor maps of 128 bytes, C, M, N, K); grid: one CTA a tile; opt.stay: that or fewer. */
cptx_kernel *hgemm_tma_r_k_stages(cptx_module *m, const hgemm_opt *o);
/* Parameters (map_a, map_b, map_c, M, N, K); grid: one CTA a tile or fewer. */
cptx_kernel *hgemm_tma_rw_k_stages(cptx_module *m, const hgemm_opt *o);

#endif
