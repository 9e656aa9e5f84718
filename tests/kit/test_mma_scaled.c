/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: products by pairs of CTAs, with scale factors, of small types, and with A copied to tensor memory. */
#include "../whole.h"
#include "tiles.h"

#include <cptx/cptx.h>
#include <cptx/gemm.h>
#include <cptx/tmem.h>

/* A product of a CTA, or of a pair; sizes are those of all units, and of both CTAs. */
typedef struct product {
	enum cptx_type a, b, scale;
	uint32_t m, n, depth, units_m, units_n, ctas; /* ctas 0: by mma.sync, of sm_120a */
	bool a_mn, b_mn, padded, in_tmem;
	enum cptx_tcgen05_kind kind;
	uint32_t begin; /* row of its blocks of factors where B, and by mma.sync A, begins */
} product;

#define MX .scale = CPTX_UE8M0
#define NV .scale = CPTX_UE4M3
#define PAIR .ctas = 2, .m = 256
#define ONE .ctas = 1, .m = 128
#define UNITS(m_, n_) .units_m = m_, .units_n = n_

static const product products[] = {
	{ CPTX_BF16, CPTX_BF16, PAIR, .n = 128, .depth = 64 },
	{ CPTX_F16, CPTX_F16, PAIR, .n = 256, .depth = 128, .a_mn = true, .b_mn = true },
	{ CPTX_E4M3, CPTX_E5M2, PAIR, .n = 32, .depth = 128 },
	{ CPTX_TF32, CPTX_TF32, PAIR, .n = 64, .depth = 32 },
	{ CPTX_S8, CPTX_U8, ONE, .n = 96, .depth = 128 },
	{ CPTX_U8, CPTX_S8, PAIR, .n = 128, .depth = 128, .b_mn = true },
	{ CPTX_E2M1, CPTX_E4M3, ONE, .n = 64, .depth = 128, .padded = true },
	{ CPTX_E3M2, CPTX_E2M3, PAIR, .n = 64, .depth = 128, .padded = true },
	{ CPTX_BF16, CPTX_BF16, ONE, .n = 64, .depth = 128, .in_tmem = true },
	{ CPTX_TF32, CPTX_TF32, PAIR, .n = 64, .depth = 32, .in_tmem = true },
	{ CPTX_E2M3, CPTX_E2M1, PAIR, .n = 64, .depth = 128, .in_tmem = true, .padded = true },
	{ CPTX_E4M3, CPTX_E5M2, MX, ONE, .n = 128, .depth = 128 },
	{ CPTX_E5M2, CPTX_E4M3, MX, ONE, .n = 192, .depth = 256, .b_mn = true, .begin = 64 },
	{ CPTX_E4M3, CPTX_E4M3, MX, PAIR, .n = 256, .depth = 128 },
	{ CPTX_E4M3, CPTX_E3M2, MX, ONE, .n = 64, .depth = 128, .padded = true, .begin = 64 },
	{ CPTX_E2M1, CPTX_E2M1, MX, PAIR, .n = 192, .depth = 128, .padded = true },
	{ CPTX_E2M1, CPTX_E2M3, MX, ONE, .n = 32, .depth = 128, .padded = true, .in_tmem = true, .begin = 96 },
	{ CPTX_E2M1, CPTX_E2M1, MX, ONE, .n = 128, .depth = 256 },
	{ CPTX_E2M1, CPTX_E2M1, MX, PAIR, .n = 128, .depth = 256, .kind = CPTX_TCGEN05_MXF4NVF4 },
	{ CPTX_E2M1, CPTX_E2M1, NV, ONE, .n = 64, .depth = 256 },
	{ CPTX_E2M1, CPTX_E2M1, NV, PAIR, .n = 256, .depth = 256, .in_tmem = true },
	{ CPTX_E4M3, CPTX_E5M2, MX, UNITS(2, 2), .m = 64, .n = 64, .depth = 128 },
	{ CPTX_E5M2, CPTX_E4M3, MX, UNITS(1, 1), .m = 32, .n = 64, .depth = 256, .begin = 32 },
	{ CPTX_E4M3, CPTX_E4M3, MX, UNITS(2, 2), .m = 128, .n = 64, .depth = 128, .a_mn = true, .b_mn = true },
	{ CPTX_E2M3, CPTX_E2M1, MX, UNITS(2, 1), .m = 128, .n = 32, .depth = 128, .a_mn = true, .padded = true },
	{ CPTX_E2M1, CPTX_E4M3, MX, UNITS(1, 2), .m = 64, .n = 128, .depth = 128, .padded = true, .b_mn = true },
	{ CPTX_E2M1, CPTX_E2M1, MX, UNITS(1, 2), .m = 64, .n = 64, .depth = 128, .padded = true, .begin = 64 },
	{ CPTX_E2M1, CPTX_E2M1, MX, UNITS(2, 1), .m = 64, .n = 96, .depth = 256 },
	{ CPTX_E2M1, CPTX_E2M1, NV, UNITS(1, 1), .m = 32, .n = 32, .depth = 512, .begin = 96 },
};
enum { PRODUCTS = sizeof products / sizeof *products, FACTORS = 256 * 32, SCALES = 16384 };

