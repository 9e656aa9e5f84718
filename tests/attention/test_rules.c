/* SPDX-License-Identifier: MIT */
/* Rules of options and problems, each with its words; what ptxas says of kernels; one call that does all. */
#include "trial.h"

#include <cptx/cptx.h>

#include <math.h>

#define BASE .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 128
#define SYNC .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 128
#define TCGEN05 .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_TCGEN05, .in = CPTX_BF16, .dim = 128
#define FP8 .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_E4M3, .dim = 128
#define SYNC_FP8 .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_SYNC, .in = CPTX_E4M3, .dim = 128
#define TCGEN05_FP8 .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_TCGEN05, .in = CPTX_E4M3, .dim = 128
#define SIZES .size = CPTX_OPT_SIZE(cptx_attention_problem), .batch = 1, .heads = 4, .queries = 64, .keys = 64

static cptx_val some_blocks(cptx_kernel *k, void *user, const cptx_attention_block *b)
{
	(void)user;
	return cptx_setp(k, b->key, 0, .cmp = CPTX_GT);
}

typedef struct rule {
	const char *says;
	cptx_attention_opt o;
	cptx_attention_problem p; /* size 0: the options break it */
} rule;

#define S CPTX_OPT_SIZE(cptx_attention_opt)
static const rule rules[] = {
	{ ".mma = 9; there are", { .size = S, .mma = (enum cptx_attention_mma)9, .in = CPTX_BF16, .dim = 64 }, { 0 } },
	{ "sm_80: 96 queries and 2 warps; each warp has 16 or 32", { SYNC, .bq = 96, .warps = 2 }, { 0 } },
	{ "sm_80: 32 queries of a warp, blocks of 128 keys", { SYNC, .bk = 128 }, { 0 } },
	{ "sm_80: 16 warps of about", { SYNC, .warps = 16 }, { 0 } },
	{ "sm_80: 256 queries, and 8 stages of 48 keys", { SYNC, .bq = 256, .stages = 8, .tma = true }, { 0 } },
	{ ".ctas = 3; by mma.sync each tile has a CTA", { SYNC }, { SIZES, .ctas = 3 } },
	{ "tiles of 32 queries; there are less than 2^31",
	  { BASE, .pack = 4 },
	  { .size = CPTX_OPT_SIZE(cptx_attention_problem),
	    .batch = 1024,
	    .heads = 1 << 20,
	    .kv_heads = 1 << 18,
	    .queries = 512 } },
	{ ".warps is an option of the kernel by mma.sync; wgmma has none", { BASE, .warps = 4 }, { 0 } },
	{ ".tma is an option of the kernel by mma.sync", { BASE, .tma = true }, { 0 } },
	{ ".pack is an option of the kernel by wgmma", { SYNC, .pack = 2 }, { 0 } },
	{ ".pack = 3; it is a power of two", { BASE, .pack = 3 }, { 0 } },
	{ "tiles of 64 rows for 16 heads; each has", { BASE, .pack = 16, .bq = 64 }, { 0 } },
	{ ".pack = 4; it divides the heads of Q for one of K and V", { BASE, .pack = 4 }, { SIZES, .kv_heads = 2 } },
	{ ".blocks without .mask", { BASE, .blocks = some_blocks }, { 0 } },
	{ ".page = 24; it is a power of two", { BASE, .page = 24 }, { 0 } },
	{ "pages of 64 keys and blocks of 48; a page is a multiple of a block, or divides it",
	  { BASE, .page = 64, .bk = 48 },
	  { 0 } },
	{ "pages of 16 keys and blocks of 32; a page is a multiple of a block where cp.async",
	  { SYNC, .page = 16, .bk = 32 },
	  { 0 } },
	{ "pages of 8 keys make 128 parts", { BASE, .dim_v = 256, .bq = 64, .bk = 128, .page = 8 }, { 0 } },
	{ "the problem has .sinks", { BASE }, { SIZES, .sinks = 16 } },
	{ "the problem has .cu_queries, and the kernel does not read it: say .varlen", { BASE }, { SIZES, .cu_queries = 16 } },
	{ "the problem has .pages", { BASE }, { SIZES, .pages = 16 } },
	{ "the problem has .total_keys",
	  { BASE, .varlen = true, .page = 128 },
	  { SIZES, .total_queries = 64, .total_keys = 9 } },
	{ ".total_queries = 63; the longest", { BASE, .varlen = true }, { SIZES, .total_queries = 63, .total_keys = 64 } },
	{ ".total_keys = 63; the longest", { BASE, .varlen = true }, { SIZES, .total_queries = 64, .total_keys = 63 } },
	{ ".table_pitch = 3; 64 keys need 4 pages", { BASE, .page = 16 }, { SIZES, .table_pitch = 3, .pages = 9 } },
	{ ".pages = 0; there are keys", { BASE, .page = 16 }, { SIZES, .table_pitch = 4 } },
	{ ".q_stride.row = 4294967296; rows have 128 elements, and are less than 2^31",
	  { BASE },
	  { SIZES, .q_stride = { 8192, 8192, UINT64_C(1) << 32 } } },
	{ "sm_100a: bq = 64; a CTA has 128",
	  { .size = S, .mma = CPTX_ATTENTION_TCGEN05, .in = CPTX_BF16, .dim = 64, .bq = 64 },
	  { 0 } },
	{ "sm_100a: bk = 48; a block has", { TCGEN05, .bk = 48 }, { 0 } },
	{ "sm_100a: bk = 32; with two tiles of queries a block has 64", { TCGEN05, .bq = 256, .bk = 32 }, { 0 } },
	{ "sm_100a: two tiles with 128 keys and head size 192 of V need 640 columns",
	  { TCGEN05, .bq = 256, .bk = 128, .dim_v = 192 },
	  { 0 } },
	{ ".fast_ex2 is an option of the kernel by tcgen05; wgmma has none", { BASE, .fast_ex2 = true }, { 0 } },
	{ "sm_100a: 8 stages of 64 keys", { TCGEN05, .stages = 8 }, { 0 } },
	{ ".tma is an option of the kernel by mma.sync; tcgen05 has none", { TCGEN05, .tma = true }, { 0 } },
	{ ".in is not given", { .size = S, .mma = CPTX_ATTENTION_WGMMA, .dim = 64 }, { 0 } },
	{ ".in is e5m2; Q, K and V are", { .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_E5M2, .dim = 64 }, { 0 } },
	{ ".out is e4m3; of e4m3 O is", { FP8, .out = CPTX_E4M3 }, { 0 } },
	{ "sm_90a: blocks of 112 keys; of e4m3 a multiple of 32", { FP8, .bk = 112 }, { 0 } },
	{ "the problem has v_scale = 2, which is of e4m3", { BASE }, { SIZES, .v_scale = 2 } },
	{ ".v_scale = -1; it is above 0", { FP8 }, { SIZES, .v_scale = -1 } },
	{ "head size 40; rows of q have multiples of 16 elements",
	  { .size = S, .mma = 1, .in = CPTX_E4M3, .dim = 40 },
	  { SIZES, .scale = 1 } },
	{ ".out is f16; O is of the type of Q, .bf16", { BASE, .out = CPTX_F16 }, { 0 } },
	{ ".dim is not given", { .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16 }, { 0 } },
	{ ".dim = 100; it is from 8 to 256, in steps of 8", { .size = S, .mma = 1, .in = CPTX_BF16, .dim = 100 }, { 0 } },
	{ ".dim_v = 264", { BASE, .dim_v = 264 }, { 0 } },
	{ "sm_90a: bq = 32; it is 64 for each MMA warpgroup", { BASE, .bq = 32 }, { 0 } },
	{ ".bk = 24", { BASE, .bk = 24 }, { 0 } },
	{ ".stages = 1", { BASE, .stages = 1 }, { 0 } },
	{ ".top_left without .causal", { BASE, .top_left = true }, { 0 } },
	{ "sm_90a: blocks of 256 keys", { BASE, .bk = 256 }, { 0 } },
	{ "bytes of shared memory; a CTA has at most", { BASE, .stages = 3 }, { 0 } },
	{ "kernel", { BASE, .name = "1" }, { 0 } },
	{ "4 heads of Q, and 3 of K and V", { BASE }, { SIZES, .kv_heads = 3 } },
	{ ".scale = -1; it is above 0", { BASE }, { SIZES, .scale = -1 } },
	{ "the problem has softcap = 3", { BASE }, { SIZES, .softcap = 3 } },
	{ ".softcap = 0; it is above 0", { BASE, .softcap = true }, { SIZES, .scale = 1 } },
	{ "the problem has a window", { BASE }, { SIZES, .window_left = 3 } },
	{ ".window_right = 2; with .causal", { BASE, .causal = true, .window = true }, { SIZES, .window_right = 2 } },
	{ ".q_stride.row = 100", { BASE }, { SIZES, .q_stride = { 8192, 8192, 100 } } },
	{ ".k_stride.head = 0", { BASE }, { SIZES, .k_stride = { 8192, 0, 128 } } },
	{ ".o_stride.row = 64; rows have 128", { BASE }, { SIZES, .o_stride = { 8192, 8192, 64 } } },
	{ "both are below 2^29", { BASE }, { SIZES, .q_stride = { 1, 0, 0 } } },
};
enum { RULES = sizeof rules / sizeof *rules };

