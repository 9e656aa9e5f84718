/* SPDX-License-Identifier: MIT */
/* Recording launches (record.c). */
#ifndef CPTX_SANITIZE_RECORD_H
#define CPTX_SANITIZE_RECORD_H

#include "san.h"

/* Where the memory is that launches use. */
typedef struct san_memory_source {
	bool (*read)(void *to, uint64_t at, size_t size);
	/* The address there of a variable of the emulator's program; 0: it is not known. */
	uint64_t (*variable)(const san_module *m, const cptx_emu_variable_info *v);
	const char *device; /* name of the GPU; NULL: the emulator */
	unsigned driver;    /* version of its driver */
} san_memory_source;

void san_record_from(const san_memory_source *source); /* in place of the emulator; it stays the caller's */
bool san_records(void);                                /* something is recorded in this process */
bool san_record_next(const char *kernel);              /* counts a launch; whether it is to be recorded, by one of these: */
/* In front of a launch and behind it.  False: it is not recorded, and san_record_after must not be called. */
bool san_record_before(san_kernel *k, const san_shape *shape, void **values);
void san_record_after(int error);
const char *san_record_bars(const san_kernel *k);          /* why its launches cannot be recorded; NULL: they can */
void san_record_unloaded(const san_module *m);             /* its memory is gone, and its addresses may be used again */
void san_record_left(const char *kernel, const char *why); /* it cannot be recorded */

#endif
