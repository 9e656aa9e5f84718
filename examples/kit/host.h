/* SPDX-License-Identifier: MIT */
/* What hosts of these examples share: a device, numbers that kernels are given, and what is right of those that they give.
 */
#ifndef KIT_HOST_H
#define KIT_HOST_H

#include <cptx/operand.h>
#include <cptx/device.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The device that CPTX_DEVICE names, else a GPU, or where there is none an emulator. */
static inline cptx_device *open_device(const char *emulator, cptx_error *err)
{
	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), err);

	if (dev || getenv("CPTX_DEVICE"))
		return dev;
	*err = (cptx_error){ .code = CPTX_OK };
	return cptx_device_open(emulator, err);
}

/* Memory of the device with what the host has. */
static inline uint64_t upload(cptx_device *dev, const void *host, size_t bytes, cptx_error *err)
{
	const uint64_t at = cptx_mem_alloc(dev, bytes, err);

	cptx_mem_write(dev, at, host, bytes, err);
	return at;
}

/* The tensor map of a dense matrix there, whose tiles are such. */
static inline cptx_tensor_map map_of(cptx_device *dev, enum cptx_type type, const cptx_tile *tile, uint64_t at,
                                     uint32_t rows, uint32_t cols, cptx_error *err)
{
	const cptx_operand_matrix matrix = { .address = at, .rows = rows, .cols = cols };
	const cptx_operand_opt operand = { .type = type, .tile = *tile };
	cptx_tensor_map_opt opt;
	cptx_tensor_map map = { 0 };

	if (cptx_operand_tensor_map(&operand, &matrix, &opt, err))
		cptx_tensor_map_make(dev, &opt, &map, err);
	return map;
}

/* So many tiles along a dimension: code. */
static inline cptx_val tiles_along(cptx_kernel *k, cptx_val n, uint32_t each)
{
	return cptx_div(k, cptx_add(k, n, each - 1), each);
}

static inline float bf16(uint16_t bits)
{
	const uint32_t word = (uint32_t)bits << 16;
	float f;

	memcpy(&f, &word, 4);
	return f;
}

/* From -1 to 1 in steps of 1/64, exact in bf16. */
static inline void draw(uint16_t *to, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		const float f = (float)((int)(seed >> 16) % 65 - 32) / 64;
		uint32_t word;
		memcpy(&word, &f, 4);
		to[i] = (uint16_t)(word >> 16);
	}
}

static inline double dot(const uint16_t *a, const uint16_t *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)bf16(a[i]) * (double)bf16(b[i]);
	return sum;
}

/* e4m3 bits of a number, to nearest even, at most 448. */
static inline int e4m3(double v)
{
	const double size = fmin(fabs(v), 448);
	const int e = size < ldexp(1, -6) ? -6 : ilogb(size), units = (int)nearbyint(ldexp(size, 3 - e));

	return (signbit(v) ? 128 : 0) | (units + ((e + 6) << 3));
}

/* Sums and approximations are right to 2^-10 of the result.  A byte is right if a number as near as that rounds to it: at
 * most one step of e4m3 from the exact one, where that lies at a border. */
static inline bool is_e4m3_of(int got, double want)
{
	const double near = ldexp(fabs(want), -10);
	const int low = e4m3(fabs(want) - near), high = e4m3(fabs(want) + near), size = got & 127;

	return size >= low && size <= high && (!size || got >> 7 == signbit(want));
}

#endif
