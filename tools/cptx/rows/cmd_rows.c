/* SPDX-License-Identifier: MIT */
/* cptx rows: row kernels as PTX; runs them and compares every element with f64. */
#include "cli/compiling.h"
#include "reference/number.h"
#include "reference/rows_check.h"

#include <cptx/emu.h>

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names of places, with a space in front of each. */
static const char places[] = ""
#define ROWS_PLACE(ID, name, about) " " name
#include <cptx/rows.def>
	;

enum {
	OPTION_RUN,
	OPTION_FOR,
	OPTION_BACKWARD,
	OPTION_EXPLAIN,
#define ROWS_ARGUMENT(ID, name, letter, argument, help, choices) OPTION_##ID,
#include "rows/options.def"
	OPTION_BANDWIDTH,
	OPTION_PAD,
	OPTION_IN_PLACE,
	OPTION_ARCH,
	OPTION_DEVICE,
	OPTION_OUTPUT,
	OPTION_COMPILER,
	OPTIONS
};
static const cli_option options[OPTIONS] = {
	[OPTION_RUN] = { "run", 'r', "ROWSxCOLS",
	                 "run random rows on a GPU or the emulator; compare every element; a GPU is timed", "4096x8192" },
	[OPTION_FOR] = { "for", 'f', "ROWSxCOLS", "make the kernel for such a matrix without a run", "4096x8192" },
	[OPTION_BACKWARD] = { "backward", 'b', NULL, "the kernel's gradients", NULL },
	[OPTION_EXPLAIN] = { "explain", 'e', NULL, "the best shapes by a model of bytes, CTAs and waves", NULL },
#define ROWS_PLACES &places[1]
#define ROWS_ARGUMENT(ID, name, letter, argument, help, choices) [OPTION_##ID] = { name, letter, argument, help, choices },
#include "rows/options.def"
	[OPTION_BANDWIDTH] = { "bandwidth", 0, "N",
	                       "of the memory, GB/s, for the choice; default: the device's, or its largest GPU's", NULL },
	[OPTION_PAD] = { "pad", 0, "N", "of a run: elements between rows", NULL },
	[OPTION_IN_PLACE] = { "in-place", 0, NULL, "of a run: the result lies where an input does", NULL },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the device, else sm_90a", "@arch" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0, or where there is none emu:sm_90a",
	                    "cuda:0" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output", "@file" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
};

typedef struct request {
	const cli_command *cmd;
	uint32_t seen;
	cptx_rows_opt o;
	rows_case c;
	const char *arch, *device, *output, *with;
} request;

static bool asked(const request *q, int option) { return q->seen >> option & 1; }

/* The fields of cptx_rows_opt that options name, --per-row as per_row. */
static const struct {
	const char *name, *type;
	size_t offset;
} fields[] = {
#define ROWS_FIELD(field, type) { #field, #type, offsetof(cptx_rows_opt, field) },
#include "rows/options.def"
};

static bool read_number(const char *value, float *to)
{
	char *end;

	*to = strtof(value, &end);
	return *value && !*end && isfinite(*to);
}

static bool read_count(const char *value, uint32_t *to)
{
	uint64_t n;
	const bool ok = number_dims(value, &n, 1, UINT32_MAX);

	*to = ok ? (uint32_t)n : 0;
	return ok;
}

static bool read_sizes(request *q, const char *value)
{
	uint64_t d[2];

	if (!number_dims(value, d, 2, UINT32_MAX))
		return false;
	q->c.rows = (uint32_t)d[0], q->o.n = (uint32_t)d[1];
	return true;
}

/* The field with the option's name; false: it does not take the value, or there is none. */
static bool read_field(request *q, int option, const char *value)
{
	char text[80], name[32];
	size_t i = 0;

	snprintf(name, sizeof name, "%s", options[option].name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
	while (i < sizeof fields / sizeof *fields && strcmp(fields[i].name, name) != 0)
		i++;
	if (i == sizeof fields / sizeof *fields)
		return false;
	if (!strcmp(fields[i].type, "F32"))
		return read_number(value, (float *)((char *)&q->o + fields[i].offset));
	const int n = snprintf(text, sizeof text, "%s=%s", name, value ? value : "1");
	return n < (int)sizeof text && !strchr(text, ' ') && cptx_rows_options_read(text, &q->o, NULL);
}

static bool read_label(request *q, const char *value)
{
	char *end;

	q->o.ignore = true, q->o.ignored_label = strtoll(value, &end, 10);
	return *value && !*end;
}

static int read_option(request *q, int option, const char *value)
{
	bool ok = true;

	q->seen |= 1u << option;
	switch (option) {
	case OPTION_RUN:
	case OPTION_FOR: ok = read_sizes(q, value); break;
	case OPTION_WITH: q->with = value; break;
	case OPTION_IGNORE: ok = read_label(q, value); break;
	case OPTION_BANDWIDTH: ok = read_count(value, &q->o.bandwidth); break;
	case OPTION_PAD: ok = read_count(value, &q->c.pad); break;
	case OPTION_IN_PLACE: q->c.in_place = true; break;
	case OPTION_ARCH: q->arch = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->c.load.compiler);
	case OPTION_BACKWARD:
	case OPTION_EXPLAIN: break;
	default: ok = read_field(q, option, value); break;
	}
	return ok ? EXIT_OK
	          : cli_bad_value(q->cmd, (size_t)option, value,
	                          option == OPTION_RUN || option == OPTION_FOR ? "expected rows and columns, as in 4096x8192"
	                          : options[option].choices                    ? options[option].choices
	                                                                       : "expected a number");
}

