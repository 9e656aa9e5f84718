/* What the GEMMs that are fed by TMA have in common. */
#include "kernels/gemm_tma.h"
#include "kernels/walk.h"

enum { CHUNK = 16 /* bytes */ };

#define RULE(ok, ...) TMA_RULE(ok, __VA_ARGS__)

/* ---- tensor maps and launches ---- */

static enum cptx_tensor_type tensor_type(enum cptx_type t, const cptx_tile *tile)
{
	switch (t) {
	case CPTX_BF16: return CPTX_TENSOR_BF16;
	case CPTX_F16: return CPTX_TENSOR_F16;
	case CPTX_F32: return CPTX_TENSOR_F32;
	case CPTX_S32: return CPTX_TENSOR_S32;
	case CPTX_TF32: return CPTX_TENSOR_TF32;
	default: break;
	}
	return tile->elem.bits == 6   ? CPTX_TENSOR_16U6_ALIGN16B
	       : tile->elem.bits == 8 ? CPTX_TENSOR_U8
	       : tile->elem.padded    ? CPTX_TENSOR_16U4_ALIGN16B
	                              : CPTX_TENSOR_16U4_ALIGN8B;
}

/* An even number of them: neighbours of a column share a register, so both are to be numbers. */
static cptx_tile last_rows(cptx_tile tile, uint64_t rows)
{
	tile.rows = rows % tile.rows ? (uint32_t)(rows % tile.rows + 1) & ~1u : tile.rows;
	return tile;
}

/* The map of A, B, D or the rest of D (which: 0, 1, 2, 3). */
static bool make_map(const tma_gemm *t, const cptx_gemm_problem *p, uint32_t which, cptx_tensor_map_opt *map,
                     cptx_error *err)
{
	const bool edge = t->edges && which >= t->edges;

	which = edge ? which - t->edges : which;
	const cptx_tile *tile = which == 0 ? &t->a : which == 1 ? &t->b : which == 2 ? &t->d : &t->rest;
	enum cptx_type type = which == 0 ? t->o->a : which == 1 ? t->o->b : t->o->out;
	uint64_t rows = which == 1 ? p->n : p->m, cols = which >= 2 ? p->n : p->k / given(t->packed);
	bool turned = which >= 2 && tile->elem.mn_major; /* its rows are columns of D */
	cptx_tile last = last_rows(*tile, rows);

	if (!cptx_tile_tensor_map(edge ? &last : tile, tensor_type(type, tile),
	                          which == 0   ? p->a
	                          : which == 1 ? p->b
	                                       : p->d,
	                          turned ? cols : rows, turned ? rows : cols, 0, map, err))
		return false;
	map->l2 = 256;
	if (t->o->batched) {
		map->rank = 3;
		map->dim[2] = given(p->batch);
		map->stride[2] = rows * (cols * tile->elem.bits / 8);
		map->box[2] = 1;
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
		                          .dim = { FACTOR_BYTES / 4, up(p->k, (uint64_t)f->vec * FACTORS), up(rows, FACTOR_ROWS),
		                                   given(p->batch) },
		                          .box = { FACTOR_BYTES / 4, f->along_k, of_b ? f->of_b : f->of_a, 1 } };
	return cptx_tensor_map_check(map, err);
}

/* Kernels read and write 16 bytes at once. */
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
	       check_address(t, "the scale factors of A", t->factors.vec, p->scale_a, err) &&
	       check_address(t, "the scale factors of B", t->factors.vec, p->scale_b, err);
}

bool tma_gemm_maps(const tma_gemm *t, const cptx_gemm_problem *p, cptx_tensor_map_opt *map, cptx_error *err)
{
	for (uint32_t i = 0; i < t->maps; i++) {
		bool of_factors = i >= 3 && t->factors.vec;
		if (i == 2 && t->d_pointer)
			continue;
		if (!(of_factors ? make_map_of_factors(t, p, i == 4, &map[i], err) : make_map(t, p, i, &map[i], err)))
			return false;
	}
	return true;
}

