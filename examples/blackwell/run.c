/* SPDX-License-Identifier: MIT */
/* The program of a rung: options, checks, the launch, every element against a reference in f64. */
#include "reference/number.h"
#include "ladder.h"
#include "show.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RESERVE = 2048 /* bytes of shared memory for mbarriers and alignment */,
	MOST_STAGES = 32,
	MOST_SIDE = 1 << 30,
	STAMPS = 4096
};

/* ---- rules ---- */

CPTX_PRINTF_(2, 3)
static bool wrong(cptx_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	err->code = CPTX_E_ARG;
	vsnprintf(err->text, sizeof err->text, format, ap);
	va_end(ap);
	return false;
}

static uint32_t span_of(const ladder_rung *rung) { return cptx_swizzle_get(rung->swizzle)->span / 2u; }

static bool check_types(const ladder_opt *o, cptx_error *err)
{
	if (o->in != CPTX_BF16 && o->in != CPTX_F16)
		return wrong(err, "A and B of .%s; they are .bf16 or .f16", cptx_type_name(o->in));
	if (o->out != o->in && o->out != CPTX_F32)
		return wrong(err, "D of .%s; it is .%s, as A and B are, or .f32", cptx_type_name(o->out), cptx_type_name(o->in));
	return true;
}

static uint32_t shared_bytes(const ladder_rung *rung, const ladder_opt *o)
{
	const cptx_operand_opt a = ladder_operand(rung, o, false), b = ladder_operand(rung, o, true);
	const cptx_tile d = ladder_d_tile(o);
	const uint32_t of_d = rung->store_map ? EPILOGUE_WARPS * STORE_STAGES * cptx_tile_bytes(&d) : 0;

	return a.stages * (cptx_tile_bytes(&a.tile) + cptx_tile_bytes(&b.tile)) + of_d;
}

static bool check_tile(const ladder_rung *rung, const ladder_opt *o, cptx_error *err)
{
	uint32_t m = rung->pair ? 2 * ROWS : ROWS, step = rung->pair ? 32 : 16, span = span_of(rung);
	uint32_t room = cptx_target_find("sm_100a")->smem_per_cta - RESERVE;

	span = span < 16 ? 16 : span; /* of one product */
	if (o->m != m)
		return wrong(err, "%s: a tile of %u rows; it has %u, all lanes of tensor memory%s", rung->name, o->m, m,
		             rung->pair ? " in both CTAs" : "");
	if (o->n < step || o->n > 256 || o->n % step)
		return wrong(err, "%s: a tile of %u columns; it has %u to 256, a multiple of %u", rung->name, o->n, step, step);
	if (!o->k || o->k % span || o->k > 512)
		return wrong(err, "%s: a tile of %u along K; it is a multiple of %u, up to 512%s", rung->name, o->k, span,
		             rung->swizzle ? " (spans of 128 bytes)" : "");
	if (o->timeline && rung->schedule == CPTX_TILES_GRID)
		return wrong(err, "%s: a timeline; v6 and v7 have one", rung->name);
	if (rung->staged && (o->stages < 2 || o->stages > MOST_STAGES))
		return wrong(err, "%s: %u stages; there are 2 to %d", rung->name, o->stages, MOST_STAGES);
	if (rung->store_map && o->n % STORE_COLS)
		return wrong(err, "%s: a tile of %u columns; it is a multiple of %u, which a warp stores at once", rung->name, o->n,
		             STORE_COLS);
	if (shared_bytes(rung, o) > room)
		return wrong(err, "%s: %u bytes of shared memory; a CTA has %u: take fewer stages or a smaller tile", rung->name,
		             shared_bytes(rung, o), room);
	return true;
}

