/* SPDX-License-Identifier: MIT */
/* Tensor copies: random maps of every kind against the rules; multicast and pairs; what is found wrong with maps. */
#include "bulk.h"
#include "tensor.h"

#include "../sanitized.h"

enum { CASES = 600 };

static void fill(uint8_t *p, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)tensor_below(state, 256);
}

static void compare(const tensor_case *c, const uint8_t *got, const uint8_t *right, size_t n, const char *what)
{
	char text[1200];

	for (size_t i = 0; i < n; i++) {
		if (got[i] == right[i])
			continue;
		tensor_print(c, text, sizeof text);
		ck_abort_msg("%s\n%s byte %u is 0x%02x, not 0x%02x", text, what, (unsigned)i, got[i], right[i]);
	}
}

static void one(const tensor_case *c, uint64_t *state, tensor_runner *r)
{
	uint8_t *buffer = malloc(c->size * 2), smem[2][TENSOR_SMEM];
	char text[1200];
	cptx_error err = { 0 };

	ck_assert_ptr_nonnull(buffer);
	fill(buffer, c->size, state);
	fill(smem[0], TENSOR_SMEM, state);
	memcpy(buffer + c->size, buffer, c->size);
	memcpy(smem[1], smem[0], TENSOR_SMEM);
	tensor_print(c, text, sizeof text);
	ck_assert_msg(tensor_run(r, c, buffer, smem[0], &err), "%s\n%s", text, err.text);
	tensor_reference(c, buffer + c->size, smem[1]);
	compare(c, buffer, buffer + c->size, c->size, "global");
	compare(c, smem[0], smem[1], TENSOR_SMEM, "shared");
	free(buffer);
}

static void many(enum tensor_way way, bool newer)
{
	uint64_t state = (uint64_t)way * 2 + newer + 1;
	/* Padding is read too, which nobody has written. */
	cptx_device *dev = cptx_emu_open(newer ? "sm_100a" : "sm_90", &(cptx_emu_opt){ .no_undefined = true }, NULL);

	ck_assert_ptr_nonnull(dev);
	tensor_runner *r = tensor_runner_new(dev);
	ck_assert_ptr_nonnull(r);
	for (unsigned i = 0; i < SAMPLE_OF(CASES, CASES / 6); i++) {
		tensor_case c = tensor_random(&state, way, newer);
		cptx_emu_reseed(dev, i, (enum cptx_emu_schedule)(i % 3));
		one(&c, &state, r);
	}
	tensor_runner_free(r);
	cptx_device_close(dev);
}

/* ---- boxes that end where shared memory does ---- */

/* Shared memory of just the bytes that the copy needs. */
static void no_room_behind(tensor_case *c)
{
	enum { LEAST = 512 /* bytes: each thread of the kernel copies some */ };

	while (c->at + tensor_extent(c) < LEAST)
		c->at += 128;
	c->room = (c->at + tensor_extent(c) + 15) / 16 * 16;
}

static cptx_device *open_for(const tensor_case *c, uint64_t seed)
{
	cptx_device *dev = cptx_emu_open(
		c->target, &(cptx_emu_opt){ .no_undefined = true, .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) },
		NULL);

	ck_assert_ptr_nonnull(dev);
	return dev;
}

/* 16 bytes less, and the last chunk is outside. */
static void too_little_room(tensor_case c, uint64_t seed)
{
	cptx_device *dev = open_for(&c, seed);
	tensor_runner *r = tensor_runner_new(dev);
	uint8_t *buffer = calloc(1, c.size), *smem = calloc(1, TENSOR_SMEM);
	char text[1200];
	cptx_error err = { 0 };

	ck_assert(r && buffer && smem);
	c.room -= 16;
	tensor_print(&c, text, sizeof text);
	bool ok = tensor_run(r, &c, buffer, smem, &err);
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	ck_assert_msg(!ok && f && f->code == CPTX_FIND_BOUNDS, "%s\nmust be out of bounds: %s", text, err.text);
	free(smem);
	free(buffer);
	tensor_runner_free(r);
	cptx_device_close(dev);
}

