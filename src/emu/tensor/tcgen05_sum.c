/* SPDX-License-Identifier: MIT */
/*
 * tcgen05.mma: what an operation does when it happens.
 *
 * Sums are those of dot.h.  What is taken for granted about the hardware beside that: sums of sparse A are dense ones of
 * what is stored; D is divided by its power of two before anything is added; a CTA of a pair multiplies its own rows of A
 * with all columns of B, half of which are in each CTA; metadata lie in the lanes of the rows of D, whatever M is; a column
 * shift moves B and not the mask.
 */
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/num/num.h"
#include "emu/tensor/tcgen05_mma.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct scratch {
	uint32_t *raw_a, *raw_b, *d;
	dot_operand a, b;
	uint16_t *at;
	uint8_t *bad_row, *bad_col, *bad;
	uint32_t factor[256 * 8];
	float factor_v[2][256 * 6];
	int16_t factor_e[2][256 * 6];
	bool any_bad;
	max_align_t more[];
} scratch;

/* ---- layouts ---- */

static cptx_frag frag_of(const mma_op *o, enum cptx_frag_kind kind)
{
	return (cptx_frag){ .kind = kind,
		                .m = o->d.m,
		                .n = o->d.n,
		                .k = (uint16_t)o->k,
		                .bits = (uint8_t)o->bits,
		                .sparse = o->x->sparse,
		                .ctas = (uint8_t)o->ncta,
		                .ws = o->x->ws };
}

bool mma_map_d(const mma_op *o, unsigned cta, tmem_map *m, cptx_error *err)
{
	cptx_frag f = frag_of(o, CPTX_FRAG_TMEM_D);

	return tmem_map_make(m, &f, cta, err);
}

bool mma_map_a(const mma_op *o, unsigned cta, tmem_map *m, cptx_error *err)
{
	cptx_frag f = frag_of(o, CPTX_FRAG_TMEM_A);

	return tmem_map_make(m, &f, cta, err);
}

/* Rows of the fragment of B's factors for each half of its columns. */
static unsigned half_of_b(const mma_op *o)
{
	return o->ncta == 2 && o->d.m == 128 ? (o->d.n / 2 + 31u) / 32 * 32 : o->d.n / 2u;
}

bool mma_map_scale(const mma_op *o, bool is_b, tmem_map *m, cptx_error *err)
{
	cptx_frag f = frag_of(o, is_b ? CPTX_FRAG_TMEM_SCALE_B : CPTX_FRAG_TMEM_SCALE_A);

	f.vec = (uint8_t)o->vec;
	f.byte = is_b ? o->d.b_scale_id : o->d.a_scale_id;
	if (is_b)
		f.n = (uint16_t)(2 * half_of_b(o));
	return tmem_map_make(m, &f, 0, err);
}

bool mma_map_meta(const mma_op *o, tmem_map *m, cptx_error *err)
{
	cptx_frag f = frag_of(o, CPTX_FRAG_TMEM_META);

	f.m = (uint16_t)o->m, f.ctas = 1; /* each CTA has that of its own rows */
	return tmem_map_make(m, &f, 0, err);
}

/* ---- operands ---- */

static scratch *scratch_new(const mma_op *o)
{
	size_t na = (size_t)o->m * o->ka, nb = (size_t)o->k * o->d.n, nd = (size_t)o->m * o->d.n;
	scratch *t = (scratch *)malloc(sizeof *t + (na + nb) * (sizeof(uint32_t) + sizeof(float) + sizeof(int16_t)) +
	                               na * sizeof(uint16_t) + nd * (sizeof(uint32_t) + 1) + o->m + o->d.n);

	if (!t)
		return NULL;
	t->raw_a = (uint32_t *)(void *)t->more;
	t->raw_b = t->raw_a + na;
	t->d = t->raw_b + nb;
	t->a.v = (float *)(t->d + nd);
	t->b.v = t->a.v + na;
	t->a.e = (int16_t *)(t->b.v + nb);
	t->b.e = t->a.e + na;
	t->at = (uint16_t *)(t->b.e + nb);
	t->bad_row = (uint8_t *)(t->at + na);
	t->bad_col = t->bad_row + o->m;
	t->bad = t->bad_col + o->d.n;
	memset(t->bad_col, 0, o->d.n);
	return t;
}

