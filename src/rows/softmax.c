/* SPDX-License-Identifier: MIT */
/*
 * Softmax, its logarithm, cross entropy, and their gradients.
 *
 * Where registers keep the row, its maximum is found first and then the sum; elsewhere a pass finds both, and where the
 * maximum grows it scales what it has added up.  Powers are of differences from the maximum: of rows of the lowest numbers,
 * too, nothing overflows.
 */
#include "rows/rows.h"

#include <cptx/cptx.h>

#include <math.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

/* e^(x - top) */
static cptx_val power(cptx_kernel *k, const cptx_rows_row *row, cptx_val x, cptx_val top)
{
	return rows_exp(k, cptx_sub(k, x, top), rows_exact(cptx_rows_options(row)));
}

/* Of a row: its maximum, the sum of e^(x - top), and from which of its elements' maximum the thread has subtracted. */
typedef struct stats {
	cptx_val top, sum, own;
} stats;

/* The largest element of the thread; with `all` also the sum of all. */
static cptx_val own_top(cptx_kernel *k, cptx_rows_row *row, cptx_val all)
{
	cptx_val top = cptx_var(k, CPTX_F32, cptx_f32_bits(0xff800000u));
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_max(k, top, V(X), .into = top);
		if (all.kind != CPTX_VAL_NONE)
			cptx_add(k, all, V(X), .into = all, .when = cptx_rows_inside(k, row, &e));
	}
	return top;
}

/* The thread's sum of e^(x - top), by halves, which err less and wait less for one another; in registers the elements become
 * these where they are asked for. */
static void own_sum(cptx_kernel *k, cptx_rows_row *row, cptx_val top, cptx_val sum, bool become)
{
	cptx_val half = cptx_var(k, CPTX_F32, 0.0f);
	bool second = false;
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		cptx_val p = power(k, row, V(X), top), to = second ? half : sum;
		cptx_add(k, to, p, .into = to);
		second = !second;
		if (become)
			cptx_mov(k, p, .into = V(X));
	}
	cptx_add(k, sum, half, .into = sum);
}

/* The maximum and the sum in one pass, vector by vector: where the maximum grows, what was added up is scaled. */
static void own_stats(cptx_kernel *k, cptx_rows_row *row, cptx_val top, cptx_val sum, cptx_val all)
{
	enum { MOST_EACH = 8 };
	const uint32_t each = 128 / cptx_type_bits(cptx_rows_options(row)->in);
	cptx_val half = cptx_var(k, CPTX_F32, 0.0f), vector[MOST_EACH], larger = cptx_reg(k, CPTX_F32);
	uint32_t n = 0;
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .fill = -INFINITY)
	{
		vector[n++] = V(X);
		if (all.kind != CPTX_VAL_NONE)
			cptx_add(k, all, V(X), .into = all, .when = cptx_rows_inside(k, row, &e));
		if (n < each)
			continue;
		cptx_mov(k, top, .into = larger);
		for (uint32_t i = 0; i < n; i++)
			cptx_max(k, larger, vector[i], .into = larger);
		cptx_val scale = power(k, row, top, larger);
		cptx_mul(k, sum, scale, .into = sum), cptx_mul(k, half, scale, .into = half);
		for (uint32_t i = 0; i < n; i++) {
			cptx_val to = i % 2 ? half : sum;
			cptx_add(k, to, power(k, row, vector[i], larger), .into = to);
		}
		cptx_mov(k, larger, .into = top);
		n = 0;
	}
	cptx_add(k, sum, half, .into = sum);
}

/*
 * In a CTA two reductions, of the maximum and of the sum.  In a cluster, where each of them takes a microsecond, one of
 * both: threads subtract their own maximum, and the reduction scales their sums; so, too, where a pass over the row reads
 * shared memory or memory again.  The lowest number stands in for the maximum of elements that are all -infinity.
 */
