#include "base/base.h"

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

struct arena_chunk {
	struct arena_chunk *next;
	size_t pad; /* what follows is aligned to 16 bytes */
};

enum { CHUNK_FIRST = 64 << 10, CHUNK_MOST = 32 << 20 }; /* pages that are not touched cost nothing */

enum { HUGE_PAGE = 2 << 20 };

/* A hint: a quarter of the time of reading a big file goes into faults of small pages. */
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
	*a = (arena){ .hook = hook && hook->realloc_fn ? *hook : heap_default };
}

void arena_free(arena *a)
{
	for (struct arena_chunk *c = a->chunk, *next; c; c = next) {
		next = c->next;
		heap_realloc(&a->hook, c, 0);
	}
	a->chunk = NULL;
	a->at = a->end = NULL;
}

void *arena_grow(arena *a, size_t size)
{
	/* an eighth of all so far: little is left over at the end, and big ones come in huge pages */
	size_t next = MIN(MAX(a->total / 8, (size_t)CHUNK_FIRST), (size_t)CHUNK_MOST);
	size_t want = MAX(next, size + sizeof(struct arena_chunk));
	struct arena_chunk *c = a->failed ? NULL : heap_realloc(&a->hook, NULL, want);

	if (!c) {
		a->failed = true;
		a->at = a->end = NULL;
		return NULL;
	}
	c->next = a->chunk;
	a->total += want;
	a->chunk = c;
	a->at = (char *)(c + 1) + size;
	a->end = (char *)c + want;
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

char *arena_strdup(arena *a, const char *s) { return s ? arena_memdup(a, s, strlen(s) + 1) : NULL; }

bool arena_push(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size)
{
	void *old, *grown;

	if (n < *cap)
		return true;
	size_t want = *cap ? *cap * 2 : 4;
	grown = arena_alloc(a, want * size);
	if (!grown)
		return false;
	memcpy(&old, array_ptr, sizeof old); /* array_ptr is a T**: copied as bytes, whatever T is */
	if (n)
		memcpy(grown, old, n * size);
	memcpy(array_ptr, &grown, sizeof grown);
	*cap = want;
	return true;
}
