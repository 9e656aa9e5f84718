/* SPDX-License-Identifier: MIT */
/*
 * Epilogues: what is computed of an accumulator on its way to global memory, and how it gets there.
 *
 *   cptx_epilogue e;
 *   cptx_epilogue_new(k, &e, .rows = M, .cols = N);                                in front of the loop over tiles
 *   cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .value = alpha);
 *   cptx_epilogue_add(k, &e, CPTX_VISIT_MATRIX, .value = beta, .address = c, .type = CPTX_BF16, .pitch = N);
 *   cptx_epilogue_add(k, &e, CPTX_VISIT_BIAS_COL, .address = bias, .type = CPTX_F32);
 *   cptx_epilogue_add(k, &e, CPTX_VISIT_GELU_TANH);
 *   ... for each tile ...
 *       cptx_epilogue_run(k, &e, &acc, .row = m0, .col = n0);                      all threads of the unit
 *       cptx_epilogue_store(k, &e, .address = d, .type = CPTX_BF16, .pitch = N);   or cptx_epilogue_store_tma
 *
 * A chain of visitors is applied to each element in the order in which they were added.  Elements are .f32 registers and
 * stay in their threads (integer sums are converted first); what comes out is e.acc, an accumulator as any other.
 *
 * Columns are the outer loop: a value of a column (bias, scale) is loaded once for all rows that a thread has of it, a value
 * of a row once for the tile.  Neighbours of a row are loaded and stored together, up to .vec of them.  Nothing outside of
 * `rows` and `cols` is read, counted or stored.
 *
 * Where registers are short, .at_store of cptx_epilogue_run lets the stores run the chain: an element is computed right
 * where it is rounded, and what is loaded for it lives no longer.
 *
 * A kernel that computes D^T = B * A^T, so that the N of its instructions lies along the rows of D, says .transposed:
 * visitors, coordinates and stores keep the rows and columns of D.
 *
 * An epilogue belongs to D = rows x cols.  Values are registers and constants of the kernel: its parameters, as a rule.
 * Targets: all that accumulators are for; fp8 needs sm_89, stores by TMA sm_90.  Nothing here does more than the calls of
 * <cptx/insn.h>.  Errors are those of the kernel's module, of the line that added the visitor.
 */
#ifndef CPTX_EPILOGUE_H
#define CPTX_EPILOGUE_H

#include <cptx/mma.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a visitor does with element v, in row r and column c of D.  The instructions named are those for one element. */
enum cptx_visit_kind {
	CPTX_VISIT_NONE,      /**< nothing */
	CPTX_VISIT_SCALE,     /**< v *= value, or what .address has (loaded by cptx_epilogue_add): alpha, a quantizer's scale */
	CPTX_VISIT_MATRIX,    /**< v += value * X[r][c] of .address, .type, .pitch: beta * C; .value NONE: 1, a residual */
	CPTX_VISIT_BIAS_COL,  /**< v += x[c] of .address, .type */
	CPTX_VISIT_BIAS_ROW,  /**< v += x[r] */
	CPTX_VISIT_SCALE_COL, /**< v *= x[c] */
	CPTX_VISIT_SCALE_ROW, /**< v *= x[r] */
	CPTX_VISIT_RELU,      /**< max(v, 0); NaN stays */
	CPTX_VISIT_GELU_TANH, /**< v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 v^3))), by tanh.approx: six instructions */
	CPTX_VISIT_GELU_SIGMOID, /**< v * sigmoid(1.702 v): five */
	CPTX_VISIT_SILU,         /**< v * sigmoid(v), by ex2.approx and rcp.approx: five */
	CPTX_VISIT_ADD_ACC,      /**< v += the same element of .acc */
	CPTX_VISIT_GATE,         /**< v = activation(v) * the same element of .acc: SwiGLU of two products */
	CPTX_VISIT_GATE_PAIRS,   /**< of columns c and c + apart one is made, activation(v[c]) * v[c + apart]: from here on D and
	                              e.acc have half as many columns: with a = apart, input columns 2aj + i (gate) and
	                              2aj + i + a (up) give output column aj + i, for i < a */
	CPTX_VISIT_AMAX,         /**< v stays; the largest |v| goes to the .f32 at .address by red.max of its bits: 0 before the
	                              first launch.  NaN is the largest.  Two, and for each warp redux.sync and red */
	CPTX_VISIT_ROW_SUM,      /**< v stays; added to .rows, or by red.add to the .f32 x[r] at .address */
	CPTX_VISIT_CALL,         /**< v = fn(k, user, &x, v) */
	CPTX_VISIT_QUANTIZE, /**< v *= .value / amax, the largest |v| of the row's 128 columns: the factor that undoes it, amax /
	                          .value, goes to the .f32 at .address [c / 128 * .pitch + r].  .value: the largest number of the
	                          type that is stored, a constant.  Units have whole blocks of 128 columns, as .cols has.  Zeros,
	                          infinities and NaN: cptx_quantize_factor.  Four, and for a row two shuffles, a division and a
	                          store */
	CPTX_VISIT_KINDS     /**< how many there are */
};

