/* SPDX-License-Identifier: MIT */
// A tiled matrix product, inline PTX and a matrix product of the tensor cores.
// archs: 70 75
#include "device.h"

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float sa[16][16], sb[16][16];
	int x = tid_x, y = tid_y, row = ctaid_y * 16 + y, column = ctaid_x * 16 + x;
	float sum = 0;
	for (int t = 0; t < n; t += 16) {
		sa[y][x] = a[row * n + t + x];
		sb[y][x] = b[(t + y) * n + column];
		__syncthreads();
		for (int k = 0; k < 16; ++k)
			sum += sa[y][k] * sb[k][x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

extern "C" __global__ void inline_ptx(const int *in, int *out)
{
	int v, w;
	asm("{ .reg .pred %%q; setp.gt.s32 %%q, %1, 0; selp.s32 %0, %1, -1, %%q; }" : "=r"(v) : "r"(in[tid_x]));
	asm volatile("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(w) : "r"(v), "r"(in[0]), "n"(12));
	out[tid_x] = w;
}

extern "C" __global__ void tensor(const int *a, const int *b, float *c)
{
	int fa[8], fb[8];
	float fc[8] = {}, fd[8];
	__hmma_m16n16k16_ld_a(fa, a, 16, 0);
	__hmma_m16n16k16_ld_b(fb, b, 16, 1);
	__hmma_m16n16k16_mma_f32f32(fd, fa, fb, fc, 1, 0);
	__hmma_m16n16k16_st_c_f32(c, fd, 16, 0);
}
