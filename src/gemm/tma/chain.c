/* SPDX-License-Identifier: MIT */
/* From the sums of a tile to elements of D, by <cptx/epilogue.h>. */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { GATED_COLUMNS = 8 /* of SwiGLU, that lie beside one another */ };

/* A visitor that calls the epilogue of the options. */
static cptx_val call(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	const cptx_gemm_opt *o = (const cptx_gemm_opt *)user;

	return o->epilogue(k, o->user, v, x->row, x->col);
}

/* The C of the matrix at hand, where the problem says how far they are apart. */
static cptx_val strided_c(cptx_kernel *k, const cptx_gemm_opt *o, const tma_gemm_work *w)
{
	const cptx_val z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);

	return cptx_mad(k, cptx_mul(k, z, w->p.step_c, .mode = CPTX_LO), cptx_type_bits(o->out) / 8, w->p.C, .mode = CPTX_LO);
}

/* Whether there are several matrices D. */
static bool has_several(const cptx_gemm_opt *o) { return o->batched || o->experts == CPTX_GEMM_EXPERTS_K; }

/* Adds the visitors of the options.  D has a tensor map or a pitch of its own, so it cannot get fewer columns here. */
static void add_visitors(cptx_kernel *k, const cptx_gemm_opt *o, const tma_gemm_work *w, cptx_epilogue *e)
{
	const cptx_gemm_operands x = {
		.params = &w->table, .m = w->p.M, .n = w->p.N, .k = w->p.K, .z = has_several(o) ? w->z : (cptx_val){ 0 }
	};
	const uint32_t first = e->count;

	o->visitors(k, o->user, e, &x);
	for (uint32_t i = first; i < e->count; i++)
		if (e->kind[i] == CPTX_VISIT_GATE_PAIRS)
			cptx_fail_(k, e->at[i],
			           "CPTX_VISIT_GATE_PAIRS in a GEMM of <cptx/gemm.h>, whose D has as many columns as B; "
			           "examples/kit/gemm_swiglu_fp8.c has a kernel of its own for gated pairs");
}

/* Factors of all rows of a matrix, or of all experts whose rows D has behind one another, for 128 columns, then those for
 * the next. */
static void add_quantizer(cptx_kernel *k, const cptx_gemm_opt *o, const tma_gemm_work *w, cptx_epilogue *e)
{
	const tma_gemm_params *p = &w->p;
	const cptx_val rows = o->experts == CPTX_GEMM_EXPERTS_MASKED ? cptx_mul(k, p->M, p->batch, .mode = CPTX_LO) : p->M;
	const cptx_val pitch = cptx_and(k, cptx_add(k, rows, 3), ~3);
	cptx_val to = p->scale_d;

	if (has_several(o)) {
		const cptx_val blocks = cptx_div(k, p->N, 128 * (o->swiglu ? 2 : 1));
		const cptx_val each = cptx_mul_wide(k, blocks, pitch), z = cptx_cvt(k, cptx_as(w->z, CPTX_U32), .dtype = CPTX_U64);
		to = cptx_mad(k, cptx_mul(k, each, z, .mode = CPTX_LO), 4, to, .mode = CPTX_LO);
	}
	cptx_epilogue_add(k, e, CPTX_VISIT_QUANTIZE, .value = cptx_immf((double)tma_gemm_largest(o->out)), .address = to,
	                  .pitch = pitch);
}

