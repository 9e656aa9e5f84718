/* SPDX-License-Identifier: MIT */
/* What hosts of these examples share: a device, inputs of kernels, launches, and whether results are right. */
#ifndef KIT_HOST_H
#define KIT_HOST_H

#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <math.h>
#include <stdlib.h>

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
static inline bool map_of(enum cptx_type type, const cptx_tile *tile, uint64_t at, uint32_t rows, uint32_t cols,
                          cptx_tensor_map_opt *map, cptx_error *err)
{
	const cptx_operand_matrix matrix = { .address = at, .rows = rows, .cols = cols };
	const cptx_operand_opt operand = { .type = type, .tile = *tile };

	return cptx_operand_tensor_map(&operand, &matrix, map, err);
}

/* Loads the module, and runs its kernel once. */
static inline bool run_once(cptx_device *dev, cptx_module *m, const cptx_params_part *args, const cptx_launch_opt *opt,
                            cptx_error *err)
{
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	cptx_launch *l = p ? cptx_params_launch(p, dev, NULL, args, 1, opt, err) : NULL;
	const bool ok = l && cptx_launch_run(l, NULL, err);

	cptx_launch_destroy(l);
	cptx_program_destroy(p);
	return ok;
}

static inline uint32_t tiles_in(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

/* The number of tiles along a dimension, computed in a kernel of its parameter of that name. */
static inline cptx_val tiles_along(cptx_kernel *k, const cptx_params *p, const char *name, uint32_t each)
{
	return cptx_div(k, cptx_add(k, cptx_params_get(k, p, name), each - 1), each);
}

/* From -1 to 1 in steps of 1/64, exact in bf16. */
static inline void draw(uint16_t *to, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		to[i] = (uint16_t)number_bits(CPTX_BF16, (double)((int)(seed >> 16) % 65 - 32) / 64);
	}
}

static inline double dot(const uint16_t *a, const uint16_t *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += number_value(CPTX_BF16, a[i]) * number_value(CPTX_BF16, b[i]);
	return sum;
}

/* e4m3 bits of a number without its sign, at most 448. */
static inline int e4m3(double v) { return (int)number_bits(CPTX_E4M3, fmin(fabs(v), 448)); }

/* Sums and approximations are right to 2^-10 of the result.  A byte is right if a number as near as that rounds to it: at
 * most one step of e4m3 from the exact one, where that lies at a border. */
static inline bool is_e4m3_of(int got, double want)
{
	const double near = ldexp(fabs(want), -10);
	const int low = e4m3(fmax(fabs(want) - near, 0)), high = e4m3(fabs(want) + near), size = got & 127;

	return size >= low && size <= high && (!size || got >> 7 == signbit(want));
}

#endif
