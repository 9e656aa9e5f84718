/* SPDX-License-Identifier: MIT */
// Volatile accesses, read-only loads, cache operators and hints, prefetches and inline PTX of loads and stores.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void cached(const float4 *__restrict__ a, const int *__restrict__ b, const double *c, int *out, float4 *fout)
{
	int i = threadIdx.x;
	float4 v = __ldg(a + i);
	int r = __ldg(b + i) + __ldcg(b + i + 1) + __ldca(b + 2) + __ldcs(b + 3) + __ldlu(b + 4) + __ldcv(b + 5);
	r += static_cast<int>(__ldg(c + i)) + __ldg(reinterpret_cast<const short *>(b) + i);
	__stwb(out + i, r);
	__stcg(out + 32 + i, r);
	__stcs(out + 64 + i, r);
	__stwt(out + 96 + i, r);
	__stcs(fout + i, v);
}

extern "C" __global__ void spin(volatile int *flag, volatile double *data, int *out)
{
	volatile __shared__ int s[32];
	s[threadIdx.x] = *flag;
	while (*flag == 0)
		;
	data[1] = data[0] + s[31 - threadIdx.x];
	out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void hinted(const int *in, int *out)
{
	int a, b;
	unsigned long long c, d;
	asm volatile("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(a) : "l"(in + threadIdx.x));
	asm volatile("ld.acquire.gpu.global.s32 %0, [%1+-4];" : "=r"(b) : "l"(in + threadIdx.x) : "memory");
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2 + 16];" : "=l"(c), "=l"(d) : "l"(in) : "memory");
	asm volatile("prefetch.global.L2 [%0];\n\tprefetchu.L1 [%0];" :: "l"(in + 64));
	asm volatile("st.release.cta.global.u32 [%0], %1;" :: "l"(out), "r"(a) : "memory");
	asm volatile("st.global.L1::evict_last.b32 [%0+0x10], %1;" :: "l"(out), "r"(b) : "memory");
	asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;\n\tfence.acq_rel.gpu;\n\tfence.sc.cta;" :: "l"(out) : "memory");
#if __CUDA_ARCH__ >= 800
	int e;
	unsigned long long policy;
	asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(policy));
	asm volatile("ld.global.L2::cache_hint.L2::128B.b32 %0, [%1], %2;" : "=r"(e) : "l"(in), "l"(policy));
	asm volatile("st.global.L2::cache_hint.b32 [%0], %1, %2;" :: "l"(out + 9), "r"(e), "l"(policy) : "memory");
	asm volatile("applypriority.global.L2::evict_normal [%0], 128;\n\tdiscard.global.L2 [%0], 128;" :: "l"(out + 64) : "memory");
#endif
	out[threadIdx.x + 8] = a + b + static_cast<int>(c + d);
}
