/* SPDX-License-Identifier: MIT */
#include "gemm_draw.h"

const gemm_kind gemm_sm100_kinds[GEMM_SM100_KINDS] = {
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_F16, CPTX_BF16, CPTX_BF16, CPTX_TYPE_NONE, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_F16, CPTX_F16, CPTX_F16, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_TF32, CPTX_TF32, CPTX_TF32, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_F8F6F4, CPTX_E4M3, CPTX_E5M2, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_F8F6F4, CPTX_E2M1, CPTX_E3M2, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_F8F6F4, CPTX_E2M3, CPTX_E4M3, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_I8, CPTX_S8, CPTX_U8, 0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_MXF8F6F4, CPTX_E4M3, CPTX_E4M3, CPTX_UE8M0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_MXF8F6F4, CPTX_E5M2, CPTX_E2M1, CPTX_UE8M0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_MXF4, CPTX_E2M1, CPTX_E2M1, CPTX_UE8M0, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_MXF4NVF4, CPTX_E2M1, CPTX_E2M1, CPTX_UE4M3, false },
	{ CPTX_GEMM_TCGEN05, CPTX_TCGEN05_MXF4NVF4, CPTX_E2M1, CPTX_E2M1, CPTX_UE8M0, false },
};
const gemm_kind gemm_sm120_kinds[GEMM_SM120_KINDS] = {
	{ CPTX_GEMM_SYNC, 0, CPTX_E4M3, CPTX_E5M2, CPTX_UE8M0, false },
	{ CPTX_GEMM_SYNC, 0, CPTX_E2M3, CPTX_E2M1, CPTX_UE8M0, true },
	{ CPTX_GEMM_SYNC, 0, CPTX_E2M1, CPTX_E3M2, CPTX_UE8M0, true },
	{ CPTX_GEMM_SYNC, 0, CPTX_E2M1, CPTX_E2M1, CPTX_UE4M3, false },
	{ CPTX_GEMM_SYNC, 0, CPTX_E2M1, CPTX_E2M1, CPTX_UE8M0, true },
};

cptx_gemm_opt gemm_of_kind(const gemm_kind *kind, cptx_gemm_opt o)
{
	o.mma = kind->mma, o.kind = kind->kind, o.a = kind->a, o.b = kind->b, o.scale = kind->scale;
	return o;
}

static uint64_t up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

/* Rows of whole 16 bytes, where tensor maps pad of 128 elements. */
static uint32_t row_unit(const cptx_gemm_opt *o, enum cptx_type t)
{
	bool packed = o->kind == CPTX_TCGEN05_MXF4 || o->kind == CPTX_TCGEN05_MXF4NVF4;

	return number_packed_bits(t) < 8 && !packed ? 128 : 128 / number_packed_bits(t);
}

void gemm_fit_sm100(gemm_trial *t)
{
	const cptx_gemm_opt *o = &t->opt;

	t->n = up(t->n, 128 / cptx_type_bits(o->out));
	if (o->a_m_major)
		t->m = up(t->m, row_unit(o, o->a));
	else
		t->k = up(t->k, row_unit(o, o->a));
	if (o->b_n_major)
		t->n = up(t->n, row_unit(o, o->b));
	else
		t->k = up(t->k, row_unit(o, o->b));
}

static bool is_byte(enum cptx_type t) { return t == CPTX_E4M3 || t == CPTX_E5M2; }

/* Rows are of whole 16 bytes, of types that are padded in shared memory of 128 elements, and so are tiles along them. */
static void fit_operand(const cptx_gemm_opt *o, enum cptx_type type, bool turned, uint64_t *rows, uint64_t *k,
                        uint32_t *tile, uint32_t *warps)
{
	bool packed = o->a == CPTX_E2M1 && o->b == CPTX_E2M1, padded = !packed && !is_byte(type);
	uint64_t unit = padded ? 128 : packed ? 32 : 16, *row = turned ? rows : k;

	*row = (*row + unit - 1) / unit * unit;
	if (turned && padded && *tile == 64)
		*tile = 128, *warps = 2;
}

void gemm_fit_sm120(gemm_trial *t)
{
	cptx_gemm_opt *o = &t->opt;

	fit_operand(o, o->a, o->a_m_major, &t->m, &t->k, &o->bm, &o->warps_m);
	fit_operand(o, o->b, o->b_n_major, &t->n, &t->k, &o->bn, &o->warps_n);
}

