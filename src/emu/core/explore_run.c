/* SPDX-License-Identifier: MIT */
/* Executing a launch in orders that the explorer wants, each from the same memory, and making the one that fails shorter. */
#include "emu/async/mbarrier.h"
#include "emu/core/counters.h"
#include "emu/core/explore_memory.h"
#include "emu/core/explorer.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/stall.h"
#include "emu/exec/system.h"
#include "emu/tensor/tcgen05.h"

#include <stdlib.h>

enum { MOST_CTAS = 16, MOST_TRIALS = 200 /* executions to make an order shorter */ };
enum { IDLE_ROUNDS = 1 << 20 };
static const uint64_t most_memory = (uint64_t)256 << 20, most_orders = 10000;
/* Of a launch, in comparisons of two events: some seconds.  An event costs as much as many of them. */
static const uint64_t most_work = (uint64_t)1 << 28, event_work = 256;

/* ---- one event ---- */

/* Whether an address may lead to shared memory of another CTA. */
static bool leaves_cta(const emu_op *op)
{
	for (unsigned i = 0; i < op->narg; i++)
		if (op->arg[i].kind == ARG_ADDR && (op->arg[i].space == SPACE_CLUSTER || op->arg[i].space == SPACE_GENERIC))
			return true;
	return false;
}

/* Instructions that other warps may notice, beside barriers of all threads, which only let others go on.  In clusters the
 * end of a CTA is one: its shared memory goes with it. */
static bool is_event(const emu_op *op, bool clusters)
{
	if (op->flags & OP_EVENT)
		return true;
	return clusters && (leaves_cta(op) || op->opcode == CPTX_OP_RET || op->opcode == CPTX_OP_EXIT);
}

static emu_warp *warp_of(const emu_cluster *c, uint32_t number)
{
	uint32_t per = c->cta[0].nwarp;

	return &c->cta[number / per].warp[number % per];
}

static bool begin_event(emu_explorer *x, uint64_t who)
{
	explored_event *grown = x->depth < x->nevent ? x->event : GROW_ARRAY(explored_event, x->event, x->depth + 1u);

	if (!grown)
		return false;
	x->event = grown;
	explored_event *e = &x->event[x->depth];
	if (x->depth < x->nevent) {
		free(e->touch);
		free(e->after);
	} else {
		x->nevent = x->depth + 1;
	}
	*e = (explored_event){ .who = who };
	x->now = e;
	return true;
}

void emu_explore_started(emu_cluster *c, emu_async *a)
{
	const emu_explorer *x = c->grid->explorer;

	a->starter = x->now ? x->depth + 1 : 0;
}

/* Something was written that others may poll. */
static bool wrote(const explored_event *e)
{
	for (uint32_t i = 0; i < e->ntouch; i++)
		if (e->touch[i].kind == TOUCH_WRITE || e->touch[i].kind == TOUCH_ADD)
			return true;
	return false;
}

/*
 * The warp, with nobody else in between, has come back to a state that it was in, and has changed nothing: it goes round as
 * long as nobody else does anything, and what it did since is as if it had not been.
 */
static bool went_round(emu_explorer *x, uint64_t state)
{
	uint32_t from = x->depth;

	while (x->event[from].quiet && x->event[from].state != state && from && x->event[from - 1].who == x->now->who)
		from--;
	if (!x->event[from].quiet || x->event[from].state != state)
		return false;
	for (uint32_t i = from; i <= x->depth; i++)
		x->event[i].ntouch = 0;
	return true;
}

/* It has come to a barrier as the last one: who goes on there is behind all others, but what it did before is not. */
static bool goes_on(const emu_op *op, const emu_op *was) { return op == was && op->flags & OP_SPLITS; }

