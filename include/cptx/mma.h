/* SPDX-License-Identifier: MIT */
/*
 * Tiled matrix products, D = A * B^T + D, and their accumulators: the same calls for mma.sync (sm_75 and later), wgmma
 * (sm_90a) and tcgen05.mma (sm_100, 103, 110), by tcgen05 also of a pair of CTAs, and with scale factors by tcgen05 and by
 * mma.sync (sm_120a, 121a).
 *
 *   cptx_tiled_mma mma;
 *   cptx_acc acc;
 *   cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = 128,
 *                      .a_tile = { 64, 64, .elem = { 16 }, .swizzle = CPTX_SWIZZLE_128B }, .b_tile = ...);
 *   cptx_acc_new(k, &mma, &acc);
 *   ... wait for a stage ...
 *   cptx_mma_tile(k, &mma, &acc, a_address, b_address, .fresh = true);     D = A * B^T: all of K that the tiles have
 *   cptx_mma_wait(k, &mma, 0);
 *   CPTX_ACC_EACH (&acc, e)                                                a C loop over the thread's elements
 *       cptx_mul(k, e.value, 0.5f, .into = e.value);
 *   cptx_acc_store(k, &acc, &(cptx_acc_matrix){ .address = d, .type = CPTX_BF16, .pitch = n, .rows = m, .cols = n });
 *
 * Who computes together is a unit: by mma.sync a warp, by wgmma a warpgroup, by tcgen05.mma a CTA, whose products one
 * thread starts.  A unit has m x n elements of D; a CTA has units_m x units_n units beside one another.
 *
 * Everything about an accumulator follows from its fragment (cptx_frag_map, <cptx/layout.h>): which row and column a
 * thread's element has, which lanes hold the rest of its row, in which order the next product takes it as its A.
 *
 * Order by tcgen05: products run on their own, and so do a thread's moves of tensor memory.  Who uses what another wrote
 * waits for a barrier or mbarrier that this one arrives at: cptx_mma_commit tells that products are complete; behind
 * cptx_acc_load, _save and _put_a an arrival tells that these are.  The tcgen05.fence on both sides of it is part of the
 * calls, which place tcgen05.fence::after_thread_sync in front of what they do and tcgen05.fence::before_thread_sync behind
 * it.  Both take no time.
 *
 * Pairs (.ctas = 2, tcgen05): two CTAs of a cluster, of ranks 2i and 2i + 1, make 256 rows of D.  Each has 128 rows of A and
 * the half of B's rows that its rank's last bit names, both at the same shared memory addresses, and 128 rows of D with all
 * n columns, at the same address of tensor memory that was allocated for the pair (cptx_tmem_opt.ctas).  One thread of CTA
 * 2i starts products, copies and commits for both, when both CTAs' operands are there (cptx_pipe_producer_of); each CTA
 * reads its own rows by cptx_acc_load.
 *
 * Scale factors (.scale): one for `vec` elements along K of each row of A and of B: 32, of ue4m3 16.  They lie as
 * cptx_gemm_scales_bytes (<cptx/gemm.h>) says, in blocks of 128 rows by 4 factors, CPTX_SCALE_BYTES each; in a stage first
 * the blocks of the first 128 rows, along K, then those of the next.  Tensor cores multiply each element by its factor.
 *   tcgen05: cptx_mma_copy_scale_a and _b bring them to tensor memory, cptx_mma_tile is told where they are there.
 *   mma.sync: cptx_mma_tile is told where they are in shared memory; lanes fetch them by ld.shared, a word for 4 factors.
 * A tile of B (mma.sync: or A) that begins at row r of its blocks, a multiple of 32, begins so much further on: r / 32
 * columns of tensor memory, r / 32 * 4 bytes of shared memory.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_MMA_H
#define CPTX_MMA_H

#include <cptx/layout.h>
#include <cptx/reduce.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What multiplies. */
enum cptx_mma_by {
	CPTX_BY_MMA_SYNC, /**< mma.sync; operands come by ldmatrix */
	CPTX_BY_WGMMA,    /**< wgmma.mma_async, sm_90a */
	CPTX_BY_TCGEN05   /**< tcgen05.mma; accumulators lie in tensor memory */
};
/** Where A is. */
enum cptx_mma_from {
	CPTX_A_SHARED, /**< in shared memory, as a_tile says */
	CPTX_A_REGS,   /**< in registers: what cptx_acc_as_a gives; mma.sync and wgmma */
	CPTX_A_TMEM    /**< in tensor memory, where cptx_acc_put_a or cptx_mma_copy_a stored it; tcgen05 */
};

