/* SPDX-License-Identifier: MIT */
/* The parameters of the GEMMs that are fed by TMA: tensor maps and numbers, in the kernel and at a launch. */
#include "gemm/tma/tma.h"

#include <cptx/operand.h>

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
	cptx_tile tile = of_b ? t->b : !of_d ? t->a : which == CPTX_GEMM_MAP_D ? t->d : t->rest;
	const bool turned = of_d && tile.elem.mn_major; /* its rows are columns of D */

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
	                          turned ? cols : rows, turned ? rows : cols, 0, map, err))
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
static bool make_map_of_factors(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, cptx_tensor_map_opt *map,
                                cptx_error *err)
{
	const tma_gemm_factors *f = &t->factors;
	uint64_t rows = of_b ? p->n : p->m;

	*map = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_U32,
		                          .rank = t->o->batched ? 4 : 3,
		                          .address = of_b ? p->scale_b : p->scale_a,
		                          .dim = { CPTX_SCALE_BYTES / 4, up(p->k, (uint64_t)f->vec * CPTX_SCALE_FACTORS),
		                                   up(rows, CPTX_SCALE_ROWS), given(p->batch) },
		                          .box = { CPTX_SCALE_BYTES / 4, f->along_k, of_b ? f->of_b : f->of_a, 1 } };
	return cptx_tensor_map_check(map, err);
}

bool tma_gemm_maps(const tma_gemm *t, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err)
{
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++) {
		bool of_factors = i == CPTX_GEMM_MAP_SCALE_A || i == CPTX_GEMM_MAP_SCALE_B;
		if (!(t->maps & MAP(i)))
			continue;
		if (tma_gemm_is_map(t, i) && !(of_factors ? make_map_of_factors(t, p, i == CPTX_GEMM_MAP_SCALE_B, map, err)
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
	       check_address(t, "the scale factors of A", t->factors.vec, p->scale_a, err) &&
	       check_address(t, "the scale factors of B", t->factors.vec, p->scale_b, err);
}

/* ---- numbers ---- */

/* A parameter behind the maps: what the kernel knows it by, and what a launch gives for it. */
typedef struct parameter {
	const char *name;
	enum cptx_type type;
	bool there;
	cptx_val *val;
	cptx_arg arg;
} parameter;

enum { PARAMETERS = 12 };

/* All that there may be, in order.  With a list, sizes and addresses stand in its records. */
static void list_parameters(const tma_gemm *t, const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, tma_gemm_work *w,
                            parameter to[PARAMETERS])
{
	const cptx_gemm_opt *o = t->o;
	const bool one = !o->grouped;
	tma_gemm_params *v = &w->p;
	const parameter all[PARAMETERS] = {
		{ "groups", CPTX_PTR, !one, &w->list.records, CPTX_ARG(table) },
		{ "tiles", CPTX_U32, !one, &w->list.tiles, CPTX_ARG(tiles) },
		{ "M", CPTX_U32, one, &v->M, CPTX_ARG((uint32_t)p->m) },
		{ "N", CPTX_U32, one, &v->N, CPTX_ARG((uint32_t)p->n) },
		{ "K", CPTX_U32, one, &v->K, CPTX_ARG((uint32_t)p->k) },
		{ "batch", CPTX_U32, o->batched, &v->batch, CPTX_ARG(given(p->batch)) },
		{ "alpha", CPTX_F32, o->alpha, &v->alpha, CPTX_ARG(p->alpha) },
		{ "beta", CPTX_F32, o->beta, &v->beta, CPTX_ARG(p->beta) },
		{ "C", CPTX_PTR, one && o->beta, &v->C, CPTX_ARG(p->c) },
		{ "bias", CPTX_PTR, one && o->bias, &v->bias, CPTX_ARG(p->bias) },
		{ "timeline", CPTX_PTR, o->timeline != 0, &v->timeline, CPTX_ARG(p->timeline) },
		{ "workspace", CPTX_PTR, o->stream_k, &v->workspace, CPTX_ARG(p->workspace) },
	};

	memcpy(to, all, sizeof all);
}

void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	static const char *const names[CPTX_GEMM_MAP_KINDS] = { "map_a",      "map_b",      "map_d",       "map_end_d",
		                                                    "map_last_a", "map_last_b", "map_scale_a", "map_scale_b" };
	static const cptx_gemm_problem none = { .m = 0 };
	parameter list[PARAMETERS];

	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS && !t->o->grouped; i++) {
		if (!(t->maps & MAP(i)))
			continue;
		if (!tma_gemm_is_map(t, i)) {
			w->p.D = cptx_param(k, CPTX_PTR, "D");
			continue;
		}
		cptx_val at = cptx_param_bytes(k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, names[i]);
		w->p.map[i] = cptx_cvta(k, cptx_mov(k, at, .type = CPTX_U64), .space = CPTX_PARAM);
	}
	list_parameters(t, &none, 0, 0, w, list);
	for (size_t i = 0; i < PARAMETERS; i++)
		if (list[i].there)
			*list[i].val = cptx_param(k, list[i].type, list[i].name);
}

/* ---- launches ---- */

cptx_launch *tma_gemm_launch(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                             const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	cptx_tensor_map_opt opt[CPTX_GEMM_MAPS];
	cptx_tensor_map map[CPTX_GEMM_MAPS];
	cptx_arg arg[CPTX_GEMM_MAPS + PARAMETERS];
	parameter list[PARAMETERS];
	tma_gemm_work unused;
	size_t n = 0;

	if (!t->o->grouped && (!tma_gemm_all_there(t, p, err) || !tma_gemm_maps(t, p, opt, err)))
		return NULL;
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS && !t->o->grouped; i++) {
		if (!(t->maps & MAP(i)))
			continue;
		if (tma_gemm_is_map(t, i) && !cptx_tensor_map_make(dev, &opt[n], &map[n], err))
			return NULL;
		arg[n] = tma_gemm_is_map(t, i) ? CPTX_ARG_BYTES(&map[n], sizeof map[n]) : CPTX_ARG(p->d);
		n++;
	}
	list_parameters(t, p, table, tiles, &unused, list);
	for (size_t i = 0; i < PARAMETERS; i++)
		if (list[i].there)
			arg[n++] = list[i].arg;
	return cptx_launch_new_(NOWHERE, program, t->o->name,
	                        CPTX_OPT_(cptx_launch_opt, .grid = { plan->grid }, .block = { plan->threads },
	                                  .dyn_smem = plan->smem, .overlap = true, .nargs = n, .args = arg),
	                        err);
}
