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

/** Compilers of PTX to machine code. */
enum cptx_compiler {
	CPTX_COMPILER_AUTO,      /**< the driver on a device; else the first that is there of ptxas, nvJitLink, nvPTXCompiler */
	CPTX_COMPILER_DRIVER,    /**< the compiler in the CUDA driver, which needs a device */
	CPTX_COMPILER_PTXAS,     /**< ptxas, started as a process */
	CPTX_COMPILER_NVJITLINK, /**< the library nvJitLink; refuses setmaxnreg and .extern .shared .align above 16 */
	CPTX_COMPILER_NVPTXCOMPILER /**< the library nvPTXCompiler */
};

/** "auto", "driver", "ptxas", "nvjitlink", "nvptxcompiler"; NULL for a number that is no compiler. */
CPTX_API const char *cptx_compiler_name(enum cptx_compiler compiler);
/** Finds the compiler with this name; false if there is none. */
CPTX_API bool cptx_compiler_named(const char *name, enum cptx_compiler *compiler);
/**
 * Whether a compiler is there.  `text`, of `size` bytes, gets its name, version and place, or what is missing.  AUTO stands
 * for the compiler that cptx_compile would take.  DRIVER is always false: only a device can tell.
 */
CPTX_API bool cptx_compiler_find(enum cptx_compiler compiler, char *text, size_t size);

/** Optimization levels. */
enum cptx_opt_level {
	CPTX_OPT_DEFAULT, /**< the compiler's default, -O3 */
	CPTX_OPT_0,       /**< -O0 */
	CPTX_OPT_1,       /**< -O1 */
	CPTX_OPT_2,       /**< -O2 */
	CPTX_OPT_3        /**< -O3 */
};

/** How to compile or link.  All zero: the compiler that is there, with its defaults. */
typedef struct cptx_compile_opt {
	uint32_t size;                /**< CPTX_OPT fills it in */
	enum cptx_compiler compiler;  /**< the compiler to use */
	const char *target;           /**< target of the machine code, "sm_90a"; NULL: the .target of the text */
	const char *name;             /**< name of the text in messages; NULL: "ptx" */
	enum cptx_opt_level optimize; /**< optimization level */
	uint32_t max_regs;            /**< registers per thread; 0: the compiler's choice */
	bool line_info;               /**< keep the .loc lines */
	bool debug;                   /**< make code for a debugger, not optimized: leave optimize out, or set CPTX_OPT_0 */
	bool verbose;                 /**< put resource usage in the log */
	bool relocatable;             /**< make an object for cptx_link(), not a program */
	size_t nflags;                /**< number of flags */
	const char *const *flags;     /**< more options, as ptxas spells them: "-warn-spills" */
	uint32_t limit_ms;            /**< longest time that a process may take, in ms; 0: ten minutes */
	cptx_cache *cache;            /**< the cache that is searched first, and where the result is stored; NULL: none */
	char z_;
} cptx_compile_opt;

/** Machine code, with the compiler's messages. */
typedef struct cptx_cubin cptx_cubin;

CPTX_API cptx_cubin *cptx_compile_(cptx_site at, const char *text, size_t size, const cptx_compile_opt *opt,
                                   cptx_error *err);
/** Compiles PTX text: cptx_compile(text, size, opt, err); opt may be NULL.  Returns NULL on error; destroy the result with
 * cptx_cubin_destroy. */
#define cptx_compile(...) cptx_compile_(CPTX_HERE, __VA_ARGS__)

CPTX_API cptx_cubin *cptx_compile_ptx_(cptx_site at, const cptx_ptx *ptx, const cptx_compile_opt *opt, cptx_error *err);
/** Compiles what cptx_emit() printed: cptx_compile_ptx(ptx, opt, err).  Errors name the lines of the user's source. */
#define cptx_compile_ptx(...) cptx_compile_ptx_(CPTX_HERE, __VA_ARGS__)

/** One thing to link: a module, or data (PTX text, a cubin, a fat binary, an object or library of nvcc -rdc=true). */
typedef struct cptx_link_input {
	cptx_module *module; /**< a module, printed for the target; NULL: the input is data */
	const void *data;    /**< the input where there is no module; it stays the caller's */
	size_t size;         /**< bytes of data */
	const char *name;    /**< name of the input in messages; NULL: "input 1" and so on */
} cptx_link_input;

CPTX_API cptx_cubin *cptx_link_(cptx_site at, const cptx_link_input *inputs, size_t n, const cptx_compile_opt *opt,
                                cptx_error *err);
/**
 * Links inputs to one cubin: cptx_link(inputs, n, opt, err).  The linker is nvJitLink (compiler AUTO or NVJITLINK);
 * opt.target must be set.  Variables and functions that inputs share must be .visible in one and .extern in the others.
 * Further errors: COMPILE, a name that no input defines, or two inputs define (unless .weak), or an input for another
 * target; and the errors of cptx_emit.
 */
#define cptx_link(...) cptx_link_(CPTX_HERE, __VA_ARGS__)

/** Frees a cubin and its texts.  NULL is allowed. */
CPTX_API void cptx_cubin_destroy(cptx_cubin *cubin);
/** The ELF image, of cptx_cubin_size() bytes; lives as long as the cubin. */
CPTX_API const void *cptx_cubin_data(const cptx_cubin *cubin);
/** Bytes of the ELF image. */
CPTX_API size_t cptx_cubin_size(const cptx_cubin *cubin);
/** The compiler's messages: warnings, and with .verbose the resource usage; "" if there are none. */
CPTX_API const char *cptx_cubin_log(const cptx_cubin *cubin);
/** What was done in place of what was asked for, and why (a compiler was too old, so another one compiled); "" if nothing
 * was. */
CPTX_API const char *cptx_cubin_note(const cptx_cubin *cubin);
/** The compiler that made a cubin. */
CPTX_API enum cptx_compiler cptx_cubin_compiler(const cptx_cubin *cubin);

/** Whether a cubin was read from the cache. */
CPTX_API bool cptx_cubin_cached(const cptx_cubin *cubin);

#ifdef __cplusplus
}
#endif

#endif