/** A block of scale factors. */
enum {
	CPTX_SCALE_ROWS = 128,  /**< rows of A or B that it has factors of */
	CPTX_SCALE_FACTORS = 4, /**< factors of a row, neighbours along K */
	CPTX_SCALE_BYTES = 512, /**< factor f of row r is byte r % 32 * 16 + r / 32 * 4 + f */
	CPTX_SCALE_COLUMNS = 4  /**< of tensor memory: rows 32i and following in column i, in all four quarters of the lanes */
};
/** A block in shared memory as tcgen05.cp reads it, for cptx_tile_word. */
static inline cptx_tile cptx_scale_tile(void)
{
	const cptx_tile t = { 32, 16, { 8, false, false }, CPTX_SWIZZLE_NONE, 0, 0 };

	return t;
}

/** A tiled product. */
typedef struct cptx_tiled_mma_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	enum cptx_mma_by by; /**< what multiplies */
	enum cptx_type a, b; /**< CPTX_BF16, F16, TF32, F64, E4M3, E5M2, S8, U8.  Of 16 bits: a and b are the same.  8-bit floats
	                        by mma.sync: sm_89.  wgmma: floats only; A_REGS: 16 bits.  tcgen05, and with .scale: E2M3, E3M2
	                          and E2M1 too, whose tiles are padded (cptx_smem_elem); both E2M1 with .scale: two of 4 bits
	                          share a byte where the tiles are not padded, which is twice as fast */
	uint32_t m, n;       /**< rows and columns of D that a unit computes.  mma.sync: multiples of 16 and of 8, with .scale of
	                          32, and m * units_m and n * units_n at most 128; wgmma: a multiple of 64, and 8 to 256 in
	                          steps of 8; tcgen05: 128, and 16 to 256 in steps of 16, with .scale of 32; of a pair 256, and
	                          32 to 256 in steps of 32 */
	uint32_t units_m, units_n; /**< units of a CTA along M and N; 0: 1.  tcgen05: 1 */
	enum cptx_mma_from a_from; /**< where A is */
	cptx_tile a_tile, b_tile; /**< A and B of a CTA in shared memory: `rows` along M or N, `cols` along K.  Of a pair 128 and
	                               n / 2 rows.  Where A is elsewhere, a_tile is that of cptx_mma_copy_a, and may have no
	                               rows */
	uint32_t ctas;            /**< tcgen05: 2: a pair of CTAs makes the products; 0: 1 */
	enum cptx_type scale;     /**< type of scale factors, CPTX_UE8M0; UE4M3: both E2M1, not padded; 0: there are none.
	                               tcgen05, and mma.sync of sm_120a; D is f32 */
	enum cptx_tcgen05_kind kind; /**< tcgen05: CPTX_TCGEN05_MXF4NVF4 where MXF4 would do as well; 0: what a, b, the tiles
	                                  and scale say */
	cptx_val unit;   /**< .u32, number of the thread's unit, n-major; the same in all its threads.  NONE: there is one */
	cptx_val thread; /**< .u32, number of the thread in its unit: 0 to 31, else 0 to 127.  NONE: %tid.x modulo that */
	cptx_val a_base, b_base; /**< mma.sync: .u32, shared memory addresses that those of A and of B in cptx_mma_tile count
	                            from, those of their scale factors too.  With the starts of rings there these are offsets of
	                            stages, which ptxas keeps in uniform registers that ldmatrix adds for nothing.  NONE: 0 */
	bool few_regs; /**< mma.sync: one address register for each operand; those of further steps, or rows, cost an exclusive
	                  or each time */
	cptx_val a_ring, b_ring; /**< wgmma, tcgen05: .u32, addresses of stage 0 of A and of B, for cptx_mma_stage; NONE: not
	                            called */
	uint32_t apart; /**< with rings: bytes from stage to stage, of both; tcgen05, 0: those of cptx_operand, of each */
	cptx_val warp;  /**< tcgen05: .u32, number of the thread's warp in the four that load accumulators, which ptxas knows to
	                   be the same in all its threads (cptx_roles.warp): addresses of tensor memory stay in uniform registers.
	                     NONE: by .thread */
	cptx_val scale_a_ring, scale_b_ring; /**< tcgen05 with .scale and rings: .u32, those of the scale factors, scale_a_bytes
	                                        and scale_b_bytes from stage to stage */
	bool sparse; /**< mma.sync (sm_80), wgmma: A has at most two of four neighbours along K that are not 0, and a_tile, which
	                is in shared memory, these two alone: half of the columns of b_tile, which has a multiple of 64.  Types
	                of 8 and 16 bits.  cptx_mma_tile_opt.meta tells which two */
	bool tall; /**< mma.sync of F64: 16 rows and 8 elements along K at once, which sm_90 has; else 8 and 4, of sm_80.  Tiles
	              of F64 are K-major, with the 64-byte swizzle: eight elements of 8 rows are 512 bytes, of which a lane reads
	              16 without bank conflicts; accumulators are F64 */
	bool desc32; /**< wgmma with rings: descriptors of a stage are counted in their low words, .u32, in place of 64 bits.
	                ptxas 13.0 takes fewer instructions so where a loop's end was loaded from memory, else more */
	char z_;
} cptx_tiled_mma_opt;

