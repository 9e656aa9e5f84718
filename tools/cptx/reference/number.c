/* SPDX-License-Identifier: MIT */
#include "reference/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t number_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

bool number_is_float(enum cptx_type t) { return t == CPTX_F16 || t == CPTX_BF16 || t == CPTX_F32 || t == CPTX_F64; }

bool number_has(enum cptx_type t)
{
	const char *name = cptx_type_name(t);

	return number_is_float(t) ||
	       (name && strchr("usb", *name) && cptx_type_bits(t) >= 8 && cptx_type_bits(t) <= 64 && !strchr(name, 'x'));
}

/* Rounds to `digits` binary digits, with the exponent of the least normal number; overflow gives infinity's bits (of types
 * that have none, those of NaN or of the largest number). */
static uint64_t small_float(double v, int digits, int least, uint64_t infinity)
{
	int e;
	double a = fabs(v);

	if (isnan(v))
		return infinity | infinity >> 1;
	if (a == 0)
		return 0;
	if (isinf(v))
		return infinity;
	frexp(a, &e);
	e = e - 1 < least ? least : e - 1;
	double scaled = nearbyint(ldexp(a, digits - 1 - e)); /* to nearest even, the default of the host */
	uint64_t bits = (uint64_t)scaled + ((uint64_t)(e - least) << (digits - 1));
	return bits < infinity ? bits : infinity;
}

uint64_t number_bits(enum cptx_type t, double v)
{
	uint64_t u = 0;
	float f = (float)v;
	unsigned bits = cptx_type_bits(t);

	switch (t) {
	case CPTX_F16: return small_float(v, 11, -14, 0x7c00) | (signbit(v) ? 0x8000 : 0);
	case CPTX_BF16:
		if ((double)f != v) /* else the upper half, rounded: what buffers of many numbers are filled by */
			return small_float(v, 8, -126, 0x7f80) | (signbit(v) ? 0x8000 : 0);
		memcpy(&u, &f, sizeof f);
		return (u + 0x7fff + (u >> 16 & 1)) >> 16;
	case CPTX_E5M2: return small_float(v, 3, -14, 0x7c) | (signbit(v) ? 0x80 : 0);
	case CPTX_E4M3: return small_float(v, 4, -6, 0x7f) | (signbit(v) ? 0x80 : 0);
	case CPTX_E3M2: return small_float(v, 3, -2, 0x1f) | (signbit(v) ? 0x20 : 0);
	case CPTX_E2M3: return small_float(v, 4, 0, 0x1f) | (signbit(v) ? 0x20 : 0);
	case CPTX_E2M1: return small_float(v, 2, 0, 7) | (signbit(v) ? 8 : 0);
	case CPTX_UE4M3: return small_float(v, 4, -6, 0x7f);
	case CPTX_UE8M0: return small_float(v, 1, -126, 0xff);
	case CPTX_TF32:
	case CPTX_F32: memcpy(&u, &f, sizeof f); return u;
	case CPTX_F64: memcpy(&u, &v, sizeof v); return u;
	default: u = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v; return bits >= 64 ? u : u & ((UINT64_C(1) << bits) - 1);
	}
}

double number_most(enum cptx_type type) { return type == CPTX_E4M3 ? 448 : type == CPTX_E5M2 ? 57344 : INFINITY; }

double number_saturated(enum cptx_type type, double v) { return fmin(fmax(v, -number_most(type)), number_most(type)); }

uint32_t number_packed_bits(enum cptx_type t)
{
	return t == CPTX_E2M1 ? 4 : t == CPTX_E2M3 || t == CPTX_E3M2 ? 6 : t == CPTX_TF32 ? 32 : cptx_type_bits(t);
}

/* Of types without infinities: an exponent above `mantissa` bits, biased so that the least normal number has `least`. */
static double small_value(uint64_t bits, int exponent, int mantissa, int least)
{
	int e = (int)(bits >> mantissa) & ((1 << exponent) - 1), m = (int)bits & ((1 << mantissa) - 1);
	double v = e ? ldexp((1 << mantissa) + m, e - 1 + least - mantissa) : ldexp(m, least - mantissa);

	return bits >> (exponent + mantissa) & 1 ? -v : v;
}

double number_value(enum cptx_type t, uint64_t bits)
{
	float f;
	double d;
	uint32_t u = (uint32_t)bits;

	switch (t) {
	case CPTX_BF16: u <<= 16; /* fall through */
	case CPTX_TF32:
	case CPTX_F32: memcpy(&f, &u, sizeof f); return (double)f;
	case CPTX_F64: memcpy(&d, &bits, sizeof d); return d;
	case CPTX_F16: break;
	case CPTX_E5M2: return small_value(bits, 5, 2, -14);
	case CPTX_E4M3:
	case CPTX_UE4M3: return small_value(bits, 4, 3, -6);
	case CPTX_E3M2: return small_value(bits, 3, 2, -2);
	case CPTX_E2M3: return small_value(bits, 2, 3, 0);
	case CPTX_E2M1: return small_value(bits, 2, 1, 0);
	case CPTX_UE8M0: return ldexp(1, (int)bits - 127);
	default: return (double)bits;
	}
	int e = u >> 10 & 31, mantissa = u & 1023;
	double v = e == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
	           : e     ? ldexp(1024 + mantissa, e - 25)
	                   : ldexp(mantissa, -24);
	return u & 0x8000 ? -v : v;
}

bool number_dims(const char *text, uint64_t *dims, size_t n, uint64_t most)
{
	for (size_t i = 0; i < n; i++) {
		char *end;
		if (*text < '0' || *text > '9')
			return false;
		errno = 0;
		dims[i] = strtoull(text, &end, 10);
		if (errno || dims[i] < 1 || dims[i] > most)
			return false;
		if (*end != (i + 1 < n ? 'x' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}
