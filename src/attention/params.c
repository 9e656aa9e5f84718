/* SPDX-License-Identifier: MIT */
/* The parameters of an attention kernel, in the kernel and at a launch. */
#include "attention/attention.h"
#include "kit/params.h"

#include <math.h>

/* What a launch fills them from; parameters have the names of its members. */
typedef struct attention_args {
	cptx_tensor_map_opt q, k, v, o;
	uint64_t q_at, q_batch, q_head, q_row, k_at, k_batch, k_head, k_row, v_at, v_batch, v_head, v_row;
	uint64_t o_at, o_batch, o_head, o_row; /* bytes */
	uint64_t lse, sinks, cu_queries, cu_keys, page_table;
	uint32_t total_queries, table_pitch;
	uint32_t queries, keys, heads, group, slots, rounds, row_tiles, planes, section;
	float scale, before, cap, sink_scale, v_scale;
	int32_t left, right;
} attention_args;

enum { L2_BYTES = 32 << 20 /* of K and V that are meant to stay there */ };

static kit_params list_parameters(const cptx_attention_opt *o, attention_in *in)
{
#define MAP_OF(member, to, there)                                                                                           \
	{                                                                                                                       \
		CPTX_PARAM_MAP(attention_args, member), there, &in->to                                                              \
	}
#define POINTER(member, to, what, there)                                                                                    \
	{                                                                                                                       \
		CPTX_PARAM_ROW(attention_args, CPTX_PTR, member##_##what), there, &in->to.what                                      \
	}
#define PLACE(member, to, there)                                                                                            \
	POINTER(member, to, at, there), POINTER(member, to, batch, there), POINTER(member, to, head, there),                    \
		POINTER(member, to, row, there)
#define NUMBER(type, member, there)                                                                                         \
	{                                                                                                                       \
		CPTX_PARAM_ROW(attention_args, type, member), there, &in->member                                                    \
	}
	const bool modified = o->softcap || o->score, loads = attention_loads_by_tma(o), stores = attention_stores_by_tma(o);
	const kit_param all[] = {
		MAP_OF(q, map_q, loads),
		MAP_OF(k, map_k, loads),
		MAP_OF(v, map_v, loads),
		MAP_OF(o, map_o, stores),
		PLACE(q, q, !loads),
		PLACE(k, k, !loads),
		PLACE(v, v, !loads),
		PLACE(o, out, !stores),
		NUMBER(CPTX_PTR, lse, o->lse),
		NUMBER(CPTX_PTR, sinks, o->sinks),
		NUMBER(CPTX_F32, sink_scale, o->sinks),
		NUMBER(CPTX_PTR, cu_queries, o->varlen),
		NUMBER(CPTX_PTR, cu_keys, o->varlen),
		NUMBER(CPTX_U32, total_queries, o->varlen && o->lse),
		NUMBER(CPTX_PTR, page_table, o->page),
		NUMBER(CPTX_U32, table_pitch, o->page),
		NUMBER(CPTX_U32, queries, true),
		NUMBER(CPTX_U32, keys, true),
		NUMBER(CPTX_U32, heads, true),
		NUMBER(CPTX_U32, group, true),
		NUMBER(CPTX_U32, slots, true),
		NUMBER(CPTX_U32, rounds, in->dealt),
		NUMBER(CPTX_U32, row_tiles, true),
		NUMBER(CPTX_U32, planes, true),
		NUMBER(CPTX_U32, section, true),
		NUMBER(CPTX_F32, scale, true),
		NUMBER(CPTX_F32, before, modified),
		NUMBER(CPTX_F32, cap, o->softcap && o->score),
		NUMBER(CPTX_F32, v_scale, attention_is_fp8(o)),
		NUMBER(CPTX_S32, left, o->window),
		NUMBER(CPTX_S32, right, o->window),
	};
#undef MAP_OF
#undef POINTER
#undef PLACE
#undef NUMBER
	return kit_params_of(all, ARRAY_LEN(all));
}

static attention_in begin(const cptx_attention_opt *o)
{
	return (attention_in){ .o = o, .dealt = o->causal && !attention_generator_of(o)->one_tile };
}

void attention_declare(cptx_kernel *k, attention_in *in, const cptx_attention_opt *o)
{
	*in = begin(o);
	const kit_params list = list_parameters(o, in);

	kit_params_declare(k, &in->params, &list);
}

/* ---- launches ---- */

cptx_attention_stride attention_stride_bytes(const cptx_attention_stride *s, enum cptx_type type, uint32_t dim,
                                             attention_extent of, uint32_t heads)
{
	const uint64_t bytes = cptx_type_bits(type) / 8, some = of.rows ? of.rows : 1;
	const bool dense = !s->batch && !s->head && !s->row;
	const uint64_t row = dense || some < 2 ? dim : s->row, head = dense || heads < 2 ? some * row : s->head;

	return (cptx_attention_stride){ .batch = (dense || of.batch < 2 ? heads * head : s->batch) * bytes,
		                            .head = head * bytes,
		                            .row = row * bytes };
}

cptx_operand_matrix attention_matrix_of(const cptx_operand_opt *op, uint64_t at, const cptx_attention_stride *s,
                                        uint32_t dim, attention_extent of, uint32_t heads)
{
	const cptx_attention_stride bytes = attention_stride_bytes(s, op->type, dim, of, heads);
	const bool along_k = op->tile.elem.mn_major;
	const uint64_t some = of.rows ? of.rows : 1;

	return (cptx_operand_matrix){ .size = CPTX_OPT_SIZE(cptx_operand_matrix),
		                          .address = at,
		                          .rows = along_k ? dim : some,
		                          .cols = along_k ? some : dim,
		                          .pitch = bytes.row,
		                          .batch = heads,
		                          .apart = bytes.head,
		                          .batch2 = of.batch,
		                          .apart2 = bytes.batch };
}

static bool make_maps(const attention_operands *ops, const cptx_attention_opt *o, const cptx_attention_problem *p,
                      attention_args *args, cptx_error *err)
{
	const cptx_operand_opt out = {
		.size = CPTX_OPT_SIZE(cptx_operand_opt), .type = attention_out(o), .tile = ops->o, .batched = true, .batch_dims = 2
	};
	const uint32_t dim_v = attention_dim_v(o);
	/* where there are no keys nothing is read, and a map needs some address */
	const uint64_t k_at = p->keys ? p->k : p->q, v_at = p->keys ? p->v : p->q;
	const attention_extent of_q = attention_extent_of_q(o, p), of_k = attention_extent_of_k(o, p);
	const cptx_operand_matrix q = attention_matrix_of(&ops->q, p->q, &p->q_stride, o->dim, of_q, p->heads);
	const cptx_operand_matrix k = attention_matrix_of(&ops->k, k_at, &p->k_stride, o->dim, of_k, p->kv_heads);
	const cptx_operand_matrix v = attention_matrix_of(&ops->v, v_at, &p->v_stride, dim_v, of_k, p->kv_heads);
	const cptx_operand_matrix d = attention_matrix_of(&out, p->o, &p->o_stride, dim_v, of_q, p->heads);

	return cptx_operand_tensor_map(&ops->q_part, &q, &args->q, err) &&
	       cptx_operand_tensor_map(&ops->k_part, &k, &args->k, err) &&
	       cptx_operand_tensor_map(&ops->v_part, &v, &args->v, err) &&
	       (!attention_stores_by_tma(o) || cptx_operand_tensor_map(&out, &d, &args->o, err));
}

static void set_places(const cptx_attention_opt *o, const cptx_attention_problem *p, attention_args *args)
{
	const uint32_t dim_v = attention_dim_v(o);
	const attention_extent of_q = attention_extent_of_q(o, p), of_k = attention_extent_of_k(o, p);
	const cptx_attention_stride q = attention_stride_bytes(&p->q_stride, o->in, o->dim, of_q, p->heads),
								k = attention_stride_bytes(&p->k_stride, o->in, o->dim, of_k, p->kv_heads),
								v = attention_stride_bytes(&p->v_stride, o->in, dim_v, of_k, p->kv_heads),
								d = attention_stride_bytes(&p->o_stride, attention_out(o), dim_v, of_q, p->heads);

	args->q_at = p->q, args->q_batch = q.batch, args->q_head = q.head, args->q_row = q.row;
	args->k_at = p->k, args->k_batch = k.batch, args->k_head = k.head, args->k_row = k.row;
	args->v_at = p->v, args->v_batch = v.batch, args->v_head = v.head, args->v_row = v.row;
	args->o_at = p->o, args->o_batch = d.batch, args->o_head = d.head, args->o_row = d.row;
}

/* Heads of Q and batches whose K and V fit L2 together: the tiles of these come one after another.  They are enough for one
 * and a half rounds of the CTAs, or else all. */
static uint32_t section_of(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t grid)
{
	const uint64_t row = (o->dim + attention_dim_v(o)) * (cptx_type_bits(o->in) / 8), bytes = (p->keys ? p->keys : 1) * row;
	const uint64_t planes = (uint64_t)attention_tile_heads(o, p) * p->batch;
	const uint64_t tiles = attention_up(p->queries, attention_tile_queries(o));
	uint64_t n = 1;

	while (2 * n * bytes <= L2_BYTES && n < planes)
		n *= 2;
	n *= p->heads ? attention_tile_heads(o, p) / p->kv_heads : 1;
	while (2 * n * tiles < 3 * (uint64_t)grid && n < planes)
		n *= 2;
	return (uint32_t)attention_min((int64_t)n, (int64_t)planes);
}

static int32_t bounded(uint32_t reach) { return (int32_t)attention_min(reach, ATTENTION_MOST_ROWS); }

static attention_args args_of(const cptx_attention_opt *o, const cptx_attention_problem *p, const cptx_attention_plan *plan)
{
	const float scale = o->softcap ? p->scale / p->softcap : p->scale;
	const uint32_t section = section_of(o, p, plan->grid), planes = attention_tile_heads(o, p) * p->batch,
				   row_tiles = attention_up(p->queries, attention_tile_queries(o));
	const uint32_t rounds = attention_up(section * row_tiles, plan->grid);
	const uint32_t sections = section ? attention_up(planes, section) : 0;

	const double factor = o->score ? 1 : o->softcap ? p->softcap : p->scale;

	return (attention_args){ .lse = p->lse,
		                     .sinks = p->sinks,
		                     .cu_queries = p->cu_queries,
		                     .cu_keys = p->cu_keys,
		                     .page_table = p->page_table,
		                     .total_queries = p->total_queries,
		                     .table_pitch = p->table_pitch,
		                     .queries = p->queries,
		                     .keys = p->keys,
		                     .heads = attention_tile_heads(o, p),
		                     .group = p->heads ? p->heads / p->kv_heads : 1,
		                     .slots = begin(o).dealt ? sections * rounds * plan->grid : (uint32_t)plan->tiles,
		                     .rounds = rounds,
		                     .row_tiles = row_tiles,
		                     .planes = planes,
		                     .section = section,
		                     .scale = (float)(factor * ATTENTION_LOG2E),
		                     .before = scale,
		                     .cap = p->softcap,
		                     .sink_scale = (float)(1 / factor),
		                     .v_scale = p->v_scale,
		                     .left = bounded(p->window_left),
		                     .right = o->causal ? 0 : bounded(p->window_right) };
}

static bool check_addresses(const cptx_attention_opt *o, const cptx_attention_problem *p, cptx_error *err)
{
	const attention_address all[] = { { "q", p->q, true, ATTENTION_CHUNK },
		                              { "k", p->k, p->keys, ATTENTION_CHUNK },
		                              { "v", p->v, p->keys, ATTENTION_CHUNK },
		                              { "o", p->o, true, ATTENTION_CHUNK },
		                              { "lse", p->lse, o->lse, sizeof(float) },
		                              { "sinks", p->sinks, o->sinks, sizeof(float) },
		                              { "cu_queries", p->cu_queries, o->varlen, sizeof(uint32_t) },
		                              { "cu_keys", p->cu_keys, o->varlen, sizeof(uint32_t) },
		                              { "page_table", p->page_table, o->page && p->keys, sizeof(uint32_t) } };

	return attention_check_addresses("", all, ARRAY_LEN(all), err);
}

cptx_launch *cptx_attention_launch(const cptx_program *program, cptx_device *dev, const cptx_attention_opt *opt,
                                   const cptx_attention_problem *problem, cptx_error *err)
{
	cptx_attention_plan plan;
	cptx_attention_problem p;
	cptx_attention_opt o;
	attention_in unused = { .o = NULL };

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err) ||
	    !attention_read(&o, opt, NULL, &plan, err) || !attention_read_problem(&p, problem, &o, err) ||
	    !attention_plan_problem(&o, &p, cptx_device_get_info(dev)->sms, &plan, err) || !check_addresses(&o, &p, err))
		return NULL;
	attention_args args = args_of(&o, &p, &plan);
	unused = begin(&o);
	set_places(&o, &p, &args);
	if (attention_loads_by_tma(&o)) {
		const attention_operands ops = attention_generator_of(&o)->operands(&o);
		if (!make_maps(&ops, &o, &p, &args, err))
			return NULL;
	}
	const kit_params list = list_parameters(&o, &unused);
	const cptx_params_part part = { list.row, list.n, &args };
	return cptx_params_launch_(NOWHERE, program, dev, o.name, &part, 1,
	                           CPTX_OPT(cptx_launch_opt, .grid = { plan.grid }, .block = { plan.threads },
	                                    .dyn_smem = plan.smem, .overlap = attention_loads_by_tma(&o)),
	                           err);
}
