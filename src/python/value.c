/* SPDX-License-Identifier: MIT */
/* The class of values. */
#include "python/builder.h"

object *value_new(object *type, cptx_val v)
{
	if (v.kind == CPTX_VAL_NONE) {
		Py_IncRef(NONE);
		return NONE;
	}
	object *o = PyType_GenericAlloc(type, 0);
	if (o)
		((held_value *)o)->v = v;
	return o;
}

static cptx_val val(object *self) { return ((held_value *)self)->v; }

/* A value made of self; what could not be made is a ValueError. */
static object *made(object *self, cptx_val v, const char *why)
{
	return v.kind == CPTX_VAL_BAD ? PyErr_Format(PyExc_ValueError, why) : value_new(((held_value *)self)->type, v);
}

static void dealloc(object *self)
{
	object *type = ((held_value *)self)->type;

	PyObject_Free(self);
	Py_DecRef(type);
}

static ptrdiff_t length(object *self) { return val(self).count; }

static object *element(object *self, ptrdiff_t i)
{
	cptx_val v = val(self);

	if (i < 0 || i >= v.count)
		return PyErr_Format(PyExc_IndexError, "element %zd of a value with %d", i, (int)v.count);
	return made(self, cptx_elem(v, (uint32_t)i), "only arrays of registers have elements");
}

static object *subscript(object *self, object *key)
{
	ptrdiff_t start, stop, step, n = length(self);

	if (((held_value *)key)->type != (object *)&PySlice_Type) {
		ptrdiff_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
		return i == -1 && PyErr_Occurred() ? NULL : element(self, i < 0 ? i + n : i);
	}
	if (PySlice_Unpack(key, &start, &stop, &step) < 0)
		return NULL;
	ptrdiff_t count = PySlice_AdjustIndices(n, &start, &stop, step);
	if (step != 1 || !count)
		return PyErr_Format(PyExc_ValueError, "a slice of a value has at least one element, and no step");
	return made(self, cptx_slice(val(self), (uint32_t)start, (uint32_t)count), "only arrays of registers have elements");
}

static object *negated(object *self)
{
	return made(self, cptx_negated(val(self)), "only predicates have a complement, and integer registers a negative");
}

static object *offset(object *self, object *x)
{
	int64_t bytes;

	return take_int(x, &bytes) ? made(self, cptx_offset(val(self), bytes), "no address, or more than 2 GiB away") : NULL;
}

static object *as(object *self, object *x)
{
	uint16_t type;

	return take_mod(NULL, x, &type) ? made(self, cptx_as(val(self), (enum cptx_type)type), "it has no type of that size")
	                                : NULL;
}

static object *select_part(object *self, object *x)
{
	const char *s;

	return take_text(x, &s) ? made(self, cptx_select(val(self), s), "no such selector: b0 to b3, h0, h1, h10, b7654") : NULL;
}

static object *get_kind(object *self, void *unused)
{
	(void)unused;
	return PyLong_FromLongLong(val(self).kind);
}

static object *get_type(object *self, void *unused)
{
	(void)unused;
	return PyUnicode_InternFromString(cptx_type_name((enum cptx_type)val(self).type));
}

static object *get_count(object *self, void *unused)
{
	(void)unused;
	return PyLong_FromLongLong(val(self).count);
}

void *cptx_python_value_class(cptx_error *err)
{
	enum {
		MP_SUBSCRIPT = 5,
		NB_INVERT = 27,
		NB_NEGATIVE = 30,
		SQ_ITEM = 44,
		SQ_LENGTH,
		TP_DEALLOC = 52,
		TP_DOC = 56,
		TP_METHODS = 64,
		TP_GETSET = 73,
		DEFAULT = 1 << 18,
		BASETYPE = 1 << 10
	};
#define FN(f)                                                                                                               \
	{                                                                                                                       \
		.fn = (void (*)(void))(f)                                                                                           \
	}
	static const struct method methods[] = {
		{ "offset", (void (*)(void))offset, METH_O, "offset(bytes): the address that many bytes behind this one." },
		{ "as_", (void (*)(void))as, METH_O, "as_(type): the same registers seen as another type of the same size." },
		{ "select", (void (*)(void))select_part, METH_O, "select(selector): part of a register, for video instructions." },
		{ NULL, NULL, 0, NULL }
	};
	static const struct getset getsets[] = { { "kind", get_kind, NULL, "The kind of value, an enum cptx_val_kind.", NULL },
		                                     { "type", get_type, NULL, "The PTX spelling of its type.", NULL },
		                                     { "count", get_count, NULL, "The number of its registers.", NULL },
		                                     { NULL, NULL, NULL, NULL, NULL } };
	static const struct type_slot slots[] = { { TP_DEALLOC, FN(dealloc) },
		                                      { SQ_LENGTH, FN(length) },
		                                      { SQ_ITEM, FN(element) },
		                                      { MP_SUBSCRIPT, FN(subscript) },
		                                      { NB_INVERT, FN(negated) },
		                                      { NB_NEGATIVE, FN(negated) },
		                                      { TP_METHODS, { .data = methods } },
		                                      { TP_GETSET, { .data = getsets } },
		                                      { TP_DOC, { .data = "An operand, or the result of a call." } },
		                                      { 0, { .data = NULL } } };
#undef FN
	static const struct type_spec spec = { "cptx.Value", sizeof(held_value), 0, DEFAULT | BASETYPE, slots };

	if (err && err->code != CPTX_OK)
		return NULL;
	if (!python_is_there(__func__, err))
		return NULL;
	object *head = PyObject_GetAttrString((object *)&PyLong_Type, "__base__");
	object *size = head ? PyObject_GetAttrString(head, "__basicsize__") : NULL;
	bool has_gil = size && PyLong_AsLongLong(size) == (long long)offsetof(held_value, v);
	python_drop(head);
	python_drop(size);
	if (!has_gil) {
		PyErr_Clear();
		error_set(err, CPTX_E_STATE, NOWHERE, "%s: kernels are built in CPythons with a GIL", __func__);
		return NULL;
	}
	object *type = PyType_FromSpec(&spec);
	if (!type) {
		PyErr_Clear();
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	}
	return type;
}
