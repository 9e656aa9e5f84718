/* SPDX-License-Identifier: MIT */
/* Who compiles what is loaded, against the fake driver: the driver, another compiler in its place, the cache, and links. */
#include "fake_cuda.h"
#include "../compile/leaks.h"
#include "harness.h"

#include <cptx/device.h>

#include <dlfcn.h>
#include <stdlib.h>

static const char text[] = ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
						   "\t.reg .b64 %rd1;\n\tld.param.u64 %rd1, [p];\n\tst.global.u32 [%rd1], 7;\n\tret;\n}\n";
enum { SIZE = sizeof text - 1 };

static fake_state *fake;
static cptx_device *dev;
static cptx_error err;
static char folder[64];
static char *ptxas;

static void start(int version)
{
	cptx_device_close(dev);
	*fake = (fake_state){ .version = version, .devices = 1, .major = 9, .max_threads = 1024, .regs = 32, .ctas = 2 };
	dev = cptx_device_open("cuda", &err);
	OK(err);
}

static void before(void)
{
	const char *path = getenv("CPTX_TEST_FAKE_CUDA");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;

	ck_assert_msg(lib != NULL, "CPTX_TEST_FAKE_CUDA names no fake driver");
	setenv("CPTX_CUDA_LIBRARY", path, 1);
	memset(&err, 0, sizeof err);
	fake = dlsym(lib, "fake_cuda");
	dev = NULL;
	start(13000);
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ptxas = getenv("CPTX_PTXAS") ? strdup(getenv("CPTX_PTXAS")) : NULL;
}

static void after(void)
{
	char command[128];

	cptx_device_close(dev);
	dev = NULL;
	ck_assert_uint_eq(fake->modules, 0);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
	unsetenv("CPTX_PTXAS");
	unsetenv("CPTX_NVJITLINK");
	unsetenv("CPTX_NVPTXCOMPILER");
	if (ptxas)
		setenv("CPTX_PTXAS", ptxas, 1);
	free(ptxas);
}

static void nobody(void)
{
	setenv("CPTX_PTXAS", "/nonexistent/ptxas", 1);
	setenv("CPTX_NVJITLINK", "/nonexistent/nvjitlink.so", 1);
	setenv("CPTX_NVPTXCOMPILER", "/nonexistent/nvptx.so", 1);
}

static cptx_program *load(enum cptx_compiler by, cptx_cache *cache)
{
	return cptx_device_load_text(dev, text, SIZE, &(cptx_load_opt){ .compiler = by, .cache = cache, .verbose = true }, &err);
}

#define NEED_COMPILER(c)                                                                                                    \
	char about[512];                                                                                                        \
	if (!cptx_compiler_find((c), about, sizeof about))                                                                      \
	SKIP("%s", about)

/* ---- in the driver's place ---- */

/* Each way in which a driver says that it is too old. */
START_TEST(a_driver_that_is_too_old)
{
	static const struct {
		int version;
		cu_result refuse;
		const char *jit_error, *note;
	} cases[] = {
		{ 12000, 0, NULL, "the program is PTX 8.7, but the driver (CUDA 12.0) takes no PTX newer than 8.0; compiled by " },
		{ 13000, CU_UNSUPPORTED_PTX, NULL, "does not know this PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)" },
		{ 13000, CU_NO_BINARY, NULL, "does not know this PTX: CUDA_ERROR_NO_BINARY_FOR_GPU (209)" },
		{ 13000, CU_INVALID_PTX, NULL, "does not know this PTX: CUDA_ERROR_INVALID_PTX (218)" },
	};

	NEED_COMPILER(CPTX_COMPILER_AUTO);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		start(cases[i].version);
		fake->refuse_ptx = cases[i].refuse;
		cptx_program *p = load(CPTX_COMPILER_AUTO, NULL);
		OK(err);
		ck_assert_msg(strstr(cptx_program_note(p), cases[i].note) != NULL, "%s", cptx_program_note(p));
		ck_assert_uint_eq(fake->loads[0], 0);
		ck_assert_uint_eq(fake->loads[1], 1);
		ck_assert_str_eq(cptx_program_kernel_at(p, 0), "k");
		ck_assert_msg(strstr(cptx_program_log(p), "registers") != NULL, "%s", cptx_program_log(p));
		/* PTX for sm_80, machine code for the device. */
		ck_assert_msg(strstr(cptx_program_log(p), "sm_90") != NULL, "%s", cptx_program_log(p));
		cptx_program_destroy(p);
	}
}
END_TEST