/* A warp goes on to the next instruction that others may notice. */
static void run_warp(emu_explorer *x, emu_cluster *c, emu_warp *w)
{
	const emu_op *op = emu_warp_next(w), *was = NULL;
	uint64_t steps = c->step + c->work, changes = c->changes;

	x->now->op = op;
	x->now->warp = w->number, x->now->rank = w->cta->rank;
	x->now->state = emu_warp_state(w);
	for (x->inside = false; op && (!x->inside || !(is_event(op, c->ncta > 1) || goes_on(op, was))) && !c->failed &&
	                        !c->fold && c->step + c->work - steps < c->grid->limit;
	     x->inside = true) {
		emu_cluster_step(c, w);
		was = op;
		op = emu_warp_can_run(w) ? emu_warp_next(w) : NULL;
	}
	x->inside = false;
	x->now->quiet = c->changes == changes;
	if (op && x->now->quiet && went_round(x, emu_warp_state(w)))
		emu_warp_poll(w);
}

static void run_operation(emu_explorer *x, emu_cluster *c, emu_async *a)
{
	const emu_warp *w = a->w;
	const uint32_t warp = w->agent;

	x->now->op = a->op;
	x->now->warp = w->number, x->now->rank = w->cta->rank;
	x->now->starter = a->starter;
	emu_cluster_async(c, a);
	if (!x->now->ntouch)
		emu_touch_note(c, (emu_touch){ .object = emu_object(c, 0, OBJECT_GROUPS, warp), .kind = TOUCH_COME });
}

static void run_event(emu_explorer *x, emu_cluster **c, size_t n, uint64_t who)
{
	emu_cluster *in = c[(who & ~EXPLORED_ASYNC) >> EXPLORED_CLUSTER];
	uint32_t number = (uint32_t)who;

	if (!(who & EXPLORED_ASYNC))
		run_warp(x, in, warp_of(in, number));
	else
		for (emu_async *a = in->queue.first; a; a = a->next)
			if ((uint32_t)a->number == number) {
				run_operation(x, in, a);
				break;
			}
	for (size_t i = 0; i < n && wrote(x->now); i++)
		c[i]->progress++;
	x->last = who;
	x->depth++;
	x->now = NULL;
}

/* ---- one execution ---- */

typedef struct clusters {
	emu_cluster **c;
	size_t n;
	uint64_t *can; /* who can go on */
	uint32_t ncan, cap;
	uint64_t changes; /* of all, when somebody could go on last */
	uint32_t idle;
} clusters;

static bool add_can(clusters *r, uint64_t who)
{
	if (r->ncan == r->cap) {
		uint64_t *grown = GROW_ARRAY(uint64_t, r->can, r->cap * 2u + 16u);
		if (!grown)
			return false;
		r->can = grown, r->cap = r->cap * 2 + 16;
	}
	r->can[r->ncan++] = who;
	return true;
}

static bool find_who_can(clusters *r)
{
	bool ok = true;

	r->ncan = 0;
	for (size_t i = 0; i < r->n; i++) {
		emu_cluster *c = r->c[i];
		uint64_t at = (uint64_t)i << EXPLORED_CLUSTER;
		for (uint32_t k = 0; c->live && k < c->nwarp; k++) {
			const emu_warp *w = warp_of(c, k);
			if (w->ngroup && emu_warp_can_run(w))
				ok &= add_can(r, at | k);
		}
		uint32_t n = emu_queue_choices(&c->queue, c->step, true);
		for (uint32_t k = 0; k < n; k++)
			ok &= add_can(r, EXPLORED_ASYNC | at | (uint32_t)emu_queue_choice(&c->queue, k, true)->number);
	}
	return ok;
}

static bool polls(const clusters *r)
{
	for (size_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < r->c[i]->nwarp; k++)
			for (unsigned g = 0; g < warp_of(r->c[i], k)->ngroup; g++)
				if (warp_of(r->c[i], k)->group[g].state == GROUP_RUN)
					return true;
	return false;
}

/* Nobody can go on: those who poll may look again, until nothing can come of it.  False: a deadlock. */
static bool look_again(clusters *r)
{
	uint64_t changes = 0;
	bool all = true;

	if (!polls(r) || ++r->idle > IDLE_ROUNDS)
		return false;
	for (size_t i = 0; i < r->n; i++)
		changes += r->c[i]->changes;
	for (size_t i = 0; i < r->n; i++) {
		if (changes != r->changes)
			emu_cluster_changed(r->c[i]);
		all &= emu_cluster_stalls(r->c[i]);
		r->c[i]->progress++;
	}
	r->changes = changes;
	return !all;
}