cptx_launch *tma_gemm_launch(const tma_gemm *t, const cptx_gemm_plan *plan, const cptx_program *program, cptx_device *dev,
                             const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_tensor_map_opt opt[CPTX_GEMM_MAPS];
	cptx_tensor_map map[CPTX_GEMM_MAPS];
	cptx_arg arg[CPTX_GEMM_MAPS + 10];
	size_t n = 0;

	if (!tma_gemm_maps(t, p, opt, err) || !tma_gemm_all_there(t, p, err) ||
	    !check_address(t, "the workspace", plan->workspace, p->workspace, err))
		return NULL;
	for (uint32_t i = 0; i < t->maps; i++) {
		if (i == 2 && t->d_pointer) {
			arg[n++] = CPTX_ARG(p->d);
			continue;
		}
		if (!cptx_tensor_map_make(dev, &opt[i], &map[i], err))
			return NULL;
		arg[n++] = CPTX_ARG_BYTES(&map[i], sizeof map[i]);
	}
	arg[n++] = CPTX_ARG((uint32_t)p->m);
	arg[n++] = CPTX_ARG((uint32_t)p->n);
	arg[n++] = CPTX_ARG((uint32_t)p->k);
	if (t->o->batched)
		arg[n++] = CPTX_ARG(given(p->batch));
	if (t->o->alpha)
		arg[n++] = CPTX_ARG(p->alpha);
	if (t->o->beta) {
		arg[n++] = CPTX_ARG(p->beta);
		arg[n++] = CPTX_ARG(p->c);
	}
	if (t->o->bias)
		arg[n++] = CPTX_ARG(p->bias);
	if (t->o->timeline)
		arg[n++] = CPTX_ARG(p->timeline);
	if (plan->workspace)
		arg[n++] = CPTX_ARG(p->workspace);
	return cptx_launch_new(program, t->o->name,
	                       CPTX_OPT_(cptx_launch_opt, .grid = { plan->grid }, .block = { plan->threads },
	                                 .dyn_smem = plan->smem, .overlap = true, .nargs = n, .args = arg),
	                       err);
}

/* ---- the kernel ---- */

void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, tma_gemm_work *w)
{
	static const char *const names[2][CPTX_GEMM_MAPS] = { { "map_a", "map_b", "map_d", "map_rest", "map_last_a",
		                                                    "map_last_b" },
		                                                  { "map_a", "map_b", "map_d", "map_scale_a", "map_scale_b" } };
	const bool scaled = t->factors.vec;
	tma_gemm_params *p = &w->p;

	if (t->o->grouped) {
		tma_gemm_group_declare(k, t, w);
		return;
	}
	for (uint32_t i = 0; i < t->maps; i++) {
		if (i == 2 && t->d_pointer) {
			p->D = cptx_param(k, CPTX_PTR, "D");
			continue;
		}
		cptx_val at = cptx_param_bytes(k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN,
		                               names[scaled][t->edges == 3 && i >= 3 ? i + 1 : i]);
		p->map[i] = cptx_cvta(k, cptx_mov(k, at, .type = CPTX_U64), .space = CPTX_PARAM);
	}
	p->M = cptx_param(k, CPTX_U32, "M");
	p->N = cptx_param(k, CPTX_U32, "N");
	p->K = cptx_param(k, CPTX_U32, "K");
	if (t->o->batched)
		p->batch = cptx_param(k, CPTX_U32, "batch");
	if (t->o->alpha)
		p->alpha = cptx_param(k, CPTX_F32, "alpha");
	if (t->o->beta) {
		p->beta = cptx_param(k, CPTX_F32, "beta");
		p->C = cptx_param(k, CPTX_PTR, "C");
	}
	if (t->o->bias)
		p->bias = cptx_param(k, CPTX_PTR, "bias");
	if (t->o->timeline)
		p->timeline = cptx_param(k, CPTX_PTR, "timeline");
	if (t->o->stream_k)
		p->workspace = cptx_param(k, CPTX_PTR, "workspace");
}

