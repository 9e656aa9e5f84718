/*
 * Host program of the build: reads the tables of src/arch (by including them) and writes what is generated from them.
 *
 *   gen_insn isa|insn|table|docs OUTPUT
 *
 * isa: enums of the public API; insn: one builder call per instruction; table: the compiled rows; docs: the reference.
 * A bad row stops the build with file:line:column.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { MAX_GROUPS = 12, MAX_OPERANDS = 8, MAX_FIELDS = 16, MAX_SLOTS = 8, MAX_FORMS = 2048, MAX_OPS = 512, NO = 0xff, TOK = 48 };

static const struct {
	const char *name, *text;
	int bits;
	char cls;
} types[] = {
#define TYPE(name, text, bits, cls) { #name, text, bits, #cls[0] },
#include "arch/types.def"
};
static const struct {
	const char *name, *text, *about;
} mods[] = {
#define MOD(name, text, about) { #name, text, about },
#include "arch/mods.def"
};
static const struct {
	const char *name, *text, *type, *avail;
	int line;
} sregs[] = {
#define SREG(name, text, type, avail) { #name, text, #type, avail, __LINE__ },
#include "arch/sreg.def"
};
static const struct {
	const char *name;
	int number;
	char suffix;
	int family, ptx;
} targets[] = {
#define TARGET(name, number, suffix, family, ptx, s, m, c, t, a, k, cc, about) { name, number, suffix, family, ptx },
#include "arch/target.def"
};
static const struct {
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) { #name, text },
#include "base/errors.def"
}, constraints[] = {
#define CONSTRAINT(name, text) { #name, text },
#include "arch/constraint.def"
};
static const struct row {
	int line, kind; /* 0 INSN, 1 OP, 2 INSTEAD */
	const char *name, *text, *avail, *constraint;
} rows[] = {
#define OP(name, chapter, about) { __LINE__, 1, #name, chapter, about, NULL },
#define INSTEAD(name, text) { __LINE__, 2, #name, text, NULL, NULL },
#define INSN(name, form, avail, constraint) { __LINE__, 0, #name, form, avail, #constraint },
#include "arch/insn.def"
};

struct group {
	char label[TOK], prefix[256], tok[64][TOK];
	int kind, same, ntok, avail[64], mod[64], fixed;
};
struct operand {
	char name[TOK], type[TOK], count[TOK];
	int addr, imm, label, func, dest, optional, negatable, wider, symbol, reg_only, pipe, twice;
	int lo, hi;
	unsigned long long set;
};
static struct form {
	const struct row *row;
	int op, ngroup, noperand, avail;
	struct group group[MAX_GROUPS + 8];
	struct operand operand[MAX_OPERANDS];
	char tail[256];
} forms[MAX_FORMS];
static struct op {
	const struct row *row;
	const char *instead;
	int form, nform, nfield, nslot, has_dest;
	char field[MAX_FIELDS][TOK], slot[MAX_SLOTS][TOK];
	int npos; /* slots that every form needs, as arguments of the call */
	char pos[MAX_SLOTS][TOK];
} ops[MAX_OPS];
static int nforms, nops;
static const char *avails[256];
static int navail = 1; /* 0: no restriction of its own */

static const char *where_text; /* of the row being read, for columns */
static int where_line;
static const char *where_file = "src/arch/insn.def";

