/* SPDX-License-Identifier: MIT */
/* What the files of attention backward share. */
#ifndef CPTX_ATTENTION_BACKWARD_BACKWARD_H
#define CPTX_ATTENTION_BACKWARD_BACKWARD_H

#include "attention/attention.h"

#include <cptx/attention_backward.h>
#include <cptx/pipeline.h>

enum {
	BACKWARD_PAD = 128,     /* rows of a head in the workspace are a multiple of this, and of every block */
	BACKWARD_ROW_WARPS = 4, /* of a CTA that prepares or rounds: each has a row */
	BACKWARD_DQ_ROWS = 64,  /* queries of a CTA of the deterministic dQ: 16 for each warp */
	BACKWARD_DQ_KEYS = 64,  /* keys of its blocks */
	BACKWARD_DQ_STAGES = 2,
	BACKWARD_GROUPS = 2, /* MMA warpgroups by wgmma, each with 64 keys */
	BACKWARD_GROUP_THREADS = 128,
	BACKWARD_PARTS = 2 /* of dQ in shared memory: one for each warpgroup, or two by turns of the one that makes all */
};

/* What follows from the options. */
typedef struct backward_shape {
	uint32_t dim; /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t warps, threads;
	cptx_tile q, q_t, k, k_t, p; /* blocks in shared memory as they are, and as operands whose K they lie along; dS^T */
	uint32_t stats_bytes;        /* of a block's LSE and delta */
	uint32_t smem, dq_smem;      /* of the second kernel; of the third */
	/* wgmma */
	cptx_tile p_t;       /* dS^T as the A of dQ, with queries along M */
	bool dq_apart;       /* a warpgroup of its own makes dQ, and V is in registers: of small heads, whose sums leave room */
	uint32_t dq_groups;  /* warpgroups that make dQ */
	uint32_t part_cols;  /* of a block's dQ, that one of them makes */
	uint32_t part_bytes; /* of these, f32 */
	uint32_t regs;       /* of a thread of a warpgroup that has keys */
} backward_shape;

/* What a launch fills the parameters from, which have the names of its members; all kernels have all of them. */
#define BACKWARD_HOST_CPTX_PTR uint64_t
#define BACKWARD_HOST_CPTX_U64 uint64_t
#define BACKWARD_HOST_CPTX_U32 uint32_t
#define BACKWARD_HOST_CPTX_S32 int32_t
#define BACKWARD_HOST_CPTX_F32 float
typedef struct backward_args {
#define BACKWARD_PARAM(type, name) BACKWARD_HOST_##type name;
#include "attention/backward/params.def"
} backward_args;
extern const cptx_param_row backward_params[];
enum {
#define BACKWARD_PARAM(type, name) BACKWARD_PARAM_##name,
#include "attention/backward/params.def"
	BACKWARD_PARAMS
};

/* Tensor maps, for wgmma, behind them. */
typedef struct backward_maps {
	cptx_tensor_map_opt q_map, k_map, v_map, do_map;
} backward_maps;
enum { BACKWARD_MAPS = 4 };
extern const cptx_param_row backward_map_params[BACKWARD_MAPS];

/* Their values in a kernel. */
typedef struct backward_in {
	const cptx_attention_backward_opt *opt;
	backward_shape s;
	cptx_params params;
	cptx_val q0, k0; /* .u32, with .varlen: rows of Q, and of K, in front of the sequence's */
	cptx_val work0;  /* .u64, with .varlen: rows of the workspace in front of them */
#define BACKWARD_PARAM(type, name) cptx_val name;
#include "attention/backward/params.def"
} backward_in;

/* Completes options and checks them for a target (NULL: any). */
bool backward_read(cptx_attention_backward_opt *o, const cptx_attention_backward_opt *given, const cptx_target *target,
                   cptx_attention_backward_plan *plan, cptx_error *err);
/* Reads a problem, fills in what 0 stands for, checks it against completed options, and completes their plan. */
bool backward_read_problem(cptx_attention_backward_problem *p, const cptx_attention_backward_problem *given,
                           const cptx_attention_backward_opt *o, cptx_attention_backward_plan *plan, cptx_error *err);
