/* SPDX-License-Identifier: MIT */
/*
 * Cubins of ptxas: what the reader finds in them equals what ptxas -v said.  A sample of the corpus for its own targets, and
 * one file for every target; CPTX_WHOLE=1: all of the corpus.
 */
#include "../whole.h"
#include "../ask.h"
#include "../test.h"

#include <cptx/cubin.h>
#include <cptx/inspect.h>

#include <dirent.h>
#include <unistd.h>

enum { OUTPUT_SIZE = 1 << 20, SAMPLE = 24 };
static const char *corpus;

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long n = 0;

	must(f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET), path);
	must((text = malloc((size_t)n + 1)) && fread(text, 1, (size_t)n, f) == (size_t)n, path);
	text[n] = 0, *size = (size_t)n;
	fclose(f);
	return text;
}

/* The machine code of a text; NULL: ptxas does not take it. */
static char *assemble(const char *ptx, size_t size, const char *target, const char *option, char *message, size_t *n)
{
	char cubin[4096];
	int fd;

	must(tool_temporary(cubin, sizeof cubin, &fd), "temporary file");
	close(fd);
	int status = ptxas_job_run(
		&(ptxas_job){ .path = test_ptxas(), .target = target, .ptx = ptx, .size = size, .option = option, .output = cubin },
		message, OUTPUT_SIZE);
	char *code = status ? NULL : read_file(cubin, n);
	unlink(cubin);
	return code;
}

static unsigned compared, beside_cuobjdump;

/* Bits that lie elsewhere than thought would name scoreboards 6, or those that nothing releases. */
static void scoreboards(const cptx_cubin_view *c, const char *what)
{
	cptx_cubin_control s;
	cptx_cubin_kernel k;

	for (size_t i = 0; cptx_cubin_view_kernel(c, i, &k); i++) {
		unsigned released = 0, awaited = 0, stalls = 0;
		for (uint32_t at = 0; cptx_cubin_view_control(c, i, at, &s); at += 16) {
			ck_assert_msg(s.write_board != 6 && s.read_board != 6 && s.stall <= 15, "%s, %s at 0x%x", what, k.name, at);
			released |= 1u << s.write_board | 1u << s.read_board;
			awaited |= s.waits == 63 ? 0 : s.waits, stalls += s.stall; /* 63: for all, whoever they are of */
		}
		ck_assert_msg(!(awaited & ~released), "%s, %s: scoreboards 0x%x awaited, 0x%x released", what, k.name, awaited,
		              released);
		ck_assert_msg(stalls >= k.code / 16 / 2, "%s, %s: %u cycles", what, k.name, stalls);
		ck_assert(!cptx_cubin_view_control(c, i, k.code, &s) && !cptx_cubin_view_control(c, i, 8, &s));
	}
	ck_assert(!cptx_cubin_view_control(c, SIZE_MAX, 0, &s));
}

static void same_as_ptxas(const cptx_cubin_view *c, const cptx_verdict *v, const char *what)
{
	cptx_cubin_kernel k;
	unsigned kernels = 0;

	for (size_t i = 0; cptx_cubin_view_kernel(c, i, &k); i++) {
		const cptx_usage *u = cptx_verdict_usage_of(v, k.name);
		ck_assert_msg(u && u->is_kernel, "%s: ptxas does not speak of %s", what, k.name);
		ck_assert_msg(k.registers == u->registers, "%s, %s: %u registers, ptxas %u", what, k.name, k.registers,
		              u->registers);
		ck_assert_msg(k.barriers == u->barriers, "%s, %s: %u barriers, ptxas %u", what, k.name, k.barriers, u->barriers);
		ck_assert_msg(k.static_smem == u->static_smem, "%s, %s: %u bytes shared, ptxas %u", what, k.name, k.static_smem,
		              u->static_smem);
		ck_assert_msg(!u->stack || k.stack == u->stack, "%s, %s: stack of %u, ptxas %u", what, k.name, k.stack, u->stack);
		ck_assert_msg(!u->frame || k.frame == u->frame, "%s, %s: frame of %u, ptxas %u", what, k.name, k.frame, u->frame);
		for (unsigned b = 0; b < 8; b++) /* from sm_90 on ptxas says nothing of bank 0 */
			ck_assert_msg(!u->constant[b] || k.constant[b] == u->constant[b], "%s, %s: bank %u", what, k.name, b);
		ck_assert_uint_gt(k.code, 0);
		kernels++;
	}
	for (size_t i = 0; cptx_verdict_usage(v, i); i++)
		kernels -= cptx_verdict_usage(v, i)->is_kernel;
	ck_assert_msg(!kernels, "%s: not as many kernels as ptxas compiled", what);
	scoreboards(c, what);
	compared++;
}

/* The resource usage that cuobjdump tells, where there is one, is ours: "Function k:\n  REG:8 STACK:0 SHARED:0 LOCAL:0
 * CONSTANT[0]:368 ...". */