static bool over(const clusters *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->c[i]->live || r->c[i]->queue.first)
			return false;
	return true;
}

/* Behind an event: what was stored gets to memory, what was found is kept. */
static bool settle(emu_grid *g, const clusters *r)
{
	bool ok = true;
	uint64_t steps = 0;

	for (size_t i = 0; i < r->n; i++) {
		emu_cluster *c = r->c[i];
		emu_view_commit(c);
		if (c->fold)
			race_fold(c);
		ok &= emu_print_out(c) && emu_found_merge(g->machine, c) && !c->no_memory;
		g->failed |= c->failed;
		steps += c->step - c->idle + c->work;
	}
	if (steps >= g->limit && !g->failed && ok) {
		emu_find_limit(r->c[0]);
		g->failed = true;
		ok = emu_found_merge(g->machine, r->c[0]);
	}
	return ok;
}

static bool all_events(emu_grid *g, clusters *r)
{
	emu_explorer *x = g->explorer;
	bool ok = true;

	while (ok && !g->failed && !over(r)) {
		ok = find_who_can(r);
		if (!ok || (!r->ncan && look_again(r)))
			continue;
		if (!r->ncan) {
			emu_find_deadlock(r->c[0]);
			g->failed = true;
			return emu_found_merge(g->machine, r->c[0]);
		}
		uint64_t who = explorer_choose(x, r->can, r->ncan);
		if (who == EXPLORED_NOBODY) {
			x->pruned = !x->no_memory;
			return !x->no_memory;
		}
		r->idle = 0;
		ok = begin_event(x, who);
		if (ok)
			run_event(x, r->c, r->n, who);
		ok = ok && settle(g, r) && !x->no_memory;
	}
	return ok;
}

static void end_cluster(emu_grid *g, emu_cluster *c)
{
	if (c->cta && !g->failed && !g->explorer->pruned) {
		mbarriers_end(c);
		emu_tmem_end(c);
	}
	race_fold(c);
	emu_found_merge(g->machine, c);
	g->failed |= c->failed;
	emu_counters_add(g, c);
}

bool emu_explore_grid(emu_grid *g)
{
	clusters r = { .c = NEW_ARRAY(emu_cluster *, (size_t)g->nclusters) };
	bool ok = r.c != NULL;

	g->explorer->depth = 0;
	g->explorer->last = 0;
	g->explorer->pruned = false;
	for (; ok && g->next < g->nclusters; g->next++) {
		emu_cluster *c = r.c[r.n] = NEW(emu_cluster);
		r.n += c != NULL;
		ok = c && emu_cluster_init(c, g, g->next);
		if (c)
			c->turn = true;
	}
	for (size_t i = 0; i < r.n; i++)
		r.c[i]->view.most = UINT32_MAX;
	ok = ok && all_events(g, &r);
	for (size_t i = 0; i < r.n; i++) {
		if (ok)
			end_cluster(g, r.c[i]);
		emu_cluster_free(r.c[i]);
		free(r.c[i]);
	}
	free(r.c);
	free(r.can);
	return ok;
}

/* ---- all orders ---- */

typedef struct search {
	emu_once_fn *once;
	emu_image *image;
	const launch_shape *shape;
	const void *params;
	uint32_t size;
	cptx_site at;
	emu_machine *m;
	emu_kept_memory memory, first; /* in front of the launch, and as order 1 leaves it */
	uint64_t *other;               /* the path of the first order that leaves it otherwise */
	uint32_t nother;
	emu_explorer x;
	uint64_t *path; /* that is replayed */
	uint32_t npath;
	bool launches; /* kernels */
} search;

typedef struct outcome { /* what an execution found first; op NULL and no code: nothing */
	enum cptx_finding_code code;
	const emu_op *op;
	emu_memory_difference other; /* what it leaves that order 1 does not */
} outcome;

/* Keeps what order 1 leaves in memory, and compares with it what others do. */
static bool look_at_memory(search *s, outcome *out)
{
	if (!s->first.a)
		return emu_memory_keep(s->m, &s->first);
	emu_memory_compare(s->m, &s->first, &out->other);
	return true;
}

