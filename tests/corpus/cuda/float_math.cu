/* SPDX-License-Identifier: MIT */
// Single precision: accurate and approximate functions, roundings, saturation, flushing and denormals.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void accurate(const float *a, float *out)
{
	int i = threadIdx.x;
	float x = a[i];
	out[i] = sinf(x) + cosf(x) * expf(x) + logf(x) + powf(x, 2.5f) + tanhf(x) + sqrtf(x) / x + atan2f(x, 2.0f) + fmodf(x, 0.3f);
}

extern "C" __global__ void fast(const float *a, float *out)
{
	int i = threadIdx.x;
	float x = a[i], s, c;
	__sincosf(x, &s, &c);
	out[i] = __sinf(x) + __cosf(x) * __expf(x) + __logf(x) + __powf(x, 2.5f) + __fdividef(s, c) + __tanf(x) + __exp10f(x) +
		__saturatef(x) + __frsqrt_rn(x) + rsqrtf(x) + exp2f(x) + __log2f(x);
}

extern "C" __global__ void rounded(const float *a, float *out, int *k)
{
	int i = threadIdx.x;
	float x = a[i], y = a[i + 1];
	float r = __fadd_rn(x, y) + __fsub_ru(x, y) * __fmul_rd(x, y) + __fmaf_rz(x, y, 0.1f) + __fdiv_ru(x, y) + __fsqrt_rz(x) + __frcp_rd(y);
	r += fminf(x, y) + fmaxf(x, y) + fabsf(x) + floorf(x) + rintf(y) + truncf(x) + roundf(y) + copysignf(x, y);
	k[i] = __float2int_rn(x) + __float2int_rz(y) + static_cast<int>(lrintf(x)) + __float_as_int(y) + (isnan(x) ? 1 : signbit(y) ? 2 : 3);
	out[i] = isfinite(r) ? r : __int_as_float(0x7fffffff) + 1e-42f;
	int e;
	out[i] += frexpf(x, &e);
	out[i] += ldexpf(y, e);
}
