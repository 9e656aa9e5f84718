/* SPDX-License-Identifier: MIT */
/*
 * Tiles by mma.sync: fragments come by ldmatrix, each step's own or, with cptx_mma_frags, a step ahead.
 */
#include "kit/mma.h"

#include <cptx/cptx.h>

typedef struct sync_tile {
	const cptx_tiled_mma *mma;
	const cptx_acc *acc;
	const cptx_mma_tile_opt *o;
	bool a_shared;
	cptx_lane_lines a, b; /* of this tile */
	cptx_val a64, b64;    /* of f64: where the lane reads */
} sync_tile;

/* Registers of the fragments of one step. */
typedef struct sync_frags {
	cptx_val a, b;
} sync_frags;

static bool is_a_shared(const cptx_tiled_mma *mma) { return mma->opt.a_from == CPTX_A_SHARED; }

static uint32_t a_regs(const cptx_tiled_mma *mma)
{
	if (kit_is_f64(mma))
		return mma->opt.m / KIT_F64_ROWS * KIT_F64_REGS;
	return mma->opt.m / 16 * mma->a_lines.count * mma->a_lines.num;
}

static uint32_t b_regs(const cptx_tiled_mma *mma)
{
	if (kit_is_f64(mma))
		return mma->opt.n / KIT_F64_ROWS * KIT_F64_REGS;
	return mma->opt.n / kit_rows_of_b(mma) * mma->b_lines.count * mma->b_lines.num;
}

static sync_frags new_frags(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma)
{
	const enum cptx_type type = kit_is_f64(mma) ? CPTX_F64 : CPTX_B32;
	sync_frags f = { .a = { 0 } };

	if (is_a_shared(mma))
		f.a = cptx_regs_(k, at, type, a_regs(mma));
	f.b = cptx_regs_(k, at, type, b_regs(mma));
	return f;
}

static sync_frags frags_of(const cptx_mma_frags *f, uint32_t step) { return (sync_frags){ f->a[step % 2], f->b[step % 2] }; }

/* ---- ldmatrix ---- */

static cptx_lane_lines lines_in(cptx_kernel *k, cptx_site at, const cptx_lane_lines *l, const cptx_lines *lines,
                                cptx_val address)
{
	cptx_lane_lines here = *l;

	here.lines = lines;
	return cptx_lane_lines_moved_(k, at, &here, address);
}

/* Finds the lane's addresses in a tile.  False: an address was none, and the module has the error. */
static bool begin_tile(cptx_kernel *k, cptx_site at, sync_tile *t, cptx_val a, cptx_val b)
{
	t->a_shared = is_a_shared(t->mma);
	if (kit_is_f64(t->mma)) {
		t->a64 = CALL(add, .a = t->mma->a_first, .b = kit_plain(k, at, a));
		t->b64 = CALL(add, .a = t->mma->b_first, .b = kit_plain(k, at, b));
		return true;
	}
	if (t->a_shared)
		t->a = lines_in(k, at, &t->mma->a_lanes, &t->mma->a_lines, kit_plain(k, at, a));
	t->b = lines_in(k, at, &t->mma->b_lanes, &t->mma->b_lines, kit_plain(k, at, b));
	return (!t->a_shared || t->a.lines) && t->b.lines;
}

/* Loads fragment number i of a step. */
static void load_one(cptx_kernel *k, cptx_site at, cptx_lane_lines *l, uint32_t i, uint32_t rows, uint32_t col, cptx_val to)
{
	const uint32_t each = l->lines->count * l->lines->num;

	for (uint32_t n = 0; n < l->lines->count; n++)
		cptx_lines_move_(k, at, l->lines, n, cptx_lane_lines_at_(k, at, l, n, i * rows, col), cptx_slice(to, i * each, each),
		                 false);
}

static void load_a(cptx_kernel *k, cptx_site at, sync_tile *t, uint32_t i, uint32_t step, cptx_val to)
{
	for (uint32_t half = 0; half < 2 && kit_is_f64(t->mma); half++)
		kit_f64_load(k, at, &t->mma->opt.a_tile, t->a64, 2 * i + half, step, to);
	if (!kit_is_f64(t->mma))
		load_one(k, at, &t->a, i, 16, step * kit_depth_of_a(t->mma), to);
}

static void load_b(cptx_kernel *k, cptx_site at, sync_tile *t, uint32_t j, uint32_t step, cptx_val to)
{
	if (kit_is_f64(t->mma))
		kit_f64_load(k, at, &t->mma->opt.b_tile, t->b64, j, step, to);
	else
		load_one(k, at, &t->b, j, kit_rows_of_b(t->mma), step * t->mma->depth, to);
}

