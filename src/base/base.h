/* SPDX-License-Identifier: MIT */
/* The base of all folders: memory, text buffers, error text.  It has no state; every function accepts the result of a failed
 * one. */
#ifndef CPTX_BASE_H
#define CPTX_BASE_H

#include <cptx/module.h>

#include "base/cplusplus.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* ---- memory of the C library, by type; NULL when it is short, or the size is beyond size_t ---- */
static inline size_t array_size(size_t n, size_t size) { return n <= SIZE_MAX / 2 / size ? n * size : SIZE_MAX / 2; }
#define NEW(type) ((type *)calloc(1, sizeof(type))) /* NEW and similar macros zero the memory; NEW_UNSET and GROW do not */
#define NEW_SIZED(type, bytes) ((type *)calloc(1, (bytes))) /* a struct with `bytes` in all, for data behind it */
#define NEW_ARRAY(type, n) ((type *)calloc((n), sizeof(type)))
#define NEW_UNSET(type, n) ((type *)malloc(array_size((n), sizeof(type))))
#define GROW_ARRAY(type, p, n) ((type *)realloc((p), array_size((n), sizeof(type))))

/* Makes room for another element in an array of n, of `size` bytes each, by doubling what it has, or with `least` at first.
 * False when memory is short, and the array is as it was. */
static inline bool array_room(void *array_ptr, size_t n, size_t *cap, size_t size, size_t least)
{
	const size_t more = *cap ? *cap * 2 : least;
	void *p;

	if (n < *cap)
		return true;
	memcpy(&p, array_ptr, sizeof p);
	p = realloc(p, array_size(more, size));
	if (!p)
		return false;
	memcpy(array_ptr, &p, sizeof p);
	*cap = more;
	return true;
}

/* ---- arena: memory freed all at once; NULL when the allocator fails, and from then on ---- */
enum { ARENA_SIZES = 40 };
typedef struct arena {
	cptx_allocator hook;
	struct arena_chunk *chunk; /* the newest chunk; chunks are a list */
	struct arena_chunk *kept;  /* chunks of before arena_rewind that are not in use again yet */
	char *at, *end;
	size_t total; /* bytes of all chunks */
	size_t least; /* bytes of a chunk */
	size_t ahead; /* estimate of the bytes that will still be asked for, 0 if unknown: big chunks come in huge pages */
	bool failed;
	/* free blocks that arrays have outgrown, by the logarithm of their size; each begins with a pointer to the next */
	void *spare[ARENA_SIZES];
} arena;

void arena_init(arena *a, const cptx_allocator *hook);
void arena_free(arena *a);
/* Empties the arena, but for what lies in front of `at` in its first chunk; it keeps its memory for what comes next. */
void arena_rewind(arena *a, char *at);
void *arena_grow(arena *a, size_t size); /* the slow path of arena_alloc */
char *arena_strdup(arena *a, const char *s);
void *arena_memdup(arena *a, const void *p, size_t size);

/* Allocates memory, not zeroed, aligned to 8 bytes. */
static inline void *arena_alloc(arena *a, size_t size)
{
	size = (size + 7) & ~(size_t)7;
	if (size > (size_t)(a->end - a->at))
		return arena_grow(a, size);
	void *p = a->at;
	a->at += size;
	return p;
}
/* Gives back the end of the latest block, which now ends here. */
static inline void arena_end(arena *a, char *end) { a->at = end; }
void *arena_zalloc(arena *a, size_t size);
#define ARENA_NEW(a, type) ((type *)arena_zalloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_alloc((a), array_size((n), sizeof(type)))) /* not zeroed */
#define ARENA_ZEROED(a, type, n) ((type *)arena_zalloc((a), array_size((n), sizeof(type))))
#define ARENA_SIZED(a, type, bytes)                                                                                         \
	((type *)arena_alloc((a), (bytes))) /* a struct with `bytes` in all, for data behind it */
#define ARENA_COPY(a, type, from, n) ((type *)arena_memdup((a), (from), array_size((n), sizeof(type))))

/* The default allocator, for memory that is freed or grown apart from an arena. */
extern const cptx_allocator heap_default;
static inline void *heap_realloc(const cptx_allocator *h, void *p, size_t size) { return h->realloc_fn(h->user, p, size); }
#define HEAP_ARRAY(hook, type, p, n) ((type *)heap_realloc((hook), (p), array_size((n), sizeof(type))))

/*
 * Makes room for `want` elements in a growing array of n elements of `size` bytes in an arena.  Its memory is a power of
 * two, which the next array gets when this one has outgrown it.
 */
