/* SPDX-License-Identifier: MIT */
/*
 * PTX to C: prints C calls that build a module.  Each body is gone through three times: flow.c finds the blocks (if, else,
 * loops, waits), vars.c decides what becomes a C variable and where it is declared, body.c prints one statement after
 * another.
 */
#ifndef CPTX_TO_C_H
#define CPTX_TO_C_H

#include "ir/ir.h"

/* ---- names.c ---- */
typedef struct to_c_name {
	const char *text; /* NULL: an empty slot */
	uint32_t block;   /* the block with which the name of a scope ends; IR_NONE: it never does */
	uint32_t next;    /* names with this stem and numbers below this one will never be free again; 0: unknown */
	uint32_t id;      /* index of what it names, if names_add gave one */
} to_c_name;
typedef struct to_c_names {
	to_c_name *slot;
	size_t nslot, used;
	const struct to_c_names *outer; /* names that are taken too, or NULL */
} to_c_names;

typedef enum to_c_var_kind { VAR_REG, VAR_LABEL, VAR_SYM, VAR_LIST /* a list of targets, or a prototype */ } to_c_var_kind;

/* A C variable of a body. */
typedef struct to_c_var {
	const char *name;
	const char *kept; /* the name of a label that text outside of the instructions mentions, or NULL */
	to_c_var_kind kind;
	uint8_t type;   /* type of a register, as the text declares it */
	uint8_t c_type; /* type of the C value, known once it is declared */
	bool declared;  /* its declaration is printed */
	bool given;     /* the head of the function declares it */
	uint32_t first_reg, count;
	uint32_t first, uses; /* first: the first item that names it; uses: how often */
	uint32_t block;       /* innermost block around all uses */
	uint32_t next;        /* the next variable that is declared in front of the same item */
} to_c_var;

enum to_c_block_kind {
	TO_C_BODY,
	TO_C_SCOPE,
	TO_C_IF,
	TO_C_ELSE,
	TO_C_DO,
	TO_C_WHILE,
	TO_C_FOR /* an if with a do in it */
};
typedef struct to_c_block {
	enum to_c_block_kind kind;
	uint32_t start, end; /* first item, and the one behind the last */
	uint32_t outer, depth;
	uint32_t pair; /* TO_C_IF: its else; TO_C_ELSE: its if; others: IR_NONE */
} to_c_block;

/* The starts of the blocks that end at a place. */
typedef struct to_c_ends {
	uint32_t last;       /* the last start of all */
	uint32_t loop, pair; /* the first start of a loop, and of a block that has an else or is one; IR_NONE: none */
} to_c_ends;

/* For a range of places: the first start of blocks that end there, the last end of blocks that start there. */
typedef struct to_c_reach {
	uint32_t start, end;
} to_c_reach;

/* How an item is printed. */
enum to_c_role {
	ROLE_PLAIN,
	ROLE_GONE,     /* nothing: a block stands for it */
	ROLE_IF,       /* the branch that begins an if */
	ROLE_CONTINUE, /* a branch to the next iteration */
	ROLE_BREAK,
	ROLE_WAIT,  /* the test of a waiting loop */
	ROLE_WHILE, /* the condition at the head of a loop */
	ROLE_FOR    /* the first test of a counting loop, whose block is number `loop`, if CPTX_FOR can make it */
};

typedef struct to_c_item {
	const ir_item *it;
	const ir_item *comment; /* the first of the comments in front of it, or NULL */
	uint32_t block;
	uint32_t vars; /* list of the variables declared in front of it */
	uint8_t role, wait /* wait: enum cptx_wait_shape */;
	uint32_t loop;
} to_c_item;

typedef struct to_c {
	const cptx_module *m;
	const cptx_to_c_opt *opt;
	arena a; /* memory of the whole translation */
	buf out;
	to_c_names names;     /* of the C functions */
	to_c_names ptx_names; /* names of the module's variables and functions in PTX */
	to_c_names words;     /* words of the directives that are kept as text */
	const char **global;  /* PTX names of the module's variables: their own, where the builder accepts them */
	uint32_t *printed;    /* of each variable the declaration that is printed for its name */
	bool *declares;       /* declarations that are the first of their name, by number - 1 */
	bool *by_name;        /* functions whose body follows their declaration, by number - 1 */
	uint32_t *found_var;  /* C variables of the current body for each variable of the module, then for each function */
	bool failed;          /* memory is short */
} to_c;

typedef struct to_c_body {
	to_c *t;
	const cptx_kernel *k;
	to_c_names names, ptx_names;
	to_c_item *item;
	uint32_t nitem;
	to_c_block *block;
	size_t nblock, cap_block;
	size_t nplace;     /* number of places (items and more), for the next three */
	to_c_ends *ends;   /* the blocks that end at each place */
	to_c_reach *reach; /* a tree over all places, whose leaves are its second half */
	int32_t *open;     /* a tree of sums: the number of open blocks at each place */
	to_c_var *var;
	size_t nvar, cap_var;
	uint32_t *reg_var;   /* the C variable of each register */
	uint32_t *label_var; /* the C variable of each label, or IR_NONE */
	uint8_t *early;      /* of each label: it names a list that is printed in front of all */
	uint32_t *label_at;  /* the item that places each label, or IR_NONE */
	uint32_t *place;     /* of each item the first of the labels in front of it, or itself */
	uint8_t *named;      /* how many items name each register; 3: three or more */
	uint32_t *sym_var;
	const char **sym_name; /* names of the body's variables in PTX */
	uint32_t *found;       /* the entries of t->found_var that the body uses, in order */
	size_t nfound, cap_found;
	uint32_t indent, now; /* now: the innermost open block */
	buf line;
	cptx_val *vec; /* elements of the vectors that are being matched */
	size_t nvec, cap_vec;
	arch_memo memo;
} to_c_body;

