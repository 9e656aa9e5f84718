/* SPDX-License-Identifier: MIT */
/* What the recorder in front of a real driver (intercept.c) asks of this library, which it opens beside itself: modules,
 * kernels, tensor maps and the file are the same whoever runs the launches. */
#ifndef CPTX_SANITIZE_HELPER_H
#define CPTX_SANITIZE_HELPER_H

#include "record.h"

typedef struct san_helper {
	/* Under which the others are called; the first time it opens an emulator of the GPU's compute capability.  False: it is
	 * not there, which was said. */
	bool (*enter)(unsigned compute_capability, const san_memory_source *source);
	void (*leave)(void);
	/* An image as cuModuleLoadData or cuLibraryLoadData takes it, or a file of one; NULL: memory is short. */
	san_module *(*image)(const void *image);
	san_module *(*file)(const char *path);
	void (*gone)(san_module *m);
	/* A kernel of the module; NULL: it has none of that name whose PTX is there.  Module NULL: of any. */
	san_kernel *(*kernel)(san_module *m, const char *name);
	void (*gained)(uint64_t at, void *host, size_t size, int type); /* memory that the program has now */
	void (*lost)(uint64_t at);                                      /* or the host's address of it */
	void (*unmapped)(uint64_t at, size_t size);                     /* all or parts of blocks */
	bool (*knows)(uint64_t at);
	bool (*next)(const char *kernel); /* counts a launch; whether it is to be recorded, by `before` or `left` */
	bool (*before)(san_kernel *k, const san_shape *shape, void **args, void **extra, void (*change)(void *bytes, size_t n));
	void (*after)(int error);
	void (*left)(const char *kernel, const char *why);
	void (*config)(san_shape *shape, const dr_launch_config *c);
} san_helper;

SAN_API const san_helper *san_recorder(void);

#endif
