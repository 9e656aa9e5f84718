/* SPDX-License-Identifier: MIT */
#include "hgemm_parts.h"

enum { CHUNK = 16 /* bytes of a copy, of a row of ldmatrix */, HALF = 2 /* bytes of an element */, LINE = 128 /* bytes */ };

/* ---- shapes ---- */

bool hgemm_stays(enum hgemm_rung rung, const hgemm_opt *o)
{
	return rung == HGEMM_TMA_RW || (rung == HGEMM_TMA_R && o->stay);
}

uint32_t hgemm_ring_bytes(enum hgemm_rung rung, const hgemm_opt *o)
{
	hgemm_tiles t = hgemm_tiles_of(o);
	uint32_t ring = o->stages * t.stage_bytes, c = t.warps * t.c_bytes;

	return !hgemm_stays(rung, o) && c > ring ? c : ring;
}

hgemm_tiles hgemm_tiles_of(const hgemm_opt *o)
{
	hgemm_tiles t = { .warps = o->warps_m * o->warps_n };
	cptx_smem_elem half = { .bits = 16 }, half_n = { .bits = 16, .mn_major = true };

	t.a = (cptx_tile){
		.rows = o->bm, .cols = o->bk, .elem = half, .swizzle = o->bk == 32 ? CPTX_SWIZZLE_64B : CPTX_SWIZZLE_128B
	};
	t.b = (cptx_tile){ .rows = o->bn, .cols = o->bk, .elem = half_n, .swizzle = CPTX_SWIZZLE_128B };
	t.c = (cptx_tile){ .rows = o->bm / o->warps_m, .cols = o->bn / o->warps_n, .elem = half, .swizzle = CPTX_SWIZZLE_128B };
	t.a_bytes = cptx_tile_bytes(&t.a);
	t.stage_bytes = t.a_bytes + cptx_tile_bytes(&t.b);
	t.c_bytes = cptx_tile_bytes(&t.c);
	return t;
}

/* Finds how stmatrix stores 16 x 16 elements at once. */
static bool find_lines(hgemm *h, cptx_error *err)
{
	const cptx_frag c = { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 16, .beside = 2 };

	return cptx_tile_lines(&h->t.c, &c, 0, 0, &h->lines_c, err);
}

void hgemm_begin(hgemm *h, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o, uint32_t more)
{
	cptx_error err = { 0 };

	*h = (hgemm){ .o = o, .t = hgemm_tiles_of(o), .steps = o->bk / HGEMM_MMA };
	h->mi = h->t.c.rows / HGEMM_MMA, h->nj = h->t.c.cols / HGEMM_MMA;
	h->k = cptx_kernel_begin(m, hgemm_name(rung), .block = { (h->t.warps + more) * CPTX_WARP }, .min_ctas = 1,
	                         .max_regs = o->most_regs);
	if (!find_lines(h, &err))
		cptx_fail(h->k, "%s", err.text);
}

/* Divides by a constant by a multiplication, because ptxas has no short form for that. */
static cptx_val quotient(cptx_kernel *k, cptx_val a, uint32_t b)
{
	uint32_t bits = 0;

	while (1u << bits < b)
		bits++;
	return 1u << bits == b ? cptx_shr(k, a, bits) : cptx_div(k, a, b);
}

static cptx_val remainder_of(cptx_kernel *k, cptx_val a, uint32_t b)
{
	return b & (b - 1) ? cptx_rem(k, a, b) : cptx_and(k, a, b - 1);
}

static cptx_val ceil_div(cptx_kernel *k, cptx_val a, uint32_t b) { return quotient(k, cptx_add(k, a, b - 1), b); }

