/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 40 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool progress_open(progress_bar *b, bool off)
{
	*b = (progress_bar){ .on = !off && isatty(STDERR_FILENO) };
	b->begin = b->last = b->on ? now() : 0;
	return b->on;
}

void progress_show(progress_bar *b, uint64_t n, uint64_t of)
{
	double t = b->on ? now() : 0;
	char bar[WIDTH + 1];

	if (!b->on || !of || t - b->begin < 1 || t - b->last < 0.25)
		return;
	b->last = t;
	b->shown = true;
	for (unsigned i = 0; i < WIDTH; i++)
		bar[i] = i < n * WIDTH / of ? '#' : '.';
	bar[WIDTH] = 0;
	fprintf(stderr, "\r[%s] %llu of %llu CTAs, %.3g per second\033[K", bar, (unsigned long long)n, (unsigned long long)of,
	        (double)n / (t - b->begin));
	fflush(stderr);
}

void progress_clear(progress_bar *b)
{
	if (b->shown)
		fputs("\r\033[K", stderr);
	b->shown = false;
}
