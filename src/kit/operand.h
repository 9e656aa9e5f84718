/* SPDX-License-Identifier: MIT */
/* Inside src/kit: operands that threads copy (operand_copy.c), and what these share with those of TMA (operand.c). */
#ifndef CPTX_KIT_OPERAND_H
#define CPTX_KIT_OPERAND_H

#include <cptx/operand.h>

#include "kit/made.h"
#include "kit/value.h"

static inline cptx_val as_s32(cptx_val v) { return v.kind == CPTX_VAL_REG ? cptx_as(v, CPTX_S32) : v; }
static inline cptx_val as_u32(cptx_val v) { return v.kind == CPTX_VAL_REG ? cptx_as(v, CPTX_U32) : v; }
static inline bool is_constant(cptx_val v) { return v.kind == CPTX_VAL_INT; }

/* Checks the description; false: an error was made. */
bool operand_check_threads(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o);
void operand_begin_threads(cptx_kernel *k, cptx_site at, cptx_operand *op);
void operand_rebase_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val address);
cptx_operand_src operand_source_of_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val row, cptx_val col);
void operand_advance_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src, uint32_t rows,
                             uint32_t cols);
void operand_copy_by_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage,
                             const cptx_operand_src *src, const cptx_operand_load_opt *o);

#endif
