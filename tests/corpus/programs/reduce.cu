/* SPDX-License-Identifier: MIT */
// Sums, extremes and counts of an array: vector loads, warp shuffles, atomics; the last block adds up what the others left.
// archs: 80 120a
// variants: O0 G
#include <cuda_runtime.h>

__device__ unsigned blocks_done;

static __device__ __forceinline__ float warp_sum(float v)
{
	for (int d = 16; d > 0; d >>= 1)
		v += __shfl_down_sync(0xffffffff, v, d);
	return v;
}

static __device__ float block_sum(float v)
{
	__shared__ float part[32];
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	v = warp_sum(v);
	if (lane == 0)
		part[warp] = v;
	__syncthreads();
	v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0.0f;
	if (warp == 0)
		v = warp_sum(v);
	__syncthreads();
	return v;
}

extern "C" __global__ void __launch_bounds__(256) reduce_sum(const float *in, float *partial, float *out, int n)
{
	__shared__ bool last;
	float sum = 0.0f;
	const float4 *wide = reinterpret_cast<const float4 *>(in);
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
		float4 v = wide[i];
		sum += (v.x + v.y) + (v.z + v.w);
	}
	int tail = (n & ~3) + threadIdx.x;
	if (blockIdx.x == 0 && tail < n)
		sum += in[tail];
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		partial[blockIdx.x] = sum;
		__threadfence();
		last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (!last)
		return;
	__threadfence();
	sum = 0.0f;
	for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
		sum += __ldcg(partial + i);
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		*out = sum;
}

// Integers: the smallest, the largest, and how many are even.  stats starts as { INT_MAX, INT_MIN, 0 }.
extern "C" __global__ void __launch_bounds__(128) reduce_stats(const int *in, int *stats, int n)
{
	int least = 0x7fffffff, most = -0x7fffffff - 1, even = 0;
	for (int base = blockIdx.x * blockDim.x; base < n; base += gridDim.x * blockDim.x) {
		int i = base + threadIdx.x;
		bool there = i < n;
		int v = there ? in[i] : 0;
		even += __popc(__ballot_sync(0xffffffff, there && (v & 1) == 0));
		if (there) {
			least = min(least, v);
			most = max(most, v);
		}
	}
	least = __reduce_min_sync(0xffffffff, least);
	most = __reduce_max_sync(0xffffffff, most);
	if ((threadIdx.x & 31) == 0) {
		atomicMin(stats, least);
		atomicMax(stats + 1, most);
		atomicAdd(stats + 2, even);
	}
}