bool to_c_no_memory(to_c *t);
void *to_c_alloc(to_c *t, size_t n, size_t size); /* zeroed memory; NULL, with failed set */
#define TO_C_ARRAY(t, type, n) ((type *)to_c_alloc((t), (n), sizeof(type)))
uint32_t *to_c_nones(to_c *t, size_t n); /* an array of n times IR_NONE */

bool names_new(to_c *t, to_c_names *n);
/* Finds a name; NULL if it is not taken. */
const to_c_name *names_get(const to_c_names *n, const char *text);
static inline bool names_has(const to_c_names *n, const char *text) { return names_get(n, text); }
/* Takes a name as it is, with an index; false if memory is short.  `text` must last. */
bool names_add(to_c *t, to_c_names *n, const char *text, uint32_t id);
/* Makes a C (or, with c false, PTX) identifier near to `want` that is not taken; `block` as in to_c_name, `b` to compare
 * blocks, or NULL. */
const char *names_make(to_c *t, to_c_names *n, const char *want, bool c, const to_c_body *b, uint32_t block);

/* ---- flow.c ---- */
bool flow_items(to_c_body *b);  /* lists the items, without those that print nothing */
bool flow_blocks(to_c_body *b); /* finds blocks and roles */
/* ---- blocks.c ---- */
bool blocks_begin(to_c_body *b);
bool blocks_add(to_c_body *b, enum to_c_block_kind kind, uint32_t start, uint32_t end);
/* Whether a block overlaps [start, end): it begins or ends within, but does not lie in it. */
bool blocks_cross(const to_c_body *b, uint32_t start, uint32_t end);
unsigned blocks_around(const to_c_body *b, uint32_t at); /* number of blocks that hold an item */
/* ---- loop.c ---- */
bool loops_find(to_c_body *b); /* finds the loops that are while and for */
/* Prints the head of the for whose first test is item i; false if CPTX_FOR would not make its instructions. */
bool put_for(to_c_body *b, uint32_t i);
static inline bool flow_inside(const to_c_body *b, uint32_t block, uint32_t outer)
{
	while (b->block[block].depth > b->block[outer].depth)
		block = b->block[block].outer;
	return block == outer;
}

/* ---- vars.c ---- */
bool vars_signature(to_c_body *b); /* chooses PTX names of parameters */
bool vars_find(to_c_body *b);
uint32_t vars_new(to_c_body *b, to_c_var_kind kind, const char *name);

/* ---- value.c ---- */
void put(to_c_body *b, const char *s); /* appends to the line */
void put_u64(to_c_body *b, uint64_t v);
/* Writes a C expression of type cptx_val, with its registers seen as type `as`, if that is not 0. */
void put_value(to_c_body *b, const cptx_val *v, unsigned as);
/* put_value for an argument that may be a number; `bits`: its type is plain bits; `wide`: of 64 bits. */
void put_argument(to_c_body *b, const cptx_val *v, unsigned as, bool bits, bool wide);
void put_type(to_c_body *b, unsigned type); /* writes CPTX_S32 and the like */
/* The value that this expression will have; elements of vectors go to b->vec. */
cptx_val value_of(to_c_body *b, const cptx_val *v, unsigned as);
void put_float(buf *out, double d, bool wide, bool as_value);

/* ---- insn.c ---- */
/*
 * Writes the call that makes an instruction into b->line.  `result`: the call makes its own destination, of type *type;
 * false, with nothing written, if no call can.  Without `result` it always writes something, if need be the instruction as
 * text.
 */
bool put_call(to_c_body *b, const ir_item *it, bool result, uint8_t *type);

/* Whether a call makes an instruction from its operands and this modifier (0: none) alone. */
bool call_makes(to_c_body *b, const ir_item *it, bool result, uint16_t mod);

/* ---- body.c ---- */
bool body_begin(to_c *t, to_c_body *b, const cptx_kernel *k);
void body_end(to_c_body *b);
void put_text(to_c_body *b, const char *call, const char *text); /* prints call(k, "text"); */
void put_body(to_c *t, const cptx_kernel *k);
void flush_line(to_c_body *b); /* prints the line as a statement, on several lines if it is long */

/* ---- head.c ---- */
void put_signature(to_c_body *b, bool declare);
void put_found(to_c_body *b); /* prints the look-ups of what the body uses of the module */

/* ---- variable.c ---- */
/* Writes "CPTX_B32, \"name\", .dim = { 2 }, ..." for a declaration. */
void put_variable(buf *out, const ir_sym *s, const char *name, unsigned usual_space);
void put_initial(to_c *t, const ir_sym *s, const char *name); /* prints the array of its initial values */
void put_string(buf *out, const char *s, size_t n);
const char *linkage_name(unsigned linkage);

#endif
