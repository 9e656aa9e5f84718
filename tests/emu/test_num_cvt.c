/* SPDX-License-Identifier: MIT */
/* Conversions of the emulator against formats by their definition, the host's conversions and the manual's examples. */
#include "num_ref.h"

START_TEST(test_decode)
{
	for (unsigned i = 0; i < REF_FORMATS; i++) {
		const struct ref_format *f = &ref_formats[i];
		unsigned width = f->exp + f->man;
		for (unsigned code = 0; code < 1u << (width + f->sign); code++) {
			unsigned mag = code & ((1u << width) - 1);
			float got = num_to_f32(f->type, code);
			double due = ref_value(f, mag);
			if (mag > f->max && f->inf && mag == f->max + 1u)
				due = INFINITY;
			else if (mag > f->max) {
				want_msg(got != got, "%u: %x is no NaN", f->type, code);
				continue;
			}
			want_msg(fabs((double)got) == due && !signbit(got) == !(code >> width), "%u: %x is %a, not %a", f->type, code,
			         (double)got, due);
			want(num_bits64(num_to_f64(f->type, code)) == num_bits64((double)got));
		}
	}
	want(num_to_f32(CPTX_UE8M0, 0) == 0x1p-127f && num_to_f32(CPTX_UE8M0, 127) == 1 && isnan(num_to_f32(CPTX_UE8M0, 255)));
	for (unsigned code = 0; code < 255; code++)
		want((double)num_to_f32(CPTX_UE8M0, code) == ldexp(1, (int)code - 127));
	want(num_to_f32(CPTX_TF32, 0x3f801fff) == 1);
}
END_TEST

static void encode_one(const struct ref_format *f, float x)
{
	static const uint16_t all[] = { CPTX_RN, CPTX_RZ, CPTX_RM, CPTX_RP, CPTX_RNA };
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
		for (unsigned sat = 0; sat < 2; sat++) {
			float y = f->sign ? x : fabsf(x); /* unsigned formats hold magnitudes */
			unsigned got = (unsigned)num_from_f32(f->type, y, &(struct num_mode){ .rnd = all[i], .satfinite = sat });
			unsigned due = ref_encode(f, y, all[i], sat);
			want_msg(got == due, "type %u, rounding %u, satfinite %u: %a is %x, not %x", f->type, all[i], sat, (double)y,
			         got, due);
		}
}

START_TEST(test_encode)
{
	uint64_t state = 1;
	for (unsigned i = 0; i < REF_FORMATS; i++) {
		const struct ref_format *f = &ref_formats[i];
		unsigned step = f->max > 0xff ? 7 : 1;
		for (unsigned code = 0; code <= f->max; code += step) { /* numbers, middles, and their neighbours */
			float at = (float)ref_value(f, code), middle = (float)((ref_value(f, code) + ref_value(f, code + 1)) / 2);
			float near[] = {
				at, middle, nextafterf(at, 1e38f), nextafterf(at, 0), nextafterf(middle, 1e38f), nextafterf(middle, 0)
			};
			for (unsigned k = 0; k < 6; k++) {
				encode_one(f, near[k]);
				encode_one(f, -near[k]);
			}
		}
		for (unsigned k = 0; k < 20000; k++)
			encode_one(f, num_f32((uint32_t)(ref_random(&state) >> 32)));
		static const float special[] = { 0, INFINITY, NAN, 0x1p-149f, 0x1.fffffep127f, 465, 464, 463.9f,
			                             7, 30,       6,   5,         0x1p-10f };
		for (unsigned k = 0; k < sizeof special / sizeof special[0]; k++) {
			encode_one(f, special[k]);
			encode_one(f, -special[k]);
		}
		for (unsigned k = 0; k < 65536; k++) { /* from 16 bits, with nothing else said */
			want(num_from_f32(f->type, num_from_f16(k), NULL) == ref_encode(f, num_from_f16(k), CPTX_RN, false) || !f->sign);
			want(num_from_f32(f->type, num_from_bf16(k), NULL) == ref_encode(f, num_from_bf16(k), CPTX_RN, false) ||
			     !f->sign);
		}
	}
}
END_TEST