static void die(const char *at, const char *format, ...)
{
	va_list ap;
	fprintf(stderr, "%s:%d", where_file, where_line);
	if (at && where_text)
		fprintf(stderr, ":%d", (int)(at - where_text) + 1);
	fputs(": error: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	if (where_text)
		fprintf(stderr, "\n    %s\n", where_text);
	fputc('\n', stderr);
	exit(1);
}

static int find_type(const char *s)
{
	for (int i = 0; i < LEN(types); i++)
		if (!strcmp(types[i].text, s))
			return i;
	return -1;
}

/* Number of a modifier: 0 none, 1 ON, types from 2 on, CPTX_PTR, then mods. */
enum { FIRST_TYPE = 2 };
static int first_mod(void) { return FIRST_TYPE + LEN(types) + 1; }
static int find_mod(const char *s)
{
	int t = find_type(s);
	if (t >= 0)
		return FIRST_TYPE + t;
	for (int i = 0; i < LEN(mods); i++)
		if (!strcmp(mods[i].text, s))
			return first_mod() + i;
	return 0;
}

/* ---- availability ---- */

static int intern_avail(const char *at, char *s)
{
	(void)at;
	for (int i = 1; i < navail; i++)
		if (!strcmp(avails[i], s))
			return i;
	if (navail == LEN(avails))
		die(at, "too many availabilities");
	avails[navail] = strdup(s);
	return navail++;
}

/* Lowest version (times ten) of availability `s`, up to a `;`, on a target; 0 if it is not there. */
static int avail_part(const char *s, int target)
{
	int ptx = 10, on = 0, named = 0;
	for (const char *p = s; *p && *p != ';';) {
		int major, minor, number, n = 0;
		char suffix = ' ';
		if (sscanf(p, "PTX %d.%d%n", &major, &minor, &n) == 2 && n) {
			ptx = major * 10 + minor;
		} else if (sscanf(p, "sm_%d%n", &number, &n) == 1 && n) {
			if (p[n] == 'a' || p[n] == 'f')
				suffix = p[n++];
			named = 1;
			int same = targets[target].number == number;
			if (suffix == ' ')
				on |= targets[target].number >= number;
			else if (suffix == 'a')
				on |= same && targets[target].suffix == 'a';
			else
				on |= targets[target].suffix != ' ' && targets[target].number >= number &&
				      targets[target].family == number / 10;
		} else {
			die(NULL, "availability '%s': expected 'PTX major.minor' or 'sm_number' with an optional a or f", s);
		}
		p += n;
		while (*p == ',' || *p == ' ')
			p++;
	}
	if (named && !on)
		return 0;
	return ptx > targets[target].ptx ? ptx : targets[target].ptx;
}

static int avail_on(const char *s, int target)
{
	int lowest = 0;
	for (;;) {
		int v = avail_part(s, target);
		if (v && (!lowest || v < lowest))
			lowest = v;
		s = strchr(s, ';');
		if (!s)
			return lowest;
		s += 1 + strspn(s + 1, " ");
	}
}

/* ---- reading a form ---- */

static const char *word(const char *p, char *out, const char *extra)
{
	int n = 0;
	while (isalnum((unsigned char)*p) || *p == '_' || (*p && strchr(extra, *p))) {
		if (n == TOK - 1)
			die(p, "a word of more than %d characters", TOK - 1);
		out[n++] = *p++;
	}
	if (!n)
		die(p, "expected a word, found '%c'", *p ? *p : ' ');
	out[n] = 0;
	return p;
}

static const char *read_alternatives(const char *p, struct group *g)
{
	for (;;) {
		if (g->ntok == LEN(g->tok))
			die(p, "too many values");
		const char *at = p;
		p = word(p, g->tok[g->ntok], ":");
		g->mod[g->ntok] = find_mod(g->tok[g->ntok]);
		g->avail[g->ntok] = 0;
		if (*p == '<') {
			char text[128];
			const char *end = strchr(p, '>');
			if (!end || end - p >= LEN(text))
				die(p, "no closing >");
			snprintf(text, sizeof text, "%.*s", (int)(end - p - 1), p + 1);
			g->avail[g->ntok] = intern_avail(p, text);
			p = end + 1;
		}
		for (int i = 0; i < g->ntok; i++)
			if (!strcmp(g->tok[i], g->tok[g->ntok]))
				die(at, "value '%s' twice", g->tok[i]);
		g->ntok++;
		if (*p != '|')
			return p;
		p++;
	}
}

static const char *read_group(const char *p, struct form *f, bool optional)
{
	struct group *g = &f->group[f->ngroup++];
	if (f->ngroup > LEN(f->group))
		die(p, "too many modifiers");
	g->kind = optional;
	if (*p == '=') {
		p = word(p + 1, g->label, "");
		g->kind = 2;
		return p;
	}
	const char *eq = p;
	while (isalnum((unsigned char)*eq) || *eq == '_')
		eq++;
	if (*eq == '=')
		p = word(p, g->label, "") + 1;
	p = read_alternatives(p, g);
	if (!g->label[0] && g->ntok > 1)
		die(p, "a choice needs a label: .label=a|b");
	if (!g->label[0]) {
		g->fixed = !optional;
		memcpy(g->label, g->tok[0], sizeof g->label);
	}
	return p;
}

static const char *read_imm(const char *p, struct operand *o)
{
	o->imm = 1;
	o->lo = INT32_MIN, o->hi = INT32_MAX;
	if (*p != '(')
		return p;
	char *end;
	o->lo = o->hi = (int)strtol(p + 1, &end, 0);
	if (end[0] == '.' && end[1] == '.') {
		o->hi = (int)strtol(end + 2, &end, 0);
	} else {
		o->set = 1ull << o->lo;
		while (*end == '|') {
			o->hi = (int)strtol(end + 1, &end, 0);
			o->set |= 1ull << o->hi;
		}
	}
	if (*end != ')' || o->hi < o->lo || (o->set && o->hi > 63))
		die(p, "expected imm(low..high) or imm(a|b|c), ascending");
	return end + 1;
}

static const char *read_operand(const char *p, struct form *f, bool optional, bool pipe)
{
	if (f->noperand == MAX_OPERANDS)
		die(p, "too many operands");
	struct operand *o = &f->operand[f->noperand++];
	o->optional = optional;
	o->pipe = pipe;
	if (!strncmp(p, "{!}", 3)) {
		o->negatable = 1;
		p += 3;
	}
	if (*p == '[') {
		o->addr = 1;
		p = word(p + 1, o->name, "");
		if (*p == ':')
			p = word(p + 1, o->type, ":");
		if (*p != ']')
			die(p, "expected ]");
		return p + 1;
	}
	p = word(p, o->name, "");
	o->dest = !strcmp(o->name, "d") || !strcmp(o->name, "p") || !strcmp(o->name, "q");
	strcpy(o->type, "type");
	if (*p == ':') {
		if (!strncmp(p, ":imm", 4)) {
			p = read_imm(p + 4, o);
		} else {
			if (p[1] == '2') {
				o->twice = 1;
				p++;
			}
			p = word(p + 1, o->type, "");
			o->label = !strcmp(o->type, "label");
			o->func = !strcmp(o->type, "func");
		}
	}
	if (*p == '*')
		p = word(p + 1, o->count, "");
	for (;; p++) {
		if (*p == '+')
			o->wider = 1;
		else if (*p == '^')
			o->symbol = 1;
		else if (*p == '!')
			o->reg_only = 1;
		else
			return p;
	}
}

static const char *read_operands(const char *p, struct form *f)
{
	for (;;) {
		p = read_operand(p, f, false, false);
		for (;;) {
			bool optional = false, pipe = false;
			if (!strncmp(p, "{|", 2))
				optional = pipe = true, p += 2;
			else if (!strncmp(p, "{, ", 3))
				optional = true, p += 3;
			else if (*p == '|')
				pipe = true, p++;
			else
				break;
			p = read_operand(p, f, optional, pipe);
			if (optional && *p++ != '}')
				die(p - 1, "expected }");
		}
		if (!*p)
			return p;
		if (strncmp(p, ", ", 2))
			die(p, "expected ', '");
		p += 2;
	}
}

static void read_form(const struct row *row)
{
	if (nforms == MAX_FORMS)
		die(NULL, "too many forms");
	struct form *f = &forms[nforms++];
	char mnemonic[TOK];
	const char *p = where_text = row->text;
	where_line = row->line;
	f->row = row;
	f->op = nops - 1;
	f->avail = intern_avail(p, (char *)row->avail);
	ops[f->op].nform++;
	p = word(p, mnemonic, "");
	snprintf(f->tail, sizeof f->tail, "%s", mnemonic);
	while (*p == '.' || !strncmp(p, "{.", 2)) {
		bool optional = *p == '{';
		p = read_group(p + 1 + optional, f, optional);
		if (optional && *p++ != '}')
			die(p - 1, "expected }");
	}
	if (*p == ' ')
		p = read_operands(p + 1, f);
	if (*p)
		die(p, "unexpected '%s'", p);
	int c = -1;
	for (int i = 0; i < LEN(constraints); i++)
		if (!strcmp(constraints[i].name, row->constraint))
			c = i;
	if (c < 0)
		die(NULL, "no constraint %s in constraint.def", row->constraint);
}

/* ---- what follows from all forms of an instruction ---- */

static int has_group(const struct form *f, const char *label)
{
	for (int i = 0; i < f->ngroup; i++)
		if (f->group[i].kind != 2 && !strcmp(f->group[i].label, label))
			return i;
	return -1;
}

static int add_name(char list[][TOK], int n, int most, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return n;
	if (n == most)
		die(NULL, "too many different modifiers or operands in one instruction");
	snprintf(list[n], TOK, "%.47s", name);
	return n + 1;
}

/* A fixed modifier that only some forms have is a choice of the user: a field that must be given.  The others become text. */
static void fold_fixed(struct op *op, struct form *f)
{
	int n = 0;
	char text[256];
	snprintf(text, sizeof text, "%s", f->tail);
	for (int i = 0; i < f->ngroup; i++) {
		struct group g = f->group[i];
		bool everywhere = g.fixed;
		for (int j = 0; everywhere && j < op->nform; j++) {
			int other = has_group(&forms[op->form + j], g.label);
			everywhere = other >= 0 && forms[op->form + j].group[other].fixed;
		}
		if (everywhere) {
			size_t len = strlen(text);
			snprintf(text + len, sizeof text - len, ".%s", g.tok[0]);
			continue;
		}
		snprintf(g.prefix, sizeof g.prefix, "%s", text);
		text[0] = 0;
		f->group[n++] = g;
	}
	snprintf(f->tail, sizeof f->tail, "%s", text);
	f->ngroup = n;
	if (n > MAX_GROUPS)
		die(NULL, "more than %d modifiers", MAX_GROUPS);
}

static void finish_form(struct op *op, struct form *f)
{
	where_text = f->row->text, where_line = f->row->line;
	for (int i = 0; i < f->ngroup; i++) {
		struct group *g = &f->group[i];
		if (g->kind == 2) {
			g->same = has_group(f, g->label);
			if (g->same < 0 || g->same >= i)
				die(NULL, ".=%s repeats no earlier modifier", g->label);
			continue;
		}
		for (int j = 0; j < g->ntok; j++)
			if (!g->mod[j])
				die(strstr(where_text, g->tok[j]), "'%s' is neither in mods.def nor in types.def", g->tok[j]);
		op->nfield = add_name(op->field, op->nfield, MAX_FIELDS, g->label);
	}
	for (int i = 0; i < f->noperand; i++) {
		struct operand *o = &f->operand[i];
		if (o->dest && !op->has_dest && i == 0)
			op->has_dest = 1;
		if (!(o->dest && i == 0))
			op->nslot = add_name(op->slot, op->nslot, MAX_SLOTS, o->name);
		if (!o->addr && !o->imm && !o->label && !o->func && find_type(o->type) < 0 && has_group(f, o->type) < 0)
			die(NULL, "operand %s: '%s' is neither a type nor the label of a modifier", o->name, o->type);
	}
}

static bool needed_everywhere(const struct op *op, const char *slot)
{
	for (int j = 0; j < op->nform; j++) {
		const struct form *f = &forms[op->form + j];
		bool found = false;
		for (int i = 0; i < f->noperand; i++) {
			const struct operand *o = &f->operand[i];
			found |= !strcmp(o->name, slot) && !o->optional && !o->dest;
		}
		if (!found)
			return false;
	}
	return true;
}

static void read_tables(void)
{
	for (int i = 0; i < LEN(rows); i++) {
		where_line = rows[i].line;
		where_text = NULL;
		if (rows[i].kind == 1) {
			if (nops == MAX_OPS)
				die(NULL, "too many instructions");
			ops[nops].row = &rows[i];
			ops[nops].instead = "";
			ops[nops++].form = nforms;
		} else if (!nops || strcmp(ops[nops - 1].row->name, rows[i].name)) {
			die(NULL, "INSN(%s) does not stand under OP(%s)", rows[i].name, rows[i].name);
		} else if (rows[i].kind == 2) {
			ops[nops - 1].instead = rows[i].text;
		} else {
			read_form(&rows[i]);
		}
	}
	for (int i = 0; i < nops; i++) {
		struct op *op = &ops[i];
		if (!op->nform) {
			where_line = op->row->line, where_text = NULL;
			die(NULL, "OP(%s) has no INSN", op->row->name);
		}
		/* Decided over all forms before any is changed. */
		struct form *copy = malloc(sizeof *copy * (size_t)op->nform);
		if (!copy)
			die(NULL, "out of memory");
		for (int j = 0; j < op->nform; j++) {
			copy[j] = forms[op->form + j];
			where_text = copy[j].row->text, where_line = copy[j].row->line;
			fold_fixed(op, &copy[j]);
		}
		memcpy(&forms[op->form], copy, sizeof *copy * (size_t)op->nform);
		free(copy);
		for (int j = 0; j < op->nform; j++)
			finish_form(op, &forms[op->form + j]);
		for (int s = 0; s < op->nslot; s++)
			if (needed_everywhere(op, op->slot[s]))
				op->npos = add_name(op->pos, op->npos, MAX_SLOTS, op->slot[s]);
	}
}

/* ---- writing ---- */

static void upper(FILE *out, const char *s)
{
	for (; *s; s++)
		fputc(*s == '.' || *s == ':' ? '_' : toupper((unsigned char)*s), out);
}

static void write_isa(FILE *out)
{
	fputs("/* Generated by tools/gen_insn.c from src/arch and src/base/errors.def. */\n#ifndef CPTX_ISA_H\n#define CPTX_ISA_H\n\n", out);
	fputs("/** What went wrong. */\nenum cptx_code {\n", out);
	for (int i = 0; i < LEN(errors); i++)
		fprintf(out, "\tCPTX_%s%s = %d, /**< %s */\n", i ? "E_" : "", errors[i].name, i, errors[i].text);
	fputs("};\n\n/** Types of the PTX manual, \"Types\".  Each is a modifier value too. */\nenum cptx_type {\n\tCPTX_TYPE_NONE = 0,\n", out);
	for (int i = 0; i < LEN(types); i++)
		fprintf(out, "\tCPTX_%s = %d,\n", types[i].name, FIRST_TYPE + i);
	fprintf(out, "\tCPTX_PTR = %d /**< of a parameter: a pointer to global memory */\n};\n\n", FIRST_TYPE + LEN(types));
	fputs("/** Values of modifiers.  CPTX_ON (or 1) sets a modifier that has one value, .ftz = 1. */\nenum cptx_mod {\n", out);
	fputs("\tCPTX_MOD_NONE = 0,\n\tCPTX_ON = 1,\n", out);
	for (int i = 0; i < LEN(mods); i++)
		fprintf(out, "\tCPTX_%s = %d, /**< .%s: %s */\n", mods[i].name, first_mod() + i, mods[i].text, mods[i].about);
	fputs("};\n\n/** Special registers. */\nenum cptx_sreg {\n", out);
	for (int i = 0; i < LEN(sregs); i++) {
		fputs("\tCPTX_SREG_", out);
		upper(out, sregs[i].name);
		fprintf(out, " = %d, /**< %s */\n", i, sregs[i].text);
	}
	fputs("};\n\n/** Instructions. */\nenum cptx_op {\n", out);
	for (int i = 0; i < nops; i++) {
		fputs("\tCPTX_OP_", out);
		upper(out, ops[i].row->name);
		fprintf(out, " = %d,\n", i);
	}
	fprintf(out, "\tCPTX_OP_COUNT = %d\n};\n\n#endif\n", nops);
}

static void write_builder(FILE *out, const struct op *op)
{
	const char *n = op->row->name;
	fprintf(out, "/**\n * %s: %s.  (%s)\n", n, op->row->avail, op->row->text);
	for (int j = 0; j < op->nform; j++)
		fprintf(out, " *   %s    [%s]\n", forms[op->form + j].row->text, forms[op->form + j].row->avail);
	fprintf(out, " */\nstruct cptx_%s_ {\n\tunion {\n\t\tstruct {\n\t\t\tcptx_val into, when, unless", n);
	for (int i = 0; i < op->nslot; i++)
		fprintf(out, ", %s", op->slot[i]);
	fprintf(out, ";\n\t\t};\n\t\tcptx_val val_[%d];\n\t};\n\tunion {\n", 3 + op->nslot);
	if (op->nfield) {
		fputs("\t\tstruct {\n\t\t\tuint16_t ", out);
		for (int i = 0; i < op->nfield; i++)
			fprintf(out, "%s%s", i ? ", " : "", op->field[i]);
		fputs(";\n\t\t};\n", out);
	}
	fprintf(out, "\t\tuint16_t mod_[%d];\n\t};\n\tchar z_;\n};\n", op->nfield ? op->nfield : 1);
	fprintf(out, "static inline cptx_val cptx_%s_s_(cptx_kernel *k, cptx_site at, const struct cptx_%s_ *s)\n{\n", n, n);
	fprintf(out, "\treturn cptx_insn_(k, at, CPTX_OP_");
	upper(out, n);
	fprintf(out, ", s->val_, s->mod_);\n}\n#define cptx_%s(...) cptx_%s_x_(__VA_ARGS__, .z_ = 0)\n#define cptx_%s_x_(kernel_", n, n, n);
	for (int i = 0; i < op->npos; i++)
		fprintf(out, ", %s_", op->pos[i]);
	fprintf(out, ", ...) cptx_%s_s_((kernel_), CPTX_HERE, &(struct cptx_%s_){ ", n, n);
	for (int i = 0; i < op->npos; i++)
		fprintf(out, ".%s = CPTX_V(%s_), ", op->pos[i], op->pos[i]);
	fputs("__VA_ARGS__ })\n\n", out);
}

static void write_insn(FILE *out)
{
	fputs("/*\n * Generated by tools/gen_insn.c from src/arch/insn.def: one builder call per instruction, C11.\n"
	      " *\n * cptx_name(k, operands..., .modifier = CPTX_..., .into = r, .when = p, .unless = p) appends the instruction and\n"
	      " * returns its first destination: .into if given, else a new register.  The forms are listed above each call, in the\n"
	      " * notation that src/arch/insn.def explains; types are taken from the operands where .type is not given.\n */\n"
	      "#ifndef CPTX_INSN_H\n#define CPTX_INSN_H\n\n#include <cptx/cptx.h>\n\n", out);
	for (int i = 0; i < nops; i++)
		write_builder(out, &ops[i]);
	fputs("/* Special registers, each read into a new register. */\n", out);
	for (int i = 0; i < LEN(sregs); i++) {
		fprintf(out, "#define cptx_%s(k) cptx_sreg_((k), CPTX_HERE, CPTX_SREG_", sregs[i].name);
		upper(out, sregs[i].name);
		fputs(")\n", out);
	}
	fputs("\n#endif\n", out);
}

static int index_of(char list[][TOK], int n, const char *s)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i], s))
			return i;
	return NO;
}

