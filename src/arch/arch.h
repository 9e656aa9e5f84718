/* SPDX-License-Identifier: MIT */
/*
 * The instruction table as compiled from insn.def, and the choice of a form from it.  A form is a sequence of modifier
 * groups and a list of operands; a group is named by its index in the form, a modifier by its enum cptx_mod.
 */
#ifndef CPTX_ARCH_H
#define CPTX_ARCH_H

#include "base/base.h"

enum { ARCH_GROUPS = 16, ARCH_OPERANDS = 12, ARCH_FIELDS = 24, ARCH_SLOTS = 12, ARCH_NO = 0xff };
enum { ARCH_TARGETS = 48 }; /* room for the targets of target.def */

typedef struct arch_alt {
	uint16_t mod;
	uint16_t avail; /* index of an availability; 0: the same as the form's */
} arch_alt;

enum arch_group_kind { GROUP_REQUIRED, GROUP_OPTIONAL, GROUP_REPEAT };

typedef struct arch_group {
	const char *prefix; /* text in front of the group's value: the mnemonic, fixed modifiers */
	uint8_t nprefix, kind, field;
	uint8_t same; /* GROUP_REPEAT: the group that this one repeats */
	uint8_t is_type, is_space, is_count, nalt;
	uint8_t has_avail; /* a value has an availability of its own */
	uint8_t follows;   /* the operand that is there exactly when the group is chosen, + 1; 0: none */
	uint8_t preset;    /* the value taken when the call gives none, + 1; 0: none */
	uint8_t behind;    /* the group is printed behind an address */
	uint16_t alt;
} arch_group;

enum arch_operand_kind {
	OPERAND_REG,
	OPERAND_ADDR,
	OPERAND_IMM,
	OPERAND_LABEL,
	OPERAND_FUNC,
	OPERAND_LIST,    /* (a, b): the arguments of a call */
	OPERAND_TARGETS, /* the label of a .branchtargets */
	OPERAND_PROTO,   /* the label of a .callprototype */
	OPERAND_NOWHERE  /* a destination that is always the sink */
};
enum arch_operand_flags {
	OPERAND_DEST = 1,
	OPERAND_OPTIONAL = 2,
	OPERAND_NEGATABLE = 4,
	OPERAND_WIDER = 8,
	OPERAND_SYMBOL = 16,    /* the operand may be the address of a variable */
	OPERAND_REG_ONLY = 32,  /* the operand may not be a constant */
	OPERAND_PIPE = 64,      /* printed behind a | */
	OPERAND_DOUBLE = 128,   /* the operand is twice as wide as its type */
	OPERAND_SINK = 256,     /* the operand, or its elements, may be the sink _ */
	OPERAND_MINUS = 512,    /* the operand may be negated: -a */
	OPERAND_INSIDE = 1024,  /* the operand stands inside the brackets of the address in front */
	OPERAND_READ = 2048,    /* the operand is a destination that is read too */
	OPERAND_MORE = 4096,    /* the operand is an address with more operands in its brackets */
	OPERAND_SPECIAL = 8192, /* the operand may be a special register */
	OPERAND_EACH = 16384    /* each element of a vector of several types is checked */
};
/* Which declared types of a register ptxas accepts in text for operands that do not take any register of their width. */
enum arch_held {
	HELD_ANY,
	HELD_INT /* .b, .u, .s */,
	HELD_HALF /* .b, .f16x2 */,
	HELD_BITS /* .b */,
	HELD_NUMBER,
	HELD_TYPE /* like HELD_HALF beside .f16, else like HELD_BITS */
};
enum arch_select { SELECT_NONE, SELECT_SCALAR, SELECT_2, SELECT_4, SELECT_MASK_2, SELECT_MASK_4 };
enum arch_address { ADDRESS_MEMORY, ADDRESS_TMEM, ADDRESS_HANDLE, ADDRESS_ENDPOINT };

