/* SPDX-License-Identifier: MIT */
/*
 * A CUDA driver that has no GPU: "device memory" is the host's, streams are done at once, launches are written down.  Built
 * as a shared module; with FAKE_OLD without the calls that old drivers lack.
 */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>

#define DECLARE(name, args) cu_result name args;
#define NOTHING(name, args)
#ifdef FAKE_OLD
DRIVER_CALLS(DECLARE, NOTHING)
#else
DRIVER_CALLS(DECLARE, DECLARE)
#endif

extern fake_state fake_cuda;
fake_state fake_cuda;

#define MAY_FAIL                                                                                                            \
	if (!strcmp(fake_cuda.fail_call, __func__))                                                                             \
	return fake_cuda.fail_code
#define PRIMARY ((cu_context)(void *)&fake_cuda.retained)

cu_result cuInit(unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuDriverGetVersion(int *version)
{
	MAY_FAIL;
	*version = fake_cuda.version;
	return CU_OK;
}

static const struct {
	cu_result r;
	const char *name, *text;
} errors[] = {
	{ CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CU_UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
	  "the provided PTX was compiled with an unsupported toolchain." },
	{ CU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
	{ CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
	{ CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
};

cu_result cuGetErrorName(cu_result r, const char **name)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].r == r) {
			*name = errors[i].name;
			return CU_OK;
		}
	*name = NULL;
	return CU_INVALID_VALUE;
}

cu_result cuGetErrorString(cu_result r, const char **text)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].r == r) {
			*text = errors[i].text;
			return CU_OK;
		}
	*text = NULL;
	return CU_INVALID_VALUE;
}

/* ---- devices and contexts ---- */

cu_result cuDeviceGetCount(int *n)
{
	MAY_FAIL;
	*n = fake_cuda.devices;
	return CU_OK;
}

cu_result cuDeviceGet(cu_device *dev, int i)
{
	MAY_FAIL;
	*dev = i;
	return CU_OK;
}

cu_result cuDeviceGetName(char *name, int size, cu_device dev)
{
	MAY_FAIL;
	snprintf(name, (size_t)size, "Fake %d", dev);
	return CU_OK;
}

cu_result cuDeviceGetAttribute(int *v, unsigned attr, cu_device dev)
{
	static const int values[][2] = {
		{ CU_DEV_SMEM_PER_CTA, 49152 }, { CU_DEV_CLOCK, 1980000 },       { CU_DEV_SMS, 132 },
		{ CU_DEV_L2, 62914560 },        { CU_DEV_SMEM_PER_SM, 233472 },  { CU_DEV_SMEM_OPTIN, 232448 },
		{ CU_DEV_REGS_PER_SM, 65536 },  { CU_DEV_THREADS_PER_SM, 2048 }, { CU_DEV_MEMORY_CLOCK, 3201000 },
		{ CU_DEV_BUS_WIDTH, 6144 },
	};

	(void)dev;
	MAY_FAIL;
	*v = attr == CU_DEV_MAJOR ? fake_cuda.major : attr == CU_DEV_MINOR ? fake_cuda.minor : 0;
	if (attr == CU_DEV_CLUSTERS)
		*v = fake_cuda.major >= 9;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (values[i][0] == (int)attr)
			*v = values[i][1];
	return CU_OK;
}

cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device dev)
{
	(void)dev;
	MAY_FAIL;
	*bytes = (size_t)1 << 37;
	return CU_OK;
}

cu_result cuDevicePrimaryCtxRetain(cu_context *ctx, cu_device dev)
{
	(void)dev;
	MAY_FAIL;
	fake_cuda.retained++;
	*ctx = PRIMARY;
	return CU_OK;
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device dev)
{
	(void)dev;
	fake_cuda.retained--;
	return CU_OK;
}

cu_result cuDevicePrimaryCtxGetState(cu_device dev, unsigned *flags, int *active)
{
	(void)dev;
	*flags = 0;
	*active = fake_cuda.retained != 0;
	return CU_OK;
}

cu_result cuCtxGetCurrent(cu_context *ctx)
{
	*ctx = fake_cuda.current;
	return CU_OK;
}

cu_result cuCtxSetCurrent(cu_context ctx)
{
	MAY_FAIL;
	fake_cuda.sets++;
	fake_cuda.current = ctx;
	return CU_OK;
}

static cu_context below; /* a stack of two */

cu_result cuCtxPushCurrent_v2(cu_context ctx)
{
	MAY_FAIL;
	fake_cuda.pushes++;
	below = fake_cuda.current;
	fake_cuda.current = ctx;
	return CU_OK;
}

