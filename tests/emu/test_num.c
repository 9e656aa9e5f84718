/* SPDX-License-Identifier: MIT */
/* Floating point arithmetic of the emulator against the host's in each rounding, and against formats by their definition. */
#include "num_ref.h"

enum { ADD, SUB, MUL, FMA, DIV, SQRT, RCP, OPS };
static const char *const names[] = { "add", "sub", "mul", "fma", "div", "sqrt", "rcp" };

static uint64_t emulated(unsigned op, unsigned type, const uint64_t *x, const struct num_mode *m)
{
	switch (op) {
	case ADD: return num_add(type, x[0], x[1], m);
	case SUB: return num_sub(type, x[0], x[1], m);
	case MUL: return num_mul(type, x[0], x[1], m);
	case FMA: return num_fma(type, x[0], x[1], x[2], m);
	case DIV: return num_div(type, x[0], x[1], m);
	case SQRT: return num_sqrt(type, x[0], m);
	default: return num_rcp(type, x[0], m);
	}
}

static float host32(unsigned op, const uint64_t *x)
{
	volatile float a = num_f32((uint32_t)x[0]), b = num_f32((uint32_t)x[1]), c = num_f32((uint32_t)x[2]);
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case FMA: return fmaf(a, b, c);
	case DIV: return a / b;
	case SQRT: return sqrtf(a);
	default: return 1 / a;
	}
}

static double host64(unsigned op, const uint64_t *x)
{
	volatile double a = num_f64(x[0]), b = num_f64(x[1]), c = num_f64(x[2]);
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case FMA: return fma(a, b, c);
	case DIV: return a / b;
	case SQRT: return sqrt(a);
	default: return 1 / a;
	}
}

static uint32_t flushed(uint32_t a) { return fabsf(num_f32(a)) < 0x1p-126f ? a & 0x80000000 : a; }

/* Whether an f32 would be subnormal if it had more exponents; .ftz flushes just these, as an H200 has it. */
static bool is_tiny(unsigned op, const uint64_t *x, int rounding)
{
	uint64_t wide[3];

	for (unsigned i = 0; i < 3; i++)
		wide[i] = num_bits64(num_f32((uint32_t)x[i]));
	feclearexcept(FE_ALL_EXCEPT);
	fesetround(FE_TOWARDZERO);
	volatile double d = host64(op, wide);
	if (fetestexcept(FE_INEXACT)) /* which side of everything it lies on */
		d = num_f64(num_bits64(d) | 1);
	fesetround(rounding);
	volatile double exact = d; /* so that it is rounded behind the call above */
	volatile float scaled = (float)(exact * 0x1p60);
	fesetround(FE_TONEAREST);
	return fabsf(scaled) < 0x1p-66f;
}

START_TEST(test_f32)
{
	uint64_t state = 1;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t x[3] = { ref_operand(&state, 8, 23, (uint64_t)127 << 23) };
		x[1] = ref_operand(&state, 8, 23, x[0]);
		x[2] = ref_operand(&state, 8, 23, num_bits32(num_f32((uint32_t)x[0]) * num_f32((uint32_t)x[1])));
		for (unsigned r = 0; r < 4; r++)
			for (unsigned op = 0; op < OPS; op++) {
				uint64_t y[3] = { flushed((uint32_t)x[0]), flushed((uint32_t)x[1]), flushed((uint32_t)x[2]) };
				fesetround(host_roundings[r]);
				volatile float f = host32(op, x), z = host32(op, y);
				fesetround(FE_TONEAREST);
				bool tiny = is_tiny(op, y, host_roundings[r]);
				uint32_t due = f != f ? 0x7fffffff : num_bits32(f),
						 got = (uint32_t)emulated(op, CPTX_F32, x, &(struct num_mode){ .rnd = roundings[r] });
				want_msg(got == due, "%s, rounding %u: %a %a %a gives %a, not %a", names[op], r,
				         (double)num_f32((uint32_t)x[0]), (double)num_f32((uint32_t)x[1]), (double)num_f32((uint32_t)x[2]),
				         (double)num_f32(got), (double)f);
				uint32_t sat = f != f || f <= 0 ? 0
				               : f > 1          ? num_bits32(1)
				                                : due,
						 zero = z != z ? 0x7fffffff
				                : tiny ? num_bits32(z) & 0x80000000
				                       : num_bits32(z);
				want(emulated(op, CPTX_F32, x, &(struct num_mode){ .rnd = roundings[r], .sat = true }) == sat);
				want(emulated(op, CPTX_F32, x, &(struct num_mode){ .rnd = roundings[r], .ftz = true }) == zero);
				if (r)
					continue;
				uint32_t hot = op == ADD   ? num_f32_add((uint32_t)x[0], (uint32_t)x[1])
				               : op == SUB ? num_f32_sub((uint32_t)x[0], (uint32_t)x[1])
				               : op == MUL ? num_f32_mul((uint32_t)x[0], (uint32_t)x[1])
				               : op == FMA ? num_f32_fma((uint32_t)x[0], (uint32_t)x[1], (uint32_t)x[2])
				                           : due;
				want(hot == due && num_f32_sat(hot) == sat && num_f32_ftz(due) == flushed(due));
			}
	}
	uint64_t pair = num_fma(CPTX_F32X2, 0x400000003f800000, 0x4040000040a00000, 0x3f800000bf800000, &nothing);
	want(pair == ((uint64_t)num_bits32(7) << 32 | num_bits32(4)));
}
END_TEST

