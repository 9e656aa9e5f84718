/* The sm_90a GEMM: on a GPU that has wgmma, else on the emulator. */
#include "../test.h"
#include "gemm_trial.h"
#include "number.h"
#include "ptxas.h"
#include "sm90_device.h"

static void right(const gemm_trial *t)
{
	open_device();
	const char *said = gemm_trial_run(dev, t);
	ck_assert_msg(!*said, "%s:\n%s", gemm_trial_text(t), said);
}

#define TYPES(a_, b_) .mma = CPTX_GEMM_WGMMA, .a = CPTX_##a_, .b = CPTX_##b_
#define BF16 TYPES(BF16, BF16)

static const gemm_trial trials[] = {
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_F32 }, .m = 128, .n = 128, .k = 64 },
	{ .opt = { .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_BF16 }, .m = 256, .n = 512, .k = 320 },
	{ .opt = { .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_BF16, .cluster_m = 2 }, .m = 200, .n = 264, .k = 136 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 4, BF16, .out = CPTX_F32, .cluster_n = 2 }, .m = 136, .n = 300, .k = 264 },
	{ .opt = { .bm = 64, .bn = 64, .stages = 4, BF16, .out = CPTX_BF16, .stream_k = true }, .m = 70, .n = 200, .k = 520 },
	{ .opt = { .bm = 128, .bn = 64, .stages = 2, BF16, .out = CPTX_F32, .stream_k = true, .cluster_m = 2 },
	  .m = 130,
	  .n = 72,
	  .k = 200 },
	{ .opt = { .bm = 256, .bn = 128, .stages = 3, TYPES(F16, F16), .out = CPTX_F16 }, .m = 300, .n = 136, .k = 72 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_BF16, .a_m_major = true },
	  .m = 136,
	  .n = 128,
	  .k = 104 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_BF16, .b_n_major = true, .cluster_m = 2 },
	  .m = 136,
	  .n = 136,
	  .k = 104 },
	{ .opt = { .bm = 64, .bn = 128, .stages = 3, BF16, .out = CPTX_F32, .a_m_major = true, .b_n_major = true },
	  .m = 72,
	  .n = 136,
	  .k = 77 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, TYPES(E4M3, E5M2), .out = CPTX_BF16 }, .m = 130, .n = 136, .k = 272 },
	{ .opt = { .bm = 64, .bn = 16, .stages = 5, TYPES(E5M2, E5M2), .out = CPTX_F32 }, .m = 5, .n = 20, .k = 400 },
	{ .opt = { .bm = 64, .bn = 48, .stages = 5, BF16, .out = CPTX_F16, .batched = true },
	  .m = 65,
	  .n = 56,
	  .k = 72,
	  .batch = 3 },
	{ .opt = { .bm = 128, .bn = 96, .stages = 2, BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true },
	  .m = 129,
	  .n = 200,
	  .k = 72 },
	{ .opt = { .bm = 64,
	           .bn = 80,
	           .stages = 2,
	           BF16,
	           .out = CPTX_F32,
	           .alpha = true,
	           .beta = true,
	           .bias = true,
	           .batched = true,
	           .epilogue = gemm_trial_epilogue,
	           .stream_k = true },
	  .m = 100,
	  .n = 84,
	  .k = 136,
	  .batch = 2 },
	{ .opt = { .bm = 256, .bn = 64, .stages = 2, BF16, .out = CPTX_BF16, .epilogue = gemm_trial_epilogue, .cluster_n = 2 },
	  .m = 257,
	  .n = 200,
	  .k = 72 },
	{ .opt = { .bm = 64, .bn = 8, .stages = 4, BF16, .out = CPTX_BF16, .swap = true, .stream_k = true },
	  .m = 5,
	  .n = 200,
	  .k = 520 },
	{ .opt = { .bm = 128,
	           .bn = 64,
	           .stages = 4,
	           BF16,
	           .out = CPTX_BF16,
	           .a_m_major = true,
	           .b_n_major = true,
	           .batched = true,
	           .per_sm = 2,
	           .stream_k = true },
	  .m = 136,
	  .n = 264,
	  .k = 520,
	  .batch = 2 },
	{ .opt = { .bm = 128,
	           .bn = 40,
	           .stages = 3,
	           BF16,
	           .out = CPTX_F32,
	           .alpha = true,
	           .beta = true,
	           .bias = true,
	           .batched = true,
	           .epilogue = gemm_trial_epilogue,
	           .swap = true },
	  .m = 77,
	  .n = 196,
	  .k = 72,
	  .batch = 2 },
	{ .opt = { .bm = 192,
	           .bn = 144,
	           .stages = 2,
	           TYPES(E4M3, E5M2),
	           .out = CPTX_F16,
	           .beta = true,
	           .bias = true,
	           .swap = true,
	           .cluster_m = 2,
	           .epilogue = gemm_trial_epilogue },
	  .m = 150,
	  .n = 408,
	  .k = 272 },
	{ .opt = { .bm = 256, .bn = 64, .stages = 2, BF16, .out = CPTX_BF16, .a_m_major = true, .swap = true },
	  .m = 136,
	  .n = 264,
	  .k = 72 },
	{ .opt = { .bm = 64, .bn = 8, .stages = 6, BF16, .out = CPTX_BF16, .swap = true, .per_sm = 2, .cluster_m = 8 },
	  .m = 3,
	  .n = 1200,
	  .k = 520 },
	{ .opt = { .bm = 256, .bn = 152, .stages = 4, BF16, .out = CPTX_BF16, .beta = true },
	  .m = 300,
	  .n = 304,
	  .k = 136,
	  .in_place = true },
	{ .opt = { .bm = 128, .bn = 24, .stages = 2, BF16, .out = CPTX_F32, .b_n_major = true, .swap = true, .cluster_n = 2 },
	  .m = 56,
	  .n = 136,
	  .k = 104 },
};