START_TEST(boxes_at_the_end_of_shared_memory)
{
	static const enum tensor_way ways[] = { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };
	uint64_t state = 19;
	unsigned swizzled[CPTX_SWIZZLE_COUNT] = { 0 };

	for (unsigned i = 0; i < CASES; i++) {
		tensor_case c = tensor_random(&state, ways[i % 3], i / 3 % 2);
		no_room_behind(&c);
		if (c.at % 1024)
			swizzled[c.map.swizzle]++;
		cptx_device *dev = open_for(&c, i);
		tensor_runner *r = tensor_runner_new(dev);
		ck_assert_ptr_nonnull(r);
		one(&c, &state, r);
		tensor_runner_free(r);
		cptx_device_close(dev);
		if (c.way == TENSOR_LOAD && c.room > 512 + 16) /* a store reads nothing for what is outside of the tensor */
			too_little_room(c, i);
	}
	for (unsigned s = CPTX_SWIZZLE_32B; s < CPTX_SWIZZLE_96B; s++)
		ck_assert_msg(swizzled[s] >= 10, "%u cases of swizzle %s", swizzled[s],
		              cptx_swizzle_get((enum cptx_swizzle)s)->name);
}
END_TEST

START_TEST(loads)
{
	many(TENSOR_LOAD, false);
	many(TENSOR_LOAD, true);
}
END_TEST

START_TEST(stores)
{
	many(TENSOR_STORE, false);
	many(TENSOR_STORE, true);
}
END_TEST

START_TEST(reductions)
{
	many(TENSOR_REDUCE, false);
	many(TENSOR_REDUCE, true);
}
END_TEST

/* ---- kernels as text: the map lies in global memory, and so does the tensor, whose word i is i ---- */

enum { WORDS = 2048 };

static void put_map(char *text, size_t size, const char *name, const cptx_tensor_map_opt *map)
{
	uint64_t word[CPTX_TENSOR_MAP_BYTES / 8];
	cptx_error err = { 0 };
	size_t n = strlen(text);

	ck_assert_msg(cptx_tensor_map_pack(map, (uint8_t *)word, &err), "%s", err.text);
	n += (size_t)snprintf(text + n, size - n, ".global .align 128 .u64 %s[16] = { ", name);
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (i == 2)
			n += (size_t)snprintf(text + n, size - n, ", buf");
		else
			n += (size_t)snprintf(text + n, size - n, "%s0x%llx", i ? ", " : "", (unsigned long long)word[i]);
	snprintf(text + n, size - n, " };\n");
}

static const cptx_tensor_map_opt plain = { .type = CPTX_TENSOR_U32, .rank = 2, .dim = { 64, 32 }, .box = { 32, 8 } };

/* A map `map`, and `other`, of other shape. */
static char *decls(const cptx_tensor_map_opt *map)
{
	enum { SIZE = 32768 };
	cptx_tensor_map_opt m = *map;
	char *text = calloc(1, SIZE);
	size_t n;

	ck_assert_ptr_nonnull(text);
	n = (size_t)snprintf(text, SIZE, "%s.global .align 1024 .u32 buf[%d] = { 0", BULK_DECLS, WORDS);
	for (unsigned i = 1; i < WORDS; i++)
		n += (size_t)snprintf(text + n, SIZE - n, ", %u", i);
	snprintf(text + n, SIZE - n, " };\n");
	put_map(text, SIZE, "map", &m);
	m.dim[0] = 32, m.box[0] = 16;
	put_map(text, SIZE, "other", &m);
	return text;
}

#define MAP "mov.b64 %rd5, map; mov.u32 %r10, 4; mov.u32 %r11, 2;\n"
#define XY "{%r10, %r11}"
#define BOX(map, coords)                                                                                                    \
	"@%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r61], [" map ", " coords      \
	"], [%r60];\n"
