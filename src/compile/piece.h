/* SPDX-License-Identifier: MIT */
/* The kind of an input of a compiler or linker, by its first bytes.  This header needs libc only, because the command uses
 * it too. */
#ifndef CPTX_COMPILE_PIECE_H
#define CPTX_COMPILE_PIECE_H

#include <stddef.h>
#include <string.h>

typedef enum piece_form { PIECE_PTX, PIECE_CUBIN, PIECE_FATBIN, PIECE_OBJECT, PIECE_LIBRARY } piece_form;

static inline piece_form piece_kind(const void *data, size_t size)
{
	enum { MACHINE = 18, CUDA = 190 };
	const unsigned char *p = (const unsigned char *)data;

	if (size >= 20 && !memcmp(p, "\177ELF", 4))
		return p[MACHINE] == CUDA && !p[MACHINE + 1] ? PIECE_CUBIN : PIECE_OBJECT;
	if (size >= 4 && !memcmp(p, "\177ELF", 4))
		return PIECE_CUBIN; /* a truncated cubin */
	if (size >= 4 && (!memcmp(p, "\x50\xed\x55\xba", 4) || !memcmp(p, "\xb1\x43\x62\x46", 4)))
		return PIECE_FATBIN;
	return size >= 8 && !memcmp(p, "!<arch>\n", 8) ? PIECE_LIBRARY : PIECE_PTX;
}

#endif
