/* SPDX-License-Identifier: MIT */
/* Plans of lines: plan.c makes them, line.c prints by them. */
#ifndef CPTX_EMIT_PLAN_H
#define CPTX_EMIT_PLAN_H

#include "emit/emit.h"

enum { NUMBERS_LOG = 10, NUMBERS = 1 << NUMBERS_LOG }; /* small numbers have ready texts */

/* Form, kind and lengths of an item in one word, without its flags. */
static inline uint32_t line_shape(const ir_item *it)
{
	const ir_item flags = { .flags = 7 };
	uint32_t shape, mask;

	memcpy(&shape, (const char *)it + offsetof(ir_item, form), sizeof shape);
	memcpy(&mask, (const char *)&flags + offsetof(ir_item, form), sizeof mask);
	return shape & ~mask;
}
_Static_assert(offsetof(ir_item, owner) == offsetof(ir_item, form) + sizeof(uint32_t), "line_shape reads what is in front");

/* The bits of the words of operands, two to each, that tell their kinds, and a few more. */
#define KINDS ((uint64_t)0xff << 32 | 0xff)

/* A number that is the same for items without a shape that have one plan, and mostly another for others. */
static inline uint32_t line_tag(const ir_item *it, const char *words)
{
	static const uint64_t there[PIECES + 1][PIECES / 2] = {
		{ 0, 0 }, { 0xff, 0 }, { KINDS, 0 }, { KINDS, 0xff }, { KINDS, KINDS }
	};
	const uint64_t *mask = there[MIN(it->noperand, (unsigned)PIECES)];
	uint64_t kind[PIECES / 2], mods = arch_four_mods(ir_mods(it), MIN(it->nmod, 4u));

	memcpy(kind, words, sizeof kind);
	uint64_t kinds = (kind[0] & mask[0]) | (kind[1] & mask[1]) << 8;
	uint64_t tag = ((mods ^ (uint64_t)it->form << 48) * 0x9e3779b97f4a7c15u) ^ (kinds * 0xd6e8feb86659fd93u);
	return (uint32_t)(tag >> 32) | 1;
}

/* Keeps a plan for items like this one, which has no shape and this spelling, if they can have one. */
void emit_note_plan(emitter *e, const ir_item *it, const spelling *s);
/* Makes the plan of an item's shape, if nobody did yet, before any of its items is printed; false, with an error, if the
 * target lacks the instruction. */
bool emit_plan_shape(emitter *e, const ir_item *it);

#endif
