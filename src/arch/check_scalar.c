/* Rules of arithmetic, conversion, texture, video and control instructions. */
#include "arch/check.h"

const char *arch_check_CVT_SAT(const arch_match *m)
{
	arch_type d = arch_types[check_type(m, 0)], a = arch_types[check_type(m, 1)];
	bool fits = d.cls == a.cls ? d.bits >= a.bits : d.cls == 'S' && d.bits > a.bits;
	return fits ? ".sat has no effect, the destination holds every source value" : NULL;
}

const char *arch_check_BITS(const arch_match *m)
{
	for (unsigned i = 0; i < m->noperand; i++) {
		const cptx_val *v = &m->operand[i];
		bool position = arch_operands[arch_forms[m->form].operand + i].type == CPTX_U32;
		if (position && v->kind == CPTX_VAL_INT && (v->i < 0 || v->i > 255))
			return "a constant position or length is not in 0 to 255";
	}
	return NULL;
}
