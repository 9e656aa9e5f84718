/* SPDX-License-Identifier: MIT */
/* ldmatrix, stmatrix and movmatrix as kernels on any device, and wmma from loads to stores; beside matrix_forms.h. */
#ifndef CPTX_TEST_MOVE_FORMS_H
#define CPTX_TEST_MOVE_FORMS_H

#include "matrix_forms.h"

/* ---- moves: shared memory of 128 rows of 16 bytes ---- */

enum { MOVE_ROWS = 128, MOVE_WORDS = MOVE_ROWS * 4 };
typedef struct move_form {
	const char *opcode;
	cptx_frag what;  /* of the instruction; movmatrix: of its source */
	unsigned packed; /* bits of an element in memory, 0: as in the register */
	bool store, mov;
} move_form;
typedef struct move_case {
	uint32_t shared[MOVE_WORDS]; /* at first */
	uint32_t row[32];            /* whose address each lane gives */
	uint32_t reg[32 * 4];        /* what is stored, by lanes */
	uint32_t out[MOVE_WORDS];    /* loads: registers, by lanes; stores: shared memory */
} move_case;

bool move_parse(move_form *f, const char *opcode);
void move_fill(move_case *c, uint64_t *seed);
bool move_run(const move_form *f, cptx_device *dev, const char *target, move_case *c, size_t n, cptx_error *err);
void move_expected(const move_form *f, const move_case *c, uint32_t out[MOVE_WORDS]);

extern const char *const form_move[];       /* of sm_90a */
extern const char *const form_move_bytes[]; /* of sm_100a */
extern const size_t form_nmove, form_nmove_bytes;

/* ---- wmma ---- */

typedef struct wm_form {
	form f;
	bool a_col, b_col, c_col, d_col;
} wm_form;
/* Layouts of C and D by the seed. */
bool wm_parse(wm_form *w, const char *opcode, uint64_t *seed);
bool wm_run(const wm_form *w, cptx_device *dev, const char *target, form_case *c, size_t n, cptx_error *err);

extern const char *const form_wmma[];
extern const size_t form_nwmma;

#endif
