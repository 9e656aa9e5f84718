/* SPDX-License-Identifier: MIT */
/* Bulk copies without tensors: bytes, groups, mbarriers, reductions, and what is found wrong with them. */
#include "bulk.h"

#define LOAD(bytes)                                                                                                         \
	"@%p15 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r61], [%rd0], " bytes ", [%r60];\n"
#define STORE_AT(form, to, from, bytes)                                                                                     \
	"add.u64 %rd9, %rd0, " to "; add.u32 %r59, %r61, " from ";\n@%p15 cp.async.bulk.global.shared::cta.bulk_group" form     \
	" [%rd9], [%r59], " bytes ";\n"

enum { WORDS = 1024 };

static void fill(uint32_t *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		x[i] = i * 2654435761u;
}

static void fine(const char *target, const char *body, void *data, size_t size)
{
	trial t = { .target = target, .decls = BULK_DECLS, .body = body, .block = { 64 }, .data = data, .size = size };

	bulk_fine(&t);
}

static void found(const char *target, const char *body, enum cptx_finding_code code, const char *text)
{
	uint32_t x[WORDS];
	trial t = { .target = target, .decls = BULK_DECLS, .body = body, .block = { 64 }, .data = x, .size = sizeof x };

	fill(x, WORDS);
	bulk_found(&t, code, text);
}

START_TEST(there_and_back)
{
	uint32_t x[WORDS], y[WORDS];
	trial t = { .target = "sm_90",
		        .decls = BULK_DECLS,
		        .block = { 64 },
		        .data = x,
		        .size = sizeof x,
		        .body = BULK_SETUP BULK_EXPECT("1040") LOAD("1040") BULK_WAIT("w", "0") STORE_AT("", "2048", "0", "1040")
		            BULK_DONE };

	fill(x, WORDS);
	memcpy(y, x, sizeof y);
	bulk_fine(&t);
	memcpy(y + 512, y, 1040);
	ck_assert_mem_eq(x, y, sizeof x);
	ck_assert_uint_eq(t.counters.async_bytes, 2080);
	t.opt.size = CPTX_OPT_SIZE(cptx_emu_opt), t.opt.no_traffic = true;
	bulk_fine(&t);
	ck_assert_uint_eq(t.counters.async_bytes, 0);
}
END_TEST

START_TEST(threads_read_what_has_come)
{
	uint32_t x[WORDS];

	fill(x, WORDS);
	fine("sm_90",
	     BULK_SETUP BULK_EXPECT("256") LOAD("256") BULK_WAIT(
			 "w", "0") "shl.b32 %r1, %r0, 2; add.u32 %r2, %r61, %r1; ld.shared.u32 %r3, [%r2]; add.u32 %r3, %r3, 1;"
	                   "cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1+1024], %r3;",
	     x, sizeof x);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(x[256 + i], i * 2654435761u + 1);
}
END_TEST

START_TEST(a_mask_of_bytes)
{
	uint8_t x[4096], y[4096];

	for (uint32_t i = 0; i < sizeof x; i++)
		x[i] = (uint8_t)(i * 7);
	memcpy(y, x, sizeof y);
	fine("sm_100",
	     BULK_SETUP BULK_EXPECT("64") LOAD("64")
	         BULK_WAIT("w", "0") "mov.b16 %h1, 0x8421;"
	                             "add.u64 %rd9, %rd0, 2048;"
	                             "@%p15 cp.async.bulk.global.shared::cta.bulk_group.cp_mask "
	                             "[%rd9], [%r61], 64, %h1;" BULK_DONE,
	     x, sizeof x);
	for (uint32_t i = 0; i < 64; i++)
		if (0x8421 >> i % 16 & 1)
			y[2048 + i] = y[i];
	ck_assert_mem_eq(x, y, sizeof x);
}
END_TEST

START_TEST(bytes_beside_the_allocation)
{
	uint32_t x[64];
	trial t = { .target = "sm_90",
		        .version = "9.2",
		        .decls = BULK_DECLS,
		        .block = { 64 },
		        .data = x,
		        .size = 248,
		        .body = BULK_SETUP BULK_EXPECT(
					"256") "mov.u32 %r1, 0; mov.u32 %r2, 8;"
		                   "@%p15 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r61], [%rd0], "
		                   "256, %r1, "
		                   "%r2, [%r60];" BULK_WAIT("w", "0") "ld.shared.u32 %r3, [%r61+244]; st.global.u32 [%rd0], %r3;" };

	fill(x, 64);
	bulk_fine(&t);
	ck_assert_uint_eq(x[0], 61 * 2654435761u);
	t.body = BULK_SETUP BULK_EXPECT("256") LOAD("256") BULK_WAIT("w", "0");
	bulk_found(&t, CPTX_FIND_BOUNDS, "of 248 bytes");
}
END_TEST

