/* SPDX-License-Identifier: MIT */
/* Rows of any length and at any distance, by every generator: on the emulator, or on a GPU that has the kernel.  What lies
 * between rows and behind matrices is not written, and beside the matrices nothing is read. */
#include "gemm_draw.h"
#include "gemm_tests.h"

#include <cptx/edit.h>

enum {
	A = CPTX_GEMM_A,
	B = CPTX_GEMM_B,
	D = CPTX_GEMM_D,
	BY_CP_ASYNC = 0,
	BY_TMA,
	BY_WGMMA,
	BY_TCGEN05,
	BY_SCALED,
	KERNELS
};

static const char *const targets[KERNELS][2] = {
	{ "sm_80", "sm_89" }, { "sm_90a", "sm_120a" }, { "sm_90a", "sm_90a" }, { "sm_100a", "sm_103a" }, { "sm_120a", "sm_121a" }
};

/* A small kernel of each generator. */
static cptx_gemm_opt kernel_of(unsigned by)
{
	cptx_gemm_opt o = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .bm = 64, .bn = 64, .stages = 2, .strided = true };

	switch (by) {
	case BY_WGMMA: o.mma = CPTX_GEMM_WGMMA, o.bn = 32; break;
	case BY_TCGEN05: o.mma = CPTX_GEMM_TCGEN05, o.kind = CPTX_TCGEN05_F16, o.bm = 128, o.bn = 32; break;
	case BY_SCALED: o.a = CPTX_E4M3, o.b = CPTX_E5M2, o.scale = CPTX_UE8M0, o.warps_m = 2, o.warps_n = 2; break;
	default: o.bk = 32, o.warps_m = 2, o.warps_n = 2, o.tma = by == BY_TMA; break;
	}
	return o;
}

static void runs(gemm_trial *t, unsigned by, unsigned seed)
{
	t->seed = seed;
	t->ctas = seed % 2 ? 0 : 3;
	gemm_right(t, targets[by], seed);
}

/* Distances alone: rows of whole 16 bytes that are further apart, matrices with room between them, one for all. */
START_TEST(rows_and_matrices_at_a_distance)
{
	gemm_trial t = { .m = 70, .n = 48, .k = 80, .batch = 2, .opt = kernel_of((unsigned)_i) };
	const uint32_t each = _i == BY_SCALED ? 16 : 8;

	t.opt.batched = true, t.opt.beta = true;
	for (unsigned w = 0; w < 4; w++)
		t.place[w] = (gemm_trial_place){ .pad = each * (1 + w % 2), .gap = each * (3 - w % 3) };
	t.place[_i % 2].shared = true, t.one_row_of_c = _i == BY_TMA, t.place[2].shared = _i == BY_WGMMA;
	runs(&t, (unsigned)_i, (unsigned)_i);
}
END_TEST

/* Rows of D that begin at even elements and end at odd ones: what lies behind them stays. */
START_TEST(rows_of_d_end_in_a_pair)
{
	gemm_trial t = { .m = 70, .n = 71, .k = 80, .opt = kernel_of(BY_CP_ASYNC) };

	t.place[3].pad = 1;
	runs(&t, BY_CP_ASYNC, 0);
}
END_TEST

/* Each matrix of a batch has a D whose rows begin anywhere. */
START_TEST(rows_of_d_of_each_matrix)
{
	gemm_trial t = { .m = 65, .n = 33, .k = 64, .batch = 2, .opt = kernel_of(_i < 2 ? BY_WGMMA : BY_TCGEN05) };

	t.opt.batched = true, t.opt.unaligned = D, t.opt.strided = _i != 1;
	if (t.opt.strided)
		t.place[3] = (gemm_trial_place){ .off = 1, .pad = 2, .gap = 3 };
	gemm_right_always(&t, targets[_i < 2 ? BY_WGMMA : BY_TCGEN05], 0);
}
END_TEST

/* No multiple of 16 bytes anywhere. */
START_TEST(rows_of_any_length)
{
	static const uint64_t sizes[][3] = { { 35, 33, 67 }, { 1, 1, 1 }, { 17, 35, 69 } };
	const unsigned by = (unsigned)_i / 3, i = (unsigned)_i % 3;
	gemm_trial t = { .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2], .opt = kernel_of(by) };
	cptx_gemm_opt *o = &t.opt;

	o->unaligned = A | B | D, o->strided = i > 0;
	o->out = i == 1 ? CPTX_BF16 : CPTX_F32;
	o->beta = i == 2, o->bias = i == 2, o->alpha = i == 0;
	if (i == 2) {
		t.batch = 2, o->batched = true;
		for (unsigned w = 0; w < 4; w++)
			t.place[w] = (gemm_trial_place){ .off = 1 + w, .pad = w, .gap = 5 - w };
		t.place[1].shared = true;
	}
	runs(&t, by, (unsigned)_i);
}
END_TEST

