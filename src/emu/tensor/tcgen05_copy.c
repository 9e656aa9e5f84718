/* SPDX-License-Identifier: MIT */
/*
 * tcgen05.cp, tcgen05.shift.
 *
 * Taken for granted: with cta_group::2 each CTA of the pair copies from its own shared memory; row i of 4x256b goes to the
 * first lane of quarter i; a shift moves 8 columns, and leaves the first of the 32 rows as it is.
 */
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/tensor/tcgen05_mma.h"

#include <stdlib.h>

/* What the decoder made of a copy. */
typedef struct copy {
	uint8_t rows, columns, bits; /* of the source: rows; words of a row; of an element: 8, or 6 or 4 that become 8 */
	uint8_t quarters[4];         /* of tensor memory: which 32 rows go there */
	bool pair, sparse_rows;      /* 4x256b: a row a quarter */
} copy;

typedef struct copying {
	emu_async a;
	emu_cta *cta[2];
	unsigned ncta;
	tmem_place at;
	smem_side side;
	uint32_t piece[];
} copying;

static uint32_t lane_bands(const copy *x) { return x->sparse_rows ? 0x55 : TMEM_ALL_BANDS; }

/* Elements of bytes from those that are packed; e2m1 goes to bits 2 to 5. */
static void widen(const copy *x, const uint32_t *element, unsigned char *to)
{
	for (unsigned i = 0; i < SMEM_PIECE; i++)
		to[i] = (unsigned char)(x->bits == 4 ? element[i] << 2 : element[i]);
}

static void copy_piece(const copying *c, unsigned cta, unsigned i)
{
	const copy *x = (const copy *)c->a.op->extra;
	emu_tmem *t = c->cta[cta]->tmem;
	uint32_t element[32], word[4];
	unsigned char byte[SMEM_PIECE];
	unsigned row, k;
	uint32_t bad = smem_piece_read(&c->side, c->cta[cta], i, element);

	smem_piece(&c->side, i, &row, &k);
	widen(x, element, byte);
	memcpy(word, byte, sizeof word);
	for (unsigned q = 0; q < 4; q++) {
		unsigned lane = x->sparse_rows ? row * WARP : q * WARP + row % WARP;
		if (x->sparse_rows ? q != row : row / WARP != x->quarters[q])
			continue;
		for (unsigned j = 0; j < 4; j++) {
			unsigned column = c->at.column + k / 4 + j;
			t->v[column][lane] = word[j];
			tmem_define(t, column, lane, !(bad >> 4 * j & 0xf));
		}
	}
}

static bool run_copy(emu_cluster *cluster, emu_async *a)
{
	const copying *c = (copying *)(void *)a;

	(void)cluster;
	for (unsigned cta = 0; cta < c->ncta; cta++)
		for (unsigned i = 0; i < c->side.n; i++)
			copy_piece(c, cta, i);
	return true;
}

static bool open_copy(copying *c, emu_warp *w, const emu_op *op, unsigned lane)
{
	const copy *x = (const copy *)op->extra;
	uint64_t word = emu_get(w, emu_named(op, "b"), lane);
	uint32_t id = tmem_begin(w, op, lane, true);
	const tmem_record *r = tmem_record_of(w->cta, id);
	cptx_error err = { .code = CPTX_OK };
	cptx_smem_desc desc;

	if (!r)
		return false;
	if (!cptx_smem_desc_decode(CPTX_DESC_TCGEN05, word, &desc, &err))
		return emu_find(w, op, EMU_ALL, CPTX_FIND_DESCRIPTOR, "of the source, 0x%llx: %s", (unsigned long long)word,
		                err.text),
		       false;
	if (c->at.lane)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_LANES, "the address names lane %u of tensor memory; it must be 0",
		                c->at.lane),
		       false;
	for (unsigned i = 0; i < c->ncta; i++) {
		if (!tmem_allocated(w, op, c->cta[i], c->at.column, x->columns))
			return false;
		tmem_touch(w, id, c->cta[i], (tmem_area){ c->at.column, x->columns, lane_bands(x), "the destination" }, true);
	}
	return smem_side_open(&c->side, w, op, c->cta, c->ncta, &desc, r->late);
}

static bool choose_ctas(emu_warp *w, const emu_op *op, emu_cta *cta[2], unsigned *n)
{
	bool pair = tmem_pair(op);

	*n = pair ? 2 : 1;
	cta[0] = w->cta;
	cta[1] = pair ? tmem_peer(w, op) : NULL;
	return !pair || cta[1];
}

