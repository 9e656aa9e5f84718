/* SPDX-License-Identifier: MIT */
/* Emulated devices and the programs that they have; src/runtime makes a device of it (machine.c). */
#ifndef CPTX_EMU_CORE_MACHINE_H
#define CPTX_EMU_CORE_MACHINE_H

#include "emu/core/grid.h"
#include "emu/memory/alloc.h"

/* A finding that the machine keeps. */
typedef struct emu_kept {
	cptx_emu_finding f;               /* the count goes on */
	const cptx_emu_finding *snapshot; /* as callers last got it */
	const emu_op *op;                 /* that was executed; NULL: a call of the host program was wrong */
} emu_kept;

/* A launch by a kernel, from the time on when it has room for its parameters. */
typedef struct emu_child {
	struct emu_child *next, *prev;
	const cptx_kernel *kernel;
	emu_program *program;
	launch_shape shape;
	uint64_t buffer; /* address of the parameters */
} emu_child;

typedef struct emu_children {
	emu_child *asked;        /* those that have room for parameters and were not launched, in any order */
	emu_child *first, *last; /* those that were, in their order */
	uint32_t made;           /* since the host program's launch */
} emu_children;

/* Where the next program that is loaded is to have a variable. */
typedef struct emu_wish {
	char *name;
	uint64_t at; /* 0: it was granted */
} emu_wish;

/* What came of the last launch of which all orders were wanted. */
typedef struct emu_explored {
	const char *kernel;
	uint64_t orders, left, found, events, differs;
	unsigned switches;
	bool all;
	const char *text;
	const char *difference;           /* of what order `differs` leaves from what the first one does; NULL: none */
	uint64_t differ_bytes, differ_at; /* how many bytes, the address of the first */
	const char *why, *how;            /* why: its orders were not explored, or not to their end; NULL: they were */
} emu_explored;

struct emu_machine {
	const cptx_target *target;
	uint32_t sms; /* that %nsmid tells */
	cptx_emu_opt opt;
	emu_alloc **alloc; /* by address */
	size_t nalloc, cap_alloc;
	uint64_t next_at, bytes, heap /* bytes that malloc in kernels has given */;
	emu_freed *freed; /* the latest, in a ring */
	uint64_t nfreed;  /* ever */
	size_t nclosed;   /* of alloc: freed, but still there */
	bool again;       /* addresses that were freed are given again */
	unsigned number;  /* of the device that launches and allocates, of several */
	uint64_t reach;   /* of new allocations; 0: all devices */
	bool running;     /* a launch is under way, in the thread that holds the device's lock */
	emu_wish *wish;
	size_t nwish, cap_wish;
	struct emu_texture **texture; /* by number; NULL: its handle was freed */
	size_t ntexture, cap_texture;
	emu_kept *finding;
	size_t nfinding, cap_finding, nwarning;
	arena text; /* of findings */
	uint64_t launches;
	emu_explored explored;
	emu_children children;
	bool in_children;
	bool broken; /* a launch faulted: as on a GPU, nothing more can be launched */
	cptx_emu_counters counters;
	cptx_emu_profile *profile;
	size_t nprofile;
	uint64_t profile_since; /* counts clearings, from 1 on */
};

/* The offset of a module's variable in the .shared of an image. */
typedef struct emu_placed {
	const emu_image *image;
	uint32_t at;
} emu_placed;

struct emu_program {
	emu_machine *machine;
	cptx_module *module;
	cptx_ptx *ptx; /* of a built module: where its lines come from */
	arena a;
	emu_image **image; /* of each body, by number - 1; NULL: not yet */
	/* What the image that is being made has of each body, by number - 1, and of each variable, by id.  What is another
	 * image's counts for nothing: so an image takes as long as what it reaches is large, and not the whole module. */
	emu_function **reached;
	emu_placed *placed;
	const cptx_kernel **in_tables; /* bodies whose address stands in memory */
	size_t nin_tables;
	uint32_t
		*def; /* of each variable, by id: that which defines it, itself if it is no other text's; IR_NONE: nothing does */
	uint64_t *sym_at;  /* addresses of global and constant variables, by id */
	uint64_t **own_at; /* of those declared in bodies, by number of the body and id */
};

emu_machine *emu_machine_new(const cptx_target *target, const cptx_emu_opt *opt);
void emu_machine_free(emu_machine *m);
/* Takes the module and the text over, also where it fails. */
emu_program *emu_program_new(emu_machine *m, cptx_module *parsed, cptx_ptx *ptx, cptx_site at, cptx_error *err);
void emu_program_free(emu_program *p);
uint64_t emu_program_variable(const emu_program *p, const char *name, uint64_t *size); /* its address, or 0 */
/* Variable i of all that are in global and constant memory; its address, 0 behind the last. */
uint64_t emu_program_variable_at(const emu_program *p, size_t i, const char **name, uint64_t *size);
/* Keeps a wish; false: memory is short. */
bool emu_wish_add(emu_machine *m, const char *variable, uint64_t at);
void emu_wishes_drop(emu_machine *m);
/* The variable of the module that defines the one of that number, of which a kernel takes the address; *ok false, with an
 * error: nothing does. */
uint32_t emu_program_definition(const emu_program *p, uint32_t sym, const char *kernel, cptx_site at, cptx_error *err,
                                bool *ok);
/* Decoded; NULL with an error. */
emu_image *emu_program_image(emu_program *p, const cptx_kernel *k, cptx_site at, cptx_error *err);
/* The kernel of that name as the host program knows it: of several texts' own ones none.  NULL with an error. */
const cptx_kernel *emu_program_kernel(const emu_program *p, const char *name, cptx_site at, cptx_error *err);

#endif
