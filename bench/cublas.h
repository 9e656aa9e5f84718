/* SPDX-License-Identifier: MIT */
/* cuBLAS and cuBLASLt as peers, found at run time. */
#ifndef BENCH_CUBLAS_H
#define BENCH_CUBLAS_H

#include <cptx/cptx.h>
#include <cptx/device.h>

typedef int (*cublas_gemm_fn)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *A,
                              int atype, int lda, const void *B, int btype, int ldb, const void *beta, void *C, int ctype,
                              int ldc, int compute, int algo);

typedef struct cublas {
	void *handle;
	cublas_gemm_fn gemm;
} cublas;

/* D (M x N, rows of N) = A * B; A is M rows of K, or with a_m_major K rows of M; B is N rows of K, or with b_n_major K rows
 * of N.  Device addresses. */
typedef struct cublas_problem {
	int m, n, k;
	enum cptx_type in, out; /* bf16 or f16, cublaslt: e4m3; f32, bf16 or f16 */
	bool a_m_major, b_n_major;
	uint64_t a, b, d;
} cublas_problem;

bool cublas_open(cublas *p);
/* cublasGemmEx with its default algorithm, on the default stream. */
void cublas_run(const cublas *p, const cublas_problem *q, cptx_error *err);

/* A cublasLtMatmul: the first algorithm of its heuristic, with fast accumulation (that of wgmma, without sums aside). */
typedef struct cublaslt cublaslt;
/* For the sizes and types of a problem, rows of K.  NULL: no such library, or err says what failed. */
cublaslt *cublaslt_new(cptx_device *dev, const cublas_problem *q, cptx_error *err);
void cublaslt_run(const cublaslt *p, const cublas_problem *q, cptx_error *err);
void cublaslt_destroy(cublaslt *p);

#endif
