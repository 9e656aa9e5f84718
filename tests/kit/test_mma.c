/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: products of every path and layout, what becomes of their accumulators, and what is refused. */
#include "../whole.h"
#include "tiles.h"

#include <cptx/cptx.h>
#include <cptx/tmem.h>

#include <math.h>

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

/* ---- kernels ---- */

static uint32_t threads_of(const product *p) { return (p->by == CPTX_BY_MMA_SYNC ? 32 : 128) * p->units_m * p->units_n; }

static cptx_tile tile_of(const product *p, bool b)
{
	return (cptx_tile){ b ? p->n * p->units_n : p->m * p->units_m, p->depth,
		                .elem = { (uint8_t)number_packed_bits(p->a), .mn_major = b ? p->b_mn : p->a_mn },
		                .swizzle = p->swizzle };
}

static cptx_val unit_of(cptx_kernel *k, const product *p)
{
	cptx_val unit = cptx_shr(k, cptx_tid_x(k), p->by == CPTX_BY_MMA_SYNC ? 5 : 7);

	return cptx_shfl_sync(k, unit, 0, 31, -1, .mode = CPTX_IDX);
}

/* Behind a product of tcgen05, by all threads: it is complete. */
static void wait_tcgen05(cptx_kernel *k, cptx_val bar, uint32_t parity)
{
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, parity, .space = CPTX_SHARED));
}

enum { APART = 2048 /* bytes from stage to stage */ };

/* What a kernel does beside the product. */
typedef struct way {
	bool split;          /* half of K at a time, from tiles at addresses with an offset */
	bool twice;          /* the product and the product again: the first by .fresh_when, in a loop */
	bool staged;         /* wgmma: the tiles are stage 1 of rings, half of K with its number in a register, half constant */
	bool desc32;         /* with staged: .desc32 */
	bool each;           /* elements are stored one by one, by their coordinates, three times as large */
	enum cptx_type type; /* as which it is stored; 0: as the accumulator */
	uint32_t rows, cols; /* rows and columns that the matrix has; 0: the tile */
} way;

typedef struct built {
	cptx_module *m;
	cptx_kernel *k;
	const product *p;
	const way *w;
	cptx_val a, b, d, end; /* end: rows above, columns below */
	cptx_tiled_mma mma;
	cptx_acc acc;
} built;

static enum cptx_type acc_type(const product *p) { return p->a == CPTX_S8 ? CPTX_S32 : CPTX_F32; }
static enum cptx_type type_out(const product *p, const way *w) { return w->type ? w->type : acc_type(p); }
static uint32_t pitch_of(const product *p, const way *w) { return p->n * p->units_n + (w->cols ? 6 : 0); }

static void begin(built *x)
{
	const product *p = x->p;
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	cptx_kernel *k = x->k = cptx_kernel_begin(x->m, "product", .block = { threads_of(p) });

	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b");
	x->d = cptx_param(k, CPTX_PTR, "d");
	cptx_param(k, CPTX_PTR, "more");
	x->end = cptx_param(k, CPTX_U32, "end");
	if (x->w->staged)
		cptx_shared_dyn(k, 2 * APART, 1024, "stages");
	x->a = filled(k, &ta, a, threads_of(p), "tile_a");
	x->b = filled(k, &tb, b, threads_of(p), "tile_b");
	if (x->w->split) {
		x->a = cptx_offset(cptx_sub(k, x->a, 1024), 1024);
		x->b = cptx_offset(cptx_add(k, x->b, 2048), -2048);
	}
	const bool staged = x->w->staged;
	const cptx_val none = { .kind = CPTX_VAL_NONE };
	cptx_val a_ring = staged ? cptx_sub(k, x->a, APART) : none;
	cptx_val b_ring = staged ? cptx_offset(cptx_sub(k, x->b, 2 * APART), APART) : none;
	if (p->by != CPTX_BY_MMA_SYNC)
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
	cptx_tiled_mma_new(k, &x->mma, .by = p->by, .a = p->a, .b = p->b, .m = p->m, .n = p->n, .units_m = p->units_m,
	                   .units_n = p->units_n, .unit = unit_of(k, p), .a_tile = ta, .b_tile = tb, .a_ring = a_ring,
	                   .b_ring = b_ring, .apart = staged ? APART : 0, .desc32 = x->w->desc32);
}

