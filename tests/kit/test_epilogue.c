/* SPDX-License-Identifier: MIT */
/* cptx/epilogue.h: chains of visitors on accumulators of every kind, every way to store them, and what is refused. */
#include "on_emu.h"

#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/tmem.h>
#include <math.h>

/* ---- trials ---- */

/* LINEAR to FROM_POINTER are exact in the numbers that are drawn; the others approximate. */
enum chain { LINEAR, EMPTY, PAIRS, FROM_POINTER, TWO, CALLED, ROWS, GELU, QUICK, SILU, SWIGLU, PAIRS_SILU, CHAINS };

typedef struct trial {
	const char *target;
	enum cptx_mma_by by;
	uint32_t m, n, units_m, units_n; /* of a unit, and how many a CTA has */
	enum chain chain;
	enum cptx_type aux, out; /* of bias and C, of the results */
	uint32_t M, N, pitch;    /* of D, in elements; of the results with GATE_PAIRS N is halved */
	uint32_t vec, apart;
	bool tma, warps, integers; /* warps: that send by themselves */
} trial;

#define SYNC80 "sm_80", CPTX_BY_MMA_SYNC
#define SYNC120 "sm_120a", CPTX_BY_MMA_SYNC
#define WG "sm_90a", CPTX_BY_WGMMA
#define TC "sm_100a", CPTX_BY_TCGEN05
static const trial trials[] = {
	{ SYNC80, 32, 64, 2, 2, LINEAR, CPTX_BF16, CPTX_BF16, 100, 200, 208, 2, .tma = false },
	{ SYNC80, 32, 32, 2, 1, LINEAR, CPTX_F16, CPTX_F16, 77, 77, 77, 1, .tma = false },
	{ SYNC80, 16, 24, 1, 1, LINEAR, CPTX_F32, CPTX_F32, 33, 50, 50, 2, .tma = false },
	{ SYNC80, 16, 32, 1, 1, LINEAR, CPTX_F32, CPTX_F32, 16, 32, 32, 2, .integers = true },
	{ SYNC80, 32, 64, 1, 1, PAIRS, CPTX_F32, CPTX_BF16, 50, 132, 70, 2, 1, .tma = false },
	{ SYNC80, 32, 64, 1, 1, CALLED, CPTX_F32, CPTX_F32, 50, 60, 60, 2, .tma = false },
	{ SYNC80, 32, 64, 1, 2, TWO, CPTX_F32, CPTX_F16, 50, 130, 130, 2, .tma = false },
	{ SYNC80, 32, 64, 1, 1, SILU, CPTX_F32, CPTX_F32, 32, 64, 64, 2, .tma = false },
	{ SYNC120, 64, 32, 2, 1, LINEAR, CPTX_BF16, CPTX_E4M3, 100, 60, 62, 2, .tma = false },
	{ SYNC120, 32, 64, 2, 1, LINEAR, CPTX_F16, CPTX_BF16, 100, 120, 128, 2, .tma = true },
	{ SYNC120, 32, 48, 2, 1, GELU, CPTX_F16, CPTX_F32, 100, 96, 96, 2, .tma = true },
	{ SYNC120, 32, 64, 2, 2, EMPTY, CPTX_F16, CPTX_E5M2, 100, 240, 240, 2, .tma = true },
	{ WG, 64, 128, 2, 1, LINEAR, CPTX_BF16, CPTX_BF16, 200, 200, 200, 2, .tma = false },
	{ WG, 128, 64, 1, 1, LINEAR, CPTX_F32, CPTX_F16, 200, 120, 120, 2, .tma = true },
	{ WG, 64, 96, 1, 2, LINEAR, CPTX_F16, CPTX_F32, 60, 380, 380, 2, .tma = true },
	{ WG, 64, 128, 2, 1, LINEAR, CPTX_F16, CPTX_E4M3, 120, 240, 240, 2, .tma = true },
	{ WG, 64, 128, 1, 1, FROM_POINTER, CPTX_F32, CPTX_E4M3, 60, 118, 118, 2, .tma = false },
	{ WG, 64, 128, 1, 1, FROM_POINTER, CPTX_F32, CPTX_E5M2, 60, 118, 118, 2, .tma = false },
	{ WG, 64, 128, 2, 1, PAIRS, CPTX_F32, CPTX_E4M3, 120, 250, 128, 2, 1, .tma = false },
	{ WG, 64, 128, 2, 1, PAIRS, CPTX_F32, CPTX_E4M3, 120, 224, 128, 2, 1, .tma = true },
	{ WG, 64, 128, 2, 1, PAIRS, CPTX_F32, CPTX_BF16, 120, 224, 128, 2, 8, .tma = true },
	{ WG, 64, 128, 1, 1, PAIRS_SILU, CPTX_F32, CPTX_F32, 60, 128, 64, 2, 8, .tma = false },
	{ WG, 64, 64, 1, 1, SWIGLU, CPTX_F32, CPTX_F32, 64, 64, 64, 2, .tma = false },
	{ WG, 64, 64, 1, 1, QUICK, CPTX_F32, CPTX_F32, 64, 64, 64, 2, .tma = false },
	{ WG, 64, 64, 1, 1, ROWS, CPTX_F32, CPTX_F32, 60, 60, 60, 2, .tma = false },
	{ WG, 64, 96, 1, 1, EMPTY, CPTX_F32, CPTX_F32, 64, 96, 96, 2, .tma = true },
	{ TC, 128, 64, 1, 1, LINEAR, CPTX_BF16, CPTX_BF16, 200, 104, 104, 8, .tma = false },
	{ TC, 128, 64, 1, 1, LINEAR, CPTX_F32, CPTX_E4M3, 200, 112, 112, 16, .tma = false },
	{ TC, 128, 64, 1, 1, LINEAR, CPTX_F16, CPTX_F32, 200, 100, 100, 4, .tma = true },
	{ TC, 128, 64, 1, 1, LINEAR, CPTX_F16, CPTX_BF16, 200, 96, 96, 4, .tma = true },
	{ TC, 128, 64, 1, 1, PAIRS, CPTX_F16, CPTX_E4M3, 200, 128, 64, 4, 1, .tma = true },
	{ TC, 128, 128, 1, 1, LINEAR, CPTX_F16, CPTX_BF16, 200, 112, 112, 4, .tma = true, .warps = true },
	{ TC, 128, 64, 1, 1, FROM_POINTER, CPTX_F16, CPTX_E4M3, 128, 112, 112, 4, .tma = true, .warps = true },
	{ TC, 128, 32, 1, 1, TWO, CPTX_F16, CPTX_F16, 128, 32, 32, 2, .tma = false },
	{ TC, 128, 32, 1, 1, CALLED, CPTX_F16, CPTX_F32, 120, 30, 30, 2, .tma = false },
};
enum { TRIALS = sizeof trials / sizeof *trials };

