/* SPDX-License-Identifier: MIT */
/* The CUDA kernels that the ladder follows, as PTX that bench/hgemm_twins.sh makes. */
#ifndef BENCH_TWINS_H
#define BENCH_TWINS_H

#include <cptx/device.h>

enum { TWINS = 4 };

typedef struct twins {
	cptx_program *program;
	cptx_launch *launch[TWINS];
} twins;

/* "bcf_dbf_rw", "k_stages", "tma_r_64", "tma_r_32"; the rung of the ladder that follows it. */
const char *twin_name(unsigned i);
unsigned twin_rung(unsigned i);
/* For C = A * B of n x n (a multiple of 128) bf16, row-major. */
bool twins_prepare(twins *t, cptx_device *dev, const char *path, const cptx_load_opt *opt, uint32_t n, uint64_t a,
                   uint64_t b, uint64_t c, cptx_error *err);
void twins_destroy(twins *t);

#endif
