/* SPDX-License-Identifier: MIT */
/* Online softmax over the rows of accumulators. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/softmax.h>

#include "kit/mma.h"
#include "kit/value.h"

#include <float.h>
#include <math.h>

static bool is_begun(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores)
{
	if (!KIT_IS_MADE(cptx_softmax, k, at, soft) || !kit_acc_has_registers(k, at, scores))
		return false;
	if (soft->max.kind == CPTX_VAL_REG && soft->max.count == scores->rows && soft->sum.count == scores->rows)
		return true;
	cptx_fail_(k, at, "a softmax of %u rows in a thread, of an accumulator with %u: cptx_softmax_new is told .rows of it",
	           soft->max.count, scores->rows);
	return false;
}

enum { MOST_ROWS = 512 };

static cptx_val row_vector(cptx_kernel *k, cptx_site at, uint32_t rows, double init)
{
	cptx_val v = cptx_regs_(k, at, CPTX_F32, rows);

	for (uint32_t r = 0; r < rows; r++)
		CALL(mov, .a = cptx_immf(init), .into = cptx_elem(v, r));
	return v;
}

void cptx_softmax_new_(cptx_kernel *k, cptx_site at, cptx_softmax *soft, uint32_t rows, cptx_val scale)
{
	if (!IS_GIVEN_TO(k, at, soft, "softmax"))
		return;
	*soft = (cptx_softmax){ .scale = scale };
	if (!rows || rows > MOST_ROWS) {
		cptx_fail_(k, at, "a softmax of %u rows in a thread; an accumulator has 1 to %d", rows, MOST_ROWS);
		return;
	}
	if (!kit_value(k, at, "cptx_softmax_new", "the scale", scale, KIT_F32 | KIT_REAL))
		return;
	if (scale.kind == CPTX_VAL_INT)
		soft->scale = scale = cptx_immf((double)scale.i);
	if (scale.kind == CPTX_VAL_FLOAT && !(scale.f > 0 && scale.f <= FLT_MAX)) {
		cptx_fail_(k, at, "cptx_softmax_new: the scale is %g; it is above 0: log2(e) times the factor of the scores",
		           scale.f);
		return;
	}
	soft->made = kit_made(k, KIT_cptx_softmax);
	soft->max = row_vector(k, at, rows, -INFINITY);
	soft->sum = row_vector(k, at, rows, 0);
}

/* ---- masks ---- */

/* How many columns count in the row of an element, from the tile's first column on. */
static cptx_val columns_of(cptx_kernel *k, cptx_site at, const cptx_acc *scores, const cptx_acc_elem *e,
                           const cptx_softmax_mask_opt *o)
{
	cptx_val end = CPTX_NONE_;

	if (o->causal) {
		end = cptx_acc_coordinate_(k, at, scores->row, e->row + 1, o->row0);
		if (o->shift.kind != CPTX_VAL_NONE)
			end = CALL(add, .a = end, .b = o->shift);
	}
	if (o->causal && o->cols.kind != CPTX_VAL_NONE)
		return CALL(min, .a = end, .b = o->cols);
	return o->causal ? end : o->cols;
}

static bool check_mask(cptx_kernel *k, cptx_site at, const cptx_softmax_mask_opt *o)
{
	static const char where[] = "cptx_softmax_mask";
	const uint32_t number = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, o, row0, number) && KIT_OPTION(where, o, col0, number) && KIT_OPTION(where, o, cols, number) &&
	       KIT_OPTION(where, o, shift, KIT_U32 | KIT_SIGNED | KIT_NONE);
}

void cptx_softmax_mask_(cptx_kernel *k, cptx_site at, const cptx_acc *scores, const cptx_softmax_mask_opt *opt)
{
	cptx_val end[MOST_ROWS];
	cptx_softmax_mask_opt o;

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_softmax_mask_opt, &o, opt, at, k) ||
	    !kit_acc_has_registers(k, at, scores) || !check_mask(k, at, &o) || (!o.causal && o.cols.kind == CPTX_VAL_NONE))
		return;
	opt = &o;
	for (uint32_t i = 0; i < scores->rows; i++)
		end[i] = CPTX_NONE_;
	CPTX_ACC_EACH(scores, e)
	{
		if (end[e.at_row].kind == CPTX_VAL_NONE)
			end[e.at_row] = columns_of(k, at, scores, &e, opt);
		cptx_val col = cptx_acc_coordinate_(k, at, scores->col, e.col, opt->col0);
		cptx_val outside = CALL(setp, .a = col, .b = end[e.at_row], .cmp = CPTX_GE, .type = CPTX_U32);
		CALL(mov, .a = cptx_immf(-INFINITY), .into = e.value, .when = outside);
	}
}

/* ---- steps ---- */

