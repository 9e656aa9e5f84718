/* SPDX-License-Identifier: MIT */
/* What is linked. */
#ifndef CPTX_COMPILE_LINK_H
#define CPTX_COMPILE_LINK_H

#include "base/base.h"
#include "compile/piece.h"

#include <cptx/compile.h>

typedef struct link_piece {
	piece_form kind;
	const void *data; /* PTX with a NUL behind it */
	size_t size;      /* without that */
	const char *name;
	const cptx_ptx *ptx; /* where a module was printed */
	char own_name[32];
	char *copy;
	cptx_ptx *printed;
} link_piece;

/* Prints modules and copies texts; NULL with an error.  To be given to pieces_free. */
link_piece *pieces_make(const cptx_link_input *inputs, size_t n, const char *target, const cptx_emit_opt *emit, cptx_site at,
                        cptx_error *err);
void pieces_free(link_piece *pieces, size_t n);

#endif
