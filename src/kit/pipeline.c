/* SPDX-License-Identifier: MIT */
/* Rings of stages over mbarriers, or over groups of cp.async. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/pipeline.h>

#include "kit/made.h"
#include "kit/value.h"

enum { MOST_STAGES = 64, MOST_CLUSTER = 16, BARRIER = 8 /* bytes */, MOST_ARRIVALS = (1 << 20) - 1 };

static bool check_cp_async(cptx_kernel *k, cptx_site at, const cptx_pipe_opt *o)
{
	const bool groups = o->by == CPTX_PIPE_CP_ASYNC_GROUPS;

	if ((unsigned)o->by > CPTX_PIPE_CP_ASYNC_GROUPS)
		cptx_fail_(k, at, "a pipeline with .by = %d; it is CPTX_PIPE_MBARRIER, _CP_ASYNC or _CP_ASYNC_GROUPS", (int)o->by);
	else if (o->multicast > 1)
		cptx_fail_(k, at, "a pipeline over cp.async that multicasts to %u CTAs; cp.async fills its own CTA alone",
		           o->multicast);
	else if (groups && o->stages < 2)
		cptx_fail_(k, at, "a pipeline over groups of cp.async with 1 stage; it has 2 to %d, one to read and others to fill",
		           MOST_STAGES);
	else if (groups && o->ahead >= o->stages)
		cptx_fail_(k, at, "a pipeline of %u stages filled %u ahead; 1 to %u, for one is being read", o->stages, o->ahead,
		           o->stages - 1);
	else if (groups && (o->threads % CPTX_WARP || o->threads > CPTX_THREADS_PER_CTA || o->named >= CPTX_BARRIERS))
		cptx_fail_(k, at,
		           "a pipeline of %u threads that meet at barrier %u; whole warps, at most %d threads, and barriers 0 to %d",
		           o->threads, o->named, CPTX_THREADS_PER_CTA, CPTX_BARRIERS - 1);
	else
		return true;
	return false;
}

/* Refuses options that the kind at hand does not read. */
static bool check_fields(cptx_kernel *k, cptx_site at, const cptx_pipe_opt *o)
{
	if (o->by != CPTX_PIPE_CP_ASYNC_GROUPS && (o->ahead || o->threads || o->named))
		cptx_fail_(k, at, "a pipeline with .%s; that is for CPTX_PIPE_CP_ASYNC_GROUPS: say .by",
		           o->ahead     ? "ahead"
		           : o->threads ? "threads"
		                        : "named");
	else if (o->by == CPTX_PIPE_CP_ASYNC_GROUPS && (o->producers || o->consumers))
		cptx_fail_(
			k, at,
			"a pipeline over groups of cp.async with .%s; all threads produce and consume, and no mbarrier counts them",
			o->producers ? "producers" : "consumers");
	else if (o->cta_release && o->multicast < 2)
		cptx_fail_(k, at, "a pipeline with .cta_release; that is for consumers of several CTAs: say .multicast");
	else if (o->by != CPTX_PIPE_CP_ASYNC && o->sleeps)
		cptx_fail_(k, at,
		           "a pipeline with .sleeps; that is for CPTX_PIPE_CP_ASYNC: others wait so, or have nothing to wait for");
	else
		return true;
	return false;
}

/* What tells a pipeline over groups from others, as barriers do: its line, and who meets where. */
static cptx_val number_of(cptx_site at, const cptx_pipe_opt *o)
{
	return cptx_imm((int64_t)at.line << 16 | o->threads << 4 | o->named);
}

