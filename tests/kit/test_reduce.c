/* SPDX-License-Identifier: MIT */
/* cptx/reduce.h: each operation over lanes, CTAs of any number of warps, clusters and the grid, again and again. */
#include "on_emu.h"
#include "../whole.h"

#include <cptx/cptx.h>
#include <cptx/reduce.h>

#include <math.h>

enum { TURNS = 5, MOST_CTAS = 6, MOST_THREADS = 1024, MOST_WORDS = 6 };
enum over { OVER_LANES, OVER_CTA, OVER_CLUSTER, OVER_GRID, SCAN_WARP, SCAN_CTA };

typedef struct reduce_case {
	enum over over;
	enum cptx_reduce_op op;
	enum cptx_type type;
	uint32_t threads, ctas, lanes, values; /* of a cluster or the grid; values 0: 1 */
	bool exclusive, by_name;               /* by_name: with .thread and a named barrier */
} reduce_case;

typedef union word {
	float f;
	int32_t s;
	uint32_t u;
} word;

static word in[TURNS][MOST_CTAS * MOST_THREADS * MOST_WORDS], out[TURNS][MOST_CTAS * MOST_THREADS * MOST_WORDS];
static word totals[TURNS][MOST_CTAS * MOST_THREADS * MOST_WORDS];
static uint32_t workspace[4096];

static uint32_t words_of(const reduce_case *c) { return cptx_reduce_parts(c->op) * (c->values ? c->values : 1); }

static cptx_val build_turn(cptx_kernel *k, const reduce_case *c, const cptx_reduce *r, cptx_val v, cptx_val space)
{
	switch (c->over) {
	case OVER_LANES: cptx_reduce_lanes(k, v, c->op, c->lanes); break;
	case OVER_CTA: cptx_reduce_cta(k, r, v, c->op); break;
	case OVER_CLUSTER: cptx_reduce_cluster(k, r, v, c->op); break;
	case OVER_GRID: return cptx_reduce_grid(k, r, v, c->op, space);
	case SCAN_WARP: cptx_scan_warp(k, v, c->op, c->exclusive); break;
	case SCAN_CTA: return cptx_scan_cta(k, r, v, c->op, c->exclusive);
	}
	return CPTX_NONE_;
}

/* Turn after turn, in a loop of the kernel; a grid has but one. */
static cptx_module *build(const reduce_case *c)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k =
		cptx_kernel_begin(m, "k", .block = { c->threads }, .cluster = { c->over == OVER_CLUSTER ? c->ctas : 0 });
	cptx_val from = cptx_param(k, CPTX_PTR, "in"), to = cptx_param(k, CPTX_PTR, "out"), all = cptx_param(k, CPTX_PTR, "all");
	cptx_val space = cptx_param(k, CPTX_PTR, "space"), turns = cptx_param(k, CPTX_U32, "turns"), tid = cptx_tid_x(k);
	cptx_val turn = cptx_var(k, CPTX_U32, 0), me = cptx_mad(k, cptx_ctaid_x(k), c->threads, tid, .mode = CPTX_LO);
	const uint32_t words = words_of(c);
	cptx_val at = cptx_var(k, CPTX_U64, cptx_mul_wide(k, me, words * 4)), v = cptx_regs(k, c->type, words);
	cptx_reduce r;

	cptx_reduce_new(k, &r, .threads = c->threads, .thread = c->by_name ? tid : CPTX_NONE_, .barrier = c->by_name ? 3 : 0,
	                .cluster = c->over == OVER_CLUSTER ? c->ctas : 0, .words = words > 4 ? words : 0);
	CPTX_FOR(k, turn, turns, 1) {
		cptx_val src = cptx_add(k, from, at), dst = cptx_add(k, to, at), sums = cptx_add(k, all, at);
		for (uint32_t i = 0; i < words; i++)
			cptx_ld(k, cptx_offset(src, i * 4), .space = CPTX_GLOBAL, .into = cptx_elem(v, i));
		cptx_val said = build_turn(k, c, &r, v, space);
		for (uint32_t i = 0; i < words; i++) {
			cptx_st(k, cptx_offset(dst, i * 4), cptx_elem(v, i), .space = CPTX_GLOBAL);
			if (c->over == SCAN_CTA)
				cptx_st(k, cptx_offset(sums, i * 4), cptx_elem(said, i), .space = CPTX_GLOBAL);
			else if (c->over == OVER_GRID)
				cptx_st(k, cptx_offset(sums, i * 4), cptx_selp(k, 1, 0, said, .type = CPTX_U32), .space = CPTX_GLOBAL);
		}
		cptx_add(k, at, (int64_t)sizeof in[0], .into = at);
	}
	if (c->over == OVER_CLUSTER) {
		cptx_barrier_cluster_arrive(k, .aligned = true);
		cptx_barrier_cluster_wait(k, .aligned = true);
	}
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	return m;
}

