/* SPDX-License-Identifier: MIT */
/*
 * Picks the shape of a GEMM for a problem: all shapes of the generator's model that its rules allow are tried, each with
 * whole tiles and with tiles shared along K, and those that the model says are fastest are kept.
 */
#include "base/options.h"
#include "gemm/auto.h"
#include "gemm/options.h"

#include <math.h>

/* ---- choices ---- */

static cptx_gemm_choice *kept(const gemm_pick *x, size_t i)
{
	return (cptx_gemm_choice *)(void *)(x->choices + i * x->size);
}

static void keep(gemm_pick *x, const cptx_gemm_choice *choice)
{
	size_t i = x->n < x->room ? x->n++ : x->room;

	for (; i > 0 && choice->us < kept(x, i - 1)->us; i--)
		if (i < x->room)
			memcpy(kept(x, i), kept(x, i - 1), x->size);
	if (i == x->room)
		return;
	CHOICE_WRITE(cptx_gemm_choice, cptx_gemm_opt, x->choices, i, x->size, x->opt_size, choice);
}

/* The time of the copies of A and B whose rows are unaligned: they are read and written once, and read once more; then all
 * CTAs wait for one another. */
static double copies_us(const gemm_pick *x, const tma_gemm *t)
{
	enum { READ_AND_WRITTEN = 2, BARRIER_US = 3 };
	double bytes = 0;

	for (enum gemm_which w = GEMM_A; w <= GEMM_B; w = (enum gemm_which)(w + 1)) {
		const gemm_stored s = tma_gemm_stored(t, x->p, w);
		bytes += tma_gemm_is_copied(t, w) ? (double)s.rows * (double)s.cols * s.count * s.bits / 8 : 0;
	}
	return bytes > 0 ? READ_AND_WRITTEN * bytes / (1e3 * x->chip.memory_gbs) + BARRIER_US : 0;
}

/* Keeps a choice, if the problem can be done so. */
static void offer(const gemm_model *m, gemm_pick *x, const tma_gemm *t, const cptx_gemm_choice *choice)
{
	cptx_gemm_choice c = *choice;
	cptx_gemm_problem p = *x->p;

	p.ctas = c.ctas;
	if ((x->whole_tiles && c.opt.stream_k) || !cptx_gemm_check_problem(&c.opt, &p, x->sms, NULL, NULL))
		return;
	m->predict(&c, x, t);
	c.us += copies_us(x, t);
	keep(x, &c);
}

/* Tiles shared by all CTAs, and if there are few tiles by some for each. */
static void offer_shared(const gemm_model *m, gemm_pick *x, const tma_gemm *t, cptx_gemm_choice c)
{
	const uint64_t tiles = tma_gemm_tiles(t, x->p) * or_one(x->p->batch), k_tiles = divide_up(x->p->k, t->bk);
	const uint64_t most = tma_gemm_resident(x->sms, t->cluster, or_one(t->per_sm));

	c.opt.stream_k = true;
	offer(m, x, t, &c);
	for (uint64_t parts = 2; parts <= 8 && parts * 4 <= k_tiles && tiles * parts <= most; parts++) {
		c.ctas = (uint32_t)(tiles * parts * t->cluster);
		offer(m, x, t, &c);
	}
}

/* Where two CTAs fit on a multiprocessor, also offers one on each. */
static void offer_one_each(const gemm_model *m, gemm_pick *x, const tma_gemm *t, cptx_gemm_choice c)
{
	const uint64_t tiles = tma_gemm_tiles(t, x->p) * or_one(x->p->batch), k_tiles = divide_up(x->p->k, t->bk);

	for (int shared = 0; t->per_sm > 1 && shared < 2; shared++) {
		c.opt.stream_k = shared, c.ctas = x->sms;
		if (tiles * (shared ? k_tiles : 1) > x->sms)
			offer(m, x, t, &c);
	}
}

/* ---- stages and groups, which follow from the tile ---- */

static bool fits(const gemm_pick *x, const cptx_gemm_opt *o) { return cptx_gemm_check(o, x->target, NULL, NULL); }

