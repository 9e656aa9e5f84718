/* SPDX-License-Identifier: MIT */
/* Attention in the tuning database: a candidate is the shape that the options leave open. */
#include "attention/tuned.h"
#include "attention/attention.h"
#include "base/options.h"
#include "kit/tuned.h"

/* Goes up with a change of the generators after which a shape may take another time. */
enum { VERSION = 1 };

static const char *mma_word(unsigned v)
{
	return v < CPTX_ATTENTION_MMAS ? cptx_attention_mma_name((enum cptx_attention_mma)v) : "?";
}

#define ATTENTION_WORD_NUMBER KIT_NUMBER, NULL
#define ATTENTION_WORD_BOOL KIT_BOOL, NULL
#define ATTENTION_WORD_TYPE KIT_TYPE, NULL
#define ATTENTION_WORD_MMA KIT_WORD, mma_word
#define ATTENTION_WORD_POINTER KIT_NOT_TEXT, NULL
static const kit_field fields[] = {
#define ATTENTION_FIELD(id, field, type, set, least, most, step, about)                                                     \
	KIT_FIELD(#field, offsetof(cptx_attention_opt, field), ATTENTION_WORD_##type),
#include "attention/options.def"
};
static const kit_family family = { "attention", VERSION, fields, ARRAY_LEN(fields), sizeof(cptx_attention_opt) };
static const cptx_attention_opt nothing = { .name = NULL };

static kit_problem problem_of(const cptx_attention_opt *o, const cptx_attention_problem *p)
{
	return (kit_problem){
		.family = &family,
		.asked = o,
		.base = &nothing,
		.function = o->name,
		.dims = { p->batch, p->heads, p->kv_heads ? p->kv_heads : p->heads, p->queries, p->keys,
		          o->window ? (uint64_t)MIN(p->window_left, p->keys) + MIN(p->window_right, p->keys) + 1 : 0 },
	};
}

/* ---- measuring ---- */

typedef struct bench {
	cptx_device *dev;
	const cptx_attention_opt *asked;
	cptx_attention_problem p;
} bench;

static bool build(void *user, const void *candidate, cptx_module *m, cptx_error *err)
{
	(void)user;
	return cptx_attention_build(m, (const cptx_attention_opt *)candidate, err) != NULL;
}

static uint32_t launch(void *user, const void *candidate, const cptx_program *program, cptx_launch **launches, uint32_t room,
                       cptx_error *err)
{
	const bench *b = (const bench *)user;

	(void)room;
	launches[0] = cptx_attention_launch(program, b->dev, (const cptx_attention_opt *)candidate, &b->p, err);
	return launches[0] != NULL;
}

static size_t choose(void *user, void *choices, size_t room, cptx_error *err)
{
	const bench *b = (const bench *)user;

	return cptx_attention_auto(b->asked, &b->p, cptx_device_get_info(b->dev)->sms, (cptx_attention_choice *)choices, room,
	                           err);
}

static bool make_operands(void *user, const void *candidates, uint32_t n, cptx_error *err)
{
	bench *b = (bench *)user;
	const cptx_attention_opt *o = b->asked;
	cptx_attention_problem *p = &b->p;
	const uint64_t of_q = (uint64_t)p->batch * p->heads * p->queries;
	const uint64_t of_k = (uint64_t)p->batch * (p->kv_heads ? p->kv_heads : p->heads) * p->keys;
	const uint32_t dim_v = attention_dim_v(o);
	const enum cptx_type out = attention_out(o);

	(void)candidates, (void)n;
	p->q = kit_tuned_operand(b->dev, o->in, of_q * o->dim * cptx_type_bits(o->in) / 8, err);
	p->k = kit_tuned_operand(b->dev, o->in, of_k * o->dim * cptx_type_bits(o->in) / 8, err);
	p->v = kit_tuned_operand(b->dev, o->in, of_k * dim_v * cptx_type_bits(o->in) / 8, err);
	p->o = kit_tuned_operand(b->dev, out, of_q * dim_v * cptx_type_bits(out) / 8, err);
	p->lse = o->lse ? kit_tuned_operand(b->dev, CPTX_F32, of_q * sizeof(float), err) : 0;
	p->sinks = o->sinks ? kit_tuned_operand(b->dev, CPTX_F32, (uint64_t)p->heads * sizeof(float), err) : 0;
	return err->code == CPTX_OK;
}

static void free_operands(void *user)
{
	const bench *b = (const bench *)user;
	const uint64_t all[] = { b->p.q, b->p.k, b->p.v, b->p.o, b->p.lse, b->p.sinks };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		cptx_mem_free(b->dev, all[i]);
}

bool cptx_attention_measure(cptx_tune *db, cptx_device *dev, const cptx_attention_opt *opt,
                            const cptx_attention_problem *problem, const cptx_tune_use *use, cptx_tune_done *done,
                            cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_attention_opt o;
	cptx_tune_use u;
	bench b = { .dev = dev, .asked = &o };

	err = err ? err : &own;
	if (!IS_GIVEN(dev, "device", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !IS_GIVEN(problem, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_attention_opt, &o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_attention_problem, &b.p, problem, NOWHERE, err) || !kit_tuned_read_use(&u, use, err))
		return false;
	if (o.varlen || o.page)
		return error_set(err, CPTX_E_ARG, NOWHERE,
		                 "attention: packed sequences and pages are not measured, since their lengths are the problem's");
	const cptx_attention_stride dense = { 0, 0, 0 };
	b.p.q_stride = b.p.k_stride = b.p.v_stride = b.p.o_stride = dense;
	const kit_offer offer = { .problem = problem_of(&o, &b.p),
		                      .choice = sizeof(cptx_attention_choice),
		                      .at = offsetof(cptx_attention_choice, opt),
		                      .choose = choose,
		                      .operands = make_operands,
		                      .release = free_operands,
		                      .build = build,
		                      .launch = launch,
		                      .user = &b };
	return kit_tuned_measure_offer(db, dev, &offer, &u, done, err);
}

/* ---- look-ups ---- */

typedef struct chosen {
	kit_kept kept; /* without a program */
	cptx_attention_opt asked, opt;
	uint64_t dims[CPTX_TUNE_DIMS];
} chosen;

typedef struct search {
	const kit_runner *r;
	const cptx_attention_opt *asked;
	const cptx_attention_problem *p;
} search;

static bool fits(void *user, const void *found)
{
	const search *s = (const search *)user;
	const cptx_attention_opt *o = (const cptx_attention_opt *)found;

	return cptx_attention_check(o, s->r->target, NULL, NULL) &&
	       cptx_attention_check_problem(o, s->p, cptx_device_get_info(s->r->dev)->sms, NULL, NULL);
}

static bool measure_missing(void *user, cptx_tune *db, const cptx_tune_use *use)
{
	const search *s = (const search *)user;

	return cptx_attention_measure(db, s->r->dev, s->asked, s->p, use, NULL, NULL);
}

bool attention_same_options(const cptx_attention_opt *a, const cptx_attention_opt *b)
{
	bool same = a->user == b->user && (a->name == b->name || (a->name && b->name && !strcmp(a->name, b->name)));

#define ATTENTION_FIELD(id, field, type, set, least, most, step, about) same &= a->field == b->field;
#include "attention/options.def"
	return same;
}

/* Lengths that grow from call to call make ever more problems: only the latest are kept. */
static void forget_behind(kit_kept *c)
{
	enum { MOST_CHOICES = 64 };

	for (unsigned i = 1; c->next && i < MOST_CHOICES; i++)
		c = c->next;
	kit_kept_free(c->next);
	c->next = NULL;
}

const cptx_attention_opt *attention_tuned_choose(kit_runner *r, kit_kept **choices, const cptx_attention_opt *o,
                                                 const cptx_attention_problem *p)
{
	search s = { r, o, p };
	const kit_search k = { problem_of(o, p), fits, measure_missing, &s };
	chosen *c = (chosen *)*choices;

	if (o->bq || o->bk || o->stages || o->warps || o->varlen || o->page)
		return o;
	while (c && !(attention_same_options(&c->asked, o) && !memcmp(c->dims, k.problem.dims, sizeof c->dims)))
		c = (chosen *)c->kept.next;
	if (c)
		return &c->opt;
	c = (chosen *)kit_kept_new(sizeof *c, o->name, NULL);
	if (!c)
		return o;
	c->asked = c->opt = *o;
	if (!kit_tuned_find(r, &k, &c->opt))
		c->opt = *o;
	c->asked.name = c->opt.name = c->kept.name;
	memcpy(c->dims, k.problem.dims, sizeof c->dims);
	c->kept.next = *choices, *choices = &c->kept;
	forget_behind(*choices);
	return &c->opt;
}

/* ---- options as text ---- */

bool cptx_attention_options_read(const char *text, cptx_attention_opt *opt, cptx_error *err)
{
	cptx_attention_opt o;

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_attention_opt, &o, opt, NOWHERE, err) ||
	    !kit_options_read(&family, text, &o, err))
		return false;
	OPTIONS_WRITE(cptx_attention_opt, opt, &o);
	return true;
}