static bool halves(const trial *t) { return t->chain == PAIRS || t->chain == PAIRS_SILU; }
static uint32_t out_cols(const trial *t) { return t->N / (halves(t) ? 2 : 1); }
static uint32_t up(uint32_t n, uint32_t each) { return (n + each - 1) / each; }
static uint32_t cta_m(const trial *t) { return t->m * t->units_m; }
static uint32_t cta_n(const trial *t) { return t->n * t->units_n; }
static uint32_t unit_threads(const trial *t) { return t->by == CPTX_BY_MMA_SYNC ? 32 : 128; }

/* Whether the results are stored once more, so many rows below. */
enum { FURTHER = 256 };
static bool twice(const trial *t) { return t->tma && t->chain == EMPTY && t->M % cta_m(t) == 0; }

static const char *text_of(const trial *t)
{
	static char text[200];

	snprintf(text, sizeof text, "trial %u: %s by %d, %ux%u, chain %d, .%s to .%s%s, D %ux%u/%u, vec %u, apart %u",
	         (unsigned)(t - trials), t->target, (int)t->by, t->m, t->n, (int)t->chain, cptx_type_name(t->aux),
	         cptx_type_name(t->out), t->tma ? " by TMA" : "", t->M, t->N, t->pitch, t->vec, t->apart);
	return text;
}

/* ---- numbers ---- */

/* The bits of a number, rounded; of types of 8 bits the largest number is not exceeded, as stores saturate. */
static uint32_t encode(enum cptx_type type, double v) { return (uint32_t)number_bits(type, number_saturated(type, v)); }

/* What kernels read: the sums, a second one, and behind one another what visitors take. */
enum {
	MOST = 512 * 512,
	AUX_BIAS_COL = 0,
	AUX_BIAS_ROW = 2048,
	AUX_SCALE_COL = 4096,
	AUX_SCALE_ROW = 6144,
	AUX_ONE = 8192,
	AUX_C = 8448
};
static float sums[2][MOST];
static uint8_t aux[AUX_C + MOST * 4], out[MOST * 4];
static float misc[1 + 512]; /* amax, row sums */

static int drawn(uint32_t i, uint32_t most) { return (int)((i * 2654435761u >> 12) % (2 * most + 1)) - (int)most; }

