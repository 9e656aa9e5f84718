/* SPDX-License-Identifier: MIT */
/* One operation of wgmma: operands from shared memory through descriptors, or A from registers, and the sums. */
#include "emu/tensor/wgmma_op.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"

#include <stdlib.h>

enum { ROWS = 64, PIECE = 16 /* bytes */ };

/* What the decoder made of the instruction. */
typedef struct wgmma {
	const frag *a, *d, *meta; /* a: NULL if it is in shared memory */
	const emu_arg *meta_arg;
	dot_shape s;
	struct dot_rule rule;
	unsigned atype, btype, dtype, bits; /* of an element of A and B */
	bool a_by_m, b_by_n;                /* the contiguous dimension in shared memory */
	bool minus_a, minus_b, saturate;
} wgmma;

/* What an operation needs while it runs. */
typedef struct scratch {
	uint32_t raw[ROWS * 64 + 256 * 64];
	float av[ROWS * 64], bv[256 * 64];
	int16_t ae[ROWS * 64], be[256 * 64];
	uint16_t at[ROWS * 64];
	uint8_t bad_row[ROWS], bad_col[256], bad[ROWS * 256];
	union {
		uint32_t u[ROWS * 256];
		float f[ROWS * 256];
	} d;
	bool any_bad;
} scratch;

/* ---- pieces of operands in shared memory ---- */

/* Piece number i: its first element; the others follow along the contiguous dimension. */
static void piece_at(unsigned i, unsigned along, unsigned per, bool by_row, unsigned *row, unsigned *k)
{
	unsigned n = along / per; /* pieces of a line */

	*row = by_row ? i % n * per : i / n;
	*k = by_row ? i / n : i % n * per;
}

typedef struct side {
	bool is_b;
	unsigned rows, k, per, n; /* rows of A or columns of B; elements of a piece; pieces */
	bool by_row;
	uint32_t *at;
} side;

static side side_of(const wgmma *x, wgmma_op *o, bool is_b)
{
	side s = { .is_b = is_b, .rows = is_b ? x->s.n : ROWS, .k = is_b ? x->s.k : x->s.ka, .per = PIECE * 8u / x->bits };

	s.by_row = is_b ? x->b_by_n : x->a_by_m;
	s.n = s.rows * s.k / s.per;
	s.at = is_b ? o->at_b : o->at_a;
	return s;
}

static bool open_side(wgmma_op *o, emu_warp *w, side s, uint64_t word)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	cptx_smem_elem elem = { .bits = (uint8_t)x->bits, .mn_major = s.by_row };
	cptx_error err = { .code = CPTX_OK };
	cptx_smem_desc desc;
	emu_place p;
	char near[EMU_NEAR];

	if (!cptx_smem_desc_decode(CPTX_DESC_WGMMA, word, &desc, &err)) {
		emu_find(w, o->op, EMU_ALL, CPTX_FIND_DESCRIPTOR, "of %s, 0x%llx: %s", s.is_b ? "B" : "A", (unsigned long long)word,
		         err.text);
		return false;
	}
	if (!frag_in_span(w, o->op, s.is_b ? "B" : "A", &desc, elem, s.k))
		return false;
	for (unsigned i = 0; i < s.n; i++) {
		unsigned row, k;
		piece_at(i, s.by_row ? s.rows : s.k, s.per, s.by_row, &row, &k);
		s.at[i] = cptx_smem_desc_at(&desc, elem, row, k).byte;
		if (!emu_locate(w->cluster, w->cta, SPACE_SHARED, s.at[i] | w->cta->rank << SHARED_RANK, PIECE, &p)) {
			emu_find(w, o->op, EMU_ALL, CPTX_FIND_DESCRIPTOR,
			         "of %s, 0x%llx: start 0x%x, lbo %u, sbo %u, swizzle %s: element (%u, %u) is at 0x%x, %s",
			         s.is_b ? "B" : "A", (unsigned long long)word, desc.start, desc.lbo, desc.sbo,
			         cptx_swizzle_get(desc.swizzle)->name, row, k, s.at[i], emu_near_shared(w->cta, s.at[i], PIECE, near));
			return false;
		}
		race_async_touch(w, o->race, &p, PIECE, ACCESS_READ | ACCESS_ASYNC);
	}
	return true;
}

