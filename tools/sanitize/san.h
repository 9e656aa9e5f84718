/* SPDX-License-Identifier: MIT */
/*
 * The inside of libcptx_sanitize: one emulated device behind the CUDA driver and runtime API of a program.  Work is done
 * when a call returns, so streams only say what a graph captures.  All calls return errors of CUDA as numbers, which the two
 * APIs share; what went wrong in words goes to standard error (report.c).
 */
#ifndef CPTX_SANITIZE_SAN_H
#define CPTX_SANITIZE_SAN_H

#include "abi.h"

#include <cptx/edit.h>
#include <cptx/emu.h>

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#if defined(__GNUC__)
#define SAN_API __attribute__((visibility("default")))
#else
#define SAN_API
#endif

enum { SAN_DEVICES = 16 /* most of --devices */ };

enum san_error {
#define ERROR(name, number, runtime, driver, text) SAN_##name = number,
#include "error.def"
#undef ERROR
};
/* The names and meaning of an error; that of UNKNOWN if it is none. */
typedef struct san_error_info {
	int number;
	const char *runtime, *driver, *text;
} san_error_info;
const san_error_info *san_error_of(int error);

/* An image of kernels: what a fat binary of nvcc holds for the device, or PTX text that a program loads. */
typedef struct san_module {
	struct san_module *next;    /* in san.modules */
	const void *image;          /* a fat binary, which stays the program's; NULL: text is there */
	const void *const *objects; /* fat binaries of the objects it was linked from, NULL behind the last; NULL: not linked */
	const void *linked;         /* an image of a linker, while it is loaded */
	/* A text of each piece that it was linked of: it has the program of all, and they know the kernels. */
	struct san_module *part, *next_part;
	char name[32]; /* of the text in findings: program.ptx, program.2.ptx ... */
	char *text;    /* PTX, NUL-terminated */
	void *lines;   /* of the source, once something was found in the text (lines.c) */
	size_t size;
	cptx_module *parsed;                /* knows the parameters of the kernels */
	cptx_program *program[SAN_DEVICES]; /* on each device that needed it */
	int failed;                         /* why it could not be loaded, which is said once */
	unsigned recorded[SAN_DEVICES];     /* its number in the recording, of each device's program; 0: it is not there */
} san_module;

/* A kernel: a CUfunction, a cudaFunction_t and a cudaKernel_t. */
typedef struct san_kernel {
	struct san_kernel *next; /* of its module, or in san.kernels */
	san_module *module, *in; /* whose it is; the part of that where it stands, once it was found */
	const void *host;        /* the function of the host program that stands for it; NULL: none */
	char *name;
	cptx_kernel_info info; /* once it was found */
	bool found;
} san_kernel;

/* A variable that the host program has, too. */
typedef struct san_var {
	struct san_var *next;
	san_module *module;
	const void *host;
	char *name;
	size_t size;
	void **managed;           /* the host's pointer to it, if it is a managed one */
	uint64_t at[SAN_DEVICES]; /* on each device; 0: not looked up yet */
} san_var;

/* Memory that the program allocated or registered. */
typedef struct san_block {
	struct san_block *next;
	uint64_t at; /* for kernels */
	void *host;  /* NULL: the host cannot read it */
	size_t size;
	int type;        /* RT_HOST, RT_DEVICE, RT_MANAGED */
	unsigned graphs; /* that allocate it, and keep it */
	bool of_graph;   /* was allocated by a graph: it may be freed, and allocated again by a launch, while there is one */
	bool freed;      /* of_graph, and not allocated now */
	int device;      /* whose it is */
	bool opened;     /* it is memory of another process */
	struct san_shared *shared; /* with other processes; NULL: it is not */
	bool pooled;               /* it came of a pool, whose reach cudaMemPoolSetAccess says */
	bool mapped;               /* it is memory of cuMemMap, whose reach cuMemSetAccess says */
} san_block;

typedef struct san_graph san_graph;