static void put(enum cptx_type type, uint32_t at, uint32_t i, double v)
{
	uint32_t bits = encode(type, v);

	memcpy(aux + at + i * cptx_type_bits(type) / 8, &bits, cptx_type_bits(type) / 8);
}

static double get(enum cptx_type type, uint32_t at, uint32_t i)
{
	uint32_t bits = 0;

	memcpy(&bits, aux + at + i * cptx_type_bits(type) / 8, cptx_type_bits(type) / 8);
	return number_value(type, bits);
}

static void draw(const trial *t)
{
	for (uint32_t i = 0; i < t->M * t->N; i++) {
		sums[0][i] = (float)drawn(i + 1, 9), sums[1][i] = (float)drawn(i + 77777, 5);
		if (t->chain >= GELU)
			sums[0][i] *= 0.37f, sums[1][i] *= 0.61f;
		put(t->aux, AUX_C, i, drawn(i + 555, 4));
	}
	for (uint32_t i = 0; i < 512; i++) {
		put(t->aux, AUX_BIAS_COL, i, drawn(i + 11, 5)), put(t->aux, AUX_BIAS_ROW, i, drawn(i + 999, 5));
		put(t->aux, AUX_SCALE_COL, i, ldexp(1, drawn(i + 5, 1))), put(t->aux, AUX_SCALE_ROW, i, ldexp(1, drawn(i + 6, 1)));
	}
	put(CPTX_F32, AUX_ONE, 0, t->out == CPTX_E4M3 || t->out == CPTX_E5M2 ? 64 : 0.25);
}

/* ---- what is right ---- */

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

static double linear(const trial *t, uint32_t r, uint32_t c, double v)
{
	v = v * 0.5 + 2 * get(t->aux, AUX_C, r * t->N + c);
	v = (v + get(t->aux, AUX_BIAS_COL, c) + get(t->aux, AUX_BIAS_ROW, r)) * get(t->aux, AUX_SCALE_COL, c);
	return fmax(v * get(t->aux, AUX_SCALE_ROW, r), 0);
}

/* The result in that row and column. */
static double right(const trial *t, uint32_t r, uint32_t c)
{
	const uint32_t a = t->apart ? t->apart : 1, gate = c % a + c / a * 2 * a;
	const double v = sums[0][r * t->N + (halves(t) ? gate : c)];
	const double other = halves(t) ? sums[0][r * t->N + gate + a] : sums[1][r * t->N + c];

	switch (t->chain) {
	case LINEAR: return linear(t, r, c, v);
	case PAIRS:
		return (v + get(t->aux, AUX_BIAS_COL, gate)) * (other + get(t->aux, AUX_BIAS_COL, gate + a)) * 2 +
		       get(t->aux, AUX_BIAS_ROW, r);
	case FROM_POINTER: return v * get(CPTX_F32, AUX_ONE, 0);
	case TWO: return fmax(v + other, 0) * other;
	case CALLED: return 2 * v + 3 * r - c + 1;
	case GELU: return v / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v)));
	case QUICK: return v * sigmoid(1.702 * v);
	case SILU: return v * sigmoid(v);
	case SWIGLU:
	case PAIRS_SILU: return v * sigmoid(v) * other;
	default: return v;
	}
}

/* ---- kernels ---- */

typedef struct built {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val x[2], aux, out, misc, M, N, map;
	cptx_tiled_mma mma;
	cptx_epilogue e;
	cptx_epilogue_ring ring;
	cptx_val m0, n0, unit;
} built;

/* An accumulator with the sums of the tile. */
static void fill(built *b, const trial *t, const cptx_acc *acc, cptx_val from, cptx_val col)
{
	cptx_kernel *k = b->k;

	CPTX_ACC_EACH(acc, e)
	{
		cptx_val r = cptx_acc_row(k, acc, &e, b->m0), c = cptx_acc_col(k, acc, &e, col);
		cptx_val at = cptx_mad_wide(k, cptx_mad(k, r, b->N, c, .mode = CPTX_LO), 4, from);
		cptx_val in =
			cptx_and(k, cptx_setp(k, r, b->M, .cmp = CPTX_LT), cptx_setp(k, c, b->N, .cmp = CPTX_LT), .type = CPTX_PRED);
		cptx_val v = cptx_var(k, CPTX_F32, 0.0f);
		cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .into = v, .when = in);
		if (t->integers)
			cptx_cvt(k, v, .dtype = CPTX_S32, .rnd = CPTX_RNI, .into = e.value);
		else
			cptx_mov(k, v, .into = e.value);
	}
}