static void read_b(const mma_op *o, scratch *t)
{
	const smem_side *s = &o->sb_side;
	uint32_t v[32];

	for (unsigned c = 0; c < o->ncta; c++)
		for (unsigned i = 0; i < s->n; i++) {
			unsigned row, k;
			uint32_t bad = smem_piece_read(s, o->cta[c], i, v);
			smem_piece(s, i, &row, &k);
			for (unsigned j = 0; j < s->per; j++) {
				unsigned col = c * (o->d.n / o->ncta) + (s->elem.mn_major ? row + j : row) - o->shift;
				unsigned at = s->elem.mn_major ? k : k + j;
				if (col >= o->d.n) /* shifted out */
					continue;
				bool zero = o->zero && o->zeros[col / 32] >> col % 32 & 1;
				t->raw_b[DOT_B(o->k, at, col)] = zero ? 0 : v[j];
				if (bad >> j & 1 && !zero)
					t->bad_col[col] = 1, t->any_bad = true;
			}
		}
}

static void read_a_smem(const mma_op *o, unsigned cta, scratch *t)
{
	const smem_side *s = &o->sa_side;
	uint32_t v[32];

	for (unsigned i = 0; i < s->n; i++) {
		unsigned row, k;
		uint32_t bad = smem_piece_read(s, o->cta[cta], i, v);
		smem_piece(s, i, &row, &k);
		for (unsigned j = 0; j < s->per; j++) {
			unsigned r = s->elem.mn_major ? row + j : row;
			t->raw_a[r * o->ka + (s->elem.mn_major ? k : k + j)] = v[j];
			if (bad >> j & 1)
				t->bad_row[r] = 1, t->any_bad = true;
		}
	}
}

/* Rows move one on; the first stays. */
static void shift_rows(const mma_op *o, scratch *t)
{
	memmove(t->raw_a + o->ka, t->raw_a, (size_t)(o->m - 1) * o->ka * sizeof *t->raw_a);
	memmove(t->bad_row + 1, t->bad_row, o->m - 1);
}

static void read_a(const mma_op *o, unsigned cta, scratch *t)
{
	tmem_map m;

	memset(t->bad_row, 0, o->m);
	if (o->x->a->kind != ARG_ADDR) {
		read_a_smem(o, cta, t);
		return;
	}
	mma_map_a(o, cta, &m, NULL);
	tmem_map_read(&m, o->cta[cta]->tmem, o->am, t->raw_a, t->bad_row, true, &t->any_bad);
	for (unsigned i = 0; o->bits == 8 && i < o->m * o->ka; i++) /* small floats stand in bytes: e2m1 in bits 2 to 5 */
		if (o->d.a == CPTX_E2M1)
			t->raw_a[i] = t->raw_a[i] >> 2 & 0xf;
		else if (o->d.a == CPTX_E2M3 || o->d.a == CPTX_E3M2)
			t->raw_a[i] &= 0x3f;
	if (o->x->ashift)
		shift_rows(o, t);
}