typedef struct arch_operand {
	uint8_t slot; /* 0: the result of the call (.into); n: the nth slot of the op */
	uint8_t kind;
	uint8_t type;           /* enum cptx_type, or 0: the type that group `tgroup` chose */
	uint8_t tgroup, cgroup; /* groups that give type and count, or ARCH_NO */
	uint8_t count;          /* 1, or the length of a fixed vector; vectors are printed in braces */
	uint8_t times, over;    /* the count is the number of group `cgroup` times `times` / `over` */
	uint8_t sgroup;         /* OPERAND_ADDR: the group that names the space, or ARCH_NO */
	uint8_t given;          /* the group that is chosen exactly when the operand is there, or ARCH_NO */
	uint8_t behind;         /* OPERAND_ADDR: the group that is printed behind the address, or ARCH_NO */
	uint8_t select;         /* enum arch_select */
	uint8_t address;        /* OPERAND_ADDR: enum arch_address */
	uint8_t brace;          /* the operand is printed in braces even if it is a single register */
	uint8_t held;           /* enum arch_held; HELD_NUMBER: a predicate or the numbers 0 and 1, and not -1 */
	uint16_t flags;
	uint16_t space; /* OPERAND_ADDR: the fixed space, or 0 */
	uint16_t avail; /* index of an availability; 0: the same as the form's */
	int32_t lo, hi; /* OPERAND_IMM: the range */
	uint64_t set;   /* OPERAND_IMM: allowed values as bits, 0: the whole range */
} arch_operand;

typedef struct arch_form {
	const char *text, *tail; /* text: the form as insn.def has it; tail: text behind the last group */
	const char *file;        /* file of the form's row */
	uint16_t op, group, operand, line /* line of the row in `file` */, avail;
	uint8_t ngroup, noperand, ntail, constraint, asks /* the availability of an operand must be checked */;
	uint32_t fields, must; /* fields of the op that the form knows; fields that must be given */
	uint32_t slots;
} arch_form;

typedef struct arch_op {
	const char *name, *chapter, *about, *instead /* instead: what to use on targets that lack it; "" if there is nothing */;
	uint16_t form, nform;
	uint8_t nfield, nslot, has_dest;
	const char *field[ARCH_FIELDS], *slot[ARCH_SLOTS];
	uint8_t npos, pos[ARCH_SLOTS]; /* the slots that are positional arguments of the call, in order */
} arch_op;

extern const arch_op arch_ops[];
extern const arch_form arch_forms[];
extern const arch_group arch_groups[];
extern const arch_operand arch_operands[];
extern const arch_alt arch_alts[];
/* Lowest PTX version, times ten, of each availability for each target; 0: the target lacks it. */
extern const uint8_t arch_avails[][ARCH_TARGETS];
/* PTX version, times ten, that removed it for each target; 0: it was not removed. */
extern const uint8_t arch_ends[][ARCH_TARGETS];
extern const char *const arch_avail_text[];
extern const uint16_t arch_nop, arch_nform;

/* First words of spellings, sorted; the forms that begin with a word stand behind one another. */
typedef struct arch_mnemonic {
	const char *text;
	uint16_t first, nform;
	uint8_t len;
} arch_mnemonic;
extern const arch_mnemonic arch_mnemonics[];
extern const uint16_t arch_nmnemonic, arch_forms_by_mnemonic[];

/* Modifiers and types share one numbering, types first. */
typedef struct arch_mod {
	const char *name, *about, *id; /* id: name of the enumerator, without CPTX_ */
	uint8_t len;
	uint16_t count; /* the number in the name: v4 4, x2 2, m64n128k16 128 */
} arch_mod;
extern const arch_mod arch_mods[];
extern const uint16_t arch_nmod;

typedef struct arch_type {
	uint8_t bits;
	char cls; /* class, as in types.def */
} arch_type;
extern const arch_type arch_types[];  /* Indexed by enum cptx_type, CPTX_PTR included. */
unsigned arch_bits_of(unsigned type); /* the untyped bits of the same width */
/*
 * Whether two neighbours in a vector go together in ptxas: 0 if one is bits, both are integers, or both are of one type;
 * else VEC_FIRST_APART (`first`) or VEC_MIXED.
 */
