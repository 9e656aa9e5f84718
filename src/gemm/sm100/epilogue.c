/* SPDX-License-Identifier: MIT */
/*
 * From accumulators in tensor memory to D.
 *
 * A warp reads 32 lanes, a row of the tile in each thread, up to 32 columns at once.  What it has computed of them it writes
 * to shared memory, 32 rows of up to 128 bytes in the swizzle that the tensor map of D expects (the threads of a warp meet
 * no bank twice then), and TMA stores that, cut off at the edges of D.  Of two such pieces one is written while TMA reads
 * the other.  The accumulator is handed back as soon as it has been read.
 *
 * With swap a thread has a column of D: the threads of a warp write one element each of a row of the piece, for all of its
 * rows.
 */
#include "gemm/sm100/gemm.h"

enum {
	CHUNK = 32 /* columns read at once */,
	LINE = 16 /* bytes that a thread writes at once */,
	LINES = SPAN_BYTES / LINE
};

typedef struct outgoing {
	cptx_pipe_at acc;
	cptx_val piece, other; /* address of the piece whose turn it is; exclusive-ored: of the other one */
	cptx_val line[LINES];  /* where a thread writes in a piece; with swap the first row only */
	cptx_val lanes;        /* of tensor memory, to be added to an address */
	cptx_val row, col;     /* of D, .u32: of this thread, of the tile; with swap of its transpose */
	cptx_val inside;       /* with beta, and bias and swap: the row is */
	cptx_val c_at;         /* with beta: the address of C there */
	cptx_val c_step, bias; /* with swap: bytes of a row of C; the bias */
	cptx_val others;       /* with stream_k: see gemm_sm100_wait_for_others */
} outgoing;

static outgoing begin(const gemm100 *g)
{
	cptx_kernel *k = g->k;
	const cptx_tile *t = &g->s.d;
	uint32_t bytes = cptx_tile_bytes(t), value[5], each = LINE / g->s.out_bytes;
	outgoing out = { .lanes = cptx_shl(k, g->roles.warp, 21) }; /* 32 lanes a warp, in bits 16 and above */

	out.acc = g->s.ctas > 1 ? cptx_pipe_consumer_of(k, &g->accs, g->leader) : cptx_pipe_consumer(k, &g->accs);
	for (uint32_t b = 0; b < 5; b++)
		value[b] = cptx_tile_at(t, 1u << b, 0).byte;
	cptx_val first = cptx_lane_bits(k, cptx_and(k, g->roles.tid, 31), 5, value, false, (cptx_val){ 0 });
	for (uint32_t i = 0; i < (g->o->swap ? 1 : t->cols / each); i++)
		out.line[i] = i ? cptx_xor(k, first, cptx_tile_at(t, 0, i * each).byte) : first;
	out.piece = cptx_mad(k, g->roles.warp, PIECES * bytes, g->pieces, .mode = CPTX_LO);
	out.other = cptx_xor(k, out.piece, cptx_add(k, out.piece, bytes));
	return out;
}

static cptx_val sum_of(const gemm100 *g, cptx_val v, uint32_t i)
{
	return g->o->kind == CPTX_TCGEN05_I8
	           ? cptx_cvt(g->k, cptx_as(cptx_elem(v, i), CPTX_S32), .rnd = CPTX_RN, .dtype = CPTX_F32)
	           : cptx_as(cptx_elem(v, i), CPTX_F32);
}