/* Rows of 16 bytes; D's too by TMA, and, where matrices of a list lie behind one another, theirs. */
static void fit_sync(gemm_trial *t)
{
	const cptx_gemm_opt *o = &t->opt;
	const uint32_t of_a = 128 / number_packed_bits(o->a), of_b = 128 / number_packed_bits(o->b);

	*(o->a_m_major ? &t->m : &t->k) = up(o->a_m_major ? t->m : t->k, of_a);
	*(o->b_n_major ? &t->n : &t->k) = up(o->b_n_major ? t->n : t->k, of_b);
	if (o->tma || o->grouped)
		t->n = up(t->n, is_byte(o->out) ? 16 : 8);
}

/* Types other than those of 16 bits, of A and B that mma.sync and wgmma multiply, and an output type that these have. */
static void draw_types(cptx_gemm_opt *o, uint64_t *s)
{
	static const enum cptx_type bytes[] = { CPTX_E4M3, CPTX_E5M2 }, integers[] = { CPTX_S8, CPTX_U8 };
	const uint32_t which = below(s, 3);

	o->a = which == 0 ? CPTX_TF32 : which == 1 ? bytes[below(s, 2)] : integers[below(s, 2)];
	o->b = which == 0 ? CPTX_TF32 : which == 1 ? bytes[below(s, 2)] : integers[below(s, 2)];
	o->a_m_major = o->b_n_major = below(s, 20) == 0;
	if (which == 2 && below(s, 2))
		o->out = CPTX_S32, o->alpha = o->beta = o->bias = below(s, 8) == 0, o->epilogue = NULL;
}

/* Now and then results of 8 bits, which have no beta. */
static void draw_bytes_out(gemm_trial *t, uint64_t *s)
{
	cptx_gemm_opt *o = &t->opt;

	if (below(s, 6) == 0)
		o->out = (enum cptx_type)ONE_OF(s, CPTX_E4M3, CPTX_E5M2), o->beta = o->beta && below(s, 4) == 0;
	t->in_place = t->in_place && o->beta;
}

static gemm_trial draw_sync(uint64_t seed, bool tma)
{
	uint64_t s = gemm_trial_random(seed);
	gemm_trial t = { .seed = seed };
	cptx_gemm_opt *o = &t.opt;

	o->warps_m = ONE_OF(&s, 1, 2, 4, 2, 1, 4, 8, 3), o->warps_n = ONE_OF(&s, 1, 2, 4, 2, 1, 2, 4, 3);
	o->bm = o->warps_m * 16 * ONE_OF(&s, 1, 2, 4, 1, 2, 3, 4) + (below(&s, 16) == 0 ? 8 : 0);
	o->bn = o->warps_n * 16 * ONE_OF(&s, 1, 2, 4, 1, 2, 3, 4, 8) + (below(&s, 16) == 0 ? 8 : 0);
	o->bk = ONE_OF(&s, 32, 64, 128, 32, 64, 32, 64, 32, 64, 48);
	o->stages = 2 + below(&s, 4);
	o->a = o->b = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_F16, CPTX_BF16, CPTX_F16, CPTX_BF16, CPTX_F16, CPTX_F32);
	o->out = (enum cptx_type)ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16, CPTX_F32, CPTX_BF16, CPTX_F16, CPTX_S8);
	o->group = ONE_OF(&s, 0, 0, 1, 8, 16, 2000), o->tma = tma;
	o->a_m_major = below(&s, 3) == 0, o->b_n_major = below(&s, 3) == 0;
	o->stream_k = below(&s, 3) == 0, o->grouped = below(&s, 6) == 0, o->batched = below(&s, 4) == 0;
	o->alpha = below(&s, 3) == 0, o->beta = below(&s, 3) == 0, o->bias = below(&s, 3) == 0;
	o->epilogue = below(&s, 4) == 0 ? gemm_trial_epilogue : NULL;
	t.batch = o->grouped ? 2 + below(&s, 2) : o->batched ? 1 + below(&s, 3) : 1;
	t.ctas = ONE_OF(&s, 0, 0, 1, 3, 4, 8), t.in_place = o->beta && below(&s, 2);
	t.m = 1 + below(&s, 250), t.n = 1 + below(&s, 250), t.k = 1 + below(&s, 300);
	if (below(&s, 2)) {
		draw_types(o, &s);
		o->bk = o->bk * 2 / (number_packed_bits(o->a) / 8);
	}
	draw_bytes_out(&t, &s);
	fit_sync(&t);
	return t;
}

/* ---- what is drawn behind all else, by numbers of its own ---- */