bool arena_reserve(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size, size_t want);
static inline bool arena_push(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size)
{
	return n < *cap || arena_reserve(a, array_ptr, n, cap, size, n + 1);
}
/* Gives back what n elements of an array that grows no more do not need. */
bool arena_trim(arena *a, void *array_ptr, size_t n, size_t *cap, size_t size);

/* ---- buf: growing text.  After a failed growth every call is harmless and `failed` is set. ---- */
typedef struct buf {
	const cptx_allocator *hook;
	char *p;
	size_t n, cap;
	bool failed, foreign; /* foreign: the memory is the caller's; growing leaves it */
} buf;

void buf_init(buf *b, const cptx_allocator *hook);
void buf_free(buf *b);
bool buf_grow(buf *b, size_t more);                 /* the slow path of buf_reserve */
static inline bool buf_reserve(buf *b, size_t more) /* makes room for `more` bytes behind n */
{
	return more <= b->cap - b->n || buf_grow(b, more);
}
static inline void buf_put(buf *b, const char *s, size_t n)
{
	if (!n || !buf_reserve(b, n))
		return;
	memcpy(b->p + b->n, s, n);
	b->n += n;
}
static inline void buf_str(buf *b, const char *s) { buf_put(b, s, strlen(s)); }
void buf_printf(buf *b, const char *format, ...) CPTX_PRINTF_(2, 3);
/*
 * A name for messages: of a name of more than NAME_SHOWN characters (C++ templates make such) the start and the end with
 * "..." between them.  Returns `name` or `out`.
 */
enum { NAME_SHOWN = 72 };
const char *name_shown(const char *name, char out[NAME_SHOWN + 1]);
/* The first c among n bytes at p; NULL: there is none. */
static inline const char *text_find(const char *p, char c, size_t n) { return (const char *)memchr(p, c, n); }
/* Writes v in decimal at p; returns the end. */
char *text_u64(char *p, uint64_t v);
/* The bits of an f32 as a double, and back: NaNs keep all their bits, which a conversion would not do. */
double text_f32_as_f64(uint32_t bits);
uint32_t text_f32_bits(double f);

/* ---- errors ---- */
/* Sets *err (may be NULL; an error that is set already stays) to "file:line: ", if at.file is set, and the formatted text.
 * Returns false. */
bool error_set(cptx_error *err, enum cptx_code code, cptx_site at, const char *format, ...) CPTX_PRINTF_(4, 5);
/* Makes the text of a message safe for a terminal (base/printable.h); error_set does this itself. */
void error_clean(cptx_error *err);
bool error_vset(cptx_error *err, enum cptx_code code, cptx_site at, const char *format, va_list ap);
#define NOWHERE ((cptx_site){ NULL, 0 })
/* Whether a public call may start: an earlier error in *err stays, and the call does nothing (see the head of cptx.h).
 * IS_GIVEN and OPTIONS_READ ask this, too, so a call that begins with one of them needs no may_go. */
static inline bool may_go(const cptx_error *err) { return !err || err->code == CPTX_OK; }
/* Whether a public call may start and an argument that it needs is not NULL; if it is, sets ARG in *err, or in the module of
 * a kernel: "cptx_tile_check: the tile is NULL". */
#define IS_GIVEN(p, what, at, err) (may_go(err) && ((p) != NULL || error_null(__func__, (what), (at), (err))))
#define IS_GIVEN_TO(k, at, p, what) ((p) != NULL || error_null_in(__func__, (what), (at), (k)))
bool error_null(const char *function, const char *what, cptx_site at, cptx_error *err);
bool error_null_in(const char *function, const char *what, cptx_site at, cptx_kernel *k);
/* Sets ABSENT: the build left out what a call needs by an option of meson.  Returns false. */
bool error_absent(cptx_error *err, cptx_site at, const char *what, const char *option);

/* A builder call on kernel k, for the user's line `at`. */
#define CALL(name, ...) CPTX_INSN_AT_(cptx_##name, k, at, __VA_ARGS__)

/* Finds the end of PTX text: NULs behind the end are not part of the text; a NUL within it is an error that names `name`
 * (NULL: ptx) and the line. */
bool text_end(const char *text, size_t *size, const char *name, cptx_site at, cptx_error *err);

/* vsnprintf into size bytes, for messages: leaves out the middle of a name that is longer than any message. */
void text_message(char *to, size_t size, const char *format, va_list ap) CPTX_PRINTF_(3, 0);

/* The edit distance, for "did you mean". */
unsigned text_distance(const char *a, const char *b);

#endif
