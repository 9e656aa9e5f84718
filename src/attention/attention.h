/* SPDX-License-Identifier: MIT */
/* What the attention generators share: a generator's description, parameters, tiles of queries, and scores. */
#ifndef CPTX_ATTENTION_ATTENTION_H
#define CPTX_ATTENTION_ATTENTION_H

#include "base/base.h"

#include <cptx/attention.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/softmax.h>

enum {
	ATTENTION_MOST_ROWS = 1 << 29, /* queries or keys: sums of three such numbers are .s32 */
	ATTENTION_CHUNK = 16           /* bytes that addresses and strides are multiples of */
};
#define ATTENTION_LOG2E 1.44269504088896340736

/* ---- generators ---- */

/* How Q, K, V and O lie in shared memory, and how many stages there are; the values of the kernel are not set. */
typedef struct attention_operands {
	cptx_operand_opt q, k, v;
	cptx_operand_opt k_part, v_part; /* of K and V what one load brings: with .page a part, else all of a block */
	cptx_operand_opt q_part;         /* of Q, with .pack a part */
	cptx_tile o;                     /* a subtile of O that is stored at once */
} attention_operands;

/* One of sm80, sm90, sm100. */
typedef struct attention_generator {
	const char *target;                                 /* whose rules it has */
	const char *where;                                  /* "sm_90a has" */
	enum cptx_op op;                                    /* an instruction that a target must have; 0: all have it */
	bool by_tma;                                        /* Q, K and V come by TMA; else with .tma alone */
	bool (*stores_by_tma)(const cptx_attention_opt *o); /* whether O leaves by TMA, of completed options; NULL: no */
	bool one_tile;                                      /* a CTA for each tile; else CTAs stay and take several */
	/* Fills in bq, bk, warps and stages where they are 0. */
	void (*complete)(cptx_attention_opt *o);
	/* Rules of completed options; fills in threads, smem, dims, groups and regs of the plan.  target: may be NULL. */
	bool (*check)(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err);
	cptx_kernel *(*build)(cptx_module *m, const cptx_attention_opt *o);
	attention_operands (*operands)(const cptx_attention_opt *o);
	/* The shapes to choose from that fit the options, at most `room`: bk and stages are set in each. */
	size_t (*shapes)(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room);
	/* Cycles that a multiprocessor takes for a block of keys: of the tensor cores, and of the rest. */
	void (*cycles)(const cptx_attention_opt *o, double *mma, double *softmax);
	double serial; /* the share of the shorter of the two that does not run beside the other */
} attention_generator;

extern const attention_generator attention_sm80, attention_sm90, attention_sm100;
/* NULL: there is none yet, or no such instruction. */
const attention_generator *attention_generator_of(const cptx_attention_opt *o);
/* Whether Q, K and V come by TMA, and O leaves by it: parameters are tensor maps then, else pointers and strides. */
static inline bool attention_loads_by_tma(const cptx_attention_opt *o)
{
	return o->tma || attention_generator_of(o)->by_tma;
}
static inline bool attention_stores_by_tma(const cptx_attention_opt *o)
{
	/* a tile's rows behind a sequence are another's, and packed heads lie apart */
	const attention_generator *g = attention_generator_of(o);

	return g->stores_by_tma && g->stores_by_tma(o) && !o->varlen && o->pack < 2;
}
/* Queries of a tile, of each of its heads. */
static inline uint32_t attention_tile_queries(const cptx_attention_opt *o) { return o->bq / (o->pack ? o->pack : 1); }
/* Tiles of a row of all: one for so many heads. */
static inline uint32_t attention_tile_heads(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	return p->heads / (o->pack ? o->pack : 1);
}
enum { ATTENTION_MOST_PACK = 16, ATTENTION_LEAST_QUERIES = 8 /* of a head in a tile: the rows of an atom of the swizzle */ };
static inline bool attention_can_pack(const cptx_attention_opt *o, uint32_t pack)
{
	const uint32_t queries = o->bq / pack;

	return o->bq % pack == 0 && queries >= ATTENTION_LEAST_QUERIES && !(queries & (queries - 1));
}
/* Heads that pay in a tile of these options, whose .pack is 0, for a problem that was read; 0: one. */
uint32_t attention_pack_for(const cptx_attention_opt *o, const cptx_attention_problem *p);
/* Sets them, in completed options; open: bq may change for it. */
void attention_set_pack(cptx_attention_opt *o, const cptx_attention_problem *p, bool open);

