/* SPDX-License-Identifier: MIT */
/* The pages of `cptx insn` and docs/instructions.md: what the rows of an instruction say, in words, and an example. */
#include "gen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 2048 };

static void add(char text[TEXT], const char *format, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, format);
	if (vsnprintf(text + n, TEXT - n, format, ap) >= (int)(TEXT - n))
		die(NULL, "a page has a line of more than %d characters", TEXT);
	va_end(ap);
}

/* ---- availability in words ---- */

/* "PTX 7.8, sm_90" of `from`, up to `;`: "from PTX 7.8 on sm_90 and later". */
static void part_words(char text[TEXT], const char *from)
{
	int major = 0, minor = 0, number, n, targets = 0;

	sscanf(from, "PTX %d.%d", &major, &minor);
	if (major)
		add(text, "PTX %d.%d", major, minor);
	for (const char *p = strstr(from, "sm_"); p && p < from + strcspn(from, ";"); p = strstr(p + 1, "sm_")) {
		if (sscanf(p, "sm_%d%n", &number, &n) != 1)
			continue;
		add(text, "%s", targets++ ? ", " : major ? " on " : "on ");
		if (p[n] == 'a')
			add(text, "sm_%da only", number);
		else if (p[n] == 'f')
			add(text, "sm_%df and later of its family", number);
		else
			add(text, "sm_%d and later", number);
	}
}

static void avail_words(char text[TEXT], const char *avail)
{
	for (const char *p = avail; *p;) {
		bool removed = !strncmp(p, "removed ", 8);
		add(text, "%s", p == avail ? "" : removed ? "; removed in " : ", or ");
		part_words(text, p + (removed ? 8 : 0));
		p += strcspn(p, ";");
		p += strspn(p, "; ");
	}
}

/* ---- operands in words ---- */

static void type_words(char text[TEXT], const struct operand *o)
{
	bool fixed = find_type(o->type) >= 0;

	if (o->twice)
		add(text, " of twice the width of .%s", o->type);
	else
		add(text, fixed ? " of .%s" : " of the type of .%s", o->type);
	if (o->wider)
		add(text, ", or wider");
	if (!strcmp(o->held, "int") || !strcmp(o->held, "bits") || !strcmp(o->held, "type"))
		add(text, !strcmp(o->held, "int") ? " (in text no .f)" : " (in text declared .b)");
	else if (!strcmp(o->held, "half"))
		add(text, " (in text declared .b or .f16x2)");
}

static void register_words(char text[TEXT], const struct form *f, const struct operand *o)
{
	bool constant = !o->dest && !o->reg_only && strcmp(o->type, "pred") != 0;
	int group = o->count[0] && !atoi(o->count) ? has_group(f, o->count) : -1;

	if (atoi(o->count) > 0)
		add(text, "%d register%s", atoi(o->count), atoi(o->count) == 1 ? "" : "s");
	else if (group < 0)
		add(text, constant ? "register or constant" : "register");
	else if (o->times > 1)
		add(text, "registers, %d times as many as .%s says,", o->times, o->count);
	else if (o->over > 1)
		add(text, "registers, one for %d of what .%s says,", o->over, o->count);
	else
		add(text, "as many registers as .%s says,", o->count);
	type_words(text, o);
	add(text, "%s%s%s%s",
	    o->symbol    ? ", a special register, or a variable's address"
	    : o->special ? ", or a special register"
	                 : "",
	    o->sink ? "; the sink _ where nobody reads it" : "", o->negatable ? "; may be negated with !" : "",
	    o->minus ? "; may be negated with -" : "");
	if (o->select[0])
		add(text, "; %s", o->select[0] == 'm' ? "a mask may choose parts of it" : "a selector may choose a part of it");
}

static void address_words(char text[TEXT], const struct form *f, const struct operand *o)
{
	size_t n = strlen(o->type);

	if (!strcmp(o->type, "tmem"))
		add(text, "address in tensor memory, a 32-bit register");
	else if (!strcmp(o->type, "endpoint"))
		add(text, "number of a logical endpoint, a 32-bit register");
	else if (n > 3 && !strcmp(o->type + n - 3, "ref"))
		add(text, "variable of .%s, or a 64-bit register with its handle", o->type);
	else if (n)
		add(text, "address in .%s memory", o->type);
	else
		add(text, has_group(f, "space") >= 0 ? "address in the space of .space, generic without" : "generic address");
}

