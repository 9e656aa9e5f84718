/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memmem */
/* Linking with what nvcc makes, by nvJitLink. */
#include "../runtime/harness.h"
#include "leaks.h"

#include <cptx/compile.h>

#include <dlfcn.h>
#include <unistd.h>

/* Libraries call this one: the program exports it. */
static unsigned drivers_asked_for;
void *dlopen(const char *name, int flags)
{
	void *p = dlsym(RTLD_NEXT, "dlopen"), *(*real)(const char *, int);

	memcpy(&real, &p, sizeof real);
	drivers_asked_for += name && strstr(name, "libcuda.so") != NULL;
	return real(name, flags);
}

static cptx_error err;
static char folder[64], about[512];

/* What calls a function of nvcc's, as PTX; and the function, as C++. */
static const char caller[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".extern .func (.param .b32 out) twice(.param .b32 x);\n"
	".visible .entry use_it(.param .u64 p)\n{\n\t.reg .b32 %r<3>;\n\t.reg .b64 %rd1;\n"
	"\tld.param.u64 %rd1, [p];\n\tld.global.u32 %r1, [%rd1];\n\t{\n\t.param .b32 a;\n\t.param .b32 b;\n"
	"\tst.param.b32 [a], %r1;\n\tcall (b), twice, (a);\n\tld.param.b32 %r2, [b];\n\t}\n"
	"\tst.global.u32 [%rd1], %r2;\n\tret;\n}\n";
static const char called[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
							 ".visible .func (.param .b32 out) twice(.param .b32 x)\n{\n\t.reg .b32 %r<3>;\n"
							 "\tld.param.b32 %r1, [x];\n\tadd.u32 %r2, %r1, %r1;\n\tst.param.b32 [out], %r2;\n\tret;\n}\n";

static void before(void)
{
	memset(&err, 0, sizeof err);
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void after(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static cptx_cubin *link_pair(cptx_link_input second, cptx_compile_opt opt)
{
	cptx_link_input in[] = { { .data = caller, .size = sizeof caller - 1, .name = "caller.ptx" }, second };
	opt.target = opt.target ? opt.target : "sm_90";
	return cptx_link(in, 2, &opt, &err);
}

/* A whole program, not an object, that has the kernel. */
static void check_program(const cptx_cubin *c)
{
	OK(err);
	const char *p = cptx_cubin_data(c);
	size_t n = cptx_cubin_size(c);
	ck_assert_mem_eq(p, "\177ELF", 4);
	ck_assert_int_eq(p[16], 2);
	ck_assert_ptr_nonnull(memmem(p, n, ".text.use_it", 12));
	ck_assert_ptr_nonnull(memmem(p, n, "twice", 5));
}

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

START_TEST(ptx_and_modules)
{
	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	cptx_cubin *c = link_pair((cptx_link_input){ .data = called, .size = sizeof called - 1 }, (cptx_compile_opt){ 0 });
	check_program(c);
	cptx_cubin_destroy(c);
	cptx_module *m = cptx_parse(called, sizeof called - 1, NULL);
	c = link_pair((cptx_link_input){ .module = m }, (cptx_compile_opt){ .verbose = true });
	check_program(c);
	ck_assert_msg(strstr(cptx_cubin_log(c), "registers") != NULL, "%s", cptx_cubin_log(c));
	cptx_cubin_destroy(c);
	cptx_module_destroy(m);
	/* An object of ptxas. */
	cptx_cubin *object = NULL;
	if (cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about)) {
		cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .relocatable = true };
		object = cptx_compile(called, sizeof called - 1, &opt, &err);
		OK(err);
		cptx_link_input in = { .data = cptx_cubin_data(object), .size = cptx_cubin_size(object) };
		c = link_pair(in, (cptx_compile_opt){ 0 });
		check_program(c);
		cptx_cubin_destroy(c);
		cptx_cubin_destroy(object);
	}
}
END_TEST

START_TEST(what_nvcc_made)
{
	static const struct {
		const char *option, *file;
	} forms[] = { { "-cubin", "b.cubin" }, { "-fatbin", "b.fatbin" }, { "-c", "b.o" }, { "-lib", "b.a" } };
	const char *home = getenv("CUDA_HOME");
	char command[512];
	size_t n;

	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	snprintf(command, sizeof command, "PATH=\"$PATH:%s/bin:/usr/local/cuda/bin\" nvcc --version >/dev/null 2>&1",
	         home ? home : "");
	if (system(command))
		SKIP("there is no nvcc in CUDA_HOME, PATH or /usr/local/cuda");
	snprintf(command, sizeof command, "echo 'extern \"C\" __device__ int twice(int x) { return 2 * x; }' >%s/b.cu", folder);
	ck_assert_int_eq(system(command), 0);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		snprintf(command, sizeof command,
		         "cd %s && PATH=\"$PATH:%s/bin:/usr/local/cuda/bin\" nvcc -arch=sm_90 -rdc=true %s -o %s b.cu >/dev/null",
		         folder, home ? home : "", forms[i].option, forms[i].file);
		ck_assert_int_eq(system(command), 0);
		char *data = read_file(forms[i].file, &n);
		cptx_cubin *c =
			link_pair((cptx_link_input){ .data = data, .size = n, .name = forms[i].file }, (cptx_compile_opt){ 0 });
		check_program(c);
		cptx_cubin_destroy(c);
	}
}
END_TEST

/* nvJitLink tells nothing but stderr of a second definition; where there is a driver, its cache must not be looked into. */
START_TEST(defined_once)
{
	static const char weak[] = ".version 8.0\n.target sm_90\n.address_size 64\n.weak .global .align 4 .b32 g;\n";
	cptx_compile_opt opt = { .target = "sm_90" };
	cptx_link_input in[] = { { .data = caller, .size = sizeof caller - 1, .name = "caller.ptx" },
		                     { .data = called, .size = sizeof called - 1, .name = "called.ptx" },
		                     { .data = weak, .size = sizeof weak - 1, .name = "weak.ptx" },
		                     { .data = weak, .size = sizeof weak - 1, .name = "weak2.ptx" },
		                     { .data = called, .size = sizeof called - 1, .name = "again.ptx" } };

	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	cptx_cubin *c = cptx_link(in, 4, &opt, &err);
	check_program(c);
	cptx_cubin_destroy(c);
	ck_assert_ptr_null(cptx_link(in, 5, &opt, &err));
	FAILS(err, CPTX_E_COMPILE, "Multiple definition of 'twice' in 'again.ptx', first defined in 'called.ptx'");
	ck_assert_uint_eq(drivers_asked_for, 0);
}
END_TEST

START_TEST(what_does_not_link)
{
	cptx_compile_opt opt = { .target = "sm_90" };
	cptx_link_input lone = { .data = caller, .size = sizeof caller - 1, .name = "caller.ptx" }, none = { .name = "empty" };
	static const char bad[] = ".version 8.0\n.target sm_90\n.func twice()\n{\n\tadd.f99 a, b, c;\n}\n";

	ck_assert_ptr_null(cptx_link(&lone, 0, &opt, &err));
	FAILS(err, CPTX_E_ARG, "nothing to link");
	ck_assert_ptr_null(cptx_link(&lone, 1, NULL, &err));
	FAILS(err, CPTX_E_ARG, "needs the option .target");
	ck_assert_ptr_null(cptx_link(&none, 1, &opt, &err));
	FAILS(err, CPTX_E_ARG, "empty has neither a module nor data");
	cptx_link_input both = lone;
	both.module = cptx_module_new(NULL);
	ck_assert_ptr_null(cptx_link(&both, 1, &opt, &err));
	FAILS(err, CPTX_E_ARG, "caller.ptx has a module and data, too");
	cptx_module_destroy(both.module);
	opt.compiler = CPTX_COMPILER_PTXAS;
	ck_assert_ptr_null(cptx_link(&lone, 1, &opt, &err));
	FAILS(err, CPTX_E_ARG, "ptxas does not link");
	opt.compiler = CPTX_COMPILER_AUTO;
	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	ck_assert_ptr_null(cptx_link(&lone, 1, &opt, &err));
	FAILS(err, CPTX_E_COMPILE, "twice");
	ck_assert_ptr_null(link_pair((cptx_link_input){ .data = bad, .size = sizeof bad - 1, .name = "bad.ptx" }, opt));
	FAILS(err, CPTX_E_COMPILE, "which is: add.f99 a, b, c;");
	ck_assert_ptr_null(link_pair((cptx_link_input){ .data = "\177ELF cut", .size = 8, .name = "cut.cubin" }, opt));
	FAILS(err, CPTX_E_ARG, "cut.cubin is damaged or cut short");
	static const char split[] = ".version 8.0\n\0.target sm_90\n";
	ck_assert_ptr_null(link_pair((cptx_link_input){ .data = split, .size = sizeof split, .name = "split.ptx" }, opt));
	FAILS(err, CPTX_E_ARG, "split.ptx:2: a NUL byte");
}
END_TEST

/* Damaged machine code never gets to the linker, and no program that nothing can be linked to. */
START_TEST(machine_code_is_looked_at)
{
	cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS };

	if (!cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about))
		SKIP("%s", about);
	cptx_cubin *program = cptx_compile(called, sizeof called - 1, &opt, &err);
	OK(err);
	size_t n = cptx_cubin_size(program);
	char *bytes = malloc(n);
	memcpy(bytes, cptx_cubin_data(program), n);
	ck_assert_ptr_null(link_pair((cptx_link_input){ .data = bytes, .size = n }, (cptx_compile_opt){ 0 }));
	FAILS(err, CPTX_E_ARG, "input 2 is a program");
	for (size_t cut = 4; cut < 64; cut++) {
		ck_assert_ptr_null(link_pair((cptx_link_input){ .data = bytes, .size = cut }, (cptx_compile_opt){ 0 }));
		FAILS(err, CPTX_E_ARG, "input 2 is damaged or cut short");
	}
	bytes[44] = 1; /* the table of sections is somewhere behind 4 GiB */
	ck_assert_ptr_null(link_pair((cptx_link_input){ .data = bytes, .size = n }, (cptx_compile_opt){ 0 }));
	FAILS(err, CPTX_E_ARG, "input 2 is damaged or cut short");
	free(bytes);
	cptx_cubin_destroy(program);
}
END_TEST

START_TEST(links_are_kept)
{
	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	cptx_compile_opt opt = { .cache = cache };
	cptx_link_input in = { .data = called, .size = sizeof called - 1 };
	for (int i = 0; i < 2; i++) {
		cptx_cubin *c = link_pair(in, opt);
		check_program(c);
		ck_assert(cptx_cubin_cached(c) == (i == 1));
		cptx_cubin_destroy(c);
	}
	in.name = "other";
	cptx_cubin *c = link_pair(in, opt);
	check_program(c);
	ck_assert(!cptx_cubin_cached(c));
	cptx_cubin_destroy(c);
	cptx_cache_close(cache);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { ptx_and_modules,           what_nvcc_made, defined_once, what_does_not_link,
		                           machine_code_is_looked_at, links_are_kept };
	return harness_run("link", tests, sizeof tests / sizeof *tests, before, after);
}
