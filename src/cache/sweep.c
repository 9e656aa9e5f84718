/* SPDX-License-Identifier: MIT */
/* Sweeps, which keep a cache within its bound, and operations on all entries. */
#include "base/options.h"
#include "cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ABANDONED_SECONDS = 3600 }; /* used where files cannot be locked, as on some network disks */

typedef struct found {
	char name[ENTRY_NAME];
	uint64_t bytes;
	struct timespec used;
} found;

typedef struct listing {
	found *at;
	size_t n, cap;
	uint64_t bytes;
} listing;

static bool listing_add(listing *l, const char *name, const struct stat *s)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		found *more = GROW_ARRAY(found, l->at, cap);
		if (!more)
			return false;
		l->at = more, l->cap = cap;
	}
	found *f = &l->at[l->n++];
	memcpy(f->name, name, ENTRY_NAME);
	f->bytes = (uint64_t)s->st_size, f->used = s->st_mtim;
	l->bytes += f->bytes;
	return true;
}

/* Removes a temporary file without a writer: a writer holds a lock on its file, so one that can be locked has none. */
static void remove_abandoned(const cptx_cache *c, const char *name)
{
	int fd = openat(c->dir, name, READ_FLAGS);
	struct stat s;

	if (fd < 0)
		return;
	bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (!dead && errno != EWOULDBLOCK)
		dead = fstat(fd, &s) == 0 && time(NULL) - s.st_mtime > ABANDONED_SECONDS;
	if (dead)
		cache_remove(c, name);
	close(fd);
}

/* Lists all entries.  tidy: also removes files that killed writers left. */
static bool list(const cptx_cache *c, listing *l, bool tidy)
{
	int fd = c->dir < 0 ? -1 : openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool ok = true;

	*l = (listing){ 0 };
	if (!d) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (struct dirent *e; ok && (e = readdir(d));) {
		struct stat s;
		if (entry_is_name(e->d_name)) {
			/* what is not a file is treated as a damaged entry */
			if (fstatat(c->dir, e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0)
				ok = listing_add(l, e->d_name, &s);
		} else if (tidy && !strncmp(e->d_name, "tmp-", 4)) {
			remove_abandoned(c, e->d_name);
		}
	}
	closedir(d);
	if (!ok)
		free(l->at);
	return ok;
}

static int by_use(const void *a, const void *b)
{
	const found *x = (const found *)a, *y = (const found *)b;
	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

void cache_sweep(cptx_cache *c)
{
	const int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
	int lock = openat(c->dir, "lock", flags, 0600);
	listing l;

	/* `lock` is not a regular file */
	if (lock < 0 && (errno == EISDIR || errno == ELOOP || errno == ENXIO) && cache_remove(c, "lock"))
		lock = openat(c->dir, "lock", flags, 0600);
	if (lock < 0)
		return;
	/* The holder of the lock sweeps; nobody waits for it. */
	if (!(flock(lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) && list(c, &l, true)) {
		if (l.bytes > c->max_bytes) {
			uint64_t aim = c->max_bytes - c->max_bytes / 8; /* leaves some room, so that not every store sweeps */
			qsort(l.at, l.n, sizeof *l.at, by_use);
			for (size_t i = 0; i < l.n && l.bytes > aim; i++)
				if (cache_remove(c, l.at[i].name))
					l.bytes -= l.at[i].bytes;
		}
		free(l.at);
	}
	close(lock);
}

/* ---- looking ---- */

static bool look(cptx_cache *c, const found *f, bool remove, cptx_cache_item *item, cptx_cache_entry *e)
{
	cptx_cache_key key;
	bool memory = true;
	int fd = openat(c->dir, f->name, READ_FLAGS);

	*e = (cptx_cache_entry){ 0 };
	*item = (cptx_cache_item){ .name = f->name, .bytes = f->bytes, .used = f->used.tv_sec, .about = "" };
	if (fd < 0 && errno == ENOENT)
		return false; /* the file was removed meanwhile */
	if (fd < 0) {     /* a link, a socket, or a file of another user */
		item->damaged = true;
		if (remove && cptx_cache_can_write(c))
			cache_remove(c, f->name);
		return true;
	}
	for (size_t i = 0; i < sizeof key.bytes; i++) {
		char hex[3] = { f->name[2 * i], f->name[2 * i + 1], 0 };
		key.bytes[i] = (uint8_t)strtoul(hex, NULL, 16);
	}
	bool ok = entry_read(fd, &key, c->shared, e, &memory);
	if (ok)
		item->about = e->about;
	item->damaged = !ok && memory;
	if (item->damaged && remove)
		cache_throw_away(c, f->name, fd);
	close(fd);
	return true;
}

bool cptx_cache_each(cptx_cache *c, bool remove_damaged, bool (*each)(void *user, const cptx_cache_item *item), void *user)
{
	listing l;
	bool more = true;

	if (!c || !each || !list(c, &l, false))
		return false;
	qsort(l.at, l.n, sizeof *l.at, by_use);
	for (size_t i = 0; i < l.n && more; i++) {
		cptx_cache_item item;
		cptx_cache_entry e;
		if (!look(c, &l.at[i], remove_damaged, &item, &e))
			continue;
		more = each(user, &item);
		free(e.data);
	}
	free(l.at);
	return true;
}

uint64_t cptx_cache_clear(cptx_cache *c)
{
	uint64_t gone = 0;
	listing l;

	if (!c || !cptx_cache_can_write(c) || !list(c, &l, true))
		return 0;
	for (size_t i = 0; i < l.n; i++)
		gone += cache_remove(c, l.at[i].name);
	free(l.at);
	return gone;
}

static cptx_cache_stats count(cptx_cache *c)
{
	cptx_cache_stats s = { 0 };
	listing l;

	if (!c)
		return s;
	if (list(c, &l, false)) {
		s.entries = l.n, s.bytes = l.bytes;
		free(l.at);
	}
	s.max_bytes = c->max_bytes;
	s.hits = c->hits, s.misses = c->misses, s.stored = c->stored, s.damaged = c->damaged;
	return s;
}

void cptx_cache_count_(cptx_cache *c, cptx_cache_stats *stats, size_t size)
{
	const cptx_cache_stats s = count(c);

	if (stats)
		RESULT_FILL(stats, size, &s);
}
