/* SPDX-License-Identifier: MIT */
/* The parameters of the GEMMs that are fed by TMA: tensor maps and numbers, in the kernel and at a launch. */
#include "gemm/tma/tma.h"
#include "kit/params.h"

#include <cptx/cptx.h>
#include <cptx/operand.h>
#include <cptx/params.h>

enum { CHUNK = 16 /* bytes that kernels read and write at once */ };

#define RULE(ok, ...) TMA_RULE(ok, __VA_ARGS__)

/* ---- tensor maps ---- */

/* The tile of the residue rows, an even number: neighbours of a column share a register, so both are to be numbers. */
static cptx_tile last_rows(cptx_tile tile, uint64_t rows)
{
	tile.rows = rows % tile.rows ? (uint32_t)(rows % tile.rows + 1) & ~1u : tile.rows;
	return tile;
}

/* The tensor map of A, B or D, or of the last rows or columns of one of them. */
static bool make_map(const tma_gemm *t, const cptx_gemm_problem *p, enum cptx_gemm_map which, cptx_tensor_map_opt *map,
                     cptx_error *err)
{
	const bool of_d = which == CPTX_GEMM_MAP_D || which == CPTX_GEMM_MAP_END_D;
	const bool of_b = which == CPTX_GEMM_MAP_B || which == CPTX_GEMM_MAP_LAST_B;
	const bool last = which == CPTX_GEMM_MAP_LAST_A || which == CPTX_GEMM_MAP_LAST_B;
	const gemm_stored s = tma_gemm_read(t, p, of_d ? GEMM_D : of_b ? GEMM_B : GEMM_A);
	const uint64_t rows = of_b            ? p->n
	                      : t->o->experts ? tma_gemm_rows(t->o, p)
	                                      : p->m,
				   cols = of_d                                 ? tma_gemm_columns(t->o, p->n)
	                      : t->o->sparse && !of_b              ? s.cols
	                      : of_b && tma_gemm_has_weights(t->o) ? gemm_stored_bytes(&s, s.cols)
	                                                           : p->k / or_one(t->packed);
	cptx_tile tile = !of_d ? tma_gemm_part(t, of_b) : which == CPTX_GEMM_MAP_D ? t->d : t->rest;
	const bool mn_major = of_d && tile.elem.mn_major; /* its rows are columns of D */

	if (last)
		tile = last_rows(tile, rows);
	if (!cptx_tile_tensor_map(&tile,
	                          cptx_operand_tensor_type(of_d   ? t->o->out
	                                                   : of_b ? (tma_gemm_has_weights(t->o) ? CPTX_U8 : t->o->b)
	                                                          : t->o->a,
	                                                   &tile),
	                          s.at, mn_major ? cols : rows, mn_major ? rows : cols,
	                          tma_gemm_is_strided(t) ? gemm_stored_bytes(&s, s.ld) : 0, map, err))
		return false;
	map->l2 = 256;
	if (tma_gemm_is_cut(t, which))
		return of_d ? cptx_tensor_map_cut(map, err) : cptx_tensor_map_cut_load(map, err);
	if (tma_gemm_has_matrices(t, which)) {
		map->rank = 3;
		map->dim[2] = s.count;
		map->stride[2] = gemm_stored_bytes(&s, s.count > 1 ? s.stride : s.rows * s.ld);
		map->box[2] = 1;
		return cptx_tensor_map_check(map, err);
	}
	return true;
}

/* The map of f32 factors of rows of A, or of columns of B: a row for 128 along K; experts and one matrix have all rows of A
 * behind one another. */
