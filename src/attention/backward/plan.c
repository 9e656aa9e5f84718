/* SPDX-License-Identifier: MIT */
/* Attention backward: shapes, rules of options and problems, plans. */
#include "attention/backward/backward.h"
#include "base/options.h"

#define RULE(ok, ...) ATTENTION_RULE(ok, "backward: " __VA_ARGS__)

enum { STATIC_SMEM = 1024 };

/* ---- shapes ---- */

static cptx_tile tile(uint32_t rows, uint32_t cols, uint32_t contiguous, bool mn_major)
{
	return (cptx_tile){ rows, cols, { 16, mn_major, false }, contiguous % 64 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B, 0, 0 };
}

static bool by_wgmma(const cptx_attention_backward_opt *o) { return o->mma == CPTX_ATTENTION_WGMMA; }

/* Whole swizzle spans of 64 bytes; by wgmma of 128, which warpgroups have beside one another. */
static uint32_t round_dim(const cptx_attention_backward_opt *o)
{
	const uint32_t span = by_wgmma(o) ? 64 : 32;

	return attention_up(o->dim, span) * span;
}

backward_shape backward_shape_of(const cptx_attention_backward_opt *o)
{
	const uint32_t dim = round_dim(o);
	backward_shape s = { .dim = dim, .warps = by_wgmma(o) ? 4 * (BACKWARD_GROUPS + 1) : o->bk / 16 };

	s.dq_apart = by_wgmma(o) && !o->deterministic && dim == 64;
	s.dq_groups = s.dq_apart ? 1 : BACKWARD_GROUPS;
	s.warps += s.dq_apart ? 4 : 0, s.regs = s.dq_apart ? 208 : 240;
	s.threads = s.warps * CPTX_WARP;
	s.q = tile(o->bq, dim, dim, false), s.q_t = tile(dim, o->bq, dim, true);
	s.k = tile(o->bk, dim, dim, false), s.k_t = tile(dim, o->bk, dim, true);
	s.p = tile(o->bk, o->bq, o->bq, false), s.p_t = tile(o->bq, o->bk, o->bq, true);
	s.stats_bytes = o->bq * 8;
	s.part_cols = dim / s.dq_groups;
	s.part_bytes = o->bq * s.part_cols * 4;
	if (by_wgmma(o) && s.part_cols < 64) /* a warpgroup's columns of K are spans of their own */
		s.k.swizzle = s.k_t.swizzle = CPTX_SWIZZLE_64B;
	s.smem = 2 * cptx_tile_bytes(&s.k) + o->stages * (2 * cptx_tile_bytes(&s.q) + s.stats_bytes);
	if (!o->deterministic)
		s.smem += by_wgmma(o) ? 2 * cptx_tile_bytes(&s.p) + BACKWARD_PARTS * s.part_bytes : cptx_tile_bytes(&s.p);
	s.dq_smem = (2 + 2 * BACKWARD_DQ_STAGES) * BACKWARD_DQ_ROWS * dim * 2;
	return s;
}

static void complete(cptx_attention_backward_opt *o)
{
	const uint32_t dim = round_dim(o);

	/* by mma.sync wide heads leave no registers for scores that are kept beside their probabilities */
	const bool crowded = !by_wgmma(o) && dim > 96 && backward_keeps_scores(o);

	o->bq = o->bq ? o->bq : crowded ? 32 : 64;
	o->bk = o->bk ? o->bk : dim == 96 ? 64 : 128;
	o->stages = o->stages ? o->stages : 2;
}

/* ---- options ---- */

#define BACKWARD_VALUE_NUMBER(v) (v)
#define BACKWARD_VALUE_POWER(v) (v)
#define BACKWARD_VALUE_BOOL(v) 0
#define BACKWARD_VALUE_TYPE(v) 0
#define BACKWARD_VALUE_MMA(v) 0
#define BACKWARD_VALUE_POINTER(v) 0
enum {
	BACKWARD_POWER_NUMBER = false,
	BACKWARD_POWER_POWER = true,
	BACKWARD_POWER_BOOL = false,
	BACKWARD_POWER_TYPE = false,
	BACKWARD_POWER_MMA = false,
	BACKWARD_POWER_POINTER = false
};

