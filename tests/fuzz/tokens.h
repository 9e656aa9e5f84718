/* SPDX-License-Identifier: MIT */
/* The words of PTX, from the tables. */
#ifndef FUZZ_TOKENS_H
#define FUZZ_TOKENS_H

#include <stddef.h>

static const char *const modifiers[] = {
#define TYPE(id, name, bits, class) name,
#include "arch/types.def"
#undef TYPE
#define MOD(id, name, about) name,
#include "arch/mods.def"
#undef MOD
};

static const char *const specials[] = {
#define SREG(id, name, type, available) name,
#define SREG_OLD(id, name, type, least, count, available) name,
#include "arch/sreg.def"
#undef SREG_OLD
#undef SREG
};

/* Forms: an opcode is the first word of each. */
static const char *const forms[] = {
#define OP(name, chapter, about)
#define INSTEAD(name, text)
#define NOTE(name, text)
#define INSN(name, form, available, constraint) form,
#include "arch/insn.def"
#undef OP
#undef INSTEAD
#undef NOTE
#undef INSN
};

enum {
	NMODIFIERS = sizeof modifiers / sizeof *modifiers,
	NSPECIALS = sizeof specials / sizeof *specials,
	NFORMS = sizeof forms / sizeof *forms
};

static inline size_t opcode_length(const char *form)
{
	size_t n = 0;
	while ((form[n] >= 'a' && form[n] <= 'z') || (form[n] >= '0' && form[n] <= '9') || form[n] == '_')
		n++;
	return n;
}

#endif
