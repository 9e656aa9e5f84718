/* SPDX-License-Identifier: MIT */
/*
 * Attention forward on the emulator against f64, in several orders of asynchronous work: every option, sizes that fill no
 * tile, and options and sizes at random.  CPTX_ATTENTION_TRIALS and CPTX_SEEDS: more of both.  Every sample runs by wgmma
 * and with CPTX_WHOLE by mma.sync with cp.async, with TMA, and by tcgen05; without it some do.
 */
#include "functions.h"
#include "reference/number.h"
#include "trial.h"

#define BASE .size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_WGMMA
#define SIZES .size = CPTX_OPT_SIZE(cptx_attention_problem)

/* No block counts: O is zeros. */
static cptx_val build_no_blocks(cptx_kernel *k, void *user, const cptx_attention_block *b)
{
	(void)user;
	return cptx_setp(k, b->key, UINT32_MAX, .cmp = CPTX_EQ);
}

static cptx_val build_no_mask(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	(void)user;
	return cptx_setp(k, s->key, UINT32_MAX, .cmp = CPTX_EQ);
}

static bool no_mask_of(const void *user, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)batch, (void)head, (void)query, (void)key;
	return false;
}

static bool build_one(cptx_module *m, const void *o, cptx_error *err) { return cptx_attention_build(m, o, err) != NULL; }

static bool run_one(cptx_device *dev, cptx_module *m, const void *o, const void *t, attention_report *r, char *text,
                    size_t size, cptx_error *err)
{
	const bool ok = attention_trial_run(dev, m, o, t, r, err);

	attention_report_text(r, text, size);
	return ok;
}

static const trial_kind kind = { .build = build_one, .run = run_one, .target = trial_target };

typedef struct sample {
	const char *what;
	cptx_attention_opt o;
	cptx_attention_problem p;
	attention_score_fn score;
	attention_mask_fn mask;
} sample;

