/* SPDX-License-Identifier: MIT */
/* The kernels of attention backward in a module, their launches, and one call that does all. */
#include "attention/backward/backward.h"

#include <stdio.h>

enum { PREPARE, KEYS, DQ, L2_BYTES = 32 << 20, ROUNDS = 3 };

/* "NAME_prepare", "NAME", "NAME_dq", to be freed; NULL: out of memory. */
static char *name_of(const cptx_attention_backward_opt *o, uint32_t number, cptx_error *err)
{
	static const char *const behind[CPTX_ATTENTION_BACKWARD_LAUNCHES] = { "_prepare", "", "_dq" };
	const size_t size = strlen(o->name) + sizeof "_prepare";
	char *name = NEW_UNSET(char, size);

	if (name)
		snprintf(name, size, "%s%s", o->name, behind[number]);
	else
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	return name;
}

cptx_kernel *cptx_attention_backward_build(cptx_module *m, const cptx_attention_backward_opt *opt, cptx_error *err)
{
	cptx_attention_backward_opt o;
	cptx_attention_backward_plan plan;

	if (!backward_read(&o, opt, NULL, &plan, err))
		return NULL;
	char *prepare = name_of(&o, PREPARE, err), *dq = name_of(&o, DQ, err);
	cptx_kernel *k = NULL;
	if (prepare && dq) {
		backward_build_prepare(m, &o, prepare);
		k = o.mma == CPTX_ATTENTION_WGMMA ? backward_build_keys90(m, &o) : backward_build_keys(m, &o);
		if (o.deterministic)
			backward_build_queries(m, &o, dq);
		else
			backward_build_round(m, &o, dq);
	}
	free(prepare);
	free(dq);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}

/* ---- launches ---- */

/* Strides in bytes. */
static cptx_attention_stride stride_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                       const cptx_attention_stride *s, bool of_keys)
{
	return attention_stride_bytes(s, o->in, o->dim, backward_extent_of(o, p, of_keys), of_keys ? p->kv_heads : p->heads);
}

static int32_t bounded(uint32_t reach) { return (int32_t)attention_min(reach, ATTENTION_MOST_ROWS); }

/* Heads of K and V whose tiles come longest first: as many as have their Q, dO and sums of dQ in L2 together, but enough for
 * some rounds of the CTAs. */
static uint32_t section_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p, uint32_t sms)
{
	const uint64_t rows = (uint64_t)p->queries * (p->heads / p->kv_heads), bytes = rows * o->dim * 8 + 1;
	const uint32_t tiles = attention_up(p->keys, o->bk) + 1, least = attention_up(ROUNDS * sms, tiles);
	const uint64_t n = MAX(L2_BYTES / bytes, least), planes = MAX((uint64_t)p->batch * p->kv_heads, 1);
	const uint64_t sections = (planes + n - 1) / n; /* all of about the same size: a small one at the end fills no device */

	return o->causal ? (uint32_t)((planes + sections - 1) / sections) : 1;
}

