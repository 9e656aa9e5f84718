/* SPDX-License-Identifier: MIT */
/* tex, tld4, txq, suq, istypep: textures by their handles. */
#include "emu/exec/texture.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/exec/sample.h"
#include "emu/num/num.h"

#include <math.h>
#include <stdio.h>

/* ---- handles and dimensions ---- */

emu_dims emu_dims_of(unsigned geom)
{
	switch (geom) {
	case CPTX_DIM_1D: return (emu_dims){ .n = 1 };
	case CPTX_A1D: return (emu_dims){ .n = 1, .layers = true };
	case CPTX_DIM_2D: return (emu_dims){ .n = 2 };
	case CPTX_A2D: return (emu_dims){ .n = 2, .layers = true };
	case CPTX_DIM_3D: return (emu_dims){ .n = 3 };
	case CPTX_CUBE: return (emu_dims){ .n = 2, .cube = true };
	case CPTX_ACUBE: return (emu_dims){ .n = 2, .layers = true, .cube = true };
	default: return (emu_dims){ .n = 0 }; /* several samples */
	}
}

static const char *words_of(emu_dims d, char text[EMU_DIMS])
{
	snprintf(text, EMU_DIMS, "%u dimension%s%s%s", d.n, d.n == 1 ? "" : "s", d.cube ? ", a cube" : "",
	         d.layers ? ", layers" : "");
	return text;
}

const emu_texture *emu_texture_of(emu_warp *w, const emu_op *op, const emu_arg *a, unsigned lane, bool surface)
{
	uint64_t handle = emu_address(w, a, lane);
	const emu_texture *t = emu_texture_find(w->grid->machine, handle);

	if (t && t->o.surface == surface)
		return t;
	emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "0x%llx is %s; the handle of a %s is needed", (unsigned long long)handle,
	         t ? (surface ? "a texture" : "a surface") : "no handle that is in use", surface ? "surface" : "texture");
	return NULL;
}

bool emu_dims_fit(emu_warp *w, const emu_op *op, unsigned lane, const emu_texture *t, emu_dims d)
{
	emu_dims is = { .n = t->dims, .layers = t->o.layers != 0, .cube = t->o.cube };
	char a[EMU_DIMS], b[EMU_DIMS];

	/* Surfaces of cubes are read and written as layers. */
	if (is.n == d.n && (t->o.surface ? is.layers || is.cube : is.layers) == d.layers && (t->o.surface || is.cube == d.cube))
		return true;
	emu_find(w, op, (int)lane, CPTX_FIND_OPERAND, "it names %s, and the %s has %s", words_of(d, a),
	         t->o.surface ? "surface" : "texture", words_of(is, b));
	return false;
}

/* ---- tex, tld4 ---- */

typedef struct fetch {
	emu_dims dims;
	const emu_arg *handle, *at, *offset, *lod, *dx, *dy;
	bool whole;         /* coordinates are integers */
	bool gather;        /* tld4 */
	unsigned component; /* that tld4 reads */
} fetch;

static bool is_known(const emu_warp *w, const emu_arg *a, unsigned n, unsigned lane)
{
	for (unsigned i = 0; i < n; i++)
		if (!(*emu_defined(w, emu_slot_of(a, i)) >> lane & 1))
			return false;
	return true;
}

static uint32_t word(const emu_warp *w, const emu_arg *a, unsigned i, unsigned lane)
{
	return emu_r32(w, emu_slot_of(a, i))[lane];
}

/* Where a lane reads: coordinates behind the layer, as numbers. */
typedef struct spot {
	const emu_texture *t;
	double x[3];
	unsigned slice; /* the first of its layer; of a cube with the face */
} spot;

static spot spot_of(const emu_warp *w, const fetch *f, const emu_texture *t, unsigned lane)
{
	spot s = { .t = t };
	unsigned n = f->dims.cube ? 3 : f->dims.n, layer = f->dims.layers ? MIN(word(w, f->at, 0, lane), t->layers - 1) : 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t v = word(w, f->at, i + f->dims.layers, lane);
		s.x[i] = f->whole ? (double)(int32_t)v : (double)num_f32(v);
	}
	s.slice = layer * t->faces;
	if (f->dims.cube) {
		double v[3] = { s.x[0], s.x[1], s.x[2] };
		s.slice += sample_face(v, s.x);
	}
	return s;
}

