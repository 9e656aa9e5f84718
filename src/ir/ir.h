/* SPDX-License-Identifier: MIT */
/*
 * The IR: a module is a list of variables and bodies (kernels and device functions) in the order of their text; a body is a
 * list of items.  An instruction item holds the form that matching chose, the value of each of its modifier groups and its
 * operands: all that printing, checking and executing need.  Built and parsed modules differ in nothing but their names.
 */
#ifndef CPTX_IR_H
#define CPTX_IR_H

#include "arch/arch.h"
#include "base/base.h"
#include "base/table.h"

enum ir_item_kind {
	ITEM_INSN,
	ITEM_LABEL,   /* operand 0: the label */
	ITEM_SCOPE,   /* { */
	ITEM_END,     /* } */
	ITEM_REGS,    /* operand 0: declarations `id` up to `id` + `offset` */
	ITEM_VAR,     /* operand 0: a variable, declared here */
	ITEM_PRAGMA,  /* operand 0: index of the body's text */
	ITEM_COMMENT, /* operand 0: index of the body's text */
	ITEM_TEXT,    /* operand 0: index of the body's text; a directive that cptx does not interpret, such as .loc */
	ITEM_TARGETS, /* .branchtargets, or .calltargets of functions: operand 0 the label, operand 1 a list */
	ITEM_PROTO    /* .callprototype: operand 0 the label, operand 1 a function without body */
};

enum ir_item_flags {
	ITEM_NEGATED = 1, /* the guard is negated */
	ITEM_EDITED = 2,  /* parsed, and changed since: its text in the source is out of date */
	ITEM_REMOVED = 4  /* no longer in any list */
};

/* What items that calls of one kind made have in common.  It belongs to the module, which has each once (shape.c). */
typedef struct ir_shape {
	struct ir_shape *next; /* with the same hash */
	uint32_t number;       /* in the module, from 1 */
	uint16_t form;
	uint8_t nmod, noperand;
	uint8_t kind[ARCH_OPERANDS]; /* of the operands: the kind of the word, and how it is made */
	uint16_t mod[ARCH_GROUPS + 4];
} ir_shape;

typedef cptx_item ir_item;
struct cptx_item {
	ir_item *prev, *next;
	uint16_t form; /* form number in the table, of an ITEM_INSN */
	uint16_t kind : 4, nmod : 5, noperand : 4, flags : 3;
	uint16_t owner; /* tag of its body, as in its values */
	uint16_t file;  /* index in the module's files, from 1; 0: no source */
	uint32_t line;
	uint32_t guard : 30; /* predicate register + 1; 0: unconditional */
	uint32_t apart : 1;  /* the words behind the item grew: a pointer to them stands there instead */
	uint32_t shaped : 1; /* built by a call like others: `shape` has its modifiers, and `src` is not there */
	union {
		/* a parsed item's text in the module's source; length 0: it has none.  Items that one statement declares share
		 * their text; src IR_NONE: a comment inside of a statement's text */
		struct {
			uint32_t src, src_len;
		};
		const ir_shape *shape;
	};
};
enum { IR_MOST_REGS = (1 << 30) - 2, IR_MOST_REGS_MASK = (1 << 30) - 1 /* of a guard, which can name all registers */ };
_Static_assert(ARCH_OPERANDS < 1 << 4 && ARCH_GROUPS < 1 << 5, "the bit fields above hold them");
_Static_assert(sizeof(ir_item) % 8 == 0, "a pointer or a whole value may stand behind an item");

/*
 * The memory behind an item has a word for each operand, the modifiers (uint16_t; they may be read by fours) unless it has a
 * shape, and, from the next multiple of 8 bytes on, the values that a word cannot hold.  A word has the kind in its lowest
 * bits; above them are the type and number of a single register (most operands are one), or the type and value of a small
 * integer; the number of a label, list, prototype or special register; or, if the kind is WORD_WHOLE, the place of the whole
 * value, in units of 8 bytes from the first word on.
 */
enum { WORD_WHOLE = 15 };

