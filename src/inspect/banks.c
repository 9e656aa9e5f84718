/* SPDX-License-Identifier: MIT */
/*
 * Bank conflicts that follow from the text alone: the address of an access to shared memory is followed back to lane
 * numbers.  It assumes a warp whose threads follow one another along x, at the start of the block; terms that are the same
 * for all lanes (parameters, block numbers, values that all load from one place, addresses of variables) count as zero.
 * Where such a term differs between lanes, or a lane's value comes from memory, the access is unknown.
 */
#include "inspect/flow.h"

#include <cptx/layout.h>

enum { LANES = CPTX_WARP, DEEPEST = 64 };

typedef struct lanes {
	uint32_t v[LANES];
	bool known, uniform;
} lanes;

typedef struct tracer {
	const cptx_kernel *k;
	const ir_item **def; /* definition of each register; NULL: none, or several */
	uint8_t *many;       /* of each register: it has several definitions */
	lanes *value;
	uint8_t *state; /* of each register 0: not visited, 1: being visited, 2: known */
} tracer;

static lanes same(uint32_t v)
{
	lanes l = { .known = true, .uniform = true };

	for (unsigned i = 0; i < LANES; i++)
		l.v[i] = v;
	return l;
}

static const lanes unknown = { 0 };

/* The value of a special register in lane i; 0 for registers that are the same in all lanes. */
static uint32_t of_lane(unsigned sreg, uint32_t i)
{
	switch (sreg) {
	case CPTX_SREG_TID_X:
	case CPTX_SREG_LANEID: return i;
	case CPTX_SREG_LANEMASK_EQ: return 1u << i;
	case CPTX_SREG_LANEMASK_LT: return (1u << i) - 1;
	case CPTX_SREG_LANEMASK_LE: return (2u << i) - 1;
	case CPTX_SREG_LANEMASK_GT: return ~((2u << i) - 1);
	case CPTX_SREG_LANEMASK_GE: return ~((1u << i) - 1);
	default: return 0;
	}
}
static lanes trace(tracer *t, uint32_t reg, unsigned depth);

static lanes of_value(tracer *t, const cptx_val *v, unsigned depth)
{
	lanes l = unknown;

	switch (v->kind) {
	case CPTX_VAL_INT: return same((uint32_t)v->i);
	case CPTX_VAL_SYM: return same((uint32_t)v->offset);
	case CPTX_VAL_SREG:
		l.known = arch_sregs[v->id].count == 1 || v->id == CPTX_SREG_TID_X;
		l.uniform = true;
		for (uint32_t i = 0; i < LANES; i++)
			l.v[i] = of_lane(v->id, i), l.uniform &= l.v[i] == l.v[0];
		return l.known && !l.uniform                                             ? l
		       : l.known || v->id == CPTX_SREG_TID_Y || v->id == CPTX_SREG_TID_Z ? same(0)
		                                                                         : unknown;
	case CPTX_VAL_REG:
		if (v->count != 1)
			return unknown;
		l = trace(t, v->id, depth);
		for (unsigned i = 0; i < LANES; i++)
			l.v[i] += (uint32_t)v->offset;
		return l;
	default: return unknown;
	}
}

