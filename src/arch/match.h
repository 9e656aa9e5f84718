/* SPDX-License-Identifier: MIT */
/* What fits.c, match.c and memo.c share. */
#ifndef CPTX_ARCH_MATCH_H
#define CPTX_ARCH_MATCH_H

#include "arch/arch.h"

/* What a form is held against. */
typedef struct arch_request {
	const cptx_val *vals; /* into, when, unless, slots */
	const cptx_val *vec;  /* elements of vectors and lists */
	const uint16_t *mods; /* by field of the op, or by group of the form if `by_group` */
	bool by_group;
	bool any;      /* whatever the values of constants and selectors: could others of the same kinds fit? */
	bool declared; /* as text declared them */
} arch_request;

enum { FIRST_SLOT = 2 }; /* vals[FIRST_SLOT + slot], slot from 1; slot 0 is vals[0] */

/* One form with the values and fields of a call.  any: could it fit with other constants and selectors of the same kinds? */
bool arch_match_call(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool any,
                     arch_match *out);
enum arch_fits {
	FITS_WIDER = 1,  /* an operand that may be wider than its type */
	FITS_TOLD = 2,   /* the type was not found by its operands */
	FITS_VECTOR = 4, /* floating point numbers of a vector, which stand in integers too, but for bf16 */
};
/*
 * One group of modifiers: its value into m->mod[i]; and one operand, when all groups have their values, into m->operand[i].
 * kept: the types that groups took from operands.  With `why`: what does not fit about the operand.
 */
bool arch_match_modifier(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, uint8_t *kept);
bool arch_match_operand(const arch_form *f, const arch_request *q, unsigned i, arch_match *m, const uint8_t *kept, buf *why);
/*
 * May a register of type `have` stand where `want` is read or written?  (PTX manual, "Operand Size Exceeding
 * Instruction-Type Size")
 */
bool arch_type_fits(unsigned want, unsigned have, unsigned how); /* how: of enum arch_fits */
/* Does ptxas take a register there that text declares as `have`? */
bool arch_is_held(enum arch_held held, unsigned have);
bool arch_is_integer(unsigned type); /* or bits */
bool arch_selects(enum arch_select select, const cptx_val *v);
/* Does more than its kind and type decide where the value fits? */
bool arch_varies(const cptx_val *v);

#endif
