/* SPDX-License-Identifier: MIT */
/* Every rung on the emulator: shapes with edges, types, orders of asynchronous work; and what ptxas says of it. */
#include "../ask.h"
#include "../test.h"
#include "../verify/assemble.h"
#include "rungs.h"

static const struct shape {
	uint64_t mnk[3];
} shapes[] = {
	{ { 256, 64, 128 } }, { { 128, 128, 64 } }, { { 512, 64, 64 } },  { { 1, 8, 64 } },      { { 127, 72, 192 } },
	{ { 129, 40, 320 } }, { { 300, 136, 64 } }, { { 257, 8, 448 } },  { { 100, 200, 128 } }, { { 640, 104, 192 } },
	{ { 64, 64, 8 } },    { { 130, 24, 72 } },  { { 255, 88, 200 } }, { { 3, 16, 1032 } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* False with a test failure unless the rung says which rule K breaks. */
static bool supported(const ladder_rung *rung, const ladder_opt *o, const uint64_t mnk[3])
{
	cptx_error err = { 0 };
	uint64_t span = cptx_swizzle_get(rung->swizzle)->span / 2u;

	if (ladder_check(rung, o, mnk[0], mnk[1], mnk[2], &err))
		return true;
	ck_assert_msg(rung->whole && mnk[2] % span && strstr(err.text, "it is a multiple of"), "%s: %s", rung->name, err.text);
	return false;
}

/* sms 2: one pair of CTAs at a time. */
static void run(const ladder_rung *rung, const ladder_opt *o, const uint64_t mnk[3], const char *target, uint64_t seed,
                enum cptx_emu_schedule schedule, uint32_t sms)
{
	cptx_error err = { 0 };
	gemm_report r = { 0 };
	const gemm_problem p = { .m = mnk[0], .n = mnk[1], .k = mnk[2], .seed = seed };
	char text[300];
	cptx_device *dev = cptx_emu_open(
		target, &(cptx_emu_opt){ .seed = seed, .schedule = schedule, .threads = 1, .sms = sms, .pedantic = true }, &err);

	ck_assert_msg(dev != NULL, "%s", err.text);
	bool ok = ladder_run(dev, rung, o, &p, &r, &err);
	gemm_report_text(&r, text, sizeof text);
	ck_assert_msg(ok && !r.wrong && r.elements == mnk[0] * mnk[1] && !cptx_emu_finding_at(dev, 0),
	              "%s %ux%ux%u %s to %s, %u x %u x %u on %s, seed %u, schedule %d: %s %s", rung->name, o->m, o->n, o->k,
	              cptx_type_name(o->in), cptx_type_name(o->out), (unsigned)mnk[0], (unsigned)mnk[1], (unsigned)mnk[2],
	              target, (unsigned)seed, schedule, err.text, text);
	cptx_device_close(dev);
}

START_TEST(all_shapes)
{
	static const enum cptx_type types[][2] = {
		{ CPTX_BF16, CPTX_BF16 }, { CPTX_F16, CPTX_F16 }, { CPTX_BF16, CPTX_F32 }, { CPTX_F16, CPTX_F32 }
	};
	const ladder_rung *rung = rungs[_i];
	unsigned ran = 0, seeds = rung_seeds(1);

	for (unsigned i = 0; i < SHAPES; i++)
		for (unsigned seed = 0; seed < seeds; seed++) {
			unsigned t = (i + seed) % 4;
			ladder_opt o = rung_small(rung, types[t][0], types[t][1]);
			if (!supported(rung, &o, shapes[i].mnk))
				break;
			run(rung, &o, shapes[i].mnk, (i + seed) % 2 ? "sm_103a" : "sm_100a", seed * SHAPES + i,
			    (enum cptx_emu_schedule)((i + seed) % 3), 2 + i % 2 * 2);
			ran += !seed;
		}
	ck_assert_msg(ran >= 10, "%s: only %u shapes", rung->name, ran);
}
END_TEST

/* One problem in which all stages and accumulators are used again, in many orders. */
START_TEST(many_orders)
{
	const uint64_t mnk[] = { 300, 72, 576 };
	const ladder_rung *rung = rungs[_i];
	ladder_opt o = rung_small(rung, CPTX_BF16, CPTX_BF16);

	for (unsigned seed = 0; seed < rung_seeds(2); seed++)
		run(rung, &o, mnk, "sm_100a", seed, (enum cptx_emu_schedule)(seed % 3), 2);
}
END_TEST

/* The tile that a rung takes by itself, and others. */
START_TEST(tiles)
{
	const uint64_t mnk[] = { 200, 264, 192 };
	static const uint32_t n[] = { 64, 128, 192, 256 }, k[] = { 64, 128, 192 };
	const ladder_rung *rung = rungs[_i];

	for (unsigned i = 0; i < 4; i++) {
		ladder_opt o = rung->tile;
		o.in = o.out = i % 2 ? CPTX_F16 : CPTX_BF16;
		if (i) {
			o.n = n[i], o.k = k[i % 3];
			o.stages = o.k == 192 ? 2 : 3;
		}
		cptx_error err = { 0 };
		if (ladder_check(rung, &o, mnk[0], mnk[1], mnk[2], &err))
			run(rung, &o, mnk, "sm_100a", i, CPTX_EMU_RANDOM, 0);
		else
			ck_assert_msg(strstr(err.text, "bytes of shared memory") != NULL, "%s", err.text);
	}
}
END_TEST

START_TEST(broken_rules)
{
	static const struct {
		const char *says;
		ladder_opt o;
		uint64_t mnk[3];
		unsigned rung;
	} wrong[] = {
		{ "A and B of .f32; they are .bf16 or .f16", { CPTX_F32, CPTX_F32, 128, 64, 64, 2, 0 }, { 8, 8, 8 }, 0 },
		{ "D of .f16; it is .bf16, as A and B are, or .f32", { CPTX_BF16, CPTX_F16, 128, 64, 64, 2, 0 }, { 8, 8, 8 }, 0 },
		{ "a tile of 64 rows; it has 128", { CPTX_BF16, CPTX_BF16, 64, 64, 64, 2, 0 }, { 8, 8, 8 }, 0 },
		{ "a tile of 128 rows; it has 256", { CPTX_BF16, CPTX_BF16, 128, 64, 64, 2, 0 }, { 8, 8, 8 }, 6 },
		{ "a tile of 264 columns; it has 16 to 256", { CPTX_BF16, CPTX_BF16, 128, 264, 64, 2, 0 }, { 8, 8, 8 }, 0 },
		{ "a tile of 48 columns; it has 32 to 256", { CPTX_BF16, CPTX_BF16, 256, 48, 64, 2, 0 }, { 8, 8, 8 }, 6 },
		{ "a tile of 96 along K; it is a multiple of 64", { CPTX_BF16, CPTX_BF16, 128, 64, 96, 2, 0 }, { 8, 8, 8 }, 2 },
		{ "1 stages; there are 2 to 32", { CPTX_BF16, CPTX_BF16, 128, 64, 64, 1, 0 }, { 8, 8, 8 }, 4 },
		{ "bytes of shared memory; a CTA has", { CPTX_BF16, CPTX_BF16, 128, 256, 64, 5, 0 }, { 8, 8, 8 }, 4 },
		{ "K 100; it is a multiple of 8", { CPTX_BF16, CPTX_BF16, 128, 64, 64, 2, 0 }, { 8, 8, 100 }, 0 },
		{ "N 12; with D of .bf16 it is a multiple of 8", { CPTX_BF16, CPTX_BF16, 128, 64, 64, 2, 0 }, { 8, 12, 8 }, 0 },
		{ "K 72; it is a multiple of 64, for the 3-D tensor map",
		  { CPTX_BF16, CPTX_BF16, 128, 64, 64, 2, 0 },
		  { 8, 8, 72 },
		  3 },
		{ "M 0, N 8, K 8; each is from 1", { CPTX_BF16, CPTX_BF16, 128, 64, 64, 2, 0 }, { 0, 8, 8 }, 0 },
		{ "a tile of 32 columns; it is a multiple of 64, which a warp stores at once",
		  { CPTX_BF16, CPTX_BF16, 256, 32, 64, 2, 0 },
		  { 8, 8, 8 },
		  8 },
	};

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		cptx_error err = { 0 };
		const uint64_t *mnk = wrong[i].mnk;
		ck_assert(!ladder_check(rungs[wrong[i].rung], &wrong[i].o, mnk[0], mnk[1], mnk[2], &err));
		ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "%s\nnot: %s", err.text, wrong[i].says);
	}
}
END_TEST