/* The rules of a message begin with "attention: ". */
#define ATTENTION_RULE(ok, ...)                                                                                             \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "attention: " __VA_ARGS__);                                          \
	while (0)

/* Reads and completes options, and checks them for the target. */
bool attention_read(cptx_attention_opt *o, const cptx_attention_opt *given, const cptx_target *target,
                    cptx_attention_plan *plan, cptx_error *err);
/* Reads a problem, fills in what 0 stands for, and checks it against completed options. */
bool attention_read_problem(cptx_attention_problem *p, const cptx_attention_problem *given, const cptx_attention_opt *o,
                            cptx_error *err);
/* Completes the plan of the options (attention_read) for a problem that was read. */
bool attention_plan_problem(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                            cptx_attention_plan *plan, cptx_error *err);
/* A number among options: from least to most in steps, and with `power` a power of two; 0 is not checked. */
typedef struct attention_range {
	const char *name;
	bool power;
	uint32_t value, least, most, step;
} attention_range;
/* what: "decode: ", in front of the message. */
bool attention_check_ranges(const char *what, const attention_range *all, size_t n, cptx_error *err);
/* An address of a problem; where it is not needed it is not checked. */
typedef struct attention_address {
	const char *name;
	uint64_t at;
	bool needed;
	unsigned align;
} attention_address;
/* what: "decode: ", in front of the message. */
bool attention_check_addresses(const char *what, const attention_address *all, size_t n, cptx_error *err);
/* Whether all options are the same, names by their text. */
bool attention_same_options(const cptx_attention_opt *a, const cptx_attention_opt *b);
/* The rules of how a tensor lies, by the name of the problem's fields. */
bool attention_check_stride(const char *name, const cptx_attention_stride *s, enum cptx_type type, uint32_t dim,
                            uint64_t rows, uint64_t heads, uint64_t batch, cptx_error *err);
/* Rows behind one another of a head, and how often: of batches, or one of packed sequences, or pages. */
typedef struct attention_extent {
	uint32_t rows, batch;
} attention_extent;
attention_extent attention_extent_of_q(const cptx_attention_opt *o, const cptx_attention_problem *p);
attention_extent attention_extent_of_k(const cptx_attention_opt *o, const cptx_attention_problem *p);
/* Strides in bytes: rows behind one another where nothing else is said; of what there is one of, any stride will do. */
cptx_attention_stride attention_stride_bytes(const cptx_attention_stride *s, enum cptx_type type, uint32_t dim,
                                             attention_extent of, uint32_t heads);
/* A tensor as the matrices that tensor maps are made of. */
cptx_operand_matrix attention_matrix_of(const cptx_operand_opt *op, uint64_t at, const cptx_attention_stride *s,
                                        uint32_t dim, attention_extent of, uint32_t heads);
/* Blocks that the rows of tiles of one head compute: in all, and of the longest (at most one more than it has). */
typedef struct attention_work {
	double blocks, longest;
} attention_work;
attention_work attention_work_of(const cptx_attention_opt *o, const cptx_attention_problem *p);
/* Scores of a problem that count. */
double attention_scores(const cptx_attention_opt *o, const cptx_attention_problem *p);

/* Probabilities of e4m3 are 2^8 times as large as others, for more of them to have all three bits; 448 is the largest. */
enum { ATTENTION_RAISE = 8 };

