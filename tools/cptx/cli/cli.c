/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include "base/base.h"
#include "base/printable.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_OPTIONS = 64, FIRST_LONG = 256, HELP = FIRST_LONG + MOST_OPTIONS };

void cli_near_try(cli_near *n, const char *candidate)
{
	size_t len = strlen(n->word);
	unsigned d = text_distance(n->word, candidate);

	if (d <= (len < 4 ? 1u : len < 8 ? 2u : 3u) && d < len && (!n->best || d < n->distance))
		n->best = candidate, n->distance = d;
}

/* An option that begins so, or is near, of "--word" or "--word=value"; "" if there is none. */
static const char *similar_option(const cli_command *cmd, const char *bad)
{
	char word[64];

	if (strncmp(bad, "--", 2))
		return "";
	snprintf(word, sizeof word, "%.*s", (int)strcspn(bad + 2, "="), bad + 2);
	cli_near near = { .word = word };
	for (size_t i = 0; i < cmd->noption; i++)
		cli_near_try(&near, cmd->options[i].name);
	cli_near_try(&near, "help");
	return near.best ? near.best : "";
}

int cli_bad_value(const cli_command *cmd, size_t option, const char *value, const char *right)
{
	const cli_option *o = &cmd->options[option];
	char words[512];
	cli_near near = { .word = value };

	snprintf(words, sizeof words, "%s", o->choices && *o->choices != '@' ? o->choices : "");
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		cli_near_try(&near, w);
	return cli_usage(cmd, "--%s %s: %s%s%s%s", o->name, value, right, near.best ? "; did you mean " : "",
	                 near.best ? near.best : "", near.best ? "?" : "");
}

int cli_next(const cli_command *cmd, int argc, char **argv, const char **value, int *status)
{
	struct option longs[MOST_OPTIONS + 2] = { { 0 } };
	/* the colon tells a missing argument from an unknown option; a plus ends options at the first operand */
	char shorts[2 * MOST_OPTIONS + 8] = "";
	size_t n = cmd->noption;

	strcat(shorts, cmd->options_first ? "+:h" : ":h");
	for (size_t i = 0; i < n; i++) {
		longs[i] = (struct option){ cmd->options[i].name, cmd->options[i].argument ? required_argument : no_argument, NULL,
			                        FIRST_LONG + (int)i };
		if (cmd->options[i].letter)
			strncat(shorts, &cmd->options[i].letter, 1);
		if (cmd->options[i].letter && cmd->options[i].argument)
			strcat(shorts, ":");
	}
	longs[n] = (struct option){ "help", no_argument, NULL, HELP };
	opterr = 0;
	int c = getopt_long(argc, argv, shorts, longs, NULL);
	*value = optarg;
	if (c == -1)
		return -1;
	if (c == 'h' || c == HELP) {
		cli_help(cmd, stdout);
		*status = cli_flush(cmd, EXIT_OK);
		return -2;
	}
	if (c >= FIRST_LONG)
		return c - FIRST_LONG;
	for (size_t i = 0; i < n && c != ':' && c != '?'; i++)
		if (cmd->options[i].letter == c)
			return (int)i;
	const char letter[] = { '-', (char)optopt, 0 }; /* it may stand among others, as in -lz */
	const char *bad = optopt > 0 && optopt < FIRST_LONG ? letter : optind > 0 && optind <= argc ? argv[optind - 1] : "";
	const char *near = c == ':' || optopt >= FIRST_LONG ? "" : similar_option(cmd, bad);
	*status = cli_usage(cmd,
	                    c == ':'               ? "option '%s' needs an argument"
	                    : optopt >= FIRST_LONG ? "option '%s' takes no argument"
	                    : *near                ? "there is no option '%s'; did you mean --%s?"
	                                           : "there is no option '%s'",
	                    bad, near);
	return -2;
}

void cli_help(const cli_command *cmd, FILE *out)
{
	fprintf(out, "usage: cptx %s %s\n\n%s\n", cmd->name, cmd->arguments, cmd->about);
	if (cmd->noption)
		fputs("\noptions:\n", out);
	for (size_t i = 0; i < cmd->noption; i++) {
		const cli_option *o = &cmd->options[i];
		char left[64];
		int len = snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
		                   o->letter ? "," : " ", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
		fprintf(out, "  %-26s%s", left, len > 25 ? "\n                            " : "");
		fprintf(out, "%s%s\n", cmd->scopes ? cmd->scopes[i] : "", o->help);
	}
	if (cmd->details)
		fprintf(out, "\n%s", cmd->details);
}