START_TEST(test_f64)
{
	uint64_t state = 2;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t x[3] = { ref_operand(&state, 11, 52, (uint64_t)1023 << 52) };
		x[1] = ref_operand(&state, 11, 52, x[0]);
		x[2] = ref_operand(&state, 11, 52, num_bits64(num_f64(x[0]) * num_f64(x[1])));
		for (unsigned r = 0; r < 4; r++)
			for (unsigned op = 0; op < OPS; op++) {
				fesetround(host_roundings[r]);
				volatile double f = host64(op, x);
				fesetround(FE_TONEAREST);
				uint64_t got = emulated(op, CPTX_F64, x, &(struct num_mode){ .rnd = roundings[r] });
				bool same = f != f ? isnan(num_f64(got)) : num_bits64(f) == got;
				want_msg(same, "%s, rounding %u: %a %a %a gives %a, not %a", names[op], r, num_f64(x[0]), num_f64(x[1]),
				         num_f64(x[2]), num_f64(got), f);
			}
	}
	const uint64_t one = num_bits64(1), inf = num_bits64(INFINITY), a = 0x7ff0000000000123, b = 0xfff8000000000456;
	for (unsigned r = 0; r < 4; r++) { /* payloads */
		struct num_mode m = { .rnd = roundings[r] };
		want(num_add(CPTX_F64, a, one, &m) == 0x7ff8000000000123 && num_sub(CPTX_F64, one, b, &m) == b);
		want(num_fma(CPTX_F64, one, one, b, &m) == b && num_sqrt(CPTX_F64, b, &m) == b);
		/* As an H200 has it: of several NaN the second operand's, then the third's; of a quotient the dividend's. */
		want(num_mul(CPTX_F64, a, b, &m) == b && num_add(CPTX_F64, a, b, &m) == b && num_div(CPTX_F64, b, a, &m) == b);
		want(num_fma(CPTX_F64, a, b, a, &m) == b && num_fma(CPTX_F64, a, one, b, &m) == b);
		uint64_t nothing_left = r == 2 ? num_bits64(-0.0) : 0; /* toward minus infinity */
		want(num_sub(CPTX_F64, one, one, &m) == nothing_left &&
		     num_fma(CPTX_F64, one, num_bits64(-1), one, &m) == nothing_left);
		want(num_sub(CPTX_F64, inf, inf, &m) == 0xfff8000000000000 && num_div(CPTX_F64, 0, 0, &m) == 0xfff8000000000000);
	}
}
END_TEST

/*
 * f16 and bf16: the host rounds a sum or product of doubles toward zero, and if it was not exact the lowest bit is set: so
 * the one rounding that matters sees on which side of everything the result lies.
 */
static double to_odd(unsigned op, double a, double b, double c)
{
	volatile double x = a, y = b, z = c;
	feclearexcept(FE_ALL_EXCEPT);
	fesetround(FE_TOWARDZERO);
	volatile double d = op == ADD ? x + y : op == SUB ? x - y : op == MUL ? x * y : fma(x, y, z);
	fesetround(FE_TONEAREST);
	return fetestexcept(FE_INEXACT) ? num_f64(num_bits64(d) | 1) : d;
}

