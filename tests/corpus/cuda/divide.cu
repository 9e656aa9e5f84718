/* SPDX-License-Identifier: MIT */
// Division and remainder by variables and constants, for every width and sign.
// archs: 75 80 90a 100a 120a

template <class T>
static __device__ void divide(const T *a, const T *b, T *out, int i)
{
	T x = a[i], y = b[i];
	out[i] = x / y + x % y * 2 + x / 7 + x % 10 + x / 16 + x % 8;
}

extern "C" __global__ void divide32(const int *a, const int *b, int *out, const unsigned *u, const unsigned *v, unsigned *uout)
{
	divide(a, b, out, threadIdx.x);
	divide(u, v, uout, threadIdx.x);
}

extern "C" __global__ void divide64(const long long *a, const long long *b, long long *out, const unsigned long long *u,
	const unsigned long long *v, unsigned long long *uout)
{
	divide(a, b, out, threadIdx.x);
	divide(u, v, uout, threadIdx.x);
}

extern "C" __global__ void divide16(const short *a, const short *b, short *out, const unsigned char *u, const unsigned char *v,
	unsigned char *uout)
{
	divide(a, b, out, threadIdx.x);
	divide(u, v, uout, threadIdx.x);
}
