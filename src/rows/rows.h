/* SPDX-License-Identifier: MIT */
/* Inside src/rows: the table of kernels, what a shape means for a row, and the state that bodies work on. */
#ifndef CPTX_ROWS_ROWS_H
#define CPTX_ROWS_ROWS_H

#include "base/base.h"

#include <cptx/params.h>
#include <cptx/rows.h>
#include <cptx/vector.h>

/* R_X and so on, O_EPS and so on: the sets of rows.def. */
enum {
#define ROWS_OPERAND(ID, name, kind, type, about) R_##ID = 1 << CPTX_ROWS_##ID,
#include <cptx/rows.def>
	R_SUMS = R_DW | R_DB
};
enum rows_option {
#define ROWS_OPTION(ID, field, about) ROWS_OPTION_##ID,
#include <cptx/rows.def>
	ROWS_OPTIONS
};
enum {
#define ROWS_OPTION(ID, field, about) O_##ID = 1 << ROWS_OPTION_##ID,
#include <cptx/rows.def>
	O_NONE = 0
};

enum rows_kind { ROWS_MATRIX, ROWS_VECTOR, ROWS_SCALAR };
enum rows_type { ROWS_IN, ROWS_OUT, ROWS_WEIGHT, ROWS_F32, ROWS_INDEX };
typedef struct rows_operand {
	const char *name, *stride_name, *about;
	enum rows_kind kind;
	enum rows_type type;
} rows_operand;
extern const rows_operand rows_operands[CPTX_ROWS_OPERANDS];

typedef struct rows_kernel {
	const char *name, *about;
	cptx_rows_body body;
	bool local;
	uint32_t reads, writes, may_read, may_write, takes;
} rows_kernel;
/* Of CPTX_ROWS_OWN the first: without a name. */
extern const rows_kernel rows_kernels[CPTX_ROWS_KERNELS];

#define ROWS_KERNEL(ID, name, body, local, reads, writes, may_read, may_write, takes, about)                                \
	void body(cptx_kernel *k, cptx_rows_row *row, void *user);
#include <cptx/rows.def>

/* What options mean for the code: options are complete and checked. */
typedef struct rows_shape {
	uint32_t reads, writes;
	bool local;              /* elements do not depend on one another */
	bool sums;               /* CTAs take many rows each, and add up columns */
	bool cluster;            /* .split is one */
	bool partible;           /* CTAs that share a row need not know of one another: it writes scalars alone */
	bool parts;              /* they do not, and a second launch puts rows together */
	uint32_t each;           /* elements of a vector */
	uint32_t part;           /* columns of a CTA, the last one may have fewer */
	uint32_t turn;           /* columns that a CTA holds at once: part, or in memory fewer */
	uint32_t rows;           /* of a CTA */
	uint32_t sum_pitch;      /* floats of a CTA's sums of one operand */
	bool resident;           /* in registers or shared memory: passes are unrolled */
	bool ring;               /* bulk copies bring rows into stages of shared memory, and CTAs take many rows each */
	bool flows;              /* a stage is a turn of a row, and is filled with a later one as soon as it is read last */
	uint32_t held;           /* first turns of a row that registers keep, as there are not stages for all */
	bool keeps;              /* registers keep a row from pass to pass */
	uint32_t turns;          /* of a pass over what is resident: 1 where registers keep the row */
	uint32_t copied;         /* set of the matrices that bulk copies bring */
	uint32_t shared_vectors; /* set of the vectors that shared memory keeps */
	bool even;               /* all CTAs have part columns */
} rows_shape;
rows_shape rows_shape_of(const cptx_rows_opt *o);
enum cptx_type rows_type_of(const cptx_rows_opt *o, enum cptx_rows_operand operand);
uint32_t rows_align_of(const cptx_rows_opt *o);
/* Operands of a kind in a set. */
uint32_t rows_count(uint32_t set, enum rows_kind kind);
enum { ROWS_MOST_HELD = 4 /* turns */, ROWS_BLOCK = 64 /* rows that a sum of columns takes in one register */ };
enum {
	ROWS_STAGE_ALIGN = 128,              /* bytes */
	ROWS_STATIC = 5632,                  /* bytes of barriers and reductions, at most */
	ROWS_SMEM = 227 * 1024 - ROWS_STATIC /* bytes of rows and vectors that the largest CTA has room for */
};
/* Bytes of a stage; of all stages and vectors. */
uint32_t rows_stage_bytes(const cptx_rows_opt *o, const rows_shape *s);
uint64_t rows_smem(const cptx_rows_opt *o, const rows_shape *s);
/* Elements of one operand's row in a thread; of a turn, where the row has several. */
uint32_t rows_elements(const cptx_rows_opt *o, const rows_shape *s);
/* CTAs of clusters, or without, that a device holds at once, in clusters. */
uint32_t rows_units_at_once(const cptx_rows_opt *o, const rows_shape *s, uint32_t sms, uint32_t ctas);
/* Where rows of `n` elements of `size` bytes begin: at multiples of how many elements, a power of two up to `most`. */
uint32_t rows_align_at(const cptx_rows_matrix *m, uint32_t size, uint32_t n, uint32_t most);
/* Groups of threads that take rows in a launch of the kernel with sums: each has a row of partial sums. */
static inline uint32_t rows_sums_of(const rows_shape *s, uint32_t grid, uint32_t split) { return grid / split * s->rows; }
static inline bool rows_has(uint32_t set, unsigned operand) { return set >> operand & 1; }
/* Elements of a scalar operand for each row. */
static inline uint32_t rows_scalars(const cptx_rows_opt *o, unsigned operand)
{
	return (operand == CPTX_ROWS_TOP || operand == CPTX_ROWS_AT) && o->k ? o->k : 1;
}
/* Stores element `i`, a .u32, of the row's scalars; when: by which threads, NONE: by one, as cptx_rows_put. */
void rows_put_at(cptx_kernel *k, cptx_site at, const cptx_rows_row *r, enum cptx_rows_operand operand, cptx_val i,
                 cptx_val v, cptx_val when);