/* ---- kernels ---- */

static bool sync_of(const product *p) { return !p->ctas; }
static uint32_t ctas_of(const product *p) { return sync_of(p) ? 1 : p->ctas; }
static const char *target_of(const product *p) { return sync_of(p) ? "sm_120a" : "sm_100a"; }
static uint32_t threads_of(const product *p) { return sync_of(p) ? 32 * p->units_m * p->units_n : 128; }
static uint32_t vec_of(const product *p) { return p->scale == CPTX_UE4M3 ? 16 : 32; }

static cptx_tile tile_of(const product *p, bool of_b)
{
	const uint32_t bits = number_packed_bits(of_b ? p->b : p->a);
	const bool mn = of_b ? p->b_mn : p->a_mn;
	cptx_tile t = { .rows = (of_b ? p->n : p->m) / ctas_of(p), .cols = p->depth, .elem = { (uint8_t)bits, mn, false } };

	t.elem.padded = bits < 8 && p->padded;
	t.swizzle = mn && t.rows % 128 && bits == 8 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B;
	return t;
}

typedef struct built {
	cptx_kernel *k;
	const product *p;
	bool split, words; /* half of K at a time; descriptors in place of addresses, by mma.sync few registers for these */
	bool along_m;
	cptx_val a, b, sa, sb, d, base; /* base: of addresses; NONE: 0 */
	cptx_tiled_mma mma;
	cptx_acc acc;
} built;

/* Bytes of shared memory filled from global memory. */
static cptx_val bytes_of(const built *x, uint32_t bytes, cptx_val from, const char *name)
{
	const cptx_tile t = { .rows = bytes / 16, .cols = 16, .elem = { .bits = 8 } };

	return filled(x->k, &t, from, threads_of(x->p), name);
}

