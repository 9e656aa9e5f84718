/* SPDX-License-Identifier: MIT */
/*
 * Chooses where rows live and how many threads hold one.
 *
 * The model: a multiprocessor holds C CTAs, as registers and threads allow; each moves B bytes at the multiprocessor's share
 * of the bandwidth, and beside that needs a latency L in which it moves nothing: it starts, waits for the first load, meets
 * at barriers.  C CTAs hide each other's latency, so a round of them takes the longer of C * B / bandwidth and L + B /
 * bandwidth. Rounds follow one another, the last one with the CTAs that are left.
 */
#include "base/options.h"
#include "rows/rows.h"

#include <math.h>
#include <stdio.h>

/* A GPU for each architecture: its largest.  bandwidth: bytes in a microsecond that a copy reaches, of the memory. */
typedef struct chip {
	uint32_t number, sms;
	double bandwidth, l2; /* l2: bytes */
} chip;
static const chip chips[] = {
	{ 80, 108, 1.75e6, 40e6 }, { 90, 132, 4.2e6, 50e6 }, { 100, 148, 7.0e6, 126e6 }, { 120, 170, 1.6e6, 96e6 }
};

static const chip *chip_of(const cptx_target *t)
{
	const chip *best = &chips[1];

	for (size_t i = 0; t && i < ARRAY_LEN(chips); i++)
		if (chips[i].number <= t->number)
			best = &chips[i];
	return best;
}

/* Latencies, microseconds: of a CTA without reductions; of each reduction over lanes, a CTA, a cluster for each of its CTAs.
 * Seen on an H200. */
static const double start_us = 1.8, second_us = 2.5 /* a second launch */, lanes_us = 0.1, cta_us = 0.35,
					cluster_each_us = 0.08, cluster_share = 1;
/* Of rows in shared memory: the latency of a row where registers do not keep it, and of one in the only CTA of a
 * multiprocessor; of a reduction over a cluster; the time of
 * an element, of one with powers, and with Welford's formulas; what part of that is not hidden behind transfers, nor of the
 * vectors that L2 has; for how long memory stands still in each round; bytes that a multiprocessor must ask for at once.
 * Seen on an H100 and an H200. */
static const double ring_us = 0.55, ring_alone_us = 0.8, cluster_us = 1.3, element_us = 1.2e-5, power_us = 2.7e-5,
					welford_us = 3.8e-5, seen = 0.35, seen_l2 = 0.4, ring_stands_us = 0.15, enough_in_flight = 40e3;
enum {
	L2_FASTER = 4, /* than memory */
	AT_ONCE = UINT16_MAX /* rows of a CTA: as many as there are where all CTAs are there at once */,
	OWN_REGS = 16 /* addresses, sums, what is computed */,
	RING_REGS = 16 /* stages and barriers */
};

static uint32_t element_bytes(const cptx_rows_opt *o, uint32_t set)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(set, i) && rows_operands[i].kind == ROWS_MATRIX)
			bytes += rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
	return bytes;
}

/* Of a kernel that has any, about; of top-k with the time of its list. */
static uint32_t reductions_of(const cptx_rows_opt *o) { return o->kernel == CPTX_ROWS_TOP_K ? 3 : 2; }

static double element_time(const cptx_rows_opt *o)
{
	switch (o->kernel) {
	case CPTX_ROWS_SOFTMAX:
	case CPTX_ROWS_LOG_SOFTMAX:
	case CPTX_ROWS_CROSS_ENTROPY: return power_us;
	case CPTX_ROWS_LAYER_NORM: return welford_us;
	default: return element_us;
	}
}

static uint32_t vector_bytes(const cptx_rows_opt *o, uint32_t set)
{
	return rows_count(set, ROWS_VECTOR) * rows_bytes(o->weight);
}

/* Registers of a thread, as ptxas counts them: of several rows, products of elements are kept, too. */
static uint32_t regs_of(const cptx_rows_opt *o, const rows_shape *s)
{
	const uint32_t sums = rows_sum_operands(s), n = rows_elements(o, s);
	const uint32_t rows = rows_count(s->reads, ROWS_MATRIX) + (s->turns > 1 ? 0 : sums);
	const uint32_t held = n * s->held * rows_count(s->reads, ROWS_MATRIX);
	const uint32_t vectors = rows_count(s->reads, ROWS_VECTOR), all = s->turns > 1 ? n * s->turns * sums : 0;

	return (OWN_REGS + (s->ring ? RING_REGS : 0) + all + held + n * rows + (rows > 1 ? 2 * n : 0) + n * vectors / 4 +
	        (vectors > 1 ? 16 : 0) + 7) /
	       8 * 8;
}

