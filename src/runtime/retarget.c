/* SPDX-License-Identifier: MIT */
/* PTX of others for the driver and device that are there: the ladder of targets, and what stands in the way. */
#include "base/options.h"
#include "bundle/loader/cptx_load.h"
#include "ir/ir.h"
#include "runtime/driver.h"
#include "runtime/runtime.h"

#include <cptx/retarget.h>

#include <stdio.h>

unsigned cptx_driver_ptx(uint32_t version) { return cptx_load_ptx_version((int)MIN(version, (uint32_t)INT32_MAX)); }

/* ---- the ladder ---- */

static int rank_of(const cptx_target *t) { return t->suffix == 'a' ? 2 : t->suffix == 'f' ? 1 : 0; }

/* Whether a target stands above another one; old names of a target below its new one. */
static bool is_above(const cptx_target *a, const cptx_target *b)
{
	return a->compute_capability != b->compute_capability ? a->compute_capability > b->compute_capability
	       : rank_of(a) != rank_of(b)                     ? rank_of(a) > rank_of(b)
	                                                      : a > b;
}

const cptx_target *target_ladder(unsigned cc, const cptx_target *below)
{
	const cptx_target *best = NULL, *t;

	for (size_t i = 0; (t = cptx_target_at(i)); i++)
		if (target_runs_on(t, cc) && (!below || is_above(below, t)) && (!best || is_above(t, best)))
			best = t;
	return best;
}

/* ---- one rung ---- */

typedef struct retargeting {
	cptx_retarget_opt opt;
	const char *text;
	size_t size;
	unsigned most; /* .version that the driver takes; 0: any */
	buf why;
} retargeting;

static cptx_module *parse(const retargeting *r, cptx_error *err)
{
	cptx_module *m = cptx_parse(r->text, r->size, CPTX_OPT(cptx_parse_opt, .name = r->opt.name, .keep = true));
	const cptx_error *wrong = m ? cptx_module_error(m) : NULL;

	if (!m) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	if (!wrong)
		return m;
	if (err->code == CPTX_OK)
		*err = *wrong;
	cptx_module_destroy(m);
	return NULL;
}

static void take_first(void *user, const cptx_error *e)
{
	cptx_error *first = (cptx_error *)user;

	if (first->code == CPTX_OK)
		*first = *e;
}

/* Which line needs a later .version than the driver takes. */
static void blame(const retargeting *r, const cptx_target *t, unsigned version, cptx_error *err)
{
	static const char says[] = "the text says ", takes[] = "the driver takes up to ";
	cptx_error ignored = { .code = CPTX_OK }, first = { .code = CPTX_OK };
	cptx_module *m = parse(r, &ignored);

	if (m && cptx_module_freeze(m)) {
		m->target = t, m->version = (uint16_t)r->most;
		cptx_check(m, NULL, take_first, &first);
	}
	cptx_module_destroy(m);
	char *at = strstr(first.text, says);
	if (first.code == CPTX_OK || !at) {
		error_set(err, CPTX_E_TARGET, NOWHERE, "%s needs .version %u.%u for %s, and the driver takes up to %u.%u",
		          r->opt.name ? r->opt.name : "ptx", version / 10, version % 10, t->name, r->most / 10, r->most % 10);
		return;
	}
	char rest[CPTX_ERROR_TEXT];
	snprintf(rest, sizeof rest, "%s", at + strlen(says));
	snprintf(at, sizeof first.text - (size_t)(at - first.text), "%s%s", takes, rest);
	first.code = CPTX_E_TARGET;
	*err = first;
}

/* The text for a target; NULL with an error. */
static cptx_ptx *print_for(const retargeting *r, const cptx_target *t, cptx_error *err)
{
	cptx_module *m = parse(r, err);
	cptx_ptx *plain, *kept = NULL;

	if (!m)
		return NULL;
	m->version = 0; /* the lowest that serves, not at least that of the text */
	plain = cptx_emit(m, t->name, NULL, err);
	const unsigned version = plain ? cptx_ptx_version(plain) : 0;
	if (plain && r->most && version > r->most)
		blame(r, t, version, err);
	else if (plain) /* untouched text is not looked at again, so the version is said */
		kept = cptx_emit(m, t->name, CPTX_OPT(cptx_emit_opt, .min_version = (uint16_t)version, .keep = true), err);
	cptx_ptx_destroy(plain);
	cptx_module_destroy(m);
	return kept;
}

