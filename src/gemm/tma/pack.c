/* SPDX-License-Identifier: MIT */
/*
 * A and B whose rows are no multiples of 16 bytes (cptx_gemm_opt.unaligned): all CTAs copy them to the workspace, with rows
 * that are, and wait for one another; then the kernel goes on as always.
 *
 * A warp copies a part of a row at a time, as long as what is under way at once, each thread 16 bytes, out of the
 * two aligned chunks of 16 that they lie in.  So it reads up to 31 bytes beside a row, never beside the matrix: where these
 * chunks would, the 16 bytes are copied one by one.  Rows of the copy begin at lines of 128 bytes, as TMA took up to twice
 * as long for those that do not; what lies behind the end of one is never read.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

enum { CHUNK = 16, WORDS = 4, TURNS = 8 /* chunks of a thread that are under way at once */ };

/* A row of which a part is copied. */
typedef struct copied {
	cptx_val from, to;   /* .u64 addresses */
	cptx_val bytes, cut; /* .u32: of the row; where the part ends */
	cptx_val begin, end; /* .u64 addresses: of the matrix */
} copied;

static cptx_val wide(cptx_kernel *k, cptx_val v) { return cptx_cvt(k, v, .dtype = CPTX_U64); }

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, cptx_val b)
{
	return cptx_div(k, cptx_add(k, a, b.kind == CPTX_VAL_INT ? cptx_imm(b.i - 1) : cptx_sub(k, b, 1)), b);
}

/* The bytes from `at` on of the row, one by one. */
static void copy_bytes(cptx_kernel *k, const copied *row, cptx_val at)
{
	cptx_val i = cptx_var(k, CPTX_U32, at), end = cptx_min(k, cptx_add(k, at, CHUNK), row->bytes);

	CPTX_FOR(k, i, end, 1) {
		const cptx_val far = wide(k, i), v = cptx_ld(k, cptx_add(k, row->from, far), .space = CPTX_GLOBAL, .type = CPTX_U8);
		cptx_st(k, cptx_add(k, row->to, far), v, .space = CPTX_GLOBAL, .type = CPTX_U8);
	}
}

/* A chunk under way: two aligned ones of the matrix, in which it lies. */
typedef struct chunk {
	cptx_val word[2 * WORDS];
	cptx_val place, shift; /* .u32: bytes behind the begin of the row; bytes behind that of the first aligned chunk */
	cptx_val there, odd;   /* predicates: it is copied so; one by one */
} chunk;

static chunk load_chunk(cptx_kernel *k, const copied *row, cptx_val place)
{
	chunk c = { .place = place };
	const cptx_val from = cptx_add(k, row->from, wide(k, place)), all = cptx_regs(k, CPTX_B32, 2 * WORDS);
	const cptx_val first = cptx_as(cptx_and(k, from, ~UINT64_C(15), .type = CPTX_B64), CPTX_U64);
	const cptx_val inside = cptx_setp(k, place, row->cut, .cmp = CPTX_LT);
	const cptx_val begins = cptx_setp(k, first, row->begin, .cmp = CPTX_GE);
	const cptx_val ends = cptx_setp(k, cptx_add(k, first, 2 * CHUNK), row->end, .cmp = CPTX_LE);
	const cptx_val fits = cptx_and(k, begins, ends, .type = CPTX_PRED);

	c.there = cptx_and(k, inside, fits, .type = CPTX_PRED);
	c.odd = cptx_and(k, inside, cptx_not(k, fits, .type = CPTX_PRED), .type = CPTX_PRED);
	c.shift = cptx_and(k, cptx_cvt(k, from, .dtype = CPTX_U32), CHUNK - 1);
	for (uint32_t i = 0; i < 2; i++)
		cptx_ld(k, cptx_offset(first, CHUNK * i), .space = CPTX_GLOBAL, .type = CPTX_B32, .vec = CPTX_V4,
		        .into = cptx_slice(all, WORDS * i, WORDS), .when = c.there);
	for (uint32_t i = 0; i < 2 * WORDS; i++)
		c.word[i] = cptx_elem(all, i);
	return c;
}

