/* SPDX-License-Identifier: MIT */
/* tcgen05.mma: decoding, operands and descriptors of an operation that a thread starts. */
#include "emu/tensor/tcgen05_mma.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/memory/memory.h"
#include "emu/num/real.h"

#include <stdlib.h>

#define BAD_DESC(...) return emu_find(w, op, EMU_ALL, CPTX_FIND_DESCRIPTOR, __VA_ARGS__), false

/* ---- descriptors ---- */

static bool read_idesc(mma_op *o, emu_warp *w, const emu_op *op, uint32_t word)
{
	const tcgen05_mma *x = o->x;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_insn_desc_decode(x->kind, x->pair ? 2 : 1, x->ws, word, &o->d, &err))
		BAD_DESC("0x%08x: %s", word, err.text);
	if (o->d.sparse != x->sparse)
		BAD_DESC("instruction descriptor 0x%08x: bit 2, sparse, is %u; with %s it must be %u", word, o->d.sparse,
		         x->sparse ? "tcgen05.mma.sp" : "tcgen05.mma", x->sparse);
	if (o->d.k96 && w->grid->machine->target->compute_capability != 103)
		BAD_DESC("instruction descriptor 0x%08x: bit 31, 96 elements along k: that needs sm_103a", word);
	if (o->d.k96 && x->counted)
		BAD_DESC("instruction descriptor 0x%08x: bit 31, 96 elements along k, with .scale_vec, which counts factors of 64; "
		         "with 96 it is .block16 or .block32",
		         word);
	if (o->d.selector > 1)
		BAD_DESC("instruction descriptor 0x%08x: sparsity selector %u; a row has metadata in two columns, 0 and 1", word,
		         o->d.selector);
	return true;
}

/* Bits of an element in shared memory, and whether 16 of them fill 16 bytes all the same. */
static cptx_smem_elem elem_of(const mma_op *o, enum cptx_type type, bool mn_major)
{
	bool packed = o->x->kind == CPTX_TCGEN05_MXF4 || o->x->kind == CPTX_TCGEN05_MXF4NVF4;
	const struct num_format *f = num_format(type);
	unsigned bits = type == CPTX_TF32 || !f ? arch_types[type].bits : f->width;

	return (cptx_smem_elem){ .bits = (uint8_t)bits, .mn_major = mn_major, .padded = bits < 8 && !packed };
}

static bool read_desc(emu_warp *w, const emu_op *op, const smem_side *s, uint64_t word, cptx_smem_desc *desc)
{
	bool atom32 = false;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_smem_desc_decode(CPTX_DESC_TCGEN05, word, desc, &err))
		BAD_DESC("of %s, 0x%llx: %s", s->what, (unsigned long long)word, err.text);
	atom32 = desc->swizzle == CPTX_SWIZZLE_128B_ATOM_32B;
	if (s->elem.bits == 32 && s->elem.mn_major != atom32)
		BAD_DESC("of %s, 0x%llx: swizzle %s and %s-major elements of 32 bits; MN-major ones need 128B_ATOM_32B, others must "
		         "not have it",
		         s->what, (unsigned long long)word, cptx_swizzle_get(desc->swizzle)->name, s->elem.mn_major ? "MN" : "K");
	if (s->elem.bits != 32 && atom32)
		BAD_DESC("of %s, 0x%llx: swizzle 128B_ATOM_32B is for MN-major elements of 32 bits only", s->what,
		         (unsigned long long)word);
	if (desc->lbo_is_address && (s->elem.mn_major || w->grid->machine->target->compute_capability != 103))
		BAD_DESC("of %s, 0x%llx: bit 52, lbo is an address: that needs sm_103a and a K-major operand", s->what,
		         (unsigned long long)word);
	return true;
}

/* ---- operands of a lane ---- */

static bool in_lanes(emu_warp *w, const emu_op *op, const char *what, tmem_place at, bool spread)
{
	if (!at.lane || (spread && at.lane == TMEM_BAND))
		return true;
	emu_find(w, op, EMU_ALL, CPTX_FIND_TMEM_LANES, "%s begins at lane %u of tensor memory; it must be 0%s", what, at.lane,
	         spread ? " or 16" : "");
	return false;
}

