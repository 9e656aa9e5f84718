/* SPDX-License-Identifier: MIT */
/*
 * Several devices, a thread for each: one module, built once, is loaded by all, and each computes its share.
 *
 *     several_devices [DEVICE]...         default: every GPU; emu:sm_80 emu:sm_90a are two emulated ones
 */
#include "examples.h"

#include <cptx/device.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 3 << 10, BLOCK = 256, MOST = 16 };
static float x[N], y[N];

/* The share of one thread: elements from `first` on. */
typedef struct share {
	const char *device;
	cptx_module *m; /* frozen: any number of threads may load it */
	size_t first, n;
	cptx_error err;
	pthread_t thread;
	bool started;
} share;

static void *work(void *user)
{
	share *s = user;
	cptx_error *err = &s->err;
	size_t bytes = s->n * sizeof *x;
	cptx_device *dev = cptx_device_open(s->device, err);
	cptx_program *p = cptx_device_load(dev, s->m, NULL, err);
	uint64_t px = cptx_mem_alloc(dev, bytes, err), py = cptx_mem_alloc(dev, bytes, err);

	cptx_mem_write(dev, px, x + s->first, bytes, err);
	cptx_mem_write(dev, py, y + s->first, bytes, err);
	cptx_launch_once(
		p, "saxpy",
		&(cptx_launch_opt){ .grid = { (unsigned)(s->n + BLOCK - 1) / BLOCK }, CPTX_ARGS(px, py, 2.0f, (uint32_t)s->n) },
		NULL, err);
	cptx_mem_read(dev, y + s->first, py, bytes, err);
	cptx_program_destroy(p);
	cptx_mem_free(dev, px);
	cptx_mem_free(dev, py);
	cptx_device_close(dev);
	return NULL;
}

/* Finds the names of all GPUs; returns their number. */
static int find_devices(char names[MOST][16], cptx_error *err)
{
	unsigned n = cptx_device_count("cuda", err);

	for (unsigned i = 0; i < n && i < MOST; i++)
		snprintf(names[i], sizeof names[i], "cuda:%u", i);
	return (int)(n < MOST ? n : MOST);
}

/* Runs n shares; returns how many devices failed. */
static int run(share *s, int n)
{
	int failed = 0;

	for (int i = 0; i < n; i++) {
		s[i].first = N * (size_t)i / (size_t)n;
		s[i].n = N * (size_t)(i + 1) / (size_t)n - s[i].first;
		s[i].started = !pthread_create(&s[i].thread, NULL, work, &s[i]);
	}
	for (int i = 0; i < n; i++) {
		if (s[i].started)
			pthread_join(s[i].thread, NULL);
		failed += !s[i].started || s[i].err.code;
		if (s[i].err.code)
			fprintf(stderr, "%s: %s\n", s[i].device, s[i].err.text);
	}
	return failed;
}

int main(int argc, char **argv)
{
	static char names[MOST][16];
	static share s[MOST];
	cptx_error err = { 0 };
	int n = argc > 1 ? argc - 1 : find_devices(names, &err), wrong = 0;

	if (n > MOST)
		return fprintf(stderr, "at most %d devices\n", MOST), 2;
	if (!n)
		return fprintf(stderr, "not run: %s\n", err.code ? err.text : "there is no GPU"), 0;
	cptx_module *m = cptx_module_new(NULL);
	saxpy(m);
	if (!cptx_module_freeze(m))
		return fprintf(stderr, "%s\n", cptx_module_error(m)->text), 1;
	for (int i = 0; i < N; i++)
		x[i] = (float)i, y[i] = 1;
	for (int i = 0; i < n; i++)
		s[i] = (share){ .device = argc > 1 ? argv[i + 1] : names[i], .m = m };
	int failed = run(s, n);
	for (int i = 0; i < N; i++)
		wrong += y[i] != 2 * x[i] + 1;
	printf("%d devices, %d failed; %d of %d elements are wrong\n", n, failed, wrong, N);
	cptx_module_destroy(m);
	return failed || wrong;
}
