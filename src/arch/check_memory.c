/* SPDX-License-Identifier: MIT */
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

/* The operand with this name; NULL if the form has none. */
static const cptx_val *operand(const arch_match *m, const char *name)
{
	const arch_form *f = &arch_forms[m->form];

	for (unsigned i = 0; i < m->noperand; i++) {
		unsigned slot = arch_operands[f->operand + i].slot;
		if (slot && !strcmp(arch_ops[f->op].slot[slot - 1], name))
			return &m->operand[i];
	}
	return NULL;
}

/* Whether a value is a constant outside of low to high, or no multiple of `step`. */
static bool outside(const cptx_val *v, int64_t low, int64_t high, int64_t step)
{
	return v && v->kind == CPTX_VAL_INT && (v->negated || v->i < low || v->i > high || v->i % step);
}

static bool is_hint(unsigned mod)
{
	return (mod >= CPTX_L1_EVICT_NORMAL && mod <= CPTX_L2_256B) || mod == CPTX_L2_CACHE_HINT;
}

const char *arch_check_LDST(const arch_match *m)
{
	bool global = true, hint = false;

	for (unsigned i = 0; i < m->ngroup; i++) {
		if (check_group(m, i)->is_space)
			global = !m->mod[i] || m->mod[i] == CPTX_GLOBAL;
		hint |= is_hint(m->mod[i]);
	}
	if (hint && !global)
		return "cache hints (L1::, L2::) are for global memory and generic addresses";
	return vector_bits(m) > 128 ? "the vector has more than 128 bits" : NULL;
}

const char *arch_check_NO_SINK(const arch_match *m)
{
	return m->operand[0].kind == CPTX_VAL_SINK ? "the destination cannot be the sink _" : NULL;
}

const char *arch_check_STORE_PARAM(const arch_match *m)
{
	return operand(m, "a")->kind != CPTX_VAL_SYM ? "the address must be a variable of .param" : arch_check_LDST(m);
}

static const char *check_unified(const arch_match *m)
{
	bool global = true, unified = false;

	for (unsigned i = 0; i < m->ngroup; i++) {
		if (check_group(m, i)->is_space)
			global = !m->mod[i] || m->mod[i] == CPTX_GLOBAL;
		unified |= m->mod[i] == CPTX_UNIFIED;
	}
	if (unified && (!global || operand(m, "a")->kind != CPTX_VAL_REG))
		return ".unified is for registers with a global or generic address";
	return NULL;
}

const char *arch_check_LOAD(const arch_match *m)
{
	const char *wrong = arch_check_NO_SINK(m);

	if (!wrong)
		wrong = check_unified(m);
	return wrong ? wrong : arch_check_LDST(m);
}

const char *arch_check_VEC256(const arch_match *m)
{
	return vector_bits(m) != 256 ? "the vector has not 256 bits" : check_unified(m);
}

const char *arch_check_ST_BULK(const arch_match *m)
{
	if (operand(m, "a")->kind != CPTX_VAL_REG)
		return "the address must be a register";
	return outside(operand(m, "size"), 0, 16777216, 8) ? "size is not a multiple of 8 from 0 to 16777216" : NULL;
}

const char *arch_check_POLICY_RANGE(const arch_match *m)
{
	const cptx_val *primary = operand(m, "primary_size"), *total = operand(m, "total_size");

	if (primary->kind == CPTX_VAL_INT && total->kind == CPTX_VAL_INT && (uint32_t)primary->i > (uint32_t)total->i)
		return "primary_size is greater than total_size";
	return NULL;
}

const char *arch_check_FRACTION(const arch_match *m)
{
	const cptx_val *v = operand(m, "fraction");

	return v->kind == CPTX_VAL_FLOAT && !((float)v->f > 0 && (float)v->f <= 1) ? "fraction is not above 0 and at most 1"
	                                                                           : NULL;
}

const char *arch_check_SHARED_VAR(const arch_match *m)
{
	const cptx_val *a = operand(m, "a");

	if (a->kind == CPTX_VAL_SREG)
		return "a special register is no address";
	return a->kind == CPTX_VAL_SYM && a->space != CPTX_SHARED ? "the variable does not lie in shared memory" : NULL;
}