/* The most stages that fit and suit; 0: not even two fit. */
static uint32_t most_stages(const gemm_model *m, const gemm_pick *x, cptx_gemm_opt o)
{
	uint32_t most = 0;

	for (o.stages = GEMM_MOST_stages; o.stages >= GEMM_LEAST_stages; o.stages--) {
		if (!fits(x, &o))
			continue;
		most = MAX(most, o.stages);
		if (!m->suits || m->suits(&o, x->target))
			return o.stages;
	}
	return most;
}

/* Rows of clusters that are rasterized together: by the order of generators that have one, else so many that the tiles of a
 * round are about a square of elements. */
static uint32_t best_group(const tma_gemm *t, const gemm_pick *x)
{
	const cptx_gemm_opt *o = t->o;
	const uint32_t cm = or_one(o->cluster_m), cn = or_one(o->cluster_n);

	if (t->order.rows) {
		const cptx_gemm_problem in = tma_gemm_inner_problem(o, x->p);
		const gemm_order order = gemm_order_of(o, x->sms);
		return gemm_order_rows(&order, divide_up(in.m, o->bm * cm), divide_up(in.n, o->bn * cn),
		                       tma_gemm_resident(x->sms, t->cluster, or_one(o->per_sm)));
	}
	return MAX((uint32_t)(sqrt((double)x->sms / (t->pair ? 2 : 1) * o->bn / o->bm) / cm + 0.5), 1u);
}

void gemm_auto_fit(cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	const bool far = p->ldc || p->ldd || p->stride_c || p->stride_d;
	const tma_gemm t = { .any_row_of_d = !far, .o = o }; /* whether all kernels take rows of N the search sees */

	if (o->grouped)
		return;
	o->strided |= far || p->lda || p->ldb || p->stride_a || p->stride_b;
	o->unaligned |= tma_gemm_unaligned(&t, p) & ~(o->gather ? CPTX_GEMM_A : 0u);
}

/* The options with what the rows of the problem ask for. */
static cptx_gemm_opt fitted(const gemm_generator *g, const gemm_pick *x, const cptx_gemm_opt *given)
{
	cptx_gemm_opt o = *given;

	if (!o.grouped) {
		const tma_gemm t = gemm_describe(g, &o);
		o.unaligned |= tma_gemm_unaligned(&t, x->p) & ~(o.gather ? CPTX_GEMM_A : 0u);
	}
	return o;
}

static void offer_all(const gemm_generator *g, gemm_pick *x, const cptx_gemm_opt *opt)
{
	const cptx_gemm_opt fit = fitted(g, x, opt), *o = &fit;
	const tma_gemm t = gemm_describe(g, o);
	cptx_gemm_choice c = { .opt = *o };

	if (o->unaligned != opt->unaligned && !fits(x, o))
		return;

	c.opt.group = g->model->no_ring ? 0 : o->group ? o->group : best_group(&t, x);
	offer(g->model, x, &t, &c);
	if (g->model->no_ring)
		return;
	offer_shared(g->model, x, &t, c);
	if (g->model->one_each)
		offer_one_each(g->model, x, &t, c);
}

/* ---- the search ---- */

static uint32_t get(const cptx_gemm_opt *o, const gemm_axis *a)
{
	const char *field = (const char *)o + a->field;

	return a->is_flag ? *(const bool *)field : *(const uint32_t *)(const void *)field;
}

static void set(cptx_gemm_opt *o, const gemm_axis *a, int32_t value)
{
	char *field = (char *)o + a->field;

	if (a->is_flag)
		*(bool *)field = value;
	else
		*(uint32_t *)(void *)field = (uint32_t)value;
}

/* All candidates along the axes from number `axis` on. */
static void try_axes(const gemm_generator *g, gemm_pick *x, cptx_gemm_opt o, uint32_t axis)
{
	const gemm_model *m = g->model;
	const gemm_axis *a = &m->axes[axis];

	if (axis == GEMM_AXES || !a->there) {
		if (!fits(x, &o))
			return;
		if (m->no_ring)
			offer_all(g, x, &o);
		else if (m->stages_are_an_axis ? m->suits(&o, x->target) : (o.stages = most_stages(m, x, o)) != 0)
			offer_all(g, x, &o);
		return;
	}
	const bool stays = a->simplest == GEMM_AS_GIVEN && get(&o, a);
	for (int32_t v = a->first;; v = a->add ? v + a->add : 2 * v) {
		set(&o, a, v);
		try_axes(g, x, o, axis + 1);
		if (stays || v == a->last)
			return;
	}
}

