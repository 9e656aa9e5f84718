/* SPDX-License-Identifier: MIT */
/* Launches: arguments and shapes are checked once, here, against what is known about the kernel and the device. */
#include "base/options.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { VALUE_ALIGN = 16 };

/* ---- arguments ---- */

typedef enum param_class { POINTER, INTEGER, FLOAT, BITS, OBJECT } param_class;

static param_class class_of(const cptx_param_info *p)
{
	switch (p->type) {
	case CPTX_PTR: return POINTER;
	case CPTX_U8:
	case CPTX_U16:
	case CPTX_U32:
	case CPTX_U64:
	case CPTX_S8:
	case CPTX_S16:
	case CPTX_S32:
	case CPTX_S64: return INTEGER;
	case CPTX_F32:
	case CPTX_F64: return FLOAT;
	default: /* f16 and similar types are passed as bits too: C11 has no type for them */
		return p->size * 8 > cptx_type_bits(p->type) ? OBJECT : BITS;
	}
}

static bool kind_fits(param_class c, const cptx_arg *a)
{
	switch (c) {
	case POINTER:
	case INTEGER: return a->kind == CPTX_ARG_INT;
	case FLOAT: return a->kind == CPTX_ARG_FLOAT;
	case OBJECT: return a->kind == CPTX_ARG_OBJECT;
	default: return a->kind != CPTX_ARG_NONE;
	}
}

static void describe_param(const cptx_param_info *p, char *text, size_t size)
{
	param_class c = class_of(p);
	const char *type = cptx_type_name(p->type);

	if (c == POINTER)
		snprintf(text, size, "\"%s\" is a pointer: give a device address, a uint64_t", p->name);
	else if (c == OBJECT)
		snprintf(text, size, "\"%s\" is %u bytes: give CPTX_ARG_BYTES(address, %u)", p->name, (unsigned)p->size,
		         (unsigned)p->size);
	else if (c == FLOAT)
		snprintf(text, size, "\"%s\" is .%s: give a %s", p->name, type, p->size == 4 ? "float" : "double");
	else if (c == INTEGER)
		snprintf(text, size, "\"%s\" is .%s: give %s %sint%u_t", p->name, type, *type == 'u' ? "a" : "an",
		         *type == 'u' ? "u" : "", (unsigned)p->size * 8);
	else
		snprintf(text, size, "\"%s\" is .%s: give its bits as a uint%u_t, or CPTX_ARG_BYTES(address, %u)", p->name, type,
		         (unsigned)p->size * 8, (unsigned)p->size);
}

static void describe_arg(const cptx_arg *a, char *text, size_t size)
{
	switch (a->kind) {
	case CPTX_ARG_INT: snprintf(text, size, "an integer of %u byte%s", (unsigned)a->size, a->size == 1 ? "" : "s"); break;
	case CPTX_ARG_FLOAT: snprintf(text, size, "%s", a->size == 4 ? "a float" : "a double"); break;
	case CPTX_ARG_OBJECT: snprintf(text, size, "an object of %u bytes", (unsigned)a->size); break;
	default: snprintf(text, size, "nothing");
	}
}

static bool arg_fits(const kernel *k, size_t i, const cptx_arg *a, cptx_site at, cptx_error *err)
{
	char want[320], got[64];
	const cptx_param_info *p = k->info.params ? &k->info.params[i] : NULL;

	describe_arg(a, got, sizeof got);
	if (a->kind == CPTX_ARG_OBJECT && !a->u.object)
		return launch_reject(k->info.name, CPTX_E_ARG, at, err, "argument %zu is an object at address NULL", i);
	if (p) {
		if (a->size == p->size && kind_fits(class_of(p), a))
			return true;
		describe_param(p, want, sizeof want);
		return launch_reject(k->info.name, CPTX_E_ARG, at, err, "argument %zu is %s, but parameter %s", i, got, want);
	}
	if (k->sized && a->size != k->param_size[i])
		return launch_reject(k->info.name, CPTX_E_ARG, at, err, "argument %zu is %s, but the parameter has %u bytes", i, got,
		                     (unsigned)k->param_size[i]);
	return (a->kind != CPTX_ARG_NONE && a->size) ||
	       launch_reject(k->info.name, CPTX_E_ARG, at, err, "argument %zu is %s", i, got);
}

static bool count_fits(const kernel *k, size_t n, cptx_site at, cptx_error *err)
{
	buf b;

	if ((!k->info.params && !k->sized) || n == k->info.nparams)
		return true;
	buf_init(&b, NULL);
	for (size_t i = 0; k->info.params && i < k->info.nparams; i++)
		buf_printf(&b, "%s.%s %s", i ? ", " : " (",
		           k->info.params[i].type == CPTX_PTR ? "ptr" : cptx_type_name(k->info.params[i].type),
		           k->info.params[i].name);
	if (b.n)
		buf_str(&b, ")");
	launch_reject(k->info.name, CPTX_E_ARG, at, err, "it takes %zu argument%s%.*s, but %zu %s given", k->info.nparams,
	              k->info.nparams == 1 ? "" : "s", b.failed ? 0 : (int)b.n, b.n ? b.p : "", n, n == 1 ? "was" : "were");
	buf_free(&b);
	return false;
}

