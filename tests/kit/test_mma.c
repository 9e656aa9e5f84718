/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: products of every path and layout, what becomes of their accumulators, and what is refused. */
#include "on_emu.h"

#include <cptx/mma.h>
#include <cptx/tmem.h>

enum { MOST = 256 * 256, THREADS = 256 };

/* A product of a CTA: D of m x n, of `depth` elements along K; operands lie in shared memory as the tiles say. */
typedef struct product {
	const char *target;
	enum cptx_mma_by by;
	enum cptx_type a, b;
	uint32_t m, n, units_m, units_n, depth;
	bool a_mn, b_mn;
	enum cptx_swizzle swizzle;
} product;

static const product products[] = {
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_BF16, CPTX_BF16, 32, 64, 4, 2, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_F16, CPTX_F16, 64, 64, 2, 1, 64, true, true, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_F16, CPTX_F16, 16, 24, 1, 1, 32, false, false, CPTX_SWIZZLE_64B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_S8, CPTX_U8, 32, 32, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_TF32, CPTX_TF32, 32, 32, 2, 2, 32, false, false, CPTX_SWIZZLE_128B },
	{ "sm_89", CPTX_BY_MMA_SYNC, CPTX_E4M3, CPTX_E5M2, 32, 64, 2, 2, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_120a", CPTX_BY_MMA_SYNC, CPTX_BF16, CPTX_BF16, 64, 32, 2, 2, 64, false, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_BF16, CPTX_BF16, 64, 128, 2, 1, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_F16, CPTX_F16, 128, 64, 1, 2, 128, false, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_BF16, CPTX_BF16, 64, 64, 2, 1, 64, true, true, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_E4M3, CPTX_E4M3, 64, 96, 1, 1, 128, false, false, CPTX_SWIZZLE_128B },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_TF32, CPTX_TF32, 64, 40, 1, 1, 32, false, false, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_BF16, CPTX_BF16, 128, 128, 1, 1, 64, false, false, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_F16, CPTX_F16, 128, 64, 1, 1, 128, false, true, CPTX_SWIZZLE_128B },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_E4M3, CPTX_E5M2, 128, 256, 1, 1, 128, false, false, CPTX_SWIZZLE_128B },
};

/* ---- numbers ---- */

static uint32_t bits_of(enum cptx_type t) { return t == CPTX_TF32 ? 32 : t == CPTX_BF16 || t == CPTX_F16 ? 16 : 8; }

/* Whole numbers from -4 to 4 (u8: 0 to 8), in that type. */
static uint32_t encode(enum cptx_type t, int v)
{
	static const uint8_t e4m3[] = { 0, 0x38, 0x40, 0x44, 0x48 }, e5m2[] = { 0, 0x3c, 0x40, 0x42, 0x44 };
	static const uint16_t f16[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400 };
	const uint32_t sign = v < 0, size = (uint32_t)abs(v);
	float f = (float)v;
	uint32_t word;

	memcpy(&word, &f, 4);
	switch (t) {
	case CPTX_BF16: return word >> 16;
	case CPTX_F16: return f16[size] | sign << 15;
	case CPTX_TF32: return word;
	case CPTX_E4M3: return e4m3[size] | sign << 7;
	case CPTX_E5M2: return e5m2[size] | sign << 7;
	case CPTX_U8: return (uint32_t)(v + 4);
	default: return (uint8_t)v;
	}
}

typedef struct matrix {
	cptx_tile tile;
	enum cptx_type type;
	int8_t v[MOST];
	uint8_t image[MOST * 2];
} matrix;

static int number(const matrix *x, uint32_t r, uint32_t c)
{
	return x->v[r * x->tile.cols + c] + (x->type == CPTX_U8 ? 4 : 0);
}