cu_result cuCtxPopCurrent_v2(cu_context *ctx)
{
	fake_cuda.pops++;
	*ctx = fake_cuda.current;
	fake_cuda.current = below;
	return CU_OK;
}

cu_result cuCtxGetDevice(cu_device *dev)
{
	MAY_FAIL;
	*dev = 0;
	return CU_OK;
}

cu_result cuCtxSynchronize(void)
{
	MAY_FAIL;
	return CU_OK;
}

/* ---- memory ---- */

cu_result cuMemGetInfo_v2(size_t *unused, size_t *total)
{
	*unused = 1000;
	*total = 2000;
	return CU_OK;
}

cu_result cuMemAlloc_v2(cu_ptr *p, size_t size)
{
	void *host;

	MAY_FAIL;
	if (size > (size_t)1 << 30 || !(host = malloc(size)))
		return CU_OUT_OF_MEMORY;
	fake_cuda.allocations++;
	*p = (uintptr_t)host;
	return CU_OK;
}

cu_result cuMemFree_v2(cu_ptr p)
{
	fake_cuda.allocations--;
	free((void *)(uintptr_t)p);
	return CU_OK;
}

cu_result cuMemcpyHtoDAsync_v2(cu_ptr dst, const void *src, size_t size, cu_stream s)
{
	(void)s;
	MAY_FAIL;
	memcpy((void *)(uintptr_t)dst, src, size);
	return CU_OK;
}

cu_result cuMemcpyDtoHAsync_v2(void *dst, cu_ptr src, size_t size, cu_stream s)
{
	(void)s;
	MAY_FAIL;
	memcpy(dst, (void *)(uintptr_t)src, size);
	return CU_OK;
}

cu_result cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t size, cu_stream s)
{
	(void)s;
	MAY_FAIL;
	memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
	return CU_OK;
}

cu_result cuMemsetD8Async(cu_ptr dst, unsigned char value, size_t n, cu_stream s)
{
	(void)s;
	MAY_FAIL;
	memset((void *)(uintptr_t)dst, value, n);
	return CU_OK;
}

cu_result cuMemsetD32Async(cu_ptr dst, unsigned value, size_t n, cu_stream s)
{
	(void)s;
	MAY_FAIL;
	for (unsigned *p = (unsigned *)(uintptr_t)dst; n; n--)
		*p++ = value;
	return CU_OK;
}

/* ---- streams and events ---- */

/* A stream or event is a block that remembers its context. */
static void *object(unsigned *count)
{
	cu_context *o = malloc(sizeof *o);

	if (o)
		*o = fake_cuda.current, ++*count;
	return o;
}

