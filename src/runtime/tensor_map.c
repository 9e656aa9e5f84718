/* SPDX-License-Identifier: MIT */
/* Making tensor maps for devices. */
#include "base/options.h"
#include "runtime/cuda.h"

bool cptx_tensor_map_make(cptx_device *dev, const cptx_tensor_map_opt *opt, cptx_tensor_map *map, cptx_error *err)
{
	if (!IS_GIVEN(dev, "device", NOWHERE, err) || !IS_GIVEN(map, "result", NOWHERE, err))
		return false;
	memset(map, 0, sizeof *map);
	cptx_tensor_map_opt o;
	if (!cptx_tensor_map_check(opt, err) || !OPTIONS_READ(cptx_tensor_map_opt, &o, opt, NOWHERE, err))
		return false;
	opt = &o;
	bool wide = opt->mode == CPTX_TENSOR_IM2COL_W || opt->mode == CPTX_TENSOR_IM2COL_W_128;
	unsigned least = wide ? 100 : 90;

	if (dev->info.compute_capability < least)
		return error_set(err, CPTX_E_TARGET, NOWHERE, "tensor map: %s has compute capability %u.%u; %s from %u.0 on",
		                 dev->info.name, dev->info.compute_capability / 10u, dev->info.compute_capability % 10u,
		                 wide ? "im2col along W exists" : "tensor maps exist", least / 10);
	return dev->ops->tensor_map ? dev->ops->tensor_map(dev, opt, map, err) : cptx_tensor_map_pack(opt, map->bytes, err);
}

/* The arguments of the driver's calls: strides in full, without that of dimension 0. */
typedef struct driver_form {
	uint64_t stride[CPTX_TENSOR_RANK];
	unsigned step[CPTX_TENSOR_RANK], interleave, l2;
} driver_form;

static driver_form driver_form_of(const cptx_tensor_map_opt *o)
{
	driver_form f = { .interleave = o->interleave / 16, .l2 = o->l2 == 256 ? 3 : o->l2 / 64 };

	cptx_tensor_map_strides(o, f.stride);
	for (uint32_t i = 0; i < CPTX_TENSOR_RANK; i++)
		f.step[i] = o->element_stride[i] ? o->element_stride[i] : 1;
	return f;
}

static cu_result encode(const driver *d, const cptx_tensor_map_opt *o, cu_tensor_map map)
{
	driver_form f = driver_form_of(o);
	void *address = (void *)(uintptr_t)o->address;

	switch (o->mode) {
	case CPTX_TENSOR_TILED:
		return d->cuTensorMapEncodeTiled(map, o->type, o->rank, address, o->dim, f.stride + 1, o->box, f.step, f.interleave,
		                                 o->swizzle, f.l2, o->nan_fill);
	/* the driver takes corners in the order of dimensions, W first, whatever cuda.h's comment says */
	case CPTX_TENSOR_IM2COL:
		return d->cuTensorMapEncodeIm2col(map, o->type, o->rank, address, o->dim, f.stride + 1, o->lower, o->upper,
		                                  o->channels, o->pixels, f.step, f.interleave, o->swizzle, f.l2, o->nan_fill);
	default:
		return d->cuTensorMapEncodeIm2colWide(map, o->type, o->rank, address, o->dim, f.stride + 1, o->lower[0], o->upper[0],
		                                      o->channels, o->pixels, f.step, f.interleave,
		                                      o->mode == CPTX_TENSOR_IM2COL_W_128, o->swizzle, f.l2, o->nan_fill);
	}
}

bool cuda_tensor_map(cptx_device *dev, const cptx_tensor_map_opt *o, cptx_tensor_map *map, cptx_error *err)
{
	cuda *c = cuda_of(dev);
	cuda_scope scope;
	struct {
		const char *name;
		bool there;
	} call = { "cuTensorMapEncodeIm2colWide", c->drv.cuTensorMapEncodeIm2colWide != NULL };

	if (o->mode == CPTX_TENSOR_TILED)
		call.name = "cuTensorMapEncodeTiled", call.there = c->drv.cuTensorMapEncodeTiled != NULL;
	else if (o->mode == CPTX_TENSOR_IM2COL)
		call.name = "cuTensorMapEncodeIm2col", call.there = c->drv.cuTensorMapEncodeIm2col != NULL;
	if (!call.there)
		return error_set(err, CPTX_E_NO_DRIVER, NOWHERE,
		                 "tensor map: the CUDA driver has no %s; one of CUDA %s or later has", call.name,
		                 o->mode == CPTX_TENSOR_TILED || o->mode == CPTX_TENSOR_IM2COL ? "12.0" : "12.8");
	if (!cuda_enter(c, &scope, err))
		return false;
	cu_result r = encode(&c->drv, o, (cu_tensor_map)(void *)map);
	cuda_leave(&scope);
	return r == CU_OK || driver_fail(&c->drv, r, err, NOWHERE, "encoding a tensor map");
}
