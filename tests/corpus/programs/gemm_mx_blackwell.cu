/* SPDX-License-Identifier: MIT */
// C = A * B^T of e4m3 with a scale for each 32 elements of a row: tcgen05.mma with block_scale; tcgen05.cp moves the scales to tensor memory.
// archs: 100a
#include "tcgen05.cuh"

enum { BM = 128, BN = 128, BK = 128, COLUMNS = 256, SCALES_A = 128, SCALES_B = 160 };

// The scales of 128 rows and four steps of 32, as tensor memory wants them: rows r, r + 32, r + 64, r + 96 beside each other.
static __device__ __forceinline__ void load_scales(unsigned *to, const unsigned char *from, int row0, int step, int k)
{
	to[(threadIdx.x & 31) * 4 + (threadIdx.x >> 5)] = reinterpret_cast<const unsigned *>(from + (row0 + threadIdx.x) * (k / 32))[step];
}

// Rows of 16 bytes, 8 of them behind each other.
static __device__ __forceinline__ unsigned long long scale_descriptor(const void *tile)
{
	return (address(tile) & 0x3ffff) >> 4 | static_cast<unsigned long long>(128 >> 4) << 16 | static_cast<unsigned long long>(128 >> 4) << 32 |
		1ull << 46;
}

extern "C" __global__ void __launch_bounds__(128) gemm_mx_blackwell(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
	const unsigned char *sa, const unsigned char *sb, float *c, int n, int k)
{
	__shared__ __align__(1024) unsigned char ta[BM * BK], tb[BN * BK];
	__shared__ __align__(128) unsigned scale_a[128], scale_b[128];
	__shared__ unsigned long long loaded, done;
	__shared__ unsigned base;
	int warp = threadIdx.x / 32, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
	if (threadIdx.x == 0) {
		barrier_init(&loaded, 1);
		barrier_init(&done, 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	if (warp == 0)
		asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(address(&base)), "r"(COLUMNS) : "memory");
	fence_before();
	__syncthreads();
	fence_after();
	unsigned d = base;
	const unsigned kind = BN / 8 << 17 | 1 << 23 | BM / 16 << 24;
	for (int step = 0; step < k / BK; ++step) {
		load_scales(scale_a, sa, row0, step, k);
		load_scales(scale_b, sb, col0, step, k);
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		__syncthreads();
		if (warp == 0 && elected()) {
			barrier_expect(&loaded, sizeof ta + sizeof tb);
			load_tile(ta, &map_a, step * BK, row0, &loaded);
			load_tile(tb, &map_b, step * BK, col0, &loaded);
			barrier_wait(&loaded, step & 1);
			fence_after();
			asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" :: "r"(d + SCALES_A), "l"(scale_descriptor(scale_a)) : "memory");
			asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" :: "r"(d + SCALES_B), "l"(scale_descriptor(scale_b)) : "memory");
			for (unsigned kk = 0; kk < BK / 32; ++kk)
				asm volatile("{\n\t.reg .pred more;\n\tsetp.ne.b32 more, %4, 0;\n\t"
					"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], more;\n\t}"
					:: "r"(d), "l"(tile_descriptor(ta) + 2 * kk), "l"(tile_descriptor(tb) + 2 * kk), "r"(kind | kk << 4 | kk << 29), "r"(step | kk),
					"r"(d + SCALES_A + (kk << 30)), "r"(d + SCALES_B + (kk << 30)) : "memory");
			asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(address(&done)) : "memory");
		}
		__syncwarp();
		barrier_wait(&done, step & 1);
	}
	fence_after();
	store_rows(c + (row0 + threadIdx.x) * n + col0, d + (warp * 32 << 16), BN);
	fence_before();
	__syncthreads();
	fence_after();
	if (warp == 0)
		asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;\n\ttcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" :: "r"(d), "r"(COLUMNS));
}
