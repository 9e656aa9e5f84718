/* SPDX-License-Identifier: MIT */
/*
 * Calls that are made again: a call whose modifiers and kinds of operands are those of an earlier one is appended from what
 * that one's match left behind, without matching.  Earlier ones are known to the module's memo, and to the cptx_again of the
 * place in the program that calls (place.c).
 */
#include "ir/direct.h"

/* Whether a call's new registers can be made without an allocation from here on; false where ir_regs has to be asked. */
static inline bool has_room(cptx_kernel *k, const arch_known *n)
{
	enum ir_class cls = ir_class_of(n->dest_type);

	return ((k->ndecl && !k->m->parsed) || ir_prepare_names(k)) && n->dest_count <= IR_MOST_MADE - k->decl[cls].count &&
	       k->nreg + n->dest_count < WORD_NUMBERS &&
	       (k->nreg + n->dest_count <= k->cap_reg ||
	        arena_reserve(&k->m->a, &k->reg, k->nreg, &k->cap_reg, sizeof *k->reg, k->nreg + n->dest_count));
}

/* Makes them. */
static inline cptx_val new_registers(cptx_kernel *k, const arch_known *n)
{
	ir_decl *d = &k->decl[ir_class_of(n->dest_type)];
	cptx_val v = { .kind = CPTX_VAL_REG, .type = n->dest_type, .count = n->dest_count, .owner = k->owner };

	v.id = (uint32_t)k->nreg;
	if (n->dest_count == 1) { /* apart from the loop, of which gcc makes byte stores that stall the next load */
		ir_reg r = { .type = n->dest_type, .made = 1, .at = ++d->count & IR_MOST_MADE };
		k->reg[k->nreg++] = r;
		return v;
	}
	for (unsigned i = 0; i < n->dest_count; i++)
		k->reg[k->nreg++] = (ir_reg){ .type = n->dest_type, .made = 1, .at = ++d->count & IR_MOST_MADE };
	return v;
}

/* What the item of a call that is made again is made of. */
typedef struct making {
	cptx_kernel *k;
	const arch_remembered *r;
	const cptx_val *vals;
	uint32_t *words;
	size_t size; /* bytes in use behind the item */
} making;

/* Writes the operands that are no plain words. */
static bool put_others(making *g)
{
	const arch_plan *p = &g->r->plan;

	for (unsigned i = 0, other = p->other; other; i++, other >>= 1) {
		cptx_val v = g->vals[p->of[i].from];
		if (!(other & 1) || p->of[i].is == AGAIN_NEW)
			continue;
		if (p->of[i].is == AGAIN_FLOAT)
			v.type = p->of[i].type, v.space = 0;
		else if (!ir_is_ours(g->k, &v) || (v.kind == CPTX_VAL_SYM && v.space == CPTX_PARAM))
			return false; /* a parameter may be one that is only read, or only written */
		g->size = ir_put_value(g->words, i, &v, g->k->owner, g->size);
	}
	return true;
}

/*
 * Writes the words of the operands, of a new register 0; false: this call differs in something that only matching judges. It
 * has no branch on what an operand is, which would be mispredicted again and again, and always writes a multiple of
 * PUT_AT_ONCE words.
 */
enum { PUT_AT_ONCE = 4 };
static inline bool put_operands(making *g)
{
	const cptx_kernel *k = g->k;
	const arch_operand_plan *o = g->r->plan.of;
	uint32_t regs = (uint32_t)MIN(k->nreg, WORD_NUMBERS), wrong = 0;
	unsigned n = g->r->known.noperand, i = 0;

	do {
		for (unsigned j = 0; j < PUT_AT_ONCE; j++, i++, o++) {
			const cptx_val *v = &g->vals[o->from];
			uint32_t below = o->reg ? regs : o->below,
					 stranger = o->reg ? (uint32_t)(v->owner ^ k->owner) : (uint32_t)v->offset;
			wrong |= ((v->id >= below) | stranger) & o->mask;
			g->words[i] = o->front + (v->id << WORD_NUMBER & o->mask);
		}
	} while (i < n);
	return !wrong;
}
_Static_assert(ARCH_OPERANDS % PUT_AT_ONCE == 0, "put_operands reads plans in such numbers");

