/* SPDX-License-Identifier: MIT */
#include "sanitize/session.h"
#include "run/finding.h"
#include "sanitize/record.h"

#include <cptx/emu.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CPTX_LIBDIR
#define CPTX_LIBDIR "lib"
#endif

/* ---- options ---- */

static bool is_number(const char *s) { return *s && strspn(s, "0123456789") == strlen(s) && strlen(s) < 20; }

/* "A..B", "A.." or "A". */
static bool is_range(const char *s)
{
	size_t n = strspn(s, "0123456789"), m = n && !strncmp(s + n, "..", 2) ? strspn(s + n + 2, "0123456789") : 0;
	const char *end = s + n + (s[n] ? 2 + m : 0);
	uint64_t a = strtoull(s, NULL, 10), b = m ? strtoull(s + n + 2, NULL, 10) : UINT64_MAX;

	return n && n < 20 && m < 20 && (!s[n] || !strncmp(s + n, "..", 2)) && !*end && a && a <= b;
}

static int read_number(session *q, int option, const char *value)
{
	const char **to = option == SESSION_SEED      ? &q->seed
	                  : option == SESSION_LIMIT   ? &q->limit
	                  : option == SESSION_SMS     ? &q->sms
	                  : option == SESSION_DEVICES ? &q->devices
	                  : option == SESSION_ORDERS  ? &q->orders
	                                              : &q->order;

	if (!is_number(value))
		return cli_bad_value(q->cmd, (size_t)option, value, "expected a number");
	if (option == SESSION_SMS && (!strtoul(value, NULL, 10) || strtoul(value, NULL, 10) > 1024))
		return cli_bad_value(q->cmd, SESSION_SMS, value, "a device has 1 to 1024 multiprocessors");
	if (option == SESSION_DEVICES && (!strtoul(value, NULL, 10) || strtoul(value, NULL, 10) > 16))
		return cli_bad_value(q->cmd, SESSION_DEVICES, value, "there are 1 to 16 devices");
	if (option != SESSION_STATUS)
		*to = value;
	else if (strtoul(value, NULL, 10) > 255)
		return cli_bad_value(q->cmd, (size_t)option, value, "an exit status is 0 to 255");
	else
		q->status = (int)strtoul(value, NULL, 10);
	return EXIT_OK;
}

int session_option(session *q, int option, const char *value)
{
	switch (option) {
	case SESSION_ARCH: q->arch = value; return cli_target(q->cmd, value) ? EXIT_OK : EXIT_USAGE;
	case SESSION_SCHEDULE:
		q->schedule = value;
		if (strcmp(value, "random") && strcmp(value, "eager") && strcmp(value, "late"))
			return cli_bad_value(q->cmd, SESSION_SCHEDULE, value, "expected random, eager or late");
		return EXIT_OK;
	case SESSION_SCHEDULES:
		q->all = true;
		return strcmp(value, "all") ? cli_bad_value(q->cmd, SESSION_SCHEDULES, value, "expected all") : EXIT_OK;
	case SESSION_PEDANTIC: q->pedantic = true; return EXIT_OK;
	case SESSION_JSON: q->json = value; return EXIT_OK;
	case SESSION_SARIF: q->sarif = value; return EXIT_OK;
	case SESSION_KERNEL: q->kernel = value; return EXIT_OK;
	case SESSION_LAUNCHES:
		q->launches = value;
		return is_range(value)
		           ? EXIT_OK
		           : cli_bad_value(q->cmd, SESSION_LAUNCHES, value, "expected numbers from 1 on: A, A.. or A..B");
	default: return read_number(q, option, value);
	}
}

int session_check(const session *q)
{
	return cli_orders(q->cmd, q->all, q->schedule, q->orders ? "orders" : q->order ? "order" : NULL) ? EXIT_USAGE : EXIT_OK;
}

/* ---- libraries, and their names ---- */

