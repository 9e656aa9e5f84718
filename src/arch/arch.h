/* SPDX-License-Identifier: MIT */
/*
 * The instruction table as compiled from insn.def, and choosing a form of it.  A form is a sequence of modifier groups and a
 * list of operands; groups are told apart by their index in the form, modifiers by their enum cptx_mod.
 */
#ifndef CPTX_ARCH_H
#define CPTX_ARCH_H

#include "base/base.h"

enum { ARCH_GROUPS = 16, ARCH_OPERANDS = 12, ARCH_FIELDS = 24, ARCH_SLOTS = 12, ARCH_NO = 0xff };
enum { ARCH_TARGETS = 48 }; /* at least as many as target.def has */

typedef struct arch_alt {
	uint16_t mod;
	uint16_t avail; /* index of an availability; 0: that of the form */
} arch_alt;

enum arch_group_kind { GROUP_REQUIRED, GROUP_OPTIONAL, GROUP_REPEAT };

typedef struct arch_group {
	const char *prefix; /* text in front: the mnemonic, fixed modifiers */
	uint8_t nprefix, kind, field, same /* GROUP_REPEAT: of that group */, is_type, is_space, is_count, nalt,
		has_avail /* of a value */, follows /* the operand that is there exactly when it is chosen, + 1; 0: none */,
		preset /* the value taken when none is given, + 1; 0: none */, behind /* printed behind an address */;
	uint16_t alt;
} arch_group;

enum arch_operand_kind {
	OPERAND_REG,
	OPERAND_ADDR,
	OPERAND_IMM,
	OPERAND_LABEL,
	OPERAND_FUNC,
	OPERAND_LIST,    /* (a, b): what a call passes */
	OPERAND_TARGETS, /* the label of a .branchtargets */
	OPERAND_PROTO,   /* the label of a .callprototype */
	OPERAND_NOWHERE  /* a destination that is always the sink */
};
enum arch_operand_flags {
	OPERAND_DEST = 1,
	OPERAND_OPTIONAL = 2,
	OPERAND_NEGATABLE = 4,
	OPERAND_WIDER = 8,
	OPERAND_SYMBOL = 16,    /* or the address of a variable */
	OPERAND_REG_ONLY = 32,  /* no constant */
	OPERAND_PIPE = 64,      /* printed behind a | */
	OPERAND_DOUBLE = 128,   /* of twice the width of its type */
	OPERAND_SINK = 256,     /* or _, whole or in elements */
	OPERAND_MINUS = 512,    /* or -a */
	OPERAND_INSIDE = 1024,  /* inside the brackets of the address in front */
	OPERAND_READ = 2048,    /* a destination that is read too */
	OPERAND_MORE = 4096,    /* an address with more operands in its brackets */
	OPERAND_SPECIAL = 8192, /* or a special register */
	OPERAND_EACH = 16384    /* of a vector of several types each element is looked at */
};
/* Registers of text that ptxas takes, by their declaration, where any of the width would do otherwise. */
enum arch_held {
	HELD_ANY,
	HELD_INT /* .b, .u, .s */,
	HELD_HALF /* .b, .f16x2 */,
	HELD_BITS /* .b */,
	HELD_NUMBER,
	HELD_TYPE /* as HELD_HALF beside .f16, else HELD_BITS */
};
enum arch_select { SELECT_NONE, SELECT_SCALAR, SELECT_2, SELECT_4, SELECT_MASK_2, SELECT_MASK_4 };
enum arch_address { ADDRESS_MEMORY, ADDRESS_TMEM, ADDRESS_HANDLE, ADDRESS_ENDPOINT };

