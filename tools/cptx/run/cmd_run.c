/* SPDX-License-Identifier: MIT */
/* cptx run: runs a kernel of a PTX file on a GPU or on the emulator. */
#include "cli/compiling.h"
#include "reference/number.h"
#include "cli/progress.h"
#include "run/args.h"
#include "run/finding.h"
#include "run/print.h"
#include "run/schedule.h"
#include "run/trace.h"

#include <cptx/emu.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	RUN_DEVICE,
	RUN_ENTRY,
	RUN_GRID,
	RUN_BLOCK,
	RUN_CLUSTER,
	RUN_COOPERATIVE,
	RUN_SMEM,
	RUN_ARG,
	RUN_OUT,
	RUN_PRINT,
	RUN_SEED,
	RUN_SCHEDULE,
	RUN_SCHEDULES,
	RUN_ORDER,
	RUN_THREADS,
	RUN_LIMIT,
	RUN_PEDANTIC,
	RUN_COMPARE,
	RUN_COUNTERS,
	RUN_TRACE,
	RUN_NO_PROGRESS,
	RUN_FORMAT,
	RUN_COMPILER
};
static const cli_option options[] = {
	[RUN_DEVICE] = { "device", 'd', "NAME", "cuda:0, emu:sm_90a ... (default: emu, of the target of the file)",
	                 "cuda:0 emu emu:sm_80 emu:sm_90a emu:sm_100a emu:sm_120a" },
	[RUN_ENTRY] = { "entry", 'e', "NAME", "the kernel (default: the only one)", NULL },
	[RUN_GRID] = { "grid", 'g', "X,Y,Z", "CTAs (default 1)", NULL },
	[RUN_BLOCK] = { "block", 'b', "X,Y,Z", "threads of a CTA (default: the kernel's .reqntid)", NULL },
	[RUN_CLUSTER] = { "cluster", 'c', "X,Y,Z", "CTAs of a cluster (default: the kernel's)", NULL },
	[RUN_COOPERATIVE] = { "cooperative", 0, NULL, "all CTAs at once, so that they can wait for one another", NULL },
	[RUN_SMEM] = { "smem", 'm', "BYTES", "dynamic shared memory", NULL },
	[RUN_ARG] = { "arg", 'a', "SPEC",
	              "the next argument: u32:7, f32:1.5, buf:f32[4096]=zero|iota|rand:SEED|@FILE, mem:..., bytes:..., tmap:...",
	              NULL },
	[RUN_OUT] = { "out", 'o', "K=FILE",
	              "write the buffer of argument K (from 0) there after the run, as raw bytes; also if something was found",
	              "@file" },
	[RUN_PRINT] = { "print", 'p', "SPEC",
	                "print the buffer of an argument, by number or name, after the run: 0, 0:f32[8], out:u32[4]+16", NULL },
	[RUN_SEED] = { "seed", 's', "N", "of the emulator's schedule (default 0)", NULL },
	[RUN_SCHEDULE] = { "schedule", 0, "HOW", SCHEDULE_HELP, SCHEDULE_WORDS },
	[RUN_SCHEDULES] = { "schedules", 'n', "N",
	                    "run N seeds, and stop at the first that fails; all: every order that can matter", "all" },
	[RUN_ORDER] = { "order", 0, "N", "with --schedules all: run order N alone", NULL },
	[RUN_THREADS] = { "threads", 'j', "N", "of the host, for the emulator (default: all processors)", NULL },
	[RUN_LIMIT] = { "step-limit", 0, "N", "most instructions of warps (default 10^11)", NULL },
	[RUN_PEDANTIC] = { "pedantic", 0, NULL, "what is a warning, as GPUs take it, is an error", NULL },
	[RUN_COMPARE] = { "compare", 0, "NAME", "run on this device too, and compare all buffers", "cuda:0 emu:sm_90a" },
	[RUN_COUNTERS] = { "counters", 0, NULL, "print what the emulator counted", NULL },
	[RUN_TRACE] = { "trace", 0, "FILE", "write a timeline for chrome://tracing or Perfetto", "@file" },
	[RUN_NO_PROGRESS] = { "no-progress", 0, NULL, "no bar while a long run goes on", NULL },
	[RUN_COMPILER] = { "compiler", 0, "NAME",
	                   "who compiles for a GPU (default auto: the driver, or another where it is too old)",
	                   COMPILING_CHOICES },
	[RUN_FORMAT] = { "finding-format", 0, "FORMAT", "of findings on standard error: text or json", "text json" },
};

