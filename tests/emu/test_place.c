/* SPDX-License-Identifier: MIT */
/* Memory at chosen addresses, several devices in one address space, and multimem over them. */
#include "trial.h"

#define HEAD ".version 8.6\n.target sm_100a\n.address_size 64\n"

static cptx_device *dev;
static cptx_error err;

static void open_it(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_emu_open("sm_100a", NULL, &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
}

static void close_it(void) { cptx_device_close(dev); }

#define OK(call)                                                                                                            \
	do {                                                                                                                    \
		memset(&err, 0, sizeof err);                                                                                        \
		ck_assert_msg((call), "%s", err.text);                                                                              \
	} while (0)
#define REFUSED(text_, call)                                                                                                \
	do {                                                                                                                    \
		memset(&err, 0, sizeof err);                                                                                        \
		ck_assert(!(call) && err.code == CPTX_E_ARG);                                                                       \
		ck_assert_msg(strstr(err.text, (text_)) != NULL, "%s", err.text);                                                   \
	} while (0)

static cptx_program *load(const char *text)
{
	cptx_program *p;

	OK((p = cptx_device_load_text(dev, text, strlen(text), NULL, &err)));
	return p;
}

static bool launch(const cptx_program *p, uint64_t a, uint64_t b)
{
	memset(&err, 0, sizeof err);
	return cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(a, b) }, NULL, &err);
}

/* *b = *a + 1 */
static const char next[] = HEAD ".visible .global .align 4 .u32 kept = 7;\n.entry k(.param .u64 a, .param .u64 b)\n{\n"
								".reg .b64 %p<3>; .reg .b32 %r<3>; ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b];\n"
								"ld.global.u32 %r1, [%p1]; add.u32 %r1, %r1, 1; st.global.u32 [%p2], %r1; ret;\n}\n";

/* ---- addresses ---- */

START_TEST(chosen_addresses)
{
	const uint64_t at = UINT64_C(0x302000000), high = UINT64_C(0x7fabc0000000);
	uint32_t v = 41;
	size_t run;

	OK(cptx_emu_alloc_at(dev, at, 8192, true, &err));
	OK(cptx_emu_alloc_at(dev, at + 8192, 100, false, &err)); /* right behind */
	OK(cptx_emu_alloc_at(dev, high, 64, true, &err));
	REFUSED("something is allocated there", cptx_emu_alloc_at(dev, at + 8100, 8192, true, &err));
	REFUSED("something is allocated there", cptx_emu_alloc_at(dev, at - 1, 2, true, &err));
	REFUSED("shared memory, local memory and functions", cptx_emu_alloc_at(dev, UINT64_C(0x7f0012345678), 4, true, &err));
	REFUSED("no address of so many bytes", cptx_emu_alloc_at(dev, UINT64_MAX - 8, 64, true, &err));
	REFUSED("no address of so many bytes", cptx_emu_alloc_at(dev, 0, 64, true, &err));
	/* what counts as written */
	ck_assert(cptx_emu_written(dev, at + 5, 100, &run) && run == 100);
	ck_assert(!cptx_emu_written(dev, at + 8192, 4096, &run) && run == 100);
	OK(cptx_mem_write(dev, at + 8192 + 13, &v, 4, &err));
	ck_assert(!cptx_emu_written(dev, at + 8192, 4096, &run) && run == 13);
	ck_assert(cptx_emu_written(dev, at + 8192 + 13, 4096, &run) && run == 4);
	ck_assert(!cptx_emu_written(dev, 4096, 64, &run) && run == 0);
	/* kernels use them, and a freed one is remembered and can be had again */
	cptx_program *p = load(next);
	OK(launch(p, at + 64, high) && cptx_mem_read(dev, &v, high, 4, &err) && v == 1);
	cptx_mem_free(dev, high);
	ck_assert(!launch(p, at, high) && strstr(err.text, "was freed"));
	ck_assert(cptx_emu_continue(dev));
	OK(cptx_emu_alloc_at(dev, high, 128, true, &err));
	OK(launch(p, at, high + 64));
	cptx_program_destroy(p);
}
END_TEST

