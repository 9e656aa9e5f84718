/* SPDX-License-Identifier: MIT */
/* Decoding: what decoders of instructions have (decode.c, modifier.c, exec.c). */
#ifndef CPTX_EMU_CORE_DECODE_H
#define CPTX_EMU_CORE_DECODE_H

#include "emu/core/code.h"

typedef struct emu_decoder emu_decoder;
/* Chooses op->fn and what else the instruction needs; false with an error through emu_refuse. */
typedef bool (*emu_decode_fn)(emu_decoder *d, emu_op *op);
bool emu_refuse(emu_decoder *d, const emu_op *op, const char *format, ...) CPTX_PRINTF_(3, 4);
void *emu_decoder_alloc(emu_decoder *d, size_t size); /* zeroed, lives as long as the program; NULL when memory is short */
#define DECODER_ARRAY(d, type, n) ((type *)emu_decoder_alloc((d), array_size((n), sizeof(type))))
#define DECODER_NEW(d, type) DECODER_ARRAY(d, type, 1)
/* Whether a fixed word or value stands in the spelling: for what emu_mods has no name for. */
unsigned emu_modifier(const emu_op *op, const char *field);
const emu_arg *emu_named(const emu_op *op, const char *slot); /* the operand of that name; kind ARG_NONE if it is left out */
const emu_function *emu_decoder_function(emu_decoder *d,
                                         uint32_t number); /* that a call names: its definition, if there is one */
unsigned emu_space_of(unsigned mod);                       /* enum emu_space of a modifier's value; 0: generic */
emu_decode_fn emu_decode_of(unsigned opcode);              /* NULL: not emulated, */
const char *emu_left_out(unsigned opcode);                 /* and why; NULL: it is */
void emu_modifiers(emu_op *op);                            /* those that its functions read */
const char *emu_unread(const ir_item *it);    /* a modifier that nobody reads though it has an effect; NULL: none */
const char *emu_no_effect(const char *field); /* the reason; NULL: it has one */
enum { EMU_WRITTEN_FOR = 93 };                /* the newest PTX version of which anything is emulated */
bool emu_is_newer(const ir_item *it);         /* it needs a PTX version that these functions do not know */
/* Decodes a function of an image; false with an error. */
bool emu_decode_function(emu_image *im, emu_function *f, cptx_site at, cptx_error *err);
/* The image's function of that body, or of its definition; made if it is new; NULL when memory is short (image.c). */
emu_function *emu_image_reach(emu_image *im, const cptx_kernel *k);
void emu_watch(emu_image *im); /* its instructions ask their watchers first (watch.c) */

#endif
