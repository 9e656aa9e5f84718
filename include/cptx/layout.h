/* SPDX-License-Identifier: MIT */
/*
 * Where matrix elements lie: in the registers of warps, in tensor memory, and in shared memory.
 *
 * Fragments (cptx_frag) say which lane, register and part of the register holds row r, column c of an operand of mma, wmma,
 * wgmma, ldmatrix, stmatrix, tcgen05.ld and similar instructions.  Descriptors (cptx_smem_desc, cptx_insn_desc) are the
 * 64-bit and 32-bit words by which wgmma and tcgen05.mma find their operands.  All is plain arithmetic on the host: kernel
 * generators, the emulator and `cptx layout` use the same functions, so they agree.
 *
 * Memory: nothing is allocated; every struct is plain data.  Errors: CPTX_E_ARG, naming the rule that is broken.  Lanes,
 * registers, rows and columns count from 0; sizes and offsets are in bytes unless a comment says otherwise.
 */
#ifndef CPTX_LAYOUT_H
#define CPTX_LAYOUT_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Fragments ----------------------------------------------------------------------------------------------------- */

/**
 * The kinds of fragments: the instruction and operand that a fragment belongs to.  Rows and columns are those of the
 * operand: A is m x k, B k x n, C and D m x n.  Lanes of wgmma are the 128 threads of the warpgroup.  "Lanes" of the TMEM
 * kinds are the 128 lanes of tensor memory, followed by those of the second CTA of a pair; their "registers" are its
 * columns, from the address of the operand on.
 */
enum cptx_frag_kind {
	/** f16 m8n8k4: a warp does four products; their A are stacked in 32 rows, their B in 32 columns, their C in 32 rows. */
	CPTX_FRAG_MMA_A,       /**< A of mma.sync; for mma.sp (`sparse`) the k / 2 columns that are stored */
	CPTX_FRAG_MMA_B,       /**< B of mma.sync and mma.sp */
	CPTX_FRAG_MMA_C,       /**< C and D of mma.sync and mma.sp */
	CPTX_FRAG_MMA_META,    /**< metadata of mma.sp: column c is index number c of the row, 2 bits (4 for tf32) */
	CPTX_FRAG_MMA_SCALE_A, /**< scale factors of A of block-scaled mma: m x vec */
	CPTX_FRAG_MMA_SCALE_B, /**< scale factors of B of block-scaled mma: vec x n */
	/** The manual leaves the mapping of wmma open.  This one is that of mma, with the 8-row and 8-column blocks behind one
	 * another; f16 A and B, which have more registers than elements, are repeated.  Code that depends on it runs on the
	 * emulator only. */
	CPTX_FRAG_WMMA_A,     /**< A of wmma */
	CPTX_FRAG_WMMA_B,     /**< B of wmma */
	CPTX_FRAG_WMMA_C,     /**< C and D of wmma */
	CPTX_FRAG_WGMMA_A,    /**< A of wgmma, where registers hold it */
	CPTX_FRAG_WGMMA_D,    /**< accumulators of wgmma */
	CPTX_FRAG_WGMMA_META, /**< metadata of wgmma.sp */
	CPTX_FRAG_LDMATRIX, /**< m8n8 (16 bits), m16n16, m8n16 (8 bits); row r is the 16 bytes that lane r gives the address of.
	                         movmatrix: its source is m8n8, its result m8n8 with `trans` */
	CPTX_FRAG_STMATRIX, /**< m8n8 (16 bits), m16n8 (8 bits); rows as for ldmatrix, so the rows of m16n8 are its columns n */
	CPTX_FRAG_TCGEN05,  /**< tcgen05.ld, tcgen05.st: m lanes of n bits (16x32bx2: m 16, n 32); row: lane of tensor memory */
	CPTX_FRAG_TMEM_D,   /**< accumulators of tcgen05.mma */
	CPTX_FRAG_TMEM_A,   /**< A in tensor memory; of a sparse A (`sparse`) the k / 2 columns that are stored */
	CPTX_FRAG_TMEM_SCALE_A, /**< scale factors of A: m x vec */
	CPTX_FRAG_TMEM_SCALE_B, /**< scale factors of B: n x vec; row r belongs to column r of B */
	CPTX_FRAG_TMEM_META /**< metadata of tcgen05.mma.sp; columns as for MMA_META.  Elements of 16 and 32 bits: in the column
	                       that the sparsity selector adds to the address */
};

