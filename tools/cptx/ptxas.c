#include "ptxas.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool tool_find(const char *name, const char *variable, char *path, size_t size)
{
	const char *given = getenv(variable), *dirs = getenv("PATH");

	if (given && *given)
		return snprintf(path, size, "%s", given) < (int)size && access(path, X_OK) == 0;
	for (const char *p = dirs ? dirs : ""; *p;) {
		size_t n = strcspn(p, ":");
		if (n && snprintf(path, size, "%.*s/%s", (int)n, p, name) < (int)size && access(path, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return snprintf(path, size, "/usr/local/cuda/bin/%s", name) < (int)size && access(path, X_OK) == 0;
}

bool ptxas_find(char *path, size_t size) { return tool_find("ptxas", "CPTX_PTXAS", path, size); }

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

static void read_all(int fd, char *out, size_t most)
{
	size_t n = 0;
	char rest[512];

	for (;;) {
		bool full = n + 1 >= most;
		ssize_t r = read(fd, full ? rest : out + n, full ? sizeof rest : most - 1 - n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		n += full ? 0 : (size_t)r;
	}
	out[n] = 0;
}

int tool_run(char *const argv[], char *out, size_t most)
{
	int fds[2], status = -1;
	pid_t pid;
	posix_spawn_file_actions_t actions;

	out[0] = 0;
	if (pipe(fds))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	int failed = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (!failed) {
		read_all(fds[0], out, most);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(fds[0]);
	if (failed)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128; /* a crash is a rejection */
}

static int assemble(const ptxas_job *job, const char *file, char *out, size_t most)
{
	char arch[32];
	bool old = !strncmp(job->target, "sm_101", 6); /* in .target only: ptxas knows the option by the new name */

	snprintf(arch, sizeof arch, "-arch=%s%s", old ? "sm_110" : job->target, old ? job->target + 6 : "");
	char *argv[] = { (char *)job->path,   arch, "-v", (char *)file, "-o", (char *)(job->output ? job->output : "/dev/null"),
		             (char *)job->option, NULL };
	return tool_run(argv, out, most);
}

bool tool_temporary(char *name, size_t size, int *fd)
{
	const char *dir = getenv("TMPDIR");

	if (snprintf(name, size, "%s/cptx-XXXXXX", dir && *dir ? dir : "/tmp") >= (int)size)
		return false;
	*fd = mkstemp(name);
	return *fd >= 0;
}

int ptxas_job_run(const ptxas_job *job, char *out, size_t most)
{
	char file[4096];
	int fd;

	out[0] = 0;
	if (!tool_temporary(file, sizeof file, &fd))
		return -1;
	bool ok = write_all(fd, job->ptx, job->size);
	ok &= close(fd) == 0;
	int status = ok ? assemble(job, file, out, most) : -1;
	unlink(file);
	return status;
}

int ptxas_run(const char *path, const char *target, const char *ptx, size_t size, char *out, size_t most)
{
	return ptxas_job_run(&(ptxas_job){ .path = path, .target = target, .ptx = ptx, .size = size }, out, most);
}
