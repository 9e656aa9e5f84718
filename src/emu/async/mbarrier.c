/* SPDX-License-Identifier: MIT */
/* mbarriers: their state, and what changes it. */
#include "emu/async/mbarrier.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the table ---- */

static emu_mbarrier *find(const emu_cta *cta, uint32_t offset)
{
	for (emu_mbarrier *b = cta->mbarriers; b; b = b->next)
		if (b->offset == offset)
			return b;
	return NULL;
}

static void forget(emu_mbarrier *b)
{
	clock_free(&b->clock);
	clock_free(&b->passed);
	free(b->user);
}

void emu_mbarriers_free(emu_cta *cta)
{
	for (emu_mbarrier *b = cta->mbarriers, *next; b; b = next) {
		next = b->next;
		forget(b);
		free(b);
	}
	cta->mbarriers = NULL;
}

/*
 * The 64 bits of an mbarrier in shared memory: bits 0 to 19 the arrivals pending, 20 to 39 those expected in a phase, 40 to
 * 61 the bytes outstanding, 62 the parity of the phase, 63 the layout.
 */
static uint64_t word(const emu_mbarrier *b)
{
	return b->pending | (uint64_t)b->expected << 20 | ((uint64_t)(uint32_t)b->tx & 0x3fffff) << 40 | (b->phase & 1) << 62 |
	       (uint64_t)b->v1 << 63;
}

static emu_place place(emu_cta *cta, uint32_t offset)
{
	return (emu_place){ .p = cta->shared + offset, .space = SPACE_SHARED, .cta = cta, .offset = offset };
}

static void show(emu_cta *cta, const emu_mbarrier *b)
{
	emu_place p = place(cta, b->offset);
	uint64_t v = b->live ? word(b) : 0;

	memcpy(p.p, &v, sizeof v);
	emu_set_defined(&p, sizeof v, b->live);
}

static bool overwritten(const emu_cta *cta, const emu_mbarrier *b)
{
	uint64_t v;

	memcpy(&v, cta->shared + b->offset, sizeof v);
	return v != word(b);
}

static uint32_t address(const emu_cta *cta, uint32_t offset) { return (cta->rank << SHARED_RANK) + SHARED_FIRST + offset; }

/* Makes a finding about the mbarrier there. */
CPTX_PRINTF_(5, 6)
static bool wrong(mbarrier_by by, enum cptx_finding_code code, const emu_cta *cta, uint32_t offset, const char *format, ...)
{
	char what[600];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	emu_find(by.w, by.op, (int)by.lane, code, "the mbarrier at shared address 0x%x (offset %u): %s", address(cta, offset),
	         offset, what);
	return false;
}

emu_mbarrier *mbarrier_of(emu_cta *cta, uint32_t offset, mbarrier_by by)
{
	emu_mbarrier *b = find(cta, offset);

	if (by.w->cta != cta && emu_has_ended(cta)) {
		wrong(
			by, CPTX_FIND_MBARRIER, cta, offset,
			"CTA %u of the cluster has ended, and its shared memory with it; barrier.cluster must keep it until all signals "
			"have come",
			cta->rank);
		return NULL;
	}
	if (!b || !b->live) {
		emu_find(by.w, by.op, (int)by.lane, CPTX_FIND_MBARRIER,
		         "at shared address 0x%x (offset %u) %s; mbarrier.init must come first", address(cta, offset), offset,
		         b ? "the mbarrier has been ended by mbarrier.inval" : "there is no mbarrier");
		return NULL;
	}
	if (overwritten(cta, b)) {
		wrong(by, CPTX_FIND_MBARRIER, cta, offset,
		      "its 8 bytes have been overwritten; mbarrier.inval must come before other use of them");
		return NULL;
	}
	return b;
}

/*
 * Its init has come to the thread's knowledge: else nothing tells that it has happened.  lenient: barrier.cluster is enough,
 * also where an arrival was relaxed.
 */
