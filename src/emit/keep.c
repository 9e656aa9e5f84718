/* SPDX-License-Identifier: MIT */
/*
 * Printing a parsed module as it was read.  Every statement knows its place in the source; the text between two statements
 * (blanks, comments) is copied with the later one.  Edited statements are printed anew in their place; new ones on lines of
 * their own behind the statement in front of them; removed ones take their line with them if nothing else stands there.
 */
#include "emit/emit.h"

#include <stdio.h>

enum { INDENT_MOST = 64 };

typedef struct keeper {
	emitter *e;
	const char *text;
	uint32_t at;               /* place in the source up to which it was copied */
	const ir_span *gone, *end; /* gone: the next removed statement of the part that is printed; end: behind the last */
	bool fresh;                /* a new line was begun, and the source goes on in the middle of a line */
	bool retarget, check;      /* retarget: print for a target other than the text's; check: all of it must be checked */
	const char *eol;
	char indent[INDENT_MOST]; /* indentation of new statements here */
	bool indent_known;
} keeper;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void count_lines(emitter *e, const char *text, size_t n)
{
	for (const char *p = text, *end = text + n; (p = text_find(p, '\n', (size_t)(end - p))); p++)
		e->line++;
}

static bool at_line_start(const keeper *k)
{
	const buf *b = &k->e->out->text;
	return !b->n || b->p[b->n - 1] == '\n';
}

static void put_text(keeper *k, uint32_t to)
{
	if (k->fresh) {
		while (k->at < to && (k->text[k->at] == ' ' || k->text[k->at] == '\t'))
			k->at++;
		if (k->at == to)
			return;
		uint32_t behind = k->at + (k->text[k->at] == '\r');
		k->fresh = false;
		if (k->text[behind] == '\n') /* the line end is printed already */
			k->at = behind + 1;
		else
			buf_str(&k->e->out->text, k->indent);
	}
	if (k->at >= to)
		return;
	buf_put(&k->e->out->text, k->text + k->at, to - k->at);
	count_lines(k->e, k->text + k->at, to - k->at);
	k->at = to;
}

static void skip_gone(keeper *k, const ir_span *gone)
{
	uint32_t from = gone->src, to = from + gone->len, behind = to;

	if (to <= k->at)
		return;
	while (from > k->at && is_blank(k->text[from - 1]))
		from--;
	while (is_blank(k->text[behind]))
		behind++;
	bool first = !from || k->text[from - 1] == '\n' || (from <= k->at && k->fresh), last = k->text[behind] == '\n';
	if (first && last) { /* the statement has the whole line */
		put_text(k, from);
		k->fresh = false;
		k->at = behind + 1;
	} else if (last) {
		put_text(k, from);
		k->at = k->text[behind - 1] == '\r' ? behind - 1 : behind;
	} else {
		put_text(k, gone->src);
		k->at = MAX(k->at, behind);
	}
}

static void copy(keeper *k, uint32_t to)
{
	while (k->gone < k->end && k->gone->src < to)
		skip_gone(k, k->gone++);
	if (to > k->at)
		put_text(k, to);
}

/* Where the line ends, if nothing but comments stands behind what was copied; else 0. */
static uint32_t rest_of_line(const keeper *k)
{
	const char *p = k->text + k->at, *end = k->text + k->e->m->source_size;

	while (p < end && *p != '\n') {
		if (*p == '/' && p[1] == '/') {
			while (p < end && *p != '\n')
				p++;
		} else if (*p == '/' && p[1] == '*') {
			for (p += 2; p < end && *p != '\n' && !(*p == '*' && p[1] == '/'); p++)
				;
			if (p >= end || *p == '\n')
				return 0;
			p += 2;
		} else if (is_blank(*p)) {
			p++;
		} else {
			return 0;
		}
	}
	return p < end ? (uint32_t)(p + 1 - k->text) : 0;
}

/* Begins lines of their own; returns the place in the output where they begin. */
static size_t begin_lines(keeper *k)
{
	buf *b = &k->e->out->text;
	uint32_t end = at_line_start(k) ? 0 : rest_of_line(k);

	if (end)
		copy(k, end);
	if (!at_line_start(k)) {
		buf_str(b, k->eol);
		k->e->line++;
		k->fresh = true;
	} else if (k->at && k->text[k->at - 1] != '\n') {
		k->fresh = true;
	}
	return b->n;
}

