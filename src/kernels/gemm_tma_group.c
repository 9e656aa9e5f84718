/*
 * A list of problems in one launch (grouped).
 *
 * The host writes a record for each: its tensor maps, sizes, pointers, and the number of cluster tiles up to its end.  CTAs
 * walk over the tiles of all problems as over those of one; where a tile is behind the end of the problem at hand, they go
 * to the record that has it.  Each role does so on its own.
 */
#include "kernels/gemm_tma.h"

#include <stdlib.h>

/* A record, as the kernel reads it: maps, in the place of D's its address where it has none; M, N, K and the end, u32; C;
 * bias. */
static uint32_t at_map(uint32_t i) { return i * CPTX_TENSOR_MAP_BYTES; }
static uint32_t at_sizes(uint32_t maps) { return at_map(maps); }
static uint32_t at_c(uint32_t maps) { return at_sizes(maps) + 16; }
static uint32_t at_bias(uint32_t maps) { return at_c(maps) + 8; }
static uint32_t record_bytes(uint32_t maps) { return TMA_GEMM_RECORD(maps); }
static bool is_map(const tma_gemm *t, uint32_t i) { return i != 2 || !t->d_pointer; }

/* ---- in the kernel ---- */

void tma_gemm_group_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	tma_gemm_group *g = &w->list;
	tma_gemm_params *p = &w->p;

	g->records = cptx_param(k, CPTX_PTR, "groups");
	g->tiles = cptx_param(k, CPTX_U32, "tiles");
	if (t->o->alpha)
		p->alpha = cptx_param(k, CPTX_F32, "alpha");
	if (t->o->beta)
		p->beta = cptx_param(k, CPTX_F32, "beta");
}

void tma_gemm_group_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	tma_gemm_group *g = &w->list;
	tma_gemm_params *p = &w->p;
	cptx_val *size[] = { &p->M, &p->N, &p->K };

	for (int i = 0; i < 3; i++)
		*size[i] = cptx_reg(k, CPTX_U32);
	g->record = cptx_var(k, CPTX_U64, cptx_sub(k, g->records, record_bytes(t->list_maps)));
	g->first = cptx_reg(k, CPTX_U32);
	g->end = cptx_var(k, CPTX_U32, 0);
	if (t->o->beta)
		p->C = cptx_reg(k, CPTX_U64);
	if (t->o->bias)
		p->bias = cptx_reg(k, CPTX_U64);
	if (t->d_pointer)
		p->D = cptx_reg(k, CPTX_U64);
	w->at = cptx_var(k, CPTX_U32, w->cluster);
	w->end = g->tiles, w->step = w->clusters;
}

void tma_gemm_group_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t used)
{
	tma_gemm_group *g = &w->list;
	tma_gemm_params *p = &w->p;

	CPTX_WHILE(k, cptx_setp(k, w->at, g->end, .cmp = CPTX_GE)) {
		cptx_add(k, g->record, record_bytes(t->list_maps), .into = g->record);
		cptx_mov(k, g->end, .into = g->first);
		cptx_val v = cptx_ld(k, cptx_offset(g->record, at_sizes(t->list_maps)), .space = CPTX_GLOBAL, .vec = CPTX_V4,
		                     .type = CPTX_U32);
		cptx_mov(k, cptx_elem(v, 0), .into = p->M);
		cptx_mov(k, cptx_elem(v, 1), .into = p->N);
		cptx_mov(k, cptx_elem(v, 2), .into = p->K);
		cptx_mov(k, cptx_elem(v, 3), .into = g->end);
		if (t->o->beta)
			cptx_ld(k, cptx_offset(g->record, at_c(t->list_maps)), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = p->C);
		if (t->o->bias)
			cptx_ld(k, cptx_offset(g->record, at_bias(t->list_maps)), .space = CPTX_GLOBAL, .type = CPTX_U64,
			        .into = p->bias);
		if (t->d_pointer)
			cptx_ld(k, cptx_offset(g->record, at_map(2)), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = p->D);
		/* maps that the host wrote as plain memory, for copies of this thread */
		for (uint32_t i = 0; i < t->maps; i++)
			if (used >> i & 1)
				cptx_fence_proxy_tensormap_acquire(k, cptx_offset(g->record, at_map(i)), CPTX_TENSOR_MAP_BYTES,
				                                   .scope = CPTX_SYS);
	}
	for (uint32_t i = 0; i < t->maps; i++)
		if (is_map(t, i))
			p->map[i] = cptx_add(k, g->record, at_map(i));
}