START_TEST(variables)
{
	const uint64_t at = UINT64_C(0x123400000000);
	cptx_emu_variable_info v;
	uint32_t value = 0;

	OK(cptx_emu_place(dev, "kept", at, &err) && cptx_emu_place(dev, "no such variable", at, &err));
	cptx_program *p = load(next), *q = load(next); /* a wish is for one program */
	ck_assert(cptx_emu_variable(p, 0, &v) && v.at == at && v.bytes == 4 && !strcmp(v.name, "kept"));
	ck_assert(!cptx_emu_variable(p, 1, &v) && cptx_emu_variable(q, 0, &v) && v.at != at);
	OK(cptx_mem_read(dev, &value, at, 4, &err) && value == 7);
	OK(cptx_emu_place(dev, "kept", at + 1, &err));
	REFUSED("cannot lie at", cptx_device_load_text(dev, next, strlen(next), NULL, &err));
	REFUSED("wants the name", cptx_emu_place(dev, "", at, &err));
	cptx_program_destroy(p);
	cptx_program_destroy(q);
}
END_TEST

START_TEST(bytes_of_the_host)
{
	static uint32_t mine[64];
	uint64_t a;
	uint32_t v = 3;

	OK((a = cptx_mem_alloc(dev, sizeof mine, &err)) && cptx_mem_write(dev, a, &v, 4, &err));
	OK(cptx_emu_back(dev, a, mine, &err));
	cptx_program *p = load(next);
	OK(launch(p, a, a + 4) && mine[0] == 3 && mine[1] == 4);
	REFUSED("no allocation whose bytes can be replaced",
	        cptx_emu_back(dev, a, mine, &err)); /* they are the host's already */
	REFUSED("no allocation whose bytes can be replaced", cptx_emu_back(dev, a + 4, mine, &err));
	cptx_mem_free(dev, a);
	cptx_program_destroy(p);
}
END_TEST

/* ---- several clusters, each with its view of memory ---- */

/* CTA i stores 100 + i at a[i] and 200 + i at b[i]. */
static const char two[] = HEAD ".entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %p<4>; .reg .b32 %r<2>;\n"
							   "ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; mov.u32 %r1, %ctaid.x;\n"
							   "mul.wide.u32 %p3, %r1, 4; add.u64 %p1, %p1, %p3; add.u64 %p2, %p2, %p3;\n"
							   "add.u32 %r1, %r1, 100; st.global.u32 [%p1], %r1;\n"
							   "add.u32 %r1, %r1, 100; st.global.u32 [%p2], %r1; ret;\n}\n";

static bool launch_grid(const cptx_program *p, uint64_t a, uint64_t b)
{
	memset(&err, 0, sizeof err);
	return cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { 4 }, .block = { 1 }, CPTX_ARGS(a, b) }, NULL, &err);
}

/* Allocations that share a page of a view, and such as begin anywhere in one. */
START_TEST(neighbours)
{
	static const unsigned apart[] = { 16, 256, 512 }, start[] = { 0, 4, 8, 36, 56, 64, 1008, 1020 };
	cptx_program *p = load(two);
	uint64_t at = UINT64_C(0x600000000000);

	for (size_t i = 0; i < 2 * 3 * 8; i++) {
		const bool written = i & 1;
		const uint64_t a = at + start[i / 2 % 8], b = a + apart[i / 16];
		uint32_t x[4], y[4], none = 7;
		size_t run;
		at += 4096;
		OK(cptx_emu_alloc_at(dev, a, 16, written, &err) && cptx_emu_alloc_at(dev, b, 20, written, &err));
		OK(cptx_mem_write(dev, b + 16, &none, 3, &err));
		OK(launch_grid(p, a, b) && cptx_mem_read(dev, x, a, 16, &err) && cptx_mem_read(dev, y, b, 16, &err));
		for (unsigned k = 0; k < 4; k++)
			ck_assert_msg(x[k] == 100 + k && y[k] == 200 + k, "%zu: %u, %u", i, x[k], y[k]);
		ck_assert(cptx_emu_written(dev, a, 16, &run) && run == 16);
		ck_assert(cptx_emu_written(dev, b, 20, &run) && run == (written ? 20 : 19));
		ck_assert(cptx_emu_written(dev, b + 19, 1, &run) == written);
	}
	cptx_program_destroy(p);
}
END_TEST

