/* SPDX-License-Identifier: MIT */
// Atomics and fences of libcu++.
// archs: 75 80 90a 100a 120a
#include <cuda/atomic>

extern "C" __global__ void ordered(cuda::atomic<int, cuda::thread_scope_device> *a, unsigned *w, int *out)
{
	int seen = a->load(cuda::std::memory_order_acquire);
	cuda::atomic_ref<unsigned, cuda::thread_scope_system> ref(*w);
	seen += ref.fetch_or(8u, cuda::std::memory_order_relaxed);
	cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, cuda::thread_scope_device);
	out[threadIdx.x] = seen;
}