/** A fragment: its kind, the shape of the instruction, and all else that the layout depends on. */
typedef struct cptx_frag {
	enum cptx_frag_kind kind; /**< instruction and operand */
	uint16_t m, n, k;         /**< shape of the instruction (sparse: with the zeros); 0 where the kind does not use one */
	/** bits of an element as the operand holds it: f64 64, f32 tf32 s32 32, f16 bf16 16; s8 e4m3, and e2m1, e3m2 in kinds
	 * that hold them in bytes, 8; s4 u4 e2m1 4; b1 1.  META, SCALE: bits of A's elements.  TCGEN05: 0 */
	uint8_t bits;
	bool sparse;    /**< operand of mma.sp, wgmma.sp, tcgen05.mma.sp; not needed for the META kinds */
	bool trans;     /**< ldmatrix.trans, stmatrix.trans; mma.m8n8k4 of f16: A is .col, B is .row */
	bool repeated;  /**< WMMA_A, WMMA_B of f16: the operand is repeated to fill 8 registers */
	uint8_t num;    /**< .x1 to .x128 of ldmatrix, stmatrix, tcgen05; 0: 1 */
	uint8_t select; /**< META: the sparsity selector; MMA_SCALE: thread-id */
	uint8_t byte;   /**< SCALE: byte-id, or the SF_ID of the instruction descriptor */
	uint8_t vec; /**< SCALE: factors of a row, .scale_vec::1X 2X 4X; 0: 1.  TMEM_SCALE with k = 96 also has 3 (.block32) and
	                6 (.block16), where columns are the bytes from the address on: factor i is column `byte` + i */
	bool pack16; /**< tcgen05: .pack::16b, .unpack::16b; columns count 16-bit halves */
	uint16_t split; /**< tcgen05 16x32bx2: the column of the second half */
	uint8_t ctas;   /**< TMEM: cta_group 1 or 2; 0: 1 */
	bool ws;        /**< TMEM: tcgen05.mma.ws */
	uint8_t beside; /**< MMA_B, MMA_C: number of fragments side by side along n, a power of two; 0: 1.  Two fragments of two
	                   registers are one ldmatrix.x4 or stmatrix.x4, four registers in their order */
	char z_;
} cptx_frag;

/** The step that one bit of a lane, register or slot number adds to row and column. */
typedef struct cptx_frag_step {
	uint16_t row, col; /**< added to the row, to the column */
} cptx_frag_step;

/**
 * The mapping of a fragment: row = the sum of the row steps of all bits that are 1 in lane, register and slot number; the
 * column likewise.  Generators may read the steps: a lane's part is fixed, a register's is a constant.
 */
typedef struct cptx_frag_map {
	uint16_t rows, cols;  /**< size of the operand */
	uint16_t lanes, regs; /**< lanes and registers that hold the operand */
	uint8_t slots;        /**< elements in a register */
	uint8_t first;        /**< slot s is at bit (first + s) * bits of the register */
	uint8_t bits;         /**< bits of an element in the register */
	uint8_t reg_bits;     /**< bits of a register, 32 or 64 */
	uint16_t mask, value; /**< lanes with (lane & mask) == value hold elements */
	/** bits of the lane number that do not matter: lanes that differ in them alone hold the same elements */
	uint16_t copies;
	uint16_t reg_copies;                     /**< bits of the register number that do not matter */
	cptx_frag_step lane[8], reg[9], slot[5]; /**< the step of each bit of the lane, register and slot number */
} cptx_frag_map;

