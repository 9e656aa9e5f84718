/* SPDX-License-Identifier: MIT */
/* Runs a row kernel on a device, compares every element with the host's result, and times it. */
#ifndef EXAMPLES_ROW_RUN_H
#define EXAMPLES_ROW_RUN_H

#include <cptx/device.h>

enum row_kernel { ROW_RMS_NORM, ROW_SOFTMAX, ROW_SWIGLU, ROW_LAYER_NORM /* bf16; the others have f32 */ };

typedef struct row_case {
	enum row_kernel kernel;
	uint32_t rows, n; /* n elements in a row, a multiple of 4 (ROW_LAYER_NORM: of 8) */
	uint32_t threads, unroll;
	unsigned bursts; /* timed bursts; 0: none */
} row_case;

typedef struct row_report {
	uint64_t elements, wrong;
	double worst;    /* largest error divided by the tolerance */
	double ms, gbps; /* ms: median; gbps: of the bytes, each read once and written once */
	cptx_resources resources;
} row_report;

const char *row_name(enum row_kernel kernel);
bool row_check(cptx_device *dev, const row_case *c, row_report *r, cptx_error *err);
/*
 * The main function of the row kernels' programs: checks and times the case on the GPU; on an emulator
 * (CPTX_DEVICE=emu:sm_90a) checks a few rows; without either, prints the PTX.
 */
int row_main(const row_case *gpu_case);

#endif
