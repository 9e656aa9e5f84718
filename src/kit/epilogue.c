/* SPDX-License-Identifier: MIT */
/* Epilogues: the chain of visitors, and in which order it goes over a thread's elements. */
#include "kit/epilogue.h"
#include "base/options.h"

#include <cptx/cptx.h>

/* ---- places ---- */

bool epi_is_acc(cptx_kernel *k, cptx_site at, const cptx_acc *acc)
{
	if (!kit_acc_is_made(k, at, acc))
		return false;
	const bool fits = acc->count <= EPI_ELEMS && acc->rows <= EPI_ROWS && acc->n <= EPI_COLS;
	const bool sound = acc->regs.kind == CPTX_VAL_REG && acc->regs.count == acc->count && acc->map.regs && acc->atom_rows &&
	                   acc->atom_rows <= CPTX_ACC_ROWS && acc->atoms_n && acc->atoms_m &&
	                   acc->rows == acc->atoms_m * acc->atom_rows && acc->map.rows && acc->map.cols;

	if (!acc->count)
		cptx_fail_(k, at, "an accumulator in tensor memory; cptx_acc_load brings a part of it to registers");
	else if (acc->type == CPTX_F64)
		cptx_fail_(k, at, "an accumulator of .f64; epilogues compute in .f32: cptx_acc_store stores it as it is");
	else if (!fits)
		cptx_fail_(k, at, "an accumulator of %u elements in %u rows of %u columns; an epilogue takes up to %d in %d of %d",
		           acc->count, acc->rows, acc->n, EPI_ELEMS, EPI_ROWS, EPI_COLS);
	else if (!sound)
		cptx_fail_(k, at, "an accumulator that neither cptx_acc_new nor cptx_acc_load made");
	return acc->count && acc->type != CPTX_F64 && fits && sound;
}

uint32_t epi_row_of(const cptx_acc *acc, uint32_t r)
{
	return r / acc->atom_rows * acc->map.rows + acc->atom_row[r % acc->atom_rows];
}

/* A thread's columns run from one that is a multiple of each power of two up to the columns that it has in a row there. */
bool epi_group_at(const cptx_acc *acc, uint32_t vec, uint32_t row, uint32_t col, epi_group *g)
{
	*g = (epi_group){ .n = 0, .col = col, .row = row };
	const uint32_t down = epi_row_of(acc, row), first = kit_acc_number(acc, down, col);
	uint32_t most = 1;

	if (first >= acc->count)
		return false;
	while (most < vec && col % (2 * most) == 0)
		most *= 2;
	for (uint32_t i = 0; i < most && kit_acc_number(acc, down, col + i) < acc->count; i++)
		g->n++;
	while (g->n & (g->n - 1))
		g->n &= g->n - 1;
	for (uint32_t i = 0; i < g->n; i++)
		g->elem[i] = cptx_acc_at(acc, kit_acc_number(acc, down, col + i));
	return true;
}

cptx_val epi_both(cptx_kernel *k, cptx_site at, cptx_val p, cptx_val q)
{
	if (p.kind == CPTX_VAL_NONE || q.kind == CPTX_VAL_NONE)
		return p.kind == CPTX_VAL_NONE ? q : p;
	return CALL(and, .a = p, .b = q, .type = CPTX_PRED);
}

cptx_val epi_in_register(cptx_kernel *k, cptx_site at, cptx_val v)
{
	return v.kind == CPTX_VAL_REG ? cptx_as(v, CPTX_U32) : CALL(mov, .a = v, .type = CPTX_U32);
}

cptx_val epi_is_below(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val end)
{
	if (end.kind == CPTX_VAL_NONE)
		return CPTX_NONE_;
	return CALL(setp, .a = epi_in_register(k, at, v), .b = end, .cmp = CPTX_LT, .type = CPTX_U32);
}

