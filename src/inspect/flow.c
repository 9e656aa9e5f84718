/* SPDX-License-Identifier: MIT */
/* Basic blocks and loops of a body, and the kinds of its instructions. */
#include "inspect/flow.h"

#include <stdlib.h>

static const arch_operand *operand_of(const ir_item *it, unsigned i)
{
	const arch_form *form = &arch_forms[it->form];

	return i < form->noperand ? &arch_operands[form->operand + i] : NULL;
}

bool flow_writes(const ir_item *it, unsigned i)
{
	const arch_operand *o = operand_of(it, i);

	/* the operand of a call is the list of results in front of the function */
	if (!o || ir_is_call(arch_forms[it->form].op))
		return o && o->kind == OPERAND_LIST && i + 1 < arch_forms[it->form].noperand &&
		       operand_of(it, i + 1)->kind == OPERAND_FUNC;
	return o->flags & OPERAND_DEST && o->kind == OPERAND_REG;
}

bool flow_reads(const ir_item *it, unsigned i)
{
	const arch_operand *o = operand_of(it, i);

	return !flow_writes(it, i) || (o && o->flags & OPERAND_READ);
}

/* ---- blocks ---- */

static unsigned op_of(const ir_item *it) { return arch_forms[it->form].op; }

static bool ends_block(const ir_item *it)
{
	unsigned op = op_of(it);

	return op == CPTX_OP_BRA || op == CPTX_OP_BRX_IDX || op == CPTX_OP_RET || op == CPTX_OP_EXIT || op == CPTX_OP_TRAP;
}

static bool new_block(cptx_flow *f, uint32_t first)
{
	if (f->nblock && f->block[f->nblock - 1].first == first)
		return true;
	if (!arena_push(&f->a, &f->block, f->nblock, &f->cap_block, sizeof *f->block))
		return false;
	if (f->nblock)
		f->block[f->nblock - 1].end = first;
	f->block[f->nblock++] = (flow_block){ .first = first, .next = FLOW_FAR, .branch = FLOW_FAR };
	return true;
}

static bool find_blocks(cptx_flow *f)
{
	uint32_t n = 0;

	if (!new_block(f, 0))
		return false;
	for (const ir_item *it = f->k->first; it; it = it->next) {
		if (it->kind == ITEM_LABEL) {
			if (!new_block(f, n))
				return false;
			f->label_block[ir_operand(f->k, it, 0).id] = (uint32_t)f->nblock - 1;
		} else if (it->kind == ITEM_INSN) {
			f->point[n++] = (cptx_point){ .item = it, .line = it->line, .loop = UINT32_MAX };
			if (ends_block(it) && it->next && !new_block(f, n))
				return false;
		}
	}
	f->block[f->nblock - 1].end = n;
	return true;
}

static void link_block(cptx_flow *f, uint32_t i)
{
	flow_block *b = &f->block[i];
	const ir_item *last = b->end > b->first ? f->point[b->end - 1].item : NULL;
	unsigned op = last ? op_of(last) : 0;
	bool stays = !last || !ends_block(last) || last->guard;

	if (stays && i + 1 < f->nblock)
		b->next = (int32_t)i + 1;
	for (unsigned j = 0; last && j < last->noperand && (op == CPTX_OP_BRA || op == CPTX_OP_BRX_IDX); j++) {
		cptx_val v = ir_operand(f->k, last, j);
		if (v.kind == CPTX_VAL_LABEL && f->label_block[v.id] != IR_NONE)
			b->branch = (int32_t)f->label_block[v.id];
		if (v.kind != CPTX_VAL_TARGETS)
			continue;
		for (const ir_item *it = f->k->first; it; it = it->next)
			if (it->kind == ITEM_TARGETS && ir_operand(f->k, it, 0).id == v.id) {
				cptx_val list = ir_operand(f->k, it, 1);
				b->many = &f->k->vec[list.id], b->nmany = list.count;
			}
	}
}

void flow_each_next(cptx_flow *f, uint32_t block, flow_next_fn fn, void *user)
{
	const flow_block *b = &f->block[block];

	if (b->next != FLOW_FAR)
		fn(f, block, (uint32_t)b->next, user);
	if (b->branch != FLOW_FAR)
		fn(f, block, (uint32_t)b->branch, user);
	for (uint32_t i = 0; i < b->nmany; i++)
		if (b->many[i].kind == CPTX_VAL_LABEL && f->label_block[b->many[i].id] != IR_NONE)
			fn(f, block, f->label_block[b->many[i].id], user);
}

