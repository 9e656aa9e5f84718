/* SPDX-License-Identifier: MIT */
/* suld, sust: surfaces, whose first coordinate counts bytes. */
#include "emu/core/finding.h"
#include "emu/exec/texture.h"

/* imm[0]: bytes of an element; imm[1]: how many. */

typedef struct surface_access {
	emu_dims dims;
	const emu_arg *handle, *at, *value;
	unsigned oob;
} surface_access;

enum where { INSIDE, OUTSIDE /* and nothing is done */, WRONG /* with a finding */ };

static enum where outside(emu_warp *w, const emu_op *op, unsigned lane, const emu_texture *t, const int64_t c[3])
{
	const surface_access *a = (const surface_access *)op->extra;
	uint32_t third = t->dims > 2 ? t->o.depth : t->layers * t->faces;

	if (a->oob == CPTX_ZERO)
		return OUTSIDE;
	emu_find(w, op, (int)lane, CPTX_FIND_BOUNDS,
	         "%u bytes at byte %lld of row %lld, %s %lld, of a surface of %llu bytes, %u rows, %u",
	         (unsigned)(op->imm[0] * op->imm[1]), (long long)c[0], (long long)c[1], t->dims > 2 ? "slice" : "layer",
	         (long long)c[2], (unsigned long long)t->o.width * t->texel, MAX(t->o.height, 1u), third);
	return WRONG;
}

static int64_t clamped(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }

/* A place of a surface, and the bytes there that have one address: those of a texel, of which alone rows are multiples. */
typedef struct place {
	uint64_t at;
	uint32_t each;
} place;

/* The address that a lane names: coordinates are x, y and depth, or the layer and then x and y. */
static enum where find(emu_warp *w, const emu_op *op, unsigned lane, place *to)
{
	const surface_access *a = (const surface_access *)op->extra;
	const emu_texture *t = emu_texture_of(w, op, a->handle, lane, true);
	uint32_t size = (uint32_t)(op->imm[0] * op->imm[1]);
	int64_t c[3] = { 0 };

	if (!t || !emu_dims_fit(w, op, lane, t, a->dims))
		return WRONG;
	for (unsigned i = 0; i < a->dims.n; i++)
		c[i] = (int32_t)emu_r32(w, emu_slot_of(a->at, i + a->dims.layers))[lane];
	if (a->dims.layers)
		c[2] = emu_r32(w, emu_slot_of(a->at, 0))[lane];
	const int64_t last = (int64_t)t->o.width * t->texel - size;
	const int64_t most[3] = { last < 0 ? last : last - last % size, MAX(t->o.height, 1u) - 1,
		                      (t->dims > 2 ? t->o.depth : t->layers * t->faces) - 1 };
	if (c[0] % size) {
		emu_find(w, op, (int)lane, CPTX_FIND_MISALIGNED, "byte %lld of a surface's row must be a multiple of %u",
		         (long long)c[0], size);
		return WRONG;
	}
	for (int i = 0; i < 3; i++) {
		if (c[i] >= 0 && c[i] <= most[i])
			continue;
		if (a->oob != CPTX_CLAMP || most[i] < 0)
			return outside(w, op, lane, t, c);
		c[i] = clamped(c[i], most[i]);
	}
	emu_level l = emu_level_of(t, 0);
	*to = (place){ .at = emu_texel_at(t, &l, 0, (uint64_t)c[1], (uint64_t)c[2]) + (uint64_t)c[0],
		           .each = MIN(size, t->texel) };
	return INSIDE;
}

static bool move(emu_warp *w, const emu_op *op, unsigned lane, const place *p, unsigned char *bytes, bool stores)
{
	const uint32_t size = (uint32_t)(op->imm[0] * op->imm[1]);

	for (uint32_t i = 0; i < size; i += p->each)
		if (stores ? !emu_write(w, op, lane, SPACE_GLOBAL, p->at + i, bytes + i, p->each, 0)
		           : !emu_read(w, op, lane, SPACE_GLOBAL, p->at + i, bytes + i, p->each, 0))
			return false;
	return true;
}

static bool need(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const surface_access *a = (const surface_access *)op->extra;

	for (unsigned i = 0; i < a->dims.n + a->dims.layers; i++)
		emu_need(w, op, emu_slot_of(a->at, i), mask, "a coordinate");
	return emu_need(w, op, a->handle->slot, mask, "the handle");
}

static enum emu_step load(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const surface_access *a = (const surface_access *)op->extra;
	uint32_t each = (uint32_t)op->imm[0];

	if (!need(w, op, mask))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		unsigned char bytes[32] = { 0 };
		place at;
		enum where where = find(w, op, l, &at);
		if (where == WRONG || (where == INSIDE && !move(w, op, l, &at, bytes, false)))
			return STEP_FAULT;
		for (unsigned i = 0; i < op->imm[1]; i++) {
			uint32_t slot = emu_slot_of(a->value, i);
			if (!slot)
				continue;
			emu_put(w, slot, a->value->bits, l, emu_bytes(bytes + i * each, each));
			emu_define(w, slot, UINT32_C(1) << l, ALL_LANES);
		}
	}
	return STEP_NEXT;
}

static enum emu_step store(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const surface_access *a = (const surface_access *)op->extra;
	uint32_t each = (uint32_t)op->imm[0];

	if (!need(w, op, mask))
		return STEP_FAULT;
	emu_need_arg(w, op, a->value, mask, "what is stored");
	EACH_LANE(l, mask) {
		unsigned char bytes[32];
		place at;
		enum where where = find(w, op, l, &at);
		for (unsigned i = 0; i < op->imm[1]; i++) {
			uint32_t slot = emu_slot_of(a->value, i);
			uint64_t v = a->value->bits == 64 ? emu_r64(w, slot)[l] : emu_r32(w, slot)[l];
			memcpy(bytes + i * each, &v, each);
		}
		if (where == WRONG || (where == INSIDE && !move(w, op, l, &at, bytes, true)))
			return STEP_FAULT;
	}
	return STEP_NEXT;
}

bool decode_surface(emu_decoder *d, emu_op *op)
{
	surface_access *a = DECODER_NEW(d, surface_access);
	bool stores = op->opcode == CPTX_OP_SUST;
	const char *why;

	if (!a)
		return false;
	*a = (surface_access){ .dims = emu_dims_of(emu_modifier(op, "geom")),
		                   .handle = emu_named(op, "a"),
		                   .at = emu_named(op, "c"),
		                   .value = stores ? emu_named(op, "v") : &op->arg[0],
		                   .oob = op->m.oob };
	if (emu_by_name(op, &why))
		return emu_is_not_there(op, why);
	op->imm[0] = arch_types[op->m.type].bits / 8;
	op->imm[1] = a->value->kind == ARG_VEC ? a->value->count : 1;
	op->extra = a;
	op->flags = stores ? 0 : OP_QUIET;
	op->fn = stores ? store : load;
	return true;
}
