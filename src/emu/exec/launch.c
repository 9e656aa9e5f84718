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

enum { BUFFER = 4096 /* bytes: the most that a kernel can pass to one that it launches */, MOST_CHILDREN = 65536 };
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

	const cptx_kernel *k = at > FUNC_FIRST && at % 16 == 0 && n <= m->nbody ? m->body[n - 1] : NULL;
	if (k && k->def)
		k = k->def;
	return k && !k->is_func && k->has_body ? k : NULL;
}

/* ---- their lists ---- */

static void link_child(emu_machine *m, emu_child *c)
{
	c->prev = NULL;
	c->next = m->children.asked;
	if (c->next)
		c->next->prev = c;
	m->children.asked = c;
}

static void unlink_child(emu_machine *m, emu_child *c)
{
	*(c->prev ? &c->prev->next : &m->children.asked) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->next = c->prev = NULL;
}

static void free_child(emu_machine *m, emu_child *c)
{
	emu_alloc_free(m, c->buffer);
	free(c);
}

static emu_child *take_first(emu_machine *m)
{
	emu_child *c = m->children.first;

	if (c)
		m->children.first = c->next;
	return c;
}

void emu_children_drop(emu_machine *m)
{
	for (emu_child *c; (c = m->children.asked);) {
		unlink_child(m, c);
		free_child(m, c);
	}
	for (emu_child *c; (c = take_first(m));)
		free_child(m, c);
	m->children.made = 0;
}

/* ---- the calls ---- */

static emu_child *new_child(emu_warp *w, const emu_op *op, unsigned lane)
{
	emu_machine *m = w->grid->machine;
	const cptx_kernel *k = kernel_at(w, emu_builtin_argument(w, op, 0, lane));
	emu_child *c = k && m->children.made < MOST_CHILDREN ? NEW(emu_child) : NULL;

	if (!k) {
		emu_find(w, op, (int)lane, CPTX_FIND_CALL, "it launches what is no kernel, or one that is only declared");
		return NULL;
	}
	if (m->children.made == MOST_CHILDREN) {
		emu_find(
			w, op, (int)lane, CPTX_FIND_CALL,
			"kernels have asked for the parameters of %d launches, the most that one launch of the host program may lead to",
			MOST_CHILDREN);
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
	emu_alloc_find(m, c->buffer)->child = c;
	link_child(m, c);
	m->children.made++;
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
		emu_alloc *a = emu_alloc_find(m, buffer);
		emu_child *c = a && a->at == buffer ? a->child : NULL;
		if (!c)
			return emu_find(w, op, (int)l, CPTX_FIND_CALL, "0x%llx is no parameter buffer, or one that was launched already",
			                (unsigned long long)buffer);
		a->child = NULL;
		unlink_child(m, c);
		*(m->children.first ? &m->children.last->next : &m->children.first) = c;
		m->children.last = c;
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

/* What a launch by the host program may leave to the kernel, a kernel has to say. */
static bool shape_is_said(const emu_child *c, cptx_site at, cptx_error *err)
{
	const uint32_t *g = c->shape.grid, *b = c->shape.block;

	return (g[0] && g[1] && g[2] && b[0] && b[1] && b[2]) ||
	       launch_reject(c->kernel->name, CPTX_E_ARG, at, err,
	                     "a kernel launches it as a grid of %u x %u x %u and blocks of %u x %u x %u; none of them may be 0",
	                     g[0], g[1], g[2], b[0], b[1], b[2]);
}

static bool run_child(emu_machine *m, const emu_child *c, cptx_site at, cptx_error *err)
{
	emu_image *im = emu_program_image(c->program, c->kernel, at, err);
	const cptx_kernel_info info = ir_kernel_info(c->kernel);
	launch_limits limits = { .kernel = &info,
		                     .device = m->target->name,
		                     .clusters = m->target->cluster != 0,
		                     .smem_per_cta = m->target->smem_per_cta };
	unsigned char params[BUFFER] = { 0 };
	launch_shape shape;

	if (!im)
		return false;
	const emu_function *f = im->entry;
	limits.static_smem = im->shared.bytes;
	if (!shape_is_said(c, at, err) || !launch_set_shape(&shape, &c->shape, &limits, at, err))
		return false;
	if (f->formals > BUFFER)
		return launch_reject(info.name, CPTX_E_LIMIT, at, err,
		                     "its parameters take %u bytes; a kernel that launches it can pass %d", f->formals, BUFFER);
	const emu_alloc *from = emu_alloc_find(m, c->buffer);
	if (from)
		memcpy(params, from->p, f->formals);
	return emu_run(im, &shape, params, f->formals, at, err);
}

bool emu_children_run(emu_machine *m, cptx_site at, cptx_error *err)
{
	bool ok = true, go_on = true;

	m->in_children = true;
	for (emu_child *c; go_on && (c = take_first(m));) {
		cptx_error own = { .code = CPTX_OK };
		if (!run_child(m, c, at, &own)) {
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