void hgemm_sizes(hgemm *h, enum hgemm_rung rung)
{
	cptx_kernel *k = h->k;

	h->M = cptx_param(k, CPTX_U32, "M");
	h->N = cptx_param(k, CPTX_U32, "N");
	h->K = cptx_param(k, CPTX_U32, "K");
	h->ring = cptx_mov(k, cptx_shared_dyn(k, hgemm_ring_bytes(rung, h->o), 1024, "ring"), .type = CPTX_U32);
	h->tid = cptx_tid_x(k);
	h->lane = cptx_and(k, h->tid, 31);
	h->warp = cptx_shr(k, h->tid, 5);
	h->m0 = cptx_reg(k, CPTX_U32), h->n0 = cptx_reg(k, CPTX_U32);
}

cptx_val hgemm_k_tiles(const hgemm *h) { return ceil_div(h->k, h->K, h->o->bk); }

/* ---- grid swizzle ---- */

cptx_val hgemm_tiles_all(const hgemm *h)
{
	return cptx_mul(h->k, ceil_div(h->k, h->M, h->o->bm), ceil_div(h->k, h->N, h->o->bn), .mode = CPTX_LO);
}

/* Sets m0 and n0.  A group is some rows of tiles, in which tiles are numbered down the columns.  The last group may have
 * fewer rows. */
void hgemm_tile(hgemm *h, cptx_val id)
{
	cptx_kernel *k = h->k;
	uint32_t group = h->o->group ? h->o->group : 8;
	cptx_val in_group = cptx_mul(k, ceil_div(k, h->N, h->o->bn), group, .mode = CPTX_LO);
	cptx_val nth = cptx_div(k, id, in_group), top = cptx_mul(k, nth, group, .mode = CPTX_LO);
	cptx_val rest = cptx_sub(k, id, cptx_mul(k, nth, in_group, .mode = CPTX_LO));
	cptx_val rows = cptx_min(k, cptx_sub(k, ceil_div(k, h->M, h->o->bm), top), group), column = cptx_div(k, rest, rows);
	cptx_val row = cptx_sub(k, cptx_add(k, top, rest), cptx_mul(k, column, rows, .mode = CPTX_LO));

	cptx_mul(k, row, h->o->bm, .mode = CPTX_LO, .into = h->m0);
	cptx_mul(k, column, h->o->bn, .mode = CPTX_LO, .into = h->n0);
}

/* The number of tiles is computed again for each test: registers are dearer than a few instructions. */
cptx_val hgemm_has_tile(const hgemm *h, cptx_val id) { return cptx_setp(h->k, id, hgemm_tiles_all(h), .cmp = CPTX_LT); }

void hgemm_next_tile(const hgemm *h, cptx_val id) { cptx_add(h->k, id, cptx_nctaid_x(h->k), .into = id); }

/* ---- ldmatrix, mma.sync ---- */

void hgemm_warp_part(hgemm *h, cptx_val warp)
{
	h->warp_m = cptx_mul(h->k, quotient(h->k, warp, h->o->warps_n), h->t.c.rows, .mode = CPTX_LO);
	h->warp_n = cptx_mul(h->k, remainder_of(h->k, warp, h->o->warps_n), h->t.c.cols, .mode = CPTX_LO);
}

void hgemm_fragments(hgemm *h)
{
	cptx_kernel *k = h->k;
	const hgemm_tiles *t = &h->t;
	const hgemm_opt *o = h->o;

	cptx_tiled_mma_new(k, &h->mma, .by = CPTX_BY_MMA_SYNC, .a = o->type, .b = o->type, .m = t->c.rows, .n = t->c.cols,
	                   .units_m = o->warps_m, .units_n = o->warps_n, .a_tile = t->a, .b_tile = t->b, .unit = h->warp,
	                   .thread = h->lane, .a_base = h->ring, .b_base = cptx_offset(h->ring, t->a_bytes),
	                   .few_regs = o->most_regs);
	h->warp_m = h->mma.row, h->warp_n = h->mma.col;
	cptx_acc_new(k, &h->mma, &h->acc);
	cptx_mma_frags_new(k, &h->mma, &h->frags, o->rolling);
	h->offset = cptx_var(k, CPTX_U32, 0);
}

