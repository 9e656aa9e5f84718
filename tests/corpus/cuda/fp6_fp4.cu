/* SPDX-License-Identifier: MIT */
// Conversions between fp6 and fp4 formats, scales in e8m0, and half or float.
// archs: 75 80 90a 100a 120a
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void to_narrow(const float2 *f, unsigned *out)
{
	int i = threadIdx.x;
	__nv_fp6x2_storage_t a = __nv_cvt_float2_to_fp6x2(f[i], __NV_E2M3, cudaRoundNearest);
	__nv_fp6x2_storage_t b = __nv_cvt_float2_to_fp6x2(f[i], __NV_E3M2, cudaRoundNearest);
	__nv_fp4x2_storage_t c = __nv_cvt_float2_to_fp4x2(f[i], __NV_E2M1, cudaRoundNearest);
	__nv_fp8x2_storage_t d = __nv_cvt_float2_to_e8m0x2(f[i], __NV_SATFINITE, cudaRoundPosInf);
	out[2 * i] = a | static_cast<unsigned>(b) << 16;
	out[2 * i + 1] = c | static_cast<unsigned>(d) << 16;
}

extern "C" __global__ void from_narrow(const __nv_fp6x2_storage_t *six, const __nv_fp4x2_storage_t *four, __half2 *out)
{
	int i = threadIdx.x;
	__half2 a(__nv_cvt_fp6x2_to_halfraw2(six[i], __NV_E2M3));
	__half2 b(__nv_cvt_fp6x2_to_halfraw2(six[i], __NV_E3M2));
	__half2 c(__nv_cvt_fp4x2_to_halfraw2(four[i], __NV_E2M1));
	out[i] = __hfma2(a, b, c);
}
