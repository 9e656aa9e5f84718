/* SPDX-License-Identifier: MIT */
#include "reference/gemm_operand.h"
#include "reference/number.h"

#include <cptx/gemm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN = 4096 /* different numbers, a power of 2 */ };

typedef struct table {
	uint64_t bits[DRAWN];
	float value[DRAWN];
} table;

void *gemm_host(size_t size, cptx_error *err)
{
	void *p = err->code == CPTX_OK ? malloc(size ? size : 1) : NULL;
	if (!p && err->code == CPTX_OK) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of host memory (%zu bytes)", size);
	}
	return p;
}

/* A normal number to one that the type has; integers get one of their range, factors one that is not negative. */
static void draw(enum cptx_type type, double normal, uint64_t *bits, float *value)
{
	double v = normal;

	if (type == CPTX_U4) {
		*value = (float)fmin(nearbyint(8 * fabs(v)), 15), *bits = (uint64_t)*value;
		return;
	}
	if (type == CPTX_S8 || type == CPTX_U8) {
		v = type == CPTX_S8 ? fmin(fmax(nearbyint(40 * v), -128), 127) : fmin(nearbyint(80 * fabs(v)), 255);
		*bits = number_bits(type, v), *value = (float)v;
		return;
	}
	if (type == CPTX_F64) /* whole numbers, whose sums f32 does not hold and f64 does */
		v = fmin(fmax(nearbyint(500 * v), -2047), 2047);
	if (type == CPTX_UE8M0)
		v = ldexp(1, (int)nearbyint(1.5 * v));
	else if (type == CPTX_UE4M3)
		v = fabs(v);
	*bits = number_bits(type, v);
	if (type == CPTX_TF32)
		*bits &= ~UINT64_C(0x1fff); /* nothing is left to round */
	*value = (float)number_value(type, *bits);
}

static void fill_table(table *t, enum cptx_type type, bool small, uint64_t *s)
{
	for (size_t i = 0; i < DRAWN; i++) {
		double u = ((double)(number_random(s) >> 11) + 1) / 9007199254740993.0,
			   v = (double)(number_random(s) >> 11) / 9007199254740992.0;
		double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
		draw(type, small ? nearbyint(fmin(fmax(normal, -2), 2)) : normal, &t->bits[i], &t->value[i]);
	}
}

/* The elements behind one another, the first in the lowest bits.  value: may be NULL. */
static void fill(void *to, float *value, uint64_t n, enum cptx_type type, bool small, uint64_t seed)
{
	table t;
	uint8_t *bytes = to;
	uint64_t s = seed * 2654435761u + 88172645463325252u, held = 0;
	uint32_t bits = number_packed_bits(type), have = 0;

	fill_table(&t, type, small, &s);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t which = number_random(&s) >> 20 & (DRAWN - 1);
		if (bits == 64) {
			memcpy(bytes, &t.bits[which], 8);
			bytes += 8;
			if (value)
				value[i] = t.value[which];
			continue;
		}
		held |= t.bits[which] << have;
		if (value)
			value[i] = t.value[which];
		for (have += bits; have >= 8; have -= 8, held >>= 8)
			*bytes++ = (uint8_t)held;
	}
	if (have)
		*bytes = (uint8_t)held;
}

void gemm_fill_normal(void *to, uint64_t n, enum cptx_type type, uint64_t seed) { fill(to, NULL, n, type, false, seed); }

static bool upload(cptx_device *dev, uint64_t *at, const void *from, uint64_t size, cptx_error *err)
{
	*at = err->code == CPTX_OK ? cptx_mem_alloc(dev, size, err) : 0;
	return err->code == CPTX_OK && cptx_mem_write(dev, *at, from, size, err);
}

float *gemm_operand_row(const gemm_operand *o, uint64_t z, uint64_t row, uint64_t *to_next)
{
	*to_next = o->across ? o->rows : 1;
	return o->value + z * o->rows * o->k + row * (o->across ? 1 : o->k);
}