/* Fills a tile, as numbers and as shared memory has it. */
static void draw(matrix *x, cptx_tile tile, enum cptx_type type, unsigned seed)
{
	const uint32_t bytes = bits_of(type) / 8;

	x->tile = tile, x->type = type;
	ck_assert_uint_le(cptx_tile_bytes(&tile), sizeof x->image);
	for (uint32_t r = 0; r < tile.rows; r++)
		for (uint32_t c = 0; c < tile.cols; c++) {
			seed = seed * 1103515245 + 12345;
			x->v[r * tile.cols + c] = (int8_t)((int)(seed >> 16) % 9 - 4);
			uint32_t word = encode(type, x->v[r * tile.cols + c]);
			memcpy(x->image + cptx_tile_at(&tile, r, c).byte, &word, bytes);
		}
}

/* ---- kernels ---- */

/* The dynamic shared memory of a tile, filled from global memory by all threads. */
static cptx_val filled(cptx_kernel *k, const cptx_tile *tile, cptx_val from, uint32_t threads, const char *name)
{
	cptx_val to = cptx_mov(k, cptx_shared_dyn(k, cptx_tile_bytes(tile), 1024, name), .type = CPTX_U32);
	cptx_val i = cptx_var(k, CPTX_U32, cptx_mul(k, cptx_tid_x(k), 4, .mode = CPTX_LO));

	CPTX_FOR(k, i, cptx_tile_bytes(tile), threads * 4) {
		cptx_val w =
			cptx_ld(k, cptx_add(k, from, cptx_cvt(k, i, .dtype = CPTX_U64)), .space = CPTX_GLOBAL, .type = CPTX_U32);
		cptx_st(k, cptx_add(k, to, i), w, .space = CPTX_SHARED);
	}
	return to;
}

static uint32_t threads_of(const product *p) { return (p->by == CPTX_BY_MMA_SYNC ? 32 : 128) * p->units_m * p->units_n; }

static cptx_tile tile_of(const product *p, bool b)
{
	return (cptx_tile){ b ? p->n * p->units_n : p->m * p->units_m, p->depth,
		                .elem = { (uint8_t)bits_of(p->a), .mn_major = b ? p->b_mn : p->a_mn }, .swizzle = p->swizzle };
}

static cptx_val unit_of(cptx_kernel *k, const product *p)
{
	cptx_val unit = cptx_shr(k, cptx_tid_x(k), p->by == CPTX_BY_MMA_SYNC ? 5 : 7);

	return cptx_shfl_sync(k, unit, 0, 31, -1, .mode = CPTX_IDX);
}

/* Behind a product of tcgen05, by all threads: it is complete. */
static void wait_tcgen05(cptx_kernel *k, cptx_val bar)
{
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, 0, .space = CPTX_SHARED));
	cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
}

typedef struct built {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val a, b, d, more;
	cptx_tiled_mma mma;
	cptx_acc acc;
} built;

static void begin(built *x, const product *p)
{
	x->m = cptx_module_new(NULL);
	x->k = cptx_kernel_begin(x->m, "product", .block = { threads_of(p) });
	x->a = cptx_param(x->k, CPTX_PTR, "a"), x->b = cptx_param(x->k, CPTX_PTR, "b"), x->d = cptx_param(x->k, CPTX_PTR, "d");
	x->more = cptx_param(x->k, CPTX_PTR, "more");
	cptx_param(x->k, CPTX_U32, "n");
}

static void end(cptx_kernel *k, const product *p)
{
	if (p->by != CPTX_BY_MMA_SYNC)
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
}

/* How a product by mma.sync has its fragments fetched: a step ahead by AHEAD and ROLLING, which compute it twice. */
enum way { WHOLE, SPLIT, AHEAD, ROLLING, WAYS };

static void multiply_ahead(cptx_kernel *k, built *x, cptx_val a, cptx_val b, bool rolling)
{
	const uint32_t last = x->mma.steps - 1;
	cptx_mma_frags f;

	cptx_mma_frags_new(k, &x->mma, &f, rolling);
	cptx_acc_clear(k, &x->acc);
	cptx_mma_fetch(k, &x->mma, &f, a, b);
	cptx_mma_tile(k, &x->mma, &x->acc, a, b, .frags = &f, .steps = last);
	cptx_mma_tile(k, &x->mma, &x->acc, a, b, .frags = &f, .first = last, .next_a = a, .next_b = b);
	cptx_mma_tile(k, &x->mma, &x->acc, a, b, .frags = &f, .along_m = true);
}

