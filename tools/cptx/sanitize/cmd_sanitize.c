/* SPDX-License-Identifier: MIT */
/* cptx sanitize: runs a program on the emulator, through CUDA's own libraries' names. */
#include "cli/cli.h"
#include "run/finding.h"
#include "sanitize/record.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libcptx_sanitize.so"
#ifndef CPTX_LIBDIR
#define CPTX_LIBDIR "lib"
#endif

enum {
	SANITIZE_ARCH,
	SANITIZE_SEED,
	SANITIZE_SCHEDULE,
	SANITIZE_SCHEDULES,
	SANITIZE_ORDERS,
	SANITIZE_ORDER,
	SANITIZE_SMS,
	SANITIZE_LIMIT,
	SANITIZE_PEDANTIC,
	SANITIZE_JSON,
	SANITIZE_SARIF,
	SANITIZE_STATUS
};
static const cli_option options[] = {
	[SANITIZE_ARCH] = { "arch", 'a', "NAME", "the emulated target (default sm_90a)", "@arch" },
	[SANITIZE_SEED] = { "seed", 's', "N", "of the schedule (default 0)", NULL },
	[SANITIZE_SCHEDULE] = { "schedule", 0, "HOW", "when asynchronous work is done: random, eager or late (default random)",
	                        "random eager late" },
	[SANITIZE_SCHEDULES] = { "schedules", 0, "all", "try every order that can matter, of each launch that is small enough",
	                         "all" },
	[SANITIZE_ORDERS] = { "orders", 0, "N", "with --schedules all: most orders of a launch (default 10000)", NULL },
	[SANITIZE_ORDER] = { "order", 0, "N", "with --schedules all: run order N of each launch alone", NULL },
	[SANITIZE_SMS] = { "sms", 0, "N", "multiprocessors of the emulated device, by which programs size grids", NULL },
	[SANITIZE_LIMIT] = { "step-limit", 0, "N", "most instructions of warps in a launch (default 10^11)", NULL },
	[SANITIZE_PEDANTIC] = { "pedantic", 0, NULL, "what is a warning, as GPUs take it, is an error", NULL },
	[SANITIZE_JSON] = { "json", 0, "FILE", "write the findings, one a line", "@file" },
	[SANITIZE_SARIF] = { "sarif", 0, "FILE", "write the findings for editors and code hosts", "@file" },
	[SANITIZE_STATUS] = { "error-exitcode", 0, "N", "exit status if an error was found (default 1)", NULL },
};

typedef struct sanitize_request {
	const cli_command *cmd;
	const char *arch, *seed, *schedule, *orders, *order, *sms, *limit, *json, *sarif;
	bool pedantic, all; /* --schedules all */
	int status;         /* if an error was found */
	char **program;
	char library[PATH_MAX];
	char folder[64]; /* where links to the library have the names of CUDA's libraries */
} sanitize_request;

static const char *const cuda_names[] = { "libcuda.so.1", "libcudart.so.13" };

/* ---- options ---- */

static bool is_number(const char *s) { return *s && strspn(s, "0123456789") == strlen(s) && strlen(s) < 20; }