/* Its picture has every phase, and its data are right; where it is off there is no trace of it. */
START_TEST(timelines)
{
	static const char *const phases[] = {
		"wait for room", "load", "wait for data", "multiply", "wait for sums", "epilogue"
	};
	const ladder_rung *rung = _i ? &rung_v7 : &rung_v6;
	ladder_opt o = rung_small(rung, CPTX_BF16, CPTX_F32), none = o;
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };
	gemm_report r;

	ladder_build(m, rung, &none);
	cptx_ptx *ptx = cptx_emit(m, "sm_100a", NULL, &err);
	ck_assert_msg(ptx && !strstr(cptx_ptx_text(ptx), "globaltimer") && !strstr(cptx_ptx_text(ptx), "timeline"), "%s",
	              err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	o.timeline = 100;
	cptx_device *dev = cptx_device_open("emu:sm_100a", &err);
	ck_assert_msg(ladder_run(dev, rung, &o, &(gemm_problem){ .m = 300, .n = 72, .k = 192 }, &r, &err) && !r.wrong &&
	                  r.timeline,
	              "%s", err.text);
	for (unsigned i = 0; i < sizeof phases / sizeof *phases; i++)
		ck_assert_msg(strstr(r.timeline, phases[i]) != NULL, "no %s in\n%s", phases[i], r.timeline);
	free(r.timeline);
	cptx_device_close(dev);
	ck_assert(!ladder_check(&rung_v5, &o, 64, 64, 64, &err));
}
END_TEST

