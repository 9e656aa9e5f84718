/* SPDX-License-Identifier: MIT */
/* Kernels that launch kernels: nvcc -rdc=true, linked with cudadevrt. */
#include <cstdio>

__global__ void child(int *p, int n, double d)
{
	p[threadIdx.x] = p[threadIdx.x] * 2 + n;
	if (!threadIdx.x)
		printf("child %d %g\n", n, d);
}

/* Each thread of a level launches the next one; the last level counts. */
__global__ void level(int *count, int left)
{
	if (left)
		level<<<1, 2>>>(count, left - 1);
	else
		atomicAdd(count, 1);
}

__global__ void parent(int *p)
{
	cudaStream_t s;
	void *q = nullptr;

	if (threadIdx.x)
		return;
	child<<<1, 64>>>(p, 5, 1.5);
	cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	child<<<1, 32, 16, s>>>(p, 7, 2.5);
	cudaStreamDestroy(s);
	level<<<1, 2>>>(p + 64, 3);
	bool ok = cudaMalloc(&q, 16) == cudaSuccess && q && cudaFree(q) == cudaSuccess;
	printf("parent %d %d\n", (int)cudaGetLastError(), ok);
}

int main()
{
	int h[65], *p;

	cudaMalloc(&p, sizeof h);
	cudaMemset(p, 0, sizeof h);
	parent<<<1, 32>>>(p);
	cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
	printf("%d %d %d %s\n", h[0], h[63], h[64], cudaGetErrorName(cudaGetLastError()));
	return 3;
}
