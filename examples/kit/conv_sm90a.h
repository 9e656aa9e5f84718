/* SPDX-License-Identifier: MIT */
/* A convolution of bf16 images for sm_90a, so that tests can run it.  Compile with -DEXAMPLES_NO_MAIN for those. */
#ifndef EXAMPLES_CONV_SM90A_H
#define EXAMPLES_CONV_SM90A_H

#include <cptx/device.h>

/*
 * A shape: x is n x h x w x c (NHWC), the filter k x r x s x c (KRSC), y = n x p x q x k with
 * p = (h + 2 * pad - r) / stride + 1 and q alike.  c is a multiple of 8, k of 2; stride is 1 to 8; pad < r and s; matrices
 * have less than 2^32 elements.
 */
typedef struct conv {
	uint32_t n, h, w, c, k, r, s, pad, stride;
} conv;

static inline uint32_t conv_p(const conv *c) { return (c->h + 2 * c->pad - c->r) / c->stride + 1; }
static inline uint32_t conv_q(const conv *c) { return (c->w + 2 * c->pad - c->s) / c->stride + 1; }
static inline uint32_t conv_pixels(const conv *c) { return c->n * conv_p(c) * conv_q(c); }

/* The kernel of one shape: (tensor map of x, tensor map of the filter, address of y). */
cptx_kernel *conv_build(cptx_module *m, const conv *c);
/* Runs a shape on a device, and counts the elements that differ from a host loop; false with err: it did not run. */
bool conv_check(cptx_device *dev, const conv *c, uint64_t *wrong, cptx_error *err);

/* Shapes that the example runs: tiles that are full, and that are not. */
static const conv conv_shapes[] = {
	{ .n = 2, .h = 9, .w = 7, .c = 64, .k = 64, .r = 3, .s = 3, .pad = 1, .stride = 1 },
	{ .n = 3, .h = 14, .w = 14, .c = 40, .k = 72, .r = 3, .s = 3, .pad = 1, .stride = 2 },
	{ .n = 1, .h = 12, .w = 16, .c = 128, .k = 130, .r = 1, .s = 1, .pad = 0, .stride = 1 },
	{ .n = 2, .h = 11, .w = 13, .c = 8, .k = 34, .r = 5, .s = 3, .pad = 2, .stride = 1 },
	{ .n = 1, .h = 17, .w = 10, .c = 72, .k = 256, .r = 2, .s = 4, .pad = 1, .stride = 3 },
};
enum { CONV_SHAPES = sizeof conv_shapes / sizeof *conv_shapes };

#endif
