/* SPDX-License-Identifier: MIT */
/*
 * cptx: kernels that Python builds.
 *
 * These calls make Python objects, by the functions of CPython that are in the process: nothing of Python is needed to build
 * or to use the library.  The Python module (python/cptx) stands on them, and is what programs use; <cptx/dlpack.h> has its
 * launches.  All objects are PyObjects, here void pointers; results are new references, and the caller has the GIL.
 * CPython 3.10 or later with a GIL is needed.
 *
 * Errors: STATE, the process is no such CPython's; ARG, a NULL; MEMORY.
 */
#ifndef CPTX_PYTHON_H
#define CPTX_PYTHON_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A new class whose objects hold a cptx_val: operands and results.  v[i] and v[a:b] are elements of a register array, ~p and
 * -r complement and negative; methods: offset(bytes), as_(type), select(selector); attributes: kind, type, count.
 */
CPTX_API void *cptx_python_value_class(cptx_error *err);

/** What a builder needs; PyObjects that it holds references to. */
typedef struct cptx_python_builder_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	void *value;   /**< the class of results: that of cptx_python_value_class, or a subclass without fields of its own */
	void *failed;  /**< called with the bytes of a cptx_error, to raise it */
	char z_;
} cptx_python_builder_opt;

/** A builder, a capsule: what all callables share.  One is enough for a process. */
CPTX_API void *cptx_python_builder(const cptx_python_builder_opt *opt, cptx_error *err);

/** A value as an object; None for NONE. */
CPTX_API void *cptx_python_value(void *builder, cptx_val v);

/**
 * The calls of a kernel: a callable that takes the number of a call, in the order of cptx_python_call_at, and returns a
 * callable that makes it, f(a, b, rnd="rn", into=r).  Operands are values, numbers, and tuples or lists, which are packed;
 * modifiers are numbers (enum cptx_mod), PTX spellings or True.  Errors stand at the line of Python that calls.
 *
 * module: that of the kernel.  owner: an object that keeps both.
 */
CPTX_API void *cptx_python_calls(void *builder, cptx_module *module, cptx_kernel *kernel, void *owner, cptx_error *err);

/** The name of call number i, from 0 on: "param", "add", "tid_x"; NULL behind the last.  Those that begin with _ are made by
 * the Python module for its user, one frame above. */
CPTX_API const char *cptx_python_call_at(size_t i);

/**
 * The line of Python that runs, `up` frames above the one that called into C; {NULL, 0} if it is not known.  The file's name
 * lives as long as the builder.
 */
CPTX_API cptx_site cptx_python_line(void *builder, unsigned up);

#ifdef __cplusplus
}
#endif
#endif
