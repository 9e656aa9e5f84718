/* SPDX-License-Identifier: MIT */
/*
 * The forms that nearly fit.  The distance of a form is the sum of the costs of its faults: modifiers that are missing, too
 * many or of another value, and operands that do not fit.  The types of operands count by majority: a value that was not
 * given is assumed to be the one that leaves the fewest operands wrong.
 */
#include "arch/near.h"

/* Costs, in eighths: small differences order forms with equally many faults. */
enum {
	COST_MISSING = 24,
	COST_VALUE = 29,
	COST_TURNED = 2, /* the second of two types that stand in each other's place: that is one mistake */
	COST_EXTRA = 32,
	COST_UNKNOWN = 36, /* an operand that was given by its name: another form was meant, which has it */
	COST_ABSENT = 32,
	COST_KIND = 32,
	COST_TYPE = 24,
	COST_OTHER_TYPE = 4, /* besides another number */
	COST_RANGE = 16,
	COST_EXCHANGED = 34 /* two operands that stand in each other's place */
};

static const cptx_val *value_of(const arch_request *q, const arch_operand *o)
{
	return &q->vals[o->slot ? FIRST_SLOT + o->slot : 0];
}

static void add_fault(arch_near *n, enum arch_fault_kind kind, unsigned index, unsigned cost)
{
	if (n->nfault < ARCH_FAULTS)
		n->fault[n->nfault++] = (arch_fault){ (uint8_t)kind, (uint8_t)index };
	n->cost = (uint16_t)(n->cost + cost);
}

void arch_set_value(const arch_form *f, uint16_t *mods, unsigned group, unsigned mod)
{
	mods[group] = (uint16_t)mod;
	for (unsigned i = group + 1; i < f->ngroup; i++)
		if (arch_groups[f->group + i].kind == GROUP_REPEAT && arch_groups[f->group + i].same == group)
			mods[i] = (uint16_t)mod;
}

void arch_offer(arch_offers *v, unsigned mod)
{
	for (unsigned i = 0; i < arch_offered(v); i++)
		if (v->mod[i] == mod)
			return;
	if (v->n < MOST_OFFERED)
		v->mod[v->n] = (uint16_t)mod;
	v->n++;
}

/* ---- operands ---- */

static unsigned operand_cost(const arch_form *f, const arch_request *q, unsigned i, const arch_match *m)
{
	const arch_operand *o = &arch_operands[f->operand + i];
	const cptx_val *v = value_of(q, o);
	bool reg = v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_VEC, first = i == 0 || !(o->flags & OPERAND_DEST);

	if (v->kind == CPTX_VAL_NONE)
		return COST_ABSENT;
	if (o->kind == OPERAND_IMM)
		return v->kind == CPTX_VAL_INT ? COST_RANGE : COST_KIND;
	for (unsigned k = 0; first && k < i; k++) /* sources decide, and among them the first */
		first = arch_operands[f->operand + k].flags & OPERAND_DEST;
	if (o->kind == OPERAND_ADDR)
		return (reg || v->kind == CPTX_VAL_SYM ? COST_TYPE : COST_KIND) + first;
	if (o->kind != OPERAND_REG)
		return COST_KIND;
	if (!reg)
		return (v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT ? COST_TYPE : COST_KIND) + first;
	/* the registers of a destination agree on a type, and outvote the first source */
	const bool several = v->count > 1 && o->flags & OPERAND_DEST;
	if (v->count == arch_operand_count(o, m->mod))
		return COST_TYPE + first + 2 * several;
	const unsigned want = o->type ? o->type : o->tgroup != ARCH_NO ? m->mod[o->tgroup] : 0;
	return COST_KIND + (want && want != v->type ? COST_OTHER_TYPE : 0) + first + 2 * several;
}

static unsigned operands_cost(const arch_form *f, const arch_request *q, arch_match *m, const uint8_t *kept)
{
	unsigned cost = 0;

	for (unsigned i = 0; i < f->noperand; i++)
		if (!arch_match_operand(f, q, i, m, kept, NULL))
			cost += operand_cost(f, q, i, m);
	return cost;
}

