/* SPDX-License-Identifier: MIT */
/*
 * CPython as the library sees it.  Nothing of CPython is needed to build this: its functions, those of the stable ABI, are
 * weak symbols, which the loader finds in a CPython process.
 */
#ifndef CPTX_PYTHON_PYTHON_H
#define CPTX_PYTHON_PYTHON_H

#include "base/base.h"

typedef void object; /* stands for PyObject */

/* stands for PyMethodDef */
struct method {
	const char *name;
	void (*call)(void); /* the function, of the type that the flags say */
	int flags;
	const char *doc;
};
enum { METH_VARARGS = 1, METH_KEYWORDS = 2, METH_O = 8, METH_FASTCALL = 128 };

/* stand for PyGetSetDef, PyType_Slot, PyType_Spec */
struct getset {
	const char *name;
	object *(*get)(object *, void *);
	void (*set)(void);
	const char *doc;
	void *closure;
};
struct type_slot {
	int slot;
	union {
		void (*fn)(void);
		const void *data;
	} at;
};
struct type_spec {
	const char *name;
	int size, item_size;
	unsigned flags;
	const struct type_slot *slots;
};

/* The functions of CPython: name, result, arguments. */
#define PYTHON_CALLS(X)                                                                                                     \
	X(PyBytes_FromStringAndSize, object *, (const char *, ptrdiff_t))                                                       \
	X(PyCFunction_NewEx, object *, (struct method *, object *, object *))                                                   \
	X(PyCapsule_GetPointer, void *, (object *, const char *))                                                               \
	X(PyCapsule_New, object *, (void *, const char *, void (*)(object *)))                                                  \
	X(PyDict_GetItem, object *, (object *, object *))                                                                       \
	X(PyDict_New, object *, (void))                                                                                         \
	X(PyDict_SetItem, int, (object *, object *, object *))                                                                  \
	X(PyDict_Size, ptrdiff_t, (object *))                                                                                   \
	X(PyErr_Clear, void, (void))                                                                                            \
	X(PyErr_Format, object *, (object *, const char *, ...))                                                                \
	X(PyErr_Occurred, object *, (void))                                                                                     \
	X(PyEval_GetFrame, object *, (void))                                                                                    \
	X(PyFloat_AsDouble, double, (object *))                                                                                 \
	X(PyIter_Next, object *, (object *))                                                                                    \
	X(PyLong_AsLongLong, long long, (object *))                                                                             \
	X(PyLong_AsLongLongAndOverflow, long long, (object *, int *))                                                           \
	X(PyLong_AsUnsignedLongLong, unsigned long long, (object *))                                                            \
	X(PyLong_FromLongLong, object *, (long long))                                                                           \
	X(PyNumber_AsSsize_t, ptrdiff_t, (object *, object *))                                                                  \
	X(PyNumber_Index, object *, (object *))                                                                                 \
	X(PyObject_Call, object *, (object *, object *, object *))                                                              \
	X(PyObject_CallFunctionObjArgs, object *, (object *, ...))                                                              \
	X(PyObject_CallMethodObjArgs, object *, (object *, object *, ...))                                                      \
	X(PyObject_Free, void, (void *))                                                                                        \
	X(PyObject_GetAttr, object *, (object *, object *))                                                                     \
	X(PyObject_GetAttrString, object *, (object *, const char *))                                                           \
	X(PyObject_GetIter, object *, (object *))                                                                               \
	X(PyObject_IsInstance, int, (object *, object *))                                                                       \
	X(PyObject_IsTrue, int, (object *))                                                                                     \
	X(PyObject_Type, object *, (object *))                                                                                  \
	X(PySequence_GetItem, object *, (object *, ptrdiff_t))                                                                  \
	X(PySequence_Size, ptrdiff_t, (object *))                                                                               \
	X(PySlice_AdjustIndices, ptrdiff_t, (ptrdiff_t, ptrdiff_t *, ptrdiff_t *, ptrdiff_t))                                   \
	X(PySlice_Unpack, int, (object *, ptrdiff_t *, ptrdiff_t *, ptrdiff_t *))                                               \
	X(PyTuple_GetItem, object *, (object *, ptrdiff_t))                                                                     \
	X(PyTuple_New, object *, (ptrdiff_t))                                                                                   \
	X(PyTuple_SetItem, int, (object *, ptrdiff_t, object *))                                                                \
	X(PyTuple_Size, ptrdiff_t, (object *))                                                                                  \
	X(PyType_FromSpec, object *, (const struct type_spec *))                                                                \
	X(PyType_GenericAlloc, object *, (object *, ptrdiff_t))                                                                 \
	X(PyUnicode_AsUTF8AndSize, const char *, (object *, ptrdiff_t *))                                                       \
	X(PyUnicode_CompareWithASCIIString, int, (object *, const char *))                                                      \
	X(PyUnicode_FromString, object *, (const char *))                                                                       \
	X(PyUnicode_InternFromString, object *, (const char *))                                                                 \
	X(Py_DecRef, void, (object *))                                                                                          \
	X(Py_IncRef, void, (object *))

/* Its objects.  The types of exceptions are pointers to them. */
#define PYTHON_OBJECTS(X)                                                                                                   \
	X(_Py_NoneStruct)                                                                                                       \
	X(PyFloat_Type)                                                                                                         \
	X(PyList_Type)                                                                                                          \
	X(PyLong_Type)                                                                                                          \
	X(PySlice_Type)                                                                                                         \
	X(PyTuple_Type)                                                                                                         \
	X(PyUnicode_Type)
#define PYTHON_EXCEPTIONS(X)                                                                                                \
	X(PyExc_IndexError)                                                                                                     \
	X(PyExc_OverflowError)                                                                                                  \
	X(PyExc_TypeError)                                                                                                      \
	X(PyExc_ValueError)

#ifndef _WIN32
#ifdef __cplusplus
extern "C" {
#endif
#define DECLARE(name, result, args) extern result name args __attribute__((weak));
PYTHON_CALLS(DECLARE)
#undef DECLARE
#define DECLARE(name) extern char name __attribute__((weak));
PYTHON_OBJECTS(DECLARE)
#undef DECLARE
#define DECLARE(name) extern object *name __attribute__((weak));
PYTHON_EXCEPTIONS(DECLARE)
#undef DECLARE
#ifdef __cplusplus
}
#endif
#endif

#define NONE ((object *)&_Py_NoneStruct)

/* Whether this process is CPython's; if not, err says so. */
bool python_is_there(const char *function, cptx_error *err);

/* Raises the error as a Python exception by calling `failed`, unless one is set already; returns NULL. */
object *python_fail(object *failed, const cptx_error *err);

static inline void python_drop(object *x)
{
	if (x)
		Py_DecRef(x);
}

#endif