static backward_args args_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p, uint32_t sms)
{
	const cptx_attention_stride q = stride_of(o, p, &p->q_stride, false), d = stride_of(o, p, &p->o_stride, false);
	const cptx_attention_stride k = stride_of(o, p, &p->k_stride, true), v = stride_of(o, p, &p->v_stride, true);
	const cptx_attention_stride d_o = stride_of(o, p, &p->do_stride, false), dq = stride_of(o, p, &p->dq_stride, false);
	const cptx_attention_stride dk = stride_of(o, p, &p->dk_stride, true), dv = stride_of(o, p, &p->dv_stride, true);
	const uint32_t pad = backward_pad(p->queries), planes = p->batch * p->heads;
	const float product = o->softcap ? p->softcap : p->scale; /* scores, of what the kernel has in their place */

	return (backward_args){ .q = p->q,
		                    .k = p->k,
		                    .v = p->v,
		                    .o = p->o,
		                    .d_o = p->d_o,
		                    .lse = p->lse,
		                    .dq = p->dq,
		                    .dk = p->dk,
		                    .dv = p->dv,
		                    .stats = p->workspace,
		                    .sums = p->workspace + p->heads * backward_work_rows(o, p) * 8,
		                    .q_batch = q.batch,
		                    .q_head = q.head,
		                    .k_batch = k.batch,
		                    .k_head = k.head,
		                    .v_batch = v.batch,
		                    .v_head = v.head,
		                    .o_batch = d.batch,
		                    .o_head = d.head,
		                    .do_batch = d_o.batch,
		                    .do_head = d_o.head,
		                    .dq_batch = dq.batch,
		                    .dq_head = dq.head,
		                    .dk_batch = dk.batch,
		                    .dk_head = dk.head,
		                    .dv_batch = dv.batch,
		                    .dv_head = dv.head,
		                    .q_row = (uint32_t)q.row,
		                    .k_row = (uint32_t)k.row,
		                    .v_row = (uint32_t)v.row,
		                    .o_row = (uint32_t)d.row,
		                    .do_row = (uint32_t)d_o.row,
		                    .dq_row = (uint32_t)dq.row,
		                    .dk_row = (uint32_t)dk.row,
		                    .dv_row = (uint32_t)dv.row,
		                    .queries = p->queries,
		                    .keys = p->keys,
		                    .heads = p->heads,
		                    .group = p->heads / p->kv_heads,
		                    .kv_heads = p->kv_heads,
		                    .planes = planes,
		                    .pad = pad,
		                    .tiles = attention_up(p->keys, o->bk),
		                    .section = section_of(o, p, sms),
		                    .kv_planes = p->batch * p->kv_heads,
		                    .shift = o->top_left ? 0 : (int32_t)p->keys - (int32_t)p->queries,
		                    .left = bounded(p->window_left),
		                    .right = o->causal ? 0 : bounded(p->window_right),
		                    .scale = p->scale,
		                    .scale2 = (float)((o->score ? 1.0 : (double)product) * ATTENTION_LOG2E),
		                    .before = o->softcap ? p->scale / p->softcap : p->scale,
		                    .cap = p->softcap,
		                    .total_queries = p->total_queries,
		                    .work_rows = (uint32_t)backward_work_rows(o, p),
		                    .cu_queries = p->cu_queries,
		                    .cu_keys = p->cu_keys };
}

/* The tensor map of blocks of a tensor with that stride; where there are no rows nothing is read, and it needs some address.
 */
static bool make_map(const cptx_attention_backward_opt *o, const cptx_tile *tile, const cptx_attention_backward_problem *p,
                     uint64_t at, const cptx_attention_stride *s, bool of_keys, cptx_tensor_map_opt *map, cptx_error *err)
{
	const cptx_operand_opt op = {
		.size = CPTX_OPT_SIZE(cptx_operand_opt), .type = o->in, .tile = *tile, .batched = true, .batch_dims = 2
	};
	const attention_extent of = backward_extent_of(o, p, of_keys);
	const cptx_operand_matrix matrix =
		attention_matrix_of(&op, of.rows ? at : p->k, s, o->dim, of, of_keys ? p->kv_heads : p->heads);

	return cptx_operand_tensor_map(&op, &matrix, map, err);
}

static bool make_maps(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p, backward_maps *maps,
                      cptx_error *err)
{
	const backward_shape s = backward_shape_of(o);

	return make_map(o, &s.q, p, p->q, &p->q_stride, false, &maps->q_map, err) &&
	       make_map(o, &s.k, p, p->k, &p->k_stride, true, &maps->k_map, err) &&
	       make_map(o, &s.k, p, p->v, &p->v_stride, true, &maps->v_map, err) &&
	       make_map(o, &s.q, p, p->d_o, &p->do_stride, false, &maps->do_map, err);
}