/* A stream and an event.  Handles 0, 1 and 2 are the default streams. */
typedef struct san_stream {
	struct san_stream *next; /* in san.streams */
	int device;
	unsigned flags;
	int priority;
	unsigned long long id;
	san_graph *capture;      /* what is captured now; NULL: nothing */
	int mode;                /* of the capture: 0 global, 1 of the thread, 2 relaxed */
	struct san_node *newest; /* of the graph, when the program asked for it */
	bool joined;             /* the capture began in another stream, of which this one waited for an event */
} san_stream;

typedef struct san_event {
	struct timespec at;
	bool recorded;
	san_graph *capture; /* of the stream that it was recorded in; it may have ended */
} san_event;

/* A launch with its arguments. */
typedef struct san_shape {
	uint32_t grid[3], block[3], cluster[3];
	uint32_t smem;
	bool cooperative, overlap;
} san_shape;

extern _Thread_local bool san_used_runtime; /* by the thread: the context of the device is current then */
extern struct san {
	pthread_mutex_t lock; /* recursive; held by every call */
	cptx_device *dev;
	const cptx_device_info *info;
	int ndevice, device; /* devices; the one that the call is for */
	int failed;          /* the device could not be opened, or a finding ended a launch: all later calls return that */
	san_module *modules;
	san_kernel *kernels;
	san_var *vars;
	san_block *blocks;
	struct san_array *arrays;
	san_stream *streams;
	bool several;                /* some memory is mapped at several addresses (virtual.c) */
	unsigned long long nstreams; /* that were made */
	unsigned texts;              /* of modules that have a name */
	const char *command;         /* that messages begin with; NULL: cptx sanitize */
} san;

/* state.c */
int san_enter(void); /* locks, and opens the device; leave with san_leave also after an error */
void san_leave(void);
/* Turns an error of cptx into one of CUDA, and says it on standard error; ends the device's life if a launch did not end. */
int san_failed(const char *call, const cptx_error *err);
uint64_t san_order(void);    /* of --order; 0: none */
size_t san_findings(void);   /* how many there are */
bool san_ended(size_t from); /* one of the findings from that number on ended a launch, and no later one is possible */

/* report.c */
enum san_unchecked {
#define UNCHECKED(name, word, tells, one, several) SAN_UNCHECKED_##name,
#include "unchecked.def"
#undef UNCHECKED
};
/* Keeps for the command that something was not checked, and why; a launch that was. */
void san_unchecked(enum san_unchecked kind, const char *name, const char *why);
void san_checked(void);
void san_differs(const cptx_emu_order_info *orders); /* keeps for the command that orders of a launch leave other memory */
void san_say(const char *format, ...) CPTX_PRINTF_(1, 2);
void san_report(void);                        /* says what was found since the last call */
int san_missing(const char *name);            /* says once that a call is not there; NOT_SUPPORTED */
void san_print(void *user, const char *text); /* the output of printf */

/* fatbin.c: the PTX of a fat binary that a device runs best, NUL-terminated, to be freed; NULL and an error, which is said
 */
char *san_fatbin_ptx(const void *image, const cptx_device_info *dev, size_t *size);
bool san_is_fatbin(const void *image);

/* link.c: a linker's image, as cuLinkComplete gives it out: texts one behind the other */
enum { SAN_LINKED_HEAD = 16 /* bytes: a mark of 8 bytes, the size of all as 8 bytes */ };
bool san_is_linked(const void *image);
/* The text at `at` of such an image, and where the next one is; NULL behind the last. */
const char *san_linked_text(const void *image, size_t *at, size_t *size);

