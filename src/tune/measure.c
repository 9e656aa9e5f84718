/* SPDX-License-Identifier: MIT */
/*
 * Measures candidates: threads build and compile them in order while this one measures those that are ready.  What they
 * compile perturbs a burst at most now and then; the median of several does not see it.
 */
#include "base/options.h"
#include "tune/tune.h"

#include <cptx/emu.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WORKER_STACK = 8 << 20 }; /* bytes */
enum { CANDIDATES = 8, WORKERS = 4, AHEAD = 2, SETS = 8, BURSTS = 7, WARM = 2, MOST_RUNS = 200, BUDGET_S = 10 };
#define BURST_US 2000.0

enum state { WAITING, BUSY, READY, FAILED };
typedef struct made {
	uint32_t candidate;
	enum state state;
	cptx_program *program;
	cptx_error err;
} made;

typedef struct tuning {
	cptx_tune *db;
	cptx_device *dev;
	cptx_tune_job job;
	cptx_tune_key key;
	cptx_tune_use use;
	cptx_tune_done *done;
	made *slots;
	uint32_t n, next, taken, workers;
	bool stop, emulated;
	double best;
	pthread_mutex_t lock;
	pthread_cond_t ready, room;
	pthread_t thread[WORKERS];
} tuning;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- building ---- */

static void build(const tuning *t, made *s)
{
	cptx_module *m = cptx_module_new(NULL);

	s->err = (cptx_error){ .code = CPTX_OK };
	if (t->job.build(t->job.user, s->candidate, m, &s->err))
		s->program = cptx_device_load_(NOWHERE, t->dev, m,
		                               CPTX_OPT(cptx_load_opt, .compiler = t->use.compiler, .cache = t->use.cache), &s->err);
	if (!s->program && s->err.code == CPTX_OK)
		error_set(&s->err, CPTX_E_ARG, NOWHERE, "the candidate could not be built");
	cptx_module_destroy(m);
}

static void *work(void *p)
{
	tuning *t = (tuning *)p;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (!t->stop && t->next < t->n && t->next >= t->taken + t->workers + AHEAD)
			pthread_cond_wait(&t->room, &t->lock);
		if (t->stop || t->next == t->n)
			break;
		made *s = &t->slots[t->next++];
		s->state = BUSY;
		pthread_mutex_unlock(&t->lock);
		build(t, s);
		pthread_mutex_lock(&t->lock);
		s->state = s->program ? READY : FAILED;
		pthread_cond_broadcast(&t->ready);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Starts the workers; where no thread can be had this one builds. */
static void start(tuning *t)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const uint32_t want = t->use.workers ? t->use.workers : (uint32_t)MAX(processors, 1);
	const uint32_t most = MIN(MIN(want, (uint32_t)WORKERS), t->n);
	pthread_attr_t attr;

	if (pthread_attr_init(&attr))
		return;
	/* Generators have frames of 100 KB, and musl gives a thread 128. */
	if (!pthread_attr_setstacksize(&attr, WORKER_STACK)) {
		pthread_mutex_lock(&t->lock);
		while (t->workers < most && !pthread_create(&t->thread[t->workers], &attr, work, t))
			t->workers++;
		pthread_mutex_unlock(&t->lock);
	}
	pthread_attr_destroy(&attr);
}

static void end(tuning *t)
{
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->room);
	pthread_mutex_unlock(&t->lock);
	for (uint32_t i = 0; i < t->workers; i++)
		pthread_join(t->thread[i], NULL);
	for (uint32_t i = 0; i < t->n; i++)
		cptx_program_destroy(t->slots[i].program);
}

