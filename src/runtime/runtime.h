/* SPDX-License-Identifier: MIT */
/*
 * What a device is inside: a table of calls and the facts about it.  device.c, program.c and launch.c check and keep books,
 * the same for every kind of device; a kind fills in device_ops.
 */
#ifndef CPTX_RUNTIME_RUNTIME_H
#define CPTX_RUNTIME_RUNTIME_H

#include "base/atomic.h"
#include "base/base.h"
#include "base/table.h"
#include <cptx/device.h>

typedef enum transfer_kind { TRANSFER_WRITE, TRANSFER_READ, TRANSFER_COPY, TRANSFER_FILL8, TRANSFER_FILL32 } transfer_kind;

typedef struct transfer {
	transfer_kind kind;
	void *host_dst;
	uint64_t dst, src; /* device addresses */
	const void *host_src;
	uint32_t value;
	size_t n;  /* bytes; words for FILL32 */
	bool wait; /* complete on return */
	void *stream;
} transfer;

/* A kernel as a launch sees it. */
typedef struct kernel {
	cptx_kernel_info info; /* params NULL: not known */
	void *fn;
	bool sized;           /* not known, but size and number are: param_size, info.nparams */
	uint32_t *param_size; /* info.nparams of them, malloced */
	uint32_t max_threads, static_smem, regs;
} kernel;

typedef struct load_request {
	cptx_site at;
	cptx_module *module; /* or: */
	const void *image;
	size_t size;
	/* or: */
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
	/* Where memory of the device is memory of the host; NULL: it is not.  A mapping ends with free(). */
	uint64_t (*map)(cptx_device *dev, void *host, size_t size, cptx_error *err);
	void *(*host)(cptx_device *dev, uint64_t at, size_t size, cptx_error *err);
	/* Around mappings and launches that belong together; other calls may stand inside.  NULL: not needed. */
	void (*lock)(cptx_device *dev);
	void (*unlock)(cptx_device *dev);
	/* Makes the bytes of a description that was checked; NULL: cptx's own. */
	bool (*tensor_map)(cptx_device *dev, const cptx_tensor_map_opt *opt, cptx_tensor_map *map, cptx_error *err);

	bool (*load)(cptx_program *p, const load_request *q, cptx_error *err);
	void (*unload)(cptx_program *p);
	uint64_t (*global)(const cptx_program *p, const char *name, size_t *size, cptx_error *err);
	/* Finds the kernel in the program: fn, limits, and sizes of parameters if info.params is NULL. */
	bool (*find)(const cptx_program *p, kernel *k, cptx_site at, cptx_error *err);
	bool (*resources)(const cptx_program *p, const kernel *k, uint32_t threads, uint32_t dyn_smem, cptx_resources *out,
	                  cptx_error *err);
	bool (*launch_prepare)(cptx_launch *l, cptx_site at, cptx_error *err);
	bool (*launch_run)(cptx_launch *l, void *stream, cptx_error *err);
} device_ops;

struct cptx_device {
	const device_ops *ops;
	cptx_device_info info;
	int ordinal;      /* of a GPU */
	atomic_uint refs; /* what needs it beside who has opened it: programs, streams, events.  The last closes it */
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
	cptx_kernel_info *kernels; /* those whose names are known */
	size_t nkernels, kernels_cap;
	hash_table names;  /* of kernels */
	bool more_kernels; /* it may have others */
	const char *log, *target, *note;
	unsigned version;
	atomic_uint refs; /* launches, beside who has loaded it */
};

struct cptx_launch {
	bool (*run)(cptx_launch *l, void *stream, cptx_error *err);
	const cptx_program *program;
	kernel k;
	uint32_t grid[3], block[3], cluster[3]; /* cluster[0] 0: none */
	uint32_t dyn_smem;
	bool overlap, cooperative;
	size_t nargs;
	void **params; /* nargs pointers to the values; NULL if none */
	uint32_t *sizes;
	cptx_site at;
	void *extra; /* the device's own; freed with the launch */
};

/* False also where *err holds an error already. */
static inline bool may_go(const cptx_error *err) { return !err || err->code == CPTX_OK; }
bool no_memory(cptx_error *err, cptx_site at);

/* program.c */
/* Keeps the names of the .entry functions of PTX text; with a module, all that a launch wants to know of them. */
bool program_learn(cptx_program *p, const char *text, const cptx_module *m);
/* The same for one kernel; m NULL: only its name. */
bool program_add_kernel(cptx_program *p, const char *name, size_t len, const cptx_module *m);
/* Fills in what the program knows of a kernel; name NULL: its only one. */
bool program_find(const cptx_program *p, const char *name, kernel *k, cptx_site at, cptx_error *err);
void kernel_release(kernel *k);

/* cuda_program.c */
bool target_runs_on(const cptx_target *t, unsigned cc); /* code for it, on devices of the compute capability */

/* emu.c; false with an error where the emulator is left out */
bool emulator_there(cptx_error *err);

/* cuda.c */
unsigned cuda_count(cptx_error *err);
cptx_device *cuda_open(unsigned n, cptx_error *err);
cptx_device *cuda_adopt(void *context, cptx_error *err);

#endif
