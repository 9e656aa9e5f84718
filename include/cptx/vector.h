/* SPDX-License-Identifier: MIT */
/*
 * Rows of global memory: a row of n elements held by a group of threads as f32, read and written in vectors of 16 or 32
 * bytes.
 *
 *   cptx_row x;
 *   cptx_row_at it;
 *   cptx_row_new(k, &x, .type = CPTX_BF16, .n = 4096, .threads = 256);
 *   cptx_row_load(k, &x, address, .fill = 0);              a register for each element that a thread has
 *   CPTX_ROW_EACH (k, &x, &it)                             a C loop: unrolled
 *       cptx_mul(k, it.v, scale, .into = it.v);           of weights: cptx_elem(w.v, it.i), of w made by cptx_row_like
 *   cptx_row_store(k, &x, address, .cop = CPTX_CS);
 *
 * A vector is what .bytes hold of .type; thread t has the vectors t, t + threads, t + 2 * threads ... of the row.  Another
 * row of the same shape, of weights, say, has registers of its own (cptx_row_like) and may be of another type in memory.
 *
 * What it emits: where all of a thread's vectors lie in the row, loads (or stores) and conversions alone; where the last
 * ones may not, a predicate for each of these, and where they may end within a vector, a branch in which their elements are
 * accessed one by one.  Conversion: .bf16 an instruction for an element, .f16 one and a half, .e4m3 two (sm_89 and later),
 * .f32 none; back half an instruction for an element.  32 bytes at once: sm_100 and later; elsewhere .bytes = 16.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_VECTOR_H
#define CPTX_VECTOR_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a row is kept. */
enum cptx_row_place {
	CPTX_ROW_REGISTERS, /**< a register for each element */
	CPTX_ROW_SHARED     /**< static shared memory, 4 bytes an element; a thread reads only what it wrote: no barriers */
};

/** What a row is. */
typedef struct cptx_row_opt {
	uint32_t size;             /**< CPTX_OPT fills it in */
	enum cptx_type type;       /**< of its elements in memory: CPTX_F32, CPTX_BF16, CPTX_F16, CPTX_E4M3 */
	uint32_t n;                /**< elements; 0: as many as .count says */
	cptx_val count;            /**< .u32 or .s32: elements, 0 to .most */
	uint32_t most;             /**< with .count: room for so many; of a longer row the rest is left out without a word */
	bool whole;                /**< .count is a multiple of a vector's elements */
	uint32_t threads;          /**< that hold the row together, 1 to 1024: without .thread all of .block along x */
	cptx_val thread;           /**< .u32 number of this one; NONE: tid.x */
	uint32_t bytes;            /**< of a vector: 16 or 32; 0: 16 */
	uint32_t align;            /**< rows begin at multiples of so many elements, a power of two; less than a vector: smaller
	                                accesses.  0: of .n the largest power of two that divides it (rows stand behind one another),
	                                at most a vector; of .count a vector */
	bool any;                  /**< rows begin anywhere: cptx_row_begin finds out where, and vectors are laid on the aligned
	                                addresses, so that the first and the last may be in part outside of the row */
	enum cptx_row_place place; /**< where it is kept */
	char z_;
} cptx_row_opt;

/** A row, or the part of it that a thread has.  Plain data. */
typedef struct cptx_row {
	cptx_made made; /**< by which call, in which kernel */
	union {
		cptx_row_opt opt;           /**< as given, with what 0 stands for */
		uint64_t reserved_opt_[20]; /**< for options of later versions */
	};
	uint32_t each;         /**< elements of a vector */
	uint32_t vectors;      /**< that a thread has */
	cptx_val v;            /**< .f32, vectors * each of them; kept in shared memory: each */
	cptx_val thread;       /**< number of the thread */
	cptx_val first;        /**< .s32 column of the first element; NONE: thread * each */
	cptx_val shift;        /**< .u32: elements between an aligned address and the row's beginning; NONE: none */
	cptx_val shared;       /**< .u32 address of the thread's part; NONE: registers */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_row;

CPTX_API void cptx_row_new_(cptx_kernel *k, cptx_site at, cptx_row *r, const cptx_row_opt *opt);
/** Declares a row's registers: cptx_row_new(k, &r, .type = CPTX_F32, .n = 1024, .threads = 128). */
#define cptx_row_new(...) cptx_row_new_x_(__VA_ARGS__, .z_ = 0)
#define cptx_row_new_x_(k, r, ...) cptx_row_new_((k), CPTX_HERE, (r), CPTX_OPT(cptx_row_opt, __VA_ARGS__))

CPTX_API void cptx_row_like_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_row *other);
/** Another row with the same columns, and registers (or shared memory) of its own. */
#define cptx_row_like(k, r, other) cptx_row_like_((k), CPTX_HERE, (r), (other))

