/* SPDX-License-Identifier: MIT */
/*
 * Looking at kernels as the GPU will see them: the messages of ptxas as data, what limits occupancy, what the instructions
 * are, which registers are alive where.  Nothing here needs CUDA: the messages of ptxas are text that the caller brings, and
 * the rest reads the module.  <cptx/cubin.h> reads machine code.
 */
#ifndef CPTX_INSPECT_H
#define CPTX_INSPECT_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Messages of ptxas ---------------------------------------------------------------------------------------------- */

/** The severity of a remark. */
enum cptx_severity {
	CPTX_SAID_NOTE,    /**< good to know */
	CPTX_SAID_CONCERN, /**< costs speed: spills, serialised wgmma, setmaxnreg ignored; ptxas calls some of these "info" */
	CPTX_SAID_WARNING, /**< ptxas warns */
	CPTX_SAID_ERROR    /**< ptxas refuses */
};

/** One remark of ptxas.  Strings live as long as the verdict; "" where there is none. */
typedef struct cptx_remark {
	enum cptx_severity severity; /**< severity of the remark */
	const char *topic;           /**< "wgmma-accumulator-written", a row of the table in src/inspect; "" where no row fits */
	const char *code;            /**< ptxas's code, "C7515" */
	const char *text;            /**< the remark in ptxas's words */
	const char *advice;          /**< what it means and what to do */
	const char *function;        /**< the kernel or function that it is about */
	uint32_t ptx_line;           /**< line of the PTX, from 1; 0: unknown */
	bool found;                  /**< ptxas named no line: ptx_line is the instruction that it must mean */
	cptx_site at;                /**< the user's line; file NULL: unknown */
} cptx_remark;

/** The resources that `ptxas -v` reports for one function.  Sizes are in bytes. */
typedef struct cptx_usage {
	const char *function, *target;      /**< names of the function and of the target */
	bool is_kernel;                     /**< false: a device function, of which only frame and spills are known */
	uint32_t registers, barriers;       /**< registers per thread; numbered barriers */
	uint32_t frame, stack;              /**< the function's own stack frame; with those of the functions that it calls */
	uint32_t spill_stores, spill_loads; /**< spilled bytes per thread */
	uint32_t static_smem;               /**< static shared memory of a CTA */
	uint32_t constant[8];               /**< constant banks */
} cptx_usage;

/** The PTX that ptxas compiled. */
typedef struct cptx_verdict_opt {
	uint32_t size;           /**< CPTX_OPT fills it in */
	const char *ptx;         /**< the text that ptxas read; NULL: that of `printed` */
	size_t ptx_size;         /**< bytes of ptx */
	const char *name;        /**< name of the text, for places that no .loc names; NULL: "ptx" */
	const cptx_ptx *printed; /**< the same text as cptx_emit printed it, which knows the user's lines; NULL: .loc lines tell
	                            them. It must live as long as the verdict */
	char z_;
} cptx_verdict_opt;

/** The messages of a run of ptxas as data. */
typedef struct cptx_verdict cptx_verdict;
/** Reads the output of `ptxas -v`, of any length.  `opt` may be NULL: then no lines are known.  NULL when memory is short.
 */
CPTX_API cptx_verdict *cptx_verdict_read(const char *text, size_t size, const cptx_verdict_opt *opt);
/** Frees a verdict.  NULL is allowed. */
CPTX_API void cptx_verdict_destroy(cptx_verdict *v);
/** Remark number i, from 0 on, in ptxas's order, remarks about spills last; NULL behind the last. */
CPTX_API const cptx_remark *cptx_verdict_remark(const cptx_verdict *v, size_t i);
/** The resources of function number i, from 0 on; NULL behind the last. */
CPTX_API const cptx_usage *cptx_verdict_usage(const cptx_verdict *v, size_t i);
/** The resources of a kernel or function by name; NULL if ptxas did not name it. */
CPTX_API const cptx_usage *cptx_verdict_usage_of(const cptx_verdict *v, const char *function);
/** The user's line of a line of the PTX: by `printed`, else by .loc, else that line itself. */
CPTX_API cptx_site cptx_verdict_origin(const cptx_verdict *v, uint32_t ptx_line);

/* ---- Occupancy ---------------------------------------------------------------------------------------------------- */

/** The resource that stops another CTA on a multiprocessor. */
enum cptx_limit {
	CPTX_LIMIT_NONE,      /**< unknown */
	CPTX_LIMIT_CTAS,      /**< the most CTAs that a multiprocessor holds */
	CPTX_LIMIT_THREADS,   /**< the most threads */
	CPTX_LIMIT_REGISTERS, /**< registers */
	CPTX_LIMIT_SMEM,      /**< shared memory */
	CPTX_LIMIT_BARRIERS   /**< numbered barriers */
};

