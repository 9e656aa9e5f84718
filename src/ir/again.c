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

/* Whether the instruction may have this operand: of the parameters of a head, loads and stores take not all. */
static bool may_access(const making *g, const cptx_val *v)
{
	unsigned op = arch_forms[g->r->known.form].op;

	if (v->kind != CPTX_VAL_SYM || v->space != CPTX_PARAM || (op != CPTX_OP_LD && op != CPTX_OP_ST))
		return true;
	return ir_symbol(g->k, v->id)->is_param != (op == CPTX_OP_ST ? PARAM_IN : PARAM_OUT);
}

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
		else if (!ir_is_ours(g->k, &v) || !may_access(g, &v))
			return false;
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

bool ir_append_again(cptx_kernel *k, cptx_site at, const arch_remembered *r, const ir_shape *shape, const cptx_val *vals,
                     cptx_val *result)
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
	const unsigned nmod = shape ? 0 : n->ngroup; /* behind the item */
	ir_item *it = ir_item_room(k, at, n->noperand, nmod, r->plan.whole);
	if (!it)
		return false;
	making g = { k, r, vals, (uint32_t *)(it + 1), ir_bytes_of(n->noperand, nmod, 0) };
	bool fits = put_operands(&g);
	if (!shape)
		ir_put_mods((uint16_t *)(g.words + n->noperand), n->mod, n->ngroup);
	if (!fits || (r->plan.other && !put_others(&g))) {
		arena_end(&k->m->a, (char *)it);
		return false;
	}
	it->form = n->form;
	it->nmod = n->ngroup & 31;
	if (shape)
		it->shaped = 1, it->shape = shape;
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

/* How a call of the memo is made directly.  What it says holds when the memo has forgotten the call, too. */
typedef struct ir_direct {
	uint32_t serial; /* of the memo's entry that it was planned for; 0: none */
	uint16_t op;     /* the call's op + 1; 0: calls cannot be made so */
	uint16_t last;   /* number of the last of its words of modifiers */
	uint64_t mods[ARCH_FIELDS / 4], last_mask;
	const ir_shape *shape;
	direct_kinds kinds;
	direct_item item;
} ir_direct;

/* Where m->direct_at has the number of the plan for a call, or in the neighbour of that place (the lowest bit is another).
 */
static inline unsigned place_of_direct(unsigned op, unsigned nslot, const cptx_val *vals, const uint16_t *mods)
{
	const uint64_t owner = (uint64_t)UINT16_MAX << OWNER_SHIFT;
	uint64_t first = arch_value_front(vals[3]) & ~owner, last = arch_value_front(vals[2 + nslot]) & ~owner;
	uint64_t hash = (first << 7 | first >> 57) ^ last ^ arch_four_mods(mods, 4) ^ (uint64_t)op << 40;

	return (unsigned)(hash * 0x9e3779b97f4a7c15u >> (64 - IR_DIRECT_LOG));
}

void ir_direct_free(cptx_module *m)
{
	for (unsigned i = 0; i < ARRAY_LEN(m->direct); i++)
		if (m->direct[i])
			heap_realloc(&m->a.hook, m->direct[i], 0);
}

/* The plan for calls like an entry of the memo, made of one with values of its kinds; NULL when memory is short. */
static ir_direct *direct_of(cptx_module *m, const arch_remembered *r, const cptx_val *vals, const uint16_t *mods)
{
	ir_direct **block = &m->direct[r->number / ARCH_MEMO_BLOCK];

	if (!*block) {
		*block = HEAP_ARRAY(&m->a.hook, ir_direct, NULL, ARCH_MEMO_BLOCK);
		for (unsigned i = 0; *block && i < ARCH_MEMO_BLOCK; i++)
			(*block)[i].serial = (*block)[i].op = 0;
	}
	if (!*block)
		return NULL;
	ir_direct *d = &(*block)[r->number % ARCH_MEMO_BLOCK];
	if (d->serial != r->serial) {
		d->shape = ir_shape_of(m, r);
		bool there = d->shape && r->nslot && r->nfield && ir_make_direct(&d->item, &d->kinds, m, r, vals);
		d->op = there ? r->op : 0;
		d->serial = r->serial;
		d->last = (uint16_t)((r->nfield + 3) / 4 - 1);
		d->last_mask = r->nfield % 4 ? (UINT64_C(1) << 16 * (r->nfield % 4)) - 1 : UINT64_MAX;
		for (unsigned i = 0; i < r->nfield; i += 4)
			d->mods[i / 4] = arch_four_mods(mods + i, r->nfield - i);
	}
	return d;
}

