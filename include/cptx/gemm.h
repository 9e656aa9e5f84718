/* SPDX-License-Identifier: MIT */
/*
 * GEMM generators: D = alpha * A * B + beta * C + bias, A of M rows and K columns, B of K rows and N columns.
 *
 * Five kernels share one set of options and calls; .mma says what multiplies:
 *
 *   mma                           targets              how                                    A and B
 *   CPTX_GEMM_SYNC                sm_80 and later      cp.async, ldmatrix, mma.sync           bf16 f16 tf32 f64 s8 u8, from
 *                                                                                             sm_89 on e4m3 e5m2
 *   CPTX_GEMM_SYNC with .tma      sm_90 and later      TMA, ldmatrix, mma.sync                the same
 *   CPTX_GEMM_SYNC with .scale    sm_120a, sm_121a     TMA, mma.sync with scale factors       see below
 *   CPTX_GEMM_WGMMA               sm_90a               TMA, wgmma, clusters                   bf16 f16 tf32 s8 u8 e4m3
 *                                                                                             e5m2, these two also scaled
 *                                                                                             by blocks; B as gemv
 *   CPTX_GEMM_TCGEN05             sm_100a, sm_103a     TMA, tcgen05.mma, tensor memory        see below
 *   CPTX_GEMM_GEMV                sm_80 and later      loads, mma.sync: for few rows of A     bf16 f16, B also u4 e2m1
 *                                                                                             e4m3 e5m2
 *
 * Of mma.sync and wgmma A and B are of one type, or each e4m3 or e5m2, or each s8 or u8; of wgmma with .swap B may also be
 * of few bits, as of gemv, where A is bf16 or f16.  Only those of 16 bits may be stored across K (a_m_major, b_n_major).  A
 * of 8 and 16 bits may be sparse (.sparse).  tf32 is f32, of which tensor cores take the upper 19 bits: TMA rounds, cp.async
 * does not. Sums of s8 and u8 are s32, and become f32 where D is anything else.
 *
 * A kernel is made for types, layouts and a tile shape; it serves every M, N and K whose rows are aligned to 16 bytes, and
 * with .unaligned all others.  The usual way: cptx_gemm_auto picks the shape for a problem, cptx_gemm_build makes the
 * kernel, cptx_gemm_launch prepares a launch on a device or the emulator.  No GPU has run the kernels with tcgen05, and
 * those by mma.sync with scale factors, yet.
 *
 *   kind of PTX   A and B, each                            along K in a stage   accumulators
 *   f16           both f16, or both bf16                    64                  f32
 *   tf32          tf32: f32, of which tensor cores take
 *                 the upper 19 bits (TMA rounds)            32                  f32
 *   f8f6f4        e4m3 e5m2 e2m3 e3m2 e2m1                 128                  f32
 *   i8            s8 u8; sm_100a only                      128                  s32
 *   mxf8f6f4      as f8f6f4; a ue8m0 for 32 elements       128                  f32
 *   mxf4          e2m1; a ue8m0 for 32 elements            256                  f32
 *   mxf4nvf4      e2m1; a ue4m3 for 16 elements, or (of
 *                 tcgen05) a ue8m0 for 32                  256                  f32
 *
 * tcgen05 has all kinds, mma.sync with scale factors those that begin with mx; there both e2m1 are mxf4 or mxf4nvf4, as the
 * type of the factors says.
 * Elements of 4 and 6 bits lie packed in global memory, the first in the lowest bits.  In shared memory f8f6f4 and mxf8f6f4
 * have them padded to bytes, which tensor maps do for rows of whole 128 elements.
 */
#ifndef CPTX_GEMM_H
#define CPTX_GEMM_H

#include <cptx/module.h>
#include <cptx/device.h>
#include <cptx/epilogue.h>
#include <cptx/layout.h>
#include <cptx/params.h>
#include <cptx/tensor_map.h>
#include <cptx/timeline.h>
#include <cptx/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The instructions that multiply. */
enum cptx_gemm_mma {
	CPTX_GEMM_SYNC,    /**< mma.sync; with .scale its block-scaled form */
	CPTX_GEMM_WGMMA,   /**< wgmma.mma_async */
	CPTX_GEMM_TCGEN05, /**< tcgen05.mma */
	CPTX_GEMM_GEMV,    /**< mma.sync on rows of B that come straight from global memory and are read once: for few rows of A,
	                      where the time is that of reading B */
	CPTX_GEMM_MMAS     /**< number of instructions */
};
/** The best instruction of a target: tcgen05, else wgmma, else mma.sync.  NULL: mma.sync. */
CPTX_API enum cptx_gemm_mma cptx_gemm_mma_of(const cptx_target *target);
/** Matrices, as a set.  CPTX_GEMM_D stands for C, too. */
enum cptx_gemm_matrix {
	CPTX_GEMM_A = 1, /**< A */
	CPTX_GEMM_B = 2, /**< B */
	CPTX_GEMM_D = 4  /**< D and C */
};
/** The name of an instruction: "mma.sync", "wgmma", "tcgen05", "gemv"; out of range: "?". */
CPTX_API const char *cptx_gemm_mma_name(enum cptx_gemm_mma mma);

/**
 * Experts of a mixture: problem.batch matrices B (along K: D), and rows of A and D (along K: of A and B) that belong to one
 * of them each.  How many rows an expert has stands in device memory, problem.counts, a u32 for each; the host writes
 * nothing for a launch, so a graph replays it with other counts.  An expert may have none, one may have all.  A count that
 * goes beyond the rows that there are is cut to them.  Rows that are no expert's are not read by products that are stored,
 * and not written.
 */