/* ---- on the host ---- */

/* A value as numbers. */
typedef struct number {
	double part[3];
} number;

static double as_number(word w, enum cptx_type type)
{
	return type == CPTX_F32 ? (double)w.f : type == CPTX_S32 ? (double)w.s : (double)w.u;
}

static number number_at(const reduce_case *c, const word *w)
{
	number n = { { 0 } };

	for (uint32_t p = 0; p < cptx_reduce_parts(c->op); p++)
		n.part[p] = p == 1 && c->op <= CPTX_REDUCE_ARG_MIN ? w[p].u : as_number(w[p], c->type);
	return n;
}

static number together(enum cptx_reduce_op op, number a, number b)
{
	const bool first = op == CPTX_REDUCE_ARG_MAX ? a.part[0] > b.part[0] : a.part[0] < b.part[0];
	double top, n;

	switch (op) {
	case CPTX_REDUCE_SUM: return (number){ { a.part[0] + b.part[0] } };
	case CPTX_REDUCE_MAX: return (number){ { fmax(a.part[0], b.part[0]) } };
	case CPTX_REDUCE_MIN: return (number){ { fmin(a.part[0], b.part[0]) } };
	case CPTX_REDUCE_ARG_MAX:
	case CPTX_REDUCE_ARG_MIN: return first || (a.part[0] == b.part[0] && a.part[1] < b.part[1]) ? a : b;
	case CPTX_REDUCE_SOFTMAX:
		top = fmax(a.part[0], b.part[0]);
		return (number){ { top, a.part[1] * exp(a.part[0] - top) + b.part[1] * exp(b.part[0] - top) } };
	case CPTX_REDUCE_SOFTMAX2:
		top = fmax(a.part[0], b.part[0]);
		return (number){ { top, a.part[1] * exp2(a.part[0] - top) + b.part[1] * exp2(b.part[0] - top) } };
	case CPTX_REDUCE_WELFORD:
		n = a.part[2] + b.part[2], top = b.part[0] - a.part[0];
		return n == 0 ? a
		              : (number){ { (a.part[0] * a.part[2] + b.part[0] * b.part[2]) / n,
			                        a.part[1] + b.part[1] + top * top * a.part[2] * b.part[2] / n, n } };
	}
	return a;
}

/* Sums of small integers, maxima and indices are exact; e^x, and Welford's, are not. */
static void same(const reduce_case *c, const word *got, number want, const char *what, uint32_t i)
{
	number n = number_at(c, got);

	for (uint32_t p = 0; p < cptx_reduce_parts(c->op); p++) {
		const double slack = c->op >= CPTX_REDUCE_SOFTMAX ? 2e-6 * (1 + fabs(want.part[p])) : 0;
		SURE(fabs(n.part[p] - want.part[p]) <= slack,
		     "over %d, op %d, %u threads, %u CTAs: %s %u, part %u is %.9g, not %.9g", (int)c->over, (int)c->op, c->threads,
		     c->ctas, what, i, p, n.part[p], want.part[p]);
	}
}