bool ir_append_again(cptx_kernel *k, cptx_site at, const arch_remembered *r, const cptx_val *vals, cptx_val *result)
{
	const arch_known *n = &r->known;
	cptx_val guard = { 0 };

	if (!r->plan.direct || !k->has_body || ir_is_call(arch_forms[n->form].op))
		return false;
	if ((vals[1].kind | vals[2].kind) && (vals[1].kind == CPTX_VAL_NONE || vals[2].kind == CPTX_VAL_NONE)) {
		guard = vals[1].kind ? vals[1] : vals[2];
		if (guard.kind != CPTX_VAL_REG || guard.type != CPTX_PRED || guard.count != 1 || guard.offset ||
		    guard.owner != k->owner || guard.id >= k->nreg)
			return false;
		guard.negated ^= vals[2].kind != CPTX_VAL_NONE;
	} else if (vals[1].kind | vals[2].kind) {
		return false;
	}
	if (r->plan.makes && !has_room(k, n))
		return false;
	ir_item *it = ir_item_room(k, at, n->noperand, n->ngroup, r->plan.whole);
	if (!it)
		return false;
	making g = { k, r, vals, (uint32_t *)(it + 1), ir_bytes_of(n->noperand, n->ngroup, 0) };
	bool fits = put_operands(&g);
	ir_put_mods((uint16_t *)(g.words + n->noperand), n->mod, n->ngroup);
	if (!fits || (r->plan.other && !put_others(&g))) {
		arena_end(&k->m->a, (char *)it);
		return false;
	}
	it->form = n->form;
	it->src = ir_tag(k->m, r);
	if (guard.kind)
		ir_guard(it, guard);
	*result = vals[0];
	if (r->plan.makes) {
		*result = new_registers(k, n);
		g.size = ir_put_value(g.words, 0, result, k->owner, g.size);
	}
	arena_end(&k->m->a, (char *)(it + 1) + g.size);
	ir_link(k, it);
	k->ninsn++;
	return true;
}

/* How a call of the memo is made directly. */
typedef struct ir_direct {
	uint32_t serial; /* of the memo's entry that it was planned for; 0: none */
	bool there;      /* the call can be made so */
	direct_kinds kinds;
	direct_item item;
} ir_direct;

void ir_direct_free(cptx_module *m)
{
	for (unsigned i = 0; i < ARRAY_LEN(m->direct); i++)
		if (m->direct[i])
			heap_realloc(&m->a.hook, m->direct[i], 0);
}

/* The plan for an entry of the memo, which may be out of date; NULL: there is no room for it yet. */
static inline ir_direct *direct_of(const cptx_module *m, const arch_remembered *r)
{
	ir_direct *block = m->direct[r->number / ARCH_MEMO_BLOCK];

	return block ? &block[r->number % ARCH_MEMO_BLOCK] : NULL;
}

/* Plans the direct call of an entry of the memo, for a call with values of its kinds; nothing is done when memory is
 * short. */
static void note_direct(cptx_module *m, const arch_remembered *r, const cptx_val *vals)
{
	ir_direct **block = &m->direct[r->number / ARCH_MEMO_BLOCK];

	if (!*block) {
		*block = HEAP_ARRAY(&m->a.hook, ir_direct, NULL, ARCH_MEMO_BLOCK);
		for (unsigned i = 0; *block && i < ARCH_MEMO_BLOCK; i++)
			(*block)[i].serial = 0;
	}
	ir_direct *d = direct_of(m, r);
	if (!d || d->serial == r->serial)
		return;
	d->there = r->plan.direct && ir_make_direct(&d->item, &d->kinds, m, r, vals);
	d->item.like.src = ir_tag(m, r);
	d->serial = r->serial;
}

/* Makes the call directly; false where it is not of this kind. */
static inline bool append_direct(cptx_kernel *k, cptx_site at, const ir_direct *d, const cptx_val *vals, unsigned nslot,
                                 cptx_val *result)
{
	direct_value v[DIRECT_OPERANDS] = { direct_nothing, direct_nothing, direct_nothing, direct_nothing };
	ir_item *it = (ir_item *)(void *)k->m->a.at;

	if (!direct_fits(k, &d->item, at.file))
		return false;
	for (unsigned i = 0; i < nslot; i++)
		v[i] = (direct_value){ arch_value_front(vals[3 + i]), (uint64_t)vals[3 + i].i };
	if (direct_words(&d->item, &d->kinds, DIRECT_OPERANDS, it, k, v[0], v[1], v[2], v[3]))
		return false;
	*result = direct_end(k, &d->item, it, v[0], v[1], v[2], v[3]);
	it->line = at.line;
	return true;
}

bool ir_insn_again(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods, cptx_val *result)
{
	cptx_module *m = k->m;
	bool plain = !(vals[0].kind | vals[1].kind | vals[2].kind) && !m->parsed;
	const arch_remembered *r = plain ? arch_recalled_mods(&m->memo, op, vals, mods) : NULL;
	const ir_direct *d = r ? direct_of(m, r) : NULL;

	if (d && d->serial == r->serial && d->there && append_direct(k, at, d, vals, r->nslot, result))
		return true;
	r = plain && !r ? NULL : arch_recalled(&m->memo, op, vals, mods);
	if (!r)
		return false;
	if (plain)
		note_direct(m, r, vals);
	return ir_append_again(k, at, r, vals, result);
}