static cptx_val called(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	cptx_val row = cptx_cvt(k, x->row, .dtype = CPTX_F32, .rnd = CPTX_RN);
	cptx_val col = cptx_cvt(k, x->col, .dtype = CPTX_F32, .rnd = CPTX_RN);
	cptx_val twice = cptx_fma(k, v, *(float *)user, cptx_mul(k, row, 3.0f), .rnd = CPTX_RN);

	return cptx_add(k, cptx_sub(k, twice, col), cptx_selp(k, 1.0f, 1e9f, x->inside, .type = CPTX_F32));
}

static cptx_visitor taking(const built *b, const trial *t, uint32_t at)
{
	return (cptx_visitor){ .address = cptx_offset(b->aux, at), .type = t->aux };
}

static void add_linear(built *b, const trial *t)
{
	cptx_kernel *k = b->k;
	cptx_epilogue *e = &b->e;
	cptx_visitor c = taking(b, t, AUX_C), bias = taking(b, t, AUX_BIAS_COL), row = taking(b, t, AUX_BIAS_ROW);
	cptx_visitor scale = taking(b, t, AUX_SCALE_COL), scale_row = taking(b, t, AUX_SCALE_ROW);

	c.value = cptx_immf(2), c.pitch = b->N;
	cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = cptx_immf(0.5));
	cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_MATRIX, &c);
	cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_BIAS_COL, &bias);
	cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_BIAS_ROW, &row);
	cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_SCALE_COL, &scale);
	cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_SCALE_ROW, &scale_row);
	cptx_epilogue_add(k, e, CPTX_VISIT_RELU);
}

static void add_chain(built *b, const trial *t, const cptx_acc *other)
{
	static float two = 2;
	cptx_kernel *k = b->k;
	cptx_epilogue *e = &b->e;
	cptx_visitor bias = taking(b, t, AUX_BIAS_COL), row = taking(b, t, AUX_BIAS_ROW);

	switch (t->chain) {
	case LINEAR: add_linear(b, t); break;
	case PAIRS:
		cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_BIAS_COL, &bias);
		cptx_epilogue_add(k, e, CPTX_VISIT_GATE_PAIRS, .apart = t->apart);
		cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .value = cptx_immf(2));
		cptx_epilogue_add_(k, CPTX_HERE, e, CPTX_VISIT_BIAS_ROW, &row);
		break;
	case PAIRS_SILU: cptx_epilogue_add(k, e, CPTX_VISIT_GATE_PAIRS, .apart = t->apart, .activation = CPTX_VISIT_SILU); break;
	case FROM_POINTER: cptx_epilogue_add(k, e, CPTX_VISIT_SCALE, .address = cptx_offset(b->aux, AUX_ONE)); break;
	case TWO:
		cptx_epilogue_add(k, e, CPTX_VISIT_ADD_ACC, .acc = other);
		cptx_epilogue_add(k, e, CPTX_VISIT_GATE, .acc = other, .activation = CPTX_VISIT_RELU);
		break;
	case CALLED: cptx_epilogue_add(k, e, CPTX_VISIT_CALL, .fn = called, .user = &two); break;
	case GELU: cptx_epilogue_add(k, e, CPTX_VISIT_GELU_TANH); break;
	case QUICK: cptx_epilogue_add(k, e, CPTX_VISIT_GELU_SIGMOID); break;
	case SILU: cptx_epilogue_add(k, e, CPTX_VISIT_SILU); break;
	case SWIGLU: cptx_epilogue_add(k, e, CPTX_VISIT_GATE, .acc = other, .activation = CPTX_VISIT_SILU); break;
	default: break;
	}
	if (t->chain == EMPTY || t->integers)
		return;
	cptx_epilogue_add(k, e, CPTX_VISIT_AMAX, .address = b->misc);
	if (t->chain < GELU)
		cptx_epilogue_add(k, e, CPTX_VISIT_ROW_SUM, .address = cptx_offset(b->misc, 4));
}

static void finish(built *b, const trial *t, const cptx_acc *acc, const cptx_acc *other)
{
	cptx_kernel *k = b->k;
	const bool bounded = t->M % cta_m(t) || t->N % cta_n(t);

	cptx_epilogue_new(k, &b->e, .rows = bounded ? b->M : CPTX_NONE_, .cols = bounded ? b->N : CPTX_NONE_, .vec = t->vec);
	add_chain(b, t, other);
	cptx_epilogue_run(k, &b->e, acc, .row = b->m0, .col = b->n0);
	if (t->tma)
		cptx_epilogue_store_tma(k, &b->e, &b->ring);
	else
		cptx_epilogue_store(k, &b->e, .address = b->out, .type = t->out, .pitch = cptx_imm(t->pitch));
	if (twice(t)) { /* TMA may still read the tile of the ring that comes first */
		b->e.row = cptx_add(k, b->e.row, FURTHER);
		cptx_epilogue_store_tma(k, &b->e, &b->ring);
	}
	if (t->tma)
		cptx_epilogue_ring_drain(k, &b->ring, acc);
}

