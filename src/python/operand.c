/* SPDX-License-Identifier: MIT */
/* Objects of Python as operands and modifiers. */
#include "python/builder.h"

#include <stdlib.h>

bool take_int(object *x, int64_t *i)
{
	object *index = PyNumber_Index(x);

	*i = index ? PyLong_AsLongLong(index) : -1;
	python_drop(index);
	return *i != -1 || !PyErr_Occurred();
}

bool take_text(object *x, const char **text)
{
	*text = NULL;
	if (x == NONE)
		return true;
	*text = PyUnicode_AsUTF8AndSize(x, NULL);
	return *text != NULL;
}

/* An integer, with or without sign; false, without an exception, if x is none. */
static bool take_integer(object *x, cptx_val *v)
{
	int overflow = 0;
	object *index = PyNumber_Index(x);

	if (!index) {
		PyErr_Clear();
		return false;
	}
	long long i = PyLong_AsLongLongAndOverflow(index, &overflow);
	*v = overflow > 0 ? cptx_val_uint_(PyLong_AsUnsignedLongLong(index)) : cptx_val_int_(i);
	if (overflow < 0)
		PyErr_Format(PyExc_OverflowError, "an operand has more than 64 bits");
	Py_DecRef(index);
	return true;
}

static bool is_sequence(object *x)
{
	object *type = ((held_value *)x)->type;

	return type == (object *)&PyTuple_Type || type == (object *)&PyList_Type;
}

/* A tuple or list, packed. */
static bool take_vector(builder *b, cptx_kernel *k, cptx_site at, object *x, cptx_val *v)
{
	ptrdiff_t n = PySequence_Size(x);
	cptx_val few[8], *many = n > (ptrdiff_t)ARRAY_LEN(few) ? (cptx_val *)calloc((size_t)n, sizeof *many) : NULL;
	cptx_val *all = many ? many : few;
	bool ok = n >= 0 && (n <= (ptrdiff_t)ARRAY_LEN(few) || many);

	if (!ok)
		PyErr_Format(PyExc_ValueError, "out of memory");
	for (ptrdiff_t i = 0; ok && i < n; i++) {
		object *element = PySequence_GetItem(x, i);
		if (element && is_sequence(element))
			PyErr_Format(PyExc_TypeError, "a vector of vectors is no operand");
		ok = element && !PyErr_Occurred() && take_value(b, k, at, element, &all[i]);
		python_drop(element);
	}
	if (ok)
		*v = cptx_pack_(k, at, all, (size_t)n);
	free(many);
	return ok;
}

bool take_value(builder *b, cptx_kernel *k, cptx_site at, object *x, cptx_val *v)
{
	object *type = ((held_value *)x)->type;

	if (type == b->value_class) {
		*v = ((held_value *)x)->v;
		return true;
	}
	if (x == NONE) {
		*v = (cptx_val){ 0 };
		return true;
	}
	if (type == (object *)&PyFloat_Type) {
		*v = cptx_val_float_(PyFloat_AsDouble(x));
		return true;
	}
	if (is_sequence(x))
		return take_vector(b, k, at, x, v);
	if (take_integer(x, v))
		return !PyErr_Occurred();
	double f = PyFloat_AsDouble(x);
	if (f == -1 && PyErr_Occurred()) {
		PyErr_Clear();
		PyErr_Format(PyExc_TypeError, "%R is no operand: a value of this kernel, a number, or a tuple of these", x);
		return false;
	}
	*v = cptx_val_float_(f);
	return true;
}

/* The number of a PTX spelling, which b (NULL: nobody) keeps; 0: there is none. */
static uint16_t mod_named(builder *b, object *x)
{
	const char *name = PyUnicode_AsUTF8AndSize(x, NULL);
	unsigned mod = name ? (unsigned)cptx_type_find(name) : 0;

	if (name && !mod)
		mod = (unsigned)cptx_mod_find(name);
	if (mod && b) {
		object *number = PyLong_FromLongLong(mod);
		if (!number || PyDict_SetItem(b->mods, x, number) < 0)
			PyErr_Clear();
		python_drop(number);
	}
	return (uint16_t)mod;
}

bool take_mod(builder *b, object *x, uint16_t *mod)
{
	bool named = ((held_value *)x)->type == (object *)&PyUnicode_Type;
	object *number = named && b ? PyDict_GetItem(b->mods, x) : NULL;

	*mod = 0;
	if (x == NONE)
		return true;
	if (named && !number) {
		*mod = mod_named(b, x);
		if (!*mod && !PyErr_Occurred())
			PyErr_Format(PyExc_ValueError, "%R is no type or modifier of PTX", x);
		return *mod != 0;
	}
	int64_t i;
	if (!take_int(number ? number : x, &i))
		return false;
	if (i < 0 || i > UINT16_MAX) {
		PyErr_Format(PyExc_ValueError, "%R is no type or modifier", x);
		return false;
	}
	*mod = (uint16_t)i;
	return true;
}
