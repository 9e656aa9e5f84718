/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a kernel: one table declares them, and a launch fills them from structs of the host.
 *
 *   struct scale_args { cptx_tensor_map_opt x; uint64_t out; uint32_t n; float by; };
 *   static const cptx_param_row rows[] = {
 *       CPTX_PARAM_MAP(struct scale_args, x),
 *       CPTX_PARAM_ROW(struct scale_args, CPTX_PTR, out),
 *       CPTX_PARAM_ROW(struct scale_args, CPTX_U32, n),
 *       CPTX_PARAM_ROW(struct scale_args, CPTX_F32, by),
 *   };
 *
 *   cptx_params p = { 0 };                                              the kernel
 *   cptx_params_declare(k, &p, rows, CPTX_PARAM_COUNT(rows));
 *   cptx_params_declare(k, &p, epilogue_rows, CPTX_PARAM_COUNT(epilogue_rows));     what an epilogue asks for comes behind
 *   cptx_val n = cptx_params_get(k, &p, "n");
 *
 *   cptx_params_part parts[] = { { rows, CPTX_PARAM_COUNT(rows), &args },                           the host
 *                                { epilogue_rows, CPTX_PARAM_COUNT(epilogue_rows), &epilogue_args } };
 *   cptx_launch *l = cptx_params_launch(program, dev, "scale", parts, 2, &(cptx_launch_opt){ .grid = { 132 } }, &err);
 *
 * All rows of a table are declared; put optional parameters in a separate table.  Declaring emits what
 * cptx_param does, a load (of a pointer also a cvta); of a tensor map a mov and a cvta.  Nothing here does more than the
 * calls of <cptx/insn.h> and <cptx/device.h>.
 */
#ifndef CPTX_PARAMS_H
#define CPTX_PARAMS_H

#include <cptx/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CPTX_PARAMS_MOST = 64 /**< parameters of a kernel, of all its tables */ };

/** What a row is. */
enum cptx_param_kind {
	CPTX_PARAM_SCALAR, /**< a number or a pointer */
	CPTX_PARAM_TENSOR, /**< a cptx_tensor_map_opt of the host, of which the launch makes a tensor map */
	CPTX_PARAM_OBJECT  /**< bytes as they are */
};

/** One parameter, and the member of a host struct that it is filled from.  Made by the macros below. */
typedef struct cptx_param_row {
	const char *name;          /**< of the parameter: the member's, unless CPTX_PARAM_AS says another */
	const char *of;            /**< the struct, for messages */
	enum cptx_param_kind kind; /**< what it is */
	enum cptx_type type;       /**< of a number: CPTX_PTR, CPTX_U32, CPTX_F32 ... */
	uint32_t offset, size;     /**< of the member, bytes */
	uint32_t align;            /**< of an object */
} cptx_param_row;

/** How many rows a table has: the array itself, not a pointer to it. */
#define CPTX_PARAM_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
/** A number or pointer (CPTX_PTR: a uint64_t): CPTX_PARAM_ROW(struct args, CPTX_U32, n). */
#define CPTX_PARAM_ROW(args, type, member) CPTX_PARAM_ROW_(args, CPTX_PARAM_SCALAR, type, member, 0, #member)
/** The same under another name than the member's: CPTX_PARAM_AS(struct args, CPTX_PTR, q_address, "q"). */
#define CPTX_PARAM_AS(args, type, member, name) CPTX_PARAM_ROW_(args, CPTX_PARAM_SCALAR, type, member, 0, name)
/** A tensor map; the member is a cptx_tensor_map_opt. */
#define CPTX_PARAM_MAP(args, member) CPTX_PARAM_ROW_(args, CPTX_PARAM_TENSOR, CPTX_TYPE_NONE, member, 0, #member)
/** Bytes, such as an array or a struct, at that alignment: cptx_param_bytes. */
#define CPTX_PARAM_BYTES(args, member, align)                                                                               \
	CPTX_PARAM_ROW_(args, CPTX_PARAM_OBJECT, CPTX_TYPE_NONE, member, align, #member)
#define CPTX_PARAM_ROW_(args, kind, type, member, align, name)                                                              \
	{                                                                                                                       \
		(name), #args, (kind), (type), (uint32_t)offsetof(args, member), (uint32_t)sizeof(((args *)0)->member), (align)     \
	}

/** The parameters that a kernel has declared by tables.  Plain data, all zero at first: the first call makes it. */
typedef struct cptx_params {
	cptx_made made;                       /**< by which call, in which kernel */
	uint32_t n;                           /**< how many */
	cptx_param_row row[CPTX_PARAMS_MOST]; /**< in order */
	cptx_val val[CPTX_PARAMS_MOST];       /**< a number or pointer: its register; a map: its .u64 generic address; an
	                                           object: its address in parameter space */
	uint64_t reserved_[4];                /**< for fields of later versions */
} cptx_params;

CPTX_API void cptx_params_declare_(cptx_kernel *k, cptx_site at, cptx_params *p, const cptx_param_row *rows, size_t n);
/** Declares the next n parameters and loads them.  A name that there is already, and a member whose size is not that of the
 * type, are errors.  The names must live as long as p. */
#define cptx_params_declare(k, p, rows, n) cptx_params_declare_((k), CPTX_HERE, (p), (rows), (n))
CPTX_API cptx_val cptx_params_get_(cptx_kernel *k, cptx_site at, const cptx_params *p, const char *name);
/** The parameter of that name; where there is none, an error lists those that there are. */
#define cptx_params_get(k, p, name) cptx_params_get_((k), CPTX_HERE, (p), (name))
CPTX_API void cptx_params_prefetch_(cptx_kernel *k, cptx_site at, const cptx_params *p, cptx_val when);
/** prefetch.tensormap of each map, in the threads where the predicate holds (one is enough; NONE: in all); sm_90. */
#define cptx_params_prefetch(k, p, when) cptx_params_prefetch_((k), CPTX_HERE, (p), (when))

/** A table and the struct that fills it. */
typedef struct cptx_params_part {
	const cptx_param_row *rows; /**< as declared */
	size_t n;                   /**< how many */
	const void *args;           /**< the host struct that the rows are of; only read by the launch */
} cptx_params_part;

CPTX_API cptx_launch *cptx_params_launch_(cptx_site at, const cptx_program *program, cptx_device *dev, const char *kernel,
                                          const cptx_params_part *parts, size_t nparts, const cptx_launch_opt *opt,
                                          cptx_error *err);
/**
 * Prepares a launch as cptx_launch_new does, which it calls: makes the tensor maps, and takes all arguments now.  The parts
 * stand in the order of cptx_params_declare; where the program tells its parameters' names, they are compared.  opt has
 * no arguments of its own.  A tensor map whose box, swizzle or type is not that of the tiles which operands load and
 * epilogues store by it is refused, in a program that was loaded from its module (of text nobody knows the tiles): a copy
 * would put elements in other places, or wait for bytes that do not come.  Integers stand for bits of anything as wide, and
 * .f32 for types that round or flush it; where several tiles are copied by one map, it is that of one of them.
 * cptx_launch_run runs it, cptx_launch_destroy frees it.  NULL on error, which names row and struct; else as of
 * cptx_launch_new and cptx_tensor_map_make.
 */
#define cptx_params_launch(...) cptx_params_launch_(CPTX_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
