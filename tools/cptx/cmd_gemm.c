/* cptx gemm: generates the GEMM for a tile shape, prints it, and runs it where there is a GPU. */
#include "cli.h"
#include "number.h"
#include "compiling.h"
#include "gemm_check.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_ARCH,
	OPTION_KIND,
	OPTION_TILE,
	OPTION_WARPS,
	OPTION_STAGES,
	OPTION_CLUSTER,
	OPTION_STREAM_K,
	OPTION_SWAP,
	OPTION_PER_SM,
	OPTION_GROUPED,
	OPTION_LAYOUT,
	OPTION_SCALE,
	OPTION_A_TMEM,
	OPTION_IN,
	OPTION_OUT,
	OPTION_GROUP,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES,
	OPTION_TIMELINE,
	OPTION_EXPLAIN,
	OPTION_COMPILER
};
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_KIND] = { "kind", 'k', "KIND",
	                  "tcgen05 (sm_100a, sm_103a), wgmma (sm_90a) or mma (sm_80 and later); default, without --tile or "
	                  "--warps: the first that the target has",
	                  "tcgen05 wgmma mma" },
	[OPTION_TILE] = { "tile", 't', "MxNxK", "tile of a CTA in elements", "128x256x64 128x128x64 128x128x32 64x64x32" },
	[OPTION_WARPS] = { "warps", 'w', "MxN", "warps along M and N", "2x4 4x2 2x2 1x4" },
	[OPTION_STAGES] = { "stages", 's', "S", "tiles under way in shared memory, 2 to 16", "2 3 4 5 6" },
	[OPTION_CLUSTER] = { "cluster", 'c', "MxN", "wgmma, tcgen05: tiles of a cluster along M and N, one of them 1",
	                     "1x1 2x1 1x2 4x1 1x4" },
	[OPTION_STREAM_K] = { "stream-k", 'K', NULL, "wgmma: CTAs share tiles along K", NULL },
	[OPTION_SWAP] = { "swap", 'S', NULL, "wgmma: the tile's first side and the cluster's lie along N, the second along M",
	                  NULL },
	[OPTION_PER_SM] = { "per-sm", 'p', "CTAS", "wgmma: CTAs that fit on a multiprocessor, 1 or 2", "1 2" },
	[OPTION_GROUPED] = { "grouped", 'G', NULL, "wgmma: a kernel for lists of problems in one launch", NULL },
	[OPTION_LAYOUT] = { "layout", 'y', "AB",
	                    "wgmma, tcgen05: t, rows of K, or n, rows of M (A) and of N (B); "
	                    "default tt",
	                    "tt tn nt nn" },
	[OPTION_SCALE] = { "scale", 'x', "TYPE", "tcgen05: scale factors, ue8m0 for 32 elements each, or ue4m3 for 16 (in e2m1)",
	                   "ue8m0 ue4m3" },
	[OPTION_A_TMEM] = { "a-tmem", 'm', NULL, "tcgen05: A comes from tensor memory", NULL },
	[OPTION_IN] = { "in", 'i', "TYPE",
	                "type of A and B: bf16 or f16; wgmma: e4m3 or e5m2 too; tcgen05: also tf32, "
	                "e2m3, e3m2, e2m1, s8, u8",
	                "bf16 f16 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 s8 u8" },
	[OPTION_OUT] = { "out", 'u', "TYPE", "type of D: f32, bf16 or f16", "f32 bf16 f16" },
	[OPTION_GROUP] = { "group", 'g', "ROWS", "rows of tiles walked together, for the L2 cache", "8 16" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "MxNxK", "run on a GPU, compare every element, time it", "4096x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
	[OPTION_TIMELINE] = { "timeline", 'n', "FILE",
	                      "wgmma, tcgen05, with --run: write when each warp did what, for chrome://tracing", "@file" },
	[OPTION_EXPLAIN] = { "explain", 'e', "MxNxK", "wgmma: the best shapes for such a problem, and why", "4096x4096x4096" },
};

typedef struct request {
	const cli_command *cmd;
	gemm_kind g;
	cptx_gemm_opt o; /* what was asked for, of either kind */
	const char *arch, *output, *device, *kind, *layout, *timeline;
	uint32_t cluster[2], per_sm;
	enum cptx_type scale;
	bool run, lines, tile, warps, stages, stream_k, swap, grouped, explain, a_tmem;
	gemm_problem problem;
} request;

