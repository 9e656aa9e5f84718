/* SPDX-License-Identifier: MIT */
/* Declarations that the reading of remarks and the finding of their places share. */
#ifndef CPTX_INSPECT_REMARK_H
#define CPTX_INSPECT_REMARK_H

#include "ir/ir.h"

#include <cptx/inspect.h>

/* The instruction that a remark without a line is about. */
enum remark_place {
	PLACE_NOWHERE,
	PLACE_LINE,       /* the remark has a line */
	PLACE_WGMMA,      /* the first wgmma.mma_async */
	PLACE_CALL,       /* the first call with wgmma.mma_async in front */
	PLACE_SETMAXNREG, /* the first setmaxnreg */
	PLACE_PEAK,       /* where most registers are alive */
	/* instructions between a wgmma.mma_async and the wgmma.wait_group behind it that write registers of its A, or read or
	   write its accumulators */
	PLACE_WRITES_FRAGMENT,
	PLACE_READS_ACCUMULATOR,
	PLACE_WRITES_ACCUMULATOR
};

typedef struct remark_row {
	const char *topic, *words, *advice;
	enum cptx_severity severity;
	bool as_is; /* the severity is ptxas's own */
	enum remark_place place;
} remark_row;
/* The row of a message; NULL if there is none. */
const remark_row *remark_find(const char *text, size_t n);

/* ---- place.c ---- */
/* The line of the text with the instruction of the function that such a remark is about; 0: there is none. */
uint32_t remark_line(const cptx_module *m, const char *function, enum remark_place place);

/* ---- loc.c: which line of the user's each line of PTX comes from, by .file and .loc ---- */
typedef struct loc_map {
	arena a;
	cptx_site *line; /* the user's line of each line of the text, by number - 1 */
	size_t n;
} loc_map;
bool loc_read(loc_map *l, const char *ptx, size_t size);
void loc_free(loc_map *l);

/* ---- flow.c ---- */
/* Whether operand i of an instruction is written (flow_writes), is read (flow_reads). */
bool flow_writes(const ir_item *it, unsigned i);
bool flow_reads(const ir_item *it, unsigned i);

#endif