/* Bytes of static shared memory of a CTA, for top-k's lists; of other kernels 0. */
uint32_t rows_top_k_static(const cptx_rows_opt *o, const rows_shape *s);
/* Of the numbers in the registers of v, .u32 or .u64, over a warp, the larger half goes to the first half of the registers,
 * sorted: lane 0 has the largest ones.  2, 4, 8 or 16 registers; all lanes take part. */
void rows_sort_warp(cptx_kernel *k, cptx_val v);
/* The mean of the vector of the element where the pass stands, of an operand that it reads; where the row ends in it, with
 * zeros. */
cptx_val rows_mean_of_vector(const cptx_rows_row *r, enum cptx_rows_operand operand);
/* The other element of the pair, columns 2i and 2i + 1, of an operand that the pass reads. */
cptx_val rows_other_of_pair(const cptx_rows_row *r, enum cptx_rows_operand operand);
/* Whether errors of an .f32 are to be seen in what the kernel reads or writes. */
bool rows_exact(const cptx_rows_opt *o);
/* e^x of x up to 88; exact: without the error of the exponent's rounding. */
cptx_val rows_exp(cptx_kernel *k, cptx_val x, bool exact);
/* e^-x of any x, of which exact ones end at e^88; the sigmoid of x, 1 / (1 + decay). */
cptx_val rows_decay(cptx_kernel *k, cptx_val x, bool exact);
cptx_val rows_sigmoid_of(cptx_kernel *k, cptx_val decay, bool exact);
/* x * the sigmoid of x, exact: rounded once; and, where it is asked for, the sigmoid. */
typedef struct rows_gate {
	cptx_val gated, sigmoid;
} rows_gate;
rows_gate rows_gate_of(cptx_kernel *k, cptx_val x, bool exact, bool sigmoid);
/* factor / sum (factor NONE: 1), by which elements are multiplied; exact: as two numbers. */
typedef struct rows_factor {
	cptx_val much, rest;
} rows_factor;
rows_factor rows_factor_of(cptx_kernel *k, cptx_val factor, cptx_val sum, bool exact);
cptx_val rows_times(cptx_kernel *k, cptx_val v, const rows_factor *f);
/* ln(x), as the sum of two numbers of which the second is small; not exact: 0. */
typedef struct rows_log {
	cptx_val much, rest;
} rows_log;
rows_log rows_log_of(cptx_kernel *k, cptx_val x, bool exact);
/* Operands that are sums of columns. */
static inline uint32_t rows_sum_operands(const rows_shape *s)
{
	return (uint32_t)rows_has(s->writes, CPTX_ROWS_DW) + rows_has(s->writes, CPTX_ROWS_DB);
}
/* What all rows of the matrices of a problem are aligned to, in elements. */
uint32_t rows_align_of_problem(const cptx_rows_opt *o, const cptx_rows_problem *p);
static inline uint32_t rows_bytes(enum cptx_type t) { return cptx_type_bits(t) / 8; }