/* The words are moved down by two, by one, as the shift says, then by the bytes that are left. */
static void store_chunk(cptx_kernel *k, const copied *row, const chunk *c)
{
	cptx_val v[2 * WORDS], out[WORDS];
	uint32_t n = 2 * WORDS;

	memcpy(v, c->word, sizeof v);
	for (uint32_t by = 2; by; by--) {
		const cptx_val moved = cptx_setp(k, cptx_and(k, c->shift, by * WORDS), 0, .cmp = CPTX_NE);
		n -= by;
		for (uint32_t i = 0; i < n; i++)
			v[i] = cptx_selp(k, v[i + by], v[i], moved, .type = CPTX_B32);
	}
	const cptx_val select = cptx_mad(k, cptx_and(k, c->shift, WORDS - 1), 0x1111, 0x3210, .mode = CPTX_LO);
	for (uint32_t i = 0; i < WORDS; i++)
		out[i] = cptx_prmt(k, v[i], v[i + 1], cptx_as(select, CPTX_B32));
	cptx_st(k, cptx_add(k, row->to, wide(k, c->place)), cptx_pack(k, WORDS, out), .space = CPTX_GLOBAL, .type = CPTX_B32,
	        .vec = CPTX_V4, .when = c->there);
	CPTX_IF(k, c->odd)
		copy_bytes(k, row, c->place);
}

/* TURNS chunks, of which this thread's first is `at` bytes behind the begin of the row: the loads of all, then the stores.
 */
static void copy_chunks(cptx_kernel *k, const copied *row, cptx_val at)
{
	chunk c[TURNS];

	for (uint32_t i = 0; i < TURNS; i++)
		c[i] = load_chunk(k, row, i ? cptx_add(k, at, i * CHUNK * CPTX_WARP) : at);
	for (uint32_t i = 0; i < TURNS; i++)
		store_chunk(k, row, &c[i]);
}

cptx_val tma_gemm_copy_pitch(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, bool of_b)
{
	const cptx_gemm_opt *o = t->o;
	const bool across = of_b ? o->b_n_major : o->a_m_major;
	const cptx_val cols = !across ? w->p.K : of_b ? w->p.N : w->p.M;
	const uint32_t bytes = tma_gemm_bits(of_b ? o->b : o->a) / 8;
	const cptx_val end = cptx_mad(k, cols, bytes, GEMM_COPY_LINE - 1, .mode = CPTX_LO);

	return cptx_and(k, end, ~(uint32_t)(GEMM_COPY_LINE - 1));
}

cptx_val tma_gemm_stored_rows(const tma_gemm *t, const tma_gemm_work *w, bool of_b)
{
	const bool across = of_b ? t->o->b_n_major : t->o->a_m_major;

	return across ? w->p.K : of_b ? w->p.N : w->p.M;
}

/* All rows of A or B; warp, warps: number of this one in the grid, and how many there are. */
static void copy_matrices(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, bool of_b, cptx_val warp,
                          cptx_val warps, cptx_val lane)
{
	const tma_gemm_distances *d = &w->p.of[of_b];
	const cptx_gemm_opt *o = t->o;
	const bool across = of_b ? o->b_n_major : o->a_m_major;
	const bool several = tma_gemm_has_matrices(t, of_b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A);
	/* of experts that have room for as many rows each, those of all */
	const bool all = !of_b && o->experts == CPTX_GEMM_EXPERTS_MASKED;
	const cptx_val rows = all ? cptx_mul(k, w->p.M, w->p.batch, .mode = CPTX_LO) : tma_gemm_stored_rows(t, w, of_b);
	const cptx_val cols = !across ? w->p.K : of_b ? w->p.N : w->p.M;
	const cptx_val pitch = tma_gemm_copy_pitch(k, t, w, of_b), z = cptx_var(k, CPTX_U32, 0), unit = cptx_reg(k, CPTX_U32);
	const cptx_val count = several ? cptx_add(k, d->last, 1) : cptx_imm(1);
	copied c = { .bytes = cptx_mul(k, cols, tma_gemm_bits(of_b ? o->b : o->a) / 8, .mode = CPTX_LO) };
	const cptx_val begin = cptx_var(k, CPTX_U64, d->from), to = cptx_var(k, CPTX_U64, d->copy);
	const cptx_val most =
		cptx_add(k, cptx_mul(k, wide(k, cptx_sub(k, rows, 1)), d->pitch, .mode = CPTX_LO), wide(k, c.bytes));
	/* equal parts of a row, of whole chunks: the fewest that a warp copies in one turn */
	const cptx_val chunks = cptx_shr(k, pitch, 4), parts = ceil_div(k, chunks, cptx_imm(TURNS * CPTX_WARP));
	const cptx_val each = cptx_shl(k, ceil_div(k, chunks, parts), 4), units = cptx_mul(k, rows, parts, .mode = CPTX_LO);

	CPTX_FOR(k, z, count, 1) {
		c.begin = begin, c.end = cptx_add(k, begin, most);
		cptx_mov(k, warp, .into = unit);
		CPTX_FOR(k, unit, units, warps) {
			const cptx_val row = cptx_div(k, unit, parts),
						   part = cptx_mul(k, cptx_rem(k, unit, parts), each, .mode = CPTX_LO);
			c.from = cptx_mad(k, wide(k, row), d->pitch, begin, .mode = CPTX_LO);
			c.to = cptx_mad_wide(k, row, pitch, to);
			c.cut = cptx_min(k, cptx_add(k, part, each), c.bytes);
			copy_chunks(k, &c, cptx_mad(k, lane, CHUNK, part, .mode = CPTX_LO));
		}
		if (several)
			cptx_add(k, begin, d->step, .into = begin);
		cptx_mad_wide(k, rows, pitch, to, .into = to);
	}
}

