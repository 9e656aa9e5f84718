/* SPDX-License-Identifier: MIT */
/* The ladder's kernels by number: their names, default options, and checks. */
#include "hgemm_parts.h"

#include <stdio.h>

enum { STATIC = 1024 /* bytes of shared memory for mbarriers and alignment */ };

static const struct rung {
	const char *name;
	cptx_kernel *(*build)(cptx_module *m, const hgemm_opt *o);
	bool tma;
} rungs[HGEMM_RUNGS] = {
	[HGEMM_BCF_DBF_RW] = { "hgemm_bcf_dbf_rw", hgemm_bcf_dbf_rw, false },
	[HGEMM_K_STAGES] = { "hgemm_k_stages", hgemm_k_stages, false },
	[HGEMM_TMA_R] = { "hgemm_tma_r_k_stages", hgemm_tma_r_k_stages, true },
	[HGEMM_TMA_RW] = { "hgemm_tma_rw_k_stages", hgemm_tma_rw_k_stages, true },
};

const char *hgemm_name(enum hgemm_rung rung) { return rungs[rung].name; }

cptx_kernel *hgemm_build(cptx_module *m, enum hgemm_rung rung, const hgemm_opt *o) { return rungs[rung].build(m, o); }

static uint32_t smem_of(enum hgemm_rung rung, const hgemm_opt *o)
{
	hgemm_tiles t = hgemm_tiles_of(o);

	return hgemm_ring_bytes(rung, o) + (hgemm_stays(rung, o) ? t.warps * t.c_bytes : 0);
}

/* Defaults for sm_12x: a tile that leaves room and registers for a second CTA; in the last kernel shared memory has no room
 * for one. */
static hgemm_opt small_default(enum hgemm_rung rung, uint32_t bk)
{
	hgemm_opt o = { .bm = 128, .bn = 128, .bk = bk, .warps_m = 4, .warps_n = 2, .stages = rung == HGEMM_TMA_RW ? 4 : 3 };

	o.rolling = rung != HGEMM_TMA_RW;
	o.most_regs = rung == HGEMM_TMA_RW ? 0 : rung == HGEMM_TMA_R && bk == 32 ? 96 : 128;
	return o;
}

/* Defaults for other targets: the best on an H200 was a tile of 64 x 64 for each warp. */
static hgemm_opt large_default(enum hgemm_rung rung, uint32_t bk, bool setmaxnreg)
{
	hgemm_opt o = { .bm = 128, .bn = 256, .bk = bk, .warps_m = 2, .warps_n = 4, .stages = bk == 32 ? 8 : 4 };

	o.rolling = !rungs[rung].tma;
	if (rung == HGEMM_K_STAGES && bk == 64)
		o.stages = 3;
	o.stay = rung == HGEMM_TMA_R && setmaxnreg;
	if (rung == HGEMM_TMA_R)
		o.group = 16;
	if (rung == HGEMM_TMA_RW)
		o.bm = 256, o.bn = 128, o.warps_m = 4, o.warps_n = 2, o.group = 4;
	/* four warps, to leave room for a second CTA or a producer */
	if (rung == HGEMM_BCF_DBF_RW || (rungs[rung].tma && !setmaxnreg))
		o.bm = o.bn = 128, o.warps_m = o.warps_n = 2;
	else if (rungs[rung].tma)
		o.consumer_regs = 232;
	return o;
}

hgemm_opt hgemm_default(enum hgemm_rung rung, uint32_t bk, enum cptx_type type, const cptx_target *target)
{
	hgemm_opt o = target->family == 12 ? small_default(rung, bk) : large_default(rung, bk, target->suffix != ' ');

	o.type = type;
	o.stmatrix = target->number >= 90;
	if (rung == HGEMM_BCF_DBF_RW)
		o.stages = 2;
	while (o.stages > 2 && smem_of(rung, &o) + STATIC > target->smem_per_cta)
		o.stages--;
	return o;
}

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok)) {                                                                                                        \
			err->code = CPTX_E_ARG;                                                                                         \
			snprintf(err->text, sizeof err->text, "hgemm: " __VA_ARGS__);                                                   \
			return false;                                                                                                   \
		}                                                                                                                   \
	while (0)

