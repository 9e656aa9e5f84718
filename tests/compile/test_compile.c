/* SPDX-License-Identifier: MIT */
/* PTX to cubins by each compiler that is here, and what happens where one is not, is too old, hangs, crashes or is killed.
 */
#include "../runtime/harness.h"
#include "leaks.h"

#include <cptx/compile.h>
#include <cptx/cptx.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KERNEL(version, target, body)                                                                                       \
	".version " version "\n.target " target "\n.address_size 64\n.visible .entry scale(.param .u64 p, .param .u32 n)\n"     \
	"{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n\tld.param.u64 %rd1, [p];\n\tld.param.u32 %r1, [n];\n" body                \
	"\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"

static const char good[] = KERNEL("8.0", "sm_90", "\tadd.u32 %r1, %r1, 5;\n");
static const char bad[] = KERNEL("8.0", "sm_90", "\tadd.u32 %r1, %r1, %nothing;\n");
static const char future[] = KERNEL("99.9", "sm_90", "");

static cptx_error err;
static char folder[64];
static const char *const variables[] = { "CPTX_PTXAS", "CPTX_NVJITLINK", "CPTX_NVPTXCOMPILER",
	                                     "PATH",       "CUDA_HOME",      "CUDA_PATH" };
static char *kept[(sizeof variables / sizeof *variables)];

static void before(void)
{
	memset(&err, 0, sizeof err);
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (size_t i = 0; i < (sizeof variables / sizeof *variables); i++)
		kept[i] = getenv(variables[i]) ? strdup(getenv(variables[i])) : NULL;
}

static void after(void)
{
	char command[128];

	for (size_t i = 0; i < (sizeof variables / sizeof *variables); i++) {
		if (kept[i])
			setenv(variables[i], kept[i], 1);
		else
			unsetenv(variables[i]);
		free(kept[i]);
	}
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static cptx_cubin *compile(const char *text, enum cptx_compiler by)
{
	return cptx_compile(text, strlen(text), &(cptx_compile_opt){ .compiler = by, .name = "scale.ptx", .verbose = true },
	                    &err);
}

/* A program of the shell that stands in for ptxas. */
static void pretend(const char *script)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/ptxas", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	setenv("CPTX_PTXAS", path, 1);
}

static unsigned open_files(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void nobody(void)
{
	setenv("CPTX_PTXAS", "/nonexistent/ptxas", 1);
	setenv("CPTX_NVJITLINK", "/nonexistent/nvjitlink.so", 1);
	setenv("CPTX_NVPTXCOMPILER", "/nonexistent/nvptx.so", 1);
}

/* ---- every compiler, the same ---- */

static const enum cptx_compiler alone[] = { CPTX_COMPILER_PTXAS, CPTX_COMPILER_NVJITLINK, CPTX_COMPILER_NVPTXCOMPILER };

START_TEST(each_compiles)
{
	enum cptx_compiler by = alone[_i];
	char about[512];

	if (!cptx_compiler_find(by, about, sizeof about))
		SKIP("%s", about);
	cptx_cubin *c = compile(good, by);
	OK(err);
	ck_assert_int_eq(cptx_cubin_compiler(c), by);
	ck_assert_uint_gt(cptx_cubin_size(c), 1000);
	ck_assert_mem_eq(cptx_cubin_data(c), "\177ELF", 4);
	ck_assert_msg(strstr(cptx_cubin_log(c), "registers") != NULL, "the log: %s", cptx_cubin_log(c));
	ck_assert_str_eq(cptx_cubin_note(c), "");
	cptx_cubin_destroy(c);
}
END_TEST

START_TEST(each_refuses)
{
	enum cptx_compiler by = alone[_i];
	char about[512];

	if (!cptx_compiler_find(by, about, sizeof about))
		SKIP("%s", about);
	ck_assert_ptr_null(compile(bad, by));
	ck_assert_msg(strstr(err.text, "which is: add.u32 %r1, %r1, %nothing;") != NULL, "%s", err.text);
	ck_assert_msg(strstr(err.text, "line 10") != NULL, "%s", err.text);
	ck_assert_msg(strstr(err.text, "/proc") == NULL, "%s", err.text);
	FAILS(err, CPTX_E_COMPILE, "refuses the program:");
	ck_assert_ptr_null(compile(future, by));
	FAILS(err, CPTX_E_NO_COMPILER, "is too old for the program:");
	cptx_compile_opt opt = { .compiler = by, .target = "sm_199" };
	ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &opt, &err));
	FAILS(err, CPTX_E_TARGET, "there is no target \"sm_199\" that");
}
END_TEST