static void half_ops(const struct ref_format *f, const uint64_t *x)
{
	double v[3];
	for (unsigned i = 0; i < 3; i++)
		v[i] = num_to_f64(f->type, x[i]);
	for (unsigned op = ADD; op <= FMA; op++) {
		double d = to_odd(op, v[0], v[1], v[2]);
		unsigned due = ref_encode(f, d, CPTX_RN, false), got = (unsigned)emulated(op, f->type, x, &nothing);
		want_msg(got == due, "%s of type %u: %a %a %a gives %x, not %x", names[op], f->type, v[0], v[1], v[2], got, due);
		unsigned relu = d < 0 || due == 0x8000 ? 0 : due, sat = d != d || signbit(d) ? 0
		                                                        : d > 1              ? ref_encode(f, 1, CPTX_RN, false)
		                                                                             : due;
		want(emulated(op, f->type, x, &(struct num_mode){ .relu = true }) == relu);
		want(emulated(op, f->type, x, &(struct num_mode){ .sat = true }) == sat);
	}
}

START_TEST(test_halves)
{
	static const uint16_t others[] = { 0x0000, 0x8000, 0x0001, 0x83ff, 0x3c00, 0x3c01, 0xbc00, 0x7bff,
		                               0xfc00, 0x7e00, 0x3f80, 0xbf81, 0x7f7f, 0x0080, 0x5555 };
	uint64_t state = 3;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned a = 0; a < 65536; a++) {
			uint64_t n = ref_random(&state);
			half_ops(&ref_formats[k], (uint64_t[]){ a, others[a % 15], n & 0xffff });
			half_ops(&ref_formats[k], (uint64_t[]){ a, n >> 16 & 0xffff, others[(n >> 60) % 15] });
			half_ops(&ref_formats[k], (uint64_t[]){ a, (a + (n >> 32 & 0xffff) % 4096 - 2048) & 0xffff, n >> 48 });
		}
	/* .ftz of f16 */
	const struct num_mode ftz = { .ftz = true };
	want(num_add(CPTX_F16, 0x03ff, 0x8000, &ftz) == 0 && num_add(CPTX_F16, 0x83ff, 0x8000, &ftz) == 0x8000);
	want(num_mul(CPTX_F16, 0x0400, 0xb800, &ftz) == 0x8000 && num_mul(CPTX_F16, 0x0400, 0xb800, &nothing) == 0x8200);
	/* packed, relu, oob */
	want(num_add(CPTX_F16X2, 0x3c004000, 0x3c00c400, &nothing) == 0x4000c000);
	want(num_fma(CPTX_BF16X2, 0x3f804000, 0x3f80c000, 0, &(struct num_mode){ .relu = true }) == 0x3f800000);
	want(num_fma(CPTX_F16X2, 0x7ff73c00, 0x3c003c00, 0x3c003c00, &(struct num_mode){ .oob = true }) == 0x00004000);
	want(num_fma(CPTX_F16, 0x7fff, 0x3c00, 0x3c00, &(struct num_mode){ .oob = true }) == 0x7fff);
}
END_TEST

/* ---- min, max, comparison ---- */
struct value {
	unsigned type;
	uint64_t nan, sign, other_nan, bits[10]; /* bits rise as the numbers do */
};
static const struct value values[] = {
	{ CPTX_F32,
	  0x7fffffff,
	  0x80000000,
	  0xff800001,
	  { 0xff800000, 0xc0000000, 0x80800000, 0x80000001, 0x80000000, 0, 1, 0x00800000, 0x40000000, 0x7f800000 } },
	{ CPTX_F16, 0x7fff, 0x8000, 0xfc01, { 0xfc00, 0xc000, 0x8400, 0x8001, 0x8000, 0, 1, 0x0400, 0x4000, 0x7c00 } },
	{ CPTX_BF16, 0x7fff, 0x8000, 0xff81, { 0xff80, 0xc000, 0x8080, 0x8001, 0x8000, 0, 1, 0x0080, 0x4000, 0x7f80 } },
	{ CPTX_F64,
	  0x7ff8000000000001,
	  0x8000000000000000,
	  0xfff8000000000001,
	  { 0xfff0000000000000, 0xc000000000000000, 0x8010000000000000, 0x8000000000000001, 0x8000000000000000, 0, 1,
	    0x0010000000000000, 0x4000000000000000, 0x7ff0000000000000 } },
};