static void store(cptx_launch *l, size_t i, const cptx_arg *a)
{
	memcpy(l->params[i], a->kind == CPTX_ARG_OBJECT ? a->u.object : (const void *)&a->u, a->size);
}

static bool set_overlap(const cptx_launch *l, cptx_site at, cptx_error *err)
{
	const cptx_device_info *dev = &l->program->dev->info;

	/* overlap needs cuLaunchKernelEx and compute capability 9.0, and so do clusters */
	return !l->overlap || dev->clusters ||
	       launch_reject(l->k.info.name, CPTX_E_TARGET, at, err,
	                     "%s and its driver have no programmatic dependent launch; leave .overlap away", dev->name);
}

/* Whether a cooperative launch can run: all its CTAs must be resident at once. */
static bool cooperates(const cptx_launch *l, cptx_site at, cptx_error *err)
{
	const cptx_device *dev = l->program->dev;
	const uint32_t *c = l->shape.cluster;
	cptx_resources r;

	if (!l->shape.cooperative)
		return true;
	if (!dev->ops->resources(l->program, &l->k, (uint32_t)launch_volume(l->shape.block), l->shape.dyn_smem, &r, err))
		return false;
	uint64_t most = (uint64_t)r.ctas_per_sm * dev->info.sms, ctas = launch_volume(l->shape.grid);
	if (c[0] && l->k.info.grid_of_clusters)
		ctas *= launch_volume(c);
	return ctas <= most ||
	       launch_reject(l->k.info.name, CPTX_E_LIMIT, at, err,
	                     "a cooperative launch of %llu CTAs; %s holds %llu of them at once (%u multiprocessors, %u "
	                     "CTAs each): make the grid smaller, and loop in the kernel",
	                     (unsigned long long)ctas, dev->info.name, (unsigned long long)most, dev->info.sms, r.ctas_per_sm);
}

/* ---- the calls ---- */

static size_t aligned(size_t n) { return (n + VALUE_ALIGN - 1) & ~(size_t)(VALUE_ALIGN - 1); }

/* Allocates one block of memory: the launch, pointers to the values, their sizes, the values, the name. */
static cptx_launch *launch_alloc(const cptx_program *p, const kernel *k, const cptx_launch_opt *opt)
{
	size_t n = opt->nargs, name = strlen(k->info.name) + 1, head = aligned(sizeof(cptx_launch));
	size_t values = aligned(head + n * (sizeof(void *) + sizeof(uint32_t))), size = values + name;

	for (size_t i = 0; i < n; i++)
		size += aligned(opt->args[i].size);
	char *mem = NEW_ARRAY(char, size);
	if (!mem)
		return NULL;
	cptx_launch *l = (cptx_launch *)(void *)mem;
	*l = (cptx_launch){ .run = p->dev->ops->launch_run, .program = p, .k = *k, .nargs = n };
	l->params = (void **)(void *)(mem + head);
	l->sizes = (uint32_t *)(void *)(mem + head + n * sizeof(void *));
	for (size_t i = 0; i < n; i++) {
		l->params[i] = mem + values;
		l->sizes[i] = opt->args[i].size;
		values += aligned(opt->args[i].size);
		store(l, i, &opt->args[i]);
	}
	l->k.info.name = (const char *)memcpy(mem + values, k->info.name, name);
	return l;
}

static bool args_fit(const kernel *k, const cptx_launch_opt *opt, cptx_site at, cptx_error *err)
{
	if (opt->nargs && !opt->args)
		return launch_reject(k->info.name, CPTX_E_ARG, at, err, ".nargs is %zu, but .args is NULL", opt->nargs);
	if (!count_fits(k, opt->nargs, at, err))
		return false;
	for (size_t i = 0; i < opt->nargs; i++)
		if (!arg_fits(k, i, &opt->args[i], at, err))
			return false;
	return true;
}

static bool set_shape(cptx_launch *l, const cptx_launch_opt *opt, cptx_site at, cptx_error *err)
{
	const cptx_device_info *dev = &l->program->dev->info;
	const launch_limits limits = { .kernel = &l->k.info,
		                           .device = dev->name,
		                           .clusters = dev->clusters,
		                           .smem_per_cta = dev->smem_per_cta,
		                           .static_smem = l->k.static_smem,
		                           .max_threads = l->k.max_threads,
		                           .regs = l->k.regs };
	launch_shape want = { .dyn_smem = opt->dyn_smem, .cooperative = opt->cooperative };

	memcpy(want.grid, opt->grid, sizeof want.grid);
	memcpy(want.block, opt->block, sizeof want.block);
	memcpy(want.cluster, opt->cluster, sizeof want.cluster);
	return launch_set_shape(&l->shape, &want, &limits, at, err);
}

