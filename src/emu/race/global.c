/* SPDX-License-Identifier: MIT */
/* Global memory as a cluster sees it: words of the pages it used last, and a log of what it has touched, for comparison with
 * others. */
#include "emu/core/cluster.h"
#include "emu/race/wide.h"

#include <stdlib.h>

enum { MOST_NOTES = 1 << 15 /* then the round ends, and the log is folded */ };

/* ---- words ---- */

static void forget_page(emu_cluster *c, emu_word *x)
{
	for (unsigned i = 0; i < PAGE_WORDS; i++)
		if (x[i].more)
			race_drop_nodes(c, &x[i]);
	memset(x, 0, PAGE_WORDS * sizeof *x);
}

static unsigned slot_of(uint64_t page) { return (unsigned)(page * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS; }

const emu_word *race_page_there(const emu_cluster *c, uint64_t page)
{
	const global_pages *g = c->races->pages;

	return g->key[slot_of(page)] == page + 1 ? g->page[slot_of(page)] : NULL;
}

emu_word *race_page_words(emu_cluster *c, uint64_t page)
{
	global_pages *g = c->races->pages;
	unsigned slot = slot_of(page);

	if (g->key[slot] == page + 1)
		return g->page[slot];
	if (g->key[slot])
		forget_page(c, g->page[slot]);
	else if (!(g->page[slot] = NEW_ARRAY(emu_word, PAGE_WORDS)))
		race_no_memory(c);
	if (g->page[slot])
		g->key[slot] = page + 1;
	return g->page[slot];
}

void race_touch_global(const touch *t)
{
	uint64_t at = t->place->alloc->at + t->place->offset;

	for (uint32_t done = 0; done < t->size;) {
		uint32_t in = (uint32_t)((at + done) % PAGE), n = MIN(t->size - done, PAGE - in);
		emu_word *x = race_page_words(t->w->cluster, (at + done) / PAGE);
		if (!x)
			return;
		race_touch_words(t, x, in, done, n);
		done += n;
	}
}

static bool is_known_write(const emu_warp *w, unsigned lane, const cell *k)
{
	return k->bits & CELL_BYTES && !(k->bits & CELL_LATE) &&
	       ((k->agent == w->agent && k->lane == lane) || race_knows(w, lane, false, k->agent, k->epoch, k->lane));
}

void race_fence_bytes(emu_warp *w, unsigned lane, const emu_place *p, uint32_t size)
{
	uint64_t at = p->alloc ? p->alloc->at + p->offset : 0;

	for (uint32_t i = 0; w->cluster->races && p->space == SPACE_GLOBAL && i < size; i += 4) {
		emu_word *x = race_page_words(w->cluster, (at + i) / PAGE);
		if (!x)
			return;
		x += (at + i) % PAGE / 4;
		if (is_known_write(w, lane, &x->w))
			x->w.bits |= CELL_PROXY;
		for (uint32_t n = race_first_writer(w->cluster, x); n; n = race_next_writer(w->cluster, n)) {
			word_node *other = &w->cluster->races->node[n];
			cell k = race_node_cell(other);
			if (is_known_write(w, lane, &k))
				other->r.bits |= CELL_PROXY;
		}
	}
}

/* ---- the log ---- */

static uint32_t bucket_of(const notes *s, uint64_t page)
{
	return (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (s->nbucket - 1);
}

uint32_t race_notes_of(const notes *s, uint64_t page) { return s->nbucket ? s->bucket[bucket_of(s, page)] : 0; }

static bool room(notes *s)
{
	if (s->count < s->cap)
		return true;
	uint32_t cap = s->cap ? s->cap * 2 : 64;
	note *n = GROW_ARRAY(note, s->n, cap);
	if (n)
		s->n = n;
	uint32_t *b = n ? GROW_ARRAY(uint32_t, s->bucket, cap) : NULL;
	if (!b)
		return false;
	s->bucket = b;
	s->cap = s->nbucket = cap;
	memset(b, 0, cap * sizeof *b);
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t *head = &b[bucket_of(s, s->n[i].page)];
		s->n[i].next = *head;
		*head = i + 1;
	}
	return true;
}

note *race_note_new(notes *s, const note *like)
{
	size_t bytes = like->flags & NOTE_BYTES ? PAGE / 8 : PAGE_WORDS / 8,
		   values = like->flags & NOTE_BYTES ? PAGE : PAGE_WORDS;

	if (!room(s))
		return NULL;
	note *n = &s->n[s->count];
	uint32_t *head = &s->bucket[bucket_of(s, like->page)];
	*n = *like;
	n->bits = (uint32_t *)arena_zalloc(&s->a, bytes);
	n->values = n->bits && like->flags & NOTE_WRITE ? ARENA_ZEROED(&s->a, uint8_t, values) : NULL;
	if (!n->bits || (like->flags & NOTE_WRITE && !n->values))
		return NULL;
	n->next = *head;
	*head = ++s->count;
	return n;
}

void race_notes_clear(notes *s)
{
	if (!s->count)
		return;
	arena_free(&s->a);
	arena_init(&s->a, NULL);
	s->count = 0;
	memset(s->bucket, 0, s->nbucket * sizeof *s->bucket);
}

void race_notes_free(notes *s)
{
	arena_free(&s->a);
	free(s->n);
	free(s->bucket);
}

static bool same(const note *a, const note *b)
{
	return a->page == b->page && a->op == b->op && a->flags == b->flags && a->events == b->events;
}

static note *find(emu_cluster *c, const note *like)
{
	global_pages *g = c->races->pages;
	notes *s = &g->log;
	uint64_t h =
		(like->page ^ (uint64_t)like->op << 32 ^ (uint64_t)like->flags << 24 ^ like->events) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t *recent = &g->recent[h >> 32 & (RECENT - 1)];

	if (*recent && same(&s->n[*recent - 1], like))
		return &s->n[*recent - 1];
	for (uint32_t i = race_notes_of(s, like->page); i; i = s->n[i - 1].next)
		if (same(&s->n[i - 1], like)) {
			*recent = i;
			return &s->n[i - 1];
		}
	note *n = race_note_new(s, like);
	if (!n) {
		race_no_memory(c);
		return NULL;
	}
	*recent = s->count;
	c->fold |= s->count >= MOST_NOTES;
	return n;
}

static uint8_t value_of(const unsigned char *p, bool byte)
{
	uint32_t v = *p;

	if (!byte)
		memcpy(&v, p, 4);
	uint8_t h = (uint8_t)((v + 1) * UINT32_C(0x9e3779b1) >> 24);
	return h ? h : 1;
}

/* n bits from `first` on; p: what they have become, NULL if that is not known. */
static void set(note *n, uint32_t first, uint32_t count, const unsigned char *p)
{
	bool byte = n->flags & NOTE_BYTES;

	if (!n->values && first % 32 + count <= 32) {
		n->bits[first / 32] |= (count < 32 ? (UINT32_C(1) << count) - 1 : ALL_LANES) << first % 32;
		return;
	}
	for (uint32_t i = first; i < first + count; i++) {
		uint32_t *word = &n->bits[i / 32], bit = UINT32_C(1) << i % 32;
		if (n->values) {
			uint8_t v = p ? value_of(p + (size_t)(i - first) * (byte ? 1 : 4), byte) : 0;
			n->values[i] = *word & bit && n->values[i] != v ? 0 : v;
		}
		*word |= bit;
	}
}

void race_log(const touch *t)
{
	const emu_warp *w = t->w;
	uint64_t at = t->place->alloc->at + t->place->offset;
	bool bytes = (at | t->size) & 3;
	note like = {
		.op = t->op->index, .agent = (uint16_t)w->agent, .lane = (uint8_t)t->lane, .events = race_wide_events(w, t->lane)
	};

	like.flags = (uint8_t)((t->access & ACCESS_WRITE ? NOTE_WRITE : 0) | (t->access & ACCESS_SILENT ? NOTE_SILENT : 0) |
	                       (bytes ? NOTE_BYTES : 0));
	if (t->access & (ACCESS_STRONG | ACCESS_ATOMIC) && !(t->access & ACCESS_NARROW))
		like.flags |= NOTE_STRONG;
	for (uint32_t done = 0; done < t->size;) {
		uint32_t in = (uint32_t)((at + done) % PAGE), n = MIN(t->size - done, PAGE - in);
		like.page = (at + done) / PAGE;
		note *x = find(w->cluster, &like);
		if (!x)
			return;
		const unsigned char *p = t->access & ACCESS_VALUE ? t->place->p + done : NULL;
		if (bytes)
			set(x, in, n, p);
		else
			set(x, in / 4, n / 4, p);
		done += n;
	}
}

/* Of a row, the lanes that know of the same events as the first. */
static uint32_t alike(const emu_warp *w, uint32_t lanes, uint64_t *events)
{
	uint32_t same = lanes;

	*events = race_wide_events(w, (unsigned)__builtin_ctz(lanes));
	EACH_LANE(l, w->cluster->races->pages->nevent ? lanes : 0)
		if (race_wide_events(w, l) != *events)
			same &= ~(UINT32_C(1) << l);
	return same;
}

/* Lanes of a row lie in one page; those that are silent have a note of their own, and those that know different things. */
void race_log_row(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t each, uint32_t stride, uint32_t all,
                  uint32_t silent, unsigned access)
{
	uint64_t at = p->alloc->at + p->offset;
	note like = { .page = at / PAGE, .op = op->index, .agent = (uint16_t)w->agent };
	uint32_t first = (uint32_t)(at % PAGE / 4), words = each / 4, from = (uint32_t)__builtin_ctz(all);

	for (uint32_t left = all, lanes; left; left &= ~lanes) {
		bool quiet = !(left & ~silent);
		lanes = alike(w, quiet ? left : left & ~silent, &like.events);
		like.lane = (uint8_t)__builtin_ctz(lanes);
		like.flags = (uint8_t)((access & ACCESS_WRITE ? NOTE_WRITE : 0) | (quiet ? NOTE_SILENT : 0));
		note *n = find(w->cluster, &like);
		if (!n)
			return;
		if (lanes == all)
			set(n, first, stride ? (uint32_t)__builtin_popcount(all) * words : words, access & ACCESS_VALUE ? p->p : NULL);
		else
			EACH_LANE(l, lanes)
				set(n, first + (l - from) * stride / 4, words, access & ACCESS_VALUE ? p->p + (l - from) * stride : NULL);
	}
}
