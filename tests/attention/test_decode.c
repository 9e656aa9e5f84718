/* SPDX-License-Identifier: MIT */
/*
 * Attention for decoding on the emulator against f64, in several orders of asynchronous work: every option, lengths and
 * pages of sequences, and options and sizes at random; rules with their words; what ptxas says.  CPTX_ATTENTION_TRIALS and
 * CPTX_SEEDS: more of both.
 */
#include "reference/decode_check.h"
#include "reference/number.h"
#include "trial.h"

#define BASE .size = CPTX_OPT_SIZE(cptx_attention_decode_opt)
#define MLA BASE, .mla = true
#define SIZES .size = CPTX_OPT_SIZE(cptx_attention_decode_problem)

static bool takes(const void *o, const cptx_target *target)
{
	return cptx_attention_decode_check((const cptx_attention_decode_opt *)o, target, NULL, NULL);
}

static const char *target_of(const void *o, unsigned which)
{
	static const char *const all[] = { "sm_80", "sm_90a", "sm_120a" };

	return trial_pick(all, 3, which, o, takes);
}

static bool build_one(cptx_module *m, const void *o, cptx_error *err)
{
	return cptx_attention_decode_build(m, o, err) != NULL;
}

static bool run_one(cptx_device *dev, cptx_module *m, const void *o, const void *t, attention_report *r, char *text,
                    size_t size, cptx_error *err)
{
	decode_report rep;
	const bool ok = decode_trial_run(dev, m, o, t, &rep, err);

	attention_report_text(&rep.r, text, size);
	*r = rep.r;
	return ok;
}

static const trial_kind kind = { .build = build_one, .run = run_one, .target = target_of };

typedef struct sample {
	const char *what;
	cptx_attention_decode_opt o;
	cptx_attention_decode_problem p;
	bool ragged;
} sample;

