/* SPDX-License-Identifier: MIT */
/* Programs on a GPU: choosing the target, and loading. */
#include "compile/link.h"
#include "compile/text.h"
#include "runtime/cuda.h"

#include <stdlib.h>

/* ---- target and version ---- */

bool target_runs_on(const cptx_target *t, unsigned cc)
{
	switch (t->suffix) {
	case 'a': return t->compute_capability == cc;
	case 'f': return t->compute_capability / 10 == cc / 10 && t->compute_capability <= cc;
	default: return t->compute_capability <= cc;
	}
}

/* A driver may be too old for the device's best target; then the choice is the best that both know. */
const char *cuda_pick_target(unsigned cc, unsigned ptx)
{
	const cptx_target *t = target_ladder(cc, NULL);

	while (t && t->ptx > ptx)
		t = target_ladder(cc, t);
	return t ? t->name : NULL;
}

const char *cuda_choose_target(const cptx_device_info *i, const load_request *q, cptx_error *err)
{
	const cptx_target *t;

	if (!q->opt.target) {
		if (!i->target)
			error_set(err, CPTX_E_TARGET, q->at,
			          "no target of this library suits %s (compute capability %u.%u) and its driver", i->name,
			          i->compute_capability / 10u, i->compute_capability % 10u);
		return i->target;
	}
	t = cptx_target_find(q->opt.target);
	if (t && target_runs_on(t, i->compute_capability))
		return t->name;
	if (t)
		error_set(err, CPTX_E_TARGET, q->at, "%s (compute capability %u.%u) cannot run code for %s; its best target is %s",
		          i->name, i->compute_capability / 10u, i->compute_capability % 10u, t->name,
		          i->target ? i->target : "unknown");
	else
		error_set(err, CPTX_E_TARGET, q->at, "there is no target \"%s\"", q->opt.target);
	return NULL;
}

static bool load_module(cptx_program *p, const load_request *q, cptx_error *err)
{
	const cptx_device_info *i = &p->dev->info;
	const char *target = cuda_choose_target(i, q, err);
	cptx_ptx *ptx = target ? cptx_emit(q->module, target, q->opt.emit, err) : NULL;
	bool ok = false;

	if (!ptx)
		return false;
	p->target = cptx_ptx_target(ptx)->name;
	p->version = cptx_ptx_version(ptx);
	ok = program_learn(p, cptx_ptx_text(ptx), q->module) || no_memory(err, q->at);
	ok = ok && cuda_compile(p, q, cptx_ptx_text(ptx), ptx, err);
	cptx_ptx_destroy(ptx);
	return ok;
}

static bool load_text(cptx_program *p, const load_request *q, const char *text, cptx_error *err)
{
	const char *target;
	size_t n;

	p->version = ptx_header(text, &target, &n);
	if (target) {
		char *name = ARENA_ARRAY(&p->mem, char, n + 1);
		if (!name)
			return no_memory(err, q->at);
		memcpy(name, target, n);
		name[n] = 0;
		p->target = name;
	}
	return (program_learn(p, text, NULL) || no_memory(err, q->at)) && cuda_compile(p, q, text, NULL, err);
}

static bool load_image(cptx_program *p, const load_request *q, cptx_error *err)
{
	size_t size = q->size;

	if (piece_kind(q->image, q->size) != PIECE_PTX)
		return cuda_load_image(p, q, q->image, err);
	if (!text_end((const char *)q->image, &size, q->opt.name, q->at, err))
		return false;
	char *text = NEW_UNSET(char, size + 1); /* the driver wants a NUL behind it */
	if (!text)
		return no_memory(err, q->at);
	memcpy(text, q->image, size);
	text[size] = 0;
	bool ok = load_text(p, q, text, err);
	free(text);
	return ok;
}

/*
 * Whether a stream is captured, during which loading would fail; sets an error.  The driver can be asked safely about
 * streams that the default stream is ordered with; for others loading itself fails, and driver_fail says why.
 */
static bool is_captured(cptx_program *p, cptx_site at, cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	unsigned status;

	if (!cuda_enter(c, &scope, err))
		return true;
	cu_result r = c->drv.cuStreamIsCapturing(NULL, &status);
	cuda_leave(&scope);
	if (r == CU_CAPTURE_IMPLICIT)
		error_set(
			err, CPTX_E_STATE, at,
			"a stream is being captured into a graph; programs are loaded before or behind that, launches may be in it");
	return r == CU_CAPTURE_IMPLICIT;
}

bool cuda_load(cptx_program *p, const load_request *q, cptx_error *err)
{
	if (is_captured(p, q->at, err))
		return false;
	if (q->npieces)
		return cuda_link(p, q, err);
	return q->image ? load_image(p, q, err) : load_module(p, q, err);
}

void cuda_unload(cptx_program *p)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;

	if (cuda_enter(c, &scope, NULL))
		c->drv.cuModuleUnload((cu_module)p->handle);
	cuda_leave(&scope);
}

uint64_t cuda_global(const cptx_program *p, const char *name, size_t *size, cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	cu_ptr at = 0;
	size_t bytes = 0;

	if (!cuda_enter(c, &scope, err))
		return 0;
	cu_result r = c->drv.cuModuleGetGlobal_v2(&at, &bytes, (cu_module)p->handle, name);
	cuda_leave(&scope);
	if (r == CU_NOT_FOUND)
		error_set(err, CPTX_E_ARG, NOWHERE, "the program has no visible variable \"%s\"; a module's needs .export_ = true",
		          name);
	else if (r != CU_OK)
		driver_fail(&c->drv, r, err, NOWHERE, "looking for variable %s", name);
	if (size)
		*size = bytes;
	return r == CU_OK ? at : 0;
}