/* 16 bytes of the row, from column `col` of the tile on; v: as many sums. */
static cptx_val line_of(const gemm100 *g, const outgoing *out, cptx_val v, uint32_t col)
{
	cptx_kernel *k = g->k;
	const tma_gemm *t = &g->t;
	enum { MOST = LINE / 2 };
	uint32_t n = LINE / g->s.out_bytes;
	cptx_val at = { 0 }, there = { 0 }, c[MOST] = { { 0 } }, bias[MOST] = { { 0 } }, e[MOST], words[4];

	if (g->o->out == CPTX_S32)
		return v;
	if (t->o->beta || t->o->bias || t->o->epilogue)
		at = col ? cptx_add(k, out->col, col) : out->col;
	if (t->o->beta || t->o->bias) /* rows are of whole 16 bytes: all of them are inside, or none */
		there = cptx_setp(k, at, g->w.p.N, .cmp = CPTX_LT);
	if (t->o->beta)
		tma_gemm_load_row(k, cptx_offset(out->c_at, col * g->s.out_bytes), t->o->out, n, cptx_and(k, there, out->inside), c);
	if (t->o->bias)
		tma_gemm_load_row(k, cptx_add(k, g->w.p.bias, cptx_mul_wide(k, at, 4)), CPTX_F32, n, there, bias);
	for (uint32_t i = 0; i < n; i++) {
		cptx_val sum = sum_of(g, v, i);
		e[i] = tma_gemm_value(k, t, &g->w.p, sum, c[i], bias[i], out->row, i && t->o->epilogue ? cptx_add(k, at, i) : at);
	}
	for (uint32_t i = 0; i < 4; i++)
		words[i] = n == 4 ? cptx_as(e[i], CPTX_B32) : tma_gemm_narrow(k, t->o->out, e[2 * i], e[2 * i + 1], (cptx_val){ 0 });
	return cptx_pack(k, 4, words);
}

/* With swap: sum i of v, as it is stored; of row `col` of the tile. */
static cptx_val element_of(const gemm100 *g, const outgoing *out, cptx_val v, uint32_t i, uint32_t col)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;
	cptx_val row = { 0 }, c = { 0 };

	if (o->out == CPTX_S32)
		return cptx_elem(v, i);
	if (o->beta || o->epilogue)
		row = col ? cptx_add(k, out->col, col) : out->col;
	if (o->beta) {
		cptx_val inside = cptx_and(k, cptx_setp(k, row, g->w.p.M, .cmp = CPTX_LT), out->inside);
		c = tma_gemm_load_one(k, cptx_mad(k, out->c_step, col, out->c_at, .mode = CPTX_LO), o->out, inside);
	}
	cptx_val e = tma_gemm_value(k, &g->t, &g->w.p, sum_of(g, v, i), c, out->bias, row, out->row);
	return o->out == CPTX_F32 ? e : cptx_cvt(k, e, .rnd = CPTX_RN, .dtype = o->out);
}

/* Columns col to col + num - 1 of the tile, which are `first` and following of the piece. */
static void write_chunk(const gemm100 *g, const outgoing *out, cptx_val acc, uint32_t col, uint32_t num, uint32_t first)
{
	cptx_kernel *k = g->k;
	uint32_t each = LINE / g->s.out_bytes;
	cptx_val v = cptx_tmem_load(k, cptx_offset(acc, col), .shape = CPTX_SHAPE_32X32B, .num = num);

	cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
	if (col + num == g->o->bn) {
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_BEFORE_THREAD_SYNC);
		cptx_pipe_release(k, &g->accs, &out->acc, g->elected);
	}
	if (g->o->stream_k)
		gemm_sm100_add_others(g, out->others, col, num, v);
	if (g->o->swap) {
		cptx_val to = cptx_add(k, out->piece, out->line[0]);
		for (uint32_t i = 0; i < num; i++)
			cptx_st(k, cptx_offset(to, cptx_tile_at(&g->s.d, 0, first + i).byte), element_of(g, out, v, i, col + i),
			        .space = CPTX_SHARED, .type = g->s.out_bytes == 4 ? CPTX_B32 : CPTX_B16);
		return;
	}
	for (uint32_t i = 0; i < num; i += each)
		cptx_st(k, cptx_add(k, out->piece, out->line[(first + i) / each]), line_of(g, out, cptx_slice(v, i, each), col + i),
		        .space = CPTX_SHARED, .type = CPTX_B32);
}