/* tf32 has the exponents of f32, so bits do. */
START_TEST(test_tf32)
{
	uint64_t state = 2;
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t x = (uint32_t)(ref_random(&state) >> 32), low = x & 0x1fff, up = x - low + 0x2000;
		if ((x & 0x7fffffff) > 0x7f800000) {
			want(num_cvt(CPTX_TF32, CPTX_F32, x, &nothing) == 0x7fffe000);
			continue;
		}
		uint32_t rna = low >= 0x1000 ? up : x - low, rn = low > 0x1000 || (low == 0x1000 && x & 0x2000) ? up : x - low;
		want(num_cvt(CPTX_TF32, CPTX_F32, x, &(struct num_mode){ .rnd = CPTX_RNA }) == rna);
		want(num_cvt(CPTX_TF32, CPTX_F32, x, &nothing) == rn);
		want(num_cvt(CPTX_TF32, CPTX_F32, x, &(struct num_mode){ .rnd = CPTX_RZ }) == x - low);
	}
	want(num_cvt(CPTX_TF32, CPTX_F32, 0x7f7fffff, &(struct num_mode){ .rnd = CPTX_RNA }) == 0x7f800000);
	want(num_cvt(CPTX_TF32, CPTX_F32, 0xff800000, &(struct num_mode){ .rnd = CPTX_RNA, .satfinite = true }) == 0xff7fe000);
	want(num_cvt(CPTX_TF32, CPTX_F32, 0xff800000, &(struct num_mode){ .relu = true }) == 0);
}
END_TEST

START_TEST(test_ue8m0)
{
	uint64_t state = 3;
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t x = (uint32_t)(ref_random(&state) >> 32) & (i & 1 ? 0xffffffff : 0x80ffffff);
		double mag = fabs((double)num_f32(x));
		for (unsigned sat = 0; sat < 2; sat++)
			for (unsigned up = 0; up < 2; up++) {
				unsigned due = 0; /* the first power of two that is not below, or the last that is not above */
				while (due < 254 && (up ? ldexp(1, (int)due - 127) < mag : ldexp(1, (int)due - 126) <= mag))
					due++;
				if (mag != mag || (!sat && (mag > 0x1.fffffep127 || (up && mag > 0x1p127))))
					due = 255;
				unsigned got = (unsigned)num_from_f32(CPTX_UE8M0, num_f32(x),
				                                      &(struct num_mode){ .rnd = up ? CPTX_RP : CPTX_RZ, .satfinite = sat });
				want_msg(got == due, "%a up %u sat %u: %x, not %x", (double)num_f32(x), up, sat, got, due);
			}
	}
	want(num_cvt(CPTX_BF16X2, CPTX_UE8M0X2, 0x00ff, &nothing) == 0x00407fff);
	want(num_cvt(CPTX_UE8M0X2, CPTX_BF16X2, 0x40003f80, &(struct num_mode){ .rnd = CPTX_RZ }) == 0x807f);
}
END_TEST

