/* SPDX-License-Identifier: MIT */
/* How cptx_gemm_auto picks a shape: what a generator supplies (its candidates and their cost), and what the costs share. */
#ifndef CPTX_GEMM_AUTO_H
#define CPTX_GEMM_AUTO_H

#include "gemm/tma/tma.h"

/* ---- the chip of a model ---- */

/* What multiplies: columns of the table of chips. */
enum gemm_by { GEMM_BY_SYNC, GEMM_BY_SCALED, GEMM_BY_WGMMA, GEMM_BY_TCGEN05, GEMM_BYS };

/* A GPU, and what models take of it. */
typedef struct gemm_chip {
	uint16_t from;    /* targets from this number on are like it, up to the next that has the model's column */
	const char *name; /* which GPU, and where its figures come from */
	uint32_t sms;
	double ghz, memory_gbs;
	double doubles;            /* multiply-adds of f64 by mma.sync of a multiprocessor, a clock */
	double products[GEMM_BYS]; /* those of the usual type; 0: the chip has none */
} gemm_chip;

/* By their targets' numbers: gemm/chips.c. */
enum { GEMM_CHIPS = 10 };
extern const gemm_chip gemm_chips[GEMM_CHIPS];

/* ---- the search ---- */

/* A field of the options that the search sets: first, first + add ... to last, or with add = 0 each twice the one before.
 * Candidates that a rule forbids are passed over, so an axis may have too many. */
typedef struct gemm_axis {
	bool there;
	uint16_t field;    /* its place in cptx_gemm_opt */
	bool is_flag;      /* a bool, else a uint32_t */
	uint16_t simplest; /* the value in the shape that fits if any does; GEMM_AS_GIVEN: a flag, first true, that stays if
	                      it is set */
	uint16_t first, last;
	int16_t add;
} gemm_axis;
#define GEMM_AXIS(name, simplest, first, last, add)                                                                         \
	{                                                                                                                       \
		true, offsetof(cptx_gemm_opt, name), sizeof((cptx_gemm_opt){ 0 }.name) == sizeof(bool), (simplest), (first),        \
			(last), (add)                                                                                                   \
	}
enum { GEMM_AXES = 8 /* at most */, GEMM_AS_GIVEN = UINT16_MAX };

/* The best choices for a problem, best first, and what they are for. */
typedef struct gemm_pick {
	char *choices; /* the caller's cptx_gemm_choice, of `size` bytes each as its header says */
	size_t size, n, room;
	uint32_t opt_size; /* .size of the options in a choice: that of the options that were given */
	const cptx_gemm_problem *p;
	const cptx_target *target; /* NULL: any */
	gemm_chip chip;            /* with the clock and the memory of the model */
	double products;           /* of chip, what its model counts with; 0: the model has its own */
	uint32_t sms;
	bool whole_tiles; /* none with stream_k */
	bool any_mma;     /* of few rows also the kernel for these */
} gemm_pick;
/* Fills in x->choices for a problem, as the public calls tell; gives their number, 0 with an error. */
size_t gemm_auto_fill(gemm_pick *x, const cptx_gemm_opt *opt, const cptx_gemm_problem *p, cptx_error *err);

/* Adds to options without a shape what distances and addresses of a problem ask for: .strided, .unaligned. */
void gemm_auto_fit(cptx_gemm_opt *o, const cptx_gemm_problem *p);

/* The best choices without stream_k, as no workspace is at hand: on a target (NULL: any) with so many multiprocessors.
 * any_mma: the kernel for few rows may take the place of .mma. */
size_t gemm_auto_whole(const cptx_gemm_opt *o, const cptx_target *target, uint32_t sms, const cptx_gemm_problem *p,
                       bool any_mma, cptx_gemm_choice *choices, size_t room, cptx_error *err);

/* What a generator supplies.  Of candidates that cost the same the first one is kept, so the order of the axes (the first is
 * the outermost) and of their values counts. */
typedef struct gemm_model {
	enum gemm_by by;
	double ghz, memory_gbs;       /* that come out of a fit; 0: those of the chip */
	const uint8_t (*clusters)[2]; /* outside of all axes; NULL: there are none */
	uint32_t cluster_count;
	gemm_axis axes[GEMM_AXES];
	bool stages_are_an_axis; /* else they are the most that fit */
	bool no_ring;            /* there are no stages, and no groups of tiles */
	bool one_each; /* with two CTAs on a multiprocessor one on each is tried too: the launch behind has room beside it */
	/* Whether a shape works well with so many stages; NULL: it does.  Where stages are an axis only those are tried; else,
	 * if it does with none, the most that fit. */
	bool (*suits)(const cptx_gemm_opt *o, const cptx_target *target);
	/* Fills in the times of a choice that can do the problem, of the kernel that t says but for .stream_k. */
	void (*predict)(cptx_gemm_choice *c, const gemm_pick *x, const tma_gemm *t);
} gemm_model;

/* ---- what costs are made of ---- */

/* How the tiles of a choice come over a chip; tiles are those of clusters. */
typedef struct gemm_rounds {
	double tiles;    /* of all matrices */
	double at_once;  /* clusters that are resident */
	double rounds;   /* of all of these, until the tiles are done */
	double steps;    /* K tiles that a cluster computes */
	double run;      /* CTAs at work */
	double together; /* CTAs of a multiprocessor */
	double idle;     /* share of the multiprocessors' time */
} gemm_rounds;
gemm_rounds gemm_rounds_of(const tma_gemm *t, const cptx_gemm_choice *c, const gemm_pick *x);
/* The time that two overlapping ones take: the longer, and some more where they are near and hinder each other, the more
 * the lower the power. */
double gemm_longer(double a, double b, double power);
/* Bytes of global memory that a problem reads of A and B, so many times each, and writes of D once. */
double gemm_memory_bytes(const cptx_gemm_opt *o, const cptx_gemm_problem *p, double times_a, double times_b);
/* Clusters that have a part of a shared tile. */
double gemm_sharers(const gemm_rounds *r);

/* Clocks of a choice by the figures of a data sheet, those of all CTAs of a multiprocessor together. */
typedef struct gemm_clocks {
	double mma, load; /* a K tile: its products; its way into shared memory */
	double tile, out; /* ends of each tile that no other CTA's products overlap; of the last tile besides */
	double sums;      /* with stream_k: bytes of the accumulators of a CTA */
} gemm_clocks;
/* Clocks that L2 takes to give a multiprocessor so many bytes. */
double gemm_l2_clocks(const cptx_gemm_opt *o, double bytes);
/* Clocks of so many bytes that a multiprocessor reads from its shared memory, or writes there. */
double gemm_shared_clocks(double bytes);
/* The times of a choice: the roofline of x->chip. */
void gemm_roofline(cptx_gemm_choice *c, const gemm_pick *x, const gemm_rounds *r, const gemm_clocks *w);

#endif
