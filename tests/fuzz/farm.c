/* SPDX-License-Identifier: MIT */
#include "../whole.h"
#include "farm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST_JOBS = 256,
	MOST_CPU = 120,     /* seconds of CPU time for a case, with sanitizers, before it counts as hung */
	STILL = 60,         /* seconds in which a case must take some CPU time, before it counts as deadlocked */
	MOST_FAILURES = 100 /* of a process, before it gives up */
};

/* In memory that all processes share. */
typedef struct job {
	uint64_t seed; /* that it is at */
	farm_sum sum;
	uint64_t cases, failed;
	double seconds; /* of CPU time, of processes that have ended */
	double slowest; /* of one case, and its seed */
	uint64_t slowest_seed;
	pid_t pid;
} job;

typedef struct shared {
	uint64_t next;  /* seed */
	bool no_longer; /* each process ends behind the case that it is at */
	job job[MOST_JOBS];
} shared;

typedef struct request {
	uint64_t seed, most;
	unsigned seconds, jobs;
	bool show;
} request;

/* With sanitizers, an allocation that is too large fails as it does without them. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=8192:detect_stack_use_after_return=1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "halt_on_error=1:print_stacktrace=1"; }

/* ---- in a process ---- */

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double then; /* CPU time when it was last looked */

/* The clock of the wall says nothing of a machine that is busy: only that nothing was done at all. */
static void look(int signal)
{
	static const char still[] = "the case stands still: no CPU time was taken in a minute\n";
	double now = cpu();

	(void)signal;
	if (now - then < 0.01) {
		ssize_t written = write(STDERR_FILENO, still, sizeof still - 1);
		(void)written;
		kill(getpid(), SIGABRT);
	}
	then = now;
	alarm(STILL);
}

static void work(const farm *f, shared *s, job *j, const request *q)
{
	const struct itimerval most = { { 0, 0 }, { MOST_CPU, 0 } };
	double before = j->seconds;

	if (f->begin)
		f->begin();
	signal(SIGALRM, look);
	signal(SIGTERM, SIG_IGN);
	while (before + cpu() < q->seconds && !__atomic_load_n(&s->no_longer, __ATOMIC_RELAXED)) {
		j->seed = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
		if (j->seed - q->seed >= q->most)
			return;
		if (!is_my_share(j->seed))
			continue;
		double began = then = cpu();
		alarm(STILL);
		setitimer(ITIMER_PROF, &most, NULL); /* of all threads of the process */
		const char *fault = f->one(j->seed, q->show, &j->sum);
		if (fault)
			printf("%s: seed %llu: %s\n", f->name, (unsigned long long)j->seed, fault);
		j->failed += fault != NULL;
		j->cases++;
		j->seconds = before + cpu();
		if (cpu() - began > j->slowest)
			j->slowest = cpu() - began, j->slowest_seed = j->seed;
	}
}

/* ---- in the one that starts them ---- */

static shared *ours;

static void end_soon(int signal)
{
	(void)signal;
	__atomic_store_n(&ours->no_longer, true, __ATOMIC_RELAXED);
}

static bool start(const farm *f, shared *s, job *j, const request *q)
{
	fflush(NULL);
	pid_t pid = fork(); /* not into *j at once, which both share */
	if (pid == 0) {
		work(f, s, j, q);
		fflush(NULL);
		exit(0); /* and not _exit: so leaks are looked for */
	}
	j->pid = pid;
	return pid > 0;
}

