/* SPDX-License-Identifier: MIT */
/* Prints heads of kernels and functions: launch bounds, linkage, parameters. */
#include "to_c/to_c.h"

#include <stdio.h>

static void put_dims(to_c_body *b, const char *name, const uint32_t d[3])
{
	if (!d[0])
		return;
	buf_printf(&b->line, ", .%s = { %u", name, (unsigned)d[0]);
	for (int i = 1; i < 3 && (d[1] > 1 || d[2] > 1); i++)
		buf_printf(&b->line, ", %u", (unsigned)d[i]);
	put(b, " }");
}

/* Prints bounds as the options of cptx_kernel_begin. */
static void put_bounds(to_c_body *b)
{
	const cptx_kernel_opt *o = &b->k->opt;

	put_dims(b, "block", o->block);
	if (!o->block[0])
		put_dims(b, "max_block", o->max_block);
	if (o->min_ctas && (o->block[0] || o->max_block[0]))
		buf_printf(&b->line, ", .min_ctas = %u", (unsigned)o->min_ctas);
	if (o->max_regs)
		buf_printf(&b->line, ", .max_regs = %u", (unsigned)o->max_regs);
	put_dims(b, "cluster", o->cluster);
	if (o->max_cluster_rank && !o->cluster[0])
		buf_printf(&b->line, ", .max_cluster_rank = %u", (unsigned)o->max_cluster_rank);
}

static void put_head_text(to_c_body *b, const char *text) { put_text(b, "cptx_directive", text); }

/* Prints bounds that cptx_kernel_begin refuses, such as both of .reqntid and .maxntid, as text. */
static void put_other_bounds(to_c_body *b)
{
	const cptx_kernel_opt *o = &b->k->opt;
	bool func = b->k->is_func;
	char text[64];

	if (o->block[0] && func) {
		snprintf(text, sizeof text, ".reqntid %u, %u, %u", (unsigned)o->block[0], (unsigned)o->block[1],
		         (unsigned)o->block[2]);
		put_head_text(b, text);
	}
	if (o->max_block[0] && (func || o->block[0])) {
		snprintf(text, sizeof text, ".maxntid %u, %u, %u", (unsigned)o->max_block[0], (unsigned)o->max_block[1],
		         (unsigned)o->max_block[2]);
		put_head_text(b, text);
	}
	if (o->min_ctas && (func || (!o->block[0] && !o->max_block[0]))) {
		snprintf(text, sizeof text, ".minnctapersm %u", (unsigned)o->min_ctas);
		put_head_text(b, text);
	}
	if (o->max_regs && func) {
		snprintf(text, sizeof text, ".maxnreg %u", (unsigned)o->max_regs);
		put_head_text(b, text);
	}
	if (o->max_cluster_rank && (func || o->cluster[0])) {
		snprintf(text, sizeof text, ".maxclusterrank %u", (unsigned)o->max_cluster_rank);
		put_head_text(b, text);
	}
	for (size_t i = 0; i < b->k->nextra; i++)
		put_head_text(b, b->k->extra[i]);
}

static void put_linkage(to_c_body *b)
{
	unsigned usual = b->k->is_func ? LINK_NONE : LINK_VISIBLE;

	if (b->k->linkage == usual)
		return;
	buf_printf(&b->line, "cptx_set_linkage(k, CPTX_LINK_%s);", linkage_name(b->k->linkage));
	flush_line(b);
}

/* Prints one parameter or result; `at`: it was declared with the function, as number i. */
static void put_argument_of(to_c_body *b, const ir_arg *a, const char *how, size_t i, bool at, bool named)
{
	const ir_sym *s = a->sym == IR_NONE ? NULL : b->k->sym[a->sym];
	uint32_t var = !named ? IR_NONE : s ? b->sym_var[a->sym] : b->reg_var[a->reg];
	bool used = var != IR_NONE && b->var[var].uses && b->var[var].name;

	if (at && !used)
		return;
	if (used) {
		buf_printf(&b->line, "cptx_val %s = ", b->var[var].name);
		b->var[var].declared = true;
	}
	if (at) {
		buf_printf(&b->line, "cptx_%s_at(k, %zu);", how, i);
	} else if (s) {
		buf_printf(&b->line, "cptx_%s_var(k, ", how);
		put_variable(&b->line, s, b->sym_name[a->sym], CPTX_PARAM);
		put(b, ");");
	} else {
		const char *name = names_make(b->t, &b->ptx_names, b->k->decl[ir_decl_of(b->k, a->reg)].name, false, NULL, IR_NONE);
		buf_printf(&b->line, "cptx_%s_reg(k, CPTX_%s, \"%s\");", how, arch_mods[b->k->reg[a->reg].type].id, name);
	}
	flush_line(b);
}

/* Whether a function has nothing but a name. */
static bool is_bare(const to_c_body *b)
{
	const cptx_kernel_opt *o = &b->k->opt;
	return !b->k->linkage && !b->k->nextra && !b->k->nresult && !b->k->narg && !o->block[0] && !o->max_block[0] &&
	       !o->min_ctas && !o->max_regs && !o->max_cluster_rank && !o->cluster[0];
}