/* Notes where the plan of a direct call is found. */
static void note_direct(cptx_module *m, const ir_direct *d, const arch_remembered *r, const cptx_val *vals,
                        const uint16_t *mods)
{
	unsigned place = place_of_direct(d->op - 1u, r->nslot, vals, mods);

	m->direct_at[m->direct_at[place] ? place ^ 1 : place] = (uint8_t)(r->number + 1);
}

/* Appends the call with n operands directly; false where it is not of this kind. */
static inline bool append_direct(cptx_kernel *k, cptx_site at, const ir_direct *d, unsigned n, const cptx_val *vals,
                                 cptx_val *result)
{
	direct_value v[DIRECT_OPERANDS] = { direct_nothing, direct_nothing, direct_nothing, direct_nothing };
	ir_item *it = (ir_item *)(void *)k->m->a.at;

	for (unsigned i = 0; i < n; i++)
		v[i] = (direct_value){ arch_value_front(vals[3 + i]), (uint64_t)vals[3 + i].i };
	if (direct_words(&d->item, &d->kinds, n, it, k, v[0], v[1], v[2], v[3]))
		return false;
	uint64_t head = d->item.head | (uint64_t)k->m->last_file_number << HEAD_FILE;
	*result = direct_end(k, &d->item, it, head, at.line, d->shape, v[0], v[1], v[2], v[3]);
	return true;
}

/* The plan at a place of m->direct_at; NULL where it is for another instruction or other modifiers. */
static inline const ir_direct *direct_like(const cptx_module *m, unsigned place, unsigned op, const uint16_t *mods)
{
	unsigned number = m->direct_at[place];

	if (!number)
		return NULL;
	const ir_direct *d = &m->direct[(number - 1) / ARCH_MEMO_BLOCK][(number - 1) % ARCH_MEMO_BLOCK];
	if (d->op != op + 1)
		return NULL;
	for (unsigned i = 0; i < d->last; i++) /* a loop that vectors take would wait for the caller's stores of single words */
		if (arch_four_mods(mods + 4 * i, 4) != d->mods[i])
			return NULL;
	return (arch_four_mods(mods + 4 * d->last, 4) & d->last_mask) == d->mods[d->last] ? d : NULL;
}

/* Makes the call directly, if its like was made before; false where it is not known so, or has a guard or a destination. */
static inline bool insn_directly(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods,
                                 cptx_val *result)
{
	unsigned nslot = arch_ops[op].nslot, nfield = arch_ops[op].nfield;

	if (!nslot || nslot > DIRECT_OPERANDS || !nfield || (vals[0].kind | vals[1].kind | vals[2].kind))
		return false;
	unsigned place = place_of_direct(op, nslot, vals, mods);
	const ir_direct *d = direct_like(k->m, place, op, mods);
	if (!d && !(d = direct_like(k->m, place ^ 1, op, mods)))
		return false;
	if (!direct_fits(k) || k->m->last_file != at.file)
		return false;
	switch (nslot) { /* so that each has as many operands as a constant */
	case 1: return append_direct(k, at, d, 1, vals, result);
	case 2: return append_direct(k, at, d, 2, vals, result);
	case 3: return append_direct(k, at, d, 3, vals, result);
	default: return append_direct(k, at, d, 4, vals, result);
	}
}

bool ir_insn_again(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods, cptx_val *result)
{
	const arch_remembered *r = arch_recalled(&k->m->memo, op, vals, mods);

	if (!r)
		return false;
	const ir_direct *d = k->m->parsed ? NULL : direct_of(k->m, r, vals, mods);
	if (d && d->op && !(vals[0].kind | vals[1].kind | vals[2].kind))
		note_direct(k->m, d, r, vals, mods);
	return ir_append_again(k, at, r, d ? d->shape : NULL, vals, result);
}

/* Makes a call that is not made directly. */
__attribute__((__noinline__)) static cptx_val insn_slowly(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals,
                                                          const uint16_t *mods)
{
	static const char name[] = "cptx_insn_";

	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	if (op >= arch_nop)
		ir_error(k, CPTX_E_ARG, at, "instruction number %u is not in this library's table", op);
	else if (!vals || !mods)
		error_null_in(name, vals ? "list of modifiers" : "list of operands", at, k);
	else
		return ir_append_insn(k, at, op, vals, mods);
	return (cptx_val){ 0 };
}

cptx_val cptx_insn_(cptx_kernel *k, cptx_site at, enum cptx_op op, const cptx_val *vals, const uint16_t *mods)
{
	cptx_val made;

	if (k && vals && mods && (unsigned)op < arch_nop && insn_directly(k, at, op, vals, mods, &made))
		return made;
	return insn_slowly(k, at, op, vals, mods);
}
