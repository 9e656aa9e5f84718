/* SPDX-License-Identifier: MIT */
/* What the lanes of a warp do with one another: votes, matches, reductions, shuffles, elections, bar.warp.sync. */
#include "emu/core/finding.h"
#include "emu/core/registers.h"
#include "emu/core/undefined.h"
#include "emu/exec/exec.h"
#include "emu/num/num.h"

/*
 * Lanes meet by the masks that they name, wherever in the code they are: who comes first waits, and the group that comes
 * last does it for all.  Lanes that have exited are not waited for; what would come from them is undefined.
 */
typedef struct party {
	emu_group *g;
	const emu_op *op;
	uint32_t mask;
} party;

typedef struct meeting {
	struct party party[WARP]; /* the first is the group that runs */
	unsigned n;
	uint32_t lanes;
	uint32_t member[WARP]; /* the mask that a lane named */
} meeting;

enum {
	MASK_ARG = 0 /* imm[0]: number of the operand that is the mask; 0: those who execute it together */,
	MAKE = 1 /* imm[1] */
};

/* Lanes that belong together, once for each such team. */
#define EACH_TEAM(first, team, m)                                                                                           \
	for (uint32_t left_ = (m)->lanes, first = 0, team = 0;                                                                  \
	     left_ && (first = (uint32_t)__builtin_ctz(left_), team = (m)->member[first] & (m)->lanes, true); left_ &= ~team)

static void join(meeting *m, emu_group *g, const emu_op *op)
{
	m->party[m->n++] = (party){ g, op, g->mask };
	m->lanes |= g->mask;
	const uint32_t *masks = op->imm[MASK_ARG] ? g->frame->r + op->arg[op->imm[MASK_ARG]].slot : NULL;
	LANES(l, g->mask, m->member[l] = masks ? masks[l] : g->mask);
}

static uint32_t wanted(const emu_warp *w, const meeting *m)
{
	uint32_t need = 0;

	LANES(l, m->lanes, need |= m->member[l]);
	return need & emu_live(w) & ~m->lanes;
}

/* All name the same mask, and are in it. */
static bool all_alike(const meeting *m)
{
	uint32_t first = m->member[__builtin_ctz(m->lanes)], other = 0;

	LANES(l, m->lanes, other |= m->member[l] ^ first);
	return !other && !(m->lanes & ~first);
}

static bool alike(const emu_op *a, const emu_op *b)
{
	return a->form == b->form && a->fn == b->fn && !memcmp(&a->m, &b->m, sizeof a->m);
}

/* Groups that wait at an instruction like this one, elsewhere. */
static void join_others(emu_warp *w, meeting *m)
{
	for (unsigned i = 0; i < w->ngroup; i++) {
		emu_group *g = &w->group[i];
		if (g->state != GROUP_CONVERGE || m->lanes & g->mask || !(wanted(w, m) & g->mask))
			continue;
		const emu_op *op = &g->frame->f->code[g->pc];
		if (!alike(op, m->party[0].op))
			continue;
		join(m, g, op);
		i = (unsigned)-1; /* they may name others, who were passed over */
	}
}

static bool masks_agree(emu_warp *w, const emu_op *op, const meeting *m)
{
	EACH_LANE(l, m->lanes) {
		if (!(m->member[l] >> l & 1)) {
			emu_find(w, op, (int)l, CPTX_FIND_MEMBERMASK, "lane %u is not in the mask 0x%08x that it names", l,
			         m->member[l]);
			return false;
		}
		EACH_LANE(j, m->member[l] & m->lanes)
			if (m->member[j] != m->member[l]) {
				emu_find(
					w, op, (int)l, CPTX_FIND_MEMBERMASK,
					"lane %u names the mask 0x%08x, lane %u, which is in it, names 0x%08x; all lanes of a mask must name "
					"the same",
					l, m->member[l], j, m->member[j]);
				return false;
			}
	}
	return true;
}