START_TEST(test_extremes)
{
	const struct num_mode nan = { .nan = true }, abs = { .abs = true }, xorsign = { .abs = true, .xorsign = true },
						  ftz = { .ftz = true };
	for (unsigned k = 0; k < sizeof values / sizeof values[0]; k++) {
		const struct value *v = &values[k];
		unsigned t = v->type;
		for (unsigned i = 0; i < 10; i++) {
			uint64_t a = v->bits[i];
			for (unsigned j = 0; j < 10; j++) {
				uint64_t b = v->bits[j], low = i < j ? a : b, high = i < j ? b : a;
				want(num_min(t, a, b, &nothing) == low && num_max(t, a, b, &nan) == high);
				uint64_t x = a & ~v->sign, y = b & ~v->sign, less = x < y ? x : y, more = x < y ? y : x;
				want(num_min(t, a, b, &abs) == less && num_max(t, a, b, &abs) == more);
				want(num_min(t, a, b, &xorsign) == (less | ((a ^ b) & v->sign)) &&
				     num_max(t, a, b, &xorsign) == (more | ((a ^ b) & v->sign)));
				want(num_max3(t, a, v->other_nan, b, &nothing) == high && num_min3(t, v->nan, b, a, &nothing) == low);
				want(num_copysign(t, a, b) == ((a & v->sign) | y));
				/* the zeros are equal */
				bool less_than = i < j && !(i == 4 && j == 5), equal = i == j || (i + j == 9 && (i == 4 || i == 5));
				want(num_cmp(t, CPTX_LT, a, b, false) == less_than && num_cmp(t, CPTX_LTU, a, b, false) == less_than);
				want(num_cmp(t, CPTX_EQ, a, b, false) == equal && num_cmp(t, CPTX_EQU, a, b, false) == equal);
				want(num_cmp(t, CPTX_NE, a, b, false) == !equal && num_cmp(t, CPTX_NEU, a, b, false) == !equal);
				want(num_cmp(t, CPTX_LE, a, b, false) == (less_than || equal) &&
				     num_cmp(t, CPTX_LEU, a, b, false) == (less_than || equal));
				want(num_cmp(t, CPTX_GT, b, a, false) == less_than && num_cmp(t, CPTX_GTU, b, a, false) == less_than);
				want(num_cmp(t, CPTX_GE, b, a, false) == (less_than || equal) &&
				     num_cmp(t, CPTX_GEU, b, a, false) == (less_than || equal));
				want(num_cmp(t, CPTX_NUM, a, b, false) && !num_cmp(t, CPTX_ISNAN, a, b, false));
			}
			for (unsigned c = CPTX_EQ; c <= CPTX_ISNAN;
			     c++) /* EQ NE LT LE GT GE, then those that are true of a NaN, NUM and NAN */
				want(num_cmp(t, c, a, v->nan, false) == (c >= CPTX_EQU && c != CPTX_NUM) &&
				     num_cmp(t, c, v->other_nan, a, false) == (c >= CPTX_EQU && c != CPTX_NUM));
			want(num_min(t, a, v->other_nan, &nothing) == a && num_max(t, v->nan, a, &nothing) == a);
			if (t != CPTX_F64)
				want(num_min(t, a, v->other_nan, &nan) == v->nan && num_max3(t, a, a, v->other_nan, &nan) == v->nan);
			want(num_abs(t, a, &nothing) == (a & ~v->sign) && num_neg(t, a, &nothing) == (a ^ v->sign));
			want(num_testp(t, CPTX_FINITE, a) == (i > 0 && i < 9) && num_testp(t, CPTX_INFINITE, a) == (i == 0 || i == 9));
			want(num_testp(t, CPTX_SUBNORMAL, a) == (i == 3 || i == 6) && num_testp(t, CPTX_NUMBER, a) &&
			     !num_testp(t, CPTX_NOTANUMBER, a));
			want(num_testp(t, CPTX_NORMAL, a) == (i > 0 && i < 9 && i != 3 && i != 6));
		}
		want(!num_testp(t, CPTX_NORMAL, v->nan) && !num_testp(t, CPTX_FINITE, v->nan) &&
		     num_testp(t, CPTX_NOTANUMBER, v->other_nan));
		if (t == CPTX_F64)
			continue;
		want(num_max(t, v->other_nan, v->nan, &nothing) == v->nan && num_min(t, v->other_nan, v->nan, &xorsign) == v->nan);
		want(num_max(t, 1, 0, &ftz) == 0 && num_min(t, v->sign | 1, 0, &ftz) == v->sign &&
		     num_abs(t, v->sign | 1, &ftz) == 0);
		want(num_cmp(t, CPTX_EQ, 1, v->sign | 1, true) && !num_cmp(t, CPTX_EQ, 1, v->sign | 1, false));
	}
	want(num_min(CPTX_F16X2, 0x3c00fc00, 0x7e004000, &nothing) == 0x3c00fc00);
}
END_TEST