/* By columns, transposed, with tiles shared along K, and of other types. */
START_TEST(other_layouts)
{
	gemm_trial t = { .m = 35, .n = 45, .k = 67, .opt = kernel_of(BY_WGMMA) };
	cptx_gemm_opt *o = &t.opt;
	unsigned by = BY_WGMMA;

	o->unaligned = A | B | D;
	switch (_i) {
	case 0: o->a_m_major = true, o->b_n_major = true, o->bn = 64; break;
	case 1: o->swap = true, o->out = CPTX_BF16, o->stream_k = true; break;
	case 2: o->a = CPTX_E4M3, o->b = CPTX_E5M2, o->cluster_m = 2; break;
	case 3: *o = kernel_of(by = BY_CP_ASYNC), o->unaligned = A | B, o->a_m_major = true, o->stream_k = true; break;
	case 4: *o = kernel_of(by = BY_CP_ASYNC), o->unaligned = B, o->b_n_major = true, t.k = 136; break;
	case 5: *o = kernel_of(by = BY_TCGEN05), o->unaligned = A | B | D, o->swap = true, o->stream_k = true; break;
	case 6:
		*o = kernel_of(by = BY_TCGEN05), o->unaligned = A | B | D, o->a = o->b = CPTX_TF32, o->kind = CPTX_TCGEN05_TF32;
		break;
	default: *o = kernel_of(by = BY_TMA), o->unaligned = B | D, t.k = 128, o->b_n_major = true, o->out = CPTX_F16; break;
	}
	runs(&t, by, (unsigned)_i);
}
END_TEST

/* Options at random of a generator, with rows of any length and at any distance of some matrices. */
static gemm_trial draw_any(unsigned by, uint64_t seed)
{
	static gemm_trial (*const draws[KERNELS])(uint64_t seed) = { gemm_draw_sm80, gemm_draw_sync_tma, gemm_draw_sm90,
		                                                         gemm_draw_sm100, gemm_draw_sm120 };
	uint64_t s = gemm_trial_random(seed + 77);
	gemm_trial t = draws[by](seed);
	cptx_gemm_opt *o = &t.opt;
	const bool bytes = number_packed_bits(o->a) >= 8 && number_packed_bits(o->b) >= 8;

	if (o->grouped)
		o->grouped = false, t.batch = 0;
	o->unaligned = bytes ? 1 + below(&s, 7) : (unsigned)D, o->strided = true;
	o->cluster_m = o->cluster_m ? 1 + below(&s, 2) : 0, o->cluster_n = o->cluster_n && o->cluster_m < 2 ? 1 + below(&s, 2)
	                                                                   : o->cluster_n                   ? 1
	                                                                                                    : 0;
	if (o->unaligned & D)
		t.n += o->b_n_major && !(o->unaligned & B) ? 0 : below(&s, 8);
	if (o->unaligned & A && o->unaligned & B)
		t.k += below(&s, 8), t.m += below(&s, 8);
	for (unsigned w = 0; w < 4; w++) {
		t.place[w] = (gemm_trial_place){ .off = 0 }; /* the draw's was for another .unaligned */
		if (o->unaligned >> (w < 2 ? w : 2) & 1)
			t.place[w] = (gemm_trial_place){
				.off = below(&s, 4), .pad = below(&s, 6), .gap = below(&s, 9), .shared = w < 3 && below(&s, 4) == 0
			};
	}
	t.in_place = false;
	return t;
}

/* What the checks let through is right.  CPTX_GEMM_TRIALS=200 by hand. */
START_TEST(options_at_random)
{
	unsigned want = gemm_trials(12);

	for (uint64_t seed = 1; want; seed++) {
		gemm_trial t = draw_any((unsigned)_i, seed);
		const cptx_gemm_problem p = { .m = t.m, .n = t.n, .k = t.k, .batch = t.batch };
		cptx_error err = { .code = CPTX_OK };
		/* with the first target: of some types a later one alone has the instructions */
		if (!cptx_gemm_check(&t.opt, cptx_target_find(targets[_i][0]), NULL, NULL))
			continue;
		if (!cptx_gemm_check_problem(&t.opt, &p, 8, NULL, &err)) { /* rows that are aligned by themselves alone */
			ck_assert_msg(strstr(err.text, " a multiple of") || strstr(err.text, "clusters of"), "%s", err.text);
			continue;
		}
		gemm_right(&t, targets[_i], (unsigned)seed);
		want--;
	}
}
END_TEST

