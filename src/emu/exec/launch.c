/* SPDX-License-Identifier: MIT */
/*
 * Kernels that launch kernels: what nvcc -rdc=true calls of the device runtime (CUDA's dynamic parallelism, version 2).  A
 * kernel cannot wait for what it launches, so that begins when the whole grid has ended, in the order of the launches; the
 * launch of the host program is over when all of it is.
 */
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/undefined.h"
#include "emu/exec/exec.h"
#include "emu/exec/system.h"
#include "emu/memory/memory.h"

#include <stdlib.h>

enum { BUFFER = 4096 /* bytes: the most that parameters take, as CUDA's */, MOST_CHILDREN = 65536 };
enum { STREAM = 1 /* of which there is one */ };

/* A dim3 that is passed by value. */
static void take_dim3(emu_warp *w, const emu_op *op, unsigned i, unsigned lane, uint32_t to[3])
{
	const emu_arg *list = emu_named(op, "a");

	if (i < list->count && !list->passed[i].slot && list->passed[i].size == 3 * sizeof *to)
		memcpy(to, emu_param_of(w->g->frame, lane) + list->passed[i].offset, 3 * sizeof *to);
}

static const cptx_kernel *kernel_at(const emu_warp *w, uint64_t at)
{
	const cptx_module *m = w->grid->image->program->module;
	uint64_t n = (at - FUNC_FIRST) / 16;

	return at > FUNC_FIRST && at % 16 == 0 && n <= m->nbody && !m->body[n - 1]->is_func ? m->body[n - 1] : NULL;
}

static emu_child *new_child(emu_warp *w, const emu_op *op, unsigned lane)
{
	emu_machine *m = w->grid->machine;
	const cptx_kernel *k = kernel_at(w, emu_builtin_argument(w, op, 0, lane));
	emu_child *c = k ? NEW(emu_child) : NULL;

	if (!k) {
		emu_find(w, op, (int)lane, CPTX_FIND_CALL, "it launches what is no kernel");
		return NULL;
	}
	if (c)
		c->buffer = emu_alloc_new(m, BUFFER, 16, NULL, false);
	if (!c || !c->buffer) {
		free(c);
		emu_find(w, op, (int)lane, CPTX_FIND_MEMORY, "no memory of the host for the parameters of a launch");
		return NULL;
	}
	c->kernel = k;
	c->program = w->grid->image->program;
	take_dim3(w, op, 1, lane, c->shape.grid);
	take_dim3(w, op, 2, lane, c->shape.block);
	c->shape.dyn_smem = (uint32_t)emu_builtin_argument(w, op, 3, lane);
	*(m->child_end ? m->child_end : &m->child) = c;
	m->child_end = &c->next;
	return c;
}

static enum emu_step parameter_buffer(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		const emu_child *c = new_child(w, op, l);
		if (!c)
			return STEP_FAULT;
		emu_builtin_result(w, op, l, c->buffer);
	}
	return STEP_NEXT;
}

static enum emu_step launch(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_machine *m = w->grid->machine;

	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		uint64_t buffer = emu_builtin_argument(w, op, 0, l);
		emu_child *c = m->child;
		while (c && (c->buffer != buffer || c->launched))
			c = c->next;
		if (!c)
			return emu_find(w, op, (int)l, CPTX_FIND_CALL, "0x%llx is no parameter buffer, or one that was launched already",
			                (unsigned long long)buffer);
		c->launched = ++m->nchild;
		emu_builtin_result(w, op, l, 0);
	}
	return STEP_NEXT;
}

static enum emu_step succeed(emu_warp *w, const emu_op *op, uint32_t mask)
{
	EACH_LANE(l, mask)
		emu_builtin_result(w, op, l, 0);
	return STEP_NEXT;
}

/* Streams and events: the handle goes where the first argument points to. */
static enum emu_step give_handle(emu_warp *w, const emu_op *op, uint32_t mask)
{
	const uint64_t handle = STREAM;

	EACH_LANE(l, mask) {
		if (!emu_write(w, op, l, SPACE_GENERIC, emu_builtin_argument(w, op, 0, l), &handle, sizeof handle, 0))
			return STEP_FAULT;
		emu_builtin_result(w, op, l, 0);
	}
	return STEP_NEXT;
}

