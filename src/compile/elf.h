/* SPDX-License-Identifier: MIT */
/* What must be known of machine code without libelf: 64-bit ELF files of this machine's byte order. */
#ifndef CPTX_COMPILE_ELF_H
#define CPTX_COMPILE_ELF_H

#include "base/base.h"

/* Whether these bytes are a whole ELF image, not one that was cut short. */
bool elf_is_whole(const void *data, size_t size);
/* Whether a whole one can be linked to others. */
bool elf_is_object(const void *data);

/* The symbols of a whole one, number i from 0. */
typedef struct elf_symbols {
	const char *at, *names;
	size_t n, names_size;
} elf_symbols;
typedef struct elf_symbol {
	const char *name;
	bool defined, weak;
} elf_symbol;
/* False: it has none. */
bool elf_symbols_of(const void *data, size_t size, elf_symbols *symbols);
/* False for one that other files do not see. */
bool elf_symbol_at(const elf_symbols *symbols, size_t i, elf_symbol *symbol);

#endif
