/* SPDX-License-Identifier: MIT */
/* cptx tmem-width: how wide to read accumulators from tensor memory: the code that ptxas makes of each width of tcgen05.ld.
 */
#include "cli/cli.h"
#include "reference/number.h"
#include "cli/ptxas.h"

#include <cptx/compile.h>
#include <cptx/cptx.h>
#include <cptx/emu.h>
#include <cptx/inspect.h>
#include <cptx/tmem.h>

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_COLUMNS, OPTION_ARCH, OPTION_WIDTH, OPTION_OUTPUT };
static const cli_option options[] = {
	[OPTION_COLUMNS] = { "columns", 'c', "N", "of the accumulator, 128 to 512 (256)", "128 256 512" },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: sm_100a and sm_103a", "@arch" },
	[OPTION_WIDTH] = { "width", 'w', "N", "no report: the PTX of that width, 1 to 128", "1 2 4 8 16 32 64 128" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "with --width: write it there; - is standard output", "@file" },
};

enum { THREADS = 128, BATCH = 32 /* columns that are waited for at once, or one load if that is wider */, WIDTHS = 8 };
enum { OUTPUT_SIZE = 1 << 24 /* bytes of disassembly */ };

typedef struct request {
	const cli_command *cmd;
	uint32_t columns, width;
	const char *arch, *output;
} request;

/* ---- the epilogue ---- */

/* What the accumulator holds in the trial run: row * columns + column, by the widest stores. */
static void fill(cptx_kernel *k, cptx_val at, cptx_val row, uint32_t columns)
{
	cptx_val v = cptx_regs(k, CPTX_B32, BATCH);

	for (uint32_t c = 0; c < columns; c += BATCH) {
		for (uint32_t i = 0; i < BATCH; i++)
			cptx_mad(k, row, columns, c + i, .mode = CPTX_LO, .into = cptx_as(cptx_elem(v, i), CPTX_U32));
		cptx_tmem_store(k, cptx_offset(at, c), v);
	}
	cptx_tcgen05_wait(k, .op = CPTX_WAIT_ST);
}

static void batch(cptx_kernel *k, cptx_val at, cptx_val to, uint32_t first, uint32_t n, uint32_t width)
{
	cptx_val v[BATCH];

	for (uint32_t i = 0; i < n / width; i++)
		v[i] = cptx_tmem_load(k, cptx_offset(at, first + i * width), .num = width);
	cptx_tcgen05_wait(k, .op = CPTX_WAIT_LD);
	for (uint32_t c = 0; c < n; c += 4) {
		cptx_val four[4];
		for (uint32_t i = 0; i < 4; i++)
			four[i] = cptx_elem(v[(c + i) / width], (c + i) % width);
		cptx_st(k, cptx_offset(to, (first + c) * 4), cptx_pack(k, 4, four), .space = CPTX_GLOBAL, .type = CPTX_B32);
	}
}

/* Kernel "epilogue": 128 rows of an f32 accumulator to rows of D, by loads of that width. */
static cptx_module *build(uint32_t columns, uint32_t width, bool filled)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "epilogue", .block = { THREADS });
	cptx_val d = cptx_param(k, CPTX_PTR, "D"), row = cptx_tid_x(k), to = cptx_mad_wide(k, row, columns * 4, d);
	cptx_val first = cptx_setp(k, row, CPTX_WARP, .cmp = CPTX_LT);
	cptx_tmem acc;

	CPTX_TMEM(k, &acc, .columns = columns, .warp = first) {
		cptx_val at = cptx_mad(k, cptx_and(k, row, THREADS - CPTX_WARP), 1 << 16, acc.address, .mode = CPTX_LO);
		uint32_t step = width > BATCH ? width : BATCH;
		if (filled)
			fill(k, at, row, columns);
		for (uint32_t c = 0; c < columns; c += step)
			batch(k, at, to, c, step, width);
	}
	return m;
}

/* On the emulator: every word of D is what the accumulator held. */
static bool is_right(const request *q, uint32_t width)
{
	cptx_error err = { 0 };
	cptx_module *m = build(q->columns, width, true);
	cptx_device *dev = cptx_device_open("emu:sm_100a", &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	size_t n = (size_t)THREADS * q->columns;
	uint32_t *got = calloc(n, sizeof *got);
	uint64_t d = cptx_mem_alloc(dev, n * sizeof *got, &err);

	cptx_mem_fill8(dev, d, 0xff, n * sizeof *got, &err);
	cptx_launch_once(p, "epilogue", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(d) }, NULL, &err);
	bool ok = got && cptx_mem_read(dev, got, d, n * sizeof *got, &err);
	for (size_t i = 0; ok && i < n; i++)
		ok = got[i] == i;
	if (!ok)
		cli_failed(q->cmd, "x%u is wrong: %s", width,
		           err.code ? err.text
		           : got    ? "not what the accumulator held"
		                    : "out of memory");
	free(got);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return ok;
}

