/* SPDX-License-Identifier: MIT */
/* cptx attention: generates the attention kernel of a head size, prints it, and runs it where there is a GPU. */
#include "attention/request.h"
#include "cli/compiling.h"

#include <cptx/emu.h>

#include <getopt.h>
#include <string.h>

enum { HEADS = 8, CHOICES = 12, BURSTS = 11 };
/* Multiply-adds of the reference beyond which not all rows are compared. */
#define MOST_WORK 3e9

static void print_module(const attention_request *q, const cptx_module *m, const cptx_ptx *ptx, FILE *out)
{
	char text[500];

	attention_options_text(q, text, sizeof text);
	fprintf(out, "options  %s\n", text);
	compiling_print_ptx(out, m, ptx, q->output);
}

/* Rows of each head that a host can compare in some seconds; 0: all. */
static uint32_t rows_to_compare(const attention_request *q)
{
	const cptx_attention_problem *p = &q->trial.p;
	const double row = (double)p->batch * p->heads * p->keys * (q->o.dim + (q->o.dim_v ? q->o.dim_v : q->o.dim));

	return row * p->queries <= MOST_WORK ? 0 : (uint32_t)(MOST_WORK / row) + 1;
}

static int run_on(attention_request *q, cptx_device *dev, cptx_module *m, FILE *out)
{
	attention_report r;
	cptx_error err = { 0 };

	q->trial.rows = rows_to_compare(q);
	if (!attention_trial_run(dev, m, &q->o, &q->trial, &r, &err))
		return cli_failed(q->cmd, "%s", err.text);
	compiling_print_device(out, cptx_device_get_info(dev), &r.resources, r.plan.grid);
	fprintf(out, ", %u bytes of shared memory\n", r.plan.smem);
	attention_report_text(&r, err.text, sizeof err.text);
	if (r.wrong)
		return cli_failed(q->cmd, "%s", err.text);
	fprintf(out, "check    %s\n", err.text);
	if (r.ms > 0)
		fprintf(out, "time     %.4f ms, %.1f TFLOP/s (median of %u bursts)\n", r.ms, 1e-9 * r.plan.flop / r.ms,
		        q->trial.bursts);
	return cli_flush(q->cmd, EXIT_OK);
}

/* Shapes that were not given: of the kernel the usual ones, or for --explain the best of the model. */
static int explain(const attention_request *q, uint32_t sms, FILE *out)
{
	cptx_attention_choice c[CHOICES];
	cptx_attention_plan plan;
	cptx_error err = { 0 };
	const size_t n = cptx_attention_auto(&q->o, &q->trial.p, sms, c, CHOICES, &err);

	if (!n)
		return cli_refused(q->cmd, &err);
	fprintf(out, "model: H200, not fitted to measurements yet; %u multiprocessors\n", sms);
	fprintf(out, "%9s %9s %9s %7s %6s  %s\n", "us", "mma us", "soft us", "masked", "idle", "shape");
	for (size_t i = 0; i < n; i++) {
		const cptx_attention_opt *o = &c[i].opt;
		cptx_attention_check_problem(o, &q->trial.p, sms, &plan, NULL);
		fprintf(out, "%9.1f %9.1f %9.1f %6.1f%% %5.1f%%  %ux%u, %u stages, %u warpgroups, %u bytes of shared memory",
		        c[i].us, c[i].mma_us, c[i].softmax_us, 100 * c[i].waste, 100 * c[i].tail, o->bq, o->bk, o->stages,
		        plan.groups, plan.smem);
		if (o->pack > 1)
			fprintf(out, ", %u heads in a tile", o->pack);
		fputc('\n', out);
	}
	return EXIT_OK;
}

static int build(attention_request *q, cptx_device *dev, const cptx_target *target, FILE *out)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx = cptx_attention_build(m, &q->o, &err)
	                    ? cptx_emit(m, target->name, &(cptx_emit_opt){ .lines = asked(q, OPTION_LINES) }, &err)
	                    : NULL;
	int status = EXIT_OK;

	if (!ptx)
		status = cli_refused(q->cmd, &err);
	else if ((q->output || !dev) && !cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	else if (dev || (q->output && strcmp(q->output, "-")))
		print_module(q, m, ptx, out);
	if (!status && dev)
		status = run_on(q, dev, m, out);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status;
}

static int generate(attention_request *q, cptx_device *dev)
{
	const cptx_device_info *info = dev ? cptx_device_get_info(dev) : NULL;
	const cptx_target *target = cli_target(q->cmd, q->arch ? q->arch : info ? info->target : "sm_90a");
	FILE *out = q->output && !strcmp(q->output, "-") ? stderr : stdout; /* so that PTX on stdout stays clean */
	cptx_error err = { 0 };

	if (!target)
		return EXIT_USAGE;
	if (!asked(q, OPTION_MMA))
		q->o.mma = cptx_attention_mma_of(target);
	if (q->o.mma == CPTX_ATTENTION_TCGEN05 && cptx_attention_has_fast_ex2(target))
		q->o.fast_ex2 = true;
	if (!cptx_attention_check(&q->o, target, NULL, &err))
		return cli_refused(q->cmd, &err);
	attention_trial_complete(&q->trial, &q->o);
	if (dev && !cptx_attention_check_problem(&q->o, &q->trial.p, info->sms, NULL, &err))
		return cli_refused(q->cmd, &err);
	if (info && !cptx_attention_check(&q->o, cptx_target_find(info->target), NULL, &err))
		return cli_usage(q->cmd, "device %s cannot run it: %s", q->device ? q->device : "cuda:0", err.text);
	int status = asked(q, OPTION_EXPLAIN) ? explain(q, info ? info->sms : 132, out) : EXIT_OK;
	if (!status && (!asked(q, OPTION_EXPLAIN) || q->output || dev))
		status = build(q, dev, target, out);
	return status ? status : cli_flush(q->cmd, EXIT_OK);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	attention_request q = { .cmd = cmd,
		                    .o = { .size = CPTX_OPT_SIZE(cptx_attention_opt), .in = CPTX_BF16, .dim = 128 },
		                    .trial = { .seed = 1, .bursts = BURSTS } };
	cptx_error err = { 0 };
	const char *value;
	int status = EXIT_OK;

	q.trial.p = (cptx_attention_problem){ .size = CPTX_OPT_SIZE(cptx_attention_problem), .heads = HEADS };
	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = attention_option_read(&q, option, value)))
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

const cli_command cmd_attention = {
	.name = "attention",
	.arguments = "[OPTION]...",
	.about = "Generates attention forward, O = softmax(scale * Q * K^T) * V, as PTX; --run checks and times it.",
	.details = "Q is batch x heads x queries x dim, K and V are batch x kv-heads x keys x dim. The kernel takes the sizes,\n"
			   "strides and numbers as arguments; <cptx/attention.h> says what it can.\n"
			   "--run draws random operands and compares O (and LSE) with a reference in f64: all elements, or of large\n"
			   "problems those of rows drawn at random.\n\n"
			   "  cptx attention -a sm_90a --dim 128 --causal -o attention.ptx\n"
			   "  cptx attention --device emu:sm_90a --heads 4 --kv-heads 2 --dim 64 --causal --run 2x131x200\n"
			   "  cptx attention --heads 64 --kv-heads 8 --causal --run 1x8192x8192\n"
			   "  cptx attention --heads 64 --kv-heads 8 --causal --explain 1x8192x8192\n",
	.options = attention_options,
	.noption = OPTIONS,
	.run = run,
};
