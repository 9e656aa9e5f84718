/* SPDX-License-Identifier: MIT */
/*
 * Tensor maps that threads change: tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap.
 *
 * Copies read maps by a proxy of their own.  A map in global memory that the host wrote must be acquired by its reader; one
 * that a module brings along need not.  A change in global memory is noted with who made it; it is released by a fence of a
 * thread that knows of it, and acquired by one of a thread that knows of that.  A copy needs an acquisition that it knows
 * of.  What is released beyond the cluster is known to the grid too: that happens in the cluster's turn, between rounds,
 * when nobody reads it.
 */
#include "emu/async/tma.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

typedef struct map_change {
	uint64_t at;       /* of the map */
	uint32_t order;    /* of the last change; 0: none here */
	uint32_t released; /* order of the release */
	emu_stamp by, releaser;
	uint64_t wide; /* the grid's number of a change by another cluster */
} map_change;

typedef struct map_acquired { /* by lanes of a warp */
	uint64_t at, wide;
	uint32_t order, lanes;
	emu_stamp by;
} map_acquired;

struct emu_tensormaps {
	map_change *change;
	size_t nchange, cap_change;
	map_acquired *acquired;
	size_t nacquired, cap_acquired;
	uint32_t order;
};

static bool room(void **list, size_t n, size_t *cap, size_t each)
{
	if (n < *cap)
		return true;
	void *p = realloc(*list, (*cap ? *cap * 2 : 8) * each);
	if (!p)
		return false;
	*list = p;
	*cap = *cap ? *cap * 2 : 8;
	return true;
}

static struct emu_tensormaps *table(struct emu_tensormaps **t)
{
	if (!*t)
		*t = NEW(struct emu_tensormaps);
	return *t;
}

void emu_tensormaps_free(struct emu_tensormaps *t)
{
	if (!t)
		return;
	free(t->change);
	free(t->acquired);
	free(t);
}

static map_change *find_change(struct emu_tensormaps *t, uint64_t at)
{
	for (size_t i = 0; t && i < t->nchange; i++)
		if (t->change[i].at == at)
			return &t->change[i];
	return NULL;
}

static map_change *new_change(struct emu_tensormaps *t, uint64_t at)
{
	map_change *x = find_change(t, at);
	void *list = t ? t->change : NULL;

	if (x || !t || !room(&list, t->nchange, &t->cap_change, sizeof *x)) {
		return x;
	}
	t->change = (map_change *)list;
	x = &t->change[t->nchange++];
	*x = (map_change){ .at = at };
	return x;
}

static enum emu_step no_memory(emu_warp *w, const emu_op *op)
{
	return emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for what is known of tensor maps");
}

/* ---- changes and fences ---- */

static bool changed(emu_warp *w, unsigned lane, uint64_t at)
{
	struct emu_tensormaps *t = table(&w->cluster->maps);
	map_change *x = new_change(t, at);

	if (!x)
		return false;
	x->order = ++t->order;
	x->released = 0;
	x->by = race_stamp(w, lane);
	return true;
}

static bool release(emu_warp *w, unsigned lane, map_change *x, bool wide)
{
	struct emu_tensormaps *g = wide && w->grid->nclusters > 1 ? table(&w->grid->maps) : NULL;

	x->released = ++w->cluster->maps->order;
	x->releaser = race_stamp(w, lane);
	if (!wide || w->grid->nclusters == 1)
		return true;
	map_change *y = new_change(g, x->at);
	if (!y)
		return false;
	y->wide = ++g->order;
	return true;
}

static bool release_all(emu_warp *w, unsigned lane, bool wide)
{
	struct emu_tensormaps *t = w->cluster->maps;

	for (size_t i = 0; t && i < t->nchange; i++)
		if (t->change[i].order && !t->change[i].released && race_saw(w, lane, t->change[i].by) &&
		    !release(w, lane, &t->change[i], wide))
			return false;
	return true;
}

