/* SPDX-License-Identifier: MIT */
// Clusters: cluster groups, distributed shared memory, cluster dimensions and barriers.
// archs: 90a 100a 120a
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbour(const int *in, int *out)
{
	__shared__ int mine[128];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned rank = cluster.block_rank();
	mine[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
	cluster.sync();
	const int *theirs = cluster.map_shared_rank(mine, rank ^ 1);
	out[blockIdx.x * 128 + threadIdx.x] = theirs[127 - threadIdx.x] + static_cast<int>(cluster.num_blocks());
	cluster.sync();
}

extern "C" __global__ void cluster_histogram(const unsigned char *in, int *bins, int n)
{
	extern __shared__ int part[];
	cg::cluster_group cluster = cg::this_cluster();
	int per_block = 256 / static_cast<int>(cluster.num_blocks());
	for (int i = threadIdx.x; i < per_block; i += blockDim.x)
		part[i] = 0;
	cluster.barrier_arrive();
	cluster.barrier_wait();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		int bin = in[i];
		atomicAdd(cluster.map_shared_rank(part, bin / per_block) + bin % per_block, 1);
	}
	cluster.sync();
	for (int i = threadIdx.x; i < per_block; i += blockDim.x)
		atomicAdd(&bins[cluster.block_rank() * per_block + i], part[i]);
}

extern "C" __global__ void __launch_bounds__(256, 1, 8) raw_cluster(unsigned *out)
{
	__shared__ unsigned cell;
	cell = threadIdx.x;
	unsigned rank, count, peer, value;
	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
	asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
	unsigned here = static_cast<unsigned>(__cvta_generic_to_shared(&cell));
	asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(here), "r"((rank + 1) % count));
	asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer) : "memory");
	asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
	out[threadIdx.x] = value;
}