START_TEST(what_the_driver_takes_stays_with_it)
{
	cptx_program *p = load(CPTX_COMPILER_AUTO, NULL);

	OK(err);
	ck_assert_uint_eq(fake->loads[0], 1);
	ck_assert_str_eq(cptx_program_note(p), "");
	cptx_program_destroy(p);
	/* A fault of the program is none of the driver's age. */
	fake->jit_error = "ptxas application ptx input, line 8; error   : no";
	ck_assert_ptr_null(load(CPTX_COMPILER_AUTO, NULL));
	FAILS(err, CPTX_E_COMPILE, "which is: st.global.u32 [%rd1], 7;");
	fake->jit_error = NULL;
	strcpy(fake->fail_call, "cuModuleLoadDataEx");
	fake->fail_code = CU_ILLEGAL_ADDRESS;
	ck_assert_ptr_null(load(CPTX_COMPILER_AUTO, NULL));
	FAILS(err, CPTX_E_DRIVER, "CUDA_ERROR_ILLEGAL_ADDRESS");
	fake->fail_call[0] = 0;
	static const char cut[] = ".version 8.0\n\0.target sm_90\n";
	ck_assert_ptr_null(cptx_device_load_text(dev, cut, sizeof cut, NULL, &err));
	FAILS(err, CPTX_E_ARG, "ptx:2: a NUL byte");
}
END_TEST

START_TEST(nobody_else_is_there)
{
	nobody();
	start(12000);
	ck_assert_ptr_null(load(CPTX_COMPILER_AUTO, NULL));
	ck_assert_msg(strstr(err.text, "takes no PTX newer than 8.0; nothing here can compile the program: ") != NULL, "%s",
	              err.text);
	FAILS(err, CPTX_E_NO_COMPILER, "/nonexistent/ptxas");
	ck_assert_ptr_null(load(CPTX_COMPILER_DRIVER, NULL));
	FAILS(err, CPTX_E_NO_COMPILER, "another compiler");
	start(13000);
	fake->refuse_ptx = CU_UNSUPPORTED_PTX;
	ck_assert_ptr_null(load(CPTX_COMPILER_DRIVER, NULL));
	FAILS(err, CPTX_E_COMPILE, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
	ck_assert_ptr_null(load(CPTX_COMPILER_AUTO, NULL));
	FAILS(err, CPTX_E_NO_COMPILER, "/nonexistent/nvjitlink.so");
}
END_TEST

START_TEST(the_one_that_was_asked_for)
{
	static const enum cptx_compiler by[] = { CPTX_COMPILER_PTXAS, CPTX_COMPILER_NVJITLINK };

	NEED_COMPILER(by[_i]);
	cptx_program *p = load(by[_i], NULL);
	OK(err);
	ck_assert_uint_eq(fake->loads[0], 0);
	ck_assert_uint_eq(fake->loads[1], 1);
	ck_assert_str_eq(cptx_program_note(p), "");
	cptx_program_destroy(p);
	/* The same error from whomever. */
	static const char bad[] =
		".version 8.0\n.target sm_90\n.visible .entry k() { .reg .b32 %r; add.f99 %r, %r, %r; ret; }\n";
	cptx_load_opt opt = { .compiler = by[_i], .name = "bad.ptx" };
	ck_assert_ptr_null(cptx_device_load_text(dev, bad, sizeof bad - 1, &opt, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "refuses the program:"));
	FAILS(err, CPTX_E_COMPILE, "\n        which is: .visible .entry k()");
}
END_TEST

/* ---- the cache ---- */

static cptx_program *ask(cptx_cache *cache, unsigned links, unsigned texts, unsigned images)
{
	memset(fake->loads, 0, sizeof fake->loads);
	fake->links = 0;
	cptx_program *p = load(CPTX_COMPILER_AUTO, cache);
	OK(err);
	ck_assert_uint_eq(fake->links, links);
	ck_assert_uint_eq(fake->loads[0], texts);
	ck_assert_uint_eq(fake->loads[1], images);
	ck_assert_str_eq(cptx_program_kernel_at(p, 0), "k");
	cptx_program_destroy(p);
	return p;
}

/* The driver's compiler is asked for a cubin by its linker, so that it can be kept. */
START_TEST(what_the_driver_made_is_kept)
{
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);

	OK(err);
	fake->jit_info = "registers";
	ask(cache, 1, 0, 1);
	ask(cache, 0, 0, 1);
	ask(cache, 0, 0, 1);
	ck_assert_uint_eq(cptx_cache_count(cache).entries, 1);
	start(13010); /* another driver */
	ask(cache, 1, 0, 1);
	fake->minor = 3; /* another device */
	cptx_device_close(dev);
	dev = cptx_device_open("cuda", &err);
	ask(cache, 1, 0, 1);
	/* A driver that cannot do it so does it the plain way. */
	start(12080);
	strcpy(fake->fail_call, "cuLinkComplete");
	fake->fail_code = CU_INVALID_VALUE;
	ask(cache, 0, 1, 0);
	fake->fail_call[0] = 0;
	ask(NULL, 0, 1, 0);
	cptx_cache_close(cache);
}
END_TEST

