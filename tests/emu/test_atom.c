/* SPDX-License-Identifier: MIT */
/* Atomic operations in global and shared memory: every operation and type, and that no update is lost. */
#include "trial.h"

#include <math.h>

/* ---- one update of each operation, against C ---- */

typedef struct update {
	const char *insn; /* on [%rd1] or [%r1], with b in %r3, %rd3, %f3, %fd3 or %h3 */
	unsigned bytes;
	uint64_t old, b, new;
} update;

static const update updates[] = {
	{ "add.u32", 4, 7, 0xfffffffe, 5 },
	{ "add.s32", 4, 7, 0xfffffffe, 5 },
	{ "min.u32", 4, 7, 0xfffffffe, 7 },
	{ "max.u32", 4, 7, 0xfffffffe, 0xfffffffe },
	{ "min.s32", 4, 7, 0xfffffffe, 0xfffffffe },
	{ "max.s32", 4, 7, 0xfffffffe, 7 },
	{ "inc.u32", 4, 7, 9, 8 },
	{ "inc.u32", 4, 9, 9, 0 },
	{ "dec.u32", 4, 7, 9, 6 },
	{ "dec.u32", 4, 0, 9, 9 },
	{ "dec.u32", 4, 10, 9, 9 },
	{ "and.b32", 4, 0xff00ff00, 0x0ff00ff0, 0x0f000f00 },
	{ "or.b32", 4, 0xff00ff00, 0x0ff00ff0, 0xfff0fff0 },
	{ "xor.b32", 4, 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0 },
	{ "add.u64", 8, 0xffffffff, 1, UINT64_C(0x100000000) },
	{ "min.u64", 8, UINT64_C(0x100000000), UINT64_C(0xffffffffffffffff), UINT64_C(0x100000000) },
	{ "max.s64", 8, UINT64_C(0x100000000), UINT64_C(0xffffffffffffffff), UINT64_C(0x100000000) },
	{ "min.s64", 8, UINT64_C(0x100000000), UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff) },
	{ "and.b64", 8, UINT64_C(0xff00000000000001), UINT64_C(0x8000000000000003), UINT64_C(0x8000000000000001) },
	{ "add.f32", 4, 0x3f800000, 0x40000000, 0x40400000 },
	{ "add.f64", 8, UINT64_C(0x3ff0000000000000), UINT64_C(0x4000000000000000), UINT64_C(0x4008000000000000) },
	{ "add.noftz.f16x2", 4, 0x3c003c00, 0x40003c00, 0x42004000 },
	{ "add.noftz.f16", 2, 0x3c00, 0x4000, 0x4200 },
	{ "add.noftz.bf16x2", 4, 0x3f803f80, 0x40003f80, 0x40404000 },
	{ "add.noftz.bf16", 2, 0x3f80, 0x4000, 0x4040 },
};

static const char *register_of(const update *u) { return u->bytes == 8 ? "%rd3" : u->bytes == 4 ? "%r3" : "%h3"; }

/* As atom, whose result is the old value, and as red. */
static void try_update(const update *u, bool shared, bool red)
{
	uint64_t x[3] = { u->old, u->b, 77 };
	char body[800], insn[200];
	static const char *const load[] = { [2] = "ld.global.b16 %h3", [4] = "ld.global.b32 %r3", [8] = "ld.global.b64 %rd3" };
	const char *r = register_of(u), *at = shared ? "[%r1]" : "[%rd0]", *space = shared ? "shared" : "global";

	if (red)
		snprintf(insn, sizeof insn, "red.%s.%s %s, %s;", space, u->insn, at, r);
	else
		snprintf(insn, sizeof insn, "atom.%s.%s %s, %s, %s; st.global.b%u [%%rd0+16], %s;", space, u->insn, r, at, r,
		         u->bytes * 8, r);
	snprintf(body, sizeof body,
	         ".shared .align 8 .b64 s; mov.u32 %%r1, s; ld.global.b64 %%rd2, [%%rd0]; st.shared.b64 [%%r1], %%rd2; %s, "
	         "[%%rd0+8]; %s"
	         "%s",
	         load[u->bytes], insn, shared ? "ld.shared.b64 %rd2, [%r1]; st.global.b64 [%rd0], %rd2;" : "");
	RUN_OK("sm_90", 1, x, sizeof x, body);
	ck_assert_msg(x[0] == u->new, "%s: %llx", body, (unsigned long long)x[0]);
	ck_assert_msg(x[2] == (red ? 77 : u->old), "%s: %llx", body, (unsigned long long)x[2]);
}

START_TEST(operations)
{
	for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
		for (unsigned j = 0; j < 4; j++)
			try_update(&updates[i], j & 1, j & 2);
}
END_TEST

