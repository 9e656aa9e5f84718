/* SPDX-License-Identifier: MIT */
/* Kernels as their authors write them (tests/corpus/programs): right results and no finding, whatever the schedule. */
#include "reference/number.h"
#include "run.h"

#include "../../sanitized.h"

#include <limits.h>

/* ---- matrix products ---- */

static double half(enum cptx_type type, const uint16_t *p, size_t i) { return number_value(type, p[i]); }

static void gemm_ampere(void **b, void **got)
{
	enum { M = 72, N = 136, K = 104 };
	float *c = b[2];

	(void)got;
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			double sum = 0;
			for (size_t k = 0; k < K; k++)
				sum += half(CPTX_BF16, b[0], i * K + k) * half(CPTX_BF16, b[1], k * N + j);
			c[i * N + j] = (float)sum;
		}
}

/* Of the buffers under two tensor maps. */
static void product(void **b, size_t m, size_t n, size_t k)
{
	float *c = b[4];

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;
			for (size_t l = 0; l < k; l++)
				sum += half(CPTX_BF16, b[0], i * k + l) * half(CPTX_BF16, b[1], j * k + l);
			c[i * n + j] = (float)sum;
		}
}

static void gemm_tiles(void **b, void **got)
{
	(void)got;
	product(b, 256, 128, 320);
}

static void gemm_pair(void **b, void **got)
{
	(void)got;
	product(b, 512, 128, 320);
}

/* Numbers from 1/4 to 4, scales from 2^-4 to 2^3. */
static void mx_prepare(unsigned char *p, unsigned char *s, size_t rows, size_t k)
{

	for (size_t i = 0; i < rows * k; i++)
		p[i] = (unsigned char)((p[i] & 0x87) | (5 + (p[i] >> 3 & 3)) << 3);
	for (size_t i = 0; i < rows * k / 32; i++)
		s[i] = (unsigned char)(123 + s[i] % 8);
}

static void mx_fill(void **b, void **got)
{
	(void)got;
	mx_prepare(b[0], b[2], 128, 256);
	mx_prepare(b[1], b[3], 128, 256);
}

/* Of two tensor maps. */
static void mx_fill_maps(void **b, void **got)
{
	(void)got;
	mx_prepare(b[0], b[4], 128, 256);
	mx_prepare(b[1], b[5], 128, 256);
}

static double e4m3(unsigned v)
{
	double m = v & 0x78 ? ldexp(8 + (v & 7), (int)(v >> 3 & 15) - 10) : ldexp(v & 7, -9);
	return v & 0x80 ? -m : m;
}

static void mx_product(const unsigned char *a, const unsigned char *b, const unsigned char *sa, const unsigned char *sb,
                       float *c)
{
	enum { M = 128, N = 128, K = 256 };

	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			double sum = 0;
			for (size_t k = 0; k < K; k++)
				sum += ldexp(e4m3(a[i * K + k]) * e4m3(b[j * K + k]), sa[(i * K + k) / 32] + sb[(j * K + k) / 32] - 254);
			c[i * N + j] = (float)sum;
		}
}

static void gemm_mx(void **b, void **got)
{
	(void)got;
	mx_product(b[0], b[1], b[2], b[3], b[4]);
}

static void gemm_mx_maps(void **b, void **got)
{
	(void)got;
	mx_product(b[0], b[1], b[4], b[5], b[6]);
}

static void attend(void **b, bool causal)
{
	enum { HEADS = 2, N = 128, C = 64 };
	float *out = b[3];
	double p[N];

	for (size_t h = 0; h < HEADS; h++)
		for (size_t i = 0; i < N; i++) {
			size_t keys = causal ? i + 1 : N, row = h * N + i;
			double sum = 0;
			for (size_t j = 0; j < keys; j++) {
				double s = 0;
				for (size_t c = 0; c < C; c++)
					s += half(CPTX_F16, b[0], row * C + c) * half(CPTX_F16, b[1], (h * N + j) * C + c);
				sum += p[j] = exp2(s * 0.5);
			}
			for (size_t c = 0; c < C; c++) {
				double v = 0;
				for (size_t j = 0; j < keys; j++)
					v += p[j] / sum * half(CPTX_F16, b[2], (h * N + j) * C + c);
				out[row * C + c] = (float)v;
			}
		}
}

static void attention(void **b, void **got)
{
	(void)got;
	attend(b, false);
}

static void attention_causal(void **b, void **got)
{
	(void)got;
	attend(b, true);
}

/* ---- whole arrays ---- */

static void reduce_sum(void **b, void **got)
{
	const float *in = b[0];
	double sum = 0;

	for (size_t i = 0; i < 4099; i++)
		sum += in[i];
	memcpy(b[1], got[1], 5 * sizeof(float)); /* the blocks' own sums */
	*(float *)b[2] = (float)sum;
}

static void stats_prepare(void **b, void **got)
{
	int *stats = b[1];

	(void)got;
	stats[0] = INT_MAX;
	stats[1] = INT_MIN;
	stats[2] = 0;
}