static bool make_map_of_row_scales(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, cptx_tensor_map_opt *map,
                                   cptx_error *err)
{
	const uint64_t rows = of_b ? p->n : t->o->batched ? p->m : tma_gemm_rows(t->o, p), along_k = divide_up(p->k, t->bk);
	const bool some = of_b ? tma_gemm_has_matrices(t, CPTX_GEMM_MAP_B) : t->o->batched;

	*map =
		(cptx_tensor_map_opt){ .type = CPTX_TENSOR_F32,
		                       .rank = some ? 3 : 2,
		                       .address = of_b ? p->scale_b : p->scale_a,
		                       .dim = { rows, along_k, tma_gemm_stored(t, p, of_b ? GEMM_B : GEMM_A).count },
		                       .stride = { 0, cptx_gemm_scale_pitch(rows) * 4, cptx_gemm_scale_pitch(rows) * 4 * along_k },
		                       .box = { of_b ? t->col_scales : t->row_scales, 1, 1 } };
	return cptx_tensor_map_check(map, err);
}

/* The map of the factors, or the zero points, of weights: a row for each group. */
static bool make_map_of_weights(const tma_gemm *t, const cptx_gemm_problem *p, bool zeros, cptx_tensor_map_opt *map,
                                cptx_error *err)
{
	*map = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_U16,
		                          .rank = 2,
		                          .address = zeros ? p->zero_b : p->scale_b,
		                          .dim = { p->n, t->o->scale_k ? divide_up(p->k, t->o->scale_k) : 1 },
		                          .stride = { 0, 2 * p->n },
		                          .box = { t->weight_rows, 1 } };
	return cptx_tensor_map_check(map, err);
}

/* The map of blocks of scale factors, each as 128 words; along K, then along the rows. */
static bool make_map_of_scales(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, cptx_tensor_map_opt *map,
                               cptx_error *err)
{
	const tma_gemm_scales *s = &t->scales;
	uint64_t rows = of_b ? p->n : p->m;
	const gemm_stored of = tma_gemm_stored(t, p, of_b ? GEMM_B : GEMM_A);

	*map = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_U32,
		                          .rank = t->o->batched ? 4 : 3,
		                          .address = of_b ? p->scale_b : p->scale_a,
		                          .dim = { CPTX_SCALE_BYTES / 4, divide_up(p->k, (uint64_t)s->vec * CPTX_SCALE_FACTORS),
		                                   divide_up(rows, CPTX_SCALE_ROWS), of.count },
		                          .box = { CPTX_SCALE_BYTES / 4, s->along_k, s->rows[of_b != t->o->swap], 1 } };
	return cptx_tensor_map_check(map, err);
}

bool tma_gemm_maps(const tma_gemm *t, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err)
{
	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS; i++) {
		const bool of_a = i == CPTX_GEMM_MAP_SCALE_A, of_scales = of_a || i == CPTX_GEMM_MAP_SCALE_B;
		if (!(t->maps & MAP(i)))
			continue;
		if (tma_gemm_is_map(t, i) &&
		    !(of_scales && t->weight_rows  ? make_map_of_weights(t, p, of_a, map, err)
		      : of_scales && t->row_scales ? make_map_of_row_scales(t, p, i == CPTX_GEMM_MAP_SCALE_B, map, err)
		      : of_scales                  ? make_map_of_scales(t, p, i == CPTX_GEMM_MAP_SCALE_B, map, err)
		                                   : make_map(t, p, (enum cptx_gemm_map)i, map, err)))
			return false;
		map++;
	}
	return true;
}

/* ---- addresses ---- */

static bool check_aligned(const tma_gemm *t, const char *what, uint64_t at, uint32_t unit, cptx_error *err)
{
	RULE(at, "%s: the address of %s is 0", t->target, what);
	RULE(at % unit == 0, "%s: the address of %s, 0x%llx, is no multiple of %u", t->target, what, (unsigned long long)at,
	     unit);
	return true;
}

static bool check_address(const tma_gemm *t, const char *what, bool needed, uint64_t at, cptx_error *err)
{
	return !needed || check_aligned(t, what, at, CHUNK, err);
}

/* A matrix of the problem, of which .unaligned says whether any element may be its first. */
static bool check_matrix_address(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which, cptx_error *err)
{
	static const char *const names[] = { "A", "B", "C", "D" };
	const gemm_stored s = tma_gemm_stored(t, p, which);
	const bool any = t->o->unaligned & (which == GEMM_C ? CPTX_GEMM_D : 1u << (which == GEMM_D ? 2 : which));

	return check_aligned(t, names[which], s.at, any ? s.bits / 8 : CHUNK, err);
}

