/* SPDX-License-Identifier: MIT */
// C = A * B^T, bf16 with sums in f32, both K-major: two CTAs make 256 x 128 together; each loads half of A and half of B, one issues.
// archs: 100a
#include "tcgen05.cuh"

enum { BM = 256, BN = 128, BK = 64, STAGES = 3 };

struct Tiles {
	__nv_bfloat16 a[STAGES][BM / 2 * BK], b[STAGES][BN / 2 * BK];
};

// Counts its bytes in the first CTA's barrier, whichever CTA loads.
static __device__ __forceinline__ void load_half(void *to, const CUtensorMap *map, int x, int y, unsigned bar)
{
	asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		:: "r"(address(to)), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}

// All operations so far: an arrival at the barrier of both CTAs.
static __device__ __forceinline__ void commit_both(unsigned long long *bar)
{
	asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
		:: "r"(address(bar)), "h"(static_cast<short>(3)) : "memory");
}

static __device__ __forceinline__ void cluster_sync()
{
	asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) gemm_blackwell_pair(const __grid_constant__ CUtensorMap map_a,
	const __grid_constant__ CUtensorMap map_b, float *c, int n, int k)
{
	extern __shared__ __align__(1024) unsigned char pool[];
	__shared__ unsigned long long full[STAGES], empty[STAGES], done;
	__shared__ unsigned base;
	Tiles &tiles = *reinterpret_cast<Tiles *>(pool);
	unsigned rank;
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	int warp = threadIdx.x / 32, row0 = blockIdx.x / 2 * BM + rank * (BM / 2), col0 = blockIdx.y * BN, steps = k / BK;
	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; ++s) {
			barrier_init(&full[s], 1);
			barrier_init(&empty[s], 1);
		}
		barrier_init(&done, 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	if (warp == 0) {
		asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(address(&base)), "r"(BN) : "memory");
		asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
	}
	fence_before();
	cluster_sync();
	fence_after();
	unsigned d = base;
	if (warp == 0 && elected()) {
		for (int step = 0; step < steps; ++step) {
			int s = step % STAGES;
			unsigned bar;
			asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(bar) : "r"(address(&full[s])));
			barrier_wait(&empty[s], (step / STAGES & 1) ^ 1);
			if (rank == 0)
				barrier_expect(&full[s], 2 * (sizeof tiles.a[s] + sizeof tiles.b[s]));
			load_half(tiles.a[s], &map_a, step * BK, row0, bar);
			load_half(tiles.b[s], &map_b, step * BK, col0 + rank * (BN / 2), bar);
		}
	} else if (warp == 1 && rank == 0 && elected()) {
		const unsigned kind = 1 << 4 | 1 << 7 | 1 << 10 | BN / 8 << 17 | BM / 16 << 24;
		for (int step = 0; step < steps; ++step) {
			int s = step % STAGES;
			barrier_wait(&full[s], step / STAGES & 1);
			fence_after();
			unsigned long long da = tile_descriptor(tiles.a[s]), db = tile_descriptor(tiles.b[s]);
			for (int kk = 0; kk < BK / 16; ++kk)
				asm volatile("{\n\t.reg .pred more;\n\tsetp.ne.b32 more, %4, 0;\n\ttcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, more;\n\t}"
					:: "r"(d), "l"(da + 2 * kk), "l"(db + 2 * kk), "r"(kind), "r"(step | kk) : "memory");
			commit_both(&empty[s]);
		}
		commit_both(&done);
	}
	__syncwarp();
	barrier_wait(&done, 0);
	fence_after();
	store_rows(c + (row0 + threadIdx.x) * n + col0, d + (warp * 32 << 16), BN);
	fence_before();
	cluster_sync();
	fence_after();
	if (warp == 0)
		asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" :: "r"(d), "r"(BN));
}
