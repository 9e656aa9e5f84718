/* SPDX-License-Identifier: MIT */
/* Prints a kernel or function as a C function: its head, then one statement after another. */
#include "to_c/to_c.h"

#include <stdio.h>

/* ---- lines ---- */

static void tabs(buf *out, unsigned n)
{
	while (n--)
		buf_put(out, "\t", 1);
}

void flush_line(to_c_body *b)
{
	enum { WIDTH = 125, TAB = 4 };
	buf *out = &b->t->out;
	const char *s = b->line.p ? b->line.p : "", *end = s + b->line.n;
	unsigned indent = b->indent;

	while (s < end) {
		size_t room = indent * TAB < WIDTH - 60 ? WIDTH - indent * TAB : 60, n = (size_t)(end - s);
		bool quoted = false;
		if (n > room) {
			size_t cut = 0;
			for (size_t i = 0; i < n && (i < room || !cut); i++) {
				quoted ^= s[i] == '"' && (!i || s[i - 1] != '\\');
				if (s[i] == ',' && i + 1 < n && s[i + 1] == ' ' && !quoted)
					cut = i + 2;
			}
			n = cut ? cut : n;
		}
		tabs(out, indent);
		buf_put(out, s, s[n - 1] == ' ' ? n - 1 : n);
		buf_put(out, "\n", 1);
		s += n;
		indent = b->indent + 2;
	}
	b->line.n = 0;
}

/* Whether a comment is one that compilers write around inline assembly, calls and blocks; the C shows these anyway. */
static bool is_marker(const char *s)
{
	static const char *const markers[] = { "begin inline asm", "end inline asm", "demoted variable",
		                                   "callseq ",         "%bb.",           "%$L" };

	for (unsigned i = 0; i < ARRAY_LEN(markers); i++)
		if (!strncmp(s, markers[i], strlen(markers[i])))
			return true;
	return false;
}

static void comment(to_c_body *b, const ir_item *first)
{
	for (const ir_item *it = first; it && (it->kind == ITEM_COMMENT || it->kind == ITEM_REGS); it = it->next) {
		if (it->kind != ITEM_COMMENT)
			continue;
		const char *s = b->k->text[ir_operand(b->k, it, 0).i];
		if (is_marker(s))
			continue;
		put(b, *s ? "// " : "//");
		for (; *s; s++)
			buf_put(&b->line, *s == '\\' ? "/" : *s == '?' && s[1] == '?' ? " " : s, 1);
		size_t n = b->line.n;
		while (n && b->line.p[n - 1] == ' ')
			n--;
		tabs(&b->t->out, b->indent);
		buf_put(&b->t->out, b->line.p, n);
		buf_put(&b->t->out, "\n", 1);
		b->line.n = 0;
	}
}

/* ---- declarations ---- */

/* Writes the start value of a variable that nothing sets where it is declared. */
static void put_new(to_c_body *b, to_c_var *v)
{
	buf_printf(&b->line, "%s = ", v->name);
	if (v->kind == VAR_LABEL && v->kept) {
		put(b, "cptx_label_named(k, ");
		put_string(&b->line, v->kept, strlen(v->kept));
		put(b, ")");
	} else if (v->kind == VAR_LABEL) {
		put(b, "cptx_label(k)");
	} else if (v->kind == VAR_REG) {
		unsigned type = arch_types[v->type].bits == 8 ? CPTX_E2M1X2 : v->type; /* this type keeps a width of 8 bits */
		v->c_type = (uint8_t)type;
		put(b, v->count > 1 ? "cptx_regs(k, " : "cptx_reg(k, ");
		put_type(b, type);
		if (v->count > 1)
			buf_printf(&b->line, ", %u", (unsigned)v->count);
		put(b, ")");
	} else {
		put(b, "{ 0 }");
	}
	v->declared = true;
}

