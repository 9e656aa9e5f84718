/* SPDX-License-Identifier: MIT */
/* cptx attention-backward: generates the kernels of attention backward for a head size, prints them, and runs them where
 * there is a GPU. */
#include "attention/values.h"
#include "cli/cli.h"
#include "cli/compiling.h"
#include "cli/fields.h"
#include "reference/backward_check.h"

#include <getopt.h>
#include <string.h>

enum { HEADS = 8, BURSTS = 11 };
/* Multiply-adds of the reference beyond which not all rows are compared. */
#define MOST_WORK 3e9

enum {
#define BACKWARD_OPTION(ID, name, letter, argument, shape, help, choices, expected) OPTION_##ID,
#include "attention/backward/options.def"
	BACKWARD_OPTIONS, /* how many are in the list of the generator */
	OPTION_HEADS = BACKWARD_OPTIONS,
	OPTION_KV_HEADS,
	OPTION_SCALE,
	OPTION_ARCH,
	OPTION_OUTPUT,
	OPTION_RUN,
	OPTION_DEVICE,
	OPTION_COMPILER,
	OPTIONS,
	OPTION_INSIDE = -1
};

static const cli_option options[OPTIONS] = {
#define BACKWARD_OPTION(ID, name, letter, argument, shape, help, choices, expected)                                         \
	[OPTION_##ID] = { name, letter, argument, help, choices },
#include "attention/backward/options.def"
	[OPTION_HEADS] = { "heads", 'H', "N", "heads of Q; default 8", "8 16 32 64" },
	[OPTION_KV_HEADS] = { "kv-heads", 'k', "N", "heads of K and V, which divide those of Q; default: as many", "1 8" },
	[OPTION_SCALE] = { "scale", 'x', "X", "what scores are multiplied by; default 1 / sqrt(dim)", NULL },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "BxQxK",
	                 "run random batches x queries x keys, on a GPU or the emulator, and compare; a GPU is timed",
	                 "1x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0 emu:sm_90a" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
};

enum shape { OWN, DIMS, FLAG, TYPE, MMA };
static const struct {
	enum shape shape;
	const char *expected;
} values[BACKWARD_OPTIONS] = {
#define BACKWARD_OPTION(ID, name, letter, argument, shape, help, choices, expected) [OPTION_##ID] = { shape, expected },
#include "attention/backward/options.def"
};

static const cli_field fields[] = {
#define BACKWARD_FIELD(ID, field, type, least, most, step, about)                                                           \
	{ OPTION_##ID, offsetof(cptx_attention_backward_opt, field), least, most, step, 0 },
#include "attention/backward/options.def"
};

typedef struct request {
	const cli_command *cmd;
	uint32_t seen; /* 1 << OPTION_ of all that were given */
	cptx_attention_backward_opt o;
	const char *arch, *output, *device;
	backward_trial trial;
} request;

static bool asked(const request *q, int option) { return q->seen >> option & 1; }

/* ---- reading ---- */

/* Keys in front of the query and behind it. */
static bool read_window(request *q, const char *value)
{
	cptx_attention_backward_problem *p = &q->trial.p;
	uint64_t d[2] = { 0, 0 };

	if (!number_dims(value, d, 1, UINT32_MAX) && !number_dims(value, d, 2, UINT32_MAX))
		return false;
	p->window_left = (uint32_t)d[0], p->window_right = (uint32_t)d[1];
	return q->o.window = true;
}

static bool read_mma(request *q, const char *value)
{
	q->o.mma = strcmp(value, "wgmma") ? CPTX_ATTENTION_SYNC : CPTX_ATTENTION_WGMMA;
	return !strcmp(value, "wgmma") || !strcmp(value, "sync");
}

static bool read_listed(request *q, int option, const char *value)
{
	size_t n;
	const cli_field *f = cli_fields_of(fields, sizeof fields / sizeof *fields, option, &n);

	switch (values[option].shape) {
	case DIMS: return cli_read_numbers(&q->o, f, n, value);
	case FLAG: return *(bool *)cli_field_at(&q->o, f) = true;
	case TYPE: return (*(enum cptx_type *)cli_field_at(&q->o, f) = cptx_type_find(value)) != CPTX_TYPE_NONE;
	case MMA: return read_mma(q, value);
	default: break;
	}
	return option == OPTION_WINDOW ? read_window(q, value) : (q->o.softcap = attention_number(value, &q->trial.p.softcap));
}

/* What a wrong value is answered with; NULL: it was right. */
static const char *read_value(request *q, int option, const char *value)
{
	cptx_attention_backward_problem *p = &q->trial.p;
	static const char heads[] = "expected a number of heads, 1 to 65535";

	switch (option) {
	case OPTION_HEADS: return attention_count(value, UINT16_MAX, &p->heads) ? NULL : heads;
	case OPTION_KV_HEADS: return attention_count(value, UINT16_MAX, &p->kv_heads) ? NULL : heads;
	case OPTION_SCALE: return attention_number(value, &p->scale) ? NULL : "expected a number above 0, as in 0.125";
	case OPTION_RUN:
		return attention_sizes(value, &p->batch, &p->queries, &p->keys)
		           ? NULL
		           : "expected three numbers from 1 on, as in 1x4096x4096";
	case OPTION_ARCH: q->arch = value; return NULL;
	case OPTION_OUTPUT: q->output = value; return NULL;
	case OPTION_DEVICE: q->device = value; return NULL;
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

/* Rows of each head that a host can compare in some seconds; 0: all. */
static uint32_t rows_to_compare(const request *q)
{
	const cptx_attention_backward_problem *p = &q->trial.p;
	const double rows = 8.0 * p->batch * p->heads * q->o.dim * ((double)p->queries + p->keys), all = rows * p->queries;

	return all <= MOST_WORK ? 0 : (uint32_t)(MOST_WORK / rows) + 1;
}

static int run_on(request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	backward_report rep;
	cptx_error err = { 0 };

	q->trial.rows = rows_to_compare(q);
	if (!backward_trial_run(dev, m, &q->o, &q->trial, &rep, &err))
		return cli_failed(q->cmd, "%s", err.text);
	compiling_print_device(out, cptx_device_get_info(dev), &rep.r.resources, rep.plan.grid);
	fprintf(out, ", %u bytes of shared memory\n", rep.plan.smem);
	backward_report_text(&rep, err.text, sizeof err.text);
	if (rep.r.wrong)
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "check    %s\n", err.text);
	if (rep.r.ms > 0)
		fprintf(out, "time     %.4f ms (%.4f + %.4f + %.4f), %.1f TFLOP/s (median of %u bursts)\n", rep.r.ms, rep.ms[0],
		        rep.ms[1], rep.ms[2], 1e-9 * rep.plan.flop / rep.r.ms, q->trial.bursts);
	return cli_flush(q->cmd, EXIT_OK);
}

static int build(request *q, cptx_device *dev, const cptx_target *target, FILE *out)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx = cptx_attention_backward_build(m, &q->o, &err) ? cptx_emit(m, target->name, NULL, &err) : NULL;
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
	FILE *out = q->output && !strcmp(q->output, "-") ? stderr : stdout; /* so that PTX on stdout stays clean */
	cptx_error err = { 0 };

	if (!target)
		return EXIT_USAGE;
	backward_trial_complete(&q->trial, &q->o);
	if (!asked(q, OPTION_MMA) && cptx_attention_mma_of(target) == CPTX_ATTENTION_WGMMA)
		q->o.mma = CPTX_ATTENTION_WGMMA;
	if (!cptx_attention_backward_check(&q->o, target, NULL, &err))
		return cli_refused(q->cmd, &err);
	if (info && !cptx_attention_backward_check(&q->o, cptx_target_find(info->target), NULL, &err))
		return cli_usage(q->cmd, "device %s cannot run it: %s", q->device ? q->device : "cuda:0", err.text);
	if (dev && !cptx_attention_backward_check_problem(&q->o, &q->trial.p, NULL, &err))
		return cli_refused(q->cmd, &err);
	const int status = build(q, dev, target, out);
	return status ? status : cli_flush(q->cmd, EXIT_OK);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd,
		          .o = { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .in = CPTX_BF16, .dim = 128 },
		          .trial = { .seed = 1, .bursts = BURSTS } };
	cptx_error err = { 0 };
	const char *value;
	int status = EXIT_OK;

	q.trial.p = (cptx_attention_backward_problem){ .size = CPTX_OPT_SIZE(cptx_attention_backward_problem), .heads = HEADS };
	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = read_option(&q, option, value)))
			return status;
	}
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'? The command takes options only", argv[optind]);
	if (!asked(&q, OPTION_RUN) && (asked(&q, OPTION_DEVICE) || asked(&q, OPTION_COMPILER)))
		return cli_usage(cmd, "--%s is of a run: say --run BxQxK too", asked(&q, OPTION_DEVICE) ? "device" : "compiler");
	cptx_device *dev = asked(&q, OPTION_RUN) ? cptx_device_open(q.device, &err) : NULL;
	if (asked(&q, OPTION_RUN) && !dev)
		return cli_refused(cmd, &err);
	status = generate(&q, dev);
	cptx_device_close(dev);
	return status;
}

const cli_command cmd_attention_backward = {
	.name = "attention-backward",
	.arguments = "[OPTION]...",
	.about = "Generates attention backward, dQ, dK and dV, as PTX; --run checks and times it.",
	.details = "Q, O and dO are batch x heads x queries x dim, K and V are batch x kv-heads x keys x dim. Three kernels run "
			   "behind\n"
			   "one another; <cptx/attention_backward.h> says what they can. --run draws random operands and compares the\n"
			   "gradients with a reference in f64: all elements, or of large problems those of rows drawn at random.\n\n"
			   "  cptx attention-backward -a sm_80 --dim 64 --causal --deterministic -o backward.ptx\n"
			   "  cptx attention-backward --device emu:sm_90a --heads 4 --kv-heads 2 --dim 64 --causal --run 2x131x200\n"
			   "  cptx attention-backward --heads 16 --causal --run 2x4096x4096\n",
	.options = options,
	.noption = OPTIONS,
	.run = run,
};