static const sample samples[] = {
	{ "full",
	  { BASE, .in = CPTX_BF16, .dim = 128 },
	  { SIZES, .batch = 2, .heads = 1, .queries = 131, .keys = 150 },
	  NULL,
	  NULL },
	{ "heads of 64, GQA, LSE",
	  { BASE, .in = CPTX_F16, .dim = 64, .lse = true },
	  { SIZES, .batch = 1, .heads = 4, .kv_heads = 2, .queries = 70, .keys = 257 },
	  NULL,
	  NULL },
	{ "MQA, causal",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .kv_heads = 1, .queries = 140, .keys = 200 },
	  NULL,
	  NULL },
	{ "causal, more queries than keys: rows in which nothing counts",
	  { BASE, .in = CPTX_BF16, .dim = 128, .causal = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .queries = 300, .keys = 90 },
	  NULL,
	  NULL },
	{ "causal from the top left",
	  { BASE, .in = CPTX_BF16, .dim = 128, .causal = true, .top_left = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .queries = 200, .keys = 130 },
	  NULL,
	  NULL },
	{ "window",
	  { BASE, .in = CPTX_BF16, .dim = 64, .window = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .queries = 200, .keys = 400, .window_left = 70, .window_right = 33 },
	  NULL,
	  NULL },
	{ "window of one key",
	  { BASE, .in = CPTX_BF16, .dim = 64, .window = true, .top_left = true },
	  { SIZES, .batch = 1, .heads = 1, .queries = 200, .keys = 150 },
	  NULL,
	  NULL },
	{ "window without ends",
	  { BASE, .in = CPTX_BF16, .dim = 64, .window = true },
	  { SIZES, .batch = 1, .heads = 1, .queries = 70, .keys = 300, .window_left = UINT32_MAX, .window_right = UINT32_MAX },
	  NULL,
	  NULL },
	{ "causal window, small blocks",
	  { BASE, .in = CPTX_BF16, .dim = 128, .causal = true, .window = true, .bk = 32, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .queries = 300, .keys = 310, .window_left = 40 },
	  NULL,
	  NULL },
	{ "soft cap, scale",
	  { BASE, .in = CPTX_BF16, .dim = 128, .softcap = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .queries = 100, .keys = 200, .scale = 0.3f, .softcap = 2 },
	  NULL,
	  NULL },
	{ "score function",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .score = build_score, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .queries = 100, .keys = 200 },
	  score_of,
	  NULL },
	{ "score function behind a soft cap",
	  { BASE, .in = CPTX_F16, .dim = 64, .softcap = true, .score = build_score },
	  { SIZES, .batch = 1, .heads = 3, .queries = 65, .keys = 190, .softcap = 3 },
	  score_of,
	  NULL },
	{ "f32 out, heads of 40",
	  { BASE, .in = CPTX_F16, .out = CPTX_F32, .dim = 40 },
	  { SIZES, .batch = 1, .heads = 2, .queries = 70, .keys = 140 },
	  NULL,
	  NULL },
	{ "heads of 8",
	  { BASE, .in = CPTX_BF16, .dim = 8 },
	  { SIZES, .batch = 1, .heads = 2, .queries = 70, .keys = 140 },
	  NULL,
	  NULL },
	{ "heads of 96",
	  { BASE, .in = CPTX_BF16, .dim = 96 },
	  { SIZES, .batch = 1, .heads = 2, .queries = 70, .keys = 300 },
	  NULL,
	  NULL },
	{ "heads of 192 and 128",
	  { BASE, .in = CPTX_BF16, .dim = 192, .dim_v = 128, .causal = true },
	  { SIZES, .batch = 1, .heads = 1, .queries = 140, .keys = 200 },
	  NULL,
	  NULL },
	{ "heads of 256, one warpgroup",
	  { BASE, .in = CPTX_BF16, .dim = 256, .causal = true, .bq = 64 },
	  { SIZES, .batch = 1, .heads = 1, .queries = 140, .keys = 140 },
	  NULL,
	  NULL },
	{ "more stages, few CTAs",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .bk = 64, .stages = 4 },
	  { SIZES, .batch = 1, .heads = 2, .queries = 200, .keys = 330, .ctas = 1 },
	  NULL,
	  NULL },
	{ "no keys",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true },
	  { SIZES, .batch = 2, .heads = 2, .queries = 70 },
	  NULL,
	  NULL },
	{ "no queries",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .keys = 70 },
	  NULL,
	  NULL },
	{ "no batches, causal",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true },
	  { SIZES, .heads = 2, .queries = 64, .keys = 70 },
	  NULL,
	  NULL },
	{ "one of each",
	  { BASE, .in = CPTX_BF16, .dim = 128, .causal = true, .lse = true },
	  { SIZES, .batch = 1, .heads = 1, .queries = 1, .keys = 1 },
	  NULL,
	  NULL },
	{ "strides: sequence, batch, head",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true },
	  { SIZES, .batch = 2, .heads = 4, .kv_heads = 2, .queries = 100, .keys = 150,
	    .q_stride = { .row = 2 * 4 * 64 + 8, .batch = 4 * 64, .head = 64 },
	    .k_stride = { .row = 2 * 64, .batch = 150 * 2 * 64, .head = 64 },
	    .v_stride = { .row = 80, .batch = 2 * 150 * 80 + 16, .head = 150 * 80 },
	    .o_stride = { .row = 2 * 4 * 72, .batch = 72, .head = 2 * 72 } },
	  NULL,
	  NULL },
	{ "sinks",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true, .sinks = true },
	  { SIZES, .batch = 1, .heads = 6, .kv_heads = 2, .queries = 70, .keys = 40 },
	  NULL,
	  NULL },
	{ "sinks behind a soft cap",
	  { BASE, .in = CPTX_F16, .dim = 64, .softcap = true, .lse = true, .sinks = true },
	  { SIZES, .batch = 1, .heads = 5, .queries = 33, .keys = 140, .softcap = 3 },
	  NULL,
	  NULL },
	{ "a mask",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true, .mask = build_mask },
	  { SIZES, .batch = 1, .heads = 1, .queries = 140, .keys = 140 },
	  NULL,
	  mask_of },
	{ "a mask that skips blocks",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true, .bk = 32, .mask = build_mask, .blocks = build_blocks },
	  { SIZES, .batch = 1, .heads = 2, .queries = 330, .keys = 400, .ctas = 1 },
	  NULL,
	  mask_of },
	{ "a mask that skips blocks of a window",
	  { BASE, .in = CPTX_BF16, .dim = 64, .window = true, .stages = 3, .bk = 16, .mask = build_mask,
	    .blocks = build_blocks },
	  { SIZES, .batch = 1, .heads = 2, .queries = 200, .keys = 220, .window_left = 60, .window_right = 9 },
	  NULL,
	  mask_of },
	{ "a mask that skips all blocks",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true, .mask = build_no_mask, .blocks = build_no_blocks },
	  { SIZES, .batch = 1, .heads = 1, .queries = 20, .keys = 300 },
	  NULL,
	  no_mask_of },
	{ "packed sequences",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true, .varlen = true },
	  { SIZES, .batch = 5, .heads = 2, .kv_heads = 1, .queries = 140, .keys = 130 },
	  NULL,
	  NULL },
	{ "packed sequences, causal, strides",
	  { BASE, .in = CPTX_BF16, .dim = 40, .causal = true, .lse = true, .varlen = true, .sinks = true },
	  { SIZES, .batch = 4, .heads = 2, .queries = 90, .keys = 130, .q_stride = { .row = 96, .head = 48 },
	    .o_stride = { .row = 40, .head = 600 * 40 } },
	  NULL,
	  NULL },
	{ "pages of a block",
	  { BASE, .in = CPTX_BF16, .dim = 64, .page = 64, .bk = 64 },
	  { SIZES, .batch = 2, .heads = 2, .kv_heads = 1, .queries = 30, .keys = 200 },
	  NULL,
	  NULL },
	{ "pages of several blocks, packed, causal",
	  { BASE, .in = CPTX_BF16, .dim = 96, .causal = true, .lse = true, .varlen = true, .page = 128, .bk = 32 },
	  { SIZES, .batch = 3, .heads = 2, .queries = 40, .keys = 200 },
	  NULL,
	  NULL },
	{ "small pages",
	  { BASE, .in = CPTX_BF16, .dim = 64, .dim_v = 96, .page = 16 },
	  { SIZES, .batch = 2, .heads = 1, .queries = 30, .keys = 150 },
	  NULL,
	  NULL },
	{ "heads packed, causal, a score function and a mask of heads",
	  { BASE, .in = CPTX_BF16, .dim = 64, .causal = true, .lse = true, .pack = 4, .bq = 64, .score = build_score,
	    .mask = build_mask },
	  { SIZES, .batch = 2, .heads = 8, .kv_heads = 2, .queries = 21, .keys = 150 },
	  score_of,
	  mask_of },
	{ "heads of 72 packed, sequences and pages, a window, strides, f32 out",
	  { BASE, .in = CPTX_F16, .out = CPTX_F32, .dim = 72, .window = true, .lse = true, .pack = 8, .varlen = true,
	    .page = 32 },
	  { SIZES, .batch = 3, .heads = 8, .kv_heads = 1, .queries = 19, .keys = 130, .window_left = 40, .window_right = 3,
	    .q_stride = { .row = 8 * 72, .head = 72 }, .o_stride = { .row = 8 * 80, .head = 80 } },
	  NULL,
	  NULL },
	{ "heads packed, each with a sink",
	  { BASE, .in = CPTX_BF16, .dim = 64, .lse = true, .pack = 8, .bq = 64, .sinks = true },
	  { SIZES, .batch = 2, .heads = 16, .kv_heads = 2, .queries = 11, .keys = 90 },
	  NULL,
	  NULL },
	{ "heads packed, each with blocks of its own",
	  { BASE, .in = CPTX_BF16, .dim = 64, .pack = 2, .bq = 128, .bk = 32, .mask = build_head_mask,
	    .blocks = build_head_blocks },
	  { SIZES, .batch = 1, .heads = 4, .kv_heads = 1, .queries = 90, .keys = 400 },
	  NULL,
	  head_mask_of },
	{ "e4m3, heads packed",
	  { BASE, .in = CPTX_E4M3, .dim = 64, .pack = 2, .bq = 64, .lse = true },
	  { SIZES, .batch = 1, .heads = 4, .kv_heads = 2, .queries = 40, .keys = 100 },
	  NULL,
	  NULL },
	{ "e4m3, few CTAs",
	  { BASE, .in = CPTX_E4M3, .dim = 128, .lse = true },
	  { SIZES, .batch = 1, .heads = 2, .kv_heads = 1, .queries = 140, .keys = 200, .v_scale = 0.25f, .ctas = 2 },
	  NULL,
	  NULL },
	{ "e4m3, heads of 48 and 80, causal, sinks, more blocks than stages",
	  { BASE, .in = CPTX_E4M3, .out = CPTX_F32, .dim = 48, .dim_v = 80, .causal = true, .bk = 32, .lse = true,
	    .sinks = true },
	  { SIZES, .batch = 2, .heads = 1, .queries = 70, .keys = 140 },
	  NULL,
	  NULL },
	{ "e4m3, a mask that skips blocks, packed",
	  { BASE, .in = CPTX_E4M3, .out = CPTX_F16, .dim = 64, .varlen = true, .bq = 64, .bk = 64, .mask = build_mask,
	    .blocks = build_blocks },
	  { SIZES, .batch = 2, .heads = 1, .queries = 130, .keys = 300 },
	  NULL,
	  mask_of },
	{ "e4m3, pages, a window, a soft cap",
	  { BASE, .in = CPTX_E4M3, .dim = 64, .window = true, .softcap = true, .page = 16, .bq = 64, .bk = 96 },
	  { SIZES, .batch = 1, .heads = 2, .queries = 100, .keys = 250, .softcap = 3, .window_left = 80, .window_right = 20 },
	  NULL,
	  NULL },
};
enum { SAMPLES = sizeof samples / sizeof *samples };

