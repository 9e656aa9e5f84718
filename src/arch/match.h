/* What fits.c, match.c and memo.c share. */
#ifndef CPTX_ARCH_MATCH_H
#define CPTX_ARCH_MATCH_H

#include "arch/arch.h"

enum { FIRST_SLOT = 2 }; /* vals[FIRST_SLOT + slot], slot from 1; slot 0 is vals[0] */

/* One form with the values and fields of a call.  any: could it fit with other constants and selectors of the same kinds? */
bool arch_match_call(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool any,
                     arch_match *out);
/*
 * May a register of type `have` stand where `want` is read or written?  (PTX manual, "Operand Size Exceeding
 * Instruction-Type Size")
 */
bool arch_type_fits(unsigned want, unsigned have, bool wider);
/* Does ptxas take a register there that text declares as `have`? */
bool arch_is_held(enum arch_held held, unsigned have);
bool arch_is_integer(unsigned type); /* or bits */
bool arch_selects(enum arch_select select, const cptx_val *v);
/* Does more than its kind and type decide where the value fits? */
bool arch_varies(const cptx_val *v);

#endif
