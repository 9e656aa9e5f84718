/* SPDX-License-Identifier: MIT */
/* Runs: the same seed gives the same run whatever the threads, another seed another; counters; limits; memory that runs
 * short. */
#include "trial.h"

#include "count.h"

enum { BLOCKS = 24, BLOCK = 96, WORDS = 4096 };

/* Tickets in the order that warps come, sums of all blocks in shared memory, a race between blocks and one in each. */
static const char busy[] =
	".version 8.8\n.target sm_90a\n.address_size 64\n"
	".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>; .shared .align 4 .b8 "
	"s[512];\n"
	"ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 96, %r0;\n"
	"mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd0, %rd1;\n"
	"atom.relaxed.gpu.global.add.u32 %r3, [%rd0+16000], 1; st.global.u32 [%rd1], %r3;\n"
	"mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 4, %r4; st.shared.u32 [%r5], %r3;\n"
	"ld.shared.u32 %r6, [s]; bar.sync 0; atom.shared.add.u32 %r7, [s+4], 1;\n"
	"setp.eq.u32 %p1, %r0, 5; @%p1 st.global.u32 [%rd0+15000], %r1;\nret;\n}\n";

static void run_busy(trial *t, uint32_t *x, uint32_t threads, uint64_t seed)
{
	memset(x, 0, WORDS * sizeof *x);
	*t = (trial){ .target = "sm_90a",
		          .text = busy,
		          .grid = { BLOCKS },
		          .block = { BLOCK },
		          .opt = { .threads = threads, .seed = seed },
		          .data = x,
		          .size = WORDS * sizeof *x };
	trial_run(t);
}

START_TEST(threads_change_nothing)
{
	static uint32_t x[WORDS], y[WORDS];
	static const uint32_t threads[] = { 2, 5, 16 };
	trial a, b;

	for (uint64_t seed = 1; seed < 6; seed++) {
		run_busy(&a, x, 1, seed);
		ck_assert_msg(a.found[0] == CPTX_FIND_RACE && strstr(a.message, "ld.shared") &&
		                  strstr(a.message, "nothing orders these blocks"),
		              "%s%s", a.err.text, a.message);
		for (unsigned i = 0; i < 3; i++) {
			run_busy(&b, y, threads[i], seed);
			ck_assert_msg(!strcmp(a.message, b.message), "%u threads found\n%snot\n%s", threads[i], b.message, a.message);
			ck_assert(!memcmp(&a.counters, &b.counters, sizeof a.counters));
			ck_assert(!memcmp(x, y, sizeof x));
		}
	}
}
END_TEST

/* Blocks that read and write one another's words without any order, and go where these lead them; some of the stores change
 * nothing. */
static const char wild[] =
	".version 8.8\n.target sm_90a\n.address_size 64\n"
	".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n"
	"ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 60;\n"
	"mad.lo.u32 %r3, %r1, 96, %r0;\n"
	"AGAIN: and.b32 %r4, %r3, 511; mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd0, %rd1;\n"
	"ld.global.u32 %r5, [%rd1]; st.global.u16 [%rd1+2048], %r5; mad.lo.u32 %r3, %r5, 1664525, %r3;\n"
	"add.u32 %r3, %r3, 1013904223; shr.u32 %r6, %r3, 9; setp.gt.u32 %p1, %r6, 4000000; @%p1 bra SKIP;\n"
	"st.global.u32 [%rd1], %r6; atom.global.add.u32 %r7, [%rd0+8192], 1;\n"
	"SKIP: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra AGAIN;\nret;\n}\n";

START_TEST(races_change_nothing_either)
{
	static uint32_t x[WORDS], y[WORDS];
	static const uint32_t threads[] = { 2, 3, 16 };
	trial a = { .target = "sm_90a", .text = wild, .grid = { BLOCKS }, .block = { BLOCK }, .size = sizeof x }, b;

	a.opt.seed = 7;
	b = a;
	a.data = x;
	a.opt.threads = 1;
	trial_run(&a);
	ck_assert_msg(a.found[0] == CPTX_FIND_RACE, "%s%s", a.err.text, a.message);
	for (unsigned i = 0; i < 3; i++) {
		memset(y, 0, sizeof y);
		trial c = b;
		c.data = y;
		c.opt.threads = threads[i];
		trial_run(&c);
		ck_assert_msg(!strcmp(a.message, c.message), "%u threads found\n%snot\n%s", threads[i], c.message, a.message);
		ck_assert(!memcmp(&a.counters, &c.counters, sizeof a.counters));
		ck_assert(!memcmp(x, y, sizeof x));
	}
}
END_TEST

