/* SPDX-License-Identifier: MIT */
#include "reference/measure.h"

#include <stdlib.h>
#include <time.h>

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

bool measure_launch(cptx_device *dev, cptx_launch *launch, unsigned bursts, double *median, cptx_error *err)
{
	float times[64];
	unsigned n = bursts > 64 ? 64 : bursts, done = 0, runs = 1;
	cptx_event *start = cptx_event_new(dev, err), *end = cptx_event_new(dev, err);

	for (unsigned i = 0; i <= n && err->code == CPTX_OK; i++) {
		float ms = 0;
		for (int warm = 0; warm < 2; warm++)
			cptx_launch_run(launch, NULL, err);
		cptx_event_record(start, NULL, err);
		for (unsigned j = 0; j < runs; j++)
			cptx_launch_run(launch, NULL, err);
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
