/* SPDX-License-Identifier: MIT */
/* The tables of src/arch, as data. */
#include "gen.h"

#define LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))

const struct type_row types[] = {
#define TYPE(name, text, bits, cls) { #name, text, bits, #cls[0] },
#include "arch/types.def"
};
const struct mod_row mods[] = {
#define MOD(name, text, about) { #name, text, about },
#include "arch/mods.def"
};
const struct sreg_row sregs[] = {
#define SREG(name, text, type, avail) { #name, text, #type, avail, 1, 0, __LINE__ },
#define SREG_OLD(name, text, type, least, count, avail) { #name, text, #type, avail, count, least, __LINE__ },
#include "arch/sreg.def"
};
const struct target_row targets[] = {
#define TARGET(name, number, suffix, family, ptx, s, m, c, t, a, k, u, r, cc, about) { name, number, suffix, family, ptx },
#include "arch/target.def"
};
const struct named_row errors[] = {
#define ERROR(name, text) { #name, text },
#include "base/errors.def"
};
const struct named_row constraints[] = {
#define CONSTRAINT(name, text) { #name, text },
#include "arch/constraint.def"
};
const struct section_row sections[] = {
#define SECTION(chapter, title, name, reason) { chapter, title, name, reason, "", "" },
#define PART(chapter, title, name, of, words) { chapter, title, name, "", of, words },
#include "arch/manual.def"
};
const struct row rows[] = {
#define OP(name, chapter, about) { __FILE__, __LINE__, ROW_OP, #name, chapter, about, NULL },
#define INSTEAD(name, text) { __FILE__, __LINE__, ROW_INSTEAD, #name, text, NULL, NULL },
#define NOTE(name, text) { __FILE__, __LINE__, ROW_NOTE, #name, text, NULL, NULL },
#define INSN(name, form, avail, constraint) { __FILE__, __LINE__, ROW_INSN, #name, form, avail, #constraint },
#include "arch/insn.def"
};
const int ntypes = LEN(types), nmods = LEN(mods), nsregs = LEN(sregs), ntargets = LEN(targets), nerrors = LEN(errors),
		  nconstraints = LEN(constraints), nrows = LEN(rows), nsections = LEN(sections);
