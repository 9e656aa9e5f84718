/* SPDX-License-Identifier: MIT */
/* State spaces, loads and stores, atomics, asynchronous copies, clusters, cooperative groups, barriers. */
#include "run.h"

#define UNUSED (void)got

/* ---- atomics, cuda_atomic ---- */

static void atomics_int(void **b, void **got)
{
	static const uint32_t u[] = { 14, 9, 2, 6 };
	static const uint64_t w[] = { 160, 7, 2, 0, 4 };
	static const int64_t l[] = { 0, 4 };
	static const int g[] = { 32, -495, 0, 0, 31, 0, 6, 0x17, 8 };

	for (int i = 0; i < 48; i++) /* 2 and 5, and what each thread saw: as the order was */
		((int *)b[0])[i] = i < 9 && i != 2 && i != 5 ? g[i] : i == 2 || i == 5 || i >= 16 ? ((int *)got[0])[i] : i;
	memcpy(b[1], u, sizeof u);
	memcpy(b[2], w, sizeof w);
	memcpy(b[3], l, sizeof l);
}

static void atomics_float(void **b, void **got)
{
	static const float wide[] = { 32, 64, 0, 0, 32, 64, 96, 128 };
	float *f = b[0];
	const float *seen = got[0];

	f[0] = 48;
	f[1] = 2;
	f[2] = 806;
	if (seen[5] != 0) /* sm_90 and later */
		memcpy(f + 4, wide, sizeof wide);
	*(double *)b[1] = 8;
	((uint16_t *)b[2])[0] = 0x5000; /* 32, 64 */
	((uint16_t *)b[2])[1] = 0x5400;
	((uint16_t *)b[3])[0] = 0x4c00; /* 16 */
	((uint16_t *)b[4])[0] = 0x4200; /* 32, 96 */
	((uint16_t *)b[4])[1] = 0x42c0;
	memcpy(b[5], got[5], 32 * sizeof(float)); /* as the order was */
}

static void atomics_scope(void **b, void **got)
{
	static const int want[] = { 32, 65, 2, 3, 7, 5, 9, 15 };
	int *g = b[0];

	memcpy(g, want, sizeof want);
	memcpy(g + 8, (int *)got[0] + 8, 2 * sizeof *g); /* with what all threads saw */
	g[32] = 10;
	*(uint64_t *)b[1] += 352;
	*(double *)b[2] += 384;
}

static void atomics_order(void **b, void **got)
{
	static const int want[] = { 0, 0, 7, 2, 4, 13, 9 };

	UNUSED;
	memcpy(b[0], want, sizeof want);
}

static void atomics_128(void **b, void **got)
{
	static const uint64_t w[] = { 0, 1, 0, 1 }, out[] = { 2, 4 };

	UNUSED;
	memcpy(b[0], w, sizeof w);
	memcpy(b[1], out, sizeof out);
}

static void ordered(void **b, void **got)
{
	UNUSED;
	*(int *)b[2] = *(int *)b[0] + *(int *)b[1];
	*(int *)b[1] |= 8;
}

/* ---- loads ---- */

static void cached(void **b, void **got)
{
	const int *in = b[1];
	const int16_t *half = b[1];
	const double *c = b[2];
	int *out = b[3];

	UNUSED;
	for (int i = 0; i < 32; i++) {
		unsigned r =
			(unsigned)in[i] + (unsigned)in[i + 1] + (unsigned)in[2] + (unsigned)in[3] + (unsigned)in[4] + (unsigned)in[5];
		r += (unsigned)(int)c[i] + (unsigned)half[i];
		for (int k = 0; k < 4; k++)
			out[32 * k + i] = (int)r;
	}
	memcpy(b[4], b[0], 128 * sizeof(float));
}

static void spin(void **b, void **got)
{
	double *data = b[1];
	int *out = b[2];

	UNUSED;
	*(int *)b[0] = 5;
	data[1] = data[0] + 5;
	for (int i = 0; i < 32; i++)
		out[i] = 5;
}

static void spin_fill(void **b, void **got)
{
	UNUSED;
	*(int *)b[0] = 5;
}

/* ---- memory_spaces ---- */

static const float taps[] = { 1, 2, 1, 2, 4, 2, 1, 2, 1 };

