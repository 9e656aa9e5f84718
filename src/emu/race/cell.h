/* SPDX-License-Identifier: MIT */
/* Inside of emu/race: what a cluster keeps, and what words of memory remember. */
#ifndef CPTX_EMU_RACE_CELL_H
#define CPTX_EMU_RACE_CELL_H

#include "emu/core/cluster.h"
#include "emu/race/race.h"

enum {
	CELL_BYTES = 15 /* of the word */,
	CELL_STRONG = 16,
	CELL_LATE = 32 /* epoch is an asynchronous operation's number */,
	CELL_PROXY = 64 /* async */,
	CELL_PARTED = 128 /* of the last writer: who wrote other bytes is in the nodes.  In a node: it is such a writer */
};
enum { AGENT_LATE = 0xffff };

/* Who wrote bytes of a word last. */
typedef struct cell {
	uint32_t epoch, op; /* op: its index in the image */
	uint16_t agent;
	uint8_t lane, bits;
} cell;

/* Lanes of a warp that have each read all of these bytes in one epoch. */
typedef struct reader {
	uint32_t epoch, op, lanes;
	uint16_t agent;
	uint8_t bits, z;
} reader;

typedef struct emu_word {
	cell w;        /* bits 0: nobody */
	uint32_t more; /* readers beside r, writers beside w: number of a node */
	reader r;      /* the latest; bits 0: nobody */
} emu_word;

/* Writers come before readers. */
typedef struct word_node {
	reader r; /* CELL_PARTED: a writer, of one lane */
	uint32_t next;
} word_node;

/* An asynchronous operation.  agent 0: nobody can have seen it. */
typedef struct late_op {
	uint32_t id, op;
	uint32_t agent, epoch;     /* by which its end will be known */
	uint32_t arrival, arrived; /* or by these, an agent and its epoch; arrival 0: by none */
	uint16_t warp;
	uint8_t lane, grouped; /* known to those lanes that wait for the group */
	uint32_t same;         /* race_async_same: the other's id; 0: none */
} late_op;

typedef struct location { /* written by a release, or behind a fence */
	const unsigned char *at;
	emu_clock clock;
} location;

struct emu_races {
	uint32_t agents; /* given out; 0 to nwarp - 1 are warps */
	uint32_t *epoch; /* of the agents, as far as they are not warps */
	size_t cap_epoch;
	word_node *node; /* 0 is none */
	uint32_t nnode, cap_node, free_node;
	late_op *late; /* the last ones: id % nlate */
	uint32_t nlate, last_late;
	location *loc; /* a hash table of cap_loc */
	uint32_t nloc, cap_loc;
	emu_clock other_locs; /* of all that found no place in it */
	struct global_pages *pages;
	struct emu_early *early; /* fetched.c's; NULL: nothing was given back early */
};

/* Something that cannot be noted for lack of memory ends the launch. */
void race_no_memory(emu_cluster *c);
bool race_clock_room(emu_cluster *c, emu_clock *k, uint32_t agents);
uint32_t race_agent(emu_cluster *c, emu_clock *k); /* of asynchronous work; 0 when memory is short */

/* What a fence of a warp, or a strong access by a lane, does to clocks. */
void race_order(emu_warp *w, unsigned lane, const emu_place *p, unsigned access);

/* An access to words; the array covers the place. */
typedef struct touch {
	emu_warp *w;
	const emu_op *op;
	unsigned lane, access;
	uint32_t late; /* number of the asynchronous operation; 0: by the thread itself */
	const emu_place *place;
	uint32_t size;
} touch;
void race_touch(const touch *t);
/* Whether an asynchronous write comes behind the end of what a reader has fetched (fetched.c). */
bool race_is_fetched(const touch *t, const reader *x, unsigned *lane);
/* n bytes, which begin at `at` in the array; `done` have been dealt with before. */
void race_touch_words(const touch *t, emu_word *word, uint64_t at, uint32_t done, uint32_t n);
void race_drop_nodes(emu_cluster *c, emu_word *x);
cell race_node_cell(const word_node *n); /* of a writer */
/* Nodes of those who wrote other bytes than the last writer; 0: none, no more. */
static inline uint32_t race_writer(const emu_cluster *c, uint32_t n)
{
	return n && c->races->node[n].r.bits & CELL_PARTED ? n : 0;
}
static inline uint32_t race_first_writer(const emu_cluster *c, const emu_word *x)
{
	return x->w.bits & CELL_PARTED ? race_writer(c, x->more) : 0;
}
static inline uint32_t race_next_writer(const emu_cluster *c, uint32_t n) { return race_writer(c, c->races->node[n].next); }
/* Whether this holds for all who wrote some of these bytes (a mask) last. */
bool race_each_writer(const emu_cluster *c, const emu_word *x, unsigned bytes, bool (*is)(const void *, const cell *),
                      const void *of);
void race_put_place(buf *b, const emu_grid *g, const emu_place *p, uint64_t offset);
void race_found(const touch *t, const cell *other, bool other_writes, uint32_t byte /* of the access */, bool unfenced);
void race_found_early(const touch *t, const cell *other, uint32_t byte); /* a load whose stage was given back too early */

static inline bool race_entry_saw(const emu_seen *e, uint32_t epoch, unsigned lane)
{
	return epoch <= e->all || (epoch <= e->some && lane < WARP && e->lanes >> lane & 1);
}
/* Whether a lane knows what another agent's lane did. */
bool race_knows(const emu_warp *w, unsigned lane, bool fenced, uint32_t agent, uint32_t epoch, unsigned other_lane);
bool race_late_known(const emu_warp *w, unsigned lane, bool fenced, uint32_t id);
/* emu_knowledge.over says that the lane has come so far; that the operation is over. */
bool race_is_over(const emu_warp *w, uint32_t agent, uint32_t epoch, unsigned lane);
bool race_late_over(const emu_warp *w, uint32_t id);
const late_op *race_late(const emu_cluster *c, uint32_t id); /* NULL: long ago */

#endif