static void need_begun(const emu_cta *cta, const emu_mbarrier *b, mbarrier_by by, bool lenient)
{
	if (race_saw(by.w, by.lane, b->begun))
		return;
	if (lenient && race_over(by.w, b->begun))
		emu_lenient(
			by.w, by.op, (int)by.lane, CPTX_FIND_INIT_ORDER,
			"the mbarrier at shared address 0x%x (offset %u): its mbarrier.init, in CTA %u of the cluster, stands in "
			"front of barrier.cluster.arrive.relaxed without fence.mbarrier_init.release.cluster behind it",
			address(cta, b->offset), b->offset, cta->rank);
	else if (cta == by.w->cta)
		wrong(by, CPTX_FIND_RACE, cta, b->offset,
		      "nothing orders its mbarrier.init before this; bar.sync must come between");
	else
		wrong(by, CPTX_FIND_PROXY, cta, b->offset,
		      "nothing orders its mbarrier.init, in CTA %u of the cluster, before this; fence.mbarrier_init.release.cluster "
		      "and barrier.cluster must come between",
		      cta->rank);
}

static emu_mbarrier *at_address(mbarrier_by by, unsigned space, uint64_t addr, bool lenient, emu_cta **cta)
{
	emu_place p;

	if (!emu_resolve_any(by.w, by.op, by.lane, space, addr, 8, 8, &p))
		return NULL;
	if (!p.cta) {
		emu_find(by.w, by.op, (int)by.lane, CPTX_FIND_MBARRIER,
		         "address 0x%llx is not in shared memory, where mbarriers are", (unsigned long long)addr);
		return NULL;
	}
	*cta = p.cta;
	emu_mbarrier *b = mbarrier_of(p.cta, (uint32_t)p.offset, by);
	if (b)
		need_begun(p.cta, b, by, lenient);
	return b;
}

emu_mbarrier *mbarrier_at(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, emu_cta **cta)
{
	return at_address((mbarrier_by){ .w = w, .op = op, .lane = lane }, space, addr, false, cta);
}

emu_mbarrier *mbarrier_for_thread(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, emu_cta **cta)
{
	return at_address((mbarrier_by){ .w = w, .op = op, .lane = lane }, space, addr, true, cta);
}

emu_mbarrier *mbarrier_for_async(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, emu_cta **cta)
{
	emu_mbarrier *b = mbarrier_at(w, op, lane, space, addr, cta);

	if (b && !b->fenced && race_saw(w, lane, b->begun) && !race_fenced(w, lane, b->begun))
		wrong((mbarrier_by){ .w = w, .op = op, .lane = lane }, CPTX_FIND_PROXY, *cta, b->offset,
		      "its mbarrier.init is not visible to the async proxy; fence.mbarrier_init.release.cluster or "
		      "fence.proxy.async must "
		      "stand behind that, in front of the barrier");
	return b;
}

void mbarrier_fence_init(emu_warp *w, uint32_t mask)
{
	for (emu_mbarrier *b = w->cta->mbarriers; b; b = b->next)
		b->fenced |= b->begun.agent == w->agent && mask >> b->begun.lane & 1;
}

/* ---- init, inval ---- */

/* For the orders that are explored. */
static void touch(const emu_cta *cta, uint32_t offset, emu_touch t)
{
	emu_cluster *c = cta->cluster;

	t.object = emu_object(c, cta->rank, OBJECT_MBARRIER, offset);
	emu_touched(c, c->grid, t);
}

static emu_mbarrier *make(emu_cta *cta, uint32_t offset)
{
	emu_mbarrier *b = find(cta, offset);

	if (b) {
		emu_mbarrier *next = b->next;
		forget(b);
		*b = (emu_mbarrier){ .next = next, .offset = offset };
		return b;
	}
	b = NEW(emu_mbarrier);
	if (!b)
		return NULL;
	b->offset = offset;
	b->next = cta->mbarriers;
	cta->mbarriers = b;
	return b;
}