static inline const uint32_t *ir_words(const ir_item *it)
{
	const uint32_t *w = (const uint32_t *)(it + 1);

	return it->apart ? *(const uint32_t *const *)(const void *)w : w;
}
static inline const uint16_t *ir_mods(const ir_item *it)
{
	return it->shaped ? it->shape->mod : (const uint16_t *)(ir_words(it) + it->noperand);
}
/* The place and the length of an item's text in the source. */
static inline uint32_t ir_src(const ir_item *it) { return it->shaped ? 0 : it->src; }
static inline uint32_t ir_src_len(const ir_item *it) { return it->shaped ? 0 : it->src_len; }
static inline bool ir_word_is(uint32_t word, unsigned kind) { return (word & ((1u << WORD_KIND) - 1)) == kind; }
static inline bool ir_word_is_whole(uint32_t word) { return ir_word_is(word, WORD_WHOLE); }
/* The value that operand i's WORD_WHOLE refers to. */
static inline const cptx_val *ir_whole(const uint32_t *words, unsigned i)
{
	return (const cptx_val *)(const void *)(words + 2 * (size_t)(words[i] >> 2 * WORD_KIND));
}
static inline unsigned ir_word_kind(uint32_t word)
{
	return (ir_word_is_whole(word) ? word >> WORD_KIND : word) & ((1u << WORD_KIND) - 1);
}
static inline uint32_t ir_word_reg(uint32_t word) { return word >> WORD_NUMBER; }
static inline int64_t ir_word_int(uint32_t word) { return (int64_t)(word >> WORD_NUMBER) - WORD_ZERO; }
/* Whether an operand of the item has one of these kinds; bit n of `kinds` stands for kind n. */
static inline bool ir_has_kind(const ir_item *it, unsigned kinds)
{
	const uint32_t *words = ir_words(it);

	for (unsigned i = 0; i < it->noperand; i++)
		if (kinds >> ir_word_kind(words[i]) & 1)
			return true;
	return false;
}
cptx_val ir_unpack(const uint32_t *words, unsigned i, uint16_t owner); /* The value of operand i, whatever its kind. */

/* Operand i of an item of body k; ir_operands unpacks all of them. */
static inline cptx_val ir_operand(const cptx_kernel *k, const ir_item *it, unsigned i);
static inline void ir_operands(const cptx_kernel *k, const ir_item *it, cptx_val v[ARCH_OPERANDS])
{
	for (unsigned i = 0; i < it->noperand; i++)
		v[i] = ir_operand(k, it, i);
}

/* Register classes that the builder declares: the type of a register decides its class. */
enum ir_class { CLASS_PRED, CLASS_B8, CLASS_B16, CLASS_B32, CLASS_F32, CLASS_B64, CLASS_F64, CLASS_B128, CLASS_COUNT };
typedef struct ir_class_info {
	uint8_t type;
	const char *prefix;
} ir_class_info;
extern const ir_class_info ir_classes[CLASS_COUNT];
/* By the logarithm of a type's bits: the class, + 1, of one that is no floating point number; 0: there is none. */
extern const uint8_t ir_class_of_log[8];
_Static_assert(CLASS_F32 == CLASS_B32 + 1 && CLASS_F64 == CLASS_B64 + 1, "ir_class_of adds 1 for these");
/* CLASS_COUNT: registers have no such type. */
static inline enum ir_class ir_class_of(unsigned type)
{
	unsigned bits = type < arch_ntype ? arch_types[type].bits : 0;
	unsigned found = bits && !(bits & (bits - 1)) ? ir_class_of_log[__builtin_ctz(bits)] : 0;

	return found ? (enum ir_class)(found - 1 + (type == CPTX_F32 || type == CPTX_F64)) : CLASS_COUNT;
}

/*
 * Registers declared together.  The first CLASS_COUNT declarations of a body are the builder's: their registers are numbered
 * from 1, as they are made.  Those of parsed text are consecutive registers from `first` on, numbered from 0.
 */
enum ir_decl_form { DECL_RANGE /* prefix<count> */, DECL_SINGLE, DECL_VECTOR /* a .v2 or .v4: name.x, name.y ... */ };
typedef struct ir_decl {
	const char *name; /* the name, or the prefix of a range */
	uint32_t first;
	uint32_t count : 24, type : 6, form : 2;
} ir_decl;

typedef struct ir_reg {
	uint32_t type : 8, made : 1 /* the register was made by a builder call */;
	uint32_t at : 23; /* number of a made register; else the index of its declaration */
} ir_reg;
enum { REG_AT = 9 /* place of ir_reg.at in its word */ };
/* Counts one more register of a declaration; returns the count, with other bits above those that `at` has room for.  As
 * bit-fields, both words would be taken apart and put together again. */
static inline uint32_t ir_count_made(ir_decl *d)
{
	uint32_t word;
	char *at = (char *)d + offsetof(ir_decl, first) + sizeof d->first;

	memcpy(&word, at, sizeof word);
	word++;
	memcpy(at, &word, sizeof word);
	return word;
}
enum { IR_MOST_DECLS = 1 << 23, IR_MOST_MADE = (1 << 23) - 1 };

enum ir_linkage { LINK_NONE, LINK_EXTERN, LINK_VISIBLE, LINK_WEAK, LINK_COMMON, LINK_COUNT };
extern const char *const ir_linkages[LINK_COUNT]; /* The PTX spelling of each linkage with a blank: "", ".extern " ... */

/* An element of an initialiser that is the address of a variable or function. */
typedef struct ir_reloc {
	cptx_val to;     /* a SYM with its offset, or a FUNC */
	uint64_t mask;   /* 0, or the bits of the address that a .b8 element takes: 0xFF00(name) */
	uint32_t index;  /* index of the element */
	uint8_t generic; /* printed as generic(name) */
} ir_reloc;

