/* SPDX-License-Identifier: MIT */
/* Bodies: reads the statements between braces; each becomes an item. */
#include "parse/parser.h"

#include <stdio.h>

/* Adds one line of a comment to the body or the module; a comment inside of a statement has no place of its own in the
 * source. */
static bool add_comment(parser *p, const comment *c, cptx_site at, const char *text)
{
	bool inside = c->at >= p->start && c->at < p->stop;
	uint32_t src = (uint32_t)(c->at - p->begin), len = inside ? 0 : (uint32_t)c->len;

	if (p->k && p->k->has_body) {
		uint32_t id = ir_add_text(p->k, text);
		cptx_val v = cptx_val_int_(id);
		ir_item *it = id == IR_NONE ? NULL : ir_append(p->k, at, ITEM_COMMENT, &v, 1, NULL, 0);
		if (!it)
			return parse_out_of_memory(p);
		it->src = inside ? IR_NONE : src;
		it->src_len = len;
		return true;
	}
	ir_top *t = ir_top_append(p->m, TOP_COMMENT);
	if (!t)
		return parse_out_of_memory(p);
	t->text = text;
	t->src = src;
	t->src_len = len;
	return true;
}

/* Blanks and control bytes, which comments have blanks in place of. */
static bool shows_nothing(char c) { return (unsigned char)c <= ' ' || c == 0x7f; }

/* Adds each line of a comment as a line comment, without the blanks around it. */
static bool add_lines(parser *p, const comment *c)
{
	const char *s = c->at + 2, *end = c->at + c->len - (c->at[1] == '*' ? 2 : 0), *next;
	cptx_site at = { p->file, c->line };

	do {
		const char *stop = text_find(s, '\n', (size_t)(end - s));
		next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		while (s < stop && shows_nothing(*s))
			s++;
		while (stop > s && shows_nothing(stop[-1]))
			stop--;
		size_t n = (size_t)(stop - s);
		char *text = ARENA_ARRAY(&p->m->a, char, n + 1);
		if (!text)
			return parse_out_of_memory(p);
		for (size_t i = 0; i < n; i++) /* a NUL would end the C string, others control the terminal that shows it */
			text[i] = s[i] != '\t' && shows_nothing(s[i]) ? ' ' : s[i];
		text[n] = 0;
		if (!add_comment(p, c, at, text))
			return false;
		s = next;
		at.line++;
	} while (s < end);
	return true;
}

/* Adds the comments in front of p->stop; later ones wait for the next statement. */
void parse_flush_comments(parser *p)
{
	size_t n = 0;

	if (!p->ncomment)
		return;
	while (n < p->ncomment && p->comments[n].at < p->stop)
		n++;
	for (size_t i = 0; i < n; i++)
		if (p->no_memory || !add_lines(p, &p->comments[i]))
			break;
	memmove(p->comments, p->comments + n, (p->ncomment - n) * sizeof *p->comments);
	p->ncomment -= n;
}

static void place(const parser *p, uint32_t *src, uint32_t *len)
{
	*src = (uint32_t)(p->start - p->begin);
	*len = (uint32_t)(p->stop - p->start);
}

ir_item *parse_item(parser *p, enum ir_item_kind kind, const cptx_val *operand, unsigned noperand)
{
	parse_flush_comments(p);
	ir_item *it = p->no_memory ? NULL : ir_append(p->k, parse_site(p), kind, operand, noperand, NULL, 0);
	if (!it) {
		parse_out_of_memory(p);
		return NULL;
	}
	place(p, &it->src, &it->src_len);
	return it;
}

ir_top *parse_top(parser *p, enum ir_top_kind kind)
{
	parse_flush_comments(p);
	ir_top *t = p->no_memory ? NULL : ir_top_append(p->m, kind);
	if (!t) {
		parse_out_of_memory(p);
		return NULL;
	}
	place(p, &t->src, &t->src_len);
	return t;
}

/* ---- labels ---- */