START_TEST(alias_in_a_grid)
{
	static const char text[] =
		HEAD ".entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %p<4>; .reg .b32 %r<2>;\n"
			 "ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; mov.u32 %r1, %ctaid.x;\n"
			 "mul.wide.u32 %p3, %r1, 4; add.u64 %p1, %p1, %p3; add.u64 %p2, %p2, %p3;\n"
			 "add.u32 %r1, %r1, 100; st.global.u32 [%p1], %r1; fence.proxy.alias;\n"
			 "ld.global.u32 %r1, [%p2]; add.u32 %r1, %r1, 100; st.global.u32 [%p2+64], %r1; ret;\n}\n";
	const uint64_t at = UINT64_C(0x600000000000);
	uint64_t a;
	uint32_t v[32] = { 1, 1, 1, 1 };

	OK((a = cptx_mem_alloc(dev, 8192, &err)) && cptx_mem_write(dev, a + 4096, v, sizeof v, &err));
	OK(cptx_emu_alias(dev, at, a + 4096, 4096, &err));
	cptx_program *p = load(text);
	OK(launch_grid(p, a + 4096, at) && cptx_mem_read(dev, v, a + 4096, sizeof v, &err));
	for (unsigned i = 0; i < 4; i++)
		ck_assert_msg(v[i] == 100 + i && v[i + 16] == 200 + i, "%u %u", v[i], v[i + 16]);
	REFUSED("64 bytes aligned", cptx_emu_alias(dev, at + 8200, a, 64, &err));
	/* who has no access to the alias has none, whatever else the thread has used */
	OK(cptx_emu_act_as(dev, 1, &err) && cptx_emu_reach(dev, at, 1, &err));
	ck_assert(!launch_grid(p, a + 4096, at) && strstr(err.text, "memory of another device"));
	cptx_program_destroy(p);
}
END_TEST

