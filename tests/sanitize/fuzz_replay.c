/* SPDX-License-Identifier: MIT */
/*
 * Recordings that somebody has changed: they are replayed or refused, and nothing else happens.  The program records a few
 * launches of its own, changes the file at random, and replays each in a process of its own.  Arguments: the number of files
 * (default 250, with CPTX_WHOLE 5000), the first seed (default 1).
 */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cuModuleLoadData(void **m, const void *image);
int cuModuleGetFunction(void **f, void *m, const char *name);
int cuMemAlloc_v2(uint64_t *at, size_t size);
int cuMemFree_v2(uint64_t at);
int cuMemcpyHtoD_v2(uint64_t at, const void *from, size_t size);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   void *s, void **args, void **extra);

enum { ENDED = 10 /* is added to the exit status of a replay: a sanitizer ends a process with 1 */ };
enum { SECONDS = 60 /* that one file may take */, STEPS = 20000 };

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
						  ".visible .global .align 8 .u64 where = 0;\n.global .align 4 .u32 own = 3;\n"
						  ".visible .entry add(.param .u64 p, .param .u32 n) {\n"
						  ".reg .b64 %p<4>; .reg .b32 %r<8>; .reg .pred %q;\n"
						  "ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;\n"
						  "mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
						  "AGAIN: ld.global.u32 %r3, [%p2]; add.u32 %r3, %r3, 1; st.global.u32 [%p2], %r3;\n"
						  "sub.u32 %r1, %r1, 1; setp.ne.u32 %q, %r1, 0; @%q bra AGAIN;\n"
						  "st.global.u64 [where], %p1; atom.global.add.u32 %r4, [own], 1; ret; }\n";

static int record(const char *path)
{
	static unsigned host[2048];
	void *m = NULL, *f = NULL;
	uint64_t a = 0, b = 0;
	unsigned n = 3;

	setenv("CPTX_RECORD", path, 1);
	for (unsigned i = 0; i < 2048; i++)
		host[i] = i < 1024 ? 5 : i * 7919;
	int e = cuModuleLoadData(&m, ptx) || cuModuleGetFunction(&f, m, "add") || cuMemAlloc_v2(&a, sizeof host) ||
	        cuMemAlloc_v2(&b, 100000) || cuMemcpyHtoD_v2(a, host, sizeof host) || cuMemcpyHtoD_v2(b, host, sizeof host);
	void *args[] = { &a, &n }, *other[] = { &b, &n };
	e = e || cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL) || cuMemFree_v2(a) ||
	    cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, other, NULL);
	return e != 0;
}

/* ---- changes ---- */

static uint64_t state;

static uint64_t draw(uint64_t n)
{
	state = state * UINT64_C(6364136223846793005) + 1;
	return (state >> 33) % n;
}

static void set(unsigned char *p, size_t n, size_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes && at + i < n; i++)
		p[at + i] = (unsigned char)(v >> 8 * i);
}

/* Bytes of the file after its changes. */
static size_t change(unsigned char *p, size_t n)
{
	static const uint64_t odd[] = { 0,
		                            1,
		                            7,
		                            8,
		                            4096,
		                            0x7fffffff,
		                            0xffffffff,
		                            UINT64_C(1) << 36,
		                            UINT64_MAX,
		                            UINT64_MAX - 7,
		                            UINT64_C(0x7e0000001000),
		                            UINT64_C(0x7f0000000000) };

	for (uint64_t times = 1 + draw(3); times; times--) {
		/* most of the file is text and memory: where numbers are is tried more often */
		size_t at = (size_t)draw(4) ? (size_t)draw(n) / 8 * 8 : (size_t)draw(n);
		switch (draw(6)) {
		case 0: p[at] ^= (unsigned char)(1 << draw(8)); break;
		case 1: set(p, n, at, odd[draw(sizeof odd / sizeof *odd)], 8); break;
		case 2: set(p, n, at, odd[draw(sizeof odd / sizeof *odd)], 4); break;
		case 3: set(p, n, at, draw(13), 4); break;
		case 4: n = 1 + (size_t)draw(n); break;
		default: {
			size_t from = (size_t)draw(n), size = (size_t)draw(128);
			size = size < n - from ? size : n - from;
			size = size < n - at ? size : n - at;
			memmove(p + at, p + from, size);
		}
		}
		at = at < n ? at : 0;
	}
	return n;
}

/* ---- replays ---- */

/* The exit status of a replay in a process of its own; -1: it did not come to its end. */
static int replay(const char *path)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		dup2(null, 2);
		alarm(SECONDS);
		_exit(ENDED + san_replay(path));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) >= ENDED ? WEXITSTATUS(status) - ENDED : -1;
}

static bool write_file(const char *path, const unsigned char *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(p, 1, n, f) == n;

	return f && !fclose(f) && ok;
}

int main(int argc, char **argv)
{
	const bool whole = getenv("CPTX_WHOLE") != NULL;
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : whole ? 5000 : 250;
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, came[3] = { 0, 0, 0 }, bad = 0;
	char folder[] = "/tmp/cptx-replay-XXXXXX", made[64], changed[64], steps[16];
	unsigned char *file = NULL, *copy;
	size_t n = 0;
	int status = 1;

	if (!mkdtemp(folder))
		return 1;
	snprintf(made, sizeof made, "%s/made", folder);
	snprintf(changed, sizeof changed, "%s/changed", folder);
	snprintf(steps, sizeof steps, "%d", STEPS);
	setenv("CPTX_SANITIZE_LIMIT", steps, 1);
	fflush(NULL);
	pid_t pid = fork();
	if (!pid)
		exit(record(made)); /* which ends the file */
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status && !san_read_file(made, (char **)&file, &n) && !replay(made) &&
	    (copy = (unsigned char *)malloc(n))) {
		for (unsigned long seed = first; seed < first + count; seed++) {
			state = seed * UINT64_C(0x9e3779b97f4a7c15);
			memcpy(copy, file, n);
			size_t size = change(copy, n);
			status = write_file(changed, copy, size) ? replay(changed) : -1;
			if (status >= 0 && status <= 2)
				came[status]++;
			else
				bad++, printf("seed %lu: the replay ended with status %d\n", seed, status);
		}
		free(copy);
	} else {
		bad++, printf("no recording was made, or it is not replayed as it is\n");
	}
	free(file);
	unlink(changed);
	unlink(made);
	rmdir(folder);
	/* a change that nobody looked at proves nothing */
	if (!bad && count >= 100 && (!came[0] || !came[1] || !came[2]))
		bad++, printf("%lu as recorded, %lu differ, %lu refused: all three must come\n", came[0], came[1], came[2]);
	printf("%lu as recorded, %lu differ, %lu refused\n%lu passed, %lu failed, 0 skipped\n", came[0], came[1], came[2],
	       came[0] + came[1] + came[2], bad);
	return bad != 0;
}
