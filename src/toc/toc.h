/* SPDX-License-Identifier: MIT */
/*
 * A module -> C that builds it.  The text of a body is gone through three times: flow.c finds the blocks (if, else, loops,
 * waits), vars.c what becomes a C variable and where it is declared, body.c prints one statement after another.
 */
#ifndef CPTX_TOC_H
#define CPTX_TOC_H

#include "ir/ir.h"

/* ---- names.c ---- */
typedef struct toc_name {
	const char *text; /* NULL: free */
	uint32_t block;   /* the block that a name of a scope ends with; IR_NONE: never */
	uint32_t next;    /* the names with smaller numbers behind this one will never be free again; 0: not known */
	uint32_t id;      /* what it names, where names_add said so */
} toc_name;
typedef struct toc_names {
	toc_name *slot;
	size_t nslot, used;
	const struct toc_names *outer; /* names that are taken too, or NULL */
} toc_names;

typedef enum toc_var_kind { VAR_REG, VAR_LABEL, VAR_SYM, VAR_LIST /* of targets, or a prototype */ } toc_var_kind;

/* A C variable of a body. */
typedef struct toc_var {
	const char *name;
	const char *kept; /* the name of a label that text outside of the instructions speaks of, or NULL */
	toc_var_kind kind;
	uint8_t type;   /* of a register, as text declares it */
	uint8_t c_type; /* the type of the C value, known once it is declared */
	bool declared;  /* in the C text */
	bool given;     /* declared by the head of the function */
	uint32_t first_reg, count;
	uint32_t first, uses; /* first item that names it; how often */
	uint32_t block;       /* innermost one around all uses */
	uint32_t next;        /* declared in front of the same item */
} toc_var;

enum toc_block_kind { TOC_BODY, TOC_SCOPE, TOC_IF, TOC_ELSE, TOC_DO, TOC_WHILE, TOC_FOR /* an if around a do */ };
typedef struct toc_block {
	enum toc_block_kind kind;
	uint32_t start, end; /* items */
	uint32_t outer, depth;
	uint32_t pair; /* TOC_IF: its else; TOC_ELSE: its if; else IR_NONE */
} toc_block;

/* Of the blocks that end at a place: where they start. */
typedef struct toc_ends {
	uint32_t last;       /* the last of all */
	uint32_t loop, pair; /* the first loop, the first that has an else or is one; IR_NONE */
} toc_ends;

/* Of places side by side: the first start of blocks that end there, the last end of blocks that start there. */
typedef struct toc_reach {
	uint32_t start, end;
} toc_reach;

/* What stands for an item. */
enum toc_role {
	ROLE_PLAIN,
	ROLE_GONE,     /* nothing; a block says it */
	ROLE_IF,       /* the branch that an if begins with */
	ROLE_CONTINUE, /* a branch */
	ROLE_BREAK,
	ROLE_WAIT,  /* the test of a waiting loop */
	ROLE_WHILE, /* the condition of a loop, at its head */
	ROLE_FOR    /* the first test of a counting loop, if the call makes it; then its block is number `loop` */
};

typedef struct toc_item {
	const ir_item *it;
	const ir_item *comment; /* the first of those in front of it, or NULL */
	uint32_t block;
	uint32_t vars; /* those declared in front of it */
	uint8_t role, wait /* enum cptx_wait_shape */;
	uint32_t loop;
} toc_item;

typedef struct toc {
	const cptx_module *m;
	const cptx_to_c_opt *opt;
	arena a; /* of the whole work */
	buf out;
	toc_names names;     /* of the C functions */
	toc_names ptx_names; /* that the module's variables and functions have */
	toc_names words;     /* of the directives that are kept as text */
	const char **global; /* PTX names of the module's variables: theirs, where the builder takes them */
	uint32_t *spoken;    /* of each variable, the one that speaks for all of its name */
	bool *declares;      /* declarations that are the first of their name, by number - 1 */
	bool *by_name;       /* functions whose body follows their declaration, by number - 1 */
	uint32_t *found_var; /* C variables of the body at hand: of each variable of the module, then of each function */
	bool failed;         /* out of memory */
} toc;

typedef struct toc_body {
	toc *t;
	const cptx_kernel *k;
	toc_names names, ptx_names;
	toc_item *item;
	uint32_t nitem;
	toc_block *block;
	size_t nblock, cap_block;
	size_t nplace;    /* of the three below, items and more */
	toc_ends *ends;   /* at each place */
	toc_reach *reach; /* a tree over all places, whose leaves are its second half */
	int32_t *open;    /* a tree of how many blocks are open */
	toc_var *var;
	size_t nvar, cap_var;
	uint32_t *reg_var;   /* of each register */
	uint32_t *label_var; /* of each label, or IR_NONE */
	uint8_t *early;      /* lists that go in front of all, by label */
	uint32_t *label_at;  /* item that places it, or IR_NONE */
	uint32_t *place;     /* of each item, the first of the labels in front of it, or itself */
	uint8_t *named;      /* how many items name each register; 3: or more */
	uint32_t *sym_var;
	const char **sym_name; /* in PTX */
	uint32_t *found;       /* those of t->found_var that the body has, in order */
	size_t nfound, cap_found;
	uint32_t indent, now; /* block */
	buf line;
	cptx_val *vec; /* elements of the vectors being matched */
	size_t nvec, cap_vec;
	arch_memo memo;
} toc_body;

