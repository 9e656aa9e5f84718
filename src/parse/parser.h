/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the parser share: the text, the names in scope, and the reporting of errors. */
#ifndef CPTX_PARSER_H
#define CPTX_PARSER_H

#include "ir/ir.h"
#include "parse/parse.h"

/* ---- names: scopes.c ---- */
enum name_kind { NAME_NONE, NAME_REG, NAME_RANGE, NAME_VECTOR, NAME_SYM, NAME_FUNC, NAME_LABEL, NAME_SREG, NAME_FILE };

typedef struct binding {
	uint32_t slot, id; /* id: a register (the first of a range or vector), symbol, function number, label ... */
	uint32_t count;    /* for NAME_RANGE and NAME_VECTOR */
	uint32_t shadow;   /* the binding that this one hides, or IR_NONE */
	uint8_t kind, pending /* pending: a label that was used but not placed yet */;
} binding;

typedef struct name_slot {
	const char *name; /* lies in the module's arena; NULL: a free slot */
	uint32_t len;     /* length of the name; with RANGE_KEY that of a range's prefix */
	uint32_t hash, binding;
} name_slot;

/* Single names in scope that end in digits, as far as ranges of names must know them. */
typedef struct name_numbers {
	uint64_t stems[4]; /* a set of hashes of the text in front of the digits */
	bool in_range;     /* such a name in scope hides, or could hide, one of a range */
} name_numbers;

/* A range in scope: its prefix of up to 7 bytes, and its registers. */
enum { QUICK_RANGES = 16 };
typedef struct quick_range {
	uint64_t key; /* the prefix's bytes, the first lowest; 0: none */
	uint32_t id, count;
} quick_range;

typedef struct name_table {
	name_slot *slot;
	size_t nslot, used; /* nslot: a power of two */
	binding *bound;
	size_t nbound, cap_bound;
	struct name_scope *scope; /* the open scopes */
	size_t nscope, cap_scope;
	name_numbers numbers;
	size_t
		here; /* the first binding that the text made in the module's scope: those in front are of texts it is linked to */
	quick_range quick[QUICK_RANGES]; /* the latest ranges, by their key; all are forgotten when a scope that has some ends */
} name_table;
typedef struct name_scope {
	uint32_t first;       /* index of the scope's first binding */
	name_numbers numbers; /* the counters of the scope outside */
} name_scope;

/* A word of the text with its hashes for look-up. */
typedef struct word {
	const char *s;
	uint32_t len, hash;
	uint32_t stem, stem_hash; /* length and hash of the word without the digits at its end */
	const char *at;           /* its place in the text, or that of the word it was made of; NULL if it has none */
} word;

/* ---- instructions: spelling.c ---- */
typedef struct spelled_form {
	uint16_t form, mods[ARCH_GROUPS];
} spelled_form;
/* A remembered match of a spelling: most instructions repeat one with other registers. */
enum { REMEMBERED_TOKENS = 8 };
typedef struct remembered {
	uint64_t key[REMEMBERED_TOKENS];
	unsigned ntoken;
	arch_known known; /* from: indices of tokens */
} remembered;

/* A match of plain operands (insn.h): other operands of the same shape make the same item with other words. */
enum { PLAIN_TOKENS = 8 };
typedef struct plain_match {
	uint64_t shape[PLAIN_TOKENS / 4];
	uint32_t most[PLAIN_TOKENS]; /* the largest register number, or WORD_ZERO + value of an integer, that is known to fit */
	uint32_t words[ARCH_OPERANDS]; /* words of the item, to which the words of the operands are added */
	uint8_t from[ARCH_OPERANDS];   /* number of the operand that each word gets, or PLAIN_TOKENS */
	uint16_t mod[ARCH_GROUPS];
	ir_item head; /* the item's form and lengths */
	unsigned ntoken;
} plain_match;

typedef struct spelled {
	struct spelled *next; /* next spelling with the same hash */
	const char *text;
	uint32_t len;
	uint16_t nform;
	bool takes_label, takes_list;
	spelled_form *form;
	remembered *last, *before; /* last: the latest match; before: an earlier one with other kinds of operands; or NULL */
	plain_match *plain[2];     /* matches of plain operands, replaced in turn */
	unsigned turn;
} spelled;