/* Gives what was printed from `from` on the source's indentation and line ends. */
static void finish(keeper *k, size_t from, bool in_place)
{
	buf *b = &k->e->out->text, copied;
	bool start = true, first = true;

	if (in_place && b->n > from && b->p[b->n - 1] == '\n')
		b->n--, k->e->line--;
	if (!strcmp(k->indent, "\t") && !k->eol[1] && !(in_place && b->n > from && b->p[from] == '\t'))
		return;
	buf_init(&copied, b->hook);
	buf_put(&copied, b->failed ? "" : b->p + from, b->failed ? 0 : b->n - from);
	b->n = MIN(b->n, from);
	for (size_t i = 0; i < copied.n; i++) {
		char c = copied.p[i];
		if (start && c == '\t')
			buf_str(b, in_place && first ? "" : k->indent);
		else if (c == '\n')
			buf_str(b, k->eol);
		else
			buf_put(b, &c, 1);
		start = c == '\n';
		first &= !start;
	}
	b->failed |= copied.failed;
	buf_free(&copied);
}

/* ---- bodies ---- */

/* Takes the indentation from the blanks in front of a statement of the source. */
static bool indent_like(keeper *k, const ir_item *it)
{
	uint32_t from = it->src, n = 0;

	if (!it->src_len || it->kind == ITEM_LABEL || it->kind == ITEM_COMMENT || it->kind == ITEM_TARGETS ||
	    it->kind == ITEM_PROTO)
		return false;
	while (from && k->text[from - 1] != '\n')
		from--;
	if (from <= k->e->k->src + k->e->k->src_len) /* the statement stands on the line of the brace */
		return false;
	while (n < INDENT_MOST - 1 && (k->text[from + n] == ' ' || k->text[from + n] == '\t'))
		n++;
	memcpy(k->indent, k->text + from, n);
	k->indent[n] = 0;
	return true;
}

/* Finds the indentation for new statements: that of the next statement of the scope, else of the one before. */
static void find_indent(keeper *k, const ir_item *it)
{
	if (k->indent_known)
		return;
	k->indent_known = true;
	for (const ir_item *i = it; i && i->kind != ITEM_END; i = i->next)
		if (indent_like(k, i))
			return;
	for (const ir_item *i = it; i && (i == it || i->kind != ITEM_SCOPE); i = i->prev)
		if (indent_like(k, i))
			return;
	memcpy(k->indent, "\t", 2);
}

static bool print_new(keeper *k, const ir_item *it)
{
	find_indent(k, it);
	size_t from = begin_lines(k);
	if (!emit_item(k->e, it))
		return false;
	finish(k, from, false);
	emit_no_origin(k->e);
	return true;
}

/* Copies the source up to a place where something is printed anew; returns the place in the output. */
static size_t begin_in_place(keeper *k, uint32_t src)
{
	copy(k, src);
	if (k->fresh)
		buf_str(&k->e->out->text, k->indent);
	k->fresh = false;
	return k->e->out->text.n;
}

static bool print_edited(keeper *k, const ir_item *it)
{
	k->indent_known = false;
	find_indent(k, it);
	size_t from = begin_in_place(k, it->src);
	if (!emit_item(k->e, it))
		return false;
	finish(k, from, true);
	k->at = MAX(k->at, it->src + it->src_len);
	return true;
}

static bool copy_item(keeper *k, const ir_item *it)
{
	emitter *e = k->e;

	k->indent_known = false;
	if (it->src >= k->at) {
		copy(k, it->src);
		emit_map_line(e, it);
	}
	copy(k, it->src + it->src_len);
	return !k->check || it->kind != ITEM_INSN || emit_check_insn(e, it);
}

static void keep_head(keeper *k, const cptx_kernel *body)
{
	emitter *e = k->e;
	buf *b = &e->out->text;

	if (!body->edited) {
		copy(k, body->src + body->src_len + 1);
		return;
	}
	size_t from = begin_in_place(k, body->src);
	emit_head_of(e, body);
	if (b->n > from && !b->failed) { /* a line was begun for it already */
		memmove(b->p + from, b->p + from + 1, b->n - from - 1);
		b->n--;
		e->line--;
	}
	buf_str(b, "\n");
	e->line++;
	memcpy(k->indent, "\t", 2);
	finish(k, from, false);
	k->at = body->src + body->src_len;
	copy(k, k->at + 1);
}