/* module.c */
int san_module_load(const void *image, san_module **out); /* text or a fat binary */
void san_module_unload(san_module *m);
int san_module_ready(san_module *m); /* parsed and on the device */
/* Puts a text to those of a module that is not loaded yet: its only one, or one of several that are joined. */
int san_module_add(san_module *m, const char *name, const char *text, size_t size, bool joined);
san_module *san_register(const void *image, const void *const *parts);
bool san_register_kernel(san_module *m, const void *host, const char *name);
bool san_register_var(san_module *m, const void *host, const char *name, size_t size, void **managed);
/* The kernel a host function or a handle stands for; NULL: none */
san_kernel *san_kernel_of(const void *handle);
/* Whether a handle is that of a kernel whose module is loaded; else it is said. */
bool san_kernel_lives(const san_kernel *k);
int san_kernel_named(san_module *m, const char *name, san_kernel **out);
int san_kernel_ready(san_kernel *k);
int san_global(const san_module *m, const char *name, uint64_t *at, size_t *size);
int san_var_at(const void *symbol, san_var **out);
int san_resources(san_kernel *k, uint32_t threads, uint32_t smem, cptx_resources *out);
int san_occupancy(int *blocks, san_kernel *k, int threads, size_t smem); /* blocks on a multiprocessor at once */
int san_active_clusters(int *clusters, san_kernel *k, const san_shape *shape);

/* lines.c: the line of the source that a line of PTX, "program.ptx" and a number, was made of; false: unknown */
bool san_source(const char *ptx, size_t ptx_size, unsigned line, const char **file, unsigned *its_line);
void san_lines_free(san_module *m);

/* memory.c */
enum san_memory { SAN_DEVICE_MEMORY, SAN_HOST_MEMORY, SAN_MANAGED_MEMORY };
int san_alloc(enum san_memory kind, size_t size, uint64_t *at);
int san_free(uint64_t at, bool host);
void san_graph_left(san_block *b); /* one graph less allocates the memory */
int san_map(void *host, size_t size);
int san_unmap(void *host);
san_block *san_block_at(uint64_t at); /* of a device or host address */
bool san_on_device(const void *p);
int san_block_add(uint64_t at, void *host, size_t size, int type); /* bookkeeping alone */
void san_block_drop(uint64_t at);
int san_copy(void *dst, const void *src, size_t size, int kind, san_stream *s);
/* Rows of bytes; the pitches of one row are not looked at, nor those of one slice. */
typedef struct san_rows {
	void *dst;
	const void *src;
	size_t dst_pitch, src_pitch, width, height;
	int kind;
	size_t more, dst_slice, src_slice; /* slices behind the first, and bytes from one to the next */
} san_rows;
int san_copy_rows(const san_rows *r, san_stream *s);
int san_set(uint64_t dst, unsigned value, unsigned element, size_t count, san_stream *s);
int san_set_rows(const rt_set_node *set, san_stream *s);

/* array.c */
int san_copy3d(const rt_copy3d *c, san_stream *s);
int san_driver_copy3d(const dr_copy3d *c, san_stream *s);

/* launch.c */
int san_not_launched(const char *kernel, int error); /* counts a launch that an error forbids; NULL: of none */
int san_launch(san_kernel *k, const san_shape *shape, void **args, san_stream *s);

/* graph.c: work that a stream does now, or that its graph keeps */
int san_host_call(void (*fn)(void *user), void *user, san_stream *s);
bool san_captures(const san_stream *s);
int san_keep_copy(san_stream *s, const san_rows *rows);
int san_keep_set(san_stream *s, const rt_set_node *set);
int san_keep_launch(san_stream *s, san_kernel *k, const san_shape *shape, void **args);

/* driver.c: addresses of the arguments, to be freed */
int san_unpack(san_kernel *k, void **args, void **extra, void ***out);
san_shape san_shape_of(const dr_launch_config *c);
/* a file with zeros behind it, to be freed; NULL after an error */
int san_read_file(const char *path, char **out, size_t *size);
/* logs of a compiler, which the caller gave room for, are empty: what is wrong is said on standard error */
void san_empty_logs(unsigned n, const int *options, void **values);

/* device.c */
int san_attribute(int attribute, int *value);

/* patch.c: a function that this library exports; NULL: none of that name */
void *san_symbol(const char *name);

/* kernels.c: the kernel of a function or handle, on the device */
int san_kernel_for(const void *handle, san_kernel **out);
/* an attribute of a launch; those that only hint are left aside */
void san_shape_attribute(san_shape *shape, const rt_launch_attr *a);

/* stream.c */
san_stream *san_stream_of(san_stream *handle); /* NULL for a default stream */
bool san_forbidden(void);                      /* a capture is going on that forbids allocations and loading */

#endif