static void begin(built *x, cptx_module *m)
{
	const product *p = x->p;
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	const bool pair = ctas_of(p) > 1;
	cptx_kernel *k = x->k =
		cptx_kernel_begin(m, "product", .block = { threads_of(p) }, .cluster = { pair ? 2 : 0, pair, pair });
	cptx_tiled_mma_opt o = { .by = sync_of(p) ? CPTX_BY_MMA_SYNC : CPTX_BY_TCGEN05,
		                     .a = p->a,
		                     .b = p->b,
		                     .m = p->m,
		                     .n = p->n,
		                     .a_from = p->in_tmem ? CPTX_A_TMEM : CPTX_A_SHARED,
		                     .a_tile = ta,
		                     .b_tile = tb,
		                     .ctas = p->ctas,
		                     .scale = p->scale,
		                     .kind = p->kind };

	cptx_val a = cptx_param(k, CPTX_PTR, "a"), b = cptx_param(k, CPTX_PTR, "b"), d = cptx_param(k, CPTX_PTR, "d");
	cptx_val scales = cptx_param(k, CPTX_PTR, "scales"), rank = cptx_ctaid_x(k);
	cptx_param(k, CPTX_U32, "n");
	if (sync_of(p)) {
		cptx_val warp = cptx_shr(k, cptx_tid_x(k), 5);
		o.m /= p->units_m, o.n /= p->units_n, o.units_m = p->units_m, o.units_n = p->units_n;
		o.unit = cptx_shfl_sync(k, warp, 0, 31, -1, .mode = CPTX_IDX);
		o.few_regs = x->words;
		if (x->split) /* tiles, and factors, are told by how far they are from there */
			o.a_base = x->base = cptx_var(k, CPTX_U32, 1024), o.b_base = cptx_imm(1024);
	}
	cptx_tiled_mma_new_(k, CPTX_HERE, &x->mma, &o);
	x->d = cptx_mad_wide(k, rank, p->m / ctas_of(p) * p->n * 4, d);
	x->a = filled(k, &ta, cptx_mad_wide(k, rank, cptx_tile_bytes(&ta), a), threads_of(p), "tile_a");
	x->b = filled(k, &tb, cptx_mad_wide(k, rank, cptx_tile_bytes(&tb), b), threads_of(p), "tile_b");
	if (p->scale) {
		const uint32_t bytes = x->mma.scale_a_bytes;
		x->sa = bytes_of(x, bytes, cptx_mad_wide(k, rank, bytes, scales), "scale_a");
		x->sb = bytes_of(x, x->mma.scale_b_bytes, cptx_add(k, scales, bytes * ctas_of(p)), "scale_b");
	}
	if (!sync_of(p))
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
}

static void multiply(const built *x, cptx_val a, cptx_val b, cptx_val sa, cptx_val sb)
{
	const uint32_t half = x->split ? x->mma.steps / 2 : 0;

	cptx_mma_tile(x->k, &x->mma, &x->acc, a, b, .fresh = true, .steps = half, .scale_a = sa, .scale_b = sb,
	              .along_m = x->along_m);
	if (half)
		cptx_mma_tile(x->k, &x->mma, &x->acc, a, b, .first = half, .scale_a = sa, .scale_b = sb, .along_m = x->along_m,
		              .fenced = !sync_of(x->p));
}

static void by_sync(built *x)
{
	cptx_kernel *k = x->k;
	const uint32_t more = x->p->begin / 32 * 4;

	cptx_acc_new(k, &x->mma, &x->acc);
	if (x->split) {
		cptx_val *const from[] = { &x->a, &x->b, &x->sa, &x->sb };
		for (size_t i = 0; i < 4; i++)
			*from[i] = cptx_sub(k, *from[i], x->base);
	}
	multiply(x, x->a, x->b, cptx_offset(x->sa, more), cptx_offset(x->sb, more));
	cptx_acc_store(k, &x->acc, &(cptx_acc_matrix){ .address = x->d, .type = CPTX_F32, .pitch = cptx_imm(x->p->n) });
}

static cptx_val word_of(const built *x, const cptx_tile *t, cptx_val at)
{
	return x->words ? cptx_tile_word(x->k, t, CPTX_DESC_TCGEN05, at) : at;
}

/* One thread starts copies and products, of a pair for both CTAs. */
static void start(const built *x, cptx_val tmem)
{
	cptx_kernel *k = x->k;
	const product *p = x->p;
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true), ts = cptx_scale_tile();
	const uint32_t columns = p->depth * number_packed_bits(p->in_tmem && p->padded ? CPTX_E4M3 : p->a) / 32;
	cptx_val a = word_of(x, &ta, x->a), b = word_of(x, &tb, x->b), sa = { 0 }, sb = { 0 };
	uint32_t at = p->n;

	if (p->in_tmem) {
		cptx_val to = cptx_offset(tmem, at);
		cptx_mma_copy_a(k, &x->mma, to, a);
		a = to, at += columns;
	}
	if (p->scale) {
		sa = cptx_offset(tmem, at), sb = cptx_offset(tmem, at + x->mma.scale_a_columns);
		cptx_mma_copy_scale_a(k, &x->mma, sa, word_of(x, &ts, x->sa));
		cptx_mma_copy_scale_b(k, &x->mma, sb, word_of(x, &ts, x->sb));
		sb = cptx_offset(sb, p->begin / 32);
	}
	multiply(x, a, b, sa, sb);
}

