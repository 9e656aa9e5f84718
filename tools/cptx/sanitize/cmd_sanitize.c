/* SPDX-License-Identifier: MIT */
/* cptx sanitize: runs a program on the emulator, through CUDA's own libraries' names; or on a GPU, and keeps what it does.
 */
#define _GNU_SOURCE /* dlinfo */
#include "sanitize/session.h"

#include <cptx/device.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libcptx_sanitize.so"
#define RECORDER "libcptx_record.so"

enum { SANITIZE_RECORD = SESSION_OPTIONS, SANITIZE_ON, SANITIZE_RECORD_LIMIT };
static const cli_option options[] = {
	SESSION_ROWS("sm_90a", "with --record: only launches"),
	[SANITIZE_RECORD] = { "record", 'r', "FILE", "keep the launches for cptx replay", "@file" },
	[SANITIZE_ON] = { "on", 0, "WHAT", "with --record: gpu or emulator (default gpu if there is one)", "gpu emulator" },
	[SANITIZE_RECORD_LIMIT] = { "record-limit", 0, "MIB", "with --record: most MiB of the file (default 256)", NULL },
};

typedef struct request {
	const char *record, *limit;
	bool gpu, emulator; /* --on */
	char **program;
	char recorder[PATH_MAX], driver[PATH_MAX]; /* on a GPU */
} request;

static int read_option(session *q, int option, const char *value)
{
	request *r = q->user;

	switch (option) {
	case SANITIZE_RECORD:
		r->record = value;
		return strcmp(value, "--") ? EXIT_OK : cli_bad_value(q->cmd, SANITIZE_RECORD, value, "expected the name of a file");
	case SANITIZE_ON:
		r->gpu = !strcmp(value, "gpu"), r->emulator = !strcmp(value, "emulator");
		return r->gpu || r->emulator ? EXIT_OK : cli_bad_value(q->cmd, SANITIZE_ON, value, "expected gpu or emulator");
	case SANITIZE_RECORD_LIMIT:
		r->limit = value;
		return *value && strspn(value, "0123456789") == strlen(value) && strlen(value) < 8 && atoi(value)
		           ? EXIT_OK
		           : cli_bad_value(q->cmd, SANITIZE_RECORD_LIMIT, value, "expected a number of MiB, from 1 on");
	default: return session_option(q, option, value);
	}
}

/* The file of the driver's library; false: there is no GPU. */
static bool find_driver(request *r, cptx_error *err)
{
	const char *name = getenv("CPTX_CUDA_LIBRARY");
	const struct link_map *map = NULL;

	if (!cptx_device_count("cuda", err))
		return false;
	void *lib = dlopen(name && *name ? name : "libcuda.so.1", RTLD_LAZY);
	return lib && !dlinfo(lib, RTLD_DI_LINKMAP, (void *)&map) && realpath(map->l_name, r->driver);
}

static bool records_for(const session *q, const request *r)
{
	char limit[32];

	snprintf(limit, sizeof limit, "%llu", r->limit ? strtoull(r->limit, NULL, 10) << 20 : 0);
	(void)q;
	return session_put("CPTX_RECORD", r->record) && session_put("CPTX_RECORD_LIMIT", r->record ? limit : NULL);
}

/* The libraries that stand in front of all others are those of the folder, also for a program that uses this library. */
static int become_program(session *q)
{
	const request *r = q->user;

	if (records_for(q, r) && session_put("CPTX_CUDA_LIBRARY", NULL) &&
	    session_put("CPTX_RECORD_HELPER", *r->driver ? q->library : NULL) &&
	    session_put_first("LD_PRELOAD", *r->driver ? r->recorder : q->library) &&
	    session_put_first("LD_LIBRARY_PATH", q->folder))
		execvp(r->program[0], r->program);
	const int why = errno;
	cli_failed(q->cmd, "'%s' cannot be started: %s", r->program[0], strerror(why));
	return why == ENOMEM ? EXIT_FAILED : 127;
}

/* Whether the file can be written; one that is there stays as it is. */
static bool can_write(const session *q, const char *path)
{
	struct stat st;
	const bool there = !lstat(path, &st);

	if (there && !S_ISREG(st.st_mode)) {
		cli_failed(q->cmd, "'%s' is no regular file, and a recording is one; name another", path);
		return false;
	}
	int fd = open(path, O_WRONLY | O_CLOEXEC | (there ? 0 : O_CREAT | O_EXCL), 0666);
	if (fd < 0)
		cli_failed(q->cmd, "'%s' cannot be written: %s", path, strerror(errno));
	else if (!close(fd) && !there)
		unlink(path);
	return fd >= 0;
}

