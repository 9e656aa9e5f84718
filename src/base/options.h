/* SPDX-License-Identifier: MIT */
/* Options of callers whose header may be older or newer than this library. */
#ifndef CPTX_BASE_OPTIONS_H
#define CPTX_BASE_OPTIONS_H

#include "base/base.h"

enum {
#define OPTIONS(type, bytes) FIRST_##type = (bytes),
#include "base/options.def"
	OPTIONS_MOST_BYTES = 4096 /* no options and no results are longer; more is an uninitialised struct */
};

/*
 * Copies the options at `from` (NULL: all 0) to *to, a `type` of this library: the fields that the caller's header has, as
 * .size says; the rest is 0.  False, with ARG in *err: .size is impossible, or a field is set that this library does not
 * know.  False, too, where *err has an earlier error.
 */
#define OPTIONS_READ(type, to, from, at, err)                                                                               \
	options_read((to), (from), sizeof(type), offsetof(type, z_), FIRST_##type, #type, (at), (err))
/* Writes options to a caller whose header has `to`->size bytes of them (0: as in version 0.1). */
#define OPTIONS_WRITE(type, to, from) options_write((to), (from), offsetof(type, z_), FIRST_##type)
void options_write(void *to, const void *from, size_t known, size_t first);
/*
 * What a call fills in, of which the caller's header has `size` bytes: these are written, and no others.  OPTIONS_FILL is
 * for options, whose .size it sets, and RESULT_FILL for results.  What this library does not know is 0.
 */
#define OPTIONS_FILL(to, bytes, from)                                                                                       \
	(result_fill((to), (bytes), (from), sizeof *(1 ? (from) : (to))), (void)((bytes) ? (to)->size = (uint32_t)(bytes) : 0))
#define RESULT_FILL(to, bytes, from) result_fill((to), (bytes), (from), sizeof *(1 ? (from) : (to)))
static inline void result_fill(void *to, size_t size, const void *from, size_t known)
{
	memcpy(to, from, MIN(size, known));
	if (size > known && size <= OPTIONS_MOST_BYTES)
		memset((char *)to + known, 0, size - known);
}
/*
 * Choices of a model, of which the caller's header has elements of `bytes` bytes: options stand last in them (.opt), since
 * these grow.  CHOICES_FIT says whether there is room for one.  CHOICE_WRITE writes number i, whose .opt.size becomes
 * `given`, that of the options that were asked about.
 */
#define CHOICES_FIT(type, choices, bytes, room, err)                                                                        \
	(IS_GIVEN((choices), "list of choices", NOWHERE, err) &&                                                                \
	 ((room) && (bytes) > offsetof(type, opt)                                                                               \
	      ? true                                                                                                            \
	      : error_set((err), CPTX_E_ARG, NOWHERE, "there is no room for choices; give it for one or more")))
#define CHOICE_WRITE(type, opt_type, to, i, bytes, given, from)                                                             \
	choice_write((char *)(to) + (i) * (bytes), (bytes), (from), offsetof(type, opt), (given), offsetof(opt_type, z_),       \
	             FIRST_##opt_type)
void choice_write(void *to, size_t size, const void *from, size_t at, uint32_t given, size_t known, size_t first);
/* Bytes from one element to the next in a caller's array of options. */
#define OPTIONS_STRIDE(type, o)                                                                                             \
	((((o)->size ? (o)->size : (uint32_t)FIRST_##type) + sizeof(uint64_t)) & ~(sizeof(uint64_t) - 1))
/* OPTIONS_READ_IN is OPTIONS_READ for a call on kernel k, which gets the error. */
#define OPTIONS_READ_IN(type, to, from, at, k)                                                                              \
	options_read_in((to), (from), sizeof(type), offsetof(type, z_), FIRST_##type, #type, (at), (k))
bool options_read_in(void *to, const void *from, size_t room, size_t known, size_t first, const char *type, cptx_site at,
                     cptx_kernel *k);
bool options_read(void *to, const void *from, size_t room, size_t known, size_t first, const char *type, cptx_site at,
                  cptx_error *err);

#endif
