/* SPDX-License-Identifier: MIT */
#include "hgemm_run.h"
#include "hgemm_parts.h"
#include "reference/number.h"
#include "show.h"

#include <cptx/emu.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* ---- launches ---- */

/* Makes a tensor map that fills a tile from a row-major matrix. */
static bool make_map(cptx_device *dev, const hgemm_case *c, const cptx_tile *tile, uint64_t at, uint64_t rows, uint64_t cols,
                     cptx_tensor_map *map, cptx_error *err)
{
	cptx_tensor_map_opt o;
	enum cptx_tensor_type type = c->o.type == CPTX_BF16 ? CPTX_TENSOR_BF16 : CPTX_TENSOR_F16;
	bool transposed = tile->elem.mn_major; /* B: its rows run along n, which is the rows of the tile */

	if (!cptx_tile_tensor_map(tile, type, at, transposed ? cols : rows, transposed ? rows : cols, 0, &o, err))
		return false;
	o.l2 = 128;
	return cptx_tensor_map_make(dev, &o, map, err);
}

static uint32_t ceil_div(uint64_t a, uint64_t b) { return (uint32_t)((a + b - 1) / b); }

/*
 * The grid: one CTA for each tile; of persistent CTAs the fewest that need as few waves as all that fit.  512 tiles take
 * four waves of 128 CTAs, as they do of 132, and with four CTAs fewer the H200 clocks higher.
 */
static uint32_t grid_of(const hgemm_case *c, const hgemm_plan *plan, const gemm_problem *p, uint32_t resident)
{
	uint32_t tiles = ceil_div(p->m, c->o.bm) * ceil_div(p->n, c->o.bn);

	return plan->persistent && resident && resident < tiles ? ceil_div(tiles, ceil_div(tiles, resident)) : tiles;
}

cptx_launch *hgemm_launch(const hgemm_case *c, cptx_device *dev, const cptx_program *program, const gemm_problem *p,
                          const gemm_matrices *at, gemm_report *r, cptx_error *err)
{
	const char *name = hgemm_name(c->rung);
	hgemm_tiles t = hgemm_tiles_of(&c->o);
	hgemm_plan plan;
	cptx_tensor_map a, b, d;
	cptx_arg args[] = { CPTX_ARG(at->a),          CPTX_ARG(at->b),          CPTX_ARG(at->d),
		                CPTX_ARG((uint32_t)p->m), CPTX_ARG((uint32_t)p->n), CPTX_ARG((uint32_t)p->k) };

	if (!hgemm_check(c->rung, &c->o, NULL, &plan, err))
		return NULL;
	if (plan.tma) {
		if (!make_map(dev, c, &t.a, at->a, p->m, p->k, &a, err) || !make_map(dev, c, &t.b, at->b, p->k, p->n, &b, err) ||
		    !make_map(dev, c, &t.c, at->d, p->m, p->n, &d, err))
			return NULL;
		args[0] = CPTX_ARG_BYTES(&a, sizeof a), args[1] = CPTX_ARG_BYTES(&b, sizeof b);
		if (c->rung == HGEMM_TMA_RW)
			args[2] = CPTX_ARG_BYTES(&d, sizeof d);
	}
	if (!cptx_program_resources(program, name, plan.threads, plan.smem, &r->resources, err))
		return NULL;
	r->grid = grid_of(c, &plan, p, r->resources.ctas_per_sm * cptx_device_get_info(dev)->sms);
	return cptx_launch_new(program, name, &(cptx_launch_opt){ .grid = { r->grid }, .args = args, .nargs = 6 }, err);
}

static cptx_launch *launch(const gemm_subject *s, cptx_device *dev, const cptx_program *program, const gemm_problem *p,
                           const gemm_matrices *at, gemm_report *r, cptx_error *err)
{
	return hgemm_launch(s->user, dev, program, p, at, r, err);
}