static void operand_words(char text[TEXT], const struct form *f, const struct operand *o)
{
	switch (o->kind) {
	case KIND_REG: register_words(text, f, o); break;
	case KIND_ADDR: address_words(text, f, o); break;
	case KIND_LABEL: add(text, "label"); break;
	case KIND_SINK: add(text, "always the sink"); break;
	case KIND_FUNC: add(text, "device function"); break;
	case KIND_LIST: add(text, "list of registers, constants and parameters (cptx_list)"); break;
	case KIND_TARGETS: add(text, "list of labels (cptx_targets)"); break;
	case KIND_PROTO: add(text, "prototype (cptx_prototype)"); break;
	case KIND_IMM:
		add(text, "constant");
		for (int v = 0, n = 0; o->set && v < 64; v++)
			if (o->set >> v & 1)
				add(text, "%s%d", n++ ? ", " : " ", v);
		if (!o->set && o->lo != INT32_MIN)
			add(text, " from %d to %d", o->lo, o->hi);
		break;
	}
	if (o->given[0])
		add(text, "; there with .%s only", o->given);
	else if (o->optional)
		add(text, "; may be left out");
}

/* What the forms of an instruction say about one operand, each thing once. */
static void slot_words(char text[TEXT], const struct op *op, const char *name)
{
	for (int i = 0; i < op->nform; i++) {
		const struct form *f = &forms[op->form + i];
		for (int k = 0; k < f->noperand; k++) {
			char one[TEXT] = "";
			if (strcmp(f->operand[k].name, name))
				continue;
			operand_words(one, f, &f->operand[k]);
			if (!strstr(text, one) && strlen(text) + strlen(one) + 8 < TEXT)
				add(text, "%s%s", *text ? ". Or: " : "", one);
		}
	}
}

/* ---- the pieces of a page: each gives lines through `line` ---- */

/* Where lines go: a C string, or Markdown. */
typedef void line_fn(FILE *out, const char *text);

static bool is_positional(const struct op *op, const char *slot)
{
	for (int i = 0; i < op->npos; i++)
		if (!strcmp(op->pos[i], slot))
			return true;
	return false;
}

static void synopsis(char text[TEXT], const struct op *op)
{
	if (op->has_dest)
		add(text, "cptx_val %s = ", forms[op->form].operand[0].name);
	add(text, "cptx_%s(k", op->row->name);
	for (int i = 0; i < op->npos; i++)
		add(text, ", %s", op->pos[i]);
	for (int i = 0; i < op->nslot; i++)
		if (!is_positional(op, op->slot[i]))
			add(text, ", .%s =", op->slot[i]);
	for (int i = 0; i < op->nfield; i++)
		add(text, ", .%s =", op->field[i]);
	add(text, ")");
}

static void write_operands(FILE *out, const struct op *op, line_fn *line)
{
	for (int i = -1; i < op->nslot; i++) {
		char text[TEXT] = "", words[TEXT] = "";
		const char *name = i < 0 ? forms[op->form].operand[0].name : op->slot[i];
		if (i < 0 && !op->has_dest)
			continue;
		slot_words(words, op, name);
		add(text, "%-8s %s%s", name,
		    i < 0 ? (forms[op->form].operand[0].read ? ".into, read too: " : "result, or .into: ") : "", words);
		line(out, text);
	}
}

static bool has_one_value(const struct op *op, const struct group *g);
static const char *meaning(int mod) { return mod >= first_mod() ? mods[mod - first_mod()].about : ""; }

/* The targets, a bit for each in the order of target.def, where some form has the value. */
static unsigned long long value_targets(const struct op *op, const char *field, int mod)
{
	unsigned long long on = 0;

	for (int i = 0; i < op->nform; i++) {
		const struct form *f = &forms[op->form + i];
		int at = has_group(f, field);
		for (int k = 0; at >= 0 && k < f->group[at].ntok; k++) {
			int avail = f->group[at].avail[k];
			if (f->group[at].mod[k] != mod)
				continue;
			for (int t = 0; t < ntargets; t++)
				if (avail_on(avails[f->avail], t) && (!avail || avail_on(avails[avail], t)))
					on |= 1ull << t;
		}
	}
	return on;
}

