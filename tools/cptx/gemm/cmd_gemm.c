/* SPDX-License-Identifier: MIT */
/* cptx gemm: generates the GEMM for a tile shape, prints it, and runs it where there is a GPU. */
#include "cli/compiling.h"
#include "gemm/request.h"

#include <cptx/emu.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static void print_module(const gemm_request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	const cptx_gemm_opt *o = &q->o;
	cptx_gemm_plan plan = { 0 };
	char shape[500];

	gemm_text(o, shape, sizeof shape);
	fprintf(out, "kernel   D[M][N] %s = %s %s * %s %s, %s\n", cptx_type_name(o->out), o->a_m_major ? "A[K][M]^T" : "A[M][K]",
	        cptx_type_name(o->a), o->b_n_major ? "B[K][N]" : "B[N][K]^T", cptx_type_name(o->b), shape);
	gemm_options_text(q, shape, sizeof shape);
	fprintf(out, "options %s\n", shape);
	if (cptx_gemm_check(o, NULL, &plan, NULL))
		fprintf(out, "launch   %u threads, %u bytes of dynamic shared memory\n", plan.threads, plan.smem);
	compiling_print_ptx(out, m, ptx, q->output);
}

static int run_on(const gemm_request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	const gemm_problem *p = &q->problem;
	gemm_report r;
	cptx_error err = { .code = CPTX_OK };

	if (!gemm_check(dev, m, &q->o, p, &r, &err))
		return cli_failed(q->cmd, "%s", err.text);
	compiling_print_device(out, cptx_device_get_info(dev), &r.resources, r.grid);
	fputc('\n', out);
	if (r.timeline && !cli_write(q->cmd, q->timeline, r.timeline, strlen(r.timeline))) {
		free(r.timeline);
		return EXIT_FAILED;
	}
	free(r.timeline);
	gemm_report_text(&r, err.text, sizeof err.text);
	if (r.wrong)
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "check    %s\n", err.text);
	if (r.ms > 0)
		fprintf(out, "time     %.4f ms, %.1f TFLOP/s (%llux%llux%llu, median of %u bursts)\n", r.ms, 1e-9 * r.flop / r.ms,
		        (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k, p->bursts);
	return cli_flush(q->cmd, EXIT_OK);
}

/* What can be told of the kernel without a GPU. */
static int judge_by_ptxas(const gemm_request *q, const cptx_ptx *ptx, const cptx_error *why, FILE *out)
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
static int emulate(gemm_request *q, cptx_module *m, const cptx_target *target, FILE *out)
{
	enum { MOST = 512, MATRICES = 4 };
	gemm_problem *p = &q->problem;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target->name, NULL, &err);

	if (!dev)
		return cli_failed(q->cmd, "%s", err.text);
	if (p->batch > MATRICES && !q->o.experts)
		fprintf(out, "emulator %u matrices are too many for it: cut to %d\n", p->batch, MATRICES);
	if (p->m > MOST || p->n > MOST || p->k > MOST)
		fprintf(out, "emulator %llux%llux%llu is too much for it: each is cut to %d\n", (unsigned long long)p->m,
		        (unsigned long long)p->n, (unsigned long long)p->k, MOST);
	p->m = p->m > MOST ? MOST : p->m;
	p->n = p->n > MOST ? MOST : p->n;
	p->k = p->k > MOST ? MOST : p->k;
	p->batch = p->batch > MATRICES && !q->o.experts ? MATRICES : p->batch;
	p->bursts = 0;
	fflush(out);
	int status = run_on(q, dev, m, out);
	cptx_device_close(dev);
	return status;
}

/* Options that only count with another one, or not with it. */
static int check_together(const gemm_request *q)
{
	static const int of_a_run[] = { OPTION_TIMELINE, OPTION_DEVICE, OPTION_COMPILER };

	for (size_t i = 0; i < sizeof of_a_run / sizeof *of_a_run; i++)
		if (asked(q, of_a_run[i]) && !asked(q, OPTION_RUN))
			return cli_usage(q->cmd, "--%s is of a run: say --run MxNxK too", gemm_options[of_a_run[i]].name);
	if (asked(q, OPTION_LINES) && asked(q, OPTION_EXPLAIN) && !q->output)
		return cli_usage(q->cmd, "--lines is of PTX, and --explain prints none: say -o FILE too");
	if (q->timeline && q->output && strcmp(q->output, "-") && !strcmp(q->timeline, q->output))
		return cli_usage(q->cmd, "the PTX and the timeline would both go to '%s'; name two files", q->output);
	return EXIT_OK;
}

static int check_run(const gemm_request *q)
{
	const gemm_problem *p = &q->problem;
	cptx_gemm_problem sizes = { .m = p->m, .n = p->n, .k = p->k, .batch = p->batch };
	cptx_error err = { 0 };

	if (!cptx_gemm_check_problem(&q->o, &sizes, 1, NULL, &err))
		return cli_refused(q->cmd, &err);
	return EXIT_OK;
}

enum { STAMPS = 4096 /* for a warp: 64 KB */ };

