/* SPDX-License-Identifier: MIT */
/*
 * The ladder of GEMMs: right and without a finding in many schedules on emulated devices, no bank conflicts, and what ptxas
 * makes of them.
 */
#include "../test.h"
#include "../ask.h"
#include "../whole.h"

#include "hgemm_parts.h"
#include "hgemm_run.h"

#include <cptx/emu.h>

static cptx_error err;

typedef struct size {
	uint64_t m, n, k;
	enum cptx_type type;
} size;

static const size sizes[] = {
	{ 256, 256, 128, CPTX_BF16 }, { 200, 512, 64, CPTX_F16 },  { 1, 8, 8, CPTX_BF16 },       { 130, 264, 72, CPTX_F16 },
	{ 257, 520, 200, CPTX_BF16 }, { 100, 136, 616, CPTX_F16 }, { 640, 24, 1000, CPTX_BF16 },
};

static const struct schedule {
	uint64_t seed;
	enum cptx_emu_schedule order;
} schedules[] = { { 1, CPTX_EMU_RANDOM }, { 2, CPTX_EMU_RANDOM }, { 3, CPTX_EMU_LATE }, { 4, CPTX_EMU_EAGER } };

static bool uses_tma(enum hgemm_rung rung) { return rung == HGEMM_TMA_R || rung == HGEMM_TMA_RW; }

/* One run on a fresh device: every element, no finding (which would fail the launch), no conflict.  sms: multiprocessors, 0:
 * as many as suit. */
static void run_with(const char *target, const hgemm_case *c, const size *s, const struct schedule *when, uint32_t sms)
{
	static unsigned runs;

	if (!is_my_part(runs++))
		return;
	cptx_emu_opt how = { .seed = when->seed, .schedule = when->order, .sms = sms, .pedantic = true };
	gemm_problem p = { .m = s->m, .n = s->n, .k = s->k, .seed = when->seed };
	cptx_emu_counters count;
	gemm_report r;

	err = (cptx_error){ 0 };
	cptx_device *dev = cptx_emu_open(target, &how, &err);
	SURE(dev && hgemm_run(dev, c, &p, &r, &err), "%s %s, seed %u: %s", hgemm_name(c->rung), target, (unsigned)when->seed,
	     err.text);
	SURE(r.wrong == 0 && r.elements == s->m * s->n, "%s %s %ux%ux%u: %u of %u wrong, first at (%u, %u): %g, not %g",
	     hgemm_name(c->rung), target, (unsigned)s->m, (unsigned)s->n, (unsigned)s->k, (unsigned)r.wrong,
	     (unsigned)r.elements, (unsigned)r.wrong_row, (unsigned)r.wrong_column, r.wrong_value, r.wrong_reference);
	SURE(cptx_emu_get_counters(dev, &count), "no counters");
	SURE(count.bank_conflicts == 0 && count.tensor_flops > 0 && count.shared_wavefronts > 0, "%s %s: %u bank conflicts",
	     hgemm_name(c->rung), target, (unsigned)count.bank_conflicts);
	cptx_device_close(dev);
}

static void run_on(const char *target, const hgemm_case *c, const size *s, const struct schedule *when)
{
	run_with(target, c, s, when, 0);
}

static bool have_emulator(void)
{
	err = (cptx_error){ 0 };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);

	cptx_device_close(dev);
	return dev != NULL;
}

static const char *const targets[] = { "sm_80", "sm_90", "sm_90a", "sm_120a" };
enum { TARGETS = sizeof targets / sizeof *targets, SIZES = sizeof sizes / sizeof *sizes, SCHEDULES = 4 };

/*
 * Defaults of each target, tile K 32 and 64: all schedules for one size, one in turn for the others.  A target takes one
 * size, the next target the one beside it; CPTX_WHOLE: all.
 */
