/* SPDX-License-Identifier: MIT */
/* The inside of the cache: a folder with a file per entry, and the file `lock`. */
#ifndef CPTX_CACHE_INSIDE_H
#define CPTX_CACHE_INSIDE_H

#include "base/atomic.h"
#include "base/base.h"
#include "cache/hash.h"

#include <cptx/cache.h>

struct cptx_cache {
	char *path;
	int dir; /* descriptor of the folder; -1: the cache is off */
	uint64_t max_bytes;
	void (*warn)(void *user, const char *text);
	void *user;
	bool shared; /* others of the folder's group may write there */
	atomic_bool no_write, warned;
	atomic_uint_fast64_t hits, misses, stored, damaged;
	atomic_uint_fast64_t unswept; /* bytes stored since the last sweep */
	atomic_uint serial;           /* number of the next temporary file */
};

/* Flags to open a file in the folder.  Anybody may have put it there: a pipe must not block the reader. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)

enum { ENTRY_NAME = 2 * HASH_BYTES + 7 }; /* "0123...ef.entry" and a NUL */

/* Gives the one warning of a cache; later ones are dropped. */
void cache_warn(cptx_cache *c, const char *format, ...) CPTX_PRINTF_(2, 3);
void entry_name(char name[ENTRY_NAME], const cptx_cache_key *key);
bool entry_is_name(const char *name);
/* Reads an open entry file.  key NULL: any key will do; shared: another user may own the file.  False: it is damaged or no
 * file, or, with *memory, memory is short. */
bool entry_read(int fd, const cptx_cache_key *key, bool shared, cptx_cache_entry *out, bool *memory);
/* Bytes of an entry's file. */
uint64_t entry_bytes(const cptx_cache_entry *e);
bool entry_write(int fd, const cptx_cache_key *key, const cptx_cache_entry *e);
/* Removes whatever has that name, a folder only if it is empty. */
bool cache_remove(const cptx_cache *c, const char *name);
/* Removes a damaged file, but not one that somebody has put in its place meanwhile. */
void cache_throw_away(cptx_cache *c, const char *name, int fd);
/* Removes the least recently used entries beyond the bound, and files that killed writers left. */
void cache_sweep(cptx_cache *c);

#endif