bool session_library(const session *q, const char *name, char *path)
{
	static const char *const places[] = { "", "tools/sanitize/", "../" CPTX_LIBDIR "/cptx/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n > 0) {
		self[n] = 0;
		*(strrchr(self, '/') + 1) = 0;
	}
	for (size_t i = 0; n > 0 && i < sizeof places / sizeof *places; i++) {
		char full[2 * PATH_MAX];
		snprintf(full, sizeof full, "%s%s%s", self, places[i], name);
		if (realpath(full, path))
			return true;
	}
	cli_failed(q->cmd, "%s is neither beside this command nor in %s/cptx beside its folder", name, CPTX_LIBDIR);
	return false;
}

bool session_link(session *q, const char *library, const char *name)
{
	const char *tmp = getenv("TMPDIR");
	char path[sizeof q->folder + 32];

	if (!tmp || !*tmp || strlen(tmp) > 32)
		tmp = "/tmp";
	if (!*q->folder) {
		snprintf(q->folder, sizeof q->folder, "%s/cptx-sanitize-XXXXXX", tmp);
		if (!mkdtemp(q->folder)) {
			q->folder[0] = 0;
			return false;
		}
	}
	snprintf(path, sizeof path, "%s/%s", q->folder, name);
	return !symlink(library, path);
}

static void unlink_names(const session *q)
{
	char path[sizeof q->folder + NAME_MAX + 2];
	DIR *dir = *q->folder ? opendir(q->folder) : NULL;

	for (const struct dirent *d; dir && (d = readdir(dir));) {
		snprintf(path, sizeof path, "%s/%s", q->folder, d->d_name);
		if (d->d_name[0] != '.')
			unlink(path);
	}
	if (dir)
		closedir(dir);
	if (*q->folder)
		rmdir(q->folder);
}

/* ---- the process ---- */

bool session_put_first(const char *name, const char *value)
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

bool session_put(const char *name, const char *value) { return value ? !setenv(name, value, 1) : !unsetenv(name); }

static void become(session *q, int fd)
{
	char number[16];

	snprintf(number, sizeof number, "%d", fd);
	if (session_put("CPTX_SANITIZE_ARCH", q->arch) && session_put("CPTX_SANITIZE_SEED", q->seed) &&
	    session_put("CPTX_SANITIZE_SCHEDULE", q->all ? "all" : q->schedule) &&
	    session_put("CPTX_SANITIZE_LIMIT", q->limit) && session_put("CPTX_SANITIZE_ORDERS", q->orders) &&
	    session_put("CPTX_SANITIZE_ORDER", q->order) && session_put("CPTX_SANITIZE_SMS", q->sms) &&
	    session_put("CPTX_SANITIZE_DEVICES", q->devices) &&
	    session_put("CPTX_SANITIZE_PEDANTIC", q->pedantic ? "1" : NULL) && session_put("CPTX_SANITIZE_FD", number) &&
	    session_put("CPTX_RECORD_KERNEL", q->kernel) && session_put("CPTX_RECORD_LAUNCHES", q->launches))
		q->become(q);
	_exit(EXIT_FAILED);
}

/* Its exit status, as a shell gives it; -1 where it could not be started or waited for. */
static int run_process(session *q, int fd)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (!pid)
		become(q, fd);
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

static bool each_finding(const session *q, FILE *records, totals *t)
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

int session_run(session *q, const char *what)
{
	totals t = { 0 };
	FILE *records = tmpfile();

	if (!records) {
		unlink_names(q);
		return cli_failed(q->cmd, "no temporary file: %s", strerror(errno));
	}
	int status = run_process(q, fileno(records)), why = errno;
	unlink_names(q);
	if (status < 0)
		status = cli_failed(q->cmd, "%s could not be run: %s", what, strerror(why));
	bool ok = each_finding(q, records, &t);
	fclose(records);
	fprintf(stderr, "cptx %s: %zu error%s, %zu warning%s; %s's exit status is %d\n", q->cmd->name, t.errors,
	        t.errors == 1 ? "" : "s", t.warnings, t.warnings == 1 ? "" : "s", what, status);
	return !ok ? EXIT_FAILED : t.errors ? q->status : status;
}