static bool idle(emu_cta *cta, uint32_t offset, mbarrier_by by)
{
	emu_mbarrier *b = find(cta, offset);

	if (b && b->live && !overwritten(cta, b) && (b->pending != b->expected || b->tx))
		return wrong(
			by, CPTX_FIND_MBARRIER, cta, offset,
			"it is in use: phase %llu waits for %u of %u arrivals and %d bytes; mbarrier.inval must come before another "
			"mbarrier.init, and behind the end of the phase",
			(unsigned long long)b->phase, b->pending, b->expected, b->tx);
	return true;
}

bool mbarrier_init(const emu_place *p, uint32_t count, bool v1, mbarrier_by by)
{
	uint32_t offset = (uint32_t)p->offset, most = v1 ? MBARRIER_MOST_V1 : MBARRIER_MOST;

	if (!count || count > most)
		return wrong(by, CPTX_FIND_MBARRIER, p->cta, offset, "%u arrivals; there can be 1 to %u", count, most);
	if (!idle(p->cta, offset, by))
		return false;
	emu_mbarrier *b = make(p->cta, offset);
	if (!b)
		return emu_find(by.w, by.op, EMU_ALL, CPTX_FIND_MEMORY, "no memory for an mbarrier"), false;
	b->live = true;
	b->v1 = v1;
	b->expected = b->pending = count;
	b->fenced = false;
	b->begun = race_stamp(by.w, by.lane);
	touch(p->cta, offset, (emu_touch){ .kind = TOUCH_WRITE });
	show(p->cta, b);
	return true;
}

static mbarrier_user *user_of(emu_cta *cta, emu_mbarrier *b, const emu_warp *w, unsigned lane)
{
	if (w->cta != cta)
		return NULL;
	if (!b->user)
		b->user = NEW_ARRAY(mbarrier_user, (size_t)cta->nwarp * WARP);
	return b->user ? &b->user[w->number * WARP + lane] : NULL; /* without, a check is left out */
}

void mbarrier_used(emu_cta *cta, emu_mbarrier *b, const emu_warp *w, unsigned lane)
{
	mbarrier_user *u = user_of(cta, b, w, lane);

	if (u)
		u->epoch = race_stamp(w, lane).epoch + 1;
}

/* That warp has told of that moment, by any of its lanes: one lane may speak for those that it has voted with. */
static bool has_told(const mbarrier_by *by, const emu_warp *w, uint32_t epoch)
{
	bool told = w == by->w;

	for (unsigned l = 0; l < WARP && !told; l++)
		told = race_saw(by->w, by->lane, (emu_stamp){ w->agent, epoch, l });
	return told;
}

/* A thread that has used it, which is not ordered in front of this one, as its number in the CTA; -1: none. */
static int64_t unordered_user(const emu_cta *cta, const emu_mbarrier *b, mbarrier_by by)
{
	for (uint32_t i = 0; b->user && i < cta->nwarp * WARP; i++)
		if (b->user[i].epoch && !has_told(&by, &cta->warp[i / WARP], b->user[i].epoch - 1))
			return i;
	return -1;
}

void mbarrier_inval(emu_cta *cta, emu_mbarrier *b, mbarrier_by by)
{
	int64_t other = unordered_user(cta, b, by);

	if (other >= 0)
		wrong(by, CPTX_FIND_RACE, cta, b->offset,
		      "thread %lld of the CTA has used it, and nothing orders that in front of mbarrier.inval: a barrier, or a "
		      "release "
		      "and an acquire, must stand between",
		      (long long)other);
	for (uint32_t i = 0; b->user && i < cta->nwarp * WARP; i++)
		b->user[i].epoch = 0;
	b->live = false;
	touch(cta, b->offset, (emu_touch){ .kind = TOUCH_WRITE });
	show(cta, b);
}

/* ---- phases ---- */