/* cudaMalloc in a kernel: malloc, whose result goes where the first argument points to. */
static enum emu_step allocate(emu_warp *w, const emu_op *op, uint32_t mask)
{
	enum { OUT_OF_MEMORY = 2 };

	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		uint64_t at = emu_heap_new(w->grid->machine, emu_builtin_argument(w, op, 1, l));
		if (!emu_write(w, op, l, SPACE_GENERIC, emu_builtin_argument(w, op, 0, l), &at, sizeof at, 0))
			return STEP_FAULT;
		emu_builtin_result(w, op, l, at ? 0 : OUT_OF_MEMORY);
	}
	return STEP_NEXT;
}

emu_fn emu_device_runtime(const char *name)
{
	static const char prefix[] = "__cudaCDP2";
	static const struct {
		const char *name;
		emu_fn fn;
	} all[] = { { "GetParameterBufferV2", parameter_buffer },
		        { "LaunchDeviceV2", launch },
		        { "LaunchDeviceV2_ptsz", launch },
		        { "StreamCreateWithFlags", give_handle },
		        { "EventCreateWithFlags", give_handle },
		        { "StreamDestroy", succeed },
		        { "StreamWaitEvent", succeed },
		        { "EventRecord", succeed },
		        { "EventDestroy", succeed },
		        { "GetLastError", succeed },
		        { "PeekAtLastError", succeed },
		        { "Malloc", allocate },
		        { "Free", emu_free_heap } };

	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(name + sizeof prefix - 1, all[i].name))
			return all[i].fn;
	return NULL;
}

/* ---- behind the grid ---- */

static void free_child(emu_machine *m, emu_child *c)
{
	emu_alloc_free(m, c->buffer);
	free(c);
}

void emu_children_drop(emu_machine *m)
{
	while (m->child) {
		emu_child *next = m->child->next;
		free_child(m, m->child);
		m->child = next;
	}
	m->child_end = NULL;
	m->nchild = 0;
}

/* Takes the one that was launched first. */
static emu_child *take_first(emu_machine *m)
{
	emu_child **first = NULL, *c;

	for (emu_child **p = &m->child; *p; p = &(*p)->next)
		if ((*p)->launched && (!first || (*p)->launched < (*first)->launched))
			first = p;
	if (!first)
		return NULL;
	c = *first;
	*first = c->next;
	m->child_end = NULL;
	for (emu_child **p = &m->child; *p; p = &(*p)->next)
		m->child_end = &(*p)->next;
	return c;
}

static bool is_shape(const emu_shape *s)
{
	uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];

	return threads && threads <= 1024 && (uint64_t)s->grid[0] * s->grid[1] * s->grid[2] != 0;
}

static bool run_child(emu_machine *m, const emu_child *c, cptx_site at, cptx_error *err)
{
	emu_image *im = emu_program_image(c->program, c->kernel->name, at, err);
	unsigned char params[BUFFER] = { 0 };

	if (!im)
		return false;
	const emu_function *f = im->function[im->kernel->number - 1];
	const emu_alloc *from = emu_alloc_find(m, c->buffer);
	if (from)
		memcpy(params, from->p, MIN(f->formals, (uint32_t)BUFFER));
	if (!is_shape(&c->shape))
		return error_set(err, CPTX_E_LIMIT, at,
		                 "kernel %s, launched by a kernel: a grid of %u x %u x %u and blocks of %u x %u x %u",
		                 c->kernel->name, c->shape.grid[0], c->shape.grid[1], c->shape.grid[2], c->shape.block[0],
		                 c->shape.block[1], c->shape.block[2]);
	return emu_run(im, &c->shape, params, f->formals, at, err);
}

bool emu_children_run(emu_machine *m, cptx_site at, cptx_error *err)
{
	bool ok = true, go_on = true;
	unsigned n = 0;

	m->in_children = true;
	for (emu_child *c; go_on && (c = take_first(m)); n++) {
		cptx_error own = { .code = CPTX_OK };
		if (n < MOST_CHILDREN
		        ? !run_child(m, c, at, &own)
		        : !error_set(&own, CPTX_E_LIMIT, at, "kernels have launched more than %d kernels", MOST_CHILDREN)) {
			go_on = own.code == CPTX_E_FINDING && !m->broken; /* a race lets the others run */
			if (ok && err)
				*err = own;
			ok = false;
		}
		free_child(m, c);
	}
	m->in_children = false;
	emu_children_drop(m);
	return ok;
}
