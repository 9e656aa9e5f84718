/* SPDX-License-Identifier: MIT */
/* Attention for decoding: shapes, rules of options and problems, plans. */
#include "attention/decode/decode.h"
#include "base/options.h"

#include <math.h>

#define RULE(ok, ...) ATTENTION_RULE(ok, "decode: " __VA_ARGS__)

enum {
	MOST_DIM = 256,
	STATIC_SMEM = 8 << 10, /* at most, for the warps' maxima and sums */
	MLA_STATIC = 1024,     /* for its mbarriers */
	MLA_MANY_STAGES = 320, /* head sizes up to this leave room for four blocks */
	MOST_REGS = 208        /* of a thread, for Q, S and O: what is left beside addresses */
};

static const cptx_target *target_or_usual(const cptx_target *t) { return t ? t : cptx_target_find("sm_90a"); }

/* ---- shapes ---- */

static uint32_t round_dim(uint32_t dim) { return attention_up(dim, 32) * 32; }

static cptx_tile tile(uint32_t rows, uint32_t cols, uint32_t dim, bool mn_major)
{
	return (cptx_tile){ rows, cols, { 16, mn_major, false }, dim % 64 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B, 0, 0 };
}

static decode_shape mla_shape(const cptx_attention_decode_opt *o)
{
	decode_shape s = { .dim = o->dim, .dim_v = decode_dim_v(o), .ctas_per_sm = 1 };

	s.threads = (DECODE_MLA_GROUPS + 1) * 4 * CPTX_WARP;
	s.half = s.dim_v / DECODE_MLA_GROUPS, s.rest = s.dim - s.dim_v;
	const uint32_t last = s.rest ? DECODE_MLA_IN_REGS : 0, others = s.rest - last;
	s.q = tile(o->rows, s.half, s.half, false), s.k = tile(o->bk, s.half, s.half, false);
	s.v = tile(s.half, o->bk, s.half, true);
	s.q_rest = tile(o->rows, others, others, false), s.k_rest = tile(o->bk, others, others, false);
	s.q_last = tile(o->rows, last, last, false), s.k_last = tile(o->bk, last, last, false);
	s.rest_block = tile(o->bk, s.rest, s.rest, false);
	s.p = tile(o->rows, o->bk, o->bk, false);
	s.k_bytes = DECODE_MLA_GROUPS * cptx_tile_bytes(&s.k) + (s.rest ? cptx_tile_bytes(&s.rest_block) : 0);
	s.q_bytes = DECODE_MLA_GROUPS * cptx_tile_bytes(&s.q) + (others ? cptx_tile_bytes(&s.q_rest) : 0);
	s.ring = o->stages * s.k_bytes;
	s.smem =
		s.q_bytes + s.ring + DECODE_MLA_GROUPS * (cptx_tile_bytes(&s.p) + 4 * CPTX_WARP * (uint32_t)DECODE_MLA_EXCHANGED);
	return s;
}

uint32_t decode_key_bytes(const cptx_attention_decode_opt *o) { return 2 * (o->dim + (o->mla ? 0 : decode_dim_v(o))); }

decode_shape decode_shape_of(const cptx_attention_decode_opt *o, const cptx_target *target)
{
	const cptx_target *t = target_or_usual(target);
	const uint32_t each = o->rows / 16;
	if (o->mla)
		return mla_shape(o);
	decode_shape s = { .dim = round_dim(o->dim), .dim_v = round_dim(decode_dim_v(o)), .threads = o->warps * CPTX_WARP };

	s.k = tile(o->bk, s.dim, s.dim, false);
	s.v = tile(s.dim_v, o->bk, s.dim_v, true);
	s.k_bytes = attention_up(cptx_tile_bytes(&s.k), 1024) * 1024;
	s.v_bytes = attention_up(cptx_tile_bytes(&s.v), 1024) * 1024;
	s.ring = o->stages * (s.k_bytes + s.v_bytes);
	s.pitch = s.dim_v + DECODE_PAD;
	s.results = o->warps * o->rows * s.pitch * 4;
	s.smem = MAX(o->warps * s.ring, s.results);
	s.regs = each * (s.dim / 4 + s.dim_v / 2 + o->bk / 2 + o->bk / 4);
	const uint32_t by_smem = t->smem_per_sm / (s.smem + o->warps * o->rows * 8 + t->smem_reserved);
	const uint32_t by_regs = CPTX_REGS_PER_SM / ((s.regs + CPTX_REGS_PER_THREAD - MOST_REGS) * s.threads);
	s.ctas_per_sm = MAX(MIN(by_smem, by_regs), 1);
	return s;
}