static const sample samples[] = {
	{ "one query, GQA",
	  { BASE, .in = CPTX_BF16, .dim = 128, .lse = true },
	  { SIZES, .batch = 2, .heads = 8, .kv_heads = 1, .queries = 1, .keys = 300, .splits = 1 },
	  false },
	{ "split, lengths on the device",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true },
	  { SIZES, .batch = 5, .heads = 4, .kv_heads = 2, .queries = 1, .keys = 700, .splits = 5 },
	  true },
	{ "pages",
	  { BASE, .in = CPTX_F16, .dim = 128, .paged = true, .lse = true, .stages = 2 },
	  { SIZES, .batch = 3, .heads = 4, .kv_heads = 2, .queries = 1, .keys = 350, .page = 16, .splits = 2 },
	  true },
	{ "pages of 48, strides",
	  { BASE, .in = CPTX_BF16, .dim = 64, .paged = true },
	  { SIZES, .batch = 2, .heads = 4, .kv_heads = 2, .queries = 2, .keys = 333, .page = 48, .page_pitch = 9,
	    .q_stride = { .row = 4 * 64, .batch = 2 * 4 * 64, .head = 64 },
	    .k_stride = { .row = 2 * 64, .batch = 48 * 2 * 64, .head = 64 },
	    .v_stride = { .row = 2 * 64 + 16, .batch = 48 * (2 * 64 + 16), .head = 64 },
	    .o_stride = { .row = 4 * 72, .batch = 2 * 4 * 72, .head = 72 } },
	  true },
	{ "several queries, causal",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	  { SIZES, .batch = 2, .heads = 6, .kv_heads = 2, .queries = 5, .keys = 210, .splits = 3 },
	  true },
	{ "more rows than a tile, causal, fewer keys than queries",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 8, .kv_heads = 2, .queries = 16, .keys = 9 },
	  false },
	{ "32 rows",
	  { BASE, .in = CPTX_BF16, .dim = 64, .rows = 32, .lse = true },
	  { SIZES, .batch = 1, .heads = 20, .kv_heads = 1, .queries = 2, .keys = 150, .splits = 2 },
	  false },
	{ "a window",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .window = true, .lse = true },
	  { SIZES, .batch = 4, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 500, .window_left = 77, .splits = 2 },
	  true },
	{ "soft cap, scale, f32 out",
	  { BASE, .in = CPTX_BF16, .out = CPTX_F32, .dim = 64, .softcap = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 4, .kv_heads = 4, .queries = 1, .keys = 200, .scale = 0.3f, .softcap = 2, .splits = 2 },
	  false },
	{ "heads of 96 and 40",
	  { BASE, .in = CPTX_F16, .dim = 96, .dim_v = 40 },
	  { SIZES, .batch = 1, .heads = 3, .kv_heads = 1, .queries = 1, .keys = 130, .splits = 2 },
	  false },
	{ "heads of 256",
	  { BASE, .in = CPTX_BF16, .dim = 256, .warps = 2 },
	  { SIZES, .batch = 1, .heads = 2, .kv_heads = 1, .queries = 1, .keys = 130 },
	  false },
	{ "blocks of 64, one warp, four stages",
	  { BASE, .in = CPTX_BF16, .dim = 32, .bk = 64, .warps = 1, .stages = 4, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .kv_heads = 1, .queries = 1, .keys = 400, .splits = 2 },
	  true },
	{ "no keys",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .kv_heads = 1, .queries = 1, .keys = 0 },
	  false },
	{ "MLA",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512, .lse = true },
	  { SIZES, .batch = 1, .heads = 16, .queries = 1, .kv_heads = 1, .keys = 140, .splits = 2 },
	  false },
	{ "MLA, several queries, causal, pages, f32 out, more rows than a tile",
	  { MLA, .in = CPTX_F16, .out = CPTX_F32, .dim = 192, .dim_v = 128, .causal = true, .paged = true, .lse = true },
	  { SIZES, .batch = 3, .heads = 48, .queries = 2, .kv_heads = 1, .keys = 300, .page = 128, .splits = 3 },
	  true },
	{ "MLA, a window, soft cap, strides, two heads of K",
	  { MLA, .in = CPTX_BF16, .dim = 256, .dim_v = 256, .causal = true, .window = true, .softcap = true },
	  { SIZES, .batch = 2, .heads = 6, .queries = 3, .kv_heads = 2, .keys = 200, .window_left = 50, .softcap = 2,
	    .splits = 1, .q_stride = { .row = 6 * 256, .batch = 3 * 6 * 256, .head = 256 },
	    .k_stride = { .row = 2 * 264, .batch = 200 * 2 * 264, .head = 264 },
	    .o_stride = { .row = 6 * 264, .batch = 3 * 6 * 264, .head = 264 } },
	  true },
	{ "many chunks, which warps share",
	  { BASE, .in = CPTX_BF16, .dim = 40, .warps = 1, .bk = 16, .lse = true },
	  { SIZES, .batch = 3, .heads = 2, .kv_heads = 1, .queries = 1, .keys = 2400, .splits = 150 },
	  true },
	{ "some chunks more than a warp loads at once, rows that fill no CTA",
	  { BASE, .in = CPTX_F16, .dim = 256, .warps = 1, .bk = 16 },
	  { SIZES, .batch = 1, .heads = 3, .kv_heads = 3, .queries = 1, .keys = 150, .splits = 10 },
	  false },
	{ "MLA, many columns that are not of V, one chunk",
	  { MLA, .in = CPTX_BF16, .dim = 320, .dim_v = 128 },
	  { SIZES, .batch = 2, .heads = 5, .kv_heads = 1, .queries = 1, .keys = 421, .splits = 1 },
	  true },
	{ "MLA, all columns that K has, those of V the fewest",
	  { MLA, .in = CPTX_F16, .dim = 576, .dim_v = 128 },
	  { SIZES, .batch = 1, .heads = 3, .kv_heads = 1, .queries = 1, .keys = 200, .splits = 1 },
	  true },
	{ "MLA, three parts of Q's rest, two of them in shared memory",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 384, .lse = true },
	  { SIZES, .batch = 1, .heads = 66, .kv_heads = 1, .queries = 1, .keys = 140, .splits = 2 },
	  false },
	{ "MLA, three pairs of stages",
	  { MLA, .in = CPTX_BF16, .dim = 192, .dim_v = 128, .stages = 6, .lse = true },
	  { SIZES, .batch = 1, .heads = 70, .kv_heads = 1, .queries = 1, .keys = 1290, .splits = 1 },
	  false },
	{ "MLA, no keys",
	  { MLA, .in = CPTX_BF16, .dim = 128, .dim_v = 128, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .kv_heads = 1, .queries = 1, .keys = 0 },
	  false },
	{ "one key",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 1, .queries = 1, .keys = 1 },
	  false },
};
enum { SAMPLES = sizeof samples / sizeof *samples };

