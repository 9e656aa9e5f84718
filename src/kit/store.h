/* SPDX-License-Identifier: MIT */
/* Inside src/kit: how accumulators and epilogues round elements and store neighbours. */
#ifndef CPTX_KIT_STORE_H
#define CPTX_KIT_STORE_H

#include "base/base.h"

/*
 * Two .f32 rounded to nearest: to CPTX_BF16 or F16, in a .b32 register, or to E4M3 or E5M2, saturated, in a .b16 one; the
 * first is the lower half.  into NONE: a register of its own.
 */
cptx_val kit_round_pair(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val low, cptx_val high, cptx_val into);
/* The elements of a type of 8, 16 or 32 bits that fill 32 bits, the first lowest. */
cptx_val kit_round_word(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v);
/*
 * Stores n neighbours, of 1, 2, 4, 8 or 16 bytes together, by one instruction: as they are where the type has 32 or 64
 * bits, else rounded from .f32.
 */
void kit_store(cptx_kernel *k, cptx_site at, enum cptx_type type, const cptx_val *v, uint32_t n, cptx_val to, uint16_t space,
               cptx_val when);

#endif
