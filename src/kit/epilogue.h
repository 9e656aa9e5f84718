/* SPDX-License-Identifier: MIT */
/* What epilogue.c (the chain), epilogue_visit.c (its visitors), epilogue_store.c, epilogue_ring.c and epilogue_tma.c (the
 * stores) share. */
#ifndef KIT_EPILOGUE_H
#define KIT_EPILOGUE_H

#include <cptx/epilogue.h>

#include "kit/made.h"
#include "kit/mma.h"
#include "kit/store.h"
#include "kit/value.h"

enum { EPI_ROWS = 64 /* most rows that a thread has elements of */, EPI_ELEMS = 8192, EPI_COLS = 512, EPI_STAGES = 16 };

/* Where a matrix in global memory has the thread's elements; .u64. */
typedef struct epi_matrix {
	cptx_val rows;   /* addresses of the thread's first column, one for each row; transposed: of the first of both */
	cptx_val pitch;  /* elements from row to row of D, .u32 or a constant */
	cptx_val column; /* transposed: the address of the first row in column `col`; columns come in ascending order */
	uint32_t col;
	uint32_t bytes; /* of an element */
} epi_matrix;

/* Registers that a visitor keeps, all .f32 but `at`. */
typedef struct epi_state {
	cptx_val rows; /* one for each row: ROW_SUM of the whole tile, else of the rows at hand */
	cptx_val cols; /* one for each column of the group at hand */
	cptx_val here; /* one for each of its elements in the row at hand */
	cptx_val at;   /* .u64, of vectors by column: where that of the thread's first column is */
	cptx_val one;  /* of the whole tile */
	epi_matrix matrix;
} epi_state;

/* Neighbours of a row, which are loaded and stored together. */
typedef struct epi_group {
	uint32_t n, col, row; /* elements; their first column from the thread's first on; number of the row */
	cptx_acc_elem elem[CPTX_EPILOGUE_VEC];
	cptx_val at_col[CPTX_EPILOGUE_VEC]; /* .u32, in D; of chains with a CALL, else NONE */
	cptx_val col_ok, inside;            /* predicates; NONE: always */
} epi_group;

/* Visitors first to end - 1 at work on a tile.  Rows and columns are those of the accumulator: with opt.transposed the
 * columns and rows of D. */
typedef struct epi {
	cptx_kernel *k;
	const cptx_epilogue *e;
	const cptx_acc *acc;
	cptx_val m0, n0, rows, cols; /* the tile in D, and the size of D */
	uint32_t part;               /* of an accumulator in tensor memory, the first column of what is in registers */
	cptx_val row0, col;          /* .u32, of the thread's first element in D; where a visitor needs it */
	uint32_t vec;
	uint32_t first, end, needs;
	uint32_t row_first, row_end;              /* numbers of the rows at hand */
	cptx_val row[EPI_ROWS], row_ok[EPI_ROWS]; /* .u32 in D, and predicates; NONE: always */
	epi_state state[CPTX_EPILOGUE_VISITORS];
} epi;

