/* SPDX-License-Identifier: MIT */
/* Functions of scores, masks and blocks that tests give to attention kernels, and their twins on the host. */
#ifndef TEST_ATTENTION_FUNCTIONS_H
#define TEST_ATTENTION_FUNCTIONS_H

#include "reference/attention_check.h"

#include <cptx/cptx.h>

#include <math.h>

/* ALiBi, and a mask of every third key. */
static inline cptx_val build_score(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	const cptx_val apart =
		cptx_cvt(k, cptx_sub(k, cptx_as(s->key, CPTX_S32), cptx_as(s->query, CPTX_S32)), .dtype = CPTX_F32, .rnd = CPTX_RN);
	const cptx_val slope = cptx_cvt(k, cptx_add(k, s->head, s->batch), .dtype = CPTX_F32, .rnd = CPTX_RN);
	const cptx_val v = cptx_fma(k, cptx_mul(k, apart, slope), 0.01f, s->value, .rnd = CPTX_RN);
	const cptx_val third = cptx_setp(k, cptx_rem(k, s->key, 3), 0, .cmp = CPTX_EQ);

	(void)user;
	return cptx_selp(k, -(float)INFINITY, v, third, .type = CPTX_F32);
}

static inline double score_of(const void *user, double v, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user;
	return key % 3 == 0 ? -INFINITY : v + 0.01 * ((double)key - query) * (head + batch);
}

/* Documents of 50 queries and keys each: none sees another's. */
enum { DOCUMENT = 50 };
static inline cptx_val build_mask(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	(void)user;
	return cptx_setp(k, cptx_div(k, s->query, DOCUMENT), cptx_div(k, s->key, DOCUMENT), .cmp = CPTX_EQ);
}

static inline bool mask_of(const void *user, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)batch, (void)head;
	return query / DOCUMENT == key / DOCUMENT;
}

static inline cptx_val build_blocks(cptx_kernel *k, void *user, const cptx_attention_block *b)
{
	const cptx_val q_end = cptx_div(k, cptx_add(k, b->query, b->queries - 1), DOCUMENT),
				   k_end = cptx_div(k, cptx_add(k, b->key, b->keys - 1), DOCUMENT);
	const cptx_val before = cptx_setp(k, cptx_div(k, b->key, DOCUMENT), q_end, .cmp = CPTX_LE);

	(void)user;
	return cptx_and(k, before, cptx_setp(k, k_end, cptx_div(k, b->query, DOCUMENT), .cmp = CPTX_GE), .type = CPTX_PRED);
}

/* Head h sees keys from 100 h to 100 h + 99. */
enum { OF_HEAD = 100 };
static inline cptx_val build_head_mask(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	(void)user;
	return cptx_setp(k, cptx_div(k, s->key, OF_HEAD), s->head, .cmp = CPTX_EQ);
}

static inline bool head_mask_of(const void *user, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)batch, (void)query;
	return key / OF_HEAD == head;
}

static inline cptx_val build_head_blocks(cptx_kernel *k, void *user, const cptx_attention_block *b)
{
	const cptx_val first = cptx_mul(k, b->head, OF_HEAD, .mode = CPTX_LO), last = cptx_add(k, first, OF_HEAD - 1);
	const cptx_val begins = cptx_setp(k, b->key, last, .cmp = CPTX_LE);

	(void)user;
	return cptx_and(k, begins, cptx_setp(k, cptx_add(k, b->key, b->keys - 1), first, .cmp = CPTX_GE), .type = CPTX_PRED);
}

/* s + s^2 / 8, and its derivative. */
static inline cptx_val build_square(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	(void)user;
	return cptx_fma(k, cptx_mul(k, s->value, s->value), 0.125f, s->value, .rnd = CPTX_RN);
}

static inline cptx_val build_square_grad(cptx_kernel *k, void *user, const cptx_attention_score *s)
{
	(void)user;
	return cptx_fma(k, s->value, 0.25f, 1.0f, .rnd = CPTX_RN);
}

static inline double square_of(const void *user, double v, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)batch, (void)head, (void)query, (void)key;
	return v + v * v / 8;
}

static inline double square_grad_of(const void *user, double v, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)batch, (void)head, (void)query, (void)key;
	return 1 + v / 4;
}

/* Of what adds to a score. */
static inline double one_of(const void *user, double v, uint32_t batch, uint32_t head, uint32_t query, uint32_t key)
{
	(void)user, (void)v, (void)batch, (void)head, (void)query, (void)key;
	return 1;
}

#endif
