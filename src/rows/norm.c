/* SPDX-License-Identifier: MIT */
/* Norms of rows and their gradients. */
#include "rows/rows.h"

#include <cptx/cptx.h>

#define V(operand) e.v[CPTX_ROWS_##operand]

static bool with(const cptx_rows_row *row, uint32_t set) { return cptx_rows_options(row)->with & set; }
static float mean_of(const cptx_rows_row *row) { return 1.0f / (float)cptx_rows_options(row)->n; }

/*
 * 1 / sqrt(sum of squares / n + eps).  The error of rsqrt.approx, 1e-7, is the same in all rows with about the same
 * variance, so that in the weights' gradient, a sum over rows, it would outgrow those of roundings: one step of Newton's
 * takes it away.
 */
static cptx_val root_of(cptx_kernel *k, const cptx_rows_row *row, cptx_val squares)
{
	cptx_val mean = cptx_fma(k, squares, mean_of(row), cptx_rows_options(row)->eps, .rnd = CPTX_RN);
	cptx_val root = cptx_rsqrt(k, mean), part = cptx_neg(k, cptx_mul(k, mean, root));
	cptx_val off = cptx_fma(k, part, root, 1.0f, .rnd = CPTX_RN), half = cptx_mul(k, root, 0.5f);
	cptx_val is_number = cptx_setp(k, off, off, .cmp = CPTX_EQ); /* not of an infinity, whose root is 0 */

	return cptx_fma(k, half, off, root, .rnd = CPTX_RN, .into = root, .when = is_number);
}

static cptx_val rstd_of(cptx_kernel *k, const cptx_rows_row *row, cptx_val squares)
{
	cptx_val rstd = root_of(k, row, squares);

	if (with(row, R_RSTD))
		cptx_rows_put(k, row, CPTX_ROWS_RSTD, rstd);
	return rstd;
}

/* y = normal * w + b, as far as these are there. */
static cptx_val scaled(cptx_kernel *k, const cptx_rows_row *row, const cptx_rows_at *at, cptx_val normal)
{
	const cptx_rows_at e = *at;

	if (with(row, R_W) && with(row, R_B))
		return cptx_fma(k, normal, V(W), V(B), .rnd = CPTX_RN);
	if (with(row, R_B))
		return cptx_add(k, normal, V(B));
	return with(row, R_W) ? cptx_mul(k, normal, V(W)) : normal;
}

static uint32_t weights(const cptx_rows_row *row) { return cptx_rows_options(row)->with & (R_W | R_B); }

void rows_rms_norm(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X) { cptx_fma(k, V(X), V(X), sum, .rnd = CPTX_RN, .into = sum); }
	cptx_rows_reduce(k, row, sum, CPTX_REDUCE_SUM);
	cptx_val rstd = rstd_of(k, row, sum);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | weights(row), .writes = R_Y)
	{
		V(Y) = scaled(k, row, &e, cptx_mul(k, V(X), rstd));
	}
}

void rows_add_rms_norm(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
	const bool keeps = cptx_rows_keeps(row);
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_X2, .writes = keeps ? R_Y2 : 0)
	{
		cptx_val both = cptx_add(k, V(X), V(X2), .into = keeps ? V(X) : CPTX_NONE_);
		cptx_fma(k, both, both, sum, .rnd = CPTX_RN, .into = sum);
		V(Y2) = both;
	}
	cptx_rows_reduce(k, row, sum, CPTX_REDUCE_SUM);
	cptx_val rstd = rstd_of(k, row, sum);
	/* y2 may be x: in memory it is written behind the last read of that */
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | (keeps ? 0 : R_X2) | weights(row), .writes = R_Y | (keeps ? 0 : R_Y2))
	{
		cptx_val both = keeps ? V(X) : cptx_add(k, V(X), V(X2));
		V(Y2) = both;
		V(Y) = scaled(k, row, &e, cptx_mul(k, both, rstd));
	}
}

/* The sum of the thread's elements, each times `part`, as that of large ones has no end; in `count` how many it has. */
static void sum_elements(cptx_kernel *k, cptx_rows_row *row, cptx_val sum, cptx_val count, float part)
{
	uint32_t always = 0;
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X)
	{
		cptx_val inside = cptx_rows_inside(k, row, &e);
		cptx_fma(k, V(X), part, sum, .rnd = CPTX_RN, .into = sum);
		if (inside.kind == CPTX_VAL_NONE)
			always++;
		else
			cptx_add(k, count, 1.0f, .into = count, .when = inside);
	}
	cptx_add(k, count, (float)always, .into = count);
}

