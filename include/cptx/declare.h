/* SPDX-License-Identifier: MIT */
/*
 * cptx: declarations in full.  <cptx/cptx.h> includes this header.
 *
 * cptx.h has calls for the usual declarations; the calls here declare any variable, any parameter and any signature.
 * Parameters declared here are not loaded (cptx_ld with .space = CPTX_PARAM does that), and functions declared here are
 * called by cptx_call_func.
 */
#ifndef CPTX_DECLARE_H
#define CPTX_DECLARE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who sees a name outside of its module. */
enum cptx_linkage {
	CPTX_LINK_DEFAULT, /**< .visible for kernels, none for the rest */
	CPTX_LINK_NONE,    /**< this module alone */
	CPTX_LINK_EXTERN,  /**< .extern: defined elsewhere */
	CPTX_LINK_VISIBLE, /**< .visible: to all */
	CPTX_LINK_WEAK,    /**< .weak: gives way to another */
	CPTX_LINK_COMMON   /**< .common: one for all that declare it */
};

/** An element of an initialiser that is an address. */
typedef struct cptx_address {
	uint32_t index; /**< index of the element */
	cptx_val to;    /**< the address: a variable of the module (with an offset), or a function */
	uint64_t mask;  /**< 0, or the bits that a .u8 element takes: 0xFF00(name) */
	bool generic;   /**< print generic(name), the generic address */
} cptx_address;

enum { CPTX_DIMS = 8 /**< most dimensions of an array */ };
/** Properties of a variable beside its type and name. */
typedef struct cptx_variable_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	enum cptx_mod space; /**< state space; for a variable of the module the default is CPTX_GLOBAL, of a body CPTX_LOCAL */
	uint32_t dim[CPTX_DIMS];   /**< lengths of an array, up to the first 0; none: a single element */
	bool unsized;              /**< print [] in front of the lengths */
	uint32_t vec;              /**< 2, 4 or 8: each element is a vector */
	uint32_t align;            /**< alignment in bytes, a power of two; 0: that of the element */
	enum cptx_linkage linkage; /**< who sees a variable of the module */
	const char *attribute;     /**< text inside .attribute(), ".managed"; for a .samplerref its initial values */
	const void *init;          /**< ninit elements in host byte order; the rest is zero.  NULL: no initialiser, or addresses
	                                alone, as a call table has */
	uint32_t ninit;            /**< elements of init */
	const cptx_address *address; /**< elements that are addresses, sorted by index */
	uint32_t naddress;           /**< elements of address */
	bool pointer;                /**< for a parameter: print .ptr, with the space and alignment of what it points to */
	enum cptx_mod ptr_space;     /**< state space that the parameter points to; 0: not printed */
	uint32_t ptr_align;          /**< alignment of what the parameter points to; 0: not printed */
	char z_;
} cptx_variable_opt;

CPTX_API cptx_val cptx_variable_(cptx_module *m, cptx_site at, enum cptx_type type, const char *name,
                                 const cptx_variable_opt *opt);
/** A variable of the module: cptx_variable(m, CPTX_B8, "table", .dim = { 2, 16 }, .space = CPTX_CONST). */
#define cptx_variable(...) cptx_variable_x_(__VA_ARGS__, .z_ = 0)
#define cptx_variable_x_(m, type, name, ...)                                                                                \
	cptx_variable_((m), CPTX_HERE, (type), (name), CPTX_OPT(cptx_variable_opt, __VA_ARGS__))
CPTX_API cptx_val cptx_local_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name,
                              const cptx_variable_opt *opt);
/** Declares a variable of the body here: in .local, .shared, or, for a call sequence, .param. */
#define cptx_local(...) cptx_local_x_(__VA_ARGS__, .z_ = 0)
#define cptx_local_x_(k, type, name, ...)                                                                                   \
	cptx_local_((k), CPTX_HERE, (type), (name), CPTX_OPT(cptx_variable_opt, __VA_ARGS__))

CPTX_API cptx_val cptx_param_var_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name, bool result,
                                  const cptx_variable_opt *opt);
/** Declares the next parameter in memory; returns its address. */
#define cptx_param_var(...) cptx_param_var_x_(__VA_ARGS__, .z_ = 0)
#define cptx_param_var_x_(k, type, name, ...)                                                                               \
	cptx_param_var_((k), CPTX_HERE, (type), (name), false, CPTX_OPT(cptx_variable_opt, __VA_ARGS__))