static void send_piece(const gemm100 *g, outgoing *out, cptx_val acc, cptx_val row, uint32_t col)
{
	cptx_kernel *k = g->k;
	uint32_t cols = g->s.out_cols, num = MIN(cols, (uint32_t)CHUNK);

	cptx_cp_async_bulk_wait_group(k, PIECES - 1, .read = 1, .when = g->elected); /* the piece has left */
	cptx_bar_warp_sync(k, 0xffffffffu);
	for (uint32_t i = 0; i < cols; i += num)
		write_chunk(g, out, acc, col + i, num, i);
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_warp_sync(k, 0xffffffffu);
	CPTX_IF(k, g->elected) {
		cptx_val along = col ? cptx_add(k, g->w.n0, col) : g->w.n0;
		cptx_val c[3] = { g->o->swap ? row : along, g->o->swap ? along : row, g->w.z };
		cptx_cp_async_bulk_tensor_store(k, g->w.in.map[CPTX_GEMM_MAP_D], cptx_pack(k, g->o->batched ? 3 : 2, c), out->piece,
		                                .dim = g->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D);
		cptx_cp_async_bulk_commit_group(k);
	}
	cptx_xor(k, out->piece, out->other, .into = out->piece);
}

static void send(const gemm100 *g, outgoing *out, cptx_val acc, cptx_val row)
{
	for (uint32_t col = 0; col < g->o->bn; col += g->s.out_cols)
		send_piece(g, out, acc, row, col);
}

static void find_place(const gemm100 *g, outgoing *out, cptx_val row)
{
	cptx_kernel *k = g->k;
	const cptx_gemm_opt *o = g->o;

	if (!o->beta && !o->bias && !o->epilogue)
		return;
	out->row = cptx_add(k, cptx_as(row, CPTX_U32), cptx_and(k, g->roles.tid, 31));
	out->col = cptx_as(g->w.n0, CPTX_U32);
	if (o->beta || (o->bias && o->swap))
		out->inside = cptx_setp(k, out->row, g->w.in.M, .cmp = CPTX_LT);
	if (o->beta)
		out->c_at = tma_gemm_c_at(k, &g->t, &g->w.p, o->swap ? out->col : out->row, o->swap ? out->row : out->col, g->w.z);
	if (o->beta && o->swap)
		out->c_step = cptx_mul_wide(k, g->w.p.N, g->s.out_bytes);
	if (o->bias && o->swap)
		out->bias = tma_gemm_load_one(k, cptx_add(k, g->w.p.bias, cptx_mul_wide(k, out->row, 4)), CPTX_F32, out->inside);
}

void gemm_sm100_bring_out(gemm100 *g)
{
	cptx_kernel *k = g->k;
	outgoing out = begin(g);

	CPTX_FOR(k, g->w.at, g->w.end, g->w.step) {
		tma_gemm_locate(k, &g->t, &g->w, MAPS_OF_D);
		cptx_val row = cptx_mad(k, cptx_as(g->roles.warp, CPTX_S32), 32, g->w.m0, .mode = CPTX_LO);
		find_place(g, &out, row);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_WAIT_SUMS, g->elected);
		cptx_pipe_wait_full(k, &g->accs, &out.acc);
		cptx_timeline_stamp_when(k, &g->line, CPTX_GEMM_BRING_OUT, g->elected);
		cptx_tcgen05_fence(k, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
		cptx_val acc = cptx_add(k, gemm_sm100_accumulator(g, &out.acc), out.lanes);
		if (g->o->stream_k) {
			cptx_val begins = cptx_setp(k, g->w.k_first, 0, .cmp = CPTX_EQ);
			CPTX_IF(k, begins) {
				out.others = gemm_sm100_wait_for_others(g);
				send(g, &out, acc, row);
			}
			CPTX_ELSE(k)
				gemm_sm100_leave(g, acc, &out.acc);
		} else {
			send(g, &out, acc, row);
		}
		cptx_pipe_next(k, &g->accs, &out.acc);
	}
	cptx_timeline_stamp_when(k, &g->line, CPTX_TIMELINE_END, g->elected);
	cptx_cp_async_bulk_wait_group(k, 0, .read = 1, .when = g->elected); /* shared memory ends with the CTA */
}
