/* SPDX-License-Identifier: MIT */
/* mma.sync, mma.sp, and wmma.mma: products of fragments of one warp. */
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/registers.h"
#include "emu/num/num.h"
#include "emu/tensor/fragment.h"

enum { MOST_A = 1024, MOST_B = 1024, MOST_D = 256 }; /* elements of an operand of one warp */

typedef struct mma {
	const frag *a, *b, *c, *d, *meta;
	const emu_arg *meta_arg, *scale_a, *scale_b, *id_a, *id_b;
	dot_shape s;
	unsigned m, products; /* those of m8n8k4 are four, of parts of the operands */
	unsigned atype, btype, ctype, dtype, stype;
	unsigned kshape; /* of the instruction: m16n8k... */
	uint8_t abits, vec;
	bool ordered, saturate, by_and;
	unsigned rnd;
	struct dot_rule rule;
} mma;

/* Operands of a warp laid open. */
typedef struct operands {
	uint32_t raw[MOST_A];
	float av[MOST_A], bv[MOST_B];
	int16_t ae[MOST_A], be[MOST_B];
	uint16_t at[MOST_A];
	union {
		uint32_t u[MOST_D];
		float f[MOST_D];
	} d;
} operands;

/* ---- definedness ---- */

/* A bad element of A spoils its row, one of B its column. */
static void define_result(emu_warp *w, const emu_op *op, const mma *x, uint32_t mask)
{
	const emu_arg *d = &op->arg[0], *a = &op->arg[1], *b = &op->arg[2], *c = &op->arg[3];
	uint8_t bad[MOST_A], bad_d[MOST_D], row[64] = { 0 }, col[64] = { 0 };
	bool meta = x->meta && !frag_defined(w->r, x->meta_arg, mask);

	if (!meta && frag_defined(w->r, a, mask) && frag_defined(w->r, b, mask) && frag_defined(w->r, c, mask)) {
		frag_define(w->r, d, x->d, 0, mask, NULL);
		return;
	}
	memset(bad, 0, sizeof bad);
	frag_undefined(w->r, a, x->a, 0, mask, bad);
	for (unsigned i = 0; i < x->m * x->s.ka; i++)
		row[i / x->s.ka] |= bad[i];
	memset(bad, 0, sizeof bad);
	frag_undefined(w->r, b, x->b, 0, mask, bad);
	for (unsigned i = 0; i < x->s.k * x->s.n * x->products; i++)
		col[i / DOT_PANEL / x->s.k * DOT_PANEL + i % DOT_PANEL] |= bad[i];
	memset(bad_d, 0, sizeof bad_d);
	frag_undefined(w->r, c, x->c, 0, mask, bad_d);
	for (unsigned i = 0; i < x->m * x->s.n; i++) {
		unsigned r = i / x->s.n, n = i % x->s.n;
		bad_d[i] |= row[r] | col[r / x->s.m * x->s.n + n] | meta;
	}
	frag_define(w->r, d, x->d, 0, mask, bad_d);
}

/* ---- sparse A ---- */

static bool open_meta(emu_warp *w, const emu_op *op, const mma *x, operands *o)
{
	frag_get(w->r, x->meta_arg, x->meta, 0, o->raw);
	return frag_places(w, op, &x->s, x->m, x->abits, x->ordered, o->raw, o->at);
}

/* ---- floating point ---- */

static void open_operand(emu_warp *w, const mma *x, const emu_arg *arg, const frag *f, unsigned type, unsigned n,
                         uint32_t *raw, dot_operand to)
{
	frag_get(w->r, arg, f, 0, raw);
	if (f->bits == 8 && type == CPTX_E2M1) /* in bits 2 to 5; those of 6 bits are in the lowest */
		for (unsigned i = 0; i < n; i++)
			raw[i] = raw[i] >> 2 & 0xf;
	dot_open_as(type, x->rule.pairs ? CPTX_F16 : type, raw, n, to);
}

static void open_c(emu_warp *w, const emu_op *op, const mma *x, operands *o)
{
	frag_get(w->r, &op->arg[3], x->c, 0, o->d.u);
	if (x->ctype == CPTX_F16)
		for (unsigned i = 0; i < x->m * x->s.n; i++)
			o->d.f[i] = num_from_f16(o->d.u[i]);
}

static void put_d(emu_warp *w, const emu_op *op, const mma *x, uint32_t mask, operands *o)
{
	if (x->dtype == CPTX_F16)
		for (unsigned i = 0; i < x->m * x->s.n; i++)
			o->d.u[i] = num_to_f16(o->d.f[i]);
	frag_put(w->r, &op->arg[0], x->d, 0, mask, o->d.u);
}

