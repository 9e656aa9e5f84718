/* cptx gemm: generates the GEMM for a tile shape, prints it, and runs it where there is a GPU. */
#include "cli.h"
#include "gemm_check.h"
#include "ptxas.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_ARCH,
	OPTION_TILE,
	OPTION_WARPS,
	OPTION_STAGES,
	OPTION_IN,
	OPTION_OUT,
	OPTION_GROUP,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_LINES
};
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_TILE] = { "tile", 't', "MxNxK", "tile of a CTA in elements", "128x256x64 128x128x64 128x128x32 64x64x32" },
	[OPTION_WARPS] = { "warps", 'w', "MxN", "warps along M and N", "2x4 4x2 2x2 1x4" },
	[OPTION_STAGES] = { "stages", 's', "S", "tiles under way in shared memory, 2 to 16", "2 3 4 5 6" },
	[OPTION_IN] = { "in", 'i', "TYPE", "type of A and B: bf16 or f16", "bf16 f16" },
	[OPTION_OUT] = { "out", 'u', "TYPE", "type of D: f32, bf16 or f16", "f32 bf16 f16" },
	[OPTION_GROUP] = { "group", 'g', "ROWS", "rows of tiles walked together, for the L2 cache", "8 16" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "MxNxK", "run on a GPU, compare every element, time it", "4096x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0" },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
};

typedef struct request {
	const cli_command *cmd;
	cptx_gemm_opt o;
	const char *arch, *output, *device;
	bool run, lines, tile, warps, stages;
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
		if (!cli_dims(value, d, 3, 1024))
			return bad_value(q, option, value, "expected three numbers from 1 to 1024, as in 128x256x64");
		q->o.bm = (uint32_t)d[0], q->o.bn = (uint32_t)d[1], q->o.bk = (uint32_t)d[2];
		q->tile = true;
		break;
	case OPTION_WARPS:
		if (!cli_dims(value, d, 2, 32))
			return bad_value(q, option, value, "expected two numbers from 1 to 32, as in 2x4");
		q->o.warps_m = (uint32_t)d[0], q->o.warps_n = (uint32_t)d[1];
		q->warps = true;
		break;
	case OPTION_STAGES:
	case OPTION_GROUP:
		if (!cli_dims(value, d, 1, 1024))
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
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_LINES: q->lines = true; break;
	case OPTION_RUN:
		if (!cli_dims(value, d, 3, UINT32_MAX))
			return bad_value(q, option, value, "expected three numbers, as in 4096x4096x4096");
		q->problem.m = d[0], q->problem.n = d[1], q->problem.k = d[2];
		q->run = true;
		break;
	}
	return EXIT_OK;
}

/* The tuned shape of the target, with what was asked for in its place; a tile without warps gets warps of about 64 x 64. */
static void complete_shape(request *q, const cptx_target *target)
{
	cptx_gemm_opt d = cptx_gemm_default(target);

	if (!q->tile)
		q->o.bm = d.bm, q->o.bn = d.bn, q->o.bk = d.bk;
	if (!q->warps) {
		q->o.warps_m = q->o.bm >= 128 ? q->o.bm / 64 : 1;
		q->o.warps_n = q->o.bn >= 128 ? q->o.bn / 64 : 1;
		if (q->o.warps_m * q->o.warps_n < 4 && q->o.bn % 64 == 0)
			q->o.warps_n *= 2;
	}
	if (!q->stages)
		q->o.stages = q->tile ? 3 : d.stages;
}

static void print_module(const request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	const cptx_gemm_opt *o = &q->o;
	fprintf(out, "kernel   D[M][N] %s = A[M][K] * B[N][K]^T %s, tile %ux%ux%u, %ux%u warps, %u stages\n",
	        cptx_type_name(o->out), cptx_type_name(o->in), o->bm, o->bn, o->bk, o->warps_m, o->warps_n, o->stages);
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

	if (!gemm_check(dev, m, &q->o, p, &r, &err))
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
	complete_shape(q, target);
	if (!cptx_gemm_check(&q->o, target, NULL, &err) ||
	    (q->run && !cptx_gemm_check_problem(&q->o, q->problem.m, q->problem.n, q->problem.k, &err)))
		return cli_failed(q->cmd, "%s", err.text);
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx =
		cptx_gemm_build(m, &q->o, &err) ? cptx_emit(m, target->name, &(cptx_emit_opt){ .lines = q->lines }, &err) : NULL;
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
	.details = "A is MxK, B is NxK, D is MxN, all row-major. The kernel takes M, N and K as arguments: any M and N, K a "
			   "multiple of 8.\n"
			   "It uses cp.async, ldmatrix and mma.sync, so it needs sm_80 or later.\n\n"
			   "A tile of 128x256x64 on 2x4 warps gives each warp 64x64; 4 stages of it fill 192 KB of shared memory.\n"
			   "What limits a shape (shared memory, registers, divisibility) is named when it is broken.\n\n"
			   "  cptx gemm -a sm_80 -t 128x128x32 -w 2x2 -s 4 -o gemm.ptx\n"
			   "  cptx gemm --in f16 --out f16 --run 8192x8192x8192\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.run = run,
};
