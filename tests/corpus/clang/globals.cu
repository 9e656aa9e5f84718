/* SPDX-License-Identifier: MIT */
// Variables of every space with initialisers, strings and pointers, and a dynamic shared array.
// archs: 70 75
#include "device.h"

struct Entry {
	const char *name;
	int *where;
	float values[3];
	bool flag;
};

__device__ int numbers[2][3] = {{1, -2, 3}, {4}};
__device__ const char text[] = "tab\tquote\"";
__device__ Entry entries[2] = {{"first", &numbers[1][1], {0.5f, -1.0f}, true}, {text, numbers[0], {}, false}};
__constant__ double weights[4] = {1.0, 0.5, 0.25, 1e100};
__device__ unsigned long long masks[] = {~0ull, 1ull << 40};
__device__ int *indirect[2] = {&numbers[0][2], numbers[1]};
extern __shared__ int dynamic[];

extern "C" __global__ void globals(float *out, int i)
{
	int local[9];
	for (int k = 0; k < 9; ++k)
		local[k] = k * i;
	dynamic[tid_x] = local[i % 9];
	__syncthreads();
	const Entry &e = entries[i & 1];
	out[tid_x] = e.name[i] + *e.where + e.values[i % 3] + weights[i & 3] + dynamic[0] + masks[e.flag] + *indirect[i & 1];
}
