/* SPDX-License-Identifier: MIT */
/*
 * cptx: the fast path of the builder calls, for compilers that make the same calls again and again.  <cptx/again.h> says
 * what is remembered of a call.
 */
#ifndef CPTX_FAST_H
#define CPTX_FAST_H

#include <cptx/cptx.h>
#include <cptx/insn_fast.h>

/**
 * A builder call that goes by a cptx_again of yours: CPTX_AGAIN(cptx_fma, &fma[type], k, a, b, c, .rnd = CPTX_RN).  It does
 * what cptx_fma(k, a, b, c, .rnd = CPTX_RN) does, with the same errors, and faster where modifiers and kinds of operands are
 * those that `again` holds: back ends that make calls of many types at one place have one for each.
 */
#define CPTX_AGAIN(name, again, ...) name##_a_((again), __VA_ARGS__, .z_ = 0)
/**
 * A builder call with a cptx_again of its own: CPTX_FAST(cptx_fma, k, a, b, c, .rnd = CPTX_RN).  Best where a line of the
 * program always makes the same instruction, on other registers.  Other compilers than gcc and clang make an ordinary call
 * of it in C.
 */
#define CPTX_FAST(name, ...) CPTX_FAST2_(CPTX_NAME_(cptx_again_, CPTX_COUNTER_), name, __VA_ARGS__)
#define CPTX_FAST2_(again, name, ...) CPTX_FAST_(again, name, __VA_ARGS__)
#ifdef __GNUC__
#define CPTX_COUNTER_ __COUNTER__ /* tells macros of one line apart */
#else
#define CPTX_COUNTER_ __LINE__
#endif
#ifndef __cplusplus /* cplusplus.h has the C++ versions of these macros */
#define CPTX_AGAIN_(name, again, kernel, ...) name##_again_((kernel), CPTX_HERE, &(struct name##_){ __VA_ARGS__ }, (again))
#ifdef __GNUC__
#define CPTX_FAST_(again, name, ...)                                                                                        \
	__extension__({                                                                                                         \
		static cptx_again again;                                                                                            \
		name##_a_(&again, __VA_ARGS__, .z_ = 0);                                                                            \
	})
#else
#define CPTX_FAST_(again, name, ...) name(__VA_ARGS__)
#endif
#endif

#endif