/** Declares the next result of a function in memory; returns its address. */
#define cptx_result_var(...) cptx_result_var_x_(__VA_ARGS__, .z_ = 0)
#define cptx_result_var_x_(k, type, name, ...)                                                                              \
	cptx_param_var_((k), CPTX_HERE, (type), (name), true, CPTX_OPT(cptx_variable_opt, __VA_ARGS__))
CPTX_API cptx_val cptx_param_reg_(cptx_kernel *f, cptx_site at, enum cptx_type type, const char *name, bool result);
/** Declares the next parameter of a device function in a register. */
#define cptx_param_reg(f, type, name) cptx_param_reg_((f), CPTX_HERE, (type), (name), false)
/** Declares the next result of a device function in a register. */
#define cptx_result_reg(f, type, name) cptx_param_reg_((f), CPTX_HERE, (type), (name), true)
/** Parameter i, from 0 on: its address or register; BAD if there is none. */
CPTX_API cptx_val cptx_param_at(const cptx_kernel *k, uint32_t i);
/** Result i, from 0 on; BAD if there is none. */
CPTX_API cptx_val cptx_result_at(const cptx_kernel *k, uint32_t i);

CPTX_API cptx_kernel *cptx_func_declare_(cptx_module *m, cptx_site at, const char *name);
/** A device function whose body follows by cptx_func_define, or is elsewhere (.linkage extern): declare its parameters. */
#define cptx_func_declare(m, name) cptx_func_declare_((m), CPTX_HERE, (name))
CPTX_API cptx_kernel *cptx_func_define_(cptx_module *m, cptx_site at, const char *name);
/** Opens the body of a function that cptx_func_declare declared. */
#define cptx_func_define(m, name) cptx_func_define_((m), CPTX_HERE, (name))
CPTX_API void cptx_set_linkage_(cptx_kernel *k, cptx_site at, enum cptx_linkage linkage);
/** Sets who sees a kernel or function. */
#define cptx_set_linkage(k, linkage) cptx_set_linkage_((k), CPTX_HERE, (linkage))
CPTX_API void cptx_directive_(cptx_kernel *k, cptx_site at, const char *text);
/** A further directive in front of the body, such as ".noreturn". */
#define cptx_directive(k, text) cptx_directive_((k), CPTX_HERE, (text))
CPTX_API cptx_val cptx_find_(cptx_module *m, cptx_site at, const char *name);
/** The variable, device function or kernel of the module with that name; a kernel for its address, in cptx_mov. */
#define cptx_find(m, name) cptx_find_((m), CPTX_HERE, (name))

CPTX_API cptx_kernel *cptx_prototype_begin_(cptx_kernel *k, cptx_site at);
/** A prototype with any signature: declare its results and parameters (names do not matter), then place it. */
#define cptx_prototype_begin(k) cptx_prototype_begin_((k), CPTX_HERE)
CPTX_API cptx_val cptx_prototype_place_(cptx_kernel *k, cptx_site at, cptx_kernel *prototype);
/** Ends a prototype, and places it in the body; returns its value, for indirect calls. */
#define cptx_prototype_place(k, prototype) cptx_prototype_place_((k), CPTX_HERE, (prototype))

CPTX_API void cptx_set_target_(cptx_module *m, cptx_site at, const char *target, unsigned version, const char *options);
/**
 * Sets the target that cptx_emit prints where the call names none, the lowest .version (times ten; 0: any), and further
 * words of the .target line (NULL: none), as parsed text has them: cptx_set_target(m, "sm_90a", 80, "debug").
 */
#define cptx_set_target(m, target, version, options) cptx_set_target_((m), CPTX_HERE, (target), (version), (options))
CPTX_API void cptx_module_text_(cptx_module *m, cptx_site at, const char *text);
/** Adds a .file, .section, .alias or .pragma directive of the module, as text.  .alias NAME, FUNCTION; names two functions
 * of the module, the first of which cptx_func_declare declared and nothing defines. */
#define cptx_module_text(m, text) cptx_module_text_((m), CPTX_HERE, (text))
CPTX_API void cptx_text_(cptx_kernel *k, cptx_site at, const char *text);
/** Adds a .loc or .pragma directive of a body, as text. */
#define cptx_text(k, text) cptx_text_((k), CPTX_HERE, (text))

#ifdef __cplusplus
}
#endif

#endif