static void multiply(built *x, cptx_val fresh_when)
{
	const uint32_t half = x->w->split || x->w->staged ? x->mma.steps / 2 : 0;
	const bool fresh = fresh_when.kind == CPTX_VAL_NONE;

	if (x->w->staged) {
		cptx_mma_stage(x->k, &x->mma, &x->acc, cptx_var(x->k, CPTX_U32, 1), .fresh = fresh, .fresh_when = fresh_when,
		               .steps = half);
		cptx_mma_stage(x->k, &x->mma, &x->acc, 1, .first = half);
		return;
	}
	cptx_mma_tile(x->k, &x->mma, &x->acc, x->a, x->b, .fresh = fresh, .fresh_when = fresh_when, .steps = half);
	if (half)
		cptx_mma_tile(x->k, &x->mma, &x->acc, x->a, x->b, .first = half);
}

/* All threads of a unit; by tcgen05 one. */
static void multiply_all(built *x)
{
	const cptx_val none = { .kind = CPTX_VAL_NONE };
	cptx_kernel *k = x->k;

	if (x->w->twice && x->p->by != CPTX_BY_MMA_SYNC) {
		cptx_val i = cptx_var(k, CPTX_U32, 0);
		CPTX_FOR(k, i, 2, 1) {
			multiply(x, cptx_setp(k, i, 0, .cmp = CPTX_EQ));
			if (x->p->by == CPTX_BY_WGMMA)
				cptx_mma_wait(k, &x->mma, 0);
		}
	} else {
		multiply(x, none);
		if (x->w->twice)
			cptx_mma_tile(k, &x->mma, &x->acc, x->a, x->b);
	}
}

static void store_each(built *x, const cptx_acc *acc)
{
	cptx_kernel *k = x->k;
	cptx_val three = acc->type == CPTX_S32 ? cptx_imm(3) : cptx_immf(3), from = cptx_var(k, CPTX_U32, 5);
	cptx_val base = cptx_sub(k, x->d, 5 * (pitch_of(x->p, x->w) + 1) * 4); /* of row 0, where the tile is at (5, 5) */

	cptx_acc_scale_rows(k, acc, cptx_acc_row_vector(k, acc, three));
	CPTX_ACC_EACH(acc, e)
	{
		cptx_val row = cptx_acc_row(k, acc, &e, from), col = cptx_acc_col(k, acc, &e, from);
		cptx_val to = cptx_mad_wide(k, row, pitch_of(x->p, x->w) * 4, base);
		cptx_st(k, cptx_mad_wide(k, col, 4, to), e.value, .space = CPTX_GLOBAL);
	}
}

static void store(built *x, const cptx_acc *acc)
{
	cptx_kernel *k = x->k;
	cptx_acc_matrix to = { .address = cptx_offset(cptx_sub(k, x->d, 64), 64),
		                   .type = type_out(x->p, x->w),
		                   .pitch = cptx_imm(pitch_of(x->p, x->w)) };

	if (x->w->rows)
		to.rows = cptx_shr(k, x->end, 16);
	if (x->w->cols) {
		to.pitch = cptx_var(k, CPTX_U32, pitch_of(x->p, x->w));
		to.cols = cptx_and(k, x->end, 0xffff);
		to.cols = cptx_as(to.cols, CPTX_U32);
	}
	if (x->w->each)
		store_each(x, acc);
	else
		cptx_acc_store(k, acc, &to);
}