START_TEST(seeds_change_the_order)
{
	static uint32_t x[WORDS], y[WORDS];
	trial t;
	unsigned other = 0;

	run_busy(&t, x, 1, 1);
	for (uint64_t seed = 2; seed < 8; seed++) {
		run_busy(&t, y, 1, seed);
		other += memcmp(x, y, sizeof x) != 0;
	}
	ck_assert_uint_ge(other, 5);
}
END_TEST

START_TEST(endless_loops_end)
{
	static uint32_t x[64];
	trial t = { .target = "sm_80",
		        .body = "bra here; here: bra here;",
		        .data = x,
		        .size = sizeof x,
		        .grid = { 3 },
		        .opt = { .step_limit = 50000 } };

	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_STEP_LIMIT && !t.found[1]);
	ck_assert_msg(strstr(t.message, "50000 instructions of warps, its limit"), "%s", t.message);
	ck_assert_uint_eq(t.counters.warp_instructions, 50000);
}
END_TEST

/* 400 copies of 32 KiB are few instructions, but much work. */
START_TEST(bytes_of_copies_count)
{
	static uint32_t x[8192];
	trial t = { .target = "sm_90",
		        .body = ".shared .align 128 .b8 s[32768]; .reg .pred %more; mov.u32 %r1, 0;\n"
		                "again: cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 32768;\n"
		                "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
		                "add.u32 %r1, %r1, 1; setp.lt.u32 %more, %r1, 400; @%more bra again;",
		        .data = x,
		        .size = sizeof x,
		        .block = { 1 },
		        .opt = { .step_limit = 10000, .no_undefined = true } };

	trial more = t;

	trial_run(&t);
	ck_assert_msg(!t.ok && t.found[0] == CPTX_FIND_STEP_LIMIT && !t.found[1], "%s", t.err.text);
	more.opt.step_limit = 50000;
	trial_run(&more);
	ck_assert_msg(more.ok, "%s", more.err.text);
}
END_TEST

/* What finished clusters did counts too. */
START_TEST(the_limit_is_that_of_the_launch)
{
	static uint32_t x[64];
	trial t = { .target = "sm_80",
		        .body = "add.u32 %r1, %r0, 1;",
		        .data = x,
		        .size = sizeof x,
		        .grid = { 2000 },
		        .opt = { .step_limit = 1000 } };

	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_STEP_LIMIT);
	t.opt.step_limit = 100000;
	t.err = (cptx_error){ 0 };
	trial_run(&t);
	ck_assert_msg(t.ok, "%s", t.err.text);
}
END_TEST

static cptx_emu_counters count(const char *decls, const char *body, uint32_t grid)
{
	static uint32_t x[4096];
	trial t = { .target = "sm_90a", .decls = decls, .body = body, .data = x, .size = sizeof x, .grid = { grid } };

	trial_run(&t);
	ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
	return t.counters;
}

START_TEST(traffic_is_counted)
{
	static const char s[] = ".shared .align 16 .b8 s[8192];";
	cptx_emu_counters n = count(s, "mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], %r0;", 1);

	ck_assert(n.shared_written == 128 && n.shared_read == 0 && n.shared_wavefronts == 1 && n.bank_conflicts == 0);
	n = count(s, "mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 16, %r1; st.shared.u32 [%r2], %r0;", 2); /* 4 lanes to a bank */
	ck_assert(n.shared_written == 256 && n.shared_wavefronts == 8 && n.bank_conflicts == 6 && n.ctas == 2);
	n = count(s, "mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 16, %r1; st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};", 1);
	ck_assert(n.shared_written == 512 && n.shared_wavefronts == 4 && n.bank_conflicts == 0);
	n = count(s, "st.shared.u32 [s], 1; bar.warp.sync -1; ld.shared.u32 %r1, [s];", 1); /* one word for all */
	ck_assert(n.shared_read == 128 && n.shared_wavefronts == 2 && n.bank_conflicts == 0);
	n = count(s, "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r1, [%rd1];", 3);
	ck_assert(n.global_read == 384 && n.global_written == 0 && n.global_sectors == 12);
	n = count(s, "mul.wide.u32 %rd1, %r0, 64; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r1, [%rd1];", 1);
	ck_assert(n.global_read == 128 && n.global_sectors == 32);

	static uint32_t x[32];
	trial t = { .target = "sm_90a",
		        .body = "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r1, [%rd1];",
		        .data = x,
		        .size = sizeof x,
		        .opt = { .size = CPTX_OPT_SIZE(cptx_emu_opt), .no_traffic = true } };
	trial_run(&t);
	ck_assert(t.ok && t.counters.global_read == 0 && t.counters.global_sectors == 0 && t.counters.warp_instructions > 0);
}
END_TEST