/* Each option does something: the size of the image, or the log, tells. */
START_TEST(each_takes_options)
{
	enum cptx_compiler by = alone[_i];
	char about[512];
	const char *flags[] = { "-warn-spills", "--suppress-stack-size-warning" };
	cptx_compile_opt opts[] = { { .compiler = by },
		                        { .compiler = by, .optimize = CPTX_OPT_0 },
		                        { .compiler = by, .optimize = CPTX_OPT_3, .max_regs = 32 },
		                        { .compiler = by, .debug = true },
		                        { .compiler = by, .flags = flags, .nflags = 2 },
		                        { .compiler = by, .relocatable = true },
		                        { .compiler = by, .line_info = true } };
	size_t size[(sizeof opts / sizeof *opts)];

	if (!cptx_compiler_find(by, about, sizeof about))
		SKIP("%s", about);
	for (size_t i = 0; i < (sizeof opts / sizeof *opts); i++) {
		cptx_cubin *c = cptx_compile(good, sizeof good - 1, &opts[i], &err);
		OK(err);
		size[i] = cptx_cubin_size(c);
		unsigned char type = ((const unsigned char *)cptx_cubin_data(c))[16];
		ck_assert_msg((type == 1) == opts[i].relocatable, "option %zu: ELF type %d", i, type);
		cptx_cubin_destroy(c);
	}
	ck_assert_uint_ne(size[1], size[0]);
	ck_assert_uint_ne(size[3], size[0]);
	cptx_compile_opt wrong = { .compiler = by, .flags = (const char *const[]){ "-no-such-option" }, .nflags = 1 };
	ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &wrong, &err));
	FAILS(err, CPTX_E_COMPILE, "no-such-option");
	wrong = (cptx_compile_opt){ .compiler = by, .debug = true, .optimize = CPTX_OPT_2 };
	ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &wrong, &err));
	FAILS(err, CPTX_E_ARG, ".debug with .optimize = CPTX_OPT_2");
}
END_TEST

/* ---- lines ---- */

START_TEST(built_kernels_name_the_users_line)
{
	char about[512], want[64];

	if (!cptx_compiler_find(CPTX_COMPILER_AUTO, about, sizeof about))
		SKIP("%s", about);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "big", .block = { 32 });
	cptx_shared_named(k, CPTX_U32, 16384, 16, "much"); /* 64 KiB: ptxas has a bound of 48 KiB for what is static */
	cptx_val x = cptx_param(k, CPTX_PTR, "x");
	cptx_st(k, x, 1, .space = CPTX_GLOBAL, .type = CPTX_U32);
	cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, &err);
	if (err.code == CPTX_E_LIMIT) /* it is known here already, which is better */
		memset(&err, 0, sizeof err);
	cptx_cubin *c = ptx ? cptx_compile_ptx(ptx, NULL, &err) : NULL;
	ck_assert_ptr_null(c);
	if (ptx)
		FAILS(err, CPTX_E_COMPILE, "refuses the program");
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	/* By the .loc lines of a text. */
	static const char text[] = KERNEL(
		"8.0", "sm_90", "\t.loc 2 77 3\n\tadd.u32 %r1, %r1, %nothing;\n") ".file 1 \"other.c\"\n.file 2 \"dir/mine.c\"\n";
	ck_assert_ptr_null(cptx_compile(text, sizeof text - 1, NULL, &err));
	snprintf(want, sizeof want, "from dir/mine.c:77: add.u32");
	ck_assert_uint_eq(err.line, 77);
	ck_assert_str_eq(err.file, "dir/mine.c");
	FAILS(err, CPTX_E_COMPILE, want);
	/* A file may be called like a line. */
	cptx_compile_opt opt = { .name = "k, line 2; old, line 3.ptx" };
	ck_assert_ptr_null(cptx_compile(text, sizeof text - 1, &opt, &err));
	FAILS(err, CPTX_E_COMPILE, want);
}
END_TEST

/* ---- choosing ---- */