/* The kernel by its name, and what else it shall have. */
static int complete(request *q, const char *name)
{
	char full[64];
	const uint32_t vectors = 1u << CPTX_ROWS_W | 1u << CPTX_ROWS_B | 1u << CPTX_ROWS_DW | 1u << CPTX_ROWS_DB;

	snprintf(full, sizeof full, "%s%s", name, asked(q, OPTION_BACKWARD) ? "-backward" : "");
	q->o.kernel = cptx_rows_kernel_find(full);
	if (q->o.kernel == CPTX_ROWS_KERNELS || q->o.kernel == CPTX_ROWS_OWN) {
		cli_near near = { .word = full };
		for (int i = 1; i < CPTX_ROWS_KERNELS; i++)
			cli_near_try(&near, cptx_rows_kernel_name((enum cptx_rows_kernel)i));
		return cli_usage(q->cmd, near.best ? "there is no row kernel '%s'; did you mean %s?" : "there is no row kernel '%s'",
		                 full, near.best);
	}
	for (const char *w = q->with; w && *w && strcmp(w, "none") != 0;) {
		char word[32] = "";
		const size_t n = strcspn(w, ",");
		memcpy(word, w, n < sizeof word ? n : 0);
		const enum cptx_rows_operand operand = cptx_rows_operand_find(word);
		if (operand == CPTX_ROWS_OPERANDS)
			return cli_usage(q->cmd, "--with %s: there is no operand '%.*s'", q->with, (int)n, w);
		q->o.with |= CPTX_ROWS_BIT(operand);
		w += n + (w[n] == ',');
	}
	for (unsigned i = 0; !q->with && i < CPTX_ROWS_OPERANDS; i++) { /* what the library does not refuse */
		cptx_rows_opt o = { .kernel = q->o.kernel, .in = CPTX_F32, .n = 1, .with = 1u << i };
		cptx_error err = { .code = CPTX_OK };
		if (vectors >> i & 1 && cptx_rows_check(&o, NULL, 1, 0, NULL, &err))
			q->o.with |= 1u << i;
	}
	return EXIT_OK;
}

static void print_choice(FILE *out, const char *label, const cptx_rows_choice *c)
{
	const cptx_rows_opt *o = &c->opt;

	fprintf(out,
	        "%-8s %9.1f us  %-9s %4u threads, %u a row, %2u CTA%s a row, %u %s, %u rows each; %2u CTAs per SM, %6.1f "
	        "waves, %5.0f KB in flight, "
	        "%u registers\n",
	        label, c->us, cptx_rows_place_name(o->place), o->threads, o->per_row, o->split, o->split > 1 ? "s" : " ",
	        o->chunks ? o->chunks : o->stages, o->chunks ? "chunks" : "stages", o->rows_each, c->ctas_per_sm, c->waves,
	        c->in_flight / 1024, c->regs);
}

static int explain(const request *q, const cptx_target *target, uint32_t sms, FILE *out)
{
	cptx_rows_choice choices[8];
	cptx_error err = { .code = CPTX_OK };
	const size_t n = cptx_rows_auto(&q->o, target, q->c.rows, sms, choices, 8, &err);

	if (!n)
		return cli_refused(q->cmd, &err);
	fprintf(out, "memory   %9.1f us  for its bytes alone\n", choices[0].memory_us);
	for (size_t i = 0; i < n; i++)
		print_choice(out, i ? "" : "chosen", &choices[i]);
	return EXIT_OK;
}

