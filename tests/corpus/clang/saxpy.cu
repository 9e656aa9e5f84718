/* SPDX-License-Identifier: MIT */
// A grid-stride loop, a launch bound, float and double.
// archs: 70 75
#include "device.h"

extern "C" __global__ void __launch_bounds__(256, 2) saxpy(int n, float a, const float *x, float *y)
{
	for (int i = ctaid_x * ntid_x + tid_x; i < n; i += ntid_x * nctaid_x)
		y[i] = a * x[i] + y[i];
}

extern "C" __global__ void daxpby(long long n, double a, double b, const double *__restrict__ x, double *__restrict__ y)
{
	long long i = static_cast<long long>(ctaid_x) * ntid_x + tid_x;
	if (i < n)
		y[i] = a * x[i] + b / y[i];
}
