/* The GEMM that `cptx gemm` and its check work with: one of the library's two generators, behind the same calls. */
#ifndef CPTX_GEMM_KIND_H
#define CPTX_GEMM_KIND_H

#include <cptx/gemm_sm90.h>
#include <cptx/kernels.h>

typedef struct gemm_kind {
	bool wgmma;        /* TMA and wgmma (sm_90a), else cp.async and mma.sync */
	cptx_gemm_opt mma; /* one of both counts */
	cptx_gemm_sm90_opt sm90;
	uint32_t ctas; /* of a wgmma kernel, as in cptx_gemm_problem */
} gemm_kind;

static inline enum cptx_type gemm_in(const gemm_kind *g) { return g->wgmma ? g->sm90.a : g->mma.in; }
static inline enum cptx_type gemm_out(const gemm_kind *g) { return g->wgmma ? g->sm90.out : g->mma.out; }

/* Options, and with sizes (m not 0) these. */
bool gemm_kind_check(const gemm_kind *g, const cptx_target *target, uint64_t m, uint64_t n, uint64_t k, cptx_error *err);
cptx_kernel *gemm_kind_build(cptx_module *module, const gemm_kind *g, cptx_error *err);
/* "tile 128x256x64, 4 stages ..." */
void gemm_kind_text(const gemm_kind *g, char *text, size_t size);

/* Where the operands of a launch are. */
typedef struct gemm_operands {
	uint64_t m, n, k, a, b, d;
	uint64_t workspace; /* allocated by gemm_kind_launch, 0 if none */
} gemm_operands;
cptx_launch *gemm_kind_launch(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                              gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err);

#endif
