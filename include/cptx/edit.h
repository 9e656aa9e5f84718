/* SPDX-License-Identifier: MIT */
/*
 * Looking at a module, looking into and editing bodies; part of cptx.h, which includes it.
 *
 * A body, built or parsed, is a list of items: instructions, labels, declarations, scopes, comments.  They are looked at in
 * any state of the module and edited until it is frozen.  Edits are checked like building, the first error sticks; what only
 * the whole shows (something used that is no longer declared) is found by freezing.  With cptx_emit_opt.keep the text of a
 * parsed module changes only where it was edited.
 */
#ifndef CPTX_EDIT_H
#define CPTX_EDIT_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- Looking at a module ----------------------------------------------------------------------------------------- */

/** One parameter of a kernel. */
typedef struct cptx_param_info {
	const char *name;     /**< as printed */
	enum cptx_type type;  /**< CPTX_PTR for pointers, CPTX_B8 for byte parameters */
	uint32_t size, align; /**< bytes */
} cptx_param_info;

/** One kernel, for those who launch it.  Lives as long as the module. */
typedef struct cptx_kernel_info {
	const char *name;              /**< as printed */
	size_t nparams;                /**< how many */
	const cptx_param_info *params; /**< in their order */
	uint32_t dyn_smem;             /**< dynamic shared memory that it laid out, bytes */
	uint32_t static_smem;          /**< bytes */
	bool grid_of_clusters;         /**< .blocksareclusters: the grid of a launch counts clusters, not CTAs */
	union {
		cptx_kernel_opt bounds; /**< launch bounds and cluster */
		uint64_t room_[16];     /**< for options of later versions */
	};
} cptx_kernel_info;

CPTX_API bool cptx_module_kernel_(const cptx_module *m, const char *name, cptx_kernel_info *info, size_t size);
/** Finds a kernel of a frozen module by name (NULL: its only kernel); false if there is none. */
static inline bool cptx_module_kernel(const cptx_module *m, const char *name, cptx_kernel_info *info)
{
	return cptx_module_kernel_(m, name, info, sizeof *info);
}

/* ---- Items of a body -------------------------------------------------------------------------------------------------- */

typedef struct cptx_item cptx_item; /**< one item; lives as long as the module */

/** What an item of a body is. */
enum cptx_item_kind {
	CPTX_ITEM_INSN,    /**< an instruction */
	CPTX_ITEM_LABEL,   /**< operand 0: the label */
	CPTX_ITEM_SCOPE,   /**< { */
	CPTX_ITEM_END,     /**< } */
	CPTX_ITEM_REGS,    /**< .reg */
	CPTX_ITEM_VAR,     /**< a variable; operand 0 */
	CPTX_ITEM_PRAGMA,  /**< `text` */
	CPTX_ITEM_COMMENT, /**< `text` */
	CPTX_ITEM_TEXT,    /**< a directive without meaning to us, such as .loc; `text` */
	CPTX_ITEM_TARGETS, /**< .branchtargets or .calltargets; operand 0: its label, 1: the list */
	CPTX_ITEM_PROTO    /**< .callprototype; operand 0: its label */
};

/** What there is to know of an item. */
typedef struct cptx_item_info {
	enum cptx_item_kind kind; /**< what it is */
	enum cptx_op op;          /**< of an instruction */
	const char *form;         /**< the same, in the notation of src/arch/insn.def; else NULL */
	const char *text;         /**< of comments and the like; else NULL */
	size_t noperands;         /**< how many, the destination counted */
	cptx_val guard;           /**< the predicate, negated for @!p; NONE: unconditional */
	cptx_site at;             /**< its line in the text or in the user's source; file NULL: none */
} cptx_item_info;

/** Kernel or function number i of those with bodies; NULL behind the last. */
CPTX_API cptx_kernel *cptx_module_body_at(const cptx_module *m, size_t i);
/** The kernel or function with a body of that name (NULL: the only kernel); NULL if there is none. */
CPTX_API cptx_kernel *cptx_module_body(const cptx_module *m, const char *name);
/** Its name; lives as long as the module. */
CPTX_API const char *cptx_body_name(const cptx_kernel *k);
/** Whether it is a device function, not a kernel. */
CPTX_API bool cptx_body_is_func(const cptx_kernel *k);

/** The first item; NULL in an empty body. */
CPTX_API cptx_item *cptx_item_first(const cptx_kernel *k);
/** The last item; NULL in an empty body. */
CPTX_API cptx_item *cptx_item_last(const cptx_kernel *k);
/** The item behind; NULL at the end. */
CPTX_API cptx_item *cptx_item_next(const cptx_item *it);
/** The item in front; NULL at the start. */
CPTX_API cptx_item *cptx_item_prev(const cptx_item *it);
/** The next instruction behind `it` (NULL: from the start of the body on) of that op; NULL if there is none. */
CPTX_API cptx_item *cptx_item_find_op(const cptx_kernel *k, const cptx_item *it, enum cptx_op op);
/** The same by spelling: "bar.sync" finds bar.sync and bar.sync.aligned, "bar" all that begin so. */
CPTX_API cptx_item *cptx_item_find(const cptx_kernel *k, const cptx_item *it, const char *spelling);
/** The item that declares a register, a variable or a label of the body; NULL if there is none. */
CPTX_API cptx_item *cptx_item_declaring(const cptx_kernel *k, cptx_val v);

CPTX_API bool cptx_item_look_(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info, size_t size);
/** What an item is; false if that is no item of this body. */
static inline bool cptx_item_look(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info)
{
	return cptx_item_look_(k, it, info, sizeof *info);
}
/** Operand i in printed order, the destination first; NONE if it is left out or there is none. */
CPTX_API cptx_val cptx_item_operand(const cptx_item *it, size_t i);
/** The number of the operand that the builder call names so ("a", "b"; "into" the destination); SIZE_MAX if there is none.
 */
