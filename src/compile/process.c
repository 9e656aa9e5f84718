/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for memfd_create, pipe2, vfork */
#endif
#include "compile/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_OUTPUT = 16 << 20 }; /* most bytes of a process's output that are kept */

/* ---- finding ---- */

static bool usable(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

static bool in_folder(const char *dir, size_t n, const char *sub, const char *name, char *path, size_t size)
{
	int len = snprintf(path, size, "%.*s%s/%s", (int)n, dir, sub, name);
	return n && len >= 0 && (size_t)len < size && usable(path);
}

bool process_find(const char *name, const char *variable, char *path, size_t size)
{
	const char *given = getenv(variable), *dirs = getenv("PATH"), *home;
	static const char *const homes[] = { "CUDA_HOME", "CUDA_PATH" };

	if (given && *given)
		return (size_t)snprintf(path, size, "%s", given) < size && usable(path);
	for (size_t i = 0; i < 2; i++)
		if ((home = getenv(homes[i])) && in_folder(home, strlen(home), "/bin", name, path, size))
			return true;
	for (const char *p = dirs ? dirs : ""; *p;) {
		size_t n = strcspn(p, ":");
		if (in_folder(p, n, "", name, path, size))
			return true;
		p += n + (p[n] == ':');
	}
	return in_folder("/usr/local/cuda", 15, "/bin", name, path, size);
}

/* ---- files without a name ---- */

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		p += w;
		n -= (size_t)w;
	}
	return true;
}

/* Moves a descriptor above 2: a host may have closed its standard streams, whose numbers the process needs. */
static int above_streams(int fd)
{
	if (fd < 0 || fd > 2)
		return fd;
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return other;
}

