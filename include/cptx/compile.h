/* SPDX-License-Identifier: MIT */
/*
 * Compiling PTX to machine code (a cubin), and linking, without a device.
 *
 * Compilers are found at run time; none is needed to build, and no GPU to run them:
 * - ptxas: the program, as a process of its own. CPTX_PTXAS, else bin/ of CUDA_HOME and CUDA_PATH, PATH, /usr/local/cuda.
 * - nvJitLink: libnvJitLink, in this process. CPTX_NVJITLINK, else the dynamic loader, CUDA_HOME, CUDA_PATH,
 *   /usr/local/cuda.
 * - nvPTXCompiler: CUDA has it as a static library only. It is used where the host program is linked with it and exports
 *   its symbols, or where somebody made a shared library of it: CPTX_NVPTXCOMPILER, else libnvptxcompiler.so.
 * - driver: the compiler in the CUDA driver. It needs a device, so it compiles in cptx_device_load() only.
 *
 * Errors: COMPILE, the compiler refuses the program, with its log and, for each line of PTX that it names, that line and the
 * user's line behind it; NO_COMPILER, it is not there, or too old for the PTX version or the target; TARGET, neither it nor
 * this library knows the target; ARG; IO, a process or a file; MEMORY.  As everywhere, an error that `err` holds already
 * stays, and the call does nothing.
 *
 * Threads: all calls may be made by many threads at once.
 */
#ifndef CPTX_COMPILE_H
#define CPTX_COMPILE_H

#include <cptx/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who makes machine code of PTX. */
enum cptx_compiler {
	CPTX_COMPILER_AUTO,   /**< on a device the driver, and where it cannot the first of: ptxas, nvJitLink, nvPTXCompiler */
	CPTX_COMPILER_DRIVER, /**< the CUDA driver, on a device */
	CPTX_COMPILER_PTXAS,  /**< ptxas, a process */
	CPTX_COMPILER_NVJITLINK,    /**< the library nvJitLink */
	CPTX_COMPILER_NVPTXCOMPILER /**< the library nvPTXCompiler */
};

/** "auto", "driver", "ptxas", "nvjitlink", "nvptxcompiler"; NULL for a number that is no compiler. */
CPTX_API const char *cptx_compiler_name(enum cptx_compiler compiler);
/** The compiler of that name; false if there is none. */
CPTX_API bool cptx_compiler_named(const char *name, enum cptx_compiler *compiler);
/**
 * Whether a compiler is there.  `text`, of `size` bytes, gets what it is and where, or what is lacking.  AUTO: the one that
 * cptx_compile would take.  DRIVER is always false: only a device can tell.
 */
CPTX_API bool cptx_compiler_find(enum cptx_compiler compiler, char *text, size_t size);

/** How much to optimize. */
enum cptx_opt_level {
	CPTX_OPT_DEFAULT, /**< the compiler's, -O3 */
	CPTX_OPT_0,       /**< -O0 */
	CPTX_OPT_1,       /**< -O1 */
	CPTX_OPT_2,       /**< -O2 */
	CPTX_OPT_3        /**< -O3 */
};

/** How to compile or link.  All zero: the compiler that is there, with its defaults. */
typedef struct cptx_compile_opt {
	uint32_t size;                /**< CPTX_OPT fills it in */
	enum cptx_compiler compiler;  /**< who compiles */
	const char *target;           /**< of the machine code, "sm_90a"; NULL: the .target of the text */
	const char *name;             /**< of the text, for messages; NULL: "ptx" */
	enum cptx_opt_level optimize; /**< how much */
	uint32_t max_regs;            /**< registers per thread; 0: the compiler's choice */
	bool line_info;               /**< keep the .loc lines */
	bool debug;                   /**< for a debugger, not optimized: without optimize, or with CPTX_OPT_0 */
	bool verbose;                 /**< resource usage in the log */
	bool relocatable;             /**< an object for cptx_link(), not a program */
	size_t nflags;                /**< of flags */
	const char *const *flags;     /**< more options, as ptxas spells them: "-warn-spills" */
	uint32_t limit_ms;            /**< the longest that a process may take; 0: ten minutes */
	cptx_cache *cache;            /**< looked into first, and what is made goes there; NULL: none */
	char z_;
} cptx_compile_opt;

/** Machine code, and what was said while it was made. */
typedef struct cptx_cubin cptx_cubin;

CPTX_API cptx_cubin *cptx_compile_(cptx_site at, const char *text, size_t size, const cptx_compile_opt *opt,
                                   cptx_error *err);
/** Compiles PTX text: cptx_compile(text, size, opt, err); opt may be NULL.  NULL on error; to be destroyed. */
#define cptx_compile(...) cptx_compile_(CPTX_HERE, __VA_ARGS__)

CPTX_API cptx_cubin *cptx_compile_ptx_(cptx_site at, const cptx_ptx *ptx, const cptx_compile_opt *opt, cptx_error *err);
/** The same for what cptx_emit() printed; errors name the lines of the user's source: cptx_compile_ptx(ptx, opt, err). */
#define cptx_compile_ptx(...) cptx_compile_ptx_(CPTX_HERE, __VA_ARGS__)

/** One thing to link: a module, or data (PTX text, a cubin, a fat binary, an object or library of nvcc -rdc=true). */
typedef struct cptx_link_input {
	cptx_module *module; /**< printed for the target; NULL: data */
	const void *data;    /**< only if there is no module; stays the caller's */
	size_t size;         /**< bytes */
	const char *name;    /**< for messages; NULL: "input 1" and so on */
} cptx_link_input;

CPTX_API cptx_cubin *cptx_link_(cptx_site at, const cptx_link_input *inputs, size_t n, const cptx_compile_opt *opt,
                                cptx_error *err);
/**
 * Links to one cubin: cptx_link(inputs, n, opt, err).  nvJitLink does it (AUTO or NVJITLINK); opt.target must be set.
 * Variables and functions that inputs share must be .visible in one and .extern in the others.  Further errors: COMPILE, a
 * name that nothing defines, or two inputs (unless .weak), an input for another target; what cptx_emit says.
 */
#define cptx_link(...) cptx_link_(CPTX_HERE, __VA_ARGS__)

/** Frees it and its texts.  NULL is allowed. */
CPTX_API void cptx_cubin_destroy(cptx_cubin *cubin);
/** The ELF image, of cptx_cubin_size() bytes; lives as long as the cubin. */
CPTX_API const void *cptx_cubin_data(const cptx_cubin *cubin);
/** Bytes of the image. */
CPTX_API size_t cptx_cubin_size(const cptx_cubin *cubin);
/** What the compiler said: warnings, with .verbose the resources; "" if nothing. */
CPTX_API const char *cptx_cubin_log(const cptx_cubin *cubin);
/** What was done in place of what was asked for, and why (a compiler was too old, so another one compiled); "" if nothing.
 */
CPTX_API const char *cptx_cubin_note(const cptx_cubin *cubin);
/** Who compiled it. */
CPTX_API enum cptx_compiler cptx_cubin_compiler(const cptx_cubin *cubin);

/** Whether it came out of the cache. */
CPTX_API bool cptx_cubin_cached(const cptx_cubin *cubin);

#ifdef __cplusplus
}
#endif

#endif
