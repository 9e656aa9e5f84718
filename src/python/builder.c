/* SPDX-License-Identifier: MIT */
/* Callables that make calls on a kernel: instructions, special registers, and those of calls.c. */
#include "base/options.h"
#include "python/builder.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SLOT = 3 }; /* into, when, unless stand in front of the operands of an instruction */
static const char *const first_slots[FIRST_SLOT] = { "into", "when", "unless" };

/* What all callables of a name share; the builder keeps it. */
struct call_kind {
	struct method method;
	const arch_op *op; /* an instruction, one of calls.c, or a special register */
	const call_row *call;
	enum cptx_sreg sreg;
	unsigned nname; /* keywords, interned: of an instruction first_slots, slots and fields */
	object *name[FIRST_SLOT + ARCH_SLOTS + ARCH_FIELDS];
	char *usage, *doc; /* usage: "add(a, b, *, into=None, ...)"; doc: the same with what it does, and its forms */
};

typedef struct callable {
	const call_kind *is;
	builder *b;
	object *capsule, *owner; /* held; capsule: of the builder */
	cptx_module *m;
	cptx_kernel *k;
} callable;

builder *builder_of(object *capsule) { return (builder *)PyCapsule_GetPointer(capsule, NULL); }

/* ---- one call ---- */

/* What a call gave: raises the module's error, if it has one. */
static object *result(const callable *c, cptx_val v)
{
	const cptx_error *err = cptx_module_error(c->m);

	return err ? python_fail(c->b->failed, err) : value_new(c->b->value_class, v);
}

/* The index of a keyword; -1, with an exception, if the call has none of that name. */
static int keyword(const callable *c, object *name)
{
	char plain[64];
	const char *text;
	size_t n;

	for (unsigned i = 0; i < c->is->nname; i++)
		if (c->is->name[i] == name)
			return (int)i;
	text = PyUnicode_AsUTF8AndSize(name, NULL);
	n = text ? strlen(text) : 0;
	if (n && n < sizeof plain) {
		memcpy(plain, text, n + 1);
		for (int cut = 0; cut < 2; cut++) { /* as it stands, and without the _ behind a word of Python */
			for (unsigned i = 0; i < c->is->nname; i++)
				if (!PyUnicode_CompareWithASCIIString(c->is->name[i], plain))
					return (int)i;
			if (plain[n - 1] != '_')
				break;
			plain[n - 1] = 0;
		}
	}
	PyErr_Format(PyExc_TypeError, "%s() has no keyword %R; %s", c->is->method.name, name, c->is->usage);
	return -1;
}

/* The keywords of an instruction. */
static bool take_keywords(const callable *c, cptx_site at, object *const *args, object *names, cptx_val *vals,
                          uint16_t *mods)
{
	const unsigned first_field = FIRST_SLOT + (unsigned)c->is->op->nslot;
	ptrdiff_t n = names ? PyTuple_Size(names) : 0;

	for (ptrdiff_t i = 0; i < n; i++) {
		int at_name = keyword(c, PyTuple_GetItem(names, i));
		if (at_name < 0)
			return false;
		if ((unsigned)at_name >= first_field) {
			if (!take_mod(c->b, args[i], &mods[(unsigned)at_name - first_field]))
				return false;
		} else if (!take_value(c->b, c->k, at, args[i], &vals[at_name])) {
			return false;
		}
	}
	return true;
}

static object *call_insn(object *self, object *const *args, ptrdiff_t n, object *names)
{
	const callable *c = (const callable *)PyCapsule_GetPointer(self, NULL);
	const arch_op *op = c->is->op;
	cptx_val vals[FIRST_SLOT + ARCH_SLOTS] = { { 0 } };
	uint16_t mods[ARCH_FIELDS] = { 0 };
	const cptx_site at = line_at(c->b, 0);

	if (n > op->npos)
		return PyErr_Format(PyExc_TypeError, "%zd operands were given to %s", n, c->is->usage);
	for (ptrdiff_t i = 0; i < n; i++)
		if (!take_value(c->b, c->k, at, args[i], &vals[FIRST_SLOT + op->pos[i]]))
			return NULL;
	if (!take_keywords(c, at, args + n, names, vals, mods))
		return NULL;
	for (unsigned i = 0; i < op->npos; i++)
		if (!vals[FIRST_SLOT + op->pos[i]].kind)
			return PyErr_Format(PyExc_TypeError, "operand %s is not given: %s", op->slot[op->pos[i]], c->is->usage);
	return result(c, cptx_insn_(c->k, at, (enum cptx_op)(op - arch_ops), vals, mods));
}

