/* SPDX-License-Identifier: MIT */
/* What the files of the sm_90a attention share. */
#ifndef CPTX_ATTENTION_SM90_FORWARD_H
#define CPTX_ATTENTION_SM90_FORWARD_H

#include "attention/attention.h"

enum { GROUP_THREADS = 128, GROUP_ROWS = 64 /* of an MMA warpgroup */ };

/* What follows from the options. */
typedef struct shape90 {
	uint32_t dim, dim_v;      /* rounded up to whole swizzle spans of 64 bytes */
	uint32_t groups, threads; /* MMA warpgroups; threads of the CTA */
	uint32_t regs[2];         /* of a producer's thread, of an MMA warpgroup's; 0: as they come */
	cptx_tile q, k, v, o;     /* in shared memory; o: a subtile of a warpgroup's results */
	cptx_tile turned;         /* with turners: V as the second product reads it, keys contiguous */
	uint32_t turners;         /* warps beside the one that copies that turn V of 8 bits around; else 0 */
	uint32_t o_stages;        /* subtiles of O of a warpgroup in shared memory */
	uint32_t smem;
	bool corrects_few; /* O is multiplied for new maxima only where any of the warp's has grown */
	bool ping_pong; /* warpgroups issue products by turns, so that the softmax of one runs under the products of another */
} shape90;

shape90 attention_sm90_shape(const cptx_attention_opt *o);
/* Turns a block of V around, from `from` to `to` (.u32 addresses), by the warps that do; warp: which of them.  Behind it
 * wgmma may read it where this warp has told of it. */
void attention_sm90_turn(cptx_kernel *k, const shape90 *s, cptx_val warp, cptx_val lane, cptx_val from, cptx_val to);
cptx_kernel *attention_sm90_build(cptx_module *m, const cptx_attention_opt *o);
size_t attention_sm90_shapes(const cptx_attention_opt *o, cptx_attention_opt *to, size_t room);
void attention_sm90_cycles(const cptx_attention_opt *o, double *mma, double *softmax);

#endif
