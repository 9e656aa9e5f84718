/*
 * Instructions: the spelling picks candidate forms, the operands are read without knowing the form, then they are given to
 * the operands of the first candidate that they fit.
 */
#include "parse/parser.h"

#include <limits.h>
#include <stdio.h>

enum { MOST_TOKENS = 24, MOST_ELEMENTS = UINT16_MAX };

typedef struct token {
	const char *at;
	bool unknown; /* a name that nothing has: a label to come, or an error */
	word name;
} token;

typedef struct tokens {
	parse_token t[MOST_TOKENS];
	token from[MOST_TOKENS]; /* where each stands */
	unsigned n;
	bool lists; /* parentheses hold what a call passes, and no expression */
} tokens;

/* ---- operands ---- */

static cptx_val register_value(const cptx_kernel *k, uint32_t id, uint32_t count)
{
	return (
		cptx_val){ .kind = CPTX_VAL_REG, .type = k->reg[id].type, .count = (uint16_t)count, .owner = k->owner, .id = id };
}

/* ".x" behind a vector register, ".b0" behind any. */
static bool read_suffix(parser *p, cptx_val *v, const binding *b)
{
	const char *at = p->p;
	word w;

	p->p++;
	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected an element (.x) or selector (.b0) behind the dot");
	if (b->kind == NAME_VECTOR && w.len == 1) {
		const char *which = strchr("xyzwrgba", *w.s);
		uint32_t i = which ? (uint32_t)(which - "xyzwrgba") & 3 : 4;
		if (i >= b->count)
			return parse_error(p, at, CPTX_E_PARSE, "the vector has %u elements", b->count);
		*v = register_value(p->k, b->id + i, 1);
		return true;
	}
	char text[8];
	snprintf(text, sizeof text, "%.*s", (int)MIN(w.len, 7u), w.s);
	*v = cptx_select(*v, text);
	return v->kind != CPTX_VAL_BAD ||
	       parse_error(p, at, CPTX_E_PARSE, "'.%.*s' selects nothing of a register; .b0 to .b3, .h0, .h1 and the like do",
	                   (int)MIN(w.len, 64u), w.s);
}

/* %tid.x and its like: the name goes on behind the dot. */
static const binding *find_special(parser *p, word *w)
{
	word more = *w, rest;
	const char *at = p->p;

	if (*w->s != '%' || *p->p != '.' || p->p != w->s + w->len)
		return NULL;
	p->p++;
	if (!parse_word(p, &rest))
		return NULL;
	more = parse_word_of(w->s, w->len + 1 + rest.len);
	const binding *b = names_find(p, &more);
	if (b)
		*w = more;
	else
		p->p = at;
	return b;
}

static bool read_name(parser *p, cptx_val *v, token *t)
{
	const binding *b = NULL;
	word w;

	parse_word(p, &w);
	if (w.len == 1 && *w.s == '_') {
		*v = cptx_sink();
		return true;
	}
	uint32_t reg = names_register(p, &w, &b);
	if (reg != IR_NONE) {
		*v = register_value(p->k, reg, b->kind == NAME_VECTOR ? b->count : 1);
		return *p->p != '.' || p->p[-1] == ' ' || read_suffix(p, v, b);
	}
	if (!b)
		b = find_special(p, &w);
	if (!b && w.len == 7 && !memcmp(w.s, "WARP_SZ", 7)) {
		p->p = w.s;
		return parse_constant(p, v);
	}
	if (!b) {
		t->unknown = true;
		t->name = w;
		return true;
	}
	switch (b->kind) {
	case NAME_SYM: *v = ir_symbol_value(p->m, p->k, b->id); break;
	case NAME_FUNC: *v = ir_func_value(p->m->body[b->id - 1]); break;
	case NAME_SREG: *v = cptx_sreg_val((enum cptx_sreg)b->id); break;
	default: /* a label */ *v = (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1, .owner = p->k->owner, .id = b->id };
	}
	return true;
}

