/* SPDX-License-Identifier: MIT */
#include "compile/elf.h"

enum { HEADER = 64, SECTION = 64, SYMBOL = 24 };

static uint64_t number(const void *data, size_t at, unsigned bytes)
{
	uint64_t v = 0;
	memcpy(&v, (const char *)data + at, bytes);
	return v;
}

typedef struct table {
	uint64_t at, size;
} table;

static uint64_t sections(const void *data) { return number(data, 60, 2); }
static uint64_t section(const void *data, uint64_t i) { return number(data, 40, 8) + i * SECTION; }

/* Finds the bytes of a section; false if they are not all in the file. */
static bool section_bytes(const void *data, size_t size, uint64_t i, table *t)
{
	enum { NOTHING = 8 };
	uint64_t at = section(data, i);

	*t = (table){ number(data, at + 24, 8), number(data, at + 32, 8) };
	if (number(data, at + 4, 4) == NOTHING || !t->size)
		*t = (table){ 0 };
	return t->at <= size && t->size <= size - t->at;
}

bool elf_is_whole(const void *data, size_t size)
{
	table t;

	if (size < HEADER || memcmp(data, "\177ELF\2\1", 6))
		return false;
	uint64_t n = sections(data), at = number(data, 40, 8);
	if (n && (number(data, 58, 2) != SECTION || at > size || n * SECTION > size - at))
		return false;
	uint64_t segments = number(data, 56, 2), segments_at = number(data, 32, 8), each = number(data, 54, 2);
	if (segments && (segments_at > size || segments * each > size - segments_at))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (!section_bytes(data, size, i, &t))
			return false;
	return true;
}

bool elf_is_object(const void *data)
{
	enum { RELOCATABLE = 1 };
	return number(data, 16, 2) == RELOCATABLE;
}

bool elf_symbols_of(const void *data, size_t size, elf_symbols *s)
{
	enum { SYMBOLS = 2 };
	table symbols, names;

	for (uint64_t i = 0; elf_is_whole(data, size) && i < sections(data); i++) {
		uint64_t at = section(data, i), link = number(data, at + 40, 4);
		if (number(data, at + 4, 4) != SYMBOLS)
			continue;
		if (link >= sections(data) || !section_bytes(data, size, i, &symbols) || !section_bytes(data, size, link, &names) ||
		    !names.size || number(data, names.at + names.size - 1, 1))
			return false;
		*s = (elf_symbols){ (const char *)data + symbols.at, (const char *)data + names.at, symbols.size / SYMBOL,
			                names.size };
		return true;
	}
	return false;
}

bool elf_symbol_at(const elf_symbols *s, size_t i, elf_symbol *out)
{
	enum { LOCAL, WEAK = 2, COMMON = 0xfff2 };
	const char *p = s->at + i * SYMBOL;
	uint64_t name = number(p, 0, 4), bind = number(p, 4, 1) >> 4, where = number(p, 6, 2);

	if (bind == LOCAL || name >= s->names_size)
		return false;
	*out = (elf_symbol){ .name = s->names + name, .defined = where != 0, .weak = bind == WEAK || where == COMMON };
	return true;
}