enum { MOST_WARNINGS = 256 };

typedef struct run_request {
	const cli_command *cmd;
	const char *device, *compare, *entry, *file;
	cptx_launch_opt shape;
	run_arg arg[MOST_ARGS];
	size_t narg;
	struct {
		uint64_t arg;
		const char *path;
	} out[MOST_ARGS];
	size_t nout;
	run_print print[MOST_ARGS];
	size_t nprint;
	cptx_emu_opt emu;
	const char *schedule; /* --schedule */
	uint64_t schedules;
	bool all;        /* --schedules all */
	struct warning { /* printed already */
		enum cptx_finding_code code;
		unsigned line;
	} warning[MOST_WARNINGS];
	size_t nwarning;
	unsigned warned[CPTX_FIND_COUNT]; /* instructions, by code */
	bool named;                       /* the kernel */
	bool json, counters, no_progress;
	enum cptx_compiler compiler;
	cptx_cache *cache; /* for GPUs */
	const char *trace_path;
	run_trace trace;
	progress_bar bar;
	char *text;
	size_t size;
} run_request;

/* ---- options ---- */

static bool read_number(const char *text, uint64_t most, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *n <= most;
}

/* X, X,Y or X,Y,Z. */
static bool read_shape(const char *text, uint32_t out[3])
{
	for (int i = 0; i < 3; i++) {
		char *end;
		unsigned long v = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || !v || v > UINT32_MAX || (*end && *end != ','))
			return false;
		out[i] = (uint32_t)v;
		if (!*end)
			return true;
		text = end + 1;
	}
	return false;
}

static bool is_emulator(const char *device) { return !strcmp(device, "emu") || !strncmp(device, "emu:", 4); }

static int bad(const run_request *q, int option, const char *value, const char *right)
{
	return cli_bad_value(q->cmd, (size_t)option, value, right);
}

static int read_out(run_request *q, const char *value)
{
	char *end;

	if (q->nout == MOST_ARGS)
		return bad(q, RUN_OUT, value, "too many");
	q->out[q->nout].arg = strtoull(value, &end, 10);
	q->out[q->nout].path = end + 1;
	if (*value < '0' || *value > '9' || *end != '=' || !end[1])
		return bad(q, RUN_OUT, value, "expected the number of an argument, =, and a file, as in 0=y.bin");
	q->nout++;
	return EXIT_OK;
}

static int read_arg(run_request *q, const char *value)
{
	char why[512];

	if (q->narg == MOST_ARGS)
		return bad(q, RUN_ARG, value, "too many");
	if (run_arg_read(&q->arg[q->narg++], value, why, sizeof why))
		return EXIT_OK;
	return bad(q, RUN_ARG, value, why);
}

static int read_print(run_request *q, const char *value)
{
	char why[512];

	if (q->nprint == MOST_ARGS)
		return bad(q, RUN_PRINT, value, "too many");
	return run_print_read(&q->print[q->nprint++], value, why, sizeof why) ? EXIT_OK : bad(q, RUN_PRINT, value, why);
}

