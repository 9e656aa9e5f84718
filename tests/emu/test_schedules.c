/* SPDX-License-Identifier: MIT */
/* Lanes that part, and a warp that goes last: CPTX_EMU_PARTED and HELD. */
#include "trial.h"

#include <stdio.h>

enum { WORDS = 64, LANES = 32, SEEDS = 16, WARPS = 4 };

/* Runs a body on zeros, which must be clean; the buffer is x. */
static void run(const char *body, uint32_t blocks, uint32_t threads, enum cptx_emu_schedule how, uint64_t seed,
                uint32_t x[WORDS])
{
	trial t = { .target = "sm_90", .body = body, .data = x, .grid = { blocks }, .block = { threads } };

	memset(x, 0, WORDS * sizeof *x);
	t.size = WORDS * sizeof *x;
	t.opt.seed = seed;
	t.opt.schedule = how;
	t.opt.step_limit = 5000000;
	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "seed %llu: %s", (unsigned long long)seed, t.message);
}

/* Each lane stores its number + 1 at %rd1, and reads what the next lane has stored, at %rd2, into words 32 to 63. */
#define STORES(begin, store)                                                                                                \
	begin "mul.wide.u32 %rd3, %r0, 4; add.u64 %rd4, %rd1, %rd3; add.u32 %r1, %r0, 1; and.b32 %r2, %r1, 31;\n"               \
		  "mul.wide.u32 %rd5, %r2, 4; add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd0, %rd3;\n" store
#define LOADS(load) load "st.global.u32 [%rd7+128], %r3;"
#define IN_GLOBAL "mov.u64 %rd1, %rd0;"
#define IN_SHARED                                                                                                           \
	".shared .b32 s[32]; mov.u64 %rd1, s; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd4, %rd1, %rd3; st.volatile.shared.u32 "     \
	"[%rd4], 0; bar.warp.sync 0xffffffff;"

/* With how many seeds a lane sees nothing of its neighbor. */
static unsigned differ(const char *body, enum cptx_emu_schedule how)
{
	unsigned n = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t x[WORDS];
		bool same = true;
		run(body, 1, LANES, how, seed, x);
		for (uint32_t i = 0; i < LANES; i++) {
			ck_assert(!x[LANES + i] || x[LANES + i] == (i + 1) % LANES + 1);
			same &= x[LANES + i] != 0;
		}
		n += !same;
	}
	return n;
}

START_TEST(lanes_part)
{
	static const char *const parted[] = {
		STORES(IN_GLOBAL, "st.volatile.global.u32 [%rd4], %r1;") LOADS("ld.volatile.global.u32 %r3, [%rd6];"),
		STORES(IN_GLOBAL, "atom.relaxed.gpu.global.exch.b32 %r4, [%rd4], %r1;")
			LOADS("ld.relaxed.gpu.global.u32 %r3, [%rd6];"),
		STORES(IN_SHARED, "st.volatile.shared.u32 [%rd4], %r1;") LOADS("ld.volatile.shared.u32 %r3, [%rd6];"),
	};

	for (size_t i = 0; i < sizeof parted / sizeof *parted; i++) {
		ck_assert_uint_eq(differ(parted[i], CPTX_EMU_RANDOM), 0);
		ck_assert_uint_eq(differ(parted[i], CPTX_EMU_HELD), 0);
		ck_assert_uint_gt(differ(parted[i], CPTX_EMU_PARTED), 0);
	}
}
END_TEST

START_TEST(what_brings_lanes_together)
{
	static const char *const together[] = { "bar.warp.sync 0xffffffff;", "bar.sync 0;", "barrier.sync 0;",
		                                    "shfl.sync.idx.b32 %r5, %r1, 0, 31, 0xffffffff;",
		                                    "vote.sync.ballot.b32 %r5, 1, 0xffffffff;" };
	char body[2048];

	for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
		snprintf(body, sizeof body, "%s%s%s", STORES(IN_SHARED, "st.volatile.shared.u32 [%rd4], %r1;"), together[i],
		         LOADS("ld.volatile.shared.u32 %r3, [%rd6];"));
		ck_assert_msg(!differ(body, CPTX_EMU_PARTED), "%s", together[i]);
	}
}
END_TEST

/* Each warp of a block takes a ticket, and notes it: 16 words a block. */
static const char tickets[] = "shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, %ctaid.x;\n"
							  "mul.wide.u32 %rd1, %r3, 64; add.u64 %rd2, %rd0, %rd1;\n"
							  "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3; setp.ne.u32 %p1, %r2, 0; @%p1 ret;\n"
							  "atom.relaxed.gpu.global.add.u32 %r4, [%rd2], 1; st.global.u32 [%rd4+4], %r4;";

START_TEST(one_warp_goes_last)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t x[WORDS];
		run(tickets, 3, WARPS * LANES, CPTX_EMU_HELD, seed, x);
		for (uint32_t block = 0; block < 3; block++) {
			ck_assert_uint_eq(x[16 * block], WARPS);
			ck_assert_uint_eq(x[16 * block + 1 + (seed + block) % WARPS], WARPS - 1);
		}
	}
}
END_TEST

/* Nothing tells a poll that counts from work: the warp that it waits for must go on in the end. */
START_TEST(polled_for)
{
	for (unsigned how = CPTX_EMU_PARTED; how <= CPTX_EMU_HELD; how++) {
		uint32_t x[WORDS];
		run("mov.u32 %r2, 0; setp.lt.u32 %p1, %r0, 32; @%p1 bra set;\n"
		    "poll: ld.volatile.global.u32 %r1, [%rd0]; add.u32 %r2, %r2, 1; setp.eq.u32 %p2, %r1, 0; @%p2 bra poll; ret;\n"
		    "set: st.volatile.global.u32 [%rd0], 1;",
		    1, WARPS * LANES, (enum cptx_emu_schedule)how, 0, x);
		ck_assert_uint_eq(x[0], 1);
	}
}
END_TEST

TRIAL_MAIN("schedules", lanes_part, what_brings_lanes_together, one_warp_goes_last, polled_for)