static object *call_sreg(object *self, object *const *args, ptrdiff_t n, object *names)
{
	const callable *c = (const callable *)PyCapsule_GetPointer(self, NULL);

	(void)args;
	if (n || (names && PyTuple_Size(names)))
		return PyErr_Format(PyExc_TypeError, "%s() takes no arguments", c->is->method.name);
	return result(c, cptx_sreg_(c->k, line_at(c->b, 0), c->is->sreg));
}

static bool take_arg(const callable *c, cptx_site at, char takes, object *x, call_arg *a)
{
	switch (takes) {
	case 'v': return take_value(c->b, c->k, at, x, &a->v);
	case 't': return take_mod(c->b, x, &a->mod);
	case 'i': return take_int(x, &a->i);
	default: return take_text(x, &a->s);
	}
}

/* The arguments of a call in front of V: given gets a bit for each. */
static bool take_args(const callable *c, cptx_site at, object *const *args, ptrdiff_t n, object *names, call_arg *a,
                      unsigned *given)
{
	char takes[MOST_ARGS + 1] = { 0 };
	unsigned nkind = 0, nnames = names ? (unsigned)PyTuple_Size(names) : 0;

	for (const char *p = c->is->call->takes; *p && *p != 'V'; p++)
		if (*p != '|')
			takes[nkind++] = *p;
	for (unsigned i = 0; i < (unsigned)n + nnames; i++) {
		int place = i < (unsigned)n ? (int)i : keyword(c, PyTuple_GetItem(names, i - (unsigned)n));
		if (place < 0)
			return false;
		if ((unsigned)place >= nkind) {
			if (i < (unsigned)n)
				continue;
			PyErr_Format(PyExc_TypeError, "%R is given by position: %s", PyTuple_GetItem(names, i - (unsigned)n),
			             c->is->usage);
			return false;
		}
		if (!take_arg(c, at, takes[place], args[i], &a[place]))
			return false;
		*given |= 1u << place;
	}
	return true;
}

static object *call_other(object *self, object *const *args, ptrdiff_t n, object *names)
{
	const callable *c = (const callable *)PyCapsule_GetPointer(self, NULL);
	const char *more = strchr(c->is->call->takes, 'V');
	size_t nfixed = strcspn(c->is->call->takes, "V"), needed = strcspn(c->is->call->takes, "|V"), nv = 0;
	cptx_val few[16], *v = few;
	call_arg a[MOST_ARGS] = { { { 0 } } };
	unsigned given = 0;
	object *r = NULL;
	const cptx_site at = line_at(c->b, c->is->method.name[0] == '_');

	if (strchr(c->is->call->takes, '|'))
		nfixed--;
	if (!more && (size_t)n > nfixed)
		return PyErr_Format(PyExc_TypeError, "%zd arguments were given to %s", n, c->is->usage);
	if (!take_args(c, at, args, n, names, a, &given))
		return NULL;
	if (given % (1u << needed) != (1u << needed) - 1)
		return PyErr_Format(PyExc_TypeError, "an argument is not given: %s", c->is->usage);
	if (more && (size_t)n > nfixed)
		nv = (size_t)n - nfixed;
	if (nv > ARRAY_LEN(few) && !(v = (cptx_val *)calloc(nv, sizeof *v)))
		return PyErr_Format(PyExc_ValueError, "out of memory");
	bool ok = true;
	for (size_t i = 0; ok && i < nv; i++)
		ok = take_value(c->b, c->k, at, args[nfixed + i], &v[i]);
	if (ok)
		r = result(c, c->is->call->fn(c->k, at, a, v, nv));
	if (v != few)
		free(v);
	return r;
}

/* ---- making callables ---- */

static void destroy(object *capsule)
{
	callable *c = (callable *)PyCapsule_GetPointer(capsule, NULL);

	python_drop(c->owner);
	python_drop(c->capsule);
	free(c);
}

