/* SPDX-License-Identifier: MIT */
// The barrier and the pipeline of libcu++ with an asynchronous copy.
// archs: 75 80 90a 100a 120a
#include <cuda/barrier>
#include <cuda/pipeline>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void with_barrier(int *data)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ Barrier bar;
	__shared__ int tile[128];
	if (threadIdx.x == 0)
		init(&bar, blockDim.x);
	__syncthreads();
	tile[threadIdx.x] = data[threadIdx.x];
	bar.arrive_and_wait();
	data[threadIdx.x] = tile[127 - threadIdx.x];
}

extern "C" __global__ void with_pipeline(const float *in, float *out, int rounds)
{
	__shared__ alignas(16) float ring[2][128];
	cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
	float sum = 0.0f;
	for (int i = 0; i < rounds; ++i) {
		pipe.producer_acquire();
		cuda::memcpy_async(&ring[i & 1][threadIdx.x], in + i * 128 + threadIdx.x, sizeof(float), pipe);
		pipe.producer_commit();
		pipe.consumer_wait();
		sum += ring[i & 1][threadIdx.x];
		pipe.consumer_release();
	}
	out[threadIdx.x] = sum;
}
