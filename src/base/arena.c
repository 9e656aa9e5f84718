/* SPDX-License-Identifier: MIT */
#include "base/base.h"

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

_Static_assert(sizeof(void *) == 8, "cptx needs a host of 64 bits"); /* meson.build says why */

struct arena_chunk {
	struct arena_chunk *next;
	size_t size; /* with this head, which leaves the memory behind it aligned to 16 bytes */
};

enum { CHUNK_LEAST = 64 << 10, CHUNK_MOST = 32 << 20 }; /* untouched pages of a big chunk cost nothing */

enum { HUGE_PAGE = 2 << 20 };

/* Asks for huge pages: a quarter of the time of reading a big file goes into faults of small pages. */
static void use_huge_pages(void *p, size_t size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t from = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE,
			  to = ((uintptr_t)p + size) / HUGE_PAGE * HUGE_PAGE;
	if (to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
	(void)p, (void)size;
#endif
}

static void *heap_libc(void *user, void *old, size_t size)
{
	(void)user;
	if (size == 0) {
		free(old);
		return NULL;
	}
	void *p = realloc(old, size);
	if (p && size >= 2 * HUGE_PAGE)
		use_huge_pages(p, size);
	return p;
}

const cptx_allocator heap_default = { heap_libc, NULL };

void arena_init(arena *a, const cptx_allocator *hook)
{
	*a = (arena){ .hook = hook && hook->realloc_fn ? *hook : heap_default, .least = CHUNK_LEAST };
}

static void free_chunks(arena *a, struct arena_chunk *c)
{
	for (struct arena_chunk *next; c; c = next) {
		next = c->next;
		heap_realloc(&a->hook, c, 0);
	}
}

void arena_free(arena *a)
{
	free_chunks(a, a->chunk);
	free_chunks(a, a->kept);
	a->chunk = a->kept = NULL;
	a->at = a->end = NULL;
}

void arena_rewind(arena *a, char *at)
{
	struct arena_chunk *c = a->chunk;

	while (c->next) { /* the first chunk is the last of the list; the others are needed again in the order of their making */
		struct arena_chunk *next = c->next;
		c->next = a->kept;
		a->kept = c;
		c = next;
	}
	a->chunk = c;
	a->at = at;
	a->end = (char *)c + c->size;
	a->failed = false;
	memset(a->spare, 0, sizeof a->spare);
}

/* Takes a kept chunk of at least that size out of the list; NULL: there is none. */
static struct arena_chunk *take_kept(arena *a, size_t size)
{
	for (struct arena_chunk **c = &a->kept; *c; c = &(*c)->next) {
		struct arena_chunk *found = *c;
		if (found->size < size)
			continue;
		*c = found->next;
		return found;
	}
	return NULL;
}

/* The size of the next chunk: a twenty-fourth of all so far, so that little is left over at the end; or most of what the
 * caller expects. */
static size_t next_size(const arena *a, size_t least)
{
	size_t more = a->ahead ? MIN(a->ahead - a->ahead / 8, a->total) : a->total / 24;

	return MAX(MIN(MAX(more, a->least), (size_t)CHUNK_MOST), least);
}

/* Goes on in the largest block that an array has outgrown, if there is one of at least that size. */
static void *use_spare(arena *a, size_t size)
{
	enum { WORTH_IT = 12 }; /* logarithm of the least size */

	for (unsigned c = ARENA_SIZES; c-- > WORTH_IT;) {
		char *block = (char *)a->spare[c];
		if (!block || (size_t)1 << c < size)
			continue;
		memcpy(&a->spare[c], block, sizeof a->spare[c]);
		a->at = block + size;
		a->end = block + ((size_t)1 << c);
		return block;
	}
	return NULL;
}

void *arena_grow(arena *a, size_t size)
{
	size_t least = size + sizeof(struct arena_chunk);
	void *spare = use_spare(a, size);

	if (spare)
		return spare;
	struct arena_chunk *c = take_kept(a, least);
	if (!c) {
		size_t want = next_size(a, least);
		c = a->failed ? NULL : (struct arena_chunk *)heap_realloc(&a->hook, NULL, want);
		if (!c) {
			a->failed = true;
			a->at = a->end = NULL;
			return NULL;
		}
		c->size = want;
		a->total += want;
	}
	if (a->chunk && a->chunk->next && (size_t)(a->end - a->at) > c->size - least) { /* the first chunk stays the last */
		c->next = a->chunk->next;
		a->chunk->next = c;
		return c + 1;
	}
	c->next = a->chunk;
	a->chunk = c;
	a->at = (char *)(c + 1) + size;
	a->end = (char *)c + c->size;
	return c + 1;
}

void *arena_zalloc(arena *a, size_t size)
{
	void *p = arena_alloc(a, size);
	return p ? memset(p, 0, size) : NULL;
}

void *arena_memdup(arena *a, const void *p, size_t size)
{
	void *q = arena_alloc(a, size);
	return q ? memcpy(q, p, size) : NULL;
}

char *arena_strdup(arena *a, const char *s) { return s ? ARENA_COPY(a, char, s, strlen(s) + 1) : NULL; }

/* ---- arrays ---- */

enum { SMALLEST = 5 };

/* The logarithm of the least power of two that is not below `bytes`. */
static unsigned size_class(size_t bytes)
{
	unsigned c = SMALLEST;

	while (c < 8 * sizeof(size_t) - 1 && (size_t)1 << c < bytes)
		c++;
	return c;
}

/* Whether an array's memory is a power of two in size, with less than one element left over. */
static bool is_full_size(size_t cap, size_t size) { return ((size_t)1 << size_class(cap * size)) - cap * size < size; }

static void move(arena *a, void *array_ptr, void *to, size_t n, size_t *cap, size_t size)
{
	void *old;

	memcpy(&old, array_ptr, sizeof old); /* array_ptr is a T** for any T: it is copied as bytes */
	memcpy(array_ptr, &to, sizeof to);
	if (n)
		memcpy(to, old, n * size);
	unsigned c = size_class(*cap * size);
	if (!*cap || !is_full_size(*cap, size) || c >= ARENA_SIZES)
		return;
	memcpy(old, &a->spare[c], sizeof a->spare[c]);
	a->spare[c] = old;
}

bool arena_reserve(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size, size_t want)
{
	if (want <= *cap)
		return true;
	if (want > SIZE_MAX / 4 / size)
		return false;
	unsigned c = size_class(MAX(MAX(want, *cap * 2), (size_t)4) * size);
	void *p = c < ARENA_SIZES ? a->spare[c] : NULL;
	if (p)
		memcpy(&a->spare[c], p, sizeof a->spare[c]);
	else
		p = arena_alloc(a, (size_t)1 << c);
	if (!p)
		return false;
	move(a, array_ptr, p, n, cap, size);
	*cap = ((size_t)1 << c) / size;
	return true;
}

bool arena_trim(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size)
{
	if (n == *cap || n * size + 8 > *cap * size)
		return true;
	void *p = arena_alloc(a, is_full_size(n, size) ? (size_t)1 << size_class(n * size) : n * size);
	if (!p)
		return false;
	move(a, array_ptr, p, n, cap, size);
	*cap = n;
	return true;
}