enum cptx_gemm_experts {
	CPTX_GEMM_EXPERTS_NONE,       /**< no experts */
	CPTX_GEMM_EXPERTS_CONTIGUOUS, /**< problem.m rows of all, each expert's behind those of the one before, of any number */
	CPTX_GEMM_EXPERTS_MASKED,     /**< room for problem.m rows of each expert, of which the first ones are its own */
	CPTX_GEMM_EXPERTS_K, /**< weight gradients: problem.k rows of A and of B, which are stored as K rows, sorted by expert as
	                        contiguous ones, and problem.batch matrices D; that of an expert without rows is beta * C + bias,
	                        or zeros.  Types of 16 bits */
	CPTX_GEMM_EXPERTS_KINDS /**< number of these */
};
/** The name: "contiguous", "masked", "along-k"; none: "none"; out of range: "?". */
CPTX_API const char *cptx_gemm_experts_name(enum cptx_gemm_experts experts);

/**
 * An epilogue: builds code that computes an element of D from the accumulator, after alpha, beta and bias, before it is
 * rounded to the type of D.  value: .f32; row, col: .u32, may lie outside of D (then the result is dropped, so guard loads).
 * Returns an .f32.  It is called for each element that a thread has, inside of conditional blocks, and twice where the
 * kernel stores a tile in two places: code that it builds for one element is not run for another.
 */
typedef cptx_val (*cptx_gemm_epilogue_fn)(cptx_kernel *k, void *user, cptx_val value, cptx_val row, cptx_val col);

/** What visitors of a GEMM may use: values of the kernel, for the matrix at hand. */
typedef struct cptx_gemm_operands {
	const cptx_params *params; /**< the kernel's parameters, with those of .params: cptx_params_get(k, x->params, "scale") */
	cptx_val m, n, k;          /**< M, N and K of the problem: .u32 */
	/** the number of the matrix D in its batch, with experts along K that of the expert, .u32 or .s32; NONE: there is one.
	 * With masked experts D is one matrix of m * batch rows, and `row` counts them all */
	cptx_val z;
} cptx_gemm_operands;
/**
 * An epilogue of visitors (<cptx/epilogue.h>), added to `e` behind alpha, beta, bias and .epilogue; e has the rows and
 * columns of D.  All kinds but GATE_PAIRS, which halves D, and with a chain in tensor memory (tcgen05) ROW_SUM.  For a row
 * scale:
 *
 *   static void scale_rows(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x)
 *   {
 *       cptx_epilogue_add(k, e, CPTX_VISIT_SCALE_ROW, .address = cptx_params_get(k, x->params, "scale"));
 *   }
 *
 * A CPTX_VISIT_CALL with an .address finds it in cptx_visit.visitor.  Vectors are aligned to 16 bytes, matrices have the
 * pitch x->n and .z = x->z.  Called several times while the kernel is built, as the epilogue stands in several places of it.
 */
typedef void (*cptx_gemm_visitors_fn)(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x);

/**
 * The types, layouts and shape of a kernel.  Options that a kernel does not have must be 0 (of a cluster, 1): all checks
 * refuse other values.  Names in brackets are the kernels that have an option: [sync], [scaled] (mma.sync with scale
 * factors), [wgmma], [tcgen05], [gemv].
 */
