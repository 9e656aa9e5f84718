/* SPDX-License-Identifier: MIT */
/* A GEMM as a variant of a bundle: its shape, and its parameters in the order that <cptx/gemm.h> tells. */
#include "base/options.h"
#include "gemm/auto.h"
#include "gemm/tuned.h"

#include <cptx/bundle.h>

#include <stdio.h>

enum { A, B, D, C, BIAS, SCALE_A, SCALE_B, ALPHA, BETA, WORKSPACE, SCALE_D, META, NAMES };
enum { MOST_PARAMS = CPTX_GEMM_MAPS + 12, SMS_UNKNOWN = 128 };

typedef struct making {
	cptx_bundle_gemm g;
	cptx_gemm_opt opt;
	cptx_gemm_problem p;
	const cptx_target *target;
	char note[CPTX_TUNE_TEXT + 200], about[200];
	/* arguments, and where each stands among them */
	cptx_bundle_arg args[NAMES];
	uint32_t nargs, number[NAMES];
	cptx_bundle_param params[MOST_PARAMS];
	uint32_t nparams;
	cptx_tensor_map_opt maps[CPTX_GEMM_MAPS];
} making;

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "bundle: " __VA_ARGS__);                                             \
	while (0)

/* ---- the shape ---- */

/* The latest measurement of a candidate. */
typedef struct measured {
	int64_t date;
	double median;
	char candidate[CPTX_TUNE_TEXT], unit[24];
} measured;

typedef struct tuned {
	const making *m;
	measured *at;
	size_t n, cap;
	bool no_memory;
} tuned;

/* "bm=128 ... ctas=132": the options, and the CTAs of a launch, which are none of them. */
static bool read_candidate(const char *text, cptx_gemm_opt *o, uint32_t *ctas)
{
	char rest[CPTX_TUNE_TEXT];
	const char *at = strstr(text, " ctas=");

	snprintf(rest, sizeof rest, "%.*s", at ? (int)(at - text) : (int)strlen(text), text);
	*ctas = at ? (uint32_t)strtoul(at + 6, NULL, 10) : 0;
	return cptx_gemm_options_read(rest, o, NULL);
}

static bool same_options(const cptx_gemm_opt *a, const cptx_gemm_opt *b)
{
	bool same = true;

#define GEMM_FIELD(id, field, type, set, none, least, most, why, about) same &= a->field == b->field;
#include "gemm/options.def"
	return same;
}

/* Whether a record is of the device and problem, and of today's kernels. */
static bool counts(const making *m, const cptx_tune_key *k)
{
	const uint64_t dims[4] = { m->p.m, m->p.n, m->p.k, m->p.batch ? m->p.batch : 1 };
	cptx_gemm_opt problem = { .a = CPTX_TYPE_NONE };

	return !strcmp(k->generator, "gemm") && k->version == gemm_tuned_version() && !strcmp(k->device, m->g.device) &&
	       !memcmp(k->dims, dims, sizeof dims) && cptx_gemm_options_read(k->problem, &problem, NULL) &&
	       same_options(&problem, &m->opt);
}

/* Keeps a record, if no later one of its candidate was seen. */
static bool see(void *user, const cptx_tune_record *r)
{
	tuned *t = (tuned *)user;
	size_t i = 0;

	if (!counts(t->m, r->key))
		return true;
	while (i < t->n && strcmp(t->at[i].candidate, r->candidate) != 0)
		i++;
	if (i < t->n && t->at[i].date >= r->date)
		return true;
	if (i == t->cap) {
		const size_t cap = t->cap ? 2 * t->cap : 32;
		measured *more = GROW_ARRAY(measured, t->at, cap);
		if (!more)
			return !(t->no_memory = true);
		t->at = more, t->cap = cap;
	}
	measured *to = &t->at[i];
	to->date = r->date, to->median = r->median;
	snprintf(to->candidate, sizeof to->candidate, "%s", r->candidate);
	snprintf(to->unit, sizeof to->unit, "%s", r->unit);
	t->n = MAX(t->n, i + 1);
	return true;
}

