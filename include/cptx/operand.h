/* SPDX-License-Identifier: MIT */
/*
 * Operands: tiles of a matrix in global memory that are copied to a ring of stages in shared memory.
 *
 *   cptx_operand a;
 *   cptx_operand_new(k, &a, .type = CPTX_BF16, .stages = 4, .map = map_a,
 *                    .tile = { .rows = 128, .cols = 64, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B });
 *   ...
 *   cptx_pipe_expect(k, &pipe, &at, a.bytes);                                         the thread that copies
 *   cptx_operand_load(k, &a, at.stage, row, col, .barrier = cptx_pipe_full(&at));
 *   ...
 *   cptx_val tile = cptx_operand_at(k, &a, at.stage);                                 who reads it
 *
 * Three ways to copy fill the same tile with the same bytes, and zeros where the tile lies outside of the matrix:
 * - CPTX_OPERAND_TMA (sm_90 and later): one thread calls; cp.async.bulk.tensor for each box of the tile.
 * - CPTX_OPERAND_CP_ASYNC (sm_80): a number of threads call together; each copies 16 bytes (.align 4, 8: fewer) at once
 *   straight to their swizzled place.  A pipeline tells when they are there (<cptx/pipeline.h>, .by).
 * - CPTX_OPERAND_LDST (any target): the same threads by ld.global and st.shared, for rows that are not even aligned to 4
 *   bytes.  A barrier must follow before others read them.
 *
 * What it costs.  TMA: an instruction for each box, a mad for the stage.  By threads: places in shared memory and the
 * thread's part of the address are computed once, by cptx_operand_new.  A cptx_operand_load then begins with about six
 * instructions for the address; where a loop goes along the matrix, cptx_operand_source before it and
 * cptx_operand_advance in it take three.  For each 16 bytes: an add of 64 bits where the copy goes to another row, cp.async,
 * and, unless .rows is NONE or .clamp is set, a setp and a selp for the rows behind the last.
 *
 * Rows and columns are those of the tile: rows along m or n, columns along k (cptx_tile).  Nothing here does more than the
 * calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_OPERAND_H
#define CPTX_OPERAND_H

#include <cptx/tensor_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who copies. */
enum cptx_operand_by {
	CPTX_OPERAND_TMA,      /**< the tensor memory accelerator, for one thread */
	CPTX_OPERAND_CP_ASYNC, /**< threads, without waiting */
	CPTX_OPERAND_LDST      /**< threads, through registers */
};

enum {
	CPTX_OPERAND_COPIES = 64, /**< chunks of 16 bytes that one thread copies of a tile, at most */
	CPTX_OPERAND_PLACES = 16  /**< registers that their places in shared memory take, at most; as a rule 1 */
};

/** What an operand is made of.  The host can make tensor maps of the same description, whose values of the kernel
 * (cptx_val) are not read then. */