typedef struct cptx_gemm_opt {
	uint32_t size;          /**< CPTX_OPT fills it in */
	enum cptx_gemm_mma mma; /**< instruction that multiplies */
	enum cptx_type a, b;    /**< types of A and B, see the tables above */
	/** type of C and D: CPTX_F32, CPTX_BF16 or CPTX_F16; not [gemv] CPTX_E4M3 and CPTX_E5M2, saturated, from sm_89 on,
	 * without beta; for s8 and u8, without an epilogue, also CPTX_S32; of f64 CPTX_F64, with alpha and beta alone */
	enum cptx_type out;
	/** [scaled, tcgen05] type of the scale factors: CPTX_UE8M0 or CPTX_UE4M3; [gemv, wgmma] of a B of few bits the type of
	 * A, by wgmma always. [wgmma] CPTX_F32: A and B are of 8 bits, and have a factor for blocks of 1 x 128 and of 128 x 128
	 * elements; bm is 64 or 128, without swap.  Sums of each 128 along K are scaled and added in f32, so that none is longer
	 * than 128 in the tensor cores.  CPTX_TYPE_NONE: no factors */
	enum cptx_type scale;
	/** [gemv, wgmma] elements along K of a B of few bits that share a scale factor; 0: all.  A multiple of 128 (of e4m3,
	 * e5m2, and by wgmma, 64).  By gemv of u4 by bf16 with scale_k, of up to 16 rows, the sums of a group have 128 in each
	 * weight until its end: errors of f32 are up to 17 times those of the weights alone, and elements of A from 2.4e36 on,
	 * and infinite ones, give NaN */
	uint32_t scale_k;
	bool zeros; /**< [gemv, wgmma] u4 has zero points, one for each scale factor; else it is 8 */
	/** [tcgen05] kind of the instruction; [scaled]: 0, or the kind that follows from the types */
	enum cptx_tcgen05_kind kind;
	bool a_m_major; /**< A is stored as K rows of M elements; else M rows of K.  mma.sync, wgmma: 16-bit types only; tcgen05:
	                   not for 4 and 6 bits; scaled: not if A and B are e2m1, nor for 4 and 6 bits with bm = 128 */
	bool b_n_major; /**< B is stored as K rows of N elements; else N rows of K.  The rules are those of a_m_major, with bn */

	/* the shape: cptx_gemm_auto picks it */
	uint32_t bm, bn; /**< tile of a CTA in elements of D.
	                      [sync] whatever the warps divide, up to 1024, with .tma 256.  [scaled] 64 or 128 each.
	                      [wgmma] bm: 64, 128, 192 or 256; bn: 8 to 256 in steps of 8, from bm 192 on to 192.
	                      [gemv] bm: 8, 16, 32 or 64; bn: 16, 32, 64 or 128 for each warp along N, of B stored as rows of
	                      N 64 or 128
	                      [tcgen05] bm: 128, made by one CTA, or 256, made by a pair (cta_group::2); bn: 16 to 256, a
	                      multiple of 16, of a pair 32, with factors of 64 */
	/** elements of a stage along K: [sync] those of 64, 128 or 256 bytes; [gemv] that a warp loads at once, up to 16 times
	 * 32 (u4, e2m1: 128; e4m3, e5m2: 64); else 0 or the elements in 128 bytes, see the table above */
	uint32_t bk;
	uint32_t stages; /**< not [gemv]: stages of the ring in shared memory, each a tile of A and of B, 2 to 16 */
	uint32_t group;  /**< not [gemv]: rows of (cluster) tiles in a group of the rasterization, for the L2 cache; 0: 16,
	                    [wgmma] chosen for  the sizes of each launch */
	uint32_t warps_m, warps_n;     /**< [gemv] warps that share rows of B along K, and along N, 16 in all; [sync, scaled]
	                                    warps along M and N; each computes bm / warps_m x bn / warps_n: [sync]
	                                    multiples of 16, [scaled] of 32: at most 64x64, 128x32 and, of packed e2m1, 32x128;
	                                    with stream_k and grouped 64x32 and 32x64 */
	uint32_t cluster_m, cluster_n; /**< [wgmma, tcgen05] tiles of a cluster along M, which share B by multicast, and along N,
	                                    which share A: 1, 2, 4 or 8 (of a pair 4), one of both 1; 0: 1 */
	uint32_t per_sm; /**< [scaled, wgmma, tcgen05] CTAs that fit on a multiprocessor, 1 or 2; 0: 1.  Each of two
	                      has half of the shared memory, and of tensor memory 256 columns.  With 2 a launch can
	                      begin beside the end of the one before */
	bool swap;       /**< [wgmma, tcgen05] bm and cluster_m lie along N, bn and cluster_n along M, whose tiles
	                      can be small so: tensor cores compute the transpose of D */
	bool a_tmem;     /**< [tcgen05] A comes from tensor memory, where tcgen05.cp brings it; not with a_m_major.  With swap:
	                      B; not with b_n_major */
	bool tma;        /**< [sync] TMA brings A and B and stores D, from sm_90 on: tensor maps in place of pointers, and a
	                      warp of its own, or where the others need its registers a warpgroup, by setmaxnreg (sm_90a ...
	                      sm_120a); bm and bn up to 256.  Else cp.async, and rows of D may have any number of elements */
	bool stream_k;   /**< CTAs share tiles along K, so that all have the same work; needs a
	                      workspace */

	/* operands and parameters of the kernel */
	bool batched; /**< a number of matrices of equal size */
	bool grouped; /**< a list of problems of different sizes; not with stream_k, batched and timeline */
	/** the problems say how far rows and matrices, of experts too, are apart (.lda and so on); else all are dense.  Not with
	 * grouped */
	bool strided;
	/** CPTX_GEMM_A | CPTX_GEMM_B | CPTX_GEMM_D: which have addresses, rows or matrices at other distances than multiples of
	 * 16 bytes.  A and B are copied to the workspace first, in the same launch, with rows that are (the launch is
	 * cooperative, and clusters have at most 2 CTAs); C is loaded, and D stored, element by element, by wgmma without
	 * .swap and .scatter D row by row through shared memory.  gemv reads all rows as
	 * they are.  .strided too, and also where the sizes ask for none of it.  Of types from 8 bits on; not with grouped */
	uint32_t unaligned;
	bool alpha;                     /**< multiply by alpha, f32 */
	bool beta;                      /**< add beta * C; beta is f32 */
	bool bias;                      /**< a vector of N f32, added to each row */
	uint32_t timeline;              /**< stamps of a warp in a timeline; 0: no timeline, at no cost */
	cptx_gemm_epilogue_fn epilogue; /**< builds the epilogue; NULL: none */
	void *user;                     /**< second argument of epilogue and visitors */
	const char *name;               /**< name of the kernel; NULL: "gemm" */
	enum cptx_gemm_experts
		experts; /**< [sync, wgmma, tcgen05] rows of experts, along K not by cp.async; not with stream_k, batched and
	                grouped.  C is as D, of the bias each expert has N elements, behind those of the one before */
	cptx_gemm_visitors_fn visitors; /**< not [gemv]: adds visitors to the epilogue; NULL: none */
	/** parameters for the visitors, behind those of the kernel, none of which has the name of one of these; a launch fills
	 * them from cptx_gemm_problem.args.  The rows stay as they are while the kernel or a runner is used */
	const cptx_param_row *params;
	uint32_t nparams; /**< number of rows, CPTX_PARAM_COUNT(rows); 0: none */
	/** [sync, wgmma] rows of experts are gathered: row r of those that contiguous and masked tell of is row
	 * problem.gather[r] of A, by cp.async.  wgmma: bm is 64 or 128, no cluster, no swap and no .scale; sync: without .tma */
	bool gather;
	/** [sync, wgmma] rows of experts are scattered: row r, times problem.weights[r] behind all else, is added to row
	 * problem.scatter[r] of D by red.add, in no certain order.  D is f32; no beta, swap and .tma */
	bool scatter;
	/** [wgmma] D has half as many columns as B has: columns 16 j + i (gate) and 16 j + 8 + i (up) of the product, behind
	 * alpha, bias, the epilogue and visitors, make column 8 j + i of D, silu(gate) * up, for i < 8.  N is a multiple of 16;
	 * no swap and beta */
	bool swiglu;
	/** [wgmma] CPTX_F32: D, of .out CPTX_E4M3 or E5M2, is quantized by 1 x 128 elements: it is divided by factors that go to
	 * problem.scale_d, and is so an A of a kernel with .scale = CPTX_F32.  bn is a multiple of 128, with .swiglu 256; no
	 * swap and grouped, and not .swiglu and .scale at once.  CPTX_TYPE_NONE: D is rounded as it is */
	enum cptx_type scale_out;
	/** [sync, wgmma] A is sparse, at most two of four neighbours along K are not 0, and compressed by cptx_gemm_sparse_pack:
	 * problem.a has its values, problem.meta their places.  Types of 8 and 16 bits; bk, of A with its zeros, has 128 or
	 * 256 bytes.  No experts, list, swap, scale factors and A stored as K rows of M.  Twice the products in the same time */
	bool sparse;
	/** [wgmma] with .scale = CPTX_F32: B, too, has a factor for 1 x 128 elements, and problem.scale_b lies as scale_a:
	 * ceil(k / 128) rows of cptx_gemm_scale_pitch(n), of each matrix */
	bool scale_rows;
	char z_;
} cptx_gemm_opt;

