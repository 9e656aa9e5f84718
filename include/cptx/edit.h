/* SPDX-License-Identifier: MIT */
/*
 * Looking at a module, reading and editing bodies; part of cptx.h, which includes this header.
 *
 * A body, built or parsed, is a list of items: instructions, labels, declarations, scopes, comments.  Items can be read in
 * any state of the module, and edited until it is frozen.  Edits are checked like building, and the first error sticks; what
 * only the whole module shows (a use of something that is no longer declared) is found by freezing.  With cptx_emit_opt.keep
 * the text of a parsed module changes only where it was edited.
 */
#ifndef CPTX_EDIT_H
#define CPTX_EDIT_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- Looking at a module ----------------------------------------------------------------------------------------- */

/** One parameter of a kernel. */
typedef struct cptx_param_info {
	const char *name;     /**< the name as printed */
	enum cptx_type type;  /**< CPTX_PTR for pointers, CPTX_B8 for byte parameters */
	uint32_t size, align; /**< size and alignment in bytes */
} cptx_param_info;

/** One kernel, for programs that launch it.  It lives as long as the module. */
typedef struct cptx_kernel_info {
	const char *name;              /**< the name as printed */
	size_t nparams;                /**< number of parameters */
	const cptx_param_info *params; /**< the parameters in their order */
	uint32_t dyn_smem;             /**< dynamic shared memory that the kernel laid out, in bytes */
	uint32_t static_smem;          /**< static shared memory in bytes */
	bool grid_of_clusters;         /**< .blocksareclusters: the grid of a launch counts clusters, not CTAs */
	union {
		cptx_kernel_opt bounds;     /**< launch bounds and cluster shape */
		uint64_t reserved_opt_[16]; /**< for options of later versions */
	};
} cptx_kernel_info;

CPTX_API bool cptx_module_kernel_(const cptx_module *m, const char *name, cptx_kernel_info *info, size_t size);
/** Finds a kernel of a frozen module by name (NULL: its only kernel); false if there is none. */
static inline bool cptx_module_kernel(const cptx_module *m, const char *name, cptx_kernel_info *info)
{
	return cptx_module_kernel_(m, name, info, sizeof *info);
}

/* ---- Items of a body -------------------------------------------------------------------------------------------------- */

typedef struct cptx_item cptx_item; /**< one item of a body; lives as long as the module */

/** The kinds of items. */
enum cptx_item_kind {
	CPTX_ITEM_INSN,    /**< an instruction */
	CPTX_ITEM_LABEL,   /**< a label: operand 0 */
	CPTX_ITEM_SCOPE,   /**< the { of a scope */
	CPTX_ITEM_END,     /**< the } of a scope */
	CPTX_ITEM_REGS,    /**< a .reg declaration */
	CPTX_ITEM_VAR,     /**< a declaration of a variable: operand 0 */
	CPTX_ITEM_PRAGMA,  /**< a .pragma: `text` */
	CPTX_ITEM_COMMENT, /**< a comment: `text` */
	CPTX_ITEM_TEXT,    /**< a directive that cptx does not interpret, such as .loc: `text` */
	CPTX_ITEM_TARGETS, /**< .branchtargets or .calltargets; operand 0: its label, 1: the list */
	CPTX_ITEM_PROTO    /**< .callprototype; operand 0: its label */
};

/** The properties of an item. */
typedef struct cptx_item_info {
	enum cptx_item_kind kind; /**< kind of the item */
	enum cptx_op op;          /**< instruction's number in the table */
	const char *form;         /**< an instruction's form in the notation of src/arch/insn.def; else NULL */
	const char *text;         /**< text of a comment, pragma or directive; else NULL */
	size_t noperands;         /**< number of operands, with the destination */
	cptx_val guard;           /**< an instruction's guard predicate, negated for @!p; NONE: unconditional */
	cptx_site at;             /**< line in the parsed text or in the user's source; file NULL: none */
} cptx_item_info;

