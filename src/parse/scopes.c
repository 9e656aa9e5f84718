/* SPDX-License-Identifier: MIT */
/*
 * The names in scope.  A table maps each name to its innermost binding; a binding remembers the one that it hides, so that a
 * scope ends by undoing its bindings, last first.  `.reg .b32 %r<100>` is one binding: a name that ends in digits is first
 * looked up by the text in front of them, since most names are registers of such a range.
 */
#include "parse/quick.h"

static bool same(const name_slot *s, const char *name, uint32_t len, uint32_t hash)
{
	return s->hash == hash && s->len == len && !memcmp(s->name, name, len & ~RANGE_KEY);
}

static name_slot *slot_of(name_table *t, const char *name, uint32_t len, uint32_t hash)
{
	size_t i = (hash ^ hash >> 15) & (t->nslot - 1);

	while (t->slot[i].name && !same(&t->slot[i], name, len, hash))
		i = (i + 1) & (t->nslot - 1);
	return &t->slot[i];
}

static bool grow(parser *p, size_t want)
{
	name_table *t = &p->names, old = *t;
	name_slot *slots = HEAP_ARRAY(&p->m->a.hook, name_slot, NULL, want);

	if (!slots)
		return parse_out_of_memory(p);
	memset(slots, 0, want * sizeof *slots);
	t->slot = slots;
	t->nslot = want;
	for (size_t i = 0; i < old.nslot; i++) {
		if (!old.slot[i].name)
			continue;
		name_slot *s = slot_of(t, old.slot[i].name, old.slot[i].len, old.slot[i].hash);
		*s = old.slot[i];
		if (s->binding == IR_NONE)
			continue;
		for (uint32_t b = s->binding; b != IR_NONE; b = t->bound[b].shadow)
			t->bound[b].slot = (uint32_t)(s - slots);
	}
	if (old.slot)
		heap_realloc(&p->m->a.hook, old.slot, 0);
	return true;
}

static name_slot *slot_for(parser *p, const char *name, uint32_t len, uint32_t hash)
{
	name_table *t = &p->names;

	if (2 * t->used >= t->nslot && !grow(p, 2 * t->nslot))
		return NULL;
	name_slot *s = slot_of(t, name, len, hash);
	if (s->name)
		return s;
	size_t n = len & ~RANGE_KEY;
	char *copy = ARENA_ARRAY(&p->m->a, char, n + 1);
	if (!copy) {
		parse_out_of_memory(p);
		return NULL;
	}
	memcpy(copy, name, n);
	copy[n] = 0;
	*s = (name_slot){ copy, len, hash, IR_NONE };
	t->used++;
	return s;
}

static binding *push(parser *p, name_slot *s, unsigned kind, uint32_t id, uint32_t count)
{
	name_table *t = &p->names;

	if (t->nbound == t->cap_bound) {
		size_t want = t->cap_bound ? 2 * t->cap_bound : 256;
		binding *grown = HEAP_ARRAY(&p->m->a.hook, binding, t->bound, want);
		if (!grown) {
			parse_out_of_memory(p);
			return NULL;
		}
		t->bound = grown;
		t->cap_bound = want;
	}
	binding *b = &t->bound[t->nbound];
	*b = (binding){ .slot = (uint32_t)(s - t->slot), .id = id, .count = count, .shadow = s->binding, .kind = (uint8_t)kind };
	s->binding = (uint32_t)t->nbound++;
	return b;
}

bool names_init(parser *p)
{
	if (!grow(p, 1024) || !names_enter(p))
		return false;
	for (unsigned i = 0; i < arch_nsreg; i++) {
		word w = parse_word_of(arch_sregs[i].text, strlen(arch_sregs[i].text));
		name_slot *s = slot_for(p, w.s, w.len, w.hash);
		if (!s || !push(p, s, NAME_SREG, i, 1))
			return false;
	}
	p->names.here = p->names.nbound;
	return names_enter(p); /* the special registers have an outer scope, because users may hide them */
}

void names_free(parser *p)
{
	const cptx_allocator *h = &p->m->a.hook;

	if (p->names.slot)
		heap_realloc(h, p->names.slot, 0);
	if (p->names.bound)
		heap_realloc(h, p->names.bound, 0);
	if (p->names.scope)
		heap_realloc(h, p->names.scope, 0);
}

binding *names_find(parser *p, const word *w)
{
	name_slot *s = slot_of(&p->names, w->s, w->len, w->hash);
	return s->name && s->binding != IR_NONE ? &p->names.bound[s->binding] : NULL;
}

bool names_is_earlier(const parser *p, const binding *b)
{
	return b->kind != NAME_SREG && (size_t)(b - p->names.bound) < p->names.here;
}

binding *names_declared(parser *p, const word *w, unsigned linkage)
{
	binding *b = names_find(p, w);

	return b && linkage == LINK_NONE && names_is_earlier(p, b) ? NULL : b;
}

const char *names_text(parser *p, const binding *b) { return p->names.slot[b->slot].name; }