/* ---- the hottest loop, the mix ---- */

static void weigh(cptx_flow *f)
{
	double most = 0;

	f->hottest = UINT32_MAX;
	for (size_t i = 0; i < f->npoint; i++) {
		const cptx_point *p = &f->point[i];
		double w = flow_cost(f->k, p->item, (enum cptx_unit)p->unit);
		for (unsigned d = 0; d < p->depth && d < 8; d++)
			w *= 10;
		if (p->loop != UINT32_MAX)
			f->loop[p->loop].weight += w;
	}
	for (size_t i = 0; i < f->nloop; i++)
		if (f->loop[i].weight > most)
			most = f->loop[i].weight, f->hottest = (uint32_t)i;
}

void cptx_flow_mix(const cptx_flow *f, uint32_t count[CPTX_UNITS], double weight[CPTX_UNITS])
{
	if (!count || !weight)
		return;
	memset(count, 0, CPTX_UNITS * sizeof *count);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		weight[u] = 0;
	for (size_t i = 0; f && i < f->npoint; i++) {
		double w = 1;
		for (unsigned d = 0; d < f->point[i].depth && d < 8; d++)
			w *= 10;
		count[f->point[i].unit]++;
		weight[f->point[i].unit] += w;
	}
}

/* ---- the whole ---- */

static bool build(cptx_flow *f)
{
	size_t n = 0;

	for (const ir_item *it = f->k->first; it; it = it->next)
		n += it->kind == ITEM_INSN;
	f->npoint = n;
	f->point = ARENA_ARRAY(&f->a, cptx_point, n + 1);
	f->label_block = ARENA_ARRAY(&f->a, uint32_t, f->k->nlabel + 1);
	if (!f->point || !f->label_block)
		return false;
	for (size_t i = 0; i < f->k->nlabel; i++)
		f->label_block[i] = IR_NONE;
	if (!find_blocks(f))
		return false;
	f->too_large = f->nblock * (f->k->nreg / 64 + 1) > FLOW_MOST_SETS;
	if (f->too_large)
		return false;
	for (uint32_t i = 0; i < f->nblock; i++)
		link_block(f, i);
	for (size_t i = 0; i < n; i++)
		f->point[i].unit = (uint8_t)flow_unit(f->k, f->point[i].item);
	if (!flow_loops(f) || !flow_live(f) || !flow_banks(f) || !flow_shared(f) || !flow_stages(f))
		return false;
	weigh(f);
	return true;
}

cptx_flow *cptx_flow_of(const cptx_kernel *k, cptx_error *err)
{
	cptx_flow *f = NULL;

	if (!may_go(err))
		return NULL;
	if (!k || !k->has_body || k->m->err.code) {
		error_set(err, CPTX_E_ARG, NOWHERE, "there is no body to look at");
		return NULL;
	}
	if ((f = NEW(cptx_flow))) {
		arena_init(&f->a, NULL);
		f->k = k;
		if (build(f))
			return f;
	}
	if (f && f->too_large)
		error_set(err, CPTX_E_LIMIT, k->at,
		          "kernel %s: its %zu blocks, with their loops and %zu registers, are too many to follow", k->name,
		          f->nblock, k->nreg);
	else
		error_set(err, CPTX_E_MEMORY, k->at, "kernel %s: out of memory", k->name);
	cptx_flow_destroy(f);
	return NULL;
}

void cptx_flow_destroy(cptx_flow *f)
{
	if (f)
		arena_free(&f->a);
	free(f);
}

const cptx_point *cptx_flow_points(const cptx_flow *f, size_t *n)
{
	return flow_count(f ? f->npoint : 0, n) ? f->point : NULL;
}

const cptx_loop *cptx_flow_loops(const cptx_flow *f, size_t *n) { return flow_count(f ? f->nloop : 0, n) ? f->loop : NULL; }

uint32_t cptx_flow_hottest(const cptx_flow *f) { return f ? f->hottest : UINT32_MAX; }
uint32_t cptx_flow_registers(const cptx_flow *f) { return f ? f->registers : 0; }

uint32_t cptx_flow_peak(const cptx_flow *f, uint32_t *point)
{
	if (point)
		*point = f ? f->peak_at : 0;
	return f ? f->peak : 0;
}