/** A tiled product, worked out.  Plain data; users may read it. */
typedef struct cptx_tiled_mma {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_tiled_mma_opt opt;     /**< as given, with what 0 and NONE stand for */
		uint64_t reserved_opt_[48]; /**< for options of later versions */
	};
	uint32_t depth;                   /**< elements along K of one instruction */
	uint32_t steps;                   /**< instructions along K for a tile: b_tile.cols / depth */
	uint32_t atom_n;                  /**< columns of one instruction */
	enum cptx_mod shape;              /**< of one instruction; tcgen05: 0 */
	cptx_frag_map a_map, d_map;       /**< fragments of A and D of one instruction; tcgen05: of D what cptx_acc_load gives */
	cptx_lines a_lines, b_lines;      /**< mma.sync: how ldmatrix reads A and B */
	cptx_lane_lines a_lanes, b_lanes; /**< mma.sync: where the lane does, in tiles at a_base and b_base */
	cptx_val a_first, b_first;        /**< wgmma: .u32, bytes from a tile's start to what the unit reads; NONE: 0 */
	cptx_val a_start, b_start;        /**< with rings: .u32, the low word of the descriptor of the unit's part of stage 0;
	                                       tcgen05: .u64, its descriptor */
	cptx_val row, col;                /**< .u32, of the unit's first element in the CTA's tile */
	uint32_t idesc;                   /**< tcgen05: the instruction descriptor; with scale that of the first step */
	uint32_t vec;                     /**< elements along K that share a scale factor; 0: there are none */
	uint32_t scale_blocks;            /**< blocks of factors along K of a tile */
	uint32_t scale_a_bytes, scale_b_bytes;     /**< of a stage's factors in shared memory, of a CTA */
	uint32_t scale_a_columns, scale_b_columns; /**< tcgen05: of tensor memory that they take */
	cptx_val scale_a_first, scale_b_first;     /**< mma.sync: .u32, bytes from there to those of the lane */
	cptx_val scale_a_start, scale_b_start;     /**< tcgen05 with rings: .u64, descriptors of stage 0 of the scale factors */
	uint32_t stage_columns; /**< tcgen05: of tensor memory that A by A_TMEM and the scale factors of a stage take */
	uint64_t reserved_[8];  /**< for fields of later versions */
} cptx_tiled_mma;

/**
 * Registers of metadata that a lane has for a tile of a sparse A; 0: A is dense.  One for 16 (wgmma: 64) rows and 64
 * elements along K, with the zeros: the rows of the unit, then the next 64.  In the 64 elements of row r the places of the
 * two of group g, 2 bits each, lie as CPTX_FRAG_MMA_META (CPTX_FRAG_WGMMA_META) of the instruction says; with elements of 16
 * bits, of which 64 are two instructions, lanes 0 and 1 of each four have the metadata of the first, 2 and 3 of the second.
 */
static inline uint32_t cptx_tiled_mma_meta(const cptx_tiled_mma *mma)
{
	return mma->opt.sparse ? mma->opt.b_tile.cols / 64 * (mma->opt.m / (mma->opt.by == CPTX_BY_WGMMA ? 64 : 16)) : 0;
}