/* Parameters of a head: PARAM_IN may only be read, PARAM_OUT only written. */
enum ir_param { PARAM_NONE, PARAM_IN, PARAM_OUT };

/* A variable or a parameter in memory. */
typedef struct ir_sym {
	const char *name;
	const unsigned char *init; /* ninit elements, or NULL */
	const ir_reloc *reloc;     /* nreloc addresses, sorted by element */
	const uint32_t *dim;       /* ndim lengths; the first may be 0 for [] */
	const char *attribute;     /* text inside of .attribute( ); of a texture its initial value; or NULL */
	uint64_t size;             /* bytes */
	uint32_t ninit, nreloc, align, ptr_align;
	uint8_t space, type, elem, vec, ndim, linkage;
	uint8_t align_given, is_param /* enum ir_param */, is_ptr, ptr_space; /* .ptr .space .align */
	uint8_t removed;                                                      /* the declaration was removed by an edit */
	uint8_t here, ended; /* here: declared at its ITEM_VAR; ended: the scope has ended */
	struct ir_top *top;  /* the entry of a variable of the module */
} ir_sym;

/* Whether a value is a label, or a list of targets or prototype, whose id is that of the label that names it. */
static inline bool ir_is_label(const cptx_val *v)
{
	return v->kind == CPTX_VAL_LABEL || v->kind == CPTX_VAL_TARGETS || v->kind == CPTX_VAL_PROTO;
}

/* Whether a state space is that of texture, sampler and surface references. */
static inline bool ir_is_opaque(unsigned space)
{
	return space == CPTX_TEXREF || space == CPTX_SAMPLERREF || space == CPTX_SURFREF;
}

/* A parameter or result of a signature: in memory, or (device functions only) in a register. */
typedef struct ir_arg {
	uint32_t sym, reg; /* ids of the symbol or register; sym is IR_NONE for a register */
} ir_arg;
#define IR_NONE UINT32_MAX

typedef struct ir_span {
	uint32_t src, len;
} ir_span;

/* Labels that name a list: of .branchtargets; of .calltargets or .callprototype. */
enum ir_list { LIST_NONE, LIST_BRANCHES, LIST_CALLS };
typedef struct ir_label {
	const char *name;           /* NULL: a label that the builder made */
	uint8_t placed, used, list; /* list: enum ir_list, the kind of list that the label names instead of a place */
	uint32_t same_as; /* while parsing: number + 1 of the label of an outer scope that this label turned out to be */
	uint32_t proto;   /* number of the prototype that the label names, or 0 */
	uint32_t src;     /* place of the first use in the source */
	cptx_site at;
} ir_label;

enum ir_block_kind { BLOCK_IF, BLOCK_ELSE, BLOCK_FOR, BLOCK_WHILE, BLOCK_DO, BLOCK_SCOPE, BLOCK_WAIT, BLOCK_REGION };
typedef struct ir_block {
	struct ir_block *outer;
	enum ir_block_kind kind;
	cptx_site at;
	cptx_val top, next, end; /* labels of a loop: its head, its next iteration, behind it */
	cptx_val i, limit, step; /* BLOCK_FOR */
	size_t nsym;             /* BLOCK_SCOPE: number of variables declared in front of it */
	const char *name;        /* BLOCK_REGION: its name in messages */
} ir_block;

/* The name of a block in messages, as users write it. */
const char *ir_block_name(const ir_block *b);

/* A kernel or function.  One without a body is only declared, or is a call prototype. */
struct cptx_kernel {
	cptx_module *m;
	cptx_kernel *prev, *next; /* neighbours among the bodies of the module */
	const char *name;
	cptx_site at;
	uint16_t owner;  /* tag that its values carry */
	uint32_t number; /* place + 1 in m->body */
	uint8_t linkage;
	bool closed, removed; /* one word (ir_open_quietly) */
	bool is_func, calls, called, has_body, is_proto, edited /* the head was */, label_runs,
		aliased /* an .alias makes another function stand for it */;
	bool odd_call; /* the signature (of text) passes more than single values in .param, so that cptx_call cannot call it */
	bool touched;  /* items were edited: freezing checks that all that is used is declared */
	const char *made; /* text behind % and $ at the start of the names of new registers and labels; NULL: the default */
	uint32_t *callee, stamp; /* while freezing: functions that the body names, by number; last kernel to reach it */
	size_t ncallee, cap_callee;
	cptx_val ret; /* CPTX_VAL_SYM: the result of a function that was built */
	uint8_t ret_type;
	cptx_kernel *def;      /* the definition of a function that is only declared here, if the module has it */
	const char *attribute; /* text of .attribute of a .func, or NULL */
	cptx_kernel_opt opt;
	const char **extra; /* further directives of the head, as text */
	size_t nextra, cap_extra;
	ir_item *first, *last, *cursor /* last: end of the list; cursor: new items go in front of it, NULL: at the end */;
	size_t ninsn;
	uint32_t src, src_len; /* place of the head in the source, up to the brace or semicolon */
	ir_span *gone;         /* removed statements, by their place in the source */
	size_t ngone, cap_gone;

