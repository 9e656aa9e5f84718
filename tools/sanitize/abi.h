/* SPDX-License-Identifier: MIT */
/*
 * The types of the CUDA Runtime API (release 13) that its calls take, declared here so that no header of CUDA is needed.
 * tests/sanitize/test_abi.c compares sizes and places of fields with CUDA's headers where they are installed.  Enumerations
 * are int or unsigned in CUDA's ABI.
 */
#ifndef CPTX_SANITIZE_ABI_H
#define CPTX_SANITIZE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rt_dim3 {
	unsigned x, y, z;
} rt_dim3;

typedef struct rt_extent {
	size_t width, height, depth;
} rt_extent;

typedef struct rt_pos {
	size_t x, y, z;
} rt_pos;

typedef struct rt_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
} rt_pitched;

typedef struct rt_format { /* bits of each channel */
	int x, y, z, w, kind;
} rt_format;

typedef struct rt_resource {
	int type;
	union {
		struct san_array *array; /* and mipmapped ones */
		struct {
			void *at;
			rt_format format;
			size_t size; /* bytes */
		} linear;
		struct {
			void *at;
			rt_format format;
			size_t width, height, pitch;
		} rows;
		int reserved[32];
	} res;
	unsigned flags;
} rt_resource;

typedef struct rt_sampler {
	int outside[3], linear, as_fraction, srgb;
	float border[4];
	int normalized;
	unsigned anisotropy;
	int mip_linear;
	float mip_bias, mip_least, mip_most;
	int no_trilinear_optimization, seamless_cube;
} rt_sampler;

/* CUDA_RESOURCE_DESC and what belongs to it: the driver has other types. */
typedef struct dr_resource {
	int type;
	union {
		struct san_array *array;
		struct {
			uint64_t at;
			int format;
			unsigned channels;
			size_t size;
		} linear;
		struct {
			uint64_t at;
			int format;
			unsigned channels;
			size_t width, height, pitch;
		} rows;
		int reserved[32];
	} res;
	unsigned flags;
} dr_resource;

typedef struct dr_sampler {
	int outside[3], linear;
	unsigned flags, anisotropy;
	int mip_linear;
	float mip_bias, mip_least, mip_most, border[4];
	int reserved[12];
} dr_sampler;

typedef struct dr_array {
	size_t width, height;
	int format;
	unsigned channels;
} dr_array;

typedef struct dr_array3d {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
} dr_array3d;

typedef struct dr_side2d {
	size_t x, y; /* x in bytes */
	int type;
	void *host;
	uint64_t device;
	struct san_array *array;
	size_t pitch;
} dr_side2d;

typedef struct dr_copy2d {
	dr_side2d src, dst;
	size_t width, height; /* width in bytes */
} dr_copy2d;

typedef struct dr_side3d {
	size_t x, y, z, level;
	int type;
	void *host;
	uint64_t device;
	struct san_array *array;
	void *reserved;
	size_t pitch, height;
} dr_side3d;

typedef struct dr_copy3d {
	dr_side3d src, dst;
	size_t width, height, depth;
} dr_copy3d;

typedef struct rt_copy3d {
	void *src_array;
	rt_pos src_pos;
	rt_pitched src;
	void *dst_array;
	rt_pos dst_pos;
	rt_pitched dst;
	rt_extent extent;
	int kind;
} rt_copy3d;

typedef struct rt_launch_attr {
	unsigned id;
	char pad[4];
	union {
		char pad[64];
		rt_dim3 cluster;
		int cooperative, overlap;
	} value;
} rt_launch_attr;

typedef struct rt_launch_config {
	rt_dim3 grid, block;
	size_t smem;
	struct san_stream *stream;
	const rt_launch_attr *attrs;
	unsigned nattrs;
} rt_launch_config;

/* CUlaunchConfig, whose attributes are those of the runtime. */
typedef struct dr_launch_config {
	unsigned grid[3], block[3], smem;
	struct san_stream *stream;
	const rt_launch_attr *attrs;
	unsigned nattrs;
} dr_launch_config;

typedef struct rt_pointer_attributes {
	int type, device;
	void *device_pointer, *host_pointer;
	long reserved[8];
} rt_pointer_attributes;

typedef struct rt_func_attributes {
	size_t shared_bytes, const_bytes, local_bytes;
	int max_threads, regs, ptx_version, binary_version, cache_mode, max_dyn_smem, carveout, cluster_must_be_set;
	int cluster[3], cluster_policy, non_portable_cluster, reserved[16];
} rt_func_attributes;