enum { ATTENTION_MOST_PARTS = 64 /* of an operand that pages make smaller than a block */ };
static inline uint32_t attention_up(uint32_t n, uint32_t each) { return (n + each - 1) / each; }
/* The head size of V and O. */
static inline uint32_t attention_dim_v(const cptx_attention_opt *o) { return o->dim_v ? o->dim_v : o->dim; }
static inline bool attention_is_fp8(const cptx_attention_opt *o) { return o->in == CPTX_E4M3; }
/* Of an element of Q, K and V. */
static inline uint32_t attention_bytes(const cptx_attention_opt *o) { return cptx_type_bits(o->in) / 8; }
/* What probabilities are multiplied by: powers of 2.  By mma.sync they are f16. */
static inline double attention_raise(const cptx_attention_opt *o)
{
	return attention_is_fp8(o) && o->mma != CPTX_ATTENTION_SYNC ? ATTENTION_RAISE : 0;
}
/* A head size rounded up to whole swizzle spans of 64 bytes. */
static inline uint32_t attention_round_dim(const cptx_attention_opt *o, uint32_t dim)
{
	const uint32_t span = 64 / attention_bytes(o);

	return attention_up(dim, span) * span;
}
/* A tile of Q, K or V in shared memory; dim: the rounded head size. */
static inline cptx_tile attention_tile_of(const cptx_attention_opt *o, uint32_t rows, uint32_t cols, uint32_t dim,
                                          bool mn_major)
{
	const uint32_t bytes = attention_bytes(o);
	const cptx_tile t = {
		rows, cols, { (uint8_t)(8 * bytes), mn_major, false }, dim * bytes % 128 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B, 0, 0
	};

	return t;
}
static inline enum cptx_type attention_out(const cptx_attention_opt *o)
{
	return o->out ? o->out : attention_is_fp8(o) ? CPTX_BF16 : o->in;
}
static inline int64_t attention_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t attention_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- what a kernel knows of its problem ---- */

/* A tensor in global memory: .u64, its address, and the bytes from one batch, head and row to the next. */
typedef struct attention_place {
	cptx_val at, batch, head, row;
} attention_place;

/* Values of parameters, as the kernel has them; those that it does not have are NONE. */
typedef struct attention_in {
	const cptx_attention_opt *o;
	bool dealt; /* causal tiles are dealt to CTAs that stay */
	cptx_params params;
	cptx_val map_q, map_k, map_v, map_o;      /* tensor maps */
	attention_place q, k, v, out;             /* without tensor maps */
	cptx_val queries, keys, heads;            /* .u32; heads: of tiles, with .pack fewer than there are */
	cptx_val group;                           /* .u32, heads of Q for one of K and V */
	cptx_val slots, row_tiles;                /* .u32: turns of all CTAs together; tiles of one head */
	cptx_val rounds;                          /* .u32, turns of a CTA in a section, with causal */
	cptx_val planes, section;                 /* .u32, heads * batches; how many of them share L2 */
	cptx_val scale;                           /* .f32: what scores are multiplied by in front of the exponential of 2 */
	cptx_val before;                          /* .f32: what they are multiplied by before softcap or .score; else NONE */
	cptx_val cap;                             /* .f32 */
	cptx_val v_scale;                         /* .f32, what O is multiplied by; of e4m3 */
	cptx_val left, right;                     /* .s32 */
	cptx_val lse, sinks;                      /* .u64 */
	cptx_val sink_scale;                      /* .f32, scores for one of a sink's logarithm */
	cptx_val cu_queries, cu_keys, page_table; /* .u64 */
	cptx_val total_queries, table_pitch;      /* .u32 */
} attention_in;

void attention_declare(cptx_kernel *k, attention_in *in, const cptx_attention_opt *o);

/* ---- tiles of queries ---- */

/* A tile, and its blocks of `bk` keys: from the last one down, for ends of causal rows lie there. */
typedef struct attention_tile {
	cptx_val there;       /* predicate; NONE: always there */
	cptx_val row0;        /* .s32, its first query */
	cptx_val head, plane; /* .u32: of Q, with .pack the first; batch * heads + head, of tiles */
	cptx_val kv_head, batch;
	cptx_val queries, keys; /* .u32, of its sequence */
	cptx_val q0, k0;        /* .s32, rows of Q, and of K and V, in front of the sequence's; NONE: 0 */
	cptx_val shift;         /* .s32, key that query 0 stands at; without causal and window NONE */
	cptx_val last_key;      /* .s32, the first key of the last block */
	cptx_val first_key;     /* .s32, that of the first one; only with .blocks */
	cptx_val blocks;        /* .s32, blocks in which any score counts; 0 or less: none */
	cptx_val edge, plain;   /* .s32: blocks in front of number `edge` (from the last one down) need the mask; from there on
	                           those in front of `plain` do not; the rest (of windows) does again */
} attention_tile;

/* The tile of a slot: a CTA takes slots ctaid.x, ctaid.x + nctaid.x and so on. */
void attention_locate(cptx_kernel *k, const attention_in *in, cptx_val slot, attention_tile *t);
/* With .blocks: moves `key` (.s32, a variable) from block to block downwards until one counts, or it is below
 * t->first_key; gives the predicate of the latter. */
