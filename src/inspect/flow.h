/* SPDX-License-Identifier: MIT */
/* Declarations that the files about the flow of a body share. */
#ifndef CPTX_INSPECT_FLOW_H
#define CPTX_INSPECT_FLOW_H

#include "inspect/remark.h"

enum { FLOW_FAR = -1 }; /* the block has no such successor */
enum {
	FLOW_MOST_SETS = 1 << 24, /* most words of all live sets, one set for each block: 128 MiB */
	FLOW_MOST_STEPS = 1 << 28 /* most steps to find loops: heads times blocks */
};

/* A basic block: instructions that are entered at the first and left behind the last. */
typedef struct flow_block {
	uint32_t first, end;  /* numbers of the first point, and of the one behind the last */
	int32_t next, branch; /* numbers of the block behind it, and of the block it branches to; or FLOW_FAR */
	const cptx_val *many; /* labels of a brx.idx, or NULL */
	uint32_t nmany;
} flow_block;

struct cptx_flow {
	arena a;
	const cptx_kernel *k;
	cptx_point *point;
	size_t npoint;
	flow_block *block;
	size_t nblock, cap_block;
	uint32_t *label_block; /* of each label its block, or IR_NONE */
	cptx_loop *loop;
	size_t nloop, cap_loop;
	bool too_large; /* FLOW_MOST_SETS or FLOW_MOST_STEPS was exceeded */
	uint32_t hottest, peak, peak_at, registers;
	uint32_t conflicts, shared_known, shared_accesses;
	cptx_shared_var *shared;
	uint32_t *shared_of; /* of each symbol of the body, then of the module, its number in `shared`; UINT32_MAX: none */
	cptx_barrier_set *set;
	cptx_stage_use *use;
	size_t nshared, cap_shared, nset, nuse;
};

/* Returns the length of a list of <cptx/inspect.h>, and sets *n to it; without n the caller reads no list. */
static inline size_t flow_count(size_t count, size_t *n)
{
	if (n)
		*n = count;
	return count;
}

/* Calls fn for each successor of a block. */
typedef void (*flow_next_fn)(cptx_flow *f, uint32_t block, uint32_t next, void *user);
void flow_each_next(cptx_flow *f, uint32_t block, flow_next_fn fn, void *user);
bool flow_loops(cptx_flow *f);
bool flow_live(cptx_flow *f);   /* computes live, predicates, peak and registers */
bool flow_banks(cptx_flow *f);  /* computes conflicts */
bool flow_shared(cptx_flow *f); /* fills shared */
bool flow_stages(cptx_flow *f); /* fills set and use; needs flow_shared */

/* The place that an address of shared memory points to, or a number, as far as the text tells (address.c) */
enum flow_where_kind {
	WHERE_UNKNOWN,
	WHERE_NUMBER,
	WHERE_VARIABLE,
	WHERE_SELF
}; /* SELF: the register that is asked for, within a loop */
typedef struct flow_where {
	enum flow_where_kind kind;
	bool varies;     /* it also depends on values that are not constant, which count as 0 */
	uint32_t sym;    /* WHERE_VARIABLE: the symbol */
	int64_t offset;  /* offset in the variable, or the number */
	uint32_t stride; /* bytes per step of what varies; 0: unknown */
} flow_where;
typedef struct flow_tracer flow_tracer;
flow_tracer *flow_tracer_of(cptx_flow *f); /* allocated in the arena */
flow_where flow_where_is(flow_tracer *t, const cptx_val *address);
enum cptx_unit flow_unit(const cptx_kernel *k, const ir_item *it);
double flow_cost(const cptx_kernel *k, const ir_item *it, enum cptx_unit unit);

#endif