static void add_operands(const arch_form *f, const arch_request *q, arch_near *n, const uint8_t *kept)
{
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (arch_match_operand(f, q, i, &n->m, kept, NULL))
			continue;
		bool missing = o->given != ARCH_NO && value_of(q, o)->kind && !n->m.mod[o->given];
		unsigned cost = missing ? COST_MISSING : operand_cost(f, q, i, &n->m);
		n->operands = (uint16_t)(n->operands + cost);
		if (missing)
			add_fault(n, FAULT_MISSING, o->given, cost);
		else
			add_fault(n, FAULT_OPERAND, i, cost);
	}
}

/* ---- modifiers ---- */

/*
 * Assumes the value of a group that leaves the fewest operands wrong; of equal ones its present value, or else the first.
 * *explained: the operands that are still wrong have the group's type or number, so that the right operand is missing and
 * not a value.
 */
static void assume(const arch_form *f, const arch_request *q, arch_match *m, const uint8_t *kept, unsigned group,
                   bool *explained)
{
	const arch_group *g = &arch_groups[f->group + group];
	unsigned best = m->mod[group], least = best ? operands_cost(f, q, m, kept) : UINT16_MAX;

	for (unsigned a = 0; a < g->nalt; a++) {
		unsigned mod = arch_alts[g->alt + a].mod;
		arch_set_value(f, m->mod, group, mod);
		unsigned cost = operands_cost(f, q, m, kept);
		if (cost < least)
			least = cost, best = mod;
	}
	arch_set_value(f, m->mod, group, best);
	*explained = false;
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (o->tgroup == group && value_of(q, o)->kind && !arch_match_operand(f, q, i, m, kept, NULL))
			*explained = true;
	}
}

static bool has_value(const arch_form *f, unsigned group, unsigned mod)
{
	const arch_group *g = &arch_groups[f->group + group];

	for (unsigned a = 0; a < g->nalt; a++)
		if (arch_alts[g->alt + a].mod == mod)
			return true;
	return false;
}

/* The group whose value stands in the place of group i, and the other way round; ARCH_NO: there is none. */
static unsigned turned_with(const arch_form *f, const arch_request *q, unsigned i)
{
	const arch_group *g = &arch_groups[f->group + i];

	for (unsigned k = 0; k < f->ngroup && !q->by_group; k++) {
		const arch_group *h = &arch_groups[f->group + k];
		if (k == i || g->kind == GROUP_REPEAT || h->kind == GROUP_REPEAT)
			continue;
		unsigned mine = q->mods[g->field], other = q->mods[h->field];
		if (mine && other && mine != other && has_value(f, i, other) && has_value(f, k, mine))
			return k;
	}
	return ARCH_NO;
}

/* Types that are turned round are set right, and one mistake. */
static bool turn_types(const arch_form *f, const arch_request *q, arch_near *n, const bool *fits, unsigned i)
{
	unsigned k = turned_with(f, q, i);

	if (k == ARCH_NO || (fits[i] && fits[k]))
		return false;
	arch_set_value(f, n->m.mod, i, q->mods[arch_groups[f->group + k].field]);
	arch_set_value(f, n->m.mod, k, q->mods[arch_groups[f->group + i].field]);
	add_fault(n, FAULT_VALUE, i, i < k ? COST_VALUE : COST_TURNED);
	return true;
}

static void add_modifiers(const arch_form *f, const arch_request *q, arch_near *n, uint8_t *kept)
{
	bool fits[ARCH_GROUPS], explained;

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		fits[i] = arch_match_modifier(f, q, i, &n->m, kept) && /* text gives all modifiers */
		          !(q->by_group && g->kind == GROUP_REQUIRED && !q->mods[i]);
	}
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		unsigned given = g->kind == GROUP_REPEAT ? 0 : q->mods[q->by_group ? i : g->field];
		bool inferred = !given && g->kind == GROUP_REQUIRED && (g->is_type || g->is_count);
		if (g->kind == GROUP_REPEAT || turn_types(f, q, n, fits, i) || (fits[i] && !inferred))
			continue;
		unsigned was = n->m.mod[i];
		assume(f, q, &n->m, kept, i, &explained);
		if (fits[i] && n->m.mod[i] != was)
			n->guessed |= (uint16_t)(1u << i);
		if (fits[i])
			continue;
		n->open |= 1u << i;
		if (given)
			add_fault(n, FAULT_VALUE, i, COST_VALUE);
		else if (q->by_group || !g->is_type || !explained)
			add_fault(n, FAULT_MISSING, i, COST_MISSING);
	}
}