START_TEST(options_are_right)
{
	const sample *s = &samples[_i];
	const attention_trial t = { .p = s->p, .seed = (uint64_t)_i + 1, .score = s->score, .mask = s->mask };

	trial_in_orders(&kind, &s->o, &t, NULL, t.seed, trial_count("CPTX_SEEDS", trial_whole(8, 1)), s->what);
}
END_TEST

/* With the usual shape; cp.async brings no pages that are smaller than a block, so TMA does. */
START_TEST(options_are_right_by_mma_sync)
{
	const sample *s = &samples[_i / 2];
	cptx_attention_opt o = s->o;
	attention_trial t = { .p = s->p, .seed = (uint64_t)_i + 1, .score = s->score, .mask = s->mask };

	o.mma = CPTX_ATTENTION_SYNC, o.bq = 0, o.tma = _i % 2 != 0, t.p.ctas = 0;
	if (o.pack)
		return;
	o.bk = o.bk == 96 ? 0 : o.bk;
	if (!is_tried((uint64_t)_i, 9))
		return;
	trial_in_orders(&kind, &o, &t, NULL, t.seed, trial_count("CPTX_SEEDS", trial_whole(5, 1)), s->what);
}
END_TEST

/* With one tile of queries in a CTA and with two, and exponentials by a polynomial or none. */
START_TEST(options_are_right_by_tcgen05)
{
	const sample *s = &samples[_i / 2];
	const uint32_t tiles = 1 + _i % 2, least = 32 * tiles;
	cptx_attention_opt o = s->o;
	attention_trial t = { .p = s->p, .seed = (uint64_t)_i + 1, .score = s->score, .mask = s->mask };

	o.mma = CPTX_ATTENTION_TCGEN05, o.bq = 128 * tiles, o.stages = 0, t.p.ctas = 0;
	o.fast_ex2 = _i % 6 == 5;
	if (o.pack || (tiles > 1 && o.dim > 128))
		return;
	o.bk = o.bk && o.bk < least ? least : o.bk;
	o.bk = o.bk == 96 ? 64 : o.bk;
	o.bk = tiles > 1 && o.page && o.page < 128 ? 64 : o.bk;
	if (!is_tried((uint64_t)_i, 7))
		return;
	trial_in_orders(&kind, &o, &t, NULL, t.seed, trial_count("CPTX_SEEDS", trial_whole(8, 1)), s->what);
}
END_TEST