static void reduce_stats(void **b, void **got)
{
	const int *in = b[0];
	int *stats = b[1];

	(void)got;
	for (size_t i = 0; i < 1111; i++) {
		stats[0] = in[i] < stats[0] ? in[i] : stats[0];
		stats[1] = in[i] > stats[1] ? in[i] : stats[1];
		stats[2] += !(in[i] & 1);
	}
}

static void scan(void **b, void **got)
{
	const unsigned *in = b[0];
	unsigned *out = b[1], sum = 0;

	for (size_t i = 0; i < 6000; i++)
		out[i] = sum += in[i];
	memcpy(b[2], got[2], 12 * sizeof(uint64_t));
	*(unsigned *)b[3] = 12;
}

static void byte_histogram(void **b, void **got)
{
	const unsigned char *in = b[0];
	unsigned *bins = b[1];

	(void)got;
	for (size_t i = 0; i < 5003; i++)
		bins[in[i]]++;
}

/* ---- planes and rows ---- */

static void heat(void **b, void **got)
{
	enum { W = 45, H = 35 };
	const float *in = b[0];
	float *out = b[1];

	(void)got;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			int l = x ? x - 1 : 0, r = x < W - 1 ? x + 1 : x, u = y ? y - 1 : 0, d = y < H - 1 ? y + 1 : y;
			double c = in[y * W + x];
			out[y * W + x] =
				(float)(c + 0.125 * ((double)in[y * W + l] + in[y * W + r] + in[u * W + x] + in[d * W + x] - 4 * c));
		}
}

static void filter_rows(void **b, void **got)
{
	enum { W = 150, H = 9 };
	static const double weight[] = { 0.3125, 0.21875, 0.09375, 0.03125, 0.015625 };
	const float *in = b[0];
	float *out = b[1];

	(void)got;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			double sum = 0;
			for (int d = -4; d <= 4; d++)
				sum += x + d >= 0 && x + d < W ? weight[abs(d)] * in[y * W + x + d] : 0;
			out[y * W + x] = (float)sum;
		}
}

static void layer_norm(void **b, void **got)
{
	enum { ROWS = 5, N = 300 };
	const float *gain = b[1], *bias = b[2];
	uint16_t *out = b[3];

	(void)got;
	for (size_t r = 0; r < ROWS; r++) {
		double sum = 0, square = 0;
		for (size_t i = 0; i < N; i++) {
			double v = half(CPTX_F16, b[0], r * N + i);
			sum += v;
			square += v * v;
		}
		double mean = sum / N, scale = 1 / sqrt(square / N - mean * mean + 1e-5);
		for (size_t i = 0; i < N; i++)
			out[r * N + i] =
				(uint16_t)number_bits(CPTX_F16, (half(CPTX_F16, b[0], r * N + i) - mean) * scale * gain[i] + bias[i]);
	}
}

static void softmax_rows(void **b, void **got)
{
	enum { ROWS = 7, N = 77 };
	const float *in = b[0];
	float *out = b[1];

	(void)got;
	for (size_t r = 0; r < ROWS; r++) {
		double sum = 0;
		for (size_t i = 0; i < N; i++)
			sum += exp(in[r * N + i]);
		for (size_t i = 0; i < N; i++)
			out[r * N + i] = (float)(exp(in[r * N + i]) / sum);
	}
}

/* ---- all blocks wait for one another ---- */

static void two_phases(void **b, void **got)
{
	float *data = b[0];
	double sum = 0;

	(void)got;
	for (int i = 0; i < 5000; i++) {
		data[i] = data[i] * 0.5f + 1;
		sum += data[i];
	}
	*(float *)b[1] = (float)sum;
}

#define MAPS_256(rows_b)                                                                                                    \
	"tmap:0,type=bf16,dims=320x256,box=64x128,swizzle=128 tmap:1,type=bf16,dims=320x128,box=64x" rows_b ",swizzle=128 "