/** Which element a CPTX_VISIT_CALL is for. */
typedef struct cptx_visit {
	cptx_val row, col; /**< .u32 or constants, in D */
	cptx_val inside;   /**< predicate: it is in D; NONE: it is */
	uint32_t i;        /**< its number in the thread's accumulator, as cptx_acc_elem.i */
	uint32_t at_row;   /**< the number of its row: the element of a row vector */
	const struct cptx_visitor
		*visitor; /**< the visitor, whose .value, .address, .type, .pitch and .z the callback may read */
} cptx_visit;
/** A visitor of one's own, called while the kernel is built, once for each element of a thread.  value: an .f32 register,
 * which may be changed; what it returns (.f32, or a constant) becomes the element.  Not to be kept: *x. */
typedef cptx_val (*cptx_visit_fn)(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val value);

/** A visitor; which fields are read the kind says.  Plain data; values stay the caller's. */
typedef struct cptx_visitor {
	uint32_t size;       /**< CPTX_OPT fills it in */
	cptx_val value;      /**< .f32 register or cptx_immf(constant) */
	cptx_val address;    /**< .u64, global: of x[0], X[0][0], or one .f32.  Aligned to .vec elements of its type */
	enum cptx_type type; /**< of what is there: CPTX_F32, BF16, F16 (AMAX, ROW_SUM: F32); 0: F32 */
	cptx_val pitch;      /**< elements from row to row, .u32 or constant, a multiple of .vec */
	cptx_val z; /**< MATRIX: which matrix of a batch X is, .u32, .s32 or constant: X begins z * opt.rows * pitch elements
	                 behind .address; NONE: there is one */
	const cptx_acc *acc;             /**< of the same product's shape as the one that is run; must stay until then */
	enum cptx_visit_kind activation; /**< GATE, GATE_PAIRS: RELU, GELU_TANH, GELU_SIGMOID, SILU; NONE: v itself */
	uint32_t
		apart;     /**< GATE_PAIRS, 0: 1.  A power of two; a thread has both columns: of mma.sync 1, of wgmma 1, 8, 16 ...,
	                    of tensor memory any.  With 8 and more neighbours stay neighbours: stores are twice as wide as with 1 */
	cptx_val rows; /**< ROW_SUM: a row vector (cptx_acc_row_vector), summed over the lanes of the row behind the run */
	cptx_visit_fn fn; /**< CALL */
	void *user;       /**< CALL: what fn is given; must stay until the run */
	char z_;
} cptx_visitor;

enum {
	CPTX_EPILOGUE_VISITORS = 16, /**< most in a chain */
	CPTX_EPILOGUE_VEC = 16       /**< most elements that are loaded or stored at once */
};

/** What an epilogue is made of. */
typedef struct cptx_epilogue_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	cptx_val rows, cols; /**< of D (before GATE_PAIRS), .u32 or constants; NONE: no tile lies outside, nothing is tested */
	uint32_t vec; /**< 1, 2, 4, 8, 16: .cols, .col of each tile, addresses and pitches are multiples of so many elements, of
	                   which up to so many are loaded and stored at once; 0: 2.  By mma.sync and wgmma a thread has 2
	                   neighbours, of tensor memory whole rows.  GATE_PAIRS with .apart 1 halves it; TMA does not need it */
	bool transposed; /**< accumulators are those of D^T: their rows are columns of D.  Elements are loaded and stored one by
	                      one but by TMA; GATE_PAIRS and ROW_SUM, which put elements of a row together, are refused */
	bool integers;   /**< integer sums stay as they are, for stores of CPTX_S32; there are no visitors */
	char z_;
} cptx_epilogue_opt;