void cptx_pipe_new_(cptx_kernel *k, cptx_site at, cptx_pipe *p, const cptx_pipe_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, p, "pipeline"))
		return;
	*p = (cptx_pipe){ .barriers = { 0 } };
	cptx_pipe_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_pipe_opt, &o, opt, at, k))
		return;
	opt = &o;
	uint64_t releases = (uint64_t)MAX(opt->consumers, 1u) * MAX(opt->multicast, 1u);

	p->opt = *opt;
	p->opt.producers = MAX(opt->producers, 1u), p->opt.consumers = MAX(opt->consumers, 1u);
	p->opt.multicast = MAX(opt->multicast, 1u);
	if (opt->stages < 1 || opt->stages > MOST_STAGES) {
		cptx_fail_(k, at, "a pipeline of %u stages; it has 1 to %d", opt->stages, MOST_STAGES);
		return;
	}
	if (opt->multicast > MOST_CLUSTER) {
		cptx_fail_(k, at, "a pipeline that multicasts to %u CTAs; a cluster has at most %d", opt->multicast, MOST_CLUSTER);
		return;
	}
	if (p->opt.producers > MOST_ARRIVALS || releases > MOST_ARRIVALS) {
		cptx_fail_(k, at, "a pipeline with %u producers and %u consumers in %u CTAs; an mbarrier counts at most %d arrivals",
		           p->opt.producers, p->opt.consumers, p->opt.multicast, MOST_ARRIVALS);
		return;
	}
	if (!check_fields(k, at, opt) || (opt->by != CPTX_PIPE_MBARRIER && !check_cp_async(k, at, &p->opt)))
		return;
	if (opt->by == CPTX_PIPE_CP_ASYNC_GROUPS) {
		p->opt.ahead = opt->ahead ? opt->ahead : opt->stages - 1;
		p->barriers = number_of(at, opt);
	} else {
		p->barriers = cptx_shared_(k, at, CPTX_B64, 2 * opt->stages, 16, NULL);
	}
	p->made = kit_made(k, KIT_cptx_pipe);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_pipe *p) { return KIT_IS_MADE(cptx_pipe, k, at, p); }

static bool is_begun(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here)
{
	return KIT_IS_MADE(cptx_pipe_at, k, at, here);
}

static bool is_same(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here, cptx_val barriers, uint32_t stages,
                    enum cptx_pipe_by by)
{
	const bool ok = here->of.kind == barriers.kind && here->of.id == barriers.id && here->of.i == barriers.i &&
	                here->stages == stages && here->by == by;

	if (!ok)
		cptx_fail_(k, at,
		           "a place in another pipeline, of %u stages; this one has %u and places of its own: "
		           "cptx_pipe_producer, cptx_pipe_consumer",
		           here->stages, stages);
	return ok;
}

/* Whether a place is one of the pipeline, which was made. */
static bool is_place_of(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here)
{
	return is_made(k, at, p) && is_begun(k, at, here) && is_same(k, at, here, p->barriers, p->opt.stages, p->opt.by);
}

void cptx_pipe_prepare_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first)
{
	if (!is_made(k, at, p))
		return;
	const cptx_pipe_opt *o = &p->opt;

	if (o->by == CPTX_PIPE_CP_ASYNC_GROUPS || !kit_value(k, at, "cptx_pipe_init", "the predicate", first, KIT_PRED))
		return;
	cptx_if_begin_(k, at, first);
	for (uint32_t i = 0; i < 2 * o->stages; i++) {
		uint32_t arrivals = i < o->stages ? o->producers : o->consumers * o->multicast;
		CALL(mbarrier_init, .a = cptx_offset(p->barriers, (int64_t)BARRIER * i), .count = cptx_imm(arrivals),
		     .space = CPTX_SHARED);
	}
	if (o->by == CPTX_PIPE_MBARRIER)
		CALL(fence_mbarrier_init, .z_ = 0); /* for other CTAs, and for copies, which go by the async proxy */
	cptx_block_end_(k, at);
}