static int read_option(sanitize_request *q, int option, const char *value)
{
	switch (option) {
	case SANITIZE_ARCH: q->arch = value; return cli_target(q->cmd, value) ? EXIT_OK : EXIT_USAGE;
	case SANITIZE_SCHEDULE:
		q->schedule = value;
		if (strcmp(value, "random") && strcmp(value, "eager") && strcmp(value, "late"))
			return cli_bad_value(q->cmd, SANITIZE_SCHEDULE, value, "expected random, eager or late");
		return EXIT_OK;
	case SANITIZE_SCHEDULES:
		q->all = true;
		return strcmp(value, "all") ? cli_bad_value(q->cmd, SANITIZE_SCHEDULES, value, "expected all") : EXIT_OK;
	case SANITIZE_PEDANTIC: q->pedantic = true; return EXIT_OK;
	case SANITIZE_JSON: q->json = value; return EXIT_OK;
	case SANITIZE_SARIF: q->sarif = value; return EXIT_OK;
	default: break;
	}
	if (!is_number(value))
		return cli_bad_value(q->cmd, (size_t)option, value, "expected a number");
	if (option == SANITIZE_SEED)
		q->seed = value;
	else if (option == SANITIZE_LIMIT)
		q->limit = value;
	else if (option == SANITIZE_ORDERS)
		q->orders = value;
	else if (option == SANITIZE_ORDER)
		q->order = value;
	else if (option == SANITIZE_SMS) {
		if (!strtoul(value, NULL, 10) || strtoul(value, NULL, 10) > 1024)
			return cli_bad_value(q->cmd, SANITIZE_SMS, value, "a device has 1 to 1024 multiprocessors");
		q->sms = value;
	} else if (strtoul(value, NULL, 10) > 255)
		return cli_bad_value(q->cmd, (size_t)option, value, "an exit status is 0 to 255");
	else
		q->status = (int)strtoul(value, NULL, 10);
	return EXIT_OK;
}

/* ---- the library, and its names ---- */

/* Beside the command, as it is built; or where it is installed, seen from the command. */
static bool find_library(sanitize_request *q)
{
	static const char *const places[] = { "", "tools/sanitize/", "../" CPTX_LIBDIR "/cptx/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n < 0)
		return false;
	self[n] = 0;
	*(strrchr(self, '/') + 1) = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char path[2 * PATH_MAX];
		snprintf(path, sizeof path, "%s%s" LIBRARY, self, places[i]);
		if (realpath(path, q->library))
			return true;
	}
	return false;
}

static bool link_names(sanitize_request *q)
{
	const char *tmp = getenv("TMPDIR");
	char path[sizeof q->folder + 32];

	if (!tmp || !*tmp || strlen(tmp) > 32)
		tmp = "/tmp";
	snprintf(q->folder, sizeof q->folder, "%s/cptx-sanitize-XXXXXX", tmp);
	if (!mkdtemp(q->folder)) {
		q->folder[0] = 0;
		return false;
	}
	for (size_t i = 0; i < sizeof cuda_names / sizeof *cuda_names; i++) {
		snprintf(path, sizeof path, "%s/%s", q->folder, cuda_names[i]);
		if (symlink(q->library, path))
			return false;
	}
	return true;
}

static void unlink_names(const sanitize_request *q)
{
	char path[sizeof q->folder + 32];

	for (size_t i = 0; *q->folder && i < sizeof cuda_names / sizeof *cuda_names; i++) {
		snprintf(path, sizeof path, "%s/%s", q->folder, cuda_names[i]);
		unlink(path);
	}
	if (*q->folder)
		rmdir(q->folder);
}

/* ---- the program ---- */

/* Puts a value in front of a variable that is a list. */
static bool put_first(const char *name, const char *value)
{
	const char *was = getenv(name);
	size_t n = strlen(value) + (was ? strlen(was) : 0) + 2;
	char *all = malloc(n);

	if (!all)
		return false;
	snprintf(all, n, "%s%s%s", value, was && *was ? ":" : "", was ? was : "");
	bool ok = !setenv(name, all, 1);
	free(all);
	return ok;
}

static bool put(const char *name, const char *value) { return value ? !setenv(name, value, 1) : !unsetenv(name); }

static void become_program(const sanitize_request *q, int fd)
{
	char number[16];

	snprintf(number, sizeof number, "%d", fd);
	if (put("CPTX_SANITIZE_ARCH", q->arch) && put("CPTX_SANITIZE_SEED", q->seed) &&
	    put("CPTX_SANITIZE_SCHEDULE", q->all ? "all" : q->schedule) && put("CPTX_SANITIZE_LIMIT", q->limit) &&
	    put("CPTX_SANITIZE_ORDERS", q->orders) && put("CPTX_SANITIZE_ORDER", q->order) && put("CPTX_SANITIZE_SMS", q->sms) &&
	    put("CPTX_SANITIZE_PEDANTIC", q->pedantic ? "1" : NULL) && put("CPTX_SANITIZE_FD", number) &&
	    put_first("LD_PRELOAD", q->library) && put_first("LD_LIBRARY_PATH", q->folder))
		execvp(q->program[0], q->program);
	fprintf(stderr, "cptx sanitize: '%s' cannot be started: %s\n", q->program[0], strerror(errno));
	_exit(errno == ENOMEM ? EXIT_FAILED : 127);
}