START_TEST(gives_the_exact_sums) { right(&trials[_i]); }
END_TEST

/* ---- options and sizes at random ---- */

static uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)((number_random(s) >> 33) % n); }

#define ONE_OF(s, ...) ((uint32_t[]){ __VA_ARGS__ })[below(s, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))]

static gemm_trial draw(uint64_t seed)
{
	uint64_t s = seed * 0x9e3779b97f4a7c15u | 1;
	gemm_trial t = { .opt.mma = CPTX_GEMM_WGMMA, .seed = seed };
	cptx_gemm_opt *o = &t.opt;

	for (int i = 0; i < 4; i++)
		number_random(&s);
	o->a = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_BF16, CPTX_F16, CPTX_E4M3, CPTX_E5M2);
	bool bytes = cptx_type_bits(o->a) == 8;
	o->b = bytes ? (enum cptx_type)ONE_OF(&s, CPTX_E4M3, CPTX_E5M2) : o->a;
	o->out = (enum cptx_type)ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o->a_m_major = !bytes && below(&s, 3) == 0, o->b_n_major = !bytes && below(&s, 3) == 0;
	o->swap = below(&s, 2);
	bool across = o->swap ? o->a_m_major : o->b_n_major; /* what lies along bn is contiguous there */
	uint32_t step = across ? 64 : 8;
	o->bm = ONE_OF(&s, 64, 128, 192, 256), o->bn = step * (1 + below(&s, 256 / step));
	o->stages = 2 + below(&s, 6);
	*(below(&s, 2) ? &o->cluster_m : &o->cluster_n) = ONE_OF(&s, 1, 1, 1, 2, 2, 4, 8);
	o->per_sm = below(&s, 3), o->group = below(&s, 5), o->stream_k = below(&s, 2), o->batched = below(&s, 4) == 0;
	o->alpha = below(&s, 3) == 0, o->beta = below(&s, 3) == 0, o->bias = below(&s, 3) == 0;
	o->epilogue = below(&s, 4) == 0 ? gemm_trial_epilogue : NULL;
	t.batch = o->batched ? 1 + below(&s, 3) : 1;
	t.ctas = ONE_OF(&s, 0, 0, 1, 3, 4, 8, 12);
	t.in_place = o->beta && below(&s, 2);
	t.m = 1 + below(&s, 300), t.n = 1 + below(&s, 300), t.k = 1 + below(&s, 400);
	if (o->a_m_major)
		t.m = (t.m + 7) & ~7u;
	t.n = (t.n + 7) & ~7u;
	t.k = (t.k + 15) & ~15u;
	return t;
}

