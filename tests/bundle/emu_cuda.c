/* SPDX-License-Identifier: MIT */
/*
 * A libcuda that runs on cptx's emulator, as far as the loader of bundles and its test need one.  CPTX_TEST_EMU_TARGET is
 * the target of the device, CPTX_TEST_EMU_DRIVER its CUDA version (13000).  It runs PTX only, and refuses machine code.
 */
#include <cptx/device.h>
#include <cptx/edit.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, INVALID = 1, MEMORY = 2, NO_CONTEXT = 201, NO_BINARY = 209, NOT_FOUND = 500, FAILED = 719 };
enum { MOST_ARGS = 64 };

typedef struct module {
	cptx_module *parsed;
	cptx_program *program;
} module;

typedef struct function {
	module *in;
	cptx_kernel_info info;
	uint32_t smem;
	struct function *next;
} function;

static cptx_device *dev;
static function *functions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the emulator is one device */
static _Thread_local void *current;                      /* context; a test may make any address one */

#define CALL __attribute__((visibility("default")))
CALL int cuInit(unsigned flags);
CALL int cuDriverGetVersion(int *version);
CALL int cuGetErrorName(int r, const char **name);
CALL int cuDeviceGet(int *device, int number);
CALL int cuDeviceGetAttribute(int *value, int attribute, int device);
CALL int cuDevicePrimaryCtxRetain(void **context, int device);
CALL int cuCtxGetCurrent(void **context);
CALL int cuCtxSetCurrent(void *context);
CALL int cuCtxGetDevice(int *device);
CALL int cuCtxSynchronize(void);
CALL int cuModuleLoadData(void **m, const void *image);
CALL int cuModuleUnload(void *m);
CALL int cuModuleGetFunction(void **f, void *m, const char *name);
CALL int cuFuncSetAttribute(void *f, int attribute, int value);
CALL int cuMemAlloc_v2(uint64_t *p, size_t size);
CALL int cuMemFree_v2(uint64_t p);
CALL int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
CALL int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size);
CALL int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        void *stream, void **params, void **extra);
CALL int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                                const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave,
                                int swizzle, int l2, int fill);

static int tell(const cptx_error *err)
{
	fprintf(stderr, "%s\n", err->text);
	return FAILED;
}

int cuInit(unsigned flags)
{
	const char *target = getenv("CPTX_TEST_EMU_TARGET");
	char name[40];
	cptx_error err = { 0 };

	snprintf(name, sizeof name, "emu:%.30s", target ? target : "sm_90a");
	if (!dev)
		dev = cptx_device_open(name, &err);
	return dev && !flags ? OK : INVALID;
}

int cuDriverGetVersion(int *version)
{
	const char *text = getenv("CPTX_TEST_EMU_DRIVER");

	*version = text ? atoi(text) : 13000;
	return OK;
}

int cuGetErrorName(int r, const char **name)
{
	*name = r == NO_BINARY ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : r == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR";
	return OK;
}

int cuDeviceGet(int *device, int number)
{
	*device = number;
	return number ? INVALID : OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	const cptx_device_info *i = cptx_device_get_info(dev);

	(void)device;
	*value = attribute == 75 ? i->compute_capability / 10 : attribute == 76 ? i->compute_capability % 10 : (int)i->sms;
	return OK;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = dev;
	return device ? INVALID : OK;
}

int cuCtxGetCurrent(void **context)
{
	*context = current;
	return OK;
}

int cuCtxSetCurrent(void *context)
{
	current = context;
	return OK;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return current ? OK : NO_CONTEXT;
}

int cuCtxSynchronize(void)
{
	cptx_error err = { 0 };

	return cptx_device_synchronize(dev, &err) ? OK : tell(&err);
}

int cuModuleLoadData(void **to, const void *image)
{
	cptx_error err = { 0 };

	if (!current)
		return NO_CONTEXT;
	if (!memcmp(image, "\177ELF", 4))
		return NO_BINARY;
	module *m = calloc(1, sizeof *m);
	m->parsed = cptx_parse(image, strlen(image), NULL);
	m->program = cptx_device_load_text(dev, image, strlen(image), NULL, &err);
	cptx_module_freeze(m->parsed);
	*to = m;
	return m->program ? OK : tell(&err);
}