/* The first 256 words of shared memory go to the buffer. */
#define SHOW                                                                                                                \
	"shl.b32 %r20, %r0, 2; add.u32 %r21, %r61, %r20; cvt.u64.u32 %rd20, %r20; add.u64 %rd21, %rd0, %rd20;\n"                \
	"ld.shared.u32 %r22, [%r21]; st.global.u32 [%rd21], %r22; ld.shared.u32 %r22, [%r21+512];"                              \
	"st.global.u32 [%rd21+512], %r22;\n"

static trial trial_of(const char *target, uint32_t ctas, const cptx_tensor_map_opt *map, const char *body, uint32_t *x)
{
	trial t = { .target = target, .body = body, .block = { 128 }, .data = x, .size = WORDS * 4, .decls = decls(map) };

	t.grid[0] = t.cluster[0] = ctas;
	memset(x, 0, WORDS * 4);
	return t;
}

static void text_fine(const char *target, uint32_t ctas, const char *body, uint32_t *x)
{
	trial t = trial_of(target, ctas, &plain, body, x);

	bulk_fine(&t);
	free((char *)(uintptr_t)t.decls);
}

static void text_found(const cptx_tensor_map_opt *map, const char *body, enum cptx_finding_code code, const char *text)
{
	uint32_t x[WORDS];
	trial t = trial_of("sm_90a", 1, map, body, x);

	bulk_found(&t, code, text);
	free((char *)(uintptr_t)t.decls);
}

static void right_box(const uint32_t *x, uint32_t col, uint32_t row)
{
	for (uint32_t i = 0; i < 256; i++)
		ck_assert_msg(x[i] == (row + i / 32) * 64 + col + i % 32, "word %u: %u", i, x[i]);
}

START_TEST(a_box)
{
	uint32_t x[WORDS];

	text_fine("sm_90a", 1, BULK_SETUP MAP BULK_EXPECT("1024") BOX("%rd5", XY) BULK_WAIT("w", "0") SHOW, x);
	right_box(x, 4, 2);
	text_fine("sm_90a", 1, MAP "prefetch.tensormap [%rd5]; cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd5, " XY "];",
	          x);
}
END_TEST

START_TEST(to_many_ctas)
{
	uint32_t x[WORDS];

	/* Each of two CTAs loads a box, and sends it to both. */
	static const char body[] = BULK_SETUP MAP BULK_EXPECT(
		"2048") "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
				"mov.u32 %r1, %cluster_ctarank; mov.b16 %h1, 3; mad.lo.u32 %r11, %r1, 8, 2; mad.lo.u32 %r2, %r1, 1024, %r61;"
				"@%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
				"[%r2], "
				"[%rd5, " XY
				"], [%r60], %h1;" BULK_WAIT("w", "0") "mul.wide.u32 %rd1, %r1, 1024; add.u64 %rd0, %rd0, %rd1; xor.b32 %r1, "
													  "%r1, 1; mad.lo.u32 %r61, %r1, 1024, %r61;" SHOW
													  "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
	text_fine("sm_90a", 2, body, x);
	right_box(x, 4, 10);
	right_box(x + 256, 4, 2);
}
END_TEST

START_TEST(the_mbarrier_of_the_peer)
{
	uint32_t x[WORDS];

	/* Both CTAs of a pair load into their own memory; the bytes count at the mbarrier of the first: its address is without
	 * bit 24. */
	static const char body[] = BULK_SETUP MAP
		"mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; and.pred %p2, %p1, %p15;"
		"@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r60], 2048;"
		"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; and.b32 %r59, %r60, 0xfeffffff; mad.lo.u32 %r11, "
		"%r1, 8, 2;"
		"@%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r61], "
		"[%rd5, " XY "], [%r59];"
		"@!%p1 bra behind;" BULK_WAIT("w", "0") "behind: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
												"mul.wide.u32 %rd1, %r1, 1024; add.u64 %rd0, %rd0, %rd1;" SHOW;
	text_fine("sm_100a", 2, body, x);
	right_box(x, 4, 2);
	right_box(x + 256, 4, 10);
}
END_TEST

