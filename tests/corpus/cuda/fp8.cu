/* SPDX-License-Identifier: MIT */
// Conversions between fp8 (e4m3, e5m2), half, bf16, float and double.
// archs: 75 80 90a 100a 120a
#include <cuda_fp8.h>

extern "C" __global__ void to_fp8(const float *f, const __half2 *h, unsigned *out)
{
	int i = threadIdx.x;
	__nv_fp8_e4m3 a(f[i]);
	__nv_fp8_e5m2 b(f[i + 1]);
	__nv_fp8x2_e4m3 c(h[i]);
	__nv_fp8x4_e5m2 d(make_float4(f[i], f[i + 1], f[i + 2], f[i + 3]));
	out[i] = a.__x | b.__x << 8 | c.__x << 16;
	out[i + 32] = d.__x;
}

extern "C" __global__ void from_fp8(const __nv_fp8_e4m3 *a, const __nv_fp8x2_e5m2 *b, const __nv_fp8x4_e4m3 *c, float *out)
{
	int i = threadIdx.x;
	float2 two = static_cast<float2>(b[i]);
	float4 four = static_cast<float4>(c[i]);
	out[i] = static_cast<float>(a[i]) + two.x * two.y + four.x + four.y + four.z * four.w;
}
