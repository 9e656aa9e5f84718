/* SPDX-License-Identifier: MIT */
/*
 * Weak loads and stores of a whole warp that touch one piece of global or shared memory: consecutive elements, lane by lane,
 * or, for loads, all lanes the same one.  What is out of the ordinary is left to the loops over lanes of exec/move.c, which
 * tell what is wrong.
 */
#include "emu/exec/row.h"
#include "emu/core/counters.h"
#include "emu/memory/memory.h"

/* Whether lane l goes to the first address + l * stride, for a stride of 0 or `each`. */
static bool in_a_row(const emu_warp *w, const emu_arg *a, uint32_t each, uint32_t *stride)
{
	uint64_t off = 0;

	if (!a->base) {
		*stride = 0;
		return true;
	}
	if (a->bits == 64) {
		const uint64_t *r = emu_r64(w, a->slot);
		*stride = r[1] == r[0] ? 0 : each;
		for (uint32_t l = 0; l < WARP; l++)
			off |= r[l] ^ (r[0] + l * *stride);
	} else {
		const uint32_t *r = emu_r32(w, a->slot);
		uint32_t narrow = 0;
		*stride = r[1] == r[0] ? 0 : each;
		for (uint32_t l = 0; l < WARP; l++)
			narrow |= r[l] ^ (r[0] + l * *stride);
		off = narrow;
	}
	return !off;
}

/* The piece of memory, `each` bytes a lane, or the same ones (stride 0); false: there is none, or it is not that simple. */
static bool row_place(emu_warp *w, const emu_op *op, uint32_t each, uint32_t *stride, emu_place *p)
{
	const emu_arg *a = &op->arg[1];
	uint64_t at = emu_address(w, a, 0);

	if (a->space > SPACE_CLUSTER || at % each || !in_a_row(w, a, each, stride))
		return false;
	uint32_t size = *stride ? WARP * each : each;
	if (!emu_locate(w->cluster, w->cta, a->space, at, size, p) || p->space > SPACE_CLUSTER ||
	    (p->cta && p->cta != w->cta && emu_has_ended(p->cta)))
		return false;
	return p->space != SPACE_GLOBAL || w->grid->nclusters == 1 || emu_page_left(p, size) == size;
}

/* A parameter of the kernel, the same in all lanes; false: it is something else. */
static bool load_formal(emu_warp *w, const emu_op *op)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1];
	uint32_t each = (uint32_t)op->imm[0], formals = w->g->frame->f->formals;
	uint64_t at = (uint64_t)a->offset;

	if (a->space != SPACE_PARAM || a->base || at % each || at >= formals || formals - at < each)
		return false;
	uint64_t v = emu_bytes(w->grid->params + at, each);
	for (unsigned l = 0; l < WARP; l++)
		emu_put_extended(w, d->slot, d->bits, l, v, op->imm[1]);
	emu_define(w, d->slot, ALL_LANES, ALL_LANES);
	return true;
}

bool row_load(emu_warp *w, const emu_op *op)
{
	const emu_arg *d = &op->arg[0];
	uint32_t each = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (load_formal(w, op))
		return true;
	if (!row_place(w, op, each, &stride, &p) || !emu_all_defined(&p, stride ? WARP * each : each))
		return false;
	race_row(w, op, &p, each, stride, 0, ACCESS_READ);
	if (stride && each * 8 == d->bits && each >= 4) {
		memcpy(emu_r32(w, d->slot), p.p, (size_t)WARP * each);
	} else {
		for (unsigned l = 0; l < WARP; l++)
			emu_put_extended(w, d->slot, d->bits, l, emu_bytes(p.p + l * stride, each), op->imm[1]);
	}
	emu_define(w, d->slot, ALL_LANES, ALL_LANES);
	emu_traffic_row(w, op, &p, each, stride, ACCESS_READ);
	return true;
}

/* Writes `each` bytes a lane. */
static void put_row(emu_warp *w, const emu_op *op, emu_place *p, const uint32_t *words, uint32_t each)
{
	const unsigned char *from = (const unsigned char *)words;
	uint32_t silent = 0;

	emu_writable(w->cluster, p, WARP * each);
	if (w->cluster->races && emu_all_defined(p, WARP * each)) /* a weak store that changes nothing is no race */
		for (unsigned l = 0; l < WARP; l++)
			silent |= (uint32_t)(each > 8 ? !memcmp(p->p + l * each, from + l * each, each)
			                              : emu_bytes(p->p + l * each, each) == emu_bytes(from + l * each, each))
			          << l;
	memcpy(p->p, from, (size_t)WARP * each);
	race_row(w, op, p, each, each, silent, ACCESS_WRITE | ACCESS_VALUE);
	emu_set_defined(p, WARP * each, true);
	emu_traffic_row(w, op, p, each, each, ACCESS_WRITE);
}

bool row_store(emu_warp *w, const emu_op *op)
{
	const emu_arg *b = &op->arg[2];
	uint32_t each = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (each < 4 || each > 8 /* .b128 has its halves apart */ || each * 8 != b->bits || ~*emu_defined(w, b->slot) ||
	    !row_place(w, op, each, &stride, &p) || !stride || p.space == SPACE_CONST || (p.alloc && p.alloc->is_const))
		return false;
	put_row(w, op, &p, emu_r32(w, b->slot), each);
	return true;
}

/* ---- vectors ---- */

enum { VECTOR = 32 /* most bytes of a lane */ };

/* Bytes of a lane, of elements of 4 or 8 that fill their registers; 0: not such. */
static uint32_t vector_bytes(const emu_op *op, const emu_arg *v)
{
	uint32_t element = (uint32_t)op->imm[0];

	return (element == 4 || element == 8) && element * 8 == v->bits && !op->imm[1] ? element * v->count : 0;
}

static bool is_global(const emu_place *p) { return p->space == SPACE_GLOBAL || p->space == SPACE_CONST; }

bool row_load_vector(emu_warp *w, const emu_op *op)
{
	const emu_arg *d = &op->arg[0];
	uint32_t each = vector_bytes(op, d), element = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (!each || !row_place(w, op, each, &stride, &p) || (!stride && !is_global(&p)) ||
	    !emu_all_defined(&p, stride ? WARP * each : each))
		return false;
	race_row(w, op, &p, each, stride, 0, ACCESS_READ);
	for (unsigned i = 0; i < d->count; i++) {
		uint32_t slot = d->slots[i];
		for (unsigned l = 0; slot && l < WARP; l++)
			memcpy((unsigned char *)emu_r32(w, slot) + l * element, p.p + l * stride + i * element, element);
		emu_define(w, slot, ALL_LANES, ALL_LANES);
	}
	emu_traffic_row(w, op, &p, each, stride, ACCESS_READ);
	return true;
}

bool row_store_vector(emu_warp *w, const emu_op *op)
{
	const emu_arg *b = &op->arg[2];
	uint32_t each = vector_bytes(op, b), element = (uint32_t)op->imm[0], stride, words[WARP * VECTOR / 4];
	unsigned char *bytes = (unsigned char *)words;
	emu_place p;

	for (unsigned i = 0; i < b->count; i++)
		if (~*emu_defined(w, b->slots[i]))
			return false;
	if (!each || !row_place(w, op, each, &stride, &p) || !stride || p.space == SPACE_CONST || (p.alloc && p.alloc->is_const))
		return false;
	for (unsigned i = 0; i < b->count; i++)
		for (unsigned l = 0; l < WARP; l++)
			memcpy(bytes + l * each + i * element, (unsigned char *)emu_r32(w, b->slots[i]) + l * element, element);
	put_row(w, op, &p, words, each);
	return true;
}
