/* SPDX-License-Identifier: MIT */
/*
 * Tensors of other programs as arguments of a kernel, and memory of a device as a tensor for them, by DLPack.
 *
 * A cptx_tensor_launch is a launch (cptx/device.h) whose arguments are described by a signature:
 *
 *     x: f32[n, 128] const, y: bf16[n, m] strides[ld, 1], a: f32, n: u32 = n, ld: s64 = ld
 *
 * One entry per parameter of the kernel, in its order:
 * - name: type[dims] ... is a tensor, whose address the kernel gets. A dimension is a number, a name, which stands for the
 *   same number wherever it occurs, or _ for any; [] is a tensor without dimensions. Then may follow:
 *   + const: the kernel only reads it, and tensors that are marked read-only are taken too.
 *   + strides[...]: in elements, one per dimension: numbers, names, _. Without it: row-major, without gaps.  The stride of a
 *     dimension of 1, and of an empty tensor, may be anything; what it says a name is, others may say otherwise.
 *   + align N: of the address, in bytes, a power of two. Without it: the size of an element, at most 16.
 *   + optional: it may be left out (CPTX_TENSOR_NONE); the kernel gets 0.
 * - name: type is a number (u8 to s64, b8 to b64, f32, f64), which its type must hold. An integer's name may be used for a
 *   dimension too.
 * - name: type = value is an integer that is not given but computed: a number or name, products of them, "/ number" at the
 *   end; division rounds up: rows * 2 / 64.
 *
 * Types are those of PTX: u8 ... s64, f16, bf16, f32, f64, e4m3, e5m2, ue8m0, e2m1x2 (a byte of two); pred is DLPack's
 * bool, a byte each; b8 ... b128 is any type of that size (b64: complex of two f32).
 *
 * The grid is up to three such values: .grid = "n / 256, heads * batch".  A grid with a 0 in it launches nothing, and is no
 * error.
 *
 * Devices: a GPU takes tensors of the same GPU (kDLCUDA), managed ones and pinned ones of the host; the emulator takes
 * tensors of the host (kDLCPU).  Nothing is copied.
 *
 * dlpack.h is not needed to include this header; the structs are those of its versions 1.0 and later.
 */
#ifndef CPTX_TENSOR_DLPACK_H
#define CPTX_TENSOR_DLPACK_H

#include <cptx/device.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;
struct DLPackExchangeAPI;

/* ---- Tensors into kernels ------------------------------------------------------------------------------------------ */

enum {
	CPTX_TENSOR_MAX_ARGS = 64, /**< entries of a signature */
	CPTX_TENSOR_MAX_RANK = 8   /**< dimensions of a tensor */
};

/** What an argument is. */
enum cptx_tensor_kind {
	CPTX_TENSOR_NONE,      /**< nothing, for an optional tensor */
	CPTX_TENSOR_DL,        /**< u.tensor, a DLTensor */
	CPTX_TENSOR_MANAGED,   /**< u.managed */
	CPTX_TENSOR_VERSIONED, /**< u.versioned */
	CPTX_TENSOR_OBJECT,    /**< u.object, a PyObject, of a type whose __dlpack_c_exchange_api__ is `api`.  The caller has the
	                          GIL */
	CPTX_TENSOR_INT,       /**< u.i */
	CPTX_TENSOR_UINT,      /**< u.u */
	CPTX_TENSOR_FLOAT      /**< u.f */
};

/** One argument.  A tensor is borrowed: its memory must live until the work is done, all else until the call returns. */
typedef struct cptx_tensor_arg {
	uint32_t kind; /**< enum cptx_tensor_kind */
	union {
		const void *tensor;
		const struct DLManagedTensor *managed;
		const struct DLManagedTensorVersioned *versioned;
		void *object;
		int64_t i;
		uint64_t u;
		double f;
	} u;                                 /**< by kind */
	const struct DLPackExchangeAPI *api; /**< of CPTX_TENSOR_OBJECT */
} cptx_tensor_arg;

/** A launch that takes tensors. */
typedef struct cptx_tensor_launch cptx_tensor_launch;

/** What a launch takes, and its shape. */
typedef struct cptx_tensor_launch_opt {
	uint32_t size;         /**< CPTX_OPT fills it in */
	const char *signature; /**< as above */
	const char *grid;      /**< as above; NULL: each run gives one */
	uint32_t block[3];     /**< these four as in cptx_launch_opt */
	uint32_t cluster[3];   /**< CTAs of a cluster; all zero: the kernel's */
	uint32_t dyn_smem;     /**< bytes; 0: what the kernel laid out */
	bool overlap;          /**< programmatic dependent launch */
	char z_;
} cptx_tensor_launch_opt;

CPTX_API cptx_tensor_launch *cptx_tensor_launch_new_(cptx_site at, const cptx_program *program, const char *kernel,
                                                     const cptx_tensor_launch_opt *opt, cptx_error *err);
/**
 * Prepares a kernel (NULL: the program's only one) for tensors; destroy it before the program.
 * Errors: PARSE, the signature or the grid cannot be read; those of cptx_launch_new, where the signature does not fit the
 * kernel's parameters.
 */
