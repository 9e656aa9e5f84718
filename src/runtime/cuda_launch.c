/* SPDX-License-Identifier: MIT */
/* Launches on a GPU. */
#include "runtime/cuda.h"

#include <stdlib.h>

enum { PORTABLE_CLUSTER = 8 };

/* The arguments of cuLaunchKernelEx, for launches with attributes. */
typedef struct extended_launch {
	cu_launch_config config;
	cu_launch_attr attr[3];
} extended_launch;

/* ---- finding a kernel ---- */

static uint32_t attribute(const cuda *c, const kernel *k, unsigned attr)
{
	int v = 0;
	return c->drv.cuFuncGetAttribute(&v, attr, (cu_function)k->fn) == CU_OK && v > 0 ? (uint32_t)v : 0;
}

/* Asks the driver for the number and sizes of the parameters of a kernel that was loaded as text or binary. */
static bool ask_params(const cuda *c, kernel *k, cptx_site at, cptx_error *err)
{
	size_t offset, size, n = 0;
	cu_result r;

	if (!c->drv.cuFuncGetParamInfo)
		return true;
	while ((r = c->drv.cuFuncGetParamInfo((cu_function)k->fn, n, &offset, &size)) == CU_OK)
		n++;
	if (r != CU_INVALID_VALUE) /* CU_INVALID_VALUE: behind the last parameter */
		return driver_fail(&c->drv, r, err, at, "asking for the parameters of kernel %s", k->info.name);
	k->param_size = NEW_UNSET(uint32_t, n + 1);
	if (!k->param_size)
		return no_memory(err, at);
	k->info.nparams = n;
	k->sized = true;
	for (size_t i = 0; i < n; i++) {
		c->drv.cuFuncGetParamInfo((cu_function)k->fn, i, &offset, &size);
		k->param_size[i] = (uint32_t)size;
	}
	return true;
}

bool cuda_kernel(const cptx_program *p, kernel *k, cptx_site at, cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	cu_function f = NULL;

	if (!cuda_enter(c, &scope, err))
		return false;
	cu_result r = c->drv.cuModuleGetFunction(&f, (cu_module)p->handle, k->info.name);
	bool ok = r == CU_OK;
	if (ok) {
		k->fn = f;
		k->max_threads = attribute(c, k, CU_FN_MAX_THREADS);
		k->static_smem = attribute(c, k, CU_FN_STATIC_SMEM);
		k->regs = attribute(c, k, CU_FN_REGS);
		ok = k->info.params || ask_params(c, k, at, err);
	} else if (r == CU_NOT_FOUND) {
		error_set(err, CPTX_E_ARG, at, "the program has no kernel \"%s\"", k->info.name);
	} else {
		driver_fail(&c->drv, r, err, at, "looking for kernel %s", k->info.name);
	}
	cuda_leave(&scope);
	return ok;
}

/* ---- preparing ---- */

static bool set_attribute(const cuda *c, const kernel *k, unsigned attr, int v, const char *what, cptx_site at,
                          cptx_error *err)
{
	cu_result r = c->drv.cuFuncSetAttribute((cu_function)k->fn, attr, v);
	return r == CU_OK || driver_fail(&c->drv, r, err, at, "kernel %s: allowing %s", k->info.name, what);
}

/*
 * Above the default limit a function must be allowed its shared memory.  It is always allowed the most: the limit belongs to
 * the function, which other launches, in other threads, share.
 */
static bool allow_smem(const cuda *c, const kernel *k, uint32_t dyn_smem, cptx_site at, cptx_error *err)
{
	const cptx_device_info *dev = &c->base.info;

	if (dyn_smem + k->static_smem <= dev->smem_default)
		return true;
	return set_attribute(c, k, CU_FN_MAX_DYN_SMEM, (int)(dev->smem_per_cta - k->static_smem), "dynamic shared memory", at,
	                     err);
}

