/* SPDX-License-Identifier: MIT */
/*
 * Follows addresses of shared memory back through sums, products and the counters of loops: to a variable, an offset in it,
 * and the step by which the address advances.  Values that are not constant count as 0, so in a ring of stages this is the
 * first stage.
 */
#include "inspect/flow.h"

enum { DEEPEST = 64 };

/* A definition of a register, in a list of all of them. */
typedef struct definition {
	const ir_item *it;
	uint32_t next; /* the next definition; IR_NONE: none */
} definition;

struct flow_tracer {
	const cptx_kernel *k;
	definition *def;
	uint32_t *first; /* of each register its first definition, or IR_NONE */
	size_t ndef, cap_def;
	flow_where *value;
	uint8_t *state; /* of each register 0: not visited, 1: being visited, 2: known */
	size_t steps;   /* number of definitions that may still be visited: some that depend on one another are visited more than
	                   once */
};

static const flow_where unknown = { .kind = WHERE_UNKNOWN }, some_number = { .kind = WHERE_NUMBER, .varies = true };

static int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t negative(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
static flow_where constant(int64_t v) { return (flow_where){ .kind = WHERE_NUMBER, .offset = v }; }

static flow_where trace(flow_tracer *t, uint32_t reg, unsigned depth);

static flow_where of_value(flow_tracer *t, const cptx_val *v, unsigned depth)
{
	flow_where w = unknown;

	switch (v->kind) {
	case CPTX_VAL_INT: return constant(v->i);
	case CPTX_VAL_SREG: return some_number;
	case CPTX_VAL_SYM: return (flow_where){ .kind = WHERE_VARIABLE, .sym = v->id, .offset = v->offset };
	case CPTX_VAL_REG:
		if (v->count == 1)
			w = trace(t, v->id, depth);
		w.offset = sum(w.offset, v->offset);
		return w;
	default: return w;
	}
}

static flow_where plus(flow_where a, flow_where b)
{
	if (a.kind < b.kind) { /* puts a number behind a variable or a SELF */
		flow_where c = a;
		a = b, b = c;
	}
	if (b.kind != WHERE_NUMBER)
		return unknown;
	if (a.kind == WHERE_SELF) { /* the step of a loop's counter */
		uint32_t step = b.varies ? b.stride : (uint32_t)(b.offset < 0 ? negative(b.offset) : b.offset);
		a.stride = a.stride ? a.stride : step;
		return a;
	}
	a.offset = sum(a.offset, b.offset);
	a.varies |= b.varies;
	a.stride = MAX(a.stride, b.stride);
	return a;
}

/* Subtracts.  Also used for mapa, from a variable to the same variable in another CTA, whose distance counts as 0. */
static flow_where minus(flow_where a, flow_where b)
{
	if (a.kind == WHERE_VARIABLE && b.kind == WHERE_VARIABLE && a.sym == b.sym)
		return (flow_where){ .kind = WHERE_NUMBER, .varies = true, .offset = sum(a.offset, negative(b.offset)) };
	if (b.kind != WHERE_NUMBER)
		return unknown;
	b.offset = negative(b.offset);
	return plus(a, b);
}

static flow_where times(flow_where a, flow_where b)
{
	if (a.varies) {
		flow_where c = a;
		a = b, b = c;
	}
	if (a.kind != WHERE_NUMBER || b.kind == WHERE_UNKNOWN || b.kind == WHERE_VARIABLE)
		return unknown;
	if (b.kind == WHERE_SELF || a.varies)
		return some_number;
	uint64_t step = (uint64_t)a.offset * MAX(b.stride, 1u); /* without another hint a counter advances by 1 */
	b.offset = (int64_t)((uint64_t)b.offset * (uint64_t)a.offset);
	b.stride = b.varies && step <= UINT32_MAX ? (uint32_t)step : 0;
	return b;
}

static flow_where shifted(flow_where a, flow_where by)
{
	return by.kind == WHERE_NUMBER && !by.varies && by.offset >= 0 && by.offset < 32 ? times(constant(1ll << by.offset), a)
	                                                                                 : unknown;
}

/* Bits set or cleared in an address, which choose a CTA of the cluster, or swizzle. */
static flow_where masked(flow_where a, flow_where b)
{
	if (a.kind < b.kind) {
		flow_where c = a;
		a = b, b = c;
	}
	if (b.kind != WHERE_NUMBER)
		return unknown;
	return a.kind == WHERE_NUMBER ? some_number : a;
}

/* Merges several definitions: those that start a loop, which must agree on a variable, and those that continue from there.
 */
static flow_where merged(flow_where a, flow_where b)
{
	if (a.kind == WHERE_UNKNOWN || b.kind == WHERE_UNKNOWN)
		return unknown;
	if (a.kind == WHERE_SELF || b.kind == WHERE_SELF) {
		flow_where *steps = a.kind == WHERE_SELF ? &a : &b, *begins = a.kind == WHERE_SELF ? &b : &a;
		if (steps->stride && (!begins->stride || steps->stride < begins->stride))
			begins->stride = steps->stride;
		begins->varies = true;
		return *begins;
	}
	if (a.kind != b.kind || (a.kind == WHERE_VARIABLE && a.sym != b.sym))
		return unknown;
	a.varies |= b.varies || a.offset != b.offset;
	a.offset = MIN(a.offset, b.offset);
	a.stride = MAX(a.stride, b.stride);
	return a;
}

static flow_where of_insn(flow_tracer *t, const ir_item *it, unsigned depth)
{
	unsigned op = arch_forms[it->form].op;
	flow_where in[3] = { unknown, unknown, unknown };

	if (flow_unit(t->k, it) == CPTX_UNIT_CONSTANT || !it->noperand)
		return some_number;
	for (unsigned i = 0; i < 3 && i + 1u < it->noperand; i++) {
		cptx_val v = ir_operand(t->k, it, i + 1);
		in[i] = of_value(t, &v, depth);
	}
	switch (op) {
	case CPTX_OP_MOV:
	case CPTX_OP_CVT:
	case CPTX_OP_CVTA:
	case CPTX_OP_MAPA: return in[0];
	case CPTX_OP_ADD: return plus(in[0], in[1]);
	case CPTX_OP_SUB: return minus(in[0], in[1]);
	case CPTX_OP_MUL:
	case CPTX_OP_MUL_WIDE: return times(in[0], in[1]);
	case CPTX_OP_MAD:
	case CPTX_OP_MAD_WIDE: return plus(times(in[0], in[1]), in[2]);
	case CPTX_OP_SHL: return shifted(in[0], in[1]);
	case CPTX_OP_SELP: return merged(in[0], in[1]);
	case CPTX_OP_AND:
	case CPTX_OP_OR:
	case CPTX_OP_XOR: return masked(in[0], in[1]);
	default: return flow_unit(t->k, it) == CPTX_UNIT_INTEGER ? some_number : unknown;
	}
}

static flow_where trace(flow_tracer *t, uint32_t reg, unsigned depth)
{
	flow_where w = unknown;
	uint32_t d = t->first[reg];

	if (t->state[reg] == 2)
		return t->value[reg];
	if (t->state[reg] == 1)
		return (flow_where){ .kind = WHERE_SELF };
	if (depth > DEEPEST || d == IR_NONE)
		return unknown;
	t->state[reg] = 1;
	w = of_insn(t, t->def[d].it, depth + 1);
	while ((d = t->def[d].next) != IR_NONE && t->steps) {
		t->steps--;
		w = merged(w, of_insn(t, t->def[d].it, depth + 1));
	}
	if (!t->steps)
		w = unknown;
	else
		t->steps--;
	/* SELF in the loop of another register is meaningful for that register only */
	t->state[reg] = w.kind == WHERE_SELF ? 0 : 2;
	return t->value[reg] = w;
}

static bool add_definition(cptx_flow *f, flow_tracer *t, uint32_t reg, const ir_item *it)
{
	if (!arena_push(&f->a, &t->def, t->ndef, &t->cap_def, sizeof *t->def))
		return false;
	t->def[t->ndef] = (definition){ it, t->first[reg] };
	t->first[reg] = (uint32_t)t->ndef++;
	return true;
}

static bool note_definitions(cptx_flow *f, flow_tracer *t, const ir_item *it)
{
	for (unsigned i = 0; i < it->noperand; i++) {
		cptx_val v = ir_operand(f->k, it, i);
		if (!flow_writes(it, i))
			continue;
		for (uint32_t r = 0; v.kind == CPTX_VAL_REG && r < v.count; r++)
			if (!add_definition(f, t, v.id + r, it))
				return false;
		for (uint32_t e = 0; v.kind == CPTX_VAL_VEC && e < v.count; e++)
			if (f->k->vec[v.id + e].kind == CPTX_VAL_REG && !add_definition(f, t, f->k->vec[v.id + e].id, it))
				return false;
	}
	return true;
}

flow_tracer *flow_tracer_of(cptx_flow *f)
{
	size_t n = f->k->nreg + 1;
	flow_tracer *t = ARENA_NEW(&f->a, flow_tracer);

	if (!t)
		return NULL;
	*t = (flow_tracer){ .k = f->k,
		                .first = ARENA_ARRAY(&f->a, uint32_t, n),
		                .value = ARENA_ARRAY(&f->a, flow_where, n),
		                .state = ARENA_ZEROED(&f->a, uint8_t, n),
		                .steps = 8 * (n + f->npoint) };
	if (!t->first || !t->value || !t->state)
		return NULL;
	memset(t->first, 0xff, n * sizeof *t->first);
	for (size_t i = 0; i < f->npoint; i++)
		if (!note_definitions(f, t, f->point[i].item))
			return NULL;
	return t;
}

flow_where flow_where_is(flow_tracer *t, const cptx_val *address) { return of_value(t, address, 0); }