#define cptx_tensor_launch_new(...) cptx_tensor_launch_new_(CPTX_HERE, __VA_ARGS__)
/** NULL is allowed. */
CPTX_API void cptx_tensor_launch_destroy(cptx_tensor_launch *launch);

/** An entry of the signature. */
typedef struct cptx_tensor_arg_info {
	const char *name;    /**< as the signature has it; lives as long as the launch */
	enum cptx_type type; /**< of the number or of an element */
	bool is_tensor;      /**< else a number */
	bool is_const;       /**< the kernel only reads it */
	bool is_optional;    /**< it may be left out */
} cptx_tensor_arg_info;
CPTX_API bool cptx_tensor_launch_arg_(const cptx_tensor_launch *launch, size_t i, cptx_tensor_arg_info *info, size_t size);
/** Argument i of a run, from 0 on, computed ones not counted; false behind the last. */
static inline bool cptx_tensor_launch_arg(const cptx_tensor_launch *launch, size_t i, cptx_tensor_arg_info *info)
{
	return cptx_tensor_launch_arg_(launch, i, info, sizeof *info);
}

/** A stream: that on which the framework of the first CPTX_TENSOR_OBJECT works now; the default stream where there is none.
 */
#define CPTX_TENSOR_STREAM ((void *)(intptr_t)-1)

/**
 * Runs it as work of a stream (a CUstream; NULL: the default stream; the emulator has none): n arguments, and a grid where
 * not the one of the options is meant (else NULL).  Allocates nothing on a GPU.  Any number of threads may run one launch.
 * Errors: ARG, an argument that does not fit its entry, with what was expected and what it is; those of cptx_launch_run.
 * Where a Python object could not be seen as a tensor, the Python exception is set, too.
 */
CPTX_API bool cptx_tensor_launch_run(cptx_tensor_launch *launch, const cptx_tensor_arg *args, size_t n, const uint32_t *grid,
                                     void *stream, cptx_error *err);

/* ---- From Python --------------------------------------------------------------------------------------------------- */

/** A class of Python whose objects are tensors. */
typedef struct cptx_python_class {
	const void *type;                    /**< the class; NULL: behind the last one */
	const struct DLPackExchangeAPI *api; /**< its __dlpack_c_exchange_api__ */
	bool lazy;                           /**< its objects have is_neg(), is_conj() and requires_grad, as PyTorch's */
	bool counts;                         /**< `written` is to be told of those that a launch may have written */
} cptx_python_class;

/** Classes that are known; more may come in, with the GIL. */
typedef struct cptx_python_classes {
	void *written;            /**< a callable: gets the object that was written, or a tuple of several */
	cptx_python_class of[32]; /**< at most 31, and the end */
} cptx_python_classes;

/** What a callable stands on.  The callables and `owner` are PyObjects, which it keeps. */
typedef struct cptx_python_opt {
	uint32_t size;                    /**< CPTX_OPT fills it in */
	const cptx_python_classes *known; /**< what is taken without a closer look */
	void *otherwise; /**< gets what was given, keywords too, where that needs a closer look; its result is the result */
	void *failed;    /**< gets the bytes of a cptx_error, and raises it */
	void *owner;     /**< what has to live as long: it has the launch and `known` */
	char z_;
} cptx_python_opt;

/**
 * A launch as a callable of Python (a new reference), for programs that call it often: f(x, y, 2.0) takes what a run takes,
 * on CPTX_TENSOR_STREAM.  Arrays are objects of classes that are known; what is lazy and a conjugate, a negative, or is
 * written and requires a gradient goes to `otherwise`, and so do numbers that do not fit.  The caller has the GIL.
 * Errors: ARG, a NULL; STATE, the process is no CPython's; MEMORY.
 */
CPTX_API void *cptx_python_callable(cptx_tensor_launch *launch, const cptx_python_opt *opt, cptx_error *err);

/* ---- Memory of a device as a tensor -------------------------------------------------------------------------------- */

/** What memory is to be as a tensor. */
typedef struct cptx_tensor_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	enum cptx_type type;         /**< of an element */
	size_t rank;                 /**< dimensions */
	const int64_t *shape;        /**< their lengths */
	const int64_t *strides;      /**< in elements; NULL: row-major, without gaps */
	uint64_t ptr;                /**< memory of the device; 0: it is allocated, and freed with the tensor */
	bool read_only;              /**< consumers may not write it */
	void (*release)(void *user); /**< is told when the tensor is destroyed; may be NULL */
	void *user;                  /**< for release */
	char z_;
} cptx_tensor_opt;

/**
 * A tensor for others.  Whoever gets it calls its `deleter`, once; the device must outlive that.  Memory of the emulator is
 * a tensor of the host, of which all bytes count as written from now on. Errors: ARG (no shape, negative dimensions, a type
 * that DLPack lacks; of the emulator: nothing is allocated there), MEMORY.
 */
CPTX_API struct DLManagedTensorVersioned *cptx_tensor_export(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err);
/** The same for consumers of DLPack before 1.0, who cannot be told of .read_only: that is an error. */
CPTX_API struct DLManagedTensor *cptx_tensor_export_old(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err);

#ifdef __cplusplus
}
#endif

#endif
