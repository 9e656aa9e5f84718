/* SPDX-License-Identifier: MIT */
/*
 * Registers alive in machine code, by cptx_cubin_view_live and by nvdisasm -plr: bench_registers FILE...
 * Of PTX for its own target by ptxas, or of a cubin.  Kernels that call functions stand apart: see bench/RESULTS.md.
 * It takes 0.2 to 0.4 s of user time a cubin, 92 % of it nvdisasm's, which needs as long for an empty kernel.
 */
#include "tools/cptx/cli/ptxas.h"

#include <cptx/compile.h>
#include <cptx/cubin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 20, SAID = 1 << 26, REASONS = 64 };
typedef struct tally {
	size_t kernels, unknown, unjudged, equal, near, insns, same;
} tally;

static tally plain, calling;
static size_t files, refused;
static char *said, tool[4096];
static uint16_t ours[MOST];
static struct reason {
	char text[96];
	size_t n;
} reasons[REASONS];

static void *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;

	*size = 0;
	if (f && !fseek(f, 0, SEEK_END) && (text = malloc((size_t)ftell(f) + 1))) {
		*size = (size_t)ftell(f);
		rewind(f);
		*size = fread(text, 1, *size, f);
		text[*size] = 0;
	}
	if (f)
		fclose(f);
	return text;
}

static void count_reason(const char *text)
{
	const char *what = strstr(text, "not known: ");
	size_t i = 0, n;

	what = what ? what + strlen("not known: ") : text;
	n = strcspn(what, "\n");
	const char *at = strstr(what, " at 0x");
	if (at)
		n = (size_t)(at - what);
	while (i < REASONS - 1 && reasons[i].n && strncmp(reasons[i].text, what, n))
		i++;
	snprintf(reasons[i].text, sizeof reasons[i].text, "%.*s", (int)n, what);
	reasons[i].n++;
}

/* Adds the lines of nvdisasm from `at` on: "   / *0010* / ...  // | 12 |". */
static bool compare(const char *at, const char *end, uint32_t n, uint32_t peak, tally *t)
{
	uint32_t theirs, most = 0, same = 0, seen = 0;

	while (at && seen < n && (at = strchr(at, '\n')) && at++ < end) {
		const char *p = at + strspn(at, " \t"), *bar = strstr(p, "// |"), *stop = strchr(p, '\n');
		if (strncmp(p, "/*", 2) || !bar || !stop || bar > stop || strtoul(p + 2, NULL, 16) != seen * 16)
			continue;
		theirs = (uint32_t)strtoul(bar + 4, NULL, 10);
		same += theirs == ours[seen] || !ours[seen]; /* behind the end nvdisasm counts the stack pointer */
		most = theirs > most ? theirs : most;
		seen++;
	}
	if (!seen)
		return false;
	t->equal += peak == most, t->near += 20 * peak >= 17 * most && 20 * peak <= 23 * most;
	t->insns += seen, t->same += same;
	return true;
}

static void take(const cptx_cubin_view *c, size_t i, const cptx_cubin_kernel *k, bool judged)
{
	char head[4096];
	cptx_error err = { .code = CPTX_OK };
	uint32_t n = k->code / 16, peak = cptx_cubin_view_live(c, i, ours, MOST, &err);

	snprintf(head, sizeof head, "\n.text.%s:", k->name);
	const char *at = judged ? strstr(said, head) : NULL, *end = at ? strstr(at + 1, "\n//-----") : NULL;
	const char *call = at ? strstr(at, " CALL.") : NULL;
	tally *t = call && (!end || call < end) ? &calling : &plain;
	t->kernels++;
	if (!peak) {
		t->unknown++;
		count_reason(err.text);
	} else if (!at || !compare(at + 1, end ? end : at + strlen(at), n, peak, t)) {
		t->unjudged++;
	}
}

static void measure_cubin(const void *code, size_t size, const char *name)
{
	char path[4096];
	cptx_cubin_kernel k;
	cptx_cubin_view *c = cptx_cubin_view_of(code, size, name, NULL);
	int fd;

	if (!c || !tool_temporary(path, sizeof path, &fd)) {
		refused++;
		cptx_cubin_view_destroy(c);
		return;
	}
	bool judged = write(fd, code, size) == (ssize_t)size &&
	              !tool_run((char *[]){ tool, "-c", "-lrm", "count", path, NULL }, said, SAID);
	close(fd), unlink(path);
	for (size_t i = 0; cptx_cubin_view_kernel(c, i, &k); i++)
		take(c, i, &k, judged);
	files++;
	cptx_cubin_view_destroy(c);
}

static void measure(const char *path)
{
	size_t size;
	char *text = read_file(path, &size);
	cptx_cubin *c = NULL;

	if (text && !memcmp(text, "\177ELF", size < 4 ? size : 4)) {
		measure_cubin(text, size, path);
	} else if (text) {
		const char *flag = strstr(text, " -c\n") ? "-c" : "-v";
		cptx_compile_opt o = { .compiler = CPTX_COMPILER_PTXAS, .nflags = 1, .flags = &flag };
		if ((c = cptx_compile(text, size, &o, NULL)))
			measure_cubin(cptx_cubin_data(c), cptx_cubin_size(c), path);
		refused += !c;
	}
	cptx_cubin_destroy(c);
	free(text);
}

static void print(const char *what, const tally *t)
{
	size_t n = t->kernels - t->unknown - t->unjudged;

	printf("%s: %zu, of which %zu unknown to cptx, %zu more to nvdisasm\n", what, t->kernels, t->unknown, t->unjudged);
	if (n && t->insns)
		printf(
			"  the most alive: equal %zu (%.1f %%), within 15 %% %zu (%.1f %%); instructions: equal %zu of %zu (%.1f %%)\n",
			t->equal, 100.0 * (double)t->equal / (double)n, t->near, 100.0 * (double)t->near / (double)n, t->same, t->insns,
			100.0 * (double)t->same / (double)t->insns);
}

int main(int argc, char **argv)
{
	if (!tool_find("nvdisasm", "CPTX_NVDISASM", tool, sizeof tool) || !(said = malloc(SAID))) {
		fputs("bench_registers needs nvdisasm\n", stderr);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	printf("%zu files; %zu refused\n", files, refused);
	print("kernels without calls", &plain);
	print("kernels with calls", &calling);
	for (size_t i = 0; i < REASONS && reasons[i].n; i++)
		printf("unknown: %zu %s\n", reasons[i].n, reasons[i].text);
	free(said);
	return 0;
}