cu_result cuStreamCreate(cu_stream *s, unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	*s = object(&fake_cuda.streams);
	return *s ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuStreamDestroy_v2(cu_stream s)
{
	fake_cuda.streams--;
	free(s);
	return CU_OK;
}

cu_result cuStreamSynchronize(cu_stream s)
{
	(void)s;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuStreamGetCtx(cu_stream s, cu_context *ctx)
{
	MAY_FAIL;
	*ctx = s ? *(cu_context *)(void *)s : fake_cuda.current;
	return CU_OK;
}

cu_result cuStreamIsCapturing(cu_stream s, unsigned *status)
{
	(void)s;
	*status = 0;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuStreamWaitEvent(cu_stream s, cu_event e, unsigned flags)
{
	(void)s, (void)e, (void)flags;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuEventCreate(cu_event *e, unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	*e = object(&fake_cuda.events);
	return *e ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuEventDestroy_v2(cu_event e)
{
	fake_cuda.events--;
	free(e);
	return CU_OK;
}

cu_result cuEventRecord(cu_event e, cu_stream s)
{
	(void)e, (void)s;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuEventSynchronize(cu_event e)
{
	(void)e;
	MAY_FAIL;
	return CU_OK;
}

cu_result cuEventElapsedTime(float *ms, cu_event start, cu_event end)
{
	(void)start, (void)end;
	MAY_FAIL;
	*ms = 1.5f;
	return CU_OK;
}

/* ---- modules ---- */

static const char *message;

static void log_to(uintptr_t buffer, const char *text)
{
	if (buffer && text)
		strcpy((char *)buffer, text);
}

cu_result cuModuleLoadDataEx(cu_module *m, const void *image, unsigned n, unsigned *options, void **values)
{
	MAY_FAIL;
	fake_cuda.noptions = n;
	for (unsigned i = 0; i < n && i < FAKE_OPTIONS; i++) {
		fake_cuda.options[i] = options[i];
		fake_cuda.values[i] = (uintptr_t)values[i];
		if (options[i] == CU_JIT_INFO)
			log_to((uintptr_t)values[i], fake_cuda.jit_info);
		if (options[i] == CU_JIT_ERROR)
			log_to((uintptr_t)values[i], fake_cuda.jit_error);
	}
	bool elf = !memcmp(image, "\177ELF", 4);
	if (!elf && fake_cuda.refuse_ptx)
		return fake_cuda.refuse_ptx;
	if (fake_cuda.jit_error)
		return CU_INVALID_PTX;
	fake_cuda.loads[elf]++;
	fake_cuda.modules++;
	*m = (cu_module)(void *)&message;
	return CU_OK;
}

/* ---- linking: to an ELF image of 64 bytes ---- */

static const unsigned char linked[64] = "\177ELF\2\1\1";

cu_result cuLinkCreate_v2(unsigned n, unsigned *options, void **values, cu_link *link)
{
	MAY_FAIL;
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CU_JIT_INFO)
			log_to((uintptr_t)values[i], fake_cuda.jit_info);
	fake_cuda.pieces = 0;
	*link = (cu_link)(void *)&fake_cuda.links;
	return CU_OK;
}

cu_result cuLinkAddData_v2(cu_link link, unsigned type, void *data, size_t size, const char *name, unsigned n,
                           unsigned *options, void **values)
{
	(void)link, (void)data, (void)size, (void)name, (void)n, (void)options, (void)values;
	MAY_FAIL;
	if (type == CU_INPUT_PTX && fake_cuda.refuse_ptx)
		return fake_cuda.refuse_ptx;
	fake_cuda.piece[fake_cuda.pieces++ % FAKE_PARAMS] = type;
	return CU_OK;
}

cu_result cuLinkComplete(cu_link link, void **cubin, size_t *size)
{
	(void)link;
	MAY_FAIL;
	fake_cuda.links++;
	*cubin = (void *)linked;
	*size = sizeof linked;
	return CU_OK;
}

cu_result cuLinkDestroy(cu_link link)
{
	(void)link;
	return CU_OK;
}

cu_result cuModuleUnload(cu_module m)
{
	(void)m;
	fake_cuda.modules--;
	return CU_OK;
}

cu_result cuModuleGetFunction(cu_function *f, cu_module m, const char *name)
{
	(void)m;
	MAY_FAIL;
	if (fake_cuda.kernel && strcmp(name, fake_cuda.kernel))
		return CU_NOT_FOUND;
	*f = (cu_function)(void *)&fake_cuda.launches;
	return CU_OK;
}

cu_result cuModuleGetGlobal_v2(cu_ptr *p, size_t *size, cu_module m, const char *name)
{
	(void)m;
	MAY_FAIL;
	if (strcmp(name, "table"))
		return CU_NOT_FOUND;
	*p = 4096;
	*size = 16;
	return CU_OK;
}

cu_result cuFuncGetAttribute(int *v, unsigned attr, cu_function f)
{
	(void)f;
	MAY_FAIL;
	*v = attr == CU_FN_REGS ? fake_cuda.regs : attr == CU_FN_LOCAL ? fake_cuda.local : attr == CU_FN_BINARY ? 90 : 0;
	if (attr == CU_FN_STATIC_SMEM)
		*v = fake_cuda.static_smem;
	if (attr == CU_FN_MAX_THREADS)
		*v = fake_cuda.max_threads;
	return CU_OK;
}

cu_result cuFuncSetAttribute(cu_function f, unsigned attr, int v)
{
	(void)f;
	MAY_FAIL;
	fake_cuda.set_attr = attr;
	fake_cuda.set_value = v;
	fake_cuda.set_count++;
	return CU_OK;
}

cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, cu_function f, int threads, size_t smem)
{
	(void)f, (void)threads, (void)smem;
	MAY_FAIL;
	*n = fake_cuda.ctas;
	return CU_OK;
}

/* ---- launches ---- */

static void take_params(void **params)
{
	for (unsigned i = 0; i < fake_cuda.nparams && i < FAKE_PARAMS; i++) {
		fake_cuda.params[i] = 0;
		memcpy(&fake_cuda.params[i], params[i], MIN(fake_cuda.param_size[i], 8));
	}
}

cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned smem, cu_stream s, void **params, void **extra)
{
	(void)f, (void)extra;
	MAY_FAIL;
	fake_cuda.launches++;
	memcpy(fake_cuda.grid, (unsigned[]){ gx, gy, gz }, sizeof fake_cuda.grid);
	memcpy(fake_cuda.block, (unsigned[]){ bx, by, bz }, sizeof fake_cuda.block);
	fake_cuda.smem = smem;
	fake_cuda.stream = s;
	take_params(params);
	return CU_OK;
}

#ifndef FAKE_OLD
cu_result cuLaunchKernelEx(const cu_launch_config *config, cu_function f, void **params, void **extra)
{
	(void)f, (void)extra;
	MAY_FAIL;
	fake_cuda.cluster_launches++;
	memcpy(fake_cuda.grid, config->grid, sizeof fake_cuda.grid);
	memcpy(fake_cuda.block, config->block, sizeof fake_cuda.block);
	fake_cuda.smem = config->smem;
	fake_cuda.stream = config->stream;
	fake_cuda.nattrs = config->nattrs;
	fake_cuda.attr = config->attrs[0];
	take_params(params);
	return CU_OK;
}

cu_result cuFuncGetParamInfo(cu_function f, size_t i, size_t *offset, size_t *size)
{
	(void)f;
	MAY_FAIL;
	if (i >= fake_cuda.nparams)
		return CU_INVALID_VALUE;
	*offset = 0;
	*size = fake_cuda.param_size[i];
	return CU_OK;
}

/* ---- tensor maps: all that is given is kept ---- */

static void keep_tensor(const char *call, cu_tensor_map map, unsigned type, unsigned rank, void *address,
                        const uint64_t *dim, const uint64_t *stride, const unsigned *step, const unsigned choices[5])
{
	snprintf(fake_cuda.tensor_call, sizeof fake_cuda.tensor_call, "%s", call);
	memset(map, 0xa5, 128);
	fake_cuda.tensor_type = type, fake_cuda.tensor_rank = rank, fake_cuda.tensor_address = (uintptr_t)address;
	memcpy(fake_cuda.tensor_dim, dim, rank * sizeof *dim);
	memcpy(fake_cuda.tensor_stride, stride, (rank - 1) * sizeof *stride);
	memcpy(fake_cuda.tensor_step, step, rank * sizeof *step);
	memcpy(fake_cuda.tensor_choices, choices, sizeof fake_cuda.tensor_choices);
}

cu_result cuTensorMapEncodeTiled(cu_tensor_map map, unsigned type, unsigned rank, void *address, const uint64_t *dim,
                                 const uint64_t *stride, const unsigned *box, const unsigned *step, unsigned interleave,
                                 unsigned swizzle, unsigned l2, unsigned fill)
{
	MAY_FAIL;
	keep_tensor("tiled", map, type, rank, address, dim, stride, step, (unsigned[5]){ interleave, swizzle, l2, fill, 0 });
	memcpy(fake_cuda.tensor_box, box, rank * sizeof *box);
	return CU_OK;
}

cu_result cuTensorMapEncodeIm2col(cu_tensor_map map, unsigned type, unsigned rank, void *address, const uint64_t *dim,
                                  const uint64_t *stride, const int *lower, const int *upper, unsigned channels,
                                  unsigned pixels, const unsigned *step, unsigned interleave, unsigned swizzle, unsigned l2,
                                  unsigned fill)
{
	MAY_FAIL;
	keep_tensor("im2col", map, type, rank, address, dim, stride, step, (unsigned[5]){ interleave, swizzle, l2, fill, 0 });
	memcpy(fake_cuda.tensor_corners, lower, (rank - 2) * sizeof *lower);
	memcpy(fake_cuda.tensor_corners + 3, upper, (rank - 2) * sizeof *upper);
	fake_cuda.tensor_box[0] = channels, fake_cuda.tensor_box[1] = pixels;
	return CU_OK;
}

cu_result cuTensorMapEncodeIm2colWide(cu_tensor_map map, unsigned type, unsigned rank, void *address, const uint64_t *dim,
                                      const uint64_t *stride, int lower, int upper, unsigned channels, unsigned pixels,
                                      const unsigned *step, unsigned interleave, unsigned mode, unsigned swizzle,
                                      unsigned l2, unsigned fill)
{
	MAY_FAIL;
	keep_tensor("wide", map, type, rank, address, dim, stride, step, (unsigned[5]){ interleave, swizzle, l2, fill, mode });
	fake_cuda.tensor_corners[0] = lower, fake_cuda.tensor_corners[3] = upper;
	fake_cuda.tensor_box[0] = channels, fake_cuda.tensor_box[1] = pixels;
	return CU_OK;
}
#endif
