/* Variables in shared memory, and what uses mbarriers there: the stages of a pipeline, as the text tells them. */
#include "inspect/flow.h"

#include <stdlib.h>

/* ---- variables ---- */

static bool add_shared(cptx_flow *f, uint32_t id, uint32_t line, bool of_module)
{
	const ir_sym *s = ir_symbol(f->k, id);
	size_t cap = f->cap_shared;

	if (!s || s->space != CPTX_SHARED || s->removed)
		return true;
	if (!arena_push(&f->a, &f->shared, f->nshared, &f->cap_shared, sizeof *f->shared) ||
	    !arena_push(&f->a, &f->shared_id, f->nshared, &cap, sizeof *f->shared_id))
		return false;
	f->shared_id[f->nshared] = id;
	f->shared[f->nshared++] =
		(cptx_shared_var){ .name = s->name, .size = s->size, .align = s->align, .line = line, .of_module = of_module };
	return true;
}

bool flow_shared(cptx_flow *f)
{
	for (const ir_item *it = f->k->first; it; it = it->next)
		if (it->kind == ITEM_VAR && !add_shared(f, ir_operand(f->k, it, 0).id, it->line, false))
			return false;
	for (uint32_t i = 0; i < f->k->m->nsym; i++)
		if (!add_shared(f, MODULE_SYM + i, 0, true))
			return false;
	return true;
}

static uint32_t shared_of(const cptx_flow *f, const flow_where *w)
{
	for (uint32_t i = 0; w->kind == WHERE_VARIABLE && i < f->nshared; i++)
		if (f->shared_id[i] == w->sym)
			return i;
	return UINT32_MAX;
}

/* ---- uses ---- */

/* The mbarrier of a copy is its operand mbar, of all others a. */
static const struct role {
	uint16_t op;
	uint8_t role;
	const char *count, *buffer; /* operands; of a copy: the bytes, and where they go */
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

/* What a use says of its mbarrier, beside what is shown. */
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
	*u = (cptx_stage_use){ .point = point, .role = r->role, .set = UINT32_MAX, .buffer = shared_of(f, &to) };
	if (count.kind == WHERE_NUMBER && !count.varies)
		u->count = (uint32_t)count.offset;
	if (u->buffer != UINT32_MAX)
		u->offset = (uint32_t)to.offset, u->stride = to.stride;
}

/* ---- sets ---- */

static bool same_place(const cptx_barrier_set *set, const seen *s)
{
	return set->variable == s->variable && set->offset == (uint32_t)s->at.offset;
}

static void add_set(cptx_flow *f, const seen *s)
{
	for (size_t i = 0; i < f->nset; i++)
		if (same_place(&f->set[i], s))
			return;
	f->set[f->nset++] = (cptx_barrier_set){ .variable = s->variable, .offset = (uint32_t)s->at.offset };
}

static int by_place(const void *a, const void *b)
{
	const cptx_barrier_set *x = a, *y = b;

	if (x->variable != y->variable)
		return x->variable < y->variable ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The last set that does not begin behind it. */
static uint32_t set_of(const cptx_flow *f, const seen *s)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < f->nset; i++)
		if (f->set[i].variable == s->variable && f->set[i].offset <= (uint32_t)s->at.offset)
			found = i;
	return found;
}

/* Sets begin where something other than an init begins; an init in front of all of these begins one, too. */
static void find_sets(cptx_flow *f, const seen *s)
{
	for (size_t i = 0; i < f->nuse; i++)
		if (s[i].variable != UINT32_MAX && f->use[i].role != CPTX_STAGE_INIT && f->use[i].role != CPTX_STAGE_INVAL)
			add_set(f, &s[i]);
	if (f->nset)
		qsort(f->set, f->nset, sizeof *f->set, by_place);
	for (size_t i = 0; i < f->nuse; i++)
		if (s[i].variable != UINT32_MAX && set_of(f, &s[i]) == UINT32_MAX) {
			add_set(f, &s[i]);
			qsort(f->set, f->nset, sizeof *f->set, by_place);
		}
}

static void fill_sets(cptx_flow *f, const seen *s)
{
	for (size_t i = 0; i < f->nuse; i++) {
		cptx_stage_use *u = &f->use[i];
		u->set = s[i].variable != UINT32_MAX ? set_of(f, &s[i]) : UINT32_MAX;
		if (u->set == UINT32_MAX || u->role != CPTX_STAGE_INIT)
			continue;
		f->set[u->set].arrivals = u->count;
		f->set[u->set].n += !s[i].at.varies;
	}
}

/* A bit for each role that a set has. */
static unsigned roles_of(const cptx_flow *f, uint32_t set)
{
	unsigned all = 0;

	for (size_t i = 0; i < f->nuse; i++)
		all |= f->use[i].set == set ? 1u << f->use[i].role : 0;
	return all;
}

/* Stages that are unrolled have an address each: neighbours with the same uses are one set. */
static void join_sets(cptx_flow *f)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < f->nset; i++) {
		cptx_barrier_set *last = kept ? &f->set[kept - 1] : NULL, *set = &f->set[i];
		bool joins = last && last->variable == set->variable && last->n && set->n == 1 &&
		             last->offset + 8 * last->n == set->offset && last->arrivals == set->arrivals &&
		             roles_of(f, (uint32_t)kept - 1) == roles_of(f, i);
		if (joins)
			last->n++;
		else
			f->set[kept++] = *set;
		for (size_t u = 0; u < f->nuse; u++)
			if (f->use[u].set == i)
				f->use[u].set = (uint32_t)kept - 1;
	}
	f->nset = kept;
}

bool flow_stages(cptx_flow *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->npoint; i++)
		n += role_of(&f->point[i]) != NULL;
	if (!n)
		return true;
	flow_tracer *t = flow_tracer_of(f);
	seen *s = arena_alloc(&f->a, n * sizeof *s);
	f->use = arena_alloc(&f->a, n * sizeof *f->use);
	f->set = arena_alloc(&f->a, n * sizeof *f->set);
	if (!t || !s || !f->use || !f->set)
		return false;
	for (uint32_t i = 0; i < f->npoint; i++) {
		const struct role *r = role_of(&f->point[i]);
		if (r)
			see(f, t, i, r, &f->use[f->nuse], &s[f->nuse]), f->nuse++;
	}
	find_sets(f, s);
	fill_sets(f, s);
	join_sets(f);
	return true;
}

const cptx_shared_var *cptx_flow_shared(const cptx_flow *f, size_t *n)
{
	*n = f ? f->nshared : 0;
	return *n ? f->shared : NULL;
}

const cptx_barrier_set *cptx_flow_barriers(const cptx_flow *f, size_t *n)
{
	*n = f ? f->nset : 0;
	return *n ? f->set : NULL;
}

const cptx_stage_use *cptx_flow_stages(const cptx_flow *f, size_t *n)
{
	*n = f ? f->nuse : 0;
	return *n ? f->use : NULL;
}
