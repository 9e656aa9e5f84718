/* SPDX-License-Identifier: MIT */
/*
 * Tensor maps: what cp.async.bulk.tensor and its like are told of a tensor in global memory.
 *
 * A map is 128 opaque bytes.  For a GPU the driver makes them (cptx_tensor_map in <cptx/device.h>); for the emulator they
 * are the bytes of cptx_tensor_map_pack.  Both are made of one description, and checked by the same rules first.
 *
 * What copies do where the manual leaves it open, measured on an H200 with 2100 random maps (the emulator does the same):
 *
 * Shared memory: the address is a multiple of 128, whatever the swizzle.  With a swizzle and no interleave each row of a
 * box begins a span of 32, 64 or 128 bytes.  Behind narrower rows a gap is left, which is not written; the mbarrier counts
 * the bytes of the rows only.
 *
 * Coordinates: without interleave, the one along dimension 0 stands for a multiple of 16 bytes.  To store and to reduce,
 * none is negative.  A GPU ends with an illegal instruction else, and the context is lost.
 *
 * Ends of rows: stores and reductions do whole 16 bytes.  Where dimension 0 ends within them, what lies between the rows
 * of the tensor is overwritten.
 *
 * Interleave: the dimensions are W, H, D (as many as there are), slices of channels, N.  Dimension 0 counts pixels of 16
 * or 32 bytes, whatever the type.  A box has one slice, whatever box[rank - 2] says; its pixels lie densely, whatever the
 * swizzle.  The corners and offsets of IM2COL are of W, H, D; `channels` must be legal, but does not count.
 *
 * Fill and types: NaN as fill is 0x7ff7 in every 16 bits of all types.  Loads of TF32 round to nearest even and make
 * 0x7fffe000 of every NaN; types with FTZ keep subnormal numbers on the way.
 * Reductions of types with FTZ, and of no others, take subnormal numbers for zeros.
 */
#ifndef CPTX_TENSOR_MAP_H
#define CPTX_TENSOR_MAP_H

#include <cptx/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Types of elements.  The numbers are those of CUtensorMapDataType. */
enum cptx_tensor_type {
	CPTX_TENSOR_U8,            /**< .u8; 8 bits of anything */
	CPTX_TENSOR_U16,           /**< .u16 */
	CPTX_TENSOR_U32,           /**< .u32 */
	CPTX_TENSOR_S32,           /**< .s32 */
	CPTX_TENSOR_U64,           /**< .u64 */
	CPTX_TENSOR_S64,           /**< .s64 */
	CPTX_TENSOR_F16,           /**< .f16 */
	CPTX_TENSOR_F32,           /**< .f32 */
	CPTX_TENSOR_F64,           /**< .f64 */
	CPTX_TENSOR_BF16,          /**< .bf16 */
	CPTX_TENSOR_F32_FTZ,       /**< .f32.ftz */
	CPTX_TENSOR_TF32,          /**< .tf32 */
	CPTX_TENSOR_TF32_FTZ,      /**< .tf32.ftz */
	CPTX_TENSOR_16U4_ALIGN8B,  /**< .b4x16: 16 elements of 4 bits in 8 bytes */
	CPTX_TENSOR_16U4_ALIGN16B, /**< .b4x16_p64: in shared memory 8 bytes of padding behind each 8 */
	CPTX_TENSOR_16U6_ALIGN16B, /**< .b6x16_p32: in shared memory 4 bytes of padding behind each 12 */
	CPTX_TENSOR_TYPES          /**< number of types */
};
/** The name of a type, "bf16", "16U4_ALIGN8B"; "?" for a number that is no type. */
CPTX_API const char *cptx_tensor_type_name(enum cptx_tensor_type type);
/** Bits of an element in global memory; 0 for a number that is no type. */
CPTX_API uint32_t cptx_tensor_type_bits(enum cptx_tensor_type type);

/** The ways in which boxes are described. */
enum cptx_tensor_mode {
	CPTX_TENSOR_TILED,        /**< a box of neighbours along all dimensions */
	CPTX_TENSOR_IM2COL,       /**< rank 3 to 5: channels, W, H, D, N as many as there are; see above for interleave */
	CPTX_TENSOR_IM2COL_W,     /**< along W only; sm_100 and later */
	CPTX_TENSOR_IM2COL_W_128, /**< along W only, always 128 pixels; sm_100 and later */
	CPTX_TENSOR_MODES         /**< number of modes */
};

