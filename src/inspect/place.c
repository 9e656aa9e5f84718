/* SPDX-License-Identifier: MIT */
/* Finds the instruction that a remark of ptxas is about, where ptxas names no line. */
#include "inspect/flow.h"

static bool is_wgmma(const ir_item *it)
{
	return it->kind == ITEM_INSN && !strncmp(arch_ops[arch_forms[it->form].op].name, "wgmma_mma_async", 15);
}

typedef struct regs {
	/* accumulator: registers that a wgmma under way writes; fragment: those that it reads */
	uint8_t *accumulator, *fragment;
} regs;

typedef bool (*reg_test)(const cptx_kernel *k, const cptx_val *v, uint8_t *set);

static bool mark(const cptx_kernel *k, const cptx_val *v, uint8_t *set)
{
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		set[v->id + i] = 1;
	for (uint32_t i = 0; v->kind == CPTX_VAL_VEC && i < v->count; i++)
		mark(k, &k->vec[v->id + i], set);
	return false;
}

static bool touches(const cptx_kernel *k, const cptx_val *v, uint8_t *set)
{
	bool found = false;

	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		found |= set[v->id + i];
	for (uint32_t i = 0; (v->kind == CPTX_VAL_VEC || v->kind == CPTX_VAL_LIST) && i < v->count; i++)
		found |= touches(k, &k->vec[v->id + i], set);
	return found;
}

static bool operands(const cptx_kernel *k, const ir_item *it, bool written, reg_test fn, uint8_t *set)
{
	bool found = false;

	for (unsigned i = 0; i < it->noperand; i++) {
		cptx_val v = ir_operand(k, it, i);
		if (written ? flow_writes(it, i) : flow_reads(it, i))
			found |= fn(k, &v, set);
	}
	return found;
}

static bool is_meant(const cptx_kernel *k, const ir_item *it, enum remark_place place, regs *r)
{
	switch (place) {
	case PLACE_WRITES_FRAGMENT: return operands(k, it, true, touches, r->fragment);
	case PLACE_WRITES_ACCUMULATOR: return operands(k, it, true, touches, r->accumulator);
	default: return operands(k, it, false, touches, r->accumulator);
	}
}

/* Goes through the text in its order, which is the order of execution in a pipeline without branches. */
static uint32_t in_pipeline(const cptx_kernel *k, enum remark_place place, arena *a)
{
	regs r = { ARENA_ZEROED(a, uint8_t, k->nreg + 1), ARENA_ZEROED(a, uint8_t, k->nreg + 1) };
	uint32_t first = 0;

	if (!r.accumulator || !r.fragment)
		return 0;
	for (const ir_item *it = k->first; it; it = it->next) {
		if (it->kind != ITEM_INSN)
			continue;
		unsigned op = arch_forms[it->form].op;
		if (is_wgmma(it)) {
			first = first ? first : it->line;
			operands(k, it, true, mark, r.accumulator);
			for (unsigned i = 0; i < it->noperand; i++) {
				cptx_val v = ir_operand(k, it, i);
				if (v.kind == CPTX_VAL_VEC && !flow_writes(it, i))
					mark(k, &v, r.fragment);
			}
		} else if (op == CPTX_OP_WGMMA_WAIT_GROUP) {
			memset(r.accumulator, 0, k->nreg), memset(r.fragment, 0, k->nreg);
		} else if (is_meant(k, it, place, &r)) {
			return it->line;
		}
	}
	return first;
}

static uint32_t first_of(const cptx_kernel *k, enum remark_place place)
{
	bool wgmma = false;

	for (const ir_item *it = k->first; it; it = it->next) {
		if (it->kind != ITEM_INSN)
			continue;
		unsigned op = arch_forms[it->form].op;
		wgmma |= is_wgmma(it);
		if ((place == PLACE_WGMMA && is_wgmma(it)) || (place == PLACE_SETMAXNREG && op == CPTX_OP_SETMAXNREG) ||
		    (place == PLACE_CALL && wgmma && ir_is_call(op)))
			return it->line;
	}
	return 0;
}

static uint32_t at_peak(const cptx_kernel *k)
{
	cptx_flow *f = cptx_flow_of(k, NULL);
	uint32_t at, line = 0;
	size_t n;
	const cptx_point *p = cptx_flow_points(f, &n);

	cptx_flow_peak(f, &at);
	if (p)
		line = p[at].line;
	cptx_flow_destroy(f);
	return line;
}

static uint32_t in_body(const cptx_kernel *k, enum remark_place place)
{
	arena a;
	uint32_t line;

	if (place == PLACE_PEAK)
		return at_peak(k);
	if (place < PLACE_WRITES_FRAGMENT)
		return first_of(k, place);
	arena_init(&a, NULL);
	line = in_pipeline(k, place, &a);
	arena_free(&a);
	return line;
}

uint32_t remark_line(const cptx_module *m, const char *function, enum remark_place place)
{
	uint32_t line = 0;

	for (size_t i = 0; !line && cptx_module_body_at(m, i); i++) {
		const cptx_kernel *k = cptx_module_body_at(m, i);
		if (!function || !strcmp(cptx_body_name(k), function))
			line = in_body(k, place);
	}
	return line;
}
