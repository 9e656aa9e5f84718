/* SPDX-License-Identifier: MIT */
/* Variables in shared memory, and the instructions that use mbarriers there: the stages of a pipeline, as the text tells
 * them. */
#include "inspect/flow.h"

#include <stdlib.h>

/* ---- variables ---- */

static uint32_t *place_of(const cptx_flow *f, uint32_t sym)
{
	return &f->shared_of[sym >= MODULE_SYM ? f->k->nsym + (sym - MODULE_SYM) : sym];
}

static uint32_t shared_of(const cptx_flow *f, const flow_where *w)
{
	return w->kind == WHERE_VARIABLE ? *place_of(f, w->sym) : UINT32_MAX;
}

static bool add_shared(cptx_flow *f, uint32_t id, uint32_t line, bool of_module)
{
	const ir_sym *s = ir_symbol(f->k, id);

	if (!s || s->space != CPTX_SHARED || s->removed)
		return true;
	if (!arena_push(&f->a, &f->shared, f->nshared, &f->cap_shared, sizeof *f->shared))
		return false;
	*place_of(f, id) = (uint32_t)f->nshared;
	f->shared[f->nshared++] =
		(cptx_shared_var){ .name = s->name, .size = s->size, .align = s->align, .line = line, .of_module = of_module };
	return true;
}

bool flow_shared(cptx_flow *f)
{
	size_t n = f->k->nsym + f->k->m->nsym + 1;

	if (!(f->shared_of = ARENA_ARRAY(&f->a, uint32_t, n)))
		return false;
	memset(f->shared_of, 0xff, n * sizeof *f->shared_of);
	for (const ir_item *it = f->k->first; it; it = it->next)
		if (it->kind == ITEM_VAR && !add_shared(f, ir_operand(f->k, it, 0).id, it->line, false))
			return false;
	for (uint32_t i = 0; i < f->k->m->nsym; i++)
		if (!add_shared(f, MODULE_SYM + i, 0, true))
			return false;
	return true;
}

/* ---- uses ---- */

/* A copy's mbarrier is its operand mbar; other instructions have it as operand a. */
static const struct role {
	uint16_t op;
	uint8_t role;
	const char *count, *buffer; /* names of operands; for a copy: its bytes and its destination */
} roles[] = {
	{ CPTX_OP_MBARRIER_INIT, CPTX_STAGE_INIT, "count", NULL },
	{ CPTX_OP_MBARRIER_INVAL, CPTX_STAGE_INVAL, NULL, NULL },
	{ CPTX_OP_MBARRIER_EXPECT_TX, CPTX_STAGE_EXPECT, "tx", NULL },
	{ CPTX_OP_MBARRIER_ARRIVE_EXPECT_TX, CPTX_STAGE_EXPECT, "tx", NULL },
	{ CPTX_OP_MBARRIER_ARRIVE_DROP_EXPECT_TX, CPTX_STAGE_EXPECT, "tx", NULL },
	{ CPTX_OP_MBARRIER_ARRIVE, CPTX_STAGE_ARRIVE, NULL, NULL },
	{ CPTX_OP_MBARRIER_ARRIVE_NOCOMPLETE, CPTX_STAGE_ARRIVE, NULL, NULL },
	{ CPTX_OP_MBARRIER_ARRIVE_DROP, CPTX_STAGE_ARRIVE, NULL, NULL },
	{ CPTX_OP_MBARRIER_ARRIVE_DROP_NOCOMPLETE, CPTX_STAGE_ARRIVE, NULL, NULL },
	{ CPTX_OP_CP_ASYNC_MBARRIER_ARRIVE, CPTX_STAGE_COMMIT, NULL, NULL },
	{ CPTX_OP_TCGEN05_COMMIT, CPTX_STAGE_COMMIT, NULL, NULL },
	{ CPTX_OP_MBARRIER_TEST_WAIT, CPTX_STAGE_WAIT, NULL, NULL },
	{ CPTX_OP_MBARRIER_TEST_WAIT_PARITY, CPTX_STAGE_WAIT, NULL, NULL },
	{ CPTX_OP_MBARRIER_TRY_WAIT, CPTX_STAGE_WAIT, NULL, NULL },
	{ CPTX_OP_MBARRIER_TRY_WAIT_PARITY, CPTX_STAGE_WAIT, NULL, NULL },
	{ CPTX_OP_CP_ASYNC_BULK_LOAD, CPTX_STAGE_COPY, "size", "s" },
	{ CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD, CPTX_STAGE_COPY, NULL, "s" },
	{ CPTX_OP_CP_ASYNC_BULK_CLUSTER, CPTX_STAGE_COPY, "size", "to" },
	{ CPTX_OP_ST_ASYNC, CPTX_STAGE_COPY, NULL, "a" },
	{ CPTX_OP_RED_ASYNC, CPTX_STAGE_COPY, NULL, "a" },
};

