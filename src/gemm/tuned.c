/* SPDX-License-Identifier: MIT */
/* GEMMs in the tuning database: a candidate is the shape that the options leave open, and the CTAs of a launch. */
#include "gemm/tuned.h"
#include "base/options.h"
#include "gemm/auto.h"
#include "kit/tuned.h"

/* The version of the times: a change of the generators after which a shape may take another time adds one. */
enum { VERSION = 1, SETS = 8 };
#define APART_BYTES (256u << 20) /* of operands, so that a set has left L2 when its turn comes again */

typedef struct candidate {
	cptx_gemm_opt opt;
	uint32_t ctas;
} candidate;

static const char *mma_word(unsigned v) { return cptx_gemm_mma_name((enum cptx_gemm_mma)v); }
static const char *kind_word(unsigned v)
{
	return v < CPTX_TCGEN05_KINDS ? cptx_tcgen05_kind_name((enum cptx_tcgen05_kind)v) : "?";
}
static const char *experts_word(unsigned v) { return cptx_gemm_experts_name((enum cptx_gemm_experts)v); }

#define GEMM_WORD_NUMBER KIT_NUMBER, NULL
#define GEMM_WORD_BOOL KIT_BOOL, NULL
#define GEMM_WORD_TYPE KIT_TYPE, NULL
#define GEMM_WORD_MMA KIT_WORD, mma_word
#define GEMM_WORD_KIND KIT_WORD, kind_word
#define GEMM_WORD_EXPERTS KIT_WORD, experts_word
#define GEMM_WORD_POINTER KIT_NOT_TEXT, NULL
static const kit_field fields[] = {
#define GEMM_FIELD(id, field, type, set, none, least, most, why, about)                                                     \
	KIT_FIELD(#field, offsetof(cptx_gemm_opt, field), GEMM_WORD_##type),
#include "gemm/options.def"
	{ "ctas", KIT_NUMBER, offsetof(candidate, ctas), NULL },
};
static const kit_family family = { "gemm", VERSION, fields, ARRAY_LEN(fields), sizeof(candidate) };
uint32_t gemm_tuned_version(void) { return VERSION; }

static const candidate nothing = { .ctas = 0 };

static kit_problem problem_of(const candidate *asked, const cptx_gemm_problem *p)
{
	return (kit_problem){ .family = &family,
		                  .asked = asked,
		                  .base = &nothing,
		                  .function = asked->opt.name,
		                  .dims = { p->m, p->n, p->k, or_one(p->batch) } };
}

/* ---- measuring ---- */

typedef struct bench {
	cptx_device *dev;
	cptx_gemm_problem p; /* with the operands of set 0 */
	candidate *candidates;
	uint32_t sets;
	uint64_t a[SETS], b[SETS];
} bench;

static bool build(void *user, uint32_t i, cptx_module *m, cptx_error *err)
{
	return cptx_gemm_build(m, &((bench *)user)->candidates[i].opt, err) != NULL;
}

static uint32_t launch(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
                       cptx_error *err)
{
	const bench *b = (const bench *)user;
	cptx_gemm_problem p = b->p;

	p.ctas = b->candidates[i].ctas;
	for (uint32_t s = 0; s < MIN(room, b->sets); s++) {
		p.a = b->a[s], p.b = b->b[s];
		if (!(launches[s] = cptx_gemm_launch(program, b->dev, &b->candidates[i].opt, &p, err)))
			return 0;
	}
	return MIN(room, b->sets);
}

static uint64_t operand(const bench *b, enum cptx_type type, uint64_t elements, cptx_error *err)
{
	return kit_tuned_operand(b->dev, type, elements * tma_gemm_bits(type) / 8, err);
}

/* The workspace of the candidates that copy A or B first: the largest, zeros. */
static bool make_workspace(bench *b, uint32_t n, cptx_error *err)
{
	cptx_gemm_plan plan;
	uint64_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		b->p.ctas = b->candidates[i].ctas;
		if (!cptx_gemm_check_problem(&b->candidates[i].opt, &b->p, cptx_device_get_info(b->dev)->sms, &plan, err))
			return false;
		most = MAX(most, plan.workspace);
	}
	return !most ||
	       ((b->p.workspace = cptx_mem_alloc(b->dev, most, err)) && cptx_mem_fill8(b->dev, b->p.workspace, 0, most, err));
}