void hgemm_load(const hgemm *h, cptx_val stage) { cptx_mma_fetch(h->k, &h->mma, &h->frags, stage, stage); }

void hgemm_step(const hgemm *h, uint32_t step, cptx_val stage, cptx_val next)
{
	cptx_mma_tile(h->k, &h->mma, &h->acc, stage, stage, .frags = &h->frags, .first = step, .steps = 1, .next_a = next,
	              .next_b = next, .along_m = h->o->along_m);
}

/* ---- cp.async ---- */

/* The place of byte tid * 16 of a swizzled tile; further passes lie whole patterns behind. */
static cptx_val thread_place(const hgemm *h, enum cptx_swizzle swizzle)
{
	uint32_t bits = 0, value[10] = { 0 }; /* a CTA has up to 1024 threads */

	for (; 1u << bits < h->t.warps * CPTX_WARP; bits++)
		value[bits] = cptx_swizzle_address(swizzle, CHUNK << bits);
	return cptx_lane_bits(h->k, h->tid, bits, value, false, CPTX_V(h->ring));
}

static void copies_begin(hgemm *h, hgemm_copies *c, cptx_val a, cptx_val b)
{
	cptx_kernel *k = h->k;
	uint32_t threads = h->t.warps * CPTX_WARP, in_row = h->o->bk * HALF / CHUNK, bk = h->o->bk;
	uint32_t rows_a = threads / in_row, lines_b = threads * CHUNK / LINE;
	cptx_val pitch_a = cptx_shl(k, h->K, 1), pitch_b = cptx_shl(k, h->N, 1);
	cptx_val row_a = quotient(k, h->tid, in_row), line_b = cptx_shr(k, h->tid, 3), most_m, most_n;

	*c = (hgemm_copies){ .na = h->t.a_bytes / (threads * CHUNK) };
	c->nb = (h->t.stage_bytes - h->t.a_bytes) / (threads * CHUNK);
	c->to = thread_place(h, h->t.a.swizzle);
	c->to_b = h->t.a.swizzle == h->t.b.swizzle ? c->to : thread_place(h, h->t.b.swizzle);
	c->k_left = cptx_var(k, CPTX_S32, cptx_as(h->K, CPTX_S32));
	c->k_a = cptx_as(cptx_shl(k, remainder_of(k, h->tid, in_row), 3), CPTX_S32);
	c->k_b = cptx_as(remainder_of(k, line_b, bk), CPTX_S32);
	/* Rows and columns behind the matrix repeat its last ones: they are read and never stored. */
	most_m = cptx_sub(k, cptx_sub(k, h->M, 1), h->m0), most_n = cptx_sub(k, cptx_sub(k, h->N, 8), h->n0);
	c->off_a = cptx_regs(k, CPTX_U32, c->na);
	for (uint32_t i = 0; i < c->na; i++)
		cptx_mad(k, cptx_min(k, cptx_add(k, row_a, i * rows_a), most_m), pitch_a, cptx_shl(k, cptx_as(c->k_a, CPTX_U32), 1),
		         .mode = CPTX_LO, .into = cptx_elem(c->off_a, i));
	cptx_val column = cptx_add(k, cptx_mul(k, quotient(k, line_b, bk), HGEMM_SPAN, .mode = CPTX_LO),
	                           cptx_shl(k, cptx_and(k, h->tid, 7), 3));
	c->off_b = cptx_regs(k, CPTX_U32, c->nb);
	for (uint32_t i = 0; i < c->nb; i++) {
		cptx_val at = cptx_min(k, cptx_add(k, column, i * lines_b / bk * HGEMM_SPAN), most_n);
		cptx_val row = cptx_add(k, cptx_as(c->k_b, CPTX_U32), i * lines_b % bk);
		cptx_mad(k, row, pitch_b, cptx_shl(k, at, 1), .mode = CPTX_LO, .into = cptx_elem(c->off_b, i));
	}
	c->pa = cptx_mad_wide(k, h->m0, pitch_a, a);
	c->pb = cptx_add(k, b, cptx_mul_wide(k, h->n0, HALF));
	c->step_b = cptx_mul_wide(k, pitch_b, bk);
}

