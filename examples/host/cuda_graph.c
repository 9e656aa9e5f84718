/* SPDX-License-Identifier: MIT */
/*
 * Launches in a CUDA graph: a prepared launch allocates nothing and does not wait, so a stream that is captured takes it.
 * Loading a program does both: inside a capture it is refused.  Built where cuda_runtime_api.h and libcudart are found.
 */
#include "examples.h"

#include <cptx/device.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096, BLOCK = 256, LAUNCHES = 3, TURNS = 4 };

static bool ok(cudaError_t e, const char *what)
{
	if (e != cudaSuccess)
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
	return e == cudaSuccess;
}

/* y += 1 * x, LAUNCHES times, as a graph; NULL on error. */
static cudaGraphExec_t capture(cptx_launch *add, cptx_module *m, cptx_device *dev, cptx_stream *stream, cptx_error *err)
{
	cudaStream_t s = cptx_stream_handle(stream);
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	cptx_error refused = { 0 };

	if (!ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"))
		return NULL;
	for (int i = 0; i < LAUNCHES; i++)
		cptx_launch_run(add, stream, err);
	cptx_program *late = cptx_device_load(dev, m, NULL, &refused);
	if (late || refused.code != CPTX_E_STATE) {
		fprintf(stderr, "a program was loaded inside a capture, or refused otherwise: %s\n", refused.text);
		err->code = CPTX_E_WRONG;
	} else {
		printf("inside the capture: %s\n", refused.text);
	}
	cptx_program_destroy(late);
	if (!ok(cudaStreamEndCapture(s, &graph), "cudaStreamEndCapture") ||
	    !ok(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate"))
		exec = NULL;
	if (graph)
		cudaGraphDestroy(graph);
	return exec;
}

/* All on the first GPU; the number of wrong elements, -1 on error. */
static int run(cptx_device *dev, cptx_error *err)
{
	float hx[N], hy[N];
	int wrong = 0;

	for (int i = 0; i < N; i++)
		hx[i] = (float)i, hy[i] = 0;
	cptx_module *m = cptx_module_new(NULL);
	saxpy(m);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	uint64_t x = cptx_mem_alloc(dev, sizeof hx, err), y = cptx_mem_alloc(dev, sizeof hy, err);
	cptx_mem_write(dev, x, hx, sizeof hx, err);
	cptx_mem_write(dev, y, hy, sizeof hy, err);
	cptx_stream *stream = cptx_stream_new(dev, err);
	cptx_launch *add =
		cptx_launch_new(p, "saxpy", &(cptx_launch_opt){ .grid = { N / BLOCK }, CPTX_ARGS(x, y, 1.0f, (uint32_t)N) }, err);
	cudaGraphExec_t graph = err->code ? NULL : capture(add, m, dev, stream, err);
	for (int i = 0; graph && i < TURNS; i++)
		if (!ok(cudaGraphLaunch(graph, cptx_stream_handle(stream)), "cudaGraphLaunch"))
			wrong = -1;
	cptx_stream_synchronize(dev, stream, err);
	cptx_mem_read(dev, hy, y, sizeof hy, err);
	for (int i = 0; wrong >= 0 && i < N; i++)
		wrong += hy[i] != LAUNCHES * TURNS * hx[i];
	if (graph)
		cudaGraphExecDestroy(graph);
	cptx_launch_destroy(add);
	cptx_stream_destroy(stream);
	cptx_program_destroy(p);
	cptx_mem_free(dev, x);
	cptx_mem_free(dev, y);
	cptx_module_destroy(m);
	return graph && !err->code ? wrong : -1;
}

int main(void)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("cuda", &err);

	if (!dev) {
		fprintf(stderr, "not run: %s\n", err.text);
		return err.code != CPTX_E_NO_DRIVER && err.code != CPTX_E_NO_DEVICE;
	}
	int wrong = cptx_device_make_current(dev, &err) ? run(dev, &err) : -1;
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	if (wrong >= 0)
		printf("%d launches by %d launches of a graph; %d of %d elements are wrong\n", LAUNCHES * TURNS, TURNS, wrong, N);
	cptx_device_close(dev);
	return wrong != 0;
}
