/* SPDX-License-Identifier: MIT */
/* Reads operands of instructions without knowing the form. */
#include "parse/insn.h"
#include "parse/quick.h"

#include <stdio.h>

enum { MOST_ELEMENTS = UINT16_MAX };

cptx_val parse_register_value(const cptx_kernel *k, uint32_t id, uint32_t count)
{
	return (
		cptx_val){ .kind = CPTX_VAL_REG, .type = k->reg[id].type, .count = (uint16_t)count, .owner = k->owner, .id = id };
}

/* The element of a vector that .x, .y, .z and .w, or .r, .g, .b and .a, name; 4: none. */
static uint32_t element_number(const word *w)
{
	const char *which = w->len == 1 ? strchr("xyzwrgba", *w->s) : NULL;
	return which ? (uint32_t)(which - "xyzwrgba") & 3 : 4;
}

/* Reads ".x" behind a vector register, ".b0" behind any register. */
static bool read_suffix(parser *p, cptx_val *v, const binding *b)
{
	const char *at = p->p;
	bool apart = at != p->stop; /* probably the directive behind a forgotten semicolon */
	word w;

	p->p++;
	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected an element (.x) or selector (.b0) behind the dot");
	if (b->kind == NAME_VECTOR && w.len == 1) {
		uint32_t i = element_number(&w);
		if (i >= b->count)
			return parse_error(p, at, CPTX_E_PARSE, "the vector has %u elements", b->count);
		*v = parse_register_value(p->k, b->id + i, 1);
		return true;
	}
	char text[8];
	snprintf(text, sizeof text, "%.*s", (int)MIN(w.len, 7u), w.s);
	*v = cptx_select(*v, text);
	if (v->kind == CPTX_VAL_BAD && apart)
		return parse_error(p, at, CPTX_E_PARSE, "expected ';' or an operand's end in front of '.%.*s'", (int)MIN(w.len, 64u),
		                   w.s);
	return v->kind != CPTX_VAL_BAD ||
	       parse_error(p, at, CPTX_E_PARSE, "'.%.*s' selects nothing of a register; .b0 to .b3, .h0, .h1 and the like do",
	                   (int)MIN(w.len, 64u), w.s);
}

/* Reads %tid, or %tid.x: an element is a special register of its own. */
static bool read_special(parser *p, cptx_val *v, unsigned sreg)
{
	const char *at = p->p;
	char name[40];
	word w;

	*v = cptx_sreg_val((enum cptx_sreg)sreg);
	if (*at != '.' || v->count == 1)
		return true;
	p->p++;
	uint32_t i = parse_word(p, &w) ? element_number(&w) : 4;
	if (i >= v->count)
		return parse_error(p, at, CPTX_E_PARSE, "%s has the elements .x, .y, .z and .w", arch_sregs[sreg].text);
	int n = snprintf(name, sizeof name, "%s.%c", arch_sregs[sreg].text, "xyzw"[i]);
	w = parse_word_of(name, (size_t)n);
	*v = cptx_sreg_val((enum cptx_sreg)names_find(p, &w)->id); /* only special registers have a dot in their names */
	return true;
}

static bool read_long_name(parser *p, cptx_val *v, token *t)
{
	const binding *b = NULL;
	uint32_t reg;
	word w;

	parse_word(p, &w);
	if (w.len == 1 && *w.s == '_') {
		*v = cptx_sink();
		return true;
	}
	reg = names_register(p, &w, &b);
	if (reg != IR_NONE) {
		*v = parse_register_value(p->k, reg, b->kind == NAME_VECTOR ? b->count : 1);
		return *p->p != '.' || read_suffix(p, v, b);
	}
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
	case NAME_SREG: return read_special(p, v, b->id);
	/* kinds that are labels */
	default: *v = (cptx_val){ .kind = CPTX_VAL_LABEL, .count = 1, .owner = p->k->owner, .id = b->id };
	}
	return true;
}

static inline bool read_name(parser *p, cptx_val *v, token *t)
{
	uint32_t reg = names_quick(p);

	if (reg == IR_NONE)
		return read_long_name(p, v, t);
	*v = parse_register_value(p->k, reg, 1);
	return true;
}

static bool read_value(parser *p, cptx_val *v, token *t)
{
	return parse_is_word[(unsigned char)*p->p] == 1 ? read_name(p, v, t) : parse_constant(p, v);
}

/* Reports an undeclared name where a value is needed. */
bool parse_undeclared(parser *p, const token *t)
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

