/* SPDX-License-Identifier: MIT */
/* Lanes of a warp together: votes, matches, reductions, shuffles, elections, and the masks that they name. */
#include "trial.h"

/* The address of the lane's word of the buffer, in %rd1; the word in %r1. */
#define MY_WORD "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; ld.global.u32 %r1, [%rd1];"
#define ANSWER(r) "st.global.u32 [%rd1], " r ";"

/* Runs a body on 32 words in x that the function makes, and compares with what the other says. */
typedef uint32_t (*word_fn)(const uint32_t *x, unsigned lane);

static void try_words(const char *target, const char *version, const char *body, uint32_t (*first)(unsigned), word_fn right)
{
	uint32_t x[32], was[32];
	char all[2000];

	for (unsigned i = 0; i < 32; i++)
		x[i] = was[i] = first(i);
	snprintf(all, sizeof all, "%s%s%s", MY_WORD, body, ANSWER("%r9"));
	for (uint64_t seed = 0; seed < 3; seed++) {
		trial t = { .target = target, .version = version, .body = all, .data = x, .size = sizeof x, .opt.seed = seed };
		memcpy(x, was, sizeof x);
		trial_run(&t);
		ck_assert_msg(t.ok, "%s\n%s%s", body, t.err.text, t.message);
		for (unsigned i = 0; i < 32; i++)
			ck_assert_msg(x[i] == right(was, i), "%s\nlane %u: 0x%x, not 0x%x", body, i, x[i], right(was, i));
	}
}

static uint32_t lane_times_7(unsigned i) { return i * 7 + 3; }
static uint32_t mixed(unsigned i) { return (i * UINT32_C(2654435761)) ^ (i << 29); }
static uint32_t a_third(unsigned i) { return i / 11; }
static uint32_t same(unsigned i) { return (void)i, 5; }

/* ---- votes ---- */

static uint32_t odd_lanes(const uint32_t *x, unsigned l)
{
	uint32_t d = 0;

	(void)l;
	for (unsigned i = 0; i < 32; i++)
		d |= (x[i] & 1) << i;
	return d;
}
static uint32_t one(const uint32_t *x, unsigned l) { return (void)x, (void)l, 1; }
static uint32_t zero(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0; }
static uint32_t low_half_ballot(const uint32_t *x, unsigned l) { return l < 16 ? odd_lanes(x, l) & 0xffff : x[l]; }
static uint32_t half_ballots(const uint32_t *x, unsigned l) { return odd_lanes(x, l) & (l < 16 ? 0xffff : 0xffff0000); }

#define ODD "and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;"

START_TEST(votes)
{
	try_words("sm_75", NULL, ODD "vote.sync.ballot.b32 %r9, %p1, -1;", mixed, odd_lanes);
	try_words("sm_75", NULL, ODD "vote.sync.any.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", mixed, one);
	try_words("sm_75", NULL, ODD "vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", mixed, zero);
	try_words("sm_75", NULL, ODD "vote.sync.all.pred %p2, !%p1, -1; selp.u32 %r9, 1, 0, %p2;", same, zero);
	try_words("sm_75", NULL, ODD "vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", same, one);
	try_words("sm_75", NULL, ODD "vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;", mixed, zero);
	try_words("sm_75", NULL, "mov.u32 %r9, %r1; setp.lt.u32 %p3, %r0, 16;" ODD "@%p3 vote.sync.ballot.b32 %r9, %p1, 0xffff;",
	          mixed, low_half_ballot);
	/* Lanes of one instruction may name masks that have nothing in common. */
	try_words("sm_75", NULL,
	          "setp.lt.u32 %p3, %r0, 16; selp.u32 %r3, 0xffff, 0xffff0000, %p3;" ODD "vote.sync.ballot.b32 %r9, %p1, %r3;",
	          mixed, half_ballots);
}
END_TEST

START_TEST(votes_of_old)
{
	try_words("sm_75", "6.3", ODD "vote.ballot.b32 %r9, %p1;", mixed, odd_lanes);
	try_words("sm_75", "6.3", ODD "vote.any.pred %p2, %p1; selp.u32 %r9, 1, 0, %p2;", mixed, one);
	try_words("sm_75", "6.3", "mov.u32 %r9, %r1; setp.lt.u32 %p3, %r0, 16;" ODD "@%p3 vote.ballot.b32 %r9, %p1;", mixed,
	          low_half_ballot);
}
END_TEST