CPTX_API size_t cptx_item_slot(const cptx_item *it, const char *name);
/** The value of a modifier by the name of its group, as in the builder call ("type", "space"); 0 if it is not there. */
CPTX_API enum cptx_mod cptx_item_modifier(const cptx_item *it, const char *group);
/** The spelling, "ld.global.v4.f32", as snprintf does; "" for what is no instruction. */
CPTX_API size_t cptx_item_spelling(const cptx_item *it, char *text, size_t size);
/** Element i of a vector, list or register array; BAD if out of range. */
CPTX_API cptx_val cptx_body_element(const cptx_kernel *k, cptx_val v, size_t i);
/** What a name of the text means in the body: a register ("%r5"), variable, parameter, label, function; NONE if nothing. */
CPTX_API cptx_val cptx_body_value(const cptx_kernel *k, const char *name);
/** The name of a register, variable, label or function, as snprintf does; "" for others. */
CPTX_API size_t cptx_body_name_of(const cptx_kernel *k, cptx_val v, char *text, size_t size);

CPTX_API void cptx_edit_before_(cptx_kernel *k, cptx_site at, cptx_item *it);
CPTX_API void cptx_edit_after_(cptx_kernel *k, cptx_site at, cptx_item *it);
CPTX_API void cptx_edit_end_(cptx_kernel *k, cptx_site at);
/**
 * Opens a body for editing and says where builder calls go from now on: in front of an item.
 * New registers and labels get names that nothing in the text has.  cptx_param adds a parameter, loaded there.
 */
#define cptx_edit_before(k, it) cptx_edit_before_((k), CPTX_HERE, (it))
/** The same, behind an item. */
#define cptx_edit_after(k, it) cptx_edit_after_((k), CPTX_HERE, (it))
/** The same, behind the last item. */
#define cptx_edit_end(k) cptx_edit_end_((k), CPTX_HERE)
CPTX_API void cptx_edit_remove_(cptx_kernel *k, cptx_site at, cptx_item *it);
/** Removes an item; { goes with all up to its }, which cannot go alone. */
#define cptx_edit_remove(k, it) cptx_edit_remove_((k), CPTX_HERE, (it))
CPTX_API void cptx_edit_replace_(cptx_kernel *k, cptx_site at, cptx_item *it);
/** Removes an item; builder calls go in its place from now on. */
#define cptx_edit_replace(k, it) cptx_edit_replace_((k), CPTX_HERE, (it))
CPTX_API cptx_item *cptx_edit_operand_(cptx_kernel *k, cptx_site at, cptx_item *it, size_t i, cptx_val v);
/** Changes operand i, and matches again.  Gives the item; NULL on error. */
#define cptx_edit_operand(k, it, i, v) cptx_edit_operand_((k), CPTX_HERE, (it), (i), CPTX_V(v))
CPTX_API cptx_item *cptx_edit_modifier_(cptx_kernel *k, cptx_site at, cptx_item *it, const char *group, enum cptx_mod mod);
/** The same for the modifier of a group; 0 leaves it out. */
#define cptx_edit_modifier(k, it, group, mod) cptx_edit_modifier_((k), CPTX_HERE, (it), (group), (mod))
CPTX_API void cptx_edit_guard_(cptx_kernel *k, cptx_site at, cptx_item *it, cptx_val when);
/** Sets the guard of an instruction, a predicate or cptx_negated() of one; NONE: unconditional. */
#define cptx_edit_guard(k, it, when) cptx_edit_guard_((k), CPTX_HERE, (it), (when))

CPTX_API void cptx_edit_rename_(cptx_kernel *k, cptx_site at, cptx_val what, const char *name);
/**
 * Renames a parameter, variable, label or register of a body (a register with all that are declared by `name<n>` with it:
 * `name` is the new prefix).  All uses follow.
 */
#define cptx_edit_rename(k, what, name) cptx_edit_rename_((k), CPTX_HERE, (what), (name))
CPTX_API void cptx_edit_rename_global_(cptx_module *m, cptx_site at, const char *old, const char *name);
/** Renames a kernel, function or variable of the module.  Calls, declarations, initialisers and debug sections follow. */
#define cptx_edit_rename_global(m, old, name) cptx_edit_rename_global_((m), CPTX_HERE, (old), (name))
CPTX_API void cptx_edit_remove_global_(cptx_module *m, cptx_site at, const char *name);
/** Removes a kernel, function or variable of the module; what still uses it is found by freezing. */
#define cptx_edit_remove_global(m, name) cptx_edit_remove_global_((m), CPTX_HERE, (name))
CPTX_API void cptx_edit_bounds_(cptx_kernel *k, cptx_site at, const cptx_kernel_opt *opt);
/** Replaces all launch bounds of a kernel: cptx_edit_bounds(k, .max_block = { 256 }). */
#define cptx_edit_bounds(...) cptx_edit_bounds_x_(__VA_ARGS__, .z_ = 0)
#define cptx_edit_bounds_x_(k, ...) cptx_edit_bounds_((k), CPTX_HERE, CPTX_OPT(cptx_kernel_opt, __VA_ARGS__))
CPTX_API void cptx_edit_target_(cptx_module *m, cptx_site at, const char *target, unsigned version);
/**
 * Sets the .target that cptx_emit prints for where none is named, and the lowest .version (times ten) it prints; 0: that of
 * the text, or as low as serves.  What the target lacks is found by printing.
 */
#define cptx_edit_target(m, target, version) cptx_edit_target_((m), CPTX_HERE, (target), (version))

#ifdef __cplusplus
}
#endif

#endif