/* ---- the cluster ---- */

#define CLUSTER_SETUP                                                                                                       \
	BULK_SETUP                                                                                                              \
	"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r50, %cluster_ctarank;"                         \
	"xor.b32 %r51, %r50, 1; mapa.shared::cluster.u32 %r52, %r61, %r51; mapa.shared::cluster.u32 %r53, %r60, %r51;"
/* Each CTA's first 256 bytes become where `from` of its shared memory is, at 1024 * rank + 1024 of the buffer. */
#define CLUSTER_OUT(from)                                                                                                   \
	"add.u32 %r1, %r50, 1; mul.wide.u32 %rd1, %r1, 1024; add.u64 %rd1, %rd0, %rd1; add.u32 %r58, %r61, " from               \
	";@%p15 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r58], 256;" BULK_DONE                                     \
	"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

static void cluster(const char *body, uint32_t *x)
{
	trial t = { .target = "sm_90",
		        .decls = BULK_DECLS,
		        .body = body,
		        .grid = { 2 },
		        .cluster = { 2 },
		        .block = { 64 },
		        .data = x,
		        .size = WORDS * 4 };

	bulk_fine(&t);
}

START_TEST(between_ctas)
{
	uint32_t x[WORDS];

	/* Each writes rank + thread into its memory and sends it to the other's offset 512. */
	fill(x, WORDS);
	cluster(CLUSTER_SETUP BULK_EXPECT("256") "shl.b32 %r1, %r0, 2; add.u32 %r1, %r61, %r1; mad.lo.u32 %r2, %r50, 1000, %r0; "
	                                         "st.shared.u32 [%r1], %r2;" BULK_FENCE "add.u32 %r52, %r52, 512;"
	                                         "@%p15 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
	                                         "[%r52], [%r61], 256, [%r53];" BULK_WAIT("w", "0") CLUSTER_OUT("512"),
	        x);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < 64; i++)
			ck_assert_uint_eq(x[256 * (r + 1) + i], (1 - r) * 1000 + i);
}
END_TEST

START_TEST(sums_between_ctas)
{
	uint32_t x[WORDS];

	fill(x, WORDS);
	cluster(
		CLUSTER_SETUP BULK_EXPECT(
			"256") "shl.b32 %r1, %r0, 2; add.u32 %r1, %r61, %r1; mad.lo.u32 %r2, %r50, 1000, %r0; st.shared.u32 [%r1], %r2;"
				   "mov.u32 %r3, 5; st.shared.u32 [%r1+512], %r3;" BULK_FENCE
				   "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; add.u32 %r52, %r52, 512;"
				   "@%p15 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r52], "
				   "[%r61], 256, "
				   "[%r53];" BULK_WAIT("w", "0") CLUSTER_OUT("512"),
		x);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < 64; i++)
			ck_assert_uint_eq(x[256 * (r + 1) + i], (1 - r) * 1000 + i + 5);
}
END_TEST

START_TEST(to_many_ctas)
{
	uint32_t x[WORDS];

	fill(x, WORDS);
	cluster(CLUSTER_SETUP BULK_EXPECT("256") "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
	                                         "setp.eq.u32 %p1, %r50, 1; and.pred %p1, %p1, %p15; mov.b16 %h1, 3;"
	                                         "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
	                                         "multicast::cluster [%r61], [%rd0], 256, [%r60], %h1;" BULK_WAIT("w", "0")
	                                             CLUSTER_OUT("0"),
	        x);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert(x[256 + i] == i * 2654435761u && x[512 + i] == i * 2654435761u);
}
END_TEST

/* ---- reductions into global memory ---- */

#define REDUCE(op)                                                                                                          \
	BULK_SETUP BULK_EXPECT("256") LOAD("256")                                                                               \
		BULK_WAIT("w", "0") "add.u64 %rd9, %rd0, 1024;"                                                                     \
							"@%p15 cp.reduce.async.bulk.global.shared::cta.bulk_group." op                                  \
							" [%rd9], [%r61], 256;" BULK_DONE

/* Four CTAs do it on the same memory. */
static void reduced(const char *body, void *x)
{
	trial t = {
		.target = "sm_90", .decls = BULK_DECLS, .body = body, .grid = { 4 }, .block = { 64 }, .data = x, .size = 2048
	};

	bulk_fine(&t);
}

