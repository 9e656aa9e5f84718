/* SPDX-License-Identifier: MIT */
/* What the files about the flow of a body share. */
#ifndef CPTX_INSPECT_FLOW_H
#define CPTX_INSPECT_FLOW_H

#include "inspect/said.h"

enum { FLOW_FAR = -1 }; /* no such successor */
enum {
	FLOW_MOST_SETS = 1 << 24, /* words of all sets of registers alive, one for each block: 128 MiB */
	FLOW_MOST_STEPS = 1 << 28 /* to find loops: heads times blocks */
};

/* Instructions that are entered at the first and left behind the last. */
typedef struct flow_block {
	uint32_t first, end;  /* points */
	int32_t next, branch; /* blocks: behind it, where it jumps to; FLOW_FAR */
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
	uint32_t *label_block; /* of each label, IR_NONE */
	cptx_loop *loop;
	size_t nloop, cap_loop;
	bool too_large; /* FLOW_MOST_SETS, FLOW_MOST_STEPS */
	uint32_t hottest, peak, peak_at, registers;
	uint32_t conflicts, shared_known, shared_accesses;
	cptx_shared_var *shared;
	uint32_t *shared_of; /* of each symbol of the body, then of the module; UINT32_MAX: it is not there */
	cptx_barrier_set *set;
	cptx_stage_use *use;
	size_t nshared, cap_shared, nset, nuse;
};

/* How many a list of <cptx/inspect.h> has, also to whom wants it: without one its first is NULL. */
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
bool flow_live(cptx_flow *f);   /* fills live, predicates, peak, registers */
bool flow_banks(cptx_flow *f);  /* fills conflicts */
bool flow_shared(cptx_flow *f); /* fills shared */
bool flow_stages(cptx_flow *f); /* fills set and use; behind flow_shared */

/* Where an address of shared memory lies, or what a number is, as far as the text tells: address.c */
enum flow_where_kind { WHERE_UNKNOWN, WHERE_NUMBER, WHERE_VARIABLE, WHERE_SELF }; /* SELF: what is asked, in a loop */
typedef struct flow_where {
	enum flow_where_kind kind;
	bool varies;     /* by what is not constant, which is taken as 0 */
	uint32_t sym;    /* VARIABLE */
	int64_t offset;  /* or the number */
	uint32_t stride; /* of a step of what varies; 0: not known */
} flow_where;
typedef struct flow_tracer flow_tracer;
flow_tracer *flow_tracer_of(cptx_flow *f); /* in the arena */
flow_where flow_where_is(flow_tracer *t, const cptx_val *address);
enum cptx_unit flow_unit(const cptx_kernel *k, const ir_item *it);
double flow_cost(const cptx_kernel *k, const ir_item *it, enum cptx_unit unit);

#endif
