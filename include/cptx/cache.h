/* SPDX-License-Identifier: MIT */
/*
 * A store of machine code on disk that many processes share, so that nobody compiles the same thing twice.
 *
 * Open a cache and give it to the calls that compile: cptx_compile_opt.cache, cptx_load_opt.cache.  An entry's key is a hash
 * of the PTX, the target, the options, and the compiler with its version; so a new compiler or driver never finds an older
 * one's entries.
 *
 * Folder: .path, else CPTX_CACHE_DIR, else cptx in XDG_CACHE_HOME, else .cache/cptx in HOME.  CPTX_CACHE=0 turns the cache
 * off, CPTX_CACHE=ro makes it read-only, and CPTX_CACHE_SIZE bounds it ("512M", "4G"); without that, the bound is 1 GiB.
 *
 * Owner: machine code from the cache is run.  So a folder that belongs to another user, or that all users may write into, is
 * not used, and the warning is given; a folder that its group may write into is used, and the warning is given too.  A pipe,
 * folder or link under the name of an entry is never waited for; it is removed (a folder only if it is empty).
 *
 * Compiler: it is known by its file's path, size, inode and times of change, so a file that is replaced counts as another
 * compiler even where size and time of change are the same.  A script (a file without an ELF header) is asked for its
 * version each time, because it may start another compiler; where an ELF program starts another compiler, the cache does not
 * notice.
 *
 * Guarantees: an entry is complete or not there, whenever a process is killed.  Each entry that is read is checked against
 * its checksum and its key, and thrown away if a bit is wrong.  Where nothing can be written (a full disk, a read-only
 * folder), one warning is given and everything goes on without storing.  When the bound is passed, which may happen for a
 * moment, the least recently used entries are removed.  Locks are those of flock(2), which end with their process.
 *
 * Threads: many threads may make all calls at once, except cptx_cache_close.
 */
#ifndef CPTX_CACHE_H
#define CPTX_CACHE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cache: a folder of entries, or none (off). */
typedef struct cptx_cache cptx_cache;

/** The folder of a cache, and what may be done with it.  All zero: the environment decides. */
typedef struct cptx_cache_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	const char *path;   /**< the folder, which is made if need be, with its parent; NULL: see "Folder" above */
	uint64_t max_bytes; /**< bound of the folder's size in bytes; 0: see "Folder" above */
	bool read_only;     /**< nothing is stored, touched or removed */
	void (*warn)(void *user, const char *text); /**< called for the one warning, from any thread; NULL: nobody is warned */
	void *user;                                 /**< first argument of warn */
	char z_;
} cptx_cache_opt;

/**
 * Opens a cache; opt may be NULL.  A folder that cannot be used gives a cache that is off, and the warning.
 * Errors: MEMORY; ARG, an environment variable or an option has no meaning.
 */
CPTX_API cptx_cache *cptx_cache_open(const cptx_cache_opt *opt, cptx_error *err);
/** Frees the handle; the folder stays.  NULL is allowed. */
CPTX_API void cptx_cache_close(cptx_cache *cache);
/** The folder of a cache; "" for a cache that is off. */
CPTX_API const char *cptx_cache_path(const cptx_cache *cache);
/** Whether entries can be found in a cache. */
CPTX_API bool cptx_cache_can_read(const cptx_cache *cache);
/** Whether entries can be stored in a cache: not if it is off or read-only, nor after the warning. */
CPTX_API bool cptx_cache_can_write(const cptx_cache *cache);

enum { CPTX_CACHE_KEY_BYTES = 16 /**< bytes of a key */ };
/** The key of an entry: a hash (BLAKE2b, 128 bits). */
typedef struct cptx_cache_key {
	uint8_t bytes[CPTX_CACHE_KEY_BYTES]; /**< the hash */
} cptx_cache_key;

/** One part of the data that a key is computed from. */
typedef struct cptx_cache_part {
	const void *data; /**< the bytes */
	size_t size;      /**< number of bytes */
} cptx_cache_part;
/** The key of a list of parts; the same bytes divided into other parts give another key. */
CPTX_API cptx_cache_key cptx_cache_key_of(const cptx_cache_part *parts, size_t n);

/** An entry: data and two texts. */
typedef struct cptx_cache_entry {
	/** cptx_cache_get returns one block that holds the data and the texts: free() it; cptx_cache_put only reads it */
	void *data;
	size_t size;             /**< bytes of data */
	const char *log, *about; /**< the compiler's messages; a line for people that says what the entry is */
} cptx_cache_entry;
/** Reads an entry.  True: the caller frees it by free(entry->data).  False, with *entry all 0: there is no such entry, or it
 * was damaged and is now removed. */
CPTX_API bool cptx_cache_get(cptx_cache *cache, const cptx_cache_key *key, cptx_cache_entry *entry);
/** Stores an entry.  False, which is no error: it was not stored, because the cache is off, read-only, or the disk is full.
 */
CPTX_API bool cptx_cache_put(cptx_cache *cache, const cptx_cache_key *key, const cptx_cache_entry *entry);

/** One stored entry, as it is listed. */
typedef struct cptx_cache_item {
	const char *name;  /**< name of the entry's file in the folder */
	uint64_t bytes;    /**< bytes of the file */
	int64_t used;      /**< time of the last use, in seconds since 1970 */
	const char *about; /**< the entry's line for people; "" if it is damaged */
	bool damaged;      /**< the file's content is not what was stored */
} cptx_cache_item;
/**
 * Reads and checks each entry, and calls `each` for it until that returns false.  remove_damaged: damaged entries are
 * removed, if the cache can write.  Returns false if the folder cannot be read.
 */
CPTX_API bool cptx_cache_each(cptx_cache *cache, bool remove_damaged, bool (*each)(void *user, const cptx_cache_item *item),
                              void *user);
/** Removes all entries; returns how many there were. */
CPTX_API uint64_t cptx_cache_clear(cptx_cache *cache);

/** Counters of the folder and of this handle. */
typedef struct cptx_cache_stats {
	uint64_t entries, bytes, max_bytes;     /**< the folder's entries and bytes, counted now, and its bound */
	uint64_t hits, misses, stored, damaged; /**< events of this handle since it was opened */
} cptx_cache_stats;
CPTX_API void cptx_cache_count_(cptx_cache *cache, cptx_cache_stats *stats, size_t size);
/** Counts the entries of the folder now; no entries where the folder cannot be read. */
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
