/* SPDX-License-Identifier: MIT */
/*
 * The emulator: executes the IR of a module on the CPU.
 *
 * A program is a parsed module with its global variables in memory.  A kernel is decoded once per program (decode.c) into an
 * image: for each function it reaches, an array of emu_op.  A launch (grid.c) makes clusters of CTAs (cluster.c), each warp
 * of which runs groups of lanes that are at the same place (warp.c).  An emu_op carries the function that executes it for a
 * mask of lanes, all modifiers by name, and its operands as places in the registers of a frame.  Those functions stand in
 * emu/exec, and exec.def says which instruction each of them is for.
 *
 * Registers: each has one 32-bit word per lane (64-bit ones two, as uint64_t; .b128 four: 32 low halves, then 32 high ones;
 * predicates one word in all, a bit per lane); 8- and 16-bit values are kept with zeros above.  The word two in front of a
 * register is the mask of the lanes in which it is defined (undefined.h has what is so in part).  Constants and special
 * registers are registers filled beforehand.
 *
 * Time: one step is one instruction of one warp.  What is asynchronous is an emu_async in its cluster's queue, due at a step
 * that the seed chose; the queue is emptied early when nothing else can run.
 *
 * Threads: clusters run in parallel, in rounds, and change nothing common: what they store to global memory gets there
 * behind the round (view.h).  What orders them (atomics, strong and volatile accesses of global memory, fences wider than
 * the cluster) waits for the cluster's turn, one after another behind each round: so a run is the same whatever the number
 * of threads.  Whether anybody can go on at all is looked at there too (stall.c).
 */
#ifndef CPTX_EMU_CORE_EMU_H
#define CPTX_EMU_CORE_EMU_H

#include "ir/ir.h"
#include <cptx/emu.h>

#include <pthread.h>