START_TEST(rules_are_named)
{
	const rule *r = &rules[_i];
	cptx_attention_problem p = r->p;
	cptx_error err = { 0 };

	if (p.q_stride.batch == 1)
		p.q_stride.batch = 0, p.keys = 1u << 29;
	const bool ok = p.size
	                    ? cptx_attention_check_problem(&r->o, &p, 1, NULL, FRESH(&err))
	                    : cptx_attention_check(&r->o, r->o.mma < CPTX_ATTENTION_TCGEN05 ? cptx_target_find("sm_90a") : NULL,
	                                           NULL, FRESH(&err));
	ck_assert_msg(!ok && strstr(err.text, r->says), "\"%s\" should have \"%s\"", err.text, r->says);
	if (p.size)
		return;
	cptx_module *m = cptx_module_new(NULL);
	ck_assert_ptr_null(cptx_attention_build(m, &r->o, FRESH(&err)));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(another_target)
{
	const cptx_attention_opt o = { BASE };
	cptx_error err = { 0 };

	const cptx_attention_opt by_tma = { SYNC, .tma = true }, large = { SYNC, .stages = 5 };

	const cptx_attention_opt bytes = { SYNC_FP8 };

	ck_assert(!cptx_attention_check(&bytes, cptx_target_find("sm_86"), NULL, FRESH(&err)) && err.code == CPTX_E_TARGET);
	ck_assert_msg(strstr(err.text, "sm_86 has no .e4m3; targets from sm_89 on have it"), "%s", err.text);
	ck_assert(!cptx_attention_check(&by_tma, cptx_target_find("sm_80"), NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, ".tma for sm_80; TMA is there from sm_90 on"), "%s", err.text);
	ck_assert(!cptx_attention_check(&by_tma, cptx_target_find("sm_75"), NULL, FRESH(&err)) && err.code == CPTX_E_TARGET);
	ck_assert(!cptx_attention_check(&large, cptx_target_find("sm_86"), NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "a CTA of sm_86 has at most 101376"), "%s", err.text);
	ck_assert(!cptx_attention_check(&o, cptx_target_find("sm_80"), NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "sm_90a") && err.code == CPTX_E_TARGET, "%s", err.text);
	ck_assert_int_eq(cptx_attention_mma_of(cptx_target_find("sm_90a")), CPTX_ATTENTION_WGMMA);
	ck_assert_int_eq(cptx_attention_mma_of(NULL), CPTX_ATTENTION_SYNC);
	ck_assert(cptx_attention_has_fast_ex2(cptx_target_find("sm_103a")));
	ck_assert(!cptx_attention_has_fast_ex2(cptx_target_find("sm_100a")) && !cptx_attention_has_fast_ex2(NULL));
	ck_assert_str_eq(cptx_attention_mma_name(CPTX_ATTENTION_TCGEN05), "tcgen05");
	ck_assert_str_eq(cptx_attention_mma_name((enum cptx_attention_mma)7), "?");
}
END_TEST

/* The usual shapes, and those at the edge of the rules. */
static const cptx_attention_opt shapes[] = {
	{ BASE },
	{ BASE, .causal = true, .lse = true },
	{ BASE, .causal = true, .window = true, .softcap = true, .lse = true },
	{ BASE, .bk = 176 },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 64, .causal = true },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_F16, .dim = 64, .window = true, .lse = true },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 96, .out = CPTX_F32, .causal = true },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 192, .causal = true, .window = true },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 256, .causal = true, .lse = true },
	{ BASE, .causal = true, .varlen = true, .lse = true, .sinks = true },
	{ BASE, .page = 16, .lse = true },
	{ FP8, .causal = true, .lse = true },
	{ SYNC },
	{ SYNC, .causal = true, .lse = true },
	{ SYNC, .tma = true, .causal = true, .window = true, .softcap = true, .lse = true },
	{ SYNC, .tma = true, .varlen = true, .page = 16, .sinks = true },
	{ SYNC, .page = 64, .window = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_F16, .dim = 64, .tma = true, .window = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 96, .out = CPTX_F32, .causal = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 192, .dim_v = 128, .causal = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 256, .causal = true, .lse = true },
	{ .size = S, .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 256, .tma = true, .lse = true },
	{ TCGEN05, .causal = true, .window = true, .softcap = true, .lse = true, .varlen = true, .sinks = true },
	{ TCGEN05, .dim_v = 256, .page = 16 },
	{ TCGEN05, .causal = true, .lse = true },
	{ TCGEN05, .fast_ex2 = true },
	{ SYNC_FP8, .causal = true, .lse = true },
	{ SYNC_FP8, .tma = true },
	{ TCGEN05_FP8, .causal = true, .lse = true },
	{ TCGEN05_FP8, .bq = 128, .dim_v = 256, .fast_ex2 = true },
	{ FP8, .bk = 224 },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_E4M3, .dim = 64, .window = true, .softcap = true },
	{ .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_E4M3, .dim = 256, .causal = true, .sinks = true },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Without CPTX_WHOLE one of each generator. */