/* ---- .approx: the manual's bounds, with which a result rounded once has no trouble, and its tables of special values ----
 */
START_TEST(test_approx)
{
	uint64_t state = 4;
	const struct num_mode approx = { .rnd = CPTX_APPROX }, full = { .rnd = CPTX_FULL };
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t a = ref_operand(&state, 8, 23, (uint64_t)127 << 23), b = ref_operand(&state, 8, 23, a);
		double x = num_f32((uint32_t)a), y = num_f32((uint32_t)b);
		if (isnan(x) || isnan(y) || x == 0 || y == 0)
			continue;
		struct {
			uint64_t got;
			double due, bound; /* relative */
		} row[] = { { num_rcp(CPTX_F32, a, &approx), 1 / x, 0x1p-23 },
			        { num_sqrt(CPTX_F32, a, &approx), sqrt(x), 0x1p-23 },
			        { num_rsqrt(CPTX_F32, a, &nothing), 1 / sqrt(x), 0x1p-22 },
			        { num_div(CPTX_F32, a, b, &full), x / y, 0x1p-22 },
			        { fabs(y) >= 0x1p-126 && fabs(y) <= 0x1p126 ? num_div(CPTX_F32, a, b, &approx)
			                                                    : num_f32_bits((float)(x / y)),
			          x / y, 0x1p-22 },
			        { num_ex2(CPTX_F32, a, &nothing), exp2(x), 0x1p-22 },
			        { num_lg2(a, &nothing), log2(x), 0x1p-22 },
			        { num_tanh(CPTX_F32, a, &nothing), tanh(x), 0x1p-11 },
			        { num_sin(a, &nothing), sin(x), 0x1p-20 },
			        { num_cos(a, &nothing), cos(x), 0x1p-20 } };
		for (unsigned k = 0; k < sizeof row / sizeof row[0]; k++) {
			double got = num_f32((uint32_t)row[k].got), due = row[k].due;
			bool good = isnan(due)                               ? row[k].got == 0x7fffffff
			            : fabs(due) > 0x1.fffffep127 || due == 0 ? got == (double)(float)due
			            : fabs(due) < 0x1p-126                   ? fabs(got - due) <= 0x1p-149
			                                                     : fabs(got - due) <= fabs(due) * row[k].bound;
			want_msg(good, "row %u of %a (and %a): %a, not %a", k, x, y, got, due);
		}
	}
}
END_TEST