/* Takes a candidate as the shape, if it fits. */
static bool take(making *m, const cptx_gemm_opt *asked, const cptx_gemm_problem *p, const measured *x)
{
	cptx_gemm_opt o = *asked;
	cptx_gemm_problem with = *p;

	if (!read_candidate(x->candidate, &o, &with.ctas) || !o.bm || o.stream_k || o.mma != asked->mma ||
	    !cptx_gemm_check(&o, m->target, NULL, NULL) || !cptx_gemm_check_problem(&o, &with, SMS_UNKNOWN, NULL, NULL))
		return false;
	m->opt = o, m->p.ctas = with.ctas;
	snprintf(m->note, sizeof m->note, "measured on %.60s, %g %s: %.300s", m->g.device, x->median, x->unit, x->candidate);
	return true;
}

static bool choose_tuned(making *m, cptx_error *err)
{
	const cptx_gemm_opt asked = m->opt;
	const cptx_gemm_problem p = m->p;
	tuned t = { .m = m };
	double best = 0;

	if (cptx_tune_each(m->g.db, see, &t, NULL, err) && t.no_memory)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (size_t i = 0; err->code == CPTX_OK && i < t.n; i++)
		if ((!(best > 0) || t.at[i].median < best) && take(m, &asked, &p, &t.at[i]))
			best = t.at[i].median;
	free(t.at);
	return best > 0;
}

/* The model's first choice without stream_k, for which a program would need a workspace. */
static bool choose_by_model(making *m, cptx_error *err)
{
	uint32_t sms = SMS_UNKNOWN;
	const char *model = cptx_gemm_model(&m->opt, m->target, &sms);
	cptx_gemm_choice c;

	if (!gemm_auto_whole(&m->opt, m->target, sms, &m->p, false, &c, 1, err))
		return false;
	m->opt = c.opt, m->p.ctas = c.ctas;
	snprintf(m->note, sizeof m->note, "model: %.150s; %ux%u tiles, %u stages", model ? model : "?", m->opt.bm, m->opt.bn,
	         m->opt.stages);
	return true;
}

static bool choose(making *m, cptx_error *err)
{
	if (m->opt.bm) {
		snprintf(m->note, sizeof m->note, "shape as given");
		return true;
	}
	if (m->g.db && m->g.device && choose_tuned(m, err))
		return true;
	return err->code == CPTX_OK && choose_by_model(m, err);
}

/* ---- arguments and parameters ---- */

static void add_arg(making *m, unsigned which, bool there)
{
	static const char *const names[NAMES] = { "a",       "b",     "d",    "c",         "bias",    "scale_a",
		                                      "scale_b", "alpha", "beta", "workspace", "scale_d", "meta" };

	if (!there)
		return;
	m->number[which] = m->nargs;
	m->args[m->nargs++] =
		(cptx_bundle_arg){ names[which], which == ALPHA || which == BETA ? CPTX_BUNDLE_F32 : CPTX_BUNDLE_POINTER };
}

static void add_args(making *m)
{
	const cptx_gemm_opt *o = &m->opt;
	const bool there[NAMES] = {
		[A] = true,
		[B] = true,
		[D] = true,
		[C] = o->beta,
		[BIAS] = o->bias,
		[SCALE_A] = o->scale != CPTX_TYPE_NONE,
		[SCALE_B] = o->scale != CPTX_TYPE_NONE,
		[ALPHA] = o->alpha,
		[BETA] = o->beta,
		[WORKSPACE] = o->stream_k,
		[SCALE_D] = o->scale_out != CPTX_TYPE_NONE,
		[META] = o->sparse,
	};

	for (unsigned i = 0; i < NAMES; i++)
		add_arg(m, i, there[i]);
}