unsigned arch_mixed(const cptx_val *a, const cptx_val *b, bool first);
extern const uint8_t arch_ntype;

/* True for bits, too; false for a modifier that stands in the place of a type, as .b1 of wmma does. */
bool arch_is_integer(unsigned type);
enum cptx_type arch_type_of(const char *name, size_t n); /* cptx_type_find for a name of n characters */

typedef struct arch_sreg {
	const char *text, *name; /* name: that of the builder call */
	uint8_t type, count;     /* count 4: a vector */
	uint8_t least;           /* mov also reads the register in this many bits; 0: only in those of its type */
	uint16_t avail;
} arch_sreg;
extern const arch_sreg arch_sregs[];
extern const uint16_t arch_nsreg;

extern const cptx_target arch_targets[];
extern const uint8_t arch_ntarget;

/* The named rules of insn.def.  Their numbers are the rows of constraint.def. */
struct arch_match;
/* Checks a named rule; returns NULL, or what is wrong. */
const char *arch_constraint_check(unsigned constraint, const struct arch_match *m);
const char *arch_constraint_text(unsigned constraint);

/* ---- matching ---- */

typedef struct arch_match {
	uint16_t form;
	uint8_t ngroup, noperand, dest_type /* type of the register to make where .into is not given */;
	uint8_t labels; /* an operand is a label, a list of targets or a prototype */
	uint8_t once; /* the number of a constant decided, so that other constants may not fit: the match is never remembered */
	uint16_t dest_count;
	uint16_t mod[ARCH_GROUPS]; /* chosen modifier of each group, 0: left out */
	/* the operands in printed order; kind NONE: left out.  Constants carry their final type */
	cptx_val operand[ARCH_OPERANDS];
	const cptx_val *vec; /* elements of vectors; valid as long as the call that matched */
} arch_match;

/*
 * The last matches of some instructions.  Kernels repeat a call with other registers over and over: a match for the same
 * modifiers and kinds of operands holds again, and only constants must be checked.
 */
typedef struct arch_known { /* a match without its operands */
	uint16_t form, mod[ARCH_GROUPS], dest_count;
	uint16_t varying; /* a bit for each operand whose value matters too: constants and selectors */
	uint8_t ngroup, noperand, dest_type, labels;
	uint8_t from[ARCH_OPERANDS]; /* index of each operand's value among the call's, or KNOWN_NONE or KNOWN_SINK */
} arch_known;
enum { KNOWN_NONE = 0xff, KNOWN_SINK = 0xfe };
/*
 * What most operands are kept as (ir.h): a word with the kind in its lowest bits, above it the type, and above that the
 * number of a register, or an integer with WORD_ZERO added.
 */
enum { WORD_KIND = 4, WORD_TYPE = 6, WORD_NUMBER = WORD_KIND + WORD_TYPE };
#define WORD_NUMBERS (UINT32_C(1) << (32 - WORD_NUMBER))
#define WORD_ZERO (WORD_NUMBERS / 2)
/* How an operand of a remembered call becomes one of its item, when the same call is made with other registers. */
enum arch_operand_again {
	AGAIN_WORD,  /* front + (the number of its value & mask) << WORD_NUMBER */
	AGAIN_NEW,   /* a new register */
	AGAIN_FLOAT, /* any floating point number */
	AGAIN_WHOLE  /* whatever else its key says; its value is kept as it is */
};
typedef struct arch_operand_plan {
	uint32_t front, mask; /* mask 0: no value of the call says more */
	uint32_t below;       /* an integer that fits is below this */
	uint8_t from, is, type;
	bool reg;
} arch_operand_plan;
typedef struct arch_plan {
	arch_operand_plan of[ARCH_OPERANDS];
	uint16_t other;    /* a bit for each that is not AGAIN_WORD */
	bool whole, makes; /* whole: the item's words do not hold all; makes: operand 0 is AGAIN_NEW */
	bool direct;       /* the plan tells all; else the call is matched by arch_match_again */
} arch_plan;
/* A call that was matched: what it was, and its match. */
typedef struct arch_remembered {
	uint16_t op; /* the op + 1; 0: empty */
	uint8_t nslot, nfield;
	uint32_t hash, serial; /* serial: a number that no other entry of the memo has or had */
	uint8_t number;        /* its place in the memo */
	uint64_t key[1 + ARCH_SLOTS + ARCH_FIELDS / 4];
	arch_known known;
	arch_plan plan;
} arch_remembered;
enum { ARCH_MEMO = 128, ARCH_MEMO_BLOCK = 16, ARCH_MEMO_PLACES = 256 };
typedef struct arch_memo {
	const cptx_allocator *hook;
	unsigned n, turn; /* calls in use; the next one to be replaced when all are */
	uint32_t serial;  /* of the latest entry */
	uint8_t at[ARCH_MEMO_PLACES];
	arch_remembered *block[ARCH_MEMO / ARCH_MEMO_BLOCK]; /* made when needed */
} arch_memo;
void arch_memo_begin(arch_memo *memo, const cptx_allocator *hook);
void arch_memo_end(arch_memo *memo);