static void add_given(const arch_form *f, const arch_request *q, arch_near *n)
{
	const arch_op *op = &arch_ops[f->op];

	for (unsigned i = 0; i < op->nfield && !q->by_group; i++)
		if (q->mods[i] && !(f->fields >> i & 1))
			add_fault(n, FAULT_EXTRA, i, COST_EXTRA);
	for (unsigned i = 0; i < op->nslot; i++)
		if (q->vals[FIRST_SLOT + 1 + i].kind && !(f->slots >> i & 1))
			add_fault(n, FAULT_NO_OPERAND, i + 1, COST_UNKNOWN);
	if (q->vals[0].kind && !(f->noperand && arch_operands[f->operand].flags & OPERAND_DEST))
		add_fault(n, FAULT_NO_OPERAND, 0, COST_EXTRA);
}

/*
 * Does the register hold what the type says?  In text, bits hold integers, halves and packed types, but people declare
 * .f32 and .f64 as such.
 */
static bool holds(const arch_request *q, unsigned want, unsigned have)
{
	return have == want || (q->declared && arch_types[have].cls == 'B' && want != CPTX_F32 && want != CPTX_F64);
}

static bool is_wrong(const arch_near *n, unsigned operand)
{
	for (unsigned i = 0; i < n->nfault; i++)
		if (n->fault[i].kind == FAULT_OPERAND && n->fault[i].index == operand)
			return true;
	return false;
}

/* The cost of registers that fit though they have another type: little, but it decides between forms that are equal
 * otherwise. */
static unsigned inexact(const arch_form *f, const arch_request *q, const arch_near *near)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		const cptx_val *v = value_of(q, o);
		unsigned want = o->type ? o->type : o->tgroup != ARCH_NO ? near->m.mod[o->tgroup] : 0;
		if (o->kind == OPERAND_REG && v->kind == CPTX_VAL_REG && want && !is_wrong(near, i) && !holds(q, want, v->type))
			n += v->count > 1 ? 2 : 1;
	}
	return MIN(n, 4u);
}

/* In text, of two forms that differ in nothing else, the one that takes the sink _ takes all that the other does. */
static unsigned wants_result(const arch_form *f)
{
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (o->kind == OPERAND_REG && o->flags & OPERAND_DEST && !(o->flags & OPERAND_SINK))
			return 1;
	}
	return 0;
}

/* Eighths of a bit, as exact as needed to tell 4 from 5 values. */
static unsigned eighths_of_bits(unsigned values)
{
	unsigned bits = 0;

	while (values >> (bits + 1))
		bits++;
	return 8 * bits + (8 * values >> bits) - 8;
}

unsigned arch_choices(const arch_form *f, unsigned open)
{
	unsigned choices = 0;

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (o->kind == OPERAND_IMM && o->hi >= o->lo)
			choices += eighths_of_bits(MIN((unsigned)(o->hi - (int64_t)o->lo), 255u) + 1);
	}

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && !(open >> i & 1))
			choices += eighths_of_bits(g->nalt + (g->kind == GROUP_OPTIONAL));
	}
	return choices;
}

