/* SPDX-License-Identifier: MIT */
/* Reading bodies: items, their operands, the meaning of names. */
#include "base/options.h"
#include "ir/ir.h"

#include <stdio.h>

_Static_assert((int)CPTX_ITEM_INSN == ITEM_INSN && (int)CPTX_ITEM_LABEL == ITEM_LABEL &&
                   (int)CPTX_ITEM_SCOPE == ITEM_SCOPE && (int)CPTX_ITEM_END == ITEM_END &&
                   (int)CPTX_ITEM_REGS == ITEM_REGS && (int)CPTX_ITEM_VAR == ITEM_VAR &&
                   (int)CPTX_ITEM_PRAGMA == ITEM_PRAGMA && (int)CPTX_ITEM_COMMENT == ITEM_COMMENT &&
                   (int)CPTX_ITEM_TEXT == ITEM_TEXT && (int)CPTX_ITEM_TARGETS == ITEM_TARGETS &&
                   (int)CPTX_ITEM_PROTO == ITEM_PROTO,
               "users see the kinds of items as they are");

static const cptx_val none = { 0 };

static bool is_placed(const cptx_module *m, uint32_t i, const void *user)
{
	(void)user;
	return m->body[i]->has_body && !m->body[i]->removed;
}

cptx_kernel *cptx_module_body(const cptx_module *m, const char *name)
{
	cptx_kernel *found = NULL;

	if (m && name) {
		uint32_t i = ir_global_named(m, NAMED_BODY, name, is_placed, NULL);
		return i == IR_NONE ? NULL : m->body[i];
	}
	for (cptx_kernel *k = m ? m->first : NULL; k; k = k->next) {
		if (k->is_func)
			continue;
		if (found)
			return NULL; /* no name was given, and there are several kernels */
		found = k;
	}
	return found;
}

const char *cptx_body_name(const cptx_kernel *k) { return k ? k->name : ""; }
bool cptx_body_is_func(const cptx_kernel *k) { return k && k->is_func; }

/* ---- items ---- */

cptx_item *cptx_item_first(const cptx_kernel *k) { return k ? k->first : NULL; }
cptx_item *cptx_item_last(const cptx_kernel *k) { return k ? k->last : NULL; }
cptx_item *cptx_item_next(const cptx_item *it) { return it && !(it->flags & ITEM_REMOVED) ? it->next : NULL; }
cptx_item *cptx_item_prev(const cptx_item *it) { return it && !(it->flags & ITEM_REMOVED) ? it->prev : NULL; }

cptx_item *cptx_item_find_op(const cptx_kernel *k, const cptx_item *it, enum cptx_op op)
{
	cptx_item *next = it ? cptx_item_next(it) : cptx_item_first(k);

	while (next && (next->kind != ITEM_INSN || arch_forms[next->form].op != op))
		next = next->next;
	return next;
}

cptx_item *cptx_item_find(const cptx_kernel *k, const cptx_item *it, const char *spelling)
{
	cptx_item *next = it ? cptx_item_next(it) : cptx_item_first(k);
	size_t n = spelling ? strlen(spelling) : 0;
	char text[ARCH_OPCODE];

	for (; n && next; next = next->next) {
		if (next->kind != ITEM_INSN)
			continue;
		*arch_put_opcode(text, next->form, ir_mods(next)) = 0;
		if (!strncmp(text, spelling, n) && (!text[n] || text[n] == '.'))
			return next;
	}
	return NULL;
}

static bool declares(const cptx_kernel *k, const ir_item *it, const cptx_val *v)
{
	bool label = ir_is_label(v);
	cptx_val of = none;

	if (it->noperand)
		of = ir_operand(k, it, 0);
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_REGS:
		return v->kind == CPTX_VAL_REG && ir_decl_of(k, v->id) - of.id < (uint32_t)of.offset &&
		       ir_decl_of(k, v->id) >= of.id;
	case ITEM_VAR: return v->kind == CPTX_VAL_SYM && v->id == of.id;
	case ITEM_LABEL:
	case ITEM_TARGETS:
	case ITEM_PROTO: return label && v->id == of.id;
	default: return false;
	}
}

cptx_item *cptx_item_declaring(const cptx_kernel *k, cptx_val v)
{
	cptx_item *it = k && ir_is_ours(k, &v) ? k->first : NULL;

	while (it && !declares(k, it, &v))
		it = it->next;
	return it;
}