/** An epilogue of a kernel.  Plain data. */
typedef struct cptx_epilogue {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_epilogue_opt opt;      /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[16]; /**< for options of later versions */
	};
	uint32_t count;                               /**< visitors */
	cptx_visitor visitor[CPTX_EPILOGUE_VISITORS]; /**< in the order in which they were added */
	enum cptx_visit_kind
		kind[CPTX_EPILOGUE_VISITORS];     /**< as accumulators see them: transposed, _COL and _ROW change places */
	cptx_site at[CPTX_EPILOGUE_VISITORS]; /**< where they were added */
	cptx_acc acc;                         /**< behind cptx_epilogue_run: the results, .f32 */
	uint32_t next;                        /**< behind it: visitors from this number on run when the results are stored */
	cptx_val row, col;                    /**< behind it: where the CTA's tile of the results begins */
	cptx_val cols;                        /**< behind it: columns of D, halved by GATE_PAIRS; NONE: not tested */
	uint32_t vec;                         /**< behind it: as opt.vec, of the results */
	uint64_t reserved_[8];                /**< for fields of later versions */
} cptx_epilogue;

CPTX_API void cptx_epilogue_new_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_epilogue_opt *opt);
/** An empty chain.  Emits nothing. */
#define cptx_epilogue_new(...) cptx_epilogue_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_new_x_(k, e, ...) cptx_epilogue_new_((k), CPTX_HERE, (e), CPTX_OPT(cptx_epilogue_opt, __VA_ARGS__))

CPTX_API void cptx_epilogue_add_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, enum cptx_visit_kind kind,
                                 const cptx_visitor *visitor);
/** One more visitor behind the others.  Emits nothing, but for SCALE with an address one load. */
#define cptx_epilogue_add(...) cptx_epilogue_add_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_add_x_(k, e, ...) cptx_epilogue_add_y_(k, e, __VA_ARGS__)
#define cptx_epilogue_add_y_(k, e, kind, ...)                                                                               \
	cptx_epilogue_add_((k), CPTX_HERE, (e), (kind), CPTX_OPT(cptx_visitor, __VA_ARGS__))

/** Where a tile lies. */
typedef struct cptx_epilogue_tile_at {
	uint32_t size;     /**< CPTX_OPT fills it in */
	cptx_val row, col; /**< of D where the CTA's tile begins: .u32, .s32 or constants; NONE: 0 */
	bool at_store; /**< visitors, but those in front of the last GATE_PAIRS or QUANTIZE, run when the results are stored (or
	                  rounded by cptx_epilogue_defer) the first time, group by group.  For an accumulator in tensor memory
	                  (stores by TMA, ring.opt.acc) always; not ADD_ACC, GATE, GATE_PAIRS, ROW_SUM, QUANTIZE then */
	char z_;
} cptx_epilogue_tile_at;
CPTX_API void cptx_epilogue_run_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_acc *acc,
                                 const cptx_epilogue_tile_at *tile);
/**
 * Applies the chain to the elements of an accumulator in registers, which hold the results then (of integers, and
 * behind GATE_PAIRS, others do); e.acc describes them.  All threads of the unit.  With an empty chain it says where the tile
 * lies, for a store.
 */
#define cptx_epilogue_run(...) cptx_epilogue_run_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_run_x_(k, e, acc, ...)                                                                                \
	cptx_epilogue_run_((k), CPTX_HERE, (e), (acc), CPTX_OPT(cptx_epilogue_tile_at, __VA_ARGS__))

/* ---- stores --------------------------------------------------------------------------------------------------------- */

