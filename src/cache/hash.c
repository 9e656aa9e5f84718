/* SPDX-License-Identifier: MIT */
#include "cache/hash.h"

#include <cptx/cache.h>

#include <string.h>

static const uint64_t start[8] = { 0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	                               0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179 };

/* The order in which each round takes the words of a block; rounds 10 and 11 use rows 0 and 1 again. */
static const uint8_t order[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 }, { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 }, { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 }, { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 }, { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint64_t rotated(uint64_t x, unsigned n) { return x >> n | x << (64 - n); }

static uint64_t word(const uint8_t *p)
{
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
	*a += *b + x, *d = rotated(*d ^ *a, 32);
	*c += *d, *b = rotated(*b ^ *c, 24);
	*a += *b + y, *d = rotated(*d ^ *a, 16);
	*c += *d, *b = rotated(*b ^ *c, 63);
}

static void take(hash *s, const uint8_t *block, uint64_t last)
{
	uint64_t v[16], m[16];

	for (size_t i = 0; i < 16; i++)
		m[i] = word(block + 8 * i);
	for (size_t i = 0; i < 8; i++)
		v[i] = s->h[i], v[i + 8] = start[i];
	v[12] ^= s->count;
	v[14] ^= last;
	for (size_t r = 0; r < 12; r++) {
		const uint8_t *o = order[r % 10];
		for (size_t i = 0; i < 4; i++)
			mix(v + i, v + 4 + i, v + 8 + i, v + 12 + i, m[o[2 * i]], m[o[2 * i + 1]]);
		for (size_t i = 0; i < 4; i++)
			mix(v + i, v + 4 + (i + 1) % 4, v + 8 + (i + 2) % 4, v + 12 + (i + 3) % 4, m[o[8 + 2 * i]], m[o[9 + 2 * i]]);
	}
	for (size_t i = 0; i < 8; i++)
		s->h[i] ^= v[i] ^ v[i + 8];
}

void hash_init(hash *s)
{
	memset(s, 0, sizeof *s);
	memcpy(s->h, start, sizeof start);
	s->h[0] ^= 0x01010000 | HASH_BYTES; /* parameters of BLAKE2b: no key, one thread */
}

/* A full block waits until more comes, because the last block is known only at the end. */
void hash_add(hash *s, const void *data, size_t size)
{
	const uint8_t *p = (const uint8_t *)data;

	while (size) {
		if (s->n == sizeof s->block) {
			s->count += s->n;
			take(s, s->block, 0);
			s->n = 0;
		}
		while (!s->n && size > sizeof s->block) {
			s->count += sizeof s->block;
			take(s, p, 0);
			p += sizeof s->block, size -= sizeof s->block;
		}
		size_t some = sizeof s->block - s->n < size ? sizeof s->block - s->n : size;
		memcpy(s->block + s->n, p, some);
		s->n += some, p += some, size -= some;
	}
}

void hash_end(hash *s, uint8_t out[HASH_BYTES])
{
	s->count += s->n;
	memset(s->block + s->n, 0, sizeof s->block - s->n);
	take(s, s->block, UINT64_MAX);
	for (size_t i = 0; i < HASH_BYTES; i++)
		out[i] = (uint8_t)(s->h[i / 8] >> 8 * (i % 8));
}

cptx_cache_key cptx_cache_key_of(const cptx_cache_part *parts, size_t n)
{
	cptx_cache_key key;
	hash s;

	hash_init(&s);
	for (size_t i = 0; parts && i < n; i++) {
		uint8_t size[8];
		for (size_t j = 0; j < 8; j++)
			size[j] = (uint8_t)((uint64_t)parts[i].size >> 8 * j);
		hash_add(&s, size, sizeof size);
		hash_add(&s, parts[i].data, parts[i].size);
	}
	hash_end(&s, key.bytes);
	return key;
}
