/* SPDX-License-Identifier: MIT */
/*
 * Choosing the form of an instruction.  A form fits if every modifier that was given is one of its values, every modifier
 * that it needs was given or follows from the operands, and every operand has the kind, type and length that the form asks
 * for.  Nothing later decides this again.  With `why`, matching describes what does not fit about an operand; near.c
 * describes all other mismatches.
 */
#include "arch/arch.h"
#include "arch/match.h"

#include <stdio.h>

#define WHY(...) (why ? buf_printf(why, __VA_ARGS__) : (void)0, false)

static const cptx_val *slot_value(const arch_request *q, const arch_operand *o)
{
	return &q->vals[o->slot ? FIRST_SLOT + o->slot : 0];
}

static const char *slot_name(const arch_form *f, const arch_operand *o)
{
	return o->slot ? arch_ops[f->op].slot[o->slot - 1] : "d";
}

static const char *type_name(unsigned t) { return t > CPTX_ON && t < arch_ntype ? arch_mods[t].name : "no type"; }

static bool is_register(const cptx_val *v) { return v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_VEC; }

/* ---- modifiers ---- */

/* The value of a group that the type `t` of an operand selects, 0 if none: t itself, else bits of its width, else (for bits)
 * the only type of its width. */
static unsigned alt_for_type(const arch_group *g, unsigned t)
{
	unsigned found = 0, n = 0;

	for (unsigned i = 0; i < g->nalt; i++)
		if (arch_alts[g->alt + i].mod == t)
			return t;
	for (unsigned i = 0; i < g->nalt; i++) {
		unsigned a = arch_alts[g->alt + i].mod;
		if (a >= arch_ntype || arch_types[a].bits != arch_types[t].bits)
			continue;
		if (arch_types[a].cls == 'B' && t != CPTX_PRED)
			return a;
		if (arch_types[t].cls == 'B' && arch_types[a].cls != 'F') /* untyped bits do not select a floating point type */
			found = a, n++;
	}
	return n == 1 ? found : 0;
}

static bool infer_type(const arch_form *f, const arch_request *q, unsigned index, arch_match *m, uint8_t *kept)
{
	const arch_group *g = &arch_groups[f->group + index];
	const arch_operand *from = NULL;
	unsigned t = 0;

	for (unsigned i = f->noperand; i-- > 0;) {
		const arch_operand *o = &arch_operands[f->operand + i];
		const cptx_val *v = slot_value(q, o);
		if (o->tgroup != index || (o->flags & OPERAND_DOUBLE) || !v->type || v->kind == CPTX_VAL_INT ||
		    v->kind == CPTX_VAL_FLOAT)
			continue;
		if (from && (o->flags & OPERAND_DEST))
			continue; /* sources decide first, this is a destination */
		from = o;
		t = v->kind == CPTX_VAL_SYM ? (v->space == CPTX_SHARED ? CPTX_U32 : CPTX_U64) : v->type;
	}
	if (!from) {
		m->mod[index] = g->nalt == 1 ? arch_alts[g->alt].mod : 0;
		return m->mod[index] != 0;
	}
	m->mod[index] = (uint16_t)alt_for_type(g, t);
	*kept = m->mod[index] ? (uint8_t)t : 0;
	return m->mod[index] != 0;
}

/* Whether an address in `space` can be that of a variable: a .shared variable lies in the shared memory of its CTA and of
 * the cluster. */
static bool same_space(unsigned space, unsigned of_variable)
{
	return space == of_variable ||
	       (of_variable == CPTX_SHARED && (space == CPTX_SHARED_CTA || space == CPTX_SHARED_CLUSTER)) ||
	       (of_variable == CPTX_PARAM && (space == CPTX_PARAM_ENTRY || space == CPTX_PARAM_FUNC));
}

