/* SPDX-License-Identifier: MIT */
/* What `cptx sanitize` and `cptx replay` share: options of the emulator, the process that runs on it, and its findings. */
#ifndef CPTX_TOOL_SANITIZE_SESSION_H
#define CPTX_TOOL_SANITIZE_SESSION_H

#include "run/schedule.h"
#include "cli/cli.h"

#include <limits.h>

enum {
	SESSION_ARCH,
	SESSION_SEED,
	SESSION_SCHEDULE,
	SESSION_SCHEDULES,
	SESSION_ORDERS,
	SESSION_ORDER,
	SESSION_SMS,
	SESSION_THREADS,
	SESSION_DEVICES,
	SESSION_LIMIT,
	SESSION_PEDANTIC,
	SESSION_JSON,
	SESSION_SARIF,
	SESSION_STATUS,
	SESSION_KERNEL,
	SESSION_LAUNCHES,
	SESSION_OPTIONS
};
/* Of a command's options, the first ones. */
#define SESSION_ROWS(default_arch, of_launches)                                                                             \
	[SESSION_ARCH] = { "arch", 'a', "NAME", "the emulated target (default " default_arch ")", "@arch" },                    \
	[SESSION_SEED] = { "seed", 's', "N", "of the schedule (default 0)", NULL },                                             \
	[SESSION_SCHEDULE] = { "schedule", 0, "HOW", SCHEDULE_HELP, SCHEDULE_WORDS },                                           \
	[SESSION_SCHEDULES] = { "schedules", 0, "all", "try every order that can matter, of each launch that is small enough",  \
		                    "all" },                                                                                        \
	[SESSION_ORDERS] = { "orders", 0, "N", "with --schedules all: most orders of a launch (default 10000)", NULL },         \
	[SESSION_ORDER] = { "order", 0, "N", "with --schedules all: run order N of each launch alone", NULL },                  \
	[SESSION_SMS] = { "sms", 0, "N", "multiprocessors of the emulated device, by which programs size grids", NULL },        \
	[SESSION_THREADS] = { "threads", 'j', "N", "of the host, for the emulator (default: all processors)", NULL },           \
	[SESSION_DEVICES] = { "devices", 0, "N", "emulated devices, peers of one another (default 1)", NULL },                  \
	[SESSION_LIMIT] = { "step-limit", 0, "N", "most instructions of warps in a launch (default 10^11)", NULL },             \
	[SESSION_PEDANTIC] = { "pedantic", 0, NULL, "what is a warning, as GPUs take it, is an error", NULL },                  \
	[SESSION_JSON] = { "json", 0, "FILE", "write the findings, one a line", "@file" },                                      \
	[SESSION_SARIF] = { "sarif", 0, "FILE", "write the findings for editors and code hosts", "@file" },                     \
	[SESSION_STATUS] = { "error-exitcode", 0, "N", "exit status if an error was found (default 1)", NULL },                 \
	[SESSION_KERNEL] = { "kernel", 'k', "NAME", of_launches " of kernels whose name contains NAME", NULL },                 \
	[SESSION_LAUNCHES] = { "launches", 'l', "A..B", of_launches " with these numbers, from 1 on: A, A.., A..B", NULL }

enum { SESSION_UNCHECKED = 125 /* the exit status if something was not checked, and no error was found */ };

typedef struct session {
	const cli_command *cmd;
	const char *arch, *seed, *schedule, *orders, *order, *sms, *threads, *devices, *limit, *json, *sarif, *kernel, *launches;
	bool pedantic, all; /* --schedules all */
	bool counts;        /* launches are counted: the emulator runs the program itself */
	int status;         /* if an error was found */
	char library[PATH_MAX];
	char folder[64];     /* where links to libraries have the names of CUDA's libraries, */
	const char *link[2]; /* these */
	/* What the process becomes, which comes back only if it cannot: with an exit status, and the error said.  The
	 * environment is set. */
	int (*become)(struct session *q);
	void *user;
	/* Shared with the process: it does not do, or did not to its end, what it was to do; whoever knows why said it. */
	volatile bool *never;
	bool ran; /* it did, or a signal ended it */
} session;

/* One of the shared options. */
int session_option(session *q, int option, const char *value);
/* What options say together: an exit status if they are not to be had. */
int session_check(const session *q);
/* True, after a message, if a file of findings would overwrite what is read. */
bool session_overwrites(const session *q, const char *input);
/* The library, beside the command as it is built or where it is installed; path has room for PATH_MAX.  An error is said. */
bool session_library(const session *q, const char *name, char *path);
/* Makes a link in the folder that the process has in front of all others. */
bool session_link(session *q, const char *library, const char *name);
void session_unlink(const session *q);                 /* removes the folder */
bool session_put(const char *name, const char *value); /* into the environment; NULL takes it out */
bool session_put_first(const char *name, const char *value);
/* Runs the process, and reports: an exit status.  `what` is the process in messages. */
int session_run(session *q, const char *what);

#endif