static void sum_squares(cptx_kernel *k, cptx_rows_row *row, cptx_val mean, cptx_val squares)
{
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X)
	{
		cptx_val d = cptx_sub(k, V(X), mean), inside = cptx_rows_inside(k, row, &e);
		cptx_fma(k, d, d, squares, .rnd = CPTX_RN, .into = squares, .when = inside);
	}
}

/*
 * The thread's mean, sum of squares of differences from it, and count, in one pass, by differences from the mean of its
 * first vector: that is near, so that little of the squares cancels.
 */
static void own_moments(cptx_kernel *k, cptx_rows_row *row, cptx_val mean, cptx_val squares, cptx_val count)
{
	cptx_val first = cptx_var(k, CPTX_F32, 0.0f);
	uint32_t always = 0, number = 0;
	cptx_rows_at e;

	CPTX_ROWS_EACH(k, row, &e, .reads = R_X)
	{
		cptx_val inside = cptx_rows_inside(k, row, &e);
		if (!number++)
			cptx_mov(k, rows_mean_of_vector(row, CPTX_ROWS_X), .into = first);
		cptx_val d = cptx_sub(k, V(X), first);
		cptx_add(k, mean, d, .into = mean, .when = inside);
		cptx_fma(k, d, d, squares, .rnd = CPTX_RN, .into = squares, .when = inside);
		if (inside.kind == CPTX_VAL_NONE)
			always++;
		else
			cptx_add(k, count, 1.0f, .into = count, .when = inside);
	}
	cptx_add(k, count, (float)always, .into = count);
	cptx_val each = cptx_rcp(k, cptx_max(k, count, 1.0f), .rnd = CPTX_RN), off = cptx_mul(k, mean, each);
	cptx_fma(k, cptx_neg(k, mean), off, squares, .rnd = CPTX_RN, .into = squares);
	cptx_add(k, first, off, .into = mean);
}

/*
 * The mean, and the sum of the squares of differences from it.  In a CTA by two reductions; in a cluster, where each of them
 * takes a microsecond, by one: threads subtract the mean of their own elements; or, where passes read shared memory again,
 * by one pass, too.  Rows in memory, of which a turn of the loop has few elements, take two.
 */
static void moments(cptx_kernel *k, cptx_rows_row *row, cptx_val mean, cptx_val squares)
{
	const cptx_rows_opt *o = cptx_rows_options(row);

	const bool once = o->place != CPTX_ROWS_MEMORY && !cptx_rows_keeps(row);

	if (once || (o->split > 1 && o->place != CPTX_ROWS_MEMORY)) {
		cptx_val all = cptx_regs(k, CPTX_F32, 3), own = cptx_elem(all, 0), count = cptx_elem(all, 2);
		cptx_reduce_clear(k, all, CPTX_REDUCE_WELFORD);
		if (once) {
			own_moments(k, row, own, cptx_elem(all, 1), count);
		} else {
			enum { PARTS = 256 /* as many elements as a thread has, or more */ };
			sum_elements(k, row, own, count, 1.0f / PARTS);
			cptx_val each = cptx_rcp(k, cptx_max(k, count, 1.0f), .rnd = CPTX_RN);
			cptx_mul(k, own, cptx_mul(k, each, (float)PARTS), .into = own);
			sum_squares(k, row, own, cptx_elem(all, 1));
		}
		cptx_rows_reduce(k, row, all, CPTX_REDUCE_WELFORD);
		cptx_mov(k, own, .into = mean);
		cptx_mov(k, cptx_elem(all, 1), .into = squares);
		return;
	}
	cptx_rows_at e;
	/* each element's part of the mean: the sum of large elements has no end */
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X) { cptx_fma(k, V(X), mean_of(row), mean, .rnd = CPTX_RN, .into = mean); }
	cptx_rows_reduce(k, row, mean, CPTX_REDUCE_SUM);
	sum_squares(k, row, mean, squares);
	cptx_rows_reduce(k, row, squares, CPTX_REDUCE_SUM);
}