/* One process has ended; false: none is left. */
static bool next(const farm *f, shared *s, const request *q)
{
	int status;
	pid_t pid = wait(&status);

	if (pid < 0)
		return errno == EINTR;
	for (job *j = s->job; j < s->job + q->jobs; j++) {
		if (j->pid != pid || (WIFEXITED(status) && !WEXITSTATUS(status)))
			continue;
		int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
		printf("%s: seed %llu: its process ended with %s %d%s\n", f->name, (unsigned long long)j->seed,
		       WIFSIGNALED(status) ? "signal" : "status", number,
		       !WIFSIGNALED(status) ? ""
		       : number == SIGPROF  ? ": more CPU time than any case should take"
		       : number == SIGKILL  ? ": killed, perhaps because memory ran out"
		                            : "");
		j->failed++, j->cases++;
		if (j->failed < MOST_FAILURES)
			start(f, s, j, q);
	}
	return true;
}

static int report(const farm *f, const shared *s, const request *q)
{
	uint64_t cases = 0, failed = 0;
	farm_sum sum = { .digest = 0 };
	double seconds = 0, slowest = 0;
	uint64_t slowest_seed = 0;

	for (const job *j = s->job; j < s->job + q->jobs; j++) {
		cases += j->cases, failed += j->failed, seconds += j->seconds;
		sum.digest += j->sum.digest;
		if (j->slowest > slowest)
			slowest = j->slowest, slowest_seed = j->slowest_seed;
		for (unsigned i = 0; i < FARM_COUNTS; i++)
			sum.count[i] += j->sum.count[i];
	}
	bool enough = !f->report || f->report(&sum, cases);
	const uint64_t mine = count_my_share(q->seed, q->most);
	if (q->most != UINT64_MAX && cases < mine) {
		printf("only %llu of %llu %s were run\n", (unsigned long long)cases, (unsigned long long)mine, f->noun);
		enough = false;
	}
	printf("the slowest, seed %llu, took %.1f s of CPU\n", (unsigned long long)slowest_seed, slowest);
	printf("%llu %s from seed %llu on in %.0f s of CPU on %u processes, digest %016llx\n", (unsigned long long)cases,
	       f->noun, (unsigned long long)q->seed, seconds, q->jobs, (unsigned long long)sum.digest);
	failed += !enough;
	printf("%s: %llu passed, %llu failed, 0 skipped\n", f->name,
	       (unsigned long long)(cases - (failed < cases ? failed : cases)), (unsigned long long)failed);
	return failed != 0 || !cases;
}

static bool read_options(const farm *f, int argc, char **argv, request *q)
{
	bool seconds = false;

	for (int i = 1; i < argc; i += 2) {
		uint64_t n = i + 1 < argc ? strtoull(argv[i + 1], NULL, 0) : 0;
		if (i + 1 == argc || strncmp(argv[i], "--", 2) != 0)
			return false;
		const char *option = argv[i] + 2;
		if (!strcmp(option, "seed"))
			q->seed = n;
		else if (!strcmp(option, f->noun))
			q->most = n;
		else if (!strcmp(option, "seconds"))
			q->seconds = (unsigned)n, seconds = true;
		else if (!strcmp(option, "jobs"))
			q->jobs = (unsigned)n;
		else if (!strcmp(option, "show"))
			q->show = n != 0;
		else
			return false;
	}
	if (q->most != UINT64_MAX && !seconds)
		q->seconds = UINT32_MAX;
	return q->jobs && q->jobs <= MOST_JOBS && q->most;
}

int farm_main(const farm *f, int argc, char **argv)
{
	request q = { .seed = 1, .most = UINT64_MAX, .seconds = 5, .jobs = 1 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!read_options(f, argc, argv, &q))
		return fprintf(stderr, "usage: %s [--seed N] [--%s N] [--seconds N] [--jobs N] [--show 1]\n", f->name, f->noun), 2;
	shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return fprintf(stderr, "%s: no memory to share\n", f->name), 1;
	s->next = q.seed;
	ours = s;
	signal(SIGTERM, end_soon);
	for (unsigned i = 0; i < q.jobs; i++)
		if (!start(f, s, &s->job[i], &q))
			return fprintf(stderr, "%s: no process %u\n", f->name, i), 1;
	while (next(f, s, &q))
		;
	return report(f, s, &q);
}