static stats stats_of(cptx_kernel *k, cptx_rows_row *row, cptx_val all, bool become)
{
	const bool cluster = cptx_rows_options(row)->split > 1;
	cptx_val both = cptx_regs(k, CPTX_F32, 2), lowest = cptx_f32_bits(0xff7fffffu);
	stats s = { .top = cptx_elem(both, 0), .sum = cptx_elem(both, 1) };

	if (!cptx_rows_keeps(row)) {
		cptx_mov(k, lowest, .into = s.top), cptx_mov(k, 0.0f, .into = s.sum);
		own_stats(k, row, s.top, s.sum, all);
		cptx_rows_reduce(k, row, both, CPTX_REDUCE_SOFTMAX);
		return s;
	}
	cptx_val top = own_top(k, row, all);
	if (cluster) {
		cptx_max(k, top, lowest, .into = s.top);
		s.own = cptx_var(k, CPTX_F32, s.top);
	} else {
		cptx_rows_reduce(k, row, top, CPTX_REDUCE_MAX);
		cptx_max(k, top, lowest, .into = s.top);
	}
	cptx_mov(k, 0.0f, .into = s.sum);
	own_sum(k, row, s.top, s.sum, become);
	if (cluster)
		cptx_rows_reduce(k, row, both, CPTX_REDUCE_SOFTMAX);
	else
		cptx_rows_reduce(k, row, s.sum, CPTX_REDUCE_SUM);
	return s;
}

static rows_log log_of(cptx_kernel *k, const cptx_rows_row *row, const stats *s)
{
	return rows_log_of(k, s->sum, rows_exact(cptx_rows_options(row)));
}

/* v + ln(sum), rounded last where v is small. */
static cptx_val above(cptx_kernel *k, cptx_val v, const rows_log *log)
{
	return cptx_add(k, cptx_add(k, v, log->rest), log->much);
}

/* top + ln(sum) */
static cptx_val lse_of(cptx_kernel *k, const cptx_rows_row *row, const stats *s, const rows_log *log)
{
	cptx_val lse = above(k, s->top, log);

	if (cptx_rows_options(row)->with & R_LSE)
		cptx_rows_put(k, row, CPTX_ROWS_LSE, lse);
	return lse;
}

void rows_softmax(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const bool keeps = cptx_rows_keeps(row);
	const stats s = stats_of(k, row, CPTX_NONE_, keeps);
	cptx_rows_at e;

	(void)user;
	if (cptx_rows_options(row)->with & R_LSE) {
		const rows_log log = log_of(k, row, &s);
		lse_of(k, row, &s, &log);
	}
	const bool scales = keeps && s.own.kind != CPTX_VAL_NONE;
	const rows_factor by =
		rows_factor_of(k, scales ? power(k, row, s.own, s.top) : CPTX_NONE_, s.sum, rows_exact(cptx_rows_options(row)));
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_Y)
	{
		cptx_val p = keeps ? V(X) : power(k, row, V(X), s.top);
		V(Y) = rows_times(k, p, &by);
	}
}

void rows_log_softmax(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const stats s = stats_of(k, row, CPTX_NONE_, false);
	const rows_log log = log_of(k, row, &s);
	cptx_val log_sum = cptx_add(k, log.much, log.rest);
	cptx_rows_at e;

	(void)user;
	if (cptx_rows_options(row)->with & R_LSE)
		lse_of(k, row, &s, &log);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_Y) { V(Y) = cptx_sub(k, cptx_sub(k, V(X), s.top), log_sum); }
}

void rows_softmax_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val dot = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_Y | R_DY) { cptx_fma(k, V(Y), V(DY), dot, .rnd = CPTX_RN, .into = dot); }
	cptx_rows_reduce(k, row, dot, CPTX_REDUCE_SUM);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_Y | R_DY, .writes = R_DX) { V(DX) = cptx_mul(k, cptx_sub(k, V(DY), dot), V(Y)); }
}

void rows_log_softmax_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_DY) { cptx_add(k, sum, V(DY), .into = sum); }
	cptx_rows_reduce(k, row, sum, CPTX_REDUCE_SUM);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_Y | R_DY, .writes = R_DX)
	{
		cptx_val p = rows_exp(k, V(Y), rows_exact(cptx_rows_options(row)));
		V(DX) = cptx_sub(k, V(DY), cptx_mul(k, p, sum));
	}
}

/* ---- cross entropy ---- */

/* A row's label: its column, whether it is one, whether it counts. */
typedef struct label {
	cptx_val column, is_column; /* .u32; a predicate */
	cptx_val ignored;           /* a predicate; NONE: none is */
} label;

