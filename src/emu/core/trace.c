/* SPDX-License-Identifier: MIT */
#include "emu/core/trace.h"
#include "emu/core/cluster.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/core/machine.h"

#include <stdlib.h>

enum { LOOK = 8 /* instructions of a warp that only looks again at what it waits for */ };

typedef struct span {
	enum cptx_emu_span_kind kind;
	const emu_op *op;
	const emu_cta *cta;
	uint32_t warp;
	uint64_t begin, end, bytes, flops;
} span;

/* Of a warp: since when it runs, or waits at op. */
typedef struct warp_state {
	const emu_op *op;
	uint64_t since;
} warp_state;

struct emu_trace {
	struct span *span;
	size_t n, cap;
	bool no_memory;
	uint64_t base;
	warp_state warp[]; /* by agent */
};

uint64_t emu_trace_now(const emu_cluster *c) { return c->trace ? c->trace->base + c->step - c->idle : 0; }

bool emu_trace_init(emu_cluster *c, uint64_t base)
{
	if (!c->grid->machine->opt.trace)
		return true;
	c->trace = NEW_SIZED(struct emu_trace, sizeof *c->trace + c->nwarp * sizeof *c->trace->warp);
	if (!c->trace)
		return false;
	c->trace->base = base;
	for (uint32_t i = 0; i < c->nwarp; i++)
		c->trace->warp[i].since = base;
	return true;
}

void emu_trace_free(emu_cluster *c)
{
	if (c->trace)
		free(c->trace->span);
	free(c->trace);
}

static void put(emu_cluster *c, span s)
{
	struct emu_trace *t = c->trace;

	if (!array_room(&t->span, t->n, &t->cap, sizeof *t->span, 64)) {
		t->no_memory = true;
		return;
	}
	t->span[t->n++] = s;
}

/* The warp has run, or waited, until then. */
static void put_warp(emu_cluster *c, const emu_warp *w, const warp_state *x, uint64_t end)
{
	if (end > x->since)
		put(c, (span){ .kind = x->op ? CPTX_EMU_SPAN_WAIT : CPTX_EMU_SPAN_RUN,
		               .op = x->op,
		               .cta = w->cta,
		               .warp = w->number,
		               .begin = x->since,
		               .end = end });
}

/* What a warp waits at of which no group can go on: an instruction that blocks, or a poll that has failed. */
static const emu_op *waits_at(const emu_warp *w, bool *polls)
{
	const emu_op *poll = NULL;

	*polls = false;
	for (unsigned i = 0; i < w->ngroup; i++) {
		const emu_group *g = &w->group[i];
		if (g->state != GROUP_RUN)
			return g->waiting.op;
		if (g->pc)
			poll = &g->frame->f->code[g->pc - 1];
	}
	*polls = true;
	return poll;
}

void emu_trace_warp(emu_cluster *c, const emu_warp *w, uint64_t before)
{
	warp_state *x = &c->trace->warp[w->agent];
	uint64_t end = emu_trace_now(c), begin = end - (c->step - before);
	bool polls = false, stuck = w->ngroup && !emu_warp_can_run(w);
	const emu_op *op = stuck ? waits_at(w, &polls) : NULL;

	if (x->op && (end == begin ? w->ngroup != 0 : op == x->op && polls && end - begin <= LOOK))
		return; /* it still waits */
	if (x->op) {
		put_warp(c, w, x, begin);
		*x = (warp_state){ .since = begin };
	}
	if (!op && w->ngroup)
		return;
	put_warp(c, w, x, end);
	*x = (warp_state){ .op = op, .since = end };
}

void emu_trace_begin(const emu_cluster *c, emu_async *a) { a->begun = emu_trace_now(c); }

static void put_async(emu_cluster *c, const emu_async *a)
{
	put(c, (span){ .kind = CPTX_EMU_SPAN_ASYNC,
	               .op = a->op,
	               .cta = a->w->cta,
	               .warp = a->w->number,
	               .begin = a->begun,
	               .end = emu_trace_now(c),
	               .bytes = a->bytes,
	               .flops = a->flops ? a->flops : a->op->flops * UINT64_C(128) /* wgmma: of a thread of four warps */ });
}

bool emu_trace_run(emu_cluster *c, emu_async *a)
{
	uint64_t bytes = c->counters.async_bytes, flops = c->counters.tensor_flops;
	bool done = a->run(c, a);

	a->bytes += c->counters.async_bytes - bytes;
	a->flops += c->counters.tensor_flops - flops;
	if (done)
		put_async(c, a);
	return done;
}

void emu_trace_cut(emu_cluster *c)
{
	if (!c->trace)
		return;
	for (uint32_t i = 0; i < c->ncta; i++)
		for (uint32_t j = 0; j < c->cta[i].nwarp; j++) {
			const emu_warp *w = &c->cta[i].warp[j];
			if (w->ngroup)
				put_warp(c, w, &c->trace->warp[w->agent], emu_trace_now(c));
		}
	for (const emu_async *a = c->queue.first; a; a = a->next)
		put_async(c, a);
}

bool emu_trace_out(emu_cluster *c)
{
	struct emu_trace *t = c->trace;
	const emu_grid *g = c->grid;
	const cptx_emu_opt *opt = &g->machine->opt;
	char opcode[ARCH_OPCODE];

	for (size_t i = 0; t && i < t->n; i++) {
		const span *s = &t->span[i];
		const uint32_t *id = s->cta->id;
		cptx_emu_span out = { .kind = s->kind,
			                  .kernel = g->image->kernel->name,
			                  .instruction = opcode,
			                  .block = { id[0], id[1], id[2] },
			                  .number = id[0] + (uint64_t)g->grid[0] * (id[1] + (uint64_t)g->grid[1] * id[2]),
			                  .warp = s->warp,
			                  .begin = s->begin,
			                  .end = s->end,
			                  .bytes = s->bytes,
			                  .flops = s->flops };
		*opcode = 0;
		if (s->op && s->op->item) {
			*arch_put_opcode(opcode, s->op->form, ir_mods(s->op->item)) = 0;
			out.at = emu_site_of(g->image->program, s->op);
		}
		opt->trace(opt->user, &out);
	}
	if (t)
		t->n = 0;
	return !t || !t->no_memory;
}