static void by_tcgen05(built *x)
{
	cptx_kernel *k = x->k;
	const product *p = x->p;
	cptx_tmem t;
	cptx_val bar = cptx_mov(k, cptx_shared(k, CPTX_B64, 1), .type = CPTX_U32), tid = cptx_tid_x(k), rank = cptx_ctaid_x(k);
	cptx_val mask = { 0 };

	CPTX_IF(k, cptx_setp(k, tid, 0, .cmp = CPTX_EQ))
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
	if (p->ctas > 1)
		mask = cptx_mov(k, 3, .type = CPTX_U16);
	CPTX_TMEM(k, &t, .columns = 512, .ctas = p->ctas, .warp = cptx_setp(k, tid, 32, .cmp = CPTX_LT)) {
		cptx_acc_in_tmem(k, &x->mma, &x->acc, t.address);
		CPTX_IF(k, cptx_setp(k, cptx_or(k, tid, rank), 0, .cmp = CPTX_EQ)) {
			start(x, t.address);
			cptx_mma_commit_to(k, &x->mma, bar, mask);
		}
		cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, 0, .space = CPTX_SHARED));
		for (uint32_t c = 0; c < p->n; c += 32) {
			cptx_acc part;
			cptx_acc_load(k, &x->acc, c, 32, &part);
			cptx_acc_store(k, &part, &(cptx_acc_matrix){ .address = x->d, .type = x->acc.type, .pitch = cptx_imm(p->n) });
		}
	}
}

static cptx_module *build(const product *p, bool split, bool words)
{
	cptx_module *m = cptx_module_new(NULL);
	built x = { .p = p, .split = split, .words = words, .along_m = sync_of(p) && words };

	begin(&x, m);
	if (sync_of(p))
		by_sync(&x);
	else
		by_tcgen05(&x);
	return m;
}

/* ---- tests ---- */

static matrix a[2], b[2];                             /* of each CTA */
static uint8_t both[2][4 * MOST], scales[3 * SCALES]; /* images of A, of B; of factors: A of each CTA, B */
static uint8_t factor_a[FACTORS], factor_b[FACTORS];
static uint32_t d[256 * 256];

/* A factor: 0.5 to 4. */
static double number_of(const product *p, uint8_t f)
{
	return p->scale == CPTX_UE4M3 ? (f - 0x30) / 8.0 : f < 127 ? 0.5 : 1u << (f - 127);
}
static uint8_t draw_factor(const product *p, uint32_t i)
{
	const uint32_t r = i * 2654435761u >> 28;

	return p->scale == CPTX_UE4M3 ? (uint8_t)(0x38 + 8 * (r & 1)) : (uint8_t)(126 + r % 4);
}

static size_t draw_factors(const product *p)
{
	const uint32_t per = (p->depth + vec_of(p) - 1) / vec_of(p), rows_a = p->m / ctas_of(p);
	const uint32_t first = sync_of(p) ? p->begin : 0;
	size_t used = 0;

	for (uint32_t i = 0; i < (p->m + first) * per; i++)
		factor_a[i] = draw_factor(p, i);
	for (uint32_t i = 0; i < (p->n + p->begin) * per; i++)
		factor_b[i] = draw_factor(p, i + 77);
	for (uint32_t c = 0; c < ctas_of(p); c++) {
		cptx_gemm_scales_pack(scales + used, factor_a + c * rows_a * per, rows_a + first, p->depth, vec_of(p));
		used += cptx_gemm_scales_bytes(rows_a + first, p->depth, vec_of(p));
	}
	cptx_gemm_scales_pack(scales + used, factor_b, p->n + p->begin, p->depth, vec_of(p));
	used += cptx_gemm_scales_bytes(p->n + p->begin, p->depth, vec_of(p));
	ck_assert_uint_le(used, sizeof scales);
	return used;
}

