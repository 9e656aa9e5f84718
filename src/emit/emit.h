/* SPDX-License-Identifier: MIT */
/* Declarations that the files of src/emit share. */
#ifndef CPTX_EMIT_H
#define CPTX_EMIT_H

#include "ir/ir.h"

/* The origin of lines of PTX, up to the next entry: all come from `line`, or, with `step` 1, each from the line behind the
 * one before. */
typedef struct line_entry {
	uint32_t ptx_line, line;
	uint16_t file, step;
} line_entry;

/* A register's name, ready to be copied: most of the text is register names.  A longer name is put together at each use. */
enum { NAME_MOST = 15, NAME_LONGER = UINT8_MAX, NAME_SHIFT = 4 /* logarithm of the size of a reg_name */ };
typedef struct reg_name {
	char text[NAME_MOST];
	uint8_t len; /* NAME_LONGER: the name is put together at each use */
} reg_name;

/*
 * A spelling that the target is known to have, and how its operands are printed: all that usual lines need, so that the
 * table is read once for each spelling.
 */
enum {
	SPELLINGS = 1024,
	SPELLING_PLACES = 64 /* for the first ones */,
	OPCODE_MOST = ARCH_OPCODE,
	OPCODE_USUAL = 32,
	SPELLINGS_TEXT = 1 << 16
};
typedef struct spelling {
	uint16_t form, len;
	uint64_t mods[ARCH_GROUPS / 4]; /* its modifiers, four to a word */
	/* place of the text in `spelled`, which has a blank behind it; at least OPCODE_USUAL bytes may be read there */
	uint32_t text;
	uint16_t address;   /* a bit for each operand that is printed in brackets */
	bool odd;           /* the table must tell how operands are printed: in braces, several inside of brackets ... */
	bool asks, special; /* asks: arch_form.asks; special: an operand may be a special register */
} spelling;

/*
 * A line that is copied from finished pieces: an instruction of this form with these modifiers and kinds of operands.  The
 * text of a register or small number, as most operands are, comes from a table, whose entry the operand's word tells.
 */
enum {
	PIECES = 4,      /* operands of most lines, which are copied without a loop */
	MOST_PIECES = 6, /* of a wide line */
	PIECES_MODS = 12,
	PIECES_FRONT = 32,
	PIECE_BEHIND = 16,
	LINES_LOG = 12,      /* logarithm of the places for lines */
	LINES_BUILT_LOG = 6, /* of those in modules that were built, most of whose items have a shape */
	LINES_NEAR = 8       /* places where a line may stand */
};
enum plan_ready { PLAN_NONE, PLAN_EARLIER /* made by an earlier print */, PLAN_READY, PLAN_NEVER /* there is none */ };
enum line_table { TABLE_EMPTY, TABLE_REGS, TABLE_NUMBERS, LINE_TABLES };
typedef struct line_piece {
	char behind[PIECE_BEHIND]; /* what follows the operand: ", ", "], [", ";", ", %tid.x;" ... */
	uint32_t mask;             /* of its place in bytes of the table */
	uint8_t table, len;        /* enum line_table; bytes of `behind` */
	bool brace;                /* the operand stands in braces */
} line_piece;
typedef struct line_plan { /* what most lines need comes first */
	uint32_t tag;          /* of the items for which it was made (line_tag) */
	uint32_t shape;        /* line_shape of the items */
	uint8_t ready,
		version; /* of an ir_shape: enum plan_ready; the lowest .version that has it, 0: one that ended it is known */
	uint8_t nmods, others; /* words of modifiers; a bit for each operand whose text is put together at each use */
	uint8_t npiece, front_len;
	bool simple; /* at most PIECES operands, and no others */
	/* the kinds in the words of the operands, two to each; of a number that has a ready text also that it is small */
	uint64_t kind[PIECES / 2], kind_mask[PIECES / 2];
	uint64_t first_mods, first_mask; /* the first four modifiers */
	char front[PIECES_FRONT];        /* the opcode and what stands in front of the first operand */
	line_piece piece[MOST_PIECES];
	uint64_t mod[PIECES_MODS / 4 - 1], mod_mask[PIECES_MODS / 4 - 1]; /* the others */
	uint64_t wide_kind, wide_mask;                                    /* like `kind`, of operands 4 and 5 */
} line_plan;

/* A hash that is made of the text instead of the text itself. */
typedef struct emit_hash_state {
	bool any_registers;
	uint64_t lane[4], size; /* over the text so far; its bytes */
	/* with any_registers: registers of a type that were named in the body, and the last one's name */
	uint32_t count[1 << WORD_TYPE];
	reg_name last[1 << WORD_TYPE];
} emit_hash_state;

