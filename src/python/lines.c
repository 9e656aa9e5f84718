/* SPDX-License-Identifier: MIT */
/*
 * Which line of Python calls.  CPython finds the line of a frame by walking all lines of its function, which takes longer
 * than building an instruction; so the lines of a function are read once, and looked up here.
 */
#include "python/builder.h"

#include <stdlib.h>

static size_t place_of(const builder *b, object *code)
{
	size_t i = (size_t)((uintptr_t)code >> 4) * 0x9e3779b1u;

	for (i &= CODES - 1; b->codes[i] && b->codes[i]->code != code;)
		i = (i + 1) & (CODES - 1);
	return i;
}

void lines_forget(builder *b)
{
	for (size_t i = 0; i < CODES; i++)
		if (b->codes[i]) {
			Py_DecRef(b->codes[i]->code);
			free(b->codes[i]);
			b->codes[i] = NULL;
		}
	b->ncodes = 0;
	b->last = NULL;
}

/* The name of a code's file, one pointer for all codes of a file, which lives as long as the builder. */
static const char *file_of(builder *b, object *code)
{
	object *name = PyObject_GetAttr(code, b->co_filename);
	object *kept = name ? PyDict_GetItem(b->files, name) : NULL;

	if (name && !kept && PyDict_SetItem(b->files, name, name) == 0)
		kept = PyDict_GetItem(b->files, name);
	const char *file = kept ? PyUnicode_AsUTF8AndSize(kept, NULL) : NULL;
	python_drop(name);
	return file;
}

static int64_t int_at(object *tuple, ptrdiff_t i)
{
	object *x = PyTuple_GetItem(tuple, i);

	return !x || x == NONE ? 0 : PyLong_AsLongLong(x);
}

/* Reads all lines of a code object; NULL if that cannot be done. */
static code_lines *read_lines(builder *b, object *code)
{
	object *all = PyObject_CallMethodObjArgs(code, b->co_lines, NULL), *iterator = all ? PyObject_GetIter(all) : NULL;
	size_t room = 16;
	code_lines *l = iterator ? (code_lines *)calloc(1, sizeof *l + room * sizeof l->at[0]) : NULL;

	for (object *next; l && (next = PyIter_Next(iterator)) != NULL; Py_DecRef(next)) {
		if (l->n == room) {
			code_lines *more = (code_lines *)realloc(l, sizeof *l + (room *= 2) * sizeof l->at[0]);
			if (!more)
				free(l);
			l = more;
		}
		if (l)
			l->at[l->n++] = (code_line){ (uint32_t)int_at(next, 0), (uint32_t)int_at(next, 2) };
	}
	python_drop(iterator);
	python_drop(all);
	if (l) {
		l->code = code;
		l->file = file_of(b, code);
	}
	return l;
}

static const code_lines *lines_of(builder *b, object *code)
{
	size_t i = place_of(b, code);

	if (b->codes[i])
		return b->codes[i];
	if (b->ncodes == CODES / 2) {
		lines_forget(b);
		i = place_of(b, code);
	}
	code_lines *l = read_lines(b, code);
	if (!l)
		return NULL;
	Py_IncRef(code);
	b->ncodes++;
	return b->codes[i] = l;
}

static uint32_t line_of(const code_lines *l, uint32_t offset)
{
	size_t low = 0, high = l->n;

	while (high - low > 1) {
		size_t mid = (low + high) / 2;
		*(l->at[mid].start <= offset ? &low : &high) = mid;
	}
	return l->n ? l->at[low].line : 0;
}

cptx_site line_at(builder *b, unsigned up)
{
	object *frame = PyEval_GetFrame();
	cptx_site at = { NULL, 0 };

	if (frame)
		Py_IncRef(frame);
	for (; frame && frame != NONE && up; up--) {
		object *back = PyObject_GetAttr(frame, b->f_back);
		Py_DecRef(frame);
		frame = back;
	}
	object *code = frame ? PyObject_GetAttr(frame, b->f_code) : NULL;
	object *offset = code ? PyObject_GetAttr(frame, b->f_lasti) : NULL;
	if (code && (!b->last || b->last->code != code))
		b->last = lines_of(b, code);
	if (offset && b->last)
		at = (cptx_site){ b->last->file, line_of(b->last, (uint32_t)PyLong_AsLongLong(offset)) };
	python_drop(code);
	python_drop(offset);
	python_drop(frame);
	if (!at.file)
		PyErr_Clear();
	return at;
}

cptx_site cptx_python_line(void *capsule, unsigned up)
{
	builder *b = capsule && python_is_there(__func__, NULL) ? builder_of(capsule) : NULL;

	return b ? line_at(b, up) : (cptx_site){ NULL, 0 };
}