/* CTAs that a multiprocessor holds. */
static uint32_t ctas_of(const cptx_rows_choice *c, const rows_shape *s, const cptx_target *t)
{
	const uint32_t threads = c->opt.threads, by_regs = CPTX_REGS_PER_SM / (c->regs * threads);
	const uint32_t by_threads = (t ? t->threads_per_sm : 2048) / threads, most = t ? t->ctas_per_sm : 32;
	const uint64_t smem = rows_smem(&c->opt, s) + ROWS_STATIC + rows_top_k_static(&c->opt, s),
				   room = t ? t->smem_per_sm : 228 * 1024;

	return (uint32_t)MIN(MIN(MIN(by_regs, by_threads), most), room / smem);
}

/* Reads of a row in memory, in bytes of one: later passes are cheap where all rows that are worked on stay in L2. */
static double passes_of(const cptx_rows_choice *c, const rows_shape *s, const chip *on, double read)
{
	const double worked_on = (double)on->sms * c->ctas_per_sm * s->part * read;

	return s->resident || s->local ? 1 : worked_on < 0.8 * on->l2 ? 1.9 : 2.3;
}

/* Few warps wait for themselves: of CTAs with sums of columns that have more than 16 elements in a thread, and of a
 * cluster's CTAs where a multiprocessor has less than 1024 threads, of chunks where it has less than 512.  As parts of the
 * time, seen on an H200. */
static double slow_threads(const cptx_rows_opt *o, const rows_shape *s, double ctas)
{
	const double n = rows_elements(o, s) * s->turns;

	if (s->sums)
		return n > 16 && s->rows == 1 && !s->cluster ? 1 + 0.03 * log2(n / 16) : 1;
	if (s->flows)
		return ctas * o->threads < 512 ? 1.04 : 1;
	return s->cluster && ctas * o->threads < 1024 ? 1.04 : 1;
}

/*
 * Rows in shared memory: in each round all CTAs of a multiprocessor work on a row.  Memory moves their bytes at its
 * bandwidth, and stands still for a moment; a CTA alone needs its latency and the time of its stores, and with one stage
 * that is read to the end also the time of its loads, which other CTAs hide in part.  CTAs that end are followed by others,
 * which begin with a latency, and the last ones do not fill the device.  CTAs with one row each are at different places in
 * theirs, so that some load while others store.
 */
static void predict_ring(cptx_rows_choice *c, const rows_shape *s, double bandwidth, uint32_t rows, uint32_t sms)
{
	const cptx_rows_opt *o = &c->opt;
	const double n = (double)s->rows * s->part, most = rows_units_at_once(o, s, sms, c->ctas_per_sm);
	const double per_sm = bandwidth / fmin(most * o->split / c->ctas_per_sm, sms), ctas = c->ctas_per_sm;
	const double read = n * element_bytes(o, s->reads), write = n * element_bytes(o, s->writes);
	const double each = s->local ? 0 : s->cluster ? cluster_us : reductions_of(o) * (s->rows > 1 ? lanes_us : cta_us);
	/* the first pass over chunks works on those that are there while others come */
	const double compute = n * element_time(o) * ctas * (s->flows ? 0.5 : 1);
	const double late = s->keeps || s->flows ? 0 : ctas > 1 || s->sums ? ring_us : ring_alone_us;
	const double own = late + each + compute, units = ceil((double)rows / s->rows);
	const double waits = o->stages == 1 && !s->keeps ? read / per_sm + start_us / 2 : 0;

	c->waves = units / most;
	c->in_flight = ctas * (o->stages - (s->keeps ? 0.25 : 0.6)) * read;
	const double hungry = fmax(1, enough_in_flight / c->in_flight), bytes = (read * hungry + write) / per_sm;
	/* vectors that shared memory has no room for come from L2 with each row */
	const double again = n / s->rows * vector_bytes(o, s->reads & ~s->shared_vectors) / (L2_FASTER * per_sm);
	const double moves = ctas * (bytes + again) + ring_stands_us + waits / ctas + (s->sums ? 0 : seen * compute);
	const double round = fmax(moves, own + waits + again + write / per_sm);
	const double taken = s->sums ? ceil(c->waves) : o->rows_each, waves = ceil(units / taken) / most;
	if (!s->sums && !s->cluster && o->rows_each == 1)
		c->us = start_us + c->waves * fmax(ctas * (1.01 * (read + write) / per_sm + seen_l2 * again),
		                                   start_us + own + (read + write) / per_sm / 2);
	else
		c->us = start_us + read / per_sm + ceil(waves) * (taken * round + (waves > 1 ? (start_us + each) / ctas : 0));
	c->us = fmax(c->us, c->memory_us * 1.02) * slow_threads(o, s, ctas);
}

