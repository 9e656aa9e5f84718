/* SPDX-License-Identifier: MIT */
/* Reading insn.def: each row into groups and operands, then what follows from all forms of an instruction. */
#include "gen.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))

struct form forms[MAX_FORMS];
struct op ops[MAX_OPS];
int nforms, nops;
const char *avails[MAX_AVAILS];
int navail = 1; /* 0: no restriction of its own */

static const char *where_text; /* of the row being read, for columns */
static int where_line;
static const char *where_file = "src/arch/insn.def";

void reading(const char *file, int line, const char *text)
{
	where_file = file;
	where_line = line;
	where_text = text;
}

const char *row_file(const struct row *row)
{
	static char path[256];
	const char *below = strstr(row->file, "arch/insn");

	for (const char *next = below; next; next = strstr(next + 1, "arch/insn"))
		below = next;
	snprintf(path, sizeof path, "src/%s", below ? below : row->file);
	return path;
}

static void at_row(const struct row *row, const char *text)
{
	static char file[256];
	snprintf(file, sizeof file, "%s", row_file(row));
	reading(file, row->line, text);
}

void die(const char *at, const char *format, ...)
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

int find_type(const char *s)
{
	for (int i = 0; i < ntypes; i++)
		if (!strcmp(types[i].text, s))
			return i;
	return -1;
}

int first_mod(void) { return FIRST_TYPE + ntypes + 1; }
int find_mod(const char *s)
{
	int t = find_type(s);
	if (t >= 0)
		return FIRST_TYPE + t;
	for (int i = 0; i < nmods; i++)
		if (!strcmp(mods[i].text, s))
			return first_mod() + i;
	return 0;
}

/* ---- availability ---- */