/* The carry of the random bits and those cut off, by adding to the bits of an f32 that stays normal. */
START_TEST(test_random_rounding)
{
	static const struct {
		uint8_t type, cut, bits; /* bits of an f32 cut off; random bits */
		int16_t bias, lo, hi;    /* exponents that stay normal */
	} row[] = { { CPTX_F16X2, 13, 13, 15, -14, 14 }, { CPTX_BF16X2, 16, 16, 127, -100, 100 },
		        { CPTX_E4M3X4, 20, 16, 7, -6, 6 },   { CPTX_E5M2X4, 21, 16, 15, -14, 14 },
		        { CPTX_E3M2X4, 21, 16, 3, -2, 2 },   { CPTX_E2M3X4, 20, 16, 1, 0, 0 },
		        { CPTX_E2M1X4, 22, 16, 1, 0, 0 } };
	uint64_t state = 4;
	for (unsigned r = 0; r < sizeof row / sizeof row[0]; r++) {
		struct num_packing p = num_packing(row[r].type);
		for (unsigned turn = 0; turn < 20000; turn++) {
			uint32_t src[4], rbits = (uint32_t)(ref_random(&state) >> 32);
			uint32_t got, due = 0;
			for (unsigned i = 0; i < p.count; i++) {
				uint64_t n = ref_random(&state);
				int exp = row[r].lo + (int)(n % (unsigned)(row[r].hi - row[r].lo + 1));
				src[i] = (uint32_t)(exp + 127) << 23 | (n >> 40 & 0x7fffff) | (n >> 63) << 31;
				uint32_t part = p.count == 2 ? (i ? rbits : rbits >> 16) : i < 2 ? rbits >> 16 : rbits;
				if (row[r].type == CPTX_E2M1X4)
					part = i < 2 ? (rbits >> 16 & 0xff00) | (rbits >> 8 & 0xff) : (rbits >> 8 & 0xff00) | (rbits & 0xff);
				part &= (1u << row[r].bits) - 1;
				uint32_t mag = (src[i] & 0x7fffffff) + (part << (row[r].cut - row[r].bits));
				mag = (mag >> row[r].cut) - ((uint32_t)(127 - row[r].bias) << (23 - row[r].cut));
				unsigned width = row[r].type == CPTX_F16X2 || row[r].type == CPTX_BF16X2    ? 16
				                 : row[r].type == CPTX_E3M2X4 || row[r].type == CPTX_E2M3X4 ? 6
				                                                                            : p.bits;
				due |= (mag | (src[i] >> 31) << (width - 1)) << (p.count - 1 - i) * p.bits;
			}
			got = (uint32_t)num_cvt_pack(row[r].type, src,
			                             &(struct num_mode){ .rnd = CPTX_RS, .satfinite = true, .rbits = rbits });
			want_msg(got == due, "row %u: %x, not %x", r, got, due);
		}
	}
}
END_TEST

/* ---- floating point to integers: through long double, which holds all of both ---- */
static const uint8_t ints[] = { CPTX_U8, CPTX_S8, CPTX_U16, CPTX_S16, CPTX_U32, CPTX_S32, CPTX_U64, CPTX_S64 };
static unsigned int_width(unsigned type) { return cptx_type_bits((enum cptx_type)type); }
static bool int_signed(unsigned type) { return type == CPTX_S8 || type == CPTX_S16 || type == CPTX_S32 || type == CPTX_S64; }

static uint64_t ref_to_int(unsigned dtype, unsigned atype, double x, unsigned rounding)
{
	unsigned width = int_width(dtype);
	bool is_signed = int_signed(dtype);
	if (x != x) {
		uint64_t top = (uint64_t)1 << (width - 1);
		return atype != CPTX_F64 && width < 64 ? 0 : is_signed ? 0 - top : top;
	}
	fesetround(host_roundings[rounding]);
	volatile long double n = rintl((long double)x);
	fesetround(FE_TONEAREST);
	long double least = is_signed ? -ldexpl(1, (int)width - 1) : 0, most = ldexpl(1, (int)(width - is_signed)) - 1;
	n = n < least ? least : n > most ? most : n;
	return is_signed ? (uint64_t)(int64_t)n : (uint64_t)n;
}

static void to_ints(unsigned atype, uint64_t a, double x)
{
	static const uint16_t integer[] = { CPTX_RNI, CPTX_RZI, CPTX_RMI, CPTX_RPI };
	for (unsigned i = 0; i < sizeof ints; i++)
		for (unsigned r = 0; r < 4; r++) {
			uint64_t got = num_cvt(ints[i], atype, a, &(struct num_mode){ .rnd = integer[r] }),
					 due = ref_to_int(ints[i], atype, x, r);
			want_msg(got == due, "type %u of %a (%u), rounding %u: %llx, not %llx", ints[i], x, atype, r,
			         (unsigned long long)got, (unsigned long long)due);
		}
}