static const char *const names[] = { "init", "inval", "arrive", "expect", "copy", "commit", "wait" };

const char *cptx_stage_role_name(enum cptx_stage_role role) { return (unsigned)role < ARRAY_LEN(names) ? names[role] : "?"; }

static const struct role *role_of(const cptx_point *p)
{
	unsigned op = arch_forms[((const ir_item *)p->item)->form].op;

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (roles[i].op == op)
			return &roles[i];
	return NULL;
}

static flow_where operand(flow_tracer *t, const cptx_item *it, const char *name)
{
	size_t slot = name ? cptx_item_slot(it, name) : SIZE_MAX;
	cptx_val v = slot != SIZE_MAX ? cptx_item_operand(it, slot) : (cptx_val){ .kind = CPTX_VAL_NONE };

	return flow_where_is(t, &v);
}

/* The mbarrier of a use: its variable and its place, which cptx_stage_use does not have. */
typedef struct seen {
	uint32_t variable;
	flow_where at;
} seen;

static void see(cptx_flow *f, flow_tracer *t, uint32_t point, const struct role *r, cptx_stage_use *u, seen *s)
{
	const cptx_item *it = f->point[point].item;
	flow_where count = operand(t, it, r->count), to = operand(t, it, r->buffer);

	s->at = operand(t, it, r->role == CPTX_STAGE_COPY ? "mbar" : "a");
	s->variable = shared_of(f, &s->at);
	*u = (cptx_stage_use){
		.point = point, .role = (enum cptx_stage_role)r->role, .set = UINT32_MAX, .buffer = shared_of(f, &to)
	};
	if (count.kind == WHERE_NUMBER && !count.varies)
		u->count = (uint32_t)count.offset;
	if (u->buffer != UINT32_MAX)
		u->offset = (uint32_t)to.offset, u->stride = to.stride;
}

/* ---- sets ---- */