/* The maximum that is subtracted from a row's scores: 0 where nothing counted yet, as minus infinity would give NaN. */
static cptx_val finite_max(cptx_kernel *k, cptx_site at, cptx_val max)
{
	cptx_val none = CALL(setp, .a = max, .b = cptx_immf(-INFINITY), .cmp = CPTX_EQ, .type = CPTX_F32);

	return CALL(selp, .a = cptx_immf(0), .b = max, .c = none, .type = CPTX_F32);
}

/* The term that a row's scores times scale are raised by: minus its maximum times scale, plus .raise. */
static void find_less(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, cptx_val max, cptx_val into)
{
	CALL(mul, .a = finite_max(k, at, max), .b = soft->scale, .into = into);
	if (soft->raise != 0)
		CALL(sub, .a = cptx_immf(soft->raise), .b = into, .into = into);
	else
		CALL(neg, .a = into, .into = into);
}

/* The sum of a row becomes relative to the new maximum; gives the factor of what was summed with the old one. */
static void correct_row(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, cptx_val old, cptx_val less, cptx_val sum,
                        cptx_val factor)
{
	CALL(fma, .a = old, .b = soft->scale, .c = less, .rnd = CPTX_RN, .into = factor);
	if (soft->raise != 0)
		CALL(add, .a = factor, .b = cptx_immf(-soft->raise), .into = factor);
	CALL(ex2, .a = factor, .ftz = true, .into = factor);
	CALL(mul, .a = sum, .b = factor, .into = sum);
}

static void exponentiate(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores, cptx_val less)
{
	CPTX_ACC_EACH(scores, e)
	{
		CALL(fma, .a = e.value, .b = soft->scale, .c = cptx_elem(less, e.at_row), .rnd = CPTX_RN, .into = e.value);
		CALL(ex2, .a = e.value, .ftz = true, .into = e.value);
	}
	cptx_acc_row_reduce_(k, at, scores, CPTX_REDUCE_SUM, soft->sum);
}

/* Raises the maxima of rows in `max` to those of these scores. */
static void reduce_max(cptx_kernel *k, cptx_site at, const cptx_acc *scores, cptx_val max)
{
	cptx_acc_row_reduce_(k, at, scores, CPTX_REDUCE_MAX, max);
	cptx_acc_row_combine_(k, at, scores, CPTX_REDUCE_MAX, max);
}

static cptx_val copy_of(cptx_kernel *k, cptx_site at, cptx_val rows)
{
	const cptx_val copy = cptx_regs_(k, at, CPTX_F32, rows.count);

	for (uint32_t r = 0; r < rows.count; r++)
		CALL(mov, .a = cptx_elem(rows, r), .into = cptx_elem(copy, r));
	return copy;
}

/* top: the new maxima, or NULL for those of these scores. */
static cptx_val step(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores, const cptx_val *top)
{
	cptx_val old = cptx_regs_(k, at, CPTX_F32, scores->rows), less = cptx_regs_(k, at, CPTX_F32, scores->rows);
	cptx_val correct = cptx_regs_(k, at, CPTX_F32, scores->rows);

	for (uint32_t r = 0; r < scores->rows; r++)
		CALL(mov, .a = cptx_elem(soft->max, r), .into = cptx_elem(old, r));
	for (uint32_t r = 0; top && r < scores->rows; r++)
		CALL(mov, .a = cptx_elem(*top, r), .into = cptx_elem(soft->max, r));
	if (!top)
		reduce_max(k, at, scores, soft->max);
	for (uint32_t r = 0; r < scores->rows; r++) {
		const cptx_val from = cptx_elem(less, r);
		find_less(k, at, soft, cptx_elem(soft->max, r), from);
		correct_row(k, at, soft, cptx_elem(old, r), from, cptx_elem(soft->sum, r), cptx_elem(correct, r));
	}
	exponentiate(k, at, soft, scores, less);
	return correct;
}

cptx_val cptx_softmax_step_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores)
{
	return is_begun(k, at, soft, scores) ? step(k, at, soft, scores, NULL) : CPTX_NONE_;
}

cptx_val cptx_softmax_max_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores)
{
	if (!is_begun(k, at, soft, scores))
		return CPTX_NONE_;
	const cptx_val top = copy_of(k, at, soft->max);

	reduce_max(k, at, scores, top);
	return top;
}

cptx_val cptx_softmax_step_to_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores, cptx_val top)
{
	if (!is_begun(k, at, soft, scores))
		return CPTX_NONE_;
	if (top.kind != CPTX_VAL_REG || top.type != CPTX_F32 || top.count != scores->rows) {
		cptx_fail_(k, at, "cptx_softmax_step_to: the maxima are .f32 registers, one for each of the thread's %u rows",
		           scores->rows);
		return CPTX_NONE_;
	}
	return step(k, at, soft, scores, &top);
}

