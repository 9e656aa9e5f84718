/* SPDX-License-Identifier: MIT */
// Fifth generation tensor cores through inline PTX: alloc, cp, mma, commit, wait, ld, st, shift, fences, dealloc.
// archs: 100a

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void wait_parity(unsigned bar, unsigned parity)
{
	asm volatile(
		"{\n\t.reg .pred p;\nWAIT_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n\t@!p bra.uni WAIT_%=;\n\t}"
		:: "r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) tc_product(unsigned long long da, unsigned long long db, unsigned idesc, float *out)
{
	__shared__ unsigned base;
	__shared__ alignas(8) unsigned long long bar;
	unsigned at = shared_address(&bar);
	if (threadIdx.x < 32) {
		asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(shared_address(&base)), "r"(64) : "memory");
		asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
	}
	if (threadIdx.x == 0)
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
	__syncthreads();
	asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
	unsigned d = base, elected;
	asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(elected));
	if (threadIdx.x < 32 && elected) {
		for (unsigned k = 0; k < 4; ++k)
			asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\ttcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}"
				:: "r"(d), "l"(da + 2 * k), "l"(db + 2 * k), "r"(idesc), "r"(k) : "memory");
		asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
			"tcgen05.mma.cta_group::1.kind::tf32 [%0], [%1], %2, %3, {%5, %5, %5, %5}, p;\n\t"
			"tcgen05.mma.ws.cta_group::1.kind::i8.collector::b0::fill [%0], %2, %2, %3, p;\n\t}"
			:: "r"(d), "r"(d + 32), "l"(db), "r"(idesc), "r"(1), "r"(0) : "memory");
		asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(at) : "memory");
	}
	wait_parity(at, 0);
	unsigned v[8];
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
		: "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "r"(d));
	asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
	for (int i = 0; i < 8; ++i)
		out[threadIdx.x * 8 + i] = __uint_as_float(v[i]);
	asm volatile("tcgen05.st.sync.aligned.16x64b.x2.b32 [%0], {%1, %2};" :: "r"(d + 8), "r"(v[0]), "r"(v[1]) : "memory");
	asm volatile("tcgen05.st.sync.aligned.16x32bx2.x1.unpack::16b.b32 [%0], 4, {%1};" :: "r"(d + 16), "r"(v[2]) : "memory");
	asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
	__syncthreads();
	if (threadIdx.x < 32)
		asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(d), "r"(64));
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) tc_pair(unsigned long long da, unsigned long long db, unsigned idesc, unsigned d,
	unsigned bar, unsigned *out)
{
	asm volatile("tcgen05.cp.cta_group::2.128x256b [%0], %1;" :: "r"(d), "l"(da) : "memory");
	asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" :: "r"(d), "l"(db) : "memory");
	asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::02_13.b8x16.b6x16_p32 [%0], %1;" :: "r"(d), "l"(db) : "memory");
	asm volatile("tcgen05.shift.cta_group::2.down [%0];" :: "r"(d) : "memory");
	asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
		"tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], p;\n\t"
		"tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%5], [%6], p;\n\t"
		"tcgen05.mma.sp.cta_group::2.kind::f8f6f4 [%0], %1, %2, [%5], %3, p;\n\t}"
		:: "r"(d), "l"(da), "l"(db), "r"(idesc), "r"(1), "r"(d + 64), "r"(d + 96) : "memory");
	asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
		:: "r"(bar), "h"(static_cast<short>(3)) : "memory");
	wait_parity(bar, 0);
	unsigned v[4], w;
	asm volatile("tcgen05.ld.sync.aligned.16x128b.x2.pack::16b.b32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(d));
	asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%0}, [%1], 2;" : "=r"(w) : "r"(d));
	asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
	out[threadIdx.x] = v[0] + v[1] + v[2] + v[3] + w;
}