START_TEST(ptxas_neither_warns_nor_spills)
{
	cptx_module *m;
	unsigned n = 0;

	if (!trial_whole(true, _i % 12 == 11 || !_i))
		return;
	if (!test_ptxas()) {
		skip("ptxas, to judge the kernels");
		return;
	}
	m = cptx_module_new(NULL);
	cptx_attention_build(m, &shapes[_i], NULL);
	char *said = emu_assembles(m, trial_target(&shapes[_i], 2)); /* mma.sync: sm_80, and by TMA sm_90 */
	SURE(assembly_spills(said, &n) == 0 && n == 1, "%s", said);
	SURE(!strstr(said, "C75") && !strstr(said, "serialized"), "%s", said);
	free(said);
	cptx_module_destroy(m);
}
END_TEST

/* Two kernels in three runs, the third of which finds its own; and heads that share tiles. */
START_TEST(one_call_does_all)
{
	enum { N = 2 * 3 * 80 * 64 };
	static uint16_t in[N], first[N], again[N];
	cptx_device *dev = trial_device(1); /* of two multiprocessors */
	cptx_emu_counters before, packed, apart;
	cptx_error err = { 0 };
	cptx_attention_runner *r = cptx_attention_runner_new(dev, NULL, FRESH(&err));
	cptx_attention_opt o = { .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 64 };
	cptx_attention_problem p = { .batch = 2, .heads = 3, .queries = 80, .keys = 80 };

	for (int i = 0; i < N; i++)
		in[i] = (uint16_t)(0x3f00 + i * 7 % 256);
	uint64_t *const at[] = { &p.q, &p.k, &p.v, &p.o };
	for (int i = 0; i < 4; i++) {
		*at[i] = cptx_mem_alloc(dev, sizeof in, &err);
		SURE(cptx_mem_write(dev, *at[i], in, sizeof in, &err), "%s", err.text);
	}
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_mem_read(dev, first, p.o, sizeof first, &err);
	o.causal = true;
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_mem_read(dev, again, p.o, sizeof again, &err);
	ck_assert(memcmp(first, again, sizeof again));
	o.causal = false;
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_mem_read(dev, again, p.o, sizeof again, &err);
	ck_assert(!memcmp(first, again, sizeof again));
	/* few queries of heads that share K and V: by a tile for all of them, and by one for each */
	p.batch = 1, p.heads = 4, p.kv_heads = 1, p.queries = 20;
	cptx_emu_get_counters(dev, &before);
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_emu_get_counters(dev, &packed);
	cptx_mem_read(dev, first, p.o, sizeof first, &err);
	ck_assert(cptx_mem_write(dev, p.o, in, sizeof in, &err));
	o.pack = 1;
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_emu_get_counters(dev, &apart);
	cptx_mem_read(dev, again, p.o, sizeof again, &err);
	ck_assert(!memcmp(first, again, 4 * 20 * 64 * sizeof *first) && memcmp(first, in, 4 * 20 * 64 * sizeof *first));
	ck_assert_uint_eq(packed.ctas - before.ctas, 1); /* there is one tile */
	ck_assert_uint_eq(apart.ctas - packed.ctas, 2);  /* there are four */
	o.pack = 4;
	SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
	cptx_mem_read(dev, again, p.o, sizeof again, &err);
	ck_assert(!memcmp(first, again, 4 * 20 * 64 * sizeof *first));
	p.o++;
	ck_assert(!cptx_attention_run(r, &o, &p, NULL, FRESH(&err)) && strstr(err.text, ".o is 0x"));
	p.o = 0;
	ck_assert(!cptx_attention_run(r, &o, &p, NULL, FRESH(&err)) && strstr(err.text, "the address .o is 0"));
	cptx_attention_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

START_TEST(choices_fit)
{
	const cptx_attention_opt o = { BASE, .causal = true };
	const cptx_attention_problem p = { SIZES, .q_stride = { 0 } };
	cptx_attention_choice c[8];
	cptx_error err = { 0 };
	const size_t n = cptx_attention_auto(&o, &p, 132, c, 8, &err);

	SURE(n > 2, "%s", err.text);
	for (size_t i = 0; i < n; i++) {
		ck_assert(cptx_attention_check(&c[i].opt, NULL, NULL, NULL));
		ck_assert(c[i].us > 0 && (!i || c[i].us >= c[i - 1].us));
		ck_assert(c[i].waste >= 0 && c[i].waste < 1 && c[i].tail >= 0 && c[i].tail < 1);
	}
}
END_TEST

/* A part of the shape that is given chooses the rest of it, also where the usual rest does not fit. */
START_TEST(choices_fit_what_is_given)
{
	static const struct {
		cptx_attention_opt o;
		bool usual; /* the usual shape fits too */
	} all[] = {
		{ { .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 64, .bk = 192 }, true },
		{ { BASE, .stages = 3 }, false },
		{ { .size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 128, .bq = 192 }, false },
		{ { SYNC, .bk = 128 }, false },
		{ { TCGEN05, .stages = 3 }, true },
		{ { TCGEN05, .bk = 32 }, true },
	};
	const cptx_attention_problem p = { SIZES, .q_stride = { 0 } };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const cptx_attention_opt *o = &all[i].o;
		cptx_attention_choice c;
		cptx_error err = { 0 };
		SURE(cptx_attention_auto(o, &p, 132, &c, 1, &err) == 1, "%zu: %s", i, err.text);
		ck_assert(cptx_attention_check(&c.opt, NULL, NULL, NULL));
		ck_assert((!o->bq || c.opt.bq == o->bq) && (!o->bk || c.opt.bk == o->bk));
		ck_assert(!o->stages || c.opt.stages == o->stages);
		SURE(cptx_attention_check(o, NULL, NULL, NULL) == all[i].usual, "%zu", i);
	}
	const cptx_attention_opt none = { BASE, .bq = 192, .bk = 256 };
	cptx_attention_choice c;
	cptx_error err = { 0 };
	ck_assert(!cptx_attention_auto(&none, &p, 132, &c, 1, &err));
	SURE(strstr(err.text, "registers"), "%s", err.text);
}
END_TEST

