/* SPDX-License-Identifier: MIT */
/* cptx/tmem.h: blocks that are freed, limits, every load and store; maps and descriptors of tiles as code. */
#include "../ask.h"
#include "../test.h"
#include "rungs.h"

#include <cptx/cptx.h>

static cptx_module *m;
static cptx_kernel *k;
static cptx_val first_warp;

static void begin(void)
{
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k", .block = { 128 });
	first_warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT);
}

static void fails(const char *says)
{
	const cptx_error *e = cptx_module_error(m);

	ck_assert_msg(e && strstr(e->text, says), "%s\nnot: %s", e ? e->text : "no error", says);
	ck_assert_msg(strstr(e->text, "test_tmem.c:") != NULL, "%s", e->text);
	cptx_module_destroy(m);
}

START_TEST(limits)
{
	cptx_tmem a, b, c;

	begin();
	CPTX_TMEM(k, &a, .columns = 513, .warp = first_warp)
		cptx_comment(k, "nothing");
	fails("513 columns of tensor memory; there are 1 to 512");
	begin();
	CPTX_TMEM(k, &a, .warp = first_warp)
		cptx_comment(k, "nothing");
	fails("0 columns of tensor memory");
	begin();
	CPTX_TMEM(k, &a, .columns = 32)
		cptx_comment(k, "nothing");
	fails("no warp that allocates tensor memory");
	begin();
	CPTX_TMEM(k, &a, .columns = 32, .ctas = 3, .warp = first_warp)
		cptx_comment(k, "nothing");
	fails("tensor memory of 3 CTAs");
	begin();
	CPTX_TMEM(k, &a, .columns = 256, .more = true, .warp = first_warp)
		CPTX_TMEM(k, &b, .columns = 129, .more = true, .warp = first_warp)
			CPTX_TMEM(k, &c, .columns = 1, .warp = first_warp)
				cptx_comment(k, "nothing");
	fails("32 columns of tensor memory, where 512 are allocated already");
	/* one after the other is well, and sizes are rounded */
	begin();
	for (int i = 0; i < 2; i++)
		CPTX_TMEM(k, &a, .columns = 257, .more = true, .warp = first_warp)
			cptx_comment(k, "nothing");
	ck_assert_uint_eq(a.opt.columns, 512);
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(ways_out)
{
	cptx_tmem a;
	cptx_val out;

	begin();
	CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp)
		cptx_ret(k, .when = first_warp);
	fails("ret leaves a block of tensor memory, whose 32 columns would never be freed");
	begin();
	CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp)
		cptx_exit(k);
	fails("exit leaves a block");
	begin();
	out = cptx_label(k);
	CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp)
		cptx_bra(k, out, .when = first_warp);
	fails("bra leaves a block");
	/* the C code itself goes another way: seen where the kernel ends */
	for (int inner = 0; inner < 2; inner++) {
		cptx_error err = { 0 };
		begin();
		CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp) {
			if (inner) {
				CPTX_IF(k, first_warp)
					break;
			} else {
				break;
			}
		}
		ck_assert_ptr_null(cptx_emit(m, "sm_100a", NULL, &err));
		ck_assert_msg(strstr(err.text, inner ? "CPTX_IF is never closed (left by break, goto or return?)"
		                                     : "CPTX_TMEM is never closed (left by break, goto or return?)") != NULL &&
		                  strstr(err.text, "test_tmem.c:") != NULL,
		              "%s", err.text);
		cptx_module_destroy(m);
	}
	begin();
	CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp) {
		cptx_val inside = cptx_label(k);
		cptx_bra(k, inside, .when = first_warp);
		CPTX_IF(k, first_warp)
			cptx_comment(k, "branches of its own are well");
		cptx_place(k, inside);
	}
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	cptx_module_destroy(m);
}
END_TEST

