/* SPDX-License-Identifier: MIT */
/* What is a deadlock and what is not: polls, spins, locks, bounded waits; and limits that are exact. */
#include "trial.h"

enum { WORDS = 64 };

static const char look[] = ".func (.reg .b32 o) look(.reg .b64 a) { ld.relaxed.gpu.global.u32 o, [a]; ret; }\n";

static trial run(const char *body, uint32_t blocks, uint32_t threads, uint64_t seed)
{
	static uint32_t x[WORDS];
	trial t = {
		.target = "sm_90", .decls = look, .body = body, .data = x, .size = sizeof x, .grid = { blocks }, .block = { threads }
	};

	memset(x, 0, sizeof x);
	t.opt.seed = seed;
	trial_run(&t);
	return t;
}

static void fine(const char *body, uint32_t blocks, uint32_t threads)
{
	for (uint64_t seed = 0; seed < 2; seed++) {
		trial t = run(body, blocks, threads, seed);
		ck_assert_msg(t.ok, "%s", t.message);
	}
}

static void stuck(const char *body, uint32_t blocks, uint32_t threads)
{
	for (uint64_t seed = 0; seed < 2; seed++) {
		trial t = run(body, blocks, threads, seed);
		ck_assert(!t.ok);
		ck_assert_msg(t.found[0] == CPTX_FIND_DEADLOCK, "%s", t.message);
	}
}

#define RANK "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n"
/* Block 0 waits for a word that the others write when they have counted to 400000. */
#define AFTER_LONG(wait)                                                                                                    \
	RANK "@!%p1 bra work; poll: " wait " setp.eq.u32 %p2, %r2, 0; @%p2 bra poll; ret;\n"                                    \
		 "work: mov.u32 %r3, 0; count: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 400000; @%p3 bra count;\n"                \
		 "st.release.gpu.global.u32 [%rd0], 1;"

START_TEST(other_blocks_take_long)
{
	fine(AFTER_LONG("ld.acquire.gpu.global.u32 %r2, [%rd0]; nanosleep.u32 100;"), 2, 32);
	fine(AFTER_LONG("ld.acquire.gpu.global.u32 %r2, [%rd0];"), 2, 32);
	fine(AFTER_LONG("atom.acquire.gpu.global.exch.b32 %r2, [%rd0], 0;"), 2, 1);
}
END_TEST

START_TEST(blocks_that_are_not_there_yet)
{
	/* All wait for the last, many more than run at once. */
	fine("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 99; @%p1 st.release.gpu.global.u32 [%rd0], 1;"
	     "poll: ld.acquire.gpu.global.u32 %r2, [%rd0]; nanosleep.u32 100; setp.eq.u32 %p2, %r2, 0; @%p2 bra poll;",
	     100, 32);
}
END_TEST

START_TEST(waits_that_end_by_themselves)
{
	fine("mov.u32 %r3, 0; poll: ld.acquire.gpu.global.u32 %r2, [%rd0]; nanosleep.u32 100; add.u32 %r3, %r3, 1;"
	     "setp.lt.u32 %p2, %r3, 1500; @%p2 bra poll;",
	     2, 32);
	fine("mov.u64 %rd3, %clock64; poll: nanosleep.u32 100; mov.u64 %rd2, %clock64; sub.u64 %rd2, %rd2, %rd3;"
	     "setp.lt.u64 %p2, %rd2, 1000000000; @%p2 bra poll;",
	     1, 32);
	/* The clock is in no register when the warp is looked at. */
	fine("again: mov.u64 %rd2, %clock64; setp.gt.u64 %p1, %rd2, 12000; @%p1 bra out; ld.relaxed.gpu.global.u32 %r2, [%rd0];"
	     "mov.u64 %rd2, 0; setp.eq.u32 %p2, %r2, 77; @!%p2 bra again; out: ret;",
	     4, 32);
	/* The counter is in the frame of the caller. */
	fine("mov.u32 %r3, 0; again: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 50; call (%r2), look, (%rd0);"
	     "setp.eq.u32 %p2, %r2, 77; @%p2 bra out; @%p1 bra again; out: ret;",
	     4, 32);
	/* Lanes of one warp: one waits till another, which counts, comes to its store. */
	fine("setp.eq.u32 %p1, %r0, 7; mov.u32 %r3, 0; @%p1 bra work; poll: ld.relaxed.gpu.global.u32 %r2, [%rd0]; setp.eq.u32 "
	     "%p2, %r2, 0;"
	     "@%p2 bra poll; ret; work: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 5000; @%p3 bra work;"
	     "st.relaxed.gpu.global.u32 [%rd0], 1;",
	     1, 32);
}
END_TEST

START_TEST(words_that_nobody_writes)
{
	stuck("poll: ld.acquire.gpu.global.u32 %r2, [%rd0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra poll;", 2, 64);
	stuck("poll: ld.acquire.gpu.global.u32 %r2, [%rd0]; nanosleep.u32 100; setp.eq.u32 %p2, %r2, 0; @%p2 bra poll;", 3, 32);
	/* Each of two waits for the other. */
	stuck("mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd0, %rd1; xor.b32 %r2, %r1, 1;"
	      "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd0, %rd2; poll: ld.relaxed.gpu.global.u32 %r3, [%rd1];"
	      "setp.eq.u32 %p1, %r3, 0; @%p1 bra poll; st.relaxed.gpu.global.u32 [%rd2], 1;",
	      2, 1);
}
END_TEST

