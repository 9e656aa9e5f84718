/* SPDX-License-Identifier: MIT */
/* tcgen05: tensor memory, its operations against sums in double, and what is found wrong with them. */
#include "tcgen05_found.h"
#include "tcgen05_gemm.h"
#include "tcgen05_mma.h"

#include "../sanitized.h"

#include <stdarg.h>

/* ---- kernels as text ---- */

typedef struct text {
	char s[1 << 16];
	size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, format, ap);
	va_end(ap);
	ck_assert_uint_lt(t->n, sizeof t->s);
}

static text *text_new(void)
{
	text *t = calloc(1, sizeof *t);

	ck_assert_ptr_nonnull(t);
	return t;
}

/* {%name0, %name1, ...} */
static void add_registers(text *t, const char *name, unsigned first, unsigned n)
{
	add(t, "{");
	for (unsigned i = 0; i < n; i++)
		add(t, "%s%%%s%u", i ? "," : "", name, first + i);
	add(t, "}");
}

/* A warp allocates columns; %r1: their address in all threads.  mb: an mbarrier for one arrival. */
static void add_begin(text *t, unsigned columns, const char *group)
{
	add(t,
	    ".shared .align 8 .b64 mb; .shared .b32 slot; .reg .b32 %%v<260>; .reg .b64 %%w<8>;"
	    "setp.eq.u32 %%p0, %%r0, 0; setp.lt.u32 %%p1, %%r0, 32;\n"
	    "@!%%p1 bra ALLOCATED; tcgen05.alloc.cta_group::%s.sync.aligned.shared::cta.b32 [slot], %u;\n"
	    "@%%p0 mbarrier.init.shared.b64 [mb], 1;\nALLOCATED: bar.sync 0; ld.shared.u32 %%r1, [slot];\n",
	    group, columns);
}

static void add_end(text *t, unsigned columns, const char *group)
{
	add(t, "bar.sync 0; @!%%p1 bra FREED; tcgen05.dealloc.cta_group::%s.sync.aligned.b32 %%r1, %u; FREED:\n", group,
	    columns);
}

static void run_ok(const char *target, unsigned block, unsigned cluster, void *data, size_t size, uint32_t smem,
                   const char *body, uint64_t seed)
{
	trial t = { .target = target,
		        .block = { block },
		        .grid = { cluster ? cluster : 1 },
		        .cluster = { cluster },
		        .data = data,
		        .size = size,
		        .body = body,
		        .dyn_smem = smem,
		        .opt.seed = seed };

	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "%s\n%s\n%.3000s", t.err.text, t.message, body);
}

/* ---- ld and st ---- */

static const struct shape {
	const char *name;
	uint16_t m, n;
	unsigned words, split;
} shapes[] = { { "32x32b", 32, 32, 1, 0 },
	           { "16x64b", 16, 64, 1, 0 },
	           { "16x128b", 16, 128, 2, 0 },
	           { "16x256b", 16, 256, 4, 0 },
	           { "16x32bx2", 16, 32, 1, 130 } };

