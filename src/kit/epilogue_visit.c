/* SPDX-License-Identifier: MIT */
/* Visitors of an epilogue: what each loads, and what it does with an element. */
#include "kit/epilogue.h"

#include <cptx/cptx.h>

/* ---- loads ---- */

/* Converts the two 16-bit floats of a word. */
static void widen(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val word, cptx_val low, cptx_val high)
{
	if (type == CPTX_BF16) {
		CALL(shl, .a = word, .b = cptx_imm(16), .into = cptx_as(low, CPTX_B32));
		CALL(and, .a = word, .b = cptx_imm(0xffff0000), .into = cptx_as(high, CPTX_B32));
		return;
	}
	cptx_val halves = cptx_regs_(k, at, CPTX_B16, 2);
	CALL(mov, .a = word, .into = halves);
	CALL(cvt, .a = cptx_as(cptx_elem(halves, 0), CPTX_F16), .dtype = CPTX_F32, .into = low);
	CALL(cvt, .a = cptx_as(cptx_elem(halves, 1), CPTX_F16), .dtype = CPTX_F32, .into = high);
}

static void load_half(cptx_kernel *k, cptx_site at, cptx_val address, enum cptx_type type, cptx_val when, cptx_val into)
{
	cptx_val half = cptx_regs_(k, at, CPTX_B16, 1);

	if (when.kind != CPTX_VAL_NONE)
		CALL(mov, .a = cptx_imm(0), .into = half);
	CALL(ld, .a = address, .space = CPTX_GLOBAL, .type = CPTX_B16, .into = half, .when = when);
	if (type == CPTX_F16) {
		CALL(cvt, .a = cptx_as(half, CPTX_F16), .dtype = CPTX_F32, .into = into);
		return;
	}
	cptx_val pair = cptx_regs_(k, at, CPTX_B16, 2);
	CALL(mov, .a = cptx_imm(0), .into = cptx_elem(pair, 0));
	CALL(mov, .a = half, .into = cptx_elem(pair, 1));
	CALL(mov, .a = pair, .into = cptx_as(into, CPTX_B32));
}

cptx_val epi_load(cptx_kernel *k, cptx_site at, cptx_val address, enum cptx_type type, uint32_t n, cptx_val when)
{
	static const uint16_t vec[] = { 0, 0, CPTX_V2, 0, CPTX_V4 };
	const uint32_t each = 32 / cptx_type_bits(type), words = n / each, at_once = MIN(words, 4u);
	cptx_val to = cptx_regs_(k, at, CPTX_F32, n);

	if (!words) {
		load_half(k, at, address, type, when, cptx_elem(to, 0));
		return to;
	}
	for (uint32_t w = 0; w < words; w += at_once) {
		cptx_val v = type == CPTX_F32 ? cptx_as(cptx_slice(to, w, at_once), CPTX_B32) : cptx_regs_(k, at, CPTX_B32, at_once);
		for (uint32_t i = 0; i < at_once && when.kind != CPTX_VAL_NONE; i++)
			CALL(mov, .a = cptx_imm(0), .into = cptx_elem(v, i));
		CALL(ld, .a = cptx_offset(address, 4 * (int64_t)w), .space = CPTX_GLOBAL, .vec = vec[at_once], .type = CPTX_B32,
		     .into = at_once == 1 ? cptx_elem(v, 0) : v, .when = when);
		for (uint32_t i = 0; i < at_once && type != CPTX_F32; i++)
			widen(k, at, type, cptx_elem(v, i), cptx_elem(to, 2 * (w + i)), cptx_elem(to, 2 * (w + i) + 1));
	}
	return to;
}

cptx_val epi_load_one(cptx_kernel *k, cptx_site at, const cptx_visitor *v)
{
	return cptx_elem(epi_load(k, at, v->address, v->type, 1, CPTX_NONE_), 0);
}

static uint32_t size_of(const cptx_visitor *v) { return cptx_type_bits(v->type) / 8; }