bool hgemm_run(cptx_device *dev, const hgemm_case *c, const gemm_problem *p, gemm_report *r, cptx_error *err)
{
	gemm_subject s = { .in = c->o.type, .out = c->o.type, .b_across = true, .launch = launch, .user = (void *)c };
	cptx_module *m = cptx_module_new(NULL);

	hgemm_build(m, c->rung, &c->o);
	bool ok = gemm_check_subject(dev, m, &s, p, r, err);
	cptx_module_destroy(m);
	return ok;
}

/* ---- the program ---- */

typedef struct request {
	hgemm_case c;
	gemm_problem p;
	const char *device, *target; /* device: NULL for the default; target: print PTX for it, and run nothing */
	uint32_t number[9];          /* the numbers of the options below */
	bool rolling, along_m;
} request;

enum { BK, TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, REGS, GROUP, CONSUMER };
static const struct option options[] = {
	{ "help", no_argument, NULL, 'h' },         { "size", required_argument, NULL, 's' },
	{ "type", required_argument, NULL, 't' },   { "ptx", required_argument, NULL, 'p' },
	{ "device", required_argument, NULL, 'd' }, { "bk", required_argument, NULL, 'k' },
	{ "tile", required_argument, NULL, 'b' },   { "warps", required_argument, NULL, 'w' },
	{ "stages", required_argument, NULL, 'n' }, { "regs", required_argument, NULL, 'r' },
	{ "group", required_argument, NULL, 'g' },  { "consumer-regs", required_argument, NULL, 'C' },
	{ "rolling", no_argument, NULL, 'R' },      { "along-m", no_argument, NULL, 'm' },
	{ "seed", required_argument, NULL, 'S' },   { 0 },
};

static const char help[] =
	"  --size MxNxK      of the problem; default 4096x4096x4096 on a GPU, 256x256x128 on an emulator\n"
	"  --type bf16|f16   of A, B and C\n"
	"  --ptx TARGET      print the PTX for a target and run nothing\n"
	"  --device NAME     cuda:0, emu:sm_120a ...; default: the environment's CPTX_DEVICE, or a GPU\n"
	"  --tile MxN --bk K --warps MxN --stages N --regs N --group N --consumer-regs N\n"
	"  --rolling --along-m      see hgemm.h\n"
	"  --seed N          of the random numbers\n";

static bool numbers(const char *text, uint32_t *a, uint32_t *b)
{
	uint64_t d[2];

	if (!number_dims(text, d, b ? 2 : 1, UINT32_MAX))
		return false;
	*a = (uint32_t)d[0];
	if (b)
		*b = (uint32_t)d[1];
	return true;
}

static bool read_option(request *q, int option, const char *text)
{
	uint64_t d[3];

	switch (option) {
	case 's':
		if (!number_dims(text, d, 3, INT32_MAX))
			return false;
		q->p.m = d[0], q->p.n = d[1], q->p.k = d[2];
		return true;
	case 't': return (q->c.o.type = cptx_type_find(text)) != CPTX_TYPE_NONE;
	case 'p': q->target = text; return true;
	case 'd': q->device = text; return true;
	case 'b': return numbers(text, &q->number[TILE_M], &q->number[TILE_N]);
	case 'w': return numbers(text, &q->number[WARPS_M], &q->number[WARPS_N]);
	case 'k': return numbers(text, &q->number[BK], NULL);
	case 'n': return numbers(text, &q->number[STAGES], NULL);
	case 'r': return numbers(text, &q->number[REGS], NULL);
	case 'g': return numbers(text, &q->number[GROUP], NULL);
	case 'C': return numbers(text, &q->number[CONSUMER], NULL);
	case 'R': return q->rolling = true;
	case 'm': return q->along_m = true;
	case 'S': return number_dims(text, &q->p.seed, 1, UINT64_MAX);
	default: return false;
	}
}

