/* SPDX-License-Identifier: MIT */
/* Threads: modules of their own at once, and one frozen module read by all. */
#include "../sanitized.h"
#include "shapes.h"
#include "verify.h"

#include <pthread.h>

enum { THREADS = 4 };
#define TURNS SAMPLE_OF(1000u, 100u)

typedef struct worker {
	pthread_t thread;
	const char *want;
	cptx_module *frozen;
	unsigned different, turns;
	bool lines;
} worker;

static char *gemm_text(void)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find("sm_90a"));
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_build(m, &o, NULL);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, NULL);
	char *text = ptx ? strdup(cptx_ptx_text(ptx)) : NULL;
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return text;
}

static void *build_often(void *arg)
{
	worker *w = arg;

	for (; w->turns < TURNS; w->turns++) {
		char *text = gemm_text();
		w->different += !text || strcmp(text, w->want) != 0;
		free(text);
	}
	return NULL;
}

static void *print_often(void *arg)
{
	worker *w = arg;

	for (; w->turns < TURNS / 4 + 1; w->turns++) {
		cptx_ptx *ptx = cptx_emit(w->frozen, "sm_90a", &(cptx_emit_opt){ .lines = w->lines }, NULL);
		cptx_kernel_info info;
		w->different += !ptx || strcmp(cptx_ptx_text(ptx), w->want) || !cptx_module_kernel(w->frozen, "gemm", &info);
		w->different += !cptx_module_freeze(w->frozen) || !cptx_module_size(w->frozen) || cptx_module_error(w->frozen);
		w->different += cptx_ptx_origin(ptx, 1).file != NULL;
		cptx_ptx_destroy(ptx);
		cptx_error err = { .code = CPTX_OK }; /* and what fails, fails for this thread alone */
		w->different += cptx_emit(w->frozen, "sm_75", NULL, &err) || err.code != CPTX_E_TARGET;
	}
	return NULL;
}

static void all(worker *w, unsigned n, void *(*work)(void *))
{
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_gt(w[i].turns, 0);
		ck_assert_uint_eq(w[i].different, 0);
	}
}

START_TEST(two_modules_at_once)
{
	char *want = gemm_text();
	ck_assert_ptr_nonnull(want);
	worker w[2] = { { .want = want }, { .want = want } };
	all(w, 2, build_often);
	ck_assert_uint_eq(w[0].turns + w[1].turns, 2 * TURNS);
	free(want);
}
END_TEST

START_TEST(one_frozen_module)
{
	cptx_module *m = cptx_module_new(NULL);
	build_everything(m);
	ck_assert(cptx_module_freeze(m));
	cptx_ptx *plain = cptx_emit(m, "sm_90a", NULL, NULL),
			 *lines = cptx_emit(m, "sm_90a", &(cptx_emit_opt){ .lines = true }, NULL);
	ck_assert(plain && lines);
	worker w[THREADS];
	for (unsigned i = 0; i < THREADS; i++)
		w[i] = (worker){ .frozen = m, .lines = i % 2, .want = cptx_ptx_text(i % 2 ? lines : plain) };
	all(w, THREADS, print_often);
	cptx_ptx_destroy(plain);
	cptx_ptx_destroy(lines);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { two_modules_at_once, one_frozen_module };
	return verify_run("threads", tests, ARRAY_LEN(tests), false);
}