/* Makes one value of consecutive registers of a type, and a VEC of all else. */
static cptx_val vector_value(const cptx_kernel *k, uint32_t first, bool list)
{
	const cptx_val *e = k->vec ? &k->vec[first] : NULL; /* an empty list may come before any element exists */
	uint32_t n = (uint32_t)k->nvec - first;
	cptx_val v = { .kind = list ? CPTX_VAL_LIST : CPTX_VAL_VEC, .count = (uint16_t)n, .owner = k->owner, .id = first };
	const cptx_val *before = NULL;
	bool run = !list;

	for (uint32_t i = 0; i < n; i++) {
		run &= e[i].kind == CPTX_VAL_REG && e[i].id == e[0].id + i && e[i].type == e[0].type && !e[i].negated && !e[i].space;
		if (e[i].kind == CPTX_VAL_INT || e[i].kind == CPTX_VAL_FLOAT)
			v.space |= VEC_CONSTANTS;
		else if (e[i].kind == CPTX_VAL_SINK)
			v.space |= VEC_SINKS;
		else if (!v.type)
			v.type = e[i].type;
		else if (e[i].type != v.type && !list) /* ptxas takes it as a vector of bits */
			v.space |= VEC_VARIED, v.type = (uint8_t)arch_bits_of(v.type);
		if (e[i].kind == CPTX_VAL_SINK)
			continue;
		if (before)
			v.space |= (uint8_t)arch_mixed(before, &e[i], i == 1);
		before = &e[i];
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
			return parse_undeclared(p, &t);
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

static inline bool read_operand(parser *p, tokens *all, unsigned stands);

/* Reads "[a].unified". */
static bool read_behind(parser *p, parse_token *t)
{
	word w;

	if (*p->p != '.')
		return true;
	p->p++;
	if (!parse_word(p, &w))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected a modifier such as .unified behind the address");
	t->behind = w.s;
	t->nbehind = w.len;
	return true;
}

/* ---- plain operands ---- */

enum { STANDS_PIPE = 1, STANDS_INSIDE = 2, STANDS_ADDRESS = 4, SHAPE_BITS = 16 };
_Static_assert(WORD_NUMBER + 3 <= SHAPE_BITS, "kind, type and how it stands");

/* Stores a plain operand as number i. */
static inline void put_plain(tokens *all, unsigned i, uint32_t plain, unsigned stands)
{
	uint64_t shape = (plain & ((1u << WORD_NUMBER) - 1)) | stands << WORD_NUMBER;

	all->words[i] = plain;
	all->shape[i / 4] |= shape << i % 4 * SHAPE_BITS;
	all->nplain++;
}

/* Reads a plain register: returns its word, 0 if there is none. */
static inline uint32_t read_register_word(parser *p)
{
	uint32_t reg = names_quick(p);

	return reg == IR_NONE ? 0 : CPTX_VAL_REG | (uint32_t)p->k->reg[reg].type << WORD_KIND | reg << WORD_NUMBER;
}

/* Reads digits if they are a whole operand and few: returns the word, else 0. */
static inline uint32_t read_integer_word(parser *p)
{
	const char *s = p->p;
	uint32_t v = 0;

	while (*s >= '0' && *s <= '9')
		v = v * 10 + (uint32_t)(*s++ - '0');
	if (s - p->p > 6 || (*p->p == '0' && s - p->p > 1) || !parse_ends_operand(*s))
		return 0;
	p->stop = p->p = s;
	return CPTX_VAL_INT | (v + WORD_ZERO) << WORD_NUMBER;
}
_Static_assert(WORD_ZERO > 999999, "a word holds six digits");

/* Reads operand number i if it is plain and has no brackets. */
static inline bool read_plain(parser *p, tokens *all, unsigned i, unsigned stands)
{
	unsigned char kind = parse_is_word[(unsigned char)*p->p];
	uint32_t plain = kind == 1 ? read_register_word(p) : kind == 3 ? read_integer_word(p) : 0;

	all->words[i] = 0;
	if (plain)
		put_plain(all, i, plain, stands);
	return plain != 0;
}

/* Reads operand number i if it is plain and in brackets, behind the opening one; if it is not plain, a register may have
 * been read into v. */
static bool read_plain_address(parser *p, tokens *all, unsigned i, cptx_val *v)
{
	uint32_t plain = parse_is_word[(unsigned char)*p->p] == 1 ? read_register_word(p) : 0;

	if (!plain)
		return false;
	if (p->p[0] == ']' && p->p[1] != '.') {
		parse_take(p, ']');
		put_plain(all, i, plain, STANDS_ADDRESS);
		return true;
	}
	*v = ir_unpack(&plain, 0, p->k->owner);
	return false;
}

void parse_unfold(const parser *p, tokens *all)
{
	for (unsigned i = 0; i < all->n && i < PLAIN_TOKENS; i++) {
		unsigned stands = (unsigned)(all->shape[i / 4] >> (i % 4 * SHAPE_BITS + WORD_NUMBER));
		if (!all->words[i])
			continue;
		all->t[i] = (parse_token){ .v = ir_unpack(all->words, i, p->k->owner),
			                       .pipe = stands & STANDS_PIPE,
			                       .address = stands & STANDS_ADDRESS,
			                       .inside = stands & STANDS_INSIDE };
		all->from[i].unknown = false;
		if (all->t[i].v.kind == CPTX_VAL_INT)
			all->t[i].v.space = EXACT_CONSTANT;
	}
}

/* ---- any operands ---- */

static bool read_address(parser *p, tokens *all, unsigned i)
{
	parse_token *t = &all->t[i];
	char found[24];

	t->address = true;
	if (i < PLAIN_TOKENS && read_plain_address(p, all, i, &t->v))
		return true;
	if (!t->v.kind && !read_value(p, &t->v, &all->from[i]))
		return false;
	all->unknown |= all->from[i].unknown;
	if ((*p->p == '+' || *p->p == '-') && !all->from[i].unknown) {
		if (!read_offset(p, &t->v))
			return false;
		if (t->v.kind == CPTX_VAL_REG && !t->v.offset)
			t->v.space = PLUS_ZERO;
	}
	while (parse_take(p, ','))
		if (!read_operand(p, all, STANDS_INSIDE))
			return false;
	if (!parse_take(p, ']'))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected ] behind the address, found %s", parse_found(p, found));
	return read_behind(p, t);
}

/* Reads a[4], the element of an array: its value, or its address. */
static bool read_indexed(parser *p, parse_token *t)
{
	const ir_sym *s = ir_symbol(p->k, t->v.id);
	const char *at = p->p;
	int64_t i, bytes = arch_types[s->type].bits / 8;

	parse_take(p, '[');
	if (!s->ndim)
		return parse_error(p, at, CPTX_E_PARSE, "'%s' is no array that an index could follow", s->name);
	if (parse_is_word[(unsigned char)*p->p] == 1)
		return parse_error(p, p->p, CPTX_E_PARSE, "the index is a constant here; compute the address for any other");
	if (!parse_int(p, INT32_MIN / bytes, INT32_MAX / bytes, &i, "an index") || !parse_expect(p, ']', "behind the index"))
		return false;
	t->v = cptx_offset(t->v, i * bytes);
	t->indexed = true;
	return read_behind(p, t);
}
/* Reads !p or -a. */
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

/* Whether another statement begins here, or the text ends. */
static bool ends_here(const parser *p)
{
	return p->p >= p->end || *p->p == '}' || *p->p == '@' || (*p->p == '.' && parse_is_word[(unsigned char)p->p[1]] != 3);
}

/* Reads an operand that is not plain, or for which there is no more room among the plain ones. */
static bool read_any_operand(parser *p, tokens *all, unsigned i)
{
	parse_token *t = &all->t[i];
	char c = *p->p;

	all->from[i].at = p->p;
	all->from[i].unknown = false;
	if (parse_is_word[(unsigned char)c] == 1) {
		if (!read_long_name(p, &t->v, &all->from[i]))
			return false;
		all->unknown |= all->from[i].unknown;
		t->braces = t->v.count > 1 ? BRACES_EITHER : BRACES_NONE; /* a vector register stands without braces */
		if ((*p->p == '+' || *p->p == '-') && (t->v.kind == CPTX_VAL_SYM || t->v.kind == CPTX_VAL_REG))
			return read_offset(p, &t->v);
		return *p->p != '[' || t->v.kind != CPTX_VAL_SYM || t->inside || read_indexed(p, t);
	}
	if (c == '[' && !t->inside)
		return parse_take(p, '[') && read_address(p, all, i);
	t->braces = c == '{' ? BRACES_HERE : BRACES_NONE;
	if (c == '{')
		return parse_take(p, '{') && read_elements(p, &t->v, '}');
	if (c == '(' && all->lists && !t->inside)
		return parse_take(p, '(') && read_elements(p, &t->v, ')');
	if ((c == '!' || c == '-') && parse_is_word[(unsigned char)p->p[1]] == 1 && strncmp(p->p + 1, "WARP_SZ", 7)) {
		bool ok = read_negated(p, &t->v, &all->from[i]);
		all->unknown |= all->from[i].unknown;
		return ok;
	}
	char found[24];
	if (ends_here(p) || !c || !strchr("0123456789.+-!~(", c))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected an operand, found %s", parse_found(p, found));
	return parse_constant(p, &t->v);
}

static inline bool read_operand(parser *p, tokens *all, unsigned stands)
{
	unsigned i = all->n;

	if (i == MOST_TOKENS)
		return parse_error(p, p->p, CPTX_E_FORM, "too many operands");
	all->n++;
	if (i < PLAIN_TOKENS && read_plain(p, all, i, stands)) /* the most frequent case */
		return true;
	all->t[i] = (parse_token){ .pipe = stands & STANDS_PIPE, .inside = stands & STANDS_INSIDE };
	return read_any_operand(p, all, i);
}

bool parse_operands(parser *p, tokens *all)
{
	unsigned stands = 0;

	if (*p->p == ';' || ends_here(p)) /* the semicolon is missing */
		return true;
	for (;;) {
		if (!read_operand(p, all, stands))
			return false;
		if (parse_take(p, ','))
			stands = 0;
		else if (parse_take(p, '|'))
			stands = STANDS_PIPE;
		else
			return true;
	}
}
