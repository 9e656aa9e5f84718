/* SPDX-License-Identifier: MIT */
#include "corpus.h"

#include <dirent.h>

static char (*names)[512];
static size_t nnames;

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void list(const char *folder)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", CORPUS, folder);
	DIR *d = opendir(path);
	ck_assert_msg(d != NULL, "no folder %s", path);
	for (struct dirent *e; (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n < 5 || strcmp(e->d_name + n - 4, ".ptx") != 0)
			continue;
		names = realloc(names, (nnames + 1) * sizeof *names);
		snprintf(names[nnames++], sizeof *names, "%.300s/%.200s", path, e->d_name);
	}
	closedir(d);
}

size_t corpus_count(void)
{
	if (!nnames) {
		list("hand");
		list("ptx");
		qsort(names, nnames, sizeof *names, by_name);
	}
	return nnames;
}

corpus_file corpus_read(size_t i)
{
	corpus_file f = { .size = 0 };
	snprintf(f.path, sizeof f.path, "%s", names[i]);
	FILE *in = fopen(f.path, "rb");
	ck_assert_msg(in != NULL, "cannot read %s", f.path);
	fseek(in, 0, SEEK_END);
	long size = ftell(in);
	rewind(in);
	f.text = malloc((size_t)size + 1);
	f.size = fread(f.text, 1, (size_t)size, in);
	f.text[f.size] = 0;
	fclose(in);
	return f;
}

void corpus_free(corpus_file *f) { free(f->text); }

cptx_module *corpus_parse(const char *name, const char *text, size_t size)
{
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = name, .keep = true });
	if (m && !cptx_module_error(m))
		return m;
	cptx_module_destroy(m);
	return NULL;
}

char *print_module(cptx_module *m, const char *target, bool keep)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(m, target, &(cptx_emit_opt){ .keep = keep }, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *text = malloc(cptx_ptx_size(ptx) + 1);
	memcpy(text, cptx_ptx_text(ptx), cptx_ptx_size(ptx) + 1);
	cptx_ptx_destroy(ptx);
	return text;
}

char *print_code(cptx_module *m)
{
	char *text = print_module(m, NULL, false), *out = text;
	for (char *p = text, *next; *p; p = next) {
		size_t n = strcspn(p, "\n");
		next = p + n + (p[n] == '\n');
		if (strncmp(p + strspn(p, "\t"), "//", 2) != 0) {
			memmove(out, p, (size_t)(next - p));
			out += next - p;
		}
	}
	*out = 0;
	return text;
}