/* Where rows are gathered from and scattered to. */
static bool check_rows(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	const cptx_gemm_opt *o = t->o;

	return (!o->gather || check_aligned(t, "the rows of A (.gather)", p->gather, 4, err)) &&
	       (!o->scatter || (check_aligned(t, "the rows of D (.scatter)", p->scatter, 4, err) &&
	                        check_aligned(t, "the weights of the rows", p->weights, 4, err)));
}

static bool check_counts(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	RULE(!t->o->experts || p->counts, "%s: the address of the experts' counts is 0", t->target);
	RULE(!t->o->experts || p->counts % 4 == 0, "%s: the address of the experts' counts, 0x%llx, is no multiple of 4",
	     t->target, (unsigned long long)p->counts);
	return true;
}

bool tma_gemm_all_there(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	const cptx_gemm_opt *o = t->o;
	const bool copies = tma_gemm_is_copied(t, GEMM_A) || tma_gemm_is_copied(t, GEMM_B);
	const bool of_weights = tma_gemm_has_weights(o) && o->scale != CPTX_TYPE_NONE;
	const uint32_t unit = t->weight_rows ? CHUNK : 2; /* of factors of weights */

	return check_matrix_address(t, p, GEMM_A, err) && check_matrix_address(t, p, GEMM_B, err) &&
	       check_matrix_address(t, p, GEMM_D, err) && (!t->o->beta || check_matrix_address(t, p, GEMM_C, err)) &&
	       (!copies || check_aligned(t, "the workspace", p->workspace, 128, err)) &&
	       (!of_weights || check_aligned(t, "the scale factors", p->scale_b, unit, err)) &&
	       (!o->zeros || check_aligned(t, "the zero points", p->zero_b, unit, err)) &&
	       check_address(t, "the bias", t->o->bias, p->bias, err) &&
	       check_address(t, "the timeline", t->o->timeline, p->timeline, err) &&
	       check_address(t, "the workspace", t->o->stream_k, p->workspace, err) &&
	       check_address(t, "the scale factors of A", t->scales.vec || t->row_scales, p->scale_a, err) &&
	       check_address(t, "the scale factors of B", t->scales.vec || t->row_scales, p->scale_b, err) &&
	       check_counts(t, p, err) && check_rows(t, p, err) &&
	       (!o->scale_out || check_aligned(t, "the scale factors of D", p->scale_d, 4, err)) &&
	       (!o->sparse || check_aligned(t, "the metadata of A", p->meta, 4, err));
}

/* ---- parameters ---- */

/* What a launch fills the parameters from, which have the names of its members. */
typedef struct gemm_args {
	cptx_tensor_map_opt map_a, map_b, map_d, map_end_d, map_last_a, map_last_b, map_scale_a, map_scale_b;
	uint64_t A, B, D, scale_b, groups;
	uint32_t tiles, M, N, K, batch;
	float alpha, beta;
	uint64_t C, bias, timeline, workspace, counts, gather, scatter, routing, scale_d, meta;
	/* strided; A and B: bytes */
	uint64_t pitch_a, step_a, from_a, copy_a, pitch_b, step_b, from_b, copy_b, step_c, step_d, barrier, scales, zeros;
	uint32_t last_a, last_b, ldc, ldd;
} gemm_args;

static bool has_pointer(const tma_gemm *t, enum cptx_gemm_map which)
{
	return !t->o->grouped && t->maps & MAP(which) && !tma_gemm_is_map(t, which);
}

static bool has_map(const tma_gemm *t, enum cptx_gemm_map which)
{
	return !t->o->grouped && t->maps & MAP(which) && tma_gemm_is_map(t, which);
}