/** Computes the mapping of a fragment; false: no fragment has that shape. */
CPTX_API bool cptx_frag_resolve(const cptx_frag *frag, cptx_frag_map *map, cptx_error *err);
/** The name of a kind, "mma A"; "?" for a number that is no kind. */
CPTX_API const char *cptx_frag_kind_name(enum cptx_frag_kind kind);

/** Row and column of an element. */
typedef struct cptx_cell {
	uint16_t row, col; /**< counted from 0 */
} cptx_cell;
/** The place of an element in registers. */
typedef struct cptx_place {
	uint16_t lane, reg, slot; /**< counted from 0 */
} cptx_place;

/** The element that a place holds; false if it holds none. */
CPTX_API bool cptx_frag_cell(const cptx_frag_map *map, cptx_place place, cptx_cell *cell);
/** The first place that holds an element (map->copies tells the others); false: the element is outside of the operand, or in
 * columns that a .16x32bx2 skips (cptx_frag.split). */
CPTX_API bool cptx_frag_place(const cptx_frag_map *map, cptx_cell cell, cptx_place *place);

/* ---- Swizzles ------------------------------------------------------------------------------------------------------ */

/** The permutations of 16-byte chunks of shared memory.  The numbers are those of CUtensorMapSwizzle; 96B has no number
 * there, and is 4 in tensormap.replace. */
enum cptx_swizzle {
	CPTX_SWIZZLE_NONE,                  /**< no permutation */
	CPTX_SWIZZLE_32B,                   /**< 2 chunks change places in 32 bytes */
	CPTX_SWIZZLE_64B,                   /**< 4 chunks in 64 bytes */
	CPTX_SWIZZLE_128B,                  /**< 8 chunks in 128 bytes */
	CPTX_SWIZZLE_128B_ATOM_32B,         /**< 32-byte chunks; this and the following need sm_100 or later */
	CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B, /**< loads by tensor maps only; the flip is derived from the manual's words */
	CPTX_SWIZZLE_128B_ATOM_64B,         /**< 64-byte chunks */
	CPTX_SWIZZLE_96B,                   /**< sm_103a, tensor maps only */
	CPTX_SWIZZLE_COUNT                  /**< number of swizzles */
};

/** Facts about a swizzle.  For NONE all but `name` and `span` are 0. */
typedef struct cptx_swizzle_info {
	const char *name; /**< such as "128B" */
	uint16_t span;    /**< bytes of a row that it permutes; NONE: 16 */
	uint16_t repeat;  /**< bytes after which the pattern is the same; the alignment of a buffer */
	uint8_t from;     /**< lowest of the address bits that select the permutation */
	uint8_t to;       /**< lowest of the address bits that change: the chunk is 1 << to bytes */
	uint8_t mask;     /**< 1, 3 or 7: the bits at `from` that are exclusive-ored to those at `to` */
} cptx_swizzle_info;
/** The facts about a swizzle; NULL for a number that is no swizzle. */
CPTX_API const cptx_swizzle_info *cptx_swizzle_get(enum cptx_swizzle swizzle);
/** The swizzle with this name, "128B"; COUNT if there is none. */
CPTX_API enum cptx_swizzle cptx_swizzle_find(const char *name);
/** The address where the swizzle keeps the byte of a shared memory address (or of an offset in a buffer aligned to
 * `repeat`).  The function is its own inverse. */
CPTX_API uint32_t cptx_swizzle_address(enum cptx_swizzle swizzle, uint32_t address);

/* ---- Descriptors of matrices in shared memory ----------------------------------------------------------------------- */

/** The instructions that a descriptor is for. */
enum cptx_desc_arch {
	CPTX_DESC_WGMMA,  /**< wgmma, sm_90a */
	CPTX_DESC_TCGEN05 /**< tcgen05.mma and tcgen05.cp, sm_100 and later */
};

