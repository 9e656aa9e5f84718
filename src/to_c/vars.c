/* SPDX-License-Identifier: MIT */
/* Decides which C variables a body has (single registers, arrays, labels, variables), and where each is declared. */
#include "to_c/to_c.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t vars_new(to_c_body *b, to_c_var_kind kind, const char *name)
{
	if (!arena_push(&b->t->a, &b->var, b->nvar, &b->cap_var, sizeof *b->var)) {
		to_c_no_memory(b->t);
		return IR_NONE;
	}
	b->var[b->nvar] = (to_c_var){ .name = name, .kind = kind, .count = 1, .first = IR_NONE, .next = IR_NONE };
	return (uint32_t)b->nvar++;
}

/* ---- arrays ---- */

/* Whether a vector is consecutive registers from its first element on, of one type and in no array yet. */
static bool is_run(const to_c_body *b, const cptx_val *v)
{
	for (uint32_t i = 0; i < v->count; i++)
		if (b->reg_var[v->id + i] != IR_NONE || b->k->reg[v->id + i].type != b->k->reg[v->id].type)
			return false;
	return true;
}

static bool make_array(to_c_body *b, uint32_t first, uint32_t count)
{
	uint32_t id = vars_new(b, VAR_REG, NULL);

	if (id == IR_NONE)
		return false;
	b->var[id].first_reg = first;
	b->var[id].count = count;
	b->var[id].type = b->var[id].c_type = (uint8_t)b->k->reg[first].type;
	for (uint32_t i = 0; i < count; i++)
		b->reg_var[first + i] = id;
	return true;
}

/* Makes arrays of the vectors that instructions write, the longest first, so that an accumulator is one array, and not its
 * parts. */
static bool find_arrays(to_c_body *b)
{
	unsigned longest = 0;

	for (size_t d = CLASS_COUNT; d < b->k->ndecl; d++) {
		const ir_decl *decl = &b->k->decl[d];
		if (decl->form == DECL_VECTOR && !make_array(b, decl->first, decl->count))
			return false;
	}
	for (unsigned most = UINT32_MAX; most > 1; most = longest, longest = 0) {
		for (uint32_t i = 0; i < b->nitem; i++) {
			const ir_item *it = b->item[i].it;
			const arch_operand *o = &arch_operands[arch_forms[it->form].operand];
			for (unsigned n = 0; it->kind == ITEM_INSN && n < it->noperand; n++) {
				const cptx_val value = ir_operand(b->k, it, n), *v = &value;
				if (v->kind != CPTX_VAL_REG || v->count < 2 || !(o[n].flags & OPERAND_DEST))
					continue;
				if (v->count == most && is_run(b, v) && !make_array(b, v->id, v->count))
					return false;
				if (v->count < most)
					longest = MAX(longest, v->count);
			}
		}
	}
	return true;
}

static bool name_registers(to_c_body *b)
{
	const cptx_kernel *k = b->k;
	enum { MOST = 200 }; /* longest name, for people who read the C */
	char text[MOST + 1];

	for (uint32_t i = 0; i < k->nreg; i++)
		if (b->reg_var[i] == IR_NONE && !make_array(b, i, 1))
			return false;
	for (uint32_t i = 0; i < k->nreg; i++) {
		to_c_var *v = &b->var[b->reg_var[i]];
		const ir_decl *d = &k->decl[ir_decl_of(k, i)];
		if (v->first_reg != i || !v->uses)
			continue;
		if (d->form == DECL_RANGE)
			snprintf(text, sizeof text, "%.*s%u", MOST - 10, d->name, (unsigned)ir_number_of(k, i));
		else
			snprintf(text, sizeof text, "%.*s", MOST, d->name);
		v->name = names_make(b->t, &b->names, text, true, NULL, IR_NONE);
	}
	return !b->t->failed;
}

/* ---- uses ---- */

