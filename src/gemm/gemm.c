/* SPDX-License-Identifier: MIT */
/* The public calls of all GEMM generators: which of them it is, what is checked for all, choices, launches. */
#include "base/options.h"
#include "gemm/options.h"
#include "gemm/tma/tma.h"

#include <stdio.h>
#include <stdlib.h>

static const gemm_generator *const generators[] = { &gemm_sm80, &gemm_sm120, &gemm_sm90, &gemm_sm100, &gemm_gemv };

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: " __VA_ARGS__);                                               \
	while (0)

static unsigned number_of(const cptx_gemm_opt *o)
{
	return o->mma == CPTX_GEMM_SYNC ? o->scale != CPTX_TYPE_NONE : (unsigned)o->mma + 1;
}

const gemm_generator *gemm_generator_of(const cptx_gemm_opt *o)
{
	return (unsigned)o->mma < CPTX_GEMM_MMAS ? generators[number_of(o)] : NULL;
}

/* The options with what the caller left open filled in. */
static cptx_gemm_opt completed(const cptx_gemm_opt *opt)
{
	cptx_gemm_opt o = *opt;

	o.group = o.group || o.mma == CPTX_GEMM_WGMMA ? o.group : 16;
	o.name = o.name ? o.name : "gemm";
	return o;
}

/* ---- rules ---- */

#define GEMM_WHY(why, text) static const char why[] = text;
#include "gemm/options.def"

/* Options that not all kernels have. */
static bool check_fits(const cptx_gemm_opt *o, cptx_error *err)
{
	const struct {
		const char *name;
		bool asked;
		unsigned of;
		const char *why;
	} all[] = {
#define GEMM_FIELD(id, field, type, set, none, least, most, why, about)                                                     \
	{ #field, GEMM_ASKED_##type(o->field, none), GEMM_##set, why },
#include "gemm/options.def"
	};
	unsigned is = number_of(o);
	char of[120] = "";

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!all[i].asked || all[i].of >> is & 1)
			continue;
		for (unsigned g = 0; g < ARRAY_LEN(generators); g++)
			if (all[i].of >> g & 1)
				snprintf(of + strlen(of), sizeof of - strlen(of), "%s%s", *of ? ", of " : "", generators[g]->by);
		RULE(false, ".%s is an option of %s; this kernel is by %s: %s", all[i].name, of, generators[is]->by, all[i].why);
	}
	return true;
}

static bool check_target(const gemm_generator *g, const cptx_target *t, cptx_error *err)
{
	char own[32];

	if (!t || !g->op || cptx_form_on_target(g->op, 0, t))
		return true;
	snprintf(own, sizeof own, "%sa", t->name);
	const cptx_target *a = cptx_target_find(own);
	bool has = a && cptx_form_on_target(g->op, 0, a);
	return error_set(err, CPTX_E_TARGET, NOWHERE, "gemm for %s: %s has no %s; %s. Instead: %s", g->target, t->name, g->by,
	                 g->where, has ? own : cptx_gemm_mma_name(cptx_gemm_mma_of(t)));
}

static void list_maps(const gemm_generator *g, const cptx_gemm_opt *o, cptx_gemm_plan *plan)
{
	const uint32_t maps = gemm_describe(g, o).maps;

	for (int i = 0; i < CPTX_GEMM_MAP_KINDS; i++)
		if (maps & MAP(i))
			plan->map[plan->maps++] = (enum cptx_gemm_map)i;
}

/* Parameters of the visitors. */
static bool check_params(const cptx_gemm_opt *o, cptx_error *err)
{
	RULE(!o->nparams == !o->params, ".params is %s, and .nparams %u; both are given, or none", o->params ? "given" : "NULL",
	     o->nparams);
	RULE(!o->nparams || o->visitors, ".params are for .visitors, which is NULL");
	RULE(o->nparams <= GEMM_MOST_nparams, ".nparams = %u; a kernel has up to %d parameters", o->nparams, GEMM_MOST_nparams);
	return true;
}

