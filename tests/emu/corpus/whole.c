/* SPDX-License-Identifier: MIT */
/* Kernels of programs, launch bounds, debug information, printing, several modules, timers; textures and surfaces. */
#include "run.h"

#define UNUSED (void)got

/* ---- kernels ---- */

static void matmul(void **b, void **got)
{
	enum { M = 20, N = 40, K = 24 };
	const float *x = b[0], *y = b[1];
	float *c = b[2];

	UNUSED;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < K; k++)
				sum += (double)x[i * K + k] * y[k * N + j];
			c[i * N + j] = (float)sum;
		}
}

static void transpose(void **b, void **got)
{
	const double *in = b[0];
	double *out = b[1];

	UNUSED;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 64; j++)
			out[j * 64 + i] = in[i * 64 + j];
}

static void prefix_sum(void **b, void **got)
{
	const int *in = b[0];
	int *out = b[1];

	UNUSED;
	for (int i = 0; i < 150; i++)
		out[i] = (int)((unsigned)in[i] + (i % 96 ? (unsigned)out[i - 1] : 0));
}

static void histogram(void **b, void **got)
{
	const uint8_t *in = b[0];
	unsigned *bins = b[1];

	UNUSED;
	for (int i = 0; i < 500; i++)
		bins[in[i]]++;
}

static void stencil(void **b, void **got)
{
	enum { W = 40, H = 20 };
	const float *in = b[0];
	float *out = b[1];

	UNUSED;
	for (int y = 1; y < H - 1; y++)
		for (int x = 1; x < W - 1; x++) {
			const float *p = in + y * W + x;
			out[y * W + x] = (float)(0.25 * ((double)p[-1] + p[1] + p[-W] + p[W]) - p[0]);
		}
}

static int by_size(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return (x > y) - (x < y);
}

static void bitonic(void **b, void **got)
{
	unsigned *keys = b[0];
	int *values = b[1];

	UNUSED;
	qsort(keys, 64, sizeof *keys, by_size);
	for (int i = 0; i < 64; i++)
		values[i] = (int)(keys[i] & 0xff);
}

static void softmax(void **b, void **got)
{
	const float *in = b[0];
	float *out = b[1];

	UNUSED;
	for (int r = 0; r < 3; r++) {
		double sum = 0;
		for (int i = 0; i < 50; i++)
			sum += exp(in[r * 50 + i]);
		for (int i = 0; i < 50; i++)
			out[r * 50 + i] = (float)(exp(in[r * 50 + i]) / sum);
	}
}

/* ---- bounds ---- */

static void reduce_float(void **b, void **got)
{
	const float *in = b[0];
	double sum = 0;

	UNUSED;
	for (int i = 0; i < 1000; i++)
		sum += in[i];
	*(float *)b[1] = (float)sum;
}

static void reduce_wide(void **b, void **got)
{
	const uint64_t *in = b[0];
	uint64_t *out = b[1];

	UNUSED;
	for (int i = 0; i < 1000; i++)
		*out += in[i];
}

static void few_registers(void **b, void **got)
{
	const float *a = b[0];
	float *out = b[1];

	UNUSED;
	for (int t = 0; t < 32; t++) {
		double sum = 0;
		for (int i = 0; i < 8; i++)
			sum += (double)a[i * 32 + t] * a[(7 - i) * 32 + t];
		out[t] = (float)sum;
	}
}

static void fixed_block(void **b, void **got)
{
	int *out = b[0];

	UNUSED;
	for (int i = 0; i < 512; i++)
		out[i] = i % 128;
}

static void all_ones(void **b, void **got)
{
	int *out = b[0];

	UNUSED;
	for (int i = 0; i < 64; i++)
		out[i] = 1;
}

static void overlapped(void **b, void **got)
{
	int *out = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		out[i] += 1;
}

/* ---- debug_lines ---- */

typedef struct point {
	float x, y;
	int tags[2];
} point;

static float clamped(float v) { return v < -1 ? -1 : v > 1 ? 1 : v; }

static void points_fill(void **b, void **got)
{
	point *p = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		p[i] = (point){ .x = (float)i * 0.0625f - 1, .y = (float)i, .tags = { i - 4, i % 12 } };
}