/* Every launch fails that has an error, though it was found before or more than are kept; one with warnings does not. */
START_TEST(warnings_and_errors)
{
	static const char text[] =
		".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 wrong)\n{\n"
		".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>; .shared .align 16 .b8 s[16];\n"
		"ld.param.u64 %rd0, [p]; ld.param.u32 %r1, [wrong]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;\n"
		"setp.eq.u32 %p1, %r1, 0; @%p1 bra fine; st.global.u32 [%rd0+16], %r0;\n"
		"fine: @!%p0 bra out; st.shared.v4.u32 [s], {1, 2, 3, 4}; fence.proxy.async;\n"
		"cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 16; cp.async.bulk.commit_group;\n"
		"out: ret;\n}\n";
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90a", &(cptx_emu_opt){ .most_findings = 1 }, &err);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	uint64_t at = cptx_mem_alloc(dev, 32, &err);
	const cptx_emu_finding *f;

	ck_assert_msg(!err.code, "%s", err.text);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t wrong = i % 2, x[4] = { 0 };
		err = (cptx_error){ 0 };
		bool ok =
			cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 64 }, CPTX_ARGS(at, wrong) }, NULL, &err);
		ck_assert_msg(ok == !wrong && (ok || strstr(err.text, ": race: ")), "%u: %s", i, err.text);
		err = (cptx_error){ 0 };
		ck_assert(cptx_mem_read(dev, x, at, sizeof x, &err) && x[0] == 1 && x[3] == 4);
	}
	f = cptx_emu_finding_at(dev, 0);
	ck_assert(f && f->code == CPTX_FIND_EXIT && f->rank == CPTX_FIND_WARNING && f->count == 4);
	ck_assert(strstr(f->text, ": warning: stores-at-exit: ") &&
	          strstr(f->text, "in which cp.async.bulk.global.shared::cta"));
	ck_assert(strstr(f->text, "PTX manual, cp.async.bulk.wait_group: "));
	f = cptx_emu_finding_at(dev, 1);
	ck_assert(f && f->code == CPTX_FIND_RACE && f->rank == CPTX_FIND_ERROR && !cptx_emu_finding_at(dev, 2));
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(a_profile_by_instruction)
{
	static const char text[] =
		".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>;\n.shared .align 4 .b8 "
		"s[4096];\n"
		"mov.u32 %r0, %tid.x;\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 128, %r1;\nst.shared.u32 [%r2], %r0;\nret;\n}\n";
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	cptx_emu_profile x;

	ck_assert(!cptx_emu_get_profile(dev, 0, &x));
	for (int i = 0; i < 2; i++)
		ck_assert(cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 32 } }, NULL, &err));
	ck_assert(cptx_emu_get_profile(dev, 3, &x));
	ck_assert(!strcmp(x.kernel, "k") && !strcmp(x.instruction, "st.shared.u32") && x.at.line == 11);
	ck_assert(x.executed == 64 && x.shared_wavefronts == 64 && x.bank_conflicts == 62 && x.global_sectors == 0);
	ck_assert(cptx_emu_get_profile(dev, 4, &x));
	ck_assert(!strcmp(x.instruction, "ret") && x.bank_conflicts == 0);
	ck_assert(!cptx_emu_get_profile(dev, 5, &x));
	cptx_emu_clear(dev);
	ck_assert(!cptx_emu_get_profile(dev, 0, &x));
	ck_assert(cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 32 } }, NULL, &err));
	ck_assert(cptx_emu_get_profile(dev, 3, &x) && x.executed == 32);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

/* Whichever request of a run fails, it ends with an error that says so, or, where only a thread of the host is missing,
 * well. */
START_TEST(memory_runs_short)
{
	static uint32_t x[WORDS];
	unsigned failed = 0;
	trial t;

	if (!LIBRARY_IS_STATIC) {
		skip("the library is shared: its allocations cannot be made to fail");
		return;
	}
	run_busy(&t, x, 1, 3);
	for (unsigned long n = 1, more = 1; more; n += 1 + n / 40) {
		count_fail_at(n);
		run_busy(&t, x, 1, 3);
		more = count_requests() >= n;
		count_fail_at(0);
		if (!more)
			break;
		ck_assert_msg(!t.ok, "request %lu", n);
		ck_assert_msg(t.err.code == CPTX_E_MEMORY || t.found[0] || strstr(t.err.text, "memory"), "request %lu: %d %s", n,
		              t.err.code, t.err.text);
		failed += t.err.code == CPTX_E_MEMORY;
	}
	ck_assert_uint_gt(failed, 20);
}
END_TEST

TRIAL_MAIN("emu_runs", threads_change_nothing, races_change_nothing_either, seeds_change_the_order, endless_loops_end,
           bytes_of_copies_count, the_limit_is_that_of_the_launch, traffic_is_counted, a_profile_by_instruction,
           memory_runs_short, warnings_and_errors)
