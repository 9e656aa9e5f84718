/* SPDX-License-Identifier: MIT */
#include "cli/ptxas.h"
#include "compile/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tool_find(const char *name, const char *variable, char *path, size_t size)
{
	return process_find(name, variable, path, size);
}

bool ptxas_find(char *path, size_t size) { return tool_find("ptxas", "CPTX_PTXAS", path, size); }

static int run(process *p, char *out, size_t most)
{
	out[0] = 0;
	if (!process_run(p))
		return -1;
	snprintf(out, most, "%s", p->output);
	free(p->output);
	return p->status > 128 ? 128 : p->status; /* a crash is a rejection */
}

int tool_run(char *const argv[], char *out, size_t most) { return run(&(process){ .argv = argv }, out, most); }

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
	char arch[32], file[40];
	bool old = !strncmp(job->target, "sm_101", 6); /* in .target only: ptxas knows the option by the new name */
	int fd = process_file(job->ptx, job->size);

	out[0] = 0;
	if (fd < 0)
		return -1;
	snprintf(arch, sizeof arch, "-arch=%s%s", old ? "sm_110" : job->target, old ? job->target + 6 : "");
	snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
	char *argv[] = { (char *)job->path,   arch,
		             (char *)"-v",        file,
		             (char *)"-o",        (char *)(job->output ? job->output : "/dev/null"),
		             (char *)job->option, NULL };
	int status = run(&(process){ .argv = argv, .keep = &fd, .nkeep = 1 }, out, most);
	close(fd);
	return status;
}

int ptxas_run(const char *path, const char *target, const char *ptx, size_t size, char *out, size_t most)
{
	return ptxas_job_run(&(ptxas_job){ .path = path, .target = target, .ptx = ptx, .size = size }, out, most);
}