cptx_val hgemm_begin_copies(hgemm *h, hgemm_copies *c, cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o)
{
	hgemm_begin(h, m, rung, o, 0);
	cptx_val a = cptx_param(h->k, CPTX_PTR, "A"), b = cptx_param(h->k, CPTX_PTR, "B"), to = cptx_param(h->k, CPTX_PTR, "C");
	hgemm_sizes(h, rung);
	hgemm_tile(h, cptx_ctaid_x(h->k));
	hgemm_fragments(h);
	copies_begin(h, c, a, b);
	cptx_acc_clear(h->k, &h->acc);
	return to;
}

/* Bytes to read for row or column `at` of the k-tile: 16, or 0 behind K, where cp.async reads nothing and writes zeros. */
static cptx_val source_bytes(const hgemm *h, const hgemm_copies *c, cptx_val at)
{
	return cptx_selp(h->k, CHUNK, 0, cptx_setp(h->k, c->k_left, at, .cmp = CPTX_GT), .type = CPTX_U32);
}

void hgemm_copy(const hgemm *h, const hgemm_copies *c, cptx_val stage, uint32_t from, uint32_t to)
{
	cptx_kernel *k = h->k;
	uint32_t pass = h->t.warps * CPTX_WARP * CHUNK;
	cptx_val to_a = cptx_add(k, c->to, stage), to_b = cptx_add(k, c->to_b, stage), bytes = { 0 };

	for (uint32_t i = from; i < to; i++) {
		bool is_a = i < c->na;
		uint32_t n = is_a ? i : i - c->na, row = n * (pass / LINE) % h->o->bk;
		if (i == from || !is_a)
			bytes = source_bytes(h, c, is_a ? c->k_a : row ? cptx_add(k, c->k_b, row) : c->k_b);
		cptx_val offset = cptx_cvt(k, cptx_elem(is_a ? c->off_a : c->off_b, n), .dtype = CPTX_U64);
		cptx_cp_async(k, cptx_offset(is_a ? to_a : to_b, n * pass + (is_a ? 0 : h->t.a_bytes)),
		              cptx_add(k, is_a ? c->pa : c->pb, offset), CHUNK, .cop = CPTX_CG, .l2 = CPTX_L2_128B,
		              .src_size = bytes);
	}
}

void hgemm_copies_next(const hgemm *h, hgemm_copies *c)
{
	cptx_add(h->k, c->pa, h->o->bk * HALF, .into = c->pa);
	cptx_add(h->k, c->pb, c->step_b, .into = c->pb);
	cptx_sub(h->k, c->k_left, h->o->bk, .into = c->k_left);
}

/* ---- TMA ---- */

cptx_val hgemm_map(const hgemm *h, const char *name)
{
	cptx_val at = cptx_param_bytes(h->k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, name);
	cptx_val map = cptx_cvta(h->k, cptx_mov(h->k, at, .type = CPTX_U64), .space = CPTX_PARAM);

	cptx_prefetch(h->k, map, .tensormap = CPTX_TENSORMAP, .when = cptx_setp(h->k, cptx_tid_x(h->k), 0, .cmp = CPTX_EQ));
	return map;
}

/* Copies all boxes of a tile. */
static void copy_boxes(const hgemm *h, const cptx_tile *tile, cptx_val to, cptx_val map, cptx_val x, cptx_val y,
                       const cptx_pipe_at *at)
{
	cptx_kernel *k = h->k;
	cptx_tile_boxes boxes = { 0 };

	cptx_tile_get_boxes(tile, &boxes, NULL);
	for (uint32_t i = 0; i < boxes.count[0]; i++) {
		cptx_val here = i ? cptx_add(k, x, i * boxes.box[0]) : x;
		/* .shared::cta, because for .shared::cluster ptxas calls a function on sm_12x */
		cptx_cp_async_bulk_tensor_load(k, cptx_offset(to, i * boxes.bytes), map,
		                               cptx_vec(k, cptx_as(here, CPTX_S32), cptx_as(y, CPTX_S32)), cptx_pipe_full(at),
		                               .dim = CPTX_DIM_2D, .dst = CPTX_SHARED_CTA);
	}
}

