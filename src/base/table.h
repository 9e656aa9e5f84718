/* SPDX-License-Identifier: MIT */
/*
 * A hash table of numbers, found by the hash of a name.  The owner keeps the names and compares them: it walks the numbers
 * with a name's hash, which come in the order in which they were added.
 */
#ifndef CPTX_BASE_TABLE_H
#define CPTX_BASE_TABLE_H

#include "base/base.h"

#define TABLE_NONE UINT32_MAX

typedef struct hash_entry {
	uint32_t hash, next, id;
} hash_entry;

typedef struct hash_table {
	hash_entry *at;
	uint32_t *first, *last; /* first and last entry of each of `nslot` lists, a power of two; TABLE_NONE: empty */
	uint32_t n, cap, nslot;
	uint32_t dropped;         /* how many of the n entries were dropped */
	struct hash_table *spare; /* the owner's: the next of a list of tables that are not in use */
} hash_table;

/* FNV-1a; `hash`: TABLE_HASH, or the hash of the text in front. */
#define TABLE_HASH 2166136261u
static inline uint32_t table_hash_char(uint32_t hash, char c) { return (hash ^ (unsigned char)c) * 16777619u; }
static inline uint32_t table_hash(uint32_t hash, const char *s)
{
	while (*s)
		hash = table_hash_char(hash, *s++);
	return hash;
}

/* Adds a number; false when memory is short, with nothing added. */
bool table_add(hash_table *t, const cptx_allocator *hook, uint32_t hash, uint32_t id);
void table_drop(hash_table *t, uint32_t hash, uint32_t id); /* Drops a number with that hash, if it is there. */
void table_free(hash_table *t, const cptx_allocator *hook);
void table_clear(hash_table *t); /* drops all, and keeps the memory */

static inline uint32_t table_same(const hash_table *t, uint32_t i, uint32_t hash)
{
	while (i != TABLE_NONE && t->at[i].hash != hash)
		i = t->at[i].next;
	return i;
}
/* table_find: the first place with that hash; table_next: the next behind place i; TABLE_NONE: there is none. */
static inline uint32_t table_find(const hash_table *t, uint32_t hash)
{
	return t->nslot ? table_same(t, t->first[(hash ^ hash >> 15) & (t->nslot - 1)], hash) : TABLE_NONE;
}
static inline uint32_t table_next(const hash_table *t, uint32_t i, uint32_t hash)
{
	return table_same(t, t->at[i].next, hash);
}

/* Loops over the numbers with that hash; `id` is the loop's variable. */
#define TABLE_EACH(t, hash_, id_)                                                                                           \
	for (uint32_t place_ = table_find((t), (hash_)), id_ = 0; place_ != TABLE_NONE && ((id_) = (t)->at[place_].id, true);   \
	     place_ = table_next((t), place_, (hash_)))

#endif