/* With a list, maps, sizes and addresses stand in its records. */
static kit_params list_parameters(const tma_gemm *t, tma_gemm_work *w)
{
	const cptx_gemm_opt *o = t->o;
	const bool one = !o->grouped, strided = tma_gemm_is_strided(t), some = tma_gemm_has_steps(t);
	const bool copied[] = { tma_gemm_is_copied(t, GEMM_A), tma_gemm_is_copied(t, GEMM_B) };
	const bool read[] = { strided && (copied[0] || !tma_gemm_is_map(t, CPTX_GEMM_MAP_A)),
		                  strided && (copied[1] || !tma_gemm_is_map(t, CPTX_GEMM_MAP_B)) };
	const bool stores = strided && !tma_gemm_is_map(t, CPTX_GEMM_MAP_D);
	tma_gemm_params *v = &w->p;
#define THE_MAP(which, member)                                                                                              \
	{                                                                                                                       \
		CPTX_PARAM_MAP(gemm_args, member), has_map(t, CPTX_GEMM_MAP_##which), &v->map[CPTX_GEMM_MAP_##which]                \
	}
#define THE_POINTER(which)                                                                                                  \
	{                                                                                                                       \
		CPTX_PARAM_ROW(gemm_args, CPTX_PTR, which), has_pointer(t, CPTX_GEMM_MAP_##which), &v->map[CPTX_GEMM_MAP_##which]   \
	}
	const kit_param all[] = {
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
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, scale_b), has_pointer(t, CPTX_GEMM_MAP_SCALE_B),
		  &v->map[CPTX_GEMM_MAP_SCALE_B] },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, groups), !one, &w->list.records },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, tiles), !one, &w->list.tiles },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, M), one, &v->M },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, N), one, &v->N },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, K), one, &v->K },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, batch), o->batched || o->experts, &v->batch },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_F32, alpha), o->alpha, &v->alpha },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_F32, beta), o->beta, &v->beta },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, C), one && o->beta, &v->C },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, bias), one && o->bias, &v->bias },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, timeline), o->timeline != 0, &v->timeline },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, workspace), o->stream_k, &v->workspace },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, counts), o->experts != CPTX_GEMM_EXPERTS_NONE, &v->counts },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, gather), o->gather, &v->gather },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, scatter), o->scatter, &v->scatter },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, routing), o->scatter, &v->routing },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, scale_d), o->scale_out != CPTX_TYPE_NONE, &v->scale_d },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, meta), o->sparse, &v->meta },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, pitch_a), read[0], &v->of[0].pitch },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, step_a), read[0] && some, &v->of[0].step },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, last_a), some, &v->of[0].last },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, from_a), copied[0], &v->of[0].from },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, copy_a), copied[0], &v->of[0].copy },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, pitch_b), read[1], &v->of[1].pitch },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, step_b), read[1] && some, &v->of[1].step },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, last_b), some, &v->of[1].last },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, from_b), copied[1], &v->of[1].from },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, copy_b), copied[1], &v->of[1].copy },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, ldc), strided && o->beta, &v->ldc },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, step_c), some && o->beta, &v->step_c },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U32, ldd), stores, &v->ldd },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_U64, step_d), stores && some, &v->step_d },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, barrier), copied[0] || copied[1], &v->barrier },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, scales), t->any_rows && o->scale != CPTX_TYPE_NONE, &v->weights },
		{ CPTX_PARAM_ROW(gemm_args, CPTX_PTR, zeros), t->any_rows && o->zeros, &v->zeros },
	};
#undef THE_MAP
#undef THE_POINTER
	return kit_params_of(all, ARRAY_LEN(all));
}

void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	const kit_params list = list_parameters(t, w);
	cptx_params *p = &w->table;

	*p = (cptx_params){ .n = 0 };
	kit_params_declare(k, p, &list);
	if (t->o->nparams)
		cptx_params_declare_(k, NOWHERE, p, t->o->params, t->o->nparams);
}

void tma_gemm_prefetch_maps(cptx_kernel *k, const tma_gemm *t, const tma_gemm_work *w, cptx_val tid)
{
	const uint32_t all = t->maps & ~t->pointers & ~(MAP(CPTX_GEMM_MAP_LAST_A) | MAP(CPTX_GEMM_MAP_LAST_B));
	uint32_t warp = 0;

	for (uint32_t i = 0; i < CPTX_GEMM_MAP_KINDS && !t->o->grouped; i++)
		if (all & MAP(i))
			cptx_prefetch(k, w->p.map[i], .tensormap = CPTX_TENSORMAP,
			              .when = cptx_setp(k, tid, 32 * warp++, .cmp = CPTX_EQ));
}