static void begin(built *b, const trial *t)
{
	const uint32_t bits = t->integers ? 8 : 16, threads = unit_threads(t) * t->units_m * t->units_n;
	const cptx_smem_elem elem = { .bits = (uint8_t)bits };
	b->m = cptx_module_new(NULL);
	cptx_kernel *k = b->k = cptx_kernel_begin(b->m, "finish", .block = { threads });
	cptx_val map = cptx_param_bytes(k, 128, 64, "map");

	b->x[0] = cptx_param(k, CPTX_PTR, "x"), b->x[1] = cptx_param(k, CPTX_PTR, "x2"), b->aux = cptx_param(k, CPTX_PTR, "aux");
	b->out = cptx_param(k, CPTX_PTR, "out"), b->misc = cptx_param(k, CPTX_PTR, "misc");
	b->M = cptx_param(k, CPTX_U32, "M"), b->N = cptx_param(k, CPTX_U32, "N");
	b->m0 = cptx_mul(k, cptx_ctaid_y(k), cta_m(t), .mode = CPTX_LO);
	b->n0 = cptx_mul(k, cptx_ctaid_x(k), cta_n(t), .mode = CPTX_LO);
	b->unit = cptx_shfl_sync(k, cptx_shr(k, cptx_tid_x(k), unit_threads(t) == 32 ? 5 : 7), 0, 31, -1, .mode = CPTX_IDX);
	b->map = t->tma ? cptx_cvta(k, cptx_mov(k, map, .type = CPTX_U64), .space = CPTX_PARAM) : CPTX_NONE_;
	cptx_tiled_mma_new(k, &b->mma, .by = t->by, .a = t->integers ? CPTX_S8 : CPTX_BF16,
	                   .b = t->integers ? CPTX_S8 : CPTX_BF16, .m = t->m, .n = t->n, .units_m = t->units_m,
	                   .units_n = t->units_n, .unit = b->unit,
	                   .a_tile = { cta_m(t), 64, .elem = elem, .swizzle = CPTX_SWIZZLE_64B },
	                   .b_tile = { cta_n(t), 64, .elem = elem, .swizzle = CPTX_SWIZZLE_64B });
}

static cptx_tile piece(const trial *t)
{
	return cptx_epilogue_tile(t->out, t->warps ? 32 : t->by == CPTX_BY_WGMMA ? 64 : t->m, t->n / (halves(t) ? 2 : 1));
}

/* Tensor memory that is zero, the accumulator's columns. */
static void in_tmem(built *b, const trial *t)
{
	cptx_kernel *k = b->k;
	cptx_tmem tmem;
	cptx_acc acc, part[2];
	cptx_val zeros = cptx_regs(k, CPTX_B32, t->n);

	for (uint32_t i = 0; i < t->n; i++)
		cptx_mov(k, 0, .into = cptx_elem(zeros, i));
	CPTX_TMEM(k, &tmem, .columns = t->n, .warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT)) {
		cptx_val lane = cptx_and(k, cptx_tid_x(k), 96);
		cptx_tmem_store(k, cptx_mad(k, lane, 65536, tmem.address, .mode = CPTX_LO), zeros, .shape = CPTX_SHAPE_32X32B,
		                .num = t->n);
		cptx_tcgen05_wait(k, .op = CPTX_WAIT_ST);
		cptx_acc_in_tmem(k, &b->mma, &acc, tmem.address);
		for (uint32_t i = 0; i < 2; i++) {
			cptx_acc_load(k, &acc, 0, t->n, &part[i]);
			fill(b, t, &part[i], b->x[i], b->n0);
		}
		finish(b, t, &part[0], &part[1]);
	}
}

static cptx_module *build(const trial *t)
{
	built b;
	cptx_acc acc[2];

	begin(&b, t);
	cptx_kernel *k = b.k;
	cptx_val warp = cptx_shr(k, cptx_tid_x(k), 5);
	if (t->tma)
		cptx_epilogue_ring_new(k, &b.ring, .type = t->out, .tile = piece(t), .map = b.map,
		                       .units = t->warps ? 4 : t->units_m * t->units_n, .unit = t->warps ? warp : b.unit,
		                       .barrier = cptx_add(k, b.unit, 1));
	if (t->by == CPTX_BY_TCGEN05) {
		in_tmem(&b, t);
		return b.m;
	}
	for (uint32_t i = 0; i < 2; i++) {
		cptx_acc_new(k, &b.mma, &acc[i]);
		fill(&b, t, &acc[i], b.x[i], b.n0);
	}
	finish(&b, t, &acc[0], &acc[1]);
	return b.m;
}