/* opt->size: bytes of *opt that the caller has. */
CPTX_API void cptx_gemm_default_(enum cptx_gemm_mma mma, const cptx_target *target, cptx_gemm_opt *opt);
/**
 * Options of a kernel for large matrices, bf16 in and f32 out, that the target runs if it has the instruction (target NULL:
 * that some target runs).  mma.sync: the tuned shape, from sm_90 on with .tma 256 x 128 x 64, 4 x 2 warps, 3 stages, before
 * that 128 x 256 x 64, 2 x 4 warps, 4 stages, shrunk where the target has fewer registers or less shared memory; others: the
 * choice of cptx_gemm_auto for 4096 cubed, 128 x 256 for wgmma, 256 x 256 for tcgen05.  mma out of range counts as mma.sync.
 * For other types or sizes cptx_gemm_auto_for picks better options.
 */
static inline cptx_gemm_opt cptx_gemm_default(enum cptx_gemm_mma mma, const cptx_target *target)
{
	cptx_gemm_opt opt;
	opt.size = CPTX_OPT_SIZE(cptx_gemm_opt);
	cptx_gemm_default_(mma, target, &opt);
	return opt;
}

/** Sets the fields of *opt that a text names, as records of the tuning database do: "mma=wgmma a=bf16 b=bf16 out=f32
 * b_n_major=1".  Others stay.  Errors: ARG, the text has a word that is none, which is named. */
CPTX_API bool cptx_gemm_options_read(const char *text, cptx_gemm_opt *opt, cptx_error *err);

/** The sizes and operands of a problem. */
typedef struct cptx_gemm_problem {
	uint32_t size;    /**< CPTX_OPT fills it in; all problems of a list have the first one's size */
	uint64_t m, n, k; /**< rows of A and D, columns of B and D, columns of A */
	uint32_t batch;   /**< number of matrices; with experts: of experts, of B alone; 0: 1 */
	/** device addresses, aligned to 16 (4 and 6 bits in kinds that pad them: 32; .unaligned: an element) */
	uint64_t a, b, d;
	uint64_t c;    /**< C, with beta; aligned as d; may be d */
	uint64_t bias; /**< the bias, with bias; aligned to 16 */
	/** with stream_k, or A or B unaligned: plan.workspace bytes, aligned to 128, zero before the first launch; each launch
	 * leaves the counters zero.  With stream_k a workspace that served another kernel, other sizes or another number of CTAs
	 * is zeroed again.  Launches at the same time need a workspace each */
	uint64_t workspace;
	uint64_t scale_a, scale_b; /**< with scale: cptx_gemm_scales_bytes each (times batch), aligned to 16.  [wgmma] f32,
	                                ceil(k / 128) rows of factors of all rows of A (with batched of each matrix, one matrix
	                                behind the other), of a multiple of 4, as cptx_gemm_scale_pitch says; of each B
	                                ceil(n / 128) rows of ceil(k / 128) */
	uint64_t timeline; /**< with timeline: cptx_timeline_bytes(cptx_gemm_timeline()), aligned to 16, zeros at first */
	/** not [gemv], of which each tile has a CTA: most CTAs to launch; 0: as many as all multiprocessors hold.  A launch uses
	 * the fewest CTAs that need no more waves. With stream_k, more CTAs than tiles divide the tiles along K */
	uint32_t ctas;
	float alpha, beta; /**< with .alpha, with .beta; else 0 (alpha: or 1) */
	/** with strided: elements from row to row, of A and B as they are stored (.a_m_major: rows of M); 0: dense.  Of C also
	 * CPTX_GEMM_BROADCAST: all rows are the first one */
	uint64_t lda, ldb, ldc, ldd;
	/** with strided: elements from matrix to matrix of a batch, or, of what each expert has one of, of experts; 0: dense. Of
	 * A, B and C also CPTX_GEMM_BROADCAST: one matrix for all, and of A and B one set of scale factors.  Rows of all experts
	 * lie behind one another in one A, C and D (along K in one A and B): of these the stride is 0, or rows (m; along K k) *
	 * ld */
	uint64_t stride_a, stride_b, stride_c, stride_d;
	/** [gemv, wgmma] with .zeros: as many zero points as scale factors, of the type of A, from 0 to 15.  Both lie as
	 * [ceil(K / scale_k)][N], with scale_k 0 as [N]; by wgmma N is a multiple of 8, and both are aligned to 16 */
	uint64_t zero_b;
	uint64_t counts;   /**< with experts: device address, aligned to 4, of a u32 for each expert: its rows.  Read by the
	                        kernel behind griddepcontrol.wait */
	uint32_t expected; /**< with experts: rows that one has on average, for the choice of a shape; 0: m, contiguous m /
	                      batch, along K k / batch */
	const void *args;  /**< with .params: the struct that their rows are of, read when the launch is prepared; else NULL */
	/** with .gather, .scatter: device addresses, aligned to 4, of a u32 for each row of the experts (contiguous m, masked m
	 * for each): its row of A, which has any number of rows and less than 4 GiB; its row of D.  Entries of rows that are no
	 * expert's are not used.  weights: of an f32 for each of these rows, with .scatter */
	uint64_t gather, scatter, weights;
	/** with .scale_out: device address, aligned to 4: f32, as those of an A of D's rows and columns, which are a multiple of
	 * 128; with batched, and of experts along K, those of one D behind those of the one before */
	uint64_t scale_d;
	/** with .sparse: device address, aligned to 4, of the metadata of A: cptx_gemm_sparse_meta(m, k) words, of a batch those
	 * of each matrix behind one another.  .a, .lda and .stride_a are of the values then: dense rows have
	 * cptx_gemm_sparse_cols(k) elements */
	uint64_t meta;
	char z_;
} cptx_gemm_problem;
/** Of a distance between rows or matrices: there is one for all. */
#define CPTX_GEMM_BROADCAST UINT64_MAX