/* Loads x[r] of the rows at hand. */
static void load_rows(epi *x, const epi_at *w)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;

	w->s->rows = cptx_regs_(k, at, CPTX_F32, x->row_end - x->row_first);
	for (uint32_t r = x->row_first; r < x->row_end; r++) {
		cptx_val from = epi_address(k, at, w->v->address, x->row[r], 0, size_of(w->v));
		cptx_val v = epi_load(k, at, from, w->v->type, 1, x->row_ok[r]);
		CALL(mov, .a = cptx_elem(v, 0), .into = cptx_elem(w->s->rows, r - x->row_first));
	}
}

/* Where x[c] of the thread's first column is. */
static void find_cols(epi *x, const epi_at *w)
{
	w->s->at = epi_address(x->k, w->at, w->v->address, x->col, 0, size_of(w->v));
}

static void load_cols(epi *x, const epi_at *w, const epi_group *g)
{
	const cptx_val from = cptx_offset(w->s->at, (int64_t)(x->part + g->col) * size_of(w->v));

	w->s->cols = epi_load(x->k, w->at, from, w->v->type, g->n, g->col_ok);
}

static void find_matrix(epi *x, const epi_at *w)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	cptx_val first = w->v->address;

	if (w->v->z.kind != CPTX_VAL_NONE) {
		const cptx_val z = CALL(cvt, .a = epi_in_register(k, at, w->v->z), .dtype = CPTX_U64);
		const cptx_val each = CALL(mul_wide, .a = epi_in_register(k, at, x->e->opt.rows), .b = w->v->pitch);
		const cptx_val elements = CALL(mul, .a = each, .b = z, .mode = CPTX_LO), start = kit_plain(k, at, first);
		first = CALL(mad, .a = elements, .b = cptx_imm(size_of(w->v)), .c = start, .mode = CPTX_LO);
	}
	epi_find_rows_of(x, at, first, w->v->pitch, size_of(w->v), &w->s->matrix);
}

static void find_column(epi *x, const epi_at *w, const epi_group *g) { epi_find_column_of(x, w->at, g->col, &w->s->matrix); }

static void load_matrix(epi *x, const epi_at *w, const epi_group *g)
{
	const cptx_val from = epi_element_of(x, &w->s->matrix, g->row, g->col);

	w->s->here = epi_load(x->k, w->at, from, w->v->type, g->n, g->inside);
}

/* ---- elements ---- */

static void plus(epi *x, const epi_at *w, cptx_val v, cptx_val by)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	CALL(add, .a = v, .b = by, .into = v);
}

static void times(epi *x, const epi_at *w, cptx_val v, cptx_val by)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	CALL(mul, .a = v, .b = by, .into = v);
}

static void scale(epi *x, const epi_at *w, const epi_group *g, uint32_t i) { times(x, w, g->elem[i].value, w->v->value); }

static void add_matrix(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	const cptx_val c = cptx_elem(w->s->here, i);
	if (w->v->value.kind == CPTX_VAL_NONE)
		CALL(add, .a = v, .b = c, .into = v);
	else
		CALL(fma, .a = c, .b = w->v->value, .c = v, .rnd = CPTX_RN, .into = v);
}

static void add_col(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	plus(x, w, g->elem[i].value, cptx_elem(w->s->cols, i));
}

static void add_row(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	plus(x, w, g->elem[i].value, cptx_elem(w->s->rows, g->row - x->row_first));
}

static void mul_col(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	times(x, w, g->elem[i].value, cptx_elem(w->s->cols, i));
}

static void mul_row(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	times(x, w, g->elem[i].value, cptx_elem(w->s->rows, g->row - x->row_first));
}

/* ---- activations ---- */

/* v * sigmoid(by * v) = v / (1 + 2^(-by * log2(e) * v)) */
static void sigmoid(cptx_kernel *k, cptx_site at, double by, cptx_val v)
{
	cptx_val power = CALL(ex2, .a = CALL(mul, .a = v, .b = cptx_immf(-by * 1.4426950408889634)));
	cptx_val part = CALL(rcp, .a = CALL(add, .a = power, .b = cptx_immf(1)), .rnd = CPTX_APPROX);

	CALL(mul, .a = v, .b = part, .into = v);
}