static bool check_shape(enum hgemm_rung rung, const hgemm_opt *o, cptx_error *err)
{
	RULE(o->type == CPTX_BF16 || o->type == CPTX_F16, "type .%s; it is bf16 or f16", cptx_type_name(o->type));
	RULE(o->bk == 32 || o->bk == 64, "tile K = %u; it is 32 or 64", o->bk);
	RULE(o->warps_m && o->warps_n && o->warps_m <= 16 && o->warps_n <= 16 && o->warps_m * o->warps_n <= 16 &&
	         o->warps_m * o->warps_n >= 2,
	     "%ux%u warps; a CTA has 2 to 16", o->warps_m, o->warps_n);
	RULE(o->bm && o->bm <= 256 && o->bm % (o->warps_m * HGEMM_MMA) == 0,
	     "tile M = %u with %u warps along it; each has a multiple of 16 rows, all at most 256", o->bm, o->warps_m);
	RULE(o->bn && o->bn <= 512 && o->bn % (o->warps_n * HGEMM_SPAN) == 0,
	     "tile N = %u with %u warps along it; each has a multiple of 64 columns, all at most 512", o->bn, o->warps_n);
	RULE(o->group <= 65536, "groups of %u rows of tiles; at most 65536", o->group);
	RULE(o->stages >= 2 && o->stages <= 16, "%u stages; 2 to 16 are possible", o->stages);
	RULE(o->stages == 2 || rung != HGEMM_BCF_DBF_RW, "%u stages; double buffers are 2", o->stages);
	return true;
}

/* Checks the copies by cp.async: all threads copy 16 bytes in each pass, and a pass must be a whole number of swizzle
 * patterns. */
static bool check_passes(const hgemm_opt *o, const hgemm_tiles *t, cptx_error *err)
{
	uint32_t pass = t->warps * CPTX_WARP * 16;

	RULE(!(t->warps & (t->warps - 1)), "%u warps that copy; their number is a power of two", t->warps);
	RULE(t->a_bytes % pass == 0 && (t->stage_bytes - t->a_bytes) % pass == 0,
	     "tile %ux%ux%u; %u warps copy %u bytes at once: take fewer warps or a larger tile", o->bm, o->bn, o->bk, t->warps,
	     pass);
	return true;
}

/* Checks setmaxnreg: it needs whole warpgroups; MMA warps get more registers than they start with, out of those that the CTA
 * has. */
static bool check_registers(const struct rung *r, const hgemm_opt *o, const hgemm_tiles *t, cptx_error *err)
{
	uint32_t threads = (t->warps + hgemm_producers(o)) * CPTX_WARP, start = CPTX_REGS_PER_SM / threads / 8 * 8;
	uint32_t all = t->warps * CPTX_WARP * o->consumer_regs + hgemm_producers(o) * CPTX_WARP * HGEMM_PRODUCER_REGS;

	start = o->most_regs && o->most_regs < start ? o->most_regs / 8 * 8 : start;
	RULE(r->tma && t->warps % 4 == 0, "%u registers for %u warps that compute; warpgroups of rungs with TMA have them",
	     o->consumer_regs, t->warps);
	RULE(start >= HGEMM_PRODUCER_REGS, "%u registers a thread at the start; with setmaxnreg they are %d or more", start,
	     HGEMM_PRODUCER_REGS);
	RULE(o->consumer_regs % 8 == 0 && o->consumer_regs <= 256 && o->consumer_regs >= start && all <= threads * start,
	     "%u registers for those who compute, of %u threads that begin with %u each; a multiple of 8 from there on, %u in "
	     "all at most, and %d are for each of the producer's warpgroup",
	     o->consumer_regs, threads, start, threads * start, HGEMM_PRODUCER_REGS);
	return true;
}

bool hgemm_check(enum hgemm_rung rung, const hgemm_opt *o, const cptx_target *target, hgemm_plan *plan, cptx_error *err)
{
	const struct rung *r = &rungs[rung];

	if (!check_shape(rung, o, err))
		return false;
	hgemm_tiles t = hgemm_tiles_of(o);
	uint32_t smem = smem_of(rung, o), least = r->tma || o->stmatrix ? 90 : 80;
	RULE(!target || target->number >= least, "%s%s is not available on %s; it needs sm_%u", r->name,
	     r->tma || !o->stmatrix ? "" : " with stmatrix", target->name, least);
	RULE(!target || smem + STATIC <= target->smem_per_cta,
	     "%u bytes of shared memory; a CTA of %s has %u: take fewer stages", smem, target->name,
	     target->smem_per_cta - STATIC);
	if (o->consumer_regs && !check_registers(r, o, &t, err))
		return false;
	if (!r->tma && !check_passes(o, &t, err))
		return false;
	if (plan)
		*plan =
			(hgemm_plan){ (t.warps + (r->tma ? hgemm_producers(o) : 0)) * CPTX_WARP, smem, r->tma, hgemm_stays(rung, o) };
	return true;
}
