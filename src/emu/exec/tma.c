/* SPDX-License-Identifier: MIT */
/* Instructions of tensor copies. */
#include "emu/async/tma.h"
#include "emu/core/finding.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <assert.h>

typedef struct tma_form {
	const emu_arg *map, *coord, *shared, *mbar, *mask, *offsets;
	enum tma_mode mode;
	enum tma_direction direction;
	uint32_t dims;
	bool multicast, pair; /* .cta_group::2 */
} tma_form;

enum { SHARED_ALIGN = 128 };

static uint32_t element(const emu_warp *w, const emu_arg *a, unsigned i, unsigned lane)
{
	return a->kind == ARG_VEC ? emu_r32(w, a->slots[i])[lane] : (uint32_t)emu_get(w, a, lane);
}

static uint32_t count_of(const emu_arg *a) { return a->kind == ARG_VEC ? a->count : a->kind == ARG_REG; }

static tma_use use_of(emu_warp *w, const emu_op *op, unsigned lane)
{
	const tma_form *f = (const tma_form *)op->extra;
	tma_use u = { .w = w, .op = op, .lane = lane, .mode = f->mode, .direction = f->direction, .dims = f->dims };

	for (uint32_t i = 0; i < count_of(f->coord); i++)
		u.coord[i] = (int32_t)element(w, f->coord, i, lane);
	for (uint32_t i = 0; i < count_of(f->offsets); i++)
		u.offset[i] = (uint16_t)element(w, f->offsets, i, lane);
	return u;
}

/* ---- rules of operands ---- */

static bool check_offsets(const tma_use *u)
{
	static const uint32_t im2col[] = { 0xffff, 0xff, 0x1f };
	bool along_w = u->mode == TMA_IM2COL_W || u->mode == TMA_IM2COL_W_128;

	for (uint32_t i = 0; u->mode == TMA_IM2COL && i + 2 < u->dims; i++)
		if (u->offset[i] > im2col[u->dims - 3])
			return tma_wrong(u, "offset %u along %c; of %u dimensions it is 0 to %u", u->offset[i], "WHD"[i], u -> dims,
			                 im2col[u->dims - 3]);
	if (along_w && (u->offset[0] > (u->mode == TMA_IM2COL_W ? 511u : 31u) || u->offset[1] > 31))
		return tma_wrong(u, "halo %u and offset %u; the halo is 0 to %d, the offset 0 to 31", u->offset[0], u->offset[1],
		                 u->mode == TMA_IM2COL_W ? 511 : 31);
	return true;
}

static bool shared_place(const tma_use *u, const emu_arg *a, uint32_t bytes, emu_place *p)
{
	uint64_t addr = emu_address(u->w, a, u->lane);

	if (addr % SHARED_ALIGN)
		return tma_wrong(u, "shared address 0x%llx; it is a multiple of %d", (unsigned long long)addr, SHARED_ALIGN);
	return emu_resolve(u->w, u->op, u->lane, a->space, addr, bytes, 1, p);
}

/* Whether the type of the map has the operation. */
static bool check_reduction(const tma_use *u)
{
	unsigned op = u->op->m.op, type = tma_arithmetic(u->map.type);
	bool is_float = type == CPTX_F16 || type == CPTX_BF16 || type == CPTX_F32 || type == CPTX_F64, ok;

	switch (op) {
	case CPTX_ADD: ok = type && type != CPTX_U8 && type != CPTX_U16 && type != CPTX_S64; break;
	case CPTX_MIN:
	case CPTX_MAX: ok = type && type != CPTX_U8 && type != CPTX_U16 && type != CPTX_F32 && type != CPTX_F64; break;
	case CPTX_INC:
	case CPTX_DEC: ok = type == CPTX_U32; break;
	default: ok = !is_float && type && arch_types[type].bits >= 32; break;
	}
	return ok || tma_wrong(u, "tensor map: type %s, which has no such operation", cptx_tensor_type_name(u->map.type));
}

/* ---- loads ---- */

