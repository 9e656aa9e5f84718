/*
 * The IR: a module is a list of bodies (kernels and device functions) and variables; a body is a list of items.  An
 * instruction item holds the form that matching chose, the value of each of its modifier groups and its operands: all that
 * printing, checking and executing need.
 */
#ifndef CPTX_IR_H
#define CPTX_IR_H

#include "arch/arch.h"
#include "base/base.h"

enum ir_item_kind { ITEM_INSN, ITEM_LABEL, ITEM_PRAGMA, ITEM_COMMENT, ITEM_CALL, ITEM_DECLARE };

typedef struct ir_item {
	struct ir_item *prev, *next;
	uint16_t form; /* ITEM_INSN */
	uint8_t kind, nmod, noperand;
	uint8_t guard_negated;
	uint16_t file; /* index in the module's files, from 1; 0: no source */
	uint32_t line;
	uint32_t guard; /* predicate register + 1; 0: unconditional */
					/*
	                 * Behind it: noperand cptx_val, then nmod uint16_t.
	                 * ITEM_LABEL: operand 0.  ITEM_CALL: the function, the result or NONE, the arguments.  PRAGMA, COMMENT, DECLARE: operand
	                 * 0	             is the index of the body's text.
	                 */
} ir_item;

static inline cptx_val *ir_operands(const ir_item *it) { return (cptx_val *)(uintptr_t)(it + 1); }
static inline uint16_t *ir_mods(const ir_item *it) { return (uint16_t *)(void *)(ir_operands(it) + it->noperand); }

/* Register files as PTX declares them: what a register may hold follows from its class. */
enum ir_class { CLASS_PRED, CLASS_B8, CLASS_B16, CLASS_B32, CLASS_F32, CLASS_B64, CLASS_F64, CLASS_B128, CLASS_COUNT };
typedef struct ir_class_info {
	const char *type, *prefix;
} ir_class_info;
extern const ir_class_info ir_classes[CLASS_COUNT];
enum ir_class ir_class_of(unsigned type);

typedef struct ir_reg {
	uint32_t number; /* within its class */
	uint8_t type, cls;
} ir_reg;

/* A variable or a parameter in memory. */
typedef struct ir_sym {
	const char *name;
	const void *init; /* bytes, or NULL */
	uint32_t size, align;
	uint8_t space, type, exported;
} ir_sym;

typedef struct ir_label {
	uint8_t placed, used;
	cptx_site at;
} ir_label;

enum ir_block_kind { BLOCK_IF, BLOCK_ELSE, BLOCK_FOR, BLOCK_WHILE };
typedef struct ir_block {
	struct ir_block *outer;
	enum ir_block_kind kind;
	cptx_site at;
	cptx_val top, next, end; /* labels: head of the loop, its next turn, behind the block */
	cptx_val i, limit, step; /* BLOCK_FOR */
} ir_block;

struct cptx_kernel {
	cptx_module *m;
	cptx_kernel *prev, *next;
	const char *name;
	cptx_site at;
	uint16_t number, owner; /* from 1; what its values carry */
	bool is_func, closed, calls, called;
	bool reached; /* while freezing */
	cptx_val ret; /* its result register */
	cptx_kernel_opt opt;
	ir_item *first, *last;
	size_t ninsn;

	ir_reg *reg;
	size_t nreg, cap_reg;
	uint32_t class_count[CLASS_COUNT];
	cptx_val *vec; /* registers of all cptx_pack values, behind one another */
	size_t nvec, cap_vec;
	ir_label *label;
	size_t nlabel, cap_label;
	cptx_param_info *param; /* a kernel's; a function's are registers */
	cptx_val *param_val;
	size_t nparam, cap_param, cap_param_val;
	ir_sym **sym; /* its own variables, by id (below MODULE_SYM) */
	size_t nsym, cap_sym;
	const char **text; /* of pragmas and comments */
	size_t ntext, cap_text;
	uint32_t reached_smem; /* static_smem and that of the functions it calls; set by freezing */
	uint32_t static_smem, dyn_smem, param_bytes;
	int dyn_sym;         /* its extern array, or -1 */
	ir_block *block;     /* innermost open one */
	ir_block *closed_if; /* the if that an else may follow now */
	ir_item *closed_if_item;
};