/* All that the checks let through gives the right result; what they refuse has a message. */
START_TEST(options_at_random)
{
	const char *wanted = getenv("CPTX_GEMM_TRIALS");
	unsigned want = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 12, refused = 0;

	for (uint64_t seed = 1; want; seed++) {
		gemm_trial t = draw(seed);
		cptx_error err;
		if (cptx_gemm_check(&t.opt, NULL, NULL, &err)) {
			right(&t);
			want--;
		} else {
			ck_assert_msg(strstr(err.text, "gemm for sm_90a: ") != NULL, "%s", err.text);
			refused++;
		}
	}
	ck_assert_uint_gt(refused, 0);
}
END_TEST

/* ---- ptxas ---- */

/* Every "N bytes spill stores" is of zero bytes, and no message has a number: C7508 (setmaxnreg ignored), C7514 (wgmma
 * serialized) ... */
START_TEST(ptxas_neither_warns_nor_spills)
{
	static const cptx_gemm_opt opts[] = {
		{ .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_BF16, .cluster_m = 2, .name = "a" },
		{ .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_F32, .stream_k = true, .name = "b" },
		{ .bm = 256, .bn = 192, .stages = 3, BF16, .out = CPTX_F32, .cluster_n = 2, .stream_k = true, .name = "c" },
		{ .bm = 192, .bn = 192, .stages = 4, BF16, .out = CPTX_BF16, .name = "d" },
		{ .bm = 192, .bn = 176, .stages = 3, TYPES(E4M3, E5M2), .out = CPTX_F32, .stream_k = true, .name = "e" },
		{ .bm = 64, .bn = 256, .stages = 5, BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .name = "f" },
		{ .bm = 256,
		  .bn = 128,
		  .stages = 4,
		  BF16,
		  .out = CPTX_F16,
		  .alpha = true,
		  .beta = true,
		  .bias = true,
		  .batched = true,
		  .name = "g" },
		{ .bm = 128,
		  .bn = 256,
		  .stages = 4,
		  BF16,
		  .out = CPTX_BF16,
		  .a_m_major = true,
		  .b_n_major = true,
		  .epilogue = gemm_trial_epilogue,
		  .name = "h" },
		{ .bm = 64,
		  .bn = 128,
		  .stages = 3,
		  BF16,
		  .out = CPTX_F32,
		  .alpha = true,
		  .beta = true,
		  .bias = true,
		  .swap = true,
		  .per_sm = 2,
		  .stream_k = true,
		  .name = "i" },
		{ .bm = 128, .bn = 64, .stages = 4, BF16, .out = CPTX_BF16, .per_sm = 2, .stream_k = true, .name = "n" },
		{ .bm = 256, .bn = 32, .stages = 2, BF16, .out = CPTX_BF16, .swap = true, .per_sm = 2, .name = "o" },
		{ .bm = 256, .bn = 184, .stages = 3, BF16, .out = CPTX_BF16, .cluster_n = 2, .name = "p" },
		{ .bm = 192, .bn = 184, .stages = 3, BF16, .out = CPTX_BF16, .stream_k = true, .name = "q" },
		{ .bm = 256, .bn = 192, .stages = 3, BF16, .out = CPTX_BF16, .swap = true, .stream_k = true, .name = "j" },
		{ .bm = 192, .bn = 184, .stages = 3, BF16, .out = CPTX_F32, .swap = true, .name = "l" },
		{ .bm = 128,
		  .bn = 256,
		  .stages = 3,
		  BF16,
		  .out = CPTX_BF16,
		  .alpha = true,
		  .beta = true,
		  .bias = true,
		  .epilogue = gemm_trial_epilogue,
		  .swap = true,
		  .name = "m" },
	};
	enum { NOPT = sizeof opts / sizeof *opts };
	static char said[1 << 16];
	char path[4096];
	cptx_error err;
	cptx_module *m = cptx_module_new(NULL);

	if (!ptxas_find(path, sizeof path)) {
		skip("ptxas, to judge the kernels");
		cptx_module_destroy(m);
		return;
	}
	for (size_t i = 0; i < NOPT; i++)
		ck_assert_msg(cptx_gemm_build(m, &opts[i], &err) != NULL, "%s: %s", opts[i].name, err.text);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_int_eq(ptxas_run(path, "sm_90a", cptx_ptx_text(ptx), cptx_ptx_size(ptx), said, sizeof said), 0);
	unsigned kernels = 0;
	for (const char *p = said; (p = strstr(p, " bytes spill stores")); p++, kernels++)
		ck_assert_msg(p[-1] == '0' && p[-2] == ' ', "%s", said);
	ck_assert_uint_eq(kernels, NOPT);
	ck_assert_msg(!strstr(said, "(C7"), "%s", said);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* ---- rules ---- */

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said;
	} bad[] = {
		{ { .bm = 100, .bn = 128, .stages = 3, BF16, .out = CPTX_F32 }, "tile M = 100; 64, 128, 192 and 256 are possible" },
		{ { .bm = 64, .bn = 100, .stages = 3, BF16, .out = CPTX_F32 }, "tile N = 100; multiples of 8 from 8" },
		{ { .bm = 64, .bn = 20, .stages = 3, BF16, .out = CPTX_F32, .swap = true }, "tile M = 20; multiples of 8 from 8" },
		{ { .bm = 64, .bn = 8, .stages = 3, BF16, .out = CPTX_F32, .swap = true, .a_m_major = true },
		  "tile M = 8; of an A stored as rows of M" },
		{ { .bm = 64, .bn = 16, .stages = 3, BF16, .out = CPTX_F32, .per_sm = 3 }, "per_sm = 3; 1 or 2" },
		{ { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_F32, .per_sm = 2 }, "have registers for 64x128" },
		{ { .bm = 64, .bn = 16, .stages = 16, BF16, .out = CPTX_F32, .per_sm = 2 }, "(11 stages fit)" },
		{ { .bm = 256, .bn = 256, .stages = 2, BF16, .out = CPTX_F32 }, "with 256 rows at most 192 columns" },
		{ { .bm = 128, .bn = 256, .stages = 5, BF16, .out = CPTX_BF16 }, "(4 stages fit)" },
		{ { .bm = 128, .bn = 128, .stages = 1, BF16, .out = CPTX_BF16 }, "1 stages; 2 to 16 are possible" },
		{ { .bm = 128, .bn = 128, .stages = 2, TYPES(BF16, F16), .out = CPTX_BF16 }, "A is .bf16 and B .f16" },
		{ { .bm = 128, .bn = 128, .stages = 2, BF16, .out = CPTX_S32 }, "output type .s32; it must be f32, bf16 or f16" },
		{ { .bm = 128, .bn = 128, .stages = 2, TYPES(E4M3, E4M3), .out = CPTX_BF16, .a_m_major = true },
		  "wgmma reads .e4m3 along K only" },
		{ { .bm = 128, .bn = 96, .stages = 2, BF16, .out = CPTX_BF16, .b_n_major = true }, "it must be a multiple of 64" },
		{ { .bm = 128, .bn = 128, .stages = 2, BF16, .out = CPTX_BF16, .cluster_m = 2, .cluster_n = 2 },
		  "one side must be 1" },
		{ { .bm = 128, .bn = 128, .stages = 2, BF16, .out = CPTX_BF16, .cluster_m = 3 }, "1, 2, 4 or 8 are possible" },
		{ { .bm = 128, .bn = 128, .stages = 2, BF16, .out = CPTX_BF16, .cluster_n = 1u << 29 },
		  "1, 2, 4 or 8 are possible" },
		{ { .bm = 128, .bn = 128, .stages = 2, BF16, .out = CPTX_BF16, .grouped = true, .timeline = 8 }, "no timeline" },
	};
	cptx_error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert(!cptx_gemm_check(&bad[i].o, NULL, NULL, &err));
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 12 };
	cptx_gemm_opt o = { .bm = 64, .bn = 64, .stages = 2, BF16, .out = CPTX_F32 };
	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, &err));
	ck_assert_msg(strstr(err.text, "rows of A have 12 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 16)"),
	              "%s", err.text);
}
END_TEST