static bool is_space(const struct group *g)
{
	return !strcmp(g->label, "space");
}

static bool is_type(const struct group *g)
{
	size_t n = strlen(g->label);
	return n >= 4 && !strcmp(g->label + n - 4, "type");
}

static bool is_count(const struct form *f, const struct group *g)
{
	for (int i = 0; i < f->noperand; i++)
		if (!strcmp(f->operand[i].count, g->label))
			return true;
	return false;
}

/* The state space that a fixed part of the form names, for addresses without one of their own. */
static int fixed_space(const struct form *f, const struct operand *o)
{
	(void)f;
	return o->type[0] ? find_mod(o->type) : 0;
}

static void write_operand(FILE *out, struct op *op, const struct form *f, int i)
{
	const struct operand *o = &f->operand[i];
	int kind = o->addr ? 1 : o->imm ? 2 : o->label ? 3 : o->func ? 4 : 0;
	int type = kind ? -1 : find_type(o->type), tgroup = kind || type >= 0 ? NO : has_group(f, o->type);
	int fixed = atoi(o->count), cgroup = o->count[0] && !fixed ? has_group(f, o->count) : NO;
	int sgroup = o->addr && !o->type[0] ? has_group(f, "space") : NO;
	int slot = o->dest && i == 0 ? 0 : index_of(op->slot, op->nslot, o->name) + 1;
	int flags = (o->dest ? 1 : 0) | (o->optional ? 2 : 0) | (o->negatable ? 4 : 0) | (o->wider ? 8 : 0) | (o->symbol ? 16 : 0) |
	            (o->reg_only ? 32 : 0) | (o->pipe ? 64 : 0) | (o->twice ? 128 : 0);
	bool optional_count = cgroup != NO && cgroup >= 0 && f->group[cgroup].kind == 1;

	if (o->count[0] && !fixed && cgroup < 0)
		die(NULL, "operand %s: no modifier is labelled '%s'", o->name, o->count);
	if (sgroup < 0)
		sgroup = NO;
	fprintf(out, "\t{ %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %lluu },\n", slot, kind, flags,
	        type < 0 ? 0 : FIRST_TYPE + type, tgroup, cgroup, fixed ? fixed : 1, sgroup, o->addr ? fixed_space(f, o) : 0,
	        o->count[0] && !optional_count, o->lo, o->hi, o->set);
}