START_TEST(options_are_right)
{
	const sample *s = &samples[_i];
	const decode_trial t = { .p = s->p, .seed = (uint64_t)_i + 1, .ragged = s->ragged };

	trial_in_orders(&kind, &s->o, &t, NULL, t.seed, trial_count("CPTX_SEEDS", 1), s->what);
}
END_TEST

/* Programmatic dependent launch is for sm_90; the second launch waits for the first. */
START_TEST(launches_overlap)
{
	const cptx_attention_decode_opt o = { BASE, .in = CPTX_BF16, .dim = 64, .overlap = true };
	const decode_trial t = { .p = { SIZES, .batch = 1, .heads = 4, .kv_heads = 1, .queries = 1, .keys = 200, .splits = 3 },
		                     .seed = 5 };

	trial_in_orders(&kind, &o, &t, "sm_90a", t.seed, 2, "overlap");
}
END_TEST

/* ---- at random ---- */

static uint64_t state;
static uint32_t any(uint32_t n) { return (uint32_t)(number_random(&state) % n); }

static void draw(unsigned i, void *opt, void *trial)
{
	cptx_attention_decode_opt *o = (cptx_attention_decode_opt *)opt;
	decode_trial *t = (decode_trial *)trial;
	cptx_attention_decode_problem *p = &t->p;

	*t = (decode_trial){ .seed = i };
	*o = (cptx_attention_decode_opt){ BASE, .in = any(2) ? CPTX_BF16 : CPTX_F16, .dim = 8 * (1 + any(any(3) ? 16 : 32)) };
	o->dim_v = any(4) ? 0 : 8 * (1 + any(16));
	o->out = any(4) ? CPTX_TYPE_NONE : CPTX_F32;
	o->causal = any(2), o->window = o->causal && !any(3), o->softcap = !any(5), o->lse = any(2), o->paged = any(2);
	o->rows = any(3) ? 0 : 16u << any(2), o->bk = any(2) ? 0 : 16u << any(3), o->warps = any(2) ? 0 : 1u << any(4);
	o->stages = any(2) ? 0 : 2 + any(4);
	o->mla = !any(6);
	if (o->mla) {
		o->dim = 64 * (2 + any(8)), o->dim_v = 128 * (1 + any(o->dim < 512 ? o->dim / 128 : 4));
		o->rows = o->bk = o->warps = 0;
	}
	*p = (cptx_attention_decode_problem){ SIZES, .batch = 1 + any(3), .queries = 1 + (any(2) ? 0 : any(16)),
		                                  .keys = any(500) };
	p->kv_heads = 1 + any(3), p->heads = p->kv_heads * (1 + any(8));
	p->softcap = o->softcap ? 1 + (float)any(4) : 0, p->window_left = o->window ? any(200) : 0;
	p->splits = any(3) ? 1 + any(6) : 0;
	p->page = o->paged ? (o->mla ? 64 : 16) * (1 + any(6)) : 0;
	t->ragged = any(2);
}

static bool check_one(const void *opt, const void *t, const char *target, cptx_error *err)
{
	return cptx_attention_decode_check_problem((const cptx_attention_decode_opt *)opt, &((const decode_trial *)t)->p,
	                                           cptx_target_find(target), 1, NULL, err);
}

