/* SPDX-License-Identifier: MIT */
/*
 * Row kernels: norms, softmax, cross entropy, gated activations and what else reads rows of a matrix, reduces each, and
 * writes rows; forward and backward.  <cptx/rows.def> lists the kernels with their operands and options.
 *
 *   cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
 *   cptx_rows_opt opt = { .kernel = CPTX_ROWS_RMS_NORM, .in = CPTX_BF16, .n = 8192, .with = CPTX_ROWS_BIT(CPTX_ROWS_W) };
 *   cptx_rows_problem p = { .rows = rows, .at = { [CPTX_ROWS_X] = { x }, [CPTX_ROWS_W] = { w }, [CPTX_ROWS_Y] = { y } } };
 *   cptx_rows_run(r, &opt, &p, stream, &err);
 *
 * Matrices have elements of .f32, .f16 or .bf16; all arithmetic is in f32, and results are rounded once, to nearest even.  A
 * row has 1 to 262,144 elements, at any stride.  A kernel is made for a row's length; it serves any number of rows.
 *
 * Where a row lives: in registers or in shared memory, so that memory is read once, of one CTA or, with .split, of the CTAs
 * of a cluster; else it stays in memory (CPTX_ROWS_MEMORY), and each pass of the kernel reads it again.  Short rows share a
 * CTA, and a warp: .per_row threads hold one.  What is 0 in the options is chosen by a model of bytes, CTAs and waves
 * (cptx_rows_auto).
 *
 * NaN, infinities: a row with a NaN is NaN in norms, softmax and loss.  A softmax over infinities, or over -infinity alone,
 * is NaN, as PyTorch's, and the lse of the latter -infinity.  argmax passes over NaN; of a row of NaN it is column 0.  top-k
 * passes over NaN, too; what a row has too few numbers for is -infinity, at column -1.  Both zeros are equal to top-k, which
 * gives +0 for either.
 * Quantizing takes a row with an infinity or a NaN to scale infinity or NaN (e2m1 itself has neither).  A row of zeros,
 * or one whose scale would be 0, has scale 1.  Labels: one that is neither a column nor ignored has loss NaN.
 *
 * In place: an output may be an input of the same type, stride and address, where the row lives in registers or shared
 * memory or the kernel is local (but transpose); a row in memory is read again, so there it is refused.
 *
 * Rows in parts: kernels that write scalars alone (argmax, cross entropy without dx, top-k) give a long row to CTAs that
 * know nothing of one another, and a second launch puts together what they found.
 *
 * Weights' gradients: each CTA adds up its rows in f32, in their order (.weight = CPTX_F32, rows in registers or shared
 * memory: in blocks of 64), and a second launch adds the CTAs' sums in theirs: the same bits in each run on the same kind of
 * device.
 */
#ifndef CPTX_ROWS_H
#define CPTX_ROWS_H

#include <cptx/module.h>
#include <cptx/device.h>
#include <cptx/reduce.h>
#include <cptx/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kernels. */
enum cptx_rows_kernel {
	CPTX_ROWS_OWN, /**< .body builds it */
#define ROWS_KERNEL(ID, name, body, local, reads, writes, may_read, may_write, takes, about) CPTX_ROWS_##ID,
#include <cptx/rows.def>
	CPTX_ROWS_KERNELS /**< number of kernels */
};
/** What kernels read and write. */
enum cptx_rows_operand {
#define ROWS_OPERAND(ID, name, kind, type, about) CPTX_ROWS_##ID,
#include <cptx/rows.def>
	CPTX_ROWS_OPERANDS /**< number of operands */
};
/** An operand in a set: CPTX_ROWS_BIT(CPTX_ROWS_W) | CPTX_ROWS_BIT(CPTX_ROWS_B). */
#define CPTX_ROWS_BIT(operand) (1u << (operand))
enum {
	CPTX_ROWS_MOST = 262144, /**< elements of the longest row */
	CPTX_ROWS_ROOM = 32      /**< of arrays by operand: for operands of later versions, too */
};

/** The name of a kernel, "rms-norm"; out of range: "?". */
CPTX_API const char *cptx_rows_kernel_name(enum cptx_rows_kernel kernel);
/** The kernel of that name; CPTX_ROWS_KERNELS: there is none. */
CPTX_API enum cptx_rows_kernel cptx_rows_kernel_find(const char *name);
/** What a kernel computes, in a line; out of range: "?". */
CPTX_API const char *cptx_rows_kernel_about(enum cptx_rows_kernel kernel);
/** The name of an operand, "x"; out of range: "?". */
CPTX_API const char *cptx_rows_operand_name(enum cptx_rows_operand operand);
/** The operand of that name; CPTX_ROWS_OPERANDS: there is none. */
CPTX_API enum cptx_rows_operand cptx_rows_operand_find(const char *name);

