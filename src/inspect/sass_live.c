/* SPDX-License-Identifier: MIT */
/*
 * Registers alive at each machine instruction of a kernel: the usual backward iteration, over instructions.
 *
 * Functions that a kernel calls stand behind it in the same section.  The analysis of a function does not depend on its
 * callers, so it keeps two sets: `in`, as if nothing were alive where the function returns, and `kept`, as if all were.
 * With X alive behind a call, in | (X & kept) of the function's first instruction is alive in front of it.  `outer` is the
 * set alive behind some call of the function that an instruction belongs to.
 */
#include "base/base.h"
#include "inspect/cubin.h"
#include "inspect/sass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 1 << 20 /* most instructions */,
	MOST_TURNS = 2000,
	MOST_WAYS = 1 << 16 /* MOST_TURNS: iterations; MOST_WAYS: successors of joins and tables */
};
enum { NO_MARK, SEVERAL = MOST + 1 };

typedef struct way {
	uint32_t to, more; /* to: an instruction; more: the next successor of the same instruction, 0: none */
} way;

typedef struct point {
	sass_insn is;
	sass_set in, kept, outer;
	uint32_t ways;                /* first successor of a join or table */
	uint32_t mark[SASS_BARRIERS]; /* of each barrier 1 + the MARK that set it last; or NO_MARK, SEVERAL */
	bool reached, waiting;
} point;

typedef struct flow {
	const cptx_cubin_view *c;
	const cubin_kernel *k;
	cptx_error *err;
	point *p;
	uint32_t n, *wait, nwait; /* wait: queue of instructions whose successors must be visited again */
	sass_set in, kept;        /* the sets behind an instruction while they are gathered */
	way *way;
	size_t nway, cap_way;
} flow;

static bool unknown(flow *f, uint32_t i, const char *what)
{
	if (f->err && !f->err->code) {
		f->err->code = CPTX_E_PARSE;
		snprintf(f->err->text, sizeof f->err->text, "registers alive in %s are not known: %s at 0x%x", f->k->k.name, what,
		         i * SASS_BYTES);
	}
	return false;
}

static bool no_memory(flow *f)
{
	if (f->err && !f->err->code) {
		f->err->code = CPTX_E_MEMORY;
		snprintf(f->err->text, sizeof f->err->text, "out of memory");
	}
	return false;
}

static bool join_sets(sass_set *a, const sass_set *b)
{
	uint64_t changed = 0;

	for (unsigned w = 0; w < SASS_WORDS; w++) {
		changed |= b->w[w] & ~a->w[w];
		a->w[w] |= b->w[w];
	}
	return changed != 0;
}

/* Computes in | (x & kept). */
static sass_set within(const sass_set *in, const sass_set *x, const sass_set *kept)
{
	sass_set s;

	for (unsigned w = 0; w < SASS_WORDS; w++)
		s.w[w] = in->w[w] | (x->w[w] & kept->w[w]);
	return s;
}

/* ---- the way through the code ---- */

static bool add_way(flow *f, uint32_t i, uint32_t to)
{
	unsigned n = 0;

	for (uint32_t w = f->p[i].ways; w; w = f->way[w].more, n++)
		if (f->way[w].to == to)
			return true;
	if (n >= MOST_WAYS)
		return unknown(f, i, "too many ways");
	if (f->nway + 1 >= f->cap_way) {
		size_t cap = f->cap_way ? 2 * f->cap_way : 64;
		way *grown = realloc(f->way, cap * sizeof *grown);
		if (!grown)
			return no_memory(f);
		f->way = grown, f->cap_way = cap;
		f->nway += !f->nway; /* index 0 means none */
	}
	f->way[f->nway] = (way){ to, f->p[i].ways };
	f->p[i].ways = (uint32_t)f->nway++;
	return true;
}

static bool instruction_at(flow *f, uint32_t i, int64_t target, uint32_t *to)
{
	if (target < 0 || target % SASS_BYTES || target / SASS_BYTES >= f->n)
		return unknown(f, i, "a way out of the code");
	*to = (uint32_t)(target / SASS_BYTES);
	return true;
}

/* A callback for each successor `to` of the instruction `from`. */
typedef bool (*way_fn)(flow *f, uint32_t from, uint32_t to);

static bool passes(const sass_insn *is)
{
	return is->may_pass || is->flow == SASS_NEXT || is->flow == SASS_CALL || is->flow == SASS_MARK;
}

/* Calls fn for each instruction that may come next in the same function. */
static bool each_next(flow *f, uint32_t i, way_fn fn)
{
	const point *p = &f->p[i];
	uint32_t to;

	if (passes(&p->is) && !(i + 1 < f->n ? fn(f, i, i + 1) : unknown(f, i, "the end of the code")))
		return false;
	if (p->is.flow == SASS_BRANCH && !(instruction_at(f, i, p->is.target, &to) && fn(f, i, to)))
		return false;
	for (uint32_t w = p->ways; w; w = f->way[w].more)
		if (!fn(f, i, f->way[w].to))
			return false;
	return true;
}