static bool read_value(parser *p, cptx_val *v, token *t)
{
	return parse_is_word[(unsigned char)*p->p] == 1 ? read_name(p, v, t) : parse_constant(p, v);
}

/* The name is none, where a value of any kind is needed. */
static bool undeclared(parser *p, const token *t)
{
	return parse_error(p, t->at, CPTX_E_PARSE, "'%.*s' is not declared", (int)MIN(t->name.len, 200u), t->name.s);
}

static bool read_offset(parser *p, cptx_val *v)
{
	const char *at = p->p;
	int64_t offset;

	if (!parse_take(p, '+'))
		return parse_error(p, at, CPTX_E_PARSE, "an offset is added: write +-4 for -4");
	if (!parse_int(p, INT32_MIN, INT32_MAX, &offset, "an offset"))
		return false;
	cptx_val moved = v->kind == CPTX_VAL_INT ? cptx_val_int_(v->i + offset) : cptx_offset(*v, offset);
	if (moved.kind == CPTX_VAL_BAD)
		return parse_error(p, at, CPTX_E_PARSE, "only a register or a variable has an offset");
	*v = moved;
	return true;
}

/* Consecutive registers of a type are one value; anything else is a VEC. */
static cptx_val vector_value(const cptx_kernel *k, uint32_t first, bool list)
{
	const cptx_val *e = k->vec ? &k->vec[first] : NULL; /* an empty list may be the first */
	uint32_t n = (uint32_t)k->nvec - first;
	cptx_val v = { .kind = list ? CPTX_VAL_LIST : CPTX_VAL_VEC, .count = (uint16_t)n, .owner = k->owner, .id = first };
	bool run = !list;

	for (uint32_t i = 0; i < n; i++) {
		run &= e[i].kind == CPTX_VAL_REG && e[i].id == e[0].id + i && e[i].type == e[0].type && !e[i].negated && !e[i].space;
		if (e[i].kind == CPTX_VAL_INT || e[i].kind == CPTX_VAL_FLOAT)
			v.space |= VEC_CONSTANTS;
		else if (e[i].kind == CPTX_VAL_SINK)
			v.space |= VEC_SINKS;
		else if (!v.type)
			v.type = e[i].type;
	}
	if (list)
		v.type = 0, v.space = 0;
	if (!run)
		return v;
	v = e[0];
	v.count = (uint16_t)n;
	return v;
}

static bool read_elements(parser *p, cptx_val *v, char close)
{
	cptx_kernel *k = p->k;
	uint32_t first = (uint32_t)k->nvec;
	bool list = close == ')';

	for (bool more = !(list && *p->p == ')'); more; more = parse_take(p, ',')) {
		token t = { .at = p->p };
		cptx_val e;
		if (!read_value(p, &e, &t))
			return false;
		if (t.unknown)
			return undeclared(p, &t);
		if (k->nvec - first == MOST_ELEMENTS)
			return parse_error(p, t.at, CPTX_E_LIMIT, "more than %d elements", MOST_ELEMENTS);
		if (!list && e.kind != CPTX_VAL_REG && e.kind != CPTX_VAL_INT && e.kind != CPTX_VAL_FLOAT && e.kind != CPTX_VAL_SINK)
			return parse_error(p, t.at, CPTX_E_PARSE, "an element of a vector is a register or a constant");
		if (list && e.kind == CPTX_VAL_FLOAT && !e.type)
			e.type = CPTX_F64;
		if (!list && e.kind == CPTX_VAL_REG && k->nvec > first && k->vec[k->nvec - 1].kind == CPTX_VAL_REG &&
		    arch_types[e.type].bits != arch_types[k->vec[k->nvec - 1].type].bits)
			return parse_error(p, t.at, CPTX_E_FORM, "the elements of a vector have one width; this one is .%s",
			                   arch_mods[e.type].name);
		if (!arena_push(&k->m->a, &k->vec, k->nvec, &k->cap_vec, sizeof *k->vec))
			return parse_out_of_memory(p);
		k->vec[k->nvec++] = e;
	}
	if (!parse_expect(p, close, list ? "behind the list" : "behind the vector"))
		return false;
	*v = vector_value(k, first, list);
	if (v->kind == CPTX_VAL_REG)
		k->nvec = first;
	return true;
}