START_TEST(random_ones_are_right)
{
	const trial_kind random = { .build = build_one,
		                        .run = run_one,
		                        .target = target_of,
		                        .draw = draw,
		                        .check = check_one,
		                        .rules = "attention: decode: " };
	cptx_attention_decode_opt o;
	decode_trial t;

	state = 0x9e3779b97f4a7c15u;
	trial_random(&random, &o, &t, trial_whole(400, 8), 1);
}
END_TEST

/* ---- rules ---- */

#define S CPTX_OPT_SIZE(cptx_attention_decode_opt)
#define O BASE, .in = CPTX_BF16, .dim = 128
#define P SIZES, .batch = 2, .heads = 8, .kv_heads = 2, .queries = 1, .keys = 500
static const struct {
	const char *says;
	cptx_attention_decode_opt o;
	cptx_attention_decode_problem p; /* size 0: the options break it */
} rules[] = {
	{ ".in is not given", { .size = S, .dim = 64 }, { 0 } },
	{ ".out is f16; O is of the type of Q, .bf16", { O, .out = CPTX_F16 }, { 0 } },
	{ ".dim is not given", { .size = S, .in = CPTX_BF16 }, { 0 } },
	{ ".dim = 100; it is from 8 to 576, in steps of 8", { .size = S, .in = CPTX_BF16, .dim = 100 }, { 0 } },
	{ ".dim = 576, .dim_v = 512; without .mla both are at most 256",
	  { BASE, .in = CPTX_BF16, .dim = 576, .dim_v = 512 },
	  { 0 } },
	{ ".mla with .dim = 576 and .dim_v = 0; the one is a multiple of 64", { MLA, .in = CPTX_BF16, .dim = 576 }, { 0 } },
	{ ".mla with 3 stages; it takes blocks by twos, so they are even",
	  { MLA, .in = CPTX_BF16, .dim = 128, .dim_v = 128, .stages = 3 },
	  { 0 } },
	{ ".mla with 4 stages of 64 keys, head sizes 576 and 512, needs 378880 bytes of shared memory",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512, .stages = 4 },
	  { 0 } },
	{ ".mla with tiles of 64 rows, blocks of 64 keys and 4 warps",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512, .warps = 4 },
	  { 0 } },
	{ "with .mla V is in K: it is 0", { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512 }, { P, .v = 16 } },
	{ "the problem has .v_stride, and with .mla V is in K",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512 },
	  { P, .v_stride = { .row = 512 } } },
	{ ".page = 16; pages have a multiple of 64 keys",
	  { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512, .paged = true },
	  { P, .page = 16 } },
	{ ".rows = 64; it is 16 or 32", { O, .rows = 64 }, { 0 } },
	{ ".bk = 48; it is a power of two", { O, .bk = 48 }, { 0 } },
	{ ".stages = 9", { O, .stages = 9 }, { 0 } },
	{ ".window without .causal", { O, .window = true }, { 0 } },
	{ "registers for Q, S and O", { O, .rows = 32, .bk = 64 }, { 0 } },
	{ "bytes of shared memory; a CTA of sm_90a has at most", { O, .warps = 8, .stages = 4 }, { 0 } },
	{ "kernel", { O, .name = "1" }, { 0 } },
	{ "17 queries; decoding has 1 to 16", { O }, { SIZES, .batch = 1, .heads = 8, .queries = 17, .keys = 5 } },
	{ "8 heads of Q, and 3 of K and V", { O }, { SIZES, .batch = 1, .heads = 8, .kv_heads = 3, .queries = 1, .keys = 5 } },
	{ ".scale = -1; it is above 0", { O }, { P, .scale = -1 } },
	{ "the problem has softcap = 3", { O }, { P, .softcap = 3 } },
	{ "the problem has a window", { O }, { P, .window_left = 3 } },
	{ ".splits = 300; there are at most 256", { O }, { P, .splits = 300 } },
	{ "the problem has pages", { O }, { P, .page = 16 } },
	{ ".page = 24; pages have a multiple of 16 keys", { O, .paged = true }, { P, .page = 24 } },
	{ ".page_pitch = 3; 500 keys have 32 pages of 16", { O, .paged = true }, { P, .page = 16, .page_pitch = 3 } },
	{ "2147483648 sequences of 2147483648 heads; there are less than 2^27 in all",
	  { O },
	  { SIZES, .batch = 1u << 31, .heads = 1u << 31, .queries = 1, .keys = 5 } },
	{ ".k_stride.row = 100", { O }, { P, .k_stride = { 8192, 8192, 100 } } },
};
enum { RULES = sizeof rules / sizeof *rules };

