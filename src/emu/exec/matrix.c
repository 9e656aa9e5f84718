/* SPDX-License-Identifier: MIT */
/* ldmatrix, stmatrix, movmatrix: matrices between shared memory and fragments.  Lane i gives the address of row i, of 16
 * bytes. */
#include "emu/core/counters.h"
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/tensor/fragment.h"

enum { ROW_BYTES = 16, MOST_ROWS = 32, MOST_ELEMENTS = MOST_ROWS * ROW_BYTES };

typedef struct matrix {
	const frag *f;
	uint8_t rows;   /* whose addresses count */
	uint8_t bytes;  /* of an element in the register, and of stored matrices */
	uint8_t packed; /* bits of an element in memory, if they stand close together there; else 0 */
} matrix;

static uint32_t row_lanes(const matrix *x) { return x->rows < WARP ? (UINT32_C(1) << x->rows) - 1 : ALL_LANES; }

static bool row_place(emu_warp *w, const emu_op *op, const emu_arg *a, unsigned lane, emu_place *p)
{
	if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), ROW_BYTES, ROW_BYTES, p))
		return false;
	if (p->space != SPACE_SHARED && p->space != SPACE_CLUSTER) {
		emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "address 0x%llx is not in shared memory",
		         (unsigned long long)emu_address(w, a, lane));
		return false;
	}
	return true;
}

/* Of each of the 16 bytes of a row, whether it is undefined. */
static uint32_t undefined_bytes(const emu_place *p)
{
	const uint8_t *bits = p->cta->shared_defined + p->offset / 8;

	return ~(bits[0] | (uint32_t)bits[1] << 8) & 0xffff;
}

/* Elements of a row, of 8 or 16 bits. */
static void unpack_row(const matrix *x, const unsigned char *row, uint32_t *to)
{
	for (unsigned i = 0; i < (unsigned)ROW_BYTES / x->bytes; i++)
		if (x->packed) {
			unsigned bit = i * x->packed;
			uint32_t two = row[bit / 8] | (uint32_t)row[bit / 8 + 1] << 8;
			to[i] = two >> bit % 8 & ((1u << x->packed) - 1);
		} else {
			to[i] = x->bytes == 2 ? row[2 * i] | (uint32_t)row[2 * i + 1] << 8 : row[i];
		}
}

static void unpack_undefined(const matrix *x, uint32_t bytes, uint8_t *to)
{
	for (unsigned i = 0; i < (unsigned)ROW_BYTES / x->bytes; i++) {
		unsigned first = x->packed ? i * x->packed / 8 : i * x->bytes, n = x->bytes == 2 ? 2 : 1;
		to[i] = !(~bytes >> first & ((1u << n) - 1));
	}
}

static enum emu_step ldmatrix(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const matrix *x = (const matrix *)op->extra;
	const emu_arg *a = &op->arg[1];
	uint32_t element[MOST_ELEMENTS], undefined, any = 0;
	uint8_t bad[MOST_ELEMENTS] = { 0 };
	unsigned per_row = (unsigned)ROW_BYTES / x->bytes;
	emu_place p;

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	if (a->base && !emu_need(w, op, a->slot, mask & row_lanes(x), "the address"))
		return STEP_FAULT;
	for (unsigned row = 0; row < x->rows; row++) {
		if (!row_place(w, op, a, row, &p))
			return STEP_FAULT;
		race_access(w, op, row, &p, ROW_BYTES, ACCESS_READ);
		unpack_row(x, p.p, element + row * per_row);
		if ((undefined = undefined_bytes(&p)) != 0)
			unpack_undefined(x, undefined, bad + row * per_row);
		any |= undefined;
	}
	frag_put(w->r, &op->arg[0], x->f, 0, mask, element);
	frag_define(w->r, &op->arg[0], x->f, 0, mask, any ? bad : NULL);
	emu_traffic_count(w, op, row_lanes(x), ROW_BYTES, ACCESS_READ);
	return STEP_NEXT;
}