enum {
	CPTX_TENSOR_RANK = 5,        /**< most dimensions */
	CPTX_TENSOR_MAP_BYTES = 128, /**< bytes of a tensor map */
	CPTX_TENSOR_MAP_ALIGN = 64   /**< alignment of a tensor map's address in bytes */
};

/** A description of a tensor map.  Dimension 0 is the contiguous one. */
typedef struct cptx_tensor_map_opt {
	uint32_t size;                     /**< CPTX_OPT fills it in */
	enum cptx_tensor_mode mode;        /**< how boxes are described */
	enum cptx_tensor_type type;        /**< type of the elements */
	uint32_t rank;                     /**< number of dimensions, 1 to 5 */
	uint64_t address;                  /**< address of the tensor in global memory; a multiple of 16, in some cases of 32 */
	uint64_t dim[CPTX_TENSOR_RANK];    /**< elements, 1 to 2^32 */
	uint64_t stride[CPTX_TENSOR_RANK]; /**< bytes between neighbours along dimension i; [0] is not used; 0: densely packed */
	uint32_t box[CPTX_TENSOR_RANK];    /**< TILED: elements, 1 to 256; [0] a multiple of 16 bytes */
	uint32_t element_stride[CPTX_TENSOR_RANK]; /**< 1 to 8: the box takes every so many elements; 0: 1 */
	uint32_t interleave;                       /**< bytes of a group of channels: 0, 16 or 32 */
	enum cptx_swizzle swizzle;                 /**< swizzle of the box in shared memory */
	uint32_t l2;                               /**< bytes that L2 fetches at once: 0, 64, 128 or 256 */
	bool nan_fill;                             /**< elements outside of the tensor are read as NaN, not 0 */
	int32_t lower[3];  /**< IM2COL: lower corner of the bounding box, W, H, D; the first rank - 2 count */
	int32_t upper[3];  /**< IM2COL: upper corner, from the other end of each dimension */
	uint32_t channels; /**< IM2COL: elements along dimension 0, up to 256 */
	uint32_t pixels;   /**< IM2COL: pixels of a box, up to 1024; not used by W_128 */
	char z_;
} cptx_tensor_map_opt;

/** Checks all rules of the driver and the manual; the message names the broken rule and the nearest legal value. */
CPTX_API bool cptx_tensor_map_check(const cptx_tensor_map_opt *opt, cptx_error *err);
/**
 * Makes of a map of two dimensions one whose boxes can be cut along the second, so that rows behind some row are outside of
 * it, left out by a store, without a map for each end.  The second dimension becomes a window as high as
 * the box, and the third one, by rows too, brings it to its place: a box of which `left` rows from row r on are inside
 * begins at box[1] - left in the window, which is at r + left.  The address is a window in front of the matrix, where
 * nothing is written.  .row_end of <cptx/epilogue.h> computes such coordinates.  Not for loads, whose boxes that are in part
 * outside want an address with memory behind it.
 */
CPTX_API bool cptx_tensor_map_cut(cptx_tensor_map_opt *map, cptx_error *err);
/**
 * Cuts the map of a matrix that is loaded, whose address stays that of the matrix: the rows that are left lie at the end of
 * the box, and zeros in front of them.  A box of which `left` rows from row r on are inside begins at left - box[1] in the
 * window, which is at r.  .col_end of <cptx/operand.h> computes such coordinates.
 */
CPTX_API bool cptx_tensor_map_cut_load(cptx_tensor_map_opt *map, cptx_error *err);
/** Computes the strides in full: those that are 0 in the description are filled in. */
CPTX_API void cptx_tensor_map_strides(const cptx_tensor_map_opt *opt, uint64_t stride[CPTX_TENSOR_RANK]);
/** Bytes that the copy of one box completes: the count for mbarrier.expect_tx.  Of types that are padded in shared memory it
 * is that without the padding, as CUTLASS counts it: 8 or 12 for 16 elements.  UINT32_MAX where a rule is broken, or
 * where the count exceeds 32 bits. */