typedef struct shape {
	int width, height;
	float scale[6];
	uint64_t bias;
	int16_t tag;
	char flag, end[5];
} shape;

static void shape_fill(void **b, void **got)
{
	shape s = { .width = 4, .height = 7, .tag = 3 };

	UNUSED;
	for (int i = 0; i < 6; i++)
		s.scale[i] = (float)(i * i + 1) * 0.25f;
	memcpy(b[1], &s, sizeof s);
}

static void param_struct(void **b, void **got)
{
	const shape *s = b[1];
	float *out = b[0];

	UNUSED;
	for (int i = 0; i < 60; i++)
		out[i] = s->scale[i % 6] * taps[i % 9] + 1.5f;
}

static void grid_constant(void **b, void **got)
{
	const shape *s = b[1];
	float *out = b[0];

	UNUSED;
	for (int i = 0; i < 32; i++)
		out[i] = (i & 1 ? s->scale[i % 6] : 0) + 7;
}

static void shared_mix_fill(void **b, void **got)
{
	double *in = b[0];

	UNUSED;
	for (int i = 0; i < 1024; i++)
		in[i] = (i * 7 % 1000) * 0.75;
}

static void shared_mix(void **b, void **got)
{
	const double *in = b[0];
	double *out = b[1], wide[1024];

	UNUSED;
	for (int i = 0; i < 1024; i++)
		wide[i] = i < 1000 ? in[i] : 0;
	for (int i = 0; i < 1024; i++)
		out[i] = wide[1023 - i] + (int16_t)wide[(i & 31) * 32 + (i >> 5)] + (int16_t)wide[i ^ 1];
}

static void generic_pick(void **b, void **got)
{
	int *data = b[0], base = ((int *)got[0])[0] - ((data[6] ^ 5) + 4 + (data[5] ^ 5) + 3);

	ck_assert_msg(base >= 0 && base < 4096 && base % 4 == 0, "shared memory at %d", base);
	data[0] = ((int *)got[0])[0];
}

/* ---- cp_async ---- */

static void staged_sum(void **b, void **got)
{
	const float *in = b[0];
	float *out = b[1];

	UNUSED;
	for (int t = 0; t < 64; t++) {
		double sum = 0;
		for (int s = 0; s < 5; s++)
			for (int k = 0; k < 4; k++)
				sum += in[(s * 64 + 63 - t) * 4 + k];
		out[t] = (float)sum;
	}
}

/* ---- clusters ---- */

static void neighbour(void **b, void **got)
{
	const int *in = b[0];
	int *out = b[1];

	UNUSED;
	for (int i = 0; i < 256; i++)
		out[i] = in[255 - i] + 2;
}

static void cluster_histogram(void **b, void **got)
{
	const uint8_t *in = b[0];
	int *bins = b[1];

	UNUSED;
	for (int i = 0; i < 1000; i++)
		bins[in[i]]++;
}

/* ---- cooperative groups ---- */

static void tile_sum(void **b, void **got)
{
	const float *in = b[0];
	float *out = b[1], v[16], w[16];
	unsigned votes = 0, any = 0;

	UNUSED;
	memcpy(v, in, sizeof v);
	for (int d = 8; d; d /= 2) {
		for (int i = 0; i < 16; i++)
			w[i] = v[i] + v[i + d < 16 ? i + d : i];
		memcpy(v, w, sizeof v);
	}
	out[0] = v[0];
	for (int i = 0; i < 16; i++) {
		any |= v[i] > 1;
		votes |= (unsigned)(v[i] > 2) << i;
	}
	if (any)
		out[16] = (float)votes;
}

static void eighths(void **b, void **got)
{
	float *in = b[0];

	UNUSED;
	for (int i = 0; i < 16; i++)
		in[i] = (float)i * 0.03125f;
}

static void tile_reduce(void **b, void **got)
{
	const int *in = b[0];
	int *out = b[1];

	UNUSED;
	for (int first = 0; first < 64; first += 32) {
		unsigned sum = 0, before = 0;
		int most = in[first];
		for (int i = first; i < first + 32; i++) {
			sum += (unsigned)in[i];
			most = in[i] > most ? in[i] : most;
		}
		for (int i = first; i < first + 32; before += (unsigned)in[i++])
			out[i] = (int)(sum * (unsigned)most + before);
	}
}