START_TEST(test_to_integers)
{
	uint64_t state = 5;
	for (unsigned a = 0; a < 65536; a++) {
		to_ints(CPTX_F16, a, num_to_f32(CPTX_F16, a));
		to_ints(CPTX_BF16, a, num_to_f32(CPTX_BF16, a));
	}
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t n = ref_random(&state);
		uint32_t f = (uint32_t)(n >> 32);
		if (i & 1) /* around the integers */
			f = (f & 0x807fffff) | (uint32_t)(126 + n % 66) << 23;
		to_ints(CPTX_F32, f, (double)num_f32(f));
		if (i & 1)
			n = (n & 0x800fffffffffffff) | (1022 + ref_random(&state) % 66) << 52;
		to_ints(CPTX_F64, n, num_f64(n));
	}
	want(num_cvt(CPTX_S32, CPTX_F32, 1, &(struct num_mode){ .rnd = CPTX_RPI }) == 1);
	want(num_cvt(CPTX_S32, CPTX_F32, 1, &(struct num_mode){ .rnd = CPTX_RPI, .ftz = true }) == 0);
}
END_TEST

/* ---- integers to floating point, and floating point to other sizes, by the host's conversions ---- */
START_TEST(test_from_integers)
{
	uint64_t state = 6;
	for (unsigned i = 0; i < 100000; i++) {
		volatile uint64_t n = ref_random(&state) >> (i % 60);
		for (unsigned r = 0; r < 4; r++) {
			struct num_mode m = { .rnd = roundings[r] };
			fesetround(host_roundings[r]);
			volatile float u = (float)n, s = (float)(int64_t)n, s32 = (float)(int32_t)n;
			volatile double du = (double)n, ds = (double)(int64_t)n, d16 = (double)(int16_t)n;
			fesetround(FE_TONEAREST);
			want(num_cvt(CPTX_F32, CPTX_U64, n, &m) == num_bits32(u));
			want(num_cvt(CPTX_F32, CPTX_S64, n, &m) == num_bits32(s));
			want(num_cvt(CPTX_F32, CPTX_S32, n, &m) == num_bits32(s32));
			want(num_cvt(CPTX_F64, CPTX_U64, n, &m) == num_bits64(du));
			want(num_cvt(CPTX_F64, CPTX_S64, n, &m) == num_bits64(ds));
			want(num_cvt(CPTX_F64, CPTX_S16, n, &m) == num_bits64(d16));
		}
	}
	for (unsigned r = 0; r < 4; r++)
		for (unsigned n = 0; n < 65536; n++)
			for (unsigned k = 0; k < 2; k++) {
				struct num_mode m = { .rnd = roundings[r] };
				unsigned type = k ? CPTX_BF16 : CPTX_F16;
				want(num_cvt(type, CPTX_U16, n, &m) == ref_encode(&ref_formats[k], n, roundings[r], false));
				want(num_cvt(type, CPTX_S16, n, &m) == ref_encode(&ref_formats[k], (int16_t)n, roundings[r], false));
				want(num_cvt(type, CPTX_S8, n, &m) == ref_encode(&ref_formats[k], (int8_t)n, roundings[r], false));
			}
	want(num_cvt(CPTX_F16, CPTX_U32, 70000, &(struct num_mode){ .sat = true }) == 0x3c00);
}
END_TEST

/* As an H200 has it: quiet, with the sign and the upper bits of what a NaN of f64 carries. */
static uint64_t narrow_nan(uint64_t n, unsigned width, unsigned man)
{
	uint64_t ones = ((uint64_t)1 << (width - 1 - man)) - 1, payload = (n & (((uint64_t)1 << 52) - 1)) >> (52 - man);
	return n >> 63 << (width - 1) | ones << man | payload | (uint64_t)1 << (man - 1);
}

