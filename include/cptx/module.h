/* SPDX-License-Identifier: MIT */
/*
 * cptx: modules, kernels, values and what is done with whole modules; all of <cptx/cptx.h> but the calls that append an
 * instruction.  A program that only runs ready kernels, or reads PTX, compiles faster with this header.  The rules that all
 * calls keep (errors, misuse, options, results, memory, threads) stand in <cptx/cptx.h>.
 */
#ifndef CPTX_MODULE_H
#define CPTX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cptx/isa.h> /* generated: enum cptx_type, cptx_mod, cptx_sreg, cptx_code, CPTX_OP_* */

#ifdef __cplusplus
extern "C" {
#endif

/** Marks a function that the library exports. */
#if defined(_WIN32) && defined(CPTX_BUILDS_DLL)
#define CPTX_API __declspec(dllexport)
#elif defined(_WIN32)
#define CPTX_API
#else
#define CPTX_API __attribute__((visibility("default")))
#endif
#if defined(__GNUC__)
#ifdef __MINGW32__ /* where printf may be that of Windows, which lacks %zu */
#define CPTX_PRINTF_(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#else
#define CPTX_PRINTF_(fmt, args) __attribute__((format(printf, fmt, args)))
#endif
#else
#define CPTX_PRINTF_(fmt, args)
#endif

/* The version of this header. */
#define CPTX_VERSION_MAJOR 0 /**< a new major version may break programs compiled against this one */
#define CPTX_VERSION_MINOR 1 /**< while MAJOR is 0, a new minor version may break them too */
#define CPTX_VERSION_PATCH 0 /**< a new patch version never breaks them */
/** The version as one number for comparisons: 10203 is 1.2.3. */
#define CPTX_VERSION_NUMBER (CPTX_VERSION_MAJOR * 10000 + CPTX_VERSION_MINOR * 100 + CPTX_VERSION_PATCH)
/** The version of this header, "major.minor.patch". */
#define CPTX_VERSION CPTX_TEXT_(CPTX_VERSION_MAJOR) "." CPTX_TEXT_(CPTX_VERSION_MINOR) "." CPTX_TEXT_(CPTX_VERSION_PATCH)
#define CPTX_TEXT_(x) CPTX_TEXT2_(x)
#define CPTX_TEXT2_(x) #x

/** The version of the library that runs, "major.minor.patch". */
CPTX_API const char *cptx_version(void);
/** The version of the library that runs, as one number, computed like CPTX_VERSION_NUMBER. */
CPTX_API unsigned cptx_version_number(void);

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

enum {
	CPTX_ERROR_TEXT = 3072, /**< bytes of an error's text */
	CPTX_ERROR_FILE = 256   /**< bytes of the name of an error's file */
};

/** One error.  `text` is complete: "file:line: kernel name: what was wrong; what would be right". */
typedef struct cptx_error {
	enum cptx_code code;        /**< CPTX_OK: no error */
	uint32_t line, column;      /**< place in the user's source, 0 if unknown; columns (from 1) of parsed text only */
	char file[CPTX_ERROR_FILE]; /**< file of the user's source, "" if none */
	char text[CPTX_ERROR_TEXT]; /**< the whole message, "" if there is no error */
} cptx_error;

/** The name of a code ("TARGET"); "?" for a number that is no code. */
CPTX_API const char *cptx_code_name(enum cptx_code code);
/** The meaning of a code in a few words. */
CPTX_API const char *cptx_code_meaning(enum cptx_code code);

/** Where in the user's source a call stands.  Made by CPTX_HERE; the macros below do it for you. */
typedef struct cptx_site {
	const char *file; /**< NULL: unknown */
	uint32_t line;    /**< lines count from 1 */
} cptx_site;

#if defined(__GNUC__)
#define CPTX_LINE_ ((uint32_t) __builtin_LINE()) /* for a call that spans lines gcc gives its first line, clang its last */
#else
#define CPTX_LINE_ ((uint32_t)__LINE__)
#endif
/** The site of this line. */
#ifdef __cplusplus
#define CPTX_HERE (cptx_site{ __FILE__, CPTX_LINE_ })
#else
#define CPTX_HERE ((cptx_site){ __FILE__, CPTX_LINE_ })
#endif

/* ---- Types and values -------------------------------------------------------------------------------------------- */

/** Size of a type in bits; 1 for a predicate, 0 for a number that is no type. */
CPTX_API unsigned cptx_type_bits(enum cptx_type type);
/** The PTX spelling of a type, "f32"; "?" for a number that is no type. */
CPTX_API const char *cptx_type_name(enum cptx_type type);
/** The type with this PTX spelling, CPTX_TYPE_NONE if there is none. */
CPTX_API enum cptx_type cptx_type_find(const char *name);
/** The PTX spelling of a modifier, "m64n256k16"; "?" for a number that is no modifier. */
CPTX_API const char *cptx_mod_name(enum cptx_mod mod);
/** The modifier with this PTX spelling, 0 if there is none; for programs that put a .shape together as text. */
CPTX_API enum cptx_mod cptx_mod_find(const char *name);

/** The kinds of cptx_val. */
enum cptx_val_kind {
	CPTX_VAL_NONE,    /**< no value; {0} */
	CPTX_VAL_REG,     /**< `count` consecutive registers from `id` on; `offset` bytes are added where it is an address */
	CPTX_VAL_VEC,     /**< registers gathered by cptx_pack */
	CPTX_VAL_INT,     /**< an integer constant, `i` */
	CPTX_VAL_FLOAT,   /**< a floating point constant, `f` */
	CPTX_VAL_SYM,     /**< a variable (shared, global, constant, local) or parameter, plus `offset` bytes */
	CPTX_VAL_SREG,    /**< special register number `id` */
	CPTX_VAL_LABEL,   /**< a label */
	CPTX_VAL_FUNC,    /**< a device function */
	CPTX_VAL_BAD,     /**< a failed call's result where a value was expected: every use is an error */
	CPTX_VAL_SINK,    /**< _, a destination that nobody reads */
	CPTX_VAL_LIST,    /**< the argument list of a call, (a, b) */
	CPTX_VAL_TARGETS, /**< a list of branch targets, for brx.idx */
	CPTX_VAL_PROTO    /**< a prototype of an indirect call */
};

#if defined(__cplusplus) && defined(__GNUC__) /* C11 has structs without a name; to C++ they are an extension */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
/** A value: an operand of an instruction.  Plain data, copied freely; it belongs to the kernel that made it. */
typedef struct cptx_val {
	uint8_t kind;    /**< enum cptx_val_kind */
	uint8_t type;    /**< enum cptx_type */
	uint8_t negated; /**< 1: a predicate read as its complement */
	uint8_t space;   /**< the state space of a variable (enum cptx_mod), else 0 */
	uint16_t count;  /**< number of registers: 1 except for arrays and vectors */
	uint16_t owner;  /**< number of the kernel in its module, from 1; 0: constants and module variables */
	union {
		struct {
			uint32_t id;    /**< number of the first register, variable, label ... */
			int32_t offset; /**< byte offset of an address */
		};
		int64_t i;
		double f;
	};
} cptx_val;
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

struct cptx_kernel;
/**
 * The first field of structs that calls of the kit make (<cptx/pipeline.h>, <cptx/mma.h> and their like): which struct it
 * is, and in which kernel it was made.  Each call looks at it, and refuses a struct that nobody made, whose making failed,
 * or that is of another kernel.  A copy of the struct is as good; this field is not to be written.
 */
typedef struct cptx_made {
	uint64_t mark;                    /**< which struct it is; 0: none was made */
	const struct cptx_kernel *kernel; /**< in which it was made */
} cptx_made;

static inline cptx_val cptx_val_id_(cptx_val v) { return v; }
static inline cptx_val cptx_val_int_(int64_t i)
{
	cptx_val v;
	v.kind = CPTX_VAL_INT, v.type = 0, v.negated = 0, v.space = 0, v.count = 1, v.owner = 0, v.i = i;
	return v;
}
static inline cptx_val cptx_val_uint_(uint64_t i) /* negated marks that the top bit is no sign */
{
	cptx_val v = cptx_val_int_((int64_t)i);
	v.negated = i > INT64_MAX;
	return v;
}
static inline cptx_val cptx_val_float_(double f)
{
	cptx_val v = cptx_val_int_(0);
	v.kind = CPTX_VAL_FLOAT, v.f = f;
	return v;
}

/** The .size of an options struct as this header describes it: cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt), ...
 * }. */
#define CPTX_OPT_SIZE(type) ((uint32_t)offsetof(type, z_))
#ifndef __cplusplus /* cplusplus.h has the C++ versions of these macros */
#define CPTX_NONE_ ((cptx_val){ 0 })
#define CPTX_OPT_(type, ...) (&(type){ __VA_ARGS__ })
/** Options for one call: the address of a struct whose .size is set, CPTX_OPT(cptx_load_opt, .verbose = true).  See
 * "Options" above. */
#define CPTX_OPT(type, ...) CPTX_OPT_(type, .size = CPTX_OPT_SIZE(type), __VA_ARGS__)
/** Any C number, or a cptx_val, as a cptx_val.  Operands of builder calls pass through it by themselves. */
#define CPTX_V(x)                                                                                                           \
	_Generic((x), cptx_val                                                                                                  \
	         : cptx_val_id_, float                                                                                          \
	         : cptx_val_float_, double                                                                                      \
	         : cptx_val_float_, unsigned                                                                                    \
	         : cptx_val_uint_, unsigned long                                                                                \
	         : cptx_val_uint_, unsigned long long                                                                           \
	         : cptx_val_uint_, default                                                                                      \
	         : cptx_val_int_)(x)
#endif

/** Element `i` of a register array; BAD if out of range. */
CPTX_API cptx_val cptx_elem(cptx_val array, uint32_t i);
/** Elements first .. first + n - 1 of a register array. */
CPTX_API cptx_val cptx_slice(cptx_val array, uint32_t first, uint32_t n);
/** The address `bytes` behind an address (a register or variable), within 2 GiB.  Costs no instruction. */
CPTX_API cptx_val cptx_offset(cptx_val address, int64_t bytes);
/** The same registers seen as another type of the same size, f32 bits as b32 for example. */
CPTX_API cptx_val cptx_as(cptx_val v, enum cptx_type type);
/** A predicate read as its complement, or an integer register as its negative, for operands that the manual writes {!}c and
 * {-}a; BAD for other values. */
CPTX_API cptx_val cptx_negated(cptx_val predicate);
/** Part of a register, for the video instructions: "b0" to "b3", "h0", "h1", "h10", "b7654", ...; BAD for other selectors.
 */
CPTX_API cptx_val cptx_select(cptx_val reg, const char *selector);
/** The sink _: a destination whose value nobody reads, where the table's forms write d~. */
static inline cptx_val cptx_sink(void)
{
	cptx_val v = cptx_val_int_(0);
	v.kind = CPTX_VAL_SINK;
	return v;
}

/* ---- Modules ----------------------------------------------------------------------------------------------------- */

/** Kernels, device functions and variables that are printed together. */
typedef struct cptx_module cptx_module;
typedef struct cptx_kernel cptx_kernel; /**< the body of a kernel or device function while it is built */

/** Memory hooks: realloc semantics (size 0 frees and returns NULL; NULL means failure).  All NULL: the C library's. */
typedef struct cptx_allocator {
	void *(*realloc_fn)(void *user, void *old, size_t size); /**< behaves like realloc */
	void *user;                                              /**< first argument of realloc_fn */
} cptx_allocator;

/** A new module; NULL if memory is short.  `allocator` may be NULL.  Every call accepts a NULL module and does nothing. */
CPTX_API cptx_module *cptx_module_new(const cptx_allocator *allocator);
/** Frees the module and all that was made in it.  NULL is allowed. */
CPTX_API void cptx_module_destroy(cptx_module *m);
/** The first error of a module, or NULL.  For a NULL module the result is an error, CPTX_E_ARG. */
CPTX_API const cptx_error *cptx_module_error(const cptx_module *m);
/**
 * Checks what only the whole module shows (open blocks, unplaced labels) and forbids further changes.
 * False: see cptx_module_error().  cptx_emit freezes by itself.
 */
CPTX_API bool cptx_module_freeze(cptx_module *m);
CPTX_API cptx_val cptx_fail_(cptx_kernel *k, cptx_site at, const char *format, ...) CPTX_PRINTF_(3, 4);
/** Sets the module's error (CPTX_E_ARG, printf-style) at the user's line, for functions built on top of the calls; returns
 * NONE. */
#define cptx_fail(k, ...) cptx_fail_((k), CPTX_HERE, __VA_ARGS__)
/** Number of instructions in all bodies. */
CPTX_API size_t cptx_module_size(const cptx_module *m);

/** Launch bounds and cluster shape; zero means "not given".  PTX manual, "Performance-Tuning Directives", "Cluster Dimension
 * Directives". */
typedef struct cptx_kernel_opt {
	uint32_t size;         /**< CPTX_OPT fills it in */
	uint32_t block[3];     /**< .reqntid: the launch must have exactly this block; missing y and z are 1 */
	uint32_t max_block[3]; /**< .maxntid: the launch may not exceed it; excludes block */
	uint32_t min_ctas;   /**< .minnctapersm: CTAs per multiprocessor the register count must allow; needs one of the above */
	uint32_t max_regs;   /**< .maxnreg: registers per thread */
	uint32_t cluster[3]; /**< .reqnctapercluster (sm_90 and later) */
	uint32_t max_cluster_rank; /**< .maxclusterrank (sm_90 and later); excludes cluster */
	char z_;
} cptx_kernel_opt;

/** Whether a kernel, function, variable or parameter can have this name.  If not, err says why; `what` names the kind of
 * thing: what = "kernel" gives "kernel name 'a b' is ...". */
CPTX_API bool cptx_name_check(const char *what, const char *name, cptx_error *err);
CPTX_API cptx_kernel *cptx_kernel_begin_(cptx_module *m, cptx_site at, const char *name, const cptx_kernel_opt *opt);
/**
 * Opens a kernel: cptx_kernel_begin(m, "name", .block = { 256 }, .min_ctas = 2).  The kernel ends at the next begin or at
 * freeze; a `ret` is added where the body can run off its end.
 */
#define cptx_kernel_begin(...) cptx_kernel_begin_x_(__VA_ARGS__, .z_ = 0)
#define cptx_kernel_begin_x_(m, name, ...) cptx_kernel_begin_((m), CPTX_HERE, (name), CPTX_OPT(cptx_kernel_opt, __VA_ARGS__))

CPTX_API cptx_kernel *cptx_func_begin_(cptx_module *m, cptx_site at, const char *name, enum cptx_type ret);
/** Opens a device function.  `ret` is the type of its result, CPTX_TYPE_NONE for none. */
#define cptx_func_begin(m, name, ret) cptx_func_begin_((m), CPTX_HERE, (name), (ret))
/** A device function as the operand of cptx_call. */
CPTX_API cptx_val cptx_func_val(const cptx_kernel *f);
CPTX_API void cptx_func_return_(cptx_kernel *f, cptx_site at, cptx_val v);
/** Sets the result of a device function and returns from it. */
#define cptx_func_return(f, v) cptx_func_return_((f), CPTX_HERE, CPTX_V(v))
CPTX_API cptx_val cptx_call_(cptx_kernel *k, cptx_site at, cptx_val func, const cptx_val *args, size_t n);
CPTX_API cptx_val cptx_prototype_(cptx_kernel *k, cptx_site at, enum cptx_type ret, const enum cptx_type *params, size_t n);
/** The prototype of an indirect call: the type of the result (CPTX_TYPE_NONE for none) and the types of n parameters. */
#define cptx_prototype(k, ret, n, params) cptx_prototype_((k), CPTX_HERE, (ret), (params), (n))
CPTX_API cptx_val cptx_targets_(cptx_kernel *k, cptx_site at, const cptx_val *labels, size_t n);
/** A list of labels for brx.idx, which jumps to the label with the given index; or a list of functions that an indirect call
 * may reach. */
#define cptx_targets(k, n, labels) cptx_targets_((k), CPTX_HERE, (labels), (n))
/** Calls a device function: cptx_call(k, f, n, (cptx_val[]){ a, b }); returns its result, or NONE. */
#define cptx_call(k, func, n, args) cptx_call_((k), CPTX_HERE, (func), (args), (n))

/* ---- Parameters, registers, variables ---------------------------------------------------------------------------- */

CPTX_API cptx_val cptx_param_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name);
/**
 * Declares the next parameter and loads it into a register.  CPTX_PTR is a pointer to global memory: 64 bits, converted so
 * that ld.global and st.global take it.  In a device function the parameter is a register.
 */