/** The kinds of operand parameters, which stand in front of M: a tensor map (128 bytes) each.  [sync] without .tma: A, B and
 * D are pointers; [scaled]: D is a pointer. */
enum cptx_gemm_map {
	CPTX_GEMM_MAP_A,       /**< A */
	CPTX_GEMM_MAP_B,       /**< B */
	CPTX_GEMM_MAP_D,       /**< D */
	CPTX_GEMM_MAP_END_D,   /**< [wgmma] D again, with smaller boxes for the end of a tile */
	CPTX_GEMM_MAP_LAST_A,  /**< [wgmma] A again, with boxes for its last rows, which fill no tile */
	CPTX_GEMM_MAP_LAST_B,  /**< [wgmma] B again, with boxes for its last rows */
	CPTX_GEMM_MAP_SCALE_A, /**< with .scale: scale factors of A; of weights of few bits, which alone have them, zero points
	                        */
	CPTX_GEMM_MAP_SCALE_B, /**< with .scale: scale factors of B */
	CPTX_GEMM_MAP_KINDS    /**< number of kinds */
};
enum { CPTX_GEMM_MAPS = 6 /**< most tensor maps of a kernel */ };

/** Resources and parameters of a kernel. */
typedef struct cptx_gemm_plan {
	uint32_t threads; /**< threads of a CTA, along x */
	uint32_t smem;    /**< dynamic shared memory, bytes */
	uint32_t bk;      /**< elements along K of a stage */
	uint32_t regs; /**< [sync] estimate of registers per thread for the plain product; else 0. ptxas 13.0 takes up to 32 more
	                  or fewer.  Where the plain product needs all registers, further options (stream_k, alpha, beta, ...)
	                  make ptxas spill up to 80 bytes outside of the mainloop */
	uint32_t vec;  /**< elements that share a scale factor; 0: there are no factors, or one for all of K (of few bits) */
	enum cptx_tcgen05_kind kind; /**< [scaled, tcgen05] kind of the instruction */
	uint32_t accumulators;       /**< [tcgen05] accumulators in tensor memory: 2, or 1 where there is no room; then nothing
	                                overlaps the epilogue */
	uint32_t columns;            /**< [tcgen05] columns of tensor memory */
	uint32_t maps;               /**< number of operand parameters in front of M (grouped: tensor maps of a problem) */
	enum cptx_gemm_map map[CPTX_GEMM_MAPS]; /**< the operand parameters, in order */
	uint32_t grid;                          /**< CTAs of a launch; only with a problem */
	uint64_t workspace;                     /**< bytes of the workspace; only with a problem */
} cptx_gemm_plan;

CPTX_API bool cptx_gemm_check_(const cptx_gemm_opt *opt, const cptx_target *target, cptx_gemm_plan *plan, size_t size,
                               cptx_error *err);
/** Checks options; false: err names the rule that is broken and what would be right.  target, plan: may be NULL. */
static inline bool cptx_gemm_check(const cptx_gemm_opt *opt, const cptx_target *target, cptx_gemm_plan *plan,
                                   cptx_error *err)
{
	return cptx_gemm_check_(opt, target, plan, sizeof *plan, err);
}
CPTX_API bool cptx_gemm_check_problem_(const cptx_gemm_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                       cptx_gemm_plan *plan, size_t size, cptx_error *err);
/** Checks options and the sizes of a problem.  sms: multiprocessors of the device, for the grid ([sync]: with one CTA on
 * each; a launch asks the device how many fit).  Addresses are not checked. */