/* Waits for a slot to be ready. */
static void await(tuning *t, uint32_t i)
{
	if (!t->workers) {
		build(t, &t->slots[i]);
		return;
	}
	pthread_mutex_lock(&t->lock);
	t->taken = i;
	pthread_cond_broadcast(&t->room);
	while (t->slots[i].state < READY)
		pthread_cond_wait(&t->ready, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

/* ---- measuring ---- */

typedef struct clocks {
	cptx_event *begin, *end;
} clocks;

/* Microseconds of a launch in a burst of so many; 0 on errors. */
static double burst(const tuning *t, uint32_t candidate, cptx_launch **launches, uint32_t sets, unsigned runs,
                    const clocks *c, cptx_error *err)
{
	float ms = 0;

	if (t->job.before && !t->job.before(t->job.user, candidate, err))
		return 0;
	for (unsigned i = 0; i < WARM; i++)
		cptx_launch_run(launches[i % sets], NULL, err);
	cptx_event_record(c->begin, NULL, err);
	for (unsigned i = 0; i < runs && err->code == CPTX_OK; i++)
		cptx_launch_run(launches[(i + WARM) % sets], NULL, err);
	cptx_event_record(c->end, NULL, err);
	cptx_event_synchronize(c->end, err);
	cptx_event_elapsed(c->begin, c->end, &ms, err);
	return err->code == CPTX_OK ? 1e3 * (double)ms / runs : 0;
}

/* Samples of a candidate on a GPU; the first, short burst only says how long the others are. */
static uint32_t sample_times(const tuning *t, uint32_t candidate, cptx_launch **launches, uint32_t sets, double *samples,
                             cptx_error *err)
{
	clocks c = { cptx_event_new(t->dev, err), cptx_event_new(t->dev, err) };
	double us = err->code == CPTX_OK ? burst(t, candidate, launches, sets, WARM, &c, err) : 0;
	const double runs = us > 0 ? BURST_US / us : 1;
	uint32_t n = 0;

	while (n < BURSTS && err->code == CPTX_OK) {
		samples[n] = burst(t, candidate, launches, sets, (unsigned)MIN(MAX(runs, 1.0), MOST_RUNS), &c, err);
		n += samples[n] > 0;
	}
	cptx_event_destroy(c.begin);
	cptx_event_destroy(c.end);
	return err->code == CPTX_OK ? n : 0;
}

/* Instructions that warps execute in a launch on the emulator. */
static uint32_t sample_steps(const tuning *t, uint32_t candidate, cptx_launch *launch, double *samples, cptx_error *err)
{
	cptx_emu_counters before = { 0 }, after = { 0 };

	if (t->job.before && !t->job.before(t->job.user, candidate, err))
		return 0;
	cptx_emu_get_counters(t->dev, &before);
	if (!cptx_launch_run(launch, NULL, err) || !cptx_device_synchronize(t->dev, err)) {
		cptx_emu_continue(t->dev);
		return 0;
	}
	cptx_emu_get_counters(t->dev, &after);
	samples[0] = (double)(after.warp_instructions - before.warp_instructions);
	return samples[0] > 0;
}

static uint32_t measure(const tuning *t, const made *s, double *samples, cptx_error *err)
{
	cptx_launch *launches[SETS] = { NULL };
	const uint32_t sets = t->job.launch(t->job.user, s->candidate, s->program, launches, t->emulated ? 1 : SETS, err);
	uint32_t n = 0;

	if (sets && err->code == CPTX_OK)
		n = t->emulated ? sample_steps(t, s->candidate, launches[0], samples, err)
		                : sample_times(t, s->candidate, launches, sets, samples, err);
	if (!n && err->code == CPTX_OK)
		error_set(err, CPTX_E_STATE, NOWHERE, "the launch gave nothing to measure");
	for (uint32_t i = 0; i < SETS; i++)
		cptx_launch_destroy(launches[i]);
	return n;
}

static void fail(tuning *t, const cptx_error *err)
{
	if (!t->done->failed++)
		snprintf(t->done->why, sizeof t->done->why, "%.*s: %.*s", 100,
		         t->job.name(t->job.user, t->slots[t->taken].candidate), 150, err->text);
}

/* Measures a slot and records it; false: it cannot be recorded. */
static bool take(tuning *t, uint32_t i, cptx_error *err)
{
	double samples[CPTX_TUNE_SAMPLES], spread;
	made *s = &t->slots[i];
	cptx_tune_record r = { .size = 0 };

	await(t, i);
	t->taken = i;
	uint32_t n = s->program ? measure(t, s, samples, &s->err) : 0;
	cptx_program_destroy(s->program);
	s->program = NULL;
	if (!n) {
		fail(t, &s->err);
		return true;
	}
	r.key = &t->key, r.candidate = t->job.name(t->job.user, s->candidate);
	r.unit = t->emulated ? "steps" : "us", r.samples = samples, r.nsamples = n;
	if (!cptx_tune_add(t->db, &r, err))
		return false;
	t->done->measured++;
	const double median = tune_median(samples, n, &spread);
	t->best = t->best > 0 ? MIN(t->best, median) : median;
	return true;
}

static void show(const tuning *t, uint32_t i)
{
	if (t->use.progress)
		t->use.progress(t->use.user, i, t->n, t->best);
}

static bool measure_all(tuning *t, double until, cptx_error *err)
{
	uint32_t i = 0;
	bool ok = true;

	start(t);
	for (; i < t->n && ok && (!i || now() < until); i++) {
		show(t, i);
		ok = take(t, i, err);
	}
	show(t, i);
	t->done->left += t->n - i;
	end(t);
	return ok;
}

/* ---- the call ---- */

/* The candidates of this part that are not known yet. */
static bool list(tuning *t, cptx_error *err)
{
	t->slots = NEW_ARRAY(made, t->job.candidates + 1u);
	if (!t->slots)
		return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (uint32_t i = 0; i < t->job.candidates; i++) {
		if (t->use.parts > 1 && (t->use.offset + i) % t->use.parts != t->use.part) {
			t->done->left++;
			continue;
		}
		if (t->use.policy != CPTX_TUNE_ALWAYS && cptx_tune_has(t->db, &t->key, t->job.name(t->job.user, i), err))
			t->done->known++;
		else
			t->slots[t->n++].candidate = i;
		if (err->code != CPTX_OK)
			return false;
	}
	return true;
}

static bool read_budget(cptx_tune_use *use, cptx_error *err)
{
	const char *text = getenv("CPTX_TUNE_BUDGET");
	unsigned s = BUDGET_S;
	char end;

	if (!(use->budget_s > 0) && text && *text && (sscanf(text, "%u%c", &s, &end) != 1 || !s || s > 86400))
		return error_set(err, CPTX_E_ARG, NOWHERE, "CPTX_TUNE_BUDGET is \"%s\"; expected seconds for a problem, 1 to 86400",
		                 text);
	use->budget_s = use->budget_s > 0 ? use->budget_s : s;
	return true;
}

static bool read_job(tuning *t, const cptx_tune_job *job, const cptx_tune_use *use, cptx_error *err)
{
	if (!IS_GIVEN(t->db, "database", NOWHERE, err) || !IS_GIVEN(t->dev, "device", NOWHERE, err) ||
	    !IS_GIVEN(job, "job", NOWHERE, err) || !OPTIONS_READ(cptx_tune_job, &t->job, job, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_tune_use, &t->use, use, NOWHERE, err) || !read_budget(&t->use, err))
		return false;
	if (t->use.parts && t->use.part >= t->use.parts)
		return error_set(err, CPTX_E_ARG, NOWHERE, "tune: part %u of %u; parts count from 0", t->use.part, t->use.parts);
	return IS_GIVEN(t->job.name, "job's .name", NOWHERE, err) && IS_GIVEN(t->job.build, "job's .build", NOWHERE, err) &&
	       IS_GIVEN(t->job.launch, "job's .launch", NOWHERE, err) && IS_GIVEN(t->job.key, "job's .key", NOWHERE, err) &&
	       OPTIONS_READ(cptx_tune_key, &t->key, t->job.key, NOWHERE, err) && tune_check_key(&t->key, err);
}

bool cptx_tune_measure(cptx_tune *db, cptx_device *dev, const cptx_tune_job *job, const cptx_tune_use *use,
                       cptx_tune_done *done, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_tune_done here = { .candidates = 0 };
	cptx_emu_counters counters;
	tuning t = { .db = db, .dev = dev, .done = &here };
	const double begin = now();

	err = err ? err : &own;
	if (err->code != CPTX_OK || !read_job(&t, job, use, err))
		return false;
	here.candidates = t.job.candidates;
	t.emulated = cptx_emu_get_counters(dev, &counters);
	bool ok = list(&t, err);
	if (ok && t.n) {
		pthread_mutex_init(&t.lock, NULL);
		pthread_cond_init(&t.ready, NULL);
		pthread_cond_init(&t.room, NULL);
		ok = measure_all(&t, begin + t.use.budget_s, err);
		pthread_cond_destroy(&t.room);
		pthread_cond_destroy(&t.ready);
		pthread_mutex_destroy(&t.lock);
	}
	free(t.slots);
	if (ok && here.failed && !here.measured && !here.known)
		ok = error_set(err, CPTX_E_STATE, NOWHERE, "tune: none of %u candidates could be measured: %s", here.failed,
		               here.why);
	if (done)
		*done = here;
	return ok;
}
