/* SPDX-License-Identifier: MIT */
// C = A * B^T, bf16 with sums in f32, both K-major: one CTA makes 128 x 64 by TMA and tcgen05.mma, one warp for each, and all four store.
// archs: 100a
#include "tcgen05.cuh"

enum { BM = 128, BN = 64, BK = 64, STAGES = 4 };

struct Tiles {
	__nv_bfloat16 a[STAGES][BM * BK], b[STAGES][BN * BK];
};

extern "C" __global__ void __launch_bounds__(128) gemm_blackwell(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
	float *c, int n, int k)
{
	extern __shared__ __align__(1024) unsigned char pool[];
	__shared__ unsigned long long full[STAGES], empty[STAGES], done;
	__shared__ unsigned base;
	Tiles &tiles = *reinterpret_cast<Tiles *>(pool);
	int warp = threadIdx.x / 32, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN, steps = k / BK;
	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; ++s) {
			barrier_init(&full[s], 1);
			barrier_init(&empty[s], 1);
		}
		barrier_init(&done, 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	if (warp == 0) {
		asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(address(&base)), "r"(BN) : "memory");
		asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
	}
	fence_before();
	__syncthreads();
	fence_after();
	unsigned d = base;
	if (warp == 0 && elected()) {
		for (int step = 0; step < steps; ++step) {
			int s = step % STAGES;
			barrier_wait(&empty[s], (step / STAGES & 1) ^ 1);
			barrier_expect(&full[s], sizeof tiles.a[s] + sizeof tiles.b[s]);
			load_tile(tiles.a[s], &map_a, step * BK, row0, &full[s]);
			load_tile(tiles.b[s], &map_b, step * BK, col0, &full[s]);
		}
	} else if (warp == 1 && elected()) {
		const unsigned kind = 1 << 4 | 1 << 7 | 1 << 10 | BN / 8 << 17 | BM / 16 << 24;
		for (int step = 0; step < steps; ++step) {
			int s = step % STAGES;
			barrier_wait(&full[s], step / STAGES & 1);
			fence_after();
			unsigned long long da = tile_descriptor(tiles.a[s]), db = tile_descriptor(tiles.b[s]);
			for (int kk = 0; kk < BK / 16; ++kk)
				asm volatile("{\n\t.reg .pred more;\n\tsetp.ne.b32 more, %4, 0;\n\ttcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, more;\n\t}"
					:: "r"(d), "l"(da + 2 * kk), "l"(db + 2 * kk), "r"(kind), "r"(step | kk) : "memory");
			asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(address(&empty[s])) : "memory");
		}
		asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(address(&done)) : "memory");
	}
	__syncwarp();
	barrier_wait(&done, 0);
	fence_after();
	store_rows(c + (row0 + threadIdx.x) * n + col0, d + (warp * 32 << 16), BN);
	fence_before();
	__syncthreads();
	fence_after();
	if (warp == 0)
		asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(d), "r"(BN));
}