/* Executes it without a word: its findings, output and counters are forgotten. */
static bool try_order(search *s, outcome *out)
{
	emu_machine *m = s->m;
	emu_machine was = *m;
	cptx_error err = { .code = CPTX_OK };

	m->finding = NULL;
	m->nfinding = m->cap_finding = m->nwarning = 0;
	m->opt.print = NULL;
	m->opt.trace = NULL;
	arena_init(&m->text, NULL);
	s->x.trial = true;
	emu_children kept = m->children; /* what an earlier grid has launched: those that wait are not its own */
	m->children = (emu_children){ .made = kept.made };
	bool ok = s->once(s->image, s->shape, s->params, s->size, s->at, &s->x, &err) || err.code == CPTX_E_FINDING;
	*out = (outcome){ .code = CPTX_FIND_NONE };
	for (size_t i = 0; i < m->nfinding && !out->code; i++)
		if (m->finding[i].f.rank == CPTX_FIND_ERROR)
			*out = (outcome){ .code = m->finding[i].f.code, .op = m->finding[i].op };
	if (ok && !out->code && !s->x.pruned && !s->x.too_long)
		ok = look_at_memory(s, out);
	s->x.trial = false;
	s->x.work += s->x.depth * event_work;
	s->launches |= m->children.first != NULL || m->children.asked != NULL;
	arena_free(&m->text);
	m->text = was.text;
	free(m->finding);
	m->finding = was.finding;
	m->nfinding = was.nfinding, m->cap_finding = was.cap_finding, m->nwarning = was.nwarning;
	m->opt = was.opt;
	m->broken = false;
	emu_children_drop(m);
	m->children = kept;
	return ok && emu_memory_restore(m, &s->memory);
}

static bool take_path(search *s, uint64_t **to, uint32_t *n)
{
	uint64_t *path = GROW_ARRAY(uint64_t, *to, s->x.depth + 1u);

	if (!path)
		return false;
	*to = path;
	*n = s->x.depth;
	for (uint32_t i = 0; i < *n; i++)
		path[i] = s->x.event[i].who;
	return true;
}

/* Leaves choices out of the path, many at a time and then few, as long as the same is found. */
static bool shorten(search *s, outcome want)
{
	unsigned trials = 0;
	outcome got;

	s->x.replay = s->path;
	for (uint32_t size = s->npath; size && trials < MOST_TRIALS && s->x.work < 2 * most_work; size /= 2)
		for (uint32_t from = 0; from < s->npath && trials < MOST_TRIALS && s->x.work < 2 * most_work; from += size) {
			uint32_t n = MIN(size, s->npath - from);
			uint64_t *was = NEW_ARRAY(uint64_t, n + 1u);
			if (!was)
				return false;
			memcpy(was, s->path + from, n * sizeof *was);
			for (uint32_t i = 0; i < n; i++)
				s->path[from + i] = EXPLORED_NOBODY;
			s->x.nreplay = s->npath;
			trials++;
			bool ok = try_order(s, &got);
			s->x.too_long = false; /* this one only */
			if (ok && (got.code != want.code || got.op != want.op || !got.other.bytes != !want.other.bytes))
				memcpy(s->path + from, was, n * sizeof *was);
			free(was);
			if (!ok)
				return false;
		}
	return true;
}

/* The launch once more, in the order of the path, and so that it counts. */
static bool run_path(search *s, cptx_error *err)
{
	s->x.replay = s->path;
	s->x.nreplay = s->npath;
	return s->once(s->image, s->shape, s->params, s->size, s->at, &s->x, err);
}

/* "ld.u32 (k.ptx:7) of warp 1" */
static void put_event(buf *b, const search *s, const explored_event *e)
{
	const emu_grid named = { .image = s->image };

	if (e->op && e->op->item)
		emu_put_op(b, &named, e->op);
	buf_printf(b, " of warp %u", e->warp);
	if (s->shape->cluster[0] * s->shape->cluster[1] * s->shape->cluster[2] > 1)
		buf_printf(b, " of CTA %u", e->rank);
}