static bool fill_load(const tma_use *u, bulk_copy *b)
{
	const tma_form *f = (const tma_form *)u->op->extra;
	emu_place dst;

	return tma_box(u, b) && shared_place(u, f->shared, b->bytes, &dst) &&
	       bulk_send(b, &dst, f->mbar, f->multicast ? f->mask : NULL, f->pair);
}

/* ---- stores and reductions ---- */

static bool fill_store(const tma_use *u, bulk_copy *b)
{
	const tma_form *f = (const tma_form *)u->op->extra;

	b->store = true;
	if (u->direction == TMA_REDUCE) {
		if (!check_reduction(u))
			return false;
		b->op = u->op->m.op;
		b->type = (uint16_t)tma_arithmetic(u->map.type);
		b->ftz = u->map.type == CPTX_TENSOR_F32_FTZ || u->map.type == CPTX_TENSOR_TF32_FTZ;
	}
	return tma_box(u, b) && shared_place(u, f->shared, b->bytes, &b->from);
}

static bool one_lane(emu_warp *w, const emu_op *op, unsigned lane)
{
	const tma_form *f = (const tma_form *)op->extra;
	tma_use u = use_of(w, op, lane);

	if (!tma_fetch(&u, f->map) || !check_offsets(&u))
		return false;
	bulk_copy *b = bulk_new(w, op, lane);
	if (!b)
		return false;
	bool ok = u.direction == TMA_LOAD ? fill_load(&u, b) : u.direction == TMA_PREFETCH ? tma_box(&u, b) : fill_store(&u, b);
	if (ok && u.direction != TMA_PREFETCH)
		return bulk_start(b);
	emu_spend(w->cluster, b->nspan * sizeof *b->span);
	bulk_free(b);
	return ok;
}

static enum emu_step tensor(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const tma_form *f = (const tma_form *)op->extra;

	emu_need_arg(w, op, f->map, mask, "the tensor map's address");
	emu_need_arg(w, op, f->coord, mask, "a coordinate");
	emu_need_arg(w, op, f->shared, mask, "the shared address");
	emu_need_arg(w, op, f->mbar, mask, "the mbarrier's address");
	emu_need_arg(w, op, f->mask, mask, "the CTA mask");
	emu_need_arg(w, op, f->offsets, mask, "an offset");
	EACH_LANE(l, mask)
		if (!one_lane(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

static enum tma_mode mode_of(const emu_op *op)
{
	switch (op->m.mode) {
	case CPTX_TILE_GATHER4:
	case CPTX_TILE_SCATTER4: return TMA_ROWS;
	case CPTX_IM2COL:
	case CPTX_IM2COL_NO_OFFS: return TMA_IM2COL;
	case CPTX_IM2COL_W: return TMA_IM2COL_W;
	case CPTX_IM2COL_W_128: return TMA_IM2COL_W_128;
	default: return TMA_TILE;
	}
}

static enum tma_direction direction_of(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD: return TMA_LOAD;
	case CPTX_OP_CP_ASYNC_BULK_TENSOR_STORE: return TMA_STORE;
	case CPTX_OP_CP_REDUCE_ASYNC_BULK_TENSOR: return TMA_REDUCE;
	default: return TMA_PREFETCH;
	}
}

bool decode_tensor(emu_decoder *d, emu_op *op)
{
	tma_form *f = DECODER_NEW(d, tma_form);

	if (!f)
		return false;
	*f = (tma_form){ .map = emu_named(op, "map"),
		             .coord = emu_named(op, "coord"),
		             .shared = emu_named(op, "s"),
		             .mbar = emu_named(op, "mbar"),
		             .mask = emu_named(op, "mask"),
		             .offsets = emu_named(op, "offsets"),
		             .mode = mode_of(op),
		             .direction = direction_of(op) };
	static_assert(CPTX_DIM_5D == CPTX_DIM_1D + 4, "dimensions follow one another");
	f->dims = op->m.dim - CPTX_DIM_1D + 1u;
	f->multicast = emu_modifier(op, "multicast") != 0;
	f->pair = emu_modifier(op, "cta_group") == CPTX_CTA_GROUP_2;
	op->extra = f;
	op->fn = tensor;
	return true;
}