/* D = A * B^T. */
static cptx_module *build(const product *p, enum way way)
{
	const bool split = way == SPLIT, ahead = way > SPLIT;
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	const uint32_t pitch = p->n * p->units_n;
	built x;

	begin(&x, p);
	cptx_kernel *k = x.k;
	cptx_val a = filled(k, &ta, x.a, threads_of(p), "tile_a"), b = filled(k, &tb, x.b, threads_of(p), "tile_b");
	end(k, p);
	cptx_tiled_mma_new(k, &x.mma, .by = p->by, .a = p->a, .b = p->b, .m = p->m, .n = p->n, .units_m = p->units_m,
	                   .units_n = p->units_n, .unit = unit_of(k, p), .a_tile = ta, .b_tile = tb,
	                   .a_base = ahead ? a : CPTX_NONE_, .b_base = ahead ? b : CPTX_NONE_);
	const uint32_t half = split ? x.mma.steps / 2 : 0;
	cptx_acc_matrix to = { .address = x.d, .type = p->a == CPTX_S8 ? CPTX_S32 : CPTX_F32, .pitch = cptx_imm(pitch) };
	if (p->by != CPTX_BY_TCGEN05) {
		cptx_acc_new(k, &x.mma, &x.acc);
		if (ahead) {
			cptx_val offset = cptx_var(k, CPTX_U32, 0);
			multiply_ahead(k, &x, offset, offset, way == ROLLING);
			cptx_acc_store(k, &x.acc, &to);
			return x.m;
		}
		cptx_mma_tile(k, &x.mma, &x.acc, a, b, .fresh = true, .steps = half);
		if (half)
			cptx_mma_tile(k, &x.mma, &x.acc, a, b, .first = half);
		cptx_mma_wait(k, &x.mma, 0);
		cptx_acc_store(k, &x.acc, &to);
		return x.m;
	}
	cptx_tmem t;
	cptx_val bar = cptx_shared(k, CPTX_B64, 1), first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);
	CPTX_IF(k, first)
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
	CPTX_TMEM(k, &t, .columns = p->n, .warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT)) {
		cptx_acc_in_tmem(k, &x.mma, &x.acc, t.address);
		CPTX_IF(k, first) {
			cptx_mma_tile(k, &x.mma, &x.acc, a, b, .fresh = true, .steps = half);
			if (half)
				cptx_mma_tile(k, &x.mma, &x.acc, a, b, .first = half);
			cptx_mma_commit(k, &x.mma, cptx_mov(k, bar, .type = CPTX_U32));
		}
		wait_tcgen05(k, bar);
		for (uint32_t c = 0; c < p->n; c += 64) {
			cptx_acc part;
			cptx_acc_load(k, &x.acc, c, 64, &part);
			cptx_acc_store(k, &part, &to);
		}
	}
	return x.m;
}

/* ---- tests ---- */

static matrix a, b;
static float d[MOST];
static int32_t *di = (int32_t *)d;

static void check(const product *p, enum way way, uint64_t seed)
{
	const uint32_t rows = p->m * p->units_m, cols = p->n * p->units_n;
	emu_run r = { .target = p->target, .seed = seed, .grid = 1 };
	cptx_module *m = build(p, way);

	draw(&a, tile_of(p, false), p->a, (unsigned)seed), draw(&b, tile_of(p, true), p->b, (unsigned)seed + 7);
	r.buffer[0] = (emu_buffer){ a.image, cptx_tile_bytes(&a.tile), 0 };
	r.buffer[1] = (emu_buffer){ b.image, cptx_tile_bytes(&b.tile), 0 };
	r.buffer[2] = (emu_buffer){ d, rows * cols * 4, 0 };
	memset(d, 0xff, rows * cols * 4);
	emu_launch(m, &r, 0);
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < cols; j++) {
			int sum = 0;
			for (uint32_t x = 0; x < p->depth; x++)
				sum += number(&a, i, x) * number(&b, j, x) * (way > SPLIT ? 2 : 1);
			float got = p->a == CPTX_S8 ? (float)di[i * cols + j] : d[i * cols + j];
			SURE(got == (float)sum, "%s, %d, %s: row %u, column %u is %g, not %d", p->target, (int)p->by,
			     cptx_type_name(p->a), i, j, (double)got, sum);
		}
	cptx_module_destroy(m);
}