bool wgmma_op_open(wgmma_op *o, emu_warp *w)
{
	const wgmma *x = (const wgmma *)o->op->extra;

	o->a.w = w;
	return (x->a || open_side(o, w, side_of(x, o, false), o->a_desc)) && open_side(o, w, side_of(x, o, true), o->b_desc);
}

/* ---- joining ---- */

wgmma_op *wgmma_op_new(emu_warp *w, const emu_op *op)
{
	wgmma_op *o = NEW(wgmma_op);

	if (o)
		o->op = op, o->first = w->number / 4 * 4;
	return o;
}

void wgmma_op_drop(emu_async *a)
{
	wgmma_op *o = (wgmma_op *)(void *)a;

	for (unsigned i = 0; i < ARRAY_LEN(o->frame); i++)
		if (o->frame[i])
			emu_frame_drop(NULL, o->frame[i]);
}

/* A value that all threads must agree on. */
static bool same_value(wgmma_op *o, emu_warp *w, const emu_arg *a, uint32_t mask, const char *what, uint64_t *value)
{
	unsigned l0 = (unsigned)__builtin_ctz(mask);
	uint64_t v = emu_get(w, a, l0);

	emu_need(w, o->op, a->slot, mask, what);
	EACH_LANE(l, mask) {
		if (emu_get(w, a, l) == v && (!o->joined || v == *value))
			continue;
		emu_find(w, o->op, (int)l, CPTX_FIND_OPERAND, "%s is 0x%llx here and 0x%llx in another thread of the warpgroup",
		         what, (unsigned long long)emu_get(w, a, l), (unsigned long long)(o->joined ? *value : v));
		return false;
	}
	*value = v;
	return true;
}

static bool run(emu_cluster *c, emu_async *a);

bool wgmma_op_join(wgmma_op *o, emu_warp *w, uint32_t mask)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	unsigned i = w->number - o->first;
	uint64_t keep = o->keep;

	if (!x->a && !same_value(o, w, &o->op->arg[1], mask, "the descriptor of A", &o->a_desc))
		return false;
	if (!same_value(o, w, &o->op->arg[2], mask, "the descriptor of B", &o->b_desc) ||
	    !same_value(o, w, emu_named(o->op, "scale_d"), mask, "scale_d", &keep))
		return false;
	o->keep = keep != 0;
	o->frame[i] = w->g->frame;
	o->frame[i]->refs++;
	o->mask[i] = mask;
	o->joined |= 1u << i;
	o->a = (emu_async){ .run = run, .drop = wgmma_op_drop, .w = w, .op = o->op };
	o->a.pipe = 0x10000u + (w->cta->rank << 8) + o->first;
	return true;
}

/* ---- operands laid open ---- */

/* Patterns of elements as dot.h wants them; b1: words of 32. */
static void read_side(wgmma_op *o, side s, scratch *t, uint32_t *raw)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	emu_cta *cta = o->a.w->cta;
	unsigned bytes = x->bits / 8;

	for (unsigned i = 0; i < s.n; i++) {
		unsigned row, k, at = s.at[i] - SHARED_FIRST;
		const unsigned char *p = cta->shared + at;
		uint32_t missing = ~(cta->shared_defined[at / 8] | (uint32_t)cta->shared_defined[at / 8 + 1] << 8) & 0xffff;
		piece_at(i, s.by_row ? s.rows : s.k, s.per, s.by_row, &row, &k);
		if (!bytes) {
			memcpy(raw + row * s.k / 32 + k / 32, p, PIECE);
			continue;
		}
		for (unsigned j = 0; j < s.per; j++) {
			unsigned r = s.by_row ? row + j : row, c = s.by_row ? k : k + j;
			uint32_t v = 0, element = ((1u << bytes) - 1) << j * bytes;
			memcpy(&v, p + j * bytes, bytes);
			raw[s.is_b ? DOT_B(s.k, c, r) : r * s.k + c] = v;
			if ((missing & element) == element)
				(s.is_b ? t->bad_col : t->bad_row)[r] = 1, t->any_bad = true;
		}
	}
}