/* A with two of four neighbours; of mma.sync 128 bytes along K. */
static void draw_sparse(gemm_trial *t, uint64_t *s)
{
	cptx_gemm_opt *o = &t->opt;

	if (below(s, 6) || o->scale || o->experts)
		return;
	o->size = CPTX_OPT_SIZE(cptx_gemm_opt), o->sparse = true;
	o->a_m_major = below(s, 30) == 0, o->swap = o->mma == CPTX_GEMM_WGMMA && below(s, 30) == 0,
	o->grouped = o->grouped && below(s, 8) == 0;
	t->batch = o->grouped || o->batched ? t->batch : 1;
	if (o->mma == CPTX_GEMM_SYNC && below(s, 8))
		o->bk = 1024 / number_packed_bits(o->a);
}

/* Matrices whose rows are anywhere, and others whose rows begin at multiples of 32 elements; of a matrix that is not sparse.
 */
static void draw_places(gemm_trial *t, uint64_t *s)
{
	cptx_gemm_opt *o = &t->opt;
	const bool across[] = { o->a_m_major, o->b_n_major, true, true };

	if (below(s, 5) || o->grouped || o->scale == CPTX_UE8M0 || o->scale == CPTX_UE4M3)
		return;
	o->size = CPTX_OPT_SIZE(cptx_gemm_opt), o->strided = true, o->unaligned = below(s, 3) ? below(s, 8) : 0;
	if (o->sparse || o->gather)
		o->unaligned &= ~(unsigned)CPTX_GEMM_A;
	t->m += o->unaligned == 7 && !o->sparse ? below(s, 3) : 0, t->k += o->unaligned == 7 && !o->sparse ? below(s, 3) : 0;
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t row = i == 0 ? (across[0] ? t->m : t->k) : i == 1 ? (across[1] ? t->n : t->k) : t->n;
		const bool any = o->unaligned >> (i < 2 ? i : 2) & 1,
				   dense = (i == 0 && (o->sparse || o->gather)) || (i >= 2 && o->scatter);
		if (dense)
			continue;
		t->place[i] = any ? (gemm_trial_place){ below(s, 4), below(s, 4), 0, false }
		                  : (gemm_trial_place){ 0, (uint32_t)(up(row, 32) - row), 0, false };
	}
	t->in_place = false; /* which is copied as dense */
	if (o->unaligned & 3)
		o->cluster_m = o->cluster_m > 2 ? 2 : o->cluster_m, o->cluster_n = o->cluster_n > 2 ? 2 : o->cluster_n;
}

/* Columns that are gated, results with factors, and factors of B by rows: of wgmma. */
static void draw_results(gemm_trial *t, uint64_t *s)
{
	cptx_gemm_opt *o = &t->opt;

	if (o->scale == CPTX_F32)
		o->size = CPTX_OPT_SIZE(cptx_gemm_opt), o->scale_rows = below(s, 2);
	if (below(s, 4) || o->scatter)
		return;
	o->size = CPTX_OPT_SIZE(cptx_gemm_opt), o->swiglu = below(s, 2), o->scale_out = below(s, 2) ? CPTX_F32 : CPTX_TYPE_NONE;
	o->swap = below(s, 20) == 0, o->beta = below(s, 20) == 0, t->in_place = false;
	o->out = o->scale_out ? (enum cptx_type)ONE_OF(s, CPTX_E4M3, CPTX_E5M2) : o->out == CPTX_S32 ? CPTX_F32 : o->out;
	const uint32_t unit = (is_byte(o->out) ? 16 : 8) * (o->swiglu ? 2 : 1);
	o->bn = o->scale_out ? (o->swiglu ? 256 : ONE_OF(s, 128, 256, 96)) : (uint32_t)up(o->bn, o->b_n_major ? 64 : unit);
	t->n = up(t->n, o->scale_out ? 128 * (o->swiglu ? 2 : 1) : unit);
	o->visitors = NULL, o->params = NULL, o->nparams = 0;
}

static gemm_trial with_more(gemm_trial t, uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed + 2000000);

	if (t.opt.mma == CPTX_GEMM_WGMMA)
		draw_results(&t, &s);
	if (t.opt.mma != CPTX_GEMM_TCGEN05)
		draw_sparse(&t, &s);
	if (t.opt.mma == CPTX_GEMM_SYNC && below(&s, 10) == 0) { /* f64, small enough for its registers */
		cptx_gemm_opt *o = &t.opt;
		o->a = o->b = o->out = CPTX_F64, o->bk = ONE_OF(&s, 16, 32, 16, 8), o->sparse = false, o->epilogue = NULL;
		o->a_m_major = o->b_n_major = o->bias = below(&s, 20) == 0, o->stream_k = below(&s, 20) == 0, o->grouped = false,
		t.batch = o->batched ? t.batch : 1;
	}
	if (!t.opt.swiglu && !t.opt.scale_out)
		draw_places(&t, &s);
	return t;
}