START_TEST(what_others_made_is_kept)
{
	NEED_COMPILER(CPTX_COMPILER_AUTO);
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	OK(err);
	start(12000);
	ask(cache, 0, 0, 1);
	ck_assert_uint_eq(cptx_cache_count(cache).hits, 0);
	ask(cache, 0, 0, 1);
	ck_assert_uint_ge(cptx_cache_count(cache).hits, 1);
	cptx_cache_close(cache);
}
END_TEST

/* ---- links ---- */

START_TEST(linked_by_the_driver)
{
	static const unsigned char cubin[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 1, [18] = 190 },
							   object[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [18] = 62 },
							   fatbin[64] = { 0x50, 0xed, 0x55, 0xba };
	cptx_module *m = cptx_parse(text, SIZE, &(cptx_parse_opt){ .name = "k.ptx" });
	cptx_link_input in[] = { { .module = m },
		                     { .data = text, .size = SIZE, .name = "k.ptx" },
		                     { .data = cubin, .size = sizeof cubin },
		                     { .data = fatbin, .size = sizeof fatbin },
		                     { .data = object, .size = sizeof object },
		                     { .data = "!<arch>\n", .size = 8 } };
	static const unsigned want[] = { CU_INPUT_PTX,    CU_INPUT_PTX,    CU_INPUT_CUBIN,
		                             CU_INPUT_FATBIN, CU_INPUT_OBJECT, CU_INPUT_LIBRARY };

	cptx_program *p = cptx_device_link(dev, in, ARRAY_LEN(in), NULL, &err);
	OK(err);
	ck_assert_uint_eq(fake->pieces, ARRAY_LEN(in));
	ck_assert_mem_eq(fake->piece, want, sizeof want);
	ck_assert_uint_eq(fake->links, 1);
	ck_assert_uint_eq(fake->loads[1], 1);
	ck_assert_str_eq(cptx_program_kernel_at(p, 0), "k");
	cptx_launch *l = cptx_launch_new(p, "of_a_cubin", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 } }, &err);
	OK(err); /* a kernel whose name no text tells */
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
	strcpy(fake->fail_call, "cuLinkComplete");
	fake->fail_code = CU_INVALID_VALUE;
	ck_assert_ptr_null(cptx_device_link(dev, in, 1, NULL, &err));
	FAILS(err, CPTX_E_DRIVER, "the driver refuses the program: CUDA_ERROR_INVALID_VALUE");
	fake->fail_call[0] = 0;
	ck_assert_ptr_null(cptx_device_link(dev, in, 1, &(cptx_load_opt){ .compiler = CPTX_COMPILER_PTXAS }, &err));
	FAILS(err, CPTX_E_ARG, "ptxas does not link");
	ck_assert_ptr_null(cptx_device_link(dev, in, 0, NULL, &err));
	FAILS(err, CPTX_E_ARG, "nothing to link");
	in[1].size = 0;
	ck_assert_ptr_null(cptx_device_link(dev, in, 2, NULL, &err));
	FAILS(err, CPTX_E_ARG, "k.ptx has neither");
	cptx_device *emu = cptx_device_open("emu:sm_90", &err);
	ck_assert_ptr_null(cptx_device_link(emu, &in[2], 1, NULL, &err));
	FAILS(err, CPTX_E_ARG, "the emulator links PTX text and modules");
	cptx_device_close(emu);
	cptx_module_destroy(m);
}
END_TEST