static bool infer_space(const arch_form *f, const arch_request *q, unsigned index, arch_match *m)
{
	const arch_group *g = &arch_groups[f->group + index];

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		const cptx_val *v = slot_value(q, o);
		if (v->kind != CPTX_VAL_SYM)
			continue;
		for (unsigned a = 0; a < g->nalt; a++) {
			unsigned mod = arch_alts[g->alt + a].mod;
			if (mod == v->space || (!m->mod[index] && same_space(mod, v->space)))
				m->mod[index] = (uint16_t)mod;
		}
	}
	return m->mod[index] != 0;
}

static void infer_count(const arch_form *f, const arch_request *q, unsigned index, arch_match *m)
{
	const arch_group *g = &arch_groups[f->group + index];

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		const cptx_val *v = slot_value(q, o);
		if (o->cgroup != index || !(is_register(v) || v->kind == CPTX_VAL_SREG) ||
		    (g->kind == GROUP_OPTIONAL && v->count < 2))
			continue;
		for (unsigned a = 0; a < g->nalt; a++)
			if (arch_mods[arch_alts[g->alt + a].mod].count * o->times == v->count * o->over)
				m->mod[index] = arch_alts[g->alt + a].mod;
	}
}

/* Chooses the modifier that goes with an operand (`given`) if the operand is there. */
static bool infer_given(const arch_form *f, const arch_request *q, const arch_group *g, uint16_t *chosen)
{
	const arch_operand *o = &arch_operands[f->operand + g->follows - 1u];
	if (slot_value(q, o)->kind && g->nalt == 1)
		*chosen = arch_alts[g->alt].mod;
	return *chosen != 0;
}

static bool choose_value(const arch_group *g, unsigned given, uint16_t *chosen)
{
	for (unsigned a = 0; a < g->nalt; a++) {
		unsigned mod = arch_alts[g->alt + a].mod;
		if (mod == given || (given == CPTX_ON && g->nalt == 1)) {
			*chosen = (uint16_t)mod;
			return true;
		}
	}
	return false;
}

bool arch_match_modifier(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, uint8_t *kept)
{
	const arch_group *g = &arch_groups[f->group + i];

	m->mod[i] = 0;
	kept[i] = 0;
	if (g->kind == GROUP_REPEAT) {
		m->mod[i] = m->mod[g->same];
		return true;
	}
	unsigned given = q->mods[q->by_group ? i : g->field];
	if (given)
		return choose_value(g, given, &m->mod[i]);
	if (f->must >> g->field & 1)
		return false;
	if (q->by_group && g->kind == GROUP_OPTIONAL)
		return true;
	if (g->follows && infer_given(f, q, g, &m->mod[i]))
		return true;
	if (g->is_space)
		infer_space(f, q, i, m);
	else if (g->is_count)
		infer_count(f, q, i, m);
	else if (g->is_type && g->kind == GROUP_REQUIRED && !infer_type(f, q, i, m, &kept[i]) && !g->preset)
		return false;
	if (!m->mod[i] && g->preset && !q->by_group)
		m->mod[i] = arch_alts[g->alt + g->preset - 1u].mod;
	return m->mod[i] || g->kind != GROUP_REQUIRED;
}

static bool match_modifiers(const arch_form *f, const arch_request *q, arch_match *m, uint8_t *kept)
{
	for (unsigned i = 0; i < f->ngroup; i++)
		if (!arch_match_modifier(f, q, i, m, kept))
			return false;
	return true;
}

/* ---- operands ---- */

static bool match_held(const arch_operand *o, const arch_match *m, unsigned have, const char *name, buf *why)
{
	unsigned held = o->held;

	for (unsigned i = 0; i < m->ngroup && o->held == HELD_TYPE; i++)
		if (m->mod[i] == CPTX_F16)
			held = HELD_HALF;
	return arch_is_held((enum arch_held)held, have) ||
	       WHY("%s is declared .%s; ptxas takes registers of %s", name, type_name(have),
	           held == HELD_INT    ? "integers or bits"
	           : held == HELD_HALF ? "bits or .f16x2"
	                               : "bits");
}