static bool touch(mma_op *o, emu_warp *w, uint32_t id, const tmem_map *m, unsigned cta, tmem_place at, const char *what,
                  bool write)
{
	if (!in_lanes(w, o->a.op, what, at, m->mask == TMEM_BAND) ||
	    !tmem_allocated(w, o->a.op, o->cta[cta], at.column, m->nreg))
		return false;
	uint32_t bands = m->bands << at.lane / TMEM_BAND;
	tmem_touch(w, id, o->cta[cta], (tmem_area){ at.column, m->nreg, bands, what }, write);
	return true;
}

static bool no_layout(emu_warp *w, const emu_op *op, const cptx_error *err)
{
	emu_find(w, op, EMU_ALL, CPTX_FIND_OPERAND, "not emulated: %s", err->text);
	return false;
}

/* All that it will touch in tensor memory. */
static bool open_tmem(mma_op *o, emu_warp *w, const emu_op *op, uint32_t id)
{
	const tcgen05_mma *x = o->x;
	cptx_error err = { .code = CPTX_OK };
	tmem_map m;

	for (unsigned i = 0; i < o->ncta; i++) {
		if (x->a->kind == ARG_ADDR) {
			if (!mma_map_a(o, i, &m, &err))
				return no_layout(w, op, &err);
			if (!touch(o, w, id, &m, i, o->am, "A", false))
				return false;
		}
		for (unsigned side = 0; x->scaled && side < 2; side++) {
			if (!mma_map_scale(o, side, &m, &err))
				return no_layout(w, op, &err);
			if (!touch(o, w, id, &m, i, side ? o->sb : o->sa, side ? "scales of B" : "scales of A", false))
				return false;
		}
		if (x->sparse) {
			if (!mma_map_meta(o, &m, &err))
				return no_layout(w, op, &err);
			if (!touch(o, w, id, &m, i, o->meta, "metadata", false))
				return false;
		}
		if (!mma_map_d(o, i, &m, &err))
			return no_layout(w, op, &err);
		if (!touch(o, w, id, &m, i, o->acc, "D", true))
			return false;
	}
	return true;
}

static bool open_smem(mma_op *o, emu_warp *w, const emu_op *op, unsigned lane, uint32_t late)
{
	cptx_smem_desc desc;

	if (o->x->a->kind != ARG_ADDR && (!read_desc(w, op, &o->sa_side, emu_get(w, o->x->a, lane), &desc) ||
	                                  !smem_side_open(&o->sa_side, w, op, o->cta, o->ncta, &desc, late)))
		return false;
	return read_desc(w, op, &o->sb_side, emu_get(w, o->x->b, lane), &desc) &&
	       smem_side_open(&o->sb_side, w, op, o->cta, o->ncta, &desc, late);
}

/*
 * The zero-column mask: runs of columns that are used and skipped in turn, the same for each part of B, which begins at
 * column `shift` of what the descriptor points at.
 */
static bool read_zeros(mma_op *o, emu_warp *w, const emu_op *op, uint64_t word)
{
	unsigned parts = 128u / o->d.m, n = o->d.n / parts, skip = (word >> 40 & 0xff) + 1, use = (word >> 48 & 0xff) + 1;
	unsigned most = o->d.m == 32 ? 16 : 32;

	if (word >> 36 & 7 || word >> 62)
		BAD_DESC("zero-column mask 0x%llx: bits 36 to 38, 62 and 63 must be 0", (unsigned long long)word);
	o->shift = word >> 56 & 0x3f;
	if (o->shift > MIN(most, o->d.reuse_shift))
		BAD_DESC(
			"zero-column mask 0x%llx: column shift %u (bits 56 to 61); with M = %u it is at most %u, and no more than bits "
			"30 and 31 of the instruction descriptor allow, which is %u",
			(unsigned long long)word, o->shift, o->d.m, most, o->d.reuse_shift);
	o->zero = word >> 39 & 1;
	for (unsigned part = 0; o->zero && part < parts; part++) {
		unsigned start = word >> 8 * part & 0xff;
		bool ones_first = word >> (32 + part) & 1;
		if (start >= (ones_first ? skip : use))
			BAD_DESC("zero-column mask 0x%llx: start count %u leaves nothing of the first run of %u columns of part %u; it "
			         "must be less",
			         (unsigned long long)word, start, ones_first ? skip : use, part);
		for (unsigned i = 0; i < n; i++) {
			unsigned at = (i + start) % (skip + use), column = part * n + i;
			bool one = ones_first ? at < skip : at >= use;
			o->zeros[column / 32] |= (uint32_t)one << column % 32;
		}
	}
	return true;
}

