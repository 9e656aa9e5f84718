/* SPDX-License-Identifier: MIT */
/* src/gemm/order.c: the order of tiles. */
#include "../test.h"

#include "../../src/gemm/tma/tma.h"

#include <cptx/cptx.h>
#include <cptx/device.h>

enum { THREADS = 128 };

/* Runs a kernel of one CTA with the arguments u0 to u5 (u64), each thread of which writes what `built` gives. */
static void run(cptx_val (*built)(cptx_kernel *k, const cptx_val u[6]), const uint64_t u[6], uint64_t to[THREADS])
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { THREADS });
	cptx_val d = cptx_param(k, CPTX_PTR, "d"), v[6];
	char name[] = "u0";

	for (int i = 0; i < 6; i++, name[1]++)
		v[i] = cptx_param(k, CPTX_U64, name);
	cptx_st(k, cptx_mad_wide(k, cptx_tid_x(k), 8, d), built(k, v), .space = CPTX_GLOBAL);
	cptx_device *dev = cptx_device_open("emu:sm_80", &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t at = cptx_mem_alloc(dev, THREADS * 8, &err);
	cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(at, u[0], u[1], u[2], u[3], u[4], u[5]) }, NULL,
	                 &err);
	cptx_mem_read(dev, to, at, THREADS * 8, &err);
	ck_assert_msg(!err.code, "%s", err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}

static cptx_val low(cptx_kernel *k, cptx_val v) { return cptx_cvt(k, v, .dtype = CPTX_U32); }

static gemm_order order;

/* Rows of a group for u0 + thread / 16 rows and u1 + thread % 16 columns, u2 at once. */
static cptx_val rows_of_group(cptx_kernel *k, const cptx_val u[6])
{
	cptx_val tid = cptx_tid_x(k), rows_ = cptx_add(k, low(k, u[0]), cptx_shr(k, tid, 4));

	cptx_val columns = cptx_add(k, low(k, u[1]), cptx_and(k, tid, 15)), at_once = low(k, u[2]);
	rows_ = gemm_order_rows_of(k, &order, rows_, columns, at_once);
	return cptx_cvt(k, rows_, .dtype = CPTX_U64);
}

/* A kernel orders tiles as the host does, and that is as measured: few rows or columns are walked as a whole; where tiles
 * are square in number, along what a CTA asks for less of. */
START_TEST(order_of_tiles)
{
	static const cptx_gemm_opt all[] = {
		{ .bm = 128, .bn = 256 },
		{ .bm = 64, .bn = 128, .cluster_m = 2 },
		{ .bm = 128, .bn = 64, .cluster_n = 2 },
		{ .bm = 256, .bn = 96, .cluster_n = 4 },
		{ .bm = 64, .bn = 8, .cluster_m = 8 },
	};
	static const uint64_t from[][2] = { { 1, 1 }, { 3, 40 }, { 40, 3 }, { 60, 20 }, { 1 << 20, 5 } };

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		for (unsigned j = 0; j < sizeof from / sizeof *from; j++) {
			uint64_t got[THREADS], u[6] = { from[j][0], from[j][1], 132 };
			order = gemm_order_of(&all[i], 132);
			run(rows_of_group, u, got);
			for (uint64_t t = 0; t < THREADS; t++)
				ck_assert_uint_eq(got[t], gemm_order_rows(&order, u[0] + t / 16, u[1] + t % 16, u[2]));
		}
	order = gemm_order_of(&all[0], 132);
	ck_assert_uint_eq(gemm_order_rows(&order, 4, 28, 132), 4);
	ck_assert_uint_eq(gemm_order_rows(&order, 28, 4, 132), 1);
	ck_assert_uint_eq(gemm_order_rows(&order, 32, 16, 132), 16);
	order = gemm_order_of(&all[1], 132);
	ck_assert_uint_eq(gemm_order_rows(&order, 8, 8, 66), 1);
	order = gemm_order_of(&all[2], 132);
	ck_assert_uint_eq(gemm_order_rows(&order, 8, 8, 66), 8);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("order");
	TCase *c = tcase_create("order");

	tcase_add_test(c, order_of_tiles);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("order", s);
}