CPTX_API void cptx_tiled_mma_new_(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, const cptx_tiled_mma_opt *opt);
/** Checks a product and computes, in front of all loops, what does not depend on a stage: two to six instructions, by
 * mma.sync some twenty. */
#define cptx_tiled_mma_new(...) cptx_tiled_mma_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_tiled_mma_new_x_(k, mma, ...)                                                                                  \
	cptx_tiled_mma_new_((k), CPTX_HERE, (mma), CPTX_OPT(cptx_tiled_mma_opt, __VA_ARGS__))

/* ---- Accumulators --------------------------------------------------------------------------------------------------- */

enum { CPTX_ACC_ROWS = 8 /**< most rows of one instruction's D that a thread has elements of */ };

/** The elements of D that a thread has, or where a CTA has them in tensor memory.  Plain data. */
typedef struct cptx_acc {
	cptx_made made;            /**< by which call, in which kernel */
	enum cptx_type type;       /**< CPTX_F32; of integers CPTX_S32, of F64 that */
	cptx_val regs;             /**< `count` registers, instruction after instruction, n fastest; NONE: in tensor memory */
	cptx_val tmem;             /**< .u32, tensor memory address: a column for a column of D, a lane for a row; else NONE */
	cptx_frag_map map;         /**< of one instruction's D */
	uint32_t m, n;             /**< of a unit */
	uint32_t units_m, units_n; /**< of the CTA */
	uint32_t atoms_m, atoms_n; /**< instructions' D along m and n */
	uint32_t count;            /**< elements of a thread; 0: in tensor memory */
	uint32_t rows;             /**< rows that a thread has elements of: the registers of a row vector */
	uint32_t atom_rows;        /**< of one instruction's D */
	uint16_t atom_row[CPTX_ACC_ROWS]; /**< these, from the thread's first row on, ascending */
	cptx_val row, col;                /**< .u32, of the thread's first element in the CTA's tile */
	cptx_val unit_row, unit_col;      /**< .u32 or constants, of the unit's first element in it */
	cptx_val thread;                  /**< .u32, of the thread in its unit */
	cptx_val warp;                    /**< of the product's description */
	bool fenced; /**< in tensor memory: tcgen05.fence is left to the user, where several loads stand between one wait and one
	                arrival; cptx_acc_new: false */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_acc;

CPTX_API void cptx_acc_new_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_acc *acc, cptx_val tmem);
/** Registers for D, unset, and the thread's first row and column in it: three to seven instructions, in tensor memory none.
 */
#define cptx_acc_new(k, mma, acc) cptx_acc_new_((k), CPTX_HERE, (mma), (acc), CPTX_NONE_)
/** By tcgen05: D lies at that address of tensor memory (.u32), `n` columns of 128 lanes. */
#define cptx_acc_in_tmem(k, mma, acc, address) cptx_acc_new_((k), CPTX_HERE, (mma), (acc), (address))
CPTX_API void cptx_acc_clear_(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/** Sets all elements to 0: acc.count mov. */
#define cptx_acc_clear(k, acc) cptx_acc_clear_((k), CPTX_HERE, (acc))

/** One element that a thread has. */
typedef struct cptx_acc_elem {
	cptx_val value;    /**< its register */
	uint32_t i;        /**< its number, 0 to acc.count - 1.  2i and 2i + 1 are neighbours in a row */
	uint32_t row, col; /**< to be added to the thread's first row and column */
	uint32_t at_row;   /**< number of its row, 0 to acc.rows - 1: the element of a row vector */
} cptx_acc_elem;
/** Element i; value BAD: there is none, or no accumulator. */
CPTX_API cptx_acc_elem cptx_acc_at(const cptx_acc *acc, uint32_t i);
/** A loop of C, run while the kernel is built, over the thread's elements: CPTX_ACC_EACH (&acc, e) { ... e.value ... } */
#define CPTX_ACC_EACH(acc, e)                                                                                               \
	for (cptx_acc_elem e = cptx_acc_at((acc), 0); e.i < (acc)->count; e = cptx_acc_at((acc), e.i + 1))

CPTX_API cptx_val cptx_acc_coordinate_(cptx_kernel *k, cptx_site at, cptx_val first, uint32_t more, cptx_val from);
/** The row of an element in D, .u32 (a constant where it is known now), where the CTA's tile begins at row `from` of D
 * (.u32, .s32 or NONE).  Up to two adds.
 */
#define cptx_acc_row(k, acc, e, from) cptx_acc_coordinate_((k), CPTX_HERE, (acc)->row, (e)->row, (from))
/** Its column. */
#define cptx_acc_col(k, acc, e, from) cptx_acc_coordinate_((k), CPTX_HERE, (acc)->col, (e)->col, (from))

/* ---- Row vectors: an array of acc.rows registers, one for each row that the thread has elements of ------------------- */

CPTX_API cptx_val cptx_acc_row_vector_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val init);
/** A row vector with that value in all rows: acc.rows mov. */
#define cptx_acc_row_vector(k, acc, init) cptx_acc_row_vector_((k), CPTX_HERE, (acc), CPTX_V(init))
CPTX_API void cptx_acc_row_reduce_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_reduce_op op, cptx_val rows);
/** Combines the thread's own elements of each row into `rows`: acc.count instructions, no shuffle.  Not of F64. */
#define cptx_acc_row_reduce(k, acc, op, rows) cptx_acc_row_reduce_((k), CPTX_HERE, (acc), (op), (rows))
CPTX_API void cptx_acc_row_combine_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_reduce_op op,
                                    cptx_val rows);