START_TEST(names)
{
	enum cptx_compiler c;

	for (int i = 0; i <= CPTX_COMPILER_NVPTXCOMPILER; i++) {
		ck_assert(cptx_compiler_named(cptx_compiler_name((enum cptx_compiler)i), &c));
		ck_assert_int_eq(c, i);
	}
	ck_assert(!cptx_compiler_named("gcc", &c));
	ck_assert(!cptx_compiler_named(NULL, &c));
	ck_assert_ptr_null(cptx_compiler_name((enum cptx_compiler)99));
}
END_TEST

START_TEST(nothing_is_there)
{
	char about[512];

	nobody();
	ck_assert(!cptx_compiler_find(CPTX_COMPILER_AUTO, about, sizeof about));
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_AUTO));
	ck_assert_msg(strstr(err.text, "CPTX_NVJITLINK names a library") != NULL, "%s", err.text);
	FAILS(err, CPTX_E_NO_COMPILER, "CPTX_PTXAS names /nonexistent/ptxas");
	for (size_t i = 0; i < (sizeof alone / sizeof *alone); i++) {
		ck_assert(!cptx_compiler_find(alone[i], about, sizeof about));
		ck_assert_ptr_null(compile(good, alone[i]));
		FAILS(err, CPTX_E_NO_COMPILER, "CPTX_");
	}
	setenv("CPTX_NVJITLINK", "libm.so.6", 1); /* a library, but not that one */
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_NVJITLINK));
	FAILS(err, CPTX_E_NO_COMPILER, "it has no nvJitLink");
}
END_TEST

/* nvJitLink compiles for linking, which cuts what these say; others take them. */
START_TEST(what_linking_would_change)
{
	static const char head[] = ".version 8.0\n.target sm_90a\n.address_size 64\n";
	static const char *const texts[] = {
		".extern .shared .align 1024 .b8 s[];\n.visible .entry k()\n{\n\tret;\n}\n",
		".visible .entry k() .maxntid 256\n{\n\tsetmaxnreg.inc.sync.aligned.u32 160;\n\tret;\n}\n",
	};
	char about[200], text[400];

	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(text, sizeof text, "%s%s", head, texts[i]);
		err = (cptx_error){ 0 };
		ck_assert_ptr_null(compile(text, CPTX_COMPILER_NVJITLINK));
		ck_assert_int_eq(err.code, CPTX_E_NO_COMPILER);
		ck_assert_msg(strstr(err.text, "would ignore setmaxnreg and align") != NULL, "%s", err.text);
	}
}
END_TEST

START_TEST(one_that_is_too_old_is_passed_over)
{
	char about[512];

	if (!cptx_compiler_find(CPTX_COMPILER_NVJITLINK, about, sizeof about))
		SKIP("%s", about);
	pretend("echo \"ptxas $5, line 1; fatal   : Unsupported .version 8.0; current version is '7.0'\" >&2; exit 255");
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	char *note[2];
	for (int turn = 0; turn < 2; turn++) { /* out of the cache it says the same */
		cptx_compile_opt opt = { .cache = cache };
		cptx_cubin *c = cptx_compile(good, sizeof good - 1, &opt, &err);
		OK(err);
		ck_assert(cptx_cubin_cached(c) == turn);
		ck_assert_int_eq(cptx_cubin_compiler(c), CPTX_COMPILER_NVJITLINK);
		ck_assert_msg(strstr(cptx_cubin_note(c), "is too old for the program (ptxas") != NULL, "%s", cptx_cubin_note(c));
		ck_assert_msg(strstr(cptx_cubin_note(c), "compiled by nvJitLink") != NULL, "%s", cptx_cubin_note(c));
		note[turn] = strdup(cptx_cubin_note(c));
		cptx_cubin_destroy(c);
	}
	ck_assert_str_eq(note[0], note[1]);
	free(note[0]), free(note[1]);
	cptx_cache_close(cache);
	/* A refusal is none of that: the next one is not asked. */
	pretend("echo 'ptxas x, line 10; error   : no' >&2; exit 255");
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_AUTO));
	FAILS(err, CPTX_E_COMPILE, "error   : no");
}
END_TEST