/* Declares the variables that must be declared in front of item i in this block, all but `but`. */
static void declare(to_c_body *b, uint32_t i, uint32_t but)
{
	bool any = false;

	for (uint32_t id = b->item[i].vars; id != IR_NONE; id = b->var[id].next) {
		to_c_var *v = &b->var[id];
		if (id == but || v->declared || v->block != b->now)
			continue;
		if (any && b->line.n > 90) {
			put(b, ";");
			flush_line(b);
			any = false;
		}
		put(b, any ? ", " : "cptx_val ");
		put_new(b, v);
		any = true;
	}
	if (any) {
		put(b, ";");
		flush_line(b);
	}
}

/* Writes "cptx_val name = " or "name = " in front of the call that makes a value; nothing if nobody uses it. */
static void begin_made(to_c_body *b, uint32_t var)
{
	if (var == IR_NONE || b->var[var].uses < 2)
		return;
	put(b, b->var[var].declared ? "" : "cptx_val ");
	put(b, b->var[var].name);
	put(b, " = ");
	b->var[var].declared = true;
}

/* Whether item i itself declares the variable. */
static bool made_here(const to_c_body *b, uint32_t var, uint32_t i)
{
	return var != IR_NONE && b->var[var].first == i && b->var[var].block == b->now && !b->var[var].declared &&
	       !b->var[var].given;
}

/* ---- instructions ---- */

static unsigned mentions(const to_c_body *b, const ir_item *it, uint32_t var)
{
	unsigned n = it->guard && b->reg_var[it->guard - 1] == var;

	for (unsigned i = 0; i < it->noperand; i++) {
		const cptx_val value = ir_operand(b->k, it, i), *v = &value;
		for (uint32_t e = 0; v->kind == CPTX_VAL_REG && e < v->count; e++)
			n += b->reg_var[v->id + e] == var && (!e || b->reg_var[v->id + e - 1] != var);
		for (uint32_t e = 0; (v->kind == CPTX_VAL_VEC || v->kind == CPTX_VAL_LIST) && e < v->count; e++)
			n += b->k->vec[v->id + e].kind == CPTX_VAL_REG && b->reg_var[b->k->vec[v->id + e].id] == var;
	}
	return n;
}

/* The variable whose registers are exactly the instruction's first result, and that it does not name again; or NONE. */
static uint32_t result_of(const to_c_body *b, const ir_item *it)
{
	const arch_operand *o = &arch_operands[arch_forms[it->form].operand];

	if (it->kind != ITEM_INSN || !it->noperand || !(o->flags & OPERAND_DEST) || o->slot)
		return IR_NONE;
	cptx_val v = ir_operand(b->k, it, 0);
	if (v.kind != CPTX_VAL_REG || v.space || v.offset)
		return IR_NONE;
	uint32_t var = b->reg_var[v.id];
	if (b->var[var].first_reg != v.id || b->var[var].count != v.count || mentions(b, it, var) != 1)
		return IR_NONE;
	return var;
}

static void put_wait(to_c_body *b, uint32_t i, uint32_t result)
{
	static const char *const shapes[] = { "LOOP", "UNIFORM", "DONE" };
	const ir_item *it = b->item[i].it;
	uint8_t type;

	bool alone = result != IR_NONE && b->var[result].uses == 1;
	declare(b, i, alone ? result : IR_NONE);
	buf_printf(&b->line, "cptx_mbarrier_wait(k, CPTX_WAIT_%s, ", shapes[b->item[i].wait]);
	if (!alone || !put_call(b, it, true, &type)) {
		b->line.n = 0; /* the test needs a register, so the line is written again */
		declare(b, i, IR_NONE);
		buf_printf(&b->line, "cptx_mbarrier_wait(k, CPTX_WAIT_%s, ", shapes[b->item[i].wait]);
		put_call(b, it, false, &type);
	}
	put(b, ");");
	flush_line(b);
}

static void put_insn(to_c_body *b, uint32_t i)
{
	const ir_item *it = b->item[i].it;
	uint32_t result = result_of(b, it);
	uint8_t type = 0;

	if (b->item[i].role == ROLE_WAIT) {
		put_wait(b, i, made_here(b, result, i) ? result : IR_NONE);
		return;
	}
	if (made_here(b, result, i)) {
		declare(b, i, result);
		begin_made(b, result);
		if (put_call(b, it, true, &type)) {
			b->var[result].c_type = type;
			put(b, ";");
			flush_line(b);
			return;
		}
		b->line.n = 0;
		b->var[result].declared = false;
	}
	declare(b, i, IR_NONE);
	put_call(b, it, false, &type);
	put(b, ";");
	flush_line(b);
}

