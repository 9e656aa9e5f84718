/* SPDX-License-Identifier: MIT */
#ifndef CPTX_PARSE_H
#define CPTX_PARSE_H

#include "arch/arch.h"

/*
 * Reads a spelling (text[0 .. n), "ld.global.v4.f32") as form `form`; true, with the value of each modifier group in mods,
 * if it is one of the form's spellings.
 */
bool parse_opcode(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS]);
/* parse_opcode that also accepts the modifiers in other orders that ptxas accepts; for text that no form has as it stands.
 */
bool parse_opcode_any(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS]);

/* Whether an operand stands in braces; a hole of cptx_asm, and the name of a vector register, count as either. */
enum parse_braces { BRACES_NONE, BRACES_HERE, BRACES_EITHER };

/* An operand as it stands in the text. */
typedef struct parse_token {
	cptx_val v;
	bool pipe, address, inside; /* address: in brackets; inside: behind the first operand in brackets */
	bool indexed;               /* a[4]: the address or the value of the element */
	uint8_t braces;             /* enum parse_braces */
	const char *behind;         /* the modifier behind the brackets, or NULL */
	size_t nbehind;
} parse_token;

/*
 * Matches a form, whose groups have the values `mods`, with operands.  vec: the elements of vectors; declared: as in
 * arch_match_form.
 */
bool parse_match(unsigned form, const uint16_t mods[ARCH_GROUPS], const parse_token *token, unsigned ntoken,
                 const cptx_val *vec, bool declared, arch_match *m);

/* A text of PTX; the name is that in messages, NULL: "ptx". */
typedef struct parse_input {
	const char *text;
	size_t size;
	const char *name;
} parse_input;
/*
 * Reads texts into one module, as a linker would join them: what is .extern in one is what another defines, .weak and
 * .common definitions may be repeated, and what a text keeps to itself is seen by it alone.  The module can be executed;
 * printed, it could have two things of one name.  NULL: memory is short, or a text is NULL.
 */
cptx_module *parse_inputs(const parse_input *in, size_t n, const cptx_parse_opt *opt);

#endif