static void coalesced_count(void **b, void **got)
{
	const int *in = b[0];
	int *count = b[1], leader = -1;

	UNUSED;
	for (int i = 0; i < 32; i++) {
		if (in[i] <= 0)
			continue;
		leader = leader < 0 ? i : leader;
		count[0]++;
		count[1 + i] = in[leader];
	}
}

/* ---- cuda_barrier ---- */

static void with_barrier(void **b, void **got)
{
	int *data = b[0];

	UNUSED;
	for (int i = 0; i < 64; i++) {
		int v = data[i];
		data[i] = data[127 - i];
		data[127 - i] = v;
	}
}

static void with_pipeline(void **b, void **got)
{
	const float *in = b[0];
	float *out = b[1];

	UNUSED;
	for (int t = 0; t < 128; t++)
		for (int i = 0; i < 5; i++)
			out[t] += in[i * 128 + t];
}

/* ---- tma, multimem ---- */

static void bulk_copy(void **b, void **got)
{
	const float *in = b[0];
	float *out = b[1], *sum = b[2];

	UNUSED;
	for (int i = 0; i < 256; i++) {
		out[i] = in[i] + 1;
		sum[i] += in[i] + 1;
	}
}

static void wide_memory(void **b, void **got)
{
	uint64_t *p = b[0];
	const uint64_t *seen = got[0];
	const float *in = b[1];
	float *out = b[2];
	double v = in[3];

	p[0] = p[2];
	p[1] = p[3];
	p[4] = 0 + 1;
	out[0] = out[1] = 1;
	if (seen[5] == 5) { /* before sm_100 */
		out[32] = in[0];
		return;
	}
	p[5] = 2;
	for (int i = 0; i < 4; i++)
		memcpy(out + 32 + 2 * i, &v, sizeof v);
	out[40] = in[7] + in[0] + 1;
}

#define MAP(box) "mem:f32[8192]=iota tmap:0,type=f32,dims=128x64,box=" box " "

