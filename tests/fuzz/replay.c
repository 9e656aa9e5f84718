/* SPDX-License-Identifier: MIT */
/*
 * The corpus of the fuzzer, as a test that every compiler can build: replay FILE-OR-FOLDER...
 * A text whose sanitizer or signal ends the program was named on the line before.
 */
#include "fuzz_ptx.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SECONDS = 20 }; /* for one text; a hang, with sanitizers on a busy machine too */

static int passed, failed;

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t cap = 0, got;

	*size = 0;
	if (!f)
		return NULL;
	do {
		cap = cap * 2 + 4096;
		char *grown = realloc(text, cap);
		if (!grown)
			break;
		text = grown;
		got = fread(text + *size, 1, cap - *size, f);
		*size += got;
	} while (got);
	fclose(f);
	return text;
}

static void replay(const char *path)
{
	size_t size;
	char *text = read_file(path, &size), *exact = text ? malloc(size + !size) : NULL; /* no byte behind it may be read */

	if (!exact) {
		printf("%s: cannot be read\n", path);
		failed++;
		free(text);
		return;
	}
	memcpy(exact, text, size);
	free(text);
	fprintf(stderr, "%s\n", path);
	clock_t begin = clock();
	const char *fault = fuzz_ptx(exact, size);
	if (!fault && clock() - begin > (clock_t)MOST_SECONDS * CLOCKS_PER_SEC)
		fault = "took too long";
	if (fault)
		printf("%s: %s\n", path, fault);
	failed += fault != NULL, passed += fault == NULL;
	free(exact);
}

static int is_shown(const struct dirent *d) { return d->d_name[0] != '.'; }

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		struct dirent **entry;
		int n = scandir(argv[i], &entry, is_shown, alphasort);
		if (n < 0) {
			replay(argv[i]);
			continue;
		}
		for (int k = 0; k < n; k++) {
			char path[4096];
			snprintf(path, sizeof path, "%s/%s", argv[i], entry[k]->d_name);
			replay(path);
			free(entry[k]);
		}
		free(entry);
	}
	printf("fuzz corpus: %d passed, %d failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