static int by_place(const void *a, const void *b)
{
	const cptx_barrier_set *x = (const cptx_barrier_set *)a, *y = (const cptx_barrier_set *)b;

	if (x->variable != y->variable)
		return x->variable < y->variable ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorts sets.  Of sets at one place, or, if `lowest`, of those in one variable, only the first stays. */
static size_t sorted(cptx_barrier_set *set, size_t n, bool lowest)
{
	size_t kept = 0;

	if (n)
		qsort(set, n, sizeof *set, by_place);
	for (size_t i = 0; i < n; i++)
		if (!kept || set[kept - 1].variable != set[i].variable || (!lowest && set[kept - 1].offset != set[i].offset))
			set[kept++] = set[i];
	return kept;
}

static cptx_barrier_set set_at(const seen *s)
{
	return (cptx_barrier_set){ .variable = s->variable, .offset = (uint32_t)s->at.offset };
}

/* The last of n sets that does not begin behind the mbarrier of the use. */
static uint32_t set_of(const cptx_flow *f, size_t n, const seen *s)
{
	cptx_barrier_set at = set_at(s);
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (by_place(&f->set[middle], &at) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && f->set[low - 1].variable == s->variable ? (uint32_t)low - 1 : UINT32_MAX;
}

static bool begins_set(const cptx_stage_use *u) { return u->role != CPTX_STAGE_INIT && u->role != CPTX_STAGE_INVAL; }

/* Finds the sets.  A set begins where an instruction other than an init uses an mbarrier; the first init of a variable, in
 * front of all of these, begins one, too. */
static void find_sets(cptx_flow *f, const seen *s)
{
	for (size_t i = 0; i < f->nuse; i++)
		if (s[i].variable != UINT32_MAX && begins_set(&f->use[i]))
			f->set[f->nset++] = set_at(&s[i]);
	f->nset = sorted(f->set, f->nset, false);
	size_t known = f->nset;
	for (size_t i = 0; i < f->nuse; i++)
		if (s[i].variable != UINT32_MAX && !begins_set(&f->use[i]) && set_of(f, known, &s[i]) == UINT32_MAX)
			f->set[f->nset++] = set_at(&s[i]);
	size_t first = sorted(f->set + known, f->nset - known, true);
	f->nset = sorted(f->set, known + first, false);
}

static void fill_sets(cptx_flow *f, const seen *s)
{
	for (size_t i = 0; i < f->nuse; i++) {
		cptx_stage_use *u = &f->use[i];
		u->set = s[i].variable != UINT32_MAX ? set_of(f, f->nset, &s[i]) : UINT32_MAX;
		if (u->set == UINT32_MAX || u->role != CPTX_STAGE_INIT)
			continue;
		f->set[u->set].arrivals = u->count;
		f->set[u->set].n += !s[i].at.varies;
	}
}

/* Joins neighbouring sets with the same uses: unrolled stages have a constant address each.  False if memory is short. */
static bool join_sets(cptx_flow *f)
{
	uint32_t *used = ARENA_ZEROED(&f->a, uint32_t, f->nset + 1); /* of each set a bit for each kind of use */
	uint32_t *now = ARENA_ARRAY(&f->a, uint32_t, f->nset + 1), last = 0;

	if (!used || !now)
		return false;
	for (size_t i = 0; i < f->nuse; i++)
		if (f->use[i].set != UINT32_MAX)
			used[f->use[i].set] |= 1u << f->use[i].role;
	for (uint32_t i = 0; i < f->nset; i++) {
		cptx_barrier_set *to = &f->set[last], *set = &f->set[i];
		bool joins = i && to->variable == set->variable && to->n && set->n == 1 && to->offset + 8 * to->n == set->offset &&
		             to->arrivals == set->arrivals && used[i] == used[i - 1];
		if (joins)
			to->n++;
		else
			last += i > 0, f->set[last] = *set;
		now[i] = last;
	}
	for (size_t i = 0; i < f->nuse; i++)
		if (f->use[i].set != UINT32_MAX)
			f->use[i].set = now[f->use[i].set];
	f->nset = f->nset ? last + 1 : 0;
	return true;
}

bool flow_stages(cptx_flow *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->npoint; i++)
		n += role_of(&f->point[i]) != NULL;
	if (!n)
		return true;
	flow_tracer *t = flow_tracer_of(f);
	seen *s = ARENA_ARRAY(&f->a, seen, n);
	f->use = ARENA_ARRAY(&f->a, cptx_stage_use, n);
	f->set = ARENA_ARRAY(&f->a, cptx_barrier_set, n);
	if (!t || !s || !f->use || !f->set)
		return false;
	for (uint32_t i = 0; i < f->npoint; i++) {
		const struct role *r = role_of(&f->point[i]);
		if (r)
			see(f, t, i, r, &f->use[f->nuse], &s[f->nuse]), f->nuse++;
	}
	find_sets(f, s);
	fill_sets(f, s);
	return join_sets(f);
}

const cptx_shared_var *cptx_flow_shared(const cptx_flow *f, size_t *n)
{
	return flow_count(f ? f->nshared : 0, n) ? f->shared : NULL;
}

const cptx_barrier_set *cptx_flow_barriers(const cptx_flow *f, size_t *n)
{
	return flow_count(f ? f->nset : 0, n) ? f->set : NULL;
}

const cptx_stage_use *cptx_flow_stages(const cptx_flow *f, size_t *n)
{
	return flow_count(f ? f->nuse : 0, n) ? f->use : NULL;
}