/* Sets the target's defaults, then the options that were given. */
static bool choose(request *q, const char *target, cptx_error *err)
{
	const cptx_target *t = cptx_target_find(target);
	const uint32_t *v = q->number;
	hgemm_opt *o = &q->c.o;

	if (!t) {
		err->code = CPTX_E_TARGET;
		snprintf(err->text, sizeof err->text, "there is no target \"%s\"", target);
		return false;
	}
	*o = hgemm_default(q->c.rung, v[BK] ? v[BK] : 64, o->type ? o->type : CPTX_BF16, t);
	o->bm = v[TILE_M] ? v[TILE_M] : o->bm, o->bn = v[TILE_N] ? v[TILE_N] : o->bn;
	o->warps_m = v[WARPS_M] ? v[WARPS_M] : o->warps_m, o->warps_n = v[WARPS_N] ? v[WARPS_N] : o->warps_n;
	o->stages = v[STAGES] ? v[STAGES] : o->stages;
	o->group = v[GROUP] ? v[GROUP] : o->group;
	o->most_regs = v[REGS] ? v[REGS] : o->most_regs;
	o->consumer_regs = v[CONSUMER] ? v[CONSUMER] : o->consumer_regs;
	o->rolling |= q->rolling, o->along_m |= q->along_m;
	return hgemm_check(q->c.rung, o, t, NULL, err);
}

static int print(request *q)
{
	cptx_error err = { 0 };

	if (!choose(q, q->target, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	cptx_module *m = cptx_module_new(NULL);
	hgemm_build(m, q->c.rung, &q->c.o);
	return show(m, q->target);
}

static bool run(request *q, cptx_device *dev, cptx_error *err)
{
	gemm_report r;
	cptx_emu_counters count;
	bool emulated = cptx_emu_get_counters(dev, &count);

	if (!q->p.m)
		q->p.m = q->p.n = emulated ? 256 : 4096, q->p.k = emulated ? 128 : 4096;
	q->p.bursts = emulated ? 0 : 7;
	if (!choose(q, cptx_device_get_info(dev)->target, err) || !hgemm_run(dev, &q->c, &q->p, &r, err))
		return false;
	if (r.wrong) {
		err->code = CPTX_E_WRONG;
		gemm_report_text(&r, err->text, sizeof err->text);
		return false;
	}
	printf("%s %llu x %llu x %llu %s: all elements right", hgemm_name(q->c.rung), (unsigned long long)q->p.m,
	       (unsigned long long)q->p.n, (unsigned long long)q->p.k, cptx_type_name(q->c.o.type));
	if (cptx_emu_get_counters(dev, &count))
		printf(", %llu bank conflicts", (unsigned long long)count.bank_conflicts);
	if (r.ms > 0)
		printf(", %.1f us, %.1f TFLOP/s", r.ms * 1e3, 1e-9 * r.flop / r.ms);
	putchar('\n');
	return true;
}

int hgemm_main(enum hgemm_rung rung, int argc, char **argv)
{
	request q = { .c.rung = rung, .p.seed = 1, .device = getenv("CPTX_DEVICE") };
	cptx_error err = { 0 };

	for (int option, i; (option = getopt_long(argc, argv, "", options, &i)) != -1;) {
		if (option == 'h')
			return printf("usage: %s [OPTION]...\n%s", hgemm_name(rung), help), 0;
		if (option == '?') /* getopt_long has printed which option is wrong */
			return fprintf(stderr, "%s: see --help\n", hgemm_name(rung)), 2;
		if (!read_option(&q, option, optarg))
			return fprintf(stderr, "%s: --%s %s is not possible; see --help\n", hgemm_name(rung), options[i].name, optarg),
			       2;
	}
	if (optind < argc)
		return fprintf(stderr, "%s: what is '%s'? See --help\n", hgemm_name(rung), argv[optind]), 2;
	if (q.p.n % 8 || q.p.k % 8)
		return fprintf(stderr, "%s: N and K must be multiples of 8, as rows are read and written by 16 bytes\n",
		               hgemm_name(rung)),
		       1;
	if (q.target)
		return print(&q);
	cptx_device *dev = cptx_device_open(q.device, &err);
	if (!dev && !q.device && (err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE)) {
		fprintf(stderr, "%s\nNo GPU: the emulator runs it.\n", err.text);
		err = (cptx_error){ 0 };
		dev = cptx_device_open("emu:sm_120a", &err);
	}
	bool ok = dev && run(&q, dev, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	cptx_device_close(dev);
	return !ok;
}