/* ---- what ptxas made of it ---- */

static const char *const counted[] = { "LDTM", "CALL", "LEPC", "WARPSYNC", "NOP" };
enum { COUNTED = sizeof counted / sizeof *counted };

typedef struct code {
	unsigned count[COUNTED]; /* instructions of the kernel that are so called */
	unsigned instructions;   /* of all, 16 bytes each; 0: no disassembler */
	unsigned regs, spilled;  /* bytes */
} code;

/* A line of nvdisasm: "    / *0010* /   @!P0 LDTM.x32 R4, tmem[UR4] ;" */
static void count_line(code *c, const char *line)
{
	const char *p = line + strspn(line, " \t");

	if (strncmp(p, "/*", 2) || !isxdigit((unsigned char)p[2]) || !(p = strstr(p, "*/")))
		return;
	p += 2 + strspn(p + 2, " \t");
	if (*p == '@')
		p += strcspn(p, " \t"), p += strspn(p, " \t");
	size_t n = strcspn(p, ". ;\t\n");
	if (!n || !isupper((unsigned char)*p))
		return;
	c->instructions++;
	for (unsigned i = 0; i < COUNTED; i++)
		c->count[i] += strlen(counted[i]) == n && !strncmp(p, counted[i], n);
}

static bool disassemble(const char *tool, const char *cubin, char *output, code *c)
{
	char *argv[] = { (char *)tool, "-c", (char *)cubin, NULL };

	if (tool_run(argv, output, OUTPUT_SIZE))
		return false;
	for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line != 0)
		count_line(c, line);
	return c->instructions > 0;
}

/* The machine code as a file, for the disassembler. */
static bool count_code(const request *q, const char *tool, const cptx_cubin *cubin, char *output, code *c)
{
	char path[4096];
	int fd;

	if (!tool_temporary(path, sizeof path, &fd))
		return cli_failed(q->cmd, "no temporary file"), false;
	bool ok = write(fd, cptx_cubin_data(cubin), cptx_cubin_size(cubin)) == (ssize_t)cptx_cubin_size(cubin) &&
	          disassemble(tool, path, output, c);
	close(fd);
	unlink(path);
	if (!ok)
		cli_failed(q->cmd, "%s could not read what ptxas wrote: %.300s", tool, output);
	return ok;
}

static bool look(const request *q, const char *nvdisasm, const char *arch, uint32_t width, bool checked, char *output,
                 code *c)
{
	static const char *const check = "-g-tmem-access-check";
	cptx_compile_opt opt = { .compiler = CPTX_COMPILER_PTXAS, .verbose = true, .flags = &check, .nflags = checked };
	cptx_error err = { 0 };
	cptx_module *m = build(q->columns, width, false);
	cptx_ptx *ptx = cptx_emit(m, arch, NULL, &err);
	cptx_cubin *cubin = ptx ? cptx_compile_ptx(ptx, &opt, &err) : NULL;
	bool ok = cubin != NULL;

	*c = (code){ 0 };
	if (ok) {
		cptx_verdict *v = cptx_verdict_read(cptx_cubin_log(cubin), strlen(cptx_cubin_log(cubin)), NULL);
		const cptx_usage *u = cptx_verdict_usage(v, 0);
		if (u)
			c->regs = u->registers, c->spilled = u->spill_stores;
		cptx_verdict_destroy(v);
		ok = (v || cli_no_memory(q->cmd)) && (!nvdisasm || count_code(q, nvdisasm, cubin, output, c));
	} else {
		cli_failed(q->cmd, "%s", err.text);
	}
	cptx_cubin_destroy(cubin);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return ok;
}

/* ---- the report ---- */

static void put(const code *c, uint32_t width, bool checked)
{
	printf("  x%-4u %-6s", width, checked ? "yes" : "no");
	for (unsigned i = 0; i < COUNTED; i++)
		c->instructions ? printf(" %8u", c->count[i]) : printf(" %8s", "?");
	c->instructions ? printf(" %9u", c->instructions * 16) : printf(" %9s", "?");
	printf(" %5u %6u\n", c->regs, c->spilled);
}

/* Code that is at most a tenth longer than the shortest counts as short; of these, the fewest registers. */
static uint32_t best(const code *c)
{
	unsigned shortest = UINT32_MAX, found = WIDTHS;

	for (unsigned i = 0; i < WIDTHS; i++)
		if (!c[i].spilled && c[i].instructions < shortest)
			shortest = c[i].instructions;
	for (unsigned i = 0; i < WIDTHS; i++)
		if (!c[i].spilled && c[i].instructions <= shortest + shortest / 10 && (found == WIDTHS || c[i].regs < c[found].regs))
			found = i;
	return 1u << found;
}

