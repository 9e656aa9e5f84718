#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create, pipe2 */
#endif
#include "compile/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_SAID = 16 << 20 }; /* bytes that are kept of what a process says */

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

/* A host may have closed its standard streams; their numbers are the process's own. */
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

	if (fd < 0) { /* a kernel or a sandbox without it: a file whose name goes at once */
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
	if (fd >= 0 && write_all(fd, data, size))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

char *process_read(int fd, size_t *size)
{
	struct stat s;
	char *p = fstat(fd, &s) == 0 && s.st_size >= 0 ? malloc((size_t)s.st_size + 1) : NULL;
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

static int start(const process *p, const int pipe_fd[2], pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, usual;

	if (posix_spawn_file_actions_init(&actions))
		return ENOMEM;
	if (posix_spawnattr_init(&attr)) {
		posix_spawn_file_actions_destroy(&actions);
		return ENOMEM;
	}
	/* Onto itself: that only takes close-on-exec away. */
	int r = 0;
	for (size_t i = 0; i < p->nkeep && !r; i++)
		r = posix_spawn_file_actions_adddup2(&actions, p->keep[i], p->keep[i]);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], 1);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], 2);
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGCHLD);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &usual);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = r ? r : posix_spawn(pid, p->argv[0], &actions, &attr, p->argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Past the bound what is there must do. */
static void hear(process *p, size_t *n, size_t *cap, const char *text, size_t len)
{
	if (*n + len + 1 > *cap) {
		size_t want = (*n + len + 1) * 2;
		char *more = want <= MOST_SAID ? realloc(p->said, want) : NULL;
		p->lost = p->lost || (!more && want <= MOST_SAID);
		if (!more)
			return;
		p->said = more;
		*cap = want;
	}
	memcpy(p->said + *n, text, len);
	p->said[ *n += len] = 0;
}

/* Up to its end or to the time: true at the end. */
static bool listen_to(process *p, int fd, int64_t until)
{
	size_t n = 0, cap = 1;
	char text[4096];

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = until ? until - now_ms() : -1;
		if (until && left <= 0)
			return false;
		int ready = poll(&wait, 1, left > 1 << 30 ? 1 << 30 : (int)left);
		if (ready < 0 && errno != EINTR)
			return true;
		if (ready <= 0)
			continue;
		ssize_t r = read(fd, text, sizeof text);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return true;
		hear(p, &n, &cap, text, (size_t)r);
	}
}

/* Its end, for which it is killed once the time is over.  Most have ended when they close the pipe. */
static void reap(process *p, pid_t pid, int64_t until)
{
	struct timespec nap = { .tv_nsec = 20000 };
	int status;

	for (;;) {
		if (!p->late && until && now_ms() >= until)
			p->late = true;
		if (p->late)
			kill(pid, SIGKILL);
		pid_t r = waitpid(pid, &status, p->late || !until ? 0 : WNOHANG);
		if (r == pid)
			break;
		if (r < 0 && errno != EINTR) {
			p->status = -1;
			return;
		}
		if (r == 0) {
			nanosleep(&nap, NULL);
			nap.tv_nsec = nap.tv_nsec < 5000000 ? nap.tv_nsec * 2 : nap.tv_nsec;
		}
	}
	p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool process_run(process *p)
{
	int fds[2];
	pid_t pid;

	p->late = p->lost = false;
	p->said = calloc(1, 1);
	if (!p->said || pipe2(fds, O_CLOEXEC))
		goto fail;
	int r = start(p, fds, &pid);
	close(fds[1]);
	if (r) {
		close(fds[0]);
		errno = r;
		goto fail;
	}
	int64_t until = p->limit_ms ? now_ms() + p->limit_ms : 0;
	p->late = !listen_to(p, fds[0], until);
	close(fds[0]);
	reap(p, pid, until);
	return true;
fail:
	free(p->said);
	p->said = NULL;
	return false;
}
