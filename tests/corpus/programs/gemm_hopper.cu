/* SPDX-License-Identifier: MIT */
// C = A * B^T, bf16 with sums in f32, both K-major: a warpgroup loads by TMA, two multiply by wgmma, with a ring of stages between.
// archs: 90a
#include "ptx.cuh"

enum { BM = 128, BN = 64, BK = 64, STAGES = 4 };

struct Tiles {
	__nv_bfloat16 a[STAGES][BM * BK], b[STAGES][BN * BK];
};

static __device__ __forceinline__ unsigned long long tile_descriptor(const void *tile)
{
	return (address(tile) & 0x3ffff) >> 4 | 1ull << 16 | static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

static __device__ __forceinline__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
		"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
		"+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
		"+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
		: "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(384) gemm_hopper(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
	float *c, int n, int k)
{
	extern __shared__ __align__(1024) unsigned char pool[];
	__shared__ unsigned long long full[STAGES], empty[STAGES];
	Tiles &tiles = *reinterpret_cast<Tiles *>(pool);
	int group = threadIdx.x / 128, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN, steps = k / BK;
	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; ++s) {
			barrier_init(&full[s], 1);
			barrier_init(&empty[s], 2);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	if (group == 0) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (threadIdx.x < 32 && elected())
			for (int step = 0; step < steps; ++step) {
				int s = step % STAGES;
				barrier_wait(&empty[s], (step / STAGES & 1) ^ 1);
				barrier_expect(&full[s], sizeof tiles.a[s] + sizeof tiles.b[s]);
				load_tile(tiles.a[s], &map_a, step * BK, row0, &full[s]);
				load_tile(tiles.b[s], &map_b, step * BK, col0, &full[s]);
			}
		return;
	}
	asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
	float d[32] = {};
	for (int step = 0; step < steps; ++step) {
		int s = step % STAGES;
		barrier_wait(&full[s], step / STAGES & 1);
		unsigned long long da = tile_descriptor(tiles.a[s] + (group - 1) * 64 * BK), db = tile_descriptor(tiles.b[s]);
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
		for (int kk = 0; kk < BK / 16; ++kk)
			multiply(d, da + 2 * kk, db + 2 * kk);
		asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
		if (step && threadIdx.x % 128 == 0)
			barrier_arrive(&empty[(step - 1) % STAGES]);
	}
	asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
	int warp = threadIdx.x / 32 % 4, lane = threadIdx.x & 31, row = row0 + (group - 1) * 64 + warp * 16 + lane / 4;
	for (int i = 0; i < BN / 8; ++i)
		for (int h = 0; h < 2; ++h)
			*reinterpret_cast<float2 *>(c + (row + h * 8) * n + col0 + i * 8 + (lane & 3) * 2) = make_float2(d[i * 4 + h * 2], d[i * 4 + h * 2 + 1]);
}
