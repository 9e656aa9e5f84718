/* SPDX-License-Identifier: MIT */
/*
 * Looking at kernels as the GPU will see them: what ptxas said as data, what limits occupancy, what the instructions are,
 * which registers are alive where.  Nothing here needs CUDA: what ptxas said is text that somebody else got from it, and the
 * rest reads the module.  <cptx/cubin.h> reads what is in machine code.
 */
#ifndef CPTX_INSPECT_H
#define CPTX_INSPECT_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What ptxas said ---------------------------------------------------------------------------------------------- */

/** How much a remark matters. */
enum cptx_severity {
	CPTX_SAID_NOTE,    /**< good to know */
	CPTX_SAID_CONCERN, /**< costs speed: spills, serialised wgmma, setmaxnreg ignored; ptxas calls some of these "info" */
	CPTX_SAID_WARNING, /**< ptxas warns */
	CPTX_SAID_ERROR    /**< ptxas refuses */
};

/** One remark of ptxas.  Strings live as long as the verdict, "" where there is none. */
typedef struct cptx_remark {
	enum cptx_severity severity; /**< how much it matters */
	const char *topic;           /**< "wgmma-accumulator-written", a row of src/inspect/said.def; "" for what has none */
	const char *code;            /**< "C7515" */
	const char *text;            /**< in the words of ptxas */
	const char *advice;          /**< what it means and what to do */
	const char *function;        /**< kernel or function */
	uint32_t ptx_line;           /**< line of the PTX, from 1; 0: not known */
	bool found;                  /**< ptxas named no line: this is the instruction that it must mean */
	cptx_site at;                /**< the user's line; file NULL: not known */
} cptx_remark;

/** What `ptxas -v` says of one function.  Sizes in bytes. */
typedef struct cptx_usage {
	const char *function, *target;      /**< names */
	bool is_kernel;                     /**< of a device function only frame and spills are known */
	uint32_t registers, barriers;       /**< per thread; numbered ones */
	uint32_t frame, stack;              /**< its own, and with called functions */
	uint32_t spill_stores, spill_loads; /**< per thread */
	uint32_t static_smem;               /**< of a CTA */
	uint32_t constant[8];               /**< constant banks */
} cptx_usage;

/** What is known of the text that ptxas read. */
typedef struct cptx_verdict_opt {
	uint32_t size;           /**< CPTX_OPT fills it in */
	const char *ptx;         /**< what ptxas read; NULL: that of `printed` */
	size_t ptx_size;         /**< bytes of it */
	const char *name;        /**< of that text, for places that no .loc names; NULL: "ptx" */
	const cptx_ptx *printed; /**< the same text as cptx_emit printed it, which knows the user's lines; else .loc tells them.
	                          * It must live as long as the verdict */
	char z_;
} cptx_verdict_opt;

/** What ptxas said, as data. */
typedef struct cptx_verdict cptx_verdict;
/** Reads what `ptxas -v` printed, of any length.  `opt` may be NULL: no lines are known then.  NULL when memory is short. */
CPTX_API cptx_verdict *cptx_verdict_read(const char *said, size_t size, const cptx_verdict_opt *opt);
/** NULL is allowed. */
CPTX_API void cptx_verdict_destroy(cptx_verdict *v);
/** Remark number i, in the order of ptxas, spills behind; NULL behind the last. */
CPTX_API const cptx_remark *cptx_verdict_remark(const cptx_verdict *v, size_t i);
/** Usage number i; NULL behind the last. */
CPTX_API const cptx_usage *cptx_verdict_usage(const cptx_verdict *v, size_t i);
/** That of a kernel or function; NULL if ptxas did not name it. */
CPTX_API const cptx_usage *cptx_verdict_usage_of(const cptx_verdict *v, const char *function);
/** The user's line of a line of the text: by `printed`, else by .loc, else that line itself. */
CPTX_API cptx_site cptx_verdict_origin(const cptx_verdict *v, uint32_t ptx_line);

/* ---- Occupancy ---------------------------------------------------------------------------------------------------- */

/** What stops another CTA on a multiprocessor. */
enum cptx_limit {
	CPTX_LIMIT_NONE,      /**< not known */
	CPTX_LIMIT_CTAS,      /**< the most CTAs that a multiprocessor holds */
	CPTX_LIMIT_THREADS,   /**< the most threads */
	CPTX_LIMIT_REGISTERS, /**< registers */
	CPTX_LIMIT_SMEM,      /**< shared memory */
	CPTX_LIMIT_BARRIERS   /**< numbered barriers */
};

