/* SPDX-License-Identifier: MIT */
/*
 * A list of problems in one launch (grouped).
 *
 * The host writes a record for each: its tensor maps, sizes, pointers, and the number of cluster tiles up to its end.  CTAs
 * go over the tiles of all problems as over those of one; where a tile is behind the end of the problem at hand, they go
 * to the record that has it.  Each role does so on its own.
 */
#include "gemm/tma/tma.h"

#include <cptx/cptx.h>

#include <stdlib.h>

/* A record, as the kernel reads it: maps, in the place of one of D or of B's factors the address where the kernel takes a
 * pointer; M, N, K and the end, u32; C; bias. */
typedef struct record {
	uint32_t map[CPTX_GEMM_MAP_KINDS], sizes, c, bias; /* where they begin */
	uint32_t bytes;
} record;
#define RECORD_BYTES(maps) (((maps)*CPTX_TENSOR_MAP_BYTES + 32 + 127) / 128 * 128)
_Static_assert(RECORD_BYTES(CPTX_GEMM_MAPS) == CPTX_GEMM_GROUP_BYTES, "as the header says");

static record record_of(const tma_gemm *t)
{
	record r = { .sizes = 0 };
	uint32_t maps = 0;

	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
		if (t->maps & MAP(i))
			r.map[i] = maps++ * CPTX_TENSOR_MAP_BYTES;
	r.sizes = maps * CPTX_TENSOR_MAP_BYTES;
	r.c = r.sizes + 16, r.bias = r.c + 8;
	r.bytes = RECORD_BYTES(maps);
	return r;
}

/* ---- in the kernel ---- */

void tma_gemm_group_begin(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	tma_gemm_group *g = &w->list;
	tma_gemm_params *p = &w->p;
	cptx_val *size[] = { &p->M, &p->N, &p->K };

	for (int i = 0; i < 3; i++)
		*size[i] = cptx_reg(k, CPTX_U32);
	g->record = cptx_var(k, CPTX_U64, cptx_sub(k, g->records, record_of(t).bytes));
	g->first = cptx_reg(k, CPTX_U32);
	g->end = cptx_var(k, CPTX_U32, 0);
	if (t->o->beta)
		p->C = cptx_reg(k, CPTX_U64);
	if (t->o->bias)
		p->bias = cptx_reg(k, CPTX_U64);
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
		if (t->pointers & MAP(i))
			p->map[i] = cptx_reg(k, CPTX_U64);
}

void tma_gemm_group_find(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w, uint32_t used)
{
	tma_gemm_group *g = &w->list;
	tma_gemm_params *p = &w->p;
	const record r = record_of(t);

	CPTX_WHILE(k, cptx_setp(k, w->at, g->end, .cmp = CPTX_GE)) {
		cptx_add(k, g->record, r.bytes, .into = g->record);
		cptx_mov(k, g->end, .into = g->first);
		cptx_val v = cptx_ld(k, cptx_offset(g->record, r.sizes), .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_U32);
		cptx_mov(k, cptx_elem(v, 0), .into = p->M);
		cptx_mov(k, cptx_elem(v, 1), .into = p->N);
		cptx_mov(k, cptx_elem(v, 2), .into = p->K);
		cptx_mov(k, cptx_elem(v, 3), .into = g->end);
		if (t->o->beta)
			cptx_ld(k, cptx_offset(g->record, r.c), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = p->C);
		if (t->o->bias)
			cptx_ld(k, cptx_offset(g->record, r.bias), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = p->bias);
		for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
			if (t->pointers & MAP(i))
				cptx_ld(k, cptx_offset(g->record, r.map[i]), .space = CPTX_GLOBAL, .type = CPTX_U64, .into = p->map[i]);
		/* maps that the host wrote as plain memory, for copies of this thread */
		for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
			if (t->maps & ~t->pointers & used & MAP(i))
				cptx_fence_proxy_tensormap_acquire(k, cptx_offset(g->record, r.map[i]), CPTX_TENSOR_MAP_BYTES,
				                                   .scope = CPTX_SYS);
	}
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
		if (t->maps & MAP(i) && tma_gemm_is_map(t, i))
			p->map[i] = cptx_add(k, g->record, r.map[i]);
}

/* ---- on the host ---- */

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

static bool write_record(cptx_device *dev, const tma_gemm *t, const cptx_gemm_problem *p, uint32_t end, uint8_t *to,
                         cptx_error *err)
{
	cptx_tensor_map_opt opt[CPTX_GEMM_MAPS];
	cptx_tensor_map map;
	const record r = record_of(t);
	uint32_t sizes[4] = { (uint32_t)p->m, (uint32_t)p->n, (uint32_t)p->k, end };

	if (!tma_gemm_maps(t, p, opt, err))
		return false;
	for (uint32_t i = 0, n = 0; i < CPTX_GEMM_MAP_KINDS; i++) {
		const bool is_map = tma_gemm_is_map(t, i);
		if (!(t->maps & MAP(i)))
			continue;
		if (is_map && !cptx_tensor_map_make(dev, &opt[n], &map, err))
			return false;
		const uint64_t address = tma_gemm_address(p, i);
		memcpy(to + r.map[i], is_map ? (const void *)&map : &address, is_map ? sizeof map : sizeof address);
		n++;
	}
	memcpy(to + r.sizes, sizes, sizeof sizes);
	memcpy(to + r.c, &p->c, 8), memcpy(to + r.bias, &p->bias, 8);
	return true;
}

/* Writes the records; gives the number of cluster tiles of all problems. */
static bool write_table(cptx_device *dev, const tma_gemm *t, const cptx_gemm_problem *p, size_t n, uint8_t *to,
                        uint32_t *tiles, cptx_error *err)
{
	cptx_gemm_plan plan;
	const record r = record_of(t);
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (!p[i].m || !p[i].n) { /* no tiles: passed over */
			uint32_t end_of = (uint32_t)end;
			memset(to + i * r.bytes, 0, r.bytes);
			memcpy(to + i * r.bytes + r.sizes + 12, &end_of, 4);
			continue;
		}
		if (!tma_gemm_check_problem(t, &p[i], 1, &plan, err) || !tma_gemm_all_there(t, &p[i], err))
			return false;
		end += tma_gemm_tiles(t, &p[i]);
		RULE(end * t->cluster <= INT32_MAX, "%llu tiles of %zu problems are too many", t->target, (unsigned long long)end,
		     n);
		if (!write_record(dev, t, &p[i], (uint32_t)end, to + i * r.bytes, err))
			return false;
	}
	*tiles = (uint32_t)end;
	return true;
}

static cptx_launch *prepare(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                            const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	cptx_gemm_plan all = *plan;
	uint32_t sms = cptx_device_get_info(dev)->sms;
	uint32_t most = p->ctas ? MAX(p->ctas / t->cluster, 1u) : tma_gemm_resident(sms, t->cluster, or_one(t->per_sm));

	all.grid = MIN(MAX(tiles, 1u), most) * t->cluster;
	return tma_gemm_launch(t, &all, program, dev, p, table, tiles, err);
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

	size_t bytes = n * record_of(t).bytes;
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