/*
 * The number of producer warps.  Each quarter of a multiprocessor divides its registers among its warps: with a ninth warp
 * each of eight MMA warps could have only a third of them.  So with setmaxnreg the producer is a warpgroup, which hands its
 * registers over.
 */
uint32_t hgemm_producers(const hgemm_opt *o) { return o->consumer_regs ? 4 : 1; }

void hgemm_take_registers(const hgemm *h, bool producer)
{
	if (h->o->consumer_regs && producer)
		cptx_setmaxnreg(h->k, HGEMM_PRODUCER_REGS, .op = CPTX_DEC);
	else if (h->o->consumer_regs)
		cptx_setmaxnreg(h->k, h->o->consumer_regs, .op = CPTX_INC);
}

cptx_val hgemm_is_producer(const hgemm *h) { return cptx_setp(h->k, h->warp, h->t.warps, .cmp = CPTX_GE); }

cptx_val hgemm_elected(const hgemm *h)
{
	cptx_val p = cptx_reg(h->k, CPTX_PRED);

	cptx_elect_sync(h->k, -1, .p = p, .into = cptx_sink());
	return p;
}

/* A predicate: the thread is the one that issues TMA loads, among those of the producer warps. */
cptx_val hgemm_produces(const hgemm *h)
{
	cptx_val first = cptx_setp(h->k, h->warp, h->t.warps, .cmp = CPTX_EQ);

	return cptx_and(h->k, first, hgemm_elected(h), .type = CPTX_PRED);
}

void hgemm_produce(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val map_a, cptx_val map_b)
{
	cptx_kernel *k = h->k;
	cptx_val at_k = cptx_var(k, CPTX_U32, 0);

	CPTX_FOR(k, at_k, h->K, h->o->bk) {
		cptx_val stage = cptx_mad(k, at->stage, h->t.stage_bytes, h->ring, .mode = CPTX_LO);
		cptx_pipe_wait_empty(k, p, at);
		cptx_pipe_expect(k, p, at, h->t.stage_bytes);
		copy_boxes(h, &h->t.a, stage, map_a, at_k, h->m0, at);
		copy_boxes(h, &h->t.b, cptx_offset(stage, h->t.a_bytes), map_b, h->n0, at_k, at);
		cptx_pipe_next(k, p, at);
	}
}

void hgemm_produce_all(hgemm *h, const cptx_pipe *p, cptx_val map_a, cptx_val map_b)
{
	cptx_kernel *k = h->k;
	cptx_val id = cptx_var(k, CPTX_U32, cptx_ctaid_x(k));
	cptx_pipe_at at = cptx_pipe_producer(k, p);

	CPTX_WHILE(k, hgemm_has_tile(h, id)) {
		hgemm_tile(h, id);
		hgemm_produce(h, p, &at, map_a, map_b);
		hgemm_next_tile(h, id);
	}
}

/* The offset is incremented, not computed as stage * bytes: then ptxas keeps it in a uniform register, which ldmatrix adds
 * at no cost. */
static void next_offset(const hgemm *h)
{
	cptx_val next = cptx_add(h->k, h->offset, h->t.stage_bytes);
	uint32_t end = h->o->stages * h->t.stage_bytes;

	cptx_selp(h->k, 0, next, cptx_setp(h->k, next, end, .cmp = CPTX_EQ), .type = CPTX_U32, .into = h->offset);
}

