/* SPDX-License-Identifier: MIT */
/* What epilogue.c (the chain), epilogue_visit.c (its visitors) and epilogue_store.c share. */
#ifndef KIT_EPILOGUE_H
#define KIT_EPILOGUE_H

#include <cptx/epilogue.h>

#include "kit/mma.h"
#include "kit/value.h"

enum { EPI_ROWS = 64 /* most rows that a thread has elements of */, EPI_ELEMS = 1024, EPI_COLS = 512 };

/* Registers that a visitor keeps; all .f32 but `at`. */
typedef struct epi_state {
	cptx_val rows; /* one for each row */
	cptx_val cols; /* one for each column of the group at hand */
	cptx_val here; /* one for each of its elements in the row at hand */
	cptx_val at;   /* .u64, of matrices: where the thread's first column of each row is */
	cptx_val one;  /* of the whole tile; of matrices of a transposed chain .u64, bytes from row to row */
} epi_state;

/* Neighbours of a row, which are loaded and stored together. */
typedef struct epi_group {
	uint32_t n, col, row; /* elements; their first column from the thread's first on; number of the row */
	cptx_acc_elem elem[CPTX_EPILOGUE_VEC];
	cptx_val at_col[CPTX_EPILOGUE_VEC]; /* .u32, in D; of chains with a CALL, else NONE */
	cptx_val col_ok, inside;            /* predicates; NONE: always */
} epi_group;

/* A chain at work on a tile. */
typedef struct epi {
	cptx_kernel *k;
	const cptx_epilogue *e;
	const cptx_acc *acc;
	cptx_val m0, n0, rows, cols; /* the tile in D, and the size of D */
	uint32_t vec;
	cptx_val row[EPI_ROWS], row_ok[EPI_ROWS]; /* .u32 in D, and predicates; NONE: always */
	epi_state state[CPTX_EPILOGUE_VISITORS];
} epi;

/* False, with an error, for what is no accumulator in registers. */
bool epi_is_acc(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/* Row number r of a thread, from its first on. */
uint32_t epi_row_of(const cptx_acc *acc, uint32_t r);
/* The group that begins in that row and column from the thread's first on; false: the thread has none there. */
bool epi_group_at(const cptx_acc *acc, uint32_t vec, uint32_t row, uint32_t col, epi_group *g);
cptx_val epi_both(cptx_kernel *k, cptx_site at, cptx_val p, cptx_val q);
/* A predicate: v < end; NONE: always. */
cptx_val epi_is_below(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val end);
/* Finds the rows of the tile; with_ok: and which of them are inside. */
void epi_find_rows(epi *x, cptx_site at);
/* .u64 of each row at the thread's first column (but for what is constant of it), in elements of that many bytes. */
cptx_val epi_row_addresses(const epi *x, cptx_site at, cptx_val address, cptx_val pitch, uint32_t bytes);
/* The same of a transposed chain, whose D has the accumulator's rows as columns: where X[c][r] of the accumulator's column
 * c is, but for what is constant of it, and bytes from column to column. */
void epi_find_columns(const epi *x, cptx_site at, const cptx_visitor *v, epi_state *s);
/* A constant; else 0. */
static inline int64_t epi_constant(cptx_val v) { return v.kind == CPTX_VAL_INT ? v.i : 0; }
/* base + (v + more) * bytes, of 64 bits; v .u32 or a constant. */
cptx_val epi_address(cptx_kernel *k, cptx_site at, cptx_val base, cptx_val v, uint32_t more, uint32_t bytes);

/* ---- elements of memory; the GEMM generators use these too ---- */

/* n elements behind one another (F32, BF16, F16) as .f32 registers, 0 where `when` does not hold. */
cptx_val epi_load(cptx_kernel *k, cptx_site at, cptx_val address, enum cptx_type type, uint32_t n, cptx_val when);
/* Two results, the first in the lower half: of 16 bits in a .b32, of 8 in a .b16.  into NONE: a register of its own. */
cptx_val epi_round_pair(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val low, cptx_val high, cptx_val into);

/* ---- visitors ---- */

enum epi_need {
	EPI_VALUE = 1,
	EPI_ADDRESS = 2,
	EPI_PITCH = 4,
	EPI_ACC = 8,
	EPI_FN = 16,
	EPI_ACTIVATION = 32,
	EPI_VALUE_OR_ADDRESS = 64,
	EPI_ROWS_OR_ADDRESS = 128,
	EPI_ACTIVATES = 256, /* may be another's activation */
	EPI_AT_ROW = 512,    /* takes epi.row */
	EPI_INSIDE = 1024,   /* takes predicates */
	EPI_ONLY_F32 = 2048, /* .address is of .f32 */
	EPI_NOT_TRANSPOSED = 4096
};

typedef struct epi_at {
	cptx_site at;
	const cptx_visitor *v;
	epi_state *s;
} epi_at;

/* A kind of visitor.  Any function may be NULL. */
typedef struct epi_kind {
	const char *name;
	uint32_t needs;
	void (*begin)(epi *x, const epi_at *w);                                /* before the tile */
	void (*cols)(epi *x, const epi_at *w, const epi_group *g);             /* a group of columns */
	void (*row)(epi *x, const epi_at *w, const epi_group *g);              /* and a row of it */
	void (*elem)(epi *x, const epi_at *w, const epi_group *g, uint32_t i); /* an element */
	void (*end)(epi *x, const epi_at *w);                                  /* behind the tile */
} epi_kind;
/* NULL: there is none. */
const epi_kind *epi_kind_get(enum cptx_visit_kind kind);
/* The element at .address, in a register of .f32. */
cptx_val epi_load_one(cptx_kernel *k, cptx_site at, const cptx_visitor *v);
/* v = activation(v) */
void epi_activate(epi *x, cptx_site at, enum cptx_visit_kind kind, cptx_val v);

#endif