static unsigned doubled(unsigned t)
{
	switch (t) {
	case CPTX_U16: return CPTX_U32;
	case CPTX_S16: return CPTX_S32;
	case CPTX_U32: return CPTX_U64;
	case CPTX_S32: return CPTX_S64;
	default: return 0;
	}
}

static bool match_constant(const arch_form *f, const arch_operand *o, const arch_request *q, unsigned want, cptx_val *v,
                           buf *why)
{
	arch_type t = arch_types[want];
	const char *name = slot_name(f, o);

	if (o->flags & (OPERAND_REG_ONLY | OPERAND_DEST))
		return WHY("%s must be a register", name);
	if (want == CPTX_PRED) { /* nvcc writes -1 for true: xor.pred p, q, -1 */
		int64_t least = o->held == HELD_NUMBER ? 0 : -1;
		if (v->kind != CPTX_VAL_INT || (!q->any && (v->i < least || v->i > 1)))
			return WHY("%s is a predicate: a register, 0 or 1", name);
		v->type = CPTX_PRED;
		return true;
	}
	if (t.cls == 'X' || (t.cls == 'F' && t.bits < 32) || t.bits > 64)
		return WHY("%s is .%s: no constants of that type, move the bits to a register first", name, type_name(want));
	bool exact = v->space == EXACT_CONSTANT;
	if (t.cls == 'F' && v->kind == CPTX_VAL_INT && exact)
		return WHY("%s is .%s: write a floating point number, 1.0 for 1", name, type_name(want));
	if (t.cls == 'F' && v->kind == CPTX_VAL_INT) {
		v->kind = CPTX_VAL_FLOAT;
		v->f = v->negated ? (double)(uint64_t)v->i : (double)v->i;
		v->negated = 0;
	}
	if (v->kind == CPTX_VAL_FLOAT) {
		if (t.cls != 'F' && !(t.cls == 'B' && t.bits >= 32))
			return WHY("%s is .%s, not a floating point number", name, type_name(want));
		if (exact && t.cls == 'B' && t.bits != (v->type == CPTX_F32 ? 32 : 64))
			return WHY("%s is .%s; 0f3F800000 has 32 bits, 1.0 and 0d... have 64", name, type_name(want));
		v->space = 0;
		v->type = t.bits == 64 ? CPTX_F64 : CPTX_F32;
		return true;
	}
	if (!t.bits) /* the type is unknown, which only happens while near.c looks for the nearest form */
		return true;
	int64_t low = t.bits == 64 ? INT64_MIN : -((int64_t)1 << (t.bits - 1));
	int64_t high = t.bits == 64 ? INT64_MAX : ((int64_t)1 << t.bits) - 1;
	if (!q->any && ((v->negated && t.bits != 64) || v->i < low || v->i > high))
		return WHY("%s = %lld does not fit .%s", name, (long long)v->i, type_name(want));
	v->type = (uint8_t)want;
	v->negated = v->space = 0;
	return true;
}

/* Matches an operand that is an address of tensor memory, the number of a logical endpoint, or the handle of a texture,
 * sampler or surface. */
static bool match_handle(const arch_form *f, const arch_operand *o, const cptx_val *v, buf *why)
{
	bool tmem = o->address == ADDRESS_TMEM, handle = o->address == ADDRESS_HANDLE;
	const char *name = slot_name(f, o);
	const char *what = tmem ? "tensor memory" : handle ? arch_mods[o->space].name : "fabric";

	if (v->kind == CPTX_VAL_SYM && handle && v->offset)
		return WHY("%s has an offset, which the name of a .%s cannot have", name, what);
	if (v->kind == CPTX_VAL_SYM && handle)
		return v->space == o->space || WHY("%s is a variable of .%s, not a .%s", name, arch_mods[v->space].name, what);
	if (v->kind != CPTX_VAL_REG || v->count != 1 || v->negated || v->space & SELECTED || (v->offset && !tmem))
		return WHY("%s is no register with %s", name,
		           tmem     ? "an address in tensor memory"
		           : handle ? "a handle"
		                    : "the number of an endpoint");
	arch_type t = arch_types[v->type];
	if (!arch_is_integer(v->type) || t.bits != (handle ? 64 : 32))
		return WHY("%s is a .%s register; %s takes %s integer", name, type_name(v->type), what,
		           handle ? "a 64-bit" : "a 32-bit");
	return true;
}

