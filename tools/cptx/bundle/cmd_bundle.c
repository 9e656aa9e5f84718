/* SPDX-License-Identifier: MIT */
/* cptx bundle: kernels for several targets in one file, that a program loads without cptx. */
#include "bundle/bundle.h"
#include "cli/compiling.h"
#include "reference/number.h"

#include <cptx/bundle.h>

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	OPTION_OUTPUT,
	OPTION_TARGETS,
	OPTION_CODE,
	OPTION_C,
	OPTION_DEVICE,
	OPTION_FOLDER,
	OPTION_COMPILER,
	OPTION_LIST,
	OPTIONS
};
static const cli_option options[OPTIONS] = {
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "the bundle, or with --c the C source", "@file" },
	[OPTION_TARGETS] = { "targets", 't', "NAME,...", "targets; default: sm_80,sm_90a,sm_100a,sm_120a", "@arch" },
	[OPTION_CODE] = { "machine-code", 'm', "NAME,...",
	                  "targets to compile for, beside PTX: all (the default), none, or names", "all none" },
	[OPTION_C] = { "c", 'c', "NAME", "write C that defines the bundle as NAME and its size as NAME_size", NULL },
	[OPTION_DEVICE] = { "tuned-for", 'D', "DEVICE",
	                    "take shapes that were measured on a device of that name, where there are", NULL },
	[OPTION_FOLDER] = { "folder", 'f', "FOLDER", "the tuning database; default: CPTX_TUNE_DIR, else the user's", "@file" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles; default: auto", COMPILING_CHOICES },
	[OPTION_LIST] = { "list", 'l', "FILE", "print what a bundle holds and where it came from", "@file" },
};

enum { MOST_TARGETS = 32, MOST_LINE = 1024 };

typedef struct request {
	const cli_command *cmd;
	const char *output, *c, *device, *folder, *code;
	char names[MOST_TARGETS][16];
	unsigned targets;
	enum cptx_compiler compiler;
	cptx_cache *cache;
	cptx_tune *db;
	cptx_bundle *bundle;
	unsigned kernels;
} request;

static bool read_targets(request *q, const char *value)
{
	for (q->targets = 0; *value && q->targets < MOST_TARGETS; q->targets++) {
		const size_t n = strcspn(value, ",");
		if (!n || n >= sizeof q->names[0])
			return false;
		memcpy(q->names[q->targets], value, n);
		q->names[q->targets][n] = 0;
		value += n + (value[n] == ',');
	}
	return q->targets && !*value;
}

/* Whether machine code is made for a target. */
static bool is_compiled(const request *q, const char *target)
{
	const size_t n = strlen(target);

	if (!q->code || !strcmp(q->code, "all"))
		return true;
	for (const char *at = q->code; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != 0))
		if (strcspn(at, ",") == n && !strncmp(at, target, n))
			return true;
	return false;
}

/* ---- kernels ---- */

/* The options of a GEMM for a target: bf16 to f32 by the target's best instruction, and what the text says. */
static bool gemm_options(const char *target, const char *text, cptx_gemm_opt *o, cptx_error *err)
{
	const cptx_target *t = cptx_target_find(target);
	const cptx_gemm_opt usual = cptx_gemm_default(cptx_gemm_mma_of(t), t);

	*o = (cptx_gemm_opt){ .mma = usual.mma, .a = usual.a, .b = usual.b, .out = usual.out, .kind = usual.kind };
	return cptx_gemm_options_read(text, o, err);
}

static int add_gemm(request *q, const char *where, const char *name, const char *sizes, const char *text)
{
	cptx_gemm_opt o;
	uint64_t d[4] = { 0, 0, 0, 1 };

	if (!number_dims(sizes, d, 3, UINT32_MAX) && !number_dims(sizes, d, 4, UINT32_MAX))
		return cli_usage(q->cmd, "%s: '%s' is no size; expected MxNxK or MxNxKxBATCH", where, sizes);
	for (unsigned i = 0; i < q->targets; i++) {
		cptx_error err = { .code = CPTX_OK };
		const bool ok = gemm_options(q->names[i], text, &o, &err);
		o.batched = o.batched || d[3] > 1;
		const cptx_bundle_gemm g = { .name = name,
			                         .target = q->names[i],
			                         .opt = &o,
			                         .m = d[0],
			                         .n = d[1],
			                         .k = d[2],
			                         .batch = (uint32_t)d[3],
			                         .db = q->db,
			                         .device = q->device,
			                         .machine_code = is_compiled(q, q->names[i]),
			                         .compiler = q->compiler,
			                         .cache = q->cache };
		if (!ok || !cptx_bundle_add_gemm(q->bundle, &g, &err))
			return err.code == CPTX_E_ARG || err.code == CPTX_E_STATE || err.code == CPTX_E_TARGET
			           ? cli_usage(q->cmd, "%s: %s for %s: %s", where, name, q->names[i], err.text)
			           : cli_failed(q->cmd, "%s: %s for %s: %s", where, name, q->names[i], err.text);
	}
	q->kernels++;
	return EXIT_OK;
}