	ir_reg *reg;
	size_t nreg, cap_reg;
	ir_decl *decl;
	size_t ndecl, cap_decl;
	cptx_val *vec; /* elements of all vectors and lists of the body */
	size_t nvec, cap_vec;
	ir_label *label;
	size_t nlabel, cap_label;
	ir_arg *arg, *result;
	size_t narg, cap_arg, nresult, cap_result;
	cptx_param_info *param; /* the parameters as launches see them */
	cptx_val *param_val;    /* the values that cptx_param returned */
	size_t nparam, cap_param, cap_param_val;
	struct ir_map_param *map_param; /* base/map_use.h */
	struct ir_map_use *map_use;
	size_t nmap_param, cap_map_param, nmap_use, cap_map_use;
	ir_sym **sym; /* the body's own symbols, by id (below MODULE_SYM) */
	size_t nsym, cap_sym;
	const char **text; /* texts of pragmas, comments and directives */
	size_t ntext, cap_text;
	uint32_t reached_smem; /* static_smem and that of the functions it calls; set by freezing */
	uint32_t static_smem, dyn_smem, param_bytes;
	struct ir_top *tops;     /* its entries at the top level, latest first, linked by `same` */
	const hash_table *names; /* index of names (index.c); NULL: no name was looked up yet */
	hash_table renamed;      /* registers, variables and labels whose items rename.c marks at freezing */
	uint32_t place;          /* index in m->placed */
	uint32_t nshared;        /* number of shared variables in sym, removed ones included */
	bool has_extern_shared, recount, gone_unsorted;
	ir_item *last_var;   /* the last of the variables at the start of the body, as far as known */
	ir_block *block;     /* innermost open one */
	ir_block *closed_if; /* the if that an else may follow now */
	ir_item *closed_if_item;
};

static inline cptx_val ir_operand(const cptx_kernel *k, const ir_item *it, unsigned i)
{
	return ir_unpack(ir_words(it), i, k->owner);
}

/* The declaration of a register, and the register's number in it. */
static inline uint32_t ir_decl_of(const cptx_kernel *k, uint32_t reg)
{
	return k->reg[reg].made ? (uint32_t)ir_class_of(k->reg[reg].type) : k->reg[reg].at;
}
static inline uint32_t ir_number_of(const cptx_kernel *k, uint32_t reg)
{
	return k->reg[reg].made ? k->reg[reg].at : reg - k->decl[k->reg[reg].at].first;
}

enum { MODULE_SYM = 0x40000000 }; /* symbol ids from here on are the module's */

/* Entries at the top level of the module, in the order of the text. */
enum ir_top_kind {
	TOP_HEAD /* .version, .target, .address_size */,
	TOP_VAR,
	TOP_PROTO /* a signature without a body */,
	TOP_BODY,
	TOP_TEXT,
	TOP_COMMENT
};
typedef struct ir_top {
	struct ir_top *prev, *next, *next_text;
	enum ir_top_kind kind;
	/* place in the source, like an item's; for a body, all of it; a comment inside of another entry's text has length 0 */
	uint32_t src, src_len;
	uint32_t sym; /* TOP_VAR: the symbol */
	bool edited;
	cptx_kernel *k;      /* TOP_PROTO, TOP_BODY */
	const char *text;    /* TOP_TEXT, TOP_COMMENT */
	struct ir_top *same; /* another entry of k */
} ir_top;
/* Sets the body of an entry. */
static inline void ir_top_body(ir_top *t, cptx_kernel *k)
{
	t->k = k;
	t->same = k->tops;
	k->tops = t;
}

/* What a module knows of a place in the program that calls (place.c). */
enum { IR_HERE_UNUSED = 1 }; /* no hash of a call: greater than this; of a place that holds none it is 0 */
typedef struct ir_here {
	uint64_t call; /* the hash of what the place calls, or IR_HERE_UNUSED */
	uint64_t head; /* of the items, from `form` on, but for their owner */
	const ir_shape *shape;
	uint32_t fills; /* how often the module had been emptied: `head` is of that time */
} ir_here;
enum { IR_HERE_NEAR = 3, IR_SHAPES = 64 }; /* an entry may stand IR_HERE_NEAR behind its place */