/* The values of one field over all forms, as C names them. */
static void write_field(FILE *out, const struct op *op, const char *field)
{
	int seen[256], n = 0;

	for (int i = 0; i < op->nform; i++) {
		const struct form *f = &forms[op->form + i];
		int at = has_group(f, field);
		for (int k = 0; at >= 0 && k < f->group[at].ntok; k++) {
			int mod = f->group[at].mod[k], known = 0;
			for (int s = 0; s < n; s++)
				known |= seen[s] == mod;
			if (known || n == 256)
				continue;
			seen[n++] = mod;
			fprintf(out, "{ \"%s\", \"CPTX_%s\", \"%s\", \"%s\", %d, %#llxull },\n", field,
			        mod < first_mod() ? types[mod - FIRST_TYPE].name : mods[mod - first_mod()].name, f->group[at].tok[k],
			        meaning(mod), has_one_value(op, &f->group[at]), value_targets(op, field, mod));
		}
	}
}

static void form_words(char text[TEXT], const struct form *f)
{
	const char *rule = NULL;

	avail_words(text, f->row->avail);
	for (int i = 1; i < nconstraints; i++)
		if (!strcmp(constraints[i].name, f->row->constraint))
			rule = constraints[i].text;
	if (rule)
		add(text, ". Rule: %s", rule);
}

static void write_notes(FILE *out, const struct op *op, line_fn *line)
{
	for (const struct row *r = op->row + 1; r < rows + nrows && r->kind != ROW_OP; r++)
		if (r->kind == ROW_NOTE)
			line(out, r->text);
}

/* ---- an example: the first form, the first value of what it needs ---- */

struct example {
	const struct form *form;
	int pick[MAX_GROUPS + 8];     /* value of each group, -1: left out */
	char ptx[TEXT], decl[TEXT];   /* the instruction with the operands' names, and what declares them */
	char call[TEXT], setup[TEXT]; /* the same in C */
	char opcode[TEXT];
};

static int picked_mod(const struct example *e, int group)
{
	const struct group *g = &e->form->group[group];
	return g->kind == 2 ? picked_mod(e, g->same) : e->pick[group] < 0 ? 0 : g->mod[e->pick[group]];
}

static const char *picked_text(const struct example *e, int group)
{
	const struct group *g = &e->form->group[group];
	return g->kind == 2 ? picked_text(e, g->same) : e->pick[group] < 0 ? NULL : g->tok[e->pick[group]];
}

static void pick_values(struct example *e)
{
	for (int i = 0; i < e->form->ngroup; i++) {
		const struct group *g = &e->form->group[i];
		e->pick[i] = g->kind == 1 ? -1 : 0;
		for (int k = 0; g->kind == 0 && k < g->ntok; k++)
			if (!g->avail[k]) {
				e->pick[i] = k;
				break;
			}
	}
}

static int count_of(const struct example *e, const struct operand *o)
{
	int fixed = atoi(o->count), group = o->count[0] && !fixed ? has_group(e->form, o->count) : -1;
	if (group < 0)
		return fixed ? fixed : 1;
	return (picked_text(e, group) ? mod_count(picked_text(e, group)) : 1) * o->times / o->over;
}

static int type_of(const struct example *e, const struct operand *o)
{
	static const char *const wide[][2] = { { "u16", "u32" }, { "s16", "s32" }, { "u32", "u64" }, { "s32", "s64" } };
	int t = find_type(o->type);

	if (t < 0)
		t = picked_mod(e, has_group(e->form, o->type)) - FIRST_TYPE;
	for (int i = 0; o->twice && i < 4; i++)
		if (!strcmp(types[t].text, wide[i][0]))
			return find_type(wide[i][1]);
	return t;
}

/* The register file of a type, as PTX declares it. */
static const char *file_of(int type)
{
	switch (types[type].bits) {
	case 1: return "pred";
	case 8: return strcmp(types[type].text, "e2m1x2") ? "b16" : "b8";
	case 16: return "b16";
	case 32: return "b32";
	case 64: return "b64";
	default: return "b128";
	}
}

static void example_register(struct example *e, const struct operand *o, bool made)
{
	int n = count_of(e, o), type = type_of(e, o);
	bool vector = n > 1 || (o->count[0] && (atoi(o->count) || e->form->group[has_group(e->form, o->count)].kind != 1));

	add(e->decl, ".reg .%s ", file_of(type));
	add(e->ptx, "%s", vector ? "{" : "");
	for (int i = 0; i < n; i++) {
		char name[TOK + 16];
		snprintf(name, sizeof name, vector ? "%s%d" : "%s", o->name, i);
		add(e->decl, "%s%s", i ? ", " : "", name);
		add(e->ptx, "%s%s", i ? ", " : "", name);
	}
	add(e->decl, "; ");
	add(e->ptx, "%s", vector ? "}" : "");
	if (made)
		return;
	if (n > 1)
		add(e->setup, "cptx_val %s = cptx_regs(k, CPTX_%s, %d);\n", o->name, types[type].name, n);
	else
		add(e->setup, "cptx_val %s = cptx_reg(k, CPTX_%s);\n", o->name, types[type].name);
}

