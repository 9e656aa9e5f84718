/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t usual_bytes = (uint64_t)1 << 30;

void cache_warn(cptx_cache *c, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (atomic_exchange(&c->warned, true) || !c->warn)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	c->warn(c->user, text);
}

/* ---- opening ---- */

/* Reads "512M": bytes, or K, M, G, T of 1024. */
static bool read_size(const char *s, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (errno || !v || (*end && !unit) || (unit && end[1]) || v > UINT64_MAX >> shift)
		return false;
	*bytes = (uint64_t)v << shift;
	return true;
}

/* The folder that the environment names, from malloc; NULL: there is none, or with *memory, memory is short. */
static char *usual_path(bool *memory)
{
	const char *dir = getenv("CPTX_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *base, *rest;

	if (dir && *dir)
		base = dir, rest = "";
	else if (xdg && *xdg == '/') /* the XDG standard says to ignore a relative path */
		base = xdg, rest = "/cptx";
	else
		base = home && *home ? home : NULL, rest = "/.cache/cptx";
	*memory = true;
	if (!base)
		return NULL;
	size_t n = strlen(base), m = strlen(rest);
	char *p = NEW_UNSET(char, n + m + 1);
	if (!p) {
		*memory = false;
		return NULL;
	}
	memcpy(p, base, n);
	memcpy(p + n, rest, m + 1);
	return p;
}

/* Makes the folder and its parent: XDG_CACHE_HOME and .cache need not exist yet.  Returns an errno, 0 if the folder is
 * there. */
static int make_folder(char *path)
{
	char *slash = strrchr(path, '/');

	if (!mkdir(path, 0700) || errno == EEXIST)
		return 0;
	if (errno != ENOENT || !slash || slash == path)
		return errno;
	*slash = 0;
	int why = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
	*slash = '/';
	return why ? why : mkdir(path, 0700) && errno != EEXIST ? errno : 0;
}

static bool is_ours(uid_t owner) { return owner == geteuid() || !owner; }

/*
 * Whether nobody else can write to the folder, because machine code from the cache is run; a sticky bit does not keep others
 * from adding files.  The check is on the open folder, not on its name, which may come to mean another one.
 */
static bool is_safe(cptx_cache *c)
{
	struct stat s, link;

	if (fstat(c->dir, &s)) {
		cache_warn(c, "no cache: the folder %s cannot be looked at: %s", c->path, strerror(errno));
		return false;
	}
	if (!is_ours(s.st_uid) || (!lstat(c->path, &link) && S_ISLNK(link.st_mode) && !is_ours(link.st_uid))) {
		cache_warn(c, "no cache: the folder %s%s belongs to another user (%lu), who could put anything there", c->path,
		           is_ours(s.st_uid) ? ", a link," : "", (unsigned long)(is_ours(s.st_uid) ? link.st_uid : s.st_uid));
		return false;
	}
	if (s.st_mode & S_IWOTH) {
		cache_warn(c, "no cache: all users may write into the folder %s; chmod o-w makes it one of yours", c->path);
		return false;
	}
	c->shared = s.st_mode & S_IWGRP;
	if (c->shared)
		cache_warn(c, "all of group %lu may put machine code into the cache in %s; chmod g-w if you do not trust them",
		           (unsigned long)s.st_gid, c->path);
	return true;
}

static void open_folder(cptx_cache *c)
{
	int why = c->no_write ? 0 : make_folder(c->path);
	c->dir = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0 && c->no_write && errno == ENOENT)
		return; /* there is nothing to read yet, so no harm is done */
	if (c->dir >= 0 && !is_safe(c)) {
		close(c->dir);
		c->dir = -1;
	} else if (c->dir < 0) {
		cache_warn(c, "no cache: the folder %s cannot be used: %s", c->path, strerror(errno == ENOENT && why ? why : errno));
	} else if (!c->no_write && faccessat(c->dir, ".", W_OK | X_OK, AT_EACCESS)) {
		cache_warn(c, "the cache in %s is only read: %s", c->path, strerror(errno));
		c->no_write = true;
	}
}

/* Applies CPTX_CACHE and similar variables of the environment. */
static bool environment(cptx_cache *c, bool *off, cptx_error *err)
{
	const char *mode = getenv("CPTX_CACHE"), *size = getenv("CPTX_CACHE_SIZE");

	*off = mode && !strcmp(mode, "0");
	if (mode && !strcmp(mode, "ro"))
		c->no_write = true;
	else if (mode && *mode && !*off && strcmp(mode, "1"))
		return error_set(err, CPTX_E_ARG, NOWHERE, "CPTX_CACHE is \"%s\"; it may be 0 (off), 1 (on) or ro (only read)",
		                 mode);
	if (!c->max_bytes && size && *size && !read_size(size, &c->max_bytes))
		return error_set(err, CPTX_E_ARG, NOWHERE,
		                 "CPTX_CACHE_SIZE is \"%s\"; it may be a number of bytes, or one with K, M, G or T: 512M", size);
	if (!c->max_bytes)
		c->max_bytes = usual_bytes;
	return true;
}