static void complete(cptx_attention_decode_opt *o)
{
	const uint32_t dim = round_dim(o->dim) + round_dim(decode_dim_v(o));

	if (o->mla) {
		o->rows = o->rows ? o->rows : DECODE_MLA_ROWS, o->bk = o->bk ? o->bk : DECODE_MLA_ROWS;
		o->stages = o->stages ? o->stages : o->dim <= MLA_MANY_STAGES ? 4 : 2;
		return;
	}
	o->rows = o->rows ? o->rows : 16;
	o->bk = o->bk ? o->bk : 16;
	o->warps = o->warps ? o->warps : 4;
	o->stages = o->stages ? o->stages : dim <= 128 ? 5 : dim <= 256 ? 3 : 2;
}

/* ---- options ---- */

#define DECODE_VALUE_NUMBER(v) (v)
#define DECODE_VALUE_POWER(v) (v)
#define DECODE_VALUE_BOOL(v) 0
#define DECODE_VALUE_TYPE(v) 0
enum { DECODE_POWER_NUMBER = false, DECODE_POWER_POWER = true, DECODE_POWER_BOOL = false, DECODE_POWER_TYPE = false };

static bool check_ranges(const cptx_attention_decode_opt *o, cptx_error *err)
{
	const attention_range all[] = {
#define DECODE_FIELD(id, field, type, least, most, step, about)                                                             \
	{ #field, DECODE_POWER_##type, DECODE_VALUE_##type(o->field), least, most, step },
#include "attention/decode/options.def"
	};

	return attention_check_ranges("decode: ", all, ARRAY_LEN(all), err);
}

static bool check_types(const cptx_attention_decode_opt *o, cptx_error *err)
{
	RULE(o->in == CPTX_BF16 || o->in == CPTX_F16, ".in is %s; Q, K and V are CPTX_BF16 or CPTX_F16",
	     o->in == CPTX_TYPE_NONE ? "not given" : cptx_type_name(o->in));
	RULE(o->out == CPTX_TYPE_NONE || o->out == o->in || o->out == CPTX_F32,
	     ".out is %s; O is of the type of Q, .%s, or CPTX_F32", cptx_type_name(o->out), cptx_type_name(o->in));
	RULE(o->dim, ".dim is not given; it is the head size, a multiple of 8 from 8 to 256");
	RULE(o->mla || (o->dim <= MOST_DIM && o->dim_v <= MOST_DIM), ".dim = %u, .dim_v = %u; without .mla both are at most %u",
	     o->dim, o->dim_v, MOST_DIM);
	RULE(!o->mla || (o->dim % 64 == 0 && o->dim_v % 128 == 0 && o->dim_v && o->dim_v <= o->dim),
	     ".mla with .dim = %u and .dim_v = %u; the one is a multiple of 64, and the other of 128, at most .dim", o->dim,
	     o->dim_v);
	RULE(!o->window || o->causal, ".window without .causal; a window ends at the query");
	return true;
}

static bool check_target(const cptx_attention_decode_opt *o, const cptx_target *t, cptx_error *err)
{
	if (!cptx_form_on_target(CPTX_OP_CP_ASYNC, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "attention: decode: %s has no cp.async; sm_80 and later have it",
		                 t->name);
	if (o->mla && !cptx_form_on_target(CPTX_OP_WGMMA_MMA_ASYNC, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE, "attention: decode: .mla, and %s has no wgmma; sm_90a has it",
		                 t->name);
	if (o->overlap && !cptx_form_on_target(CPTX_OP_GRIDDEPCONTROL, 0, t))
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "attention: decode: .overlap, and %s has no griddepcontrol; sm_90 and "
		                 "later have it",
		                 t->name);
	return true;
}

static bool check_shape(const cptx_attention_decode_opt *o, const decode_shape *s, const cptx_target *t, cptx_error *err)
{
	const uint32_t most = MIN(t->smem_per_sm - t->smem_reserved, t->smem_per_cta) - (o->mla ? MLA_STATIC : STATIC_SMEM);

	RULE(!o->mla || (o->rows == DECODE_MLA_ROWS && o->bk == DECODE_MLA_ROWS && !o->warps),
	     ".mla with tiles of %u rows, blocks of %u keys and %u warps; it has %u, %u, and 0 stands for its own", o->rows,
	     o->bk, o->warps, DECODE_MLA_ROWS, DECODE_MLA_ROWS);
	RULE(!o->mla || o->stages % DECODE_MLA_GROUPS == 0, ".mla with %u stages; it takes blocks by twos, so they are even",
	     o->stages);
	RULE(o->mla || o->rows <= 32, ".rows = %u; it is 16 or 32", o->rows);
	RULE(s->regs <= MOST_REGS,
	     "%u rows, blocks of %u keys and head sizes %u and %u need %u registers for Q, S and O; a thread "
	     "has %u",
	     o->rows, o->bk, s->dim, s->dim_v, s->regs, MOST_REGS);
	RULE(!o->mla || s->smem <= most,
	     ".mla with %u stages of %u keys, head sizes %u and %u, needs %u bytes of shared memory; a CTA of %s has at most %u",
	     o->stages, o->bk, s->dim, s->dim_v, s->smem, t->name, most);
	RULE(s->smem <= most,
	     "%u warps with %u stages of %u keys, head sizes %u and %u, need %u bytes of shared memory; a CTA of %s "
	     "has at most %u",
	     o->warps, o->stages, o->bk, s->dim, s->dim_v, s->smem, t->name, most);
	return true;
}

bool decode_read(cptx_attention_decode_opt *o, const cptx_attention_decode_opt *given, const cptx_target *target,
                 cptx_attention_decode_plan *plan, cptx_error *err)
{
	const cptx_target *t = target_or_usual(target);

	if (!IS_GIVEN(given, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_attention_decode_opt, o, given, NOWHERE, err))
		return false;
	o->name = o->name ? o->name : "attention_decode";
	if (!cptx_name_check("kernel", o->name, err) || !check_types(o, err) || !check_ranges(o, err) ||
	    !check_target(o, t, err))
		return false;
	complete(o);
	const decode_shape s = decode_shape_of(o, t);
	*plan = (cptx_attention_decode_plan){ .threads = s.threads, .smem = s.smem, .dim = s.dim, .dim_v = s.dim_v };
	return check_shape(o, &s, t, err);
}

bool cptx_attention_decode_check_(const cptx_attention_decode_opt *opt, const cptx_target *target,
                                  cptx_attention_decode_plan *plan, size_t size, cptx_error *err)
{
	cptx_attention_decode_opt o;
	cptx_attention_decode_plan here;

	if (!decode_read(&o, opt, target, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

/* ---- problems ---- */

static bool check_pages(const cptx_attention_decode_problem *p, const cptx_attention_decode_opt *o, cptx_error *err)
{
	if (!o->paged) {
		RULE(!p->page && !p->page_pitch && !p->pages,
		     "the problem has pages, and the kernel none: say .paged in its options");
		return true;
	}
	RULE(p->page && p->page % o->bk == 0, ".page = %u; pages have a multiple of %u keys, those of a block (.bk)", p->page,
	     o->bk);
	RULE((uint64_t)p->page_pitch * p->page >= p->keys, ".page_pitch = %u; %u keys have %u pages of %u", p->page_pitch,
	     p->keys, attention_up(p->keys, p->page), p->page);
	RULE((uint64_t)p->page_pitch * p->batch < UINT64_C(1) << 32, "%u sequences with %u pages each; there are less than 2^32",
	     p->batch, p->page_pitch);
	return true;
}

static bool check_numbers(const cptx_attention_decode_problem *p, const cptx_attention_decode_opt *o, cptx_error *err)
{
	RULE(p->queries <= DECODE_MOST_QUERIES,
	     "%u queries; decoding has 1 to %u of each head, and more are for "
	     "<cptx/attention.h>",
	     p->queries, DECODE_MOST_QUERIES);
	RULE(p->keys < ATTENTION_MOST_ROWS, "%u keys; they are below 2^29", p->keys);
	RULE(p->kv_heads <= p->heads && (!p->heads || p->heads % p->kv_heads == 0),
	     "%u heads of Q, and %u of K and V; these divide those of Q", p->heads, p->kv_heads);
	RULE((uint64_t)p->batch * p->heads < (UINT64_C(1) << 31) / DECODE_MOST_QUERIES,
	     "%u sequences of %u heads; there are less than "
	     "2^27 in all",
	     p->batch, p->heads);
	RULE(p->scale > 0 && isfinite(p->scale), ".scale = %g; it is above 0", (double)p->scale);
	RULE(o->softcap || !(p->softcap != 0), "the problem has softcap = %g, and the kernel none: say .softcap in its options",
	     (double)p->softcap);
	RULE(!o->softcap || (p->softcap > 0 && isfinite(p->softcap)), ".softcap = %g; it is above 0", (double)p->softcap);
	RULE(o->window || !p->window_left, "the problem has a window, and the kernel none: say .window in its options");
	RULE(!o->mla || !p->v, "the problem has .v, and with .mla V is in K: it is 0");
	RULE(!o->mla || (!p->v_stride.batch && !p->v_stride.head && !p->v_stride.row),
	     "the problem has .v_stride, and with .mla V is in K: all of it is 0");
	RULE(p->splits <= DECODE_MOST_SPLITS, ".splits = %u; there are at most %u", p->splits, DECODE_MOST_SPLITS);
	return true;
}

static bool check_strides(const cptx_attention_decode_problem *p, const cptx_attention_decode_opt *o, cptx_error *err)
{
	const uint32_t dim_v = decode_dim_v(o), rows = o->paged ? p->page : p->keys;
	const uint64_t batch = o->paged ? UINT32_MAX : p->batch;
	const enum cptx_type out = decode_out(o);

	if (!attention_check_stride("q", &p->q_stride, o->in, o->dim, p->queries, p->heads, p->batch, err) ||
	    !attention_check_stride("k", &p->k_stride, o->in, o->dim, rows, p->kv_heads, batch, err) ||
	    !attention_check_stride("v", &p->v_stride, o->in, dim_v, rows, p->kv_heads, batch, err) ||
	    !attention_check_stride("o", &p->o_stride, out, dim_v, p->queries, p->heads, p->batch, err))
		return false;
	RULE(p->k_stride.row < UINT64_C(1) << 24 && p->v_stride.row < UINT64_C(1) << 24,
	     ".k_stride.row = %llu, .v_stride.row = %llu; both are below 2^24", (unsigned long long)p->k_stride.row,
	     (unsigned long long)p->v_stride.row);
	return true;
}

bool decode_read_problem(cptx_attention_decode_problem *p, const cptx_attention_decode_problem *given,
                         const cptx_attention_decode_opt *o, cptx_error *err)
{
	if (!IS_GIVEN(given, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_attention_decode_problem, p, given, NOWHERE, err))
		return false;
	p->kv_heads = p->kv_heads ? p->kv_heads : p->heads;
	p->scale = p->scale != 0 ? p->scale : (float)(1 / sqrt(o->dim));
	p->total_keys = p->total_keys ? p->total_keys : (uint64_t)p->batch * p->keys;
	p->window_left = MIN(p->window_left, (uint32_t)ATTENTION_MOST_ROWS);
	if (o->paged && p->page && !p->page_pitch)
		p->page_pitch = attention_up(p->keys, p->page);
	return check_numbers(p, o, err) && check_pages(p, o, err) && check_strides(p, o, err);
}

uint32_t decode_keys_read(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p, uint64_t keys)
{
	const uint64_t most = (uint64_t)p->window_left + p->queries + o->bk - 1;

	return (uint32_t)(o->window && most < keys ? most : keys);
}

uint32_t decode_chunk_of(const cptx_attention_decode_opt *o, uint32_t keys, uint32_t splits)
{
	const uint32_t turn = decode_turn(o);

	return MAX(attention_up(attention_up(keys, splits), turn), 1) * turn;
}

bool decode_plan_problem(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                         const cptx_target *target, uint32_t sms, cptx_attention_decode_plan *plan, cptx_error *err)
{
	const uint32_t group = p->heads ? p->heads / p->kv_heads : 1, keys = decode_keys_read(o, p, p->keys);
	const uint32_t splits = p->splits ? p->splits : decode_choose(o, p, target, sms).splits;
	const uint64_t planes = (uint64_t)p->batch * p->kv_heads, rows = planes * group * p->queries;

	plan->tiles = attention_up(group * p->queries, o->rows);
	plan->chunk = decode_chunk_of(o, keys, splits);
	plan->splits = MAX(attention_up(keys, plan->chunk), 1);
	plan->launches = plan->splits > 1 ? 2 : 1;
	plan->workspace = plan->splits > 1 ? rows * plan->splits * (decode_dim_v(o) + 1) * sizeof(float) : 0;
	const uint64_t grid = planes * plan->tiles * plan->splits;
	RULE(grid < UINT64_C(1) << 31, "%llu CTAs, of %u chunks each for %llu heads of K and V; there are less than 2^31",
	     (unsigned long long)grid, plan->splits, (unsigned long long)planes);
	plan->grid = (uint32_t)grid;
	const uint64_t read = o->window ? (uint64_t)p->batch * keys : MIN(p->total_keys, (uint64_t)p->batch * keys);
	plan->bytes = read * p->kv_heads * decode_key_bytes(o);
	return true;
}

bool cptx_attention_decode_check_problem_(const cptx_attention_decode_opt *opt, const cptx_attention_decode_problem *problem,
                                          const cptx_target *target, uint32_t sms, cptx_attention_decode_plan *plan,
                                          size_t size, cptx_error *err)
{
	cptx_attention_decode_opt o;
	cptx_attention_decode_problem p;
	cptx_attention_decode_plan here;

	if (!decode_read(&o, opt, target, &here, err) || !decode_read_problem(&p, problem, &o, err) ||
	    !decode_plan_problem(&o, &p, target, sms, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}
