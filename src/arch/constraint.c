/* Rules of insn.def that its notation cannot say.  Each gives NULL, or what is wrong. */
#include "arch/arch.h"

static const arch_group *group_of(const arch_match *m, unsigned i)
{
	return &arch_groups[arch_forms[m->form].group + i];
}

static unsigned chosen_type(const arch_match *m, unsigned nth)
{
	for (unsigned i = 0; i < m->ngroup; i++)
		if (group_of(m, i)->is_type && nth-- == 0)
			return m->mod[i];
	return 0;
}

static const char *check_NONE(const arch_match *m)
{
	(void)m;
	return NULL;
}

static const char *check_VEC128(const arch_match *m)
{
	unsigned count = 1;
	for (unsigned i = 0; i < m->ngroup; i++)
		if (group_of(m, i)->is_count)
			count = arch_mods[m->mod[i]].count;
	return count * arch_types[chosen_type(m, 0)].bits > 128 ? "the vector has more than 128 bits" : NULL;
}

static const char *check_CVT_SAT(const arch_match *m)
{
	arch_type d = arch_types[chosen_type(m, 0)], a = arch_types[chosen_type(m, 1)];
	bool fits = d.cls == a.cls ? d.bits >= a.bits : d.cls == 'S' && d.bits > a.bits;
	return fits ? ".sat has no effect, the destination holds every source value" : NULL;
}

static const char *check_BARRIER(const arch_match *m)
{
	const cptx_val *id = &m->operand[0], *threads = &m->operand[1];

	if (id->kind == CPTX_VAL_INT && (id->u.i < 0 || id->u.i >= CPTX_BARRIERS))
		return "the barrier is not one of 0 to 15";
	if (m->noperand > 1 && threads->kind == CPTX_VAL_INT &&
	    (threads->u.i <= 0 || threads->u.i % CPTX_WARP || threads->u.i > CPTX_THREADS_PER_CTA))
		return "the thread count is not a multiple of 32 from 32 to 1024";
	return NULL;
}

static const char *(*const checks[])(const arch_match *) = {
#define CONSTRAINT(name, text) check_##name,
#include "arch/constraint.def"
#undef CONSTRAINT
};

const char *arch_constraint_check(unsigned constraint, const arch_match *m)
{
	return checks[constraint](m);
}
