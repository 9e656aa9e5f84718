/* SPDX-License-Identifier: MIT */
/*
 * What each rung of examples/blackwell should reach for 4096 x 4096 x 4096 on a B200, by public figures alone, and the rungs
 * of an article of the same steps, with the tiles of its code, beside what it measured.  Nothing is fitted.
 *
 *   bench_blackwell_model [SIZE]
 *
 * A stage takes an SM the longest of: its products on the tensor cores, its bytes from L2, its requests by TMA (one row of a
 * box a clock), the instructions of the busiest thread, and what one stage takes in turn, from asking for it to the end of
 * its products, shared by all that are under way: those of the ring, or, without one, the CTAs that share the SM.  Setting
 * up and the way out are added for each tile, but where they overlap (v6, v7) for the last only.  Tiles are dealt out in
 * whole rounds.
 */
#include "ladder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* NVIDIA's data sheet of the B200: 2.25 PFLOP/s of dense bf16 and 8 TB/s; 148 multiprocessors.  The clock follows from 8192
 * FLOP a clock and multiprocessor, twice those of Hopper. */
#define SMS 148
#define FLOP_CLOCK 8192.0
#define GHZ 1.856
#define MEMORY_GBS 8000.0
/* As published for Hopper, where nothing is for Blackwell: bytes a clock that L2 gives an SM, and clocks until a copy has
 * come, until a commit is seen, until an instruction that hangs on the one before may issue. */
#define L2_CLOCK 64.0
#define LOAD_LATENCY 700.0
#define COMMIT_LATENCY 200.0
#define ISSUE 6.0
#define SMEM (227 * 1024)
#define LAUNCH_US 3.0

/* "tcgen05 for dummies" by Thien Tran, https://gau-nernst.github.io/tcgen05/, December 2025: M = N = K = 4096, bf16; the
 * tiles are those of its code, https://github.com/gau-nernst/learn-cuda, 02e_matmul_sm100. */
static const struct published {
	const ladder_rung *rung;
	double tflops;
	uint32_t insns; /* of a turn of the busiest thread's loop: bench/sass_counts.py; of v1a to v3 both of v4's together */
	uint32_t n, k, stages; /* of its tile; rows are those of ours */
} published[] = {
	{ &rung_v1a, 254.62, 60, 256, 256, 1 }, { &rung_v1b, 252.81, 60, 256, 256, 1 }, { &rung_v2a, 681.20, 60, 256, 256, 1 },
	{ &rung_v2b, 695.43, 60, 256, 256, 1 }, { &rung_v3, 939.61, 60, 256, 128, 2 },  { &rung_v4, 1208.83, 36, 128, 64, 7 },
	{ &rung_v5, 1302.29, 37, 256, 64, 7 },  { &rung_v6, 1475.93, 39, 256, 64, 7 },  { &rung_v7, 0, 39, 0, 0, 0 },
};
#define CUBLAS 1506.74

typedef struct stage {
	double mma, bytes, requests, issue, clocks; /* of a CTA */
	double out;                                 /* way out of a tile */
	uint32_t resident;                          /* CTAs on an SM */
} stage;

static double most(double a, double b) { return a > b ? a : b; }

/* rate: of the tensor cores, FLOP a clock. */
static stage stage_of(const ladder_rung *rung, uint32_t insns, double rate)
{
	const ladder_opt *o = &rung->tile;
	uint32_t ctas = rung->pair ? 2 : 1, span = cptx_swizzle_get(rung->swizzle)->span, steps = o->k / 64 ? o->k / 64 : 1;
	double rows = (double)ROWS + o->n / ctas, bytes = rows * o->k * 2;
	stage s = { .mma = 2.0 * ROWS * o->n * o->k / rate, .bytes = bytes / L2_CLOCK, .requests = bytes / span };

	s.issue = insns * steps * ISSUE; /* the count is of 64 along K */
	s.resident = CPTX_TMEM_COLUMNS / (rung->schedule ? CPTX_TMEM_COLUMNS : o->n);
	uint32_t by_smem = (uint32_t)(SMEM / (bytes * (rung->staged ? o->stages : 1)));
	s.resident = by_smem < s.resident ? by_smem : s.resident;
	double in_turn = LOAD_LATENCY + most(s.bytes, s.requests) + s.mma + COMMIT_LATENCY;
	s.clocks = most(most(s.mma, s.bytes), most(s.requests, s.issue));
	s.clocks = most(s.clocks, in_turn / (rung->staged ? o->stages : s.resident));
	s.out = (LOAD_LATENCY + COMMIT_LATENCY + (double)ROWS * o->n * 2 / L2_CLOCK) / (rung->staged ? 1 : s.resident);
	return s;
}

