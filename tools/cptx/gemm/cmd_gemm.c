/* SPDX-License-Identifier: MIT */
/* cptx gemm: generates the GEMM for a tile shape, prints it, and runs it where there is a GPU. */
#include "reference/number.h"
#include "cli/compiling.h"
#include "gemm/request.h"

#include <cptx/emu.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_MMA] = { "mma", 'M', "NAME",
	                 "what multiplies: tcgen05 (sm_100a, sm_103a), wgmma (sm_90a) or sync (mma.sync: sm_80 and later, with "
	                 "--scale sm_120a); default: the first of these that the target has",
	                 "tcgen05 wgmma sync" },
	[OPTION_KIND] = { "kind", 'k', "KIND",
	                  "tcgen05: the kind of PTX; on sm_120a: mxf8f6f4, mxf4 or mxf4nvf4; default: what --in and --scale say",
	                  "f16 tf32 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4" },
	[OPTION_TILE] = { "tile", 't', "MxNxK", "tile of a CTA in elements; not mma.sync: K is 128 bytes",
	                  "128x256x64 128x128x64 128x128x32 64x64x32" },
	[OPTION_WARPS] = { "warps", 'w', "MxN", "mma.sync: warps along M and N", "2x4 4x2 2x2 1x4" },
	[OPTION_STAGES] = { "stages", 's', "S", "tiles under way in shared memory, 2 to 16", "2 3 4 5 6" },
	[OPTION_CLUSTER] = { "cluster", 'c', "MxN", "wgmma, tcgen05: tiles of a cluster along M and N, one of them 1",
	                     "1x1 2x1 1x2 4x1 1x4" },
	[OPTION_STREAM_K] = { "stream-k", 'K', NULL, "not mma.sync without --scale: CTAs share tiles along K", NULL },
	[OPTION_SWAP] = { "swap", 'S', NULL,
	                  "wgmma, tcgen05, with --tile: its first side and the cluster's lie along N, the second along M",
	                  NULL },
	[OPTION_PER_SM] = { "per-sm", 'p', "CTAS",
	                    "with --tile, not mma.sync without --scale: CTAs that fit on a multiprocessor, 1 or 2", "1 2" },
	[OPTION_BATCH] = { "batch", 'b', "N", "not mma.sync without --scale: a kernel for several matrices; --run: so many",
	                   "2 16" },
	[OPTION_GROUPED] = { "grouped", 'G', NULL, "not mma.sync without --scale: a kernel for lists of problems in one launch",
	                     NULL },
	[OPTION_LAYOUT] = { "layout", 'y', "AB",
	                    "not mma.sync without --scale: t, rows of K, or n, rows of M (A) and of N (B); "
	                    "default tt",
	                    "tt tn nt nn" },
	[OPTION_SCALE] = { "scale", 'x', "TYPE",
	                   "tcgen05, sync on sm_120a: scale factors, ue8m0 for 32 elements each, or ue4m3 for 16 (in e2m1)",
	                   "ue8m0 ue4m3" },
	[OPTION_A_TMEM] = { "a-tmem", 'm', NULL, "tcgen05: A (with --swap B) comes from tensor memory", NULL },
	[OPTION_ALPHA] = { "alpha", 'A', "X", "not mma.sync without --scale: the sums times alpha; --run: that number",
	                   "0.5 2" },
	[OPTION_BETA] = { "beta", 'B', "X", "the same: beta times C, of the type of D, is added; --run: that number", "1" },
	[OPTION_BIAS] = { "bias", 'I', NULL, "the same: a vector of N f32 is added to each row", NULL },
	[OPTION_IN] = { "in", 'i', "TYPE[,TYPE]",
	                "type of A and B, or of each: bf16 or f16; wgmma: e4m3 or e5m2 too; tcgen05: also tf32, "
	                "e2m3, e3m2, e2m1, s8, u8; sync with --scale: e4m3, e5m2, e2m3, e3m2, e2m1",
	                "bf16 f16 tf32 e4m3 e5m2 e2m3 e3m2 e2m1 s8 u8" },
	[OPTION_OUT] = { "out", 'u', "TYPE", "type of D: f32, bf16 or f16; tcgen05 of s8 and u8: s32 too", "f32 bf16 f16 s32" },
	[OPTION_GROUP] = { "group", 'g', "ROWS", "rows of tiles walked together, for the L2 cache", "8 16" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "MxNxK",
	                 "run random operands of the types, on a GPU or the emulator; compare every element; a GPU is timed",
	                 "4096x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
	[OPTION_TIMELINE] = { "timeline", 'n', "FILE",
	                      "with --run, not of mma.sync without --scale: write when each warp did what, for chrome://tracing",
	                      "@file" },
	[OPTION_EXPLAIN] = { "explain", 'e', "MxNxK",
	                     "not mma.sync without --scale: the best shapes for such a problem by a model, and why",
	                     "4096x4096x4096" },
};