#define cptx_param(k, type, name) cptx_param_((k), CPTX_HERE, (type), (name))

CPTX_API cptx_val cptx_param_bytes_(cptx_kernel *k, cptx_site at, uint32_t size, uint32_t align, const char *name);
/**
 * Declares a parameter of `size` bytes with that alignment, such as a 128-byte, 64-aligned tensor map (what CUDA C calls a
 * __grid_constant__).  The result is its address in parameter space, for ld.param and cptx_mov + cptx_cvta.
 */
#define cptx_param_bytes(k, size, align, name) cptx_param_bytes_((k), CPTX_HERE, (size), (align), (name))

CPTX_API cptx_val cptx_regs_(cptx_kernel *k, cptx_site at, enum cptx_type type, uint32_t n);
/** A new register, unset.  Types of fewer than 16 bits are held in 16. */
#define cptx_reg(k, type) cptx_regs_((k), CPTX_HERE, (type), 1)
/** An array of n new registers (1 to 65535), one value: an accumulator, a fragment. */
#define cptx_regs(k, type, n) cptx_regs_((k), CPTX_HERE, (type), (n))

CPTX_API cptx_val cptx_var_(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val init);
/** A new register set to `init` by a mov: a variable of the kernel, to be changed by `.into =`. */
#define cptx_var(k, type, init) cptx_var_((k), CPTX_HERE, (type), CPTX_V(init))