cptx_val epi_address(cptx_kernel *k, cptx_site at, cptx_val base, cptx_val v, uint32_t more, uint32_t bytes)
{
	const int64_t behind = (int64_t)more * bytes + (base.kind == CPTX_VAL_REG ? base.offset : 0);

	if (v.kind == CPTX_VAL_INT)
		return cptx_offset(base, (v.i + more) * bytes);
	if (base.kind == CPTX_VAL_REG)
		base.offset = 0; /* added behind the sum */
	return cptx_offset(CALL(mad_wide, .a = cptx_as(v, CPTX_U32), .b = cptx_imm(bytes), .c = base), behind);
}

void epi_find_rows_of(const epi *x, cptx_site at, cptx_val address, cptx_val pitch, uint32_t bytes, epi_matrix *m)
{
	cptx_kernel *k = x->k;
	const bool t = x->e->opt.transposed;
	const uint32_t rows = t ? 1 : x->row_end - x->row_first;
	const cptx_val along = t ? x->row[x->row_first] : x->col;
	const cptx_val first = kit_plain(k, at, epi_address(k, at, address, along, 0, bytes));

	m->bytes = bytes;
	m->pitch = pitch.kind == CPTX_VAL_REG ? cptx_as(pitch, CPTX_U32) : pitch;
	m->rows = cptx_regs_(k, at, CPTX_U64, rows);
	for (uint32_t r = x->row_first; r < x->row_first + rows; r++) {
		cptx_val elements = CALL(mul_wide, .a = epi_in_register(k, at, t ? x->col : x->row[r]), .b = m->pitch);
		CALL(mad, .a = elements, .b = cptx_imm(bytes), .c = first, .mode = CPTX_LO,
		     .into = cptx_elem(m->rows, r - x->row_first));
	}
	m->column = m->rows, m->col = 0;
}

void epi_find_column_of(const epi *x, cptx_site at, uint32_t col, epi_matrix *m)
{
	cptx_kernel *k = x->k;

	col += x->part;
	if (!x->e->opt.transposed || col == m->col)
		return;
	/* from column to column: of multiples of the pitch ptxas keeps those that the rows behind need again */
	m->column =
		CALL(mad_wide, .a = epi_in_register(k, at, m->pitch), .b = cptx_imm((col - m->col) * m->bytes), .c = m->column);
	m->col = col;
}

cptx_val epi_element_of(const epi *x, const epi_matrix *m, uint32_t row, uint32_t col)
{
	const uint32_t down = epi_row_of(x->acc, row) - epi_row_of(x->acc, x->row_first);

	if (x->e->opt.transposed)
		return cptx_offset(m->column, (int64_t)down * m->bytes);
	return cptx_offset(cptx_elem(m->rows, row - x->row_first), (int64_t)(x->part + col) * m->bytes);
}

/* ---- making ---- */

void cptx_epilogue_new_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_epilogue_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, e, "epilogue"))
		return;
	*e = (cptx_epilogue){ .vec = 0 };
	cptx_epilogue_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_epilogue_opt, &o, opt, at, k))
		return;
	const uint32_t vec = o.vec ? o.vec : 2;
	if (vec & (vec - 1) || vec > CPTX_EPILOGUE_VEC) {
		cptx_fail_(k, at, "epilogue: .vec = %u; it is 1, 2, 4, 8 or %d", vec, CPTX_EPILOGUE_VEC);
		return;
	}
	if (!KIT_OPTION("cptx_epilogue_new", &o, rows, KIT_U32 | KIT_WHOLE | KIT_NONE) ||
	    !KIT_OPTION("cptx_epilogue_new", &o, cols, KIT_U32 | KIT_WHOLE | KIT_NONE))
		return;
	if (o.cols.kind == CPTX_VAL_INT && o.cols.i % vec) {
		cptx_fail_(k, at, "epilogue: .cols = %lld; with .vec = %u it is a multiple of that: say .vec = %lld",
		           (long long)o.cols.i, vec, (long long)(o.cols.i & -o.cols.i));
		return;
	}
	e->opt = o;
	e->opt.vec = e->vec = vec;
	e->made = kit_made(k, KIT_cptx_epilogue);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_epilogue *e) { return KIT_IS_MADE(cptx_epilogue, k, at, e); }

