/* SPDX-License-Identifier: MIT */
// A histogram of bytes: counts of each warp in shared memory, added up by the block and then in global memory.
// archs: 80 120a
// variants: O0 G
#include <cuda_runtime.h>

enum { BINS = 256, WARPS = 4 };

extern "C" __global__ void __launch_bounds__(WARPS * 32) byte_histogram(const unsigned char *in, unsigned *bins, int n)
{
	__shared__ unsigned count[WARPS][BINS];
	unsigned *mine = count[threadIdx.x >> 5];
	for (int i = threadIdx.x; i < WARPS * BINS; i += blockDim.x)
		(&count[0][0])[i] = 0;
	__syncthreads();
	const uchar4 *four = reinterpret_cast<const uchar4 *>(in);
	int stride = gridDim.x * blockDim.x, at = blockIdx.x * blockDim.x + threadIdx.x;
	for (int i = at; i < n / 4; i += stride) {
		uchar4 v = four[i];
		atomicAdd(&mine[v.x], 1u);
		atomicAdd(&mine[v.y], 1u);
		atomicAdd(&mine[v.z], 1u);
		atomicAdd(&mine[v.w], 1u);
	}
	for (int i = (n & ~3) + at; i < n; i += stride)
		atomicAdd(&mine[in[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < BINS; i += blockDim.x) {
		unsigned sum = 0;
		for (int w = 0; w < WARPS; ++w)
			sum += count[w][i];
		if (sum)
			atomicAdd(&bins[i], sum);
	}
}
