/* SPDX-License-Identifier: MIT */
// Atomic operations of every kind, type and scope through the built-in functions.
// archs: 75 80 90a 100a 120a
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void atomics_int(int *g, unsigned *u, unsigned long long *w, long long *l)
{
	__shared__ int s[32];
	__shared__ unsigned long long sw;
	int t = threadIdx.x;
	s[t & 31] = 0;
	if (t == 0)
		sw = 0;
	__syncthreads();
	atomicAdd(&s[t & 31], t);
	atomicAdd(&sw, 3ull);
	int a = atomicAdd(g, 1) + atomicSub(g + 1, t) + atomicExch(g + 2, t) + atomicMin(g + 3, t) + atomicMax(g + 4, t);
	unsigned b = atomicInc(u, 17u) + atomicDec(u + 1, 19u) + atomicMin(u + 2, 5u) + atomicMax(u + 3, 6u);
	a += atomicCAS(g + 5, a, t) + atomicAnd(g + 6, 0xff) + atomicOr(g + 7, 0x10) + atomicXor(g + 8, 3);
	b += static_cast<unsigned>(atomicAdd(w, 5ull) + atomicExch(w + 1, 7ull) + atomicCAS(w + 2, 1ull, 2ull));
	b += static_cast<unsigned>(atomicMin(l, 4ll) + atomicMax(l + 1, 4ll) + atomicAnd(w + 3, 8ull) + atomicXor(w + 4, 9ull));
	__syncthreads();
	g[16 + t] = a + static_cast<int>(b) + atomicMax(&s[(t + 1) & 31], a) + static_cast<int>(sw);
}

extern "C" __global__ void atomics_float(float *f, double *d, __half2 *h2, __half *h, __nv_bfloat162 *b2, float *out)
{
	float old = atomicAdd(f, 1.5f) + atomicExch(f + 1, 2.0f);
	double oldd = atomicAdd(d, 0.25);
	__half2 oh2 = atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
	__half oh = atomicAdd(h, __float2half(0.5f));
	__nv_bfloat162 ob = atomicAdd(b2, __floats2bfloat162_rn(1.0f, 3.0f));
	atomicAdd(f + 2, old);
	out[threadIdx.x] = old + static_cast<float>(oldd) + __low2float(oh2) + __half2float(oh) + __high2float(ob);
#if __CUDA_ARCH__ >= 900
	float2 v2 = atomicAdd(reinterpret_cast<float2 *>(f + 4), make_float2(1.0f, 2.0f));
	float4 v4 = atomicAdd(reinterpret_cast<float4 *>(f + 8), make_float4(1.0f, 2.0f, 3.0f, 4.0f));
	out[threadIdx.x] += v2.y + v4.z;
#endif
}

extern "C" __global__ void atomics_scope(int *g, unsigned long long *w, double *d)
{
	int a = atomicAdd_block(g, 1) + atomicAdd_system(g + 1, 2) + atomicCAS_block(g + 2, 3, 4) + atomicCAS_system(g + 3, 5, 6);
	a += atomicExch_block(g + 4, 7) + atomicMin_system(g + 5, 8) + atomicMax_block(g + 6, 9) + atomicOr_system(g + 7, 10);
	atomicAdd_block(w, 11ull);
	atomicAdd_system(d, 12.0);
	atomicAnd_block(g + 8, a);
	atomicXor_system(g + 9, a);
	__threadfence_block();
	__threadfence();
	__threadfence_system();
	unsigned short *half_word = reinterpret_cast<unsigned short *>(g + 10);
	g[32] = atomicCAS(half_word, static_cast<unsigned short>(1), static_cast<unsigned short>(a));
}

// The scoped atomics that name an order.
extern "C" __global__ void atomics_order(int *g, unsigned long long *w)
{
	int v = __nv_atomic_load_n(g, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
	__nv_atomic_store_n(g + 1, v, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
	v += __nv_atomic_fetch_add(g + 2, 5, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_BLOCK);
	v += __nv_atomic_exchange_n(g + 3, v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
	unsigned long long want = 9;
	if (__nv_atomic_compare_exchange_n(w, &want, 10ull, false, __NV_ATOMIC_SEQ_CST, __NV_ATOMIC_RELAXED,
			__NV_THREAD_SCOPE_DEVICE))
		v += 1;
	v += __nv_atomic_fetch_min(g + 4, v, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
	__nv_atomic_fetch_or(g + 5, v, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM);
	__nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
	g[6] = v + static_cast<int>(want);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void atomics_128(__int128 *w, __int128 *out)
{
	__int128 old = atomicCAS(w, static_cast<__int128>(1), static_cast<__int128>(threadIdx.x) << 70);
	out[threadIdx.x] = old + atomicExch(w + 1, old);
}
#endif
