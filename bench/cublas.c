#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>

/* From the cuBLAS and CUDA library documentation: data types, compute type, operations. */
enum { R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, OP_N = 0, OP_T = 1, GEMM_DEFAULT = -1 };

bool cublas_open(cublas *c)
{
	static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so" };
	void *lib = NULL;
	int (*create)(void **handle);

	for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
	*(void **)&create = dlsym(lib, "cublasCreate_v2");
	*(void **)&c->gemm = dlsym(lib, "cublasGemmEx");
	return create && c->gemm && create(&c->handle) == 0;
}

static int type_of(enum cptx_type t) { return t == CPTX_F32 ? R_32F : t == CPTX_F16 ? R_16F : R_16BF; }

bool cublas_run(const cublas *c, const cublas_problem *p, cptx_error *err)
{
	const float one = 1, zero = 0;

	/* its matrices are column-major: D^T = B^T * A^T */
	if (!c->gemm(c->handle, p->b_rows ? OP_N : OP_T, OP_N, p->n, p->m, p->k, &one, (void *)(uintptr_t)p->b, type_of(p->in),
	             p->b_rows ? p->n : p->k, (void *)(uintptr_t)p->a, type_of(p->in), p->k, &zero, (void *)(uintptr_t)p->d,
	             type_of(p->out), p->n, COMPUTE_32F, GEMM_DEFAULT))
		return true;
	err->code = CPTX_E_DRIVER;
	snprintf(err->text, sizeof err->text, "cublasGemmEx failed");
	return false;
}
