/* SPDX-License-Identifier: MIT */
/*
 * Tiled products by tcgen05: of one CTA or of a pair, with scale factors or without.
 *
 * Nothing here waits: tcgen05.cp, tcgen05.mma and tcgen05.commit of one thread take effect in the order in which they are
 * started, so that a copy to tensor memory stands in front of the products that read it without a barrier.
 */
#include "kit/mma.h"

#include <cptx/cptx.h>

enum { STEP_COLUMNS = 8 /* of tensor memory, that A of a step takes: 32 bytes of each row */ };

static uint16_t group_of(const cptx_tiled_mma *mma) { return mma->opt.ctas > 1 ? CPTX_CTA_GROUP_2 : CPTX_CTA_GROUP_1; }

/* Factors of a row that one instruction takes. */
static uint32_t factors_of_step(const cptx_tiled_mma *mma) { return mma->vec ? mma->depth / mma->vec : 0; }

bool kit_insn_desc(const cptx_tiled_mma *mma, uint32_t step, uint32_t *word, cptx_error *err)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	const uint8_t id = (uint8_t)(step * factors_of_step(mma) % CPTX_SCALE_FACTORS);
	const cptx_insn_desc d = { .kind = o->kind,
		                       .m = (uint16_t)o->m,
		                       .n = (uint16_t)o->n,
		                       .a = o->a,
		                       .b = o->b,
		                       .d = o->kind == CPTX_TCGEN05_I8 ? CPTX_S32 : CPTX_F32,
		                       .scale = o->scale,
		                       .a_mn_major = o->a_from == CPTX_A_SHARED && o->a_tile.elem.mn_major,
		                       .b_mn_major = o->b_tile.elem.mn_major,
		                       .a_scale_id = id,
		                       .b_scale_id = id,
		                       .ctas = (uint8_t)o->ctas };

	return cptx_insn_desc_encode(&d, word, err);
}

/* The descriptor of a tile: given in place of its address, or computed of it. */
static cptx_val word_of(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val v)
{
	return cptx_type_bits((enum cptx_type)v.type) == 64 ? v : cptx_tile_word_(k, at, t, CPTX_DESC_TCGEN05, v);
}

/* The descriptor of the operand that begins `col` elements along K behind that of `word`. */
static cptx_val word_from(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val word, uint32_t col)
{
	const uint32_t by = cptx_tile_word_step(t, 0, col);

	if (by == UINT32_MAX)
		return cptx_fail_(k, at, "no matrix descriptor has this tile from element %u along K on", col);
	return by ? CALL(add, .a = word, .b = cptx_imm(by)) : word;
}

/* ---- products ---- */

static void multiply_step(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val d, cptx_val a, cptx_val b,
                          const cptx_mma_tile_opt *opt, uint32_t step, cptx_val adds)
{
	static const uint16_t kinds[] = {
		[CPTX_TCGEN05_TF32] = CPTX_KIND_TF32,         [CPTX_TCGEN05_F16] = CPTX_KIND_F16,
		[CPTX_TCGEN05_F8F6F4] = CPTX_KIND_F8F6F4,     [CPTX_TCGEN05_I8] = CPTX_KIND_I8,
		[CPTX_TCGEN05_MXF8F6F4] = CPTX_KIND_MXF8F6F4, [CPTX_TCGEN05_MXF4] = CPTX_KIND_MXF4,
		[CPTX_TCGEN05_MXF4NVF4] = CPTX_KIND_MXF4NVF4,
	};
	static const uint16_t vec[] = { 0, CPTX_SCALE_VEC_1X, CPTX_SCALE_VEC_2X, 0, CPTX_SCALE_VEC_4X };
	const uint32_t block = step * factors_of_step(mma) / CPTX_SCALE_FACTORS;
	uint32_t word = 0;
	cptx_error err = { .code = CPTX_OK };

	if (!kit_insn_desc(mma, step, &word, &err))
		cptx_fail_(k, at, "%s", err.text);
	if (!mma->vec) {
		CALL(tcgen05_mma, .acc = d, .a = a, .b = b, .idesc = cptx_imm(word), .enable = adds, .kind = kinds[mma->opt.kind],
		     .cta_group = group_of(mma));
		return;
	}
	const uint32_t a_columns = mma->scale_a_columns / mma->scale_blocks,
				   b_columns = mma->scale_b_columns / mma->scale_blocks;
	CALL(tcgen05_mma_block_scale, .acc = d, .a = a, .b = b, .idesc = cptx_imm(word),
	     .sa = cptx_offset(opt->scale_a, block * a_columns), .sb = cptx_offset(opt->scale_b, block * b_columns),
	     .enable = adds, .kind = kinds[mma->opt.kind], .scale_vec = vec[factors_of_step(mma)], .cta_group = group_of(mma));
}