/* A texel into *out; false with a finding. */
static bool read_texel(emu_warp *w, const emu_op *op, unsigned lane, const spot *s, const emu_level *l, const int64_t at[3],
                       sample_texel *out)
{
	unsigned char bytes[16];

	if (at[0] < 0 || at[1] < 0 || at[2] < 0) {
		*out = sample_border(&s->t->o);
		return true;
	}
	if (!emu_read(w, op, lane, SPACE_GLOBAL,
	              emu_texel_at(s->t, l, (uint64_t)at[0], (uint64_t)at[1], s->slice + (uint64_t)at[2]), bytes, s->t->texel,
	              0))
		return false;
	*out = sample_decode(&s->t->o, bytes);
	return true;
}

static void axes_of(const emu_warp *w, const fetch *f, const spot *s, const emu_level *l, unsigned lane, bool two,
                    sample_axis axis[3])
{
	cptx_emu_texture_opt o = s->t->o;

	o.normalized |= f->dims.cube;
	for (unsigned d = 0; d < 3; d++) {
		int32_t offset = d < f->dims.n && f->offset->kind ? (int32_t)word(w, f->offset, d, lane) : 0;
		axis[d] = d >= f->dims.n ? (sample_axis){ .at = { 0 }, .weight = { 1 }, .n = 1 }
		          : f->whole     ? sample_texel_at(&o, d, l->size[d], (int64_t)s->x[d] + offset)
		                         : sample_at(&o, d, l->size[d], s->x[d], offset, two);
	}
}

/* What a level gives: a texel as it is, or the sum of its neighbours, each by its weight. */
static bool read_level(emu_warp *w, const emu_op *op, unsigned lane, const spot *s, uint32_t level, sample_texel *out)
{
	const fetch *f = (const fetch *)op->extra;
	emu_level l = emu_level_of(s->t, level);
	sample_axis axis[3];
	double sum[4] = { 0 };

	axes_of(w, f, s, &l, lane, s->t->o.linear, axis);
	bool one = axis[0].n * axis[1].n * axis[2].n == 1;
	for (unsigned i = 0; i < 8; i++) {
		unsigned c[3] = { i & 1, i >> 1 & 1, i >> 2 };
		double weight = 1;
		int64_t at[3];
		for (unsigned d = 0; d < 3; d++) {
			weight *= c[d] < axis[d].n ? axis[d].weight[c[d]] : 0;
			at[d] = axis[d].at[c[d]];
		}
		if (weight == 0) /* it is not read either */
			continue;
		if (!read_texel(w, op, lane, s, &l, at, out))
			return false;
		for (unsigned k = 0; k < 4 && !one; k++)
			sum[k] += weight * num_f32(out->bits[k]);
	}
	for (unsigned k = 0; k < 4 && !one; k++)
		out->bits[k] = num_bits32((float)sum[k]);
	return true;
}

/* The mipmap level that is asked for. */
static double level_of(const emu_warp *w, const fetch *f, const emu_texture *t, unsigned lane)
{
	double last = MAX(t->o.levels, 1u) - 1, lod = 0, longest = 0;
	double most = t->o.mip_most > 0 && t->o.mip_most < last ? t->o.mip_most : last;

	if (f->lod->kind) {
		lod = f->whole ? (double)(int32_t)word(w, f->lod, 0, lane) : (double)num_f32(word(w, f->lod, 0, lane));
	} else if (f->dx->kind) {
		const uint32_t size[3] = { t->o.width, MAX(t->o.height, 1u), MAX(t->o.depth, 1u) };
		for (unsigned i = 0; i < 2; i++) {
			double sum = 0;
			for (unsigned d = 0; d < f->dims.n; d++) {
				double v = (double)num_f32(word(w, i ? f->dy : f->dx, d, lane)) * (t->o.normalized ? size[d] : 1u);
				sum += v * v;
			}
			longest = sum > longest ? sum : longest;
		}
		lod = longest > 0 ? log2(longest) / 2 : 0;
	} else {
		return 0;
	}
	lod += t->o.mip_bias;
	const double least = t->o.mip_least > 0 ? t->o.mip_least : 0;
	lod = lod > least ? lod : least; /* also of what is no number */
	return MIN(lod, most);
}

