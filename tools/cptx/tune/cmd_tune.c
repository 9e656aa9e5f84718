/* SPDX-License-Identifier: MIT */
/* cptx tune: measures kernels for sizes, keeps the results, and shows them. */
#include "cli/compiling.h"
#include "tune/tune.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	OPTION_OPTIONS,
	OPTION_DEVICE,
	OPTION_CANDIDATES,
	OPTION_BUDGET,
	OPTION_AGAIN,
	OPTION_WORKERS,
	OPTION_COMPILER,
	OPTION_FOLDER,
	OPTION_LIST,
	OPTION_PLOT,
	OPTION_PRUNE,
	OPTION_BEST,
	OPTION_SINCE,
	OPTION_EXPORT,
	OPTION_IMPORT,
	OPTIONS
};
static const cli_option options[OPTIONS] = {
	[OPTION_OPTIONS] = { "options", 'o', "TEXT", "options of the kernel, as records have them: \"a=f16 b=f16 out=f16\"",
	                     NULL },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device to measure on; default cuda:0; an emulator counts steps", "cuda:0" },
	[OPTION_CANDIDATES] = { "candidates", 'n', "N", "shapes of each size, those that the model likes best; default 8",
	                        "4 8 16 32" },
	[OPTION_BUDGET] = { "budget", 'b', "SECONDS", "most time for all sizes; default: none", "10 60 600" },
	[OPTION_AGAIN] = { "again", 'a', NULL, "measure what was measured before, too", NULL },
	[OPTION_WORKERS] = { "workers", 'w', "N", "threads that compile; default: processors, up to 4", "1 2 4" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles; default: auto, the driver", COMPILING_CHOICES },
	[OPTION_FOLDER] = { "folder", 'f', "FOLDER", "the database; default: CPTX_TUNE_DIR, else the user's", "@file" },
	[OPTION_LIST] = { "list", 'l', NULL, "list records, of a family and sizes if named", NULL },
	[OPTION_PLOT] = { "plot", 'p', NULL, "draw the candidates of each problem, best first; also behind measuring", NULL },
	[OPTION_PRUNE] = { "prune", 'P', NULL, "make one file of all, with the latest measurement of each candidate", NULL },
	[OPTION_BEST] = { "best", 'B', "N", "with --prune: keep the N fastest of each problem", "1 3 10" },
	[OPTION_SINCE] = { "since", 's', "DATE", "with --prune: keep records from then on, 2026-11-27", NULL },
	[OPTION_EXPORT] = { "export", 'e', "FILE", "write all records to a new file", "@file" },
	[OPTION_IMPORT] = { "import", 'i', "PATH", "add the records of a file or folder that are not there yet", "@file" },
};

typedef struct request {
	const cli_command *cmd;
	uint32_t seen;
	const char *text, *device, *folder, *export, *import;
	double budget;
	cptx_tune_use use;
	cptx_tune_prune_opt prune;
	uint32_t part, parts;
} request;

static bool asked(const request *q, int option) { return q->seen >> option & 1; }

static bool read_count(const char *value, uint32_t *to)
{
	char *end;
	const unsigned long v = strtoul(value, &end, 10);

	*to = (uint32_t)v;
	return *value >= '1' && *value <= '9' && !*end && v <= 1000000;
}

static bool read_date(const char *value, int64_t *to)
{
	struct tm tm = { .tm_isdst = -1 };
	char end;

	if (sscanf(value, "%d-%d-%d%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &end) != 3)
		return false;
	tm.tm_year -= 1900, tm.tm_mon -= 1;
	*to = (int64_t)mktime(&tm) * 1000000;
	return *to > 0;
}

static int read_option(request *q, int option, const char *value)
{
	uint32_t n = 0;
	bool ok = true;

	q->seen |= 1u << option;
	switch (option) {
	case OPTION_OPTIONS: q->text = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_FOLDER: q->folder = value; break;
	case OPTION_EXPORT: q->export = value; break;
	case OPTION_IMPORT: q->import = value; break;
	case OPTION_CANDIDATES: ok = read_count(value, &q->use.candidates) && q->use.candidates <= 1000; break;
	case OPTION_WORKERS: ok = read_count(value, &q->use.workers); break;
	case OPTION_BEST: ok = read_count(value, &q->prune.best); break;
	case OPTION_BUDGET:
		ok = read_count(value, &n);
		q->budget = n;
		break;
	case OPTION_SINCE:
		if (!read_date(value, &q->prune.since))
			return cli_bad_value(q->cmd, OPTION_SINCE, value, "expected a day, as in 2026-11-27");
		break;
	case OPTION_AGAIN: q->use.policy = CPTX_TUNE_ALWAYS; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->use.compiler);
	default: break;
	}
	return ok ? EXIT_OK : cli_bad_value(q->cmd, (size_t)option, value, "expected a number from 1 on");
}

/* ---- measuring ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A line that is drawn anew on a terminal. */
typedef struct progress {
	const char *sizes;
	bool on, emulated;
} progress;

static void show(void *user, uint32_t done, uint32_t of, double best)
{
	const progress *p = user;

	if (!p->on)
		return;
	fprintf(stderr, "\r%s: %u of %u candidates", p->sizes, done, of);
	if (best > 0)
		fprintf(stderr, ", best %.6g %s", best, p->emulated ? "steps" : "us");
	fprintf(stderr, "\033[K%s", done == of ? "\r\033[K" : "");
	fflush(stderr);
}

static void report(const request *q, const tune_family *f, const char *sizes, const cptx_tune_done *d)
{
	if (q->parts > 1)
		printf("%u/%u ", q->part, q->parts);
	printf("%s %s: %u measured, %u known", f->name, sizes, d->measured, d->known);
	if (d->left)
		printf(", %u left", d->left);
	if (d->failed)
		printf(", %u failed (%s)", d->failed, d->why);
	putchar('\n');
	fflush(stdout);
}

/* Measures the sizes, each as far as the budget goes. */
static int measure(request *q, const tune_family *f, char **sizes, int n, cptx_tune *db, cptx_device *dev)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_emu_counters counters;
	progress p = { .on = isatty(STDERR_FILENO) && q->part == 0, .emulated = cptx_emu_get_counters(dev, &counters) };
	const double until = now() + q->budget;
	uint32_t wrong = 0;

	for (int i = 0; i < n; i++) {
		cptx_tune_done done = { .candidates = 0 };
		q->use.budget_s = q->budget > 0 ? until - now() : 86400;
		if (i && !(q->use.budget_s > 0)) {
			printf("%s %s: no time left\n", f->name, sizes[i]);
			continue;
		}
		q->use.budget_s = q->use.budget_s > 0 ? q->use.budget_s : 1e-3;
		p.sizes = sizes[i];
		q->use.progress = show, q->use.user = &p;
		if (!f->measure(db, dev, q->text, sizes[i], &q->use, &done, &err)) {
			if (p.on)
				fputs("\r\033[K", stderr);
			return err.code == CPTX_E_ARG || err.code == CPTX_E_LIMIT ? cli_usage(q->cmd, "%s", err.text)
			                                                          : cli_failed(q->cmd, "%s", err.text);
		}
		report(q, f, sizes[i], &done);
		q->use.offset += done.candidates;
		wrong += done.failed;
	}
	return wrong ? cli_failed(q->cmd, "%u candidates could not be measured", wrong) : cli_flush(q->cmd, EXIT_OK);
}

static int measure_on(request *q, const tune_family *f, char **sizes, int n, cptx_tune *db)
{
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tune_share(&q->part, &q->parts, &err))
		return cli_failed(q->cmd, "%s", err.text);
	q->use.part = q->part, q->use.parts = q->parts;
	cptx_device *dev = cptx_device_open(q->device, &err);
	if (!dev)
		return cli_refused(q->cmd, &err);
	if (!(q->use.cache = compiling_cache(q->cmd))) {
		cptx_device_close(dev);
		return EXIT_FAILED;
	}
	const int status = measure(q, f, sizes, n, db, dev);
	cptx_cache_close(q->use.cache);
	cptx_device_close(dev);
	return status;
}