/* st by 32x32b and ld by the shape, or the other way round: registers of a warp against the fragment's cells. */
static void check_move(const struct shape *s, unsigned num, bool pack, bool store)
{
	cptx_frag what = {
		.kind = CPTX_FRAG_TCGEN05, .m = s->m, .n = s->n, .num = (uint8_t)num, .pack16 = pack, .split = (uint16_t)s->split
	};
	unsigned regs = num * s->words, cols;
	cptx_frag_map map;
	cptx_error err = { 0 };
	text *t = text_new();
	/* in: what the other side stores, [column][lane]; out: what is loaded */
	uint32_t(*data)[256][32] = calloc(2, sizeof *data);

	ck_assert_ptr_nonnull(data);
	ck_assert_msg(cptx_frag_resolve(&what, &map, &err), "%s", err.text);
	cols = map.cols;
	if (cols > 256)
		goto done;
	for (unsigned c = 0; c < 256; c++)
		for (unsigned l = 0; l < 32; l++)
			data[0][c][l] = (c << 16 | l << 8 | (c * 7 + l)) & (pack ? 0xffff : 0xffffffff);
	add_begin(t, 256, "1");
	add(t, "shl.b32 %%r3, %%r0, 2; cvt.u64.u32 %%rd1, %%r3; add.u64 %%rd1, %%rd0, %%rd1;\n");
	/* One side column by column, */
	for (unsigned c = 0; c < (store ? regs : cols); c++)
		add(t, "ld.global.u32 %%v%u, [%%rd1+%u];\n", store ? c : 0, c * 128),
			store ? (void)0 : add(t, "add.u32 %%r4, %%r1, %u; tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r4], {%%v0};\n", c);
	if (store && s->split)
		add(t, "mov.u32 %%r6, 0;\n");
	/* the other at once. */
	if (store) {
		add(t, "mov.u32 %%v258, 77;\n");
		for (unsigned c = 0; c < cols; c++)
			add(t, "add.u32 %%r4, %%r1, %u; tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r4], {%%v258};\n", c);
		add(t, "tcgen05.wait::st.sync.aligned;\n");
		add(t, "tcgen05.st.sync.aligned.%s.x%u%s.b32 [%%r1], ", s->name, num, pack ? ".unpack::16b" : "");
		if (s->split)
			add(t, "%u, ", s->split);
		add_registers(t, "v", 0, regs);
	} else {
		add(t, "tcgen05.wait::st.sync.aligned;\n");
		add(t, "tcgen05.ld.sync.aligned.%s.x%u%s.b32 ", s->name, num, pack ? ".pack::16b" : "");
		add_registers(t, "v", 0, regs);
		add(t, ", [%%r1]");
		if (s->split)
			add(t, ", %u", s->split);
	}
	add(t, "; tcgen05.wait::%s.sync.aligned; add.u64 %%rd1, %%rd1, %u;\n", store ? "st" : "ld", 256 * 128);
	for (unsigned c = 0; c < (store ? cols : regs); c++) {
		if (store)
			add(t,
			    "add.u32 %%r4, %%r1, %u; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%v0}, [%%r4]; "
			    "tcgen05.wait::ld.sync.aligned;\n",
			    c);
		add(t, "st.global.u32 [%%rd1+%u], %%v%u;\n", c * 128, store ? 0 : c);
	}
	add_end(t, 256, "1");
	run_ok("sm_100a", 32, 0, data, 2 * sizeof *data, 0, t->s, num + pack);
	for (unsigned r = 0; r < regs; r++)
		for (unsigned l = 0; l < 32; l++)
			for (unsigned k = 0; k < map.slots; k++) {
				cptx_place p = { (uint16_t)l, (uint16_t)r, (uint16_t)k };
				cptx_cell cell;
				ck_assert(cptx_frag_cell(&map, p, &cell));
				uint32_t mask = pack ? 0xffff : 0xffffffff, reg = store ? data[0][r][l] : data[1][r][l];
				uint32_t tmem = store ? data[1][cell.col][cell.row] : data[0][cell.col][cell.row];
				ck_assert_msg((reg >> 16 * k & mask) == tmem, "%s.x%u%s %s: register %u, lane %u: 0x%x, memory has 0x%x",
				              s->name, num, pack ? " packed" : "", store ? "st" : "ld", r, l, reg, tmem);
			}
done:
	free(data);
	free(t);
}

START_TEST(loads_and_stores)
{
	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (unsigned num = 1; num <= 128 / shapes[i].words; num *= 2)
			for (unsigned k = 0; k < 4; k++)
				check_move(&shapes[i], num, k & 1, k & 2);
}
END_TEST

/* ---- mma ---- */

#define F16(a_, d_) .kind = CPTX_TCGEN05_F16, .a = CPTX_##a_, .b = CPTX_##a_, .d = CPTX_##d_
#define TF32 .kind = CPTX_TCGEN05_TF32, .a = CPTX_TF32, .b = CPTX_TF32, .d = CPTX_F32
#define F8(a_, b_, d_) .kind = CPTX_TCGEN05_F8F6F4, .a = CPTX_##a_, .b = CPTX_##b_, .d = CPTX_##d_
#define I8(a_, b_) .kind = CPTX_TCGEN05_I8, .a = CPTX_##a_, .b = CPTX_##b_, .d = CPTX_S32
#define MX8(a_, b_)                                                                                                         \
	.kind = CPTX_TCGEN05_MXF8F6F4, .a = CPTX_##a_, .b = CPTX_##b_, .d = CPTX_F32, .scale = CPTX_UE8M0, .vec = 1
#define FP4(kind_, scale_, vec_)                                                                                            \
	.kind = CPTX_TCGEN05_##kind_, .a = CPTX_E2M1, .b = CPTX_E2M1, .d = CPTX_F32, .scale = CPTX_##scale_, .vec = vec_
#define NONE .swizzle = CPTX_SWIZZLE_NONE
#define S32B .swizzle = CPTX_SWIZZLE_32B
#define S64B .swizzle = CPTX_SWIZZLE_64B
#define S128B .swizzle = CPTX_SWIZZLE_128B
#define ONE(m_, n_) .m = m_, .n = n_, .ctas = 1
#define PAIR(m_, n_) .m = m_, .n = n_, .ctas = 2
#define BLOCK_SCALE .spelling = ".block_scale"