/* "NAME gemm MxNxK OPTION=VALUE ...", "# a comment" or nothing. */
static int add_line(request *q, const char *where, char *line)
{
	char *word[3], *at = line;

	line[strcspn(line, "#\r\n")] = 0;
	for (int i = 0; i < 3; i++) {
		at += strspn(at, " \t");
		if (!*at)
			return i ? cli_usage(q->cmd, "%s: expected NAME gemm MxNxK OPTION=VALUE...", where) : EXIT_OK;
		word[i] = at;
		at += strcspn(at, " \t");
		if (*at)
			*at++ = 0;
	}
	for (char *p = at; *p; p++)
		*p = (char)(*p == '\t' ? ' ' : *p);
	if (strcmp(word[1], "gemm"))
		return cli_usage(q->cmd, "%s: there is no family '%s'; gemm is bundled", where, word[1]);
	return add_gemm(q, where, word[0], word[2], at);
}

static int add_file(request *q, const char *path)
{
	size_t size;
	char *text = cli_read(q->cmd, path, &size), line[MOST_LINE], where[512];
	int status = EXIT_OK;
	unsigned number = 0;

	if (!text)
		return EXIT_FAILED;
	for (size_t at = 0; at < size && !status;) {
		const char *end = memchr(text + at, '\n', size - at);
		const size_t n = end ? (size_t)(end - text) - at : size - at;
		snprintf(where, sizeof where, "%.400s:%u", path, ++number);
		if (n >= sizeof line || memchr(text + at, 0, n)) {
			status = cli_usage(q->cmd, "%s: the line is too long, or is no text", where);
			break;
		}
		memcpy(line, text + at, n);
		line[n] = 0;
		status = add_line(q, where, line);
		at += n + 1;
	}
	free(text);
	return status;
}

/* ---- writing ---- */

static bool is_c_name(const char *name)
{
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	return n && !name[n] && !isdigit((unsigned char)name[0]);
}

static int write_c(const request *q, const void *data, size_t size)
{
	enum { A_LINE = 6 };
	const uint64_t *words = data;
	cli_output o;

	if (!cli_create(q->cmd, &o, q->output))
		return EXIT_FAILED;
	fprintf(o.f,
	        "/* A bundle of kernels, for cptx_load_memory(%s, %s_size, err).  Made by cptx bundle. */\n#include "
	        "<stddef.h>\n#include <stdint.h>\n\nextern const uint64_t %s[];\nextern const size_t %s_size;\nconst size_t "
	        "%s_size = %zu;\nconst uint64_t %s[] = {",
	        q->c, q->c, q->c, q->c, q->c, size, q->c);
	for (size_t i = 0; i < (size + 7) / 8; i++)
		fprintf(o.f, "%s0x%llxu,", i % A_LINE ? " " : "\n\t", (unsigned long long)words[i]);
	fprintf(o.f, "\n};\n");
	return cli_finish(q->cmd, &o) ? EXIT_OK : EXIT_FAILED;
}

static int write_bundle(const request *q)
{
	cptx_error err = { .code = CPTX_OK };
	size_t size;
	const void *data = cptx_bundle_finish(q->bundle, &size, &err);

	if (!data)
		return cli_failed(q->cmd, "%s", err.text);
	if (q->c ? write_c(q, data, size) != EXIT_OK : !cli_write(q->cmd, q->output, data, size))
		return EXIT_FAILED;
	if (strcmp(q->output, "-"))
		printf("%u kernels for %u targets, %zu bytes: %s\n", q->kernels, q->targets, size, q->output);
	return cli_flush(q->cmd, EXIT_OK);
}