/* What rows in parts take beside the first launch: a second one, and of top-k the list of each part. */
static double parts_us(const cptx_rows_opt *o, const rows_shape *s, uint32_t rows, uint32_t sms)
{
	enum { LARGE_K = 16 };
	const double list_us = o->kernel == CPTX_ROWS_TOP_K && o->k >= LARGE_K ? 0.1 : 0;

	return s->parts ? second_us + list_us * rows * o->split / sms : 0;
}

static void predict(cptx_rows_choice *c, const cptx_target *t, uint32_t rows, uint32_t sms)
{
	const cptx_rows_opt *o = &c->opt;
	const rows_shape s = rows_shape_of(o);
	const chip *on = chip_of(t);
	const double bandwidth = o->bandwidth ? o->bandwidth * 1e3 : on->bandwidth / on->sms * sms;
	const double per_sm = bandwidth / sms, read = element_bytes(o, s.reads), write = element_bytes(o, s.writes);
	const double each = s.local ? 0 : s.rows > 1 ? lanes_us : s.cluster ? cluster_each_us * o->split : cta_us;
	const double latency = start_us + reductions_of(o) * each, units = ceil((double)rows / s.rows) * o->split;

	c->regs = regs_of(o, &s);
	c->ctas_per_sm = MAX(c->opt.min_ctas && s.ring ? c->opt.min_ctas : ctas_of(c, &s, t), 1u);
	const double bytes = s.rows * (double)s.part * (read * passes_of(c, &s, on, read) + write);
	const double own = latency + (ceil((double)s.part / s.turn) - 1) * 0.7;
	/* CTAs of a cluster wait for one another, so that others' transfers hide theirs in part only */
	const double waits = s.cluster ? cluster_share * c->ctas_per_sm * bytes / per_sm : 0;
	c->waves = units / ((double)sms * c->ctas_per_sm);
	c->in_flight = c->ctas_per_sm * (double)o->threads * rows_elements(o, &s) * read;
	c->memory_us = rows * (double)o->n * (read + write) / bandwidth;
	if (s.ring) {
		predict_ring(c, &s, bandwidth, rows, sms);
		c->us += parts_us(o, &s, rows, sms);
		return;
	}
	const double full = floor(c->waves), rest = ceil((c->waves - full) * c->ctas_per_sm);
	const double round = fmax(c->ctas_per_sm * bytes / per_sm, own + waits + bytes / per_sm);
	c->us = full * round + (rest > 0 ? fmax(rest * bytes / per_sm, own + bytes / per_sm) : 0);
	if (!s.resident && s.sums) /* sums of columns are read and written in L2 for each row */
		c->us *= 2.5;
	c->us = fmax(c->us, c->memory_us * 1.02) + parts_us(o, &s, rows, sms);
}

/* ---- the search ---- */

typedef struct search {
	const cptx_rows_opt *o;
	const cptx_target *target;
	uint32_t rows, sms;
	cptx_rows_choice *best;
	size_t n, room;
	cptx_error why;
} search;

/* How many times twice or half the usual elements of a thread, and threads of a CTA. */
static int far_from_usual(const cptx_rows_choice *c)
{
	const rows_shape s = rows_shape_of(&c->opt);
	int far = 0;

	for (uint32_t n = rows_elements(&c->opt, &s); n > 16; n /= 2)
		far++;
	for (uint32_t n = rows_elements(&c->opt, &s); n < 8; n *= 2)
		far++;
	return far + (c->opt.threads < 128 || c->opt.threads > 512);
}

static bool better(const cptx_rows_choice *a, const cptx_rows_choice *b)
{
	if (a->us < b->us * 0.97 || b->us < a->us * 0.97)
		return a->us < b->us;
	/* as fast: in registers, fewer CTAs for a row, about 16 elements in a thread, whole rows, more that hide each other's
	 * latency */
	if (a->opt.place != b->opt.place)
		return a->opt.place < b->opt.place;
	if (a->opt.split != b->opt.split)
		return a->opt.split < b->opt.split;
	const int far_a = far_from_usual(a), far_b = far_from_usual(b);
	if (far_a != far_b)
		return far_a < far_b;
	return !a->opt.chunks != !b->opt.chunks ? !a->opt.chunks : a->in_flight > b->in_flight;
}