/* ---- runs ---- */

static cptx_error err;

static void make_map(cptx_device *dev, const trial *t, uint64_t to, cptx_tensor_map *map)
{
	const cptx_operand_opt o = { .type = t->out, .tile = piece(t) };
	const uint64_t rows = twice(t) ? 2 * FURTHER : t->M, pitch = (uint64_t)t->pitch * cptx_type_bits(t->out) / 8;
	const cptx_operand_matrix d = { .address = to, .rows = rows, .cols = out_cols(t), .pitch = pitch };
	cptx_tensor_map_opt of;
	bool ok = cptx_operand_tensor_map(&o, &d, &of, &err) && cptx_tensor_map_make(dev, &of, map, &err);

	SURE(ok, "%s\n%s", text_of(t), err.text);
}

static void launch(const trial *t, cptx_module *m, uint64_t seed)
{
	struct {
		void *host;
		size_t bytes;
	} buffer[] = { { sums[0], (size_t)t->M * t->N * 4 },
		           { sums[1], (size_t)t->M * t->N * 4 },
		           { aux, AUX_C + (size_t)t->M * t->N * 4 },
		           { out, sizeof out },
		           { misc, sizeof misc } };
	uint64_t at[5];
	cptx_tensor_map map = { 0 };

	err = (cptx_error){ 0 };
	SURE(!cptx_module_error(m), "%s\n%s", text_of(t), cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_device *dev =
		cptx_emu_open(t->target, &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) }, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	for (int i = 0; i < 5; i++) {
		at[i] = cptx_mem_alloc(dev, buffer[i].bytes, &err);
		cptx_mem_write(dev, at[i], buffer[i].host, buffer[i].bytes, &err);
	}
	if (t->tma)
		make_map(dev, t, at[3], &map);
	cptx_launch_once(p, NULL,
	                 CPTX_LAUNCH(.grid = { up(t->N, cta_n(t)), up(t->M, cta_m(t)) },
	                             CPTX_ARGS(CPTX_ARG_BYTES(&map, sizeof map), at[0], at[1], at[2], at[3], at[4], t->M, t->N)),
	                 NULL, &err);
	for (int i = 3; i < 5; i++)
		cptx_mem_read(dev, buffer[i].host, at[i], buffer[i].bytes, &err);
	SURE(!err.code, "%s\n%s", text_of(t), err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}

static uint32_t stored(const trial *t, uint32_t r, uint32_t c)
{
	const uint32_t bytes = cptx_type_bits(t->out) / 8;
	uint32_t bits = 0;

	memcpy(&bits, out + (r * t->pitch + c) * bytes, bytes);
	return bits;
}

/* Every element, that nothing outside was touched, and the reductions. */
static void compare(const trial *t)
{
	const uint32_t empty = (uint32_t)((1ull << cptx_type_bits(t->out)) - 1);
	double most = 0;

	for (uint32_t r = 0; r < t->M + 1; r++) {
		double sum = 0;
		for (uint32_t c = 0; c < t->pitch; c++) {
			const uint32_t got = stored(t, r, c);
			if (r == t->M || c >= out_cols(t)) {
				SURE(got == empty, "%s\nrow %u, column %u is outside and written", text_of(t), r, c);
				continue;
			}
			SURE(!twice(t) || stored(t, r + FURTHER, c) == got, "%s\nrow %u, column %u differs below", text_of(t), r, c);
			const double want = right(t, r, c), near = t->chain < GELU ? 0 : 2e-3 * fabs(want) + 1e-5;
			const bool ok = near > 0 ? fabs(number_value(t->out, got) - want) <= near
			                         : (got == encode(t->out, want) || (!want && !(got << 1 & empty)));
			SURE(ok, "%s\nrow %u, column %u is %g (0x%x), not %g (0x%x)", text_of(t), r, c, number_value(t->out, got), got,
			     want, encode(t->out, want));
			most = fmax(most, fabs(want)), sum += want;
		}
		if (r < t->M && t->chain != EMPTY && !t->integers && t->chain < GELU)
			SURE(misc[1 + r] == (float)sum, "%s\nthe sum of row %u is %g, not %g", text_of(t), r, (double)misc[1 + r], sum);
	}
	if (t->chain != EMPTY && !t->integers)
		SURE(fabs(misc[0] - most) <= (t->chain < GELU ? 0 : 2e-3 * most), "%s\namax is %g, not %g", text_of(t),
		     (double)misc[0], most);
}

static void check(const trial *t, uint64_t seed)
{
	cptx_module *m = build(t);

	draw(t);
	memset(out, 0xff, sizeof out);
	memset(misc, 0, sizeof misc);
	launch(t, m, seed);
	compare(t);
	cptx_module_destroy(m);
}

START_TEST(results_are_right)
{
	for (size_t i = 0; i < TRIALS; i++)
		for (uint64_t seed = 1; seed < 4; seed++)
			check(&trials[i], seed);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the epilogues");
		return;
	}
	for (size_t i = 0; i < TRIALS; i++) {
		cptx_module *m = build(&trials[i]);
		char *said = emu_assembles(m, trials[i].target);
		SURE(strstr(said, " 0 bytes spill stores, 0 bytes spill loads"), "%s\n%s", text_of(&trials[i]), said);
		free(said);
		cptx_module_destroy(m);
	}
}
END_TEST

