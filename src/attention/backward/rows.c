/* SPDX-License-Identifier: MIT */
/* The kernels that go over rows of queries, a warp for each: LSE and delta in front, and the sums of dQ rounded behind. */
#include "attention/backward/backward.h"

#include <cptx/cptx.h>
#include <cptx/reduce.h>
#include <cptx/vector.h>

#include <math.h>

typedef struct rows {
	cptx_kernel *k;
	const cptx_attention_backward_opt *o;
	backward_in in;
	cptx_val lane, row, plane, batch, head; /* .u32; row: of the workspace, of its plane (batch * heads + head) */
} rows;

/* False in the PTX where there is no such row; gives the predicate. */
static cptx_val locate(rows *r)
{
	cptx_kernel *k = r->k;
	const cptx_val tid = cptx_tid_x(k);
	const cptx_val all = cptx_mad(k, cptx_ctaid_x(k), BACKWARD_ROW_WARPS, cptx_shr(k, tid, 5), .mode = CPTX_LO);

	r->lane = cptx_and(k, tid, CPTX_WARP - 1);
	r->plane = cptx_div(k, all, r->in.pad);
	r->row = cptx_sub(k, all, cptx_mul(k, r->plane, r->in.pad, .mode = CPTX_LO));
	r->batch = cptx_div(k, r->plane, r->in.heads);
	r->head = cptx_sub(k, r->plane, cptx_mul(k, r->batch, r->in.heads, .mode = CPTX_LO));
	const cptx_val there = cptx_setp(k, r->plane, r->in.planes, .cmp = CPTX_LT);
	if (!r->o->varlen)
		return there;
	backward_find_sequence(k, &r->in, r->batch);
	r->plane = r->head;
	/* rows of the workspace that the sequence has */
	const cptx_val up = cptx_and(k, cptx_add(k, r->in.queries, BACKWARD_PAD - 1), -(int64_t)BACKWARD_PAD, .type = CPTX_B32);
	return cptx_setp(k, r->row, cptx_as(up, CPTX_U32), .cmp = CPTX_LT);
}

static void begin(rows *r, cptx_module *m, const cptx_attention_backward_opt *o, const char *name)
{
	*r = (rows){ .k = cptx_kernel_begin(m, name, .block = { BACKWARD_ROW_WARPS * CPTX_WARP }, .min_ctas = 1), .o = o };
	backward_declare(r->k, &r->in, o);
}

/* The address of the row in a tensor. */
static cptx_val row_of(rows *r, cptx_val base, cptx_val batch_stride, cptx_val head_stride, cptx_val row_bytes)
{
	const cptx_val head = backward_head(r->k, base, r->batch, batch_stride, r->head, head_stride);

	return cptx_mad_wide(r->k, r->row, row_bytes, head);
}

/* The row among the sums of dQ, of the workspace. */
static cptx_val sums_of(rows *r)
{
	cptx_kernel *k = r->k;
	const cptx_val i = backward_work_row(k, &r->in, r->plane, r->row);

	return cptx_mad(k, i, r->in.s.dim * 4, r->in.sums, .mode = CPTX_LO);
}

static void find_delta(rows *r, cptx_val delta, cptx_val lse)
{
	cptx_kernel *k = r->k;
	const backward_in *in = &r->in;
	const bool packed = r->o->varlen;
	const cptx_val place = cptx_cvt(k, packed ? cptx_add(k, r->row, in->q0) : r->row, .dtype = CPTX_U64);
	const cptx_val i = cptx_mad_wide(k, r->plane, packed ? in->total_queries : in->queries, place);
	cptx_row o, d_o;
	cptx_row_at it;

	cptx_row_new(k, &o, .type = r->o->in, .n = r->o->dim, .threads = CPTX_WARP, .thread = r->lane);
	cptx_row_like(k, &o, &d_o);
	cptx_row_load(k, &o, row_of(r, in->o, in->o_batch, in->o_head, in->o_row), .fill = 0);
	cptx_row_load(k, &d_o, row_of(r, in->d_o, in->do_batch, in->do_head, in->do_row), .fill = 0);
	CPTX_ROW_EACH(k, &o, &it)
	cptx_fma(k, it.v, cptx_elem(d_o.v, it.i), delta, .rnd = CPTX_RN, .into = delta);
	cptx_reduce_warp(k, delta, CPTX_REDUCE_SUM);
	cptx_ld(k, cptx_mad(k, i, 4, in->lse, .mode = CPTX_LO), .space = CPTX_GLOBAL, .type = CPTX_F32, .into = lse);
	/* the exponential of minus infinity is what a row without keys needs: probabilities of 0 */
	cptx_mov(k, INFINITY, .type = CPTX_F32, .into = lse, .when = cptx_setp(k, lse, -INFINITY, .cmp = CPTX_EQ));
}

