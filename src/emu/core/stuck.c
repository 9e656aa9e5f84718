/* SPDX-License-Identifier: MIT */
/* Launches that do not come to their end: who waits where for what, and what would have brought it. */
#include "emu/async/mbarrier.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/exec/barrier.h"

enum { MOST_WAITS = 12 /* that are told */, MOST_SOURCES = 4 };

/* ---- what brings what is missing ---- */

static bool arrives(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_MBARRIER_ARRIVE:
	case CPTX_OP_MBARRIER_ARRIVE_NOCOMPLETE:
	case CPTX_OP_MBARRIER_ARRIVE_EXPECT_TX:
	case CPTX_OP_MBARRIER_ARRIVE_DROP:
	case CPTX_OP_MBARRIER_ARRIVE_DROP_NOCOMPLETE:
	case CPTX_OP_MBARRIER_ARRIVE_DROP_EXPECT_TX:
	case CPTX_OP_CP_ASYNC_MBARRIER_ARRIVE:
	case CPTX_OP_TCGEN05_COMMIT: return true;
	default: return false;
	}
}

static bool brings_bytes(const emu_op *op)
{
	switch (op->opcode) {
	case CPTX_OP_CP_ASYNC_BULK_LOAD:
	case CPTX_OP_CP_ASYNC_BULK_CLUSTER:
	case CPTX_OP_CP_ASYNC_BULK_TENSOR_LOAD:
	case CPTX_OP_ST_ASYNC:
	case CPTX_OP_RED_ASYNC:
	case CPTX_OP_MBARRIER_COMPLETE_TX: return true;
	default: return false;
	}
}

/* The kernel's instructions of a kind, and how often the cluster's threads have executed them. */
static void put_sources(buf *b, const emu_cluster *c, bool (*is)(const emu_op *op), const char *what)
{
	const emu_image *im = c->grid->image;
	unsigned n = 0;

	for (uint32_t i = 0; i < im->nop; i++) {
		const emu_op *op = im->ops[i];
		if (!op->item || !is(op))
			continue;
		if (n++ >= MOST_SOURCES)
			continue;
		buf_printf(b, n == 1 ? "\n    %s: " : ", ", what);
		emu_put_op(b, c->grid, op);
		if (c->hits[i])
			buf_printf(b, " executed %llu times", (unsigned long long)c->hits[i]);
		else
			buf_str(b, " never executed");
	}
	if (n > MOST_SOURCES)
		buf_printf(b, " and %u more", n - MOST_SOURCES);
	else if (!n)
		buf_printf(b, "\n    %s: none is in the kernel", what);
}

/* ---- who waits ---- */

/* Where a group is, and what it waits for. */
static void put_state(buf *b, const emu_warp *w, const emu_group *g)
{
	const emu_op *op = g->waiting.op ? g->waiting.op : &g->frame->f->code[g->pc];

	emu_put_op(b, w->grid, op);
	if (g->state == GROUP_CONVERGE)
		buf_printf(b, " waits for lanes 0x%08x of its warp", g->waiting.where);
	else if (g->waiting.what)
		emu_describe_wait(b, w, &g->waiting);
	else if (g->state == GROUP_RUN)
		buf_str(b, " is executed");
}

/* Warps of a CTA, one behind the other, of which the same is said. */
typedef struct wait_line {
	const emu_cta *cta;
	uint32_t first, last, mask;
	buf says;
} wait_line;

static void put_line(buf *b, wait_line *l)
{
	const uint32_t *id = l->cta ? l->cta->id : NULL;

	if (!id)
		return;
	buf_printf(b, "\n    block (%u, %u, %u), warp", id[0], id[1], id[2]);
	if (l->first == l->last)
		buf_printf(b, " %u", l->first);
	else
		buf_printf(b, "s %u to %u", l->first, l->last);
	buf_put(&l->says, "", 1);
	buf_printf(b, ", lanes 0x%08x: %s", l->mask, l->says.failed ? "" : l->says.p);
	l->cta = NULL;
}

