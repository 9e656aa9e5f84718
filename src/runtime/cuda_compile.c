/* SPDX-License-Identifier: MIT */
/* Compiling PTX for a GPU: by the driver's compiler, from the cache, or by another compiler where the driver is too old. */
#include "compile/compile.h"
#include "compile/text.h"
#include "runtime/cuda.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the driver's options and its errors ---- */

static void jit_add(jit *j, unsigned option, uintptr_t value)
{
	j->options[j->n] = option;
	j->values[j->n++] = (void *)value; /* the driver reads the low 32 bits of the pointer as the integer */
}

bool jit_begin(jit *j, const load_request *q, cptx_error *err)
{
	*j = (jit){ .info = NEW_ARRAY(char, 2 * JIT_LOG) };
	if (!j->info)
		return no_memory(err, q->at);
	j->error = j->info + JIT_LOG;
	jit_add(j, CU_JIT_INFO, (uintptr_t)j->info);
	jit_add(j, CU_JIT_INFO_SIZE, JIT_LOG);
	jit_add(j, CU_JIT_ERROR, (uintptr_t)j->error);
	jit_add(j, CU_JIT_ERROR_SIZE, JIT_LOG);
	if (q->opt.verbose)
		jit_add(j, CU_JIT_VERBOSE, 1);
	if (q->opt.max_regs)
		jit_add(j, CU_JIT_REGS, q->opt.max_regs);
	if (q->opt.line_info)
		jit_add(j, CU_JIT_LINES, 1);
	if (q->opt.debug)
		jit_add(j, CU_JIT_DEBUG, 1);
	return true;
}

void jit_end(jit *j) { free(j->info); }

/* Sets an error with the driver's messages, each line of PTX that they name, and the user's line behind it. */
static bool jit_refused(const cuda *c, cu_result r, const jit *j, const compile_job *job, cptx_error *err)
{
	log_source src = { .text = job->text, .ptx = job->ptx };
	bool program = r == CU_INVALID_PTX || r == CU_UNSUPPORTED_PTX || r == CU_NO_BINARY || j->error[0];
	char what[256];
	buf b;

	buf_init(&b, NULL);
	j->error[JIT_LOG - 1] = 0;
	cptx_site from = log_explain(&b, j->error, &src);
	driver_describe(&c->drv, r, what, sizeof what);
	error_set(err, program ? CPTX_E_COMPILE : CPTX_E_DRIVER, from.file ? from : job->at,
	          "the driver refuses the program: %s%.*s", what, b.failed ? 0 : (int)b.n, b.n && !b.failed ? b.p : "");
	buf_free(&b);
	return false;
}

/* ---- loading ---- */

static cu_result load_data(cptx_program *p, const void *image, jit *j)
{
	cu_module m = NULL;
	cu_result r = cuda_of(p->dev)->drv.cuModuleLoadDataEx(&m, image, j->n, j->options, j->values);

	j->info[JIT_LOG - 1] = j->error[JIT_LOG - 1] = 0;
	p->handle = r == CU_OK ? m : NULL;
	return r;
}

bool cuda_load_image(cptx_program *p, const load_request *q, const void *image, cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	jit j;

	if (!jit_begin(&j, q, err))
		return false;
	bool ok = cuda_enter(c, &scope, err);
	if (ok) {
		cu_result r = load_data(p, image, &j);
		cuda_leave(&scope);
		if (r == CU_OK && !*p->log)
			p->log = arena_strdup(&p->mem, j.info);
		ok = r == CU_OK || jit_refused(c, r, &j, CPTX_OPT_(compile_job, .at = q->at), err);
	}
	jit_end(&j);
	return ok && (p->log || no_memory(err, q->at));
}

/* ---- the driver's compiler, by way of the cache ---- */

/* Computes the cache key of the driver's result: it depends on the text, the options, the device and the driver.  The
 * driver's linker is the only way to machine code of the driver that can be kept. */
static bool jit_key(const cptx_program *p, const load_request *q, const char *text, cptx_cache_key *key)
{
	const cuda *c = cuda_of(p->dev);
	char path[4096], identity[4200], options[96];
	void *symbol;

	memcpy(&symbol, &c->drv.cuInit, sizeof symbol);
	if (!cptx_cache_can_read(q->opt.cache) || !text_links_as_it_compiles(text) ||
	    !library_where(symbol, path, sizeof path) || !file_identity(path, identity, sizeof identity))
		return false;
	snprintf(options, sizeof options, "cptx jit 1: driver %u device %u regs %u verbose %d lines %d debug %d",
	         (unsigned)p->dev->info.driver, (unsigned)p->dev->info.compute_capability, (unsigned)q->opt.max_regs,
	         q->opt.verbose, q->opt.line_info, q->opt.debug);
	const cptx_cache_part parts[] = { { options, strlen(options) }, { identity, strlen(identity) }, { text, strlen(text) } };
	*key = cptx_cache_key_of(parts, ARRAY_LEN(parts));
	return true;
}