/* The first check of a run takes what cptx_attention_auto has choices for: both compute the same. */
START_TEST(one_call_completes_a_shape)
{
	enum { N = 64 * 64 };
	static uint16_t in[N], out[2][N];
	cptx_device *dev = trial_device(1);
	cptx_error err = { 0 };
	cptx_attention_runner *r = cptx_attention_runner_new(dev, NULL, FRESH(&err));
	cptx_attention_opt o = { .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 64 };
	cptx_attention_problem p = { .batch = 1, .heads = 1, .queries = 64, .keys = 64 };

	for (int i = 0; i < N; i++)
		in[i] = (uint16_t)(0x3f00 + i * 7 % 256);
	p.q = p.k = p.v = cptx_mem_alloc(dev, sizeof in, &err), p.o = cptx_mem_alloc(dev, sizeof in, &err);
	SURE(cptx_mem_write(dev, p.q, in, sizeof in, &err), "%s", err.text);
	for (int i = 0; i < 2; i++) {
		o.bk = i ? 128 : 0;
		SURE(cptx_attention_check(&o, NULL, NULL, NULL) == !i, "%d", i);
		SURE(cptx_attention_run(r, &o, &p, NULL, FRESH(&err)), "%s", err.text);
		SURE(cptx_mem_read(dev, out[i], p.o, sizeof in, &err), "%s", err.text);
	}
	for (int i = 0; i < N; i++)
		SURE(out[0][i] && abs(out[0][i] - out[1][i]) <= 1, "%d: %x and %x", i, out[0][i], out[1][i]); /* an ulp */
	o.bq = 192, o.bk = 256;
	ck_assert(!cptx_attention_run(r, &o, &p, NULL, FRESH(&err)) && strstr(err.text, "registers"));
	cptx_attention_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

/* Where the model has no shape of its own the usual one is offered, and where nothing fits, an error says why. */
START_TEST(what_fits_has_a_choice)
{
	static const uint32_t dims[] = { 32, 64, 80, 96, 128, 192, 256 }, given[] = { 0, 16, 32, 48, 64, 80, 128, 192, 256 };
	enum { GIVEN = sizeof given / sizeof *given };
	cptx_attention_problem p = { SIZES, .pages = 64, .table_pitch = 64 };

	for (unsigned i = 0; i < sizeof dims / sizeof *dims * GIVEN * GIVEN * 8; i++) {
		cptx_attention_opt o = { .size = S,
			                     .mma = (enum cptx_attention_mma)(i % 2 ? CPTX_ATTENTION_WGMMA : CPTX_ATTENTION_SYNC),
			                     .in = CPTX_BF16,
			                     .dim = dims[i / 8 / GIVEN / GIVEN],
			                     .bq = given[i / 8 % GIVEN],
			                     .bk = given[i / 8 / GIVEN % GIVEN],
			                     .page = i / 2 % 4 ? 8u << i / 2 % 4 : 0 };
		cptx_attention_choice c;
		cptx_error err = { 0 };

		p.pages = p.table_pitch = o.page ? 64 : 0;
		const bool usual = cptx_attention_check(&o, NULL, NULL, NULL);
		const size_t n = cptx_attention_auto(&o, &p, 132, &c, 1, &err);
		SURE(n == 1 || (!usual && err.code && *err.text), "%u: mma %d, dim %u, %ux%u, page %u: %s", i, (int)o.mma, o.dim,
		     o.bq, o.bk, o.page, err.text);
		ck_assert(!n || (!err.code && cptx_attention_check_problem(&c.opt, &p, 132, NULL, NULL)));
		ck_assert(!n || ((!o.bq || c.opt.bq == o.bq) && (!o.bk || c.opt.bk == o.bk) && c.us > 0));
	}
	const cptx_attention_opt o = { BASE };
	cptx_attention_choice c;
	cptx_error err = { 0 };
	p.pages = p.table_pitch = 0;
	ck_assert(!cptx_attention_auto(&o, &p, 132, &c, 0, &err) && strstr(err.text, "room for choices"));
}
END_TEST

/* Heads share tiles where there are fewer queries than a tile has, and only then. */
START_TEST(few_queries_share_tiles)
{
	static const struct {
		uint32_t queries, kv_heads, pack;
	} all[] = { { 16, 8, 8 }, { 40, 8, 2 }, { 64, 8, 2 }, { 65, 8, 0 }, { 16, 64, 0 }, { 1, 16, 4 }, { 1, 4, 16 } };
	cptx_attention_opt o = { BASE, .bq = 128 };
	cptx_attention_problem p = { .size = CPTX_OPT_SIZE(cptx_attention_problem), .batch = 1, .heads = 64, .keys = 4096 };
	cptx_attention_choice c;
	cptx_attention_plan plan;
	cptx_error err = { 0 };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		p.queries = all[i].queries, p.kv_heads = all[i].kv_heads;
		SURE(cptx_attention_auto(&o, &p, 132, &c, 1, &err) == 1, "%s", err.text);
		ck_assert_uint_eq(c.opt.pack, all[i].pack);
		ck_assert(cptx_attention_check_problem(&c.opt, &p, 132, &plan, NULL) &&
		          plan.tiles == 64 / (c.opt.pack ? c.opt.pack : 1));
	}
	o.pack = 1; /* never */
	SURE(cptx_attention_auto(&o, &p, 132, &c, 1, &err) == 1 && c.opt.pack == 1, "%s", err.text);
}
END_TEST