START_TEST(products_are_right)
{
	for (size_t i = 0; i < sizeof products / sizeof *products; i++)
		for (uint64_t seed = 1; seed < 4; seed++)
			check(&products[i], seed == 2 ? SPLIT : WHOLE, seed);
}
END_TEST

START_TEST(fragments_come_ahead)
{
	for (size_t i = 0; i < sizeof products / sizeof *products; i++)
		for (enum way way = AHEAD; way < WAYS && products[i].by == CPTX_BY_MMA_SYNC; way++)
			check(&products[i], way, i + way);
}
END_TEST

/* What is wrong with fragments; the last call's error is the module's. */
static const char *wrong_fragments(unsigned what)
{
	static cptx_error err;
	product p = products[what == 1 ? 7 : 2], other = products[0];
	const cptx_tile ta = tile_of(&p, false), tb = tile_of(&p, true);
	cptx_mma_frags f = { .rolling = false };
	cptx_tiled_mma mma = { .depth = 0 };
	built x;

	begin(&x, &p);
	cptx_val at = cptx_var(x.k, CPTX_U32, 0);
	cptx_tiled_mma_new(x.k, &x.mma, .by = p.by, .a = p.a, .b = p.b, .m = p.m, .n = p.n, .units_m = p.units_m,
	                   .units_n = p.units_n, .unit = unit_of(x.k, &p), .a_tile = ta, .b_tile = tb);
	cptx_tiled_mma_new(x.k, &mma, .by = other.by, .a = other.a, .b = other.b, .m = other.m, .n = other.n,
	                   .a_tile = { other.m, 64, .elem = { 16 }, .swizzle = CPTX_SWIZZLE_128B },
	                   .b_tile = { other.n, 64, .elem = { 16 }, .swizzle = CPTX_SWIZZLE_128B });
	cptx_acc_new(x.k, &x.mma, &x.acc);
	if (what == 0)
		cptx_mma_fetch(x.k, &x.mma, &f, at, at);
	if (what == 1)
		cptx_mma_frags_new(x.k, &x.mma, &f, false);
	if (what == 2) {
		cptx_mma_frags_new(x.k, &mma, &f, false);
		cptx_mma_tile(x.k, &x.mma, &x.acc, at, at, .frags = &f);
	}
	if (what == 3)
		cptx_mma_tile(x.k, &x.mma, &x.acc, at, at, .next_b = at);
	const cptx_error *e = cptx_module_error(x.m);
	ck_assert_ptr_nonnull(e);
	err = *e;
	ck_assert_msg(strstr(err.file, "test_mma.c") != NULL, "%s", err.file);
	cptx_module_destroy(x.m);
	return err.text;
}

START_TEST(fragments_of_others)
{
	static const char *const said[] = { "fragments that cptx_mma_frags_new did not make for this tiled mma",
		                                "fragments are for mma.sync; wgmma and tcgen05 read shared memory themselves",
		                                "fragments that cptx_mma_frags_new did not make for this tiled mma",
		                                "with .next_b but without .frags" };
	const char *text = wrong_fragments((unsigned)_i);

	ck_assert_msg(strstr(text, said[_i]) != NULL, "%s", text);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the products");
		return;
	}
	for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
		cptx_module *m = build(&products[i], products[i].by == CPTX_BY_MMA_SYNC ? AHEAD : WHOLE);
		free(emu_assembles(m, products[i].target));
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma");

	tcase_add_test(t, products_are_right);
	tcase_add_test(t, fragments_come_ahead);
	tcase_add_loop_test(t, fragments_of_others, 0, 4);
	tcase_add_test(t, ptxas_takes_them);
	return test_main("kit mma", s);
}
