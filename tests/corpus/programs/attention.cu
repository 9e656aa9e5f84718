/* SPDX-License-Identifier: MIT */
// Attention without the matrix of scores: softmax goes on while blocks of keys pass by.  f16 with sums in f32, 64 channels a head.
// archs: 80 120a
#include <cuda_fp16.h>

enum { HEAD = 64, ROWS = 64, KEYS = 32, THREADS = 128 };

static __device__ __forceinline__ unsigned address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Rows of 128 bytes, whose pieces of 16 bytes are moved about.
static __device__ __forceinline__ int place(int row, int piece)
{
	return row * HEAD + (piece ^ (row & 7)) * 8;
}

template <int COUNT>
static __device__ void load_rows(__half *to, const __half *from)
{
	for (int i = threadIdx.x; i < COUNT * HEAD / 8; i += THREADS) {
		int row = i / (HEAD / 8), piece = i % (HEAD / 8);
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address(to + place(row, piece))), "l"(from + row * HEAD + piece * 8)
			: "memory");
	}
}

template <bool TRANS>
static __device__ __forceinline__ void ldmatrix(unsigned (&r)[4], const __half *p)
{
	if (TRANS)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(p)) : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
			: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(p)) : "memory");
}

static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned halves(float low, float high)
{
	__half2 h = __floats2half2_rn(low, high);
	return *reinterpret_cast<unsigned *>(&h);
}

static __device__ __forceinline__ float quad_max(float v)
{
	v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, 1));
	return fmaxf(v, __shfl_xor_sync(0xffffffff, v, 2));
}

static __device__ __forceinline__ float quad_sum(float v)
{
	v += __shfl_xor_sync(0xffffffff, v, 1);
	return v + __shfl_xor_sync(0xffffffff, v, 2);
}

// q, k, v, out: [head][row][channel]; blockIdx.y is the head.  A warp has 16 rows.  causal: a row sees keys up to its own.
extern "C" __global__ void __launch_bounds__(THREADS) attention(const __half *q, const __half *k, const __half *v, float *out, int n, float scale,
	int causal)
{
	__shared__ __align__(128) __half sq[ROWS * HEAD], sk[2][KEYS * HEAD], sv[2][KEYS * HEAD];
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row0 = blockIdx.x * ROWS;
	long long head = static_cast<long long>(blockIdx.y) * n * HEAD;
	int keys = causal ? row0 + ROWS : n;
	load_rows<ROWS>(sq, q + head + row0 * HEAD);
	load_rows<KEYS>(sk[0], k + head);
	load_rows<KEYS>(sv[0], v + head);
	asm volatile("cp.async.commit_group;" ::: "memory");
	float acc[HEAD / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
	unsigned fq[HEAD / 16][4];
	for (int first = 0, turn = 0; first < keys; first += KEYS, turn ^= 1) {
		asm volatile("cp.async.wait_all;" ::: "memory");
		__syncthreads();
		if (first == 0)
			for (int c = 0; c < HEAD / 16; ++c)
				ldmatrix<false>(fq[c], sq + place(warp * 16 + (lane & 15), c * 2 + (lane >> 4)));
		if (first + KEYS < keys) {
			load_rows<KEYS>(sk[turn ^ 1], k + head + (first + KEYS) * HEAD);
			load_rows<KEYS>(sv[turn ^ 1], v + head + (first + KEYS) * HEAD);
			asm volatile("cp.async.commit_group;" ::: "memory");
		}
		float s[KEYS / 8][4] = {};
		for (int c = 0; c < HEAD / 16; ++c)
			for (int j = 0; j < KEYS / 16; ++j) {
				unsigned f[4];
				ldmatrix<false>(f, sk[turn] + place(j * 16 + (lane & 15), c * 2 + (lane >> 4)));
				mma(s[2 * j], fq[c], f[0], f[2]);
				mma(s[2 * j + 1], fq[c], f[1], f[3]);
			}
		for (int h = 0; h < 2; ++h) {
			int row = row0 + warp * 16 + h * 8 + lane / 4;
			float next = most[h], part = 0.0f;
			for (int j = 0; j < KEYS / 8; ++j)
				for (int e = 0; e < 2; ++e) {
					float &x = s[j][h * 2 + e];
					x = causal && first + j * 8 + (lane & 3) * 2 + e > row ? -INFINITY : x * scale;
					next = fmaxf(next, x);
				}
			next = quad_max(next);
			float shrink = exp2f(most[h] - next);
			for (int j = 0; j < KEYS / 8; ++j)
				for (int e = 0; e < 2; ++e)
					part += s[j][h * 2 + e] = exp2f(s[j][h * 2 + e] - next);
			for (int c = 0; c < HEAD / 8; ++c)
				for (int e = 0; e < 2; ++e)
					acc[c][h * 2 + e] *= shrink;
			sum[h] = sum[h] * shrink + part;
			most[h] = next;
		}
		for (int j = 0; j < KEYS / 16; ++j) {
			unsigned p[4] = {halves(s[2 * j][0], s[2 * j][1]), halves(s[2 * j][2], s[2 * j][3]), halves(s[2 * j + 1][0], s[2 * j + 1][1]),
				halves(s[2 * j + 1][2], s[2 * j + 1][3])};
			for (int c = 0; c < HEAD / 16; ++c) {
				unsigned f[4];
				ldmatrix<true>(f, sv[turn] + place(j * 16 + (lane & 15), c * 2 + (lane >> 4)));
				mma(acc[2 * c], p, f[0], f[1]);
				mma(acc[2 * c + 1], p, f[2], f[3]);
			}
		}
	}
	for (int h = 0; h < 2; ++h) {
		float inverse = 1.0f / quad_sum(sum[h]);
		float *to = out + head + (row0 + warp * 16 + h * 8 + lane / 4) * HEAD + (lane & 3) * 2;
		for (int c = 0; c < HEAD / 8; ++c)
			*reinterpret_cast<float2 *>(to + c * 8) = make_float2(acc[c][h * 2] * inverse, acc[c][h * 2 + 1] * inverse);
	}
}