static void add_value(making *m, uint64_t v)
{
	m->params[m->nparams++] = (cptx_bundle_param){ .kind = CPTX_BUNDLE_VALUE, .value = v };
}

static void add_argument(making *m, unsigned which, bool there)
{
	if (there)
		m->params[m->nparams++] = (cptx_bundle_param){ .kind = CPTX_BUNDLE_ARG, .arg = m->number[which] };
}

static bool add_params(making *m, const cptx_gemm_plan *plan, const cptx_kernel_info *info, cptx_error *err)
{
	static const unsigned of[] = {
		[CPTX_GEMM_MAP_A] = A,
		[CPTX_GEMM_MAP_B] = B,
		[CPTX_GEMM_MAP_D] = D,
		[CPTX_GEMM_MAP_END_D] = D,
		[CPTX_GEMM_MAP_LAST_A] = A,
		[CPTX_GEMM_MAP_LAST_B] = B,
		[CPTX_GEMM_MAP_SCALE_A] = SCALE_A,
		[CPTX_GEMM_MAP_SCALE_B] = SCALE_B,
	};
	const cptx_gemm_opt *o = &m->opt;
	bool any = false;

	for (uint32_t i = 0; i < plan->maps; i++)
		any |= info->params[i].type != CPTX_PTR;
	if (any && !cptx_gemm_maps(o, &m->p, m->maps, err))
		return false;
	for (uint32_t i = 0; i < plan->maps; i++)
		m->params[m->nparams++] =
			(cptx_bundle_param){ .kind = info->params[i].type == CPTX_PTR ? CPTX_BUNDLE_ARG : CPTX_BUNDLE_MAP,
			                     .arg = m->number[of[plan->map[i]]],
			                     .map = &m->maps[i] };
	add_value(m, m->p.m), add_value(m, m->p.n), add_value(m, m->p.k);
	if (o->batched)
		add_value(m, m->p.batch ? m->p.batch : 1);
	add_argument(m, ALPHA, o->alpha), add_argument(m, BETA, o->beta), add_argument(m, C, o->beta);
	add_argument(m, BIAS, o->bias), add_argument(m, WORKSPACE, o->stream_k);
	add_argument(m, SCALE_D, o->scale_out != CPTX_TYPE_NONE), add_argument(m, META, o->sparse);
	RULE(m->nparams == info->nparams, "%s: the kernel has %zu parameters, and %u are known", m->g.name, info->nparams,
	     m->nparams);
	return true;
}

static uint32_t grid(void *user, uint32_t sms, uint64_t *workspace)
{
	const making *m = (const making *)user;
	cptx_gemm_plan plan;

	if (!cptx_gemm_check_problem(&m->opt, &m->p, sms, &plan, NULL))
		return 1;
	*workspace = plan.workspace;
	return plan.grid;
}

/* Kernels whose parameters add_params does not know; the shape is chosen, which may have made the rows .unaligned. */
static bool may_be_bundled(const making *m, cptx_error *err)
{
	const cptx_gemm_opt *o = &m->opt;

	RULE(!tma_gemm_has_weights(o),
	     "%s: B of .%s beside A of .%s: weights of few bits cannot be bundled as a GEMM; cptx_bundle_add takes any kernel",
	     m->g.name, cptx_type_name(o->b), cptx_type_name(o->a));
	RULE(o->mma != CPTX_GEMM_GEMV, "%s: gemv cannot be bundled as a GEMM; take another .mma", m->g.name);
	RULE(!o->strided, "%s: matrices at distances of their own (.strided) cannot be bundled", m->g.name);
	RULE(!o->unaligned, "%s: rows that are no multiples of 16 bytes cannot be bundled; pad them", m->g.name);
	return true;
}