typedef struct comment {
	const char *at;
	size_t len;
	uint32_t line;
} comment;

enum { SPELLED_SLOTS = 4096, TEXT_BEHIND = 16 };
typedef struct parser {
	cptx_module *m;
	cptx_kernel *k;
	const char *begin, *end, *p; /* TEXT_BEHIND bytes from *end on are NUL */
	const char *line_start;
	uint32_t line;
	const char *stop;  /* end of the last token: an error about the token in front of p->p ends there */
	const char *start; /* start of the statement */
	uint32_t start_line;
	const char *file; /* name of the text, in the arena */
	name_table names;
	comment *comments; /* comments since the last statement */
	size_t ncomment, cap_comment;
	struct spelled *spelled[SPELLED_SLOTS];
	/* the memory of spellings, which goes when the texts are read: what nearly each instruction looks at lies together */
	arena spellings, forms;
	cptx_report_fn report;
	void *user;
	size_t nerror, most_errors;
	uint32_t nregister; /* registers declared in all bodies, which a few bytes of text can make very many */
	size_t first_body;  /* number of bodies that texts in front of this one have */
	bool has_section;
	bool no_memory;
	bool columns;         /* the text is not kept, only the columns of its statements */
	size_t memory_before; /* bytes of the arena's chunks before the text was read */
} parser;

/* ---- lex.c ---- */
extern const unsigned char parse_is_word[256];   /* bit 0: a character of names; bit 1: a digit */
extern const unsigned char parse_is_dotted[256]; /* parse_is_word, and the dot */
/* The end of the names and dots at s. */
static inline const char *parse_dotted(const char *s)
{
	while (parse_is_dotted[(unsigned char)*s])
		s++;
	return s;
}
/* Skips blanks and comments. */
void parse_skip(parser *p);
static inline void parse_blanks(parser *p)
{
	if (*p->p == ' ')
		p->p++;
	if ((unsigned char)*p->p <= ' ' || *p->p == '/' || *p->p == '#')
		parse_skip(p);
}
/* parse_skip for the end of a statement: most end their line, and the next line begins with a tab. */
static inline void parse_blanks_line(parser *p)
{
	if (*p->p == '\n') {
		p->line++;
		p->line_start = ++p->p;
		if (*p->p == '\t')
			p->p++;
	}
	parse_blanks(p);
}
/* Whether the text goes on with `c`; if so, skips it and the blanks behind it. */
static inline bool parse_take(parser *p, char c)
{
	if (*p->p != c)
		return false;
	p->stop = ++p->p;
	parse_blanks(p);
	return true;
}
/* Whether the text goes on with exactly this directive, ".word"; if so, skips it. */
bool parse_directive(parser *p, const char *name);
bool parse_word(parser *p, word *w); /* reads a name; false, without error, if there is none */
word parse_word_of(const char *s, size_t len);
/* The character at p->p for a message: "'x'", "the end of the file", "a NUL byte". */
const char *parse_found(const parser *p, char text[24]);
/* Reports an error at a place of the text, "file:line:column: error: ...".  Returns false. */
bool parse_error(parser *p, const char *at, enum cptx_code code, const char *format, ...) CPTX_PRINTF_(4, 5);
bool parse_expect(parser *p, char c, const char *where);
bool parse_out_of_memory(parser *p);
cptx_site parse_site(const parser *p);
/* Copies text from `from` to `to` as one line: blanks and comments become single blanks.  In the arena; NULL when memory is
 * short. */
const char *parse_collapse(parser *p, const char *from, const char *to);
/* Reports the first byte of text[from .. to) that is not ASCII, because ptxas accepts none. */
bool parse_ascii(parser *p, const char *from, const char *to);

