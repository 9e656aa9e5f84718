/* SPDX-License-Identifier: MIT */
/* The GEMM by mma.sync, fed by cp.async and by TMA, on the emulator, or on a GPU.  CPTX_SEEDS=50 runs each trial with so
 * many seeds. */
#include "../ask.h"
#include "../verify/assemble.h"
#include "gemm_draw.h"
#include "gemm_tests.h"

static const char *const targets[2][2] = { { "sm_80", "sm_89" }, { "sm_90a", "sm_120a" } };

#define TILE(m_, n_, k_, wm, wn, s) .bm = m_, .bn = n_, .bk = k_, .warps_m = wm, .warps_n = wn, .stages = s
static const struct shape {
	uint32_t m, n, k, ctas;
	cptx_gemm_opt o;
} shapes[] = {
	{ 64, 64, 64, 0, { TILE(64, 64, 32, 2, 2, 2), .out = CPTX_F32 } },
	{ 1, 8, 8, 0, { TILE(32, 32, 64, 1, 1, 3), .out = CPTX_BF16 } },
	{ 129, 72, 200, 2, { TILE(64, 64, 64, 2, 1, 3), .out = CPTX_F16, .alpha = true, GEMM_TRIAL_VISITORS } },
	{ 200, 136, 104, 1, { TILE(128, 64, 32, 4, 2, 4), .out = CPTX_F32, .bias = true } },
	{ 65, 264, 296, 3, { TILE(64, 96, 128, 1, 3, 2), .out = CPTX_BF16, .beta = true, .group = 2 } },
	{ 300, 40, 168, 2, { TILE(96, 32, 64, 2, 2, 2), .out = CPTX_F32, .alpha = true, .beta = true, .batched = true } },
	{ 127, 200, 400, 0, { TILE(64, 128, 64, 2, 4, 3), .out = CPTX_F16, .epilogue = gemm_trial_epilogue } },
	{ 208, 72, 160, 0, { TILE(128, 64, 64, 2, 1, 2), .out = CPTX_F32, .a_m_major = true } },
	{ 65, 160, 136, 2, { TILE(64, 128, 32, 2, 2, 3), .out = CPTX_BF16, .b_n_major = true, .bias = true } },
	{ 144, 48, 77, 0, { TILE(48, 32, 64, 1, 2, 3), .out = CPTX_F32, .a_m_major = true, .b_n_major = true } },
	{ 256, 272, 1, 1, { TILE(64, 128, 128, 2, 4, 2), .a_m_major = true, .b_n_major = true, .batched = true } },
	/* threads that have other columns of A than of B */
	{ 64, 40, 72, 0, { TILE(128, 16, 128, 8, 1, 2), .out = CPTX_F32 } },
	/* fewer tiles than CTAs, which share each; one to two for each; whole ones first */
	{ 60, 64, 416, 3, { TILE(64, 64, 32, 2, 2, 2), .stream_k = true, .beta = true } },
	{ 130, 128, 288, 4, { TILE(64, 128, 64, 2, 2, 2), .stream_k = true, .alpha = true, .batched = true } },
	{ 64,
	  312,
	  160,
	  3,
	  { TILE(64, 64, 32, 1, 2, 3), .out = CPTX_F16, .stream_k = true, .a_m_major = true, GEMM_TRIAL_VISITORS } },
	/* the matrices as a list */
	{ 80, 72, 320, 3, { TILE(64, 64, 64, 2, 1, 2), .grouped = true, .beta = true, .bias = true } },
	{ 72, 88, 104, 2, { TILE(64, 64, 32, 2, 2, 3), .grouped = true, .a_m_major = true, GEMM_TRIAL_VISITORS } },
	/* D has rows of any length: cp.async alone */
	{ 77, 33, 72, 2, { TILE(64, 32, 32, 2, 1, 3), .out = CPTX_BF16 } },
	{ 50, 101, 88, 0, { TILE(32, 64, 64, 1, 2, 2), .out = CPTX_F32, .beta = true, .bias = true, GEMM_TRIAL_VISITORS } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes, ODD = 2 };

static gemm_trial trial_of(const struct shape *s, enum cptx_type type, bool tma)
{
	gemm_trial t = { .m = s->m, .n = s->n, .k = s->k, .ctas = s->ctas, .opt = s->o };
	cptx_gemm_opt *o = &t.opt;

	o->a = o->b = type, o->tma = tma;
	o->out = o->out == CPTX_TYPE_NONE ? CPTX_F32 : o->out;
	t.batch = o->batched ? 2 : o->grouped ? 3 : 0;
	return t;
}

/* Types other than those of 16 bits; out 0: f32. */
static const struct types {
	enum cptx_type a, b, out;
	uint32_t bytes;        /* of A and B, each element */
	const char *target[2]; /* by cp.async, by TMA */
} types[] = {
	{ CPTX_E4M3, CPTX_E5M2, CPTX_BF16, 1, { "sm_89", "sm_90" } },
	{ CPTX_E5M2, CPTX_E5M2, CPTX_E4M3, 1, { "sm_120", "sm_120a" } },
	{ CPTX_S8, CPTX_S8, CPTX_S32, 1, { "sm_80", "sm_90a" } },
	{ CPTX_U8, CPTX_S8, CPTX_F16, 1, { "sm_86", "sm_120" } },
	{ CPTX_TF32, CPTX_TF32, CPTX_F32, 4, { "sm_80", "sm_100a" } },
	{ CPTX_BF16, CPTX_BF16, CPTX_E5M2, 2, { "sm_89", "sm_90" } },
};
enum { TYPES = sizeof types / sizeof *types };

/* _i: fed by TMA?  Whole tiles, lists, batches, tiles that are shared along K, and what is done to the sums. */
START_TEST(multiplies_every_type)
{
	static const struct {
		uint32_t m, n, k, bk; /* bk: bytes */
		cptx_gemm_opt o;
	} way[] = { { 70, 80, 208, 128, { .stages = 3 } },
		        { 33, 48, 96, 64, { .stages = 2, .batched = true } },
		        { 64, 64, 416, 64, { .stages = 2, .stream_k = true } },
		        { 40, 32, 272, 256, { .stages = 2, .grouped = true } } };

	for (unsigned i = 0; i < TYPES * 4; i++) {
		const struct types *t = &types[i / 4];
		const char *const on[2] = { t->target[_i], t->target[_i] };
		gemm_trial x = {
			.m = way[i % 4].m, .n = way[i % 4].n, .k = way[i % 4].k, .ctas = 2, .opt = way[i % 4].o, .seed = i
		};
		cptx_gemm_opt *o = &x.opt;
		o->bm = o->bn = 64, o->warps_m = o->warps_n = 2, o->bk = way[i % 4].bk / t->bytes, o->tma = _i;
		o->a = t->a, o->b = t->b, o->out = t->out;
		x.batch = o->batched ? 2 : o->grouped ? 3 : 0;
		o->alpha = o->bias = t->out != CPTX_S32 && i % 4 < 2;
		gemm_right(&x, on, i);
	}
}
END_TEST

START_TEST(gives_the_exact_sums)
{
	for (unsigned i = 0; i < SHAPES - (_i ? ODD : 0); i++)
		for (unsigned seed = 0; seed < gemm_seeds(1); seed++) {
			gemm_trial t = trial_of(&shapes[i], i % 2 ? CPTX_F16 : CPTX_BF16, _i);
			t.seed = seed * SHAPES + i;
			gemm_right(&t, targets[_i], seed + i);
		}
}
END_TEST

/* What the check of a target lets through runs there; what it refuses has a message. */
static void at_random(gemm_trial (*draw)(uint64_t seed), const char *prefix, const char *const *on, unsigned n)
{
	unsigned want = gemm_trials(12), refused = 0;

	for (uint64_t seed = 1; want; seed++) {
		const char *const target[] = { on[seed % n], on[seed % n] };
		gemm_trial t = draw(seed);
		cptx_error err = { .code = CPTX_OK };
		if (cptx_gemm_check(&t.opt, cptx_target_find(target[0]), NULL, &err)) {
			gemm_right(&t, target, (unsigned)seed);
			want--;
		} else {
			ck_assert_msg(!strncmp(err.text, prefix, strlen(prefix)), "%s", err.text);
			refused++;
		}
	}
	ck_assert_uint_gt(refused, 0);
}

START_TEST(options_at_random_by_cp_async)
{
	static const char *const on[] = { "sm_80", "sm_89", "sm_90", "sm_120" };

	at_random(gemm_draw_sm80, "gemm for sm_80: ", on, 4);
}
END_TEST

/* Without setmaxnreg, and with it. */
START_TEST(options_at_random_by_tma)
{
	static const char *const on[] = { "sm_90", "sm_90a", "sm_120", "sm_120a" };

	at_random(gemm_draw_sync_tma, "gemm for sm_90: ", on, 4);
}
END_TEST

/* setmaxnreg: eight warps of 64 x 64. */
START_TEST(warps_get_registers)
{
	gemm_trial t = { .m = 260, .n = 136, .k = 200, .opt = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find("sm_90a")) };
	cptx_gemm_plan plan;

	ck_assert(cptx_gemm_check(&t.opt, NULL, &plan, NULL));
	ck_assert_uint_eq(plan.threads, 12 * 32);
	ck_assert(!cptx_gemm_check(&t.opt, cptx_target_find("sm_90"), NULL, NULL));
	t.opt.stream_k = _i == 1, t.opt.grouped = _i == 2, t.batch = _i == 2 ? 2 : 0;
	t.opt.b_n_major = _i > 0, t.ctas = 2;
	gemm_right(&t, targets[1], 0);
}
END_TEST

