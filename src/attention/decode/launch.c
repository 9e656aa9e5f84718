/* SPDX-License-Identifier: MIT */
/* The kernels of decoding in a module, and their launches. */
#include "attention/decode/decode.h"

#include <stdio.h>

enum { MOST_PAGES = 1 << 30 /* for a tensor map, which knows no table */ };

/* "NAME_combine", to be freed; NULL: out of memory. */
static char *combine_name(const cptx_attention_decode_opt *o, cptx_error *err)
{
	const size_t size = strlen(o->name) + sizeof "_combine";
	char *name = NEW_UNSET(char, size);

	if (name)
		snprintf(name, size, "%s_combine", o->name);
	else
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	return name;
}

cptx_kernel *cptx_attention_decode_build(cptx_module *m, const cptx_attention_decode_opt *opt, cptx_error *err)
{
	cptx_attention_decode_opt o;
	cptx_attention_decode_plan plan;
	char *name;

	if (!decode_read(&o, opt, NULL, &plan, err) || !(name = combine_name(&o, err)))
		return NULL;
	cptx_kernel *k = o.mla ? decode_build_mla(m, &o) : decode_build_main(m, &o);
	decode_build_combine(m, &o, name);
	free(name);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}

/* ---- launches ---- */

/* Of K and V: pages, or the sequences. */
static attention_extent extent_of_k(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p)
{
	return o->paged ? (attention_extent){ p->page, MOST_PAGES } : (attention_extent){ p->keys, p->batch };
}

static decode_args args_of(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                           const cptx_attention_decode_plan *plan)
{
	const attention_extent of_q = { p->queries, p->batch }, of_k = extent_of_k(o, p);
	const uint32_t dim_v = decode_dim_v(o), group = p->heads / p->kv_heads;
	const uint64_t parts = (uint64_t)p->batch * p->heads * p->queries * plan->splits * dim_v * sizeof(float);
	const cptx_attention_stride q = attention_stride_bytes(&p->q_stride, o->in, o->dim, of_q, p->heads);
	const cptx_attention_stride k = attention_stride_bytes(&p->k_stride, o->in, o->dim, of_k, p->kv_heads);
	const cptx_attention_stride v = attention_stride_bytes(&p->v_stride, o->in, dim_v, of_k, p->kv_heads);
	const cptx_attention_stride d = attention_stride_bytes(&p->o_stride, decode_out(o), dim_v, of_q, p->heads);

	return (decode_args){ .q = p->q,
		                  .k = p->k,
		                  .v = p->v,
		                  .o = p->o,
		                  .lse = p->lse,
		                  .lengths = p->lengths,
		                  .pages = p->pages,
		                  .o_part = p->workspace,
		                  .lse_part = p->workspace + parts,
		                  .q_batch = q.batch,
		                  .q_head = q.head,
		                  .q_row = q.row,
		                  .k_batch = k.batch,
		                  .k_head = k.head,
		                  .v_batch = v.batch,
		                  .v_head = v.head,
		                  .o_batch = d.batch,
		                  .o_head = d.head,
		                  .o_row = d.row,
		                  .k_row = (uint32_t)k.row,
		                  .v_row = (uint32_t)v.row,
		                  .keys = p->keys,
		                  .queries = p->queries,
		                  .group = group,
		                  .rows = group * p->queries,
		                  .tiles = plan->tiles,
		                  .kv_heads = p->kv_heads,
		                  .splits = plan->splits,
		                  .chunk = plan->chunk,
		                  .page = p->page,
		                  .page_pitch = p->page_pitch,
		                  .planes = p->batch * p->kv_heads,
		                  .left = p->window_left,
		                  .sharers = decode_sharers(plan->splits),
		                  .scale = (float)((o->softcap ? p->softcap : p->scale) * ATTENTION_LOG2E),
		                  .before = o->softcap ? p->scale / p->softcap : p->scale };
}