START_TEST(defaults)
{
	enum hgemm_rung rung = (enum hgemm_rung)_i;
	int step = whole() ? 1 : SIZES;

	if (!have_emulator()) {
		skip("this build has no emulator");
		return;
	}
	for (int t = uses_tma(rung) ? 1 : 0; t < TARGETS; t++)
		for (uint32_t bk = t == 1 ? 64 : 32; bk <= 64; bk *= 2) /* sm_90 differs from sm_90a in its tile only */
			for (int s = (t + (bk == 64)) % step; s < SIZES; s += step) {
				hgemm_case c = { rung, hgemm_default(rung, bk, sizes[s].type, cptx_target_find(targets[t])) };
				bool all = s == 3;
				for (int i = all ? 0 : (s + t) % SCHEDULES, n = all ? SCHEDULES : 1; n; n--, i++)
					run_on(targets[t], &c, &sizes[s], &schedules[i]);
			}
}
END_TEST

/* Other tiles, warps, stages and groups, in every other schedule (CPTX_WHOLE: all); sm_80 too, which has no stmatrix. */
static const hgemm_case shapes[] = {
	{ HGEMM_BCF_DBF_RW, { 64, 128, 32, 1, 2, 2, CPTX_F16, .group = 1 } },
	{ HGEMM_BCF_DBF_RW, { 64, 256, 64, 2, 4, 2, CPTX_BF16, .group = 3, .stmatrix = true } },
	{ HGEMM_K_STAGES, { 128, 64, 32, 4, 1, 5, CPTX_BF16, .rolling = true } },
	{ HGEMM_K_STAGES, { 256, 64, 64, 8, 1, 4, CPTX_F16, .along_m = true, .stmatrix = true } },
	{ HGEMM_K_STAGES, { 64, 256, 32, 1, 2, 3, CPTX_F16, .group = 2, .rolling = true } }, /* 128 columns a warp */
	{ HGEMM_TMA_R, { 48, 192, 32, 1, 3, 4, CPTX_BF16, .stmatrix = true } },
	{ HGEMM_TMA_R, { 96, 128, 64, 3, 2, 2, CPTX_F16, .rolling = true } },
	{ HGEMM_TMA_R, { 64, 128, 64, 2, 2, 3, CPTX_BF16, .stay = true } },
	{ HGEMM_TMA_R, { 64, 512, 32, 2, 4, 2, CPTX_BF16, .along_m = true, .stmatrix = true } },
	{ HGEMM_TMA_RW, { 32, 128, 64, 2, 1, 5, CPTX_BF16, .group = 2 } },
	{ HGEMM_TMA_RW, { 128, 64, 32, 2, 1, 2, CPTX_F16, .rolling = true, .stmatrix = true } },
	{ HGEMM_TMA_RW, { 256, 128, 64, 4, 2, 2, CPTX_F16, .consumer_regs = 232, .stmatrix = true } },
};

START_TEST(other_shapes)
{
	if (!have_emulator()) {
		skip("this build has no emulator");
		return;
	}
	const hgemm_case *c = &shapes[_i];
	const char *target = uses_tma(c->rung) || c->o.stmatrix ? "sm_90a" : "sm_80";
	ck_assert_msg(hgemm_check(c->rung, &c->o, cptx_target_find(target), NULL, &err), "%s", err.text);
	for (int i = whole() ? 0 : _i % 2; i < SCHEDULES; i += whole() ? 1 : 2)
		run_on(target, c, &(size){ 257, 392, 168, c->o.type }, &schedules[i]);
}
END_TEST

/* CTAs that stay, with one tile to eight each, some of them cut off: ring and buffer of C go on from tile to tile.  Each
 * schedule with another number of multiprocessors; CPTX_WHOLE: with each. */
static const hgemm_case staying[] = {
	{ HGEMM_TMA_R, { 128, 256, 64, 2, 4, 3, CPTX_BF16, .consumer_regs = 232, .stay = true, .stmatrix = true } },
	{ HGEMM_TMA_R, { 64, 128, 32, 2, 2, 3, CPTX_F16, .stay = true } },
	{ HGEMM_TMA_RW, { 64, 64, 64, 4, 1, 2, CPTX_BF16, .group = 2 } },
};