static word random_word(const reduce_case *c, uint32_t part, uint32_t index, uint32_t *s)
{
	*s = *s * 1664525u + 1013904223u;
	const int32_t r = (int32_t)(*s >> 16) % 201 - 100;
	const uint32_t size = *s >> 20 & 255;

	if (part == 1 && c->op <= CPTX_REDUCE_ARG_MIN)
		return (word){ .u = index * 7919u % 65536 }; /* not in the order of lanes */
	if (c->op == CPTX_REDUCE_WELFORD)
		return (word){ .f = index % 5 == 3 ? 0
			                : part == 0    ? 10 + (float)r / 64
			                : part == 1    ? (float)size / 128
			                               : (float)(1 + size % 4) };
	if (c->op >= CPTX_REDUCE_SOFTMAX)
		return (word){ .f = part ? (float)(1 + size) / 16 : (float)r / 8 };
	return c->type == CPTX_F32 ? (word){ .f = (float)r } : c->type == CPTX_S32 ? (word){ .s = r } : (word){ .u = size };
}

static void compare(const reduce_case *c, uint32_t turn)
{
	const uint32_t parts = cptx_reduce_parts(c->op), words = words_of(c), all = c->threads * c->ctas;
	const uint32_t each = c->over == OVER_LANES                        ? c->lanes
	                      : c->over == SCAN_WARP                       ? 32
	                      : c->over == OVER_CTA || c->over == SCAN_CTA ? c->threads
	                                                                   : all;
	uint32_t lasts = 0;

	for (uint32_t first = 0; first < all; first += each)
		for (uint32_t w = 0; w < words; w += parts) {
			number sum = number_at(c, &in[turn][first * words + w]);
			for (uint32_t i = 1; i < each; i++)
				sum = together(c->op, sum, number_at(c, &in[turn][(first + i) * words + w]));
			number upto = { { 0 } };
			for (uint32_t i = first; i < first + each; i++) {
				const word *got = &out[turn][i * words + w], *said = &totals[turn][i * words + w];
				const number own = number_at(c, &in[turn][i * words + w]);
				if (c->over >= SCAN_WARP) {
					const bool has =
						!c->exclusive || i > first; /* the first of an exclusive scan has what changes nothing */
					number incl = i == first ? own : together(c->op, upto, own);
					if (has)
						same(c, got, c->exclusive ? upto : incl, "scan of thread", i);
					else
						SURE(c->op != CPTX_REDUCE_SUM || got->u == 0, "thread 0 has %u", got->u);
					if (c->over == SCAN_CTA)
						same(c, said, sum, "total of thread", i);
					upto = incl;
				} else if (c->over != OVER_GRID || said->u) {
					same(c, got, sum, "thread", i);
					SURE(
						!memcmp(got, &out[turn][(c->over == OVER_GRID ? i - i % c->threads : first) * words + w], parts * 4),
						"thread %u has other bits", i);
				}
				lasts += c->over == OVER_GRID && said->u;
			}
		}
	SURE(c->over != OVER_GRID || lasts == c->threads * words / parts, "%u threads are of the last CTA", lasts);
}

static void try_case(const reduce_case *c, const char *target)
{
	const uint32_t words = words_of(c), turns = c->over == OVER_GRID ? 1 : TURNS;
	uint32_t s = 12345;

	for (uint32_t turn = 0; turn < TURNS; turn++)
		for (uint32_t i = 0; i < c->threads * c->ctas * words; i++)
			in[turn][i] = random_word(c, i % words % cptx_reduce_parts(c->op), i / words, &s);
	static uint64_t cases;
	const uint64_t at = 3 * cases++, first = whole() ? 0 : at / 3 % 3; /* a case takes one seed, the next case the next */
	const uint64_t seeds = whole() ? 3 : 1;

	for (uint64_t seed = first; seed < first + seeds; seed++) {
		if (!is_my_part(at + seed))
			continue;
		cptx_module *m = build(c);
		emu_run r = { .target = target,
			          .seed = seed,
			          .schedule = (enum cptx_emu_schedule)seed,
			          .grid = c->ctas,
			          .launches = c->over == OVER_GRID ? 2 : 1,
			          .buffer = { { .host = in, .bytes = sizeof in },
			                      { .host = out, .bytes = sizeof out },
			                      { .host = totals, .bytes = sizeof totals },
			                      { .host = workspace, .bytes = sizeof workspace } } };
		memset(out, 0xff, sizeof out);
		memset(totals, 0, sizeof totals);
		memset(workspace, 0, sizeof workspace);
		emu_launch(m, &r, turns);
		for (uint32_t turn = 0; turn < turns; turn++)
			compare(c, turn);
		SURE(workspace[0] == 0, "the workspace begins with %u behind the launch", workspace[0]);
		cptx_module_destroy(m);
	}
}