void cptx_pipe_init_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_val first)
{
	if (!is_made(k, at, p))
		return;
	cptx_pipe_prepare_(k, at, p, first);
	if (p->opt.by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return;
	if (p->opt.multicast == 1) {
		CALL(bar_sync, .a = cptx_imm(0));
		return;
	}
	CALL(barrier_cluster_arrive, .aligned = true);
	CALL(barrier_cluster_wait, .aligned = true);
}

cptx_pipe_at cptx_pipe_begin_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, bool producer, cptx_val cta)
{
	cptx_pipe_at here = { .cta = cta };

	if (!is_made(k, at, p) || !kit_value(k, at, producer ? "cptx_pipe_producer_of" : "cptx_pipe_consumer_of", "the CTA", cta,
	                                     KIT_U32 | KIT_WHOLE | KIT_NONE))
		return here;
	if (cta.kind == CPTX_VAL_INT && cta.i >= MOST_CLUSTER) {
		cptx_fail_(k, at, "the CTA of rank %lld; a cluster has ranks 0 to %d", (long long)cta.i, MOST_CLUSTER - 1);
		return here;
	}
	here.made = kit_made(k, KIT_cptx_pipe_at);
	here.stages = p->opt.stages, here.by = p->opt.by, here.of = p->barriers, here.producer = producer;
	if (here.by == CPTX_PIPE_CP_ASYNC_GROUPS) {
		here.stage = CALL(mov, .a = cptx_imm(0), .type = CPTX_U32);
		return here;
	}
	/* a fresh barrier has completed the phase before the first, of parity 1 */
	here.parity = CALL(mov, .a = cptx_imm(producer), .type = CPTX_U32);
	here.first = CALL(mov, .a = p->barriers, .type = CPTX_U32);
	here.barrier = CALL(mov, .a = here.first, .type = CPTX_U32);
	here.stage = CALL(mov, .a = cptx_imm(0), .type = CPTX_U32);
	if (!producer && p->opt.multicast > 1 && cta.kind == CPTX_VAL_NONE) {
		cptx_fail_(k, at,
		           "a consumer of a pipeline that multicasts to %u CTAs: say which it releases to, cptx_pipe_consumer_of",
		           p->opt.multicast);
	}
	return here;
}

void cptx_pipe_next_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here)
{
	if (!is_place_of(k, at, p, here))
		return;
	if (p->opt.stages == 1) {
		CALL(xor, .a = here->parity, .b = cptx_imm(1), .into = here->parity);
		return;
	}
	CALL(add, .a = here->stage, .b = cptx_imm(1), .into = here->stage);
	cptx_val wraps = CALL(setp, .a = here->stage, .b = cptx_imm(p->opt.stages), .cmp = CPTX_EQ);
	CALL(mov, .a = cptx_imm(0), .into = here->stage, .when = wraps);
	if (here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return;
	/* one instruction of SASS; counting the address along would take three */
	CALL(mad, .a = here->stage, .b = cptx_imm(BARRIER), .c = here->first, .mode = CPTX_LO, .into = here->barrier);
	CALL(xor, .a = here->parity, .b = cptx_imm(1), .into = here->parity, .when = wraps);
}

void cptx_pipe_skip_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here, uint32_t n)
{
	if (!is_place_of(k, at, p, here))
		return;
	if (!n || p->opt.stages % n || here->by == CPTX_PIPE_CP_ASYNC_GROUPS) {
		cptx_fail_(k, at, "%u stages of %u are skipped%s", n, p->opt.stages,
		           here->by == CPTX_PIPE_CP_ASYNC_GROUPS ? " of groups of cp.async" : "; it is a divisor");
		return;
	}
	if (n == 1) {
		cptx_pipe_next_(k, at, p, here);
		return;
	}
	CALL(add, .a = here->stage, .b = cptx_imm(n), .into = here->stage);
	cptx_val wraps = CALL(setp, .a = here->stage, .b = cptx_imm(p->opt.stages), .cmp = CPTX_GE);
	CALL(sub, .a = here->stage, .b = cptx_imm(p->opt.stages), .into = here->stage, .when = wraps);
	CALL(mad, .a = here->stage, .b = cptx_imm(BARRIER), .c = here->first, .mode = CPTX_LO, .into = here->barrier);
	CALL(xor, .a = here->parity, .b = cptx_imm(1), .into = here->parity, .when = wraps);
}

