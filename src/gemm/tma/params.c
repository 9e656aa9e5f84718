/* SPDX-License-Identifier: MIT */
/* The parameters of the GEMMs that are fed by TMA: tensor maps and numbers, in the kernel and at a launch. */
#include "gemm/tma/tma.h"

#include <cptx/operand.h>
#include <cptx/params.h>

enum { CHUNK = 16 /* bytes that kernels read and write at once */ };

#define RULE(ok, ...) TMA_RULE(ok, __VA_ARGS__)

/* ---- tensor maps ---- */

/* An even number of them: neighbours of a column share a register, so both are to be numbers. */
static cptx_tile last_rows(cptx_tile tile, uint64_t rows)
{
	tile.rows = rows % tile.rows ? (uint32_t)(rows % tile.rows + 1) & ~1u : tile.rows;
	return tile;
}

/* Of A, B or D, or of the ends of these. */
static bool make_map(const tma_gemm *t, const cptx_gemm_problem *p, enum cptx_gemm_map which, cptx_tensor_map_opt *map,
                     cptx_error *err)
{
	const bool of_d = which == CPTX_GEMM_MAP_D || which == CPTX_GEMM_MAP_END_D;
	const bool of_b = which == CPTX_GEMM_MAP_B || which == CPTX_GEMM_MAP_LAST_B;
	const bool last = which == CPTX_GEMM_MAP_LAST_A || which == CPTX_GEMM_MAP_LAST_B;
	const uint64_t rows = of_b ? p->n : p->m, cols = of_d ? p->n : p->k / given(t->packed);
	cptx_tile tile = !of_d ? tma_gemm_part(t, of_b) : which == CPTX_GEMM_MAP_D ? t->d : t->rest;
	const bool mn_major = of_d && tile.elem.mn_major; /* its rows are columns of D */

	if (last)
		tile = last_rows(tile, rows);
	if (!cptx_tile_tensor_map(&tile,
	                          cptx_operand_tensor_type(of_d   ? t->o->out
	                                                   : of_b ? t->o->b
	                                                          : t->o->a,
	                                                   &tile),
	                          of_d   ? p->d
	                          : of_b ? p->b
	                                 : p->a,
	                          mn_major ? cols : rows, mn_major ? rows : cols, 0, map, err))
		return false;
	map->l2 = 256;
	if (t->o->batched) {
		map->rank = 3;
		map->dim[2] = given(p->batch);
		map->stride[2] = rows * (cols * tile.elem.bits / 8);
		map->box[2] = 1;
		return cptx_tensor_map_check(map, err);
	}
	return true;
}

/* Blocks, each as 128 words; along K, then along the rows. */
static bool make_map_of_scales(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, cptx_tensor_map_opt *map,
                               cptx_error *err)
{
	const tma_gemm_scales *s = &t->scales;
	uint64_t rows = of_b ? p->n : p->m;

	*map = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_U32,
		                          .rank = t->o->batched ? 4 : 3,
		                          .address = of_b ? p->scale_b : p->scale_a,
		                          .dim = { CPTX_SCALE_BYTES / 4, up(p->k, (uint64_t)s->vec * CPTX_SCALE_FACTORS),
		                                   up(rows, CPTX_SCALE_ROWS), given(p->batch) },
		                          .box = { CPTX_SCALE_BYTES / 4, s->along_k, s->rows[of_b != t->o->swap], 1 } };
	return cptx_tensor_map_check(map, err);
}

bool tma_gemm_maps(const tma_gemm *t, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err)
{
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++) {
		bool of_scales = i == CPTX_GEMM_MAP_SCALE_A || i == CPTX_GEMM_MAP_SCALE_B;
		if (!(t->maps & MAP(i)))
			continue;
		if (tma_gemm_is_map(t, i) && !(of_scales ? make_map_of_scales(t, p, i == CPTX_GEMM_MAP_SCALE_B, map, err)
		                                         : make_map(t, p, (enum cptx_gemm_map)i, map, err)))
			return false;
		map++;
	}
	return true;
}

/* ---- addresses ---- */

static bool check_address(const tma_gemm *t, const char *what, bool needed, uint64_t at, cptx_error *err)
{
	RULE(!needed || at, "%s: the address of %s is 0", t->target, what);
	RULE(!needed || at % CHUNK == 0, "%s: the address of %s, 0x%llx, is no multiple of %d", t->target, what,
	     (unsigned long long)at, CHUNK);
	return true;
}

bool tma_gemm_all_there(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	return check_address(t, "A", true, p->a, err) && check_address(t, "B", true, p->b, err) &&
	       check_address(t, "D", true, p->d, err) && check_address(t, "C", t->o->beta, p->c, err) &&
	       check_address(t, "the bias", t->o->bias, p->bias, err) &&
	       check_address(t, "the timeline", t->o->timeline, p->timeline, err) &&
	       check_address(t, "the workspace", t->o->stream_k, p->workspace, err) &&
	       check_address(t, "the scale factors of A", t->scales.vec, p->scale_a, err) &&
	       check_address(t, "the scale factors of B", t->scales.vec, p->scale_b, err);
}

/* ---- parameters ---- */

/* What a launch fills them from; parameters have the names of its members. */
typedef struct gemm_args {
	cptx_tensor_map_opt map_a, map_b, map_d, map_end_d, map_last_a, map_last_b, map_scale_a, map_scale_b;
	uint64_t A, B, D, groups;
	uint32_t tiles, M, N, K, batch;
	float alpha, beta;
	uint64_t C, bias, timeline, workspace;
} gemm_args;

