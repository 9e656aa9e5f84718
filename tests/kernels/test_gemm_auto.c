/* SPDX-License-Identifier: MIT */
/* What cptx_gemm_auto and cptx_gemm_auto_for pick for random problems; the kernels by mma.sync also run, on the emulator. */
#include "gemm_draw.h"
#include "gemm_tests.h"

#include <string.h>

enum { CHOICES = 16 };

/* Targets of mma.sync whose GPUs differ.  large_by_tma: picks it for large problems; with TMA the fastest shape needs
 * setmaxnreg. */
static const struct {
	const char *target, *gpu;
	bool has_tma, large_by_tma;
} sync[] = {
	{ "sm_80", "A100", false, false },    { "sm_86", "RTX 3090", false, false }, { "sm_89", "RTX 4090", false, false },
	{ "sm_90", "H200", true, false },     { "sm_90a", "H200", true, true },      { "sm_100a", "B200", true, true },
	{ "sm_120", "RTX 5090", true, true }, { "sm_87", "Orin", false, false },     { "sm_103a", "B300", true, true },
	{ "sm_121", "GB10", true, true },     { "sm_110a", "Thor", true, true },
};
enum { SYNC = sizeof sync / sizeof *sync };

/* Sizes from 1 to 2^bits; those of rows in whole 16 bytes of all types, or of any number of elements. */
static cptx_gemm_problem draw_problem(uint64_t *s, uint32_t bits, bool aligned)
{
	uint64_t size[3];

	for (int i = 0; i < 3; i++) {
		size[i] = 1 + below(s, 1u << (1 + below(s, bits)));
		size[i] = aligned ? (size[i] + 127) / 128 * 128 : size[i];
	}
	return (cptx_gemm_problem){ .m = size[0], .n = size[1], .k = aligned ? size[2] : (size[2] + 7) / 8 * 8 };
}

static void same_choices(const cptx_gemm_choice *a, const cptx_gemm_choice *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const cptx_gemm_opt *x = &a[i].opt, *y = &b[i].opt;
		ck_assert(x->bm == y->bm && x->bn == y->bn && x->bk == y->bk && x->stages == y->stages && x->group == y->group);
		ck_assert(x->warps_m == y->warps_m && x->warps_n == y->warps_n && x->per_sm == y->per_sm && x->swap == y->swap);
		ck_assert(x->cluster_m == y->cluster_m && x->cluster_n == y->cluster_n && x->stream_k == y->stream_k);
		ck_assert(x->tma == y->tma && a[i].ctas == b[i].ctas && a[i].us >= b[i].us && a[i].us <= b[i].us);
	}
}