CPTX_API void cptx_row_begin_(cptx_kernel *k, cptx_site at, cptx_row *r, cptx_val address);
/** With .any: the row that begins at this address, a multiple of an element's size, comes next.  Loads and stores of rows
 * that begin as far from an aligned address (x and y, both behind aligned buffers) are by vectors; of others say .align. */
#define cptx_row_begin(k, r, address) cptx_row_begin_((k), CPTX_HERE, (r), (address))

/** An access. */
typedef struct cptx_row_access {
	uint32_t size; /**< CPTX_OPT fills it in */
	float fill;    /**< of a load: what registers behind the row's end (and in front of it) get */
	bool unset;    /**< of a load of .f32: registers of elements outside of the row keep what they hold; .fill is not read */
	enum cptx_type type; /**< in memory; 0: the row's */
	uint32_t align;      /**< as cptx_row_opt.align, of this address; 0: the row's */
	enum cptx_mod cop;   /**< cache operator: loads CPTX_CA, CG, CS, LU, CV; stores CPTX_WB, CG, CS, WT; 0: none */
	bool nc;             /**< of a load: .nc, what no thread writes while the kernel runs */
	bool shared;         /**< the address is a .u32 of shared memory; .cop and .nc are not of it */
	char z_;
} cptx_row_access;

CPTX_API void cptx_row_load_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_val address, const cptx_row_access *how);
/** Loads the row at a global address (.u64; .shared: a .u32 of shared memory) and converts it to f32. */
#define cptx_row_load(...) cptx_row_load_x_(__VA_ARGS__, .z_ = 0)
#define cptx_row_load_x_(k, r, address, ...)                                                                                \
	cptx_row_load_((k), CPTX_HERE, (r), (address), CPTX_OPT(cptx_row_access, __VA_ARGS__))
CPTX_API void cptx_row_store_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_val address, const cptx_row_access *how);
/** Converts the row, rounding to nearest even (.e4m3 saturates), and stores what lies inside of it. */
#define cptx_row_store(...) cptx_row_store_x_(__VA_ARGS__, .z_ = 0)
#define cptx_row_store_x_(k, r, address, ...)                                                                               \
	cptx_row_store_((k), CPTX_HERE, (r), (address), CPTX_OPT(cptx_row_access, __VA_ARGS__))

/** Where a loop over a thread's elements stands. */
typedef struct cptx_row_at {
	cptx_made made; /**< by which call, in which kernel */
	cptx_val v;     /**< the element's register */
	uint32_t i; /**< its number among those of the thread; that of a row made by cptx_row_like is cptx_elem(other.v, i) */
	uint32_t column;       /**< its column, less that of the thread's first element, r.first or thread * r.each */
	uint64_t reserved_[1]; /**< for fields of later versions */
} cptx_row_at;

CPTX_API bool cptx_row_each_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_row_at *it, bool next);
/** A C loop over the thread's elements, while the kernel is built.  Of a row in shared memory, each vector is loaded in
 * front of its elements and written back behind them: do not leave the loop early. */
#define CPTX_ROW_EACH(k, r, it)                                                                                             \
	for (bool CPTX_NAME_(cptx_b_, __LINE__) = cptx_row_each_((k), CPTX_HERE, (r), (it), false);                             \
	     CPTX_NAME_(cptx_b_, __LINE__); CPTX_NAME_(cptx_b_, __LINE__) = cptx_row_each_((k), CPTX_HERE, (r), (it), true))

CPTX_API cptx_val cptx_row_column_(cptx_kernel *k, cptx_site at, const cptx_row *r, const cptx_row_at *it);
/** The element's column, .s32: outside of 0 to n - 1 where the register is no element of the row. */
#define cptx_row_column(k, r, it) cptx_row_column_((k), CPTX_HERE, (r), (it))

CPTX_API cptx_val cptx_row_inside_(cptx_kernel *k, cptx_site at, const cptx_row *r, const cptx_row_at *it);
/** A predicate: the register is an element of the row; NONE where every thread's is.  Either can stand behind .when.
 * Registers outside of the row hold what .fill said (0), which a sum of x does not notice and a sum of (x - mean)^2 does. */
#define cptx_row_inside(k, r, it) cptx_row_inside_((k), CPTX_HERE, (r), (it))

#ifdef __cplusplus
}
#endif
#endif