cptx_pipe_at cptx_pipe_ahead_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here)
{
	cptx_pipe_at ahead = { .stages = 0 };

	if (!is_place_of(k, at, p, here))
		return ahead;
	ahead = *here;
	ahead.stage = CALL(mov, .a = here->stage, .type = CPTX_U32);
	if (here->by != CPTX_PIPE_CP_ASYNC_GROUPS) {
		ahead.parity = CALL(mov, .a = here->parity, .type = CPTX_U32);
		ahead.barrier = CALL(mov, .a = here->barrier, .type = CPTX_U32);
	}
	cptx_pipe_next_(k, at, p, &ahead);
	return ahead;
}

void cptx_pipe_go_(cptx_kernel *k, cptx_site at, cptx_pipe_at *here, const cptx_pipe_at *ahead)
{
	if (!is_begun(k, at, here) || !is_begun(k, at, ahead) || !is_same(k, at, ahead, here->of, here->stages, here->by))
		return;
	CALL(mov, .a = ahead->stage, .into = here->stage);
	if (here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return;
	CALL(mov, .a = ahead->parity, .into = here->parity);
	CALL(mov, .a = ahead->barrier, .into = here->barrier);
}

cptx_val cptx_pipe_is_full_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here)
{
	if (!is_begun(k, at, here))
		return (cptx_val){ 0 };
	if (here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return cptx_fail_(k, at, "whether a stage is full, of groups of cp.async, which can be waited for only");
	return CALL(mbarrier_test_wait_parity, .a = here->barrier, .parity = here->parity, .space = CPTX_SHARED_CTA);
}

cptx_val cptx_pipe_full_of_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here)
{
	if (!is_begun(k, at, here))
		return (cptx_val){ 0 };
	if (here->cta.kind == CPTX_VAL_NONE)
		return here->barrier;
	return CALL(mapa, .a = here->barrier, .b = here->cta, .space = CPTX_SHARED_CLUSTER, .type = CPTX_U32);
}

/* All threads of a pipeline over groups: all but the newest groups are there, for all of them. */
static void wait_groups(cptx_kernel *k, cptx_site at, const cptx_pipe *p, uint32_t newest)
{
	const uint32_t threads = p->opt.threads;

	CALL(cp_async_wait_group, .n = cptx_imm(newest));
	if (threads == CPTX_WARP)
		CALL(bar_warp_sync, .mask = cptx_imm(-1));
	else
		CALL(bar_sync, .a = cptx_imm(p->opt.named), .b = threads ? cptx_imm(threads) : (cptx_val){ 0 });
}

void cptx_pipe_wait_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here, bool full)
{
	if (!is_place_of(k, at, p, here))
		return;
	if (p->opt.by != CPTX_PIPE_CP_ASYNC_GROUPS && full == here->producer) {
		cptx_fail_(k, at,
		           full
		               ? "a producer's place waits for data, which consumers do: cptx_pipe_consumer gives theirs"
		               : "a consumer's place waits for an empty stage, which producers do: cptx_pipe_producer gives theirs");
		return;
	}
	if (p->opt.by == CPTX_PIPE_CP_ASYNC_GROUPS) {
		if (full) /* else the wait of this turn was for the stage that is read, and told that nobody reads the one before */
			wait_groups(k, at, p, p->opt.ahead - 1);
		return;
	}
	cptx_val barrier = full ? cptx_pipe_full(here) : cptx_pipe_empty(here), done;

	cptx_wait_begin_(k, at);
	if (p->opt.by == CPTX_PIPE_CP_ASYNC && !p->opt.sleeps)
		done = CALL(mbarrier_test_wait_parity, .a = barrier, .parity = here->parity, .space = CPTX_SHARED);
	else if (p->opt.multicast > 1 && !full && !p->opt.cta_release) /* released by threads of other CTAs */
		done = CALL(mbarrier_try_wait_parity, .a = barrier, .parity = here->parity, .sem = CPTX_ACQUIRE,
		            .scope = CPTX_CLUSTER, .space = CPTX_SHARED_CTA);
	else
		done = CALL(mbarrier_try_wait_parity, .a = barrier, .parity = here->parity, .space = CPTX_SHARED_CTA);
	cptx_wait_end_(k, at, CPTX_WAIT_DONE, done);
}