/* As cptx_link does it: for the device itself, under the program's name, with what the driver cannot have. */
START_TEST(linked_by_nvjitlink)
{
	static const char caller[] = ".version 8.7\n.target sm_80\n.address_size 64\n.extern .func other();\n"
								 ".visible .entry use_it()\n{\n\tcall other;\n\tret;\n}\n";
	static const char other[] = ".version 8.7\n.target sm_80\n.address_size 64\n.visible .func other() { ret; }\n";
	cptx_link_input in[] = { { .data = caller, .size = sizeof caller - 1 }, { .data = other, .size = sizeof other - 1 } };
	cptx_load_opt opt = { .compiler = CPTX_COMPILER_NVJITLINK, .target = "sm_80", .verbose = true };

	NEED_COMPILER(CPTX_COMPILER_NVJITLINK);
	cptx_program *p = cptx_device_link(dev, in, 2, &opt, &err);
	OK(err);
	ck_assert_uint_eq(fake->links, 0);
	ck_assert_uint_eq(fake->loads[1], 1);
	ck_assert_msg(strstr(cptx_program_log(p), "'sm_90'") != NULL, "%s", cptx_program_log(p));
	ck_assert_str_eq(cptx_program_note(p), "");
	ck_assert_uint_eq(cptx_program_version(p), 87);
	cptx_program_destroy(p);
	ck_assert_ptr_null(cptx_device_link(dev, in, 1, &opt, &err));
	FAILS(err, CPTX_E_COMPILE, "'other'");
	opt.compiler = (enum cptx_compiler)77;
	ck_assert_ptr_null(cptx_device_link(dev, in, 1, &opt, &err));
	FAILS(err, CPTX_E_ARG, "what has no name does not link");
	/* A driver that is too old, by its number and by what it says. */
	for (int way = 0; way < 2; way++) {
		start(way ? 13000 : 12000);
		fake->refuse_ptx = way ? CU_UNSUPPORTED_PTX : 0;
		p = cptx_device_link(dev, in, 2, NULL, &err);
		OK(err);
		ck_assert_msg(strstr(cptx_program_note(p), "; linked by nvJitLink") != NULL, "%s", cptx_program_note(p));
		ck_assert_uint_eq(fake->loads[1], 1);
		cptx_program_destroy(p);
	}
	start(12000);
	opt.compiler = CPTX_COMPILER_DRIVER;
	ck_assert_ptr_null(cptx_device_link(dev, in, 2, &opt, &err));
	FAILS(err, CPTX_E_NO_COMPILER, "takes no PTX newer than 8.0; a newer driver is needed");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("compile");
	TCase *c = tcase_create("compile");
	const TTest *const tests[] = { a_driver_that_is_too_old, what_the_driver_takes_stays_with_it,
		                           nobody_else_is_there,     what_the_driver_made_is_kept,
		                           what_others_made_is_kept, linked_by_the_driver,
		                           linked_by_nvjitlink };

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, before, after);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(c, tests[i]);
	tcase_add_loop_test(c, the_one_that_was_asked_for, 0, 2);
	suite_add_tcase(s, c);
	return test_main("compile", s);
}