static bool read_operand(parser *p, tokens *all, bool pipe, bool inside);

static bool read_address(parser *p, tokens *all, unsigned i)
{
	parse_token *t = &all->t[i];
	char found[24];
	word w;

	t->address = true;
	if (!read_value(p, &t->v, &all->from[i]))
		return false;
	if ((*p->p == '+' || *p->p == '-') && !all->from[i].unknown && !read_offset(p, &t->v))
		return false;
	while (parse_take(p, ','))
		if (!read_operand(p, all, false, true))
			return false;
	if (!parse_take(p, ']'))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected ] behind the address, found %s", parse_found(p, found));
	if (*p->p != '.')
		return true;
	p->p++;
	if (!parse_word(p, &w))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected a modifier such as .unified behind the address");
	t->behind = w.s;
	t->nbehind = w.len;
	return true;
}

/* !p or -a */
static bool read_negated(parser *p, cptx_val *v, token *from)
{
	bool minus = *p->p == '-';

	parse_take(p, *p->p);
	if (!read_name(p, v, from) || from->unknown)
		return from->unknown;
	if (v->kind == CPTX_VAL_REG && minus == (v->type == CPTX_PRED))
		return parse_error(p, from->at, CPTX_E_FORM,
		                   minus ? "a predicate is negated by !" : "only a predicate is negated by !");
	*v = cptx_negated(*v);
	return v->kind != CPTX_VAL_BAD || parse_error(p, from->at, CPTX_E_FORM, "only registers are negated");
}

static bool read_operand(parser *p, tokens *all, bool pipe, bool inside)
{
	if (all->n == MOST_TOKENS)
		return parse_error(p, p->p, CPTX_E_FORM, "too many operands");
	unsigned i = all->n++;
	parse_token *t = &all->t[i];
	unsigned char c = (unsigned char)*p->p;

	*t = (parse_token){ .pipe = pipe, .inside = inside };
	all->from[i] = (token){ .at = p->p };
	if (parse_is_word[c] == 1) {
		if (!read_name(p, &t->v, &all->from[i]))
			return false;
		t->braces = t->v.count > 1 ? BRACES_EITHER : BRACES_NONE; /* a vector register has none */
		if ((*p->p == '+' || *p->p == '-') && (t->v.kind == CPTX_VAL_SYM || t->v.kind == CPTX_VAL_REG))
			return read_offset(p, &t->v);
		return true;
	}
	if (c == '[' && !inside)
		return parse_take(p, '[') && read_address(p, all, i);
	t->braces = c == '{' ? BRACES_HERE : BRACES_NONE;
	if (c == '{')
		return parse_take(p, '{') && read_elements(p, &t->v, '}');
	if (c == '(' && all->lists && !inside)
		return parse_take(p, '(') && read_elements(p, &t->v, ')');
	if ((c == '!' || c == '-') && parse_is_word[(unsigned char)p->p[1]] == 1 && strncmp(p->p + 1, "WARP_SZ", 7))
		return read_negated(p, &t->v, &all->from[i]);
	return parse_constant(p, &t->v);
}

static bool read_operands(parser *p, tokens *all)
{
	bool pipe = false;

	if (*p->p == ';')
		return true;
	for (;;) {
		if (!read_operand(p, all, pipe, false))
			return false;
		if (parse_take(p, ','))
			pipe = false;
		else if (parse_take(p, '|'))
			pipe = true;
		else
			return true;
	}
}

/* ---- matching ---- */

