/*
 * A list of problems in one launch (grouped).
 *
 * The host writes a record for each: its tensor maps, sizes, pointers, and the number of cluster tiles up to its end.  CTAs
 * walk over the tiles of all problems as over those of one; where a tile is behind the end of the problem at hand, they go
 * to the record that has it.  Loader and computing warpgroups do so each on their own.
 */
#include "kernels/gemm_sm90.h"

#include <stdlib.h>
#include <string.h>

/* A record, as the kernel reads it. */
enum {
	AT_MAPS = 0,                                            /* of A, B, D, and the rest of D */
	AT_SIZES = CPTX_GEMM_SM90_MAPS * CPTX_TENSOR_MAP_BYTES, /* M, N, K, end: u32 */
	AT_C = AT_SIZES + 16,
	AT_BIAS = AT_C + 8,
	RECORD = CPTX_GEMM_SM90_GROUP_BYTES
};

/* ---- in the kernel ---- */

void gemm_sm90_group_declare(gemm90 *g)
{
	cptx_kernel *k = g->k;

	g->groups = cptx_param(k, CPTX_PTR, "groups");
	g->group_tiles = cptx_param(k, CPTX_U32, "tiles");
	if (g->o->alpha)
		g->p.alpha = cptx_param(k, CPTX_F32, "alpha");
	if (g->o->beta)
		g->p.beta = cptx_param(k, CPTX_F32, "beta");
}

void gemm_sm90_group_begin(gemm90 *g)
{
	cptx_kernel *k = g->k;
	cptx_val *size[] = { &g->p.M, &g->p.N, &g->p.K };

	for (int i = 0; i < 3; i++)
		*size[i] = cptx_reg(k, CPTX_U32);
	g->M = g->o->swap ? g->p.N : g->p.M, g->N = g->o->swap ? g->p.M : g->p.N, g->K = g->p.K;
	g->record = cptx_var(k, CPTX_U64, cptx_sub(k, g->groups, RECORD));
	g->group_first = cptx_reg(k, CPTX_U32);
	g->group_end = cptx_var(k, CPTX_U32, 0);
	if (g->o->beta)
		g->p.C = cptx_reg(k, CPTX_U64);
	if (g->o->bias)
		g->p.bias = cptx_reg(k, CPTX_U64);
	g->w.at = cptx_var(k, CPTX_U32, g->w.cluster);
	g->w.end = g->group_tiles, g->w.step = g->w.clusters;
}

static cptx_val field(const gemm90 *g, uint32_t at) { return cptx_offset(g->record, at); }

/* Maps that were written as plain memory, for copies of this thread. */
static void acquire_maps(const gemm90 *g)
{
	cptx_kernel *k = g->k;

	for (uint32_t i = g->loads ? 0 : 2; i < (g->loads ? 2 : g->s.maps); i++)
		cptx_fence_proxy_tensormap_acquire(k, field(g, AT_MAPS + i * CPTX_TENSOR_MAP_BYTES), CPTX_TENSOR_MAP_BYTES,
		                                   .scope = CPTX_GPU);
}

void gemm_sm90_group_find(gemm90 *g)
{
	cptx_kernel *k = g->k;
	const bool swap = g->o->swap;

	CPTX_WHILE(k, cptx_setp(k, g->w.at, g->group_end, .cmp = CPTX_GE)) {
		cptx_add(k, g->record, RECORD, .into = g->record);
		cptx_mov(k, g->group_end, .into = g->group_first);
		cptx_val v = cptx_ld(k, field(g, AT_SIZES), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_U32);
		cptx_mov(k, cptx_elem(v, 0), .into = g->p.M);
		cptx_mov(k, cptx_elem(v, 1), .into = g->p.N);
		cptx_mov(k, cptx_elem(v, 2), .into = g->p.K);
		cptx_mov(k, cptx_elem(v, 3), .into = g->group_end);
		if (g->o->beta)
			cptx_ld(k, field(g, AT_C), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = g->p.C);
		if (g->o->bias)
			cptx_ld(k, field(g, AT_BIAS), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = g->p.bias);
		acquire_maps(g);
	}
	cptx_val *map[] = { swap ? &g->map_b : &g->map_a, swap ? &g->map_a : &g->map_b, &g->map_d, &g->map_rest };
	for (uint32_t i = 0; i < g->s.maps; i++)
		*map[i] = cptx_add(k, g->record, AT_MAPS + i * CPTX_TENSOR_MAP_BYTES);
}

/* ---- on the host ---- */

