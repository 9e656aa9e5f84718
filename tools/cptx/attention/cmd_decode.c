/* SPDX-License-Identifier: MIT */
/* cptx attention-decode: generates the kernels of decoding for a head size, prints them, and runs them where there is a GPU.
 */
#include "attention/values.h"
#include "cli/cli.h"
#include "cli/compiling.h"
#include "cli/fields.h"
#include "reference/decode_check.h"

#include <getopt.h>
#include <string.h>

enum { HEADS = 32, KV_HEADS = 8, MLA_DIM = 576, MLA_DIM_V = 512, CHOICES = 12, BURSTS = 11 };
/* Multiply-adds of the reference beyond which not all heads are compared. */
#define MOST_WORK 3e9

enum {
#define DECODE_OPTION(ID, name, letter, argument, shape, help, choices, expected) OPTION_##ID,
#include "attention/decode/options.def"
	DECODE_OPTIONS, /* how many are in the list of the generator */
	OPTION_HEADS = DECODE_OPTIONS,
	OPTION_KV_HEADS,
	OPTION_SCALE,
	OPTION_SPLITS,
	OPTION_RAGGED,
	OPTION_ARCH,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_EXPLAIN,
	OPTION_COMPILER,
	OPTIONS,
	OPTION_INSIDE = -1
};