static bool check_addresses(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                            const cptx_attention_backward_plan *plan, cptx_error *err)
{
	const uint32_t align = ATTENTION_CHUNK;
	const bool q = p->queries != 0, k = p->keys != 0;
	const attention_address all[] = { { "q", p->q, q, align },
		                              { "k", p->k, k, align },
		                              { "v", p->v, k, align },
		                              { "o", p->o, q, align },
		                              { "d_o", p->d_o, q, align },
		                              { "lse", p->lse, q, align },
		                              { "dq", p->dq, q, align },
		                              { "dk", p->dk, k, align },
		                              { "dv", p->dv, k, align },
		                              { "workspace", p->workspace, plan->workspace != 0, align },
		                              { "cu_queries", p->cu_queries, o->varlen, 4 },
		                              { "cu_keys", p->cu_keys, o->varlen, 4 } };

	return attention_check_addresses("backward: ", all, ARRAY_LEN(all), err);
}

/* CTAs, and what they are made of. */
static cptx_launch_opt launch_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                 const cptx_attention_backward_plan *plan, uint32_t number)
{
	const uint32_t planes = p->batch * p->heads, rows = planes * backward_pad(p->queries);
	cptx_launch_opt l = { .size = CPTX_OPT_SIZE(cptx_launch_opt), .overlap = o->sm90 };

	if (number == KEYS)
		l.grid[0] = plan->grid, l.block[0] = plan->threads, l.dyn_smem = plan->smem;
	else if (number == DQ && o->deterministic)
		l.grid[0] = attention_up(p->queries, BACKWARD_DQ_ROWS) * planes, l.block[0] = BACKWARD_DQ_ROWS / 16 * CPTX_WARP,
		l.dyn_smem = backward_shape_of(o).dq_smem;
	else if (number == DQ && o->mma == CPTX_ATTENTION_WGMMA)
		l.grid[0] = rows / o->bq, l.block[0] = backward_shape_of(o).dq_groups * BACKWARD_GROUP_THREADS;
	else
		l.grid[0] = attention_up(rows, BACKWARD_ROW_WARPS), l.block[0] = BACKWARD_ROW_WARPS * CPTX_WARP;
	return l;
}

cptx_launch *cptx_attention_backward_launch(const cptx_program *program, cptx_device *dev,
                                            const cptx_attention_backward_opt *opt,
                                            const cptx_attention_backward_problem *problem, uint32_t number, cptx_error *err)
{
	cptx_attention_backward_plan plan;
	cptx_attention_backward_problem p;
	cptx_attention_backward_opt o;

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err) ||
	    !backward_read(&o, opt, NULL, &plan, err) || !backward_read_problem(&p, problem, &o, &plan, err) ||
	    !check_addresses(&o, &p, &plan, err))
		return NULL;
	const bool some = p.heads && p.batch && number < CPTX_ATTENTION_BACKWARD_LAUNCHES;
	const cptx_launch_opt l = some ? launch_of(&o, &p, &plan, number) : (cptx_launch_opt){ .dyn_smem = 0 };
	if (!l.grid[0]) {
		error_set(err, CPTX_E_ARG, NOWHERE,
		          "attention: backward: launch %u of %u has no CTAs; they count from 0, and the problem "
		          "has %u queries and %u keys",
		          number, CPTX_ATTENTION_BACKWARD_LAUNCHES, p.queries, p.keys);
		return NULL;
	}
	const bool mapped = number == KEYS && o.mma == CPTX_ATTENTION_WGMMA;
	backward_maps maps;
	char *name = NULL;
	if ((mapped && !make_maps(&o, &p, &maps, err)) || !(name = name_of(&o, number, err)))
		return NULL;
	const backward_args args = args_of(&o, &p, cptx_device_get_info(dev)->sms);
	const cptx_params_part parts[] = { { backward_params, BACKWARD_PARAMS, &args },
		                               { backward_map_params, BACKWARD_MAPS, &maps } };
	cptx_launch *launch = cptx_params_launch_(NOWHERE, program, dev, name, parts, mapped ? 2 : 1, &l, err);
	free(name);
	return launch;
}

bool backward_has_launch(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                         const cptx_attention_backward_plan *plan, uint32_t number)
{
	return p->heads && p->batch && launch_of(o, p, plan, number).grid[0];
}