static double expected(const product *p, uint32_t i, uint32_t j)
{
	const uint32_t rows_a = p->m / ctas_of(p), rows_b = p->n / ctas_of(p), per = p->depth / vec_of(p);
	double sum = 0;

	for (uint32_t x = 0; x < p->depth; x++) {
		double v = whole_number(&a[i / rows_a], i % rows_a, x) * whole_number(&b[j / rows_b], j % rows_b, x);
		if (p->scale)
			v *= number_of(p, factor_a[(i + (sync_of(p) ? p->begin : 0)) * per + x / vec_of(p)]) *
			     number_of(p, factor_b[(j + p->begin) * per + x / vec_of(p)]);
		sum += v;
	}
	return sum;
}

static void compare(const product *p, const char *what)
{
	for (uint32_t i = 0; i < p->m; i++)
		for (uint32_t j = 0; j < p->n; j++) {
			float f;
			memcpy(&f, &d[i * p->n + j], 4);
			const double got = p->a == CPTX_S8 || p->a == CPTX_U8 ? (double)(int32_t)d[i * p->n + j] : (double)f;
			SURE(got == expected(p, i, j), "%s: row %u, column %u is %g, not %g", what, i, j, got, expected(p, i, j));
		}
}

static void check(const product *p, uint64_t seed)
{
	const cptx_tile ta = tile_of(p, false), tb = tile_of(p, true);
	const uint32_t ctas = ctas_of(p), bytes_a = cptx_tile_bytes(&ta), bytes_b = cptx_tile_bytes(&tb);
	emu_run r = {
		.target = target_of(p), .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .grid = ctas, .pedantic = true
	};
	cptx_module *m = build(p, seed % 2, seed % 3 != 0);
	char what[160];

	snprintf(what, sizeof what, "product %d: %s x %s by %s, %ux%ux%u, seed %llu", (int)(p - products), cptx_type_name(p->a),
	         cptx_type_name(p->b), p->scale ? cptx_type_name(p->scale) : "nothing", p->m, p->n, p->depth,
	         (unsigned long long)seed);
	SURE(!cptx_module_error(m), "%s: %s", what, cptx_module_error(m)->text);
	for (uint32_t c = 0; c < ctas; c++) {
		draw(&a[c], ta, p->a, 4, (unsigned)seed + c), draw(&b[c], tb, p->b, 4, (unsigned)seed + 7 + c);
		memcpy(both[0] + c * bytes_a, a[c].image, bytes_a), memcpy(both[1] + c * bytes_b, b[c].image, bytes_b);
	}
	r.buffer[0] = (emu_buffer){ both[0], ctas * bytes_a, 0 };
	r.buffer[1] = (emu_buffer){ both[1], ctas * bytes_b, 0 };
	r.buffer[2] = (emu_buffer){ d, p->m * p->n * 4, 0 };
	r.buffer[3] = (emu_buffer){ scales, p->scale ? draw_factors(p) : 0, 0 };
	memset(d, 0xff, sizeof d);
	emu_launch(m, &r, 0);
	compare(p, what);
	cptx_module_destroy(m);
}

START_TEST(products_are_right)
{
	const uint64_t seeds = whole() ? 60 : 2;

	for (size_t i = 0; i < PRODUCTS; i++)
		for (uint64_t seed = 0; seed < seeds; seed++)
			if (is_my_part(i * seeds + seed))
				check(&products[i], i + seed);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the products");
		return;
	}
	for (size_t i = 0; i < PRODUCTS; i++) {
		cptx_module *m = build(&products[i], i % 2, i % 3 != 0);
		unsigned kernels = 0;
		char *said = emu_assembles(m, target_of(&products[i]));
		SURE(assembly_spills(said, &kernels) == 0 && kernels == 1, "product %zu: %s", i, said);
		free(said);
		cptx_module_destroy(m);
	}
}
END_TEST

