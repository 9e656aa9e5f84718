/* SPDX-License-Identifier: MIT */
/*
 * PTX as C: the text that is kept in tests/to_c/NAME.c.txt (CPTX_BLESS=1 writes it), and the corpus, of which each file's C
 * is compiled, run, and its PTX assembled and held against the machine code of the file.
 */
#include "../whole.h"
#include "../test.h"

#include <cptx/cptx.h>
#include "cli/ptxas.h"

#include <dirent.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { MOST_FILES = 4096, EVERY = 120 /* one of so many compiled files, if not all */, OUTPUT_SIZE = 2000 };

static char *files[MOST_FILES];
static int nfile;
static char ptxas[4096], folder[256];
static bool have_ptxas;

static char *read_all(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	size_t room = 1 << 16, n = 0, got = 1;
	char *text = f ? malloc(room + 1) : NULL;

	while (text && got) {
		if (n == room)
			text = realloc(text, (room *= 2) + 1);
		got = text ? fread(text + n, 1, room - n, f) : 0;
		n += got;
	}
	if (f)
		fclose(f);
	if (text)
		text[n] = 0;
	*size = n;
	return text;
}

static void write_all(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	ck_assert_msg(f != NULL, "cannot write %s", path);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* Runs a command of the shell; what it says, both ways, is in `said`. */
static int run(char message[OUTPUT_SIZE], const char *command)
{
	FILE *p = popen(command, "r");
	size_t n = p ? fread(message, 1, OUTPUT_SIZE - 1, p) : 0;
	char rest[512];

	message[n] = 0;
	while (p && fread(rest, 1, sizeof rest, p))
		;
	return p ? pclose(p) : -1;
}

/* C of a PTX file; NULL if the parser does not take it. */
static cptx_ptx *to_c(const char *path, bool program, bool *debug)
{
	size_t size;
	char *text = read_all(path, &size);
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(text != NULL, "cannot read %s", path);
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = path });
	*debug = strstr(text, ", debug") != NULL;
	free(text);
	if (cptx_module_error(m)) {
		cptx_module_destroy(m);
		return NULL;
	}
	cptx_ptx *c = cptx_to_c(m, &(cptx_to_c_opt){ .main = program }, &err);
	cptx_module_destroy(m);
	ck_assert_msg(c != NULL, "%s: %s", path, err.text);
	return c;
}

/* ---- the text ---- */

static const char *const golden[] = { "loops", "arrays", "wait", "calls" };

START_TEST(as_kept)
{
	const char *bless = getenv("CPTX_BLESS");
	char path[4096];
	size_t size;
	bool debug;

	snprintf(path, sizeof path, "%s/%s.ptx", TO_C_DIR, golden[_i]);
	cptx_ptx *c = to_c(path, false, &debug);
	ck_assert_msg(c != NULL, "%s is not parsed", path);
	snprintf(path, sizeof path, "%s/%s.c.txt", TO_C_DIR, golden[_i]);
	if (bless && *bless == '1')
		write_all(path, cptx_ptx_text(c));
	char *want = read_all(path, &size);
	ck_assert_msg(want != NULL, "%s is missing; CPTX_BLESS=1 writes it", path);
	bool same = !strcmp(want, cptx_ptx_text(c));
	if (!same)
		printf("--- what is made of %s.ptx now\n%s", golden[_i], cptx_ptx_text(c));
	free(want);
	cptx_ptx_destroy(c);
	ck_assert_msg(same, "%s differs; CPTX_BLESS=1 keeps the new text", path);
}
END_TEST

/* ---- machine code ---- */

static const Elf64_Shdr *section(const char *elf, size_t size, unsigned i, const char **name)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)elf;

	if (size < sizeof *head || head->e_shoff > size || i >= head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr) ||
	    (size - head->e_shoff) / sizeof(Elf64_Shdr) < head->e_shnum)
		return NULL;
	const Elf64_Shdr *all = (const Elf64_Shdr *)(const void *)(elf + head->e_shoff);
	*name = elf + all[head->e_shstrndx].sh_offset + all[i].sh_name;
	return &all[i];
}

/* Every .text section of `a` is in `b`, with the same bytes; how many. */
static int code_of_in(const char *a, size_t na, const char *b, size_t nb, const char *what)
{
	const char *name, *other;
	int n = 0;

	for (unsigned i = 0; i < UINT16_MAX; i++) {
		const Elf64_Shdr *s = section(a, na, i, &name), *t = NULL;
		if (!s)
			break;
		if (strncmp(name, ".text", 5))
			continue;
		for (unsigned j = 0; (t = section(b, nb, j, &other)) && strcmp(name, other); j++)
			;
		ck_assert_msg(t != NULL, "%s: %s is missing", what, name);
		ck_assert_msg(s->sh_size == t->sh_size && !memcmp(a + s->sh_offset, b + t->sh_offset, s->sh_size),
		              "%s: the machine code of %s differs", what, name);
		n++;
	}
	return n;
}