static void insert(search *x, const cptx_rows_choice *c)
{
	size_t at = x->n;

	while (at && better(c, &x->best[at - 1]))
		at--;
	if (at >= x->room)
		return;
	x->n = MIN(x->n + 1, x->room);
	for (size_t i = x->n - 1; i > at; i--)
		x->best[i] = x->best[i - 1];
	x->best[at] = *c;
}

static uint32_t at_once(const search *x, cptx_rows_choice *c, const rows_shape *s)
{
	const uint32_t units = (x->rows + s->rows - 1) / s->rows;

	c->regs = regs_of(&c->opt, s);
	const uint32_t most = rows_units_at_once(&c->opt, s, x->sms, MAX(ctas_of(c, s, x->target), 1u));
	return (units + most - 1) / most;
}

/* As many chunks as a row has, or as shared memory has room for; 0: there are too few for them to be of use. */
static uint32_t chunks_for(const search *x, const cptx_rows_opt *opt)
{
	enum { MOST = 16, FEWEST = 2048 /* turns of a row, of all threads */ };
	cptx_rows_opt o = *opt;

	o.chunks = MOST;
	const rows_shape s = rows_shape_of(&o);
	const uint32_t bytes = rows_stage_bytes(&o, &s), room = x->target ? x->target->smem_per_cta - ROWS_STATIC : ROWS_SMEM;
	return s.turns * o.threads < FEWEST || !bytes ? 0 : MIN(MIN(s.turns, room / bytes), MOST);
}

/* One shape; what the options give stays.  chunks: of rows, in place of stages. */
static void consider(search *x, enum cptx_rows_place place, uint32_t threads, uint32_t per_row, uint32_t split,
                     uint32_t stages, uint32_t rows_each, bool chunks)
{
	enum { MOST_REGS = 200, MOST_ELEMENTS = 64, MOST_OF_CHUNKS = 256, CLUSTER_THREADS = 128 };
	cptx_rows_choice c = { .opt = *x->o };
	cptx_rows_opt *o = &c.opt;
	const bool given =
		o->place && o->threads && o->per_row && o->split && (o->place != CPTX_ROWS_SHARED || (o->stages && o->rows_each));

	if ((o->place && o->place != place) || (o->chunks && place != CPTX_ROWS_SHARED && !o->place) ||
	    (o->threads && o->threads != threads) || (o->per_row && o->per_row != per_row) || (o->split && o->split != split) ||
	    (o->stages && place == CPTX_ROWS_SHARED && o->stages != stages) ||
	    (o->rows_each && place == CPTX_ROWS_SHARED && rows_each != AT_ONCE && o->rows_each != rows_each))
		return;
	o->prefetch = o->prefetch || !x->target || x->target->number >= 90;
	o->place = place, o->threads = threads, o->per_row = per_row, o->split = split, o->stages = stages,
	o->rows_each = rows_each;
	if (chunks && !o->chunks)
		o->chunks = chunks_for(x, o);
	if (chunks && !o->chunks)
		return;
	if (!rows_check_shape(o, x->target, x->why.code ? NULL : &x->why)) /* the first one refused says why */
		return;
	const rows_shape s = rows_shape_of(o);
	if (rows_each == AT_ONCE)
		o->rows_each = at_once(x, &c, &s);
	predict(&c, x->target, x->rows, x->sms);
	const uint32_t unrolled = rows_elements(o, &s) * s.turns;
	if (!given && s.ring && s.cluster && threads < CLUSTER_THREADS)
		return;
	/* ptxas makes do with less where registers keep a row that a ring brings */
	const uint32_t regs = s.ring && s.keeps ? c.regs * 2 / 3 : c.regs;
	if (!given &&
	    (unrolled > (s.flows ? MOST_OF_CHUNKS : MOST_ELEMENTS) || c.regs > MOST_REGS || regs * threads > CPTX_REGS_PER_SM))
		return;
	/* ptxas may take so many registers, and no more; beside two vectors it takes too few by itself */
	if (place == CPTX_ROWS_SHARED || (!s.sums && rows_count(s.reads, ROWS_VECTOR) > 1))
		o->min_ctas = c.ctas_per_sm;
	insert(x, &c);
}

