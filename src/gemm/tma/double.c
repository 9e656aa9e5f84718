/* SPDX-License-Identifier: MIT */
/* D of f64, by mma.sync: alpha * sums + beta * C, in f64, stored by the threads that have the sums. */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { BYTES = 8 };

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

bool tma_gemm_f64_check(const char *target, const cptx_gemm_opt *o, cptx_error *err)
{
	if (o->a != CPTX_F64) {
		RULE(o->out != CPTX_F64, "output type .f64 of A of .%s; it is that of A and B of .f64", target,
		     cptx_type_name(o->a));
		return true;
	}
	RULE(o->out == CPTX_F64, "output type .%s of A and B of .f64; it is f64", target, cptx_type_name(o->out));
	RULE(!o->bias && !o->epilogue && !o->visitors,
	     "A and B of .f64 with %s, which are of f32; alpha and beta there are, and C is f64", target,
	     o->bias ? "a bias" : "an epilogue");
	RULE(!o->stream_k && !o->experts && !o->grouped, "A and B of .f64 %s; there is one matrix, or a batch", target,
	     o->stream_k  ? "shared along K (stream_k)"
	     : o->experts ? "of experts"
	                  : "of a list of problems (grouped)");
	RULE(o->bk % 16 == 0, "tile K = %u of .f64; it is 16 or 32", target, o->bk);
	return true;
}

/* A row of D or C: elements (NONE: it is dense) from row to row, of the matrix at hand. */
static cptx_val row_at(cptx_kernel *k, cptx_val matrix, cptx_val row, cptx_val pitch)
{
	return cptx_mad(k, cptx_mul_wide(k, row, pitch), BYTES, matrix, .mode = CPTX_LO);
}

static cptx_val c_of(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w)
{
	if (!t->o->batched)
		return w->p.C;
	const cptx_val z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
	const cptx_val each = tma_gemm_is_strided(t) ? w->p.step_c : cptx_mul_wide(k, w->p.M, w->p.N);

	return cptx_mad(k, cptx_mul(k, z, each, .mode = CPTX_LO), BYTES, w->p.C, .mode = CPTX_LO);
}

void tma_gemm_store_f64(cptx_kernel *k, const tma_gemm_consumer *c, const cptx_acc *acc)
{
	const tma_gemm *t = c->t;
	const tma_gemm_work *w = c->w;
	const cptx_val d = tma_gemm_matrix(k, t, w, CPTX_GEMM_MAP_D);
	const cptx_val matrix_c = t->o->beta ? c_of(k, t, w) : d;
	const cptx_val alpha = t->o->alpha ? cptx_cvt(k, w->p.alpha, .dtype = CPTX_F64) : (cptx_val){ 0 };
	const cptx_val beta = t->o->beta ? cptx_cvt(k, w->p.beta, .dtype = CPTX_F64) : (cptx_val){ 0 };
	const cptx_val first = cptx_add(k, cptx_as(w->n0, CPTX_U32), acc->col);
	const cptx_val m0 = cptx_add(k, cptx_as(w->m0, CPTX_U32), acc->row);
	cptx_val at = d, at_c = d, inside = { 0 };

	for (uint32_t r = 0; r < acc->rows; r++) {
		bool begun = false;
		CPTX_ACC_EACH(acc, e)
		{
			if (e.at_row != r)
				continue;
			if (!begun) {
				const cptx_val row = cptx_add(k, m0, e.row);
				at = row_at(k, d, row, tma_gemm_ld(k, t, w, GEMM_D));
				if (t->o->beta)
					at_c = row_at(k, matrix_c, row, tma_gemm_ld(k, t, w, GEMM_C));
				inside = cptx_setp(k, row, w->p.M, .cmp = CPTX_LT), begun = true;
			}
			const cptx_val col = cptx_add(k, first, e.col);
			const cptx_val ok = cptx_and(k, inside, cptx_setp(k, col, w->p.N, .cmp = CPTX_LT), .type = CPTX_PRED);
			cptx_val v = e.value;
			if (t->o->alpha)
				v = cptx_mul(k, v, alpha, .rnd = CPTX_RN);
			if (t->o->beta) {
				const cptx_val old = cptx_var(k, CPTX_F64, 0.0);
				cptx_ld(k, cptx_mad_wide(k, col, BYTES, at_c), .space = CPTX_GLOBAL, .type = CPTX_F64, .into = old,
				        .when = ok);
				v = cptx_fma(k, old, beta, v, .rnd = CPTX_RN);
			}
			cptx_st(k, cptx_mad_wide(k, col, BYTES, at), v, .space = CPTX_GLOBAL, .when = ok);
		}
	}
}