/*
 * Whether ptxas accepts the name of a variable where the address is generic: a variable in global memory, unless the form is
 * for shared memory; one in another space where the form could name that space; and a shared one where the form could name
 * global memory only.
 */
static bool has_generic(const arch_form *f, const arch_operand *o, unsigned of_variable)
{
	bool global = false, shared = false, local = false;

	for (unsigned i = 0; o->sgroup != ARCH_NO && i < arch_groups[f->group + o->sgroup].nalt; i++) {
		unsigned space = arch_alts[arch_groups[f->group + o->sgroup].alt + i].mod;
		global |= space == CPTX_GLOBAL;
		shared |= same_space(space, CPTX_SHARED);
		local |= space == CPTX_LOCAL;
	}
	if (of_variable == CPTX_LOCAL)
		return local;
	return of_variable == CPTX_GLOBAL ? global || !shared : of_variable == CPTX_SHARED && (shared || (global && !local));
}

static bool match_address(const arch_form *f, const arch_operand *o, const arch_request *q, const arch_match *m,
                          const cptx_val *v, buf *why)
{
	if (o->address != ADDRESS_MEMORY)
		return match_handle(f, o, v, why) &&
		       (!q->declared || v->kind != CPTX_VAL_REG || match_held(o, m, v->type, slot_name(f, o), why));
	unsigned space = o->space ? o->space : o->sgroup != ARCH_NO ? m->mod[o->sgroup] : 0;
	bool window = space == CPTX_SHARED || space == CPTX_SHARED_CTA || space == CPTX_LOCAL || space == CPTX_PARAM ||
	              space == CPTX_CONST || space == CPTX_SHARED_CLUSTER || space == CPTX_PARAM_ENTRY ||
	              space == CPTX_PARAM_FUNC;
	const char *name = slot_name(f, o);
	bool alone = o + 1 == &arch_operands[f->operand + f->noperand] || !(o[1].flags & OPERAND_INSIDE);

	if (!alone && (v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_SYM) && v->offset)
		return WHY("%s has an offset, which an address with more in its brackets cannot have", name);
	if (v->kind == CPTX_VAL_INT)
		return space == CPTX_LOCAL || WHY("%s: only .local memory has constant addresses", name);
	if (v->kind == CPTX_VAL_SYM)
		return (space ? same_space(space, v->space) : has_generic(f, o, v->space)) ||
		       WHY("%s lies in .%s memory, not in .%s", name, arch_mods[v->space].name,
		           space ? arch_mods[space].name : "generic");
	if (v->kind != CPTX_VAL_REG || v->count != 1 || v->negated || v->space & SELECTED)
		return WHY("%s is not an address (a register or a variable)", name);
	arch_type t = arch_types[v->type];
	if (!arch_is_integer(v->type) || !(t.bits == 64 || (window && t.bits == 32)))
		return WHY("%s is a .%s register; an address in %s%s memory is %s", name, type_name(v->type), space ? "." : "",
		           space ? arch_mods[space].name : "generic", window ? "a 32- or 64-bit integer" : "a 64-bit integer");
	return true;
}