static int bad_value(const request *q, int option, const char *value, const char *right)
{
	return cli_usage(q->cmd, "--%s %s: %s", options[option].name, value, right);
}

static int read_option(request *q, int option, const char *value)
{
	uint64_t d[3];

	switch (option) {
	case OPTION_ARCH: q->arch = value; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->problem.load.compiler);
	case OPTION_TILE:
		if (!number_dims(value, d, 3, 1024))
			return bad_value(q, option, value, "expected three numbers from 1 to 1024, as in 128x256x64");
		q->o.bm = (uint32_t)d[0], q->o.bn = (uint32_t)d[1], q->o.bk = (uint32_t)d[2];
		q->tile = true;
		break;
	case OPTION_WARPS:
		if (!number_dims(value, d, 2, 32))
			return bad_value(q, option, value, "expected two numbers from 1 to 32, as in 2x4");
		q->o.warps_m = (uint32_t)d[0], q->o.warps_n = (uint32_t)d[1];
		q->warps = true;
		break;
	case OPTION_STAGES:
	case OPTION_GROUP:
		if (!number_dims(value, d, 1, 1024))
			return bad_value(q, option, value, "expected a number");
		*(option == OPTION_STAGES ? &q->o.stages : &q->o.group) = (uint32_t)d[0];
		q->stages |= option == OPTION_STAGES;
		break;
	case OPTION_IN:
	case OPTION_OUT:
		*(option == OPTION_IN ? &q->o.in : &q->o.out) = cptx_type_find(value);
		if (cptx_type_find(value) == CPTX_TYPE_NONE)
			return bad_value(q, option, value, option == OPTION_IN ? "expected bf16 or f16" : "expected f32, bf16 or f16");
		break;
	case OPTION_KIND:
		if (strcmp(value, "tcgen05") && strcmp(value, "wgmma") && strcmp(value, "mma"))
			return bad_value(q, option, value, "expected tcgen05, wgmma or mma");
		q->kind = value;
		break;
	case OPTION_CLUSTER:
		if (!number_dims(value, d, 2, 16))
			return bad_value(q, option, value, "expected two numbers from 1 to 16, as in 2x1");
		q->cluster[0] = (uint32_t)d[0], q->cluster[1] = (uint32_t)d[1];
		break;
	case OPTION_STREAM_K: q->stream_k = true; break;
	case OPTION_A_TMEM: q->a_tmem = true; break;
	case OPTION_SCALE:
		q->scale = cptx_type_find(value);
		if (q->scale != CPTX_UE8M0 && q->scale != CPTX_UE4M3)
			return bad_value(q, option, value, "expected ue8m0 or ue4m3");
		break;
	case OPTION_SWAP: q->swap = true; break;
	case OPTION_GROUPED: q->grouped = true; break;
	case OPTION_PER_SM:
		if (!number_dims(value, d, 1, 2))
			return bad_value(q, option, value, "expected 1 or 2");
		q->per_sm = (uint32_t)d[0];
		break;
	case OPTION_LAYOUT:
		if (strlen(value) != 2 || strspn(value, "tn") != 2)
			return bad_value(q, option, value, "expected tt, tn, nt or nn");
		q->layout = value;
		break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_LINES: q->lines = true; break;
	case OPTION_TIMELINE: q->timeline = value; break;
	case OPTION_RUN:
	case OPTION_EXPLAIN:
		if (!number_dims(value, d, 3, UINT32_MAX))
			return bad_value(q, option, value, "expected three numbers, as in 4096x4096x4096");
		q->problem.m = d[0], q->problem.n = d[1], q->problem.k = d[2];
		*(option == OPTION_RUN ? &q->run : &q->explain) = true;
		break;
	}
	return EXIT_OK;
}

/* The tuned shape of the target, with what was asked for in its place; a tile without warps gets warps of about 64 x 64. */
static void complete_mma(request *q, const cptx_target *target)
{
	cptx_gemm_opt d = cptx_gemm_default(target), *o = &q->g.mma;

	*o = q->o;
	if (!q->tile)
		o->bm = d.bm, o->bn = d.bn, o->bk = d.bk;
	if (!q->warps) {
		o->warps_m = o->bm >= 128 ? o->bm / 64 : 1;
		o->warps_n = o->bn >= 128 ? o->bn / 64 : 1;
		if (o->warps_m * o->warps_n < 4 && o->bn % 64 == 0)
			o->warps_n *= 2;
	}
	if (!q->stages)
		o->stages = q->tile ? 3 : d.stages;
}

