/* SPDX-License-Identifier: MIT */
#include "base/table.h"

enum { FEWEST = 16 };

static void append(hash_table *t, uint32_t i)
{
	uint32_t slot = (t->at[i].hash ^ t->at[i].hash >> 15) & (t->nslot - 1);

	t->at[i].next = TABLE_NONE;
	if (t->first[slot] == TABLE_NONE)
		t->first[slot] = i;
	else
		t->at[t->last[slot]].next = i;
	t->last[slot] = i;
}

/* Makes a table of twice the room, or of the same room without dropped entries. */
static bool grow(hash_table *t, const cptx_allocator *hook)
{
	uint32_t cap = t->dropped > t->n / 2 ? t->cap : t->cap ? 2 * t->cap : FEWEST, n = 0;

	if (cap < t->cap) /* the capacity overflowed: more than 2^31 */
		return false;
	hash_entry *at = HEAP_ARRAY(hook, hash_entry, NULL, cap);
	uint32_t *slots = at ? HEAP_ARRAY(hook, uint32_t, NULL, 2 * (size_t)cap) : NULL;
	if (!slots) {
		if (at)
			heap_realloc(hook, at, 0);
		return false;
	}
	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i].next != i) /* a dropped entry points to itself */
			at[n++] = t->at[i];
	hash_table old = *t;
	*t = (hash_table){ .at = at, .first = slots, .last = slots + cap, .n = n, .cap = cap, .nslot = cap };
	memset(slots, 0xff, 2 * (size_t)cap * sizeof *slots);
	for (uint32_t i = 0; i < n; i++)
		append(t, i);
	table_free(&old, hook);
	return true;
}

bool table_add(hash_table *t, const cptx_allocator *hook, uint32_t hash, uint32_t id)
{
	if (t->n == t->cap && !grow(t, hook))
		return false;
	t->at[t->n] = (hash_entry){ .hash = hash, .id = id };
	append(t, t->n++);
	return true;
}

void table_drop(hash_table *t, uint32_t hash, uint32_t id)
{
	uint32_t slot = (hash ^ hash >> 15) & (t->nslot - 1), before = TABLE_NONE;

	for (uint32_t i = t->nslot ? t->first[slot] : TABLE_NONE; i != TABLE_NONE; before = i, i = t->at[i].next) {
		if (t->at[i].hash != hash || t->at[i].id != id)
			continue;
		if (before == TABLE_NONE)
			t->first[slot] = t->at[i].next;
		else
			t->at[before].next = t->at[i].next;
		if (t->last[slot] == i)
			t->last[slot] = before;
		t->at[i].next = i;
		t->dropped++;
		return;
	}
}

void table_free(hash_table *t, const cptx_allocator *hook)
{
	if (t->at)
		heap_realloc(hook, t->at, 0);
	if (t->first)
		heap_realloc(hook, t->first, 0);
	*t = (hash_table){ 0 };
}

void table_clear(hash_table *t)
{
	t->n = t->dropped = 0;
	if (t->first)
		memset(t->first, 0xff, 2 * (size_t)t->cap * sizeof *t->first);
}
