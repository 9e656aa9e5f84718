/* SPDX-License-Identifier: MIT */
/* The parameters of an attention kernel, in the kernel and at a launch. */
#include "attention/attention.h"

#include <math.h>

/* What a launch fills them from; parameters have the names of its members. */
typedef struct attention_args {
	cptx_tensor_map_opt q, k, v, o;
	uint64_t lse;
	uint32_t queries, keys, heads, group, slots, rounds, row_tiles, planes, section;
	float scale, before, cap;
	int32_t left, right;
} attention_args;

typedef struct parameter {
	cptx_param_row row;
	bool there;
	cptx_val *val;
} parameter;

enum { MOST = 20, L2_BYTES = 32 << 20 /* of K and V that are meant to stay there */ };

/* The parameters that a kernel has, in order. */
typedef struct parameters {
	size_t n;
	cptx_param_row row[MOST];
	cptx_val *val[MOST];
} parameters;

static parameters list_parameters(const cptx_attention_opt *o, attention_in *in)
{
#define MAP_OF(member, to)                                                                                                  \
	{                                                                                                                       \
		CPTX_PARAM_MAP(attention_args, member), true, &in->to                                                               \
	}
#define NUMBER(type, member, there)                                                                                         \
	{                                                                                                                       \
		CPTX_PARAM_ROW(attention_args, type, member), there, &in->member                                                    \
	}
	const bool modified = o->softcap || o->score;
	const parameter all[] = {
		MAP_OF(q, map_q),
		MAP_OF(k, map_k),
		MAP_OF(v, map_v),
		MAP_OF(o, map_o),
		NUMBER(CPTX_PTR, lse, o->lse),
		NUMBER(CPTX_U32, queries, true),
		NUMBER(CPTX_U32, keys, true),
		NUMBER(CPTX_U32, heads, true),
		NUMBER(CPTX_U32, group, true),
		NUMBER(CPTX_U32, slots, true),
		NUMBER(CPTX_U32, rounds, o->causal),
		NUMBER(CPTX_U32, row_tiles, true),
		NUMBER(CPTX_U32, planes, true),
		NUMBER(CPTX_U32, section, true),
		NUMBER(CPTX_F32, scale, true),
		NUMBER(CPTX_F32, before, modified),
		NUMBER(CPTX_F32, cap, o->softcap && o->score),
		NUMBER(CPTX_S32, left, o->window),
		NUMBER(CPTX_S32, right, o->window),
	};
#undef MAP_OF
#undef NUMBER
	parameters p = { .n = 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].there)
			p.row[p.n] = all[i].row, p.val[p.n++] = all[i].val;
	return p;
}

void attention_declare(cptx_kernel *k, attention_in *in, const cptx_attention_opt *o)
{
	*in = (attention_in){ .o = o };
	const parameters list = list_parameters(o, in);

	cptx_params_declare(k, &in->params, list.row, list.n);
	for (uint32_t i = 0; i < in->params.n; i++)
		*list.val[i] = in->params.val[i];
	if (!o->causal && !o->window)
		return;
	in->shift = cptx_imm(0);
	if (!o->top_left)
		in->shift = cptx_sub(k, cptx_as(in->keys, CPTX_S32), cptx_as(in->queries, CPTX_S32));
}

/* ---- launches ---- */

/* Rows of `bytes` bytes each behind one another where nothing else is said; of what there is one of, any stride will do. */
static cptx_operand_matrix matrix_of(const cptx_operand_opt *op, uint64_t at, const cptx_attention_stride *s, uint32_t dim,
                                     uint32_t rows, uint32_t heads, uint32_t batch)
{
	const uint64_t bytes = op->tile.elem.bits / 8, some = rows ? rows : 1;
	const bool dense = !s->batch && !s->head && !s->row;
	const uint64_t row = dense || some == 1 ? dim : s->row, head = dense || heads == 1 ? some * row : s->head;
	const bool along_k = op->tile.elem.mn_major;

	return (cptx_operand_matrix){ .size = CPTX_OPT_SIZE(cptx_operand_matrix),
		                          .address = at,
		                          .rows = along_k ? dim : some,
		                          .cols = along_k ? some : dim,
		                          .pitch = row * bytes,
		                          .batch = heads,
		                          .apart = head * bytes,
		                          .batch2 = batch,
		                          .apart2 = (dense || batch == 1 ? heads * head : s->batch) * bytes };
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
	const cptx_operand_matrix q = matrix_of(&ops->q, p->q, &p->q_stride, o->dim, p->queries, p->heads, p->batch);
	const cptx_operand_matrix k = matrix_of(&ops->k, k_at, &p->k_stride, o->dim, p->keys, p->kv_heads, p->batch);
	const cptx_operand_matrix v = matrix_of(&ops->v, v_at, &p->v_stride, dim_v, p->keys, p->kv_heads, p->batch);
	const cptx_operand_matrix d = matrix_of(&out, p->o, &p->o_stride, dim_v, p->queries, p->heads, p->batch);

	return cptx_operand_tensor_map(&ops->q, &q, &args->q, err) && cptx_operand_tensor_map(&ops->k, &k, &args->k, err) &&
	       cptx_operand_tensor_map(&ops->v, &v, &args->v, err) && cptx_operand_tensor_map(&out, &d, &args->o, err);
}