/* Operands of random numbers, of A and B so many copies that none of them stays in L2. */
static bool make_operands(bench *b, const cptx_gemm_opt *o, uint32_t vec, cptx_error *err)
{
	cptx_gemm_problem *p = &b->p;
	const uint64_t n = or_one(p->batch), of_a = p->m * (o->sparse ? cptx_gemm_sparse_cols(p->k) : p->k) * n,
				   of_b = p->n * p->k * n, of_d = p->m * p->n * n;
	const uint64_t bytes = (of_a * tma_gemm_bits(o->a) + of_b * tma_gemm_bits(o->b)) / 8;

	p->d = operand(b, o->out, of_d, err);
	p->c = o->beta ? operand(b, o->out, of_d, err) : 0;
	p->bias = o->bias ? operand(b, CPTX_F32, p->n, err) : 0;
	if (o->scale != CPTX_TYPE_NONE && tma_gemm_has_weights(o)) {
		const uint64_t factors = (o->scale_k ? divide_up(p->k, o->scale_k) : 1) * p->n;
		p->scale_b = operand(b, o->scale, factors, err);
		p->zero_b = o->zeros ? operand(b, o->scale, factors, err) : 0;
	} else if (o->scale != CPTX_TYPE_NONE) {
		p->scale_a = operand(b, o->scale, cptx_gemm_scales_bytes(p->m, p->k, vec) * n, err);
		p->scale_b = operand(b, o->scale, cptx_gemm_scales_bytes(p->n, p->k, vec) * n, err);
	}
	if (o->scale_out != CPTX_TYPE_NONE)
		p->scale_d =
			operand(b, CPTX_F32, cptx_gemm_scale_pitch(p->m) * (tma_gemm_columns(o, p->n) / GEMM_SCALE_BLOCK) * n, err);
	if (o->sparse) {
		const uint64_t bytes_of_meta = cptx_gemm_sparse_meta(p->m, p->k) * 4 * n;
		p->meta = cptx_mem_alloc(b->dev, bytes_of_meta, err);
		cptx_mem_fill8(b->dev, p->meta, 0x44, bytes_of_meta, err); /* elements 0 and 1 of each four */
	}
	do {
		b->a[b->sets] = operand(b, o->a, of_a, err), b->b[b->sets] = operand(b, o->b, of_b, err);
		b->sets++;
	} while (err->code == CPTX_OK && !kit_tuned_emulated(b->dev) && b->sets < SETS && b->sets * bytes < APART_BYTES);
	return err->code == CPTX_OK;
}

static void free_operands(bench *b)
{
	const uint64_t all[] = { b->p.d,       b->p.c,      b->p.bias, b->p.scale_a,  b->p.scale_b,
		                     b->p.scale_d, b->p.zero_b, b->p.meta, b->p.workspace };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		cptx_mem_free(b->dev, all[i]);
	for (uint32_t s = 0; s < b->sets; s++)
		cptx_mem_free(b->dev, b->a[s]), cptx_mem_free(b->dev, b->b[s]);
}

/* The best shapes of the model, without stream_k, for which the runner has no workspace. */
static uint32_t candidates_of(candidate *to, uint32_t room, cptx_device *dev, const cptx_gemm_opt *o,
                              const cptx_gemm_problem *p, cptx_error *err)
{
	const cptx_device_info *info = cptx_device_get_info(dev);
	cptx_gemm_choice *c = NEW_ARRAY(cptx_gemm_choice, room);
	const cptx_target *target = info->target ? cptx_target_find(info->target) : NULL;
	const uint32_t n = c ? (uint32_t)gemm_auto_whole(o, target, info->sms, p, true, c, room, err) : 0;

	if (!c)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		to[i].opt = c[i].opt, to[i].ctas = c[i].ctas;
	free(c);
	return n;
}

