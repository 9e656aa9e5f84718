#include "gemm_kind.h"

#include <stdio.h>

static cptx_gemm_problem problem_of(const gemm_kind *g, const gemm_operands *at)
{
	return (cptx_gemm_problem){ .m = at->m,
		                        .n = at->n,
		                        .k = at->k,
		                        .a = at->a,
		                        .b = at->b,
		                        .d = at->d,
		                        .scale_a = at->scale_a,
		                        .scale_b = at->scale_b,
		                        .workspace = at->workspace,
		                        .timeline = at->timeline,
		                        .ctas = g->ctas };
}

enum cptx_type gemm_in(const gemm_kind *g)
{
	switch (g->with) {
	case GEMM_WGMMA: return g->sm90.a;
	case GEMM_TCGEN05: return g->sm100.a;
	case GEMM_BLOCK_SCALE: return g->sm120.a;
	default: return g->mma.in;
	}
}

enum cptx_type gemm_in_b(const gemm_kind *g)
{
	switch (g->with) {
	case GEMM_WGMMA: return g->sm90.b;
	case GEMM_TCGEN05: return g->sm100.b;
	case GEMM_BLOCK_SCALE: return g->sm120.b;
	default: return g->mma.in;
	}
}

uint32_t gemm_factors(const gemm_kind *g, enum cptx_type *scale)
{
	cptx_gemm_sm100_plan plan100 = { 0 };
	cptx_gemm_sm120_plan plan120 = { 0 };

	*scale = CPTX_TYPE_NONE;
	if (g->with == GEMM_TCGEN05 && cptx_gemm_sm100_check(&g->sm100, NULL, &plan100, NULL) && plan100.vec)
		*scale = g->sm100.scale;
	if (g->with == GEMM_BLOCK_SCALE && cptx_gemm_sm120_check(&g->sm120, NULL, &plan120, NULL))
		*scale = g->sm120.scale;
	return g->with == GEMM_TCGEN05 ? plan100.vec : plan120.vec;
}

enum cptx_type gemm_out(const gemm_kind *g)
{
	switch (g->with) {
	case GEMM_WGMMA: return g->sm90.out;
	case GEMM_TCGEN05: return g->sm100.out;
	case GEMM_BLOCK_SCALE: return g->sm120.out;
	default: return g->mma.out;
	}
}

enum cptx_tcgen05_kind gemm_tcgen05_kind(enum cptx_type a, enum cptx_type b, enum cptx_type scale)
{
	bool scaled = scale != CPTX_TYPE_NONE;

	if (a == CPTX_E2M1 && b == CPTX_E2M1 && scaled) /* without factors in bytes */
		return scale == CPTX_UE4M3 ? CPTX_TCGEN05_MXF4NVF4 : CPTX_TCGEN05_MXF4;
	switch (a) {
	case CPTX_F16:
	case CPTX_BF16: return CPTX_TCGEN05_F16;
	case CPTX_F32:
	case CPTX_TF32: return CPTX_TCGEN05_TF32;
	case CPTX_S8:
	case CPTX_U8: return CPTX_TCGEN05_I8;
	default: return scaled ? CPTX_TCGEN05_MXF8F6F4 : CPTX_TCGEN05_F8F6F4;
	}
}

static bool is_wgmma_target(const cptx_target *t) { return t->number == 90 && t->suffix == 'a'; }