/* False, with an error, for what is no accumulator in registers. */
bool epi_is_acc(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/* Row number r of a thread, from its first on. */
uint32_t epi_row_of(const cptx_acc *acc, uint32_t r);
/* The group that begins in that row and column from the thread's first on; false: the thread has none there. */
bool epi_group_at(const cptx_acc *acc, uint32_t vec, uint32_t row, uint32_t col, epi_group *g);
/* Makes integer sums .f32, in registers of their own, but with .integers. */
void epi_convert(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, cptx_acc *acc);
cptx_val epi_both(cptx_kernel *k, cptx_site at, cptx_val p, cptx_val q);
/* v in a .u32 register. */
cptx_val epi_in_register(cptx_kernel *k, cptx_site at, cptx_val v);
/* A predicate: v < end; NONE: always. */
cptx_val epi_is_below(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val end);
/* Begins with visitors that have no GATE_PAIRS among them; needs: of the caller. */
epi epi_begin(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, uint32_t first, uint32_t end, uint32_t needs);
/* Behind the last element. */
void epi_end(epi *x);
/* The rows at hand are numbers first to end - 1; before elements of these. */
void epi_rows(epi *x, cptx_site at, uint32_t first, uint32_t end);
/* Runs the visitors on n columns from the thread's first on, of the rows at hand. */
void epi_visit(epi *x, cptx_site at, uint32_t col, uint32_t n);
/* Finds the rows at hand in a matrix; then a column; then an element: .u64, with a constant offset. */
void epi_find_rows_of(const epi *x, cptx_site at, cptx_val address, cptx_val pitch, uint32_t bytes, epi_matrix *m);
void epi_find_column_of(const epi *x, cptx_site at, uint32_t col, epi_matrix *m);
cptx_val epi_element_of(const epi *x, const epi_matrix *m, uint32_t row, uint32_t col);
/* base + (v + more) * bytes, of 64 bits; v .u32 or a constant. */
cptx_val epi_address(cptx_kernel *k, cptx_site at, cptx_val base, cptx_val v, uint32_t more, uint32_t bytes);

/* ---- elements of memory; the GEMM generators use these too ---- */

/* n elements behind one another (F32, BF16, F16) as .f32 registers, 0 where `when` does not hold. */
cptx_val epi_load(cptx_kernel *k, cptx_site at, cptx_val address, enum cptx_type type, uint32_t n, cptx_val when);

/* ---- stores ---- */

/* Whether results can be stored as that type. */
bool epi_is_storable(enum cptx_type type);
/* False, with an error, for what cptx_epilogue_run did not give results of that are stored as the type; for no type that
 * results are stored in. */
bool epi_has_run(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, enum cptx_type type);
bool epi_check_type(cptx_kernel *k, cptx_site at, enum cptx_type type);
void epi_store_group(cptx_kernel *k, cptx_site at, enum cptx_type type, const epi_group *g, cptx_val to, uint16_t space,
                     cptx_val when);

/* ---- rings: epilogue_ring.c ---- */

/* Whether stores bring parts of an accumulator in tensor memory. */
bool epi_has_parts(const cptx_epilogue_ring *ring);
/* The address of the unit's first tile: a mad where it is needed takes less than a register that lives through a mainloop.
 */
cptx_val epi_first_tile(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring);
/* Whether the unit is a warp, of mma.sync. */
bool epi_is_warp(const cptx_acc *acc);
/* Whether each warp sends subtiles of its own: such a unit, or of one from tensor memory, whose warps have 32 rows each. */
bool epi_by_warps(const cptx_acc *acc, const cptx_tile *t);
/* Whether the units that are no warps have a .barrier each. */
bool epi_has_barrier(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring_opt *o, const cptx_acc *acc);
/* The thread that sends: the first of the unit, or of its warp. */
cptx_val epi_leader(cptx_kernel *k, cptx_site at, const cptx_acc *acc, const cptx_tile *t);
/* How threads write an accumulator's results to tiles of a ring. */
cptx_epilogue_writer epi_writer_of(cptx_kernel *k, cptx_site at, const cptx_epilogue_ring *ring, const cptx_acc *acc,
                                   bool last);

/* A tile in shared memory, and the matrix whose rows it is stored to: these begin at any element. */
typedef struct epi_anywhere {
	const cptx_tile *tile; /* of 8, 16 or 32 bits, rows contiguous and of up to 128 bytes, a multiple of eight of them */
	cptx_val smem;         /* .u32, where it begins, a multiple of 1024 */
	cptx_val thread;       /* .u32, of 128 */
	cptx_val address;      /* .u64: of the matrix */
	cptx_val pitch;        /* elements from row to row of it, .u32 or a constant */
	cptx_val row, col;     /* .s32: where the tile begins in it */
	cptx_val rows, cols;   /* where it ends; NONE: nowhere */
} epi_anywhere;
void epi_store_anywhere(cptx_kernel *k, cptx_site at, const epi_anywhere *o);

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
	EPI_ACTIVATES = 256,  /* may be another's activation */
	EPI_AT_ROW = 512,     /* takes epi.row */
	EPI_INSIDE = 1024,    /* takes predicates */
	EPI_ONLY_F32 = 2048,  /* .address is of .f32 */
	EPI_ALONG_ROWS = 4096 /* puts elements of a row of D together: not with opt.transposed */
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
	void (*rows)(epi *x, const epi_at *w);                                 /* rows that come to hand */
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
void epi_activate(cptx_kernel *k, cptx_site at, enum cptx_visit_kind kind, cptx_val v);

#endif
