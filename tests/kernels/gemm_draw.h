/* SPDX-License-Identifier: MIT */
/* Options of the GEMM kernels at random: what the tests run, assemble, and compare between compilers. */
#ifndef GEMM_DRAW_H
#define GEMM_DRAW_H

#include "gemm_trial.h"
#include "reference/number.h"

static inline uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)((number_random(s) >> 33) % n); }
#define ONE_OF(s, ...) ((uint32_t[]){ __VA_ARGS__ })[below(s, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))]

/* What a kernel multiplies. */
typedef struct gemm_kind {
	enum cptx_gemm_mma mma;
	enum cptx_tcgen05_kind kind; /* of tcgen05 */
	enum cptx_type a, b, scale;
	bool half; /* differs from another one by its types alone: tests run half of the shapes */
} gemm_kind;
enum { GEMM_SM100_KINDS = 12, GEMM_SM120_KINDS = 5 };
extern const gemm_kind gemm_sm100_kinds[GEMM_SM100_KINDS], gemm_sm120_kinds[GEMM_SM120_KINDS];
/* The options, for that kind. */
cptx_gemm_opt gemm_of_kind(const gemm_kind *kind, cptx_gemm_opt o);

/* Sizes are rounded up to what tensor maps take; of sm_120 tiles and warps too. */
void gemm_fit_sm100(gemm_trial *t);
void gemm_fit_sm120(gemm_trial *t);

/* A trial for a seed, the same with every compiler.  cptx_gemm_check refuses some of them. */
gemm_trial gemm_draw_sm80(uint64_t seed);
gemm_trial gemm_draw_sync_tma(uint64_t seed);
gemm_trial gemm_draw_sm90(uint64_t seed);
gemm_trial gemm_draw_experts(uint64_t seed);
gemm_trial gemm_draw_sm100(uint64_t seed);
gemm_trial gemm_draw_sm120(uint64_t seed);

#endif