START_TEST(tile_after_tile)
{
	const hgemm_case *c = &staying[_i / SCHEDULES];
	const struct schedule *when = &schedules[_i % SCHEDULES];

	if (!have_emulator()) {
		skip("this build has no emulator");
		return;
	}
	ck_assert_msg(hgemm_check(c->rung, &c->o, cptx_target_find("sm_90a"), NULL, &err), "%s", err.text);
	for (uint32_t sms = 1; sms <= 4; sms++)
		if (whole() || sms == 1 + (uint32_t)_i % 4)
			run_with("sm_90a", c, &(size){ c->o.bm * 3 + 8, c->o.bn + 8, sms % 2 ? 72 : 200, c->o.type }, when, sms);
}
END_TEST

/* What addresses say before anything runs: ldmatrix and stmatrix take as few turns as they can. */
START_TEST(no_conflicts)
{
	const cptx_frag c = { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16, .beside = 2 };

	for (uint32_t bk = 32; bk <= 64; bk *= 2) {
		hgemm_opt o = hgemm_default(HGEMM_TMA_R, bk, CPTX_BF16, cptx_target_find("sm_90a"));
		cptx_module *m = cptx_module_new(NULL);
		hgemm h;
		cptx_lines c_lines;
		hgemm_begin(&h, m, HGEMM_TMA_R, &o);
		hgemm_fragments(&h);
		ck_assert_msg(cptx_tile_lines(&h.t.c, &c, 0, 0, &c_lines, &err), "%s", err.text);
		const cptx_lines *a = &h.mma.a_lines, *b_lines = &h.mma.b_lines, *lines[] = { a, b_lines, &c_lines };
		for (int i = 0; i < 3; i++) {
			cptx_banks b = cptx_lines_banks(lines[i], 0);
			ck_assert_uint_eq(lines[i]->num, 4);
			ck_assert_uint_eq(b.phases, 4);
			ck_assert_uint_eq(b.conflicts, 0);
		}
		ck_assert(b_lines->trans && !a->trans && !c_lines.trans);
		cptx_module_destroy(m);
	}
}
END_TEST

/* Registers: those of the article's kernels on sm_12x (128, and 96 with TMA and tile K 32); whose last rung has one CTA a
 * multiprocessor, and so the registers of one.  Elsewhere what is there. */
static const struct limit {
	const char *target;
	enum hgemm_rung rung;
	uint32_t bk, regs;
} limits[] = {
	{ "sm_120a", HGEMM_BCF_DBF_RW, 32, 128 }, { "sm_120a", HGEMM_BCF_DBF_RW, 64, 128 },
	{ "sm_120a", HGEMM_K_STAGES, 32, 128 },   { "sm_120a", HGEMM_K_STAGES, 64, 128 },
	{ "sm_120a", HGEMM_TMA_R, 32, 96 },       { "sm_120a", HGEMM_TMA_R, 64, 128 },
	{ "sm_120a", HGEMM_TMA_RW, 32, 168 },     { "sm_120a", HGEMM_TMA_RW, 64, 168 },
	{ "sm_90a", HGEMM_BCF_DBF_RW, 64, 255 },  { "sm_90a", HGEMM_K_STAGES, 64, 255 },
	{ "sm_90a", HGEMM_TMA_R, 32, 168 },       { "sm_90a", HGEMM_TMA_R, 64, 168 },
	{ "sm_90a", HGEMM_TMA_RW, 32, 168 },      { "sm_90a", HGEMM_TMA_RW, 64, 168 },
	{ "sm_90", HGEMM_TMA_R, 64, 255 },        { "sm_90", HGEMM_TMA_RW, 64, 255 },
	{ "sm_80", HGEMM_BCF_DBF_RW, 64, 255 },   { "sm_80", HGEMM_K_STAGES, 64, 255 },
};

static unsigned number_before(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at ? (unsigned)strtoul(at, NULL, 10) : 9999;
}