/* The number of operands that users see: register declarations have none, prototypes only the label. */
static size_t operand_count(const ir_item *it)
{
	return it->kind == ITEM_INSN || it->kind == ITEM_TARGETS                          ? it->noperand
	       : it->kind == ITEM_LABEL || it->kind == ITEM_VAR || it->kind == ITEM_PROTO ? 1
	                                                                                  : 0;
}

static void look_at_insn(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info)
{
	info->op = (enum cptx_op)arch_forms[it->form].op;
	info->form = arch_forms[it->form].text;
	if (it->guard)
		info->guard = (cptx_val){ .kind = CPTX_VAL_REG,
			                      .type = CPTX_PRED,
			                      .negated = it->flags & ITEM_NEGATED,
			                      .count = 1,
			                      .owner = k->owner,
			                      .id = it->guard - 1 };
}

bool cptx_item_look_(const cptx_kernel *k, const cptx_item *it, cptx_item_info *out, size_t size)
{
	if (!k || !it || !out || it->owner != k->owner || it->flags & ITEM_REMOVED)
		return false;
	bool text = it->kind == ITEM_PRAGMA || it->kind == ITEM_COMMENT || it->kind == ITEM_TEXT;
	cptx_item_info x = { .kind = (enum cptx_item_kind)it->kind, .noperands = operand_count(it) }, *info = &x;
	info->text = text ? k->text[ir_operand(k, it, 0).i] : NULL;
	if (it->file)
		info->at = (cptx_site){ k->m->file[it->file - 1], it->line };
	if (it->kind == ITEM_INSN)
		look_at_insn(k, it, info);
	RESULT_FILL(out, size, info);
	return true;
}

cptx_val cptx_item_operand(const cptx_item *it, size_t i)
{
	return it && i < operand_count(it) ? ir_unpack(ir_words(it), (unsigned)i, it->owner) : none;
}

size_t cptx_item_slot(const cptx_item *it, const char *name)
{
	const arch_form *f = it && name && it->kind == ITEM_INSN ? &arch_forms[it->form] : NULL;

	for (unsigned i = 0; f && i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (!strcmp(o->slot ? arch_ops[f->op].slot[o->slot - 1] : "into", name))
			return i;
	}
	return SIZE_MAX;
}

enum cptx_mod cptx_item_modifier(const cptx_item *it, const char *group)
{
	if (!it || it->kind != ITEM_INSN || !group)
		return (enum cptx_mod)0;
	const arch_form *f = &arch_forms[it->form];
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && !strcmp(arch_ops[f->op].field[g->field], group))
			return (enum cptx_mod)ir_mods(it)[i];
	}
	return (enum cptx_mod)0;
}

/* Copies text as snprintf does: what fits, with a NUL; returns the whole length. */
static size_t copy_text(const char *from, size_t n, char *text, size_t size)
{
	if (text && size) {
		memcpy(text, from, MIN(n, size - 1));
		text[MIN(n, size - 1)] = 0;
	}
	return n;
}

size_t cptx_item_spelling(const cptx_item *it, char *text, size_t size)
{
	char opcode[ARCH_OPCODE];
	size_t n = it && it->kind == ITEM_INSN ? (size_t)(arch_put_opcode(opcode, it->form, ir_mods(it)) - opcode) : 0;

	return copy_text(opcode, n, text, size);
}

/* ---- values ---- */

cptx_val cptx_body_element(const cptx_kernel *k, cptx_val v, size_t i)
{
	static const cptx_val bad = { .kind = CPTX_VAL_BAD };

	if (!k || !ir_is_ours(k, &v) || i >= v.count)
		return bad;
	if (v.kind == CPTX_VAL_REG)
		return cptx_elem(v, (uint32_t)i);
	return v.kind == CPTX_VAL_VEC || v.kind == CPTX_VAL_LIST ? k->vec[v.id + i] : bad;
}

static bool has_number(const ir_decl *d, const char *digits)
{
	size_t n = strlen(digits);
	uint32_t number = 0;

	if (n > 9 || (*digits == '0' && n > 1))
		return false;
	while (*digits)
		number = number * 10 + (uint32_t)(*digits++ - '0');
	return number < d->count;
}

static bool is_vector(const cptx_kernel *k, uint32_t decl, const void *element)
{
	return k->decl[decl].form == DECL_VECTOR && *(const uint32_t *)element < k->decl[decl].count;
}

