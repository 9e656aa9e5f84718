// The algorithms of examples/blackwell in plain CUDA C with inline PTX, to count what nvcc makes of them (bench/sass_counts.py).
#pragma once
#include <stdint.h>

// One K tile in a turn, as the examples have it; -DUNROLLED: as many as nvcc likes.
#ifdef UNROLLED
#define ONE_A_TURN
#else
#define ONE_A_TURN _Pragma("unroll 1")
#endif

struct alignas(64) Map {
	char bytes[128];
};

enum { ROWS = 128, BK = 64, BLOCK_BYTES = ROWS * BK * 2 };

__device__ inline uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ inline bool elect()
{
	uint32_t one;
	asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(one));
	return one;
}

__device__ inline uint32_t cta_rank()
{
	uint32_t r;
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
	return r;
}

__device__ inline void barrier_init(uint32_t bar, uint32_t count)
{
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count));
}

__device__ inline void wait(uint32_t bar, uint32_t parity)
{
	asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra done; bra again; done: }" ::"r"(bar),
	             "r"(parity)
	             : "memory");
}

__device__ inline void wait_cluster(uint32_t bar, uint32_t parity)
{
	asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @p bra done; bra again; done: }" ::"r"(bar),
	             "r"(parity)
	             : "memory");
}

__device__ inline void expect(uint32_t bar, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ inline uint32_t of_first_cta(uint32_t address)
{
	uint32_t there;
	asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(address));
	return there;
}

template <int CTAS> __device__ inline void load(uint32_t to, const Map *map, uint32_t x, uint32_t y, uint32_t bar)
{
	if (CTAS == 2)
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2, %3}], "
		             "[%4];" ::"r"(to),
		             "l"(map), "r"(x), "r"(y), "r"(bar)
		             : "memory");
	else
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
		             "l"(map), "r"(x), "r"(y), "r"(bar)
		             : "memory");
}

template <int CTAS> __device__ inline void mma(uint32_t d, uint64_t a, uint64_t b, uint32_t idesc, uint32_t adds)
{
	if (CTAS == 2)
		asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
		             "l"(a), "l"(b), "r"(idesc), "r"(adds));
	else
		asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d),
		             "l"(a), "l"(b), "r"(idesc), "r"(adds));
}

template <int CTAS> __device__ inline void commit(uint32_t bar)
{
	if (CTAS == 2)
		asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(bar),
		             "h"((uint16_t)3)
		             : "memory");
	else
		asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar) : "memory");
}

// K-major, 128-byte swizzle: groups of 8 rows are 1024 bytes apart.
__device__ inline uint64_t descriptor(uint32_t address)
{
	return (address >> 4 & 0x3fff) | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

template <int CTAS> __device__ inline void barrier()
{
	if (CTAS == 2)
		asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
	else
		__syncthreads();
}

template <int CTAS> __device__ inline uint32_t allocate(uint32_t *slot, uint32_t columns, bool mine)
{
	if (mine && CTAS == 2)
		asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1; tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::"r"(
						 shared(slot)),
		             "r"(columns)
		             : "memory");
	else if (mine)
		asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1; tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(
						 shared(slot)),
		             "r"(columns)
		             : "memory");
	barrier<CTAS>();
	return *(volatile uint32_t *)slot;
}

template <int CTAS> __device__ inline void deallocate(uint32_t address, uint32_t columns, bool mine)
{
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
	barrier<CTAS>();
	asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
	if (mine && CTAS == 2)
		asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
	else if (mine)
		asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}

__device__ inline void fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// 32 columns of this warp's lanes.
__device__ inline void read(uint32_t from, uint32_t v[32])
{
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
	             "%25,%26,%27,%28,%29,%30,%31}, [%32];"
	             : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]), "=r"(v[8]),
	               "=r"(v[9]), "=r"(v[10]), "=r"(v[11]), "=r"(v[12]), "=r"(v[13]), "=r"(v[14]), "=r"(v[15]), "=r"(v[16]),
	               "=r"(v[17]), "=r"(v[18]), "=r"(v[19]), "=r"(v[20]), "=r"(v[21]), "=r"(v[22]), "=r"(v[23]), "=r"(v[24]),
	               "=r"(v[25]), "=r"(v[26]), "=r"(v[27]), "=r"(v[28]), "=r"(v[29]), "=r"(v[30]), "=r"(v[31])
	             : "r"(from));
	asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