static inline bool cptx_gemm_check_problem(const cptx_gemm_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                           cptx_gemm_plan *plan, cptx_error *err)
{
	return cptx_gemm_check_problem_(opt, problem, sms, plan, sizeof *plan, err);
}

/** A shape and the time that a model predicts: for wgmma a model of the H200, fitted to measurements; for tcgen05 of the
 * B200 and for mma.sync with scale factors of the GeForce RTX 5090, made of public figures without measurements; for
 * mma.sync without scale factors by figures of a GPU for each target (cptx_gemm_model). */
typedef struct cptx_gemm_choice {
	double us;                         /**< predicted time */
	double mma_us, load_us, memory_us; /**< predicted time of the tensor cores, of filling shared memory, of global memory */
	double measured_us;                /**< time measured by cptx_gemm_tune, else 0 */
	double tail;                       /**< share of the multiprocessors' time that the last wave leaves idle */
	uint32_t ctas;                     /**< value for cptx_gemm_problem.ctas */
	cptx_gemm_opt opt;                 /**< all options, with the shape filled in; last, since options grow */
} cptx_gemm_choice;
CPTX_API size_t cptx_gemm_auto_(const cptx_gemm_opt *opt, const cptx_target *target, const cptx_gemm_problem *problem,
                                uint32_t sms, cptx_gemm_choice *choices, size_t size, size_t room, cptx_error *err);
/**
 * Picks the shape for a problem: bm, bn, stages, warps or cluster, swap, per_sm, stream_k, group where it is 0, for [sync]
 * bk too, and the number of CTAs; adds .strided and .unaligned where the problem asks for them, of addresses those that are
 * given; all else is taken from `opt`.  Writes the best `room` choices, best first, and returns
 * their number; 0: no kernel can do the problem, and err says why.  sms: multiprocessors of the device.
 */
static inline size_t cptx_gemm_auto(const cptx_gemm_opt *opt, const cptx_gemm_problem *problem, uint32_t sms,
                                    cptx_gemm_choice *choices, size_t room, cptx_error *err)
{
	return cptx_gemm_auto_(opt, NULL, problem, sms, choices, sizeof *choices, room, err);
}
/**
 * Picks the shape for a problem on a target: only shapes that fit there, [sync] by the model of the target's GPU and, from
 * sm_90 on and where the rows are aligned, with .tma or without, whichever is faster.  target NULL: any; [sync] then counts
 * as sm_80, with .tma as sm_90, and .tma stays as it is.
 */
static inline size_t cptx_gemm_auto_for(const cptx_gemm_opt *opt, const cptx_target *target,
                                        const cptx_gemm_problem *problem, uint32_t sms, cptx_gemm_choice *choices,
                                        size_t room, cptx_error *err)
{
	return cptx_gemm_auto_(opt, target, problem, sms, choices, sizeof *choices, room, err);
}
/** The GPU whose model cptx_gemm_auto_for takes and where its figures come from: "A100, a roofline by its data sheet" or
 * "H200, fitted to measured times"; *sms (may be NULL) gets the number of its multiprocessors.  NULL: there are no such
 * options, or the build has no kernels. */
CPTX_API const char *cptx_gemm_model(const cptx_gemm_opt *opt, const cptx_target *target, uint32_t *sms);
CPTX_API bool cptx_gemm_tune_(cptx_device *dev, const cptx_gemm_problem *problem, cptx_gemm_choice *choices, size_t size,
                              size_t n, cptx_error *err);
/**
 * Measures choices on a device and sorts them by their time: in bursts of launches, with copies of A and B (some 256 MB of
 * the device's memory) that take turns, so that these come from global memory.  problem: with addresses; D is written, the
 * workspace is tune's own.  False: a choice could not be run; the order is as it was.
 */
static inline bool cptx_gemm_tune(cptx_device *dev, const cptx_gemm_problem *problem, cptx_gemm_choice *choices, size_t n,
                                  cptx_error *err)
{
	return cptx_gemm_tune_(dev, problem, choices, sizeof *choices, n, err);
}

/**
 * Adds the kernel to a module.  NULL on error: err says why (and the module holds it if building failed).
 *
 * Parameters, in order: what plan.map names, M, N, K (u32), and where the options say so batch (u32), alpha (f32), beta
 * (f32), C, bias, the timeline, the workspace and counts (pointers); batch with experts too; with strided and unaligned
 * others behind them.  With grouped: the table (pointer), cluster tiles of all problems (u32), alpha and beta where the
 * options say so.  Behind all of them come the rows of .params.
 */
CPTX_API cptx_kernel *cptx_gemm_build(cptx_module *m, const cptx_gemm_opt *opt, cptx_error *err);

/** Describes the tensor maps that a kernel takes, in the order of plan.map; pointers among the parameters are left out
 * ([scaled]: map[2]).  Not for [sync] without .tma. */
CPTX_API bool cptx_gemm_maps(const cptx_gemm_opt *opt, const cptx_gemm_problem *problem,
                             cptx_tensor_map_opt map[CPTX_GEMM_MAPS], cptx_error *err);
/** Prepares a launch of the kernel in `program` (named as opt says) for a problem.  opt: the options that it was built with;
 * others are not always noticed, and then results are wrong, or the kernel waits for ever. */
CPTX_API cptx_launch *cptx_gemm_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *opt,
                                       const cptx_gemm_problem *problem, cptx_error *err);