CPTX_API cptx_val cptx_pack_(cptx_kernel *k, cptx_site at, const cptx_val *regs, size_t n);
/**
 * Single registers, not necessarily neighbours, as one vector operand: cptx_pack(k, 2, (cptx_val[]){ a, b }).  Elements may
 * be constants, and the sink where the vector is written.
 */
#define cptx_pack(k, n, regs) cptx_pack_((k), CPTX_HERE, (regs), (n))
CPTX_API cptx_val cptx_list_(cptx_kernel *k, cptx_site at, const cptx_val *vals, size_t n);
/** Registers, constants and parameters as the list (a, b) of a call, for operands that the table's forms write (a). */
#define cptx_list(k, n, vals) cptx_list_((k), CPTX_HERE, (vals), (n))

CPTX_API cptx_val cptx_sreg_(cptx_kernel *k, cptx_site at, enum cptx_sreg sreg);
/** A special register as an operand of cptx_mov; cptx_tid_x(k) and similar calls in insn.h read one into a new register. */
CPTX_API cptx_val cptx_sreg_val(enum cptx_sreg sreg);

CPTX_API cptx_val cptx_shared_(cptx_kernel *k, cptx_site at, enum cptx_type type, uint32_t n, uint32_t align,
                               const char *name);
/** Declares a static shared array of n elements, aligned to 16 bytes; returns its address. */
#define cptx_shared(k, type, n) cptx_shared_((k), CPTX_HERE, (type), (n), 16, NULL)
/** cptx_shared with a name and an alignment (a power of two). */
#define cptx_shared_named(k, type, n, align, name) cptx_shared_((k), CPTX_HERE, (type), (n), (align), (name))