/**
 * Combines `rows` over the lanes that hold the rest of each row: by mma.sync and wgmma two shuffles for each row, by
 * tcgen05 nothing, for a thread has whole rows; not of F64.  Where units lie beside one another (units_n) their parts stay
 * apart.
 */
#define cptx_acc_row_combine(k, acc, op, rows) cptx_acc_row_combine_((k), CPTX_HERE, (acc), (op), (rows))
CPTX_API void cptx_acc_scale_rows_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, cptx_val rows);
/** Multiplies each row by its element of `rows`; of integers the lower 32 bits.  acc.count mul. */
#define cptx_acc_scale_rows(k, acc, rows) cptx_acc_scale_rows_((k), CPTX_HERE, (acc), (rows))

/* ---- Products ------------------------------------------------------------------------------------------------------- */

/**
 * mma.sync without .scale: fragments that are fetched a step before they are multiplied, so that ldmatrix runs beside
 * mma.sync:
 *
 *   cptx_mma_frags_new(k, &mma, &f, false);
 *   ... wait for the first stage ...
 *   cptx_mma_fetch(k, &mma, &f, a, b);                                         of step 0
 *   loop: cptx_mma_tile(k, &mma, &acc, a, b, .frags = &f, .steps = mma.steps - 1);
 *         ... wait for the next stage ...
 *         cptx_mma_tile(k, &mma, &acc, a, b, .frags = &f, .first = mma.steps - 1, .next_a = a2, .next_b = b2);
 *         ... TMA may fill this stage anew: release it in the next turn, behind these products ...
 *
 * Plain data.
 */
typedef struct cptx_mma_frags {
	cptx_made made;      /**< by which call, in which kernel */
	cptx_val a[2], b[2]; /**< .b32, of even and of odd steps; with A_REGS b alone */
	bool rolling; /**< even and odd steps share registers: a fragment is fetched behind the last mma.sync that reads the one
	                   before.  Half of the registers, and less time for ldmatrix */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_mma_frags;

CPTX_API void cptx_mma_frags_new_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_mma_frags *f, bool rolling);
/** The registers, unset: (m + n) / 4 each step for 16-bit types. */
#define cptx_mma_frags_new(k, mma, f, rolling) cptx_mma_frags_new_((k), CPTX_HERE, (mma), (f), (rolling))
CPTX_API void cptx_mma_fetch_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_frags *f, cptx_val a,
                              cptx_val b);
/** ldmatrix of the fragments of step 0 of a tile, with addresses as of cptx_mma_tile: (m + n) / 16 for 16-bit types. */
#define cptx_mma_fetch(k, mma, f, a, b) cptx_mma_fetch_((k), CPTX_HERE, (mma), (f), CPTX_V(a), CPTX_V(b))

CPTX_API cptx_val cptx_mma_load_a_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val a);
/**
 * mma.sync without .scale, A in shared memory: all of a tile's A at that address as registers, which are the `a` of a
 * product with the same m, tiles and types and A_REGS: for an A that many tiles of B are multiplied by.  An ldmatrix for 16
 * rows of each step.
 */
