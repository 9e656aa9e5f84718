/* SPDX-License-Identifier: MIT */
/*
 * mbarriers: their state stands in a table of the CTA.  The 8 bytes in shared memory hold the same (mbarrier_word), so that
 * a store over them is noticed.
 *
 * Others complete bytes and arrive through mbarrier_complete_tx and mbarrier_arrive, when their work is done.
 */
#ifndef CPTX_EMU_ASYNC_MBARRIER_H
#define CPTX_EMU_ASYNC_MBARRIER_H

#include "emu/core/cluster.h"

enum { MBARRIER_MOST = (1 << 20) - 1 /* arrivals, bytes */, MBARRIER_MOST_V1 = 511 };

/* What a thread of its own CTA has had to do with it; phases are counted from 1 there, 0: nothing. */
typedef struct mbarrier_user {
	uint32_t seen;    /* complete */
	uint32_t arrived; /* at */
	uint32_t polled;  /* without success */
	uint32_t epoch;   /* of its warp when it last arrived or had waited, + 1 */
} mbarrier_user;

/* What came to it: the same instruction of the same warp is one. */
enum mbarrier_brought { MBARRIER_ARRIVALS, MBARRIER_BYTES, MBARRIER_ASKED /* bytes */ };
typedef struct mbarrier_event {
	const emu_op *op;
	uint32_t rank, warp;
	enum mbarrier_brought what;
	uint64_t phase, n; /* in that phase, the last one of it */
} mbarrier_event;
enum { MBARRIER_EVENTS = 8 /* that are remembered, the latest */ };

typedef struct emu_mbarrier {
	struct emu_mbarrier *next;
	uint32_t offset; /* in the CTA's shared memory */
	bool live;       /* between init and inval */
	bool v1;         /* its layout */
	uint32_t expected, pending;
	int32_t tx;           /* bytes outstanding */
	uint64_t asked, came; /* bytes, in this phase */
	uint64_t phase;
	emu_clock clock, passed;
	bool fenced;         /* its init, by fence.mbarrier_init */
	emu_stamp begun;     /* by mbarrier.init */
	mbarrier_user *user; /* a thread each; NULL: none yet */
	mbarrier_event event[MBARRIER_EVENTS];
	const emu_op *last_op; /* that completed bytes */
	emu_warp *last_warp;
} emu_mbarrier;

/* Who does something to it, for findings: a thread, or what works for one. */
typedef struct mbarrier_by {
	emu_warp *w;
	const emu_op *op;
	unsigned lane;
	bool async;
	uint32_t late; /* an asynchronous operation that is over with it, by its number in race.h; 0: none, or not yet */
} mbarrier_by;
static inline mbarrier_by mbarrier_by_async(const emu_async *a, uint32_t late)
{
	return (mbarrier_by){ a->w, a->op, a->lane, true, late };
}

/*
 * The one at an address that a thread gives for what it starts, and the CTA that it is in; NULL and a finding if there is
 * none.
 */
emu_mbarrier *mbarrier_at(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, emu_cta **cta);
/* As mbarrier_at, for an arrival or a wait by the thread itself: an init that is not ordered, which GPUs accept, is a
 * warning. */
emu_mbarrier *mbarrier_for_thread(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr,
                                  emu_cta **cta);
/* As mbarrier_at, for the async proxy to complete bytes at: the mbarrier's init must have been fenced. */
emu_mbarrier *mbarrier_for_async(emu_warp *w, const emu_op *op, unsigned lane, unsigned space, uint64_t addr, emu_cta **cta);
void mbarrier_fence_init(emu_warp *w, uint32_t mask); /* what these lanes have initialized */
/* The same by its place; NULL and a finding if it is there no more. */
emu_mbarrier *mbarrier_of(emu_cta *cta, uint32_t offset, mbarrier_by by);

/* These make a finding and return false if it cannot be. */
bool mbarrier_expect_tx(emu_cta *cta, emu_mbarrier *b, uint32_t bytes, mbarrier_by by);
bool mbarrier_complete_tx(emu_cta *cta, uint32_t offset, uint32_t bytes, mbarrier_by by);
bool mbarrier_arrive(emu_cta *cta, uint32_t offset, uint32_t count, mbarrier_by by);
/* One arrival more is waited for in this phase. */
bool mbarrier_add_pending(emu_cta *cta, emu_mbarrier *b, uint32_t count, mbarrier_by by);

/* For exec/mbarrier.c. */
bool mbarrier_init(const emu_place *p, uint32_t count, bool v1, mbarrier_by by);
/* The lane arrives, or has waited: what the end of the mbarrier must be ordered behind. */
void mbarrier_used(emu_cta *cta, emu_mbarrier *b, const emu_warp *w, unsigned lane);
/* A thread whose last use is not ordered in front of it makes a finding. */
void mbarrier_inval(emu_cta *cta, emu_mbarrier *b, mbarrier_by by);
bool mbarrier_drop(emu_cta *cta, emu_mbarrier *b, uint32_t count, mbarrier_by by); /* an arrival follows */
uint64_t mbarrier_state(const emu_mbarrier *b);
/* Whether the phase of that parity, or that state, is over. */
bool mbarrier_passed(emu_cta *cta, emu_mbarrier *b, uint32_t parity, mbarrier_by by, bool *done);
bool mbarrier_state_passed(emu_cta *cta, emu_mbarrier *b, uint64_t state, mbarrier_by by, bool *done);

void mbarrier_describe(buf *b, const emu_warp *w, const emu_waiting *x);
/* Adds what the mbarrier that it waits at lacks, if it is one. */
void mbarrier_lacks(const emu_warp *w, const emu_waiting *x, bool *arrivals, bool *bytes);
/*
 * The finding for a group that waits for ever: TX_BYTES, if only bytes are missing; PARITY, if it waits for the phase behind
 * the one that it should have waited for; else DEADLOCK.  *why says it.
 */
enum cptx_finding_code mbarrier_blame(const emu_warp *w, const emu_group *g, const char **why);
/* The cluster is at its end: bytes that nobody had asked for. */
void mbarriers_end(emu_cluster *c);
void emu_mbarriers_free(emu_cta *cta);

#endif
