/* SPDX-License-Identifier: MIT */
// Vector loads and stores of every width and element type, aligned structs and unaligned tails.
// archs: 75 80 90a 100a 120a
#include <cuda_runtime.h>

struct __align__(16) Pixel {
	unsigned char r, g, b, a;
	float depth;
	short2 motion;
};

extern "C" __global__ void copy_f4(const float4 *__restrict__ in, float4 *__restrict__ out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		float4 v = in[i];
		out[n - 1 - i] = make_float4(v.w, v.z * 2.0f, v.y - v.x, v.x);
	}
}

extern "C" __global__ void copy_small(const char4 *c, const uchar2 *u, const short2 *s, const ushort4 *w, int4 *out)
{
	int i = threadIdx.x;
	char4 a = c[i];
	uchar2 b = u[i];
	short2 d = s[i];
	ushort4 e = w[i];
	out[i] = make_int4(a.x + b.y, a.y - d.x, a.z * e.w, a.w + b.x + d.y + e.x + e.y + e.z);
}

extern "C" __global__ void copy_wide(const double2 *d, const longlong2 *l, ulonglong2 *out, int3 *odd)
{
	int i = threadIdx.x;
	double2 a = d[i];
	longlong2 b = l[i];
	out[i] = make_ulonglong2(__double_as_longlong(a.x) ^ b.y, __double2ull_rz(a.y) + b.x);
	int3 o = odd[i];
	odd[i] = make_int3(o.z, o.x, o.y);
}

extern "C" __global__ void copy_256(const double4_32a *in, double4_32a *out, const longlong4_32a *more)
{
	int i = threadIdx.x;
	double4_32a v = in[i];
	longlong4_32a m = more[i];
	v.x += static_cast<double>(m.w);
	v.w *= 3.0;
	out[i] = v;
}

extern "C" __global__ void pixels(Pixel *p, const bool *mask, int n)
{
	__shared__ Pixel row[32];
	int i = threadIdx.x;
	row[i] = p[i];
	__syncthreads();
	Pixel q = row[31 - i];
	q.r = static_cast<unsigned char>(min(255, q.g + q.b));
	q.depth = mask[i] ? q.depth : -q.depth;
	q.motion.y = static_cast<short>(n);
	p[i] = q;
}