/** The results in global memory. */
typedef struct cptx_epilogue_to {
	uint32_t size;       /**< CPTX_OPT fills it in */
	cptx_val address;    /**< .u64, global, of D[0][0] */
	enum cptx_type type; /**< CPTX_F32; rounded to nearest: BF16, F16; saturated too: E4M3, E5M2 (quantized: with a SCALE as
	                          the last visitor but AMAX); S32 with .integers */
	cptx_val pitch;      /**< elements from row to row, .u32 or constant, a multiple of e.vec */
	cptx_val scatter; /**< .u64, global: a u32 for each row: row r goes to row scatter[r].  Not with .transposed.  NONE: to
	                     row r */
	uint32_t add; /**< F32: the results are added to what is there, by red.add of up to so many neighbours, 1, or (sm_90) 2
	                 or 4; 0: they are stored */
	char z_;
} cptx_epilogue_to;
CPTX_API void cptx_epilogue_store_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_epilogue_to *to);
/** Stores the results that are inside: one store for up to e.vec neighbours that the thread has, of 1 to 16 bytes. */
#define cptx_epilogue_store(...) cptx_epilogue_store_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_store_x_(k, e, ...) cptx_epilogue_store_((k), CPTX_HERE, (e), CPTX_OPT(cptx_epilogue_to, __VA_ARGS__))

/** A tile of rounded results in shared memory, and the matrix that it goes to. */
typedef struct cptx_epilogue_rows {
	uint32_t size;     /**< CPTX_OPT fills it in */
	cptx_tile tile;    /**< as cptx_acc_put_tile fills it: contiguous rows, a multiple of four, of multiples of 128 bytes */
	cptx_val smem;     /**< .u32, its address, a multiple of 1024 */
	cptx_val lane;     /**< .u32, of the thread in its warp */
	cptx_val address;  /**< .u64, global memory: of the matrix, a multiple of 16 */
	cptx_val pitch;    /**< .u32 or constant: elements from row to row of it, of a multiple of 16 bytes */
	cptx_val row, col; /**< .u32, .s32 or constant: where the tile begins in it; col: at a multiple of 16 bytes */
	cptx_val rows, cols; /**< its rows and columns, .u32 or constant, beyond which nothing is stored; columns are of a
	                         multiple of 16 bytes */
	char z_;
} cptx_epilogue_rows;
CPTX_API void cptx_epilogue_store_rows_(cptx_kernel *k, cptx_site at, const cptx_epilogue_rows *rows);
/**
 * Stores such a tile in whole rows, by all lanes of one warp: 16 bytes each, 128 of a row beside one another.  The stores of
 * an accumulator of mma.sync by its own threads have at most 8 bytes of a row from each, so they take more instructions and
 * parts of lines of memory.  For each four rows and 128 bytes a load from shared memory and a store, two predicates and an
 * add.  A barrier of those who fill the tile stands in front of it: bar.warp.sync, where the warp did so itself.
 */
#define cptx_epilogue_store_rows(...) cptx_epilogue_store_rows_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_store_rows_x_(k, ...)                                                                                 \
	cptx_epilogue_store_rows_((k), CPTX_HERE, CPTX_OPT(cptx_epilogue_rows, __VA_ARGS__))

CPTX_API cptx_val cptx_quantize_factor_(cptx_kernel *k, cptx_site at, cptx_val amax, double most, bool pow2);
/**
 * Gives the factor of a block of elements that are quantized to a type whose largest number is `most`: amax / most, .f32,
 * with pow2 the least power of two that is not below.  amax: a .f32 register with the largest magnitude of the block; it
 * becomes the reciprocal of the factor, by which the elements are multiplied.
 *
 * An amax below 2^-100 counts as 2^-100, so a block of zeros has a factor, too.  A NaN counts as nothing in amax
 * (CPTX_REDUCE_MAX), and is a NaN when it is quantized; the others are as without it.  Of a block with an infinity the
 * factor is infinite: it becomes a NaN, and all others zeros.
 */
#define cptx_quantize_factor(k, amax, most, pow2) cptx_quantize_factor_((k), CPTX_HERE, (amax), (most), (pow2))

/** The tile of shared memory, `rows` high, by which n columns of a unit's results leave: as wide as the widest swizzle (128,
 * 64, 32 bytes) that divides n, else 16 bytes.  .rows 0: n elements of the type are no multiple of 16 bytes. */
