/* SPDX-License-Identifier: MIT */
/* On a GPU: each compiler's machine code runs, what the cache keeps runs, nvcc's objects are linked, and loading leaks
 * nothing. */
#include "../runtime/harness.h"

#include <cptx/device.h>

#include <unistd.h>

enum { N = 256, USUAL_LOADS = 300, SETTLING = 50 };

static cptx_device *dev;
static cptx_error err;
static char why_not[CPTX_ERROR_TEXT], folder[64], about[512], command[512];

static void before(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_device_open("cuda", &err);
	if (!dev) {
		ck_assert_msg(err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE, "%s", err.text);
		strcpy(why_not, err.text);
		memset(&err, 0, sizeof err);
	}
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void after(void)
{
	cptx_device_close(dev);
	dev = NULL;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

#define NEED_GPU                                                                                                            \
	do {                                                                                                                    \
		if (!dev)                                                                                                           \
			SKIP("needs a GPU: %s", why_not);                                                                               \
	} while (0)

/* x[tid] = twice(x[tid]): the function is in the same text, or somewhere else. */
#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define TWICE "func (.param .b32 out) twice(.param .b32 x)"
#define BODY                                                                                                                \
	"\n{\n\t.reg .b32 %r<3>;\n\tld.param.b32 %r1, [x];\n\tadd.u32 %r2, %r1, %r1;\n\tst.param.b32 [out], %r2;\n\tret;\n}\n"
#define ENTRY                                                                                                               \
	".visible .entry use_it(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n\tld.param.u64 %rd1, [p];\n"        \
	"\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.u64 %rd1, %rd1, %rd2;\n\tld.global.u32 %r2, [%rd1];\n"     \
	"\t{\n\t.param .b32 a;\n\t.param .b32 b;\n\tst.param.b32 [a], %r2;\n\tcall (b), twice, (a);\n"                          \
	"\tld.param.b32 %r3, [b];\n\t}\n\tst.global.u32 [%rd1], %r3;\n\tret;\n}\n"
static const char whole[] = HEAD "." TWICE BODY ENTRY;
static const char caller[] = HEAD ".extern ." TWICE ";\n" ENTRY;
static const char called[] = HEAD ".visible ." TWICE BODY;

static void check_run(const cptx_program *p)
{
	uint32_t data[N];

	OK(err);
	uint64_t at = cptx_mem_alloc(dev, sizeof data, &err);
	for (uint32_t i = 0; i < N; i++)
		data[i] = i * 77;
	cptx_mem_write(dev, at, data, sizeof data, &err);
	cptx_launch_once(p, "use_it", &(cptx_launch_opt){ .grid = { 1 }, .block = { N }, CPTX_ARGS(at) }, NULL, &err);
	cptx_mem_read(dev, data, at, sizeof data, &err);
	cptx_mem_free(dev, at);
	OK(err);
	for (uint32_t i = 0; i < N; i++)
		ck_assert_uint_eq(data[i], i * 154);
}

START_TEST(each_compiler)
{
	NEED_GPU;
	if (_i != CPTX_COMPILER_AUTO && _i != CPTX_COMPILER_DRIVER &&
	    !cptx_compiler_find((enum cptx_compiler)_i, about, sizeof about))
		SKIP("%s", about);
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	cptx_load_opt opt = { .compiler = (enum cptx_compiler)_i, .cache = cache, .verbose = true };
	for (int turn = 0; turn < 3; turn++) {
		opt.cache = turn ? cache : NULL; /* plainly, into the cache, out of it */
		cptx_program *p = cptx_device_load_text(dev, whole, sizeof whole - 1, &opt, &err);
		check_run(p);
		ck_assert_str_eq(cptx_program_note(p), "");
		if (turn == 2)
			printf("%s: %s\n", cptx_compiler_name(opt.compiler), cptx_program_log(p));
		cptx_program_destroy(p);
	}
	ck_assert_uint_ge(cptx_cache_count(cache).entries, 1);
	ck_assert_uint_ge(cptx_cache_count(cache).hits, 1);
	cptx_cache_close(cache);
}
END_TEST

/* A PTX version that the driver cannot know: another compiler is asked, and says in its turn that it cannot. */
START_TEST(a_version_from_the_future)
{
	NEED_GPU;
	static const char next[] = ".version 99.0\n.target sm_90\n.entry k() { ret; }\n";

	ck_assert_ptr_null(cptx_device_load_text(dev, next, sizeof next - 1, NULL, &err));
	printf("%s\n", err.text);
	FAILS(err, CPTX_E_NO_COMPILER, "takes no PTX newer than");
}
END_TEST

/* Which linker: the driver's, nvJitLink. */
START_TEST(links)
{
	static const enum cptx_compiler by[] = { CPTX_COMPILER_AUTO, CPTX_COMPILER_NVJITLINK };
	cptx_load_opt opt = { .compiler = by[_i] };

	NEED_GPU;
	if (by[_i] == CPTX_COMPILER_NVJITLINK && !cptx_compiler_find(by[_i], about, sizeof about))
		SKIP("%s", about);
	cptx_module *m = cptx_parse(called, sizeof called - 1, NULL);
	cptx_link_input in[] = { { .data = caller, .size = sizeof caller - 1 }, { .module = m } };
	cptx_program *p = cptx_device_link(dev, in, 2, &opt, &err);
	check_run(p);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	ck_assert_ptr_null(cptx_device_link(dev, in, 1, &opt, &err));
	printf("%s\n", err.text);
	FAILS(err, CPTX_E_COMPILE, "twice");
}
END_TEST

static char *read_file(const char *name, size_t *n)
{
	static char data[1 << 20];
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s", path);
	*n = fread(data, 1, sizeof data, f);
	fclose(f);
	return data;
}

START_TEST(links_what_nvcc_made)
{
	static const enum cptx_compiler by[] = { CPTX_COMPILER_DRIVER, CPTX_COMPILER_NVJITLINK };
	static const char *const forms[][2] = {
		{ "-cubin", "b.cubin" }, { "-fatbin", "b.fatbin" }, { "-c", "b.o" }, { "-lib", "b.a" }
	};
	const char *path = "PATH=\"$PATH:/usr/local/cuda/bin\"";
	cptx_load_opt opt = { .compiler = by[_i] };

	NEED_GPU;
	if (by[_i] == CPTX_COMPILER_NVJITLINK && !cptx_compiler_find(by[_i], about, sizeof about))
		SKIP("%s", about);
	snprintf(command, sizeof command, "%s nvcc --version >/dev/null 2>&1", path);
	if (system(command))
		SKIP("there is no nvcc in PATH or /usr/local/cuda");
	snprintf(command, sizeof command, "echo 'extern \"C\" __device__ int twice(int x) { return 2 * x; }' >%s/b.cu", folder);
	ck_assert_int_eq(system(command), 0);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t n;
		snprintf(command, sizeof command, "cd %s && %s nvcc -arch=sm_%u -rdc=true %s -o %s b.cu", folder, path,
		         (unsigned)cptx_device_get_info(dev)->compute_capability, forms[i][0], forms[i][1]);
		ck_assert_int_eq(system(command), 0);
		char *data = read_file(forms[i][1], &n);
		cptx_link_input in[] = { { .data = caller, .size = sizeof caller - 1 },
			                     { .data = data, .size = n, .name = forms[i][1] } };
		cptx_program *p = cptx_device_link(dev, in, 2, &opt, &err);
		check_run(p);
		cptx_program_destroy(p);
	}
}
END_TEST

/* ---- loading and unloading ---- */

typedef unsigned mem_info_fn(size_t *unused, size_t *total);

static size_t device_used(void)
{
	void *p = cptx_device_symbol(dev, "cuMemGetInfo_v2");
	mem_info_fn *fn;
	size_t left = 0, total = 0;

	memcpy(&fn, &p, sizeof fn);
	cptx_device_make_current(dev, &err);
	ck_assert_uint_eq(fn(&left, &total), 0);
	return total - left;
}

/* Resident memory of this process in KiB. */
static size_t host_used(void)
{
	size_t pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%zu %zu", &pages, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* CPTX_GPU_LOADS=10000: that many. */
START_TEST(loading_leaks_nothing)
{
	const char *many = getenv("CPTX_GPU_LOADS");
	unsigned loads = many ? (unsigned)strtoul(many, NULL, 10) : USUAL_LOADS;
	size_t device = 0, host = 0;

	NEED_GPU;
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	for (unsigned i = 0; i < SETTLING + loads; i++) {
		if (i == SETTLING)
			device = device_used(), host = host_used();
		cptx_load_opt opt = { .cache = i % 2 ? cache : NULL };
		cptx_program *p = cptx_device_load_text(dev, whole, sizeof whole - 1, &opt, &err);
		OK(err);
		if (i % 100 == 0)
			check_run(p);
		cptx_program_destroy(p);
	}
	size_t device_now = device_used(), host_now = host_used();
	printf("%u loads: device memory %zu, then %zu bytes; host memory %zu, then %zu KiB\n", loads, device, device_now, host,
	       host_now);
	ck_assert_uint_le(device_now, device);
	ck_assert_uint_le(host_now, host + 2048 + loads / 50); /* an allocator's blur: 20 bytes a load at most */
	cptx_cache_close(cache);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("compile");
	TCase *c = tcase_create("compile");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 600);
	tcase_add_checked_fixture(c, before, after);
	tcase_add_loop_test(c, each_compiler, 0, CPTX_COMPILER_NVPTXCOMPILER + 1);
	tcase_add_test(c, a_version_from_the_future);
	tcase_add_loop_test(c, links, 0, 2);
	tcase_add_loop_test(c, links_what_nvcc_made, 0, 2);
	tcase_add_test(c, loading_leaks_nothing);
	suite_add_tcase(s, c);
	return test_main("compile", s);
}
