/* SPDX-License-Identifier: MIT */
/* A cluster of CTAs: whose turn it is among the warps, and the queue of what is asynchronous. */
#include "emu/core/cluster.h"
#include "emu/async/async.h"
#include "emu/async/tma.h"
#include "emu/core/counters.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/trace.h"
#include "emu/exec/barrier.h"
#include "emu/tensor/tcgen05.h"
#include "emu/tensor/wgmma.h"

#include <stdlib.h>

enum { TURN = 48 /* most instructions of a warp before another may go */ };
enum { LATENCY = 600 /* most steps that asynchronous work takes */ };
enum { LONG = 1000000 };
enum { HOLDS = 64 /* turns of others that change nothing, after which a warp that is held back may go: they poll for it */ };

uint32_t emu_random(emu_cluster *c, uint32_t below)
{
	if (c->grid->explorer)
		return 0;
	c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((c->random >> 32) * below >> 32);
}

/* What the seed and the schedule choose. */
static void init_order(emu_cluster *c)
{
	const cptx_emu_opt *opt = &c->grid->machine->opt;

	c->random = (opt->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (c->number + 1) * UINT64_C(0xbf58476d1ce4e5b9);
	emu_random(c, 2);
	c->parts = opt->schedule == CPTX_EMU_PARTED;
	c->holds = opt->schedule == CPTX_EMU_HELD;
	c->held = (uint32_t)((opt->seed + c->number) % c->nwarp);
}

/* ---- making and freeing ---- */

static bool init_warp(emu_warp *w, emu_cta *cta, uint32_t number)
{
	emu_cluster *c = cta->cluster;
	uint32_t left = cta->nthread - number * WARP;

	*w = (emu_warp){ .cta = cta, .cluster = c, .grid = c->grid, .number = number, .agent = c->nwarp++ };
	w->lanes = left >= WARP ? ALL_LANES : (UINT32_C(1) << left) - 1;
	return true;
}

static void cluster_id(const emu_grid *g, uint64_t number, uint32_t id[3])
{
	uint64_t nx = g->grid[0] / g->cluster[0], ny = g->grid[1] / g->cluster[1];

	id[0] = (uint32_t)(number % nx);
	id[1] = (uint32_t)(number / nx % ny);
	id[2] = (uint32_t)(number / nx / ny);
}

void emu_block_id(const emu_grid *g, uint64_t cluster, uint32_t rank, uint32_t id[3])
{
	cluster_id(g, cluster, id);
	id[0] = id[0] * g->cluster[0] + rank % g->cluster[0];
	id[1] = id[1] * g->cluster[1] + rank / g->cluster[0] % g->cluster[1];
	id[2] = id[2] * g->cluster[2] + rank / g->cluster[0] / g->cluster[1];
}

static bool init_cta(emu_cta *cta, emu_cluster *c, uint32_t rank)
{
	const emu_grid *g = c->grid;

	*cta = (emu_cta){ .cluster = c, .rank = rank, .shared_bytes = g->shared_bytes };
	emu_block_id(g, c->number, rank, cta->id);
	cta->nthread = g->block[0] * g->block[1] * g->block[2];
	cta->nwarp = (cta->nthread + WARP - 1) / WARP;
	cta->shared = NEW_ARRAY(unsigned char, cta->shared_bytes + 16u);
	cta->shared_defined = NEW_ARRAY(uint8_t, cta->shared_bytes / 8u + 16u);
	cta->warp = NEW_ARRAY(emu_warp, cta->nwarp);
	for (uint32_t i = 0; cta->warp && i < cta->nwarp; i++)
		init_warp(&cta->warp[i], cta, i);
	return cta->shared && cta->shared_defined && cta->warp;
}

static bool init_clocks(emu_cluster *c)
{
	if (!race_cluster_init(c))
		return false;
	for (uint32_t i = 0; i < c->ncta; i++) {
		emu_cta *cta = &c->cta[i];
		for (uint32_t j = 0; j < cta->nwarp; j++)
			if (!race_warp_init(&cta->warp[j]))
				return false;
	}
	return true;
}

bool emu_cluster_init(emu_cluster *c, emu_grid *g, uint64_t number)
{
	*c = (emu_cluster){ .grid = g, .number = number, .ncta = g->ctas_per_cluster };
	cluster_id(g, number, c->id);
	buf_init(&c->printed, NULL);
	c->cta = NEW_ARRAY(emu_cta, c->ncta);
	c->hits = NEW_ARRAY(uint64_t, g->image->nop + 1u);
	c->traffic = NEW_ARRAY(struct emu_traffic, g->image->nop + 1u);
	bool ok = c->cta && c->hits && c->traffic;
	for (uint32_t i = 0; ok && i < c->ncta; i++)
		ok = init_cta(&c->cta[i], c, i);
	if (!ok || !init_clocks(c) || !emu_trace_init(c, g->begin))
		return false;
	init_order(c);
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
			emu_warp_start(&c->cta[i].warp[j]);
	c->live = c->nwarp;
	return true;
}

static void free_warp(emu_warp *w)
{
	for (unsigned i = 0; i < w->ngroup; i++)
		emu_frame_drop(w, w->group[i].frame);
	free(w->local);
	free(w->local_defined);
	emu_wgmma_free(w);
	emu_tcgen05_free(w);
	race_warp_free(w);
	emu_async_state_free(w);
	emu_bulk_free(w);
}

static void free_async(emu_async *a)
{
	if (a->drop)
		a->drop(a);
	free(a);
}

void emu_cluster_free(emu_cluster *c)
{
	for (emu_async *a = c->queue.first, *next; a; a = next) {
		next = a->next;
		free_async(a);
	}
	emu_queue_free(&c->queue);
	for (uint32_t i = 0; c->cta && i < c->ncta; i++) {
		emu_cta *cta = &c->cta[i];
		for (uint32_t j = 0; cta->warp && j < cta->nwarp; j++)
			free_warp(&cta->warp[j]);
		emu_barriers_free(cta->barrier, ARRAY_LEN(cta->barrier));
		race_cta_free(cta);
		emu_mbarriers_free(cta);
		emu_tmem_free(cta);
		free(cta->warp);
		free(cta->shared);
		free(cta->shared_defined);
	}
	emu_barriers_free(&c->barrier, 1);
	race_cluster_free(c);
	emu_view_free(&c->view);
	emu_tensormaps_free(c->maps);
	emu_found_free(c);
	buf_free(&c->printed);
	emu_trace_free(c);
	free(c->cta);
	free(c->hits);
	free(c->traffic);
}

/* ---- asynchronous work ---- */

static uint64_t due(emu_cluster *c)
{
	if (c->grid->explorer)
		return UINT64_MAX;
	switch (c->grid->machine->opt.schedule) {
	case CPTX_EMU_EAGER: return 0;
	case CPTX_EMU_LATE: return UINT64_MAX;
	default: break;
	}
	switch (emu_random(c, 4)) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	default: return c->step + emu_random(c, LATENCY);
	}
}