static bool goes_on(const wait_line *l, const emu_warp *w, const emu_group *g, const buf *says)
{
	return l->cta == w->cta && l->last + 1 == w->number && l->mask == g->mask && !says->failed && says->n == l->says.n &&
	       !memcmp(says->p, l->says.p, says->n);
}

static emu_warp *warp_of(const emu_cluster *c, uint32_t i) { return &c->cta[i / c->cta[0].nwarp].warp[i % c->cta[0].nwarp]; }

/* All groups of a cluster, and what the mbarriers among these wait for. */
static void put_waits(buf *b, const emu_cluster *c)
{
	wait_line line = { .cta = NULL };
	bool arrivals = false, bytes = false;
	unsigned lines = 0, more = 0;

	buf_init(&line.says, NULL);
	for (uint32_t i = 0; i < c->nwarp; i++) {
		const emu_warp *w = warp_of(c, i);
		for (unsigned k = 0; k < w->ngroup; k++) {
			const emu_group *g = &w->group[k];
			buf says;
			buf_init(&says, NULL);
			put_state(&says, w, g);
			mbarrier_lacks(w, &g->waiting, &arrivals, &bytes);
			if (goes_on(&line, w, g, &says)) {
				line.last = w->number;
				buf_free(&says);
				continue;
			}
			put_line(b, &line);
			buf_free(&line.says);
			line = (wait_line){ .first = w->number, .last = w->number, .mask = g->mask, .says = says };
			if (lines++ < MOST_WAITS)
				line.cta = w->cta;
			else
				more++;
		}
	}
	put_line(b, &line);
	buf_free(&line.says);
	if (more)
		buf_printf(b, "\n    and %u more", more);
	if (arrivals)
		put_sources(b, c, arrives, "what arrives at mbarriers");
	if (bytes)
		put_sources(b, c, brings_bytes, "what brings them bytes");
}

/* ---- the findings ---- */

void emu_find_deadlock(emu_cluster *c)
{
	enum cptx_finding_code code = CPTX_FIND_DEADLOCK;
	const char *why = NULL;
	emu_warp *first = NULL;
	const emu_group *group = NULL;
	buf b;

	for (uint32_t i = 0; i < c->nwarp; i++) {
		emu_warp *w = warp_of(c, i);
		for (unsigned k = 0; k < w->ngroup; k++) {
			const emu_group *g = &w->group[k];
			const char *says;
			enum cptx_finding_code is = mbarrier_blame(w, g, &says);
			if (g->state == GROUP_CONVERGE)
				is = CPTX_FIND_DIVERGENT, says = "lanes of a warp that must execute this together have parted";
			/* The first of what says most. */
			if (!first || (code == CPTX_FIND_DEADLOCK && is != code) ||
			    (code != CPTX_FIND_DIVERGENT && is == CPTX_FIND_DIVERGENT))
				first = w, group = g, code = is, why = says;
		}
	}
	buf_init(&b, NULL);
	put_waits(&b, c);
	buf_put(&b, "", 1);
	if (first)
		emu_find(first, group->waiting.op ? group->waiting.op : &group->frame->f->code[group->pc], EMU_ALL, code,
		         "%s; waiting are:%s", why, b.failed ? "" : b.p);
	buf_free(&b);
	c->failed = true;
}

void emu_find_limit(emu_cluster *c)
{
	emu_warp *w = &c->cta[0].warp[0];
	buf b;

	for (uint32_t i = 0; i < c->nwarp; i++)
		if (warp_of(c, i)->ngroup)
			w = warp_of(c, i);
	const emu_group *g = &w->group[0];
	buf_init(&b, NULL);
	put_waits(&b, c);
	buf_put(&b, "", 1);
	emu_find(w, w->ngroup ? &g->frame->f->code[g->pc] : NULL, EMU_ALL, CPTX_FIND_STEP_LIMIT,
	         "the launch has executed %llu instructions of warps, its limit; a warp was here then.  In this cluster:%s",
	         (unsigned long long)c->grid->limit, b.failed ? "" : b.p);
	buf_free(&b);
}
