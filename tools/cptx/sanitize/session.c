/* SPDX-License-Identifier: MIT */
#include "sanitize/session.h"
#include "run/finding.h"
#include "run/trace.h"
#include "sanitize/record.h"

#include <cptx/emu.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
	                  : option == SESSION_THREADS ? &q->threads
	                  : option == SESSION_DEVICES ? &q->devices
	                  : option == SESSION_ORDERS  ? &q->orders
	                                              : &q->order;

	if (!is_number(value))
		return cli_bad_value(q->cmd, (size_t)option, value, "expected a number");
	if (option == SESSION_SMS && (!strtoul(value, NULL, 10) || strtoul(value, NULL, 10) > 1024))
		return cli_bad_value(q->cmd, SESSION_SMS, value, "a device has 1 to 1024 multiprocessors");
	if (option == SESSION_THREADS && (!strtoul(value, NULL, 10) || strtoul(value, NULL, 10) > 256))
		return cli_bad_value(q->cmd, SESSION_THREADS, value, "there are 1 to 256 threads");
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
		return schedule_of(value) == CPTX_EMU_ALL ? cli_bad_value(q->cmd, SESSION_SCHEDULE, value, SCHEDULE_EXPECTED)
		                                          : EXIT_OK;
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
	if (cli_orders(q->cmd, q->all, q->schedule, q->orders ? "orders" : q->order ? "order" : NULL))
		return EXIT_USAGE;
	return q->json && q->sarif && cli_same_output(q->cmd, "json", q->json, "sarif", q->sarif) ? EXIT_FAILED : EXIT_OK;
}

bool session_overwrites(const session *q, const char *input)
{
	return (q->json && cli_clash(q->cmd, "the list of findings", q->json, input)) ||
	       (q->sarif && cli_clash(q->cmd, "the list of findings", q->sarif, input));
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
	q->link[q->link[0] != NULL] = name;
	return !symlink(library, path);
}

void session_unlink(const session *q)
{
	char path[sizeof q->folder + 32];

	for (size_t i = 0; i < 2 && q->link[i]; i++) {
		snprintf(path, sizeof path, "%s/%s", q->folder, q->link[i]);
		unlink(path);
	}
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

/* The exit status of a process that could not become what it was to be. */
static int become(session *q, int fd)
{
	char number[16];

	snprintf(number, sizeof number, "%d", fd);
	if (session_put("CPTX_SANITIZE_ARCH", q->arch) && session_put("CPTX_SANITIZE_SEED", q->seed) &&
	    session_put("CPTX_SANITIZE_SCHEDULE", q->all ? "all" : q->schedule) &&
	    session_put("CPTX_SANITIZE_LIMIT", q->limit) && session_put("CPTX_SANITIZE_ORDERS", q->orders) &&
	    session_put("CPTX_SANITIZE_ORDER", q->order) && session_put("CPTX_SANITIZE_SMS", q->sms) &&
	    session_put("CPTX_SANITIZE_THREADS", q->threads) && session_put("CPTX_SANITIZE_DEVICES", q->devices) &&
	    session_put("CPTX_SANITIZE_PEDANTIC", q->pedantic ? "1" : NULL) && session_put("CPTX_SANITIZE_FD", number) &&
	    session_put("CPTX_RECORD_KERNEL", q->kernel) && session_put("CPTX_RECORD_LAUNCHES", q->launches))
		return q->become(q);
	cli_no_memory(q->cmd);
	return EXIT_FAILED;
}

/* Who asks for an end asks the process, which ends as it does without the command; then comes the summary. */
static volatile pid_t process; /* 0: there is none */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDS = sizeof ends / sizeof *ends };

static void pass_on(int signal)
{
	const int kept = errno;

	if (process > 0)
		kill(process, signal);
	errno = kept;
}

