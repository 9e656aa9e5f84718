/* SPDX-License-Identifier: MIT */
/*
 * A cheap pass for back ends that make code without looking back: what was computed already is not computed again.  Nothing
 * in cptx runs it by itself.  ptxas does the same and much more; the pass is for text that is smaller, and for the time that
 * ptxas takes.
 *
 * What it looks at are values: registers that one instruction writes, without a guard, as all do that builder calls make
 * without .into, and registers that are last written in front of the first label.  Registers that are written several times
 * stay as they are, and so does all that has an effect or reads memory (but for parameters of kernels).
 *
 *   copies       a value that is a mov of another is replaced by that one
 *   constants    integer arithmetic on constants becomes a mov of the result; integer operands that are constants are
 *                written as such where the instruction takes them
 *   common       a value computed again by the same instruction from the same operands, where the first dominates it, is
 *                replaced by the first
 *   addresses    [a + n] where a = b + m, 64 bits wide, becomes [b + (m + n)]
 *   dead         instructions that compute what nobody reads are removed
 *
 * Every store, every effect and every result stays the same, to the bit: nothing is reordered, and no floating point number
 * is computed in another way.  The time is linear in the size of the body.
 */
#ifndef CPTX_OPTIMIZE_H
#define CPTX_OPTIMIZE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What not to do.  All zero: everything. */
typedef struct cptx_optimize_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	/** what is left as it is */
	bool keep_copies, keep_constants, keep_common, keep_addresses, keep_dead;
	char z_;
} cptx_optimize_opt;

/** How often each was done: values that were replaced, operands that became constants and instructions that became a mov,
 * addresses that changed, instructions that were removed. */
typedef struct cptx_optimized {
	size_t copies, constants, common, addresses, dead; /**< in that order */
} cptx_optimized;

/**
 * Runs the pass over all kernels and functions of a module, which is not frozen and has no open block.  Values that the
 * caller holds may be gone behind it: building goes on with new ones only.  opt, done and err may be NULL.  False: nothing
 * more was changed; the module has the error, as of every call, and err too.
 * Errors: STATE, the module is frozen or a block is open; MEMORY; ARG.
 */
CPTX_API bool cptx_optimize(cptx_module *m, const cptx_optimize_opt *opt, cptx_optimized *done, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
