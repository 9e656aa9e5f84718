/*
 * Weak loads and stores of a whole warp that touch one piece of global or shared memory: consecutive elements, lane by lane,
 * or, for loads, all lanes the same one.  What is out of the ordinary is left to the loops over lanes of exec_move.c, which
 * tell what is wrong.
 */
#include "emu/counters.h"
#include "emu/exec_row.h"

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

/* The piece of memory, `stride` or 0 bytes a lane; false: there is none, or it is not that simple. */
static bool row_place(emu_warp *w, const emu_op *op, uint32_t *stride, emu_place *p)
{
	const emu_arg *a = &op->arg[1];
	uint32_t each = (uint32_t)op->imm[0];
	uint64_t at = emu_address(w, a, 0);

	if (a->space > SPACE_CLUSTER || at % each || !in_a_row(w, a, each, stride))
		return false;
	return emu_locate(w->cluster, w->cta, a->space, at, *stride ? WARP * each : each, p) && p->space <= SPACE_CLUSTER;
}

bool row_load(emu_warp *w, const emu_op *op)
{
	const emu_arg *d = &op->arg[0];
	uint32_t each = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (!row_place(w, op, &stride, &p) || !emu_all_defined(&p, stride ? WARP * each : each))
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

bool row_store(emu_warp *w, const emu_op *op)
{
	const emu_arg *b = &op->arg[2];
	uint32_t each = (uint32_t)op->imm[0], stride, silent = 0;
	emu_place p;

	if (each < 4 || each > 8 /* .b128 has its halves apart */ || each * 8 != b->bits || !row_place(w, op, &stride, &p) ||
	    !stride || p.space == SPACE_CONST || (p.alloc && p.alloc->is_const))
		return false;
	const unsigned char *from = (const unsigned char *)emu_r32(w, b->slot);
	if (w->cluster->races && emu_all_defined(&p, WARP * each)) /* a weak store that changes nothing is no race */
		for (unsigned l = 0; l < WARP; l++)
			silent |= (uint32_t)(emu_bytes(p.p + l * each, each) == emu_bytes(from + l * each, each)) << l;
	memcpy(p.p, from, (size_t)WARP * each);
	race_row(w, op, &p, each, each, silent, ACCESS_WRITE | ACCESS_VALUE);
	emu_set_defined(&p, WARP * each, true);
	emu_traffic_row(w, op, &p, each, each, ACCESS_WRITE);
	return true;
}