/* An operand's text in PTX; what declares it there and in C. */
static void example_operand(struct example *e, const struct operand *o, bool made)
{
	const char *name = o->name;
	bool narrow;

	switch (o->kind) {
	case KIND_REG: example_register(e, o, made); return;
	case KIND_ADDR:
		add(e->ptx, "%s%s", o->inside ? "" : "[", name);
		narrow = !strcmp(o->type, "tmem") || !strcmp(o->type, "endpoint");
		add(e->decl, ".reg .%s %s; ", narrow ? "b32" : "b64", name);
		add(e->setup, "cptx_val %s = cptx_reg(k, CPTX_%s);\n", name, narrow ? "U32" : "U64");
		return;
	case KIND_IMM: add(e->ptx, o->lo == -1 && o->hi == -1 ? "0x%x" : "%d", o->lo == INT32_MIN ? 0 : o->lo); return;
	case KIND_LABEL:
		add(e->decl, "%s: ", name);
		add(e->setup, "cptx_val %s = cptx_label(k);\ncptx_place(k, %s);\n", name, name);
		break;
	case KIND_TARGETS:
		add(e->decl, "l: %s: .branchtargets l; ", name);
		add(e->setup, "cptx_val l = cptx_label(k);\ncptx_place(k, l);\ncptx_val %s = cptx_targets(k, 1, &l);\n", name);
		break;
	case KIND_PROTO:
		add(e->decl, "%s: .callprototype _ (); ", name);
		add(e->setup, "cptx_val %s = cptx_prototype(k, CPTX_TYPE_NONE, 0, NULL);\n", name);
		break;
	case KIND_SINK: add(e->ptx, "_"); return;
	case KIND_FUNC: /* the tests have one of that name */
		add(e->ptx, "function");
		add(e->setup, "cptx_val %s = cptx_func_val(function);\n", name);
		return;
	case KIND_LIST:
		add(e->decl, ".reg .b32 %s; ", name);
		add(e->ptx, "(%s)", name);
		add(e->setup, "cptx_val %s_ = cptx_reg(k, CPTX_B32), %s = cptx_list(k, 1, &%s_);\n", name, name, name);
		return;
	}
	add(e->ptx, "%s", name);
}

static bool is_there(const struct example *e, const struct operand *o)
{
	if (o->given[0])
		return e->pick[has_group(e->form, o->given)] >= 0;
	return !o->optional;
}

/* Whether all forms that have the modifier have it with this value: then 1 sets it. */
static bool has_one_value(const struct op *op, const struct group *g)
{
	for (int f = op->form; f < op->form + op->nform; f++)
		for (int i = 0; i < forms[f].ngroup; i++) {
			const struct group *other = &forms[f].group[i];
			if (!strcmp(other->label, g->label) && (other->ntok != 1 || other->mod[0] != g->mod[0]))
				return false;
		}
	return true;
}

/* Does another operand that is there stand inside the same brackets? */
static bool more_inside(const struct example *e, int from)
{
	for (int i = from; i < e->form->noperand && e->form->operand[i].inside; i++)
		if (is_there(e, &e->form->operand[i]))
			return true;
	return false;
}

static void example_ptx(struct example *e)
{
	const struct form *f = e->form;

	for (int i = 0; i < f->ngroup; i++) {
		add(e->opcode, "%s", f->group[i].prefix);
		if (picked_text(e, i))
			add(e->opcode, ".%s", picked_text(e, i));
	}
	add(e->opcode, "%s", f->tail);
	add(e->ptx, "%s", e->opcode);
	for (int i = 0, n = 0; i < f->noperand; i++) {
		const struct operand *o = &f->operand[i];
		if (!is_there(e, o))
			continue;
		add(e->ptx, "%s", !n++ ? " " : o->pipe ? "|" : ", ");
		example_operand(e, o, o->dest && i == 0 && !o->read);
		if ((o->kind == KIND_ADDR || o->inside) && !more_inside(e, i + 1))
			add(e->ptx, "]");
	}
	add(e->ptx, ";");
}

