/* Programs on a GPU: the target, the PTX version, and the driver's compiler with its log. */
#include "runtime/cuda.h"

#include <stdlib.h>

enum { LOG_SIZE = 16384 };

/* ---- target and version ---- */

bool target_runs_on(const cptx_target *t, unsigned cc)
{
	switch (t->suffix) {
	case 'a': return t->compute_capability == cc;
	case 'f': return t->compute_capability / 10 == cc / 10 && t->compute_capability <= cc;
	default: return t->compute_capability <= cc;
	}
}

/* The best target of a device is no use to a driver that does not know it yet; then the best that both take. */
const char *cuda_pick_target(unsigned cc, unsigned ptx)
{
	const cptx_target *best = cptx_target_for_device(cc), *t;

	if (best && best->ptx <= ptx)
		return best->name;
	best = NULL;
	for (size_t i = 0; (t = cptx_target_at(i)); i++)
		if (target_runs_on(t, cc) && t->ptx <= ptx &&
		    (!best || t->compute_capability > best->compute_capability ||
		     (t->compute_capability == best->compute_capability && t->suffix == 'a')))
			best = t;
	return best ? best->name : NULL;
}

static const char *choose_target(const cptx_device_info *i, const load_request *q, cptx_error *err)
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

static bool version_known(const cptx_device_info *i, unsigned version, cptx_site at, cptx_error *err)
{
	if (version <= i->ptx)
		return true;
	return error_set(
		err, CPTX_E_NO_DRIVER, at,
		"the program is PTX %u.%u, but the driver (CUDA %u.%u) takes no PTX newer than %u.%u; a newer driver is needed",
		version / 10, version % 10, (unsigned)i->driver / 1000, (unsigned)i->driver % 1000 / 10, i->ptx / 10u, i->ptx % 10u);
}

/* ---- compiling ---- */

/* The options of cuModuleLoadDataEx: a list of numbers and a list of values, each value a pointer or an integer in one. */
typedef struct jit {
	unsigned n, options[8];
	void *values[8];
} jit;

static void jit_add(jit *j, unsigned option, uintptr_t value)
{
	j->options[j->n] = option;
	j->values[j->n++] = (void *)value; /* the driver reads the low 32 bits of it as the integer */
}

static void jit_fill(jit *j, const cptx_load_opt *opt, char *info, char *error)
{
	jit_add(j, CU_JIT_INFO, (uintptr_t)info);
	jit_add(j, CU_JIT_INFO_SIZE, LOG_SIZE);
	jit_add(j, CU_JIT_ERROR, (uintptr_t)error);
	jit_add(j, CU_JIT_ERROR_SIZE, LOG_SIZE);
	if (opt->verbose)
		jit_add(j, CU_JIT_VERBOSE, 1);
	if (opt->max_regs)
		jit_add(j, CU_JIT_REGS, opt->max_regs);
	if (opt->line_info)
		jit_add(j, CU_JIT_LINES, 1);
	if (opt->debug)
		jit_add(j, CU_JIT_DEBUG, 1);
}

/* The error of a refused image: the driver's words, each line of PTX they name, and the user's line behind it. */
static bool refused(const cuda *c, cu_result r, const char *log, const load_request *q, const char *text,
                    const cptx_ptx *ptx, cptx_error *err)
{
	char what[256];
	buf b;

	buf_init(&b, NULL);
	cptx_site from = log_explain(&b, log, text, ptx);
	driver_describe(&c->drv, r, what, sizeof what);
	error_set(err, CPTX_E_DRIVER, from.file ? from : q->at, "the driver refuses the program: %s%.*s", what,
	          b.failed ? 0 : (int)b.n, b.n ? b.p : "");
	buf_free(&b);
	return false;
}

static bool compile(cptx_program *p, const load_request *q, const void *image, const char *text, const cptx_ptx *ptx,
                    cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	char *info = calloc(2, LOG_SIZE), *error = info + LOG_SIZE;
	jit j = { 0 };
	cu_module m = NULL;
	cuda_scope scope;

	if (!info)
		return no_memory(err, q->at);
	bool ok = cuda_enter(c, &scope, err);
	if (ok) {
		jit_fill(&j, &q->opt, info, error);
		cu_result r = c->drv.cuModuleLoadDataEx(&m, image, j.n, j.options, j.values);
		cuda_leave(&scope);
		info[LOG_SIZE - 1] = error[LOG_SIZE - 1] = 0;
		p->handle = r == CU_OK ? m : NULL;
		p->log = arena_strdup(&p->mem, info);
		ok = r == CU_OK || refused(c, r, error, q, text, ptx, err);
	}
	free(info);
	return ok && (p->log || no_memory(err, q->at));
}

static bool load_module(cptx_program *p, const load_request *q, cptx_error *err)
{
	const cptx_device_info *i = &p->dev->info;
	const char *target = choose_target(i, q, err);
	cptx_ptx *ptx = target ? cptx_emit(q->module, target, &q->opt.emit, err) : NULL;
	bool ok = false;

	if (!ptx)
		return false;
	p->target = cptx_ptx_target(ptx)->name;
	p->version = cptx_ptx_version(ptx);
	if (version_known(i, p->version, q->at, err)) {
		ok = program_learn(p, cptx_ptx_text(ptx), q->module) || no_memory(err, q->at);
		ok = ok && compile(p, q, cptx_ptx_text(ptx), cptx_ptx_text(ptx), ptx, err);
	}
	cptx_ptx_destroy(ptx);
	return ok;
}

/* ELF (a cubin) and the two headers of fat binaries. */
static bool is_binary(const unsigned char *s, size_t n)
{
	static const unsigned char magic[][4] = { { 0x7f, 'E', 'L', 'F' },
		                                      { 0x50, 0xed, 0x55, 0xba },
		                                      { 0xb1, 0x43, 0x62, 0x46 } };

	for (size_t i = 0; n >= 4 && i < ARRAY_LEN(magic); i++)
		if (!memcmp(s, magic[i], 4))
			return true;
	return false;
}

static bool load_text(cptx_program *p, const load_request *q, const char *text, cptx_error *err)
{
	const char *target;
	size_t n;

	p->version = ptx_header(text, &target, &n);
	if (target) {
		char *name = arena_alloc(&p->mem, n + 1);
		if (!name)
			return no_memory(err, q->at);
		memcpy(name, target, n);
		name[n] = 0;
		p->target = name;
	}
	return version_known(&p->dev->info, p->version, q->at, err) && (program_learn(p, text, NULL) || no_memory(err, q->at)) &&
	       compile(p, q, text, text, NULL, err);
}

static bool load_image(cptx_program *p, const load_request *q, cptx_error *err)
{
	if (is_binary(q->image, q->size))
		return compile(p, q, q->image, NULL, NULL, err);
	char *text = malloc(q->size + 1); /* the driver wants a NUL behind it */
	if (!text)
		return no_memory(err, q->at);
	memcpy(text, q->image, q->size);
	text[q->size] = 0;
	bool ok = load_text(p, q, text, err);
	free(text);
	return ok;
}

bool cuda_load(cptx_program *p, const load_request *q, cptx_error *err)
{
	return q->image ? load_image(p, q, err) : load_module(p, q, err);
}

void cuda_unload(cptx_program *p)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;

	if (cuda_enter(c, &scope, NULL))
		c->drv.cuModuleUnload(p->handle);
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
	cu_result r = c->drv.cuModuleGetGlobal_v2(&at, &bytes, p->handle, name);
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