/* Remembers what came in this phase, in the place of what is longest ago. */
static void note(emu_mbarrier *b, mbarrier_by by, enum mbarrier_brought what, uint64_t n)
{
	mbarrier_event *e = b->event;

	for (unsigned i = 0; i < MBARRIER_EVENTS; i++) {
		mbarrier_event *x = &b->event[i];
		if (x->op == by.op && x->what == what && x->warp == by.w->number && x->rank == by.w->cta->rank) {
			e = x;
			break;
		}
		if (!x->op ? e->op != NULL : e->op && x->phase < e->phase)
			e = x;
	}
	if (e->op == by.op && e->what == what && e->phase == b->phase && e->warp == by.w->number && e->rank == by.w->cta->rank)
		n += e->n;
	*e = (mbarrier_event){
		.op = by.op, .rank = by.w->cta->rank, .warp = by.w->number, .what = what, .phase = b->phase, .n = n
	};
}

static void settle(emu_cta *cta, emu_mbarrier *b, unsigned more)
{
	touch(cta, b->offset,
	      (emu_touch){ .kind = TOUCH_ARRIVE,
	                   .phase = b->phase,
	                   .completes = !b->pending && !b->tx,
	                   .last = !b->pending,
	                   .more = (uint8_t)more });
	if (!b->pending && !b->tx) {
		b->phase++;
		b->pending = b->expected;
		b->asked = b->came = 0;
		clock_move(cta->cluster, &b->clock, &b->passed);
		emu_wake(cta->cluster);
	}
	show(cta, b);
}

bool mbarrier_expect_tx(emu_cta *cta, emu_mbarrier *b, uint32_t bytes, mbarrier_by by)
{
	if (bytes > MBARRIER_MOST || b->tx + (int64_t)bytes > MBARRIER_MOST)
		return wrong(by, CPTX_FIND_TX_BYTES, cta, b->offset, "%u bytes more to the %d that are outstanding; the most is %d",
		             bytes, b->tx, MBARRIER_MOST);
	b->tx += (int32_t)bytes;
	b->asked += bytes;
	note(b, by, MBARRIER_ASKED, bytes);
	/* In front of an arrival of the same thread it needs no order of its own: the phase waits for that. */
	settle(cta, b, by.op->opcode == CPTX_OP_MBARRIER_EXPECT_TX ? MORE_BYTES : 0);
	return true;
}

bool mbarrier_complete_tx(emu_cta *cta, uint32_t offset, uint32_t bytes, mbarrier_by by)
{
	emu_mbarrier *b = mbarrier_of(cta, offset, by);

	if (!b)
		return false;
	b->came += bytes;
	if (bytes > MBARRIER_MOST || b->tx - (int64_t)bytes < -MBARRIER_MOST)
		return wrong(by, CPTX_FIND_TX_BYTES, cta, offset, "in phase %llu %llu bytes have come, but only %llu are expected",
		             (unsigned long long)b->phase, (unsigned long long)b->came, (unsigned long long)b->asked);
	b->tx -= (int32_t)bytes;
	b->last_op = by.op;
	b->last_warp = by.w;
	note(b, by, MBARRIER_BYTES, bytes);
	race_async_done(cta->cluster, by.late, &b->clock);
	settle(cta, b, 0);
	return true;
}

static bool may_arrive(emu_cta *cta, const emu_mbarrier *b, uint32_t count, mbarrier_by by)
{
	if (!count || count > MBARRIER_MOST)
		return wrong(by, CPTX_FIND_MBARRIER, cta, b->offset, "%u arrivals at once; there can be 1 to %d", count,
		             MBARRIER_MOST);
	if (count > b->pending)
		return wrong(by, CPTX_FIND_OVER_ARRIVAL, cta, b->offset,
		             "%u arrival%s, but phase %llu waits for only %u more of %u%s", count, count == 1 ? "" : "s",
		             (unsigned long long)b->phase, b->pending, b->expected, b->pending || !b->tx ? "" : ", and for bytes");
	return true;
}