static int run_on(const request *q, cptx_device *dev)
{
	rows_report r;
	cptx_error err = { .code = CPTX_OK };

	if (!rows_check(dev, &q->o, &q->c, &r, &err))
		return cli_refused(q->cmd, &err);
	printf("kernel   %s, %s, %u rows of %u\n", cptx_rows_kernel_name(q->o.kernel), cptx_type_name(q->o.in), q->c.rows,
	       q->o.n);
	printf("shape    %s, %u threads, %u a row, %u CTA%s a row", cptx_rows_place_name(r.plan.place), r.plan.threads,
	       r.plan.per_row, r.plan.split, r.plan.split > 1 ? "s" : "");
	if (r.plan.stages)
		printf(", %u %s, %u rows each, %u bytes of shared memory", r.plan.chunks ? r.plan.chunks : r.plan.stages,
		       r.plan.chunks ? "chunks" : "stages", r.plan.rows_each, r.plan.smem);
	putchar('\n');
	compiling_print_device(stdout, cptx_device_get_info(dev), &r.resources, r.plan.grid);
	putchar('\n');
	rows_report_text(&r, err.text, sizeof err.text);
	if (r.wrong)
		return cli_failed(q->cmd, "%s", err.text);
	printf("check    %s\n", err.text);
	if (r.ms > 0)
		printf("time     %.2f us, %.0f GB/s\n", r.ms * 1e3, (double)r.plan.bytes / r.ms * 1e-6);
	return cli_flush(q->cmd, EXIT_OK);
}

static int print(const request *q, const cptx_target *target, uint32_t sms)
{
	cptx_rows_choice c;
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *ptx = cptx_rows_auto(&q->o, target, q->c.rows, sms, &c, 1, &err) && cptx_rows_build(m, &c.opt, &err)
	                    ? cptx_emit(m, target->name, NULL, &err)
	                    : NULL;
	int status = EXIT_OK;

	if (!ptx)
		status = cli_refused(q->cmd, &err);
	else if (!cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx)))
		status = EXIT_FAILED;
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return status;
}

static cptx_device *open_device(const request *q, cptx_error *err)
{
	cptx_device *dev = cptx_device_open(q->device, err);

	if (dev || q->device || (err->code != CPTX_E_NO_DRIVER && err->code != CPTX_E_NO_DEVICE))
		return dev;
	*err = (cptx_error){ .code = CPTX_OK };
	return cptx_emu_open(q->arch ? q->arch : "sm_90a", NULL, err);
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd, .o = { .in = CPTX_BF16 }, .c = { .seed = 1, .bursts = 11, .drawn = 2048 } };
	cptx_error err = { .code = CPTX_OK };
	const char *value;
	int status = EXIT_OK;

	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		if (option == -2)
			return status;
		if ((status = read_option(&q, option, value)))
			return status;
	}
	if (optind >= argc)
		return cli_usage(cmd, "which kernel? cptx rows --help lists them");
	if (optind + 1 < argc)
		return cli_usage(cmd, "what is '%s'? One kernel at a time", argv[optind + 1]);
	if (!q.c.rows)
		return cli_usage(cmd, "of which size? --run ROWSxCOLS, or --for ROWSxCOLS without a run");
	if ((status = complete(&q, argv[optind])))
		return status;
	cptx_device *dev = asked(&q, OPTION_RUN) ? open_device(&q, &err) : NULL;
	if (asked(&q, OPTION_RUN) && !dev)
		return cli_refused(cmd, &err);
	const cptx_device_info *info = dev ? cptx_device_get_info(dev) : NULL;
	const cptx_target *target = cli_target(cmd, q.arch ? q.arch : info && info->target ? info->target : "sm_90a");
	q.o.bandwidth = q.o.bandwidth ? q.o.bandwidth : cptx_rows_bandwidth(info);
	cptx_emu_counters counters;
	if (dev && cptx_emu_get_counters(dev, &counters)) /* true on an emulator only */
		q.c.bursts = 0;
	status = target ? EXIT_OK : EXIT_USAGE;
	if (!status && asked(&q, OPTION_EXPLAIN))
		status = explain(&q, target, info ? info->sms : 0, q.output && !strcmp(q.output, "-") ? stderr : stdout);
	if (!status && (q.output || (!asked(&q, OPTION_RUN) && !asked(&q, OPTION_EXPLAIN))))
		status = print(&q, target, info ? info->sms : 0);
	if (!status && dev)
		status = run_on(&q, dev);
	cptx_device_close(dev);
	return status ? status : cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_rows = {
	.name = "rows",
	.arguments = "KERNEL [OPTION]...",
	.about = "Generates a kernel over the rows of a matrix, as PTX; --run checks and times it.",
	.details = "kernels:\n"
#define ROWS_KERNEL(ID, name, body, local, reads, writes, may_read, may_write, takes, about) "  " name ": " about "\n"
#include <cptx/rows.def>
			   "\nplaces:\n"
#define ROWS_PLACE(ID, name, about) "  " name ": " about "\n"
#include <cptx/rows.def>
			   "\nRows have 1 to 262,144 elements. <cptx/rows.h> says more of operands and options.\n"
			   "--run draws all inputs and compares every element with f64.\n\n"
			   "  cptx rows rms-norm --in bf16 --run 4096x8192\n"
			   "  cptx rows cross-entropy --with dx,lse --run 64x131072 --device emu:sm_90a\n"
			   "  cptx rows softmax --in f32 --for 4096x8192 --explain\n",
	.options = options,
	.noption = OPTIONS,
	.run = run,
};