static int bad_value(const gemm_request *q, int option, const char *value, const char *right)
{
	return cli_bad_value(q->cmd, (size_t)option, value, right);
}

/* Options that are numbers joined by x. */
static const struct dims {
	uint32_t most;
	uint8_t n;
	const char *right;
} dims[] = {
	[OPTION_TILE] = { 1024, 3, "expected three numbers from 1 to 1024, as in 128x256x64" },
	[OPTION_WARPS] = { 32, 2, "expected two numbers from 1 to 32, as in 2x4" },
	[OPTION_STAGES] = { 1024, 1, "expected a number of stages, 2 to 16" },
	[OPTION_GROUP] = { 1024, 1, "expected a number of rows of tiles, 1 to 1024" },
	[OPTION_CLUSTER] = { 16, 2, "expected two numbers from 1 to 16, as in 2x1" },
	[OPTION_PER_SM] = { 2, 1, "expected 1 or 2" },
	[OPTION_BATCH] = { 65535, 1, "expected a number of matrices, 1 to 65535" },
	[OPTION_RUN] = { UINT32_MAX, 3, "expected three numbers from 1 on, as in 4096x4096x4096" },
	[OPTION_EXPLAIN] = { UINT32_MAX, 3, "expected three numbers from 1 on, as in 4096x4096x4096" },
};

static int read_dims(gemm_request *q, int option, const char *value)
{
	uint64_t d[3];

	if (!number_dims(value, d, dims[option].n, dims[option].most))
		return bad_value(q, option, value, dims[option].right);
	switch (option) {
	case OPTION_TILE: q->o.bm = (uint32_t)d[0], q->o.bn = (uint32_t)d[1], q->o.bk = (uint32_t)d[2]; break;
	case OPTION_WARPS: q->o.warps_m = (uint32_t)d[0], q->o.warps_n = (uint32_t)d[1]; break;
	case OPTION_STAGES: q->o.stages = (uint32_t)d[0]; break;
	case OPTION_GROUP: q->o.group = (uint32_t)d[0]; break;
	case OPTION_CLUSTER: q->o.cluster_m = (uint32_t)d[0], q->o.cluster_n = (uint32_t)d[1]; break;
	case OPTION_PER_SM: q->o.per_sm = (uint32_t)d[0]; break;
	case OPTION_BATCH: q->problem.batch = (uint32_t)d[0], q->o.batched = true; break;
	default: q->problem.m = d[0], q->problem.n = d[1], q->problem.k = d[2];
	}
	return EXIT_OK;
}

/* "e4m3", or "e4m3,e2m1" for A and B. */
static int read_in(gemm_request *q, const char *value)
{
	char first[16] = "";
	size_t n = strcspn(value, ",");

	if (n < sizeof first)
		memcpy(first, value, n);
	q->o.a = cptx_type_find(first), q->o.b = value[n] ? cptx_type_find(value + n + 1) : q->o.a;
	if (q->o.a == CPTX_TYPE_NONE || q->o.b == CPTX_TYPE_NONE)
		return cli_usage(q->cmd, "--in %s: expected one of %s, or two of them, for A and B, as in e4m3,e2m1", value,
		                 options[OPTION_IN].choices);
	return EXIT_OK;
}