typedef struct arch_operand {
	uint8_t slot; /* 0: what the call returns (.into); n: the n-th of the op's slots */
	uint8_t kind;
	uint8_t type;           /* enum cptx_type, or 0: what group `tgroup` chose */
	uint8_t tgroup, cgroup; /* groups that give type and count, or ARCH_NO */
	uint8_t count;          /* 1, or the length of a fixed vector; vectors print braces */
	uint8_t times, over;    /* what the number of group `cgroup` is multiplied by and divided by */
	uint8_t sgroup;         /* OPERAND_ADDR: the group that names the space, or ARCH_NO */
	uint8_t given;          /* the group that is chosen exactly when the operand is there, or ARCH_NO */
	uint8_t behind;         /* OPERAND_ADDR: the group that is printed behind it, or ARCH_NO */
	uint8_t select;         /* enum arch_select */
	uint8_t address;        /* OPERAND_ADDR: enum arch_address */
	uint8_t brace;          /* printed in braces even if single */
	uint8_t held;           /* enum arch_held; HELD_NUMBER: a predicate or the numbers 0 and 1, and not -1 */
	uint16_t flags;
	uint16_t space; /* OPERAND_ADDR: the fixed space, or 0 */
	uint16_t avail; /* index of an availability; 0: that of the form */
	int32_t lo, hi; /* OPERAND_IMM: the range */
	uint64_t set;   /* OPERAND_IMM: allowed values as bits, 0: the whole range */
} arch_operand;

typedef struct arch_form {
	const char *text, *tail; /* as in insn.def; what is printed behind the last group */
	const char *file;        /* of the row */
	uint16_t op, group, operand, line /* in file */, avail;
	uint8_t ngroup, noperand, ntail, constraint, asks /* an operand decides which targets have it */;
	uint32_t fields, must; /* the op's fields that the form knows; that must be given */
	uint32_t slots;
} arch_form;

typedef struct arch_op {
	const char *name, *chapter, *about, *instead /* on targets that lack it; "" if nothing */;
	uint16_t form, nform;
	uint8_t nfield, nslot, has_dest;
	const char *field[ARCH_FIELDS], *slot[ARCH_SLOTS];
	uint8_t npos, pos[ARCH_SLOTS]; /* the slots that are arguments of the call, in order */
} arch_op;

extern const arch_op arch_ops[];
extern const arch_form arch_forms[];
extern const arch_group arch_groups[];
extern const arch_operand arch_operands[];
extern const arch_alt arch_alts[];
extern const uint8_t arch_avails[][ARCH_TARGETS]; /* lowest PTX version times ten for each target; 0: not there */
extern const uint8_t arch_ends[][ARCH_TARGETS];   /* the version times ten that it was removed in; 0: it is there still */
extern const char *const arch_avail_text[];
extern const uint16_t arch_nop, arch_nform;

/* First words of spellings, sorted, and the forms that begin so, behind one another. */
typedef struct arch_mnemonic {
	const char *text;
	uint16_t first, nform;
	uint8_t len;
} arch_mnemonic;
extern const arch_mnemonic arch_mnemonics[];
extern const uint16_t arch_nmnemonic, arch_forms_by_mnemonic[];

/* Modifiers and types share one numbering: types first. */
typedef struct arch_mod {
	const char *name, *about, *id; /* id: of the enum, without CPTX_ */
	uint8_t len;
	uint16_t count; /* the number in the name: v4 4, x2 2, m64n128k16 128 */
} arch_mod;
extern const arch_mod arch_mods[];
extern const uint16_t arch_nmod;

typedef struct arch_type {
	uint8_t bits;
	char cls; /* as in types.def */
} arch_type;
extern const arch_type arch_types[];  /* by enum cptx_type; CPTX_PTR too */
unsigned arch_bits_of(unsigned type); /* the plain bits of its width */
/*
 * Neighbours in a vector, sinks apart: 0 if one is bits, or both are integers, or of one type, as ptxas has it; else
 * VEC_FIRST_APART or VEC_MIXED.
 */
unsigned arch_mixed(const cptx_val *a, const cptx_val *b, bool first);
extern const uint8_t arch_ntype;
enum cptx_type arch_type_of(const char *name, size_t n); /* as cptx_type_find */

