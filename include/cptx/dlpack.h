/* SPDX-License-Identifier: MIT */
/*
 * Tensors of other programs as arguments of a kernel, and memory of a device as a tensor for them, by DLPack.
 *
 * A cptx_tensor_launch is a launch (cptx/device.h) whose arguments are described by a signature:
 *
 *     x: f32[n, 128] const, y: bf16[n, m] strides[ld, 1], a: f32, n: u32 = n, ld: s64 = ld
 *
 * A signature has one entry per parameter of the kernel, in order:
 * - name: type[dims] ... is a tensor, whose address the kernel gets. A dimension is a number, a name, which stands for the
 *   same number wherever it occurs, or _ for any; [] is a tensor without dimensions. These may follow:
 *   + const: the kernel only reads the tensor, so tensors that are marked read-only are accepted too.
 *   + strides[...]: strides in elements, one per dimension: numbers, names, _. Without it: row-major, without gaps.  The
 *     stride of a dimension of length 1, and of an empty tensor, may be anything: a name there may differ from its value
 *     elsewhere.
 *   + align N: alignment of the address in bytes, a power of two. Without it: the size of an element, at most 16.
 *   + optional: the tensor may be left out (CPTX_TENSOR_NONE); the kernel gets 0.
 * - name: type is a number (u8 to s64, b8 to b64, f32, f64), whose value the type must be able to hold. The name of an
 *   integer may be used as a dimension too.
 * - name: type = value is an integer that the caller does not pass; it is computed: a number or name, products of them,
 *   "/ number" at the end; division rounds up: rows * 2 / 64.
 *
 * Types are those of PTX: u8 ... s64, f16, bf16, f32, f64, e4m3, e5m2, ue8m0, e2m1x2 (a byte of two); pred is DLPack's bool,
 * a byte each; b8 ... b128 is any type of that size (b64: complex of two f32).
 *
 * The grid is up to three such values: .grid = "n / 256, heads * batch".  A grid with a 0 in it launches nothing, and is no
 * error.
 *
 * Devices: a GPU takes tensors of the same GPU (kDLCUDA), managed ones, and pinned ones of the host; the emulator takes
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

/** The kinds of arguments. */
enum cptx_tensor_kind {
	CPTX_TENSOR_NONE,      /**< no tensor, for an optional one */
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
	} u;                                 /**< the value; kind selects the member */
	const struct DLPackExchangeAPI *api; /**< for CPTX_TENSOR_OBJECT: the exchange functions of its type */
} cptx_tensor_arg;

/** A launch that takes tensors. */
typedef struct cptx_tensor_launch cptx_tensor_launch;

/** Signature and shape of a launch. */
typedef struct cptx_tensor_launch_opt {
	uint32_t size;         /**< CPTX_OPT fills it in */
	const char *signature; /**< the signature, as described above */
	const char *grid;      /**< the grid, as described above; NULL: each run passes one */
	uint32_t block[3];     /**< threads of a CTA; this and the next three are as in cptx_launch_opt */
	uint32_t cluster[3];   /**< CTAs of a cluster; all zero: the kernel's cluster, or none */
	uint32_t dyn_smem;     /**< dynamic shared memory in bytes; 0: what the kernel laid out */
	bool overlap;          /**< programmatic dependent launch */
	char z_;
} cptx_tensor_launch_opt;

CPTX_API cptx_tensor_launch *cptx_tensor_launch_new_(cptx_site at, const cptx_program *program, const char *kernel,
                                                     const cptx_tensor_launch_opt *opt, cptx_error *err);
/**
 * Prepares a kernel (NULL: the program's only one) for tensors; destroy the launch before the program.
 * Errors: PARSE, the signature or the grid cannot be read; those of cptx_launch_new, where the signature does not fit the
 * kernel's parameters.
 */
#define cptx_tensor_launch_new(...) cptx_tensor_launch_new_(CPTX_HERE, __VA_ARGS__)
/** Destroys a launch.  NULL is allowed. */
CPTX_API void cptx_tensor_launch_destroy(cptx_tensor_launch *launch);

/** An entry of the signature. */
typedef struct cptx_tensor_arg_info {
	const char *name;    /**< name in the signature; lives as long as the launch */
	enum cptx_type type; /**< type of the number or of an element */
	bool is_tensor;      /**< a tensor, else a number */
	bool is_const;       /**< the kernel only reads the tensor */
	bool is_optional;    /**< the tensor may be left out */
} cptx_tensor_arg_info;
CPTX_API bool cptx_tensor_launch_arg_(const cptx_tensor_launch *launch, size_t i, cptx_tensor_arg_info *info, size_t size);
/** Argument i of a run, from 0 on; computed arguments do not count.  False behind the last. */
static inline bool cptx_tensor_launch_arg(const cptx_tensor_launch *launch, size_t i, cptx_tensor_arg_info *info)
{
	return cptx_tensor_launch_arg_(launch, i, info, sizeof *info);
}

