/* SPDX-License-Identifier: MIT */
/* Matrix products: wmma, mma.sync, wgmma, tcgen05. */
#include "reference/number.h"
#include "run.h"

#define UNUSED (void)got

static double f16(const void *p, size_t i) { return number_value(CPTX_F16, ((const uint16_t *)p)[i]); }
static double bf16(const void *p, size_t i) { return number_value(CPTX_BF16, ((const uint16_t *)p)[i]); }

/* ---- wmma ---- */

static void wmma_16(void **b, void **got)
{
	float *c = b[2];

	UNUSED;
	for (size_t i = 0; i < 16; i++)
		for (size_t j = 0; j < 16; j++) {
			double sum = 0;
			for (size_t k = 0; k < 32; k++)
				sum += f16(b[0], i * 32 + k) * f16(b[1], j * 32 + k);
			c[i * 16 + j] = (float)(sum / 2);
		}
}

static int nibble(const uint32_t *p, int i)
{
	int v = (int)(p[i / 8] >> i % 8 * 4 & 15);
	return v < 8 ? v : v - 16;
}

static void wmma_narrow(void **b, void **got)
{
	const uint32_t *x = b[0], *y = b[1];
	int *c = b[2];

	UNUSED;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++) {
			int sum = 0, bits = 0;
			for (int k = 0; k < 32; k++)
				sum += nibble(x, i * 32 + k) * nibble(y, j * 32 + k);
			for (int k = 0; k < 4; k++)
				bits += __builtin_popcount(x[i * 4 + k] ^ y[j * 4 + k]);
			c[i * 8 + j] = sum;
			c[64 + j * 8 + i] = bits;
		}
}

static void wmma_bf16(void **b, void **got)
{
	float *c = b[2];

	UNUSED;
	for (size_t i = 0; i < 16; i++)
		for (size_t j = 0; j < 16; j++) {
			double sum = c[j * 16 + i];
			for (size_t k = 0; k < 16; k++)
				sum += bf16(b[0], i * 16 + k) * bf16(b[1], k * 16 + j);
			c[j * 16 + i] = (float)sum;
		}
}

static void wmma_tf32(void **b, void **got)
{
	const float *x = b[0], *y = b[1];
	float *c = b[2];

	UNUSED;
	for (size_t i = 0; i < 16; i++)
		for (size_t j = 0; j < 16; j++) {
			double sum = 1;
			for (size_t k = 0; k < 8; k++)
				sum += (double)x[i * 8 + k] * y[j * 8 + k];
			c[i * 16 + j] = (float)sum;
		}
}

/* Of four. */
static double dot_f64(const double *a, const double *b)
{
	double sum = 0;

	for (int k = 0; k < 4; k++)
		sum += a[k] * b[k];
	return sum;
}

static void product_f64(void **b, void **got)
{
	const double *x = b[0], *y = b[1];
	double *c = b[2];

	UNUSED;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++)
			c[i * 8 + j] = dot_f64(x + i * 4, y + j * 4);
}

/* ---- mma.sync ---- */

static double tf32(const uint16_t *low)
{
	uint32_t word = (uint32_t)low[0] | (uint32_t)low[1] << 16;
	return number_value(CPTX_F32, word & 0xffffe000);
}

/* The same registers as f16, as bf16, and as words of tf32. */
static void mma_half(void **b, void **got)
{
	const uint16_t *x = b[0], *y = b[1];
	float *out = b[2];

	UNUSED;
	for (size_t t = 0; t < 32; t++)
		for (size_t e = 0; e < 4; e++) {
			size_t i = t / 4 + e / 2 * 8, j = t % 4 * 2 + e % 2;
			double sum = 0;
			for (size_t k = 0; k < 16; k++) {
				size_t at = k % 8 * 16 + k / 8 * 8 + j;
				sum += f16(x, i * 16 + k) * f16(y, at) + bf16(x, i * 16 + k) * bf16(y, at);
			}
			for (size_t k = 0; k < 8; k++) {
				const size_t row = k % 4 * 2, col = k / 4 * 8 + j;
				uint16_t two[2] = { y[row * 16 + col], y[(row + 1) * 16 + col] };
				sum += tf32(x + i * 16 + k / 4 * 8 + k % 4 * 2) * tf32(two);
			}
			out[t * 4 + e] = (float)sum;
		}
}

static void store_matrix(void **b, void **got)
{
	const uint16_t *in = b[0];
	uint32_t *out = b[1];

	UNUSED;
	for (uint32_t w = 0; w < 32; w++) {
		uint32_t row = w / 4, col = w % 4 * 2;
		out[w] = 2 * ((uint32_t)in[col * 8 + row] | (uint32_t)in[(col + 1) * 8 + row] << 16);
	}
}

/* ---- wgmma ---- */

/* Rows of 128 bytes, read in the 128B swizzle. */
static double swizzled(const void *p, size_t row, size_t k) { return f16(p, row * 64 + ((k / 8) ^ (row % 8)) * 8 + k % 8); }