CPTX_API cptx_val cptx_shared_dyn_(cptx_kernel *k, cptx_site at, uint32_t bytes, uint32_t align, const char *name);
/**
 * Declares a named part of the dynamic shared memory of the launch, behind the parts declared before, at that alignment (a
 * power of two).  A launch must provide cptx_kernel_dyn_smem() bytes; the launch calls of device.h do so by themselves.
 */
#define cptx_shared_dyn(k, bytes, align, name) cptx_shared_dyn_((k), CPTX_HERE, (bytes), (align), (name))
/** Bytes of dynamic shared memory that the kernel has laid out so far. */
CPTX_API uint32_t cptx_kernel_dyn_smem(const cptx_kernel *k);

/** Threads of a CTA along axis 0 to 2 (x, y, z), as .block of cptx_kernel_begin fixed them; 0: .block was not given, or k is
 * NULL. */
CPTX_API uint32_t cptx_kernel_block(const cptx_kernel *k, uint32_t axis);
/** Whether ptxas knows how many registers a thread begins with: .max_regs, or .block (.max_block) with .min_ctas. */
CPTX_API bool cptx_kernel_fixes_regs(const cptx_kernel *k);

/** A variable that all kernels of the module see. */
typedef struct cptx_global_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	enum cptx_mod space; /**< CPTX_GLOBAL (default), CPTX_CONST; CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF: one of these */
	const void *init;    /**< n elements in host byte order; NULL: zero */
	uint32_t align;      /**< alignment in bytes, a power of two; 0: 16 */
	bool export_;        /**< .visible: the host can find it by name */
	char z_;
} cptx_global_opt;
CPTX_API cptx_val cptx_global_(cptx_module *m, cptx_site at, enum cptx_type type, uint32_t n, const char *name,
                               const cptx_global_opt *opt);