static int read_option(run_request *q, int option, const char *value)
{
	uint64_t n = 0;
	bool ok = true;

	switch (option) {
	case RUN_DEVICE: q->device = value; return EXIT_OK;
	case RUN_COMPARE: q->compare = value; return EXIT_OK;
	case RUN_ENTRY: q->entry = value; return EXIT_OK;
	case RUN_PEDANTIC: q->emu.pedantic = true; return EXIT_OK;
	case RUN_COUNTERS: q->counters = true; return EXIT_OK;
	case RUN_COOPERATIVE: q->shape.cooperative = true; return EXIT_OK;
	case RUN_TRACE: q->trace_path = value; return EXIT_OK;
	case RUN_NO_PROGRESS: q->no_progress = true; return EXIT_OK;
	case RUN_ARG: return read_arg(q, value);
	case RUN_OUT: return read_out(q, value);
	case RUN_PRINT: return read_print(q, value);
	case RUN_GRID:
	case RUN_BLOCK:
	case RUN_CLUSTER:
		ok = read_shape(value, option == RUN_GRID ? q->shape.grid : option == RUN_BLOCK ? q->shape.block : q->shape.cluster);
		return ok ? EXIT_OK : bad(q, option, value, "expected one to three numbers from 1 on, as in 4,2,1");
	case RUN_SCHEDULE:
		q->schedule = value;
		q->emu.schedule = schedule_of(value);
		return q->emu.schedule == CPTX_EMU_ALL ? bad(q, option, value, SCHEDULE_EXPECTED) : EXIT_OK;
	case RUN_SCHEDULES:
		if (strcmp(value, "all"))
			break;
		q->all = true, q->schedules = 0;
		return EXIT_OK;
	case RUN_COMPILER: return compiling_named(q->cmd, value, &q->compiler);
	case RUN_FORMAT:
		q->json = !strcmp(value, "json");
		return q->json || !strcmp(value, "text") ? EXIT_OK : bad(q, option, value, "expected text or json");
	default: break;
	}
	if (!read_number(value, option == RUN_SEED || option == RUN_LIMIT || option == RUN_ORDER ? UINT64_MAX : UINT32_MAX, &n))
		return bad(q, option, value, "expected a number");
	if (!n && option != RUN_SMEM && option != RUN_SEED)
		return bad(q, option, value, "expected a number from 1 on");
	switch (option) {
	case RUN_SMEM: q->shape.dyn_smem = (uint32_t)n; break;
	case RUN_SEED: q->emu.seed = n; break;
	case RUN_SCHEDULES: q->schedules = n, q->all = false; break;
	case RUN_ORDER: q->emu.order = n; break;
	case RUN_THREADS: q->emu.threads = (uint32_t)n; break;
	default: q->emu.step_limit = n; break;
	}
	return EXIT_OK;
}

/* ---- findings ---- */

static void print_finding(const cptx_emu_finding *f)
{
	if (f->at.file)
		cli_put(stderr, f->at.file, strlen(f->at.file)), fprintf(stderr, ":%u: ", (unsigned)f->at.line);
	fputs(f->text, stderr);
	if (f->count > 1)
		fprintf(stderr, " (%llu times)", (unsigned long long)f->count);
	fputc('\n', stderr);
}

/* Findings shorten a long name; the whole one is printed once. */
static void print_kernel(run_request *q, const cptx_emu_finding *f)
{
	if (!q->named && !strstr(f->text, f->kernel))
		fprintf(stderr, "cptx run: the kernel is %s\n", f->kernel);
	q->named = true;
}

/* Was the warning printed for its line already, in a run with another seed? */
static bool is_printed(run_request *q, const cptx_emu_finding *f)
{
	for (size_t i = 0; i < q->nwarning; i++)
		if (q->warning[i].code == f->code && q->warning[i].line == f->at.line)
			return true;
	if (q->nwarning < MOST_WARNINGS)
		q->warning[q->nwarning++] = (struct warning){ f->code, (unsigned)f->at.line };
	return false;
}

/* Unrolled code has the same warning at many lines: the first is printed, the others are counted. */
static void print_once(run_request *q, const cptx_emu_finding *f, uint64_t seed)
{
	bool warns = f->rank == CPTX_FIND_WARNING;

	if (warns && is_printed(q, f))
		return;
	if (q->json) {
		finding_json(stderr, f, seed);
	} else if (!warns || !q->warned[f->code]++) {
		print_kernel(q, f);
		print_finding(f);
	}
}

/* Prints the findings; the number of errors among them. */
static size_t report(run_request *q, const cptx_device *dev, uint64_t seed)
{
	const cptx_emu_finding *f;
	size_t errors = 0;

	for (size_t i = 0; (f = cptx_emu_finding_at(dev, i)); i++) {
		print_once(q, f, seed);
		errors += f->rank == CPTX_FIND_ERROR;
	}
	return errors;
}

/* After all runs: how often each kind of warning was made. */
static void count_warnings(const run_request *q)
{
	unsigned kinds = 0;

	for (unsigned code = 0; code < CPTX_FIND_COUNT; code++) {
		kinds += q->warned[code] != 0;
		if (q->warned[code] > 1)
			fprintf(stderr, "cptx run: warning: %s: at %u more instructions (--finding-format json has all)\n",
			        cptx_finding_name((enum cptx_finding_code)code), q->warned[code] - 1);
	}
	if (kinds)
		fputs("cptx run: GPUs take what is a warning; --pedantic makes it an error\n", stderr);
}

/* ---- one run ---- */

/* What kernels print. */
static void put_text(void *user, const char *text)
{
	run_request *q = user;

	progress_clear(&q->bar);
	fputs(text, stdout);
}

