/* SPDX-License-Identifier: MIT */
/*
 * Weak loads and stores of a whole warp that touch one piece of global or shared memory: consecutive elements, lane by lane,
 * or, for loads, all lanes the same one; or a few such pieces, as of warps whose lanes are several rows of a block.  What is
 * out of the ordinary is left to the loops over lanes of exec/move.c, which tell what is wrong.
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

/* A piece of memory; false: there is none, or it is not that simple. */
static bool simple_place(emu_warp *w, unsigned space, uint64_t at, uint32_t size, emu_place *p)
{
	if (!emu_locate(w->cluster, w->cta, space, at, size, p) || p->space > SPACE_CLUSTER ||
	    (p->cta && p->cta != w->cta && (w->grid->explorer || emu_has_ended(p->cta))))
		return false;
	return p->space != SPACE_GLOBAL || w->grid->nclusters == 1 || emu_page_left(p, size) == size;
}

/* The piece of the whole warp, `each` bytes a lane, or the same ones (stride 0). */
static bool row_place(emu_warp *w, const emu_op *op, uint32_t each, uint32_t *stride, emu_place *p)
{
	const emu_arg *a = &op->arg[1];
	uint64_t at = emu_address(w, a, 0);

	if (a->space > SPACE_CLUSTER || at % each || !in_a_row(w, a, each, stride))
		return false;
	return simple_place(w, a->space, at, *stride ? WARP * each : each, p);
}

/* ---- pieces ---- */

enum { MOST_PIECES = 16 /* with more of them it takes as long as lane by lane */ };

/* Lanes one behind the other that touch consecutive elements, or any that all touch the same one. */
typedef struct piece {
	uint32_t first, lanes, stride;
	uint64_t at;
	emu_place p;
} piece;

static uint32_t lanes_from(uint32_t first, uint32_t n) { return (n < WARP ? (UINT32_C(1) << n) - 1 : ALL_LANES) << first; }

/* The bytes of a piece. */
static uint32_t size_of(const piece *x, uint32_t each)
{
	return x->stride ? (uint32_t)__builtin_popcount(x->lanes) * each : each;
}

/* The piece that the first of the lanes that are left begins. */
static piece piece_at(const uint64_t at[WARP], uint32_t left, uint32_t each)
{
	uint32_t l = (uint32_t)__builtin_ctz(left), here = (uint32_t)__builtin_ctzll(~((uint64_t)left >> l)), n = 1, same = 0;
	piece x = { .first = l, .at = at[l] };

	while (n < here && at[l + n] - at[l + n - 1] == each)
		n++;
	if (n > 1) {
		x.stride = each;
		x.lanes = lanes_from(l, n);
		return x;
	}
	EACH_LANE(k, left)
		same |= (uint32_t)(at[k] == at[l]) << k;
	x.lanes = same;
	return x;
}

/* The pieces of these lanes, all of them defined where that is asked for; 0: they are too many, or not that simple. */
static unsigned pieces_of(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t each, bool defined, piece out[MOST_PIECES])
{
	const emu_arg *a = &op->arg[1];
	uint64_t at[WARP];
	unsigned n = 0;

	if (!a->base || a->space > SPACE_CLUSTER)
		return 0;
	for (uint32_t l = 0; l < WARP; l++)
		at[l] = mask >> l & 1 ? emu_address(w, a, l) : 0;
	for (uint32_t left = mask; left; left &= ~out[n++].lanes) {
		if (n == MOST_PIECES)
			return 0;
		out[n] = piece_at(at, left, each);
		if (out[n].at % each)
			return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t size = size_of(&out[i], each);
		if (!simple_place(w, a->space, out[i].at, size, &out[i].p) || (defined && !emu_all_defined(&out[i].p, size)))
			return 0;
	}
	return n;
}

/* Notes where the lanes went, as emu_resolve does. */
static void note_places(emu_warp *w, const piece *x)
{
	uint64_t at = x->p.space == SPACE_GLOBAL  ? x->p.alloc->at + x->p.offset
	              : x->p.space == SPACE_CONST ? 0
	                                          : ((uint64_t)x->p.cta->rank << SHARED_RANK) + SHARED_FIRST + x->p.offset;

	EACH_LANE(l, x->lanes) {
		w->at[l] = at + (l - x->first) * x->stride;
		w->at_space[l] = x->p.space;
	}
}

