/* SPDX-License-Identifier: MIT */
/* What the files of the parser share: the text, the names in scope, and where things are reported. */
#ifndef CPTX_PARSER_H
#define CPTX_PARSER_H

#include "ir/ir.h"
#include "parse/parse.h"

/* ---- names: scopes.c ---- */
enum name_kind { NAME_NONE, NAME_REG, NAME_RANGE, NAME_VECTOR, NAME_SYM, NAME_FUNC, NAME_LABEL, NAME_SREG, NAME_FILE };

typedef struct binding {
	uint32_t slot, id; /* id: a register (the first of a range or vector), symbol, function number, label ... */
	uint32_t count;    /* NAME_RANGE, NAME_VECTOR */
	uint32_t shadow;   /* the binding it hides, or IR_NONE */
	uint8_t kind, pending /* a label that was only used yet */;
} binding;

typedef struct name_slot {
	const char *name; /* in the module's arena; NULL: free */
	uint32_t len;     /* with RANGE_KEY: the prefix of a range */
	uint32_t hash, binding;
} name_slot;

/* Single names that end in digits. */
typedef struct name_numbers {
	uint64_t stems[4]; /* what stands in front of the digits, of those of the scope: a set of hashes */
	bool in_range;     /* one in scope hides, or could hide, one of a range */
} name_numbers;

/* A range in scope: its prefix, up to 7 bytes of it, and its registers. */
enum { QUICK_RANGES = 16 };
typedef struct quick_range {
	uint64_t key; /* the bytes, the first in the lowest; 0: none */
	uint32_t id, count;
} quick_range;

typedef struct name_table {
	name_slot *slot;
	size_t nslot, used; /* a power of two */
	binding *bound;
	size_t nbound, cap_bound;
	struct name_scope *scope; /* the open ones */
	size_t nscope, cap_scope;
	name_numbers numbers;
	quick_range quick[QUICK_RANGES]; /* the latest, by their key; all are forgotten when a scope that has some ends */
} name_table;
typedef struct name_scope {
	uint32_t first;       /* of its bindings */
	name_numbers numbers; /* outside */
} name_scope;

/* A word of the text with what look-up needs. */
typedef struct word {
	const char *s;
	uint32_t len, hash;
	uint32_t stem, stem_hash; /* without the digits behind it */
	const char *at;           /* where the text has it, or what it was made of; NULL if nowhere */
} word;

/* ---- instructions: spelling.c ---- */
typedef struct spelled_form {
	uint16_t form, mods[ARCH_GROUPS];
} spelled_form;
/* The last match of a spelling: most instructions repeat one with other registers. */
enum { REMEMBERED_TOKENS = 8 };
typedef struct remembered {
	uint64_t key[REMEMBERED_TOKENS];
	unsigned ntoken;
	arch_known known; /* from: of the tokens */
} remembered;

/* A match of plain operands (insn.h): others of the same shape make the same item with other words. */
enum { PLAIN_TOKENS = 8 };
typedef struct plain_match {
	uint64_t shape[PLAIN_TOKENS / 4];
	uint32_t most[PLAIN_TOKENS];   /* no greater number of a register, or WORD_ZERO + value of an integer, fits for sure */
	uint32_t words[ARCH_OPERANDS]; /* of the item, to which that of an operand is added: */
	uint8_t from[ARCH_OPERANDS];   /* its number, or PLAIN_TOKENS */
	uint16_t mod[ARCH_GROUPS];
	ir_item head; /* of the item: its form, and how much stands behind it */
	unsigned ntoken;
} plain_match;

typedef struct spelled {
	struct spelled *next; /* of the same hash */
	const char *text;
	uint32_t len;
	uint16_t nform;
	bool takes_label, takes_list;
	spelled_form *form;
	remembered *last, *before; /* the latest, the one before it with other kinds of operands; or NULL */
	plain_match *plain[2];     /* of plain operands, and kept in turn */
	unsigned turn;
} spelled;

typedef struct comment {
	const char *at;
	size_t len;
	uint32_t line;
} comment;

enum { SPELLED_SLOTS = 1024, TEXT_BEHIND = 16 };
typedef struct parser {
	cptx_module *m;
	cptx_kernel *k;
	const char *begin, *end, *p; /* from *end on TEXT_BEHIND bytes are NUL */
	const char *line_start;
	uint32_t line;
	const char *stop;  /* behind the last token: where what stands there ends */
	const char *start; /* of the statement */
	uint32_t start_line;
	const char *file; /* its name, in the arena */
	name_table names;
	comment *comments; /* met since the last statement */
	size_t ncomment, cap_comment;
	struct spelled *spelled[SPELLED_SLOTS];
	cptx_report_fn report;
	void *user;
	size_t nerror, most_errors;
	uint32_t nregister; /* declared in all bodies: a few bytes of text declare many */
	bool has_section;
	bool no_memory;
	bool columns;         /* the text is not kept, only the columns of its statements */
	size_t memory_before; /* bytes of the arena's chunks, before the text */
} parser;