static bool compute(unsigned op, const char *spelling, const uint32_t a[3], uint32_t *d)
{
	bool high = strstr(spelling, ".hi") != NULL;

	switch (op) {
	case CPTX_OP_MOV:
	case CPTX_OP_CVT:
	case CPTX_OP_CVTA: *d = a[0]; break;
	case CPTX_OP_ADD: *d = a[0] + a[1]; break;
	case CPTX_OP_SUB: *d = a[0] - a[1]; break;
	case CPTX_OP_MUL:
	case CPTX_OP_MUL_WIDE: *d = a[0] * a[1]; break;
	case CPTX_OP_MAD:
	case CPTX_OP_MAD_WIDE: *d = a[0] * a[1] + a[2]; break;
	case CPTX_OP_AND: *d = a[0] & a[1]; break;
	case CPTX_OP_OR: *d = a[0] | a[1]; break;
	case CPTX_OP_XOR: *d = a[0] ^ a[1]; break;
	case CPTX_OP_SHL: *d = a[1] < 32 ? a[0] << a[1] : 0; break;
	case CPTX_OP_SHR: *d = a[1] < 32 ? a[0] >> a[1] : 0; break;
	case CPTX_OP_DIV: *d = a[1] ? a[0] / a[1] : 0; break;
	case CPTX_OP_REM: *d = a[1] ? a[0] % a[1] : 0; break;
	case CPTX_OP_BFE: *d = a[1] < 32 ? a[0] >> a[1] & (a[2] < 32 ? (1u << a[2]) - 1 : UINT32_MAX) : 0; break;
	default: return false;
	}
	return !high;
}

/* Whether all lanes load from one place.  Parameters of a function may differ between lanes. */
static bool loads_uniform(tracer *t, const ir_item *it, unsigned depth)
{
	cptx_val v = it->noperand > 1 ? ir_operand(t->k, it, 1) : (cptx_val){ .kind = CPTX_VAL_NONE };
	lanes l = of_value(t, &v, depth);

	return l.known && l.uniform && !(t->k->is_func && flow_unit(t->k, it) == CPTX_UNIT_CONSTANT);
}

/* Whether an instruction gives the same result for the same operands; atomics, elections and matrix instructions do not. */
static bool is_arithmetic(unsigned op, enum cptx_unit unit)
{
	return op != CPTX_OP_ELECT_SYNC &&
	       (unit == CPTX_UNIT_INTEGER || unit == CPTX_UNIT_FLOAT || unit == CPTX_UNIT_DOUBLE || unit == CPTX_UNIT_SPECIAL);
}

static lanes of_insn(tracer *t, const ir_item *it, unsigned depth)
{
	unsigned op = arch_forms[it->form].op;
	lanes in[3], out = { .known = true, .uniform = true };
	unsigned n = it->noperand ? it->noperand - 1u : 0;
	char spelling[ARCH_OPCODE];

	if (op == CPTX_OP_LD && !loads_uniform(t, it, depth))
		return unknown;
	if (op == CPTX_OP_LD)
		return same(0);
	if (!is_arithmetic(op, flow_unit(t->k, it)) || n > 3 || !n || it->guard)
		return unknown;
	*arch_put_opcode(spelling, it->form, ir_mods(it)) = 0;
	for (unsigned i = 0; i < 3; i++) {
		cptx_val v = i < n ? ir_operand(t->k, it, i + 1) : (cptx_val){ .kind = CPTX_VAL_INT };
		in[i] = of_value(t, &v, depth);
		out.known &= in[i].known, out.uniform &= in[i].uniform;
	}
	/* a uniform result needs no values, so this holds for instructions that are not computed here, too */
	if (out.known && out.uniform)
		out = same(0);
	for (unsigned i = 0; out.known && i < LANES; i++) {
		const uint32_t of[] = { in[0].v[i], in[1].v[i], in[2].v[i] };
		if (!compute(op, spelling, of, &out.v[i]) && !out.uniform)
			return unknown;
	}
	return out;
}

/* Whether an instruction is a shuffle from a fixed lane, which gives all lanes the same value. */
static bool is_broadcast(const ir_item *it)
{
	unsigned op = arch_forms[it->form].op;
	size_t lane = op == CPTX_OP_SHFL_SYNC || op == CPTX_OP_SHFL ? cptx_item_slot(it, "b") : SIZE_MAX;

	return lane != SIZE_MAX && cptx_item_modifier(it, "mode") == CPTX_IDX &&
	       cptx_item_operand(it, lane).kind == CPTX_VAL_INT;
}