static void load_step(cptx_kernel *k, cptx_site at, sync_tile *t, uint32_t step, sync_frags to)
{
	for (uint32_t i = 0; t->a_shared && i < t->mma->opt.m / 16; i++)
		load_a(k, at, t, i, step, to.a);
	for (uint32_t j = 0; j < t->mma->opt.n / kit_rows_of_b(t->mma); j++)
		load_b(k, at, t, j, step, to.b);
}

/* ---- mma.sync ---- */

/* The product of fragments i of A and j of B of a step. */
static void multiply_one(cptx_kernel *k, cptx_site at, const sync_tile *t, uint32_t step, sync_frags f, uint32_t i,
                         uint32_t j)
{
	const cptx_tiled_mma_opt *o = &t->mma->opt;
	const uint32_t na = t->mma->a_map.regs, nb = o->sparse ? na : na / 2, nd = t->mma->d_map.regs;
	const cptx_val d = cptx_slice(t->acc->regs, (i * t->acc->atoms_n + j) * nd, nd);

	if (kit_is_f64(t->mma)) {
		kit_f64_multiply(k, at, t->mma, f.a, f.b, i, j, d);
		return;
	}
	const cptx_val a = cptx_slice(f.a, i * na, na), b = cptx_slice(f.b, j * nb, nb);
	const uint16_t shape = (uint16_t)t->mma->shape, dtype = (uint16_t)t->acc->type, atype = (uint16_t)o->a;
	const uint16_t btype = (uint16_t)(cptx_type_bits(o->a) == 8 ? o->b : 0); /* which only types of 8 bits have */

	if (!o->sparse) {
		CALL(mma, .a = a, .b = b, .c = d, .into = d, .shape = shape, .dtype = dtype, .atype = atype, .btype = btype);
		return;
	}
	const kit_meta meta = kit_meta_of(t->mma, t->o->meta, t->acc->atoms_m, i, step);
	CALL(mma_sp, .a = a, .b = b, .c = d, .meta = meta.word, .sel = cptx_imm(meta.select), .into = d,
	     .sp = CPTX_SP_ORDERED_METADATA, .shape = shape, .dtype = dtype, .atype = atype, .btype = btype);
}

static void multiply_step(cptx_kernel *k, cptx_site at, const sync_tile *t, uint32_t step, sync_frags f)
{
	for (uint32_t x = 0; x < t->acc->atoms_m * t->acc->atoms_n; x++) {
		const kit_atom here = kit_atom_at(t->acc, x, t->o->along_m);
		multiply_one(k, at, t, step, f, here.i, here.j);
	}
}

/* Multiplies a step with one set of fragments: each is fetched anew behind its last use, B first, for a step of `next`.
 * next NULL: none is. */
static void multiply_rolling(cptx_kernel *k, cptx_site at, const sync_tile *t, uint32_t now, sync_frags f, sync_tile *next,
                             uint32_t step)
{
	const uint32_t columns = t->acc->atoms_n, beside = kit_rows_of_b(t->mma) / 8;

	for (uint32_t n = 0; n < columns; n++) {
		const bool last = n + 1 == columns; /* goes upwards too, so that what the next step begins with comes first */
		for (uint32_t x = 0; x < t->acc->atoms_m; x++) {
			const uint32_t m = n % 2 && !last ? t->acc->atoms_m - 1 - x : x;
			multiply_one(k, at, t, now, f, m, n);
			if (next && last && t->a_shared)
				load_a(k, at, next, m, step, f.a);
		}
		if (next && n % beside == beside - 1)
			load_b(k, at, next, n / beside, step, f.b);
	}
}

/* ---- a tile ---- */

static bool takes_frags(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, bool rolling)
{
	const bool sync = mma->opt.by == CPTX_BY_MMA_SYNC;

	if (!sync)
		cptx_fail_(k, at, "fragments are for mma.sync; wgmma and tcgen05 read shared memory themselves");
	else if (mma->vec)
		cptx_fail_(k, at, "fragments of a tiled mma with scale factors; that fetches its own in cptx_mma_tile");
	else if (rolling && kit_is_f64(mma))
		cptx_fail_(k, at, "rolling fragments of .f64; there loads and instructions do not have the same rows");
	return sync && !mma->vec && !(rolling && kit_is_f64(mma));
}