static bool check_options(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	RULE((unsigned)o->mma < CPTX_GEMM_MMAS, ".mma = %u; there are mma.sync, wgmma, tcgen05 and gemv", (unsigned)o->mma);
	const char *lacks = o->a == CPTX_TYPE_NONE     ? "a"
	                    : o->b == CPTX_TYPE_NONE   ? "b"
	                    : o->out == CPTX_TYPE_NONE ? "out"
	                                               : NULL;
	RULE(!lacks, ".%s is not given; .a, .b and .out are types, as CPTX_BF16; cptx_gemm_default has options to begin with",
	     lacks);
	const gemm_generator *g = generators[number_of(o)];
	cptx_gemm_plan here = { 0 };
	RULE((unsigned)o->experts < CPTX_GEMM_EXPERTS_KINDS,
	     ".experts = %u; there are contiguous and masked ones, and those along K", (unsigned)o->experts);
	if (o->name && !cptx_name_check("kernel", o->name, err))
		return false;
	if (!check_fits(o, err) || !check_params(o, err) || !check_target(g, target, err) || !g->check(o, target, &here, err))
		return false;
	const bool of_kind = here.columns || (here.vec && o->mma != CPTX_GEMM_WGMMA);
	if (o->bk && o->bk != here.bk)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm for %s: tile K = %u; with %s%s it is %u, 128 bytes", g->target,
		                 o->bk, of_kind ? "kind " : ".", of_kind ? cptx_tcgen05_kind_name(here.kind) : cptx_type_name(o->a),
		                 here.bk);
	list_maps(g, o, &here);
	*plan = here;
	return true;
}

/* Copies the options that this version of the library knows into *o; false, with an error, if `given` cannot be read. */
static bool can_read(cptx_gemm_opt *o, const cptx_gemm_opt *given, cptx_error *err)
{
	RULE(given, "no options were given (NULL)");
	return OPTIONS_READ(cptx_gemm_opt, o, given, NOWHERE, err);
}

/* Copies the options as can_read does and checks them for the target. */
static bool read_options(cptx_gemm_opt *o, const cptx_gemm_opt *given, const cptx_target *target, cptx_gemm_plan *plan,
                         cptx_error *err)
{
	return can_read(o, given, err) && check_options(o, target, plan, err);
}