/** Stands for the stream on which the framework of the first CPTX_TENSOR_OBJECT works now; the default stream where there is
 * no such argument. */
#define CPTX_TENSOR_STREAM ((void *)(intptr_t)-1)

/**
 * Runs a launch as work of a stream (a CUstream; NULL: the default stream; the emulator has none), with n arguments.  grid:
 * NULL, or a grid in place of that of the options.  Allocates nothing on a GPU.  Any number of threads may run one launch.
 * Errors: ARG, an argument that does not fit its entry, with what was expected and what it is; those of cptx_launch_run.
 * Where a Python object could not be read as a tensor, the Python exception is set, too.
 */
CPTX_API bool cptx_tensor_launch_run(cptx_tensor_launch *launch, const cptx_tensor_arg *args, size_t n, const uint32_t *grid,
                                     void *stream, cptx_error *err);

/** A type of PTX as DLPack has it (DLDataType). */
typedef struct cptx_tensor_type_info {
	enum cptx_type type; /**< the type of PTX */
	uint8_t code, bits;  /**< DLDataTypeCode; bits of a lane */
	uint16_t lanes;      /**< lanes of an element */
} cptx_tensor_type_info;
CPTX_API bool cptx_tensor_type_at_(size_t i, cptx_tensor_type_info *info, size_t size);
/** Type number i, from 0 on, that a tensor can have; false behind the last. */
static inline bool cptx_tensor_type_at(size_t i, cptx_tensor_type_info *info)
{
	return cptx_tensor_type_at_(i, info, sizeof *info);
}

/* ---- From Python --------------------------------------------------------------------------------------------------- */

/** A Python class whose objects are tensors. */
typedef struct cptx_python_class {
	const void *type;                    /**< the class; NULL: marks the end of the list */
	const struct DLPackExchangeAPI *api; /**< the class's __dlpack_c_exchange_api__ */
	bool lazy;                           /**< its objects have is_neg(), is_conj() and requires_grad, like PyTorch's */
	bool counts;                         /**< `written` is called for its objects that a launch may have written */
} cptx_python_class;

/** The Python classes that a callable knows; a holder of the GIL may add more. */
typedef struct cptx_python_classes {
	void *written;            /**< a callable that gets the object that was written, or a tuple of several */
	cptx_python_class of[32]; /**< at most 31 classes, then one whose type is NULL */
} cptx_python_classes;

/** What a callable needs.  The callables and `owner` are PyObjects, which it holds references to. */
typedef struct cptx_python_opt {
	uint32_t size;                    /**< CPTX_OPT fills it in */
	const cptx_python_classes *known; /**< classes whose objects the callable takes by itself */
	/** called with all arguments, keywords too, where the callable cannot take one by itself; its result is the result */
	void *otherwise;
	void *failed; /**< called with the bytes of a cptx_error, to raise it */
	void *owner;  /**< an object that lives as long as the callable, and keeps the launch and `known` alive */
	char z_;
} cptx_python_opt;

/**
 * Makes a Python callable of a launch (a new reference), for programs that call it often: f(x, y, 2.0) takes the arguments
 * of a run, on CPTX_TENSOR_STREAM.  It takes arrays of known classes by itself; a lazy array that is a conjugate or a
 * negative, or is written and requires a gradient, goes to `otherwise`, and so do numbers that do not fit.  The caller has
 * the GIL.
 * Errors: ARG, a NULL; STATE, the process is no CPython's; MEMORY.
 */
CPTX_API void *cptx_python_callable(cptx_tensor_launch *launch, const cptx_python_opt *opt, cptx_error *err);

/* ---- Memory of a device as a tensor -------------------------------------------------------------------------------- */

/** Memory of a device, described as a tensor. */
typedef struct cptx_tensor_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	enum cptx_type type;         /**< type of an element */
	size_t rank;                 /**< number of dimensions */
	const int64_t *shape;        /**< length of each dimension */
	const int64_t *strides;      /**< stride of each dimension in elements; NULL: row-major, without gaps */
	uint64_t ptr;                /**< memory of the device; 0: it is allocated, and freed with the tensor */
	bool read_only;              /**< consumers may not write it */
	void (*release)(void *user); /**< called when the tensor is destroyed; may be NULL */
	void *user;                  /**< first argument of release */
	char z_;
} cptx_tensor_opt;

/**
 * Exports a tensor.  Its consumer calls its `deleter` once; the device must outlive that.  Memory of the emulator becomes a
 * tensor of the host, and all its bytes count as written from now on.
 * Errors: ARG (no shape, negative dimensions, a type that DLPack lacks; on the emulator: nothing is allocated there),
 * MEMORY.
 */
CPTX_API struct DLManagedTensorVersioned *cptx_tensor_export(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err);
/** Exports a tensor for consumers of DLPack before 1.0.  They cannot learn of .read_only, which is an error here. */
CPTX_API struct DLManagedTensor *cptx_tensor_export_old(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err);

#ifdef __cplusplus
}
#endif

#endif
