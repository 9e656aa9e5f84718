/* SPDX-License-Identifier: MIT */
// Matrix products through wmma with bytes, four-bit integers and single bits.
// archs: 75 80 90a 100a 120a
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_bytes(const signed char *a, const signed char *b, const unsigned char *u, int *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, int> acc;
	wmma::fill_fragment(acc, 3);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(acc, fa, fb, acc, true);
	wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
	wmma::fragment<wmma::matrix_a, 32, 8, 16, unsigned char, wmma::row_major> ua;
	wmma::fragment<wmma::matrix_b, 32, 8, 16, unsigned char, wmma::col_major> ub;
	wmma::fragment<wmma::accumulator, 32, 8, 16, int> uacc;
	wmma::load_matrix_sync(uacc, c, 8, wmma::mem_row_major);
	wmma::load_matrix_sync(ua, u, 16);
	wmma::load_matrix_sync(ub, u, 16);
	wmma::mma_sync(uacc, ua, ub, uacc);
	wmma::store_matrix_sync(c + 256, uacc, 8, wmma::mem_row_major);
}

extern "C" __global__ void wmma_narrow(const int *a, const int *b, int *c)
{
	wmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::s4, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 8, 8, 32, wmma::experimental::precision::s4, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 8, 8, 32, int> acc;
	wmma::fill_fragment(acc, 0);
	wmma::load_matrix_sync(fa, a, 32);
	wmma::load_matrix_sync(fb, b, 32);
	wmma::mma_sync(acc, fa, fb, acc);
	wmma::store_matrix_sync(c, acc, 8, wmma::mem_row_major);
	wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> ba;
	wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> bb;
	wmma::fragment<wmma::accumulator, 8, 8, 128, int> bacc;
	wmma::fill_fragment(bacc, 0);
	wmma::load_matrix_sync(ba, a, 128);
	wmma::load_matrix_sync(bb, b, 128);
	wmma::bmma_sync(bacc, ba, bb, bacc, wmma::experimental::bmmaBitOpXOR);
	wmma::store_matrix_sync(c + 64, bacc, 8, wmma::mem_col_major);
}