#define cptx_mma_load_a(k, mma, a) cptx_mma_load_a_((k), CPTX_HERE, (mma), CPTX_V(a))

/** What a call of cptx_mma_tile may be told. */
typedef struct cptx_mma_tile_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	bool fresh;                  /**< D = A * B^T: what D held does not count */
	cptx_val fresh_when;         /**< like .fresh, decided at run time: D is overwritten where the predicate holds, else
	                                added to.  wgmma and tcgen05 */
	uint32_t first, steps;       /**< of the tile's instructions along K; steps 0: all from `first` on */
	const cptx_mma_frags *frags; /**< mma.sync without .scale: those of step `first` are there; each step fetches those of
	                                the next, also of one that is not of this call.  NULL: each step fetches its own */
	cptx_val next_a, next_b;     /**< with frags: the tile whose step 0 is fetched in the last step of this one (with A_REGS
	                                  next_b alone); NONE: nothing is.  But with rolling, tiles have an even number of steps then
	                              */
	bool along_m; /**< mma.sync: the order of instructions: down the columns of D first; else along its rows.  Rolling
	                 fragments have an order of their own */
	cptx_val scale_a, scale_b; /**< with scale: .u32, where the tile's factors are: tcgen05: in tensor memory; mma.sync: in
	                                shared memory, aligned to 4 bytes */
	bool fenced; /**< tcgen05: the thread has called tcgen05.fence::after_thread_sync behind what it waited for: products of
	                a loop need it once where only TMA writes the operands */
	cptx_val tmem; /**< tcgen05, cptx_mma_stage: .u32, stage_columns of tensor memory that A by A_TMEM and the scale factors
	                  are copied to.  Copies stay behind the products that the thread has started before */
	cptx_val scale_b_from; /**< tcgen05, cptx_mma_stage: .u32, columns from the scale factors of the stage's first block of B
	                          to those of the tile, r / 32 where it begins at row r of the block; NONE: 0 */
	cptx_val meta; /**< with sparse: .b32, cptx_tiled_mma_meta(mma) registers, those of all of the tile; by wgmma they must
	                  not be touched until cptx_mma_wait */
	char z_;
} cptx_mma_tile_opt;
CPTX_API void cptx_mma_tile_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                             cptx_val b, const cptx_mma_tile_opt *opt);
/**
 * Multiplies a tile: D += A * B^T over the K of the tiles.  a, b: .u32 shared memory addresses of the CTA's tiles, aligned
 * as cptx_tile_align() says; a: by A_REGS the registers, by A_TMEM the address in tensor memory.  tcgen05: in place of an
 * address the descriptor of the tile, .u64 (cptx_tile_word), which spares four instructions; that of a stage is one mad.
 *
 * It emits for each step along K: mma.sync: an ldmatrix for 16 rows of A and for 16 (or 8) of B, and m / 16 * n / 8
 * mma.sync; wgmma: m / 64 of them, with an add for each and one for B; tcgen05: one, with an add for each operand.  In front
 * addresses become descriptors (not mma.sync), three or four instructions for each operand.
 *
 * mma.sync: all lanes of the warp, complete behind the call.  wgmma: all threads of the warpgroup; fence and commit are
 * part of it, D and A's registers must not be touched until cptx_mma_wait.  tcgen05: one thread; an mbarrier tells, by
 * cptx_mma_commit.  Tiles that threads wrote themselves need fence.proxy.async in front of the barrier, by wgmma and
 * tcgen05.
 */
#define cptx_mma_tile(...) cptx_mma_tile_x_(__VA_ARGS__, .z_ = 0)
#define cptx_mma_tile_x_(k, mma, acc, a, b, ...)                                                                            \
	cptx_mma_tile_((k), CPTX_HERE, (mma), (acc), (a), (b), CPTX_OPT(cptx_mma_tile_opt, __VA_ARGS__))
CPTX_API void cptx_mma_stage_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val stage,
                              const cptx_mma_tile_opt *opt);
/** wgmma with A in shared memory, tcgen05: cptx_mma_tile of a stage (.u32 or a constant) of a_ring and b_ring.  By wgmma its
 * descriptors take a mad and a cvt for each operand, where addresses take an and, a shift and as a rule an add more.  By
 * tcgen05 they take a mad, and what the products read of tensor memory beside D is copied to .tmem first. */