/*
 * The item that loads parameter i, if it is one of the first instructions, which load the parameters in their order:
 * cptx_param then declares and loads it.  Else NITEM.
 */
static uint32_t load_of(const to_c_body *b, size_t i)
{
	const ir_arg *a = &b->k->arg[i];
	const ir_sym *s = a->sym == IR_NONE ? NULL : b->k->sym[a->sym];
	uint32_t n = 0;

	while (n < b->nitem && (b->item[n].it->kind == ITEM_VAR || b->item[n].role == ROLE_GONE))
		n++;
	if (!s || n == b->nitem || s->space != CPTX_PARAM || s->ndim || s->vec || s->align_given || s->is_ptr || s->attribute ||
	    arch_types[s->type].bits < 16 || arch_types[s->type].bits > 64 || arch_types[s->type].cls == 'X' ||
	    (arch_types[s->type].cls == 'F' && arch_types[s->type].bits == 16))
		return b->nitem;
	const ir_item *it = b->item[n].it;
	cptx_val v[ARCH_OPERANDS] = { 0 };
	ir_operands(b->k, it, v);
	if (it->kind != ITEM_INSN || arch_forms[it->form].op != CPTX_OP_LD || it->guard || v[0].kind != CPTX_VAL_REG ||
	    v[0].count != 1 || v[1].kind != CPTX_VAL_SYM || v[1].id != a->sym || v[1].offset ||
	    b->var[b->sym_var[a->sym]].uses != 1)
		return b->nitem;
	const to_c_var *var = &b->var[b->reg_var[v[0].id]];
	bool typed = false;
	for (unsigned g = 0; g < it->nmod; g++) {
		unsigned mod = ir_mods(it)[g];
		if (mod && mod != s->type && mod != CPTX_PARAM)
			return b->nitem;
		typed |= mod == s->type;
	}
	return typed && var->first == n && !var->block && var->count == 1 && !var->given &&
	               arch_types[var->type].bits == arch_types[s->type].bits
	           ? n
	           : b->nitem;
}

static bool put_loaded(to_c_body *b, size_t i)
{
	uint32_t n = load_of(b, i);

	if (n == b->nitem)
		return false;
	to_c_var *v = &b->var[b->reg_var[ir_operand(b->k, b->item[n].it, 0).id]];
	const ir_sym *s = b->k->sym[b->k->arg[i].sym];
	if (v->uses > 1)
		buf_printf(&b->line, "cptx_val %s = ", v->name);
	buf_printf(&b->line, "cptx_param(k, CPTX_%s, \"%s\");", arch_mods[s->type].id, b->sym_name[b->k->arg[i].sym]);
	flush_line(b);
	v->declared = v->given = true;
	v->c_type = s->type;
	b->item[n].role = ROLE_GONE;
	return true;
}

void put_signature(to_c_body *b, bool declare_only)
{
	const cptx_kernel *k = b->k;
	bool at = !declare_only && b->t->by_name[k->number - 1];

	if (!k->is_func)
		put(b, "cptx_kernel *k = cptx_kernel_begin(m, ");
	else if (declare_only)
		put(b, is_bare(b) ? "cptx_func_declare(m, " : "cptx_kernel *k = cptx_func_declare(m, ");
	else if (at)
		put(b, "cptx_kernel *k = cptx_func_define(m, ");
	else
		put(b, "cptx_kernel *k = cptx_func_begin(m, ");
	put_string(&b->line, k->name, strlen(k->name));
	if (!k->is_func)
		put_bounds(b);
	else if (!declare_only && !at)
		put(b, ", CPTX_TYPE_NONE");
	put(b, ");");
	flush_line(b);
	if (!at) {
		put_linkage(b);
		put_other_bounds(b);
	}
	for (size_t i = 0; i < k->nresult; i++)
		put_argument_of(b, &k->result[i], "result", i, at, !declare_only);
	size_t i = 0;
	while (!k->is_func && i < k->narg && put_loaded(b, i))
		i++;
	for (; i < k->narg; i++)
		put_argument_of(b, &k->arg[i], "param", i, at, !declare_only);
}

/* Prints the look-ups of the module's variables and functions that the body uses. */
void put_found(to_c_body *b)
{
	const cptx_module *m = b->t->m;

	for (size_t n = 0; n < b->nfound; n++) {
		uint32_t i = b->found[n], var = b->t->found_var[i];
		if (i < m->nsym && m->dyn_sym && m->dyn_sym - MODULE_SYM == i)
			buf_printf(&b->line, "cptx_val %s = cptx_shared_dyn(k, %u, %u, \"smem\");", b->var[var].name,
			           (unsigned)b->k->dyn_smem, (unsigned)m->sym[i]->align);
		else
			buf_printf(&b->line, "cptx_val %s = cptx_find(m, \"%s\");", b->var[var].name,
			           i < m->nsym ? b->t->global[i] : m->body[i - m->nsym]->name);
		flush_line(b);
	}
}