static bool place_label(parser *p, const word *w)
{
	cptx_kernel *k = p->k;
	binding *b = names_find(p, w);
	uint32_t id;

	bool here = b && b->kind == NAME_LABEL && (size_t)(b - p->names.bound) >= p->names.scope[p->names.nscope - 1].first;
	if (here && !b->pending)
		return parse_error(p, w->s, CPTX_E_PARSE, "label '%.*s' stands twice in this scope", (int)MIN(w->len, 64u), w->s);
	if (here) {
		id = b->id;
		b->pending = 0;
	} else {
		if (!arena_push(&k->m->a, &k->label, k->nlabel, &k->cap_label, sizeof *k->label))
			return parse_out_of_memory(p);
		id = (uint32_t)k->nlabel;
		b = names_bind(p, w, NAME_LABEL, id, 1);
		if (!b)
			return false;
		k->label[k->nlabel++] = (ir_label){ .name = names_text(p, b) };
	}
	k->label[id].placed = 1;
	return parse_item(p, ITEM_LABEL, CPTX_OPT_(cptx_val, .kind = CPTX_VAL_LABEL, .count = 1, .owner = k->owner, .id = id),
	                  1);
}

static uint32_t final_label(const cptx_kernel *k, uint32_t id)
{
	while (k->label[id].same_as)
		id = k->label[id].same_as - 1;
	return id;
}

/* Checks that branches go to a place, and not to the name of a list or prototype. */
static void check_branches(parser *p, const ir_item *it)
{
	const cptx_kernel *k = p->k;
	cptx_val operand[ARCH_OPERANDS], *v = operand;
	size_t n = it->noperand;

	ir_operands(k, it, operand);
	if (it->kind == ITEM_TARGETS) {
		n = v[1].count;
		v = &k->vec[v[1].id];
	} else if (it->kind != ITEM_INSN) {
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == CPTX_VAL_LABEL && k->label[v[i].id].list)
			parse_error(p, p->begin + it->src, CPTX_E_PARSE,
			            "'%.64s' is the name of a list or prototype, and no place to go to", k->label[v[i].id].name);
}

static bool relabel(cptx_kernel *k)
{
	const cptx_allocator *h = &k->m->a.hook;
	uint32_t *as = HEAP_ARRAY(h, uint32_t, NULL, k->nlabel);

	for (uint32_t i = 0; as && i < k->nlabel; i++)
		as[i] = final_label(k, i);
	bool ok = as && ir_relabel(k, as);
	if (as)
		heap_realloc(h, as, 0);
	return ok;
}

/* Resolves labels at the end of a body: labels that inner scopes used are joined with those of outer ones; all must be
 * placed. */
static void resolve_labels(parser *p)
{
	cptx_kernel *k = p->k;
	bool any = false, lists = false;

	for (size_t i = 0; i < k->nlabel; i++) {
		any |= k->label[i].same_as != 0;
		lists |= k->label[i].list != LIST_NONE;
	}
	if (any && !relabel(k)) {
		parse_out_of_memory(p);
		return;
	}
	for (size_t i = 0; i < k->nlabel; i++) {
		ir_label *l = &k->label[final_label(k, (uint32_t)i)];
		l->used |= k->label[i].used;
		if (!k->label[i].same_as && !l->placed)
			parse_error(p, p->begin + l->src, CPTX_E_PARSE, "'%.64s' is neither declared nor a label of '%s'", l->name,
			            k->name);
	}
	for (const ir_item *it = lists ? k->first : NULL; it; it = it->next)
		check_branches(p, it);
}

/* ---- directives ---- */

static bool text_item(parser *p, enum ir_item_kind kind, const char *from, const char *to)
{
	const char *text = parse_collapse(p, from, to);
	uint32_t id = text ? ir_add_text(p->k, text) : IR_NONE;
	cptx_val v = cptx_val_int_(id);

	return id == IR_NONE ? parse_out_of_memory(p) : parse_item(p, kind, &v, 1) != NULL;
}

