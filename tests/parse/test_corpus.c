/* SPDX-License-Identifier: MIT */
/*
 * Text of compilers and people (tests/corpus): all of it is read, checked and printed; what is printed is printed the same
 * again, is the text itself where that is asked for, and is assembled to the same machine code.
 */
#include "../whole.h"
#include "parse.h"

#include "../ask.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FILES = 1000, WORKERS = 2, SAMPLE = 14 /* of so many generated files, one is assembled */ };

static char *files[MOST_FILES];
static size_t nfile;

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list_folder(const char *folder)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", CORPUS, folder);
	DIR *d = opendir(path);

	must(d != NULL, path);
	for (struct dirent *e; (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n < 5 || strcmp(e->d_name + n - 4, ".ptx"))
			continue;
		must(nfile < MOST_FILES, "too many files");
		snprintf(path, sizeof path, "%s/%s/%s", CORPUS, folder, e->d_name);
		files[nfile++] = strdup(path);
	}
	closedir(d);
}

static void list_files(void)
{
	list_folder("hand");
	list_folder("programs");
	list_folder("ptx");
	qsort(files, nfile, sizeof *files, by_name);
}

static void report(void *user, const cptx_error *e)
{
	(void)user;
	printf("%.300s\n", e->text);
}

/* The text printed, or NULL (told); *hash (NULL: not wanted) gets the hash of the module. */
static char *print(const char *name, const char *text, size_t size, bool keep, cptx_hash *hash)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = name, .keep = keep, .report = report });
	bool good = m && !cptx_module_error(m) && !cptx_check(m, NULL, report, NULL);
	cptx_ptx *ptx = good ? cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep }, &err) : NULL;
	char *out = ptx ? strdup(cptx_ptx_text(ptx)) : NULL;

	if ((good && !ptx) || (ptx && hash && !cptx_module_hash(m, NULL, NULL, hash, &err)))
		printf("%s\n", err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return out;
}

static bool same(const char *name, const char *what, const char *a, const char *b)
{
	size_t at = 0, line = 1;

	if (!a || !b)
		return false;
	while (a[at] && a[at] == b[at])
		line += a[at++] == '\n';
	if (a[at] != b[at])
		printf("%s: %s: line %zu differs\n", name, what, line);
	return a[at] == b[at];
}

typedef struct printed {
	char *text;
	cptx_hash hash;
} printed;

static int by_hash(const void *a, const void *b)
{
	return memcmp(&((const printed *)a)->hash, &((const printed *)b)->hash, sizeof(cptx_hash));
}

START_TEST(read_and_printed)
{
	static printed all[MOST_FILES];
	unsigned bad = 0;

	ck_assert_uint_ge(nfile, 400);
	for (size_t i = 0; i < nfile; i++) {
		size_t size;
		char *text = read_whole(files[i], &size);
		cptx_hash again = { { 0, 0 } };
		char *once = print(files[i], text, size, false, &all[i].hash), *kept = print(files[i], text, size, true, NULL);
		char *twice = once ? print(files[i], once, strlen(once), false, &again) : NULL;
		bad += !same(files[i], "kept", text, kept) || !same(files[i], "printed again", once, twice);
		bad += memcmp(&again, &all[i].hash, sizeof again) != 0;
		all[i].text = once;
		free(text), free(twice), free(kept);
	}
	qsort(all, nfile, sizeof *all, by_hash);
	for (size_t i = 0; i < nfile; i++) /* neighbours with other hashes have other texts, as `again` has shown */
		bad += i && !by_hash(&all[i - 1], &all[i]) && (!all[i].text || strcmp(all[i - 1].text, all[i].text));
	for (size_t i = 0; i < nfile; i++)
		free(all[i].text);
	ck_assert_msg(!bad, "%u of %zu files", bad, nfile);
}
END_TEST

/* ---- machine code ---- */

static bool assemble_file(const char *options, const char *source, const char *output)
{
	char command[8192];

	/* the options stand in the file's head */
	snprintf(command, sizeof command, "'%s' %s '%s' -o '%s' >/dev/null 2>&1", test_ptxas(), options, source, output);
	return system(command) == 0;
}

