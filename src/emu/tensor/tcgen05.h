/* SPDX-License-Identifier: MIT */
/*
 * tcgen05: tensor memory, and who may touch it when.
 *
 * Tensor memory belongs to a CTA.  Operations of mma, cp, shift and commit stand in one pipe of a CTA, or a pair of CTAs,
 * and are done in the order in which they were started; loads and stores by warps happen at any time until the warp waits
 * for them.
 *
 * Each operation has a record, and cells of 16 lanes of a column know the last that writes and the last that reads them.
 * What touches a cell must know that the operations before it are over, but for those of the same pipe: through an mbarrier
 * behind tcgen05.commit, or tcgen05.wait, and what threads do to tell one another (race.h).
 */
#ifndef CPTX_EMU_TENSOR_TCGEN05_H
#define CPTX_EMU_TENSOR_TCGEN05_H

#include "emu/exec/exec.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32 /* columns */, TMEM_BAND = 16 /* lanes */ };
enum { TMEM_UNITS = TMEM_COLUMNS / TMEM_UNIT, TMEM_BANDS = TMEM_LANES / TMEM_BAND, TMEM_RECORDS = 1024 };
enum { TMEM_ALL_BANDS = (1 << TMEM_BANDS) - 1 };

/* An operation that touches tensor memory. */
typedef struct tmem_record {
	uint32_t id;     /* 0: none */
	uint32_t late;   /* its number in race.h; 0: nothing is looked for */
	uint64_t fenced; /* warps of the pair that have executed fence::after_thread_sync since they know of its end */
	const emu_op *op;
	uint32_t agent; /* who started it */
	uint8_t lane;
	bool piped;
	bool published; /* not piped: the warp has executed fence::before_thread_sync behind it */
} tmem_record;

typedef struct emu_tmem {
	uint32_t v[TMEM_COLUMNS][TMEM_LANES];
	uint32_t defined[TMEM_COLUMNS][TMEM_LANES / WARP];
	struct {
		uint32_t writer, reader;
	} cell[TMEM_COLUMNS][TMEM_BANDS];
	uint32_t owned; /* a bit per unit */
	struct {
		uint32_t columns; /* of the allocation that begins there */
		emu_warp *w;
		const emu_op *op;
	} block[TMEM_UNITS];
	bool relinquished;
	uint32_t wanted, granted; /* cta_group::2: columns asked for; column given, counted from 1 on */
	/* Of the first CTA of a pair: */
	tmem_record record[TMEM_RECORDS];
	uint32_t last;
} emu_tmem;

/* An address in tensor memory. */
typedef struct tmem_place {
	uint32_t lane, column;
} tmem_place;
static inline tmem_place tmem_place_of(uint64_t addr)
{
	return (tmem_place){ (uint32_t)addr >> 16, (uint32_t)addr & 0xffff };
}

emu_tmem *tmem_of(emu_cta *cta, emu_warp *w, const emu_op *op); /* NULL with a finding: memory is short */
emu_cta *tmem_peer(emu_warp *w, const emu_op *op); /* of the CTA of a warp in its pair; NULL with a finding: there is none */
static inline bool tmem_pair(const emu_op *op) { return emu_modifier(op, "cta_group") == CPTX_CTA_GROUP_2; }
/* All these columns are allocated; else a finding. */
bool tmem_allocated(emu_warp *w, const emu_op *op, emu_cta *cta, uint32_t column, uint32_t n);

/* Notes an operation that begins now. */
uint32_t tmem_begin(emu_warp *w, const emu_op *op, unsigned lane, bool piped);
tmem_record *tmem_record_of(emu_cta *cta, uint32_t id);
typedef struct tmem_area {
	uint32_t column, n;
	uint32_t bands; /* a bit each */
	const char *what;
} tmem_area;
/* That it will read or write these cells of a CTA: a finding if something else does so meanwhile. */
void tmem_touch(emu_warp *w, uint32_t id, emu_cta *cta, tmem_area area, bool write);
/* Puts it into the pipe of the CTA or pair. */
bool tmem_start(emu_async *a);

/* What a warp has under way. */
typedef struct tmem_load {
	struct tmem_load *next;
	const emu_op *op;
	const emu_frame *frame;
	uint32_t group;
} tmem_load;

struct emu_tcgen05 {
	struct {
		uint32_t busy;   /* loads or stores */
		uint32_t groups; /* each load or store is one */
		emu_clock track;
	} way[2];         /* loads, stores */
	tmem_load *loads; /* whose registers nobody has waited for */
};

static inline bool tmem_is_defined(const emu_tmem *t, uint32_t column, uint32_t lane)
{
	return t->defined[column][lane / WARP] >> lane % WARP & 1;
}
static inline void tmem_define(emu_tmem *t, uint32_t column, uint32_t lane, bool defined)
{
	uint32_t bit = UINT32_C(1) << lane % WARP, *at = &t->defined[column][lane / WARP];

	*at = defined ? *at | bit : *at & ~bit;
}

void emu_tmem_free(emu_cta *cta);
void emu_tmem_end(emu_cluster *c); /* the cluster is at its end: what is still allocated */
void emu_tcgen05_free(emu_warp *w);
/* Whether it touches registers that are being loaded; STEP_NEXT: it may be executed. */
enum emu_step emu_tcgen05_watch(emu_warp *w, const emu_op *op);

#endif