gemm_trial gemm_draw_sm80(uint64_t seed) { return with_more(draw_sync(seed, false), seed); }

gemm_trial gemm_draw_sync_tma(uint64_t seed) { return with_more(draw_sync(seed, true), seed); }

static gemm_trial draw_wgmma(uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed);
	gemm_trial t = { .opt.mma = CPTX_GEMM_WGMMA, .seed = seed };
	cptx_gemm_opt *o = &t.opt;

	o->a = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_BF16, CPTX_F16, CPTX_E4M3, CPTX_E5M2);
	bool bytes = cptx_type_bits(o->a) == 8;
	o->b = bytes ? (enum cptx_type)ONE_OF(&s, CPTX_E4M3, CPTX_E5M2) : o->a;
	o->out = (enum cptx_type)ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o->a_m_major = !bytes && below(&s, 3) == 0, o->b_n_major = !bytes && below(&s, 3) == 0;
	o->swap = below(&s, 2);
	bool across = o->swap ? o->a_m_major : o->b_n_major; /* what lies along bn is contiguous there */
	uint32_t step = across ? 64 : 8;
	o->bm = ONE_OF(&s, 64, 128, 192, 256), o->bn = step * (1 + below(&s, 256 / step));
	o->stages = 2 + below(&s, 6);
	bool along_m = below(&s, 2);
	*(along_m ? &o->cluster_m : &o->cluster_n) = ONE_OF(&s, 1, 1, 1, 2, 2, 4, 8);
	o->per_sm = below(&s, 3), o->group = below(&s, 5), o->stream_k = below(&s, 2), o->batched = below(&s, 4) == 0;
	o->alpha = below(&s, 3) == 0, o->beta = below(&s, 3) == 0, o->bias = below(&s, 3) == 0;
	o->epilogue = below(&s, 4) == 0 ? gemm_trial_epilogue : NULL;
	t.batch = o->batched ? 1 + below(&s, 3) : 1;
	t.ctas = ONE_OF(&s, 0, 0, 1, 3, 4, 8, 12);
	t.in_place = o->beta && below(&s, 2);
	t.m = 1 + below(&s, 300), t.n = 1 + below(&s, 300), t.k = 1 + below(&s, 400);
	if (o->a_m_major)
		t.m = (t.m + 7) & ~7u;
	if (!bytes && below(&s, 3) == 0)
		draw_types(o, &s), bytes = is_byte(o->a);
	draw_bytes_out(&t, &s);
	t.n = up(t.n, is_byte(o->out) ? 16 : 8);
	t.k = (t.k + 15) & ~15u;
	if (bytes && below(&s, 2)) {
		o->scale = CPTX_F32, o->swap = below(&s, 8) == 0, o->bm = ONE_OF(&s, 64, 64, 128, 128, 192);
		o->bn = ONE_OF(&s, 8, 16, 24, 32, 48, 64, 96, 128, 192, 40, 256);
	}
	return t;
}

gemm_trial gemm_draw_sm90(uint64_t seed) { return with_more(draw_wgmma(seed), seed); }

gemm_trial gemm_draw_experts(uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed + 1000000);
	gemm_trial t = draw_wgmma(seed);
	cptx_gemm_opt *o = &t.opt;

	o->size = CPTX_OPT_SIZE(cptx_gemm_opt);
	o->experts =
		(enum cptx_gemm_experts)ONE_OF(&s, CPTX_GEMM_EXPERTS_CONTIGUOUS, CPTX_GEMM_EXPERTS_MASKED, CPTX_GEMM_EXPERTS_K);
	const bool along_k = o->experts == CPTX_GEMM_EXPERTS_K;
	if (along_k) { /* types of 16 bits, and tiles that both layouts allow */
		o->a = o->b = (enum cptx_type)ONE_OF(&s, CPTX_BF16, CPTX_F16), o->scale = CPTX_TYPE_NONE, o->b_n_major = true;
		o->bn = 64 * (1 + below(&s, 3)), t.m = (t.m + 7) & ~7u;
	}
	o->a_m_major = along_k != (below(&s, 30) == 0), o->batched = below(&s, 30) == 0, o->stream_k = below(&s, 30) == 0;
	if (!along_k && below(&s, 3) == 0) {
		o->gather = below(&s, 2), o->scatter = below(&s, 2), o->cluster_m = o->cluster_n = 1, o->swap = below(&s, 8) == 0;
		o->bm = ONE_OF(&s, 64, 128), o->beta = o->beta && below(&s, 4) == 0, t.in_place = t.in_place && o->beta;
		o->out = o->scatter ? CPTX_F32 : o->out;
		t.rows_a = 1 + below(&s, 300), t.rows_d = 1 + below(&s, 300);
	}
	t.batch = 1 + below(&s, 6);
	if (o->experts == CPTX_GEMM_EXPERTS_MASKED)
		t.m = 1 + t.m / t.batch;
	for (uint32_t z = 0; z < t.batch; z++)
		t.counts[z] = below(&s, 4) ? below(&s, 3 * (uint32_t)(along_k ? t.k : t.m) / (below(&s, 2) ? t.batch : 2) + 2) : 0;
	return with_more(t, seed);
}

