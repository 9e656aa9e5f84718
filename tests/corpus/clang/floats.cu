/* SPDX-License-Identifier: MIT */
// Half, float and double: rounding and approximate builtins, conversions, comparisons, constants.
// archs: 70 75
#include "device.h"

extern "C" __global__ void floats(const float *a, const double *d, float *out, double *dout)
{
	float x = a[tid_x];
	double y = d[tid_x];
	float r = __nvvm_sin_approx_f(x) + __nvvm_ex2_approx_f(x) + __nvvm_sqrt_rn_f(x) + __nvvm_rcp_approx_ftz_d(y);
	r += __nvvm_fma_rz_f(x, x, 0.1f) + __nvvm_div_rp_f(x, 3.0f) + __nvvm_fmin_f(x, -0.0f) + __nvvm_floor_f(x) + __nvvm_fabs_f(x);
	r += __nvvm_lg2_approx_ftz_f(x) + __nvvm_rsqrt_approx_f(x) + __nvvm_saturate_f(x) + __nvvm_add_rp_f(x, 1e-40f);
	out[tid_x] = x != x ? __builtin_inff() : x >= 1.0f || !(x < -2.0f) ? r : static_cast<float>(static_cast<unsigned char>(x));
	dout[tid_x] = __nvvm_mul_rm_d(y, y) + static_cast<long long>(y) + static_cast<int>(x) + __nvvm_d2i_rn(y) + __nvvm_ceil_d(y);
}

extern "C" __global__ void halves(const __fp16 *a, __fp16 *out)
{
	float v = a[tid_x];
	out[tid_x] = v * v + 0.5f;
}
