/* SPDX-License-Identifier: MIT */
// Bfloat16 arithmetic, comparisons and conversions, scalar and packed.
// archs: 75 80 90a 100a 120a
#include <cuda_bf16.h>

extern "C" __global__ void bf16_norm(const __nv_bfloat16 *in, const __nv_bfloat16 *weight, __nv_bfloat16 *out, int n)
{
	float sum = 0.0f;
	for (int i = threadIdx.x; i < n; i += 32) {
		float v = __bfloat162float(in[i]);
		sum += v * v;
	}
	for (int d = 16; d > 0; d >>= 1)
		sum += __shfl_xor_sync(~0u, sum, d);
	float scale = rsqrtf(sum / n + 1e-5f);
	for (int i = threadIdx.x; i < n; i += 32)
		out[i] = __float2bfloat16_rn(__bfloat162float(in[i]) * scale * __bfloat162float(weight[i]));
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bf16_packed(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, int *k)
{
	int i = threadIdx.x;
	__nv_bfloat162 x = a[i], y = b[i];
	__nv_bfloat162 r = __hfma2(x, y, __hsub2(x, y));
	r = __hadd2(__hmax2(r, x), __hneg2(__habs2(y)));
	if (__hbgeu2(x, y))
		r = __hmul2(r, __float2bfloat162_rn(0.5f));
	out[i] = r;
	k[i] = __bfloat162int_rn(x.x) + __bfloat162uint_rz(y.x) + __bfloat16_as_short(hexp2(r.y));
}
#endif
