/* SPDX-License-Identifier: MIT */
/* Shapes: what items that calls of one kind made have in common, kept once for the module. */
#include "ir/ir.h"

enum { IN_BLOCK = 16 };
typedef struct shape_block {
	struct shape_block *next;
	ir_shape of[IN_BLOCK];
} shape_block;

/* A shape as `r` wants it, in no list yet. */
static ir_shape describe(const arch_remembered *r)
{
	const arch_known *n = &r->known;
	ir_shape s = { .form = n->form, .nmod = n->ngroup, .noperand = n->noperand };

	for (unsigned i = 0; i < n->noperand; i++) {
		const arch_operand_plan *o = &r->plan.of[i];
		s.kind[i] = (uint8_t)((o->front & ((1u << WORD_KIND) - 1)) | (unsigned)o->is << WORD_KIND);
	}
	memcpy(s.mod, n->mod, n->ngroup * sizeof *s.mod);
	return s;
}

static unsigned list_of(const ir_shape *s)
{
	uint64_t hash = s->form;

	for (unsigned i = 0; i < s->nmod; i += 4)
		hash = (hash << 7 | hash >> 57) ^ arch_four_mods(s->mod + i, 4);
	for (unsigned i = 0; i < s->noperand; i++)
		hash = hash * 31 + s->kind[i];
	return (unsigned)(hash * 0x9e3779b97f4a7c15u >> 32) % IR_SHAPES;
}

static bool is_same(const ir_shape *a, const ir_shape *b)
{
	return a->form == b->form && a->nmod == b->nmod && a->noperand == b->noperand &&
	       !memcmp(a->kind, b->kind, sizeof a->kind) && !memcmp(a->mod, b->mod, sizeof a->mod);
}

/* Memory for the next shape; NULL: it is short. */
static ir_shape *room_for_one(cptx_module *m)
{
	unsigned at = m->nshape % IN_BLOCK;

	if (!at) {
		shape_block *block = HEAP_ARRAY(&m->a.hook, shape_block, NULL, 1);
		if (!block)
			return NULL;
		block->next = m->shape_block;
		m->shape_block = block;
	}
	return &m->shape_block->of[at];
}

const ir_shape *ir_shape_of(cptx_module *m, const arch_remembered *r)
{
	if (m->parsed || !r->known.noperand || !r->plan.direct) /* refilling an item takes 8 bytes behind it */
		return NULL;
	if (!m->shape && (m->shape = HEAP_ARRAY(&m->a.hook, ir_shape *, NULL, IR_SHAPES)))
		memset(m->shape, 0, IR_SHAPES * sizeof *m->shape);
	if (!m->shape)
		return NULL;
	ir_shape wanted = describe(r), **list = &m->shape[list_of(&wanted)];
	for (ir_shape *s = *list; s; s = s->next)
		if (is_same(s, &wanted))
			return s;
	ir_shape *made = room_for_one(m);
	if (!made)
		return NULL;
	*made = wanted;
	made->number = ++m->nshape;
	made->next = *list;
	*list = made;
	return made;
}

void ir_shapes_free(cptx_module *m)
{
	for (shape_block *b = m->shape_block, *next; b; b = next) {
		next = b->next;
		heap_realloc(&m->a.hook, b, 0);
	}
	if (m->shape)
		heap_realloc(&m->a.hook, m->shape, 0);
	if (m->here)
		heap_realloc(&m->a.hook, m->here, 0);
}
