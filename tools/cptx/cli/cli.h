/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands share.  A subcommand describes itself and its options once; parsing (getopt_long), --help and shell
 * completion read that.
 */
#ifndef CPTX_TOOL_CLI_CLI_H
#define CPTX_TOOL_CLI_CLI_H

#include <cptx/module.h>

#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1 /* a check failed, a wrong result */, EXIT_USAGE = 2 };

typedef struct cli_option {
	const char *name;     /* long name, without -- */
	char letter;          /* short name, 0: none */
	const char *argument; /* NULL: takes none; what --help shows */
	const char *help;
	const char *choices; /* for completion: words, "@arch" or "@file"; NULL: nothing */
} cli_option;

typedef struct cli_command {
	const char *name, *arguments, *about;
	const char *details; /* the text of --help behind the options */
	const cli_option *options;
	size_t noption;
	const char *const *scopes;   /* of each option: stands in front of its help, "wgmma: "; NULL: there are none */
	const char *operand_choices; /* as cli_option.choices, for what stands without an option */
	bool options_first; /* what stands behind the first operand belongs to it, options too: a program and its arguments */
	int (*run)(const struct cli_command *cmd, int argc, char **argv);
} cli_command;

#define COMMAND(name) extern const cli_command cmd_##name;
#include "cli/commands.def"
#undef COMMAND
extern const cli_command *const cli_commands[];
extern const size_t cli_ncommand;

/*
 * Next option as its index in cmd->options, with its argument in *value; -1 at the end (optind is the first operand); -2: an
 * error was printed, or --help: return *status.
 */
int cli_next(const cli_command *cmd, int argc, char **argv, const char **value, int *status);
void cli_help(const cli_command *cmd, FILE *out);
/* The help of a command as a section of the manual page. */
void cli_man(const cli_command *cmd, FILE *out);
/* "cptx gemm: text" on stderr; returns EXIT_USAGE or EXIT_FAILED as named. */
int cli_usage(const cli_command *cmd, const char *format, ...) CPTX_PRINTF_(2, 3);
/* Refuses what does not go together: --schedule, its value or NULL, beside --schedules all; without that an option for its
 * orders, by name, or NULL.  EXIT_OK or EXIT_USAGE. */
int cli_orders(const cli_command *cmd, bool all, const char *schedule, const char *beside);
/* The library refuses what the options ask for: EXIT_USAGE, where no other machine or moment would change that. */
int cli_refused(const cli_command *cmd, const cptx_error *err);
/* Text of others: what would drive a terminal is shown as \x1b. */
void cli_put(FILE *out, const char *text, size_t n);
int cli_failed(const cli_command *cmd, const char *format, ...) CPTX_PRINTF_(2, 3);
/* Says that memory is lacking; returns false. */
bool cli_no_memory(const cli_command *cmd);

/* "--name value: right" on stderr, and the choice of the option that is nearest to the value; EXIT_USAGE. */
int cli_bad_value(const cli_command *cmd, size_t option, const char *value, const char *right);

/* The nearest of some words to one that is none of them, for "did you mean"; `best` is NULL while none is near. */
typedef struct cli_near {
	const char *word, *best;
	unsigned distance;
} cli_near;
void cli_near_try(cli_near *n, const char *candidate);

/* A file being written, or standard output ("-"): it takes its name when it is finished. */
typedef struct cli_output {
	FILE *f;
	const char *path;
	char beside[4096]; /* where the text stands until then; "": in the file itself, which is a pipe, a device, a link */
} cli_output;
/* cli_create and cli_finish print why they fail, and then a file that was there stays as it was. */
bool cli_create(const cli_command *cmd, cli_output *o, const char *path);
bool cli_finish(const cli_command *cmd, cli_output *o);
/* Nothing of it is left. */
void cli_abandon(cli_output *o);
/* All at once. */
bool cli_write(const cli_command *cmd, const char *path, const char *text, size_t size);
/* True, after a message, if an output would overwrite an input, under whatever names; "-" is none.  `what`: "the C". */
bool cli_clash(const cli_command *cmd, const char *what, const char *output, const char *input);
/* True, after a message, if two outputs are one file; the names are those of the options, without "--". */
bool cli_same_output(const cli_command *cmd, const char *option, const char *a, const char *other, const char *b);
/* The target of that name; NULL, after a message about wrong usage, if there is none. */
const cptx_target *cli_target(const cli_command *cmd, const char *name);
/* A whole file of less than 256 MiB, or standard input for "-"; NULL, after a message, if it cannot be read.  To be freed.
 */
char *cli_read(const cli_command *cmd, const char *path, size_t *size);
enum { CLI_MOST_ERRORS = 1000 /* in a file, without --errors */ };
/* Reads and parses a PTX file, or standard input for "-"; NULL, after messages, on an error.  Options as cptx_parse_opt. */
cptx_module *cli_parse(const cli_command *cmd, const char *path, bool keep, uint32_t most_errors);
/* What stdout got has arrived (a full disk shows at the end); else prints and gives EXIT_FAILED. */
int cli_flush(const cli_command *cmd, int status);

#endif
