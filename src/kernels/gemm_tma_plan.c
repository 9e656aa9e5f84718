/* Rules that are the same for all GEMMs that are fed by TMA: what a CTA may ask for, clusters, and grids. */
#include "kernels/gemm_tma.h"

enum { STATIC_SMEM = 1024 /* for mbarriers */, STAGES_MOST = 16, GROUP_MOST = 1024, STAMPS_MOST = 1 << 20 };

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

bool tma_gemm_has_device(const char *target, const cptx_program *program, const cptx_device *dev, cptx_error *err)
{
	RULE(dev, "the device is NULL", target);
	RULE(program, "the program is NULL", target);
	return true;
}

uint32_t tma_gemm_bits(enum cptx_type t)
{
	switch (t) {
	case CPTX_TF32: return 32;
	case CPTX_E2M1: return 4;
	case CPTX_E2M3:
	case CPTX_E3M2: return 6;
	default: return cptx_type_bits(t);
	}
}

uint32_t tma_gemm_smem(const char *target, uint32_t per_sm)
{
	const cptx_target *t = cptx_target_find(target);
	uint32_t share = t->smem_per_sm / given(per_sm) - t->smem_reserved;

	return MIN(share, t->smem_per_cta) - STATIC_SMEM;
}

bool tma_gemm_check_numbers(const tma_gemm_cta *c, cptx_error *err)
{
	RULE(c->stages >= 2 && c->stages <= STAGES_MOST, "%u stages; 2 to %d are possible", c->target, c->stages, STAGES_MOST);
	RULE(c->timeline <= STAMPS_MOST, "%u stamps of a timeline for a warp; at most %d", c->target, c->timeline, STAMPS_MOST);
	RULE(c->group <= GROUP_MOST, "group = %u; at most %d rows of tiles", c->target, c->group, GROUP_MOST);
	return true;
}

bool tma_gemm_check_room(const tma_gemm_cta *c, cptx_error *err)
{
	uint32_t smem = c->stages * c->stage_bytes + c->other_bytes, most = tma_gemm_smem(c->target, c->per_sm);

	RULE(smem <= most, "%u stages of %ux%ux%u take %u bytes of shared memory, of %u that there are (%u stages fit)",
	     c->target, c->stages, c->bm, c->bn, c->bk, smem, most,
	     c->other_bytes < most ? (most - c->other_bytes) / c->stage_bytes : 0);
	return true;
}

bool tma_gemm_check_out(const char *target, enum cptx_type out, const char *more, cptx_error *err)
{
	RULE(out == CPTX_F32 || is_16_bits(out), "output type .%s; it must be f32, bf16 or f16%s", target, cptx_type_name(out),
	     more);
	return true;
}

bool tma_gemm_check_cluster(const char *target, uint32_t m, uint32_t n, uint32_t each, cptx_error *err)
{
	uint32_t most = cptx_target_find(target)->cluster / each, side = MAX(m, n);
	const char *what = each > 1 ? "pairs of CTAs" : "CTAs";

	RULE(m == 1 || n == 1 || m > most || n > most, "a cluster of %ux%u %s; one side must be 1", target, m, n, what);
	RULE(side <= most && !(side & (side - 1)), "a cluster of %ux%u %s; 1, 2%s %u are possible", target, m, n, what,
	     most > 4 ? ", 4 or" : " or", most);
	return true;
}

static double us_of(const tma_gemm_best *x, const void *choice)
{
	double us;

	memcpy(&us, (const char *)choice + x->at_us, sizeof us);
	return us;
}

void tma_gemm_offer(tma_gemm_best *x, const void *choice)
{
	char *to = x->choices;
	size_t i = x->n < x->room ? x->n++ : x->room;

	for (; i > 0 && us_of(x, choice) < us_of(x, to + (i - 1) * x->size); i--)
		if (i < x->room)
			memcpy(to + i * x->size, to + (i - 1) * x->size, x->size);
	if (i < x->room)
		memcpy(to + i * x->size, choice, x->size);
}

bool tma_gemm_has_room(const tma_gemm_best *x, const char *target, cptx_error *err)
{
	RULE(x->choices && x->room, "there is no room for choices", target);
	return true;
}

/* A cluster lies in one GPC.  Those of the H100 and H200 have 16 or 18 multiprocessors, some fewer, so clusters of 4 leave
 * some idle; a persistent grid of more clusters than fit would take twice the time. */
uint32_t tma_gemm_resident(uint32_t sms, uint32_t cluster, uint32_t per_sm)
{
	uint64_t ctas = (uint64_t)sms * per_sm;

	return MAX((uint32_t)((cluster >= 4 ? ctas * 10 / 11 : ctas) / cluster), 1u);
}

bool tma_gemm_fit(const tma_gemm_work *w, const cptx_gemm_problem *p, uint32_t sms, uint32_t *grid, uint64_t *workspace,
                  cptx_error *err)
{
	uint64_t batch = given(p->batch), clusters = w->in_one * batch;
	uint64_t most = p->ctas ? MAX(p->ctas / w->cluster, 1u) : tma_gemm_resident(sms, w->cluster, w->per_sm);

	RULE(w->in_one <= INT32_MAX && clusters <= INT32_MAX / w->cluster, "%llu tiles of %llu matrices are too many", w->target,
	     (unsigned long long)w->in_one, (unsigned long long)batch);
	uint64_t at_once = MIN(w->sums ? clusters * w->k_tiles : clusters, most);
	uint64_t shared = clusters < 2 * at_once ? clusters : at_once + clusters % at_once;
	RULE(!w->sums || (shared + 1) * w->k_tiles <= UINT32_MAX / at_once,
	     "%llu tiles of %llu steps along K are too many to be shared", w->target, (unsigned long long)clusters,
	     (unsigned long long)w->k_tiles);
	*grid = (uint32_t)at_once * w->cluster;
	*workspace = (uint64_t)*grid * w->sums;
	return true;
}