/** Declares a module variable: cptx_global(m, CPTX_F32, 4, "table", .space = CPTX_CONST, .init = data). */
#define cptx_global(...) cptx_global_x_(__VA_ARGS__, .z_ = 0)
#define cptx_global_x_(m, type, n, name, ...)                                                                               \
	cptx_global_((m), CPTX_HERE, (type), (n), (name), CPTX_OPT(cptx_global_opt, __VA_ARGS__))

#include <cptx/declare.h> /* declarations in full: any variable, any signature */

/* ---- Control flow ------------------------------------------------------------------------------------------------ */

/** A new label, to be placed once; cptx_bra (insn.h) goes there. */
CPTX_API cptx_val cptx_label(cptx_kernel *k);
CPTX_API cptx_val cptx_label_named_(cptx_kernel *k, cptx_site at, const char *name);
/** cptx_label with a name, for directives that refer to it (.loc, .section). */
#define cptx_label_named(k, name) cptx_label_named_((k), CPTX_HERE, (name))
CPTX_API void cptx_place_(cptx_kernel *k, cptx_site at, cptx_val label);
/** Places a label here. */
#define cptx_place(k, label) cptx_place_((k), CPTX_HERE, (label))

/* Each begin call emits the head of a block and returns 1; each end call emits its tail and returns 0.  The macros run them
 * as one pass of a C loop. */
CPTX_API int cptx_if_begin_(cptx_kernel *k, cptx_site at, cptx_val predicate);
CPTX_API int cptx_else_begin_(cptx_kernel *k, cptx_site at);
CPTX_API int cptx_for_begin_(cptx_kernel *k, cptx_site at, cptx_val i, cptx_val end, cptx_val step);
CPTX_API int cptx_while_begin_(cptx_kernel *k, cptx_site at);
CPTX_API int cptx_while_test_(cptx_kernel *k, cptx_site at, cptx_val predicate);
CPTX_API int cptx_do_begin_(cptx_kernel *k, cptx_site at);
CPTX_API int cptx_scope_begin_(cptx_kernel *k, cptx_site at);
/* A block without instructions of its own, for headers that define blocks; name: a string literal, the block's name in
 * messages. */
CPTX_API int cptx_region_begin_(cptx_kernel *k, cptx_site at, const char *name);
CPTX_API int cptx_region_end_(cptx_kernel *k, cptx_site at);
CPTX_API int cptx_block_end_(cptx_kernel *k, cptx_site at);
CPTX_API void cptx_leave_(cptx_kernel *k, cptx_site at, int again, cptx_val when);

#define CPTX_NAME2_(a, b) a##b
#define CPTX_NAME_(a, b) CPTX_NAME2_(a, b)
#define CPTX_BLOCK_(k, begin)                                                                                               \
	for (int CPTX_NAME_(cptx_b_, __LINE__) = (begin); CPTX_NAME_(cptx_b_, __LINE__);                                        \
	     CPTX_NAME_(cptx_b_, __LINE__) = cptx_block_end_((k), CPTX_HERE))

