#include "burst.h"

#include "gemm_check.h"

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

uint64_t burst_random(cptx_device *dev, uint64_t count, enum cptx_type type, uint64_t seed, cptx_error *err)
{
	enum { PIECE = 1 << 24 }; /* drawn once, then copied */
	uint64_t some = count < PIECE ? count : PIECE, size = cptx_type_bits(type) / 8;
	void *host = malloc(some * size);
	uint64_t at = cptx_mem_alloc(dev, count * size, err);

	if (!host) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of host memory");
	} else {
		gemm_fill_normal(host, some, type, seed);
		cptx_mem_write(dev, at, host, some * size, err);
		for (uint64_t i = some; i < count; i += some)
			cptx_mem_copy(dev, at + i * size, at, size * (count - i < some ? count - i : some), err);
	}
	free(host);
	return at;
}