static const struct operand *operand_named(const struct example *e, const char *name)
{
	for (int i = 0; i < e->form->noperand; i++)
		if (!strcmp(e->form->operand[i].name, name) && !(i == 0 && e->form->operand[i].dest))
			return &e->form->operand[i];
	return NULL;
}

static void example_value(struct example *e, const struct operand *o, bool positional)
{
	if (o->kind == KIND_IMM)
		add(e->call, positional ? "%d" : "cptx_imm(%d)", o->lo == INT32_MIN ? 0 : o->lo);
	else
		add(e->call, "%s", o->name);
}

static void example_call(struct example *e, const struct op *op)
{
	bool read = e->form->noperand && e->form->operand[0].read;
	bool returns = e->form->noperand && e->form->operand[0].dest && !read;

	add(e->call, "%s%s%scptx_%s(k", returns ? "cptx_val " : "", returns ? e->form->operand[0].name : "",
	    returns ? " = " : "", op->row->name);
	for (int i = 0; i < op->npos; i++) {
		add(e->call, ", ");
		example_value(e, operand_named(e, op->pos[i]), true);
	}
	for (int i = 0; i < op->nslot; i++) {
		const struct operand *o = operand_named(e, op->slot[i]);
		if (is_positional(op, op->slot[i]) || !o || !is_there(e, o))
			continue;
		add(e->call, ", .%s = ", op->slot[i]);
		example_value(e, o, false);
	}
	if (read)
		add(e->call, ", .into = %s", e->form->operand[0].name);
	for (int i = 0; i < e->form->ngroup; i++) {
		const struct group *g = &e->form->group[i];
		int mod = g->kind == 2 ? 0 : picked_mod(e, i);
		if (!mod)
			continue;
		if (mod < first_mod())
			add(e->call, ", .%s = CPTX_%s", g->label, types[mod - FIRST_TYPE].name);
		else if (has_one_value(op, g))
			add(e->call, ", .%s = 1", g->label);
		else
			add(e->call, ", .%s = CPTX_%s", g->label, mods[mod - first_mod()].name);
	}
	add(e->call, ");");
}

/* Of the first form without a rule of its own, which the first values might break. */
static void make_example(struct example *e, const struct op *op)
{
	memset(e, 0, sizeof *e);
	e->form = &forms[op->form];
	for (int i = op->nform - 1; i >= 0; i--)
		if (!strcmp(forms[op->form + i].row->constraint, "NONE"))
			e->form = &forms[op->form + i];
	reading(row_file(e->form->row), e->form->row->line, e->form->row->text);
	pick_values(e);
	example_ptx(e);
	example_call(e, op);
}

/* ---- the page of `cptx insn` ---- */

static void string(FILE *out, const char *before, const char *text)
{
	fprintf(out, "\"%s", before);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputs("\",\n", out);
}

static void string_line(FILE *out, const char *text) { string(out, "    ", text); }

static void lines_of(FILE *out, const char *text, line_fn *line)
{
	while (*text) {
		char one[TEXT];
		size_t n = strcspn(text, "\n");
		snprintf(one, sizeof one, "%.*s", (int)n, text);
		line(out, one);
		text += n + (text[n] == '\n');
	}
}

/* The fixed start of a spelling that all forms share: cp.async.bulk. */
static void mnemonic(const struct op *op, char text[TEXT])
{
	const char *first = forms[op->form].row->text;
	size_t n = 0;

	for (size_t end = 0; first[end] && !strchr("{ =", first[end]);) {
		end += 1 + strcspn(first + end + 1, ".{ =");
		bool all = first[end] != '=';
		for (int i = 0; i < op->nform; i++) {
			const char *t = forms[op->form + i].row->text;
			all &= !strncmp(t, first, end) && strchr(".{ ", t[end]) != NULL;
		}
		if (!all)
			break;
		n = end;
	}
	add(text, "%.*s", (int)n, first);
}

static bool has_notes(const struct op *op)
{
	for (const struct row *r = op->row + 1; r < rows + nrows && r->kind != ROW_OP; r++)
		if (r->kind == ROW_NOTE)
			return true;
	return false;
}