static void gelu_tanh(cptx_kernel *k, cptx_site at, cptx_val v)
{
	const double root = 0.7978845608028654; /* sqrt(2 / pi) */
	cptx_val square = CALL(mul, .a = v, .b = v);
	cptx_val inner = CALL(fma, .a = square, .b = cptx_immf(0.044715 * root), .c = cptx_immf(root), .rnd = CPTX_RN);
	cptx_val t = CALL(tanh, .a = CALL(mul, .a = inner, .b = v)), half = CALL(mul, .a = v, .b = cptx_immf(0.5));

	CALL(fma, .a = half, .b = t, .c = half, .rnd = CPTX_RN, .into = v);
}

void epi_activate(cptx_kernel *k, cptx_site at, enum cptx_visit_kind kind, cptx_val v)
{
	switch (kind) {
	case CPTX_VISIT_RELU: CALL(max, .a = v, .b = cptx_immf(0), .NaN = CPTX_NAN, .into = v); return;
	case CPTX_VISIT_GELU_TANH: gelu_tanh(k, at, v); return;
	case CPTX_VISIT_GELU_SIGMOID: sigmoid(k, at, 1.702, v); return;
	case CPTX_VISIT_SILU: sigmoid(k, at, 1, v); return;
	default: return;
	}
}

static void relu(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	epi_activate(x->k, w->at, CPTX_VISIT_RELU, g->elem[i].value);
}

static void gelu(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	epi_activate(x->k, w->at, CPTX_VISIT_GELU_TANH, g->elem[i].value);
}

static void quick_gelu(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	epi_activate(x->k, w->at, CPTX_VISIT_GELU_SIGMOID, g->elem[i].value);
}

static void silu(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	epi_activate(x->k, w->at, CPTX_VISIT_SILU, g->elem[i].value);
}

/* ---- other accumulators ---- */

static void check_acc(epi *x, const epi_at *w)
{
	const cptx_acc *a = w->v->acc;

	if (!epi_is_acc(x->k, w->at, a))
		w->s->one = CPTX_NONE_;
	else if (a->count != x->acc->count || a->m != x->acc->m || a->n != x->acc->n || a->type != CPTX_F32)
		cptx_fail_(x->k, w->at, "an accumulator of %u x %u beside one of %u x %u; both are of .f32 and the same shape", a->m,
		           a->n, x->acc->m, x->acc->n);
	else
		w->s->one = a->regs;
}

static void add_acc(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	if (w->s->one.kind == CPTX_VAL_REG)
		CALL(add, .a = v, .b = cptx_elem(w->s->one, g->elem[i].i), .into = v);
}

static void gate(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	epi_activate(k, at, w->v->activation, v);
	if (w->s->one.kind == CPTX_VAL_REG)
		CALL(mul, .a = v, .b = cptx_elem(w->s->one, g->elem[i].i), .into = v);
}

/* ---- reductions ---- */

static void begin_amax(epi *x, const epi_at *w) { w->s->one = cptx_var_(x->k, w->at, CPTX_F32, cptx_immf(0)); }

/* v where it is inside, else 0 */
static cptx_val counted(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val inside)
{
	if (inside.kind == CPTX_VAL_NONE)
		return v;
	return CALL(selp, .a = v, .b = cptx_immf(0), .c = inside, .type = CPTX_F32);
}

static void amax(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	cptx_val size = CALL(abs, .a = counted(k, at, v, g->inside));
	CALL(max, .a = w->s->one, .b = size, .NaN = CPTX_NAN, .into = w->s->one);
}