/* cptx_gemm_auto finds out what a problem asks for. */
START_TEST(the_search_sees_what_is_unaligned)
{
	static const struct {
		cptx_gemm_problem p;
		bool beta, tma;
		uint32_t want;
	} of[] = {
		{ { .m = 64, .n = 64, .k = 64 }, false, true, 0 },
		{ { .m = 64, .n = 64, .k = 65 }, false, true, A | B },
		{ { .m = 64, .n = 63, .k = 64 }, false, true, D },
		{ { .m = 64, .n = 64, .k = 65, .lda = 72 }, false, true, B },
		{ { .m = 64, .n = 64, .k = 64, .a = 258, .b = 256, .d = 256 }, false, true, A },
		{ { .m = 64, .n = 63, .k = 64, .ldd = 64 }, false, true, D },
		{ { .m = 64, .n = 64, .k = 64, .ldc = 65, .ldd = 64 }, true, true, D },
		{ { .m = 64, .n = 64, .k = 64, .ldc = 65, .ldd = 64 }, false, true, 0 },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .beta = of[i].beta };
		cptx_gemm_choice c;
		cptx_error err = { .code = CPTX_OK };
		ck_assert_msg(cptx_gemm_auto(&o, &of[i].p, 132, &c, 1, &err) == 1, "%zu: %s", i, err.text);
		ck_assert_msg(c.opt.unaligned == of[i].want, "%zu: unaligned is %u", i, c.opt.unaligned);
		ck_assert_int_eq(c.opt.strided, of[i].p.lda || of[i].p.ldc || of[i].p.ldd);
	}
}
END_TEST

/* cptx_gemm_tune copies A and B as they are stored: with what lies between rows, and one for all but once. */
START_TEST(tuning_copies_what_is_stored)
{
	enum { SIDE = 64, FAR = 72, BATCH = 2 };
	cptx_gemm_choice c = { .us = 5000, .opt = kernel_of(BY_CP_ASYNC) };
	cptx_gemm_problem p = { .m = SIDE, .n = SIDE, .k = SIDE, .batch = BATCH, .lda = FAR, .stride_b = CPTX_GEMM_BROADCAST };
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = gemm_device(&c.opt, "sm_80", &(cptx_emu_opt){ .sms = 4 });
	const uint64_t bytes[] = { ((BATCH * SIDE - 1) * FAR + SIDE) * 2, SIDE * SIDE * 2, BATCH * SIDE * SIDE * 4 };
	uint64_t *const at[] = { &p.a, &p.b, &p.d };

	c.opt.batched = true;
	for (unsigned i = 0; i < 3; i++)
		ck_assert((*at[i] = cptx_mem_alloc(dev, bytes[i], &err)) && cptx_mem_fill8(dev, *at[i], 0, bytes[i], &err));
	ck_assert_msg(cptx_gemm_tune(dev, &p, &c, 1, &err), "%s", err.text);
	for (unsigned i = 0; i < 3; i++)
		cptx_mem_free(dev, *at[i]);
	gemm_device_done(dev, "tune");
}
END_TEST

/* ---- what is refused ---- */

#define REFUSED(words, ...)                                                                                                 \
	do {                                                                                                                    \
		const cptx_gemm_problem p_ = { .m = 64, .n = 64, .k = 64, __VA_ARGS__ };                                            \
		ck_assert(!cptx_gemm_check_problem(&o, &p_, 8, NULL, FRESH(&err)));                                                 \
		ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);                                                     \
	} while (0)

