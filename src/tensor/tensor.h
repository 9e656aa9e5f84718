/* SPDX-License-Identifier: MIT */
/* Launches with tensors: what a signature says, and the state of one run. */
#ifndef CPTX_TENSOR_TENSOR_H
#define CPTX_TENSOR_TENSOR_H

#include "runtime/runtime.h"
#include <cptx/dlpack.h>
#include <dlpack/dlpack.h>

#include <pthread.h>

enum { MAX_ARGS = CPTX_TENSOR_MAX_ARGS, MAX_RANK = CPTX_TENSOR_MAX_RANK, MAX_NAMES = 32, MAX_FACTORS = 4 };

enum extent_kind { EXTENT_ANY, EXTENT_NUMBER, EXTENT_NAME };
typedef struct extent {
	uint8_t kind, name; /* index into names */
	int64_t number;
} extent;

/* factor * factor ... / divisor, rounded up */
typedef struct product {
	size_t n; /* 0: there is none */
	extent factor[MAX_FACTORS];
	int64_t divisor;
} product;

typedef struct entry {
	const char *name;
	enum cptx_type type;
	bool is_tensor, is_const, is_optional, strided;
	uint32_t align; /* bytes */
	int rank;
	extent dim[MAX_RANK], stride[MAX_RANK];
	product value; /* of a number that is not given */
	int symbol;    /* of an integer that is given: the name that it is known by, -1: none */
} entry;

typedef struct signature {
	arena mem;
	size_t nargs, nnames;
	entry arg[MAX_ARGS];
	const char *name[MAX_NAMES]; /* of dimensions */
	product grid[3];
} signature;

/* signature.c.  They say what is wrong, and where in the text. */
bool signature_read(signature *s, const char *text, const char *grid, cptx_site at, cptx_error *err);

/* What names stand for in one run. */
typedef struct tensor_binding {
	bool known, idle; /* idle: by a stride that nothing is reached by; what has to agree takes its place */
	uint8_t by;       /* argument */
	int64_t v;
} tensor_binding;

/* signature.c.  Of names that are known; false: it is beyond 64 bits. */
bool product_value(const product *p, const tensor_binding *names, int64_t *v);

struct cptx_tensor_launch {
	cptx_launch *launch;
	cptx_device *dev;
	signature s;
	pthread_mutex_t lock; /* of the launch's arguments */
	size_t ngiven;
};

/* type.c */
bool type_to_dl(enum cptx_type t, DLDataType *d); /* false: DLPack has none */
bool type_fits(enum cptx_type t, DLDataType d);
bool type_holds(enum cptx_type t, int64_t v); /* of an integer type */
void type_text(DLDataType d, char *text, size_t size);

/* check.c */
/* Whether tensor t fits argument i.  Binds names. */
bool tensor_fits(const cptx_tensor_launch *l, size_t i, const DLTensor *t, bool read_only, tensor_binding *names,
                 cptx_error *err);
/* Binds a name, or compares. */
bool bind(tensor_binding *names, const extent *e, int64_t v, size_t by);
/* The bytes that a tensor reaches, from the first; 0 for none. */
uint64_t tensor_span(const DLTensor *t, uint64_t *first);
bool tensor_sane(const DLTensor *t, const char **why);

#endif