__device__ inline uint32_t pack(uint32_t low, uint32_t high)
{
	uint32_t r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
	return r;
}

// A place in the ring of stages.
template <int STAGES> struct Ring {
	uint32_t stage = 0, parity = 0;
	__device__ void next()
	{
		if (++stage == STAGES)
			stage = 0, parity ^= 1;
	}
};

// What a CTA has in shared memory.
template <int STAGES> struct Barriers {
	uint64_t full[STAGES], empty[STAGES];
};

template <int CTAS, int STAGES, int BN>
__device__ inline void load_all(Ring<STAGES> &at, const Map *a, const Map *b, uint32_t smem_a, uint32_t smem_b,
                                Barriers<STAGES> *bars, uint32_t row, uint32_t col, uint32_t K, uint32_t rank)
{
	constexpr uint32_t b_bytes = BN / CTAS * BK * 2;
	ONE_A_TURN
	for (uint32_t k = 0; k < K; k += BK) {
		uint32_t full = shared(&bars->full[at.stage]);
		wait(shared(&bars->empty[at.stage]), at.parity ^ 1);
		if (CTAS == 1 || rank == 0)
			expect(full, CTAS * (BLOCK_BYTES + b_bytes));
		uint32_t bar = CTAS == 2 ? of_first_cta(full) : full;
		load<CTAS>(smem_a + at.stage * BLOCK_BYTES, a, k, row, bar);
		load<CTAS>(smem_b + at.stage * b_bytes, b, k, col, bar);
		at.next();
	}
}

template <int CTAS, int STAGES, int BN>
__device__ inline void multiply_all(Ring<STAGES> &at, uint32_t d, uint32_t smem_a, uint32_t smem_b, Barriers<STAGES> *bars, uint32_t K)
{
	constexpr uint32_t b_bytes = BN / CTAS * BK * 2;
	constexpr uint32_t idesc = 1 << 4 | 1 << 7 | 1 << 10 | BN / 8 << 17 | CTAS * ROWS / 16 << 24;
	ONE_A_TURN
	for (uint32_t k = 0; k < K; k += BK) {
		wait(shared(&bars->full[at.stage]), at.parity);
		uint64_t a = descriptor(smem_a + at.stage * BLOCK_BYTES), b = descriptor(smem_b + at.stage * b_bytes);
		for (uint32_t i = 0; i < BK / 16; i++)
			mma<CTAS>(d, a + 2 * i, b + 2 * i, idesc, k + i > 0);
		commit<CTAS>(shared(&bars->empty[at.stage]));
		at.next();
	}
}

template <int BN, typename Done>
__device__ inline void bring_out(uint32_t acc, uint16_t *D, uint32_t row0, uint32_t col0, uint32_t M, uint32_t N, Done done)
{
	uint32_t quarter = threadIdx.x / 32 % 4, row = row0 + quarter * 32 + threadIdx.x % 32;
	uint32_t limit = row < M ? N : 0;
	uint16_t *to = D + (uint64_t)row * N + col0;
#pragma unroll
	for (uint32_t c = 0; c < BN; c += 32) {
		uint32_t v[32];
		read(acc + (quarter << 21) + c, v);
		if (c + 32 == BN)
			done();
#pragma unroll
		for (uint32_t i = 0; i < 32; i += 8)
			if (col0 + c + i < limit)
				*(uint4 *)(to + c + i) =
					make_uint4(pack(v[i], v[i + 1]), pack(v[i + 2], v[i + 3]), pack(v[i + 4], v[i + 5]), pack(v[i + 6], v[i + 7]));
	}
}