static void read_operands(mma_op *o, emu_warp *w, unsigned lane)
{
	const tcgen05_mma *x = o->x;
	/* The upper two bits of an address of scales say which bytes of a word; the descriptor says it again. */
	const uint32_t no_id = 0x3fffffff;

	o->acc = tmem_place_of(emu_address(w, x->acc, lane));
	if (x->a->kind == ARG_ADDR)
		o->am = tmem_place_of(emu_address(w, x->a, lane));
	if (x->scaled) {
		o->sa = tmem_place_of(emu_address(w, x->sa, lane) & no_id);
		o->sb = tmem_place_of(emu_address(w, x->sb, lane) & no_id);
	}
	if (x->sparse)
		o->meta = tmem_place_of(emu_address(w, x->meta, lane) + o->d.selector);
	o->enable = emu_get(w, x->enable, lane) != 0;
	for (unsigned i = 0; x->mask->kind == ARG_VEC && i < x->mask->count; i++)
		o->off[i / 4][i % 4] = emu_r32(w, x->mask->slots[i])[lane];
}

static bool choose_ctas(mma_op *o, emu_warp *w, const emu_op *op)
{
	emu_cta *other = o->x->pair ? tmem_peer(w, op) : NULL;

	o->ncta = o->x->pair ? 2 : 1;
	o->cta[0] = o->cta[1] = w->cta;
	if (other)
		o->cta[~w->cta->rank & 1] = other;
	return !o->x->pair || other;
}

/* Sizes follow from the descriptor. */
static void size_up(mma_op *o)
{
	bool in_bytes = o->x->kind == CPTX_TCGEN05_F8F6F4 || o->x->kind == CPTX_TCGEN05_MXF8F6F4;
	cptx_smem_elem a = elem_of(o, o->d.a, o->d.a_mn_major), b = elem_of(o, o->d.b, o->d.b_mn_major);

	o->k = cptx_insn_desc_k(&o->d);
	o->ka = o->x->sparse ? o->k / 2 : o->k;
	o->m = o->d.m / o->ncta;
	o->bits = in_bytes ? 8 : a.bits;
	o->vec = o->x->vec * (o->d.k96 ? 3u : 2u) / 2;
	o->sa_side = smem_side_of("A", a, 0, o->m, o->ka);
	o->sb_side = smem_side_of("B", b, o->shift, o->d.n / o->ncta, o->k);
}