START_TEST(distances_have_rules)
{
	const cptx_gemm_problem odd = { .m = 64, .n = 71, .k = 128, .ldd = 72 };
	cptx_gemm_opt o = kernel_of(BY_WGMMA);
	cptx_error err = { .code = CPTX_OK };

	o.batched = true;
	REFUSED("lda = 63; rows have 64 elements", .lda = 63);
	REFUSED("ldb = 2147483648; rows have 64 elements, so it is at least that, and less than 2^31", .ldb = 1u << 31);
	REFUSED("ldb is CPTX_GEMM_BROADCAST, which only C has", .ldb = CPTX_GEMM_BROADCAST);
	REFUSED("stride_d is CPTX_GEMM_BROADCAST; each matrix has a D of its own", .batch = 2, .stride_d = CPTX_GEMM_BROADCAST);
	REFUSED("stride_d = 64; matrices of 64 rows, ldd = 64 apart, would lie over one another", .batch = 2, .stride_d = 64);
	REFUSED(
		"rows of A have 65 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 72), or the kernel made with "
		"CPTX_GEMM_A in .unaligned",
		.lda = 65);
	REFUSED("matrices of B are 8194 bytes apart", .batch = 2, .stride_b = 4097);
	o.strided = false;
	REFUSED("the problem has lda or stride_a, and the kernel dense matrices: say .strided", .lda = 72);
	o.unaligned = 8;
	REFUSED("unaligned = 8; it is a set of", .batch = 1);
	o.unaligned = A, o.batched = false, o.grouped = true;
	REFUSED("a list of problems has dense, aligned rows", .batch = 1);
	const cptx_gemm_problem wide = { .m = 64, .n = 64, .k = 1 << 30 };
	o = kernel_of(BY_WGMMA), o.a = o.b = CPTX_TF32, o.unaligned = A;
	ck_assert(!cptx_gemm_check_problem(&o, &wide, 8, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "rows of A have 4294967296 bytes, which the kernel copies (.unaligned)"), "%s", err.text);
	o.a = o.b = CPTX_BF16;
	ck_assert_msg(cptx_gemm_check_problem(&o, &wide, 8, NULL, FRESH(&err)), "%s", err.text);
	o = kernel_of(BY_SCALED);
	ck_assert(!cptx_gemm_check_problem(&o, &odd, 8, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "rows of D have 71 elements of 4 bytes") != NULL, "%s", err.text);
	o.a = CPTX_E2M1, o.unaligned = A;
	REFUSED("A of .e2m1 is unaligned; that is for types from 8 bits on", .batch = 1);
}
END_TEST

/* ---- what makes it right ---- */

/* Takes `count` instructions of an op out of the kernel, from number `number` on. */
typedef struct taken {
	unsigned by; /* which kernel */
	enum cptx_op op;
	unsigned number, count;
} taken;

static bool take_out(cptx_module *m, const void *user)
{
	const taken *t = user;
	cptx_kernel *k = cptx_module_body_at(m, 0);
	cptx_item *it = cptx_item_find_op(k, NULL, t->op);

	for (unsigned i = 0; it && i < t->number; i++)
		it = cptx_item_find_op(k, it, t->op);
	for (unsigned i = 0; it && i < t->count; i++) {
		cptx_item *next = i + 1 < t->count ? cptx_item_find_op(k, it, t->op) : it;
		cptx_edit_remove(k, it);
		it = next;
	}
	return it && !cptx_module_error(m);
}

/* What orders the copies before the loads by TMA, of all CTAs: fences of the proxies, and the barrier of the grid. */
START_TEST(nothing_orders_the_copies_but_what_is_there)
{
	static const taken takes[] = { { BY_WGMMA, CPTX_OP_FENCE_PROXY, 0, 2 },
		                           { BY_WGMMA, CPTX_OP_BAR_SYNC, 1, 1 },
		                           { BY_CP_ASYNC, CPTX_OP_BAR_SYNC, 0, 1 },
		                           { BY_CP_ASYNC, CPTX_OP_BAR_SYNC, 1, 1 } };
	const unsigned by = takes[_i].by;
	unsigned found = 0;

	for (uint64_t seed = 0; seed < 12 && !found; seed++) {
		gemm_trial t = { .m = 130, .n = 66, .k = 131, .opt = kernel_of(by), .ctas = 4, .seed = seed };
		t.opt.unaligned = A | B | D, t.edit = take_out, t.user = &takes[_i];
		cptx_emu_opt opt = { .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .threads = 1, .sms = 8 };
		cptx_error err = { 0 };
		cptx_device *dev = cptx_emu_open(targets[by][0], &opt, &err);
		const char *said = gemm_trial_run(dev, &t);
		found = *said != 0;
		cptx_device_close(dev);
	}
	ck_assert(found);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm any");

	tcase_add_loop_test(test_case(s, "distances"), rows_and_matrices_at_a_distance, 0, KERNELS);
	tcase_add_loop_test(test_case(s, "lengths"), rows_of_any_length, 0, 3 * KERNELS);
	tcase_add_loop_test(test_case(s, "layouts"), other_layouts, 0, 8);
	tcase_add_loop_test(test_case(s, "batch"), rows_of_d_of_each_matrix, 0, 3);
	tcase_add_test(test_case(s, "pairs"), rows_of_d_end_in_a_pair);
	tcase_add_loop_test(test_case(s, "order"), nothing_orders_the_copies_but_what_is_there, 0, 4);
	if (getenv("CPTX_WHOLE") || getenv("CPTX_GEMM_TRIALS"))
		tcase_add_loop_test(test_case(s, "random"), options_at_random, 0, KERNELS);
	tcase_add_test(test_case(s, "search"), the_search_sees_what_is_unaligned);
	tcase_add_test(test_case(s, "tuning"), tuning_copies_what_is_stored);
	tcase_add_test(test_case(s, "rules"), distances_have_rules);
	return gemm_tests_main("gemm_any", s);
}