/* Of blocks of keys; where there are none nothing is read, and it needs some address. */
static bool make_map(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p, decode_maps *maps,
                     cptx_error *err)
{
	const decode_shape s = decode_shape_of(o, NULL);
	const attention_extent of = extent_of_k(o, p);
	const cptx_operand_opt op = {
		.size = CPTX_OPT_SIZE(cptx_operand_opt), .type = o->in, .tile = s.k, .batched = true, .batch_dims = 2
	};
	const cptx_operand_matrix matrix =
		attention_matrix_of(&op, of.rows ? p->k : p->q, &p->k_stride, o->dim, of, p->kv_heads);

	return cptx_operand_tensor_map(&op, &matrix, &maps->k_map, err);
}

static bool check_addresses(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                            const cptx_attention_decode_plan *plan, cptx_error *err)
{
	const attention_address all[] = { { "q", p->q, true, ATTENTION_CHUNK },
		                              { "k", p->k, p->keys, ATTENTION_CHUNK },
		                              { "v", p->v, p->keys && !o->mla, ATTENTION_CHUNK },
		                              { "o", p->o, true, ATTENTION_CHUNK },
		                              { "lse", p->lse, o->lse, sizeof(float) },
		                              { "lengths", p->lengths, p->lengths != 0, sizeof(uint32_t) },
		                              { "pages", p->pages, o->paged && p->keys, sizeof(uint32_t) },
		                              { "workspace", p->workspace, plan->workspace, ATTENTION_CHUNK } };

	return attention_check_addresses("decode: ", all, ARRAY_LEN(all), err);
}

cptx_launch *cptx_attention_decode_launch(const cptx_program *program, cptx_device *dev,
                                          const cptx_attention_decode_opt *opt, const cptx_attention_decode_problem *problem,
                                          uint32_t number, cptx_error *err)
{
	cptx_attention_decode_plan plan;
	cptx_attention_decode_problem p;
	cptx_attention_decode_opt o;
	char *second = NULL;

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err))
		return NULL;
	const cptx_device_info *info = cptx_device_get_info(dev);
	const cptx_target *target = info->target ? cptx_target_find(info->target) : NULL;
	if (!decode_read(&o, opt, target, &plan, err) || !decode_read_problem(&p, problem, &o, err) ||
	    !decode_plan_problem(&o, &p, target, info->sms, &plan, err) || !check_addresses(&o, &p, &plan, err))
		return NULL;
	if (number >= plan.launches || !plan.grid || !p.queries) {
		error_set(err, CPTX_E_ARG, NOWHERE, "attention: decode: launch %u of %u; they count from 0%s", number, plan.launches,
		          plan.grid && p.queries ? "" : ", and of no queries there is none");
		return NULL;
	}
	if (number && !(second = combine_name(&o, err)))
		return NULL;
	const decode_args args = args_of(&o, &p, &plan);
	decode_maps maps;
	const bool mapped = o.mla && !number;
	if (mapped && !make_map(&o, &p, &maps, err))
		return NULL;
	const cptx_params_part parts[] = { { decode_params, DECODE_PARAMS, &args }, { decode_map_params, DECODE_MAPS, &maps } };
	const uint64_t warps = (uint64_t)p.batch * p.heads * p.queries * decode_combine_parts(&o) * args.sharers;
	const uint32_t grid = number ? (uint32_t)((warps + DECODE_COMBINE_WARPS - 1) / DECODE_COMBINE_WARPS) : plan.grid;
	const uint32_t threads = number ? DECODE_COMBINE_WARPS * CPTX_WARP : plan.threads;
	cptx_launch *l = cptx_params_launch_(NOWHERE, program, dev, number ? second : o.name, parts, mapped ? 2 : 1,
	                                     CPTX_OPT(cptx_launch_opt, .grid = { grid }, .block = { threads },
	                                              .dyn_smem = number ? 0 : plan.smem, .overlap = o.overlap),
	                                     err);
	free(second);
	return l;
}
