/* SPDX-License-Identifier: MIT */
/*
 * Instructions: the spelling selects candidate forms, the operands are read without knowing the form (tokens.c), and then
 * they are given to the operands of the first candidate that they fit (fit.c).
 */
#include "parse/insn.h"
#include "parse/quick.h"

#define NO_SEMICOLON "expected ';' behind the instruction"

/* Whether the unknown name, the first operand as it seems, begins the next statement: an instruction, or a label. */
static bool begins_statement(const token *t, const char *behind)
{
	const char *s = t->name.s, *end = s + t->name.len;
	unsigned forms = 0;

	if (t->at != s || !memchr(behind, '\n', (size_t)(s - behind)))
		return false;
	while (*end == ' ' || *end == '\t')
		end++;
	if (*end == ':' && end[1] != ':')
		return true;
	arch_forms_of(s, t->name.len, &forms);
	return forms && *end != ',';
}

/* Makes labels of unknown names where the instruction takes a label.  behind: the end of its spelling. */
static bool name_labels(parser *p, const spelled *s, tokens *all, const char *behind)
{
	for (unsigned i = 0; i < all->n; i++) {
		token *from = &all->from[i];
		if ((i < PLAIN_TOKENS && all->words[i]) || !from->unknown)
			continue;
		if (!s->takes_label && !i && begins_statement(from, behind))
			return parse_error(p, behind, CPTX_E_PARSE, NO_SEMICOLON);
		if (!s->takes_label || all->t[i].address)
			return parse_undeclared(p, from);
		uint32_t id = names_label(p, &from->name);
		if (id == IR_NONE)
			return false;
		all->t[i].v = (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1, .owner = p->k->owner, .id = id };
	}
	return true;
}

static bool read_guard(parser *p, cptx_val *guard)
{
	const char *at = p->p;
	const binding *b = NULL;
	word w = { 0 };

	*guard = (cptx_val){ 0 };
	if (!parse_take(p, '@'))
		return true;
	bool negated = parse_take(p, '!');
	at = p->p;
	uint32_t reg = names_quick(p);
	if (reg == IR_NONE && !parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected a predicate register behind @");
	reg = reg == IR_NONE ? names_register(p, &w, &b) : reg;
	if (reg == IR_NONE || p->k->reg[reg].type != CPTX_PRED)
		return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no predicate register%s",
		                   (int)MIN(strcspn(at, " \t\r\n.,;"), (size_t)200), at,
		                   b || reg != IR_NONE ? "" : "; it is not declared");
	*guard = parse_register_value(p->k, reg, 1);
	guard->negated = negated;
	return true;
}

/* Whether a colon belongs to a spelling: it stands beside another one, or between digits, as in .sp::2:4. */
static bool is_joint(const char *s)
{
	bool digits = parse_is_word[(unsigned char)s[-1]] & parse_is_word[(unsigned char)s[1]] & 2;
	return *s == ':' && (s[1] == ':' || s[-1] == ':' || digits);
}

static const char *spelling_end(const char *s)
{
	for (s = parse_dotted(s); is_joint(s); s = parse_dotted(s + 1))
		;
	return s;
}

static void begin_tokens(tokens *all, bool lists)
{
	all->n = all->nplain = 0;
	memset(all->shape, 0, sizeof all->shape);
	all->words[PLAIN_TOKENS] = 0;
	all->unknown = false;
	all->lists = lists;
}

enum { OPCODE_MOST = 255 };

/* Reads the spelling, "ld.global.v4.f32"; blanks may stand in front of a dot. */
static const char *read_opcode(parser *p, char joined[OPCODE_MOST + SPELLING_BEHIND], size_t *len)
{
	const char *from = p->p, *s = spelling_end(from);

	*len = (size_t)(s - from);
	p->stop = p->p = s;
	parse_blanks(p);
	if (*p->p != '.')
		return from;
	size_t n = MIN(*len, (size_t)OPCODE_MOST);
	memcpy(joined, from, n);
	while (*p->p == '.') {
		s = spelling_end(p->p);
		size_t more = MIN((size_t)(s - p->p), OPCODE_MOST - n);
		memcpy(joined + n, p->p, more);
		n += more;
		p->stop = p->p = s;
		parse_blanks(p);
	}
	*len = n;
	return joined;
}

