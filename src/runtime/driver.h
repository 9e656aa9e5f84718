/* SPDX-License-Identifier: MIT */
/*
 * The part of the CUDA Driver API that cptx calls, declared here so that cuda.h is not needed, and found at run time.
 * tests/runtime/test_abi.c compares every line with cuda.h.
 */
#ifndef CPTX_RUNTIME_DRIVER_H
#define CPTX_RUNTIME_DRIVER_H

#include "base/base.h"

/* CUDA's enums are unsigned int in its ABI.  The struct tags are CUDA's own, so that the types agree. */
typedef unsigned cu_result;
typedef int cu_device;
typedef unsigned long long cu_ptr;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUlinkState_st *cu_link;
typedef struct CUtensorMap_st *cu_tensor_map; /* points to 128 bytes, aligned to 64 */

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_STUB = 34,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_NO_BINARY = 209,
	CU_INVALID_PTX = 218,
	CU_UNSUPPORTED_PTX = 222,
	CU_NOT_FOUND = 500,
	CU_ILLEGAL_ADDRESS = 700,
	CU_LAUNCH_TIMEOUT = 702,
	CU_ASSERT = 710,
	CU_HARDWARE_STACK = 714, /* this and the errors up to LAUNCH_FAILED are faults of a kernel that end its context */
	CU_LAUNCH_FAILED = 719,
	CU_CAPTURE_UNSUPPORTED = 900, /* this call is not allowed while a stream is captured */
	CU_CAPTURE_IMPLICIT = 906     /* a stream that the default stream is ordered with is being captured */
};

enum {
	CU_DEV_SMEM_PER_CTA = 8,
	CU_DEV_CLOCK = 13,
	CU_DEV_SMS = 16,
	CU_DEV_MEMORY_CLOCK = 36,
	CU_DEV_BUS_WIDTH = 37,
	CU_DEV_L2 = 38,
	CU_DEV_THREADS_PER_SM = 39,
	CU_DEV_MAJOR = 75,
	CU_DEV_MINOR = 76,
	CU_DEV_SMEM_PER_SM = 81,
	CU_DEV_REGS_PER_SM = 82,
	CU_DEV_SMEM_OPTIN = 97,
	CU_DEV_CLUSTERS = 120
};

enum {
	CU_FN_MAX_THREADS = 0,
	CU_FN_STATIC_SMEM = 1,
	CU_FN_CONST = 2,
	CU_FN_LOCAL = 3,
	CU_FN_REGS = 4,
	CU_FN_BINARY = 6,
	CU_FN_MAX_DYN_SMEM = 8,
	CU_FN_BIG_CLUSTERS = 14
};

enum {
	CU_JIT_REGS = 0,
	CU_JIT_INFO = 3,
	CU_JIT_INFO_SIZE = 4,
	CU_JIT_ERROR = 5,
	CU_JIT_ERROR_SIZE = 6,
	CU_JIT_DEBUG = 11,
	CU_JIT_VERBOSE = 12,
	CU_JIT_LINES = 13
};

enum { CU_INPUT_CUBIN = 0, CU_INPUT_PTX = 1, CU_INPUT_FATBIN = 2, CU_INPUT_OBJECT = 3, CU_INPUT_LIBRARY = 4 };

enum { CU_LAUNCH_COOPERATIVE = 2, CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_OVERLAP = 6 /* programmatic stream serialization */ };

typedef struct cu_launch_attr {
	unsigned id;
	char pad[4];
	union {
		char pad[64];
		struct {
			unsigned x, y, z;
		} cluster;
		int overlap, cooperative;
	} value;
} cu_launch_attr;

typedef struct cu_launch_config {
	unsigned grid[3], block[3], smem;
	cu_stream stream;
	cu_launch_attr *attrs;
	unsigned nattrs;
} cu_launch_config;

