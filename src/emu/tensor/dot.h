/* SPDX-License-Identifier: MIT */
/*
 * Sums of products as tensor cores make them.
 *
 * The products are exact.  They and the accumulator are aligned to the largest exponent among them, cut off `frac` bits
 * below it (towards zero), added exactly, and the sum is rounded once.  How many products enter one sum, how many bits are
 * kept and how the sum is rounded differs between generations: struct dot_rule.  The exponent of a product is the sum of
 * those of its factors, that of a subnormal number the lowest of its format; one with a factor of zero has none.
 *
 * Where the numbers come from: microsoft/MMA-Sim measured them for dense f16, bf16, tf32 and f64 of mma on sm_70 to sm_120,
 * for 8-bit floats on sm_89 and sm_120, for wgmma, tcgen05 and the block-scaled kinds.  That sm_90 and sm_100 do mma of
 * 8-bit floats as two of f16, and wmma of tf32 in halves, is what ptxas compiles them to.  Not measured by anyone we know
 * of: sparse A (taken as the dense sum of what is stored) and 6-bit floats.
 */
#ifndef CPTX_EMU_TENSOR_DOT_H
#define CPTX_EMU_TENSOR_DOT_H

#include <cptx/module.h>

#include <stdbool.h>
#include <stdint.h>

enum dot_out {
	DOT_F32,   /* towards zero */
	DOT_E8M13, /* the same, to 13 bits of mantissa */
	DOT_F16    /* to nearest even */
};
struct dot_rule {
	uint8_t frac; /* bits kept below the largest exponent */
	uint8_t step; /* products in one sum; what is left follows with the rounded sum as the accumulator */
	uint8_t out;
	/* Elements 0 and 1 of each four first, from zero, then 2 and 3; the accumulator is added last, to nearest.  Factors have
	 * become f16: what is subnormal in e4m3 is not. */
	bool pairs;
};
enum dot_unit { DOT_MMA, DOT_WMMA, DOT_WGMMA, DOT_TCGEN05 };
/* dtype: CPTX_F16 or CPTX_F32. */
struct dot_rule dot_rule(const cptx_target *t, enum dot_unit unit, unsigned atype, unsigned dtype);

/*
 * Operands laid open.  A: row after row.  B: in panels of 8 columns, element (k, n) at DOT_B.  The accumulator: row after
 * row. Of a sparse A, `ka` elements of a row are there, and at[] says which row of B each of them meets; NULL: element j row
 * j.
 */
enum { DOT_PANEL = 8 };
#define DOT_B(rows, k, n) (((n) / DOT_PANEL * (rows) + (k)) * DOT_PANEL + (n) % DOT_PANEL)

typedef struct dot_shape {
	unsigned m, n, k, ka;
	const uint16_t *at;
} dot_shape;

/* Floating point: values, and exponents as dot_open gives them. */
typedef struct dot_operand {
	float *v;
	int16_t *e;
} dot_operand;
enum { DOT_SPECIAL = 16000 /* the exponent of infinities and NaN */ };
/* Elements of a type in the low bits of `raw`. */
void dot_open(unsigned type, const uint32_t *raw, unsigned n, dot_operand o);
/* The same, but what counts as subnormal is that of another type. */
void dot_open_as(unsigned type, unsigned as, const uint32_t *raw, unsigned n, dot_operand o);
/* d: accumulator and result; those of f16 as f32.  sa, sb: exponents of scales of rows of A and columns of B, DOT_SPECIAL a
 * NaN; both NULL: none. */
void dot_float(const struct dot_rule *r, const dot_shape *s, dot_operand a, dot_operand b, const int16_t *sa,
               const int16_t *sb, float *d);
/* Four-bit floats with `vec` scales along k: sa[row * vec ...], sb[column * vec ...]. */
void dot_scaled(const struct dot_rule *r, const dot_shape *s, const float *a, const float *b, dot_operand sa, dot_operand sb,
                unsigned vec, float *d);

/* Integers: exact, then added to the accumulator, wrapping around or saturating. */
/* Elements of s8, u8, s4, u4. */
void dot_open_int(unsigned type, const uint32_t *raw, unsigned n, int16_t *to);
void dot_int(const dot_shape *s, const int16_t *a, const int16_t *b, bool saturate, uint32_t *d);
/* Bits: words of 32 along k, a[row][k / 32], b[column][k / 32]; `and`, else exclusive or. */
void dot_bits(const dot_shape *s, const uint32_t *a, const uint32_t *b, bool by_and, uint32_t *d);
/* f64: a chain of fma along k; rnd: CPTX_RN ...  B: b[column][k]. */
void dot_f64(const dot_shape *s, const uint64_t *a, const uint64_t *b, unsigned rnd, uint64_t *d);

#endif