/* What was freed bars nothing, though it is taken away later. */
START_TEST(freed_bars_nothing)
{
	const uint64_t at = UINT64_C(0x600000000000);
	cptx_emu_variable_info v;
	uint64_t a;

	for (unsigned i = 1; i <= 16; i++)
		OK(cptx_emu_alloc_at(dev, at + i * 65536, 256, true, &err));
	OK((a = cptx_mem_alloc(dev, 4096, &err)));
	for (unsigned i = 0; i < 3; i++) {
		OK(cptx_emu_alloc_at(dev, at + 1, 64, true, &err));
		cptx_mem_free(dev, at + 1);
		if (i == 0)
			OK(cptx_emu_alloc_at(dev, at, 1024, true, &err));
		if (i == 1)
			OK(cptx_emu_alias(dev, at, a, 1024, &err));
		if (i < 2)
			cptx_mem_free(dev, at);
	}
	OK(cptx_emu_place(dev, "kept", at, &err));
	cptx_program *p = load(next);
	ck_assert(cptx_emu_variable(p, 0, &v) && v.at == at);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(refused_text_takes_its_wishes)
{
	static const char bad[] = HEAD ".global .u32 kept; .entry k() { bogus; }\n";
	const uint64_t at = UINT64_C(0x123400000000);
	cptx_emu_variable_info v;

	OK(cptx_emu_place(dev, "kept", at, &err));
	ck_assert(!cptx_device_load_text(dev, bad, strlen(bad), NULL, &err));
	cptx_program *p = load(next);
	ck_assert(cptx_emu_variable(p, 0, &v) && v.at != at);
	cptx_program_destroy(p);
}
END_TEST

/* ---- devices ---- */

START_TEST(aliases)
{
	const uint64_t at = UINT64_C(0x400000000000);
	uint64_t a;
	uint32_t v = 9;

	OK((a = cptx_mem_alloc(dev, 65536, &err)) && cptx_emu_alias(dev, at, a + 4096, 8192, &err));
	OK(cptx_mem_write(dev, at + 4, &v, 4, &err) && cptx_mem_read(dev, &v, a + 4100, 4, &err) && v == 9);
	cptx_program *p = load(next);
	OK(launch(p, a + 4100, at + 8) && cptx_mem_read(dev, &v, a + 4104, 4, &err) && v == 10);
	REFUSED("not in one allocation", cptx_emu_alias(dev, at + 65536, a + 4, 64, &err));
	REFUSED("not in one allocation", cptx_emu_alias(dev, at + 65536, a + 64, 65536, &err));
	REFUSED("not in one allocation", cptx_emu_alias(dev, at + 65536, at, 64, &err)); /* an alias of an alias */
	cptx_mem_free(dev, a);
	ck_assert_ptr_nonnull(strstr(cptx_emu_finding_at(dev, 0)->text, "at another address"));
	cptx_mem_free(dev, at);
	cptx_mem_free(dev, a);
	ck_assert(!launch(p, a + 4100, a) && cptx_emu_finding_at(dev, 1) && !cptx_emu_finding_at(dev, 2));
	cptx_program_destroy(p);
}
END_TEST

START_TEST(reach)
{
	uint64_t mine, other, all;
	uint32_t v = 1;

	REFUSED("there are numbers 0 to 63", cptx_emu_act_as(dev, CPTX_EMU_DEVICES, &err));
	OK(cptx_emu_act_as(dev, 63, &err) && (other = cptx_mem_alloc(dev, 64, &err)) && (all = cptx_emu_unified(dev, 64, &err)));
	OK(cptx_mem_write(dev, other, &v, 4, &err));
	OK(cptx_emu_act_as(dev, 2, &err) && (mine = cptx_mem_alloc(dev, 64, &err)));
	cptx_program *p = load(next);
	OK(launch(p, all, mine));
	ck_assert(!launch(p, other, mine) && strstr(err.text, "memory of another device, which device 2 has no access to"));
	ck_assert(cptx_emu_continue(dev));
	OK(cptx_emu_reach(dev, other, UINT64_C(1) << 63 | 4, &err) && launch(p, other, mine));
	OK(cptx_emu_reach(dev, other, UINT64_C(1) << 63, &err) && !launch(p, other, mine));
	REFUSED("nothing is allocated", cptx_emu_reach(dev, 64, 1, &err));
	cptx_program_destroy(p);
}
END_TEST

/* Sums over three members, of all kinds of numbers. */
START_TEST(multimem)
{
	static const char text[] = HEAD
		".entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %p<4>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .f64 %d<2>;\n"
		"ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b];\n"
		"multimem.ld_reduce.relaxed.gpu.global.xor.b32 %r1, [%p1]; st.global.u32 [%p2], %r1;\n"
		"multimem.ld_reduce.weak.global.min.s64 %p3, [%p1+8]; st.global.u64 [%p2+8], %p3;\n"
		"multimem.ld_reduce.weak.global.add.f64 %d1, [%p1+16]; st.global.f64 [%p2+16], %d1;\n"
		/* 2048, 1, 1: halves lose the ones, a sum of f32 does not */
		"multimem.ld_reduce.weak.global.add.v2.f16 {%h1, %h2}, [%p1+24];\n"
		"multimem.ld_reduce.weak.global.add.acc::f32.v2.f16 {%h3, %h4}, [%p1+24];\n"
		"st.global.v4.b16 [%p2+24], {%h1, %h2, %h3, %h4};\n"
		"multimem.ld_reduce.weak.global.max.v2.bf16x2 {%r3, %r4}, [%p1+32]; st.global.v2.b32 [%p2+32], {%r3, %r4};\n"
		"multimem.ld_reduce.weak.global.add.e4m3x4 %r5, [%p1+40]; st.global.u32 [%p2+40], %r5;\n"
		"multimem.red.relaxed.gpu.global.add.u32 [%p1+48], 5; multimem.st.weak.global.b32 [%p1+52], %r1; ret;\n}\n";
	typedef struct numbers {
		uint32_t x, gap;
		int64_t least;
		double sum;
		uint16_t half[4];
		uint32_t most[2], small, gap2, count, stored;
	} numbers;
	numbers n = { 0 }, out;
	uint64_t member[3], a, b;

	for (unsigned i = 0; i < 3; i++) {
		n = (numbers){ .x = 1u << i, .least = i == 1 ? -5 : 4, .sum = 0.25 * (i + 1), .count = i };
		n.half[0] = i ? 0x3c00 : 0x6800, n.half[1] = 0x4000; /* 2048 or 1; 2 */
		n.most[0] = i == 2 ? 0x40004000 : 0x3f80bf80;        /* 2 2, or 1 and -1 */
		n.small = i ? 0x38383838 : 0x40404040;               /* e4m3: 1, or 2 */
		OK(cptx_emu_act_as(dev, i, &err) && (member[i] = cptx_mem_alloc(dev, 4096, &err)));
		OK(cptx_mem_write(dev, member[i], &n, sizeof n, &err));
	}
	OK(cptx_emu_act_as(dev, 0, &err) && (a = cptx_mem_alloc(dev, 4096, &err)) && (b = cptx_mem_alloc(dev, 4096, &err)));
	REFUSED("is no allocation, or a member", cptx_emu_multicast(dev, a + 64, member, 3, &err));
	REFUSED("1 to 64 members", cptx_emu_multicast(dev, a, member, 0, &err));
	OK(cptx_emu_multicast(dev, a, member, 3, &err));
	cptx_program *p = load(text);
	OK(launch(p, a, b) && cptx_mem_read(dev, &out, b, sizeof out, &err));
	ck_assert(out.x == 7 && out.least == -5 && out.sum == 1.5);
	ck_assert(out.half[0] == 0x6800 && out.half[2] == 0x6801 && out.half[1] == 0x4600 && out.half[3] == 0x4600);
	ck_assert(out.most[0] == 0x40004000 && out.small == 0x48484848);
	for (unsigned i = 0; i < 3; i++) {
		OK(cptx_mem_read(dev, &n, member[i], sizeof n, &err));
		ck_assert(n.count == i + 5 && n.stored == 7);
	}
	cptx_program_destroy(p);
	p = load(next);
	ck_assert(!launch(p, a, b) && strstr(err.text, "which only multimem instructions may use"));
	cptx_program_destroy(p);
}
END_TEST

/* Bytes are those of the whole vector. */
START_TEST(multimem_counts)
{
	static const char text[] =
		HEAD ".entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %p<2>; .reg .f32 %f<5>;\nld.param.u64 %p1, [a];\n"
			 "multimem.ld_reduce.weak.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%p1];\n"
			 "multimem.st.weak.global.v2.f32 [%p1+16], {%f1, %f2};\n"
			 "multimem.red.relaxed.gpu.global.add.v4.f32 [%p1+32], {%f1, %f2, %f3, %f4}; ret;\n}\n";
	static const float zero[16];
	cptx_emu_counters n;
	uint64_t a;

	OK((a = cptx_mem_alloc(dev, 64, &err)) && cptx_mem_write(dev, a, zero, sizeof zero, &err));
	cptx_program *p = load(text);
	OK(launch(p, a, a) && cptx_emu_get_counters(dev, &n));
	ck_assert_uint_eq(n.global_read, 32);
	ck_assert_uint_eq(n.global_written, 24);
	cptx_program_destroy(p);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { chosen_addresses,
		                           variables,
		                           bytes_of_the_host,
		                           neighbours,
		                           alias_in_a_grid,
		                           freed_bars_nothing,
		                           refused_text_takes_its_wishes,
		                           aliases,
		                           reach,
		                           multimem,
		                           multimem_counts };
	Suite *s = suite_create("emu_place");
	TCase *c = test_case(s, "place");

	tcase_add_checked_fixture(c, open_it, close_it);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		tcase_add_test(c, tests[i]);
	return test_main("emu_place", s);
}