/* Heads that share a tile, said without its rows, are taken with every head size. */
START_TEST(heads_share_open_tiles)
{
	for (uint32_t dim = 32; dim <= 256; dim *= 2)
		for (uint32_t pack = 1; pack <= 16; pack *= 2) {
			const cptx_attention_opt o = {
				.size = S, .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = dim, .pack = pack
			};
			const cptx_attention_problem p = { .size = CPTX_OPT_SIZE(cptx_attention_problem),
				                               .batch = 1,
				                               .heads = 16,
				                               .kv_heads = 1,
				                               .queries = 64,
				                               .keys = 64 };
			cptx_attention_choice c;
			cptx_error err = { 0 };

			SURE(cptx_attention_check(&o, NULL, NULL, FRESH(&err)), "%u, %u: %s", dim, pack, err.text);
			SURE(cptx_attention_auto(&o, &p, 132, &c, 1, FRESH(&err)) == 1, "%u, %u: %s", dim, pack, err.text);
			ck_assert(c.opt.pack == pack && c.opt.bq / pack >= 8);
		}
}
END_TEST

/* Only two tiles of tcgen05 have exponentials by a polynomial, and none where ex2 is fast. */
START_TEST(plans_tell_of_the_polynomial)
{
	static const struct {
		cptx_attention_opt o;
		const char *target;
		bool polynomial;
	} all[] = {
		{ { TCGEN05, .bq = 256 }, "sm_100a", true },
		{ { TCGEN05, .bq = 128 }, "sm_100a", false },
		{ { TCGEN05, .bq = 256, .fast_ex2 = true }, "sm_100a", false },
		{ { TCGEN05, .bq = 256 }, "sm_103a", false },
		{ { BASE }, "sm_90a", false },
		{ { SYNC }, "sm_90a", false },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_attention_plan plan;
		cptx_error err = { 0 };
		SURE(cptx_attention_check(&all[i].o, cptx_target_find(all[i].target), &plan, &err), "%s", err.text);
		SURE(all[i].polynomial ? plan.ex2_error > 8.763e-5 && plan.ex2_error < 9e-5 : !(plan.ex2_error > 0), "%zu", i);
	}
}
END_TEST

