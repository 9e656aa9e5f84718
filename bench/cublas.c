#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>

/* From the cuBLAS and CUDA library documentation: data types, compute type, operations. */
enum { R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, OP_N = 0, OP_T = 1, GEMM_DEFAULT = -1 };
typedef int (*create_fn)(void **handle);

bool cublas_open(cublas *p)
{
	static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so" };
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
	create_fn create;
	*(void **)&create = dlsym(lib, "cublasCreate_v2");
	*(void **)&p->gemm = dlsym(lib, "cublasGemmEx");
	return create && p->gemm && create(&p->handle) == 0;
}

static int type_of(enum cptx_type t) { return t == CPTX_F32 ? R_32F : t == CPTX_F16 ? R_16F : R_16BF; }

/* cuBLAS counts by columns: what it computes is D^T = B^T * A^T. */
void cublas_run(const cublas *p, const cublas_problem *q, cptx_error *err)
{
	const float one = 1, zero = 0;
	int in = type_of(q->in);

	if (p->gemm(p->handle, q->b_n_major ? OP_N : OP_T, q->a_m_major ? OP_T : OP_N, q->n, q->m, q->k, &one,
	            (void *)(uintptr_t)q->b, in, q->b_n_major ? q->n : q->k, (void *)(uintptr_t)q->a, in,
	            q->a_m_major ? q->m : q->k, &zero, (void *)(uintptr_t)q->d, type_of(q->out), q->n, COMPUTE_32F,
	            GEMM_DEFAULT)) {
		err->code = CPTX_E_DRIVER;
		snprintf(err->text, sizeof err->text, "cublasGemmEx failed");
	}
}
