/* SPDX-License-Identifier: MIT */
/* Tensor maps as the driver encodes them: the emulator's bytes, made of the driver's arguments. */
#include "api.h"

#include <string.h>

/* What the three ways of describing a map share; a stride is given for each dimension but the first. */
#define TENSOR unsigned type, unsigned rank, void *address, const uint64_t *dim, const uint64_t *stride
#define CHANGES const uint32_t *step, unsigned interleave, unsigned swizzle, unsigned l2, unsigned fill
#define GIVEN type, rank, address, dim, stride, step, interleave, swizzle, l2, fill

/*
 * The driver takes 0 for a stride, which here stands for what is packed: grouped GEMMs make such maps, whose strides
 * tensormap.replace sets before they are used.  It becomes the largest one, so that the first element is where it was, and
 * others are out of bounds.
 */
static uint64_t stride_of(uint64_t given)
{
	const uint64_t largest = (UINT64_C(1) << 40) - 32;

	return given ? given : largest;
}

static bool describe(cptx_tensor_map_opt *o, TENSOR, CHANGES)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
	if (!rank || rank > CPTX_TENSOR_RANK || type >= CPTX_TENSOR_TYPES || !dim || (rank > 1 && !stride) || !step)
		return false;
	o->type = (enum cptx_tensor_type)type, o->rank = rank, o->address = (uintptr_t)address;
	for (unsigned i = 0; i < rank; i++) {
		o->dim[i] = dim[i];
		o->element_stride[i] = step[i];
		o->stride[i] = i ? stride_of(stride[i - 1]) : 0;
	}
	o->interleave = interleave * 16, o->swizzle = (enum cptx_swizzle)swizzle, o->nan_fill = fill != 0;
	o->l2 = l2 ? 32u << l2 : 0; /* 64, 128, 256 bytes */
	return true;
}

static int make(uint8_t *map, const cptx_tensor_map_opt *o)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_tensor_map made;

	if (!cptx_tensor_map_make(san.dev, o, &made, &err))
		return san_failed("a tensor map", &err);
	memcpy(map, made.bytes, sizeof made.bytes);
	return SAN_OK;
}

static int tiled(uint8_t *map, TENSOR, const uint32_t *box, CHANGES)
{
	cptx_tensor_map_opt o;

	if (!box || !describe(&o, GIVEN))
		return SAN_VALUE;
	memcpy(o.box, box, rank * sizeof *box);
	return make(map, &o);
}

static int im2col(uint8_t *map, TENSOR, const int *lower, const int *upper, unsigned channels, unsigned pixels, CHANGES)
{
	cptx_tensor_map_opt o;

	if (!lower || !upper || !describe(&o, GIVEN) || rank < 3)
		return SAN_VALUE;
	o.mode = CPTX_TENSOR_IM2COL, o.channels = channels, o.pixels = pixels;
	memcpy(o.lower, lower, (rank - 2) * sizeof *lower);
	memcpy(o.upper, upper, (rank - 2) * sizeof *upper);
	return make(map, &o);
}

static int wide(uint8_t *map, TENSOR, int lower, int upper, unsigned channels, unsigned pixels, unsigned mode, CHANGES)
{
	cptx_tensor_map_opt o;

	if (!describe(&o, GIVEN))
		return SAN_VALUE;
	o.mode = mode ? CPTX_TENSOR_IM2COL_W_128 : CPTX_TENSOR_IM2COL_W;
	o.lower[0] = lower, o.upper[0] = upper, o.channels = channels, o.pixels = pixels;
	return make(map, &o);
}

static int move(uint8_t *map, void *address)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_tensor_map_opt o;

	if (!cptx_tensor_map_unpack(map, &o, &err))
		return SAN_VALUE;
	o.address = (uintptr_t)address;
	return make(map, &o);
}

/* clang-format off: parameters by name are more than it can lay out */
CALL(cuTensorMapEncodeTiled,
     (uint8_t * map, TENSOR, const uint32_t *box, const uint32_t *step, unsigned interleave, unsigned swizzle, unsigned l2,
      unsigned fill),
     tiled(map, type, rank, address, dim, stride, box, step, interleave, swizzle, l2, fill))
CALL(cuTensorMapEncodeIm2col,
     (uint8_t * map, TENSOR, const int *lower, const int *upper, unsigned channels, unsigned pixels, const uint32_t *step,
      unsigned interleave, unsigned swizzle, unsigned l2, unsigned fill),
     im2col(map, type, rank, address, dim, stride, lower, upper, channels, pixels, step, interleave, swizzle, l2, fill))
CALL(cuTensorMapEncodeIm2colWide,
     (uint8_t * map, TENSOR, int lower, int upper, unsigned channels, unsigned pixels, const uint32_t *step,
      unsigned interleave, unsigned mode, unsigned swizzle, unsigned l2, unsigned fill),
     wide(map, type, rank, address, dim, stride, lower, upper, channels, pixels, mode, step, interleave, swizzle, l2, fill))
CALL(cuTensorMapReplaceAddress, (uint8_t * map, void *address), move(map, address))
/* clang-format on */
