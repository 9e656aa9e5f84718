/* SPDX-License-Identifier: MIT */
/* Runs a row kernel on a device and compares every element with f64; used by `cptx rows --run`, tests and benchmarks. */
#ifndef CPTX_TOOL_REFERENCE_ROWS_CHECK_H
#define CPTX_TOOL_REFERENCE_ROWS_CHECK_H

#include <cptx/rows.h>

typedef struct rows_case {
	uint32_t rows;
	uint32_t pad, off; /* elements between rows, and in front of the first one */
	uint64_t seed;
	unsigned bursts; /* timed bursts; 0: none */
	/* Rows that the host draws and computes, 0: all; the device has them again and again, and gives the same bits for each
	 */
	uint32_t drawn;
	bool in_place; /* y, or dx, lies where x, or dy, does */
	bool special;  /* some rows have NaN, infinities or -infinity alone */
	cptx_load_opt load;
} rows_case;

typedef struct rows_report {
	uint64_t elements, wrong;
	double worst; /* largest error as a part of what is allowed */
	unsigned wrong_operand;
	uint32_t wrong_row, wrong_column;
	double wrong_value, wrong_reference; /* of the first wrong element */
	double ms;                           /* median time of a launch; 0: not measured */
	cptx_rows_plan plan;
	cptx_resources resources;
} rows_report;

/* o: its shape is chosen where it is not given.  False, with err, if something could not be run; wrong elements are in the
 * report. */
bool rows_check(cptx_device *dev, const cptx_rows_opt *o, const rows_case *c, rows_report *r, cptx_error *err);
/* "all 64 elements right, the largest error is 0.31 of what is allowed", "3 of 64 elements are wrong; ..." */
void rows_report_text(const rows_report *r, char *text, size_t size);

/* A row in f64: of each operand its elements, scalars one; what is computed also with what its rounding errors are
 * proportional to. */
typedef struct rows_line {
	const cptx_rows_opt *o;
	uint32_t reads, writes;
	double *v[CPTX_ROWS_OPERANDS], *mag[CPTX_ROWS_OPERANDS];
} rows_line;
/* Computes what the kernel writes; of dw and db what the row adds. */
void rows_reference(const rows_line *l);

#endif
