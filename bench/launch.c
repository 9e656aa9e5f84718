/* SPDX-License-Identifier: MIT */
/*
 * What a prepared launch costs beside the bare driver call: an empty kernel, the same process and stream, measured in turns.
 * Prints medians of the host time per launch, in nanoseconds, and the ratio to the bare call.
 */
#include <cptx/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 301, LAUNCHES = 200 };

typedef unsigned launch_fn(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                           unsigned smem, void *stream, void **params, void **extra);
typedef unsigned launch_ex_fn(const void *config, void *f, void **params, void **extra);
typedef unsigned function_fn(void **f, void *module, const char *name);

/* As in cuda.h: CUlaunchConfig, and CUlaunchAttribute with a cluster. */
typedef struct attribute {
	unsigned id, pad, cluster[16];
} attribute;
typedef struct config {
	unsigned grid[3], block[3], smem;
	void *stream;
	attribute *attrs;
	unsigned nattrs;
} config;

typedef struct bench {
	cptx_device *dev;
	cptx_stream *stream;
	cptx_launch *launch;
	void *f;
	launch_fn *plain;
	launch_ex_fn *ex;
	config config;
	void *params[3];
	unsigned bad;
	cptx_error err;
} bench;

static double now(void)
{
	struct timespec t;
	timespec_get(&t, TIME_UTC);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bare(bench *b)
{
	for (int i = 0; i < LAUNCHES; i++)
		b->bad |= b->plain(b->f, 4, 1, 1, 32, 1, 1, 0, b->config.stream, b->params, NULL);
}

static void bare_cluster(bench *b)
{
	for (int i = 0; i < LAUNCHES; i++)
		b->bad |= b->ex(&b->config, b->f, b->params, NULL);
}

static void prepared(bench *b)
{
	for (int i = 0; i < LAUNCHES; i++)
		cptx_launch_run(b->launch, b->stream, &b->err);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double time_round(bench *b, void (*run)(bench *))
{
	cptx_stream_synchronize(b->dev, b->stream, &b->err);
	double start = now();
	run(b);
	return (now() - start) / LAUNCHES;
}

static double median(double *t)
{
	qsort(t, ROUNDS, sizeof *t, by_size);
	return t[ROUNDS / 2];
}

/* A B A B ...; the control is the bare call against itself. */
static void compare(bench *b, const char *name, void (*base)(bench *), void (*ours)(bench *))
{
	static double t[3][ROUNDS];

	for (int i = -10; i < ROUNDS; i++) {
		int r = i < 0 ? 0 : i;
		t[0][r] = time_round(b, base);
		t[1][r] = time_round(b, ours);
		t[2][r] = time_round(b, base);
	}
	double bare_ns = median(t[0]), ours_ns = median(t[1]), control_ns = median(t[2]);
	printf("%-16s bare %7.1f ns  prepared %7.1f ns  ratio %.3f  (bare again %.1f ns, ratio %.3f)\n", name, bare_ns, ours_ns,
	       ours_ns / bare_ns, control_ns, control_ns / bare_ns);
}

static void *symbol(bench *b, const char *name) { return cptx_device_symbol(b->dev, name); }

static cptx_program *load(bench *b)
{
	static const char text[] = ".version 7.8\n.target sm_%u\n.address_size 64\n"
							   ".visible .entry empty(.param .u64 p, .param .u32 n, .param .f32 f) { ret; }\n";
	char ptx[sizeof text + 8];

	snprintf(ptx, sizeof ptx, text, cptx_device_get_info(b->dev)->clusters ? 90u : 75u);
	return cptx_device_load_text(b->dev, ptx, strlen(ptx), NULL, &b->err);
}

static void run_all(bench *b, const cptx_program *p)
{
	uint64_t ptr = 0;
	uint32_t n = 1;
	float f = 2;
	void *sym = symbol(b, "cuLaunchKernel"), *ex = symbol(b, "cuLaunchKernelEx"), *get = symbol(b, "cuModuleGetFunction");
	function_fn *get_function;
	attribute cluster = { .id = 4, .cluster = { 2, 1, 1 } };
	cptx_launch_opt opt = { .grid = { 4 }, .block = { 32 }, CPTX_ARGS(ptr, n, f) };

	memcpy(&b->plain, &sym, sizeof sym);
	memcpy(&b->ex, &ex, sizeof ex);
	memcpy(&get_function, &get, sizeof get);
	b->bad |= get_function(&b->f, cptx_program_handle(p), "empty");
	b->params[0] = &ptr, b->params[1] = &n, b->params[2] = &f;
	b->launch = cptx_launch_new(p, "empty", &opt, &b->err);
	if (b->launch)
		compare(b, "cuLaunchKernel", bare, prepared);
	cptx_launch_destroy(b->launch);
	if (!cptx_device_get_info(b->dev)->clusters) {
		printf("cuLaunchKernelEx: no clusters on this device\n");
		return;
	}
	opt.cluster[0] = 2;
	b->config.attrs = &cluster, b->config.nattrs = 1;
	b->launch = cptx_launch_new(p, "empty", &opt, &b->err);
	if (b->launch)
		compare(b, "cuLaunchKernelEx", bare_cluster, prepared);
	cptx_launch_destroy(b->launch);
}

int main(void)
{
	bench b = { .config = { .grid = { 4, 1, 1 }, .block = { 32, 1, 1 } } };

	b.dev = cptx_device_open("cuda", &b.err);
	b.stream = cptx_stream_new(b.dev, &b.err);
	b.config.stream = cptx_stream_handle(b.stream);
	cptx_program *p = b.dev ? load(&b) : NULL;
	if (p) {
		printf("%s, driver %u, %d rounds of %d launches\n", cptx_device_get_info(b.dev)->name,
		       cptx_device_get_info(b.dev)->driver, ROUNDS, LAUNCHES);
		run_all(&b, p);
		cptx_stream_synchronize(b.dev, b.stream, &b.err);
	}
	cptx_program_destroy(p);
	cptx_stream_destroy(b.stream);
	cptx_device_close(b.dev);
	if (b.err.code != CPTX_OK || b.bad)
		fprintf(stderr, "launch: %s\n", b.err.code != CPTX_OK ? b.err.text : "a bare launch failed");
	return b.err.code != CPTX_OK || b.bad;
}