/**
 * A shared memory matrix descriptor.  lbo and sbo are the bytes between neighbouring:
 *   K-major, no swizzle    lbo: 16-byte chunks along k;       sbo: groups of 8 rows
 *   K-major, swizzled      lbo: not used;                     sbo: groups of 8 rows
 *   MN-major, no swizzle   lbo: groups of 8 along k;          sbo: 16-byte chunks along m or n
 *   MN-major, swizzled     lbo: swizzle spans along m or n;   sbo: groups of 8 (32-byte atoms: 4) along k
 */
typedef struct cptx_smem_desc {
	enum cptx_desc_arch arch;  /**< instructions that it is for */
	enum cptx_swizzle swizzle; /**< NONE, 32B, 64B, 128B; tcgen05: 128B_ATOM_32B too */
	uint32_t start;            /**< shared memory address, below 256 KiB; start, lbo and sbo are multiples of 16 */
	uint32_t lbo, sbo;         /**< leading and stride byte offset, see the table above */
	/** (address where the swizzle pattern starts >> 7) & 7; 0 if that address is aligned to the pattern's repeat */
	uint8_t base_offset;
	bool lbo_is_address; /**< tcgen05 on sm_103a: lbo is the address of what exceeds the first 128 bytes of a row */
	char z_;
} cptx_smem_desc;

/** Checks and encodes a descriptor; false: err names the field that is wrong and what would be right. */
CPTX_API bool cptx_smem_desc_encode(const cptx_smem_desc *desc, uint64_t *word, cptx_error *err);
/** Decodes a word; false: a reserved bit is set, or a field has no meaning.  *desc is filled as far as it can be. */
CPTX_API bool cptx_smem_desc_decode(enum cptx_desc_arch arch, uint64_t word, cptx_smem_desc *desc, cptx_error *err);

/** One field of a descriptor word. */
typedef struct cptx_desc_field {
	const char *name;  /**< name of the field's member in the struct */
	const char *about; /**< what the field holds */
	uint8_t low, high; /**< lowest and highest bit */
	/** factor from the field's bits to its value: 16 for addresses and offsets in bytes, 8 for N; 0: not a number */
	uint8_t unit;
} cptx_desc_field;
CPTX_API bool cptx_smem_desc_field_(enum cptx_desc_arch arch, size_t i, cptx_desc_field *field, size_t size);
/** Field i, from 0 on, from the lowest bit up; bits of no field are reserved.  False behind the last. */
static inline bool cptx_smem_desc_field(enum cptx_desc_arch arch, size_t i, cptx_desc_field *field)
{
	return cptx_smem_desc_field_(arch, i, field, sizeof *field);
}
/** Sets a member by its name; the value is a number, a swizzle's name, yes or no. */
CPTX_API bool cptx_smem_desc_set(cptx_smem_desc *desc, const char *name, const char *value, cptx_error *err);

/** The place of an element's lowest bit. */
typedef struct cptx_smem_place {
	uint32_t byte; /**< shared memory address, 18 bits */
	uint8_t bit;   /**< bit of that byte; not 0 only for elements of 4 and 6 bits */
} cptx_smem_place;

/** How shared memory holds the elements of an operand. */
typedef struct cptx_smem_elem {
	uint8_t bits;  /**< 4, 6, 8, 16, 32, or 1 (b1) */
	bool mn_major; /**< m or n is the contiguous dimension, not k */
	bool padded;   /**< 4 or 6 bits: 16 of them lie in 16 bytes, as 16U4_ALIGN16B and 16U6_ALIGN16B tensor maps store them */
} cptx_smem_elem;

/** The place of element (row of A or column of B, k), both counted from the descriptor's start; byte UINT32_MAX: there is no
 * such swizzle or element. */
CPTX_API cptx_smem_place cptx_smem_desc_at(const cptx_smem_desc *desc, cptx_smem_elem elem, uint32_t row, uint32_t k);