enum { IR_DIRECT_LOG = 8 };
_Static_assert(ARCH_MEMO < 256, "a byte numbers its entries, from 1");
struct cptx_module {
	arena a;
	arch_memo memo;
	/* how the memo's calls are made directly (again.c), in blocks as the memo has; made when needed */
	struct ir_direct *direct[ARCH_MEMO / ARCH_MEMO_BLOCK];
	uint8_t direct_at[1 << IR_DIRECT_LOG]; /* numbers in it, from 1, by a hash of the call */
	ir_here *here;                         /* a table by the hash of a call; NULL: none yet */
	uint32_t here_mask;                    /* of a place in it */
	ir_shape **shape;                      /* IR_SHAPES lists of all shapes, by a hash; NULL: none yet */
	struct shape_block *shape_block;       /* their memory */
	uint32_t nshape;
	uint32_t fills;           /* how often it was emptied */
	void *printer;            /* the cptx_ptx that has plans for its shapes and points back; atomic */
	hash_table names;         /* names of variables, functions, kernels and files: index.c */
	hash_table *spare_tables; /* tables of bodies that cptx_module_clear removed, empty */
	/* from here on cptx_module_clear forgets all */
	uint16_t tag;              /* a hash that its variables and functions carry as owner, to tell modules apart */
	cptx_kernel *first, *last; /* bodies with code */
	cptx_kernel **body;        /* all functions and kernels, declared ones and prototypes too, by number - 1 */
	size_t nbody, cap_body;
	cptx_kernel **placed; /* the bodies from first to last; room for nbody; NULL where one was removed */
	size_t nplaced, cap_placed;
	uint32_t *left; /* sums over placed (placed.c), once a body was removed */
	size_t nleft, cap_left;
	ir_top *top_first, *top_last;
	ir_top *first_body, *first_proto; /* first TOP_BODY; first entry that is a TOP_PROTO or TOP_BODY; NULL: none */
	ir_top *text_first, *text_last;   /* first and last TOP_TEXT */
	hash_table stems;                 /* names without the digits at their end; made when needed, like locals and words */
	hash_table locals, words;         /* which bodies have a name; words of the TOP_TEXT entries */
	hash_table renamed;               /* renamed variables and functions, like a body's `renamed` */
	bool has_locals, has_words, has_stems; /* which of these tables were made */
	bool odd_names;                        /* a name of the module begins with % or $ */
	bool gone_unsorted;
	ir_sym **sym;
	size_t nsym, cap_sym;
	uint32_t const_bytes;
	uint32_t dyn_sym;  /* id of the extern array behind cptx_shared_dyn, 0: none yet */
	const char **file; /* names of the user's source files, by number - 1 */
	size_t nfile, cap_file;
	const char *last_file; /* the user's pointer that file number `last_file_number` was made from */
	uint16_t last_file_number;

	bool parsed, misread;            /* parsed: from text; misread: the text has errors, but what was read can be checked */
	uint16_t version;                /* .version of parsed text, times ten */
	const cptx_target *target;       /* .target of parsed text */
	const char *target_more;         /* further words of .target, such as ", debug"; or "" */
	const char *text_more;           /* target_more as the text spells it */
	uint32_t target_end;             /* end of the .target list in the source */
	ir_span version_src, target_src; /* places of .version and .target in the source, and the values there */
	uint16_t text_version;
	const cptx_target *text_target;
	bool touched;  /* the module was edited: freezing checks declarations */
	ir_span *gone; /* removed statements outside of bodies, by their place */
	size_t ngone, cap_gone;
	const char *source; /* the parsed text, kept if cptx_parse_opt.keep asked for it */
	size_t source_size;
	uint32_t frozen; /* 0 or 1; one word with the code of the error behind it (ir_open_quietly) */
	cptx_error err;  /* the last: its texts are set with the code, and need not be cleared */
};

/* Whether items may be appended to a body, as ir_open tells, without an error. */
static inline bool ir_open_quietly(const cptx_kernel *k)
{
	uint64_t module;
	uint16_t body;

	memcpy(&module, &k->m->frozen, sizeof module);
	memcpy(&body, &k->closed, sizeof body);
	return !(module | body);
}
_Static_assert(offsetof(cptx_module, err) == offsetof(cptx_module, frozen) + 4 && !offsetof(cptx_error, code) &&
                   sizeof(enum cptx_code) == 4 && (int)CPTX_OK == 0 &&
                   offsetof(cptx_kernel, removed) == offsetof(cptx_kernel, closed) + 1,
               "ir_open_quietly reads words of them");

static inline void ir_top_var(cptx_module *m, ir_top *t, uint32_t id)
{
	t->sym = id;
	m->sym[id - MODULE_SYM]->top = t;
}

/* Sets the module's first error, with the kernel's name.  Returns false. */
bool ir_error(cptx_kernel *k, enum cptx_code code, cptx_site at, const char *format, ...) CPTX_PRINTF_(4, 5);
/* Whether items may be appended to a body: no error yet, the module is not frozen, this body is open.  Reports the latter
 * two as errors. */
bool ir_open(cptx_kernel *k, cptx_site at);
/* Sets the error that memory is short.  Returns false. */
bool ir_no_memory(cptx_module *m, cptx_site at);

