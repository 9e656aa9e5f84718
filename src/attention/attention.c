/* SPDX-License-Identifier: MIT */
/* The public calls of all attention generators: which of them it is, what is checked for all, plans. */
#include "attention/attention.h"
#include "base/options.h"
#include "attention/options.h"

#include <math.h>

#define RULE(ok, ...) ATTENTION_RULE(ok, __VA_ARGS__)

const attention_generator *attention_generator_of(const cptx_attention_opt *o)
{
	static const attention_generator *const all[CPTX_ATTENTION_MMAS] = { [CPTX_ATTENTION_SYNC] = &attention_sm80,
		                                                                 [CPTX_ATTENTION_WGMMA] = &attention_sm90,
		                                                                 [CPTX_ATTENTION_TCGEN05] = &attention_sm100 };

	return (unsigned)o->mma < CPTX_ATTENTION_MMAS ? all[o->mma] : NULL;
}

/* ---- options ---- */

static bool check_ranges(const cptx_attention_opt *o, cptx_error *err)
{
	const attention_range all[] = {
#define ATTENTION_FIELD(id, field, type, set, least, most, step, about)                                                     \
	{ #field, false, ATTENTION_NUMBER_##type(o->field), least, most, step },
#include "attention/options.def"
	};

	return attention_check_ranges("", all, ARRAY_LEN(all), err);
}

/* Options that the kernel does not have. */
static bool check_kernels(const cptx_attention_opt *o, cptx_error *err)
{
	const struct {
		const char *name, *kernels;
		unsigned bits;
		bool given;
	} all[] = {
#define ATTENTION_FIELD(id, field, type, set, least, most, step, about)                                                     \
	{ #field, attention_kernels_##set, ATTENTION_##set, ATTENTION_IS_GIVEN_##type(o->field) },
#include "attention/options.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		RULE(!all[i].given || all[i].bits >> o->mma & 1, ".%s is an option of the kernel by %s; %s has none", all[i].name,
		     all[i].kernels, cptx_attention_mma_name(o->mma));
	return true;
}

static bool check_types(const cptx_attention_opt *o, cptx_error *err)
{
	RULE(o->in == CPTX_BF16 || o->in == CPTX_F16 || o->in == CPTX_E4M3,
	     ".in is %s; Q, K and V are CPTX_BF16, CPTX_F16 or CPTX_E4M3",
	     o->in == CPTX_TYPE_NONE ? "not given" : cptx_type_name(o->in));
	RULE(o->in != CPTX_E4M3 || !o->out || o->out == CPTX_BF16 || o->out == CPTX_F16 || o->out == CPTX_F32,
	     ".out is %s; of e4m3 O is CPTX_BF16, CPTX_F16 or CPTX_F32", cptx_type_name(o->out));
	RULE(o->in == CPTX_E4M3 || o->out == CPTX_TYPE_NONE || o->out == o->in || o->out == CPTX_F32,
	     ".out is %s; O is of the type of Q, .%s, or CPTX_F32", cptx_type_name(o->out), cptx_type_name(o->in));
	RULE(o->dim, ".dim is not given; it is the head size, a multiple of 8 from 8 to 256");
	RULE(!o->blocks || o->mask, ".blocks without .mask; it says in which blocks the mask lets nothing count");
	RULE(!(o->page & (o->page - 1)), ".page = %u; it is a power of two, from 8 to 4096", o->page);
	RULE(!o->top_left || o->causal || o->window,
	     ".top_left without .causal and .window; all keys count, wherever they stand");
	return true;
}

static bool check_target(const attention_generator *g, const cptx_target *t, cptx_error *err)
{
	if (!t || !g->op || cptx_form_on_target(g->op, 0, t))
		return true;
	return error_set(err, CPTX_E_TARGET, NOWHERE, "attention for %s: %s has none; %s it", g->target, t->name, g->where);
}

static bool check_pack(const cptx_attention_opt *o, cptx_error *err)
{
	RULE(!(o->pack & (o->pack - 1)), ".pack = %u; it is a power of two, from 1 to %d", o->pack, ATTENTION_MOST_PACK);
	RULE(o->pack < 2 || attention_can_pack(o, o->pack),
	     "tiles of %u rows for %u heads; each has a power of two of them, 8 or more", o->bq, o->pack);
	return true;
}

/* Pages of completed options: copies bring whole parts of blocks. */
static bool check_page(const cptx_attention_opt *o, cptx_error *err)
{
	const bool by_tma = attention_loads_by_tma(o);

	RULE(!o->page || o->page % o->bk == 0 || (by_tma && o->bk % o->page == 0),
	     "pages of %u keys and blocks of %u; a page is a multiple of a block%s", o->page, o->bk,
	     by_tma ? ", or divides it" : " where cp.async copies it");
	if (!o->page || !by_tma)
		return true;
	const attention_operands ops = attention_generator_of(o)->operands(o);
	RULE(ops.k_part.stages <= ATTENTION_MOST_PARTS && ops.v_part.stages <= ATTENTION_MOST_PARTS,
	     "pages of %u keys make %u parts of the stages of K or V; there are at most %d: take fewer keys in a block or "
	     "larger pages",
	     o->page, (uint32_t)attention_max(ops.k_part.stages, ops.v_part.stages), ATTENTION_MOST_PARTS);
	return true;
}

bool attention_read(cptx_attention_opt *o, const cptx_attention_opt *given, const cptx_target *target,
                    cptx_attention_plan *plan, cptx_error *err)
{
	if (!IS_GIVEN(given, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_attention_opt, o, given, NOWHERE, err))
		return false;
	RULE((unsigned)o->mma < CPTX_ATTENTION_MMAS, ".mma = %u; there are mma.sync, wgmma and tcgen05", (unsigned)o->mma);
	const attention_generator *g = attention_generator_of(o);
	o->name = o->name ? o->name : "attention";
	if (!cptx_name_check("kernel", o->name, err) || !check_types(o, err) || !check_ranges(o, err) ||
	    !check_kernels(o, err) || !check_target(g, target, err))
		return false;
	if (o->mma == CPTX_ATTENTION_TCGEN05 && cptx_attention_has_fast_ex2(target))
		o->fast_ex2 = true;
	g->complete(o);
	if (!check_page(o, err) || !check_pack(o, err))
		return false;
	*plan = (cptx_attention_plan){ .threads = 0 };
	return g->check(o, target, plan, err);
}

bool cptx_attention_check_(const cptx_attention_opt *opt, const cptx_target *target, cptx_attention_plan *plan, size_t size,
                           cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_plan here;

	if (!attention_read(&o, opt, target, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

bool attention_check_ranges(const char *what, const attention_range *all, size_t n, cptx_error *err)
{
	for (const attention_range *r = all; r < all + n; r++) {
		const uint32_t v = r->value;
		RULE(!v || (v >= r->least && v <= r->most && v % r->step == 0), "%s.%s = %u; it is from %u to %u, in steps of %u",
		     what, r->name, v, r->least, r->most, r->step);
		RULE(!r->power || !(v & (v - 1)), "%s.%s = %u; it is a power of two", what, r->name, v);
	}
	return true;
}

/* ---- problems ---- */

bool attention_check_addresses(const char *what, const attention_address *all, size_t n, cptx_error *err)
{
	for (const attention_address *a = all; a < all + n; a++) {
		RULE(!a->needed || a->at, "%sthe address .%s is 0", what, a->name);
		RULE(!a->needed || a->at % a->align == 0, "%s.%s is 0x%llx; it must be a multiple of %u", what, a->name,
		     (unsigned long long)a->at, a->align);
	}
	return true;
}

bool attention_check_stride(const char *name, const cptx_attention_stride *s, enum cptx_type type, uint32_t dim,
                            uint64_t rows, uint64_t heads, uint64_t batch, cptx_error *err)
{
	const uint64_t step = ATTENTION_CHUNK * 8 / cptx_type_bits(type);
	const struct {
		const char *name;
		uint64_t value, of;
	} all[] = { { "batch", s->batch, batch }, { "head", s->head, heads }, { "row", s->row, rows } };

	if (!s->batch && !s->head && !s->row) {
		RULE(dim % step == 0, "head size %u; rows of %s have multiples of %llu elements: say .%s_stride, padded", dim, name,
		     (unsigned long long)step, name);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		RULE(all[i].of < 2 || (all[i].value && all[i].value % step == 0 && all[i].value < UINT64_C(1) << 36),
		     ".%s_stride.%s = %llu; it is a multiple of %llu elements (16 bytes), below 2^36", name, all[i].name,
		     (unsigned long long)all[i].value, (unsigned long long)step);
	RULE(rows < 2 || (s->row >= dim && s->row < UINT64_C(1) << 31),
	     ".%s_stride.row = %llu; rows have %u elements, and are less than 2^31 apart", name, (unsigned long long)s->row,
	     dim);
	return true;
}

attention_extent attention_extent_of_q(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	return o->varlen ? (attention_extent){ p->total_queries, 1 } : (attention_extent){ p->queries, p->batch };
}

attention_extent attention_extent_of_k(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	return o->page     ? (attention_extent){ o->page, p->pages }
	       : o->varlen ? (attention_extent){ p->total_keys, 1 }
	                   : (attention_extent){ p->keys, p->batch };
}

static bool check_strides(const cptx_attention_problem *p, const cptx_attention_opt *o, cptx_error *err)
{
	const uint32_t dim_v = attention_dim_v(o);
	const attention_extent q = attention_extent_of_q(o, p), k = attention_extent_of_k(o, p);

	return attention_check_stride("q", &p->q_stride, o->in, o->dim, q.rows, p->heads, q.batch, err) &&
	       attention_check_stride("k", &p->k_stride, o->in, o->dim, k.rows, p->kv_heads, k.batch, err) &&
	       attention_check_stride("v", &p->v_stride, o->in, dim_v, k.rows, p->kv_heads, k.batch, err) &&
	       attention_check_stride("o", &p->o_stride, attention_out(o), dim_v, q.rows, p->heads, q.batch, err);
}

/* What the problem says of sinks, sequences and pages, and the kernel knows nothing of; and the reverse, but for addresses.
 */
static bool check_places(const cptx_attention_problem *p, const cptx_attention_opt *o, cptx_error *err)
{
	const struct {
		const char *name, *option;
		uint64_t value;
		bool known;
	} all[] = { { "sinks", "sinks", p->sinks, o->sinks },
		        { "cu_queries", "varlen", p->cu_queries, o->varlen },
		        { "cu_keys", "varlen", p->cu_keys, o->varlen },
		        { "total_queries", "varlen", p->total_queries, o->varlen },
		        { "total_keys", "varlen", p->total_keys, o->varlen && !o->page },
		        { "page_table", "page", p->page_table, o->page != 0 },
		        { "table_pitch", "page", p->table_pitch, o->page != 0 },
		        { "pages", "page", p->pages, o->page != 0 } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		RULE(all[i].known || !all[i].value, "the problem has .%s, and the kernel does not read it: say .%s in its options",
		     all[i].name, all[i].option);
	RULE(p->total_queries < ATTENTION_MOST_ROWS && p->total_keys < ATTENTION_MOST_ROWS,
	     "%u queries and %u keys of all sequences; both are below 2^29", p->total_queries, p->total_keys);
	RULE(!o->varlen || p->total_queries >= p->queries, ".total_queries = %u; the longest sequence has %u queries",
	     p->total_queries, p->queries);
	RULE(!o->varlen || o->page || p->total_keys >= p->keys, ".total_keys = %u; the longest sequence has %u keys",
	     p->total_keys, p->keys);
	RULE(!o->page || (uint64_t)p->table_pitch * o->page >= p->keys, ".table_pitch = %u; %u keys need %u pages of %u keys",
	     p->table_pitch, p->keys, attention_up(p->keys, o->page), o->page);
	RULE(!o->page || p->pages || !p->keys, ".pages = 0; there are keys, which lie in pages");
	return true;
}

static bool check_numbers(const cptx_attention_problem *p, const cptx_attention_opt *o, cptx_error *err)
{
	RULE(p->queries < ATTENTION_MOST_ROWS && p->keys < ATTENTION_MOST_ROWS, "%u queries and %u keys; both are below 2^29",
	     p->queries, p->keys);
	RULE(p->kv_heads <= p->heads && (!p->heads || p->heads % p->kv_heads == 0),
	     "%u heads of Q, and %u of K and V; these divide those of Q", p->heads, p->kv_heads);
	RULE(o->pack < 2 || !p->heads || p->heads / p->kv_heads % o->pack == 0,
	     ".pack = %u; it divides the heads of Q for one of K and V, of which there are %u", o->pack,
	     p->kv_heads ? p->heads / p->kv_heads : 0);
	RULE(p->scale > 0 && isfinite(p->scale), ".scale = %g; it is above 0", (double)p->scale);
	RULE(attention_is_fp8(o) || !(p->v_scale != 0), "the problem has v_scale = %g, which is of e4m3", (double)p->v_scale);
	RULE(!attention_is_fp8(o) || (p->v_scale > 0 && isfinite(p->v_scale)), ".v_scale = %g; it is above 0",
	     (double)p->v_scale);
	RULE(o->softcap || !(p->softcap != 0), "the problem has softcap = %g, and the kernel none: say .softcap in its options",
	     (double)p->softcap);
	RULE(!o->softcap || (p->softcap > 0 && isfinite(p->softcap)), ".softcap = %g; it is above 0", (double)p->softcap);
	RULE(o->window || (!p->window_left && !p->window_right),
	     "the problem has a window, and the kernel none: say .window in its options");
	RULE(!o->causal || !p->window_right, ".window_right = %u; with .causal no key behind the query counts: it is 0",
	     p->window_right);
	RULE((uint64_t)p->batch * p->heads < UINT64_C(1) << 31, "%u batches of %u heads; there are less than 2^31 in all",
	     p->batch, p->heads);
	return true;
}

bool attention_read_problem(cptx_attention_problem *p, const cptx_attention_problem *given, const cptx_attention_opt *o,
                            cptx_error *err)
{
	if (!IS_GIVEN(given, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_attention_problem, p, given, NOWHERE, err))
		return false;
	p->kv_heads = p->kv_heads ? p->kv_heads : p->heads;
	p->scale = p->scale != 0 ? p->scale : (float)(1 / sqrt(o->dim));
	if (attention_is_fp8(o) && !(p->v_scale != 0))
		p->v_scale = 1;
	return check_numbers(p, o, err) && check_places(p, o, err) && check_strides(p, o, err);
}

/* The sum of min(i, most) for i from 1 to n; 0 where n is below 1. */
static int64_t sum_to(int64_t n, int64_t most)
{
	const int64_t rising = attention_max(attention_min(n, most), 0);

	return rising * (rising + 1) / 2 + attention_max(n - most, 0) * most;
}

/* The keys in front of number i + `behind` for all queries i, where `behind` is that of query 0: at most all keys each. */
static int64_t keys_in_front(const cptx_attention_problem *p, int64_t behind)
{
	return sum_to(behind + p->queries - 1, p->keys) - sum_to(behind - 1, p->keys);
}

/* Scores that count in a head: the keys of all queries. */
static int64_t scores_of_head(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const int64_t shift = o->top_left ? 0 : (int64_t)p->keys - p->queries;
	const int64_t right = o->causal ? 0 : p->window_right;

	if (!o->causal && !o->window)
		return (int64_t)p->queries * p->keys;
	const int64_t in_front = o->window ? keys_in_front(p, shift - (int64_t)p->window_left) : 0;
	return keys_in_front(p, shift + right + 1) - in_front;
}

double attention_scores(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	return (double)scores_of_head(o, p) * p->heads * p->batch;
}

bool attention_plan_problem(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                            cptx_attention_plan *plan, cptx_error *err)
{
	const bool one_tile = attention_generator_of(o)->one_tile;
	const uint32_t most = one_tile ? UINT32_MAX : p->ctas ? p->ctas : attention_max(sms, 1);

	RULE(!one_tile || !p->ctas, ".ctas = %u; by %s each tile has a CTA of its own, and it is 0", p->ctas,
	     cptx_attention_mma_name(o->mma));
	plan->tiles = (uint64_t)attention_up(p->queries, attention_tile_queries(o)) * attention_tile_heads(o, p) * p->batch;
	RULE(plan->tiles < UINT64_C(1) << 31, "%llu tiles of %u queries; there are less than 2^31 in a launch",
	     (unsigned long long)plan->tiles, attention_tile_queries(o));
	plan->grid = (uint32_t)attention_max(attention_min((int64_t)plan->tiles, most), 1);
	plan->flop = 2.0 * (o->dim + attention_dim_v(o)) * attention_scores(o, p);
	return true;
}

bool cptx_attention_check_problem_(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                                   cptx_attention_plan *plan, size_t size, cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_problem p;
	cptx_attention_plan here;

	if (!attention_read(&o, opt, NULL, &here, err) || !attention_read_problem(&p, problem, &o, err) ||
	    !attention_plan_problem(&o, &p, sms, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

/* ---- kernels ---- */

cptx_kernel *cptx_attention_build(cptx_module *m, const cptx_attention_opt *opt, cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_plan plan;

	if (!attention_read(&o, opt, NULL, &plan, err))
		return NULL;
	cptx_kernel *k = attention_generator_of(&o)->build(m, &o);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}