gemm_trial gemm_draw_sm100(uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed);
	gemm_trial t = { .seed = seed };
	cptx_gemm_opt *o = &t.opt;

	*o = gemm_of_kind(&gemm_sm100_kinds[below(&s, GEMM_SM100_KINDS)], *o);
	o->out = (enum cptx_type)ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o->a_m_major = below(&s, 3) == 0, o->b_n_major = below(&s, 3) == 0, o->a_tmem = below(&s, 3) == 0;
	o->bm = ONE_OF(&s, 128, 128, 256), o->bn = 16 * (1 + below(&s, 10));
	o->stages = 2 + below(&s, 3);
	bool along_m = below(&s, 2);
	*(along_m ? &o->cluster_m : &o->cluster_n) = ONE_OF(&s, 1, 1, 2, 4, 8);
	o->stream_k = below(&s, 3) == 0, o->swap = below(&s, 3) == 0, o->per_sm = below(&s, 3);
	o->grouped = !o->stream_k && below(&s, 5) == 0;
	o->group = below(&s, 5), o->batched = !o->grouped && below(&s, 4) == 0;
	o->alpha = below(&s, 3) == 0, o->beta = below(&s, 3) == 0, o->bias = below(&s, 3) == 0;
	o->epilogue = below(&s, 4) == 0 ? gemm_trial_epilogue : NULL;
	t.batch = o->grouped ? 2 : o->batched ? 1 + below(&s, 2) : 1;
	t.ctas = ONE_OF(&s, 0, 0, 1, 3, 4, 8);
	t.m = 1 + below(&s, 200), t.n = 1 + below(&s, 200), t.k = 1 + below(&s, 300);
	draw_bytes_out(&t, &s);
	gemm_fit_sm100(&t);
	return t;
}

gemm_trial gemm_draw_sm120(uint64_t seed)
{
	uint64_t s = gemm_trial_random(seed);
	gemm_trial t = { .seed = seed };
	cptx_gemm_opt *o = &t.opt;

	*o = gemm_of_kind(&gemm_sm120_kinds[below(&s, GEMM_SM120_KINDS)], *o);
	o->out = (enum cptx_type)ONE_OF(&s, CPTX_F32, CPTX_BF16, CPTX_F16);
	o->a_m_major = below(&s, 4) == 0, o->b_n_major = below(&s, 4) == 0;
	o->bm = ONE_OF(&s, 64, 64, 128), o->bn = ONE_OF(&s, 64, 64, 128);
	o->warps_m = ONE_OF(&s, 1, 2, 4), o->warps_n = ONE_OF(&s, 1, 2, 4), o->stages = 2 + below(&s, 3);
	o->per_sm = below(&s, 3), o->stream_k = below(&s, 3) == 0, o->grouped = below(&s, 6) == 0;
	o->group = below(&s, 5), o->batched = below(&s, 4) == 0;
	o->alpha = below(&s, 3) == 0, o->beta = below(&s, 3) == 0, o->bias = below(&s, 3) == 0;
	o->epilogue = below(&s, 4) == 0 ? gemm_trial_epilogue : NULL;
	t.batch = o->grouped ? 2 + below(&s, 2) : o->batched ? 1 + below(&s, 3) : 1;
	t.ctas = ONE_OF(&s, 0, 0, 1, 3, 4, 8), t.in_place = o->beta && below(&s, 2);
	t.m = 1 + below(&s, 200), t.n = 8 * (1 + below(&s, 24)), t.k = 1 + below(&s, 400);
	draw_bytes_out(&t, &s);
	t.n = up(t.n, is_byte(o->out) ? 16 : 8);
	gemm_fit_sm120(&t);
	return t;
}