bool gemm_kind_check(const gemm_kind *g, const cptx_target *target, uint64_t m, uint64_t n, uint64_t k, cptx_error *err)
{
	cptx_gemm_problem p = problem_of(g, &(gemm_operands){ .m = m, .n = n, .k = k });

	if (g->with == GEMM_MMA)
		return cptx_gemm_check(&g->mma, target, NULL, err) && (!m || cptx_gemm_check_problem(&g->mma, m, n, k, err));
	if (g->with == GEMM_TCGEN05)
		return cptx_gemm_sm100_check(&g->sm100, target, NULL, err) &&
		       (!m || cptx_gemm_sm100_check_problem(&g->sm100, &p, 1, NULL, err));
	if (g->with == GEMM_BLOCK_SCALE)
		return cptx_gemm_sm120_check(&g->sm120, target, NULL, err) &&
		       (!m || cptx_gemm_sm120_check_problem(&g->sm120, &p, 1, NULL, err));
	if (!is_wgmma_target(target)) {
		*err = (cptx_error){ .code = CPTX_E_TARGET };
		snprintf(err->text, sizeof err->text, "wgmma is not available on %s; sm_90a has it, --kind mma is for the others",
		         target->name);
		return false;
	}
	return m ? cptx_gemm_sm90_check_problem(&g->sm90, &p, 1, NULL, err) : cptx_gemm_sm90_check(&g->sm90, NULL, err);
}

cptx_kernel *gemm_kind_build(cptx_module *module, const gemm_kind *g, cptx_error *err)
{
	switch (g->with) {
	case GEMM_TCGEN05: return cptx_gemm_sm100_build(module, &g->sm100, err);
	case GEMM_WGMMA: return cptx_gemm_sm90_build(module, &g->sm90, err);
	case GEMM_BLOCK_SCALE: return cptx_gemm_sm120_build(module, &g->sm120, err);
	default: return cptx_gemm_build(module, &g->mma, err);
	}
}

static uint32_t given(uint32_t v) { return v ? v : 1; }

static void text_wgmma(const cptx_gemm_sm90_opt *o, char *text, size_t size)
{
	snprintf(text, size, "tile %ux%ux%u%s, cluster %ux%u, %u stages%s%s", o->bm, o->bn, 128 / (cptx_type_bits(o->a) / 8),
	         o->swap ? " swapped" : "", given(o->cluster_m), given(o->cluster_n), o->stages,
	         o->per_sm > 1 ? ", 2 a multiprocessor" : "", o->stream_k ? ", stream-K" : "");
}

static void text_tcgen05(const cptx_gemm_sm100_opt *o, char *text, size_t size)
{
	cptx_gemm_sm100_plan plan = { 0 };

	cptx_gemm_sm100_check(o, NULL, &plan, NULL);
	snprintf(text, size, "kind %s, tile %ux%ux%u by %u CTA%s, cluster %ux%u, %u stages, %u accumulator%s%s%s",
	         cptx_tcgen05_kind_name(o->kind), o->bm, o->bn, plan.bk, o->bm / 128, o->bm > 128 ? "s" : "",
	         given(o->cluster_m), given(o->cluster_n), o->stages, plan.accumulators, plan.accumulators > 1 ? "s" : "",
	         o->a_tmem ? ", A in tensor memory" : "", o->stream_k ? ", stream-K" : "");
}

static void text_block_scale(const cptx_gemm_sm120_opt *o, char *text, size_t size)
{
	cptx_gemm_sm120_plan plan = { 0 };

	cptx_gemm_sm120_check(o, NULL, &plan, NULL);
	snprintf(text, size, "kind %s, tile %ux%ux%u, %ux%u warps, %u stages",
	         cptx_tcgen05_kind_name(gemm_tcgen05_kind(o->a, o->b, o->scale)), o->bm, o->bn, plan.bk, o->warps_m, o->warps_n,
	         o->stages);
}

void gemm_kind_text(const gemm_kind *g, char *text, size_t size)
{
	const cptx_gemm_opt *o = &g->mma;

	switch (g->with) {
	case GEMM_WGMMA: text_wgmma(&g->sm90, text, size); break;
	case GEMM_TCGEN05: text_tcgen05(&g->sm100, text, size); break;
	case GEMM_BLOCK_SCALE: text_block_scale(&g->sm120, text, size); break;
	default:
		snprintf(text, size, "tile %ux%ux%u, %ux%u warps, %u stages", o->bm, o->bn, o->bk, o->warps_m, o->warps_n,
		         o->stages);
	}
}