static void wgmma_half(void **b, void **got)
{
	float *out = b[2];

	UNUSED;
	for (size_t t = 0; t < 128; t++)
		for (size_t e = 0; e < 8; e++) {
			size_t i = t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8, j = e / 4 * 8 + t % 4 * 2 + e % 2;
			double sum = 0;
			for (size_t k = 0; k < 64; k++)
				sum += swizzled(b[0], i, k) * swizzled(b[1], j, k);
			out[t * 8 + e] = (float)sum;
		}
}

#define FORMS "a sum of products of several forms, each of which test_mma, test_matrix or test_wgmma checks"

static const corpus_case rows[] = {
	ROW("wmma_half", "wmma_16", "1/32", "buf:f16[512]=rand:1 buf:f16[512]=rand:2 buf:f32[256] s32:32", .expect = wmma_16,
	    .tolerance = 1e-6),
	ROW("wmma_half", "wmma_oblong", "1/32", "buf:f16[512]=rand:1 buf:f16[128]=rand:2 buf:f16[512]=rand:3",
	    .finds = CPTX_FIND_RACE, .why = "C is stored over what other lanes have loaded, without __syncwarp"),
	ROW("wmma_int", "wmma_bytes", "1/32", "buf:s8[256]=rand:1 buf:s8[256]=rand:2 buf:u8[512]=rand:3 buf:s32[512]=iota",
	    .finds = CPTX_FIND_RACE, .why = "the second product loads what other lanes have stored, without __syncwarp"),
	ROW("wmma_int", "wmma_narrow", "1/32", "buf:u32[32]=rand:1 buf:u32[32]=rand:2 buf:s32[128]", .expect = wmma_narrow),
	ROW("wmma_wide", "wmma_bf16", "1/32", "buf:bf16[256]=rand:1 buf:bf16[256]=rand:2 buf:f32[256]=rand:3",
	    .expect = wmma_bf16, .tolerance = 1e-6),
	ROW("wmma_wide", "wmma_tf32", "1/32", "buf:f32[128]=rand:1 buf:f32[128]=rand:2 buf:f32[256]", .expect = wmma_tf32,
	    .tolerance = 2e-3),
	ROW("wmma_wide", "wmma_double", "1/32", "buf:f64[32]=rand:1 buf:f64[32]=rand:2 buf:f64[64]", .expect = product_f64,
	    .tolerance = 1e-14),
	ROW("mma_ptx", "mma_half", "1/32", "buf:f16[256]=rand:1 buf:f16[128]=rand:2 buf:f32[128]", .expect = mma_half,
	    .tolerance = 1e-5),
	ROW("mma_ptx", "mma_int", "1/32", "buf:u32[36]=rand:1 buf:u32[33]=rand:2 buf:s32[32]", .finds = CPTX_FIND_OPERAND,
	    .why = "it takes data for metadata of a sparse product"),
	ROW("mma_ptx", "mma_double", "1/32", "buf:f64[32]=rand:1 buf:f64[32]=rand:2 buf:f64[64]", .expect = product_f64,
	    .tolerance = 1e-14),
	ROW("mma_ptx", "store_matrix", "1/32", "buf:u32[128]=rand:1 buf:u32[32]", .expect = store_matrix),
	ROW("mma_scaled", "mma_fp8", "1/32", "buf:u32[35]=rand:1 buf:u32[33]=rand:2 buf:f32[32]", .any_result = true,
	    .why = FORMS),
	ROW("mma_scaled", "mma_mxf4", "1/32", "buf:u32[35]=rand:1 buf:u32[33]=rand:2 buf:u32[64]=rand:3 buf:f32[32]",
	    .any_result = true, .why = FORMS),
	ROW("wgmma", "wgmma_half", "1/128", "buf:f16[4096]=rand:1 buf:f16[1024]=rand:2 buf:f32[1024]", .expect = wgmma_half,
	    .tolerance = 1e-5, .except = "O0"),
	ROW("wgmma", "wgmma_half", "1/128", "buf:f16[4096]=rand:1 buf:f16[1024]=rand:2 buf:f32[1024]",
	    .finds = CPTX_FIND_WGMMA_FENCE, .only = "O0", .why = "unoptimised code moves accumulators between products"),
	ROW("wgmma", "wgmma_mixed", "1/256", "buf:u32[2048]=rand:1 buf:u32[512]=rand:2 buf:f32[512] buf:s32[512]",
	    .finds = CPTX_FIND_COUNT,
	    .why = "products of two shapes without a fence, and a descriptor that reaches behind shared memory"),
	ROW("tcgen05", "tc_product", "1/128", "u64:0 u64:0 u32:0 buf:f32[1024]", .finds = CPTX_FIND_DESCRIPTOR,
	    .why = "descriptors come as arguments"),
	ROW("tcgen05", "tc_pair", "2/128", "u64:0 u64:0 u32:0 u32:0 u32:0 buf:u32[128]", .finds = CPTX_FIND_DESCRIPTOR,
	    .why = "descriptors and addresses come as arguments"),
};
const corpus_table corpus_matrices = CORPUS_TABLE(rows);