static bool match_immediate(const arch_form *f, const arch_operand *o, const arch_request *q, const cptx_val *v, buf *why)
{
	const char *name = slot_name(f, o);

	if (v->kind != CPTX_VAL_INT)
		return WHY("%s must be an integer constant", name);
	if (q->any)
		return true;
	if (o->lo == -1 && o->hi == -1 && v->i == UINT32_MAX) /* the mask of all lanes, as most programs write it */
		return !v->negated || WHY("%s is negated", name);
	if (v->negated || v->i < o->lo || v->i > o->hi || (o->set && !(o->set >> v->i & 1))) {
		if (!why)
			return false;
		buf_printf(why, "%s = %lld is not ", name, (long long)v->i);
		if (!o->set)
			return WHY("in %d to %d", (int)o->lo, (int)o->hi);
		for (unsigned i = 0, n = 0; i < 64; i++)
			if (o->set >> i & 1)
				buf_printf(why, "%s%u", n++ ? " or " : "", i);
		return false;
	}
	return true;
}

/* Changes the mask -1 to 0xffffffff: ptxas of CUDA 13.3 refuses -1. */
static void keep_immediate(const arch_operand *o, cptx_val *v)
{
	v->space = 0;
	if (o->lo == -1 && o->hi == -1)
		v->i = UINT32_MAX;
}

/* The type of a result that the form calls plain bits: that of the first source of its width, so shfl of an f32 is an f32.
 */
static unsigned type_of_bits(const arch_form *f, const arch_match *m, unsigned want, unsigned count)
{
	for (unsigned i = 1; i < f->noperand && count == 1; i++) {
		const cptx_val *v = &m->operand[i];
		if (arch_operands[f->operand + i].kind == OPERAND_REG && v->kind == CPTX_VAL_REG && v->count == 1 &&
		    arch_types[v->type].bits == arch_types[want].bits)
			return v->type;
	}
	return want;
}

unsigned arch_operand_count(const arch_operand *o, const uint16_t *mods)
{
	if (o->cgroup == ARCH_NO)
		return o->count;
	return (mods[o->cgroup] ? arch_mods[mods[o->cgroup]].count : 1u) * o->times / o->over;
}

/* Matches constants and sinks among the elements of a vector. */
static bool match_elements(const arch_form *f, const arch_operand *o, const arch_request *q, unsigned want,
                           const cptx_val *v, buf *why)
{
	for (unsigned i = 0; i < v->count; i++) {
		cptx_val e = q->vec[v->id + i];
		if (e.kind == CPTX_VAL_REG)
			continue;
		if (e.kind == CPTX_VAL_SINK) {
			if (!(o->flags & OPERAND_SINK))
				return WHY("element %u of %s cannot be the sink _", i, slot_name(f, o));
		} else if (e.kind == CPTX_VAL_INT && arch_types[want].cls == 'B' && arch_types[v->type].cls == 'F') {
			return WHY("element %u of %s stands beside .%s: write a floating point number", i, slot_name(f, o),
			           type_name(v->type));
		} else if (!q->any && !match_constant(f, o, q, want, &e, why)) {
			return false;
		}
	}
	return true;
}

/* Matches a vector as a whole: whether its elements go together, and elements that are no registers. */
static bool match_vector(const arch_form *f, const arch_operand *o, const arch_request *q, unsigned want, const cptx_val *v,
                         buf *why)
{
	const char *name = slot_name(f, o);
	const arch_operand *first = o;
	bool vec = v->kind == CPTX_VAL_VEC, varied = vec && v->space & VEC_VARIED;

	while (first->flags & OPERAND_INSIDE)
		first--;
	/* the layer of a texture array stands in front of its coordinates, and has another type */
	bool layer = first != o && first->address == ADDRESS_HANDLE && want == CPTX_B32;

	if (vec && v->space & (layer ? VEC_MIXED : VEC_MIXED | VEC_FIRST_APART))
		return WHY("%s has neighbours of different types; make one of them bits, such as .b32", name);
	if (layer && (varied || q->declared) && !arch_is_held(HELD_INT, vec ? q->vec[v->id].type : v->type))
		return WHY("%s begins with the layer, an integer or bits", name);
	for (unsigned i = 0; varied && o->flags & OPERAND_EACH && i < v->count; i++) {
		unsigned have = q->vec[v->id + i].type;
		if (have && (!arch_type_fits(want, have, 0) || !arch_is_held((enum arch_held)o->held, have)))
			return WHY("element %u of %s is .%s, not .%s", i, name, type_name(have), type_name(want));
	}
	return !vec || !v->space || match_elements(f, o, q, want, v, why);
}

