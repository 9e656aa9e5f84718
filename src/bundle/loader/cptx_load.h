/* SPDX-License-Identifier: MIT */
/*
 * Loads bundles of kernels that `cptx bundle` made.  This header and cptx_load.c are all that a program needs besides the
 * CUDA driver: neither cptx nor anything of CUDA's toolkit; libcuda is opened at run time.
 *
 *   char err[CPTX_LOAD_ERROR];
 *   cptx_load *b = cptx_load_file("kernels.bundle", err);
 *   cptx_load_kernel *k = cptx_load_get(b, "qkv", err);           // compiled for this GPU, or from PTX
 *   cptx_load_arg args[] = { { .pointer = a }, { .pointer = b }, { .pointer = d } };
 *   if (!cptx_load_launch(k, args, 3, stream, err))
 *       fprintf(stderr, "%s\n", err);
 *
 * Calls work in the calling thread's current context.  Where there is none, cptx_load_get makes the primary context of
 * device 0 current, with a reference to it that is kept for good, and cptx_load_launch the context that the kernel was
 * loaded in; to launch it in another one is an error. Threads: cptx_load_launch may be called by many threads at once, all
 * else by one at a time. Errors: a function that fails returns NULL or 0 and writes why to err (may be NULL).
 */
#ifndef CPTX_LOAD_H
#define CPTX_LOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CPTX_LOAD_ERROR = 512 /* bytes of an error's text, with its NUL */ };

/** A bundle that is open. */
typedef struct cptx_load cptx_load;
/** A kernel that is loaded on a device; it lives as long as the bundle. */
typedef struct cptx_load_kernel cptx_load_kernel;

/** Opens a bundle. */
cptx_load *cptx_load_file(const char *path, char *err);
/** A bundle in memory, as `cptx bundle --c` links it in: data is aligned to 8 and must stay. */
cptx_load *cptx_load_memory(const void *data, size_t size, char *err);
/** Closes a bundle and unloads its kernels; the work that they do must have ended.  NULL is allowed. */
void cptx_load_close(cptx_load *bundle);

/** What arguments are. */
enum cptx_load_kind {
	CPTX_LOAD_POINTER, /**< a device address, aligned to 16 */
	CPTX_LOAD_F32      /**< a float */
};
/** The number of kernels in a bundle. */
uint32_t cptx_load_count(const cptx_load *bundle);
/** Name of kernel i. */
const char *cptx_load_name(const cptx_load *bundle, uint32_t i);
/** What kernel i computes, for which sizes. */
const char *cptx_load_about(const cptx_load *bundle, uint32_t i);
/** Name of argument j of kernel i, and in *kind (may be NULL) what it is; NULL behind the last. */
const char *cptx_load_argument(const cptx_load *bundle, uint32_t i, uint32_t j, enum cptx_load_kind *kind);

/** Finds a kernel by name and loads what suits the current device and driver best: of the targets sm_NNa, sm_NNf, sm_NN and
 * those of older devices the first that is there, its machine code where that runs, else its PTX. */
cptx_load_kernel *cptx_load_get(cptx_load *bundle, const char *name, char *err);
/** What was chosen and why: "sm_90a, machine code", and what was passed over. */
const char *cptx_load_why(const cptx_load_kernel *kernel);
/** Bytes of the argument "workspace" on this device; it is zero before the first launch.  0: there is none. */
uint64_t cptx_load_workspace(const cptx_load_kernel *kernel);

/** An argument, as cptx_load_argument says. */
typedef union cptx_load_arg {
	uint64_t pointer; /**< CPTX_LOAD_POINTER */
	float f32;        /**< CPTX_LOAD_F32 */
} cptx_load_arg;
/** Starts a kernel as work of a stream (a CUstream; NULL: the default one). */
int cptx_load_launch(cptx_load_kernel *kernel, const cptx_load_arg *args, uint32_t n, void *stream, char *err);

/* ---- drivers -------------------------------------------------------------------------------------------------------- */

