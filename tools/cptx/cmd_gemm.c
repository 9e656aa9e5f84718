/* cptx gemm: generates the GEMM for a tile shape, prints it, and runs it where there is a GPU. */
#include "cli.h"
#include "number.h"
#include "gemm_check.h"
#include "ptxas.h"

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
	OPTION_LAYOUT,
	OPTION_IN,
	OPTION_OUT,
	OPTION_GROUP,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES,
	OPTION_EXPLAIN
};
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_KIND] = { "kind", 'k', "KIND",
	                  "wgmma (sm_90a) or mma (sm_80 and later); default: wgmma on sm_90a without --tile or --warps",
	                  "wgmma mma" },
	[OPTION_TILE] = { "tile", 't', "MxNxK", "tile of a CTA in elements", "128x256x64 128x128x64 128x128x32 64x64x32" },
	[OPTION_WARPS] = { "warps", 'w', "MxN", "warps along M and N", "2x4 4x2 2x2 1x4" },
	[OPTION_STAGES] = { "stages", 's', "S", "tiles under way in shared memory, 2 to 16", "2 3 4 5 6" },
	[OPTION_CLUSTER] = { "cluster", 'c', "MxN", "wgmma: CTAs of a cluster along M and N, one of them 1", "1x1 2x1 1x2 1x4" },
	[OPTION_STREAM_K] = { "stream-k", 'K', NULL, "wgmma: CTAs share tiles along K", NULL },
	[OPTION_LAYOUT] = { "layout", 'y', "AB", "wgmma: t, rows of K, or n, rows of M (A) and of N (B); default tt",
	                    "tt tn nt nn" },
	[OPTION_IN] = { "in", 'i', "TYPE", "type of A and B: bf16 or f16; wgmma: e4m3 or e5m2 too", "bf16 f16 e4m3 e5m2" },
	[OPTION_OUT] = { "out", 'u', "TYPE", "type of D: f32, bf16 or f16", "f32 bf16 f16" },
	[OPTION_GROUP] = { "group", 'g', "ROWS", "rows of tiles walked together, for the L2 cache", "8 16" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "MxNxK", "run on a GPU, compare every element, time it", "4096x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0" },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
	[OPTION_EXPLAIN] = { "explain", 'e', "MxNxK", "wgmma: the best shapes for such a problem, and why", "4096x4096x4096" },
};

typedef struct request {
	const cli_command *cmd;
	gemm_kind g;
	cptx_gemm_opt o; /* what was asked for, of either kind */
	const char *arch, *output, *device, *kind, *layout;
	uint32_t cluster[2];
	bool run, lines, tile, warps, stages, stream_k, explain;
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
		if (strcmp(value, "wgmma") && strcmp(value, "mma"))
			return bad_value(q, option, value, "expected wgmma or mma");
		q->kind = value;
		break;
	case OPTION_CLUSTER:
		if (!number_dims(value, d, 2, 16))
			return bad_value(q, option, value, "expected two numbers from 1 to 16, as in 2x1");
		q->cluster[0] = (uint32_t)d[0], q->cluster[1] = (uint32_t)d[1];
		break;
	case OPTION_STREAM_K: q->stream_k = true; break;
	case OPTION_LAYOUT:
		if (strlen(value) != 2 || strspn(value, "tn") != 2)
			return bad_value(q, option, value, "expected tt, tn, nt or nn");
		q->layout = value;
		break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_LINES: q->lines = true; break;
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
	}
	if (q->stages)
		o->stages = q->o.stages;
	if (q->cluster[0])
		o->cluster_m = q->cluster[0], o->cluster_n = q->cluster[1];
	o->stream_k |= q->stream_k;
	if (!cptx_gemm_sm90_check(o, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->tile && q->o.bk != plan.bk)
		return cli_failed(q->cmd, "tile K = %u; with .%s it is %u, 128 bytes", q->o.bk, cptx_type_name(q->o.in), plan.bk);
	if (q->explain)
		fprintf(out, "%-12s %-8s %-7s %-9s %-5s %9s %9s %9s %9s %6s\n", "tile", "cluster", "stages", "stream-K", "CTAs",
		        "us", "mma us", "load us", "memory us", "idle");
	for (size_t i = 0; i < n && q->explain; i++)
		fprintf(out, "%3ux%3ux%-4u %ux%-6u %-7u %-9s %-5u %9.1f %9.1f %9.1f %9.1f %5.1f%%\n", c[i].opt.bm, c[i].opt.bn,
		        plan.bk, c[i].opt.cluster_m, c[i].opt.cluster_n, c[i].opt.stages, c[i].opt.stream_k ? "yes" : "no",
		        c[i].ctas ? c[i].ctas : sms, c[i].us, c[i].mma_us, c[i].load_us, c[i].memory_us, 100 * c[i].tail);
	return EXIT_OK;
}