/* Reads .loc 1 20 5 [, function_name label [+ number], inlined_at 1 30 7]. */
static bool read_loc(parser *p)
{
	int64_t v;
	word w;

	for (int i = 0; i < 3; i++)
		if (!parse_int(p, 0, UINT32_MAX, &v, "a file, line or column of .loc"))
			return false;
	while (parse_take(p, ',')) {
		if (!parse_word(p, &w))
			return parse_error(p, p->p, CPTX_E_PARSE, "expected function_name or inlined_at in .loc");
		if (*w.s == 'f')
			parse_needs(p, w.s, DIR_INLINED);
		if (w.len == 10 && !memcmp(w.s, "inlined_at", 10)) {
			for (int i = 0; i < 3; i++)
				if (!parse_int(p, 0, UINT32_MAX, &v, "a file, line or column of .loc"))
					return false;
		} else if (w.len != 13 || memcmp(w.s, "function_name", 13) || !parse_word(p, &w)) {
			return parse_error(p, w.s, CPTX_E_PARSE, "expected function_name LABEL or inlined_at in .loc");
		} else if (parse_take(p, '+') && !parse_int(p, 0, UINT32_MAX, &v, "an offset")) {
			return false;
		}
	}
	return text_item(p, ITEM_TEXT, p->start, p->stop);
}

/* Takes the label right in front as the name of a list or prototype, and removes its item. */
static bool take_label(parser *p, enum ir_list list, cptx_val *label)
{
	ir_item *last = p->k->last;

	if (!last || last->kind != ITEM_LABEL)
		return parse_error(p, p->start, CPTX_E_PARSE,
		                   "this directive needs a label in front of it, name: .branchtargets ...");
	*label = ir_operand(p->k, last, 0);
	p->start = p->begin + last->src;
	p->k->label[label->id].list = (uint8_t)list;
	ir_unlink(p->k, last);
	return true;
}

static bool read_targets(parser *p, bool calls)
{
	cptx_kernel *k = p->k;
	cptx_val label, list = { .kind = CPTX_VAL_LIST, .owner = k->owner, .id = (uint32_t)k->nvec };
	char found[24];
	word w;

	if (!take_label(p, calls ? LIST_CALLS : LIST_BRANCHES, &label))
		return false;
	do {
		cptx_val v = { .kind = CPTX_VAL_LABEL, .count = 1, .owner = k->owner };
		const char *at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of a %s, found %s", calls ? "function" : "label",
			                   parse_found(p, found));
		const binding *b = calls ? names_find(p, &w) : NULL;
		if (calls && (!b || b->kind != NAME_FUNC))
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no function that is declared above", (int)MIN(w.len, 64u),
			                   w.s);
		if (calls)
			v = ir_func_value(p->m->body[b->id - 1]);
		else if ((v.id = names_label(p, &w)) == IR_NONE)
			return false;
		else
			k->label[v.id].used = 1;
		if (list.count == UINT16_MAX)
			return parse_error(p, at, CPTX_E_LIMIT, "a list has at most 65535 targets");
		if (!arena_push(&k->m->a, &k->vec, k->nvec, &k->cap_vec, sizeof *k->vec))
			return parse_out_of_memory(p);
		k->vec[k->nvec++] = v;
		list.count++;
	} while (parse_take(p, ','));
	if (!parse_expect(p, ';', "behind the targets"))
		return false;
	k->calls |= calls;
	cptx_val operands[] = { label, list };
	return parse_item(p, ITEM_TARGETS, operands, 2);
}

static bool read_prototype(parser *p)
{
	cptx_val label;

	if (!take_label(p, LIST_CALLS, &label))
		return false;
	cptx_kernel *f = ir_body_new(p->m, parse_site(p), "_");
	if (!f)
		return parse_out_of_memory(p);
	f->is_func = f->is_proto = f->closed = true;
	if (!parse_signature(p, f) || !parse_expect(p, ';', "behind the prototype"))
		return false;
	p->k->label[label.id].proto = f->number;
	cptx_val operands[] = { label, ir_func_value(f) };
	return parse_item(p, ITEM_PROTO, operands, 2);
}

static bool read_pragma(parser *p) { return parse_pragma(p, PRAGMA_BODY) && text_item(p, ITEM_TEXT, p->start, p->stop); }