/** How many CTAs fit on a multiprocessor.  CUDA programming guide, "Compute Capabilities", "Technical Specifications". */
typedef struct cptx_occupancy {
	uint32_t ctas, warps;                                /**< resident at most; 0: it cannot be launched */
	uint32_t most_warps;                                 /**< that the multiprocessor has room for */
	enum cptx_limit limit;                               /**< what stops another CTA */
	uint32_t by_ctas, by_threads, by_registers, by_smem; /**< CTAs that each alone would allow */
	uint32_t cta_registers;                              /**< that a CTA takes, rounded as they are handed out */
	uint32_t cta_smem;                                   /**< the same of shared memory, with what the system keeps */
} cptx_occupancy;

CPTX_API bool cptx_occupancy_of_(const cptx_target *t, uint32_t registers, uint32_t smem, uint32_t threads,
                                 cptx_occupancy *out, size_t size);
/** registers: per thread; smem: static and dynamic bytes of a CTA; threads: of a CTA, 1 to 1024.  False, for what is out of
 * range. */
static inline bool cptx_occupancy_of(const cptx_target *t, uint32_t registers, uint32_t smem, uint32_t threads,
                                     cptx_occupancy *out)
{
	return cptx_occupancy_of_(t, registers, smem, threads, out, sizeof *out);
}
/** "registers" */
CPTX_API const char *cptx_limit_name(enum cptx_limit limit);

/* ---- Instructions ------------------------------------------------------------------------------------------------- */

/** What an instruction keeps busy. */
enum cptx_unit {
	CPTX_UNIT_TENSOR,   /**< mma, wgmma, tcgen05.mma */
	CPTX_UNIT_FLOAT,    /**< f32, f16, bf16 arithmetic */
	CPTX_UNIT_DOUBLE,   /**< f64 arithmetic */
	CPTX_UNIT_INTEGER,  /**< integer, logic, comparison, moves, conversions */
	CPTX_UNIT_SPECIAL,  /**< sin, rcp, ex2, ... */
	CPTX_UNIT_GLOBAL,   /**< loads and stores of global memory, atomics, textures */
	CPTX_UNIT_SHARED,   /**< of shared memory, ldmatrix, tensor memory */
	CPTX_UNIT_LOCAL,    /**< of local memory */
	CPTX_UNIT_CONSTANT, /**< parameters and constants */
	CPTX_UNIT_COPY,     /**< asynchronous copies: cp.async, TMA */
	CPTX_UNIT_SYNC,     /**< barriers, mbarriers, fences, waits */
	CPTX_UNIT_CONTROL,  /**< branches, calls */
	CPTX_UNITS          /**< how many there are */
};
/** "tensor" */
CPTX_API const char *cptx_unit_name(enum cptx_unit unit);

/** One instruction of a body, as it stands in the code. */
typedef struct cptx_point {
	const cptx_item *item; /**< of the body */
	uint32_t line;         /**< of the parsed text or of the user's source; 0: none */
	uint16_t live;         /**< 32-bit registers alive across it: what it reads and writes, and what is needed later */
	uint16_t predicates;   /**< predicates alive */
	uint8_t depth;         /**< of loops around it */
	uint8_t unit;          /**< enum cptx_unit */
	uint32_t loop;         /**< number of the innermost loop, from 0; UINT32_MAX: none */
	uint16_t conflicts;    /**< bank conflicts of a warp, as far as the text tells: see cptx_flow_conflicts */
} cptx_point;

/** A natural loop: a branch back to a head that all ways in pass. */
typedef struct cptx_loop {
	uint32_t first, last; /**< points, by their number */
	uint32_t outer;       /**< the loop around it; UINT32_MAX: none */
	uint8_t depth;        /**< 1: not inside another */
	double weight;        /**< an estimate of its share of the time: see cptx_flow_hottest */
} cptx_loop;

/** What the code of a body looks like: loops, units, registers. */
typedef struct cptx_flow cptx_flow;
/** Of one kernel or function with a body.  NULL on error, with *err set (may be NULL).  It reads the module, which must live
 * on. */
CPTX_API cptx_flow *cptx_flow_of(const cptx_kernel *k, cptx_error *err);
/** NULL is allowed. */
CPTX_API void cptx_flow_destroy(cptx_flow *f);
/** Its instructions, in order; *n of them. */
CPTX_API const cptx_point *cptx_flow_points(const cptx_flow *f, size_t *n);
/** Its loops, each behind the one around it; *n of them. */
CPTX_API const cptx_loop *cptx_flow_loops(const cptx_flow *f, size_t *n);
/**
 * The loop where the time goes, as far as the text tells: each instruction weighs by its unit (a tensor instruction by its
 * multiplications) and ten times more for each loop around it.  UINT32_MAX: there is none.
 */