/* Does it, or a part of it.  True: it is done, and no more. */
static bool run_async(emu_cluster *c, emu_async *a)
{
	if (a->turn && !c->turn && c->grid->nclusters > 1) {
		c->wants_async = a;
		return false;
	}
	c->changes++;
	if (!(c->trace ? emu_trace_run(c, a) : a->run(c, a)))
		return false;
	emu_queue_remove(&c->queue, a, c->step);
	free_async(a);
	return true;
}

bool emu_async_start(emu_cluster *c, emu_async *a)
{
	a->due = due(c);
	if (c->grid->explorer)
		emu_explore_started(c, a);
	if (!emu_queue_add(&c->queue, a, c->step)) {
		c->no_memory = c->failed = true;
		return false;
	}
	if (c->trace)
		emu_trace_begin(c, a);
	while (!a->due && emu_queue_is_front(&c->queue, a) && !c->failed && !c->wants_async && !run_async(c, a))
		;
	return !c->failed;
}

bool emu_async_step(emu_cluster *c, bool force)
{
	uint32_t n = emu_queue_choices(&c->queue, c->step, force);

	if (n)
		run_async(c, emu_queue_choice(&c->queue, emu_random(c, n), force));
	return n;
}

/* ---- running ---- */

/* Whether it is not the turn of the warp that is held back: others can go on, and have changed something of late. */
static bool holds(emu_cluster *c)
{
	if (c->changes != c->held_changes) {
		c->held_changes = c->changes;
		c->held_turns = 0;
	}
	if (c->held_turns++ < HOLDS * c->nwarp)
		return true;
	c->held_turns = 0;
	return false;
}