static int generate(gemm_request *q, cptx_device *dev, const cptx_error *no_device)
{
	cptx_error err = { 0 };
	const char *arch = q->arch                                    ? q->arch
	                   : dev && cptx_device_get_info(dev)->target ? cptx_device_get_info(dev)->target
	                                                              : "sm_90a";
	const cptx_target *target = cli_target(q->cmd, arch);
	FILE *out = q->output && !strcmp(q->output, "-") ? stderr : stdout; /* so that PTX on stdout stays clean */

	if (!target)
		return EXIT_USAGE;
	int shaped = gemm_complete(q, target, dev, out);
	if (shaped)
		return shaped;
	if (asked(q, OPTION_EXPLAIN) && !q->output)
		return cli_flush(q->cmd, EXIT_OK);
	if (q->timeline)
		q->o.timeline = STAMPS;
	if (asked(q, OPTION_RUN) && (shaped = check_run(q)))
		return shaped;
	const char *runs = dev ? cptx_device_get_info(dev)->target : NULL;
	if (runs && !cptx_gemm_check(&q->o, cptx_target_find(runs), NULL, &err))
		return cli_usage(q->cmd, "device %s cannot run it: %s", q->device ? q->device : "cuda:0", err.text);
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx = cptx_gemm_build(m, &q->o, &err)
	                    ? cptx_emit(m, target->name, &(cptx_emit_opt){ .lines = asked(q, OPTION_LINES) }, &err)
	                    : NULL;
	int status = EXIT_OK;
	if (!ptx)
		status = cli_refused(q->cmd, &err);
	else if ((q->output || !asked(q, OPTION_RUN)) &&
	         !cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	else if (asked(q, OPTION_RUN) || (q->output && strcmp(q->output, "-")))
		print_module(q, m, ptx, out);
	if (!status && asked(q, OPTION_RUN))
		status = dev ? run_on(q, dev, m, out) : judge_by_ptxas(q, ptx, no_device, out);
	if (!status && asked(q, OPTION_RUN) && !dev)
		status = emulate(q, m, target, out);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status ? status : cli_flush(q->cmd, EXIT_OK);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	gemm_request q = { .cmd = cmd,
		               .o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 },
		               .problem = { .seed = 1, .bursts = 11 } };
	cptx_error err = { 0 };
	const char *value;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = gemm_option_read(&q, option, value)))
			return status;
	}
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'? The command takes options only", argv[optind]);
	if ((status = check_together(&q)))
		return status;
	cptx_device *dev = asked(&q, OPTION_RUN) ? cptx_device_open(q.device, &err) : NULL;
	bool no_gpu = err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE;
	if (asked(&q, OPTION_RUN) && !dev && (q.device || !no_gpu)) /* only where none was named the emulator does instead */
		return cli_refused(cmd, &err);
	status = generate(&q, dev, &err);
	cptx_device_close(dev);
	return status;
}

const cli_command cmd_gemm = {
	.name = "gemm",
	.arguments = "[OPTION]...",
	.about = "Generates D = alpha * A * B^T + beta * C + bias for a tile shape, as PTX; --run checks and times it.",
	.details =
		"A is MxK, B is NxK, C and D are MxN, all row-major (--layout has others); without --alpha, --beta and --bias it\n"
		"is A * B^T. The kernel takes M, N, K and what these ask for as arguments.\n"
		"The target decides what multiplies, --mma overrides; an option that the kernel does not have is an error.\n\n"
		"wgmma: TMA, clusters. tcgen05: TMA, tensor memory, pairs of CTAs for 256 rows. sync with --scale: TMA, mma.sync\n"
		"with scale factors. sync: cp.async, ldmatrix, mma.sync. <cptx/gemm.h> says what each can. Without --tile the "
		"shape\n"
		"is the best for the problem of --run or --explain by a model, else "
		"for\n"
		"4096 cubed. Where rows are no multiples of 16 bytes A and B are copied first, and threads store D.\n"
		"--run draws operands in their types and layouts, packed and with scale factors where the kind has them, and\n"
		"compares every element with sums in f64; on the emulator (--device emu:sm_100a), or where there is no GPU, a "
		"small\n"
		"problem. With --batch N it is N matrices, with --grouped a list of three: the problem, one of half as many rows,\n"
		"one of 16 rows; with --experts random counts of rows, some 0 and some beyond the room. Of e4m3 and e5m2, of whose\n"
		"sums wgmma keeps 13 bits, operands are whole numbers from -2 to 2.\n"
		"What limits a shape (shared memory, registers, divisibility) is named when it is broken.\n\n"
		"  cptx gemm -a sm_80 -t 128x128x32 -w 2x2 -s 4 -o gemm.ptx\n"
		"  cptx gemm --in f16 --out f16 --run 8192x8192x8192\n"
		"  cptx gemm -a sm_90a --explain 128x10240x8192\n"
		"  cptx gemm -a sm_100a --in e2m1 --scale ue4m3 --out bf16 -o fp4.ptx\n"
		"  cptx gemm -d emu:sm_100a --kind mxf4nvf4 --run 64x64x256\n"
		"  cptx gemm -a sm_120a --kind mxf8f6f4 --in e4m3,e2m1 --out bf16 --tile 128x64x128 --warps 2x2\n",
	.options = gemm_options,
	.scopes = gemm_scopes,
	.noption = OPTIONS,
	.run = run,
};