static void write_forms(FILE *out)
{
	int ngroup = 0, noperand = 0, nalt = 0;

	fputs("const arch_alt arch_alts[] = {\n", out);
	for (int i = 0; i < nforms; i++)
		for (int g = 0; g < forms[i].ngroup; g++)
			for (int a = 0; a < forms[i].group[g].ntok; a++)
				fprintf(out, "\t{ %d, %d },\n", forms[i].group[g].mod[a], forms[i].group[g].avail[a]);
	fputs("};\n\nconst arch_group arch_groups[] = {\n", out);
	for (int i = 0; i < nforms; i++) {
		struct op *op = &ops[forms[i].op];
		for (int g = 0; g < forms[i].ngroup; g++) {
			const struct group *grp = &forms[i].group[g];
			int has_avail = 0;
			for (int a = 0; a < grp->ntok; a++)
				has_avail |= grp->avail[a] != 0;
			fprintf(out, "\t{ \"%s\", %d, %d, %d, %d, %d, %d, %d, %d, %d, %d },\n", grp->prefix, (int)strlen(grp->prefix), grp->kind,
			        grp->kind == 2 ? NO : index_of(op->field, op->nfield, grp->label), grp->same, is_type(grp),
			        is_space(grp), is_count(&forms[i], grp), grp->ntok, has_avail, nalt);
			nalt += grp->ntok;
		}
	}
	fputs("};\n\nconst arch_operand arch_operands[] = {\n", out);
	for (int i = 0; i < nforms; i++) {
		where_text = forms[i].row->text, where_line = forms[i].row->line;
		for (int o = 0; o < forms[i].noperand; o++)
			write_operand(out, &ops[forms[i].op], &forms[i], o);
	}
	fputs("};\n\nconst arch_form arch_forms[] = {\n", out);
	for (int i = 0; i < nforms; i++) {
		const struct form *f = &forms[i];
		struct op *op = &ops[f->op];
		unsigned fields = 0, must = 0, slots = 0;
		int c = 0;
		for (int g = 0; g < f->ngroup; g++) {
			if (f->group[g].kind == 2)
				continue;
			unsigned bit = 1u << index_of(op->field, op->nfield, f->group[g].label);
			fields |= bit;
			must |= f->group[g].fixed ? bit : 0;
		}
		for (int o = 0; o < f->noperand; o++)
			if (!(f->operand[o].dest && o == 0))
				slots |= 1u << index_of(op->slot, op->nslot, f->operand[o].name);
		while (strcmp(constraints[c].name, f->row->constraint))
			c++;
		fprintf(out, "\t{ \"%s\", \"%s\", %d, %d, %d, %d, %d, %d, %d, %d, %uu, %uu, %uu, %d },\n", f->row->text, f->tail, f->op,
		        ngroup, noperand, f->ngroup, f->noperand, (int)strlen(f->tail), f->avail, c, fields, must, slots, f->row->line);
		ngroup += f->ngroup;
		noperand += f->noperand;
	}
	fprintf(out, "};\nconst uint16_t arch_nform = %d;\n\n", nforms);
}