START_TEST(test_sizes)
{
	uint64_t state = 7;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t n = ref_random(&state);
		if (i & 1)
			n = (n & 0x800fffffffffffff) | (1023 - 160 + ref_random(&state) % 320) << 52;
		volatile double x = num_f64(n);
		for (unsigned r = 0; r < 4; r++) {
			struct num_mode m = { .rnd = roundings[r] };
			fesetround(host_roundings[r]);
			volatile float f = (float)x;
			fesetround(FE_TONEAREST);
			want(num_cvt(CPTX_F32, CPTX_F64, n, &m) == (x != x ? narrow_nan(n, 32, 23) : num_bits32(f)));
			for (unsigned k = 0; k < 2; k++) {
				const struct ref_format *h = &ref_formats[k];
				want(num_cvt(h->type, CPTX_F64, n, &m) ==
				     (x != x ? narrow_nan(n, 16, h->man) : ref_encode(h, x, roundings[r], false)));
			}
		}
		uint32_t a = (uint32_t)n;
		if (!isnan(num_f32(a)))
			want(num_cvt(CPTX_F64, CPTX_F32, a, &nothing) == num_bits64((double)num_f32(a)));
	}
	want(num_cvt(CPTX_F64, CPTX_F32, 1, &(struct num_mode){ .ftz = true }) == 0);
	want(num_cvt(CPTX_F32, CPTX_F64, num_bits64(-0x1p-140), &(struct num_mode){ .ftz = true }) == 0x80000000);
	want(num_cvt(CPTX_F16, CPTX_F32, num_bits32(0x1p-24f), &(struct num_mode){ .ftz = true }) == 1); /* f32 only */
	want(num_cvt(CPTX_F32, CPTX_BF16, 1, &(struct num_mode){ .ftz = true }) == 0);
	want(num_cvt(CPTX_F64, CPTX_F32, 0x7fc00001, &(struct num_mode){ .sat = true }) == 0);
	want(isnan(num_f64(num_cvt(CPTX_F64, CPTX_F32, 0xff800001, &nothing))));
	for (unsigned ftz = 0; ftz < 2; ftz++) { /* as an H200 has it */
		const struct num_mode m = { .ftz = ftz };
		want(num_cvt(CPTX_F32, CPTX_F64, 0xfff8000020000001, &m) == 0xffc00001);
		want(num_cvt(CPTX_F32, CPTX_F32, 0xff800001, &m) == (ftz ? 0x7fffffff : 0xff800001));
		want(num_cvt(CPTX_F64, CPTX_F32, 0xffad7454, &m) == (ftz ? 0x7fffffffe0000000 : 0xfffdae8a80000000));
	}
	want(num_cvt(CPTX_F64, CPTX_F64, 0x7ff0000000000001, &nothing) == 0x7ff0000000000001);
	want(num_cvt(CPTX_F32, CPTX_BF16, 0xff81, &nothing) == 0xff810000 &&
	     num_cvt(CPTX_F32, CPTX_F16, 0xfc01, &nothing) == 0x7fffffff);
	want(num_cvt(CPTX_F32, CPTX_F32, num_bits32(-2), &(struct num_mode){ .sat = true }) == 0);
	want(num_cvt(CPTX_F32, CPTX_F32, num_bits32(2), &(struct num_mode){ .sat = true }) == num_bits32(1));
	for (unsigned a = 0; a < 65536; a++) { /* integral values */
		double x = num_to_f32(CPTX_F16, a);
		uint64_t even = num_cvt(CPTX_F16, CPTX_F16, a, &(struct num_mode){ .rnd = CPTX_RNI });
		uint64_t down = num_cvt(CPTX_F16, CPTX_F16, a, &(struct num_mode){ .rnd = CPTX_RMI });
		if (x != x)
			want(even == 0x7fff && down == 0x7fff);
		else
			want(even == num_to_f16((float)rint(x)) && down == num_to_f16((float)floor(x)));
	}
	want(num_cvt(CPTX_F64, CPTX_F64, num_bits64(-0x1.8p60), &(struct num_mode){ .rnd = CPTX_RPI }) == num_bits64(-0x1.8p60));
	want(num_cvt(CPTX_F32, CPTX_F32, num_bits32(-0.5f), &(struct num_mode){ .rnd = CPTX_RPI }) == 0x80000000);
}
END_TEST