/* ---- maps that threads change ---- */

#define COPY_MAP                                                                                                            \
	"setp.lt.u32 %p5, %r0, 32; shl.b32 %r30, %r0, 2; cvt.u64.u32 %rd30, %r30; add.u64 %rd31, %rd5, %rd30;"                  \
	"add.u32 %r31, %r61, 16384; add.u32 %r32, %r31, %r30; @%p5 ld.global.u32 %r33, [%rd31];"                                \
	"@%p5 st.shared.u32 [%r32], %r33; bar.sync 0; mov.b64 %rd6, other;\n"
/* The tensor begins at the second row, and has three. */
#define REPLACE                                                                                                             \
	"mov.b64 %rd7, buf; add.u64 %rd7, %rd7, 256; mov.u32 %r40, 3;"                                                          \
	"@%p15 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r31], %rd7;"                                       \
	"@%p15 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r31], 1, %r40;"                                        \
	"@%p15 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r31], 0; bar.sync 0;\n"
#define PUBLISH                                                                                                             \
	"@!%p5 bra over; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd6], "       \
	"[%r31], "                                                                                                              \
	"128;\nover: bar.sync 0;\n"
#define ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%rd6], 128;\n"
#define LOAD_OTHER BULK_EXPECT("1024") BOX("%rd6", XY) BULK_WAIT("w", "0") SHOW

START_TEST(changed_maps)
{
	uint32_t x[WORDS];

	text_fine("sm_90a", 1, BULK_SETUP MAP COPY_MAP REPLACE PUBLISH ACQUIRE LOAD_OTHER, x);
	for (uint32_t i = 0; i < 256; i++) /* of 3 rows one is left from row 2 on */
		ck_assert_uint_eq(x[i], i < 32 ? 64 + 2 * 64 + 4 + i : 0);
	text_found(&plain, BULK_SETUP MAP COPY_MAP REPLACE PUBLISH LOAD_OTHER, CPTX_FIND_PROXY,
	           "which this thread has not acquired");
	text_found(&plain, BULK_SETUP MAP COPY_MAP REPLACE ACQUIRE PUBLISH LOAD_OTHER, CPTX_FIND_PROXY,
	           "fence.proxy.tensormap::generic.acquire of it");
}
END_TEST

#define IN_PLACE "mov.b64 %rd6, map; @%p15 tensormap.replace.tile.rank.global.b1024.b32 [%rd6], 1; bar.sync 0;\n"
#define RELEASE "fence.proxy.tensormap::generic.release.cta; bar.sync 0;\n"
/* Words of a map over another. */
#define STORE_MAP "mov.b64 %rd8, other; add.u64 %rd32, %rd8, %rd30; @%p5 st.global.u32 [%rd32], %r33; bar.sync 0;\n"

START_TEST(maps_changed_in_place)
{
	uint32_t x[WORDS];

	text_fine("sm_90a", 1, BULK_SETUP MAP "mov.u32 %r40, 1;" IN_PLACE RELEASE ACQUIRE LOAD_OTHER, x);
	right_box(x, 4, 2);
	text_found(&plain, BULK_SETUP MAP IN_PLACE ACQUIRE LOAD_OTHER, CPTX_FIND_PROXY, "and not released");
	text_found(&plain, BULK_SETUP MAP IN_PLACE RELEASE LOAD_OTHER, CPTX_FIND_PROXY, "has not acquired");
	text_fine("sm_90a", 1, BULK_SETUP MAP COPY_MAP STORE_MAP RELEASE ACQUIRE LOAD_OTHER, x);
	right_box(x, 4, 2);
	text_found(&plain, BULK_SETUP MAP COPY_MAP STORE_MAP LOAD_OTHER, CPTX_FIND_PROXY,
	           "fence.proxy.tensormap::generic.release must stand behind that");
}
END_TEST