static void by_tcgen05(built *x)
{
	cptx_kernel *k = x->k;
	cptx_tmem t;
	cptx_val bar = cptx_shared(k, CPTX_B64, 1), first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);

	CPTX_IF(k, first)
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
	CPTX_TMEM(k, &t, .columns = 2 * x->p->n, .warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT)) {
		cptx_acc_in_tmem(k, &x->mma, &x->acc, cptx_offset(t.address, x->w->split ? x->p->n : 0));
		CPTX_IF(k, first) {
			multiply_all(x);
			cptx_mma_commit(k, &x->mma, cptx_mov(k, bar, .type = CPTX_U32));
		}
		wait_tcgen05(k, bar, 0);
		for (uint32_t c = 0, n = 2; c < x->p->n; c += n) { /* 2, 2, 4, 8 ... columns */
			cptx_acc part;
			n = c ? c < 64 ? c : 64 : 2;
			cptx_acc_load(k, &x->acc, c, n, &part);
			store(x, &part);
		}
	}
}

static cptx_module *build(const product *p, const way *w)
{
	built x = { .m = cptx_module_new(NULL), .p = p, .w = w };

	begin(&x);
	if (p->by == CPTX_BY_TCGEN05) {
		by_tcgen05(&x);
		return x.m;
	}
	cptx_acc_new(x.k, &x.mma, &x.acc);
	CPTX_ACC_EACH(&x.acc, e) /* what does not count */
	cptx_mov(x.k, x.acc.type == CPTX_S32 ? cptx_imm(99) : cptx_immf(99), .into = e.value);
	multiply_all(&x);
	cptx_mma_wait(x.k, &x.mma, 0);
	store(&x, &x.acc);
	return x.m;
}

/* ---- tests ---- */

static matrix a, b;
static uint8_t d[MOST * 5];

/* A number of the output; whole ones to 2048 are exact in f16. */
static double read_out(enum cptx_type type, uint64_t i)
{
	const uint32_t bytes = cptx_type_bits(type) / 8;
	uint32_t bits = 0;

	memcpy(&bits, d + bytes * i, bytes);
	return type == CPTX_S32 ? (double)(int32_t)bits : number_value(type, bits);
}

static double as_stored(enum cptx_type type, int v)
{
	return type == CPTX_BF16 ? number_value(type, number_bits(type, v)) : v;
}

/* Whether the bytes of an element are those of before the launch. */
static bool untouched(uint32_t bytes, uint64_t i)
{
	bool all = true;

	for (uint32_t j = 0; j < bytes; j++)
		all = all && d[i * bytes + j] == 0xa5;
	return all;
}

static void compare(const product *p, const way *w, const char *what)
{
	const uint32_t rows = p->m * p->units_m, cols = p->n * p->units_n, pitch = pitch_of(p, w);
	const enum cptx_type type = type_out(p, w);
	const int times = (w->twice ? 2 : 1) * (w->each ? 3 : 1);

	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < pitch; j++) {
			const uint64_t at = (uint64_t)i * pitch + j;
			int sum = 0;
			if (i >= (w->rows ? w->rows : rows) || j >= (w->cols ? w->cols : cols)) {
				SURE(untouched(cptx_type_bits(type) / 8, at), "%s: row %u, column %u is written", what, i, j);
				continue;
			}
			for (uint32_t x = 0; x < p->depth; x++)
				sum += whole_number(&a, i, x) * whole_number(&b, j, x);
			SURE(read_out(type, at) == as_stored(type, times * sum), "%s: row %u, column %u is %g, not %d", what, i, j,
			     read_out(type, at), times * sum);
		}
}