bool mbarrier_drop(emu_cta *cta, emu_mbarrier *b, uint32_t count, mbarrier_by by)
{
	if (!may_arrive(cta, b, count, by))
		return false;
	b->expected -= MIN(count, b->expected);
	show(cta, b);
	return true;
}

bool mbarrier_arrive(emu_cta *cta, uint32_t offset, uint32_t count, mbarrier_by by)
{
	emu_mbarrier *b = mbarrier_of(cta, offset, by);

	if (!b || !may_arrive(cta, b, count, by))
		return false;
	mbarrier_user *u = by.async ? NULL : user_of(cta, b, by.w, by.lane);
	if (u)
		u->arrived = (uint32_t)b->phase + 1;
	b->pending -= count;
	note(b, by, MBARRIER_ARRIVALS, count);
	race_async_done(cta->cluster, by.late, &b->clock);
	settle(cta, b, 0);
	return true;
}

bool mbarrier_add_pending(emu_cta *cta, emu_mbarrier *b, uint32_t count, mbarrier_by by)
{
	if (b->pending + (uint64_t)count > MBARRIER_MOST)
		return wrong(by, CPTX_FIND_MBARRIER, cta, b->offset, "it cannot wait for more than %d arrivals", MBARRIER_MOST);
	b->pending += count;
	touch(cta, b->offset, (emu_touch){ .kind = TOUCH_ARRIVE, .phase = b->phase, .more = MORE_ARRIVALS });
	show(cta, b);
	return true;
}

/* ---- waiting ---- */

bool mbarrier_passed(emu_cta *cta, emu_mbarrier *b, uint32_t parity, mbarrier_by by, bool *done)
{
	uint32_t now = (uint32_t)b->phase;
	mbarrier_user *u = user_of(cta, b, by.w, by.lane);

	*done = (now & 1) != parity;
	if (!u)
		return true;
	if (!*done) {
		uint32_t before = u->polled;
		u->polled = now + 1;
		if (before && before != now + 1)
			return wrong(by, CPTX_FIND_PARITY, cta, b->offset,
			             "the thread waits for the end of phase %u, but the mbarrier has gone on to phase %u meanwhile, "
			             "which has the same "
			             "parity; nothing may complete a phase before all have seen the end of the one in front of it",
			             before - 1, now);
		return true;
	}
	if (u->seen == now && u->arrived == now + 1)
		return wrong(by, CPTX_FIND_PARITY, cta, b->offset,
		             "the thread has arrived at phase %u, but waits for parity %u, that of the phase before, which is over: "
		             "the parity "
		             "waited for must be that of the phase, %u",
		             now, parity, now & 1);
	u->seen = now;
	u->polled = 0;
	return true;
}

/* A state: the phase above, the arrivals that were pending below. */
uint64_t mbarrier_state(const emu_mbarrier *b) { return (uint64_t)(uint32_t)b->phase << 32 | b->pending; }

bool mbarrier_state_passed(emu_cta *cta, emu_mbarrier *b, uint64_t state, mbarrier_by by, bool *done)
{
	uint32_t behind = (uint32_t)b->phase - (uint32_t)(state >> 32);

	*done = behind == 1;
	if (behind <= 1)
		return true;
	if ((int32_t)behind < 0 || (uint32_t)state > MBARRIER_MOST)
		return wrong(by, CPTX_FIND_PARITY, cta, b->offset, "0x%llx is not a state of it", (unsigned long long)state);
	return wrong(by, CPTX_FIND_PARITY, cta, b->offset,
	             "the state is of phase %u, but the mbarrier is in phase %llu; only the current phase and the one before it "
	             "can be told apart",
	             (uint32_t)(state >> 32), (unsigned long long)b->phase);
}

/* ---- deadlocks, the end ---- */

static emu_mbarrier *waited_for(const emu_warp *w, const emu_waiting *x)
{
	return x->what && !strcmp(x->what, "mbarrier") ? find(w->cta, (x->where & SHARED_MASK) - SHARED_FIRST) : NULL;
}