static void kind_free(call_kind *c)
{
	for (unsigned i = 0; c && i < c->nname; i++)
		python_drop(c->name[i]);
	if (c) {
		heap_realloc(&heap_default, c->usage, 0);
		heap_realloc(&heap_default, c->doc, 0);
	}
	free(c);
}

static char *usage_of(const call_kind *c)
{
	buf b;

	buf_init(&b, NULL);
	buf_printf(&b, "%s(", c->method.name);
	if (c->op) {
		for (unsigned i = 0; i < c->op->npos; i++)
			buf_printf(&b, "%s, ", c->op->slot[c->op->pos[i]]);
		buf_printf(&b, "*");
	}
	for (unsigned i = 0; i < c->nname; i++) {
		bool is_slot = c->op && i >= FIRST_SLOT && i < FIRST_SLOT + (unsigned)c->op->nslot;
		const char *name = PyUnicode_AsUTF8AndSize(c->name[i], NULL);
		if (!is_slot || !memchr(c->op->pos, (int)(i - FIRST_SLOT), c->op->npos))
			buf_printf(&b, "%s%s%s", c->op || i ? ", " : "", name ? name : "", c->op ? "=None" : "");
	}
	buf_put(&b, ")", 2);
	if (b.failed)
		buf_free(&b);
	return b.p;
}

static char *doc_of(const call_kind *c)
{
	buf b;

	buf_init(&b, NULL);
	buf_printf(&b, "%s", c->usage);
	if (c->op)
		buf_printf(&b, ": %s", c->op->about);
	for (unsigned i = 0; c->op && i < c->op->nform; i++)
		buf_printf(&b, "\n  %s    [%s]", arch_forms[c->op->form + i].text,
		           arch_avail_text[arch_forms[c->op->form + i].avail]);
	buf_put(&b, "", 1);
	if (b.failed)
		buf_free(&b);
	return b.p;
}

static bool add_name(call_kind *c, const char *name)
{
	object *s = PyUnicode_InternFromString(name);

	if (s)
		c->name[c->nname++] = s;
	return s != NULL;
}

static bool add_names(call_kind *c)
{
	bool ok = true;

	if (c->op) {
		for (unsigned i = 0; ok && i < FIRST_SLOT; i++)
			ok = add_name(c, first_slots[i]);
		for (unsigned i = 0; ok && i < c->op->nslot; i++)
			ok = add_name(c, c->op->slot[i]);
		for (unsigned i = 0; ok && i < c->op->nfield; i++)
			ok = add_name(c, c->op->field[i]);
	}
	char name[32];
	for (const char *p = c->call ? c->call->names : ""; ok && *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		snprintf(name, sizeof name, "%.*s", (int)n, p);
		ok = add_name(c, name);
		p += n;
	}
	return ok;
}

/* The kind of call number i; NULL when memory is short. */
static const call_kind *kind_of(builder *b, size_t i)
{
	if (b->kinds[i])
		return b->kinds[i];
	call_kind *c = (call_kind *)calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->method.name = cptx_python_call_at(i);
	c->method.flags = METH_FASTCALL | METH_KEYWORDS;
	if (i < python_ncalls) {
		c->call = &python_calls[i];
		c->method.call = (void (*)(void))call_other;
	} else if (i < python_ncalls + arch_nop) {
		c->op = &arch_ops[i - python_ncalls];
		c->method.call = (void (*)(void))call_insn;
	} else {
		c->sreg = (enum cptx_sreg)(i - python_ncalls - arch_nop);
		c->method.call = (void (*)(void))call_sreg;
	}
	if (!add_names(c) || !(c->usage = usage_of(c)) || !(c->doc = doc_of(c))) {
		kind_free(c);
		return NULL;
	}
	c->method.doc = c->doc;
	return b->kinds[i] = c;
}

const char *cptx_python_call_at(size_t i)
{
	if (i < python_ncalls)
		return python_calls[i].name;
	i -= python_ncalls;
	return i < arch_nop ? arch_ops[i].name : cptx_sreg_call(i - arch_nop);
}