static void put_span(void *user, const cptx_emu_span *s) { run_trace_put(&((run_request *)user)->trace, s); }

static void put_progress(void *user, uint64_t ctas, uint64_t of) { progress_show(&((run_request *)user)->bar, ctas, of); }

static cptx_device *open_device(run_request *q, const char *name, uint64_t seed, cptx_error *err)
{
	cptx_emu_opt opt = q->emu;

	if (!is_emulator(name))
		return cptx_device_open(name, err);
	opt.seed = seed;
	opt.print = put_text;
	opt.trace = q->trace.f ? put_span : NULL;
	opt.progress = progress_open(&q->bar, q->no_progress) ? put_progress : NULL;
	opt.user = q;
	return cptx_emu_open(name + 4, &opt, err);
}

static bool launch(run_request *q, cptx_device *dev, const uint64_t at[], cptx_error *err)
{
	cptx_arg args[MOST_ARGS];
	cptx_tensor_map map[MOST_ARGS];
	cptx_launch_opt shape = q->shape;
	cptx_load_opt opt = { .name = strcmp(q->file, "-") ? q->file : "<stdin>", .compiler = q->compiler, .cache = q->cache };
	const cptx_site nowhere = { 0 }; /* no line of this program belongs into a message */
	cptx_program *p = cptx_device_load_text_(nowhere, dev, q->text, q->size, &opt, err);

	if (*cptx_program_note(p))
		fprintf(stderr, "cptx run: %s\n", cptx_program_note(p));
	if (p && !q->entry && cptx_program_kernel_at(p, 1)) {
		err->code = CPTX_E_ARG;
		snprintf(err->text, sizeof err->text,
		         "'%s' has several kernels, \"%s\" and \"%s\" among them; choose one by --entry", q->file,
		         cptx_program_kernel_at(p, 0), cptx_program_kernel_at(p, 1));
	}
	for (size_t i = 0; i < q->narg; i++) {
		cptx_tensor_map_opt over = q->arg[i].map;
		if (q->arg[i].is_hidden)
			continue;
		if (!q->arg[i].is_map) {
			args[shape.nargs++] = run_arg_value(&q->arg[i], at[i]);
			continue;
		}
		over.address = at[q->arg[i].over];
		cptx_tensor_map_make(dev, &over, &map[i], err);
		args[shape.nargs++] = CPTX_ARG_BYTES(&map[i], sizeof map[i]);
	}
	shape.args = args;
	bool ok = p && err->code == CPTX_OK && cptx_launch_once_(nowhere, p, q->entry, &shape, NULL, err) &&
	          cptx_device_synchronize(dev, err);
	progress_clear(&q->bar);
	cptx_program_destroy(p);
	return ok;
}

/* Runs on a device; buffers are left in result[], to be freed. */
static bool run_once(run_request *q, cptx_device *dev, unsigned char *result[], cptx_error *err)
{
	uint64_t at[MOST_ARGS] = { 0 };
	cptx_error ignored = { 0 };

	for (size_t i = 0; i < q->narg; i++)
		if (q->arg[i].is_buffer) {
			at[i] = cptx_mem_alloc(dev, q->arg[i].size, err);
			cptx_mem_write(dev, at[i], q->arg[i].data, q->arg[i].size, err);
		}
	bool ok = err->code == CPTX_OK && launch(q, dev, at, err);
	for (size_t i = 0; i < q->narg; i++) {
		if (!at[i])
			continue;
		result[i] = malloc(q->arg[i].size);
		if (!result[i] && err->code == CPTX_OK) {
			err->code = CPTX_E_MEMORY;
			snprintf(err->text, sizeof err->text, "out of memory");
		}
		ok = result[i] && cptx_mem_read(dev, result[i], at[i], q->arg[i].size, ok ? err : &ignored) && ok;
		cptx_mem_free(dev, at[i]);
	}
	return ok;
}

static void free_results(unsigned char *result[])
{
	for (size_t i = 0; i < MOST_ARGS; i++) {
		free(result[i]);
		result[i] = NULL;
	}
}

