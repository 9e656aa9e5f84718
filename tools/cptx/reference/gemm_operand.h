/* SPDX-License-Identifier: MIT */
/* A random matrix as a GEMM takes it, with its scale factors, and the numbers that it means. */
#ifndef CPTX_TOOL_REFERENCE_GEMM_OPERAND_H
#define CPTX_TOOL_REFERENCE_GEMM_OPERAND_H

#include <cptx/device.h>

typedef struct gemm_operand {
	enum cptx_type type, scale; /* of the elements, and of their factors (CPTX_TYPE_NONE: none) */
	uint32_t vec;               /* elements along K that share a factor */
	uint32_t block;             /* f32 factors: rows that share one; 1: a row of them for each `vec` along K */
	bool together;              /* these have the rows of all matrices */
	uint64_t rows, k;
	bool across;  /* K rows of `rows` elements; else `rows` rows of K */
	bool small;   /* of whole numbers from -2 to 2: where 13 bits are kept their sums are exact, up to 8192, which
	                 those of a random million are far from */
	bool weights; /* of few bits, packed by cptx_gemm_pack_weights; factors as a B of few bits has them: .scale, for
	                 .group elements along K (0: all), with .zeros */
	bool zeros;
	uint32_t group;
	bool sparse;         /* two of four neighbours along K are 0, and it is packed by cptx_gemm_sparse_pack */
	uint64_t meta_at;    /* its metadata, device address */
	uint64_t zeros_at;   /* device address */
	uint32_t count;      /* such matrices, behind one another */
	float *value;        /* element times factor, exact; as the elements lie */
	uint64_t at, scales; /* device addresses, of the packed elements and of the packed factors */
} gemm_operand;

/* Fills in value, at and scales.  False: err says why. */
bool gemm_operand_make(gemm_operand *o, cptx_device *dev, uint64_t seed, cptx_error *err);
/* The first along K in a row of matrix z; to the next: elements from one along K to the next. */
float *gemm_operand_row(const gemm_operand *o, uint64_t z, uint64_t row, uint64_t *to_next);
void gemm_operand_free(gemm_operand *o, cptx_device *dev);

/* malloc that says what was wrong, and does nothing after an error. */
void *gemm_host(size_t size, cptx_error *err);
/* Random normal numbers in a type of 8 or 16 bits, as the checks use them. */
void gemm_fill_normal(void *to, uint64_t n, enum cptx_type type, uint64_t seed);

#endif
