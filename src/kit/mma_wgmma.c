/* SPDX-License-Identifier: MIT */
/* Tiles by wgmma, dense and with a sparse A: descriptors of shared memory, and the instructions of a tile. */
#include "kit/mma.h"

#include <cptx/cptx.h>

/* The descriptor of the operand from (row, col) of a tile at address 0 on. */
static uint64_t word_of(cptx_kernel *k, cptx_site at, const cptx_tile *t, uint32_t row, uint32_t col)
{
	cptx_smem_desc d;
	cptx_error err = { .code = CPTX_OK };
	uint64_t word = 0;

	if (!cptx_tile_desc(t, CPTX_DESC_WGMMA, 0, row, col, &d, &err) || !cptx_smem_desc_encode(&d, &word, &err))
		cptx_fail_(k, at, "no matrix descriptor has this tile: %s", err.text);
	return word;
}

static cptx_val join(cptx_kernel *k, cptx_site at, cptx_val low, uint32_t high)
{
	const cptx_val halves[2] = { low, cptx_imm(high) }, to = cptx_regs_(k, at, CPTX_U64, 1);

	CALL(mov, .a = cptx_pack_(k, at, halves, 2), .type = CPTX_B64, .into = to);
	return to;
}

/* The descriptor of the operand from (row, col) of a tile on. */
static cptx_val descriptor(cptx_kernel *k, cptx_site at, const cptx_tile *t, const kit_desc *from, uint32_t row,
                           uint32_t col)
{
	const int64_t by = (int64_t)word_of(k, at, t, row, col) + from->more;
	const cptx_val here = by ? CALL(add, .a = from->at, .b = cptx_imm(by)) : from->at;

	return here.type == CPTX_U32 ? join(k, at, here, from->high) : here;
}

kit_desc kit_desc_of(cptx_kernel *k, cptx_site at, cptx_val address, cptx_val first)
{
	return (kit_desc){ .at = CALL(cvt, .a = kit_in_units(k, at, address, first), .dtype = CPTX_U64) };
}

cptx_val kit_ring_start(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val ring, cptx_val first)
{
	const int64_t low = (uint32_t)word_of(k, at, t, 0, 0) + (ring.offset >> KIT_DESC_BITS);

	ring.offset = 0;
	return CALL(add, .a = kit_in_units(k, at, ring, first), .b = cptx_imm(low));
}

/* The address is a part of the low word, and its sums never carry; ptxas does not know that of sums of 64 bits, which took
 * three instructions more in each stage. */
kit_desc kit_desc_of_stage(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, bool of_b, cptx_val stage)
{
	const uint64_t word = word_of(k, at, of_b ? &mma->opt.b_tile : &mma->opt.a_tile, 0, 0);
	const int64_t apart = mma->opt.apart >> KIT_DESC_BITS;
	kit_desc d = { .at = of_b ? mma->b_start : mma->a_start, .high = (uint32_t)(word >> 32), .more = -(int64_t)word };

	if (stage.kind == CPTX_VAL_INT)
		d.more += stage.i * apart;
	else
		d.at = CALL(mad, .a = cptx_as(stage, CPTX_U32), .b = cptx_imm(apart), .c = d.at, .mode = CPTX_LO);
	if (!mma->opt.desc32)
		d.at = join(k, at, d.at, d.high);
	return d;
}

/* Operands of the instruction for 64 rows and a step, and modifiers that follow from their types. */
typedef struct wgmma_step {
	cptx_val da, db, d, adds;
	cptx_val trans_a, trans_b; /* NONE: of types that have none */
	cptx_val sign;             /* of operands that may be negated; NONE: integers */
	uint16_t shape, dtype, atype, btype;
} wgmma_step;

static void multiply_dense(cptx_kernel *k, cptx_site at, const wgmma_step *x)
{
	CALL(wgmma_mma_async, .a = x->da, .b = x->db, .scale_d = x->adds, .scale_a = x->sign, .scale_b = x->sign,
	     .trans_a = x->trans_a, .trans_b = x->trans_b, .shape = x->shape, .dtype = x->dtype, .atype = x->atype,
	     .btype = x->btype, .into = x->d);
}

static void multiply_sparse(cptx_kernel *k, cptx_site at, const wgmma_step *x, kit_meta meta)
{
	CALL(wgmma_mma_async_sp, .a = x->da, .b = x->db, .meta = meta.word, .sel = cptx_imm(meta.select), .scale_d = x->adds,
	     .scale_a = x->sign, .scale_b = x->sign, .trans_a = x->trans_a, .trans_b = x->trans_b, .shape = x->shape,
	     .dtype = x->dtype, .atype = x->atype, .btype = x->btype, .into = x->d);
}

void kit_multiply_wgmma(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma, const cptx_acc *acc,
                        const kit_wgmma_from *from, const cptx_mma_tile_opt *opt, cptx_val adds)
{
	const cptx_tiled_mma_opt *o = &mma->opt;
	const kit_mma_type *type = kit_mma_type_of(o->a);
	const bool shared = o->a_from == CPTX_A_SHARED, sixteen = type->bits == 16;
	const uint32_t each = mma->d_map.regs, na = mma->a_map.regs, end = opt->steps ? opt->first + opt->steps : mma->steps;
	const cptx_val none = { 0 };
	cptx_val always = cptx_negated(CALL(setp, .a = cptx_imm(0), .b = cptx_imm(1), .cmp = CPTX_EQ, .type = CPTX_U32));
	wgmma_step x = { .trans_a = sixteen && shared ? cptx_imm(o->a_tile.elem.mn_major) : none,
		             .trans_b = sixteen ? cptx_imm(o->b_tile.elem.mn_major) : none,
		             .sign = type->integer ? none : cptx_imm(1),
		             .shape = (uint16_t)mma->shape,
		             .dtype = (uint16_t)acc->type,
		             .atype = (uint16_t)o->a,
		             .btype = (uint16_t)(type->bits == 8 ? o->b : 0) };

	CALL(wgmma_fence, .z_ = 0);
	for (uint32_t s = opt->first; s < end; s++) {
		x.db = descriptor(k, at, &o->b_tile, &from->b, 0, s * mma->depth);
		x.adds = s == opt->first ? adds : always;
		for (uint32_t i = 0; i < acc->atoms_m; i++) {
			if (shared)
				x.da = descriptor(k, at, &o->a_tile, &from->a, i * 64, s * kit_depth_of_a(mma));
			else
				x.da = cptx_slice(kit_a_of_step(mma, from->a.at, s), i * na, na);
			x.d = cptx_slice(acc->regs, i * each, each);
			if (o->sparse)
				multiply_sparse(k, at, &x, kit_meta_of(mma, opt->meta, acc->atoms_m, i, s));
			else
				multiply_dense(k, at, &x);
		}
	}
	CALL(wgmma_commit_group, .z_ = 0);
}