/* What a visitor lacks; NULL: nothing. */
static const char *lack_of(uint32_t needs, const cptx_visitor *v, bool rows)
{
	const bool value = v->value.kind != CPTX_VAL_NONE, address = v->address.kind != CPTX_VAL_NONE;

	if (needs & EPI_ADDRESS && !address)
		return ".address, .u64 of global memory";
	if (needs & EPI_VALUE_OR_ADDRESS && value == address)
		return "either .value or .address";
	if (needs & EPI_ROWS_OR_ADDRESS && (v->rows.kind != CPTX_VAL_NONE) == address)
		return "either .rows or .address";
	if (needs & EPI_PITCH && v->pitch.kind == CPTX_VAL_NONE)
		return ".pitch, in elements";
	if (needs & EPI_PITCH && v->z.kind != CPTX_VAL_NONE && !rows)
		return ".rows in cptx_epilogue_new, of each matrix of the batch";
	if (needs & EPI_ACC && !v->acc)
		return ".acc, another accumulator";
	return needs & EPI_FN && !v->fn ? ".fn" : NULL;
}

/* An option that a visitor has and its kind does not read; NULL: there is none.  A callback may read all. */
static const char *excess_of(uint32_t needs, const cptx_visitor *v)
{
	if (needs & EPI_FN)
		return NULL;
	if (v->address.kind != CPTX_VAL_NONE && !(needs & (EPI_ADDRESS | EPI_VALUE_OR_ADDRESS | EPI_ROWS_OR_ADDRESS)))
		return "address";
	return v->pitch.kind != CPTX_VAL_NONE && !(needs & EPI_PITCH) ? "pitch" : NULL;
}

static bool is_loadable(enum cptx_type type) { return type == CPTX_F32 || type == CPTX_BF16 || type == CPTX_F16; }

static bool check_values(cptx_kernel *k, cptx_site at, const char *where, const cptx_visitor *v)
{
	cptx_val row = v->rows; /* one of the array's */

	row.count = MIN(row.count, (uint16_t)1);
	return KIT_OPTION(where, v, value, KIT_F32 | KIT_REAL | KIT_NONE) &&
	       KIT_OPTION(where, v, address, KIT_U64 | KIT_VARIABLE | KIT_NONE) &&
	       KIT_OPTION(where, v, z, KIT_U32 | KIT_SIGNED | KIT_NONE) &&
	       KIT_OPTION(where, v, pitch, KIT_U32 | KIT_COUNT | KIT_NONE) &&
	       kit_value(k, at, where, ".rows", row, KIT_F32 | KIT_NONE);
}

static bool check_visitor(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, const epi_kind *kind, const cptx_visitor *v)
{
	const uint32_t vec = e->opt.vec;
	const char *lacks = lack_of(kind->needs, v, e->opt.rows.kind != CPTX_VAL_NONE), *excess = excess_of(kind->needs, v);
	const epi_kind *activation = epi_kind_get(v->activation);

	if (lacks)
		cptx_fail_(k, at, "%s: give %s", kind->name, lacks);
	else if (excess)
		cptx_fail_(k, at, "%s: with .%s, which it does not read", kind->name, excess);
	else if (v->type && !is_loadable(v->type))
		cptx_fail_(k, at, "%s: of .%s; it is of CPTX_F32, BF16 or F16", kind->name, cptx_type_name(v->type));
	else if (kind->needs & EPI_ACTIVATION && v->activation && !(activation && activation->needs & EPI_ACTIVATES))
		cptx_fail_(k, at, "%s: .activation = %d; it is CPTX_VISIT_RELU, GELU_TANH, GELU_SIGMOID, SILU or NONE", kind->name,
		           (int)v->activation);
	else if (v->pitch.kind == CPTX_VAL_INT && v->pitch.i % vec)
		cptx_fail_(k, at, "%s: .pitch = %lld; with .vec = %u it is a multiple of that: say .vec = %lld in cptx_epilogue_new",
		           kind->name, (long long)v->pitch.i, vec, (long long)(v->pitch.i & -v->pitch.i));
	else if (kind->needs & EPI_ONLY_F32 && v->type && v->type != CPTX_F32)
		cptx_fail_(k, at, "%s: of .%s; what it adds to is .f32", kind->name, cptx_type_name(v->type));
	else if (v->apart & (v->apart - 1))
		cptx_fail_(k, at, "%s: .apart = %u; it is a power of two", kind->name, v->apart);
	else
		return check_values(k, at, kind->name, v);
	return false;
}

