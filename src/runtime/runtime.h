/* SPDX-License-Identifier: MIT */
/*
 * The inside of a device: a table of calls and the facts about it.  device.c, program.c and launch.c check arguments and
 * count references for every kind of device; each kind fills in device_ops.
 */
#ifndef CPTX_RUNTIME_RUNTIME_H
#define CPTX_RUNTIME_RUNTIME_H

#include "base/atomic.h"
#include "base/base.h"
#include "base/table.h"
#include "ir/launch.h"
#include <cptx/device.h>

typedef enum transfer_kind { TRANSFER_WRITE, TRANSFER_READ, TRANSFER_COPY, TRANSFER_FILL8, TRANSFER_FILL32 } transfer_kind;

typedef struct transfer {
	transfer_kind kind;
	void *host_dst;
	uint64_t dst, src; /* device addresses */
	const void *host_src;
	uint32_t value;
	size_t n;  /* bytes; words for FILL32 */
	bool wait; /* the operation is complete on return */
	void *stream;
} transfer;

/* A kernel as a launch sees it. */
typedef struct kernel {
	cptx_kernel_info info;            /* params NULL: unknown */
	const struct ir_map_use *map_use; /* copies by tensor maps among the parameters, as far as known */
	size_t nmap_use;
	void *fn;
	bool sized;           /* the parameters are unknown, except for their number and sizes: info.nparams, param_size */
	uint32_t *param_size; /* info.nparams sizes in bytes, from malloc */
	uint32_t max_threads, static_smem, regs;
} kernel;

typedef struct load_request {
	cptx_site at;
	cptx_module *module; /* the module to load, or NULL: */
	const void *image;
	size_t size;
	/* inputs to link, or NULL: */
	const cptx_link_input *pieces;
	size_t npieces;
	cptx_load_opt opt;
} load_request;

typedef struct device_ops {
	void (*close)(cptx_device *dev);
	void *(*context)(const cptx_device *dev);
	void *(*symbol)(const cptx_device *dev, const char *name);
	bool (*make_current)(cptx_device *dev, cptx_error *err);
	bool (*synchronize)(cptx_device *dev, cptx_error *err);

	bool (*stream_new)(cptx_device *dev, void **handle, cptx_error *err);
	bool (*stream_adopt)(cptx_device *dev, void *handle, cptx_error *err);
	void (*stream_destroy)(cptx_device *dev, void *handle);
	bool (*stream_synchronize)(cptx_device *dev, void *handle, cptx_error *err);
	bool (*stream_wait)(cptx_device *dev, void *handle, void *event, cptx_error *err);
	bool (*event_new)(cptx_device *dev, void **handle, cptx_error *err);
	void (*event_destroy)(cptx_device *dev, void *handle);
	bool (*event_record)(cptx_device *dev, void *handle, void *stream, cptx_error *err);
	bool (*event_synchronize)(cptx_device *dev, void *handle, cptx_error *err);
	bool (*event_elapsed)(cptx_device *dev, void *start, void *end, float *ms, cptx_error *err);

	uint64_t (*alloc)(cptx_device *dev, size_t size, cptx_error *err);
	void (*free)(cptx_device *dev, uint64_t ptr);
	bool (*transfer)(cptx_device *dev, const transfer *t, cptx_error *err);
	/* Maps memory of the host program into the device's; NULL if the device cannot.  A mapping ends with free(). */
	uint64_t (*map)(cptx_device *dev, void *host, size_t size, cptx_error *err);
	/* Memory at one address for kernels and the host program; NULL if the device cannot. */
	uint64_t (*unified)(cptx_device *dev, size_t size, cptx_error *err);
	void *(*host)(cptx_device *dev, uint64_t at, size_t size, cptx_error *err);
	/* Locks the device around mappings and launches that belong together; the holder may make other calls.  NULL: not
	 * needed. */
	void (*lock)(cptx_device *dev);
	void (*unlock)(cptx_device *dev);
	/* Encodes a description that was checked; NULL: cptx_tensor_map_pack does. */
	bool (*tensor_map)(cptx_device *dev, const cptx_tensor_map_opt *opt, cptx_tensor_map *map, cptx_error *err);

	bool (*load)(cptx_program *p, const load_request *q, cptx_error *err);
	void (*unload)(cptx_program *p);
	uint64_t (*global)(const cptx_program *p, const char *name, size_t *size, cptx_error *err);
	/* Finds a kernel in the program: sets fn, limits, and the sizes of parameters if info.params is NULL. */
	bool (*find)(const cptx_program *p, kernel *k, cptx_site at, cptx_error *err);
	bool (*resources)(const cptx_program *p, const kernel *k, uint32_t threads, uint32_t dyn_smem, cptx_resources *out,
	                  cptx_error *err);
	bool (*launch_prepare)(cptx_launch *l, cptx_site at, cptx_error *err);
	bool (*launch_run)(cptx_launch *l, void *stream, cptx_error *err);
} device_ops;

struct cptx_device {
	const device_ops *ops;
	cptx_device_info info;
	int ordinal; /* number of a GPU */
	/* references: the opener's, and those of programs, streams and events.  The last one closes the device */
	atomic_uint refs;
};
void device_hold(cptx_device *dev);
void device_drop(cptx_device *dev);

struct cptx_stream {
	cptx_device *dev;
	void *handle;
	bool adopted;
};

struct cptx_event {
	cptx_device *dev;
	void *handle;
};

struct cptx_program {
	cptx_device *dev;
	arena mem;
	void *handle;
	kernel *kernels; /* the kernels whose names are known; only what their module says of them is filled in */
	size_t nkernels, kernels_cap;
	hash_table names;  /* index of their names */
	bool more_kernels; /* the program may have further kernels */
	const char *log, *target, *note;
	unsigned version;
	atomic_uint refs; /* references: the loader's, and those of launches */
};

struct cptx_launch {
	bool (*run)(cptx_launch *l, void *stream, cptx_error *err);
	const cptx_program *program;
	kernel k;
	launch_shape shape;
	bool overlap;
	size_t nargs;
	void **params; /* nargs pointers to the values; NULL if there are none */
	uint32_t *sizes;
	cptx_site at;
	void *extra; /* memory of the kind of device; freed with the launch */
};

bool no_memory(cptx_error *err, cptx_site at);

/* program.c */
/* Keeps the names of the .entry functions of PTX text; with a module, all that a launch needs to know about them. */
bool program_learn(cptx_program *p, const char *text, const cptx_module *m);
/* Keeps one kernel of a program. */
bool program_add_kernel(cptx_program *p, const cptx_kernel *k);
/* Fills in what the program knows about a kernel; name NULL: the only kernel. */
bool program_find(const cptx_program *p, const char *name, kernel *k, cptx_site at, cptx_error *err);
void kernel_release(kernel *k);

/* cuda_program.c */
/* whether devices of that compute capability run code of the target */
bool target_runs_on(const cptx_target *t, unsigned cc);
/* The rung of the ladder of targets of a device below one, NULL: the highest; sm_NNa, sm_NNf, sm_NN, then those of older
 * devices.  NULL: there is none (retarget.c). */
const cptx_target *target_ladder(unsigned cc, const cptx_target *below);

/* emu.c; false with an error if the emulator is left out of the build */
bool emulator_there(cptx_error *err);

/* cuda.c */
unsigned cuda_count(cptx_error *err);
cptx_device *cuda_open(unsigned n, cptx_error *err);
cptx_device *cuda_adopt(void *context, cptx_error *err);

#endif