cptx_cache *cptx_cache_open(const cptx_cache_opt *opt, cptx_error *err)
{
	cptx_cache_opt o;
	cptx_cache *c;
	bool off, memory = true;

	if (err && err->code != CPTX_OK)
		return NULL;
	if (!OPTIONS_READ(cptx_cache_opt, &o, opt, NOWHERE, err))
		return NULL;
	opt = &o;
	c = NEW(cptx_cache);
	if (!c) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	c->dir = -1;
	c->warn = opt->warn, c->user = opt->user, c->max_bytes = opt->max_bytes, c->no_write = opt->read_only;
	if (!environment(c, &off, err)) {
		cptx_cache_close(c);
		return NULL;
	}
	if (off) {
		c->no_write = true;
		return c;
	}
	c->path = opt->path ? strdup(opt->path) : usual_path(&memory);
	if (opt->path ? !c->path : !memory) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		cptx_cache_close(c);
		return NULL;
	}
	if (c->path)
		open_folder(c);
	else
		cache_warn(c, "no cache: none of CPTX_CACHE_DIR, XDG_CACHE_HOME and HOME says where");
	return c;
}

void cptx_cache_close(cptx_cache *c)
{
	if (!c)
		return;
	if (c->dir >= 0)
		close(c->dir);
	free(c->path);
	free(c);
}

const char *cptx_cache_path(const cptx_cache *c) { return c && c->path ? c->path : ""; }
bool cptx_cache_can_read(const cptx_cache *c) { return c && c->dir >= 0; }
bool cptx_cache_can_write(const cptx_cache *c) { return c && c->dir >= 0 && !c->no_write; }

/* ---- entries ---- */

bool cache_remove(const cptx_cache *c, const char *name)
{
	return !unlinkat(c->dir, name, 0) || !unlinkat(c->dir, name, AT_REMOVEDIR);
}

void cache_throw_away(cptx_cache *c, const char *name, int fd)
{
	struct stat mine, now;

	if (cptx_cache_can_write(c) && !fstat(fd, &mine) && !fstatat(c->dir, name, &now, AT_SYMLINK_NOFOLLOW) &&
	    mine.st_ino == now.st_ino && mine.st_dev == now.st_dev)
		cache_remove(c, name);
}

bool cptx_cache_get(cptx_cache *c, const cptx_cache_key *key, cptx_cache_entry *entry)
{
	char name[ENTRY_NAME];
	bool memory;

	if (entry)
		*entry = (cptx_cache_entry){ 0 };
	if (!key || !entry || !cptx_cache_can_read(c))
		return false;
	entry_name(name, key);
	int fd = openat(c->dir, name, READ_FLAGS);
	bool ok = fd >= 0 && entry_read(fd, key, c->shared, entry, &memory);
	if (ok && cptx_cache_can_write(c))
		futimens(fd, NULL); /* notes the time of use; where that fails, the order of removal is that of storing */
	if (fd >= 0 && !ok && memory) {
		cache_throw_away(c, name, fd);
		c->damaged++;
	}
	if (fd >= 0)
		close(fd);
	if (ok)
		c->hits++;
	else
		c->misses++;
	return ok;
}

/* Makes a temporary file, and locks it at once, so that no sweep takes it for one whose writer was killed. */
static int open_temporary(cptx_cache *c, char *name, size_t size)
{
	for (int tries = 0; tries < 100; tries++) {
		snprintf(name, size, "tmp-%ld-%u", (long)getpid(), atomic_fetch_add(&c->serial, 1));
		int fd = openat(c->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			flock(fd, LOCK_EX | LOCK_NB);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

bool cptx_cache_put(cptx_cache *c, const cptx_cache_key *key, const cptx_cache_entry *e)
{
	char name[ENTRY_NAME], temporary[64];

	if (!key || !e || !cptx_cache_can_write(c) || entry_bytes(e) > c->max_bytes / 2)
		return false;
	int fd = open_temporary(c, temporary, sizeof temporary);
	entry_name(name, key);
	bool ok = fd >= 0 && entry_write(fd, key, e) && !fsync(fd);
	bool renamed = ok && !renameat(c->dir, temporary, c->dir, name);
	int why = errno;
	if (ok && !renamed && why == EISDIR && cache_remove(c, name)) { /* a folder has the entry's name */
		renamed = !renameat(c->dir, temporary, c->dir, name);
		why = errno;
	}
	ok = renamed;
	if (!ok && fd >= 0)
		unlinkat(c->dir, temporary, 0);
	if (fd >= 0)
		close(fd);
	/* A sweep took the file for an abandoned one, or the folder was removed; or the process lacks something for a moment. */
	if (!ok && why == EISDIR) {
		cache_warn(c, "%s/%s is a folder with something in it where the cache wants to store a file", c->path, name);
		return false;
	}
	if (!ok && (why == ENOENT || why == EMFILE || why == ENFILE || why == ENOMEM || why == EAGAIN || why == EINTR))
		return false;
	if (!ok) {
		cache_warn(c, "nothing more is stored in the cache in %s: %s", c->path, strerror(why));
		c->no_write = true;
		return false;
	}
	/* Sweeps the first time, and whenever a 64th of the bound has been stored. */
	uint64_t since = atomic_fetch_add(&c->unswept, entry_bytes(e)) + entry_bytes(e);
	if (!c->stored++ || since > c->max_bytes / 64) {
		c->unswept = 0;
		cache_sweep(c);
	}
	return true;
}
