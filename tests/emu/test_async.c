/* SPDX-License-Identifier: MIT */
/* cp.async and its groups, arrivals of copies, and other asynchronous work of single threads: done late, waited for or not.
 */
#include "trial.h"

static void run(trial *t, const char *target, unsigned threads, const char *body, void *data, size_t size)
{
	t->target = target;
	t->body = body;
	t->block[0] = threads;
	t->data = data;
	t->size = size;
	trial_run(t);
}

/* Under many schedules: the words behind the first `threads` become what `right` makes of those. */
static void fine(const char *target, unsigned threads, const char *body, uint32_t (*right)(const uint32_t *x, unsigned i))
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t x[256];
		trial t = { .opt = { .seed = seed, .schedule = seed % 3 } };
		for (unsigned i = 0; i < 256; i++)
			x[i] = i * 3 + 1;
		run(&t, target, threads, body, x, sizeof x);
		ck_assert_msg(t.ok, "%s\nseed %u: %s%s", body, (unsigned)seed, t.err.text, t.message);
		for (unsigned i = 0; i < threads; i++)
			ck_assert_msg(x[128 + i] == right(x, i), "%s\nseed %u: word %u is %u, not %u", body, (unsigned)seed, i,
			              x[128 + i], right(x, i));
	}
}

/* What nobody has waited for is a race, once it is done. */
static void found(const char *target, unsigned threads, const char *body, enum cptx_finding_code code, const char *text)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t x[256] = { 0 };
		trial t = { .opt = { .seed = seed, .schedule = seed % 3 } };
		run(&t, target, threads, body, x, sizeof x);
		ck_assert_msg(!t.ok && t.err.code == CPTX_E_FINDING &&
		                  (trial_found(&t, code) || (code == CPTX_FIND_ASYNC_WAIT && trial_found(&t, CPTX_FIND_RACE))),
		              "%s\nseed %u: %s%s", body, (unsigned)seed, t.err.text, t.message);
		ck_assert_msg(strstr(t.message, text) != NULL, "%s\nnot \"%s\" but\n%s", body, text, t.message);
	}
}

/* %rd1: the thread's word in front; %rd2: its word behind; %r1: its word of shared memory; %r2: that of the same lane of the
 * other warp. */
#define PLACES                                                                                                              \
	".shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;"       \
	"add.u64 %rd2, %rd1, 512; mov.u32 %r3, s; mad.lo.u32 %r1, %r0, 4, %r3; xor.b32 %r2, %r1, 128; mov.u32 %r60, bar;"       \
	"setp.eq.u32 %p15, %r0, 0;"
#define ANSWER(from) "ld.shared.u32 %r9, [" from "]; st.global.u32 [%rd2], %r9;"

static uint32_t own(const uint32_t *x, unsigned i) { return x[i]; }
static uint32_t other(const uint32_t *x, unsigned i) { return x[i ^ 32]; }

