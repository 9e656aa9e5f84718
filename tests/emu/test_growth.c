/* SPDX-License-Identifier: MIT */
/* Work of the emulator that must not grow with the square of what is under way.  It is counted, not timed: calls of the race
 * detector are wrapped by the linker. */
#include "emu/race/race.h"

#include "trial.h"

static unsigned long told;

void __real_race_async_told(emu_cluster *c, emu_clock *to, const emu_clock *track, uint32_t group, uint32_t lanes);
void __real_race_async_done(emu_cluster *c, uint32_t id, emu_clock *to);
void __wrap_race_async_told(emu_cluster *c, emu_clock *to, const emu_clock *track, uint32_t group, uint32_t lanes);
void __wrap_race_async_done(emu_cluster *c, uint32_t id, emu_clock *to);

void __wrap_race_async_told(emu_cluster *c, emu_clock *to, const emu_clock *track, uint32_t group, uint32_t lanes)
{
	told++;
	__real_race_async_told(c, to, track, group, lanes);
}

void __wrap_race_async_done(emu_cluster *c, uint32_t id, emu_clock *to)
{
	told++;
	__real_race_async_done(c, id, to);
}

/* A thread that issues so many copies, each with an arrival behind it, before any has to be over; how often an mbarrier is
 * told of copies. */
static unsigned long arrivals(unsigned copies, enum cptx_emu_schedule schedule)
{
	char body[1000];
	uint32_t x[64] = { 0 };
	trial t = { .target = "sm_80",
		        .body = body,
		        .block = { 1 },
		        .data = x,
		        .size = sizeof x,
		        .opt = { .seed = copies, .schedule = schedule } };

	snprintf(body, sizeof body,
	         ".shared .align 16 .b8 s[%u]; .shared .align 8 .b64 bar; mov.u32 %%r1, s; mov.u32 %%r60, bar;"
	         "mbarrier.init.shared.b64 [%%r60], %u; mov.u32 %%r5, 0;"
	         "again: cp.async.ca.shared.global [%%r1], [%%rd0], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%%r60];"
	         "add.u32 %%r1, %%r1, 4; add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p2, %%r5, %u; @%%p2 bra again;"
	         "w: mbarrier.test_wait.parity.shared.b64 %%p1, [%%r60], 0; @!%%p1 bra w; ld.shared.u32 %%r9, [%%r1+-4];",
	         4 * copies, copies, copies);
	told = 0;
	trial_run(&t);
	ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
	return told;
}

START_TEST(arrivals_of_copies_in_any_order)
{
	const unsigned long few = arrivals(500, (enum cptx_emu_schedule)_i), many = arrivals(4000, (enum cptx_emu_schedule)_i);

	ck_assert_uint_ge(few, 500); /* each arrival tells of copies at least once */
	ck_assert_uint_le(many, 8 * few + few);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu");
	TCase *c = test_case(s, "growth");

	tcase_add_loop_test(c, arrivals_of_copies_in_any_order, 0, 3);
	return test_main("emu growth", s);
}