/* Sets the options to the shape that fits if any does. */
static void simplify(const gemm_model *m, cptx_gemm_opt *o)
{
	o->stages = m->no_ring ? 0 : GEMM_LEAST_stages, o->stream_k = false;
	if (m->clusters)
		o->cluster_m = o->cluster_n = 1;
	for (uint32_t i = 0; i < GEMM_AXES && m->axes[i].there; i++)
		if (m->axes[i].simplest != GEMM_AS_GIVEN)
			set(o, &m->axes[i], m->axes[i].simplest);
}

static void search(const gemm_generator *g, gemm_pick *x, cptx_gemm_opt o)
{
	const gemm_model *m = g->model;

	for (uint32_t i = 0; i < MAX(m->cluster_count, 1u); i++) {
		if (m->clusters)
			o.cluster_m = m->clusters[i][0], o.cluster_n = m->clusters[i][1];
		if (or_one(o.cluster_m) * or_one(o.cluster_n) <= x->sms)
			try_axes(g, x, o, 0);
	}
}

/* ---- the public calls ---- */

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "gemm: " __VA_ARGS__);                                               \
	while (0)

/* The target that is meant: of mma.sync the first that has the kernel, for its chips differ; of others any. */
static const cptx_target *target_of(const gemm_generator *g, const cptx_gemm_opt *o, const cptx_target *target)
{
	return target || g->model->by != GEMM_BY_SYNC ? target : cptx_target_find(o->tma ? "sm_90" : "sm_80");
}

/* The last chip of the model up to the target, or its first. */
static gemm_chip chip_of(const gemm_model *m, const cptx_target *target)
{
	const gemm_chip *found = NULL;

	for (uint32_t i = 0; i < GEMM_CHIPS; i++)
		if (gemm_chips[i].products[m->by] > 0 && (!found || (target && gemm_chips[i].from <= target->number)))
			found = &gemm_chips[i];
	gemm_chip c = found ? *found : gemm_chips[0];
	c.ghz = m->ghz > 0 ? m->ghz : c.ghz, c.memory_gbs = m->memory_gbs > 0 ? m->memory_gbs : c.memory_gbs;
	return c;
}

static bool read_options(cptx_gemm_opt *o, const cptx_gemm_opt *given, cptx_error *err)
{
	RULE(given, "no options were given (NULL)");
	return OPTIONS_READ(cptx_gemm_opt, o, given, NOWHERE, err);
}

const char *cptx_gemm_model(const cptx_gemm_opt *opt, const cptx_target *target, uint32_t *sms)
{
	cptx_gemm_opt o;
	const gemm_generator *g = read_options(&o, opt, NULL) ? gemm_generator_of(&o) : NULL;

	if (!g)
		return NULL;
	const gemm_chip chip = chip_of(g->model, target_of(g, &o, target));
	if (sms)
		*sms = chip.sms;
	return chip.name;
}

static bool can_pick(const cptx_gemm_opt *o, const gemm_pick *x, cptx_error *err)
{
	if (!CHOICES_FIT(cptx_gemm_choice, x->choices, x->size, x->room, err))
		return false;
	RULE(gemm_generator_of(o), ".mma = %u; there are mma.sync, wgmma, tcgen05 and gemv", (unsigned)o->mma);
	return true;
}

/* Makes of rows of experts a batch of matrices, of as many rows as an expert has. */
static void batch_of_experts(const cptx_gemm_opt *o, cptx_gemm_problem *p)
{
	uint64_t *rows = o->experts == CPTX_GEMM_EXPERTS_K ? &p->k : &p->m;
	const uint64_t average = o->experts == CPTX_GEMM_EXPERTS_MASKED ? *rows : divide_up(*rows, or_one(p->batch));

	*rows = MIN(p->expected ? p->expected : MAX(average, 1u), MAX(*rows, 1u));
}