/* Names that are kept from body to body: of the registers 0 to n - 1 of a range with this prefix. */
enum { RANGES_LOG = 4 };
typedef struct range_names {
	char prefix[8];
	reg_name *name;
	uint32_t n;
	size_t cap;
} range_names;

struct cptx_ptx {
	cptx_allocator hook;
	const cptx_target *target;
	unsigned version;
	bool once;            /* nothing that is learned while printing is kept */
	buf text, map, files; /* map: entries of line_entry; files: the names, each with its NUL */
	buf own;              /* while `text` is the caller's buffer: memory for other texts */
	/* what the emitter works with, kept from print to print */
	arena work;      /* the memory of the arrays below */
	reg_name *names; /* of the body's registers */
	size_t names_cap;
	reg_name *numbered[CLASS_COUNT]; /* the usual names of made registers, by number, from 1 */
	uint32_t nnumbered[CLASS_COUNT];
	size_t cap_numbered[CLASS_COUNT];
	line_plan *plan;
	size_t cap_plan;
	uint16_t *plan_at; /* numbers in `plan`, from 1, by the highest bits of the tag: a hash table */
	size_t cap_plan_at;
	range_names range[1 << RANGES_LOG]; /* of the body's ranges, by a hash of the prefix */
	line_plan *shaped;                  /* plans of the module's shapes, by their numbers */
	size_t cap_shaped;
	uint32_t nshaped;
	const cptx_module *shaped_module; /* whose shapes they are, if its .printer is this text; else a module that is gone */
	unsigned shaped_target;
	spelling *known;
	uint16_t *known_at; /* numbers in `known`, from 1: a hash table with linear probing, with `places` of them */
	size_t cap_known, places;
	buf spelled; /* texts of the known spellings */
};

typedef struct emitter {
	const cptx_module *m;
	const cptx_kernel *k;
	cptx_ptx *out;
	cptx_error *err;
	const cptx_emit_opt *opt;
	emit_hash_state *hash; /* NULL: the text is wanted */
	unsigned target, version;
	unsigned strict; /* the .version of a text that is checked as it stands; 0: the version rises as far as needed */
	uint32_t line;   /* number of the line that is written next, from 1 */
	line_entry run;  /* the last entry of the map, not yet written; without a file where a body begins */
	uint16_t loc_file;
	bool locs;                             /* print .loc lines */
	size_t kept_version_at;                /* place of the version in kept text */
	size_t version_at, target_end;         /* places in the text of its version, and of the end of its target */
	uint32_t loc_line;                     /* line of the last .loc */
	const reg_name *numbered[CLASS_COUNT]; /* those of `out`; NULL: the body names its made registers in another way */
	const reg_name *named[1 << WORD_TYPE]; /* the same by type; NULL: none of the type was met yet in the body */
	bool long_names;                       /* a register has no ready name */
	bool shapes;                           /* out->shaped has room for the module's shapes */
	unsigned nplan, lines_log;
	uint64_t seen;   /* a set of hashes of items without a plan */
	size_t own_most; /* most bytes of an operand of the body that names nothing but registers */
	unsigned nknown;
	unsigned end; /* lowest version that removed something that was printed; 0: none */
	const ir_item *ends;
	const cptx_kernel *ends_in; /* the body where that stands */
	unsigned ends_avail;
	unsigned char texmode; /* enum emit_texmode, as found in what was printed so far */
} emitter;

/* Whether a module names a sampler beside each texture: independent mode, or none: unified mode. */
enum emit_texmode { TEXMODE_NONE, TEXMODE_UNIFIED, TEXMODE_INDEPENDENT };

/* ---- target.c ---- */
/* Sets an error at an item (NULL: at none), with the place in parsed text or the user's line. */
bool emit_error(emitter *e, const ir_item *it, enum cptx_code code, const char *format, ...) CPTX_PRINTF_(4, 5);
/* Raises the .version as far as a directive of the body needs; false, with an error, if the target lacks it. */
bool emit_needs(emitter *e, enum arch_directive d);
bool emit_text_needs(emitter *e,
                     const char *text); /* emit_needs for a directive that is given as text, and for what it holds */