START_TEST(subnormals)
{
	/* Sums of f32 lose them in global memory only. */
	static const update global = { "add.f32", 4, 0x00000001, 0x00000002, 0 },
						shared = { "add.f32", 4, 0x00000001, 0x00000002, 3 };

	try_update(&global, false, false);
	try_update(&shared, true, false);
}
END_TEST

START_TEST(exchanges)
{
	uint64_t x[8] = { 1, 2, 3, 4, 5, 6, 0, 0 };

	RUN_OK("sm_90", 1, x, sizeof x,
	       "atom.global.exch.b32 %r1, [%rd0], 11; mov.b64 %rd2, {%r1, 0}; st.global.b64 [%rd0+8], %rd2;"
	       "atom.global.cas.b64 %rd3, [%rd0+16], 3, 33; atom.global.cas.b64 %rd4, [%rd0+24], 3, 44; st.global.b64 "
	       "[%rd0+32], %rd3;"
	       "st.global.b64 [%rd0+40], %rd4; mov.b16 %h1, 0; mov.b16 %h2, 9; atom.global.cas.b16 %h3, [%rd0+50], %h1, %h2;");
	ck_assert_uint_eq(x[0], 11);
	ck_assert_uint_eq(x[1], 1);
	ck_assert_uint_eq(x[2], 33);
	ck_assert_uint_eq(x[3], 4);
	ck_assert_uint_eq(x[4], 3);
	ck_assert_uint_eq(x[5], 4);
	ck_assert_uint_eq(x[6], 9 << 16);
}
END_TEST

START_TEST(wide)
{
	uint64_t x[8] = { 1, 2, 10, 20, 30, 40 };
	float f[8] = { 1, 2, 3, 4, 10, 20, 30, 40 };

	RUN_OK("sm_90", 1, x, sizeof x,
	       "ld.global.v2.b64 {%rd1, %rd2}, [%rd0]; mov.b128 %q1, {%rd1, %rd2}; ld.global.v2.b64 {%rd3, %rd4}, [%rd0+16]; "
	       "mov.b128 %q2, {%rd3, %rd4};"
	       "atom.global.cas.b128 %q3, [%rd0], %q1, %q2; atom.global.exch.b128 %q4, [%rd0+16], %q1; atom.global.cas.b128 "
	       "%q5, [%rd0+32], %q1, %q2;"
	       "mov.b128 {%rd5, %rd6}, %q5; st.global.v2.b64 [%rd0+48], {%rd5, %rd6};");
	ck_assert(x[0] == 10 && x[1] == 20 && x[2] == 1 && x[3] == 2 && x[4] == 30 && x[5] == 40 && x[6] == 30 && x[7] == 40);
	RUN_OK("sm_90", 1, f, sizeof f,
	       "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+16]; atom.global.add.v4.f32 {%f5, _, %f7, %f8}, [%rd0], {%f1, %f2, "
	       "%f3, %f4};"
	       "st.global.v4.f32 [%rd0+16], {%f5, %f5, %f7, %f8};");
	ck_assert(f[0] == 11 && f[1] == 22 && f[2] == 33 && f[3] == 44 && f[4] == 1 && f[6] == 3 && f[7] == 4);
}
END_TEST

START_TEST(halves)
{
	uint16_t h[16] = { 0x3c00,           0x4000, 0x4200, 0x4400, 0, 0, 0, 0x3c00,
		               /* and */ 0x4000, 0x3c00, 0x7e00, 0x3c00, 0, 0, 0, 0xbc00 };

	RUN_OK("sm_90", 1, h, sizeof h,
	       "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0+16]; mov.b32 {%h1, %h2}, %r1; mov.b32 {%h3, %h4}, %r2; mov.b32 "
	       "{%h5, %h6}, %r3;"
	       "mov.b32 {%h7, %h8}, %r4; red.global.max.noftz.v8.f16 [%rd0], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};"
	       "red.global.add.noftz.v2.f16x2 [%rd0], {%r1, %r1};");
	ck_assert_uint_eq(h[0], 0x4400); /* max(1, 2) + 2 */
	ck_assert_uint_eq(h[1], 0x4200); /* max(2, 1) + 1 */
	ck_assert_uint_eq(h[2], 0x4500); /* max(3, NaN) + 2 */
	ck_assert_uint_eq(h[3], 0x4500); /* max(4, 1) + 1 */
	ck_assert_uint_eq(h[7], 0x3c00);
}
END_TEST

/* ---- many threads ---- */