static bool add_kernel(cptx_bundle *b, making *m, cptx_module *module, cptx_error *err)
{
	const char *name = m->opt.name ? m->opt.name : "gemm";
	cptx_gemm_plan plan;
	cptx_kernel_info info;

	if (!cptx_gemm_check(&m->opt, NULL, NULL, err) || !may_be_bundled(m, err) ||
	    !cptx_gemm_check_problem(&m->opt, &m->p, SMS_UNKNOWN, &plan, err) || !cptx_gemm_build(module, &m->opt, err))
		return false;
	if (!cptx_module_freeze(module) || !cptx_module_kernel(module, name, &info))
		return error_set(err, CPTX_E_STATE, NOWHERE, "bundle: %s: the kernel cannot be found", m->g.name);
	add_args(m);
	snprintf(m->about, sizeof m->about, "gemm %llux%llux%llux%u, %s * %s -> %s, layout %c%c", (unsigned long long)m->p.m,
	         (unsigned long long)m->p.n, (unsigned long long)m->p.k, m->p.batch ? m->p.batch : 1, cptx_type_name(m->opt.a),
	         cptx_type_name(m->opt.b), cptx_type_name(m->opt.out), m->opt.a_m_major ? 'n' : 't',
	         m->opt.b_n_major ? 'n' : 't');
	return add_params(m, &plan, &info, err) &&
	       cptx_bundle_add(b,
	                       CPTX_OPT(cptx_bundle_kernel, .name = m->g.name, .about = m->about, .target = m->g.target,
	                                .note = m->note, .module = module, .kernel = name, .nargs = m->nargs, .args = m->args,
	                                .nparams = m->nparams, .params = m->params, .threads = plan.threads, .smem = plan.smem,
	                                .grid = grid, .user = m, .machine_code = m->g.machine_code, .no_ptx = m->g.no_ptx,
	                                .compiler = m->g.compiler, .cache = m->g.cache),
	                       err);
}

/* Operands of which only the alignment counts here. */
static void stand_in(cptx_gemm_problem *p)
{
	p->a = p->b = p->c = p->d = p->bias = p->scale_a = p->scale_b = p->workspace = p->scale_d = p->meta = 1 << 20;
}

static bool read_gemm(making *m, const cptx_bundle_gemm *gemm, cptx_error *err)
{
	if (!OPTIONS_READ(cptx_bundle_gemm, &m->g, gemm, NOWHERE, err) || !IS_GIVEN(m->g.opt, "options struct", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_opt, &m->opt, m->g.opt, NOWHERE, err))
		return false;
	RULE(m->g.name && *m->g.name, "an entry needs a .name");
	m->target = m->g.target ? cptx_target_find(m->g.target) : NULL;
	RULE(m->target, "%s: there is no target \"%s\"", m->g.name, m->g.target ? m->g.target : "NULL");
	RULE(!m->opt.grouped && !m->opt.timeline, "%s: neither lists of problems nor timelines can be bundled", m->g.name);
	RULE(!m->opt.experts, "%s: a kernel for experts, whose counts the device has, cannot be bundled as a GEMM", m->g.name);
	RULE(!m->opt.nparams,
	     "%s: a kernel with .params of its visitors cannot be bundled as a GEMM; cptx_bundle_add takes any kernel",
	     m->g.name);
	m->p = (cptx_gemm_problem){ .m = m->g.m, .n = m->g.n, .k = m->g.k, .batch = m->g.batch };
	stand_in(&m->p);
	return true;
}

bool cptx_bundle_add_gemm(cptx_bundle *b, const cptx_bundle_gemm *gemm, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };

	err = err ? err : &own;
	if (err->code != CPTX_OK || !IS_GIVEN(b, "bundle", NOWHERE, err) || !IS_GIVEN(gemm, "GEMM", NOWHERE, err))
		return false;
	making *m = NEW(making);
	cptx_module *module = cptx_module_new(NULL);
	const bool ok = m ? read_gemm(m, gemm, err) && choose(m, err) && add_kernel(b, m, module, err)
	                  : error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	cptx_module_destroy(module);
	free(m);
	return ok;
}
