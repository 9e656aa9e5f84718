/* What the GEMMs that are fed by TMA have in common. */
#include "kernels/gemm_tma.h"
#include "kernels/walk.h"

enum { MOST_SIDE = 1 << 30, CHUNK = 16 /* bytes */ };

#define RULE(ok, ...) TMA_RULE(ok, __VA_ARGS__)

/* ---- sizes ---- */

static uint64_t padded(uint64_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

/* Rows of `row` elements: whole 16 bytes; padded types: whole boxes of 128 elements. */
static bool check_row(const tma_gemm *t, char which, const cptx_tile *tile, uint64_t row, cptx_error *err)
{
	uint32_t bits = tile->elem.bits, unit = tile->elem.padded ? 128 : 8 * CHUNK / bits;

	RULE(row % unit == 0 || !tile->elem.padded,
	     "%s: rows of %c have %llu elements of %u bits, which tensor maps pad in shared memory: they must be a multiple of "
	     "%u (pad to %llu)",
	     t->target, which, (unsigned long long)row, bits, unit, (unsigned long long)padded(row, unit));
	RULE(row % unit == 0 || bits < 8,
	     "%s: rows of %c have %llu elements of %u bytes; they must be a multiple of 16 bytes (pad %sto %llu)", t->target,
	     which, (unsigned long long)row, bits / 8, which == 'D' ? "N " : "", (unsigned long long)padded(row, unit));
	RULE(row % unit == 0, "%s: rows of %c have %llu elements of %u bits; they must be a multiple of 16 bytes (pad to %llu)",
	     t->target, which, (unsigned long long)row, bits, (unsigned long long)padded(row, unit));
	return true;
}

bool tma_gemm_check_problem(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	RULE(p, "%s: no problem was given (NULL)", t->target);
	RULE(p->m && p->n && p->k && p->m <= MOST_SIDE && p->n <= MOST_SIDE && p->k <= MOST_SIDE,
	     "%s: M = %llu, N = %llu, K = %llu; each must be from 1 to 2^30", t->target, (unsigned long long)p->m,
	     (unsigned long long)p->n, (unsigned long long)p->k);
	RULE(given(p->batch) == 1 || t->batched, "%s: %u matrices; the kernel is made for one (.batched)", t->target, p->batch);
	return check_row(t, 'A', &t->a, t->a.elem.mn_major ? p->m : p->k, err) &&
	       check_row(t, 'B', &t->b, t->b.elem.mn_major ? p->n : p->k, err) && check_row(t, 'D', &t->d, p->n, err);
}

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

bool tma_gemm_map(const tma_gemm *t, const cptx_gemm_problem *p, int which, cptx_tensor_map_opt *map, cptx_error *err)
{
	const cptx_tile *tile = which == 0 ? &t->a : which == 1 ? &t->b : which == 2 ? &t->d : &t->rest;
	enum cptx_type type = which == 0 ? t->a_type : which == 1 ? t->b_type : t->out;
	uint64_t rows = which == 1 ? p->n : p->m, cols = which >= 2 ? p->n : p->k;
	bool turned = which >= 2 && tile->elem.mn_major; /* its rows are columns of D */

	if (!cptx_tile_tensor_map(tile, tensor_type(type, tile),
	                          which == 0   ? p->a
	                          : which == 1 ? p->b
	                                       : p->d,
	                          turned ? cols : rows, turned ? rows : cols, 0, map, err))
		return false;
	map->l2 = 256;
	if (t->batched) {
		map->rank = 3;
		map->dim[2] = given(p->batch);
		map->stride[2] = rows * (cols * tile->elem.bits / 8);
		map->box[2] = 1;
	}
	return true;
}

/* Blocks, each as 128 words; along K, then along the rows. */
bool tma_gemm_map_factors(const tma_gemm *t, const cptx_gemm_problem *p, bool of_b, const tma_gemm_factors *f,
                          cptx_tensor_map_opt *map, cptx_error *err)
{
	uint64_t rows = of_b ? p->n : p->m;

	*map = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_U32,
		                          .rank = t->batched ? 4 : 3,
		                          .address = of_b ? p->scale_b : p->scale_a,
		                          .dim = { FACTOR_BYTES / 4, blocks_along(p->k, (uint64_t)f->vec * FACTORS),
		                                   blocks_along(rows, FACTOR_ROWS), given(p->batch) },
		                          .box = { FACTOR_BYTES / 4, f->along_k, of_b ? f->along_rows : 1, 1 } };
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
	       check_address(t, "D", true, p->d, err) && check_address(t, "C", t->beta, p->c, err) &&
	       check_address(t, "the bias", t->bias, p->bias, err) &&
	       check_address(t, "the timeline", t->timeline, p->timeline, err);
}

static bool all_there(const tma_gemm_launch *l, cptx_error *err)
{
	const cptx_gemm_problem *p = l->p;
	bool factors = l->maps > 4;

	return tma_gemm_all_there(l->t, p, err) && check_address(l->t, "the scale factors of A", factors, p->scale_a, err) &&
	       check_address(l->t, "the scale factors of B", factors, p->scale_b, err) &&
	       check_address(l->t, "the workspace", l->workspace, p->workspace, err);
}