START_TEST(ptxas_is_found)
{
	char about[512], path[160];

	nobody();
	unsetenv("CPTX_PTXAS");
	unsetenv("CUDA_HOME");
	unsetenv("CUDA_PATH");
	pretend("echo 'Cuda compilation tools, release 1.2, V1.2.34'");
	unsetenv("CPTX_PTXAS");
	snprintf(path, sizeof path, "/nonexistent::%s", folder);
	setenv("PATH", path, 1);
	ck_assert(cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about));
	snprintf(path, sizeof path, "ptxas 1.2.34, %s/ptxas", folder);
	ck_assert_str_eq(about, path);
	/* CUDA_HOME comes before the PATH. */
	snprintf(path, sizeof path, "%s/bin", folder);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	setenv("CUDA_HOME", folder, 1);
	snprintf(path, sizeof path, "%s/bin/ptxas", folder);
	FILE *f = fopen(path, "w");
	fputs("#!/bin/sh\necho 'release 5.6, V5.6'\n", f);
	fclose(f);
	chmod(path, 0755);
	ck_assert(cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about));
	ck_assert_msg(strstr(about, "ptxas 5.6, ") == about, "%s", about);
}
END_TEST

START_TEST(bad_calls)
{
	ck_assert_ptr_null(cptx_compile(NULL, 3, NULL, &err));
	FAILS(err, CPTX_E_ARG, "is NULL");
	ck_assert_ptr_null(cptx_compile("", 0, NULL, &err));
	FAILS(err, CPTX_E_ARG, "is empty");
	ck_assert_ptr_null(cptx_compile("a\0b", 3, NULL, &err));
	FAILS(err, CPTX_E_ARG, "ptx:1: a NUL byte; PTX text has none in front of its end");
	ck_assert_ptr_null(cptx_compile("\0\0", 2, NULL, &err));
	FAILS(err, CPTX_E_ARG, "ptx:1: a NUL byte");
	ck_assert_ptr_null(cptx_compile("ret;", 4, NULL, &err));
	FAILS(err, CPTX_E_ARG, "no .target");
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_DRIVER));
	FAILS(err, CPTX_E_ARG, "needs a device");
	ck_assert_ptr_null(compile(good, (enum cptx_compiler)77));
	FAILS(err, CPTX_E_ARG, "no compiler 77");
	cptx_compile_opt flag = { .flags = (const char *const[]){ "k.ptx" }, .nflags = 1 };
	ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &flag, &err));
	FAILS(err, CPTX_E_ARG, "flags[0], 'k.ptx', is no option");
	ck_assert_ptr_null(cptx_compile_ptx(NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "is NULL");
	err.code = CPTX_E_ARG;
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_AUTO));
	cptx_cubin_destroy(NULL);
	ck_assert_str_eq(cptx_cubin_log(NULL), "");
}
END_TEST

/* ---- the cache ---- */

static bool cached(cptx_cache *cache, cptx_compile_opt opt)
{
	opt.cache = cache;
	cptx_cubin *c = cptx_compile(good, sizeof good - 1, &opt, &err);
	OK(err);
	ck_assert_mem_eq(cptx_cubin_data(c), "\177ELF", 4);
	ck_assert_msg(!opt.verbose == !strstr(cptx_cubin_log(c), "registers"), "%s", cptx_cubin_log(c));
	bool yes = cptx_cubin_cached(c);
	cptx_cubin_destroy(c);
	return yes;
}

/* The second time it is there; anything else that is asked for is something else. */
START_TEST(cached_by_what_was_asked)
{
	enum cptx_compiler by = alone[_i];
	const char *flags[] = { "-warn-spills" };
	cptx_compile_opt opts[] = { { .compiler = by },
		                        { .compiler = by, .name = "other" },
		                        { .compiler = by, .target = "sm_90a" },
		                        { .compiler = by, .optimize = CPTX_OPT_1 },
		                        { .compiler = by, .max_regs = 32 },
		                        { .compiler = by, .line_info = true },
		                        { .compiler = by, .debug = true },
		                        { .compiler = by, .verbose = true },
		                        { .compiler = by, .relocatable = true },
		                        { .compiler = by, .flags = flags, .nflags = 1 } };
	char about[512];

	if (!cptx_compiler_find(by, about, sizeof about))
		SKIP("%s", about);
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
			ck_assert_msg(cached(cache, opts[i]) == (turn == 1), "turn %d, options %zu", turn, i);
	ck_assert_uint_eq(cptx_cache_count(cache).entries, sizeof opts / sizeof *opts);
	cptx_cache_close(cache);
}
END_TEST