static uint32_t quad_mask(const uint32_t *x, unsigned l) { return (void)x, l % 4 ? ~UINT32_C(0x11111111) : 0x11111111; }

START_TEST(active_lanes)
{
	try_words("sm_75", NULL,
	          "and.b32 %r2, %r0, 3; setp.ne.u32 %p1, %r2, 0; @%p1 bra other; activemask.b32 %r9; bra.uni done;"
	          "other: activemask.b32 %r9; done:",
	          same, quad_mask);
}
END_TEST

/* ---- matches ---- */

static uint32_t thirds(const uint32_t *x, unsigned l)
{
	uint32_t d = 0;

	for (unsigned i = 0; i < 32; i++)
		d |= (uint32_t)(x[i] == x[l]) << i;
	return d;
}
static uint32_t everyone(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0xffffffff; }

START_TEST(matches)
{
	try_words("sm_75", NULL, "match.any.sync.b32 %r9, %r1, -1;", a_third, thirds);
	try_words("sm_75", NULL, "mov.b64 %rd2, {0, %r1}; match.any.sync.b64 %r9, %rd2, -1;", a_third, thirds);
	try_words("sm_75", NULL, "match.all.sync.b32 %r9|%p1, %r1, -1;", same, everyone);
	try_words("sm_75", NULL, "match.all.sync.b32 %r8|%p1, %r1, -1; selp.u32 %r9, 1, 0, %p1;", same, one);
	try_words("sm_75", NULL, "match.all.sync.b32 %r9|%p1, %r1, -1;", a_third, zero);
	try_words("sm_75", NULL, "match.all.sync.b32 _|%p1, %r1, -1; selp.u32 %r9, 1, 0, %p1;", a_third, zero);
}
END_TEST

/* ---- redux, elect ---- */

#define FOLD(name, type, start, expr)                                                                                       \
	static uint32_t name(const uint32_t *x, unsigned l)                                                                     \
	{                                                                                                                       \
		type d = (type)(start);                                                                                             \
		(void)l;                                                                                                            \
		for (unsigned i = 0; i < 32; i++) {                                                                                 \
			type v = (type)x[i];                                                                                            \
			d = (type)(expr);                                                                                               \
		}                                                                                                                   \
		return (uint32_t)d;                                                                                                 \
	}
FOLD(sum, uint32_t, 0, d + v)
FOLD(least, uint32_t, 0xffffffff, v < d ? v : d)
FOLD(most, uint32_t, 0, v > d ? v : d)
FOLD(signed_least, int32_t, 0x7fffffff, v < d ? v : d)
FOLD(signed_most, int32_t, 0x80000000, v > d ? v : d)
FOLD(conjunction, uint32_t, 0xffffffff, d &v)
FOLD(disjunction, uint32_t, 0, d | v)
FOLD(parity, uint32_t, 0, d ^ v)

static uint32_t floats(unsigned i) /* -15.5 to 15.5, with a NaN */
{
	float f = (float)i - 15.5f;
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return i == 7 ? 0x7fc00001 : bits;
}
static uint32_t bits_15_5(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0x41780000; }
static uint32_t bits_minus_15_5(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0xc1780000; }
static uint32_t bits_half(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0x3f000000; }
static uint32_t bits_nan(const uint32_t *x, unsigned l) { return (void)x, (void)l, 0x7fffffff; }

START_TEST(reductions)
{
	try_words("sm_80", NULL, "redux.sync.add.u32 %r9, %r1, -1;", mixed, sum);
	try_words("sm_80", NULL, "redux.sync.add.s32 %r9, %r1, -1;", mixed, sum);
	try_words("sm_80", NULL, "redux.sync.min.u32 %r9, %r1, -1;", mixed, least);
	try_words("sm_80", NULL, "redux.sync.max.u32 %r9, %r1, -1;", mixed, most);
	try_words("sm_80", NULL, "redux.sync.min.s32 %r9, %r1, -1;", mixed, signed_least);
	try_words("sm_80", NULL, "redux.sync.max.s32 %r9, %r1, -1;", mixed, signed_most);
	try_words("sm_80", NULL, "redux.sync.and.b32 %r9, %r1, -1;", lane_times_7, conjunction);
	try_words("sm_80", NULL, "redux.sync.or.b32 %r9, %r1, -1;", lane_times_7, disjunction);
	try_words("sm_80", NULL, "redux.sync.xor.b32 %r9, %r1, -1;", mixed, parity);
#define AS_F32(insn) "mov.b32 %f1, %r1;" insn "mov.b32 %r9, %f9;"
	try_words("sm_100a", NULL, AS_F32("redux.sync.max.f32 %f9, %f1, -1;"), floats, bits_15_5);
	try_words("sm_100a", NULL, AS_F32("redux.sync.min.f32 %f9, %f1, -1;"), floats, bits_minus_15_5);
	try_words("sm_100a", NULL, AS_F32("redux.sync.min.abs.f32 %f9, %f1, -1;"), floats, bits_half);
	try_words("sm_100a", NULL, AS_F32("redux.sync.max.NaN.f32 %f9, %f1, -1;"), floats, bits_nan);
}
END_TEST

