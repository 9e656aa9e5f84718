/* SPDX-License-Identifier: MIT */
// C = A * B, bf16 with sums in f32, row-major: a ring of cp.async stages, ldmatrix, mma.sync; any m, n and k that are multiples of 8.
// archs: 80 120a
#include <cuda_bf16.h>

enum { BM = 64, BN = 64, BK = 32, STAGES = 3, THREADS = 128 };

struct Stage {
	__nv_bfloat16 a[BM * BK], b[BK * BN];
};

static __device__ __forceinline__ unsigned address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Bytes outside the matrix become zeros.
static __device__ __forceinline__ void copy16(void *to, const void *from, bool inside)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

// Pieces of 16 bytes, moved about in each row so that neither copies nor ldmatrix meet in a bank.
static __device__ __forceinline__ int in_a(int row, int piece)
{
	return row * BK + (piece ^ (row >> 1 & 3)) * 8;
}

static __device__ __forceinline__ int in_b(int row, int piece)
{
	return row * BN + (piece ^ (row & 7)) * 8;
}

static __device__ void load(Stage &s, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int row0, int col0, int k0, int m, int n, int k)
{
	for (int i = threadIdx.x; i < BM * BK / 8; i += THREADS) {
		int r = i / (BK / 8), piece = i % (BK / 8), row = row0 + r, at = k0 + piece * 8;
		bool inside = row < m && at < k;
		copy16(s.a + in_a(r, piece), inside ? a + row * k + at : a, inside);
	}
	for (int i = threadIdx.x; i < BK * BN / 8; i += THREADS) {
		int r = i / (BN / 8), piece = i % (BN / 8), row = k0 + r, at = col0 + piece * 8;
		bool inside = row < k && at < n;
		copy16(s.b + in_b(r, piece), inside ? b + row * n + at : b, inside);
	}
}

static __device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const void *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(p)) : "memory");
}

static __device__ __forceinline__ void ldmatrix_trans(unsigned (&r)[4], const void *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(p)) : "memory");
}

static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A warp makes 32 x 32 of the block's 64 x 64.
extern "C" __global__ void __launch_bounds__(THREADS) gemm_ampere(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int m, int n, int k)
{
	__shared__ __align__(128) Stage ring[STAGES];
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
	int wm = (warp >> 1) * 32, wn = (warp & 1) * 32, steps = (k + BK - 1) / BK;
	float d[2][4][4] = {};
	for (int s = 0; s < STAGES - 1; ++s) {
		if (s < steps)
			load(ring[s], a, b, row0, col0, s * BK, m, n, k);
		asm volatile("cp.async.commit_group;" ::: "memory");
	}
	for (int step = 0; step < steps; ++step) {
		asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
		__syncthreads();
		if (step + STAGES - 1 < steps)
			load(ring[(step + STAGES - 1) % STAGES], a, b, row0, col0, (step + STAGES - 1) * BK, m, n, k);
		asm volatile("cp.async.commit_group;" ::: "memory");
		const Stage &s = ring[step % STAGES];
#pragma unroll
		for (int kk = 0; kk < BK; kk += 16) {
			unsigned fa[2][4], fb[2][4];
			for (int i = 0; i < 2; ++i)
				ldmatrix(fa[i], s.a + in_a(wm + i * 16 + (lane & 15), kk / 8 + (lane >> 4)));
			for (int j = 0; j < 2; ++j)
				ldmatrix_trans(fb[j], s.b + in_b(kk + (lane & 15), (wn + j * 16) / 8 + (lane >> 4)));
			for (int i = 0; i < 2; ++i)
				for (int j = 0; j < 4; ++j)
					mma(d[i][j], fa[i], fb[j / 2][(j & 1) * 2], fb[j / 2][(j & 1) * 2 + 1]);
		}
	}
	for (int i = 0; i < 2; ++i)
		for (int j = 0; j < 4; ++j)
			for (int h = 0; h < 2; ++h) {
				int row = row0 + wm + i * 16 + h * 8 + lane / 4, col = col0 + wn + j * 8 + (lane & 3) * 2;
				if (row < m && col < n)
					*reinterpret_cast<float2 *>(c + row * n + col) = make_float2(d[i][j][h * 2], d[i][j][h * 2 + 1]);
			}
}