static bool jit_cached(cptx_program *p, const load_request *q, const cptx_cache_key *key)
{
	cptx_cache_entry e;

	if (!cptx_cache_get(q->opt.cache, key, &e))
		return false;
	p->log = arena_strdup(&p->mem, e.log);
	bool ok = p->log && elf_is_whole(e.data, e.size) && cuda_load_image(p, q, e.data, NULL);
	free(e.data);
	if (!ok)
		p->log = "";
	return ok;
}

/* Compiles to a cubin that can be stored, and loads it.  False: nothing happened, and the caller loads the text plainly. */
static bool jit_kept(cptx_program *p, const load_request *q, const char *text, const cptx_cache_key *key)
{
	const driver *d = &cuda_of(p->dev)->drv;
	const char *name = q->opt.name ? q->opt.name : "ptx";
	char about[300];
	cu_link link = NULL;
	void *cubin = NULL;
	size_t size = 0;
	jit j;

	if (!jit_begin(&j, q, NULL))
		return false;
	bool ok = d->cuLinkCreate_v2(j.n, j.options, j.values, &link) == CU_OK &&
	          d->cuLinkAddData_v2(link, CU_INPUT_PTX, (void *)text, strlen(text) + 1, name, 0, NULL, NULL) == CU_OK &&
	          d->cuLinkComplete(link, &cubin, &size) == CU_OK && elf_is_whole(cubin, size);
	j.info[JIT_LOG - 1] = 0;
	if (ok) {
		p->log = arena_strdup(&p->mem, j.info);
		snprintf(about, sizeof about, "%s for %u.%u by the driver (CUDA %u.%u)", name, p->dev->info.compute_capability / 10u,
		         p->dev->info.compute_capability % 10u, (unsigned)p->dev->info.driver / 1000,
		         (unsigned)p->dev->info.driver % 1000 / 10);
		ok = p->log && cuda_load_image(p, q, cubin, NULL);
		if (ok)
			cptx_cache_put(q->opt.cache, key,
			               CPTX_OPT_(cptx_cache_entry, .data = cubin, .size = size, .log = j.info, .about = about));
		else
			p->log = "";
	}
	if (link)
		d->cuLinkDestroy(link); /* the cubin lies in memory of the link */
	jit_end(&j);
	return ok;
}

static cu_result jit_load(cptx_program *p, const load_request *q, compile_job *job, jit *j, cptx_error *err)
{
	cptx_cache_key key;
	bool keyed = jit_key(p, q, job->text, &key);

	(void)err;
	if (keyed && (jit_cached(p, q, &key) || jit_kept(p, q, job->text, &key)))
		return CU_OK;
	cu_result r = load_data(p, job->text, j);
	if (r == CU_OK)
		p->log = arena_strdup(&p->mem, j->info);
	return r;
}

/* ---- another compiler ---- */

/* The target of machine code, which must be the device itself: PTX for sm_80 runs on an sm_90, a cubin does not. */
static void machine_target(const cptx_program *p, char *target, size_t size)
{
	size_t n = p->target ? strlen(p->target) : 0;
	char suffix = n ? p->target[n - 1] : 0;

	snprintf(target, size, "sm_%u%.1s", (unsigned)p->dev->info.compute_capability,
	         suffix == 'a'   ? "a"
	         : suffix == 'f' ? "f"
	                         : "");
}

/* Sets the other compiler's error, with the reason in front why it was asked. */
static bool failed_elsewhere(const cptx_error *own, const char *why, cptx_error *err)
{
	char place[CPTX_ERROR_FILE + 16];
	cptx_site at = own->file[0] ? (cptx_site){ own->file, own->line } : NOWHERE;
	int n = at.file ? snprintf(place, sizeof place, "%s:%u: ", at.file, (unsigned)at.line) : 0;

	/* the text begins with the place */
	return error_set(err, own->code, at, "%s%s%s", why, *why ? "; " : "", own->text + n);
}