static void write_ops(FILE *out)
{
	fputs("const arch_op arch_ops[] = {\n", out);
	for (int i = 0; i < nops; i++) {
		const struct op *op = &ops[i];
		fprintf(out, "\t{ \"%s\", \"%s\", \"%s\", \"%s\", %d, %d, %d, %d, %d, {", op->row->name, op->row->text, op->row->avail,
		        op->instead, op->form, op->nform, op->nfield, op->nslot, op->has_dest);
		for (int j = 0; j < op->nfield; j++)
			fprintf(out, " \"%s\",", op->field[j]);
		fputs(op->nfield ? " }, {" : " 0 }, {", out);
		for (int j = 0; j < op->nslot; j++)
			fprintf(out, " \"%s\",", op->slot[j]);
		fputs(op->nslot ? " } },\n" : " 0 } },\n", out);
	}
	fprintf(out, "};\nconst uint16_t arch_nop = %d;\n\n", nops);
}

/* The number inside a modifier's name: v4, x2; 1 where there is none. */
static int mod_count(const char *s)
{
	return (s[0] == 'v' || s[0] == 'x') && isdigit((unsigned char)s[1]) ? atoi(s + 1) : 1;
}

static void write_mods(FILE *out)
{
	fputs("const arch_mod arch_mods[] = {\n\t{ \"\", \"\", 0, 1 },\n\t{ \"1\", \"on\", 1, 1 },\n", out);
	for (int i = 0; i < LEN(types); i++)
		fprintf(out, "\t{ \"%s\", \"type\", %d, 1 },\n", types[i].text, (int)strlen(types[i].text));
	fputs("\t{ \"u64\", \"pointer\", 3, 1 },\n", out);
	for (int i = 0; i < LEN(mods); i++)
		fprintf(out, "\t{ \"%s\", \"%s\", %d, %d },\n", mods[i].text, mods[i].about, (int)strlen(mods[i].text), mod_count(mods[i].text));
	fprintf(out, "};\nconst uint16_t arch_nmod = %d;\n\n", first_mod() + LEN(mods));
	fputs("const arch_type arch_types[] = {\n\t{ 0, ' ' },\n\t{ 0, ' ' },\n", out);
	for (int i = 0; i < LEN(types); i++)
		fprintf(out, "\t{ %d, '%c' },\n", types[i].bits, types[i].cls);
	fprintf(out, "\t{ 64, 'U' },\n};\nconst uint8_t arch_ntype = %d;\n\n", FIRST_TYPE + LEN(types) + 1);
}

