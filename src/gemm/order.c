/* SPDX-License-Identifier: MIT */
/*
 * The rasterization, the order in which clusters compute the tiles of D: in groups of rows of tiles, down the columns of
 * each.
 *
 * Clusters that follow one another in this order start on different parts of the chip, and what they ask of L2 at the same
 * time comes faster than what those further apart ask for again.  Down the rows neighbours share what they load of B, and
 * what they load of A comes up again only when the rows of a group are through; across the columns (groups of one row) it is
 * the other way round.  So the order follows from rows of A and B that a CTA asks for and from how far apart they are asked
 * for again; those that other CTAs of a cluster ask for, too, count less.  bench/RESULTS.md has what it is worth.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

#include <math.h>

#define MULTICAST 0.4f /* weight of rows that the CTAs of a cluster ask for each other */
#define WIDE 1.25      /* times the side of the square that is computed at once: as wide, rows are rasterized as a whole */

gemm_order gemm_order_of(const cptx_gemm_opt *o, uint32_t sms)
{
	const uint32_t cm = or_one(o->cluster_m), cn = or_one(o->cluster_n);
	const double side = sqrt((double)sms * o->bm * o->bn);

	return (gemm_order){ .of_a = (float)o->bm / (float)cn * (cn > 1 ? MULTICAST : 1),
		                 .of_b = (float)o->bn / (float)cm * (cm > 1 ? MULTICAST : 1),
		                 .rows = MAX((uint32_t)(side / (o->bm * cm) + 0.5), 1u),
		                 .cols = (uint32_t)(WIDE * side / (o->bn * cn)) };
}

uint32_t gemm_order_rows(const gemm_order *g, uint64_t rows, uint64_t cols, uint64_t at_once)
{
	const bool across = g->of_a * log2f((float)rows) > g->of_b * log2f((float)cols), all = rows * cols <= at_once;

	if (across && (all || cols <= g->cols))
		return 1;
	return (uint32_t)(all ? rows : MIN(rows, g->rows));
}

static cptx_val cost(cptx_kernel *k, cptx_val n, float weight)
{
	return cptx_mul(k, cptx_lg2(k, cptx_cvt(k, n, .rnd = CPTX_RN, .dtype = CPTX_F32)), weight);
}

cptx_val gemm_order_rows_of(cptx_kernel *k, const gemm_order *g, cptx_val rows, cptx_val cols, cptx_val at_once)
{
	cptx_val all = cptx_setp(k, cptx_mul(k, rows, cols, .mode = CPTX_LO), at_once, .cmp = CPTX_LE);
	cptx_val across = cptx_setp(k, cost(k, rows, g->of_a), cost(k, cols, g->of_b), .cmp = CPTX_GT);

	across = cptx_and(k, across, cptx_or(k, all, cptx_setp(k, cols, g->cols, .cmp = CPTX_LE)));
	rows = cptx_selp(k, rows, cptx_min(k, rows, g->rows), all);
	return cptx_selp(k, 1, rows, across, .type = CPTX_U32);
}