bool ladder_check(const ladder_rung *rung, const ladder_opt *o, uint64_t m, uint64_t n, uint64_t k, cptx_error *err)
{
	uint32_t size = cptx_type_bits(o->out) / 8, each = size ? 16 / size : 1;

	if (!check_types(o, err) || !check_tile(rung, o, err))
		return false;
	if (!m || !n || !k || m > MOST_SIDE || n > MOST_SIDE || k > MOST_SIDE)
		return wrong(err, "M %llu, N %llu, K %llu; each is from 1 to %d", (unsigned long long)m, (unsigned long long)n,
		             (unsigned long long)k, MOST_SIDE);
	if (k % 8)
		return wrong(err, "K %llu; it is a multiple of 8: tensor maps take rows of A and B of whole 16 bytes",
		             (unsigned long long)k);
	if (n % each)
		return wrong(err, "N %llu; with D of .%s it is a multiple of %u: rows of D are written by 16 bytes",
		             (unsigned long long)n, cptx_type_name(o->out), each);
	if (rung->whole && k % span_of(rung))
		return wrong(err,
		             "%s: K %llu; it is a multiple of %u, for the 3-D tensor map cuts it into spans of that; v%.1sa can",
		             rung->name, (unsigned long long)k, span_of(rung), rung->name + 1);
	return true;
}

/* ---- the launch ---- */

typedef struct launching {
	const ladder_rung *rung;
	const ladder_opt *o;
	ladder_args args;
	cptx_timeline_layout line; /* from the launch on */
} launching;

static bool make_maps(launching *l, const gemm_problem *p, const gemm_matrices *at, cptx_error *err)
{
	const cptx_operand_opt a = ladder_operand(l->rung, l->o, false), b = ladder_operand(l->rung, l->o, true);
	const cptx_operand_opt d = { .type = l->o->out, .tile = ladder_d_tile(l->o) };
	const cptx_operand_matrix of_a = { .address = at->a, .rows = p->m, .cols = p->k };
	const cptx_operand_matrix of_b = { .address = at->b, .rows = p->n, .cols = p->k };
	const cptx_operand_matrix of_d = { .address = at->d, .rows = p->m, .cols = p->n };

	return cptx_operand_tensor_map(&a, &of_a, &l->args.A, err) && cptx_operand_tensor_map(&b, &of_b, &l->args.B, err) &&
	       (!l->rung->store_map || cptx_operand_tensor_map(&d, &of_d, &l->args.D_map, err));
}

static bool make_timeline(launching *l, cptx_device *dev, uint32_t grid, cptx_error *err)
{
	if (!l->o->timeline)
		return true;
	l->line = cptx_gemm_timeline(grid, ladder_threads(l->rung), l->o->timeline);
	l->args.timeline = cptx_mem_alloc(dev, cptx_timeline_bytes(&l->line), err);
	return l->args.timeline && cptx_mem_fill8(dev, l->args.timeline, 0, cptx_timeline_bytes(&l->line), err);
}

static uint32_t ceil_div(uint64_t n, uint32_t by) { return (uint32_t)((n + by - 1) / by); }

static cptx_launch *launch(const gemm_subject *s, cptx_device *dev, const cptx_program *program, const gemm_problem *p,
                           const gemm_matrices *at, gemm_report *r, cptx_error *err)
{
	launching *l = s->user;
	const uint32_t ctas = l->rung->pair ? 2 : 1, most = cptx_device_get_info(dev)->sms / ctas;
	uint32_t tiles = ceil_div(p->m, l->o->m) * ceil_div(p->n, l->o->n);
	cptx_params_part part[LADDER_PARTS];

	if (l->rung->schedule == CPTX_TILES_PERSISTENT && tiles > most)
		tiles = most;
	r->grid = tiles * ctas;
	l->args.D = at->d, l->args.M = (uint32_t)p->m, l->args.N = (uint32_t)p->n, l->args.K = (uint32_t)p->k;
	if (!make_maps(l, p, at, err) || !make_timeline(l, dev, r->grid, err))
		return NULL;
	return cptx_params_launch(program, dev, NULL, part, ladder_params(l->rung, l->o, &l->args, part),
	                          &(cptx_launch_opt){ .grid = { r->grid } }, err);
}