/* Of a transposed chain, whose rows of D are columns of the accumulator: the visitor that goes by columns in place of one
 * that goes by rows, and the reverse. */
static enum cptx_visit_kind transposed(enum cptx_visit_kind kind)
{
	switch (kind) {
	case CPTX_VISIT_BIAS_COL: return CPTX_VISIT_BIAS_ROW;
	case CPTX_VISIT_BIAS_ROW: return CPTX_VISIT_BIAS_COL;
	case CPTX_VISIT_SCALE_COL: return CPTX_VISIT_SCALE_ROW;
	case CPTX_VISIT_SCALE_ROW: return CPTX_VISIT_SCALE_COL;
	default: return kind;
	}
}

void cptx_epilogue_add_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, enum cptx_visit_kind kind,
                        const cptx_visitor *visitor)
{
	const epi_kind *what = epi_kind_get(kind);

	cptx_visitor known;

	if (!is_made(k, at, e) || !IS_GIVEN_TO(k, at, visitor, "visitor") ||
	    !OPTIONS_READ_IN(cptx_visitor, &known, visitor, at, k))
		return;
	visitor = &known;
	if (e->acc.count || e->acc.tmem.kind != CPTX_VAL_NONE) {
		cptx_fail_(k, at, "a visitor behind cptx_epilogue_run, which has run the chain: it would never run");
		return;
	}
	if (!what || e->count == CPTX_EPILOGUE_VISITORS) {
		cptx_fail_(k, at,
		           what ? "epilogue: more than %d visitors" : "epilogue: %d is no kind of visitor; see enum cptx_visit_kind",
		           what ? CPTX_EPILOGUE_VISITORS : (int)kind);
		return;
	}
	if (e->opt.integers) {
		cptx_fail_(k, at, "%s: of an epilogue of .integers; visitors are of .f32", what->name);
		return;
	}
	if (!check_visitor(k, at, e, what, visitor))
		return;
	if (what->needs & EPI_ALONG_ROWS && e->opt.transposed) {
		cptx_fail_(k, at, "%s: of accumulators of D^T (.transposed), which have elements of a column of D side by side",
		           what->name);
		return;
	}
	cptx_visitor *v = &e->visitor[e->count];
	*v = *visitor;
	v->type = v->type ? v->type : CPTX_F32, v->apart = v->apart ? v->apart : 1;
	if (what->needs & EPI_VALUE_OR_ADDRESS && v->address.kind != CPTX_VAL_NONE)
		v->value = epi_load_one(k, at, v);
	e->kind[e->count] = e->opt.transposed ? transposed(kind) : kind, e->at[e->count] = at;
	e->count++;
}

/* ---- running ---- */

static epi_at visitor_at(epi *x, uint32_t i) { return (epi_at){ x->e->at[i], &x->e->visitor[i], &x->state[i] }; }

/* Calls the function `hook`, a member of epi_kind, of each visitor of the chain that has one. */
#define EACH_VISITOR(x, hook, ...)                                                                                          \
	for (uint32_t i_ = (x)->first; i_ < (x)->end; i_++) {                                                                   \
		const epi_at w = visitor_at((x), i_);                                                                               \
		const epi_kind *kind_ = epi_kind_get((x)->e->kind[i_]);                                                             \
		if (kind_ && kind_->hook)                                                                                           \
			kind_->hook(__VA_ARGS__);                                                                                       \
	}

