/* SPDX-License-Identifier: MIT */
/*
 * Many threads that build, check, print, parse, look at, compile, load, launch and read back, on one device and one cache:
 * every result right. It is meant for the thread sanitizer above all (CONTRIBUTING.md).
 */
#include "../runtime/harness.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>
#include <cptx/inspect.h>
#include <cptx/layout.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 32, TURNS = 4, KERNELS = 6, N = 64 };

static char folder[64], cache_folder[80];
static cptx_cache *cache;
static cptx_device *dev;
static cptx_module *frozen; /* which all of them read */
static cptx_program *loaded;
static bool compiles;
static atomic_uint compiled, cached, launched;

static cptx_module *build(uint32_t which)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "add", .block = { N });
	cptx_val x = cptx_param(k, CPTX_PTR, "x");
	cptx_val p = cptx_add(k, x, cptx_mul_wide(k, cptx_tid_x(k), 4));
	cptx_val v = cptx_ld(k, p, .space = CPTX_GLOBAL, .type = CPTX_U32);

	for (uint32_t i = 0; i <= which; i++)
		v = cptx_add(k, v, 1000 + i);
	cptx_st(k, p, v, .space = CPTX_GLOBAL);
	return m;
}

static uint32_t sum_of(uint32_t which)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i <= which; i++)
		sum += 1000 + i;
	return sum;
}

static void compile(const cptx_ptx *ptx, cptx_error *err)
{
	cptx_cubin *c = cptx_compile_ptx(ptx, &(cptx_compile_opt){ .cache = cache }, err);

	atomic_fetch_add(&compiled, c != NULL);
	atomic_fetch_add(&cached, cptx_cubin_cached(c));
	if (c && memcmp(cptx_cubin_data(c), "\177ELF", 4))
		err->code = CPTX_E_WRONG;
	cptx_cubin_destroy(c);
}

/* What the threads read together, and text that one of them reads alone. */
static bool look(const cptx_ptx *ptx)
{
	cptx_flow *f = cptx_flow_of(cptx_module_body(frozen, NULL), NULL);
	cptx_ptx *c = cptx_to_c(frozen, NULL, NULL), *common = cptx_emit(frozen, "sm_90", NULL, NULL);
	cptx_module *own = cptx_parse(cptx_ptx_text(ptx), cptx_ptx_size(ptx), NULL);
	cptx_ptx *again = cptx_emit(own, NULL, NULL, NULL);
	cptx_tile t = { .rows = 64, .cols = 64, .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_128B };
	cptx_lines l;
	size_t n;
	bool ok = f && c && common && again && !strcmp(cptx_ptx_text(ptx), cptx_ptx_text(again)) && cptx_flow_points(f, &n) &&
	          n == cptx_module_size(frozen) && cptx_check(frozen, "sm_90", NULL, NULL) == 0;

	ok &=
		cptx_tile_lines(&t, &(cptx_frag){ .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 }, 0, 0, &l, NULL) &&
		!cptx_lines_banks(&l, 0).conflicts;
	cptx_ptx_destroy(again);
	cptx_ptx_destroy(common);
	cptx_ptx_destroy(c);
	cptx_module_destroy(own);
	cptx_flow_destroy(f);
	return ok;
}

static void launch(cptx_module *m, uint32_t which, cptx_error *err)
{
	uint32_t data[N];
	uint64_t at = cptx_mem_alloc(dev, sizeof data, err);
	cptx_stream *s = cptx_stream_new(dev, err);
	cptx_program *p = which ? cptx_device_load(dev, m, NULL, err) : loaded;

	for (uint32_t i = 0; i < N; i++)
		data[i] = i * which;
	cptx_mem_write(dev, at, data, sizeof data, err);
	cptx_launch *l =
		p ? cptx_launch_new(p, "add", &(cptx_launch_opt){ .grid = { 1 }, .block = { N }, CPTX_ARGS(at) }, err) : NULL;
	if (l)
		cptx_launch_run(l, s, err);
	cptx_stream_synchronize(dev, s, err);
	cptx_mem_read(dev, data, at, sizeof data, err);
	for (uint32_t i = 0; i < N && err->code == CPTX_OK; i++)
		if (data[i] != i * which + sum_of(which)) {
			err->code = CPTX_E_WRONG;
			snprintf(err->text, sizeof err->text, "element %u of kernel %u is %u", i, which, data[i]);
		}
	atomic_fetch_add(&launched, err->code == CPTX_OK);
	cptx_launch_destroy(l);
	if (p != loaded)
		cptx_program_destroy(p);
	cptx_stream_destroy(s);
	cptx_mem_free(dev, at);
}

static void *worker(void *user)
{
	cptx_error *err = user;
	uint32_t me = err->line; /* which thread this is; no error uses it yet */

	err->line = 0;
	for (uint32_t turn = 0; turn < TURNS && err->code == CPTX_OK; turn++) {
		uint32_t which = (me + turn) % KERNELS;
		cptx_module *m = build(which);
		if (cptx_check(m, "sm_90", NULL, NULL))
			err->code = CPTX_E_WRONG;
		cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, err);
		if (ptx && compiles)
			compile(ptx, err);
		if (ptx && !look(ptx))
			err->code = CPTX_E_WRONG;
		if (ptx)
			launch(m, which, err);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
	return NULL;
}

START_TEST(all_at_once)
{
	static cptx_error err[THREADS];
	pthread_t thread[THREADS];
	cptx_error own = { 0 };
	char about[512];

	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(cache_folder, sizeof cache_folder, "%s/cache", folder);
	compiles = cptx_compiler_find(CPTX_COMPILER_AUTO, about, sizeof about);
	dev = cptx_emu_open("sm_90", &(cptx_emu_opt){ .threads = 2 }, &own);
	OK(own);
	cache = cptx_cache_open(&(cptx_cache_opt){ .path = cache_folder }, &own);
	OK(own);
	frozen = build(0);
	ck_assert(cptx_module_freeze(frozen));
	loaded = cptx_device_load(dev, frozen, NULL, &own);
	OK(own);
	for (uint32_t i = 0; i < THREADS; i++) {
		err[i] = (cptx_error){ .line = i };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, worker, &err[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < THREADS; i++)
		ck_assert_msg(err[i].code == CPTX_OK, "thread %u: %s: %s", i, cptx_code_name(err[i].code), err[i].text);
	ck_assert_uint_eq(launched, THREADS * TURNS);
	ck_assert_uint_eq(compiled, compiles ? THREADS * TURNS : 0);
	/* where a library is, is not kept: looking for a compiler has loaded it */
	ck_assert_uint_eq(cptx_cache_count(cache).entries, compiles ? KERNELS : 0);
	printf("%u launches, %u compiled, %u of them out of the cache\n", launched, compiled, cached);
	cptx_cache_clear(cache);
	cptx_cache_close(cache);
	cptx_program_destroy(loaded);
	cptx_module_destroy(frozen);
	cptx_device_close(dev);
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
	if (!compiles)
		skip("the part that compiles: %s", about);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { all_at_once };
	return harness_run("threads", tests, 1, NULL, NULL);
}
