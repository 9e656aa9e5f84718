#include "gemm_kind.h"

#include <stdio.h>

static cptx_gemm_problem problem_of(const gemm_kind *g, const gemm_operands *at)
{
	return (cptx_gemm_problem){
		.m = at->m, .n = at->n, .k = at->k, .a = at->a, .b = at->b, .d = at->d, .workspace = at->workspace, .ctas = g->ctas
	};
}

static bool is_wgmma_target(const cptx_target *t) { return t->number == 90 && t->suffix == 'a'; }

bool gemm_kind_check(const gemm_kind *g, const cptx_target *target, uint64_t m, uint64_t n, uint64_t k, cptx_error *err)
{
	if (!g->wgmma)
		return cptx_gemm_check(&g->mma, target, NULL, err) && (!m || cptx_gemm_check_problem(&g->mma, m, n, k, err));
	if (!is_wgmma_target(target)) {
		*err = (cptx_error){ .code = CPTX_E_TARGET };
		snprintf(err->text, sizeof err->text, "wgmma is not available on %s; sm_90a has it, --kind mma is for the others",
		         target->name);
		return false;
	}
	cptx_gemm_problem p = problem_of(g, &(gemm_operands){ .m = m, .n = n, .k = k });
	return m ? cptx_gemm_sm90_check_problem(&g->sm90, &p, 1, NULL, err) : cptx_gemm_sm90_check(&g->sm90, NULL, err);
}

cptx_kernel *gemm_kind_build(cptx_module *module, const gemm_kind *g, cptx_error *err)
{
	return g->wgmma ? cptx_gemm_sm90_build(module, &g->sm90, err) : cptx_gemm_build(module, &g->mma, err);
}

void gemm_kind_text(const gemm_kind *g, char *text, size_t size)
{
	const cptx_gemm_opt *o = &g->mma;
	const cptx_gemm_sm90_opt *w = &g->sm90;

	if (g->wgmma)
		snprintf(text, size, "tile %ux%ux%u, cluster %ux%u, %u stages%s", w->bm, w->bn, 128 / (cptx_type_bits(w->a) / 8),
		         w->cluster_m ? w->cluster_m : 1, w->cluster_n ? w->cluster_n : 1, w->stages,
		         w->stream_k ? ", stream-K" : "");
	else
		snprintf(text, size, "tile %ux%ux%u, %ux%u warps, %u stages", o->bm, o->bn, o->bk, o->warps_m, o->warps_n,
		         o->stages);
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
	if (plan.workspace) {
		at->workspace = cptx_mem_alloc(dev, plan.workspace, err);
		if (!at->workspace || !cptx_mem_fill8(dev, at->workspace, 0, plan.workspace, err))
			return NULL;
		p = problem_of(g, at);
	}
	return cptx_gemm_sm90_launch(program, dev, &g->sm90, &p, err);
}

cptx_launch *gemm_kind_launch(const gemm_kind *g, cptx_device *dev, const cptx_program *program, const char *name,
                              gemm_operands *at, cptx_resources *resources, uint32_t *grid, cptx_error *err)
{
	cptx_gemm_plan plan;

	if (g->wgmma)
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