/*
 * Chooses the first form of `op` that fits.  vals: into, when, unless, then the op's slots; mods: the op's fields, 0: not
 * given, with room for a multiple of four; vec: elements of vectors and lists.  False if no form fits; arch_why then tells
 * what to change, and the nearest forms.
 */
bool arch_match_op(arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec,
                   arch_match *out);
/* The entry for a call that the memo remembers, or NULL.  It holds until the next call is matched. */
const arch_remembered *arch_recalled(const arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods);
void arch_why(unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, buf *why);
/*
 * Matches one form, which the spelling in text has already chosen; mods has its groups.  declared: registers have the types
 * that the text declares, not the untyped bits of builder calls.
 */
bool arch_match_form(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool declared,
                     arch_match *out);
/*
 * Finds the forms whose spelling begins with the first word of an opcode (text[0 .. n), up to a dot): returns their numbers,
 * in the order of the table; *count gets how many.
 */
const uint16_t *arch_forms_of(const char *text, size_t n, unsigned *count);
/* Writes the spelling of a form with these values of its groups, without operands, at p (ARCH_OPCODE bytes); returns its
 * end. */
enum { ARCH_OPCODE = 256 };
char *arch_put_opcode(char *p, unsigned form, const uint16_t *mods);
/* Packs four modifiers into one word; with `left` below four only the first `left`. */
static inline uint64_t arch_four_mods(const uint16_t *mods, unsigned left)
{
	uint64_t four;

	memcpy(&four, mods, sizeof four);
	return left < 4 ? four & ((UINT64_C(1) << 16 * left) - 1) : four;
}
/* The fields of a value in front of its number, as one word. */
static inline uint64_t arch_value_front(cptx_val v)
{
	uint64_t word;
	memcpy(&word, &v, sizeof word);
	return word;
}
_Static_assert(offsetof(cptx_val, id) == sizeof(uint64_t), "the number stands behind a word");
/*
 * All of a value that the choice of a form depends on, except for constants: everything but its number and owner, and
 * whether an address has an offset.
 */
static inline uint64_t arch_value_key(const cptx_val *v)
{
	uint64_t rest = arch_value_front(*v) & ~arch_value_front((cptx_val){ .owner = UINT16_MAX });
	unsigned moved = ((v->kind == CPTX_VAL_REG) | (v->kind == CPTX_VAL_SYM)) & (v->offset != 0); /* without a branch */

	return rest | (uint64_t)moved << 8 * offsetof(cptx_val, owner);
}
/* Whether a call has the same instruction and modifiers as a remembered one, and values of the same kinds. */
static inline bool arch_is_again(const arch_remembered *r, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	const uint64_t *key = r->key;
	uint64_t other = (uint64_t)(r->op ^ (op + 1)) | (arch_value_key(&vals[0]) ^ *key++);

	for (unsigned i = 0; i < r->nslot; i++)
		other |= arch_value_key(&vals[3 + i]) ^ *key++;
	for (unsigned i = 0; i < r->nfield; i += 4)
		other |= arch_four_mods(mods + i, r->nfield - i) ^ *key++;
	return !other;
}
/*
 * Matching again: for a call that differs from an earlier match only in the numbers of registers and in constants (its
 * values have equal keys).  arch_know notes a match, all but known->from; arch_recall restores it, all but the operands;
 * then arch_match_again checks the operands in `varying`, and returns false if a constant does not fit.  If `varying` is 0,
 * no check is needed, because rules depend on modifiers, kinds, types and constants only.
 */