typedef struct cptx_operand_opt {
	uint32_t size;           /**< CPTX_OPT fills it in */
	enum cptx_operand_by by; /**< who copies */
	enum cptx_type type;     /**< of elements, as wide as those of the tile: CPTX_BF16, CPTX_F32, CPTX_E4M3 ... */
	cptx_tile tile;          /**< of a stage.  By threads: rows (mn_major: columns) of whole 16 bytes, elements not padded */
	uint32_t stages;         /**< 1 to 64; 0: 1 */
	cptx_val smem;           /**< .u32 address of stage 0, aligned to cptx_tile_align; NONE: cptx_shared_dyn sets it aside */
	uint32_t apart; /**< bytes from stage to stage; 0: those of a tile, rounded up to cptx_tile_align.  With .smem of
	                     one's own two operands can share each stage */
	cptx_val map;   /**< TMA: .u64 generic address of the tensor map; NONE: each load says its own */
	bool batched;   /**< TMA: the map has a further dimension of matrices: .z of a load */
	bool spans; /**< TMA: the map is of cptx_tile_tensor_map_3d, and one copy brings the tile.  The contiguous dimension of
	                 the matrix is made of whole spans */
	bool alone; /**< TMA: to .shared::cta, PTX 8.6.  Not for multicast and pairs.  For .shared::cluster ptxas 13.0 calls a
	                 function in code for sm_12x */
	uint32_t parts;   /**< TMA: a load brings one of so many parts of the tile's rows, and multicasts it; 0: 1, all of it */
	uint32_t im2col;  /**< TMA: dimensions of an image, 3 to 5: channels, W, H, D, N as many as there are; 0: a matrix.
	                       Rows of the tile are pixels, at most 1024, and columns channels (mn_major: the reverse);
	                       cptx_operand_load_im2col */
	cptx_val address; /**< by threads: .u64 global address of the matrix, aligned to .align */
	cptx_val rows;    /**< by threads: rows that there are, .u32 or constant below 2^31.  NONE: no tile lies outside, nothing
	                       is tested */
	cptx_val cols;    /**< by threads: the columns.  Rows (mn_major: columns) have less than 2 GiB */
	cptx_val pitch;   /**< by threads: bytes from row to row (mn_major: column to column), .u32, .u64 or constant, which
	                       .align divides; NONE: dense, for which .cols (mn_major: .rows) must be there */
	uint32_t threads; /**< by threads: that copy together, all of which call; a multiple of 8.  Without .thread all of .block
	                       along x */
	cptx_val thread;  /**< by threads: .u32 number of this one, 0 to threads - 1; NONE: %tid.x */
	uint32_t align;   /**< by threads: bytes that the address and the pitch are multiples of; LDST: the bytes of all columns
	                       (mn_major: rows) too.  CP_ASYNC: 4, 8, 16; 0: 16.  LDST: 1 to 16; 0: those of an element */
	bool whole;       /**< CP_ASYNC: rows (mn_major: columns) end at multiples of 16 bytes, so that 16 bytes are inside or
	                       outside as a whole: a copy outside of the matrix then costs a predicate alone, else ptxas reckons
	                       with any number of bytes, in some five instructions a copy */
	const char *name; /**< of the shared memory; NULL: "operand_" and its offset */
	uint32_t batch_dims; /**< TMA, batched: dimensions of matrices, 1 or 2 (.z and .z2 of a load); 0: 1 */
	bool
		clamp; /**< by threads, with .rows (mn_major: .cols): rows (columns) behind the last are the last once more, not
	              zeros. A register for each of the thread's rows in place of a predicate for each of its copies; a source is
	                sought, not advanced, along them, tiles begin inside of the matrix, and their rows span less than
	                4 GiB.  For an operand whose rows behind the end only make results that nobody stores */
	cptx_val gather; /**< by threads, with .clamp and rows that are contiguous: .u64 global address of a u32 for each of
	                    .rows rows: where row r of a tile is meant, row gather[r] of the matrix is copied, which has less
	                    than 4 GiB.  Read where a source is sought, one load for each of the thread's rows.  NONE: row r */
	char z_;
} cptx_operand_opt;

