/* SPDX-License-Identifier: MIT */
/* Forms of wgmma as kernels, as matrix_forms.h has those of mma: a warpgroup does one case. */
#ifndef CPTX_TEST_WGMMA_FORMS_H
#define CPTX_TEST_WGMMA_FORMS_H

#include "matrix_forms.h"

enum { WG_ROWS = 64, WG_MOST_K = 256, WG_MOST_N = 256, WG_SHARED = 49152 };

typedef struct wg_form {
	form f; /* opcode, shape and types; its fragments are those of the warpgroup */
	bool a_in_regs, trans_a, trans_b, keep, minus_a, minus_b;
	cptx_smem_desc da, db;
	unsigned selector;
} wg_form;

typedef struct wg_case {
	uint64_t a[WG_ROWS * WG_MOST_K], b[WG_MOST_K * WG_MOST_N], c[WG_ROWS * WG_MOST_N], d[WG_ROWS * WG_MOST_N];
	uint16_t at[WG_ROWS * 64];
} wg_case;

/* Reads a spelling and chooses the rest by the seed: where A is, layouts, scales. */
bool wg_parse(wg_form *w, const char *opcode, uint64_t *seed);
char *wg_ptx(const wg_form *w, const char *target);
/* The instruction: D in %d0 and on, A in %a0 to %a3 or by %da, B by %db, %meta, and the predicate %keep. */
void wg_put_call(form_text *t, const wg_form *w);
bool wg_run(const wg_form *w, cptx_device *dev, const char *target, wg_case *c, size_t n, cptx_error *err);
void wg_fill(const wg_form *w, wg_case *c, enum form_fill fill, uint64_t *seed);
double wg_expected(const wg_form *w, const wg_case *c, unsigned row, unsigned col, double *magnitude);
/* "A in registers, B 64B by n, ..." */
void wg_describe(const wg_form *w, char *out, size_t size);

extern const char *const form_wgmma[];
extern const size_t form_nwgmma;

#endif
