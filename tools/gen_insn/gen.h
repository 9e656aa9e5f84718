/* SPDX-License-Identifier: MIT */
/*
 * The host generator: what its files share.  rows.c holds the tables of src/arch as data, read.c reads the forms, write.c
 * writes what is generated from them.
 */
#ifndef GEN_H
#define GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MAX_GROUPS = 16,
	MAX_OPERANDS = 12,
	MAX_FIELDS = 24,
	MAX_SLOTS = 12,
	MAX_AVAILS = 1024,
	MAX_FORMS = 2048,
	MAX_OPS = 512,
	MAX_SPELLING = 240,
	NO = 0xff,
	TOK = 64
};

/* ---- rows.c ---- */
struct type_row {
	const char *name, *text;
	int bits;
	char cls;
};
struct mod_row {
	const char *name, *text, *about;
};
struct sreg_row {
	const char *name, *text, *type, *avail;
	int count, least, line;
};
struct target_row {
	const char *name;
	int number;
	char suffix;
	int family, ptx;
};
struct named_row {
	const char *name, *text;
};
/* A section of the manual.  reason: why no row belongs to it; of, words: where its forms stand, as PART in manual.def says.
 */
struct section_row {
	const char *chapter, *title, *name, *reason, *of, *words;
};
enum row_kind { ROW_INSN, ROW_OP, ROW_INSTEAD, ROW_NOTE };
struct row {
	const char *file;
	int line;
	enum row_kind kind;
	const char *name, *text, *avail, *constraint; /* ROW_OP: chapter and meaning stand in text and avail */
};
extern const struct type_row types[];
extern const struct mod_row mods[];
extern const struct sreg_row sregs[];
extern const struct target_row targets[];
extern const struct named_row errors[], constraints[];
extern const struct section_row sections[];
extern const int nsections;
extern const struct row rows[];
extern const int ntypes, nmods, nsregs, ntargets, nerrors, nconstraints, nrows;

/* ---- read.c ---- */
struct group {
	char label[TOK], prefix[256];
	const char *tok[64];
	int kind, same, ntok, avail[64], mod[64], fixed;
	int preset; /* the value that is taken when none is given, + 1 */
	int behind; /* printed behind the brackets of an address */
};
/* The kinds, flags and selectors are those of src/arch/arch.h, in words; write.c gives their numbers. */
enum operand_kind { KIND_REG, KIND_ADDR, KIND_IMM, KIND_LABEL, KIND_FUNC, KIND_LIST, KIND_TARGETS, KIND_PROTO, KIND_SINK };
struct operand {
	char name[TOK], type[TOK], held[TOK], count[TOK], select[TOK], given[TOK], behind[TOK];
	enum operand_kind kind;
	int dest, optional, negatable, minus, wider, symbol, special, reg_only, pipe, twice, sink, inside, read, each;
	int times, over; /* of the number in the value that `count` names */
	int avail;       /* 0: that of the form */
	int lo, hi;
	unsigned long long set;
};
struct form {
	const struct row *row;
	int op, ngroup, noperand, avail;
	struct group group[MAX_GROUPS + 8];
	struct operand operand[MAX_OPERANDS];
	char tail[256];
};
struct op {
	const struct row *row;
	const char *instead;
	int form, nform, nfield, nslot, has_dest;
	char field[MAX_FIELDS][TOK], slot[MAX_SLOTS][TOK];
	int npos; /* slots that every form needs, as arguments of the call */
	char pos[MAX_SLOTS][TOK];
};
extern struct form forms[MAX_FORMS];
extern struct op ops[MAX_OPS];
extern int nforms, nops;
extern const char *avails[MAX_AVAILS];
extern int navail;

void read_tables(void);
/* The row that messages speak of. */
void reading(const char *file, int line, const char *text);
/* Ends the program with "file:line:column: error: ..."; `at` points into the row's text, or is NULL. */
void die(const char *at, const char *format, ...);
int find_type(const char *text);
/* Number of a modifier: 0 none, 1 ON, types from FIRST_TYPE on, CPTX_PTR, then mods. */
enum { FIRST_TYPE = 2 };
int find_mod(const char *text);
int first_mod(void);
int intern_avail(const char *at, const char *text);
int avail_on(const char *text, int target);  /* lowest version (times ten) on a target; 0: not there */
int avail_end(const char *text, int target); /* the version (times ten) that it was removed in there; 0: none */
/* The path of a row's file as messages name it: from the root of the source. */
const char *row_file(const struct row *row);
int has_group(const struct form *f, const char *label);

/* ---- write.c ---- */
void write_isa(FILE *out);
void write_insn(FILE *out);
void write_insn_fast(FILE *out);
void write_table(FILE *out);
int mod_count(const char *s); /* the number inside a modifier's name */

/* ---- cover.c ---- */
void check_chapters(void); /* every instruction names a section of the manual */
void write_coverage(FILE *out);

/* ---- page.c ---- */
void write_pages(FILE *out);
void write_examples(FILE *out);
void write_docs(FILE *out);

/* ---- stubs.c ---- */
void write_stubs(FILE *out);

#endif
