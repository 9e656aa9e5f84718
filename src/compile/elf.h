/* SPDX-License-Identifier: MIT */
/* Reading ELF files without libelf: 64-bit files of this machine's byte order. */
#ifndef CPTX_COMPILE_ELF_H
#define CPTX_COMPILE_ELF_H

#include "base/base.h"

/* Whether these bytes are a whole ELF image, not a truncated one. */
bool elf_is_whole(const void *data, size_t size);
/* Whether a whole image is an object, which can be linked. */
bool elf_is_object(const void *data);

/* The symbol table of a whole image; symbols count from 0. */
typedef struct elf_symbols {
	const char *at, *names;
	size_t n, names_size;
} elf_symbols;
typedef struct elf_symbol {
	const char *name;
	bool defined, weak;
} elf_symbol;
/* Finds the symbols; false if there are none. */
bool elf_symbols_of(const void *data, size_t size, elf_symbols *symbols);
/* Reads symbol i; false for a symbol that other files do not see. */
bool elf_symbol_at(const elf_symbols *symbols, size_t i, elf_symbol *symbol);

#endif