/* With .mla every head size that the rules of sizes allow has room in shared memory. */
START_TEST(all_latent_sizes_fit)
{
	cptx_error err = { 0 };

	for (uint32_t dim = 128; dim <= 576; dim += 64)
		for (uint32_t dim_v = 128; dim_v <= (dim < 512 ? dim : 512); dim_v += 128) {
			const cptx_attention_decode_opt o = { MLA, .in = CPTX_BF16, .dim = dim, .dim_v = dim_v };
			ck_assert_msg(cptx_attention_decode_check(&o, NULL, NULL, FRESH(&err)), "%s", err.text);
		}
}
END_TEST

START_TEST(rules_are_named)
{
	cptx_error err = { 0 };
	const bool ok = rules[_i].p.size ? cptx_attention_decode_check_problem(&rules[_i].o, &rules[_i].p, NULL, 1, NULL, &err)
	                                 : cptx_attention_decode_check(&rules[_i].o, NULL, NULL, &err);

	ck_assert_msg(!ok && strstr(err.text, rules[_i].says), "\"%s\" should have \"%s\"", err.text, rules[_i].says);
}
END_TEST

START_TEST(targets_and_launches_are_checked)
{
	const cptx_attention_decode_opt o = { O, .overlap = true };
	const cptx_attention_decode_problem p = { P, .q = 16, .k = 16, .v = 16, .o = 16, .splits = 1 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };

	ck_assert(!cptx_attention_decode_check(&o, cptx_target_find("sm_75"), NULL, FRESH(&err)) &&
	          strstr(err.text, "cp.async"));
	ck_assert(!cptx_attention_decode_check(&o, cptx_target_find("sm_80"), NULL, FRESH(&err)) &&
	          strstr(err.text, "griddepcontrol"));
	const cptx_attention_decode_opt latent = { MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512 };
	ck_assert(!cptx_attention_decode_check(&latent, cptx_target_find("sm_100a"), NULL, FRESH(&err)) &&
	          strstr(err.text, "sm_100a has no wgmma"));
	ck_assert(cptx_attention_decode_build(m, &o, FRESH(&err)) != NULL);
	cptx_device *dev = trial_device_of("sm_90a", 1);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	ck_assert(!cptx_attention_decode_launch(program, dev, &o, &p, 1, FRESH(&err)) && strstr(err.text, "launch 1 of 1"));
	cptx_attention_decode_problem q = p;
	q.k = 8;
	ck_assert(!cptx_attention_decode_launch(program, dev, &o, &q, 0, FRESH(&err)) && strstr(err.text, ".k is 0x8"));
	q = p, q.splits = 2;
	ck_assert(!cptx_attention_decode_launch(program, dev, &o, &q, 0, FRESH(&err)) && strstr(err.text, ".workspace is 0"));
	cptx_program_destroy(program);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}
END_TEST

/* What ptxas says: no kernel spills.  Without CPTX_WHOLE two of them. */
START_TEST(kernels_assemble)
{
	if (!trial_whole(true, _i % 2))
		return;
	static const cptx_attention_decode_opt all[] = {
		{ BASE, .in = CPTX_BF16, .dim = 64, .lse = true },
		{ BASE, .in = CPTX_F16, .dim = 128, .causal = true, .paged = true, .overlap = true },
		{ BASE, .in = CPTX_BF16, .dim = 64, .rows = 32, .causal = true, .window = true, .softcap = true, .warps = 8,
		  .stages = 2 },
		{ BASE, .in = CPTX_BF16, .dim = 128, .bk = 32, .stages = 2 },
		{ BASE, .in = CPTX_BF16, .dim = 256, .paged = true, .stages = 2 },
		{ MLA, .in = CPTX_BF16, .dim = 576, .dim_v = 512, .causal = true, .paged = true, .overlap = true },
	};
	const cptx_attention_decode_opt *o = &all[_i];
	cptx_module *m = cptx_module_new(NULL);
	unsigned n = 0;

	cptx_attention_decode_build(m, o, NULL);
	char *said = emu_assembles(m, o->mla ? "sm_90a" : o->overlap ? "sm_90" : _i == 2 ? "sm_120" : "sm_80");
	SURE(assembly_spills(said, &n) == 0 && n == 2, "%s", said);
	SURE(!strstr(said, "C75") && !strstr(said, "serialized"), "%s", said);
	free(said);
	cptx_module_destroy(m);
}
END_TEST