const char *arch_check_MASK(const arch_match *m)
{
	return outside(operand(m, "mask"), 0, UINT32_MAX, 1) ? "the mask is not in 0 to 0xffffffff" : NULL;
}

const char *arch_check_BULK(const arch_match *m)
{
	return outside(operand(m, "size"), 0, 1048560, 16) ? "size is not a multiple of 16 from 0 to 1048560"
	                                                   : arch_check_MASK(m);
}

const char *arch_check_BULK_OOB(const arch_match *m)
{
	if (outside(operand(m, "left"), 0, 15, 1) || outside(operand(m, "right"), 0, 15, 1))
		return "left or right is not in 0 to 15";
	return arch_check_BULK(m);
}

const char *arch_check_OVERRIDE(const arch_match *m)
{
	const cptx_val *coord = operand(m, "coord");

	if (arch_types[operand(m, "sizes")->type].bits > 16)
		return "the sizes are not in registers of 8 or 16 bits";
	for (unsigned i = 0; coord->kind == CPTX_VAL_VEC && coord->space & VEC_CONSTANTS && i < coord->count; i++)
		if (outside(&m->vec[coord->id + i], 0, 0, 1))
			return "the coordinates are not 0";
	return outside(coord, 0, 0, 1) ? "the coordinates are not 0" : arch_check_MASK(m);
}

const char *arch_check_ARRIVALS(const arch_match *m)
{
	return outside(operand(m, "count"), 1, 1048575, 1) ? "count is not in 1 to 1048575" : arch_check_MASK(m);
}

const char *arch_check_ARRIVALS_V1(const arch_match *m)
{
	return outside(operand(m, "count"), 1, 511, 1) ? "count is not in 1 to 511" : NULL;
}

const char *arch_check_FABRIC(const arch_match *m)
{
	static const char *const shared[] = { "to", "s", "mbar" };

	for (unsigned i = 0; i < ARRAY_LEN(shared); i++) {
		const cptx_val *address = operand(m, shared[i]);
		if (address && address->kind == CPTX_VAL_SYM)
			return "an address in shared memory must be a register";
	}
	return outside(operand(m, "size"), 0, UINT32_MAX, 16) ? "size is not a multiple of 16" : NULL;
}

const char *arch_check_BYTES(const arch_match *m)
{
	return outside(operand(m, "tx"), 0, 1048575, 1) ? "tx is not in 0 to 1048575" : arch_check_MASK(m);
}

const char *arch_check_PARITY(const arch_match *m)
{
	return outside(operand(m, "parity"), 0, 1, 1) ? "parity is not 0 or 1" : NULL;
}

const char *arch_check_BARRIER(const arch_match *m)
{
	const cptx_val *threads = operand(m, "b");

	if (outside(operand(m, "a"), 0, CPTX_BARRIERS - 1, 1))
		return "the barrier is not one of 0 to 15";
	if (outside(threads, CPTX_WARP, CPTX_THREADS_PER_CTA, CPTX_WARP))
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
	if (a->kind == CPTX_VAL_FUNC)
		return "a function lies in no state space";
	if (a->kind != CPTX_VAL_SYM)
		return NULL;
	if (to)
		return "a variable's address is no generic one; take it with mov";
	bool shared = space == CPTX_SHARED || space == CPTX_SHARED_CTA || space == CPTX_SHARED_CLUSTER;
	bool param = space == CPTX_PARAM || space == CPTX_PARAM_ENTRY;
	return a->space == space || (a->space == CPTX_SHARED && shared) || (a->space == CPTX_PARAM && param)
	           ? NULL
	           : "the variable does not lie in that space";
}

const char *arch_check_COPY(const arch_match *m)
{
	const cptx_val *size = operand(m, "size"), *from = operand(m, "src_size");
	return outside(from, 0, size->i, 1) ? "src_size is not in 0 to size" : NULL;
}
