/* SPDX-License-Identifier: MIT */
/* What the models of the GEMMs share: how tiles come over the chip, and the list of the best choices. */
#include "gemm/tma/tma.h"

#include <math.h>

double gemm_longer(double a, double b, double power) { return pow(pow(a, power) + pow(b, power), 1 / power); }

gemm_rounds gemm_rounds_of(const tma_gemm *t, const cptx_gemm_choice *c, const cptx_gemm_problem *p, uint32_t sms)
{
	const double k_tiles = (double)up(p->k, t->bk), cluster = t->cluster;
	gemm_rounds r = { .tiles = (double)(tma_gemm_tiles(t, p) * given(p->batch)) };

	r.at_once = c->ctas ? MAX(c->ctas / t->cluster, 1u) : tma_gemm_resident(sms, t->cluster, given(t->per_sm));
	r.rounds = ceil(r.tiles / r.at_once);
	r.steps = c->opt.stream_k ? ceil(r.tiles * k_tiles / r.at_once) : r.rounds * k_tiles;
	r.run = MIN(r.at_once, c->opt.stream_k ? r.tiles * k_tiles : r.tiles) * cluster;
	r.together = MIN((double)given(t->per_sm), ceil(r.run / sms));
	r.idle = 1 - r.tiles * k_tiles / (r.steps * r.at_once) * MIN(1.0, r.at_once * cluster / (sms * r.together));
	return r;
}

/* ---- choices ---- */

static void keep(gemm_pick *x, const cptx_gemm_choice *choice)
{
	cptx_gemm_choice *to = x->choices;
	size_t i = x->n < x->room ? x->n++ : x->room;

	for (; i > 0 && choice->us < to[i - 1].us; i--)
		if (i < x->room)
			to[i] = to[i - 1];
	if (i < x->room)
		to[i] = *choice;
}

void gemm_offer(gemm_pick *x, cptx_gemm_choice c, gemm_predict_fn predict)
{
	cptx_gemm_problem p = *x->p;

	p.ctas = c.ctas;
	if (!cptx_gemm_check_problem(&c.opt, &p, x->sms, NULL, NULL))
		return;
	predict(&c, x->p, x->sms);
	keep(x, &c);
}

void gemm_offer_shared(gemm_pick *x, const tma_gemm *t, cptx_gemm_choice c, gemm_predict_fn predict)
{
	const uint64_t tiles = tma_gemm_tiles(t, x->p) * given(x->p->batch), k_tiles = up(x->p->k, t->bk);
	const uint64_t most = tma_gemm_resident(x->sms, t->cluster, given(t->per_sm));

	c.opt.stream_k = true;
	gemm_offer(x, c, predict);
	for (uint64_t parts = 2; parts <= 8 && parts * 4 <= k_tiles && tiles * parts <= most; parts++) {
		c.ctas = (uint32_t)(tiles * parts * t->cluster);
		gemm_offer(x, c, predict);
	}
}