static bool fits_frags(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_frags *f)
{
	if (!takes_frags(k, at, mma, false))
		return false;
	if (!KIT_IS_MADE(cptx_mma_frags, k, at, f))
		return false;
	bool ok = f->b[0].count == b_regs(mma) && f->b[1].count == b_regs(mma) &&
	          (!is_a_shared(mma) || (f->a[0].count == a_regs(mma) && f->a[1].count == a_regs(mma)));

	if (!ok)
		cptx_fail_(k, at, "a set of fragments that cptx_mma_frags_new made for another tiled mma");
	return ok;
}

static void multiply_ahead(cptx_kernel *k, cptx_site at, sync_tile *t, sync_tile *after, cptx_val a, uint32_t end)
{
	const cptx_mma_frags *frags = t->o->frags;

	for (uint32_t s = t->o->first; s < end; s++) {
		const bool last = s + 1 == t->mma->steps;
		sync_tile *next = last ? after : t;
		sync_frags f = frags_of(frags, s);
		if (!t->a_shared)
			f.a = kit_a_of_step(t->mma, a, s);
		if (frags->rolling) {
			multiply_rolling(k, at, t, s, f, next, last ? 0 : s + 1);
			continue;
		}
		if (next)
			load_step(k, at, next, last ? 0 : s + 1, frags_of(frags, s + 1));
		multiply_step(k, at, t, s, f);
	}
}

void kit_multiply_sync(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a, cptx_val b,
                       const cptx_mma_tile_opt *opt, uint32_t end)
{
	sync_tile t = { .mma = mma, .acc = acc, .o = opt }, next = t;
	const bool has_next = opt->next_b.kind != CPTX_VAL_NONE;

	if ((opt->frags && !fits_frags(k, at, mma, opt->frags)) || !begin_tile(k, at, &t, a, b))
		return;
	if (has_next && (!opt->frags || (mma->steps % 2 && !opt->frags->rolling))) {
		cptx_fail_(k, at, "a tiled mma with .next_b %s; fragments of the next tile take the registers of even steps",
		           opt->frags ? "and an odd number of steps" : "but without .frags");
		return;
	}
	if (opt->frags) {
		if (has_next && !begin_tile(k, at, &next, opt->next_a, opt->next_b))
			return;
		multiply_ahead(k, at, &t, has_next ? &next : NULL, a, end);
		return;
	}
	for (uint32_t s = opt->first; s < end; s++) {
		sync_frags f = new_frags(k, at, mma);
		load_step(k, at, &t, s, f);
		if (!t.a_shared)
			f.a = kit_a_of_step(mma, a, s);
		multiply_step(k, at, &t, s, f);
	}
}

/* ---- fragments ---- */

void cptx_mma_frags_new_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_mma_frags *f, bool rolling)
{
	if (!IS_GIVEN_TO(k, at, f, "set of fragments"))
		return;
	*f = (cptx_mma_frags){ .rolling = false };
	if (!kit_mma_is_made(k, at, mma))
		return;
	if (!takes_frags(k, at, mma, rolling))
		return;
	f->made = kit_made(k, KIT_cptx_mma_frags), f->rolling = rolling;
	for (int i = 0; i < 2; i++) {
		const sync_frags x = i && rolling ? (sync_frags){ f->a[0], f->b[0] } : new_frags(k, at, mma);
		f->a[i] = x.a, f->b[i] = x.b;
	}
}

void cptx_mma_fetch_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_mma_frags *f, cptx_val a,
                     cptx_val b)
{
	sync_tile t = { .mma = mma };

	if (!kit_mma_is_made(k, at, mma) || !fits_frags(k, at, mma, f) || !begin_tile(k, at, &t, a, b))
		return;
	load_step(k, at, &t, 0, frags_of(f, 0));
}

cptx_val cptx_mma_load_a_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val a)
{
	if (!kit_mma_is_made(k, at, mma) || !takes_frags(k, at, mma, false))
		return CPTX_NONE_;
	if (kit_is_f64(mma))
		return cptx_fail_(k, at, "cptx_mma_load_a of .f64, whose A comes from shared memory only");
	if (!is_a_shared(mma))
		return cptx_fail_(k, at, "cptx_mma_load_a of a tiled mma whose A is in registers; it loads A from shared memory");
	sync_tile t = { .mma = mma, .a_shared = true };
	t.a = lines_in(k, at, &mma->a_lanes, &mma->a_lines, kit_plain(k, at, a));
	const cptx_val all = cptx_regs_(k, at, CPTX_B32, mma->steps * a_regs(mma));
	for (uint32_t step = 0; t.a.lines && step < mma->steps; step++)
		for (uint32_t i = 0; i < mma->opt.m / 16; i++)
			load_a(k, at, &t, i, step, kit_a_of_step(mma, all, step));
	return all;
}
