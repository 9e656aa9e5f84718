/* SPDX-License-Identifier: MIT */
/* The machine itself: lanes that part and meet, calls, barriers, memories, what it finds. */
#include "trial.h"

START_TEST(loads_and_stores)
{
	uint32_t x[64];

	for (unsigned i = 0; i < 64; i++)
		x[i] = i;
	RUN_OK("sm_75", 64, x, sizeof x,
	       "shl.b32 %r1, %r0, 2; mov.b64 %rd1, {%r1, 0}; add.u64 %rd1, %rd0, %rd1; ld.global.u32 %r2, [%rd1];"
	       "add.u32 %r2, %r2, 5; st.global.u32 [%rd1], %r2;");
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(x[i], i + 5);
}
END_TEST

START_TEST(out_of_bounds)
{
	uint32_t x[32] = { 0 };
	trial t = { .target = "sm_75", .data = x, .size = sizeof x, .body = "st.global.u32 [%rd0+128], 1;" };

	trial_run(&t);
	ck_assert(!t.ok && t.err.code == CPTX_E_FINDING && t.found[0] == CPTX_FIND_BOUNDS);
	ck_assert_ptr_nonnull(strstr(t.message, "128 bytes behind the start of an allocation of 128 bytes"));
	t = (trial){
		.target = "sm_75", .data = x, .size = sizeof x, .body = ".shared .b32 tile[16]; st.shared.u32 [tile+72], 1;"
	};
	trial_run(&t);
	ck_assert_ptr_nonnull(strstr(t.message, "72 bytes behind the start of tile of 64 bytes"));
}
END_TEST

/* A warp's row of .b128, by both kinds of load and of store. */
START_TEST(rows_of_128_bits)
{
	uint64_t x[3][32][2];

	for (unsigned i = 0; i < 64; i++)
		x[0][i / 2][i % 2] = UINT64_C(0x0123456789abcdef) * (i + 1);
	memset(x[1], 0, 2 * sizeof x[1]);
	RUN_OK("sm_75", 32, x, sizeof x,
	       "shl.b32 %r1, %r0, 4; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd0, %rd1; ld.global.b128 %q1, [%rd1];"
	       "mov.b128 %q2, %q1; st.global.b128 [%rd1+512], %q2; ld.global.v2.b64 {%rd2, %rd3}, [%rd1];"
	       "mov.b128 %q3, {%rd3, %rd2}; mov.b128 {%rd4, %rd5}, %q3; st.global.v2.b64 [%rd1+1024], {%rd4, %rd5};");
	for (unsigned i = 0; i < 32; i++)
		for (unsigned half = 0; half < 2; half++) {
			ck_assert_uint_eq(x[1][i][half], x[0][i][half]);
			ck_assert_uint_eq(x[2][i][half], x[0][i][!half]);
		}
}
END_TEST

START_TEST(constants_in_vectors)
{
	uint64_t x[5] = { 0 };

	RUN_OK("sm_90", 1, x, sizeof x,
	       "mov.b128 %q1, {0x3ae369b54f7c28f4, 0xdf720e04cae0f13f}; st.global.b128 [%rd0], %q1;"
	       "st.global.v2.b64 [%rd0+16], {-2, 0x123456789a}; mov.b64 %rd1, {5, -1}; st.global.b64 [%rd0+32], %rd1;");
	ck_assert_uint_eq(x[0], 0x3ae369b54f7c28f4);
	ck_assert_uint_eq(x[1], 0xdf720e04cae0f13f);
	ck_assert_uint_eq(x[2], UINT64_C(0) - 2);
	ck_assert_uint_eq(x[3], 0x123456789a);
	ck_assert_uint_eq(x[4], 0xffffffff00000005);
}
END_TEST

TRIAL_MAIN("emu_core", loads_and_stores, out_of_bounds, rows_of_128_bits, constants_in_vectors)
