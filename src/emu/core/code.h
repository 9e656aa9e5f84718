/* SPDX-License-Identifier: MIT */
/* Decoded code: what a kernel becomes before it runs (decode.c). */
#ifndef CPTX_EMU_CORE_CODE_H
#define CPTX_EMU_CORE_CODE_H

#include "emu/memory/variables.h"

enum emu_step {
	STEP_NEXT,  /* done: go on behind it */
	STEP_JUMP,  /* done: the group has been given its new place, or is gone */
	STEP_WAIT,  /* the group is blocked, and executes the same instruction again once woken */
	STEP_YIELD, /* done, but there is no hurry: a poll that failed.  Others go first */
	STEP_TURN,  /* not done: must be executed in the cluster's turn */
	STEP_FAULT  /* the launch is over: a finding has been made */
};
typedef enum emu_step (*emu_fn)(emu_warp *w, const emu_op *op, uint32_t mask);

/* Modifiers as exec functions see them: by the name of the field in insn.def; 0 if not chosen, CPTX_ON for a fixed word. */
/* clang-format off */
#define EMU_MODS(X) \
	X(type) X(dtype) X(atype) X(btype) X(ctype) X(stype) X(rnd) X(ftz) X(sat) X(satfinite) X(relu) X(NaN) X(xorsign) X(abs) \
	X(oob) X(cmp) X(boolop) X(mode) X(space) X(sem) X(scope) X(vec) X(op) X(dir) X(to) X(shape) X(num) X(trans) X(shiftamt) \
	X(cc) X(aligned) X(scaled) X(level) X(proxy) X(dim) X(uni) X(acc)
/* clang-format on */
typedef struct emu_mods {
#define X(name) uint16_t name;
	EMU_MODS(X)
#undef X
} emu_mods;

enum emu_arg_kind {
	ARG_NONE,
	ARG_REG /* constants too */,
	ARG_VEC,
	ARG_SINK,
	ARG_ADDR,
	ARG_FUNC,
	ARG_LABEL,
	ARG_TARGETS,
	ARG_LIST
};

/* An operand.  Their order in emu_op.arg is that of the slots of the op: 0 what the call returns, n its n-th slot. */
typedef struct emu_arg {
	uint8_t kind;
	uint8_t bits;    /* width of the register: 1, 16 (8-bit ones too), 32, 64, 128 */
	uint8_t negated; /* a predicate read as its complement, an integer as its negative */
	uint8_t select;  /* of a video operand: cptx_val.space */
	uint8_t space;   /* ARG_ADDR: enum emu_space; */
	uint8_t base;    /* ARG_ADDR: `slot` is added */
	uint16_t count;  /* of slots; targets */
	uint32_t slot;  /* of the register, or the first of a vector; a branch target's place in the code; a function's number */
	int64_t offset; /* ARG_ADDR: added; with no base, the address; a constant's value; the digits of `select` */
	const uint32_t *slots; /* ARG_VEC, ARG_LIST: `count` of them, NO_SLOT for the sink; ARG_TARGETS: places in the code */
	const struct emu_passed *passed; /* ARG_LIST: `count` of them */
} emu_arg;
enum { NO_SLOT = 0 };

/* What a call passes or takes: a register, or a parameter in memory. */
typedef struct emu_passed {
	uint32_t slot;   /* NO_SLOT: in memory */
	uint32_t offset; /* in the frame's parameters */
	uint32_t size;
} emu_passed;

struct emu_op {
	emu_fn fn;
	uint32_t guard; /* predicate register; NO_SLOT: none */
	uint8_t negated, flags, narg;
	uint8_t converge;    /* all lanes of the warp that have not exited must be here: .aligned, .sync of all lanes */
	uint8_t flow, whole; /* undefined.c's */
	uint8_t watchers;    /* enum emu_watcher */
	uint16_t opcode;     /* enum cptx_op */
	uint16_t form;
	uint32_t index; /* of the program's operations: for counters and for telling findings apart */
	uint32_t flops; /* of a thread, in tensor cores */
	const ir_item *item;
	const emu_function *f;
	emu_mods m;
	uint16_t ndef, nuse;  /* registers for what definedness follows from: uses behind defs */
	const uint32_t *regs; /* then the widths of these, in bits */
	const void *extra;    /* what the decoder of the instruction made */
	emu_fn plain;         /* where there are watchers: the function behind fn, which asks them first */
	int64_t imm[3];       /* numbers that the decoder of the instruction made */
	emu_arg *arg;
};
/* Who looks at the registers of an instruction before it is executed (watch.c): in kernels that have some of these. */
enum emu_watcher { WATCH_WGMMA = 1, WATCH_TCGEN05 = 2 /* tcgen05.ld */, WATCH_FETCHED = 4 /* ldmatrix and ld.shared */ };
enum emu_op_flags {
	OP_PURE = 1, /* results are defined where all operands are; else as OP_QUIET */
	OP_SPLITS =
		2,        /* may block, or looks at the whole group: the lanes whose guard does not hold part from the group first */
	OP_QUIET = 8, /* changes registers only; of atomic operations what changes memory is noted where it does */
	OP_ENDS = 4,  /* leaves the place: a branch, call, exit */
	OP_EVENT = 16 /* others may notice when it is executed: an event where orders are explored */
};

typedef struct emu_fill { /* a register filled when a frame is made */
	uint32_t slot;
	uint8_t kind, bits; /* enum emu_fill_kind */
	uint64_t value;
} emu_fill;
enum emu_fill_kind {
	FILL_CONST,
	FILL_SHARED /* + base of the CTA */,
	FILL_DYNAMIC /* + dynamic shared memory of the CTA */,
	FILL_LOCAL /* + the frame's locals */,
	FILL_SREG
};

struct emu_function {
	const cptx_kernel *k;
	emu_image *image;
	emu_op *code;
	size_t ncode;
	uint32_t words; /* of a frame's registers */
	const emu_fill *fill;
	size_t nfill;
	emu_variables local;
	uint32_t local_bytes; /* per lane, with what lies between them */
	uint32_t
		param_bytes;  /* per lane, of a function: formals and those declared in its body.  Of a kernel: without formals */
	uint32_t formals; /* bytes of a kernel's formals: addresses in .param from there on are the frame's */
	const emu_passed *arg, *result;
	size_t narg, nresult;
	bool decoded;
	emu_function *next; /* of the image's, in the order in which they were reached */
};

/* All that a kernel can reach. */
struct emu_image {
	emu_program *program;
	const cptx_kernel *kernel;
	emu_function **function; /* what is reached, by rising number of the body in the module */
	size_t nfunction;
	emu_function *first, *last; /* of them, in the order in which they were reached */
	emu_function *entry;        /* the kernel's */
	emu_variables shared;
	uint32_t dyn_align, dyn_at; /* of dynamic shared memory, which begins there */
	uint32_t nop;
	const emu_op **ops; /* by index: nop of them */
	uint8_t watchers;   /* enum emu_watcher: of all its instructions */
	bool copies_arrive; /* cp.async.mbarrier.arrive is among them */
	size_t profile;     /* first entry of the machine's, */
	uint64_t profiled;  /* if made since the last clearing */
};

/* The function of an image with that number of the body in the module; NULL: none that can be called. */
const emu_function *emu_image_function(const emu_image *im, uint64_t number);

#endif