void arch_near_form(unsigned form, const arch_request *q, arch_near *n)
{
	const arch_form *f = &arch_forms[form];
	uint8_t kept[ARCH_GROUPS] = { 0 };

	memset(n, 0, sizeof *n);
	n->m.form = (uint16_t)form;
	n->m.ngroup = f->ngroup;
	n->m.noperand = f->noperand;
	n->m.vec = q->vec;
	add_given(f, q, n);
	add_modifiers(f, q, n, kept);
	add_operands(f, q, n, kept);
	/* only the assumed values of groups can be wrong */
	for (unsigned i = 0; i < f->ngroup && (n->guessed && !n->nfault); i++)
		if (n->guessed >> i & 1) {
			n->open |= (uint16_t)(1u << i);
			add_fault(n, FAULT_MISSING, i, COST_MISSING);
		}
	unsigned open = n->open; /* and types that only an operand tells that is wrong itself */
	for (unsigned i = 0; i < f->noperand; i++) {
		unsigned group = arch_operands[f->operand + i].tgroup;
		if (group != ARCH_NO && is_wrong(n, i) && !q->mods[q->by_group ? group : arch_groups[f->group + group].field])
			open |= 1u << group;
	}
	n->doubt = (uint16_t)(arch_choices(f, open) + DOUBT_PER_COST * inexact(f, q, n) + (q->by_group ? wants_result(f) : 0));
	for (unsigned i = 0; i < n->nfault; i++)
		if (n->fault[i].kind != FAULT_OPERAND)
			return;
	if (!f->constraint || !arch_constraint_check(f->constraint, &n->m))
		return;
	n->operands = (uint16_t)(n->operands + COST_RANGE);
	n->cost = (uint16_t)(n->cost + COST_RANGE);
	if (!n->nfault) /* with another fault the rule may be about the operand that is wrong */
		add_fault(n, FAULT_RULE, 0, 0);
}

/* Two operands in each other's place are one mistake; the faults stay those of what was written. */
static void allow_exchange(unsigned form, const arch_request *q, arch_near *n)
{
	const arch_form *f = &arch_forms[form];
	cptx_val vals[FIRST_SLOT + 1 + ARCH_SLOTS];
	arch_request other = *q;
	arch_near with;

	memcpy(vals, q->vals, (FIRST_SLOT + 1u + arch_ops[f->op].nslot) * sizeof *vals);
	other.vals = vals;
	for (unsigned i = 0; i < n->nfault && n->operands >= COST_EXCHANGED; i++)
		for (unsigned k = 0; k < f->noperand && n->fault[i].kind == FAULT_OPERAND; k++) {
			const arch_operand *a = &arch_operands[f->operand + n->fault[i].index], *b = &arch_operands[f->operand + k];
			cptx_val *at = &vals[value_of(q, a) - q->vals], *to = &vals[value_of(q, b) - q->vals];
			*at = *value_of(q, b), *to = *value_of(q, a);
			arch_near_form(form, &other, &with);
			*at = *value_of(q, a), *to = *value_of(q, b);
			if (arch_distance(with.cost + COST_EXCHANGED, with.doubt) < arch_distance(n->cost, n->doubt))
				n->cost = (uint16_t)(with.cost + COST_EXCHANGED), n->doubt = with.doubt;
		}
}

void *arch_near_insert(void *best, size_t each, unsigned *far, unsigned *n, unsigned distance)
{
	unsigned at = *n;

	while (at && distance < far[at - 1])
		at--;
	if (at == ARCH_NEAR)
		return NULL;
	*n = MIN(*n + 1, (unsigned)ARCH_NEAR);
	unsigned char *to = (unsigned char *)best + at * each;
	memmove(to + each, to, (*n - at - 1) * each);
	memmove(far + at + 1, far + at, (*n - at - 1) * sizeof *far);
	far[at] = distance;
	return to;
}

unsigned arch_nearest(unsigned op, const arch_request *q, arch_near *best)
{
	unsigned nbest = 0, far[ARCH_NEAR];
	arch_near n, *to;

	for (unsigned i = arch_ops[op].form; i < arch_ops[op].form + arch_ops[op].nform; i++) {
		arch_near_form(i, q, &n);
		allow_exchange(i, q, &n);
		to = (arch_near *)arch_near_insert(best, sizeof *best, far, &nbest, arch_distance(n.cost, n.doubt));
		if (to)
			*to = n;
	}
	return nbest;
}
