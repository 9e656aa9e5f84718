/* SPDX-License-Identifier: MIT */
/* Textures: from coordinates to texels and weights, from bytes to numbers, as "Texture Fetching" of CUDA's guide says it. */
#include "emu/exec/sample.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"

#include <math.h>

/* ---- coordinates ---- */

/* Not a number is 0; what no texture is as wide as is cut off, so that it is a number of a texel. */
static double bounded(double x)
{
	const double most = 0x1p40;

	return x != x ? 0 : x < -most ? -most : x > most ? most : x;
}

static int64_t positive_rest(int64_t i, int64_t n) { return (i % n + n) % n; }

/* The number of the texel that stands for number i of n. */
static int64_t inside(const cptx_emu_texture_opt *o, unsigned d, int64_t n, int64_t i)
{
	int64_t turned;

	if (i >= 0 && i < n)
		return i;
	switch (o->normalized || o->outside[d] == CPTX_EMU_BORDER ? o->outside[d] : CPTX_EMU_CLAMP) {
	case CPTX_EMU_WRAP: return positive_rest(i, n);
	case CPTX_EMU_MIRROR: turned = positive_rest(i, 2 * n); return turned < n ? turned : 2 * n - 1 - turned;
	case CPTX_EMU_BORDER: return SAMPLE_OUTSIDE;
	default: return i < 0 ? 0 : n - 1;
	}
}

sample_axis sample_texel_at(const cptx_emu_texture_opt *o, unsigned d, uint32_t size, int64_t i)
{
	return (sample_axis){ .at = { inside(o, d, size, i) }, .weight = { 1 }, .n = 1 };
}

sample_axis sample_at(const cptx_emu_texture_opt *o, unsigned d, uint32_t size, double x, int32_t offset, bool two)
{
	enum { FRACTION = 256 /* weights have 8 bits of it, and may be 1 */ };

	x = bounded(o->normalized ? x * size : x);
	if (!two)
		return sample_texel_at(o, d, size, (int64_t)floor(x) + offset);
	double low = floor(x - 0.5), weight = floor((x - 0.5 - low) * FRACTION + 0.5) / FRACTION;
	int64_t i = (int64_t)low + offset;
	return (
		sample_axis){ .at = { inside(o, d, size, i), inside(o, d, size, i + 1) }, .weight = { 1 - weight, weight }, .n = 2 };
}

/* The table of "Cubemap Textures": which coordinate is the largest, and which two say where on that face. */
unsigned sample_face(const double v[3], double at[2])
{
	static const struct {
		int s, s_sign, t, t_sign;
	} faces[6] = { { 2, -1, 1, -1 }, { 2, 1, 1, -1 }, { 0, 1, 2, 1 }, { 0, 1, 2, -1 }, { 0, 1, 1, -1 }, { 0, -1, 1, -1 } };
	unsigned major = fabs(v[0]) >= fabs(v[1]) && fabs(v[0]) >= fabs(v[2]) ? 0 : fabs(v[1]) >= fabs(v[2]) ? 1 : 2;
	unsigned face = major * 2 + (v[major] < 0);
	double most = fabs(v[major]);

	at[0] = (faces[face].s_sign * v[faces[face].s] / most + 1) / 2;
	at[1] = (faces[face].t_sign * v[faces[face].t] / most + 1) / 2;
	return face;
}

/* ---- texels ---- */

bool sample_is_number(const cptx_emu_texture_opt *o)
{
	return o->as_fraction || o->srgb || o->channel == CPTX_EMU_F16 || o->channel == CPTX_EMU_F32;
}

static double linear_of(double c) { return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4); }

/* A channel of an integer as a number from 0 or -1 to 1. */
static double fraction(const cptx_emu_texture_opt *o, uint32_t u, unsigned channel)
{
	double f;

	switch (o->channel) {
	case CPTX_EMU_U8: f = u / 255.0; break;
	case CPTX_EMU_U16: f = u / 65535.0; break;
	case CPTX_EMU_S8: f = (int32_t)u / 127.0; break;
	default: f = (int32_t)u / 32767.0; break;
	}
	return o->srgb && channel < 3 ? linear_of(f) : f < -1 ? -1 : f;
}

static uint32_t channel_of(const cptx_emu_texture_opt *o, const unsigned char *p)
{
	uint32_t u = (uint32_t)emu_bytes(p, emu_channel_bytes(o->channel));

	switch (o->channel) {
	case CPTX_EMU_S8: return (uint32_t)(int8_t)u;
	case CPTX_EMU_S16: return (uint32_t)(int16_t)u;
	case CPTX_EMU_F16: return num_bits32(num_from_f16(u));
	default: return u;
	}
}

sample_texel sample_decode(const cptx_emu_texture_opt *o, const unsigned char *bytes)
{
	sample_texel t = { { 0 } };

	for (unsigned c = 0; c < o->channels; c++) {
		t.bits[c] = channel_of(o, bytes + c * emu_channel_bytes(o->channel));
		if (o->as_fraction || o->srgb)
			t.bits[c] = num_bits32((float)fraction(o, t.bits[c], c));
	}
	return t;
}

sample_texel sample_border(const cptx_emu_texture_opt *o)
{
	sample_texel t = { { 0 } };

	for (unsigned c = 0; c < 4; c++)
		t.bits[c] = sample_is_number(o) ? num_bits32(o->border[c]) : (uint32_t)(int64_t)bounded(o->border[c]);
	return t;
}