/** The latest .version of PTX, times ten, that a driver takes; driver: as cuDriverGetVersion says, 12080 for CUDA 12.8. */
static inline unsigned cptx_load_ptx_version(int driver)
{
	/* CUDA 12.0 to 12.9; 12.6 brought no new PTX.  Since 13.0 both count in step. */
	static const unsigned char of_12[] = { 80, 81, 82, 83, 84, 85, 85, 86, 87, 88 };
	const int major = driver / 1000, minor = driver % 1000 / 10;

	if (major < 11)
		return 65;
	if (major == 11)
		return 70 + (unsigned)(minor < 8 ? minor : 8);
	if (major == 12)
		return of_12[minor < 9 ? minor : 9];
	return (unsigned)((major - 4) * 10 + (minor < 9 ? minor : 9));
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

/*
 * Numbers are little-endian; places are bytes from the start of the file, of texts with a NUL.  The head, then entries and
 * all that they name, and behind .images machine code and PTX, which the checksum leaves out: the driver looks at them.
 */
#define CPTX_LOAD_MAGIC "cptxbnd1"
enum { CPTX_LOAD_ORDER = 0x01020304, CPTX_LOAD_RANK = 5 };
typedef struct cptx_load_head {
	char magic[8];
	uint32_t order, nentries;
	uint64_t bytes, sum; /* of the file; of all in front of the images: cptx_load_sum_of */
	uint64_t entries, images;
	uint64_t made; /* text: by what it was made, and when */
} cptx_load_head;
typedef struct cptx_load_entry {
	uint64_t name, about, args, variants;
	uint32_t nargs, nvariants;
} cptx_load_entry;
typedef struct cptx_load_name_kind {
	uint64_t name;
	uint32_t kind, unused;
} cptx_load_name_kind;
/* A build of a kernel for a target.  grid, workspace: tables by the number of multiprocessors, from 1 on, of 8 bytes each.
 */
typedef struct cptx_load_variant {
	uint64_t symbol, target, note; /* texts: name of the kernel, "sm_90a", how the shape was chosen */
	uint64_t grid, workspace, params, maps;
	uint64_t cubin, cubin_bytes, ptx, ptx_bytes; /* 0 bytes: there is none */
	uint32_t cc, suffix;                         /* compute capability of the target, 90; 'a', 'f' or ' ' */
	uint32_t ptx_version, threads, smem, nsms, nparams, nmaps;
} cptx_load_variant;
enum cptx_load_param_kind { CPTX_LOAD_PARAM_VALUE, CPTX_LOAD_PARAM_ARG, CPTX_LOAD_PARAM_MAP };
typedef struct cptx_load_param {
	uint32_t kind, index; /* number of the argument or map */
	uint64_t value;       /* of CPTX_LOAD_PARAM_VALUE, its low bytes */
} cptx_load_param;
/* A tensor map in the terms of cuTensorMapEncodeTiled. */
typedef struct cptx_load_map {
	uint32_t arg; /* number of the argument that is the address */
	uint32_t type, rank, interleave, swizzle, l2, fill, unused;
	uint64_t dim[CPTX_LOAD_RANK], stride[CPTX_LOAD_RANK]; /* stride[0] is that of dimension 1 */
	uint32_t box[CPTX_LOAD_RANK], step[CPTX_LOAD_RANK];
} cptx_load_map;

/* The checksum of n bytes, a multiple of 8. */
static inline uint64_t cptx_load_sum(const void *data, size_t n)
{
	const unsigned char *p = (const unsigned char *)data;
	uint64_t sum = n + 1;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t word = 0;
		for (int j = 0; j < 8; j++)
			word |= (uint64_t)p[i + (size_t)j] << 8 * j;
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	return sum;
}
/* The checksum of a file: of its head, with .sum 0, and of all behind it in front of the images. */
static inline uint64_t cptx_load_sum_of(const cptx_load_head *head)
{
	cptx_load_head h = *head;

	h.sum = 0;
	return cptx_load_sum(&h, sizeof h) + 3 * cptx_load_sum(head + 1, (size_t)h.images - sizeof h);
}

#ifdef __cplusplus
}
#endif
#endif