static bool check_ranges(const cptx_attention_backward_opt *o, cptx_error *err)
{
	const attention_range all[] = {
#define BACKWARD_FIELD(id, field, type, least, most, step, about)                                                           \
	{ #field, BACKWARD_POWER_##type, BACKWARD_VALUE_##type(o->field), least, most, step },
#include "attention/backward/options.def"
	};

	return attention_check_ranges("backward: ", all, ARRAY_LEN(all), err);
}

static bool check_kind(const cptx_attention_backward_opt *o, cptx_error *err)
{
	RULE((unsigned)o->mma < CPTX_ATTENTION_MMAS, ".mma = %u; there are mma.sync, wgmma and tcgen05", (unsigned)o->mma);
	RULE(o->mma != CPTX_ATTENTION_TCGEN05,
	     "there is no kernel by tcgen05; .mma is CPTX_ATTENTION_SYNC, for sm_80 and later, or "
	     "CPTX_ATTENTION_WGMMA, for sm_90a");
	RULE(o->in == CPTX_BF16 || o->in == CPTX_F16, ".in is %s; operands are CPTX_BF16 or CPTX_F16",
	     o->in == CPTX_TYPE_NONE ? "not given" : cptx_type_name(o->in));
	RULE(o->dim, ".dim is not given; it is the head size, a multiple of 8 from 8 to 128");
	RULE(!o->top_left || o->causal || o->window,
	     ".top_left without .causal and .window; all keys count, wherever they stand");
	RULE(!o->score || o->score_grad,
	     ".score without .score_grad, which builds its derivative; of a function that adds to the score say "
	     "cptx_attention_grad_one");
	RULE(!o->score_grad || o->score, ".score_grad without .score; it is the derivative of that");
	RULE(!o->blocks || o->mask, ".blocks without .mask; it says in which blocks the mask lets nothing count");
	return true;
}

static bool check_target(const cptx_attention_backward_opt *o, const cptx_target *t, cptx_error *err)
{
	if (!cptx_form_on_target(CPTX_OP_CP_ASYNC, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "attention: backward: %s has no cp.async; sm_80 and later have it",
		                 t->name);
	if (o->sm90 && !cptx_form_on_target(CPTX_OP_GRIDDEPCONTROL, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "attention: backward: .sm90, and %s is none of sm_90 and later",
		                 t->name);
	if (by_wgmma(o) && !cptx_form_on_target(CPTX_OP_WGMMA_MMA_ASYNC, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "attention: backward: %s has no wgmma; sm_90a has it", t->name);
	const backward_shape s = backward_shape_of(o);
	const uint32_t most = MIN(t->smem_per_sm - t->smem_reserved, t->smem_per_cta) - STATIC_SMEM;
	RULE(s.smem <= most,
	     "%u queries in %u stages and %u keys of head size %u need %u bytes of shared memory; a CTA of %s has at most %u: "
	     ".bq = "
	     "32, .bk = 64 need less",
	     o->bq, o->stages, o->bk, s.dim, s.smem, t->name, most);
	return true;
}

static bool check_shape(const cptx_attention_backward_opt *o, const backward_shape *s, cptx_error *err)
{
	const uint32_t beside = s->warps / (o->bq / 16);

	if (by_wgmma(o)) {
		RULE(o->bq == 64 && o->bk == 64 * BACKWARD_GROUPS, "wgmma with blocks of %u queries and %u keys; it has 64 and 128",
		     o->bq, o->bk);
		return true;
	}
	RULE(o->deterministic || s->dim % (beside * 8) == 0, "head size %u, which %u warps share; it is a multiple of %u",
	     s->dim, beside, beside * 8);
	RULE(o->deterministic || s->dim % 64 == 0 || beside == 1 || s->dim == 32,
	     "head size %u with blocks of %u queries and %u keys, of which %u warps share rows of dQ; say .bk = %u", s->dim,
	     o->bq, o->bk, beside, o->bq);
	return true;
}

bool backward_read(cptx_attention_backward_opt *o, const cptx_attention_backward_opt *given, const cptx_target *target,
                   cptx_attention_backward_plan *plan, cptx_error *err)
{
	if (!IS_GIVEN(given, "options struct", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_backward_opt, o, given, NOWHERE, err))
		return false;
	o->name = o->name ? o->name : "attention_backward";
	if (!cptx_name_check("kernel", o->name, err) || !check_kind(o, err) || !check_ranges(o, err))
		return false;
	complete(o);
	const backward_shape s = backward_shape_of(o);
	*plan = (cptx_attention_backward_plan){ .threads = s.threads, .smem = s.smem, .dim = s.dim };
	return check_shape(o, &s, err) && (!target || check_target(o, target, err));
}

bool cptx_attention_backward_check_(const cptx_attention_backward_opt *opt, const cptx_target *target,
                                    cptx_attention_backward_plan *plan, size_t size, cptx_error *err)
{
	cptx_attention_backward_opt o;
	cptx_attention_backward_plan here;

	if (!backward_read(&o, opt, target, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

/* ---- problems ---- */

/* What the forward has too: its rules of sizes, numbers, and how Q, K, V and O lie. */
static bool read_forward(cptx_attention_backward_problem *p, const cptx_attention_opt *o, cptx_attention_problem *forward,
                         cptx_error *err)
{
	const cptx_attention_problem given = { .size = CPTX_OPT_SIZE(cptx_attention_problem),
		                                   .batch = p->batch,
		                                   .heads = p->heads,
		                                   .kv_heads = p->kv_heads,
		                                   .queries = p->queries,
		                                   .keys = p->keys,
		                                   .q_stride = p->q_stride,
		                                   .k_stride = p->k_stride,
		                                   .v_stride = p->v_stride,
		                                   .o_stride = p->o_stride,
		                                   .scale = p->scale,
		                                   .softcap = p->softcap,
		                                   .window_left = p->window_left,
		                                   .window_right = p->window_right,
		                                   .cu_queries = p->cu_queries,
		                                   .cu_keys = p->cu_keys,
		                                   .total_queries = p->total_queries,
		                                   .total_keys = p->total_keys };

	if (!attention_read_problem(forward, &given, o, err))
		return false;
	p->kv_heads = forward->kv_heads, p->scale = forward->scale;
	return true;
}

attention_extent backward_extent_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                    bool of_keys)
{
	return o->varlen ? (attention_extent){ of_keys ? p->total_keys : p->total_queries, 1 }
	                 : (attention_extent){ of_keys ? p->keys : p->queries, p->batch };
}

uint64_t backward_work_rows(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p)
{
	return o->varlen ? backward_pad(p->total_queries) + (uint64_t)p->batch * BACKWARD_PAD
	                 : (uint64_t)p->batch * backward_pad(p->queries);
}

static bool check_strides(const cptx_attention_backward_problem *p, const cptx_attention_backward_opt *o, cptx_error *err)
{
	const struct {
		const char *name;
		const cptx_attention_stride *s;
		bool of_keys;
	} all[] = { { "q", &p->q_stride, false },  { "o", &p->o_stride, false },   { "k", &p->k_stride, true },
		        { "v", &p->v_stride, true },   { "do", &p->do_stride, false }, { "dq", &p->dq_stride, false },
		        { "dk", &p->dk_stride, true }, { "dv", &p->dv_stride, true } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const attention_extent e = backward_extent_of(o, p, all[i].of_keys);
		if (!attention_check_stride(all[i].name, all[i].s, o->in, o->dim, e.rows, all[i].of_keys ? p->kv_heads : p->heads,
		                            e.batch, err))
			return false;
		RULE(all[i].s->row < UINT64_C(1) << 24, ".%s_stride.row = %llu; it is below 2^24", all[i].name,
		     (unsigned long long)all[i].s->row);
	}
	return true;
}

bool backward_read_problem(cptx_attention_backward_problem *p, const cptx_attention_backward_problem *given,
                           const cptx_attention_backward_opt *o, cptx_attention_backward_plan *plan, cptx_error *err)
{
	const cptx_attention_opt of = { .in = o->in,
		                            .dim = o->dim,
		                            .causal = o->causal,
		                            .top_left = o->top_left,
		                            .window = o->window,
		                            .softcap = o->softcap,
		                            .varlen = o->varlen };
	cptx_attention_problem forward;

	if (!IS_GIVEN(given, "problem", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_backward_problem, p, given, NOWHERE, err) || !read_forward(p, &of, &forward, err) ||
	    !check_strides(p, o, err))
		return false;
	const uint64_t rows = (uint64_t)p->batch * p->heads * backward_pad(p->queries);
	const uint64_t work_rows = p->heads * backward_work_rows(o, p);
	const uint64_t grid = (uint64_t)attention_up(p->keys, o->bk) * p->batch * p->kv_heads;
	RULE(MAX(rows, work_rows) < UINT64_C(1) << 32, "%llu rows of Q in all; there are less than 2^32",
	     (unsigned long long)MAX(rows, work_rows));
	RULE(grid < UINT64_C(1) << 31, "%llu blocks of %u keys; there are less than 2^31 in a launch", (unsigned long long)grid,
	     o->bk);
	plan->grid = (uint32_t)grid;
	plan->workspace = work_rows * (8 + (o->deterministic ? 0 : plan->dim * 4));
	plan->flop = 10.0 * o->dim * attention_scores(&of, &forward);
	return true;
}

bool cptx_attention_backward_check_problem_(const cptx_attention_backward_opt *opt,
                                            const cptx_attention_backward_problem *problem,
                                            cptx_attention_backward_plan *plan, size_t size, cptx_error *err)
{
	cptx_attention_backward_opt o;
	cptx_attention_backward_problem p;
	cptx_attention_backward_plan here;

	if (!backward_read(&o, opt, NULL, &here, err) || !backward_read_problem(&p, problem, &o, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}