/* A callable of a kernel: that of a kind, or (NULL) the one that makes the others.  NULL, with an exception, on failure. */
static object *callable_new(const callable *like, const call_kind *is, const struct method *method)
{
	callable *c = (callable *)calloc(1, sizeof *c);
	object *self = c ? PyCapsule_New(c, NULL, destroy) : NULL;

	if (!self) {
		free(c);
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "out of memory");
	}
	*c = *like;
	c->is = is;
	Py_IncRef(c->capsule);
	Py_IncRef(c->owner);
	object *f = PyCFunction_NewEx((struct method *)(uintptr_t)method, self, NULL);
	Py_DecRef(self);
	return f;
}

static object *get_call(object *self, object *number)
{
	const callable *c = (const callable *)PyCapsule_GetPointer(self, NULL);
	int64_t i;

	if (!take_int(number, &i))
		return NULL;
	if (i < 0 || !cptx_python_call_at((size_t)i))
		return PyErr_Format(PyExc_ValueError, "there is no call number %R", number);
	const call_kind *is = kind_of(c->b, (size_t)i);
	return is ? callable_new(c, is, &is->method) : PyErr_Format(PyExc_ValueError, "out of memory");
}

void *cptx_python_calls(void *capsule, cptx_module *module, cptx_kernel *kernel, void *owner, cptx_error *err)
{
	static const struct method get = { "get", (void (*)(void))get_call, METH_O, "get(number): the call with that number." };

	if (err && err->code != CPTX_OK)
		return NULL;
	if (!capsule || !module || !kernel || !owner) {
		error_null(__func__, "builder, module, kernel or owner", NOWHERE, err);
		return NULL;
	}
	if (!python_is_there(__func__, err))
		return NULL;
	const callable like = { NULL, builder_of(capsule), capsule, owner, module, kernel };
	object *f = like.b ? callable_new(&like, NULL, &get) : NULL;
	if (!f) {
		PyErr_Clear();
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	}
	return f;
}

void *cptx_python_value(void *capsule, cptx_val v)
{
	builder *b = capsule && python_is_there(__func__, NULL) ? builder_of(capsule) : NULL;

	return b ? value_new(b->value_class, v) : NULL;
}

static void destroy_builder(object *capsule)
{
	builder *b = builder_of(capsule);

	lines_forget(b);
	object *held[] = { b->value_class, b->failed, b->mods,     b->files,      b->f_code,
		               b->f_lasti,     b->f_back, b->co_lines, b->co_filename };
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		python_drop(held[i]);
	for (size_t i = 0; b->kinds && cptx_python_call_at(i); i++)
		kind_free(b->kinds[i]);
	free(b->kinds);
	free(b);
}

void *cptx_python_builder(const cptx_python_builder_opt *opt, cptx_error *err)
{
	cptx_python_builder_opt o;

	if (err && err->code != CPTX_OK)
		return NULL;
	if (!opt || !opt->value || !opt->failed) {
		error_null(__func__, opt ? "value or failed of the options" : "options struct", NOWHERE, err);
		return NULL;
	}
	if (!OPTIONS_READ(cptx_python_builder_opt, &o, opt, NOWHERE, err) || !python_is_there(__func__, err))
		return NULL;
	builder *b = (builder *)calloc(1, sizeof *b);
	object *capsule = b ? PyCapsule_New(b, NULL, destroy_builder) : NULL;
	if (!capsule) {
		free(b);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	Py_IncRef(o.value);
	Py_IncRef(o.failed);
	b->value_class = o.value;
	b->failed = o.failed;
	b->kinds = (call_kind **)calloc(python_ncalls + arch_nop + arch_nsreg, sizeof(call_kind *));
	b->mods = PyDict_New();
	b->files = PyDict_New();
	b->f_code = PyUnicode_InternFromString("f_code");
	b->f_lasti = PyUnicode_InternFromString("f_lasti");
	b->f_back = PyUnicode_InternFromString("f_back");
	b->co_lines = PyUnicode_InternFromString("co_lines");
	b->co_filename = PyUnicode_InternFromString("co_filename");
	if (!b->kinds || !b->mods || !b->files || !b->f_code || !b->f_lasti || !b->f_back || !b->co_lines || !b->co_filename) {
		Py_DecRef(capsule);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	return capsule;
}