static void check_all(const mma_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mma_check(&c[i], i);
}
#define CHECK_ALL(...)                                                                                                      \
	do {                                                                                                                    \
		static const mma_case all[] = { __VA_ARGS__ };                                                                      \
		check_all(all, sizeof all / sizeof *all);                                                                           \
	} while (0)

START_TEST(mma_f16)
{
	CHECK_ALL({ F16(BF16, F32), ONE(128, 64), NONE }, { F16(BF16, F32), ONE(128, 256), S128B },
	          { F16(F16, F32), ONE(64, 8), S32B }, { F16(F16, F16), ONE(128, 48), S64B },
	          { F16(BF16, F32), ONE(128, 64), S128B, .a_mn = true, .b_mn = true },
	          { F16(BF16, F32), ONE(64, 64), NONE, .a_mn = true, .b_mn = true }, { F16(F16, F32), PAIR(256, 128), S128B },
	          { F16(BF16, F32), PAIR(128, 64), NONE }, { F16(F16, F16), PAIR(256, 256), S128B, .b_mn = true },
	          { F16(BF16, F32), ONE(128, 32), NONE, .discard = true },
	          { F16(BF16, F32), ONE(128, 32), NONE, .negate = true }, { F16(BF16, F32), ONE(128, 32), NONE, .off = true },
	          { F16(BF16, F32), PAIR(256, 32), NONE, .off = true }, { F16(BF16, F32), ONE(128, 32), NONE, .halve = true });
}
END_TEST

START_TEST(mma_kinds)
{
	CHECK_ALL({ TF32, ONE(128, 64), S128B }, { TF32, ONE(128, 32), NONE, .a_mn = true, .b_mn = true },
	          { TF32, PAIR(256, 64), S32B }, { F8(E4M3, E5M2, F32), ONE(128, 64), S128B },
	          { F8(E5M2, E4M3, F16), PAIR(256, 64), S32B }, { F8(E2M1, E4M3, F32), ONE(128, 32), NONE },
	          { F8(E2M3, E3M2, F32), ONE(64, 32), S32B }, { F8(E4M3, E4M3, F32), ONE(128, 32), NONE, .b_mn = true },
	          { I8(S8, U8), ONE(128, 64), S128B }, { I8(U8, S8), PAIR(256, 64), NONE }, { I8(S8, S8), ONE(64, 32), S32B });
}
END_TEST

START_TEST(mma_scaled)
{
	CHECK_ALL(
		{ MX8(E4M3, E4M3), ONE(128, 64), S128B, BLOCK_SCALE }, { MX8(E2M1, E5M2), ONE(128, 136), NONE, BLOCK_SCALE },
		{ MX8(E4M3, E3M2), PAIR(256, 64), NONE, BLOCK_SCALE }, { FP4(MXF4, UE8M0, 2), ONE(128, 64), S32B, BLOCK_SCALE },
		{ FP4(MXF4, UE8M0, 2), PAIR(256, 64), NONE, BLOCK_SCALE }, { MX8(E4M3, E4M3), PAIR(128, 64), NONE, BLOCK_SCALE },
		{ FP4(MXF4NVF4, UE4M3, 4), ONE(128, 128), NONE, .spelling = ".block_scale.block16" },
		{ FP4(MXF4NVF4, UE8M0, 2), ONE(128, 64), NONE, .spelling = ".block_scale.scale_vec::2X" },
		{ MX8(E4M3, E4M3), ONE(128, 40), NONE, BLOCK_SCALE, .a_id = 3, .b_id = 1 },
		{ FP4(MXF4, UE8M0, 2), PAIR(128, 48), NONE, BLOCK_SCALE, .b_id = 2 },
		{ MX8(E4M3, E5M2), PAIR(128, 240), NONE, BLOCK_SCALE, .a_id = 2 });
}
END_TEST

START_TEST(mma_of_96)
{
	CHECK_ALL(
		{ FP4(MXF4, UE8M0, 3), ONE(128, 64), NONE, BLOCK_SCALE, .k96 = true, .a_id = 1, .b_id = 3 },
		{ FP4(MXF4, UE8M0, 3), PAIR(256, 256), NONE, BLOCK_SCALE, .k96 = true, .a_id = 2 },
		{ FP4(MXF4NVF4, UE4M3, 6), ONE(128, 136), S128B, .spelling = ".block_scale.block16", .k96 = true, .b_id = 2 },
		{ FP4(MXF4NVF4, UE8M0, 3), PAIR(256, 32), NONE, .spelling = ".block_scale.block32", .k96 = true, .a_tmem = true });
}
END_TEST

