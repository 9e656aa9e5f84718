/* SPDX-License-Identifier: MIT */
/* What nvcc makes of a program: <<<...>>>, printf, a symbol, managed memory; with an argument a race, "bounds" an address. */
#include <cstdio>
#include <cstring>

__device__ int threads_seen;
__managed__ int managed = 1;

__global__ void count(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		x[i] = 2 * x[i] + managed;
	if (i == 0)
		printf("hello from a kernel of %d\n", n);
	atomicAdd(&threads_seen, 1);
}

__global__ void turn(float *x)
{
	__shared__ float kept[256];
	kept[threadIdx.x] = x[threadIdx.x];
	x[threadIdx.x] = kept[255 - threadIdx.x]; /* no __syncthreads() in front of it */
}

int main(int argc, char **argv)
{
	float h[256], *d;
	int seen = 0;
	for (int i = 0; i < 256; i++)
		h[i] = (float)i;
	cudaMalloc(&d, sizeof h);
	cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
	managed = 3;
	if (argc > 1 && !strcmp(argv[1], "race"))
		turn<<<1, 256>>>(d);
	count<<<2, 128>>>(d, argc > 1 && !strcmp(argv[1], "bounds") ? 300 : 256);
	if (argc > 1 && !strcmp(argv[1], "bounds"))
		count<<<3, 128>>>(d, 300);
	cudaError_t e = cudaDeviceSynchronize();
	cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
	cudaMemcpyFromSymbol(&seen, threads_seen, sizeof seen);
	printf("%s, %g, %d threads\n", cudaGetErrorName(e), h[5], seen);
	return 3;
}