/**
 * Runs GEMMs in one call each: it chooses a shape where none is given, builds, compiles (or finds in the cache), loads and
 * launches, and keeps the programs for later calls.
 *
 *   cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);
 *   cptx_gemm_opt opt = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16 };
 *   cptx_gemm_run(r, &opt, &(cptx_gemm_problem){ .m = m, .n = n, .k = k, .a = a, .b = b, .d = d }, stream, &err);
 *
 * Threads: all calls but destroy may be made by many threads at once; a kernel that is not there yet is compiled by one of
 * them while the others wait.
 */
typedef struct cptx_gemm_runner cptx_gemm_runner;
/** Makes a runner for a device, which must stay open.  cache: for machine code, may be NULL; it stays the caller's and must
 * stay open.  NULL on error. */
CPTX_API cptx_gemm_runner *cptx_gemm_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err);
/** Frees a runner and its programs; the work that it started must have ended.  NULL is allowed. */
CPTX_API void cptx_gemm_runner_destroy(cptx_gemm_runner *runner);
/**
 * Starts a GEMM as work of a stream (NULL: the default one); does not wait.  opt with .bm = 0: the shape is chosen for the
 * sizes of the problem, once for each, without stream_k, which needs a workspace: the best in the tuning database
 * (<cptx/tune.h>), else the first of cptx_gemm_auto_for; of few rows the kernel of CPTX_GEMM_GEMV, whatever .mma says, where
 * that has the options and is faster, or takes weights of few bits that the other one does not.  Rows of any length and at
 * any distance are taken: what the copies of unaligned A and B need is allocated by the first run of such sizes on each
 * stream, and kept.  So a size is run once before its stream is captured; replays of what was captured and further runs on
 * that stream must not overlap; and a stream stays until the work on it has ended and, where A or B is unaligned, until the
 * runner is destroyed.  Else opt and problem are as for cptx_gemm_launch.  Not with .grouped. Errors: those of
 * cptx_gemm_check_problem, cptx_device_load and cptx_launch_new.
 */
CPTX_API bool cptx_gemm_run(cptx_gemm_runner *runner, const cptx_gemm_opt *opt, const cptx_gemm_problem *problem,
                            cptx_stream *stream, cptx_error *err);
/**
 * Sets the database that a runner looks into, and when it measures; without this call, what the environment says.  A
 * measurement takes seconds, memory for operands of its own and the default stream; where it fails the model chooses.  With
 * an epilogue, .name must say which one it is; without a name, and with .params, the model chooses.  Call it before the
 * first run: what was chosen for earlier problems stays.
 */
CPTX_API bool cptx_gemm_runner_set_tune(cptx_gemm_runner *runner, const cptx_tune_use *use, cptx_error *err);
/** Measures the shapes that the model likes best for the sizes of a problem, and records each in the database: see
 * cptx_tune_measure.  Operands are made here, so the problem needs no addresses.  done: may be NULL. */
CPTX_API bool cptx_gemm_measure(cptx_tune *db, cptx_device *dev, const cptx_gemm_opt *opt, const cptx_gemm_problem *problem,
                                const cptx_tune_use *use, cptx_tune_done *done, cptx_error *err);
/** Counters of a runner. */
typedef struct cptx_gemm_runner_stats {
	uint64_t hits;     /**< calls that found their program */
	uint64_t misses;   /**< calls that had to look for a shape or to load a program */
	uint64_t programs; /**< programs that were loaded; the runner keeps them */
} cptx_gemm_runner_stats;
CPTX_API void cptx_gemm_runner_count_(cptx_gemm_runner *runner, cptx_gemm_runner_stats *stats, size_t size);
/** The counters of a runner; all 0 for NULL. */
static inline cptx_gemm_runner_stats cptx_gemm_runner_count(cptx_gemm_runner *runner)
{
	cptx_gemm_runner_stats stats;
	cptx_gemm_runner_count_(runner, &stats, sizeof stats);
	return stats;
}

enum { CPTX_GEMM_GROUP_BYTES = 896 /**< bytes of the table for each problem of a list */ };
/**
 * Prepares a launch of a kernel that was made with .grouped, for n problems: each with its own sizes, A, B, D, and where
 * the options say so scale factors, C and bias.  ctas, alpha, beta and args are those of the first.  Problems without rows
 * or columns are passed over.  The tiles of all are computed as those of one, so order long ones first.
 *
 * table: device address, a multiple of 128, of n * CPTX_GEMM_GROUP_BYTES bytes.  They are written here, before the call
 * returns, and must stay as long as the launch is used; one table serves one launch.  What shape is good: cptx_gemm_auto for
 * one large problem of as many rows as all have.
 */
CPTX_API cptx_launch *cptx_gemm_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *opt,
                                               const cptx_gemm_problem *problems, size_t n, uint64_t table, cptx_error *err);

/**
 * Bytes of the scale factors of an operand with `rows` rows (of A, or columns of the product) and k elements in each; each
 * factor is a byte for `vec` elements.  Global memory has them as tensor cores take them: blocks of 128 rows by 4 factors,
 * 512 bytes each, all blocks of the first 128 rows behind one another, then those of the next 128.  In a block, factor f of
 * row r is byte r % 32 * 16 + r / 32 * 4 + f.  Padding in the last blocks may be anything but NaN: it scales zeros.
 * UINT64_MAX: the number of bytes exceeds 64 bits.
 */