/* ---- lex.c ---- */
extern const unsigned char parse_is_word[256];   /* 1: in names; 2: digits */
extern const unsigned char parse_is_dotted[256]; /* the same, and the dot */
/* Where the names and dots at s end. */
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
/* The same behind a statement: most end their line, and the next begins with a tab. */
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
/* If the text goes on with `c`: skips it and what blanks follow. */
static inline bool parse_take(parser *p, char c)
{
	if (*p->p != c)
		return false;
	p->stop = ++p->p;
	parse_blanks(p);
	return true;
}
/* ".word": true if the text goes on with exactly this directive; skips it. */
bool parse_directive(parser *p, const char *name);
bool parse_word(parser *p, word *w); /* a name; false, without error, if there is none */
word parse_word_of(const char *s, size_t len);
/* One character of context as text for a message: "'x'", "the end of the file", "a NUL byte". */
const char *parse_found(const parser *p, char text[24]);
/* Reports at a place of the text, "file:line:column: error: ...".  False. */
bool parse_error(parser *p, const char *at, enum cptx_code code, const char *format, ...) CPTX_PRINTF_(4, 5);
bool parse_expect(parser *p, char c, const char *where);
bool parse_out_of_memory(parser *p);
cptx_site parse_site(const parser *p);
/* Text from `from` to `to` in one line: blanks and comments become single blanks.  In the arena, or NULL. */
const char *parse_collapse(parser *p, const char *from, const char *to);
/* Reports the first byte of text[from .. to) that is not ASCII: ptxas takes none. */
bool parse_ascii(parser *p, const char *from, const char *to);

/* ---- scopes.c ---- */
#define RANGE_KEY 0x80000000u
bool names_init(parser *p);
void names_free(parser *p);
binding *names_find(parser *p, const word *w); /* not ranges */
/* The register that a word names, or IR_NONE; *b is its binding. */
uint32_t names_register(parser *p, const word *w, const binding **b);
/* A new name in the innermost scope; NULL, with an error, if it is taken there or no name. */
binding *names_bind(parser *p, const word *w, unsigned kind, uint32_t id, uint32_t count);
const char *names_text(parser *p, const binding *b);
bool names_enter(parser *p);
void names_leave(parser *p);
/* The label of that name, made if nobody placed it yet; its id, or IR_NONE. */
uint32_t names_label(parser *p, const word *w);

/* ---- expr.c ---- */
static inline bool parse_ends_operand(char c) { return c == ';' || c == ',' || c == ']' || c == '}'; }
/* A constant expression: INT, or FLOAT with its type. */
bool parse_constant(parser *p, cptx_val *v);
/* A number alone, as lengths, alignments and the arguments of directives are. */
bool parse_natural(parser *p, uint64_t low, uint64_t high, uint64_t *v, const char *what);
bool parse_literal(parser *p, uint32_t low, uint32_t high, uint32_t *v, const char *what);
bool parse_int(parser *p, int64_t low, int64_t high, int64_t *v, const char *what);

/* ---- initialise.c ---- */
bool parse_initialiser(parser *p, ir_sym *s); /* what stands behind the = of a variable */

/* ---- decl.c ---- */
/* Declarations that begin with a state space, up to and with the semicolon; in the body, or in the module. */
bool parse_variables(parser *p, unsigned linkage);
bool parse_registers(parser *p);
unsigned parse_space(parser *p); /* the state space that the text goes on with (skipped), or 0 */
bool parse_argument(parser *p, cptx_kernel *k, ir_arg *a, bool named);

/* ---- head.c: kernels and functions ---- */
bool parse_function(parser *p, unsigned linkage);
void parse_keep_columns(parser *p, const cptx_kernel *k); /* in place of the places of its statements */
bool parse_signature(parser *p, cptx_kernel *k);
bool parse_string(parser *p); /* "..." */
bool parse_same_signature(const cptx_kernel *f, const cptx_kernel *g);

/* ---- directive.c ---- */
/* Reports what the .target and .version lack for a directive, or part of one, that stands at `at`. */
void parse_needs(parser *p, const char *at, enum arch_directive d);
bool parse_listed(parser *p, enum arch_directive d); /* parse_directive of one with its name, and parse_needs */
enum pragma_place { PRAGMA_MODULE, PRAGMA_HEAD, PRAGMA_BODY };
bool parse_pragma(parser *p, enum pragma_place place); /* the strings behind .pragma */
/* What stands between the parentheses behind .attribute, of a variable or a function; NULL, with an error, if it is wrong.
 */
const char *parse_attributes(parser *p, bool variable);
bool parse_section(parser *p); /* behind .section */

/* ---- body.c, insn.c ---- */
void parse_body(parser *p);
bool parse_instruction(parser *p, spelled *known); /* known: it was read just now, and no guard stands in front; or NULL */
enum { SPELLING_BEHIND = 8 };                      /* so many bytes may be read behind the text of a spelling */
/* Comments up to the end of this statement, as items; those behind it stay for the next. */
void parse_flush_comments(parser *p);
ir_top *parse_top(parser *p, enum ir_top_kind kind); /* of the text from p->start to p->stop */
ir_item *parse_item(parser *p, enum ir_item_kind kind, const cptx_val *operand, unsigned noperand);
/* The spelling that the text goes on with, if it was read before and a blank or semicolon ends it: skips it.  Else NULL. */
spelled *parse_known(parser *p);
/* The forms of an instruction as it is spelled; NULL when memory is short. */
spelled *parse_spelled(parser *p, const char *text, size_t len);

#endif