/** Where a row lives; <cptx/rows.def> says what each is. */
enum cptx_rows_place {
#define ROWS_PLACE(ID, name, about) CPTX_ROWS_##ID,
#include <cptx/rows.def>
	CPTX_ROWS_PLACES /**< number of places */
};

/** The name of a place, "registers"; out of range: "?". */
CPTX_API const char *cptx_rows_place_name(enum cptx_rows_place place);

struct cptx_rows_row;
/** The row that a body's code works on. */
typedef struct cptx_rows_row cptx_rows_row;
/** Builds the code for a row: see "A row kernel of one's own". */
typedef void (*cptx_rows_body)(cptx_kernel *k, cptx_rows_row *row, void *user);

/** A kernel: what it computes, for which rows, in which shape. */
typedef struct cptx_rows_opt {
	uint32_t size;                /**< CPTX_OPT fills it in */
	enum cptx_rows_kernel kernel; /**< what is computed */
	enum cptx_type in;            /**< of x, x2, y2 and their gradients: CPTX_F32, CPTX_F16 or CPTX_BF16 */
	enum cptx_type out;           /**< of y and dy; 0: as in.  QUANTIZE: CPTX_E4M3, or 0 for it; or
	                               CPTX_E2M1, two in a byte, the first one in its lower half: y has n / 2 elements then, which are
	                               bytes, n is a multiple of 8, and rows are aligned as with .align = 0 */
	enum cptx_type weight;        /**< of w, b, cos, sin and gradients of weights: CPTX_F32, CPTX_F16, CPTX_BF16; 0: as in */
	enum cptx_type index;         /**< of labels and columns: CPTX_S32 or CPTX_S64; 0: CPTX_S64 */
	uint32_t n;                   /**< elements of a row, 1 to 262,144 */
	uint32_t align;        /**< all rows of matrices begin at multiples of so many elements, a power of two; 0: rows are
	                            dense, and the matrix begins at a multiple of 16 bytes */
	uint32_t with;         /**< set of operands that the kernel may have, beside those that it always has */
	float eps;             /**< added to the mean square or variance; 0: 1e-5 */
	float smoothing;       /**< of labels: part of the probability that all classes share, 0 to 1 */
	float z_loss;          /**< factor of lse^2 in the loss */
	int64_t ignored_label; /**< with .ignore: the label of rows that do not count */
	bool ignore;           /**< rows with ignored_label have loss 0 and gradient 0 */
	bool tanh;             /**< GELU by tanh in place of erf */
	uint32_t heads;        /**< neighbouring rows that share a row of cos and sin; 0: 1 */
	/* the shape; 0: chosen */
	enum cptx_rows_place place; /**< where a row lives */
	uint32_t threads;           /**< of a CTA: 32 to 1024, a multiple of 32 */
	uint32_t per_row;           /**< threads that hold a row: 1, 2, 4, 8, 16 or 32, or all of the CTA */
	uint32_t split;    /**< CTAs that share a row, a power of two: a cluster of at most 16 (sm_90 and later) where the kernel
	                        reduces; at most 32 for rows in parts, 1024 where elements do not depend on one another */
	bool prefetch;     /**< CTAs that take many rows have L2 ask for the next one early; sm_90 and later */
	uint32_t min_ctas; /**< CTAs that a multiprocessor's registers shall hold */
	/* CPTX_ROWS_OWN */
	uint32_t reads, writes; /**< sets of operands.  Of vectors w and b are read, and dw and db added up over rows */
	bool local;             /**< elements do not depend on one another: the body calls no cptx_rows_reduce */
	cptx_rows_body body;    /**< builds the code of a row */
	void *user;             /**< third argument of body */
	const char *name;       /**< of the kernel in PTX; NULL: "rows" */
	/* the shape, once more */
	uint32_t stages;    /**< SHARED: rows (of each group of threads) that shared memory holds, 1 to 8; 0: chosen */
	uint32_t rows_each; /**< SHARED: rows that a CTA (or cluster, or each group of threads) takes one after another; 0:
	                       chosen. With dw or db it is not read: there are as many CTAs as the device holds at once */
	uint32_t bandwidth; /**< of the device's memory, GB/s, for the choice; 0: that of the target's largest GPU.  A run takes
	                       its device's */
	uint32_t k;         /**< TOP_K: how many of the largest elements, 1 to 64, at most n; 0: 1 */
	uint32_t chunks;    /**< SHARED: shared memory holds so many chunks of rows, two vectors of each thread, in place of
	                       .stages whole rows, which is 1 then: those of the next row come as soon as the pass that writes
	                       the row has read the ones before.  2 to 16; where a CTA's part of a row has up to 4 more,
	                       registers keep these (not of CPTX_ROWS_OWN); 0: whole rows, or chosen with .stages */
	char z_;
} cptx_rows_opt;

