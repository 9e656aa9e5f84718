/* Runs a GEMM kernel on a device and compares every element with a reference; used by `cptx gemm --run`, examples, tests and
 * benchmarks. */
#ifndef CPTX_GEMM_CHECK_H
#define CPTX_GEMM_CHECK_H

#include "gemm_kind.h"
#include "gemm_operand.h"

typedef struct gemm_report {
	uint64_t elements, wrong;
	double worst; /* largest error as a part of the tolerance */
	uint64_t wrong_row, wrong_column;
	double wrong_value, wrong_reference; /* of the first wrong element */
	double ms;                           /* median time of a launch; 0 if not asked for, or emulated */
	uint32_t grid;
	cptx_resources resources;
	char *timeline; /* as JSON, if the kernel has one; the caller frees it */
} gemm_report;

typedef struct gemm_problem {
	uint64_t m, n, k, seed;
	unsigned bursts; /* timed bursts; 0: none */
	cptx_load_opt load;
} gemm_problem;

/* The matrices of a run on the device: A[M][K], B[N][K] or B[K][N], D[M][N]. */
typedef struct gemm_matrices {
	uint64_t a, b, d;
	uint64_t scale_a, scale_b; /* 0: none */
} gemm_matrices;

/* A kernel to be checked: its types, and how it is launched. */
typedef struct gemm_subject {
	enum cptx_type in, in_b; /* of A and B; in_b 0: as in */
	enum cptx_type out;      /* f32, bf16, f16, or of integers s32 */
	enum cptx_type scale;    /* of the factors of A and B, with vec */
	uint32_t vec;            /* elements along K that share a factor; 0: no factors */
	bool b_rows;             /* B is K x N, row-major; else N x K */
	/* The launch of the loaded program, which the caller destroys; fills in the report's grid and resources. */
	cptx_launch *(*launch)(const struct gemm_subject *s, cptx_device *dev, const cptx_program *program,
	                       const gemm_problem *p, const gemm_matrices *at, gemm_report *r, cptx_error *err);
	void *user; /* for launch */
} gemm_subject;

/* K is a multiple of 4.  Of the GPU's result every element is compared too: the reference is a kernel there. */
bool gemm_check_subject(cptx_device *dev, cptx_module *module, const gemm_subject *s, const gemm_problem *p, gemm_report *r,
                        cptx_error *err);
/* "3 of 64 elements are wrong; ..." */
void gemm_wrong_text(const gemm_report *r, char *text, size_t size);
/* The timeline at an address of the device, as JSON, which the caller frees. */
bool gemm_read_timeline(cptx_device *dev, const cptx_timeline_layout *l, uint64_t from, char **json, cptx_error *err);

/* The same for a kernel of the library's generators.  ptx: what cptx_emit gave for the device.  False, with err, if
 * something could not be run; wrong elements are in the report. */
bool gemm_check(cptx_device *dev, cptx_module *module, const gemm_kind *kind, const gemm_problem *p, gemm_report *r,
                cptx_error *err);

#endif