static bool make_factors(gemm_operand *o, cptx_device *dev, uint64_t seed, cptx_error *err)
{
	uint64_t across = (o->k + o->vec - 1) / o->vec, n = o->rows * across;
	uint64_t size = cptx_gemm_scales_bytes(o->rows, o->k, o->vec);
	uint8_t *plain = gemm_host(n * o->count, err), *packed = gemm_host(size * o->count, err);
	float *factor = gemm_host(n * o->count * sizeof *factor, err);
	bool ok = plain && packed && factor;

	if (ok)
		fill(plain, factor, n * o->count, o->scale, false, seed);
	for (uint64_t z = 0; z < o->count && ok; z++) {
		cptx_gemm_scales_pack(packed + z * size, plain + z * n, o->rows, o->k, o->vec);
		for (uint64_t i = 0; i < o->rows; i++) {
			uint64_t step;
			float *v = gemm_operand_row(o, z, i, &step);
			for (uint64_t l = 0; l < o->k; l++)
				v[l * step] *= factor[z * n + i * across + l / o->vec];
		}
	}
	ok = ok && upload(dev, &o->scales, packed, size * o->count, err);
	free(plain);
	free(packed);
	free(factor);
	return ok;
}

/* Factors and zero points of weights, [group][row], and what the weights are by them. */
static bool make_weight_factors(gemm_operand *o, cptx_device *dev, uint64_t seed, enum cptx_type type, cptx_error *err)
{
	const uint64_t groups = o->group ? (o->k + o->group - 1) / o->group : 1, n = groups * o->rows;
	uint16_t *scale = gemm_host(n * 2, err), *zero = gemm_host(n * 2, err);
	float *factor = gemm_host(n * sizeof *factor, err), *point = gemm_host(n * sizeof *point, err);
	uint8_t *codes = gemm_host(n, err);
	bool ok = scale && zero && factor && point && codes;

	if (ok) {
		fill(scale, factor, n, type, false, seed);
		fill(codes, point, n, CPTX_U4, false, seed + 1);
		for (uint64_t i = 0; i < n; i++) {
			point[i] = o->zeros ? point[i] : o->type == CPTX_U4 ? 8 : 0;
			factor[i] = o->scale == CPTX_TYPE_NONE ? 1 : factor[i];
			zero[i] = (uint16_t)number_bits(type, (double)point[i]);
		}
		for (uint64_t i = 0; i < o->rows * o->k; i++) {
			const uint64_t at = (o->group ? i % o->k / o->group : 0) * o->rows + i / o->k;
			o->value[i] = (o->value[i] - point[at]) * factor[at];
		}
	}
	ok = ok && upload(dev, &o->scales, scale, n * 2, err) && upload(dev, &o->zeros_at, zero, n * 2, err);
	free(scale), free(zero), free(factor), free(point), free(codes);
	return ok;
}

/* type: of the factors. */
static bool make_weights(gemm_operand *o, cptx_device *dev, uint64_t seed, enum cptx_type type, cptx_error *err)
{
	const uint64_t n = o->rows * o->k, bits = number_packed_bits(o->type);
	uint8_t *plain = gemm_host(n, err), *packed = gemm_host(n, err);

	o->value = gemm_host(n * sizeof *o->value, err);
	bool ok = plain && packed && o->value;
	if (ok) {
		fill(packed, o->value, n, o->type, o->small, seed);
		for (uint64_t i = 0; i < n; i++)
			plain[i] = bits < 8 ? packed[i / 2] >> (i % 2 * 4) & 15 : packed[i];
		if (bits < 8)
			cptx_gemm_pack_weights(packed, plain, o->rows, o->k);
		ok = upload(dev, &o->at, packed, n * bits / 8, err);
	}
	free(plain), free(packed);
	return ok && make_weight_factors(o, dev, seed + 1000003, type, err);
}

