/* SPDX-License-Identifier: MIT */
/*
 * A launch: clusters run in rounds, many at a time.  In a round each runs on its own for a while; behind it, those that want
 * to do what orders clusters do so, one after another, and what all have stored gets to memory before.  Which clusters are
 * there and what each does follows from the seed alone.
 */
#include "emu/core/grid.h"
#include "emu/async/tma.h"
#include "emu/core/counters.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/stall.h"
#include "emu/core/trace.h"
#include "emu/exec/system.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUND = 16384 /* instructions of a cluster in a round */, RESIDENT = 16 /* CTAs that are there at once, at first */ };
enum { VIEW_PAGES = 16384, VIEW_LEAST = 64 /* of all clusters that are there, and of one at least: then a round ends */ };
enum { IDLE_ROUNDS = 64 /* with nothing but waiting for one another, before more clusters are started */ };
enum { FEW_THREADS = 16 /* so many may be asked for on fewer processors, too */ };
enum {
	QUIET_ROUNDS = 4,
	LOOK_EVERY = 4 /* rounds in which nothing changes, before it is asked whether anybody can go on */
};

typedef struct run {
	emu_grid *g;
	emu_cluster **c;
	enum emu_stop *stop;
	size_t n, most;
	size_t next;          /* to be run in this round */
	uint64_t left;        /* instructions, till the limit */
	uint32_t quiet, idle; /* rounds without a change; those of them in which all have waited for one another */
	uint32_t nthread, waiting;
	uint64_t round;
	bool over;
	pthread_mutex_t lock;
	pthread_cond_t start, done;
} run;

/* ---- the threads ---- */

/* Instructions of cluster i in this round. */
static uint32_t quantum(const run *r, size_t i)
{
	uint64_t share = r->left / r->n + (i < r->left % r->n);

	return (uint32_t)MIN(share, (uint64_t)ROUND);
}

/* Runs clusters of this round until none is left. */
static void work(run *r)
{
	for (;;) {
		pthread_mutex_lock(&r->lock);
		size_t i = r->next < r->n ? r->next++ : r->n;
		pthread_mutex_unlock(&r->lock);
		if (i >= r->n)
			return;
		r->stop[i] = emu_cluster_run(r->c[i], quantum(r, i));
	}
}

static void *thread_main(void *user)
{
	run *r = (run *)user;
	uint64_t seen = 0;

	for (;;) {
		pthread_mutex_lock(&r->lock);
		while (r->round == seen && !r->over)
			pthread_cond_wait(&r->start, &r->lock);
		seen = r->round;
		bool over = r->over;
		pthread_mutex_unlock(&r->lock);
		if (over)
			return NULL;
		work(r);
		pthread_mutex_lock(&r->lock);
		if (!--r->waiting)
			pthread_cond_signal(&r->done);
		pthread_mutex_unlock(&r->lock);
	}
}