static const corpus_case rows[] = {
	ROW("atomics", "atomics_int", "1/32", "buf:s32[48]=iota buf:u32[4]=iota buf:u64[5]=iota buf:s64[2]=iota",
	    .expect = atomics_int),
	ROW("atomics", "atomics_float", "1/32", "buf:f32[12] buf:f64[1] buf:f16[2] buf:f16[2] buf:bf16[2] buf:f32[32]",
	    .expect = atomics_float, .except = "sm_80"),
	ROW("atomics", "atomics_float", "1/32", "buf:f32[12] buf:f64[1] buf:f16[2] buf:f16[2] buf:bf16[2] buf:f32[32]",
	    .finds = CPTX_FIND_RACE, .only = "sm_80", .why = "the header of CUDA reads weakly what it changes by atom.cas"),
	ROW("atomics", "atomics_scope", "1/32", "buf:s32[33]=iota buf:u64[1]=iota buf:f64[1]=iota", .expect = atomics_scope),
	ROW("atomics", "atomics_order", "1/1", "buf:s32[7]=iota buf:u64[1]", .expect = atomics_order),
	ROW("atomics", "atomics_order", "1/2", "buf:s32[7]=iota buf:u64[1]", .finds = CPTX_FIND_RACE,
	    .why = "all threads store the last result"),
	ROW("atomics", "atomics_128", "1/1", "buf:u64[4]=iota buf:u64[2]", .expect = atomics_128),
	ROW("cuda_atomic", "ordered", "1/1", "buf:s32[1]=rand:1 buf:s32[1]=rand:2 buf:s32[1]", .expect = ordered),
	ROW("loads", "cached", "1/32", "buf:f32[128]=rand:1 buf:s32[33]=rand:2 buf:f64[32]=iota buf:s32[128] buf:f32[128]",
	    .expect = cached),
	ROW("loads", "spin", "1/32", "buf:s32[1] buf:f64[2]=iota buf:s32[32]", .prepare = spin_fill, .expect = spin),
	ROW("loads", "hinted", "1/32", "buf:s32[128]=iota buf:s32[128]", .finds = CPTX_FIND_BOUNDS,
	    .why = "it reads the element in front of in"),
	ROW("memory_spaces", "param_struct", "2/32", "buf:f32[60] bytes:b64[6] s32:60", .prepare = shape_fill,
	    .expect = param_struct, .tolerance = 1e-6),
	ROW("memory_spaces", "grid_constant", "1/32", "buf:f32[32] bytes:b64[6]", .prepare = shape_fill,
	    .expect = grid_constant),
	ROW("memory_spaces", "shared_mix", "1/1024/0/10240", "buf:f64[1024] buf:f64[1024] s32:1000", .prepare = shared_mix_fill,
	    .expect = shared_mix),
	ROW("memory_spaces", "generic_pick", "1/1", "buf:s32[16]=iota s32:3 s32:5", .expect = generic_pick),
	ROW("memory_spaces", "generic_pick", "1/1", "buf:s32[16]=iota s32:1 s32:5", .finds = CPTX_FIND_UNDEFINED,
	    .why = "one thread leaves all but one of the shared words unwritten"),
	ROW("cp_async", "staged_sum", "1/64", "buf:f32[1280]=rand:1 buf:f32[64] s32:5", .expect = staged_sum, .tolerance = 1e-5),
	ROW("cp_async", "hinted_copy", "1/128", "buf:s32[128]=rand:1 buf:s32[128] u64:5", .finds = CPTX_FIND_COUNT,
	    .why = "each thread arrives twice, so half of the copies are not waited for"),
	ROW("cluster", "neighbour", "2/128", "buf:s32[256]=rand:1 buf:s32[256]", .expect = neighbour),
	ROW("cluster", "cluster_histogram", "4/64/2/512", "buf:u8[1000]=rand:1 buf:s32[256] s32:1000",
	    .expect = cluster_histogram),
	ROW("cluster", "raw_cluster", "2/1/2", "buf:u32[1]", .expect = NULL),
	ROW("cluster", "raw_cluster", "2/32/2", "buf:u32[32]", .finds = CPTX_FIND_RACE,
	    .why = "all threads write one shared word"),
	ROW("cg_block", "tile_sum", "1/16", "buf:f32[16] buf:f32[17] s32:16", .prepare = eighths, .expect = tile_sum,
	    .tolerance = 1e-6),
	ROW("cg_block", "tile_reduce", "1/64", "buf:s32[64]=rand:1 buf:s32[64]", .expect = tile_reduce),
	ROW("cg_block", "coalesced_count", "1/32", "buf:s32[32]=rand:1 buf:s32[33]", .expect = coalesced_count),
	ROW("cg_grid", "two_phases", "2/32", "buf:f32[100]=rand:1 buf:f32[1] s32:100", .finds = CPTX_FIND_TRAP,
	    .why = "the launch is not cooperative: the grid is no group that can synchronize, and nvcc's code traps"),
	ROW("cuda_barrier", "with_barrier", "1/128", "buf:s32[128]=rand:1", .expect = with_barrier),
	ROW("cuda_barrier", "with_pipeline", "1/128", "buf:f32[640]=rand:1 buf:f32[128] s32:5", .expect = with_pipeline,
	    .tolerance = 1e-6),
	ROW("tma", "bulk_copy", "1/256", "buf:f32[512]=rand:1 buf:f32[256] buf:f32[256]=rand:2", .expect = bulk_copy,
	    .tolerance = 1e-6),
	ROW("tma", "tensor_tiles", "1/256", MAP("32x32") "buf:f32[256] s32:32 s32:32", .finds = CPTX_FIND_PROXY,
	    .why = "no fence stands behind mbarrier.init, and a store and a reduction of one group go to one place"),
	ROW("tma", "tensor_cluster", "2/32", "mem:s32[8192] tmap:0,type=s32,dims=64x16x8,box=32x2x2 buf:s32[32] u64:0",
	    .finds = CPTX_FIND_MBARRIER, .why = "nobody initializes the mbarrier"),
	ROW("multimem", "multicast_memory", NULL, NULL, .why = "needs a multicast object of several devices"),
	ROW("multimem", "remote_store", "1/1", "u32:64 u32:0 buf:s32[1]", .finds = CPTX_FIND_BOUNDS,
	    .why = "shared addresses come as arguments"),
	ROW("multimem", "wide_memory", "1/1", "buf:u64[6]=iota buf:f32[8]=iota buf:f32[48]", .expect = wide_memory),
};
const corpus_table corpus_memory = CORPUS_TABLE(rows);