/* Scores that count, by a loop over all. */
static unsigned long count_scores(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const int64_t shift = o->top_left ? 0 : (int64_t)p->keys - p->queries;
	unsigned long n = 0;

	for (int64_t q = shift; q < shift + p->queries; q++)
		for (int64_t key = 0; key < p->keys; key++)
			n += (!o->causal || key <= q) &&
			     (!o->window || (key >= q - p->window_left && (o->causal || key <= q + p->window_right)));
	return n;
}

/* cptx_attention_choice.waste tells how many blocks are computed; those of a loop over all tiles. */
static double count_blocks(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	const int64_t shift = o->top_left ? 0 : (int64_t)p->keys - p->queries, bq = o->bq, bk = o->bk;
	int64_t n = 0;

	for (int64_t row = 0; row < p->queries; row += bq) {
		const int64_t last = row + bq < p->queries ? row + bq - 1 : p->queries - 1;
		int64_t end = p->keys, first = 0;
		if (o->causal || o->window)
			end = last + shift + (o->causal ? 0 : (int64_t)p->window_right) + 1;
		end = end < 0 ? 0 : end > p->keys ? p->keys : end;
		if (o->window && row + shift > (int64_t)p->window_left)
			first = row + shift - p->window_left;
		const int64_t blocks = (end + bk - 1) / bk - first / bk;
		n += blocks > 0 ? blocks : 0;
	}
	return (double)n;
}