/* Each call, on targets without tensor memory: the user's line, which targets have it, what to use there. */
START_TEST(other_targets)
{
	static const char *const targets
		[] = { "sm_90a", "sm_120a" },
 *const says[] = {
	 "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 is not available on %s; targets that have it: sm_100f sm_100a",
	 "Instead: registers hold accumulators there: no tensor memory is allocated",
	 "tcgen05.ld.sync.aligned.32x32b.x4.b32 is not available on %s; targets that have it: sm_100f sm_100a",
	 "Instead: read the accumulators of mma or wgmma in their registers",
	 "tcgen05.st.sync.aligned.32x32b.x4.b32 is not available on %s; targets that have it: sm_100f sm_100a",
	 "Instead: accumulators are registers there",
 };

	for (unsigned i = 0; i < 6; i++) {
		const char *target = targets[i % 2];
		cptx_tmem a;
		cptx_error err = { 0 };
		char text[200];
		begin();
		if (i / 2 == 0)
			CPTX_TMEM(k, &a, .columns = 32, .warp = first_warp)
				cptx_comment(k, "nothing");
		else if (i / 2 == 1)
			cptx_tmem_load(k, cptx_tid_x(k), .num = 4);
		else
			cptx_tmem_store(k, cptx_tid_x(k), cptx_regs(k, CPTX_B32, 4));
		ck_assert_ptr_null(cptx_emit(m, target, NULL, &err));
		snprintf(text, sizeof text, says[i / 2 * 2], target);
		ck_assert_msg(strstr(err.text, text) && strstr(err.text, says[i / 2 * 2 + 1]) && strstr(err.text, "test_tmem.c:"),
		              "%s\nnot: %s", err.text, text);
		cptx_module_destroy(m);
	}
}
END_TEST

/* Registers that a load gives are stored back: every shape and width, run on the emulator and shown to ptxas. */
START_TEST(loads_and_stores)
{
	static const struct {
		enum cptx_mod shape;
		uint32_t each, most;
	} shapes[] = { { CPTX_SHAPE_32X32B, 1, 128 },
		           { CPTX_SHAPE_16X64B, 1, 128 },
		           { CPTX_SHAPE_16X128B, 2, 64 },
		           { CPTX_SHAPE_16X256B, 4, 32 },
		           { CPTX_SHAPE_16X32BX2, 1, 128 } };
	unsigned tried = 0;
	cptx_error err = { 0 };
	char said[8192];

	for (unsigned i = 0; i < 5; i++)
		for (uint32_t num = 1; num <= shapes[i].most; num *= 2, tried++) {
			cptx_tmem a;
			begin();
			cptx_val d = cptx_param(k, CPTX_PTR, "d");
			CPTX_TMEM(k, &a, .columns = 512, .warp = first_warp) {
				cptx_val quarter = cptx_and(k, cptx_tid_x(k), 96),
						 at = cptx_mad(k, quarter, 65536, a.address, .mode = CPTX_LO);
				cptx_val v = cptx_regs(k, CPTX_B32, num * shapes[i].each);
				for (uint32_t r = 0; r < v.count; r++)
					cptx_mad(k, cptx_tid_x(k), 1000, r, .mode = CPTX_LO, .into = cptx_as(cptx_elem(v, r), CPTX_U32));
				cptx_tmem_store(k, at, v, .shape = shapes[i].shape, .split = 128);
				cptx_tcgen05_wait(k, .op = CPTX_WAIT_ST);
				cptx_val w = cptx_tmem_load(k, at, .shape = shapes[i].shape, .num = num, .split = 128);
				cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
				ck_assert_uint_eq(w.count, num * shapes[i].each);
				for (uint32_t r = 0; r < w.count; r++)
					cptx_st(k, cptx_offset(cptx_mad_wide(k, cptx_tid_x(k), w.count * 4, d), r * 4), cptx_elem(w, r),
					        .space = CPTX_GLOBAL);
			}
			cptx_device *dev = cptx_device_open("emu:sm_100a", &err);
			cptx_program *p = cptx_device_load(dev, m, NULL, &err);
			uint32_t n = 128 * num * shapes[i].each, *back = calloc(n, sizeof *back);
			uint64_t to = cptx_mem_alloc(dev, n * 4ull, &err);
			cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(to) }, NULL, &err);
			cptx_mem_read(dev, back, to, n * 4ull, &err);
			ck_assert_msg(!err.code, "%s", err.text);
			for (uint32_t j = 0; j < n; j++)
				ck_assert_uint_eq(back[j], j / (n / 128) * 1000 + j % (n / 128));
			cptx_ptx *ptx = cptx_emit(m, "sm_103a", NULL, &err);
			if (test_ptxas())
				ck_assert_msg(!ptxas_run(test_ptxas(), "sm_103a", cptx_ptx_text(ptx), cptx_ptx_size(ptx), said, sizeof said),
				              "%s", said);
			free(back);
			cptx_ptx_destroy(ptx);
			cptx_program_destroy(p);
			cptx_device_close(dev);
			cptx_module_destroy(m);
		}
	ck_assert_uint_eq(tried, 8 + 8 + 7 + 6 + 8);
	if (!test_ptxas())
		skip("ptxas, to judge loads and stores");
}
END_TEST