static bool keep_body(keeper *k, const ir_top *t)
{
	emitter *e = k->e;
	const cptx_kernel *body = t->k;
	const ir_span *gone = k->gone, *end = k->end;
	unsigned version = e->version;

	e->k = body;
	if (!emit_limits(e, e->out->target) || (body->touched && !emit_name_registers(e)))
		return false;
	if (!k->check && !body->edited) /* print the body as the source has it */
		e->version = version;
	copy(k, t->src);
	emit_no_origin(e);
	keep_head(k, body);
	k->gone = body->gone;
	k->end = body->ngone ? body->gone + body->ngone : body->gone;
	k->indent_known = false;
	if (emit_has_made(body)) {
		find_indent(k, body->first);
		size_t from = begin_lines(k);
		emit_made_registers(e);
		finish(k, from, false);
	}
	for (const ir_item *it = body->first; it; it = it->next) {
		if (it->src == IR_NONE) /* a comment inside of a statement */
			continue;
		bool ok = !it->src_len ? print_new(k, it) : it->flags & ITEM_EDITED ? print_edited(k, it) : copy_item(k, it);
		if (!ok)
			return false;
	}
	copy(k, t->src + t->src_len);
	k->gone = gone;
	k->end = end;
	e->line++;
	emit_no_origin(e);
	e->line--;
	return true;
}

/* ---- the module ---- */

static bool print_top(keeper *k, const ir_top *t)
{
	emitter *e = k->e;
	buf *b = &e->out->text;

	memcpy(k->indent, "\t", 2);
	size_t from = t->src_len ? begin_in_place(k, t->src) : begin_lines(k);
	if (!emit_top(e, t))
		return false;
	if (t->src_len && b->n > from && b->p[from] == '\n') {
		memmove(b->p + from, b->p + from + 1, b->n - from - 1);
		b->n--;
		e->line--;
	}
	finish(k, from, t->src_len != 0);
	k->at = MAX(k->at, t->src + t->src_len);
	return true;
}

static void keep_module_head(keeper *k)
{
	emitter *e = k->e;
	const ir_span *version = &e->m->version_src, *target = &e->m->target_src;

	copy(k, version->src);
	e->kept_version_at = e->out->text.n;
	copy(k, target->src);
	bool options = e->m->target_more != e->m->text_more;
	if (!k->retarget && !options)
		return;
	buf_str(&e->out->text, e->out->target->name);
	k->at = target->src + target->len;
	if (!options)
		return;
	buf_str(&e->out->text, e->m->target_more);
	k->at = e->m->target_end;
}

/* Checks all of the text if the .version rose: a later version may have removed something that the text uses. */
static bool check_rest(emitter *e)
{
	unsigned version = e->version;

	for (const cptx_kernel *k = e->m->first; k; k = k->next) {
		e->k = k;
		for (const ir_item *it = k->first; it; it = it->next)
			if (it->kind == ITEM_INSN && !emit_check_insn(e, it))
				return false;
	}
	e->version = version;
	return true;
}

static bool is_edited(const ir_top *t) { return t->edited || (t->kind == TOP_PROTO && t->k->edited); }

bool emit_kept(emitter *e)
{
	const cptx_module *m = e->m;
	const char *newline = text_find(m->source, '\n', m->source_size);
	keeper k = { .e = e,
		         .text = m->source,
		         .gone = m->gone,
		         .end = m->ngone ? m->gone + m->ngone : m->gone,
		         .retarget = e->out->target != m->text_target,
		         .eol = newline && newline > m->source && newline[-1] == '\r' ? "\r\n" : "\n" };
	bool ok = true;

	k.check = k.retarget || m->version < m->text_version;
	for (const ir_top *t = m->top_first; ok && t; t = t->next) {
		if (t->kind == TOP_COMMENT)
			continue;
		if (t->kind == TOP_HEAD)
			keep_module_head(&k);
		if (t->kind == TOP_BODY && t->src_len)
			ok = keep_body(&k, t);
		else if (!t->src_len || is_edited(t))
			ok = print_top(&k, t);
		else
			copy(&k, t->src + t->src_len);
	}
	copy(&k, (uint32_t)m->source_size);
	unsigned version = MAX(e->version, e->opt->min_version);
	return ok && (k.check || version <= m->text_version || check_rest(e));
}