static bool decode(flow *f, uint32_t i)
{
	point *p = &f->p[i];
	char what[80];

	if (sass_decode(f->k->code + (size_t)i * SASS_BYTES, f->c->arch, i * SASS_BYTES, &p->is))
		return p->is.flow != SASS_AWAY || unknown(f, i, "a function that is not in this section is called");
	snprintf(what, sizeof what, p->is.name ? "a form of %s that is not in the table" : "operation 0x%s is not in the table",
	         p->is.name);
	if (!p->is.name)
		snprintf(what, sizeof what, "operation 0x%x is not in the table",
		         cubin_u16(f->k->code + (size_t)i * SASS_BYTES) & 0xfff);
	return unknown(f, i, what);
}

static void wait_for(flow *f, uint32_t i)
{
	if (!f->p[i].waiting)
		f->p[i].waiting = true, f->wait[f->nwait++] = i;
}

/* Merges the marks behind an instruction into those in front of its successor. */
static bool meet(flow *f, uint32_t from, uint32_t to)
{
	const point *p = &f->p[from];
	point *q = &f->p[to];
	bool changed = !q->reached;

	q->reached = true;
	for (unsigned b = 0; b < SASS_BARRIERS; b++) {
		uint32_t m = p->mark[b];
		if (b == p->is.barrier && p->is.flow == SASS_MARK)
			m = from + 1;
		if (b == p->is.barrier && p->is.flow == SASS_JOIN)
			m = NO_MARK;
		if (m == NO_MARK || m == q->mark[b] || q->mark[b] == SEVERAL)
			continue;
		q->mark[b] = q->mark[b] == NO_MARK ? m : SEVERAL;
		changed = true;
	}
	if (changed)
		wait_for(f, to);
	return true;
}

static bool add_mark(flow *f, uint32_t i, uint32_t mark)
{
	uint32_t to;

	return instruction_at(f, mark, f->p[mark].is.target, &to) && add_way(f, i, to);
}

/* Finds the successors of a join: the addresses that its barrier was set to; if several MARKs reach it, those of all that
 * set this barrier. */
static bool ways_of_join(flow *f, uint32_t i)
{
	unsigned b = f->p[i].is.barrier;
	uint32_t m = f->p[i].mark[b];

	if (m != NO_MARK && m != SEVERAL)
		return add_mark(f, i, m - 1);
	for (uint32_t j = 0; m == SEVERAL && j < f->n; j++)
		if (f->p[j].is.name && f->p[j].is.flow == SASS_MARK && f->p[j].is.barrier == b && !add_mark(f, i, j))
			return false;
	return true;
}

static bool ways_of_table(flow *f, uint32_t i)
{
	const unsigned char *at = f->k->branches, *end = at + (at ? f->k->nbranches : 0);
	uint32_t n, to;

	/* an entry: address of the branch, a word, number of targets, the targets */
	for (; end - at >= 12; at += 12 + 4 * (size_t)n) {
		n = cubin_u32(at + 8);
		if ((size_t)(end - at - 12) / 4 < n)
			break;
		for (uint32_t j = 0; cubin_u32(at) == i * SASS_BYTES && j < n; j++)
			if (!instruction_at(f, i, cubin_u32(at + 12 + 4 * (size_t)j), &to) || !add_way(f, i, to))
				return false;
	}
	return f->p[i].ways || unknown(f, i, "a branch whose targets the cubin does not list");
}

static bool visit(flow *f, uint32_t i)
{
	point *p = &f->p[i];
	uint32_t to;

	if (!p->is.name && !decode(f, i))
		return false;
	if (p->is.flow == SASS_JOIN && !ways_of_join(f, i))
		return false;
	if (p->is.flow == SASS_TABLE && !p->ways && !ways_of_table(f, i))
		return false;
	if (p->is.flow == SASS_CALL) {
		if (!instruction_at(f, i, p->is.target, &to))
			return false;
		if (!f->p[to].reached)
			f->p[to].reached = true, wait_for(f, to);
	}
	return each_next(f, i, meet);
}

/* Decodes all instructions that are reached. */
static bool follow(flow *f)
{
	f->p[0].reached = true;
	wait_for(f, 0);
	while (f->nwait) {
		uint32_t i = f->wait[--f->nwait];
		f->p[i].waiting = false;
		if (!visit(f, i))
			return false;
	}
	for (uint32_t i = 0; i < f->n; i++)
		if (f->p[i].reached && f->p[i].is.flow == SASS_JOIN && !f->p[i].ways)
			return unknown(f, i, "a join of what was never split");
	return true;
}

/* ---- what is alive ---- */

static bool gather(flow *f, uint32_t from, uint32_t to)
{
	(void)from;
	join_sets(&f->in, &f->p[to].in);
	join_sets(&f->kept, &f->p[to].kept);
	return true;
}

