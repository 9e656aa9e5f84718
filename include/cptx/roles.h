/* SPDX-License-Identifier: MIT */
/*
 * Warp roles: which warps of a CTA run what, with how many registers.
 *
 *   cptx_roles r;
 *   cptx_roles_begin(k, &r, .threads = 384);                                                    all threads
 *   CPTX_ROLE (k, &r, .warps = 4, .regs = 24, .elect = true, .exits = true) { ... TMA ... }     one thread of warps 0 to 3
 *   CPTX_ROLE (k, &r, .warps = 8, .regs = 240) { ... wgmma ... }                                all threads of warps 4 to 11
 *
 * Roles take the next warps, one after another; warps that are left have none.  r.first is the first warp of the block that
 * is open, so cptx_role_warp and cptx_role_thread count from 0 in it.
 *
 * What it emits.  cptx_roles_begin: %tid.x, a shift, a shfl.sync, by which ptxas knows that all threads of a warp have the
 * same number and makes uniform branches, and an and.  CPTX_ROLE: a comparison or two, a branch, setmaxnreg, and with .elect
 * elect.sync and another branch; with .exits exit.
 *
 * Uniform registers: behind a block for one thread ptxas does not take the threads of a warp for being together any more,
 * and keeps nothing in uniform registers in the roles that follow.  With .exits they do not come from there.  In a wgmma
 * mainloop that is 37 machine instructions in place of 69 (ptxas 13.0), so a producer's role that others follow should say
 * it.
 *
 * Registers: setmaxnreg moves them between warps.  Each thread begins with what the compiler may give all of them, 65536 /
 * (threads * CTAs per SM), rounded down to a multiple of 8: 168 for 384 threads.  A role with more asks for the rest (.inc,
 * which waits for it), one with fewer gives it up (.dec).  The kernel must have its block (.block of cptx_kernel_begin) and
 * .min_ctas = ctas, so that ptxas compiles it for that number.  setmaxnreg is for whole warpgroups: with .regs a role begins
 * at a multiple of four warps, and has a multiple of four.
 *
 * Nothing here does more than the calls of <cptx/insn.h>.  Errors are those of the kernel's module.
 */
#ifndef CPTX_ROLES_H
#define CPTX_ROLES_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The CTA whose warps have roles. */
typedef struct cptx_roles_opt {
	uint32_t size;    /**< CPTX_OPT fills it in */
	uint32_t threads; /**< of the CTA, along x alone; a multiple of 32 */
	uint32_t ctas;    /**< CTAs per SM that the registers are for; 0: 1 */
	const char
		*target;    /**< "sm_80": setmaxnreg is left out where this target has none (sm_90a, sm_100f, sm_110f, sm_120f and
	                     their like have it), and lane 0 is elected where it has no elect.sync (sm_90); NULL: has both */
	bool keep_regs; /**< no setmaxnreg at all, whatever roles say */
	char z_;
} cptx_roles_opt;

/** Roles of a kernel.  Plain data. */
typedef struct cptx_roles {
	cptx_made made;        /**< by which call, in which kernel */
	cptx_val tid;          /**< .u32, %tid.x */
	cptx_val warp;         /**< .u32, the same in all threads of a warp, which ptxas knows */
	cptx_val lane;         /**< .u32, 0 to 31 */
	uint32_t threads;      /**< of the CTA */
	uint32_t regs;         /**< that each thread begins with */
	uint32_t room;         /**< registers of a CTA */
	uint32_t used;         /**< registers of the roles so far */
	uint32_t first;        /**< first warp of the role that is open */
	uint32_t warps;        /**< of that role */
	uint32_t next;         /**< first warp that has no role yet */
	uint32_t open;         /**< blocks that are open; 0: between roles */
	bool moves;            /**< setmaxnreg is there */
	bool elects;           /**< elect.sync is there */
	bool exits;            /**< the threads of the role that is open end behind it */
	uint64_t reserved_[4]; /**< for fields of later versions */
} cptx_roles;

CPTX_API void cptx_roles_begin_(cptx_kernel *k, cptx_site at, cptx_roles *r, const cptx_roles_opt *opt);
/** Finds out who is who: cptx_roles_begin(k, &r, .threads = 384), by all threads. */
#define cptx_roles_begin(...) cptx_roles_begin_x_(__VA_ARGS__, .z_ = 0)
#define cptx_roles_begin_x_(k, r, ...) cptx_roles_begin_((k), CPTX_HERE, (r), CPTX_OPT(cptx_roles_opt, __VA_ARGS__))

/** A role. */
typedef struct cptx_role_opt {
	uint32_t size;  /**< CPTX_OPT fills it in */
	uint32_t warps; /**< 1 on: the next warps of the CTA */
	uint32_t regs;  /**< of a thread: 24 to 256, a multiple of 8; 0: as they are, no setmaxnreg.  The
	                     kernel has .block and .min_ctas (or .max_regs): ptxas ignores setmaxnreg otherwise */
	bool elect;     /**< the block is for one thread of the first of these warps */
	bool exits;     /**< all threads of these warps end behind the block */
	char z_;
} cptx_role_opt;

CPTX_API int cptx_role_begin_(cptx_kernel *k, cptx_site at, cptx_roles *r, const cptx_role_opt *opt);
CPTX_API int cptx_role_end_(cptx_kernel *k, cptx_site at, cptx_roles *r);
/** A block for the next warps: CPTX_ROLE (k, &r, .warps = 1) { ... }.  It must be left at its end. */
#define CPTX_ROLE(...) CPTX_ROLE_X_(__VA_ARGS__, .z_ = 0)
#define CPTX_ROLE_X_(k, r, ...)                                                                                             \
	for (int CPTX_NAME_(cptx_b_, __LINE__) = cptx_role_begin_((k), CPTX_HERE, (r), CPTX_OPT(cptx_role_opt, __VA_ARGS__));   \
	     CPTX_NAME_(cptx_b_, __LINE__); CPTX_NAME_(cptx_b_, __LINE__) = cptx_role_end_((k), CPTX_HERE, (r)))

CPTX_API cptx_val cptx_role_number_(cptx_kernel *k, cptx_site at, const cptx_roles *r, bool thread);
/** This warp's number in the role that is open, .u32 from 0; the role at warp 0: no instruction. */
#define cptx_role_warp(k, r) cptx_role_number_((k), CPTX_HERE, (r), false)
/** This thread's number in the role that is open, .u32 from 0. */
#define cptx_role_thread(k, r) cptx_role_number_((k), CPTX_HERE, (r), true)

#ifdef __cplusplus
}
#endif
#endif