backward_shape backward_shape_of(const cptx_attention_backward_opt *o);
/* Whether launch `number` of a problem that was read has any CTAs. */
bool backward_has_launch(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                         const cptx_attention_backward_plan *plan, uint32_t number);
/* Rows behind one another of a head of Q, or of K and V, and how often. */
attention_extent backward_extent_of(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                    bool of_keys);
/* Rows of the workspace of the same head in all batches or sequences. */
uint64_t backward_work_rows(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p);
/* Rows of a head in the workspace, or with .varlen of the longest sequence. */
static inline uint32_t backward_pad(uint32_t queries) { return attention_up(queries, BACKWARD_PAD) * BACKWARD_PAD; }

/* ---- in kernels ---- */

void backward_declare(cptx_kernel *k, backward_in *in, const cptx_attention_backward_opt *o);
/*
 * With .varlen: from here on queries, keys and shift are those of sequence `batch`, tensors begin with its rows, and their
 * batches are 0 apart (NONE).  A sequence has a multiple of BACKWARD_PAD rows in the workspace.
 */
void backward_find_sequence(cptx_kernel *k, backward_in *in, cptx_val batch);
/* base + batch * batch_stride + head * head_stride */
cptx_val backward_head(cptx_kernel *k, cptx_val base, cptx_val batch, cptx_val batch_stride, cptx_val head,
                       cptx_val head_stride);
/* A head of Q among those that LSE and the workspace have behind one another: of all batches, or with .varlen of one. */
cptx_val backward_plane(cptx_kernel *k, const backward_in *in, cptx_val batch, cptx_val head);
/* The row (.u64) of the workspace for a row (.u32) of a plane. */
cptx_val backward_work_row(cptx_kernel *k, const backward_in *in, cptx_val plane, cptx_val row);
/* Address of LSE and delta of a row, pairs of f32 in the workspace: LSE as the exponential of 2 takes it, negated. */
cptx_val backward_stats(cptx_kernel *k, const backward_in *in, cptx_val plane, cptx_val row);

/* What a CTA of the second kernel has: a block of keys, and the queries for which any of them counts. */
typedef struct backward_tile {
	cptx_val batch, kv_head, head0, key0; /* .u32; head0: the first head of Q that shares that of K and V */
	cptx_val first, end;                  /* .u32: the first block of queries; behind the last query */
} backward_tile;
/* With .varlen a CTA without keys ends here. */
backward_tile backward_locate(cptx_kernel *k, backward_in *in);
/* Stores sums of dK or dV, of rows that there are. */
void backward_store(cptx_kernel *k, const backward_in *in, const backward_tile *t, const cptx_acc *sum, cptx_val base,
                    cptx_val batch_stride, cptx_val head_stride, cptx_val row);

/* An operand that a CTA's threads copy block after block; the matrix is another head's for each. */
typedef struct backward_source {
	cptx_operand op;
	cptx_val left; /* .u32, rows from the block's first on */
	cptx_val row;  /* .u32, bytes from row to row */
} backward_source;
backward_source backward_source_new(cptx_kernel *k, const backward_in *in, const cptx_tile *tile, uint32_t stages,
                                    cptx_val head, cptx_val row, uint32_t threads, const char *name);
/* Copies the block from row `first` on (.u32) of a head with so many rows. */
void backward_copy(cptx_kernel *k, const backward_source *s, cptx_val stage, cptx_val head, cptx_val first, cptx_val rows);

/* Where scores stand, for masks: .s32 of the first element that the thread has of a block. */
typedef struct backward_place {
	cptx_val apart; /* place of the query (query + shift) less the key; NONE: neither causal nor window */
	cptx_val keys;  /* keys from the thread's first on */
	bool by_keys;   /* rows of the accumulator are keys, else queries */
} backward_place;
/* Sets scores that do not count to minus infinity. */
void backward_mask(cptx_kernel *k, const backward_in *in, const cptx_acc *s, const backward_place *p);
/* Whether any score of a block of so many queries and keys does not count; NONE: all of all blocks count. */
cptx_val backward_is_masked(cptx_kernel *k, const backward_in *in, cptx_val query, uint32_t queries, cptx_val key,
                            uint32_t keys);