static bool lacks_tcgen05(const cptx_target *t, cptx_error *err)
{
	if (t && cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, t))
		return false;
	wrong(err, "%s has no tcgen05 and no tensor memory; sm_100a and sm_103a have. Its tensor cores are used by %s",
	      t ? t->name : "?",
	      t && t->number == 90 ? "wgmma, with accumulators in registers"
	                           : "mma.sync, with accumulators in registers: see cptx gemm --arch");
	return true;
}

bool ladder_run_module(cptx_device *dev, cptx_module *m, const ladder_rung *rung, const ladder_opt *o, const gemm_problem *p,
                       gemm_report *r, cptx_error *err)
{
	launching l = { .rung = rung, .o = o };
	gemm_subject s = { .in = o->in, .out = o->out, .launch = launch, .user = &l };

	*r = (gemm_report){ 0 };
	bool ok = ladder_check(rung, o, p->m, p->n, p->k, err) &&
	          !lacks_tcgen05(cptx_target_find(cptx_device_get_info(dev)->target), err) &&
	          gemm_check_subject(dev, m, &s, p, r, err) &&
	          (!o->timeline || gemm_read_timeline(dev, &l.line, l.args.timeline, &r->timeline, err));
	cptx_mem_free(dev, l.args.timeline);
	return ok;
}

bool ladder_run(cptx_device *dev, const ladder_rung *rung, const ladder_opt *o, const gemm_problem *p, gemm_report *r,
                cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	bool ok = ladder_check(rung, o, p->m, p->n, p->k, err);

	if (ok)
		ladder_build(m, rung, o);
	ok = ok && ladder_run_module(dev, m, rung, o, p, r, err);
	cptx_module_destroy(m);
	return ok;
}

/* ---- the program ---- */

typedef struct request {
	ladder_opt o;
	gemm_problem p;
	const char *target, *timeline;
	bool ptx;
} request;

static const struct option long_options[] = {
	{ "type", required_argument, NULL, 'i' },   { "out", required_argument, NULL, 'o' },
	{ "tile", required_argument, NULL, 't' },   { "stages", required_argument, NULL, 's' },
	{ "target", required_argument, NULL, 'a' }, { "ptx", no_argument, NULL, 'p' },
	{ "seed", required_argument, NULL, 'r' },   { "timeline", required_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },         { 0 },
};

static int usage(const ladder_rung *rung, FILE *f)
{
	const ladder_opt *o = &rung->tile;

	fprintf(f,
	        "tcgen05 %s: %s\n"
	        "usage: tcgen05_%s [options] [M N K]\n"
	        "  --type bf16|f16        of A and B (bf16)\n"
	        "  --out TYPE             of D: that of A and B, or f32\n"
	        "  --tile MxNxK           of a CTA%s (%ux%ux%u)\n"
	        "%s"
	        "  --target NAME          sm_100a or sm_103a: emulate it, or print for it (sm_100a)\n"
	        "  --ptx                  print PTX, run nothing\n"
	        "  --timeline FILE        v6, v7: write when each warp did what, for chrome://tracing\n"
	        "  --seed N               of the data, and of the emulator's schedule\n"
	        "Runs on the GPU if it has tcgen05, else on the emulator; CPTX_DEVICE chooses.\n",
	        rung->name, rung->about, rung->name, rung->pair ? " pair" : "", o->m, o->n, o->k,
	        rung->staged ? "  --stages N             tiles under way\n" : "");
	return f == stderr ? 2 : 0;
}

static bool read_option(request *q, int c)
{
	uint64_t d[3];

	switch (c) {
	case 'i': q->o.in = cptx_type_find(optarg); return q->o.in != CPTX_TYPE_NONE;
	case 'o': q->o.out = cptx_type_find(optarg); return q->o.out != CPTX_TYPE_NONE;
	case 't':
		if (!number_dims(optarg, d, 3, UINT32_MAX))
			return false;
		q->o.m = (uint32_t)d[0], q->o.n = (uint32_t)d[1], q->o.k = (uint32_t)d[2];
		return true;
	case 's':
		if (!number_dims(optarg, d, 1, UINT32_MAX))
			return false;
		q->o.stages = (uint32_t)d[0];
		return true;
	case 'r': return number_dims(optarg, &q->p.seed, 1, UINT64_MAX);
	case 'a': q->target = optarg; return true;
	case 'l': q->timeline = optarg, q->o.timeline = STAMPS; return true;
	case 'p': q->ptx = true; return true;
	default: return false;
	}
}