/* Heads of Q and batches whose K and V fit L2 together: the tiles of these come one after another.  They are enough for one
 * and a half rounds of the CTAs, or else all. */
static uint32_t section_of(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t grid)
{
	const uint64_t bytes = (uint64_t)(p->keys ? p->keys : 1) * (o->dim + attention_dim_v(o)) * 2;
	const uint64_t planes = (uint64_t)p->heads * p->batch, tiles = attention_up(p->queries, o->bq);
	uint64_t n = 1;

	while (2 * n * bytes <= L2_BYTES && n < planes)
		n *= 2;
	n *= p->heads ? p->heads / p->kv_heads : 1;
	while (2 * n * tiles < 3 * (uint64_t)grid && n < planes)
		n *= 2;
	return (uint32_t)attention_min((int64_t)n, (int64_t)planes);
}

static int32_t bounded(uint32_t reach) { return (int32_t)attention_min(reach, ATTENTION_MOST_ROWS); }

static attention_args args_of(const cptx_attention_opt *o, const cptx_attention_problem *p, const cptx_attention_plan *plan)
{
	const float scale = o->softcap ? p->scale / p->softcap : p->scale;
	const uint32_t section = section_of(o, p, plan->grid), planes = p->heads * p->batch,
				   row_tiles = attention_up(p->queries, o->bq);
	const uint32_t rounds = attention_up(section * row_tiles, plan->grid);
	const uint32_t sections = section ? attention_up(planes, section) : 0;

	return (attention_args){ .lse = p->lse,
		                     .queries = p->queries,
		                     .keys = p->keys,
		                     .heads = p->heads,
		                     .group = p->heads ? p->heads / p->kv_heads : 1,
		                     .slots = o->causal ? sections * rounds * plan->grid : (uint32_t)plan->tiles,
		                     .rounds = rounds,
		                     .row_tiles = row_tiles,
		                     .planes = planes,
		                     .section = section,
		                     .scale = (float)((o->score     ? 1
		                                       : o->softcap ? p->softcap
		                                                    : p->scale) *
		                                      ATTENTION_LOG2E),
		                     .before = scale,
		                     .cap = p->softcap,
		                     .left = bounded(p->window_left),
		                     .right = o->causal ? 0 : bounded(p->window_right) };
}

static bool check_addresses(const cptx_attention_opt *o, const cptx_attention_problem *p, cptx_error *err)
{
	const struct {
		const char *name;
		uint64_t at;
		bool needed;
		unsigned align;
	} all[] = { { "q", p->q, true, ATTENTION_CHUNK },
		        { "k", p->k, p->keys, ATTENTION_CHUNK },
		        { "v", p->v, p->keys, ATTENTION_CHUNK },
		        { "o", p->o, true, ATTENTION_CHUNK },
		        { "lse", p->lse, o->lse, sizeof(float) } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		ATTENTION_RULE(!all[i].needed || all[i].at, "the address .%s is 0", all[i].name);
		ATTENTION_RULE(!all[i].needed || all[i].at % all[i].align == 0, ".%s is 0x%llx; it must be a multiple of %u",
		               all[i].name, (unsigned long long)all[i].at, all[i].align);
	}
	return true;
}

cptx_launch *cptx_attention_launch(const cptx_program *program, cptx_device *dev, const cptx_attention_opt *opt,
                                   const cptx_attention_problem *problem, cptx_error *err)
{
	cptx_attention_plan plan;
	cptx_attention_problem p;
	cptx_attention_opt o;
	attention_in unused;

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err) ||
	    !attention_read(&o, opt, NULL, &plan, err) || !attention_read_problem(&p, problem, &o, err) ||
	    !attention_plan_problem(&o, &p, cptx_device_get_info(dev)->sms, &plan, err) || !check_addresses(&o, &p, err))
		return NULL;
	attention_args args = args_of(&o, &p, &plan);
	const attention_operands ops = attention_generator_of(&o)->operands(&o);
	if (!make_maps(&ops, &o, &p, &args, err))
		return NULL;
	const parameters list = list_parameters(&o, &unused);
	const cptx_params_part part = { list.row, list.n, &args };
	return cptx_params_launch_(
		NOWHERE, program, dev, o.name, &part, 1,
		CPTX_OPT(cptx_launch_opt, .grid = { plan.grid }, .block = { plan.threads }, .dyn_smem = plan.smem, .overlap = true),
		err);
}