START_TEST(blocks_are_counted)
{
	static const uint32_t sizes[] = { 1, 64, 65, 300, 513 }, reach[] = { 0, 1, 70, 400, UINT32_MAX };
	enum { LENGTHS = sizeof sizes / sizeof *sizes, REACHES = sizeof reach / sizeof *reach };

	for (unsigned i = 0; i < LENGTHS * LENGTHS * REACHES * REACHES * 8; i++) {
		const unsigned size = i / 8 % (LENGTHS * LENGTHS), side = i / 8 / (LENGTHS * LENGTHS);
		cptx_attention_opt o = { BASE, .causal = i & 1, .window = i & 2, .top_left = i & 4 && i & 3, .bq = 128, .bk = 48 };
		cptx_attention_problem p = { SIZES, .q_stride = { 0 } };
		cptx_attention_choice c;
		cptx_error err = { 0 };

		p.queries = sizes[size % LENGTHS], p.keys = sizes[size / LENGTHS];
		if (o.window)
			p.window_left = reach[side % REACHES], p.window_right = o.causal ? 0 : reach[side / REACHES];
		SURE(cptx_attention_auto(&o, &p, 1, &c, 1, &err) == 1, "%s", err.text);
		const double blocks = count_blocks(&o, &p), scores = (double)count_scores(&o, &p);
		const double waste = blocks > 0 ? 1 - scores / (blocks * o.bq * o.bk) : 0;
		SURE(fabs(c.waste - waste) < 1e-9, "%u: %ux%u, %g blocks: waste %g, not %g", i, p.queries, p.keys, blocks, c.waste,
		     waste);
	}
}
END_TEST

/* cptx_attention_plan.flop has those of all scores that count, however rows and windows lie. */
START_TEST(operations_are_counted)
{
	static const uint32_t sizes[] = { 0, 1, 5, 64, 131 }, reach[] = { 0, 1, 7, 200, UINT32_MAX };
	enum { LENGTHS = sizeof sizes / sizeof *sizes, REACHES = sizeof reach / sizeof *reach };

	for (unsigned i = 0; i < LENGTHS * LENGTHS * REACHES * REACHES * 8; i++) {
		const unsigned size = i / 8 % (LENGTHS * LENGTHS), side = i / 8 / (LENGTHS * LENGTHS);
		cptx_attention_opt o = { BASE, .causal = i & 1, .window = i & 2, .top_left = i & 4 && i & 3 };
		cptx_attention_problem p = { SIZES, .q_stride = { 0 } };
		cptx_attention_plan plan;
		cptx_error err = { 0 };

		p.queries = sizes[size % LENGTHS], p.keys = sizes[size / LENGTHS];
		if (o.window)
			p.window_left = reach[side % REACHES], p.window_right = o.causal ? 0 : reach[side / REACHES];
		SURE(cptx_attention_check_problem(&o, &p, 132, &plan, &err), "%s", err.text);
		ck_assert_uint_eq((unsigned long)(plan.flop / (2.0 * (128 + 128) * 4)), count_scores(&o, &p));
	}
}
END_TEST

/* ---- infinities and NaN ---- */

enum { ODD_ROWS = 140, ODD_DIM = 64, ODD_N = ODD_ROWS * ODD_DIM };

typedef struct odd_run {
	const char *target;
	cptx_attention_opt o;
} odd_run;

/* bf16 of both signs, from a half to 2. */
static uint16_t plain_number(int operand, uint32_t i)
{
	return (uint16_t)((i * 37 + (uint32_t)operand * 11) % 256 + 0x3f00 + (i * i / 7 % 2 ? 0x8000 : 0));
}

/* O and LSE of one head, one operand (-1: none) of which has another number in one place. */
static void run_odd(const odd_run *r, int operand, uint32_t at, uint16_t number, uint16_t *out, float *lse)
{
	static uint16_t in[ODD_N];
	cptx_device *dev = trial_device_of(r->target, 1);
	cptx_error err = { 0 };
	cptx_attention_runner *runner = cptx_attention_runner_new(dev, NULL, &err);
	cptx_attention_problem p = { SIZES };
	uint64_t *const to[] = { &p.q, &p.k, &p.v, &p.o };

	p.heads = 1, p.queries = p.keys = ODD_ROWS;
	for (int i = 0; i < 4; i++) {
		*to[i] = cptx_mem_alloc(dev, sizeof in, &err);
		for (uint32_t j = 0; j < ODD_N; j++)
			in[j] = plain_number(i, j);
		if (i == operand)
			in[at] = number;
		SURE(cptx_mem_write(dev, *to[i], in, sizeof in, &err), "%s", err.text);
	}
	p.lse = cptx_mem_alloc(dev, ODD_ROWS * sizeof *lse, &err);
	SURE(cptx_attention_run(runner, &r->o, &p, NULL, FRESH(&err)), "%s", err.text);
	SURE(cptx_mem_read(dev, out, p.o, sizeof in, &err) && cptx_mem_read(dev, lse, p.lse, ODD_ROWS * sizeof *lse, &err), "%s",
	     err.text);
	cptx_attention_runner_destroy(runner);
	cptx_device_close(dev);
}