static enum emu_step stmatrix(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const matrix *x = (const matrix *)op->extra;
	const emu_arg *a = &op->arg[1];
	uint32_t element[MOST_ELEMENTS];
	uint8_t bad[MOST_ELEMENTS] = { 0 };
	unsigned per_row = (unsigned)ROW_BYTES / x->bytes;
	bool all = frag_defined(w->r, &op->arg[2], mask);
	emu_place p;

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	if (a->base && !emu_need(w, op, a->slot, mask & row_lanes(x), "the address"))
		return STEP_FAULT;
	frag_get(w->r, &op->arg[2], x->f, 0, element);
	if (!all)
		frag_undefined(w->r, &op->arg[2], x->f, 0, mask, bad);
	for (unsigned row = 0; row < x->rows; row++) {
		unsigned char bytes[ROW_BYTES] = { 0 };
		for (unsigned i = 0; i < per_row; i++) {
			uint16_t v = (uint16_t)element[row * per_row + i];
			memcpy(bytes + i * x->bytes, &v, x->bytes);
		}
		if (!row_place(w, op, a, row, &p) ||
		    !emu_write(w, op, row, a->space, emu_address(w, a, row), bytes, sizeof bytes, 0))
			return STEP_FAULT;
		for (unsigned i = 0; i < per_row && !all; i++)
			if (bad[row * per_row + i]) {
				emu_place q = p;
				q.offset += i * x->bytes;
				emu_set_defined(&q, x->bytes, false);
			}
	}
	emu_traffic_count(w, op, row_lanes(x), ROW_BYTES, ACCESS_WRITE);
	return STEP_NEXT;
}

static enum emu_step movmatrix(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const frag *const *f = (const frag *const *)op->extra;
	uint32_t element[64];
	uint8_t bad[64] = { 0 };

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	frag_get(w->r, &op->arg[1], f[0], 0, element);
	frag_undefined(w->r, &op->arg[1], f[0], 0, mask, bad);
	frag_put(w->r, &op->arg[0], f[1], 0, mask, element);
	frag_define(w->r, &op->arg[0], f[1], 0, mask, bad);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static matrix *matrix_new(emu_decoder *d, emu_op *op, bool store)
{
	matrix *x = DECODER_NEW(d, matrix);
	bool bytes = op->opcode == CPTX_OP_LDMATRIX_B8 || op->opcode == CPTX_OP_STMATRIX_B8;
	unsigned src = emu_modifier(op, "src"), num = arch_mods[op->m.num].count;
	cptx_frag what = { .kind = store ? CPTX_FRAG_STMATRIX : CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = bytes ? 8 : 16 };

	if (!x)
		return NULL;
	what.num = (uint8_t)num;
	what.trans = op->m.trans != 0;
	if (bytes) {
		what.m = store || op->m.shape == CPTX_M16N16 ? 16 : 8;
		what.n = store ? 8 : 16;
	}
	*x = (matrix){ .rows = (uint8_t)((bytes && !store ? what.m : 8) * num), .bytes = what.bits / 8 };
	x->packed = src == CPTX_B6X16_P32 ? 6 : src == CPTX_B4X16_P64 ? 4 : 0;
	x->f = frag_new(d, op, &what, FRAG_ROWS);
	op->extra = x;
	op->converge = 1;
	op->flags = OP_SPLITS;
	return x->f ? x : NULL;
}

bool decode_ldmatrix(emu_decoder *d, emu_op *op)
{
	op->fn = ldmatrix;
	return matrix_new(d, op, false) != NULL;
}

bool decode_stmatrix(emu_decoder *d, emu_op *op)
{
	op->fn = stmatrix;
	return matrix_new(d, op, true) != NULL;
}

bool decode_movmatrix(emu_decoder *d, emu_op *op)
{
	cptx_frag what = { .kind = CPTX_FRAG_LDMATRIX, .m = 8, .n = 8, .bits = 16 };
	const frag **f = DECODER_ARRAY(d, const frag *, 2);

	if (!f)
		return false;
	f[0] = frag_new(d, op, &what, FRAG_ROWS);
	what.trans = true;
	f[1] = frag_new(d, op, &what, FRAG_ROWS);
	op->extra = f;
	op->fn = movmatrix;
	op->converge = 1;
	op->flags = OP_SPLITS;
	return f[0] && f[1];
}