/* ---- the other things to do ---- */

static int prune(const request *q, cptx_tune *db)
{
	cptx_tune_pruned done;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tune_prune(db, &q->prune, &done, &err))
		return cli_failed(q->cmd, "%s", err.text);
	printf("%llu records kept, %llu removed; one file of %llu\n", (unsigned long long)done.kept,
	       (unsigned long long)done.removed, (unsigned long long)done.files);
	return cli_flush(q->cmd, EXIT_OK);
}

static int move(const request *q, cptx_tune *db)
{
	cptx_error err = { .code = CPTX_OK };
	uint64_t n = 0;

	if (asked(q, OPTION_IMPORT)) {
		n = cptx_tune_import(db, q->import, &err);
		if (err.code == CPTX_OK)
			printf("%llu records added from %s\n", (unsigned long long)n, q->import);
	}
	if (asked(q, OPTION_EXPORT) && err.code == CPTX_OK) {
		n = cptx_tune_export(db, q->export, &err);
		if (err.code == CPTX_OK)
			printf("%llu records written to %s\n", (unsigned long long)n, q->export);
	}
	return err.code == CPTX_OK ? cli_flush(q->cmd, EXIT_OK) : cli_failed(q->cmd, "%s", err.text);
}

/* f: NULL without a family and sizes. */
static int act(request *q, const tune_family *f, char **sizes, int n, cptx_tune *db)
{
	tune_filter filter = { f ? f->name : NULL, n ? sizes[0] : NULL };
	int status = EXIT_OK;

	if (asked(q, OPTION_IMPORT) || asked(q, OPTION_EXPORT))
		status = move(q, db);
	if (!status && asked(q, OPTION_PRUNE))
		status = prune(q, db);
	if (!status && n && !asked(q, OPTION_LIST))
		status = measure_on(q, f, sizes, n, db);
	if (!status && asked(q, OPTION_LIST))
		status = tune_list(q->cmd, db, &filter);
	for (int i = 0; !status && asked(q, OPTION_PLOT) && i < (n ? n : 1); i++) {
		filter.sizes = n ? sizes[i] : NULL;
		if (i)
			putchar('\n');
		status = tune_plot(q->cmd, db, &filter);
	}
	return status;
}

