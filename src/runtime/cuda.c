/* SPDX-License-Identifier: MIT */
/* GPUs: contexts, facts about the device, streams, events and memory. */
#include "runtime/cuda.h"

#include <cptx/retarget.h>

#include <stdio.h>
#include <stdlib.h>

/* CU_CALL makes one call of the driver, and its error; IN does so inside the device's context.  They use locals r and scope.
 */
#define CU_CALL(c, err, call, ...) (((r = (c)->drv.call) == CU_OK) || driver_fail(&(c)->drv, r, err, NOWHERE, __VA_ARGS__))
#define CU_CALL_IN(c, err, call, ...)                                                                                       \
	(cuda_enter((c), &scope, (err)) &&                                                                                      \
	 (r = (c)->drv.call, cuda_leave(&scope), r == CU_OK || driver_fail(&(c)->drv, r, err, NOWHERE, __VA_ARGS__)))

/* ---- contexts ---- */

bool cuda_enter(cuda *c, cuda_scope *scope, cptx_error *err)
{
	cu_context now = NULL;
	cu_result r;

	*scope = (cuda_scope){ c, false };
	c->drv.cuCtxGetCurrent(&now);
	if (now == c->ctx)
		return true;
	if (!now)
		return CU_CALL(c, err, cuCtxSetCurrent(c->ctx), "making the device's context current");
	scope->pushed = CU_CALL(c, err, cuCtxPushCurrent_v2(c->ctx), "making the device's context current");
	return scope->pushed;
}

void cuda_leave(const cuda_scope *scope)
{
	cu_context ours;

	if (scope->pushed)
		scope->c->drv.cuCtxPopCurrent_v2(&ours);
}

static void release_context(cuda *c)
{
	cu_context now = NULL;
	unsigned flags;
	int active = 1;

	if (!c->retained)
		return;
	c->drv.cuDevicePrimaryCtxRelease_v2(c->dev);
	/* nobody else holds the primary context: leave no dead context current */
	c->drv.cuDevicePrimaryCtxGetState(c->dev, &flags, &active);
	c->drv.cuCtxGetCurrent(&now);
	if (!active && now == c->ctx)
		c->drv.cuCtxSetCurrent(NULL);
}

static void close_cuda(cptx_device *dev)
{
	cuda *c = cuda_of(dev);

	release_context(c);
	driver_close(&c->drv);
	free(c);
}

static void *context_cuda(const cptx_device *dev) { return cuda_of(dev)->ctx; }

static void *symbol_cuda(const cptx_device *dev, const char *name) { return driver_symbol(&cuda_of(dev)->drv, name); }

static bool make_current(cptx_device *dev, cptx_error *err)
{
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL(c, err, cuCtxSetCurrent(c->ctx), "making the device's context current");
}

static bool synchronize(cptx_device *dev, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL_IN(c, err, cuCtxSynchronize(), "waiting for the device");
}

/* ---- streams and events ---- */

static bool stream_new(cptx_device *dev, void **handle, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_stream s = NULL;
	cu_result r;
	bool ok = CU_CALL_IN(c, err, cuStreamCreate(&s, 0), "creating a stream");

	*handle = s;
	return ok;
}

static bool stream_adopt(cptx_device *dev, void *handle, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_context of = NULL;
	cu_result r;
	bool ok = CU_CALL_IN(c, err, cuStreamGetCtx((cu_stream)handle, &of), "adopting a stream");

	if (ok && of != c->ctx)
		return error_set(err, CPTX_E_ARG, NOWHERE,
		                 "the stream belongs to another context than the device; adopt that context with cptx_device_adopt");
	return ok;
}

static void stream_destroy(cptx_device *dev, void *handle)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);

	if (cuda_enter(c, &scope, NULL))
		c->drv.cuStreamDestroy_v2((cu_stream)handle);
	cuda_leave(&scope);
}

static bool stream_synchronize(cptx_device *dev, void *handle, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL_IN(c, err, cuStreamSynchronize((cu_stream)handle), "waiting for a stream");
}

static bool stream_wait(cptx_device *dev, void *handle, void *event, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL_IN(c, err, cuStreamWaitEvent((cu_stream)handle, (cu_event)event, 0), "making a stream wait for an event");
}

static bool event_new(cptx_device *dev, void **handle, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_event e = NULL;
	cu_result r;
	bool ok = CU_CALL_IN(c, err, cuEventCreate(&e, 0), "creating an event");

	*handle = e;
	return ok;
}

static void event_destroy(cptx_device *dev, void *handle)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);

	if (cuda_enter(c, &scope, NULL))
		c->drv.cuEventDestroy_v2((cu_event)handle);
	cuda_leave(&scope);
}

static bool event_record(cptx_device *dev, void *handle, void *stream, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL_IN(c, err, cuEventRecord((cu_event)handle, (cu_stream)stream), "recording an event");
}