static void same_as_cuobjdump(const cptx_cubin_view *c, const char *code, size_t n, const char *what)
{
	char path[4096], file[4096], *message = malloc(OUTPUT_SIZE);
	cptx_cubin_kernel k;
	FILE *f = NULL;
	int fd;

	if (tool_find("cuobjdump", "CPTX_CUOBJDUMP", path, sizeof path)) {
		must(tool_temporary(file, sizeof file, &fd) && (f = fdopen(fd, "wb")), "temporary file");
		must(fwrite(code, 1, n, f) == n && !fclose(f), file);
		ck_assert_int_eq(tool_run((char *[]){ path, "--dump-resource-usage", file, NULL }, message, OUTPUT_SIZE), 0);
		unlink(file);
		for (size_t i = 0; cptx_cubin_view_kernel(c, i, &k); i++) {
			char head[4096];
			unsigned registers, stack, shared;
			snprintf(head, sizeof head, "Function %s:", k.name);
			const char *at = strstr(message, head);
			ck_assert_msg(at && sscanf(at + strlen(head), " REG:%u STACK:%u SHARED:%u", &registers, &stack, &shared) == 3,
			              "%s: %s", what, message);
			ck_assert_msg(registers == k.registers && shared == k.static_smem + k.reserved_smem,
			              "%s, %s: cuobjdump has REG:%u SHARED:%u", what, k.name, registers, shared);
		}
		beside_cuobjdump++;
	}
	free(message);
}

static void compare(const char *what, const char *ptx, size_t size, const char *target, const char *option)
{
	char *message = malloc(OUTPUT_SIZE);
	size_t n;
	char *code = assemble(ptx, size, target, option, message, &n);
	cptx_error err = { 0 };

	ck_assert_msg(code, "%s for %s: %s", what, target, message);
	cptx_cubin_view *c = cptx_cubin_view_of(code, n, what, &err);
	cptx_verdict *v = cptx_verdict_read(message, strlen(message), NULL);
	ck_assert_msg(c, "%s", err.text);
	const cptx_target *t = cptx_cubin_view_target(c);
	ck_assert_msg(t && (!strcmp(t->name, target) || !strncmp(target, "sm_101", 6)), "%s: for %s, not %s", what,
	              t ? t->name : "?", target);
	same_as_ptxas(c, v, what);
	same_as_cuobjdump(c, code, n, what);
	cptx_verdict_destroy(v);
	cptx_cubin_view_destroy(c);
	free(code), free(message);
}

static int is_ptx(const struct dirent *e) { return strstr(e->d_name, ".ptx") != NULL; }

/* "// ptxas: -arch=sm_80 -c" in the head of a file of the corpus. */
static bool head_options(const char *text, char target[16], const char **option)
{
	const char *at = strstr(text, "// ptxas: -arch=");

	if (!at || sscanf(at, "// ptxas: -arch=%15[a-z_0-9]", target) != 1)
		return false;
	at += strcspn(at, " \n"), at += strlen(" ptxas: -arch=") + strlen(target);
	*option = !strncmp(at, " -c\n", 4) ? "-c" : NULL;
	return *option || *at == '\n';
}

static void compare_folder(const char *folder, unsigned step)
{
	struct dirent **list;
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", corpus, folder);
	int n = scandir(path, &list, is_ptx, alphasort);

	must(n > 0, path);
	for (int i = 0; i < n; i++) {
		char target[16];
		const char *option;
		size_t size;
		if (i % (int)step == 0 && is_my_part((uint64_t)i)) {
			snprintf(path, sizeof path, "%s/%s/%s", corpus, folder, list[i]->d_name);
			char *text = read_file(path, &size);
			if (head_options(text, target, &option))
				compare(list[i]->d_name, text, size, target, option);
			free(text);
		}
		free(list[i]);
	}
	free(list);
}

START_TEST(equals_ptxas)
{

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	compare_folder("ptx", whole() ? 1 : 478 / SAMPLE);
	if (whole())
		compare_folder("programs", 1);
	for (size_t i = 0; cptx_target_at(i); i++) {
		char path[4096];
		size_t size;
		if (cptx_target_at(i)->ptx > test_ptxas_version()) {
			skip("a ptxas that knows %s", cptx_target_at(i)->name);
			continue;
		}
		snprintf(path, sizeof path, "%s/ptx/clang_reduce.sm_75.O3.ptx", corpus);
		if (access(path, R_OK))
			snprintf(path, sizeof path, "%s/ptx/kernels.sm_75.O3.ptx", corpus);
		char *text = read_file(path, &size);
		compare("one file for all targets", text, size, cptx_target_at(i)->name, NULL);
		free(text);
	}
	ck_assert_msg(compared >= 45, "only %u cubins", compared);
	printf("%u cubins compared with ptxas -v, %u with cuobjdump\n", compared, beside_cuobjdump);
	if (!beside_cuobjdump)
		puts("SKIP cuobjdump, where there is none");
}
END_TEST