static bool read_levels(emu_warp *w, const emu_op *op, unsigned lane, const spot *s, sample_texel *out)
{
	double lod = level_of(w, (const fetch *)op->extra, s->t, lane), low = floor(lod),
		   part = floor((lod - low) * 256 + 0.5) / 256;
	sample_texel next;

	if (!s->t->o.mip_linear || part == 0)
		return read_level(w, op, lane, s, (uint32_t)floor(lod + 0.5), out);
	if (!read_level(w, op, lane, s, (uint32_t)low, out) || !read_level(w, op, lane, s, (uint32_t)low + 1, &next))
		return false;
	for (unsigned k = 0; k < 4; k++)
		out->bits[k] = num_bits32((float)((1 - part) * num_f32(out->bits[k]) + part * num_f32(next.bits[k])));
	return true;
}

/* One component of the four texels that linear filtering would weight, counterclockwise from the lower left. */
static bool read_four(emu_warp *w, const emu_op *op, unsigned lane, const spot *s, sample_texel *out)
{
	static const unsigned order[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	const fetch *f = (const fetch *)op->extra;
	emu_level l = emu_level_of(s->t, 0);
	sample_axis axis[3];
	sample_texel t;

	axes_of(w, f, s, &l, lane, true, axis);
	for (unsigned i = 0; i < 4; i++) {
		const int64_t at[3] = { axis[0].at[order[i][0]], axis[1].at[order[i][1]], 0 };
		if (!read_texel(w, op, lane, s, &l, at, &t))
			return false;
		out->bits[i] = t.bits[f->component];
	}
	return true;
}

static void give(const emu_warp *w, const emu_op *op, unsigned lane, const sample_texel *t, bool known)
{
	const emu_arg *d = &op->arg[0];

	for (unsigned i = 0; i < d->count; i++) {
		uint32_t slot = d->slots[i], v = t->bits[i];
		if (!slot)
			continue;
		if (op->m.dtype == CPTX_F16)
			v = num_to_f16(num_f32(v));
		else if (op->m.dtype == CPTX_F16X2) /* of four registers the last two get nothing */
			v = i < 2 ? num_to_f16(num_f32(t->bits[i * 2])) | num_to_f16(num_f32(t->bits[i * 2 + 1])) << 16 : 0;
		emu_put(w, slot, d->bits, lane, v);
		emu_define(w, slot, UINT32_C(1) << lane, known ? ALL_LANES : 0);
	}
}

static enum emu_step tex(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const fetch *f = (const fetch *)op->extra;
	unsigned n = (f->dims.cube ? 3 : f->dims.n) + f->dims.layers;

	if (f->handle->base && !emu_need(w, op, f->handle->slot, mask, "the handle"))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		const emu_texture *t = emu_texture_of(w, op, f->handle, l, false);
		bool known = is_known(w, f->at, n, l);
		sample_texel out = { { 0 } };
		if (!t || !emu_dims_fit(w, op, l, t, f->dims))
			return STEP_FAULT;
		if (known) {
			spot s = spot_of(w, f, t, l);
			if (!(f->gather ? read_four : read_levels)(w, op, l, &s, &out))
				return STEP_FAULT;
		}
		give(w, op, l, &out, known);
	}
	const emu_arg *p = emu_named(op, "p"); /* all texels are resident */
	if (p->kind == ARG_REG) {
		emu_set_pred(w, p->slot, mask, ALL_LANES);
		emu_define(w, p->slot, mask, ALL_LANES);
	}
	return STEP_NEXT;
}

/* What the manual has and textures here do not: a finding of who executes it. */
static enum emu_step not_there(emu_warp *w, const emu_op *op, uint32_t mask)
{
	return emu_find(w, op, __builtin_ctz(mask), CPTX_FIND_OPERAND, "the emulator does not execute it: %s",
	                (const char *)op->extra);
}

bool emu_is_not_there(emu_op *op, const char *why)
{
	op->extra = why;
	op->flags = OP_QUIET;
	op->fn = not_there;
	return true;
}

/* By name there are no textures: nvcc has not made them since CUDA 12. */
bool emu_by_name(const emu_op *op, const char **why)
{
	*why = "textures and surfaces are named by handles in registers, not by variables of the module";
	return !emu_named(op, "a")->base;
}