CPTX_API cptx_tile cptx_epilogue_tile(enum cptx_type type, uint32_t rows, uint32_t n);
enum { CPTX_EPILOGUE_RING_ALIGN = 1024 /**< bytes, of rings and their tiles in shared memory */ };
/** Bytes from a tile of a ring to the next one: a ring has as many for each of its stages, of each unit. */
static inline uint32_t cptx_epilogue_ring_bytes(const cptx_tile *tile)
{
	return (cptx_tile_bytes(tile) + CPTX_EPILOGUE_RING_ALIGN - 1) / CPTX_EPILOGUE_RING_ALIGN * CPTX_EPILOGUE_RING_ALIGN;
}

/**
 * A ring of tiles in shared memory.  The results of a unit leave in subtiles of one tile each: `rows` rows at a time, from
 * the first column on.  Where .tile does not divide the columns the last subtile of the rows has .last, a narrower tile with
 * a tensor map of its own; without one the tile must divide them.
 *
 * Tiles other than those of cptx_epilogue_tile: any that a tensor map writes, up to 128 bytes swizzled.  With mn_major rows
 * are contiguous: D is stored by columns or, of an accumulator of D^T (.transposed), by rows; 16-bit results by
 * stmatrix.trans, others one by one.
 */
typedef struct cptx_epilogue_ring_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	enum cptx_type type; /**< of the results, as cptx_epilogue_to */
	cptx_tile tile;      /**< rows: by wgmma 64, by mma.sync the accumulator's m, by tcgen05 128, or 32: then each warp sends
	                          its own rows without waiting for the others, has a ring of its own and counts as a unit.  The
	                          host makes the tensor map of it with cptx_operand_tensor_map */
	cptx_val map;        /**< .u64 generic address of the tensor map of D; NONE: each store says its own */
	uint32_t stages;     /**< tiles, so that one is written while TMA reads the others; 1 to 16, 0: 2 */
	uint32_t units;      /**< units of the CTA that store, each with a ring of its own; 0: 1 */
	cptx_val unit;       /**< .u32, number of the thread's unit; NONE: there is one */
	cptx_val barrier;    /**< .u32: a bar.sync for the unit's 128 threads, of each unit another: cptx_add(k, unit, 1).  Of
	                          one also a constant; a register sets all 16 aside.  Where warps send, not read */
	cptx_val smem;       /**< .u32 shared memory address, aligned to CPTX_EPILOGUE_RING_ALIGN, of cptx_epilogue_ring_bytes
	                          for each stage of each unit; NONE: cptx_shared_dyn sets it aside */
	cptx_tile last;      /**< the last subtile of rows, as .tile but with fewer columns; .cols 0: there is none */
	cptx_val last_map;   /**< that of .last */
	const cptx_acc *acc; /**< the accumulator whose results are stored, without GATE_PAIRS.  The thread's addresses in .tile
	                        are computed here, in front of loops, in one to eight registers, those in .last by each store.
	                        NULL: all by each store.  It must stay.  One in tensor memory (its address is not read), for
	                        tiles of 32 rows: stores are of such accumulators, which come to registers 32 columns at once;
	                        units are warps then, and .unit modulo 4 is the quarter of the rows that the thread's has */
	cptx_val address;    /**< .u64, in place of .map: D, whose rows begin at any element.  The unit's 128 threads store it
	                        row by row from the tiles, up to .rows and .cols of cptx_epilogue_opt; some 40 instructions of a
	                        warp for each row of a subtile.  Not of units that are warps, of mn_major tiles, of results that are
	                        .transposed, with .z or .row_end, nor deferred.  NONE: by TMA */
	cptx_val pitch;      /**< with .address: elements from row to row, .u32 or constant */
	char z_;
} cptx_epilogue_ring_opt;

/** How a thread writes its elements to a tile. */
typedef struct cptx_epilogue_writer {
	bool by_lines;              /**< by stmatrix */
	cptx_lines lines;           /**< of stmatrix, a fragment of the tile */
	cptx_lane_lines lane_lines; /**< .lines of it is set where it is used */
	cptx_val first;             /**< by st.shared: .u32, where the thread's first element is in the first tile of the ring */
	uint32_t lane_bits;         /**< bits of that which depend on the thread */
} cptx_epilogue_writer;