/** An operand of a kernel.  Plain data. */
typedef struct cptx_operand {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_operand_opt opt;       /**< as given, with what 0 and NONE stand for */
		uint64_t reserved_opt_[48]; /**< for options of later versions */
	};
	cptx_val smem;       /**< .u32 address of stage 0 */
	uint32_t bytes;      /**< that a tile's copies bring: what cptx_pipe_expect is told, all parts together */
	uint32_t apart;      /**< bytes from stage to stage */
	cptx_tile_boxes box; /**< TMA: the copies of one load */
	uint32_t copies;     /**< by threads: chunks of 16 bytes that a thread copies of a tile */
	/* By threads: a thread's chunks of 16 bytes have the same place in a span, in rows (of the contiguous dimension) and
	 * spans that are a constant number apart. */
	uint32_t row_step, span_step;          /**< rows and spans from copy to copy */
	uint32_t row_turns, span_turns;        /**< copies along both: copies = row_turns * span_turns */
	uint32_t places;                       /**< how many of `to` there are */
	uint32_t residue[CPTX_OPERAND_PLACES]; /**< to[i]: address in stage 0 for copies whose unswizzled
	                                            distance is residue[i] modulo the swizzle's period */
	cptx_val to[CPTX_OPERAND_PLACES];      /**< .u32; see residue */
	cptx_val from;                         /**< .u64 global address of the thread's first chunk of the tile at (0, 0); clamp:
	                                            of the matrix */
	cptx_val step;                         /**< .u64, bytes from a copy's rows to those of the next */
	cptx_val row, byte;    /**< .s32: of the contiguous dimension's rows, the thread's first; its byte in it */
	cptx_val last;         /**< predicate: the thread takes part in the last, incomplete turn; NONE: all do */
	bool dense;            /**< by threads: the pitch follows from .cols (mn_major: .rows) */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_operand;

CPTX_API void cptx_operand_new_(cptx_kernel *k, cptx_site at, cptx_operand *op, const cptx_operand_opt *opt);
/** Sets the ring aside, and computes what all copies share; in front of roles and loops, by all threads that copy or read.
 */
#define cptx_operand_new(...) cptx_operand_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_operand_new_x_(k, op, ...) cptx_operand_new_((k), CPTX_HERE, (op), CPTX_OPT(cptx_operand_opt, __VA_ARGS__))
/** Makes an operand of a description that there is already, const cptx_operand_opt *, such as the one that tensor maps are
 * of. */
#define cptx_operand_make(k, op, opt) cptx_operand_new_((k), CPTX_HERE, (op), (opt))

CPTX_API void cptx_operand_rebase_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val address);
/**
 * By threads: the matrix is another one from here on, at that .u64 global address: of a batch, or of a list, where the
 * registers .rows and .cols (and .pitch) of the description were set anew.  Writes the operand's registers, four to eight
 * instructions; sources are to be sought anew behind it.
 */
#define cptx_operand_rebase(k, op, address) cptx_operand_rebase_((k), CPTX_HERE, (op), (address))

CPTX_API cptx_val cptx_operand_at_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage);
/** The .u32 shared memory address of a stage: .u32, or a constant, which costs no instruction (cptx_offset). */
#define cptx_operand_at(k, op, stage) cptx_operand_at_((k), CPTX_HERE, (op), CPTX_V(stage))

/** Where in the matrix a tile begins. */
typedef struct cptx_operand_src {
	cptx_made made;    /**< by which call, in which kernel */
	cptx_val row, col; /**< TMA: .s32 registers, or constants */
	cptx_val from;     /**< by threads: .u64 address of the thread's first chunk; clamp: of the tile */
	cptx_val rows;     /**< by threads: .s32, rows of the contiguous dimension from its first chunk on; NONE: not tested */
	cptx_val bytes;    /**< by threads: .s32, bytes from there to the end of the row; NONE: not tested */
	cptx_val of;       /**< by threads: address of stage 0 of the operand, whose parts the threads have */
	cptx_val offsets;  /**< by threads, clamp: .u32, bytes from .from to the thread's chunk of each row; else NONE */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_operand_src;

CPTX_API cptx_operand_src cptx_operand_source_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val row,
                                               cptx_val col);
/** The tile at a row and column of the matrix, .u32, .s32 or constants, in registers of its own.  By threads: none is
 * negative.  TMA: the coordinate along contiguous memory is a multiple of 16 bytes; spans: of a whole span. */
#define cptx_operand_source(k, op, row, col) cptx_operand_source_((k), CPTX_HERE, (op), CPTX_V(row), CPTX_V(col))
CPTX_API void cptx_operand_seek_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src, cptx_val row,
                                 cptx_val col);