static void use(to_c_body *b, uint32_t var, uint32_t item)
{
	to_c_var *v = &b->var[var];
	uint32_t block = b->item[item].block;

	if (!v->uses++) {
		v->first = item;
		v->block = block;
		return;
	}
	while (!flow_inside(b, block, v->block))
		v->block = b->block[v->block].outer;
}

static uint32_t var_of(to_c_body *b, uint32_t *slot, to_c_var_kind kind)
{
	if (*slot == IR_NONE)
		*slot = vars_new(b, kind, NULL);
	return *slot;
}

static void use_value(to_c_body *b, const cptx_val *v, uint32_t item)
{
	uint32_t *slot = NULL, var;

	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
		for (uint32_t i = 0; i < v->count; i++)
			if (!i || b->reg_var[v->id + i] != b->reg_var[v->id + i - 1])
				use(b, b->reg_var[v->id + i], item);
		return;
	case CPTX_VAL_VEC:
	case CPTX_VAL_LIST:
		for (uint32_t i = 0; i < v->count; i++)
			use_value(b, &b->k->vec[v->id + i], item);
		return;
	case CPTX_VAL_SYM: slot = v->id >= MODULE_SYM ? &b->t->found_var[v->id - MODULE_SYM] : &b->sym_var[v->id]; break;
	case CPTX_VAL_FUNC: slot = &b->t->found_var[b->k->m->nsym + v->id - 1]; break;
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO: slot = &b->label_var[v->id]; break;
	default: return;
	}
	to_c_var_kind kind = v->kind == CPTX_VAL_SYM                                 ? VAR_SYM
	                     : v->kind == CPTX_VAL_LABEL || v->kind == CPTX_VAL_FUNC ? VAR_LABEL
	                                                                             : VAR_LIST;
	bool found = *slot == IR_NONE && (v->kind == CPTX_VAL_FUNC || (v->kind == CPTX_VAL_SYM && v->id >= MODULE_SYM));
	if ((var = var_of(b, slot, kind)) == IR_NONE)
		return;
	use(b, var, item);
	if (!found)
		return;
	if (arena_push(&b->t->a, &b->found, b->nfound, &b->cap_found, sizeof *b->found))
		b->found[b->nfound++] = (uint32_t)(slot - b->t->found_var);
	else
		to_c_no_memory(b->t);
}

/* Counts the uses of variables in an item; of a branch that a block prints only its predicate counts. */
static void use_item(to_c_body *b, uint32_t i)
{
	const to_c_item *t = &b->item[i];
	const ir_item *it = t->it;

	if (t->role == ROLE_GONE || it->kind == ITEM_SCOPE || it->kind == ITEM_END || it->kind == ITEM_TEXT ||
	    it->kind == ITEM_PRAGMA)
		return;
	if (it->kind == ITEM_INSN && it->guard)
		use(b, b->reg_var[it->guard - 1], i);
	bool branch = t->role == ROLE_IF || t->role == ROLE_BREAK || t->role == ROLE_CONTINUE;
	for (unsigned n = 0; n < it->noperand && !branch; n++)
		if (!(it->kind == ITEM_PROTO && n == 1)) {
			cptx_val v = ir_operand(b->k, it, n);
			use_value(b, &v, i);
		}
}

/* ---- where they are declared ---- */

/* The item in front of which a variable is declared: its first use, or the start of the block around it. */
static uint32_t declared_at(const to_c_body *b, const to_c_var *v)
{
	uint32_t block = b->item[v->first].block;

	if (block == v->block)
		return v->first;
	while (b->block[block].outer != v->block)
		block = b->block[block].outer;
	if (b->block[block].kind == TO_C_ELSE) /* nothing can stand between an if and its else */
		block = b->block[block].pair;
	return b->block[block].start;
}

