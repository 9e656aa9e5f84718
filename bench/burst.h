/* SPDX-License-Identifier: MIT */
/* Bursts of launches, timed on the device. */
#ifndef BENCH_BURST_H
#define BENCH_BURST_H

#include <cptx/device.h>

typedef struct burst {
	void (*run)(void *user, cptx_error *err); /* one launch on the default stream */
	void *user;
	int runs;  /* timed, behind two that are not */
	long idle; /* ns in front, which keep the board out of its power limit */
} burst;

/* Milliseconds of one run. */
double burst_time(cptx_device *dev, const burst *b, cptx_error *err);
/* For qsort of doubles. */
int burst_order(const void *a, const void *b);
/* Normal random numbers of 8 or 16 bits in new memory of the device. */
uint64_t burst_random(cptx_device *dev, uint64_t count, enum cptx_type type, uint64_t seed, cptx_error *err);

#endif
