/* SPDX-License-Identifier: MIT */
/* The inputs of a link, as linkers need them. */
#ifndef CPTX_COMPILE_LINK_H
#define CPTX_COMPILE_LINK_H

#include "base/base.h"
#include "compile/piece.h"

#include <cptx/compile.h>

typedef struct link_piece {
	piece_form kind;
	const void *data; /* PTX with a NUL behind it, or a binary */
	size_t size;      /* without that NUL */
	const char *name;
	const cptx_ptx *ptx; /* the printed text of a module, else NULL */
	char own_name[32];
	char *copy;
	cptx_ptx *printed;
} link_piece;

/* Prints modules and copies texts; NULL with an error.  Free the result by pieces_free. */
link_piece *pieces_make(const cptx_link_input *inputs, size_t n, const char *target, const cptx_emit_opt *emit, cptx_site at,
                        cptx_error *err);
void pieces_free(link_piece *pieces, size_t n);

#endif