cptx_val attention_skip(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val key);
/* The address of the first row of a head: of Q and O with t->q0, of K and V with t->k0 and kv_head. */
cptx_val attention_rows_at(cptx_kernel *k, const attention_place *p, const attention_tile *t, cptx_val first, cptx_val head);
/* Number i + behind of a table of u32. */
cptx_val attention_entry(cptx_kernel *k, cptx_val table, cptx_val i, uint32_t behind);
/* The page that has a key (.s32, below t->keys rounded up to a block), .u32; of keys behind the last, the last one's. */
cptx_val attention_page_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val key);

/* ---- copies by TMA: load.c ---- */

/* K or V: a block in a ring of stages, and with .page the part of it that comes from one page.  Or Q: a tile, and with .pack
 * the part of it that is of one head. */
typedef struct attention_kv {
	cptx_operand op, part;
} attention_kv;

/* The rows of a block that one load brings. */
uint32_t attention_part_rows(const cptx_attention_opt *o);
/* The operands of these tiles, with k_part and v_part; O is the caller's. */
attention_operands attention_operands_of(const cptx_attention_opt *o, const cptx_tile *q, const cptx_tile *k,
                                         const cptx_tile *v);
/* Sets Q, K and V aside, by operands of the generator. */
void attention_make_operands(cptx_kernel *k, const attention_in *in, attention_operands *ops, attention_kv *q,
                             attention_kv *key, attention_kv *v);
/* stage: where there is one tile 0. */
void attention_load_q(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_kv *q, uint32_t stage,
                      cptx_val barrier);
/* A block of keys, from `key` on (.s32), to a stage (.u32). */
void attention_load_kv(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_kv *kv,
                       cptx_val stage, cptx_val key, cptx_val barrier);

/* ---- scores ---- */

/* In front of a tile's blocks: nothing counts yet but the sink.  s NULL: a thread has one row, and all of it. */
void attention_begin_softmax(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                             cptx_softmax *soft);
/* Multiplies rows of O by the factors of a step of the softmax, where the maximum of any row of the warp has grown. */
void attention_scale_grown(cptx_kernel *k, const cptx_acc *o, cptx_val factors);
/* Predicate: the thread has the first column of a row of S, of the lanes that share it; NONE: no lanes do. */
cptx_val attention_leads(cptx_kernel *k, const cptx_acc *s);

/* The query and the head of an element of S or O, .u32. */
cptx_val attention_query_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                            const cptx_acc_elem *e);
cptx_val attention_head_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s,
                           const cptx_acc_elem *e);

/* The state of the rows of a tile: where each begins and ends. */
typedef struct attention_rows {
	cptx_val first, end; /* row vectors, .s32: keys first to end - 1 count; NONE: from 0, to the last */
} attention_rows;

/* In front of a tile's blocks. */
attention_rows attention_rows_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s);
/* Of a thread that has one row, that of a query (.s32). */
attention_rows attention_row_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, cptx_val query);
/*
 * Makes scores of the products Q * K^T of the block from `key` on (.s32), before the softmax: scale and soft cap, the user's
 * function, and with `masked` minus infinity where a score does not count.
 */
void attention_scores_of(cptx_kernel *k, const attention_in *in, const attention_tile *t, const attention_rows *rows,
                         const cptx_acc *s, cptx_val key, bool masked);
enum { ATTENTION_VECTOR = 4 /* most neighbours that are stored at once */ };
/* Stores n neighbours of a row, 2 or 4, rounded, where the predicate holds. */
void attention_store(cptx_kernel *k, enum cptx_type type, const cptx_val *v, uint32_t n, cptx_val to, cptx_val when);
/* The address of the row that an element is in; *there: a predicate that there is one. */
typedef cptx_val attention_row_fn(cptx_kernel *k, const void *user, const cptx_acc *o, const cptx_acc_elem *e,
                                  cptx_val *there);
/* Stores an accumulator of .f32 row by row, wherever these are: a thread has two neighbours of a row at a time.  cols: how
 * many columns there are; 0: all. */
void attention_store_pairs(cptx_kernel *k, enum cptx_type type, const cptx_acc *o, uint32_t cols, attention_row_fn *find,
                           const void *user);
/* Stores the rows of O that there are, from registers. */
void attention_store_o(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *o);
/* Writes LSE, a row vector, of the rows that there are. */
void attention_store_lse(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *s, cptx_val lse);

#endif
