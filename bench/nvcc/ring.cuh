// v4 (one CTA) and v5 (a pair): a tile for each, by a ring of stages and warps with roles.
#include "tcgen05.cuh"

template <int CTAS, int STAGES, int BN>
__device__ inline void ring_gemm(const Map *a, const Map *b, uint16_t *D, uint32_t M, uint32_t N, uint32_t K)
{
	extern __shared__ __align__(1024) uint8_t smem[];
	__shared__ Barriers<STAGES> bars;
	__shared__ uint64_t done;
	__shared__ uint32_t slot;
	uint32_t smem_a = shared(smem), smem_b = smem_a + STAGES * BLOCK_BYTES, warp = threadIdx.x / 32;
	uint32_t rank = CTAS == 2 ? cta_rank() : 0, row = blockIdx.x * ROWS, col = blockIdx.y * BN;

	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++)
			barrier_init(shared(&bars.full[i]), 1), barrier_init(shared(&bars.empty[i]), 1);
		barrier_init(shared(&done), 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	uint32_t acc = allocate<CTAS>(&slot, BN, warp == 1);
	if (warp == 0 && elect()) {
		Ring<STAGES> at;
		load_all<CTAS, STAGES, BN>(at, a, b, smem_a, smem_b, &bars, row, col + rank * (BN / CTAS), K, rank);
	}
	if (warp == 1 && rank == 0 && elect()) {
		Ring<STAGES> at;
		multiply_all<CTAS, STAGES, BN>(at, acc, smem_a, smem_b, &bars, K);
		commit<CTAS>(shared(&done));
	}
	__syncwarp();
	wait(shared(&done), 0);
	fence_after();
	bring_out<BN>(acc, D, row, col, M, N, [] {});
	deallocate<CTAS>(acc, BN, warp == 1);
}
