/* SPDX-License-Identifier: MIT */
/*
 * Where the static variables of shared memory lie, and those of a function in local memory: apart from one another, so that
 * what runs over the end of one is found and named.  Sizes that a program is told are those of variables side by side.
 */
#include "emu/memory/variables.h"
#include "emu/core/cluster.h"
#include "emu/core/grid.h"

#include <stdio.h>

enum { MOST = 1 << 24 /* bytes: no launch has so many */ };

uint32_t emu_aligned(uint32_t n, uint32_t align) { return align > 1 ? (n + align - 1) / align * align : n; }

bool emu_variable_fits(const char *kernel, unsigned space, uint32_t used, const ir_sym *s, cptx_site at, cptx_error *err)
{
	uint64_t most = space == SPACE_LOCAL ? EMU_LOCAL_LIMIT : MOST;

	if (space == SPACE_GLOBAL || space == SPACE_CONST || (s->size <= most && used <= most - s->size))
		return true;
	return error_set(err, CPTX_E_LIMIT, at, "kernel %s: %llu bytes of %s with variable %s; the limit is %llu", kernel,
	                 (unsigned long long)(used + s->size),
	                 space == SPACE_LOCAL    ? "local memory of a thread"
	                 : space == SPACE_SHARED ? "shared memory"
	                                         : "parameters",
	                 s->name, (unsigned long long)most);
}

uint32_t emu_variable_add(emu_variables *v, arena *a, const ir_sym *s, uint32_t gap, bool *ok)
{
	uint32_t packed = emu_aligned(v->bytes, s->align), at = emu_aligned(packed + v->gaps, s->align);

	*ok &= arena_push(a, &v->var, v->n, &v->cap, sizeof *v->var);
	if (!*ok)
		return 0;
	v->var[v->n++] = (emu_named_place){ .name = s->name, .at = at, .size = s->size };
	v->bytes = packed + (uint32_t)s->size;
	v->gaps = at - packed + gap;
	return at;
}

bool emu_variables_end(emu_variables *v, arena *a, uint32_t end)
{
	uint32_t n = (MIN(end, (uint32_t)MOST) + EMU_GRAIN - 1) / EMU_GRAIN;

	if (!v->n)
		return true;
	v->owner = ARENA_ZEROED(a, uint32_t, n);
	for (size_t i = 0; v->owner && i < v->n; i++)
		for (uint64_t at = v->var[i].at / EMU_GRAIN; at < n && at * EMU_GRAIN < v->var[i].at + v->var[i].size; at++)
			v->owner[at] = (uint32_t)i + 1;
	v->nowner = v->owner ? n : 0;
	return v->owner != NULL;
}

const emu_named_place *emu_variable_at(const emu_variables *v, uint64_t offset)
{
	uint32_t i = offset / EMU_GRAIN < v->nowner ? v->owner[offset / EMU_GRAIN] : 0;

	return i && offset - v->var[i - 1].at < v->var[i - 1].size ? &v->var[i - 1] : NULL;
}

/* "1040 bytes behind the start of tile of 1024 bytes": of the variable that lies nearest. */
static bool put_near(const emu_variables *v, uint64_t offset, uint32_t size, char text[EMU_NEAR])
{
	const emu_named_place *x = NULL, *next = NULL;
	char shown[NAME_SHOWN + 1];

	for (size_t i = 0; i < v->n; i++) {
		x = v->var[i].at <= offset ? &v->var[i] : x;
		next = next || v->var[i].at <= offset ? next : &v->var[i];
	}
	if (!x && !next)
		return false;
	uint64_t past = x ? offset + size - MIN(x->at + x->size, offset + size) : UINT64_MAX;
	bool in_front = next && (!x || (offset >= x->at + x->size && next->at - offset < past));
	snprintf(text, EMU_NEAR, "%llu bytes %s %s of %llu bytes",
	         (unsigned long long)(in_front ? next->at - offset : offset - x->at),
	         in_front ? "in front of" : "behind the start of", name_shown(in_front ? next->name : x->name, shown),
	         (unsigned long long)(in_front ? next->size : x->size));
	return true;
}

const char *emu_near_shared(const emu_cta *cta, uint64_t addr, uint32_t size, char text[EMU_NEAR])
{
	const emu_grid *g = cta->cluster->grid;
	const emu_image *im = g->image;
	uint64_t offset = (addr & SHARED_MASK) - SHARED_FIRST;
	emu_named_place array = { .name = "dynamic shared memory", .at = im->dyn_at, .size = g->dyn_smem };
	const emu_variables dynamic = { .var = &array, .n = 1 };
	bool is_dynamic = offset >= im->dyn_at && (im->dyn_align || g->dyn_smem);

	if ((addr & SHARED_MASK) < SHARED_FIRST || !put_near(is_dynamic ? &dynamic : &im->shared, offset, size, text))
		snprintf(text, EMU_NEAR, "outside of the block's shared memory, which has %u bytes",
		         g->shared_bytes - im->shared.gaps);
	return text;
}

const char *emu_near_local(const emu_warp *w, unsigned lane, uint64_t addr, uint32_t size, char text[EMU_NEAR])
{
	const emu_frame *f = emu_frame_of(w, lane, addr);
	bool own = w->sp[lane] == f->local[lane] + f->f->local_bytes || addr + size <= w->sp[lane]; /* not behind alloca's */

	if (!own || !put_near(&f->f->local, addr - f->local[lane], size, text))
		snprintf(text, EMU_NEAR, "where there is nothing");
	return text;
}