static void put_predicate(to_c_body *b, const ir_item *it, bool negate)
{
	cptx_val p = { .kind = CPTX_VAL_REG, .type = CPTX_PRED, .count = 1 };
	p.id = it->guard - 1;
	p.negated = ((it->flags & ITEM_NEGATED) != 0) ^ negate;
	put_value(b, &p, 0);
}

static void put_leave(to_c_body *b, uint32_t i)
{
	const ir_item *it = b->item[i].it;

	put(b, b->item[i].role == ROLE_BREAK ? "cptx_break" : "cptx_continue");
	put(b, it->guard ? "_when(k, " : "(k");
	if (it->guard)
		put_predicate(b, it, false);
	put(b, ");");
	flush_line(b);
}

/* ---- lists, prototypes, variables ---- */

static void put_targets(to_c_body *b, const ir_item *it)
{
	cptx_val list = ir_operand(b->k, it, 1);

	begin_made(b, b->label_var[ir_operand(b->k, it, 0).id]);
	buf_printf(&b->line, "cptx_targets(k, %u, ((cptx_val[]){ ", list.count);
	for (unsigned i = 0; i < list.count; i++) {
		put(b, i ? ", " : "");
		put_value(b, &b->k->vec[list.id + i], 0);
	}
	put(b, " }));");
	flush_line(b);
}

static void put_arguments(to_c_body *b, const cptx_kernel *f, const ir_arg *list, size_t n, const char *how)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].sym == IR_NONE) {
			buf_printf(&b->line, "cptx_%s_reg(prototype, CPTX_%s, \"_\");", how, arch_mods[f->reg[list[i].reg].type].id);
		} else {
			buf_printf(&b->line, "cptx_%s_var(prototype, ", how);
			put_variable(&b->line, f->sym[list[i].sym], "_", CPTX_PARAM);
			put(b, ");");
		}
		flush_line(b);
	}
}

/* Whether cptx_prototype can make a signature: plain bits, at most one result. */
static bool is_plain(const cptx_kernel *f)
{
	if (f->nextra || f->attribute || f->nresult > 1 || f->opt.block[0] || f->opt.max_block[0] || f->opt.min_ctas ||
	    f->opt.max_regs)
		return false;
	for (size_t i = 0; i < f->nresult + f->narg; i++) {
		const ir_arg *a = i < f->nresult ? f->result + i : f->arg + (i - f->nresult);
		const ir_sym *s = a->sym == IR_NONE ? NULL : f->sym[a->sym];
		if (!s || s->ndim || s->vec || s->align_given || s->is_ptr || s->space != CPTX_PARAM ||
		    arch_types[s->type].cls != 'B' || arch_types[s->type].bits < 16 || arch_types[s->type].bits > 64)
			return false;
	}
	return true;
}