/* STEP_NEXT: all lanes that are named are there. */
static enum emu_step meet(emu_warp *w, const emu_op *op, uint32_t mask, meeting *m)
{
	m->n = 0;
	m->lanes = 0;
	if (op->imm[MASK_ARG] && !emu_need(w, op, op->arg[op->imm[MASK_ARG]].slot, mask, "the mask of lanes"))
		return STEP_FAULT;
	join(m, w->g, op);
	if (wanted(w, m))
		join_others(w, m);
	if (!all_alike(m) && !masks_agree(w, op, m))
		return STEP_FAULT;
	uint32_t missing = wanted(w, m);
	return missing ? emu_group_converge(w, op, missing | m->lanes) : STEP_NEXT;
}

/* The others of the meeting have executed theirs too. */
static enum emu_step part(emu_warp *w, const meeting *m)
{
	for (unsigned i = 1; i < m->n; i++) {
		m->party[i].g->pc++;
		m->party[i].g->state = GROUP_RUN;
		w->cluster->hits[m->party[i].op->index] += (unsigned)__builtin_popcount(m->party[i].mask);
	}
	w->r = w->g->frame->r;
	return STEP_NEXT;
}

/* An operand in all lanes; returns those in which it is defined. */
static uint32_t collect(emu_warp *w, const meeting *m, unsigned arg, uint64_t in[WARP])
{
	uint32_t defined = 0;

	for (unsigned i = 0; i < m->n; i++) {
		const party *p = &m->party[i];
		const emu_arg *a = &p->op->arg[arg];
		w->r = p->g->frame->r;
		defined |= p->mask & *emu_defined(w, a->slot);
		LANES(l, p->mask, in[l] = emu_get(w, a, l));
	}
	return defined;
}

static void deliver(emu_warp *w, const meeting *m, unsigned arg, const uint64_t out[WARP], uint32_t defined)
{
	for (unsigned i = 0; i < m->n; i++) {
		const party *p = &m->party[i];
		const emu_arg *d = &p->op->arg[arg];
		uint32_t bits = 0;
		if (d->kind != ARG_REG)
			continue;
		w->r = p->g->frame->r;
		if (d->bits == 1) {
			LANES(l, p->mask, bits |= (uint32_t)(out[l] & 1) << l);
			emu_set_pred(w, d->slot, p->mask, bits);
		} else {
			LANES(l, p->mask, emu_put(w, d->slot, d->bits, l, out[l]));
		}
		emu_define(w, d->slot, p->mask, defined);
	}
}

/* What lanes miss of an operand, where it is not defined; and the other way. */
static void collect_missing(const meeting *m, unsigned arg, emu_missing missing[WARP])
{
	for (unsigned i = 0; i < m->n; i++) {
		const emu_arg *a = &m->party[i].op->arg[arg];
		const uint32_t *r = m->party[i].g->frame->r;
		EACH_LANE(l, m->party[i].mask & ~r[a->slot - 2])
			missing[l] = emu_missing_of(r, a->slot, a->bits, l);
	}
}

static void deliver_missing(const meeting *m, unsigned arg, const emu_missing missing[WARP], uint32_t lanes)
{
	for (unsigned i = 0; i < m->n; i++) {
		const emu_arg *d = &m->party[i].op->arg[arg];
		EACH_LANE(l, d->kind == ARG_REG ? m->party[i].mask & lanes : 0)
			emu_miss(m->party[i].g->frame->r, d->slot, d->bits, l, missing[l]);
	}
}

/* ---- operations of a team ---- */

/* What each lane gets, and match its predicate; `a` is the predicate or value of each. */
typedef void (*make_fn)(const emu_op *op, const meeting *m, uint32_t team, const uint64_t *a, uint64_t *out, uint64_t *p);

static void give_all(uint32_t team, uint64_t v, uint64_t *out)
{
	EACH_LANE(l, team)
		out[l] = v;
}

static uint32_t ballot_of(uint32_t team, const uint64_t *a)
{
	uint32_t bits = 0;

	EACH_LANE(l, team)
		bits |= (uint32_t)(a[l] & 1) << l;
	return bits;
}

static void make_ballot(const emu_op *op, const meeting *m, uint32_t team, const uint64_t *a, uint64_t *out, uint64_t *p)
{
	(void)op, (void)m, (void)p;
	give_all(team, ballot_of(team, a), out);
}