bool toc_no_memory(toc *t);
void *toc_alloc(toc *t, size_t n, size_t size); /* zeroed; NULL, with failed set */
#define TOC_ARRAY(t, type, n) ((type *)toc_alloc((t), (n), sizeof(type)))
uint32_t *toc_nones(toc *t, size_t n); /* n times IR_NONE */

bool names_new(toc *t, toc_names *n);
/* What has a name, or NULL. */
const toc_name *names_get(const toc_names *n, const char *text);
static inline bool names_has(const toc_names *n, const char *text) { return names_get(n, text); }
/* A name as it is, of something with a number; false if memory is short.  `text` must last. */
bool names_add(toc *t, toc_names *n, const char *text, uint32_t id);
/* `want` as a C (or, c false, PTX) identifier that is not taken; `block` as above, `b` to tell blocks apart, or NULL. */
const char *names_make(toc *t, toc_names *n, const char *want, bool c, const toc_body *b, uint32_t block);

/* ---- flow.c ---- */
bool flow_items(toc_body *b);  /* the items, without what leaves no trace */
bool flow_blocks(toc_body *b); /* blocks and roles */
/* ---- blocks.c ---- */
bool blocks_begin(toc_body *b);
bool blocks_add(toc_body *b, enum toc_block_kind kind, uint32_t start, uint32_t end);
/* Is there a block that begins or ends within [start, end), but does not lie in it? */
bool blocks_cross(const toc_body *b, uint32_t start, uint32_t end);
unsigned blocks_around(const toc_body *b, uint32_t at); /* that hold an item */
/* ---- loop.c ---- */
bool loops_find(toc_body *b); /* those that are while and for */
/* Prints the head of the for whose first test is item i; false if CPTX_FOR would not make its instructions. */
bool put_for(toc_body *b, uint32_t i);
static inline bool flow_inside(const toc_body *b, uint32_t block, uint32_t outer)
{
	while (b->block[block].depth > b->block[outer].depth)
		block = b->block[block].outer;
	return block == outer;
}

/* ---- vars.c ---- */
bool vars_signature(toc_body *b); /* PTX names of parameters */
bool vars_find(toc_body *b);
uint32_t vars_new(toc_body *b, toc_var_kind kind, const char *name);

/* ---- value.c ---- */
void put(toc_body *b, const char *s); /* into the line */
void put_u64(toc_body *b, uint64_t v);
/* A C expression of type cptx_val; the registers in it seen as type `as`, if that is not 0. */
void put_value(toc_body *b, const cptx_val *v, unsigned as);
/* The same, as an argument that may be a number; `bits`: of a type that is plain bits; `wide`: of 64. */
void put_argument(toc_body *b, const cptx_val *v, unsigned as, bool bits, bool wide);
void put_type(toc_body *b, unsigned type); /* CPTX_S32 */
/* What that expression will be; vectors stand in b->vec. */
cptx_val value_of(toc_body *b, const cptx_val *v, unsigned as);
void put_float(buf *out, double d, bool wide, bool as_value);

/* ---- insn.c ---- */
/*
 * The call that makes an instruction, into b->line.  `result`: it makes its own destination, of type *type; false (and
 * nothing is printed) if no call does that so.  Without `result` it is always printed, as text if need be.
 */
bool put_call(toc_body *b, const ir_item *it, bool result, uint8_t *type);

/* Whether a call makes an instruction by its operands and this modifier (0: none) alone. */
bool call_makes(toc_body *b, const ir_item *it, bool result, uint16_t mod);

/* ---- body.c ---- */
bool body_begin(toc *t, toc_body *b, const cptx_kernel *k);
void put_text(toc_body *b, const char *call, const char *text); /* call(k, "text"); */
void put_body(toc *t, const cptx_kernel *k);
void flush_line(toc_body *b); /* prints the line as a statement, in several lines if it is long */

/* ---- head.c ---- */
void put_signature(toc_body *b, bool declare);
void put_found(toc_body *b); /* what the body uses of the module */

/* ---- variable.c ---- */
/* "CPTX_B32, \"name\", .dim = { 2 }, ..." of a declaration. */
void put_variable(buf *out, const ir_sym *s, const char *name, unsigned usual_space);
void put_initial(toc *t, const ir_sym *s, const char *name); /* the array of its values */
void put_string(buf *out, const char *s, size_t n);
const char *linkage_name(unsigned linkage);

#endif
