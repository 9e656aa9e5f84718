/* SPDX-License-Identifier: MIT */
/*
 * Registers alive at each point: the usual backward iteration over blocks, with sets of bits.
 *
 * The need of ptxas differs: it keeps constants, parameters and values that are the same for the CTA elsewhere, and it
 * reorders instructions, which takes more registers.  Over the corpus the two balance; leaving out what may be kept
 * elsewhere made the estimate worse.  bench/registers.c measures the error.
 */
#include "inspect/flow.h"

enum { WORD = 64 };
typedef uint64_t bits;

typedef struct live {
	cptx_flow *f;
	size_t nreg, words;
	uint8_t *width;        /* width of each register in units of 32 bits; 0: a predicate */
	bits *in, *gen, *kill; /* sets of each block */
	bits *now;
} live;

static bool has(const bits *s, uint32_t r) { return s[r / WORD] >> r % WORD & 1; }
static void put(bits *s, uint32_t r) { s[r / WORD] |= (bits)1 << r % WORD; }
static void drop(bits *s, uint32_t r) { s[r / WORD] &= ~((bits)1 << r % WORD); }

typedef void (*reg_fn)(live *l, uint32_t reg, void *user);

static void each_of(live *l, const cptx_val *v, reg_fn fn, void *user)
{
	if (v->kind == CPTX_VAL_REG)
		for (uint32_t i = 0; i < v->count; i++)
			fn(l, v->id + i, user);
	if (v->kind == CPTX_VAL_VEC || v->kind == CPTX_VAL_LIST)
		for (uint32_t i = 0; i < v->count; i++)
			each_of(l, &l->f->k->vec[v->id + i], fn, user);
}

static void each_read(live *l, const ir_item *it, reg_fn fn, void *user)
{
	if (it->guard)
		fn(l, it->guard - 1, user);
	for (unsigned i = 0; i < it->noperand; i++)
		if (flow_reads(it, i)) {
			cptx_val v = ir_operand(l->f->k, it, i);
			each_of(l, &v, fn, user);
		}
}

static void each_written(live *l, const ir_item *it, reg_fn fn, void *user)
{
	for (unsigned i = 0; i < it->noperand; i++)
		if (flow_writes(it, i)) {
			cptx_val v = ir_operand(l->f->k, it, i);
			each_of(l, &v, fn, user);
		}
}

/* ---- the iteration ---- */

static void note_read(live *l, uint32_t r, void *user)
{
	uint32_t b = *(uint32_t *)user;

	if (!has(l->kill + b * l->words, r))
		put(l->gen + b * l->words, r);
}

static void note_written(live *l, uint32_t r, void *user) { put(l->kill + *(uint32_t *)user * l->words, r); }

static void note_block(live *l, uint32_t b)
{
	for (uint32_t i = l->f->block[b].first; i < l->f->block[b].end; i++) {
		const ir_item *it = l->f->point[i].item;
		each_read(l, it, note_read, &b);
		if (!it->guard) /* a guarded write may leave the old value alive */
			each_written(l, it, note_written, &b);
	}
}

static void add_in(cptx_flow *f, uint32_t block, uint32_t next, void *user)
{
	live *l = (live *)user;

	(void)f, (void)block;
	for (size_t w = 0; w < l->words; w++)
		l->now[w] |= l->in[next * l->words + w];
}

/* Computes the registers alive behind a block, in l->now. */
static void live_out(live *l, uint32_t b)
{
	memset(l->now, 0, l->words * sizeof *l->now);
	flow_each_next(l->f, b, add_in, l);
}

static void iterate(live *l)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t b = (uint32_t)l->f->nblock; b--;) {
			bits *in = l->in + b * l->words, *gen = l->gen + b * l->words, *kill = l->kill + b * l->words;
			live_out(l, b);
			for (size_t w = 0; w < l->words; w++) {
				bits v = gen[w] | (l->now[w] & ~kill[w]);
				again |= v != in[w];
				in[w] = v;
			}
		}
	}
}

/* ---- counting ---- */

typedef struct tally {
	uint32_t all, predicates;
} tally;

static tally count(const live *l)
{
	tally t = { 0 };

	for (size_t w = 0; w < l->words; w++)
		for (bits s = l->now[w]; s; s &= s - 1) {
			uint32_t r = (uint32_t)(w * WORD) + (uint32_t)__builtin_ctzll(s);
			t.all += l->width[r], t.predicates += !l->width[r];
		}
	return t;
}

static void set_now(live *l, uint32_t r, void *user)
{
	(void)user;
	put(l->now, r);
}

static void drop_now(live *l, uint32_t r, void *user)
{
	(void)user;
	drop(l->now, r);
}

/* Goes through a block backwards, and counts at each point. */
static void count_block(live *l, uint32_t b)
{
	cptx_flow *f = l->f;

	live_out(l, b);
	for (uint32_t i = f->block[b].end; i-- > f->block[b].first;) {
		const ir_item *it = f->point[i].item;
		each_written(l, it, set_now, NULL);
		tally out = count(l);
		if (!it->guard)
			each_written(l, it, drop_now, NULL);
		each_read(l, it, set_now, NULL);
		tally in = count(l);
		uint32_t all = MAX(in.all, out.all), predicates = MAX(in.predicates, out.predicates);
		f->point[i].live = (uint16_t)MIN(all, UINT16_MAX);
		f->point[i].predicates = (uint16_t)MIN(predicates, UINT16_MAX);
		if (all > f->peak || (all == f->peak && i < f->peak_at))
			f->peak = all, f->peak_at = i;
	}
}

static bool prepare(live *l)
{
	arena *a = &l->f->a;
	size_t sets = l->words * l->f->nblock;

	l->width = ARENA_ZEROED(a, uint8_t, l->nreg + 1);
	l->in = ARENA_ZEROED(a, bits, sets);
	l->gen = ARENA_ZEROED(a, bits, sets);
	l->kill = ARENA_ZEROED(a, bits, sets);
	l->now = ARENA_ZEROED(a, bits, l->words);
	if (!l->width || !l->in || !l->gen || !l->kill || !l->now)
		return false;
	for (size_t r = 0; r < l->nreg; r++) {
		unsigned width = arch_types[l->f->k->reg[r].type].bits;
		l->width[r] = width == 1 ? 0 : (uint8_t)((width + 31) / 32);
	}
	return true;
}

enum { BESIDE = 5 /* further registers of ptxas: the stack pointer, temporary addresses */ };

bool flow_live(cptx_flow *f)
{
	live l = { .f = f, .nreg = f->k->nreg, .words = f->k->nreg / WORD + 1 };

	if (!prepare(&l))
		return false;
	for (uint32_t b = 0; b < f->nblock; b++)
		note_block(&l, b);
	iterate(&l);
	for (uint32_t b = 0; b < f->nblock; b++)
		count_block(&l, b);
	f->registers = MIN(f->peak + BESIDE, CPTX_REGS_PER_THREAD);
	return true;
}