/* The parameters that a kernel has, in order, and where it knows them. */
typedef struct gemm_params {
	size_t n;
	cptx_param_row row[CPTX_PARAMS_MOST];
	cptx_val *val[CPTX_PARAMS_MOST];
} gemm_params;

/* One that there may be. */
typedef struct parameter {
	cptx_param_row row;
	bool there;
	cptx_val *val;
} parameter;

static bool has_pointer(const tma_gemm *t, enum cptx_gemm_map which)
{
	return !t->o->grouped && t->maps & MAP(which) && !tma_gemm_is_map(t, which);
}

static bool has_map(const tma_gemm *t, enum cptx_gemm_map which)
{
	return !t->o->grouped && t->maps & MAP(which) && tma_gemm_is_map(t, which);
}

/* With a list, maps, sizes and addresses stand in its records. */
static gemm_params list_parameters(const tma_gemm *t, tma_gemm_work *w)
{
	const cptx_gemm_opt *o = t->o;
	const bool one = !o->grouped;
	tma_gemm_params *v = &w->p;
#define THE_MAP(which, member)                                                                                              \
	{                                                                                                                       \
		CPTX_PARAM_MAP(gemm_args, member), has_map(t, CPTX_GEMM_MAP_##which), &v->map[CPTX_GEMM_MAP_##which]                \
	}
#define THE_POINTER(which)                                                                                                  \
	{                                                                                                                       \
		CPTX_PARAM_ROW(gemm_args, CPTX_PTR, which), has_pointer(t, CPTX_GEMM_MAP_##which), &v->map[CPTX_GEMM_MAP_##which]   \
	}
	const parameter all[] = {
		THE_MAP(A, map_a),
		THE_POINTER(A),
		THE_MAP(B, map_b),
		THE_POINTER(B),
		THE_MAP(D, map_d),
		THE_POINTER(D),
		THE_MAP(END_D, map_end_d),
		THE_MAP(LAST_A, map_last_a),
		THE_MAP(LAST_B, map_last_b),
		THE_MAP(SCALE_A, map_scale_a),
		THE_MAP(SCALE_B, map_scale_b),
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, groups), !one, &w->list.records },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, tiles), !one, &w->list.tiles },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, M), one, &v->M },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, N), one, &v->N },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, K), one, &v->K },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, batch), o->batched, &v->batch },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_F32, alpha), o->alpha, &v->alpha },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_F32, beta), o->beta, &v->beta },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, C), one && o->beta, &v->C },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, bias), one && o->bias, &v->bias },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, timeline), o->timeline != 0, &v->timeline },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, workspace), o->stream_k, &v->workspace },
	};
#undef THE_MAP
#undef THE_POINTER
	gemm_params p = { .n = 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].there)
			p.row[p.n] = all[i].row, p.val[p.n++] = all[i].val;
	return p;
}

void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	const gemm_params list = list_parameters(t, w);
	cptx_params *p = &w->table;

	*p = (cptx_params){ .n = 0 };
	cptx_params_declare(k, p, list.row, list.n);
	for (uint32_t i = 0; i < p->n; i++)
		*list.val[i] = p->val[i];
	if (t->o->nparams)
		cptx_params_declare_(k, NOWHERE, p, t->o->params, t->o->nparams);
}

void tma_gemm_prefetch_maps(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid)
{
	const uint32_t all = t->maps & ~(MAP(CPTX_GEMM_MAP_LAST_A) | MAP(CPTX_GEMM_MAP_LAST_B));
	uint32_t warp = 0;

	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS && !t->o->grouped; i++)
		if (all & MAP(i))
			cptx_prefetch(k, w->p.map[i], .tensormap = CPTX_TENSORMAP,
			              .when = cptx_setp(k, tid, 32 * warp++, .cmp = CPTX_EQ));
}

/* ---- launches ---- */

cptx_launch *tma_gemm_launch(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                             const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	gemm_args args = { .A = p->a,
		               .B = p->b,
		               .D = p->d,
		               .groups = table,
		               .tiles = tiles,
		               .M = (uint32_t)p->m,
		               .N = (uint32_t)p->n,
		               .K = (uint32_t)p->k,
		               .batch = given(p->batch),
		               .alpha = p->alpha,
		               .beta = p->beta,
		               .C = p->c,
		               .bias = p->bias,
		               .timeline = p->timeline,
		               .workspace = p->workspace };
	cptx_tensor_map_opt map[CPTX_GEMM_MAPS];
	tma_gemm_work unused;
	const gemm_params list = list_parameters(t, &unused);
	const cptx_params_part parts[] = { { list.row, list.n, &args }, { t->o->params, t->o->nparams, p->args } };

	if (!t->o->grouped && (!tma_gemm_all_there(t, p, err) || !tma_gemm_maps(t, p, map, err)))
		return NULL;
	for (size_t i = 0; i < list.n; i++) /* maps, and pointers in place of some, are the first of both */
		if (list.row[i].kind == CPTX_PARAM_TENSOR)
			memcpy((char *)&args + list.row[i].offset, &map[i], sizeof map[i]);
	return cptx_params_launch_(NOWHERE, program, dev, t->o->name, parts, ARRAY_LEN(parts),
	                           CPTX_OPT(cptx_launch_opt, .grid = { plan->grid }, .block = { plan->threads },
	                                    .dyn_smem = plan->smem, .overlap = tma_gemm_is_map(t, CPTX_GEMM_MAP_A)),
	                           err);
}
