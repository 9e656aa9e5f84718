/* SPDX-License-Identifier: MIT */
/* Forms that nearly fit, and descriptions of why they do not: for messages only. */
#ifndef CPTX_ARCH_NEAR_H
#define CPTX_ARCH_NEAR_H

#include "arch/match.h"

enum arch_fault_kind {
	FAULT_MISSING,    /* a group that needs a value has none */
	FAULT_VALUE,      /* a group has a value that is not one of its own */
	FAULT_EXTRA,      /* a field of the call that the form does not have */
	FAULT_OPERAND,    /* an operand that does not fit, or is missing */
	FAULT_NO_OPERAND, /* a slot of the call that the form does not have */
	FAULT_RULE        /* the form's named rule is broken */
};
typedef struct arch_fault {
	uint8_t kind, index; /* kind: enum arch_fault_kind; index: of the group, field, operand or slot */
} arch_fault;

enum { ARCH_FAULTS = 6, ARCH_NEAR = 3 };
typedef struct arch_near {
	uint16_t cost, operands /* the part of the cost for operands and rules */, nfault;
	uint16_t doubt;   /* what speaks against the form although it is no fault: see arch_distance */
	uint16_t open;    /* a bit for each group whose value in m is assumed */
	uint16_t guessed; /* a bit for each group whose value differs from what operands tell, because that leaves fewer of them
	                     wrong */
	arch_fault fault[ARCH_FAULTS]; /* the first ARCH_FAULTS faults */
	arch_match m;
} arch_near;

/* Sets the value of a group of the form, and of the groups that repeat it; `mods` has a value for each group. */
void arch_set_value(const arch_form *f, uint16_t *mods, unsigned group, unsigned mod);

/* The values of a group that a message offers, without repetitions. */
enum { MOST_OFFERED = 8 };
typedef struct arch_offers {
	uint16_t mod[MOST_OFFERED];
	unsigned n; /* number of all values; the message lists the first MOST_OFFERED */
} arch_offers;
void arch_offer(arch_offers *v, unsigned mod);
static inline unsigned arch_offered(const arch_offers *v) { return MIN(v->n, (unsigned)MOST_OFFERED); }
/* The text that ends the list of a message's further values, which began with " (also ". */
static inline const char *arch_offers_end(const arch_offers *v)
{
	return v->n > MOST_OFFERED ? " ...)" : v->n > 1 ? ")" : "";
}

/*
 * The order of forms: faults first.  Between forms whose faults cost about as much, doubt decides: an eighth of a bit for
 * each form of a value that might have been written instead, and more for registers that fit though they are of another
 * type. So a form that takes few other spellings comes before one that takes nearly everything.
 */
enum { DOUBT_PER_COST = 64 };
static inline unsigned arch_distance(unsigned cost, unsigned doubt) { return DOUBT_PER_COST * cost + doubt; }
/* How many spellings the form has, as eighths of a bit, without the groups of the bits `open`, whose values nobody gave. */
unsigned arch_choices(const arch_form *f, unsigned open);
/* How far the form is from what was given. */
void arch_near_form(unsigned form, const arch_request *q, arch_near *n);
/* Makes room among the ARCH_NEAR nearest, *n of them of `each` bytes, whose distances are at `far`: where one at that
 * distance goes, behind those equally far; NULL: it is none of them. */
void *arch_near_insert(void *best, size_t each, unsigned *far, unsigned *n, unsigned distance);
/* Finds the nearest forms of an op, the nearest first; returns their number. */
unsigned arch_nearest(unsigned op, const arch_request *q, arch_near *best);

/* ---- in words: why.c ---- */
/* Whether CPTX_FORMS=all in the environment asks for the faults of all forms. */
bool arch_wants_all_forms(void);
/* Writes a form as insn.def has it, without availabilities. */
void arch_put_form(unsigned form, buf *b);
/* Writes fault number i, without what to do about it. */
void arch_put_fault(const arch_near *n, const arch_request *q, unsigned i, buf *b);
/* Writes a line for the nth of the nearest forms; the text above it explains the first one's faults, the lines of the others
 * name theirs. */
void arch_put_near(const arch_near *near, unsigned n, const arch_request *q, buf *b);

#endif