static void no_memory(emu_warp *w, const emu_op *op)
{
	emu_find(w, op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for an operation of tcgen05.mma");
}

/* A new operation, its shape known; NULL with a finding. */
static mma_op *open_op(emu_warp *w, const emu_op *op, unsigned lane)
{
	mma_op first = { .x = (const tcgen05_mma *)op->extra }, *o;

	if (!choose_ctas(&first, w, op) || !read_idesc(&first, w, op, (uint32_t)emu_get(w, first.x->idesc, lane)) ||
	    (first.x->zero->kind == ARG_REG && !read_zeros(&first, w, op, emu_get(w, first.x->zero, lane))))
		return NULL;
	size_up(&first);
	o = NEW_SIZED(mma_op, sizeof *o + (first.sa_side.n + first.sb_side.n) * sizeof *o->at);
	if (!o) {
		no_memory(w, op);
		return NULL;
	}
	*o = first;
	o->sa_side.at = o->at;
	o->sb_side.at = o->at + o->sa_side.n;
	o->a = (emu_async){ .run = mma_run, .w = w, .lane = lane, .op = op };
	read_operands(o, w, lane);
	return o;
}

static bool issue(emu_warp *w, const emu_op *op, unsigned lane)
{
	mma_op *o = open_op(w, op, lane);

	if (!o)
		return false;
	uint32_t id = tmem_begin(w, op, lane, true);
	const tmem_record *r = tmem_record_of(w->cta, id);
	if (!r || !open_tmem(o, w, op, id) || !open_smem(o, w, op, lane, r->late)) {
		free(o);
		return false;
	}
	return tmem_start(&o->a);
}

static enum emu_step mma(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const tcgen05_mma *x = (const tcgen05_mma *)op->extra;

	emu_need_arg(w, op, x->acc, mask, "the address of D");
	emu_need_arg(w, op, x->a, mask, "what tells where A is");
	emu_need_arg(w, op, x->b, mask, "the descriptor of B");
	emu_need_arg(w, op, x->idesc, mask, "the instruction descriptor");
	emu_need_arg(w, op, x->mask, mask, "the mask of lanes");
	emu_need_arg(w, op, x->enable, mask, "the predicate");
	emu_need_arg(w, op, x->sa, mask, "the address of scales");
	emu_need_arg(w, op, x->sb, mask, "the address of scales");
	emu_need_arg(w, op, x->meta, mask, "the address of metadata");
	emu_need_arg(w, op, x->zero, mask, "the zero-column mask");
	EACH_LANE(l, mask)
		if (!issue(w, op, l))
			return STEP_FAULT;
	return STEP_NEXT;
}

/* ---- decoding ---- */

static enum cptx_tcgen05_kind kind_of(unsigned mod)
{
	switch (mod) {
	case CPTX_KIND_TF32: return CPTX_TCGEN05_TF32;
	case CPTX_KIND_F16: return CPTX_TCGEN05_F16;
	case CPTX_KIND_F8F6F4: return CPTX_TCGEN05_F8F6F4;
	case CPTX_KIND_I8: return CPTX_TCGEN05_I8;
	case CPTX_KIND_MXF8F6F4: return CPTX_TCGEN05_MXF8F6F4;
	case CPTX_KIND_MXF4: return CPTX_TCGEN05_MXF4;
	default: return CPTX_TCGEN05_MXF4NVF4;
	}
}

/* Factors of a row of 64 elements: of blocks of 16 or 32 elements, or so many. */
static uint8_t vec_of(const emu_op *op, enum cptx_tcgen05_kind kind)
{
	switch (emu_modifier(op, "scale_vec")) {
	case CPTX_SCALE_VEC_1X: return 1;
	case CPTX_SCALE_VEC_2X: return 2;
	case CPTX_SCALE_VEC_4X:
	case CPTX_BLOCK16: return 4;
	default: return kind == CPTX_TCGEN05_MXF8F6F4 ? 1 : 2;
	}
}

bool decode_tcgen05_mma(emu_decoder *d, emu_op *op)
{
	tcgen05_mma *x = DECODER_NEW(d, tcgen05_mma);

	if (!x)
		return false;
	x->kind = kind_of(emu_modifier(op, "kind"));
	x->sparse = op->opcode == CPTX_OP_TCGEN05_MMA_SP || op->opcode == CPTX_OP_TCGEN05_MMA_SP_BLOCK_SCALE ||
	            op->opcode == CPTX_OP_TCGEN05_MMA_WS_SP;
	x->ws = op->opcode == CPTX_OP_TCGEN05_MMA_WS || op->opcode == CPTX_OP_TCGEN05_MMA_WS_SP;
	x->scaled = op->opcode == CPTX_OP_TCGEN05_MMA_BLOCK_SCALE || op->opcode == CPTX_OP_TCGEN05_MMA_SP_BLOCK_SCALE;
	x->pair = tmem_pair(op);
	x->ashift = emu_modifier(op, "ashift") != 0;
	x->vec = x->scaled ? vec_of(op, x->kind) : 0;
	x->counted = x->scaled && emu_modifier(op, "scale_vec") && emu_modifier(op, "scale_vec") != CPTX_BLOCK16 &&
	             emu_modifier(op, "scale_vec") != CPTX_BLOCK32;
	x->scale = (uint8_t)emu_named(op, "scale")->offset;
	x->acc = emu_named(op, "acc"), x->a = emu_named(op, "a"), x->b = emu_named(op, "b");
	x->idesc = emu_named(op, "idesc"), x->mask = emu_named(op, "mask"), x->enable = emu_named(op, "enable");
	x->sa = emu_named(op, "sa"), x->sb = emu_named(op, "sb");
	x->meta = emu_named(op, "meta"), x->zero = emu_named(op, "zero");
	op->extra = x;
	op->fn = mma;
	return true;
}