/* Adds a top-level entry at its place: variables in front of all functions, signatures in front of all bodies, others last.
 */
ir_top *ir_top_add(cptx_module *m, enum ir_top_kind kind);
/* adds a variable behind the signatures, which its initial values may name */
ir_top *ir_top_add_late(cptx_module *m, enum ir_top_kind kind);
ir_top *ir_top_append(cptx_module *m, enum ir_top_kind kind);
/* A new kernel or function; NULL when memory is short or there are too many. */
cptx_kernel *ir_body_new(cptx_module *m, cptx_site at, const char *name);
/* ir_body_new with the checks of a builder call; `what` is "kernel" or "function" */
cptx_kernel *ir_body_named(cptx_module *m, cptx_site at, const char *what, const char *name);
bool ir_body_open(cptx_kernel *k, cptx_site at); /* makes the builder's body k the open one, which items go to */
/* Adds a parameter to the list that launches see; false, with no error, when memory is short. */
bool ir_publish_param(cptx_kernel *k, const ir_sym *s);
bool ir_body_link(cptx_kernel *k); /* links a function that has a body into the list; this and the next two return false when
                                      memory is short */
bool ir_place(cptx_module *m, cptx_kernel *k); /* appends a body to m->placed (placed.c) */
bool ir_unplace(cptx_module *m, const cptx_kernel *k);
/* Adds a register declaration behind those of text; returns its number, or IR_NONE. */
uint32_t ir_declare(cptx_kernel *k, const ir_decl *d);
/* Adds a variable to the body, or to the module (k NULL); returns its id, or IR_NONE. */
uint32_t ir_add_symbol(cptx_module *m, cptx_kernel *k, const ir_sym *s);
cptx_val ir_symbol_value(const cptx_module *m, const cptx_kernel *k, uint32_t id);
cptx_val ir_func_value(const cptx_kernel *f);
/* Whether both are kernels, or functions, with the same parameters and results. */
bool ir_same_signature(const cptx_kernel *f, const cptx_kernel *g);
/* Copies a text into the body's texts; returns its index, or IR_NONE. */
uint32_t ir_add_text(cptx_kernel *k, const char *text);

#include "ir/index.h"

/* ---- name.c ---- */
#define IR_PREFIX "__cptx" /* prefix of the names that cptx prints; users may not have it */
/* Whether a text is a PTX identifier, of any length: a letter, or one or more of `front`; then letters, digits, _ and $. */
bool ir_is_identifier(const char *name, const char *front);
bool ir_name_ok(cptx_module *m, cptx_site at, const char *what, const char *name);
/* Whether a name cannot be given to a variable or parameter of a body: it must not hide a name that the body may use. */
bool ir_local_name_taken(const cptx_kernel *k, const char *name);
bool ir_local_name_free(cptx_kernel *k, cptx_site at, const char *name);
/* Whether a name can be given to a kernel, function or variable of the module, else sets an error; `open`: a body that could
 * use it, or NULL. */
bool ir_module_name_free(cptx_module *m, cptx_site at, const char *name, const cptx_kernel *open);
/* Picks the prefix (k->made) of names for new registers and labels in a body of a parsed module.  False when memory is
 * short. */
bool ir_made_names(cptx_kernel *k);
bool ir_prepare_names(cptx_kernel *k); /* ir_made_names, with the declarations that use the names; for any module */
char *ir_reg_name(const cptx_kernel *k, char *p, uint32_t id);    /* writes a register's name at p; returns its end */
size_t ir_label_name(const cptx_kernel *k, char *p, uint32_t id); /* writes a label's name at p; returns its length */
/* Finds a name in a text directive as a word of its own; NULL if it is not there. */
const char *ir_find_word(const char *text, const char *name);
/* Whether a register, variable or label of a parsed body, or anything of the module, has this name. */
bool ir_body_has_name(const cptx_kernel *k, const char *name);
bool ir_module_has_name(const cptx_module *m, const char *name);

/* Appends a new item at the cursor of the body; NULL, with an error, on failure. */
ir_item *ir_append(cptx_kernel *k, cptx_site at, enum ir_item_kind kind, const cptx_val *operand, unsigned noperand,
                   const uint16_t *mod, unsigned nmod);
/* Replaces operands and modifiers of an item by any number of others; false, with an error, when memory is short. */
bool ir_refill(cptx_kernel *k, ir_item *it, const cptx_val *operand, unsigned noperand, const uint16_t *mod, unsigned nmod);
/* Renumbers labels: number n becomes as[n], wherever an instruction or list names it; false, with an error, when memory is
 * short. */
bool ir_relabel(cptx_kernel *k, const uint32_t *as);
/* The number of a source file in the module, from 1; 0: none. */
uint16_t ir_find_file(cptx_module *m, const char *file);
static inline uint16_t ir_file_number(cptx_module *m, const char *file)
{
	return file && file == m->last_file ? m->last_file_number : ir_find_file(m, file);
}
void ir_unlink(cptx_kernel *k, ir_item *it);
/* Sets the module's error to `why`, which says what to change, and below it has a line for each form: as many whole lines as
 * the text can hold. */