static void move_points(void **b, void **got)
{
	point *p = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		p[i].x = clamped(p[i].x + 0.125f);
		p[i].y = -p[i].y;
		for (int k = 0; k < 2; k++) {
			int tag = p[i].tags[k] + k;
			p[i].tags[k] = tag < 0 ? 0 : tag > 9 ? 9 : tag;
		}
	}
	p[0].y = p[5].x;
}

/* ---- initialisers, heap_stack, virtual, rdc_owner ---- */

/* wide[0] and the upper bits of huge; all others are too small to show. */
static void use_all(void **b, void **got)
{
	UNUSED;
	*(float *)b[0] = 18446744073709551616.0f + 0x123456789abcdef0p0f;
}

static void lists(void **b, void **got)
{
	int *out = b[0];
	double block[10] = { [5] = 285 };

	UNUSED;
	memcpy(out + 1, block, 64);
}

static void stack_scratch(void **b, void **got)
{
	const int8_t *in = b[0];
	int8_t *out = b[1], scratch[50];
	int fixed[24] = { 5, 4, 3 };

	UNUSED;
	for (int i = 0; i < 50; i++)
		scratch[49 - i] = in[i];
	fixed[2] += scratch[25];
	for (int i = 0; i < 50; i++)
		out[i] = (int8_t)(scratch[i] + (int8_t)fixed[i % 24]);
}

static void measure(void **b, void **got)
{
	double sum = 0;

	memcpy(b[0], got[0], 32 * sizeof(uint64_t)); /* addresses of objects */
	for (int i = 0; i < 32; i++)
		sum += (i & 1 ? (float)i * 2.0 * 4 : 0) + 0.25;
	*(float *)b[1] = (float)sum;
}

static void lambdas(void **b, void **got)
{
	float *out = b[0], x = out[0];

	UNUSED;
	out[0] = (x * 2 + 1) * 2 + 1 + (3 - x) - x;
}

static void touch(void **b, void **got)
{
	UNUSED;
	*(int *)b[0] = 2; /* hidden[1]; hidden[0] becomes spare(3) + 4 */
}

/* ---- timers ---- */

static void shape(void **b, void **got)
{
	int *out = b[0];

	UNUSED;
	for (int i = 0; i < 64; i++)
		out[i] = 32;
}

