/* SPDX-License-Identifier: MIT */
/* Running and changing a prepared launch allocates no memory: malloc is ours here, and counts. */
#define _GNU_SOURCE
#include "../own_malloc.h"
#include "fake_cuda.h"
#include "harness.h"

#include <cptx/device.h>

#include <dlfcn.h>
#include <stdlib.h>

static volatile unsigned allocations;

#if COUNTED
void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	allocations++;
	return __libc_realloc(p, size);
}
#endif

static cptx_device *dev;
static cptx_error err;

static void before(void)
{
	const char *path = getenv("CPTX_TEST_FAKE_CUDA");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;

	ck_assert_msg(lib != NULL, "CPTX_TEST_FAKE_CUDA names no fake driver");
	setenv("CPTX_CUDA_LIBRARY", path, 1);
	fake_state *fake = dlsym(lib, "fake_cuda");
	*fake = (fake_state){ .version = 13000, .devices = 1, .major = 9, .max_threads = 1024 };
	dev = cptx_device_open("cuda", &err);
	OK(err);
}

static void after(void) { cptx_device_close(dev); }

static void count_runs(const uint32_t *cluster)
{
	static const char text[] = ".version 8.0\n.target sm_90\n.entry k(.param .u64 a) { ret; }";
	cptx_program *p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	fake_state *fake = dlsym(dlopen(getenv("CPTX_TEST_FAKE_CUDA"), RTLD_NOW), "fake_cuda");
	fake->nparams = 1;
	fake->param_size[0] = 8;
	cptx_launch_opt opt = { .grid = { 8 }, .block = { 32 }, CPTX_ARGS((uint64_t)1) };
	memcpy(opt.cluster, cluster, sizeof opt.cluster);
	unsigned start = allocations;
	cptx_launch *l = cptx_launch_new(p, "k", &opt, &err);
	OK(err);
	ck_assert_uint_gt(allocations, start); /* the counting works */

	start = allocations;
	for (unsigned i = 1; i <= 100; i++) {
		cptx_launch_set(l, 0, (uint64_t)i, &err);
		cptx_launch_grid(l, i * 2, 1, 1, &err);
		cptx_launch_run(l, NULL, &err);
	}
	ck_assert_uint_eq(allocations, start);
	OK(err);
	ck_assert_uint_eq(fake->launches + fake->cluster_launches, 100);
	ck_assert_uint_eq(fake->params[0], 100);
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
}

START_TEST(plain_launch)
{
	if (!COUNTED)
		SKIP("malloc cannot be replaced in this build");
	count_runs((uint32_t[3]){ 0 });
}
END_TEST

START_TEST(cluster_launch)
{
	if (!COUNTED)
		SKIP("malloc cannot be replaced in this build");
	count_runs((uint32_t[3]){ 2, 1, 1 });
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { plain_launch, cluster_launch };
	return harness_run("no_alloc", tests, ARRAY_LEN(tests), before, after);
}