/*
 * Blocks of the kernel.  The C code between the braces runs once, while the kernel is built; do not leave it by break,
 * continue, goto or return.
 *
 *   CPTX_IF (k, p) { ... }  CPTX_ELSE (k) { ... }
 *   CPTX_FOR (k, i, end, step) { ... }      while i < end (in i's type): body, i += step; i, a register, must be set before
 *   CPTX_WHILE (k, cptx_setp(k, ...)) { ... }   the condition is built anew, at the loop's head
 *   CPTX_DO (k) { ... cptx_continue_when(k, p); }   a loop as compilers print it, tested where its body says so; runs on
 *                                                   behind the brace
 *   CPTX_SCOPE (k) { ... }                  { ... } in the PTX: the names of variables declared in it end with it
 */
/** A block for the threads where a predicate holds. */
#define CPTX_IF(k, predicate) CPTX_BLOCK_(k, cptx_if_begin_((k), CPTX_HERE, (predicate)))
/** The block after a CPTX_IF for the threads where its predicate did not hold. */
#define CPTX_ELSE(k) CPTX_BLOCK_(k, cptx_else_begin_((k), CPTX_HERE))
/** A loop: while i < end, in the type of i, a register that was set before; i += step behind the body. */
#define CPTX_FOR(k, i, end, step) CPTX_BLOCK_(k, cptx_for_begin_((k), CPTX_HERE, (i), CPTX_V(end), CPTX_V(step)))
/** A loop with its test at the head; the call that makes the predicate is part of it. */
#define CPTX_WHILE(k, predicate)                                                                                            \
	CPTX_BLOCK_(k, (cptx_while_begin_((k), CPTX_HERE) && cptx_while_test_((k), CPTX_HERE, (predicate))))
/** A loop that ends where its body says so, by cptx_continue_when and similar calls. */
#define CPTX_DO(k) CPTX_BLOCK_(k, cptx_do_begin_((k), CPTX_HERE))
/** A scope { } of the PTX. */
#define CPTX_SCOPE(k) CPTX_BLOCK_(k, cptx_scope_begin_((k), CPTX_HERE))
/** Leaves the innermost loop in the threads where `when` holds. */
#define cptx_break_when(k, when) cptx_leave_((k), CPTX_HERE, 0, (when))
/** Starts the next iteration of the innermost loop in the threads where `when` holds. */
#define cptx_continue_when(k, when) cptx_leave_((k), CPTX_HERE, 1, (when))
/** Leaves the innermost loop in all threads. */
#define cptx_break(k) cptx_leave_((k), CPTX_HERE, 2, cptx_val_int_(0))
/** Starts the next iteration of the innermost loop in all threads. */
#define cptx_continue(k) cptx_leave_((k), CPTX_HERE, 3, cptx_val_int_(0))

/** The shape of a loop that waits: ptxas makes different code of each. */
enum cptx_wait_shape {
	CPTX_WAIT_LOOP,    /**< L: wait p; @!p bra L; */
	CPTX_WAIT_UNIFORM, /**< L: wait p; @!p bra.uni L; */
	CPTX_WAIT_DONE     /**< L: wait p; @p bra D; bra L; D:   as CUTLASS and libcu++ print it */
};
CPTX_API void cptx_wait_begin_(cptx_kernel *k, cptx_site at);
CPTX_API void cptx_wait_end_(cptx_kernel *k, cptx_site at, enum cptx_wait_shape shape, cptx_val predicate);
/**
 * Waits until the phase of an mbarrier completes: a loop of that shape around `test`, a call that tests the mbarrier:
 *    cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, parity, .space = CPTX_SHARED));
 */
#define cptx_mbarrier_wait(k, shape, test)                                                                                  \
	(cptx_wait_begin_((k), CPTX_HERE), cptx_wait_end_((k), CPTX_HERE, (shape), (test)))

/* ---- Text -------------------------------------------------------------------------------------------------------- */

CPTX_API cptx_val cptx_asm_(cptx_kernel *k, cptx_site at, const char *text, const cptx_val *holes, size_t n);
#ifndef __cplusplus
/**
 * One instruction as PTX text, through the same checks as a call.  Each {} is filled by the next value: a register, an array
 * (printed as a vector), a constant, a label, a variable; [{}+16] is an address.  Returns the first destination.
 *   cptx_asm(k, "ld.global.v4.f32 {}, [{}+16];", v, p);
 */
#define cptx_asm(k, ...) cptx_asm_n_(k, __VA_ARGS__, CPTX_NONE_)
#define cptx_asm_n_(k, text, ...)                                                                                           \
	cptx_asm_((k), CPTX_HERE, (text), (cptx_val[]){ __VA_ARGS__ },                                                          \
	          sizeof((cptx_val[]){ __VA_ARGS__ }) / sizeof(cptx_val) - 1)