static uint64_t wide_change(const emu_warp *w, uint64_t at)
{
	const map_change *y = find_change(w->grid->maps, at);

	return y ? y->wide : 0;
}

/* The acquisition of that map by the warp, if its lanes are these; or a new one. */
static map_acquired *acquired_by(emu_warp *w, uint64_t at)
{
	struct emu_tensormaps *t = table(&w->cluster->maps);

	for (size_t i = 0; t && i < t->nacquired; i++)
		if (t->acquired[i].at == at && t->acquired[i].by.agent == w->agent)
			return &t->acquired[i];
	void *list = t ? t->acquired : NULL;
	if (!t || !room(&list, t->nacquired, &t->cap_acquired, sizeof *t->acquired))
		return NULL;
	t->acquired = (map_acquired *)list;
	t->acquired[t->nacquired] = (map_acquired){ .at = at };
	return &t->acquired[t->nacquired++];
}

static bool acquire(emu_warp *w, unsigned lane, unsigned space, uint64_t at)
{
	const map_change *x = find_change(w->cluster->maps, at);
	map_acquired *a;
	emu_place p;

	if (emu_locate(w->cluster, w->cta, space, at, CPTX_TENSOR_MAP_BYTES, &p))
		race_fence_bytes(w, lane, &p, CPTX_TENSOR_MAP_BYTES);
	if (x && x->order && !(x->released && race_saw(w, lane, x->releaser)))
		return true; /* of no use */
	a = acquired_by(w, at);
	if (!a)
		return false;
	uint32_t order = ++w->cluster->maps->order;
	bool same = a->by.epoch == w->know.epoch && a->by.agent == w->agent;
	*a = (map_acquired){ .at = at,
		                 .wide = wide_change(w, at),
		                 .order = order,
		                 .lanes = (same ? a->lanes : 0) | UINT32_C(1) << lane,
		                 .by = race_stamp(w, lane) };
	return true;
}

static bool has_acquired(const emu_warp *w, unsigned lane, uint64_t at, uint32_t order, uint64_t wide)
{
	const struct emu_tensormaps *t = w->cluster->maps;

	for (size_t i = 0; t && i < t->nacquired; i++) {
		const map_acquired *a = &t->acquired[i];
		if (a->at == at && a->order > order && a->wide >= wide &&
		    ((a->by.agent == w->agent && a->lanes >> lane & 1) || race_saw(w, lane, a->by)))
			return true;
	}
	return false;
}

bool tensormap_visible(const tma_use *u, const emu_place *p)
{
	uint64_t at = p->alloc ? p->alloc->at + p->offset : 0, wide = at ? wide_change(u->w, at) : 0;
	const map_change *x = at ? find_change(u->w->cluster->maps, at) : NULL;
	uint32_t order = x ? x->order : 0;

	bool own = order || wide, by_host = !own && p->space == SPACE_GLOBAL && p->alloc && !p->alloc->name;

	if (u->w->grid->machine->opt.no_races || (!own && !by_host) ||
	    has_acquired(u->w, u->lane, at, MAX(order, x ? x->released : 0), wide))
		return true;
	if (by_host) {
		emu_find(
			u->w, u->op, (int)u->lane, CPTX_FIND_PROXY,
			"the tensor map at 0x%llx lies in global memory, which the proxy of tensor maps may have read before it was "
			"written; fence.proxy.tensormap::generic.acquire.sys of it must come before (not for a parameter of the "
			"kernel or a constant)",
			(unsigned long long)at);
		return true;
	}
	bool unreleased = order && !x->released;
	emu_find(u->w, u->op, (int)u->lane, CPTX_FIND_PROXY,
	         "the tensor map at 0x%llx was changed by a thread%s; %s must come before", (unsigned long long)at,
	         unreleased ? ", and not released to the proxy of tensor maps" : ", which this thread has not acquired",
	         unreleased ? "tensormap.cp_fenceproxy, or fence.proxy.tensormap::generic.release and, in this thread, .acquire,"
	                    : "fence.proxy.tensormap::generic.acquire of it, behind what orders it after the release,");
	return true;
}

