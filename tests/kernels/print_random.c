/* SPDX-License-Identifier: MIT */
/*
 * print_random N [FIRST]: a line for each of N kernels, or of those from number FIRST on, of every generator in turn with
 * options at random: number, generator, options, bytes and hash of its PTX.  print_random --show I: the PTX of line I.  The
 * builds of all compilers print the same, which tests/run-all compares.
 */
#include "gemm_draw.h"

#include "../blackwell/rungs.h"
#include "examples.h"
#include "hgemm.h"

#include <cptx/attention_backward.h>
#include <cptx/attention_decode.h>
#include <cptx/rows.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWS = 2000, TEXT = 500 };

/* A kernel to be: what is drawn for a seed.  which: the generator's, of several that are drawn alike. */
typedef struct drawn {
	const char *target;
	char text[TEXT]; /* its options */
	cptx_module *m;  /* with the kernel */
} drawn;
typedef bool drawing(uint64_t seed, uint32_t which, drawn *d); /* false: the options are refused */

/* Experts in the place of lists and batches, of generators whose trials draw none. */
static gemm_trial with_experts(gemm_trial t, uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed + 1);
	cptx_gemm_opt *o = &t.opt;

	o->size = CPTX_OPT_SIZE(cptx_gemm_opt), o->grouped = o->batched = o->stream_k = false;
	o->experts =
		(enum cptx_gemm_experts)ONE_OF(&s, CPTX_GEMM_EXPERTS_CONTIGUOUS, CPTX_GEMM_EXPERTS_MASKED, CPTX_GEMM_EXPERTS_K);
	o->a_m_major = o->experts == CPTX_GEMM_EXPERTS_K;
	o->b_n_major |= o->experts == CPTX_GEMM_EXPERTS_K;
	return t;
}

static gemm_trial draw_experts_sync(uint64_t seed)
{
	return with_experts(seed & 1 ? gemm_draw_sm80(seed) : gemm_draw_sync_tma(seed), seed);
}

static gemm_trial draw_experts_sm100(uint64_t seed) { return with_experts(gemm_draw_sm100(seed), seed); }

static bool draw_gemm(uint64_t seed, uint32_t which, drawn *d)
{
	static gemm_trial (*const draw[])(uint64_t) = { gemm_draw_sm80,    gemm_draw_sm90,     gemm_draw_sm100,
		                                            gemm_draw_sm120,   gemm_draw_sync_tma, draw_experts_sync,
		                                            gemm_draw_experts, draw_experts_sm100 };
	static const char *const targets[] = {
		"sm_90a", "sm_90a", "sm_100a", "sm_120a", "sm_90a", "sm_90a", "sm_90a", "sm_100a"
	};
	gemm_trial t = draw[which](seed);
	cptx_gemm_opt *o = &t.opt;
	uint64_t s = gemm_trial_random(seed + 1);
	bool listed = below(&s, 4) == 0, timed = below(&s, 4) == 0;
	cptx_error err = { .code = CPTX_OK };

	/* what trials do not draw, since a run needs more for it */
	if (which && listed && !o->stream_k && !o->batched && !o->experts)
		o->grouped = true;
	if (which && timed && !o->grouped)
		o->timeline = 64;
	snprintf(d->text, sizeof d->text, "%s%s", gemm_trial_text(&t),
	         o->timeline  ? ", timeline"
	         : o->grouped ? ", grouped"
	                      : "");
	d->target = targets[which];
	return cptx_gemm_check(o, cptx_target_find(d->target), NULL, &err) && cptx_gemm_build(d->m, o, &err);
}

