/* What the files of src/emit share. */
#ifndef CPTX_EMIT_H
#define CPTX_EMIT_H

#include "ir/ir.h"

typedef struct line_entry {
	uint32_t ptx_line, line;
	uint16_t file;
} line_entry;

struct cptx_ptx {
	cptx_allocator hook;
	const cptx_target *target;
	unsigned version;
	buf text, map, files; /* map: line_entry; files: the names, each with its NUL */
};

/* A register's name, ready to be copied: most of the text is register names. */
typedef struct reg_name {
	char text[15];
	uint8_t len;
} reg_name;

/* A spelling that the target is known to have: form, modifiers and text. */
enum { SPELLINGS = 64, OPCODE_MOST = 256 };
typedef struct spelling {
	uint16_t form /* + 1; 0: empty */, mods[ARCH_GROUPS];
	uint8_t len;
	char text[OPCODE_MOST - 1];
} spelling;

typedef struct emitter {
	const cptx_module *m;
	const cptx_kernel *k;
	cptx_ptx *out;
	cptx_error *err;
	const cptx_emit_opt *opt;
	unsigned target, version;
	uint32_t line; /* that is written next, from 1 */
	uint16_t file, loc_file;
	uint32_t user_line, loc_line; /* of the last item, of the last .loc */
	reg_name *names;              /* of the body's registers */
	size_t names_cap;
	spelling known[SPELLINGS];
	unsigned end; /* lowest version that something printed was removed in; 0: none */
	const ir_item *ends;
	const cptx_kernel *ends_in; /* its body */
	unsigned ends_avail;
	unsigned char texmode; /* enum emit_texmode, of what was printed so far */
} emitter;

/* A module names a sampler beside each texture, or none. */
enum emit_texmode { TEXMODE_NONE, TEXMODE_UNIFIED, TEXMODE_INDEPENDENT };

/* ---- insn.c: items, and what of them the target has ---- */
bool emit_item(emitter *e, const ir_item *it);
/* Whether the .version is one that everything printed still belongs to. */
bool emit_still_there(emitter *e, unsigned version);
/* Prepares the names of the body's registers. */
bool emit_name_registers(emitter *e);
const char *emit_reg_text(const emitter *e, uint32_t id, char text[16]);

/* ---- emit.c ---- */
/* Formatted text; counts the lines. */
void emit_line(emitter *e, const char *format, ...) CPTX_PRINTF_(2, 3);
/* The error for a target name that does not exist, with the nearest that does. */
void emit_unknown_target(const char *target, cptx_error *err);

#endif