static bool report(const request *q, const char *nvdisasm, const char *arch, char *output)
{
	code c[2][WIDTHS];

	printf("%s, %d rows x %u columns of f32, tcgen05.ld.32x32b\n", arch, THREADS, q->columns);
	printf("  %-5s %-6s", "width", "check");
	for (unsigned i = 0; i < COUNTED; i++)
		printf(" %8s", counted[i]);
	printf(" %9s %5s %6s\n", "code", "regs", "spills");
	for (unsigned checked = 0; checked < 2; checked++)
		for (unsigned i = 0; i < WIDTHS; i++) {
			if (!look(q, nvdisasm, arch, 1u << i, checked, output, &c[checked][i]))
				return false;
			put(&c[checked][i], 1u << i, checked);
		}
	if (nvdisasm)
		printf("  take x%u; with -g-tmem-access-check x%u\n", best(c[0]), best(c[1]));
	return true;
}

static int all_reports(const request *q)
{
	static const char *const usual[] = { "sm_100a", "sm_103a" };
	char why[1024], path[4096];
	const char *nvdisasm = tool_find("nvdisasm", "CPTX_NVDISASM", path, sizeof path) ? path : NULL;
	char *output = malloc(OUTPUT_SIZE);
	bool ok = output || cli_no_memory(q->cmd);

	if (ok && !cptx_compiler_find(CPTX_COMPILER_PTXAS, why, sizeof why)) {
		free(output);
		return cli_failed(q->cmd, "%s; --width prints the PTX of a width", why);
	}
	for (unsigned i = 0; ok && i < WIDTHS; i++)
		ok = is_right(q, 1u << i);
	if (ok)
		printf("all widths right on the emulated sm_100a\n"), fflush(stdout);
	for (unsigned i = 0; ok && i < (q->arch ? 1 : 2); i++)
		ok = report(q, nvdisasm, q->arch ? q->arch : usual[i], output);
	if (ok && !nvdisasm)
		printf("no nvdisasm (CPTX_NVDISASM, CUDA_HOME, CUDA_PATH, PATH): instructions are not counted, and no width is "
		       "named\n");
	free(output);
	return cli_flush(q->cmd, ok ? EXIT_OK : EXIT_FAILED);
}

static int print_ptx(const request *q)
{
	cptx_error err = { 0 };
	cptx_module *m = build(q->columns, q->width, false);
	cptx_ptx *ptx = cptx_emit(m, q->arch ? q->arch : "sm_100a", NULL, &err);
	bool ok = ptx && cli_write(q->cmd, q->output ? q->output : "-", cptx_ptx_text(ptx), cptx_ptx_size(ptx));

	if (!ptx)
		cli_failed(q->cmd, "%s", err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return cli_flush(q->cmd, ok ? EXIT_OK : EXIT_FAILED);
}

/* ---- options ---- */

static bool is_power(uint64_t v, uint64_t least, uint64_t most) { return v >= least && v <= most && !(v & (v - 1)); }

static int read_option(request *q, int option, const char *value)
{
	const cptx_target *target;
	uint64_t n;

	switch (option) {
	case OPTION_COLUMNS:
		if (!number_dims(value, &n, 1, CPTX_TMEM_COLUMNS) || !is_power(n, 128, CPTX_TMEM_COLUMNS))
			return cli_usage(q->cmd, "--columns %s: 128, 256 or 512", value);
		q->columns = (uint32_t)n;
		break;
	case OPTION_WIDTH:
		if (!number_dims(value, &n, 1, 128) || !is_power(n, 1, 128))
			return cli_usage(q->cmd, "--width %s: a power of two from 1 to 128", value);
		q->width = (uint32_t)n;
		break;
	case OPTION_ARCH:
		if (!(target = cli_target(q->cmd, value)))
			return EXIT_USAGE;
		if (!cptx_form_on_target(CPTX_OP_TCGEN05_LD, 0, target))
			return cli_usage(q->cmd,
			                 "tensor memory is not available on %s; sm_100a and sm_103a have it. Instead: accumulators of "
			                 "%s, which are registers",
			                 value, target->number == 90 ? "wgmma" : "mma.sync");
		q->arch = value;
		break;
	default: q->output = value; break;
	}
	return EXIT_OK;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd, .columns = 256 };
	const char *value;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(&q, option, value)) != EXIT_OK)
			return status;
	if (option == -2)
		return status;
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'?", argv[optind]);
	if (q.output && !q.width)
		return cli_usage(cmd, "--output needs --width");
	return q.width ? print_ptx(&q) : all_reports(&q);
}

const cli_command cmd_tmem_width = {
	.name = "tmem-width",
	.arguments = "[OPTION]...",
	.about = "How wide to read accumulators from tensor memory: what ptxas makes of each width.",
	.details =
		"Builds the way out of a GEMM (tensor memory to registers to global memory) with tcgen05.ld of 1 to 128 columns,\n"
		"runs each on the emulator, has ptxas assemble it with and without its check of such accesses, and counts\n"
		"instructions of the machine code. The width to take: of those whose code is within a tenth of the shortest,\n"
		"the one with the fewest registers. That is no time: what else an SM does meanwhile decides with it.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.run = run,
};