static label label_of(cptx_kernel *k, const cptx_rows_row *row)
{
	const cptx_rows_opt *o = cptx_rows_options(row);
	cptx_val target = cptx_rows_get(k, row, CPTX_ROWS_TARGET), wide = cptx_as(target, CPTX_U64);
	label l = { .is_column = cptx_setp(k, wide, cptx_imm(o->n), .cmp = CPTX_LT) };

	l.column = cptx_selp(k, cptx_cvt(k, wide, .dtype = CPTX_U32), 0, l.is_column, .type = CPTX_U32);
	if (o->ignore)
		l.ignored = cptx_setp(k, target, cptx_imm(o->ignored_label), .cmp = CPTX_EQ);
	return l;
}

/* The gradient of all elements: ((1 + 2 z lse) * p - smoothing / n - (1 - smoothing) at the label) * gradient of the loss.
 */
static void gradient(cptx_kernel *k, cptx_rows_row *row, const label *l, cptx_val lse)
{
	const cptx_rows_opt *o = cptx_rows_options(row);
	cptx_val scale = o->with & R_DLOSS ? cptx_rows_get(k, row, CPTX_ROWS_DLOSS) : cptx_var(k, CPTX_F32, 1.0f);
	cptx_rows_at e;

	if (l->ignored.kind != CPTX_VAL_NONE)
		scale = cptx_selp(k, 0.0f, scale, l->ignored, .type = CPTX_F32);
	cptx_val of_p = scale;
	if (o->z_loss != 0) {
		cptx_val more = cptx_fma(k, lse, 2 * o->z_loss, 1.0f, .rnd = CPTX_RN);
		of_p = cptx_mul(k, scale, more);
	}
	cptx_val at_label = cptx_mul(k, scale, -(1 - o->smoothing)), all = cptx_mul(k, scale, -o->smoothing / (float)o->n);
	if (l->ignored.kind != CPTX_VAL_NONE) /* 0 also of rows with infinities */
		lse = cptx_selp(k, cptx_f32_bits(0x7f800000u), lse, l->ignored, .type = CPTX_F32);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_DX, .fill = -INFINITY)
	{
		cptx_val is_label = cptx_setp(k, cptx_rows_column(k, row, &e), l->column, .cmp = CPTX_EQ);
		cptx_val d = cptx_mul(k, power(k, row, V(X), lse), of_p);
		if (o->smoothing != 0)
			d = cptx_add(k, d, all);
		cptx_add(k, d, at_label, .into = d, .when = is_label);
		V(DX) = d;
	}
}

void rows_cross_entropy(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const cptx_rows_opt *o = cptx_rows_options(row);
	const label l = label_of(k, row);
	cptx_val x = cptx_rows_element(k, row, CPTX_ROWS_X, l.column), all = { 0 };

	(void)user;
	if (o->smoothing != 0)
		all = cptx_var(k, CPTX_F32, 0.0f);
	const stats s = stats_of(k, row, all, false);
	const rows_log log = log_of(k, row, &s);
	cptx_val lse = lse_of(k, row, &s, &log);
	cptx_val loss = cptx_mul(k, above(k, cptx_sub(k, s.top, x), &log), 1 - o->smoothing);
	if (o->smoothing != 0) {
		cptx_rows_reduce(k, row, all, CPTX_REDUCE_SUM);
		cptx_val mean_loss = cptx_sub(k, lse, cptx_mul(k, all, 1.0f / (float)o->n));
		cptx_fma(k, mean_loss, o->smoothing, loss, .rnd = CPTX_RN, .into = loss);
	}
	if (o->z_loss != 0)
		cptx_fma(k, cptx_mul(k, lse, lse), o->z_loss, loss, .rnd = CPTX_RN, .into = loss);
	cptx_selp(k, loss, cptx_f32_bits(0x7fc00000u), l.is_column, .type = CPTX_F32, .into = loss);
	if (o->ignore)
		cptx_selp(k, 0.0f, loss, l.ignored, .type = CPTX_F32, .into = loss);
	cptx_rows_put(k, row, CPTX_ROWS_LOSS, loss);
	if (o->with & R_DX)
		gradient(k, row, &l, lse);
}

void rows_cross_entropy_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const label l = label_of(k, row);

	(void)user;
	gradient(k, row, &l, cptx_rows_get(k, row, CPTX_ROWS_LSE));
}