void kit_multiply_tcgen05(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a,
                          cptx_val b, const cptx_mma_tile_opt *opt, uint32_t end, cptx_val adds)
{
	const cptx_tile *ta = &mma->opt.a_tile, *tb = &mma->opt.b_tile;
	const bool shared = mma->opt.a_from == CPTX_A_SHARED;
	cptx_val always = adds;

	if (!opt->fenced)
		CALL(tcgen05_fence, .op = CPTX_FENCE_AFTER_THREAD_SYNC);
	if (shared)
		a = word_of(k, at, ta, a);
	b = word_of(k, at, tb, b);
	if (end - opt->first > 1)
		always = CALL(setp, .a = cptx_imm(0), .b = cptx_imm(1), .cmp = CPTX_NE, .type = CPTX_U32);
	for (uint32_t s = opt->first; s < end; s++) {
		cptx_val from_a = shared ? word_from(k, at, ta, a, s * mma->depth) : cptx_offset(a, s * STEP_COLUMNS);
		cptx_val from_b = word_from(k, at, tb, b, s * mma->depth);
		multiply_step(k, at, mma, acc->tmem, from_a, from_b, opt, s, s == opt->first ? adds : always);
	}
}

/* ---- copies to tensor memory ---- */

static bool can_copy(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const char *name, bool ok, const char *of,
                     cptx_val to, cptx_val from)
{
	if (!kit_mma_is_made(k, at, mma))
		return false;
	const uint32_t bits = from.kind == CPTX_VAL_REG ? cptx_type_bits((enum cptx_type)from.type) : 0;
	if (mma->opt.by != CPTX_BY_TCGEN05 || !ok)
		cptx_fail_(k, at, "%s is of tcgen05 %s", name, of);
	else if (to.kind != CPTX_VAL_REG || cptx_type_bits((enum cptx_type)to.type) != 32)
		cptx_fail_(k, at, "%s without an address in tensor memory: a .u32 register", name);
	else if (bits != 32 && bits != 64)
		cptx_fail_(k, at, "%s without an address in shared memory: a .u32 register, or a descriptor, .u64", name);
	else
		return true;
	return false;
}

void cptx_mma_copy_a_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val to, cptx_val from)
{
	const cptx_tile *t = mma ? &mma->opt.a_tile : NULL;

	if (!can_copy(k, at, mma, "cptx_mma_copy_a", mma && mma->opt.a_from == CPTX_A_TMEM && t->rows && !t->elem.mn_major,
	              "with CPTX_A_TMEM and a K-major .a_tile", to, from))
		return;
	cptx_val word = word_of(k, at, t, kit_plain(k, at, from));
	for (uint32_t s = 0; s < mma->steps; s++)
		CALL(tcgen05_cp, .a = cptx_offset(to, s * STEP_COLUMNS), .b = word_from(k, at, t, word, s * mma->depth),
		     .cta_group = group_of(mma), .shape = CPTX_SHAPE_128X256B, .dtype = t->elem.padded ? CPTX_B8X16 : 0,
		     .src = !t->elem.padded     ? 0
		            : t->elem.bits == 4 ? CPTX_B4X16_P64
		                                : CPTX_B6X16_P32);
}

/* Blocks are behind one another in shared memory, those of 128 more rows behind all of the first ones; in tensor memory the
 * columns of a block of K are together. */
void cptx_mma_copy_scale_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, bool of_b, cptx_val to, cptx_val from)
{
	const cptx_tile t = cptx_scale_tile();

	if (!can_copy(k, at, mma, of_b ? "cptx_mma_copy_scale_b" : "cptx_mma_copy_scale_a", mma && mma->vec, "with .scale", to,
	              from))
		return;
	const uint32_t n = mma->scale_blocks, rows = (of_b ? mma->scale_b_bytes : mma->scale_a_bytes) / CPTX_SCALE_BYTES / n;
	cptx_val word = word_of(k, at, &t, kit_plain(k, at, from));
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t b = 0; b < n; b++) {
			const uint32_t by = cptx_tile_word_bytes((r * n + b) * CPTX_SCALE_BYTES);
			CALL(tcgen05_cp, .a = cptx_offset(to, (b * rows + r) * CPTX_SCALE_COLUMNS),
			     .b = by ? CALL(add, .a = word, .b = cptx_imm(by)) : word, .cta_group = group_of(mma),
			     .shape = CPTX_SHAPE_32X128B, .multicast = CPTX_WARPX4);
		}
}

/* ---- stages of rings ---- */

uint32_t kit_a_columns(const cptx_tiled_mma *mma) { return mma->steps * STEP_COLUMNS; }