START_TEST(another_compiler_finds_nothing_old)
{
	char about[512], script[700];

	if (!cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about))
		SKIP("%s", about);
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	ck_assert(!cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	ck_assert(cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	snprintf(script, sizeof script, "exec %s \"$@\"", strrchr(about, ' ') + 1);
	pretend(script);
	ck_assert(!cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	ck_assert(cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	strcat(script, " # newer");
	pretend(script);
	ck_assert(!cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	/* A script that starts another compiler is known by what that one says. */
	char path[160];
	snprintf(script, sizeof script, "[ \"$1\" = --version ] && exec cat %s/version; exec %s \"$@\"", folder,
	         strrchr(about, ' ') + 1);
	pretend(script);
	snprintf(path, sizeof path, "echo 1 >%s/version", folder);
	for (int version = 1; version < 3; version++) {
		path[5] = (char)('0' + version);
		ck_assert_int_eq(system(path), 0);
		ck_assert(!cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
		ck_assert(cached(cache, (cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }));
	}
	/* What a file of options says is not known. */
	snprintf(path, sizeof path, "echo --opt-level=0 >%s/options", folder);
	ck_assert_int_eq(system(path), 0);
	snprintf(path, sizeof path, "--options-file=%s/options", folder);
	cptx_compile_opt by_file = { .compiler = CPTX_COMPILER_PTXAS, .flags = (const char *const[]){ path }, .nflags = 1 };
	for (int i = 0; i < 2; i++)
		ck_assert(!cached(cache, by_file));
	/* What is refused is refused again, not kept. */
	cptx_compile_opt opt = { .cache = cache };
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(cptx_compile(bad, sizeof bad - 1, &opt, &err));
		FAILS(err, CPTX_E_COMPILE, "refuses");
	}
	cptx_cache_close(cache);
}
END_TEST

/* ---- processes that misbehave ---- */

/*
 * The scripts here sleep for 6000 seconds: longer than watch.py lets a test wait, so whoever waited for one of them would be
 * found, on a busy machine too.
 */

/* Whether the process lives that wrote its number into the file.  On a busy machine it may have been ended before that. */
static bool alive(const char *file)
{
	char path[128];
	int pid = 0;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	FILE *f = fopen(path, "r");
	bool written = f && fscanf(f, "%d", &pid) == 1;
	if (f)
		fclose(f);
	if (!written)
		return false;
	/* One that nobody has waited for yet is dead all the same. */
	char state = 'Z';
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if ((f = fopen(path, "r"))) {
		ck_assert_int_le(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
	}
	return state != 'Z';
}

enum { WAITS = 30000 /* of 10 ms */ };

static void remove_pid(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/pid", folder);
	remove(path);
}

START_TEST(one_that_hangs_is_killed)
{
	char script[256];
	static const char *const ways[] = { "exec sleep 6000", "exec >/dev/null 2>&1; exec sleep 6000",
		                                "trap '' TERM INT; while :; do echo x; sleep 0.01; done" };
	unsigned files = open_files();

	for (size_t i = 0; i < (sizeof ways / sizeof *ways); i++) {
		snprintf(script, sizeof script, "echo $$ > %s/pid; %s", folder, ways[i]);
		remove_pid();
		pretend(script);
		/* With a cache it is asked for its version before. */
		cptx_cache *cache = i ? NULL : cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
		cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .limit_ms = 200, .cache = cache };
		ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &opt, &err));
		ck_assert(!alive("pid"));
		cptx_cache_close(cache);
		FAILS(err, CPTX_E_IO, "was ended after 0.200 s");
	}
	ck_assert_uint_eq(open_files(), files);
}
END_TEST

/* Neither what a process leaves behind holds us up, nor is it left there. */
START_TEST(all_that_it_started_ends)
{
	static const char *const ways[] = { "sleep 6000 & echo $! >%s/pid; sleep 6000",
		                                "sleep 6000 & echo $! >%s/pid; echo x; exit 3",
		                                "sleep 6000 >/dev/null 2>&1 & echo $! >%s/pid; exit 3" };
	char script[256];

	for (size_t i = 0; i < (sizeof ways / sizeof *ways); i++) {
		snprintf(script, sizeof script, ways[i], folder);
		remove_pid();
		pretend(script);
		cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .limit_ms = i ? 3600000 : 300 };
		ck_assert_ptr_null(cptx_compile(good, sizeof good - 1, &opt, &err));
		for (int wait = 0; alive("pid") && wait < WAITS; wait++)
			usleep(10000);
		ck_assert_msg(!alive("pid"), "way %zu", i);
		FAILS(err, i ? CPTX_E_COMPILE : CPTX_E_IO, i ? "refuses" : "was ended after 0.300 s");
	}
}
END_TEST

/* It ends with who started it, and reads nothing of the input that is meant for that one. */
START_TEST(it_ends_with_its_parent)
{
	char script[300];

	snprintf(script, sizeof script, "read x; echo $$ >%s/.pid; mv %s/.pid %s/pid; exec sleep 6000", folder, folder, folder);
	pretend(script);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fds[2];
		_exit(pipe(fds) || dup2(fds[0], 0) || compile(good, CPTX_COMPILER_PTXAS)); /* a pipe that stays open */
	}
	snprintf(script, sizeof script, "%s/pid", folder);
	for (int wait = 0; access(script, F_OK) && wait < WAITS; wait++)
		usleep(10000);
	ck_assert(alive("pid"));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	for (int wait = 0; alive("pid") && wait < WAITS; wait++)
		usleep(10000);
	ck_assert(!alive("pid"));
}
END_TEST

