/* SPDX-License-Identifier: MIT */
/* The prepared launch of C that bench/python_launch.py compares with: a shared object that it loads. */
#include <cptx/device.h>

#include <time.h>

enum { LAUNCHES = 200 };

static double now(void)
{
	struct timespec t;
	timespec_get(&t, TIME_UTC);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

CPTX_API double bench_prepared(cptx_device *dev, const cptx_program *program, uint64_t x, uint64_t y, uint32_t n,
                               void *stream);
/* Host time of a launch in ns, the mean of 200; -1 on error.  The kernel is saxpy with blocks of 256. */
double bench_prepared(cptx_device *dev, const cptx_program *program, uint64_t x, uint64_t y, uint32_t n, void *stream)
{
	cptx_error err = { 0 };
	cptx_stream *s = stream ? cptx_stream_adopt(dev, stream, &err) : NULL;
	cptx_launch *l =
		cptx_launch_new(program, "saxpy",
	                    &(cptx_launch_opt){ .grid = { (n + 255) / 256 }, .block = { 256 }, CPTX_ARGS(x, y, 2.0f, n) }, &err);

	cptx_device_synchronize(dev, &err);
	double start = now();
	for (int i = 0; i < LAUNCHES; i++)
		cptx_launch_run(l, s, &err);
	double ns = (now() - start) / LAUNCHES;
	cptx_device_synchronize(dev, &err);
	cptx_launch_destroy(l);
	cptx_stream_destroy(s);
	return err.code ? -1 : ns;
}