static bool prepare_extended(const cuda *c, cptx_launch *l, cptx_site at, cptx_error *err)
{
	const uint32_t *size = l->shape.cluster;
	extended_launch *x = NEW(extended_launch);

	l->extra = x;
	if (!x)
		return no_memory(err, at);
	if (!c->drv.cuLaunchKernelEx)
		return error_set(err, CPTX_E_TARGET, at, "kernel %s: cooperative launches need a driver of CUDA 11.8 or later",
		                 l->k.info.name);
	cu_launch_attr *next = x->attr;
	if (size[0]) {
		next->id = CU_LAUNCH_CLUSTER;
		next->value.cluster.x = size[0];
		next->value.cluster.y = size[1];
		next++->value.cluster.z = size[2];
	}
	if (l->overlap) {
		next->id = CU_LAUNCH_OVERLAP;
		next++->value.overlap = 1;
	}
	if (l->shape.cooperative) {
		next->id = CU_LAUNCH_COOPERATIVE;
		next++->value.cooperative = 1;
	}
	memcpy(x->config.block, l->shape.block, sizeof l->shape.block);
	x->config.smem = l->shape.dyn_smem;
	x->config.attrs = x->attr;
	x->config.nattrs = (unsigned)(next - x->attr);
	return size[0] * size[1] * size[2] <= PORTABLE_CLUSTER ||
	       set_attribute(c, &l->k, CU_FN_BIG_CLUSTERS, 1, "a cluster of more than 8 CTAs", at, err);
}

bool cuda_launch_prepare(cptx_launch *l, cptx_site at, cptx_error *err)
{
	cuda *c = cuda_of(l->program->dev);
	cuda_scope scope;

	if (!cuda_enter(c, &scope, err))
		return false;
	bool ok = allow_smem(c, &l->k, l->shape.dyn_smem, at, err) &&
	          ((!l->shape.cluster[0] && !l->overlap && !l->shape.cooperative) || prepare_extended(c, l, at, err));
	cuda_leave(&scope);
	return ok;
}

/* ---- running ---- */

static cu_result launch(const cuda *c, cptx_launch *l, cu_stream s)
{
	const uint32_t *g = l->shape.grid, *b = l->shape.block;
	extended_launch *x = (extended_launch *)l->extra;

	if (!x)
		return c->drv.cuLaunchKernel((cu_function)l->k.fn, g[0], g[1], g[2], b[0], b[1], b[2], l->shape.dyn_smem, s,
		                             l->params, NULL);
	memcpy(x->config.grid, g, sizeof l->shape.grid);
	x->config.stream = s;
	return c->drv.cuLaunchKernelEx(&x->config, (cu_function)l->k.fn, l->params, NULL);
}

static bool launch_failed(const cuda *c, const cptx_launch *l, cu_result r, cptx_error *err)
{
	const uint32_t *g = l->shape.grid, *b = l->shape.block;
	return driver_fail(&c->drv, r, err, l->at,
	                   "launching kernel %s, grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic "
	                   "shared memory",
	                   l->k.info.name, g[0], g[1], g[2], b[0], b[1], b[2], l->shape.dyn_smem);
}

bool cuda_launch_run(cptx_launch *l, void *stream, cptx_error *err)
{
	cuda *c = cuda_of(l->program->dev);
	cu_context now = NULL;
	cuda_scope scope = { c, false };
	cu_result r;

	c->drv.cuCtxGetCurrent(&now);
	if (now == c->ctx) {
		r = launch(c, l, (cu_stream)stream);
	} else {
		if (!cuda_enter(c, &scope, err))
			return false;
		r = launch(c, l, (cu_stream)stream);
		cuda_leave(&scope);
	}
	return r == CU_OK || launch_failed(c, l, r, err);
}

bool cuda_resources(const cptx_program *p, const kernel *k, uint32_t threads, uint32_t dyn_smem, cptx_resources *out,
                    cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	int ctas = 0;
	bool ok = true;

	if (!cuda_enter(c, &scope, err))
		return false;
	*out = (cptx_resources){
		.regs = attribute(c, k, CU_FN_REGS),
		.local_bytes = attribute(c, k, CU_FN_LOCAL),
		.static_smem = attribute(c, k, CU_FN_STATIC_SMEM),
		.const_bytes = attribute(c, k, CU_FN_CONST),
		.max_threads = attribute(c, k, CU_FN_MAX_THREADS),
		.binary_version = attribute(c, k, CU_FN_BINARY),
	};
	bool fits = k->static_smem <= c->base.info.smem_per_cta && dyn_smem <= c->base.info.smem_per_cta - k->static_smem;
	if (threads && fits && allow_smem(c, k, dyn_smem, NOWHERE, err)) {
		cu_result r = c->drv.cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, (cu_function)k->fn, (int)threads, dyn_smem);
		ok = r == CU_OK || driver_fail(&c->drv, r, err, NOWHERE, "the occupancy of kernel %s", k->info.name);
		out->ctas_per_sm = ok && ctas > 0 ? (uint32_t)ctas : 0;
	}
	cuda_leave(&scope);
	return ok;
}
