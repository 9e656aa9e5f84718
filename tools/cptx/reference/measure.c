/* SPDX-License-Identifier: MIT */
#include "reference/measure.h"

#include <stdlib.h>
#include <time.h>

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

static void run_all(cptx_launch *const *launches, unsigned n, unsigned times, cptx_error *err)
{
	for (unsigned i = 0; i < n * times && err->code == CPTX_OK; i++)
		cptx_launch_run(launches[i % n], NULL, err);
}

bool measure_launch(cptx_device *dev, cptx_launch *launch, unsigned bursts, double *median, cptx_error *err)
{
	return measure_launches(dev, &launch, 1, bursts, median, err);
}

bool measure_launches(cptx_device *dev, cptx_launch *const *launches, unsigned n, unsigned bursts, double *median,
                      cptx_error *err)
{
	float times[64];
	const unsigned most = bursts > 64 ? 64 : bursts;
	unsigned done = 0, runs = 1;
	cptx_event *start = cptx_event_new(dev, err), *end = cptx_event_new(dev, err);

	for (unsigned i = 0; i <= most && err->code == CPTX_OK; i++) {
		float ms = 0;
		run_all(launches, n, 2, err);
		cptx_event_record(start, NULL, err);
		run_all(launches, n, runs, err);
		cptx_event_record(end, NULL, err);
		cptx_event_synchronize(end, err);
		if (!cptx_event_elapsed(start, end, &ms, err))
			break;
		if (i == 0)
			runs = ms < 3 ? (unsigned)(3 / (ms > 0.003f ? ms : 0.003f)) + 1 : 1;
		else
			times[done++] = ms / (float)runs;
		nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
	}
	if (done && err->code == CPTX_OK) {
		qsort(times, done, sizeof *times, by_value);
		*median = (double)times[done / 2];
	}
	cptx_event_destroy(start);
	cptx_event_destroy(end);
	return err->code == CPTX_OK;
}