static void read_a(wgmma_op *o, scratch *t, uint32_t *raw)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	const emu_arg *a = &o->op->arg[1];

	if (!x->a) {
		read_side(o, side_of(x, o, false), t, raw);
		return;
	}
	for (unsigned i = 0; i < 4; i++) {
		const uint32_t *r = o->frame[i]->r;
		if (x->bits > 1)
			frag_get(r, a, x->a, i * WARP, raw);
		else
			for (unsigned j = 0; j < x->a->nreg * WARP; j++)
				raw[(x->a->lane[i * WARP + j % WARP] + x->a->reg[j / WARP]) / 32u] = r[arg_slot(a, j / WARP) + j % WARP];
		if (frag_defined(r, a, o->mask[i]))
			continue;
		t->any_bad = true;
		memset(t->bad_row + i * 16, 1, 16);
	}
}

static bool read_meta(wgmma_op *o, scratch *t)
{
	const wgmma *x = (const wgmma *)o->op->extra;

	for (unsigned i = 0; i < 4; i++)
		frag_get(o->frame[i]->r, x->meta_arg, x->meta, i * WARP, t->raw);
	return frag_places(o->a.w, o->op, &x->s, ROWS, x->bits, false, t->raw, t->at);
}

static void negate(float *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = -v[i];
}

static void sum_float(wgmma_op *o, const dot_shape *s, scratch *t)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	dot_operand a = { t->av, t->ae }, b = { t->bv, t->be };
	bool half = x->dtype == CPTX_F16;

	dot_open(x->atype, t->raw, ROWS * s->ka, a);
	dot_open(x->btype, t->raw + ROWS * s->ka, s->k * s->n, b);
	if (x->minus_a)
		negate(t->av, ROWS * s->ka);
	if (x->minus_b)
		negate(t->bv, s->k * s->n);
	for (unsigned i = 0; half && i < ROWS * s->n; i++)
		t->d.f[i] = num_from_f16(t->d.u[i]);
	dot_float(&x->rule, s, a, b, NULL, NULL, t->d.f);
	for (unsigned i = 0; half && i < ROWS * s->n; i++)
		t->d.u[i] = num_to_f16(t->d.f[i]);
}

static void sum(wgmma_op *o, const dot_shape *s, scratch *t)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	uint32_t *b = t->raw + ROWS * s->ka;

	switch (x->atype) {
	case CPTX_B1: dot_bits(s, t->raw, b, true, t->d.u); return;
	case CPTX_S8:
	case CPTX_U8:
		dot_open_int(x->atype, t->raw, ROWS * s->ka, t->ae);
		dot_open_int(x->btype, b, s->k * s->n, t->be);
		dot_int(s, t->ae, t->be, x->saturate, t->d.u);
		return;
	default: sum_float(o, s, t);
	}
}

/* ---- running ---- */

static void read_d(wgmma_op *o, scratch *t)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	const emu_arg *d = &o->op->arg[0];

	for (unsigned i = 0; i < 4 && o->keep; i++) {
		frag_get(o->frame[i]->r, d, x->d, i * WARP, t->d.u);
		if (frag_defined(o->frame[i]->r, d, o->mask[i]))
			continue;
		t->any_bad = true;
		frag_undefined(o->frame[i]->r, d, x->d, i * WARP, o->mask[i], t->bad);
	}
}

static void write_d(wgmma_op *o, scratch *t)
{
	const wgmma *x = (const wgmma *)o->op->extra;
	const emu_arg *d = &o->op->arg[0];

	for (unsigned i = 0; t->any_bad && i < ROWS * x->s.n; i++)
		t->bad[i] |= t->bad_row[i / x->s.n] | t->bad_col[i % x->s.n];
	for (unsigned i = 0; i < 4; i++) {
		frag_put(o->frame[i]->r, d, x->d, i * WARP, o->mask[i], t->d.u);
		frag_define(o->frame[i]->r, d, x->d, i * WARP, o->mask[i], t->any_bad ? t->bad : NULL);
	}
}

