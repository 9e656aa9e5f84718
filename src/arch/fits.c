/* SPDX-License-Identifier: MIT */
/* Which values fit an operand: types of registers, neighbours in a vector, selectors. */
#include "arch/arch.h"
#include "arch/match.h"

static bool is_int(arch_type t) { return t.cls == 'U' || t.cls == 'S'; }

bool arch_is_integer(unsigned type)
{
	return type < arch_ntype && (is_int(arch_types[type]) || arch_types[type].cls == 'B');
}

unsigned arch_bits_of(unsigned type)
{
	switch (arch_types[type].bits) {
	case 8: return CPTX_B8;
	case 16: return CPTX_B16;
	case 32: return CPTX_B32;
	case 64: return CPTX_B64;
	default: return type;
	}
}

/* PTX manual, "Operand Size Exceeding Instruction-Type Size": bits take a wider register of any type, integers a register of
 * integers or bits (ptxas treats .f16x2 like them), floating point numbers a register of bits. */
static bool fits_wider(arch_type w, unsigned have)
{
	arch_type h = arch_types[have];

	return h.bits > w.bits && w.cls != 'X' &&
	       (w.cls == 'B' || h.cls == 'B' || (is_int(w) && (is_int(h) || have == CPTX_F16X2)));
}

bool arch_type_fits(unsigned want, unsigned have, unsigned how)
{
	arch_type w = arch_types[want], h = arch_types[have];

	if (want == have)
		return true;
	if (want == CPTX_PRED || have == CPTX_PRED)
		return false;
	if (w.bits != h.bits)
		return how & FITS_WIDER && fits_wider(w, have);
	if (how & FITS_TOLD && is_int(w) && have == CPTX_F16X2)
		return true;
	if (how & FITS_VECTOR && w.cls == 'F' && want != CPTX_BF16 && is_int(h)) /* for bf16 ptxas needs bits */
		return true;
	return w.cls == 'B' || h.cls == 'B' || (is_int(w) && is_int(h));
}

bool arch_is_held(enum arch_held held, unsigned have)
{
	switch (held) {
	case HELD_INT: return arch_is_integer(have);
	case HELD_HALF: return arch_types[have].cls == 'B' || have == CPTX_F16X2;
	case HELD_TYPE:
	case HELD_BITS: return arch_types[have].cls == 'B';
	case HELD_ANY:
	case HELD_NUMBER: break;
	}
	return true;
}

unsigned arch_mixed(const cptx_val *a, const cptx_val *b, bool first)
{
	bool fits;
	bool float_a = a->kind == CPTX_VAL_FLOAT, float_b = b->kind == CPTX_VAL_FLOAT;
	arch_type x = arch_types[a->kind == CPTX_VAL_INT ? CPTX_S64 : a->type],
			  y = arch_types[b->kind == CPTX_VAL_INT ? CPTX_S64 : b->type];

	if (float_a || float_b)
		fits = (float_a || x.cls == 'F' || x.cls == 'B') && (float_b || y.cls == 'F' || y.cls == 'B');
	else
		fits = x.cls == 'B' || y.cls == 'B' || (is_int(x) && is_int(y)) || a->type == b->type;
	return fits ? 0 : first ? VEC_FIRST_APART : VEC_MIXED;
}

/* Whether the digits of a selector are each below `most`, and those of a mask descending and all different. */
static bool digits_fit(const cptx_val *v, unsigned most, bool mask)
{
	unsigned n = v->space & SELECTED_DIGITS, before = most;

	for (unsigned i = n; i-- > 0;) {
		unsigned digit = (uint32_t)v->offset >> (3 * (mask ? n - 1 - i : i)) & 7;
		if (digit >= most || (mask && digit >= before))
			return false;
		before = digit;
	}
	return true;
}

bool arch_selects(enum arch_select select, const cptx_val *v)
{
	unsigned n = v->space & SELECTED_DIGITS;
	bool h = v->space & SELECTED_H;

	switch (select) {
	case SELECT_NONE: break;
	case SELECT_SCALAR: return n == 1 && digits_fit(v, h ? 2 : 4, false);
	case SELECT_2: return h && n == 2 && digits_fit(v, 4, false);
	case SELECT_4: return !h && n == 4 && digits_fit(v, 8, false);
	case SELECT_MASK_2: return h && digits_fit(v, 2, true);
	case SELECT_MASK_4: return !h && digits_fit(v, 4, true);
	}
	return false;
}