/* Text of a manual page: a line that begins with . or ' is no request. */
static void man_text(FILE *out, const char *text)
{
	bool begins = true;

	for (; *text; begins = *text++ == '\n') {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	}
}

void cli_man(const cli_command *cmd, FILE *out)
{
	fprintf(out, ".SS cptx %s ", cmd->name);
	man_text(out, cmd->arguments);
	fputs("\n", out);
	man_text(out, cmd->about);
	fputs("\n", out);
	for (size_t i = 0; i < cmd->noption; i++) {
		const cli_option *o = &cmd->options[i];
		fputs(".TP\n\\fB", out);
		if (o->letter)
			fprintf(out, "\\-%c\\fR, \\fB", o->letter);
		fputs("\\-\\-", out);
		man_text(out, o->name);
		fprintf(out, "\\fR%s%s\n", o->argument ? " " : "", o->argument ? o->argument : "");
		man_text(out, cmd->scopes ? cmd->scopes[i] : "");
		man_text(out, o->help);
		fputs("\n", out);
	}
	if (cmd->details) {
		fputs(".PP\n.nf\n", out);
		man_text(out, cmd->details);
		fputs(".fi\n", out);
	}
}

void cli_put(FILE *out, const char *text, size_t n)
{
	char shown[1024];

	for (size_t i = 0; i < n;) {
		size_t plain = printable_span(text + i, n - i);
		fwrite(text + i, 1, plain, out);
		i += plain;
		if (i < n) {
			printable(shown, sizeof shown, text + i, 1);
			fputs(shown, out);
			i++;
		}
	}
}

static int complain(const cli_command *cmd, int status, const char *format, va_list ap)
{
	char text[2 * CPTX_ERROR_TEXT];

	fprintf(stderr, "cptx%s%s: ", cmd ? " " : "", cmd ? cmd->name : "");
	vsnprintf(text, sizeof text, format, ap);
	cli_put(stderr, text, strlen(text));
	fputc('\n', stderr);
	if (status == EXIT_USAGE)
		fprintf(stderr, "Try 'cptx%s%s --help'.\n", cmd ? " " : "", cmd ? cmd->name : "");
	return status;
}

int cli_usage(const cli_command *cmd, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int status = complain(cmd, EXIT_USAGE, format, ap);
	va_end(ap);
	return status;
}

int cli_orders(const cli_command *cmd, bool all, const char *schedule, const char *beside)
{
	if (beside && !all)
		return cli_usage(cmd, "--%s: of the orders that --schedules all tries, beside that", beside);
	if (schedule && all)
		return cli_usage(cmd, "--schedule %s: --schedules all tries every order; give one of the two", schedule);
	return EXIT_OK;
}

int cli_failed(const cli_command *cmd, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int status = complain(cmd, EXIT_FAILED, format, ap);
	va_end(ap);
	return status;
}

bool cli_no_memory(const cli_command *cmd)
{
	cli_failed(cmd, "out of memory");
	return false;
}

int cli_refused(const cli_command *cmd, const cptx_error *err)
{
	switch (err->code) {
	case CPTX_E_ARG:
	case CPTX_E_FORM:
	case CPTX_E_TARGET:
	case CPTX_E_LIMIT: return cli_usage(cmd, "%s", err->text);
	default: return cli_failed(cmd, "%s", err->text);
	}
}

/* Removes a file that was begun; no device, and no link to one. */
static void remove_begun(const char *path)
{
	struct stat st;
	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		remove(path);
}

bool cli_clash(const cli_command *cmd, const char *what, const char *output, const char *input)
{
	struct stat x, y;

	if (!strcmp(output, "-") || !strcmp(input, "-") || stat(output, &x) || stat(input, &y) || x.st_dev != y.st_dev ||
	    x.st_ino != y.st_ino || !S_ISREG(x.st_mode))
		return false;
	cli_failed(cmd, "%s would go to '%s', which is an input; name another file", what, output);
	return true;
}

/* The folder that a file is in, and its name there. */
static bool folder_of(const char *path, struct stat *folder, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;
	const bool ok = (!slash || dir) && !stat(slash ? dir : ".", folder);

	*name = slash ? slash + 1 : path;
	free(dir);
	return ok;
}

bool cli_same_output(const cli_command *cmd, const char *option, const char *a, const char *other, const char *b)
{
	struct stat x, y;
	const char *p, *q;
	bool same = !strcmp(a, b);

	if (!same && !stat(a, &x) && !stat(b, &y))
		same = x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
	else if (!same && folder_of(a, &x, &p) && folder_of(b, &y, &q))
		same = x.st_dev == y.st_dev && x.st_ino == y.st_ino && !strcmp(p, q);
	if (same)
		cli_failed(cmd, "--%s and --%s would both go to '%s'; name another file", option, other, a);
	return same;
}