START_TEST(own_words)
{
	fine("sm_80", 64, PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.wait_all;" ANSWER("%r1"), own);
	fine("sm_80", 64,
	     PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group; cp.async.wait_group 0;" ANSWER("%r1"),
	     own);
	fine("sm_80", 64, PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.wait_all; bar.sync 0;" ANSWER("%r2"),
	     other);
}
END_TEST

static uint32_t of_16(const uint32_t *x, unsigned i) { return x[i % 4] + x[i % 4 + 4]; }

START_TEST(wide_copies)
{
	/* A thread copies 16 bytes, and 16 more in another group. */
	fine(
		"sm_80", 32,
		PLACES
		"@!%p15 bra out; cp.async.cg.shared.global [%r3], [%rd0], 16; cp.async.commit_group;"
		"cp.async.ca.shared.global [%r3+16], [%rd0+16], 16; cp.async.commit_group; cp.async.wait_group 1;"
		"ld.shared.u32 %r5, [%r3]; cp.async.wait_group 0; out: bar.sync 0; and.b32 %r4, %r0, 3; mad.lo.u32 %r4, %r4, 4, %r3;"
		"ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r4+16]; add.u32 %r9, %r5, %r6; st.global.u32 [%rd2], %r9;",
		of_16);
}
END_TEST

static uint32_t first_half(const uint32_t *x, unsigned i) { return i & 2 ? 0 : x[i]; }
static uint32_t odd_ones(const uint32_t *x, unsigned i) { return i & 1 ? x[i] : 0; }

START_TEST(zeros)
{
	/* 8 of 16 bytes; of a source that is not even there, none. */
	fine("sm_80", 32,
	     PLACES "and.b32 %r4, %r0, 3; setp.ne.u32 %p1, %r4, 0; @%p1 bra out; cp.async.cg.shared.global [%r1], [%rd1], 16, "
	            "8; cp.async.wait_all;"
	            "out: bar.sync 0;" ANSWER("%r1"),
	     first_half);
	fine("sm_80", 32,
	     PLACES "and.b32 %r4, %r0, 1; selp.u64 %rd3, 0, %rd1, 0; setp.eq.u32 %p1, %r4, 0; selp.u64 %rd3, 64, %rd1, %p1;"
	            "cp.async.ca.shared.global [%r1], [%rd3], 4, %p1; cp.async.wait_all;" ANSWER("%r1"),
	     odd_ones);
	fine("sm_80", 32,
	     PLACES "and.b32 %r4, %r0, 1; shl.b32 %r4, %r4, 2; cp.async.ca.shared.global [%r1], [%rd1], 4, %r4; "
	            "cp.async.wait_all;" ANSWER("%r1"),
	     odd_ones);
}
END_TEST

START_TEST(arrivals_of_copies)
{
	/* noinc: the mbarrier has counted them; without, it does so now. */
	fine("sm_80", 64,
	     PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 64; bar.sync 0; cp.async.ca.shared.global [%r1], [%rd1], 4;"
	            "cp.async.mbarrier.arrive.noinc.shared.b64 [%r60]; w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; "
	            "@!%p1 bra w;" ANSWER("%r2"),
	     other);
	fine("sm_80", 64,
	     PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 64; bar.sync 0; cp.async.ca.shared.global [%r1], [%rd1], 4;"
	            "cp.async.mbarrier.arrive.shared.b64 [%r60]; mbarrier.arrive.shared.b64 %rd5, [%r60];"
	            "w: mbarrier.test_wait.shared.b64 %p1, [%r60], %rd5; @!%p1 bra w;" ANSWER("%r2"),
	     other);
	/* Two arrivals under way, which may run in any order: the first mbarrier tells of the first copy. */
	fine("sm_80", 64,
	     PLACES ".shared .align 8 .b64 second; mov.u32 %r61, second; @%p15 mbarrier.init.shared.b64 [%r60], 64; @%p15 "
	            "mbarrier.init.shared.b64 [%r61], 64; bar.sync 0;"
	            "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	            "cp.async.mbarrier.arrive.noinc.shared.b64 [%r61];"
	            "w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; @!%p1 bra w;" ANSWER("%r2"),
	     other);
	/* The second mbarrier tells of both copies, whichever arrival ran first, */
	fine("sm_80", 64,
	     PLACES ".shared .align 8 .b64 second; mov.u32 %r61, second; @%p15 mbarrier.init.shared.b64 [%r60], 64; @%p15 "
	            "mbarrier.init.shared.b64 [%r61], 64; bar.sync 0;"
	            "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	            "cp.async.ca.shared.global [%r1+512], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r61];"
	            "w: mbarrier.test_wait.parity.shared.b64 %p1, [%r61], 0; @!%p1 bra w;" ANSWER("%r2"),
	     other);
	/* and groups are counted beside them. */
	fine("sm_80", 64,
	     PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 64; bar.sync 0;"
	            "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	            "cp.async.ca.shared.global [%r1+512], [%rd1], 4; cp.async.commit_group;"
	            "cp.async.ca.shared.global [%r1+1024], [%rd1], 4; cp.async.commit_group; cp.async.wait_group 1;" ANSWER(
					"%r1+512") "cp.async.wait_all;",
	     own);
	/* With no copy before it, too. */
	fine("sm_80", 64,
	     PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 64; ld.global.u32 %r4, [%rd1]; st.shared.u32 [%r1], %r4; bar.sync 0;"
	            "cp.async.mbarrier.arrive.noinc.shared.b64 [%r60]; w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; "
	            "@!%p1 bra w;" ANSWER("%r2"),
	     other);
}
END_TEST