/* Whether the first two mma.sync have another A each: they go down a column of D. */
static bool goes_down(cptx_module *m)
{
	cptx_ptx *ptx = cptx_emit(m, "sm_120a", NULL, NULL);
	const char *at = ptx ? cptx_ptx_text(ptx) : "";
	char of_a[2][64] = { "", "" };

	for (int i = 0; i < 2; i++) {
		at = strstr(at, "mma.sync");
		ck_assert_ptr_nonnull(at);
		at = strchr(strchr(at, '{') + 1, '{'); /* behind D */
		sscanf(at, "%63[^}]", of_a[i]);
	}
	cptx_ptx_destroy(ptx);
	return strcmp(of_a[0], of_a[1]) != 0;
}

/* Instructions of cptx_tiled_mma_new, with what the tests have in front of products. */
static size_t in_front(const product *p, bool few_regs)
{
	cptx_module *m = cptx_module_new(NULL);
	built x = { .p = p, .words = few_regs };

	begin(&x, m);
	const size_t n = cptx_module_size(m);
	cptx_module_destroy(m);
	return n;
}

START_TEST(order_and_registers)
{
	for (size_t i = 0; i < PRODUCTS; i++) {
		const product *p = &products[i];
		for (int few = 0; sync_of(p) && few < 2; few++) {
			cptx_module *m = build(p, true, few);
			SURE(goes_down(m) == (few != 0), "product %zu: .along_m = %d does not count", i, few);
			cptx_module_destroy(m);
		}
		/* MN-major operands have one address */
		if (sync_of(p) && !(p->a_mn && p->b_mn))
			SURE(in_front(p, true) < in_front(p, false), "product %zu: .few_regs does not count", i);
	}
}
END_TEST

/* ---- errors ---- */

typedef struct fixture {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val u32, pred, none;
	cptx_tiled_mma_opt o, s; /* of a pair; by mma.sync with factors: all right, a test spoils a field */
	cptx_tiled_mma mma, pair, scaled, plain;
	cptx_acc of_pair, of_scaled;
} fixture;

static fixture begin_errors(void)
{
	fixture x = { .m = cptx_module_new(NULL) };

	x.k = cptx_kernel_begin(x.m, "k", .block = { 128 });
	x.u32 = cptx_var(x.k, CPTX_U32, 0);
	x.pred = cptx_setp(x.k, x.u32, 1, .cmp = CPTX_EQ);
	x.o = (cptx_tiled_mma_opt){ .by = CPTX_BY_TCGEN05,
		                        .a = CPTX_E4M3,
		                        .b = CPTX_E4M3,
		                        .m = 256,
		                        .n = 128,
		                        .ctas = 2,
		                        .a_tile = { 128, 128, .elem = { .bits = 8 }, .swizzle = CPTX_SWIZZLE_128B } };
	x.o.b_tile = x.o.a_tile, x.o.b_tile.rows = 64;
	x.s = (cptx_tiled_mma_opt){
		.a = CPTX_E4M3, .b = CPTX_E4M3, .m = 64, .n = 64, .scale = CPTX_UE8M0, .a_tile = x.o.b_tile, .b_tile = x.o.b_tile
	};
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.pair, &x.o);
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.scaled, &x.s);
	cptx_tiled_mma_opt plain = x.s;
	plain.scale = 0;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.plain, &plain);
	cptx_acc_in_tmem(x.k, &x.pair, &x.of_pair, x.u32);
	cptx_acc_new(x.k, &x.scaled, &x.of_scaled);
	SURE(!cptx_module_error(x.m), "%s", cptx_module_error(x.m) ? cptx_module_error(x.m)->text : "");
	return x;
}

static void told(fixture *x, int line, const char *says)
{
	char where[64];

	snprintf(where, sizeof where, "test_mma_scaled.c:%d: ", line);
	SURE(cptx_module_error(x->m) != NULL, "line %d: no error: %s", line, says);
	SURE(strstr(cptx_module_error(x->m)->text, says) != NULL, "line %d: %s\nlacks: %s", line, cptx_module_error(x->m)->text,
	     says);
	emu_fails(x->m, where, says);
}

