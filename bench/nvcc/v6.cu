/* SPDX-License-Identifier: MIT */
// Persistent pairs of CTAs with two accumulators.
#include "tcgen05.cuh"

enum { STAGES = 6, BN = 256, READERS = 4, LOADER = READERS, MULTIPLIER, WARPS, BUFFERS = 2 };

__device__ inline uint32_t row_of(uint32_t tile, uint32_t M, uint32_t rank) { return (tile % ((M + 2 * ROWS - 1) / (2 * ROWS)) * 2 + rank) * ROWS; }
__device__ inline uint32_t col_of(uint32_t tile, uint32_t M) { return tile / ((M + 2 * ROWS - 1) / (2 * ROWS)) * BN; }

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(WARPS * 32, 1)
	gemm(const __grid_constant__ Map a, const __grid_constant__ Map b, uint16_t *D, uint32_t M, uint32_t N, uint32_t K)
{
	extern __shared__ __align__(1024) uint8_t smem[];
	__shared__ Barriers<STAGES> bars;
	__shared__ Barriers<BUFFERS> accs;
	__shared__ uint32_t slot;
	uint32_t smem_a = shared(smem), smem_b = smem_a + STAGES * BLOCK_BYTES, warp = threadIdx.x / 32, rank = cta_rank();
	uint32_t tiles = (M + 2 * ROWS - 1) / (2 * ROWS) * ((N + BN - 1) / BN), first = blockIdx.x / 2, step = gridDim.x / 2;

	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++)
			barrier_init(shared(&bars.full[i]), 1), barrier_init(shared(&bars.empty[i]), 1);
		for (int i = 0; i < BUFFERS; i++)
			barrier_init(shared(&accs.full[i]), 1), barrier_init(shared(&accs.empty[i]), 2 * READERS);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	uint32_t acc = allocate<2>(&slot, BUFFERS * BN, warp == MULTIPLIER);
	if (warp == LOADER && elect()) {
		Ring<STAGES> at;
		for (uint32_t tile = first; tile < tiles; tile += step)
			load_all<2, STAGES, BN>(at, &a, &b, smem_a, smem_b, &bars, row_of(tile, M, rank), col_of(tile, M) + rank * (BN / 2), K, rank);
	}
	if (warp == MULTIPLIER && rank == 0 && elect()) {
		Ring<STAGES> at;
		Ring<BUFFERS> out;
		for (uint32_t tile = first; tile < tiles; tile += step) {
			wait_cluster(shared(&accs.empty[out.stage]), out.parity ^ 1);
			fence_after();
			multiply_all<2, STAGES, BN>(at, acc + out.stage * BN, smem_a, smem_b, &bars, K);
			commit<2>(shared(&accs.full[out.stage]));
			out.next();
		}
	}
	if (warp < READERS) {
		Ring<BUFFERS> in;
		bool one = elect();
		for (uint32_t tile = first; tile < tiles; tile += step) {
			uint32_t empty = of_first_cta(shared(&accs.empty[in.stage]));
			wait(shared(&accs.full[in.stage]), in.parity);
			fence_after();
			bring_out<BN>(acc + in.stage * BN, D, row_of(tile, M, rank), col_of(tile, M), M, N, [&] {
				asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
				if (one)
					asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(empty) : "memory");
			});
			in.next();
		}
	}
	deallocate<2>(acc, BUFFERS * BN, warp == MULTIPLIER);
}