static bool start_copy(emu_warp *w, const emu_op *op, unsigned lane)
{
	const copy *x = (const copy *)op->extra;
	cptx_smem_elem elem = { .bits = x->bits, .padded = x->bits < 8 };
	smem_side side = smem_side_of("the source", elem, 0, x->rows, x->columns * 4u);
	copying *c = NEW_SIZED(copying, sizeof *c + side.n * sizeof *c->piece);

	if (!c)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work"), false;
	c->a = (emu_async){ .run = run_copy, .w = w, .lane = lane, .op = op };
	c->at = tmem_place_of(emu_address(w, emu_named(op, "a"), lane));
	c->side = side;
	c->side.at = c->piece;
	if (!choose_ctas(w, op, c->cta, &c->ncta) || !open_copy(c, w, op, lane)) {
		free(c);
		return false;
	}
	return tmem_start(&c->a);
}

static enum emu_step cp(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a");

	emu_need_arg(w, op, a, mask, "the address");
	emu_need(w, op, emu_named(op, "b")->slot, mask, "the descriptor");
	EACH_LANE(l, mask)
		if (!start_copy(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_tcgen05_cp(emu_decoder *d, emu_op *op)
{
	copy *x = DECODER_NEW(d, copy);
	unsigned src = emu_modifier(op, "src"), multicast = emu_modifier(op, "multicast");

	if (!x)
		return false;
	x->rows = op->m.shape == CPTX_SHAPE_4X256B    ? 4
	          : op->m.shape == CPTX_SHAPE_64X128B ? 64
	          : op->m.shape == CPTX_SHAPE_32X128B ? 32
	                                              : 128;
	x->sparse_rows = x->rows == 4;
	x->columns = op->m.shape == CPTX_SHAPE_4X256B || op->m.shape == CPTX_SHAPE_128X256B ? 8 : 4;
	x->bits = src == CPTX_B4X16_P64 ? 4 : src == CPTX_B6X16_P32 ? 6 : 8;
	for (unsigned q = 0; q < 4; q++)
		x->quarters[q] = (uint8_t)(multicast == CPTX_WARPX4         ? 0
		                           : multicast == CPTX_WARPX2_02_13 ? q % 2
		                           : multicast == CPTX_WARPX2_01_23 ? q / 2
		                                                            : q);
	op->extra = x;
	op->fn = cp;
	return true;
}

/* ---- shift ---- */

enum { SHIFT_COLUMNS = 8 };

typedef struct shifting {
	emu_async a;
	emu_cta *cta[2];
	unsigned ncta;
	tmem_place at;
} shifting;

static bool run_shift(emu_cluster *c, emu_async *a)
{
	const shifting *x = (shifting *)(void *)a;

	(void)c;
	for (unsigned i = 0; i < x->ncta; i++)
		for (unsigned j = 0; j < SHIFT_COLUMNS; j++) {
			uint32_t *v = &x->cta[i]->tmem->v[x->at.column + j][x->at.lane];
			uint32_t *defined = &x->cta[i]->tmem->defined[x->at.column + j][x->at.lane / WARP];
			memmove(v + 1, v, (WARP - 1) * sizeof *v);
			*defined = *defined << 1 | (*defined & 1);
		}
	return true;
}

static bool open_shift(shifting *x, emu_warp *w, const emu_op *op, unsigned lane)
{
	uint32_t id = tmem_begin(w, op, lane, true);

	if (x->at.lane % WARP || x->at.lane >= TMEM_LANES)
		return emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_LANES,
		                "the address names lane %u of tensor memory; it must be a multiple of 32 below 128", x->at.lane),
		       false;
	for (unsigned i = 0; i < x->ncta; i++) {
		if (!tmem_allocated(w, op, x->cta[i], x->at.column, SHIFT_COLUMNS))
			return false;
		tmem_touch(w, id, x->cta[i],
		           (tmem_area){ x->at.column, SHIFT_COLUMNS, 3u << x->at.lane / TMEM_BAND, "what it moves" }, true);
	}
	return true;
}

static enum emu_step shift(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a");

	emu_need_arg(w, op, a, mask, "the address");
	EACH_LANE(l, mask) {
		shifting *x = NEW(shifting);
		if (!x)
			return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for asynchronous work");
		x->a = (emu_async){ .run = run_shift, .w = w, .lane = l, .op = op };
		x->at = tmem_place_of(emu_address(w, a, l));
		if (!choose_ctas(w, op, x->cta, &x->ncta) || !open_shift(x, w, op, l)) {
			free(x);
			return STEP_FAULT;
		}
		if (!tmem_start(&x->a))
			return STEP_FAULT;
	}
	return STEP_NEXT;
}

bool decode_tcgen05_shift(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = shift;
	return true;
}
