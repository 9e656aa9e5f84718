/* SPDX-License-Identifier: MIT */
/* Checks whether a tensor is what the signature declares: type, rank, dimensions, strides, alignment, device. */
#include "tensor/tensor.h"

#include <limits.h>
#include <stdio.h>

/* ---- describing ---- */

static void put_device(buf *b, DLDevice d)
{
	static const struct {
		int type;
		const char *name;
	} names[] = {
		{ kDLCUDA, "cuda" },
		{ kDLCUDAHost, "pinned host memory of cuda" },
		{ kDLCUDAManaged, "managed memory of cuda" },
		{ kDLROCM, "rocm" },
		{ kDLMetal, "metal" },
	};

	if ((int)d.device_type == kDLCPU) {
		buf_str(b, "the CPU");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].type == (int)d.device_type) {
			buf_printf(b, "%s:%d", names[i].name, (int)d.device_id);
			return;
		}
	buf_printf(b, "device %d of DLPack's kind %d", (int)d.device_id, (int)d.device_type);
}

static void put_numbers(buf *b, const int64_t *v, int n)
{
	buf_str(b, "[");
	for (int i = 0; i < n; i++)
		buf_printf(b, "%s%lld", i ? ", " : "", (long long)v[i]);
	buf_str(b, "]");
}

/* Whether a tensor is row-major, without gaps. */
static bool is_dense(const DLTensor *t)
{
	int64_t dense = 1;

	for (int d = t->ndim - 1; t->strides && d >= 0; dense *= t->shape[d--])
		if (t->shape[d] != 1 && t->strides[d] != dense)
			return false;
	return true;
}

static void put_got(buf *b, const DLTensor *t, bool read_only)
{
	char type[64];

	type_text(t->dtype, type, sizeof type);
	buf_str(b, type);
	put_numbers(b, t->shape, t->ndim);
	if (!is_dense(t)) {
		buf_str(b, " with strides ");
		put_numbers(b, t->strides, t->ndim);
	}
	buf_str(b, " on ");
	put_device(b, t->device);
	if (read_only)
		buf_str(b, ", read-only");
}

static void put_extents(buf *b, const signature *s, const extent *e, int n, const tensor_binding *names)
{
	buf_str(b, "[");
	for (int i = 0; i < n; i++) {
		buf_str(b, i ? ", " : "");
		if (e[i].kind == EXTENT_ANY)
			buf_str(b, "_");
		else if (e[i].kind == EXTENT_NUMBER)
			buf_printf(b, "%lld", (long long)e[i].number);
		else {
			buf_str(b, s->name[e[i].name]);
			if (names[e[i].name].known)
				buf_printf(b, " = %lld", (long long)names[e[i].name].v);
		}
	}
	buf_str(b, "]");
}

static void put_wanted(buf *b, const cptx_tensor_launch *l, const entry *a, const tensor_binding *names)
{
	buf_str(b, cptx_type_name(a->type));
	put_extents(b, &l->s, a->dim, a->rank, names);
	if (a->strided) {
		buf_str(b, " with strides ");
		put_extents(b, &l->s, a->stride, a->rank, names);
	} else if (a->rank > 1) {
		buf_str(b, ", row-major,");
	}
	buf_str(b, " on ");
	put_device(b, l->dev->ops->map ? (DLDevice){ kDLCPU, 0 } : (DLDevice){ kDLCUDA, l->dev->ordinal });
}

typedef struct trial {
	const cptx_tensor_launch *l;
	const entry *a;
	const DLTensor *t;
	bool read_only;
	size_t i;
	tensor_binding *names;
	cptx_error *err;
} trial;

static bool refuse(const trial *q, const char *format, ...) CPTX_PRINTF_(2, 3);
static bool refuse(const trial *q, const char *format, ...)
{
	cptx_error why = { .code = CPTX_OK };
	va_list ap;
	buf b;

	va_start(ap, format);
	error_vset(&why, CPTX_E_ARG, NOWHERE, format, ap);
	va_end(ap);
	buf_init(&b, NULL);
	put_got(&b, q->t, q->read_only);
	buf_str(&b, ", but must be ");
	put_wanted(&b, q->l, q->a, q->names);
	error_set(q->err, CPTX_E_ARG, q->l->launch->at, "kernel %s: argument \"%s\" is %.*s: %s", q->l->launch->k.info.name,
	          q->a->name, b.failed ? 0 : (int)b.n, b.n ? b.p : "", why.text);
	buf_free(&b);
	return false;
}

/* ---- what a tensor reaches ---- */

static bool is_empty(const DLTensor *t)
{
	for (int d = 0; d < t->ndim; d++)
		if (!t->shape[d])
			return true;
	return false;
}

bool tensor_sane(const DLTensor *t, const char **why)
{
	int64_t dense = 1, reach = 0, step; /* strides of an empty tensor are computed, too */

	if (!t) {
		*why = "it is NULL";
		return false;
	}
	*why = t->ndim < 0 || t->ndim > MAX_RANK ? "it has too many dimensions"
	       : t->ndim && !t->shape            ? "its shape is NULL"
	                                         : NULL;
	for (int i = 0; !*why && i < t->ndim; i++) {
		if (t->shape[i] < 0)
			*why = "it has a negative dimension";
		else if (__builtin_mul_overflow(dense, MAX(t->shape[i], 1), &dense) || dense > INT64_MAX >> 8 ||
		         (t->strides && t->shape[i] > 1 &&
		          (__builtin_mul_overflow(t->shape[i], t->strides[i], &step) || step == INT64_MIN ||
		           __builtin_add_overflow(reach, step < 0 ? -step : step, &reach) || reach > INT64_MAX >> 8)))
			*why = "its size is beyond all memory";
	}
	if (!*why && !t->data && !is_empty(t))
		*why = "its address is NULL";
	return !*why;
}