/* ---- what is refused ---- */

static const trial plain = { WG, 64, 64, 1, 1, EMPTY, CPTX_F32, CPTX_BF16, 64, 64, 64, 2, .tma = true };

static cptx_acc begin_plain(built *b)
{
	cptx_acc acc;

	begin(b, &plain);
	cptx_acc_new(b->k, &b->mma, &acc);
	fill(b, &plain, &acc, b->x[0], b->n0);
	cptx_epilogue_new(b->k, &b->e, .rows = b->M, .cols = b->N);
	return acc;
}

static cptx_val in_error(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	(void)x;
	*(int *)user = __LINE__ + 1;
	return cptx_add(k, v, cptx_tid_x(k));
}

static cptx_val gives_nothing(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	(void)k, (void)user, (void)x, (void)v;
	return CPTX_NONE_;
}

/* The error is of that line: of the call, or of the callback. */
static void refused(built *b, int line, const char *what)
{
	char text[200];

	snprintf(text, sizeof text, "test_epilogue.c:%d: kernel finish: %s", line, what);
	emu_fails(b->m, "test_epilogue.c", text);
}

START_TEST(visitors_are_checked)
{
	built b;
	int line;

	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_BIAS_COL, .type = CPTX_F32);
	refused(&b, line, "CPTX_VISIT_BIAS_COL: give .address, .u64 of global memory");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_SCALE);
	refused(&b, line, "CPTX_VISIT_SCALE: give either .value or .address");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_MATRIX, .address = b.aux, .type = CPTX_E4M3, .pitch = b.N);
	refused(&b, line, "CPTX_VISIT_MATRIX: of .e4m3; it is of CPTX_F32, BF16 or F16");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_MATRIX, .address = b.aux);
	refused(&b, line, "CPTX_VISIT_MATRIX: give .pitch, in elements");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_GATE_PAIRS, .activation = CPTX_VISIT_AMAX);
	refused(&b, line, "CPTX_VISIT_GATE_PAIRS: .activation = 14; it is CPTX_VISIT_RELU");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_RELU, .address = b.aux);
	refused(&b, line, "CPTX_VISIT_RELU: with .address, which it does not read");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_KINDS);
	refused(&b, line, "epilogue: 18 is no kind of visitor");
	begin_plain(&b), line = __LINE__ + 2;
	for (int i = 0; i < CPTX_EPILOGUE_VISITORS + 1; i++)
		cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_RELU);
	refused(&b, line, "epilogue: more than 16 visitors");
	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_new(b.k, &b.e, .vec = 3);
	refused(&b, line, "epilogue: .vec = 3; it is 1, 2, 4, 8 or 16");
}
END_TEST