#define RULE(ok, ...) TMA_RULE(ok, "sm_90a: " __VA_ARGS__)

static bool write_record(cptx_device *dev, const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, uint32_t end,
                         uint8_t *to, cptx_error *err)
{
	cptx_tensor_map_opt opt[CPTX_GEMM_SM90_MAPS];
	cptx_tensor_map map;
	cptx_gemm_sm90_plan plan;
	uint32_t sizes[4] = { (uint32_t)p->m, (uint32_t)p->n, (uint32_t)p->k, end };

	if (!cptx_gemm_sm90_check(o, &plan, err) || !cptx_gemm_sm90_maps(o, p, opt, err))
		return false;
	for (uint32_t i = 0; i < plan.maps; i++) {
		if (!cptx_tensor_map_make(dev, &opt[i], &map, err))
			return false;
		memcpy(to + AT_MAPS + i * CPTX_TENSOR_MAP_BYTES, &map, CPTX_TENSOR_MAP_BYTES);
	}
	memcpy(to + AT_SIZES, sizes, sizeof sizes);
	memcpy(to + AT_C, &p->c, 8), memcpy(to + AT_BIAS, &p->bias, 8);
	return true;
}

/* Gives all cluster tiles. */
static bool write_table(cptx_device *dev, const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, size_t n, uint8_t *to,
                        uint32_t *tiles, cptx_error *err)
{
	gemm_shape s = gemm_sm90_shape(o);
	tma_gemm t = gemm_sm90_common(o, &s);
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (!p[i].m || !p[i].n) { /* no tiles: passed over */
			memset(to + i * RECORD, 0, RECORD);
			memcpy(to + i * RECORD + AT_SIZES + 12, &(uint32_t){ (uint32_t)end }, 4);
			continue;
		}
		if (!cptx_gemm_sm90_check_problem(o, &p[i], 1, NULL, err) || !tma_gemm_all_there(&t, &p[i], err))
			return false;
		end += gemm_sm90_tiles(o, &s, &p[i]);
		RULE(end * s.cluster <= INT32_MAX, "%llu tiles of %zu problems are too many", (unsigned long long)end, n);
		if (!write_record(dev, o, &p[i], (uint32_t)end, to + i * RECORD, err))
			return false;
	}
	*tiles = (uint32_t)end;
	return true;
}

static cptx_launch *prepare(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                            const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	gemm_shape s = gemm_sm90_shape(o);
	cptx_gemm_sm90_plan plan;
	cptx_arg arg[4] = { CPTX_ARG(table), CPTX_ARG(tiles) };
	size_t n = 2;

	if (!cptx_gemm_sm90_check(o, &plan, err))
		return NULL;
	uint32_t sms = cptx_device_get_info(dev)->sms;
	uint32_t most = p->ctas ? MAX(p->ctas / s.cluster, 1u) : tma_gemm_resident(sms, s.cluster, s.per_sm);
	if (o->alpha)
		arg[n++] = CPTX_ARG(p->alpha);
	if (o->beta)
		arg[n++] = CPTX_ARG(p->beta);
	return cptx_launch_new(program, o->name ? o->name : "gemm",
	                       &(cptx_launch_opt){ .grid = { MIN(MAX(tiles, 1u), most) * s.cluster },
	                                           .block = { plan.threads },
	                                           .dyn_smem = plan.smem,
	                                           .args = arg,
	                                           .nargs = n,
	                                           .overlap = true },
	                       err);
}

cptx_launch *cptx_gemm_sm90_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                                           const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	cptx_error own = { 0 };
	uint32_t tiles = 0;

	err = err ? err : &own;
	if (!dev || !program || !p || !n || !table || table % 128) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: %s",
		          !dev       ? "the device is NULL"
		          : !program ? "the program is NULL"
		          : !p || !n ? "there are no problems"
		          : !table   ? "the address of the table is 0"
		                     : "the address of the table is no multiple of 128");
		return NULL;
	}
	if (!cptx_gemm_sm90_check(o, NULL, err))
		return NULL;
	if (!o->grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm for sm_90a: the kernel takes one problem; .grouped makes it take a list");
		return NULL;
	}
	uint8_t *host = malloc(n * RECORD);
	cptx_launch *l = NULL;
	if (!host)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	else if (write_table(dev, o, p, n, host, &tiles, err) && cptx_mem_write(dev, table, host, n * RECORD, err))
		l = prepare(program, dev, o, p, table, tiles, err);
	free(host);
	return l;
}