#endif
/** An integer as a value, for the holes of cptx_asm and for optional operands (.src_size = cptx_imm(8)). */
static inline cptx_val cptx_imm(int64_t i) { return cptx_val_int_(i); }
/** A floating point number as a value. */
static inline cptx_val cptx_immf(double f) { return cptx_val_float_(f); }
/** An .f32 constant by its bits, such as an infinity or a NaN. */
CPTX_API cptx_val cptx_f32_bits(uint32_t bits);
/** An .f64 constant by its bits. */
CPTX_API cptx_val cptx_f64_bits(uint64_t bits);

CPTX_API void cptx_pragma_(cptx_kernel *k, cptx_site at, const char *text);
/** Emits .pragma "text"; in front of the next instruction. */
#define cptx_pragma(k, text) cptx_pragma_((k), CPTX_HERE, (text))
CPTX_API void cptx_comment_(cptx_kernel *k, cptx_site at, const char *format, ...) CPTX_PRINTF_(3, 4);
/** Emits a line comment in the PTX, printf-style. */
#define cptx_comment(k, ...) cptx_comment_((k), CPTX_HERE, __VA_ARGS__)

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/** Facts about a code generation target.  Sizes are in bytes. */
typedef struct cptx_target {
	const char *name;            /**< such as "sm_90a" */
	const char *about;           /**< one line for people */
	uint16_t number;             /**< the number in the name, such as 90 */
	char suffix;                 /**< ' ', 'a' (architecture-specific) or 'f' (family-specific) */
	uint8_t family;              /**< family of a target that has an 'f' variant: 10, 11 or 12; else 0 */
	uint16_t ptx;                /**< lowest .version that knows the target, times ten: 80 */
	uint16_t compute_capability; /**< major * 10 + minor, such as 90 */
	uint32_t static_smem;        /**< most static shared memory of a CTA */
	uint32_t smem_per_sm;        /**< shared memory of a multiprocessor */
	uint32_t smem_per_cta;       /**< most dynamic shared memory of a CTA, by opting in */
	uint32_t threads_per_sm;     /**< most threads resident on a multiprocessor */
	uint32_t ctas_per_sm;        /**< most CTAs resident on a multiprocessor */
	uint32_t cluster;            /**< most CTAs of a portable cluster; 0: no clusters */
	uint32_t smem_unit;          /**< shared memory is handed out in multiples of this */
	uint32_t smem_reserved;      /**< shared memory that the system keeps for itself in each CTA, beside the CTA's own */
} cptx_target;

/** Limits that are the same on all targets. */
enum {
	CPTX_REGS_PER_SM = 65536,    /**< registers of 32 bits in a multiprocessor */
	CPTX_REGS_PER_THREAD = 255,  /**< most registers of a thread */
	CPTX_REGS_UNIT = 256,        /**< registers are handed out to a warp in multiples of this */
	CPTX_SM_PARTS = 4,           /**< partitions of a multiprocessor, each with a quarter of its registers and warps */
	CPTX_THREADS_PER_CTA = 1024, /**< most threads of a CTA */
	CPTX_WARP = 32,              /**< threads of a warp */
	CPTX_BARRIERS = 16           /**< numbered barriers of a CTA */
};

/** The target with this name, NULL if there is none. */
CPTX_API const cptx_target *cptx_target_find(const char *name);
/** Target number i, from 0 on; NULL behind the last. */
CPTX_API const cptx_target *cptx_target_at(size_t i);
/** The most specific target whose code runs on devices of that compute capability (major * 10 + minor); NULL if none does.
 */
CPTX_API const cptx_target *cptx_target_for_device(unsigned compute_capability);

/* ---- Printing ---------------------------------------------------------------------------------------------------- */

/** How to print.  All zero: in the normal form, without source lines, at the lowest .version. */
typedef struct cptx_emit_opt {
	uint32_t size;        /**< CPTX_OPT fills it in */
	bool lines;           /**< print .file and .loc, so that debuggers and profilers show the user's C lines */
	uint16_t min_version; /**< print at least this .version (times ten); 0: the lowest that has all that the module uses */
	bool keep;            /**< for a parsed module: print what was not edited as it was read, byte for byte */
	char *buffer; /**< the text goes here, with a NUL, and must not be freed before `ptx`; NULL: to memory of its own */
	size_t buffer_size; /**< bytes of buffer; too few are an error, CPTX_E_LIMIT, which says how many the text takes */
	char z_;
} cptx_emit_opt;

/** Printed PTX text, and the source lines that its lines come from. */
typedef struct cptx_ptx cptx_ptx;

/**
 * Prints a module for a target ("sm_90a"; NULL: the target of parsed text or of cptx_set_target).  The module is frozen
 * first.  `opt` may be NULL.  The result depends on the module and the options alone: the same bytes each time, from any
 * thread.  NULL on error, with *err set (err may be NULL): where the target lacks something, the message names the user's
 * line, the targets that have it, and a replacement where there is one.
 */