static int complete_shape(request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	enum { H200 = 132 };
	bool sm90a = !strcmp(target->name, "sm_90a");

	q->g.wgmma = q->kind ? !strcmp(q->kind, "wgmma") : sm90a && !q->tile && !q->warps;
	if (q->g.wgmma && q->warps)
		return cli_usage(q->cmd, "--warps is an option of --kind mma");
	if (q->explain && q->tile)
		return cli_usage(q->cmd, "--explain tells how a tile is picked; leave --tile away");
	if (q->explain && q->run)
		return cli_usage(q->cmd, "--explain or --run, not both: --run picks the same shape");
	if (q->g.wgmma)
		return complete_wgmma(q, dev ? cptx_device_get_info(dev)->sms : H200, out);
	if (q->explain || q->layout || q->stream_k || q->cluster[0])
		return cli_usage(q->cmd, "--%s is an option of --kind wgmma",
		                 q->explain    ? options[OPTION_EXPLAIN].name
		                 : q->layout   ? options[OPTION_LAYOUT].name
		                 : q->stream_k ? options[OPTION_STREAM_K].name
		                               : options[OPTION_CLUSTER].name);
	complete_mma(q, target);
	return EXIT_OK;
}

static void print_module(const request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	char shape[120];

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
	if (r.wrong)
		return cli_failed(q->cmd, "%llu of %llu elements are wrong; the first at row %llu, column %llu: %g, not %g",
		                  (unsigned long long)r.wrong, (unsigned long long)r.elements, (unsigned long long)r.wrong_row,
		                  (unsigned long long)r.wrong_column, r.wrong_value, r.wrong_reference);
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
	char path[4096], said[8192];

	fprintf(out, "device   none: %s\n", why->text);
	if (!ptxas_find(path, sizeof path)) {
		fprintf(out, "ptxas    none found (CPTX_PTXAS, PATH, /usr/local/cuda/bin)\n");
		return EXIT_OK;
	}
	int status = ptxas_run(path, cptx_ptx_target(ptx)->name, cptx_ptx_text(ptx), cptx_ptx_size(ptx), said, sizeof said);
	if (status < 0)
		return cli_failed(q->cmd, "%s could not be run on a file in %s: %s", path,
		                  getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", strerror(errno));
	if (status)
		return cli_failed(q->cmd, "%s rejects the kernel:\n%s", path, said);
	fprintf(out, "ptxas    accepted\n");
	for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, "registers") || strstr(line, "spill"))
			fprintf(out, "         %s\n", line + strspn(line, " "));
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
	if (q->explain && !q->output)
		return cli_flush(q->cmd, EXIT_OK);
	if (!gemm_kind_check(&q->g, target, q->run ? q->problem.m : 0, q->problem.n, q->problem.k, &err))
		return cli_failed(q->cmd, "%s", err.text);
	if (q->run && ((q->layout && strcmp(q->layout, "tt")) || cptx_type_bits(q->o.in) != 16))
		return cli_failed(q->cmd, "--run checks bf16 and f16 with the layout tt only; leave it away to get the PTX");
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
		"--kind mma, for sm_80 and later: cp.async, ldmatrix, mma.sync (see <cptx/kernels.h>). K must be a multiple of 8.\n"
		"A tile of 128x256x64 on 2x4 warps gives each warp 64x64; 4 stages of it fill 192 KB of shared memory.\n"
		"What limits a shape (shared memory, registers, divisibility) is named when it is broken.\n\n"
		"  cptx gemm -a sm_80 -t 128x128x32 -w 2x2 -s 4 -o gemm.ptx\n"
		"  cptx gemm --in f16 --out f16 --run 8192x8192x8192\n"
		"  cptx gemm -a sm_90a --explain 128x10240x8192\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.run = run,
};
