/* SPDX-License-Identifier: MIT */
/* What the attention kernels share: their parameters, and a host that compares every element with its own result. */
#ifndef KIT_ATTENTION_RUN_H
#define KIT_ATTENTION_RUN_H

#include <cptx/operand.h>
#include <cptx/params.h>

enum { ATTENTION_D = 64 /* elements of a query, a key and a value */ };

/* A kernel "attention" for heads of `queries` and `keys` rows of D elements, bf16; grid { ceil(queries / tile), heads }. */
typedef struct attention {
	const char *device;     /* that runs it where CPTX_DEVICE names none */
	uint32_t tile, threads; /* queries of a CTA; its threads */
	void (*build)(cptx_module *m, const void *self, bool causal);
	const cptx_operand_opt *q, *key, *v; /* what TMA loads; NULL: the kernel takes pointers */
} attention;

extern const attention attention_sm80, attention_sm90a, attention_sm100a;

/* Declares q, key and v (tensor maps or pointers), o (pointer), queries, keys (u32) and scale (f32, log2(e) / sqrt(D)). */
void attention_params(cptx_kernel *k, cptx_params *p, const attention *a);
/* What TMA loads, by the tensor map that is the parameter of that name. */
cptx_operand attention_operand(cptx_kernel *k, const cptx_params *p, const cptx_operand_opt *opt, const char *name);

/* Runs the module that was built (NULL: builds it) and counts elements that are wrong; false: it could not be run. */
bool attention_check(cptx_device *dev, const attention *a, cptx_module *m, uint32_t queries, uint32_t keys, bool causal,
                     unsigned *wrong, cptx_error *err);
/* What main returns: 0 if every element of several sizes is right. */
int attention_main(const attention *a);

#endif