/* Event i, and in front of what it is done though that could have gone on. */
static void put_step(buf *b, const search *s, uint32_t i)
{
	const explored_event *e = &s->x.event[i];

	buf_str(b, e->who & EXPLORED_ASYNC ? "what was started by " : "");
	put_event(b, s, e);
	for (uint32_t k = i + 1; i && k < s->x.depth; k++)
		if (s->x.event[k].who == s->x.event[i - 1].who && s->x.event[k].who != e->who) {
			buf_str(b, " before ");
			put_event(b, s, &s->x.event[k]);
			break;
		}
}

/* Says where the path left the usual order. */
static void describe(search *s)
{
	enum { MOST = 12 };
	emu_machine *m = s->m;
	unsigned n = 0;
	buf b;

	buf_init(&b, NULL);
	for (uint32_t i = 0; i < s->npath && i < s->x.depth; i++) {
		if (s->path[i] == EXPLORED_NOBODY || s->path[i] != s->x.event[i].who)
			continue;
		if (n++ < MOST) {
			buf_str(&b, n > 1 ? ", then " : "");
			put_step(&b, s, i);
		}
	}
	buf_put(&b, "", 1);
	m->explored.switches = n;
	m->explored.how = b.failed || !n ? "" : arena_strdup(&m->text, b.p);
	if (!m->explored.how)
		m->explored.how = "";
	buf_free(&b);
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* Keeps how the order differs from the first one, and who leaves the usual order for that. */
static bool tell_difference(search *s)
{
	uint64_t *path = s->path;
	const uint32_t npath = s->npath;
	const outcome want = { .other = { .bytes = 1 } };
	outcome got = { .code = CPTX_FIND_NONE };
	buf b;

	s->path = s->other, s->npath = s->nother;
	bool ok = shorten(s, want);
	s->x.replay = s->path, s->x.nreplay = s->npath;
	buf_init(&b, NULL);
	if (ok && (ok = try_order(s, &got)) && got.other.bytes) {
		emu_memory_put_difference(&b, &got.other);
		s->m->explored.differ_bytes = got.other.bytes;
		s->m->explored.differ_at = got.other.in->at + got.other.offset;
		describe(s);
	}
	buf_put(&b, "", 1);
	s->m->explored.difference = b.failed ? "" : arena_strdup(&s->m->text, b.p);
	buf_free(&b);
	s->path = path, s->npath = npath;
	return ok;
}

/* The sentence about what came of it. */
static void summarize(emu_machine *m)
{
	emu_explored *x = &m->explored;
	const unsigned long long n = x->orders;
	buf b;

	buf_init(&b, NULL);
	if (x->found) {
		buf_printf(&b, "order %llu fails", (unsigned long long)x->found);
		if (x->switches)
			buf_printf(&b, "; it leaves the usual order %u time%s: %s", x->switches, plural(x->switches), x->how);
	} else if (x->why) {
		buf_printf(&b, "not all orders were tried: %s", x->why);
		if (n)
			buf_printf(&b, "; %llu of up to %llu events %s tried and %s right", n, (unsigned long long)x->events,
			           n == 1 ? "was" : "were", n == 1 ? "is" : "are");
	} else if (x->all) {
		buf_printf(&b, n == 1 ? "its only order is right" : "all %llu orders are right", n);
	} else if (m->opt.order) {
		buf_printf(&b, n == m->opt.order ? "order %llu is right" : "there are only %llu orders", n);
	} else {
		buf_printf(&b, "%llu order%s %s right, and at least %llu more %s known", n, plural(n), n == 1 ? "is" : "are",
		           (unsigned long long)x->left, x->left == 1 ? "is" : "are");
	}
	if (x->differs && x->difference) {
		buf_printf(&b, "; but order %llu leaves other memory than the first: %s", (unsigned long long)x->differs,
		           x->difference);
		if (x->switches && !x->found)
			buf_printf(&b, "; it leaves the usual order %u time%s: %s", x->switches, plural(x->switches), x->how);
	}
	buf_put(&b, "", 1);
	x->text = b.failed ? NULL : arena_strdup(&m->text, b.p);
	x->text = x->text ? x->text : "";
	buf_free(&b);
}

static bool has(const emu_image *image, unsigned opcode)
{
	for (uint32_t i = 0; i < image->nop; i++)
		if (image->ops[i]->opcode == opcode)
			return true;
	return false;
}

static bool fits(const emu_machine *m, const emu_image *image, const launch_shape *s, const char **why)
{
	uint64_t ctas = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2], bytes = 0;

	for (size_t i = 0; i < m->nalloc; i++)
		bytes += m->alloc[i]->p ? m->alloc[i]->size : 0;
	*why = ctas > MOST_CTAS                                      ? "it has more than 16 CTAs"
	       : bytes > most_memory                                 ? "more than 256 MiB of memory are allocated"
	       : has(image, CPTX_OP_CLUSTERLAUNCHCONTROL_TRY_CANCEL) ? "it cancels clusters, and all of them begin at once here"
	       : has(image, CPTX_OP_MBARRIER_PENDING_COUNT)          ? "it asks how many arrivals were pending when it arrived"
	                                                             : NULL;
	return !*why;
}