static const cli_option options[OPTIONS] = {
#define DECODE_OPTION(ID, name, letter, argument, shape, help, choices, expected)                                           \
	[OPTION_##ID] = { name, letter, argument, help, choices },
#include "attention/decode/options.def"
	[OPTION_HEADS] = { "heads", 'H', "N", "heads of Q; default 32", "32 64" },
	[OPTION_KV_HEADS] = { "kv-heads", 'k', "N", "heads of K and V, which divide those of Q; default 8, with --mla 1",
	                      "1 8" },
	[OPTION_SCALE] = { "scale", 'x', "X", "what scores are multiplied by; default 1 / sqrt(dim)", NULL },
	[OPTION_SPLITS] = { "splits", 'n', "N", "chunks of the keys of a sequence; default: by a model", "1 2 4 8" },
	[OPTION_RAGGED] = { "ragged", 'R', NULL, "sequences have random lengths, up to the keys of --run", NULL },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "BxQxK",
	                 "run random sequences x queries x keys, on a GPU or the emulator, and compare; a GPU is timed",
	                 "16x1x8192" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0 emu:sm_90a" },
	[OPTION_EXPLAIN] = { "explain", 'e', "BxQxK", "the best shapes and splits for such a problem by a model, and why",
	                     "16x1x8192" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
};

enum shape { OWN, DIMS, FLAG, TYPE };
static const struct {
	enum shape shape;
	const char *expected;
} values[DECODE_OPTIONS] = {
#define DECODE_OPTION(ID, name, letter, argument, shape, help, choices, expected) [OPTION_##ID] = { shape, expected },
#include "attention/decode/options.def"
};

static const cli_field fields[] = {
#define DECODE_FIELD(ID, field, type, least, most, step, about)                                                             \
	{ OPTION_##ID, offsetof(cptx_attention_decode_opt, field), least, most, step, 0 },
#include "attention/decode/options.def"
};

typedef struct request {
	const cli_command *cmd;
	uint32_t seen; /* 1 << OPTION_ of all that were given */
	cptx_attention_decode_opt o;
	const char *arch, *output, *device;
	decode_trial trial;
} request;

static bool asked(const request *q, int option) { return q->seen >> option & 1; }

/* ---- reading ---- */

/* An option that asks for something of the kernel and has a value for the run. */
static bool read_own(request *q, int option, const char *value)
{
	cptx_attention_decode_problem *p = &q->trial.p;

	switch (option) {
	case OPTION_SOFTCAP: return (q->o.softcap = attention_number(value, &p->softcap));
	case OPTION_PAGED: return (q->o.paged = attention_count(value, UINT32_MAX, &p->page));
	default: return (q->o.window = attention_count(value, UINT32_MAX, &p->window_left));
	}
}

static bool read_listed(request *q, int option, const char *value)
{
	size_t n;
	const cli_field *f = cli_fields_of(fields, sizeof fields / sizeof *fields, option, &n);

	switch (values[option].shape) {
	case DIMS: return cli_read_numbers(&q->o, f, n, value);
	case FLAG: return *(bool *)cli_field_at(&q->o, f) = true;
	case TYPE: return (*(enum cptx_type *)cli_field_at(&q->o, f) = cptx_type_find(value)) != CPTX_TYPE_NONE;
	default: return read_own(q, option, value);
	}
}

/* What a wrong value is answered with; NULL: it was right. */
static const char *read_value(request *q, int option, const char *value)
{
	cptx_attention_decode_problem *p = &q->trial.p;

	switch (option) {
	case OPTION_HEADS:
		return attention_count(value, UINT16_MAX, &p->heads) ? NULL : "expected a number of heads, 1 to 65535";
	case OPTION_KV_HEADS:
		return attention_count(value, UINT16_MAX, &p->kv_heads) ? NULL : "expected a number of heads, 1 to 65535";
	case OPTION_SPLITS: return attention_count(value, 256, &p->splits) ? NULL : "expected a number from 1 to 256";
	case OPTION_SCALE: return attention_number(value, &p->scale) ? NULL : "expected a number above 0, as in 0.125";
	case OPTION_RUN:
	case OPTION_EXPLAIN:
		return attention_sizes(value, &p->batch, &p->queries, &p->keys)
		           ? NULL
		           : "expected three numbers from 1 on, as in 16x1x8192";
	case OPTION_ARCH: q->arch = value; return NULL;
	case OPTION_OUTPUT: q->output = value; return NULL;
	case OPTION_DEVICE: q->device = value; return NULL;
	case OPTION_RAGGED: q->trial.ragged = true; return NULL;
	default: return read_listed(q, option, value) ? NULL : values[option].expected;
	}
}

static int read_option(request *q, int option, const char *value)
{
	q->seen |= 1u << option;
	if (option == OPTION_COMPILER)
		return compiling_named(q->cmd, value, &q->trial.load.compiler);
	const char *right = read_value(q, option, value);
	return right ? cli_bad_value(q->cmd, (size_t)option, value, right) : EXIT_OK;
}

/* ---- what is asked for ---- */

/* Heads of each sequence that a host can compare in some seconds; 0: all. */
static uint32_t heads_to_compare(const request *q)
{
	const cptx_attention_decode_problem *p = &q->trial.p;
	const double head = (double)p->batch * p->queries * p->keys * (q->o.dim + (q->o.dim_v ? q->o.dim_v : q->o.dim));

	return head * p->heads <= MOST_WORK ? 0 : (uint32_t)(MOST_WORK / head) + 1;
}

static int run_on(request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	decode_report rep;
	cptx_error err = { 0 };

	q->trial.heads = heads_to_compare(q);
	if (!decode_trial_run(dev, m, &q->o, &q->trial, &rep, &err))
		return cli_failed(q->cmd, "%s", err.text);
	compiling_print_device(out, cptx_device_get_info(dev), &rep.r.resources, rep.plan.grid);
	fprintf(out, ", %u bytes of shared memory, %u chunks of %u keys\n", rep.plan.smem, rep.plan.splits, rep.plan.chunk);
	attention_report_text(&rep.r, err.text, sizeof err.text);
	if (rep.r.wrong)
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "check    %s\n", err.text);
	if (rep.r.ms > 0)
		fprintf(out, "time     %.4f ms (%.4f to combine), %.0f GB/s of K and V (median of %u bursts)\n", rep.r.ms, rep.ms[1],
		        1e-6 * (double)rep.plan.bytes / rep.r.ms, q->trial.bursts);
	return cli_flush(q->cmd, EXIT_OK);
}

static int explain(const request *q, const cptx_target *target, uint32_t sms, FILE *out)
{
	cptx_attention_decode_choice c[CHOICES];
	cptx_error err = { 0 };
	const size_t n = cptx_attention_decode_auto(&q->o, &q->trial.p, target, sms, c, CHOICES, &err);

	if (!n)
		return cli_refused(q->cmd, &err);
	fprintf(out, "model: H200; %u multiprocessors\n", sms);
	fprintf(out, "%9s %8s %7s %7s %9s  %s\n", "us", "combine", "CTAs", "waves", "in flight", "shape, stages, chunks");
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%9.1f %8.1f %7u %7.2f %9.0f  %ux%ux%u, %u, %u of %u keys; %u CTAs on a multiprocessor\n", c[i].us,
		        c[i].combine_us, c[i].grid, c[i].waves, c[i].in_flight, c[i].opt.rows, c[i].opt.bk, c[i].opt.warps,
		        c[i].opt.stages, c[i].splits, c[i].chunk, c[i].ctas_per_sm);
	return EXIT_OK;
}

/* The model's shape where none was given and there is a problem. */
static bool choose(request *q, const cptx_target *target, uint32_t sms, cptx_error *err)
{
	cptx_attention_decode_choice c;

	if (!cptx_attention_decode_auto(&q->o, &q->trial.p, target, sms, &c, 1, err))
		return false;
	q->o = c.opt;
	q->trial.p.splits = c.splits;
	return true;
}

static int build(request *q, cptx_device *dev, const cptx_target *target, FILE *out)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx = cptx_attention_decode_build(m, &q->o, &err) ? cptx_emit(m, target->name, NULL, &err) : NULL;
	int status = EXIT_OK;

	if (!ptx)
		status = cli_refused(q->cmd, &err);
	else if ((q->output || !dev) && !cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	else if (dev || (q->output && strcmp(q->output, "-")))
		compiling_print_ptx(out, m, ptx, q->output);
	if (!status && dev)
		status = run_on(q, dev, m, out);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status;
}

static int generate(request *q, cptx_device *dev)
{
	const cptx_device_info *info = dev ? cptx_device_get_info(dev) : NULL;
	const cptx_target *target = cli_target(q->cmd, q->arch ? q->arch : info ? info->target : "sm_90a");
	const uint32_t sms = info ? info->sms : 132;
	FILE *out = q->output && !strcmp(q->output, "-") ? stderr : stdout; /* so that PTX on stdout stays clean */
	cptx_error err = { 0 };
	int status = EXIT_OK;

	if (!target)
		return EXIT_USAGE;
	if (!cptx_attention_decode_check(&q->o, target, NULL, &err))
		return cli_refused(q->cmd, &err);
	if (info && !cptx_attention_decode_check(&q->o, cptx_target_find(info->target), NULL, &err))
		return cli_usage(q->cmd, "device %s cannot run it: %s", q->device ? q->device : "cuda:0", err.text);
	if (asked(q, OPTION_EXPLAIN))
		status = explain(q, target, sms, out);
	if (!status && dev && !choose(q, target, sms, &err))
		status = cli_refused(q->cmd, &err);
	if (!status && (!asked(q, OPTION_EXPLAIN) || q->output || dev))
		status = build(q, dev, target, out);
	return status ? status : cli_flush(q->cmd, EXIT_OK);
}

/* What --mla changes of what is usual. */
static void complete(request *q)
{
	if (!q->o.mla)
		return;
	q->o.dim = asked(q, OPTION_DIM) ? q->o.dim : MLA_DIM;
	q->o.dim_v = asked(q, OPTION_DIM_V) ? q->o.dim_v : MLA_DIM_V;
	q->trial.p.kv_heads = asked(q, OPTION_KV_HEADS) ? q->trial.p.kv_heads : 1;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd, .o = { .in = CPTX_BF16, .dim = 128 }, .trial = { .seed = 1, .bursts = BURSTS } };
	cptx_error err = { 0 };
	const char *value;
	int status = EXIT_OK;

	q.trial.p = (cptx_attention_decode_problem){ .heads = HEADS, .kv_heads = KV_HEADS };
	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = read_option(&q, option, value)))
			return status;
	}
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'? The command takes options only", argv[optind]);
	complete(&q);
	if (!asked(&q, OPTION_RUN) && (asked(&q, OPTION_DEVICE) || asked(&q, OPTION_COMPILER)))
		return cli_usage(cmd, "--%s is of a run: say --run BxQxK too", asked(&q, OPTION_DEVICE) ? "device" : "compiler");
	cptx_device *dev = asked(&q, OPTION_RUN) ? cptx_device_open(q.device, &err) : NULL;
	if (asked(&q, OPTION_RUN) && !dev)
		return cli_refused(cmd, &err);
	status = generate(&q, dev);
	cptx_device_close(dev);
	return status;
}

const cli_command cmd_attention_decode = {
	.name = "attention-decode",
	.arguments = "[OPTION]...",
	.about = "Generates attention for few queries against long caches, as PTX; --run checks and times it.",
	.details =
		"Q is batch x heads x queries x dim, K and V are batch x kv-heads x keys x dim, or lie in pages. The keys of a\n"
		"sequence are split over CTAs, and a second kernel puts their results together; <cptx/attention_decode.h> says\n"
		"what they can. --run draws random operands and compares O (and LSE) with a reference in f64.\n\n"
		"  cptx attention-decode -a sm_80 --dim 128 --paged 16 -o decode.ptx\n"
		"  cptx attention-decode --device emu:sm_90a --heads 8 --kv-heads 2 --dim 64 --ragged --run 3x1x500\n"
		"  cptx attention-decode --heads 64 --kv-heads 8 --run 16x1x8192\n"
		"  cptx attention-decode --heads 64 --kv-heads 8 --explain 16x1x8192\n",
	.options = options,
	.noption = OPTIONS,
	.run = run,
};