static bool load_pieces(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t each)
{
	const emu_arg *d = &op->arg[0];
	piece x[MOST_PIECES];
	unsigned n = pieces_of(w, op, mask, each, true, x);

	for (unsigned i = 0; i < n; i++) {
		race_row(w, op, &x[i].p, each, x[i].stride, x[i].lanes, 0, ACCESS_READ);
		EACH_LANE(l, x[i].lanes)
			emu_put_extended(w, d->slot, d->bits, l, emu_bytes(x[i].p.p + (l - x[i].first) * x[i].stride, each), op->imm[1]);
		note_places(w, &x[i]);
	}
	if (!n)
		return false;
	emu_define(w, d->slot, mask, ALL_LANES);
	emu_traffic_count(w, op, mask, each, ACCESS_READ);
	return true;
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

bool row_load(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *d = &op->arg[0];
	uint32_t each = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (mask == ALL_LANES && load_formal(w, op))
		return true;
	if (mask != ALL_LANES || !row_place(w, op, each, &stride, &p))
		return load_pieces(w, op, mask, each);
	if (!emu_all_defined(&p, stride ? WARP * each : each))
		return false;
	race_row(w, op, &p, each, stride, ALL_LANES, 0, ACCESS_READ);
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

/* Writes `each` bytes a lane, of `n` lanes from the first on. */
static void put_lanes(emu_warp *w, const emu_op *op, emu_place *p, const unsigned char *from, uint32_t each, uint32_t first,
                      uint32_t n)
{
	uint32_t silent = 0;

	emu_writable(w->cluster, p, n * each);
	if (w->cluster->races && emu_all_defined(p, n * each)) /* a weak store that changes nothing is no race */
		for (unsigned l = 0; l < n; l++)
			silent |= (uint32_t)(each > 8 ? !memcmp(p->p + l * each, from + l * each, each)
			                              : emu_bytes(p->p + l * each, each) == emu_bytes(from + l * each, each))
			          << (first + l);
	memcpy(p->p, from, (size_t)n * each);
	race_row(w, op, p, each, each, lanes_from(first, n), silent, ACCESS_WRITE | ACCESS_VALUE);
	emu_set_defined(p, n * each, true);
}

static void put_row(emu_warp *w, const emu_op *op, emu_place *p, const uint32_t *words, uint32_t each)
{
	put_lanes(w, op, p, (const unsigned char *)words, each, 0, WARP);
	emu_traffic_row(w, op, p, each, each, ACCESS_WRITE);
}

static bool may_write(const emu_place *p) { return p->space != SPACE_CONST && !(p->alloc && p->alloc->is_const); }

static bool store_pieces(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t each)
{
	const unsigned char *from = (const unsigned char *)emu_r32(w, op->arg[2].slot);
	piece x[MOST_PIECES];
	unsigned n = pieces_of(w, op, mask, each, false, x);

	for (unsigned i = 0; i < n; i++)
		if (!may_write(&x[i].p) || (!x[i].stride && x[i].lanes & (x[i].lanes - 1)))
			return false;
	for (unsigned i = 0; i < n; i++) {
		put_lanes(w, op, &x[i].p, from + (size_t)x[i].first * each, each, x[i].first,
		          (uint32_t)__builtin_popcount(x[i].lanes));
		note_places(w, &x[i]);
	}
	if (n)
		emu_traffic_count(w, op, mask, each, ACCESS_WRITE);
	return n != 0;
}

bool row_store(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *b = &op->arg[2];
	uint32_t each = (uint32_t)op->imm[0], stride;
	emu_place p;

	if (each < 4 || each > 8 /* .b128 has its halves apart */ || each * 8 != b->bits || mask & ~*emu_defined(w, b->slot))
		return false;
	if (mask != ALL_LANES || !row_place(w, op, each, &stride, &p))
		return store_pieces(w, op, mask, each);
	if (!stride || !may_write(&p))
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
	race_row(w, op, &p, each, stride, ALL_LANES, 0, ACCESS_READ);
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
	if (!each || !row_place(w, op, each, &stride, &p) || !stride || !may_write(&p))
		return false;
	for (unsigned i = 0; i < b->count; i++)
		for (unsigned l = 0; l < WARP; l++)
			memcpy(bytes + l * each + i * element, (unsigned char *)emu_r32(w, b->slots[i]) + l * element, element);
	put_row(w, op, &p, words, each);
	return true;
}
