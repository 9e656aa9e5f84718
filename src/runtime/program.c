/* SPDX-License-Identifier: MIT */
/* Programs: the kernels that they have, as launches need to know them. */
#include "base/map_use.h"
#include "base/options.h"
#include "ir/ir.h"
#include "runtime/runtime.h"

#include "compile/text.h"

#include <stdlib.h>

/* ---- kernels ---- */

static bool learn_map_uses(cptx_program *p, kernel *k, const cptx_kernel *from)
{
	const ir_map_use *use = ir_map_uses(from, &k->nmap_use);
	ir_map_use *copy = k->nmap_use ? ARENA_ARRAY(&p->mem, ir_map_use, k->nmap_use) : NULL;

	if (copy)
		memcpy(copy, use, k->nmap_use * sizeof *copy);
	k->map_use = copy;
	return copy || !k->nmap_use;
}

static bool learn_params(cptx_program *p, cptx_kernel_info *k)
{
	cptx_param_info *params = ARENA_ARRAY(&p->mem, cptx_param_info, k->nparams + 1);

	if (!params)
		return false;
	for (size_t i = 0; i < k->nparams; i++) {
		params[i] = k->params[i];
		params[i].name = arena_strdup(&p->mem, k->params[i].name ? k->params[i].name : "");
	}
	k->params = params;
	return !p->mem.failed;
}

/* The name lives as long as the program. */
static bool add_kernel(cptx_program *p, const char *name, const cptx_kernel *from)
{
	kernel k = { .fn = NULL };

	if (!name || !arena_push(&p->mem, &p->kernels, p->nkernels, &p->kernels_cap, sizeof *p->kernels))
		return false;
	if (from) {
		k.info = ir_kernel_info(from);
		if (!learn_params(p, &k.info) || !learn_map_uses(p, &k, from))
			return false;
	}
	k.info.name = name;
	p->kernels[p->nkernels++] = k;
	return table_add(&p->names, &p->mem.hook, table_hash(TABLE_HASH, name), (uint32_t)p->nkernels - 1);
}

bool program_add_kernel(cptx_program *p, const cptx_kernel *k)
{
	return k && add_kernel(p, arena_strdup(&p->mem, k->name), k);
}

/* From the module itself: to look through the text that it became takes as long as compiling it takes where a cache has
 * that. */
static bool learn_module(cptx_program *p, const cptx_module *m)
{
	const cptx_kernel *k;

	for (size_t i = 0; (k = cptx_module_body_at(m, i)); i++)
		if (!k->is_func && k == cptx_module_body(m, k->name) && !program_add_kernel(p, k))
			return false;
	return true;
}

bool program_learn(cptx_program *p, const char *text, const cptx_module *m)
{
	const char *end;

	if (m)
		return learn_module(p, m);
	for (const char *s = text_skip_blank(text); *s; s = text_skip_blank(end)) {
		end = text_skip_token(s);
		if (!text_token_is(s, end, ".entry"))
			continue;
		const char *name = text_skip_blank(end);
		end = text_skip_token(name);
		char *copy = ARENA_ARRAY(&p->mem, char, (size_t)(end - name) + 1);
		if (!copy)
			return false;
		memcpy(copy, name, (size_t)(end - name));
		copy[end - name] = 0;
		if (!add_kernel(p, copy, NULL))
			return false;
	}
	return true;
}

static void list_kernels(const cptx_program *p, buf *b)
{
	enum { MOST = 20 };

	if (!p->nkernels)
		return;
	buf_str(b, p->nkernels == 1 ? "; it has the kernel " : "; it has the kernels ");
	for (size_t i = 0; i < p->nkernels && i < MOST; i++)
		buf_printf(b, "%s\"%s\"", i ? ", " : "", p->kernels[i].info.name);
	if (p->nkernels > MOST)
		buf_printf(b, " and %zu more", p->nkernels - MOST);
}

static bool not_found(const cptx_program *p, const char *name, cptx_site at, cptx_error *err)
{
	buf b;

	buf_init(&b, NULL);
	if (name)
		buf_printf(&b, "the program has no kernel \"%s\"", name);
	else
		buf_str(&b, "the name of the kernel is NULL, which stands for the only one of the program");
	list_kernels(p, &b);
	error_set(err, CPTX_E_ARG, at, "%.*s", b.failed ? 0 : (int)b.n, b.n ? b.p : "");
	buf_free(&b);
	return false;
}