static bool read_meta(const mma_op *o, unsigned cta, scratch *t, dot_shape *s)
{
	uint32_t *code = NEW_UNSET(uint32_t, (size_t)o->m * o->ka);
	tmem_map m;

	if (!code)
		return emu_find(o->a.w, o->a.op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for an operation of tcgen05.mma"), false;
	mma_map_meta(o, &m, NULL);
	tmem_map_read(&m, o->cta[cta]->tmem, o->meta, code, t->bad_row, true, &t->any_bad);
	s->at = t->at;
	bool ok = frag_places(o->a.w, o->a.op, s, o->m, o->bits, false, code, t->at);
	free(code);
	return ok;
}

/* In tensor memory a row may have more bytes than factors, and a half of B more rows. */
static void read_factors(const mma_op *o, unsigned cta, bool is_b, scratch *t)
{
	unsigned rows = is_b ? o->d.n : o->m, half = is_b ? half_of_b(o) : rows, byte = is_b ? o->d.b_scale_id : o->d.a_scale_id;
	uint8_t bad[256] = { 0 }, *to = is_b ? t->bad_col : t->bad_row;
	tmem_map m;

	mma_map_scale(o, is_b, &m, NULL);
	tmem_map_read(&m, o->cta[cta]->tmem, is_b ? o->sb : o->sa, t->factor, bad, true, &t->any_bad);
	for (unsigned row = 0; row < rows; row++) {
		unsigned from = is_b && row >= rows / 2 ? half + row - rows / 2 : row;
		to[row] |= bad[from];
		for (unsigned i = 0; i < o->vec; i++)
			t->factor[row * o->vec + i] = t->factor[from * m.cols + (m.cols > o->vec ? byte : 0) + i];
	}
	dot_open(o->d.scale, t->factor, rows * o->vec, (dot_operand){ t->factor_v[is_b], t->factor_e[is_b] });
}

static void read_d(const mma_op *o, const tmem_map *m, unsigned cta, scratch *t)
{
	size_t n = (size_t)o->m * o->d.n;
	float *f = (float *)t->d;

	memset(t->bad, 0, n);
	if (!o->enable) {
		memset(t->d, 0, n * sizeof *t->d);
		return;
	}
	tmem_map_read(m, o->cta[cta]->tmem, o->acc, t->d, t->bad, false, &t->any_bad);
	for (size_t i = 0; o->d.d == CPTX_F16 && i < n; i++)
		f[i] = num_from_f16(t->d[i] & 0xffff);
	float divide = 1.0f / (float)(1u << o->x->scale);
	for (size_t i = 0; o->x->scale && i < n; i++)
		f[i] *= divide;
}

static void negate(float *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = -v[i];
}

/* ---- sums ---- */

static void sum(const mma_op *o, const dot_shape *s, scratch *t)
{
	struct dot_rule rule = dot_rule(o->a.w->grid->machine->target, DOT_TCGEN05, o->d.a, o->d.d);
	dot_operand sa = { t->factor_v[0], t->factor_e[0] }, sb = { t->factor_v[1], t->factor_e[1] };
	float *d = (float *)t->d;

	if (o->x->kind == CPTX_TCGEN05_I8) {
		dot_open_int(o->d.a, t->raw_a, s->m * s->ka, t->a.e);
		dot_int(s, t->a.e, t->b.e, o->d.saturate, t->d);
		return;
	}
	dot_open(o->d.a, t->raw_a, s->m * s->ka, t->a);
	if (o->d.a_negated)
		negate(t->a.v, (size_t)s->m * s->ka);
	if (o->x->kind == CPTX_TCGEN05_MXF4 || o->x->kind == CPTX_TCGEN05_MXF4NVF4)
		dot_scaled(&rule, s, t->a.v, t->b.v, sa, sb, o->vec, d);
	else if (o->x->scaled)
		dot_float(&rule, s, t->a, t->b, sa.e, sb.e, d);
	else
		dot_float(&rule, s, t->a, t->b, NULL, NULL, d);
	for (unsigned i = 0; o->d.d == CPTX_F16 && i < s->m * s->n; i++)
		t->d[i] = num_to_f16(d[i]);
}

static void open_b(const mma_op *o, scratch *t)
{
	unsigned n = o->k * o->d.n;

	read_b(o, t);
	if (o->x->kind == CPTX_TCGEN05_I8) {
		dot_open_int(o->d.b, t->raw_b, n, t->b.e);
		return;
	}
	dot_open(o->d.b, t->raw_b, n, t->b);
	if (o->d.b_negated)
		negate(t->b.v, n);
}

static bool run_cta(const mma_op *o, unsigned cta, scratch *t)
{
	dot_shape s = { .m = o->m, .n = o->d.n, .k = o->k, .ka = o->ka };
	tmem_map m;

	read_a(o, cta, t);
	if (o->x->sparse && !read_meta(o, cta, t, &s))
		return false;
	if (o->x->scaled) {
		read_factors(o, cta, false, t);
		read_factors(o, cta, true, t);
	}
	mma_map_d(o, cta, &m, NULL);
	read_d(o, &m, cta, t);
	sum(o, &s, t);
	for (unsigned i = 0; t->any_bad && i < s.m * s.n; i++)
		t->bad[i] |= t->bad_row[i / s.n] | t->bad_col[i % s.n];
	tmem_map_write(&m, o->cta[cta]->tmem, o->acc, t->d, t->any_bad ? t->bad : NULL, o->off[cta]);
	return true;
}

bool mma_run(emu_cluster *c, emu_async *a)
{
	const mma_op *o = (mma_op *)(void *)a;
	scratch *t = scratch_new(o);

	if (!t) {
		emu_find(a->w, a->op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for an operation of tcgen05.mma");
		return true;
	}
	t->any_bad = false;
	open_b(o, t);
	for (unsigned i = 0; i < o->ncta && run_cta(o, i, t); i++)
		;
	c->counters.tensor_flops += UINT64_C(2) * o->d.m * o->d.n * o->k;
	free(t);
	return true;
}