#define cptx_mma_stage(...) cptx_mma_stage_x_(__VA_ARGS__, .z_ = 0)
#define cptx_mma_stage_x_(k, mma, acc, stage, ...)                                                                          \
	cptx_mma_stage_((k), CPTX_HERE, (mma), (acc), CPTX_V(stage), CPTX_OPT(cptx_mma_tile_opt, __VA_ARGS__))
CPTX_API void cptx_mma_wait_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, uint32_t pending);
/** wgmma: waits until at most so many of the latest calls are under way.  mma.sync: nothing.  tcgen05: an error. */
#define cptx_mma_wait(k, mma, pending) cptx_mma_wait_((k), CPTX_HERE, (mma), (pending))
CPTX_API void cptx_mma_commit_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val mbarrier, cptx_val mask);
/** tcgen05: one arrival at that mbarrier (.u32) when all that this thread has started is complete. */
#define cptx_mma_commit(k, mma, mbarrier) cptx_mma_commit_((k), CPTX_HERE, (mma), (mbarrier), CPTX_NONE_)
/** cptx_mma_commit at the mbarriers with that offset in the CTAs of the cluster whose bits are 1 (.u16 or .b16): both of a
 * pair, or all whose operands are multicast.  NONE: as cptx_mma_commit. */
#define cptx_mma_commit_to(k, mma, mbarrier, mask) cptx_mma_commit_((k), CPTX_HERE, (mma), (mbarrier), (mask))

CPTX_API void cptx_mma_copy_a_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val to, cptx_val from);
/**
 * tcgen05 with A_TMEM: copies A from a_tile, K-major in shared memory at `from` (.u32, or a descriptor, .u64), to tensor
 * memory at `to` (.u32): 8 columns and one tcgen05.cp for each step.  By the thread that starts products: what it starts
 * behind it reads the copy, and what it has started before is not disturbed.  Padded elements get a byte each.
 */
#define cptx_mma_copy_a(k, mma, to, from) cptx_mma_copy_a_((k), CPTX_HERE, (mma), (to), (from))
CPTX_API void cptx_mma_copy_scale_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, bool of_b, cptx_val to,
                                   cptx_val from);
/** tcgen05: copies the scale factors of a tile's A, scale_a_bytes of shared memory at `from` (.u32, a multiple of 128, or
 * the descriptor of cptx_scale_tile, .u64), to scale_a_columns of tensor memory at `to`: a tcgen05.cp for each block, in the
 * same order as cptx_mma_copy_a. */
#define cptx_mma_copy_scale_a(k, mma, to, from) cptx_mma_copy_scale_((k), CPTX_HERE, (mma), false, (to), (from))
/** The factors of B: of all n columns, which both CTAs of a pair have. */
#define cptx_mma_copy_scale_b(k, mma, to, from) cptx_mma_copy_scale_((k), CPTX_HERE, (mma), true, (to), (from))

/* ---- What becomes of an accumulator ---------------------------------------------------------------------------------- */

CPTX_API void cptx_acc_load_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, uint32_t first, uint32_t n, cptx_acc *part);
/**
 * From tensor memory: n columns (2, 4, 8 ... 128) from column `first` on as an accumulator in registers, complete behind the
 * call; all threads of the unit's four warps, of which warp w must be number w modulo 4 of the CTA: a tcgen05.ld for up to
 * 32 columns, a wait and two fences.  A thread has one row.  Products that fill the columns must have been waited for at the
 * mbarrier of cptx_mma_commit; the next ones may be started by a thread that has waited for an arrival of all of these
 * behind the call.
 */
#define cptx_acc_load(k, acc, first, n, part) cptx_acc_load_((k), CPTX_HERE, (acc), (first), (n), (part))
CPTX_API void cptx_acc_save_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, uint32_t first, const cptx_acc *part);
/** Back to tensor memory, from column `first` on; complete behind the call (tcgen05.wait::st, between two fences).  A
 * product that adds to it is started by a thread that has waited for an arrival of all of these behind the call. */
#define cptx_acc_save(k, acc, first, part) cptx_acc_save_((k), CPTX_HERE, (acc), (first), (part))