void cptx_pipe_filled_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here, cptx_val bytes)
{
	if (!is_begun(k, at, here) ||
	    !kit_value(k, at, "cptx_pipe_expect", "the number of bytes", bytes, KIT_U32 | KIT_WHOLE | KIT_NONE))
		return;
	const bool over_cp_async = here->by == CPTX_PIPE_CP_ASYNC || here->by == CPTX_PIPE_CP_ASYNC_GROUPS;
	if (over_cp_async && bytes.kind != CPTX_VAL_NONE)
		return; /* bytes are not counted */
	if (here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		CALL(cp_async_commit_group, .z_ = 0);
	else if (over_cp_async)
		CALL(cp_async_mbarrier_arrive, .a = here->barrier, .noinc = CPTX_ON, .space = CPTX_SHARED);
	else if (bytes.kind == CPTX_VAL_NONE)
		CALL(mbarrier_arrive, .a = here->barrier, .into = cptx_sink(), .space = CPTX_SHARED_CTA);
	else
		CALL(mbarrier_arrive_expect_tx, .a = here->barrier, .tx = bytes, .into = cptx_sink(), .space = CPTX_SHARED_CTA);
}

void cptx_pipe_copied_(cptx_kernel *k, cptx_site at, const cptx_pipe_at *here)
{
	if (is_begun(k, at, here) && here->by != CPTX_PIPE_MBARRIER)
		cptx_pipe_filled_(k, at, here, (cptx_val){ 0 });
}

void cptx_pipe_release_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here, cptx_val when)
{
	if (!is_place_of(k, at, p, here) || !kit_value(k, at, "cptx_pipe_release", "the predicate", when, KIT_PRED | KIT_NONE))
		return;
	if (p->opt.by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return;
	if (here->cta.kind == CPTX_VAL_NONE) {
		CALL(mbarrier_arrive, .a = cptx_pipe_empty(here), .into = cptx_sink(), .space = CPTX_SHARED_CTA, .when = when);
		return;
	}
	cptx_val there = cptx_offset(cptx_pipe_full_of_(k, at, here), (int64_t)BARRIER * p->opt.stages);
	if (p->opt.cta_release)
		CALL(mbarrier_arrive, .a = there, .into = cptx_sink(), .space = CPTX_SHARED_CLUSTER, .when = when);
	else
		CALL(mbarrier_arrive, .a = there, .sem = CPTX_RELEASE, .scope = CPTX_CLUSTER, .space = CPTX_SHARED_CLUSTER,
		     .when = when);
}

cptx_pipe_left cptx_pipe_left_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, const cptx_pipe_at *here)
{
	cptx_pipe_left left = { .when = { 0 } };

	if (!is_place_of(k, at, p, here))
		return left;
	left.at = *here;
	if (here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return left;
	left.at.barrier = CALL(mov, .a = here->barrier, .type = CPTX_U32);
	left.when = CALL(mov, .a = cptx_imm(0), .type = CPTX_PRED);
	return left;
}

void cptx_pipe_leave_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_left *left, const cptx_pipe_at *here,
                      cptx_val when)
{
	if (!IS_GIVEN_TO(k, at, left, "left stage") || !is_place_of(k, at, p, here) || !is_place_of(k, at, p, &left->at) ||
	    !kit_value(k, at, "cptx_pipe_leave", "the predicate", when, KIT_PRED) || here->by == CPTX_PIPE_CP_ASYNC_GROUPS)
		return;
	CALL(mov, .a = here->barrier, .into = left->at.barrier);
	CALL(mov, .a = when, .into = left->when);
}

void cptx_pipe_drain_(cptx_kernel *k, cptx_site at, const cptx_pipe *p, cptx_pipe_at *here)
{
	if (is_made(k, at, p) && p->opt.by == CPTX_PIPE_CP_ASYNC_GROUPS) {
		wait_groups(k, at, p, 0);
		return;
	}
	for (uint32_t i = 0; is_made(k, at, p) && i < p->opt.stages; i++) {
		cptx_pipe_wait_(k, at, p, here, false);
		cptx_pipe_next_(k, at, p, here);
	}
}