static bool draw_hgemm(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	hgemm_opt o = { .bm = 16 * (1 + below(&s, 16)) };
	cptx_error err = { .code = CPTX_OK };

	o.bn = 64 * (1 + below(&s, 8)), o.bk = ONE_OF(&s, 32, 64);
	o.warps_m = ONE_OF(&s, 1, 2, 4, 8), o.warps_n = ONE_OF(&s, 1, 2, 4, 8);
	o.stages = which == HGEMM_BCF_DBF_RW ? 2 : 2 + below(&s, 4);
	o.type = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_F16);
	o.group = below(&s, 4), o.most_regs = ONE_OF(&s, 0, 0, 128), o.consumer_regs = ONE_OF(&s, 0, 0, 216, 232);
	o.stmatrix = below(&s, 2), o.rolling = below(&s, 2), o.along_m = below(&s, 2), o.stay = below(&s, 2);
	snprintf(
		d->text, sizeof d->text,
		"%ux%ux%u, %ux%u warps, %u stages, %s, group %u, %u and %u registers, stmatrix %d, rolling %d, along M %d, stay %d",
		o.bm, o.bn, o.bk, o.warps_m, o.warps_n, o.stages, cptx_type_name(o.type), o.group, o.most_regs, o.consumer_regs,
		o.stmatrix, o.rolling, o.along_m, o.stay);
	d->target = "sm_90a";
	return hgemm_check((enum hgemm_rung)which, &o, cptx_target_find(d->target), NULL, &err) &&
	       hgemm_build(d->m, (enum hgemm_rung)which, &o);
}

static bool draw_ladder(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	const ladder_rung *rung = rungs[which];
	ladder_opt o = rung->tile;
	cptx_error err = { .code = CPTX_OK };

	o.in = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_F16);
	o.out = below(&s, 2) ? o.in : CPTX_F32;
	o.n = 16 * (1 + below(&s, 16)), o.k = ONE_OF(&s, 16, 32, 64, 128), o.stages = 2 + below(&s, 6);
	o.timeline = below(&s, 3) ? 0 : 32;
	snprintf(d->text, sizeof d->text, "%ux%ux%u, %s to %s, %u stages, %u stamps", o.m, o.n, o.k, cptx_type_name(o.in),
	         cptx_type_name(o.out), o.stages, o.timeline);
	d->target = "sm_100a";
	if (!ladder_check(rung, &o, 512, 512, 512, &err))
		return false;
	ladder_build(d->m, rung, &o);
	return true;
}

static bool draw_row(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	uint32_t n = 4 * (1 + below(&s, 4000)), threads = 32u << below(&s, 6), unroll = 1 + below(&s, 8);

	d->target = "sm_75";
	snprintf(d->text, sizeof d->text, "rows of %u, %u threads, unrolled %u times", n, threads, unroll);
	switch (which) {
	case 0: return rms_norm(d->m, n, threads);
	case 1: return softmax(d->m, n, threads);
	case 2: return swiglu(d->m, threads, unroll);
	default: return saxpy(d->m);
	}
}

static bool draw_attention(uint64_t seed, uint32_t which, drawn *d)
{
	static const char *const targets[CPTX_ATTENTION_MMAS] = { "sm_90", "sm_90a", "sm_100a" };
	uint64_t s = gemm_trial_random(seed);
	cptx_attention_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = (enum cptx_attention_mma)which };
	cptx_error err = { .code = CPTX_OK };

	o.in = ONE_OF(&s, CPTX_BF16, CPTX_F16), o.dim = 8 * (1 + below(&s, 24)), o.dim_v = 8 * below(&s, 24);
	o.causal = below(&s, 2), o.window = below(&s, 2), o.softcap = below(&s, 2), o.lse = below(&s, 2);
	o.bk = 16 * below(&s, 9), o.stages = ONE_OF(&s, 0, 2, 3);
	o.tma = which == CPTX_ATTENTION_SYNC && below(&s, 2);
	o.sinks = below(&s, 2), o.varlen = below(&s, 2), o.page = ONE_OF(&s, 0, 16, 128);
	if (which == CPTX_ATTENTION_WGMMA && below(&s, 2))
		o.in = CPTX_E4M3;
	o.out = ONE_OF(&s, 0, 0, CPTX_F32, o.in), o.bq = ONE_OF(&s, 0, 0, 64, 128, 256);
	o.pack = which == CPTX_ATTENTION_WGMMA ? ONE_OF(&s, 0, 1, 2, 4) : 0;
	o.fast_ex2 = which == CPTX_ATTENTION_TCGEN05 && below(&s, 2);
	snprintf(d->text, sizeof d->text, "%s to %s, %ux%u, %u by %u keys, %u stages, %d%d%d%d%d%d%d%d, pages of %u, %u packed",
	         cptx_type_name(o.in), cptx_type_name(o.out), o.dim, o.dim_v, o.bq, o.bk, o.stages, o.causal, o.window,
	         o.softcap, o.lse, o.tma, o.sinks, o.varlen, o.fast_ex2, o.page, o.pack);
	d->target = targets[which];
	return cptx_attention_check(&o, cptx_target_find(d->target), NULL, &err) && cptx_attention_build(d->m, &o, &err);
}