static int make(request *q, char **files, int n)
{
	cptx_error err = { .code = CPTX_OK };
	const time_t now = time(NULL);
	struct tm tm;
	char made[200], date[32] = "";
	int status = EXIT_OK;

	if (gmtime_r(&now, &tm))
		strftime(date, sizeof date, "%Y-%m-%d", &tm);
	snprintf(made, sizeof made, "cptx %s, %s, from %.100s", cptx_version(), date, n ? files[0] : "");
	if (!(q->cache = compiling_cache(q->cmd)))
		return EXIT_FAILED;
	if (q->device)
		q->db = cptx_tune_open(&(cptx_tune_opt){ .path = q->folder, .read_only = true }, &err);
	q->bundle = cptx_bundle_new(made, &err);
	if (err.code != CPTX_OK)
		status = cli_failed(q->cmd, "%s", err.text);
	for (int i = 0; i < n && !status; i++)
		status = add_file(q, files[i]);
	if (!status && !q->kernels)
		status = cli_usage(q->cmd, "no kernels in %s", files[0]);
	if (!status)
		status = write_bundle(q);
	cptx_bundle_destroy(q->bundle);
	cptx_tune_close(q->db);
	cptx_cache_close(q->cache);
	return status;
}

static int check(const request *q, int files)
{
	if (!files)
		return cli_usage(q->cmd, "name a file of kernels, or - for standard input; or --list FILE");
	if (!q->output)
		return cli_usage(q->cmd, "say where to: --output FILE");
	if (q->c && !is_c_name(q->c))
		return cli_usage(q->cmd, "--c %s: that is no name in C", q->c);
	if (q->folder && !q->device)
		return cli_usage(q->cmd, "--folder goes with --tuned-for");
	for (unsigned i = 0; i < q->targets; i++)
		if (!cli_target(q->cmd, q->names[i]))
			return EXIT_USAGE;
	return EXIT_OK;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd };
	const char *value, *list = NULL;
	int status = EXIT_OK;

	read_targets(&q, "sm_80,sm_90a,sm_100a,sm_120a");
	for (int option; (option = cli_next(cmd, argc, argv, &value, &status)) != -1;) {
		switch (option) {
		case -2: return status;
		case OPTION_OUTPUT: q.output = value; break;
		case OPTION_CODE: q.code = value; break;
		case OPTION_C: q.c = value; break;
		case OPTION_DEVICE: q.device = value; break;
		case OPTION_FOLDER: q.folder = value; break;
		case OPTION_LIST: list = value; break;
		case OPTION_TARGETS:
			if (!read_targets(&q, value))
				return cli_bad_value(cmd, OPTION_TARGETS, value, "expected targets with commas, as in sm_80,sm_90a");
			break;
		case OPTION_COMPILER:
			if ((status = compiling_named(cmd, value, &q.compiler)))
				return status;
			break;
		default: break;
		}
	}
	if (list)
		return optind < argc ? cli_usage(cmd, "--list takes one file, and makes nothing: %s", argv[optind])
		                     : bundle_list(cmd, list);
	status = check(&q, argc - optind);
	return status ? status : make(&q, argv + optind, argc - optind);
}

const cli_command cmd_bundle = {
	.name = "bundle",
	.arguments = "[OPTION]... FILE...",
	.about = "Packs kernels for several targets into one file, which a program loads without cptx.",
	.details = "A line of FILE is a kernel: NAME gemm MxNxK[xBATCH] OPTION=VALUE..., with the options of <cptx/gemm.h>:\n"
			   "  qkv   gemm 4096x6144x4096  out=bf16\n"
			   "  up    gemm 4096x14336x4096 out=bf16 bias=1     # comments begin with #\n"
			   "Without a shape (bm=...) it is the best of the tuning database (--tuned-for), else the model's.\n"
			   "share/cptx/loader/cptx_load.c and cptx_load.h load bundles; they need libcuda and nothing else.\n\n"
			   "  cptx bundle kernels.txt -o kernels.bundle\n"
			   "  cptx bundle kernels.txt --targets sm_90,sm_90a --tuned-for \"NVIDIA H200\" -o kernels.bundle\n"
			   "  cptx bundle kernels.txt --machine-code none --c kernels -o kernels.c\n"
			   "  cptx bundle --list kernels.bundle\n",
	.options = options,
	.noption = OPTIONS,
	.operand_choices = "@file",
	.run = run,
};
