/* SPDX-License-Identifier: MIT */
/* A folder for a test of the tuning database, and records to put there. */
#ifndef CPTX_TEST_TUNE_STORE_H
#define CPTX_TEST_TUNE_STORE_H

#include "../cache/folder.h"

#include <cptx/tune.h>

/* The problem number i, which is M x 256 x 64 of a device. */
static inline cptx_tune_key a_key(uint64_t m)
{
	return (cptx_tune_key){ .generator = "gemm",
		                    .version = 1,
		                    .problem = "mma=wgmma a=bf16 b=bf16 out=f32",
		                    .dims = { m, 256, 64, 1 },
		                    .device = "A device",
		                    .sms = 132,
		                    .clock_mhz = 1980,
		                    .power_w = 700,
		                    .driver = 13000,
		                    .compiler = "driver" };
}

/* Adds a candidate's time; false, with an error, if it cannot be recorded. */
static inline bool put(cptx_tune *db, const cptx_tune_key *key, const char *candidate, double us, cptx_error *err)
{
	return cptx_tune_add(
		db, &(cptx_tune_record){ .key = key, .candidate = candidate, .unit = "us", .samples = &us, .nsamples = 1 }, err);
}

static inline cptx_tune *open_place(cptx_error *err)
{
	return cptx_tune_open(&(cptx_tune_opt){ .path = place, .shipped = "" }, err);
}

static inline bool count_record(void *user, const cptx_tune_record *r)
{
	(void)r;
	++*(uint64_t *)user;
	return true;
}

/* Records that the database has; *damaged lines. */
static inline uint64_t count_records(cptx_tune *db, uint64_t *damaged)
{
	cptx_error err = { 0 };
	uint64_t n = 0;

	ck_assert(cptx_tune_each(db, count_record, &n, damaged, &err));
	return n;
}

#endif