/* Choices are in order, fit the target and can do the problem; asked again they are the same. */
static size_t good_choices(const cptx_gemm_opt *o, const cptx_target *target, const cptx_gemm_problem *p, uint32_t sms,
                           cptx_gemm_choice c[CHOICES])
{
	cptx_gemm_choice again[CHOICES];
	cptx_error err = { .code = CPTX_OK };
	size_t n = cptx_gemm_auto_for(o, target, p, sms, c, CHOICES, &err);

	ck_assert_msg(n > 0, "%llux%llux%llu: %s", (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k,
	              err.text);
	ck_assert_uint_eq(cptx_gemm_auto_for(o, target, p, sms, again, CHOICES, &err), n);
	same_choices(c, again, n);
	for (size_t i = 0; i < n; i++) {
		cptx_gemm_problem with = *p;
		with.ctas = c[i].ctas;
		ck_assert_msg(cptx_gemm_check(&c[i].opt, target, NULL, &err), "%s", err.text);
		ck_assert_msg(cptx_gemm_check_problem(&c[i].opt, &with, sms, NULL, &err), "%s", err.text);
		ck_assert(c[i].us > 0 && c[i].mma_us > 0 && c[i].load_us > 0 && c[i].memory_us > 0);
		ck_assert(c[i].tail >= 0 && c[i].tail < 1 && (!i || c[i].us >= c[i - 1].us));
		ck_assert(c[i].opt.group > 0 && (!o->group || c[i].opt.group == o->group));
	}
	return n;
}

START_TEST(picks_fit_the_target)
{
	const cptx_target *t = cptx_target_find(sync[_i].target);
	cptx_gemm_opt o = { .a = CPTX_F16, .b = CPTX_F16, .out = CPTX_BF16 };
	cptx_gemm_choice c[CHOICES];
	uint64_t s = gemm_trial_random(77 + (uint64_t)_i);
	uint32_t sms;

	ck_assert_ptr_nonnull(strstr(cptx_gemm_model(&o, t, &sms), sync[_i].gpu));
	for (int i = 0; i < 30; i++) {
		cptx_gemm_problem p = draw_problem(&s, 13, i % 2);
		o.group = i % 5 == 4 ? 3 : 0, o.beta = i % 3 == 2;
		size_t n = good_choices(&o, t, &p, 1 + below(&s, 2 * sms), c);
		for (size_t j = 0; j < n; j++)
			ck_assert(!c[j].opt.tma || (sync[_i].has_tma && (p.n % 8 == 0 || c[j].opt.unaligned)));
	}
	cptx_gemm_problem large = { .m = 4096, .n = 4096, .k = 4096 };
	good_choices(&o, t, &large, sms, c);
	ck_assert_int_eq(c[0].opt.tma, sync[_i].large_by_tma);
	o.tma = true; /* stays */
	cptx_error err = { .code = CPTX_OK };
	ck_assert_int_eq(cptx_gemm_auto_for(&o, t, &large, sms, c, 1, &err) == 1, sync[_i].has_tma);
	ck_assert(sync[_i].has_tma ? c[0].opt.tma : strstr(err.text, "TMA is not available on sm_8") != NULL);
}
END_TEST

/* Each generator with the types of its kinds, for any target. */
START_TEST(picks_of_all_generators_fit)
{
	static const struct {
		cptx_gemm_opt o;
		const char *gpu;
	} all[] = {
		{ { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 }, "A100" },
		{ { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .tma = true }, "H200" },
		{ { .a = CPTX_E4M3, .b = CPTX_E2M1, .out = CPTX_F16, .scale = CPTX_UE8M0 }, "RTX 5090" },
		{ { .mma = CPTX_GEMM_WGMMA, .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_BF16 }, "H200" },
		{ { .mma = CPTX_GEMM_TCGEN05, .a = CPTX_TF32, .b = CPTX_TF32, .out = CPTX_F32, .kind = CPTX_TCGEN05_TF32 }, "B200" },
	};
	cptx_gemm_choice c[CHOICES], one[CHOICES];
	cptx_error err = { .code = CPTX_OK };
	uint64_t s = gemm_trial_random((uint64_t)_i);
	uint32_t sms;

	ck_assert_ptr_nonnull(strstr(cptx_gemm_model(&all[_i].o, NULL, &sms), all[_i].gpu));
	for (int i = 0; i < 12; i++) {
		cptx_gemm_problem p = draw_problem(&s, 13, true);
		size_t n = good_choices(&all[_i].o, NULL, &p, sms, c);
		ck_assert_uint_eq(cptx_gemm_auto(&all[_i].o, &p, sms, one, CHOICES, &err), n);
		same_choices(c, one, n);
		ck_assert_int_eq(c[0].opt.tma, all[_i].o.tma);
	}
}
END_TEST

START_TEST(says_what_cannot_be_picked)
{
	cptx_gemm_opt o = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 64 };
	cptx_gemm_choice c;
	cptx_error err = { .code = CPTX_OK };

	ck_assert_uint_eq(cptx_gemm_auto_for(&o, cptx_target_find("sm_75"), &p, 1, &c, 1, FRESH(&err)), 0);
	o.mma = CPTX_GEMM_WGMMA;
	ck_assert_uint_eq(cptx_gemm_auto_for(&o, cptx_target_find("sm_90"), &p, 1, &c, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "sm_90 has no wgmma; sm_90a has") != NULL, "%s", err.text);
	o.mma = CPTX_GEMM_SYNC, o.a = CPTX_E4M3;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 1, &c, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "A is .e4m3 and B .bf16; both must be bf16, both f16") != NULL, "%s", err.text);
	o.mma = CPTX_GEMM_MMAS;
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 1, &c, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, ".mma = 4; there are mma.sync, wgmma, tcgen05 and gemv") != NULL, "%s", err.text);
	ck_assert_ptr_null(cptx_gemm_model(&o, NULL, NULL));
	ck_assert_ptr_null(cptx_gemm_model(NULL, NULL, NULL));
}
END_TEST

/* The kernel that auto picks gives the exact sums, and so does the best one with tiles shared along K. */
START_TEST(picks_are_right)
{
	static const char *const targets[] = { "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120a" };
	uint64_t s = gemm_trial_random(5 + (uint64_t)_i);
	cptx_gemm_choice c[CHOICES];

	for (unsigned i = 0; i < 3; i++) {
		const char *const on[] = { targets[_i], targets[_i] };
		gemm_trial t = { .seed = i,
			             .opt = { .a = CPTX_BF16,
			                      .b = CPTX_BF16,
			                      .out = i % 2 ? CPTX_F32 : CPTX_BF16,
			                      .bias = i == 1,
			                      .a_m_major = i == 2 } };
		cptx_gemm_problem p = draw_problem(&s, 8, i == 2);
		p.n += i == 0, p.k += 256;
		const size_t n = good_choices(&t.opt, cptx_target_find(targets[_i]), &p, 4, c);
		size_t shared = 1;
		while (shared < n && !c[shared].opt.stream_k)
			shared++;
		for (size_t j = 0; j < n; j = j ? n : shared) {
			t.opt = c[j].opt, t.m = p.m, t.n = p.n, t.k = p.k, t.ctas = c[j].ctas ? c[j].ctas : 4;
			gemm_right(&t, on, 0);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_auto");
	TCase *c = test_case(s, "c");

	tcase_add_loop_test(c, picks_fit_the_target, 0, SYNC);
	tcase_add_loop_test(c, picks_of_all_generators_fit, 0, 5);
	tcase_add_test(c, says_what_cannot_be_picked);
	tcase_add_loop_test(c, picks_are_right, 0, 5);
	return gemm_tests_main("gemm_auto", s);
}
