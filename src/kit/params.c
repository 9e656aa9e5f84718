/* SPDX-License-Identifier: MIT */
/* Tables of parameters: declared in the kernel, filled at a launch. */
#include <cptx/cptx.h>
#include <cptx/params.h>

#include "base/options.h"
#include "kit/made.h"
#include "kit/value.h"
#include "runtime/runtime.h"

#include <stdio.h>

enum { SAID = 1024 /* bytes of a list of names */ };

static uint32_t bytes_of(const cptx_param_row *r)
{
	return r->kind == CPTX_PARAM_SCALAR ? cptx_type_bits(r->type) / 8
	       : r->kind == CPTX_PARAM_TENSOR
	           ? (r->size < FIRST_cptx_tensor_map_opt ? (uint32_t)sizeof(cptx_tensor_map_opt) : r->size)
	           : r->size;
}

static const char *or_unknown(const char *name) { return name ? name : "?"; }

/* Whether the member holds what the row says. */
static bool check(const cptx_param_row *r, cptx_site at, cptx_error *err)
{
	if (!r->name || (unsigned)r->kind > CPTX_PARAM_OBJECT)
		return error_set(err, CPTX_E_ARG, at, "a row of parameters without a name or of no kind; CPTX_PARAM_ROW makes them");
	if (r->kind == CPTX_PARAM_SCALAR && (bytes_of(r) < 1 || bytes_of(r) > 8))
		return error_set(err, CPTX_E_ARG, at, "parameter %s has type .%s; numbers have 8 to 64 bits", r->name,
		                 cptx_type_name(r->type));
	if (r->size == bytes_of(r))
		return true;
	if (r->kind == CPTX_PARAM_TENSOR)
		return error_set(err, CPTX_E_ARG, at,
		                 "parameter %s is a tensor map; member %s of %s has %u bytes and is no "
		                 "cptx_tensor_map_opt, which has %u",
		                 r->name, r->name, or_unknown(r->of), r->size, bytes_of(r));
	return error_set(err, CPTX_E_ARG, at, "parameter %s is .%s, of %u bytes; member %s of %s has %u", r->name,
	                 r->type == CPTX_PTR ? "ptr" : cptx_type_name(r->type), bytes_of(r), r->name, or_unknown(r->of),
	                 r->size);
}

/* ---- the kernel ---- */

static bool is_table(cptx_kernel *k, cptx_site at, const cptx_params *p)
{
	if (!IS_GIVEN_TO(k, at, p, "table of parameters"))
		return false;
	if (!p->made.mark && !p->made.kernel && !p->n) /* nothing is declared yet */
		return true;
	return KIT_IS_MADE(cptx_params, k, at, p);
}

static uint32_t find(const cptx_params *p, const char *name)
{
	uint32_t i = 0;

	while (i < p->n && (!p->row[i].name || strcmp(p->row[i].name, name) != 0))
		i++;
	return i;
}

static cptx_val declare(cptx_kernel *k, cptx_site at, const cptx_param_row *r)
{
	switch (r->kind) {
	case CPTX_PARAM_SCALAR: return cptx_param_(k, at, r->type, r->name);
	case CPTX_PARAM_OBJECT: return cptx_param_bytes_(k, at, r->size, r->align, r->name);
	default: break;
	}
	cptx_val at_map = cptx_param_bytes_(k, at, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, r->name);
	return CALL(cvta, .a = CALL(mov, .a = at_map, .type = CPTX_U64), .space = CPTX_PARAM);
}

void cptx_params_declare_(cptx_kernel *k, cptx_site at, cptx_params *p, const cptx_param_row *rows, size_t n)
{
	if (!is_table(k, at, p) || (n && !IS_GIVEN_TO(k, at, rows, "list of rows")))
		return;
	p->made = kit_made(k, KIT_cptx_params);
	for (size_t i = 0; i < n; i++) {
		cptx_error err = { .code = CPTX_OK };
		if (!check(&rows[i], NOWHERE, &err)) {
			cptx_fail_(k, at, "%s", err.text);
			return;
		}
		if (find(p, rows[i].name) < p->n) {
			cptx_fail_(k, at, "parameter %s of %s: %s has one of that name already", rows[i].name, or_unknown(rows[i].of),
			           or_unknown(p->row[find(p, rows[i].name)].of));
			return;
		}
		if (p->n == CPTX_PARAMS_MOST) {
			cptx_fail_(k, at, "parameter %s is one too many; tables declare at most %d", rows[i].name, CPTX_PARAMS_MOST);
			return;
		}
		p->row[p->n] = rows[i];
		p->val[p->n++] = declare(k, at, &rows[i]);
	}
}

