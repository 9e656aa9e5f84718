/* SPDX-License-Identifier: MIT */
/* The public calls of all attention generators: which of them it is, what is checked for all, plans. */
#include "attention/attention.h"
#include "base/options.h"
#include "attention/options.h"

#include <math.h>

#define RULE(ok, ...) ATTENTION_RULE(ok, __VA_ARGS__)

const attention_generator *attention_generator_of(const cptx_attention_opt *o)
{
	static const attention_generator *const all[CPTX_ATTENTION_MMAS] = {
		[CPTX_ATTENTION_SYNC] = NULL, [CPTX_ATTENTION_WGMMA] = &attention_sm90, [CPTX_ATTENTION_TCGEN05] = NULL
	};

	return (unsigned)o->mma < CPTX_ATTENTION_MMAS ? all[o->mma] : NULL;
}

/* ---- options ---- */

static bool check_ranges(const cptx_attention_opt *o, cptx_error *err)
{
	const struct {
		const char *name;
		uint32_t value, least, most, step;
	} all[] = {
#define ATTENTION_FIELD(id, field, type, set, least, most, step, about)                                                     \
	{ #field, ATTENTION_NUMBER_##type(o->field), least, most, step },
#include "attention/options.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		RULE(!all[i].value ||
		         (all[i].value >= all[i].least && all[i].value <= all[i].most && all[i].value % all[i].step == 0),
		     ".%s = %u; it is from %u to %u, in steps of %u", all[i].name, all[i].value, all[i].least, all[i].most,
		     all[i].step);
	return true;
}

static bool check_types(const cptx_attention_opt *o, cptx_error *err)
{
	RULE(o->in == CPTX_BF16 || o->in == CPTX_F16, ".in is %s; Q, K and V are CPTX_BF16 or CPTX_F16",
	     o->in == CPTX_TYPE_NONE ? "not given" : cptx_type_name(o->in));
	RULE(o->out == CPTX_TYPE_NONE || o->out == o->in || o->out == CPTX_F32,
	     ".out is %s; O is of the type of Q, .%s, or CPTX_F32", cptx_type_name(o->out), cptx_type_name(o->in));
	RULE(o->dim, ".dim is not given; it is the head size, a multiple of 8 from 8 to 256");
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

bool attention_read(cptx_attention_opt *o, const cptx_attention_opt *given, const cptx_target *target,
                    cptx_attention_plan *plan, cptx_error *err)
{
	if (err)
		*err = (cptx_error){ .code = CPTX_OK };
	if (!IS_GIVEN(given, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_attention_opt, o, given, NOWHERE, err))
		return false;
	RULE((unsigned)o->mma < CPTX_ATTENTION_MMAS, ".mma = %u; there are mma.sync, wgmma and tcgen05", (unsigned)o->mma);
	const attention_generator *g = attention_generator_of(o);
	RULE(g, "there is no kernel by %s yet; .mma is CPTX_ATTENTION_WGMMA, for sm_90a", cptx_attention_mma_name(o->mma));
	o->name = o->name ? o->name : "attention";
	if (!cptx_name_check("kernel", o->name, err) || !check_types(o, err) || !check_ranges(o, err) ||
	    !check_target(g, target, err))
		return false;
	g->complete(o);
	*plan = (cptx_attention_plan){ .threads = 0 };
	return g->check(o, plan, err);
}

bool cptx_attention_check(const cptx_attention_opt *opt, const cptx_target *target, cptx_attention_plan *plan,
                          cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_plan here;

	return attention_read(&o, opt, target, plan ? plan : &here, err);
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
	RULE(rows < 2 || s->row >= dim, ".%s_stride.row = %llu; rows have %u elements", name, (unsigned long long)s->row, dim);
	return true;
}

static bool check_strides(const cptx_attention_problem *p, const cptx_attention_opt *o, cptx_error *err)
{
	const uint32_t dim_v = attention_dim_v(o);

	return attention_check_stride("q", &p->q_stride, o->in, o->dim, p->queries, p->heads, p->batch, err) &&
	       attention_check_stride("k", &p->k_stride, o->in, o->dim, p->keys, p->kv_heads, p->batch, err) &&
	       attention_check_stride("v", &p->v_stride, o->in, dim_v, p->keys, p->kv_heads, p->batch, err) &&
	       attention_check_stride("o", &p->o_stride, attention_out(o), dim_v, p->queries, p->heads, p->batch, err);
}

static bool check_numbers(const cptx_attention_problem *p, const cptx_attention_opt *o, cptx_error *err)
{
	RULE(p->queries < ATTENTION_MOST_ROWS && p->keys < ATTENTION_MOST_ROWS, "%u queries and %u keys; both are below 2^29",
	     p->queries, p->keys);
	RULE(p->kv_heads <= p->heads && (!p->heads || p->heads % p->kv_heads == 0),
	     "%u heads of Q, and %u of K and V; these divide those of Q", p->heads, p->kv_heads);
	RULE(p->scale > 0 && isfinite(p->scale), ".scale = %g; it is above 0", (double)p->scale);
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
	return check_numbers(p, o, err) && check_strides(p, o, err);
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
	const uint32_t most = p->ctas ? p->ctas : attention_max(sms, 1);

	plan->tiles = (uint64_t)attention_up(p->queries, o->bq) * p->heads * p->batch;
	RULE(plan->tiles < UINT64_C(1) << 31, "%llu tiles of %u queries; there are less than 2^31 in a launch",
	     (unsigned long long)plan->tiles, o->bq);
	plan->grid = (uint32_t)attention_max(attention_min((int64_t)plan->tiles, most), 1);
	plan->flop = 2.0 * (o->dim + attention_dim_v(o)) * attention_scores(o, p);
	return true;
}

bool cptx_attention_check_problem(const cptx_attention_opt *opt, const cptx_attention_problem *problem, uint32_t sms,
                                  cptx_attention_plan *plan, cptx_error *err)
{
	cptx_attention_opt o;
	cptx_attention_problem p;
	cptx_attention_plan here;

	if (!attention_read(&o, opt, NULL, &here, err) || !attention_read_problem(&p, problem, &o, err) ||
	    !attention_plan_problem(&o, &p, sms, &here, err))
		return false;
	if (plan)
		*plan = here;
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
