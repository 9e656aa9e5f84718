/* SPDX-License-Identifier: MIT */
/* Images: all that a kernel can reach, decoded.  An image takes as long as that is large, however many others the module
 * has. */
#include "emu/core/decode.h"
#include "emu/core/machine.h"

#include <stdlib.h>

emu_function *emu_image_reach(emu_image *im, const cptx_kernel *k)
{
	if (k->def)
		k = k->def;
	emu_function **f = &im->program->reached[k->number - 1];
	if (*f && (*f)->image == im)
		return *f;
	emu_function *made = ARENA_NEW(&im->program->a, emu_function);
	if (!made)
		return NULL;
	*made = (emu_function){ .k = k, .image = im };
	*(im->last ? &im->last->next : &im->first) = made;
	im->nfunction++;
	return im->last = *f = made;
}

/* Functions that others call or take the address of; those of indirect calls are among the latter. */
static bool reach_callees(emu_image *im, const emu_function *f)
{
	const cptx_kernel *k = f->k;

	for (const ir_item *it = k->first; it; it = it->next) {
		if (it->kind != ITEM_INSN)
			continue;
		for (unsigned i = 0; i < it->noperand; i++) {
			cptx_val v = ir_operand(k, it, i);
			if (v.kind == CPTX_VAL_FUNC && !emu_image_reach(im, k->m->body[v.id - 1]))
				return false;
		}
	}
	return true;
}

/* Tables of function addresses in memory. */
static bool reach_tables(emu_image *im)
{
	for (size_t i = 0; i < im->program->nin_tables; i++)
		if (!emu_image_reach(im, im->program->in_tables[i]))
			return false;
	return true;
}

/* Each function, and behind the list those that it reaches. */
static bool decode_all(emu_image *im, cptx_site at, cptx_error *err)
{
	for (emu_function *f = im->first; f; f = f->next) {
		if (!f->k->has_body)
			continue;
		if (!reach_callees(im, f))
			return error_set(err, CPTX_E_MEMORY, at, "out of memory");
		if (!emu_decode_function(im, f, at, err))
			return false;
	}
	return true;
}

static int by_number(const void *a, const void *b)
{
	const emu_function *f = *(emu_function *const *)a, *g = *(emu_function *const *)b;
	return (f->k->number > g->k->number) - (f->k->number < g->k->number);
}

static bool index_functions(emu_image *im)
{
	size_t n = 0;

	im->function = ARENA_ARRAY(&im->program->a, emu_function *, im->nfunction);
	if (!im->function)
		return false;
	for (emu_function *f = im->first; f; f = f->next)
		im->function[n++] = f;
	qsort(im->function, n, sizeof(emu_function *), by_number);
	return true;
}

const emu_function *emu_image_function(const emu_image *im, uint64_t number)
{
	size_t low = 0, high = im->nfunction;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (im->function[middle]->k->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	const emu_function *f = low < im->nfunction ? im->function[low] : NULL;
	return f && f->k->number == number && f->decoded ? f : NULL;
}

static bool index_ops(emu_image *im)
{
	for (size_t i = 0; i < im->nfunction; i++)
		im->nop += (uint32_t)im->function[i]->ncode + (im->function[i]->decoded != 0);
	im->ops = ARENA_ARRAY(&im->program->a, const emu_op *, im->nop + 1);
	uint32_t n = 0;
	for (size_t i = 0; im->ops && i < im->nfunction; i++)
		for (size_t j = 0; im->function[i]->decoded && j <= im->function[i]->ncode; j++) {
			im->function[i]->code[j].index = n;
			im->ops[n++] = &im->function[i]->code[j];
		}
	return im->ops;
}

static bool build(emu_image *im, cptx_site at, cptx_error *err)
{
	arena *a = &im->program->a;

	im->entry = emu_image_reach(im, im->kernel);
	if (!im->entry || !reach_tables(im) || !decode_all(im, at, err) || !index_functions(im))
		return error_set(err, CPTX_E_MEMORY, at, "out of memory");
	emu_watch(im);
	uint32_t align = MAX(im->dyn_align, (uint32_t)EMU_GRAIN);
	im->dyn_at = emu_aligned(emu_aligned(im->shared.bytes, align) + im->shared.gaps, align);
	return (emu_variables_end(&im->shared, a, im->dyn_at) && index_ops(im)) ||
	       error_set(err, CPTX_E_MEMORY, at, "out of memory");
}

/* Lists the functions whose addresses stand in memory, each once for each place. */
static bool list_tables(emu_program *p)
{
	const cptx_module *m = p->module;
	size_t n = 0;

	for (size_t i = 0; i < m->nsym; i++)
		n += m->sym[i]->nreloc;
	p->in_tables = ARENA_ARRAY(&p->a, const cptx_kernel *, n + 1);
	for (size_t i = 0; p->in_tables && i < m->nsym; i++)
		for (uint32_t j = 0; j < m->sym[i]->nreloc; j++) {
			const cptx_val *v = &m->sym[i]->reloc[j].to;
			if (v->kind == CPTX_VAL_FUNC)
				p->in_tables[p->nin_tables++] = m->body[v->id - 1];
		}
	return p->in_tables;
}

/* What all images of the program share, when the first is made. */
static bool prepare_images(emu_program *p)
{
	const cptx_module *m = p->module;

	if (p->image)
		return true;
	p->nin_tables = 0;
	p->reached = ARENA_ZEROED(&p->a, emu_function *, m->nbody);
	p->placed = ARENA_ZEROED(&p->a, emu_placed, m->nsym + 1);
	return p->reached && p->placed && list_tables(p) && (p->image = ARENA_ZEROED(&p->a, emu_image *, m->nbody));
}

emu_image *emu_program_image(emu_program *p, const cptx_kernel *k, cptx_site at, cptx_error *err)
{
	const bool ready = prepare_images(p);
	if (ready && p->image[k->number - 1])
		return p->image[k->number - 1];
	emu_image *im = ready ? ARENA_NEW(&p->a, emu_image) : NULL;
	if (!im) {
		error_set(err, CPTX_E_MEMORY, at, "out of memory");
		return NULL;
	}
	*im = (emu_image){ .program = p, .kernel = k };
	if (!build(im, at, err))
		return NULL;
	p->image[k->number - 1] = im;
	return im;
}
