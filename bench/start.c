/* SPDX-License-Identifier: MIT */
/*
 * A warm start: how long a new process takes to its first finished launch, less what the driver takes to start (cuInit and
 * the context).  Each round is a process of its own; the kernels come out of a cache that the round before the first has
 * filled: cptx's, or the driver's own, for what only the driver's compiler may make and does not hand out.
 */
#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/gemm.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 11 };

typedef struct times {
	/* milliseconds; ours: process start to first launch, without `open` */
	double start, open, build, load, launch, ours, cached;
} times;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The GEMM as a program of the usual size; the empty kernel beside it is what is launched. */
static cptx_module *build(const cptx_device *dev, enum cptx_gemm_mma mma)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_opt opt = cptx_gemm_default(mma, cptx_target_find(cptx_device_get_info(dev)->target));

	cptx_gemm_build(m, &opt, NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "empty");
	cptx_ret(k);
	return m;
}

static int child(double start, const char *folder, enum cptx_compiler by, int out, enum cptx_gemm_mma mma)
{
	cptx_error err = { 0 };
	times t = { 0 };
	double before = now();
	cptx_device *dev = cptx_device_open("cuda", &err); /* cuInit, the context, and what is asked of the device */
	double opened = now();
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	cptx_module *m = dev ? build(dev, mma) : NULL;
	double built = now();
	cptx_program *p = m ? cptx_device_load(dev, m, &(cptx_load_opt){ .cache = cache, .compiler = by }, &err) : NULL;
	double loaded = now();
	if (p)
		cptx_launch_once(p, "empty", &(cptx_launch_opt){ .grid = { 1 }, .block = { 32 } }, NULL, &err);
	cptx_device_synchronize(dev, &err);
	double end = now();

	t.start = before - start, t.open = opened - before, t.build = built - opened, t.load = loaded - built;
	t.launch = end - loaded, t.ours = end - start - t.open;
	t.cached = (double)cptx_cache_count(cache).hits;
	if (err.code != CPTX_OK)
		fprintf(stderr, "start: %s\n", err.text);
	bool ok = err.code == CPTX_OK && write(out, &t, sizeof t) == (ssize_t)sizeof t;
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	cptx_cache_close(cache);
	cptx_device_close(dev);
	return !ok;
}

/* A new process of this very program. */
static bool round_of(const char *self, const char *folder, const char *by, enum cptx_gemm_mma mma, times *t)
{
	char start[40], to[16];
	int fds[2], status;

	if (pipe(fds))
		return false;
	snprintf(to, sizeof to, "%d", fds[1]);
	snprintf(start, sizeof start, "%.6f", now());
	pid_t pid = fork();
	if (pid == 0) {
		execl(self, self, "--child", start, folder, by, to, cptx_gemm_mma_name(mma), (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	bool ok = pid > 0 && read(fds[0], t, sizeof *t) == (ssize_t)sizeof *t;
	close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && ok;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const times *t, size_t offset)
{
	double v[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		memcpy(&v[i], (const char *)&t[i] + offset, sizeof v[i]);
	qsort(v, ROUNDS, sizeof *v, by_size);
	return v[ROUNDS / 2];
}

static bool measure(const char *self, enum cptx_compiler by, enum cptx_gemm_mma mma)
{
	char folder[] = "/tmp/cptx-start-XXXXXX", command[160], drivers[64];
	const char *name = cptx_compiler_name(by);
	times cold, t[ROUNDS];

	if (!mkdtemp(folder))
		return false;
	snprintf(drivers, sizeof drivers, "%s-driver", folder);
	setenv("CUDA_CACHE_PATH", drivers, 1);
	bool ok = round_of(self, folder, name, mma, &cold);
	for (int i = 0; i < ROUNDS && ok; i++)
		ok = round_of(self, folder, name, mma, &t[i]);
	if (ok)
		printf("%-8s %-9s %-9s cold: %8.2f ms   warm, medians of %d: process start %.3f ms, cuInit and context %.2f ms, "
		       "build %.3f "
		       "ms, load %.3f ms, launch %.3f ms; process start to first launch, less cuInit and context: %.3f ms\n",
		       cptx_gemm_mma_name(mma), name, t[ROUNDS - 1].cached >= 1 ? "cptx's" : "driver's", cold.ours, ROUNDS,
		       median(t, offsetof(times, start)), median(t, offsetof(times, open)), median(t, offsetof(times, build)),
		       median(t, offsetof(times, load)), median(t, offsetof(times, launch)), median(t, offsetof(times, ours)));
	else
		fprintf(stderr, "start: %s by %s: a round failed\n", cptx_gemm_mma_name(mma), name);
	snprintf(command, sizeof command, "rm -rf %s %s", folder, drivers);
	return system(command) == 0 && ok;
}

int main(int argc, char **argv)
{
	enum cptx_compiler by;
	char why[512];
	bool ok = true;

	if (argc == 7 && !strcmp(argv[1], "--child") && cptx_compiler_named(argv[4], &by))
		return child(strtod(argv[2], NULL), argv[3], by, (int)strtol(argv[5], NULL, 10),
		             strcmp(argv[6], cptx_gemm_mma_name(CPTX_GEMM_WGMMA)) ? CPTX_GEMM_SYNC : CPTX_GEMM_WGMMA);
	printf("GEMM     compiler  cache\n");
	for (int g = 0; g < 2; g++) {
		const enum cptx_gemm_mma mma = g ? CPTX_GEMM_WGMMA : CPTX_GEMM_SYNC;
		ok = measure(argv[0], CPTX_COMPILER_DRIVER, mma) && ok;
		if (cptx_compiler_find(CPTX_COMPILER_PTXAS, why, sizeof why))
			ok = measure(argv[0], CPTX_COMPILER_PTXAS, mma) && ok;
		else
			printf("%-8s ptxas     not measured: %s\n", cptx_gemm_mma_name(mma), why);
	}
	return !ok;
}
