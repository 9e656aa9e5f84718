/* SPDX-License-Identifier: MIT */
/*
 * Bundles: kernels made ahead of time, for several targets, in one file that a program loads without cptx.
 *
 * A bundle has entries, known by name: a kernel for fixed sizes, with named arguments (addresses, numbers).  Each entry has
 * variants, one for a target: machine code for the devices that are known, PTX for those to come, and what a launch is made
 * of: CTAs by the number of multiprocessors, threads, shared memory, parameters, tensor maps.  The loader,
 * src/bundle/loader, is one file of C beside its header, which is also the reference of the file's format; it needs libcuda
 * alone.
 *
 *   cptx_bundle *b = cptx_bundle_new(NULL, &err);
 *   cptx_bundle_add_gemm(b, CPTX_OPT(cptx_bundle_gemm, .name = "qkv", .target = "sm_90a", .m = 4096, .n = 6144, .k = 4096,
 *                                    .opt = &opt, .machine_code = true), &err);
 *   size_t size;
 *   const void *data = cptx_bundle_finish(b, &size, &err);
 */
#ifndef CPTX_BUNDLE_H
#define CPTX_BUNDLE_H

#include <cptx/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A bundle that is being made. */
typedef struct cptx_bundle cptx_bundle;
/** Begins a bundle.  made: a text that says where it comes from; NULL: cptx and its version.  NULL on error. */
CPTX_API cptx_bundle *cptx_bundle_new(const char *made, cptx_error *err);
/** Frees a bundle and its data.  NULL is allowed. */
CPTX_API void cptx_bundle_destroy(cptx_bundle *bundle);

/** The kinds of arguments of an entry. */
enum cptx_bundle_kind {
	CPTX_BUNDLE_POINTER, /**< a device address */
	CPTX_BUNDLE_F32      /**< a float */
};
/** An argument of an entry. */
typedef struct cptx_bundle_arg {
	const char *name;           /**< as the loader lists it */
	enum cptx_bundle_kind kind; /**< what it is */
} cptx_bundle_arg;
/** The kinds of parameters. */
enum cptx_bundle_param_kind {
	CPTX_BUNDLE_VALUE, /**< .value, in its low bytes */
	CPTX_BUNDLE_ARG,   /**< argument .arg */
	CPTX_BUNDLE_MAP    /**< *map, a tiled one, whose address is argument .arg */
};
/** A parameter of the kernel: an argument, a tensor map over one, or a value that is always the same. */
typedef struct cptx_bundle_param {
	enum cptx_bundle_param_kind kind; /**< what it is */
	uint32_t arg;                     /**< number of the argument */
	uint64_t value;                   /**< the value */
	const cptx_tensor_map_opt *map;   /**< the map without its address */
} cptx_bundle_param;

/** A variant of an entry: a kernel of one's own. */
typedef struct cptx_bundle_kernel {
	uint32_t size;               /**< CPTX_OPT fills it in */
	const char *name;            /**< of the entry; the first variant makes it, and others must have the same arguments */
	const char *about;           /**< what it computes; NULL: "" */
	const char *target;          /**< "sm_90a" */
	const char *note;            /**< how this variant was chosen; NULL: "" */
	cptx_module *module;         /**< has the kernel; it is printed, and stays the caller's */
	const char *kernel;          /**< name of the kernel in it */
	uint32_t nargs;              /**< number of arguments */
	const cptx_bundle_arg *args; /**< the arguments */
	uint32_t nparams;            /**< number of parameters, at most 64, of which 16 maps */
	const cptx_bundle_param *params; /**< the kernel's parameters, in order */
	uint32_t threads;                /**< of a CTA, along x */
	uint32_t smem;                   /**< dynamic shared memory in bytes */
	/** CTAs along x on a device with so many multiprocessors (1 to 256; larger ones count as 256), and in *workspace bytes
	 * of the argument "workspace" */
	uint32_t (*grid)(void *user, uint32_t sms, uint64_t *workspace);
	void *user;                  /**< first argument of grid */
	bool machine_code;           /**< compile it for the target, beside the PTX */
	bool no_ptx;                 /**< leave the PTX away, with machine_code */
	enum cptx_compiler compiler; /**< compiler of machine code */
	cptx_cache *cache;           /**< cache of machine code; NULL: none */
	char z_;
} cptx_bundle_kernel;
/** Adds a variant.  Errors: ARG; STATE, the entry has a variant of that target or other arguments; those of cptx_emit and
 * cptx_compile. */
CPTX_API bool cptx_bundle_add(cptx_bundle *bundle, const cptx_bundle_kernel *kernel, cptx_error *err);

/** A variant of a GEMM for fixed sizes. */
typedef struct cptx_bundle_gemm {
	uint32_t size;               /**< CPTX_OPT fills it in */
	const char *name;            /**< of the entry */
	const char *target;          /**< "sm_90a" */
	const cptx_gemm_opt *opt;    /**< options.  .bm of 0: the shape is the best in the database, else the first of the model;
	                                without stream_k.  Not .grouped, .timeline, .experts */
	uint64_t m, n, k;            /**< sizes */
	uint32_t batch;              /**< number of matrices; 0: 1 */
	cptx_tune *db;               /**< tuning database to look into, with .device; NULL: the model chooses */
	const char *device;          /**< name of the device whose records count */
	bool machine_code;           /**< compile it for the target, beside the PTX */
	bool no_ptx;                 /**< leave the PTX away, with machine_code */
	enum cptx_compiler compiler; /**< compiler of machine code */
	cptx_cache *cache;           /**< cache of machine code; NULL: none */
	char z_;
} cptx_bundle_gemm;
/** Adds a variant of a GEMM.  Its arguments: a, b, d, and as the options say c, bias, scale_a, scale_b, alpha, beta,
 * workspace, scale_d, meta.  Errors: those of cptx_gemm_auto_for, cptx_gemm_check_problem and cptx_bundle_add. */
CPTX_API bool cptx_bundle_add_gemm(cptx_bundle *bundle, const cptx_bundle_gemm *gemm, cptx_error *err);

/** The bundle as bytes, aligned to 8, to be written to a file or linked in; they live until the next call on the bundle. */
CPTX_API const void *cptx_bundle_finish(cptx_bundle *bundle, size_t *size, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