/** CTAs that fit on a multiprocessor.  CUDA programming guide, "Compute Capabilities", "Technical Specifications". */
typedef struct cptx_occupancy {
	uint32_t ctas, warps;  /**< most CTAs and warps resident; 0: the kernel cannot be launched */
	uint32_t most_warps;   /**< warps that the multiprocessor has room for */
	enum cptx_limit limit; /**< what stops another CTA */
	uint32_t by_ctas, by_threads, by_registers, by_smem; /**< CTAs that each limit alone would allow */
	uint32_t cta_registers; /**< registers that a CTA takes, rounded up to the unit of allocation */
	uint32_t cta_smem;      /**< shared memory that a CTA takes, rounded up, with what the system keeps */
} cptx_occupancy;

CPTX_API bool cptx_occupancy_of_(const cptx_target *t, uint32_t registers, uint32_t smem, uint32_t threads,
                                 cptx_occupancy *out, size_t size);
/** Computes occupancy.  registers: per thread; smem: static and dynamic bytes of a CTA; threads: of a CTA, 1 to 1024.  False
 * if an argument is out of range. */
static inline bool cptx_occupancy_of(const cptx_target *t, uint32_t registers, uint32_t smem, uint32_t threads,
                                     cptx_occupancy *out)
{
	return cptx_occupancy_of_(t, registers, smem, threads, out, sizeof *out);
}
/** The name of a limit, "registers". */
CPTX_API const char *cptx_limit_name(enum cptx_limit limit);

/* ---- Instructions ------------------------------------------------------------------------------------------------- */

/** The unit of the multiprocessor that an instruction keeps busy. */
enum cptx_unit {
	CPTX_UNIT_TENSOR,   /**< mma, wgmma, tcgen05.mma */
	CPTX_UNIT_FLOAT,    /**< f32, f16, bf16 arithmetic */
	CPTX_UNIT_DOUBLE,   /**< f64 arithmetic */
	CPTX_UNIT_INTEGER,  /**< integer, logic, comparison, moves, conversions */
	CPTX_UNIT_SPECIAL,  /**< sin, rcp, ex2, ... */
	CPTX_UNIT_GLOBAL,   /**< loads and stores of global memory, atomics, textures */
	CPTX_UNIT_SHARED,   /**< loads and stores of shared memory, ldmatrix, tensor memory */
	CPTX_UNIT_LOCAL,    /**< loads and stores of local memory */
	CPTX_UNIT_CONSTANT, /**< loads of parameters and constants */
	CPTX_UNIT_COPY,     /**< asynchronous copies: cp.async, TMA */
	CPTX_UNIT_SYNC,     /**< barriers, mbarriers, fences, waits */
	CPTX_UNIT_CONTROL,  /**< branches, calls */
	CPTX_UNITS          /**< number of units */
};
/** The name of a unit, "tensor". */
CPTX_API const char *cptx_unit_name(enum cptx_unit unit);

/** One instruction of a body, in the order of the code. */
typedef struct cptx_point {
	const cptx_item *item; /**< the body's item */
	uint32_t line;         /**< line of the parsed text or of the user's source; 0: none */
	uint16_t live; /**< 32-bit registers alive across the instruction: those it reads and writes, and those needed later */
	uint16_t predicates; /**< predicates alive across the instruction */
	uint8_t depth;       /**< number of loops around it */
	uint8_t unit;        /**< enum cptx_unit */
	uint32_t loop;       /**< number of the innermost loop, from 0; UINT32_MAX: none */
	uint16_t conflicts;  /**< bank conflicts of a warp, as far as the text tells: see cptx_flow_conflicts */
} cptx_point;

/** A natural loop: a branch back to a head that every path into the loop passes. */
typedef struct cptx_loop {
	uint32_t first, last; /**< numbers of its first and last points */
	uint32_t outer;       /**< number of the loop around it; UINT32_MAX: none */
	uint8_t depth;        /**< 1: not inside of another loop */
	double weight;        /**< an estimate of its share of the time: see cptx_flow_hottest */
} cptx_loop;

/** An analysis of a body: loops, units, registers. */
typedef struct cptx_flow cptx_flow;
/** Analyses one kernel or function with a body.  Returns NULL on error, with *err set (err may be NULL).  The flow refers to
 * the module, which must outlive it. */
CPTX_API cptx_flow *cptx_flow_of(const cptx_kernel *k, cptx_error *err);
/** Frees a flow.  NULL is allowed. */
CPTX_API void cptx_flow_destroy(cptx_flow *f);
/** The instructions of the body, in order; *n gets their number. */
CPTX_API const cptx_point *cptx_flow_points(const cptx_flow *f, size_t *n);
/** The loops of the body, each behind the one around it; *n gets their number. */
CPTX_API const cptx_loop *cptx_flow_loops(const cptx_flow *f, size_t *n);
/**
 * The number of the loop that takes the most time, as far as the text tells: each instruction weighs by its unit (a tensor
 * instruction by its multiplications) and ten times more for each loop around it.  UINT32_MAX: there is no loop.
 */