static void write_table(FILE *out)
{
	fputs("/* Generated by tools/gen_insn.c from src/arch. */\n", out);
	write_forms(out);
	write_ops(out);
	write_mods(out);
	where_file = "src/arch/sreg.def", where_text = NULL;
	fputs("const arch_sreg arch_sregs[] = {\n", out);
	for (int i = 0; i < LEN(sregs); i++) {
		where_line = sregs[i].line;
		fprintf(out, "\t{ \"%s\", CPTX_%s, %d },\n", sregs[i].text, sregs[i].type, intern_avail(NULL, (char *)sregs[i].avail));
	}
	fprintf(out, "};\nconst uint16_t arch_nsreg = %d;\n\n", LEN(sregs));
	fputs("const char *const arch_avail_text[] = {\n\t\"\",\n", out);
	for (int i = 1; i < navail; i++)
		fprintf(out, "\t\"%s\",\n", avails[i]);
	fputs("};\n\nconst uint8_t arch_avails[][ARCH_TARGETS] = {\n\t{ 0 },\n", out);
	for (int i = 1; i < navail; i++) {
		fputs("\t{ ", out);
		for (int t = 0; t < LEN(targets); t++)
			fprintf(out, "%d, ", avail_on(avails[i], t));
		fputs("},\n", out);
	}
	fputs("};\n", out);
}

