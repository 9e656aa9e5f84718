/* SPDX-License-Identifier: MIT */
/*
 * A launch as a callable of Python.  Arguments that are not plain (keywords, arrays of unknown
 * classes, views, numbers that do not fit) go to the Python module, which checks them closely and words the errors.
 */
#include "base/options.h"
#include "python/python.h"
#include "tensor/tensor.h"

#include <stdlib.h>

typedef struct callable {
	struct method method;
	cptx_tensor_launch *launch;
	const cptx_python_classes *known;
	object *otherwise, *failed, *owner;
	object *is_conj, *is_neg, *requires_grad; /* interned names of attributes */
	char name[];
} callable;

/* ---- one call ---- */

/* Whether a method returned False; any other result, an exception too, is left to the Python module. */
static bool is_no(object *answer)
{
	int truth = answer ? PyObject_IsTrue(answer) : -1;

	if (answer)
		Py_DecRef(answer);
	if (truth < 0)
		PyErr_Clear();
	return truth == 0;
}

/* Whether an entry takes complex numbers, and so conjugates: only types of plain bits do. */
static bool takes_complex(const entry *a)
{
	return type_fits(a->type, (DLDataType){ kDLComplex, (uint8_t)cptx_type_bits(a->type), 1 });
}

/* Whether the bytes of x are its values, and PyTorch need not know that they are written. */
static bool is_plain(const callable *c, const entry *a, object *x)
{
	return is_no(PyObject_CallMethodObjArgs(x, c->is_neg, NULL)) &&
	       (!takes_complex(a) || is_no(PyObject_CallMethodObjArgs(x, c->is_conj, NULL))) &&
	       (a->is_const || is_no(PyObject_GetAttr(x, c->requires_grad)));
}

static const cptx_python_class *class_of(const callable *c, object *x)
{
	object *type = PyObject_Type(x);
	const cptx_python_class *k = c->known->of;

	while (k->type && k->type != type)
		k++;
	Py_DecRef(type);
	return k->type ? k : NULL;
}

/* Takes an array as an argument; false: it is left to the Python module.  *counts: `written` must be called for it. */
static bool take_array(const callable *c, const entry *a, object *x, cptx_tensor_arg *given, bool *counts)
{
	const cptx_python_class *k = class_of(c, x);

	*given = (cptx_tensor_arg){ .kind = CPTX_TENSOR_OBJECT, .u = { .object = x }, .api = k ? k->api : NULL };
	if (a->is_optional && x == NONE)
		given->kind = CPTX_TENSOR_NONE;
	else if (!k || (k->lazy && !is_plain(c, a, x)))
		return false;
	*counts = k && k->counts && !a->is_const;
	return true;
}

static bool take_number(const entry *a, object *x, cptx_tensor_arg *given)
{
	bool wrong;

	if (a->type == CPTX_F32 || a->type == CPTX_F64) {
		*given = (cptx_tensor_arg){ .kind = CPTX_TENSOR_FLOAT, .u = { .f = PyFloat_AsDouble(x) } };
		wrong = given->u.f == -1 && PyErr_Occurred();
	} else {
		object *i = PyNumber_Index(x);
		*given = (cptx_tensor_arg){ .kind = CPTX_TENSOR_INT, .u = { .i = i ? PyLong_AsLongLong(i) : -1 } };
		if (i)
			Py_DecRef(i);
		wrong = given->u.i == -1 && PyErr_Occurred();
	}
	if (wrong)
		PyErr_Clear();
	return !wrong;
}

/* Calls `written` for n arrays, once: with the only one, or with a tuple of several. */
static object *call_written(const callable *c, object **written, ptrdiff_t n)
{
	object *what = n == 1 ? written[0] : PyTuple_New(n);

	for (ptrdiff_t i = 0; what && n > 1 && i < n; i++) {
		Py_IncRef(written[i]);
		PyTuple_SetItem(what, i, written[i]);
	}
	object *result = what ? PyObject_CallFunctionObjArgs(c->known->written, what, NULL) : NULL;
	if (what && n > 1)
		Py_DecRef(what);
	return result;
}

