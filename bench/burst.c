/* SPDX-License-Identifier: MIT */
#include "burst.h"

#include "reference/gemm_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double burst_time(cptx_device *dev, const burst *b, cptx_error *err)
{
	cptx_event *start = cptx_event_new(dev, err), *end = cptx_event_new(dev, err);
	float ms = 0;

	nanosleep(&(struct timespec){ .tv_nsec = b->idle }, NULL);
	for (int i = -2; i < b->runs; i++) {
		if (i == 0)
			cptx_event_record(start, NULL, err);
		b->run(b->user, err);
	}
	cptx_event_record(end, NULL, err);
	cptx_event_synchronize(end, err);
	cptx_event_elapsed(start, end, &ms, err);
	cptx_event_destroy(start);
	cptx_event_destroy(end);
	return (double)ms / b->runs;
}

int burst_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Normal numbers on the device, drawn once for a type: drawing takes the host longer than the runs take the device. */
static uint64_t draw(cptx_device *dev, enum cptx_type type, uint64_t count, cptx_error *err)
{
	uint64_t bytes = count * cptx_type_bits(type) / 8, at = cptx_mem_alloc(dev, bytes, err);
	void *host = malloc(bytes);

	if (!host) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of host memory");
	} else {
		gemm_fill_normal(host, count, type, 1);
		cptx_mem_write(dev, at, host, bytes, err);
	}
	free(host);
	return at;
}

uint64_t burst_random(cptx_device *dev, uint64_t count, enum cptx_type type, uint64_t seed, cptx_error *err)
{
	enum { DRAWN = 1 << 24, APART = 1048576 - 8 }; /* elements; a seed says where among them to begin */
	static struct {
		enum cptx_type type;
		uint64_t at;
	} drawn;
	uint64_t size = cptx_type_bits(type) / 8, from = seed * APART % DRAWN;
	uint64_t at = cptx_mem_alloc(dev, count * size, err);

	if (drawn.type != type && err->code == CPTX_OK) {
		cptx_mem_free(dev, drawn.at);
		drawn.at = draw(dev, type, DRAWN, err), drawn.type = type;
	}
	for (uint64_t i = 0, some; i < count && err->code == CPTX_OK; i += some, from = 0) {
		some = count - i < DRAWN - from ? count - i : DRAWN - from;
		cptx_mem_copy(dev, at + i * size, drawn.at + from * size, size * some, err);
	}
	return at;
}