static bool draw_decode(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	cptx_attention_decode_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_decode_opt) };
	cptx_error err = { .code = CPTX_OK };

	o.in = ONE_OF(&s, CPTX_BF16, CPTX_F16), o.out = ONE_OF(&s, 0, 0, CPTX_F32);
	o.dim = 8 * (1 + below(&s, 32)), o.dim_v = below(&s, 3) ? 0 : 8 * (1 + below(&s, 32));
	o.causal = below(&s, 2), o.window = o.causal && below(&s, 2), o.softcap = below(&s, 2);
	o.paged = below(&s, 2), o.lse = below(&s, 2);
	o.rows = ONE_OF(&s, 0, 16, 32), o.bk = ONE_OF(&s, 0, 16, 32, 64), o.warps = ONE_OF(&s, 0, 1, 2, 4, 8);
	o.stages = ONE_OF(&s, 0, 2, 3, 4, 8), o.overlap = below(&s, 2);
	if (which) /* latent */
		o.mla = true, o.dim = 64 * (1 + below(&s, 9)), o.dim_v = 128 * (1 + below(&s, 4)), o.rows = o.bk = o.warps = 0;
	d->target = which || o.overlap || below(&s, 2) ? "sm_90a" : "sm_80";
	snprintf(d->text, sizeof d->text, "%s, %s, %ux%u, %u rows, %u keys, %u warps, %u stages, %d%d%d%d%d%d", d->target,
	         cptx_type_name(o.in), o.dim, o.dim_v, o.rows, o.bk, o.warps, o.stages, o.causal, o.window, o.softcap, o.paged,
	         o.lse, o.overlap);
	return cptx_attention_decode_check(&o, cptx_target_find(d->target), NULL, &err) &&
	       cptx_attention_decode_build(d->m, &o, &err);
}

static bool draw_backward(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	cptx_attention_backward_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt) };
	cptx_error err = { .code = CPTX_OK };

	o.mma = (enum cptx_attention_mma)which, o.in = ONE_OF(&s, CPTX_BF16, CPTX_F16), o.dim = 8 * (1 + below(&s, 16));
	o.causal = below(&s, 2), o.window = below(&s, 3) == 0, o.top_left = (o.causal || o.window) && below(&s, 2);
	o.deterministic = below(&s, 2), o.softcap = below(&s, 3) == 0;
	o.varlen = below(&s, 3) == 0;
	o.bq = ONE_OF(&s, 0, 32, 64), o.bk = ONE_OF(&s, 0, 64, 128), o.stages = ONE_OF(&s, 0, 2, 3, 4);
	o.sm90 = which == CPTX_ATTENTION_SYNC && below(&s, 2);
	d->target = o.sm90 || which == CPTX_ATTENTION_WGMMA ? "sm_90a" : "sm_80";
	snprintf(d->text, sizeof d->text, "%s, %s, %u, %u queries, %u keys, %u stages, %d%d%d%d%d%d", d->target,
	         cptx_type_name(o.in), o.dim, o.bq, o.bk, o.stages, o.causal, o.window, o.top_left, o.deterministic, o.softcap,
	         o.varlen);
	return cptx_attention_backward_check(&o, cptx_target_find(d->target), NULL, &err) &&
	       cptx_attention_backward_build(d->m, &o, &err);
}