/* The shape of the products, with the places of what a sparse A stores; false with a finding. */
static bool open_shape(emu_warp *w, const emu_op *op, const mma *x, uint32_t mask, operands *o, dot_shape *s)
{
	*s = x->s;
	if (!frag_whole(w, op, mask) || (x->meta && !open_meta(w, op, x, o)))
		return false;
	s->at = x->meta ? o->at : NULL;
	return true;
}

static enum emu_step mma_float(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const mma *x = (const mma *)op->extra;
	dot_shape s;
	operands o;
	dot_operand a = { o.av, o.ae }, b = { o.bv, o.be };

	if (!open_shape(w, op, x, mask, &o, &s))
		return STEP_FAULT;
	open_operand(w, x, &op->arg[1], x->a, x->atype, x->m * s.ka, o.raw, a);
	open_operand(w, x, &op->arg[2], x->b, x->btype, s.k * s.n * x->products, o.raw, b);
	open_c(w, op, x, &o);
	for (unsigned i = 0; i < x->products; i++) {
		dot_operand ai = { a.v + i * s.m * s.ka, a.e + i * s.m * s.ka }, bi = { b.v + i * s.k * s.n, b.e + i * s.k * s.n };
		dot_float(&x->rule, &s, ai, bi, NULL, NULL, o.d.f + i * s.m * s.n);
	}
	define_result(w, op, x, mask);
	put_d(w, op, x, mask, &o);
	return STEP_NEXT;
}

/* ---- scaled ---- */

/* Scales of rows of A, or columns of B; false with a finding. */
static bool open_scales(emu_warp *w, const emu_op *op, const mma *x, bool is_b, dot_operand to)
{
	const emu_arg *id = is_b ? x->id_b : x->id_a, *data = is_b ? x->scale_b : x->scale_a;
	unsigned byte = emu_r32(w, arg_slot(id, 0))[0], thread = emu_r32(w, arg_slot(id, 1))[0];
	cptx_frag what = { .kind = is_b ? CPTX_FRAG_MMA_SCALE_B : CPTX_FRAG_MMA_SCALE_A, .m = 16, .n = 8, .bits = x->abits };
	uint32_t raw[64];
	frag f;

	what.k = (uint16_t)x->kshape;
	what.vec = x->vec;
	what.byte = (uint8_t)MIN(byte, 255u);
	what.select = (uint8_t)MIN(thread, 255u);
	if (!frag_make(&f, &what, is_b ? FRAG_COLS : FRAG_ROWS)) {
		emu_find(
			w, op, EMU_ALL, CPTX_FIND_OPERAND,
			"byte %u, thread %u of the scales of %s; bytes are multiples of the number of scales below 4, threads below %u",
			byte, thread, is_b ? "B" : "A", is_b ? 4 : 2);
		return false;
	}
	frag_get(w->r, data, &f, 0, raw);
	dot_open(x->stype, raw, (is_b ? 8u : 16u) * x->vec, to);
	return true;
}

static enum emu_step mma_scaled(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const mma *x = (const mma *)op->extra;
	dot_shape s;
	operands o;
	dot_operand a = { o.av, o.ae }, b = { o.bv, o.be };
	float sv[128];
	int16_t se[128];
	dot_operand sa = { sv, se }, sb = { sv + 64, se + 64 };

	if (!open_shape(w, op, x, mask, &o, &s))
		return STEP_FAULT;
	if (!open_scales(w, op, x, false, sa) || !open_scales(w, op, x, true, sb))
		return STEP_FAULT;
	open_operand(w, x, &op->arg[1], x->a, x->atype, x->m * s.ka, o.raw, a);
	open_operand(w, x, &op->arg[2], x->b, x->btype, s.k * s.n, o.raw, b);
	open_c(w, op, x, &o);
	if (x->abits == 4)
		dot_scaled(&x->rule, &s, a.v, b.v, sa, sb, x->vec, o.d.f);
	else
		dot_float(&x->rule, &s, a, b, sa.e, sb.e, o.d.f);
	define_result(w, op, x, mask);
	put_d(w, op, x, mask, &o);
	return STEP_NEXT;
}

/* ---- integers, bits, f64 ---- */

static void open_int(emu_warp *w, const emu_arg *arg, const frag *f, unsigned type, unsigned n, uint32_t *raw, int16_t *to)
{
	frag_get(w->r, arg, f, 0, raw);
	dot_open_int(type, raw, n, to);
}

