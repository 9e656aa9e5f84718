/* SPDX-License-Identifier: MIT */
/* Runs a kernel of the ladder on a device, compares every element with a reference, and times it. */
#ifndef EXAMPLES_HGEMM_RUN_H
#define EXAMPLES_HGEMM_RUN_H

#include "reference/gemm_check.h"
#include "hgemm.h"

typedef struct hgemm_case {
	enum hgemm_rung rung;
	hgemm_opt o;
} hgemm_case;

/* Prepares a launch of a loaded kernel for matrices on the device; r gets grid and resources. */
cptx_launch *hgemm_launch(const hgemm_case *c, cptx_device *dev, const cptx_program *program, const gemm_problem *p,
                          const gemm_matrices *at, gemm_report *r, cptx_error *err);
/* Returns false, with err, if something could not be run; wrong elements are in the report. */
bool hgemm_run(cptx_device *dev, const hgemm_case *c, const gemm_problem *p, gemm_report *r, cptx_error *err);
/* The main function of the ladder's programs: see --help. */
int hgemm_main(enum hgemm_rung rung, int argc, char **argv);

#endif