static bool match_selector(const arch_form *f, const arch_operand *o, const cptx_val *v, buf *why)
{
	static const char *const right[] = { "no selector",       "b0 to b3, h0 or h1", "h and two digits",
		                                 "b and four digits", "h0, h1 or h10",      "b and up to four descending digits" };
	return arch_selects((enum arch_select)o->select, v) || WHY("%s takes %s", slot_name(f, o), right[o->select]);
}

static bool match_register(const arch_form *f, const arch_operand *o, const arch_request *q, arch_match *m,
                           const uint8_t *kept, cptx_val *v, buf *why)
{
	unsigned want = o->type ? o->type : m->mod[o->tgroup];
	unsigned count = arch_operand_count(o, m->mod);
	const char *name = slot_name(f, o);

	if (o->flags & OPERAND_DOUBLE)
		want = doubled(want);
	if (v->kind == CPTX_VAL_NONE && o->flags & OPERAND_READ)
		return WHY("%s is read too: give it as .into", name);
	if (v->kind == CPTX_VAL_NONE && o->slot == 0) { /* the match makes the destination */
		unsigned t = o->tgroup != ARCH_NO && kept[o->tgroup] && !(o->flags & OPERAND_DOUBLE) ? kept[o->tgroup] : want;
		if (arch_types[t].bits == 8 && o->flags & OPERAND_WIDER) /* cptx makes registers of 16 bits for 8-bit results */
			t = arch_types[t].cls == 'S' ? CPTX_S16 : arch_types[t].cls == 'U' ? CPTX_U16 : CPTX_B16;
		m->dest_type = (uint8_t)t;
		m->dest_count = (uint16_t)count;
		return true;
	}
	if (v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT)
		return count == 1 ? match_constant(f, o, q, want, v, why) : WHY("%s must be %u registers", name, count);
	if (v->kind == CPTX_VAL_SINK)
		return (count == 1 && !o->brace && (o->flags & OPERAND_SINK)) || WHY("%s cannot be the sink _", name);
	if (v->kind == CPTX_VAL_FUNC && o->flags & OPERAND_SYMBOL)
		return (arch_types[want].bits == 64 && arch_types[want].cls != 'F') ||
		       WHY("%s: the address of a function has 64 bits", name);
	if (v->kind == CPTX_VAL_SREG || v->kind == CPTX_VAL_SYM) {
		if (!(o->flags & (v->kind == CPTX_VAL_SYM ? OPERAND_SYMBOL : OPERAND_SPECIAL)))
			return WHY("%s is %s; cptx_mov it to a register first", name,
			           v->kind == CPTX_VAL_SYM ? "a variable's address" : "a special register");
		bool pred = v->kind == CPTX_VAL_SREG && v->type == CPTX_PRED;
		if (arch_types[want].cls == 'F' || (arch_types[want].cls == 'P') != pred)
			return WHY("%s is %s, not .%s", name, pred ? "a predicate" : "an integer", type_name(want));
		if (v->kind == CPTX_VAL_SYM && (v->space == CPTX_TEXREF || v->space == CPTX_SAMPLERREF || v->space == CPTX_SURFREF))
			return want == CPTX_U64 || WHY("%s: the handle of a .%s is .u64", name, arch_mods[v->space].name);
		if (v->kind == CPTX_VAL_SYM)
			return arch_types[want].bits == 64 || (arch_types[want].bits == 32 && v->space != CPTX_GLOBAL) ||
			       WHY("%s: an address has 64 bits; 32 do outside of global memory", name);
	} else if (!is_register(v)) {
		return WHY("%s is %s", name,
		           v->kind == CPTX_VAL_NONE  ? "missing"
		           : v->kind == CPTX_VAL_BAD ? "no value: an element out of range, or what cannot be seen so"
		                                     : "not a register or constant");
	}
	if (v->count != count)
		return WHY("%s has %u register%s, %u needed", name, v->count, v->count == 1 ? "" : "s", count);
	if (v->kind == CPTX_VAL_REG && v->space) {
		if (!q->any && !match_selector(f, o, v, why))
			return false;
	} else if (v->kind == CPTX_VAL_REG && v->offset) {
		return WHY("%s carries an offset, which only an address can", name);
	}
	if (!match_vector(f, o, q, want, v, why))
		return false;
	if (v->kind == CPTX_VAL_VEC && !v->type) /* a vector of constants and sinks only */
		return !(v->space & VEC_SINKS) || WHY("%s has no element that is a register", name);
	bool old = v->kind == CPTX_VAL_SREG && arch_sregs[v->id].least && arch_types[want].bits >= arch_sregs[v->id].least &&
	           arch_types[want].bits < arch_types[v->type].bits;
	m->once |= old;
	/* a modifier chose the type, it was not inferred from an operand; coordinates keep no such type */
	bool told = !o->type && !(o->flags & OPERAND_INSIDE) &&
	            (q->by_group || !q->mods || q->mods[arch_groups[f->group + o->tgroup].field]);
	unsigned how = (told ? FITS_TOLD : 0) | (o->flags & OPERAND_WIDER ? FITS_WIDER : 0);
	if (told && count > 1 && o->cgroup != ARCH_NO)
		how |= FITS_VECTOR;
	if (!old && !arch_type_fits(want, v->type, how))
		return WHY("%s is .%s, not .%s", name, type_name(v->type), type_name(want));
	if (q->declared && o->held && v->kind != CPTX_VAL_SREG && v->kind != CPTX_VAL_SYM &&
	    !match_held(o, m, v->type, name, why))
		return false;
	return !v->negated || (o->flags & (want == CPTX_PRED ? OPERAND_NEGATABLE : OPERAND_MINUS)) ||
	       WHY("%s cannot be negated here", name);
}