/** The same in the registers of a source: for the next output tile. */
#define cptx_operand_seek(k, op, src, row, col) cptx_operand_seek_((k), CPTX_HERE, (op), (src), CPTX_V(row), CPTX_V(col))
CPTX_API void cptx_operand_advance_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src,
                                    uint32_t rows, uint32_t cols);
/** So many rows and columns further: 0, 64 for the next step along k. */
#define cptx_operand_advance(k, op, src, rows, cols) cptx_operand_advance_((k), CPTX_HERE, (op), (src), (rows), (cols))

/** How to load.  All zero: a whole tile. */
typedef struct cptx_operand_load_opt {
	uint32_t size;    /**< CPTX_OPT fills it in */
	cptx_val barrier; /**< TMA: .u32 address of the mbarrier where the bytes complete: cptx_pipe_full, cptx_pipe_full_of */
	cptx_val z;       /**< TMA, batched: the number of the matrix, .u32, .s32 or constant */
	cptx_val part;    /**< TMA, parts: which of them, .u32 or constant */
	cptx_val mask;    /**< TMA: multicast to the CTAs of the cluster whose bits are 1, .b16 or constant; NONE: none */
	cptx_val map;     /**< TMA: another tensor map; NONE: the operand's */
	uint32_t ctas;    /**< TMA: 2: of a pair of CTAs (cta_group::2), whose barrier may be in either; 0: no pair */
	cptx_val when;    /**< predicate: the threads that copy; NONE: all that come here */
	cptx_val policy;  /**< TMA, CP_ASYNC: .b64 of createpolicy; NONE: none */
	uint32_t first, copies; /**< by threads: `copies` of the thread's chunks from number `first` on (op.copies; 0: all), to
	                             spread them over a mainloop */
	cptx_val w, h, d, n; /**< im2col: the first pixel's place in the bounding box's coordinates, .s32 or constants; as many
	                        as there are, else not read */
	cptx_val offset[3];  /**< im2col: of the filter's tap along w, h, d: .u16, .u32 or constants; NONE: 0 */
	cptx_val z2;         /**< TMA, .batch_dims 2: the number of the matrix along the second, as .z */
	cptx_val at;      /**< by threads: .u32, bytes from stage 0 to the stage, whose number is not read then.  Counted along
	                       with the stages it costs an add in place of a product, in a uniform register */
	cptx_val col_end; /**< TMA, mn_major: columns of the matrix from this one on, .u32 or .s32, are left out: those of the
	                       tile that are in front of it lie at its end, behind zeros, so that products along the columns
	                       of two operands with the same .col_end are right; the map is of cptx_tensor_map_cut_load.  Not
	                       with .batched and spans.  Four instructions.  NONE: all there are */
	char z_;
} cptx_operand_load_opt;

CPTX_API void cptx_operand_load_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage,
                                 const cptx_operand_src *src, const cptx_operand_load_opt *opt);
CPTX_API void cptx_operand_load_at_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage, cptx_val row,
                                    cptx_val col, const cptx_operand_load_opt *opt);
/** Copies the tile at (row, col) to a stage (.u32 or constant): cptx_operand_load(k, &op, stage, row, col, .barrier = b). */
#define cptx_operand_load(...) cptx_operand_load_x_(__VA_ARGS__, .z_ = 0)
#define cptx_operand_load_x_(k, op, stage, row, col, ...)                                                                   \
	cptx_operand_load_at_((k), CPTX_HERE, (op), CPTX_V(stage), CPTX_V(row), CPTX_V(col),                                    \
	                      CPTX_OPT(cptx_operand_load_opt, __VA_ARGS__))
/** Copies the tile of a source to a stage: cptx_operand_load_from(k, &op, stage, &src, .barrier = b). */
#define cptx_operand_load_from(...) cptx_operand_load_from_x_(__VA_ARGS__, .z_ = 0)
#define cptx_operand_load_from_x_(k, op, stage, src, ...)                                                                   \
	cptx_operand_load_((k), CPTX_HERE, (op), CPTX_V(stage), (src), CPTX_OPT(cptx_operand_load_opt, __VA_ARGS__))