START_TEST(assembled)
{
	const struct limit *l = &limits[_i];
	hgemm_opt o = hgemm_default(l->rung, l->bk, _i % 2 ? CPTX_F16 : CPTX_BF16, cptx_target_find(l->target));
	char message[4096];

	if (!is_tried((uint64_t)_i, 3)) /* the others with CPTX_WHOLE */
		return;
	if (!test_ptxas()) {
		skip("no ptxas");
		return;
	}
	cptx_module *m = cptx_module_new(NULL);
	hgemm_build(m, l->rung, &o);
	cptx_ptx *ptx = cptx_emit(m, l->target, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	int status = ptxas_run(test_ptxas(), l->target, cptx_ptx_text(ptx), cptx_ptx_size(ptx), message, sizeof message);
	ck_assert_msg(status == 0, "%s", message);
	ck_assert_msg(!number_before(message, " bytes stack frame") && !number_before(message, " bytes spill stores") &&
	                  !strstr(message, "C75"),
	              "%s %s %u: %s", hgemm_name(l->rung), l->target, l->bk, message);
	const char *used = strstr(message, "Used ");
	ck_assert_msg(used && number_before(used, " registers") <= l->regs, "%s %s %u, at most %u: %s", hgemm_name(l->rung),
	              l->target, l->bk, l->regs, message);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

static void refused(enum hgemm_rung rung, hgemm_opt o, const char *target, const char *words)
{
	cptx_error why = { 0 };

	ck_assert_msg(!hgemm_check(rung, &o, cptx_target_find(target), NULL, &why), "%s", words);
	ck_assert_msg(strstr(why.text, words) != NULL, "%s", why.text);
}

START_TEST(refusals)
{
	hgemm_opt good = { 128, 128, 64, 2, 2, 3, CPTX_BF16, .stmatrix = true }, o;

	ck_assert(hgemm_check(HGEMM_TMA_RW, &good, cptx_target_find("sm_90a"), NULL, &err));
	refused(HGEMM_TMA_RW, good, "sm_120a", "131072 bytes of shared memory; a CTA of sm_120a has 100352: take fewer stages");
	refused(HGEMM_TMA_R, good, "sm_80", "not available on sm_80; it needs sm_90");
	refused(HGEMM_K_STAGES, good, "sm_80", "with stmatrix is not available on sm_80");
	refused(HGEMM_BCF_DBF_RW, good, "sm_90a", "3 stages; double buffers are 2");
	o = good, o.bk = 48;
	refused(HGEMM_K_STAGES, o, "sm_90a", "tile K = 48; it is 32 or 64");
	o = good, o.bn = 96;
	refused(HGEMM_K_STAGES, o, "sm_90a", "each has a multiple of 64 columns");
	o = good, o.bm = 80;
	refused(HGEMM_K_STAGES, o, "sm_90a", "each has a multiple of 16 rows");
	o = good, o.type = CPTX_F32;
	refused(HGEMM_K_STAGES, o, "sm_90a", "it is bf16 or f16");
	o = good, o.bm = 96, o.warps_m = 3;
	refused(HGEMM_K_STAGES, o, "sm_90a", "6 warps that copy; their number is a power of two");
	o = good, o.consumer_regs = 200;
	refused(HGEMM_TMA_R, o, "sm_90a",
	        "200 registers for those who compute, of 256 threads that begin with 256 each; a multiple of 8");
	o = good, o.most_regs = 128, o.consumer_regs = 240; /* would wait for registers forever */
	refused(HGEMM_TMA_R, o, "sm_90a",
	        "of 256 threads that begin with 128 each; a multiple of 8 from there on, 32768 in all");
	o = good, o.group = 65537;
	refused(HGEMM_TMA_R, o, "sm_90a", "groups of 65537 rows of tiles; at most 65536");
	o = good, o.stages = 1;
	refused(HGEMM_TMA_R, o, "sm_90a", "1 stages; 2 to 16 are possible");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hgemm");
	TCase *t = tcase_create("hgemm");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, defaults, 0, HGEMM_RUNGS);
	tcase_add_loop_test(t, other_shapes, 0, (int)(sizeof shapes / sizeof *shapes));
	tcase_add_loop_test(t, tile_after_tile, 0, (int)(SCHEDULES * (sizeof staying / sizeof *staying)));
	tcase_add_test(t, no_conflicts);
	tcase_add_loop_test(t, assembled, 0, (int)(sizeof limits / sizeof *limits));
	tcase_add_test(t, refusals);
	suite_add_tcase(s, t);
	return test_main("hgemm", s);
}
