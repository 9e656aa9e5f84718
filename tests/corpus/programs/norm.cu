/* SPDX-License-Identifier: MIT */
// Rows of a matrix: layer normalisation by a block, softmax by a warp that reads each row once.
// archs: 80 120a
// variants: O0 G
#include <cuda_fp16.h>

static __device__ __forceinline__ float2 both_sums(float2 v)
{
	for (int d = 16; d > 0; d >>= 1) {
		v.x += __shfl_xor_sync(0xffffffff, v.x, d);
		v.y += __shfl_xor_sync(0xffffffff, v.y, d);
	}
	return v;
}

extern "C" __global__ void __launch_bounds__(128) layer_norm(const __half *in, const float *gain, const float *bias, __half *out, int n,
	float eps)
{
	extern __shared__ float2 kept[];
	__shared__ float2 part[4];
	const __half2 *row = reinterpret_cast<const __half2 *>(in + static_cast<long long>(blockIdx.x) * n);
	__half2 *to = reinterpret_cast<__half2 *>(out + static_cast<long long>(blockIdx.x) * n);
	float2 sums = {0.0f, 0.0f};
	for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
		float2 v = __half22float2(row[i]);
		kept[i] = v;
		sums.x += v.x + v.y;
		sums.y += v.x * v.x + v.y * v.y;
	}
	sums = both_sums(sums);
	if ((threadIdx.x & 31) == 0)
		part[threadIdx.x >> 5] = sums;
	__syncthreads();
	sums = part[0];
	for (int i = 1; i < 4; ++i) {
		sums.x += part[i].x;
		sums.y += part[i].y;
	}
	float mean = sums.x / n, scale = rsqrtf(sums.y / n - mean * mean + eps);
	for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
		float2 g = reinterpret_cast<const float2 *>(gain)[i], b = reinterpret_cast<const float2 *>(bias)[i], v = kept[i];
		to[i] = __floats2half2_rn((v.x - mean) * scale * g.x + b.x, (v.y - mean) * scale * g.y + b.y);
	}
}

// The largest element so far, and the sum of exponentials against it, go on together.
extern "C" __global__ void __launch_bounds__(128) softmax_rows(const float *in, float *out, int rows, int n)
{
	int r = blockIdx.x * (blockDim.x / 32) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
	if (r >= rows)
		return;
	const float *row = in + static_cast<long long>(r) * n;
	float most = -INFINITY, sum = 0.0f;
	for (int i = lane; i < n; i += 32) {
		float v = row[i], next = fmaxf(most, v);
		sum = sum * __expf(most - next) + __expf(v - next);
		most = next;
	}
	for (int d = 16; d > 0; d >>= 1) {
		float other = __shfl_xor_sync(0xffffffff, most, d), more = __shfl_xor_sync(0xffffffff, sum, d), next = fmaxf(most, other);
		sum = (most == -INFINITY ? 0.0f : sum * __expf(most - next)) + (other == -INFINITY ? 0.0f : more * __expf(other - next));
		most = next;
	}
	for (int i = lane; i < n; i += 32)
		out[static_cast<long long>(r) * n + i] = __expf(row[i] - most) / sum;
}