enum { MOST_SLACK = 14 };

static bool can_be_lazy(cptx_kernel *k, cptx_site at, const cptx_acc *scores, const cptx_acc *acc, double slack)
{
	if (!kit_acc_has_registers(k, at, acc))
		return false;
	if (acc->rows != scores->rows || acc->map.lanes != CPTX_WARP)
		cptx_fail_(k, at, "an accumulator of %u rows in a thread beside scores of %u, or one that is not of mma.sync",
		           acc->rows, scores->rows);
	else if (!(slack >= 0 && slack <= MOST_SLACK))
		cptx_fail_(k, at, "a softmax with a slack of %g; it is from 0 to %d powers of 2", slack, MOST_SLACK);
	else
		return true;
	return false;
}

/* Predicate: in some row of the warp the maximum has grown by more than the slack.  Of minus infinity twice it has not. */
static cptx_val has_grown(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, cptx_val top, double slack)
{
	cptx_val grown = CPTX_NONE_;

	for (uint32_t r = 0; r < top.count; r++) {
		const cptx_val more = CALL(sub, .a = cptx_elem(top, r), .b = cptx_elem(soft->max, r));
		const cptx_val by = CALL(mul, .a = more, .b = soft->scale);
		const cptx_val here = CALL(setp, .a = by, .b = cptx_immf(slack), .cmp = CPTX_GT);
		grown = r ? CALL(or, .a = grown, .b = here, .type = CPTX_PRED) : here;
	}
	return CALL(vote_sync, .a = grown, .mask = cptx_imm(-1), .mode = CPTX_ANY);
}

void cptx_softmax_step_lazily_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores,
                               const cptx_acc *acc, double slack)
{
	if (!is_begun(k, at, soft, scores) || !can_be_lazy(k, at, scores, acc, slack))
		return;
	const cptx_val top = copy_of(k, at, soft->max), less = cptx_regs_(k, at, CPTX_F32, scores->rows);
	const cptx_val correct = cptx_regs_(k, at, CPTX_F32, scores->rows);

	reduce_max(k, at, scores, top);
	CPTX_IF(k, has_grown(k, at, soft, top, slack)) {
		for (uint32_t r = 0; r < scores->rows; r++) {
			const cptx_val from = cptx_elem(less, r), max = cptx_elem(soft->max, r);
			find_less(k, at, soft, cptx_elem(top, r), from);
			correct_row(k, at, soft, max, from, cptx_elem(soft->sum, r), cptx_elem(correct, r));
			CALL(mov, .a = cptx_elem(top, r), .into = max);
		}
		cptx_acc_scale_rows_(k, at, acc, correct);
	}
	for (uint32_t r = 0; r < scores->rows; r++)
		find_less(k, at, soft, cptx_elem(soft->max, r), cptx_elem(less, r));
	exponentiate(k, at, soft, scores, less);
}

cptx_val cptx_softmax_end_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores)
{
	if (!is_begun(k, at, soft, scores))
		return CPTX_NONE_;
	cptx_val part = cptx_regs_(k, at, CPTX_F32, scores->rows);

	cptx_acc_row_combine_(k, at, scores, CPTX_REDUCE_SUM, soft->sum);
	for (uint32_t r = 0; r < scores->rows; r++) {
		cptx_val sum = cptx_elem(soft->sum, r), some = CALL(setp, .a = sum, .b = cptx_immf(0), .cmp = CPTX_GT);
		cptx_val inverse = CALL(rcp, .a = sum, .rnd = CPTX_RN);
		CALL(selp, .a = inverse, .b = cptx_immf(0), .c = some, .type = CPTX_F32, .into = cptx_elem(part, r));
	}
	return part;
}

#define LN2 0.693147180559945309417

cptx_val cptx_softmax_lse_(cptx_kernel *k, cptx_site at, const cptx_softmax *soft, const cptx_acc *scores)
{
	if (!is_begun(k, at, soft, scores))
		return CPTX_NONE_;
	cptx_val lse = cptx_regs_(k, at, CPTX_F32, scores->rows);

	for (uint32_t r = 0; r < scores->rows; r++) { /* of a row where nothing counted lg2 gives minus infinity */
		cptx_val log = CALL(lg2, .a = cptx_elem(soft->sum, r));
		cptx_val top = finite_max(k, at, cptx_elem(soft->max, r));
		if (soft->raise != 0)
			log = CALL(add, .a = log, .b = cptx_immf(-soft->raise));
		log = CALL(fma, .a = top, .b = soft->scale, .c = log, .rnd = CPTX_RN);
		CALL(mul, .a = log, .b = cptx_immf((float)LN2), .into = cptx_elem(lse, r));
	}
	return lse;
}
