/* SPDX-License-Identifier: MIT */
/* What the attention kernels share: their parameters, and a host that compares every element with its own result. */
#ifndef KIT_ATTENTION_RUN_H
#define KIT_ATTENTION_RUN_H

#include <cptx/mma.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>

enum { ATTENTION_D = 64 /* elements of a query, a key and a value */ };

/* A kernel "attention" for heads of `queries` and `keys` rows of D elements, bf16; grid { ceil(queries / tile), heads }. */
typedef struct attention {
	const char *device;     /* that runs it where CPTX_DEVICE names none */
	uint32_t tile, threads; /* queries of a CTA; its threads */
	uint32_t min_ctas;      /* CTAs per SM that registers are for; 0: any number */
	void (*build)(cptx_module *m, const void *self, bool causal);
	uint32_t keys, stages; /* TMA: keys of a tile, and stages of K and V; 0: the kernel takes pointers */
} attention;

extern const attention attention_sm80, attention_sm90a, attention_sm100a;

/* A kernel under way.  Q, K and V are of one head each. */
typedef struct attention_kernel {
	cptx_kernel *k;
	bool causal;
	cptx_params params; /* q, key and v (tensor maps or pointers), o (pointer), queries, keys (u32), scale (f32) */
	cptx_operand q, key, v;
	cptx_pipe q_pipe, pipe;      /* TMA: of Q once; of stages of K and V */
	cptx_val row0, head;         /* first query of the CTA */
	cptx_val queries, keys, end; /* how many; where the keys of this CTA end */
	cptx_val scale;              /* log2(e) / sqrt(D) */
} attention_kernel;

/* Opens the kernel, declares its parameters and finds the CTA's place; where TMA loads, makes the operands. */
attention_kernel attention_begin(cptx_module *m, const attention *self, bool causal);
/* TMA: the loop of the producer, one thread: Q, then K and V of `keys` keys each, stage by stage. */
void attention_produce(const attention_kernel *a, uint32_t keys);
/* Masks the scores of the `keys` keys from `key` on, where some of them do not count. */
void attention_mask(const attention_kernel *a, const cptx_acc *scores, cptx_val key, uint32_t keys);
/* Stores the CTA's rows of O. */
void attention_store(const attention_kernel *a, const cptx_acc *o);

/* Runs the module that was built (NULL: builds it) and counts elements that are wrong; false: it could not be run. */
bool attention_check(cptx_device *dev, const attention *a, cptx_module *m, uint32_t queries, uint32_t keys, bool causal,
                     unsigned *wrong, cptx_error *err);
/* What main returns: 0 if every element of several sizes is right. */
int attention_main(const attention *a);

#endif