/** Sets the fields of *opt that a text names, as records of the tuning database do: "kernel=rms-norm in=bf16 n=4096". Others
 * stay.  Errors: ARG, the text has a word that is none, which is named. */
CPTX_API bool cptx_rows_options_read(const char *text, cptx_rows_opt *opt, cptx_error *err);

/** Where an operand lies. */
typedef struct cptx_rows_matrix {
	uint64_t address; /**< device address.  Vectors and scalars: a multiple of 16 and of the element's size */
	uint64_t stride;  /**< of a matrix: elements from one row to the next; 0: .n, dense rows.  At most 2^32 - 1 bytes */
} cptx_rows_matrix;

/** Rows to work on. */
typedef struct cptx_rows_problem {
	uint32_t size;                       /**< CPTX_OPT fills it in */
	uint32_t rows;                       /**< number of rows; 0: a run does nothing, but sets sums of weights to 0 */
	cptx_rows_matrix at[CPTX_ROWS_ROOM]; /**< by CPTX_ROWS_X and so on; those of the kernel */
	uint64_t workspace;                  /**< plan.workspace bytes, aligned to 16: of sums of columns, and rows in parts */
	char z_;
} cptx_rows_problem;

/** What a launch of a kernel is made of. */
typedef struct cptx_rows_plan {
	enum cptx_rows_place place; /**< where a row lives */
	uint32_t threads;           /**< of a CTA */
	uint32_t per_row;           /**< threads that hold a row */
	uint32_t split;             /**< CTAs that share a row */
	uint32_t min_ctas;          /**< CTAs that a multiprocessor's registers shall hold; 0: not said to ptxas */
	uint32_t elements;          /**< of a row in each thread (of a turn, where rows live in memory) */
	uint32_t reads, writes;     /**< sets of operands */
	uint32_t launches;          /**< 2 for sums of columns and for rows in parts, else 1 */
	uint32_t grid;              /**< CTAs of the first launch; only with a problem */
	uint64_t workspace;         /**< bytes; only with a problem */
	uint64_t bytes;             /**< of memory that are read and written at least; only with a problem */
	uint32_t stages;            /**< rows that shared memory holds */
	uint32_t rows_each;         /**< rows that a CTA takes one after another; 0: as many as there are for it */
	uint32_t smem;              /**< dynamic shared memory of a CTA, bytes */
	uint32_t chunks;            /**< chunks of rows that shared memory holds; 0: it holds .stages whole rows */
} cptx_rows_plan;

CPTX_API bool cptx_rows_check_(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms,
                               cptx_rows_plan *plan, size_t size, cptx_error *err);
/** Checks options and chooses what is 0 in their shape, for `rows` rows (0: many) on a target (NULL: sm_90a) with `sms`
 * multiprocessors (0: those of its largest GPU).  False: err names the rule that is broken.  plan: may be NULL. */
static inline bool cptx_rows_check(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms,
                                   cptx_rows_plan *plan, cptx_error *err)
{
	return cptx_rows_check_(opt, target, rows, sms, plan, sizeof *plan, err);
}
/** What a copy reaches of the bandwidth of a device's memory, for .bandwidth: GB/s; 0: not known, as on the emulator. */
CPTX_API uint32_t cptx_rows_bandwidth(const cptx_device_info *info);
/** A shape and what the model says of it. */
typedef struct cptx_rows_choice {
	double us;            /**< predicted time, in microseconds */
	double memory_us;     /**< bytes over the bandwidth of the memory */
	double waves;         /**< CTAs over those that the device holds at once */
	double in_flight;     /**< bytes that a multiprocessor's CTAs ask for at once */
	uint32_t ctas_per_sm; /**< CTAs that a multiprocessor holds */
	uint32_t regs;        /**< estimate of registers per thread */
	cptx_rows_opt opt;    /**< all options, with the shape filled in; last, since options grow */
} cptx_rows_choice;
CPTX_API size_t cptx_rows_auto_(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms,
                                cptx_rows_choice *choices, size_t size, size_t room, cptx_error *err);