static lanes trace(tracer *t, uint32_t reg, unsigned depth)
{
	lanes l = unknown;

	if (t->state[reg] == 2)
		return t->value[reg];
	if (t->state[reg] == 1 || depth > DEEPEST || !t->def[reg] || t->many[reg])
		return unknown;
	t->state[reg] = 1;
	l = is_broadcast(t->def[reg]) ? same(0) : of_insn(t, t->def[reg], depth + 1);
	t->state[reg] = 2;
	return t->value[reg] = l;
}

/* ---- accesses ---- */

/* Bytes that a lane accesses; 0: not an access of shared memory. */
static uint32_t bytes_of(const cptx_kernel *k, const ir_item *it, unsigned *address)
{
	unsigned op = arch_forms[it->form].op;
	uint32_t bytes = 0;

	if ((op != CPTX_OP_LD && op != CPTX_OP_ST) || flow_unit(k, it) != CPTX_UNIT_SHARED || it->noperand < 2)
		return 0;
	*address = op == CPTX_OP_LD ? 1 : 0;
	cptx_val data = ir_operand(k, it, op == CPTX_OP_LD ? 0 : 1);
	cptx_item_info info;
	uint32_t width = cptx_item_look(k, it, &info) ? cptx_type_bits((enum cptx_type)cptx_item_modifier(it, "type")) / 8 : 0;
	bytes = width * (data.kind == CPTX_VAL_VEC || data.kind == CPTX_VAL_REG ? MAX(data.count, 1u) : 1);
	return bytes == 4 || bytes == 8 || bytes == 16 ? bytes : 0;
}

static void note_def(tracer *t, const ir_item *it)
{
	for (unsigned i = 0; i < it->noperand; i++) {
		cptx_val v = ir_operand(t->k, it, i);
		for (uint32_t r = 0; flow_writes(it, i) && v.kind == CPTX_VAL_REG && r < v.count; r++)
			t->many[v.id + r] |= t->def[v.id + r] != NULL, t->def[v.id + r] = it;
		for (uint32_t e = 0; flow_writes(it, i) && v.kind == CPTX_VAL_VEC && e < v.count; e++)
			if (t->k->vec[v.id + e].kind == CPTX_VAL_REG)
				t->many[t->k->vec[v.id + e].id] = 1; /* the instruction defines several registers */
	}
}

static void judge(cptx_flow *f, tracer *t, cptx_point *p)
{
	unsigned address = 0;
	uint32_t bytes = bytes_of(f->k, p->item, &address);

	if (!bytes)
		return;
	f->shared_accesses++;
	cptx_val v = ir_operand(f->k, p->item, address);
	lanes l = of_value(t, &v, 0);
	if (!l.known || ((const ir_item *)p->item)->guard)
		return;
	cptx_banks b = cptx_bank_conflicts(l.v, UINT32_MAX, bytes);
	p->conflicts = b.conflicts;
	f->shared_known++;
	f->conflicts += b.conflicts;
}

bool flow_banks(cptx_flow *f)
{
	size_t n = f->k->nreg + 1;
	tracer t = { .k = f->k,
		         .def = ARENA_ZEROED(&f->a, const ir_item *, n),
		         .many = ARENA_ZEROED(&f->a, uint8_t, n),
		         .value = ARENA_ARRAY(&f->a, lanes, n),
		         .state = ARENA_ZEROED(&f->a, uint8_t, n) };

	if (!t.def || !t.many || !t.value || !t.state)
		return false;
	for (size_t i = 0; i < f->npoint; i++)
		note_def(&t, f->point[i].item);
	for (size_t i = 0; i < f->npoint; i++)
		judge(f, &t, &f->point[i]);
	return true;
}

uint32_t cptx_flow_conflicts(const cptx_flow *f, uint32_t *known, uint32_t *accesses)
{
	if (known)
		*known = f ? f->shared_known : 0;
	if (accesses)
		*accesses = f ? f->shared_accesses : 0;
	return f ? f->conflicts : 0;
}