epi epi_begin(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, uint32_t first, uint32_t end, uint32_t needs)
{
	const bool t = e->opt.transposed;
	epi x = { .k = k,
		      .e = e,
		      .acc = &e->acc,
		      .m0 = t ? e->col : e->row,
		      .n0 = t ? e->row : e->col,
		      .rows = t ? e->cols : e->opt.rows,
		      .cols = t ? e->opt.rows : e->cols,
		      .vec = t ? 1 : e->vec,
		      .first = first,
		      .end = end,
		      .needs = needs };

	for (uint32_t i = first; i < end; i++)
		x.needs |= epi_kind_get(e->kind[i])->needs;
	if (x.needs & (EPI_AT_ROW | EPI_INSIDE)) {
		x.row0 = cptx_acc_coordinate_(k, at, x.acc->row, 0, x.m0);
		x.col = cptx_acc_coordinate_(k, at, x.acc->col, 0, x.n0);
	}
	EACH_VISITOR(&x, begin, &x, &w);
	return x;
}

void epi_end(epi *x) { EACH_VISITOR(x, end, x, &w); }

void epi_rows(epi *x, cptx_site at, uint32_t first, uint32_t end)
{
	x->row_first = first, x->row_end = end;
	if (!(x->needs & EPI_AT_ROW) && (x->rows.kind == CPTX_VAL_NONE || !(x->needs & EPI_INSIDE)))
		return;
	for (uint32_t r = first; r < end; r++) {
		x->row[r] = cptx_acc_coordinate_(x->k, at, x->row0, epi_row_of(x->acc, r), CPTX_NONE_);
		x->row_ok[r] = epi_is_below(x->k, at, x->row[r], x->rows);
	}
	EACH_VISITOR(x, rows, x, &w);
}

/* Computes where the columns of a group lie in D, and whether they are inside of it, where a visitor needs that. */
static void find_cols(const epi *x, cptx_site at, epi_group *g)
{
	if (x->cols.kind != CPTX_VAL_NONE && x->needs & EPI_INSIDE)
		g->col_ok = epi_is_below(x->k, at, cptx_acc_coordinate_(x->k, at, x->col, x->part + g->col, CPTX_NONE_), x->cols);
	for (uint32_t i = 0; x->needs & EPI_FN && i < g->n; i++)
		g->at_col[i] = cptx_acc_coordinate_(x->k, at, x->col, x->part + g->col + i, CPTX_NONE_);
}

void epi_visit(epi *x, cptx_site at, uint32_t col, uint32_t n)
{
	const uint32_t stop = col + n;
	epi_group g, row;

	for (; x->first < x->end && col < stop; col++) {
		if (!epi_group_at(x->acc, MIN(x->vec, n), x->row_first, col, &g))
			continue;
		find_cols(x, at, &g);
		EACH_VISITOR(x, cols, x, &w, &g);
		for (uint32_t r = x->row_first; r < x->row_end; r++) {
			if (!epi_group_at(x->acc, MIN(x->vec, n), r, col, &row))
				continue;
			memcpy(row.at_col, g.at_col, sizeof row.at_col);
			row.col_ok = g.col_ok, row.inside = epi_both(x->k, at, x->row_ok[r], g.col_ok);
			EACH_VISITOR(x, row, x, &w, &row);
			for (uint32_t i = 0; i < row.n; i++)
				EACH_VISITOR(x, elem, x, &w, &row, i);
		}
		col += g.n - 1;
	}
}

/* Visitors first to end - 1, on all elements. */
static void run_some(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, uint32_t first, uint32_t end)
{
	if (first == end)
		return;
	epi x = epi_begin(k, at, e, first, end, 0);
	epi_rows(&x, at, 0, e->acc.rows);
	epi_visit(&x, at, 0, e->acc.n);
	epi_end(&x);
}

/* Takes the bit of the register number that steps `apart` columns out of a fragment, and halves the steps that are wider.
 * False: no bit does. */
