/* SPDX-License-Identifier: MIT */
/* Runs an attention kernel on a device and compares every element with the host's. */
#ifndef KIT_ATTENTION_RUN_H
#define KIT_ATTENTION_RUN_H

#include <cptx/device.h>
#include <cptx/operand.h>

enum { ATTENTION_D = 64 /* elements of a query, a key and a value */ };

/* A kernel "attention" with the parameters q, k, v (tensor maps, or pointers where `operand` is NULL), o, queries, keys
 * (u32) and scale (f32, log2(e) / sqrt(D)); grid { ceil(queries / .queries), heads }. */
typedef struct attention {
	const char *device;        /* that runs it where CPTX_DEVICE names none */
	uint32_t queries, threads; /* of a CTA */
	void (*build)(cptx_module *m, bool causal);
	const cptx_operand_opt *operand[3]; /* Q, K, V: of whose descriptions tensor maps are made */
} attention;

/* What main returns: 0 if every element was right. */
int attention_main(const attention *a);

#endif