/* The device that was asked for; else the GPU if it has tcgen05; else the emulator. */
static cptx_device *open_device(const request *q, cptx_error *err)
{
	const char *name = getenv("CPTX_DEVICE");
	char emulated[64];
	cptx_error none = { 0 };
	cptx_device *dev = name ? cptx_device_open(name, err) : q->target ? NULL : cptx_device_open("cuda", &none);

	if (dev && (name || !lacks_tcgen05(cptx_target_find(cptx_device_get_info(dev)->target), &none)))
		return dev;
	cptx_device_close(dev);
	if (name)
		return NULL;
	snprintf(emulated, sizeof emulated, "emu:%s", q->target ? q->target : "sm_100a");
	dev = cptx_device_open(emulated, err);
	if (dev)
		cptx_emu_reseed(dev, q->p.seed, CPTX_EMU_RANDOM);
	return dev;
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;

	if (f && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "cannot write '%s': %s\n", path, strerror(errno));
	return ok;
}

static int run(const ladder_rung *rung, request *q, cptx_error *err)
{
	cptx_emu_counters counters;
	gemm_report r = { 0 };
	cptx_device *dev = open_device(q, err);

	if (!dev)
		return fprintf(stderr, "%s\n", err->text), 1;
	bool emulated = cptx_emu_get_counters(dev, &counters);
	if (!q->p.m)
		q->p.m = q->p.n = q->p.k = emulated ? 256 : 4096;
	q->p.bursts = emulated ? 0 : 11;
	bool ok = ladder_run(dev, rung, &q->o, &q->p, &r, err);
	if (ok)
		gemm_report_text(&r, err->text, sizeof err->text);
	if (!ok)
		fprintf(stderr, "%s\n", err->text);
	else
		printf("tcgen05 %s %llu x %llu x %llu on %s: %s\n", rung->name, (unsigned long long)q->p.m,
		       (unsigned long long)q->p.n, (unsigned long long)q->p.k, cptx_device_get_info(dev)->name, err->text);
	if (ok && r.ms > 0)
		printf("%.3f ms, %.0f TFLOP/s\n", r.ms, 1e-9 * r.flop / r.ms);
	if (ok && r.timeline && !write_file(q->timeline, r.timeline))
		ok = false;
	free(r.timeline);
	cptx_device_close(dev);
	return !ok || r.wrong;
}

int ladder_main(const ladder_rung *rung, int argc, char **argv)
{
	request q = { .o = rung->tile, .p.seed = 1 };
	cptx_error err = { 0 };
	int c;

	q.o.in = CPTX_BF16, q.o.out = CPTX_TYPE_NONE;
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
		if (c == 'h')
			return usage(rung, stdout);
		else if (!read_option(&q, c))
			return usage(rung, stderr);
	if (q.o.out == CPTX_TYPE_NONE)
		q.o.out = q.o.in;
	uint64_t *const side[] = { &q.p.m, &q.p.n, &q.p.k };
	for (int i = 0; i < 3 && optind < argc; i++)
		if (argc - optind != 3 - i || !number_dims(argv[optind++], side[i], 1, INT32_MAX))
			return usage(rung, stderr);
	if (q.target && lacks_tcgen05(cptx_target_find(q.target), &err))
		return fprintf(stderr, "%s: %s\n", rung->name, err.text), 1;
	uint64_t any = q.p.m ? 0 : 256;
	if (!ladder_check(rung, &q.o, q.p.m + any, q.p.n + any, q.p.k + any, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	if (!q.ptx)
		return run(rung, &q, &err);
	cptx_module *m = cptx_module_new(NULL);
	ladder_build(m, rung, &q.o);
	return show(m, q.target ? q.target : "sm_100a");
}