/* A barrier of the grid: behind it all CTAs see what each wrote in front of it.  A count of those that came and, behind it,
 * that of the barriers there were: the last CTA sets the first one back.  All CTAs are resident at once. */
static void grid_barrier(cptx_kernel *k, cptx_val at, cptx_val tid)
{
	cptx_bar_sync(k, 0);
	CPTX_IF(k, cptx_setp(k, tid, 0, .cmp = CPTX_EQ)) {
		const cptx_val turn = cptx_offset(at, 4), last = cptx_sub(k, cptx_nctaid_x(k), 1);
		cptx_val before = cptx_ld(k, turn, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
		cptx_val came = cptx_atom(k, at, 1, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .op = CPTX_ADD,
		                          .type = CPTX_U32);
		CPTX_IF(k, cptx_setp(k, came, last, .cmp = CPTX_EQ)) {
			cptx_st(k, at, 0, .sem = CPTX_RELAXED, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
			cptx_st(k, turn, cptx_add(k, before, 1), .sem = CPTX_RELEASE, .scope = CPTX_GPU, .space = CPTX_GLOBAL,
			        .type = CPTX_U32);
		}
		CPTX_ELSE(k) {
			CPTX_DO(k)
			{
				cptx_val now =
					cptx_ld(k, turn, .sem = CPTX_ACQUIRE, .scope = CPTX_GPU, .space = CPTX_GLOBAL, .type = CPTX_U32);
				cptx_continue_when(k, cptx_setp(k, now, before, .cmp = CPTX_EQ));
			}
		}
	}
	cptx_bar_sync(k, 0);
}

void tma_gemm_copy_unaligned(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid)
{
	bool by_tma = false;

	if (!tma_gemm_is_copied(t, GEMM_A) && !tma_gemm_is_copied(t, GEMM_B))
		return;
	const cptx_val of_cta = cptx_shr(k, cptx_ntid_x(k), 5), lane = cptx_and(k, tid, CPTX_WARP - 1);
	const cptx_val warps = cptx_mul(k, of_cta, cptx_nctaid_x(k), .mode = CPTX_LO);
	const cptx_val warp = cptx_mad(k, cptx_ctaid_x(k), of_cta, cptx_shr(k, tid, 5), .mode = CPTX_LO);
	for (int b = 0; b < 2; b++) {
		if (!tma_gemm_is_copied(t, b ? GEMM_B : GEMM_A))
			continue;
		copy_matrices(k, t, w, b, warp, warps, lane);
		by_tma |= tma_gemm_is_map(t, b ? CPTX_GEMM_MAP_B : CPTX_GEMM_MAP_A);
	}
	if (by_tma) /* which reads by another proxy what is written here: a fence of those that write, and of those that read */
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_GLOBAL);
	grid_barrier(k, w->p.barrier, tid);
	if (by_tma)
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_GLOBAL);
}