START_TEST(reductions_of_integers)
{
	static const struct {
		const char *body;
		uint32_t from, by, right;
	} c[] = {
		{ REDUCE("add.u32"), 100, 7, 128 },
		{ REDUCE("add.s32"), 100, -7u, 72 },
		{ REDUCE("min.u32"), 100, -7u, 100 },
		{ REDUCE("min.s32"), 100, -7u, -7u },
		{ REDUCE("max.u32"), 100, -7u, -7u },
		{ REDUCE("max.s32"), 100, -7u, 100 },
		{ REDUCE("and.b32"), 0xff00ff, 0xf0f0f0, 0xf000f0 },
		{ REDUCE("or.b32"), 0xff00ff, 0xf0f0f0, 0xfff0ff },
		{ REDUCE("xor.b32"), 5, 3, 5 },
		{ REDUCE("inc.u32"), 2, 4, 1 },
		{ REDUCE("dec.u32"), 2, 4, 3 },
	};

	for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
		uint32_t x[512];
		for (uint32_t i = 0; i < 512; i++)
			x[i] = i < 256 ? c[k].by : c[k].from;
		reduced(c[k].body, x);
		for (uint32_t i = 0; i < 64; i++)
			ck_assert_msg(x[256 + i] == c[k].right, "%u: %u", (unsigned)k, x[256 + i]);
		ck_assert_uint_eq(x[256 + 64], c[k].from);
	}
}
END_TEST

START_TEST(reductions_of_floats)
{
	float f[512];
	uint16_t h[1024];

	for (uint32_t i = 0; i < 512; i++)
		f[i] = i < 256 ? 0.5f * (float)i : 10.0f;
	f[1] = 1e-40f, f[257] = 0;
	reduced(REDUCE("add.f32"), f);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert(f[256 + i] == (i == 1 ? 0.0f : 10.0f + 2.0f * (float)i)); /* subnormal numbers count as zero */
	for (uint32_t i = 0; i < 1024; i++)
		h[i] = i < 512 ? 0x3c00 /* 1 */ : 0x4000 /* 2 */;
	h[0] = 1, h[512] = 2; /* those of f16 do not */
	reduced(REDUCE("add.noftz.f16"), h);
	ck_assert(h[512] == 6 && h[513] == 0x4600 /* 6 */);
	for (uint32_t i = 0; i < 1024; i++)
		h[i] = i < 512 ? 0x3f80 : 0xc000;
	reduced(REDUCE("max.bf16"), h);
	ck_assert_uint_eq(h[513], 0x3f80);
}
END_TEST

START_TEST(reductions_of_64_bits)
{
	uint64_t x[256];

	for (uint32_t i = 0; i < 256; i++)
		x[i] = i < 128 ? UINT64_C(1) << 40 : 3;
	reduced(REDUCE("add.u64"), x);
	ck_assert(x[128] == (UINT64_C(1) << 42) + 3 && x[160] == 3);
	reduced(REDUCE("max.s64"), x);
	ck_assert_uint_eq(x[128], (UINT64_C(1) << 42) + 3);
}
END_TEST

/* ---- groups ---- */

START_TEST(groups)
{
	uint32_t x[WORDS];

	/* Two groups; behind the first one its source is written again. */
	fill(x, WORDS);
	fine("sm_90",
	     BULK_SETUP
	     "shl.b32 %r1, %r0, 2; add.u32 %r1, %r61, %r1; st.shared.u32 [%r1], %r0; st.shared.u32 [%r1+256], %r0;" BULK_FENCE
	         STORE_AT("", "0", "0", "256") "@%p15 cp.async.bulk.commit_group;" STORE_AT(
				 "", "1024", "256",
				 "256") "@%p15 cp.async.bulk.commit_group; @%p15 cp.async.bulk.wait_group.read 1; bar.sync 0;"
	                    "mov.u32 %r5, 77; st.shared.u32 [%r1], %r5;"
	                    "@%p15 cp.async.bulk.wait_group 0;",
	     x, sizeof x);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert(x[i] == i && x[256 + i] == i);
}
END_TEST

#define WRITTEN BULK_SETUP "shl.b32 %r1, %r0, 2; add.u32 %r1, %r61, %r1; st.shared.u32 [%r1], %r0;"

START_TEST(waits_that_are_missing)
{
	found("sm_90",
	      WRITTEN BULK_FENCE STORE_AT("", "0", "0", "256") "@%p15 cp.async.bulk.commit_group; bar.sync 0; mov.u32 %r5, 7;"
	                                                       "st.shared.u32 [%r1], %r5; @%p15 cp.async.bulk.wait_group 0;",
	      CPTX_FIND_ASYNC_WAIT, "which was read by cp.async.bulk.global.shared::cta.bulk_group");
	/* .read does not say that global memory is written. */
	found("sm_90",
	      WRITTEN BULK_FENCE STORE_AT("", "0", "0",
	                                  "256") "@%p15 cp.async.bulk.commit_group; @%p15 cp.async.bulk.wait_group.read 0;"
	                                         "bar.sync 0; ld.global.u32 %r5, [%rd0]; @%p15 cp.async.bulk.wait_group 0;",
	      CPTX_FIND_ASYNC_WAIT, "global memory");
	found("sm_90", BULK_SETUP BULK_EXPECT("256") LOAD("256") "ld.shared.u32 %r5, [%r61];" BULK_WAIT("w", "0"),
	      CPTX_FIND_ASYNC_WAIT, "it reads 4 bytes of shared memory");
}
END_TEST