/* Block 0 makes the map and tells block 1, which uses it. */
#define BLOCKS(acquire)                                                                                                     \
	BULK_SETUP MAP COPY_MAP                                                                                                 \
		"mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra second;" REPLACE PUBLISH                                 \
		"@%p15 st.release.gpu.global.u32 [%rd0+4096], 1; bra end;"                                                          \
		"second: ld.acquire.gpu.global.u32 %r2, [%rd0+4096]; setp.eq.u32 %p2, %r2, 0; @%p2 bra second;" acquire LOAD_OTHER  \
		"end:"

START_TEST(maps_of_other_blocks)
{
	uint32_t x[WORDS];
	trial t = trial_of("sm_90a", 1, &plain, BLOCKS(ACQUIRE), x);

	t.grid[0] = 2;
	bulk_fine(&t);
	for (uint32_t i = 0; i < 256; i++)
		ck_assert_uint_eq(x[i], i < 32 ? 64 + 2 * 64 + 4 + i : 0);
	memset(x, 0, sizeof x);
	t.body = BLOCKS("");
	bulk_found(&t, CPTX_FIND_PROXY, "which this thread has not acquired");
	free((char *)(uintptr_t)t.decls);
}
END_TEST

START_TEST(each_field)
{
	uint32_t x[WORDS];
	cptx_tensor_map_opt all = { .type = CPTX_TENSOR_BF16,
		                        .rank = 3,
		                        .dim = { 100, 5, 6 },
		                        .stride = { 0, 208, 4096 },
		                        .box = { 40, 3, 2 },
		                        .element_stride = { 1, 2, 3 },
		                        .nan_fill = true };
	uint64_t right[16];
	/* The plain map becomes that one; a copy of it is looked at. */
	static const char body[] = MAP "mov.u32 %r61, data;" COPY_MAP
								   "mov.u32 %r40, 40; mov.u32 %r41, 3; mov.u32 %r42, 2; mov.u32 %r43, 100; mov.u32 %r44, 5;"
								   "mov.u32 %r45, 6; mov.b64 %rd40, 208; mov.b64 %rd41, 4096; mov.b64 %rd42, 0; setp.eq.u32 "
								   "%p15, %r0, 0; @!%p15 bra behind;"
#define SET(field, rest) "tensormap.replace.tile." field ".shared::cta.b1024." rest ";"
		SET("global_address", "b64 [%r31], %rd42") SET("rank", "b32 [%r31], %r42") SET("box_dim", "b32 [%r31], 0, %r40")
			SET("box_dim", "b32 [%r31], 1, %r41") SET("box_dim", "b32 [%r31], 2, %r42")
				SET("global_dim", "b32 [%r31], 0, %r43") SET("global_dim", "b32 [%r31], 1, %r44")
					SET("global_dim", "b32 [%r31], 2, %r45") SET("global_stride", "b64 [%r31], 0, %rd40")
						SET("global_stride", "b64 [%r31], 1, %rd41") SET("element_stride", "b32 [%r31], 1, %r42")
							SET("element_stride", "b32 [%r31], 2, %r41") SET("elemtype", "b32 [%r31], 10")
								SET("interleave_layout", "b32 [%r31], 0") SET("swizzle_mode", "b32 [%r31], 2") SET(
									"fill_mode", "b32 [%r31], 1") "behind: bar.sync 0; ld.shared.u32 %r33, [%r32]; add.u64 "
																  "%rd31, %rd0, %rd30; @%p5 st.global.u32 [%rd31], %r33;";

	all.swizzle = CPTX_SWIZZLE_64B;
	ck_assert(cptx_tensor_map_pack(&all, (uint8_t *)right, NULL));
	text_fine("sm_90a", 1, body, x);
	ck_assert_mem_eq(x, right, sizeof right);
}
END_TEST