static bool measure_all(cptx_tune *db, bench *b, const candidate *asked, const cptx_tune_use *use, cptx_tune_done *done,
                        cptx_error *err)
{
	cptx_gemm_plan plan;
	const kit_bench k = { .problem = problem_of(asked, &b->p),
		                  .candidates = b->candidates,
		                  .n = candidates_of(b->candidates, use->candidates, b->dev, &asked->opt, &b->p, err),
		                  .build = build,
		                  .launch = launch,
		                  .user = b };

	if (!k.n || !cptx_gemm_check(&b->candidates->opt, NULL, &plan, err))
		return false;
	const bool ok = make_operands(b, &asked->opt, plan.vec, err) && make_workspace(b, k.n, err) &&
	                kit_tuned_measure(db, b->dev, &k, use, done, err);
	free_operands(b);
	return ok;
}

bool cptx_gemm_measure(cptx_tune *db, cptx_device *dev, const cptx_gemm_opt *opt, const cptx_gemm_problem *problem,
                       const cptx_tune_use *use, cptx_tune_done *done, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	candidate asked = { .ctas = 0 };
	cptx_gemm_problem p;
	cptx_tune_use u;

	err = err ? err : &own;
	if (!IS_GIVEN(dev, "device", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !IS_GIVEN(problem, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_gemm_opt, &asked.opt, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_gemm_problem, &p, problem, NOWHERE, err) || !kit_tuned_read_use(&u, use, err))
		return false;
	if (asked.opt.experts)
		return error_set(err, CPTX_E_ARG, NOWHERE,
		                 "gemm: kernels for experts are not measured by sizes alone; cptx_gemm_tune takes counts of yours");
	if (asked.opt.nparams) /* what they point to may be written, and has a size that nobody knows here */
		return error_set(
			err, CPTX_E_ARG, NOWHERE,
			"gemm: a kernel with .params of its visitors is not measured, since nobody here can make what these "
			"point to; cptx_gemm_tune takes a problem with .args");
	bench b = { .dev = dev, .candidates = NEW_ARRAY(candidate, u.candidates) };
	b.p.m = p.m, b.p.n = p.n, b.p.k = p.k, b.p.batch = p.batch;
	b.p.alpha = asked.opt.alpha ? 1 : 0, b.p.beta = asked.opt.beta ? 1 : 0;
	const bool ok =
		b.candidates ? measure_all(db, &b, &asked, &u, done, err) : error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	free(b.candidates);
	return ok;
}

/* ---- look-ups ---- */

typedef struct search {
	const kit_runner *r;
	const candidate *asked;
	const cptx_gemm_problem *p;
} search;

static bool fits(void *user, const void *found)
{
	const search *s = (const search *)user;
	const candidate *c = (const candidate *)found;
	cptx_gemm_problem p = *s->p;

	p.ctas = c->ctas;
	return c->opt.bm && !c->opt.stream_k && cptx_gemm_check(&c->opt, s->r->target, NULL, NULL) &&
	       cptx_gemm_check_problem(&c->opt, &p, cptx_device_get_info(s->r->dev)->sms, NULL, NULL);
}

static bool measure_missing(void *user, cptx_tune *db, const cptx_tune_use *use)
{
	const search *s = (const search *)user;

	return cptx_gemm_measure(db, s->r->dev, &s->asked->opt, s->p, use, NULL, NULL);
}

bool gemm_tuned_choose(kit_runner *r, cptx_gemm_opt *o, const cptx_gemm_problem *p, uint32_t *ctas)
{
	const candidate asked = { .opt = *o };
	candidate best;
	search s = { r, &asked, p };
	const kit_search k = { problem_of(&asked, p), fits, measure_missing, &s };

	if (!kit_tuned_find(r, &k, &best))
		return false;
	*o = best.opt, *ctas = best.ctas;
	return true;
}

/* ---- options as text ---- */

bool cptx_gemm_options_read(const char *text, cptx_gemm_opt *opt, cptx_error *err)
{
	candidate c = { .ctas = 0 };

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_gemm_opt, &c.opt, opt, NOWHERE, err) ||
	    !kit_options_read(&family, text, &c, err))
		return false;
	if (c.ctas)
		return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: ctas is of a problem, not of the options");
	OPTIONS_WRITE(cptx_gemm_opt, opt, &c.opt);
	return true;
}