void ir_form_error(cptx_kernel *k, cptx_site at, buf *why);
/* Sets the module's error to what would have to change so that the call fits a form of the instruction. */
void ir_report_no_form(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods);
/* Declares a parameter or result in memory, for the builder, as plain bits. */
bool ir_param_symbol(cptx_kernel *k, const char *name, unsigned type, cptx_val *v);
/* Appends the instruction that `m` describes, with a guard (or NONE). */
ir_item *ir_append_match(cptx_kernel *k, cptx_site at, const arch_match *m, cptx_val guard);
/*
 * Appends an instruction that is known as an item already: its form and lengths stand in `like`, the rest of which is 0, and
 * no word is WORD_WHOLE, a label or a function.  mod: room for ARCH_GROUPS.
 */
ir_item *ir_append_like(cptx_kernel *k, cptx_site at, const ir_item *like, const uint32_t *words, const uint16_t *mod);
static inline void ir_guard(ir_item *it, cptx_val guard)
{
	it->guard = (guard.id + 1) & IR_MOST_REGS_MASK;
	it->flags |= guard.negated ? ITEM_NEGATED : 0;
}
/*
 * Modifiers are copied by fours, so that all copies have the same length: up to three more behind both arrays are read and
 * written.  ITEM_BEHIND: slack behind an item, which may be written here, and read by code that reads modifiers by fours.
 */
enum { ITEM_BEHIND = 16 };
static inline void ir_put_mods(uint16_t *to, const uint16_t *mod, unsigned nmod)
{
	for (unsigned i = 0; i < nmod; i += 4)
		memcpy(to + i, mod + i, 4 * sizeof *to);
}
/* The bytes behind an item. */
static inline size_t ir_bytes_of(unsigned noperand, unsigned nmod, unsigned nwhole)
{
	return (noperand * sizeof(uint32_t) + nmod * sizeof(uint16_t) + 7) / 8 * 8 + nwhole * sizeof(cptx_val);
}
/* A new instruction that is in no list yet, with room for its words, modifiers and, if `whole`, whole values; NULL when
 * memory is short.  What it does not use is given back by arena_end. */
static inline ir_item *ir_item_room(cptx_kernel *k, cptx_site at, unsigned noperand, unsigned nmod, bool whole)
{
	uint16_t file = ir_file_number(k->m, at.file); /* may allocate */
	size_t behind = ir_bytes_of(noperand, nmod, whole ? noperand : 0) + ITEM_BEHIND;
	ir_item *it = ARENA_SIZED(&k->m->a, ir_item, sizeof *it + behind);

	if (it)
		*it = (ir_item){ .nmod = nmod & 31, .noperand = noperand & 15, .owner = k->owner, .file = file, .line = at.line };
	return it;
}
/* Puts an item at the cursor of the body. */
static inline void ir_link(cptx_kernel *k, ir_item *it)
{
	ir_item *next = k->cursor;

	it->prev = next ? next->prev : k->last;
	it->next = next;
	if (it->prev)
		it->prev->next = it;
	else
		k->first = it;
	if (next)
		next->prev = it;
	else
		k->last = it;
	k->closed_if = NULL;
}
/* Writes operand i into the words, and, where a word cannot hold it, behind the `size` bytes in use; returns those in use
 * then. */
size_t ir_put_value(uint32_t *words, unsigned i, const cptx_val *v, uint16_t owner, size_t size);
/* Appends a call with the kinds of operands of an earlier one, `r`; false, with nothing done and no error, where only
 * matching can tell. */
bool ir_append_again(cptx_kernel *k, cptx_site at, const arch_remembered *r, const ir_shape *shape, const cptx_val *vals,
                     cptx_val *result);
/* The shape of items that calls like `r` make; NULL: they have none, or memory is short, which is no error. */
const ir_shape *ir_shape_of(cptx_module *m, const arch_remembered *r);
void ir_shapes_free(cptx_module *m);
void ir_direct_free(cptx_module *m);
/* Appends a call whose operands and modifiers are given, on a body that is open. */
cptx_val ir_append_insn(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods);
/* Appends a call that the memo knows from an earlier one; false, with nothing done and no error: it must be matched. */
bool ir_insn_again(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods, cptx_val *result);
uint32_t ir_word(const cptx_val *v, uint16_t owner); /* packs a value into a word; WORD_WHOLE if no word can hold it */
static inline bool ir_is_call(unsigned op) { return op == CPTX_OP_CALL_FUNC || op == CPTX_OP_CALL_PTR; }
/* Whether a call (an op for which ir_is_call holds) passes and takes what the function or prototype declares; if not, `why`
 * says so. */
