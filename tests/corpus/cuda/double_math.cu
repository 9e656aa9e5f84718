/* SPDX-License-Identifier: MIT */
// Double precision: arithmetic with every rounding, conversions, and functions of the mathematics library.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void double_basic(const double *a, const double *b, double *out)
{
	int i = threadIdx.x;
	double x = a[i], y = b[i];
	double r = __dadd_rn(x, y) + __dsub_rz(x, y) * __dmul_ru(x, y) + __fma_rd(x, y, 1.5);
	r += __ddiv_rn(x, y) + __dsqrt_rn(x) + __drcp_rz(y) + rsqrt(x) + fmin(x, y) + fmax(x, 2.0) + fabs(y);
	r += floor(x) + ceil(y) + trunc(x) + rint(y) + copysign(x, y);
	out[i] = x > y ? r : isnan(x) || isinf(y) ? 0.1 : -r;
}

extern "C" __global__ void double_convert(const double *a, float *f, long long *l, unsigned *u)
{
	int i = threadIdx.x;
	double x = a[i];
	f[i] = __double2float_rd(x) + __uint2float_rz(u[i]) + __ll2float_ru(l[i]) + static_cast<float>(u[i] & 0xff);
	l[i] = __double2ll_rn(x) + static_cast<long long>(x) + __float2ll_rd(f[i]) + __double_as_longlong(x);
	u[i] = __double2uint_rz(x) + __float2uint_ru(f[i]) + static_cast<unsigned char>(x) + __double2hiint(x);
	f[i] += static_cast<float>(__hiloint2double(i, 5) + __int2double_rn(i) + __ull2double_rd(u[i]));
}

extern "C" __global__ void double_functions(const double *a, double *out)
{
	int i = threadIdx.x;
	double x = a[i];
	out[i] = exp(x) + log(x) + cbrt(x) + fmod(x, 3.0) + ldexp(x, 3) + hypot(x, 2.0) + atan(x) + erf(x);
}

extern "C" __global__ void double_trig(const double *a, double *out)
{
	double s, c;
	sincos(a[threadIdx.x], &s, &c);
	out[threadIdx.x] = s * c;
}