/** Kernel or function number i of those with bodies, from 0 on; NULL behind the last. */
CPTX_API cptx_kernel *cptx_module_body_at(const cptx_module *m, size_t i);
/** The kernel or function with a body that has this name (NULL: the only kernel); NULL if there is none. */
CPTX_API cptx_kernel *cptx_module_body(const cptx_module *m, const char *name);
/** The name of a kernel or function; lives as long as the module. */
CPTX_API const char *cptx_body_name(const cptx_kernel *k);
/** Whether a body is that of a device function, not of a kernel. */
CPTX_API bool cptx_body_is_func(const cptx_kernel *k);

/** The first item; NULL in an empty body. */
CPTX_API cptx_item *cptx_item_first(const cptx_kernel *k);
/** The last item; NULL in an empty body. */
CPTX_API cptx_item *cptx_item_last(const cptx_kernel *k);
/** The next item; NULL at the end. */
CPTX_API cptx_item *cptx_item_next(const cptx_item *it);
/** The previous item; NULL at the start. */
CPTX_API cptx_item *cptx_item_prev(const cptx_item *it);
/** The first instruction `op` behind `it` (NULL: from the start of the body on); NULL if there is none. */
CPTX_API cptx_item *cptx_item_find_op(const cptx_kernel *k, const cptx_item *it, enum cptx_op op);
/** The first instruction behind `it` whose spelling begins so: "bar.sync" finds bar.sync and bar.sync.aligned, "bar" all
 * that begin with bar. */
CPTX_API cptx_item *cptx_item_find(const cptx_kernel *k, const cptx_item *it, const char *spelling);
/** The item that declares a register, a variable or a label of the body; NULL if there is none. */
CPTX_API cptx_item *cptx_item_declaring(const cptx_kernel *k, cptx_val v);

CPTX_API bool cptx_item_look_(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info, size_t size);
/** Reads the properties of an item; false if `it` is no item of this body. */
static inline bool cptx_item_look(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info)
{
	return cptx_item_look_(k, it, info, sizeof *info);
}
/** Operand i in printed order, the destination first; NONE if it is left out or there are fewer. */
CPTX_API cptx_val cptx_item_operand(const cptx_item *it, size_t i);
/** The number of the operand with this name in the builder call ("a", "b"; "into": the destination); SIZE_MAX if there is
 * none. */
CPTX_API size_t cptx_item_slot(const cptx_item *it, const char *name);
/** The modifier of a group, named as in the builder call ("type", "space"); 0 if the instruction has none. */
CPTX_API enum cptx_mod cptx_item_modifier(const cptx_item *it, const char *group);
/** Writes the spelling of an instruction, "ld.global.v4.f32", as snprintf does; "" for other items. */
CPTX_API size_t cptx_item_spelling(const cptx_item *it, char *text, size_t size);
/** Element i of a vector, list or register array; BAD if out of range. */
CPTX_API cptx_val cptx_body_element(const cptx_kernel *k, cptx_val v, size_t i);
/** The value that a name stands for in the body: a register ("%r5"), variable, parameter, label or function; NONE if it is
 * unknown. */
CPTX_API cptx_val cptx_body_value(const cptx_kernel *k, const char *name);
/** Writes the name of a register, variable, label or function, as snprintf does; "" for other values. */
CPTX_API size_t cptx_body_name_of(const cptx_kernel *k, cptx_val v, char *text, size_t size);

CPTX_API void cptx_edit_before_(cptx_kernel *k, cptx_site at, cptx_item *it);
CPTX_API void cptx_edit_after_(cptx_kernel *k, cptx_site at, cptx_item *it);
CPTX_API void cptx_edit_end_(cptx_kernel *k, cptx_site at);
/**
 * Opens a body for editing: builder calls insert in front of an item from now on.  New registers and labels get names that
 * the text does not use.  cptx_param adds a parameter, and loads it there.
 */