static void write_docs(FILE *out)
{
	fputs("# Instructions\n\nGenerated from `src/arch/insn.def`, whose head explains the notation. `cptx insn NAME` prints the same.\n", out);
	for (int i = 0; i < nops; i++) {
		const struct op *op = &ops[i];
		fprintf(out, "\n## %s\n\n%s. *%s*\n\n`cptx_%s(k", op->row->name, op->row->avail, op->row->text, op->row->name);
		for (int j = 0; j < op->npos; j++)
			fprintf(out, ", %s", op->pos[j]);
		fputs("", out);
		for (int j = 0; j < op->nslot; j++)
			if (index_of((char(*)[TOK])op->pos, op->npos, op->slot[j]) == NO)
				fprintf(out, ", .%s", op->slot[j]);
		for (int j = 0; j < op->nfield; j++)
			fprintf(out, ", .%s", op->field[j]);
		fputs(")`\n\n| form | availability |\n|---|---|\n", out);
		for (int j = 0; j < op->nform; j++) {
			const struct form *f = &forms[op->form + j];
			fputs("| `", out);
			for (const char *p = f->row->text; *p; p++)
				fprintf(out, *p == '|' ? "\\|" : "%c", *p);
			fprintf(out, "` | %s |\n", f->row->avail);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(FILE *);
	} outputs[] = { { "isa", write_isa }, { "insn", write_insn }, { "table", write_table }, { "docs", write_docs } };

	read_tables();
	for (int i = 0; argc == 3 && i < LEN(outputs); i++) {
		if (strcmp(outputs[i].name, argv[1]))
			continue;
		FILE *out = fopen(argv[2], "w");
		if (!out) {
			perror(argv[2]);
			return 1;
		}
		outputs[i].write(out);
		if (ferror(out) | fclose(out)) {
			fprintf(stderr, "%s: write failed\n", argv[2]);
			return 1;
		}
		return 0;
	}
	fputs("usage: gen_insn isa|insn|table|docs OUTPUT\n", stderr);
	return 2;
}