/* Kernels over rows in one of the shapes that the model offers for some number of rows. */
static bool draw_rows(uint64_t seed, uint32_t which, drawn *d)
{
	enum { SHAPES = 8 };
	uint64_t s = gemm_trial_random(seed);
	cptx_rows_opt o = { .size = CPTX_OPT_SIZE(cptx_rows_opt) };
	cptx_rows_choice choice[SHAPES];
	cptx_error err = { .code = CPTX_OK };

	(void)which;
	o.kernel = (enum cptx_rows_kernel)(1 + below(&s, CPTX_ROWS_KERNELS - 1));
	o.in = ONE_OF(&s, CPTX_F32, CPTX_F16, CPTX_BF16), o.weight = ONE_OF(&s, 0, 0, CPTX_F32, CPTX_BF16);
	o.out = ONE_OF(&s, 0, 0, 0, CPTX_F32, CPTX_BF16, CPTX_E4M3, CPTX_E2M1), o.index = ONE_OF(&s, 0, CPTX_S32);
	o.n = below(&s, 2) ? 8 * (1 + below(&s, 2000)) : below(&s, 8) ? 1 + below(&s, 4000) : 1 + below(&s, CPTX_ROWS_MOST);
	o.align = ONE_OF(&s, 0, 0, 1, 2, 8), o.with = below(&s, 2) ? below(&s, 1u << CPTX_ROWS_OPERANDS) : 0;
	o.eps = below(&s, 2) ? 1e-6f : 0, o.smoothing = below(&s, 3) ? 0 : 0.1f, o.z_loss = below(&s, 3) ? 0 : 1e-4f;
	o.ignore = below(&s, 3) == 0, o.tanh = below(&s, 3) == 0, o.heads = below(&s, 4), o.k = below(&s, 9);
	o.place = (enum cptx_rows_place)ONE_OF(&s, CPTX_ROWS_AUTO, CPTX_ROWS_REGISTERS, CPTX_ROWS_MEMORY, CPTX_ROWS_SHARED);
	d->target = ((const char *[]){ "sm_80", "sm_90a", "sm_100a" })[below(&s, 3)];
	size_t n = cptx_rows_auto(&o, cptx_target_find(d->target), 1 + below(&s, 5000), 0, choice, SHAPES, &err);
	if (!n)
		return false;
	o = choice[below(&s, (uint32_t)n)].opt;
	snprintf(d->text, sizeof d->text,
	         "%s, %s, %s to %s, weights %s, rows of %u, aligned %u, with %x, %s, %u threads, %u a row, split %u, %u stages",
	         cptx_rows_kernel_name(o.kernel), d->target, cptx_type_name(o.in), cptx_type_name(o.out),
	         cptx_type_name(o.weight), o.n, o.align, o.with, cptx_rows_place_name(o.place), o.threads, o.per_row, o.split,
	         o.stages);
	return cptx_rows_build(d->m, &o, &err);
}

static bool draw_gemv(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt), .mma = CPTX_GEMM_GEMV };
	cptx_error err = { .code = CPTX_OK };

	(void)which;
	o.a = ONE_OF(&s, CPTX_BF16, CPTX_F16), o.out = ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o.b = ONE_OF(&s, 0, 0, CPTX_U4, CPTX_E2M1, CPTX_E4M3, CPTX_E5M2);
	const bool few = o.b != CPTX_TYPE_NONE;
	o.scale = few && below(&s, 4) ? o.a : CPTX_TYPE_NONE, o.zeros = o.b == CPTX_U4 && o.scale && below(&s, 2);
	o.scale_k = o.scale ? ONE_OF(&s, 0, 64, 128, 256) : 0, o.b = few ? o.b : o.a;
	o.a_m_major = below(&s, 8) == 0, o.b_n_major = !few && below(&s, 2);
	o.warps_m = ONE_OF(&s, 1, 2, 4, 8, 16), o.warps_n = ONE_OF(&s, 1, 2, 4, 8);
	o.bm = ONE_OF(&s, 8, 16, 32, 64), o.bn = o.warps_n * ONE_OF(&s, 16, 32, 64, 128),
	o.bk = ONE_OF(&s, 32, 64, 128, 256, 512);
	o.alpha = below(&s, 3) == 0, o.beta = below(&s, 3) == 0, o.bias = below(&s, 3) == 0,
	o.batched = !few && below(&s, 4) == 0;
	o.strided = below(&s, 3) == 0, o.unaligned = o.strided ? below(&s, 8) : 0;
	d->target = below(&s, 2) ? "sm_90a" : "sm_80";
	snprintf(d->text, sizeof d->text, "%s, %s x %s to %s, factors %s of %u, %d%d%d, %ux%ux%u, %ux%u warps, %d%d%d%d%d, %x",
	         d->target, cptx_type_name(o.a), cptx_type_name(o.b), cptx_type_name(o.out), cptx_type_name(o.scale), o.scale_k,
	         o.zeros, o.a_m_major, o.b_n_major, o.bm, o.bn, o.bk, o.warps_m, o.warps_n, o.alpha, o.beta, o.bias, o.batched,
	         o.strided, o.unaligned);
	return cptx_gemm_check(&o, cptx_target_find(d->target), NULL, &err) && cptx_gemm_build(d->m, &o, &err);
}