/* ---- what is wrong ---- */

START_TEST(not_waited_for)
{
	found("sm_80", 32,
	      PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group;" ANSWER("%r1") "cp.async.wait_group 0;",
	      CPTX_FIND_ASYNC_WAIT, "cp.async");
	/* One group too few, */
	found("sm_80", 32,
	      PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group; cp.async.wait_group 1;" ANSWER(
			  "%r1") "cp.async.wait_all;",
	      CPTX_FIND_ASYNC_WAIT, "cp.async");
	/* one not closed, */
	found("sm_80", 32,
	      PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.wait_group 0;" ANSWER("%r1") "cp.async.wait_all;",
	      CPTX_FIND_ASYNC_WAIT, "cp.async");
	/* only by the thread that copies, */
	found("sm_80", 64, PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.wait_all;" ANSWER("%r2"),
	      CPTX_FIND_ASYNC_WAIT, "ld.shared.u32");
	/* by an arrival in front of the copy, of the same group, */
	found("sm_80", 64,
	      PLACES
	      "@%p15 mbarrier.init.shared.b64 [%r60], 64; bar.sync 0;"
	      "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	      "cp.async.ca.shared.global [%r1+512], [%rd1], 4;"
	      "w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; @!%p1 bra w;" ANSWER("%r2+512") "cp.async.wait_all;",
	      CPTX_FIND_ASYNC_WAIT, "ld.shared.u32");
	/* by an arrival of other lanes, */
	found("sm_80", 64,
	      PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 62; bar.sync 0; and.b32 %r5, %r0, 31; setp.ne.u32 %p2, %r5, 0;"
	             "cp.async.ca.shared.global [%r1], [%rd1], 4; @%p2 cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	             "w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; @!%p1 bra w;" ANSWER("%r2") "cp.async.wait_all;",
	      CPTX_FIND_ASYNC_WAIT, "ld.shared.u32");
	/* and the source written before it has been read. */
	found("sm_80", 32,
	      PLACES "cp.async.ca.shared.global [%r1], [%rd1], 4; st.global.u32 [%rd1], 7; cp.async.wait_all;" ANSWER("%r1"),
	      CPTX_FIND_ASYNC_WAIT, "st.global.u32");
}
END_TEST

/* However often the lane has arrived before: 4201 times. */
START_TEST(not_waited_for_late)
{
	found("sm_80", 64,
	      PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 268864; bar.sync 0; mov.u32 %r4, 0;"
	             "n: cp.async.mbarrier.arrive.noinc.shared.b64 [%r60]; add.u32 %r4, %r4, 1;"
	             "setp.lt.u32 %p2, %r4, 4200; @%p2 bra n;"
	             "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];"
	             "w: mbarrier.test_wait.parity.shared.b64 %p1, [%r60], 0; @!%p1 bra w;"
	             "cp.async.ca.shared.global [%r1+512], [%rd1], 4; bar.sync 0;" ANSWER("%r2+512") "cp.async.wait_all;",
	      CPTX_FIND_ASYNC_WAIT, "ld.shared.u32");
}
END_TEST

