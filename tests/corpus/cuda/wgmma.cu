/* SPDX-License-Identifier: MIT */
// Warpgroup matrix products through inline PTX, with register reallocation between a producer and a consumer.
// archs: 90a

static __device__ unsigned long long descriptor(const void *tile, unsigned lead, unsigned stride)
{
	unsigned long long a = static_cast<unsigned>(__cvta_generic_to_shared(tile));
	return (a & 0x3ffff) >> 4 | static_cast<unsigned long long>(lead >> 4) << 16 | static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}

extern "C" __global__ void __launch_bounds__(128) wgmma_half(const uint4 *a, const uint4 *b, float *out)
{
	__shared__ alignas(1024) uint4 sa[64 * 8], sb[16 * 8];
	for (int i = threadIdx.x; i < 64 * 8; i += 128)
		sa[i] = a[i];
	sb[threadIdx.x] = b[threadIdx.x];
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	float d[8];
	unsigned long long da = descriptor(sa, 16, 1024), db = descriptor(sb, 16, 1024);
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
	for (int k = 0; k < 4; ++k)
		asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %10, 0;\n\t"
			"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;\n\t}"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
			: "l"(da + 2 * k), "l"(db + 2 * k), "r"(k));
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
	asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
	for (int i = 0; i < 8; ++i)
		out[threadIdx.x * 8 + i] = d[i];
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_mixed(const uint4 *b, const unsigned *a, float *out, int *iout)
{
	__shared__ alignas(1024) uint4 sb[512];
	if (threadIdx.x >= 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		for (int i = threadIdx.x - 128; i < 512; i += 128)
			sb[i] = b[i];
		asm volatile("fence.proxy.async.shared::cta;\n\tbar.arrive 1, 256;" ::: "memory");
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
		asm volatile("bar.sync 1, 256;" ::: "memory");
		unsigned long long db = descriptor(sb, 16, 1024);
		float d[4] = {0, 0, 0, 0};
		int e[4] = {0, 0, 0, 0};
		unsigned r[4];
		for (int i = 0; i < 4; ++i)
			r[i] = a[threadIdx.x * 4 + i];
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
		asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, -1, 1, 1;"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(db));
		asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1;"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(db));
		asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite {%0, %1, %2, %3}, %4, %5, 1;"
			: "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3]) : "l"(db + 64), "l"(db));
		asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
		for (int i = 0; i < 4; ++i) {
			out[threadIdx.x * 4 + i] = d[i];
			iout[threadIdx.x * 4 + i] = e[i];
		}
	}
}