static uint32_t is_first(const uint32_t *x, unsigned l) { return (void)x, l == 0; }
static uint32_t leader_of_half(const uint32_t *x, unsigned l) { return l < 16 ? x[l] : 16 + (l == 16) * 100; }

START_TEST(elections)
{
	try_words("sm_90", NULL, "elect.sync _|%p1, -1; selp.u32 %r9, 1, 0, %p1;", same, is_first);
	try_words("sm_90", NULL,
	          "mov.u32 %r9, %r1; setp.ge.u32 %p3, %r0, 16; @!%p3 bra out; elect.sync %r9|%p1, 0xffff0000;"
	          "@%p1 add.u32 %r9, %r9, 100; out:",
	          same, leader_of_half);
}
END_TEST

/* ---- shuffles ---- */

/* As the manual defines it: lane j is read; a clamp and segments of lanes. */
static unsigned source(char mode, unsigned l, unsigned b, unsigned c)
{
	unsigned segment = c >> 8 & 31, most = (l & segment) | (c & 31 & ~segment);
	int j = mode == 'u'   ? (int)l - (int)b
	        : mode == 'd' ? (int)(l + b)
	        : mode == 'b' ? (int)(l ^ b)
	                      : (int)((l & segment) | (b & ~segment));

	return (mode == 'u' ? j >= (int)most : j <= (int)most) ? (unsigned)j : l + 32;
}

static void try_shuffle(const char *name, unsigned b, unsigned c)
{
	uint32_t x[32];
	char body[600];

	for (unsigned i = 0; i < 32; i++)
		x[i] = mixed(i);
	snprintf(body, sizeof body, "%s shfl.sync.%s.b32 %%r9|%%p1, %%r1, %u, %u, -1; @!%%p1 xor.b32 %%r9, %%r9, -1; %s",
	         MY_WORD, name, b, c, ANSWER("%r9"));
	RUN_OK("sm_75", 32, x, sizeof x, body);
	for (unsigned i = 0; i < 32; i++) {
		unsigned j = source(name[0], i, b, c);
		ck_assert_msg(x[i] == (j < 32 ? mixed(j) : ~mixed(j - 32)), "%s %u %u: lane %u", name, b, c, i);
	}
}

START_TEST(shuffles)
{
	static const unsigned clamps[] = { 0, 31, 0x1f00 >> 1, 0x181f, 0x1c1f, 0x100f, 0x1c03 };

	for (unsigned b = 0; b < 32; b += 3)
		for (unsigned i = 0; i < sizeof clamps / sizeof *clamps; i++) {
			try_shuffle("up", b, clamps[i]);
			try_shuffle("down", b, clamps[i]);
			try_shuffle("bfly", b, clamps[i]);
			try_shuffle("idx", b, clamps[i]);
		}
}
END_TEST

static uint32_t neighbour(const uint32_t *x, unsigned l) { return x[l ^ 1]; }

START_TEST(shuffles_of_parts)
{
	/* Pairs that name masks of their own; and the two sides of a branch, which meet at instructions apart. */
	try_words("sm_75", NULL,
	          "and.b32 %r2, %r0, 30; mov.u32 %r3, 3; shl.b32 %r3, %r3, %r2; shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r3;", mixed,
	          neighbour);
	try_words(
		"sm_75", NULL,
		"and.b32 %r2, %r0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra odd; shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1; bra.uni done;"
		"odd: mov.u32 %r5, %r1; shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1; done:",
		mixed, neighbour);
	try_words("sm_75", "6.3", "shfl.bfly.b32 %r9, %r1, 1, 31;", mixed, neighbour);
}
END_TEST

static uint32_t folded(const uint32_t *x, unsigned l) { return l < 20 ? sum(x, l) - 12 * 5 : x[l]; }

