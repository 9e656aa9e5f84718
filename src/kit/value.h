/* SPDX-License-Identifier: MIT */
/* Inside src/kit: whether a cptx_val that the user gave is one that an option or argument takes; quotients. */
#ifndef CPTX_KIT_VALUE_H
#define CPTX_KIT_VALUE_H

#include "base/base.h"

static inline bool is_none(cptx_val v) { return v.kind == CPTX_VAL_NONE; }

/* Kinds of values that an argument may be: registers of these types, constants, addresses, nothing. */
enum {
	KIT_U32 = 1,        /* .u32, .s32, .b32 */
	KIT_U64 = 2,        /* .u64, .s64, .b64 */
	KIT_U16 = 4,        /* .u16, .s16, .b16 */
	KIT_F32 = 8,        /* .f32 */
	KIT_PRED = 16,      /* a predicate */
	KIT_COUNT = 32,     /* an integer constant from 1 to 2^32 - 1 */
	KIT_WHOLE = 64,     /* one from 0 on */
	KIT_SIGNED = 128,   /* any integer constant */
	KIT_REAL = 256,     /* any constant */
	KIT_VARIABLE = 512, /* the address of a variable */
	KIT_NONE = 1024,    /* NONE: it may be left out */
	KIT_F64 = 2048      /* .f64 */
};

/*
 * False, with an error, for what is none of these: "cptx_tiles_new: .group is no value: a number is written cptx_imm(8)".
 * A number without cptx_imm lands in cptx_val.kind, for C elides the braces; values have a count, it does not.
 */
bool kit_value(cptx_kernel *k, cptx_site at, const char *where, const char *what, cptx_val v, uint32_t takes);

/* An option of the description `o`, by the name that the user wrote. */
#define KIT_OPTION(where, o, name, takes) kit_value(k, at, where, "." #name, (o)->name, (takes))

/*
 * Threads that take part against the kernel's .block, where that is known.  Where %tid.x numbers them they are all that the
 * block has along x, and `advice` says what else may be done; NULL: the user gave .thread, and the block may have more.
 */
bool kit_threads(cptx_kernel *k, cptx_site at, const char *where, uint32_t threads, const char *advice);
#define KIT_THREADS(where, o)                                                                                               \
	kit_threads(k, at, where, (o)->threads,                                                                                 \
	            (o)->thread.kind == CPTX_VAL_NONE ? ": where some of its threads take part, say which one this is, .thread" \
	                                              : NULL)

/* Coordinates of a box of so many rows whose map cptx_tensor_map_cut made, so that rows from `end` on lie outside: *row is
 * that of its first row, .s32, and becomes where in its window the box begins; *window: where the window is. */
void kit_cut_box(cptx_kernel *k, cptx_site at, uint32_t rows, cptx_val end, cptx_val *row, cptx_val *window);
/* What kit_cut_box does, of a box whose map cptx_tensor_map_cut_load made. */
void kit_cut_load(cptx_kernel *k, cptx_site at, uint32_t rows, cptx_val end, cptx_val *row, cptx_val *window);

/* v / n, both .u32: a shift where n is a power of two, for ptxas has no short form of a division by a constant. */
cptx_val kit_quotient(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t n);

#endif