/* n sizes of a family; f: NULL without a family and sizes. */
static int check(const request *q, const tune_family *f, char **sizes, int n)
{
	const bool other = asked(q, OPTION_LIST) || asked(q, OPTION_PLOT) || asked(q, OPTION_PRUNE) || asked(q, OPTION_EXPORT) ||
	                   asked(q, OPTION_IMPORT);
	uint64_t dims[TUNE_MOST_DIMS];
	cptx_error err;

	if (!n && !other)
		return cli_usage(q->cmd, "name sizes to measure, or --list, --plot, --prune, --export or --import");
	if ((asked(q, OPTION_BEST) || asked(q, OPTION_SINCE)) && !asked(q, OPTION_PRUNE))
		return cli_usage(q->cmd, "--%s goes with --prune", asked(q, OPTION_BEST) ? "best" : "since");
	if (asked(q, OPTION_LIST) && n > 1)
		return cli_usage(q->cmd, "--list takes one size");
	for (int i = 0; i < n; i++)
		if (!tune_family_dims(f, sizes[i], dims, &err))
			return cli_usage(q->cmd, "%s", err.text);
	return EXIT_OK;
}

/* Whether the folder is one, or can become one: the library takes a place where it cannot be for an empty folder. */
static bool can_be_folder(const char *path)
{
	struct stat s;

	errno = 0;
	if (!*path || (stat(path, &s) && errno != ENOTDIR))
		return true;
	errno = errno ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
	return !errno;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd };
	cptx_error err = { .code = CPTX_OK };
	const char *value;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = read_option(&q, option, value)))
			return status;
	}
	/* the family may be left out in front of sizes, and is gemm then */
	const tune_family *f = optind < argc ? tune_family_find(argv[optind]) : NULL;
	const int first = optind + (f != NULL);
	if (first < argc && !f && (argv[first][0] < '0' || argv[first][0] > '9'))
		return cli_usage(cmd, "there is no family '%s'; gemm, attention or rows", argv[first]);
	f = f || first == argc ? f : tune_family_find("gemm");
	if ((status = check(&q, f, argv + first, argc - first)))
		return status;
	cptx_tune *db = cptx_tune_open(&(cptx_tune_opt){ .path = q.folder }, &err);
	if (!db)
		return cli_failed(cmd, "%s", err.text);
	status = can_be_folder(cptx_tune_path(db))
	             ? act(&q, f, argv + first, argc - first, db)
	             : cli_failed(cmd, "the folder %s cannot be read: %s", cptx_tune_path(db), strerror(errno));
	cptx_tune_close(db);
	return status;
}

const cli_command cmd_tune = {
	.name = "tune",
	.arguments = "[gemm|attention|rows] SIZES...",
	.about = "Measures kernels for sizes and keeps the results, which the library then uses; lists and tidies them.",
	.details =
		"SIZES: gemm MxNxK[xBATCH], attention BATCHxHEADSxKV_HEADSxQUERIESxKEYS, rows ROWSxCOLUMNS.\n"
		"Each candidate is a record on disk as soon as it is measured, and is not measured again (--again does).\n"
		"Under mpirun, srun or a Slurm array the processes divide sizes and candidates, write one folder, and go on where\n"
		"they stopped when they are started again; CPTX_SHARE=i/n does it by hand.\n\n"
		"  cptx tune 4096x4096x4096 8192x8192x8192 --options \"out=bf16\" --plot\n"
		"  cptx tune attention 1x64x8x4096x4096 --options \"causal=1\" --budget 60\n"
		"  cptx tune rows 4096x8192 --options \"kernel=softmax in=f32\"\n"
		"  mpirun -n 4 cptx tune --candidates 32 128x10240x8192 256x10240x8192\n"
		"  cptx tune --list gemm 4096x4096x4096\n"
		"  cptx tune --prune --best 3\n",
	.options = options,
	.noption = OPTIONS,
	.operand_choices = "gemm attention rows",
	.run = run,
};