START_TEST(wrong_places)
{
	found("sm_80", 1, PLACES "cp.async.cg.shared.global [%r1+4], [%rd1], 16;", CPTX_FIND_MISALIGNED,
	      "must be a multiple of 16");
	found("sm_80", 1, PLACES "cp.async.ca.shared.global [%r1], [%rd1+2], 4;", CPTX_FIND_MISALIGNED,
	      "must be a multiple of 4");
	found("sm_80", 1, PLACES "cp.async.ca.shared.global [%r1], [%rd1+1024], 4;", CPTX_FIND_BOUNDS,
	      "behind the start of an allocation");
	found("sm_80", 1, PLACES "cp.async.ca.shared.global [%r1+4096], [%rd1], 4;", CPTX_FIND_BOUNDS, "shared address");
	found("sm_80", 1, PLACES "mov.u32 %r5, 5; cp.async.ca.shared.global [%r1], [%rd1], 4, %r5;", CPTX_FIND_OPERAND,
	      "at most 4, the size of the copy");
	found("sm_80", 1,
	      PLACES "mbarrier.init.shared.b64 [%r60], 1; mbarrier.arrive.shared.b64 %rd5, [%r60]; cp.async.ca.shared.global "
	             "[%r1], [%rd1], 4;"
	             "cp.async.mbarrier.arrive.noinc.shared.b64 [%r60+8];",
	      CPTX_FIND_BOUNDS, "");
	found("sm_80", 2,
	      PLACES "@%p15 mbarrier.init.shared.b64 [%r60], 1; bar.sync 0; cp.async.mbarrier.arrive.noinc.shared.b64 [%r60];",
	      CPTX_FIND_OVER_ARRIVAL, "2 arrivals, but phase 0 waits for only 1");
}
END_TEST

/* ---- st.async, red.async, st.bulk ---- */

/* Two CTAs; each sets up an mbarrier of one arrival; %r50: the rank, %r61 and %r62: the words and the mbarrier of the other
 * CTA. */
#define PAIR                                                                                                                \
	".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar; mov.u32 %r60, bar; mov.u32 %r3, s; mov.u32 %r50, "           \
	"%cluster_ctarank;"                                                                                                     \
	"mad.lo.u32 %r1, %r0, 4, %r3; xor.b32 %r51, %r50, 1; mapa.shared::cluster.u32 %r61, %r1, %r51;"                         \
	"mapa.shared::cluster.u32 %r62, %r60, %r51; setp.eq.u32 %p15, %r0, 0; st.shared.u32 [%r1], 1000;"                       \
	"@%p15 mbarrier.init.shared.b64 [%r60], 1; fence.mbarrier_init.release.cluster; barrier.cluster.arrive; "               \
	"barrier.cluster.wait;"                                                                                                 \
	"shl.b32 %r4, %r50, 5; add.u32 %r4, %r4, %r0; mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd1, %rd0;"
#define EXPECT(bytes) "@%p15 mbarrier.arrive.expect_tx.shared.b64 _, [%r60], " bytes ";"
#define PHASE_0 "w: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r60], 0; @!%p1 bra w;"

static void pair(const char *body, uint32_t (*right)(unsigned i))
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t x[64] = { 0 };
		trial t = { .grid = { 2 }, .cluster = { 2 }, .opt = { .seed = seed, .schedule = seed % 3 } };
		run(&t, "sm_100a", 32, body, x, sizeof x);
		ck_assert_msg(t.ok, "%s\n%s%s", body, t.err.text, t.message);
		for (unsigned i = 0; i < 64; i++)
			ck_assert_msg(x[i] == right(i), "%s\nword %u is %u, not %u", body, i, x[i], right(i));
	}
}

static uint32_t from_other(unsigned i) { return i ^ 32; }
static uint32_t more_from_other(unsigned i) { return 1000 + (i ^ 32); }
static uint32_t zero(unsigned i) { return (void)i, 0; }

