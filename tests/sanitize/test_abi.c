/* SPDX-License-Identifier: MIT */
/* src/sanitize/abi.h and its lists against CUDA's own headers of release 13, where they are installed. */
#include "san.h"

#include <stdio.h>

#if defined(__has_include)
#if __has_include(<cuda_runtime_api.h>) && __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#define __CUDA_API_VERSION_INTERNAL /* forms of earlier versions, too */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#if CUDART_VERSION >= 13000 && CUDART_VERSION < 14000
#define HAVE_CUDA_13
#endif
#endif
#endif

#ifdef HAVE_CUDA_13
#define SAME(a, b) _Static_assert((long)(a) == (long)(b), #a " is not " #b)
#define SIZE(a, b) SAME(sizeof(a), sizeof(b))
#define FIELD(a, field, b, its) SAME(offsetof(a, field), offsetof(b, its))

/* each form of a function is one that the headers know */
/* it has the name of another one there */
typedef PFN_cuGraphInstantiateWithFlags_v11040 PFN_cuGraphInstantiate_v12000;
#define FORM(name, exported, since) SIZE(PFN_##name##_v##since, void *);
#include "forms.def"
#undef FORM
SIZE(rt_dim3, struct dim3);
SIZE(rt_extent, struct cudaExtent);
SIZE(rt_location, struct cudaMemLocation);
SIZE(rt_pitched, struct cudaPitchedPtr);
FIELD(rt_pitched, ysize, struct cudaPitchedPtr, ysize);
SIZE(rt_copy3d, struct cudaMemcpy3DParms);
FIELD(rt_copy3d, src, struct cudaMemcpy3DParms, srcPtr);
FIELD(rt_copy3d, dst_array, struct cudaMemcpy3DParms, dstArray);
FIELD(rt_copy3d, dst, struct cudaMemcpy3DParms, dstPtr);
FIELD(rt_copy3d, extent, struct cudaMemcpy3DParms, extent);
FIELD(rt_copy3d, kind, struct cudaMemcpy3DParms, kind);
SIZE(rt_launch_attr, cudaLaunchAttribute);
FIELD(rt_launch_attr, value, cudaLaunchAttribute, val);
SIZE(rt_launch_config, cudaLaunchConfig_t);
FIELD(rt_launch_config, smem, cudaLaunchConfig_t, dynamicSmemBytes);
FIELD(rt_launch_config, stream, cudaLaunchConfig_t, stream);
FIELD(rt_launch_config, attrs, cudaLaunchConfig_t, attrs);
FIELD(rt_launch_config, nattrs, cudaLaunchConfig_t, numAttrs);
SIZE(rt_pointer_attributes, struct cudaPointerAttributes);
FIELD(rt_pointer_attributes, device_pointer, struct cudaPointerAttributes, devicePointer);
FIELD(rt_pointer_attributes, host_pointer, struct cudaPointerAttributes, hostPointer);
SIZE(rt_func_attributes, struct cudaFuncAttributes);
FIELD(rt_func_attributes, max_threads, struct cudaFuncAttributes, maxThreadsPerBlock);
FIELD(rt_func_attributes, max_dyn_smem, struct cudaFuncAttributes, maxDynamicSharedSizeBytes);
FIELD(rt_func_attributes, cluster, struct cudaFuncAttributes, requiredClusterWidth);
SIZE(rt_kernel_node, struct cudaKernelNodeParams);
FIELD(rt_kernel_node, params, struct cudaKernelNodeParams, kernelParams);
SIZE(rt_set_node, struct cudaMemsetParams);
FIELD(rt_set_node, value, struct cudaMemsetParams, value);
FIELD(rt_set_node, width, struct cudaMemsetParams, width);
SIZE(rt_host_node, struct cudaHostNodeParams);
SIZE(rt_instantiate, cudaGraphInstantiateParams);
FIELD(rt_instantiate, result, cudaGraphInstantiateParams, result_out);
FIELD(rt_any_node, of, struct cudaGraphNodeParams, kernel);

SIZE(rt_alloc_node, struct cudaMemAllocNodeParams);
FIELD(rt_alloc_node, size, struct cudaMemAllocNodeParams, bytesize);
FIELD(rt_alloc_node, at, struct cudaMemAllocNodeParams, dptr);