cptx_launch *tma_gemm_prepare(const tma_gemm_launch *l, const cptx_program *program, cptx_device *dev, cptx_error *err)
{
	const tma_gemm *t = l->t;
	const cptx_gemm_problem *p = l->p;
	cptx_tensor_map map[TMA_GEMM_MAPS];
	cptx_arg arg[TMA_GEMM_MAPS + 10];
	size_t n = 0;

	if (!all_there(l, err))
		return NULL;
	for (uint32_t i = 0; i < l->maps; i++) {
		if (i == 2 && t->d_pointer) {
			arg[n++] = CPTX_ARG(p->d);
			continue;
		}
		if (!cptx_tensor_map_make(dev, &l->map[i], &map[i], err))
			return NULL;
		arg[n++] = CPTX_ARG_BYTES(&map[i], sizeof map[i]);
	}
	arg[n++] = CPTX_ARG((uint32_t)p->m);
	arg[n++] = CPTX_ARG((uint32_t)p->n);
	arg[n++] = CPTX_ARG((uint32_t)p->k);
	if (t->batched)
		arg[n++] = CPTX_ARG(given(p->batch));
	if (t->alpha)
		arg[n++] = CPTX_ARG(p->alpha);
	if (t->beta) {
		arg[n++] = CPTX_ARG(p->beta);
		arg[n++] = CPTX_ARG(p->c);
	}
	if (t->bias)
		arg[n++] = CPTX_ARG(p->bias);
	if (t->timeline)
		arg[n++] = CPTX_ARG(p->timeline);
	if (l->workspace)
		arg[n++] = CPTX_ARG(p->workspace);
	return cptx_launch_new(
		program, t->name,
		&(cptx_launch_opt){
			.grid = { l->grid }, .block = { l->threads }, .dyn_smem = l->smem, .args = arg, .nargs = n, .overlap = true },
		err);
}

/* ---- the kernel ---- */

void tma_gemm_declare(cptx_kernel *k, const tma_gemm *t, uint32_t maps, tma_gemm_params *p)
{
	static const char *const name[TMA_GEMM_MAPS] = { "map_a", "map_b", "map_d", "map_scale_a", "map_scale_b" };

	for (uint32_t i = 0; i < maps; i++) {
		if (i == 2 && t->d_pointer) {
			p->D = cptx_param(k, CPTX_PTR, "D");
			continue;
		}
		cptx_val at =
			cptx_param_bytes(k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, i == 3 && t->rest.cols ? "map_rest" : name[i]);
		p->map[i] = cptx_cvta(k, cptx_mov(k, at, .type = CPTX_U64), .space = CPTX_PARAM);
	}
	p->M = cptx_param(k, CPTX_U32, "M");
	p->N = cptx_param(k, CPTX_U32, "N");
	p->K = cptx_param(k, CPTX_U32, "K");
	if (t->batched)
		p->batch = cptx_param(k, CPTX_U32, "batch");
	if (t->alpha)
		p->alpha = cptx_param(k, CPTX_F32, "alpha");
	if (t->beta) {
		p->beta = cptx_param(k, CPTX_F32, "beta");
		p->C = cptx_param(k, CPTX_PTR, "C");
	}
	if (t->bias)
		p->bias = cptx_param(k, CPTX_PTR, "bias");
	if (t->timeline)
		p->timeline = cptx_param(k, CPTX_PTR, "timeline");
}

void tma_gemm_load_tile(cptx_kernel *k, const tma_gemm_load *l)
{
	cptx_tile_boxes boxes = { 0 };
	cptx_error err;
	uint16_t dst = l->alone ? CPTX_SHARED_CTA : CPTX_SHARED_CLUSTER;
	uint16_t dim = l->t->batched ? CPTX_DIM_3D : CPTX_DIM_2D, group = l->pair ? CPTX_CTA_GROUP_2 : 0;
	bool mn_major = l->tile->elem.mn_major;

	if (!cptx_tile_get_boxes(l->tile, &boxes, &err)) {
		cptx_fail(k, "%s", err.text);
		return;
	}
	for (uint32_t i = 0; i < boxes.count[0]; i++) {
		cptx_val along = mn_major ? l->row : l->k0, c[3] = { { 0 }, mn_major ? l->k0 : l->row, l->z };
		c[0] = i ? cptx_add(k, along, i * boxes.box[0]) : along;
		cptx_val coord = cptx_pack(k, l->t->batched ? 3 : 2, c), there = cptx_offset(l->to, i * boxes.bytes);
		if (l->mask.kind != CPTX_VAL_NONE)
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = CPTX_SHARED_CLUSTER,
			                               .multicast = CPTX_MULTICAST_CLUSTER, .mask = l->mask, .cta_group = group);
		else
			cptx_cp_async_bulk_tensor_load(k, there, l->map, coord, l->mbar, .dim = dim, .dst = dst, .cta_group = group);
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

cptx_val tma_gemm_value(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val sum, cptx_val c, cptx_val bias,
                        cptx_val row, cptx_val col)
{
	cptx_val v = t->alpha ? cptx_mul(k, sum, p->alpha) : sum;

	if (t->beta)
		v = cptx_fma(k, p->beta, c, v, .rnd = CPTX_RN);
	if (t->bias)
		v = cptx_add(k, v, bias);
	return t->epilogue ? t->epilogue(k, t->user, v, row, col) : v;
}

cptx_val tma_gemm_c_at(cptx_kernel *k, const tma_gemm *t, const tma_gemm_params *p, cptx_val row, cptx_val col, cptx_val z)
{
	walk_matrices of = { .at = p->C, .M = p->M, .N = p->N, .bytes = cptx_type_bits(t->out) / 8 };

	return walk_element(k, &of, t->batched ? cptx_as(z, CPTX_U32) : (cptx_val){ 0 }, row, col);
}

cptx_val tma_gemm_narrow(cptx_kernel *k, enum cptx_type out, cptx_val low, cptx_val high, cptx_val into)
{
	enum cptx_type pair = out == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2;
	cptx_val to = into.kind == CPTX_VAL_NONE ? cptx_reg(k, CPTX_B32) : into;

	cptx_cvt(k, high, .rnd = CPTX_RN, .dtype = pair, .b = low, .into = cptx_as(to, pair));
	return to;
}