/* ---- on the host ---- */

_Static_assert(TMA_GEMM_RECORD(CPTX_GEMM_MAPS) == CPTX_GEMM_GROUP_BYTES, "as the header says");

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

static bool write_record(cptx_device *dev, const tma_gemm *t, const cptx_gemm_problem *p, uint32_t end, uint8_t *to,
                         cptx_error *err)
{
	cptx_tensor_map_opt opt[CPTX_GEMM_MAPS];
	cptx_tensor_map map;
	uint32_t sizes[4] = { (uint32_t)p->m, (uint32_t)p->n, (uint32_t)p->k, end };

	if (!tma_gemm_maps(t, p, opt, err))
		return false;
	for (uint32_t i = 0; i < t->maps; i++) {
		if (is_map(t, i) && !cptx_tensor_map_make(dev, &opt[i], &map, err))
			return false;
		memcpy(to + at_map(i), is_map(t, i) ? (const void *)&map : &p->d, is_map(t, i) ? sizeof map : sizeof p->d);
	}
	memcpy(to + at_sizes(t->list_maps), sizes, sizeof sizes);
	memcpy(to + at_c(t->list_maps), &p->c, 8), memcpy(to + at_bias(t->list_maps), &p->bias, 8);
	return true;
}

/* Gives all cluster tiles. */
static bool write_table(cptx_device *dev, const tma_gemm *t, const cptx_gemm_problem *p, size_t n, uint8_t *to,
                        uint32_t *tiles, cptx_error *err)
{
	cptx_gemm_plan plan;
	uint32_t record = record_bytes(t->list_maps);
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (!p[i].m || !p[i].n) { /* no tiles: passed over */
			uint32_t end_of = (uint32_t)end;
			memset(to + i * record, 0, record);
			memcpy(to + i * record + at_sizes(t->list_maps) + 12, &end_of, 4);
			continue;
		}
		if (!tma_gemm_check_problem(t, &p[i], 1, &plan, err) || !tma_gemm_all_there(t, &p[i], err))
			return false;
		end += tma_gemm_tiles(t, &p[i]);
		RULE(end * t->cluster <= INT32_MAX, "%llu tiles of %zu problems are too many", t->target, (unsigned long long)end,
		     n);
		if (!write_record(dev, t, &p[i], (uint32_t)end, to + i * record, err))
			return false;
	}
	*tiles = (uint32_t)end;
	return true;
}

static cptx_launch *prepare(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                            const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	cptx_arg arg[4] = { CPTX_ARG(table), CPTX_ARG(tiles) };
	size_t n = 2;
	uint32_t sms = cptx_device_get_info(dev)->sms;
	uint32_t most = p->ctas ? MAX(p->ctas / t->cluster, 1u) : tma_gemm_resident(sms, t->cluster, given(t->per_sm));

	if (t->o->alpha)
		arg[n++] = CPTX_ARG(p->alpha);
	if (t->o->beta)
		arg[n++] = CPTX_ARG(p->beta);
	return cptx_launch_new(program, t->o->name,
	                       CPTX_OPT_(cptx_launch_opt, .grid = { MIN(MAX(tiles, 1u), most) * t->cluster },
	                                 .block = { plan->threads }, .dyn_smem = plan->smem, .overlap = true, .nargs = n,
	                                 .args = arg),
	                       err);
}

static bool check_list(const tma_gemm *t, const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	RULE(p && n, "there are no problems", t->target);
	RULE(table, "the address of the table is 0", t->target);
	RULE(table % 128 == 0, "the address of the table is no multiple of 128", t->target);
	return true;
}

cptx_launch *tma_gemm_launch_list(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program,
                                  cptx_device *dev, const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	if (!check_list(t, p, n, table, err))
		return NULL;

	size_t bytes = n * record_bytes(t->list_maps);
	uint8_t *host = NEW_UNSET(uint8_t, bytes);
	cptx_launch *launch = NULL;
	uint32_t tiles = 0;

	if (!host)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	else if (write_table(dev, t, p, n, host, &tiles, err) && cptx_mem_write(dev, table, host, bytes, err))
		launch = prepare(t, plan, program, dev, p, table, tiles, err);
	free(host);
	return launch;
}