/* ---- at random ---- */

static uint64_t state;
static uint32_t any(uint32_t n) { return (uint32_t)(number_random(&state) % n); }

/* mma: CPTX_ATTENTION_MMAS: any. */
static void draw_for(cptx_attention_opt *o, attention_trial *t, enum cptx_attention_mma mma)
{
	static const uint32_t kv[] = { 1, 2, 3 }, groups[] = { 1, 2, 4 }, pages[] = { 16, 32, 64, 128 };
	cptx_attention_problem *p = &t->p;

	*o = (cptx_attention_opt){ BASE, .in = any(2) ? CPTX_BF16 : CPTX_F16, .dim = 8 * (1 + any(any(3) ? 16 : 32)) };
	o->dim_v = any(4) ? 0 : 8 * (1 + any(16));
	o->out = any(4) ? CPTX_TYPE_NONE : CPTX_F32;
	o->causal = any(2), o->window = !any(3), o->top_left = (o->causal || o->window) && any(2);
	o->softcap = !any(5), o->lse = any(2);
	o->bk = any(2) ? 0 : 16 * (1 + any(12)), o->bq = any(2) ? 0 : 64 * (1 + any(3)), o->stages = any(3) ? 0 : 2 + any(3);
	o->mma = mma < CPTX_ATTENTION_MMAS ? mma : (enum cptx_attention_mma)any(CPTX_ATTENTION_MMAS);
	if (o->mma == CPTX_ATTENTION_TCGEN05)
		o->bq = any(4) ? 0 : 128, o->bk = any(3) ? 0 : 32 << any(3), o->stages = any(4) ? 0 : 3, o->fast_ex2 = any(2);
	if (o->mma == CPTX_ATTENTION_SYNC)
		o->tma = any(2), o->bq = any(2) ? 0 : 32 << any(3), o->bk = any(2) ? 0 : 16 * (1 + any(6));
	o->sinks = !any(4), o->varlen = !any(4), o->page = any(5) ? 0 : pages[any(4)];
	if (!any(5)) {
		o->mask = build_mask, t->mask = mask_of;
		o->blocks = any(2) ? build_blocks : NULL;
	}
	if (!any(6))
		o->score = build_score, t->score = score_of;
	if (!any(3)) {
		o->in = CPTX_E4M3, o->dim = (o->dim + 15) / 16 * 16, o->dim_v = (o->dim_v + 15) / 16 * 16;
		o->bk = (o->bk + 31) / 32 * 32;
	}
	if (o->mma == CPTX_ATTENTION_WGMMA && !any(3))
		o->pack = 2 << any(2);
	*p = (cptx_attention_problem){ SIZES, .batch = 1 + any(2), .queries = 1 + any(any(3) ? 300 : 20), .keys = any(400) };
	p->kv_heads = kv[any(3)], p->heads = p->kv_heads * groups[any(3)];
	if (o->mma == CPTX_ATTENTION_TCGEN05) /* in many orders: fewer heads, which all do the same */
		p->kv_heads = 1 + any(2), p->heads = p->kv_heads * (1 + any(2));
	p->scale = any(3) ? 0 : 1 + (float)any(3); /* maxima that grow by more than 2^8 */
	p->softcap = o->softcap ? 1 + (float)any(4) : 0;
	p->window_left = o->window ? any(200) : 0, p->window_right = o->window && !o->causal ? any(100) : 0;
	p->ctas = o->mma != CPTX_ATTENTION_WGMMA || any(2) ? 0 : 1 + any(5);
	if (any(2) && !o->varlen) { /* row by row, the heads beside one another, rows padded */
		const uint64_t row = p->heads * (o->dim + 16ull * any(2));
		p->q_stride = (cptx_attention_stride){ p->queries * row, row / p->heads, row };
	}
}