START_TEST(other_targets)
{
	static const struct {
		const char *device, *says;
	} all[] = { { "emu:sm_90a", "sm_90a has no tcgen05 and no tensor memory; sm_100a and sm_103a have. Its tensor cores are "
		                        "used by wgmma" },
		        { "emu:sm_120a", "Its tensor cores are used by mma.sync" } };

	for (unsigned i = 0; i < 2; i++)
		for (unsigned j = 0; j < RUNGS; j++) {
			cptx_error err = { 0 };
			gemm_report r;
			ladder_opt o = rung_small(rungs[j], CPTX_BF16, CPTX_BF16);
			cptx_device *dev = cptx_device_open(all[i].device, &err);
			ck_assert(!ladder_run(dev, rungs[j], &o, &(gemm_problem){ .m = 64, .n = 64, .k = 64 }, &r, &err));
			ck_assert_msg(strstr(err.text, all[i].says) != NULL, "%s", err.text);
			cptx_device_close(dev);
		}
}
END_TEST

START_TEST(assembled)
{
	static const char *const targets[] = { "sm_100a", "sm_103a" };
	const ladder_rung *rung = rungs[_i];
	assembly jobs[4] = { { 0 } };
	cptx_ptx *ptx[4];
	cptx_error err = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		cptx_module *m = cptx_module_new(NULL);
		ladder_opt o = rung->tile;
		o.in = CPTX_BF16, o.out = i / 2 ? CPTX_F32 : CPTX_BF16;
		ladder_build(m, rung, &o);
		ptx[i] = cptx_emit(m, targets[i % 2], NULL, &err);
		ck_assert_msg(ptx[i] != NULL, "%s: %s", rung->name, err.text);
		jobs[i] = (assembly){ .target = targets[i % 2], .ptx = cptx_ptx_text(ptx[i]) };
		cptx_module_destroy(m);
	}
	if (test_ptxas())
		assemble(jobs, 4);
	else
		skip("ptxas, to judge %s", rung->name);
	for (unsigned i = 0; i < 4 && test_ptxas(); i++) {
		unsigned kernels = 0, spills = assembly_spills(jobs[i].said, &kernels);
		ck_assert_msg(!jobs[i].status && kernels == 1 && !spills, "%s: %s", rung->name, jobs[i].said);
		ck_assert_msg(!strstr(jobs[i].said, "warning") && !strstr(jobs[i].said, "C7"), "%s: %s", rung->name, jobs[i].said);
	}
	assemble_free(jobs, 4);
	for (unsigned i = 0; i < 4; i++)
		cptx_ptx_destroy(ptx[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ladder");
	TCase *rules = test_case(s, "rules");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(test_case(s, "shapes"), all_shapes, 0, RUNGS);
	tcase_add_loop_test(test_case(s, "orders"), many_orders, 0, RUNGS);
	tcase_add_loop_test(test_case(s, "tiles"), tiles, 0, RUNGS);
	tcase_add_test(rules, broken_rules);
	tcase_add_test(rules, other_targets);
	tcase_add_loop_test(rules, timelines, 0, 2);
	tcase_add_loop_test(test_case(s, "ptxas"), assembled, 0, RUNGS);
	return test_main("ladder", s);
}