/* The best choice for the problem (4096 cubed where there is none), or the shape that was asked for. */
static int complete_wgmma(request *q, uint32_t sms, FILE *out)
{
	enum { CHOICES = 5 };
	const gemm_problem *r = &q->problem;
	cptx_gemm_problem p = { .m = r->m ? r->m : 4096, .n = r->m ? r->n : 4096, .k = r->m ? r->k : 4096 };
	cptx_gemm_sm90_opt *o = &q->g.sm90;
	cptx_gemm_sm90_choice c[CHOICES];
	cptx_gemm_sm90_plan plan;
	cptx_error err = { 0 };
	size_t n = 0;

	*o = (cptx_gemm_sm90_opt){ .a = q->o.in,
		                       .b = q->o.in,
		                       .out = q->o.out,
		                       .group = q->o.group,
		                       .a_m_major = q->layout && q->layout[0] == 'n',
		                       .b_n_major = q->layout && q->layout[1] == 'n' };
	if (!q->tile) {
		n = cptx_gemm_sm90_auto(o, &p, sms, c, CHOICES, &err);
		if (!n)
			return cli_failed(q->cmd, "%s", err.text);
		*o = c[0].opt, q->g.ctas = c[0].ctas;
	} else {
		o->bm = q->o.bm, o->bn = q->o.bn, o->stages = 3;
		o->swap = q->swap, o->per_sm = q->per_sm;
	}
	if (q->stages)
		o->stages = q->o.stages;
	if (q->cluster[0])
		o->cluster_m = q->cluster[0], o->cluster_n = q->cluster[1];
	o->stream_k |= q->stream_k;
	if ((o->grouped = q->grouped)) /* a choice of the model may share K */
		o->stream_k = q->stream_k, q->g.ctas = 0;
	if (!q->tile && (q->swap || q->per_sm))
		return cli_usage(q->cmd, "--%s goes with --tile; without, the model picks it", q->swap ? "swap" : "per-sm");
	if (!cptx_gemm_sm90_check(o, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->tile && q->o.bk != plan.bk)
		return cli_failed(q->cmd, "tile K = %u; with .%s it is %u, 128 bytes", q->o.bk, cptx_type_name(q->o.in), plan.bk);
	if (q->explain)
		fprintf(out, "%-12s %-5s %-8s %-7s %-6s %-9s %-5s %9s %9s %9s %9s %6s\n", "tile", "swap", "cluster", "stages",
		        "per SM", "stream-K", "CTAs", "us", "mma us", "load us", "memory us", "idle");
	for (size_t i = 0; i < n && q->explain; i++)
		fprintf(out, "%3ux%3ux%-4u %-5s %ux%-6u %-7u %-6u %-9s %-5u %9.1f %9.1f %9.1f %9.1f %5.1f%%\n", c[i].opt.bm,
		        c[i].opt.bn, plan.bk, c[i].opt.swap ? "yes" : "no", c[i].opt.cluster_m, c[i].opt.cluster_n, c[i].opt.stages,
		        c[i].opt.per_sm, c[i].opt.stream_k ? "yes" : "no", c[i].ctas ? c[i].ctas : sms * c[i].opt.per_sm, c[i].us,
		        c[i].mma_us, c[i].load_us, c[i].memory_us, 100 * c[i].tail);
	return EXIT_OK;
}

/* The shape that was asked for, or the picked one. */
static int complete_tcgen05(request *q, uint32_t sms)
{
	const gemm_problem *r = &q->problem;
	cptx_gemm_problem p = { .m = r->m ? r->m : 4096, .n = r->m ? r->n : 4096, .k = r->m ? r->k : 4096 };
	cptx_gemm_sm100_opt *o = &q->g.sm100;
	cptx_gemm_sm100_plan plan;
	cptx_error err = { 0 };
	enum cptx_type in = q->o.in == CPTX_F32 ? CPTX_TF32 : q->o.in;

	*o = (cptx_gemm_sm100_opt){ .kind = gemm_tcgen05_kind(in, q->scale),
		                        .a = in,
		                        .b = in,
		                        .scale = q->scale,
		                        .out = q->o.out,
		                        .group = q->o.group,
		                        .a_m_major = q->layout && q->layout[0] == 'n',
		                        .b_n_major = q->layout && q->layout[1] == 'n',
		                        .a_tmem = q->a_tmem };
	if (q->tile)
		o->bm = q->o.bm, o->bn = q->o.bn, o->stages = 3;
	else if (!cptx_gemm_sm100_pick(o, &p, sms, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->stages)
		o->stages = q->o.stages;
	if (q->cluster[0])
		o->cluster_m = q->cluster[0], o->cluster_n = q->cluster[1];
	if (!cptx_gemm_sm100_check(o, NULL, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->tile && q->o.bk != plan.bk)
		return cli_failed(q->cmd, "tile K = %u; with kind %s it is %u", q->o.bk, cptx_tcgen05_kind_name(o->kind), plan.bk);
	return EXIT_OK;
}

static enum gemm_with choose_with(const request *q, const cptx_target *target)
{
	if (q->kind)
		return !strcmp(q->kind, "wgmma") ? GEMM_WGMMA : !strcmp(q->kind, "tcgen05") ? GEMM_TCGEN05 : GEMM_MMA;
	if (q->tile || q->warps)
		return GEMM_MMA;
	return !strcmp(target->name, "sm_90a")                       ? GEMM_WGMMA
	       : cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, target) ? GEMM_TCGEN05
	                                                             : GEMM_MMA;
}

/* An option that the way to multiply does not have; OPTION_ARCH: none. */
static int misplaced(const request *q)
{
	enum gemm_with with = q->g.with;

	return with != GEMM_MMA && q->warps                         ? OPTION_WARPS
	       : with != GEMM_WGMMA && q->explain                   ? OPTION_EXPLAIN
	       : with != GEMM_WGMMA && q->stream_k                  ? OPTION_STREAM_K
	       : with != GEMM_WGMMA && q->swap                      ? OPTION_SWAP
	       : with != GEMM_WGMMA && q->per_sm                    ? OPTION_PER_SM
	       : with != GEMM_WGMMA && q->grouped                   ? OPTION_GROUPED
	       : with == GEMM_MMA && q->layout                      ? OPTION_LAYOUT
	       : with == GEMM_MMA && q->cluster[0]                  ? OPTION_CLUSTER
	       : with != GEMM_TCGEN05 && q->scale != CPTX_TYPE_NONE ? OPTION_SCALE
	       : with != GEMM_TCGEN05 && q->a_tmem                  ? OPTION_A_TMEM
	                                                            : OPTION_ARCH;
}

static int complete_shape(request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	enum { H200 = 132, B200 = 148 };

	q->g.with = choose_with(q, target);
	int option = misplaced(q);
	if (option != OPTION_ARCH)
		return cli_usage(q->cmd, "--%s is an option of --kind %s", options[option].name,
		                 option == OPTION_WARPS                                ? "mma"
		                 : option == OPTION_SCALE || option == OPTION_A_TMEM   ? "tcgen05"
		                 : option == OPTION_LAYOUT || option == OPTION_CLUSTER ? "wgmma and of --kind tcgen05"
		                                                                       : "wgmma");
	if (q->explain && q->tile)
		return cli_usage(q->cmd, "--explain tells how a tile is picked; leave --tile away");
	if (q->explain && q->run)
		return cli_usage(q->cmd, "--explain or --run, not both: --run picks the same shape");
	if (q->g.with == GEMM_WGMMA)
		return complete_wgmma(q, dev ? cptx_device_get_info(dev)->sms : H200, out);
	if (q->g.with == GEMM_TCGEN05)
		return complete_tcgen05(q, dev ? cptx_device_get_info(dev)->sms : B200);
	complete_mma(q, target);
	return EXIT_OK;
}

static void print_module(const request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	char shape[160];

	gemm_kind_text(&q->g, shape, sizeof shape);
	fprintf(out, "kernel   D[M][N] %s = %s * %s %s, %s\n", cptx_type_name(gemm_out(&q->g)),
	        q->layout && q->layout[0] == 'n' ? "A[K][M]^T" : "A[M][K]",
	        q->layout && q->layout[1] == 'n' ? "B[K][N]" : "B[N][K]^T", cptx_type_name(gemm_in(&q->g)), shape);
	fprintf(out, "PTX      %s, %zu bytes, %zu instructions, .version %u.%u, %s\n",
	        !q->output               ? "not kept (-o FILE keeps it)"
	        : strcmp(q->output, "-") ? q->output
	                                 : "standard output",
	        cptx_ptx_size(ptx), cptx_module_size(m), cptx_ptx_version(ptx) / 10, cptx_ptx_version(ptx) % 10,
	        cptx_ptx_target(ptx)->name);
}

static int run_on(const request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	const gemm_problem *p = &q->problem;
	gemm_report r;
	cptx_error err;

	if (!gemm_check(dev, m, &q->g, p, &r, &err))
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "device   %s (%s): %u registers, %u bytes of local memory, %u CTAs of %u multiprocessors\n",
	        cptx_device_get_info(dev)->name, cptx_device_get_info(dev)->target, r.resources.regs, r.resources.local_bytes,
	        r.grid, cptx_device_get_info(dev)->sms);
	if (r.timeline && !cli_write(q->cmd, q->timeline, r.timeline, strlen(r.timeline))) {
		free(r.timeline);
		return EXIT_FAILED;
	}
	free(r.timeline);
	if (r.wrong) {
		gemm_wrong_text(&r, err.text, sizeof err.text);
		return cli_failed(q->cmd, "%s", err.text);
	}
	fprintf(out, "check    all %llu elements right; largest error %.2f of the tolerance\n", (unsigned long long)r.elements,
	        r.worst);
	if (r.ms > 0)
		fprintf(out, "time     %.4f ms, %.1f TFLOP/s (%llux%llux%llu, median of %u bursts)\n", r.ms,
		        2e-9 * (double)p->m * (double)p->n * (double)p->k / r.ms, (unsigned long long)p->m, (unsigned long long)p->n,
		        (unsigned long long)p->k, p->bursts);
	return cli_flush(q->cmd, EXIT_OK);
}

/* Without a GPU: what can still be said. */
static int judge_by_ptxas(const request *q, const cptx_ptx *ptx, const cptx_error *why, FILE *out)
{
	cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .name = "the kernel", .verbose = true };
	const cptx_site nowhere = { 0 };
	cptx_error err = { 0 };

	fprintf(out, "device   none: %s\n", why->text);
	cptx_cubin *c = cptx_compile_ptx_(nowhere, ptx, &opt, &err);
	if (err.code == CPTX_E_NO_COMPILER) {
		fprintf(out, "ptxas    none: %s\n", err.text);
		return EXIT_OK;
	}
	if (!c)
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "ptxas    accepted\n");
	for (const char *line = cptx_cubin_log(c); *line;) {
		int n = (int)strcspn(line, "\n"), blank = (int)strspn(line, " ");
		char text[512];
		snprintf(text, sizeof text, "%.*s", n > blank ? n - blank : 0, line + (n > blank ? blank : 0));
		if (strstr(text, "registers") || strstr(text, "spill"))
			fprintf(out, "         %s\n", text);
		line += n + (line[n] != 0);
	}
	cptx_cubin_destroy(c);
	return EXIT_OK;
}