/* imm[0]: beyond the cluster */
static enum emu_step fence(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a");
	bool ok = true;

	if (op->imm[0] && emu_wants_turn(w))
		return STEP_TURN;
	emu_need_arg(w, op, a, mask, "the tensor map's address");
	clock_fence_by(w, mask, a->kind == ARG_NONE ? ACCESS_RELEASE : ACCESS_ACQUIRE, op->imm[0]);
	EACH_LANE(l, mask)
		ok &= a->kind == ARG_NONE ? release_all(w, l, op->imm[0]) : acquire(w, l, a->space, emu_address(w, a, l));
	return ok ? STEP_NEXT : no_memory(w, op);
}

static bool is_wide(const emu_op *op) { return op->m.scope != CPTX_CTA && op->m.scope != CPTX_CLUSTER; }

bool decode_tensormap_fence(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = is_wide(op);
	op->fn = fence;
	return true;
}

/* ---- tensormap.cp_fenceproxy: by a whole warp ---- */

static enum emu_step cp_fenceproxy(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a"), *s = emu_named(op, "s");
	unsigned lane = (unsigned)__builtin_ctz(mask);
	emu_place to, from;

	if (op->imm[0] && emu_wants_turn(w))
		return STEP_TURN;
	emu_need_arg(w, op, a, mask, "the global address");
	emu_need_arg(w, op, s, mask, "the shared address");
	if (!emu_resolve(w, op, lane, SPACE_GLOBAL, emu_address(w, a, lane), CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_BYTES,
	                 &to) ||
	    !emu_resolve(w, op, lane, s->space, emu_address(w, s, lane), CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_BYTES, &from))
		return STEP_FAULT;
	race_access(w, op, lane, &from, CPTX_TENSOR_MAP_BYTES, ACCESS_READ);
	race_access(w, op, lane, &to, CPTX_TENSOR_MAP_BYTES, ACCESS_WRITE);
	emu_writable(w->cluster, &to, CPTX_TENSOR_MAP_BYTES);
	emu_copy_bytes(&to, &from, CPTX_TENSOR_MAP_BYTES);
	clock_fence_by(w, mask, ACCESS_RELEASE, op->imm[0]);
	uint64_t at = to.alloc->at + to.offset;
	bool ok = changed(w, lane, at) && release(w, lane, find_change(w->cluster->maps, at), op->imm[0]);
	return ok ? STEP_NEXT : no_memory(w, op);
}

bool decode_cp_fenceproxy(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = is_wide(op);
	op->converge = 1;
	op->flags = OP_SPLITS;
	op->fn = cp_fenceproxy;
	return true;
}

/* ---- tensormap.replace ---- */

/* Numbers of the instruction, where they are not those of the driver. */
static bool set_type(cptx_tensor_map_opt *m, uint64_t v)
{
	static const enum cptx_tensor_type moved[] = { CPTX_TENSOR_F32_FTZ, CPTX_TENSOR_F64, CPTX_TENSOR_BF16 };

	m->type = v >= 8 && v <= 10 ? moved[v - 8] : (enum cptx_tensor_type)v;
	return v < CPTX_TENSOR_TYPES;
}

static bool set_swizzle(cptx_tensor_map_opt *m, uint64_t mode)
{
	static const enum cptx_swizzle swizzles[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B,
		                                          CPTX_SWIZZLE_96B };

	if (mode >= ARRAY_LEN(swizzles))
		return false;
	m->swizzle = swizzles[mode];
	return true;
}

static bool set_atomicity(cptx_tensor_map_opt *m, uint64_t v)
{
	static const enum cptx_swizzle of_128[] = { CPTX_SWIZZLE_128B, CPTX_SWIZZLE_128B_ATOM_32B,
		                                        CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B, CPTX_SWIZZLE_128B_ATOM_64B };
	bool is_128 = m->swizzle == CPTX_SWIZZLE_128B || (m->swizzle > CPTX_SWIZZLE_128B && m->swizzle < CPTX_SWIZZLE_96B);

	if (v >= ARRAY_LEN(of_128) || (!is_128 && v))
		return false;
	if (is_128)
		m->swizzle = of_128[v];
	return true;
}