/* Weights of few bits by wgmma. */
static bool draw_weights(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt), .mma = CPTX_GEMM_WGMMA, .swap = true };
	cptx_error err = { .code = CPTX_OK };

	(void)which;
	o.a = o.scale = ONE_OF(&s, CPTX_BF16, CPTX_F16), o.b = ONE_OF(&s, CPTX_U4, CPTX_E2M1, CPTX_E4M3, CPTX_E5M2);
	o.out = ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o.scale_k = ONE_OF(&s, 0, 64, 128, 192), o.zeros = o.b == CPTX_U4 && below(&s, 2);
	o.bm = ONE_OF(&s, 64, 128, 192, 256), o.bn = 8 * (1 + below(&s, 16)), o.stages = 2 + below(&s, 6);
	o.cluster_m = ONE_OF(&s, 1, 1, 2, 4), o.cluster_n = o.cluster_m > 1 ? 1 : ONE_OF(&s, 1, 2);
	o.stream_k = below(&s, 3) == 0, o.per_sm = 1 + below(&s, 2);
	o.alpha = below(&s, 3) == 0, o.beta = below(&s, 3) == 0, o.bias = below(&s, 3) == 0;
	d->target = "sm_90a";
	snprintf(d->text, sizeof d->text, "%s x %s to %s, groups of %u, %d, %ux%u, %u stages, %ux%u, %d%u%d%d%d",
	         cptx_type_name(o.a), cptx_type_name(o.b), cptx_type_name(o.out), o.scale_k, o.zeros, o.bm, o.bn, o.stages,
	         o.cluster_m, o.cluster_n, o.stream_k, o.per_sm, o.alpha, o.beta, o.bias);
	return cptx_gemm_check(&o, cptx_target_find(d->target), NULL, &err) && cptx_gemm_build(d->m, &o, &err);
}

static bool draw_quantize(uint64_t seed, uint32_t which, drawn *d)
{
	uint64_t s = gemm_trial_random(seed);
	cptx_gemm_quantize_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_quantize_opt) };
	cptx_error err = { .code = CPTX_OK };

	(void)which;
	o.in = ONE_OF(&s, CPTX_BF16, CPTX_F16, CPTX_F32), o.out = ONE_OF(&s, CPTX_E4M3, CPTX_E5M2);
	o.blocks = below(&s, 2), o.pow2 = below(&s, 2);
	snprintf(d->text, sizeof d->text, "%s to %s, %d%d", cptx_type_name(o.in), cptx_type_name(o.out), o.blocks, o.pow2);
	d->target = "sm_90a";
	return cptx_gemm_quantize_build(d->m, &o, &err);
}