uint64_t tensor_span(const DLTensor *t, uint64_t *first)
{
	int64_t low = 0, high = 0, dense = 1;
	uint64_t bits = (uint64_t)t->dtype.bits * t->dtype.lanes;

	for (int i = t->ndim - 1; i >= 0; i--) {
		if (!t->shape[i])
			return 0;
		int64_t reach = (t->shape[i] - 1) * (t->strides ? t->strides[i] : dense);
		*(reach < 0 ? &low : &high) += reach;
		dense *= t->shape[i];
	}
	*first = (uint64_t)(uintptr_t)t->data + t->byte_offset + (uint64_t)(low * (int64_t)(bits / 8));
	return ((uint64_t)(high - low + 1) * bits + 7) / 8;
}

/* ---- the checks ---- */

bool tensor_bind(tensor_binding *names, const extent *e, int64_t v, size_t by)
{
	tensor_binding *b = &names[e->name];

	if (e->kind == EXTENT_ANY)
		return true;
	if (e->kind == EXTENT_NUMBER)
		return e->number == v;
	if (b->known && !b->idle)
		return b->v == v;
	*b = (tensor_binding){ .known = true, .by = (uint8_t)by, .v = v };
	return true;
}

/* Binds the name of a stride that reaches nothing (of an extent of 1, or in an empty tensor), if no other entry decides it.
 */
static bool bind_idle(tensor_binding *names, const extent *e, int64_t v, size_t by)
{
	if (e->kind == EXTENT_NAME && !names[e->name].known)
		names[e->name] = (tensor_binding){ .known = true, .idle = true, .by = (uint8_t)by, .v = v };
	return true;
}

static bool mismatch(const trial *q, const char *what, int d, int64_t v, const extent *e)
{
	const signature *s = &q->l->s;

	if (e->kind == EXTENT_NUMBER)
		return refuse(q, "%s %d is %lld, not %lld", what, d, (long long)v, (long long)e->number);
	return refuse(q, "%s %d is %lld, but %s is %lld by argument \"%s\"", what, d, (long long)v, s->name[e->name],
	              (long long)q->names[e->name].v, s->arg[q->names[e->name].by].name);
}

static bool shape_fits(const trial *q)
{
	if (q->t->ndim != q->a->rank)
		return refuse(q, "it has %d dimension%s, not %d", (int)q->t->ndim, q->t->ndim == 1 ? "" : "s", q->a->rank);
	for (int d = 0; d < q->a->rank; d++)
		if (!tensor_bind(q->names, &q->a->dim[d], q->t->shape[d], q->i))
			return mismatch(q, "dimension", d, q->t->shape[d], &q->a->dim[d]);
	return true;
}

static bool strides_fit(const trial *q)
{
	const DLTensor *t = q->t;
	int64_t dense = 1;
	bool empty = is_empty(t);

	for (int d = q->a->rank - 1; d >= 0; dense *= t->shape[d--]) {
		int64_t stride = t->strides ? t->strides[d] : dense;
		bool idle = empty || t->shape[d] == 1;
		if (q->a->strided && !(idle ? bind_idle : tensor_bind)(q->names, &q->a->stride[d], stride, q->i))
			return mismatch(q, "stride", d, stride, &q->a->stride[d]);
		if (!q->a->strided && !idle && stride != dense)
			return refuse(q, "stride %d is %lld, not %lld; make it contiguous, or say strides[...]", d, (long long)stride,
			              (long long)dense);
	}
	return true;
}

static bool device_fits(const trial *q)
{
	const cptx_device *dev = q->l->dev;
	int type = (int)q->t->device.device_type;

	if (dev->ops->map)
		return type == kDLCPU || refuse(q, "the emulator reads memory of the host");
	if (type == kDLCUDAHost || type == kDLCUDAManaged)
		return true;
	if (type != kDLCUDA)
		return refuse(q, "%s cannot reach it", dev->info.name);
	return q->t->device.device_id == dev->ordinal || refuse(q, "it is on another GPU");
}

bool tensor_fits(const cptx_tensor_launch *l, size_t i, const DLTensor *t, bool read_only, tensor_binding *names,
                 cptx_error *err)
{
	const entry *a = &l->s.arg[i];
	trial q = { l, a, t, read_only, i, names, err };
	const char *why;

	if (!tensor_sane(t, &why))
		return error_set(err, CPTX_E_ARG, l->launch->at, "kernel %s: argument \"%s\" is no tensor: %s",
		                 l->launch->k.info.name, a->name, why);
	if (!type_fits(a->type, t->dtype))
		return refuse(&q, "the types differ");
	if (!shape_fits(&q) || !strides_fit(&q) || !device_fits(&q))
		return false;
	uint64_t address = (uint64_t)(uintptr_t)t->data + t->byte_offset;
	if (address % a->align)
		return refuse(&q, "its address is 0x%llx, no multiple of %u", (unsigned long long)address, (unsigned)a->align);
	return (!read_only || a->is_const) ||
	       refuse(&q, "the kernel writes it: only an argument that is const may be read-only");
}