static bool event_synchronize(cptx_device *dev, void *handle, cptx_error *err)
{
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL(c, err, cuEventSynchronize((cu_event)handle), "waiting for an event");
}

static bool event_elapsed(cptx_device *dev, void *start, void *end, float *ms, cptx_error *err)
{
	cuda *c = cuda_of(dev);
	cu_result r;

	return CU_CALL(c, err, cuEventElapsedTime(ms, (cu_event)start, (cu_event)end), "the time between two events");
}

/* ---- memory ---- */

static uint64_t mem_alloc(cptx_device *dev, size_t size, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_ptr p = 0;

	if (!cuda_enter(c, &scope, err))
		return 0;
	cu_result r = c->drv.cuMemAlloc_v2(&p, size);
	if (r == CU_OUT_OF_MEMORY) {
		size_t unused = 0, total = 0;
		c->drv.cuMemGetInfo_v2(&unused, &total);
		driver_fail(&c->drv, r, err, NOWHERE, "allocating %zu bytes of device memory, of which %zu of %zu are free", size,
		            unused, total);
	} else if (r != CU_OK) {
		driver_fail(&c->drv, r, err, NOWHERE, "allocating %zu bytes of device memory", size);
	}
	cuda_leave(&scope);
	return r == CU_OK ? p : 0;
}

static void mem_free(cptx_device *dev, uint64_t p)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);

	if (cuda_enter(c, &scope, NULL))
		c->drv.cuMemFree_v2(p);
	cuda_leave(&scope);
}

static bool transfer_start(cuda *c, const transfer *t, cptx_error *err)
{
	unsigned long long dst = t->dst, src = t->src;
	cu_stream s = (cu_stream)t->stream;
	size_t n = t->n;
	cu_result r;

	switch (t->kind) {
	case TRANSFER_WRITE:
		return CU_CALL(c, err, cuMemcpyHtoDAsync_v2(dst, t->host_src, n, s), "writing %zu bytes to device memory 0x%llx", n,
		               dst);
	case TRANSFER_READ:
		return CU_CALL(c, err, cuMemcpyDtoHAsync_v2(t->host_dst, src, n, s), "reading %zu bytes of device memory 0x%llx", n,
		               src);
	case TRANSFER_COPY:
		return CU_CALL(c, err, cuMemcpyDtoDAsync_v2(dst, src, n, s),
		               "copying %zu bytes of device memory from 0x%llx to 0x%llx", n, src, dst);
	case TRANSFER_FILL8:
		return CU_CALL(c, err, cuMemsetD8Async(dst, (unsigned char)t->value, n, s),
		               "filling %zu bytes of device memory 0x%llx", n, dst);
	case TRANSFER_FILL32:
		return CU_CALL(c, err, cuMemsetD32Async(dst, t->value, n, s), "filling %zu words of device memory 0x%llx", n, dst);
	}
	return false;
}

static bool transfer_cuda(cptx_device *dev, const transfer *t, cptx_error *err)
{
	cuda_scope scope;
	cuda *c = cuda_of(dev);
	cu_result r;
	bool ok;

	if (!cuda_enter(c, &scope, err))
		return false;
	ok = transfer_start(c, t, err);
	if (ok && t->wait)
		ok = CU_CALL(c, err, cuStreamSynchronize((cu_stream)t->stream), "waiting for a transfer of device memory");
	cuda_leave(&scope);
	return ok;
}

/* ---- opening ---- */

static const device_ops cuda_ops = {
	.close = close_cuda,
	.context = context_cuda,
	.symbol = symbol_cuda,
	.make_current = make_current,
	.synchronize = synchronize,
	.stream_new = stream_new,
	.stream_adopt = stream_adopt,
	.stream_destroy = stream_destroy,
	.stream_synchronize = stream_synchronize,
	.stream_wait = stream_wait,
	.event_new = event_new,
	.event_destroy = event_destroy,
	.event_record = event_record,
	.event_synchronize = event_synchronize,
	.event_elapsed = event_elapsed,
	.alloc = mem_alloc,
	.free = mem_free,
	.transfer = transfer_cuda,
	.tensor_map = cuda_tensor_map,
	.load = cuda_load,
	.unload = cuda_unload,
	.global = cuda_global,
	.find = cuda_kernel,
	.resources = cuda_resources,
	.launch_prepare = cuda_launch_prepare,
	.launch_run = cuda_launch_run,
};

static uint32_t attribute(const cuda *c, unsigned attr)
{
	int v = 0;
	return c->drv.cuDeviceGetAttribute(&v, attr, c->dev) == CU_OK && v > 0 ? (uint32_t)v : 0;
}

