/* SPDX-License-Identifier: MIT */
/* ptxas as a process.  Its input and output are files without a name, so that nothing is left behind if a process is killed.
 */
#include "compile/compile.h"
#include "compile/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { USUAL_LIMIT_MS = 600000 };

static bool find(char *path, size_t size) { return process_find("ptxas", "CPTX_PTXAS", path, size); }

static void absent(char *text, size_t size)
{
	const char *given = getenv("CPTX_PTXAS");

	if (given && *given)
		snprintf(text, size, "there is no ptxas: CPTX_PTXAS names %s, which is no program that can be run", given);
	else
		snprintf(text, size, "there is no ptxas in CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda; CPTX_PTXAS can name one");
}

enum { ABOUT_LIMIT_MS = 10000 }; /* time limit for printing the version */

/* Reads the version that ptxas prints, from malloc; NULL with `why`. */
static char *version_text(char *path, unsigned limit_ms, char *why, size_t size)
{
	char *argv[] = { path, (char *)"--version", NULL };
	process p = { .argv = argv, .limit_ms = limit_ms && limit_ms < ABOUT_LIMIT_MS ? limit_ms : ABOUT_LIMIT_MS };

	if (!process_run(&p)) {
		snprintf(why, size, "%s cannot be run: %s", path, strerror(errno));
		return NULL;
	}
	if (!p.late)
		return p.output;
	snprintf(why, size, "%s does not say its version within %u s", path, p.limit_ms / 1000);
	free(p.output);
	return NULL;
}

bool ptxas_about(char *text, size_t size)
{
	char path[4096];

	if (!find(path, sizeof path)) {
		absent(text, size);
		return false;
	}
	char *version = version_text(path, 0, text, size);
	if (!version)
		return false;
	const char *v = strstr(version, "release "), *build = v ? strstr(v, "V") : NULL;
	v = build ? build + 1 : v;
	snprintf(text, size, "ptxas %.*s, %s", v ? (int)strcspn(v, ", \n") : 1, v ? v : "?", path);
	free(version);
	return true;
}

bool ptxas_identity(const char *path, unsigned limit_ms, char *text, size_t size)
{
	char begin[4] = "", own[4096], why[64];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(begin, 1, sizeof begin, f) : 0, used = strlen(text);

	if (f)
		fclose(f);
	if (n == sizeof begin && !memcmp(begin, "\177ELF", 4))
		return true;
	snprintf(own, sizeof own, "%s", path);
	char *version = version_text(own, limit_ms, why, sizeof why);
	if (!version)
		return false;
	cptx_cache_key key = cptx_cache_key_of(CPTX_OPT_(cptx_cache_part, version, strlen(version)), 1);
	free(version);
	for (size_t i = 0; i < sizeof key.bytes && used + 3 <= size; i++, used += 2)
		snprintf(text + used, size - used, "%02x", key.bytes[i]);
	return used + 1 <= size;
}

bool ptxas_where(char *path, size_t size) { return find(path, size); }

/* Replaces the file's name in the log by the name that the user knows.  Takes the log, which is from malloc, and returns
 * another such text, or NULL. */
static char *renamed(char *log, const char *file, const char *name)
{
	buf b;

	if (!strstr(log, file))
		return log;
	buf_init(&b, NULL);
	const char *s = log;
	for (const char *hit; (hit = strstr(s, file)); s = hit + strlen(file)) {
		buf_put(&b, s, (size_t)(hit - s));
		for (const char *p = name; *p; p++) /* line ends in a name must not break the lines of the log */
			buf_put(&b, (unsigned char)*p < ' ' ? "?" : p, 1);
	}
	buf_put(&b, s, strlen(s) + 1);
	char *out = b.failed ? NULL : NEW_UNSET(char, b.n);
	if (out)
		memcpy(out, b.p, b.n);
	buf_free(&b);
	free(log);
	return out;
}

static outcome judged(compile_job *job, const process *p, int out)
{
	unsigned limit = job->opt->limit_ms ? job->opt->limit_ms : USUAL_LIMIT_MS;

	if (p->late) {
		snprintf(job->why, sizeof job->why, "%s was ended after %u.%03u s, its time limit", job->by, limit / 1000,
		         limit % 1000);
		return BROKEN;
	}
	if (p->status > 128 && p->status < 128 + 65) {
		snprintf(job->why, sizeof job->why, "%s crashed on the program (signal %d)", job->by, p->status - 128);
		return BROKEN;
	}
	if (p->status > 0)
		return log_says_too_old(job->log) ? TOO_OLD : REFUSED;
	job->cubin = process_read(out, &job->ncubin);
	if (!job->cubin)
		return LACKING;
	if (elf_is_whole(job->cubin, job->ncubin))
		return DONE;
	if (p->status < 0 && job->log && *job->log) /* the exit status is unknown, but the log tells of errors */
		return log_says_too_old(job->log) ? TOO_OLD : REFUSED;
	snprintf(job->why, sizeof job->why, "%s wrote no whole cubin", job->by);
	return BROKEN;
}

static outcome with_files(compile_job *job, const char *path, int in, int out)
{
	char from[40], to[40], o[] = "-o";
	option_list list;

	if (!options_make(&list, job, false))
		return LACKING;
	char **argv = NEW_ARRAY(char *, list.n + 5);
	int keep[] = { in, out };
	process p = { .argv = argv, .keep = keep, .nkeep = 2 };
	outcome how = LACKING;
	if (argv) {
		snprintf(from, sizeof from, "/proc/self/fd/%d", in);
		snprintf(to, sizeof to, "/proc/self/fd/%d", out);
		p.limit_ms = job->opt->limit_ms ? job->opt->limit_ms : USUAL_LIMIT_MS;
		argv[0] = (char *)path;
		memcpy(argv + 1, list.at, list.n * sizeof *argv);
		argv[list.n + 1] = from, argv[list.n + 2] = o, argv[list.n + 3] = to;
		if (process_run(&p)) {
			job->log = renamed(p.output, from, job->name);
			how = job->log && !p.lost ? judged(job, &p, out) : LACKING;
		} else {
			snprintf(job->why, sizeof job->why, "%s cannot be run: %s", job->by, strerror(errno));
			how = errno == ENOMEM ? LACKING : BROKEN;
		}
	}
	free(argv);
	options_free(&list);
	return how;
}

outcome ptxas_run_job(compile_job *job)
{
	char path[4096];

	if (!find(path, sizeof path)) {
		absent(job->why, sizeof job->why);
		return ABSENT;
	}
	snprintf(job->by, sizeof job->by, "ptxas (%.400s)", path);
	int in = process_file(job->text, job->size), out = in < 0 ? -1 : process_file("", 0);
	outcome how = BROKEN;
	if (out < 0)
		snprintf(job->why, sizeof job->why, "no file for ptxas can be made: %s", strerror(errno));
	else
		how = with_files(job, path, in, out);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return how;
}
