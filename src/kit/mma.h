/* SPDX-License-Identifier: MIT */
/* What the files of products and accumulators share. */
#ifndef KIT_MMA_H
#define KIT_MMA_H

#include <cptx/mma.h>
#include <cptx/tmem.h>

#include "base/base.h"
#include "kit/made.h"

enum {
	KIT_DESC_BITS = 4, /* descriptors count 16 bytes */
	KIT_META_K =
		64 /* elements along K, with the zeros, of 16 (wgmma: 64) rows, that a word of metadata in each lane tells of */
};

/* A type of A and B. */
typedef struct kit_mma_type {
	enum cptx_type type;
	uint8_t elem;  /* bits of an element in a tile */
	uint8_t bits;  /* that it takes in tensor cores */
	uint8_t depth; /* elements along K of an instruction with a dense A: 32 bytes, of tensor cores */
	bool integer;
	int kind; /* enum cptx_tcgen05_kind; -1: none */
} kit_mma_type;
const kit_mma_type *kit_mma_type_of(enum cptx_type type);
static inline bool kit_is_f64(const cptx_tiled_mma *mma) { return mma->opt.a == CPTX_F64; }
/* The type of the sums of products of a type. */
enum cptx_type kit_acc_type(enum cptx_type a);

/* Threads of a unit. */
uint32_t kit_unit_threads(enum cptx_mma_by by);
/* False, with an error, for what the calls did not make. */
bool kit_mma_is_made(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma);
bool kit_acc_is_made(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/* False, with an error, for an accumulator without registers: one that the calls did not make, or one in tensor memory. */
bool kit_acc_has_registers(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/* An address for arithmetic: an offset that it carries (cptx_offset) is added. */
cptx_val kit_plain(cptx_kernel *k, cptx_site at, cptx_val address);
/* Computes the row and column of the thread's first element, of a fragment. */
void kit_acc_find_place(cptx_kernel *k, cptx_site at, cptx_acc *acc);
/* Fills in the rows of one instruction's D that a thread has elements of, ascending, and how many all of D has. */
void kit_acc_find_rows(cptx_acc *acc);
/* The number of the element in that row and column from the thread's first on; UINT32_MAX: the thread has none there. */
uint32_t kit_acc_number(const cptx_acc *acc, uint32_t row, uint32_t col);

/* Rows of B that one ldmatrix brings. */
static inline uint32_t kit_rows_of_b(const cptx_tiled_mma *mma)
{
	return mma->opt.n % 16 || mma->opt.sparse || kit_is_f64(mma) ? 8 : 16;
}
/* Elements of A that an instruction takes along K: of a sparse A those that are stored. */
static inline uint32_t kit_depth_of_a(const cptx_tiled_mma *mma) { return mma->depth / (mma->opt.sparse ? 2 : 1); }

/* Metadata of an instruction: with elements of 16 bits a word is of two of them. */
typedef struct kit_meta {
	cptx_val word;
	int64_t select;
} kit_meta;
/* Of the rows number i of the unit's, and a step. */
static inline kit_meta kit_meta_of(const cptx_tiled_mma *mma, cptx_val words, uint32_t atoms_m, uint32_t i, uint32_t step)
{
	const uint32_t steps = KIT_META_K / mma->depth;

	return (kit_meta){ cptx_elem(words, step / steps * atoms_m + i), step % steps };
}

/* The instruction whose D is number i along m and j along n of an accumulator. */
typedef struct kit_atom {
	uint32_t i, j;
} kit_atom;
/*
 * The order of mma.sync in a step: a serpentine, so that each shares a fragment with the one before, which the register
 * file's reuse cache then holds.
 */
static inline kit_atom kit_atom_at(const cptx_acc *acc, uint32_t x, bool along_m)
{
	const uint32_t inner = along_m ? acc->atoms_m : acc->atoms_n;
	const uint32_t outer = x / inner, here = outer % 2 ? inner - 1 - x % inner : x % inner;

	return along_m ? (kit_atom){ here, outer } : (kit_atom){ outer, here };
}
/* A of a step, of all instructions along m, from the registers that cptx_acc_as_a gave. */
static inline cptx_val kit_a_of_step(const cptx_tiled_mma *mma, cptx_val regs, uint32_t step)
{
	uint32_t each = mma->opt.m / mma->a_map.rows * mma->a_map.regs;

	return cptx_slice(regs, step * each, each);
}
/* The steps of a tile from opt->first to end - 1 by mma.sync. */
void kit_multiply_sync(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a, cptx_val b,
                       const cptx_mma_tile_opt *opt, uint32_t end);

/* ---- of f64 by mma.sync: mma_f64.c ---- */

enum { KIT_F64_ROWS = 8, KIT_F64_REGS = 2 /* rows of a load, and elements that a lane gets */ };
/* Computes where the lane reads in tiles at a_base and b_base: first: of the unit; NONE: 0. */
void kit_f64_begin(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, cptx_val a_first, cptx_val b_first);
/* Eight elements along K of eight rows of A or B, number i of the unit's, from a tile at `from`, where the lane reads. */
void kit_f64_load(cptx_kernel *k, cptx_site at, const cptx_tile *tile, cptx_val from, uint32_t i, uint32_t step,
                  cptx_val to);
/* D of fragments i of A and j of B, of the registers of a step. */
void kit_f64_multiply(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val a, cptx_val b, uint32_t i,
                      uint32_t j, cptx_val d);

/* ---- by wgmma: mma_wgmma.c ---- */

/* An address as descriptors count it: above 18 bits one may name a CTA of the cluster. */
cptx_val kit_in_units(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val first);
/* The descriptor that those of a wgmma's operand are counted from. */
typedef struct kit_desc {
	cptx_val at;   /* .u64; with desc32 its low word, .u32; of A by A_REGS the registers */
	uint32_t high; /* with desc32: its high word */
	int64_t more;  /* what is to be added to the descriptor of a tile at address 0 */
} kit_desc;
typedef struct kit_wgmma_from {
	kit_desc a, b;
} kit_wgmma_from;
/* The descriptor, but for what is in that of a tile at address 0, of a tile at an address. */
kit_desc kit_desc_of(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val first);
/* The low word of the descriptor of the unit's part of stage 0 of a ring: .u32. */
cptx_val kit_ring_start(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val ring, cptx_val first);
/* The descriptor of a stage of A or B. */
kit_desc kit_desc_of_stage(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, bool of_b, cptx_val stage);
/* The steps of a tile that opt says. */
void kit_multiply_wgmma(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc,
                        const kit_wgmma_from *from, const cptx_mma_tile_opt *opt, cptx_val adds);

/* ---- by tcgen05: mma_tcgen05.c ---- */

/* Columns of tensor memory that A of a tile takes. */
uint32_t kit_a_columns(const cptx_tiled_mma *mma);
/* Descriptors of stage 0; cptx_mma_stage. */
void kit_find_rings_tcgen05(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma);
void kit_multiply_stage_tcgen05(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val stage,
                                const cptx_mma_tile_opt *opt);

/* The instruction descriptor of a step; false: the rule of the kind that is broken. */
bool kit_insn_desc(const cptx_tiled_mma *mma, uint32_t step, uint32_t *word, cptx_error *err);
/* The steps of a tile from opt->first to end - 1, of which the first adds to D where the predicate holds. */
void kit_multiply_tcgen05(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                          cptx_val b, const cptx_mma_tile_opt *opt, uint32_t end, cptx_val adds);

/* ---- by mma.sync with scale factors: mma_scaled.c ---- */

/* The thread's unit along M or N: its number, and what is added and exclusive-ored to addresses in its tile; NONE: 0. */
typedef struct kit_unit {
	cptx_val number, first, flip;
} kit_unit;

/* A or B as bytes, which elements of 4 and 6 bits have been padded to, or share two by two. */
cptx_tile kit_scaled_tile(const cptx_tiled_mma *mma, bool of_b);
/* Fills in fragments, and how they are read; false, with an error, where that cannot be. */
bool kit_scaled_resolve(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma);
/* Computes where the lane reads operands and factors in tiles at address 0. */
void kit_scaled_begin(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma, kit_unit m, kit_unit n);
/* The steps of a tile from opt->first to end - 1. */
void kit_multiply_scaled(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                         cptx_val b, const cptx_mma_tile_opt *opt, uint32_t end);

#endif
