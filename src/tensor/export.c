/* SPDX-License-Identifier: MIT */
/* Memory of a device as a tensor of DLPack. */
#include "base/options.h"
#include "tensor/tensor.h"

#include <cptx/emu.h>

#include <stdlib.h>

/* An exported tensor; its shape and strides stand behind it. */
typedef struct exported {
	union {
		DLManagedTensorVersioned versioned;
		DLManagedTensor old;
	} t;
	cptx_device *dev;
	uint64_t owned; /* memory to free with the tensor; 0: none */
	void (*release)(void *user);
	void *user;
	int64_t extents[];
} exported;

static void destroy(exported *e)
{
	if (e->release)
		e->release(e->user);
	cptx_mem_free(e->dev, e->owned);
	free(e);
}

static void delete_versioned(DLManagedTensorVersioned *t) { destroy((exported *)t->manager_ctx); }

static void delete_old(DLManagedTensor *t) { destroy((exported *)t->manager_ctx); }

static bool describe(const cptx_tensor_opt *opt, exported *e, DLTensor *t, cptx_error *err)
{
	const char *why = NULL;
	char place = 0;

	if (!type_to_dl(opt->type, &t->dtype))
		return error_set(err, CPTX_E_ARG, NOWHERE, "DLPack has no tensors of .%s", cptx_type_name(opt->type));
	t->ndim = (int32_t)opt->rank;
	t->shape = e->extents;
	t->strides = e->extents + opt->rank;
	int64_t dense = 1;
	for (size_t i = opt->rank; i-- > 0;) {
		t->shape[i] = opt->shape[i];
		t->strides[i] = opt->strides ? opt->strides[i] : dense;
		if (__builtin_mul_overflow(dense, MAX(opt->shape[i], 1), &dense))
			return error_set(err, CPTX_E_ARG, NOWHERE, "the tensor is beyond all memory");
	}
	t->data = &place; /* any address, for the check */
	if (!tensor_sane(t, &why))
		return error_set(err, CPTX_E_ARG, NOWHERE, "this is no tensor: %s", why);
	t->data = NULL;
	return true;
}

/* Computes the address of the tensor's first element for its consumers. */
static bool place(cptx_device *dev, const cptx_tensor_opt *opt, exported *e, DLTensor *t, cptx_error *err)
{
	/* with NULL data `first` is how far the tensor reaches below its address */
	uint64_t first = 0, size = tensor_span(t, &first);
	uint64_t ptr = opt->ptr;

	t->device = dev->ops->host ? (DLDevice){ kDLCPU, 0 } : (DLDevice){ kDLCUDA, dev->ordinal };
	if (!ptr && first)
		return error_set(err, CPTX_E_ARG, NOWHERE, "a tensor that is allocated cannot have negative strides");
	if (!ptr && size)
		ptr = e->owned = cptx_mem_alloc(dev, (size_t)size, err);
	if (!size)
		return true;
	if (!ptr)
		return false;
	char *at =
		dev->ops->host ? (char *)cptx_emu_host(dev, ptr + first, (size_t)size, err) : (char *)(uintptr_t)(ptr + first);
	t->data = at ? at - (int64_t)first : NULL;
	return at != NULL;
}

/* Makes a tensor; *opt gets the given options as this library reads them. */
static exported *make(cptx_device *dev, const cptx_tensor_opt *given, cptx_tensor_opt *opt, bool old, cptx_error *err)
{
	if (!OPTIONS_READ(cptx_tensor_opt, opt, given, NOWHERE, err))
		return NULL;
	if (!dev || !given || (opt->rank && !opt->shape)) {
		error_set(err, CPTX_E_ARG, NOWHERE, "the %s NULL", !dev ? "device is" : !given ? "options are" : "shape is");
		return NULL;
	}
	if (opt->rank > MAX_RANK) {
		error_set(err, CPTX_E_ARG, NOWHERE, "a tensor of %zu dimensions; the most are %d", opt->rank, MAX_RANK);
		return NULL;
	}
	if (old && opt->read_only) {
		error_set(err, CPTX_E_ARG, NOWHERE, "DLPack before 1.0 cannot say that a tensor is read-only");
		return NULL;
	}
	exported *e = NEW_SIZED(exported, sizeof *e + 2 * (opt->rank + 1) * sizeof *e->extents);
	if (!e) {
		no_memory(err, NOWHERE);
		return NULL;
	}
	DLTensor *t = old ? &e->t.old.dl_tensor : &e->t.versioned.dl_tensor;
	e->dev = dev;
	if (describe(opt, e, t, err) && place(dev, opt, e, t, err)) {
		e->release = opt->release;
		e->user = opt->user;
		return e;
	}
	destroy(e); /* .release is not called: the caller still owns everything when making fails */
	return NULL;
}

DLManagedTensorVersioned *cptx_tensor_export(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err)
{
	cptx_tensor_opt o;
	exported *e = make(dev, opt, &o, false, err);

	if (!e)
		return NULL;
	e->t.versioned.version = (DLPackVersion){ DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION };
	e->t.versioned.manager_ctx = e;
	e->t.versioned.deleter = delete_versioned;
	e->t.versioned.flags = o.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
	return &e->t.versioned;
}

DLManagedTensor *cptx_tensor_export_old(cptx_device *dev, const cptx_tensor_opt *opt, cptx_error *err)
{
	cptx_tensor_opt o;
	exported *e = make(dev, opt, &o, true, err);

	if (!e)
		return NULL;
	e->t.old.manager_ctx = e;
	e->t.old.deleter = delete_old;
	return &e->t.old;
}