static bool elsewhere(cptx_program *p, const load_request *q, compile_job *job, enum cptx_compiler by, const char *why,
                      cptx_error *err)
{
	char target[16];
	cptx_compile_opt opt = { .size = CPTX_OPT_SIZE(cptx_compile_opt),
		                     .compiler = by,
		                     .target = target,
		                     .name = q->opt.name,
		                     .max_regs = q->opt.max_regs,
		                     .line_info = q->opt.line_info,
		                     .debug = q->opt.debug,
		                     .verbose = q->opt.verbose,
		                     .cache = q->opt.cache };
	cptx_error own = { .code = CPTX_OK };
	buf note;

	machine_target(p, target, sizeof target);
	cptx_cubin *c = job_compile(job, &opt, &own);
	if (!c)
		return failed_elsewhere(&own, why, err);
	buf_init(&note, NULL);
	if (*why)
		buf_printf(&note, "%s; %s by %s", why, job->npieces ? "linked" : "compiled",
		           compilers[cptx_cubin_compiler(c)].spelled);
	if (*cptx_cubin_note(c))
		buf_printf(&note, "%s%s", note.n ? "; " : "", cptx_cubin_note(c));
	buf_put(&note, "", 1);
	p->note = note.failed ? NULL : arena_strdup(&p->mem, note.p);
	p->log = arena_strdup(&p->mem, cptx_cubin_log(c));
	buf_free(&note);
	bool ok = (p->note && p->log) || no_memory(err, q->at);
	ok = ok && cuda_load_image(p, q, cptx_cubin_data(c), err);
	cptx_cubin_destroy(c);
	return ok;
}

/* ---- who does it ---- */

static void too_new(const cptx_program *p, char *why, size_t size)
{
	const cptx_device_info *i = &p->dev->info;

	snprintf(why, size, "the program is PTX %u.%u, but the driver (CUDA %u.%u) takes no PTX newer than %u.%u",
	         p->version / 10, p->version % 10, (unsigned)i->driver / 1000, (unsigned)i->driver % 1000 / 10, i->ptx / 10u,
	         i->ptx % 10u);
}

/* Whether the driver is too old: it says so, or says only that the PTX does not suit. */
static bool unknown_to_driver(cu_result r, const jit *j)
{
	return r == CU_UNSUPPORTED_PTX || r == CU_NO_BINARY ||
	       (r == CU_INVALID_PTX && (!j->error[0] || log_says_too_old(j->error)));
}

bool cuda_make(cptx_program *p, const load_request *q, compile_job *job, enum cptx_compiler other, driver_job_fn *way,
               cptx_error *err)
{
	enum cptx_compiler by = q->opt.compiler;
	cuda *c = cuda_of(p->dev);
	cuda_scope scope;
	char why[400] = "", what[256];
	jit j;

	if (by != CPTX_COMPILER_AUTO && by != CPTX_COMPILER_DRIVER)
		return elsewhere(p, q, job, by, "", err);
	if (p->version > p->dev->info.ptx) {
		too_new(p, why, sizeof why);
		if (by == CPTX_COMPILER_DRIVER)
			return error_set(err, CPTX_E_NO_COMPILER, q->at, "%s; a newer driver is needed, or another compiler", why);
		return elsewhere(p, q, job, other, why, err);
	}
	if (!jit_begin(&j, q, err))
		return false;
	bool ok = cuda_enter(c, &scope, err);
	if (ok) {
		cu_result r = way(p, q, job, &j, err);
		cuda_leave(&scope);
		ok = r == CU_OK && p->handle;
		driver_describe(&c->drv, r, what, sizeof what);
		if (r != CU_OK && by == CPTX_COMPILER_AUTO && unknown_to_driver(r, &j)) {
			snprintf(why, sizeof why, "the driver (CUDA %u.%u) does not know this PTX: %s",
			         (unsigned)p->dev->info.driver / 1000, (unsigned)p->dev->info.driver % 1000 / 10, what);
			ok = elsewhere(p, q, job, other, why, err);
		} else if (r != CU_OK) {
			jit_refused(c, r, &j, job, err);
		}
	}
	jit_end(&j);
	return ok && (p->log || no_memory(err, q->at));
}

bool cuda_compile(cptx_program *p, const load_request *q, const char *text, const cptx_ptx *ptx, cptx_error *err)
{
	compile_job job = { .at = q->at, .text = text, .size = strlen(text), .ptx = ptx };
	return cuda_make(p, q, &job, CPTX_COMPILER_AUTO, jit_load, err);
}