/* The model's choices are legal, and fill the device. */
START_TEST(choices_are_legal)
{
	const cptx_attention_decode_opt o = { O, .paged = true };
	const cptx_attention_decode_problem p = { SIZES,        .batch = 1,    .heads = 64, .kv_heads = 8,
		                                      .queries = 1, .keys = 65536, .page = 16 };
	cptx_attention_decode_choice c[8];
	cptx_attention_decode_plan plan;
	cptx_error err = { 0 };
	const size_t n = cptx_attention_decode_auto(&o, &p, cptx_target_find("sm_90a"), 132, c, 8, &err);

	ck_assert_uint_gt(n, 1);
	for (size_t i = 0; i < n; i++) {
		cptx_attention_decode_problem q = p;
		q.splits = c[i].splits;
		ck_assert_msg(cptx_attention_decode_check_problem(&c[i].opt, &q, NULL, 132, &plan, &err), "%s", err.text);
		ck_assert(plan.chunk == c[i].chunk && plan.grid == c[i].grid && (!i || c[i].us >= c[i - 1].us));
	}
	ck_assert_uint_ge(c[0].grid, 80);
}
END_TEST

START_TEST(runs_in_one_call)
{
	const cptx_attention_decode_opt o = { O };
	cptx_error err = { 0 };
	cptx_device *dev = trial_device_of("sm_90a", 3);
	cptx_attention_decode_runner *r = cptx_attention_decode_runner_new(dev, NULL, &err);
	cptx_attention_decode_problem p = { SIZES, .batch = 1, .heads = 2, .queries = 1, .keys = 256, .splits = 2 };
	uint16_t one[256 * 2 * 128], o_host[2 * 128];

	for (size_t i = 0; i < sizeof one / 2; i++)
		one[i] = 0x3f80;
	const uint64_t kv = cptx_mem_alloc(dev, sizeof one, &err), d = cptx_mem_alloc(dev, sizeof o_host, &err);
	ck_assert(cptx_mem_write(dev, kv, one, sizeof one, &err));
	p.q = p.k = p.v = kv, p.o = d;
	p.workspace = cptx_mem_alloc(dev, cptx_attention_decode_workspace(r, &o, &p, &err), &err);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(cptx_attention_decode_run(r, &o, &p, NULL, &err), "%s", err.text);
	ck_assert(cptx_mem_read(dev, o_host, d, sizeof o_host, &err));
	for (size_t i = 0; i < 2 * 128; i++)
		ck_assert_uint_eq(o_host[i], 0x3f80);
	cptx_attention_decode_runner_destroy(r);
	cptx_mem_free(dev, kv), cptx_mem_free(dev, d), cptx_mem_free(dev, p.workspace);
	cptx_device_close(dev);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");
	TCase *t = test_case(s, "decode");

	tcase_add_loop_test(t, options_are_right, 0, SAMPLES);
	tcase_add_test(t, launches_overlap);
	tcase_add_loop_test(t, rules_are_named, 0, RULES);
	tcase_add_test(t, all_latent_sizes_fit);
	tcase_add_test(t, targets_and_launches_are_checked);
	tcase_add_loop_test(t, kernels_assemble, 0, 6);
	tcase_add_test(t, choices_are_legal);
	tcase_add_test(t, runs_in_one_call);
	tcase_add_test(test_case(s, "random"), random_ones_are_right);
	return test_main("attention decode", s);
}
