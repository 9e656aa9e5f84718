/* Looking into bodies: items, their operands, what names mean. */
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

cptx_kernel *cptx_module_body_at(const cptx_module *m, size_t i) { return m && i < m->nplaced ? m->placed[i] : NULL; }

cptx_kernel *cptx_module_body(const cptx_module *m, const char *name)
{
	cptx_kernel *found = NULL;

	for (cptx_kernel *k = m ? m->first : NULL; k; k = k->next) {
		if (name ? strcmp(k->name, name) != 0 : k->is_func)
			continue;
		if (found)
			return NULL; /* no name, several kernels */
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

/* What users see of an item's operands: declarations of registers have none, prototypes only the label. */
static size_t operand_count(const ir_item *it)
{
	return it->kind == ITEM_INSN || it->kind == ITEM_TARGETS                          ? it->noperand
	       : it->kind == ITEM_LABEL || it->kind == ITEM_VAR || it->kind == ITEM_PROTO ? 1
	                                                                                  : 0;
}

bool cptx_item_look(const cptx_kernel *k, const cptx_item *it, cptx_item_info *info)
{
	if (!k || !it || !info || it->owner != k->owner || it->flags & ITEM_REMOVED)
		return false;
	bool text = it->kind == ITEM_PRAGMA || it->kind == ITEM_COMMENT || it->kind == ITEM_TEXT;
	*info = (cptx_item_info){ .kind = (enum cptx_item_kind)it->kind, .noperands = operand_count(it) };
	info->text = text ? k->text[ir_operand(k, it, 0).i] : NULL;
	if (it->file)
		info->at = (cptx_site){ k->m->file[it->file - 1], it->line };
	if (it->kind != ITEM_INSN)
		return true;
	info->op = (enum cptx_op)arch_forms[it->form].op;
	info->form = arch_forms[it->form].text;
	if (it->guard)
		info->guard = (cptx_val){ .kind = CPTX_VAL_REG,
			                      .type = CPTX_PRED,
			                      .negated = it->flags & ITEM_NEGATED,
			                      .count = 1,
			                      .owner = k->owner,
			                      .id = it->guard - 1 };
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

/* As snprintf: what fits, with its NUL; the whole length. */
static size_t give(const char *from, size_t n, char *text, size_t size)
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

	return give(opcode, n, text, size);
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

static cptx_val register_named(const cptx_kernel *k, const char *name)
{
	static const char elements[] = "xyzw";

	for (size_t i = 0; i < k->ndecl; i++) {
		const ir_decl *d = &k->decl[i];
		size_t n = strlen(d->name);
		uint64_t number = 0;
		cptx_val v = { .kind = CPTX_VAL_REG, .count = 1, .owner = k->owner, .id = d->first };
		if (i < CLASS_COUNT || strncmp(name, d->name, n))
			continue;
		const char *rest = name + n;
		size_t digits = strspn(rest, "0123456789");
		if (d->form == DECL_RANGE) {
			if (!digits || digits > 9 || rest[digits] || (*rest == '0' && digits > 1))
				continue;
			for (size_t j = 0; j < digits; j++)
				number = number * 10 + (uint64_t)(rest[j] - '0');
			if (number >= d->count)
				continue;
			v.id += (uint32_t)number;
		} else if (d->form == DECL_VECTOR && *rest == '.' && rest[1] && !rest[2] && strchr(elements, rest[1]) &&
		           (size_t)(strchr(elements, rest[1]) - elements) < d->count) {
			v.id += (uint32_t)(strchr(elements, rest[1]) - elements);
		} else if (*rest) {
			continue;
		} else {
			v.count = (uint16_t)d->count;
		}
		v.type = d->type;
		return v;
	}
	return none;
}

cptx_val cptx_body_value(const cptx_kernel *k, const char *name)
{
	cptx_val v = k && name ? register_named(k, name) : none;

	if (!k || !name || v.kind)
		return v;
	for (size_t i = 0; i < k->nsym; i++)
		if (!k->sym[i]->removed && !strcmp(k->sym[i]->name, name))
			return ir_symbol_value(k->m, k, (uint32_t)i);
	for (size_t i = 0; i < k->nlabel; i++)
		if (k->label[i].name && !k->label[i].same_as && k->label[i].placed && !strcmp(k->label[i].name, name))
			return (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1, .owner = k->owner, .id = (uint32_t)i };
	for (size_t i = 0; i < k->m->nsym; i++)
		if (!k->m->sym[i]->removed && !strcmp(k->m->sym[i]->name, name))
			return ir_symbol_value(k->m, NULL, MODULE_SYM + (uint32_t)i);
	for (size_t i = 0; i < k->m->nbody; i++) {
		const cptx_kernel *f = k->m->body[i];
		if (f->is_func && !f->is_proto && !f->removed && !strcmp(f->name, name))
			return ir_func_value(f);
	}
	return none;
}

size_t cptx_body_name_of(const cptx_kernel *k, cptx_val v, char *text, size_t size)
{
	const char *name = "";
	char made[64];

	if (!k || !ir_is_ours(k, &v))
		return give("", 0, text, size);
	switch ((enum cptx_val_kind)v.kind) {
	case CPTX_VAL_REG: {
		const ir_decl *d = &k->decl[ir_decl_of(k, v.id)];
		size_t n = strlen(d->name);
		size_t more = d->form == DECL_RANGE                    ? (size_t)(text_u64(made, ir_number_of(k, v.id)) - made)
		              : d->form == DECL_VECTOR && v.count == 1 ? 2
		                                                       : 0;
		if (d->form == DECL_VECTOR)
			made[0] = '.', made[1] = "xyzw"[ir_number_of(k, v.id) & 3];
		give(d->name, n, text, size);
		give(made, more, size > n ? text + n : text, size > n ? size - n : 0);
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
		return give(made, ir_label_name(k, made, v.id), text, size);
	default: break;
	}
	return give(name, strlen(name), text, size);
}