/* Bits of .f32 that are not negative are in the order of their values. */
static void end_amax(epi *x, const epi_at *w)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	cptx_val most =
		CALL(redux_sync, .a = cptx_as(w->s->one, CPTX_U32), .mask = cptx_imm(-1), .op = CPTX_MAX, .type = CPTX_U32);
	cptx_val lane = CALL(and, .a = cptx_as(x->acc->thread, CPTX_U32), .b = cptx_imm(CPTX_WARP - 1));
	cptx_val first = CALL(setp, .a = lane, .b = cptx_imm(0), .cmp = CPTX_EQ);

	CALL(red, .a = w->v->address, .b = most, .space = CPTX_GLOBAL, .op = CPTX_MAX, .type = CPTX_U32, .when = first);
}

static void begin_sum(epi *x, const epi_at *w)
{
	w->s->rows = w->v->rows;
	if (w->s->rows.kind == CPTX_VAL_NONE)
		w->s->rows = cptx_acc_row_vector_(x->k, w->at, x->acc, cptx_immf(0));
	else if (w->s->rows.kind != CPTX_VAL_REG || w->s->rows.count != x->acc->rows)
		cptx_fail_(x->k, w->at, "CPTX_VISIT_ROW_SUM: .rows of %u registers; one of this accumulator has %u",
		           w->s->rows.count, x->acc->rows);
}

static void sum(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	if (w->s->rows.count == x->acc->rows) {
		const cptx_val row = cptx_elem(w->s->rows, g->row);
		CALL(add, .a = row, .b = counted(k, at, v, g->col_ok), .into = row);
	}
}

static void end_sum(epi *x, const epi_at *w)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	cptx_val mine = CPTX_NONE_;

	if (w->s->rows.count != x->acc->rows)
		return;
	cptx_acc_row_combine_(k, at, x->acc, CPTX_REDUCE_SUM, w->s->rows);
	if (w->v->address.kind == CPTX_VAL_NONE)
		return;
	/* one lane of each row: that of its first column */
	cptx_val col = cptx_frag_lane_(k, at, &x->acc->map, x->acc->thread, true);
	if (col.kind == CPTX_VAL_REG)
		mine = CALL(setp, .a = col, .b = cptx_imm(0), .cmp = CPTX_EQ);
	for (uint32_t r = 0; r < x->acc->rows; r++) {
		cptx_val to = epi_address(k, at, w->v->address, x->row[r], 0, 4), when = epi_both(k, at, mine, x->row_ok[r]);
		CALL(red, .a = to, .b = cptx_elem(w->s->rows, r), .space = CPTX_GLOBAL, .op = CPTX_ADD, .type = CPTX_F32,
		     .when = when);
	}
}

/* ---- the user's own ---- */

static void call(epi *x, const epi_at *w, const epi_group *g, uint32_t i)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const cptx_val v = g->elem[i].value;
	const bool t = x->e->opt.transposed;
	const cptx_val row = x->row[g->row], col = g->at_col[i];
	const cptx_visit where = {
		.row = t ? col : row, .col = t ? row : col, .inside = g->inside, .i = g->elem[i].i, .at_row = g->row, .visitor = w->v
	};
	cptx_val to = w->v->fn(k, w->v->user, &where, v);
	const bool constant = to.kind == CPTX_VAL_INT || to.kind == CPTX_VAL_FLOAT;
	if (to.kind == CPTX_VAL_REG && to.id == v.id && to.type == v.type)
		return;
	if (!constant && (to.kind != CPTX_VAL_REG || to.type != CPTX_F32))
		cptx_fail_(k, at, "CPTX_VISIT_CALL: the callback gave no value of .f32");
	else
		CALL(mov, .a = constant ? cptx_immf(to.kind == CPTX_VAL_INT ? (double)to.i : to.f) : to, .into = v);
}

/* ---- the list ---- */