/* ---- Tiles in shared memory ------------------------------------------------------------------------------------------ */

/**
 * A tile of an operand in shared memory: `rows` along m or n, `cols` along k, in elements.
 *
 * pitch 0: the contiguous dimension is divided into spans of the swizzle (16, 32, 64 or 128 bytes), and each span is stored
 * densely for all of the other dimension, one span behind the other: as a tensor map writes it box by box, and as matrix
 * descriptors can describe it.  pitch > 0: whole rows (mn_major: columns), `pitch` bytes apart, with padding behind them.
 * Either way the swizzle is applied to the offset in the tile, which must be aligned to cptx_tile_align().
 */
typedef struct cptx_tile {
	uint32_t rows, cols; /**< elements */
	cptx_smem_elem elem; /**< bits 1, 4, 6 (padded), 8, 16, 32 or 64; whether rows (mn_major) or columns are contiguous */
	enum cptx_swizzle swizzle; /**< any but 96B */
	uint32_t pitch;            /**< bytes from row to row (mn_major: from column to column); 0: see above */
	char z_;
} cptx_tile;

/** Checks a tile.  The calls below need a tile that passed; calls without a place for an error return UINT32_MAX for others.
 * There is no memory of that size, so a builder call that gets it is an error on the user's line. */
CPTX_API bool cptx_tile_check(const cptx_tile *tile, cptx_error *err);
/** Bytes of shared memory that a tile takes; with pitch 0, and elements that are not padded, also the bytes to tell
 * mbarrier.expect_tx when tensor maps write all of it (else: cptx_tensor_map_box_bytes). */
CPTX_API uint32_t cptx_tile_bytes(const cptx_tile *tile);
/** The alignment of a tile's start in bytes. */
CPTX_API uint32_t cptx_tile_align(const cptx_tile *tile);
/** The place of an element, as an offset from the tile's start; byte UINT32_MAX: it is outside of the tile. */
CPTX_API cptx_smem_place cptx_tile_at(const cptx_tile *tile, uint32_t row, uint32_t col);

/** The boxes of a tensor map that fill a tile: box i is written at i * bytes.  The order is along the contiguous dimension
 * first. */
typedef struct cptx_tile_boxes {
	uint32_t box[2];   /**< elements: contiguous dimension, other dimension */
	uint32_t count[2]; /**< boxes along each of these dimensions */
	uint32_t bytes;    /**< bytes of one box in shared memory */
} cptx_tile_boxes;
/** Computes the boxes of a tile; false: no tensor map writes such a tile, and err says why. */
CPTX_API bool cptx_tile_get_boxes(const cptx_tile *tile, cptx_tile_boxes *boxes, cptx_error *err);

/**
 * The descriptor of the operand that begins at (row, col) of a tile at the shared memory address `start`; for the next step
 * along k, add to col.  False: the tile, or that place in it, cannot be described.
 */
CPTX_API bool cptx_tile_desc(const cptx_tile *tile, enum cptx_desc_arch arch, uint32_t start, uint32_t row, uint32_t col,
                             cptx_smem_desc *desc, cptx_error *err);

CPTX_API cptx_val cptx_tile_word_(cptx_kernel *k, cptx_site at, const cptx_tile *tile, enum cptx_desc_arch arch,
                                  cptx_val start);
/** Emits code for the descriptor (.u64) of the operand at (0, 0) of a tile at a shared memory address in a register (.u32,
 * aligned as cptx_tile_align() says). */
#define cptx_tile_word(k, tile, arch, start) cptx_tile_word_((k), CPTX_HERE, (tile), (arch), (start))
/** The number to add to the word of cptx_tile_word for the operand that begins at (row, col); UINT32_MAX: no descriptor
 * describes it. */