CPTX_API uint32_t cptx_flow_hottest(const cptx_flow *f);
/** How many instructions of each unit: as they stand, and weighed by their loops. */
CPTX_API void cptx_flow_mix(const cptx_flow *f, uint32_t count[CPTX_UNITS], double weight[CPTX_UNITS]);
/** The most registers alive at a point, and which point. */
CPTX_API uint32_t cptx_flow_peak(const cptx_flow *f, uint32_t *point);
/**
 * Bank conflicts of the ld.shared and st.shared whose addresses follow from the number of the lane, each instruction counted
 * once; *known of *accesses are so.  For a warp along x at the start of its block; what all lanes have in common is taken as
 * zero.  What changes in a loop, or comes from memory by another address in each lane, is not known.  ldmatrix and
 * asynchronous copies are not looked at.
 */
CPTX_API uint32_t cptx_flow_conflicts(const cptx_flow *f, uint32_t *known, uint32_t *accesses);
/* ---- Shared memory, and the stages of pipelines in it -------------------------------------------------------------- */

/** A variable in shared memory that the kernel can name: its own, then those of the module. */
typedef struct cptx_shared_var {
	const char *name; /**< lives as long as the flow */
	uint64_t size;    /**< bytes; 0: as long as the launch says */
	uint32_t align;   /**< bytes that its address is a multiple of */
	uint32_t line;    /**< of its declaration; 0: not known, or the module's */
	bool of_module;   /**< declared by the module, else by the kernel */
} cptx_shared_var;

/**
 * mbarriers behind one another, 8 bytes each, that are used alike: those of the stages of a ring.  As the text tells it: an
 * address that is the same for all turns of a loop, or begins so and goes on in steps.
 */
typedef struct cptx_barrier_set {
	uint32_t variable; /**< number of the cptx_shared_var */
	uint32_t offset;   /**< of the first, from there, in bytes */
	uint32_t n;        /**< stages; 0: set up in a loop, or elsewhere */
	uint32_t arrivals; /**< that complete a phase; 0: not a constant */
} cptx_barrier_set;

/** What an instruction does with an mbarrier. */
enum cptx_stage_role {
	CPTX_STAGE_INIT,   /**< sets it up */
	CPTX_STAGE_INVAL,  /**< ends its use */
	CPTX_STAGE_ARRIVE, /**< arrives */
	CPTX_STAGE_EXPECT, /**< bytes, with or without an arrival */
	CPTX_STAGE_COPY,   /**< an asynchronous copy or store that completes its bytes there */
	CPTX_STAGE_COMMIT, /**< tcgen05.commit, cp.async.mbarrier.arrive: arrives when earlier work is done */
	CPTX_STAGE_WAIT    /**< test_wait, try_wait */
};

/** An instruction that uses an mbarrier. */
typedef struct cptx_stage_use {
	uint32_t point;            /**< its number */
	enum cptx_stage_role role; /**< what it does */
	uint32_t set;              /**< of its mbarrier; UINT32_MAX: the text does not tell */
	uint32_t count;            /**< INIT: arrivals; EXPECT, COPY: bytes; 0: not a constant (of a tensor map: the box) */
	uint32_t buffer;           /**< COPY: the cptx_shared_var that it writes; UINT32_MAX: not known */
	uint32_t offset;           /**< of what it writes there in the first stage, in bytes */
	uint32_t stride;           /**< from stage to stage; 0: always the same, or not known */
} cptx_stage_use;

/** Variables in shared memory; *n of them. */
CPTX_API const cptx_shared_var *cptx_flow_shared(const cptx_flow *f, size_t *n);
/** Its sets of mbarriers; *n of them. */
CPTX_API const cptx_barrier_set *cptx_flow_barriers(const cptx_flow *f, size_t *n);
/** Instructions that use mbarriers, in the order of the code; *n of them. */
CPTX_API const cptx_stage_use *cptx_flow_stages(const cptx_flow *f, size_t *n);
/** "arrive" */
CPTX_API const char *cptx_stage_role_name(enum cptx_stage_role role);

/** What ptxas may take, from the most registers alive in the PTX: rough, within 15 % for half of the kernels.  A cubin
 * knows. */
CPTX_API uint32_t cptx_flow_registers(const cptx_flow *f);

#ifdef __cplusplus
}
#endif

#endif