/** Writes the best `room` shapes for so many rows, best first, and returns their number; 0: err says why.  What is not 0 in
 * the shape of opt stays.  target and sms as for cptx_rows_check. */
static inline size_t cptx_rows_auto(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms,
                                    cptx_rows_choice *choices, size_t room, cptx_error *err)
{
	return cptx_rows_auto_(opt, target, rows, sms, choices, sizeof *choices, room, err);
}

/**
 * Adds the kernel to a module, and with dw, db or rows in parts a second one, "NAME_sum".  NULL on error: err says why.  The
 * shape must be chosen: opt as cptx_rows_auto gave it, or with .place, .threads, .per_row and .split.
 *
 * Parameters, in order: the operands that it has in the order of <cptx/rows.def> (pointers), the strides of its matrices in
 * bytes (u32, "x_stride"), row_count (u32), and with dw, db or rows in parts the workspace (pointer).
 */
CPTX_API cptx_kernel *cptx_rows_build(cptx_module *m, const cptx_rows_opt *opt, cptx_error *err);
/** Prepares launch `number` (0, or 1 of two) of the kernel in `program` for a problem with rows.  opt: as it was built. */
CPTX_API cptx_launch *cptx_rows_launch(const cptx_program *program, cptx_device *dev, const cptx_rows_opt *opt,
                                       const cptx_rows_problem *problem, uint32_t number, cptx_error *err);

/** Runs row kernels in one call each: chooses, builds, compiles (or finds in the cache), loads, launches, and keeps
 * programs. */
typedef struct cptx_rows_runner cptx_rows_runner;
/** Makes a runner for a device, which must stay open.  cache: for machine code, may be NULL; it stays the caller's and must
 * stay open.  NULL on error. */
CPTX_API cptx_rows_runner *cptx_rows_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err);
/** Frees a runner and its programs; the work that it started must have ended.  NULL is allowed. */
CPTX_API void cptx_rows_runner_destroy(cptx_rows_runner *runner);
/**
 * Starts a kernel as work of a stream (NULL: the default one); does not wait.  With .align = 0 the alignment is that of the
 * problem's addresses and strides.  Many threads may call it at once.
 * Errors: those of cptx_rows_check, cptx_device_load and cptx_launch_new; ARG, an operand that is missing or not aligned.
 */
CPTX_API bool cptx_rows_run(cptx_rows_runner *runner, const cptx_rows_opt *opt, const cptx_rows_problem *problem,
                            cptx_stream *stream, cptx_error *err);
/** Sets the tuning database that a runner looks into for a shape that is left open, and when it measures: see
 * cptx_gemm_runner_set_tune. */
CPTX_API bool cptx_rows_runner_set_tune(cptx_rows_runner *runner, const cptx_tune_use *use, cptx_error *err);
/** Measures the shapes that the model likes best for so many rows, to a power of two, and records each in the database: see
 * cptx_tune_measure.  Operands are made here, dense.  done: may be NULL. */
CPTX_API bool cptx_rows_measure(cptx_tune *db, cptx_device *dev, const cptx_rows_opt *opt, uint32_t rows,
                                const cptx_tune_use *use, cptx_tune_done *done, cptx_error *err);
/** Bytes of the workspace that a run needs; 0: none, or an error. */
CPTX_API uint64_t cptx_rows_workspace(cptx_rows_runner *runner, const cptx_rows_opt *opt, uint32_t rows, cptx_error *err);

/* ---- A row kernel of one's own ------------------------------------------------------------------------------------ */

/*
 * A body is C code that builds the code of a row from passes over its elements and reductions between them:
 *
 *   static void rms_norm(cptx_kernel *k, cptx_rows_row *row, void *user)
 *   {
 *       const cptx_rows_opt *o = cptx_rows_options(row);
 *       cptx_val sum = cptx_var(k, CPTX_F32, 0.0f);
 *       cptx_rows_at e;
 *
 *       CPTX_ROWS_EACH (k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X))
 *           cptx_fma(k, e.v[CPTX_ROWS_X], e.v[CPTX_ROWS_X], sum, .rnd = CPTX_RN, .into = sum);
 *       cptx_rows_reduce(k, row, sum, CPTX_REDUCE_SUM);
 *       cptx_val scale = cptx_rsqrt(k, cptx_fma(k, sum, 1.0f / (float)o->n, 1e-5f, .rnd = CPTX_RN));
 *       CPTX_ROWS_EACH (k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X), .writes = CPTX_ROWS_BIT(CPTX_ROWS_Y))
 *           e.v[CPTX_ROWS_Y] = cptx_mul(k, e.v[CPTX_ROWS_X], scale);
 *   }
 *
 * The same body serves rows in registers, where a pass is a C loop over a thread's elements, and rows in memory, where it is
 * a loop of the kernel around one.  What passes carry over from element to element stands in registers declared in front of
 * them (cptx_var).  Kernels of the library are written with these calls, too.
 */