/* ---- launches ---- */

static void fill_distances(const tma_gemm *t, const cptx_gemm_problem *p, gemm_args *args)
{
	gemm_stored s[4], read[2];

	for (enum gemm_which w = GEMM_A; w <= GEMM_D; w = (enum gemm_which)(w + 1))
		s[w] = tma_gemm_stored(t, p, w);
	read[0] = tma_gemm_read(t, p, GEMM_A), read[1] = tma_gemm_read(t, p, GEMM_B);
	args->A = read[0].at, args->B = read[1].at;
	args->from_a = s[0].at, args->from_b = s[1].at, args->copy_a = read[0].at, args->copy_b = read[1].at;
	args->pitch_a = gemm_stored_bytes(&s[0], s[0].ld), args->pitch_b = gemm_stored_bytes(&s[1], s[1].ld);
	args->step_a = gemm_stored_bytes(&s[0], s[0].stride), args->step_b = gemm_stored_bytes(&s[1], s[1].stride);
	args->last_a = s[0].count - 1, args->last_b = s[1].count - 1;
	args->ldc = (uint32_t)s[2].ld, args->ldd = (uint32_t)s[3].ld;
	args->step_c = s[2].stride, args->step_d = s[3].stride;
	args->scales = p->scale_b, args->zeros = p->zero_b;
	args->barrier = p->workspace, args->workspace = p->workspace + tma_gemm_sums_begin(t, p);
}

cptx_launch *tma_gemm_launch(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                             const cptx_gemm_problem *p, uint64_t table, uint32_t tiles, cptx_error *err)
{
	gemm_args args = { .D = p->d,
		               .scale_b = p->scale_b,
		               .groups = table,
		               .tiles = tiles,
		               .M = (uint32_t)p->m,
		               .N = (uint32_t)p->n,
		               .K = (uint32_t)p->k,
		               .batch = or_one(p->batch),
		               .alpha = p->alpha,
		               .beta = p->beta,
		               .C = p->c,
		               .bias = p->bias,
		               .timeline = p->timeline,
		               .counts = p->counts,
		               .gather = p->gather,
		               .scatter = p->scatter,
		               .routing = p->weights,
		               .scale_d = p->scale_d,
		               .meta = p->meta };
	cptx_tensor_map_opt map[CPTX_GEMM_MAPS];
	tma_gemm_work unused;
	const kit_params list = list_parameters(t, &unused);
	const bool copies = tma_gemm_is_copied(t, GEMM_A) || tma_gemm_is_copied(t, GEMM_B); /* then CTAs wait for one another */
	const cptx_params_part parts[] = { { list.row, list.n, &args }, { t->o->params, t->o->nparams, p->args } };

	if (t->o->nparams && !p->args) {
		error_set(err, CPTX_E_ARG, NOWHERE,
		          "gemm: the kernel has .params of its own, and the problem no .args, the struct that fills them");
		return NULL;
	}
	if (!t->o->grouped && (!tma_gemm_all_there(t, p, err) || !tma_gemm_maps(t, p, map, err)))
		return NULL;
	if (!t->o->grouped)
		fill_distances(t, p, &args);
	for (size_t i = 0; i < list.n; i++) /* maps, and pointers in place of some, are the first of both */
		if (list.row[i].kind == CPTX_PARAM_TENSOR)
			memcpy((char *)&args + list.row[i].offset, &map[i], sizeof map[i]);
	return cptx_params_launch_(NOWHERE, program, dev, t->o->name, parts, ARRAY_LEN(parts),
	                           CPTX_OPT(cptx_launch_opt, .grid = { plan->grid }, .block = { plan->threads },
	                                    .dyn_smem = plan->smem, .overlap = tma_gemm_is_map(t, CPTX_GEMM_MAP_B) && !copies,
	                                    .cooperative = copies),
	                           err);
}