static double tflops_of(const ladder_rung *rung, const stage *s, double size)
{
	const ladder_opt *o = &rung->tile;
	double tiles = ceil(size / o->m) * ceil(size / o->n), at_once = rung->pair ? SMS / 2 : SMS;
	double rounds = ceil(tiles / at_once), stages = ceil(size / o->k);
	double clocks = rounds * (stages * s->clocks + (rung->schedule ? 0 : s->out)) + (rung->schedule ? s->out : 0);
	double us = most(clocks / (GHZ * 1e3), 3 * size * size * 2 / (MEMORY_GBS * 1e3)) + LAUNCH_US;

	return 2 * size * size * size / us * 1e-6;
}

static double tflops_at(const ladder_rung *rung, uint32_t insns, double rate, double size)
{
	stage s = stage_of(rung, insns, rate);

	return tflops_of(rung, &s, size);
}

/* The rung with the tile of the article. */
static ladder_rung theirs(const struct published *p)
{
	ladder_rung r = *p->rung;

	r.tile.n = p->n, r.tile.k = p->k, r.tile.stages = p->stages;
	return r;
}

/* The rate at which the model's best kernel of the article, v6, takes the time of cuBLAS: what tensor cores had under load.
 */
static double rate_of_cublas(double size)
{
	const struct published *p = &published[7];
	ladder_rung v6 = theirs(p);
	double rate = FLOP_CLOCK;

	while (tflops_at(&v6, p->insns, rate, size) > CUBLAS)
		rate -= 1;
	return rate;
}

/* Why the model is off by more than a quarter. */
static void print_why(const struct published *p, const ladder_rung *r, const stage *s, double off, double size)
{
	if (fabs(off) <= 0.25)
		return;
	if (s->clocks > s->mma) {
		printf("?");
		return;
	}
	double rate = rate_of_cublas(size);
	printf("products bound it, and tensor cores under load are slower than the data sheet's: at %.0f %% of it, which "
	       "cuBLAS's time "
	       "gives, %+.0f %%",
	       100 * rate / FLOP_CLOCK, 100 * (tflops_at(r, p->insns, rate, size) / p->tflops - 1));
}

static void print_rung(const struct published *p, double size)
{
	const ladder_opt *o = &p->rung->tile;

	printf("| %s | %ux%ux%u | %.0f | ", p->rung->name, o->m, o->n, o->k, tflops_at(p->rung, p->insns, FLOP_CLOCK, size));
	if (!p->n) {
		printf("| | | | | | | | | | |\n");
		return;
	}
	ladder_rung r = theirs(p);
	stage s = stage_of(&r, p->insns, FLOP_CLOCK);
	double model = tflops_of(&r, &s, size), off = model / p->tflops - 1;
	printf("%ux%ux%u, %u | %u | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | ", r.tile.m, r.tile.n, r.tile.k, r.tile.stages,
	       s.resident, s.mma, s.bytes, s.requests, s.issue, s.clocks, model);
	if (size == 4096) {
		printf("%.0f | %+.0f %% | ", p->tflops, 100 * off);
		print_why(p, &r, &s, off, size);
		printf(" |\n");
	} else {
		printf("| | |\n");
	}
}

int main(int argc, char **argv)
{
	double size = argc > 1 ? atof(argv[1]) : 4096;

	if (!(size >= 1 && size <= 1 << 20) || argc > 2) {
		fprintf(stderr, "usage: %s [SIZE], of a cube, from 1 to %d\n", argv[0], 1 << 20);
		return 2;
	}
	printf("TFLOP/s for %g cubed on a B200, by public figures: of our rungs, and of an article's with its tiles, with the "
	       "clocks "
	       "of a stage; measured: by that article, for 4096 cubed\n\n",
	       size);
	printf("| rung | our tile | model | its tile, stages | CTAs an SM | products | L2 | TMA | issue | stage | model | "
	       "measured | off | "
	       "why |\n");
	printf("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		print_rung(&published[i], size);
	printf("\ncuBLAS in that article: %.0f TFLOP/s\n", CUBLAS);
	return 0;
}
