/* SPDX-License-Identifier: MIT */
/* What has which name: the tables of index.c.  ir.h includes this header behind the types that it needs. */
#ifndef CPTX_IR_INDEX_H
#define CPTX_IR_INDEX_H

#include "ir/ir.h"

enum ir_named {
	NAMED_REG,
	NAMED_RANGE /* NAMED_REG and NAMED_RANGE are found as places in k->decl */,
	NAMED_VAR,
	NAMED_ENDED /* a variable whose scope has ended */,
	NAMED_LABEL,
	NAMED_GLOBAL,
	NAMED_BODY,
	NAMED_FILE,
	NAMED_STEM
};
/* Finds the first variable, function or file of the module that has this name and that `fits` accepts (NULL: any): returns
 * its place in m->sym, body or file; or IR_NONE. */
typedef bool (*ir_global_fn)(const cptx_module *m, uint32_t id, const void *user);
/* an ir_global_fn for NAMED_GLOBAL: the variable was not removed */
bool ir_variable_is_there(const cptx_module *m, uint32_t sym, const void *user);
uint32_t ir_global_named(const cptx_module *m, enum ir_named kind, const char *name, ir_global_fn fits, const void *user);
/* Finds the first thing of the body that has this name and that `fits` accepts: returns its place in k->decl, sym or label;
 * or IR_NONE. */
typedef bool (*ir_local_fn)(const cptx_kernel *k, uint32_t id, const void *user);
uint32_t ir_local_named(const cptx_kernel *k, enum ir_named kind, const char *name, ir_local_fn fits, const void *user);
/* Finds the first thing of the body whose name is the first n characters of `name`. */
uint32_t ir_local_beginning(const cptx_kernel *k, enum ir_named kind, const char *name, size_t n, ir_local_fn fits,
                            const void *user);
/* Finds the first declaration of a range, in the order of the text, whose prefix and digits make this name. */
typedef bool (*ir_range_fn)(const ir_decl *d, const char *digits);
uint32_t ir_range_named(const cptx_kernel *k, const char *name, ir_range_fn fits);
/* Finds the first function or kernel with a body for which ir_body_has_name holds, or NULL. */
const cptx_kernel *ir_any_body_with(cptx_module *m, const char *name);
/* Whether a name of the body, or of the module, can be these characters with digits behind them, or with fewer of their own
 * digits. */
bool ir_local_begins(const cptx_kernel *k, const char *prefix);
bool ir_global_begins(cptx_module *m, const char *prefix);
/* Whether a name can occur as a word of the module's TOP_TEXT entries. */
bool ir_text_may_name(cptx_module *m, const char *name);
void ir_text_changed(cptx_module *m);
/* Enters a name that is new or was changed; those for the module return false when memory is short. */
bool ir_index_global(cptx_module *m, enum ir_named kind, uint32_t id);
bool ir_index_renamed(cptx_module *m, enum ir_named kind, uint32_t id, const char *old);
void ir_index_local(cptx_kernel *k, enum ir_named kind, uint32_t id);
void ir_index_renamed_local(cptx_kernel *k, enum ir_named kind, uint32_t id, const char *old);
void ir_index_ended(cptx_kernel *k, uint32_t sym); /* enters that the scope of a variable has ended */
void ir_index_free(cptx_module *m);
void ir_index_clear(cptx_module *m); /* empties all, and keeps the memory */

#endif