START_TEST(lanes_that_exited)
{
	/* They are not waited for; what they would have given is undefined, but nobody needs it. */
	try_words(
		"sm_75", NULL,
		"setp.ge.u32 %p1, %r0, 20; @%p1 exit; vote.sync.ballot.b32 %r2, 1, -1; popc.b32 %r3, %r2; mul.lo.u32 %r9, %r3, 5;",
		same, folded);
}
END_TEST

START_TEST(a_value_of_nobody)
{
	uint32_t x[32] = { 0 };
	trial t = { .target = "sm_75",
		        .data = x,
		        .size = sizeof x,
		        .body =
		            "setp.ge.u32 %p1, %r0, 20; @%p1 exit;" MY_WORD "shfl.sync.down.b32 %r9, %r1, 1, 31, -1;" ANSWER("%r9") };

	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_UNDEFINED);
	ck_assert_ptr_nonnull(strstr(t.message, "thread (19, 0, 0)"));
}
END_TEST

/* ---- bar.warp.sync ---- */

/* Lanes that there never were are missed by nobody. */
START_TEST(barriers_of_part_warps)
{
	static uint32_t x[48];

	for (uint32_t block = 8; block <= 48; block += 8)
		RUN_OK("sm_80", block, x, sizeof x, "barrier.sync 0; bar.sync 0;");
	RUN_OK("sm_80", 48, x, sizeof x,
	       "barrier.sync 1, 64; bar.sync 1, 64; setp.lt.u32 %p1, %r0, 5; @%p1 bra A; A: barrier.sync 1, 64;");
}
END_TEST

START_TEST(warp_barrier)
{
	try_words("sm_75", NULL,
	          "{ .shared .align 128 .u32 s[32]; mov.u32 %r4, s; mad.lo.u32 %r5, %r0, 4, %r4; xor.b32 %r6, %r5, 4;"
	          "setp.lt.u32 %p1, %r0, 16; @%p1 bra low; st.shared.u32 [%r5], %r1; bar.warp.sync -1; bra.uni next;"
	          "low: xor.b32 %r7, %r1, 0; st.shared.u32 [%r5], %r7; bar.warp.sync 0xffffffff;"
	          "next: ld.shared.u32 %r9, [%r6]; }",
	          mixed, neighbour);
}
END_TEST

/* ---- what is wrong with masks ---- */

static void found(const char *body, enum cptx_finding_code code, const char *text)
{
	uint32_t x[32] = { 0 };

	for (uint64_t seed = 0; seed < 5; seed++) {
		trial t = { .target = "sm_90", .data = x, .size = sizeof x, .body = body, .opt.seed = seed };
		trial_run(&t);
		ck_assert_msg(!t.ok && t.err.code == CPTX_E_FINDING && t.found[0] == code, "%s\n%s%s", body, t.err.text, t.message);
		ck_assert_msg(strstr(t.message, text) != NULL, "%s\n%s", body, t.message);
	}
}

START_TEST(wrong_masks)
{
	found("vote.sync.ballot.b32 %r9, 1, 0x7fffffff;", CPTX_FIND_MEMBERMASK, "lane 31 is not in the mask 0x7fffffff");
	found("setp.eq.u32 %p1, %r0, 3; selp.u32 %r2, 0xff, -1, %p1; shfl.sync.idx.b32 %r9, %r0, 0, 31, %r2;",
	      CPTX_FIND_MEMBERMASK, "names 0x000000ff; all lanes of a mask must name the same");
	found("redux.sync.add.u32 %r9, %r0, %r2;", CPTX_FIND_UNDEFINED, "the mask of lanes");
}
END_TEST

START_TEST(lanes_that_never_come)
{
	found("setp.lt.u32 %p1, %r0, 16; @%p1 shfl.sync.idx.b32 %r9, %r0, 0, 31, -1; bar.sync 0;", CPTX_FIND_DIVERGENT,
	      "waits for lanes 0xffff0000");
	found("setp.lt.u32 %p1, %r0, 16; @%p1 bra low; bar.warp.sync -1; bra.uni done; low: vote.sync.ballot.b32 %r9, 1, -1; "
	      "done: st.global.u32 [%rd0], 1;",
	      CPTX_FIND_DIVERGENT, "waits for lanes");
}
END_TEST

TRIAL_MAIN("emu_sync", votes, votes_of_old, active_lanes, matches, reductions, elections, shuffles, shuffles_of_parts,
           lanes_that_exited, a_value_of_nobody, barriers_of_part_warps, warp_barrier, wrong_masks, lanes_that_never_come)