/* ---- all rungs ---- */

static cptx_ptx *try_rung(retargeting *r, const cptx_target *t, cptx_error *first, cptx_error *err)
{
	cptx_error e = { .code = CPTX_OK };
	cptx_ptx *ptx = NULL;

	if (r->most && t->ptx > r->most)
		error_set(&e, CPTX_E_TARGET, NOWHERE, "the driver takes .version %u.%u, and %s came with %u.%u", r->most / 10,
		          r->most % 10, t->name, t->ptx / 10, t->ptx % 10);
	else
		ptx = print_for(r, t, &e);
	if (ptx)
		buf_printf(&r->why, "%s: taken, .version %u.%u\n", t->name, cptx_ptx_version(ptx) / 10, cptx_ptx_version(ptx) % 10);
	else
		buf_printf(&r->why, "%s: %s\n", t->name, e.text);
	if (e.code == CPTX_E_MEMORY)
		*err = e;
	/* the reason that counts is that of the best rung whose target the driver knows */
	if (first->code == CPTX_OK || (first->code == CPTX_E_TARGET && !*first->file && *e.file))
		*first = e;
	return ptx;
}

static cptx_ptx *climb(retargeting *r, const cptx_target *own, cptx_error *err)
{
	const unsigned cc = r->opt.compute_capability ? r->opt.compute_capability : own->compute_capability;
	const cptx_target *wanted = r->opt.target ? cptx_target_find(r->opt.target) : NULL;
	cptx_error first = { .code = CPTX_OK };
	cptx_ptx *ptx = NULL;

	if (r->opt.target && !wanted) {
		error_set(err, CPTX_E_ARG, NOWHERE, "there is no target \"%s\"", r->opt.target);
		return NULL;
	}
	if (wanted)
		ptx = try_rung(r, wanted, &first, err);
	else if (target_runs_on(own, cc) && cptx_target_find(own->name))
		ptx = try_rung(r, own, &first, err);
	else
		buf_printf(&r->why, "%s: the text's own target does not run on compute capability %u.%u\n", own->name, cc / 10,
		           cc % 10);
	for (const cptx_target *t = target_ladder(cc, NULL); t && !ptx && !wanted && err->code == CPTX_OK;
	     t = target_ladder(cc, t))
		if (t != own)
			ptx = try_rung(r, t, &first, err);
	if (ptx || err->code != CPTX_OK)
		return ptx;
	if (first.code != CPTX_OK)
		*err = first;
	else
		error_set(err, CPTX_E_TARGET, NOWHERE, "no target of this library runs on compute capability %u.%u", cc / 10,
		          cc % 10);
	return NULL;
}

cptx_ptx *cptx_retarget(const char *text, size_t size, const cptx_retarget_opt *opt, char *why, size_t why_size,
                        cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	retargeting r = { .text = text, .size = size };
	cptx_ptx *ptx = NULL;

	err = err ? err : &own;
	if (why && why_size)
		*why = 0;
	if (err->code != CPTX_OK || !IS_GIVEN(text, "text", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_retarget_opt, &r.opt, opt, NOWHERE, err))
		return NULL;
	r.most = r.opt.driver ? cptx_driver_ptx(r.opt.driver) : 0;
	buf_init(&r.why, &heap_default);
	cptx_module *m = parse(&r, err);
	if (m && !m->target)
		error_set(err, CPTX_E_PARSE, NOWHERE, "%s has no .target", r.opt.name ? r.opt.name : "ptx");
	else if (m)
		ptx = climb(&r, m->target, err);
	cptx_module_destroy(m);
	buf_put(&r.why, "", 1);
	if (why && why_size && !r.why.failed)
		snprintf(why, why_size, "%s", r.why.p);
	buf_free(&r.why);
	return ptx;
}
