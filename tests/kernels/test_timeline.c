/* SPDX-License-Identifier: MIT */
/* cptx/timeline.h: what is off costs nothing, what is full stops, what comes out is the picture. */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/gemm.h>
#include <cptx/timeline.h>

#include <limits.h>

static cptx_ptx *emitted(cptx_module *m, const char *target)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);

	ck_assert_msg(ptx != NULL, "%s", err.text);
	cptx_module_destroy(m);
	return ptx;
}

/* stamps 0: no call of a timeline at all; 1: of one that is off. */
static cptx_ptx *without(int stamps)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val d = cptx_param(k, CPTX_PTR, "d");
	cptx_timeline t;

	if (stamps)
		cptx_timeline_begin(k, &t, .warps = 2, .events = 8);
	if (stamps)
		cptx_timeline_stamp(k, &t, 0);
	cptx_st(k, d, cptx_tid_x(k), .space = CPTX_GLOBAL);
	if (stamps)
		cptx_timeline_stamp_when(k, &t, CPTX_TIMELINE_END, cptx_val_int_(1));
	return emitted(m, "sm_90");
}

START_TEST(off_costs_nothing)
{
	cptx_ptx *plain = without(0), *off = without(1);

	ck_assert_str_eq(cptx_ptx_text(plain), cptx_ptx_text(off));
	cptx_ptx_destroy(plain), cptx_ptx_destroy(off);
}
END_TEST

/* The generators: with stamps there is a parameter and a timer, without neither. */
START_TEST(generators)
{
	for (int on = 0; on < 2; on++) {
		cptx_error err = { 0 };
		cptx_gemm_opt all[] = {
			{ .mma = CPTX_GEMM_WGMMA, .bm = 128, .bn = 128, .a = CPTX_BF16, .b = CPTX_BF16 },
			{ .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_F16, .bm = 128, .bn = 128, .a = CPTX_BF16, .b = CPTX_BF16 },
			{ .bm = 64, .bn = 64, .warps_m = 2, .warps_n = 2, .a = CPTX_E4M3, .b = CPTX_E4M3, .scale = CPTX_UE8M0 },
		};
		static const char *const target[] = { "sm_90a", "sm_100a", "sm_120a" };
		for (int i = 0; i < 3; i++) {
			cptx_module *m = cptx_module_new(NULL);
			all[i].stages = 2, all[i].out = CPTX_F32, all[i].timeline = on ? 64 : 0;
			ck_assert_msg(cptx_gemm_build(m, &all[i], &err) != NULL, "%s", err.text);
			cptx_ptx *ptx = emitted(m, target[i]);
			ck_assert_int_eq(strstr(cptx_ptx_text(ptx), "%globaltimer") != NULL, on);
			ck_assert_int_eq(strstr(cptx_ptx_text(ptx), "timeline") != NULL, on);
			cptx_ptx_destroy(ptx);
		}
	}
}
END_TEST

/* Runs a kernel, each warp of which makes 4 stamps where there is room for 3. */
static void run(cptx_module *m, const uint32_t grid[3], uint64_t bytes, uint64_t *data, cptx_error *err)
{
	cptx_device *dev = cptx_device_open("emu:sm_90", err);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	uint64_t b = cptx_mem_alloc(dev, bytes, err);

	cptx_mem_fill8(dev, b, 0, bytes, err);
	cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { grid[0], grid[1], grid[2] }, CPTX_ARGS(b) }, NULL, err);
	cptx_mem_read(dev, data, b, bytes, err);
	ck_assert_msg(!err->code, "%s", err->text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}

/* Of CTAs along all three axes 2 warps are declared, and there are 3; the third must leave no stamp. */
START_TEST(stamps)
{
	enum { CTAS = 2 * 3 * 2, EVENTS = 3, WORDS = CTAS * 2 * EVENTS * 2, BEHIND = 64 };
	uint64_t data[WORDS + BEHIND], seen[CTAS] = { 0 };
	cptx_timeline_layout l = { .ctas = CTAS, .warps = 2, .events = EVENTS };
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 96 });
	cptx_timeline t;

	cptx_timeline_begin(k, &t, .buffer = cptx_param(k, CPTX_PTR, "b"), .warps = 2, .events = EVENTS);
	cptx_val one = cptx_setp(k, cptx_and(k, cptx_tid_x(k), 31), 0, .cmp = CPTX_EQ);
	for (int i = 0; i < 4; i++)
		cptx_timeline_stamp_when(k, &t, i % 2, one);
	ck_assert_uint_eq(cptx_timeline_bytes(&l), WORDS * 8);
	run(m, (uint32_t[]){ 2, 3, 2 }, sizeof data, data, &err);
	for (unsigned i = 0; i < WORDS / 2; i++) {
		ck_assert_uint_eq(data[2 * i + 1], i % EVENTS % 2 + 1);
		ck_assert(!(i % EVENTS) || data[2 * i] >= data[2 * i - 2]);
		seen[i / (2 * EVENTS)]++;
	}
	for (unsigned i = WORDS; i < WORDS + BEHIND; i++)
		ck_assert_uint_eq(data[i], 0);
	for (unsigned i = 0; i < CTAS; i++)
		ck_assert_uint_eq(seen[i], 2 * EVENTS);
}
END_TEST