void arch_know(arch_known *known, const arch_match *m);
static inline void arch_recall(const arch_known *known, const cptx_val *vec, arch_match *m)
{
	m->form = known->form;
	m->ngroup = known->ngroup;
	m->noperand = known->noperand;
	m->dest_type = known->dest_type;
	m->dest_count = known->dest_count;
	m->labels = known->labels;
	memcpy(m->mod, known->mod, sizeof m->mod);
	m->vec = vec;
}
bool arch_match_varying(arch_match *m, unsigned varying);
static inline bool arch_match_again(arch_match *m, const arch_known *known)
{
	return !known->varying || arch_match_varying(m, known->varying);
}
/*
 * If operand i of the match is an integer: the largest n such that all integers from 0 to n would match as well, whatever
 * rules the form has; -1 if that is not known.
 */
int64_t arch_integers_up_to(const arch_match *m, unsigned i);
/* The number of registers of an operand: the length of a vector, else 1. */
unsigned arch_operand_count(const arch_operand *o, const uint16_t *mods);

/*
 * The selector of a video operand as cptx_select writes it into a value: .b0, .h10, .b7654.  Its digits stand in `offset`,
 * three bits each, the first lowest.
 */
enum { SELECTED = 16, SELECTED_H = 8, SELECTED_DIGITS = 7 }; /* bits in `space` of a register */
/* `space` of a register that text writes with the offset 0, [r+0]: in code for debuggers ptxas makes an addition of it. */
enum { PLUS_ZERO = 32 };
/* `space` of a constant in text: like ptxas, matching takes it for no other kind or width of number than it is written as.
 */
enum { EXACT_CONSTANT = 1 };
/* Bits in `space` of a VEC that describe its elements. */
enum {
	VEC_CONSTANTS = 1,
	VEC_SINKS = 2,
	VEC_FIRST_APART = 4, /* the first two elements have types that do not go together */
	VEC_MIXED = 8,       /* other neighbours have types that do not go together */
	VEC_VARIED = 16      /* the elements (of a vector in text) have several types; the vector is one of bits then */
};

/* The newest PTX version (times ten) whose instructions the table has; text of newer versions is read too. */
enum { ARCH_NEWEST = 95 };
/* Whether a PTX version (times ten) exists. */
bool arch_is_version(unsigned version);
/* A target that text may name: those of cptx_target_find, and older ones that ptxas still reads; NULL if there is none. */
const cptx_target *arch_target_any(const char *name);
/* Sets the error for a name that no target has, with the nearest name that one has; returns false. */
bool arch_no_target(const char *name, cptx_site at, cptx_error *err);
/* The index of a target in arch_targets, which columns of arch_avails follow. */
static inline unsigned arch_target_index(const cptx_target *t) { return (unsigned)(t - arch_targets); }
/* The rows of directive.def: what directives need. */
enum arch_directive {
#define DIRECTIVE(id, name, version, number, example) DIR_##id,
#include "arch/directive.def"
#undef DIRECTIVE
	ARCH_DIRECTIVES
};
typedef struct arch_need {
	const char *name;
	uint8_t version, number; /* lowest PTX version, times ten; lowest number of a target */
} arch_need;
extern const arch_need arch_needs[];
/* Writes the targets of an availability, "sm_80 and later" or "sm_90a sm_100a". */
void arch_avail_targets(unsigned avail, buf *b);

#endif