int cuModuleUnload(void *p)
{
	module *m = p;

	for (function **f = &functions; *f;) {
		function *gone = *f;
		if (gone->in != m) {
			f = &gone->next;
			continue;
		}
		*f = gone->next;
		free(gone);
	}
	cptx_program_destroy(m->program);
	cptx_module_destroy(m->parsed);
	free(m);
	if (!functions) { /* nothing is left over when the program ends */
		cptx_device_close(dev);
		dev = NULL;
	}
	return OK;
}

int cuModuleGetFunction(void **to, void *m, const char *name)
{
	function *f = calloc(1, sizeof *f);

	f->in = m;
	if (!cptx_module_kernel(f->in->parsed, name, &f->info)) {
		free(f);
		return NOT_FOUND;
	}
	f->next = functions, functions = f;
	*to = f;
	return OK;
}

int cuFuncSetAttribute(void *p, int attribute, int value)
{
	function *f = p;

	if (attribute != 8 || (uint32_t)value > cptx_device_get_info(dev)->smem_per_cta)
		return INVALID;
	f->smem = (uint32_t)value;
	return OK;
}

int cuMemAlloc_v2(uint64_t *p, size_t size)
{
	cptx_error err = { 0 };

	*p = cptx_mem_alloc(dev, size, &err);
	return *p ? OK : MEMORY;
}

int cuMemFree_v2(uint64_t p)
{
	cptx_mem_free(dev, p);
	return OK;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	cptx_error err = { 0 };

	return cptx_mem_write(dev, to, from, size, &err) ? OK : tell(&err);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
	cptx_error err = { 0 };

	return cptx_mem_read(dev, to, from, size, &err) ? OK : tell(&err);
}

int cuLaunchKernel(void *p, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   void *stream, void **params, void **extra)
{
	const function *f = p;
	cptx_arg args[MOST_ARGS];
	cptx_error err = { 0 };

	if (stream || extra || f->info.nparams > MOST_ARGS || (smem > 48 * 1024 && smem > f->smem))
		return INVALID;
	for (size_t i = 0; i < f->info.nparams; i++) {
		const cptx_param_info *q = &f->info.params[i];
		args[i] = CPTX_ARG_BYTES(params[i], q->size);
		args[i].kind = q->type == CPTX_B8 ? CPTX_ARG_OBJECT : q->type == CPTX_F32 ? CPTX_ARG_FLOAT : CPTX_ARG_INT;
		if (args[i].kind != CPTX_ARG_OBJECT) {
			args[i].u.u64 = 0;
			memcpy(&args[i].u, params[i], q->size);
		}
	}
	pthread_mutex_lock(&lock);
	const bool ok = cptx_launch_once(f->in->program, f->info.name,
	                                 CPTX_LAUNCH(.grid = { gx, gy, gz }, .block = { bx, by, bz }, .dyn_smem = smem,
	                                             .nargs = f->info.nparams, .args = args),
	                                 NULL, &err);
	pthread_mutex_unlock(&lock);
	return ok ? OK : tell(&err);
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dim, const uint64_t *stride,
                           const uint32_t *box, const uint32_t *step, int interleave, int swizzle, int l2, int fill)
{
	cptx_tensor_map_opt o = { .type = (enum cptx_tensor_type)type,
		                      .rank = rank,
		                      .address = (uint64_t)(uintptr_t)address,
		                      .interleave = 16 * (uint32_t)interleave,
		                      .swizzle = (enum cptx_swizzle)swizzle,
		                      .l2 = l2 == 3 ? 256 : 64 * (uint32_t)l2,
		                      .nan_fill = fill };
	cptx_error err = { 0 };

	if ((uintptr_t)map % 64)
		return INVALID;
	for (uint32_t i = 0; i < rank; i++) {
		o.dim[i] = dim[i], o.box[i] = box[i], o.element_stride[i] = step[i];
		o.stride[i] = i ? stride[i - 1] : 0;
	}
	return cptx_tensor_map_check(&o, &err) && cptx_tensor_map_pack(&o, map, &err) ? OK : tell(&err);
}
