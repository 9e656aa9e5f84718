/* SPDX-License-Identifier: MIT */
/* Planning direct calls. */
#include "ir/direct.h"

/* Plans operand number `slot` of the call; false where it cannot be made directly. */
static bool plan_direct(direct_item *d, direct_kinds *kinds, const arch_remembered *r, const cptx_val *v, unsigned slot)
{
	unsigned to = slot + d->makes; /* the operand of the item */
	const arch_operand_plan *o = &r->plan.of[to];
	const uint64_t owner = (uint64_t)UINT16_MAX << OWNER_SHIFT;

	d->of[slot] = (direct_operand){ .below = 1 };
	kinds->front[slot] = arch_value_front(*v) & ~owner;
	if (to >= r->known.noperand || v->kind == CPTX_VAL_NONE)
		return v->kind == CPTX_VAL_NONE && (to >= r->known.noperand || !o->front);
	kinds->word[slot] = o->front;
	if (o->from != 3 + slot)
		return false;
	if (o->is == AGAIN_WORD && o->mask) {
		d->of[slot] = (direct_operand){
			.owned = o->reg ? owner : 0, .regs = o->reg ? UINT64_MAX : 0, .below = o->reg ? 0 : o->below, .mask = UINT32_MAX
		};
		return o->reg || o->below;
	}
	if (o->is != AGAIN_FLOAT || d->whole)
		return false;
	d->of[slot].below = UINT64_MAX;
	d->whole = (uint8_t)(slot + 1);
	d->whole_front =
		arch_value_front((cptx_val){ .kind = v->kind, .type = o->type, .negated = v->negated, .count = v->count });
	return true;
}

/* How many of the operands are registers, the first ones, all others being NONE; 0: they are not so. */
static unsigned registers_of(const direct_item *d, const cptx_val *vals, unsigned nslot)
{
	unsigned n = 0;

	while (n < nslot && d->of[n].regs)
		n++;
	for (unsigned i = n; i < nslot; i++)
		if (vals[3 + i].kind != CPTX_VAL_NONE)
			return 0;
	return n;
}

/* Plans the sizes and the pieces of the item. */
static void plan_item(direct_item *d, direct_kinds *kinds, const arch_known *n)
{
	size_t words = ir_bytes_of(n->noperand, 0, 0);
	ir_item like = { .form = n->form, .kind = ITEM_INSN, .nmod = n->ngroup & 31, .noperand = n->noperand & 15 };

	if (d->whole)
		kinds->word[d->whole - 1] =
			WORD_WHOLE | (uint32_t)CPTX_VAL_FLOAT << WORD_KIND | (uint32_t)(words / 8) << 2 * WORD_KIND;
	if (d->makes) {
		const ir_reg made = { .type = n->dest_type, .made = 1 };
		d->cls = (uint8_t)ir_class_of(n->dest_type);
		memcpy(&d->made_reg, &made, sizeof made);
		d->made_front = arch_value_front((cptx_val){ .kind = CPTX_VAL_REG, .type = n->dest_type, .count = 1 });
		d->made_word = CPTX_VAL_REG | (uint32_t)n->dest_type << WORD_KIND;
	}
	d->size = (uint16_t)(sizeof(ir_item) + words + (d->whole ? sizeof(cptx_val) : 0));
	memcpy(&d->head, (const char *)&like + offsetof(ir_item, form), sizeof d->head);
}

bool ir_make_direct(direct_item *d, direct_kinds *kinds, const cptx_module *m, const arch_remembered *r,
                    const cptx_val *vals)
{
	const arch_known *n = &r->known;
	unsigned nslot = arch_ops[r->op - 1].nslot;

	memset(d, 0, sizeof *d); /* so that two can be compared */
	memset(kinds, 0, sizeof *kinds);
	d->makes = r->plan.makes;
	if (nslot > DIRECT_OPERANDS || !n->noperand || n->noperand > DIRECT_OPERANDS + d->makes || vals[0].kind ||
	    (d->makes ? n->dest_count != 1 : n->dest_type) || ir_is_call(arch_forms[n->form].op) || m->parsed)
		return false;
	for (unsigned i = 0; i < nslot; i++)
		if (!plan_direct(d, kinds, r, &vals[3 + i], i))
			return false;
	plan_item(d, kinds, n);
	d->registers = (uint8_t)registers_of(d, vals, nslot);
	return true;
}