static const char *unit_of(const mbarrier_event *e)
{
	return e->what == MBARRIER_ARRIVALS ? e->n == 1 ? "arrival" : "arrivals"
	       : e->what == MBARRIER_BYTES  ? "bytes"
	                                    : "bytes expected";
}

/* "; in this phase came 1 arrival by mbarrier.arrive (k.ptx:12) of warp 0": what came now, or last in the phase before. */
static void put_events(buf *out, const emu_warp *w, const emu_mbarrier *b, bool now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MBARRIER_EVENTS; i++) {
		const mbarrier_event *e = &b->event[i];
		if (!e->op || (now ? e->phase != b->phase : e->phase + 1 != b->phase))
			continue;
		buf_str(out, n++ ? ", " : now ? "; in this phase came " : "; in the phase before, and not in this one, came ");
		buf_printf(out, "%llu %s by ", (unsigned long long)e->n, unit_of(e));
		emu_put_op(out, w->grid, e->op);
		buf_printf(out, " of warp %u", e->warp);
		if (w->cluster->ncta > 1)
			buf_printf(out, " of CTA %u", e->rank);
	}
	if (!n && now)
		buf_str(out, "; in this phase nothing has come");
}

void mbarrier_describe(buf *out, const emu_warp *w, const emu_waiting *x)
{
	const emu_mbarrier *b = waited_for(w, x);

	buf_printf(out, " waits at the mbarrier at shared address 0x%x", x->where);
	if (!b)
		return;
	buf_printf(out, " (offset %u) for the end of phase %u; ", b->offset, x->phase);
	if (b->phase != x->phase)
		buf_printf(out, "it is in phase %llu, where ", (unsigned long long)b->phase);
	buf_printf(out, "%u of %u arrivals are pending", b->pending, b->expected);
	if (b->asked || b->came)
		buf_printf(out, ", and %d bytes: %llu are expected, %llu have come", b->tx, (unsigned long long)b->asked,
		           (unsigned long long)b->came);
	put_events(out, w, b, true);
	put_events(out, w, b, false);
}

void mbarrier_lacks(const emu_warp *w, const emu_waiting *x, bool *arrivals, bool *bytes)
{
	const emu_mbarrier *b = waited_for(w, x);

	*arrivals |= b && b->pending;
	*bytes |= b && b->tx > 0;
}

enum cptx_finding_code mbarrier_blame(const emu_warp *w, const emu_group *g, const char **why)
{
	const emu_mbarrier *b = waited_for(w, &g->waiting);

	*why = "no thread of the cluster can go on";
	if (!b || !b->live)
		return CPTX_FIND_DEADLOCK;
	if (!b->pending && b->tx) {
		*why = "a phase of an mbarrier lacks only bytes, and no copy is under way";
		return CPTX_FIND_TX_BYTES;
	}
	EACH_LANE(l, g->mask) {
		const mbarrier_user *u = b->user ? &b->user[w->number * WARP + l] : NULL;
		if (!u || u->polled != b->phase + 1 || u->seen == b->phase)
			continue;
		if (u->arrived != b->phase && !(u->seen && u->seen + 1 == b->phase))
			continue;
		*why = "a thread waits for a phase that does not end, but has not seen the end of the one before, which is over: it "
			   "waits for "
			   "the wrong parity, or came too late";
		return CPTX_FIND_PARITY;
	}
	return CPTX_FIND_DEADLOCK;
}

void mbarriers_end(emu_cluster *c)
{
	for (uint32_t i = 0; i < c->ncta; i++)
		for (emu_mbarrier *b = c->cta[i].mbarriers; b; b = b->next)
			if (b->live && b->tx < 0 && !overwritten(&c->cta[i], b))
				emu_find(b->last_warp, b->last_op, EMU_ALL, CPTX_FIND_TX_BYTES,
				         "the mbarrier at shared address 0x%x (offset %u) ends with %d bytes that no expect_tx asked for",
				         address(&c->cta[i], b->offset), b->offset, -b->tx);
}