START_TEST(nothing_is_lost)
{
	/* 4 CTAs of 96 threads, each 3 times, in global memory; the old values are all different. */
	for (uint32_t threads = 1; threads <= 3; threads++)
		for (uint64_t seed = 0; seed < 5; seed++) {
			uint32_t x[1 + 1152] = { 0 };
			trial t = { .target = "sm_90",
				        .grid = { 4 },
				        .block = { 96 },
				        .data = x,
				        .size = sizeof x,
				        .opt = { .seed = seed, .threads = threads } };
			t.body = "mov.u32 %r5, 0; loop: atom.global.add.u32 %r1, [%rd0], 1; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, "
					 "%rd1, %rd0;"
					 "st.global.u32 [%rd1+4], 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra loop;";
			trial_run(&t);
			ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
			ck_assert_uint_eq(x[0], 1152);
			for (unsigned i = 1; i <= 1152; i++)
				ck_assert_uint_eq(x[i], 1);
		}
}
END_TEST

START_TEST(locks)
{
	/* A spin lock between the CTAs, taken by thread 0 of each, and between warps of one CTA. */
	static const char body[] =
		"setp.ne.u32 %p1, %r0, 0; @%p1 exit;"
		"spin: atom.acquire.gpu.global.cas.b32 %r1, [%rd0], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra spin;"
		"ld.global.u32 %r2, [%rd0+4]; add.u32 %r2, %r2, 1; st.global.u32 [%rd0+4], %r2; fence.acq_rel.gpu;"
		"atom.release.gpu.global.exch.b32 %r3, [%rd0], 0;";

	for (uint64_t seed = 0; seed < 10; seed++) {
		uint32_t x[2] = { 0 };
		trial t = { .target = "sm_90", .grid = { 40 }, .data = x, .size = sizeof x, .body = body, .opt = { .seed = seed } };
		trial_run(&t);
		ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
		ck_assert_uint_eq(x[0], 0);
		ck_assert_uint_eq(x[1], 40);
	}
}
END_TEST

START_TEST(a_flag_between_clusters)
{
	/* The last CTA of a grid sums what the others have left: threadfence reduction. */
	static const char body[] =
		".shared .u32 last; mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd1, %rd0; setp.ne.u32 %p1, "
		"%r0, 0;"
		"@%p1 bra meet; add.u32 %r6, %r5, 1; st.global.u32 [%rd1+8], %r6; membar.gl; atom.global.inc.u32 %r2, [%rd0], 23;"
		"st.shared.u32 [last], %r2; meet: bar.sync 0; ld.shared.u32 %r2, [last]; setp.ne.u32 %p2, %r2, 23; @%p2 exit; "
		"membar.gl;"
		"setp.ge.u32 %p3, %r0, 24; @%p3 exit; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r3, "
		"[%rd1+8];"
		"red.global.add.u32 [%rd0+4], %r3;";

	for (uint64_t seed = 0; seed < 10; seed++) {
		uint32_t x[2 + 24] = { 0 };
		trial t = { .target = "sm_75",
			        .grid = { 24 },
			        .block = { 64 },
			        .data = x,
			        .size = sizeof x,
			        .body = body,
			        .opt = { .seed = seed } };
		trial_run(&t);
		ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
		ck_assert_uint_eq(x[0], 0);
		ck_assert_uint_eq(x[1], 300);
	}
}
END_TEST

/* ---- what is wrong ---- */

static void found(const char *body, enum cptx_finding_code code, const char *text)
{
	uint32_t x[4] = { 0 };
	trial t = { .target = "sm_90", .data = x, .size = sizeof x, .body = body };

	trial_run(&t);
	ck_assert_msg(!t.ok && t.found[0] == code && strstr(t.message, text), "%s\n%s%s", body, t.err.text, t.message);
}

START_TEST(wrong_places)
{
	found("atom.global.add.u32 %r1, [%rd0+16], 1;", CPTX_FIND_BOUNDS,
	      "16 bytes behind the start of an allocation of 16 bytes");
	found("atom.global.add.u32 %r1, [%rd0+2], 1;", CPTX_FIND_MISALIGNED, "must be a multiple of 4");
	found("atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+8], {%f4, %f4, %f4, %f4};", CPTX_FIND_UNDEFINED,
	      "what memory is combined with");
	found("{ .local .u32 x; mov.u64 %rd1, x; cvta.local.u64 %rd1, %rd1; atom.add.u32 %r1, [%rd1], 1; }", CPTX_FIND_OPERAND,
	      "for global and shared memory");
	found("{ .shared .u32 x; atom.shared.add.u32 %r1, [x], 1; st.global.u32 [%rd0], %r1; }", CPTX_FIND_UNDEFINED,
	      "what is stored");
}
END_TEST

TRIAL_MAIN("emu_atom", operations, subnormals, exchanges, wide, halves, nothing_is_lost, locks, a_flag_between_clusters,
           wrong_places)