/* Without a GPU: a smaller problem on the emulator. */
static int emulate(request *q, cptx_module *m, const cptx_target *target, FILE *out)
{
	enum { MOST = 512 };
	gemm_problem *p = &q->problem;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target->name, NULL, &err);

	if (!dev)
		return cli_failed(q->cmd, "%s", err.text);
	if (p->m > MOST || p->n > MOST || p->k > MOST)
		fprintf(out, "emulator %llux%llux%llu is too much for it: each is cut to %d\n", (unsigned long long)p->m,
		        (unsigned long long)p->n, (unsigned long long)p->k, MOST);
	p->m = p->m > MOST ? MOST : p->m;
	p->n = p->n > MOST ? MOST : p->n;
	p->k = p->k > MOST ? MOST : p->k;
	p->bursts = 0;
	fflush(out);
	int status = run_on(q, dev, m, out);
	cptx_device_close(dev);
	return status;
}

enum { STAMPS = 4096 /* for a warp: 64 KB */ };

static int generate(request *q, cptx_device *dev, const cptx_error *no_device)
{
	cptx_error err = { 0 };
	const char *arch = q->arch                                    ? q->arch
	                   : dev && cptx_device_get_info(dev)->target ? cptx_device_get_info(dev)->target
	                                                              : "sm_90a";
	const cptx_target *target = cptx_target_find(arch);
	FILE *out = q->output && !strcmp(q->output, "-") ? stderr : stdout; /* so that PTX on stdout stays clean */

	if (!target)
		return cli_usage(q->cmd, "there is no target '%s'; `cptx arch` lists them", arch);
	int shaped = complete_shape(q, target, dev, out);
	if (shaped)
		return shaped;
	if (q->timeline && !q->run)
		return cli_usage(q->cmd, "--timeline is of a run: say --run MxNxK too");
	if (q->timeline && !gemm_kind_set_timeline(&q->g, STAMPS))
		return cli_usage(q->cmd, "--timeline is an option of --kind wgmma and of --kind tcgen05");
	if (q->explain && !q->output)
		return cli_flush(q->cmd, EXIT_OK);
	if (!gemm_kind_check(&q->g, target, q->run ? q->problem.m : 0, q->problem.n, q->problem.k, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->run && ((q->layout && strcmp(q->layout, "tt")) || cptx_type_bits(q->o.in) != 16))
		return cli_failed(q->cmd, "--run checks bf16 and f16 with the layout tt only; leave it away to get the PTX");
	if (q->run && q->grouped)
		return cli_failed(q->cmd, "--run checks one problem; leave it away to get the PTX of a kernel for lists");
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx =
		gemm_kind_build(m, &q->g, &err) ? cptx_emit(m, target->name, &(cptx_emit_opt){ .lines = q->lines }, &err) : NULL;
	int status = EXIT_OK;
	if (!ptx)
		status = cli_failed(q->cmd, "%s", err.text);
	else if ((q->output || !q->run) &&
	         !cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	else if (q->run || (q->output && strcmp(q->output, "-")))
		print_module(q, m, ptx, out);
	if (!status && q->run)
		status = dev ? run_on(q, dev, m, out) : judge_by_ptxas(q, ptx, no_device, out);
	if (!status && q->run && !dev)
		status = emulate(q, m, target, out);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status ? status : cli_flush(q->cmd, EXIT_OK);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd, .o = { .in = CPTX_BF16, .out = CPTX_F32 }, .problem = { .seed = 1, .bursts = 11 } };
	cptx_error err = { 0 };
	const char *value;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = read_option(&q, option, value)))
			return status;
	}
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'? The command takes options only", argv[optind]);
	cptx_device *dev = q.run ? cptx_device_open(q.device, &err) : NULL;
	if (q.run && !dev && err.code != CPTX_E_NO_DRIVER && (err.code != CPTX_E_NO_DEVICE || q.device))
		return cli_failed(cmd, "%s", err.text);
	status = generate(&q, dev, &err);
	cptx_device_close(dev);
	return status;
}