int process_file(const void *data, size_t size)
{
	int fd = memfd_create("cptx", MFD_CLOEXEC);

	if (fd < 0) { /* without memfd_create (old kernel, sandbox): a file that is unlinked at once */
		const char *dir = getenv("TMPDIR");
		char name[4096];
		if ((size_t)snprintf(name, sizeof name, "%s/cptx-XXXXXX", dir && *dir ? dir : "/tmp") >= sizeof name)
			return -1;
		fd = mkostemp(name, O_CLOEXEC);
		if (fd < 0)
			return -1;
		unlink(name);
	}
	fd = above_streams(fd);
	if (fd >= 0 && write_all(fd, (const char *)data, size))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

char *process_read(int fd, size_t *size)
{
	struct stat s;
	char *p = fstat(fd, &s) == 0 && s.st_size >= 0 ? (char *)malloc((size_t)s.st_size + 1) : NULL;
	size_t n = 0;

	while (p && n < (size_t)s.st_size) {
		ssize_t r = pread(fd, p + n, (size_t)s.st_size - n, (off_t)n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			free(p);
			return NULL;
		}
		n += (size_t)r;
	}
	if (p)
		p[n] = 0;
	*size = n;
	return p;
}

/* ---- running ---- */

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * Runs in the process, between vfork and exec, in the memory of its parent, so it writes nothing but *failed.  The process
 * leads a group of its own, so that all it starts can be killed with it, and ends with the thread that started it.
 */
static void exec_child(const process *p, int pipe_fd, pid_t parent, volatile int *failed)
{
	struct sigaction usual, now;
	sigset_t none;

	memset(&usual, 0, sizeof usual);
	usual.sa_handler = SIG_DFL;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		kill(getpid(), SIGKILL);
	for (int i = 1; i < NSIG; i++)
		if (i == SIGPIPE || i == SIGCHLD || (!sigaction(i, NULL, &now) && now.sa_handler != SIG_IGN))
			sigaction(i, &usual, NULL);
	int nothing = open("/dev/null", O_RDONLY);
	if (nothing > 0)
		dup2(nothing, 0), close(nothing);
	dup2(pipe_fd, 1);
	dup2(pipe_fd, 2);
	for (size_t i = 0; i < p->nkeep; i++)
		fcntl(p->keep[i], F_SETFD, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(p->argv[0], p->argv, environ);
	*failed = errno;
	for (;;)
		kill(getpid(), SIGKILL);
}

static int start(const process *p, int pipe_fd, pid_t *out)
{
	sigset_t all, before;
	volatile int failed = 0;
	pid_t parent = getpid(), pid;

	/* No handler of the host may run in the process, because it would run in the host's memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = vfork();
	if (!pid)
		exec_child(p, pipe_fd, parent, &failed);
	int why = pid < 0 ? errno : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	*out = pid;
	return failed ? failed : why;
}

/* Appends output of the process; what exceeds the bound is dropped. */
static void keep_output(process *p, size_t *n, size_t *cap, const char *text, size_t len)
{
	if (*n + len + 1 > *cap) {
		size_t want = (*n + len + 1) * 2;
		char *more = want <= MOST_OUTPUT ? (char *)realloc(p->output, want) : NULL;
		p->lost = p->lost || (!more && want <= MOST_OUTPUT);
		if (!more)
			return;
		p->output = more;
		*cap = want;
	}
	memcpy(p->output + *n, text, len);
	p->output[ *n += len] = 0;
}

/* Whether the process has ended; it is not reaped, so that nobody else gets its number. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ? errno != EINTR : info.si_pid == pid;
}

/*
 * Reads output until the process ends or the time is over; returns true if it ended.  The end of the pipe comes first,
 * unless the process left children behind that hold the pipe; then what can be read at its end is all.
 */
static bool listen_to(process *p, int fd, pid_t pid, int64_t until)
{
	enum { LOOK_MS = 50 };
	size_t n = 0, cap = 1, behind = 0;
	char text[4096];

	for (bool ended = false;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = until ? until - now_ms() : LOOK_MS;
		if (left <= 0)
			return false;
		int ready = poll(&wait, 1, ended ? 0 : (int)(left < LOOK_MS ? left : LOOK_MS));
		if (ready < 0 && errno != EINTR)
			return true;
		if (ready <= 0) {
			if (ended)
				return true;
			ended = has_ended(pid);
			continue;
		}
		ssize_t r = read(fd, text, sizeof text);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0 || (ended && (behind += (size_t)r) > MOST_OUTPUT))
			return true;
		keep_output(p, &n, &cap, text, (size_t)r);
	}
}

/* Waits for the end of the process, which is killed when the time is over, and kills all that it started.  Most processes
 * have ended when the pipe has. */
static void reap(process *p, pid_t pid, int64_t until)
{
	struct timespec nap = { .tv_nsec = 20000 };
	int status;
	pid_t r;

	while (!p->late && !has_ended(pid)) {
		p->late = until && now_ms() >= until;
		nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec < 5000000 ? nap.tv_nsec * 2 : nap.tv_nsec;
	}
	kill(-pid, SIGKILL);
	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	p->status = r < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool process_run(process *p)
{
	int fds[2], r;
	int64_t until;
	pid_t pid;

	p->late = p->lost = false;
	p->output = (char *)calloc(1, 1);
	if (!p->output || pipe2(fds, O_CLOEXEC))
		goto fail;
	fds[0] = above_streams(fds[0]), fds[1] = above_streams(fds[1]);
	r = fds[0] < 0 || fds[1] < 0 ? EMFILE : start(p, fds[1], &pid);
	if (fds[1] >= 0)
		close(fds[1]);
	if (r) {
		if (fds[0] >= 0)
			close(fds[0]);
		errno = r;
		goto fail;
	}
	until = p->limit_ms ? now_ms() + p->limit_ms : 0;
	p->late = !listen_to(p, fds[0], pid, until);
	close(fds[0]);
	reap(p, pid, until);
	return true;
fail:
	free(p->output);
	p->output = NULL;
	return false;
}
