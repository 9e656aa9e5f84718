/* SPDX-License-Identifier: MIT */
/* The state of a kernel's frame while it is built: core.c, and ring.c for rows in shared memory. */
#ifndef CPTX_ROWS_CORE_H
#define CPTX_ROWS_CORE_H

#include "rows/rows.h"

#include <cptx/pipeline.h>

/*
 * Stages of shared memory that bulk copies fill with rows, ahead of the one that is worked on.  A stage has the parts of one
 * row of each group of the CTA's threads, operand behind operand.  Behind the stages lie the vectors that all rows share.
 */
typedef struct rows_ring {
	cptx_pipe pipe, vectors;
	cptx_pipe_at to, from, cursor; /* cursor: of a pass that leaves chunks for a later one */
	cptx_val at, stage;            /* .u32 addresses: of stage 0, of the stage that is worked on */
	cptx_val policy;               /* of L2, for what is read once */
	cptx_val next;                 /* first row of the CTA that is to be copied next */
	cptx_val copies, leads;        /* predicates: the warp that copies, and its first thread */
	bool released;                 /* the stage of this row has been read, and asked for a later row */
	bool there;                    /* chunks: a pass has waited for those of this row */
} rows_ring;

static inline bool rows_none(cptx_val v) { return v.kind == CPTX_VAL_NONE; }

struct cptx_rows_row {
	cptx_kernel *k;
	const cptx_rows_opt *o;
	rows_shape s;
	cptx_params params;
	cptx_val at[CPTX_ROWS_OPERANDS], stride[CPTX_ROWS_OPERANDS];
	cptx_val begin[CPTX_ROWS_OPERANDS]; /* addresses of this CTA's part of the row */
	cptx_val rows, units;               /* of the problem; CTAs or clusters of the grid */
	cptx_val unit, group, thread;       /* of the CTA or cluster; of the row in the CTA; in the row */
	cptx_val part, workspace;           /* rows in parts: number of the CTA's; where what is found of parts lies */
	bool combines;                      /* rows in parts: the second launch is built */
	uint32_t reductions;                /* rows in parts: of the body so far */
	cptx_val list;                      /* .u32 shared address of the lists of top-k */
	cptx_val row;                       /* number of the row */
	cptx_val first, count;              /* column and number of columns of this CTA's part; NONE: from 0, all of .part */
	cptx_val there;                     /* the row exists; NONE: it does */
	cptx_val turn, here;                /* rows in memory: column of the turn in the part, its columns */
	uint32_t turn_at;                   /* rows in shared memory that are read again: number of the turn */
	cptx_row base, sums, have[CPTX_ROWS_OPERANDS]; /* sums: what those of sums of columns are like */
	cptx_row kept[ROWS_MOST_HELD + 1]
				 [CPTX_ROWS_OPERANDS];      /* chunks: by turn those of `have`; the last: of all other turns */
	uint32_t made_kept[ROWS_MOST_HELD + 1]; /* sets */
	uint32_t made, loaded;                  /* sets */
	rows_ring ring;
	cptx_reduce all;
	cptx_val step; /* rows to the next one of this CTA; NONE: it has one row */
	cptx_val scalar[CPTX_ROWS_OPERANDS],
		ahead[CPTX_ROWS_OPERANDS]; /* of CTAs that take many rows: of this row, of the next */
	/* the pass */
	cptx_rows_pass pass;
	bool open, prefetches;
	uint32_t *set;   /* what the body has written so far; NULL: nobody asks */
	bool read_alone; /* threads read elements that others of the warp have, and may overwrite behind the next reduction */
	cptx_row_at it;
};

void rows_declare(cptx_rows_row *r);
/* Stores the thread's elements of a row in registers as .e2m1. */
void rows_store_packed(const cptx_rows_row *r, unsigned operand);
/* Scalars of the row come from the registers where they were loaded with the row before, and those of the next one are
 * loaded: a CTA with many rows does not wait for them.  first: there was no row before. */
void rows_load_scalars(cptx_rows_row *r, cptx_val row, bool first);
/* The thread's row; where there is none, the last one. */
cptx_val rows_row_to_read(cptx_kernel *k, cptx_site at, const cptx_rows_row *r);
/* Where a part of a row begins in the workspace, which may have more than 4 GiB. */
cptx_val rows_part_at(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, cptx_val row, cptx_val part);
/* The second launch of top-k, in a kernel with its parameters: the largest of what the parts have. */
void rows_build_combine_top_k(cptx_rows_row *r);
/* A reduction of rows in parts: over the CTA, and kept for the second launch; in that, over the parts. */
void rows_part_reduce(cptx_kernel *k, cptx_site at, cptx_rows_row *r, cptx_val v, enum cptx_reduce_op op);

/* Declares the shared memory and begins to fill it with the CTA's rows from `first` on. */
void rows_ring_begin(cptx_rows_row *r, cptx_val first);
/* Waits for the row's stage. */
void rows_ring_wait(cptx_rows_row *r);
/* Behind a reduction: a stage that registers keep has been read, and is filled with a later row. */
void rows_ring_reduced(cptx_rows_row *r);
/* Behind the row. */
void rows_ring_next(cptx_rows_row *r);
/* Of chunks: goes to that of the turn, waits for it where no pass has; and lets it go behind the turn, where the pass is
 * the last one that reads it. */
void rows_ring_turn_begin(cptx_rows_row *r);
void rows_ring_turn_end(cptx_rows_row *r);
/* Of chunks: behind a pass that reads them. */
void rows_ring_pass_end(cptx_rows_row *r);
/* The .u32 shared address of the thread's part of an operand's row, or of a vector. */
cptx_val rows_ring_address(const cptx_rows_row *r, unsigned operand);

#endif
