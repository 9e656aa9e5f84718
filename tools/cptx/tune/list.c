/* SPDX-License-Identifier: MIT */
/* What the tuning database has, for people. */
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sizes_text(const cptx_tune_key *k, char text[160])
{
	size_t used = 0;
	int n = CPTX_TUNE_DIMS;

	while (n && !k->dims[n - 1])
		n--;
	*text = 0;
	for (int i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, 160 - used, "%s%llu", i ? "x" : "", (unsigned long long)k->dims[i]);
}

static bool passes(const tune_filter *f, const cptx_tune_record *r)
{
	char sizes[160];

	sizes_text(r->key, sizes);
	return (!f->generator || !strcmp(f->generator, r->key->generator)) &&
	       (!f->sizes || (!strncmp(sizes, f->sizes, strlen(f->sizes)) && strchr("x", sizes[strlen(f->sizes)])));
}

/* ---- a list ---- */

typedef struct listing {
	const tune_filter *filter;
	uint64_t n;
} listing;

static bool print_record(void *user, const cptx_tune_record *r)
{
	listing *l = user;
	char sizes[160], when[32] = "?";
	const time_t date = (time_t)(r->date / 1000000);
	struct tm tm;

	if (!passes(l->filter, r))
		return true;
	if (localtime_r(&date, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
	sizes_text(r->key, sizes);
	printf("%s  %s %u  %s  ", when, r->key->generator, r->key->version, sizes);
	cli_put(stdout, r->key->problem, strlen(r->key->problem));
	printf("  %.6g %s +-%.1f%%  ", r->median, r->unit, 50 * r->spread);
	cli_put(stdout, r->candidate, strlen(r->candidate));
	printf("  ");
	cli_put(stdout, r->key->device, strlen(r->key->device));
	printf(", %u SMs", r->key->sms);
	if (r->key->clock_mhz)
		printf(", %u MHz", r->key->clock_mhz);
	if (r->key->power_w)
		printf(", %u W", r->key->power_w);
	if (r->key->driver)
		printf(", driver %u.%u", r->key->driver / 1000, r->key->driver % 1000 / 10);
	printf(", ");
	cli_put(stdout, r->key->compiler, strlen(r->key->compiler));
	putchar('\n');
	l->n++;
	return true;
}

static int tell_damage(const cli_command *cmd, cptx_tune *db, uint64_t n, uint64_t damaged)
{
	if (damaged)
		printf("%llu lines are torn or damaged, and passed over\n", (unsigned long long)damaged);
	if (!n)
		printf("no records in %s\n", *cptx_tune_path(db) ? cptx_tune_path(db) : "any folder");
	return cli_flush(cmd, EXIT_OK);
}

int tune_list(const cli_command *cmd, cptx_tune *db, const tune_filter *filter)
{
	listing l = { filter, 0 };
	cptx_error err = { .code = CPTX_OK };
	uint64_t damaged;

	if (!cptx_tune_each(db, print_record, &l, &damaged, &err))
		return cli_failed(cmd, "%s", err.text);
	return tell_damage(cmd, db, l.n, damaged);
}

/* ---- a plot ---- */

typedef struct bar {
	char *title; /* the problem, and on what */
	char *candidate;
	const char *unit;
	double median, low, high;
	int64_t date;
} bar;

typedef struct plot {
	const tune_filter *filter;
	bar *bars;
	size_t n, cap;
	bool no_memory;
} plot;

static bool keep(void *user, const cptx_tune_record *r)
{
	plot *p = user;
	char sizes[160], title[2 * CPTX_TUNE_TEXT + 300];

	if (!passes(p->filter, r))
		return true;
	if (p->n == p->cap) {
		const size_t cap = p->cap ? 2 * p->cap : 256;
		bar *more = realloc(p->bars, cap * sizeof *more);
		if (!more)
			return !(p->no_memory = true);
		p->bars = more, p->cap = cap;
	}
	sizes_text(r->key, sizes);
	snprintf(title, sizeof title, "%s %s, %s, on %s (%s)", r->key->generator, sizes, r->key->problem, r->key->device,
	         r->key->compiler);
	bar *b = &p->bars[p->n];
	*b = (bar){ strdup(title), strdup(r->candidate), strcmp(r->unit, "us") ? "steps" : "us", r->median, r->median, r->median,
		        r->date };
	p->n++;
	for (uint32_t i = 0; i < r->nsamples; i++) {
		b->low = r->samples[i] < b->low ? r->samples[i] : b->low;
		b->high = r->samples[i] > b->high ? r->samples[i] : b->high;
	}
	return !(p->no_memory = !b->title || !b->candidate);
}

static int by_candidate(const void *a, const void *b)
{
	const bar *x = a, *y = b;
	const int title = strcmp(x->title, y->title), candidate = strcmp(x->candidate, y->candidate);

	return title ? title : candidate ? candidate : (y->date > x->date) - (y->date < x->date);
}

static int by_median(const void *a, const void *b)
{
	const bar *x = a, *y = b;
	const int title = strcmp(x->title, y->title);

	return title ? title : (x->median > y->median) - (x->median < y->median);
}

/* A bar from 0 to the median, and dots from there to the slowest sample. */
static void draw(const bar *b, double most)
{
	enum { WIDTH = 40 };
	char text[WIDTH + 1];

	for (int i = 0; i < WIDTH; i++) {
		const double at = (i + 0.5) / WIDTH * most;
		text[i] = at <= b->median ? '#' : at <= b->high ? '.' : ' ';
	}
	text[WIDTH] = 0;
	printf("  %12.6g %s |%s| ", b->median, b->unit, text);
	cli_put(stdout, b->candidate, strlen(b->candidate));
	putchar('\n');
}

static void draw_all(bar *bars, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(bars, n, sizeof *bars, by_candidate);
	for (size_t i = 0; i < n; i++) { /* of a candidate the latest */
		const bool again =
			kept && !strcmp(bars[i].title, bars[kept - 1].title) && !strcmp(bars[i].candidate, bars[kept - 1].candidate);
		const bar b = bars[i];
		if (!again)
			bars[i] = bars[kept], bars[kept++] = b;
	}
	if (kept)
		qsort(bars, kept, sizeof *bars, by_median);
	for (size_t i = 0, end; i < kept; i = end) {
		double most = 0;
		for (end = i; end < kept && !strcmp(bars[end].title, bars[i].title); end++)
			most = bars[end].high > most ? bars[end].high : most;
		printf("%s", i ? "\n" : "");
		cli_put(stdout, bars[i].title, strlen(bars[i].title));
		putchar('\n');
		for (size_t j = i; j < end; j++)
			draw(&bars[j], most);
	}
}

int tune_plot(const cli_command *cmd, cptx_tune *db, const tune_filter *filter)
{
	plot p = { .filter = filter };
	cptx_error err = { .code = CPTX_OK };
	uint64_t damaged;
	int status = EXIT_OK;

	if (!cptx_tune_each(db, keep, &p, &damaged, &err))
		status = cli_failed(cmd, "%s", err.text);
	else if (p.no_memory)
		status = cli_failed(cmd, "out of memory");
	else
		draw_all(p.bars, p.n);
	for (size_t i = 0; i < p.n; i++) {
		free(p.bars[i].title);
		free(p.bars[i].candidate);
	}
	free(p.bars);
	return status ? status : tell_damage(cmd, db, p.n, damaged);
}