/* Computes the sets alive behind an instruction, in f->in and f->kept. */
static void behind(flow *f, uint32_t i)
{
	const point *p = &f->p[i];

	f->in = f->kept = (sass_set){ { 0 } };
	each_next(f, i, gather);
	if (p->is.flow == SASS_EXIT)
		f->in.w[0] |= 1u << SASS_STACK, f->kept.w[0] |= 1u << SASS_STACK;
	if (p->is.flow == SASS_RETURN)
		f->kept = (sass_set){ { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	if (p->is.flow == SASS_CALL) {
		const point *q = &f->p[p->is.target / SASS_BYTES];
		sass_set in = within(&q->in, &f->in, &q->kept), kept = within(&q->in, &f->kept, &q->kept);
		if (p->is.guarded) /* only then may a thread go past the call without making it */
			join_sets(&in, &f->in), join_sets(&kept, &f->kept);
		f->in = in, f->kept = kept;
	}
}

/* The set in front of an instruction.  A write that some threads may not do leaves the old value alive. */
static sass_set in_front(const sass_insn *is, const sass_set *out)
{
	sass_set s = is->use;

	for (unsigned w = 0; w < SASS_WORDS; w++)
		s.w[w] |= is->guarded ? out->w[w] : out->w[w] & ~is->def.w[w];
	return s;
}

static bool iterate(flow *f)
{
	bool again = true;

	for (unsigned turn = 0; again; turn++) {
		again = false;
		if (turn == MOST_TURNS)
			return unknown(f, 0, "loops that are too deep, seen");
		for (uint32_t i = f->n; i--;) {
			point *p = &f->p[i];
			if (!p->reached)
				continue;
			behind(f, i);
			sass_set in = in_front(&p->is, &f->in), kept = in_front(&p->is, &f->kept);
			again |= join_sets(&p->in, &in), again |= join_sets(&p->kept, &kept);
		}
	}
	return true;
}

static bool tell_outer(flow *f, uint32_t from, uint32_t to)
{
	if (join_sets(&f->p[to].outer, &f->p[from].outer))
		wait_for(f, to);
	return true;
}

/* Propagates into functions what their callers still need. */
static void callers(flow *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->p[i].reached && f->p[i].is.flow == SASS_CALL)
			wait_for(f, i);
	while (f->nwait) {
		uint32_t i = f->wait[--f->nwait];
		point *p = &f->p[i];
		p->waiting = false;
		each_next(f, i, tell_outer);
		if (p->is.flow != SASS_CALL || i + 1 >= f->n)
			continue;
		uint32_t to = (uint32_t)(p->is.target / SASS_BYTES);
		sass_set needed = within(&f->p[i + 1].in, &p->outer, &f->p[i + 1].kept);
		if (join_sets(&f->p[to].outer, &needed))
			wait_for(f, to);
	}
}

static unsigned count(const sass_set *s)
{
	unsigned n = 0;

	for (unsigned w = 0; w < SASS_WORDS; w++)
		for (uint64_t v = s->w[w]; v; v &= v - 1)
			n++;
	return n;
}

/* The registers alive in front of an instruction, and those that it writes. */
static unsigned alive_at(const point *p)
{
	sass_set s = within(&p->in, &p->outer, &p->kept);

	join_sets(&s, &p->is.def);
	return count(&s);
}

uint32_t cptx_cubin_view_live(const cptx_cubin_view *c, size_t i, uint16_t *live, size_t nlive, cptx_error *err)
{
	flow f = { .c = c, .err = err };
	uint32_t most = 0;

	if (!may_go(err))
		return 0;
	if (nlive && !live) {
		if (err)
			err->code = CPTX_E_ARG, snprintf(err->text, sizeof err->text, "there is no array for %zu counts (NULL)", nlive);
		return 0;
	}
	for (size_t j = 0; j < nlive; j++)
		live[j] = 0;
	if (!c || i >= c->nkernel || !c->kernel[i].code) {
		if (err)
			err->code = CPTX_E_ARG, snprintf(err->text, sizeof err->text, "there is no such kernel, or it has no code");
		return 0;
	}
	f.k = &c->kernel[i], f.n = f.k->k.code / SASS_BYTES;
	if (!sass_knows(c->arch))
		return unknown(&f, 0, "machine code of another architecture than those that are known");
	if (!f.n || f.n > MOST)
		return unknown(&f, 0, "too much code, or none,");
	f.p = calloc(f.n, sizeof *f.p), f.wait = calloc(f.n, sizeof *f.wait);
	if (!f.p || !f.wait)
		no_memory(&f);
	else if (follow(&f) && iterate(&f)) {
		callers(&f);
		for (uint32_t j = 0; j < f.n; j++) {
			unsigned n = f.p[j].reached ? alive_at(&f.p[j]) : 0;
			most = n > most ? n : most;
			if (j < nlive)
				live[j] = (uint16_t)n;
		}
	}
	free(f.p), free(f.wait), free(f.way);
	return most;
}