/* The operands of a form, as insn.def writes them. */
static const char *operands_of(unsigned form)
{
	const char *p = arch_forms[form].text;
	int inside = 0; /* < >: blanks of availabilities */

	for (; *p && (inside || *p != ' '); p++)
		inside += *p == '<' ? 1 : *p == '>' ? -1 : 0;
	return p;
}

static bool operand_error(parser *p, const char *at, const spelled *s, const tokens *all)
{
	int len = (int)MIN(s->len, 200u);
	arch_match m;
	buf why;

	buf_init(&why, &p->m->a.hook);
	for (unsigned i = 0; i < s->nform; i++) {
		const spelled_form *f = &s->form[i];
		buf_str(&why, s->nform > 1 ? "\n    " : "");
		parse_match(f->form, f->mods, all->t, all->n, p->k->vec, &m, &why);
		buf_printf(&why, s->nform > 1 ? "; it is %.*s%s" : "; write %.*s%s", len, s->text, operands_of(f->form));
	}
	buf_put(&why, "", 1);
	if (why.failed)
		parse_out_of_memory(p);
	else
		parse_error(p, at, CPTX_E_FORM, "%.*s: %s%s", len, s->text, s->nform > 1 ? "no form takes these operands" : "",
		            why.p);
	buf_free(&why);
	return false;
}

/* Names that nothing has yet become labels where the instruction takes one. */
static bool name_labels(parser *p, const spelled *s, tokens *all)
{
	for (unsigned i = 0; i < all->n; i++) {
		token *from = &all->from[i];
		if (!from->unknown)
			continue;
		if (!s->takes_label || all->t[i].address)
			return undeclared(p, from);
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
	const binding *b;
	word w;

	*guard = (cptx_val){ 0 };
	if (!parse_take(p, '@'))
		return true;
	bool negated = parse_take(p, '!');
	at = p->p;
	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected a predicate register behind @");
	uint32_t reg = names_register(p, &w, &b);
	if (reg == IR_NONE || p->k->reg[reg].type != CPTX_PRED)
		return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no predicate register%s", (int)MIN(w.len, 200u), w.s,
		                   b || reg != IR_NONE ? "" : "; it is not declared");
	*guard = register_value(p->k, reg, 1);
	guard->negated = negated;
	return true;
}

static inline bool in_spelling(const char *s)
{
	return parse_is_word[(unsigned char)*s] || *s == '.' || (*s == ':' && (s[1] == ':' || s[-1] == ':'));
}

/* The spelling, "ld.global.v4.f32"; blanks may stand in front of a dot. */
static const char *read_opcode(parser *p, char joined[256], size_t *len, uint32_t *hash)
{
	const char *s = p->p, *from = s;
	uint32_t h = HASH_START;

	for (; in_spelling(s); s++)
		h = parse_hash(h, *s);
	*len = (size_t)(s - from);
	*hash = h;
	p->stop = p->p = s;
	parse_blanks(p);
	if (*p->p != '.')
		return from;
	size_t n = MIN(*len, (size_t)255);
	memcpy(joined, from, n);
	while (*p->p == '.') {
		for (s = p->p; in_spelling(s); s++)
			if (n < 255)
				joined[n++] = *s;
		p->stop = p->p = s;
		parse_blanks(p);
	}
	*len = n;
	*hash = parse_word_of(joined, n).hash;
	return joined;
}

/* ---- the last match again ---- */

static uint64_t token_key(const parse_token *t)
{
	return arch_value_key(&t->v) ^ (uint64_t)(t->pipe | t->address << 1 | t->inside << 2 | t->braces << 3) << 56;
}

