/* SPDX-License-Identifier: MIT */
/* What the files of attention for decoding share. */
#ifndef CPTX_ATTENTION_DECODE_DECODE_H
#define CPTX_ATTENTION_DECODE_DECODE_H

#include "attention/attention.h"

#include <cptx/attention_decode.h>

enum {
	DECODE_MOST_SPLITS = 256,
	DECODE_MOST_QUERIES = 16,
	DECODE_COMBINE_WARPS = 8,                        /* of a CTA that combines: each has columns of a row */
	DECODE_COMBINED = 8,                             /* chunks whose results such a warp loads together */
	DECODE_VECTOR = ATTENTION_VECTOR,                /* columns of O that a thread has side by side */
	DECODE_COMBINE_COLS = CPTX_WARP * DECODE_VECTOR, /* of a warp that combines */
	DECODE_MLA_GROUPS = 2,    /* MMA warpgroups of multi-head latent attention, each with half of the columns of O */
	DECODE_MLA_ROWS = 64,     /* of its tile, and keys of its block */
	DECODE_MLA_IN_REGS = 64,  /* the last columns of Q behind those of V stay in registers */
	DECODE_MLA_EXCHANGED = 8, /* bytes of the numbers of a thread's rows, that the warpgroups tell one another */
	DECODE_PAD = 8            /* floats behind each row of O in shared memory, so that rows begin in other banks */
};

/* What follows from the options. */
typedef struct decode_shape {
	uint32_t dim, dim_v; /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t threads;
	cptx_tile q, k, v;            /* a block in shared memory; of MLA a half of V's columns: of Q, of K, and as V */
	uint32_t half, rest;          /* of MLA: columns of a half of V, and of K behind both */
	cptx_tile q_rest, k_rest;     /* of MLA: the rest but for its last columns, which may be none */
	cptx_tile q_last, k_last;     /* of MLA: these; Q has them in registers, which leaves its memory to P */
	cptx_tile rest_block, p;      /* of MLA: all of the rest of a block, and a warpgroup's P */
	uint32_t q_bytes;             /* of MLA: what Q takes of shared memory */
	uint32_t k_bytes, v_bytes;    /* of it */
	uint32_t ring, results, smem; /* bytes: of a warp's stages of K and V; of all warps' O; of the CTA */
	uint32_t regs;                /* of a thread, for Q, S and O */
	uint32_t pitch;               /* floats of a row of O in shared memory */
	uint32_t ctas_per_sm;         /* that shared memory and registers leave room for */
} decode_shape;

/* What a launch fills the parameters from, which have the names of its members; both kernels have all of them. */
#define DECODE_HOST_CPTX_PTR uint64_t
#define DECODE_HOST_CPTX_U64 uint64_t
#define DECODE_HOST_CPTX_U32 uint32_t
#define DECODE_HOST_CPTX_F32 float
typedef struct decode_args {
#define DECODE_PARAM(type, name) DECODE_HOST_##type name;
#include "attention/decode/params.def"
} decode_args;
/* The table of them: DECODE_PARAMS rows. */
extern const cptx_param_row decode_params[];
enum {
#define DECODE_PARAM(type, name) DECODE_PARAM_##name,
#include "attention/decode/params.def"
	DECODE_PARAMS
};

/* A tensor map behind them, for MLA. */
typedef struct decode_maps {
	cptx_tensor_map_opt k_map;
} decode_maps;
enum { DECODE_MAPS = 1 };
extern const cptx_param_row decode_map_params[DECODE_MAPS];

/* Their values in a kernel. */
typedef struct decode_in {
	const cptx_attention_decode_opt *opt;
	decode_shape s;
	cptx_params params;
#define DECODE_PARAM(type, name) cptx_val name;
#include "attention/decode/params.def"
} decode_in;

/* The keys of a sequence that its chunks have. */
typedef struct decode_range {
	cptx_val length, first; /* .u32: keys there are; the first that counts for any query, or one of its block in front */
} decode_range;

/* The work of a CTA: a tile of packed rows, and a chunk of the keys. */
typedef struct decode_work {
	cptx_val split, tile, kv_head, batch; /* .u32 */
	cptx_val row0;                        /* .u32, of its packed rows */
	cptx_val first, end;                  /* .u32, the chunk's first key, and behind its last */
	decode_range range;
} decode_work;

/* Which keys count for the rows that a thread has, and which blocks need to look. */
typedef struct decode_limits {
	attention_rows rows;
	cptx_val masked_from, masked_to; /* .s32: blocks that reach behind the one, or begin in front of the other */
} decode_limits;