typedef struct rt_kernel_node {
	void *func;
	rt_dim3 grid, block;
	unsigned smem;
	void **params, **extra;
} rt_kernel_node;

/* CUDA_KERNEL_NODE_PARAMS, whose older form is that of the runtime. */
typedef struct dr_kernel_node {
	rt_kernel_node as;
	void *kernel, *context; /* kernel: where as.func is NULL */
} dr_kernel_node;

typedef struct rt_alloc_node {
	char pool[88];
	const void *access;
	size_t naccess, size;
	void *at;
} rt_alloc_node;

typedef struct rt_set_node {
	void *dst;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
} rt_set_node;

typedef struct rt_host_node {
	void (*fn)(void *user);
	void *user;
} rt_host_node;

/* cudaGraphNodeParams and CUgraphNodeParams: parameters of any node; `of` may be longer. */
typedef struct rt_any_node {
	int type, reserved[3];
	union {
		dr_kernel_node kernel;
		struct {
			int flags, reserved[3];
			rt_copy3d copy;
		} copy;
		struct {
			int flags, reserved;
			void *context;
			dr_copy3d copy;
		} driver_copy;
		rt_set_node set;
		rt_host_node host;
		struct san_graph *child;
	} of;
} rt_any_node;

typedef struct rt_instantiate {
	unsigned long long flags;
	struct san_stream *upload;
	void *failed_at;
	int result;
} rt_instantiate;

typedef struct rt_location {
	int type, id;
} rt_location;

typedef struct rt_device_prop {
	char name[256], uuid[16], luid[8];
	unsigned luid_mask;
	size_t global_memory, smem_per_block;
	int regs_per_block, warp;
	size_t pitch;
	int max_threads, max_block[3], max_grid[3];
	size_t const_memory;
	int major, minor;
	size_t texture_alignment, texture_pitch_alignment;
	int sms, integrated, can_map_host, textures_and_surfaces[39];
	size_t surface_alignment;
	int concurrent_kernels, ecc, pci[3], tcc, copy_engines, unified_addressing, bus_width, l2, persisting_l2, threads_per_sm;
	int stream_priorities, global_l1, local_l1;
	size_t smem_per_sm;
	int regs_per_sm, managed, multi_gpu_board, multi_gpu_group, host_atomics, pageable_access, concurrent_managed;
	int preemption, host_pointer_for_registered, cooperative;
	size_t smem_optin;
	int pageable_by_host_tables, direct_managed_access, blocks_per_sm, access_window;
	size_t reserved_smem;
	int host_register, sparse_arrays, read_only_register, timeline_semaphores, memory_pools, rdma;
	unsigned rdma_flush;
	int rdma_order;
	unsigned pool_handles;
	int deferred_arrays, ipc_events, clusters, unified_functions, numa_config, numa_id, mps, host_numa_id;
	unsigned gpu_pci_device, gpu_pci_subsystem;
	int multinode_ipc, reserved[56];
} rt_device_prop;

enum { RT_HOST_TO_HOST, RT_HOST_TO_DEVICE, RT_DEVICE_TO_HOST, RT_DEVICE_TO_DEVICE, RT_DEFAULT };
enum { RT_UNREGISTERED, RT_HOST, RT_DEVICE, RT_MANAGED };
enum { RT_ATTR_COOPERATIVE = 2, RT_ATTR_CLUSTER = 4, RT_ATTR_OVERLAP = 6 };
enum { RT_SIGNED, RT_UNSIGNED, RT_FLOAT };
enum { RT_ARRAY_LAYERED = 1, RT_ARRAY_CUBE = 4 };
enum { RT_OF_ARRAY, RT_OF_MIPMAPPED, RT_OF_LINEAR, RT_OF_ROWS };
enum { DR_HOST = 1, DR_DEVICE, DR_ARRAY, DR_UNIFIED };
enum { DR_AS_INTEGER = 1, DR_NORMALIZED = 2, DR_SRGB = 16 };
enum { RT_FUNC_MAX_DYN_SMEM = 8 };
/* Results of an update of a graph. */
enum { RT_UPDATE_TOPOLOGY = 2, RT_UPDATE_TYPE };
/* Types of a graph's nodes. */
enum {
	RT_NODE_KERNEL,
	RT_NODE_COPY,
	RT_NODE_SET,
	RT_NODE_HOST,
	RT_NODE_GRAPH,
	RT_NODE_EMPTY,
	RT_NODE_ALLOC = 10,
	RT_NODE_FREE
};

#endif