typedef struct arch_sreg {
	const char *text, *name; /* name: of the call */
	uint8_t type, count;     /* 4: a vector */
	uint8_t least;           /* mov reads it in so few bits too; 0: in those of its type only */
	uint16_t avail;
} arch_sreg;
extern const arch_sreg arch_sregs[];
extern const uint16_t arch_nsreg;

extern const cptx_target arch_targets[];
extern const uint8_t arch_ntarget;

/* Named rules of insn.def.  Numbers are the rows of constraint.def. */
struct arch_match;
const char *arch_constraint_check(unsigned constraint, const struct arch_match *m); /* NULL, or what is wrong */
const char *arch_constraint_text(unsigned constraint);

/* ---- matching ---- */

typedef struct arch_match {
	uint16_t form;
	uint8_t ngroup, noperand, dest_type /* register type to make where .into is not given */;
	uint8_t labels; /* an operand is one, or a list of targets or prototype */
	uint8_t once;   /* the number of a value decided, so that others like it may not fit: never remembered */
	uint16_t dest_count;
	uint16_t mod[ARCH_GROUPS];       /* chosen value of each group, 0: left out */
	cptx_val operand[ARCH_OPERANDS]; /* in printed order; kind NONE: left out.  Constants carry their final type */
	const cptx_val *vec;             /* elements of vectors, for as long as the call that matched */
} arch_match;

/*
 * The last match of some instructions.  Kernels repeat a call with other registers over and over; what was found for the
 * same modifiers and kinds of operands holds again, and only constants must be looked at.
 */
typedef struct arch_known { /* a match without its operands */
	uint16_t form, mod[ARCH_GROUPS], dest_count;
	uint16_t varying; /* a bit for each operand whose value decides too: constants and selectors */
	uint8_t ngroup, noperand, dest_type, labels;
	uint8_t from[ARCH_OPERANDS]; /* the number of the value that each operand is, KNOWN_NONE or KNOWN_SINK */
} arch_known;
enum { KNOWN_NONE = 0xff, KNOWN_SINK = 0xfe };
enum { ARCH_MEMO = 128 };
typedef struct arch_remembered {
	uint64_t hash, key[1 + ARCH_SLOTS + ARCH_FIELDS / 4];
	arch_known known;
	uint16_t op; /* + 1; 0: empty */
} arch_remembered;
typedef struct arch_memo {
	arch_remembered at[ARCH_MEMO];
	unsigned turn;
} arch_memo;

/*
 * Chooses the first form of `op` that fits.  vals: into, when, unless, then the op's slots; mods: the op's fields, 0: not
 * given, and room for a multiple of four; vec: where the elements of vectors and lists stand.  False if none fits; arch_why
 * then tells what to change, and the nearest forms.  The memo begins zeroed.
 */
bool arch_match_op(arch_memo *memo, unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec,
                   arch_match *out);
void arch_why(unsigned op, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, buf *why);
/*
 * The same for one form that text already chose; mod[] holds its groups.  declared: registers stand in the text as declared
 * there, and not as the bits that calls declare.
 */
bool arch_match_form(unsigned form, const cptx_val *vals, const uint16_t *mods, const cptx_val *vec, bool declared,
                     arch_match *out);
/*
 * The forms whose spelling begins with the first word of an opcode (text[0 .. n), up to a dot): their numbers, in the order
 * of the table; *count of them.
 */