START_TEST(bad_calls_end_well)
{
	cptx_gemm_opt o = { .bm = 64, .bn = 16, .stages = 2, BF16, .out = CPTX_F32, .batched = true };
	cptx_gemm_problem p = { .m = 1 << 23, .n = 1 << 20, .k = 64, .batch = 1u << 31 };
	cptx_gemm_choice choice;
	cptx_error err;

	ck_assert(!cptx_gemm_check_problem(&o, &p, 132, NULL, &err));
	ck_assert_msg(strstr(err.text, "tiles of 2147483648 matrices are too many"), "%s", err.text);
	ck_assert_uint_eq(cptx_gemm_auto(NULL, &p, 132, &choice, 1, &err), 0);
	ck_assert_msg(strstr(err.text, "no options were given"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 132, NULL, 1, &err), 0);
	ck_assert_msg(strstr(err.text, "no room for choices"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_launch(NULL, NULL, &o, &p, &err));
	ck_assert_msg(strstr(err.text, "the device is NULL"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert(!cptx_gemm_tune(NULL, &p, &choice, 1, &err));
	ck_assert_msg(strstr(err.text, "the device is NULL"), "%s", err.text);
}
END_TEST

/* A launch with other options than the kernel was made with, or without operands. */
START_TEST(launches_that_do_not_fit)
{
	cptx_gemm_opt o = { .bm = 128, .bn = 64, .stages = 2, BF16, .out = CPTX_F32 }, other = o;
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 64 };
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);

	open_device();
	ck_assert(cptx_gemm_build(m, &o, &err) != NULL);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, &err));
	ck_assert_msg(strstr(err.text, "the address of A is 0"), "%s", err.text);
	err = (cptx_error){ 0 };
	p.a = p.b = p.d = cptx_mem_alloc(dev, 1 << 16, &err);
	other.bm = 64;
	ck_assert_ptr_null(cptx_gemm_launch(program, dev, &other, &p, &err));
	ck_assert_uint_eq(err.code, CPTX_E_ARG);
	cptx_mem_free(dev, p.a);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sm90");
	TCase *c = tcase_create("c");

	tcase_add_loop_test(c, gives_the_exact_sums, 0, sizeof trials / sizeof *trials);
	TCase *random = tcase_create("random");
	tcase_add_test(random, options_at_random);
	tcase_set_timeout(random, 0);
	suite_add_tcase(s, random);
	tcase_add_test(c, ptxas_neither_warns_nor_spills);
	tcase_add_test(c, says_which_rule_is_broken);
	tcase_add_test(c, bad_calls_end_well);
	tcase_add_test(c, launches_that_do_not_fit);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	int status = test_main("gemm_sm90", s);
	cptx_device_close(dev);
	return status;
}
