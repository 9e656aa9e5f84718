/* SPDX-License-Identifier: MIT */
/* Global memory in front of a launch that is executed again and again, and what its orders leave there. */
#ifndef CPTX_EMU_CORE_EXPLORE_MEMORY_H
#define CPTX_EMU_CORE_EXPLORE_MEMORY_H

#include "base/base.h"
#include "emu/core/machine.h"
#include "emu/memory/alloc.h"

typedef struct emu_kept_alloc {
	uint64_t at, size;
	unsigned char *bytes, *defined;
} emu_kept_alloc;

typedef struct emu_kept_memory {
	emu_kept_alloc *a;
	size_t n;
	uint64_t next_at, launches;
	cptx_emu_counters counters;
} emu_kept_memory;

typedef struct emu_memory_difference {
	uint64_t bytes;      /* that differ; 0: none */
	const emu_alloc *in; /* where the first one is */
	uint64_t offset;
	unsigned char was, is;
	bool was_defined, is_defined; /* false: it was never written */
} emu_memory_difference;

bool emu_memory_keep(const emu_machine *m, emu_kept_memory *k); /* false: memory is short */
/* False: the launch freed memory, which cannot be given back. */
bool emu_memory_restore(emu_machine *m, const emu_kept_memory *k);
void emu_memory_forget(emu_kept_memory *k);
/* How memory differs from what was kept, in allocations that are in both. */
void emu_memory_compare(const emu_machine *m, const emu_kept_memory *k, emu_memory_difference *d);
void emu_memory_put_difference(buf *b, const emu_memory_difference *d);

#endif