START_TEST(one_that_crashes)
{
	pretend("kill -SEGV $$");
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_PTXAS));
	FAILS(err, CPTX_E_IO, "crashed on the program (signal 11)");
	pretend("exit 0"); /* content, but nothing written */
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_PTXAS));
	FAILS(err, CPTX_E_IO, "no whole cubin");
	pretend("printf '\\177ELF\\002\\001' > $5");
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_PTXAS));
	FAILS(err, CPTX_E_IO, "no whole cubin");
	pretend("head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; exit 1"); /* more than anybody wants to read */
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_PTXAS));
	FAILS(err, CPTX_E_COMPILE, "xxx");
	pretend("exec /nonexistent");
	ck_assert_ptr_null(compile(good, CPTX_COMPILER_PTXAS));
	ck_assert_int_ne(err.code, CPTX_OK);
}
END_TEST

/* A host that reaps no children, one that has no standard streams, and one that lets no file be opened. */
START_TEST(odd_hosts)
{
	char about[512];

	if (!cptx_compiler_find(CPTX_COMPILER_PTXAS, about, sizeof about))
		SKIP("%s", about);
	fflush(NULL);
	for (int way = 0; way < 3; way++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (way == 0)
				signal(SIGCHLD, SIG_IGN);
			for (int fd = 0; way == 1 && fd < 3; fd++)
				close(fd);
			if (way == 2)
				setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4, 4 });
			cptx_cubin *c = compile(good, CPTX_COMPILER_PTXAS);
			bool fine = way == 2 ? !c && err.code == CPTX_E_IO : c && err.code == CPTX_OK;
			c = way == 2 ? NULL : compile(bad, CPTX_COMPILER_PTXAS);
			fine &= way == 2 || err.code == CPTX_E_COMPILE;
			_exit(!fine || c);
		}
		int status;
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "way %d: %x", way, status);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("compile");
	TCase *c = tcase_create("compile");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, before, after);
	tcase_add_loop_test(c, each_compiles, 0, 3);
	tcase_add_loop_test(c, each_refuses, 0, 3);
	tcase_add_loop_test(c, each_takes_options, 0, 3);
	tcase_add_loop_test(c, cached_by_what_was_asked, 0, 3);
	tcase_add_test(c, what_linking_would_change);
	tcase_add_test(c, another_compiler_finds_nothing_old);
	const TTest *const tests[] = { built_kernels_name_the_users_line,
		                           names,
		                           nothing_is_there,
		                           one_that_is_too_old_is_passed_over,
		                           ptxas_is_found,
		                           bad_calls,
		                           one_that_hangs_is_killed,
		                           all_that_it_started_ends,
		                           it_ends_with_its_parent,
		                           one_that_crashes,
		                           odd_hosts };
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return test_main("compile", s);
}