/* Every operation with every type that it has. */
static void try_ops(reduce_case c, const char *target)
{
	static const enum cptx_type types[] = { CPTX_F32, CPTX_S32, CPTX_U32 };

	for (int op = 0; op <= CPTX_REDUCE_WELFORD; op++)
		for (unsigned t = 0; t < (op >= CPTX_REDUCE_SOFTMAX ? 1 : 3); t++) {
			if (c.over >= SCAN_WARP && op > CPTX_REDUCE_MIN)
				continue;
			c.op = (enum cptx_reduce_op)op, c.type = types[t];
			try_case(&c, target);
		}
}

static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };

START_TEST(lanes)
{
	for (uint32_t n = 1; n <= 32; n *= 2)
		try_ops((reduce_case){ .over = OVER_LANES, .threads = 64, .ctas = 1, .lanes = n }, targets[n % 4]);
	try_ops((reduce_case){ .over = OVER_LANES, .threads = 32, .ctas = 1, .lanes = 32, .values = 2 }, "sm_80");
}
END_TEST

START_TEST(ctas)
{
	static const uint32_t threads[] = { 32, 64, 96, 160, 256 };

	for (unsigned i = 0; i < sizeof threads / sizeof *threads; i++)
		try_ops((reduce_case){ .over = OVER_CTA, .threads = threads[i], .ctas = 2, .by_name = i % 2 }, targets[i % 4]);
	try_ops((reduce_case){ .over = OVER_CTA, .threads = 96, .ctas = 1, .values = 2 }, "sm_90a");
	try_case(&(reduce_case){ .over = OVER_CTA, .type = CPTX_F32, .threads = 992, .ctas = 1 }, "sm_80");
	try_case(&(reduce_case){ .over = OVER_CTA, .type = CPTX_S32, .threads = 1024, .ctas = 1 }, "sm_90a");
}
END_TEST

START_TEST(clusters)
{
	static const uint32_t sizes[] = { 2, 3, 4 };

	for (unsigned i = 0; i < 3; i++) {
		try_ops((reduce_case){ .over = OVER_CLUSTER, .threads = 96, .ctas = sizes[i] }, targets[1 + i]);
		try_case(&(reduce_case){ .over = OVER_CLUSTER,
		                         .op = CPTX_REDUCE_WELFORD,
		                         .type = CPTX_F32,
		                         .threads = 32,
		                         .ctas = sizes[i],
		                         .values = 2 },
		         targets[1 + i]);
	}
}
END_TEST

START_TEST(grid)
{
	for (unsigned t = 0; t < 4; t++)
		try_ops((reduce_case){ .over = OVER_GRID, .threads = t % 2 ? 32 : 96, .ctas = t + 1 + t % 3 }, targets[t]);
}
END_TEST

START_TEST(scans)
{
	for (unsigned t = 0; t < 4; t++)
		for (unsigned exclusive = 0; exclusive < 2; exclusive++) {
			try_ops((reduce_case){ .over = SCAN_WARP, .threads = 64, .ctas = 1, .exclusive = exclusive }, targets[t]);
			try_ops(
				(reduce_case){
					.over = SCAN_CTA, .threads = 32 + 64 * t, .ctas = 2, .exclusive = exclusive, .values = 1 + t % 2 },
				targets[t]);
		}
}
END_TEST