static enum emu_step mma_int(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const mma *x = (const mma *)op->extra;
	dot_shape s;
	operands o;

	if (!open_shape(w, op, x, mask, &o, &s))
		return STEP_FAULT;
	open_int(w, &op->arg[1], x->a, x->atype, s.m * s.ka, o.raw, o.ae);
	open_int(w, &op->arg[2], x->b, x->btype, s.k * s.n, o.raw, o.be);
	frag_get(w->r, &op->arg[3], x->c, 0, o.d.u);
	dot_int(&s, o.ae, o.be, x->saturate, o.d.u);
	define_result(w, op, x, mask);
	frag_put(w->r, &op->arg[0], x->d, 0, mask, o.d.u);
	return STEP_NEXT;
}

/* Registers are runs of 32 bits along k already: only whole ones move. */
static void open_bits(emu_warp *w, const emu_arg *arg, const frag *f, uint32_t *words)
{
	for (unsigned i = 0; i < f->nreg; i++)
		for (unsigned l = 0; l < WARP; l++)
			words[(f->lane[l] + f->reg[i]) / 32u] = emu_r32(w, arg_slot(arg, i))[l];
}

static enum emu_step mma_bits(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const mma *x = (const mma *)op->extra;
	uint32_t a[16 * 8], b[8 * 8], d[MOST_D];

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	open_bits(w, &op->arg[1], x->a, a);
	open_bits(w, &op->arg[2], x->b, b);
	frag_get(w->r, &op->arg[3], x->c, 0, d);
	dot_bits(&x->s, a, b, x->by_and, d);
	bool fine = frag_defined(w->r, &op->arg[1], mask) && frag_defined(w->r, &op->arg[2], mask) &&
	            frag_defined(w->r, &op->arg[3], mask);
	for (unsigned i = 0; i < x->d->nreg; i++)
		emu_define(w, arg_slot(&op->arg[0], i), mask, fine ? ALL_LANES : 0);
	frag_put(w->r, &op->arg[0], x->d, 0, mask, d);
	return STEP_NEXT;
}