/* ---- ptxas ---- */

/* Bytes, of a shape that needs all registers for the sums, with more than these: outside of the mainloop.
 */
enum { SPILL_MOST = 80 };

static const struct judged {
	const char *target;
	uint32_t spill; /* bytes of a thread at most */
	cptx_gemm_opt o;
} judged[] = {
	{ "sm_80", 0, { .out = CPTX_F32 } },
	{ "sm_80", 0, { .out = CPTX_BF16, .a_m_major = true, .b_n_major = true } },
	{ "sm_80", 0, { .out = CPTX_BF16, .batched = true } },
	{ "sm_80", SPILL_MOST, { .out = CPTX_BF16, .stream_k = true, .alpha = true, .beta = true } },
	{ "sm_86", 0, { .out = CPTX_F16 } },
	{ "sm_89", 0, { .out = CPTX_F32 } },
	{ "sm_90", 0, { .out = CPTX_BF16 } },
	{ "sm_90a", 0, { .out = CPTX_BF16 } },
	{ "sm_90a", 0, { .out = CPTX_F32 } },
	{ "sm_90a", 0, { .out = CPTX_F16, .a_m_major = true } },
	{ "sm_90a", 0, { .out = CPTX_BF16, .b_n_major = true } },
	{ "sm_90a", 0, { .out = CPTX_BF16, .batched = true } },
	{ "sm_90a", 0, { .out = CPTX_BF16, .grouped = true } },
	{ "sm_90a", SPILL_MOST, { .out = CPTX_BF16, .stream_k = true } },
	{ "sm_90a", SPILL_MOST, { .out = CPTX_F32, .alpha = true, .beta = true, .bias = true } },
	{ "sm_100a", 0, { .out = CPTX_BF16 } },
	{ "sm_120", 0, { .out = CPTX_BF16 } },
	{ "sm_120a", SPILL_MOST, { .out = CPTX_F32, .stream_k = true, .alpha = true, .beta = true } },
};
enum { JUDGED = sizeof judged / sizeof *judged };

