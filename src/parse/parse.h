#ifndef CPTX_PARSE_H
#define CPTX_PARSE_H

#include "arch/arch.h"

/*
 * Reads an instruction's spelling (text[0 .. n), "ld.global.v4.f32") as form `form`: true, and the value of each modifier
 * group in mods, if it is one of the form's spellings.
 */
bool parse_opcode(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS]);
/* The same; *reached: how much of the text was understood. */
bool parse_opcode_far(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS], size_t *reached);

#endif
