/* SPDX-License-Identifier: MIT */
#include "assemble.h"
#include "../ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 2, SAID_MOST = 1 << 16 };

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	must(f != NULL, path);
	fputs(text, f);
	must(!fclose(f), path);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, SAID_MOST);
	FILE *f = fopen(path, "rb");
	must(text && f, path);
	size_t n = fread(text, 1, SAID_MOST - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static pid_t start(const char *target, bool separate, const char *source, const char *messages)
{
	bool old = !strncmp(target, "sm_101", 6);
	char arch[64];

	snprintf(arch, sizeof arch, "-arch=%s%s", old ? "sm_110" : target, old ? target + 6 : "");
	fflush(stdout);
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid)
		return pid;
	if (!freopen(messages, "w", stdout) || dup2(1, 2) < 0)
		_exit(127);
	execl(test_ptxas(), "ptxas", arch, "-v", "-warn-spills", "-warn-lmem-usage", source, "-o", "/dev/null",
	      separate ? "-c" : (char *)NULL, (char *)NULL);
	_exit(127);
}

static void finish(assembly *job, pid_t pid, const char *source, const char *messages)
{
	int status = -1;

	must(waitpid(pid, &status, 0) == pid, "waitpid");
	job->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	job->said = read_file(messages);
	unlink(source);
	unlink(messages);
}

void assemble(assembly *jobs, size_t n)
{
	char dir[] = "/tmp/cptx_verify_XXXXXX", source[AT_ONCE][64], messages[AT_ONCE][64];
	pid_t pid[AT_ONCE];

	must(mkdtemp(dir) != NULL, "mkdtemp");
	for (size_t i = 0; i < n + AT_ONCE; i++) {
		size_t s = i % AT_ONCE;
		if (i >= AT_ONCE && i - AT_ONCE < n)
			finish(&jobs[i - AT_ONCE], pid[s], source[s], messages[s]);
		if (i >= n)
			continue;
		snprintf(source[s], sizeof source[s], "%s/%zu.ptx", dir, i);
		snprintf(messages[s], sizeof messages[s], "%s/%zu.txt", dir, i);
		write_file(source[s], jobs[i].ptx);
		pid[s] = start(jobs[i].target, jobs[i].separate, source[s], messages[s]);
	}
	rmdir(dir);
}

void assemble_free(assembly *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(jobs[i].said);
}

unsigned assembly_spills(const char *said, unsigned *kernels)
{
	unsigned n = 0;

	for (const char *p = said; (p = strstr(p, " bytes spill stores")); p++) {
		const char *digit = p;
		while (digit > said && digit[-1] >= '0' && digit[-1] <= '9')
			digit--;
		n += strtoul(digit, NULL, 10) != 0;
		++*kernels;
	}
	return n;
}