/* What is done with a fixture x has an error that says so, and is of this line. */
#define FAILS(says, ...)                                                                                                    \
	do {                                                                                                                    \
		fixture x = begin_errors();                                                                                         \
		__VA_ARGS__;                                                                                                        \
		told(&x, __LINE__, says);                                                                                           \
	} while (0)
#define NEW cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.mma, &x.o)
#define NEW_SYNC cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.mma, &x.s)

START_TEST(pairs)
{
	FAILS("of 3 CTAs; it is one, or by tcgen05 a pair", x.o.ctas = 3; NEW);
	FAILS("of 2 CTAs; it is one, or by tcgen05 a pair", x.s.ctas = 2; NEW_SYNC);
	FAILS("with m = 128; it is always 256", x.o.m = 128; NEW);
	FAILS("with n = 48; it is a multiple of 32, at most 256", x.o.n = 48; NEW);
	FAILS("whose tile of B has 128 rows; the units of a CTA have 64", x.o.b_tile.rows = 128; NEW);
	FAILS("whose tile of A has 256 rows; the units of a CTA have 128", x.o.a_tile.rows = 256; NEW);
	FAILS("cptx_mma_commit is of tcgen05", cptx_mma_commit_to(x.k, &x.scaled, x.u32, x.u32));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_commit_to(x.k, NULL, x.u32, x.u32));
}
END_TEST

START_TEST(small_types_and_factors)
{
	FAILS("of .e2m3 and .e4m3 without scale factors; types of less than 8 bits go by CPTX_BY_TCGEN05, or with .scale",
	      x.s.a = CPTX_E2M3, x.s.scale = 0;
	      NEW_SYNC);
	FAILS("whose tile of A has elements of 8 bits; the type has 6", x.o.a = CPTX_E2M3; NEW);
	FAILS("whose tile of A is not padded; of .e2m1 it should be: .elem.padded", x.o.a = CPTX_E2M1;
	      x.o.a_tile.elem.bits = 4, x.o.a_tile.swizzle = CPTX_SWIZZLE_64B; NEW);
	FAILS("of .e2m1 without scale factors, whose tiles are not padded; say .scale, or .elem.padded", x.o.a = CPTX_E2M1;
	      x.o.b = CPTX_E2M1; NEW);
	FAILS("by wgmma with scale factors; CPTX_BY_TCGEN05 and CPTX_BY_MMA_SYNC take them", x.s.by = CPTX_BY_WGMMA; NEW_SYNC);
	FAILS("of .bf16 with scale factors; these are for E4M3", x.s.a = CPTX_BF16, x.s.b = CPTX_BF16; NEW_SYNC);
	FAILS("with scale factors of .ue4m3; they are CPTX_UE8M0, or UE4M3 of .e2m1 that is not padded", x.s.scale = CPTX_UE4M3;
	      NEW_SYNC);
	FAILS("with scale factors of .f32; they are CPTX_UE8M0, or", x.o.scale = CPTX_F32; NEW);
	FAILS("with scale factors of 48 x 64; a unit has multiples of 32", x.s.m = 48; NEW_SYNC);
	FAILS("by mma.sync with scale factors of 256 x 64; a CTA has at most 128 rows and 128 columns", x.s.m = 128;
	      x.s.units_m = 2; NEW_SYNC);
	FAILS("whose tiles have 64 elements along K; blocks of scale factors are of 128", x.s.b_tile.cols = 64; NEW_SYNC);
	FAILS("whose tile of A has two .e2m1 in a byte and is MN-major", x.s.a = x.s.b = CPTX_E2M1; x.s.m = 128;
	      x.s.a_tile.elem.bits = x.s.b_tile.elem.bits = 4; x.s.a_tile.cols = x.s.b_tile.cols = 256; x.s.a_tile.rows = 128;
	      x.s.a_tile.swizzle = CPTX_SWIZZLE_64B; x.s.a_tile.elem.mn_major = true; NEW_SYNC);
	FAILS("has no instruction descriptor: ", x.o.kind = CPTX_TCGEN05_F16; NEW);
	FAILS("by wgmma or tcgen05 with .a_base or .b_base", x.o.b_base = x.u32; NEW);
	FAILS("with .a_ring and .b_ring; these are for wgmma", x.s.a_ring = x.s.b_ring = x.u32, x.s.apart = 8192; NEW_SYNC);
}
END_TEST