/* clang-format off */
/* NEED(name, arguments): every driver of CUDA 11.0 and later has it.  MAY: NULL where the driver lacks it. */
#define DRIVER_CALLS(NEED, MAY)                                                                                             \
	NEED(cuInit, (unsigned flags))                                                                                          \
	NEED(cuDriverGetVersion, (int *version))                                                                                \
	NEED(cuGetErrorName, (cu_result r, const char **name))                                                                  \
	NEED(cuGetErrorString, (cu_result r, const char **text))                                                                \
	NEED(cuDeviceGetCount, (int *n))                                                                                        \
	NEED(cuDeviceGet, (cu_device *dev, int i))                                                                              \
	NEED(cuDeviceGetName, (char *name, int size, cu_device dev))                                                            \
	NEED(cuDeviceGetAttribute, (int *v, unsigned attr, cu_device dev))                                                      \
	NEED(cuDeviceTotalMem_v2, (size_t *bytes, cu_device dev))                                                               \
	NEED(cuDevicePrimaryCtxRetain, (cu_context *ctx, cu_device dev))                                                        \
	NEED(cuDevicePrimaryCtxRelease_v2, (cu_device dev))                                                                     \
	NEED(cuDevicePrimaryCtxGetState, (cu_device dev, unsigned *flags, int *active))                                         \
	NEED(cuCtxGetCurrent, (cu_context *ctx))                                                                                \
	NEED(cuCtxSetCurrent, (cu_context ctx))                                                                                 \
	NEED(cuCtxPushCurrent_v2, (cu_context ctx))                                                                             \
	NEED(cuCtxPopCurrent_v2, (cu_context *ctx))                                                                             \
	NEED(cuCtxGetDevice, (cu_device *dev))                                                                                  \
	NEED(cuCtxSynchronize, (void))                                                                                          \
	NEED(cuMemGetInfo_v2, (size_t *unused, size_t *total))                                                                  \
	NEED(cuMemAlloc_v2, (cu_ptr *p, size_t size))                                                                           \
	NEED(cuMemFree_v2, (cu_ptr p))                                                                                          \
	NEED(cuMemcpyHtoDAsync_v2, (cu_ptr dst, const void *src, size_t size, cu_stream s))                                     \
	NEED(cuMemcpyDtoHAsync_v2, (void *dst, cu_ptr src, size_t size, cu_stream s))                                           \
	NEED(cuMemcpyDtoDAsync_v2, (cu_ptr dst, cu_ptr src, size_t size, cu_stream s))                                          \
	NEED(cuMemsetD8Async, (cu_ptr dst, unsigned char value, size_t n, cu_stream s))                                         \
	NEED(cuMemsetD32Async, (cu_ptr dst, unsigned value, size_t n, cu_stream s))                                             \
	NEED(cuStreamCreate, (cu_stream *s, unsigned flags))                                                                    \
	NEED(cuStreamDestroy_v2, (cu_stream s))                                                                                 \
	NEED(cuStreamSynchronize, (cu_stream s))                                                                                \
	NEED(cuStreamGetCtx, (cu_stream s, cu_context *ctx))                                                                    \
	NEED(cuStreamIsCapturing, (cu_stream s, unsigned *status))                                                              \
	NEED(cuStreamWaitEvent, (cu_stream s, cu_event e, unsigned flags))                                                      \
	NEED(cuEventCreate, (cu_event *e, unsigned flags))                                                                      \
	NEED(cuEventDestroy_v2, (cu_event e))                                                                                   \
	NEED(cuEventRecord, (cu_event e, cu_stream s))                                                                          \
	NEED(cuEventSynchronize, (cu_event e))                                                                                  \
	NEED(cuEventElapsedTime, (float *ms, cu_event start, cu_event end))                                                     \
	NEED(cuModuleLoadDataEx, (cu_module *m, const void *image, unsigned n, unsigned *options, void **values))               \
	NEED(cuLinkCreate_v2, (unsigned n, unsigned *options, void **values, cu_link *link))                                    \
	NEED(cuLinkAddData_v2, (cu_link link, unsigned type, void *data, size_t size, const char *name, unsigned n,             \
	                        unsigned *options, void **values))                                                              \
	NEED(cuLinkComplete, (cu_link link, void **cubin, size_t *size))                                                        \
	NEED(cuLinkDestroy, (cu_link link))                                                                                     \
	NEED(cuModuleUnload, (cu_module m))                                                                                     \
	NEED(cuModuleGetFunction, (cu_function *f, cu_module m, const char *name))                                              \
	NEED(cuModuleGetGlobal_v2, (cu_ptr *p, size_t *size, cu_module m, const char *name))                                    \
	NEED(cuFuncGetAttribute, (int *v, unsigned attr, cu_function f))                                                        \
	NEED(cuFuncSetAttribute, (cu_function f, unsigned attr, int v))                                                         \
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *n, cu_function f, int threads, size_t smem))                    \
	NEED(cuLaunchKernel, (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,      \
	                      unsigned smem, cu_stream s, void **params, void **extra))                                         \
	MAY(cuLaunchKernelEx, (const cu_launch_config *config, cu_function f, void **params, void **extra))   /* since CUDA 11.8 */        \
	MAY(cuFuncGetParamInfo, (cu_function f, size_t i, size_t *offset, size_t *size))                      /* since CUDA 12.4 */        \
	MAY(cuTensorMapEncodeTiled, (cu_tensor_map map, unsigned type, unsigned rank, void *address, const uint64_t *dim,       \
	                             const uint64_t *stride, const unsigned *box, const unsigned *step, unsigned interleave,    \
	                             unsigned swizzle, unsigned l2, unsigned fill))                           /* since CUDA 12.0 */        \
	MAY(cuTensorMapEncodeIm2col, (cu_tensor_map map, unsigned type, unsigned rank, void *address, const uint64_t *dim,      \
	                              const uint64_t *stride, const int *lower, const int *upper, unsigned channels,            \
	                              unsigned pixels, const unsigned *step, unsigned interleave, unsigned swizzle,             \
	                              unsigned l2, unsigned fill))                                            /* since CUDA 12.0 */        \
	MAY(cuTensorMapEncodeIm2colWide, (cu_tensor_map map, unsigned type, unsigned rank, void *address,                       \
	                                  const uint64_t *dim, const uint64_t *stride, int lower, int upper,                    \
	                                  unsigned channels, unsigned pixels, const unsigned *step, unsigned interleave,        \
	                                  unsigned mode, unsigned swizzle, unsigned l2, unsigned fill))       /* since CUDA 12.8 */
/* clang-format on */

#define DRIVER_MEMBER(name, args) cu_result(*name) args;
typedef struct driver {
	void *lib;
	const char *path; /* path of the library, while it is being opened */
	DRIVER_CALLS(DRIVER_MEMBER, DRIVER_MEMBER)
} driver;
#undef DRIVER_MEMBER

/* Opens the library, finds its functions and initializes it; false leaves nothing open. */
bool driver_open(driver *d, cptx_error *err);
void driver_close(driver *d);
void *driver_symbol(const driver *d, const char *name);
/* Sets the error of a failed call: "what: CUDA_ERROR_X (n): meaning".  Returns false. */
bool driver_fail(const driver *d, cu_result r, cptx_error *err, cptx_site at, const char *format, ...) CPTX_PRINTF_(5, 6);
/* Writes "CUDA_ERROR_X (n): meaning" to text. */
void driver_describe(const driver *d, cu_result r, char *text, size_t size);

#endif
