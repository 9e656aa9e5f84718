/* SPDX-License-Identifier: MIT */
// C = A * B^T of e4m3 with a scale (a power of two) for each 32 elements of a row: mma.sync with block_scale, of consumer Blackwell.
// archs: 120a
#include <cuda_runtime.h>

enum { BM = 64, BN = 64, BK = 128, THREADS = 128 };

static __device__ __forceinline__ unsigned address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes, whose pieces of 16 bytes are moved about.
static __device__ __forceinline__ unsigned place(const unsigned char *tile, int row, int piece)
{
	return address(tile) + row * BK + (piece ^ (row & 7)) * 16;
}

static __device__ void load(unsigned char *tile, const unsigned char *from, int row0, int k0, int k)
{
	for (int i = threadIdx.x; i < BM * BK / 16; i += THREADS) {
		int row = i / (BK / 16), piece = i % (BK / 16);
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place(tile, row, piece)), "l"(from + (row0 + row) * k + k0 + piece * 16)
			: "memory");
	}
}

static __device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory");
}

// BYTE: which of the four scales in sa and sb, those of four steps along k.
template <int BYTE>
static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, unsigned sa, unsigned sb)
{
	asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%12, 0}, {%11}, {%12, 0};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(sa), "r"(sb), "n"(BYTE));
}

struct Warp {
	float d[2][4][4];
	unsigned sa[2], sb[4];
};

template <int STEP>
static __device__ __forceinline__ void step(Warp &w, const unsigned char *ta, const unsigned char *tb, int wm, int wn, int lane)
{
	unsigned a[2][4], b[2][4];
	for (int i = 0; i < 2; ++i)
		ldmatrix(a[i], place(ta, wm + i * 16 + (lane & 15), STEP * 2 + (lane >> 4)));
	for (int j = 0; j < 2; ++j)
		ldmatrix(b[j], place(tb, wn + j * 16 + (lane & 15), STEP * 2 + (lane >> 4)));
	for (int i = 0; i < 2; ++i)
		for (int j = 0; j < 4; ++j)
			mma<STEP>(w.d[i][j], a[i], b[j / 2][j & 1], b[j / 2][2 + (j & 1)], w.sa[i], w.sb[j]);
}

// sa: [m][k / 32], sb: [n][k / 32].
extern "C" __global__ void __launch_bounds__(THREADS) gemm_mx(const unsigned char *a, const unsigned char *b, const unsigned char *sa,
	const unsigned char *sb, float *c, int n, int k)
{
	__shared__ __align__(1024) unsigned char ta[2][BM * BK], tb[2][BN * BK];
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
	int wm = (warp >> 1) * 32, wn = (warp & 1) * 32, steps = k / BK;
	Warp w = {};
	load(ta[0], a, row0, 0, k);
	load(tb[0], b, col0, 0, k);
	asm volatile("cp.async.commit_group;" ::: "memory");
	for (int s = 0; s < steps; ++s) {
		asm volatile("cp.async.wait_group 0;" ::: "memory");
		__syncthreads();
		if (s + 1 < steps) {
			load(ta[s + 1 & 1], a, row0, (s + 1) * BK, k);
			load(tb[s + 1 & 1], b, col0, (s + 1) * BK, k);
			asm volatile("cp.async.commit_group;" ::: "memory");
		}
		// The first lane of four has the scales of row g, the second those of row g + 8; of columns the first lane has all.
		for (int i = 0; i < 2; ++i)
			w.sa[i] = *reinterpret_cast<const unsigned *>(sa + (row0 + wm + i * 16 + lane / 4 + (lane & 1) * 8) * (k / 32) + s * 4);
		for (int j = 0; j < 4; ++j)
			w.sb[j] = *reinterpret_cast<const unsigned *>(sb + (col0 + wn + j * 8 + lane / 4) * (k / 32) + s * 4);
		step<0>(w, ta[s & 1], tb[s & 1], wm, wn, lane);
		step<1>(w, ta[s & 1], tb[s & 1], wm, wn, lane);
		step<2>(w, ta[s & 1], tb[s & 1], wm, wn, lane);
		step<3>(w, ta[s & 1], tb[s & 1], wm, wn, lane);
	}
	for (int i = 0; i < 2; ++i)
		for (int j = 0; j < 4; ++j)
			for (int h = 0; h < 2; ++h)
				*reinterpret_cast<float2 *>(c + (row0 + wm + i * 16 + h * 8 + lane / 4) * n + col0 + wn + j * 8 + (lane & 3) * 2) =
					make_float2(w.d[i][j][h * 2], w.d[i][j][h * 2 + 1]);
}
