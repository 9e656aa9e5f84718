/* SPDX-License-Identifier: MIT */
/* Inside src/kit: whether a struct is one that the kit's own calls made, for this kernel. */
#ifndef CPTX_KIT_MADE_H
#define CPTX_KIT_MADE_H

#include "base/base.h"

enum kit_noun {
	KIT_NOBODY,
#define NOUN(type, bytes, what, by) KIT_##type,
#include "kit/nouns.def"
};

/* The first field of a struct that is made now. */
cptx_made kit_made(const cptx_kernel *k, enum kit_noun noun);
/* False, with an error, for a struct (NULL: none was given) that no call made in this kernel. */
bool kit_is_made(cptx_kernel *k, cptx_site at, const cptx_made *made, enum kit_noun noun);
#define KIT_IS_MADE(type, k, at, p) kit_is_made((k), (at), (p) ? &(1 ? (p) : (const type *)NULL)->made : NULL, KIT_##type)

#endif
