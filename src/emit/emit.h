/* SPDX-License-Identifier: MIT */
/* What the files of src/emit share. */
#ifndef CPTX_EMIT_H
#define CPTX_EMIT_H

#include "ir/ir.h"

/* Where lines of PTX come from, up to the next entry: all from `line`, or, with `step` 1, each from a line behind it. */
typedef struct line_entry {
	uint32_t ptx_line, line;
	uint16_t file, step;
} line_entry;

struct cptx_ptx {
	cptx_allocator hook;
	const cptx_target *target;
	unsigned version;
	buf text, map, files; /* map: line_entry; files: the names, each with its NUL */
};

/* A register's name, ready to be copied: most of the text is register names.  A longer one is put together each time. */
enum { NAME_MOST = 15, NAME_LONGER = UINT8_MAX };
typedef struct reg_name {
	char text[NAME_MOST];
	uint8_t len; /* NAME_LONGER: put together each time */
} reg_name;

/*
 * A spelling that the target is known to have, and how its operands are printed: all that lines of the usual kind need, so
 * that the table is looked at once for each.
 */
enum { SPELLINGS = 1024, OPCODE_MOST = ARCH_OPCODE, OPCODE_USUAL = 32, SPELLINGS_TEXT = 1 << 16 };
typedef struct spelling {
	uint16_t form /* + 1; 0: empty */, len;
	uint64_t mods[ARCH_GROUPS / 4]; /* by fours */
	uint32_t text;      /* where it stands in `spelled`, a blank behind it; at least OPCODE_USUAL bytes may be read there */
	uint16_t address;   /* a bit for each operand that stands in brackets */
	bool odd;           /* the table tells how an operand stands there: in braces, with others inside of brackets ... */
	bool asks, special; /* arch_form.asks; an operand may be a special register */
} spelling;

typedef struct emitter {
	const cptx_module *m;
	const cptx_kernel *k;
	cptx_ptx *out;
	cptx_error *err;
	const cptx_emit_opt *opt;
	unsigned target, version;
	unsigned strict; /* the .version of text that is checked as it stands; 0: the version rises as far as needed */
	uint32_t line;   /* that is written next, from 1 */
	line_entry run;  /* the last of the map; of no file where a body begins */
	uint16_t loc_file;
	bool locs;                     /* .loc lines are printed */
	size_t kept_version_at;        /* where the version stands in text that is kept */
	size_t version_at, target_end; /* where the text has its version, and where its target ends */
	uint32_t loc_line;             /* of the last .loc */
	reg_name *names;               /* of the body's registers */
	size_t names_cap, longest_name;
	size_t operand_most, line_most;        /* bytes that an operand of the body, a line takes with no vector or list */
	size_t longest_symbol, longest_global; /* names of variables, labels, functions: of the body, of the module */
	spelling known[SPELLINGS];             /* by their hash, or behind */
	unsigned nknown;
	buf spelled;  /* their texts */
	unsigned end; /* lowest version that something printed was removed in; 0: none */
	const ir_item *ends;
	const cptx_kernel *ends_in; /* its body */
	unsigned ends_avail;
	unsigned char texmode; /* enum emit_texmode, of what was printed so far */
} emitter;

/* A module names a sampler beside each texture, or none. */
enum emit_texmode { TEXMODE_NONE, TEXMODE_UNIFIED, TEXMODE_INDEPENDENT };

/* ---- target.c ---- */
/* An error at an item (or NULL: at none), with the place in parsed text or the user's line. */
bool emit_error(emitter *e, const ir_item *it, enum cptx_code code, const char *format, ...) CPTX_PRINTF_(4, 5);
/* Raises the .version as far as a directive of the body needs; false, with an error, where the target lacks it. */
bool emit_needs(emitter *e, enum arch_directive d);
bool emit_text_needs(emitter *e, const char *text); /* of the directives that such text begins with */
/* The spelling of an instruction that the target has; NULL, with an error, if it lacks it. */
const spelling *emit_spelling(emitter *e, const ir_item *it);
/* Special registers, operands with an availability of their own, samplers. */
bool emit_check_asking(emitter *e, const ir_item *it);
/* The same; few instructions have any of these. */
static inline bool emit_check_operands(emitter *e, const spelling *s, const ir_item *it)
{
	return !(s->asks || (s->special && ir_has_kind(it, 1u << CPTX_VAL_SREG))) || emit_check_asking(e, it);
}
/* Whether the target has all of an instruction; an error if not. */
static inline bool emit_check_insn(emitter *e, const ir_item *it)
{
	const spelling *s = emit_spelling(e, it);
	return s && emit_check_operands(e, s, it);
}
void emit_done(emitter *e); /* gives back what it made for itself */
/* Whether the .version is one that everything printed still belongs to. */
bool emit_still_there(emitter *e, unsigned version);

/* ---- insn.c ---- */
bool emit_item(emitter *e, const ir_item *it);
bool emit_insn(emitter *e, const ir_item *it); /* one that is an instruction */
void emit_note_line(emitter *e, const ir_item *it);
/* e->line comes from where the item does. */
static inline void emit_map_line(emitter *e, const ir_item *it)
{
	uint32_t expected = e->run.line + (e->run.step ? e->line - e->run.ptx_line : 0);

	if (it->line != expected || it->file != e->run.file || e->locs)
		emit_note_line(e, it);
}
void emit_no_origin(emitter *e); /* lines from here on, up to the next item, come from nowhere */
/* Prepares the names of the body's registers. */
bool emit_name_registers(emitter *e);
void emit_measure_globals(emitter *e); /* before the first body */

/* ---- decl.c ---- */
void emit_variable(emitter *e, const ir_sym *s);             /* without the semicolon */
void emit_registers(emitter *e, uint32_t first, uint32_t n); /* declarations of the body */
void emit_signature(emitter *e, const cptx_kernel *k);       /* ".entry name(...)" */
void emit_bounds(emitter *e, const cptx_kernel *k);          /* each directive on its line */

/* ---- emit.c ---- */
bool emit_limits(emitter *e, const cptx_target *t); /* of the body, on the device of a target */
void emit_head_of(emitter *e, const cptx_kernel *k);
bool emit_top(emitter *e, const ir_top *t);
bool emit_has_made(const cptx_kernel *k); /* registers that calls made */
void emit_made_registers(emitter *e);     /* their declarations */
cptx_ptx *emit_new(cptx_module *m, const cptx_target *t);

/* ---- keep.c ---- */
bool emit_kept(emitter *e); /* the whole module, as it stood where nobody edited it */

#endif
