/* SPDX-License-Identifier: MIT */
// The same functions under -use_fast_math and -fmad=false.
// archs: 75 80 90a 100a 120a
// flags: -use_fast_math -fmad=false

extern "C" __global__ void flagged(const float *a, const double *d, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = a[i];
	out[i] = sinf(x) + expf(x) / logf(x) + powf(x, 0.3f) + sqrtf(x) * x + 1.0f / x + static_cast<float>(d[i] * d[i] + 3.0) + tanf(x);
}
