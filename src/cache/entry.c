/* SPDX-License-Identifier: MIT */
/* The file of an entry: a header of 80 bytes, then data, log and description; numbers are little-endian. */
#include "cache/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	AT_MAGIC = 0,
	AT_KEY = 8,
	AT_SIZES = 24, /* sizes of data, log and description, and 0 */
	AT_SUM = 56,   /* checksum of the header in front of it, and of all behind the header */
	AT_ZERO = 72,
	HEAD = 80
};
static const char magic[] = { 'c', 'p', 't', 'x', 'b', 'i', 'n', '1' };

static void put_u64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_u64(const uint8_t *p)
{
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

void entry_name(char name[ENTRY_NAME], const cptx_cache_key *key)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof key->bytes; i++) {
		*name++ = digits[key->bytes[i] >> 4];
		*name++ = digits[key->bytes[i] & 15];
	}
	memcpy(name, ".entry", 7);
}

bool entry_is_name(const char *name)
{
	size_t n = strspn(name, "0123456789abcdef");
	return n == 2 * HASH_BYTES && !strcmp(name + n, ".entry");
}

static void sum(const uint8_t *head, const struct iovec *parts, size_t n, uint8_t out[HASH_BYTES])
{
	hash s;

	hash_init(&s);
	hash_add(&s, head, AT_SUM);
	for (size_t i = 0; i < n; i++)
		hash_add(&s, parts[i].iov_base, parts[i].iov_len);
	hash_end(&s, out);
}

static bool read_all(int fd, void *to, size_t n, size_t from)
{
	for (size_t have = 0; have < n;) {
		ssize_t r = pread(fd, (char *)to + have, n - have, (off_t)(from + have));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		have += (size_t)r;
	}
	return true;
}

static bool write_all(int fd, const void *p, size_t n)
{
	for (const char *s = (const char *)p; n;) {
		ssize_t w = write(fd, s, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			errno = w ? errno : ENOSPC;
			return false;
		}
		s += w, n -= (size_t)w;
	}
	return true;
}

uint64_t entry_bytes(const cptx_cache_entry *e)
{
	return HEAD + (uint64_t)e->size + (e->log ? strlen(e->log) : 0) + (e->about ? strlen(e->about) : 0) + 2;
}

bool entry_write(int fd, const cptx_cache_key *key, const cptx_cache_entry *e)
{
	uint8_t head[HEAD] = { 0 };
	const char *log = e->log ? e->log : "", *about = e->about ? e->about : "";
	/* The texts are stored with their NULs, so that they are strings as they are read. */
	struct iovec parts[] = { { e->data, e->size }, { (void *)log, strlen(log) + 1 }, { (void *)about, strlen(about) + 1 } };

	memcpy(head + AT_MAGIC, magic, sizeof magic);
	memcpy(head + AT_KEY, key->bytes, sizeof key->bytes);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		put_u64(head + AT_SIZES + 8 * i, parts[i].iov_len);
	sum(head, parts, ARRAY_LEN(parts), head + AT_SUM);
	bool ok = write_all(fd, head, sizeof head);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		ok = ok && write_all(fd, parts[i].iov_base, parts[i].iov_len);
	return ok;
}

/* Reads the sizes in a header; false if they do not add up to the file's size. */
static bool sizes_of(const uint8_t *head, uint64_t file, uint64_t size[3])
{
	uint64_t left = file - HEAD;

	for (size_t i = 0; i < 3; i++) {
		size[i] = get_u64(head + AT_SIZES + 8 * i);
		if (size[i] > left)
			return false;
		left -= size[i];
	}
	return !left && size[1] && size[2];
}

bool entry_read(int fd, const cptx_cache_key *key, bool shared, cptx_cache_entry *out, bool *memory)
{
	static const uint8_t zero[HEAD - AT_ZERO] = { 0 };
	uint8_t head[HEAD], want[HASH_BYTES];
	uint64_t size[3];
	struct stat s;

	*memory = true;
	if (fstat(fd, &s) || !S_ISREG(s.st_mode) || (!shared && s.st_uid && s.st_uid != geteuid()) || s.st_size < HEAD ||
	    (uint64_t)s.st_size > SIZE_MAX / 2 || !read_all(fd, head, HEAD, 0) || memcmp(head, magic, sizeof magic) ||
	    (key && memcmp(head + AT_KEY, key->bytes, sizeof key->bytes)) || memcmp(head + AT_ZERO, zero, sizeof zero) ||
	    !sizes_of(head, (uint64_t)s.st_size, size))
		return false;
	size_t all = (size_t)s.st_size - HEAD;
	char *p = NEW_UNSET(char, all);
	if (!p)
		return *memory = false;
	struct iovec whole = { p, all };
	bool ok = read_all(fd, p, all, HEAD);
	if (ok) {
		sum(head, &whole, 1, want);
		ok = !memcmp(want, head + AT_SUM, sizeof want) && !p[size[0] + size[1] - 1] && !p[all - 1];
	}
	if (!ok) {
		free(p);
		return false;
	}
	*out = (cptx_cache_entry){ .data = p, .size = (size_t)size[0], .log = p + size[0], .about = p + size[0] + size[1] };
	return true;
}
