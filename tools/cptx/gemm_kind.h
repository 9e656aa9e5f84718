/* The GEMM that `cptx gemm` and its check work with: one of the library's generators, behind the same calls. */
#ifndef CPTX_GEMM_KIND_H
#define CPTX_GEMM_KIND_H

#include <cptx/gemm_sm100.h>
#include <cptx/gemm_sm120.h>
#include <cptx/gemm_sm90.h>
#include <cptx/kernels.h>

/* What multiplies. */
enum gemm_with {
	GEMM_MMA,        /* cp.async and mma.sync, from sm_80 on */
	GEMM_WGMMA,      /* TMA and wgmma: sm_90a */
	GEMM_TCGEN05,    /* TMA, tcgen05.mma and tensor memory: sm_100a, sm_103a */
	GEMM_BLOCK_SCALE /* TMA and mma.sync with scale factors: sm_120a, sm_121a */
};

typedef struct gemm_kind {
	enum gemm_with with;
	cptx_gemm_opt mma; /* one of these counts */
	cptx_gemm_sm90_opt sm90;
	cptx_gemm_sm100_opt sm100;
	cptx_gemm_sm120_opt sm120;
	uint32_t ctas; /* as in cptx_gemm_problem; not of the first */
} gemm_kind;

enum cptx_type gemm_in(const gemm_kind *g); /* the type of A */
enum cptx_type gemm_in_b(const gemm_kind *g);
enum cptx_type gemm_out(const gemm_kind *g);
/* Elements that share a scale factor, and the type of that; 0 and CPTX_TYPE_NONE: no factors. */
uint32_t gemm_factors(const gemm_kind *g, enum cptx_type *scale);
/* Asks for a timeline with so many stamps for a warp; only wgmma and tcgen05 have one. */
void gemm_kind_set_timeline(gemm_kind *g, uint32_t stamps);

/* The kind of tcgen05.mma, or mma.sync with scale factors, for A and B of such types and factors of that (NONE: no factors).
 */
enum cptx_tcgen05_kind gemm_tcgen05_kind(enum cptx_type a, enum cptx_type b, enum cptx_type scale);

/* Options, and with sizes (m not 0) these. */
bool gemm_kind_check(const gemm_kind *g, const cptx_target *target, uint64_t m, uint64_t n, uint64_t k, cptx_error *err);
cptx_kernel *gemm_kind_build(cptx_module *module, const gemm_kind *g, cptx_error *err);
/* "tile 128x256x64, 4 stages ..." */
void gemm_kind_text(const gemm_kind *g, char *text, size_t size);

/* Where the operands of a launch are. */
typedef struct gemm_operands {
	uint64_t m, n, k, a, b, d;
	uint64_t scale_a, scale_b;    /* of block-scaled kinds */
	uint64_t workspace, timeline; /* allocated by gemm_kind_launch, 0 if none */
	cptx_timeline_layout line;    /* with a timeline */
} gemm_operands;
cptx_launch *gemm_kind_launch(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                              gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err);

#endif