START_TEST(test_integers)
{
	uint64_t state = 8;
	const struct num_mode sat = { .sat = true };
	for (unsigned k = 0; k < 20000; k++) {
		uint64_t n = ref_random(&state) >> (k % 64);
		n = k & 64 ? 0 - n : n;
		for (unsigned i = 0; i < sizeof ints; i++)
			for (unsigned j = 0; j < sizeof ints; j++) {
				unsigned from = int_width(ints[i]), to = int_width(ints[j]);
				uint64_t mask = UINT64_MAX >> (64 - from);
				long double x = int_signed(ints[i]) ? (long double)((int64_t)(n << (64 - from)) >> (64 - from))
				                                    : (long double)(n & mask);
				long double least = int_signed(ints[j]) ? -ldexpl(1, (int)to - 1) : 0,
							most = ldexpl(1, (int)(to - int_signed(ints[j]))) - 1;
				long double y = x < least ? least : x > most ? most : x;
				uint64_t due = y < 0 ? (uint64_t)(int64_t)y : (uint64_t)y;
				want(num_cvt(ints[j], ints[i], n, &sat) == due);
				uint64_t bits = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x, cut = bits & UINT64_MAX >> (64 - to);
				if (int_signed(ints[j]) && cut >> (to - 1))
					cut |= ~(UINT64_MAX >> (64 - to));
				want(num_cvt(ints[j], ints[i], n, &nothing) == cut);
			}
	}
}
END_TEST