/* Arguments of a launch, and the table of those that the kernel has. */
typedef struct rows_args {
	uint64_t at[CPTX_ROWS_OPERANDS], workspace;
	uint32_t stride[CPTX_ROWS_OPERANDS], sums;
	uint32_t row_count; /* not "rows", as the kernel is called: ptxas 13.0 crashes on a parameter of that name */
} rows_args;
enum { ROWS_PARAMS = 2 * CPTX_ROWS_OPERANDS + 2 };
size_t rows_table(const rows_shape *s, cptx_param_row table[ROWS_PARAMS]);
size_t rows_sum_table(const rows_shape *s, cptx_param_row table[ROWS_PARAMS]);
enum { ROWS_SUM_COLUMNS = 32, ROWS_SUM_PARTS = 32 /* threads of the second launch, x and y */ };
enum {
	ROWS_MOST_PARTS = 32,      /* of a row: lanes of a warp put them together */
	ROWS_MOST_SPLIT = 1024,    /* CTAs of a row whose elements do not depend on one another */
	ROWS_PART_VALUES = 2,      /* reductions of a body whose rows are in parts, at most */
	ROWS_COMBINE_THREADS = 128 /* of the second launch */
};
/* Bytes of the workspace for each part. */
uint32_t rows_part_bytes(const cptx_rows_opt *o);
/* Launches of a kernel: a second one puts together what CTAs found. */
static inline uint32_t rows_launches(const rows_shape *s) { return s->sums || s->parts ? 2 : 1; }

/* As cptx_rows_auto, of choices of this library; room is 1 or more. */
size_t rows_auto(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms, cptx_rows_choice *choices,
                 size_t room, cptx_error *err);
/* Checks and completes the options; the shape stays 0 where it is to be chosen. */
bool rows_complete(cptx_rows_opt *o, const cptx_target *target, cptx_error *err);
/* Checks the shape of complete options, which must be chosen. */
bool rows_check_shape(const cptx_rows_opt *o, const cptx_target *target, cptx_error *err);
/* Builds the kernel of complete options. */
cptx_kernel *rows_build(cptx_module *m, const cptx_rows_opt *o);
enum { ROWS_TILE = 64, ROWS_TILE_THREADS = 256 };
/* Whether elements of an operand stand two in a byte. */
static inline bool rows_packed(const cptx_rows_opt *o, unsigned operand)
{
	return o->out == CPTX_E2M1 && operand == CPTX_ROWS_Y;
}
/* Elements of an operand's row, or bytes of packed ones, of a problem with so many rows. */
static inline uint32_t rows_columns(const cptx_rows_opt *o, unsigned operand, uint32_t rows)
{
	return rows_packed(o, operand) ? o->n / 2 : o->kernel == CPTX_ROWS_TRANSPOSE && operand == CPTX_ROWS_Y ? rows : o->n;
}
void rows_build_sum(cptx_module *m, const cptx_rows_opt *o, const char *name);
void rows_build_combine(cptx_module *m, const cptx_rows_opt *o, const char *name);
/* "rows_sum"; to be freed */
char *rows_sum_name(const cptx_rows_opt *o);

#define ROWS_RULE(ok, ...)                                                                                                  \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "rows: " __VA_ARGS__);                                               \
	while (0)

#endif