CPTX_API cptx_ptx *cptx_emit(cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err);
/** Frees the text.  NULL is allowed. */
CPTX_API void cptx_ptx_destroy(cptx_ptx *ptx);
/** The text, NUL-terminated; lives as long as `ptx`. */
CPTX_API const char *cptx_ptx_text(const cptx_ptx *ptx);
/** Bytes of the text, without the NUL. */
CPTX_API size_t cptx_ptx_size(const cptx_ptx *ptx);
/** The .version printed, times ten. */
CPTX_API unsigned cptx_ptx_version(const cptx_ptx *ptx);
/** The target that it was printed for. */
CPTX_API const cptx_target *cptx_ptx_target(const cptx_ptx *ptx);
/** The user's source line that line `line` (from 1) of the text comes from; its file is NULL where there is none. */
CPTX_API cptx_site cptx_ptx_origin(const cptx_ptx *ptx, uint32_t line);

/** How to print C. */
typedef struct cptx_to_c_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	bool main;     /**< print a whole program, which prints the PTX when run */
	char z_;
} cptx_to_c_opt;
/**
 * Prints C that builds the module by the calls of this header: one function for each kernel and device function, and `void
 * build(cptx_module *m)`, which calls them.  Compiled and run, it gives instructions of which ptxas makes the same machine
 * code.  The module is frozen first.  The result is read and destroyed like the result of cptx_emit; NULL on error.
 */
CPTX_API cptx_ptx *cptx_to_c(cptx_module *m, const cptx_to_c_opt *opt, cptx_error *err);

/* ---- Parsing and checking ---------------------------------------------------------------------------------------- */

/** A callback for errors, called once for each. */
typedef void (*cptx_report_fn)(void *user, const cptx_error *error);

/** How to read PTX text. */
typedef struct cptx_parse_opt {
	uint32_t size;                   /**< CPTX_OPT fills it in */
	const char *name;                /**< name of the text in messages; NULL: "ptx" */
	bool keep;                       /**< keep the text, so that it can be printed with cptx_emit_opt.keep */
	uint32_t most_errors;            /**< report this many errors, and then read no further; 0: 1000 */
	cptx_report_fn report;           /**< gets every error, "name:line:column: error: what was wrong; what would be right" */
	void *user;                      /**< first argument of report */
	const cptx_allocator *allocator; /**< allocator of the module; NULL: the C library's */
	char z_;
} cptx_parse_opt;

/**
 * Reads PTX text of `size` bytes (it need not end in a NUL) into a module that equals a built one: it can be printed,
 * checked, edited, loaded.  NULL if memory is short, or if there is no text but a size.  After any error the module is of no
 * use but for cptx_module_error(), the first error, and cptx_check().  `opt` may be NULL.  The text is copied where needed.
 */
CPTX_API cptx_module *cptx_parse(const char *text, size_t size, const cptx_parse_opt *opt);

/**
 * Checks a module for a target, and reports every instruction, modifier and special register that the target or the .version
 * of the text lacks.  arch NULL: the target is the module's own .target.  Else as ptxas does with -arch: code for the
 * module's .target must run on arch, and keep within arch's limits.  Returns the number of errors.  The module is frozen
 * first.
 *
 * If cptx_parse() found errors in the text: reports the first of them, and what the instructions that could be read lack
 * (nothing if .version or .target itself is wrong).
 */
CPTX_API size_t cptx_check(cptx_module *m, const char *arch, cptx_report_fn report, void *user);

/** The .target of parsed text or of cptx_set_target, NULL if there is none. */
CPTX_API const cptx_target *cptx_module_target(const cptx_module *m);
/** The .version of parsed text or of cptx_set_target, times ten; 0 if there is none. */
CPTX_API unsigned cptx_module_version(const cptx_module *m);

CPTX_API cptx_val cptx_insn_(cptx_kernel *k, cptx_site at, enum cptx_op op, const cptx_val *vals, const uint16_t *mods);

#ifdef __cplusplus
}
#endif

#include <cptx/again.h> /* calls, modules and texts for compilers that run for long */
#include <cptx/edit.h>  /* looking into and editing bodies */
#include <cptx/table.h> /* the instruction table */

#ifdef __cplusplus
#include <cptx/cplusplus.h>
#else
/* ---- Short forms ------------------------------------------------------------------------------------------------- */

#define CPTX_COUNT_(...) (sizeof((cptx_val[]){ __VA_ARGS__ }) / sizeof(cptx_val))
/** cptx_vec(k, a, b) is cptx_pack of these values. */
#define cptx_vec(k, ...) cptx_pack_((k), CPTX_HERE, (cptx_val[]){ __VA_ARGS__ }, CPTX_COUNT_(__VA_ARGS__))
/** cptx_args(k, a, b) is cptx_list of these values. */
#define cptx_args(k, ...) cptx_list_((k), CPTX_HERE, (cptx_val[]){ __VA_ARGS__ }, CPTX_COUNT_(__VA_ARGS__))
#endif

#endif