static bool name_rest(to_c_body *b)
{
	const cptx_kernel *k = b->k;
	char text[32];

	for (size_t i = 0; i < k->nlabel; i++) {
		if (b->label_var[i] == IR_NONE)
			continue;
		const char *name = k->label[i].name;
		to_c_var *v = &b->var[b->label_var[i]];
		snprintf(text, sizeof text, "L%zu", i);
		v->kept = name && names_has(&b->t->words, name) ? name : NULL;
		v->name = names_make(b->t, &b->names, name ? name : text, true, NULL, IR_NONE);
	}
	for (size_t i = 0; i < b->nfound; i++) {
		uint32_t id = b->found[i];
		const char *name = id < k->m->nsym ? k->m->sym[id]->name : k->m->body[id - k->m->nsym]->name;
		b->var[b->t->found_var[id]].name = names_make(b->t, &b->names, name, true, NULL, IR_NONE);
	}
	return !b->t->failed;
}

bool vars_signature(to_c_body *b)
{
	const cptx_kernel *k = b->k;

	b->sym_name = TO_C_ARRAY(b->t, const char *, k->nsym);
	for (size_t n = 0; n < k->nresult + k->narg && b->sym_name; n++) {
		const ir_arg *a = n < k->nresult ? &k->result[n] : &k->arg[n - k->nresult];
		if (a->sym != IR_NONE)
			b->sym_name[a->sym] = names_make(b->t, &b->ptx_names, k->sym[a->sym]->name, false, NULL, IR_NONE);
	}
	return !b->t->failed;
}

/* Chooses names of variables, in C and in PTX; names in one scope may be used again in another. */
static bool name_symbols(to_c_body *b)
{
	const cptx_kernel *k = b->k;

	for (uint32_t i = 0; i < b->nitem; i++) {
		if (b->item[i].it->kind != ITEM_VAR)
			continue;
		uint32_t id = ir_operand(b->k, b->item[i].it, 0).id, block = b->item[i].block;
		while (block && b->block[block].kind != TO_C_SCOPE)
			block = b->block[block].outer;
		b->sym_name[id] = names_make(b->t, &b->ptx_names, k->sym[id]->name, false, b, block ? block : IR_NONE);
		if (b->sym_var[id] != IR_NONE)
			b->var[b->sym_var[id]].name = names_make(b->t, &b->names, k->sym[id]->name, true, b, block ? block : IR_NONE);
	}
	for (size_t i = 0; i < k->nsym; i++)
		if (b->sym_var[i] != IR_NONE && !b->var[b->sym_var[i]].name) {
			b->var[b->sym_var[i]].name = names_make(b->t, &b->names, k->sym[i]->name, true, NULL, IR_NONE);
			b->var[b->sym_var[i]].given = true;
		}
	return !b->t->failed;
}

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	return (a > b) - (a < b);
}

bool vars_find(to_c_body *b)
{
	const cptx_kernel *k = b->k;

	b->reg_var = to_c_nones(b->t, k->nreg);
	b->label_var = to_c_nones(b->t, k->nlabel);
	b->sym_var = to_c_nones(b->t, k->nsym);
	if (b->t->failed || !find_arrays(b))
		return false;
	for (uint32_t i = 0; i < k->nreg; i++)
		if (b->reg_var[i] == IR_NONE && !make_array(b, i, 1))
			return false;
	for (uint32_t i = 0; i < b->nitem; i++)
		use_item(b, i);
	if (b->nfound)
		qsort(b->found, b->nfound, sizeof *b->found, by_number);
	if (!name_rest(b) || !name_symbols(b) || !name_registers(b))
		return false;
	for (size_t n = 0; n < k->nresult + k->narg; n++) {
		const ir_arg *a = n < k->nresult ? &k->result[n] : &k->arg[n - k->nresult];
		if (a->sym == IR_NONE)
			b->var[b->reg_var[a->reg]].given = true;
	}
	for (size_t i = 0; i < b->nfound; i++)
		b->var[b->t->found_var[b->found[i]]].given = true;
	for (uint32_t i = (uint32_t)b->nvar; i-- > 0;) {
		to_c_var *v = &b->var[i];
		if (v->given || !v->uses)
			continue;
		uint32_t at = declared_at(b, v);
		v->next = b->item[at].vars;
		b->item[at].vars = i;
	}
	return true;
}
