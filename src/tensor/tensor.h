/* SPDX-License-Identifier: MIT */
/* Launches with tensors: the parsed signature, and the state of one run. */
#ifndef CPTX_TENSOR_TENSOR_H
#define CPTX_TENSOR_TENSOR_H

#include "runtime/runtime.h"
#include <cptx/dlpack.h>
#include <dlpack/dlpack.h>

#include <pthread.h>

enum { MAX_ARGS = CPTX_TENSOR_MAX_ARGS, MAX_RANK = CPTX_TENSOR_MAX_RANK, MAX_NAMES = 32, MAX_FACTORS = 4 };

enum extent_kind { EXTENT_ANY, EXTENT_NUMBER, EXTENT_NAME };
typedef struct extent {
	uint8_t kind, name; /* name: index into names */
	int64_t number;
} extent;

/* factor * factor ... / divisor, rounded up */
typedef struct product {
	size_t n; /* number of factors; 0: there is no product */
	extent factor[MAX_FACTORS];
	int64_t divisor;
} product;

typedef struct entry {
	const char *name;
	enum cptx_type type;
	bool is_tensor, is_const, is_optional, strided;
	uint32_t align; /* alignment in bytes */
	int rank;
	extent dim[MAX_RANK], stride[MAX_RANK];
	product value; /* value of a computed number */
	int symbol;    /* index of the name of an integer that is passed; -1: none */
} entry;

typedef struct signature {
	arena mem;
	size_t nargs, nnames;
	entry arg[MAX_ARGS];
	const char *name[MAX_NAMES]; /* names of dimensions */
	product grid[3];
} signature;

/* signature.c.  Errors say what is wrong, and where in the text. */
bool signature_read(signature *s, const char *text, const char *grid, cptx_site at, cptx_error *err);

/* The values of names in one run. */
typedef struct tensor_binding {
	bool known, idle; /* idle: bound by a stride that reaches nothing, which any other binding replaces */
	uint8_t by;       /* argument that bound it */
	int64_t v;
} tensor_binding;

/* signature.c.  Computes a product whose names are known; false: it exceeds 64 bits. */
bool product_value(const product *p, const tensor_binding *names, int64_t *v);

struct cptx_tensor_launch {
	cptx_launch *launch;
	cptx_device *dev;
	signature s;
	pthread_mutex_t lock; /* held while the launch's arguments are set and used */
	size_t ngiven;
};

/* type.c */
bool type_to_dl(enum cptx_type t, DLDataType *d); /* false: DLPack has no such type */
bool type_fits(enum cptx_type t, DLDataType d);
bool type_holds(enum cptx_type t, int64_t v); /* whether an integer type holds the value */
void type_text(DLDataType d, char *text, size_t size);

/* check.c */
/* Whether tensor t fits argument i; binds its names. */
bool tensor_fits(const cptx_tensor_launch *l, size_t i, const DLTensor *t, bool read_only, tensor_binding *names,
                 cptx_error *err);
/* Binds a name, or compares it with its value. */
bool tensor_bind(tensor_binding *names, const extent *e, int64_t v, size_t by);
/* The number of bytes between the lowest and the highest that a tensor reaches; 0 if it is empty.  *first gets the address
 * of the lowest. */
uint64_t tensor_span(const DLTensor *t, uint64_t *first);
bool tensor_sane(const DLTensor *t, const char **why);

#endif