/* The product that makes a block's dQ by wgmma, whose accumulators the workspace has as threads hold them. */
void backward_dq_product(cptx_kernel *k, const backward_in *in, cptx_val group, cptx_val thread, cptx_tiled_mma *mma,
                         cptx_acc *part);
/* ---- scores: scores.c ---- */

/* The scores of a block, and where its first one stands. */
typedef struct backward_scores {
	const cptx_acc *s;
	bool by_keys;                     /* its rows are keys, else queries */
	cptx_val batch, head, query, key; /* .u32; head: of Q */
} backward_scores;

/* Whether dS is made of scores, and not of their probabilities alone. */
bool backward_keeps_scores(const cptx_attention_backward_opt *o);
/* What P is made in: S itself, or where scores are wanted again an accumulator like it. */
cptx_acc backward_probabilities_of(cptx_kernel *k, const backward_in *in, const cptx_tiled_mma *mma, const cptx_acc *s);
/* Products become what backward_probability takes: with a soft cap hyperbolic tangents; minus infinity where one does not
 * count by the user's mask. */
void backward_begin_scores(cptx_kernel *k, const backward_in *in, const backward_scores *b);
/* `into` becomes the probability of a score of b.  stat: LSE of its query, as the statistics have it. */
void backward_probability(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc_elem *e,
                          cptx_val stat, cptx_val into);
/* `of`, dP - delta, becomes dS of a score with probability p. */
void backward_derive(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc_elem *e, cptx_val of,
                     cptx_val p);
/*
 * S^T of a block becomes P^T in p, 0 where a score does not count; and dP^T becomes dS^T.  mine: shared memory address of
 * LSE and delta of the thread's first column.
 */
void backward_probabilities(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc *p,
                            cptx_val mine);
void backward_differentiate(cptx_kernel *k, const backward_in *in, const backward_scores *b, const cptx_acc *dp,
                            cptx_val mine);
/* Predicate: the user's function says that some score of the block counts; only with .blocks. */
cptx_val backward_counts(cptx_kernel *k, const backward_in *in, const backward_scores *b, uint32_t queries, uint32_t keys);

/* A place among the blocks that a CTA goes over: of queries of all heads of Q that share one of K and V (.block.by_keys), or
 * of keys of one head. */
typedef struct backward_cursor {
	backward_scores block;  /* where it is; .head and .query, or .key, are registers that advance */
	uint32_t queries, keys; /* of a block */
	cptx_val head0;         /* .u32, the first head */
	cptx_val first, end;    /* .u32: a head's first block begins at the one, and its last one ends in front of the other */
} backward_cursor;
backward_cursor backward_cursor_queries(cptx_kernel *k, const backward_in *in, const backward_tile *t, const cptx_acc *s);
/* Predicate: it is not behind the last block. */
cptx_val backward_cursor_is_there(cptx_kernel *k, const backward_in *in, const backward_cursor *c);
/* Predicate: some score of its block counts; only with .blocks. */
cptx_val backward_cursor_counts(cptx_kernel *k, const backward_in *in, const backward_cursor *c);
void backward_cursor_advance(cptx_kernel *k, const backward_cursor *c);
/* With .blocks: to the next block that counts, from this one on, or behind the last. */
void backward_cursor_skip(cptx_kernel *k, const backward_in *in, const backward_cursor *c);

cptx_kernel *backward_build_keys(cptx_module *m, const cptx_attention_backward_opt *o);
cptx_kernel *backward_build_keys90(cptx_module *m, const cptx_attention_backward_opt *o);
void backward_build_prepare(cptx_module *m, const cptx_attention_backward_opt *o, const char *name);
void backward_build_round(cptx_module *m, const cptx_attention_backward_opt *o, const char *name);
void backward_build_queries(cptx_module *m, const cptx_attention_backward_opt *o, const char *name);

#endif
