/* SPDX-License-Identifier: MIT */
/* src/runtime/driver.h against CUDA's own cuda.h: types, sizes, offsets, numbers and the signature of every call. */
#include "runtime/driver.h"

#include <stddef.h>
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#define HAVE_CUDA_H
#include <cuda.h>
#endif
#endif

#ifdef HAVE_CUDA_H
#define SAME_TYPE(a, b) _Static_assert(__builtin_types_compatible_p(a, b), #a " is not " #b)
#define SAME(a, b) _Static_assert((long)(a) == (long)(b), #a " is not " #b)

SAME_TYPE(cu_result, CUresult);
SAME_TYPE(cu_device, CUdevice);
SAME_TYPE(cu_ptr, CUdeviceptr);
SAME_TYPE(cu_context, CUcontext);
SAME_TYPE(cu_module, CUmodule);
SAME_TYPE(cu_function, CUfunction);
SAME_TYPE(cu_stream, CUstream);
SAME_TYPE(cu_event, CUevent);
SAME_TYPE(cu_link, CUlinkState);

/* cuda.h knows the launch configuration under a type of its own; its layout is held against ours below. */
#define cu_launch_config CUlaunchConfig
#define SAME_CALL(name, args) SAME_TYPE(cu_result(*) args, __typeof__(&name));
DRIVER_CALLS(SAME_CALL, SAME_CALL)
#undef cu_launch_config

SAME(CU_OK, CUDA_SUCCESS);
SAME(CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CU_STUB, CUDA_ERROR_STUB_LIBRARY);
SAME(CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CU_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(CU_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CU_ASSERT, CUDA_ERROR_ASSERT);
SAME(CU_HARDWARE_STACK, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CU_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CU_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(CU_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);

SAME(CU_DEV_SMEM_PER_CTA, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CU_DEV_CLOCK, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CU_DEV_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEV_MEMORY_CLOCK, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CU_DEV_BUS_WIDTH, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEV_L2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_DEV_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEV_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEV_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEV_SMEM_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CU_DEV_REGS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(CU_DEV_SMEM_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_DEV_CLUSTERS, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);

SAME(CU_FN_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FN_STATIC_SMEM, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FN_CONST, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FN_LOCAL, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FN_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FN_BINARY, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(CU_FN_MAX_DYN_SMEM, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FN_BIG_CLUSTERS, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);

SAME(CU_JIT_REGS, CU_JIT_MAX_REGISTERS);
SAME(CU_JIT_INFO, CU_JIT_INFO_LOG_BUFFER);
SAME(CU_JIT_INFO_SIZE, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR, CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_SIZE, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_DEBUG, CU_JIT_GENERATE_DEBUG_INFO);
SAME(CU_JIT_VERBOSE, CU_JIT_LOG_VERBOSE);
SAME(CU_JIT_LINES, CU_JIT_GENERATE_LINE_INFO);

SAME(CU_INPUT_CUBIN, CU_JIT_INPUT_CUBIN);
SAME(CU_INPUT_PTX, CU_JIT_INPUT_PTX);
SAME(CU_INPUT_FATBIN, CU_JIT_INPUT_FATBINARY);
SAME(CU_INPUT_OBJECT, CU_JIT_INPUT_OBJECT);
SAME(CU_INPUT_LIBRARY, CU_JIT_INPUT_LIBRARY);

SAME(CU_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CU_LAUNCH_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(offsetof(cu_launch_attr, value.cooperative), offsetof(CUlaunchAttribute, value.cooperative));
SAME(sizeof(cu_launch_attr), sizeof(CUlaunchAttribute));
SAME(offsetof(cu_launch_attr, value.cluster.x), offsetof(CUlaunchAttribute, value.clusterDim.x));
SAME(offsetof(cu_launch_attr, value.cluster.z), offsetof(CUlaunchAttribute, value.clusterDim.z));
SAME(sizeof(cu_launch_config), sizeof(CUlaunchConfig));
SAME(offsetof(cu_launch_config, grid[2]), offsetof(CUlaunchConfig, gridDimZ));
SAME(offsetof(cu_launch_config, block[0]), offsetof(CUlaunchConfig, blockDimX));
SAME(offsetof(cu_launch_config, block[2]), offsetof(CUlaunchConfig, blockDimZ));
SAME(offsetof(cu_launch_config, smem), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(cu_launch_config, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(cu_launch_config, attrs), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(cu_launch_config, nattrs), offsetof(CUlaunchConfig, numAttrs));

#endif

/* The compiler did the testing. */
int main(void)
{
#ifdef HAVE_CUDA_H
	printf("cuda_h: 1 passed, 0 failed, 0 skipped\n");
#else
	printf("SKIP cuda_h: cuda.h is not installed\ncuda_h: 0 passed, 0 failed, 1 skipped\n");
#endif
	return 0;
}