cptx_val cptx_params_get_(cptx_kernel *k, cptx_site at, const cptx_params *p, const char *name)
{
	char names[SAID] = "";
	size_t len = 0;

	if (!is_table(k, at, p) || !IS_GIVEN_TO(k, at, name, "name"))
		return (cptx_val){ 0 };
	const uint32_t i = find(p, name);
	if (i < p->n)
		return p->val[i];
	for (uint32_t j = 0; j < p->n && len < sizeof names; j++)
		len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", j ? ", " : "", or_unknown(p->row[j].name));
	return cptx_fail_(k, at, "no parameter '%s'; there %s %s", name, p->n ? "are" : "is", p->n ? names : "none");
}

void cptx_params_prefetch_(cptx_kernel *k, cptx_site at, const cptx_params *p, cptx_val when)
{
	if (!is_table(k, at, p) || !kit_value(k, at, "cptx_params_prefetch", "the predicate", when, KIT_PRED | KIT_NONE))
		return;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->row[i].kind == CPTX_PARAM_TENSOR)
			CALL(prefetch, .a = p->val[i], .tensormap = CPTX_TENSORMAP, .when = when);
}

/* ---- launches ---- */

/* What a launch collects. */
typedef struct filling {
	cptx_arg arg[CPTX_PARAMS_MOST];
	cptx_tensor_map map[CPTX_PARAMS_MOST];
	const cptx_param_row *row[CPTX_PARAMS_MOST];
	size_t n;
} filling;

static bool fill(filling *f, cptx_device *dev, const cptx_param_row *r, const void *args, cptx_site at, cptx_error *err)
{
	const char *member = (const char *)args + r->offset;
	cptx_error why = { .code = CPTX_OK };
	cptx_tensor_map_opt opt;

	if (f->n == CPTX_PARAMS_MOST)
		return error_set(err, CPTX_E_ARG, at, "parameter %s is one too many; tables declare at most %d", or_unknown(r->name),
		                 CPTX_PARAMS_MOST);
	if (!check(r, at, err))
		return false;
	cptx_arg *arg = &f->arg[f->n];
	if (r->kind == CPTX_PARAM_TENSOR) {
		if (!OPTIONS_READ(cptx_tensor_map_opt, &opt, member, NOWHERE, &why) ||
		    !cptx_tensor_map_make(dev, &opt, &f->map[f->n], &why))
			return error_set(err, why.code, at, "parameter %s of %s: %s", r->name, or_unknown(r->of), why.text);
		*arg = CPTX_ARG_BYTES(&f->map[f->n], sizeof f->map[f->n]);
	} else if (r->kind == CPTX_PARAM_OBJECT) {
		*arg = CPTX_ARG_BYTES(member, r->size);
	} else {
		*arg = (cptx_arg){ .kind = r->type == CPTX_F32 || r->type == CPTX_F64 ? CPTX_ARG_FLOAT : CPTX_ARG_INT,
			               .size = r->size };
		memcpy(&arg->u, member, r->size);
	}
	f->row[f->n++] = r;
	return true;
}

/* Rows in another order than they were declared would be found by size alone, which many have in common. */
static bool same_names(const filling *f, const cptx_program *program, const char *name, cptx_site at, cptx_error *err)
{
	kernel k;
	bool ok = true;

	if (!program_find(program, name, &k, at, err))
		return false;
	for (size_t i = 0; ok && k.info.params && i < MIN(f->n, k.info.nparams); i++)
		if (strcmp(k.info.params[i].name, f->row[i]->name) != 0)
			ok = error_set(err, CPTX_E_ARG, at,
			               "parameter %zu of kernel %s is %s, not %s of %s: give the parts in the order of "
			               "cptx_params_declare",
			               i, k.info.name, k.info.params[i].name, f->row[i]->name, or_unknown(f->row[i]->of));
	kernel_release(&k);
	return ok;
}

cptx_launch *cptx_params_launch_(cptx_site at, const cptx_program *program, cptx_device *dev, const char *name,
                                 const cptx_params_part *parts, size_t nparts, const cptx_launch_opt *opt, cptx_error *err)
{
	filling f = { .n = 0 };

	if (!IS_GIVEN(program, "program", at, err) || !IS_GIVEN(dev, "device", at, err) ||
	    !IS_GIVEN(opt, "description of the launch", at, err) || (nparts && !IS_GIVEN(parts, "list of parts", at, err)))
		return NULL;
	if (opt->nargs) {
		error_set(err, CPTX_E_ARG, at, ".args (%zu) beside the parts, which alone fill the parameters", opt->nargs);
		return NULL;
	}
	for (size_t i = 0; i < nparts; i++) {
		if (parts[i].n && (!IS_GIVEN(parts[i].rows, "list of rows", at, err) || !IS_GIVEN(parts[i].args, "struct", at, err)))
			return NULL;
		for (size_t j = 0; j < parts[i].n; j++)
			if (!fill(&f, dev, &parts[i].rows[j], parts[i].args, at, err))
				return NULL;
	}
	if (!same_names(&f, program, name, at, err))
		return NULL;
	cptx_launch_opt all = *opt;
	all.nargs = f.n, all.args = f.arg;
	return cptx_launch_new_(at, program, name, &all, err);
}