static bool append(parser *p, const char *at, const arch_match *m, cptx_val guard)
{
	char why[160];

	if (!ir_fits(p->k, m, why)) {
		parse_error(p, at, CPTX_E_ARG, "%s: %s", ir_op_name(arch_forms[m->form].op), why);
		return true;
	}
	for (unsigned i = 0; m->labels && i < m->noperand; i++) {
		const cptx_val *v = &m->operand[i];
		enum ir_list list = v->kind == CPTX_VAL_TARGETS ? LIST_BRANCHES : v->kind == CPTX_VAL_PROTO ? LIST_CALLS : LIST_NONE;
		if (list && p->k->label[v->id].list != list) {
			parse_error(p, at, CPTX_E_ARG, "'%.64s' is no %s that stands above", p->k->label[v->id].name,
			            list == LIST_CALLS ? ".callprototype or .calltargets" : ".branchtargets");
			return true;
		}
	}
	if (p->ncomment)
		parse_flush_comments(p);
	ir_item *it = ir_append_match(p->k, parse_site(p), m, guard);
	if (!it)
		return parse_out_of_memory(p);
	it->src = (uint32_t)(p->start - p->begin);
	it->src_len = (uint32_t)(p->stop - p->start);
	return true;
}

static bool append_plain(parser *p, const plain_match *r, const tokens *all, cptx_val guard)
{
	uint32_t words[ARCH_OPERANDS];

	for (unsigned i = 0; i < r->head.noperand; i++)
		words[i] = r->words[i] | all->words[r->from[i]];
	if (p->ncomment)
		parse_flush_comments(p);
	ir_item *it = ir_append_like(p->k, parse_site(p), &r->head, words, r->mod);
	if (!it)
		return parse_out_of_memory(p);
	if (guard.kind)
		ir_guard(it, guard);
	it->src = (uint32_t)(p->start - p->begin);
	it->src_len = (uint32_t)(p->stop - p->start);
	return true;
}

/* Reports a wrong spelling.  The operands, if they can be read without an error, help to guess what was meant.  The place in
 * the text does not change. */
static void spelling_error(parser *p, const char *at, const spelled *s)
{
	parser before = *p;
	tokens all;

	begin_tokens(&all, true);
	p->nerror = SIZE_MAX / 2; /* suppresses errors while the operands are read */
	bool whole = parse_operands(p, &all) && *p->p == ';';
	p->p = before.p, p->stop = before.stop;
	p->line = before.line, p->line_start = before.line_start;
	p->nerror = before.nerror;
	p->ncomment = before.ncomment;
	if (p->no_memory)
		return;
	parse_unfold(p, &all);
	for (unsigned i = 0; i < all.n; i++)
		if (all.from[i].unknown)
			all.t[i].v = (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1 };
	parse_spelling_error(p, at, s, whole ? &all : NULL);
}

/* Reads a spelling; returns its forms, or NULL, with an error, if it is no instruction. */
static spelled *read_spelling(parser *p)
{
	char joined[OPCODE_MOST + SPELLING_BEHIND], found[24];
	const char *at = p->p;
	size_t len;
	const char *opcode = read_opcode(p, joined, &len);

	if (!len) {
		parse_error(p, at, CPTX_E_PARSE, "expected an instruction, found %s", parse_found(p, found));
		return NULL;
	}
	spelled *s = parse_spelled(p, opcode, len);
	if (!s || s->nform)
		return s;
	spelling_error(p, at, s);
	return NULL;
}

/* Ends an instruction whose operands were read: finds its form and appends the item. */
static bool finish(parser *p, const char *at, spelled *s, tokens *all, cptx_val guard)
{
	const plain_match *r = all->nplain == all->n ? parse_fit_plain(s, all) : NULL;
	arch_match m;

	if (r)
		return append_plain(p, r, all, guard);
	parse_unfold(p, all);
	if (parse_fit(p, s, all, &m))
		return append(p, at, &m, guard);
	parse_spelling_error(p, at, s, all);
	return true; /* the statement was read to its end, so that no recovery is needed */
}

/* Reads an instruction from its operands on. */
static bool read_rest(parser *p, const char *at, spelled *s, cptx_val guard)
{
	const char *behind = p->stop;
	tokens all;

	begin_tokens(&all, s->takes_list);
	if (!parse_operands(p, &all) || (all.unknown && !name_labels(p, s, &all, behind)))
		return false;
	if (*p->p != ';')
		return parse_error(p, p->stop, CPTX_E_PARSE, NO_SEMICOLON);
	p->stop = ++p->p;
	if (!finish(p, at, s, &all, guard))
		return false;
	parse_blanks_line(p);
	return true;
}

bool parse_instruction(parser *p, spelled *known)
{
	const char *at = p->start;
	cptx_val guard = { 0 };

	if (!known) {
		if (!read_guard(p, &guard))
			return false;
		at = p->p;
		known = parse_known(p);
	}
	if (!known || !known->nform) {
		p->p = at;
		known = read_spelling(p);
	}
	return known && read_rest(p, at, known, guard);
}