START_TEST(picture)
{
	static const char *const phases[] = { "first", "the \"other\"" };
	cptx_timeline_layout l = { .ctas = 2, .warps = 2, .events = 3, .phases = phases, .phase_count = 2 };
	static char json[4096];
	uint64_t fixed[] = { 5000, 1, 7500, 2, 8000, 0, 0, 0, 0, 0, 0, 0, 6000, 2, 6500, 9, 7000, 0, 0, 0, 0, 0, 0, 0 };
	size_t n = cptx_timeline_json(&l, fixed, NULL, 0);

	ck_assert_uint_eq(cptx_timeline_json(&l, fixed, json, sizeof json), n);
	ck_assert_uint_eq(strlen(json), n);
	ck_assert_msg(strstr(json, "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":0.000,\"dur\":2.500,\"name\":\"first\"}") != NULL,
	              "%s", json);
	ck_assert_msg(strstr(json, "\"ts\":2.500,\"dur\":0.500,\"name\":\"the \\u0022other\\u0022\"}") != NULL, "%s", json);
	ck_assert_msg(strstr(json, "{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":1.000,\"dur\":0.500") != NULL, "%s", json);
	ck_assert_msg(strstr(json, "\"ts\":1.500,\"dur\":0.500,\"name\":\"phase 8\"}") != NULL, "%s", json);
	ck_assert_msg(strstr(json, "\"name\":\"CTA 1\"") && strstr(json, "\"name\":\"warp 0\"") && !strstr(json, "warp 1"), "%s",
	              json);
	cptx_timeline_json(&l, fixed, json, 10);
	ck_assert_uint_eq(strlen(json), 9);
	n = cptx_timeline_json(NULL, NULL, json, sizeof json);
	ck_assert_msg(n == strlen(json) && strstr(json, "\"traceEvents\":[\n]}"), "%s", json);
}
END_TEST

START_TEST(limits)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_timeline t;

	cptx_timeline_begin(k, &t, .buffer = cptx_param(k, CPTX_PTR, "b"), .warps = 2);
	ck_assert_msg(strstr(cptx_module_error(m)->text, "a timeline of 2 warps with 0 stamps each; both are from 1 on") != NULL,
	              "%s", cptx_module_error(m)->text);
	cptx_module_destroy(m);
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_timeline_begin(k, &t, .buffer = cptx_param(k, CPTX_PTR, "b"), .warps = 2, .events = 4);
	cptx_timeline_stamp(k, &t, INT_MAX); /* phase + 1 has more than 31 bits */
	ck_assert(!cptx_module_error(m));
	cptx_timeline_stamp(k, &t, -2);
	ck_assert_msg(strstr(cptx_module_error(m)->text, "phase -2 of a timeline; they are from 0 on, and CPTX_TIMELINE_END") &&
	                  strstr(cptx_module_error(m)->text, "test_timeline.c:"),
	              "%s", cptx_module_error(m)->text);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(sizes)
{
	cptx_timeline_layout l = { .ctas = UINT32_MAX, .warps = 32, .events = 1 << 20 };

	ck_assert_uint_eq(cptx_timeline_bytes(&l), 32ull * UINT32_MAX * (1 << 24));
	l.warps = 1 << 12;
	ck_assert_uint_eq(cptx_timeline_bytes(&l), UINT64_MAX);
	l.events = 0;
	ck_assert_uint_eq(cptx_timeline_bytes(&l), 0);
	ck_assert_uint_eq(cptx_timeline_bytes(NULL), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("timeline");
	TCase *c = tcase_create("timeline");

	tcase_add_test(c, off_costs_nothing);
	tcase_add_test(c, generators);
	tcase_add_test(c, stamps);
	tcase_add_test(c, picture);
	tcase_add_test(c, limits);
	tcase_add_test(c, sizes);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("timeline", s);
}