static emu_warp *choose_warp(emu_cluster *c)
{
	uint32_t start = emu_random(c, c->nwarp), per = c->cta[0].nwarp;
	emu_warp *last = NULL;

	for (uint32_t i = 0; i < c->nwarp; i++) {
		uint32_t n = (start + i) % c->nwarp;
		emu_warp *w = &c->cta[n / per].warp[n % per];
		if (!w->ngroup || !emu_warp_can_run(w))
			continue;
		if (!c->holds || n != c->held || !holds(c))
			return w;
		last = w;
	}
	return last;
}

/* Nothing can run: late work is done now, then those who poll may look again.  False: nobody polls, a deadlock. */
static bool go_on(emu_cluster *c)
{
	if (emu_async_step(c, true))
		return true;
	bool polls = false;
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++)
			for (unsigned k = 0; k < c->cta[i].warp[j].ngroup; k++)
				polls |= c->cta[i].warp[j].group[k].state == GROUP_RUN;
	if (!polls)
		return false;
	c->progress++;
	c->step += LONG; /* as if a long time had gone by */
	c->idle += LONG;
	return true;
}

static enum emu_stop run_one(emu_cluster *c, emu_warp *w, uint32_t n)
{
	uint64_t before = c->step;
	enum emu_stop s = emu_warp_run(w, n);

	if (c->trace)
		emu_trace_warp(c, w, before);
	if (!w->ngroup) {
		c->live--;
		emu_barrier_exit(w);
		emu_touched(c, c->grid, (emu_touch){ .object = emu_object(c, w->cta->rank, OBJECT_LIFE, 0), .kind = TOUCH_ADD });
	}
	return s;
}

/* Behind the last instruction. */
static enum emu_stop end(emu_cluster *c)
{
	while (c->queue.first && !c->failed && !c->fold)
		if (c->wants_async)
			return STOP_TURN;
		else if (!emu_async_step(c, true))
			return STOP_STUCK;
	if (c->fold && !c->failed)
		return STOP_QUANTUM;
	mbarriers_end(c);
	emu_tmem_end(c);
	return c->failed ? STOP_FAULT : STOP_DONE;
}

enum emu_stop emu_cluster_run(emu_cluster *c, uint32_t n)
{
	uint64_t end_step = c->step + c->work + n;

	while (c->live && c->step + c->work < end_step && !c->failed && !c->fold) {
		if (c->wants_async)
			return STOP_TURN;
		emu_warp *w = choose_warp(c);
		if (!w) {
			if (!go_on(c))
				return STOP_STUCK;
			continue;
		}
		uint32_t most = 1 + emu_random(c, TURN);
		if (run_one(c, w, (uint32_t)MIN(most, end_step - c->step - c->work)) == STOP_TURN) {
			c->wants = w;
			return STOP_TURN;
		}
		while (c->queue.first && !c->failed && !c->wants_async && emu_async_step(c, false))
			;
	}
	if (c->failed)
		return STOP_FAULT;
	return c->live ? STOP_QUANTUM : end(c);
}

void emu_cluster_step(emu_cluster *c, emu_warp *w) { run_one(c, w, 1); }

void emu_cluster_async(emu_cluster *c, emu_async *a) { run_async(c, a); }

void emu_cluster_turn(emu_cluster *c)
{
	emu_async *a = c->wants_async;

	c->turn = true;
	c->wants_async = NULL;
	if (a)
		run_async(c, a);
	else
		run_one(c, c->wants, 1);
	c->turn = false;
}
