/* SPDX-License-Identifier: MIT */
/* What instructions that work on each lane alone have in common. */
#include "emu/exec/scalar.h"

struct num_mode scalar_mode(const emu_op *op)
{
	const emu_mods *m = &op->m;

	return (struct num_mode){
		.rnd = m->rnd,
		.ftz = m->ftz,
		.sat = m->sat,
		.satfinite = m->satfinite,
		.relu = m->relu,
		.nan = m->NaN,
		.abs = m->abs,
		.xorsign = m->xorsign,
		.oob = m->oob,
		.scaled = m->scaled,
	};
}

struct scalar *scalar_inputs(emu_decoder *d, emu_op *op)
{
	const arch_form *form = &arch_forms[op->form];
	struct scalar *s = DECODER_NEW(d, struct scalar);

	op->extra = s;
	op->flags = OP_PURE;
	if (!s)
		return NULL;
	s->mode = scalar_mode(op);
	for (unsigned i = 0; i < form->noperand; i++) {
		const arch_operand *o = &arch_operands[form->operand + i];
		const emu_arg *a = &op->arg[o->slot];
		if (o->flags & OPERAND_DEST || a->kind == ARG_NONE)
			continue;
		for (unsigned j = 0; j < (a->kind == ARG_VEC ? a->count : 1u) && s->n < SCALAR_INPUTS; j++) {
			s->in[s->n] = *a;
			if (a->kind == ARG_VEC)
				s->in[s->n].slot = a->slots[j];
			s->n++;
		}
	}
	return s;
}

void scalar_gather(const emu_warp *w, const struct scalar *s, unsigned lane, uint64_t *v)
{
	for (unsigned i = 0; i < s->n; i++)
		v[i] = emu_get(w, &s->in[i], lane);
}

static enum emu_step calculate(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const struct scalar *s = (const struct scalar *)op->extra;
	const emu_arg *d = &op->arg[0];
	uint64_t v[SCALAR_INPUTS];

	EACH_LANE(l, mask) {
		scalar_gather(w, s, l, v);
		emu_put(w, d->slot, d->bits, l, s->calc(op, &s->mode, v));
	}
	return STEP_NEXT;
}

static enum emu_step decide(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const struct scalar *s = (const struct scalar *)op->extra;
	uint64_t v[SCALAR_INPUTS];
	uint32_t p = 0;

	EACH_LANE(l, mask) {
		scalar_gather(w, s, l, v);
		p |= (uint32_t)s->calc(op, &s->mode, v) << l;
	}
	emu_set_pred(w, op->arg[0].slot, mask, p);
	return STEP_NEXT;
}

bool scalar_decode(emu_decoder *d, emu_op *op, scalar_calc calc)
{
	struct scalar *s = scalar_inputs(d, op);

	if (!s)
		return false;
	s->calc = calc;
	op->fn = half_loop(op);
	if (op->fn)
		return true;
	op->fn = op->arg[0].kind == ARG_SINK ? exec_nothing : op->arg[0].bits == 1 ? decide : calculate;
	return true;
}

unsigned fast_kind_of(const emu_op *op, unsigned type)
{
	const emu_mods *m = &op->m;

	if (m->sat || m->satfinite || m->relu || m->NaN || m->xorsign || m->abs || m->oob || m->cc ||
	    (m->rnd && m->rnd != CPTX_RN) || (m->mode && m->mode != CPTX_LO))
		return 0;
	switch (type) {
	case CPTX_U16:
	case CPTX_B16: return FAST_U16;
	case CPTX_S16: return FAST_S16;
	case CPTX_U32:
	case CPTX_B32: return FAST_U32;
	case CPTX_S32: return FAST_S32;
	case CPTX_U64:
	case CPTX_B64: return FAST_U64;
	case CPTX_S64: return FAST_S64;
	case CPTX_F32: return m->ftz ? FAST_F32Z : FAST_F32;
	case CPTX_F64: return m->ftz ? 0 : FAST_F64;
	case CPTX_F16:
	case CPTX_F16X2: return m->ftz ? 0 : FAST_F16;
	case CPTX_BF16:
	case CPTX_BF16X2: return m->ftz ? 0 : FAST_BF16;
	default: return 0;
	}
}

bool fast_decode(emu_op *op, const struct fast *row)
{
	unsigned kind = fast_kind_of(op, op->m.type);

	if (op->arg[0].kind != ARG_REG || op->m.atype)
		return false;
	for (; kind && row->kinds; row++)
		if (row->kinds & kind) {
			op->flags = OP_PURE;
			op->fn = row->fn;
			return true;
		}
	return false;
}
