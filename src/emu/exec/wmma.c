/* SPDX-License-Identifier: MIT */
/* wmma.load and wmma.store: matrices between memory and fragments.  Each lane moves its own elements; wmma.mma is in
 * exec/mma.c. */
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/tensor/fragment.h"

typedef struct wmma {
	const frag *f;
	unsigned cols;   /* of the matrix: element number n is (n / cols, n % cols) */
	unsigned stride; /* without a stride operand: elements of a row, or column */
	unsigned bits;   /* of an element in memory */
	unsigned run;    /* slots of a register that are neighbours in memory */
	bool by_col;
	const emu_arg *stride_arg;
} wmma;

/* The address, and the distance of rows or columns in elements: the same in all lanes. */
static bool base_of(emu_warp *w, const emu_op *op, const wmma *x, const emu_arg *a, uint32_t mask, uint64_t *at,
                    uint64_t *stride)
{
	unsigned first = (unsigned)__builtin_ctz(mask);

	emu_need_arg(w, op, a, mask, "the address");
	*at = emu_address(w, a, first);
	*stride = x->stride_arg->kind == ARG_NONE ? x->stride : (uint32_t)emu_get(w, x->stride_arg, first);
	EACH_LANE(l, mask) {
		if (emu_address(w, a, l) == *at &&
		    (x->stride_arg->kind == ARG_NONE || (uint32_t)emu_get(w, x->stride_arg, l) == *stride))
			continue;
		emu_find(w, op, (int)l, CPTX_FIND_OPERAND,
		         "address and stride are 0x%llx and %u here, 0x%llx and %llu in thread %u of the warp",
		         (unsigned long long)emu_address(w, a, l),
		         x->stride_arg->kind == ARG_NONE ? x->stride : (uint32_t)emu_get(w, x->stride_arg, l),
		         (unsigned long long)*at, (unsigned long long)*stride, first);
		return false;
	}
	return true;
}

static uint64_t element_at(const wmma *x, unsigned number, uint64_t base, uint64_t stride)
{
	uint64_t row = number / x->cols, col = number % x->cols;

	return base + (x->by_col ? col * stride + row : row * stride + col) * x->bits / 8;
}

static bool load_lane(emu_warp *w, const emu_op *op, const wmma *x, unsigned reg, unsigned lane, uint64_t base,
                      uint64_t stride)
{
	const emu_arg *d = &op->arg[0];
	uint32_t slot = arg_slot(d, reg), size = x->run * x->bits / 8;
	bool undefined = true;
	uint64_t v = 0;

	if (!slot)
		return true;
	for (unsigned s = 0; s < x->f->nslot; s += x->run) {
		uint64_t at = element_at(x, x->f->lane[lane] + x->f->reg[reg] + x->f->slot[s], base, stride), part = 0;
		emu_place p;
		if (!emu_resolve(w, op, lane, op->arg[1].space, at, size, size, &p))
			return false;
		if (p.space < SPACE_LOCAL)
			race_access(w, op, lane, &p, size, ACCESS_READ);
		undefined &= p.space < SPACE_LOCAL && emu_all_undefined(&p, size);
		memcpy(&part, p.p, size);
		v |= part << s * x->bits;
	}
	emu_put(w, slot, x->f->bits == 64 ? 64 : 32, lane, v);
	emu_define(w, slot, UINT32_C(1) << lane, undefined ? 0 : ALL_LANES);
	return true;
}

/* f16 operands of A and B fill their registers twice. */
static bool copied(const wmma *x, unsigned reg, unsigned *from)
{
	for (*from = 0; *from < reg; ++*from)
		if (x->f->reg[*from] == x->f->reg[reg])
			return true;
	return false;
}

static enum emu_step wmma_load(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const wmma *x = (const wmma *)op->extra;
	uint64_t at, stride;
	unsigned from;

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	if (!base_of(w, op, x, &op->arg[1], mask, &at, &stride))
		return STEP_FAULT;
	for (unsigned i = 0; i < x->f->nreg; i++) {
		uint32_t to = arg_slot(&op->arg[0], i);
		if (copied(x, i, &from) && to && arg_slot(&op->arg[0], from)) {
			LANES(l, mask, emu_r32(w, to)[l] = emu_r32(w, arg_slot(&op->arg[0], from))[l]);
			emu_define(w, to, mask, *emu_defined(w, arg_slot(&op->arg[0], from)));
			continue;
		}
		EACH_LANE(l, mask)
			if (!load_lane(w, op, x, i, l, at, stride))
				return STEP_FAULT;
	}
	return STEP_NEXT;
}

static enum emu_step wmma_store(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const wmma *x = (const wmma *)op->extra;
	const emu_arg *b = &op->arg[2];
	uint32_t size = x->run * x->bits / 8;
	uint64_t at, stride;

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	if (!base_of(w, op, x, &op->arg[1], mask, &at, &stride))
		return STEP_FAULT;
	for (unsigned i = 0; i < x->f->nreg; i++) {
		uint32_t slot = arg_slot(b, i);
		if (op->arg[1].space == SPACE_GLOBAL)
			emu_need(w, op, slot, mask, "what is stored");
		EACH_LANE(l, mask) {
			uint64_t v = x->f->bits == 64 ? emu_r64(w, slot)[l] : emu_r32(w, slot)[l];
			for (unsigned s = 0; s < x->f->nslot; s += x->run) {
				uint64_t to = element_at(x, x->f->lane[l] + x->f->reg[i] + x->f->slot[s], at, stride),
						 part = v >> s * x->bits;
				if (!emu_write(w, op, l, op->arg[1].space, to, &part, size, 0))
					return STEP_FAULT;
			}
		}
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

static enum cptx_frag_kind kind_of(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_WMMA_LOAD_A: return CPTX_FRAG_WMMA_A;
	case CPTX_OP_WMMA_LOAD_B: return CPTX_FRAG_WMMA_B;
	default: return CPTX_FRAG_WMMA_C;
	}
}

bool decode_wmma(emu_decoder *d, emu_op *op)
{
	wmma *x = DECODER_NEW(d, wmma);
	mnk shape;

	if (!x || !mnk_of(arch_mods[op->m.shape].name, &shape))
		return false;
	enum cptx_frag_kind kind = kind_of(op);
	unsigned bits = op->m.type == CPTX_B1 ? 1 : arch_types[op->m.type].bits;
	cptx_frag what = {
		.kind = kind, .m = (uint16_t)shape.m, .n = (uint16_t)shape.n, .k = (uint16_t)shape.k, .bits = (uint8_t)bits
	};
	unsigned rows = kind == CPTX_FRAG_WMMA_B ? shape.k : shape.m;

	what.repeated = op->m.type == CPTX_F16 && kind != CPTX_FRAG_WMMA_C;
	*x = (wmma){ .cols = kind == CPTX_FRAG_WMMA_A ? shape.k : shape.n,
		         .bits = bits,
		         .by_col = emu_modifier(op, "layout") == CPTX_COL };
	x->stride = x->by_col ? rows : x->cols;
	x->stride_arg = emu_named(op, "stride");
	x->f = frag_new(d, op, &what, FRAG_ROWS);
	if (!x->f)
		return false;
	bool slots_by_row = x->f->nslot > 1 && x->f->slot[1] == 1;
	x->run = x->f->nslot > 1 && slots_by_row != x->by_col ? x->f->nslot : 1;
	op->extra = x;
	op->converge = 1;
	op->flags = OP_SPLITS;
	op->fn = op->opcode == CPTX_OP_WMMA_STORE_D ? wmma_store : wmma_load;
	return true;
}