static void draw(unsigned i, void *o, attention_trial *t, enum cptx_attention_mma mma)
{
	*t = (attention_trial){ .seed = i };
	draw_for(o, t, mma);
	attention_trial_complete(t, o);
}
static void draw_any(unsigned i, void *o, void *t) { draw(i, o, t, CPTX_ATTENTION_MMAS); }
static void draw_tcgen05(unsigned i, void *o, void *t) { draw(i, o, t, CPTX_ATTENTION_TCGEN05); }

static bool check_one(const void *opt, const void *t, const char *target, cptx_error *err)
{
	const cptx_attention_opt *o = (const cptx_attention_opt *)opt;

	return cptx_attention_check(o, cptx_target_find(target), NULL, err) &&
	       cptx_attention_check_problem(o, &((const attention_trial *)t)->p, 1, NULL, err);
}

static void random_ones(void (*how)(unsigned i, void *o, void *t), unsigned trials, unsigned orders)
{
	const trial_kind random = {
		.build = build_one, .run = run_one, .target = trial_target, .draw = how, .check = check_one, .rules = "attention: "
	};
	cptx_attention_opt o;
	attention_trial t;

	state = 0x9e3779b97f4a7c15u;
	trial_random(&random, &o, &t, trials, orders);
}

START_TEST(random_ones_are_right) { random_ones(draw_any, trial_whole(1200, 3), trial_whole(2, 1)); }
END_TEST

/* There is no machine of ours that has it, so it is tried in many orders. */
START_TEST(random_ones_are_right_by_tcgen05) { random_ones(draw_tcgen05, trial_whole(300, 2), trial_whole(20, 2)); }
END_TEST

int main(void)
{
	Suite *s = suite_create("attention");
	TCase *t = test_case(s, "forward");

	tcase_add_loop_test(t, options_are_right, 0, SAMPLES);
	tcase_add_loop_test(t, options_are_right_by_mma_sync, 0, 2 * SAMPLES);
	tcase_add_loop_test(t, options_are_right_by_tcgen05, 0, 2 * SAMPLES);
	tcase_add_test(test_case(s, "random"), random_ones_are_right);
	tcase_add_test(test_case(s, "random_tcgen05"), random_ones_are_right_by_tcgen05);
	return test_main("attention forward", s);
}