bool arch_match_operand(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, const uint8_t *kept, buf *why)
{
	const arch_operand *o = &arch_operands[f->operand + i];
	cptx_val *v = &m->operand[i];
	bool ok = false;

	*v = *slot_value(q, o);
	if (o->given != ARCH_NO && !m->mod[o->given] != !v->kind)
		return WHY("%s and .%s belong together", slot_name(f, o),
		           arch_ops[f->op].field[arch_groups[f->group + o->given].field]);
	if (v->kind == CPTX_VAL_NONE && (o->flags & OPERAND_OPTIONAL))
		return true;
	switch ((enum arch_operand_kind)o->kind) {
	case OPERAND_REG: ok = match_register(f, o, q, m, kept, v, why); break;
	case OPERAND_ADDR: ok = match_address(f, o, q, m, v, why); break;
	case OPERAND_IMM:
		ok = match_immediate(f, o, q, v, why);
		if (ok)
			keep_immediate(o, v);
		break;
	case OPERAND_LABEL: ok = v->kind == CPTX_VAL_LABEL || WHY("%s is not a label", slot_name(f, o)); break;
	case OPERAND_FUNC: ok = v->kind == CPTX_VAL_FUNC || WHY("%s is not a function", slot_name(f, o)); break;
	case OPERAND_LIST: ok = v->kind == CPTX_VAL_LIST || WHY("%s is not a list", slot_name(f, o)); break;
	case OPERAND_TARGETS:
		ok = v->kind == CPTX_VAL_TARGETS || WHY("%s is not a list of branch targets", slot_name(f, o));
		break;
	case OPERAND_PROTO: ok = v->kind == CPTX_VAL_PROTO || WHY("%s is not a prototype", slot_name(f, o)); break;
	case OPERAND_NOWHERE:
		ok = v->kind == CPTX_VAL_NONE || v->kind == CPTX_VAL_SINK || WHY("its destination is always the sink _");
		*v = cptx_sink();
		break;
	}
	m->labels |= o->kind == OPERAND_LABEL || o->kind == OPERAND_TARGETS || o->kind == OPERAND_PROTO;
	return ok;
}