static unsigned bytes_spilled(const char *said)
{
	const char *p = strstr(said, " bytes spill stores");

	ck_assert_msg(p != NULL, "%s", said);
	while (p > said && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return (unsigned)strtoul(p, NULL, 10);
}

/* The default shapes. */
START_TEST(ptxas_does_not_spill)
{
	const struct judged *j = &judged[_i];
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find(j->target));
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas, to judge the kernels");
		return;
	}
	o.out = j->o.out, o.a_m_major = j->o.a_m_major, o.b_n_major = j->o.b_n_major, o.batched = j->o.batched;
	o.grouped = j->o.grouped, o.stream_k = j->o.stream_k;
	o.alpha = j->o.alpha, o.beta = j->o.beta, o.bias = j->o.bias;
	cptx_module *m = cptx_module_new(NULL);
	ck_assert_msg(cptx_gemm_build(m, &o, &err) != NULL, "%s", err.text);
	assembly job = { .target = j->target };
	cptx_ptx *ptx = cptx_emit(m, job.target, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	job.ptx = cptx_ptx_text(ptx);
	assemble(&job, 1);
	unsigned bytes = bytes_spilled(job.said);
	ck_assert_msg(!job.status && bytes <= j->spill && (bytes || !strstr(job.said, "warning")), "%d: %s", _i, job.said);
	assemble_free(&job, 1);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
{
	const cptx_gemm_opt good = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, TILE(128, 128, 64, 2, 2, 3), .tma = true };
	struct {
		cptx_gemm_opt o;
		const char *said, *target;
	} bad[] = {
		{ good, "gemm for sm_90: TMA is not available on sm_89; targets from sm_90 on have it", "sm_89" },
		{ good, "gemm for sm_90: tile 512x128; each side is at most 256 by TMA", "sm_90a" },
		{ good, "about 220 registers per thread are needed, 512 threads can have 152 each", "sm_90a" },
		{ good, "8 warps of about 220 registers and one for TMA need setmaxnreg, which sm_90 has not", "sm_90" },
		{ good, "32 warps that compute and 4 beside them; a CTA has at most 32", "sm_90a" },
		{ good, "a CTA of sm_90a has at most 231424 (6 stages fit)", "sm_90a" },
		{ good, "gemm: .tma is an option of mma.sync; this kernel is by wgmma: there TMA brings A and B always", NULL },
		{ good, "a list of problems cannot be shared along K", NULL },
	};
	cptx_error err = { .code = CPTX_OK };

	bad[1].o.bm = 512, bad[1].o.warps_m = 8, bad[2].o.bm = 192, bad[2].o.bn = 256;
	bad[2].o.warps_m = 3, bad[2].o.warps_n = 4;
	bad[3].o.bm = 256, bad[3].o.warps_m = 4, bad[4].o.warps_m = 8, bad[4].o.warps_n = 4, bad[5].o.stages = 8;
	bad[6].o.mma = CPTX_GEMM_WGMMA, bad[6].o.warps_m = bad[6].o.warps_n = 0;
	bad[7].o.grouped = bad[7].o.stream_k = true;
	ck_assert_msg(cptx_gemm_check(&good, cptx_target_find("sm_90"), NULL, FRESH(&err)), "%s", err.text);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(!cptx_gemm_check(&bad[i].o, bad[i].target ? cptx_target_find(bad[i].target) : NULL, NULL, FRESH(&err)),
		              "%s", bad[i].said);
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
	/* rows of D: whole 16 bytes by TMA, any without */
	cptx_gemm_opt o = good;
	ck_assert(!cptx_gemm_check_problem(&o, &(cptx_gemm_problem){ .m = 8, .n = 9, .k = 48 }, 1, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "rows of D have 9 elements of 4 bytes") != NULL, "%s", err.text);
	o.tma = false;
	ck_assert(cptx_gemm_check_problem(&o, &(cptx_gemm_problem){ .m = 8, .n = 9, .k = 48 }, 1, NULL, FRESH(&err)));
}
END_TEST