bool program_find(const cptx_program *p, const char *name, kernel *k, cptx_site at, cptx_error *err)
{
	*k = (kernel){ .info = { .name = name } };
	if (!name && p->nkernels == 1) {
		*k = p->kernels[0];
		return true;
	}
	uint32_t hash = table_hash(TABLE_HASH, name ? name : "");
	TABLE_EACH(&p->names, hash, i)
	{
		if (name && !strcmp(p->kernels[i].info.name, name)) {
			*k = p->kernels[i];
			return true;
		}
	}
	/* a cubin's kernels are not listed; the driver finds them by name */
	return (name && (!p->nkernels || p->more_kernels)) || not_found(p, name, at, err);
}

void kernel_release(kernel *k)
{
	free(k->param_size);
	k->param_size = NULL;
}

/* ---- the calls ---- */

static cptx_program *program_load(cptx_device *dev, load_request *q, const cptx_load_opt *opt, cptx_error *err)
{
	if (!OPTIONS_READ(cptx_load_opt, &q->opt, opt, q->at, err))
		return NULL;
	cptx_program *p = NEW(cptx_program);
	if (!p) {
		no_memory(err, q->at);
		return NULL;
	}
	device_hold(dev);
	p->dev = dev;
	p->log = p->note = "";
	arena_init(&p->mem, NULL);
	if (dev->ops->load(p, q, err))
		return p;
	cptx_program_destroy(p);
	return NULL;
}

cptx_program *cptx_device_load_(cptx_site at, cptx_device *dev, cptx_module *m, const cptx_load_opt *opt, cptx_error *err)
{
	load_request q = { .at = at, .module = m };
	const cptx_error *built = cptx_module_error(m);

	if (!may_go(err))
		return NULL;
	if (built && err)
		*err = *built;
	return built || !IS_GIVEN(dev, "device", at, err) ? NULL : program_load(dev, &q, opt, err);
}

cptx_program *cptx_device_load_text_(cptx_site at, cptx_device *dev, const void *image, size_t size,
                                     const cptx_load_opt *opt, cptx_error *err)
{
	load_request q = { .at = at, .image = image, .size = size };

	if (!may_go(err))
		return NULL;
	if (!IS_GIVEN(dev, "device", at, err) || !IS_GIVEN(image, "image", at, err))
		return NULL;
	if (!size) {
		error_set(err, CPTX_E_ARG, at, "the image has no bytes");
		return NULL;
	}
	return program_load(dev, &q, opt, err);
}

cptx_program *cptx_device_link_(cptx_site at, cptx_device *dev, const cptx_link_input *inputs, size_t n,
                                const cptx_load_opt *opt, cptx_error *err)
{
	load_request q = { .at = at, .pieces = inputs, .npieces = n };

	if (!may_go(err))
		return NULL;
	if (!IS_GIVEN(dev, "device", at, err))
		return NULL;
	if (!inputs || !n) {
		error_set(err, CPTX_E_ARG, at, "there is nothing to link");
		return NULL;
	}
	return program_load(dev, &q, opt, err);
}

void cptx_program_destroy(cptx_program *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1u))
		return;
	if (p->handle)
		p->dev->ops->unload(p);
	table_free(&p->names, &p->mem.hook);
	device_drop(p->dev);
	arena_free(&p->mem);
	free(p);
}

const char *cptx_program_log(const cptx_program *p) { return p ? p->log : ""; }

const char *cptx_program_note(const cptx_program *p) { return p ? p->note : ""; }

const char *cptx_program_target(const cptx_program *p) { return p ? p->target : NULL; }

unsigned cptx_program_version(const cptx_program *p) { return p ? p->version : 0; }

const char *cptx_program_kernel_at(const cptx_program *p, size_t i)
{
	return p && i < p->nkernels ? p->kernels[i].info.name : NULL;
}

void *cptx_program_handle(const cptx_program *p) { return p ? p->handle : NULL; }

uint64_t cptx_program_global(const cptx_program *p, const char *name, size_t *size, cptx_error *err)
{
	if (!may_go(err))
		return 0;
	if (!IS_GIVEN(p, "program", NOWHERE, err) || !IS_GIVEN(name, "name of the variable", NOWHERE, err))
		return 0;
	return p->dev->ops->global(p, name, size, err);
}
