/* SPDX-License-Identifier: MIT */
#include "element.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double f16(const unsigned char *p)
{
	unsigned v = p[0] | (unsigned)p[1] << 8, e = v >> 10 & 31, f = v & 1023;
	double x = e == 31 ? (f ? NAN : INFINITY) : e ? ldexp(1024 + f, (int)e - 25) : ldexp(f, -24);

	return v >> 15 ? -x : x;
}

static double f32(const unsigned char *p)
{
	float v;

	memcpy(&v, p, sizeof v);
	return (double)v;
}

static double bf16(const unsigned char *p)
{
	const unsigned char wide[4] = { 0, 0, p[0], p[1] };

	return f32(wide);
}

static double f64(const unsigned char *p)
{
	double v;

	memcpy(&v, p, sizeof v);
	return v;
}

static const san_element elements[] = { { "f16", 2, f16 }, { "bf16", 2, bf16 }, { "f32", 4, f32 }, { "f64", 8, f64 } };

const san_element *san_element_named(const char *name)
{
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
		if (!strcmp(elements[i].name, name))
			return &elements[i];
	return NULL;
}

bool san_near(const san_element *e, double tolerance, const unsigned char *a, const unsigned char *b)
{
	double x = e->value(a), y = e->value(b);

	if (!isfinite(x) || !isfinite(y))
		return (isnan(x) && isnan(y)) || x == y;
	return x == y || fabs(x - y) <= tolerance * fmax(1, fmax(fabs(x), fabs(y)));
}