static int read_mma(gemm_request *q, const char *value)
{
	static const char *const names[] = {
		[CPTX_GEMM_SYNC] = "sync", [CPTX_GEMM_WGMMA] = "wgmma", [CPTX_GEMM_TCGEN05] = "tcgen05"
	};

	for (q->o.mma = 0; q->o.mma < CPTX_GEMM_MMAS; q->o.mma++)
		if (!strcmp(value, names[q->o.mma]))
			return EXIT_OK;
	return bad_value(q, OPTION_MMA, value, "expected tcgen05, wgmma or sync");
}

static int read_kind(gemm_request *q, const char *value)
{
	for (q->kind = 0; q->kind < CPTX_TCGEN05_KINDS; q->kind++)
		if (!strcmp(value, cptx_tcgen05_kind_name(q->kind)))
			return EXIT_OK;
	return bad_value(q, OPTION_KIND, value, "expected f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4 or mxf4nvf4");
}

static int read_type(gemm_request *q, int option, const char *value)
{
	enum cptx_type t = cptx_type_find(value);

	if (option == OPTION_OUT && t == CPTX_TYPE_NONE)
		return bad_value(q, option, value, "expected f32, bf16, f16 or s32");
	if (option == OPTION_SCALE && t != CPTX_UE8M0 && t != CPTX_UE4M3)
		return bad_value(q, option, value, "expected ue8m0 or ue4m3");
	*(option == OPTION_OUT ? &q->o.out : &q->o.scale) = t;
	return EXIT_OK;
}

/* alpha or beta. */
static int read_factor(gemm_request *q, int option, const char *value)
{
	char *end;
	float v = strtof(value, &end);

	if (!*value || *end || isspace((unsigned char)*value) || !isfinite(v))
		return bad_value(q, option, value, "expected a number, as in 0.5");
	if (option == OPTION_ALPHA)
		q->o.alpha = true, q->problem.alpha = v;
	else
		q->o.beta = true, q->problem.beta = v;
	return EXIT_OK;
}

static int read_option(gemm_request *q, int option, const char *value)
{
	q->seen |= 1u << option;
	if ((size_t)option < sizeof dims / sizeof *dims && dims[option].n)
		return read_dims(q, option, value);
	switch (option) {
	case OPTION_ARCH: q->arch = value; break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_TIMELINE: q->timeline = value; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->problem.load.compiler);
	case OPTION_IN: return read_in(q, value);
	case OPTION_MMA: return read_mma(q, value);
	case OPTION_KIND: return read_kind(q, value);
	case OPTION_OUT:
	case OPTION_SCALE: return read_type(q, option, value);
	case OPTION_LAYOUT:
		if (strlen(value) != 2 || strspn(value, "tn") != 2)
			return bad_value(q, option, value, "expected tt, tn, nt or nn");
		q->o.a_m_major = value[0] == 'n', q->o.b_n_major = value[1] == 'n';
		break;
	case OPTION_ALPHA:
	case OPTION_BETA: return read_factor(q, option, value);
	case OPTION_BIAS: q->o.bias = true; break;
	case OPTION_STREAM_K: q->o.stream_k = true; break;
	case OPTION_SWAP: q->o.swap = true; break;
	case OPTION_GROUPED: q->o.grouped = true; break;
	case OPTION_A_TMEM: q->o.a_tmem = true; break;
	default: break; /* takes none, and was seen */
	}
	return EXIT_OK;
}