void backward_build_prepare(cptx_module *m, const cptx_attention_backward_opt *o, const char *name)
{
	rows r;

	begin(&r, m, o, name);
	cptx_kernel *k = r.k;
	CPTX_IF(k, locate(&r)) {
		const cptx_val delta = cptx_var(k, CPTX_F32, 0.0f), lse = cptx_var(k, CPTX_F32, INFINITY);
		CPTX_IF(k, cptx_setp(k, r.row, r.in.queries, .cmp = CPTX_LT))
			find_delta(&r, delta, lse);
		cptx_mul(k, lse, (float)-ATTENTION_LOG2E, .into = lse);
		const cptx_val pair[] = { lse, delta };
		cptx_st(k, backward_stats(k, &r.in, r.plane, r.row), cptx_pack_(k, CPTX_HERE, pair, 2), .space = CPTX_GLOBAL,
		        .vec = CPTX_V2, .when = cptx_setp(k, r.lane, 0, .cmp = CPTX_EQ));
		if (!o->deterministic) {
			cptx_row zeros;
			cptx_row_at it;
			cptx_row_new(k, &zeros, .type = CPTX_F32, .n = r.in.s.dim, .threads = CPTX_WARP, .thread = r.lane);
			CPTX_ROW_EACH(k, &zeros, &it)
			cptx_mov(k, 0.0f, .type = CPTX_F32, .into = it.v);
			cptx_row_store(k, &zeros, sums_of(&r));
		}
	}
}

/*
 * By wgmma the sums of a block lie as the threads of the warpgroups held them: each thread here has what one of those had,
 * four neighbours in its registers at a time.
 */
static void round_blocks(cptx_module *m, const cptx_attention_backward_opt *o, const char *name)
{
	const uint32_t threads = backward_shape_of(o).dq_groups * BACKWARD_GROUP_THREADS;
	cptx_kernel *k = cptx_kernel_begin(m, name, .block = { threads }, .min_ctas = 1);
	backward_in in = { .opt = o };
	cptx_tiled_mma mma;
	cptx_acc part;

	backward_declare(k, &in, o);
	const cptx_val tid = cptx_tid_x(k), group = cptx_shr(k, tid, 7), thread = cptx_and(k, tid, BACKWARD_GROUP_THREADS - 1);
	const cptx_val id = cptx_ctaid_x(k), blocks = cptx_div(k, in.pad, o->bq), plane = cptx_div(k, id, blocks);
	const cptx_val row0 = cptx_mul(k, cptx_sub(k, id, cptx_mul(k, plane, blocks, .mode = CPTX_LO)), o->bq, .mode = CPTX_LO);
	const cptx_val batch = cptx_div(k, plane, in.heads),
				   head = cptx_sub(k, plane, cptx_mul(k, batch, in.heads, .mode = CPTX_LO));
	backward_find_sequence(k, &in, batch);
	if (o->varlen)
		cptx_exit(k, .when = cptx_setp(k, row0, in.queries, .cmp = CPTX_GE));
	backward_dq_product(k, &in, group, thread, &mma, &part);
	const cptx_val row = backward_work_row(k, &in, o->varlen ? head : plane, row0);
	cptx_val from = cptx_mad(k, row, in.s.dim * 4, in.sums, .mode = CPTX_LO);
	from = cptx_mad_wide(k, thread, 16, cptx_mad_wide(k, group, in.s.part_bytes, from));
	for (uint32_t i = 0; i < part.count; i += 4)
		cptx_ld(k, cptx_offset(from, i / 4 * BACKWARD_GROUP_THREADS * 16), .space = CPTX_GLOBAL, .type = CPTX_F32,
		        .vec = CPTX_V4, .into = cptx_slice(part.regs, i, 4));
	CPTX_ACC_EACH(&part, e)
	cptx_mul(k, e.value, in.scale, .into = e.value);
	const cptx_val inside = cptx_sub(k, cptx_max(k, in.queries, row0), row0);
	const cptx_val base = backward_head(k, in.dq, batch, in.dq_batch, head, in.dq_head);
	const cptx_val address = cptx_mad_wide(k, row0, in.dq_row, base), pitch = cptx_shr(k, in.dq_row, 1);
	const cptx_val cols = o->dim == in.s.dim ? (cptx_val){ 0 } : cptx_imm(o->dim);
	cptx_acc_store(
		k, &part,
		CPTX_OPT(cptx_acc_matrix, .address = address, .type = o->in, .pitch = pitch, .rows = inside, .cols = cols));
}

void backward_build_round(cptx_module *m, const cptx_attention_backward_opt *o, const char *name)
{
	rows r;

	if (o->mma == CPTX_ATTENTION_WGMMA) {
		round_blocks(m, o, name);
		return;
	}
	begin(&r, m, o, name);
	cptx_kernel *k = r.k;
	const backward_in *in = &r.in;
	const cptx_val there = locate(&r);
	CPTX_IF(k, cptx_and(k, there, cptx_setp(k, r.row, in->queries, .cmp = CPTX_LT), .type = CPTX_PRED)) {
		cptx_row dq;
		cptx_row_at it;
		cptx_row_new(k, &dq, .type = o->in, .n = o->dim, .threads = CPTX_WARP, .thread = r.lane);
		cptx_row_load(k, &dq, sums_of(&r), .fill = 0, .type = CPTX_F32);
		CPTX_ROW_EACH(k, &dq, &it)
		cptx_mul(k, it.v, in->scale, .into = it.v);
		cptx_row_store(k, &dq, row_of(&r, in->dq, in->dq_batch, in->dq_head, in->dq_row));
	}
}
