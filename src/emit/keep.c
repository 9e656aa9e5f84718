/*
 * Printing a parsed module as it stood.  Every statement knows its place in the text; what lies between two of them (blanks,
 * comments) belongs to the later one.  What was not edited is copied, what was added or edited is printed in its normal
 * form, what was removed goes with the blanks in front of it.
 */
#include "emit/emit.h"

typedef struct keeper {
	emitter *e;
	uint32_t at;                       /* how far the text was copied */
	const ir_span *removed, *nremoved; /* of the body: the next one, and behind the last */
} keeper;

static void count_lines(emitter *e, const char *text, size_t n)
{
	for (const char *p = text, *end = text + n; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		e->line++;
}

static void copy_text(keeper *k, uint32_t to)
{
	const char *from = k->e->m->source + k->at;

	if (to <= k->at)
		return;
	buf_put(&k->e->out->text, from, to - k->at);
	count_lines(k->e, from, to - k->at);
	k->at = to;
}

/* A removed statement takes its line with it if nothing else stands there. */
static void skip_removed(keeper *k, const ir_span *gone)
{
	const char *text = k->e->m->source;
	uint32_t from = gone->src, to = gone->src + gone->len;

	while (from > k->at && (text[from - 1] == ' ' || text[from - 1] == '\t'))
		from--;
	uint32_t behind = to;
	while (text[behind] == ' ' || text[behind] == '\t' || text[behind] == '\r')
		behind++;
	bool whole_line = (from == k->at || text[from - 1] == '\n') && text[behind] == '\n';
	copy_text(k, whole_line ? from : gone->src);
	k->at = MAX(k->at, whole_line ? behind + 1 : to);
}

static void copy(keeper *k, uint32_t to)
{
	while (k->removed < k->nremoved && k->removed->src < to)
		skip_removed(k, k->removed++);
	copy_text(k, to);
}

/* A statement that stands nowhere in the text: on lines of its own, behind what was copied. */
static bool print_new(keeper *k, const ir_item *it)
{
	buf *b = &k->e->out->text;

	if (b->n && b->p[b->n - 1] != '\n') {
		buf_put(b, "\n", 1);
		k->e->line++;
	}
	if (!emit_item(k->e, it))
		return false;
	if (b->n && b->p[b->n - 1] == '\n') { /* the text goes on with its own */
		b->n--;
		k->e->line--;
	}
	return true;
}

/* An edited statement, in the place of what it was. */
static bool print_edited(keeper *k, const ir_item *it)
{
	buf *b = &k->e->out->text;

	copy(k, it->src);
	size_t from = b->n;
	if (!emit_item(k->e, it))
		return false;
	if (b->n > from && b->p[b->n - 1] == '\n')
		b->n--, k->e->line--;
	if (b->n > from && b->p[from] == '\t') {
		memmove(b->p + from, b->p + from + 1, b->n - from - 1);
		b->n--;
	}
	k->at = it->src + it->src_len;
	return true;
}

static bool keep_body(keeper *k, const ir_top *t)
{
	emitter *e = k->e;
	const cptx_kernel *body = t->k;
	uint32_t end = t->src + t->src_len;

	e->k = body;
	k->removed = body->removed;
	k->nremoved = body->nremoved ? body->removed + body->nremoved : NULL;
	if (!emit_limits(e, e->out->target) || !emit_name_registers(e))
		return false;
	if (body->edited) {
		copy(k, body->src);
		emit_head_of(e, body);
		buf_put(&e->out->text, "\n{", 2);
		k->at = body->src + body->src_len + 1;
	} else {
		copy(k, body->src + body->src_len + 1);
	}
	for (unsigned c = 0; c < CLASS_COUNT && body->ndecl; c++)
		if (body->decl[c].count) {
			buf_put(&e->out->text, "\n", 1);
			emit_registers(e, c, 1);
			e->out->text.n--; /* the text goes on with its own line end */
		}
	for (const ir_item *it = body->first; it; it = it->next) {
		bool comment = it->kind == ITEM_COMMENT && it->file; /* one of the text: copied with the blanks */
		if (comment)
			continue;
		if (it->src_len && !(it->flags & ITEM_EDITED))
			copy(k, it->src + it->src_len);
		else if (!(it->src_len ? print_edited(k, it) : print_new(k, it)))
			return false;
	}
	copy(k, end);
	return true;
}

bool emit_kept(emitter *e)
{
	keeper k = { .e = e };

	for (const ir_top *t = e->m->top_first; t; t = t->next) {
		if (t->kind == TOP_BODY && !keep_body(&k, t))
			return false;
		if (t->kind != TOP_BODY)
			copy(&k, t->src + t->src_len);
	}
	copy(&k, (uint32_t)e->m->source_size);
	return true;
}