static bool body_directive(parser *p)
{
	static const char *const linkages[] = { "extern", "visible", "weak", "common" };
	const char *at = p->p;

	if (parse_directive(p, "reg"))
		return parse_registers(p);
	if (parse_directive(p, "loc"))
		return read_loc(p);
	if (parse_listed(p, DIR_PRAGMA))
		return read_pragma(p);
	if (parse_listed(p, DIR_BRANCHTARGETS))
		return read_targets(p, false);
	if (parse_listed(p, DIR_CALLTARGETS))
		return read_targets(p, true);
	if (parse_listed(p, DIR_CALLPROTOTYPE))
		return read_prototype(p);
	unsigned linkage = LINK_NONE;
	for (unsigned i = 0; i < ARRAY_LEN(linkages); i++)
		if (parse_directive(p, linkages[i]))
			linkage = LINK_EXTERN + i;
	const char *space = p->p;
	if (parse_space(p)) {
		p->p = space;
		return parse_variables(p, linkage);
	}
	size_t n = strcspn(at, " \t\r\n;{");
	return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no directive of a body%s", (int)MIN(n, (size_t)40), at,
	                   n && at[n - 1] == ':' ? "; the name of a label begins with a letter, _, $ or %" : "");
}

/* ---- statements ---- */

/* Skips the rest of a wrong statement: to behind the semicolon, or in front of the brace that closes the scope. */
static void recover(parser *p)
{
	size_t depth = 0; /* depth of the statement's own braces */

	for (const char *at = p->start; at < p->p; at++)
		if (*at == '{')
			depth++;
		else if (*at == '}' && depth)
			depth--;
	for (; p->p < p->end; p->p++) {
		if (*p->p == '\n') {
			p->line++;
			p->line_start = p->p + 1;
			const char *next = p->p + 1 + strspn(p->p + 1, " \t\r");
			/* the semicolon is missing: another statement begins on this line */
			if (!depth && (*next == '.' || *next == '@' || *next == '}' || *next == '/'))
				break;
		}
		if (*p->p == ';') {
			p->p++;
			break;
		}
		depth += *p->p == '{';
		if (*p->p == '}' && depth-- == 0)
			break;
	}
	parse_blanks(p);
}

static bool statement(parser *p)
{
	word w;

	if (*p->p == '@')
		return parse_instruction(p, NULL);
	if (*p->p == '.')
		return body_directive(p);
	if (parse_take(p, '{'))
		return names_enter(p) && parse_item(p, ITEM_SCOPE, NULL, 0);
	if (parse_is_word[(unsigned char)*p->p] == 1) {
		spelled *known = parse_known(p);
		if (known)
			return parse_instruction(p, known);
		const char *end = parse_dotted(p->p), *colon = end;
		while (*colon == ' ' || *colon == '\t')
			colon++;
		if (*colon != ':' || colon[1] == ':' || text_find(p->p, '.', (size_t)(end - p->p)))
			return parse_instruction(p, NULL);
		parse_word(p, &w);
		parse_take(p, ':');
		return place_label(p, &w);
	}
	char found[24];
	parse_error(p, p->p, CPTX_E_PARSE, "expected an instruction, a label or a directive, found %s", parse_found(p, found));
	if (p->p < p->end && *p->p != '}')
		p->p++;
	return false;
}

void parse_body(parser *p)
{
	size_t depth = 1;

	while (p->p < p->end) {
		p->start = p->p;
		p->start_line = p->line;
		if (*p->p != '}') {
			if (!statement(p))
				recover(p);
			else if (p->start[0] == '{')
				depth++;
			continue;
		}
		p->stop = p->p + 1;
		if (--depth == 0) {
			if (p->ncomment)
				parse_flush_comments(p);
			parse_take(p, '}');
			resolve_labels(p);
			if (!ir_trim(p->k))
				parse_out_of_memory(p);
			return;
		}
		names_leave(p);
		parse_take(p, '}');
		parse_item(p, ITEM_END, NULL, 0);
	}
	if (!p->no_memory)
		parse_error(p, p->end, CPTX_E_PARSE, "the body of '%s' is never closed; a } is missing", p->k->name);
}
