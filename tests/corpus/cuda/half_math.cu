/* SPDX-License-Identifier: MIT */
// Half precision arithmetic, comparisons, conversions, reductions and functions, scalar and packed.
// archs: 75 80 90a 100a 120a
#include <cuda_fp16.h>

extern "C" __global__ void half_basic(const __half *a, const __half *b, __half *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	__half x = a[i], y = b[i];
	__half r = __hfma(x, y, __hsub(x, y));
	r = __hgt(x, y) ? __hneg(r) : __habs(r);
	r = __hadd(r, __hmul_sat(x, y));
	if (__hisnan(r) || __hle(r, __float2half(-4.0f)))
		r = __hmax(x, __hmin(y, r));
	out[i] = r / (x + y);
}

extern "C" __global__ void half_packed(const __half2 *a, const __half2 *b, __half2 *out)
{
	int i = threadIdx.x;
	__half2 x = a[i], y = b[i];
	__half2 r = __hfma2(x, y, __hadd2(x, y));
	r = __hmul2(r, __hgt2(x, y));
	r = __hfma2_sat(r, x, __highs2half2(x, y));
	if (__hbne2(x, y))
		r = __lowhigh2highlow(r);
	out[i] = __hfma2_relu(r, __hmin2(x, y), __hmax2_nan(x, y));
}

extern "C" __global__ void half_functions(const __half *a, float *f, int *k)
{
	int i = threadIdx.x;
	__half x = a[i];
	f[i] = __half2float(hexp(x)) + __half2float(hlog2(x)) + __half2float(hsqrt(x)) + __half2float(hrsqrt(x)) +
		__half2float(hrcp(x)) + __half2float(hsin(x)) + __half2float(htanh(x)) + __half2float(hfloor(x));
	k[i] = __half2int_rz(x) + __half2uint_rn(x) + static_cast<int>(__half2ll_ru(x)) + __half2short_rd(x);
	f[i] += __half2float(__int2half_rn(i)) + __half2float(__ull2half_rz(i)) + __half2float(__double2half(f[i]));
	f[i] += __half2float(__shfl_xor_sync(~0u, x, 1));
}