START_TEST(runs_are_checked)
{
	built b;
	cptx_acc acc, other;
	int line, of_callback = 0;

	acc = begin_plain(&b);
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_CALL, .fn = in_error, .user = &of_callback);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0);
	ck_assert_int_ne(of_callback, 0);
	refused(&b, of_callback, "add");
	acc = begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_CALL, .fn = gives_nothing);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0);
	refused(&b, line, "CPTX_VISIT_CALL: the callback gave no value of .f32");
	acc = begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_GATE_PAIRS, .apart = 2);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0);
	refused(&b, line, "CPTX_VISIT_GATE_PAIRS: .apart = 2; no thread has both columns of a pair");
	acc = begin_plain(&b), other = acc, other.n = 32, line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_GATE, .acc = &other);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0);
	refused(&b, line, "an accumulator of 64 x 32 beside one of 64 x 64");
	acc = begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_store(b.k, &b.e, .address = b.out, .type = CPTX_BF16, .pitch = b.N);
	refused(&b, line, "an epilogue without results; cptx_epilogue_run comes first");
	acc = begin_plain(&b);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_RELU);
	refused(&b, line, "a visitor behind cptx_epilogue_run, which has run the chain");
	acc = begin_plain(&b);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store(b.k, &b.e, .address = b.out, .pitch = b.N);
	refused(&b, line, "results stored without a type: say .type");
	acc = begin_plain(&b);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store(b.k, &b.e, .address = b.out, .type = CPTX_S32, .pitch = b.N);
	refused(&b, line, "results stored as .s32");
	acc = begin_plain(&b);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store(b.k, &b.e, .address = b.out, .type = CPTX_F16, .pitch = cptx_imm(63));
	refused(&b, line, "results in rows of .pitch = 63 elements; with .vec = 2 it is a multiple of that");
	acc = begin_plain(&b);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store(b.k, &b.e, .address = b.out, .type = CPTX_BF16, .pitch = b.N, .add = 2);
	refused(&b, line, "results of .bf16 with .add = 2; those of .f32 are added, 1, 2 or 4 at once");
	acc = begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_QUANTIZE, .value = cptx_immf(448), .address = b.aux, .pitch = b.N);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0);
	refused(&b, line, "CPTX_VISIT_QUANTIZE of units with 64 columns, 1 beside one another");
}
END_TEST

START_TEST(rings_are_checked)
{
	built b;
	int line;

	begin_plain(&b), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_F32, .tile = piece(&plain), .map = b.map);
	refused(&b, line, "epilogue: a tile of 64 x 64; .tile is what cptx_epilogue_tile gives for .f32");
	const cptx_acc acc = begin_plain(&b);
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = piece(&plain), .map = b.map);
	cptx_epilogue_run(b.k, &b.e, &acc, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &b.e, &b.ring);
	refused(&b, line, "no .barrier in the ring");
	const cptx_acc of_two = begin_plain(&b);
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = piece(&plain), .map = b.map, .units = 2, .unit = b.unit,
	                       .barrier = cptx_imm(1));
	cptx_epilogue_run(b.k, &b.e, &of_two, .row = b.m0, .col = b.n0), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &b.e, &b.ring);
	refused(&b, line, "epilogue: .barrier of the ring is 1 for all of 2 units; each needs a number of its own");
	const cptx_acc ahead = begin_plain(&b);
	cptx_epilogue_ring_opt o = { .type = CPTX_BF16,
		                         .tile = piece(&plain),
		                         .map = b.map,
		                         .units = 2,
		                         .unit = b.unit,
		                         .barrier = cptx_imm(1),
		                         .acc = &ahead };
	o.size = CPTX_OPT_SIZE(cptx_epilogue_ring_opt), line = __LINE__ + 1;
	cptx_epilogue_ring_new_(b.k, CPTX_HERE, &b.ring, &o);
	refused(&b, line, "epilogue: .barrier of the ring is 1 for all of 2 units");
}
END_TEST

/* A bias by column is loaded in pairs, once for both rows that a thread has of its 8 pairs of columns. */
START_TEST(loads_are_shared)
{
	built b;
	const cptx_acc acc = begin_plain(&b);
	unsigned loads = 0;

	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_BIAS_COL, .address = b.aux);
	cptx_epilogue_run(b.k, &b.e, &acc);
	cptx_ptx *ptx = cptx_emit(b.m, "sm_90a", NULL, &err);
	for (const char *at = ptx ? cptx_ptx_text(ptx) : ""; (at = strstr(at, "ld.global.v2.b32")); at++)
		loads++;
	ck_assert_uint_eq(loads, 8);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(b.m);
}
END_TEST

START_TEST(tiles_are_as_wide_as_they_can)
{
	const cptx_tile bf16 = cptx_epilogue_tile(CPTX_BF16, 64, 96), fp8 = cptx_epilogue_tile(CPTX_E4M3, 64, 128);
	const cptx_tile none = cptx_epilogue_tile(CPTX_BF16, 64, 4);

	ck_assert_uint_eq(bf16.cols, 32);
	ck_assert_int_eq(bf16.swizzle, CPTX_SWIZZLE_64B);
	ck_assert_uint_eq(fp8.cols, 128);
	ck_assert_uint_eq(none.rows, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "epilogue");

	tcase_add_test(t, results_are_right);
	tcase_add_test(t, ptxas_takes_them);
	tcase_add_test(t, visitors_are_checked);
	tcase_add_test(t, runs_are_checked);
	tcase_add_test(t, rings_are_checked);
	tcase_add_test(t, loads_are_shared);
	tcase_add_test(t, tiles_are_as_wide_as_they_can);
	return test_main("kit epilogue", s);
}