/** A ring of a kernel.  Plain data. */
typedef struct cptx_epilogue_ring {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_epilogue_ring_opt opt; /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[40]; /**< for options of later versions */
	};
	cptx_val smem;                  /**< .u32, where the rings of all units begin; of tensor memory, the unit's */
	uint32_t bytes;                 /**< of a tile */
	uint32_t subtiles;              /**< that a store sends; 0: there was none yet */
	cptx_epilogue_writer writer[2]; /**< with .acc: of .tile; with a deferred store too: of .last */
	cptx_val leads;                 /**< with .acc: predicate, the thread starts the copies */
	cptx_val flipped[8];            /**< of tensor memory: writer[0].first exclusive-or 16 * the index */
	uint64_t reserved_[4];          /**< for fields of later versions */
} cptx_epilogue_ring;

CPTX_API void cptx_epilogue_ring_new_(cptx_kernel *k, cptx_site at, cptx_epilogue_ring *ring,
                                      const cptx_epilogue_ring_opt *opt);
/** Sets the ring aside: units * stages * bytes of a tile.  By all threads that store, inside their role. */
#define cptx_epilogue_ring_new(...) cptx_epilogue_ring_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_ring_new_x_(k, ring, ...)                                                                             \
	cptx_epilogue_ring_new_((k), CPTX_HERE, (ring), CPTX_OPT(cptx_epilogue_ring_opt, __VA_ARGS__))
/** Called while the kernel is built, where n columns from column `first` of an accumulator in tensor memory have come to
 * registers, which it may change: part->n and part->regs. */
typedef void (*cptx_epilogue_loaded_fn)(cptx_kernel *k, void *user, uint32_t first, const cptx_acc *part);
/** What stores by TMA may be told. */
typedef struct cptx_epilogue_dst {
	uint32_t size;          /**< CPTX_OPT fills it in */
	cptx_val z;             /**< coordinate of a third dimension, .s32; NONE: two */
	cptx_val map, last_map; /**< .u64, other tensor maps than the ring's: of a list of problems each tile has its own */
	cptx_epilogue_loaded_fn loaded; /**< from tensor memory: behind each load; behind that of the last columns the
	                                     accumulator may be released.  NULL: nothing */
	void *user;                     /**< for it */
	cptx_val z2;                    /**< coordinate of a fourth dimension, .s32, with .z; NONE: none */
	cptx_val row_end; /**< .u32, .s32: rows of D from this one on are left out, as if D ended there; the maps are of
	                       cptx_tensor_map_cut then, and there is no .z.  Four instructions a subtile, of one thread. NONE:
	                       D ends where its map says */
	char z_;
} cptx_epilogue_dst;
CPTX_API void cptx_epilogue_store_tma_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, cptx_epilogue_ring *ring,
                                       const cptx_epilogue_dst *to);
/**
 * Stores the results by TMA, which leaves out what lies outside of D: subtile by subtile, 16-bit results by stmatrix, others
 * by st.shared.  All threads of the unit.  The last subtiles are still being read behind it: the next tile may be computed
 * meanwhile.  All calls for a ring send as many subtiles.  cptx_epilogue_store_tma(k, &e, &ring, .z = z)
 */
#define cptx_epilogue_store_tma(...) cptx_epilogue_store_tma_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_store_tma_x_(k, e, ring, ...)                                                                         \
	cptx_epilogue_store_tma_((k), CPTX_HERE, (e), (ring), CPTX_OPT(cptx_epilogue_dst, __VA_ARGS__))
CPTX_API void cptx_epilogue_ring_drain_(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc);
/** Waits until TMA has read all subtiles; before the threads end (else: stores-at-exit) or its memory is reused. */
#define cptx_epilogue_ring_drain(k, ring, acc) cptx_epilogue_ring_drain_((k), CPTX_HERE, (ring), (acc))

/* ---- deferred stores ------------------------------------------------------------------------------------------------ */