static void make_vote(const emu_op *op, const meeting *m, uint32_t team, const uint64_t *a, uint64_t *out, uint64_t *p)
{
	uint32_t bits = ballot_of(team, a);
	bool all = bits == team && op->m.mode != CPTX_ANY, none = !bits && op->m.mode == CPTX_UNI;

	(void)m, (void)p;
	give_all(team, all || none || (bits && op->m.mode == CPTX_ANY), out);
}

static uint32_t reduced(unsigned op, unsigned type, uint32_t a, uint32_t b, const struct num_mode *m)
{
	switch (op) {
	case CPTX_ADD: return a + b;
	case CPTX_AND: return a & b;
	case CPTX_OR: return a | b;
	case CPTX_XOR: return a ^ b;
	case CPTX_MIN: return (uint32_t)num_min(type, a, b, m);
	default: return (uint32_t)num_max(type, a, b, m);
	}
}

static void make_redux(const emu_op *op, const meeting *all, uint32_t team, const uint64_t *a, uint64_t *out, uint64_t *p)
{
	struct num_mode m = { .nan = op->m.NaN };
	uint32_t keep = op->m.abs ? 0x7fffffff : ALL_LANES, first = (uint32_t)__builtin_ctz(team), d = (uint32_t)a[first] & keep;

	if (op->m.type == CPTX_F32) /* a single NaN becomes the canonical one */
		d = reduced(op->m.op, op->m.type, d, d, &m);
	EACH_LANE(l, team & (team - 1))
		d = reduced(op->m.op, op->m.type, d, (uint32_t)a[l] & keep, &m);
	(void)all, (void)p;
	give_all(team, d, out);
}

static uint32_t same_as(uint32_t team, const uint64_t *a, uint64_t v)
{
	uint32_t same = 0;

	EACH_LANE(l, team)
		same |= (uint32_t)(a[l] == v) << l;
	return same;
}

static void make_match(const emu_op *op, const meeting *m, uint32_t team, const uint64_t *a, uint64_t *out, uint64_t *p)
{
	bool whole = same_as(team, a, a[__builtin_ctz(team)]) == team;

	EACH_LANE(l, team) {
		out[l] = op->m.mode == CPTX_ANY ? same_as(team, a, a[l]) : whole ? m->member[l] : 0;
		p[l] = whole;
	}
}

static const make_fn makers[] = { make_ballot, make_vote, make_redux, make_match };
enum { MAKE_BALLOT, MAKE_VOTE, MAKE_REDUX, MAKE_MATCH, MATCH_P = 3 };

static enum emu_step combine(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t in[WARP], out[WARP], p[WARP];
	meeting m;
	enum emu_step s = meet(w, op, mask, &m);

	if (s != STEP_NEXT)
		return s;
	uint32_t defined = collect(w, &m, 1, in), sure = 0;
	EACH_TEAM(first, team, &m) {
		makers[op->imm[MAKE]](op, &m, team, in, out, p);
		sure |= team & ~defined ? 0 : team;
	}
	deliver(w, &m, 0, out, sure);
	if (op->imm[MAKE] == MAKE_MATCH)
		deliver(w, &m, MATCH_P, p, sure);
	return part(w, &m);
}

static bool set_up(emu_op *op, emu_fn fn, const char *mask)
{
	const emu_arg *a = mask ? emu_named(op, mask) : NULL;

	op->flags = OP_SPLITS | OP_QUIET;
	op->fn = fn;
	op->imm[MASK_ARG] = a ? a - op->arg : 0;
	return true;
}

bool decode_vote(emu_decoder *d, emu_op *op)
{
	(void)d;
	bool ballot = op->opcode == CPTX_OP_VOTE_BALLOT || (op->opcode == CPTX_OP_VOTE && op->m.mode == CPTX_BALLOT);

	op->imm[MAKE] = ballot ? MAKE_BALLOT : MAKE_VOTE;
	return set_up(op, combine, op->opcode == CPTX_OP_VOTE ? NULL : "mask");
}

bool decode_redux(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[MAKE] = MAKE_REDUX;
	return set_up(op, combine, "mask");
}

