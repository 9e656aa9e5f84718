/* SPDX-License-Identifier: MIT */
/* Global memory: who has which of its addresses (alloc.c). */
#ifndef CPTX_EMU_MEMORY_ALLOC_H
#define CPTX_EMU_MEMORY_ALLOC_H

#include "emu/core/types.h"

/* A piece of global memory: an allocation, or a variable of a program. */
typedef struct emu_alloc {
	uint64_t at, size;
	unsigned char *p;
	uint8_t *defined;        /* a bit per byte; NULL: all */
	char *name;              /* of a variable; NULL: an allocation */
	struct emu_child *child; /* the launch whose parameters it is to hold; NULL: none, or it was launched */
	bool is_const;
	bool is_heap;    /* of malloc in a kernel */
	bool is_host;    /* memory of the host program, not freed here */
	bool is_unified; /* pages of the host at the device's address */
	bool shared;     /* of several programs: a managed variable */
	uint64_t reach;  /* a bit for each device that may use it */
	/* Addresses that this one stands for, of a multicast object; 0: it is none.  Only multimem may use it then. */
	uint64_t *member;
	uint32_t nmember;
	struct emu_alloc *of; /* whose bytes these are, under another address; NULL: its own */
	uint32_t aliases;     /* that have its bytes: it may not be freed */
} emu_alloc;

/* An allocation that was. */
typedef struct emu_freed {
	uint64_t at, size;
} emu_freed;

enum { EMU_ALLOC_GAP = 4096 /* bytes between allocations that belong to nobody */, EMU_WHY = 192 };
bool emu_memory_init(emu_machine *m);
void emu_memory_free(emu_machine *m);
/* 0: memory is short, or emu_alloc_fits says that the address space has no such gap. */
uint64_t emu_alloc_new(emu_machine *m, uint64_t size, uint64_t align, const char *name, bool defined);
/* Memory at an address that the caller chooses; 0: memory is short, or emu_alloc_bars says what is there. */
uint64_t emu_alloc_at(emu_machine *m, uint64_t at, uint64_t size, const char *name, bool defined);
/* Why nothing can be allocated at the address; NULL: it can.  Closed allocations are swept away. */
const char *emu_alloc_bars(emu_machine *m, uint64_t at, uint64_t size);
/* Bytes of another allocation at an address that the caller chooses; 0 as emu_alloc_at. */
uint64_t emu_alloc_alias(emu_machine *m, uint64_t at, emu_alloc *of, uint64_t offset, uint64_t size);
/* Makes memory of the host the bytes of an allocation, which copies them there; all count as written. */
void emu_alloc_back(emu_machine *m, emu_alloc *a, unsigned char *host);
/* Memory of the host as global memory, until emu_alloc_free. */
uint64_t emu_alloc_map(emu_machine *m, void *host, uint64_t size);
/* New memory, zero, at one address for kernels and the host program.  0: memory is short, or the host has that address in
 * use. */
uint64_t emu_alloc_unified(emu_machine *m, uint64_t size, const char *name);
bool emu_alloc_free(emu_machine *m, uint64_t at);
bool emu_alloc_fits(const emu_machine *m, uint64_t size);
/* No byte lies in it any more (p is NULL), but warps may still remember it, until emu_alloc_sweep behind the launch. */
void emu_alloc_close(emu_machine *m, emu_alloc *a);
void emu_alloc_sweep(emu_machine *m);                         /* takes the closed ones away */
emu_alloc *emu_alloc_find(const emu_machine *m, uint64_t at); /* that holds the byte; NULL: none */
/* The last that begins at the address or in front of it, and the next behind; NULL: none. */
emu_alloc *emu_alloc_near(const emu_machine *m, uint64_t at, const emu_alloc **next);
const emu_freed *emu_freed_at(const emu_machine *m, uint64_t at); /* that held the byte; NULL: none that is remembered */
/* Why the address cannot be freed by a kernel (heap) or the host program; NONE: it can. */
enum cptx_finding_code emu_free_wrong(const emu_machine *m, uint64_t at, bool heap, char why[EMU_WHY]);

#endif