START_TEST(calls)
{
	FAILS("with scale factors lacks .scale_a: a .u32 register, where they are in shared memory",
	      cptx_mma_tile(x.k, &x.scaled, &x.of_scaled, x.u32, x.u32, .fresh = true));
	FAILS("with scale factors lacks .scale_b: a .u32 register",
	      cptx_mma_tile(x.k, &x.scaled, &x.of_scaled, x.u32, x.u32, .scale_a = x.u32));
	FAILS("with scale factors takes no .frags, .next_a and .next_b", cptx_mma_frags f = { .rolling = false };
	      cptx_mma_tile(x.k, &x.scaled, &x.of_scaled, x.u32, x.u32, .scale_a = x.u32, .scale_b = x.u32, .frags = &f));
	FAILS("with scale factors takes no .frags, .next_a and .next_b",
	      cptx_mma_tile(x.k, &x.scaled, &x.of_scaled, x.u32, x.u32, .scale_a = x.u32, .scale_b = x.u32, .next_b = x.u32));
	FAILS("fragments of a tiled mma with scale factors; that fetches its own in cptx_mma_tile", cptx_mma_frags f;
	      cptx_mma_frags_new(x.k, &x.scaled, &f, false));
	FAILS("fragments of a tiled mma with scale factors; that fetches its own in cptx_mma_tile",
	      cptx_mma_frags f = { .rolling = false };
	      cptx_mma_fetch(x.k, &x.scaled, &f, x.u32, x.u32));
	FAILS("fragments are for mma.sync; wgmma and tcgen05 read shared memory themselves", x.o.scale = CPTX_UE8M0; NEW;
	      cptx_mma_frags f = { .rolling = false }; cptx_mma_fetch(x.k, &x.mma, &f, x.u32, x.u32));
	FAILS("by wgmma or tcgen05 takes no .along_m: one instruction makes all columns of D",
	      cptx_mma_tile(x.k, &x.pair, &x.of_pair, x.u32, x.u32, .along_m = true));
	FAILS("by wgmma or tcgen05 with .few_regs; that is for mma.sync", x.o.few_regs = true; NEW);
	FAILS("without scale factors takes no .scale_a and .scale_b",
	      cptx_mma_tile(x.k, &x.pair, &x.of_pair, x.u32, x.u32, .scale_a = x.u32));
	FAILS("cptx_mma_copy_a is of tcgen05 with CPTX_A_TMEM and a K-major .a_tile",
	      cptx_mma_copy_a(x.k, &x.pair, x.u32, x.u32));
	FAILS("cptx_mma_copy_a without an address in tensor memory: a .u32 register", x.o.a_from = CPTX_A_TMEM; NEW;
	      cptx_mma_copy_a(x.k, &x.mma, x.none, x.u32));
	FAILS("cptx_mma_copy_a without an address in shared memory", x.o.a_from = CPTX_A_TMEM; NEW;
	      cptx_mma_copy_a(x.k, &x.mma, x.u32, x.pred));
	FAILS("cptx_mma_copy_scale_a is of tcgen05 with .scale", cptx_mma_copy_scale_a(x.k, &x.scaled, x.u32, x.u32));
	FAILS("cptx_mma_copy_scale_b is of tcgen05 with .scale", cptx_mma_copy_scale_b(x.k, &x.pair, x.u32, x.u32));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_copy_scale_b(x.k, &x.mma, x.u32, x.u32));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma_scaled");

	tcase_add_test(t, products_are_right);
	tcase_add_test(t, ptxas_takes_them);
	tcase_add_test(t, order_and_registers);
	tcase_add_test(t, pairs);
	tcase_add_test(t, small_types_and_factors);
	tcase_add_test(t, calls);
	return test_main("kit mma_scaled", s);
}