START_TEST(locks_that_nobody_opens)
{
	stuck("lock: atom.acquire.gpu.global.cas.b32 %r2, [%rd0], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra lock;", 2, 32);
	/* In shared memory, without a hint that others may go first. */
	trial t = run("", 1, 32, 0);
	t.decls = ".shared .align 4 .b32 flag;\n";
	t.body = "mov.u32 %r3, 0; st.shared.u32 [flag], %r3; bar.sync 0; poll: ld.volatile.shared.u32 %r2, [flag];"
			 "setp.eq.u32 %p1, %r2, 0; @%p1 bra poll;";
	t.opt.no_races = true;
	trial_run(&t);
	ck_assert_msg(t.found[0] == CPTX_FIND_DEADLOCK, "%s", t.message);
}
END_TEST

/* A kernel of so many instructions may execute so many, not one less. */
START_TEST(limits_are_exact)
{
	static const char body[] = "mov.u32 %r3, 0; count: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r0; @%p3 bra count;"
							   "bar.sync 0; st.global.u32 [%rd0], 1;";
	trial free_run = run(body, 1, 96, 1);

	ck_assert_msg(free_run.ok || free_run.found[0] == CPTX_FIND_RACE, "%s", free_run.message);
	for (uint32_t blocks = 1; blocks <= 50; blocks += 49) {
		static uint32_t x[WORDS];
		trial t = { .target = "sm_90", .body = body, .data = x, .size = sizeof x, .grid = { blocks }, .block = { 96 } };
		t.opt.no_races = true;
		t.opt.step_limit = free_run.counters.warp_instructions * blocks;
		trial_run(&t);
		ck_assert_msg(t.ok, "%s", t.message);
		ck_assert_uint_eq(t.counters.warp_instructions, t.opt.step_limit);
		t.opt.step_limit--;
		trial_run(&t);
		ck_assert(!t.ok && t.found[0] == CPTX_FIND_STEP_LIMIT);
		ck_assert_uint_eq(t.counters.warp_instructions, t.opt.step_limit);
	}
}
END_TEST

/* ---- what is said of those who wait ---- */

static void hangs(const char *body, uint32_t threads, uint64_t limit, const char *const *says)
{
	uint32_t x[4] = { 0 };
	trial t = { .target = "sm_90",
		        .decls = ".shared .align 8 .b64 gate;\n",
		        .body = body,
		        .block = { threads },
		        .data = x,
		        .size = sizeof x,
		        .opt = { .step_limit = limit } };

	trial_run(&t);
	ck_assert_msg(!t.ok, "%s", body);
	for (; *says; says++)
		ck_assert_msg(strstr(t.message, *says) != NULL, "not \"%s\", but\n%s", *says, t.message);
}
#define HANGS(body, threads, limit, ...) hangs(body, threads, limit, (const char *const[]){ __VA_ARGS__, NULL })

/* Who has not come, who has ended, what came and what would bring more: at a deadlock, and at the limit of steps. */
START_TEST(waits_are_explained)
{
	static const char *const init = "mov.u32 %r10, gate; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r10], ";
	char body[1024];

	HANGS("setp.ge.u32 %p1, %r0, 64; @%p1 ret; bar.sync 1, 96;", 96, 0, "warps 0 to 1, lanes 0xffffffff: bar.sync (",
	      "waits at barrier 1, where 64 of 96 threads are; ended are warps 2");
	HANGS("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1; @!%p1 bar.sync 2;", 96, 0, "warp 0, lanes 0xffffffff: bar.sync (",
	      "at barrier 1, where 32 of 96 threads are; not there are warps 1, 2",
	      "at barrier 2, where 64 of 96 threads are; not there are warps 0");
	snprintf(body, sizeof body,
	         "%s64; bar.sync 0; setp.lt.u32 %%p2, %%r0, 32; @%%p2 mbarrier.arrive.shared.b64 _, [%%r10];"
	         "wait: mbarrier.try_wait.parity.shared.b64 %%p3, [%%r10], 0; @!%%p3 bra wait;",
	         init);
	HANGS(body, 64, 0, "32 of 64 arrivals are pending; in this phase came 32 arrivals by mbarrier.arrive.shared.b64 (",
	      ") of warp 0", "what arrives at mbarriers: mbarrier.arrive.shared.b64 (", "executed 32 times");
	/* The second phase lacks bytes that the first one had. */
	snprintf(body, sizeof body,
	         "%s1; bar.sync 0; @!%%p1 ret; mov.u32 %%r5, 0; again: mbarrier.arrive.expect_tx.shared.b64 _, [%%r10], 64;"
	         "setp.eq.u32 %%p2, %%r5, 0; @%%p2 mbarrier.complete_tx.relaxed.cta.shared.b64 [%%r10], 64;"
	         "wait: mbarrier.try_wait.parity.shared.b64 %%p3, [%%r10], %%r5; @!%%p3 bra wait;"
	         "add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p4, %%r5, 2; @%%p4 bra again;",
	         init);
	HANGS(body, 32, 0,
	      "and 64 bytes: 64 are expected, 0 have come; in this phase came 64 bytes expected by mbarrier.arrive.expect_tx",
	      "in the phase before, and not in this one, came 64 bytes by mbarrier.complete_tx.relaxed.cta.shared.b64",
	      "what brings them bytes: mbarrier.complete_tx");
	HANGS("mov.u32 %r3, 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra end; count: add.u32 %r3, %r3, 1; bra count; end: bar.sync 0;",
	      64, 1000, "step-limit: the launch has executed 1000 instructions", "In this cluster:", " is executed",
	      "warp 1, lanes 0xffffffff: bar.sync (", "waits at barrier 0, where 32 of 64 threads are; not there are warps 0");
}
END_TEST

TRIAL_MAIN("emu_stall", other_blocks_take_long, blocks_that_are_not_there_yet, waits_that_end_by_themselves,
           words_that_nobody_writes, locks_that_nobody_opens, limits_are_exact, waits_are_explained)