cptx_launch *cptx_launch_new_(cptx_site at, const cptx_program *p, const char *name, const cptx_launch_opt *opt,
                              cptx_error *err)
{
	kernel k;
	cptx_launch *l = NULL;
	cptx_launch_opt o;

	if (!may_go(err))
		return NULL;
	if (!p || !opt) {
		error_set(err, CPTX_E_ARG, at, "the %s NULL", !p ? "program is" : "options are");
		return NULL;
	}
	if (!OPTIONS_READ(cptx_launch_opt, &o, opt, at, err))
		return NULL;
	opt = &o;
	if (!program_find(p, name, &k, at, err))
		return NULL;
	if (p->dev->ops->find(p, &k, at, err) && args_fit(&k, opt, at, err) && !(l = launch_alloc(p, &k, opt)))
		no_memory(err, at);
	if (!l) {
		kernel_release(&k);
		return NULL;
	}
	atomic_fetch_add(&((cptx_program *)p)->refs, 1u);
	l->at = at;
	l->overlap = opt->overlap;
	if (set_overlap(l, at, err) && set_shape(l, opt, at, err) && p->dev->ops->launch_prepare(l, at, err) &&
	    cooperates(l, at, err))
		return l;
	cptx_launch_destroy(l);
	return NULL;
}

void cptx_launch_destroy(cptx_launch *l)
{
	if (!l)
		return;
	kernel_release(&l->k);
	free(l->extra);
	cptx_program_destroy((cptx_program *)l->program);
	free(l);
}

static bool given(const char *function, const cptx_launch *l, cptx_site at, cptx_error *err)
{
	if (!may_go(err))
		return false;
	return l || error_null(function, "launch", at, err);
}

bool cptx_launch_set_(cptx_site at, cptx_launch *l, size_t i, cptx_arg arg, cptx_error *err)
{
	if (!given(__func__, l, at, err))
		return false;
	if (i >= l->nargs)
		return launch_reject(l->k.info.name, CPTX_E_ARG, at, err, "there is no argument %zu; it has %zu, counted from 0", i,
		                     l->nargs);
	if (!arg_fits(&l->k, i, &arg, at, err))
		return false;
	if (arg.size != l->sizes[i])
		return launch_reject(l->k.info.name, CPTX_E_ARG, at, err, "argument %zu had %u bytes and cannot have %u now", i,
		                     (unsigned)l->sizes[i], (unsigned)arg.size);
	store(l, i, &arg);
	return true;
}

bool cptx_launch_grid_(cptx_site at, cptx_launch *l, uint32_t x, uint32_t y, uint32_t z, cptx_error *err)
{
	const uint32_t grid[3] = { x, y, z };
	uint32_t before[3];

	if (!given(__func__, l, at, err))
		return false;
	memcpy(before, l->shape.grid, sizeof before);
	if (launch_set_grid(&l->shape, grid, &l->k.info, at, err) && cooperates(l, at, err))
		return true;
	memcpy(l->shape.grid, before, sizeof before);
	return false;
}

bool cptx_launch_run(cptx_launch *l, cptx_stream *s, cptx_error *err)
{
	if (!given(__func__, l, NOWHERE, err))
		return false;
	if (s && s->dev != l->program->dev)
		return launch_reject(l->k.info.name, CPTX_E_ARG, l->at, err,
		                     "the stream belongs to another device than the program");
	return l->run(l, s ? s->handle : NULL, err);
}

bool cptx_launch_once_(cptx_site at, const cptx_program *p, const char *name, const cptx_launch_opt *opt, cptx_stream *s,
                       cptx_error *err)
{
	cptx_launch *l = cptx_launch_new_(at, p, name, opt, err);
	bool ok = l && cptx_launch_run(l, s, err);

	cptx_launch_destroy(l);
	return ok;
}

bool cptx_program_resources_(const cptx_program *p, const char *name, uint32_t threads, uint32_t dyn_smem,
                             cptx_resources *out, size_t size, cptx_error *err)
{
	cptx_resources x = { .regs = 0 };
	kernel k;

	if (!may_go(err))
		return false;
	if (!IS_GIVEN(p, "program", NOWHERE, err) || !IS_GIVEN(out, "result", NOWHERE, err))
		return false;
	if (!program_find(p, name, &k, NOWHERE, err))
		return false;
	bool ok = p->dev->ops->find(p, &k, NOWHERE, err) && p->dev->ops->resources(p, &k, threads, dyn_smem, &x, err);
	if (ok)
		RESULT_FILL(out, size, &x);
	kernel_release(&k);
	return ok;
}

bool cptx_launch_resources_(const cptx_launch *l, cptx_resources *out, size_t size, cptx_error *err)
{
	cptx_resources x = { .regs = 0 };

	if (!given(__func__, l, NOWHERE, err))
		return false;
	if (!IS_GIVEN(out, "result", l->at, err))
		return false;
	const cptx_program *p = l->program;
	if (!p->dev->ops->resources(p, &l->k, (uint32_t)launch_volume(l->shape.block), l->shape.dyn_smem, &x, err))
		return false;
	RESULT_FILL(out, size, &x);
	return true;
}