static void check(const product *p, const way *w, uint64_t seed)
{
	const uint32_t size = p->m * p->units_m * pitch_of(p, w) * cptx_type_bits(type_out(p, w)) / 8;
	emu_run r = {
		.target = p->target, .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .grid = 1, .pedantic = true
	};
	cptx_module *m = build(p, w);
	char what[128];

	snprintf(what, sizeof what, "%s, %d, %s as %s, seed %llu", p->target, (int)p->by, cptx_type_name(p->a),
	         cptx_type_name(type_out(p, w)), (unsigned long long)seed);
	SURE(!cptx_module_error(m), "%s: %s", what, cptx_module_error(m)->text);
	draw(&a, tile_of(p, false), p->a, 4, (unsigned)seed), draw(&b, tile_of(p, true), p->b, 4, (unsigned)seed + 7);
	r.buffer[0] = (emu_buffer){ a.image, cptx_tile_bytes(&a.tile), 0 };
	r.buffer[1] = (emu_buffer){ b.image, cptx_tile_bytes(&b.tile), 0 };
	ck_assert_uint_le(size, sizeof d);
	r.buffer[2] = (emu_buffer){ d, size, 0 };
	memset(d, 0xa5, size);
	emu_launch(m, &r, w->rows << 16 | w->cols);
	compare(p, w, what);
	cptx_module_destroy(m);
}

enum { PRODUCTS = sizeof products / sizeof *products };

START_TEST(products_are_right)
{
	const uint64_t seeds = whole() ? 100 : 3;

	for (size_t i = 0; i < PRODUCTS; i++)
		for (uint64_t seed = 0; seed < seeds; seed++)
			if (is_my_part(i * seeds + seed))
				check(&products[i], &(way){ .split = seed % 2 }, seed);
}
END_TEST

START_TEST(products_are_fresh_once)
{
	for (size_t i = 0; i < PRODUCTS; i++)
		check(&products[i], &(way){ .twice = true, .split = i % 2 }, i);
}
END_TEST

START_TEST(stages_are_found)
{
	for (size_t i = 0; i < PRODUCTS; i++)
		if (products[i].by == CPTX_BY_WGMMA)
			for (int desc32 = 0; desc32 < 2; desc32++)
				check(&products[i], &(way){ .staged = true, .twice = i % 2, .desc32 = desc32 }, i);
}
END_TEST

/* A sum of 64 bits with a constant that has a high word may carry, for all that ptxas knows, and costs instructions of the
 * loop that has the stage; with .desc32 there is no sum of 64 bits. */