static void put_prototype(to_c_body *b, const ir_item *it)
{
	const cptx_kernel *f = b->k->m->body[ir_operand(b->k, it, 1).id - 1];
	uint32_t var = b->label_var[ir_operand(b->k, it, 0).id];

	if (is_plain(f)) {
		begin_made(b, var);
		buf_printf(&b->line, "cptx_prototype(k, CPTX_%s, %zu, ",
		           f->nresult ? arch_mods[f->sym[f->result[0].sym]->type].id : "TYPE_NONE", f->narg);
		put(b, f->narg ? "((enum cptx_type[]){ " : "NULL");
		for (size_t i = 0; i < f->narg; i++)
			buf_printf(&b->line, "%sCPTX_%s", i ? ", " : "", arch_mods[f->sym[f->arg[i].sym]->type].id);
		put(b, f->narg ? " }));" : ");");
		flush_line(b);
		return;
	}
	if (var != IR_NONE && b->var[var].uses > 1 && !b->var[var].declared) {
		buf_printf(&b->line, "cptx_val %s;", b->var[var].name);
		flush_line(b);
		b->var[var].declared = true;
	}
	put(b, "{");
	flush_line(b);
	b->indent++;
	put(b, "cptx_kernel *prototype = cptx_prototype_begin(k);");
	flush_line(b);
	put_arguments(b, f, f->result, f->nresult, "result");
	put_arguments(b, f, f->arg, f->narg, "param");
	for (size_t i = 0; i < f->nextra; i++) {
		put(b, "cptx_directive(prototype, ");
		put_string(&b->line, f->extra[i], strlen(f->extra[i]));
		put(b, ");");
		flush_line(b);
	}
	begin_made(b, var);
	put(b, "cptx_prototype_place(k, prototype);");
	flush_line(b);
	b->indent--;
	put(b, "}");
	flush_line(b);
}

static void put_local(to_c_body *b, const ir_item *it)
{
	uint32_t id = ir_operand(b->k, it, 0).id;

	begin_made(b, b->sym_var[id]);
	put(b, "cptx_local(k, ");
	put_variable(&b->line, b->k->sym[id], b->sym_name[id], CPTX_LOCAL);
	put(b, ");");
	flush_line(b);
}

void put_text(to_c_body *b, const char *call, const char *text)
{
	buf_printf(&b->line, "%s(k, ", call);
	put_string(&b->line, text, strlen(text));
	put(b, ");");
	flush_line(b);
}

/* Prints .pragma "x"; as a call of cptx_pragma, and other directives as text. */
static void put_directive(to_c_body *b, const char *text)
{
	size_t n = strlen(text);

	if (n < 13 || strncmp(text, ".pragma \"", 9) || strcmp(text + n - 2, "\";") || text_find(text + 9, '"', n - 11)) {
		put_text(b, "cptx_text", text);
		return;
	}
	put(b, "cptx_pragma(k, ");
	put_string(&b->line, text + 9, n - 11);
	put(b, ");");
	flush_line(b);
}

static void put_item(to_c_body *b, uint32_t i)
{
	const ir_item *it = b->item[i].it;
	cptx_val v = it->noperand ? ir_operand(b->k, it, 0) : (cptx_val){ 0 };
	uint32_t made = it->kind == ITEM_VAR                                 ? b->sym_var[v.id]
	                : it->kind == ITEM_TARGETS || it->kind == ITEM_PROTO ? b->label_var[v.id]
	                                                                     : IR_NONE;

	if (it->kind != ITEM_INSN)
		declare(b, i, made_here(b, made, i) ? made : IR_NONE);
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_INSN: put_insn(b, i); break;
	case ITEM_LABEL:
		buf_printf(&b->line, "cptx_place(k, %s);", b->var[b->label_var[v.id]].name);
		flush_line(b);
		break;
	case ITEM_VAR: put_local(b, it); break;
	case ITEM_PRAGMA: put_text(b, "cptx_pragma", b->k->text[v.i]); break;
	case ITEM_TEXT: put_directive(b, b->k->text[v.i]); break;
	case ITEM_TARGETS: put_targets(b, it); break;
	case ITEM_PROTO: put_prototype(b, it); break;
	case ITEM_SCOPE:
	case ITEM_END:
	case ITEM_REGS:
	case ITEM_COMMENT: break;
	}
}

/* ---- blocks ---- */

/* Prints the head of a loop whose condition is item i. */
static void put_while(to_c_body *b, uint32_t i)
{
	const ir_item *it = b->item[i].it;
	bool negate = !(b->item[i + 1].it->flags & ITEM_NEGATED);
	const char *head = negate ? "CPTX_WHILE (k, cptx_negated(" : "CPTX_WHILE (k, ";
	uint32_t p = b->reg_var[ir_operand(b->k, it, 0).id];
	uint8_t type;

	declare(b, i, p);
	put(b, head);
	if (!put_call(b, it, true, &type)) {
		b->line.n = 0;
		declare(b, i, IR_NONE);
		put(b, head);
		put_call(b, it, false, &type);
	}
	put(b, negate ? ")) {" : ") {");
}