START_TEST(test_packed)
{
	const struct num_mode sat = { .satfinite = true };
	uint32_t two[] = { num_bits32(1), num_bits32(-2) },
			 four[] = { num_bits32(1), num_bits32(2), num_bits32(3), num_bits32(-4) };
	want(num_cvt_pack(CPTX_F16X2, two, &nothing) == 0x3c00c000);
	want(num_cvt_pack(CPTX_F16X2, two, &(struct num_mode){ .relu = true }) == 0x3c000000);
	want(num_cvt_pack(CPTX_BF16X2, two, &nothing) == 0x3f80c000);
	want(num_cvt_pack(CPTX_E4M3X2, two, &sat) == 0x38c0);
	want(num_cvt_pack(CPTX_E2M1X2, two, &sat) == 0x2c);
	want(num_cvt_pack(CPTX_E2M3X2, two, &sat) == 0x0830);
	want(num_cvt_pack(CPTX_E2M1X4, four, &(struct num_mode){ .rnd = CPTX_RS, .satfinite = true }) == 0x245e);
	want(num_cvt_pack(CPTX_E5M2X4, four, &(struct num_mode){ .rnd = CPTX_RS, .satfinite = true }) == 0x3c4042c4);
	want(num_cvt(CPTX_F16X2, CPTX_E4M3X2, 0x38c0, &nothing) == 0x3c00c000);
	want(num_cvt(CPTX_F16X2, CPTX_E5M2X2, 0x7f7c, &nothing) == 0x7fff7c00);
	want(num_cvt(CPTX_F16X2, CPTX_E2M1X2, 0x2c, &nothing) == 0x3c00c000);
	want(num_cvt(CPTX_E2M1X2, CPTX_F16X2, 0x3c00c000, &sat) == 0x2c);
	want(num_cvt(CPTX_E3M2X2, CPTX_BF16X2, 0x7fffff80, &sat) == 0x1f3f); /* NaN and -infinity */
	for (unsigned i = 0; i < 256; i++) {                                 /* there and back */
		uint64_t h = num_cvt(CPTX_F16X2, CPTX_E4M3X2, i << 8, &nothing), b = num_cvt(CPTX_BF16X2, CPTX_E5M2X2, i, &nothing);
		want(num_cvt(CPTX_E4M3X2, CPTX_F16X2, h, &sat) == ((i & 0x7f) == 0x7f ? 0x7f00u : i << 8));
		want(num_cvt(CPTX_E5M2X2, CPTX_BF16X2, b, &sat) == ((i & 0x7f) > 0x7c    ? 0x7fu
		                                                    : (i & 0x7f) == 0x7c ? (i & 0x80) | 0x7b
		                                                                         : i)); /* infinity becomes the largest */
	}
	/* s2f6: bytes as they are with a scale of 2^6; divided on the way back */
	const struct num_mode scale = { .scaled = true, .scale = 0x8585, .satfinite = true };
	for (int i = -128; i < 128; i++) {
		uint64_t b = num_cvt(CPTX_BF16X2, CPTX_S2F6X2, (uint8_t)i, &scale);
		want(num_to_f32(CPTX_BF16, b & 0xffff) == (float)i && b >> 16 == 0);
		want(num_cvt(CPTX_S2F6X2, CPTX_BF16X2, b, &scale) == (uint8_t)i);
		b = num_cvt(CPTX_BF16X2, CPTX_S2F6X2, (uint64_t)(uint8_t)i << 8, &nothing);
		want(num_to_f32(CPTX_BF16, b >> 16) == (float)i / 64);
	}
	uint32_t wide[] = { num_bits32(9), 0x7fffffff }, half[] = { num_bits32(0.5f / 64), num_bits32(-1.5f / 64) };
	want(num_cvt_pack(CPTX_S2F6X2, wide, &sat) == 0x7f7f);
	want(num_cvt_pack(CPTX_S2F6X2, half, &sat) == 0x00fe);
	want(num_cvt_pack(CPTX_S2F6X2, half, &(struct num_mode){ .satfinite = true, .relu = true }) == 0);
	want(num_cvt(CPTX_BF16X2, CPTX_E4M3X2, 0x3838, &(struct num_mode){ .scaled = true, .scale = 0x807e }) == 0x40003f00);
	want(num_cvt(CPTX_BF16X2, CPTX_E4M3X2, 0x3838, &(struct num_mode){ .scaled = true, .scale = 0xff7f }) == 0x7fff3f80);
	/* cvt.pack */
	want(num_cvt_pack_sat(CPTX_S16, 40000, (uint32_t)-40000, 0) == 0x7fff8000);
	want(num_cvt_pack_sat(CPTX_U8, 300, (uint32_t)-1, 0x12345678) == 0x5678ff00);
	want(num_cvt_pack_sat(CPTX_S4, 100, (uint32_t)-100, 0x12345678) == 0x34567878);
	want(num_cvt_pack_sat(CPTX_U2, 1, 7, 0x12345678) == 0x23456787);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("num_cvt");
	TCase *t = tcase_create("cvt");
	tcase_set_timeout(t, 300);
	tcase_add_test(t, test_decode);
	tcase_add_test(t, test_encode);
	tcase_add_test(t, test_tf32);
	tcase_add_test(t, test_ue8m0);
	tcase_add_test(t, test_random_rounding);
	tcase_add_test(t, test_to_integers);
	tcase_add_test(t, test_from_integers);
	tcase_add_test(t, test_sizes);
	tcase_add_test(t, test_integers);
	tcase_add_test(t, test_packed);
	suite_add_tcase(s, t);
	return test_main("num_cvt", s);
}