/* Completes options for a target (NULL: sm_90a) and checks them. */
bool decode_read(cptx_attention_decode_opt *o, const cptx_attention_decode_opt *given, const cptx_target *target,
                 cptx_attention_decode_plan *plan, cptx_error *err);
/* Reads a problem, fills in what 0 stands for, and checks it against completed options. */
bool decode_read_problem(cptx_attention_decode_problem *p, const cptx_attention_decode_problem *given,
                         const cptx_attention_decode_opt *o, cptx_error *err);
decode_shape decode_shape_of(const cptx_attention_decode_opt *o, const cptx_target *target);
/* Keys of a sequence that are read: with a window fewer than there are. */
uint32_t decode_keys_read(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p, uint64_t keys);
/* Completes the plan of the options for a problem that was read: splits where there are none, and what follows. */
bool decode_plan_problem(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                         const cptx_target *target, uint32_t sms, cptx_attention_decode_plan *plan, cptx_error *err);
/* The number of splits that takes least by the model, and what it says. */
cptx_attention_decode_choice decode_choose(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                                           const cptx_target *target, uint32_t sms);
/* Keys that a CTA has at once: a block of each warp, or with .mla warpgroup. */
static inline uint32_t decode_turn(const cptx_attention_decode_opt *o)
{
	return o->bk * (o->mla ? DECODE_MLA_GROUPS : o->warps);
}
/* Bytes of a key in the cache. */
uint32_t decode_key_bytes(const cptx_attention_decode_opt *o);
/* Keys of a chunk where a sequence with so many is split: whole turns of all warps. */
uint32_t decode_chunk_of(const cptx_attention_decode_opt *o, uint32_t keys, uint32_t splits);

void decode_declare(cptx_kernel *k, decode_in *in, const cptx_attention_decode_opt *o);
decode_range decode_range_of(cptx_kernel *k, const decode_in *in, cptx_val batch);
decode_work decode_locate(cptx_kernel *k, const decode_in *in);
/* Of a sequence that has fewer chunks than others, the rest have nothing to do; a single chunk writes its results. */
cptx_val decode_has_work(cptx_kernel *k, const decode_in *in, const decode_work *w);
decode_limits decode_limits_of(cptx_kernel *k, const decode_in *in, const decode_work *w, const cptx_acc *sums);
/* Makes scores of the products of the block from `key` on (.s32), before the softmax. */
void decode_scores_of(cptx_kernel *k, const decode_in *in, const decode_limits *l, const cptx_acc *sums, cptx_val key);
/* The address of packed row r of the head among the results of all chunks, `bytes` each. */
cptx_val decode_part_of(cptx_kernel *k, const decode_in *in, const decode_work *w, cptx_val parts, cptx_val r,
                        uint32_t bytes);
/* Where a row of O is, .u64: row r of the packed rows of a head of K and V. */
cptx_val decode_row_of(cptx_kernel *k, const decode_in *in, cptx_val batch, cptx_val kv_head, cptx_val r, cptx_val base,
                       cptx_val batch_stride, cptx_val head_stride, cptx_val row_stride);
/* The address in LSE of row r of a tile. */
cptx_val decode_lse_of(cptx_kernel *k, const decode_in *in, cptx_val batch, cptx_val kv_head, cptx_val r);

cptx_kernel *decode_build_main(cptx_module *m, const cptx_attention_decode_opt *o);
cptx_kernel *decode_build_mla(cptx_module *m, const cptx_attention_decode_opt *o);
void decode_build_combine(cptx_module *m, const cptx_attention_decode_opt *o, const char *name);

static inline uint32_t decode_dim_v(const cptx_attention_decode_opt *o) { return o->dim_v ? o->dim_v : o->dim; }
/* Warps that share a row in the second kernel. */
static inline uint32_t decode_combine_parts(const cptx_attention_decode_opt *o)
{
	return attention_up(decode_dim_v(o), DECODE_COMBINE_COLS);
}
/* Warps that share the chunks of the same columns: a power of two, so that each loads all that it has at once. */
static inline uint32_t decode_sharers(uint32_t splits)
{
	uint32_t n = 1;

	while (n < DECODE_COMBINE_WARPS && n * DECODE_COMBINED < splits)
		n *= 2;
	return n;
}
static inline enum cptx_type decode_out(const cptx_attention_decode_opt *o) { return o->out ? o->out : o->in; }

#endif