static const struct generator {
	const char *name;
	drawing *draw;
	uint32_t which;
} generators[] = {
	{ "gemm_sm80", draw_gemm, 0 },
	{ "gemm_sm90", draw_gemm, 1 },
	{ "gemm_sm100", draw_gemm, 2 },
	{ "gemm_sm120", draw_gemm, 3 },
	{ "gemm_sync_tma", draw_gemm, 4 },
	{ "hgemm_bcf_dbf_rw", draw_hgemm, HGEMM_BCF_DBF_RW },
	{ "gemm_sm90", draw_gemm, 1 },
	{ "gemm_sm100", draw_gemm, 2 },
	{ "gemm_sm120", draw_gemm, 3 },
	{ "hgemm_k_stages", draw_hgemm, HGEMM_K_STAGES },
	{ "hgemm_tma_r_k_stages", draw_hgemm, HGEMM_TMA_R },
	{ "hgemm_tma_rw_k_stages", draw_hgemm, HGEMM_TMA_RW },
	{ "tcgen05_v1a", draw_ladder, 0 },
	{ "tcgen05_v1b", draw_ladder, 1 },
	{ "tcgen05_v2a", draw_ladder, 2 },
	{ "tcgen05_v2b", draw_ladder, 3 },
	{ "tcgen05_v3", draw_ladder, 4 },
	{ "tcgen05_v4", draw_ladder, 5 },
	{ "tcgen05_v5", draw_ladder, 6 },
	{ "tcgen05_v6", draw_ladder, 7 },
	{ "tcgen05_v7", draw_ladder, 8 },
	{ "attention_sm80", draw_attention, CPTX_ATTENTION_SYNC },
	{ "attention_sm90", draw_attention, CPTX_ATTENTION_WGMMA },
	{ "attention_sm100", draw_attention, CPTX_ATTENTION_TCGEN05 },
	{ "attention_decode", draw_decode, 0 },
	{ "attention_mla", draw_decode, 1 },
	{ "attention_backward_sm80", draw_backward, CPTX_ATTENTION_SYNC },
	{ "attention_backward_sm90", draw_backward, CPTX_ATTENTION_WGMMA },
	{ "rows", draw_rows, 0 },
	{ "gemm_gemv", draw_gemv, 0 },
	{ "gemm_weights", draw_weights, 0 },
	{ "gemm_experts_sync", draw_gemm, 5 },
	{ "gemm_experts_sm90", draw_gemm, 6 },
	{ "gemm_experts_sm100", draw_gemm, 7 },
	{ "gemm_quantize", draw_quantize, 0 },
	{ "rms_norm", draw_row, 0 },
	{ "softmax", draw_row, 1 },
	{ "swiglu", draw_row, 2 },
	{ "saxpy", draw_row, 3 },
};
enum { GENERATORS = sizeof generators / sizeof *generators };
_Static_assert(RUNGS == 9 && HGEMM_RUNGS == 4, "every rung is in the list");

/* Prints line i, or the PTX. */
static bool print(uint32_t i, bool show)
{
	const struct generator *g = &generators[i % GENERATORS];
	drawn d;
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = NULL;
	uint32_t draws = 0;

	do {
		d = (drawn){ .m = cptx_module_new(NULL) };
		if (g->draw((uint64_t)i * MOST_DRAWS + draws, g->which, &d)) {
			ptx = cptx_emit(d.m, d.target, NULL, &err);
			if (!ptx) /* its options were taken */
				fprintf(stderr, "print_random: line %u: %s, %s: %s\n", i, g->name, d.text, err.text);
			draws = MOST_DRAWS;
		} else if (++draws == MOST_DRAWS) {
			fprintf(stderr, "print_random: line %u: %s: all options drawn were refused\n", i, g->name);
		}
		if (!ptx)
			cptx_module_destroy(d.m);
	} while (!ptx && draws < MOST_DRAWS);
	if (!ptx)
		return false;
	const char *text = cptx_ptx_text(ptx);
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	if (show)
		fputs(text, stdout);
	else
		printf("%u %s: %s: %zu bytes, %016" PRIx64 "\n", i, g->name, d.text, strlen(text), hash);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(d.m);
	return true;
}

int main(int argc, char **argv)
{
	bool show = argc == 3 && !strcmp(argv[1], "--show"), ok = true;

	if (!show && argc != 2 && argc != 3) {
		fprintf(stderr, "usage: print_random N [FIRST] | --show I\n");
		return 2;
	}
	const uint32_t last = (uint32_t)strtoul(argv[argc - 1], NULL, 10);
	if (show)
		return print(last, true) ? 0 : 1;
	const uint32_t n = (uint32_t)strtoul(argv[1], NULL, 10);
	for (uint32_t i = argc == 3 ? last : 0; i < n; i++)
		ok = print(i, false) && ok;
	return ok ? 0 : 1;
}
