/* SPDX-License-Identifier: MIT */
/* A row of f32 held in the registers of a CTA: thread t has the vectors t, t + threads, ... of four floats. */
#ifndef EXAMPLES_ROWS_H
#define EXAMPLES_ROWS_H

#include <cptx/cptx.h>

typedef struct row {
	cptx_kernel *k;
	uint32_t n, threads, vectors; /* floats in a row; threads; vectors a thread */
	cptx_val first;               /* byte offset of the thread's first vector in a row, 64 bits */
	cptx_val tid, v;
} row;

static inline row row_of(cptx_kernel *k, uint32_t n, uint32_t threads)
{
	row r = { .k = k, .n = n, .threads = threads, .vectors = (n / 4 + threads - 1) / threads };
	r.tid = cptx_tid_x(k);
	r.first = cptx_mul_wide(k, r.tid, 16);
	r.v = cptx_regs(k, CPTX_F32, r.vectors * 4);
	return r;
}

/* Whether vector i lies in the row: NONE (always) for all but a ragged last one. */
static inline cptx_val row_has(const row *r, uint32_t i)
{
	if ((i + 1) * r->threads * 4 <= r->n)
		return (cptx_val){ 0 };
	return cptx_setp(r->k, r->tid, r->n / 4 - i * r->threads, .cmp = CPTX_LT);
}

static inline cptx_val row_vector(const row *r, uint32_t i) { return cptx_slice(r->v, i * 4, 4); }

/* Loads the row at address `at`; what lies behind its end becomes `fill`. */
static inline void row_load(const row *r, cptx_val at, float fill)
{
	cptx_val p = cptx_add(r->k, at, r->first);

	for (uint32_t i = 0; i < r->vectors; i++) {
		cptx_val has = row_has(r, i);
		for (uint32_t e = 0; has.kind && e < 4; e++)
			cptx_mov(r->k, fill, .into = cptx_elem(r->v, i * 4 + e));
		cptx_ld(r->k, cptx_offset(p, i * r->threads * 16), .space = CPTX_GLOBAL, .cop = CPTX_CS, .into = row_vector(r, i),
		        .when = has);
	}
}

static inline void row_store(const row *r, cptx_val at)
{
	cptx_val p = cptx_add(r->k, at, r->first);

	for (uint32_t i = 0; i < r->vectors; i++)
		cptx_st(r->k, cptx_offset(p, i * r->threads * 16), row_vector(r, i), .space = CPTX_GLOBAL, .cop = CPTX_CS,
		        .when = row_has(r, i));
}

#endif