void gemm_kind_set_timeline(gemm_kind *g, uint32_t stamps)
{
	*(g->with == GEMM_WGMMA ? &g->sm90.timeline : &g->sm100.timeline) = stamps;
}

static uint64_t alloc_zeros(cptx_device *dev, uint64_t size, cptx_error *err)
{
	uint64_t at = cptx_mem_alloc(dev, size, err);

	return at && cptx_mem_fill8(dev, at, 0, size, err) ? at : 0;
}

static bool alloc_timeline(cptx_device *dev, uint32_t grid, uint32_t threads, uint32_t stamps, gemm_operands *at,
                           cptx_error *err)
{
	if (!stamps)
		return true;
	at->line = cptx_gemm_timeline(grid, threads, stamps);
	return (at->timeline = alloc_zeros(dev, cptx_timeline_bytes(&at->line), err)) != 0;
}

static cptx_launch *launch_wgmma(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                                 gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err)
{
	cptx_gemm_sm90_plan plan;
	cptx_gemm_problem p = problem_of(g, at);

	if (!cptx_gemm_sm90_check_problem(&g->sm90, &p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_program_resources(program, name, plan.threads, plan.smem, resources, err))
		return NULL;
	*grid = plan.grid;
	if ((plan.workspace && !(at->workspace = alloc_zeros(dev, plan.workspace, err))) ||
	    !alloc_timeline(dev, plan.grid, plan.threads, g->sm90.timeline, at, err))
		return NULL;
	p = problem_of(g, at);
	return cptx_gemm_sm90_launch(program, dev, &g->sm90, &p, err);
}

static cptx_launch *launch_tcgen05(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                                   gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err)
{
	cptx_gemm_sm100_plan plan;
	cptx_gemm_problem p = problem_of(g, at);

	if (!cptx_gemm_sm100_check_problem(&g->sm100, &p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_program_resources(program, name, plan.threads, plan.smem, resources, err))
		return NULL;
	*grid = plan.grid;
	if ((plan.workspace && !(at->workspace = alloc_zeros(dev, plan.workspace, err))) ||
	    !alloc_timeline(dev, plan.grid, plan.threads, g->sm100.timeline, at, err))
		return NULL;
	p = problem_of(g, at);
	return cptx_gemm_sm100_launch(program, dev, &g->sm100, &p, err);
}

static cptx_launch *launch_block_scale(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                                       gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err)
{
	cptx_gemm_sm120_plan plan;
	cptx_gemm_problem p = problem_of(g, at);

	if (!cptx_gemm_sm120_check_problem(&g->sm120, &p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !cptx_program_resources(program, name, plan.threads, plan.smem, resources, err))
		return NULL;
	*grid = plan.grid;
	return cptx_gemm_sm120_launch(program, dev, &g->sm120, &p, err);
}

cptx_launch *gemm_kind_launch(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                              gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err)
{
	cptx_gemm_plan plan;

	if (g->with == GEMM_TCGEN05)
		return launch_tcgen05(g, dev, program, name, at, resources, grid, err);
	if (g->with == GEMM_BLOCK_SCALE)
		return launch_block_scale(g, dev, program, name, at, resources, grid, err);
	if (g->with == GEMM_WGMMA)
		return launch_wgmma(g, dev, program, name, at, resources, grid, err);
	if (!cptx_gemm_check(&g->mma, NULL, &plan, err) ||
	    !cptx_program_resources(program, name, plan.threads, plan.smem, resources, err))
		return NULL;
	*grid = cptx_gemm_grid(&g->mma, at->m, at->n, cptx_device_get_info(dev)->sms * resources->ctas_per_sm);
	return cptx_launch_new(
		program, name,
		&(cptx_launch_opt){ .grid = { *grid },
	                        .block = { plan.threads },
	                        CPTX_ARGS(at->a, at->b, at->d, (uint32_t)at->m, (uint32_t)at->n, (uint32_t)at->k) },
		err);
}
