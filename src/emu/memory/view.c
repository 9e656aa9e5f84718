/* SPDX-License-Identifier: MIT */
/* Pages of global memory that a cluster has written in this round: view.h. */
#include "emu/memory/view.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

static uint32_t slot_of(const emu_view *v, const emu_alloc *a, uint64_t number)
{
	uint32_t i = (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (v->nslot - 1);

	while (v->slot[i] && (v->page[v->slot[i] - 1]->number != number || v->page[v->slot[i] - 1]->alloc != a))
		i = (i + 1) & (v->nslot - 1);
	return i;
}

emu_page *emu_view_find(const emu_view *v, const emu_alloc *a, uint64_t number)
{
	uint32_t i = v->n ? v->slot[slot_of(v, a, number)] : 0;

	return i ? v->page[i - 1] : NULL;
}

static bool room(emu_view *v)
{
	if (v->n == v->cap) {
		uint32_t cap = v->cap ? v->cap * 2 : 16;
		emu_page **p = GROW_ARRAY(emu_page *, v->page, cap);
		if (p)
			v->page = p;
		uint32_t *slot = p ? NEW_ARRAY(uint32_t, cap * 2u) : NULL;
		if (!slot)
			return false;
		free(v->slot);
		v->slot = slot;
		v->nslot = cap * 2;
		v->cap = cap;
		for (uint32_t i = 0; i < v->n; i++)
			v->slot[slot_of(v, v->page[i]->alloc, v->page[i]->number)] = i + 1;
	}
	if (v->n == v->made && !(v->page[v->made] = NEW_UNSET(emu_page, 1)))
		return false;
	v->made += v->n == v->made;
	return true;
}

/* The bytes of an allocation that lie in a page: [from, to), from its start on. */
static void part_of(const emu_page *x, uint64_t *from, uint64_t *to)
{
	uint64_t start = x->number * VIEW_PAGE, at = x->alloc->at;

	*from = start > at ? start - at : 0;
	*to = MIN(start + VIEW_PAGE - at, x->alloc->size);
}

/* Copies n bits, bit `from` of one map to bit `to` of another. */
static void copy_bits(uint8_t *into, uint64_t to, const uint8_t *of, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, to++, from++)
		into[to / 8] = (uint8_t)((into[to / 8] & ~(1u << to % 8)) | (unsigned)(of[from / 8] >> from % 8 & 1) << to % 8);
}

static emu_page *new_page(emu_view *v, emu_alloc *a, uint64_t number)
{
	uint64_t from, to;

	if (!room(v))
		return NULL;
	emu_page *x = v->page[v->n];
	x->number = number;
	x->alloc = a;
	memset(x->dirty, 0, sizeof x->dirty);
	part_of(x, &from, &to);
	uint64_t first = (a->at + from) % VIEW_PAGE;
	memcpy(x->bytes + first, a->p + from, to - from);
	if (a->defined && a->at % 8)
		copy_bits(x->defined, first, a->defined, from, to - from);
	else if (a->defined)
		memcpy(x->defined + first / 8, a->defined + from / 8, (to - from + 7) / 8);
	v->slot[slot_of(v, a, number)] = ++v->n;
	return x;
}

void emu_view_own(emu_cluster *c, emu_place *p, uint32_t size)
{
	emu_view *v = &c->view;
	uint64_t at = p->alloc->at + p->offset;
	uint32_t in = (uint32_t)(at % VIEW_PAGE), end = in + size;
	emu_page *x = p->view ? p->view : emu_view_find(v, p->alloc, at / VIEW_PAGE);

	if (!x && !(x = new_page(v, p->alloc, at / VIEW_PAGE))) {
		c->no_memory = c->failed = true;
		return;
	}
	p->p = x->bytes + in;
	p->view = x;
	for (uint32_t i = in; i < end;) {
		uint32_t n = MIN(end - i, 64 - i % 64);
		x->dirty[i / 64] |= (n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0)) << i % 64;
		i += n;
	}
	c->fold |= v->n >= v->most;
}

/* ---- behind the round ---- */

/* at: of the word in the allocation; it wraps where the word begins in front of that. */
static void commit_some(const emu_page *x, unsigned word, uint64_t at)
{
	const uint64_t dirty = x->dirty[word];
	uint8_t *all = x->alloc->defined, *defined = all && at % 64 == 0 ? all + at / 8 : NULL;

	for (unsigned i = 0; i < 64; i++)
		if (dirty >> i & 1) {
			x->alloc->p[at + i] = x->bytes[word * 64 + i];
			if (all && !defined) /* it begins in the middle of a word: its bits lie otherwise than the page's */
				copy_bits(all, at + i, x->defined, word * 64 + i, 1);
		}
	for (unsigned i = 0; defined && i < 8; i++) {
		uint8_t mask = (uint8_t)(dirty >> i * 8);
		defined[i] = (uint8_t)((defined[i] & ~mask) | (x->defined[word * 8 + i] & mask));
	}
}

static void commit_page(const emu_page *x)
{
	const emu_alloc *a = x->alloc;
	uint64_t start = x->number * VIEW_PAGE;

	for (unsigned w = 0; w < ARRAY_LEN(x->dirty); w++) {
		uint64_t at = start + w * 64 - a->at; /* where that is in front of it, the bytes there are not dirty */
		if (!x->dirty[w])
			continue;
		if (~x->dirty[w] || at + 64 > a->size || (a->defined && at % 8)) {
			commit_some(x, w, at);
			continue;
		}
		memcpy(a->p + at, x->bytes + w * 64, 64);
		if (a->defined)
			memcpy(a->defined + at / 8, x->defined + w * 8, 8);
	}
}

void emu_view_commit(emu_cluster *c)
{
	emu_view *v = &c->view;

	if (!v->n)
		return;
	for (uint32_t i = 0; i < v->n; i++)
		commit_page(v->page[i]);
	v->n = 0;
	memset(v->slot, 0, v->nslot * sizeof *v->slot);
}

void emu_view_free(emu_view *v)
{
	for (uint32_t i = 0; i < v->made; i++)
		free(v->page[i]);
	free(v->page);
	free(v->slot);
}

/* ---- what may cross pages ---- */

void emu_fetch(const emu_cluster *c, const emu_place *from, void *to, uint32_t n)
{
	emu_place p = *from;

	for (uint32_t done = 0, part; done < n; done += part) {
		p = emu_part_of(c, from, done);
		part = emu_page_left(&p, n - done);
		memcpy((unsigned char *)to + done, p.p, part);
	}
}

void emu_deliver(emu_cluster *c, const emu_place *to, const void *from, uint32_t n)
{
	for (uint32_t done = 0, part; done < n; done += part) {
		emu_place p = emu_part_of(c, to, done);
		part = emu_page_left(&p, n - done);
		emu_writable(c, &p, part);
		memcpy(p.p, (const unsigned char *)from + done, part);
	}
}

emu_place emu_part_of(const emu_cluster *c, const emu_place *p, uint32_t from)
{
	emu_place q = *p;

	q.offset += from;
	if (q.space == SPACE_GLOBAL) {
		q.p = q.alloc->p + q.offset;
		q.view = NULL;
		emu_see(c, &q);
	} else {
		q.p += from;
	}
	return q;
}