static void consider_place(search *x, enum cptx_rows_place place, uint32_t stages, uint32_t rows_each)
{
	const cptx_rows_opt *o = x->o;
	const uint32_t most = o->threads ? o->threads : 1024;

	for (uint32_t threads = o->threads ? o->threads : 64; threads <= most; threads *= 2) {
		for (uint32_t lanes = 1; lanes <= 32 && lanes < threads && threads <= 256; lanes *= 2)
			consider(x, place, threads, lanes, 1, stages, rows_each, false);
		for (uint32_t split = 1; split <= ROWS_MOST_SPLIT; split *= 2)
			consider(x, place, threads, threads, split, stages, rows_each, false);
		if (o->per_row && o->per_row < threads && threads > 256)
			consider(x, place, threads, o->per_row, 1, stages, rows_each, false);
	}
}

/* With one row a CTA, the hardware hands them out; with more, their loads are hidden. */
static void consider_all(search *x)
{
	enum { MOST_STAGES = 4, FEW = 4, SOME = 8 };
	const uint32_t stages = x->o->stages, each = x->o->rows_each;

	if (x->o->kernel == CPTX_ROWS_TRANSPOSE) {
		consider(x, CPTX_ROWS_MEMORY, ROWS_TILE_THREADS, ROWS_TILE_THREADS, 1, 0, 0, false);
		return;
	}
	consider_place(x, CPTX_ROWS_REGISTERS, 0, 0);
	consider_place(x, CPTX_ROWS_MEMORY, 0, 0);
	/* a body of one's own may read a row behind the pass that writes it */
	if (!rows_shape_of(x->o).local &&
	    x->o->kernel != CPTX_ROWS_OWN) /* one long row in a CTA: the hardware hands them out, and no cluster is needed */
		for (uint32_t threads = 256; threads <= 512; threads *= 2)
			consider(x, CPTX_ROWS_SHARED, threads, threads, 1, 1, 1, true);
	for (uint32_t i = stages ? stages : 1; i <= (stages ? stages : MOST_STAGES); i++) {
		const uint32_t rows[] = { 1, FEW, SOME, AT_ONCE };
		for (size_t j = each || i > 1 ? 1 : 0; j < (each ? 2 : ARRAY_LEN(rows)); j++)
			consider_place(x, CPTX_ROWS_SHARED, i, each ? each : rows[j]);
	}
}

size_t rows_auto(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms, cptx_rows_choice *choices,
                 size_t room, cptx_error *err)
{
	cptx_rows_opt o;
	search x = { .o = &o, .target = target, .best = choices, .room = room };

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_rows_opt, &o, opt, NOWHERE, err))
		return 0;
	if (!rows_complete(&o, target, err))
		return 0;
	x.sms = sms ? sms : chip_of(target)->sms;
	x.rows = rows ? rows : 1u << 20;
	const bool given =
		o.place && o.threads && o.per_row && o.split && (o.place != CPTX_ROWS_SHARED || (o.stages && o.rows_each));
	if (given) /* as launches do: what is left to say is what the model says of it */
		consider(&x, o.place, o.threads, o.per_row, o.split, o.stages, o.rows_each, false);
	else
		consider_all(&x);
	if (!x.n && x.why.code)
		error_set(err, x.why.code, NOWHERE, "%s", x.why.text);
	else if (!x.n)
		error_set(err, CPTX_E_ARG, NOWHERE,
		          "rows: no shape with what is given of .place, .threads = %u, .per_row = %u, .split = %u has room for rows "
		          "of %u elements",
		          o.threads, o.per_row, o.split, o.n);
	return x.n;
}

size_t cptx_rows_auto_(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms,
                       cptx_rows_choice *choices, size_t size, size_t room, cptx_error *err)
{
	enum { MOST_SHAPES = 2048 /* more than consider_all tries */ };

	if (!CHOICES_FIT(cptx_rows_choice, choices, size, room, err))
		return 0;
	room = MIN(room, (size_t)MOST_SHAPES);
	cptx_rows_choice *all = NEW_ARRAY(cptx_rows_choice, room);
	const size_t n = all ? rows_auto(opt, target, rows, sms, all, room, err) : 0;

	if (!all)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (size_t i = 0; i < n; i++)
		CHOICE_WRITE(cptx_rows_choice, cptx_rows_opt, choices, i, size, opt->size, &all[i]);
	free(all);
	return n;
}
