/* Runs a GEMM kernel on a device and compares every element with a reference; used by `cptx gemm --run` and the GPU tests.
 */
#ifndef CPTX_GEMM_CHECK_H
#define CPTX_GEMM_CHECK_H

#include "gemm_kind.h"

typedef struct gemm_report {
	uint64_t elements, wrong;
	double worst; /* largest error as a part of the tolerance */
	uint64_t wrong_row, wrong_column;
	double wrong_value, wrong_reference; /* of the first wrong element */
	double ms;                           /* median time of a launch; 0 if not asked for, or emulated */
	uint32_t grid;
	cptx_resources resources;
} gemm_report;

typedef struct gemm_problem {
	uint64_t m, n, k, seed;
	unsigned bursts; /* timed bursts; 0: none */
} gemm_problem;

/* ptx: what cptx_emit gave for the device.  False, with err, if something could not be run; wrong elements are in the
 * report. */
bool gemm_check(cptx_device *dev, cptx_module *module, const gemm_kind *kind, const gemm_problem *p, gemm_report *r,
                cptx_error *err);

/* Prepares the launch of a kernel of another kind on buffers A, B and D of the device; NULL with an error. */
typedef cptx_launch *(*gemm_launch_fn)(void *user, const cptx_program *program, const uint64_t buffer[3], gemm_report *r,
                                       cptx_error *err);
/* The same with that; the module's only kernel is it. */
bool gemm_check_with(cptx_device *dev, cptx_module *module, enum cptx_type in, enum cptx_type out, const gemm_problem *p,
                     gemm_launch_fn launch, void *user, gemm_report *r, cptx_error *err);

#endif