static bool halve_map(cptx_frag_map *m, uint32_t apart)
{
	uint32_t bit = 0;

	while (bit < ARRAY_LEN(m->reg) && (m->reg[bit].col != apart || m->reg[bit].row))
		bit++;
	if (bit == ARRAY_LEN(m->reg) || m->cols % (2 * apart))
		return false;
	memmove(&m->reg[bit], &m->reg[bit + 1], (ARRAY_LEN(m->reg) - 1 - bit) * sizeof *m->reg);
	m->reg[ARRAY_LEN(m->reg) - 1] = (cptx_frag_step){ 0, 0 };
	for (uint32_t i = 0; i < ARRAY_LEN(m->reg); i++)
		m->reg[i].col = (uint16_t)(m->reg[i].col > apart ? m->reg[i].col / 2 : m->reg[i].col);
	for (uint32_t i = 0; i < ARRAY_LEN(m->lane); i++)
		m->lane[i].col = (uint16_t)(m->lane[i].col > apart ? m->lane[i].col / 2 : m->lane[i].col);
	m->cols /= 2, m->regs /= 2;
	return true;
}

/* The column, or the number of columns, of D that belongs to one of the accumulator, which has pairs of them (GATE_PAIRS).
 */
static cptx_val halved(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t apart)
{
	const int64_t low = apart - 1;

	if (v.kind == CPTX_VAL_INT)
		return cptx_imm((v.i & low) | (v.i >> 1 & ~low));
	if (v.kind != CPTX_VAL_REG)
		return v;
	cptx_val half = CALL(shr, .a = cptx_as(v, CPTX_U32), .b = cptx_imm(1));
	if (!low)
		return half;
	cptx_val high = CALL(and, .a = half, .b = cptx_imm(~low & UINT32_MAX));
	cptx_val rest = CALL(and, .a = cptx_as(v, CPTX_U32), .b = cptx_imm(low));
	return CALL(or, .a = high, .b = rest);
}

/* Pairs of an accumulator become the elements of one with half as many columns. */
static bool gate_pairs(cptx_kernel *k, cptx_epilogue *e, uint32_t visitor)
{
	const cptx_site at = e->at[visitor];
	const cptx_visitor *v = &e->visitor[visitor];
	const cptx_acc whole = e->acc, *acc = &whole;
	const uint32_t apart = v->apart;
	cptx_acc *half = &e->acc;

	if (!halve_map(&half->map, apart)) {
		cptx_fail_(
			k, at,
			"CPTX_VISIT_GATE_PAIRS: .apart = %u; no thread has both columns of a pair.  Columns of one thread are 1 and 8, "
			"16 ... apart, within one instruction's %u",
			apart, acc->map.cols);
		return false;
	}
	half->n /= 2, half->count /= 2;
	half->regs = cptx_regs_(k, at, CPTX_F32, half->count);
	kit_acc_find_rows(half);
	for (uint32_t i = 0; i < half->count; i++) {
		const cptx_acc_elem to = cptx_acc_at(half, i);
		const uint32_t col = to.col % apart + to.col / apart * 2 * apart;
		cptx_val gate = cptx_acc_at(acc, kit_acc_number(acc, to.row, col)).value;
		cptx_val up = cptx_acc_at(acc, kit_acc_number(acc, to.row, col + apart)).value;
		epi_activate(k, at, v->activation, gate);
		CALL(mul, .a = gate, .b = up, .into = to.value);
	}
	half->col = halved(k, at, acc->col, apart), half->unit_col = halved(k, at, acc->unit_col, apart);
	e->col = halved(k, at, e->col, apart), e->cols = halved(k, at, e->cols, apart);
	e->vec = apart == 1 ? MAX(e->vec / 2, 1) : MIN(e->vec, apart);
	return true;
}

enum { BLOCK = 128 /* columns that share a factor */ };