int intern_avail(const char *at, const char *s)
{
	for (int i = 1; i < navail; i++)
		if (!strcmp(avails[i], s))
			return i;
	if (navail == (int)(sizeof avails / sizeof *avails))
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

static const char removed[] = "removed ";

int avail_end(const char *s, int target)
{
	const char *part = strstr(s, removed);
	int major, minor;

	if (!part)
		return 0;
	part += strlen(removed);
	if (sscanf(part, "PTX %d.%d", &major, &minor) != 2)
		die(NULL, "availability '%s': expected 'removed PTX major.minor'", s);
	return avail_part(part, target) ? major * 10 + minor : 0;
}

int avail_on(const char *s, int target)
{
	int lowest = 0, end = avail_end(s, target);
	for (;;) {
		int v = strncmp(s, removed, strlen(removed)) ? avail_part(s, target) : 0;
		if (v && (!lowest || v < lowest))
			lowest = v;
		s = strchr(s, ';');
		if (!s)
			return end && lowest >= end ? 0 : lowest;
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

/* <availability> */
static const char *read_avail(const char *p, int *avail)
{
	char text[128];
	const char *end = strchr(p, '>');

	if (!end || end - p >= LEN(text))
		die(p, "no closing >");
	snprintf(text, sizeof text, "%.*s", (int)(end - p - 1), p + 1);
	*avail = intern_avail(p, text);
	return end + 1;
}

static void add_value(const char *at, struct group *g, const char *tok)
{
	if (g->ntok == LEN(g->tok))
		die(at, "too many values");
	for (int i = 0; i < g->ntok; i++)
		if (!strcmp(g->tok[i], tok))
			die(at, "value '%s' twice", tok);
	g->tok[g->ntok] = strdup(tok);
	g->mod[g->ntok] = find_mod(tok);
	g->avail[g->ntok++] = 0;
}

/* A value, or those of all numbers of a range: m64n[8..256:8]k16. */
static const char *read_values(const char *p, struct group *g)
{
	const char *at = p;
	char tok[TOK], head[TOK], tail[TOK];
	int lo, hi, step, n = 0;

	p = word(p, head, ":");
	if (*p != '[') {
		add_value(at, g, head);
		return p;
	}
	if (sscanf(p, "[%d..%d:%d]%n", &lo, &hi, &step, &n) != 3 || !n || lo < 0 || hi < lo || step < 1)
		die(p, "expected [low..high:step]");
	p = word(p + n, tail, ":");
	for (int i = lo; i <= hi; i += step) {
		if (snprintf(tok, sizeof tok, "%s%d%s", head, i, tail) >= TOK)
			die(at, "a word of more than %d characters", TOK - 1);
		add_value(at, g, tok);
	}
	return p;
}

static const char *read_alternatives(const char *p, struct group *g)
{
	for (;;) {
		p = read_values(p, g);
		if (*p == '<')
			p = read_avail(p, &g->avail[g->ntok - 1]);
		if (*p == '*') {
			if (g->kind || g->preset)
				die(p, "one value of a modifier that must be there can be the preset");
			g->preset = g->ntok;
			p++;
		}
		if (*p != '|')
			return p;
		p++;
	}
}

/* A modifier as the name of a field of the call: "shared::cta" shared_cta, "1d" _1d, "const" const_. */
static void field_name(const char *tok, char name[TOK])
{
	static const char *const keywords[] = { "auto", "const", "default", "do", "volatile" };
	int n = 0;

	if (isdigit((unsigned char)*tok))
		name[n++] = '_';
	for (; *tok && n < TOK - 2; tok++)
		if (*tok != ':')
			name[n++] = *tok;
		else if (name[n - 1] != '_')
			name[n++] = '_';
	name[n] = 0;
	for (int i = 0; i < LEN(keywords); i++)
		if (!strcmp(name, keywords[i]))
			strcpy(name + n, "_");
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
		field_name(g->tok[0], g->label);
	}
	return p;
}

static const char *read_imm(const char *p, struct operand *o)
{
	o->kind = KIND_IMM;
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

static struct operand *new_operand(const char *p, struct form *f)
{
	if (f->noperand == MAX_OPERANDS)
		die(p, "too many operands");
	struct operand *o = &f->operand[f->noperand++];
	o->times = o->over = 1;
	return o;
}

/* "4", "label", "label*4", "label/2" behind the * of an operand. */
static const char *read_count(const char *p, struct operand *o)
{
	p = word(p, o->count, "");
	bool times = *p == '*';
	if (!times && *p != '/')
		return p;
	char *end;
	long n = strtol(p + 1, &end, 10);
	if (n < 1 || n > 64)
		die(p, "expected a number from 1 to 64");
	if (times)
		o->times = (int)n;
	else
		o->over = (int)n;
	return end;
}

static const char *read_type(const char *p, struct operand *o)
{
	static const struct {
		const char *name;
		enum operand_kind kind;
	} kinds[] = { { "label", KIND_LABEL }, { "func", KIND_FUNC }, { "targets", KIND_TARGETS }, { "proto", KIND_PROTO } };

	if (!strncmp(p, "imm", 3))
		return read_imm(p + 3, o);
	if (*p == '2') {
		o->twice = 1;
		p++;
	}
	p = word(p, o->type, "");
	for (int i = 0; i < LEN(kinds); i++)
		if (!strcmp(o->type, kinds[i].name))
			o->kind = kinds[i].kind;
	return *p == '=' ? word(p + 1, o->held, "") : p;
}

static const char *read_select(const char *p, struct operand *o)
{
	static const char *const selects[] = { "s", "2", "4", "m2", "m4" };

	p = word(p, o->select, "");
	for (int i = 0; i < LEN(selects); i++)
		if (!strcmp(o->select, selects[i]))
			return p;
	die(p, "expected @s, @2, @4, @m2 or @m4");
	return p;
}

static const char *read_suffixes(const char *p, struct operand *o)
{
	for (;; p++) {
		if (*p == '+')
			o->wider = 1;
		else if (*p == '^')
			o->symbol = o->special = 1;
		else if (*p == '%')
			o->special = 1;
		else if (*p == '!')
			o->reg_only = 1;
		else if (*p == '~')
			o->sink = 1;
		else if (*p == '&')
			o->read = 1;
		else if (*p == '#')
			o->each = 1;
		else if (*p == '@')
			p = read_select(p + 1, o) - 1;
		else if (*p == '?')
			p = word(p + 1, o->given, "") - 1;
		else if (*p == '<' && o->optional)
			p = read_avail(p, &o->avail) - 1;
		else
			break;
	}
	if (o->given[0] && !o->optional)
		die(p, "?%s: only an operand that may be left out follows a modifier", o->given);
	if ((o->sink || o->read) && !o->dest)
		die(p, "only a destination (d, p, q) can be the sink, or be read too");
	return p;
}

static const char *read_register(const char *p, struct operand *o)
{
	p = word(p, o->name, "");
	if (!strcmp(o->name, "_")) {
		o->kind = KIND_SINK;
		o->dest = 1;
		return p;
	}
	o->dest = !strcmp(o->name, "d") || !strcmp(o->name, "p") || !strcmp(o->name, "q");
	strcpy(o->type, "type");
	if (*p == '@')
		p = read_select(p + 1, o);
	if (*p == ':')
		p = read_type(p + 1, o);
	if (*p == '*')
		p = read_count(p + 1, o);
	return read_suffixes(p, o);
}

static const char *read_more(const char *p, struct form *f, bool inside, char end);

/* [a], [a:space], and further operands inside the brackets: [a, c:s32*2], [a:texref, b:samplerref, c:f32]. */
static const char *read_address(const char *p, struct form *f, struct operand *o)
{
	o->kind = KIND_ADDR;
	p = word(p, o->name, "");
	if (*p == ':')
		p = word(p + 1, o->type, ":");
	if (*p == '=')
		p = word(p + 1, o->held, "");
	if (*p != ']')
		p = read_more(p, f, true, ']');
	if (*p != ']')
		die(p, "expected ]");
	p++;
	if (!strncmp(p, "{.", 2)) {
		p = read_group(p + 2, f, true);
		struct group *g = &f->group[f->ngroup - 1];
		g->behind = 1;
		memcpy(o->behind, g->label, sizeof o->behind);
		if (*p++ != '}')
			die(p - 1, "expected }");
	}
	return read_suffixes(p, o);
}

static const char *read_operand(const char *p, struct form *f, bool optional, bool pipe, bool inside)
{
	struct operand *o = new_operand(p, f);

	o->optional = optional;
	o->pipe = pipe;
	o->inside = inside;
	if (!strncmp(p, "{!}", 3)) {
		o->negatable = 1;
		p += 3;
	} else if (!strncmp(p, "{-}", 3)) {
		o->minus = 1;
		p += 3;
	}
	if (*p == '[')
		return read_address(p + 1, f, o);
	if (*p == '(') {
		o->kind = KIND_LIST;
		p = word(p + 1, o->name, "");
		if (*p != ')')
			die(p, "expected )");
		return read_suffixes(p + 1, o);
	}
	p = read_register(p, o);
	if (inside && o->kind == KIND_REG &&
	    (!strcmp(o->type, "texref") || !strcmp(o->type, "samplerref") || !strcmp(o->type, "surfref")))
		o->kind = KIND_ADDR;
	return p;
}

/* What follows an operand, up to `end`. */
static const char *read_more(const char *p, struct form *f, bool inside, char end)
{
	for (;;) {
		bool optional = false, pipe = false;
		if (!strncmp(p, "{|", 2))
			optional = pipe = true, p += 2;
		else if (!strncmp(p, "{, ", 3))
			optional = true, p += 3;
		else if (*p == '|')
			pipe = true, p++;
		else if (!strncmp(p, ", ", 2))
			p += 2;
		else if (*p == end)
			return p;
		else
			die(p, "expected ', '");
		p = read_operand(p, f, optional, pipe, inside);
		if (optional && *p++ != '}')
			die(p - 1, "expected }");
	}
}

static const char *read_operands(const char *p, struct form *f)
{
	return read_more(read_operand(p, f, false, false, false), f, false, 0);
}

static void read_form(const struct row *row)
{
	if (nforms == MAX_FORMS)
		die(NULL, "too many forms");
	struct form *f = &forms[nforms++];
	char mnemonic[TOK];
	const char *p = row->text;
	at_row(row, row->text);
	f->row = row;
	f->op = nops - 1;
	f->avail = intern_avail(p, row->avail);
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
	for (int i = 0; i < nconstraints; i++)
		if (!strcmp(constraints[i].name, row->constraint))
			c = i;
	if (c < 0)
		die(NULL, "no constraint %s in constraint.def", row->constraint);
}

/* ---- what follows from all forms of an instruction ---- */

int has_group(const struct form *f, const char *label)
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

/* A fixed modifier that only some forms have is a choice of the user: a field that must be given.  The others become text.
 */
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
		if (!g.behind) {
			snprintf(g.prefix, sizeof g.prefix, "%s", text);
			text[0] = 0;
		}
		f->group[n++] = g;
	}
	snprintf(f->tail, sizeof f->tail, "%s", text);
	f->ngroup = n;
	if (n > MAX_GROUPS)
		die(NULL, "more than %d modifiers", MAX_GROUPS);
}

/* Buffers of the printer rely on it. */
static void check_spelling(const struct form *f)
{
	size_t longest = strlen(f->tail);

	for (int i = 0; i < f->ngroup; i++) {
		size_t value = 0;
		for (int j = 0; j < f->group[i].ntok; j++)
			value = strlen(f->group[i].tok[j]) > value ? strlen(f->group[i].tok[j]) : value;
		longest += strlen(f->group[i].prefix) + 1 + (f->group[i].kind == 2 ? TOK : value);
	}
	if (longest > MAX_SPELLING)
		die(NULL, "a spelling can have %d characters, more than %d", (int)longest, MAX_SPELLING);
}

static void check_operand(const struct form *f, const struct operand *o)
{
	if (o->kind == KIND_REG && find_type(o->type) < 0 && has_group(f, o->type) < 0)
		die(NULL, "operand %s: '%s' is neither a type nor the label of a modifier", o->name, o->type);
	if (o->kind == KIND_ADDR && o->type[0] && strcmp(o->type, "tmem") && strcmp(o->type, "endpoint") && !find_mod(o->type))
		die(NULL, "operand %s: '%s' is no state space", o->name, o->type);
	if (o->given[0] && has_group(f, o->given) < 0)
		die(NULL, "operand %s: no modifier is labelled '%s'", o->name, o->given);
}

static void finish_form(struct op *op, struct form *f)
{
	at_row(f->row, f->row->text);
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
		if (!(o->dest && i == 0) && o->kind != KIND_SINK)
			op->nslot = add_name(op->slot, op->nslot, MAX_SLOTS, o->name);
		check_operand(f, o);
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

void read_tables(void)
{
	for (int i = 0; i < nrows; i++) {
		at_row(&rows[i], NULL);
		if (rows[i].kind == ROW_OP) {
			if (nops == MAX_OPS)
				die(NULL, "too many instructions");
			ops[nops].row = &rows[i];
			ops[nops].instead = "";
			ops[nops++].form = nforms;
		} else if (!nops || strcmp(ops[nops - 1].row->name, rows[i].name)) {
			die(NULL, "INSN(%s) does not stand under OP(%s)", rows[i].name, rows[i].name);
		} else if (rows[i].kind == ROW_INSTEAD) {
			ops[nops - 1].instead = rows[i].text;
		} else if (rows[i].kind == ROW_INSN) {
			read_form(&rows[i]);
		}
	}
	for (int i = 0; i < nops; i++) {
		struct op *op = &ops[i];
		if (!op->nform) {
			at_row(op->row, NULL);
			die(NULL, "OP(%s) has no INSN", op->row->name);
		}
		/* Decided over all forms before any is changed. */
		struct form *copy = malloc(sizeof *copy * (size_t)op->nform);
		if (!copy)
			die(NULL, "out of memory");
		for (int j = 0; j < op->nform; j++) {
			copy[j] = forms[op->form + j];
			at_row(copy[j].row, copy[j].row->text);
			fold_fixed(op, &copy[j]);
		}
		memcpy(&forms[op->form], copy, sizeof *copy * (size_t)op->nform);
		free(copy);
		for (int j = 0; j < op->nform; j++) {
			finish_form(op, &forms[op->form + j]);
			check_spelling(&forms[op->form + j]);
		}
		for (int s = 0; s < op->nslot; s++)
			if (needed_everywhere(op, op->slot[s]))
				op->npos = add_name(op->pos, op->npos, MAX_SLOTS, op->slot[s]);
	}
}
