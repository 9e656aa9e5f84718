/* SPDX-License-Identifier: MIT */
#include "base/map_use.h"

#include "ir/ir.h"

void ir_map_param_note(cptx_kernel *k, cptx_site at, cptx_val address)
{
	if (address.kind != CPTX_VAL_REG || !k->nparam)
		return; /* an error was made */
	if (arena_push(&k->m->a, &k->map_param, k->nmap_param, &k->cap_map_param, sizeof *k->map_param))
		k->map_param[k->nmap_param++] = (ir_map_param){ address.id, (uint32_t)k->nparam - 1 };
	else
		ir_no_memory(k->m, at);
}

static bool is_same(const ir_map_use *a, const ir_map_use *b)
{
	return a->param == b->param && a->stores == b->stores && a->mode == b->mode && a->type == b->type &&
	       a->rank == b->rank && a->swizzle == b->swizzle && a->channels == b->channels && a->pixels == b->pixels &&
	       !memcmp(a->box, b->box, sizeof a->box);
}

void ir_map_use_note(cptx_kernel *k, cptx_site at, cptx_val address, const ir_map_use *needed)
{
	ir_map_use use = *needed;
	size_t i = 0, j = 0;

	while (i < k->nmap_param && k->map_param[i].reg != address.id)
		i++;
	if (address.kind != CPTX_VAL_REG || address.owner != k->owner || address.offset || i == k->nmap_param)
		return;
	use.param = k->map_param[i].param;
	while (j < k->nmap_use && !is_same(&k->map_use[j], &use))
		j++;
	if (j < k->nmap_use)
		return;
	if (arena_push(&k->m->a, &k->map_use, k->nmap_use, &k->cap_map_use, sizeof *k->map_use))
		k->map_use[k->nmap_use++] = use;
	else
		ir_no_memory(k->m, at);
}

const ir_map_use *ir_map_uses(const cptx_kernel *k, size_t *n)
{
	*n = k->nmap_use;
	return k->map_use;
}