static void one_round(run *r)
{
	pthread_mutex_lock(&r->lock);
	r->next = 0;
	for (size_t i = 0; i < r->n; i++)
		r->c[i]->view.most = (uint32_t)MAX(VIEW_PAGES / r->n, VIEW_LEAST);
	r->waiting = r->nthread;
	r->round++;
	pthread_cond_broadcast(&r->start);
	pthread_mutex_unlock(&r->lock);
	work(r);
	pthread_mutex_lock(&r->lock);
	while (r->waiting)
		pthread_cond_wait(&r->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

/* ---- clusters come and go ---- */

/* The user has got what the cluster printed and did in this round. */
static bool told(emu_cluster *c) { return emu_print_out(c) && emu_trace_out(c); }

static void tell_progress(const run *r)
{
	const cptx_emu_opt *opt = &r->g->machine->opt;

	if (opt->progress)
		opt->progress(opt->user, (r->g->next - r->n) * r->g->ctas_per_cluster, r->g->nclusters * r->g->ctas_per_cluster);
}

/* What clusters that were cut short have touched so far. */
static bool last_words(run *r)
{
	bool ok = true;

	for (size_t i = 0; i < r->n; i++) {
		race_fold(r->c[i]);
		emu_trace_cut(r->c[i]);
		ok &= told(r->c[i]) && emu_found_merge(r->g->machine, r->c[i]) && !r->c[i]->no_memory;
	}
	return ok;
}

static bool start(run *r)
{
	emu_grid *g = r->g;

	while (r->n < r->most && g->next < g->nclusters) {
		emu_cluster *c = NEW(emu_cluster);
		if (!c)
			return false;
		r->c[r->n] = c;
		r->stop[r->n++] = STOP_QUANTUM;
		if (!emu_cluster_init(c, g, g->next++))
			return false;
	}
	return true;
}

static bool room(run *r, size_t most)
{
	emu_cluster **c = GROW_ARRAY(emu_cluster *, r->c, most);

	if (c)
		r->c = c;
	enum emu_stop *stop = GROW_ARRAY(enum emu_stop, r->stop, most);
	if (stop)
		r->stop = stop;
	if (c && stop)
		r->most = most;
	return c && stop;
}

/* That count for the limit. */
static uint64_t steps_of(const emu_cluster *c) { return c->step - c->idle + c->work; }

static void finish(run *r, size_t i)
{
	r->g->steps += steps_of(r->c[i]);
	emu_counters_add(r->g, r->c[i]);
	r->g->begin = MAX(r->g->begin, emu_trace_now(r->c[i]));
	emu_cluster_free(r->c[i]);
	free(r->c[i]);
	r->n--;
	memmove(&r->c[i], &r->c[i + 1], (r->n - i) * sizeof *r->c);
	memmove(&r->stop[i], &r->stop[i + 1], (r->n - i) * sizeof *r->stop);
}

/* Behind a round.  False: memory is short. */
static bool settle(run *r)
{
	bool ok = true;

	for (size_t i = 0; i < r->n; i++)
		emu_view_commit(r->c[i]);
	for (size_t i = 0; i < r->n && ok;) {
		emu_cluster *c = r->c[i];
		ok = !c->no_memory;
		if (c->fold || r->stop[i] == STOP_DONE)
			race_fold(c);
		switch (r->g->failed ? STOP_QUANTUM : r->stop[i]) {
		case STOP_TURN: emu_cluster_turn(c); break;
		case STOP_STUCK: emu_find_deadlock(c); break;
		case STOP_DONE:
			ok &= told(c) && emu_found_merge(r->g->machine, c);
			finish(r, i);
			r->quiet = r->idle = 0;
			continue;
		case STOP_FAULT:
		case STOP_QUANTUM: break;
		}
		ok &= told(c) && emu_found_merge(r->g->machine, c) && !c->no_memory;
		if (c->failed)
			r->g->failed = true;
		i++;
	}
	return ok;
}

/* Counts rounds in which nothing changes. */
static void count_quiet(run *r)
{
	bool quiet = true, idle = true;

	for (size_t i = 0; i < r->n; i++) {
		emu_cluster *c = r->c[i];
		quiet &= c->changes == c->changes_seen;
		idle &= r->stop[i] == STOP_TURN || c->idle != c->idle_seen;
		c->changes_seen = c->changes;
		c->idle_seen = c->idle;
	}
	r->quiet = quiet ? r->quiet + 1 : 0;
	r->idle = quiet && idle ? r->idle + 1 : 0;
	for (size_t i = 0; i < r->n && !quiet; i++)
		emu_cluster_changed(r->c[i]);
}

/* Whether no thread that is there can go on. */
static bool stalls(run *r)
{
	bool all = r->quiet >= QUIET_ROUNDS && r->quiet % LOOK_EVERY == 0;

	for (size_t i = 0, n = all ? r->n : 0; i < n; i++)
		all &= emu_cluster_stalls(r->c[i]);
	return all;
}

/* Room for more clusters; there are none: a deadlock. */
static bool more(run *r)
{
	bool are = r->g->next < r->g->nclusters;

	r->quiet = r->idle = 0;
	if (are)
		return room(r, r->most * 2);
	emu_find_deadlock(r->c[0]);
	r->g->failed = true;
	return emu_found_merge(r->g->machine, r->c[0]);
}

static uint64_t left_of(const run *r)
{
	uint64_t steps = r->g->steps;

	for (size_t i = 0; i < r->n; i++)
		steps += steps_of(r->c[i]);
	return r->g->limit - MIN(steps, r->g->limit);
}

static bool all_rounds(run *r)
{
	for (;;) {
		if (!start(r))
			return false;
		if (!r->n || r->g->failed)
			return true;
		r->left = left_of(r);
		one_round(r); /* without instructions, too: who is done is noticed */
		if (!settle(r))
			return false;
		tell_progress(r);
		if (!r->left && r->n && !r->g->failed) {
			emu_find_limit(r->c[0]);
			r->g->failed = true;
			return emu_found_merge(r->g->machine, r->c[0]);
		}
		if (r->g->failed || !r->n)
			continue;
		count_quiet(r);
		if ((r->idle > IDLE_ROUNDS && r->g->next < r->g->nclusters) || stalls(r))
			if (!more(r))
				return false;
	}
}

static uint64_t processors(void)
{
#ifdef _WIN32
	return (uint64_t)MAX(pthread_num_processors_np(), 1);
#else
	return (uint64_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
#endif
}

/* Of the host: more than there are clusters at a time, or many more than processors, only wait for one another. */
static uint32_t host_threads(const emu_grid *g, size_t clusters)
{
	uint64_t here = processors(), n = g->machine->opt.threads;

	if (!n || (n > FEW_THREADS && n > here))
		n = here;
	return (uint32_t)MIN(n, clusters);
}

static bool run_grid(emu_grid *g)
{
	run r = { .g = g };
	pthread_t thread[256];
	uint32_t ctas = g->machine->opt.sms ? g->machine->opt.sms : RESIDENT;
	uint64_t most = g->cooperative ? g->nclusters : MIN(MAX(ctas / g->ctas_per_cluster, 1u), g->nclusters);
	uint32_t want = MIN(host_threads(g, (size_t)most) - 1, (uint32_t)ARRAY_LEN(thread));

	if (!race_grid_init(g))
		return false;
	if (g->explorer) {
		bool all = emu_explore_grid(g);
		race_grid_free(g);
		emu_tensormaps_free(g->maps);
		return all;
	}
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.start, NULL);
	pthread_cond_init(&r.done, NULL);
	while (r.nthread < want && !pthread_create(&thread[r.nthread], NULL, thread_main, &r))
		r.nthread++;
	bool ok = room(&r, (size_t)most) && all_rounds(&r) && last_words(&r);
	pthread_mutex_lock(&r.lock);
	r.over = true;
	pthread_cond_broadcast(&r.start);
	pthread_mutex_unlock(&r.lock);
	for (uint32_t i = 0; i < r.nthread; i++)
		pthread_join(thread[i], NULL);
	while (r.n)
		finish(&r, r.n - 1);
	race_grid_free(g);
	emu_tensormaps_free(g->maps);
	free(r.c);
	free(r.stop);
	pthread_mutex_destroy(&r.lock);
	pthread_cond_destroy(&r.start);
	pthread_cond_destroy(&r.done);
	return ok;
}

/* ---- the call ---- */

/*
 * What the driver gives to a cooperative launch, as CUDA's cooperative groups expect it: a word with the size, and one that
 * counts CTAs at the barrier of the grid.
 */
static bool run_cooperative(emu_grid *g)
{
	const uint32_t words[2] = { 2 * sizeof(uint32_t), 0 };
	emu_machine *m = g->machine;

	if (!g->cooperative)
		return run_grid(g);
	g->workspace = emu_alloc_new(m, sizeof words, 0, "of the cooperative launch", true);
	if (!g->workspace)
		return false;
	memcpy(emu_alloc_find(m, g->workspace)->p, words, sizeof words);
	bool ok = run_grid(g);
	emu_alloc_free(m, g->workspace);
	return ok;
}

static bool run_once(emu_image *image, const launch_shape *s, const void *params, uint32_t size, cptx_site at,
                     emu_explorer *explorer, cptx_error *err)
{
	emu_machine *m = image->program->machine;
	emu_grid g = { .machine = m,
		           .image = image,
		           .params = (const unsigned char *)params,
		           .param_bytes = size,
		           .limit = m->opt.step_limit,
		           .explorer = explorer,
		           .err = err };

	memcpy(g.grid, s->grid, sizeof g.grid);
	memcpy(g.block, s->block, sizeof g.block);
	g.explicit_cluster = s->cluster[0] != 0;
	g.cooperative = s->cooperative;
	for (int i = 0; i < 3; i++)
		g.cluster[i] = g.explicit_cluster ? s->cluster[i] : 1;
	for (int i = 0; i < 3 && ir_grid_of_clusters(image->kernel); i++)
		g.grid[i] *= g.cluster[i];
	g.entry = image->entry;
	g.ctas_per_cluster = g.cluster[0] * g.cluster[1] * g.cluster[2];
	g.nclusters = (uint64_t)g.grid[0] * g.grid[1] * g.grid[2] / g.ctas_per_cluster;
	g.dyn_smem = s->dyn_smem;
	g.shared_bytes = s->dyn_smem ? image->dyn_at + s->dyn_smem : image->shared.bytes + image->shared.gaps;
	if (m->broken)
		return error_set(err, CPTX_E_FINDING, at,
		                 "kernel %s: an earlier launch ended with a finding, and nothing more is launched, as on a GPU; "
		                 "cptx_emu_continue(dev) lets the next ones run, cptx_emu_finding_at has what was found",
		                 image->kernel->name);
	bool outer = m->running; /* what prints may launch */
	if (!outer)
		emu_alloc_sweep(m);
	m->running = true;
	g.hits = NEW_ARRAY(uint64_t, image->nop + 1u);
	g.traffic = NEW_ARRAY(struct emu_traffic, image->nop + 1u);
	bool ok = g.hits && g.traffic && run_cooperative(&g) && emu_counters_finish(&g);
	free(g.hits);
	free(g.traffic);
	m->running = outer;
	if (!outer)
		emu_alloc_sweep(m);
	char shown[NAME_SHOWN + 1];
	if (!ok)
		return error_set(err, CPTX_E_MEMORY, at, "kernel %s: out of memory", name_shown(image->kernel->name, shown));
	m->broken = g.failed;
	if (!g.wrong && !g.failed)
		return true;
	const cptx_emu_finding *f = g.wrong && g.wrong <= m->nfinding ? &m->finding[g.wrong - 1].f : NULL;
	return error_set(err, CPTX_E_FINDING, f ? f->at : at, "%s", f ? f->text : "the launch was ended");
}

bool emu_run(emu_image *image, const launch_shape *s, const void *params, uint32_t size, cptx_site at, cptx_error *err)
{
	emu_machine *m = image->program->machine;
	bool explore = m->opt.schedule == CPTX_EMU_ALL && !m->running && !m->broken;
	const emu_explored parent = m->in_children ? m->explored : (emu_explored){ 0 };

	if (!m->running)
		m->explored = (emu_explored){ 0 };
	bool ok =
		explore ? emu_explore(run_once, image, s, params, size, at, err) : run_once(image, s, params, size, at, NULL, err);

	if (parent.kernel && !m->explored.found) /* of what a kernel launches only faults are told */
		m->explored = parent;
	if ((!m->children.first && !m->children.asked) || m->in_children || m->running)
		return ok;
	if (!m->broken)
		return emu_children_run(m, at, ok ? err : NULL) && ok;
	emu_children_drop(m);
	return ok;
}
