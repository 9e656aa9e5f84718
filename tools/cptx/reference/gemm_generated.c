/* SPDX-License-Identifier: MIT */
/* Kernels of the library's generators as subjects of gemm_check_subject. */
#include "reference/gemm_check.h"

#include <stdlib.h>

typedef struct generated {
	const cptx_gemm_opt *o;
	uint64_t workspace, timeline, table; /* 0: none */
	cptx_timeline_layout line;
} generated;

static bool alloc_zeros(cptx_device *dev, uint64_t size, uint64_t *at, cptx_error *err)
{
	return !size || ((*at = cptx_mem_alloc(dev, size, err)) && cptx_mem_fill8(dev, *at, 0, size, err));
}

static cptx_launch *launch_generated(const gemm_subject *s, cptx_device *dev, const cptx_program *program,
                                     const gemm_problem *p, const gemm_matrices *at, gemm_report *r, cptx_error *err)
{
	generated *g = s->user;
	const cptx_gemm_opt *o = g->o;
	const uint32_t sms = cptx_device_get_info(dev)->sms;
	cptx_gemm_problem list[GEMM_LIST];
	cptx_gemm_plan plan;

	for (uint32_t i = 0; i < s->list; i++)
		list[i] = (cptx_gemm_problem){ .size = CPTX_OPT_SIZE(cptx_gemm_problem),
			                           .m = p[i].m,
			                           .n = p[i].n,
			                           .k = p[i].k,
			                           .batch = p[i].batch,
			                           .a = at[i].a,
			                           .b = at[i].b,
			                           .d = at[i].d,
			                           .scale_a = at[i].scale_a,
			                           .scale_b = at[i].scale_b,
			                           .c = at[i].c,
			                           .bias = at[i].bias,
			                           .alpha = p[i].alpha,
			                           .beta = p[i].beta,
			                           .counts = at[i].counts,
			                           .gather = at[i].gather,
			                           .scatter = at[i].scatter,
			                           .weights = at[i].weights,
			                           .scale_d = at[i].scale_d,
			                           .meta = at[i].meta,
			                           .ctas = p[i].ctas,
			                           .zero_b = at[i].zero_b };
	if (!cptx_gemm_check(o, NULL, &plan, err) ||
	    !cptx_program_resources(program, cptx_program_kernel_at(program, 0), plan.threads, plan.smem, &r->resources, err))
		return NULL;
	if (o->mma == CPTX_GEMM_SYNC && !plan.vec) /* what the launch would ask too */
		list[0].ctas = sms * r->resources.ctas_per_sm;
	if (!cptx_gemm_check_problem(o, list, sms, &plan, err))
		return NULL;
	r->grid = plan.grid;
	if (o->timeline)
		g->line = cptx_gemm_timeline(plan.grid, plan.threads, o->timeline);
	if (!alloc_zeros(dev, plan.workspace, &g->workspace, err) ||
	    !alloc_zeros(dev, o->timeline ? cptx_timeline_bytes(&g->line) : 0, &g->timeline, err) ||
	    !alloc_zeros(dev, o->grouped ? s->list * CPTX_GEMM_GROUP_BYTES : 0, &g->table, err))
		return NULL;
	list[0].workspace = g->workspace, list[0].timeline = g->timeline;
	return o->grouped ? cptx_gemm_launch_grouped(program, dev, o, list, s->list, g->table, err)
	                  : cptx_gemm_launch(program, dev, o, list, err);
}

bool gemm_check(cptx_device *dev, cptx_module *module, const cptx_gemm_opt *o, const gemm_problem *p, gemm_report *r,
                cptx_error *err)
{
	generated g = { .o = o };
	gemm_problem list[GEMM_LIST] = { *p, *p, *p };
	gemm_subject s = {
		.in = o->a,
		.in_b = o->b,
		.out = o->out,
		.scale = o->scale,
		.a_across = o->a_m_major,
		.b_across = o->b_n_major,
		/* wgmma, and mma.sync of sm_89, keep 13 bits of sums of 8-bit floats: those of small numbers are exact */
		.small = o->scale != CPTX_UE8M0 && o->mma != CPTX_GEMM_TCGEN05 && (o->a == CPTX_E4M3 || o->a == CPTX_E5M2),
		.alpha = o->alpha,
		.beta = o->beta,
		.bias = o->bias,
		.experts = o->experts,
		.gather = o->gather,
		.scatter = o->scatter,
		.swiglu = o->swiglu,
		.sparse = o->sparse,
		.rows_of_b = o->scale_rows,
		.quantized = o->scale_out != CPTX_TYPE_NONE,
		.list = o->grouped ? GEMM_LIST : 1,
		.launch = launch_generated,
		.user = &g
	};
	cptx_gemm_plan plan = { 0 };

	list[1].m = (p->m / 2 + 15) / 16 * 16, list[2].m = 16; /* rows of any type, of A by columns too */
	list[1].m = list[1].m ? list[1].m : 16, list[1].seed += 100, list[2].seed += 200;
	*r = (gemm_report){ 0 };
	bool ok = cptx_gemm_check(o, NULL, &plan, err);
	s.weights = (o->a == CPTX_BF16 || o->a == CPTX_F16) && o->b != o->a;
	s.group = s.weights ? plan.vec : 0, s.zeros = o->zeros, s.vec = s.weights ? 0 : plan.vec;
	ok = ok && gemm_check_subject(dev, module, &s, list, r, err);
	if (ok && g.timeline)
		ok = gemm_read_timeline(dev, &g.line, g.timeline, &r->timeline, err);
	cptx_mem_free(dev, g.workspace);
	cptx_mem_free(dev, g.timeline);
	cptx_mem_free(dev, g.table);
	return ok;
}

bool gemm_read_timeline(cptx_device *dev, const cptx_timeline_layout *l, uint64_t from, char **json, cptx_error *err)
{
	uint64_t size = cptx_timeline_bytes(l);
	void *data = gemm_host(size, err);
	size_t n = data && cptx_mem_read(dev, data, from, size, err) ? cptx_timeline_json(l, data, NULL, 0) + 1 : 0;

	*json = n ? gemm_host(n, err) : NULL;
	if (*json)
		cptx_timeline_json(l, data, *json, n);
	free(data);
	return *json != NULL;
}