/* Takes the signals that were not ignored; before: what became of each until then. */
static void take_signals(struct sigaction before[ENDS])
{
	struct sigaction mine;

	memset(&mine, 0, sizeof mine);
	mine.sa_handler = pass_on;
	sigemptyset(&mine.sa_mask);
	for (size_t i = 0; i < ENDS; i++)
		if (!sigaction(ends[i], NULL, &before[i]) && before[i].sa_handler != SIG_IGN)
			sigaction(ends[i], &mine, NULL);
}

static void give_signals_back(const struct sigaction before[ENDS])
{
	for (size_t i = 0; i < ENDS; i++)
		sigaction(ends[i], &before[i], NULL);
}

/* Its exit status, as a shell gives it; -1 where it could not be started or waited for. */
static int run_process(session *q, int fd)
{
	int status;
	sigset_t some, before_mask;
	struct sigaction before[ENDS];

	fflush(NULL);
	sigemptyset(&some);
	for (size_t i = 0; i < ENDS; i++)
		sigaddset(&some, ends[i]);
	sigprocmask(SIG_BLOCK, &some, &before_mask); /* until it is known whom they are for */
	take_signals(before);
	pid_t pid = fork();
	if (!pid) {
		give_signals_back(before);
		sigprocmask(SIG_SETMASK, &before_mask, NULL);
		status = become(q, fd);
		*q->never = true;
		_exit(status);
	}
	process = pid;
	sigprocmask(SIG_SETMASK, &before_mask, NULL);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	process = 0; /* and the signals stay here: the summary and the files come to their end */
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	*q->never = false;
	return 128 + WTERMSIG(status);
}

/* ---- what was found ---- */

typedef struct totals {
	size_t errors, warnings, checked, differ, nkind; /* differ: launches whose result depends on the order */
	struct {
		size_t n;
		int tells;
		char word[16], one[64], several[64];
	} kind[8]; /* of what was not checked, in the order of the first of each */
} totals;

typedef struct outputs {
	cli_output json, sarif; /* where they were asked for */
} outputs;

/* No program gets it. */
static void keep(cli_output *o)
{
	if (o->f != stdout)
		fcntl(fileno(o->f), F_SETFD, FD_CLOEXEC);
}

/* Before the process runs: who cannot write need not wait for it. */
static bool open_outputs(const session *q, outputs *o)
{
	if (q->json && !cli_create(q->cmd, &o->json, q->json))
		return false;
	if (q->sarif && !cli_create(q->cmd, &o->sarif, q->sarif)) {
		if (q->json)
			cli_abandon(&o->json);
		return false;
	}
	if (q->json)
		keep(&o->json);
	if (q->sarif)
		keep(&o->sarif);
	return true;
}

static void abandon_outputs(const session *q, outputs *o)
{
	if (q->json)
		cli_abandon(&o->json);
	if (q->sarif)
		cli_abandon(&o->sarif);
}

static void put_unchecked(const session *q, outputs *o, const record_unchecked *u, totals *t)
{
	size_t i = 0;

	while (i < t->nkind && strcmp(t->kind[i].word, u->word))
		i++;
	if (i == t->nkind && i < sizeof t->kind / sizeof *t->kind) {
		snprintf(t->kind[i].word, sizeof t->kind[i].word, "%s", u->word);
		snprintf(t->kind[i].one, sizeof t->kind[i].one, "%s", u->one);
		snprintf(t->kind[i].several, sizeof t->kind[i].several, "%s", u->several);
		t->kind[i].tells = u->tells;
		t->nkind++;
	}
	if (i < t->nkind)
		t->kind[i].n++;
	if (!q->json)
		return;
	fprintf(o->json.f, "{\"code\":\"not-checked\",\"rank\":\"note\",\"what\":\"%s\",\"kernel\":", u->word);
	run_json_string(o->json.f, u->kernel);
	fputs(",\"text\":", o->json.f);
	run_json_string(o->json.f, u->why);
	fputs("}\n", o->json.f);
}

/* Whether nothing stands in the log of SARIF yet. */
static bool is_first(const totals *t) { return !t->errors && !t->warnings && !t->differ; }

