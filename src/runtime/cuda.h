/* SPDX-License-Identifier: MIT */
/* A GPU as a kind of cptx_device. */
#ifndef CPTX_RUNTIME_CUDA_H
#define CPTX_RUNTIME_CUDA_H

#include "runtime/driver.h"
#include "runtime/runtime.h"

typedef struct cuda {
	cptx_device base; /* first, so that a cptx_device * can be cast to cuda * */
	driver drv;
	cu_device dev;
	cu_context ctx;
	bool retained; /* ctx is the primary context, and this device has retained it */
} cuda;

static inline cuda *cuda_of(const cptx_device *dev) { return (cuda *)dev; }

/*
 * Stands around every call that needs the context.  A thread without a current context gets the device's, for good; a thread
 * with another one has it back after cuda_leave.
 */
typedef struct cuda_scope {
	cuda *c;
	bool pushed;
} cuda_scope;
bool cuda_enter(cuda *c, cuda_scope *scope, cptx_error *err);
void cuda_leave(const cuda_scope *scope);

/* cuda_program.c */
bool cuda_load(cptx_program *p, const load_request *q, cptx_error *err);
void cuda_unload(cptx_program *p);
uint64_t cuda_global(const cptx_program *p, const char *name, size_t *size, cptx_error *err);
const char *cuda_pick_target(unsigned compute_capability, unsigned ptx);
/* The target that a load names, or the device's best; NULL with an error. */
const char *cuda_choose_target(const cptx_device_info *i, const load_request *q, cptx_error *err);

/* cuda_compile.c */
/* Compiles PTX by the compiler that the options name, and loads it; p has its version and target already. */
bool cuda_compile(cptx_program *p, const load_request *q, const char *text, const cptx_ptx *ptx, cptx_error *err);
/* Loads machine code as it is. */
bool cuda_load_image(cptx_program *p, const load_request *q, const void *image, cptx_error *err);

/* Options of the driver's compiler and linker: a list of option numbers and one of values, each a pointer or an integer
 * stored in one. */
enum { JIT_LOG = 16384 };
typedef struct jit {
	unsigned n, options[10];
	void *values[10];
	char *info, *error; /* logs of JIT_LOG bytes */
} jit;
bool jit_begin(jit *j, const load_request *q, cptx_error *err);
void jit_end(jit *j);

/* The driver's part of a job: compiles or links, and loads.  Returns an error of the driver, or CU_OK with an error set
 * where only loading failed.  Leaves the text and ptx that the driver refused in the job. */
struct compile_job;
typedef cu_result driver_job_fn(cptx_program *p, const load_request *q, struct compile_job *job, jit *j, cptx_error *err);
/* Does a job by the compiler that the options name: the driver, or `other` where the driver is too old; and loads the
 * result. */
bool cuda_make(cptx_program *p, const load_request *q, struct compile_job *job, enum cptx_compiler other, driver_job_fn *way,
               cptx_error *err);

/* cuda_link.c */
bool cuda_link(cptx_program *p, const load_request *q, cptx_error *err);

/* cuda_launch.c */
bool cuda_kernel(const cptx_program *p, kernel *k, cptx_site at, cptx_error *err);
bool cuda_resources(const cptx_program *p, const kernel *k, uint32_t threads, uint32_t dyn_smem, cptx_resources *out,
                    cptx_error *err);
bool cuda_launch_prepare(cptx_launch *l, cptx_site at, cptx_error *err);
bool cuda_launch_run(cptx_launch *l, void *stream, cptx_error *err);

/* tensor_map.c */
bool cuda_tensor_map(cptx_device *dev, const cptx_tensor_map_opt *opt, cptx_tensor_map *map, cptx_error *err);

#endif