CPTX_API uint32_t cptx_tensor_map_box_bytes(const cptx_tensor_map_opt *opt);
/** Bytes from row to row of a box in shared memory; more than a row where the row is narrower than the swizzle's span.
 * UINT32_MAX where a rule is broken. */
CPTX_API uint32_t cptx_tensor_map_box_pitch(const cptx_tensor_map_opt *opt);

/**
 * The bytes that cptx uses where there is no driver: nothing is checked here, so that tensormap.replace can change one
 * member after another.  Numbers are little-endian.  By the byte where they begin:
 * - 0: "cptxtmap"
 * - 8: mode, type, rank, interleave / 16, swizzle, l2 (0, or log2 - 5), nan_fill, 0: a byte each
 * - 16: address, 8 bytes
 * - 24: dim, 5 of 5 bytes
 * - 49: stride of dimensions 1 to 4 (in full), 4 of 5 bytes
 * - 69: box, 5 of 2 bytes
 * - 79: element_stride, 5 of 1 byte
 * - 84: lower, upper, 6 of 2 bytes, two's complement
 * - 96: channels, pixels, 2 bytes each
 * - 100: zeros
 *
 * False: a number that has no room there, which none of a legal description is.
 */
CPTX_API bool cptx_tensor_map_pack(const cptx_tensor_map_opt *opt, uint8_t bytes[CPTX_TENSOR_MAP_BYTES], cptx_error *err);
CPTX_API bool cptx_tensor_map_unpack_(const uint8_t bytes[CPTX_TENSOR_MAP_BYTES], cptx_tensor_map_opt *opt, uint32_t size,
                                      cptx_error *err);
/** Reads the description back from such bytes, without checks; false: the bytes are no tensor map of cptx. */
static inline bool cptx_tensor_map_unpack(const uint8_t bytes[CPTX_TENSOR_MAP_BYTES], cptx_tensor_map_opt *opt,
                                          cptx_error *err)
{
	return cptx_tensor_map_unpack_(bytes, opt, CPTX_OPT_SIZE(cptx_tensor_map_opt), err);
}

CPTX_API bool cptx_tile_tensor_map_(const cptx_tile *tile, enum cptx_tensor_type type, uint64_t address, uint64_t rows,
                                    uint64_t cols, uint64_t pitch, cptx_tensor_map_opt *opt, uint32_t size, cptx_error *err);
/**
 * Describes a tensor map that fills a tile: sets type, box and swizzle for a matrix of rows x cols elements (the tile's
 * dimensions) at `address` whose rows (mn_major: columns) are `pitch` bytes apart (0: densely packed).  type: of as many
 * bits as the tile's elements.
 */
static inline bool cptx_tile_tensor_map(const cptx_tile *tile, enum cptx_tensor_type type, uint64_t address, uint64_t rows,
                                        uint64_t cols, uint64_t pitch, cptx_tensor_map_opt *opt, cptx_error *err)
{
	return cptx_tile_tensor_map_(tile, type, address, rows, cols, pitch, opt, CPTX_OPT_SIZE(cptx_tensor_map_opt), err);
}

CPTX_API bool cptx_tile_tensor_map_3d_(const cptx_tile *tile, enum cptx_tensor_type type, uint64_t address, uint64_t rows,
                                       uint64_t cols, uint64_t pitch, cptx_tensor_map_opt *opt, uint32_t size,
                                       cptx_error *err);

/**
 * Describes a tensor map of three dimensions, by which one copy fills the whole tile: place in a span, the other dimension,
 * spans.  It needs a matrix whose contiguous dimension is made of whole spans of the swizzle (16 to 128 bytes), and a tile
 * that fits a box.  Arguments are those of cptx_tile_tensor_map.
 */
static inline bool cptx_tile_tensor_map_3d(const cptx_tile *tile, enum cptx_tensor_type type, uint64_t address,
                                           uint64_t rows, uint64_t cols, uint64_t pitch, cptx_tensor_map_opt *opt,
                                           cptx_error *err)
{
	return cptx_tile_tensor_map_3d_(tile, type, address, rows, cols, pitch, opt, CPTX_OPT_SIZE(cptx_tensor_map_opt), err);
}

#ifdef __cplusplus
}
#endif
#endif