START_TEST(test_approx_specials)
{
	const struct num_mode approx = { .rnd = CPTX_APPROX }, ftz = { .rnd = CPTX_APPROX, .ftz = true };
	const uint64_t inf = 0x7f800000, minus = 0x80000000, nan = 0x7fffffff, one = num_bits32(1), large = num_bits32(0x1p127f);
	want(num_rcp(CPTX_F32, minus, &approx) == (minus | inf) && num_rcp(CPTX_F32, minus | inf, &approx) == minus);
	want(num_rcp(CPTX_F32, 1, &ftz) == inf && num_rcp(CPTX_F32, num_bits32(-0x1p127f), &ftz) == minus);
	want(num_sqrt(CPTX_F32, minus, &approx) == minus && num_sqrt(CPTX_F32, num_bits32(-1), &approx) == nan);
	want(num_sqrt(CPTX_F32, minus | 1, &ftz) == minus && num_sqrt(CPTX_F32, inf, &ftz) == inf);
	want(num_rsqrt(CPTX_F32, minus, &nothing) == (minus | inf) && num_rsqrt(CPTX_F32, inf, &nothing) == 0);
	want(num_rsqrt(CPTX_F32, minus | 1, &ftz) == (minus | inf) && num_rsqrt(CPTX_F32, num_bits32(-1), &ftz) == nan);
	want(num_div(CPTX_F32, inf, large, &approx) == nan && num_div(CPTX_F32, num_bits32(-5), large, &approx) == minus);
	want(num_div(CPTX_F32, large, num_bits32(0x1p126f), &approx) == num_bits32(2) &&
	     num_div(CPTX_F32, one, inf, &approx) == 0);
	want(num_div(CPTX_F32, large, large, &(struct num_mode){ .rnd = CPTX_FULL }) == one);
	want(num_ex2(CPTX_F32, minus | inf, &nothing) == 0 && num_ex2(CPTX_F32, minus | 1, &ftz) == one &&
	     num_ex2(CPTX_F32, nan, &ftz) == nan);
	want(num_ex2(CPTX_F32, num_bits32(-130), &nothing) == num_bits32(0x1p-130f) &&
	     num_ex2(CPTX_F32, num_bits32(-130), &ftz) == 0);
	want(num_lg2(minus, &nothing) == (minus | inf) && num_lg2(1, &ftz) == (minus | inf) &&
	     num_lg2(minus | 1, &nothing) == nan);
	want(num_lg2(minus | 1, &ftz) == (minus | inf) && num_lg2(inf, &nothing) == inf &&
	     num_lg2(1, &nothing) == num_bits32(-149));
	want(num_sin(inf, &nothing) == nan && num_sin(minus, &nothing) == minus && num_sin(minus | 1, &ftz) == minus);
	want(num_cos(minus | inf, &nothing) == nan && num_cos(1, &ftz) == one);
	want(num_tanh(CPTX_F32, minus | inf, &nothing) == num_bits32(-1) && num_tanh(CPTX_F32, minus, &nothing) == minus);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned a = 0; a < 65536; a++) {
			const struct ref_format *f = &ref_formats[k];
			double x = num_to_f32(f->type, a);
			want(num_tanh(f->type, a, &nothing) == ref_encode(f, tanh(x), CPTX_RN, false));
			want(num_ex2(f->type, a, &nothing) == ref_encode(f, exp2(x), CPTX_RN, false));
		}
	want(num_ex2(CPTX_F16X2, 0x3c00c000, &nothing) == 0x40003400);
	want(num_ex2(CPTX_BF16, num_from_f32(CPTX_BF16, -130, NULL), &ftz) == 0);
	/* upper halves of f64 */
	want(num_rcp(CPTX_F64, num_bits64(4) | 0xffffffff, &ftz) == num_bits64(0.25) &&
	     num_rcp(CPTX_F64, 0x0008000000000000, &ftz) == num_bits64(INFINITY));
	want(num_rcp(CPTX_F64, num_bits64(-0x1p1023), &ftz) == num_bits64(-0.0) &&
	     num_rsqrt(CPTX_F64, num_bits64(4), &ftz) == num_bits64(0.5));
	uint64_t third = num_rcp(CPTX_F64, num_bits64(3), &ftz);
	want(!(third & UINT32_MAX) && fabs(num_f64(third) * 3 - 1) < 0x1p-20);
	want(num_rsqrt(CPTX_F64, num_bits64(-4), &nothing) == 0xfff8000000000000 &&
	     fabs(num_f64(num_rsqrt(CPTX_F64, num_bits64(2), &nothing)) - M_SQRT1_2) < 0x1p-52);
	want(isnan(num_f64(num_rsqrt(CPTX_F64, num_bits64(-4), &ftz))) &&
	     num_rsqrt(CPTX_F64, num_bits64(-0.0), &ftz) == num_bits64(-INFINITY));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("num");
	TCase *t = tcase_create("float");
	tcase_set_timeout(t, 300);
	tcase_add_test(t, test_f32);
	tcase_add_test(t, test_f64);
	tcase_add_test(t, test_halves);
	tcase_add_test(t, test_extremes);
	tcase_add_test(t, test_approx);
	tcase_add_test(t, test_approx_specials);
	suite_add_tcase(s, t);
	return test_main("num", s);
}