bool cptx_gemm_check_(const cptx_gemm_opt *opt, const cptx_target *target, cptx_gemm_plan *plan, size_t size,
                      cptx_error *err)
{
	cptx_gemm_opt o;
	cptx_gemm_plan here;

	if (!read_options(&o, opt, target, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

/* A factor that is given must be the kernel's: without it the result would be another one. */
static bool check_factors(const cptx_gemm_opt *o, const cptx_gemm_problem *p, cptx_error *err)
{
	RULE(o->alpha || p->alpha == 0 || p->alpha == 1,
	     "the problem has alpha = %g, and the kernel none: say .alpha in its options", (double)p->alpha);
	RULE(o->beta || p->beta == 0, "the problem has beta = %g, and the kernel none: say .beta in its options",
	     (double)p->beta);
	RULE(o->nparams || !p->args,
	     "the problem has .args, and the kernel no parameters that these fill: .params in its options");
	return true;
}

bool cptx_gemm_check_problem_(const cptx_gemm_opt *opt, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan,
                              size_t size, cptx_error *err)
{
	cptx_gemm_opt given, *o = &given;
	cptx_gemm_plan here;

	if (!read_options(o, opt, NULL, &here, err))
		return false;
	cptx_gemm_problem known;
	RULE(p, "no problem was given (NULL)");
	if (!OPTIONS_READ(cptx_gemm_problem, &known, p, NOWHERE, err))
		return false;
	p = &known;
	if (!check_factors(o, p, err))
		return false;
	tma_gemm t = gemm_describe(generators[number_of(o)], o);
	if (!tma_gemm_check_problem(&t, p, sms, &here, err))
		return false;
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

/* ---- kernels and launches ---- */

cptx_kernel *cptx_gemm_build(cptx_module *m, const cptx_gemm_opt *opt, cptx_error *err)
{
	cptx_gemm_opt o;
	cptx_gemm_plan plan;

	if (!read_options(&o, opt, NULL, &plan, err))
		return NULL;
	o = completed(&o);
	const gemm_generator *g = generators[number_of(&o)];
	const tma_gemm t = gemm_describe(g, &o);
	const uint32_t cluster = t.cluster > 1 ? t.cluster : 0;
	cptx_kernel *k = cptx_kernel_begin(m, o.name, .block = { plan.threads }, .min_ctas = t.per_sm,
	                                   .cluster = { cluster, cluster > 1, cluster > 1 });
	g->build(k, &t);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}

bool cptx_gemm_maps(const cptx_gemm_opt *opt, const cptx_gemm_problem *p, cptx_tensor_map_opt map[CPTX_GEMM_MAPS],
                    cptx_error *err)
{
	cptx_gemm_opt given, *o = &given;

	cptx_gemm_problem known;

	if (!cptx_gemm_check_problem(opt, p, 1, NULL, err) || !OPTIONS_READ(cptx_gemm_opt, o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_problem, &known, p, NOWHERE, err))
		return false;
	p = &known;
	RULE(map, "no room for the maps was given (NULL)");
	tma_gemm t = gemm_describe(generators[number_of(o)], o);
	RULE(t.maps & ~t.pointers, "kernels by mma.sync without .tma and scale factors take no tensor maps");
	return tma_gemm_maps(&t, p, map, err);
}

static bool check_launch(const cptx_program *program, const cptx_device *dev, cptx_error *err)
{
	RULE(dev, "the device is NULL");
	RULE(program, "the program is NULL");
	return true;
}

/* Of mma.sync: plans for as many CTAs as the device holds at once.  With stream_k or a timeline the plan stays, since the
 * workspace and the stamps were made for its CTAs. */
static bool fill_device(tma_gemm *t, const cptx_program *program, cptx_device *dev, const cptx_gemm_problem *p,
                        cptx_gemm_plan *plan, cptx_error *err)
{
	cptx_resources fits;

	if (number_of(t->o) || t->o->stream_k || t->o->timeline)
		return true;
	if (!cptx_program_resources(program, t->o->name, plan->threads, plan->smem, &fits, err))
		return false;
	t->per_sm = MAX(fits.ctas_per_sm, 1u);
	return tma_gemm_check_problem(t, p, cptx_device_get_info(dev)->sms, plan, err);
}

cptx_launch *cptx_gemm_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *opt,
                              const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_plan plan;
	cptx_gemm_opt o;

	if (!check_launch(program, dev, err) || !OPTIONS_READ(cptx_gemm_opt, &o, opt, NOWHERE, err))
		return NULL;
	if (o.grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm: the kernel takes a list of problems: cptx_gemm_launch_grouped");
		return NULL;
	}
	cptx_gemm_problem known;
	if (!cptx_gemm_check_problem(opt, p, cptx_device_get_info(dev)->sms, &plan, err) ||
	    !OPTIONS_READ(cptx_gemm_problem, &known, p, NOWHERE, err))
		return NULL;
	p = &known;
	o = completed(&o);
	tma_gemm t = gemm_describe(generators[number_of(&o)], &o);
	if (!fill_device(&t, program, dev, p, &plan, err))
		return NULL;
	return tma_gemm_launch(&t, &plan, program, dev, p, 0, 0, err);
}

/* A copy of the n problems with the members that this version of the library knows; NULL also if there are no problems. */
static cptx_gemm_problem *read_list(const cptx_gemm_problem *p, size_t n, cptx_error *err)
{
	if (!p || !n)
		return NULL;
	const char *at = (const char *)p;
	size_t stride = OPTIONS_STRIDE(cptx_gemm_problem, p);
	cptx_gemm_problem *known = NEW_ARRAY(cptx_gemm_problem, n);

	if (!known)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (size_t i = 0; known && i < n; i++)
		if (!OPTIONS_READ(cptx_gemm_problem, &known[i], (const cptx_gemm_problem *)(const void *)(at + i * stride), NOWHERE,
		                  err)) {
			free(known);
			return NULL;
		}
	return known;
}

cptx_launch *cptx_gemm_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *opt,
                                      const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	cptx_gemm_plan plan;
	cptx_gemm_opt o;

	if (!check_launch(program, dev, err) || !read_options(&o, opt, NULL, &plan, err))
		return NULL;
	if (!o.grouped) {
		error_set(err, CPTX_E_ARG, NOWHERE, "gemm: the kernel takes one problem; .grouped makes it take a list");
		return NULL;
	}
	o = completed(&o);
	tma_gemm t = gemm_describe(generators[number_of(&o)], &o);
	cptx_gemm_problem *known = read_list(p, n, err);
	if (!known && p && n)
		return NULL;
	cptx_launch *l = tma_gemm_launch_list(&t, &plan, program, dev, known, n, table, err);
	free(known);
	return l;
}