static const corpus_case rows[] = {
	ROW("kernels", "matmul", "3,2/16,16", "buf:f32[480]=rand:1 buf:f32[960]=rand:2 buf:f32[800] s32:20 s32:40 s32:24",
	    .expect = matmul, .tolerance = 1e-6),
	ROW("kernels", "transpose", "2,2/32,8", "buf:f64[4096]=rand:1 buf:f64[4096] s32:64", .expect = transpose),
	ROW("kernels", "prefix_sum", "2/96", "buf:s32[150]=rand:1 buf:s32[150] s32:150", .expect = prefix_sum),
	ROW("kernels", "histogram", "3/64", "buf:u8[500]=rand:1 buf:u32[256] s32:500", .expect = histogram),
	ROW("kernels", "stencil", "3,3/16,8", "buf:f32[800]=rand:1 buf:f32[800] s32:40 s32:20", .expect = stencil,
	    .tolerance = 1e-6),
	ROW("kernels", "bitonic", "1/64/0/256", "buf:u32[64]=rand:1 buf:s32[64]", .expect = bitonic),
	ROW("kernels", "softmax", "3/32", "buf:f32[150]=rand:1 buf:f32[150] s32:50", .expect = softmax, .tolerance = 1e-6),
	ROW("bounds", "_Z6reduceILi32EfEvPKT0_PS0_i", "1/128", "buf:f32[1000]=rand:1 buf:f32[1] s32:1000",
	    .expect = reduce_float, .tolerance = 1e-5),
	ROW("bounds", "_Z6reduceILi8EyEvPKT0_PS0_i", "1/32", "buf:u64[1000]=rand:1 buf:u64[1] s32:1000", .expect = reduce_wide),
	ROW("bounds", "few_registers", "1/32", "buf:f32[256]=rand:1 buf:f32[32]", .expect = few_registers, .tolerance = 1e-6),
	ROW("bounds", "fixed_block", "2", "buf:s32[512]", .expect = fixed_block),
	ROW("bounds", "bounded_cluster", "1/64", "buf:s32[64]", .expect = all_ones),
	ROW("bounds", "overlapped", "1/32", "buf:s32[32]=iota", .expect = overlapped),
	ROW("debug_lines", "move_points", "1/32", "buf:u32[128] s32:32 s32:4", .prepare = points_fill, .expect = move_points),
	ROW("initialisers", "use_all", "1/1", "buf:f32[1] s32:0", .expect = use_all, .tolerance = 1e-6),
	ROW("initialisers", "use_all", "1/2", "buf:f32[2] s32:0", .finds = CPTX_FIND_UNDEFINED,
	    .why = "a shared variable is read where nobody wrote"),
	ROW("heap_stack", "lists", "1/1", "buf:s32[17] s32:10", .expect = lists),
	ROW("heap_stack", "stack_scratch", "1/1", "buf:s8[50]=rand:1 buf:s8[50] s32:50", .expect = stack_scratch),
	ROW("virtual", "make", "1/32", "buf:u64[32] s32:32", .any_result = true,
	    .why = "addresses; measure looks at what is there"),
	ROW("virtual", "measure", "1/1", "buf:u64[32] buf:f32[1] s32:32", .expect = measure, .tolerance = 1e-6, .first = "make",
	    .first_args = "0 2"),
	ROW("virtual", "measure", "1/32", "buf:u64[32] buf:f32[1] s32:32", .finds = CPTX_FIND_RACE,
	    .why = "objects are destroyed while others are measured", .first = "make", .first_args = "0 2"),
	ROW("virtual", "lambdas", "1/1", "buf:f32[1]=rand:1 f32:2", .expect = lambdas, .tolerance = 1e-6),
	ROW("virtual", "lambdas", "1/32", "buf:f32[32]=rand:1 f32:2", .finds = CPTX_FIND_RACE,
	    .why = "out[0] is read while thread 0 writes it"),
	ROW("rdc_owner", "touch", "1/1", "buf:s32[1]", .expect = touch),
	ROW("rdc_user", "walk", "1/32/0/128", "buf:f32[32] s32:3", .refused = "nothing that was loaded defines it",
	    .why = "its variables and functions are in another module"),
	ROW("print_assert", "talk", "1/32", "buf:f32[32]=rand:1 buf:u8[8] s32:8", .expect = NULL),
	ROW("print_assert", "stop", "1/32", "buf:s32[32]", .expect = NULL),
	ROW("print_assert", "stop", "1/32", "buf:s32[32]=iota", .finds = CPTX_FIND_ASSERT, .why = "element 7 is 7"),
	ROW("timers", "clocks", "1/32", "buf:s64[32] u32:50", .any_result = true, .why = "time"),
	ROW("timers", "shape", "1/4,4,4", "buf:s32[64]", .expect = shape),
	ROW("surfaces", "surf_flat", "1/8,4", "u64:0 u64:0 s32:0", .finds = CPTX_FIND_OPERAND, .why = "0 is no handle"),
	ROW("surfaces", "surf_deep", "1/8,4", "u64:0 u64:0 s32:0", .finds = CPTX_FIND_OPERAND, .why = "0 is no handle"),
	ROW("textures", "tex_plain", "1/32", "u64:0 buf:f32[128] s32:32", .finds = CPTX_FIND_OPERAND, .why = "0 is no handle"),
	ROW("textures", "tex_levels", "1/32", "u64:0 buf:f32[32]", .finds = CPTX_FIND_OPERAND, .why = "0 is no handle"),
	ROW("textures", "tex_layers", "1/32", "u64:0 buf:f32[32] s32:0", .finds = CPTX_FIND_OPERAND, .why = "0 is no handle"),
	ROW("textures", "tex_gather", "1/32", "u64:0 buf:f32[128] buf:u8[32]", .finds = CPTX_FIND_OPERAND,
	    .why = "0 is no handle"),
};
const corpus_table corpus_whole = CORPUS_TABLE(rows);