CPTX_API uint32_t cptx_tile_word_step(const cptx_tile *tile, uint32_t row, uint32_t col);
/** The number to add to the word of cptx_tile_word for a tile `bytes` further on, a multiple of 16. */
static inline uint32_t cptx_tile_word_bytes(uint32_t bytes) { return bytes / 16; }

/* ---- ldmatrix and stmatrix on tiles ------------------------------------------------------------------------------------
 */

/**
 * How ldmatrix fills a fragment from a tile, or stmatrix stores it there: made by cptx_tile_lines.  There are `count`
 * instructions of `.x<num>` (m8n8, b16); instruction i has registers i * num to i * num + num - 1 of the fragment.
 */
typedef struct cptx_lines {
	cptx_tile tile;    /**< tile that holds the lines */
	cptx_frag_map map; /**< mapping of the fragment */
	uint32_t row, col; /**< row and column of the tile where the fragment begins */
	uint16_t count;    /**< number of instructions */
	uint8_t num;       /**< matrices of an instruction: 1, 2 or 4 */
	bool trans;        /**< the instructions have .trans */
	bool transposed;   /**< the fragment is B: its columns are rows of the tile */
	char z_;
} cptx_lines;
/** Computes the lines of a fragment.  frag: A, B or C of mma, A or D of wgmma, with elements as wide as the tile's.  False:
 * the tile's lines of 16 bytes are no rows of that fragment, and err says why. */
CPTX_API bool cptx_tile_lines(const cptx_tile *tile, const cptx_frag *frag, uint32_t row, uint32_t col, cptx_lines *lines,
                              cptx_error *err);
/** The offset in the tile that a lane (for wgmma 0 to 127) passes to instruction i.  Lanes whose addresses .x1 and .x2 do
 * not read repeat others'. UINT32_MAX: there is no such lane or instruction. */
CPTX_API uint32_t cptx_lines_offset(const cptx_lines *lines, uint32_t i, uint32_t lane);

/* ---- Bank conflicts ----------------------------------------------------------------------------------------------------
 */

/**
 * The cost of one access of a warp.  Shared memory has 32 banks of 4 bytes.  Accesses of up to 4 bytes take one phase, of 8
 * bytes two (lanes 0 to 15, 16 to 31), of 16 bytes, and so the lines of ldmatrix and stmatrix, four of 8 lanes each.  A
 * phase takes as many wavefronts (turns) as a bank has different words in it.
 */
typedef struct cptx_banks {
	uint16_t phases;    /**< phases with a lane that takes part */
	uint16_t turns;     /**< wavefronts of all phases; equal to `phases` if there is no conflict */
	uint16_t worst;     /**< wavefronts of the slowest phase: 4 is a "4-way" conflict */
	uint16_t conflicts; /**< turns - phases */
} cptx_banks;
/** The cost of an access at offset[lane] by the lanes in `active`; bytes of one lane: 1, 2, 4, 8 or 16.  All zero for other
 * sizes, and for NULL. */
CPTX_API cptx_banks cptx_bank_conflicts(const uint32_t offset[32], uint32_t active, uint32_t bytes);
/** The cost of instruction i of lines, summed over the warps. */
CPTX_API cptx_banks cptx_lines_banks(const cptx_lines *lines, uint32_t i);

/* ---- Code that computes addresses of lanes ------------------------------------------------------------------------------
 */

CPTX_API cptx_val cptx_lane_bits_(cptx_kernel *k, cptx_site at, cptx_val lane, uint32_t bits, const uint32_t *value,
                                  bool add, cptx_val base);
/**
 * Emits base + f(lane), where bit i of the lane number, if it is 1, stands for value[i], for i below `bits`; the values are
 * added (`add`) or exclusive-ored.  The lane is below 2^bits.  With exclusive or, base must be a multiple of a power of two
 * above all values.  base may be NONE.  Bits whose values are in proportion share their instructions: rows of 128 bytes with
 * the 128B swizzle are one `and` and one `mad`.
 */
