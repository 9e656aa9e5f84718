/* SPDX-License-Identifier: MIT */
/*
 * Fat binaries as nvcc 13 makes them: a head of 16 bytes, then entries, each with a head that says what it is, for which
 * architecture, and how long it is before and behind compression (LZ4 or zstd, whose libraries are opened when one is
 * needed).  All numbers are little-endian.
 */
#include "san.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_PTX = 1, ENTRY_HEAD = 64, IS_LZ4 = 0x2000, IS_ZSTD = 0x8000 };
enum { MOST_TEXT = 1 << 30 /* bytes of PTX that are believed */ };

typedef struct entry {
	const unsigned char *bytes;
	uint32_t packed; /* bytes of compressed text; 0: it is not compressed */
	uint64_t size;   /* bytes of text, or of the room for it */
	uint32_t flags, arch;
} entry;

static uint64_t number(const unsigned char *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

bool san_is_fatbin(const void *image)
{
	return !strncmp((const char *)image, "\x50\xed\x55\xba", 4); /* a text may be shorter */
}

/* ---- compressed text ---- */

typedef size_t zstd_fn(void *to, size_t room, const void *from, size_t size);
typedef int lz4_fn(const char *from, char *to, int size, int room);

/* A function of a library that is opened now; NULL after words about what to install. */
static void *function(const char *library, const char *package, const char *name)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *fn = lib ? dlsym(lib, name) : NULL;

	if (!fn)
		san_say("the program's PTX is compressed, and %s is not there: install %s, or build with nvcc --compress-mode=none",
		        library, package);
	return fn;
}

static bool unpack(const entry *e, char *text)
{
	if (e->flags & IS_ZSTD) {
		void *p = function("libzstd.so.1", "libzstd1", "ZSTD_decompress");
		zstd_fn *fn;
		memcpy(&fn, &p, sizeof fn);
		return p && fn(text, (size_t)e->size, e->bytes, e->packed) == e->size;
	}
	if (e->flags & IS_LZ4) {
		void *p = function("liblz4.so.1", "liblz4-1", "LZ4_decompress_safe");
		lz4_fn *fn;
		memcpy(&fn, &p, sizeof fn);
		return p && fn((const char *)e->bytes, text, (int)e->packed, (int)e->size) == (int)e->size;
	}
	return false;
}

static char *text_of(const entry *e, size_t *size)
{
	char *text = (char *)malloc((size_t)e->size + 1);

	if (!text)
		return NULL;
	if (!e->packed)
		memcpy(text, e->bytes, (size_t)e->size);
	else if (!unpack(e, text)) {
		free(text);
		return NULL;
	}
	text[e->size] = 0;
	*size = strlen(text); /* PTX that is not compressed is padded with NULs */
	return text;
}

/* ---- entries ---- */

/* The entry at *p, which is moved behind it; false at the end, or where the lengths make no sense. */
static bool next(const unsigned char **p, const unsigned char *end, entry *e, unsigned *kind)
{
	if (end - *p < ENTRY_HEAD)
		return false;
	const unsigned char *h = *p;
	uint64_t head = number(h + 4, 4), size = number(h + 8, 8);
	if (head < ENTRY_HEAD || head > (uint64_t)(end - h) || size > (uint64_t)(end - h) - head)
		return false;
	*kind = (unsigned)number(h, 2);
	*e = (entry){ .bytes = h + head, .packed = (uint32_t)number(h + 16, 4), .arch = (uint32_t)number(h + 28, 4) };
	e->flags = (uint32_t)number(h + 40, 4);
	e->size = e->packed ? number(h + 56, 8) : size;
	*p = h + head + size;
	return e->packed <= size && e->size <= MOST_TEXT;
}

/* Whether the text says a .target that the device runs; the name is what stands behind ".target". */
static const cptx_target *target_of(const char *text)
{
	const char *at = strstr(text, ".target");
	char name[32];
	size_t n = at ? strcspn(at += 7 + strspn(at + 7, " \t"), " \t\r\n,;/") : 0;

	if (!n || n >= sizeof name)
		return NULL;
	memcpy(name, at, n);
	name[n] = 0;
	return cptx_target_find(name);
}

static bool runs(const cptx_target *t, const cptx_device_info *dev)
{
	unsigned cc = t->compute_capability;

	return t->suffix == 'a'   ? cc == dev->compute_capability
	       : t->suffix == 'f' ? cc / 10 == dev->compute_capability / 10 && cc <= dev->compute_capability
	                          : cc <= dev->compute_capability;
}

char *san_fatbin_ptx(const void *image, const cptx_device_info *dev, size_t *size)
{
	const unsigned char *p = (const unsigned char *)image;
	const unsigned char *end = p + 16 + number(p + 8, 8);
	const cptx_target *best = NULL;
	char *text = NULL;
	unsigned kind;
	entry e;

	for (p += number(p + 6, 2); next(&p, end, &e, &kind);) {
		size_t n;
		char *t = kind == ENTRY_PTX ? text_of(&e, &n) : NULL;
		const cptx_target *of = t ? target_of(t) : NULL;
		if (!of || !runs(of, dev) || (best && best->compute_capability > of->compute_capability)) {
			free(t);
			continue;
		}
		free(text);
		text = t, best = of, *size = n;
	}
	return text;
}