/*
 * Multiplies a k-tile, whose first fragments are there already; its last step fetches the first ones of the next k-tile, of
 * the same tile or of the next.  The test whether that k-tile has arrived is made a step earlier, so that its result is not
 * waited for.
 */
static void k_tile(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val releases, bool last, cptx_val another)
{
	cptx_kernel *k = h->k;
	const cptx_val none = { 0 };
	cptx_val there = none;

	for (uint32_t step = 0; step + 2 < h->steps; step++)
		hgemm_step(h, step, h->offset, none);
	cptx_pipe_at ahead = cptx_pipe_ahead(k, p, at);
	if (!last)
		there = cptx_pipe_is_full(k, &ahead);
	hgemm_step(h, h->steps - 2, h->offset, none);
	cptx_bar_warp_sync(k, -1);
	cptx_pipe_release(k, p, at, releases);
	cptx_pipe_go(k, at, &ahead);
	next_offset(h);
	if (!last) {
		CPTX_IF(k, cptx_negated(there))
			cptx_pipe_wait_full(k, p, at);
	} else if (another.kind) {
		CPTX_IF(k, another)
			hgemm_consume_first(h, p, at);
	}
	hgemm_step(h, h->steps - 1, h->offset, last ? none : h->offset);
}

void hgemm_consume_first(const hgemm *h, const cptx_pipe *p, const cptx_pipe_at *at)
{
	cptx_pipe_wait_full(h->k, p, at);
	hgemm_load(h, h->offset);
}

void hgemm_consume(const hgemm *h, const cptx_pipe *p, cptx_pipe_at *at, cptx_val releases, cptx_val another)
{
	cptx_kernel *k = h->k;
	cptx_val i = cptx_var(k, CPTX_U32, 1);

	cptx_acc_clear(k, &h->acc);
	cptx_val tiles = hgemm_k_tiles(h);
	CPTX_FOR(k, i, tiles, 1)
		k_tile(h, p, at, releases, false, another);
	k_tile(h, p, at, releases, true, another);
}

/* ---- C ---- */

cptx_val hgemm_own_c(const hgemm *h)
{
	return cptx_mov(h->k, cptx_shared_dyn(h->k, h->t.warps * h->t.c_bytes, 1024, "c"), .type = CPTX_U32);
}

cptx_val hgemm_part_of(const hgemm *h, cptx_val own_c, cptx_val warp)
{
	return cptx_mad(h->k, warp, h->t.c_bytes, own_c, .mode = CPTX_LO);
}

/* Rounds two neighbours of a row into one register; e, 0 to 3, numbers the registers of 16 x 16 elements. */
static cptx_val rounded(const hgemm *h, uint32_t i, uint32_t j, uint32_t e)
{
	uint32_t at = (i * h->nj * 2 + j * 2 + e / 2) * 4 + e % 2 * 2;
	enum cptx_type pair = h->o->type == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;

	return cptx_as(
		cptx_cvt(h->k, cptx_elem(h->acc.regs, at + 1), .rnd = CPTX_RN, .dtype = pair, .b = cptx_elem(h->acc.regs, at)),
		CPTX_B32);
}

/* The place in the tile of C, in bytes, of a lane whose number's bit i moves it by row[i] and col[i]. */
static cptx_val lane_place(const hgemm *h, const uint8_t row[5], const uint8_t col[5], cptx_val start)
{
	uint32_t value[5];

	for (int i = 0; i < 5; i++)
		value[i] = cptx_tile_at(&h->t.c, row[i], col[i]).byte;
	return cptx_lane_bits(h->k, h->lane, 5, value, false, start);
}

/* The place `row` rows and `col` columns further on: a constant, and a flip of the swizzle's bits. */
static cptx_val place_at(const hgemm *h, cptx_val lane_at, uint32_t row, uint32_t col)
{
	uint32_t offset = cptx_tile_at(&h->t.c, row, col).byte, flip = offset % LINE;

	return cptx_offset(flip ? cptx_xor(h->k, lane_at, flip) : lane_at, offset - flip);
}

