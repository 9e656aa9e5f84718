/* SPDX-License-Identifier: MIT */
/* BLAKE2b with a 128-bit result (RFC 7693), without a key: small, and nearly as fast as reading memory. */
#ifndef CPTX_CACHE_HASH_H
#define CPTX_CACHE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_BYTES = 16 };

typedef struct hash {
	uint64_t h[8], count;
	size_t n; /* bytes in block */
	uint8_t block[128];
} hash;

void hash_init(hash *s);
void hash_add(hash *s, const void *data, size_t size);
void hash_end(hash *s, uint8_t out[HASH_BYTES]);

#endif