#define NAME(kind) .name = #kind
static const epi_kind kinds[CPTX_VISIT_KINDS] = {
	[CPTX_VISIT_NONE] = { NAME(CPTX_VISIT_NONE) },
	[CPTX_VISIT_SCALE] = { NAME(CPTX_VISIT_SCALE), .needs = EPI_VALUE_OR_ADDRESS, .elem = scale },
	[CPTX_VISIT_MATRIX] = { NAME(CPTX_VISIT_MATRIX), .needs = EPI_ADDRESS | EPI_PITCH | EPI_AT_ROW | EPI_INSIDE,
	                        .rows = find_matrix, .cols = find_column, .row = load_matrix, .elem = add_matrix },
	[CPTX_VISIT_BIAS_COL] = { NAME(CPTX_VISIT_BIAS_COL), .needs = EPI_ADDRESS | EPI_INSIDE, .begin = find_cols,
	                          .cols = load_cols, .elem = add_col },
	[CPTX_VISIT_BIAS_ROW] = { NAME(CPTX_VISIT_BIAS_ROW), .needs = EPI_ADDRESS | EPI_AT_ROW | EPI_INSIDE, .rows = load_rows,
	                          .elem = add_row },
	[CPTX_VISIT_SCALE_COL] = { NAME(CPTX_VISIT_SCALE_COL), .needs = EPI_ADDRESS | EPI_INSIDE, .begin = find_cols,
	                           .cols = load_cols, .elem = mul_col },
	[CPTX_VISIT_SCALE_ROW] = { NAME(CPTX_VISIT_SCALE_ROW), .needs = EPI_ADDRESS | EPI_AT_ROW | EPI_INSIDE, .rows = load_rows,
	                           .elem = mul_row },
	[CPTX_VISIT_RELU] = { NAME(CPTX_VISIT_RELU), .needs = EPI_ACTIVATES, .elem = relu },
	[CPTX_VISIT_GELU_TANH] = { NAME(CPTX_VISIT_GELU_TANH), .needs = EPI_ACTIVATES, .elem = gelu },
	[CPTX_VISIT_GELU_SIGMOID] = { NAME(CPTX_VISIT_GELU_SIGMOID), .needs = EPI_ACTIVATES, .elem = quick_gelu },
	[CPTX_VISIT_SILU] = { NAME(CPTX_VISIT_SILU), .needs = EPI_ACTIVATES, .elem = silu },
	[CPTX_VISIT_ADD_ACC] = { NAME(CPTX_VISIT_ADD_ACC), .needs = EPI_ACC, .begin = check_acc, .elem = add_acc },
	[CPTX_VISIT_GATE] = { NAME(CPTX_VISIT_GATE), .needs = EPI_ACC | EPI_ACTIVATION, .begin = check_acc, .elem = gate },
	[CPTX_VISIT_GATE_PAIRS] = { NAME(CPTX_VISIT_GATE_PAIRS), .needs = EPI_ACTIVATION | EPI_ALONG_ROWS },
	[CPTX_VISIT_AMAX] = { NAME(CPTX_VISIT_AMAX), .needs = EPI_ADDRESS | EPI_INSIDE | EPI_ONLY_F32, .begin = begin_amax,
	                      .elem = amax, .end = end_amax },
	[CPTX_VISIT_ROW_SUM] = { NAME(CPTX_VISIT_ROW_SUM),
	                         .needs = EPI_ROWS_OR_ADDRESS | EPI_AT_ROW | EPI_INSIDE | EPI_ONLY_F32 | EPI_ALONG_ROWS,
	                         .begin = begin_sum, .elem = sum, .end = end_sum },
	[CPTX_VISIT_QUANTIZE] = { NAME(CPTX_VISIT_QUANTIZE),
	                          .needs = EPI_VALUE | EPI_ADDRESS | EPI_PITCH | EPI_AT_ROW | EPI_INSIDE | EPI_ALONG_ROWS },
	[CPTX_VISIT_CALL] = { NAME(CPTX_VISIT_CALL), .needs = EPI_FN | EPI_AT_ROW | EPI_INSIDE, .elem = call },
};

const epi_kind *epi_kind_get(enum cptx_visit_kind kind) { return (uint32_t)kind < CPTX_VISIT_KINDS ? &kinds[kind] : NULL; }