enum { MOST_DIGITS = 9 };

/* The number behind a range's prefix: digits, which may begin with zeros; IR_NONE if it is none. */
static uint32_t number_of(const char *s, uint32_t len)
{
	uint64_t v = 0;

	for (; len > 1 && *s == '0'; len--)
		s++;
	if (!len || len > MOST_DIGITS)
		return IR_NONE;
	for (uint32_t i = 0; i < len; i++)
		v = v * 10 + (uint64_t)(s[i] - '0');
	return (uint32_t)v;
}

static uint32_t in_range(parser *p, const word *w, uint32_t stem, uint32_t hash, const binding **b)
{
	uint32_t number = number_of(w->s + stem, w->len - stem);
	if (number == IR_NONE)
		return IR_NONE;
	const name_slot *s = slot_of(&p->names, w->s, stem | RANGE_KEY, hash);
	if (!s->name)
		return IR_NONE;
	for (uint32_t i = s->binding; i != IR_NONE; i = p->names.bound[i].shadow)
		if (number < p->names.bound[i].count) {
			*b = &p->names.bound[i];
			return (*b)->id + number;
		}
	return IR_NONE;
}

static void quick_note(name_table *t, const char *prefix, size_t len, const binding *range)
{
	uint64_t key = 0;

	if (len >= sizeof key || range->id + (uint64_t)range->count > WORD_NUMBERS)
		return;
	memcpy(&key, prefix, len);
	t->quick[quick_slot(key)] = (quick_range){ key, range->id, range->count };
}

uint32_t names_register(parser *p, const word *w, const binding **b)
{
	const binding *range = NULL, *single;
	uint32_t reg = w->stem < w->len ? in_range(p, w, w->stem, w->stem_hash, &range) : IR_NONE;

	if (reg != IR_NONE && !p->names.numbers.in_range) {
		/* a shorter range may hide the beginning of this one */
		if (range == &p->names.bound[p->names.slot[range->slot].binding])
			quick_note(&p->names, w->s, w->stem, range);
		*b = range;
		return reg;
	}
	single = names_find(p, w);
	*b = single && (!range || single > range) ? single : range;
	return *b == range ? reg : single->kind == NAME_REG || single->kind == NAME_VECTOR ? single->id : IR_NONE;
}

/* Whether a word is a name: letters, digits, _ and $; % only in front; and more than one character if the first is no
 * letter. */
static bool is_name(const word *w)
{
	bool letter = (*w->s | 32) >= 'a' && (*w->s | 32) <= 'z', sink = w->len == 7 && !memcmp(w->s, "WARP_SZ", 7);
	return (w->len > 1 || letter || parse_is_word[(unsigned char)*w->s] == 3) && !text_find(w->s + 1, '%', w->len - 1) &&
	       !sink;
}

/* The binding of the name made of a word and digits, or IR_NONE. */
static uint32_t numbered_binding(const name_table *t, const word *w, const char *digits, uint32_t n)
{
	uint32_t hash = w->hash;

	for (uint32_t i = 0; i < n; i++)
		hash = table_hash_char(hash, digits[i]);
	for (size_t i = (hash ^ hash >> 15) & (t->nslot - 1); t->slot[i].name; i = (i + 1) & (t->nslot - 1)) {
		const name_slot *s = &t->slot[i];
		if (s->hash == hash && s->len == w->len + n && !memcmp(s->name, w->s, w->len) &&
		    !memcmp(s->name + w->len, digits, n))
			return s->binding;
	}
	return IR_NONE;
}

/* Whether one of the names that a range declares is taken in this scope. */
static bool range_taken(parser *p, const word *w, uint32_t count)
{
	const name_table *t = &p->names;
	char digits[MOST_DIGITS + 1];

	if (!(t->numbers.stems[w->hash >> 6 & 3] >> (w->hash & 63) & 1) || w->stem < w->len)
		return false;
	for (uint32_t i = 0; i < count; i++) { /* this costs no more than making the registers */
		uint32_t b = numbered_binding(t, w, digits, (uint32_t)(text_u64(digits, i) - digits));
		if (b != IR_NONE && b >= t->scope[t->nscope - 1].first && t->bound[b].kind != NAME_LABEL)
			return true;
	}
	return false;
}