START_TEST(a_swizzle_of_96_bytes)
{
	uint32_t x[WORDS];
	cptx_tensor_map_opt m = plain;
	static const char body[] =
		BULK_SETUP MAP BULK_EXPECT("768") "add.u32 %r21, %r61, 768; shl.b32 %r20, %r0, 2; add.u32 %r21, %r21, %r20;"
										  "mov.u32 %r22, 0; st.shared.u32 [%r21], %r22;" BOX("%rd5", XY)
											  BULK_WAIT("w", "0") "bar.sync 0;" SHOW;

	m.swizzle = CPTX_SWIZZLE_96B, m.box[0] = 24;
	trial t = trial_of("sm_103a", 1, &m, body, x);
	bulk_fine(&t);
	for (uint32_t i = 0; i < 192; i++) {
		uint32_t at = i * 4 ^ (i * 4 >> 7 & 1) << 4;
		ck_assert_uint_eq(x[at / 4], (2 + i / 24) * 64 + 4 + i % 24);
	}
	t.target = "sm_100a";
	bulk_found(&t, CPTX_FIND_TENSOR_MAP, "only sm_103a has it");
	free((char *)(uintptr_t)t.decls);
}
END_TEST

/* ---- what is wrong with maps ---- */

#define PLAIN(more, map) BULK_SETUP MAP BULK_EXPECT("1024") more BOX(map, XY) BULK_WAIT("w", "0")

START_TEST(maps_in_wrong_places)
{
	text_found(&plain, PLAIN("add.u64 %rd5, %rd5, 32;", "%rd5"), CPTX_FIND_TENSOR_MAP, "which must be a multiple of 64");
	text_found(&plain, PLAIN("mov.b64 %rd6, data; cvta.shared.u64 %rd6, %rd6;", "%rd6"), CPTX_FIND_TENSOR_MAP,
	           "the tensor map is in shared memory");
	text_found(&plain, PLAIN(".local .align 128 .b8 l[128]; mov.b64 %rd6, l; cvta.local.u64 %rd6, %rd6;", "%rd6"),
	           CPTX_FIND_TENSOR_MAP, "const __grid_constant__");
	text_found(&plain, PLAIN("mov.b64 %rd6, buf;", "%rd6"), CPTX_FIND_TENSOR_MAP, "these bytes are none of cptx");
	text_found(&plain, PLAIN("mov.b64 %rd6, 128;", "%rd6"), CPTX_FIND_BOUNDS, "nothing is allocated");
}
END_TEST

START_TEST(maps_that_break_rules)
{
	cptx_tensor_map_opt m = plain;

	text_found(&plain, PLAIN("add.u32 %r61, %r61, 64;", "%rd5"), CPTX_FIND_TENSOR_MAP, "it is a multiple of 128");
	text_found(&plain, PLAIN("mov.u32 %r10, 3;", "%rd5"), CPTX_FIND_TENSOR_MAP,
	           "of u32 it is a multiple of 4, which are 16");
	text_found(&plain, PLAIN("mov.u32 %r10, -2;", "%rd5"), CPTX_FIND_TENSOR_MAP, "coordinate -2 along dimension 0");
	m.swizzle = CPTX_SWIZZLE_64B;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_TENSOR_MAP, "with swizzle 64B; it is at most 64 bytes (16 elements)");
	m.swizzle = CPTX_SWIZZLE_128B_ATOM_64B;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_TENSOR_MAP, "which sm_90a has not");
	m = plain;
	m.stride[1] = 264;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_TENSOR_MAP, "stride 264 of dimension 1");
	m.stride[1] = 4096;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_BOUNDS, "behind the start of variable buf of 8192 bytes");
	m = plain;
	m.rank = 3, m.dim[2] = 1, m.box[2] = 1;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_TENSOR_MAP, "it has 3 dimensions; the instruction names 2");
	m.mode = CPTX_TENSOR_IM2COL, m.channels = 32, m.pixels = 8;
	text_found(&m, PLAIN("", "%rd5"), CPTX_FIND_TENSOR_MAP, "it was made for mode im2col");
}
END_TEST