void kit_find_rings_tcgen05(cptx_kernel *k, cptx_site at, cptx_tiled_mma *mma)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	const cptx_tile scales = cptx_scale_tile();

	mma->a_start = cptx_tile_word_(k, at, &o->a_tile, CPTX_DESC_TCGEN05, o->a_ring);
	mma->b_start = cptx_tile_word_(k, at, &o->b_tile, CPTX_DESC_TCGEN05, o->b_ring);
	if (!mma->vec)
		return;
	mma->scale_a_start = cptx_tile_word_(k, at, &scales, CPTX_DESC_TCGEN05, o->scale_a_ring);
	mma->scale_b_start = cptx_tile_word_(k, at, &scales, CPTX_DESC_TCGEN05, o->scale_b_ring);
}

/* The descriptor of a stage, of stages so many bytes apart. */
static cptx_val word_of_stage(cptx_kernel *k, cptx_site at, cptx_val first, cptx_val stage, uint32_t apart)
{
	const cptx_val by = cptx_imm(cptx_tile_word_bytes(apart));

	if (stage.kind == CPTX_VAL_INT)
		return stage.i ? CALL(add, .a = first, .b = cptx_imm(stage.i * by.i)) : first;
	return CALL(mad_wide, .a = cptx_as(stage, CPTX_U32), .b = by, .c = first);
}

static uint32_t apart_of(const cptx_tiled_mma *mma, const cptx_tile *t)
{
	const uint32_t align = cptx_tile_align(t);

	return mma->opt.apart ? mma->opt.apart : (cptx_tile_bytes(t) + align - 1) / align * align;
}

/* Copies the scale factors of a stage to tensor memory, from `to` on, and says where products find them. */
static void copy_scales(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val stage, cptx_val to,
                        cptx_mma_tile_opt *opt)
{
	const cptx_val a = word_of_stage(k, at, mma->scale_a_start, stage, mma->scale_a_bytes);
	const cptx_val b_at = cptx_offset(to, mma->scale_a_columns);

	cptx_mma_copy_scale_(k, at, mma, false, to, a);
	cptx_mma_copy_scale_(k, at, mma, true, b_at, word_of_stage(k, at, mma->scale_b_start, stage, mma->scale_b_bytes));
	opt->scale_a = to, opt->scale_b = b_at;
	if (opt->scale_b_from.kind == CPTX_VAL_NONE)
		return;
	const int64_t offset = b_at.offset;
	cptx_val plain = to;
	plain.offset = 0;
	opt->scale_b = cptx_offset(CALL(add, .a = plain, .b = opt->scale_b_from), offset);
}

void kit_multiply_stage_tcgen05(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val stage,
                                const cptx_mma_tile_opt *opt)
{
	const bool from_tmem = mma->opt.a_from == CPTX_A_TMEM;
	cptx_mma_tile_opt tile = *opt;

	if (mma->stage_columns && (opt->tmem.kind != CPTX_VAL_REG || cptx_type_bits((enum cptx_type)opt->tmem.type) != 32)) {
		cptx_fail_(k, at,
		           "a stage whose A or scale factors come from tensor memory: say .tmem, a .u32 address of %u columns",
		           mma->stage_columns);
		return;
	}
	cptx_val a = word_of_stage(k, at, mma->a_start, stage, apart_of(mma, &mma->opt.a_tile));
	const cptx_val b = word_of_stage(k, at, mma->b_start, stage, apart_of(mma, &mma->opt.b_tile));
	if (from_tmem) {
		cptx_mma_copy_a_(k, at, mma, opt->tmem, a);
		a = opt->tmem;
	}
	if (mma->vec)
		copy_scales(k, at, mma, stage, cptx_offset(opt->tmem, from_tmem ? kit_a_columns(mma) : 0), &tile);
	cptx_mma_tile_(k, at, mma, acc, a, b, &tile);
}

/* ---- completion ---- */

void cptx_mma_commit_(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, cptx_val mbarrier, cptx_val mask)
{
	if (!kit_mma_is_made(k, at, mma))
		return;
	if (mma->opt.by != CPTX_BY_TCGEN05)
		cptx_fail_(k, at,
		           "cptx_mma_commit is of tcgen05; products of wgmma are waited for by cptx_mma_wait, those of "
		           "mma.sync are complete");
	else if (mask.kind == CPTX_VAL_NONE)
		CALL(tcgen05_commit, .a = mbarrier, .cta_group = group_of(mma), .space = CPTX_SHARED_CLUSTER);
	else
		CALL(tcgen05_commit, .a = mbarrier, .cta_group = group_of(mma), .space = CPTX_SHARED_CLUSTER,
		     .multicast = CPTX_MULTICAST_CLUSTER, .mask = mask);
}