/** Of an im2col operand, from a channel on: cptx_operand_load_im2col(k, &op, stage, c, .w = w, .h = h, .n = n, .offset = {
 * s, r }, .barrier = b). */
#define cptx_operand_load_im2col(...) cptx_operand_load_im2col_x_(__VA_ARGS__, .z_ = 0)
#define cptx_operand_load_im2col_x_(k, op, stage, channel, ...)                                                             \
	cptx_operand_load_at_((k), CPTX_HERE, (op), CPTX_V(stage), CPTX_V(0), CPTX_V(channel),                                  \
	                      CPTX_OPT(cptx_operand_load_opt, __VA_ARGS__))

/* ---- tensor maps, made by the host ---- */

/** A matrix in global memory, or several. */
typedef struct cptx_operand_matrix {
	uint32_t size;       /**< CPTX_OPT fills it in */
	uint64_t address;    /**< a multiple of 16, padded elements 32 */
	uint64_t rows, cols; /**< of a matrix, as those of the tile */
	uint64_t pitch;      /**< bytes from row to row (mn_major: column to column), a multiple of 16, padded
	                          elements 32; 0: dense */
	uint64_t batch;      /**< batched: matrices; 0: 1 */
	uint64_t apart;      /**< batched: bytes from matrix to matrix; 0: dense */
	uint64_t batch2;     /**< .batch_dims 2: so many batches; 0: 1 */
	uint64_t apart2;     /**< .batch_dims 2: bytes from batch to batch; 0: dense */
	char z_;
} cptx_operand_matrix;

/** The type of a tensor map for elements of that type in that tile; CPTX_TENSOR_TYPES: there is none. */
CPTX_API enum cptx_tensor_type cptx_operand_tensor_type(enum cptx_type type, const cptx_tile *tile);
CPTX_API bool cptx_operand_tensor_map_(cptx_site at, uint32_t size, const cptx_operand_opt *op,
                                       const cptx_operand_matrix *matrix, cptx_tensor_map_opt *map, cptx_error *err);
/** The tensor map of an operand that TMA loads: cptx_operand_tensor_map(&op, &matrix, &map, &err); .by, .type, .tile,
 * .batched, .batch_dims, .spans and .parts of the description are read.  Fields such as .l2 may be changed then. */
#define cptx_operand_tensor_map(...) cptx_operand_tensor_map_(CPTX_HERE, CPTX_OPT_SIZE(cptx_tensor_map_opt), __VA_ARGS__)

/** Images in global memory, channels innermost: NWC, NHWC or NDHWC.  What is not there (op.im2col) is not read. */
typedef struct cptx_operand_image {
	uint32_t size;          /**< CPTX_OPT fills it in */
	uint64_t address;       /**< a multiple of 16 */
	uint64_t c, w, h, d, n; /**< channels, width, height, depth, images */
	int32_t lower[3];       /**< of W, H, D: where the filter's first tap begins, -padding */
	int32_t upper[3];       /**< where it ends, from the end on: padding - (taps - 1) * dilation */
	uint32_t stride[3];     /**< of the filter, 1 to 8; 0: 1 */
	char z_;
} cptx_operand_image;

CPTX_API bool cptx_operand_image_map_(cptx_site at, uint32_t size, const cptx_operand_opt *op,
                                      const cptx_operand_image *image, cptx_tensor_map_opt *map, cptx_error *err);
/** The tensor map of an im2col operand: cptx_operand_image_map(&op, &image, &map, &err). */
#define cptx_operand_image_map(...) cptx_operand_image_map_(CPTX_HERE, CPTX_OPT_SIZE(cptx_tensor_map_opt), __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
