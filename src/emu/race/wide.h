/* SPDX-License-Identifier: MIT */
/* Inside of emu/race: global memory, and what clusters know of one another. */
#ifndef CPTX_EMU_RACE_WIDE_H
#define CPTX_EMU_RACE_WIDE_H

#include "emu/race/cell.h"

enum { PAGE = 1024 /* bytes */, PAGE_WORDS = PAGE / 4 };

/* What a cluster knows of others: up to which of their segments.  A segment ends when a cluster releases what it did. */
struct wide_entry {
	uint32_t cluster, segment;
};
typedef struct wide_clock {
	struct wide_entry *e; /* by cluster */
	uint32_t n, cap;
	bool all; /* too much to keep: it counts as knowing everything */
} wide_clock;

/* Lanes have acquired what a clock tells; others know it once they know of that. */
typedef struct wide_event {
	uint32_t agent, epoch, lanes;
	wide_clock from;
} wide_event;
enum {
	MOST_EVENTS = 64, /* then all lanes are taken to know of all of them */
	MOST_LEFT = 16    /* segments; what is known of an older one counts as known of the oldest of these */
};

enum note_flags { NOTE_WRITE = 1, NOTE_STRONG = 2, NOTE_SILENT = 4, NOTE_BYTES = 8 /* a bit is a byte, not a word */ };

/* What an instruction has touched of a page. */
typedef struct note {
	uint64_t page;
	uint32_t op, next; /* next: number + 1 of another of the same bucket or page */
	uint32_t cluster, segment;
	uint16_t agent;
	uint8_t lane, flags;
	uint64_t events; /* that the lane knew of */
	uint32_t *bits;  /* 8 or 32 words */
	uint8_t *values; /* of a write: what each byte or (hashed) word became; 0: more than one thing */
} note;

typedef struct notes {
	note *n;
	uint32_t count, cap;
	uint32_t *bucket, nbucket; /* number + 1 */
	arena a;
} notes;

/* Of a cluster. */
enum { SLOTS = 512, RECENT = 4096 };
typedef struct global_pages {
	emu_word *page[SLOTS];   /* words of the pages that were used last */
	uint64_t key[SLOTS];     /* page + 1; 0: none */
	notes log;               /* since the last fold */
	uint32_t recent[RECENT]; /* of the notes that were used last: number + 1, by a hash of what makes them one */
	uint32_t segment;
	wide_clock known /* to all lanes */, at_fence, pending;
	wide_event event[MOST_EVENTS];
	uint32_t nevent;
	emu_clock
		left[MOST_LEFT]; /* by segment: what was released with it and those before, which may come back by other clusters */
} global_pages;

/* Of a launch. */
typedef struct wide_location {
	uint64_t at; /* address */
	wide_clock clock;
} wide_location;
typedef struct emu_wide {
	notes pages;
	wide_location *loc; /* a hash table */
	uint32_t nloc, cap_loc;
	wide_clock other_locs;
} emu_wide;

void race_wide_order(emu_warp *w, unsigned lane, uint64_t at, unsigned access);
uint64_t race_wide_events(const emu_warp *w, unsigned lane); /* that the lane knows of: a bit each */
void race_wide_fence(emu_warp *w, uint32_t lanes, unsigned order);

void race_touch_global(const touch *t);
void race_log(const touch *t);
void race_log_row(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t each, uint32_t stride, uint32_t all,
                  uint32_t silent, unsigned access);
emu_word *race_page_words(emu_cluster *c, uint64_t page);             /* NULL: memory is short */
const emu_word *race_page_there(const emu_cluster *c, uint64_t page); /* NULL: it has been forgotten */
bool race_pages_init(emu_cluster *c);
void race_pages_free(emu_cluster *c);

uint32_t race_notes_of(const notes *s, uint64_t page); /* number + 1 of the first of its bucket */
note *race_note_new(notes *s, const note *like);       /* like it, with nothing touched; NULL: memory is short */
void race_notes_clear(notes *s);
void race_notes_free(notes *s);

#endif
