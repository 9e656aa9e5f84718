/* SPDX-License-Identifier: MIT */
/* cptx replay: runs the launches of a recording on the emulator, and compares. */
#include "sanitize/session.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPLAY_TYPE = SESSION_OPTIONS, REPLAY_TOLERANCE };
static const cli_option options[] = {
	SESSION_ROWS("that of the recording", "only launches"),
	[REPLAY_TYPE] = { "type", 't', "TYPE", "what memory holds, for --tolerance: f16, bf16, f32 or f64", "f16 bf16 f32 f64" },
	[REPLAY_TOLERANCE] = { "tolerance", 0, "T",
	                       "numbers of the type may differ by T times the larger one, or 1 (default 0: bit for bit)", NULL },
};

typedef struct request {
	const char *file, *type, *tolerance;
} request;

static int read_option(session *q, int option, const char *value)
{
	request *r = q->user;
	char *end;

	switch (option) {
	case REPLAY_TYPE:
		r->type = value;
		return strcmp(value, "f16") && strcmp(value, "bf16") && strcmp(value, "f32") && strcmp(value, "f64")
		           ? cli_bad_value(q->cmd, REPLAY_TYPE, value, "expected f16, bf16, f32 or f64")
		           : EXIT_OK;
	case REPLAY_TOLERANCE:
		r->tolerance = value;
		return strtod(value, &end) >= 0 && end != value && !*end
		           ? EXIT_OK
		           : cli_bad_value(q->cmd, REPLAY_TOLERANCE, value, "expected a number from 0 on");
	default: return session_option(q, option, value);
	}
}

static int become_player(session *q)
{
	const request *r = q->user;
	int (*replay)(const char *) = NULL;

	if (!session_put("CPTX_RECORD", NULL) || !session_put("CPTX_REPLAY", r->file) ||
	    !session_put("CPTX_REPLAY_TYPE", r->type) || !session_put("CPTX_REPLAY_TOLERANCE", r->tolerance)) {
		cli_no_memory(q->cmd);
		return EXIT_FAILED;
	}
	*q->never = true; /* the loader ends a process that has no memory for variables of threads */
	void *library = dlopen(q->library, RTLD_NOW | RTLD_LOCAL), *p = library ? dlsym(library, "san_replay") : NULL;
	memcpy(&replay, &p, sizeof replay);
	if (!replay)
		return cli_failed(q->cmd, "%s (the file is there: it lacks a library, or memory is short)", dlerror());
	int status = replay(r->file);
	*q->never = false;
	fflush(NULL);
	_exit(status);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request r = { .file = NULL };
	session q = { .cmd = cmd, .status = EXIT_FAILED, .user = &r, .become = become_player };
	const char *value;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(&q, option, value)))
			return status;
	if (option == -2)
		return status;
	if (optind + 1 != argc)
		return cli_usage(cmd, "give one file that cptx sanitize --record wrote");
	if (!r.type != !r.tolerance)
		return cli_usage(cmd, "--tolerance wants the --type of the numbers, and --type the tolerance");
	if ((status = session_check(&q)))
		return status;
	r.file = argv[optind];
	if (session_overwrites(&q, r.file))
		return EXIT_FAILED;
	status = session_library(&q, "libcptx_sanitize.so", q.library) ? session_run(&q, "the replay") : EXIT_FAILED;
	return q.ran ? status : EXIT_FAILED;
}

const cli_command cmd_replay = {
	.name = "replay",
	.arguments = "[OPTION]... FILE",
	.about = "Runs the launches of a recording on the emulator, tells what is wrong with them, and compares their memory.",
	.details =
		"FILE is one that cptx sanitize --record wrote, on a GPU or on the emulator. Modules and memory get the addresses "
		"that\n"
		"they had. What a launch leaves in memory is compared with what was recorded, and the next one begins with what "
		"was\n"
		"recorded. All memory of a GPU's recording counts as written: values that nobody wrote are not found in it.\n"
		"\n"
		"Findings go to standard error as they are made. Exit status: that of --error-exitcode if there was an error, 1 if\n"
		"memory differs or a launch did not come to its end, 2 if the file cannot be replayed or none of its launches is\n"
		"chosen, 3 if all is as recorded but launches or the end of the file are missing, else 0.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