CPTX_API cptx_val cptx_acc_narrow_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type);
/** The elements rounded to CPTX_BF16 or CPTX_F16, two of a row in a .b32 register, in their order: acc.count / 2 of these.
 */
#define cptx_acc_narrow(k, acc, type) cptx_acc_narrow_((k), CPTX_HERE, (acc), (type))
CPTX_API cptx_val cptx_acc_as_a_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tiled_mma *next);
/**
 * The elements as the A of the next product, by A_REGS: rounded to its type and in the order of its fragments, for its m
 * rows and acc.n columns along K.  No element leaves its thread: acc.count / 2 conversions for 16 bits.  CPTX_E4M3 and E5M2:
 * acc.count / 2 conversions, and as many instructions again to put them together; of each 16 columns, column 8 h + 2 t + b
 * (h, b 0 or 1, t 0 to 3) stands at place 4 t + 2 h + b along K, and so must the rows of B.
 */
#define cptx_acc_as_a(k, acc, next) cptx_acc_as_a_((k), CPTX_HERE, (acc), (next))
CPTX_API void cptx_acc_put_a_(cptx_kernel *k, cptx_site at, const cptx_acc *part, enum cptx_type type, cptx_val address,
                              uint32_t first);
/** The elements of a part that cptx_acc_load gave as the A of the next product, by A_TMEM: rounded to CPTX_BF16 or CPTX_F16,
 * two in a column, or to CPTX_E4M3 or E5M2, four in a column, to tensor memory at that address (.u32), from element `first`
 * of a row on (a multiple of two or four); complete behind the call.  The product is started by a thread that has waited for
 * an arrival of all of these behind it. */
#define cptx_acc_put_a(k, part, type, address, first) cptx_acc_put_a_((k), CPTX_HERE, (part), (type), (address), (first))

CPTX_API void cptx_acc_put_tile_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type,
                                 const cptx_tile *tile, cptx_val address);
/**
 * The elements of an accumulator in registers, rounded to CPTX_BF16 or CPTX_F16, to a tile of shared memory at that address
 * (.u32, a multiple of 1024); rows are contiguous.  It has the rows and columns of the unit's part of D, and is the unit's
 * alone; or those of the CTA's D, where units do not lie beside one another (units_n = 1).  As the A or B of another product
 * the same bytes are a tile that is MN-major, with rows and columns exchanged.  acc.count / 2 conversions and stores of 4
 * bytes, without bank conflicts where rows have 128 bytes, and an xor for each 8 columns of a span.  A barrier must follow
 * before others read them, and fence.proxy.async in front of it where wgmma does.
 */
#define cptx_acc_put_tile(k, acc, type, tile, address) cptx_acc_put_tile_((k), CPTX_HERE, (acc), (type), (tile), (address))
CPTX_API void cptx_acc_put_tile_matrix_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, enum cptx_type type,
                                        const cptx_tile *tile, cptx_val address);
/** As cptx_acc_put_tile, by stmatrix, of sm_90 and later: of an accumulator by mma.sync with a multiple of 16 columns.
 * acc.count / 2 conversions, and a store for each 16 x 16 elements. */
#define cptx_acc_put_tile_matrix(k, acc, type, tile, address)                                                               \
	cptx_acc_put_tile_matrix_((k), CPTX_HERE, (acc), (type), (tile), (address))

/** A matrix in global memory. */
typedef struct cptx_acc_matrix {
	uint32_t size;       /**< CPTX_OPT fills it in */
	cptx_val address;    /**< .u64, global, of the element where the CTA's tile begins; aligned to two elements */
	enum cptx_type type; /**< CPTX_F32, BF16, F16, S32, of F64 that */
	cptx_val pitch;      /**< elements from row to row, .u32 or a constant, an even number */
	cptx_val rows, cols; /**< .u32: rows and columns from there on that are in the matrix (an even number of columns); NONE:
	                        as many as the tile has */
	char z_;
} cptx_acc_matrix;
CPTX_API void cptx_acc_store_(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_acc_matrix *to);
/** Stores the elements that are inside, rounded, two at a time: acc.count / 2 stores of 4, 8 or 16 bytes, and for each a
 * comparison where rows or cols are given.  For a tile on its way by stmatrix and TMA: <cptx/epilogue.h>. */
#define cptx_acc_store(k, acc, ...) cptx_acc_store_((k), CPTX_HERE, (acc), (__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