static const char lined[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
							".visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<2>;\n"
							"\tld.param.u64 %d1, [p];\n\tld.global.u32 %r1, [%d1];\n"
							"\tmul.lo.u32 %r2, %r1, %r1;\n\tst.global.u32 [%d1+4], %r2;\n\tret;\n}\n";

START_TEST(lines)
{
	size_t n, nline, nptx;
	cptx_error err = { .code = CPTX_OK };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	char *message = malloc(OUTPUT_SIZE);
	char *code = assemble(lined, sizeof lined - 1, "sm_80", "-lineinfo", message, &n);
	ck_assert_msg(code, "%s", message);
	cptx_cubin_view *c = cptx_cubin_view_of(code, n, NULL, &err);
	ck_assert_msg(c, "%s", err.text);
	const cptx_cubin_line *line = cptx_cubin_view_lines(c, 0, &nline);
	const char *ptx = cptx_cubin_view_ptx(c, &nptx);
	bool load = false, store = false, multiply = false;
	for (size_t i = 0; i < nline; i++) {
		load |= line[i].line == 9, multiply |= line[i].line == 10, store |= line[i].line == 11;
		ck_assert(!i || line[i].address > line[i - 1].address);
		ck_assert(line[i].line >= 4 && line[i].line <= 13);
	}
	ck_assert(load && store && multiply);
	ck_assert(ptx && strstr(ptx, "mul.lo.u32 %r2, %r1, %r1;"));
	cptx_cubin_view_destroy(c);
	free(code), free(message);
}
END_TEST

static uint32_t rng_state = 1;
static uint32_t rng(void) { return rng_state = rng_state * 1664525u + 1013904223u, rng_state >> 8; }

/* Whatever is done to a cubin: it is read, or there is an error with a text. */
static void survives(const char *bytes, size_t n)
{
	cptx_error err = { 0 };
	char *exact = malloc(n + !n); /* so that a sanitizer sees a read behind the end */
	size_t count;
	cptx_cubin_kernel k;

	memcpy(exact, bytes, n);
	cptx_cubin_view *c = cptx_cubin_view_of(exact, n, "bad.cubin", &err);
	free(exact);
	if (!c)
		SURE(err.code != CPTX_OK && !strncmp(err.text, "bad.cubin: ", 11), "no error");
	for (size_t i = 0; c && cptx_cubin_view_kernel(c, i, &k); i++) {
		SURE(k.name && strlen(k.name), "no name");
		const cptx_cubin_line *line = cptx_cubin_view_lines(c, i, &count);
		for (size_t j = 0; j < count; j++)
			SURE(line[j].address < k.code && line[j].line, "a line out of range");
	}
	cptx_cubin_view_destroy(c);
}

START_TEST(hostile)
{
	size_t n;

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	char *message = malloc(OUTPUT_SIZE);
	char *code = assemble(lined, sizeof lined - 1, "sm_80", "-lineinfo", message, &n);
	ck_assert_msg(code, "%s", message);
	for (size_t i = 0; i < n; i++) {
		cptx_error err = { 0 };
		SURE(!cptx_cubin_view_of(code, i, "bad.cubin", FRESH(&err)) && err.code == CPTX_E_PARSE, "cut to %zu of %zu", i, n);
	}
	char *bad = malloc(n);
	for (unsigned turn = 0; turn < 4000; turn++) {
		memcpy(bad, code, n);
		for (unsigned i = 1 + rng() % 8; i; i--)
			bad[turn % 2 ? n - 1 - rng() % (n / 3) : rng() % n] = (char)(rng() % 4   ? rng()
			                                                             : rng() % 2 ? 0xff
			                                                                         : 0); /* heads are last */
		survives(bad, n);
	}
	free(bad), free(code), free(message);
}
END_TEST

START_TEST(no_cubin)
{
	static const char elf[64] = "\177ELF\2\1\1";
	cptx_error err = { .code = CPTX_OK };

	ck_assert(!cptx_cubin_view_of("", 0, NULL, FRESH(&err)) && strstr(err.text, "cubin: this is no cubin"));
	ck_assert(!cptx_cubin_view_of(".version 8.0\n", 13, "k.ptx", FRESH(&err)) &&
	          strstr(err.text, "k.ptx: this is no cubin"));
	ck_assert(!cptx_cubin_view_of(elf, sizeof elf, "x", FRESH(&err)) && err.code == CPTX_E_PARSE);
	survives(elf, 5);
	size_t n = 1;
	cptx_cubin_kernel k;
	ck_assert(!cptx_cubin_view_target(NULL) && !cptx_cubin_view_globals(NULL) && !cptx_cubin_view_kernel(NULL, 0, &k));
	ck_assert(!cptx_cubin_view_lines(NULL, 0, &n) && !n && !cptx_cubin_view_ptx(NULL, &n));
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("cubin");
	TCase *t = tcase_create("cubin");
	char *end = NULL;

	must(argc == 2 && (end = strrchr(argv[1], '/')), "usage: inspect_cubin CORPUS/README.md");
	*end = 0, corpus = argv[1];
	tcase_set_timeout(t, 600);
	tcase_add_test(t, equals_ptxas);
	tcase_add_test(t, lines);
	tcase_add_test(t, hostile);
	tcase_add_test(t, no_cubin);
	suite_add_tcase(s, t);
	return test_main("inspect_cubin", s);
}