#define cptx_lane_bits(k, lane, bits, value, add, base)                                                                     \
	cptx_lane_bits_((k), CPTX_HERE, (lane), (bits), (value), (add), (base))

CPTX_API cptx_val cptx_frag_lane_(cptx_kernel *k, cptx_site at, const cptx_frag_map *map, cptx_val lane, bool column);
/** Emits the row of the lane's first element; registers and slots add constants to it. */
#define cptx_frag_lane_row(k, map, lane) cptx_frag_lane_((k), CPTX_HERE, (map), (lane), false)
/** Emits the column of the lane's first element; registers and slots add constants to it. */
#define cptx_frag_lane_col(k, map, lane) cptx_frag_lane_((k), CPTX_HERE, (map), (lane), true)

/** The addresses of lines for a lane: one register for instruction 0, and one for each further pattern of swizzled bits. */
typedef struct cptx_lane_lines {
	const cptx_lines *lines; /**< stays the caller's, and must outlive this struct */
	uint32_t count;          /**< number of patterns */
	uint32_t flip[8];        /**< the bits that each pattern exclusive-ors to the first address */
	cptx_val address[8];     /**< the register of each pattern, .u32 */
} cptx_lane_lines;

CPTX_API bool cptx_lane_lines_begin_(cptx_kernel *k, cptx_site at, cptx_lane_lines *l, const cptx_lines *lines,
                                     cptx_val lane, cptx_val start);
/**
 * Emits the address of instruction 0.  lane: the number of the thread, below 32 (wgmma: 128); start: the shared memory
 * address of the tile (.u32), aligned as cptx_tile_align() says.
 */
#define cptx_lane_lines_begin(k, l, lines, lane, start) cptx_lane_lines_begin_((k), CPTX_HERE, (l), (lines), (lane), (start))

CPTX_API cptx_val cptx_lane_lines_at_(cptx_kernel *k, cptx_site at, cptx_lane_lines *l, uint32_t i, uint32_t rows,
                                      uint32_t cols);
/**
 * The address for instruction i of the fragment that begins `rows` rows and `cols` columns further on.  Most addresses emit
 * nothing, because they are constant offsets from a register that is there; the first of a new pattern emits one xor.  Call
 * it for all addresses that a loop needs in front of the loop, and the loop will emit none.  BAD, with an error of the
 * module: outside of the tile, or no such instruction.
 */
#define cptx_lane_lines_at(k, l, i, rows, cols) cptx_lane_lines_at_((k), CPTX_HERE, (l), (i), (rows), (cols))

CPTX_API cptx_lane_lines cptx_lane_lines_moved_(cptx_kernel *k, cptx_site at, const cptx_lane_lines *l, cptx_val by);
/**
 * The same lines in a tile that lies `by` bytes (.u32, a multiple of cptx_tile_align()) further on, such as another stage of
 * a ring.  Emits one add for each pattern that is there; a pattern that is not there yet emits an xor at each use.
 */
#define cptx_lane_lines_moved(k, l, by) cptx_lane_lines_moved_((k), CPTX_HERE, (l), CPTX_V(by))

CPTX_API void cptx_lines_move_(cptx_kernel *k, cptx_site at, const cptx_lines *lines, uint32_t i, cptx_val address,
                               cptx_val frag, bool store);
/** Emits ldmatrix number i from that address to registers i * num and following of the fragment (an array of .b32). */
#define cptx_lines_load(k, lines, i, address, frag) cptx_lines_move_((k), CPTX_HERE, (lines), (i), (address), (frag), false)
/** Emits stmatrix number i to that address from registers i * num and following of the fragment (an array of .b32). */
#define cptx_lines_store(k, lines, i, address, frag) cptx_lines_move_((k), CPTX_HERE, (lines), (i), (address), (frag), true)

/* ---- Instruction descriptors of tcgen05.mma ------------------------------------------------------------------------- */