static int write_outputs(const run_request *q, unsigned char *const result[])
{
	for (size_t i = 0; i < q->nout; i++) {
		uint64_t k = q->out[i].arg;
		if (!cli_write(q->cmd, q->out[i].path, (const char *)result[k], q->arg[k].size))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* What a kernel has left that something was found in is worth a look, too. */
static void write_in_spite(const run_request *q, unsigned char *const result[])
{
	for (size_t i = 0; i < q->nout; i++)
		if (!result[q->out[i].arg])
			return;
	if (write_outputs(q, result) || q->json)
		return;
	for (size_t i = 0; i < q->nout; i++)
		fprintf(stderr, "cptx run: %s has what the kernel left of argument %llu, in spite of what was found\n",
		        q->out[i].path, (unsigned long long)q->out[i].arg);
}

/* Prints what --print asks for, also behind a run that failed: it is the first thing to look at. */
static void print_buffers(const run_request *q, unsigned char *const result[])
{
	for (size_t i = 0; i < q->nprint; i++)
		if (result[q->print[i].arg])
			run_print_show(&q->print[i], result[q->print[i].arg]);
}

static void print_counters(const cptx_device *dev)
{
	cptx_emu_counters c;

	if (!cptx_emu_get_counters(dev, &c))
		return;
	printf("instructions  %llu of warps, %llu of threads\n", (unsigned long long)c.warp_instructions,
	       (unsigned long long)c.thread_instructions);
	printf("global        %llu bytes read, %llu written, %llu sectors\n", (unsigned long long)c.global_read,
	       (unsigned long long)c.global_written, (unsigned long long)c.global_sectors);
	printf("shared        %llu bytes read, %llu written, %llu wavefronts, %llu of them bank conflicts\n",
	       (unsigned long long)c.shared_read, (unsigned long long)c.shared_written, (unsigned long long)c.shared_wavefronts,
	       (unsigned long long)c.bank_conflicts);
	printf("tensor cores  %llu FLOP\nasynchronous  %llu bytes copied\n", (unsigned long long)c.tensor_flops,
	       (unsigned long long)c.async_bytes);
}

static int fail(run_request *q, const cptx_device *dev, uint64_t seed, unsigned char *const result[], const cptx_error *err)
{
	size_t n = dev ? report(q, dev, seed) : 0;

	if (!n)
		return dev ? cli_failed(q->cmd, "%s", err->text) : cli_refused(q->cmd, err);
	if (q->schedules > 1)
		fprintf(stderr, "cptx run: seed %llu fails; --seed %llu repeats it\n", (unsigned long long)seed,
		        (unsigned long long)seed);
	write_in_spite(q, result);
	return EXIT_FAILED;
}

/* What came of the orders of a launch; as JSON only what differs among them, which is a result to look at. */
static void tell_orders(const run_request *q, const cptx_emu_order_info *x)
{
	if (!q->json)
		fprintf(stderr, "cptx run: kernel %s: %s\n", x->kernel, x->text);
	else if (x->difference)
		finding_order_json(stderr, &(finding_order){ x->kernel, x->text, x->differs, x->differ_bytes, x->differ_at });
}

/* ---- the two jobs ---- */

static int run_seeds(run_request *q)
{
	uint64_t n = q->schedules ? q->schedules : 1, first = q->emu.seed;
	unsigned char *result[MOST_ARGS] = { 0 };
	int status = EXIT_OK;

	for (uint64_t i = 0; i < n && !status; i++) {
		cptx_error err = { 0 };
		cptx_device *dev = open_device(q, q->device, first + i, &err);
		cptx_emu_order_info orders;
		free_results(result);
		if (!dev || !run_once(q, dev, result, &err))
			status = fail(q, dev, first + i, result, &err);
		else
			report(q, dev, first + i);
		if (dev && cptx_emu_orders(dev, &orders))
			tell_orders(q, &orders);
		if (dev && !status && q->emu.order && cptx_emu_orders(dev, &orders) && q->emu.order > orders.orders && !orders.why)
			status = cli_failed(q->cmd, "--order %llu: the last order is %llu", (unsigned long long)q->emu.order,
			                    (unsigned long long)orders.orders);
		if (!status && q->counters && i + 1 == n)
			print_counters(dev);
		cptx_device_close(dev);
	}
	print_buffers(q, result);
	if (!status)
		status = write_outputs(q, result);
	free_results(result);
	return status ? status : cli_flush(q->cmd, status);
}

static int compare_buffers(const run_request *q, unsigned char *const a[], unsigned char *const b[])
{
	int status = EXIT_OK;

	for (size_t i = 0; i < q->narg; i++) {
		const run_arg *x = &q->arg[i];
		unsigned each = cptx_type_bits(x->type) / 8;
		uint64_t wrong = 0, first = 0, va = 0, vb = 0;
		if (!x->is_buffer)
			continue;
		for (uint64_t j = x->count; j-- > 0;)
			if (memcmp(a[i] + j * each, b[i] + j * each, each))
				wrong++, first = j;
		if (!wrong) {
			printf("argument %zu: %llu elements equal\n", i, (unsigned long long)x->count);
			continue;
		}
		memcpy(&va, a[i] + first * each, each);
		memcpy(&vb, b[i] + first * each, each);
		status = cli_failed(
			q->cmd, "argument %zu: %llu of %llu elements differ; the first, %llu: 0x%llx (%g) on %s, 0x%llx (%g) on %s", i,
			(unsigned long long)wrong, (unsigned long long)x->count, (unsigned long long)first, (unsigned long long)va,
			number_value(x->type, va), q->device, (unsigned long long)vb, number_value(x->type, vb), q->compare);
	}
	return status;
}

static int run_both(run_request *q)
{
	const char *name[2] = { q->device, q->compare };
	unsigned char *result[2][MOST_ARGS] = { { 0 } };
	int status = EXIT_OK;

	for (int i = 0; i < 2 && !status; i++) {
		cptx_error err = { 0 };
		cptx_device *dev = open_device(q, name[i], q->emu.seed, &err);
		if (!dev || !run_once(q, dev, result[i], &err))
			status = fail(q, dev, q->emu.seed, result[0], &err);
		else
			report(q, dev, q->emu.seed);
		if (!status && q->counters)
			print_counters(dev);
		cptx_device_close(dev);
	}
	if (!status)
		status = compare_buffers(q, result[0], result[1]);
	print_buffers(q, result[0]);
	if (!status)
		status = write_outputs(q, result[0]);
	free_results(result[0]);
	free_results(result[1]);
	return status ? status : cli_flush(q->cmd, status);
}

/* ---- the command ---- */

/* "emu" and what is not given: the emulated device of the text's own target. */
static const char *default_device(const run_request *q, char *name, size_t size)
{
	cptx_module *m = cptx_parse(q->text, q->size, &(cptx_parse_opt){ .name = q->file });
	const cptx_target *t = m ? cptx_module_target(m) : NULL;

	snprintf(name, size, "emu:%s", t && cptx_target_find(t->name) ? t->name : "sm_90a");
	cptx_module_destroy(m);
	return name;
}

static int run_request_read(run_request *q, int argc, char **argv)
{
	const char *value;
	int status = EXIT_OK, option;

	while ((option = cli_next(q->cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(q, option, value)))
			return status;
	if (option == -2)
		return status ? status : -1;
	if (optind + 1 != argc)
		return cli_usage(q->cmd, "give one PTX file, or - for standard input");
	q->file = argv[optind];
	for (size_t i = 0; i < q->nout; i++)
		if (q->out[i].arg >= q->narg || !q->arg[q->out[i].arg].is_buffer)
			return cli_usage(q->cmd, "--out %llu=...: argument %llu is no buffer", (unsigned long long)q->out[i].arg,
			                 (unsigned long long)q->out[i].arg);
	for (size_t i = 0; i < q->narg; i++)
		if (q->arg[i].is_map && (q->arg[i].over >= q->narg || !q->arg[q->arg[i].over].is_buffer))
			return cli_usage(q->cmd, "--arg %s: argument %llu is no buffer", q->arg[i].spec,
			                 (unsigned long long)q->arg[i].over);
	for (size_t i = 0; i < q->nout; i++)
		if (cli_clash(q->cmd, "the buffer", q->out[i].path, q->file))
			return EXIT_FAILED;
	if (q->trace_path && cli_clash(q->cmd, "the timeline", q->trace_path, q->file))
		return EXIT_FAILED;
	if (q->trace_path && (q->compare || q->schedules > 1 || (q->device && !is_emulator(q->device))))
		return cli_usage(q->cmd, "--trace: of one run on the emulator, so without --compare, --schedules and a GPU");
	if (cli_orders(q->cmd, q->all, q->schedule, q->emu.order ? "order" : NULL))
		return EXIT_USAGE;
	if (q->all)
		q->emu.schedule = CPTX_EMU_ALL;
	if (q->compare && q->schedules > 1)
		return cli_usage(q->cmd, "--compare: of one run on each device, so without --schedules");
	if (!q->shape.grid[0])
		q->shape.grid[0] = 1;
	return EXIT_OK;
}

/* With the timeline, if one is asked for. */
static int run_traced(run_request *q)
{
	if (q->trace_path && !run_trace_open(&q->trace, q->cmd, q->trace_path))
		return EXIT_FAILED;
	int status = q->compare ? run_both(q) : run_seeds(q);
	count_warnings(q);
	return run_trace_close(&q->trace, q->cmd) ? status : EXIT_FAILED;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	run_request *q = calloc(1, sizeof *q);
	char name[64];

	if (!q)
		return cli_failed(cmd, "out of memory");
	q->cmd = cmd;
	int status = run_request_read(q, argc, argv);
	if (!status && !(q->text = cli_read(cmd, q->file, &q->size)))
		status = EXIT_FAILED;
	if (!status && !q->size)
		status = cli_failed(cmd, "'%s' is empty", q->file);
	for (size_t i = 0; !status && i < q->nprint; i++)
		status = run_print_check(cmd, &q->print[i], q->arg, q->narg, q->text, q->size, q->entry);
	if (!status && (!q->device || !strcmp(q->device, "emu")))
		q->device = default_device(q, name, sizeof name);
	if (!status && q->compare && !strcmp(q->compare, "emu"))
		q->compare = default_device(q, name, sizeof name);
	bool gpu = !status && (!is_emulator(q->device) || (q->compare && !is_emulator(q->compare)));
	if (gpu && !(q->cache = compiling_cache(cmd)))
		status = EXIT_FAILED;
	if (!status)
		status = run_traced(q);
	cptx_cache_close(q->cache);
	for (size_t i = 0; i < q->narg; i++)
		run_arg_free(&q->arg[i]);
	free(q->text);
	free(q);
	return status < 0 ? EXIT_OK : status;
}

const cli_command cmd_run = {
	.name = "run",
	.arguments = "[OPTION]... FILE",
	.about = "Runs a kernel of a PTX file on the emulator or a GPU, and tells what is wrong with it.",
	.details =
		"Arguments are given in the order of the kernel's parameters:\n"
		"  --arg u32:7 --arg f32:1.5       numbers, of the types u8 to u64, s8 to s64, b8 to b64, f16, bf16, f32, f64\n"
		"  --arg buf:f32[4096]=rand:1      a buffer in global memory: zero, iota (0, 1, 2 ...), random numbers\n"
		"                                  (floating point from -1 to 1, integers of all values), or the bytes of =@FILE;\n"
		"                                  nothing behind the length: zero\n"
		"  --arg mem:f32[4096]=rand:1      the same, but the kernel is not given its address: for tensor maps\n"
		"  --arg bytes:s32[12]=iota        these bytes themselves: a struct that is passed by value\n"
		"  --arg tmap:0,type=bf16,dims=256x512,box=64x64,swizzle=128\n"
		"                                  a tensor map over the buffer of argument 0 (from 0), innermost dimension first; "
		"also\n"
		"                                  strides= (bytes, from dimension 1 on), estrides=, interleave=16|32, fill=nan, "
		"l2=128,\n"
		"                                  im2col=CHANNELSxPIXELS:LOWER:UPPER (corners as WxHxD)\n\n"
		"--print 0:f32[8] shows the first 8 elements of the buffer of argument 0 as .f32, +16 behind it those from 16 on, "
		"the\n"
		"number alone all of it in its own type; a parameter's name does for the number. Floats have as many digits as "
		"tell\n"
		"them apart, .b8 to .b64 are hexadecimal. It prints what a run that fails left, too.\n\n"
		"  cptx run saxpy.ptx -g 16 -b 256 -a f32:2 -a buf:f32[4096]=iota -a buf:f32[4096]=zero -a u32:4096 -o 2=y.bin\n"
		"  cptx run kernel.ptx ... --schedules 100          100 schedules of asynchronous work\n"
		"  cptx run kernel.ptx ... -d cuda:0 --compare emu:sm_90a\n\n"
		"What the emulator finds wrong (a race, an address out of bounds, a deadlock ...) goes to standard error.  A "
		"warning\n"
		"is about what the PTX manual forbids, though GPUs take it and published kernels do it; --pedantic makes it an "
		"error.\n"
		"Exit status: 0 done and nothing found but warnings, 1 an error or a difference, 2 wrong usage.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