SIZE(rt_format, struct cudaChannelFormatDesc);
SIZE(rt_resource, struct cudaResourceDesc);
FIELD(rt_resource, res.linear.format, struct cudaResourceDesc, res.linear.desc);
FIELD(rt_resource, res.linear.size, struct cudaResourceDesc, res.linear.sizeInBytes);
FIELD(rt_resource, res.rows.pitch, struct cudaResourceDesc, res.pitch2D.pitchInBytes);
SIZE(rt_sampler, struct cudaTextureDesc);
FIELD(rt_sampler, as_fraction, struct cudaTextureDesc, readMode);
FIELD(rt_sampler, border, struct cudaTextureDesc, borderColor);
FIELD(rt_sampler, normalized, struct cudaTextureDesc, normalizedCoords);
FIELD(rt_sampler, mip_most, struct cudaTextureDesc, maxMipmapLevelClamp);
SIZE(dr_resource, CUDA_RESOURCE_DESC);
FIELD(dr_resource, res.linear.size, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
FIELD(dr_resource, res.rows.pitch, CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SIZE(dr_sampler, CUDA_TEXTURE_DESC);
FIELD(dr_sampler, mip_most, CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
FIELD(dr_sampler, border, CUDA_TEXTURE_DESC, borderColor);
SIZE(dr_array, CUDA_ARRAY_DESCRIPTOR);
SIZE(dr_array3d, CUDA_ARRAY3D_DESCRIPTOR);
FIELD(dr_array3d, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SIZE(dr_copy2d, CUDA_MEMCPY2D);
FIELD(dr_copy2d, dst.pitch, CUDA_MEMCPY2D, dstPitch);
SIZE(dr_copy3d, CUDA_MEMCPY3D);
FIELD(dr_copy3d, dst.height, CUDA_MEMCPY3D, dstHeight);

SIZE(rt_device_prop, struct cudaDeviceProp);
#define PROP(field, its) FIELD(rt_device_prop, field, struct cudaDeviceProp, its)
PROP(global_memory, totalGlobalMem);
PROP(smem_per_block, sharedMemPerBlock);
PROP(pitch, memPitch);
PROP(max_threads, maxThreadsPerBlock);
PROP(max_block, maxThreadsDim);
PROP(max_grid, maxGridSize);
PROP(const_memory, totalConstMem);
PROP(major, major);
PROP(texture_alignment, textureAlignment);
PROP(sms, multiProcessorCount);
PROP(can_map_host, canMapHostMemory);
PROP(surface_alignment, surfaceAlignment);
PROP(concurrent_kernels, concurrentKernels);
PROP(copy_engines, asyncEngineCount);
PROP(unified_addressing, unifiedAddressing);
PROP(bus_width, memoryBusWidth);
PROP(l2, l2CacheSize);
PROP(threads_per_sm, maxThreadsPerMultiProcessor);
PROP(stream_priorities, streamPrioritiesSupported);
PROP(smem_per_sm, sharedMemPerMultiprocessor);
PROP(regs_per_sm, regsPerMultiprocessor);
PROP(managed, managedMemory);
PROP(concurrent_managed, concurrentManagedAccess);
PROP(cooperative, cooperativeLaunch);
PROP(smem_optin, sharedMemPerBlockOptin);
PROP(blocks_per_sm, maxBlocksPerMultiProcessor);
PROP(reserved_smem, reservedSharedMemPerBlock);
PROP(host_register, hostRegisterSupported);
PROP(memory_pools, memoryPoolsSupported);
PROP(clusters, clusterLaunch);
PROP(host_numa_id, hostNumaId);

SAME(RT_HOST_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(RT_DEFAULT, cudaMemcpyDefault);
SAME(RT_HOST, cudaMemoryTypeHost);
SAME(RT_DEVICE, cudaMemoryTypeDevice);
SAME(RT_MANAGED, cudaMemoryTypeManaged);
SAME(RT_FLOAT, cudaChannelFormatKindFloat);
SAME(RT_ARRAY_CUBE, cudaArrayCubemap);
SAME(RT_OF_ROWS, cudaResourceTypePitch2D);
SAME(CPTX_EMU_BORDER, cudaAddressModeBorder);
SAME(CPTX_EMU_MIRROR, cudaAddressModeMirror);
SAME(DR_ARRAY, CU_MEMORYTYPE_ARRAY);
SAME(DR_SRGB, CU_TRSF_SRGB);
SAME(RT_ATTR_COOPERATIVE, cudaLaunchAttributeCooperative);
SAME(RT_ATTR_CLUSTER, cudaLaunchAttributeClusterDimension);
SAME(RT_ATTR_OVERLAP, cudaLaunchAttributeProgrammaticStreamSerialization);
SAME(RT_FUNC_MAX_DYN_SMEM, cudaFuncAttributeMaxDynamicSharedMemorySize);

SAME(SAN_VALUE, cudaErrorInvalidValue);
SAME(SAN_MEMORY, cudaErrorMemoryAllocation);
SAME(SAN_CONFIGURATION, cudaErrorInvalidConfiguration);
SAME(SAN_SYMBOL, cudaErrorInvalidSymbol);
SAME(SAN_FUNCTION, cudaErrorInvalidDeviceFunction);
SAME(SAN_NO_IMAGE, cudaErrorNoKernelImageForDevice);
SAME(SAN_PTX, cudaErrorInvalidPtx);
SAME(SAN_HANDLE, cudaErrorInvalidResourceHandle);
SAME(SAN_NOT_FOUND, cudaErrorSymbolNotFound);
SAME(SAN_ADDRESS, cudaErrorIllegalAddress);
SAME(SAN_TIMEOUT, cudaErrorLaunchTimeout);
SAME(SAN_ASSERT, cudaErrorAssert);
SAME(SAN_MISALIGNED, cudaErrorMisalignedAddress);
SAME(SAN_LAUNCH, cudaErrorLaunchFailure);
SAME(SAN_COOPERATIVE, cudaErrorCooperativeLaunchTooLarge);
SAME(SAN_NOT_SUPPORTED, cudaErrorNotSupported);
SAME(SAN_CAPTURE, cudaErrorStreamCaptureUnsupported);
SAME(SAN_NO_CAPTURE, cudaErrorStreamCaptureUnmatched);
SAME(SAN_UPDATE, cudaErrorGraphExecUpdateFailure);

int main(void)
{
	puts("100%: the types of the runtime agree with cuda_runtime_api.h");
	puts("1 passed, 0 failed, 0 skipped");
	return 0;
}
#else
int main(void)
{
	puts("SKIP: no headers of CUDA 13 are installed");
	puts("0 passed, 0 failed, 1 skipped");
	return 0;
}
#endif