START_TEST(bad_moves)
{
	begin();
	cptx_tmem_load(k, first_warp, .num = 3);
	fails("tensor memory by 3; it is moved by 1, 2, 4, 8, 16, 32, 64 or 128 times the shape");
	begin();
	cptx_tmem_store(k, cptx_tid_x(k), cptx_regs(k, CPTX_B32, 6), .shape = CPTX_SHAPE_16X128B);
	fails("tensor memory by 3");
}
END_TEST

START_TEST(maps_of_tiles)
{
	cptx_tile t = { .rows = 64, .cols = 128, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B };
	cptx_tensor_map_opt o;
	cptx_error err = { 0 };

	ck_assert_msg(cptx_tile_tensor_map_3d(&t, CPTX_TENSOR_BF16, 4096, 100, 320, 0, &o, &err), "%s", err.text);
	ck_assert(o.rank == 3 && o.dim[0] == 64 && o.dim[1] == 100 && o.dim[2] == 5);
	ck_assert(o.stride[1] == 640 && o.stride[2] == 128 && o.box[0] == 64 && o.box[1] == 64 && o.box[2] == 2);
	ck_assert_uint_eq(cptx_tensor_map_box_bytes(&o), cptx_tile_bytes(&t));
	ck_assert(!cptx_tile_tensor_map_3d(&t, CPTX_TENSOR_BF16, 4096, 100, 328, 0, &o, &err));
	ck_assert_msg(strstr(err.text, "328 elements along the contiguous dimension; seen as spans, they are a multiple of 64"),
	              "%s", err.text);
	ck_assert_uint_eq(cptx_tile_word_step(&t, 0, 16), 2);
	ck_assert_uint_eq(cptx_tile_word_step(&t, 8, 64), (64 * 128 + 1024) / 16);
	t.swizzle = CPTX_SWIZZLE_NONE;
	ck_assert_uint_eq(cptx_tile_word_step(&t, 0, 16), 2 * 64);
	begin();
	t.rows = 60;
	cptx_tile_word(k, &t, CPTX_DESC_TCGEN05, cptx_tid_x(k));
	fails("60 rows; a descriptor counts them in groups of 8");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tmem");
	TCase *c = tcase_create("tmem");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_test(c, limits);
	tcase_add_test(c, ways_out);
	tcase_add_test(c, other_targets);
	tcase_add_test(c, loads_and_stores);
	tcase_add_test(c, bad_moves);
	tcase_add_test(c, maps_of_tiles);
	suite_add_tcase(s, c);
	return test_main("tmem", s);
}