static bool read_info(cuda *c, cptx_error *err)
{
	cptx_device_info *i = &c->base.info;
	size_t bytes = 0;
	int version = 0;
	cu_result r;

	if (!CU_CALL(c, err, cuDriverGetVersion(&version), "asking for the driver's version") ||
	    !CU_CALL(c, err, cuDeviceGetName(i->name, sizeof i->name, c->dev), "asking for the device's name") ||
	    !CU_CALL(c, err, cuDeviceTotalMem_v2(&bytes, c->dev), "asking for the size of the device's memory"))
		return false;
	c->base.ordinal = c->dev; /* the handle of cuDeviceGet is the ordinal */
	i->driver = (uint32_t)version;
	i->ptx = (uint16_t)cptx_driver_ptx((uint32_t)version);
	i->global_memory = bytes;
	i->compute_capability = (uint16_t)(attribute(c, CU_DEV_MAJOR) * 10 + attribute(c, CU_DEV_MINOR));
	i->target = cuda_pick_target(i->compute_capability, i->ptx);
	i->sms = attribute(c, CU_DEV_SMS);
	i->smem_per_sm = attribute(c, CU_DEV_SMEM_PER_SM);
	i->smem_per_cta = attribute(c, CU_DEV_SMEM_OPTIN);
	i->smem_default = attribute(c, CU_DEV_SMEM_PER_CTA);
	i->smem_per_cta = MAX(i->smem_per_cta, i->smem_default);
	i->regs_per_sm = attribute(c, CU_DEV_REGS_PER_SM);
	i->threads_per_sm = attribute(c, CU_DEV_THREADS_PER_SM);
	i->l2 = attribute(c, CU_DEV_L2);
	i->clock_khz = attribute(c, CU_DEV_CLOCK);
	i->memory_clock_khz = attribute(c, CU_DEV_MEMORY_CLOCK);
	i->memory_bus_bits = attribute(c, CU_DEV_BUS_WIDTH);
	i->clusters = attribute(c, CU_DEV_CLUSTERS) && c->drv.cuLaunchKernelEx;
	return true;
}

static cuda *cuda_start(cptx_error *err)
{
	cuda *c = NEW(cuda);

	if (!c) {
		no_memory(err, NOWHERE);
		return NULL;
	}
	c->base.ops = &cuda_ops;
	if (driver_open(&c->drv, err))
		return c;
	free(c);
	return NULL;
}

unsigned cuda_count(cptx_error *err)
{
	driver d;
	int n = 0;
	cu_result r;

	if (!driver_open(&d, err))
		return 0;
	r = d.cuDeviceGetCount(&n);
	if (r != CU_OK)
		driver_fail(&d, r, err, NOWHERE, "counting devices");
	driver_close(&d);
	return r == CU_OK && n > 0 ? (unsigned)n : 0;
}

static bool choose(cuda *c, unsigned n, cptx_error *err)
{
	cu_result r;
	int count = 0;

	if (!CU_CALL(c, err, cuDeviceGetCount(&count), "counting devices"))
		return false;
	if (count <= 0)
		return error_set(err, CPTX_E_NO_DEVICE, NOWHERE, "the CUDA driver has no device");
	if (n >= (unsigned)count)
		return error_set(err, CPTX_E_NO_DEVICE, NOWHERE, "there is no device \"cuda:%u\"; %s \"cuda:%d\"", n,
		                 count == 1 ? "the only one is" : "the last one is", count - 1);
	return CU_CALL(c, err, cuDeviceGet(&c->dev, (int)n), "choosing device %u", n);
}

cptx_device *cuda_open(unsigned n, cptx_error *err)
{
	cuda *c = cuda_start(err);
	cuda_scope scope;
	cu_result r;

	if (!c)
		return NULL;
	if (choose(c, n, err) && read_info(c, err)) {
		c->retained = CU_CALL(c, err, cuDevicePrimaryCtxRetain(&c->ctx, c->dev), "retaining the context of device %u", n);
		if (c->retained && cuda_enter(c, &scope, err)) {
			cuda_leave(&scope);
			return &c->base;
		}
	}
	close_cuda(&c->base);
	return NULL;
}

cptx_device *cuda_adopt(void *context, cptx_error *err)
{
	cuda *c = cuda_start(err);
	cuda_scope scope;
	cu_result r;
	bool ok;

	if (!c)
		return NULL;
	c->ctx = (cu_context)context;
	if (!context && CU_CALL(c, err, cuCtxGetCurrent(&c->ctx), "asking for the current context") && !c->ctx)
		error_set(err, CPTX_E_STATE, NOWHERE,
		          "the calling thread has no current CUDA context to adopt; give one, or use cptx_device_open");
	if (c->ctx && cuda_enter(c, &scope, err)) {
		ok = CU_CALL(c, err, cuCtxGetDevice(&c->dev), "asking for the device of the context") && read_info(c, err);
		cuda_leave(&scope);
		if (ok)
			return &c->base;
	}
	close_cuda(&c->base);
	return NULL;
}