/* The operands of text, in order, are those of the form that are there. */
static void remember(parser *p, spelled *s, const tokens *all, const arch_match *m)
{
	const arch_form *f = &arch_forms[m->form];
	unsigned t = 0;

	for (unsigned i = 0; i < all->n; i++)
		if (all->t[i].behind)
			return;
	if (all->n > REMEMBERED_TOKENS || (!s->last && !(s->last = arena_zalloc(&p->m->a, sizeof *s->last))))
		return;
	s->last->m = *m;
	s->last->ntoken = all->n;
	for (unsigned i = 0; i < all->n; i++)
		s->last->key[i] = token_key(&all->t[i]);
	for (unsigned i = 0; i < f->noperand; i++) {
		bool there = m->operand[i].kind != CPTX_VAL_NONE && arch_operands[f->operand + i].kind != OPERAND_NOWHERE;
		s->last->token[i] = there ? (uint8_t)++t : 0;
	}
	if (t != all->n)
		s->last->ntoken = UINT_MAX; /* never again */
}

/* The match of the same spelling with operands of the same kinds, with these; NULL if there is none. */
static const arch_match *again(parser *p, const spelled *s, const tokens *all)
{
	remembered *last = s->last;
	uint64_t differs = 0;

	if (!last || last->ntoken != all->n)
		return NULL;
	for (unsigned i = 0; i < all->n; i++)
		differs |= last->key[i] ^ token_key(&all->t[i]);
	if (differs)
		return NULL;
	for (unsigned i = 0; i < last->m.noperand; i++) {
		if (!last->token[i])
			continue;
		unsigned kind = last->m.operand[i].kind;
		last->m.operand[i] = all->t[last->token[i] - 1].v;
		if (kind == CPTX_VAL_TARGETS || kind == CPTX_VAL_PROTO)
			last->m.operand[i].kind = (uint8_t)kind;
	}
	if (arch_match_again(&last->m, p->k->vec))
		return &last->m;
	last->ntoken = UINT_MAX; /* its operands are half changed */
	return NULL;
}

static const arch_match *find_match(parser *p, spelled *s, const tokens *all, arch_match *m)
{
	const arch_match *known = again(p, s, all);

	for (unsigned i = 0; i < s->nform && !known; i++)
		if (parse_match(s->form[i].form, s->form[i].mods, all->t, all->n, p->k->vec, m, NULL)) {
			remember(p, s, all, m);
			known = m;
		}
	return known;
}

static bool append(parser *p, const char *at, const arch_match *m, cptx_val guard)
{
	char why[160];

	if (!ir_fits(p->k, m, why)) {
		parse_error(p, at, CPTX_E_ARG, "%s: %s", ir_op_name(arch_forms[m->form].op), why);
		return true;
	}
	for (unsigned i = 0; i < m->noperand; i++) {
		const cptx_val *v = &m->operand[i];
		bool list = v->kind == CPTX_VAL_TARGETS || v->kind == CPTX_VAL_PROTO;
		if (list && !p->k->label[v->id].is_list) {
			parse_error(p, at, CPTX_E_ARG, "'%.64s' is no list or prototype that stands above", p->k->label[v->id].name);
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

bool parse_instruction(parser *p)
{
	char joined[256], found[24];
	cptx_val guard;
	arch_match m;
	uint32_t hash;
	tokens all;
	size_t len;

	all.n = 0;
	if (!read_guard(p, &guard))
		return false;
	const char *at = p->p, *opcode = read_opcode(p, joined, &len, &hash);
	if (!len)
		return parse_error(p, at, CPTX_E_PARSE, "expected an instruction, found %s", parse_found(p, found));
	spelled *s = parse_spelled(p, opcode, len, hash);
	if (!s)
		return false;
	if (!s->nform)
		return parse_spelling_error(p, at, s);
	all.lists = s->takes_list;
	if (!read_operands(p, &all) || !name_labels(p, s, &all))
		return false;
	if (*p->p != ';')
		return parse_error(p, p->stop, CPTX_E_PARSE, "expected ';' behind the instruction");
	p->stop = ++p->p;
	const arch_match *match = find_match(p, s, &all, &m);
	bool ok = match ? append(p, at, match, guard) : (operand_error(p, at, s, &all), true); /* it was read whole */
	if (ok)
		parse_blanks(p);
	return ok;
}
