/* SPDX-License-Identifier: MIT */
/*
 * Forms of mma, each run as a kernel on any device: what the test of the emulator and the comparison with a GPU share.  A
 * form is its spelling; shape, types and kinds are read from that.  A warp does one case: operands are laid into fragments
 * by <cptx/layout.h>.
 */
#ifndef CPTX_TEST_MATRIX_FORMS_H
#define CPTX_TEST_MATRIX_FORMS_H

#include <cptx/device.h>
#include <cptx/layout.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORM_IN = 32, FORM_OUT = 8 /* words of a lane */ };
enum { FORM_MOST_A = 16 * 256, FORM_MOST_B = 8 * 256, FORM_MOST_D = 16 * 16 };

typedef struct form {
	const char *opcode;
	unsigned m, n, k, ka; /* ka: elements of a row of A that are there */
	enum cptx_type a, b, c, d, scale;
	unsigned abits, vec; /* of an element in the fragment; scales along k, 0: none */
	bool sparse, ordered, tf32_pairs, saturate, xor_popc, and_popc;
	cptx_frag_map fa, fb, fc, fd, fm, fsa, fsb;
} form;

/* A case: patterns of elements, and places of stored elements. */
typedef struct form_case {
	uint64_t a[FORM_MOST_A], b[FORM_MOST_B], c[FORM_MOST_D], d[FORM_MOST_D]; /* row-major */
	uint16_t at[FORM_MOST_A]; /* sparse: the row of B that a stored element meets */
	uint8_t sa[16 * 4], sb[4 * 8];
} form_case;

/* Reads a spelling; false if it is none that this file knows. */
bool form_parse(form *f, const char *opcode);
/* Reads the types of a spelling of wgmma, without fragments: C may be left out. */
bool form_parse_types(form *f, const char *opcode);
/* The kernel "k(p)": a warp in each block of 32 threads; of a lane there are FORM_IN words that it reads, FORM_OUT that it
 * writes. */
char *form_ptx(const form *f, const char *target);
/* Runs n cases: reads a, b, c ... and writes d. */
bool form_run(const form *f, cptx_device *dev, const char *target, form_case *c, size_t n, cptx_error *err);

/* How values are chosen. */
enum form_fill {
	FILL_SMALL,  /* integers so small that every sum is exact */
	FILL_NORMAL, /* of similar size */
	FILL_WIDE,   /* any finite exponent */
	FILL_ZEROS,  /* the same, half of them zeros of either sign */
	FILL_CANCEL, /* like NORMAL, C near what would make D zero */
	FILL_ANY,    /* any bits */
	FILL_TINY,   /* sums of f32 are subnormal; C is zero or subnormal */
	FILL_COUNT
};
void form_fill(const form *f, form_case *c, enum form_fill fill, uint64_t *seed);
/* D in double, and the sum of the magnitudes of all that is added. */
const char *form_fill_name(enum form_fill fill);
double form_expected(const form *f, const form_case *c, unsigned row, unsigned col, double *magnitude);
uint64_t form_pattern(enum cptx_type type, enum form_fill fill, uint64_t *seed);
double form_value(enum cptx_type type, uint64_t bits);
/* How far a result may be from the sum in double: what a sum that keeps `bits` below its largest term, and rounds, may lose.
 */
double form_bound(const form *f, unsigned bits, double want, double magnitude);
uint64_t form_bits(enum cptx_type type, double v); /* exact values only */
bool form_is_float(enum cptx_type type);

/* ---- for other forms too ---- */

/* Text that grows in a buffer that is large enough. */
typedef struct form_text {
	char *p;
	size_t n, cap;
} form_text;
void form_put(form_text *t, const char *format, ...);
const char *form_reg_type(enum cptx_type t);
uint64_t form_random(uint64_t *seed);
/* Runs kernel k of the text, which is freed, on data that is written to the device and read back. */
bool form_launch(cptx_device *dev, char *ptx, void *data, size_t size, size_t blocks, uint32_t threads, cptx_error *err);

extern const char *const form_mma[];
extern const size_t form_nmma;

#endif