START_TEST(fences_that_are_missing)
{
	found("sm_90", WRITTEN "bar.sync 0;" STORE_AT("", "0", "0", "256") BULK_DONE, CPTX_FIND_PROXY, "fence.proxy.async");
	found("sm_90", BULK_SETUP STORE_AT("", "0", "0", "256") BULK_DONE, CPTX_FIND_UNDEFINED, "was never written");
}
END_TEST

START_TEST(bytes_that_are_wrong)
{
	found("sm_90", BULK_SETUP BULK_EXPECT("512") LOAD("256") BULK_WAIT("w", "0"), CPTX_FIND_TX_BYTES,
	      "512 are expected, 256 have come");
	found("sm_90", BULK_SETUP BULK_EXPECT("256") LOAD("512") BULK_WAIT("w", "0"), CPTX_FIND_TX_BYTES, "");
}
END_TEST

START_TEST(operands_that_are_wrong)
{
	found("sm_90", BULK_SETUP BULK_EXPECT("24") "mov.u32 %r1, 24;" LOAD("%r1") BULK_WAIT("w", "0"), CPTX_FIND_OPERAND,
	      "24 bytes; they must be a multiple of 16");
	found("sm_90", BULK_SETUP BULK_EXPECT("16") "add.u64 %rd0, %rd0, 8;" LOAD("16") BULK_WAIT("w", "0"),
	      CPTX_FIND_MISALIGNED, "must be a multiple of 16");
	found("sm_90", BULK_SETUP BULK_EXPECT("16") "add.u32 %r61, %r61, 4;" LOAD("16") BULK_WAIT("w", "0"),
	      CPTX_FIND_MISALIGNED, "must be a multiple of 16");
	found("sm_90", BULK_SETUP BULK_EXPECT("8192") "mov.u32 %r1, 8192;" LOAD("%r1") BULK_WAIT("w", "0"), CPTX_FIND_BOUNDS,
	      "an allocation of 4096 bytes");
	found("sm_90", "mov.u32 %r60, bar; mov.u32 %r61, data; setp.eq.u32 %p15, %r0, 0;" LOAD("16"), CPTX_FIND_MBARRIER,
	      "mbarrier.init must come first");
	found("sm_90",
	      BULK_SETUP BULK_EXPECT(
			  "16") "mov.b16 %h1, 2;@%p15 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
	                "multicast::cluster [%r61], [%rd0], 16, [%r60], %h1;",
	      CPTX_FIND_OPERAND, "CTA mask 0x2 of a cluster of 1 CTAs");
}
END_TEST

START_TEST(prefetches)
{
	uint32_t x[WORDS] = { 0 };

	fine("sm_90", "cp.async.bulk.prefetch.L2.global [%rd0], 4096;", x, sizeof x);
	found("sm_90", "cp.async.bulk.prefetch.L2.global [%rd0+16], 4096;", CPTX_FIND_BOUNDS, "an allocation of 4096 bytes");
}
END_TEST

/* ---- multimem, of one device ---- */

START_TEST(memory_of_one_device)
{
	uint32_t x[64] = { 5, 0x3c003c00, 0x40004000, 7 };

	RUN_OK(
		"sm_90", 1, x, sizeof x,
		"multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%rd0]; multimem.ld_reduce.weak.global.add.v2.f16x2 {%r2, %r3}, "
		"[%rd0+8]; multimem.st.relaxed.gpu.global.u32 [%rd0+64], %r1; multimem.st.weak.global.v2.f16x2 [%rd0+72], {%r2, "
		"%r3};"
		"mov.u32 %r4, 100; multimem.red.relaxed.gpu.global.add.u32 [%rd0], %r4; ld.global.u32 %r5, [%rd0+8];"
		"multimem.red.relaxed.gpu.global.add.f16x2 [%rd0+4], %r5;");
	ck_assert(x[0] == 105 && x[16] == 5 && x[18] == 0x40004000 && x[19] == 7);
	ck_assert_uint_eq(x[1], 0x42004200); /* 1 + 2 */
}
END_TEST

TRIAL_MAIN("emu_bulk", prefetches, memory_of_one_device, there_and_back, threads_read_what_has_come, a_mask_of_bytes,
           bytes_beside_the_allocation, between_ctas, sums_between_ctas, to_many_ctas, reductions_of_integers,
           reductions_of_floats, reductions_of_64_bits, groups, waits_that_are_missing, fences_that_are_missing,
           bytes_that_are_wrong, operands_that_are_wrong)
