/* SPDX-License-Identifier: MIT */
/*
 * cptx: the instruction table: which instructions there are, their forms, and the operands and modifiers of their calls; for
 * programs that show it, and for other languages.  <cptx/cptx.h> includes this header.
 */
#ifndef CPTX_TABLE_H
#define CPTX_TABLE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One instruction of the table. */
typedef struct cptx_op_info {
	const char *name;    /**< name of the builder call, "cp_async" */
	const char *chapter; /**< chapter of the PTX manual */
	const char *about;   /**< what the instruction does */
	size_t nforms;       /**< number of forms */
} cptx_op_info;
/** One form of an instruction. */
typedef struct cptx_form_info {
	const char *text;         /**< the form in the notation of src/arch/insn.def */
	const char *availability; /**< "PTX 7.0, sm_80" */
	const char *constraint;   /**< a rule that the notation cannot say, NULL if none */
} cptx_form_info;
CPTX_API bool cptx_op_at_(size_t i, cptx_op_info *info, size_t size);
/** Instruction number i, from 0 on (the same number as its CPTX_OP_ enumerator); false behind the last. */
static inline bool cptx_op_at(size_t i, cptx_op_info *info) { return cptx_op_at_(i, info, sizeof *info); }
CPTX_API bool cptx_form_at_(size_t op, size_t form, cptx_form_info *info, size_t size);
/** Form number `form`, from 0 on, of an instruction; false behind the last. */
static inline bool cptx_form_at(size_t op, size_t form, cptx_form_info *info)
{
	return cptx_form_at_(op, form, info, sizeof *info);
}
/** An operand or a modifier of a builder call, by its name in the call. */
typedef struct cptx_field_info {
	const char *name;   /**< name of the field, "a", "rnd" */
	bool is_operand;    /**< an operand; else a modifier */
	bool is_positional; /**< an operand that every form has: an argument of the call, in this order */
	uint32_t place;     /**< its index in the operands (behind into, when and unless) or modifiers of cptx_insn_ */
} cptx_field_info;
CPTX_API bool cptx_field_at_(size_t op, size_t i, cptx_field_info *info, size_t size);
/** Field number i, from 0 on, of the builder call of instruction `op`: positional operands, other operands, modifiers; false
 * behind the last.  Each call has .into, .when and .unless, too, which are not among them. */
static inline bool cptx_field_at(size_t op, size_t i, cptx_field_info *info)
{
	return cptx_field_at_(op, i, info, sizeof *info);
}
/** A type or a value of a modifier. */
typedef struct cptx_mod_info {
	const char *name;       /**< PTX spelling, "m64n256k16" */
	const char *enumerator; /**< name of the enumerator behind CPTX_, "M64N256K16" */
	const char *about;      /**< what it means, in a few words */
} cptx_mod_info;
CPTX_API bool cptx_mod_at_(size_t mod, cptx_mod_info *info, size_t size);
/** The type or modifier with that number, an enum cptx_type or cptx_mod; false behind the last.  Number 0 is none of them.
 */
static inline bool cptx_mod_at(size_t mod, cptx_mod_info *info) { return cptx_mod_at_(mod, info, sizeof *info); }
/** The name of the call that reads special register number i (enum cptx_sreg), "tid_x"; NULL behind the last. */
CPTX_API const char *cptx_sreg_call(size_t i);
/** Whether form `form` of instruction `op` exists on a target in the spelling that needs least. */
CPTX_API bool cptx_form_on_target(size_t op, size_t form, const cptx_target *target);
/** The numbers of the nth form, from 0 on, that has a whole spelling without operands ("ld.global.u32"); false: there are no
 * more. */
CPTX_API bool cptx_form_spelled(const char *spelling, size_t nth, size_t *op, size_t *form);
/**
 * An example of a whole spelling in its nth form: a line of PTX whose operands are named like the parameters of the builder
 * call, and the C lines that build it.  As snprintf: `text` (NULL if size is 0) gets at most `size` bytes with the NUL, the
 * result is the length of the whole; 0 if there is no such form, or no memory.
 */
CPTX_API size_t cptx_spelling_example(const char *spelling, size_t nth, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
