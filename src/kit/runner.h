/* SPDX-License-Identifier: MIT */
/*
 * What the runners of the generators (cptx_gemm_run, cptx_attention_run, cptx_rows_run) share: a device, a lock, and lists
 * of what earlier calls left.  What a generator knows of its options stands behind these structs, which are the first
 * members of its own.
 */
#ifndef CPTX_KIT_RUNNER_H
#define CPTX_KIT_RUNNER_H

#include "base/base.h"

#include <cptx/device.h>
#include <cptx/tune.h>

#include <pthread.h>

/* An entry of a list. */
typedef struct kit_kept {
	struct kit_kept *next;
	char *name;            /* a copy of the options' .name, for the options of the entry; NULL: they have none */
	cptx_program *program; /* NULL: the entry has none of its own */
} kit_kept;

typedef struct kit_runner {
	cptx_device *dev;
	const cptx_target *target; /* of the device; NULL: this library knows none that fits */
	cptx_cache *cache;
	pthread_mutex_t lock; /* for all below, and what the generator has behind it */
	kit_kept *kernels;    /* with programs */
	/* the tuning database: tuned.c */
	cptx_tune_use use;
	cptx_tune *db;
	bool knows_db, owns_db;
} kit_runner;

/* A zeroed struct of `size` bytes that begins with a runner; NULL, with an error, when memory is short. */
void *kit_runner_new(size_t size, cptx_device *dev, cptx_cache *cache, cptx_error *err);
/* Frees the struct, its kernels and their programs; NULL is allowed. */
void kit_runner_destroy(kit_runner *r);

/* Sets the runner's database and policy. */
bool kit_runner_set_tune(kit_runner *r, const cptx_tune_use *use, cptx_error *err);

/* A zeroed struct of `size` bytes that begins with an entry, in no list yet; NULL, with an error, when memory is short. */
void *kit_kept_new(size_t size, const char *name, cptx_error *err);
/* Frees an entry and those behind it, with their programs; NULL is allowed. */
void kit_kept_free(kit_kept *list);
/* Compiles and loads the module as the entry's program, and puts the entry in front of the kernels. */
bool kit_runner_load(kit_runner *r, kit_kept *kernel, cptx_module *m, cptx_error *err);
/* What a generator knows of its kernels: entries of `size` bytes, each with options. */
typedef struct kit_keeper {
	size_t size;
	bool (*same)(const kit_kept *kernel, const void *options);
	/* Builds the kernel of the options, and keeps these in the entry, which has a copy of their .name. */
	bool (*build)(cptx_module *m, kit_kept *kernel, const void *options, cptx_error *err);
} kit_keeper;
/* The kernel with those options, from an earlier call or made now; NULL on error.  name: a member of the options. */
const kit_kept *kit_runner_find(kit_runner *r, const kit_keeper *of, const void *options, const char *name, cptx_error *err);

#endif