START_TEST(errors)
{
	cptx_module *m;
	cptx_kernel *k;
	cptx_reduce r;

	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 100);
	EMU_FAILS(m, "a reduction over 100 threads; say .threads, a multiple of 32");
	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 64, .cluster = 17);
	EMU_FAILS(m, "a cluster of 17 CTAs");
	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 64, .words = 17);
	EMU_FAILS(m, "values of 17 words");
	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 64, .barrier = 16);
	EMU_FAILS(m, "barrier 16");
	k = emu_begin(&m, 0);
	cptx_reduce_lanes(k, cptx_regs(k, CPTX_F32, 1), CPTX_REDUCE_SUM, 12);
	EMU_FAILS(m, "a reduction over 12 lanes");
	k = emu_begin(&m, 0);
	cptx_reduce_warp(k, cptx_regs(k, CPTX_F32, 3), CPTX_REDUCE_SOFTMAX);
	EMU_FAILS(m, "a value of 3 registers; this reduction is of 2 each");
	k = emu_begin(&m, 0);
	cptx_reduce_warp(k, cptx_regs(k, CPTX_F32, 1), (enum cptx_reduce_op)77);
	EMU_FAILS(m, "there is no reduction 77");
	k = emu_begin(&m, 0);
	cptx_reduce_warp(k, cptx_regs(k, CPTX_S32, 3), CPTX_REDUCE_WELFORD);
	EMU_FAILS(m, "a reduction of .s32; this one is of .f32");
	k = emu_begin(&m, 0);
	cptx_reduce_warp(k, cptx_regs(k, CPTX_F64, 1), CPTX_REDUCE_SUM);
	EMU_FAILS(m, "a reduction of .f64; this one is of .f32, .s32 or .u32");
	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 64, .words = 1);
	cptx_reduce_cta(k, &r, cptx_regs(k, CPTX_F32, 2), CPTX_REDUCE_SUM);
	EMU_FAILS(m, "a value of 2 registers; the reduction has room for 1");
	k = emu_begin(&m, 0);
	cptx_reduce_new(k, &r, .threads = 64);
	cptx_reduce_cluster(k, &r, cptx_regs(k, CPTX_F32, 1), CPTX_REDUCE_SUM);
	EMU_FAILS(m, "made without .cluster");
	k = emu_begin(&m, 0);
	cptx_scan_warp(k, cptx_regs(k, CPTX_F32, 2), CPTX_REDUCE_SOFTMAX, false);
	EMU_FAILS(m, "a scan is of CPTX_REDUCE_SUM, MAX or MIN");
	k = emu_begin(&m, 0);
	memset(&r, 0, sizeof r);
	cptx_reduce_cta(k, &r, cptx_regs(k, CPTX_F32, 1), CPTX_REDUCE_SUM);
	EMU_FAILS(m, "that cptx_reduce_new did not make");
	/* what a target lacks is told with the user's line */
	cptx_error err = { 0 };
	reduce_case c = { .over = OVER_CLUSTER, .type = CPTX_F32, .threads = 64, .ctas = 2 };
	m = build(&c);
	ck_assert_ptr_null(cptx_emit(m, "sm_80", NULL, &err));
	ck_assert_msg(strstr(err.text, "not available on sm_80") && strstr(err.text, "test_reduce.c:"), "%s", err.text);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(assembles)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge reductions");
		return;
	}
	for (int over = 0; over <= SCAN_CTA; over++)
		for (unsigned t = over == OVER_CLUSTER ? 1 : 0; t < 4; t += 3 - (over == OVER_CLUSTER))
			for (int op = 0; op <= (over < SCAN_WARP ? CPTX_REDUCE_WELFORD : CPTX_REDUCE_MIN); op++) {
				reduce_case c = { .over = (enum over)over,
					              .op = (enum cptx_reduce_op)op,
					              .type = CPTX_F32,
					              .threads = 96,
					              .ctas = 2,
					              .lanes = 32 };
				cptx_module *m = build(&c);
				free(emu_assembles(m, targets[t]));
				cptx_module_destroy(m);
			}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "reduce");

	tcase_add_test(c, lanes);
	tcase_add_test(c, ctas);
	tcase_add_test(c, clusters);
	tcase_add_test(c, grid);
	tcase_add_test(c, scans);
	tcase_add_test(c, errors);
	tcase_add_test(c, assembles);
	return test_main("kit reduce", s);
}