cptx_val cptx_quantize_factor_(cptx_kernel *k, cptx_site at, cptx_val amax, double most, bool pow2)
{
	const cptx_val size = CALL(max, .a = amax, .b = cptx_immf(0x1p-100));
	cptx_val factor = CALL(mul, .a = size, .b = cptx_immf((double)(1 / (float)most)));

	if (pow2) { /* the next one that is not less, so that nothing saturates */
		const cptx_val above = CALL(add, .a = cptx_as(factor, CPTX_U32), .b = cptx_imm(0x7fffff));
		factor = cptx_as(CALL(and, .a = above, .b = cptx_imm(0xff800000)), CPTX_F32);
	}
	CALL(div, .a = cptx_immf(1), .b = factor, .rnd = CPTX_RN, .into = amax);
	return factor;
}

/* Stores the factors of a block of columns.  by[r] is the largest magnitude of row r in it, and becomes the number that the
 * row's elements are multiplied by; the factor in memory undoes that. */
static void store_factors(epi *x, const epi_at *w, uint32_t block, cptx_val by)
{
	cptx_kernel *k = x->k;
	const cptx_site at = w->at;
	const double most = w->v->value.kind == CPTX_VAL_FLOAT ? w->v->value.f : (double)w->v->value.i;
	const cptx_val lane = cptx_frag_lane_(k, at, &x->acc->map, x->acc->thread, true);
	const cptx_val first_lane =
		lane.kind == CPTX_VAL_REG ? CALL(setp, .a = lane, .b = cptx_imm(0), .cmp = CPTX_EQ) : CPTX_NONE_;
	const cptx_val col = epi_in_register(k, at, cptx_acc_coordinate_(k, at, cptx_imm(0), block * BLOCK, x->n0));
	/* a tile may end behind the last column, and then a whole block is there */
	const cptx_val mine = epi_both(k, at, first_lane, epi_is_below(k, at, col, x->cols));
	const cptx_val nth = CALL(div, .a = col, .b = cptx_imm(BLOCK));
	const cptx_val first = CALL(mul_wide, .a = nth, .b = epi_in_register(k, at, w->v->pitch));

	for (uint32_t r = 0; r < x->acc->rows; r++) {
		const cptx_val row = CALL(cvt, .a = epi_in_register(k, at, x->row[r]), .dtype = CPTX_U64);
		const cptx_val factor = cptx_quantize_factor_(k, at, cptx_elem(by, r), most, false);
		const cptx_val base = kit_plain(k, at, w->v->address), index = CALL(add, .a = first, .b = row);
		const cptx_val to = CALL(mad, .a = index, .b = cptx_imm(4), .c = base, .mode = CPTX_LO);
		CALL(st, .a = to, .b = factor, .space = CPTX_GLOBAL, .when = epi_both(k, at, mine, x->row_ok[r]));
	}
}

/* Multiplies each row of each 128 columns by what makes its largest element the largest number of a type. */
static bool quantize(cptx_kernel *k, cptx_epilogue *e, uint32_t visitor)
{
	const cptx_site at = e->at[visitor];
	const cptx_acc *acc = &e->acc;
	epi x = epi_begin(k, at, e, visitor, visitor + 1, 0);
	const epi_at w = { at, &e->visitor[visitor], &x.state[visitor] };

	if (acc->n % BLOCK || acc->units_n > 1 || (w.v->value.kind != CPTX_VAL_FLOAT && w.v->value.kind != CPTX_VAL_INT)) {
		cptx_fail_(k, at,
		           "CPTX_VISIT_QUANTIZE of units with %u columns, %u beside one another; a unit has blocks of %d columns, "
		           "alone, and .value is a constant",
		           acc->n, acc->units_n, BLOCK);
		return false;
	}
	epi_rows(&x, at, 0, acc->rows);
	for (uint32_t block = 0; block < acc->n / BLOCK; block++) {
		const cptx_val by = cptx_acc_row_vector_(k, at, acc, cptx_immf(0));
		for (uint32_t i = 0; i < acc->count; i++) {
			const cptx_acc_elem v = cptx_acc_at(acc, i);
			const cptx_val row = cptx_elem(by, v.at_row);
			if (v.col / BLOCK == block)
				CALL(max, .a = row, .b = CALL(abs, .a = v.value), .into = row);
		}
		cptx_acc_row_combine_(k, at, acc, CPTX_REDUCE_MAX, by);
		store_factors(&x, &w, block, by);
		for (uint32_t i = 0; i < acc->count; i++) {
			const cptx_acc_elem v = cptx_acc_at(acc, i);
			if (v.col / BLOCK == block)
				CALL(mul, .a = v.value, .b = cptx_elem(by, v.at_row), .into = v.value);
		}
	}
	return true;
}