static const corpus_case programs[] = {
	{ "programs/reduce", "reduce_sum", "5/256", "buf:f32[4099]=rand:1 buf:f32[5] buf:f32[1] s32:4099", .expect = reduce_sum,
	  .tolerance = 1e-5 },
	{ "programs/reduce", "reduce_stats", "3/128", "buf:s32[1111]=rand:2 buf:s32[3] s32:1111", .expect = reduce_stats,
	  .prepare = stats_prepare },
	{ "programs/scan", "scan", "12/128", "buf:s32[6000]=rand:3 buf:s32[6000] buf:u64[12] buf:u32[1] s32:6000",
	  .expect = scan },
	{ "programs/histogram", "byte_histogram", "4/128", "buf:u8[5003]=rand:4 buf:u32[256] s32:5003",
	  .expect = byte_histogram },
	{ "programs/stencil", "heat", "3,3/16,16", "buf:f32[1575]=rand:5 buf:f32[1575] s32:45 s32:35 f32:0.125", .expect = heat,
	  .tolerance = 1e-6 },
	{ "programs/stencil", "filter_rows", "3/64", "buf:f32[1350]=rand:6 buf:f32[1350] s32:150 s32:9", .expect = filter_rows,
	  .tolerance = 1e-6 },
	{ "programs/norm", "layer_norm", "5/128/0/1200",
	  "buf:f16[1500]=rand:7 buf:f32[300]=rand:8 buf:f32[300]=rand:9 buf:f16[1500] s32:300 f32:0.00001", .expect = layer_norm,
	  .tolerance = 2e-3 },
	{ "programs/norm", "softmax_rows", "2/128", "buf:f32[539]=rand:10 buf:f32[539] s32:7 s32:77", .expect = softmax_rows,
	  .tolerance = 1e-6 },
	{ "programs/gemm_ampere", "gemm_ampere", "3,2/128",
	  "buf:bf16[7488]=rand:11 buf:bf16[14144]=rand:12 buf:f32[9792] s32:72 s32:136 s32:104", .expect = gemm_ampere,
	  .tolerance = 1e-5 },
	{ "programs/gemm_hopper", "gemm_hopper", "2,2/384/0/98304",
	  "mem:bf16[81920]=rand:13 mem:bf16[40960]=rand:14 " MAPS_256("64") "buf:f32[32768] s32:128 s32:320",
	  .expect = gemm_tiles, .tolerance = 1e-5 },
	{ "programs/gemm_blackwell", "gemm_blackwell", "2,2/128/0/98304",
	  "mem:bf16[81920]=rand:13 mem:bf16[40960]=rand:14 " MAPS_256("64") "buf:f32[32768] s32:128 s32:320",
	  .expect = gemm_tiles, .tolerance = 1e-5 },
	{ "programs/gemm_blackwell_pair", "gemm_blackwell_pair", "4/128/2/73728",
	  "mem:bf16[163840]=rand:13 mem:bf16[40960]=rand:14 tmap:0,type=bf16,dims=320x512,box=64x128,swizzle=128 "
	  "tmap:1,type=bf16,dims=320x128,box=64x64,swizzle=128 buf:f32[65536] s32:128 s32:320",
	  .expect = gemm_pair, .tolerance = 1e-5 },
	{ "programs/gemm_mx", "gemm_mx", "2,2/128",
	  "buf:u8[32768]=rand:15 buf:u8[32768]=rand:16 buf:u8[1024]=rand:17 buf:u8[1024]=rand:18 buf:f32[16384] s32:128 s32:256",
	  .expect = gemm_mx, .prepare = mx_fill, .tolerance = 1e-4 },
	{ "programs/gemm_mx_blackwell", "gemm_mx_blackwell", "1/128",
	  "mem:u8[32768]=rand:15 mem:u8[32768]=rand:16 tmap:0,type=u8,dims=256x128,box=128x128,swizzle=128 "
	  "tmap:1,type=u8,dims=256x128,box=128x128,swizzle=128 buf:u8[1024]=rand:17 buf:u8[1024]=rand:18 buf:f32[16384] s32:128 "
	  "s32:256",
	  .prepare = mx_fill_maps, .expect = gemm_mx_maps, .tolerance = 1e-4 },
	{ "programs/attention", "attention", "2,2/128",
	  "buf:f16[16384]=rand:19 buf:f16[16384]=rand:20 buf:f16[16384]=rand:21 buf:f32[16384] s32:128 f32:0.5 s32:0",
	  .expect = attention, .tolerance = 2e-3 },
	{ "programs/attention", "attention", "2,2/128",
	  "buf:f16[16384]=rand:19 buf:f16[16384]=rand:20 buf:f16[16384]=rand:21 buf:f32[16384] s32:128 f32:0.5 s32:1",
	  .expect = attention_causal, .tolerance = 2e-3 },
	{ "ptx/cg_grid", "two_phases", "24/64", "buf:f32[5000]=rand:1 buf:f32[1] s32:5000", .cooperative = true,
	  .expect = two_phases, .tolerance = 1e-4 },
};

/* The same, and on a GPU those that it can run. */
START_TEST(on_both_devices)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("cuda", &err);
	unsigned files, all = 0;

	if (!dev) {
		skip("no GPU: %s", err.text);
		return;
	}
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		ck_assert_msg(corpus_run_on(dev, &programs[i], &files), "%s", programs[i].kernel);
		if (files)
			ck_assert_msg(corpus_run(&programs[i], 1), "%s", programs[i].kernel);
		printf("%s: %u files\n", programs[i].kernel, files);
		all += files;
	}
	ck_assert_uint_gt(all, 0);
	cptx_device_close(dev);
}
END_TEST

START_TEST(a_program) { ck_assert_msg(corpus_run(&programs[_i], SAMPLE_OF(4, 0)), "%s", programs[_i].kernel); }
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_programs");
	TCase *c = tcase_create("emulator"), *gpu = tcase_create("gpu");

	tcase_add_loop_test(c, a_program, 0, sizeof programs / sizeof *programs);
	tcase_add_test(gpu, on_both_devices);
	tcase_set_timeout(c, 0);
	tcase_set_timeout(gpu, 0);
	suite_add_tcase(s, c);
	suite_add_tcase(s, gpu);
	return test_main("emu_programs", s);
}
