/* SPDX-License-Identifier: MIT */
/*
 * Random problems on all GEMM kernels: types, layouts, shapes, distances of rows, experts, sparse A, f64, results that are
 * gated and quantized, on a GPU that has the kernel, else on the emulator; every element is compared.
 *
 * CPTX_WHOLE: 1000 problems, else a sample.  CPTX_GEMM_TRIALS: so many; CPTX_GEMM_FIRST: a number for others, so that
 * several processes have problems of their own.
 */
#include "gemm_draw.h"
#include "gemm_tests.h"
#include "../whole.h"

#include <stdlib.h>

enum { WHOLE = 1000, SAMPLE = 21, FIRST_SEED = 5000 };

static const struct {
	gemm_trial (*draw)(uint64_t seed);
	const char *targets[4]; /* of those that have room for the shape they take turns */
	const char *prefix;
} kernels[] = {
	{ gemm_draw_sm80, { "sm_80", "sm_89", "sm_90", "sm_120" }, "gemm for sm_80: " },
	{ gemm_draw_sync_tma, { "sm_90", "sm_90a", "sm_100a", "sm_120a" }, "gemm for sm_90: " },
	{ gemm_draw_sm90, { "sm_90a", "sm_90a" }, "gemm for sm_90a: " },
	{ gemm_draw_sm90, { "sm_90a", "sm_90a" }, "gemm for sm_90a: " },
	{ gemm_draw_experts, { "sm_90a", "sm_90a" }, "gemm for sm_90a: " },
	{ gemm_draw_sm100, { "sm_100a", "sm_103a" }, "gemm for sm_100a: " },
	{ gemm_draw_sm120, { "sm_120a", "sm_121a" }, "gemm for sm_120a: " },
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* On the next of the targets that has room; how many were run. */
static unsigned run(const gemm_trial *t, const char *const targets[4], uint64_t seed)
{
	for (uint64_t i = 0; i < 4; i++) {
		const char *name = targets[(seed + i) % 4], *const on[] = { name, name };
		if (!name || !cptx_gemm_check(&t->opt, cptx_target_find(name), NULL, NULL))
			continue;
		gemm_right(t, on, (unsigned)seed);
		return 1;
	}
	return 0;
}

/* One of KERNELS parts, which may run at once. */
START_TEST(all_that_is_let_through_is_right)
{
	const unsigned all = gemm_trials(whole() ? WHOLE : SAMPLE);
	unsigned want = all / KERNELS + ((unsigned)_i < all % KERNELS), refused = 0;

	const char *other = getenv("CPTX_GEMM_FIRST");
	const uint64_t first = FIRST_SEED + (unsigned)_i * 100000 + (other ? strtoul(other, NULL, 10) * 5000 : 0);

	for (uint64_t seed = first; want; seed++) {
		gemm_trial t = kernels[_i].draw(seed);
		cptx_error err = { .code = CPTX_OK };
		if (cptx_gemm_check(&t.opt, NULL, NULL, &err)) {
			want -= run(&t, kernels[_i].targets, seed);
			continue;
		}
		ck_assert_msg(!strncmp(err.text, kernels[_i].prefix, strlen(kernels[_i].prefix)), "%s", err.text);
		ck_assert_uint_lt(refused++, 100 * WHOLE);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_random");
	TCase *c = tcase_create("random");

	tcase_set_timeout(c, 3600);
	tcase_add_loop_test(c, all_that_is_let_through_is_right, 0, KERNELS);
	suite_add_tcase(s, c);
	return gemm_tests_main("gemm_random", s);
}