static void print_module(const gemm_request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	const cptx_gemm_opt *o = &q->o;
	char shape[200];

	gemm_text(o, shape, sizeof shape);
	fprintf(out, "kernel   D[M][N] %s = %s %s * %s %s, %s\n", cptx_type_name(o->out), o->a_m_major ? "A[K][M]^T" : "A[M][K]",
	        cptx_type_name(o->a), o->b_n_major ? "B[K][N]" : "B[N][K]^T", cptx_type_name(o->b), shape);
	fprintf(out, "PTX      %s, %zu bytes, %zu instructions, .version %u.%u, %s\n",
	        !q->output               ? "not kept (-o FILE keeps it)"
	        : strcmp(q->output, "-") ? q->output
	                                 : "standard output",
	        cptx_ptx_size(ptx), cptx_module_size(m), cptx_ptx_version(ptx) / 10, cptx_ptx_version(ptx) % 10,
	        cptx_ptx_target(ptx)->name);
}

static int run_on(const gemm_request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	const gemm_problem *p = &q->problem;
	gemm_report r;
	cptx_error err;

	if (!gemm_check(dev, m, &q->o, p, &r, &err))
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "device   %s (%s): ", cptx_device_get_info(dev)->name, cptx_device_get_info(dev)->target);
	if (r.resources.regs) /* the emulator compiles nothing */
		fprintf(out, "%u registers, %u bytes of local memory, ", r.resources.regs, r.resources.local_bytes);
	fprintf(out, "%u CTAs on %u multiprocessors\n", r.grid, cptx_device_get_info(dev)->sms);
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

/* Without a GPU: what can still be said. */
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
	if (p->batch > MATRICES)
		fprintf(out, "emulator %u matrices are too many for it: cut to %d\n", p->batch, MATRICES);
	if (p->m > MOST || p->n > MOST || p->k > MOST)
		fprintf(out, "emulator %llux%llux%llu is too much for it: each is cut to %d\n", (unsigned long long)p->m,
		        (unsigned long long)p->n, (unsigned long long)p->k, MOST);
	p->m = p->m > MOST ? MOST : p->m;
	p->n = p->n > MOST ? MOST : p->n;
	p->k = p->k > MOST ? MOST : p->k;
	p->batch = p->batch > MATRICES ? MATRICES : p->batch;
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
			return cli_usage(q->cmd, "--%s is of a run: say --run MxNxK too", options[of_a_run[i]].name);
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
	if (p->k % 4)
		return cli_usage(q->cmd, "K = %llu; --run compares where it is a multiple of 4 (pad to %llu)",
		                 (unsigned long long)p->k, (unsigned long long)(p->k + 3) / 4 * 4);
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
		               .o = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 },
		               .problem = { .seed = 1, .bursts = 11 } };
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
		"is the best for the problem of --run or --explain by a model (of mma.sync without --scale the tuned one), else "
		"for\n"
		"4096 cubed. Rows must be multiples of 16 bytes.\n"
		"--run draws operands in their types and layouts, packed and with scale factors where the kind has them, and\n"
		"compares every element with sums in f64; on the emulator (--device emu:sm_100a), or where there is no GPU, a "
		"small\n"
		"problem. With --batch N it is N matrices, with --grouped a list of three: the problem, one of half as many rows,\n"
		"one of 16 rows. Of e4m3 and e5m2, of whose sums wgmma keeps 13 bits, operands are whole numbers from -2 to 2.\n"
		"It compares no K that is not a multiple of 4.\n"
		"What limits a shape (shared memory, registers, divisibility) is named when it is broken.\n\n"
		"  cptx gemm -a sm_80 -t 128x128x32 -w 2x2 -s 4 -o gemm.ptx\n"
		"  cptx gemm --in f16 --out f16 --run 8192x8192x8192\n"
		"  cptx gemm -a sm_90a --explain 128x10240x8192\n"
		"  cptx gemm -a sm_100a --in e2m1 --scale ue4m3 --out bf16 -o fp4.ptx\n"
		"  cptx gemm -d emu:sm_100a --kind mxf4nvf4 --run 64x64x256\n"
		"  cptx gemm -a sm_120a --kind mxf8f6f4 --in e4m3,e2m1 --out bf16 --tile 128x64x128 --warps 2x2\n",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.run = run,
};
