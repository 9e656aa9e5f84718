/* SPDX-License-Identifier: MIT */
/* Races: between warps, lanes of a warp, strong accesses; what both sides are called; that order by barriers is seen. */
#include "trial.h"

/* Threads write their word of s, and read the one 32 further on. */
#define WRITE "shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;"
#define READ(at) "ld.shared.u32 %r3, [%r1+" at "];"

static void run(trial *t, const char *body, unsigned block)
{
	static uint32_t x[256];

	*t = (trial){ .target = "sm_90a", .decls = ".shared .align 16 .b8 s[1024];", .data = x, .size = sizeof x, .body = body };
	t->block[0] = block;
	trial_run(t);
}

static void races(const char *body, unsigned block, const char *message)
{
	trial t;

	run(&t, body, block);
	ck_assert_msg(!t.ok && t.found[0] == CPTX_FIND_RACE, "%s", t.message);
	ck_assert_msg(strstr(t.message, message), "no \"%s\" in: %s", message, t.message);
}

static void is_fine(const char *body, unsigned block)
{
	trial t;

	run(&t, body, block);
	ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
}

START_TEST(between_warps)
{
	static const char with[] = WRITE "bar.sync 0;" READ("128"), without[] = WRITE READ("128");

	is_fine(with, 64);
	races(without, 64, "bytes behind the start of s (address");
	races(without, 64, "nothing orders the two");
}
END_TEST

START_TEST(between_lanes)
{
	races(WRITE READ("4"), 32, "st.shared.u32");
	is_fine(WRITE "bar.sync 0;" READ("4"), 32);
	is_fine(WRITE READ("0"), 32);
}
END_TEST

START_TEST(two_writers_of_one_instruction)
{
	races("st.shared.u32 [s], %r0;", 2,
	      "which was written by st.shared.u32 (ptx:16) of thread (0, 0, 0) of block (0, 0, 0)");
	is_fine("st.shared.u32 [s], 7;", 64);
	is_fine("mov.u32 %r2, s; add.u32 %r1, %r0, %r2; st.shared.u8 [%r1], %r0;", 64);
}
END_TEST

START_TEST(write_behind_a_read)
{
	races(WRITE "bar.sync 0;" READ("128") "st.shared.u32 [%r1], 9;", 64, "of block (0, 0, 0); nothing orders the two");
	is_fine(WRITE "bar.sync 0;" READ("128") "bar.sync 0; st.shared.u32 [%r1], 9;", 64);
}
END_TEST

START_TEST(strong_accesses)
{
	is_fine("st.relaxed.cta.shared.u32 [s], %r0; ld.relaxed.cta.shared.u32 %r1, [s];", 64);
	races("st.relaxed.cta.shared.u32 [s], %r0; ld.shared.u32 %r1, [s];", 64, "it reads 4 bytes of shared memory");
}
END_TEST

TRIAL_MAIN("emu_race", between_warps, between_lanes, two_writers_of_one_instruction, write_behind_a_read, strong_accesses)