/** The options, with what 0 stands for. */
CPTX_API const cptx_rows_opt *cptx_rows_options(const cptx_rows_row *row);
/** Whether what a pass writes to the registers of operands that it reads is there in the next pass: rows in registers. */
CPTX_API bool cptx_rows_keeps(const cptx_rows_row *row);

/** A pass. */
typedef struct cptx_rows_pass {
	uint32_t size;   /**< CPTX_OPT fills it in */
	uint32_t reads;  /**< set of matrices and vectors: their elements are in at.v, .f32 */
	uint32_t writes; /**< set of matrices: the body sets at.v to an .f32; of dw and db: it adds to the .f32 there */
	float fill;      /**< what elements behind the row's end are where they are read first: 0 or an infinity */
	char z_;
} cptx_rows_pass;
/** Where a pass stands. */
typedef struct cptx_rows_at {
	cptx_val v[CPTX_ROWS_ROOM]; /**< by operand: .f32 */
	uint64_t reserved_[8];      /**< of the library */
} cptx_rows_at;
CPTX_API bool cptx_rows_each_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_rows_at *e, const cptx_rows_pass *pass);
CPTX_API bool cptx_rows_next_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_rows_at *e);
/** A pass over the row's elements; do not leave it early.  Passes do not nest. */
#define CPTX_ROWS_EACH(...) CPTX_ROWS_EACH_X_(__VA_ARGS__, .z_ = 0)
#define CPTX_ROWS_EACH_X_(k, row, e, ...)                                                                                   \
	for (bool CPTX_NAME_(cptx_b_, __LINE__) =                                                                               \
	         cptx_rows_each_((k), CPTX_HERE, (row), (e), CPTX_OPT(cptx_rows_pass, __VA_ARGS__));                            \
	     CPTX_NAME_(cptx_b_, __LINE__); CPTX_NAME_(cptx_b_, __LINE__) = cptx_rows_next_((k), CPTX_HERE, (row), (e)))
CPTX_API cptx_val cptx_rows_column_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, const cptx_rows_at *e);
/** The element's column, .u32; n or more behind the row's end. */
#define cptx_rows_column(k, row, e) cptx_rows_column_((k), CPTX_HERE, (row), (e))
CPTX_API cptx_val cptx_rows_inside_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, const cptx_rows_at *e);
/** A predicate: the element is one of the row; NONE: it is in all threads. */
#define cptx_rows_inside(k, row, e) cptx_rows_inside_((k), CPTX_HERE, (row), (e))
CPTX_API void cptx_rows_reduce_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_val v, enum cptx_reduce_op op);
/** Reduces v over the row's threads, as cptx_reduce_cta does; all of them get the result.  At most 4 registers. */
#define cptx_rows_reduce(k, row, v, op) cptx_rows_reduce_((k), CPTX_HERE, (row), (v), (op))
CPTX_API cptx_val cptx_rows_get_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, enum cptx_rows_operand operand);
/** The row's scalar: .f32, or of labels .s64. */
#define cptx_rows_get(k, row, operand) cptx_rows_get_((k), CPTX_HERE, (row), (operand))
CPTX_API void cptx_rows_put_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, enum cptx_rows_operand operand,
                             cptx_val v);
/** Stores the row's scalar, an .f32 or, of columns, a .u32, by one thread. */
#define cptx_rows_put(k, row, operand, v) cptx_rows_put_((k), CPTX_HERE, (row), (operand), CPTX_V(v))
CPTX_API cptx_val cptx_rows_element_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, enum cptx_rows_operand operand,
                                     cptx_val column);
/** One element of the row of a matrix, .f32, loaded from memory: column .u32, less than n. */
#define cptx_rows_element(k, row, operand, column) cptx_rows_element_((k), CPTX_HERE, (row), (operand), (column))

#ifdef __cplusplus
}
#endif
#endif