/*
 * A new file beside a regular one, or one that is not there, to be renamed over it: who is killed leaves the old text or the
 * new.  NULL where there is something else, such as a pipe or a link, or where the folder takes no new file.
 */
static FILE *open_beside(const char *path, char *beside, size_t size)
{
	struct stat st;
	bool there = !lstat(path, &st);

	if ((there && (!S_ISREG(st.st_mode) || access(path, W_OK))) || snprintf(beside, size, "%s.XXXXXX", path) >= (int)size)
		return NULL;
	int fd = mkstemp(beside);
	if (fd < 0)
		return NULL;
	mode_t mask = umask(0);
	umask(mask);
	FILE *f = fchmod(fd, there ? st.st_mode & 0777 : 0666 & ~mask) ? NULL : fdopen(fd, "wb");
	if (!f) {
		close(fd);
		remove(beside);
	}
	return f;
}

bool cli_create(const cli_command *cmd, cli_output *o, const char *path)
{
	*o = (cli_output){ .path = path };
	if (!strcmp(path, "-")) {
		o->f = stdout;
		return true;
	}
	if ((o->f = open_beside(path, o->beside, sizeof o->beside)))
		return true;
	o->beside[0] = 0;
	if ((o->f = fopen(path, "wb")))
		return true;
	cli_failed(cmd, "cannot write '%s': %s", path, strerror(errno));
	return false;
}

bool cli_finish(const cli_command *cmd, cli_output *o)
{
	if (o->f == stdout)
		return cli_flush(cmd, EXIT_OK) == EXIT_OK;
	int why = errno ? errno : EIO; /* of the write that failed, if one did */
	bool ok = !ferror(o->f);
	if (ok && fflush(o->f))
		why = errno, ok = false;
	if (fclose(o->f) && ok)
		why = errno, ok = false;
	if (ok && o->beside[0] && rename(o->beside, o->path))
		why = errno, ok = false;
	if (!ok) {
		cli_failed(cmd, "cannot write '%s': %s", o->path, strerror(why));
		remove_begun(o->beside[0] ? o->beside : o->path);
	}
	return ok;
}

void cli_abandon(cli_output *o)
{
	if (o->f == stdout)
		return;
	fclose(o->f);
	remove_begun(o->beside[0] ? o->beside : o->path);
}

bool cli_write(const cli_command *cmd, const char *path, const char *text, size_t size)
{
	cli_output o;

	if (!cli_create(cmd, &o, path))
		return false;
	errno = 0;
	fwrite(text, 1, size, o.f); /* what goes wrong shows at the end */
	return cli_finish(cmd, &o);
}

const cptx_target *cli_target(const cli_command *cmd, const char *name)
{
	const cptx_target *t = cptx_target_find(name);
	cptx_module *m = t ? NULL : cptx_module_new(NULL);
	cptx_error err = { 0 };

	if (!t) {
		cptx_ptx_destroy(cptx_emit(m, name, NULL, &err)); /* it says what would be right */
		cli_usage(cmd, "%s", err.text);
	}
	cptx_module_destroy(m);
	return t;
}

char *cli_read(const cli_command *cmd, const char *path, size_t *size)
{
	enum { MOST = 1 << 28 };
	bool std = !strcmp(path, "-"), too_long = false;
	char *text = NULL;
	size_t room = 0, n = 0, got = 1;

	errno = 0;
	FILE *f = std ? stdin : fopen(path, "rb");
	while (f && got && !too_long) {
		if (n == room) {
			room = room ? 2 * room : 1 << 16;
			char *grown = realloc(text, room);
			if (!grown) {
				errno = ENOMEM; /* which the C standard does not promise */
				break;
			}
			text = grown;
		}
		got = fread(text + n, 1, room - n, f);
		n += got;
		too_long = n == MOST;
	}
	bool ok = f && !got && !ferror(f) && !too_long;
	int why = errno ? errno : ENOMEM;
	if (f && !std)
		fclose(f);
	*size = n;
	if (ok)
		return text;
	free(text);
	if (too_long)
		cli_failed(cmd, "cannot read '%s': it does not end within %d MiB, the most that is read", path, MOST >> 20);
	else
		cli_failed(cmd, "cannot read '%s': %s", path, strerror(why));
	return NULL;
}

int cli_flush(const cli_command *cmd, int status)
{
	if (fflush(stdout) || ferror(stdout))
		return cli_failed(cmd, "cannot write to standard output: %s", strerror(errno));
	return status;
}