static const char *why_not(const search *s, bool more)
{
	if (s->x.too_long)
		return "an order has more than 4096 events";
	if (s->launches)
		return "it launches kernels, which run behind it here";
	if (s->x.reduces)
		return "what bulk copies combine with memory is combined in one order";
	if (s->x.missed)
		return "an instruction that others may notice is none of those that are put in other orders";
	return more && s->x.work >= most_work ? "it would take too long" : NULL;
}

/* Tries orders until one has an error, none is left, or as many were tried as are wanted. */
static bool try_orders(search *s, outcome *found)
{
	emu_machine *m = s->m;
	uint64_t most = m->opt.orders ? m->opt.orders : most_orders;
	bool ok = true, more = true;

	while (ok && more && !found->code && m->explored.orders < most && !s->x.too_long && s->x.work < most_work) {
		ok = try_order(s, found);
		if (!ok || s->x.too_long)
			break;
		m->explored.orders += !s->x.pruned;
		m->explored.events = MAX(m->explored.events, (uint64_t)s->x.depth);
		if (found->other.bytes && !m->explored.differs) {
			m->explored.differs = m->explored.orders;
			ok = take_path(s, &s->other, &s->nother);
		}
		bool wanted = m->opt.order && m->explored.orders == m->opt.order && !s->x.pruned;
		if (ok && (!s->npath || found->code || wanted))
			ok = take_path(s, &s->path, &s->npath);
		if (wanted || found->code)
			break;
		ok = ok && explorer_look(&s->x);
		more = ok && explorer_next(&s->x);
	}
	m->explored.why = why_not(s, more);
	m->explored.all = ok && !more && !m->explored.why;
	m->explored.left = more && !found->code ? explorer_left(&s->x) + 1 : 0;
	return ok;
}

bool emu_explore(emu_once_fn *once, emu_image *image, const launch_shape *shape, const void *params, uint32_t size,
                 cptx_site at, cptx_error *err)
{
	emu_machine *m = image->program->machine;
	search s = { .once = once, .image = image, .shape = shape, .params = params, .size = size, .at = at, .m = m };
	outcome found = { .code = CPTX_FIND_NONE };

	m->explored = (emu_explored){ .kernel = arena_strdup(&m->text, image->kernel->name), .how = "" };
	if (!fits(m, image, shape, &m->explored.why)) {
		summarize(m);
		return once(image, shape, params, size, at, NULL, err);
	}
	bool ok = emu_memory_keep(m, &s.memory) && try_orders(&s, &found);
	bool too_long = s.x.too_long;
	if (ok && found.code) {
		m->explored.found = m->explored.orders;
		found.other.bytes = 0;
		ok = shorten(&s, found);
	} else if (ok && m->explored.differs) {
		ok = tell_difference(&s);
	}
	ok = ok && emu_memory_restore(m, &s.memory);
	bool right = ok && (too_long ? once(image, shape, params, size, at, NULL, err) : run_path(&s, err));
	if (ok && found.code)
		describe(&s);
	summarize(m);
	explorer_free(&s.x);
	emu_memory_forget(&s.memory);
	emu_memory_forget(&s.first);
	free(s.path);
	free(s.other);
	if (!ok)
		return error_set(err, CPTX_E_MEMORY, at,
		                 "kernel %s: its orders cannot be explored: memory is short, or the kernel frees what was allocated "
		                 "before",
		                 image->kernel->name);
	return right;
}
