/* SPDX-License-Identifier: MIT */
/* Checking a module for a target: reports one by one all errors that printing would find. */
#include "emit/emit.h"

#include <stdio.h>

typedef struct checker {
	emitter e;
	cptx_error err;
	cptx_report_fn report;
	void *user;
	size_t n;
} checker;

static void take_error(checker *c)
{
	if (c->err.code == CPTX_OK)
		return;
	c->n++;
	if (c->report)
		c->report(c->user, &c->err);
	c->err = (cptx_error){ .code = CPTX_OK };
}

/* Whether a device runs code of a target, as ptxas -arch has it: plain code runs on all later targets, `f` code in its
 * family, `a` code on its own target. */
static bool runs_on(const cptx_target *code, const cptx_target *device)
{
	if (code->suffix == 'a')
		return device->suffix == 'a' && code->number == device->number;
	if (code->suffix == 'f')
		return code->family == device->family && code->number <= device->number;
	return code->number <= device->number;
}

static void check_body(checker *c, const cptx_kernel *k, const cptx_target *device)
{
	emitter *e = &c->e;

	e->k = k;
	if (!c->e.m->misread && (!emit_limits(e, device) || !emit_name_registers(e)))
		take_error(c);
	for (const ir_item *it = k->first; it; it = it->next) {
		if (it->kind == ITEM_INSN && !emit_check_insn(e, it))
			take_error(c);
	}
}

size_t cptx_check(cptx_module *m, const char *arch, cptx_report_fn report, void *user)
{
	static const cptx_emit_opt defaults = { 0 };
	checker c = { .report = report, .user = user };
	const cptx_target *device = arch ? cptx_target_find(arch) : m ? m->target : NULL;
	const cptx_target *code = m && m->target ? m->target : device;

	bool misread = m && m->misread;

	if (!m || !cptx_module_freeze(m))
		c.err = *cptx_module_error(m);
	if (misread)
		take_error(&c);
	if (c.err.code != CPTX_OK)
		;
	else if (!code || !device)
		arch_no_target(arch, NOWHERE, &c.err);
	else if (!runs_on(code, device))
		error_set(&c.err, CPTX_E_TARGET, NOWHERE, "%s: error: code for %s does not run on %s; %s",
		          m->nfile ? m->file[0] : "module", code->name, device->name,
		          code->suffix == 'a'   ? "architecture-specific targets run on themselves only"
		          : code->suffix == 'f' ? "family-specific targets run on later ones of the family"
		                                : "it runs on that architecture and later ones");
	bool judged = c.err.code == CPTX_OK;
	take_error(&c);
	if (!judged)
		return c.n;
	cptx_ptx *out = emit_new(m, code);
	if (!out) {
		error_set(&c.err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		take_error(&c);
		return c.n;
	}
	c.e = (emitter){ .m = m,
		             .out = out,
		             .err = &c.err,
		             .opt = &defaults,
		             .target = arch_target_index(code),
		             .version = code->ptx,
		             .strict = m->version };
	for (const cptx_kernel *k = m->first; k; k = k->next)
		check_body(&c, k, device);
	cptx_ptx_destroy(out);
	return c.n;
}