void tma_gemm_chain_new(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e)
{
	const cptx_gemm_opt *o = t->o;
	const tma_gemm_params *p = &w->p;
	const bool experts = o->experts != CPTX_GEMM_EXPERTS_NONE;
	cptx_val bias = p->bias;

	if (experts && o->bias)
		bias = cptx_mad_wide(k, cptx_mul(k, cptx_as(w->z, CPTX_U32), p->N, .mode = CPTX_LO), 4, bias);
	/* rows of D are of whole 16 bytes, where it has a tensor map */
	const bool cut = tma_gemm_is_cut(t, CPTX_GEMM_MAP_D);
	cptx_epilogue_new(k, e, .rows = cut ? w->expert.row_end : p->M, .cols = p->N,
	                  .vec = t->any_row_of_d ? 1 : 128 / cptx_type_bits(o->out), .transposed = o->swap,
	                  .integers = o->out == CPTX_S32);
	if (o->alpha)
		cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = p->alpha);
	if (o->beta) {
		const bool far = tma_gemm_is_strided(t) && has_several(o);
		cptx_epilogue_add(k, e, CPTX_VISIT_MATRIX, .value = p->beta, .address = far ? strided_c(k, o, w) : p->C,
		                  .type = o->out, .pitch = tma_gemm_ld(k, t, w, GEMM_C), .z = far || cut ? (cptx_val){ 0 } : w->z);
	}
	if (o->bias)
		cptx_epilogue_add(k, e, CPTX_VISIT_BIAS_COL, .address = bias);
	if (o->epilogue)
		cptx_epilogue_add(k, e, CPTX_VISIT_CALL, .fn = call, .user = (void *)(uintptr_t)o);
	if (o->visitors)
		add_visitors(k, o, w, e);
	if (o->swiglu)
		cptx_epilogue_add(k, e, CPTX_VISIT_GATE_PAIRS, .activation = CPTX_VISIT_SILU, .apart = GATED_COLUMNS);
	if (o->scatter)
		cptx_epilogue_add(k, e, CPTX_VISIT_SCALE_ROW, .address = p->routing);
	if (o->scale_out)
		add_quantizer(k, o, w, e);
}

static void run_chain(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc, cptx_epilogue *e)
{
	const bool swap = t->o->swap;

	tma_gemm_chain_new(k, t, w, e);
	cptx_epilogue_run(k, e, acc, .row = swap ? w->n0 : w->m0, .col = swap ? w->m0 : w->n0, .at_store = true);
}

cptx_epilogue tma_gemm_chain(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc)
{
	cptx_epilogue e;

	run_chain(k, t, w, acc, &e);
	return e;
}

void tma_gemm_store(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_epilogue *e, cptx_val d)
{
	const uint32_t at_once = t->o->mma == CPTX_GEMM_WGMMA ? 2 : 1; /* mma.sync is for targets that add one */

	cptx_epilogue_store(k, e, .address = d, .type = t->o->out, .pitch = tma_gemm_ld(k, t, w, GEMM_D),
	                    .scatter = w->p.scatter, .add = t->o->scatter ? at_once : 0);
}

void tma_gemm_store_tmem(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, const cptx_acc *acc, uint32_t columns,
                         cptx_epilogue_loaded_fn loaded, void *user)
{
	const cptx_val d = tma_gemm_matrix(k, t, w, CPTX_GEMM_MAP_D);
	cptx_epilogue e;
	cptx_acc part;

	for (uint32_t col = 0; col < acc->n; col += columns) {
		cptx_acc_load(k, acc, col, columns, &part);
		loaded(k, user, col, &part);
		run_chain(k, t, w, &part, &e);
		tma_gemm_store(k, t, w, &e, d);
	}
}

cptx_epilogue_dst tma_gemm_dst(const tma_gemm *t, const tma_gemm_work *w)
{
	cptx_epilogue_dst to = { .size = CPTX_OPT_SIZE(cptx_epilogue_dst) };

	/* a D that has no map is found by tma_gemm_matrix, and the chain knows its rows */
	if (!tma_gemm_is_map(t, CPTX_GEMM_MAP_D))
		return to;
	to.map = w->p.map[CPTX_GEMM_MAP_D], to.last_map = w->in.map[CPTX_GEMM_MAP_END_D];
	if (tma_gemm_has_matrices(t, CPTX_GEMM_MAP_D))
		to.z = w->z;
	if (tma_gemm_is_cut(t, CPTX_GEMM_MAP_D))
		to.row_end = w->expert.row_end;
	return to;
}