/** What a deferred store is made of. */
typedef struct cptx_epilogue_deferred_opt {
	uint32_t size;            /**< CPTX_OPT fills it in */
	cptx_epilogue_ring *ring; /**< of 16-bit results, with .acc; must stay */
	uint32_t parts;           /**< most parts that a tile is stored in; 0: 4 */
	bool batched;             /**< stores have a .z */
	bool maps;                /**< stores have a .map of their own */
	bool cut;                 /**< stores have a .row_end */
	char z_;
} cptx_epilogue_deferred_opt;

/**
 * Results that are rounded when their tile is complete, and stored while the next one is computed:
 *
 *   cptx_epilogue_deferred_new(k, &d, .ring = &ring);                            in front of the loop over tiles
 *   ... for each tile ...
 *       ... products of the first stage ...
 *       cptx_epilogue_deferred_store(k, &d, 0, 1);                               part 0 of the tile before, if there is one
 *       loop over further stages: ... products ...
 *           cptx_epilogue_deferred_store(k, &d, 1, d.parts);                     the next part, if one is left
 *       cptx_mma_wait(k, &mma, 0);
 *       cptx_epilogue_deferred_rest(k, &d, 1);                                   what is left of it
 *       cptx_epilogue_run(k, &e, &acc, ..., .at_store = true);
 *       cptx_epilogue_defer(k, &e, &d);                                          or cptx_epilogue_store_tma behind the rest
 *
 * Only the rounding keeps the tensor cores waiting then.  It takes a register for two elements of the accumulator.
 */
typedef struct cptx_epilogue_deferred {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_epilogue_deferred_opt opt; /**< as given */
		uint64_t reserved_opt_[8];      /**< for options of later versions */
	};
	uint32_t parts;        /**< that a tile is stored in */
	cptx_val words;        /**< .b32, two results each, subtile after subtile */
	cptx_val stored;       /**< .u32, parts that are stored */
	cptx_val row, col;     /**< .s32, where the CTA's tile begins, in rows and columns of the accumulator */
	cptx_epilogue_dst to;  /**< registers, but for maps of the ring */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_epilogue_deferred;

CPTX_API void cptx_epilogue_deferred_new_(cptx_kernel *k, cptx_site at, cptx_epilogue_deferred *d,
                                          const cptx_epilogue_deferred_opt *opt);
/** Sets its registers aside; there are no results. */
#define cptx_epilogue_deferred_new(...) cptx_epilogue_deferred_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_deferred_new_x_(k, d, ...)                                                                            \
	cptx_epilogue_deferred_new_((k), CPTX_HERE, (d), CPTX_OPT(cptx_epilogue_deferred_opt, __VA_ARGS__))
CPTX_API void cptx_epilogue_defer_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, cptx_epilogue_deferred *d,
                                   const cptx_epilogue_dst *to);
/** Rounds the results of a run and keeps where they are to go; the accumulator is free behind it.  Nothing is left of those
 * before.  cptx_epilogue_defer(k, &e, &d, .z = z) */
#define cptx_epilogue_defer(...) cptx_epilogue_defer_x_(__VA_ARGS__, .z_ = 0)
#define cptx_epilogue_defer_x_(k, e, d, ...)                                                                                \
	cptx_epilogue_defer_((k), CPTX_HERE, (e), (d), CPTX_OPT(cptx_epilogue_dst, __VA_ARGS__))
CPTX_API void cptx_epilogue_deferred_store_(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d, uint32_t first,
                                            uint32_t end);
/** Stores the next part, as cptx_epilogue_store_tma, if one is left; it is known to be one of first to end - 1.  All threads
 * of the unit.  Code for each of these parts. */
#define cptx_epilogue_deferred_store(k, d, first, end) cptx_epilogue_deferred_store_((k), CPTX_HERE, (d), (first), (end))
CPTX_API void cptx_epilogue_deferred_rest_(cptx_kernel *k, cptx_site at, const cptx_epilogue_deferred *d, uint32_t first);
/** Stores all parts that are left; none of these is before `first`. */
#define cptx_epilogue_deferred_rest(k, d, first) cptx_epilogue_deferred_rest_((k), CPTX_HERE, (d), (first))

#ifdef __cplusplus
}
#endif
#endif