void rows_layer_norm(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_val mean = cptx_var(k, CPTX_F32, 0.0f), squares = cptx_var(k, CPTX_F32, 0.0f);
	cptx_rows_at e;

	(void)user;
	moments(k, row, mean, squares);
	cptx_val rstd = rstd_of(k, row, squares);
	if (with(row, R_MEAN))
		cptx_rows_put(k, row, CPTX_ROWS_MEAN, mean);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | weights(row), .writes = R_Y)
	{
		V(Y) = scaled(k, row, &e, cptx_mul(k, cptx_sub(k, V(X), mean), rstd));
	}
}

/* With g = dy * w and h the normal x: dx = rstd * (g - h * mean(g * h)), dw = sum over rows of dy * h. */
void rows_rms_norm_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const uint32_t w = weights(row), dw = cptx_rows_options(row)->with & R_DW;
	cptx_val sums = cptx_regs(k, CPTX_F32, 2), dot = cptx_elem(sums, 0), squares = cptx_elem(sums, 1), rstd;
	cptx_rows_at e;

	(void)user;
	if (with(row, R_RSTD)) /* early: it comes from memory */
		rstd = cptx_rows_get(k, row, CPTX_ROWS_RSTD);
	cptx_reduce_clear(k, sums, CPTX_REDUCE_SUM);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_DY | w)
	{
		cptx_val g = w ? cptx_mul(k, V(DY), V(W)) : V(DY);
		cptx_fma(k, g, V(X), dot, .rnd = CPTX_RN, .into = dot);
		if (!with(row, R_RSTD))
			cptx_fma(k, V(X), V(X), squares, .rnd = CPTX_RN, .into = squares);
	}
	cptx_rows_reduce(k, row, with(row, R_RSTD) ? dot : sums, CPTX_REDUCE_SUM);
	if (!with(row, R_RSTD))
		rstd = root_of(k, row, squares);
	cptx_val part = cptx_mul(k, cptx_mul(k, dot, -mean_of(row)), cptx_mul(k, rstd, rstd));
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_DY | w, .writes = R_DX | dw)
	{
		cptx_val g = w ? cptx_mul(k, V(DY), V(W)) : V(DY);
		V(DX) = cptx_mul(k, cptx_fma(k, V(X), part, g, .rnd = CPTX_RN), rstd);
		if (dw)
			cptx_fma(k, V(DY), cptx_mul(k, V(X), rstd), V(DW), .rnd = CPTX_RN, .into = V(DW));
	}
}

/* As above with h = (x - mean) * rstd: dx = rstd * (g - mean(g) - h * mean(g * h)), db = sum over rows of dy. */
void rows_layer_norm_backward(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const uint32_t w = weights(row), sums_of = cptx_rows_options(row)->with & R_SUMS;
	cptx_val mean = cptx_rows_get(k, row, CPTX_ROWS_MEAN), rstd = cptx_rows_get(k, row, CPTX_ROWS_RSTD);
	cptx_val sums = cptx_regs(k, CPTX_F32, 2), dot = cptx_elem(sums, 0), all = cptx_elem(sums, 1);
	cptx_rows_at e;

	(void)user;
	cptx_reduce_clear(k, sums, CPTX_REDUCE_SUM);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_DY | w)
	{
		cptx_val g = w ? cptx_mul(k, V(DY), V(W)) : V(DY), h = cptx_mul(k, cptx_sub(k, V(X), mean), rstd);
		cptx_fma(k, g, h, dot, .rnd = CPTX_RN, .into = dot);
		cptx_add(k, all, g, .into = all);
	}
	cptx_rows_reduce(k, row, sums, CPTX_REDUCE_SUM);
	cptx_mul(k, dot, mean_of(row), .into = dot);
	cptx_mul(k, all, mean_of(row), .into = all);
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X | R_DY | w, .writes = R_DX | sums_of)
	{
		cptx_val g = w ? cptx_mul(k, V(DY), V(W)) : V(DY), h = cptx_mul(k, cptx_sub(k, V(X), mean), rstd);
		cptx_val less = cptx_fma(k, h, dot, all, .rnd = CPTX_RN);
		V(DX) = cptx_mul(k, cptx_sub(k, g, less), rstd);
		if (sums_of & R_DW)
			cptx_fma(k, V(DY), h, V(DW), .rnd = CPTX_RN, .into = V(DW));
		if (sums_of & R_DB)
			cptx_add(k, V(DB), V(DY), .into = V(DB));
	}
}

void rows_column_sum(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e;

	(void)user;
	CPTX_ROWS_EACH(k, row, &e, .reads = R_X, .writes = R_DW) { cptx_add(k, V(DW), V(X), .into = V(DW)); }
}
