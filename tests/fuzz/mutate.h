/* SPDX-License-Identifier: MIT */
/* Mutations that keep the text PTX for longer than those of bytes do.  For libFuzzer (entry.c) and fuzz_modules.c. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Each changes a text in a buffer of `most` bytes, by the seed; the new size. */
size_t fuzz_mutate_statement(uint8_t *text, size_t size, size_t most, uint32_t seed); /* moves, doubles, goes */
size_t fuzz_mutate_word(uint8_t *text, size_t size, size_t most, uint32_t seed);      /* gives way to another of its kind */
size_t fuzz_mutate_memory(uint8_t *text, size_t size, size_t most, uint32_t seed);    /* another first line of fuzz_ptx.h */
/* A statement of b in a; out has room for `most` bytes. */
size_t fuzz_cross(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t most, uint32_t seed);

#endif