const cli_command cmd_gemm = {
	.name = "gemm",
	.arguments = "[OPTION]...",
	.about = "Generates D = A * B^T for a tile shape, as PTX; --run checks and times it.",
	.details =
		"A is MxK, B is NxK, D is MxN, all row-major. The kernel takes M, N and K as arguments.\n\n"
		"--kind wgmma, for sm_90a: TMA, wgmma, clusters (see <cptx/gemm_sm90.h>). Without --tile the shape is the best for\n"
		"the problem of --run or --explain by a model of the H200, else for 4096 cubed. Rows must be multiples of 16 "
		"bytes.\n"
		"--kind tcgen05, for sm_100a and sm_103a: TMA, tensor memory, pairs of CTAs for 256 rows (see "
		"<cptx/gemm_sm100.h>).\n"
		"The types, and --scale, say which kind of tcgen05.mma; --tile MxNxK has 128 bytes along K.\n"
		"--kind mma, for sm_80 and later: cp.async, ldmatrix, mma.sync (see <cptx/kernels.h>). K must be a multiple of 8.\n"
		"A tile of 128x256x64 on 2x4 warps gives each warp 64x64; 4 stages of it fill 192 KB of shared memory.\n"
		"What limits a shape (shared memory, registers, divisibility) is named when it is broken.\n\n"
		"  cptx gemm -a sm_80 -t 128x128x32 -w 2x2 -s 4 -o gemm.ptx\n"
		"  cptx gemm --in f16 --out f16 --run 8192x8192x8192\n"
		"  cptx gemm -a sm_90a --explain 128x10240x8192\n"
		"  cptx gemm -a sm_100a --in e2m1 --scale ue4m3 --out bf16 -o fp4.ptx\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.run = run,
};