/* The options of ptxas that the head of a corpus file names. */
static void options_of(const char *path, char options[256])
{
	size_t size;
	char *text = read_all(path, &size), *at = text ? strstr(text, "// ptxas: ") : NULL;

	snprintf(options, 256, "%.*s", at ? (int)strcspn(at + 10, "\r\n") : 0, at ? at + 10 : "");
	free(text);
}

static void assemble(const char *options, const char *from, const char *to)
{
	char command[16384], message[OUTPUT_SIZE];

	ck_assert_int_lt(snprintf(command, sizeof command, "'%s' %s '%s' -o '%s' 2>&1", ptxas, options, from, to),
	                 sizeof command);
	ck_assert_msg(run(message, command) == 0, "ptxas rejects %s: %s", from, message);
}

START_TEST(same_machine_code)
{
	const char *path = files[_i];
	char command[16384], message[OUTPUT_SIZE], options[256], a[512], b[512], ptx[512];
	bool debug;

	cptx_ptx *c = to_c(path, true, &debug);
	if (!c) {
		skip("%s is not parsed, which the tests of the parser judge", path);
		return;
	}
	snprintf(a, sizeof a, "%s/a.c", folder);
	write_all(a, cptx_ptx_text(c));
	cptx_ptx_destroy(c);
	snprintf(command, sizeof command,
	         "%s -O0 -Wall -Wextra -Werror %s '%s' -o '%s/a' '%s' -Wl,-rpath,\"$(dirname '%s')\" 2>&1", TO_C_CC,
	         TO_C_INCLUDE, a, folder, TO_C_LIBRARY, TO_C_LIBRARY);
	ck_assert_msg(run(message, command) == 0, "%s: its C does not compile: %s", path, message);
	snprintf(command, sizeof command, "'%s/a' 2>&1 >'%s/a.ptx'", folder, folder);
	ck_assert_msg(run(message, command) == 0, "%s: its C fails: %s", path, message);
	if (!have_ptxas)
		return;
	options_of(path, options);
	snprintf(a, sizeof a, "%s/a.cubin", folder);
	snprintf(b, sizeof b, "%s/b.cubin", folder);
	assemble(options, path, a);
	snprintf(ptx, sizeof ptx, "%s/a.ptx", folder);
	assemble(options, ptx, b);
	if (debug) /* unoptimised code depends on the names of registers, which are the builder's */
		return;
	size_t na, nb;
	char *ea = read_all(a, &na), *eb = read_all(b, &nb);
	ck_assert(ea && eb);
	ck_assert_int_eq(code_of_in(ea, na, eb, nb, path), code_of_in(eb, nb, ea, na, path));
	free(ea);
	free(eb);
}
END_TEST

/* ---- which files ---- */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add_folder(const char *dir, int every)
{
	DIR *d = opendir(dir);
	int from = nfile, kept = from;

	for (struct dirent *e; d && (e = readdir(d)) && nfile < MOST_FILES;) {
		size_t n = strlen(e->d_name), room = strlen(dir) + n + 2;
		if (n < 4 || strcmp(e->d_name + n - 4, ".ptx"))
			continue;
		files[nfile] = malloc(room);
		snprintf(files[nfile++], room, "%s/%s", dir, e->d_name);
	}
	if (d)
		closedir(d);
	qsort(files + from, (size_t)(nfile - from), sizeof *files, by_name);
	for (int i = from; i < nfile; i++) {
		if ((i - from) % every == 0)
			files[kept++] = files[i];
		else
			free(files[i]);
	}
	nfile = kept;
}

/* Part `part` of `parts` of the files, for those who run several at a time. */
int main(int argc, char **argv)
{
	const char *whole = getenv("CPTX_WHOLE"), *tmp = getenv("TMPDIR");
	int part = argc > 2 ? atoi(argv[1]) : 0, parts = argc > 2 ? atoi(argv[2]) : 1, kept = 0;
	Suite *s = suite_create("to_c");
	TCase *code = tcase_create("code");

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(folder, sizeof folder, "%.200s/cptx-to-c-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	have_ptxas = ptxas_find(ptxas, sizeof ptxas);
	if (!have_ptxas)
		printf("no ptxas: the machine code is not compared\n");
	add_folder(TO_C_DIR, 1);
	add_folder(TO_C_CORPUS "/hand", 1);
	add_folder(TO_C_CORPUS "/ptx", whole && *whole == '1' ? 1 : EVERY);
	for (int i = 0; i < nfile; i++) {
		if (i % parts == part && is_my_part((uint64_t)i))
			files[kept++] = files[i];
		else
			free(files[i]);
	}
	nfile = kept;
	if (!part) {
		TCase *text = tcase_create("text");
		tcase_add_loop_test(text, as_kept, 0, (int)(sizeof golden / sizeof *golden));
		suite_add_tcase(s, text);
	}
	tcase_add_loop_test(code, same_machine_code, 0, nfile);
	suite_add_tcase(s, code);
	int failed = test_main("to_c", s);
	for (int i = 0; i < nfile; i++)
		free(files[i]);
	char command[512], message[OUTPUT_SIZE];
	snprintf(command, sizeof command, "rm -r '%s' 2>&1", folder);
	run(message, command);
	return failed;
}