#define cptx_edit_before(k, it) cptx_edit_before_((k), CPTX_HERE, (it))
/** Opens a body for editing: builder calls insert behind an item from now on. */
#define cptx_edit_after(k, it) cptx_edit_after_((k), CPTX_HERE, (it))
/** Opens a body for editing: builder calls append at its end from now on. */
#define cptx_edit_end(k) cptx_edit_end_((k), CPTX_HERE)
CPTX_API void cptx_edit_remove_(cptx_kernel *k, cptx_site at, cptx_item *it);
/** Removes an item; removing a { removes all up to its }, which cannot be removed alone. */
#define cptx_edit_remove(k, it) cptx_edit_remove_((k), CPTX_HERE, (it))
CPTX_API void cptx_edit_replace_(cptx_kernel *k, cptx_site at, cptx_item *it);
/** Removes an item; builder calls insert in its place from now on. */
#define cptx_edit_replace(k, it) cptx_edit_replace_((k), CPTX_HERE, (it))
CPTX_API cptx_item *cptx_edit_operand_(cptx_kernel *k, cptx_site at, cptx_item *it, size_t i, cptx_val v);
/** Changes operand i, and matches the instruction again.  Returns the item; NULL on error. */
#define cptx_edit_operand(k, it, i, v) cptx_edit_operand_((k), CPTX_HERE, (it), (i), CPTX_V(v))
CPTX_API cptx_item *cptx_edit_modifier_(cptx_kernel *k, cptx_site at, cptx_item *it, const char *group, enum cptx_mod mod);
/** Changes the modifier of a group (0: removes it), and matches the instruction again.  Returns the item; NULL on error. */
#define cptx_edit_modifier(k, it, group, mod) cptx_edit_modifier_((k), CPTX_HERE, (it), (group), (mod))
CPTX_API void cptx_edit_guard_(cptx_kernel *k, cptx_site at, cptx_item *it, cptx_val when);
/** Sets the guard of an instruction: a predicate, or cptx_negated() of one; NONE: unconditional. */
#define cptx_edit_guard(k, it, when) cptx_edit_guard_((k), CPTX_HERE, (it), (when))

CPTX_API void cptx_edit_rename_(cptx_kernel *k, cptx_site at, cptx_val what, const char *name);
/**
 * Renames a parameter, variable, label or register of a body, with all its uses.  A register declared by `name<n>` is
 * renamed with all registers of that declaration: `name` is the new prefix.
 */
#define cptx_edit_rename(k, what, name) cptx_edit_rename_((k), CPTX_HERE, (what), (name))
CPTX_API void cptx_edit_rename_global_(cptx_module *m, cptx_site at, const char *old, const char *name);
/** Renames a kernel, function or variable of the module, with its calls, declarations, initialisers and debug sections. */
#define cptx_edit_rename_global(m, old, name) cptx_edit_rename_global_((m), CPTX_HERE, (old), (name))
CPTX_API void cptx_edit_remove_global_(cptx_module *m, cptx_site at, const char *name);
/** Removes a kernel, function or variable of the module; freezing finds what still uses it. */
#define cptx_edit_remove_global(m, name) cptx_edit_remove_global_((m), CPTX_HERE, (name))
CPTX_API void cptx_edit_bounds_(cptx_kernel *k, cptx_site at, const cptx_kernel_opt *opt);
/** Replaces all launch bounds of a kernel: cptx_edit_bounds(k, .max_block = { 256 }). */
#define cptx_edit_bounds(...) cptx_edit_bounds_x_(__VA_ARGS__, .z_ = 0)
#define cptx_edit_bounds_x_(k, ...) cptx_edit_bounds_((k), CPTX_HERE, CPTX_OPT(cptx_kernel_opt, __VA_ARGS__))
CPTX_API void cptx_edit_target_(cptx_module *m, cptx_site at, const char *target, unsigned version);
/**
 * Sets the .target that cptx_emit prints where the call names none, and the lowest .version (times ten) that it prints; 0:
 * that of the text, or the lowest that has all.  Printing finds what the target lacks.
 */
#define cptx_edit_target(m, target, version) cptx_edit_target_((m), CPTX_HERE, (target), (version))

#ifdef __cplusplus
}
#endif

#endif