void tma_gemm_load_tile(cptx_kernel *k, const tma_gemm_load *l)
{
	cptx_tile_boxes boxes = { 0 };
	cptx_error err;
	uint16_t dst = l->alone ? CPTX_SHARED_CTA : CPTX_SHARED_CLUSTER;
	uint16_t dim = l->t->o->batched ? CPTX_DIM_3D : CPTX_DIM_2D, group = l->pair ? CPTX_CTA_GROUP_2 : 0;
	bool mn_major = l->tile->elem.mn_major;

	if (!cptx_tile_get_boxes(l->tile, &boxes, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	for (uint32_t i = 0; i < boxes.count[0]; i++) {
		cptx_val along = mn_major ? l->row : l->k0, c[3] = { { 0 }, mn_major ? l->k0 : l->row, l->z };
		c[0] = i ? cptx_add(k, along, i * boxes.box[0]) : along;
		cptx_val coord = cptx_pack(k, l->t->o->batched ? 3 : 2, c), there = cptx_offset(l->to, i * boxes.bytes);
		if (l->mask.kind != CPTX_VAL_NONE)
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = CPTX_SHARED_CLUSTER,
			                               .multicast = CPTX_MULTICAST_CLUSTER, .mask = l->mask, .cta_group = group,
			                               .when = l->when);
		else
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = dst, .cta_group = group,
			                               .when = l->when);
	}
}

void tma_gemm_load_row(cptx_kernel *k, cptx_val at, enum cptx_type type, uint32_t n, cptx_val inside, cptx_val *to)
{
	static const uint16_t vec[] = { 0, 0, CPTX_V2, 0, CPTX_V4 };
	uint32_t words = n * cptx_type_bits(type) / 32, each = words < 4 ? words : 4;

	for (uint32_t w = 0; w < words; w += each) {
		cptx_val v = cptx_regs(k, CPTX_B32, each);
		for (uint32_t i = 0; i < each; i++)
			cptx_mov(k, 0, .into = cptx_elem(v, i));
		cptx_ld(k, cptx_offset(at, 4 * (int64_t)w), .space = CPTX_GLOBAL, .vec = vec[each], .type = CPTX_B32,
		        .into = each == 1 ? cptx_elem(v, 0) : v, .when = inside);
		for (uint32_t i = 0; i < each; i++) {
			if (type == CPTX_F32) {
				*to++ = cptx_as(cptx_elem(v, i), CPTX_F32);
				continue;
			}
			cptx_val halves = cptx_regs(k, CPTX_B16, 2);
			cptx_mov(k, cptx_elem(v, i), .into = halves);
			for (uint32_t h = 0; h < 2; h++)
				*to++ = cptx_cvt(k, cptx_as(cptx_elem(halves, h), type), .dtype = CPTX_F32);
		}
	}
}

cptx_val tma_gemm_load_one(cptx_kernel *k, cptx_val at, enum cptx_type type, cptx_val inside)
{
	cptx_val v = type == CPTX_F32 ? cptx_var(k, CPTX_F32, 0.0f) : cptx_var(k, CPTX_B16, 0);

	cptx_ld(k, at, .space = CPTX_GLOBAL, .type = type == CPTX_F32 ? CPTX_F32 : CPTX_B16, .into = v, .when = inside);
	return type == CPTX_F32 ? v : cptx_cvt(k, cptx_as(v, type), .dtype = CPTX_F32);
}

cptx_val tma_gemm_value(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val sum, cptx_val c, cptx_val bias,
                        cptx_val row, cptx_val col)
{
	cptx_val v = t->o->alpha ? cptx_mul(k, sum, p->alpha) : sum;

	if (t->o->beta)
		v = cptx_fma(k, p->beta, c, v, .rnd = CPTX_RN);
	if (t->o->bias)
		v = cptx_add(k, v, bias);
	return t->o->epilogue ? t->o->epilogue(k, t->o->user, v, row, col) : v;
}

cptx_val tma_gemm_c_at(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val row, cptx_val col, cptx_val z)
{
	walk_matrices of = { .at = p->C, .M = p->M, .N = p->N, .bytes = cptx_type_bits(t->o->out) / 8 };

	return walk_element(k, &of, t->o->batched ? cptx_as(z, CPTX_U32) : (cptx_val){ 0 }, row, col);
}

cptx_val tma_gemm_narrow(cptx_kernel *k, enum cptx_type out, cptx_val low, cptx_val high, cptx_val into)
{
	enum cptx_type pair = out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	cptx_val to = into.kind == CPTX_VAL_NONE ? cptx_reg(k, CPTX_B32) : into;

	cptx_cvt(k, high, .rnd = CPTX_RN, .dtype = pair, .b = low, .into = cptx_as(to, pair));
	return to;
}
