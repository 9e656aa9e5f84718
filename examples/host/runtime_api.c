/* SPDX-License-Identifier: MIT */
/*
 * A host program that uses the CUDA runtime API: cptx works in its context, on its stream and with its memory, and owns none
 * of them.  Built where cuda_runtime_api.h and libcudart are found.
 */
#include "examples.h"

#include <cptx/device.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20, BLOCK = 256 };

static bool ok(cudaError_t e, const char *what)
{
	if (e != cudaSuccess)
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
	return e == cudaSuccess;
}

/* What the host program has: two arrays on the GPU, and a stream. */
typedef struct host {
	float *x, *y, *hx, *hy;
	cudaStream_t stream;
} host;

static bool start(host *h)
{
	size_t bytes = N * sizeof *h->x;

	h->hx = malloc(bytes), h->hy = malloc(bytes);
	for (int i = 0; h->hx && h->hy && i < N; i++)
		h->hx[i] = (float)(i % 1000), h->hy[i] = 1;
	return h->hx && h->hy && ok(cudaStreamCreate(&h->stream), "cudaStreamCreate") &&
	       ok(cudaMalloc((void **)&h->x, bytes), "cudaMalloc") && ok(cudaMalloc((void **)&h->y, bytes), "cudaMalloc") &&
	       ok(cudaMemcpyAsync(h->x, h->hx, bytes, cudaMemcpyHostToDevice, h->stream), "cudaMemcpyAsync") &&
	       ok(cudaMemcpyAsync(h->y, h->hy, bytes, cudaMemcpyHostToDevice, h->stream), "cudaMemcpyAsync");
}

static void stop(host *h)
{
	cudaFree(h->x), cudaFree(h->y);
	if (h->stream)
		cudaStreamDestroy(h->stream);
	free(h->hx), free(h->hy);
}

/* The kernel goes to the stream behind the copies, and the host's own copy back behind it: nobody waits in between. */
static bool launch(host *h, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	saxpy(m);
	cptx_device *dev = cptx_device_adopt(NULL, err); /* the runtime API made the primary context current */
	cptx_stream *stream = cptx_stream_adopt(dev, h->stream, err);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	uint64_t x = (uint64_t)(uintptr_t)h->x, y = (uint64_t)(uintptr_t)h->y;

	cptx_launch_once(p, "saxpy", &(cptx_launch_opt){ .grid = { N / BLOCK }, CPTX_ARGS(x, y, 2.0f, (uint32_t)N) }, stream,
	                 err);
	bool done = !err->code &&
	            ok(cudaMemcpyAsync(h->hy, h->y, N * sizeof *h->hy, cudaMemcpyDeviceToHost, h->stream), "copy") &&
	            ok(cudaStreamSynchronize(h->stream), "cudaStreamSynchronize");
	cptx_program_destroy(p); /* behind its work; context, stream and memory stay the host's */
	cptx_stream_destroy(stream);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return done;
}

int main(void)
{
	host h = { 0 };
	cptx_error err = { 0 };
	int devices = 0, wrong = 0;
	cudaError_t there = cudaGetDeviceCount(&devices);

	if (there != cudaSuccess || !devices)
		return fprintf(stderr, "not run: %s\n", there ? cudaGetErrorString(there) : "no GPU"), 0;
	bool done = start(&h) && launch(&h, &err);
	for (int i = 0; done && i < N; i++)
		wrong += h.hy[i] != 2 * h.hx[i] + 1;
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	if (done)
		printf("%d of %d elements are wrong\n", wrong, N);
	stop(&h);
	return !done || wrong;
}
