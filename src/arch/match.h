/* SPDX-License-Identifier: MIT */
/* Declarations that fits.c, match.c and memo.c share. */
#ifndef CPTX_ARCH_MATCH_H
#define CPTX_ARCH_MATCH_H

#include "arch/arch.h"

/* A call or a line of text that forms are matched against. */
typedef struct arch_request {
	const cptx_val *vals; /* into, when, unless, then the slots */
	const cptx_val *vec;  /* elements of vectors and lists */
	const uint16_t *mods; /* indexed by field of the op, or by group of the form if `by_group` */
	bool by_group;
	bool any;      /* ignore the values of constants and selectors: could others of the same kinds fit? */
	bool declared; /* registers have the types that text declares */
} arch_request;

enum { FIRST_SLOT = 2 }; /* slot n, from 1, is vals[FIRST_SLOT + n]; slot 0 is vals[0] */

/* Matches one form with the values and fields of a call.  any: whether it could fit with other constants and selectors of
 * the same kinds. */
bool arch_match_call(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool any,
                     arch_match *out);
enum arch_fits {
	FITS_WIDER = 1,  /* the operand may be wider than its type */
	FITS_TOLD = 2,   /* the type is given, not inferred from the operands */
	FITS_VECTOR = 4, /* a vector of floating point numbers, which integer registers can hold, except for bf16 */
};
/*
 * arch_match_modifier chooses the value of one group of modifiers, m->mod[i]; arch_match_operand, when all groups have
 * values, matches operand m->operand[i].  kept: the types that groups took from operands.  `why` gets what does not fit
 * about the operand.
 */
bool arch_match_modifier(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, uint8_t *kept);
bool arch_match_operand(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, const uint8_t *kept, buf *why);
/*
 * Whether a register of type `have` may stand where `want` is read or written.  (PTX manual, "Operand Size Exceeding
 * Instruction-Type Size")
 */
bool arch_type_fits(unsigned want, unsigned have, unsigned how); /* how: bits of enum arch_fits */
/* Whether ptxas accepts a register that text declares as `have`. */
bool arch_is_held(enum arch_held held, unsigned have);
bool arch_selects(enum arch_select select, const cptx_val *v);
/* Whether the choice of a form depends on more of the value than its kind and type. */
bool arch_varies(const cptx_val *v);

#endif
