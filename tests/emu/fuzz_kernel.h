/* SPDX-License-Identifier: MIT */
/*
 * A random kernel while it is made: pieces of text, each of which does something whole (a tensor copy and its wait, an
 * allocation of tensor memory with all that is done there, a printf), in any order.  Most operands are right, so that a
 * kernel goes on; those of a hostile kernel are wrong at times.
 */
#ifndef CPTX_FUZZ_KERNEL_H
#define CPTX_FUZZ_KERNEL_H

#include "../table/cases.h"

#include "matrix_forms.h"

enum {
	FUZZ_PIECES = 20,
	FUZZ_SHARED = 40960 /* bytes of in_shared */,
	FUZZ_GLOBAL = 131072 /* of in_global */,
	FUZZ_HANDED = 8
};

/*
 * What pieces may use: %k0 the thread in its CTA, %k1 in_shared, %k2 the CTA's rank in its cluster, %k3 bytes of dynamic
 * shared memory, %kp0 whether the thread is the first of the CTA, %kp1 whether its warp is; %kd0 in_global; the variables of
 * the pool of tests/table; handed[FUZZ_HANDED]: addresses from the host.  Each stands in a scope of its own.
 */
typedef struct fuzz_kernel fuzz_kernel;
typedef struct fuzz_piece {
	form_text decls /* of the module */, body;
	const char *kind;
	uint16_t form; /* of a line of the table */
} fuzz_piece;

struct fuzz_kernel {
	const char *target;
	unsigned cc; /* 100 */
	dice d;
	bool hostile;
	uint32_t grid[3], block[3], cluster, dyn_smem, threads; /* threads: of a CTA */
	fuzz_piece piece[FUZZ_PIECES];
	unsigned npiece;
	bool tmem, registers, maps; /* what a kernel may do once */
	bool refused[4096]; /* forms that this kernel cannot have: the emulator does not execute them as the pool spells them */
};

/* Chooses what a kernel is, for a seed. */
void fuzz_make(fuzz_kernel *k, uint64_t seed);
void fuzz_free(fuzz_kernel *k);
/* The module, to be freed; *first: its line where the pieces begin. */
char *fuzz_text(fuzz_kernel *k);
/* Takes out the piece that has the line; false: none has. */
bool fuzz_drop(fuzz_kernel *k, unsigned line);

/* ---- for pieces ---- */

/* Whether a hostile kernel has something wrong here. */
bool fuzz_wrong(fuzz_kernel *k);
/*
 * 64 random bits; and so many of them as chance has it.  No expression may draw twice where the order is the compiler's: a
 * seed means the same kernel in every build.
 */
uint64_t fuzz_wide(dice *d);
uint64_t fuzz_any(dice *d);
/* A new piece, for its text; NULL: there are enough. */
fuzz_piece *fuzz_piece_new(fuzz_kernel *k, const char *kind);
void fuzz_put(fuzz_piece *p, const char *format, ...) CPTX_PRINTF_(2, 3);
void fuzz_declare(fuzz_piece *p, const char *format, ...) CPTX_PRINTF_(2, 3);

/* ---- kinds of pieces: each adds one, if the kernel may have it ---- */

void fuzz_line(fuzz_kernel *k);   /* fuzz_lines.c: an instruction of the table */
void fuzz_matrix(fuzz_kernel *k); /* those of them that work on matrices in registers */
void fuzz_wgmma(fuzz_kernel *k);  /* fuzz_tensor.c */
void fuzz_tcgen05(fuzz_kernel *k);
void fuzz_tensor_copy(fuzz_kernel *k); /* fuzz_copy.c */
void fuzz_bulk_copy(fuzz_kernel *k);
void fuzz_cp_async(fuzz_kernel *k);
void fuzz_mbarrier(fuzz_kernel *k);
void fuzz_remote(fuzz_kernel *k);
void fuzz_cancel(fuzz_kernel *k);
void fuzz_printf(fuzz_kernel *k); /* fuzz_calls.c */
void fuzz_heap(fuzz_kernel *k);
void fuzz_handed(fuzz_kernel *k);
void fuzz_local(fuzz_kernel *k);
void fuzz_indirect(fuzz_kernel *k);
void fuzz_registers(fuzz_kernel *k);
void fuzz_atomics(fuzz_kernel *k);
void fuzz_barriers(fuzz_kernel *k);

#endif
