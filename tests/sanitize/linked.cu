/* SPDX-License-Identifier: MIT */
/* A program of two objects (nvcc -rdc=true): its kernel calls a function, by name and by pointer, and reads a variable of the
 * other one, linked_other.cu. */
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

extern __device__ int scaled(int x);
extern __device__ int factor;
typedef int (*step_fn)(int);
extern __device__ step_fn step;
static __device__ int kept = 1;
__constant__ int shift = 2;

__global__ void turn(int *x, int n)
{
	cg::grid_group grid = cg::this_grid();
	int i = grid.thread_rank();

	if (i < n)
		x[i] = scaled(i) + kept + (factor << shift);
	grid.sync();
	int other = x[n - 1 - i];
	grid.sync();
	x[i] = step(other);
	if (!i)
		printf("linked: %d\n", factor);
}

int set_factor(int to);

int main()
{
	int n = 256, *x, back[256], right = 0;
	void *args[] = { &x, &n };

	if (set_factor(5) || cudaMalloc(&x, sizeof back))
		return 2;
	cudaError_t e = cudaLaunchCooperativeKernel((void *)turn, dim3(4), dim3(64), args);
	cudaMemcpy(back, x, sizeof back, cudaMemcpyDeviceToHost);
	for (int i = 0; i < n; i++)
		right += back[i] == (n - 1 - i) * 5 + 1 + 20 + 1000;
	printf("%s, %d right\n", cudaGetErrorName(e), right);
	return right == n ? 3 : 1;
}
