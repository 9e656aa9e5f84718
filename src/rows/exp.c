/* SPDX-License-Identifier: MIT */
/* Powers and quotients whose error is that of their last rounding. */
#include "rows/rows.h"

#include <cptx/cptx.h>
#include <cptx/reduce.h>

static const float log2e = 1.44269504f, far_by = 32;

bool rows_exact(const cptx_rows_opt *o) { return o->in == CPTX_F32 || o->out == CPTX_F32; }

/* .ftz: powers below 2^-126 are 0, for which each takes three instructions less. */
cptx_val rows_exp(cptx_kernel *k, cptx_val x, bool exact)
{
	return exact ? cptx_exp(k, x) : cptx_ex2(k, cptx_mul(k, x, log2e), .ftz = true);
}

cptx_val rows_decay(cptx_kernel *k, cptx_val x, bool exact)
{
	const float most = 88; /* of which the power is finite, and the sigmoid 0 */
	cptx_val minus = cptx_neg(k, x);

	return rows_exp(k, exact ? cptx_min(k, minus, most, .NaN = true) : minus, exact);
}

/* rcp.approx errs by an ulp, which one step of Newton's takes away. */
cptx_val rows_sigmoid_of(cptx_kernel *k, cptx_val decay, bool exact)
{
	cptx_val all = cptx_add(k, decay, 1.0f), one = cptx_rcp(k, all, .rnd = CPTX_APPROX, .ftz = true);

	if (!exact)
		return one;
	cptx_val off = cptx_fma(k, cptx_neg(k, all), one, 1.0f, .rnd = CPTX_RN);
	return cptx_fma(k, one, off, one, .rnd = CPTX_RN);
}

/* Where 1 / (1 + e^-x) is less than 2^-126 it is e^x, by a power that is e^32 times smaller, beside which 1 is nothing, too.
 */
static cptx_val far_decay(cptx_kernel *k, cptx_val x, cptx_val is_far)
{
	cptx_val y = cptx_var(k, CPTX_F32, x);

	cptx_add(k, x, far_by, .into = y, .when = is_far);
	return rows_decay(k, y, true);
}

rows_gate rows_gate_of(cptx_kernel *k, cptx_val x, bool exact, bool sigmoid)
{
	const float below = -87, less = 1.26641655e-14f; /* e^-far_by */
	cptx_val is_far = exact ? cptx_setp(k, x, below, .cmp = CPTX_LT) : (cptx_val){ 0 };
	cptx_val decay = exact ? far_decay(k, x, is_far) : rows_decay(k, x, false);
	cptx_val by = rows_sigmoid_of(k, decay, false);
	rows_gate g = { .gated = cptx_mul(k, x, by), .sigmoid = by };

	if (!exact)
		return g;
	/* what the quotient leaves of x is divided, too: of an infinite x that is no number */
	cptx_val all = cptx_add(k, decay, 1.0f), left = cptx_fma(k, cptx_neg(k, g.gated), all, x, .rnd = CPTX_RN);
	cptx_val is_number = cptx_setp(k, left, left, .cmp = CPTX_EQ);
	cptx_fma(k, left, by, g.gated, .rnd = CPTX_RN, .into = g.gated, .when = is_number);
	cptx_mul(k, g.gated, less, .into = g.gated, .when = is_far);
	if (sigmoid) {
		g.sigmoid = rows_sigmoid_of(k, decay, true);
		cptx_mul(k, g.sigmoid, less, .into = g.sigmoid, .when = is_far);
	}
	return g;
}

rows_factor rows_factor_of(cptx_kernel *k, cptx_val factor, cptx_val sum, bool exact)
{
	const bool is_one = factor.kind == CPTX_VAL_NONE;
	cptx_val part = cptx_rcp(k, sum, .rnd = CPTX_RN);
	rows_factor f = { .much = is_one ? part : cptx_mul(k, factor, part) };

	if (!exact)
		return f;
	/* what the rounding of 1 / sum left out, and that of the product */
	cptx_val off = cptx_fma(k, cptx_neg(k, sum), part, 1.0f, .rnd = CPTX_RN);
	f.rest = cptx_mul(k, part, off);
	if (is_one)
		return f;
	cptx_val lost = cptx_fma(k, factor, part, cptx_neg(k, f.much), .rnd = CPTX_RN);
	f.rest = cptx_fma(k, factor, f.rest, lost, .rnd = CPTX_RN);
	return f;
}

cptx_val rows_times(cptx_kernel *k, cptx_val v, const rows_factor *f)
{
	if (f->rest.kind == CPTX_VAL_NONE)
		return cptx_mul(k, v, f->much);
	return cptx_fma(k, v, f->much, cptx_mul(k, v, f->rest), .rnd = CPTX_RN);
}

rows_log rows_log_of(cptx_kernel *k, cptx_val x, bool exact)
{
	cptx_val much = cptx_mul(k, cptx_lg2(k, x), 0.69314718f);
	rows_log l = { .much = much, .rest = cptx_var(k, CPTX_F32, 0.0f) };

	if (!exact)
		return l;
	/* one step of Newton's: e^-much is about 1 / x.  Of 0 and infinities it is no number */
	cptx_val off = cptx_fma(k, x, rows_exp(k, cptx_neg(k, much), true), -1.0f, .rnd = CPTX_RN);
	cptx_mov(k, off, .into = l.rest, .when = cptx_setp(k, off, off, .cmp = CPTX_EQ));
	return l;
}
