/* SPDX-License-Identifier: MIT */
// Templates, launch bounds, register limits, cluster limits and unrolling.
// archs: 75 80 90a 100a 120a

template <int TILE, class T>
__global__ void __launch_bounds__(TILE * 4, 2) reduce(const T *in, T *out, int n)
{
	__shared__ T part[TILE * 4];
	T sum = T();
#pragma unroll 4
	for (int i = threadIdx.x; i < n; i += TILE * 4)
		sum += in[i];
	part[threadIdx.x] = sum;
	__syncthreads();
#pragma unroll
	for (int d = TILE * 2; d > 0; d /= 2) {
		if (threadIdx.x < d)
			part[threadIdx.x] += part[threadIdx.x + d];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		*out = part[0];
}

template __global__ void reduce<32, float>(const float *, float *, int);
template __global__ void reduce<8, unsigned long long>(const unsigned long long *, unsigned long long *, int);

extern "C" __global__ void __maxnreg__(48) few_registers(const float *a, float *out)
{
	float v[8];
#pragma unroll 1
	for (int i = 0; i < 8; ++i)
		v[i] = a[i * 32 + threadIdx.x];
	float s = 0;
#pragma unroll
	for (int i = 0; i < 8; ++i)
		s += v[i] * v[7 - i];
	out[threadIdx.x] = s;
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((128, 1, 1), (2, 1, 1)) fixed_block(int *out)
{
	out[blockIdx.x * 128 + threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void __launch_bounds__(64, 1, 4) bounded_cluster(int *out)
{
	out[threadIdx.x] = gridDim.x;
}
#endif

// Overlap with the kernel before, where the target has it.
extern "C" __global__ void overlapped(int *out)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
	out[threadIdx.x] += 1;
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;");
#endif
}