/* ---- scopes.c ---- */
#define RANGE_KEY 0x80000000u
bool names_init(parser *p);
void names_free(parser *p);
binding *names_find(parser *p, const word *w); /* finds a name, but not a register of a range */
/* The register that a word names, or IR_NONE; *b gets its binding. */
uint32_t names_register(parser *p, const word *w, const binding **b);
/* Enters a new name into the innermost scope; NULL, with an error, if it is taken there or is no name. */
binding *names_bind(parser *p, const word *w, unsigned kind, uint32_t id, uint32_t count);
const char *names_text(parser *p, const binding *b);
/* names_find for a declaration of the module: what another text keeps to itself, and what this one will, are apart. */
binding *names_declared(parser *p, const word *w, unsigned linkage);
bool names_is_earlier(const parser *p, const binding *b); /* another text made it, which this one is linked to */
void names_end_text(parser *p);                           /* forgets what the text keeps to itself */
bool names_enter(parser *p);
void names_leave(parser *p);
/* The label with that name, made if no statement has placed it yet; returns its id, or IR_NONE. */
uint32_t names_label(parser *p, const word *w);

/* ---- expr.c ---- */
static inline bool parse_ends_operand(char c) { return c == ';' || c == ',' || c == ']' || c == '}'; }
/* Reads a constant expression: INT, or FLOAT with its type. */
bool parse_constant(parser *p, cptx_val *v);
/* Reads a plain number, as lengths, alignments and the arguments of directives are. */
bool parse_natural(parser *p, uint64_t low, uint64_t high, uint64_t *v, const char *what);
bool parse_literal(parser *p, uint32_t low, uint32_t high, uint32_t *v, const char *what);
bool parse_int(parser *p, int64_t low, int64_t high, int64_t *v, const char *what);

/* ---- initialise.c ---- */
bool parse_initialiser(parser *p, ir_sym *s); /* reads the value behind the = of a variable */

/* ---- decl.c ---- */
/* Reads declarations that begin with a state space, up to and with the semicolon, in the body or in the module. */
bool parse_variables(parser *p, unsigned linkage);
bool parse_registers(parser *p);
unsigned parse_space(parser *p); /* reads a state space; 0 if there is none */
bool parse_argument(parser *p, cptx_kernel *k, ir_arg *a, bool named);

/* ---- head.c: kernels and functions ---- */
bool parse_function(parser *p, unsigned linkage);
void parse_keep_columns(parser *p, const cptx_kernel *k); /* keeps columns in place of the places of its statements */
bool parse_signature(parser *p, cptx_kernel *k);
bool parse_string(parser *p); /* reads "..." */

/* ---- directive.c ---- */
/* Reports what .target and .version lack for a directive, or part of one, that stands at `at`. */
void parse_needs(parser *p, const char *at, enum arch_directive d);
bool parse_listed(parser *p, enum arch_directive d); /* parse_directive by the row's name, then parse_needs */
enum pragma_place { PRAGMA_MODULE, PRAGMA_HEAD, PRAGMA_BODY };
bool parse_pragma(parser *p, enum pragma_place place); /* reads the strings behind .pragma */
/* Reads the text in the parentheses behind .attribute, of a variable or a function; NULL, with an error, if it is wrong. */
const char *parse_attributes(parser *p, bool variable);
bool parse_section(parser *p); /* reads what follows .section */

/* ---- body.c, insn.c ---- */
void parse_body(parser *p);
/* known: the spelling, if it was just read and no guard stands in front; or NULL */
bool parse_instruction(parser *p, spelled *known);
enum { SPELLING_BEHIND = 8 }; /* that many bytes may be read behind the text of a spelling */
/* Adds the comments up to the end of this statement as items; later ones stay for the next. */
void parse_flush_comments(parser *p);
ir_top *parse_top(parser *p, enum ir_top_kind kind); /* adds an entry for the text from p->start to p->stop */
ir_item *parse_item(parser *p, enum ir_item_kind kind, const cptx_val *operand, unsigned noperand);
/* Reads a spelling that was read before, if a blank or semicolon ends it, and skips it; else NULL. */
spelled *parse_known(parser *p);
/* The forms of a spelling; NULL when memory is short. */
spelled *parse_spelled(parser *p, const char *text, size_t len);

#endif