binding *names_bind(parser *p, const word *w, unsigned kind, uint32_t id, uint32_t count)
{
	name_table *t = &p->names;
	bool range = kind == NAME_RANGE;
	name_slot *s = slot_for(p, w->s, w->len | (range ? RANGE_KEY : 0), w->hash);
	const binding *hides = NULL;

	if (!s)
		return NULL;
	if (!is_name(w)) {
		parse_error(p, w->at, CPTX_E_PARSE,
		            "'%.*s' is no name: names are a letter, or one of _ $ %% and more; then letters, digits, _ and $",
		            (int)MIN(w->len, 64u), w->s);
		return NULL;
	}
	if (s->binding != IR_NONE)
		hides = &t->bound[s->binding];
	if (!range && w->stem < w->len) {
		const binding *in = NULL;
		const name_slot *of = slot_of(t, w->s, w->stem | RANGE_KEY, w->stem_hash);
		t->numbers.stems[w->stem_hash >> 6 & 3] |= (uint64_t)1 << (w->stem_hash & 63);
		t->numbers.in_range |= of->name && of->binding != IR_NONE;
		if (!hides && in_range(p, w, w->stem, w->stem_hash, &in) != IR_NONE)
			hides = in;
	}
	bool module_sreg = hides && hides->kind == NAME_SREG && t->nscope == 2;
	size_t first = t->nscope == 2 ? MAX(t->here, (size_t)t->scope[1].first) : t->scope[t->nscope - 1].first;
	if (module_sreg || (hides && (size_t)(hides - t->bound) >= first) || (range && range_taken(p, w, count))) {
		parse_error(p, w->at, CPTX_E_PARSE, "'%.*s' is declared twice in this scope; give it another name",
		            (int)MIN(w->len, 64u), w->s);
		return NULL;
	}
	binding *b = push(p, s, kind, id, count);
	if (range && b)
		quick_note(t, w->s, w->len, b); /* replaces the range that it hides */
	return b;
}

bool names_enter(parser *p)
{
	name_table *t = &p->names;

	if (t->nscope == t->cap_scope) {
		size_t want = t->cap_scope ? 2 * t->cap_scope : 16;
		name_scope *grown = HEAP_ARRAY(&p->m->a.hook, name_scope, t->scope, want);
		if (!grown)
			return parse_out_of_memory(p);
		t->scope = grown;
		t->cap_scope = want;
	}
	t->scope[t->nscope++] = (name_scope){ (uint32_t)t->nbound, t->numbers };
	memset(t->numbers.stems, 0, sizeof t->numbers.stems);
	return true;
}

/*
 * Ends a scope.  A label that the scope used and did not place may be one of an outer scope, placed or to come: its binding
 * moves out, or it turns out to be the one there (ir_label.at tells which: see resolve_labels in body.c).
 */
void names_leave(parser *p)
{
	name_table *t = &p->names;
	const name_scope *scope = &t->scope[--t->nscope];
	size_t base = scope->first, kept = base;
	bool in_range = t->numbers.in_range;

	t->numbers = scope->numbers;
	bool ranges = false;
	for (size_t i = t->nbound; i-- > base;) {
		t->slot[t->bound[i].slot].binding = t->bound[i].shadow;
		ranges |= t->bound[i].kind == NAME_RANGE;
	}
	if (ranges)
		memset(t->quick, 0, sizeof t->quick);
	for (size_t i = base; i < t->nbound; i++) {
		binding b = t->bound[i];
		name_slot *s = &t->slot[b.slot];
		if (b.kind != NAME_LABEL || !b.pending || t->nscope <= 2)
			continue;
		if (s->binding != IR_NONE && t->bound[s->binding].kind == NAME_LABEL) {
			p->k->label[b.id].same_as = t->bound[s->binding].id + 1;
			continue;
		}
		t->numbers.in_range |= in_range;
		b.shadow = s->binding;
		t->bound[kept] = b;
		s->binding = (uint32_t)kept++;
	}
	t->nbound = kept;
}

static bool is_kept(const parser *p, const binding *b)
{
	return (b->kind == NAME_FUNC && p->m->body[b->id - 1]->linkage != LINK_NONE) ||
	       (b->kind == NAME_SYM && p->m->sym[b->id - MODULE_SYM]->linkage != LINK_NONE);
}

void names_end_text(parser *p)
{
	name_table *t = &p->names;
	size_t base = t->scope[1].first, kept = base;

	for (size_t i = t->nbound; i-- > base;)
		t->slot[t->bound[i].slot].binding = t->bound[i].shadow;
	for (size_t i = base; i < t->nbound; i++) {
		binding b = t->bound[i];
		if (!is_kept(p, &b))
			continue;
		b.shadow = t->slot[b.slot].binding;
		t->bound[kept] = b;
		t->slot[b.slot].binding = (uint32_t)kept++;
	}
	t->nbound = t->here = kept;
}

uint32_t names_label(parser *p, const word *w)
{
	binding *b = names_find(p, w);
	cptx_kernel *k = p->k;

	if (b && b->kind == NAME_LABEL)
		return b->id;
	if (!arena_push(&k->m->a, &k->label, k->nlabel, &k->cap_label, sizeof *k->label)) {
		parse_out_of_memory(p);
		return IR_NONE;
	}
	b = names_bind(p, w, NAME_LABEL, (uint32_t)k->nlabel, 1);
	if (!b)
		return IR_NONE;
	b->pending = 1;
	k->label[k->nlabel] = (ir_label){ .name = names_text(p, b), .src = (uint32_t)(w->s - p->begin), .at = parse_site(p) };
	return (uint32_t)k->nlabel++;
}
