/* SPDX-License-Identifier: MIT */
/* Runs a GEMM kernel on a device and compares every element with a reference; used by `cptx gemm --run`, examples, tests and
 * benchmarks. */
#ifndef CPTX_TOOL_REFERENCE_GEMM_CHECK_H
#define CPTX_TOOL_REFERENCE_GEMM_CHECK_H

#include "reference/gemm_operand.h"

#include <cptx/gemm.h>

enum { GEMM_LIST = 3 };

typedef struct gemm_report {
	uint64_t elements, wrong;
	uint32_t matrices; /* of the batch, or of all problems of the list */
	double flop;       /* of a launch */
	double worst;      /* largest error as a part of the tolerance */
	uint32_t wrong_matrix;
	uint64_t wrong_row, wrong_column;
	double wrong_value, wrong_reference; /* of the first wrong element */
	double ms;                           /* median time of a launch; 0 if not asked for, or emulated */
	uint32_t grid;
	cptx_resources resources;
	char *timeline; /* as JSON, if the kernel has one; the caller frees it */
} gemm_report;

typedef struct gemm_problem {
	uint64_t m, n, k, seed;
	uint32_t batch;    /* matrices behind one another, or experts, whose rows are drawn; 0: 1 */
	uint32_t ctas;     /* as in cptx_gemm_problem */
	float alpha, beta; /* where the subject has them */
	unsigned bursts;   /* timed bursts; 0: none */
	cptx_load_opt load;
} gemm_problem;

/* The matrices of a run on the device: A[M][K] or A[K][M], B[N][K] or B[K][N], D[M][N]. */
typedef struct gemm_matrices {
	uint64_t a, b, d;
	uint64_t scale_a, scale_b, c, bias, counts, zero_b; /* 0: none */
	uint64_t gather, scatter, weights;                  /* of the rows of experts */
	uint64_t scale_d, meta;
} gemm_matrices;

/* A kernel to be checked: its types, and how it is launched. */
typedef struct gemm_subject {
	enum cptx_type in, in_b;        /* of A and B; in_b 0: as in */
	enum cptx_type out;             /* f32, bf16, f16, or of integers s32 */
	enum cptx_type scale;           /* of the factors of A and B, with vec */
	uint32_t vec;                   /* elements along K that share a factor; 0: no factors */
	bool a_across;                  /* A is K x M, row-major; else M x K */
	bool b_across;                  /* B is K x N, row-major; else N x K */
	bool alpha, beta, bias;         /* D = alpha * A * B + beta * C + bias; C is as D, the bias N f32 */
	enum cptx_gemm_experts experts; /* of A and D: a row is an expert's, whose matrix is one of B */
	bool sparse;                    /* A is compressed: gemm_operand */
	bool gather, scatter;           /* these rows come from rows of A, and are added to rows of D, by an index */
	bool swiglu;                    /* D has half of the columns: cptx_gemm_opt.swiglu */
	bool rows_of_b;                 /* f32 factors of B are of 1 x 128, too */
	bool quantized;                 /* D has f32 factors for 1 x 128 elements */
	bool weights, zeros;            /* B has few bits, and .scale for .group elements along K: gemm_operand */
	uint32_t group;
	bool small;    /* operands are whole numbers from -2 to 2 */
	uint32_t list; /* problems of one launch, at most GEMM_LIST, of the same batch; 0: 1 */
	/* The launch of the loaded program, which the caller destroys; fills in the report's grid and resources.  p, at: of each
	 * problem. */
	cptx_launch *(*launch)(const struct gemm_subject *s, cptx_device *dev, const cptx_program *program,
	                       const gemm_problem *p, const gemm_matrices *at, gemm_report *r, cptx_error *err);
	void *user; /* for launch */
} gemm_subject;

/* p: s->list problems.  Of the GPU's result every element is compared too: the reference is a kernel
 * there. */
bool gemm_check_subject(cptx_device *dev, cptx_module *module, const gemm_subject *s, const gemm_problem *p, gemm_report *r,
                        cptx_error *err);
/* "all 64 elements right; ...", "3 of 64 elements are wrong; ..." */
void gemm_report_text(const gemm_report *r, char *text, size_t size);
/* The timeline at an address of the device, as JSON, which the caller frees. */
bool gemm_read_timeline(cptx_device *dev, const cptx_timeline_layout *l, uint64_t from, char **json, cptx_error *err);

/* Runs a kernel of the generators and compares its results; one for lists gets three problems: p, one of half as many rows,
 * and one of 16 rows.  False, with err, if something could not be run; wrong elements are in the report. */
bool gemm_check(cptx_device *dev, cptx_module *module, const cptx_gemm_opt *o, const gemm_problem *p, gemm_report *r,
                cptx_error *err);

#endif