static void write_page(FILE *out, const struct op *op)
{
	static struct example e;
	char name[TEXT] = "", call[TEXT] = "", line[TEXT] = "";

	mnemonic(op, name);
	synopsis(call, op);
	fprintf(out, "{ \"%s\", \"%s\",\n(const char *const[]){\n\"NAME\",\n", op->row->name, name);
	add(line, "%s - %s", name, op->row->avail);
	string_line(out, line);
	string(out, "", "CALL");
	string_line(out, call);
	string(out, "", "MANUAL");
	string_line(out, op->row->text);
	fputs("NULL },\n(const char *const[]){\n", out);
	for (int i = 0; i < op->nform; i++) {
		char words[TEXT] = "";
		form_words(words, &forms[op->form + i]);
		string_line(out, forms[op->form + i].row->text);
		string(out, "        ", words);
	}
	fputs("NULL },\n(const char *const[]){\n", out);
	string(out, "", "OPERANDS");
	write_operands(out, op, string_line);
	fputs("NULL },\n(const page_value[]){\n", out);
	for (int i = 0; i < op->nfield; i++)
		write_field(out, op, op->field[i]);
	fputs("{ NULL, NULL, NULL, NULL, 0, 0 } },\n(const char *const[]){\n", out);
	if (*op->instead) {
		string(out, "", "WHERE A TARGET LACKS IT");
		string_line(out, op->instead);
	}
	if (has_notes(op)) {
		string(out, "", "NOTES");
		write_notes(out, op, string_line);
	}
	make_example(&e, op);
	fputs("NULL },\n(const char *const[]){\n", out);
	string(out, "", "EXAMPLE");
	string_line(out, e.ptx);
	lines_of(out, e.setup, string_line);
	string_line(out, e.call);
	fputs("NULL } },\n", out);
}

void write_pages(FILE *out)
{
	fputs("/* SPDX-License-Identifier: MIT */\n/* Generated by tools/gen_insn from src/arch: the pages of `cptx insn`. "
	      "*/\nstatic const page pages[] = {\n",
	      out);
	for (int i = 0; i < nops; i++)
		write_page(out, &ops[i]);
	fputs("};\n", out);
	write_coverage(out);
}

/* ---- the examples as tests ---- */

void write_examples(FILE *out)
{
	static struct example e;

	fputs("/* SPDX-License-Identifier: MIT */\n/* Generated by tools/gen_insn from src/arch: the example of every page, as "
	      "C. */\n",
	      out);
	for (int i = 0; i < nops; i++) {
		make_example(&e, &ops[i]);
		fprintf(
			out,
			"static void example_%s(cptx_kernel *k, cptx_kernel *function)\n{\n%s\t%s\n\t(void)k, (void)function%s%s;\n}\n",
			ops[i].row->name, e.setup, e.call, strncmp(e.call, "cptx_val ", 9) ? "" : ", (void)",
			strncmp(e.call, "cptx_val ", 9) ? "" : e.form->operand[0].name);
	}
	fputs("static const example examples[] = {\n", out);
	for (int i = 0; i < nops; i++) {
		make_example(&e, &ops[i]);
		fprintf(out, "{ \"%s\", \"%s\", \"%s\", \"%s\", %d, example_%s },\n", ops[i].row->name, e.opcode, e.decl, e.ptx,
		        (int)(e.form - forms), ops[i].row->name);
	}
	fputs("};\n", out);
}

/* ---- docs/instructions.md ---- */

static void bullet(FILE *out, const char *text) { fprintf(out, "- %s\n", text); }

void write_docs(FILE *out)
{
	static struct example e;

	fputs("# Instructions\n\nGenerated from `src/arch/insn.def`, whose head explains the notation. `cptx insn NAME` prints "
	      "the same, with the meaning of all modifiers.\n",
	      out);
	for (int i = 0; i < nops; i++) {
		const struct op *op = &ops[i];
		char call[TEXT] = "";
		synopsis(call, op);
		fprintf(out, "\n## %s\n\n%s. *%s*\n\n`%s`\n\n| form | availability |\n|---|---|\n", op->row->name, op->row->avail,
		        op->row->text, call);
		for (int j = 0; j < op->nform; j++) {
			char words[TEXT] = "";
			form_words(words, &forms[op->form + j]);
			fputs("| `", out);
			for (const char *p = forms[op->form + j].row->text; *p; p++)
				fprintf(out, *p == '|' ? "\\|" : "%c", *p);
			fprintf(out, "` | %s |\n", words);
		}
		fputs("\n", out);
		write_operands(out, op, bullet);
		write_notes(out, op, bullet);
		make_example(&e, op);
		fprintf(out, "\n```\n%s\n%s%s\n```\n", e.ptx, e.setup, e.call);
	}
}