/* Its exit status, as a shell gives it; -1 where it could not be started or waited for. */
static int run_program(const sanitize_request *q, int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		become_program(q, fd);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what was found ---- */

typedef struct totals {
	size_t errors, warnings;
} totals;

static bool each_finding(const sanitize_request *q, FILE *records, totals *t)
{
	cli_output json, sarif;
	char *line = NULL;
	size_t room = 0;
	cptx_emu_finding f;
	bool ok = true;

	if (q->json && !cli_create(q->cmd, &json, q->json))
		return false;
	if (q->sarif && !cli_create(q->cmd, &sarif, q->sarif)) {
		if (q->json)
			cli_abandon(&json);
		return false;
	}
	if (q->sarif)
		finding_sarif_begin(sarif.f);
	rewind(records);
	while (getline(&line, &room, records) > 0) {
		if (!record_read(line, &f))
			continue;
		if (q->json)
			finding_json(json.f, &f, q->seed ? strtoull(q->seed, NULL, 10) : 0);
		if (q->sarif)
			finding_sarif(sarif.f, &f, !t->errors && !t->warnings);
		*(f.rank == CPTX_FIND_ERROR ? &t->errors : &t->warnings) += 1;
	}
	free(line);
	if (q->sarif) {
		finding_sarif_end(sarif.f);
		ok = cli_finish(q->cmd, &sarif);
	}
	return (!q->json || cli_finish(q->cmd, &json)) && ok;
}

static int sanitize(sanitize_request *q)
{
	totals t = { 0 };

	if (!find_library(q))
		return cli_failed(q->cmd, LIBRARY " is neither beside this command nor in %s/cptx beside its folder", CPTX_LIBDIR);
	FILE *records = tmpfile();
	if (!records)
		return cli_failed(q->cmd, "no temporary file: %s", strerror(errno));
	int status = link_names(q) ? run_program(q, fileno(records)) : -1, why = errno;
	unlink_names(q);
	if (status < 0)
		status = cli_failed(q->cmd, "the program could not be run: %s", strerror(why));
	bool ok = each_finding(q, records, &t);
	fclose(records);
	fprintf(stderr, "cptx sanitize: %zu error%s, %zu warning%s; the program's exit status is %d\n", t.errors,
	        t.errors == 1 ? "" : "s", t.warnings, t.warnings == 1 ? "" : "s", status);
	return !ok ? EXIT_FAILED : t.errors ? q->status : status;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	sanitize_request q = { .cmd = cmd, .status = EXIT_FAILED };
	const char *value;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(&q, option, value)))
			return status;
	if (option == -2)
		return status;
	if (optind == argc)
		return cli_usage(cmd, "give the program to run, and its arguments");
	if (cli_orders(cmd, q.all, q.schedule, q.orders ? "orders" : q.order ? "order" : NULL))
		return EXIT_USAGE;
	q.program = argv + optind;
	return sanitize(&q);
}

const cli_command cmd_sanitize = {
	.name = "sanitize",
	.arguments = "[--] PROGRAM [ARGUMENT]...",
	.about = "Runs a CUDA program on the emulator, without a GPU, and tells what is wrong with its kernels.",
	.details =
		"The program is one that nvcc 13 built, with the CUDA runtime linked in or shared, or one that uses the driver API. "
		"It\n"
		"must hold PTX that the emulated target runs (nvcc -gencode arch=compute_90a,code=compute_90a), and its symbols. "
		"Work\n"
		"is done when a call returns. A call that is not there returns cudaErrorNotSupported, and is named once.\n"
		"\n"
		"Findings go to standard error as they are made. Exit status: that of --error-exitcode if there was an error, else\n"
		"the program's own (128 and the signal's number if one ended it).\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.options_first = true,
	.run = run,
};