START_TEST(bytes_and_waits)
{
	text_found(&plain, BULK_SETUP MAP BULK_EXPECT("512") BOX("%rd5", XY) BULK_WAIT("w", "0"), CPTX_FIND_TX_BYTES, "");
	text_found(&plain, BULK_SETUP MAP BULK_EXPECT("2048") BOX("%rd5", XY) BULK_WAIT("w", "0"), CPTX_FIND_TX_BYTES,
	           "2048 are expected, 1024 have come");
	text_found(&plain, BULK_SETUP MAP BULK_EXPECT("1024") BOX("%rd5", XY) "ld.shared.u32 %r1, [%r61];" BULK_WAIT("w", "0"),
	           CPTX_FIND_ASYNC_WAIT, "shared memory");
}
END_TEST

#define REDUCE(op)                                                                                                          \
	BULK_SETUP MAP "@%p15 cp.reduce.async.bulk.tensor.2d.global.shared::cta." op ".tile.bulk_group [%rd5, " XY              \
				   "], [%r61];" BULK_DONE

START_TEST(reductions_that_types_have_not)
{
	cptx_tensor_map_opt m = plain;

	m.type = CPTX_TENSOR_F32;
	text_found(&m, REDUCE("min"), CPTX_FIND_TENSOR_MAP, "type f32, which has no such operation");
	text_found(&m, REDUCE("and"), CPTX_FIND_TENSOR_MAP, "type f32, which has no such operation");
	m.type = CPTX_TENSOR_S32;
	text_found(&m, REDUCE("inc"), CPTX_FIND_TENSOR_MAP, "type s32");
}
END_TEST

/* ---- a map that the host has written to memory ---- */

static void map_in_memory(cptx_device *dev, const char *fence, cptx_error *err)
{
	char text[2048];
	cptx_tensor_map_opt opt = plain;
	cptx_tensor_map map;
	uint64_t at = cptx_mem_alloc(dev, sizeof map, err);

	opt.address = cptx_mem_alloc(dev, WORDS * 4, err);
	snprintf(
		text, sizeof text,
		".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<8>; .reg .b64 "
		"%%rd<4>; .reg .pred %%p<2>; .shared .align 128 .b8 to[1024]; .shared .b64 bar;\n"
		"ld.param.u64 %%rd0, [p]; mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; mov.u32 "
		"%%r0, 0;"
		"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; %s\n"
		"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [to], [%%rd0, {%%r0, %%r0}], "
		"[bar];"
		"w: mbarrier.try_wait.parity.shared::cta.b64 %%p0, [bar], 0; @!%%p0 bra w;\nret;\n}\n",
		fence);
	cptx_module *m = cptx_parse(text, strlen(text), NULL);
	cptx_program *program = cptx_device_load(dev, m, NULL, err);
	ck_assert_msg(cptx_tensor_map_make(dev, &opt, &map, err) && cptx_mem_write(dev, at, &map, sizeof map, err), "%s",
	              err->text);
	cptx_launch_once(program, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(at) }, NULL, err);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
}

START_TEST(maps_of_the_host)
{
	static const char *const fence[] = { "fence.proxy.tensormap::generic.acquire.sys [%rd0], 128;", "",
		                                 "fence.proxy.tensormap::generic.release.gpu;" };

	for (unsigned i = 0; i < 3; i++) {
		cptx_error err = { 0 };
		cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
		map_in_memory(dev, fence[i], &err);
		const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
		ck_assert_msg(i ? f && f->code == CPTX_FIND_PROXY && strstr(err.text, "acquire.sys of it must come before")
		                : !f && !err.code,
		              "%u: %s", i, err.text);
		cptx_device_close(dev);
	}
}
END_TEST

TRIAL_MAIN("emu_tma", boxes_at_the_end_of_shared_memory, loads, stores, reductions, a_box, to_many_ctas,
           the_mbarrier_of_the_peer, changed_maps, maps_changed_in_place, maps_of_other_blocks, each_field,
           a_swizzle_of_96_bytes, maps_in_wrong_places, maps_that_break_rules, bytes_and_waits,
           reductions_that_types_have_not, maps_of_the_host)
