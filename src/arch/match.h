/* What match.c and memo.c share. */
#ifndef CPTX_ARCH_MATCH_H
#define CPTX_ARCH_MATCH_H

#include "arch/arch.h"

enum { FIRST_SLOT = 2 }; /* vals[FIRST_SLOT + slot], slot from 1; slot 0 is vals[0] */

/* One form with the values and fields of a call.  any: could it fit with other constants and selectors of the same kinds? */
bool arch_match_call(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool any,
                     arch_match *out);
/* Does more than its kind and type decide where the value fits? */
bool arch_varies(const cptx_val *v);

#endif