/* Finds the vector that "v.x" names: its declaration, and which element. */
static uint32_t vector_named(const cptx_kernel *k, const char *name, uint32_t *element)
{
	static const char elements[] = "xyzw";
	size_t n = strlen(name);
	const char *which = n > 2 && name[n - 2] == '.' ? strchr(elements, name[n - 1]) : NULL;

	if (!which)
		return IR_NONE;
	*element = (uint32_t)(which - elements);
	return ir_local_beginning(k, NAMED_REG, name, n - 2, is_vector, element);
}

static cptx_val register_named(const cptx_kernel *k, const char *name)
{
	uint32_t whole = ir_local_named(k, NAMED_REG, name, NULL, NULL), range = ir_range_named(k, name, has_number),
			 element = 0;
	uint32_t vector = vector_named(k, name, &element), decl = MIN(MIN(whole, range), vector);
	cptx_val v = { .kind = CPTX_VAL_REG, .count = 1, .owner = k->owner };

	if (decl == IR_NONE)
		return none;
	const ir_decl *d = &k->decl[decl];
	v.type = d->type;
	v.id = d->first + (decl == vector ? element : 0);
	if (decl == whole)
		v.count = (uint16_t)d->count;
	if (decl == range)
		v.id += (uint32_t)strtoul(name + strlen(d->name), NULL, 10);
	return v;
}

static bool is_declared(const cptx_kernel *k, uint32_t sym, const void *user)
{
	(void)user;
	return !k->sym[sym]->removed;
}

static bool stands(const cptx_kernel *k, uint32_t label, const void *user)
{
	(void)user;
	return !k->label[label].same_as && k->label[label].placed;
}

static bool is_function(const cptx_module *m, uint32_t i, const void *user)
{
	(void)user;
	return m->body[i]->is_func && !m->body[i]->removed;
}

cptx_val cptx_body_value(const cptx_kernel *k, const char *name)
{
	cptx_val v = k && name ? register_named(k, name) : none;

	if (!k || !name || v.kind)
		return v;
	uint32_t id =
		MIN(ir_local_named(k, NAMED_VAR, name, is_declared, NULL), ir_local_named(k, NAMED_ENDED, name, is_declared, NULL));
	if (id != IR_NONE)
		return ir_symbol_value(k->m, k, id);
	id = ir_local_named(k, NAMED_LABEL, name, stands, NULL);
	if (id != IR_NONE)
		return (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1, .owner = k->owner, .id = id };
	id = ir_global_named(k->m, NAMED_GLOBAL, name, ir_variable_is_there, NULL);
	if (id != IR_NONE)
		return ir_symbol_value(k->m, NULL, MODULE_SYM + id);
	id = ir_global_named(k->m, NAMED_BODY, name, is_function, NULL);
	return id == IR_NONE ? none : ir_func_value(k->m->body[id]);
}

size_t cptx_body_name_of(const cptx_kernel *k, cptx_val v, char *text, size_t size)
{
	const char *name = "";
	char made[64];

	if (!k || !ir_is_ours(k, &v))
		return copy_text("", 0, text, size);
	switch ((enum cptx_val_kind)v.kind) {
	case CPTX_VAL_REG: {
		const ir_decl *d = &k->decl[ir_decl_of(k, v.id)];
		size_t n = strlen(d->name);
		size_t more = d->form == DECL_RANGE                    ? (size_t)(text_u64(made, ir_number_of(k, v.id)) - made)
		              : d->form == DECL_VECTOR && v.count == 1 ? 2
		                                                       : 0;
		if (d->form == DECL_VECTOR)
			made[0] = '.', made[1] = "xyzw"[ir_number_of(k, v.id) & 3];
		copy_text(d->name, n, text, size);
		copy_text(made, more, size > n ? text + n : text, size > n ? size - n : 0);
		return n + more;
	}
	case CPTX_VAL_SYM: name = ir_symbol(k, v.id)->name; break;
	case CPTX_VAL_FUNC: name = v.id - 1 < k->m->nbody ? k->m->body[v.id - 1]->name : ""; break;
	case CPTX_VAL_SREG: name = v.id < arch_nsreg ? arch_sregs[v.id].text : ""; break;
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO:
		if (k->label[v.id].name) {
			name = k->label[v.id].name;
			break;
		}
		return copy_text(made, ir_label_name(k, made, v.id), text, size);
	default: break;
	}
	return copy_text(name, strlen(name), text, size);
}
