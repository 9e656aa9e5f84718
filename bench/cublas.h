/* cuBLAS as a peer, found at run time. */
#ifndef BENCH_CUBLAS_H
#define BENCH_CUBLAS_H

#include <cptx/cptx.h>

typedef struct cublas {
	void *handle;
	int (*gemm)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *A, int atype,
	            int lda, const void *B, int btype, int ldb, const void *beta, void *C, int ctype, int ldc, int compute,
	            int algo);
} cublas;

/* False: no library.  The device's context must be current. */
bool cublas_open(cublas *c);
/* D[M][N] = A[M][K] * B, row-major, B being K x N (b_rows) or N x K; on the default stream, cuBLAS' default algorithm. */
typedef struct cublas_problem {
	uint64_t a, b, d;
	int m, n, k;
	enum cptx_type in, out; /* bf16 or f16; out f32 too */
	bool b_rows;
} cublas_problem;
bool cublas_run(const cublas *c, const cublas_problem *p, cptx_error *err);

#endif