/** The kinds of tcgen05.mma. */
enum cptx_tcgen05_kind {
	CPTX_TCGEN05_TF32,     /**< .kind::tf32 */
	CPTX_TCGEN05_F16,      /**< .kind::f16, bf16 too */
	CPTX_TCGEN05_F8F6F4,   /**< .kind::f8f6f4 */
	CPTX_TCGEN05_I8,       /**< .kind::i8 */
	CPTX_TCGEN05_MXF8F6F4, /**< .kind::mxf8f6f4, block-scaled */
	CPTX_TCGEN05_MXF4,     /**< .kind::mxf4, block-scaled */
	CPTX_TCGEN05_MXF4NVF4, /**< .kind::mxf4nvf4, block-scaled */
	CPTX_TCGEN05_KINDS     /**< number of kinds */
};
/** The name of a kind, "f16", "mxf4nvf4", ...; "?" for a number that is no kind. */
CPTX_API const char *cptx_tcgen05_kind_name(enum cptx_tcgen05_kind kind);

/** An instruction descriptor. */
typedef struct cptx_insn_desc {
	enum cptx_tcgen05_kind kind;    /**< kind of the instruction */
	uint16_t m, n;                  /**< shape; for a pair of CTAs that of both together */
	enum cptx_type a, b;            /**< tf32; f16 bf16; e4m3 e5m2 e2m3 e3m2 e2m1; s8 u8 */
	enum cptx_type d;               /**< f32; also f16 for f16 and f8f6f4; s32 for i8 */
	enum cptx_type scale;           /**< mx kinds: ue8m0; mxf4nvf4: also ue4m3 */
	bool a_mn_major, b_mn_major;    /**< the operand is MN-major ("transpose") */
	bool a_negated, b_negated;      /**< the operand's sign is changed */
	bool saturate;                  /**< i8: saturate the accumulator */
	bool sparse;                    /**< tcgen05.mma.sp */
	uint8_t selector;               /**< sparsity selector, 0 to 3; not for the mx kinds */
	uint8_t a_scale_id, b_scale_id; /**< SF_ID: the bytes of a word that hold the factors */
	bool k96;                       /**< mxf4, mxf4nvf4 on sm_103a: 96 elements along k, not 64 */
	uint8_t reuse_shift;            /**< .ws: 0 none, 8, 16, 32: the largest shift for reusing B */
	uint8_t ctas;                   /**< cta_group 1 or 2, not encoded; 0: 1 */
	bool ws;                        /**< for tcgen05.mma.ws, not encoded */
	char z_;
} cptx_insn_desc;

CPTX_API bool cptx_insn_desc_field_(enum cptx_tcgen05_kind kind, size_t i, cptx_desc_field *field, size_t size);
/** Field i of the word of a kind, like cptx_smem_desc_field. */
static inline bool cptx_insn_desc_field(enum cptx_tcgen05_kind kind, size_t i, cptx_desc_field *field)
{
	return cptx_insn_desc_field_(kind, i, field, sizeof *field);
}
/** Sets a member by its name: a field of the kind, ctas or ws.  The value is a number, a type's name, yes or no. */
CPTX_API bool cptx_insn_desc_set(cptx_insn_desc *desc, const char *name, const char *value, cptx_error *err);
/** Elements along k of one instruction; 0 for a kind that does not exist. */
CPTX_API uint32_t cptx_insn_desc_k(const cptx_insn_desc *desc);
/** Checks every rule of the kind, the shapes for `ctas` and `ws` included, and encodes the descriptor. */
CPTX_API bool cptx_insn_desc_encode(const cptx_insn_desc *desc, uint32_t *word, cptx_error *err);
/** Decodes a word and checks it.  `ctas` and `ws` are the instruction's.  *desc is filled even if a rule is broken. */
CPTX_API bool cptx_insn_desc_decode(enum cptx_tcgen05_kind kind, uint8_t ctas, bool ws, uint32_t word, cptx_insn_desc *desc,
                                    cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