START_TEST(stores_to_another)
{
	pair(PAIR EXPECT(
			 "128") "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r61], %r4, [%r62];" PHASE_0
	                "ld.shared.u32 %r9, [%r1]; st.global.u32 [%rd1], %r9; barrier.cluster.arrive; barrier.cluster.wait;",
	     from_other);
	pair(PAIR EXPECT(
			 "128") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r61], %r4, "
	                "[%r62];" PHASE_0
	                "ld.shared.u32 %r9, [%r1]; st.global.u32 [%rd1], %r9; barrier.cluster.arrive; barrier.cluster.wait;",
	     more_from_other);
	/* 16 bytes by one lane of four */
	pair(PAIR EXPECT(
			 "128") "and.b32 %r5, %r0, 3; setp.ne.u32 %p2, %r5, 0; add.u32 %r5, %r4, 1; add.u32 %r6, %r4, 2; add.u32 %r7, "
	                "%r4, 3;"
	                "@!%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r61], {%r4, %r5, %r6, %r7}, "
	                "[%r62];" PHASE_0
	                "ld.shared.u32 %r9, [%r1]; st.global.u32 [%rd1], %r9; barrier.cluster.arrive; barrier.cluster.wait;",
	     from_other);
}
END_TEST

START_TEST(bulk_zeros)
{
	pair(PAIR "bar.sync 0; mov.u64 %rd5, 128; cvt.u64.u32 %rd6, %r3; @%p15 st.bulk.weak.shared::cta [%rd6], %rd5, 0; "
	          "bar.sync 0; ld.shared.u32 %r9, [%r1];"
	          "st.global.u32 [%rd1], %r9;",
	     zero);
}
END_TEST

static uint32_t released(unsigned i) { return i == 0 ? 64 : i == 1 ? 7 : 0; }

START_TEST(released_to_all)
{
	pair("mov.u32 %r20, 1; mov.u32 %r21, 7; red.async.release.gpu.global.add.u32 [%rd0], %r20; setp.eq.u32 %p1, %r0, 5;"
	     "@%p1 st.async.release.gpu.global.b32 [%rd0+4], %r21;",
	     released);
}
END_TEST

START_TEST(wrong_stores)
{
	static const struct {
		const char *body;
		enum cptx_finding_code code;
		const char *text;
	} all[] = {
		{ PAIR EXPECT("128") "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r61], %r4, [%r60];",
		  CPTX_FIND_MBARRIER, "they must be in one" },
		{ PAIR EXPECT("256") "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r61], %r4, [%r62];" PHASE_0,
		  CPTX_FIND_TX_BYTES, "256 are expected, 128 have come" },
		{ PAIR "mov.u64 %rd5, 12; cvt.u64.u32 %rd6, %r3; st.bulk.weak.shared::cta [%rd6], %rd5, 0;", CPTX_FIND_OPERAND,
		  "a multiple of 8" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (uint64_t seed = 0; seed < 10; seed++) {
			uint32_t x[64] = { 0 };
			trial t = { .grid = { 2 }, .cluster = { 2 }, .opt = { .seed = seed, .schedule = seed % 3 } };
			run(&t, "sm_100a", 32, all[i].body, x, sizeof x);
			ck_assert_msg(!t.ok && trial_found(&t, all[i].code) && strstr(t.message, all[i].text), "%s\n%s", all[i].body,
			              t.message);
		}
	/* Read before they have come: */
	for (uint64_t seed = 0; seed < 10; seed++) {
		uint32_t x[64] = { 0 };
		trial t = { .grid = { 2 }, .cluster = { 2 }, .opt = { .seed = seed, .schedule = seed % 3 } };
		run(&t, "sm_100a", 32,
		    PAIR EXPECT(
				"128") "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r61], %r4, [%r62];"
		               "ld.shared.u32 %r9, [%r1]; st.global.u32 [%rd1], %r9; barrier.cluster.arrive; barrier.cluster.wait;",
		    x, sizeof x);
		ck_assert_msg(!t.ok && (trial_found(&t, CPTX_FIND_ASYNC_WAIT) || trial_found(&t, CPTX_FIND_RACE)), "%s", t.message);
	}
}
END_TEST

TRIAL_MAIN("emu_async", own_words, wide_copies, zeros, arrivals_of_copies, not_waited_for, not_waited_for_late, wrong_places,
           stores_to_another, bulk_zeros, released_to_all, wrong_stores)
