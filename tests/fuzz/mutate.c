/* SPDX-License-Identifier: MIT */
#include "mutate.h"
#include "tokens.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state;

static void begin(uint32_t seed) { state = seed * 2654435761u | 1; }

static size_t roll(size_t n)
{
	state ^= state << 13, state ^= state >> 17, state ^= state << 5;
	return n ? state % n : 0;
}

/* From *from to behind *to of `text`, `with` in its place; the new size, or the old one if there is no room. */
static size_t replace(uint8_t *text, size_t size, size_t most, size_t from, size_t to, const void *with, size_t n)
{
	if (size - (to - from) + n > most)
		return size;
	memmove(text + from + n, text + to, size - to);
	memcpy(text + from, with, n);
	return size - (to - from) + n;
}

/* ---- statements ---- */

static bool ends(uint8_t c) { return c == ';' || c == '{' || c == '}' || c == ':'; }

/* The statement around a place: its first byte, and where the next begins. */
static void statement(const uint8_t *text, size_t size, size_t at, size_t *from, size_t *to)
{
	for (*from = at; *from && !ends(text[*from - 1]); --*from)
		;
	for (*to = at; *to < size && !ends(text[*to]); ++*to)
		;
	*to += *to < size;
}

size_t fuzz_mutate_statement(uint8_t *text, size_t size, size_t most, uint32_t seed)
{
	size_t a, a_end, b, b_end;

	begin(seed);
	statement(text, size, roll(size), &a, &a_end);
	statement(text, size, roll(size), &b, &b_end);
	uint8_t *copy = malloc(a_end - a + 1);
	if (!copy)
		return size;
	memcpy(copy, text + a, a_end - a);
	switch (roll(4)) {
	case 0: size = replace(text, size, most, a, a_end, "", 0); break;
	case 1: size = replace(text, size, most, b, b, copy, a_end - a); break;
	case 2: size = replace(text, size, most, b, b_end, copy, a_end - a); break;
	default: /* moves to the front or back */
		size = replace(text, size, most, a, a_end, "", 0);
		statement(text, size, roll(size), &b, &b_end);
		size = replace(text, size, most, b, b, copy, a_end - a);
	}
	free(copy);
	return size;
}

/* ---- words ---- */

static bool in_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

enum kind { WORD_NUMBER, WORD_MODIFIER, WORD_OPCODE, WORD_NAME };

static enum kind kind_of(const uint8_t *text, size_t size, size_t from, size_t to)
{
	if (text[from] >= '0' && text[from] <= '9')
		return WORD_NUMBER;
	if (from && text[from - 1] == '.')
		return WORD_MODIFIER;
	return to < size && text[to] == '.' && text[from] != '%' ? WORD_OPCODE : WORD_NAME;
}

/* The word at or behind a place; false if there is none. */
static bool word_at(const uint8_t *text, size_t size, size_t at, size_t *from, size_t *to)
{
	while (at < size && !in_word(text[at]))
		at++;
	for (*from = at; *from && in_word(text[*from - 1]); --*from)
		;
	for (*to = at; *to < size && in_word(text[*to]); ++*to)
		;
	return at < size;
}

size_t fuzz_mutate_word(uint8_t *text, size_t size, size_t most, uint32_t seed)
{
	static const char *const numbers[] = { "0",
		                                   "1",
		                                   "2",
		                                   "4",
		                                   "16",
		                                   "31",
		                                   "64",
		                                   "127",
		                                   "255",
		                                   "256",
		                                   "65535",
		                                   "65536",
		                                   "0x7fffffff",
		                                   "0x80000000",
		                                   "4294967295",
		                                   "4294967296",
		                                   "0xffffffffffffffff",
		                                   "18446744073709551616",
		                                   "1.5",
		                                   "0f3F800000",
		                                   "0d7FF0000000000000",
		                                   "0f7F800001" };
	size_t from, to, other, other_end;

	begin(seed);
	if (!word_at(text, size, roll(size), &from, &to))
		return size;
	enum kind kind = kind_of(text, size, from, to);
	for (int turn = roll(2) ? 16 : 0; turn > 0; turn--) { /* one of the text */
		if (!word_at(text, size, roll(size), &other, &other_end) || kind_of(text, size, other, other_end) != kind)
			continue;
		char copy[64];
		size_t n = other_end - other < sizeof copy ? other_end - other : sizeof copy;
		memcpy(copy, text + other, n);
		return replace(text, size, most, from, to, copy, n);
	}
	const char *with = kind == WORD_NUMBER     ? numbers[roll(sizeof numbers / sizeof *numbers)]
	                   : kind == WORD_MODIFIER ? modifiers[roll(NMODIFIERS)]
	                   : kind == WORD_OPCODE   ? forms[roll(NFORMS)]
	                                           : specials[roll(NSPECIALS)];
	return replace(text, size, most, from, to, with, kind == WORD_OPCODE ? opcode_length(with) : strlen(with));
}

size_t fuzz_mutate_memory(uint8_t *text, size_t size, size_t most, uint32_t seed)
{
	begin(seed);
	char line[4] = { '!', (char)(64 + roll(60)), (char)(64 + roll(60)), '\n' };
	const uint8_t *end = size && *text == '!' ? memchr(text, '\n', size) : NULL;

	if (end && roll(2))
		return replace(text, size, most, 0, (size_t)(end - text) + 1, "", 0);
	return replace(text, size, most, 0, end ? (size_t)(end - text) + 1 : 0, line, sizeof line);
}

size_t fuzz_cross(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t most, uint32_t seed)
{
	size_t from, to, at, end;

	begin(seed);
	if (na > most)
		na = most;
	memcpy(out, a, na);
	statement(b, nb, roll(nb), &from, &to);
	statement(out, na, roll(na), &at, &end);
	return replace(out, na, most, at, roll(2) ? at : end, b + from, to - from);
}