/*
 * The program's process makes the recording, which must not be there before: an old file waits under another name, and comes
 * back if there is no new one.
 */
static bool put_aside(const session *q, const char *path, char *aside, size_t size)
{
	*aside = 0;
	if (access(path, F_OK))
		return true;
	int fd = snprintf(aside, size, "%s.XXXXXX", path) < (int)size ? mkstemp(aside) : -1;
	if (fd >= 0 && !close(fd) && !rename(path, aside))
		return true;
	cli_failed(q->cmd, "'%s' cannot be written: %s", path, strerror(errno));
	if (fd >= 0)
		unlink(aside);
	return false;
}

static void put_back(const char *path, const char *aside)
{
	if (*aside && access(path, F_OK))
		rename(aside, path);
	else if (*aside)
		unlink(aside);
}

/* No output is the program, or another output. */
static bool outputs_clash(const session *q, const request *r)
{
	const char *program = r->program[0];

	if (r->record && ((q->json && cli_same_output(q->cmd, "record", r->record, "json", q->json)) ||
	                  (q->sarif && cli_same_output(q->cmd, "record", r->record, "sarif", q->sarif))))
		return true;
	return strchr(program, '/') &&
	       (session_overwrites(q, program) || (r->record && cli_clash(q->cmd, "the recording", r->record, program)));
}

static int sanitize(session *q)
{
	request *r = q->user;
	cptx_error err = { .code = CPTX_OK };

	if (!session_library(q, LIBRARY, q->library))
		return EXIT_FAILED;
	if (r->record && !can_write(q, r->record))
		return EXIT_FAILED;
	if (r->record && !r->emulator && !find_driver(r, &err) && r->gpu)
		return cli_failed(q->cmd, "there is no GPU: %s", err.text);
	if (*r->driver && !session_library(q, RECORDER, r->recorder))
		return EXIT_FAILED;
	const bool linked = *r->driver
	                        ? session_link(q, r->driver, "libcptx_real_cuda.so")
	                        : session_link(q, q->library, "libcuda.so.1") && session_link(q, q->library, "libcudart.so.13");
	if (!linked) {
		const int why = errno;
		session_unlink(q);
		return cli_failed(q->cmd, "no folder for links to libraries: %s", strerror(why));
	}
	q->become = become_program;
	q->counts = !*r->driver;
	char aside[PATH_MAX] = "";
	if (r->record && !put_aside(q, r->record, aside, sizeof aside)) {
		session_unlink(q);
		return EXIT_FAILED;
	}
	int status = session_run(q, "the program");
	const bool none = r->record && access(r->record, F_OK);
	put_back(r->record, aside);
	if (q->ran && none) {
		fprintf(stderr, "cptx sanitize: nothing was recorded: the program launched no kernel, or none that is chosen\n");
		status = status ? status : EXIT_FAILED;
	}
	return status;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request r = { .record = NULL };
	session q = { .cmd = cmd, .status = EXIT_FAILED, .user = &r };
	const char *value;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(&q, option, value)))
			return status;
	if (option == -2)
		return status;
	if (optind == argc)
		return cli_usage(cmd, "give the program to run, and its arguments");
	if (!r.record && (q.kernel || q.launches || r.limit || r.gpu || r.emulator))
		return cli_usage(cmd, "--kernel, --launches, --on and --record-limit say what --record FILE keeps");
	if ((status = session_check(&q)))
		return status;
	r.program = argv + optind;
	return outputs_clash(&q, &r) ? EXIT_FAILED : sanitize(&q);
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
		"With --record the launches, their modules and all memory before and after each are kept in a file for cptx replay: "
		"of the\n"
		"machine's GPU if there is one, which then runs the program, and else of the emulator.\n"
		"\n"
		"Findings go to standard error as they are made. Exit status: that of --error-exitcode if there was an error, else\n"
		"125 if a launch or module could not be checked (no PTX, no symbols), else the program's own (128 and the signal's\n"
		"number if one ended it). Launches that CUDA refuses, too, are counted, and change no status.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.options_first = true,
	.run = run,
};