static uint64_t field(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;
	for (unsigned i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

/* The hash of an ELF file's code and initial data, by section; 1 for none, 0 if it is no such file. */
static uint64_t code_hash(const char *path)
{
	static const char *const kinds[] = { ".text", ".nv.global", ".nv.constant" };
	size_t size;
	unsigned char *elf = (unsigned char *)read_whole(path, &size);
	uint64_t sum = 1;

	if (size < 64 || memcmp(elf, "\177ELF\2", 5)) {
		free(elf);
		return 0;
	}
	uint64_t table = field(elf + 40, 8), width = field(elf + 58, 2), n = field(elf + 60, 2), names = field(elf + 62, 2);
	must(table + n * width <= size && names < n && width >= 64, path);
	const unsigned char *strings = elf + field(elf + table + names * width + 24, 8);
	for (uint64_t i = 0; i < n; i++) {
		const unsigned char *s = elf + table + i * width;
		const char *name = (const char *)strings + field(s, 4);
		bool counts = false;
		for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
			counts |= !strncmp(name, kinds[k], strlen(kinds[k]));
		if (!counts || field(s + 4, 4) != 1)
			continue;
		uint64_t at = field(s + 24, 8), length = field(s + 32, 8), hash = 14695981039346656037u;
		must(at + length <= size, path);
		for (const char *c = name; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 1099511628211u;
		for (uint64_t b = 0; b < length; b++)
			hash = (hash ^ elf[at + b]) * 1099511628211u;
		sum += hash;
	}
	free(elf);
	return sum;
}

static bool same_code(const char *path, const char *dir, unsigned worker)
{
	char options[256] = "", source[300], cubin[300];
	size_t size;
	char *text = read_whole(path, &size), *at = strstr(text, "// ptxas: "), *out = print(path, text, size, false, NULL);

	if (at)
		snprintf(options, sizeof options, "%.*s", (int)strcspn(at + 10, "\r\n"), at + 10);
	snprintf(source, sizeof source, "%s/%u.ptx", dir, worker);
	snprintf(cubin, sizeof cubin, "%s/%u.cubin", dir, worker);
	bool ok = at && out && assemble_file(options, path, cubin);
	uint64_t want = ok ? code_hash(cubin) : 0;
	if (ok) {
		FILE *f = fopen(source, "wb");
		must(f && fputs(out, f) >= 0 && !fclose(f), source);
		ok = assemble_file(options, source, cubin) && want && code_hash(cubin) == want;
	}
	if (!ok)
		printf("%s: %s\n", path, !at ? "has no line // ptxas:" : want ? "other machine code" : "ptxas refuses it");
	unlink(source), unlink(cubin);
	free(text), free(out);
	return ok;
}

/* Not with -G: what ptxas makes then follows the lines of the text. */
START_TEST(same_machine_code)
{
	const bool all = whole();
	char dir[] = "/tmp/cptx_corpus_XXXXXX";
	pid_t pid[WORKERS];
	unsigned bad = 0;

	if (!test_ptxas()) {
		skip("no ptxas");
		return;
	}
	must(mkdtemp(dir) != NULL, "mkdtemp");
	fflush(stdout);
	for (unsigned w = 0; w < WORKERS; w++) {
		pid[w] = fork();
		must(pid[w] >= 0, "fork");
		if (pid[w])
			continue;
		unsigned failed = 0, n = 0;
		for (size_t i = 0; i < nfile; i++)
			if ((all || strstr(files[i], "/hand/") || strstr(files[i], ".G.") || i % SAMPLE == 0) && n++ % WORKERS == w &&
			    is_my_part(i))
				failed += !same_code(files[i], dir, w);
		fflush(stdout);
		_exit(failed > 100 ? 100 : (int)failed);
	}
	for (unsigned w = 0; w < WORKERS; w++) {
		int status;
		must(waitpid(pid[w], &status, 0) == pid[w], "waitpid");
		bad += WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 1;
	}
	rmdir(dir);
	ck_assert_msg(!bad, "%u files", bad);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { read_and_printed, same_machine_code };
	list_files();
	int status = parse_test_run("corpus", tests, ARRAY_LEN(tests));
	while (nfile)
		free(files[--nfile]);
	return status;
}