/* All shapes of a generator; false: none can do the problem, and err says why. */
static bool search_all(const gemm_generator *g, gemm_pick *x, cptx_gemm_opt o, cptx_error *err)
{
	/* what no shape can mend is said of the simplest one */
	simplify(g->model, &o);
	if (o.mma == CPTX_GEMM_SYNC && (o.sparse || o.a == CPTX_F64)) /* 128 or 256 bytes, as these want */
		o.bk = o.sparse ? 128 : 16;
	if (o.mma == CPTX_GEMM_SYNC && o.experts == CPTX_GEMM_EXPERTS_K) /* which cp.async does not have */
		o.tma = true;
	if (o.mma == CPTX_GEMM_WGMMA && tma_gemm_has_weights(&o)) /* the first operand */
		o.swap = true;
	if (o.scale_out != CPTX_TYPE_NONE) /* whole blocks of columns of D, of which each is of one column or of two */
		o.bn = o.swiglu ? 256 : 128;
	if (!cptx_gemm_check(&o, x->target, NULL, err)) /* what is described has types that the kernel has */
		return false;
	const cptx_gemm_opt simplest = fitted(g, x, &o);
	if (!cptx_gemm_check(&simplest, x->target, NULL, err) || !cptx_gemm_check_problem(&simplest, x->p, x->sms, NULL, err))
		return false;
	search(g, x, o);
	return true;
}

/* Whether a problem has so few rows that the kernel for few rows is tried, too, or weights that the other one cannot take
 * (found: it can).  Its model counts in times of the same chip. */
static bool may_be_gemv(const cptx_gemm_opt *o, const cptx_gemm_problem *p, bool found)
{
	const bool alone = !found && tma_gemm_has_weights(o);

	return o->mma != CPTX_GEMM_GEMV && (alone || p->m <= GEMM_GEMV_ROWS_MOST) && is_16_bits(o->a) &&
	       (tma_gemm_has_weights(o) || (o->a == o->b && o->scale == CPTX_TYPE_NONE)) && !o->grouped && !o->experts &&
	       !o->timeline && !o->swap && !o->a_tmem && or_one(o->per_sm) == 1 && !p->ctas;
}

size_t gemm_auto_fill(gemm_pick *x, const cptx_gemm_opt *opt, const cptx_gemm_problem *p, cptx_error *err)
{
	cptx_gemm_opt o;
	cptx_gemm_problem problem;

	if (!read_options(&o, opt, err) || !OPTIONS_READ(cptx_gemm_problem, &problem, p, NOWHERE, err) || !can_pick(&o, x, err))
		return 0;
	const gemm_generator *g = gemm_generator_of(&o);
	x->opt_size = opt->size;
	x->p = &problem, x->target = target_of(g, &o, x->target), x->chip = chip_of(g->model, x->target);
	x->products = g->model->by <= GEMM_BY_SCALED ? x->chip.products[g->model->by] : 0;
	x->sms = or_one(x->sms);
	if (o.experts)
		batch_of_experts(&o, &problem);
	gemm_auto_fit(&o, &problem);
	cptx_error why = { .code = CPTX_OK };
	const bool found = search_all(g, x, o, &why);
	if (x->any_mma && may_be_gemv(&o, &problem, found)) {
		o.mma = CPTX_GEMM_GEMV, o.kind = (enum cptx_tcgen05_kind)0, o.group = 0;
		search_all(&gemm_gemv, x, o, NULL);
	}
	if (!found && !x->n && err)
		*err = why;
	return x->n;
}

size_t gemm_auto_whole(const cptx_gemm_opt *o, const cptx_target *target, uint32_t sms, const cptx_gemm_problem *p,
                       bool any_mma, cptx_gemm_choice *choices, size_t room, cptx_error *err)
{
	gemm_pick x = { .choices = (char *)choices,
		            .size = sizeof *choices,
		            .room = room,
		            .target = target,
		            .sms = sms,
		            .whole_tiles = true,
		            .any_mma = any_mma };

	return gemm_auto_fill(&x, o, p, err);
}

size_t cptx_gemm_auto_(const cptx_gemm_opt *opt, const cptx_target *target, const cptx_gemm_problem *p, uint32_t sms,
                       cptx_gemm_choice *choices, size_t size, size_t room, cptx_error *err)
{
	gemm_pick x = { .choices = (char *)choices, .size = size, .room = room, .target = target, .sms = sms };

	return gemm_auto_fill(&x, opt, p, err);
}
