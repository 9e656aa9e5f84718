/* Rules of data movement and synchronization. */
#include "arch/check.h"

_Static_assert(CPTX_L2_256B - CPTX_L1_EVICT_NORMAL == 7, "the cache hints stand together in mods.def");

static unsigned vector_bits(const arch_match *m)
{
	unsigned count = 1;
	for (unsigned i = 0; i < m->ngroup; i++)
		if (check_group(m, i)->is_count)
			count = arch_mods[m->mod[i]].count;
	return count * arch_types[check_type(m, 0)].bits;
}

const char *arch_check_LDST(const arch_match *m)
{
	bool global = true, hint = false;

	for (unsigned i = 0; i < m->ngroup; i++) {
		if (check_group(m, i)->is_space)
			global = !m->mod[i] || m->mod[i] == CPTX_GLOBAL;
		hint |= m->mod[i] >= CPTX_L1_EVICT_NORMAL && m->mod[i] <= CPTX_L2_256B;
	}
	if (hint && !global)
		return "cache hints (L1::, L2::) are for global memory and generic addresses";
	return vector_bits(m) > 128 ? "the vector has more than 128 bits" : NULL;
}

const char *arch_check_VEC256(const arch_match *m) { return vector_bits(m) != 256 ? "the vector has not 256 bits" : NULL; }

const char *arch_check_BARRIER(const arch_match *m)
{
	const cptx_val *id = &m->operand[0], *threads = &m->operand[1];

	if (id->kind == CPTX_VAL_INT && (id->i < 0 || id->i >= CPTX_BARRIERS))
		return "the barrier is not one of 0 to 15";
	if (m->noperand > 1 && threads->kind == CPTX_VAL_INT &&
	    (threads->i <= 0 || threads->i % CPTX_WARP || threads->i > CPTX_THREADS_PER_CTA))
		return "the thread count is not a multiple of 32 from 32 to 1024";
	return NULL;
}

const char *arch_check_CVTA(const arch_match *m)
{
	const cptx_val *a = &m->operand[1];
	bool to = false;
	unsigned space = 0;

	for (unsigned i = 0; i < m->ngroup; i++) {
		if (check_group(m, i)->is_space)
			space = m->mod[i];
		to |= m->mod[i] == CPTX_TO;
	}
	if (a->kind == CPTX_VAL_SREG)
		return "a special register is no address";
	if (a->kind != CPTX_VAL_SYM)
		return NULL;
	if (to)
		return "a variable's address is no generic one; take it with mov";
	bool shared = space == CPTX_SHARED || space == CPTX_SHARED_CTA || space == CPTX_SHARED_CLUSTER;
	return a->space == space || (a->space == CPTX_SHARED && shared) ? NULL : "the variable does not lie in that space";
}

const char *arch_check_COPY(const arch_match *m)
{
	const cptx_val *size = &m->operand[2], *from = &m->operand[3];
	bool fits = from->kind != CPTX_VAL_INT || (from->i >= 0 && from->i <= size->i);
	return fits ? NULL : "src_size is not in 0 to size";
}