static bool match_operands(const arch_form *f, const arch_request *q, arch_match *m, const uint8_t *kept)
{
	for (unsigned i = 0; i < f->noperand; i++)
		if (!arch_match_operand(f, q, i, m, kept, NULL))
			return false;
	if (m->dest_type && arch_operands[f->operand].type && arch_types[m->dest_type].cls == 'B')
		m->dest_type = (uint8_t)type_of_bits(f, m, m->dest_type, m->dest_count);
	return true;
}

static bool match_given(const arch_form *f, const arch_request *q)
{
	const arch_op *op = &arch_ops[f->op];

	for (unsigned i = 0; i < op->nfield && !q->by_group; i++)
		if (q->mods[i] && !(f->fields >> i & 1))
			return false;
	for (unsigned i = 0; i < op->nslot; i++)
		if (q->vals[FIRST_SLOT + 1 + i].kind && !(f->slots >> i & 1))
			return false;
	return !q->vals[0].kind || (f->noperand && arch_operands[f->operand].flags & OPERAND_DEST);
}

static bool match(unsigned form, const arch_request *q, arch_match *m)
{
	const arch_form *f = &arch_forms[form];
	uint8_t kept[ARCH_GROUPS] = { 0 };

	m->form = (uint16_t)form;
	m->ngroup = f->ngroup;
	m->noperand = f->noperand;
	m->dest_type = 0;
	m->labels = 0;
	m->once = 0;
	m->vec = q->vec;
	if (!match_given(f, q) || !match_modifiers(f, q, m, kept) || !match_operands(f, q, m, kept))
		return false;
	return !f->constraint || q->any || !arch_constraint_check(f->constraint, m);
}

bool arch_match_form(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool declared,
                     arch_match *out)
{
	return match(
		form, CPTX_OPT_(arch_request, .vals = vals, .vec = vec, .mods = mods, .by_group = true, .declared = declared), out);
}

int64_t arch_integers_up_to(const arch_match *m, unsigned i)
{
	const arch_form *f = &arch_forms[m->form];
	const arch_operand *o = &arch_operands[f->operand + i];
	arch_type t = arch_types[m->operand[i].type];

	if (f->constraint || m->operand[i].kind != CPTX_VAL_INT)
		return -1;
	if (o->kind == OPERAND_IMM)
		return o->set || o->lo > 0 ? -1 : o->hi;
	if (o->kind != OPERAND_REG || t.cls == 'P')
		return -1;
	return t.bits >= 32 ? UINT32_MAX : ((int64_t)1 << t.bits) - 1;
}

bool arch_varies(const cptx_val *v)
{
	return v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT ||
	       (v->space && (v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_VEC));
}

bool arch_match_varying(arch_match *m, unsigned varying)
{
	const arch_form *f = &arch_forms[m->form];
	static const uint8_t kept[ARCH_GROUPS] = { 0 }; /* no group kept a type: constants do not need them */
	const arch_request q = { .vec = m->vec };

	for (unsigned i = 0; varying >> i; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		cptx_val *v = &m->operand[i];
		if (!(varying >> i & 1))
			continue;
		if (o->kind == OPERAND_REG && !match_register(f, o, &q, m, kept, v, NULL))
			return false;
		if (o->kind == OPERAND_IMM && !match_immediate(f, o, &q, v, NULL))
			return false;
		if (o->kind == OPERAND_IMM)
			keep_immediate(o, v);
	}
	return !f->constraint || !arch_constraint_check(f->constraint, m);
}

bool arch_match_call(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool any,
                     arch_match *out)
{
	return match(form, CPTX_OPT_(arch_request, .vals = vals, .vec = vec, .mods = mods, .any = any), out);
}