enum { MODULE_SYM = 0x40000000 }; /* symbol ids from here on are the module's */

struct cptx_module {
	arena a;
	arch_memo memo;
	uint16_t tag; /* what its variables and functions carry: a hash, to tell modules apart */
	cptx_error err;
	bool frozen;
	cptx_kernel *first, *last;
	size_t nkernel;
	ir_sym **sym;
	size_t nsym, cap_sym;
	uint32_t const_bytes;
	const char **file; /* of the user's source, by number - 1 */
	size_t nfile, cap_file;
	const char *last_file; /* the user's pointer that file number `last_file_number` was made from */
	uint16_t last_file_number;
};

/* Sets the module's first error, with the kernel's name.  Returns false. */
bool ir_error(cptx_kernel *k, enum cptx_code code, cptx_site at, const char *format, ...) CPTX_PRINTF_(4, 5);
/* Whether anything may be appended: no error yet, not frozen, this kernel still open.  Reports the latter two. */
bool ir_open(cptx_kernel *k, cptx_site at);
/* Out of memory, as an error of the module.  Returns false. */
bool ir_no_memory(cptx_module *m, cptx_site at);

/* ---- name.c ---- */
#define IR_PREFIX "__cptx" /* of the names that we print; refused to users */
bool ir_name_ok(cptx_module *m, cptx_site at, const char *what, const char *name);
/* Free for a variable or parameter of a body: it must not hide what the body may mean. */
bool ir_local_name_taken(const cptx_kernel *k, const char *name);
bool ir_local_name_free(cptx_kernel *k, cptx_site at, const char *name);
/* Free for a kernel, function or variable of the module; `open`: a body that could use it, or NULL. */
bool ir_module_name_free(cptx_module *m, cptx_site at, const char *name, const cptx_kernel *open);

/* A new item at the end of the body, with room for its operands and modifiers; NULL on failure. */
ir_item *ir_append(cptx_kernel *k, cptx_site at, enum ir_item_kind kind, unsigned noperand, unsigned nmod);
void ir_unlink(cptx_kernel *k, ir_item *it);
/* "`head`: the forms with their reasons, one a line", as the module's error; with as many whole lines as the text can hold.
 */
void ir_form_error(cptx_kernel *k, cptx_site at, const char *head, buf *forms);
/* Appends the instruction that `m` describes, with a guard (or NONE). */
ir_item *ir_append_match(cptx_kernel *k, cptx_site at, const arch_match *m, cptx_val guard);
/* Whether a call (an op for which ir_is_call holds) passes and takes what the function or prototype has. */
static inline bool ir_is_call(unsigned op) { return op == CPTX_OP_CALL_FUNC || op == CPTX_OP_CALL_PTR; }
bool ir_call_fits(cptx_kernel *k, cptx_site at, const arch_match *m);
/* Appends by op, without designators: for control flow and parameters. */
cptx_val ir_insn(cptx_kernel *k, cptx_site at, enum cptx_op op, cptx_val into, cptx_val when, const cptx_val *slots,
                 size_t nslot, const char *fields, ...);
/*
 * Whether the value was made by this kernel (or belongs to all).  One made in another module may carry this kernel's number:
 * what it names must at least exist here.
 */
bool ir_names_ours(const cptx_kernel *k, const cptx_val *v); /* all but registers */
static inline bool ir_is_ours(const cptx_kernel *k, const cptx_val *v)
{
	if (v->owner && v->owner != k->owner && v->owner != k->m->tag)
		return false;
	return v->kind == CPTX_VAL_REG ? v->id < k->nreg && v->count <= k->nreg - v->id : !v->kind || ir_names_ours(k, v);
}
/* The same, with an error. */
bool ir_owned(cptx_kernel *k, cptx_site at, const cptx_val *v, const char *what);
bool ir_guard_ok(cptx_kernel *k, cptx_site at, cptx_val *guard, cptx_val when, cptx_val unless);
cptx_val ir_regs(cptx_kernel *k, cptx_site at, unsigned type, uint32_t n);
const ir_sym *ir_symbol(const cptx_kernel *k, uint32_t id);
void ir_close(cptx_kernel *k);

#endif
