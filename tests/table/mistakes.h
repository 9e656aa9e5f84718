/* SPDX-License-Identifier: MIT */
/*
 * Typical mistakes, made from the table: an instruction that is right, spoiled so that no form fits.  They are drawn in two
 * ways: one step away from the table (a modifier less, another value, another type of operand), and as people are wrong,
 * which is more than a step as often as not.
 */
#ifndef TABLE_MISTAKES_H
#define TABLE_MISTAKES_H

#include "cases.h"

enum mistake {
	MISTAKE_LEFT_OUT,
	MISTAKE_OTHER_VALUE,
	MISTAKE_OTHER_TYPE,
	MISTAKE_STEPS,                       /* number of those of one step */
	MISTAKE_NO_ROUNDING = MISTAKE_STEPS, /* cvt without .rn */
	MISTAKE_TYPES_TURNED,                /* the types of result and operand the wrong way round */
	MISTAKE_OPERANDS_TURNED,             /* [a] and the value of a store */
	MISTAKE_ALL_TYPES,                   /* add.f32 of .f64 registers */
	MISTAKE_OTHER_COUNT,                 /* of registers of a vector or fragment */
	MISTAKE_MODIFIER_OF_OTHER_FORM,      /* add.cc.f32 */
	MISTAKE_OPERAND_LESS,
	MISTAKE_OPERAND_MORE,
	MISTAKE_TWO_MISTAKES, /* of one step */
	MISTAKES
};
const char *mistake_name(enum mistake kind);

/* What the user meant: one of a form's spellings with plain operands.  False: try again. */
bool mistake_pick(dice *d, trial *t, spelling *s);
/* Spoils a call or a text; false: this one has nothing to be wrong so about, or is right still. */
bool mistake_in_call(dice *d, trial *t, enum mistake kind);
bool mistake_in_text(dice *d, trial *t, enum mistake kind);

#endif