/* Factors as numbers, as <cptx/gemm.h> says of wgmma.  Of 8 bits, so that products with elements are exact. */
static bool make_f32_factors(gemm_operand *o, cptx_device *dev, uint64_t seed, cptx_error *err)
{
	const uint64_t across = (o->k + o->vec - 1) / o->vec, down = o->together ? o->rows * o->count : o->rows;
	const uint64_t pitch = cptx_gemm_scale_pitch(down), blocks = (o->rows + o->block - 1) / o->block;
	const uint64_t of_one = o->block > 1 ? blocks * across : across * pitch, n = of_one * (o->together ? 1 : o->count);
	float *factor = gemm_host(n * sizeof *factor, err);
	uint16_t *unused = gemm_host(n * sizeof *unused, err);
	bool ok = factor && unused;

	if (ok)
		fill(unused, factor, n, CPTX_BF16, false, seed);
	for (uint64_t i = 0; ok && i < o->rows * o->count; i++) {
		const uint64_t z = o->together ? 0 : i / o->rows, row = o->together ? i : i % o->rows;
		for (uint64_t l = 0; l < o->k; l++)
			o->value[i * o->k + l] *=
				factor[z * of_one + (o->block > 1 ? row / o->block * across + l / o->vec : l / o->vec * pitch + row)];
	}
	ok = ok && upload(dev, &o->scales, factor, n * sizeof *factor, err);
	free(factor);
	free(unused);
	return ok;
}

/* Makes at least two of four neighbours 0, sometimes more. */
static void prune(gemm_operand *o, uint8_t *packed, uint64_t seed)
{
	const uint64_t bytes = number_packed_bits(o->type) / 8;
	uint64_t s = seed * 69069u + 5;

	for (uint64_t row = 0; row < o->rows * o->count; row++)
		for (uint64_t g = 0; g < o->k; g += 4) {
			const uint64_t drawn = number_random(&s) >> 24;
			for (uint32_t i = 0, kept = 0; i < 4 && g + i < o->k; i++) {
				const bool keep = kept < 2 && (drawn >> (4 * i) & 15) < 9;
				kept += keep;
				if (keep)
					continue;
				o->value[row * o->k + g + i] = 0;
				memset(packed + (row * o->k + g + i) * bytes, 0, bytes);
			}
		}
}

/* Compresses the elements, which lie in `dense`, and uploads values and metadata. */
static bool upload_sparse(gemm_operand *o, cptx_device *dev, uint8_t *dense, uint64_t seed, cptx_error *err)
{
	const uint64_t bytes = number_packed_bits(o->type) / 8, each = o->rows * cptx_gemm_sparse_cols(o->k) * bytes;
	const uint64_t words = cptx_gemm_sparse_meta(o->rows, o->k);
	uint8_t *values = gemm_host(each * o->count, err);
	uint32_t *meta = gemm_host(words * 4 * o->count, err);
	bool ok = values && meta;

	if (ok)
		prune(o, dense, seed);
	for (uint32_t z = 0; z < o->count && ok; z++)
		ok = cptx_gemm_sparse_pack(values + z * each, meta + z * words, dense + z * o->rows * o->k * bytes, o->type, o->rows,
		                           o->k, 0, err);
	ok =
		ok && upload(dev, &o->at, values, each * o->count, err) && upload(dev, &o->meta_at, meta, words * 4 * o->count, err);
	free(values), free(meta);
	return ok;
}

bool gemm_operand_make(gemm_operand *o, cptx_device *dev, uint64_t seed, cptx_error *err)
{
	if (o->weights)
		return make_weights(o, dev, seed, o->scale == CPTX_TYPE_NONE ? CPTX_BF16 : o->scale, err);
	uint64_t n = o->rows * o->k * o->count, size = (n * number_packed_bits(o->type) + 7) / 8;
	void *packed = gemm_host(size, err);

	o->value = gemm_host(n * sizeof *o->value, err);
	bool ok = packed && o->value;
	if (ok) {
		fill(packed, o->value, n, o->type, o->small, seed);
		ok = o->sparse ? upload_sparse(o, dev, packed, seed, err) : upload(dev, &o->at, packed, size, err);
	}
	free(packed);
	return ok && (!o->vec || (o->scale == CPTX_F32 ? make_f32_factors(o, dev, seed + 1000003, err)
	                                               : make_factors(o, dev, seed + 1000003, err)));
}

void gemm_operand_free(gemm_operand *o, cptx_device *dev)
{
	cptx_mem_free(dev, o->at);
	cptx_mem_free(dev, o->scales), cptx_mem_free(dev, o->zeros_at), cptx_mem_free(dev, o->meta_at);
	free(o->value);
}