enum { ODD_Q, ODD_K, ODD_V, ODD_ROW = 50, ODD_COL = 9, INFINITE = 0x7f80, NO_NUMBER = 0x7fc0 };

/* What an element of O is where an operand has such a number in ODD_ROW and ODD_COL, with causal from the top left: -1: what
 * it is without it; 0: anything; else infinite or NaN, or with a score of plus infinity or NaN NaN. */
static int odd_kind(int operand, uint16_t number, uint32_t row, uint32_t col)
{
	if (operand == ODD_Q)
		return row == ODD_ROW ? NO_NUMBER : -1;
	if (operand == ODD_V && col == ODD_COL) /* of rows in front the blocks may have the key */
		return row >= ODD_ROW ? INFINITE : 0;
	if (operand == ODD_V || row < ODD_ROW)
		return -1;
	/* a score of minus infinity does not count, and changes the row only so */
	return number == INFINITE && plain_number(ODD_Q, row * ODD_DIM + ODD_COL) & 0x8000 ? 0 : NO_NUMBER;
}

START_TEST(odd_numbers_stay_where_they_belong)
{
#define ODD .size = CPTX_OPT_SIZE(cptx_attention_opt), .in = CPTX_BF16, .dim = ODD_DIM, .causal = true, .lse = true
	static const odd_run runs[] = { { "sm_90a", { ODD, .mma = CPTX_ATTENTION_WGMMA } },
		                            { "sm_80", { ODD, .mma = CPTX_ATTENTION_SYNC } },
		                            { "sm_100a", { ODD, .mma = CPTX_ATTENTION_TCGEN05, .bq = 128 } },
		                            { "sm_100a", { ODD, .mma = CPTX_ATTENTION_TCGEN05, .bq = 256 } } };
	static uint16_t plain[ODD_N], got[ODD_N];
	static float plain_lse[ODD_ROWS], lse[ODD_ROWS];
	const odd_run *r = &runs[_i];

	run_odd(r, -1, 0, 0, plain, plain_lse);
	for (int n = 0; n < 6; n++) {
		const uint16_t number = n % 2 ? INFINITE : NO_NUMBER;
		const int operand = n / 2;
		run_odd(r, operand, ODD_ROW * ODD_DIM + ODD_COL, number, got, lse);
		for (uint32_t i = 0; i < ODD_N; i++) {
			const uint32_t row = i / ODD_DIM, col = i % ODD_DIM;
			const int kind = odd_kind(operand, number, row, col);
			const bool ok = kind < 0 ? got[i] == plain[i] && (plain[i] & 0x7fff) < INFINITE
			                         : !kind || (got[i] & 0x7fff) >= (kind == INFINITE ? INFINITE : INFINITE + 1);
			SURE(ok, "%s, %x in operand %d: row %u, column %u of O is %x, and without it %x", r->target, number, operand,
			     row, col, got[i], plain[i]);
			if (operand == ODD_V || kind < 0)
				SURE(!memcmp(&lse[row], &plain_lse[row], sizeof *lse), "%s: LSE of row %u", r->target, row);
			else if (kind)
				SURE(isnan(lse[row]), "%s, %x in operand %d: LSE of row %u is %g", r->target, number, operand, row,
				     (double)lse[row]);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");
	TCase *t = test_case(s, "rules");

	tcase_add_loop_test(t, rules_are_named, 0, RULES);
	tcase_add_test(t, another_target);
	tcase_add_loop_test(t, ptxas_neither_warns_nor_spills, 0, SHAPES);
	tcase_add_test(t, one_call_does_all);
	tcase_add_test(t, choices_fit);
	tcase_add_test(t, choices_fit_what_is_given);
	tcase_add_test(t, one_call_completes_a_shape);
	tcase_add_test(t, what_fits_has_a_choice);
	tcase_add_test(t, plans_tell_of_the_polynomial);
	tcase_add_test(t, few_queries_share_tiles);
	tcase_add_test(t, heads_share_open_tiles);
	tcase_add_test(t, operations_are_counted);
	tcase_add_test(t, blocks_are_counted);
	tcase_add_loop_test(t, odd_numbers_stay_where_they_belong, 0, 4);
	return test_main("attention rules", s);
}