static void round_by_stmatrix(const hgemm *h, cptx_val to)
{
	cptx_kernel *k = h->k;
	cptx_lane_lines at;

	cptx_lane_lines_begin(k, &at, &h->lines_c, h->lane, to);
	for (uint32_t i = 0; i < h->mi; i++)
		for (uint32_t j = 0; j < h->nj; j++) {
			cptx_val v = cptx_vec(k, rounded(h, i, j, 0), rounded(h, i, j, 1), rounded(h, i, j, 2), rounded(h, i, j, 3));
			cptx_stmatrix(k, cptx_lane_lines_at(k, &at, 0, i * HGEMM_MMA, j * HGEMM_MMA), v, .space = CPTX_SHARED);
		}
}

void hgemm_round(const hgemm *h, cptx_val to)
{
	/* lanes of an accumulator: 2 columns each, 4 side by side, 8 rows */
	static const uint8_t row[] = { 0, 0, 1, 2, 4 }, col[] = { 2, 4, 0, 0, 0 };

	if (h->o->stmatrix) {
		round_by_stmatrix(h, to);
		return;
	}
	cptx_val at = lane_place(h, row, col, to);
	for (uint32_t j = 0; j < h->nj * 2; j++)
		for (uint32_t i = 0; i < h->mi * 2; i++)
			cptx_st(h->k, place_at(h, at, i * 8, j * 8), rounded(h, i / 2, j / 2, i % 2 + j % 2 * 2), .space = CPTX_SHARED);
}

/* Writes the warp's part to C; each access of a lane has 16 bytes, and of a warp 4 rows of 128 bytes. */
void hgemm_write(const hgemm *h, cptx_val from, cptx_val c)
{
	static const uint8_t row[] = { 0, 0, 0, 1, 2 }, col[] = { 8, 16, 32, 0, 0 };
	cptx_kernel *k = h->k;
	cptx_val at = lane_place(h, row, col, from), first = cptx_add(k, cptx_add(k, h->m0, h->warp_m), cptx_shr(k, h->lane, 3));
	cptx_val column = cptx_add(k, cptx_add(k, h->n0, h->warp_n), cptx_shl(k, cptx_and(k, h->lane, 7), 3));
	cptx_val pitch = cptx_mul_wide(k, h->N, HALF), p = cptx_add(k, c, cptx_mul_wide(k, column, HALF));
	cptx_val rows = cptx_sub(k, cptx_as(h->M, CPTX_S32), cptx_as(first, CPTX_S32));

	cptx_mad(k, cptx_cvt(k, first, .dtype = CPTX_U64), pitch, p, .mode = CPTX_LO, .into = p);
	cptx_shl(k, pitch, 2, .into = pitch);
	for (uint32_t i = 0; i < h->t.c.rows; i += 4, cptx_add(k, p, pitch, .into = p))
		for (uint32_t j = 0; j < h->t.c.cols; j += HGEMM_SPAN) {
			cptx_val left = cptx_selp(k, rows, 0, cptx_setp(k, cptx_add(k, column, j), h->N, .cmp = CPTX_LT));
			cptx_val v = cptx_ld(k, place_at(h, at, i, j), .space = CPTX_SHARED, .type = CPTX_B32, .vec = CPTX_V4);
			cptx_st(k, cptx_offset(p, j * HALF), v, .space = CPTX_GLOBAL, .type = CPTX_B32,
			        .when = cptx_setp(k, left, i, .cmp = CPTX_GT));
		}
}

void hgemm_finish(const hgemm *h, cptx_val c)
{
	cptx_kernel *k = h->k;
	cptx_val part = hgemm_part_of(h, h->ring, h->warp);

	cptx_bar_sync(k, 1, .b = cptx_imm(h->t.warps * CPTX_WARP));
	hgemm_round(h, part);
	cptx_bar_warp_sync(k, -1);
	hgemm_write(h, part, c);
}