START_TEST(mma_a_in_tensor_memory)
{
	CHECK_ALL({ F16(BF16, F32), ONE(128, 64), S128B, .a_tmem = true }, { F16(F16, F32), ONE(64, 64), NONE, .a_tmem = true },
	          { TF32, PAIR(256, 64), NONE, .a_tmem = true }, { F16(BF16, F32), PAIR(128, 64), NONE, .a_tmem = true },
	          { F8(E2M1, E4M3, F32), ONE(128, 64), NONE, .a_tmem = true },
	          { I8(S8, S8), ONE(128, 64), NONE, .a_tmem = true },
	          { MX8(E4M3, E4M3), ONE(128, 64), NONE, BLOCK_SCALE, .a_tmem = true },
	          { FP4(MXF4, UE8M0, 2), ONE(128, 64), NONE, BLOCK_SCALE, .a_tmem = true });
}
END_TEST

START_TEST(mma_sparse)
{
	CHECK_ALL({ F16(BF16, F32), ONE(128, 64), NONE, .sparse = true }, { TF32, ONE(128, 64), NONE, .sparse = true },
	          { F8(E4M3, E4M3, F32), ONE(128, 64), S128B, .sparse = true },
	          { I8(S8, S8), ONE(128, 64), NONE, .sparse = true }, { F16(F16, F32), PAIR(256, 64), NONE, .sparse = true },
	          { MX8(E4M3, E4M3), ONE(128, 64), NONE, BLOCK_SCALE, .sparse = true },
	          { F16(BF16, F32), ONE(64, 32), NONE, .sparse = true, .selector = 1 },
	          { TF32, PAIR(128, 32), NONE, .sparse = true, .selector = 1 },
	          { I8(U8, S8), ONE(64, 32), NONE, .sparse = true },
	          { F8(E5M2, E4M3, F32), PAIR(128, 32), NONE, .sparse = true },
	          { FP4(MXF4, UE8M0, 2), ONE(128, 64), NONE, BLOCK_SCALE, .sparse = true },
	          { FP4(MXF4NVF4, UE4M3, 4), PAIR(256, 32), NONE, .spelling = ".block_scale.block16", .sparse = true });
}
END_TEST

START_TEST(mma_ws)
{
	CHECK_ALL({ F16(BF16, F32), ONE(128, 64), NONE, .ws = true }, { F16(F16, F32), ONE(64, 128), NONE, .ws = true },
	          { TF32, ONE(32, 64), NONE, .ws = true }, { I8(S8, S8), ONE(32, 256), NONE, .ws = true, .a_tmem = true },
	          { F8(E4M3, E4M3, F32), ONE(128, 64), NONE, .ws = true, .sparse = true },
	          { F16(BF16, F32), ONE(64, 128), NONE, .ws = true,
	            .zero = 1ull << 39 | 2ull << 40 | 3ull << 48 | 1ull << 32 | 3 << 8 },
	          { F16(BF16, F32), ONE(32, 128), NONE, .ws = true, /* the manual's fourth example */
	            .zero = 1ull << 39 | 2ull << 40 | 3ull << 48 | 3ull << 32 | 2ull << 56 | 0x01020100 },
	          { F16(BF16, F32), ONE(128, 64), NONE, .ws = true, .b_mn = true, .zero = 11ull << 56 },
	          { F16(F16, F32), ONE(64, 64), NONE, .ws = true, .sparse = true },
	          { TF32, ONE(32, 64), NONE, .ws = true, .sparse = true },
	          { I8(S8, U8), ONE(32, 128), NONE, .ws = true, .sparse = true });
}
END_TEST

/* CPTX_SEEDS: another number of them. */
START_TEST(mma_at_random)
{
	const char *more = getenv("CPTX_SEEDS");

	for (uint64_t seed = 0; seed < (more ? strtoull(more, NULL, 10) : SAMPLE_OF(12u, 3u)); seed++) {
		mma_case c = mma_random(seed);
		mma_check(&c, seed);
	}
}
END_TEST

START_TEST(findings) { tcgen05_findings(); }
END_TEST

START_TEST(whole_gemm)
{
	for (uint64_t seed = 0; seed < SAMPLE_OF(3, 1); seed++)
		tcgen05_gemm(seed);
}
END_TEST
START_TEST(copies) { tcgen05_copies(); }
END_TEST
START_TEST(shift) { tcgen05_shift(); }
END_TEST
START_TEST(reductions) { tcgen05_reductions(); }
END_TEST

TRIAL_MAIN("tcgen05", loads_and_stores, mma_f16, mma_kinds, mma_scaled, mma_of_96, mma_a_in_tensor_memory, mma_sparse,
           mma_ws, mma_at_random, findings, copies, shift, reductions, whole_gemm)