CPTX_API uint64_t cptx_gemm_scales_bytes(uint64_t rows, uint64_t k, uint32_t vec);
/** Elements from a row of the f32 factors of A, one for 128 along K, to the next: `rows` rounded up to 4. */
static inline uint64_t cptx_gemm_scale_pitch(uint64_t rows) { return (rows + 3) & ~(uint64_t)3; }
/** Packs plain factors, rows x ceil(k / vec), row-major, and pads with zeros.  Does nothing where cptx_gemm_scales_bytes
 * returns UINT64_MAX. */
CPTX_API void cptx_gemm_scales_pack(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t k, uint32_t vec);

/**
 * Packs weights of 4 bits as all kernels with such a B read them: `codes` has one for each byte, in its low bits (u4: 0 to
 * 15; e2m1: its encoding), n rows of k, a multiple of 8; `to` gets n * k / 2 bytes.  Of eight neighbours, which make a word
 * of 32 bits, number 2 i is in bits 4 i and up, number 2 i + 1 in bits 4 i + 16 and up.  Weights of 8 bits need no packing.
 */
CPTX_API void cptx_gemm_pack_weights(uint8_t *to, const uint8_t *codes, uint64_t n, uint64_t k);

/** Elements of a row of a compressed A: half of k, which counts as the next multiple of 64. */
static inline uint64_t cptx_gemm_sparse_cols(uint64_t k) { return (k + 63) / 64 * 32; }
/** Words of 32 bits of the metadata of a compressed A. */
static inline uint64_t cptx_gemm_sparse_meta(uint64_t m, uint64_t k) { return (m + 15) / 16 * ((k + 63) / 64) * 32; }
/**
 * Compresses a matrix of m rows of k elements, `ld` elements from row to row (0: k), for kernels with .sparse: of each four
 * neighbours, from the first element of a row on, it keeps those that are not 0, in `values`, m rows of
 * cptx_gemm_sparse_cols(k), and their places in `meta`, cptx_gemm_sparse_meta(m, k) words: for 64 elements along K after the
 * other a block of 32 words for each 16 rows, word l what lane l of a warp gives mma.sp::ordered_metadata.  Zeros that are
 * left out make no NaN of infinities in B.  type: CPTX_BF16, F16, E4M3, E5M2, S8 or U8.  Nothing is pruned: false, with the
 * row and columns, where four neighbours have more than two that are not 0 (-0 counts as 0).
 */
CPTX_API bool cptx_gemm_sparse_pack(void *values, uint32_t *meta, const void *dense, enum cptx_type type, uint64_t m,
                                    uint64_t k, uint64_t ld, cptx_error *err);

/* ---- quantizers ---- */

/**
 * A kernel that makes of a matrix what kernels with .scale = CPTX_F32 multiply: elements of 8 bits, rounded to nearest, and
 * an f32 factor for each block, the largest magnitude in it over that of the type (448 of e4m3, 57344 of e5m2).  Zeros,
 * infinities and NaN are as cptx_quantize_factor (<cptx/epilogue.h>) says.  Targets from sm_89 on.
 */
typedef struct cptx_gemm_quantize_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	enum cptx_type in;  /**< CPTX_BF16, F16 or F32 */
	enum cptx_type out; /**< CPTX_E4M3 or E5M2 */
	bool blocks;        /**< blocks of 128 x 128, as of B; else of 1 x 128, as of A */
	bool pow2;          /**< factors are powers of two, rounded up */
	const char *name;   /**< name of the kernel; NULL: "quantize" */
	char z_;
} cptx_gemm_quantize_opt;
/** The matrix to quantize, and where its elements and scale factors go. */
typedef struct cptx_gemm_quantize_problem {
	uint32_t size;    /**< CPTX_OPT fills it in */
	uint64_t rows, k; /**< of a matrix, dense; k is a multiple of 16.  Of blocks of 1 x 128 all rows, those of experts too */
	uint32_t batch;   /**< with blocks: matrices behind one another; 0: 1 */
	uint64_t x, q;    /**< device addresses of the matrix and of what it becomes, aligned to 16 */
	uint64_t scale;   /**< of the factors, f32, as cptx_gemm_problem.scale_a or scale_b, aligned to 16 */
	char z_;
} cptx_gemm_quantize_problem;
/** Adds the kernel to a module; NULL on error, as cptx_gemm_build. */
CPTX_API cptx_kernel *cptx_gemm_quantize_build(cptx_module *m, const cptx_gemm_quantize_opt *opt, cptx_error *err);
/** Prepares a launch of it.  opt: the options that it was built with. */
CPTX_API cptx_launch *cptx_gemm_quantize_launch(const cptx_program *program, cptx_device *dev,
                                                const cptx_gemm_quantize_opt *opt, const cptx_gemm_quantize_problem *problem,
                                                cptx_error *err);

/** Phases of a GEMM's timeline. */
enum cptx_gemm_phase {
	CPTX_GEMM_WAIT_ROOM, /**< waits for a stage, or an accumulator, to be free */
	CPTX_GEMM_LOAD,      /**< starts copies */
	CPTX_GEMM_WAIT_DATA, /**< waits for a stage to be full */
	CPTX_GEMM_MULTIPLY,  /**< issues matrix instructions */
	CPTX_GEMM_WAIT_SUMS, /**< waits for an accumulator to be complete */
	CPTX_GEMM_EPILOGUE   /**< runs the epilogue; for a tile that is stored while the next one is multiplied, rounds it */
};
/** The layout of a kernel's timeline in memory, for the grid and threads of its plan and that many stamps for a warp. */
CPTX_API cptx_timeline_layout cptx_gemm_timeline(uint32_t grid, uint32_t threads, uint32_t stamps);

#ifdef __cplusplus
}
#endif
#endif