const uint16_t *arch_forms_of(const char *text, size_t n, unsigned *count);
/* Writes the spelling of a form with these values of its groups, without operands, at p (ARCH_OPCODE bytes); its end. */
enum { ARCH_OPCODE = 256 };
char *arch_put_opcode(char *p, unsigned form, const uint16_t *mods);
/* Four modifiers, of which `left` are asked for, as one word. */
static inline uint64_t arch_four_mods(const uint16_t *mods, unsigned left)
{
	uint64_t four;

	memcpy(&four, mods, sizeof four);
	return left < 4 ? four & ((UINT64_C(1) << 16 * left) - 1) : four;
}
/* What stands in a value in front of its number, as one word. */
static inline uint64_t arch_value_front(cptx_val v)
{
	uint64_t word;
	memcpy(&word, &v, sizeof word);
	return word;
}
_Static_assert(offsetof(cptx_val, id) == sizeof(uint64_t), "the number stands behind a word");
/*
 * All of a value that the choice of a form depends on, constants apart: everything but its number and owner, and whether an
 * address has an offset.
 */
static inline uint64_t arch_value_key(const cptx_val *v)
{
	uint64_t rest = arch_value_front(*v) & ~arch_value_front((cptx_val){ .owner = UINT16_MAX });
	bool moved = (v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_SYM) && v->offset;

	return moved ? rest | arch_value_front((cptx_val){ .owner = 1 }) : rest;
}
/*
 * Matching again what differs from an earlier match in the numbers of registers and in constants only: operands of equal
 * keys.  arch_know notes a match, all but known->from; arch_recall gives it back, all but the operands; then
 * arch_match_again looks at what varies: false if a constant does not fit.  Where nothing does, nothing needs to be looked
 * at, for rules are about modifiers, kinds, types and constants.
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
 * Where operand number i of the match is an integer: all from 0 to which would do as well, whatever rules the form has; -1
 * if that is not known.
 */
int64_t arch_integers_up_to(const arch_match *m, unsigned i);
/* The length of an operand that is a vector: 1 for a single register. */
unsigned arch_operand_count(const arch_operand *o, const uint16_t *mods);

/*
 * The selector of a video operand, as cptx_select writes it into a value: .b0, .h10, .b7654.  The digits stand from the
 * lowest three bits of `offset` on, the first first.
 */
enum { SELECTED = 16, SELECTED_H = 8, SELECTED_DIGITS = 7 }; /* of `space` of a register */
/* `space` of a register with the offset 0 written behind it, [r+0]: in code for debuggers ptxas makes an addition of it. */
enum { PLUS_ZERO = 32 };
/* `space` of a constant of text: as ptxas, it is taken for no other kind or width of number than it is written as. */
enum { EXACT_CONSTANT = 1 };
/* What `space` of a VEC tells of its elements. */
enum {
	VEC_CONSTANTS = 1,
	VEC_SINKS = 2,
	VEC_FIRST_APART = 4, /* the first and the second are of types that do not go together, */
	VEC_MIXED = 8,       /* others are */
	VEC_VARIED = 16      /* they are of several types, in text; the vector is one of bits then */
};

/* The newest PTX version (times ten) whose instructions the table has; text of newer ones that exist is read too. */
enum { ARCH_NEWEST = 95 };
/* Whether a PTX version (times ten) exists. */
bool arch_is_version(unsigned version);
/* A target that text may name: those of cptx_target_find, and older ones that ptxas still reads. */
const cptx_target *arch_target_any(const char *name);
/* False, and the error for a name that no target has, with the nearest that one has. */
bool arch_no_target(const char *name, cptx_site at, cptx_error *err);
/* The number of a target, by its entry. */
static inline unsigned arch_target_index(const cptx_target *t) { return (unsigned)(t - arch_targets); }
/* What directives need, by the rows of directive.def. */
enum arch_directive {
#define DIRECTIVE(id, name, version, number, example) DIR_##id,
#include "arch/directive.def"
#undef DIRECTIVE
	ARCH_DIRECTIVES
};
typedef struct arch_need {
	const char *name;
	uint8_t version, number; /* lowest PTX version times ten, and number of a target */
} arch_need;
extern const arch_need arch_needs[];
/* "sm_80 and later" of an availability, or "sm_90a sm_100a". */
void arch_avail_targets(unsigned avail, buf *b);

#endif