bool decode_tex(emu_decoder *d, emu_op *op)
{
	fetch *f = DECODER_NEW(d, fetch);
	unsigned geom = emu_modifier(op, "geom");
	const char *why;

	if (!f)
		return false;
	*f = (fetch){ .dims = emu_dims_of(geom),
		          .handle = emu_named(op, "a"),
		          .at = emu_named(op, "c"),
		          .offset = emu_named(op, "e"),
		          .lod = emu_named(op, "lod"),
		          .dx = emu_named(op, "dx"),
		          .dy = emu_named(op, "dy"),
		          .whole = op->m.ctype == CPTX_S32,
		          .gather = op->opcode == CPTX_OP_TLD4 };
	if (f->gather) {
		unsigned c = emu_modifier(op, "comp");
		f->component = c == CPTX_R ? 0 : c == CPTX_G ? 1 : c == CPTX_B ? 2 : 3;
	}
	if (emu_by_name(op, &why))
		return emu_is_not_there(op, why);
	const emu_arg *sampler =
		emu_named(op, "b"); /* an address, which has neither a register nor a number if it is left out */
	bool samples = sampler->kind && (sampler->slot || !sampler->base);
	if (!f->dims.n || samples || emu_named(op, "f")->kind)
		return emu_is_not_there(op, !f->dims.n ? "there are no textures of several samples"
		                            : samples  ? "there are no samplers apart from textures"
		                                       : "no texture holds depths to compare");
	op->extra = f;
	op->flags = OP_QUIET;
	op->fn = tex;
	return true;
}

/* ---- txq, suq ---- */

static uint32_t asked(const emu_op *op, const emu_texture *t, uint32_t level)
{
	emu_level l = emu_level_of(t, MIN(level, MAX(t->o.levels, 1u) - 1));

	switch (op->imm[0]) {
	case CPTX_WIDTH: return l.size[0];
	case CPTX_HEIGHT: return t->dims > 1 ? l.size[1] : 0;
	case CPTX_DEPTH: return t->dims > 2 ? l.size[2] : 0;
	case CPTX_ARRAY_SIZE: return t->o.layers;
	case CPTX_NUM_MIPMAP_LEVELS: return MAX(t->o.levels, 1u);
	case CPTX_NORMALIZED_COORDS: return t->o.normalized;
	default: return 1; /* samples */
	}
}

static enum emu_step query(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a"), *lod = emu_named(op, "lod");

	if (!emu_need(w, op, a->slot, mask, "the handle"))
		return STEP_FAULT;
	EACH_LANE(l, mask) {
		const emu_texture *t = emu_texture_of(w, op, a, l, op->opcode == CPTX_OP_SUQ);
		if (!t)
			return STEP_FAULT;
		emu_put(w, op->arg[0].slot, 32, l, asked(op, t, lod->kind ? word(w, lod, 0, l) : 0));
	}
	return STEP_NEXT;
}

bool decode_query(emu_decoder *d, emu_op *op)
{
	const char *why;

	(void)d;
	op->imm[0] = emu_modifier(op, "query");
	if (emu_by_name(op, &why))
		return emu_is_not_there(op, why);
	switch (op->imm[0]) {
	case CPTX_WIDTH:
	case CPTX_HEIGHT:
	case CPTX_DEPTH:
	case CPTX_ARRAY_SIZE:
	case CPTX_NUM_MIPMAP_LEVELS:
	case CPTX_NUM_SAMPLES:
	case CPTX_NORMALIZED_COORDS: break;
	default: return emu_is_not_there(op, "the numbers of formats and samplers are in no manual");
	}
	op->flags = OP_PURE;
	op->fn = query;
	return true;
}

/* ---- istypep ---- */

static enum emu_step istypep(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const emu_arg *a = emu_named(op, "a");
	uint32_t is = 0;

	EACH_LANE(l, mask) {
		const emu_texture *t = emu_texture_find(w->grid->machine, emu_get(w, a, l));
		is |= (uint32_t)(t && op->imm[0] == (t->o.surface ? CPTX_SURFREF : CPTX_TEXREF)) << l;
	}
	emu_set_pred(w, op->arg[0].slot, mask, is);
	return STEP_NEXT;
}

bool decode_istypep(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = emu_modifier(op, "ref");
	op->flags = OP_PURE;
	op->fn = istypep;
	return true;
}