static void put_order(const session *q, outputs *o, const finding_order *x, totals *t)
{
	if (q->json)
		finding_order_json(o->json.f, x);
	if (q->sarif)
		finding_order_sarif(o->sarif.f, x, is_first(t));
	t->differ++;
}

static bool each_finding(const session *q, FILE *records, outputs *o, totals *t)
{
	char *line = NULL;
	size_t room = 0;
	cptx_emu_finding f;
	record_unchecked u;
	finding_order x;
	bool ok = true;

	if (q->sarif)
		finding_sarif_begin(o->sarif.f);
	rewind(records);
	while (getline(&line, &room, records) > 0) {
		if (record_is_checked(line))
			t->checked++;
		else if (record_read_unchecked(line, &u))
			put_unchecked(q, o, &u, t);
		else if (record_read_order(line, &x))
			put_order(q, o, &x, t);
		else if (record_read(line, &f)) {
			if (q->json)
				finding_json(o->json.f, &f, q->seed ? strtoull(q->seed, NULL, 10) : 0);
			if (q->sarif)
				finding_sarif(o->sarif.f, &f, is_first(t));
			*(f.rank == CPTX_FIND_ERROR ? &t->errors : &t->warnings) += 1;
		}
	}
	free(line);
	if (!feof(records)) {
		abandon_outputs(q, o);
		return cli_no_memory(q->cmd);
	}
	if (q->sarif) {
		finding_sarif_end(o->sarif.f);
		ok = cli_finish(q->cmd, &o->sarif);
	}
	return (!q->json || cli_finish(q->cmd, &o->json)) && ok;
}

/* Says what was found and what was not checked; whether the exit status is to tell the second. */
static bool summarize(const session *q, const totals *t, const char *what, int status)
{
	bool tells = false;

	fprintf(stderr, "cptx %s: %zu error%s, %zu warning%s; ", q->cmd->name, t->errors, t->errors == 1 ? "" : "s", t->warnings,
	        t->warnings == 1 ? "" : "s");
	if (t->differ)
		fprintf(stderr, "the result%s of %zu launch%s depend%s on the order; ", t->differ == 1 ? "" : "s", t->differ,
		        t->differ == 1 ? "" : "es", t->differ == 1 ? "s" : "");
	for (size_t i = 0; i < t->nkind; i++) {
		if (t->kind[i].n == 1)
			fprintf(stderr, "%s; ", t->kind[i].one);
		else
			fprintf(stderr, "%zu %s; ", t->kind[i].n, t->kind[i].several);
		tells |= t->kind[i].tells > (t->checked != 0);
	}
	fprintf(stderr, "%s's exit status is %d%s\n", what, status,
	        q->counts && !t->checked && !t->nkind ? ", and it launched no kernel" : "");
	return tells;
}

int session_run(session *q, const char *what)
{
	totals t = { 0 };
	outputs o;
	FILE *records = tmpfile();
	void *shared =
		records ? mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;

	if (shared == MAP_FAILED) {
		const int why = errno;
		session_unlink(q);
		if (records)
			fclose(records);
		return cli_failed(q->cmd, "no temporary %s: %s", records ? "memory" : "file", strerror(why));
	}
	q->never = shared;
	const bool opened = open_outputs(q, &o);
	int status = opened ? run_process(q, fileno(records)) : EXIT_FAILED, why = errno;
	session_unlink(q);
	q->ran = opened && status >= 0 && !*q->never;
	if (status < 0)
		status = cli_failed(q->cmd, "%s could not be run: %s", what, strerror(why));
	if (opened && !q->ran)
		abandon_outputs(q, &o);
	const bool ok = q->ran && each_finding(q, records, &o, &t);
	munmap(shared, sizeof(bool));
	fclose(records);
	if (!q->ran)
		return status;
	if (!ok)
		return EXIT_FAILED;
	const bool unchecked = summarize(q, &t, what, status);
	return t.errors ? q->status : unchecked ? SESSION_UNCHECKED : status;
}