static enum emu_step mma_f64(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const mma *x = (const mma *)op->extra;
	uint64_t a[16 * 16], b[8 * 16], d[16 * 8];

	if (!frag_whole(w, op, mask))
		return STEP_FAULT;
	frag_get64(w->r, &op->arg[1], x->a, a);
	frag_get64(w->r, &op->arg[2], x->b, b);
	frag_get64(w->r, &op->arg[3], x->c, d);
	dot_f64(&x->s, a, b, x->rnd, d);
	define_result(w, op, x, mask);
	frag_put64(w->r, &op->arg[0], x->d, mask, d);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static unsigned element_bits(unsigned type, bool in_bytes)
{
	if (type == CPTX_E2M1 && !in_bytes)
		return 4;
	return arch_types[type].bits;
}

/* What all kinds share; what stands in the spelling is in *x. */
static bool decode(emu_decoder *d, emu_op *op, mma *x, mnk shape, bool wmma)
{
	unsigned c = wmma ? CPTX_FRAG_WMMA_C : CPTX_FRAG_MMA_C;
	cptx_frag what = { .m = (uint16_t)shape.m, .n = (uint16_t)shape.n, .k = (uint16_t)shape.k, .bits = x->abits };
	bool by_columns = x->atype == CPTX_F64 || x->atype == CPTX_B1;
	const emu_arg *sel = emu_named(op, "sel");

	x->products = shape.m == 8 && shape.n == 8 && shape.k == 4 && x->atype == CPTX_F16 ? 4 : 1;
	x->m = shape.m * x->products;
	x->kshape = shape.k;
	x->s = (dot_shape){ .m = shape.m, .n = shape.n, .k = shape.k, .ka = shape.k };
	x->meta_arg = emu_named(op, "meta");
	what.sparse = x->meta_arg->kind != ARG_NONE;
	what.repeated = wmma && x->atype == CPTX_F16;
	if (what.sparse)
		x->s.ka /= 2;
	what.kind = wmma ? CPTX_FRAG_WMMA_A : CPTX_FRAG_MMA_A;
	what.trans = emu_modifier(op, "alayout") == CPTX_COL && x->products > 1;
	x->a = frag_new(d, op, &what, FRAG_ROWS);
	what.kind = wmma ? CPTX_FRAG_WMMA_B : CPTX_FRAG_MMA_B;
	what.trans = emu_modifier(op, "blayout") == CPTX_ROW && x->products > 1;
	x->b = frag_new(d, op, &what, by_columns ? FRAG_COLS : FRAG_PANELS);
	if (what.sparse) {
		cptx_frag meta = what;
		meta.kind = CPTX_FRAG_MMA_META;
		meta.select = (uint8_t)sel->offset;
		x->meta = frag_new(d, op, &meta, FRAG_ROWS);
		if (!x->meta)
			return false;
	}
	what = (cptx_frag){
		.kind = (enum cptx_frag_kind)c, .m = what.m, .n = what.n, .k = what.k, .bits = arch_types[x->ctype].bits
	};
	x->c = frag_new(d, op, &what, FRAG_ROWS);
	what.bits = arch_types[x->dtype].bits;
	x->d = frag_new(d, op, &what, FRAG_ROWS);
	op->extra = x;
	op->converge = 1;
	op->flags = OP_SPLITS;
	op->flops = 2 * shape.m * shape.n * shape.k * x->products / WARP;
	return x->a && x->b && x->c && x->d;
}

static const cptx_target *target_of(const emu_op *op) { return op->f->image->program->machine->target; }

static emu_fn function_of(const mma *x)
{
	switch (x->atype) {
	case CPTX_F64: return mma_f64;
	case CPTX_S8:
	case CPTX_U8:
	case CPTX_S4:
	case CPTX_U4: return mma_int;
	default: return mma_float;
	}
}

static mma *mma_new(emu_decoder *d, emu_op *op)
{
	mma *x = DECODER_NEW(d, mma);

	if (!x)
		return NULL;
	*x = (mma){ .atype = op->m.atype, .btype = op->m.btype, .ctype = op->m.ctype, .dtype = op->m.dtype, .rnd = op->m.rnd };
	x->btype = x->btype ? x->btype : x->atype;
	x->ctype = x->ctype ? x->ctype : x->dtype;
	x->saturate = op->m.satfinite != 0;
	x->ordered = emu_modifier(op, "sp") == CPTX_SP_ORDERED_METADATA;
	return x;
}

static mnk shape_of(const emu_op *op)
{
	mnk s = { 0 };

	mnk_of(arch_mods[op->m.shape].name, &s);
	return s;
}

bool decode_mma(emu_decoder *d, emu_op *op)
{
	bool wmma = op->opcode == CPTX_OP_WMMA_MMA, small = op->opcode == CPTX_OP_MMA_M8N8K4;
	mma *x = mma_new(d, op);
	mnk shape = small ? (mnk){ 8, 8, 4 } : shape_of(op);

	if (!x)
		return false;
	if (!x->atype)
		x->atype = x->btype = CPTX_F16; /* fixed in the spelling */
	x->abits = (uint8_t)element_bits(x->atype, true);
	/* f16 from an accumulator of f32 is rounded apart */
	x->rule = dot_rule(target_of(op), wmma ? DOT_WMMA : DOT_MMA, x->atype, x->ctype == CPTX_F16 ? x->dtype : CPTX_F32);
	op->fn = function_of(x);
	return decode(d, op, x, shape, wmma);
}

bool decode_mma_scaled(emu_decoder *d, emu_op *op)
{
	bool in_bytes = emu_modifier(op, "kind") == CPTX_KIND_MXF8F6F4;
	unsigned vec = emu_modifier(op, "scale_vec");
	mma *x = mma_new(d, op);

	if (!x)
		return false;
	x->ctype = x->dtype = CPTX_F32;
	x->ordered = true;
	x->stype = op->m.stype;
	x->abits = (uint8_t)element_bits(x->atype, in_bytes);
	x->vec = vec == CPTX_SCALE_VEC_4X ? 4 : vec == CPTX_SCALE_VEC_2X || (!vec && !in_bytes) ? 2 : 1;
	x->scale_a = emu_named(op, "sa"), x->id_a = emu_named(op, "ia");
	x->scale_b = emu_named(op, "sb"), x->id_b = emu_named(op, "ib");
	x->rule = dot_rule(target_of(op), DOT_MMA, x->atype, CPTX_F32);
	if (!in_bytes)
		x->rule.frac = 35;
	op->fn = mma_scaled;
	return decode(d, op, x, shape_of(op), false);
}

bool decode_mma_bits(emu_decoder *d, emu_op *op)
{
	bool wmma = op->opcode == CPTX_OP_WMMA_MMA_B1;
	mma *x = mma_new(d, op);

	if (!x)
		return false;
	x->abits = 1;
	x->atype = x->btype = CPTX_B1;
	x->ctype = x->dtype = CPTX_S32;
	x->by_and = op->m.op == CPTX_AND;
	op->fn = mma_bits;
	return decode(d, op, x, wmma ? (mnk){ 8, 8, 128 } : shape_of(op), wmma);
}
