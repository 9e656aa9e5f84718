/* SPDX-License-Identifier: MIT */
/* One operation of tcgen05.mma: its operands and arithmetic. */
#ifndef CPTX_EMU_TENSOR_TCGEN05_MMA_H
#define CPTX_EMU_TENSOR_TCGEN05_MMA_H

#include "emu/tensor/fragment.h"
#include "emu/tensor/tcgen05.h"

/* ---- operands in tensor memory (tcgen05_map.c) ---- */

/* Which element each part of each word holds: row and column of lane, column and slot added. */
typedef struct tmem_map {
	uint16_t lane_row[TMEM_LANES], lane_col[TMEM_LANES], reg_row[256], reg_col[256], slot_row[32], slot_col[32];
	uint32_t bands; /* that hold some */
	uint16_t mask, value, nreg, rows /* of one CTA */, cols;
	uint8_t nslot, first, bits;
} tmem_map;

/* cta: which of the pair, 0 or 1; its rows count from 0 on.  False: there is no such layout. */
bool tmem_map_make(tmem_map *m, const cptx_frag *what, unsigned cta, cptx_error *err);
/* Elements, row after row; bad[]: elements that are undefined, or (by_row) rows with some; *any: there are such. */
void tmem_map_read(const tmem_map *m, const emu_tmem *t, tmem_place at, uint32_t *to, uint8_t *bad, bool by_row, bool *any);
/* Words of 32 bits; off: lanes that stay as they are.  bad NULL: all are defined. */
void tmem_map_write(const tmem_map *m, emu_tmem *t, tmem_place at, const uint32_t *from, const uint8_t *bad,
                    const uint32_t off[4]);

/* ---- operands in shared memory (tcgen05_map.c) ---- */

enum { SMEM_PIECE = 16 /* bytes */ };

/* One operand of one CTA, in pieces of 16 bytes. */
typedef struct smem_side {
	const char *what;
	cptx_smem_elem elem;
	unsigned rows, k; /* rows of A or columns of B, */
	unsigned first;   /* from this one on */
	unsigned per, n;  /* elements of a piece, pieces */
	uint32_t *at;     /* shared memory address of each */
} smem_side;
smem_side smem_side_of(const char *what, cptx_smem_elem elem, unsigned first, unsigned rows, unsigned k);
void smem_piece(const smem_side *s, unsigned i, unsigned *row, unsigned *k); /* its first element */
/* Finds the pieces in these CTAs, and notes the accesses of operation `late` (race.h); false with a finding. */
bool smem_side_open(smem_side *s, emu_warp *w, const emu_op *op, emu_cta *const *cta, unsigned ncta,
                    const cptx_smem_desc *desc, uint32_t late);
/* The elements of a piece; a bit of the result for each that is undefined. */
uint32_t smem_piece_read(const smem_side *s, const emu_cta *cta, unsigned i, uint32_t *to);

/* ---- operations ---- */

/* What the decoder made of the instruction. */
typedef struct tcgen05_mma {
	enum cptx_tcgen05_kind kind;
	bool sparse, ws, scaled, pair, ashift, counted; /* the spelling has .scale_vec */
	uint8_t vec, scale;                             /* factors of a row, of 64 elements; the exponent of the divisor of D */
	const emu_arg *acc, *a, *b, *idesc, *mask, *enable, *sa, *sb, *meta, *zero;
} tcgen05_mma;

typedef struct mma_op {
	emu_async a;
	const tcgen05_mma *x;
	cptx_insn_desc d;
	emu_cta *cta[2];
	unsigned ncta, m /* rows of a CTA */, k, ka, bits /* of elements in tensor memory */, vec /* factors of a row */;
	tmem_place acc, am, sa, sb, meta;
	bool enable, zero;
	uint32_t off[2][4];         /* lanes of D that are left alone */
	uint32_t zeros[8];          /* columns that B has as zeros */
	unsigned shift;             /* the column of B that is the first */
	smem_side sa_side, sb_side; /* A, B; A unused if it is in tensor memory */
	uint32_t at[];
} mma_op;

/* The layouts of its operands in tensor memory, in one CTA. */
bool mma_map_d(const mma_op *o, unsigned cta, tmem_map *m, cptx_error *err);
bool mma_map_a(const mma_op *o, unsigned cta, tmem_map *m, cptx_error *err);
/* That of B with M = 128 in two CTAs: each half of its rows is filled up to a multiple of 32. */
bool mma_map_scale(const mma_op *o, bool is_b, tmem_map *m, cptx_error *err);
bool mma_map_meta(const mma_op *o, tmem_map *m, cptx_error *err);
bool mma_run(emu_cluster *c, emu_async *a); /* tcgen05_sum.c */

#endif
