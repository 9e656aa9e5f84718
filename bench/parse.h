/* SPDX-License-Identifier: MIT */
/* The corpus as big texts: bench/parse.c measures them. */
#ifndef BENCH_PARSE_H
#define BENCH_PARSE_H

#include <cptx/cptx.h>

#include <time.h>

/* CPU time of the process. */
static inline double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double least(double a, double b) { return a < b ? a : b; }

typedef struct corpus_file {
	char *path, *text; /* from `body` on: behind .version, .target, .address_size */
	size_t size, body;
	size_t *name, nname; /* places of names of the module's level: first byte, end, first byte ... */
} corpus_file;

typedef struct corpus {
	corpus_file *file;
	size_t n, bytes, left_out; /* files that are not accepted */
	char head[128];            /* .version, .target, .address_size */
} corpus;

/* Reads the files of a folder that are for `arch`, end in `ending` and are accepted; false, with a message, if there are
 * none. */
bool corpus_read(corpus *c, const char *folder, const char *arch, const char *ending);
/* All files one after another, again and again until `size` bytes are there, each copy under names of its own. */
char *corpus_repeat(const corpus *c, size_t size, size_t *got);
/* Prints how fast the files are parsed one by one, by cptx and by a command that is given their names. */
void corpus_measure(const corpus *c, int rounds);
void corpus_peer(const corpus *c, const char *command);
void corpus_free(corpus *c);

#endif