/* Prints the head of a counting loop, up to and with its first label; false if CPTX_FOR cannot make it. */
static bool begin_for(to_c_body *b, uint32_t i)
{
	uint32_t p = b->reg_var[ir_operand(b->k, b->item[i].it, 0).id];

	declare(b, i, p);
	declare(b, i + 1, IR_NONE);
	if (!put_for(b, i))
		return false;
	b->var[p].declared = true;
	flush_line(b);
	b->indent++;
	return true;
}

static void open_block(to_c_body *b, uint32_t id)
{
	static const char *const heads[] = { "", "CPTX_SCOPE (k) {", "", "CPTX_ELSE (k) {", "CPTX_DO (k) {" };
	const to_c_block *block = &b->block[id];

	if (block->kind == TO_C_FOR) { /* the head of the loop is printed already; the if around it prints nothing */
		b->now = id;
		return;
	}
	if (block->kind == TO_C_WHILE) {
		put_while(b, b->item[block->start].loop);
	} else if (block->kind == TO_C_IF) {
		put(b, "CPTX_IF (k, ");
		put_predicate(b, b->item[block->start].it, true);
		put(b, ") {");
	} else {
		put(b, heads[block->kind]);
	}
	flush_line(b);
	b->indent++;
	b->now = id;
}

static void close_blocks(to_c_body *b, uint32_t i)
{
	while (b->now && b->block[b->now].end <= i) {
		uint32_t outer = b->block[b->now].outer;
		if (b->block[b->now].kind == TO_C_FOR && b->block[outer].kind == TO_C_FOR &&
		    b->block[outer].end == b->block[b->now].end && b->block[outer].start + 1 == b->block[b->now].start)
			b->now = outer; /* one brace closes both */
		b->indent--;
		put(b, "}");
		flush_line(b);
		b->now = b->block[b->now].outer;
	}
}

static void put_items(to_c_body *b)
{
	uint32_t next = 1;

	for (uint32_t i = 0; i < b->nitem && !b->t->failed; i++) {
		const to_c_item *t = &b->item[i];
		close_blocks(b, i);
		comment(b, t->comment);
		for (; next < b->nblock && b->block[next].start == i; next++) {
			declare(b, i, IR_NONE);
			open_block(b, next);
		}
		if (t->role == ROLE_FOR && begin_for(b, i))
			continue;
		if (t->role == ROLE_BREAK || t->role == ROLE_CONTINUE) {
			declare(b, i, IR_NONE);
			put_leave(b, i);
		} else if (t->role == ROLE_PLAIN || t->role == ROLE_WAIT || t->role == ROLE_FOR) {
			put_item(b, i);
		}
	}
	close_blocks(b, b->nitem);
	comment(b, b->item[b->nitem].comment);
}

/* ---- the body ---- */

bool body_begin(to_c *t, to_c_body *b, const cptx_kernel *k)
{
	*b = (to_c_body){ .t = t, .k = k, .indent = 1 };
	buf_init(&b->line, t->out.hook);
	arch_memo_begin(&b->memo, t->out.hook);
	if (!names_new(t, &b->names) || !names_new(t, &b->ptx_names))
		return false;
	b->ptx_names.outer = &t->ptx_names;
	return vars_signature(b);
}

void body_end(to_c_body *b)
{
	arch_memo_end(&b->memo);
	b->t->failed |= b->line.failed;
	buf_free(&b->line);
}

void put_body(to_c *t, const cptx_kernel *k)
{
	to_c_body b;

	if (body_begin(t, &b, k) && flow_items(&b) && flow_blocks(&b) && vars_find(&b)) {
		put_signature(&b, false);
		put_found(&b);
		put_items(&b);
		put(&b, "return k;");
		flush_line(&b);
	}
	for (size_t i = 0; i < b.nfound; i++)
		t->found_var[b.found[i]] = IR_NONE;
	body_end(&b);
}