START_TEST(descriptors_are_counted_in_words)
{
	const product *p = &products[7]; /* by wgmma */

	for (int desc32 = 0; desc32 < 2; desc32++) {
		cptx_module *m = build(p, &(way){ .staged = true, .desc32 = desc32 });
		cptx_ptx *ptx = cptx_emit(m, p->target, NULL, NULL);
		ck_assert_ptr_nonnull(ptx);
		const char *at = strstr(cptx_ptx_text(ptx), "wgmma.fence"), *end = strstr(at, "wgmma.commit");
		int sums = 0;
		for (; (at = strstr(at, "add.u64")) && at < end; at++, sums++) {
			unsigned long long by = 0;
			SURE(sscanf(at, "add.u64 %*[^,], %*[^,], %llu", &by) == 1 && by <= UINT32_MAX, "%.60s", at);
		}
		SURE((sums > 0) != (desc32 != 0), ".desc32 = %d: %d sums", desc32, sums);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
}
END_TEST

START_TEST(elements_are_where_they_say)
{
	for (size_t i = 0; i < PRODUCTS; i++)
		check(&products[i], &(way){ .each = true }, i);
}
END_TEST

/* Matrices that end inside of the tile; none of what lies behind is written. */
START_TEST(stores_stay_inside)
{
	static const enum cptx_type types[] = { 0, CPTX_BF16, CPTX_F16 };

	for (size_t i = 0; i < PRODUCTS; i++)
		for (size_t t = 0; t < (acc_type(&products[i]) == CPTX_S32 ? 1 : 3); t++) {
			const uint32_t rows = products[i].m * products[i].units_m, cols = products[i].n * products[i].units_n;
			way w = { .type = types[t], .rows = rows - 5, .cols = cols - 6 };
			check(&products[i], &w, i + t);
			w.rows = 1, w.cols = 2;
			check(&products[i], &w, i + t);
			w.rows = rows - 1, w.cols = 0;
			check(&products[i], &w, i + t);
			w.rows = 0, w.cols = cols / 2;
			check(&products[i], &w, i + t);
		}
}
END_TEST

/* An accumulator of f64, without .thread: each element's number times three, where the matrix has its row and column. */
START_TEST(doubles_are_scaled_and_stored)
{
	enum { SIDE = 32, ROWS = 27, COLS = 26 };
	static double out[SIDE][SIDE];

	for (int tall = 0; tall < 2; tall++) {
		const cptx_tile tile = { SIDE, 16, .elem = { 64 }, .swizzle = CPTX_SWIZZLE_64B };
		emu_run r = { .target = "sm_90", .grid = 1, .pedantic = true, .buffer = { { out, sizeof out, 0 } } };
		cptx_module *m = cptx_module_new(NULL);
		cptx_kernel *k = cptx_kernel_begin(m, "doubles", .block = { 64 });
		const cptx_val to = cptx_param(k, CPTX_PTR, "d");
		cptx_tiled_mma mma;
		cptx_acc acc;

		cptx_param(k, CPTX_PTR, "b"), cptx_param(k, CPTX_PTR, "c"), cptx_param(k, CPTX_PTR, "more");
		cptx_param(k, CPTX_U32, "n");
		cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_MMA_SYNC, .a = CPTX_F64, .b = CPTX_F64, .m = SIDE, .n = SIDE / 2,
		                   .units_n = 2, .unit = cptx_shr(k, cptx_tid_x(k), 5), .a_tile = tile, .b_tile = tile,
		                   .tall = tall);
		cptx_acc_new(k, &mma, &acc);
		cptx_acc_clear(k, &acc);
		CPTX_ACC_EACH(&acc, e)
		{
			const cptx_val row = cptx_acc_row(k, &acc, &e, CPTX_NONE_), col = cptx_acc_col(k, &acc, &e, CPTX_NONE_);
			cptx_cvt(k, cptx_mad(k, row, SIDE, col, .mode = CPTX_LO), .dtype = CPTX_F64, .rnd = CPTX_RN, .into = e.value);
		}
		cptx_acc_scale_rows(k, &acc, cptx_acc_row_vector(k, &acc, 3.0));
		cptx_acc_store(
			k, &acc,
			&(cptx_acc_matrix){
				.address = to, .type = CPTX_F64, .pitch = cptx_imm(SIDE), .rows = cptx_imm(ROWS), .cols = cptx_imm(COLS) });
		SURE(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
		memset(out, 0, sizeof out);
		emu_launch(m, &r, 0);
		for (int i = 0; i < SIDE * SIDE; i++)
			ck_assert_double_eq(out[i / SIDE][i % SIDE], i / SIDE < ROWS && i % SIDE < COLS ? 3.0 * i : 0);
		cptx_module_destroy(m);
	}
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the products");
		return;
	}
	for (size_t i = 0; i < PRODUCTS; i++) {
		const way ways[] = { { .split = true }, { .type = acc_type(&products[i]), .rows = 3, .cols = 4, .twice = true } };
		for (int j = 0; j < 2; j++) {
			cptx_module *m = build(&products[i], &ways[j]);
			unsigned kernels = 0;
			char *said = emu_assembles(m, products[i].target);
			SURE(assembly_spills(said, &kernels) == 0 && kernels == 1, "%s: %s", products[i].target, said);
			free(said);
			cptx_module_destroy(m);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma");

	tcase_add_test(t, products_are_right);
	tcase_add_test(t, products_are_fresh_once);
	tcase_add_test(t, stages_are_found);
	tcase_add_test(t, descriptors_are_counted_in_words);
	tcase_add_test(t, elements_are_where_they_say);
	tcase_add_test(t, stores_stay_inside);
	tcase_add_test(t, doubles_are_scaled_and_stored);
	tcase_add_test(t, ptxas_takes_them);
	return test_main("kit mma", s);
}