/* The spelling of an instruction if the target has it; NULL, with an error, if the target lacks it. */
const spelling *emit_spelling(emitter *e, const ir_item *it);
/* emit_spelling for a spelling that is not kept: all of it but its modifiers, and its text with a blank behind it. */
bool emit_spell_once(emitter *e, const ir_item *it, spelling *s, char opcode[OPCODE_MOST + 1]);
/* Checks special registers, operands with an availability of their own, and samplers. */
bool emit_check_asking(emitter *e, const ir_item *it);
/* The lowest .version that has the spelling of an item, which the target has; 0: a later one has it no longer. */
unsigned emit_lasting_version(emitter *e, const ir_item *it);
/* Whether the target has a special register, whose .version is taken into account; sets no error. */
bool emit_has_special(emitter *e, const ir_item *it, uint32_t sreg);
/* emit_check_asking for the few instructions that need it. */
static inline bool emit_check_operands(emitter *e, const spelling *s, const ir_item *it)
{
	return !(s->asks || (s->special && ir_has_kind(it, 1u << CPTX_VAL_SREG))) || emit_check_asking(e, it);
}
/* Whether the target has all of an instruction; sets an error if not. */
static inline bool emit_check_insn(emitter *e, const ir_item *it)
{
	const spelling *s = emit_spelling(e, it);
	return s && emit_check_operands(e, s, it);
}
void emit_work_begin(cptx_ptx *out);            /* begins with no memory for what the emitter works with */
void emit_work_for(cptx_ptx *out, size_t text); /* the memory to come is for a text of about so many bytes */
void emit_done(cptx_ptx *out);                  /* frees what the emitter allocated for itself */
/* Whether all that was printed still exists in this .version; if not, sets an error. */
bool emit_still_there(emitter *e, unsigned version);

/* ---- names.c ---- */
/* Prepares the names of the body's registers; false when memory is short. */
bool emit_name_registers(emitter *e);

/* ---- insn.c ---- */
bool emit_item(emitter *e, const ir_item *it);
bool emit_insn(emitter *e, const ir_item *it);                            /* prints an item that is an instruction */
bool emit_spelled(emitter *e, const ir_item *it, const spelling *opcode); /* emit_insn for one whose spelling is known */
/* The bytes to keep for operand i, with what stands around it. */
enum { OPERAND_ROOM = 48 };
size_t emit_operand_room(const emitter *e, const ir_item *it, unsigned i);
/* Writes operand i at p; returns its end, less than emit_operand_room bytes on. */
char *emit_operand(const emitter *e, char *p, const ir_item *it, unsigned i);
void emit_note_line(emitter *e, const ir_item *it);
/* Notes that line e->line comes from where the item does. */
static inline void emit_map_line(emitter *e, const ir_item *it)
{
	uint32_t expected = e->run.line + (e->run.step ? e->line - e->run.ptx_line : 0);

	if (it->line != expected || it->file != e->run.file || e->locs)
		emit_note_line(e, it);
}
void emit_no_origin(emitter *e); /* notes that lines from here on, up to the next item, have no origin */
/* ---- line.c ---- */
void emit_begin_shapes(emitter *e); /* forgets the plans of the shapes of another print */
/* Prints instructions from `it` on, up to the first item that is none or that fails (then *failed is set), or the end;
 * returns that item, or NULL. */
const ir_item *emit_lines(emitter *e, const ir_item *it, bool *failed);

/* ---- hash.c ---- */
void emit_hash_begin(emit_hash_state *h, bool any_registers);
void emit_hash_text(emitter *e);                    /* hashes the text, and takes it away, if there is enough of it */
void emit_hash_registers(emitter *e);               /* begins a body with any_registers: no register has a name */
void emit_hash_item(emitter *e, const ir_item *it); /* names the registers of an item that have none */
void emit_hash_name(emitter *e, uint32_t id);
static inline void emit_hash_use(emitter *e, uint32_t id)
{
	if (!e->out->names[id].len)
		emit_hash_name(e, id);
}
void emit_hash_end(emitter *e, bool adds_texmode, cptx_hash *to);

/* ---- decl.c ---- */
void emit_variable(emitter *e, const ir_sym *s);             /* prints a variable, without the semicolon */
void emit_registers(emitter *e, uint32_t first, uint32_t n); /* prints declarations of the body */
void emit_signature(emitter *e, const cptx_kernel *k);       /* prints ".entry name(...)" */
void emit_bounds(emitter *e, const cptx_kernel *k);          /* prints each launch bound on a line of its own */

/* ---- emit.c ---- */
bool emit_limits(emitter *e, const cptx_target *t); /* checks the body against the limits of a target's device */
void emit_head_of(emitter *e, const cptx_kernel *k);
bool emit_top(emitter *e, const ir_top *t);
bool emit_has_made(const cptx_kernel *k); /* whether builder calls made registers in the body */
void emit_made_registers(emitter *e);     /* prints the declarations of those registers */
cptx_ptx *emit_new(cptx_module *m, const cptx_target *t);

/* ---- keep.c ---- */
bool emit_kept(emitter *e); /* prints a parsed module, byte for byte where nobody edited it */

#endif