/* mbarrier.arrive waits neither for ldmatrix nor for ld.shared, and ptxas moves it in front of what takes their values:
 * between the last of these of a stage and its release there is the branch of the loop, in front of which all was taken. */
#define BYTES .a = CPTX_E4M3, .b = CPTX_E4M3
static const struct staged {
	const char *target;
	unsigned releases;
	cptx_gemm_opt o;
} staged[] = {
	{ "sm_90", 2, { TILE(128, 128, 64, 2, 4, 4), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16, .tma = true } },
	{ "sm_90", 2, { TILE(64, 64, 32, 2, 2, 3), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .tma = true } },
	{ "sm_90",
	  2,
	  { TILE(128, 128, 64, 2, 4, 8), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16, .tma = true, .sparse = true } },
	{ "sm_90", 2, { TILE(64, 64, 128, 2, 2, 3), .a = CPTX_S8, .b = CPTX_S8, .out = CPTX_S32, .tma = true } },
	{ "sm_120a", 1, { TILE(64, 64, 0, 2, 2, 2), BYTES, .out = CPTX_F32, .scale = CPTX_UE8M0 } },
	/* factors of columns; of the first K tile, of the others, and behind the last tile */
	{ "sm_90a",
	  3,
	  { TILE(128, 64, 0, 0, 0, 3), BYTES, .mma = CPTX_GEMM_WGMMA, .out = CPTX_BF16, .scale = CPTX_F32,
	    .scale_rows = true } },
};
enum { STAGED = sizeof staged / sizeof *staged };
START_TEST(stages_are_released_behind_their_fragments)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	unsigned releases = 0;
	bool waited = true;

	cptx_gemm_build(m, &staged[_i].o, &err);
	cptx_ptx *ptx = cptx_emit(m, staged[_i].target, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	for (const char *line = cptx_ptx_text(ptx); *line;) {
		const char *end = strchr(line, '\n');
		char text[300];
		snprintf(text, sizeof text, "%.*s", (int)(end ? end - line : (long)strlen(line)), line);
		if (strstr(text, "ldmatrix") || strstr(text, "ld.shared"))
			waited = false;
		else if (strstr(text, " bra ") || strstr(text, "fence.proxy.async"))
			waited = true;
		else if (strstr(text, "mbarrier.arrive.shared")) {
			ck_assert_msg(waited, "kernel %d: %s", _i, text);
			releases++;
		}
		line = end ? end + 1 : "";
	}
	ck_assert_uint_eq(releases, staged[_i].releases);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* The PTX of a kernel without its products: nobody takes what ldmatrix has read. */
static char *without_products(const cptx_ptx *ptx)
{
	char *text = strdup(cptx_ptx_text(ptx));

	for (char *p = text; (p = strstr(p, "\tmma.sync")) != NULL;) {
		char *end = strchr(p, '\n');
		memset(p, ' ', (size_t)(end - p));
	}
	return text;
}

START_TEST(the_emulator_finds_a_release_in_front_of_fragments)
{
	const cptx_gemm_opt o = { TILE(64, 64, 32, 2, 2, 3), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .tma = true };
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90", NULL, &err);
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 256 };

	cptx_gemm_build(m, &o, &err);
	cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, &err);
	ck_assert_msg(ptx && dev, "%s", err.text);
	p.a = cptx_mem_alloc(dev, 64 * 256 * 2, &err), p.b = cptx_mem_alloc(dev, 64 * 256 * 2, &err);
	p.d = cptx_mem_alloc(dev, 64 * 64 * 4, &err);
	cptx_mem_fill8(dev, p.a, 0, 64 * 256 * 2, &err), cptx_mem_fill8(dev, p.b, 0, 64 * 256 * 2, &err);
	for (int early = 0; early < 2; early++) {
		char *text = early ? without_products(ptx) : strdup(cptx_ptx_text(ptx));
		cptx_program *program = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
		cptx_launch *l = program ? cptx_gemm_launch(program, dev, &o, &p, &err) : NULL;
		ck_assert_msg(l != NULL, "%s", err.text);
		const bool ran = cptx_launch_run(l, NULL, &err) && cptx_device_synchronize(dev, &err);
		ck_assert_msg(ran == !early, "%d: %s", early, err.text);
		if (early)
			ck_assert_msg(strstr(err.text, "does not wait for the registers of ldmatrix"), "%s", err.text);
		cptx_launch_destroy(l);
		cptx_program_destroy(program);
		free(text);
	}
	cptx_device_close(dev);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sync");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, gives_the_exact_sums, 0, 2);
	tcase_add_loop_test(c, multiplies_every_type, 0, 2);
	tcase_add_loop_test(c, warps_get_registers, 0, 3);
	tcase_add_loop_test(c, ptxas_does_not_spill, 0, JUDGED);
	tcase_add_test(c, says_which_rule_is_broken);
	tcase_add_loop_test(c, stages_are_released_behind_their_fragments, 0, STAGED);
	tcase_add_test(c, the_emulator_finds_a_release_in_front_of_fragments);
	c = test_case(s, "random");
	tcase_add_test(c, options_at_random_by_cp_async);
	tcase_add_test(c, options_at_random_by_tma);
	return gemm_tests_main("gemm_sync", s);
}
