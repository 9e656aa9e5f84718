/* SPDX-License-Identifier: MIT */
/* Whether there is a CPython, and how its exceptions are raised. */
#include "python/python.h"

bool python_is_there(const char *function, cptx_error *err)
{
	bool all = true;

#define IS_THERE(name, result, args) all = all && name != NULL;
	PYTHON_CALLS(IS_THERE)
#undef IS_THERE
#define IS_THERE(name) all = all && &name != NULL;
	PYTHON_OBJECTS(IS_THERE)
	PYTHON_EXCEPTIONS(IS_THERE)
#undef IS_THERE
	return all || error_set(err, CPTX_E_STATE, NOWHERE, "%s: there is no CPython 3.10 or later in this process", function);
}

object *python_fail(object *failed, const cptx_error *err)
{
	object *bytes = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize((const char *)err, sizeof *err);

	python_drop(bytes ? PyObject_CallFunctionObjArgs(failed, bytes, NULL) : NULL);
	python_drop(bytes);
	return NULL;
}