bool ir_call_fits(cptx_kernel *k, const arch_match *m, char why[160]);
/* Whether ld and st access parameters of the head only as allowed. */
bool ir_param_fits(cptx_kernel *k, const arch_match *m, char why[160]);
static inline const char *ir_op_name(unsigned op) { return ir_is_call(op) ? "call" : arch_ops[op].name; }
/* Whether the operands keep the rules beyond those of the form (calls, parameters); if not, `why` says so. */
static inline bool ir_fits(cptx_kernel *k, const arch_match *m, char why[160])
{
	unsigned op = arch_forms[m->form].op;
	return ir_is_call(op) ? ir_call_fits(k, m, why) : (op != CPTX_OP_LD && op != CPTX_OP_ST) || ir_param_fits(k, m, why);
}
/* Appends an instruction by its op, with values in order: for control flow and parameters. */
cptx_val ir_insn(cptx_kernel *k, cptx_site at, enum cptx_op op, cptx_val into, cptx_val when, const cptx_val *slots,
                 size_t nslot, const char *fields, ...);
/*
 * Whether the value was made by this kernel (or belongs to all).  A value of another module may carry this kernel's tag by
 * chance: what it names must at least exist here.
 */
bool ir_names_ours(const cptx_kernel *k, const cptx_val *v); /* the same check for all kinds but registers */
static inline bool ir_is_ours(const cptx_kernel *k, const cptx_val *v)
{
	if ((v->owner && v->owner != k->owner && v->owner != k->m->tag) || v->type >= arch_ntype)
		return false;
	return v->kind == CPTX_VAL_REG ? v->id < k->nreg && v->count <= k->nreg - v->id : !v->kind || ir_names_ours(k, v);
}
/* Why a value for which ir_is_ours fails does not belong here: "belongs to another kernel or function of the module", or no
 * call made it. */
const char *ir_stranger(const cptx_val *v);
/* Whether a value belongs here; if not, sets an error that names it `what`. */
bool ir_owned(cptx_kernel *k, cptx_site at, const cptx_val *v, const char *what);
bool ir_guard_ok(cptx_kernel *k, cptx_site at, cptx_val *guard, cptx_val when, cptx_val unless);
cptx_val ir_regs(cptx_kernel *k, cptx_site at, unsigned type, uint32_t n);
const ir_sym *ir_symbol(const cptx_kernel *k, uint32_t id);
void ir_close(cptx_kernel *k);
/* Releases the spare memory of a complete parsed body; false, with no error, when memory is short. */
bool ir_trim(cptx_kernel *k);
/* Merges labels at one place into the first of them, so that the ends of blocks need one label. */
void ir_merge_labels(cptx_kernel *k);
bool ir_check_bounds(cptx_kernel *k, cptx_site at); /* checks and completes k->opt */
cptx_kernel_info ir_kernel_info(const cptx_kernel *k);
bool ir_grid_of_clusters(const cptx_kernel *k); /* .blocksareclusters: the grid of a launch counts clusters */
void ir_unlink_top(cptx_module *m, ir_top *t);

/* ---- edit.c, rename.c ---- */
/* Calls fn for each value that an item reads, writes or names, elements of vectors and the guard too, until fn returns true.
 */
typedef bool (*ir_value_fn)(const cptx_kernel *k, const cptx_val *v, void *user);
bool ir_any_value(const cptx_kernel *k, const ir_item *it, ir_value_fn fn, void *user);
void ir_touch(cptx_kernel *k);
/* Whether an instruction with other operands, of as many, has its form still. */
bool ir_match_as(const cptx_kernel *k, const ir_item *it, const cptx_val *operands, arch_match *m);
/* Turns an instruction into the matched one; NULL, with an error, when memory is short. */
ir_item *ir_become(cptx_kernel *k, ir_item *it, const arch_match *m);
bool ir_remove(cptx_kernel *k, ir_item *it); /* removes an instruction; false, with an error, when memory is short */
void ir_mark_renamed(cptx_module *m);        /* marks the items that mention something renamed */
void ir_sort_gone(cptx_module *m);
void ir_count_shared(cptx_kernel *k);      /* counts the static shared memory of a body again after a removal */
void ir_mark(cptx_kernel *k, ir_item *it); /* marks an item whose text in the source is out of date */
/* Notes a removed statement; k NULL: it stood outside of bodies. */
bool ir_note_gone(cptx_module *m, cptx_kernel *k, uint32_t src, uint32_t len);
/* Splits a statement that declares several things: once one of them is edited, they are printed one by one. */
void ir_split(ir_item *it);
void ir_split_top(ir_top *t);

/* ---- declared.c: when an edited module is frozen ---- */
/* Checks that all that is used is declared where it is used, under the name that is printed. */
bool ir_check_declared(cptx_module *m);

/* Makes the label that names a list of targets or a prototype of the given kind. */
cptx_val ir_own_label(cptx_kernel *k, enum cptx_val_kind kind);

#endif
