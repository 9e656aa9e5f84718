/* SPDX-License-Identifier: MIT */
#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* From the cuBLAS and CUDA library documentation: data types, compute type, operations. */
enum {
	R_32F = 0,
	R_16F = 2,
	R_16BF = 14,
	R_8F_E4M3 = 28,
	R_8F_E5M2 = 29,
	COMPUTE_32F = 68,
	OP_N = 0,
	OP_T = 1,
	GEMM_DEFAULT = -1
};
typedef int (*create_fn)(void **handle);

static void *library(const char *name)
{
	static const char *const ends[] = { "13", "12", "11" };
	char file[40];
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof ends / sizeof *ends; i++) {
		snprintf(file, sizeof file, "%s.so.%s", name, ends[i]);
		lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	}
	return lib;
}

bool cublas_open(cublas *p)
{
	void *lib = library("libcublas");

	if (!lib)
		return false;
	create_fn create;
	*(void **)&create = dlsym(lib, "cublasCreate_v2");
	*(void **)&p->gemm = dlsym(lib, "cublasGemmEx");
	return create && p->gemm && create(&p->handle) == 0;
}

static int type_of(enum cptx_type t)
{
	return t == CPTX_F32 ? R_32F : t == CPTX_F16 ? R_16F : t == CPTX_BF16 ? R_16BF : t == CPTX_E4M3 ? R_8F_E4M3 : R_8F_E5M2;
}

static void failed(cptx_error *err, const char *what)
{
	err->code = CPTX_E_DRIVER;
	snprintf(err->text, sizeof err->text, "%s failed", what);
}

/* cuBLAS counts by columns: what it computes is D^T = B^T * A^T. */
void cublas_run(const cublas *p, const cublas_problem *q, cptx_error *err)
{
	const float one = 1, zero = 0;
	int in = type_of(q->in);

	if (p->gemm(p->handle, q->b_n_major ? OP_N : OP_T, q->a_m_major ? OP_T : OP_N, q->n, q->m, q->k, &one,
	            (void *)(uintptr_t)q->b, in, q->b_n_major ? q->n : q->k, (void *)(uintptr_t)q->a, in,
	            q->a_m_major ? q->m : q->k, &zero, (void *)(uintptr_t)q->d, type_of(q->out), q->n, COMPUTE_32F,
	            GEMM_DEFAULT))
		failed(err, "cublasGemmEx");
}

/* ---- cublasLt, by the documentation of its enums ---- */

enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_FAST_ACCUM = 25, PREF_MAX_WORKSPACE = 1, WORKSPACE = 64 << 20 };

typedef struct heuristic { /* cublasLtMatmulHeuristicResult_t */
	uint64_t algo[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} heuristic;

typedef int (*matmul_fn)(void *handle, void *desc, const void *alpha, const void *A, void *a, const void *B, void *b,
                         const void *beta, const void *C, void *c, void *D, void *d, const void *algo, void *workspace,
                         size_t bytes, void *stream);

struct cublaslt {
	cptx_device *dev;
	void *handle, *desc, *a, *b, *d;
	uint64_t workspace;
	heuristic best;
	matmul_fn matmul;
};

typedef struct lt_calls {
	int (*create)(void **);
	int (*desc)(void **, int compute, int scale);
	int (*desc_set)(void *, int attribute, const void *, size_t);
	int (*layout)(void **, int type, uint64_t rows, uint64_t cols, int64_t ld);
	int (*preference)(void **);
	int (*preference_set)(void *, int attribute, const void *, size_t);
	int (*choose)(void *, void *, void *, void *, void *, void *, void *, int want, heuristic *, int *got);
	matmul_fn matmul;
} lt_calls;

static bool find_calls(lt_calls *c)
{
	void *lib = library("libcublasLt");
	const struct {
		const char *name;
		void *to;
	} calls[] = { { "cublasLtCreate", &c->create },
		          { "cublasLtMatmulDescCreate", &c->desc },
		          { "cublasLtMatmulDescSetAttribute", &c->desc_set },
		          { "cublasLtMatrixLayoutCreate", &c->layout },
		          { "cublasLtMatmulPreferenceCreate", &c->preference },
		          { "cublasLtMatmulPreferenceSetAttribute", &c->preference_set },
		          { "cublasLtMatmulAlgoGetHeuristic", &c->choose },
		          { "cublasLtMatmul", &c->matmul } };

	for (size_t i = 0; lib && i < sizeof calls / sizeof *calls; i++)
		if (!(*(void **)calls[i].to = dlsym(lib, calls[i].name)))
			lib = NULL;
	return lib != NULL;
}

/* As cublas_run, what it calls A is our B. */
static bool describe(cublaslt *p, const lt_calls *c, const cublas_problem *q)
{
	int8_t fast = cptx_type_bits(q->in) == 8;
	int transa = OP_T, transb = OP_N, in = type_of(q->in), got = 0;
	uint64_t bytes = WORKSPACE, m = (uint64_t)q->m, n = (uint64_t)q->n, k = (uint64_t)q->k;
	void *preference;

	return !c->create(&p->handle) && !c->desc(&p->desc, COMPUTE_32F, R_32F) &&
	       !c->desc_set(p->desc, DESC_TRANSA, &transa, sizeof transa) &&
	       !c->desc_set(p->desc, DESC_TRANSB, &transb, sizeof transb) &&
	       (!fast || !c->desc_set(p->desc, DESC_FAST_ACCUM, &fast, sizeof fast)) && !c->layout(&p->a, in, k, n, q->k) &&
	       !c->layout(&p->b, in, k, m, q->k) && !c->layout(&p->d, type_of(q->out), n, m, q->n) &&
	       !c->preference(&preference) && !c->preference_set(preference, PREF_MAX_WORKSPACE, &bytes, sizeof bytes) &&
	       !c->choose(p->handle, p->desc, p->a, p->b, p->d, p->d, preference, 1, &p->best, &got) && got == 1;
}

cublaslt *cublaslt_new(cptx_device *dev, const cublas_problem *q, cptx_error *err)
{
	lt_calls c;
	cublaslt *p = find_calls(&c) ? calloc(1, sizeof *p) : NULL;

	if (!p)
		return NULL;
	p->dev = dev, p->matmul = c.matmul;
	p->workspace = cptx_mem_alloc(dev, WORKSPACE, err);
	if (!describe(p, &c, q)) {
		failed(err, "cublasLtMatmulAlgoGetHeuristic, or what leads to it,");
		cublaslt_destroy(p);
		return NULL;
	}
	return p;
}

void cublaslt_run(const cublaslt *p, const cublas_problem *q, cptx_error *err)
{
	const float one = 1, zero = 0;
	void *d = (void *)(uintptr_t)q->d;

	if (p->matmul(p->handle, p->desc, &one, (void *)(uintptr_t)q->b, p->a, (void *)(uintptr_t)q->a, p->b, &zero, d, p->d, d,
	              p->d, p->best.algo, (void *)(uintptr_t)p->workspace, WORKSPACE, NULL))
		failed(err, "cublasLtMatmul");
}

/* The handle and the descriptions stay until the process ends. */
void cublaslt_destroy(cublaslt *p)
{
	if (p)
		cptx_mem_free(p->dev, p->workspace);
	free(p);
}
