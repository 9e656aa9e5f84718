/* SPDX-License-Identifier: MIT */
/* What memory instructions cost: bytes, sectors, turns of shared memory; by instruction too. */
#include "emu/core/counters.h"
#include "emu/core/cluster.h"
#include "emu/core/explorer.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/core/machine.h"

#include <cptx/layout.h>
#include <stdlib.h>

enum { SECTOR = 32 };

static unsigned shared_lanes(const emu_warp *w, uint32_t mask)
{
	uint32_t shared = 0;

	EACH_LANE(l, mask)
		shared |= (uint32_t)(w->at_space[l] == SPACE_SHARED || w->at_space[l] == SPACE_CLUSTER) << l;
	return shared;
}

static uint32_t global_lanes(const emu_warp *w, uint32_t mask)
{
	uint32_t global = 0;

	EACH_LANE(l, mask)
		global |= (uint32_t)(w->at_space[l] == SPACE_GLOBAL) << l;
	return global;
}

/* Lanes mostly go upwards: only what lies further down is looked for. */
static uint32_t sectors(const emu_warp *w, uint32_t mask, uint32_t size)
{
	uint64_t seen[WARP], most = 0;
	uint32_t n = 0;

	EACH_LANE(l, mask) {
		uint64_t s = w->at[l] / SECTOR + 1;
		uint32_t i = n;
		if (s <= most)
			for (i = 0; i < n && seen[i] != s;)
				i++;
		if (i == n)
			seen[n++] = s;
		most = MAX(most, s);
	}
	return n * ((size + SECTOR - 1) / SECTOR);
}

static void count_shared(emu_warp *w, const emu_op *op, uint64_t bytes, uint32_t wavefronts, uint32_t conflicts,
                         unsigned access)
{
	cptx_emu_counters *n = &w->cluster->counters;
	emu_traffic *t = &w->cluster->traffic[op->index];

	n->shared_read += access & ACCESS_READ ? bytes : 0;
	n->shared_written += access & ACCESS_WRITE ? bytes : 0;
	n->shared_wavefronts += wavefronts;
	n->bank_conflicts += conflicts;
	t->wavefronts += wavefronts;
	t->conflicts += conflicts;
}

static void count_global(emu_warp *w, const emu_op *op, uint64_t bytes, uint32_t touched, unsigned access)
{
	cptx_emu_counters *n = &w->cluster->counters;

	n->global_read += access & ACCESS_READ ? bytes : 0;
	n->global_written += access & ACCESS_WRITE ? bytes : 0;
	n->global_sectors += touched;
	w->cluster->traffic[op->index].sectors += touched;
}

void emu_traffic_count(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t size, unsigned access)
{
	if (w->grid->machine->opt.no_traffic)
		return;
	uint32_t shared = shared_lanes(w, mask), global = mask & ~shared ? global_lanes(w, mask & ~shared) : 0;

	if (shared) {
		uint32_t offset[WARP];
		EACH_LANE(l, shared)
			offset[l] = (uint32_t)w->at[l];
		cptx_banks b = cptx_bank_conflicts(offset, shared, size);
		count_shared(w, op, (uint64_t)size * (unsigned)__builtin_popcount(shared), b.turns, b.conflicts, access);
	}
	if (global)
		count_global(w, op, (uint64_t)size * (unsigned)__builtin_popcount(global), sectors(w, global, size), access);
}

void emu_traffic_row(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t each, uint32_t stride, unsigned access)
{
	if (w->grid->machine->opt.no_traffic)
		return;
	if (p->space == SPACE_SHARED || p->space == SPACE_CLUSTER) {
		count_shared(w, op, (uint64_t)WARP * each, each > 4 ? each / 4 : 1, 0,
		             access); /* no bank has two words in a phase */
	} else if (p->space == SPACE_GLOBAL) {
		uint64_t at = p->alloc->at + p->offset, end = at + (stride ? WARP * each : each);
		count_global(w, op, (uint64_t)WARP * each, (uint32_t)((end - 1) / SECTOR - at / SECTOR + 1), access);
	}
}

/* ---- sums ---- */

void emu_counters_add(emu_grid *g, const emu_cluster *c)
{
	cptx_emu_counters *n = &g->machine->counters;
	const cptx_emu_counters *m = &c->counters;

	if (!c->hits || !c->traffic)
		return; /* it has not been made */
	for (uint32_t i = 0; i < g->image->nop; i++) {
		g->hits[i] += c->hits[i];
		g->traffic[i].wavefronts += c->traffic[i].wavefronts;
		g->traffic[i].conflicts += c->traffic[i].conflicts;
		g->traffic[i].sectors += c->traffic[i].sectors;
	}
	n->warp_instructions += c->step - c->idle - c->spent;
	n->ctas += c->ncta;
	n->global_read += m->global_read;
	n->global_written += m->global_written;
	n->shared_read += m->shared_read;
	n->shared_written += m->shared_written;
	n->global_sectors += m->global_sectors;
	n->shared_wavefronts += m->shared_wavefronts;
	n->bank_conflicts += m->bank_conflicts;
	n->async_bytes += g->machine->opt.no_traffic ? 0 : m->async_bytes; /* the timeline wants them of the cluster */
	n->tensor_flops += m->tensor_flops;
}

static bool is_instruction(const emu_op *op) { return op->index - op->f->code->index < op->f->ncode; }

static bool describe(emu_machine *m, const emu_image *im, const emu_op *op, cptx_emu_profile *p)
{
	char opcode[ARCH_OPCODE];
	cptx_site at = emu_site_of(im->program, op);

	*arch_put_opcode(opcode, op->form, ir_mods(op->item)) = 0;
	*p = (cptx_emu_profile){ .kernel = arena_strdup(&m->text, im->kernel->name),
		                     .instruction = arena_strdup(&m->text, opcode),
		                     .at = { at.file ? arena_strdup(&m->text, at.file) : NULL, at.line } };
	return p->kernel && p->instruction && (p->at.file || !at.file);
}

/* Entries of all instructions of the image, in their order. */
static bool first_time(emu_machine *m, emu_image *im)
{
	cptx_emu_profile *p = GROW_ARRAY(cptx_emu_profile, m->profile, m->nprofile + im->nop + 1);

	if (!p)
		return false;
	m->profile = p;
	im->profile = m->nprofile;
	for (uint32_t i = 0; i < im->nop; i++)
		if (is_instruction(im->ops[i]) && !describe(m, im, im->ops[i], &m->profile[m->nprofile++])) {
			m->nprofile = im->profile;
			return false;
		}
	im->profiled = m->profile_since;
	return true;
}

bool emu_counters_finish(emu_grid *g)
{
	emu_machine *m = g->machine;
	emu_image *im = g->image;

	if (g->explorer && g->explorer->trial)
		return true; /* what it counts is forgotten */
	if (im->profiled != m->profile_since && !first_time(m, im))
		return false;
	cptx_emu_profile *p = m->profile + im->profile;
	m->counters.launches++;
	for (uint32_t i = 0; i < im->nop; i++) {
		m->counters.thread_instructions += g->hits[i];
		m->counters.tensor_flops += g->hits[i] * im->ops[i]->flops;
		if (!is_instruction(im->ops[i]))
			continue;
		p->executed += g->hits[i];
		p->shared_wavefronts += g->traffic[i].wavefronts;
		p->bank_conflicts += g->traffic[i].conflicts;
		p->global_sectors += g->traffic[i].sectors;
		p++;
	}
	return true;
}