void epi_convert(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, cptx_acc *acc)
{
	cptx_val from = acc->regs;

	if (acc->type != CPTX_S32 || e->opt.integers)
		return;

	acc->type = CPTX_F32, acc->regs = cptx_regs_(k, at, CPTX_F32, acc->count);
	for (uint32_t i = 0; i < acc->count; i++)
		CALL(cvt, .a = cptx_elem(from, i), .dtype = CPTX_F32, .rnd = CPTX_RN, .into = cptx_elem(acc->regs, i));
}

static cptx_val or_zero(cptx_val v) { return v.kind == CPTX_VAL_NONE ? cptx_imm(0) : v; }

/* Results from tensor memory come to registers, part after part, when they are stored. */
static bool can_run(cptx_kernel *k, cptx_site at, const cptx_epilogue *e, const cptx_acc *acc,
                    const cptx_epilogue_tile_at *tile)
{
	if (!tile->at_store || !kit_acc_is_made(k, at, acc) || acc->count)
		return epi_is_acc(k, at, acc);
	for (uint32_t i = 0; i < e->count; i++) {
		const epi_kind *kind = epi_kind_get(e->kind[i]);
		if (kind->needs & (EPI_ALONG_ROWS | EPI_ACC)) {
			cptx_fail_(k, e->at[i], "%s: of an accumulator in tensor memory; cptx_acc_load brings a part of it to registers",
			           kind->name);
			return false;
		}
	}
	return true;
}

void cptx_epilogue_run_(cptx_kernel *k, cptx_site at, cptx_epilogue *e, const cptx_acc *acc,
                        const cptx_epilogue_tile_at *where)
{
	cptx_epilogue_tile_at given, *tile = &given;
	const uint32_t place = KIT_U32 | KIT_WHOLE | KIT_NONE;

	if (!is_made(k, at, e) || !IS_GIVEN_TO(k, at, where, "tile") ||
	    !OPTIONS_READ_IN(cptx_epilogue_tile_at, tile, where, at, k) || !can_run(k, at, e, acc, tile) ||
	    !KIT_OPTION("cptx_epilogue_run", tile, row, place) || !KIT_OPTION("cptx_epilogue_run", tile, col, place))
		return;
	e->acc = *acc, e->vec = e->opt.vec;
	e->row = or_zero(tile->row), e->col = or_zero(tile->col), e->cols = e->opt.cols;
	if (!acc->count) {
		e->acc.row = cptx_acc_coordinate_(k, at, acc->thread, 0, acc->row);
		e->next = 0;
		return;
	}
	epi_convert(k, at, e, &e->acc);
	/* computed for each tile: registers that live through a mainloop are few */
	if (e->count && e->acc.atom_rows > 1)
		kit_acc_find_place(k, at, &e->acc);
	e->next = 0;
	for (uint32_t i = 0; i < e->count; i++) {
		const bool gates = e->kind[i] == CPTX_VISIT_GATE_PAIRS;
		if (!gates && e->kind[i] != CPTX_VISIT_QUANTIZE)
			continue;
		run_some(k, at, e, e->next, i);
		if (!(gates ? gate_pairs : quantize)(k, e, i))
			return;
		e->next = i + 1;
	}
	if (tile->at_store)
		return;
	run_some(k, at, e, e->next, e->count);
	e->next = e->count;
}