static object *call(object *self, object *args, object *keywords)
{
	const callable *c = (const callable *)PyCapsule_GetPointer(self, NULL);
	const signature *s = &c->launch->s;
	cptx_tensor_arg given[MAX_ARGS];
	object *written[MAX_ARGS];
	ptrdiff_t n = 0, nwritten = 0;
	bool plain = (!keywords || !PyDict_Size(keywords)) && PyTuple_Size(args) == (ptrdiff_t)c->launch->ngiven;
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; plain && i < s->nargs; i++) {
		const entry *a = &s->arg[i];
		bool counts = false;
		if (a->value.n)
			continue;
		object *x = PyTuple_GetItem(args, n);
		plain = a->is_tensor ? take_array(c, a, x, &given[n], &counts) : take_number(a, x, &given[n]);
		if (counts)
			written[nwritten++] = x;
		n++;
	}
	if (!plain)
		return PyObject_Call(c->otherwise, args, keywords);
	err.code = CPTX_OK;
	if (!cptx_tensor_launch_run(c->launch, given, (size_t)n, NULL, CPTX_TENSOR_STREAM, &err))
		return python_fail(c->failed, &err);
	if (nwritten)
		return call_written(c, written, nwritten);
	Py_IncRef(NONE);
	return NONE;
}

/* ---- making one ---- */

static void destroy(object *capsule)
{
	callable *c = (callable *)PyCapsule_GetPointer(capsule, NULL);

	Py_DecRef(c->otherwise);
	Py_DecRef(c->failed);
	Py_DecRef(c->owner);
	Py_DecRef(c->is_conj);
	Py_DecRef(c->is_neg);
	Py_DecRef(c->requires_grad);
	free(c);
}

static object *wrap(callable *c)
{
	object *self = PyCapsule_New(c, NULL, destroy);

	if (!self) {
		free(c);
		return NULL;
	}
	Py_IncRef(c->otherwise);
	Py_IncRef(c->failed);
	Py_IncRef(c->owner);
	c->is_conj = PyUnicode_InternFromString("is_conj");
	c->is_neg = PyUnicode_InternFromString("is_neg");
	c->requires_grad = PyUnicode_InternFromString("requires_grad");
	object *f = c->is_conj && c->is_neg && c->requires_grad ? PyCFunction_NewEx(&c->method, self, NULL) : NULL;
	Py_DecRef(self);
	return f;
}

void *cptx_python_callable(cptx_tensor_launch *launch, const cptx_python_opt *opt, cptx_error *err)
{
	if (!may_go(err))
		return NULL;
	if (!launch || !opt || !opt->known || !opt->otherwise || !opt->failed || !opt->owner) {
		error_null(__func__,
		           !launch ? "launch"
		           : !opt  ? "options struct"
		                   : "known, otherwise, failed or owner of the options",
		           NOWHERE, err);
		return NULL;
	}
	cptx_python_opt o;
	if (!OPTIONS_READ(cptx_python_opt, &o, opt, NOWHERE, err))
		return NULL;
	opt = &o;
	if (!python_is_there(__func__, err))
		return NULL;
	size_t size = strlen(launch->launch->k.info.name) + 1;
	callable *c = NEW_SIZED(callable, sizeof *c + size);
	if (!c) {
		no_memory(err, NOWHERE);
		return NULL;
	}
	*c = (callable){
		.launch = launch, .known = opt->known, .otherwise = opt->otherwise, .failed = opt->failed, .owner = opt->owner
	};
	memcpy(c->name, launch->launch->k.info.name, size);
	c->method = (struct method){ c->name, (void (*)(void))call, METH_VARARGS | METH_KEYWORDS, NULL };
	object *f = wrap(c);
	if (!f)
		no_memory(err, NOWHERE);
	return f;
}