CPTX_API uint32_t cptx_flow_hottest(const cptx_flow *f);
/** Counts the instructions of each unit, plainly and weighed by their loops. */
CPTX_API void cptx_flow_mix(const cptx_flow *f, uint32_t count[CPTX_UNITS], double weight[CPTX_UNITS]);
/** The most registers alive at a point; *point gets the number of that point. */
CPTX_API uint32_t cptx_flow_peak(const cptx_flow *f, uint32_t *point);
/**
 * Bank conflicts of the ld.shared and st.shared whose addresses follow from the lane number, each instruction counted once;
 * these are *known of *accesses instructions.  The count is for a warp along x at the start of its block; address terms that
 * all lanes share are taken as zero.  Terms that change in a loop, or that differ between lanes and come from memory, are
 * not known.  ldmatrix and asynchronous copies are not counted.
 */
CPTX_API uint32_t cptx_flow_conflicts(const cptx_flow *f, uint32_t *known, uint32_t *accesses);
/* ---- Shared memory, and the stages of pipelines in it -------------------------------------------------------------- */

/** A variable in shared memory that the kernel can name: the kernel's own come first, then the module's. */
typedef struct cptx_shared_var {
	const char *name; /**< name of the variable; lives as long as the flow */
	uint64_t size;    /**< bytes; 0: the launch decides */
	uint32_t align;   /**< alignment of its address in bytes */
	uint32_t line;    /**< line of its declaration; 0: unknown, or a variable of the module */
	bool of_module;   /**< declared by the module, not by the kernel */
} cptx_shared_var;

/**
 * A set of mbarriers in a row, 8 bytes each, that are used alike, such as those of a ring's stages.  A set is recognized by
 * its address, which stays the same in all iterations of a loop, or starts the same and advances in steps.
 */
typedef struct cptx_barrier_set {
	uint32_t variable; /**< number of the cptx_shared_var that holds them */
	uint32_t offset;   /**< byte offset of the first in that variable */
	uint32_t n;        /**< number of mbarriers; 0: they are initialized in a loop, or elsewhere */
	uint32_t arrivals; /**< arrivals that complete a phase; 0: not a constant */
} cptx_barrier_set;

/** What an instruction does with an mbarrier. */
enum cptx_stage_role {
	CPTX_STAGE_INIT,   /**< initializes it */
	CPTX_STAGE_INVAL,  /**< ends its use */
	CPTX_STAGE_ARRIVE, /**< arrives */
	CPTX_STAGE_EXPECT, /**< expects bytes, with or without an arrival */
	CPTX_STAGE_COPY,   /**< an asynchronous copy or store that completes its bytes there */
	CPTX_STAGE_COMMIT, /**< tcgen05.commit, cp.async.mbarrier.arrive: arrives when earlier work is done */
	CPTX_STAGE_WAIT    /**< test_wait, try_wait */
};

/** An instruction that uses an mbarrier. */
typedef struct cptx_stage_use {
	uint32_t point;            /**< number of the instruction's point */
	enum cptx_stage_role role; /**< what the instruction does */
	uint32_t set;              /**< number of the mbarrier's set; UINT32_MAX: unknown */
	uint32_t count;  /**< INIT: arrivals; EXPECT, COPY: bytes; 0: not a constant (for a tensor map the box decides) */
	uint32_t buffer; /**< COPY: number of the cptx_shared_var that it writes; UINT32_MAX: unknown */
	uint32_t offset; /**< COPY: byte offset in that variable, in the first stage */
	uint32_t stride; /**< COPY: bytes from stage to stage; 0: always the same place, or unknown */
} cptx_stage_use;

/** The variables in shared memory; *n gets their number. */
CPTX_API const cptx_shared_var *cptx_flow_shared(const cptx_flow *f, size_t *n);
/** The sets of mbarriers; *n gets their number. */
CPTX_API const cptx_barrier_set *cptx_flow_barriers(const cptx_flow *f, size_t *n);
/** The instructions that use mbarriers, in the order of the code; *n gets their number. */
CPTX_API const cptx_stage_use *cptx_flow_stages(const cptx_flow *f, size_t *n);
/** The name of a role, "arrive". */
CPTX_API const char *cptx_stage_role_name(enum cptx_stage_role role);

/** An estimate of the registers that ptxas will use, from the most registers alive in the PTX: within 15 % for half of the
 * kernels.  A cubin has the exact number. */
CPTX_API uint32_t cptx_flow_registers(const cptx_flow *f);

#ifdef __cplusplus
}
#endif

#endif
