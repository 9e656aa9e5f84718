/* SPDX-License-Identifier: MIT */
/*
 * Instructions to try: the spellings of a row of insn.def, and operands for them out of a pool of registers, variables and
 * constants that every kernel of these tests declares in the same way, so that values and their names carry over.
 */
#ifndef TABLE_CASES_H
#define TABLE_CASES_H

#include "arch/arch.h"

enum { OPCODE = 512, LINE = 4096, TRIED_LINE = 4242, MOST_TOKENS = 16 };

/* ---- the pool ---- */

typedef struct pool {
	cptx_module *m;
	cptx_kernel *k;
} pool;

void pool_init(void); /* once, first of all */
pool pool_make(bool b128);
/* One register (nth from 0 to 5), or n behind one another, of a type. */
cptx_val pool_reg(unsigned type, unsigned nth);
cptx_val pool_vec(unsigned type, unsigned nth, unsigned n);
/* Any operand, by number; NONE from pool_nvalue on. */
unsigned pool_nvalue(void);
cptx_val pool_value(unsigned i);
cptx_val pool_symbol(unsigned space); /* a variable there; NONE if there is none */
cptx_val pool_label(void);
cptx_val pool_targets(void);
cptx_val pool_list(void);
/* A function, or its prototype, with a 32-bit result and parameter, or without. */
cptx_val pool_function(bool result, bool parameter);
cptx_val pool_prototype(bool result, bool parameter);
/* The nth type that text declares registers of, in kernels beside those of the pool; 0 from the last on. */
unsigned pool_declared(unsigned nth);
/* A texture instruction with a second name in front of the coordinates: it needs a file of another mode. */
bool pool_names_sampler(const char *line);
/* Text around instructions, to be freed: in front of all kernels; of kernel number n up to its first instruction, with the
 * registers of this line, or (NULL) with all. */
char *pool_file_head(const char *target, unsigned version, bool samplers /* are named beside textures */);
char *pool_kernel_head(unsigned n, unsigned version, const char *line);
/* A value as PTX prints it. */
char *pool_print(char *p, const cptx_val *v, bool brace, bool wide);

/* ---- spellings ---- */

typedef struct spelling {
	uint16_t form;
	uint16_t mod[ARCH_GROUPS];
} spelling;

/*
 * Whether the rows are tried as a whole (CPTX_TABLE_WHOLE), not in samples; whether only some of them are (CPTX_TABLE_ONLY,
 * CPTX_TABLE_SHARD), and whether this form is.
 */
bool spell_whole(void);
bool spell_part(void);
unsigned spell_shards(void); /* how many processes share the table */
bool spell_wanted(unsigned form);
/* A seed that depends on nothing but the row's text, so that other rows do not change a form's samples. */
uint64_t spell_seed(unsigned form);
uint64_t spell_hash(const char *text);
/*
 * The spellings of a form: all of them, or, if they are more than `most`, a sample of at least that many that has every
 * value of every modifier, and, when rows are tried as a whole, every pair of values of two modifiers.  To be freed.
 */
spelling *spell_all(unsigned form, unsigned most, unsigned *n);
void spell(const spelling *s, char text[OPCODE]);
void spell_line(char *text, const char *opcode);

/* ---- one instruction ---- */

typedef struct token {
	cptx_val v;
	bool pipe, address, inside, brace;
	uint16_t behind; /* a modifier behind the brackets, or 0 */
	uint8_t as;      /* a type: registers that the text declares so stand there, see pool_declared; 0: those of v */
	uint8_t odd, at; /* a type: element number `at` is declared so */
} token;

/* What is tried: an opcode and its operands as text; `vals`, `mods` for the builder call if `structured`. */
typedef struct trial {
	char opcode[OPCODE];
	token tok[MOST_TOKENS];
	unsigned ntok;
	unsigned form;
	bool structured;
	cptx_val vals[3 + ARCH_SLOTS];
	uint16_t mods[ARCH_FIELDS];
} trial;

/* The spelling with the plainest operands: registers of the declared types, optional operands left out, or put in. */
trial trial_of(const spelling *s);
trial trial_full(const spelling *s);
/* Operand number i of the form replaced (NONE: left out). */
trial trial_with(const spelling *s, const trial *base, unsigned i, cptx_val v);
void trial_print(const trial *t, char line[LINE]);

/* What the library makes of a trial on a target: false and the reason, or true, the lowest version and the printed line. */
typedef struct outcome {
	bool built, ok; /* accepted by the builder; and by the target */
	unsigned version;
	char line[LINE], why[400];
} outcome;
enum path { BY_CALL, BY_TEXT };
void trial_build(const trial *t, enum path path, const cptx_target *target, outcome *o);
/* The lowest version on every target, 0 where it is not available; false if it cannot be built. */
bool trial_versions(const trial *t, enum path path, uint8_t version[ARCH_TARGETS], outcome *o);
/* The version (times ten) that a spelling was removed in on a target; 0: it is there still. */
unsigned trial_end(const spelling *s, unsigned target);
/* The lowest target that has it, with its version in o->version; NULL if there is none or it cannot be built. */
const cptx_target *trial_lowest(const trial *t, enum path path, outcome *o);

/* Numbers below n, the same in every run. */
typedef struct dice {
	uint64_t state;
} dice;
unsigned roll(dice *d, unsigned n);

#endif