static bool run(emu_cluster *c, emu_async *a)
{
	wgmma_op *o = (wgmma_op *)(void *)a;
	const wgmma *x = (const wgmma *)o->op->extra;
	scratch *t = NEW_UNSET(scratch, 1);
	dot_shape s = x->s;

	(void)c;
	if (!t) {
		emu_find(a->w, o->op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for an operation of wgmma");
		return true;
	}
	t->any_bad = false;
	memset(t->bad_row, 0, sizeof t->bad_row);
	memset(t->bad_col, 0, sizeof t->bad_col);
	memset(t->bad, 0, ROWS * s.n);
	memset(t->d.u, 0, ROWS * s.n * sizeof *t->d.u);
	if (!x->meta || read_meta(o, t)) {
		if (x->meta)
			s.at = t->at;
		read_a(o, t, t->raw);
		read_side(o, side_of(x, o, true), t, t->raw + ROWS * s.ka);
		read_d(o, t);
		sum(o, &s, t);
		write_d(o, t);
	}
	free(t);
	wgmma_op_done(o);
	return true;
}

/* ---- decoding ---- */

static bool is_one(const emu_op *op, const char *slot) { return emu_named(op, slot)->offset == 1; }
static bool is_minus(const emu_op *op, const char *slot) { return emu_named(op, slot)->offset == -1; }

bool wgmma_op_decode(emu_decoder *d, emu_op *op)
{
	wgmma *x = DECODER_NEW(d, wgmma);
	bool bits = op->opcode == CPTX_OP_WGMMA_MMA_ASYNC_B1, sparse = op->opcode == CPTX_OP_WGMMA_MMA_ASYNC_SP;
	mnk shape;

	if (!x || !mnk_of(arch_mods[op->m.shape].name, &shape))
		return false;
	*x = (wgmma){ .atype = bits ? CPTX_B1 : op->m.atype, .dtype = bits ? CPTX_S32 : op->m.dtype, .bits = 1 };
	x->btype = op->m.btype ? op->m.btype : x->atype;
	if (!bits)
		x->bits = arch_types[x->atype].bits;
	x->s = (dot_shape){ .m = ROWS, .n = shape.n, .k = shape.k, .ka = sparse ? shape.k / 2 : shape.k };
	x->a_by_m = is_one(op, "trans_a"), x->b_by_n = is_one(op, "trans_b");
	x->minus_a = is_minus(op, "scale_a"), x->minus_b = is_minus(op, "scale_b");
	x->saturate = op->m.satfinite != 0;
	x->rule = dot_rule(op->f->image->program->machine->target, DOT_WGMMA, x->atype, x->dtype);
	x->meta_arg = emu_named(op, "meta");
	cptx_frag what = {
		.kind = CPTX_FRAG_WGMMA_A, .m = ROWS, .n = (uint16_t)shape.n, .k = (uint16_t)shape.k, .bits = (uint8_t)x->bits
	};
	what.sparse = sparse;
	if (op->arg[1].kind == ARG_VEC && !(x->a = frag_new(d, op, &what, FRAG_ROWS)))
		return false;
	if (sparse) {
		what.kind = CPTX_FRAG_WGMMA_META;
		what.select = (uint8_t)emu_named(op, "sel")->offset;
		if (!(x->meta = frag_new(d, op, &what, FRAG_ROWS)))
			return false;
	}
	what = (cptx_frag){ .kind = CPTX_FRAG_WGMMA_D, .m = ROWS, .n = (uint16_t)shape.n, .k = (uint16_t)shape.k };
	what.bits = arch_types[x->dtype].bits;
	x->d = frag_new(d, op, &what, FRAG_ROWS);
	op->extra = x;
	op->flops = 2 * ROWS * shape.n * shape.k / 128;
	return x->d;
}