/* ord: the dimension.  False: the value has no meaning there. */
static bool replace_field(cptx_tensor_map_opt *m, unsigned field, uint32_t ord, uint64_t v)
{
	switch (field) {
	case CPTX_GLOBAL_ADDRESS: m->address = v; return true;
	case CPTX_RANK: m->rank = (uint32_t)v + 1; return v < CPTX_TENSOR_RANK;
	case CPTX_BOX_DIM: m->box[ord] = (uint32_t)v; return v <= 256;
	case CPTX_GLOBAL_DIM: m->dim[ord] = v; return v != 0;
	case CPTX_ELEMENT_STRIDE: m->element_stride[ord] = (uint32_t)v; return v >= 1 && v <= 8;
	case CPTX_GLOBAL_STRIDE: /* number 0 is that of dimension 1 */
		if (ord + 1 < CPTX_TENSOR_RANK)
			m->stride[ord + 1] = v;
		return ord + 1 < CPTX_TENSOR_RANK && v < UINT64_C(1) << 40;
	case CPTX_ELEMTYPE: return set_type(m, v);
	case CPTX_INTERLEAVE_LAYOUT: m->interleave = (uint32_t)v * 16; return v <= 2;
	case CPTX_SWIZZLE_MODE: return set_swizzle(m, v);
	case CPTX_SWIZZLE_ATOMICITY: return set_atomicity(m, v);
	default: m->nan_fill = v != 0; return v <= 1;
	}
}

static bool replace_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const emu_arg *a = emu_named(op, "a"), *b = emu_named(op, "b"), *ord = emu_named(op, "ord"),
				  *value = emu_named(op, "value");
	const emu_arg *number = b->kind == ARG_REG ? b : value;
	tma_use u = { .w = w, .op = op, .lane = lane };
	uint8_t bytes[CPTX_TENSOR_MAP_BYTES];
	cptx_error err = { .code = CPTX_OK };
	emu_place p;

	if (!emu_resolve(w, op, lane, a->space, emu_address(w, a, lane), CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, &p))
		return false;
	race_access(w, op, lane, &p, CPTX_TENSOR_MAP_BYTES, ACCESS_READ | ACCESS_WRITE);
	emu_fetch(w->cluster, &p, bytes, sizeof bytes);
	if (!cptx_tensor_map_unpack(bytes, &u.map, &err))
		return tma_wrong(&u, "%s", err.text);
	if (u.map.mode != CPTX_TENSOR_TILED)
		return tma_wrong(&u, "tensor map: it was made for im2col; only tiled ones can be changed");
	uint64_t v = emu_get(w, number, lane);
	if (!replace_field(&u.map, (unsigned)op->imm[0], (uint32_t)ord->offset, v))
		return tma_wrong(&u, "tensor map: 0x%llx cannot be put into this field%s", (unsigned long long)v,
		                 op->imm[0] == CPTX_SWIZZLE_ATOMICITY ? "; swizzle_mode must be 3 (128B) before" : "");
	if (!cptx_tensor_map_pack(&u.map, bytes, &err))
		return tma_wrong(&u, "%s", err.text);
	emu_deliver(w->cluster, &p, bytes, sizeof bytes);
	if (p.alloc && !changed(w, lane, p.alloc->at + p.offset))
		return no_memory(w, op), false;
	return true;
}

static enum emu_step replace(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_need_arg(w, op, emu_named(op, "a"), mask, "the tensor map's address");
	emu_need_arg(w, op, emu_named(op, "b"), mask, "the new value");
	EACH_LANE(l, mask)
		if (!replace_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

bool decode_tensormap_replace(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_modifier(op, "field");
	op->fn = replace;
	return true;
}
