/* SPDX-License-Identifier: MIT */
/*
 * A store of machine code on disk that many processes share, so that nobody compiles the same thing twice.
 *
 * Open one and give it to what compiles: cptx_compile_opt.cache, cptx_load_opt.cache.  An entry's key is a hash of the PTX,
 * the target, the options, and of which compiler it is, with its version; so a new compiler or driver finds nothing old.
 *
 * Where: .path, else CPTX_CACHE_DIR, else cptx in XDG_CACHE_HOME, else .cache/cptx in HOME.  CPTX_CACHE=0 turns it off and
 * CPTX_CACHE=ro lets it only be read; CPTX_CACHE_SIZE bounds it ("512M", "4G"); without that, 1 GiB.
 *
 * Whose: machine code from the cache is run, so a folder that belongs to another user, or that all users may write into, is
 * not used, with the warning; one that its group may write into is, with the warning too.  What stands there under the name
 * of an entry and is no file of ours (a pipe, a folder, a link) is never waited for, and taken away: a folder only if it is
 * empty.
 *
 * Which compiler: its file's path, size, inode and times of change, so a file that is replaced is another compiler even
 * where size and time of change are the same.  A script (that starts with anything but an ELF head) is asked for its version
 * each time, for it may start another compiler; a program that starts another one is not seen through.
 *
 * What holds: an entry is complete or not there, whenever a process is killed; each one read is checked against its checksum
 * and its key, and thrown away if a bit is wrong.  Where nothing can be written (a full disk, a folder that is read-only),
 * one warning is given and everything goes on without storing.  The entries used least lately go when the bound is passed,
 * which may be for a moment.  Locks are flock(2)'s, which end with their process.
 *
 * Threads: all calls may be made by many threads at once, but close.
 */
#ifndef CPTX_CACHE_H
#define CPTX_CACHE_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cache: a folder of entries, or none (off). */
typedef struct cptx_cache cptx_cache;

/** Which folder, and what may be done with it.  All zero: as the environment says. */
typedef struct cptx_cache_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	const char *path;   /**< of the folder, made if need be (but not its parents' parents); NULL: as above */
	uint64_t max_bytes; /**< the bound; 0: as above */
	bool read_only;     /**< nothing is stored, touched or removed */
	void (*warn)(void *user, const char *text); /**< gets the one warning, from any thread; NULL: nobody */
	void *user;                                 /**< for warn */
	char z_;
} cptx_cache_opt;

/**
 * Opens a cache; opt may be NULL.  A folder that cannot be used gives a cache that is off, and the warning.
 * Errors: MEMORY; ARG, an environment variable or an option has no meaning.
 */
CPTX_API cptx_cache *cptx_cache_open(const cptx_cache_opt *opt, cptx_error *err);
/** Frees the handle; the folder stays.  NULL is allowed. */
CPTX_API void cptx_cache_close(cptx_cache *cache);
/** The folder; "" where there is none. */
CPTX_API const char *cptx_cache_path(const cptx_cache *cache);
/** Whether anything can be found in it. */
CPTX_API bool cptx_cache_can_read(const cptx_cache *cache);
/** Whether anything is stored in it: not where it is off or read-only, nor after the warning. */
CPTX_API bool cptx_cache_can_write(const cptx_cache *cache);

enum { CPTX_CACHE_KEY_BYTES = 16 /**< of a key */ };
/** What an entry is found by: a hash (BLAKE2b, 128 bits). */
typedef struct cptx_cache_key {
	uint8_t bytes[CPTX_CACHE_KEY_BYTES]; /**< the hash */
} cptx_cache_key;

/** A part of what a key is made of. */
typedef struct cptx_cache_part {
	const void *data; /**< the bytes */
	size_t size;      /**< how many */
} cptx_cache_part;
/** The key of a list of parts; where one ends and the next begins counts. */
CPTX_API cptx_cache_key cptx_cache_key_of(const cptx_cache_part *parts, size_t n);

/** An entry: data, and two texts: what was said when it was made, and what it is, a line for people. */
typedef struct cptx_cache_entry {
	void *data;              /**< from cptx_cache_get: one block with the texts in it, free() it; put only reads it */
	size_t size;             /**< bytes of data */
	const char *log, *about; /**< what was said when it was made; what it is, a line for people */
} cptx_cache_entry;
/** True: free(entry->data).  False, and *entry is all 0: there is none, or it was damaged and is gone now. */
CPTX_API bool cptx_cache_get(cptx_cache *cache, const cptx_cache_key *key, cptx_cache_entry *entry);
/** False where it was not stored, which is no error: the cache is off, read-only, or the disk is full. */
CPTX_API bool cptx_cache_put(cptx_cache *cache, const cptx_cache_key *key, const cptx_cache_entry *entry);

/** One stored entry, as it is listed. */
typedef struct cptx_cache_item {
	const char *name;  /**< its file, in the folder */
	uint64_t bytes;    /**< of the file */
	int64_t used;      /**< when it was last used, in seconds since 1970 */
	const char *about; /**< "" if it is damaged */
	bool damaged;      /**< the file is not what was stored */
} cptx_cache_item;
/**
 * Reads and checks each entry, and calls `each` for it until that says false.  remove_damaged: those are removed, if the
 * cache can write.  False: the folder cannot be read.
 */
CPTX_API bool cptx_cache_each(cptx_cache *cache, bool remove_damaged, bool (*each)(void *user, const cptx_cache_item *item),
                              void *user);
/** Removes all entries; how many there were. */
CPTX_API uint64_t cptx_cache_clear(cptx_cache *cache);

/** What is in the folder, and what this handle did. */
typedef struct cptx_cache_stats {
	uint64_t entries, bytes, max_bytes;     /**< of the folder, counted now */
	uint64_t hits, misses, stored, damaged; /**< of this handle */
} cptx_cache_stats;
CPTX_API void cptx_cache_count_(cptx_cache *cache, cptx_cache_stats *stats, size_t size);
/** What is there now; no entries where the folder cannot be read. */
static inline cptx_cache_stats cptx_cache_count(cptx_cache *cache)
{
	cptx_cache_stats stats;
	cptx_cache_count_(cache, &stats, sizeof stats);
	return stats;
}

#ifdef __cplusplus
}
#endif

#endif