enum { WARP = 32, EMU_MAX_WARPS = 32, EMU_MAX_CTAS = 16, EMU_ALL = -1 };
#define ALL_LANES UINT32_C(0xffffffff)
#define EACH_LANE(l, mask)                                                                                                  \
	for (uint32_t l##_left = (mask), l; l##_left && (l = (uint32_t)__builtin_ctz(l##_left), true); l##_left &= l##_left - 1)

typedef struct emu_program emu_program;
typedef struct emu_image emu_image;
typedef struct emu_function emu_function;
typedef struct emu_grid emu_grid;
typedef struct emu_cluster emu_cluster;
typedef struct emu_cta emu_cta;
typedef struct emu_warp emu_warp;
typedef struct emu_op emu_op;

#include "emu/memory/alloc.h"
#include "emu/memory/variables.h"

/* ---- decoded code (decode.c) ---- */

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
	X(cc) X(aligned) X(scaled) X(level) X(proxy) X(dim) X(uni)
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
	int64_t offset; /* ARG_ADDR: added; with no base, the address */
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
enum emu_watcher { WATCH_WGMMA = 1, WATCH_TCGEN05 = 2 /* tcgen05.ld */ };
enum emu_op_flags {
	OP_PURE = 1, /* results are defined where all operands are; else as OP_QUIET */
	OP_SPLITS =
		2,        /* may block, or looks at the whole group: the lanes whose guard does not hold part from the group first */
	OP_QUIET = 8, /* changes registers only; of atomic operations what changes memory is noted where it does */
	OP_ENDS = 4   /* leaves the place: a branch, call, exit */
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
};

/* All that a kernel can reach. */
struct emu_image {
	emu_program *program;
	const cptx_kernel *kernel;
	emu_function **function; /* by number of the body in the module; NULL: not reached */
	size_t nfunction;
	emu_variables shared;
	uint32_t dyn_align, dyn_at; /* of dynamic shared memory, which begins there */
	uint32_t nop;
	const emu_op **ops;  /* by index: nop of them */
	uint32_t *shared_at; /* offsets of module variables in .shared, by id; IR_NONE: not placed */
	uint8_t watchers;    /* enum emu_watcher: of all its instructions */
	size_t profile;      /* first entry of the machine's, */
	uint64_t profiled;   /* if made since the last clearing */
};

/* ---- memory (memory.c) ---- */

enum emu_space {
	SPACE_GENERIC,
	SPACE_GLOBAL,
	SPACE_CONST,
	SPACE_SHARED /* of the CTA */,
	SPACE_CLUSTER,
	SPACE_LOCAL,
	SPACE_PARAM,
	SPACE_COUNT
};

/* Generic addresses of the windows.  Shared addresses of 32 bits: rank of the CTA << 24 | offset, from SHARED_FIRST on. */
#define WINDOW_SHARED (UINT64_C(0x7f00) << 32)
#define WINDOW_LOCAL (UINT64_C(0x7f01) << 32)
#define WINDOW_PARAM (UINT64_C(0x7f02) << 32)
#define GLOBAL_FIRST (UINT64_C(0x7e00) << 32)
#define FUNC_FIRST (UINT64_C(0x7f03) << 32) /* addresses of functions: 16 bytes apart */
/* The address of a function, by what declares or defines it. */
static inline uint64_t emu_function_at(const cptx_kernel *k)
{
	return FUNC_FIRST + (k->def ? k->def : k)->number * UINT64_C(16);
}
enum { EMU_LOCAL_LIMIT = 512 * 1024 /* bytes of local memory of a thread */ };
enum { SHARED_FIRST = 1024, SHARED_RANK = 24, SHARED_MASK = 0xffffff };

enum emu_access {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_ATOMIC = 4, /* strong too */
	ACCESS_STRONG = 8,
	ACCESS_ASYNC = 16, /* proxy */
	ACCESS_ACQUIRE = 32,
	ACCESS_RELEASE = 64,
	ACCESS_NARROW = 128,     /* of scope .cta or .cluster */
	ACCESS_SILENT = 256,     /* a write of what is there already */
	ACCESS_VALUE = 512,      /* the place has got what is written by now */
	ACCESS_TENSORMAP = 1024, /* by the proxy of tensor maps */
	ACCESS_ANSWER = 2048     /* by the async proxy; threads that read what was there must have fenced that */
};

/* What an address leads to. */
typedef struct emu_place {
	unsigned char *p;
	uint8_t space;         /* never generic */
	emu_cta *cta;          /* SPACE_SHARED, SPACE_CLUSTER: whose */
	emu_alloc *alloc;      /* global and constant memory */
	uint64_t offset;       /* in the space, or the allocation */
	uint8_t *defined;      /* local memory, parameters: a bit per byte of the space; NULL: all are defined */
	struct emu_page *view; /* the cluster's own page that p lies in; NULL: none */
} emu_place;

/* Where `size` bytes at the address lie; a finding and false if they do not, or are not aligned to `align`. */
bool emu_resolve(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size, uint32_t align,
                 emu_place *place);
/* The same, but the place may be in a CTA that has ended: for mbarriers, which tell that themselves. */
bool emu_resolve_any(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, uint32_t size,
                     uint32_t align, emu_place *place);
bool emu_has_ended(const emu_cta *cta); /* all its threads have */
/* As emu_resolve_any, without a finding or a thread: for async operations.  False if the bytes are not there. */
bool emu_locate(emu_cluster *c, emu_cta *cta, unsigned space, uint64_t addr, uint32_t size, emu_place *place);
/* Resolve, notice who touches it, and read or write. */
bool emu_read(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, void *to, uint32_t size,
              unsigned access);
bool emu_write(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, const void *from, uint32_t size,
               unsigned access);
/* The address of an ARG_ADDR in a lane; its space as an access to it says. */
static inline uint64_t emu_address(const emu_warp *w, const emu_arg *a, unsigned lane);
unsigned emu_order_of(const emu_op *op); /* enum emu_access: what .sem and .scope say; 0: weak */

void emu_set_defined(const emu_place *place, uint32_t size, bool defined);
bool emu_all_undefined(const emu_place *place, uint32_t size);
bool emu_all_defined(const emu_place *place, uint32_t size);
void emu_copy_defined(const emu_place *to, const emu_place *from, uint32_t size); /* which bytes are */
void emu_copy_bytes(const emu_place *to, const emu_place *from, uint32_t size);   /* the same, with their values */

#include "emu/race/race.h"
#include "emu/memory/view.h"

/* ---- running ---- */

enum emu_group_state { GROUP_RUN, GROUP_CONVERGE /* waits for other lanes of the warp */, GROUP_WAIT /* for an event */ };

/* What a group waits for, for the report of a deadlock; written by whoever blocks it. */
typedef struct emu_waiting {
	const emu_op *op;
	const char *what; /* "barrier", "mbarrier", ... */
	uint32_t where;   /* its number or address */
	uint32_t phase;
} emu_waiting;

typedef struct emu_frame emu_frame;
typedef struct emu_hole emu_hole;
struct emu_frame {
	emu_warp *w;
	emu_frame *caller;
	const emu_function *f;
	const emu_op *call; /* of the caller */
	uint32_t back;      /* place in the caller's code */
	uint32_t depth, refs;
	uint32_t *r;          /* f->words; the pointer in front of it leads here */
	unsigned char *param; /* 32 * f->param_bytes */
	uint8_t *param_defined;
	emu_hole **hole; /* of registers that are undefined in part: undefined.h */
	uint32_t nhole, cap_hole;
	uint32_t local[WARP]; /* where its locals begin in each lane's local memory */
};

typedef struct emu_group {
	uint32_t mask, pc;
	uint32_t need; /* GROUP_CONVERGE: these lanes, as far as they live */
	emu_frame *frame;
	uint8_t state;
	uint8_t polled; /* its last poll failed, at this `progress` of the cluster */
	uint64_t progress;
	uint64_t order;  /* who yields goes behind the others */
	uint8_t arrived; /* at the barrier that it waits at, in this generation of it */
	uint32_t generation;
	emu_waiting waiting;
} emu_group;

typedef struct bulk_first { /* sum: a hash of what is copied where; late: its number in race.h */
	const emu_op *op;
	uint64_t step, sum, late;
} bulk_first;

/* Bulk copies from shared memory (bulk.c), by lane: groups are counted from 1 on. */
typedef struct emu_bulk {
	uint32_t committed[WARP], last[WARP] /* group with a copy */, waited[WARP] /* for reads at least */;
	emu_clock read, done;
	bulk_first first; /* the last store that was the first of its instruction */
} emu_bulk;

/* What stall.c has seen of a warp while nothing changed. */
typedef struct emu_rounds {
	uint64_t since;             /* emu_warp.chosen, when the last change was */
	uint64_t state[16], at[16]; /* states, and emu_warp.chosen then */
	unsigned next;
	bool loops;
} emu_rounds;

struct emu_warp {
	uint32_t *r;  /* registers of the group that runs */
	emu_group *g; /* the same */
	emu_cta *cta;
	emu_cluster *cluster;
	emu_grid *grid;
	uint32_t number; /* in the CTA */
	uint32_t agent;  /* in the cluster */
	uint32_t lanes, exited;
	emu_group group[WARP];
	unsigned ngroup;
	uint64_t order;  /* of groups */
	uint64_t chosen; /* counts choices of groups */
	emu_rounds seen;
	uint32_t streak;                               /* choices since the last change of it */
	uint32_t carry;                                /* the flag of add.cc; of sub.cc: its complement is borrowed */
	uint32_t at_cluster, cluster_generation[WARP]; /* lanes that have arrived at barrier.cluster, and when */
	uint32_t sp[WARP];                             /* of local memory */
	unsigned char *local;                          /* 32 * local_cap, lane by lane */
	uint8_t *local_defined;                        /* a bit for each of its bytes */
	uint32_t local_cap;                            /* a multiple of 8 */
	emu_knowledge know;
	uint64_t at[WARP]; /* what addresses that lanes gave last lead to: an address, or CTA and offset of shared memory */
	uint8_t at_space[WARP];
	emu_alloc *last; /* of global memory, used most recently */
	/* Of emu/exec, zero at first: */
	emu_bulk bulk;
	struct emu_wgmma *wgmma;
	struct emu_tcgen05 *tcgen05;
	struct emu_async_state *async; /* open groups of cp.async, bulk copies, wgmma ... */
	uint32_t nreg;                 /* that setmaxnreg has left a thread; 0: those of the launch */
};

/* A barrier of a CTA (bar, barrier). */
typedef struct emu_barrier {
	uint32_t expected, arrived; /* threads; expected 0: nobody has come */
	uint32_t generation;
	uint32_t count, voted;   /* of bar.red: so far */
	uint32_t popc, all, any; /* of the last generation */
	emu_clock clock, passed;
	emu_clock over, all_over; /* of barrier.cluster: what those who came have done and know; of the last generation */
} emu_barrier;

struct emu_cta {
	emu_cluster *cluster;
	uint32_t rank;
	uint32_t id[3];
	unsigned char *shared;
	uint32_t shared_bytes;   /* without what comes before SHARED_FIRST, with what lies between variables */
	uint8_t *shared_defined; /* a bit per byte */
	struct emu_shadow *shadow;
	emu_warp *warp;
	uint32_t nwarp, nthread;
	emu_barrier barrier[16];
	struct emu_mbarrier *mbarriers; /* mbarrier.c */
	struct emu_tmem *tmem;          /* tcgen05 */
	uint32_t free_registers;        /* that setmaxnreg.dec has given up */
};

typedef struct emu_async emu_async;
struct emu_async {
	emu_async *next;
	uint64_t due;
	bool turn;     /* changes what orders clusters: only in the cluster's turn */
	uint32_t pipe; /* operations of the same pipe are done in the order they were started; 0: in any order */
	/* Does it, or a part of it.  True: done, and freed by the queue. */
	bool (*run)(emu_cluster *c, emu_async *a);
	void (*drop)(emu_async *a); /* frees what it has beside itself; may be NULL */
	emu_warp *w;                /* who started it */
	unsigned lane;
	const emu_op *op;
	uint64_t begun, bytes, flops; /* trace.c's */
};

enum emu_stop { STOP_QUANTUM, STOP_TURN, STOP_DONE, STOP_STUCK, STOP_FAULT };

struct emu_cluster {
	emu_grid *grid;
	uint64_t number;
	uint32_t id[3];
	emu_cta *cta;
	uint32_t ncta, nwarp /* of all */, live /* warps */;
	uint64_t step, idle; /* time; how much of it was spent with nothing to do: the rest are instructions of warps, */
	uint64_t spent;      /* and these: long ones count as several */
	uint64_t progress;   /* counts what may wake a waiter */
	uint64_t idle_seen;
	uint64_t changes,
		changes_seen; /* counts changes of memory, barriers, queues; how many there were behind the last round */
	uint64_t random;  /* state of its own generator */
	emu_async *queue;
	bool turn;              /* may do what orders clusters */
	emu_warp *wants;        /* STOP_TURN: who, */
	emu_async *wants_async; /* or this first */
	emu_barrier barrier;    /* barrier.cluster */
	uint64_t *hits;         /* thread-instructions, by operation */
	struct emu_traffic *traffic;
	cptx_emu_counters counters;
	struct emu_races *races; /* NULL: none are looked for */
	emu_view view;
	struct emu_tensormaps *maps; /* tensormap.c: those that threads have changed; may be NULL */
	struct emu_found *found;     /* since the last round */
	size_t nfound[2];            /* by rank */
	bool failed, no_memory;
	bool fold;               /* its log of accesses is full, or its view: the round ends early */
	struct emu_trace *trace; /* NULL: nobody looks */
	buf printed;             /* by vprintf since the last round */
	bool print_lost;         /* more than the launch may print */
	bool none_left;          /* clusterlaunchcontrol: it has seen that no cluster can be cancelled any more */
};

struct emu_grid {
	emu_machine *machine;
	emu_image *image;
	emu_function *entry;
	uint32_t grid[3], block[3], cluster[3], ctas_per_cluster;
	bool explicit_cluster, cooperative;
	uint64_t workspace; /* of a cooperative launch: its address, in %envreg1 (upper half) and %envreg2 */
	uint32_t dyn_smem, shared_bytes /* of a CTA, as there */;
	const unsigned char *params;
	uint32_t param_bytes;
	uint64_t nclusters, next; /* those not started yet */
	uint64_t begin;           /* of clusters that start now, in the timeline */
	uint64_t steps, limit;
	uint64_t *hits;
	struct emu_traffic *traffic;
	struct emu_tensormaps *maps; /* the same, of all clusters */
	struct emu_wide *wide;       /* what clusters know of one another's accesses */
	uint64_t printed;            /* bytes that the user has got of vprintf */
	bool print_lost;             /* there were more */
	bool failed;                 /* ends as soon as possible */
	size_t wrong; /* the first error: number of the machine's finding + 1, SIZE_MAX if it was not kept; 0: none */
	cptx_error *err;
};

/* A finding that the machine keeps. */
typedef struct emu_kept {
	cptx_emu_finding f;            /* the count goes on */
	const cptx_emu_finding *given; /* as callers last got it */
	const emu_op *op;              /* that was executed; NULL: a call of the host program was wrong */
} emu_kept;

struct emu_machine {
	const cptx_target *target;
	uint32_t sms; /* that %nsmid tells */
	cptx_emu_opt opt;
	emu_alloc **alloc; /* by address */
	size_t nalloc, cap_alloc;
	uint64_t next_at, bytes, heap /* bytes that malloc in kernels has given */;
	emu_freed *freed; /* the latest, in a ring */
	uint64_t nfreed;  /* ever */
	size_t nclosed;   /* of alloc: freed, but still there */
	bool again;       /* addresses that were freed are given again */
	bool running;     /* a launch is under way, in the thread that holds the device's lock */
	emu_kept *finding;
	size_t nfinding, cap_finding, nwarning;
	arena text; /* of findings */
	uint64_t launches;
	bool broken; /* a launch faulted: as on a GPU, nothing more can be launched */
	cptx_emu_counters counters;
	cptx_emu_profile *profile;
	size_t nprofile;
	uint64_t profile_since; /* counts clearings, from 1 on */
};

struct emu_program {
	emu_machine *machine;
	cptx_module *module;
	cptx_ptx *ptx; /* of a built module: where its lines come from */
	arena a;
	emu_image **image; /* of each body, by number - 1; NULL: not yet */
	uint64_t *sym_at;  /* addresses of global and constant variables, by id */
	uint64_t **own_at; /* of those declared in bodies, by number of the body and id */
};

/* ---- machine.c, program.c, grid.c: what src/runtime uses ---- */
emu_machine *emu_machine_new(const cptx_target *target, const cptx_emu_opt *opt);
void emu_machine_free(emu_machine *m);
/* Takes the module and the text over, also where it fails. */
emu_program *emu_program_new(emu_machine *m, cptx_module *parsed, cptx_ptx *ptx, cptx_site at, cptx_error *err);
void emu_program_free(emu_program *p);
uint64_t emu_program_variable(const emu_program *p, const char *name, uint64_t *size); /* its address, or 0 */
/* Decoded; NULL with an error. */
emu_image *emu_program_image(emu_program *p, const char *kernel, cptx_site at, cptx_error *err);
typedef struct emu_shape {
	uint32_t grid[3], block[3], cluster[3], dyn_smem;
	bool cooperative; /* all CTAs are there at once, and may wait for one another */
} emu_shape;
bool emu_run(emu_image *image, const emu_shape *shape, const void *params, uint32_t size, cptx_site at, cptx_error *err);

/* ---- decode.c: for the decoders of emu/exec ---- */
typedef struct emu_decoder emu_decoder;
/* Chooses op->fn and what else the instruction needs; false with an error through emu_refuse. */
typedef bool (*emu_decode_fn)(emu_decoder *d, emu_op *op);
bool emu_refuse(emu_decoder *d, const emu_op *op, const char *format, ...) CPTX_PRINTF_(3, 4);
void *emu_decoder_alloc(emu_decoder *d, size_t size); /* zeroed, lives as long as the program; NULL when memory is short */
#define DECODER_ARRAY(d, type, n) ((type *)emu_decoder_alloc((d), array_size((n), sizeof(type))))
#define DECODER_NEW(d, type) DECODER_ARRAY(d, type, 1)
/* Whether a fixed word or value stands in the spelling: for what emu_mods has no name for. */
unsigned emu_modifier(const emu_op *op, const char *field);
const emu_arg *emu_named(const emu_op *op, const char *slot); /* the operand of that name; kind ARG_NONE if it is left out */
const emu_function *emu_decoder_function(emu_decoder *d,
                                         uint32_t number); /* that a call names: its definition, if there is one */
emu_fn emu_builtin(const char *name);                      /* of a function that the system defines, vprintf; NULL */
unsigned emu_space_of(unsigned mod);                       /* enum emu_space of a modifier's value; 0: generic */
emu_decode_fn emu_decode_of(unsigned opcode);              /* NULL: not emulated, */
const char *emu_left_out(unsigned opcode);                 /* and why; NULL: it is */
void emu_modifiers(emu_op *op);                            /* those that its functions read */
const char *emu_unread(const ir_item *it);    /* a modifier that nobody reads though it has an effect; NULL: none */
const char *emu_no_effect(const char *field); /* the reason; NULL: it has one */
enum { EMU_WRITTEN_FOR = 93 };                /* the newest PTX version of which anything is emulated */
bool emu_is_newer(const ir_item *it);         /* it needs a PTX version that these functions do not know */

/* ---- warp.c ---- */
void emu_warp_start(emu_warp *w);
/* Runs up to `n` instructions. */
enum emu_stop emu_warp_run(emu_warp *w, uint32_t n);
bool emu_warp_can_run(const emu_warp *w);
emu_group *emu_group_split(emu_warp *w,
                           uint32_t mask); /* a new group of these lanes of the running one, at the same place */
/* The running group executes the instruction again once these lanes have joined it, or exited. */
enum emu_step emu_group_converge(emu_warp *w, const emu_op *op, uint32_t need);
void emu_group_end(emu_warp *w); /* all lanes of the running group exit */
enum emu_step emu_group_block(emu_warp *w, const emu_op *op, const char *what, uint32_t where, uint32_t phase);
void emu_wake(emu_cluster *c); /* something happened that blocked groups may wait for: all try again */
emu_frame *emu_frame_new(emu_warp *w, const emu_function *f, emu_frame *caller, uint32_t mask);
void emu_frame_drop(emu_warp *w, emu_frame *f);
/* Makes room for `size` bytes at `at` in each lane's local memory; false: too much of it, or out of memory. */
bool emu_reserve_local(emu_warp *w, uint64_t at, uint64_t size);
/* Nobody has written there yet. */
void emu_fresh_local(emu_warp *w, unsigned lane, uint64_t at, uint64_t size);
/* The call whose part of local memory the address lies in. */
static inline const emu_frame *emu_frame_of(const emu_warp *w, unsigned lane, uint64_t addr)
{
	const emu_frame *f = w->g->frame;

	while (addr < f->local[lane] && f->caller)
		f = f->caller;
	return f;
}
static inline uint32_t emu_live(const emu_warp *w) { return w->lanes & ~w->exited; }

/* ---- cluster.c ---- */
/* False when memory is short; the cluster must be freed all the same. */
bool emu_cluster_init(emu_cluster *c, emu_grid *g, uint64_t number);
void emu_cluster_free(emu_cluster *c);
enum emu_stop emu_cluster_run(emu_cluster *c, uint32_t n);
void emu_block_id(const emu_grid *g, uint64_t cluster, uint32_t rank, uint32_t id[3]);
void emu_cluster_turn(emu_cluster *c); /* what it stopped for with STOP_TURN */
uint32_t emu_random(emu_cluster *c, uint32_t below);
/* Puts an async operation into the queue; it is freed when done.  `a` was malloced; NULL (memory) ends the run. */
bool emu_async_start(emu_cluster *c, emu_async *a);
/* Executes one part of one pending operation that may happen now; false: there is none. */
bool emu_async_step(emu_cluster *c, bool force);

/* ---- barrier.c, mbarrier.c, tcgen05.c, async.c ---- */
void emu_barriers_free(emu_barrier *b, size_t n);
void emu_barrier_exit(emu_warp *w); /* all its lanes have exited: barriers may be complete now */
void emu_describe_wait(buf *b, const emu_warp *w, const emu_waiting *x); /* for the report of a deadlock */
void emu_mbarriers_free(emu_cta *cta);
void emu_tmem_free(emu_cta *cta);
void emu_tmem_end(emu_cluster *c); /* the cluster is at its end: what is still allocated */
void emu_tcgen05_free(emu_warp *w);
/* Whether it touches registers that are being loaded; STEP_NEXT: it may be executed. */
enum emu_step emu_tcgen05_look(emu_warp *w, const emu_op *op);
void emu_watch(emu_image *im); /* watch.c: from now on they look */
void emu_async_state_free(emu_warp *w);
bool emu_print_out(emu_cluster *c); /* system.c: gives the user what was printed; false: memory is short */
void emu_bulk_exit(emu_warp *w, const emu_op *op, uint32_t mask); /* bulk.c: these lanes end */
void emu_bulk_free(emu_warp *w);
void emu_tensormaps_free(struct emu_tensormaps *t);

/* ---- finding.c ---- */
/*
 * Notes what is wrong, once for each instruction and code: kernel, line, instruction, block and thread, then the text.
 * lane EMU_ALL: the whole warp.  Returns STEP_FAULT: those codes that end a run also end this one.
 */
enum emu_step emu_find(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, ...)
	CPTX_PRINTF_(5, 6);
/* Notes what is wrong with a call of the host program. */
void emu_find_host(emu_machine *m, enum cptx_finding_code code, const char *what);
/* Finding i as it is now, which nobody changes; NULL behind the last. */
const cptx_emu_finding *emu_finding_now(emu_machine *m, size_t i);
void emu_find_deadlock(emu_cluster *c);
void emu_find_limit(emu_cluster *c);
/* A finding if the register is undefined in one of the lanes: "the address", "the predicate" ... */
bool emu_need(emu_warp *w, const emu_op *op, uint32_t slot, uint32_t mask, const char *what);

/* ---- the view of global memory (view.h) ---- */
/* A place in global memory as the cluster sees it now. */
static inline void emu_see(const emu_cluster *c, emu_place *p)
{
	uint64_t at;

	if (!c->view.n || p->space != SPACE_GLOBAL)
		return;
	at = p->alloc->at + p->offset;
	p->view = emu_view_find(&c->view, at / VIEW_PAGE);
	if (p->view)
		p->p = p->view->bytes + at % VIEW_PAGE;
}
/* `size` bytes of the place, which lie in one page, may be written. */
static inline void emu_writable(emu_cluster *c, emu_place *p, uint32_t size)
{
	if (p->space == SPACE_GLOBAL && !c->turn && c->grid->nclusters > 1)
		emu_view_own(c, p, size);
}
/* The place behind it, as the cluster sees it. */
emu_place emu_part_of(const emu_cluster *c, const emu_place *p, uint32_t from);

/* ---- access to registers ---- */
static inline uint32_t *emu_r32(const emu_warp *w, uint32_t slot) { return w->r + slot; }
static inline uint64_t *emu_r64(const emu_warp *w, uint32_t slot) { return (uint64_t *)(void *)(w->r + slot); }
static inline uint32_t *emu_defined(const emu_warp *w, uint32_t slot) { return w->r + slot - 2; }
static inline uint32_t *emu_reg32(const emu_warp *w, const emu_op *op, unsigned arg)
{
	return emu_r32(w, op->arg[arg].slot);
}
static inline uint64_t *emu_reg64(const emu_warp *w, const emu_op *op, unsigned arg)
{
	return emu_r64(w, op->arg[arg].slot);
}
/* The register is undefined as a whole in these lanes. */
void emu_forget_parts(const uint32_t *r, uint32_t slot, uint32_t lanes);
/* A predicate, complemented if it is negated. */
static inline uint32_t emu_pred(const emu_warp *w, const emu_arg *a) { return a->negated ? ~w->r[a->slot] : w->r[a->slot]; }
static inline void emu_set_pred(const emu_warp *w, uint32_t slot, uint32_t mask, uint32_t value)
{
	if (slot)
		w->r[slot] = (w->r[slot] & ~mask) | (value & mask);
}
static inline void emu_define(const emu_warp *w, uint32_t slot, uint32_t mask, uint32_t defined)
{
	if (!slot)
		return;
	*emu_defined(w, slot) = (*emu_defined(w, slot) & ~mask) | (defined & mask);
	if (mask & ~defined && w->r[slot - 1])
		emu_forget_parts(w->r, slot, mask & ~defined);
}
/* A lane of a register of up to 64 bits, with zeros above. */
static inline uint64_t emu_get(const emu_warp *w, const emu_arg *a, unsigned lane)
{
	return a->bits == 64  ? emu_r64(w, a->slot)[lane]
	       : a->bits == 1 ? (emu_pred(w, a) >> lane & 1)
	                      : emu_r32(w, a->slot)[lane];
}
static inline void emu_put(const emu_warp *w, uint32_t slot, unsigned bits, unsigned lane, uint64_t v)
{
	if (bits == 64)
		emu_r64(w, slot)[lane] = v;
	else
		emu_r32(w, slot)[lane] = bits == 16 ? (uint16_t)v : (uint32_t)v;
}
/* 1, 2, 4 or 8 bytes of memory as a number. */
static inline uint64_t emu_bytes(const unsigned char *p, uint32_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1: return *p;
	case 2: memcpy(&v2, p, 2); return v2;
	case 4: memcpy(&v4, p, 4); return v4;
	default: memcpy(&v8, p, 8); return v8;
	}
}
static inline uint64_t emu_address(const emu_warp *w, const emu_arg *a, unsigned lane)
{
	if (!a->base)
		return (uint64_t)a->offset;
	uint64_t base = a->bits == 64 ? emu_r64(w, a->slot)[lane] : emu_r32(w, a->slot)[lane];
	return a->bits == 64 ? base + (uint64_t)a->offset : (uint32_t)(base + (uint64_t)a->offset);
}

#endif
