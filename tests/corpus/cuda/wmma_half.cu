/* SPDX-License-Identifier: MIT */
// Matrix products through wmma with half inputs: three shapes, both layouts, half and float sums.
// archs: 75 80 90a 100a 120a
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_16(const __half *a, const __half *b, float *c, int k)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
	wmma::fill_fragment(acc, 0.0f);
	for (int i = 0; i < k; i += 16) {
		wmma::load_matrix_sync(fa, a + i, k);
		wmma::load_matrix_sync(fb, b + i, k);
		wmma::mma_sync(acc, fa, fb, acc);
	}
	for (int i = 0; i < acc.num_elements; ++i)
		acc.x[i] *= 0.5f;
	wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
}

template <int M, int N>
static __device__ void product(const __half *a, const __half *b, __half *c)
{
	wmma::fragment<wmma::matrix_a, M, N, 16, __half, wmma::col_major> fa;
	wmma::fragment<wmma::matrix_b, M, N, 16, __half, wmma::row_major> fb;
	wmma::fragment<wmma::accumulator, M, N, 16, __half> acc;
	wmma::load_matrix_sync(acc, c, N, wmma::mem_row_major);
	wmma::load_matrix_sync(fa, a, M);
	wmma::load_matrix_sync(fb, b, N);
	wmma::mma_sync(acc, fa, fb, acc);
	wmma::store_matrix_sync(c, acc, M, wmma::mem_col_major);
}

extern "C" __global__ void wmma_oblong(const __half *a, const __half *b, __half *c)
{
	__shared__ __half tile[32 * 16];
	for (int i = threadIdx.x; i < 32 * 16; i += 32)
		tile[i] = a[i];
	__syncwarp();
	product<32, 8>(tile, b, c);
	product<8, 32>(a, tile, c + 256);
}