bool decode_match(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[MAKE] = MAKE_MATCH;
	return set_up(op, combine, "mask");
}

/* ---- elect ---- */

static enum emu_step elect(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t leader[WARP], chosen[WARP];
	meeting m;
	enum emu_step s = meet(w, op, mask, &m);

	if (s != STEP_NEXT)
		return s;
	EACH_TEAM(first, team, &m)
		EACH_LANE(l, team) {
			leader[l] = first;
			chosen[l] = l == first;
		}
	deliver(w, &m, 0, leader, ALL_LANES);
	deliver(w, &m, 1, chosen, ALL_LANES);
	return part(w, &m);
}

bool decode_elect(emu_decoder *d, emu_op *op)
{
	(void)d;
	return set_up(op, elect, "mask");
}

/* ---- shuffles ---- */

enum { SHFL_P = 1, SHFL_A, SHFL_B, SHFL_C };

/* The lane that lane l reads; *in: it is in range. */
static unsigned source(unsigned mode, unsigned l, uint32_t b, uint32_t c, bool *in)
{
	unsigned clamp = c & 31, segment = c >> 8 & 31, step = b & 31;
	unsigned least = l & segment, most = least | (clamp & ~segment);
	int j;

	switch (mode) {
	case CPTX_UP:
		j = (int)l - (int)step;
		*in = j >= (int)most;
		break;
	case CPTX_DOWN:
		j = (int)(l + step);
		*in = j <= (int)most;
		break;
	case CPTX_BFLY:
		j = (int)(l ^ step);
		*in = j <= (int)most;
		break;
	default:
		j = (int)(least | (step & ~segment));
		*in = j <= (int)most;
		break;
	}
	return *in ? (unsigned)j : l;
}

static enum emu_step shfl(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint64_t a[WARP], b[WARP], c[WARP], out[WARP] = { 0 }, p[WARP];
	emu_missing missing[WARP], from[WARP];
	meeting m;
	enum emu_step s = meet(w, op, mask, &m);
	uint32_t has = 0, some = 0;

	if (s != STEP_NEXT)
		return s;
	collect_missing(&m, SHFL_A, missing);
	uint32_t defined = collect(w, &m, SHFL_A, a), known = collect(w, &m, SHFL_B, b) & collect(w, &m, SHFL_C, c);
	EACH_LANE(l, m.lanes) {
		bool in;
		unsigned j = source(op->m.mode, l, (uint32_t)b[l], (uint32_t)c[l], &in);
		p[l] = in;
		out[l] = a[m.lanes >> j & 1 ? j : l];
		bool there = (m.lanes & m.member[l]) >> j & 1;
		has |= (uint32_t)(there && defined >> j & 1) << l;
		some |= (uint32_t)(there && ~defined >> j & 1) << l;
		if (some >> l & 1)
			from[l] = missing[j];
	}
	deliver(w, &m, 0, out, has & known);
	if (some & known)
		deliver_missing(&m, 0, from, some & known);
	deliver(w, &m, SHFL_P, p, known);
	return part(w, &m);
}

bool decode_shfl(emu_decoder *d, emu_op *op)
{
	(void)d;
	return set_up(op, shfl, op->opcode == CPTX_OP_SHFL ? NULL : "mask");
}

/* ---- bar.warp.sync, activemask ---- */

static enum emu_step warp_sync(emu_warp *w, const emu_op *op, uint32_t mask)
{
	meeting m;
	enum emu_step s = meet(w, op, mask, &m);

	if (s != STEP_NEXT)
		return s;
	EACH_TEAM(first, team, &m)
		clock_warp_sync_by(w, team);
	return part(w, &m);
}

bool decode_warp_sync(emu_decoder *d, emu_op *op)
{
	(void)d;
	return set_up(op, warp_sync, "mask");
}

static enum emu_step activemask(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t *d = emu_reg32(w, op, 0);

	LANES(l, mask, d[l] = mask);
	emu_define(w, op->arg[0].slot, mask, ALL_LANES);
	return STEP_NEXT;
}

bool decode_activemask(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_QUIET;
	op->fn = activemask;
	return true;
}
