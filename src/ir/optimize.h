/* SPDX-License-Identifier: MIT */
/* What the files of the optimizing pass share. */
#ifndef CPTX_IR_OPTIMIZE_H
#define CPTX_IR_OPTIMIZE_H

#include "ir/ir.h"
#include <cptx/optimize.h>

/* A register: who writes and reads it, and what it holds. */
typedef struct opt_reg {
	ir_item *def;     /* the instruction that writes it, the last one */
	int64_t number;   /* its value, if is_number; how far it is behind `base`, if there is one */
	uint32_t uses;    /* operands, guards and elements that read it */
	uint32_t same_as; /* the register to read instead, + 1; 0: none */
	uint32_t base;    /* the register that it is the sum of, and of a number, + 1; 0: none */
	uint8_t writes;   /* 0, 1, or more; with a guard, or as one of several: more.  See note_write */
	bool here;        /* its one write dominates the place that is looked at */
	bool is_number;
} opt_reg;

/* Something that holds where it dominates: a written register, and where its value is found. */
typedef struct opt_fact {
	ir_item *it;
	uint32_t reg, at;      /* at: number of the item */
	uint32_t bucket, prev; /* list of values with one hash, and the next in it, + 1; bucket IR_NONE: in no list */
} opt_fact;

/* A label, and the branches to it. */
typedef struct opt_label {
	uint32_t at, first, last; /* its place; the first branch in front of it, the last behind it; IR_NONE, 0: none */
} opt_label;

enum opt_purity { OPT_UNKNOWN, OPT_PURE, OPT_IMPURE };
typedef struct optimizer {
	cptx_kernel *k;
	cptx_optimize_opt opt;
	cptx_optimized done;
	opt_reg *reg;
	opt_label *label;
	uint32_t *until; /* by declaration: the place of the } that ends it, IR_NONE: that of the body */
	uint32_t *open;  /* nopen declarations inside { } that are open */
	uint32_t *loop;  /* loops that are open: numbers of their labels */
	opt_fact *fact;  /* by place; those of what does not dominate are taken away at each label */
	uint32_t *list;  /* nlist lists of facts, each the number of its latest, + 1 */
	uint32_t nloop, nfact, nlist, nopen;
	uint8_t pure[CPTX_OP_COUNT]; /* enum opt_purity, by instruction */
	bool labels;                 /* there are such in front of the place that is surveyed */
	bool irregular;              /* a branch enters a loop, or goes where a table says: only what is in one block is known */
} optimizer;

/* Fills in reg, label, until and irregular. */
bool opt_survey(optimizer *o);
/* Whether an instruction computes its results from its operands alone. */
bool opt_is_pure(optimizer *o, const ir_item *it);
/* Whether a special register has one value for a thread's whole life; clocks, and the places where a warp runs, have not. */
bool opt_is_fixed(unsigned sreg);
/* Whether operand i is only written. */
static inline bool opt_is_written(const ir_item *it, unsigned i)
{
	return (arch_operands[arch_forms[it->form].operand + i].flags & (OPERAND_DEST | OPERAND_READ)) == OPERAND_DEST;
}
/* Counts who reads what, and removes what nobody reads. */
bool opt_remove_dead(optimizer *o);

#endif
